//! Which names are host names, and how internationalised ones are written.

use hookproof_core::address::host::{Host, HostError, instead_of};
use hookproof_core::address::{AddressPolicy, HostPattern};
use proptest::prelude::*;

use crate::given::laws;

fn check(name: &str, expected: Result<&str, HostError>) {
    let read = name.parse::<Host>();
    assert_eq!(read, expected.map(|name| Host::Name(name.to_owned())), "{name}");
}

#[test]
fn a_label_begins_and_ends_with_a_letter_a_digit_or_an_underscore() {
    for name in ["-a.com", "a-.com", "a.-", "a.com-.", "-.com", "a.b-", "xn--.com", "xn--a-.com"] {
        check(name, Err(HostError::OuterHyphen));
    }
    for name in ["a-b.com", "a--b.com", "_dmarc.a.com", "my_app.a.com", "3.a.com", "a.c0m"] {
        check(name, Ok(name));
    }
    // In use, although RFC 5890 reserves them.
    check("r3---sn-4g5e.example.com", Ok("r3---sn-4g5e.example.com"));
}

#[test]
fn what_begins_with_xn_is_an_a_label_in_its_one_spelling() {
    for name in [
        "xn--bcher-kva.example",
        "xn--mnchen-3ya.de",
        "xn--fa-hia.de",
        "xn--r8jz45g.jp",
        "xn--p1ai",
        "a.xn--fiqs8s",
        "xn--ls8h.la",
        "xn--mgbh0fb.xn--kgbechtv",
    ] {
        check(name, Ok(name));
    }
    check("XN--BCHER-KVA.Example", Ok("xn--bcher-kva.example"));
    for name in [
        // No Punycode: a digit that is none, a number that is cut off or too large.
        "xn--a_b.com",
        "xn--bcher-kv.com",
        "xn--99999999.com",
        // Nothing but ASCII inside, and upper case that no A-label has.
        "xn--abc-.com",
        "xn--a.com",
        "xn--bcher-2pa.com",
        // Written otherwise by everybody who encodes it.
        "xn---tda.com",
    ] {
        let read = name.parse::<Host>();
        let is_refused = matches!(read, Err(HostError::NotALabel | HostError::OuterHyphen));
        assert!(is_refused, "{name} {read:?}");
    }
}

#[test]
fn a_name_that_is_not_ascii_is_refused_with_the_a_labels_to_write() {
    let told = |target: &str| {
        let policy = AddressPolicy::default();
        let judgement = match policy.judge_url(target) {
            Ok((_, judgement)) | Err(judgement) => judgement,
        };
        assert!(!judgement.allowed, "{target}");
        judgement.why()
    };
    let check = |host: &str, expected: &str| {
        for target in [format!("https://{host}/in?a"), format!("http://{host}:8080")] {
            let why = told(&target);
            assert!(why.ends_with(&format!("xn--…; write {expected}")), "{why}");
        }
        let judgement = AddressPolicy::default().judge_text(host);
        assert!(judgement.why().ends_with(&format!("; write {expected}")), "{judgement}");
    };
    check("b\u{fc}cher.example", "xn--bcher-kva.example");
    check("B\u{dc}cher.Example", "xn--bcher-kva.example");
    check("fa\u{df}.de", "xn--fa-hia.de");
    check("\u{440}\u{444}", "xn--p1ai");
    check("\u{4f8b}\u{3048}.jp", "xn--r8jz45g.jp");
    // What is mapped, joined or read from the right differs between programs: nothing is proposed.
    for host in [
        "\u{ff11}27.0.0.1",
        "\u{24db}ocalhost",
        "a\u{3002}b.com",
        "bu\u{308}cher.de",
        "\u{130}.com",
        "\u{17f}.com",
        "\u{5d0}.com",
        "-\u{fc}.com",
        "ab--\u{fc}.com",
        "\u{fc}..com",
    ] {
        assert_eq!(instead_of(host), None, "{host}");
        let why = told(&format!("https://{host}/"));
        assert!(why.ends_with("xn--\u{2026}"), "{why}");
    }
    assert_eq!(instead_of("plain.com"), None);
}

#[test]
fn a_pattern_is_held_to_the_same_names() {
    for wrong in ["-a.com", "*.a-.com", "xn--a.com", "*.xn--abc-.com", "m\u{fc}nchen.de"] {
        assert!(wrong.parse::<HostPattern>().is_err(), "{wrong}");
    }
    let error = "*.m\u{fc}nchen.de".parse::<HostPattern>().expect_err("it is not ASCII");
    assert!(error.to_string().ends_with("is no host name; write *.xn--mnchen-3ya.de"), "{error}");
    assert!("*.xn--mnchen-3ya.de".parse::<HostPattern>().is_ok());
}

/// Labels of letters that are written in one way only, with plain ones among them.
fn label() -> impl Strategy<Value = String> {
    "[a-z0-9\u{e0}-\u{f6}\u{f8}-\u{ff}\u{100}-\u{12f}\u{391}-\u{3a1}\u{3b1}-\u{3c9}\u{410}-\u{44f}\
     \u{3041}-\u{3096}\u{4e00}-\u{4fff}\u{ac00}-\u{ad00}]{1,14}"
}

proptest! {
    #![proptest_config(laws())]

    #[test]
    fn the_a_labels_are_those_of_the_url_standard(labels in prop::collection::vec(label(), 1..4)) {
        let name = format!("{}.example", labels.join("."));
        let theirs = url::Host::parse(&name).expect("it is valid").to_string();
        if let Some(ours) = instead_of(&name) {
            prop_assert_eq!(&ours, &theirs);
        } else {
            prop_assert!(name.is_ascii(), "{}", name);
        }
        // And they are names here, in the same spelling.
        prop_assert_eq!(theirs.parse::<Host>().ok(), Some(Host::Name(theirs)));
    }

    #[test]
    fn what_looks_like_an_a_label_never_ends_the_judge(code in "[a-z0-9-]{0,59}") {
        let name = format!("xn--{code}.com");
        if let Ok(host) = name.parse::<Host>() {
            prop_assert_eq!(host, Host::Name(name));
        }
    }

    #[test]
    fn any_label_that_others_take_is_taken(name in "(xn--)?[a-z0-9]{1,12}\\.com") {
        if let Ok(url::Host::Domain(theirs)) = url::Host::parse(&name) {
            prop_assert_eq!(name.parse::<Host>().ok(), Some(Host::Name(theirs)), "{}", name);
        }
    }
}
