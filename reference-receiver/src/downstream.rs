//! An effect that is a call to another service, over HTTP.
//!
//! No transaction reaches there. So each call carries an idempotency key, the same one for the same event
//! each time, by which the other service knows what it has done: a call whose outcome is unknown is made
//! again, and that is how it is reconciled. Only a call that is known to be done marks its entry.

use std::fmt;
use std::pin::pin;

use bytes::Bytes;
use hookproof_core::address::EndpointUrl;
use hookproof_core::address::url::Scheme;
use hookproof_core::time::Millis;
use hookproof_runtime::client::exchange;
use hookproof_runtime::host::Host;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use serde::Deserialize;

use crate::effect::EffectError;
use crate::store::Work;

/// The header of the idempotency key (draft-ietf-httpapi-idempotency-key-header).
pub const KEY_HEADER: &str = "idempotency-key";

/// Where the events of a source take effect, if that is another service.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Downstream {
    /// Where each event is posted to.
    pub url: DownstreamUrl,
    /// The longest wait for the answer, connection and all; 5 s unless set. It must end before the
    /// claim does, or another worker would call beside this one.
    #[serde(default = "timeout")]
    pub timeout: Millis,
}

fn timeout() -> Millis {
    Millis::from_secs(5)
}

/// An `http` URL.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct DownstreamUrl(EndpointUrl);

impl TryFrom<String> for DownstreamUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let told = || text.chars().take(200).collect::<String>().escape_debug().to_string();
        let url = EndpointUrl::parse(&text).map_err(|error| {
            format!("`{}` {error}; give one such as http://127.0.0.1:8090/entries", told())
        })?;
        match url.scheme {
            Scheme::Http => Ok(Self(url)),
            Scheme::Https => Err(format!(
                "`{}` is https, and calls leave in the clear: give the http:// URL of a service or \
                 a proxy on a network that you trust",
                told()
            )),
        }
    }
}

/// What became of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Called {
    /// The other service says that it is done: now, or by a call before.
    Done,
    /// It is not done: nothing was sent, or the other service refused.
    Failed(EffectError),
    /// Nobody here knows whether it is done.
    Unknown(EffectError),
}

impl Downstream {
    /// A service at this URL, with the usual timeout.
    ///
    /// # Errors
    ///
    /// What is wrong with the URL.
    pub fn new(url: &str) -> Result<Self, String> {
        Ok(Self { url: DownstreamUrl::try_from(url.to_owned())?, timeout: timeout() })
    }

    /// Has the event of `work` take effect there.
    pub(crate) async fn call<H: Host>(&self, host: &H, work: &Work) -> Called {
        let Some(request) = self.request(work) else {
            return failed("the event makes no request");
        };
        let mut deadline = pin!(host.sleep(self.timeout));
        let connected = tokio::select! {
            biased;
            connected = self.connect(host) => connected,
            () = &mut deadline => Err(format!("no connection within {}", self.timeout)),
        };
        let stream = match connected {
            Ok(stream) => stream,
            Err(why) => return failed(why),
        };
        // From here on the other service may have it.
        let answered = tokio::select! {
            biased;
            answered = exchange(host, stream, request, None) => answered,
            () = &mut deadline => return unknown(format!("no answer within {}", self.timeout)),
        };
        match answered {
            Ok(answer) => judge(answer.status()),
            Err(error) => unknown(error),
        }
    }

    /// The first address that accepts.
    async fn connect<H: Host>(&self, host: &H) -> Result<H::Stream, String> {
        let DownstreamUrl(EndpointUrl { host: name, port, .. }) = &self.url;
        let name = name.to_string();
        let addresses = host.resolve(&name, *port).await.map_err(|error| error.to_string())?;
        let mut why = format!("{name} has no address");
        for address in addresses {
            match host.connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => why = format!("no connection to {address}: {error}"),
            }
        }
        Err(why)
    }

    fn request(&self, work: &Work) -> Option<Request<Full<Bytes>>> {
        let DownstreamUrl(url) = &self.url;
        Request::post(url.path.as_str())
            .header(HOST, url.authority.as_str())
            .header(CONNECTION, "close")
            .header(CONTENT_TYPE, work.content_type.as_str())
            .header(CONTENT_LENGTH, work.body.len())
            .header(KEY_HEADER, key(work))
            .body(Full::new(work.body.clone()))
            .ok()
    }
}

/// The key of an event: its source and its id, since two sources may give the same id. Neither holds a
/// dot, so no two events have the same key.
#[must_use]
pub fn key(work: &Work) -> String {
    format!("{}.{}", work.entry.source, work.entry.event_id)
}

/// What a status says of a call. A 408 means that the other service did not get it whole, or says so; a
/// 409 that a call under the same key is under way there; after a 5xx anything may have happened.
fn judge(status: u16) -> Called {
    let told = format!("the other service answered {status}");
    match status {
        200..=299 => Called::Done,
        408 | 409 | 500..=599 => unknown(told),
        _ => failed(told),
    }
}

fn failed(why: impl fmt::Display) -> Called {
    Called::Failed(EffectError::new(why))
}

fn unknown(why: impl fmt::Display) -> Called {
    Called::Unknown(EffectError::new(why))
}

#[cfg(test)]
mod tests {
    use super::{Called, DownstreamUrl, judge};

    #[test]
    fn a_status_says_done_failed_or_nothing() {
        let check = |statuses: &[u16], expected: &str| {
            for status in statuses {
                let told = match judge(*status) {
                    Called::Done => "done",
                    Called::Failed(_) => "failed",
                    Called::Unknown(_) => "unknown",
                };
                assert_eq!(told, expected, "{status}");
            }
        };
        check(&[200, 201, 204, 299], "done");
        check(&[301, 307, 400, 401, 404, 422, 429], "failed");
        check(&[408, 409, 500, 502, 503, 504, 599], "unknown");
    }

    #[test]
    fn what_is_no_http_url_is_refused_with_what_would_be_right() {
        let check = |text: &str, problem: &str| {
            let error = DownstreamUrl::try_from(text.to_owned()).unwrap_err();
            assert!(error.contains(problem), "{error}");
        };
        check("ledger", "`ledger` is not absolute; give one such as http://127.0.0.1:8090/entries");
        check("https://ledger.example/entries", "is https, and calls leave in the clear");
        check("http://user@ledger/", "carries a user name or password");
        assert!(DownstreamUrl::try_from("http://ledger.internal:8090/entries".to_owned()).is_ok());
    }
}
