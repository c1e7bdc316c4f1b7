//! What was decided about a target, and why.

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;

use super::cidr::Cidr;
use super::embedded::Embedded;
use super::host::HostPattern;
use super::registry::{NameRow, Row};
use super::url::{Scheme, UrlError};

/// What was decided about a target.
#[must_use]
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Judgement {
    /// Whether a request may go there.
    pub allowed: bool,
    /// The address that decided: the one that was asked about, one that it carries, or one that a
    /// name resolves to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<IpAddr>,
    /// The IPv4 address within an IPv6 address: the one that decided, else the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedded: Option<Embedded>,
    /// What decided.
    pub reason: Reason,
}

/// What decided.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// The address is in no special block.
    Public,
    /// The name is not special. Where it leads is judged once it is resolved, at each attempt.
    PublicName,
    /// The address is in this special block.
    Row(Row),
    /// The name is in this special domain.
    NameRow(NameRow),
    /// The policy allows the block.
    AllowCidr {
        /// The block.
        block: Cidr,
    },
    /// The policy denies the block.
    DenyCidr {
        /// The block.
        block: Cidr,
    },
    /// The policy allows the name.
    AllowHost {
        /// As the policy has it.
        host: HostPattern,
    },
    /// The policy does not have this scheme.
    Scheme {
        /// The scheme.
        scheme: Scheme,
    },
    /// The policy does not have this port.
    Port {
        /// The port.
        port: u16,
    },
    /// There is no address at all.
    NoAddress,
    /// It is no target, or one that two programs could read in two ways.
    Malformed {
        /// What is wrong, as the rest of a sentence on the target.
        #[serde(rename = "problem", serialize_with = "problem")]
        error: UrlError,
        /// The host to write instead, if that is beyond doubt.
        #[serde(skip_serializing_if = "Option::is_none")]
        instead: Option<String>,
    },
}

fn problem<S: serde::Serializer>(error: &UrlError, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(error.as_str())
}

impl Judgement {
    pub(super) const fn allow(about: Option<IpAddr>, reason: Reason) -> Self {
        Self { allowed: true, about, embedded: None, reason }
    }

    pub(super) const fn deny(about: Option<IpAddr>, reason: Reason) -> Self {
        Self { allowed: false, about, embedded: None, reason }
    }

    /// The reason as a sentence without a full stop: `127.0.0.1 is in 127.0.0.0/8, Loopback (RFC 1122
    /// §3.2.1.3; IANA …)`.
    #[must_use]
    pub fn why(&self) -> String {
        let reason = &self.reason;
        match (self.embedded, self.about) {
            (Some(Embedded { form, address }), Some(about)) if about == IpAddr::V4(address) => {
                format!("{about}, embedded as {}, {reason}", form.as_str())
            }
            (Some(Embedded { form, address }), Some(about)) => {
                format!("{about}, which carries {address} as {}, {reason}", form.as_str())
            }
            (None, Some(about)) => format!("{about} {reason}"),
            (_, None) => format!("it {reason}"),
        }
    }
}

impl fmt::Display for Judgement {
    /// The judgement as the rest of a sentence on the target: `is denied: …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "is {}: {}", if self.allowed { "allowed" } else { "denied" }, self.why())
    }
}

impl fmt::Display for Reason {
    /// The rest of a sentence on the address or the name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Public => f.write_str("is in no special block"),
            Self::PublicName => f.write_str("is no special name"),
            Self::Row(Row { registry, block, name, source, .. }) => {
                write!(f, "is in {block}, {name} ({source}; {})", registry.as_str())
            }
            Self::NameRow(NameRow { registry, domain, source }) => {
                let is = if domain.contains(' ') { "is" } else { "is in the domain" };
                write!(f, "{is} {domain} ({source}; {})", registry.as_str())
            }
            Self::AllowCidr { block } => write!(f, "is in {block}, which allow_cidrs has"),
            Self::DenyCidr { block } => write!(f, "is in {block}, which deny_cidrs has"),
            Self::AllowHost { host } => write!(f, "fits {host}, which allow_hosts has"),
            Self::Scheme { scheme } => {
                write!(f, "has the scheme {}, which schemes does not have", scheme.as_str())
            }
            Self::Port { port } => write!(f, "has the port {port}, which ports does not have"),
            Self::NoAddress => f.write_str("has no address"),
            Self::Malformed { error, instead: None } => error.fmt(f),
            Self::Malformed { error, instead: Some(host) } => write!(f, "{error}; write {host}"),
        }
    }
}
