//! The URL of an endpoint, taken apart once for judging and for dialling.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::host::{Host, HostError};

/// The longest URL, in bytes.
pub const URL_BYTES_MAX: usize = 2048;

/// How a connection is made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that is meant if none is given (RFC 9110 §4.2).
    #[must_use]
    pub const fn port_default(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl FromStr for Scheme {
    type Err = UrlError;

    /// Reads a scheme in any case (RFC 3986 §3.1), without what follows it.
    fn from_str(text: &str) -> Result<Self, UrlError> {
        let schemes = [Self::Http, Self::Https];
        let found = schemes.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(text));
        let is_scheme = !text.is_empty() && text.bytes().all(is_of_scheme);
        found.ok_or(if is_scheme { UrlError::Scheme } else { UrlError::NotAbsolute })
    }
}

/// The URL of an endpoint.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EndpointUrl {
    /// How it is reached.
    pub scheme: Scheme,
    /// Who is reached.
    pub host: Host,
    /// At which port.
    pub port: u16,
    /// Host and port as they stand in the URL.
    pub authority: String,
    /// Path and query, at least `/`.
    pub path: String,
}

/// Why a text cannot be the URL of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum UrlError {
    /// It is longer than [`URL_BYTES_MAX`].
    TooLong,
    /// It has a fragment, which is never sent.
    Fragment,
    /// It holds white space, control characters or what RFC 3986 §2 leaves out, or ends too early.
    NotAUrl,
    /// It has no scheme, or names no authority after it.
    NotAbsolute,
    /// Its scheme is neither `http` nor `https`.
    Scheme,
    /// It carries a user name or a password, behind which the real host can be hidden.
    UserInfo,
    /// Its host is none.
    Host(HostError),
    /// Its port is no number from 1 to 65535.
    Port,
}

impl UrlError {
    /// What is wrong, as the rest of a sentence on the URL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooLong => "is longer than 2,048 bytes",
            Self::Fragment => "has a fragment, which is never sent",
            Self::NotAUrl => "is not a URL",
            Self::NotAbsolute => "is not absolute",
            Self::Scheme => "has a scheme other than http and https",
            Self::UserInfo => "carries a user name or password",
            Self::Host(error) => error.as_str(),
            Self::Port => "has a port that is no number from 1 to 65535",
        }
    }
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for UrlError {}

impl EndpointUrl {
    /// Takes a URL apart. Where RFC 3986 and the URL standard of browsers differ (a backslash, white
    /// space, further slashes, an odd spelling of an address), it is refused.
    ///
    /// # Errors
    ///
    /// [`UrlError`] with what is wrong.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        if text.len() > URL_BYTES_MAX {
            return Err(UrlError::TooLong);
        }
        if text.contains('#') {
            return Err(UrlError::Fragment);
        }
        let is_refused = |c: char| {
            c.is_whitespace()
                || c.is_control()
                || matches!(c, '\\' | '"' | '<' | '>' | '^' | '`' | '{' | '|' | '}')
        };
        if text.is_empty() || text.contains(is_refused) {
            return Err(UrlError::NotAUrl);
        }
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::NotAbsolute)?;
        let scheme: Scheme = scheme.parse()?;
        let (authority, path) = rest.split_at(end_of_authority(rest));
        if authority.is_empty() {
            return Err(UrlError::NotAUrl);
        }
        if authority.contains('@') {
            return Err(UrlError::UserInfo);
        }
        // The path goes into a request line, so it is ASCII (RFC 3986 §2).
        if !path.is_ascii() {
            return Err(UrlError::NotAUrl);
        }
        let (host, port) = split_authority(authority)?;
        let host = host.parse().map_err(|error| match error {
            HostError::NotIpv6 => UrlError::NotAUrl,
            error => UrlError::Host(error),
        })?;
        let port = match port {
            None | Some("") => scheme.port_default(),
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok().filter(|port| *port > 0).ok_or(UrlError::Port)?
            }
            Some(_) => return Err(UrlError::Port),
        };
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { scheme, host, port, authority: authority.to_owned(), path })
    }
}

/// The host of a URL as it is written, if one can be told.
pub(super) fn host_of(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("://")?;
    let (host, _) = split_authority(&rest[..end_of_authority(rest)]).ok()?;
    Some(host)
}

fn end_of_authority(rest: &str) -> usize {
    rest.find(['/', '?']).unwrap_or(rest.len())
}

/// RFC 3986 §3.1.
fn is_of_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)
}

/// Host and port, the latter without its colon.
fn split_authority(authority: &str) -> Result<(&str, Option<&str>), UrlError> {
    if authority.starts_with('[') {
        let end = authority.find(']').ok_or(UrlError::NotAUrl)? + 1;
        let (host, port) = authority.split_at(end);
        return match port.strip_prefix(':') {
            None if port.is_empty() => Ok((host, None)),
            Some(port) => Ok((host, Some(port))),
            None => Err(UrlError::NotAUrl),
        };
    }
    Ok(match authority.split_once(':') {
        None => (authority, None),
        Some((host, port)) => (host, Some(port)),
    })
}
