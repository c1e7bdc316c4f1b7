//! Which URLs can be endpoints, and what is in them.

use hookproof_sender::url::Target;

fn target(is_tls: bool, host: &str, port: u16, authority: &str, path: &str) -> Target {
    Target {
        is_tls,
        host: host.parse().expect("a host"),
        port,
        authority: authority.to_owned(),
        path: path.to_owned(),
    }
}

fn check(url: &str, expected: &Target) {
    assert_eq!(Target::parse(url).as_ref(), Ok(expected), "{url}");
}

fn check_refused(url: &str, why: &str) {
    let error = Target::parse(url).expect_err(url).to_string();
    let expected = format!("`{url}` {why}; give an absolute URL such as https://example.com/hooks");
    assert_eq!(error, expected);
}

#[test]
fn a_url_is_taken_apart() {
    check("https://example.com", &target(true, "example.com", 443, "example.com", "/"));
    check("http://example.com", &target(false, "example.com", 80, "example.com", "/"));
    check("https://example.com/", &target(true, "example.com", 443, "example.com", "/"));
    check(
        "https://a.example/b/c?d=e&f",
        &target(true, "a.example", 443, "a.example", "/b/c?d=e&f"),
    );
    check("https://a.example?d=e", &target(true, "a.example", 443, "a.example", "/?d=e"));
    check("http://a.example:8080/b", &target(false, "a.example", 8080, "a.example:8080", "/b"));
    check("http://a.example:65535/", &target(false, "a.example", 65535, "a.example:65535", "/"));
    check("https://a.example/%20%2F..", &target(true, "a.example", 443, "a.example", "/%20%2F.."));
    check("HTTPS://a.example/b", &target(true, "a.example", 443, "a.example", "/b"));
    check("http://127.0.0.1:1/", &target(false, "127.0.0.1", 1, "127.0.0.1:1", "/"));
    check("http://127.0.0.1:/", &target(false, "127.0.0.1", 80, "127.0.0.1:", "/"));
    check("https://[::1]:8443/a", &target(true, "[::1]", 8443, "[::1]:8443", "/a"));
    check("https://[2001:db8::1]/", &target(true, "[2001:db8::1]", 443, "[2001:db8::1]", "/"));
}

#[test]
fn a_url_that_cannot_be_an_endpoint_is_refused_with_the_reason() {
    check_refused("", "is not a URL");
    check_refused("https://", "is not a URL");
    check_refused("https:///path", "is not a URL");
    check_refused("https://exa mple.com/", "is not a URL");
    check_refused("https://example.com/a b", "is not a URL");
    check_refused("https://[::1/", "is not a URL");
    check_refused("mailto:a@b.example", "is not absolute");
    check_refused("/hooks", "is not absolute");
    check_refused("//example.com/hooks", "is not absolute");
    check_refused("example.com", "is not absolute");
    check_refused("example.com:443", "is not absolute");
    check_refused("ftp://example.com/hooks", "has a scheme other than http and https");
    check_refused("ws://example.com/hooks", "has a scheme other than http and https");
    check_refused("file://example.com/etc/passwd", "has a scheme other than http and https");
    check_refused("https://user@example.com/", "carries a user name or password");
    check_refused("https://user:secret@example.com/", "carries a user name or password");
    check_refused("https://@example.com/", "carries a user name or password");
    check_refused("https://example.com/#top", "has a fragment, which is never sent");
    check_refused("https://example.com#", "has a fragment, which is never sent");
    check_refused("https://:443/", "names no host");
    check_refused(
        "https://127.1/",
        "has a host that ends in a number and is no address in its \
        usual spelling, four decimal numbers",
    );
    check_refused("https://exa%6dple.com/", "has a host with a character that no name has");
    check_refused("https://example.com/\u{e9}", "is not a URL");
}

#[test]
fn a_port_that_cannot_be_one_is_refused_and_not_replaced() {
    check_refused("https://example.com:65536/", "has a port that is no number from 1 to 65535");
    check_refused("https://example.com:99999/", "has a port that is no number from 1 to 65535");
    check_refused("http://[::1]:65536/", "has a port that is no number from 1 to 65535");
    check_refused("http://example.com:+80/", "has a port that is no number from 1 to 65535");
    check_refused("http://example.com:0/", "has a port that is no number from 1 to 65535");
}

#[test]
fn a_url_has_at_most_2048_bytes() {
    let longest = format!("https://example.com/{}", "x".repeat(2028));
    assert_eq!(longest.len(), 2048);
    assert!(Target::parse(&longest).is_ok());
    let error = Target::parse(&format!("{longest}x")).expect_err("it is too long").to_string();
    assert!(error.contains(" is longer than 2,048 bytes; give "), "{error}");
    assert!(error.len() < 400, "the message does not repeat all of it: {error}");
}

#[test]
fn an_error_shows_control_characters_escaped() {
    let error = Target::parse("https://example.com/\r\nx: y").expect_err("it is refused");
    assert!(error.to_string().starts_with("`https://example.com/\\r\\nx: y` "), "{error}");
}
