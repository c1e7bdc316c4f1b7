//! An integration that may send: who it is, how its requests are verified, what its events mean.

use hookproof_core::id::SourceId;
use hookproof_core::scheme::{Key, Place, Scheme, known};
use hookproof_core::secret::Secrets;
use hookproof_core::time::Millis;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use crate::downstream::Downstream;
use crate::ordering::OrderingRule;
use crate::verifier::Verifier;

/// The most secrets of one source, as of one endpoint: more are no rotation.
const SECRETS_MAX: usize = 10;

/// One integration that may send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// Its name, which is the path it sends to and, with the event id, the key of deduplication.
    pub id: SourceId,
    /// How its requests are verified.
    pub verifier: Verifier,
    /// Where its events say which version of which entity they are about; without it each is applied
    /// as it comes.
    pub ordering: Option<OrderingRule>,
    /// The other service that its events take effect in; without it they do so in the receiver's own
    /// database.
    pub downstream: Option<Downstream>,
}

impl Source {
    /// A source that signs by Standard Webhooks, with the usual tolerance.
    #[must_use]
    pub fn new(id: SourceId, secrets: &Secrets) -> Self {
        Self { id, verifier: Verifier::standard(secrets), ordering: None, downstream: None }
    }
}

/// A source as it is written in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    id: SourceId,
    /// The name of a scheme that is known; Standard Webhooks unless given.
    scheme: Option<String>,
    /// A scheme of one's own.
    own_scheme: Option<Scheme>,
    secrets: Vec<String>,
    tolerance: Option<Millis>,
    event_id: Option<Place>,
    url: Option<String>,
    ordering: Option<OrderingRule>,
    downstream: Option<Downstream>,
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Written::deserialize(deserializer)?;
        let verifier = written.verifier().map_err(D::Error::custom)?;
        let Written { id, ordering, downstream, .. } = written;
        Ok(Self { id, verifier, ordering, downstream })
    }
}

impl Written {
    fn verifier(&self) -> Result<Verifier, String> {
        let scheme = self.scheme()?;
        let event_id = self.event_id.clone().or_else(|| Verifier::usual_event_id(&scheme));
        let event_id = event_id.ok_or_else(|| {
            format!(
                "`event_id` is missing: the scheme {} says nothing of an id; write where its events \
                 carry one, as in {{ json = \"/id\" }} or {{ header = \"x-request-id\" }}",
                scheme.name
            )
        })?;
        if event_id.json.is_some() == event_id.header.is_some() {
            return Err("`event_id` needs a `header` or a `json` pointer, and not both".to_owned());
        }
        let tolerance = match self.tolerance {
            Some(_) if !scheme.protects_timestamp() => {
                let name = &scheme.name;
                return Err(format!("`tolerance` is of no use: the scheme {name} signs no time"));
            }
            given => given.or(scheme.tolerance),
        };
        let verifier = Verifier {
            keys: self.keys(&scheme)?,
            scheme,
            tolerance,
            event_id,
            url: self.url.clone(),
        };
        if verifier.signs_url() && verifier.url.is_none() {
            return Err(format!(
                "`url` is missing: the scheme {} signs the URL as it is called, which a receiver behind \
                 a proxy does not see; write it, as in \"https://example.com/hooks/{}\"",
                verifier.scheme.name, self.id
            ));
        }
        Ok(verifier)
    }

    fn scheme(&self) -> Result<Scheme, String> {
        match (&self.scheme, &self.own_scheme) {
            (Some(_), Some(_)) => Err("`scheme` and `own_scheme` are two schemes".to_owned()),
            (None, None) => Ok(known::standard_webhooks()),
            (None, Some(scheme)) => {
                scheme.check().map_err(|error| format!("`own_scheme`: {error}"))?;
                Ok(scheme.clone())
            }
            (Some(name), None) => known::find(name).ok_or_else(|| {
                let all = known::all();
                let names: Vec<&str> = all.iter().map(|scheme| scheme.name.as_str()).collect();
                let name = name.escape_debug();
                format!("`scheme` is \"{name}\"; the known ones are {}", names.join(", "))
            }),
        }
    }

    fn keys(&self, scheme: &Scheme) -> Result<Vec<Key>, String> {
        let count = self.secrets.len();
        if count == 0 || count > SECRETS_MAX {
            return Err(format!(
                "`secrets`: {count} secrets given, 1 to {SECRETS_MAX} are possible"
            ));
        }
        let key = |(at, text): (usize, &String)| {
            Key::parse(scheme.key, text).map_err(|error| format!("`secrets[{at}]`: {error}"))
        };
        self.secrets.iter().enumerate().map(key).collect()
    }
}
