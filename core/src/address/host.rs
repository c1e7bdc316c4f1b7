//! The host of a URL, in the one spelling in which it is judged, resolved and dialled.
//!
//! Programs differ in how they read `0x7f.1`, `127.1`, `１２７.0.0.1` or `a。b`: one may see a name and
//! the next an address. So there is one spelling of an address, and names are ASCII: an
//! internationalised name is given in its A-label form (`xn--…`, RFC 5890 §2.3.2.1), into which
//! whoever registers it can turn it. Mapping it here would need the tables of UTS #46, whose editions
//! differ between programs, which is the very doubt to be avoided. Whoever gives one is told the
//! A-labels to write, where these are beyond doubt ([`instead_of`]).
//!
//! Of the letters, digits and hyphens of RFC 1123 §2.1 one thing more is taken, as resolvers do: the
//! underscore. And a hyphen may stand third and fourth in a label that does not begin with `xn--`,
//! although RFC 5890 §2.3.1 reserves such labels: many that are in use have them there.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::idna;

/// The longest name, in bytes, without a final dot (RFC 1035 §2.3.4).
const NAME_BYTES_MAX: usize = 253;
/// The longest label, in bytes (RFC 1035 §2.3.4).
const LABEL_BYTES_MAX: usize = 63;

/// The host of a URL.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Host {
    /// An address.
    Address(IpAddr),
    /// A name in lower case, without a final dot.
    Name(String),
}

/// Why a text cannot be a host.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HostError {
    /// There is none.
    Empty,
    /// It holds a character that is not ASCII.
    NotAscii,
    /// It holds a character that no name has.
    ForbiddenCharacter,
    /// It ends in a number, as addresses do, and is no address in its usual spelling.
    OddAddress,
    /// What stands in brackets is no IPv6 address.
    NotIpv6,
    /// A label is empty: there are two dots in a row, or one at the start.
    EmptyLabel,
    /// A label begins or ends with a hyphen.
    OuterHyphen,
    /// A label begins with `xn--` and is no A-label.
    NotALabel,
    /// A label has more than 63 bytes, or all of it more than 253.
    TooLong,
}

impl HostError {
    /// What is wrong, as the rest of a sentence on the host's URL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "names no host",
            Self::NotAscii => {
                "has a host that is not ASCII; give an internationalised name in A-labels, xn--…"
            }
            Self::ForbiddenCharacter => "has a host with a character that no name has",
            Self::OddAddress => {
                "has a host that ends in a number and is no address in its usual spelling, four \
                 decimal numbers"
            }
            Self::NotIpv6 => "has something in brackets that is no IPv6 address",
            Self::EmptyLabel => "has a host with an empty label",
            Self::OuterHyphen => {
                "has a host with a label that begins or ends with a hyphen (RFC 1123 §2.1)"
            }
            Self::NotALabel => {
                "has a host with a label that begins with xn-- and is no A-label, the one spelling \
                 in Punycode (RFC 5890 §2.3.2.1, RFC 3492)"
            }
            Self::TooLong => "has a host that is longer than a name can be",
        }
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for HostError {}

impl fmt::Display for Host {
    /// As it stands in a URL: an IPv6 address in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(IpAddr::V6(v6)) => write!(f, "[{v6}]"),
            Self::Address(IpAddr::V4(v4)) => v4.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl FromStr for Host {
    type Err = HostError;

    /// Reads a host as it stands in a URL.
    fn from_str(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(HostError::NotIpv6)?;
            let address: Ipv6Addr = inner.parse().map_err(|_| HostError::NotIpv6)?;
            return Ok(Self::Address(address.into()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Address(address.into()));
        }
        if !text.is_ascii() {
            return Err(HostError::NotAscii);
        }
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !text.bytes().all(is_allowed) {
            return Err(HostError::ForbiddenCharacter);
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if name.len() > NAME_BYTES_MAX || name.split('.').any(|l| l.len() > LABEL_BYTES_MAX) {
            return Err(HostError::TooLong);
        }
        if name.split('.').any(str::is_empty) {
            return Err(HostError::EmptyLabel);
        }
        if name.rsplit('.').next().is_some_and(is_number) {
            return Err(HostError::OddAddress);
        }
        if name.split('.').any(|label| label.starts_with('-') || label.ends_with('-')) {
            return Err(HostError::OuterHyphen);
        }
        if !name.split('.').all(idna::is_plain_or_a_label) {
            return Err(HostError::NotALabel);
        }
        Ok(Self::Name(name))
    }
}

/// What to write instead of a name that is not ASCII: its A-labels. `None` if it needs none, cannot be
/// a host either way, or has characters that are mapped in ways on which programs differ.
#[must_use]
pub fn instead_of(text: &str) -> Option<String> {
    let name = (!text.is_ascii()).then(|| idna::in_a_labels(text)).flatten()?;
    name.parse::<Host>().is_ok().then_some(name)
}

/// Whether some program takes a label for a number: decimal, octal or hexadecimal, as `inet_aton` and
/// the WHATWG URL standard (§3.5, "ends in a number") do.
fn is_number(label: &str) -> bool {
    let is_hexadecimal = label
        .strip_prefix("0x")
        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    is_hexadecimal || label.bytes().all(|byte| byte.is_ascii_digit())
}

/// Names that are meant: one, as `hooks.internal`, or with `*.` in front all below it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostPattern {
    name: String,
    is_below: bool,
}

impl HostPattern {
    /// Whether this name, in lower case and without a final dot, is meant.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        if self.is_below {
            name.strip_suffix(self.name.as_str()).is_some_and(|above| above.ends_with('.'))
        } else {
            name == self.name
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.is_below { "*." } else { "" }, self.name)
    }
}

/// Why a text is no host pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostPatternError {
    text: String,
}

impl fmt::Display for HostPatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rest, below) = match self.text.strip_prefix("*.") {
            Some(rest) => (rest, "*."),
            None => (self.text.as_str(), ""),
        };
        write!(f, "`{}` is no host name; ", self.text.escape_debug())?;
        match instead_of(rest) {
            Some(name) => write!(f, "write {below}{name}"),
            None => f.write_str(
                "write hooks.internal, or *.internal for all below it; an address is allowed by a \
                 block",
            ),
        }
    }
}

impl std::error::Error for HostPatternError {}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        let (rest, is_below) = match text.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        match rest.parse() {
            Ok(Host::Name(name)) => Ok(Self { name, is_below }),
            _ => Err(HostPatternError { text: text.chars().take(100).collect() }),
        }
    }
}

impl Serialize for HostPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HostPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
