//! An endpoint's address, checked once when it is registered and again before each attempt.

use std::fmt;

use hookproof_core::address::url::Scheme;
use hookproof_core::address::{AddressPolicy, EndpointUrl, Host, Judgement};
use hyper::Uri;

/// An address that attempts can go to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Whether the connection is encrypted.
    pub is_tls: bool,
    /// The host name or address, in the spelling in which it is judged and dialled.
    pub host: Host,
    /// The port.
    pub port: u16,
    /// The value of the `host` header.
    pub authority: String,
    /// Path and query, at least `/`.
    pub path: String,
}

/// Why a URL cannot be an endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UrlError {
    url: String,
    why: &'static str,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` {}; give an absolute URL such as https://example.com/hooks",
            self.url.escape_debug(),
            self.why
        )
    }
}

impl std::error::Error for UrlError {}

impl Target {
    /// Takes a URL apart.
    ///
    /// # Errors
    ///
    /// [`UrlError`] if it is not absolute, has another scheme than `http` or `https`, or carries a
    /// user name, a password or a fragment.
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        let fail = |why| UrlError { url: url.chars().take(200).collect(), why };
        let parsed = EndpointUrl::parse(url).map_err(|error| fail(error.as_str()))?;
        // What writes the request has a parser of its own, and must see the same.
        match url.parse::<Uri>() {
            Ok(uri) if uri.authority().is_some_and(|theirs| *theirs == parsed.authority) => {}
            _ => return Err(fail("is not a URL")),
        }
        let EndpointUrl { scheme, host, port, authority, path } = parsed;
        Ok(Self { is_tls: scheme == Scheme::Https, host, port, authority, path })
    }

    /// Judges it as far as that is possible without looking its name up.
    pub fn judge(&self, policy: &AddressPolicy) -> Judgement {
        let scheme = if self.is_tls { Scheme::Https } else { Scheme::Http };
        policy.judge_endpoint(scheme, &self.host, self.port)
    }
}
