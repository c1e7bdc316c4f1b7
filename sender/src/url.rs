//! An endpoint's address, checked once when it is registered and again before each attempt.

use std::fmt;

use hyper::Uri;
use hyper::http::uri::Scheme;

/// The longest URL, in bytes.
const URL_BYTES_MAX: usize = 2048;

/// An address that attempts can go to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Whether the connection is encrypted.
    pub is_tls: bool,
    /// The host name or address, without brackets' meaning changed: as it stands in the URL.
    pub host: String,
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
        let fail = |why| Err(UrlError { url: url.chars().take(200).collect(), why });
        if url.len() > URL_BYTES_MAX {
            return fail("is longer than 2,048 bytes");
        }
        if url.contains('#') {
            return fail("has a fragment, which is never sent");
        }
        let Ok(uri) = url.parse::<Uri>() else { return fail("is not a URL") };
        let is_tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(_) => return fail("has a scheme other than http and https"),
            None => return fail("is not absolute"),
        };
        let Some(authority) = uri.authority() else { return fail("names no host") };
        if authority.as_str().contains('@') {
            return fail("carries a user name or password");
        }
        if authority.host().is_empty() {
            return fail("names no host");
        }
        let port = match authority.as_str()[authority.host().len()..].strip_prefix(':') {
            None | Some("") => Some(if is_tls { 443 } else { 80 }),
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok(),
            Some(_) => None,
        };
        let Some(port @ 1..) = port else {
            return fail("has a port that is no number from 1 to 65535");
        };
        Ok(Self {
            is_tls,
            host: authority.host().to_owned(),
            port,
            authority: authority.as_str().to_owned(),
            path: uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
        })
    }
}
