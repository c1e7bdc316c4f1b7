//! How the requests of a source are verified, and where they say which event they are about.

use hookproof_core::id::EventId;
use hookproof_core::scheme::{Fault, Key, Part, Place, Request, Role, Scheme, known};
use hookproof_core::secret::Secrets;
use hookproof_core::time::{Millis, Timestamp};
use hyper::header::HeaderMap;

/// How the requests of a source are verified, and where they carry the event's id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verifier {
    /// The signature scheme.
    pub scheme: Scheme,
    /// What it is verified by, the newest first.
    pub keys: Vec<Key>,
    /// How far a timestamp may be from the clock, on either side; `None` where the scheme signs no time.
    pub tolerance: Option<Millis>,
    /// Where the event's id stands.
    pub event_id: Place,
    /// The URL as senders call it, without a query, for schemes that sign it: a receiver behind a proxy
    /// does not see it.
    pub url: Option<String>,
}

/// Where the event's id stands for schemes that say nothing of one, as their owners document it. What stands in
/// a signed body cannot be changed by anybody on the way; a header that is not signed can.
const USUAL_IDS: &[(&str, Usual)] = &[
    ("stripe", Usual::Json("/id")),
    ("slack", Usual::Json("/event_id")),
    ("github", Usual::Header("X-GitHub-Delivery")),
    ("gitlab", Usual::Header("Idempotency-Key")),
    ("square", Usual::Json("/event_id")),
    ("paddle", Usual::Json("/event_id")),
    ("workos", Usual::Json("/id")),
    ("typeform", Usual::Json("/event_id")),
    ("linear", Usual::Header("Linear-Delivery")),
];

#[derive(Clone, Copy)]
enum Usual {
    Header(&'static str),
    Json(&'static str),
}

impl Verifier {
    /// Standard Webhooks with these secrets and the usual tolerance.
    #[must_use]
    pub fn standard(secrets: &Secrets) -> Self {
        let scheme = known::standard_webhooks();
        let keys = secrets.iter().map(Key::from).collect();
        let event_id = scheme.id.clone().unwrap_or_default();
        Self { tolerance: scheme.tolerance, scheme, keys, event_id, url: None }
    }

    /// Where a scheme's events carry their id, if that is known.
    #[must_use]
    pub fn usual_event_id(scheme: &Scheme) -> Option<Place> {
        let usual = USUAL_IDS.iter().find(|(name, _)| *name == scheme.name);
        scheme.id.clone().or_else(|| {
            usual.map(|(_, place)| match place {
                Usual::Header(name) => Place::header(name),
                Usual::Json(pointer) => Place::json(pointer),
            })
        })
    }

    /// Whether whoever replays a request could give it another id unnoticed.
    #[must_use]
    pub fn trusts_unsigned_id(&self) -> bool {
        let in_signed_body = self.event_id.json.is_some() && self.scheme.signed.has(&Part::Body);
        let is_signed =
            self.scheme.protects_id() && self.scheme.id.as_ref() == Some(&self.event_id);
        !in_signed_body && !is_signed
    }

    /// Whether the scheme signs the URL under which it is called.
    pub(crate) fn signs_url(&self) -> bool {
        [Part::Url, Part::UrlDecoded].iter().any(|part| self.scheme.signed.has(part))
    }

    /// The event that a verified request is about.
    pub(crate) fn verify(
        &self,
        headers: &HeaderMap,
        query: Option<&str>,
        body: &[u8],
        now: Timestamp,
    ) -> Result<EventId, Refusal> {
        let headers = self.fields(headers);
        let url = self.url.as_deref().map(|url| match query {
            Some(query) => format!("{url}?{query}"),
            None => url.to_owned(),
        });
        let url = url.unwrap_or_default();
        let request = Request { method: "POST", url: &url, headers: &headers, body };
        self.scheme
            .verify(&self.keys, &request, now, self.tolerance)
            .map_err(Refusal::Unauthorized)?;
        self.event_id(&request).map_err(Refusal::EventId)
    }

    /// Every line of the fields that are looked at.
    fn fields(&self, headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
        let Scheme { signature, id, timestamp, .. } = &self.scheme;
        let places = [Some(signature), id.as_ref(), timestamp.as_ref(), Some(&self.event_id)];
        let mut names: Vec<&str> =
            places.into_iter().flatten().filter_map(|place| place.header.as_deref()).collect();
        // The signature and the time can share one.
        names.sort_unstable();
        names.dedup();
        let lines = |name| headers.get_all(name).iter().map(move |value| (name, value));
        let all = names.into_iter().flat_map(lines);
        all.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec())).collect()
    }

    fn event_id(&self, request: &Request<'_>) -> Result<EventId, String> {
        let place = &self.event_id;
        let mut values = place.values(Role::Id, request).map_err(|fault| fault.to_string())?;
        let value = match (values.pop(), values.is_empty()) {
            (Some(value), true) => value,
            _ => return Err(format!("{place} must hold one id")),
        };
        let text = std::str::from_utf8(&value).map_err(|error| format!("{place}: {error}"))?;
        EventId::new(text).map_err(|error| format!("{place}: {error}"))
    }
}

/// Why a request is refused.
pub(crate) enum Refusal {
    /// It is not verified.
    Unauthorized(Fault),
    /// It is, and does not say which event it is about in a way that can be kept.
    EventId(String),
}
