//! Where requests may go: tables, by the field case that each row comes from.

use std::net::IpAddr;

use hookproof_core::address::embedded::{self, Form};
use hookproof_core::address::host::HostError;
use hookproof_core::address::policy::LOOPBACK;
use hookproof_core::address::registry::{self, Registry};
use hookproof_core::address::url::{EndpointUrl, UrlError};
use hookproof_core::address::{AddressPolicy, Cidr, Host, Judgement, Reason};

fn ip(text: &str) -> IpAddr {
    text.parse().expect(text)
}

fn policy(change: impl FnOnce(&mut AddressPolicy)) -> AddressPolicy {
    let mut policy = AddressPolicy::default();
    change(&mut policy);
    policy.validate().expect("it holds together");
    policy
}

fn cidrs(texts: &[&str]) -> Vec<Cidr> {
    texts.iter().map(|text| text.parse().expect(text)).collect()
}

/// The judgement on a URL, whichever way it went.
fn judged(policy: &AddressPolicy, url: &str) -> Judgement {
    policy.judge_url(url).map_or_else(|denied| denied, |(_, allowed)| allowed)
}

/// Under the default policy, the address is denied by the row of this name.
fn check_denied(address: &str, row_name: &str) {
    let judgement = AddressPolicy::default().judge_ip(ip(address));
    assert!(!judgement.allowed, "{address} {judgement}");
    let is_by_row = matches!(judgement.reason, Reason::Row(row) if row.name == row_name);
    assert!(is_by_row, "{address} {judgement}, not by {row_name}");
}

fn check_allowed(address: &str) {
    let judgement = AddressPolicy::default().judge_ip(ip(address));
    assert!(judgement.allowed, "{address} {judgement}");
}

fn check_url_denied(url: &str, reason: impl FnOnce(&Reason) -> bool) {
    let judgement = judged(&AddressPolicy::default(), url);
    assert!(!judgement.allowed && reason(&judgement.reason), "{url} {judgement}");
}

fn check_name_denied(name: &str, domain: &str) {
    check_url_denied(
        &format!("https://{name}/"),
        |reason| matches!(reason, Reason::NameRow(row) if row.domain == domain),
    );
}

fn check_malformed(url: &str) {
    check_url_denied(url, |reason| matches!(reason, Reason::Malformed { .. }));
}

#[test]
fn field_104_a_mapped_address_is_judged_as_the_ipv4_address_that_it_is() {
    check_denied("::ffff:127.0.0.1", "Loopback");
    check_denied("::ffff:169.254.169.254", "Link Local");
    check_denied("::ffff:7f00:1", "Loopback");
    check_denied("::ffff:a00:1", "Private-Use");
    check_allowed("::ffff:8.8.8.8");
    for url in ["http://[::ffff:127.0.0.1]/", "http://[::ffff:169.254.169.254]:80/latest"] {
        let judgement = judged(&AddressPolicy::default(), url);
        let embedded = judgement.embedded.expect("it is mapped");
        assert!(!judgement.allowed && embedded.form == Form::Mapped, "{url} {judgement}");
        assert_eq!(judgement.about, Some(IpAddr::V4(embedded.address)));
    }
}

#[test]
fn field_106_embedded_addresses_are_decoded_and_ranges_are_whole() {
    check_denied("2002:a9fe:a9fe::", "Link Local");
    check_denied("64:ff9b::a9fe:a9fe", "Link Local");
    check_denied("::ffff:0:7f00:1", "Loopback");
    check_denied("fe81::", "Link-Local Unicast");
    check_denied("febf:ffff::1", "Link-Local Unicast");
    check_denied("::", "Unspecified Address");
    check_denied("::7f00:1", "Loopback");
    check_denied("fdff::1", "Unique-Local");
    check_denied("feff::1", "Site-Local Unicast (deprecated)");
    check_denied("2001:4860:4860::200:5efe:a00:1", "Private-Use");
    check_denied("2001:4860:4860::5efe:127.0.0.1", "Loopback");
    check_denied("64:ff9b:1:7f00:0:100::", "Loopback");
    check_denied("64:ff9b:1::7f00:1", "Loopback");
    check_allowed("64:ff9b::808:808");
    check_allowed("2001:4860:4860::5efe:808:808");
}

#[test]
fn field_106_a_public_address_in_a_form_that_is_not_global_is_denied_by_the_form() {
    check_denied("2002:808:808::1", "6to4");
    check_denied("2001:0:808:808:0:0:f7f7:f7f7", "TEREDO");
    check_denied("64:ff9b:1::808:808", "IPv4-IPv6 Translat.");
    check_denied("::808:808", "IPv4-Compatible (deprecated)");
    check_denied("::ffff:0:808:808", "IPv4-translated");
}

#[test]
fn field_108_what_is_not_global_is_denied_and_not_only_what_is_private() {
    check_denied("100.64.0.1", "Shared Address Space");
    check_denied("100.127.255.255", "Shared Address Space");
    check_denied("168.63.129.16", "Azure wire server");
    check_denied("2001:0:0:0:0:0:f5ff:fffe", "\"This host on this network\"");
    check_denied("2001:0:808:808:0:0:80ff:fffe", "Loopback");
    check_denied("0.1.2.3", "\"This network\"");
    check_denied("192.0.0.1", "IPv4 Service Continuity Prefix");
    check_denied("192.0.0.192", "IETF Protocol Assignments");
    check_denied("198.19.255.255", "Benchmarking");
    check_denied("224.0.0.251", "Multicast");
    check_denied("239.255.255.250", "Multicast");
    check_denied("250.0.0.1", "Reserved");
    check_denied("255.255.255.255", "Limited Broadcast");
    check_denied("ff02::1", "Multicast");
    check_denied("2001:db8::1", "Documentation");
    check_denied("3fff:fff::1", "Documentation");
    check_denied("5f00::1", "Segment Routing (SRv6) SIDs");
    check_denied("4000::1", "Reserved by IETF");
    check_denied("fd00:ec2::254", "Unique-Local");
    for next in ["100.63.255.255", "100.128.0.0", "168.63.129.15", "168.63.129.17", "1.0.0.0"] {
        check_allowed(next);
    }
    for next in ["172.15.255.255", "172.32.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255"]
    {
        check_allowed(next);
    }
    check_allowed("2001:200::1");
    check_allowed("2606:4700:4700::1111");
}

#[test]
fn the_most_specific_row_decides() {
    check_allowed("192.0.0.9");
    check_allowed("192.0.0.10");
    check_denied("192.0.0.8", "IPv4 dummy address");
    check_denied("192.0.0.11", "IETF Protocol Assignments");
    check_allowed("2001:1::1");
    check_denied("2001:1::4", "IETF Protocol Assignments");
    check_allowed("2001:20::1");
    check_denied("2001:2::1", "Benchmarking");
    check_denied("::1", "Loopback Address");
}

#[test]
fn field_110_the_addresses_of_each_look_up_are_judged_and_not_the_name() {
    let policy = AddressPolicy::default();
    let host: Host = "rebind.example.com".parse().expect("a name");
    assert!(policy.judge_resolved(&host, &[ip("93.184.215.14")]).allowed);
    assert!(!policy.judge_resolved(&host, &[ip("169.254.169.254")]).allowed);
}

#[test]
fn field_111_one_denied_answer_denies_them_all() {
    let policy = AddressPolicy::default();
    let host: Host = "169.254.169.254.nip.io".parse().expect("a name");
    let judgement = policy.judge_host(&host);
    assert_eq!((judgement.allowed, judgement.reason), (true, Reason::PublicName));
    for answers in [
        &["93.184.215.14", "::1"][..],
        &["::1", "93.184.215.14"],
        &["169.254.169.254"],
        &["93.184.215.14", "2606:4700::1", "10.0.0.1"],
    ] {
        let addresses: Vec<_> = answers.iter().map(|text| ip(text)).collect();
        let judgement = policy.judge_resolved(&host, &addresses);
        assert!(!judgement.allowed, "{answers:?} {judgement}");
    }
    let public = [ip("93.184.215.14"), ip("2606:4700::1")];
    assert!(policy.judge_resolved(&host, &public).allowed);
    let none = policy.judge_resolved(&host, &[]);
    assert_eq!((none.allowed, none.reason), (false, Reason::NoAddress));
}

#[test]
fn field_113_where_a_redirect_points_is_denied_as_a_target_of_its_own() {
    check_url_denied("http://169.254.169.254/", |reason| matches!(reason, Reason::Row(_)));
}

#[test]
fn field_114_user_names_and_what_parsers_read_differently_are_refused() {
    for url in [
        "http://example.com:pass@169.254.169.254/",
        "http://example.com@127.0.0.1/",
        "http://@example.com/",
        "http://example.com\\@127.0.0.1/",
        "http://example.com\t@127.0.0.1/",
        "http:\\\\127.0.0.1/",
        "http:/127.0.0.1/",
        "http:///127.0.0.1/",
        "http://127.0.0.1:80:80/",
        "http://[::1]x/",
        "http://[fe80::1%25eth0]/",
        "http://[127.0.0.1]/",
        "http://::1/",
        "http://exa%6dple.com/",
        "http://example.com,127.0.0.1/",
        "http://example.com;127.0.0.1/",
        "http://example.com#@127.0.0.1/",
        // One program sends these as they are, the next as %7B, %7C and %7D.
        "http://example.com/{tenant}",
        "http://example.com/?a|b",
    ] {
        check_malformed(url);
    }
}

#[test]
fn a_name_may_be_as_long_as_rfc_1035_has_it_and_no_longer() {
    let name = |length: usize| {
        let label = "a".repeat(63);
        let rest = format!("{label}.{label}.{label}.");
        format!("{rest}{}", "a".repeat(length - rest.len()))
    };
    let read = |text: &str| text.parse::<Host>();
    assert_eq!(read(&name(253)), Ok(Host::Name(name(253))));
    assert_eq!(read(&format!("{}.", name(253))), Ok(Host::Name(name(253))), "but for a final dot");
    assert_eq!(read(&name(254)), Err(HostError::TooLong));
    let label = |length: usize| format!("{}.com", "a".repeat(length));
    assert_eq!(read(&label(63)), Ok(Host::Name(label(63))));
    let refused = read(&label(64)).expect_err("a label has 63 bytes at most");
    assert_eq!(refused, HostError::TooLong);
    assert_eq!(refused.to_string(), "has a host that is longer than a name can be");
}

#[test]
fn a_text_that_is_no_url_is_told_apart_from_one_of_another_scheme() {
    let check = |text: &str, expected: UrlError| {
        assert_eq!(EndpointUrl::parse(text), Err(expected), "{text:?}");
        assert!(!expected.to_string().is_empty());
    };
    for text in
        ["", "http://", "http:///a", "http://a.com/b c", "http://a.com/\u{1}", "http://a.com/ü"]
    {
        check(text, UrlError::NotAUrl);
    }
    for text in
        ["example.com", "//example.com", "://a.com", "a_b://a.com", "http", "example.com:80"]
    {
        check(text, UrlError::NotAbsolute);
    }
    for text in ["ftp://a.com", "git+ssh://a.com", "a-b.c1://a.com"] {
        check(text, UrlError::Scheme);
    }
    for text in ["http://a.com:0/", "http://a.com:65536/", "http://a.com:+1/", "http://a.com:x/"] {
        check(text, UrlError::Port);
    }
    check("http://a.com/#top", UrlError::Fragment);
    check("http://user@a.com/", UrlError::UserInfo);
    check("http://a..com/", UrlError::Host(HostError::EmptyLabel));
    let long = |length: usize| format!("http://a.com/{}", "a".repeat(length - 13));
    assert!(EndpointUrl::parse(&long(2048)).is_ok());
    check(&long(2049), UrlError::TooLong);
}

#[test]
fn a_url_is_taken_apart_as_it_stands() {
    let check = |text: &str, port: u16, authority: &str, path: &str| {
        let url = EndpointUrl::parse(text).expect(text);
        assert_eq!((url.port, url.authority.as_str(), url.path.as_str()), (port, authority, path));
    };
    check("http://a.com", 80, "a.com", "/");
    check("HTTPS://A.com?b", 443, "A.com", "/?b");
    check("https://a.com:/b", 443, "a.com:", "/b");
    check("https://a.com:65535/b?c/d", 65_535, "a.com:65535", "/b?c/d");
    check("http://[::1]:1/", 1, "[::1]:1", "/");
    check("http://[::1]", 80, "[::1]", "/");
}

#[test]
fn an_address_in_an_odd_spelling_is_refused_and_not_taken_for_a_name() {
    for host in [
        "127.1",
        "127.0.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "0X7F.1",
        "2130706433",
        "0177.0.0.1",
        "127.0.0.01",
        "127.0.0.1.",
        "1.2.3.4.5",
        "256.1.1.1",
        "a.b.0x",
        "example.123",
        "0",
    ] {
        check_malformed(&format!("http://{host}/"));
    }
    for host in ["１２７.0.0.1", "ⓛocalhost", "例え.jp", "a。b.com", "münchen.de"] {
        check_malformed(&format!("http://{host}/"));
    }
    let judgement = judged(&AddressPolicy::default(), "https://münchen.de/");
    assert!(judgement.to_string().contains("xn--"), "{judgement}");
    assert!(judged(&AddressPolicy::default(), "https://xn--mnchen-3ya.de/").allowed);
    assert!(judged(&AddressPolicy::default(), "https://0x7g.com/").allowed);
}

#[test]
fn field_116_special_names_are_denied_with_and_without_a_final_dot() {
    check_name_denied("localhost", "localhost");
    check_name_denied("localhost.", "localhost");
    check_name_denied("LocalHost", "localhost");
    check_name_denied("db.localhost", "localhost");
    check_name_denied("svc.internal.", "internal");
    check_name_denied("metadata.google.internal", "internal");
    check_name_denied("printer.local", "local");
    check_name_denied("a.test", "test");
    check_name_denied("a.invalid", "invalid");
    check_name_denied("a.example", "example");
    check_name_denied("hidden.onion", "onion");
    check_name_denied("a.alt", "alt");
    check_name_denied("router.home.arpa", "arpa");
    check_name_denied("1.0.0.127.in-addr.arpa", "arpa");
    for domain in ["corp", "home", "intranet", "lan", "private"] {
        check_name_denied(&format!("router.{domain}"), domain);
    }
    check_name_denied("localhost.localdomain", "localdomain");
    check_name_denied("kubernetes", "a name of one label");
    check_malformed("https://localhost../");
    check_malformed("https://.localhost/");
    check_malformed("https://a..b.com/");
    check_malformed("https://./");
    for name in ["notlocalhost.com", "localhost.com", "mylocal.net", "example.com", "a.latest"] {
        assert!(judged(&AddressPolicy::default(), &format!("https://{name}./")).allowed, "{name}");
    }
}

#[test]
fn field_117_the_target_is_judged_whoever_carries_the_connection() {
    // No proxy stands between the judgement and the connection; nor does the judgement take one.
    let policy = policy(|policy| policy.allow_cidrs = cidrs(&["10.0.0.1"]));
    let proxy = ip("10.0.0.1");
    assert!(policy.judge_ip(proxy).allowed);
    assert!(!judged(&policy, "http://10.0.0.2/").allowed);
}

#[test]
fn a_policy_that_cannot_work_is_refused_with_its_field() {
    let check = |change: fn(&mut AddressPolicy), field: &str| {
        let mut policy = AddressPolicy::default();
        change(&mut policy);
        assert_eq!(policy.validate().expect_err(field).field, field);
    };
    check(|policy| policy.schemes.clear(), "schemes");
    check(|policy| policy.ports = vec![443, 0], "ports");
}

#[test]
fn a_list_of_ports_and_schemes_is_kept_to() {
    let text = r#"{"schemes": ["https"], "ports": [443, 8443]}"#;
    let policy: AddressPolicy = serde_json::from_str(text).expect("a policy");
    assert!(judged(&policy, "https://example.com/").allowed);
    assert!(judged(&policy, "https://example.com:8443/").allowed);
    let port = judged(&policy, "https://example.com:6379/");
    assert_eq!((port.allowed, port.reason), (false, Reason::Port { port: 6379 }));
    let scheme = judged(&policy, "http://example.com:443/");
    assert!(!scheme.allowed && matches!(scheme.reason, Reason::Scheme { .. }), "{}", scheme.reason);
    let other = AddressPolicy::default().judge_url("gopher://example.com/").expect_err("no scheme");
    assert_eq!(other.reason, Reason::Malformed { error: UrlError::Scheme, instead: None });
}

#[test]
fn a_block_is_allowed_unless_it_is_denied_and_opens_nothing_else() {
    let policy = policy(|policy| {
        policy.allow_cidrs = cidrs(&["10.0.0.0/8", "2002::/16"]);
        policy.deny_cidrs = cidrs(&["10.1.0.0/16", "93.184.215.14"]);
    });
    let allowed = |text| policy.judge_ip(ip(text)).allowed;
    assert!(allowed("10.0.0.1") && allowed("::ffff:10.0.0.1"));
    assert!(!allowed("10.1.0.1") && !allowed("::ffff:10.1.0.1") && !allowed("2002:a01:1::"));
    assert!(!allowed("93.184.215.14"), "a public address can be denied");
    assert!(!allowed("192.168.0.1"));
    assert!(allowed("2002:808:808::1") && allowed("2002:a00:1::"));
    assert!(!allowed("2002:7f00:1::"), "what a block carries is judged by itself");
}

#[test]
fn an_allowed_host_may_lead_anywhere_but_to_a_denied_block() {
    let policy = policy(|policy| {
        policy.allow_hosts = vec!["Receiver.".parse().expect("a name")];
        policy.allow_hosts.push("*.corp.internal".parse().expect("names"));
        policy.deny_cidrs = cidrs(&["169.254.0.0/16"]);
    });
    let resolved = |name: &str, address| {
        policy.judge_resolved(&name.parse().expect("a host"), &[ip(address)]).allowed
    };
    assert!(resolved("receiver", "10.0.0.1") && resolved("hooks.corp.internal", "127.0.0.1"));
    assert!(!resolved("receiver", "169.254.169.254"));
    assert!(!resolved("receiver", "::ffff:169.254.169.254"));
    assert!(!resolved("corp.internal", "93.184.215.14"), "`*.` is what is below");
    assert!(!resolved("xcorp.internal", "93.184.215.14"));
    assert!(!resolved("other.example.com", "10.0.0.1"), "the host opens no address for others");
    assert!(!policy.judge_ip(ip("10.0.0.1")).allowed);
}

#[test]
fn loopback_can_be_allowed_at_once_and_nothing_else_is() {
    let policy = AddressPolicy::default().with_loopback();
    for url in ["http://localhost:1/", "http://127.0.0.1/", "http://127.9.9.9/", "http://[::1]/"] {
        assert!(judged(&policy, url).allowed, "{url}");
    }
    for url in ["http://10.0.0.1/", "http://[::2]/", "http://db.localhost/", "http://0.0.0.0/"] {
        assert!(!judged(&policy, url).allowed, "{url}");
    }
    assert_eq!(LOOPBACK.map(|block| block.to_string()), ["127.0.0.0/8", "::1/128"]);
}

#[test]
fn a_written_policy_is_read_back_and_a_slip_in_it_is_told() {
    let policy = policy(|policy| {
        policy.allow_cidrs = cidrs(&["10.0.0.0/8", "::1"]);
        policy.allow_hosts = vec!["*.internal".parse().expect("names")];
        policy.ports = vec![443];
    });
    let written = serde_json::to_string(&policy).expect("it can be written");
    assert_eq!(serde_json::from_str::<AddressPolicy>(&written).expect("it can be read"), policy);
    let check = |text: &str, part: &str| {
        let error = serde_json::from_str::<AddressPolicy>(text).expect_err(text).to_string();
        assert!(error.contains(part), "{error}");
    };
    check(r#"{"alow_cidrs": []}"#, "unknown field");
    check(r#"{"allow_cidrs": ["10.0.0.1/8"]}"#, "the block is 10.0.0.0/8");
    check(r#"{"allow_cidrs": ["10.0.0.0/33"]}"#, "no block of addresses");
    check(r#"{"allow_cidrs": ["10.0.0.0/+8"]}"#, "no block of addresses");
    check(r#"{"deny_cidrs": ["::ffff:10.0.0.0/104"]}"#, "write it as IPv4");
    check(r#"{"allow_hosts": ["10.0.0.1"]}"#, "an address is allowed by a block");
    check(r#"{"allow_hosts": ["*"]}"#, "no host name");
    check(r#"{"schemes": ["ftp"]}"#, "unknown variant");
}

#[test]
fn a_judgement_says_by_which_row_of_which_registry() {
    let said = |text: &str| AddressPolicy::default().judge_ip(ip(text)).to_string();
    assert_eq!(
        said("127.0.0.1"),
        "is denied: 127.0.0.1 is in 127.0.0.0/8, Loopback (RFC 1122 §3.2.1.3; IANA IPv4 \
         Special-Purpose Address Registry)"
    );
    assert_eq!(
        said("2002:a9fe:a9fe::"),
        "is denied: 169.254.169.254, embedded as 6to4, is in 169.254.0.0/16, Link Local (RFC 3927; \
         IANA IPv4 Special-Purpose Address Registry)"
    );
    assert_eq!(said("8.8.8.8"), "is allowed: 8.8.8.8 is in no special block");
}

#[test]
fn each_row_stands_once_in_the_table_of_its_family() {
    for (rows, is_ipv4) in [(&registry::IPV4[..], true), (&registry::IPV6[..], false)] {
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(row.block.first().is_ipv4(), is_ipv4, "{row:?}");
            assert!(rows[..at].iter().all(|other| other.block != row.block), "{row:?}");
            assert!(!row.name.is_empty() && !row.source.is_empty());
        }
    }
    let special = |rows: &[registry::Row], of| rows.iter().filter(|r| r.registry == of).count();
    assert_eq!(special(&registry::IPV4, Registry::Ipv4Special), 26);
    assert_eq!(special(&registry::IPV6, Registry::Ipv6Special), 25);
}

#[test]
fn a_local_use_translator_may_lay_an_address_out_in_four_ways() {
    let check = |text: &str, expected: &[&str]| {
        let IpAddr::V6(v6) = ip(text) else { panic!("{text}") };
        let found: Vec<_> = embedded::in_address(v6, None).map(|e| e.address.to_string()).collect();
        for address in expected {
            assert!(found.iter().any(|found| found == address), "{text}: {found:?}");
        }
    };
    // The layouts are those of the table in RFC 6052 §2.4, under another prefix.
    check("64:ff9b:1:c000:2:2100::", &["192.0.2.33"]);
    check("64:ff9b:1:c0:0:221::", &["192.0.2.33"]);
    check("64:ff9b:1:0:c0:2:2100::", &["192.0.2.33"]);
    check("64:ff9b:1::192.0.2.33", &["192.0.2.33"]);
}
