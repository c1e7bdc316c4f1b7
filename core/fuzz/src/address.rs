//! URLs, hosts, addresses, blocks of them and patterns of names: all from the same text.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hookproof_core::address::{AddressPolicy, Cidr, EndpointUrl, Host, HostPattern};

/// Texts of each kind, and some that are near to one.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "https://hooks.example.com:8443/in?a=1&b=%2F",
        "http://127.0.0.1/latest",
        "HTTP://User.Example.COM.:080?x",
        "http://[::ffff:169.254.169.254]:80/",
        "https://[2001:db8::1]",
        "https://xn--mnchen-3ya.de/a_b/~c",
        "https://0x7f.example/",
        "1.2.3.4",
        "2002:a9fe:a9fe::",
        "64:ff9b::8.8.8.8",
        "2001:0:808:808::f7f7:f7f7",
        "fe80::1",
        "localhost.",
        "db.corp.internal",
        "*.corp.internal",
        "10.0.0.0/8",
        "fd00::/8",
        "2001:db8::/33",
    ];
    let addresses = [
        "::ffff:8.8.8.8",
        "::ffff:127.0.0.1",
        "64:ff9b::8.8.8.8",
        "64:ff9b::10.0.0.1",
        "2002:a9fe:a9fe::1",
        "2a00::5efe:8.8.8.8",
        "2a00::200:5efe:192.168.0.1",
        "2606:4700:4700::1111",
    ];
    let as_it_is = |text: &str| text.parse::<Ipv6Addr>().expect(text).octets().to_vec();
    let texts = texts.iter().map(|text| text.as_bytes().to_vec());
    texts.chain(addresses.into_iter().map(as_it_is)).collect()
}

/// Holds the laws; whether the text was anything at all.
pub fn check(bytes: &[u8]) -> bool {
    if let Some(address) = bytes.first_chunk::<16>() {
        address_as_it_is(Ipv6Addr::from(*address));
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return bytes.len() == 16 };
    let block = text.parse::<Cidr>().is_ok_and(|block| is_same(&block.to_string(), &block));
    if let Ok(block) = text.parse::<Cidr>() {
        assert!(block.contains(block.first()) && block.contains(block.last()), "{block}");
    }
    let pattern = text.parse::<HostPattern>();
    let pattern = pattern.is_ok_and(|pattern| is_same(&pattern.to_string(), &pattern));
    let host = text.parse::<Host>().is_ok_and(|host| is_same(&host.to_string(), &host));
    let judgement = AddressPolicy::default().judge_text(text);
    assert!(
        judgement.to_string().starts_with("is "),
        "a judgement ends the sentence on its target"
    );
    url(text) || block || pattern || host || text.parse::<IpAddr>().is_ok() || bytes.len() == 16
}

/// What is printed reads back as the same.
fn is_same<T: std::str::FromStr + PartialEq>(printed: &str, value: &T) -> bool {
    assert!(printed.parse::<T>().is_ok_and(|again| again == *value), "{printed}");
    true
}

/// What is allowed is none of what the standard library knows to be special, nor is it allowed in
/// one spelling and denied in another.
fn address_as_it_is(address: Ipv6Addr) {
    let policy = AddressPolicy::default();
    let judgement = policy.judge_ip(address.into());
    if let Some(v4) = address.to_ipv4_mapped() {
        assert_eq!(policy.judge_ip(v4.into()).allowed, judgement.allowed, "{address}");
    }
    if judgement.allowed {
        assert!(!is_special(address.to_canonical()), "{address} {judgement}");
        let carried = carried(address.octets());
        assert!(carried.is_none_or(|carried| !is_special(carried.into())), "{address} {judgement}");
    }
    let spelt = format!("https://[{address}]/");
    assert_eq!(policy.judge_url(&spelt).is_ok(), judgement.allowed, "{spelt}");
    let resolved = policy.judge_resolved(&Host::Name("example.com".to_owned()), &[address.into()]);
    assert_eq!(resolved.allowed, judgement.allowed, "{address} as an answer");
}

/// The IPv4 address that translators and tunnels see in an address, but for the forms that are never
/// allowed anyway.
fn carried(octets: [u8; 16]) -> Option<Ipv4Addr> {
    let is_last = matches!(
        octets,
        [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, ..]
            | [_, _, _, _, _, _, _, _, 0 | 2, 0, 0x5e, 0xfe, ..]
    );
    let [.., a, b, c, d] = octets;
    is_last.then(|| Ipv4Addr::new(a, b, c, d))
}

fn is_special(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_multicast()
                || v4.is_broadcast()
                || v4.is_documentation()
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
                || v6.is_multicast()
        }
    }
}

/// A URL is read in one way by us and by those who come after.
fn url(text: &str) -> bool {
    let judged = AddressPolicy::default().judge_url(text);
    let Ok(url) = EndpointUrl::parse(text) else {
        assert!(judged.is_err_and(|denied| !denied.allowed), "{text}");
        return false;
    };
    let EndpointUrl { scheme, host, port, authority, path } = &url;
    let again = EndpointUrl::parse(&format!("{}://{authority}{path}", scheme.as_str()));
    assert_eq!(again.as_ref(), Ok(&url), "{text}");
    is_same(&host.to_string(), host);
    let is_line = |part: &str| part.bytes().all(|byte| byte.is_ascii_graphic());
    assert!(is_line(authority) && is_line(path) && !authority.contains('@'), "{text}");
    assert!(path.starts_with('/') && *port > 0, "{text}");
    match (judged, host) {
        (Ok((_, judgement)), Host::Address(address)) => {
            assert!(judgement.allowed && !is_special(address.to_canonical()), "{text}");
        }
        (Ok(_), Host::Name(name)) => {
            assert!(name != "localhost" && !name.ends_with(".localhost"), "{text}");
        }
        (Err(denied), _) => assert!(!denied.allowed, "{text}"),
    }
    by_another_parser(text, &url);
    true
}

/// What writes the request, and what follows the standard of browsers, find the same host and port
/// wherever they find any.
fn by_another_parser(text: &str, url: &EndpointUrl) {
    if let Ok(theirs) = text.parse::<http::Uri>()
        && let Some(host) = theirs.host()
    {
        assert_eq!(host.parse::<Host>().as_ref(), Ok(&url.host), "{text}");
        assert!(theirs.port_u16().is_none_or(|port| port == url.port), "{text}");
    }
    if let Ok(theirs) = text.parse::<url::Url>() {
        assert_eq!(theirs.scheme(), url.scheme.as_str(), "{text}");
        let host = theirs.host_str().and_then(|host| host.parse::<Host>().ok());
        assert_eq!(host.as_ref(), Some(&url.host), "{text}");
        assert_eq!(theirs.port_or_known_default(), Some(url.port), "{text}");
        assert!(theirs.username().is_empty() && theirs.password().is_none(), "{text}");
    }
}
