//! What the API refuses, and what it says then.

use bytes::Bytes;
use hookproof_core::time::Millis;
use hookproof_runtime::host::Host;
use http_body_util::Full;
use hyper::Request;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::running::{HOST, Home, Sender, config, request, soon};

/// That a request is refused with a status, and a problem whose detail has all of `parts`.
async fn check(sender: &Sender, request: Request<Full<Bytes>>, status: u16, parts: &[&str]) {
    let asked = format!("{} {}", request.method(), request.uri());
    let reply = sender.send(request).await;
    assert_eq!(reply.status, status, "{asked}: {}", reply.text());
    let detail = reply.problem();
    for part in parts {
        assert!(detail.contains(part), "{asked}: `{part}` is not in `{detail}`");
    }
}

async fn check_endpoint(sender: &Sender, body: &str, parts: &[&str]) {
    check(sender, request("POST", "/endpoints", body.to_owned()), 400, parts).await;
}

const AN_OBJECT: &str = "give an object such as {\"url\": \"https://example.com/hooks\"}, with \
                         `secrets` and `event_types` if wanted";
const A_URL: &str = "give an absolute URL such as https://example.com/hooks";

#[tokio::test(flavor = "multi_thread")]
async fn field_48_nobody_can_set_a_header_of_the_signature() {
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    for name in ["webhook-signature", "Webhook-Signature", "WEBHOOK-ID", "webhook-timestamp"] {
        let endpoint = json!({ "url": "https://a.example/", "headers": { name: "v1,AAAA" } });
        check_endpoint(&sender, &endpoint.to_string(), &["headers"]).await;
    }
    assert_eq!(sender.get("/endpoints").await.text(), "[]");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_not_well_formed_is_refused() {
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    check_endpoint(&sender, "", &["EOF", AN_OBJECT]).await;
    check_endpoint(&sender, "{\"url\": ", &["EOF", AN_OBJECT]).await;
    check_endpoint(&sender, "[]", &[AN_OBJECT]).await;
    check_endpoint(&sender, "{}", &["missing field `url`", AN_OBJECT]).await;
    let slip = r#"{"url": "https://a.example/", "event_type": "a"}"#;
    check_endpoint(&sender, slip, &["unknown field `event_type`", "`event_types`"]).await;

    let url = |url: &str| json!({ "url": url }).to_string();
    check_endpoint(&sender, &url("/hooks"), &["`/hooks` is not absolute", A_URL]).await;
    check_endpoint(&sender, &url("ftp://a.example/"), &["a scheme other than http", A_URL]).await;
    check_endpoint(&sender, &url("https://a:b@c.example/"), &["user name or password"]).await;
    check_endpoint(&sender, &url("https://a.example/#b"), &["has a fragment", A_URL]).await;

    let secrets = |secrets: &[&str]| json!({ "url": "https://a.example/", "secrets": secrets });
    let none = secrets(&[]).to_string();
    check_endpoint(&sender, &none, &["0 secrets given, but there must be 1 to 8"]).await;
    let tagged = secrets(&["v1,whsec_AAAA"]).to_string();
    check_endpoint(&sender, &tagged, &["a secret starts with `whsec_`; remove the `v1,`"]).await;
    let short = secrets(&["whsec_AAAA"]).to_string();
    check_endpoint(&sender, &short, &["decodes to 3 bytes, but must have 24 to 64"]).await;
    let kinds = json!({ "url": "https://a.example/", "event_types": ["a b"] }).to_string();
    check_endpoint(&sender, &kinds, &["`a b` is not an event type", "as in `order.paid`"]).await;

    assert_eq!(sender.get("/endpoints").await.text(), "[]");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_not_well_formed_is_refused() {
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let as_in = "name the event's type, as in POST /events?type=order.paid";
    for (query, part) in [
        ("", "missing field `type`"),
        ("?type=", "`` is not an event type"),
        ("?type=order..paid", "`order..paid` is not an event type"),
        ("?type=order%20paid", "`order paid` is not an event type"),
        ("?type=a&kind=b", "unknown field `kind`"),
        ("?type=a&type=b", "duplicate field `type`"),
    ] {
        let request = request("POST", &format!("/events{query}"), "{}");
        check(&sender, request, 400, &[part, as_in]).await;
    }

    let with = |name: &'static str, values: &[&[u8]]| {
        let mut request = request("POST", "/events?type=a", "{}");
        for value in values {
            let value = hyper::header::HeaderValue::from_bytes(value).expect("a header value");
            request.headers_mut().append(name, value);
        }
        request
    };
    let key = "`idempotency-key` must be one line of 1 to 255 visible ASCII characters";
    let long = [b'k'; 256];
    for values in [&[&b""[..]] as &[&[u8]], &[b"a", b"b"], &[b"a", b"a"], &[b"\xe9"], &[&long]] {
        check(&sender, with("idempotency-key", values), 400, &[key]).await;
    }
    check(&sender, with("content-type", &[b"\xe9"]), 400, &["`content-type` is not ASCII"]).await;

    assert_eq!(sender.totals().await["events"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_that_makes_no_sense_is_refused() {
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let phases = "there are scheduled, in_flight, delivered, dead, cancelled";
    for (query, parts) in [
        (
            "after=msg_none~ep_none",
            &["`after`: there is no delivery `msg_none~ep_none`"] as &[&str],
        ),
        ("limit=0", &["`limit` must be 1 to 1000"]),
        ("limit=1001", &["`limit` must be 1 to 1000"]),
        ("limit=-1", &["limit", "invalid digit"]),
        ("limit=ten", &["limit", "invalid digit"]),
        ("phase=lost", &["`lost` is not a phase", phases]),
        ("event=a.b", &["an identifier may hold only"]),
        ("endpoint=", &["an identifier may not be empty"]),
        ("colour=red", &["unknown field `colour`", "`phase`"]),
    ] {
        check(&sender, request("GET", &format!("/deliveries?{query}"), ""), 400, parts).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_not_found() {
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    for (method, path, part) in [
        ("GET", "/", "there is no such resource"),
        ("GET", "/event", "there is no such resource"),
        ("POST", "/events/", "there is no such resource"),
        ("GET", "/deliveries/none", "there is no delivery `none`"),
        ("GET", "/deliveries/a%0Ab", "there is no delivery `a\\nb`"),
        ("POST", "/endpoints/none/enable", "there is no endpoint `none`"),
        ("POST", "/endpoints/none/disable", "there is no endpoint `none`"),
    ] {
        check(&sender, request(method, path, ""), 404, &[part]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_is_not_text_is_a_problem_too() {
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    for (method, path) in [
        ("GET", "/deliveries/%FF"),
        ("POST", "/deliveries/%FF/replay"),
        ("POST", "/deliveries/%FF/cancel"),
        ("POST", "/endpoints/%FF/enable"),
        ("POST", "/endpoints/%FF/disable"),
    ] {
        check(&sender, request(method, path, ""), 400, &["UTF-8"]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_a_resource_does_not_have_is_refused_with_those_that_it_has() {
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    for (method, path, allowed) in [
        ("GET", "/events", "POST"),
        ("PUT", "/events?type=a", "POST"),
        ("DELETE", "/endpoints", "GET,HEAD,POST"),
        ("POST", "/totals", "GET,HEAD"),
        ("DELETE", "/deliveries/a", "GET,HEAD"),
        ("GET", "/deliveries/a/replay", "POST"),
    ] {
        let reply = sender.send(request(method, path, "")).await;
        assert_eq!(reply.status, 405, "{method} {path}");
        assert_eq!(reply.problem(), "the `allow` header lists the methods of this resource");
        assert_eq!(reply.header("allow"), Some(allowed), "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_large_is_refused() {
    let home = Home::new();
    let mut config = config(&[]);
    config.body_bytes_max = 1000;
    let sender = home.start(config).await;
    let publish = |bytes: usize| request("POST", "/events?type=a", vec![b'x'; bytes]);
    assert_eq!(sender.send(publish(1000)).await.status, 202);
    check(&sender, publish(1001), 413, &["at most 1000 bytes are accepted"]).await;
    let endpoint = request("POST", "/endpoints", vec![b' '; 64 * 1024 + 1]);
    check(&sender, endpoint, 413, &["at most 65536 bytes are accepted"]).await;
    assert_eq!(sender.totals().await["events"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_say_how_long_it_is_is_counted() {
    let home = Home::new();
    let mut config = config(&[]);
    config.body_bytes_max = 1000;
    let sender = home.start(config).await;
    let chunk = format!("1F4\r\n{}\r\n", "x".repeat(500));
    let reply = raw(&sender, &format!("{CHUNKED}{chunk}{chunk}0\r\n\r\n")).await;
    assert!(reply.starts_with("HTTP/1.1 202 "), "{reply}");
    let reply = raw(&sender, &format!("{CHUNKED}{chunk}{chunk}1\r\nx\r\n0\r\n\r\n")).await;
    assert!(reply.starts_with("HTTP/1.1 413 "), "{reply}");
    assert!(reply.contains("at most 1000 bytes are accepted"), "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_arrive_in_time_is_refused() {
    let home = Home::new();
    let mut config = config(&[]);
    config.body_timeout = Millis::new(100);
    let sender = home.start(config).await;
    let reply = raw(&sender, &format!("{CHUNKED}1\r\nx\r\n")).await;
    assert!(reply.starts_with("HTTP/1.1 408 "), "{reply}");
    assert!(reply.contains("nothing was stored; send the request again"), "{reply}");
    assert_eq!(sender.totals().await["events"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_breaks_off_is_no_event() {
    let home = Home::new();
    let sender = home.start(config(&[])).await;
    let reply = raw(&sender, &format!("{CHUNKED}not a length\r\n")).await;
    assert!(reply.starts_with("HTTP/1.1 400 "), "{reply}");
    let mut stream = HOST.connect(sender.address).await.expect("a connection");
    let cut = "POST /events?type=a HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\ncut";
    stream.write_all(cut.as_bytes()).await.expect("it is written");
    drop(stream);
    // Whatever comes of the cut request has come of it before the sender ends.
    sender.stop().await;
    assert_eq!(home.count("SELECT count(*) FROM events"), 0);
}

const CHUNKED: &str = "POST /events?type=a HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";

/// What the sender answers to these bytes.
async fn raw(sender: &Sender, bytes: &str) -> String {
    let mut stream = HOST.connect(sender.address).await.expect("a connection");
    stream.write_all(bytes.as_bytes()).await.expect("it is written");
    let mut reply = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        match soon("a reply", stream.read(&mut chunk)).await {
            Ok(0) | Err(_) => break,
            Ok(count) => reply.extend_from_slice(&chunk[..count]),
        }
    }
    String::from_utf8(reply).expect("a reply in UTF-8")
}
