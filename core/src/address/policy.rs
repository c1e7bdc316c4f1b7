//! Which addresses, names, ports and schemes are allowed.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::cidr::Cidr;
use super::embedded;
use super::host::{self, Host, HostError, HostPattern};
use super::judgement::{Judgement, Reason};
use super::registry;
use super::url::{self, EndpointUrl, Scheme, UrlError};

/// Which addresses, names, ports and schemes are allowed.
///
/// By default: `http` and `https`, any port, any name that is not special, and every address that the
/// registries call globally reachable. The lists are exceptions from that.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AddressPolicy {
    /// How a connection may be made.
    pub schemes: Vec<Scheme>,
    /// To which ports; all if empty.
    pub ports: Vec<u16>,
    /// Addresses that are allowed although the registries do not call them globally reachable. An
    /// IPv4 address within an IPv6 address still has to be allowed by itself.
    pub allow_cidrs: Vec<Cidr>,
    /// Names that are allowed although they are special, **and wherever they lead**, save for
    /// `deny_cidrs`. Only for names whose DNS is yours: whoever controls it chooses where requests go.
    pub allow_hosts: Vec<HostPattern>,
    /// Addresses that are denied whatever else holds.
    pub deny_cidrs: Vec<Cidr>,
}

impl Default for AddressPolicy {
    fn default() -> Self {
        Self {
            schemes: vec![Scheme::Http, Scheme::Https],
            ports: Vec::new(),
            allow_cidrs: Vec::new(),
            allow_hosts: Vec::new(),
            deny_cidrs: Vec::new(),
        }
    }
}

/// What is wrong with an address policy, and with which field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressPolicyError {
    /// The field.
    pub field: &'static str,
    /// The rest of a sentence on it.
    pub problem: &'static str,
}

impl fmt::Display for AddressPolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.field, self.problem)
    }
}

impl std::error::Error for AddressPolicyError {}

/// This machine's own addresses (RFC 1122 §3.2.1.3, RFC 4291 §2.5.3).
pub const LOOPBACK: [Cidr; 2] =
    [Cidr::v4([127, 0, 0, 0], 8), Cidr::v6([0, 0, 0, 0, 0, 0, 0, 1], 128)];

impl AddressPolicy {
    /// The policy that allows this machine's own addresses and the name `localhost`, too.
    #[must_use]
    pub fn with_loopback(mut self) -> Self {
        self.allow_cidrs.extend(LOOPBACK);
        self.allow_hosts.extend("localhost".parse::<HostPattern>());
        self
    }

    /// Checks what the types cannot.
    ///
    /// # Errors
    ///
    /// [`AddressPolicyError`] with the field that is wrong.
    pub fn validate(&self) -> Result<(), AddressPolicyError> {
        if self.schemes.is_empty() {
            let problem = "is empty, so nothing would ever be sent";
            return Err(AddressPolicyError { field: "schemes", problem });
        }
        if self.ports.contains(&0) {
            let problem = "has 0, which is no port";
            return Err(AddressPolicyError { field: "ports", problem });
        }
        Ok(())
    }

    /// Judges an address, and each IPv4 address that it carries: all must be allowed.
    ///
    /// A block of `deny_cidrs` beats one of `allow_cidrs`, which beats the registries.
    pub fn judge_ip(&self, address: IpAddr) -> Judgement {
        self.judge_address(address, None)
    }

    /// Judges the URL of an endpoint as far as that is possible without looking its name up.
    ///
    /// # Errors
    ///
    /// The judgement that denies it.
    pub fn judge_url(&self, text: &str) -> Result<(EndpointUrl, Judgement), Judgement> {
        let malformed = |error| {
            let instead = || host::instead_of(url::host_of(text)?);
            let is_of_name = error == UrlError::Host(HostError::NotAscii);
            let instead = if is_of_name { instead() } else { None };
            Judgement::deny(None, Reason::Malformed { error, instead })
        };
        let url = EndpointUrl::parse(text).map_err(malformed)?;
        let judgement = self.judge_endpoint(url.scheme, &url.host, url.port);
        if judgement.allowed { Ok((url, judgement)) } else { Err(judgement) }
    }

    /// Judges the parts of a URL, as [`AddressPolicy::judge_url`] does.
    pub fn judge_endpoint(&self, scheme: Scheme, host: &Host, port: u16) -> Judgement {
        if !self.schemes.contains(&scheme) {
            return Judgement::deny(None, Reason::Scheme { scheme });
        }
        if !self.ports.is_empty() && !self.ports.contains(&port) {
            return Judgement::deny(None, Reason::Port { port });
        }
        self.judge_host(host)
    }

    /// Judges a host, a name by itself: where it leads is for [`AddressPolicy::judge_resolved`].
    pub fn judge_host(&self, host: &Host) -> Judgement {
        let name = match host {
            Host::Address(address) => return self.judge_ip(*address),
            Host::Name(name) => name,
        };
        match (self.allowed_host(name), registry::row_of_name(name)) {
            (Some(host), _) => Judgement::allow(None, Reason::AllowHost { host: host.clone() }),
            (None, Some(row)) => Judgement::deny(None, Reason::NameRow(row)),
            (None, None) => Judgement::allow(None, Reason::PublicName),
        }
    }

    /// Judges a host as it stands in a URL, such as `example.com` or `[::1]`; an IPv6 address may go
    /// without brackets.
    pub fn judge_text(&self, text: &str) -> Judgement {
        let host = text.parse::<IpAddr>().map(Host::Address).or_else(|_| text.parse::<Host>());
        match host {
            Ok(host) => self.judge_host(&host),
            Err(error) => {
                let error = if text.contains(char::is_whitespace) {
                    HostError::ForbiddenCharacter
                } else {
                    error
                };
                let instead = host::instead_of(text);
                Judgement::deny(None, Reason::Malformed { error: UrlError::Host(error), instead })
            }
        }
    }

    /// Judges a host and all addresses that it resolved to. One that is denied denies the host: a
    /// resolver that mixes them is not to be trusted with the choice.
    ///
    /// Connect to these addresses and to no others: the next look-up may answer otherwise.
    pub fn judge_resolved(&self, host: &Host, addresses: &[IpAddr]) -> Judgement {
        let by_name = self.judge_host(host);
        if !by_name.allowed {
            return by_name;
        }
        let mut first = None;
        for address in addresses {
            let trusted = match &by_name.reason {
                Reason::AllowHost { host } => Some(host),
                _ => None,
            };
            let judgement = self.judge_address(*address, trusted);
            if !judgement.allowed {
                return judgement;
            }
            first.get_or_insert(judgement);
        }
        first.unwrap_or(Judgement::deny(None, Reason::NoAddress))
    }

    fn allowed_host(&self, name: &str) -> Option<&HostPattern> {
        self.allow_hosts.iter().find(|pattern| pattern.matches(name))
    }

    fn judge_address(&self, address: IpAddr, trusted: Option<&HostPattern>) -> Judgement {
        let mut carried = None;
        if let IpAddr::V6(v6) = address {
            let blocks = self.allow_cidrs.iter().filter(|block| block.contains(address));
            let translator = blocks.map(Cidr::prefix).max();
            for embedded in embedded::in_address(v6, translator) {
                let about = IpAddr::V4(embedded.address);
                let mut judgement = self.judge_one(about, trusted);
                // To a socket, a mapped address is the IPv4 address and nothing else.
                if !judgement.allowed || embedded.form == embedded::Form::Mapped {
                    judgement.embedded = Some(embedded);
                    return judgement;
                }
                carried.get_or_insert(embedded);
            }
        }
        let mut judgement = self.judge_one(address, trusted);
        judgement.embedded = carried;
        judgement
    }

    /// Judges an address without looking into it.
    fn judge_one(&self, address: IpAddr, trusted: Option<&HostPattern>) -> Judgement {
        let find = |blocks: &[Cidr]| blocks.iter().find(|block| block.contains(address)).copied();
        let about = Some(address);
        if let Some(block) = find(&self.deny_cidrs) {
            return Judgement::deny(about, Reason::DenyCidr { block });
        }
        if let Some(host) = trusted {
            return Judgement::allow(about, Reason::AllowHost { host: host.clone() });
        }
        if let Some(block) = find(&self.allow_cidrs) {
            return Judgement::allow(about, Reason::AllowCidr { block });
        }
        match registry::row_of(address) {
            None => Judgement::allow(about, Reason::Public),
            Some(row) if row.globally_reachable == Some(true) => {
                Judgement::allow(about, Reason::Row(row))
            }
            Some(row) => Judgement::deny(about, Reason::Row(row)),
        }
    }
}
