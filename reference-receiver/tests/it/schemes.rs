//! Each signature scheme of the field, received: accepted once, known again, and refused when anything is
//! wrong.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hookproof_core::scheme::{Algorithm, Key, KeyForm, Message, Part, Place, Scheme, known};
use hookproof_core::time::Timestamp;
use hookproof_receiver::config::{ReceiverConfig, Source};
use hookproof_receiver::store::InboxStore as _;
use hookproof_receiver::verifier::Verifier;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use http_body_util::Full;
use hyper::Request;

use crate::given::{Disk, start, text};

/// Where senders call the sources, by name.
const BASE: &str = "https://example.com/hooks";

/// A secret in this form, one of several: what signs, and what a receiver knows of it.
fn secret(form: KeyForm, number: u8) -> (String, String) {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let bytes = [number; 32];
    let both = |text: String| (text.clone(), text);
    let private = format!("whsk_{}", STANDARD.encode(bytes));
    let public = || {
        let key = Key::parse(KeyForm::Ed25519, &private).expect("a private key");
        key.public_text().expect("it has a public one")
    };
    match form {
        KeyForm::Whsec => both(format!("whsec_{}", STANDARD.encode(bytes))),
        KeyForm::Literal => both(format!("It's a secret to everybody {number}")),
        KeyForm::Hex => both(hex(&bytes)),
        KeyForm::Base64 | KeyForm::P256Spki => both(STANDARD.encode(bytes)),
        KeyForm::Ed25519 => (private.clone(), public()),
        KeyForm::Ed25519Hex => {
            let public = STANDARD.decode(&public()["whpk_".len()..]).expect("base64");
            (format!("{}{}", hex(&bytes), hex(&public)), hex(&public))
        }
    }
}

/// The source of this name as somebody would write it in a file.
fn source(name: &str, scheme: &Scheme, secrets: &[&str]) -> Source {
    let secrets = secrets.iter().map(|secret| format!("{secret:?}")).collect::<Vec<_>>().join(", ");
    let event_id = match Verifier::usual_event_id(scheme) {
        Some(_) => "",
        None => "event_id = { json = \"/id\" }\n",
    };
    let signs_url = [Part::Url, Part::UrlDecoded].iter().any(|part| scheme.signed.has(part));
    let url = if signs_url { format!("url = \"{BASE}/{name}\"\n") } else { String::new() };
    let scheme = &scheme.name;
    let written =
        format!("id = \"{name}\"\nscheme = \"{scheme}\"\nsecrets = [{secrets}]\n{event_id}{url}");
    toml::from_str(&written).expect(&written)
}

/// A request that a sender of this scheme makes to a source, with the id of its event wherever schemes have
/// one.
fn request(
    scheme: &Scheme,
    secret: &str,
    id: &str,
    change: impl Fn(String) -> String,
) -> Request<Full<Bytes>> {
    let now = TokioHost.wall();
    let body = format!(
        "{{\"id\":\"{id}\",\"event_id\":\"{id}\",\"type\":\"order.paid\",\"webhookTimestamp\":{}}}",
        now.as_millis()
    );
    let url = scheme.url_to_call(&format!("{BASE}/shop"), body.as_bytes(), false);
    let message = Message { id, at: now, method: "POST", url: &url, body: body.as_bytes() };
    let key = Key::parse(scheme.key, secret).expect("a key");
    let signed = scheme.sign(&[key], &message).expect("it signs");
    let mut body = body;
    if !signed.fields.is_empty() {
        let mut whole: serde_json::Value = serde_json::from_str(&body).expect("JSON");
        for (pointer, value) in &signed.fields {
            let name = pointer.strip_prefix("/signature/").expect("only Mailgun signs fields");
            whole["signature"][name] = value.as_str().into();
        }
        body = whole.to_string();
    }
    let query = url.split_once('?').map_or(String::new(), |(_, query)| format!("?{query}"));
    let mut request = Request::post(format!("/hooks/shop{query}"));
    for (name, value) in &signed.headers {
        request = request.header(name, value);
    }
    if let Some(Place { header: Some(name), .. }) = Verifier::usual_event_id(scheme)
        && !signed.headers.iter().any(|(known, _)| *known == name)
    {
        request = request.header(name, id);
    }
    request.body(Full::from(change(body))).expect("a request")
}

/// All schemes that can sign: SendGrid's is only verified, by a vector of its own.
fn signing() -> Vec<Scheme> {
    known::all().into_iter().filter(|scheme| scheme.algorithm != Algorithm::EcdsaP256).collect()
}

#[tokio::test]
async fn what_each_scheme_signs_is_accepted_once_and_known_again() {
    for scheme in signing() {
        let name = &scheme.name;
        let (signs, verifies) = secret(scheme.key, 7);
        let disk = Disk::new();
        let config = ReceiverConfig::new(vec![source("shop", &scheme, &[&verifies])]);
        let receiver = start(TokioHost, disk.open().await, config).await;
        let same = |body: String| body;
        let first = receiver.send(request(&scheme, &signs, "evt_1", same)).await;
        assert_eq!(first.status, 202, "{name}: {}", text(&first));
        let again = receiver.send(request(&scheme, &signs, "evt_1", same)).await;
        assert_eq!(again.status, 200, "{name}: {}", text(&again));
        let other = receiver.send(request(&scheme, &signs, "evt_2", same)).await;
        assert_eq!(other.status, 202, "{name}: {}", text(&other));
        receiver.until(|totals| totals.effects == 2).await;
        assert_eq!(receiver.effects("evt_1").await, 1, "{name}");
        receiver.stop().await;
    }
}

#[tokio::test]
async fn what_was_signed_by_another_secret_or_changed_is_refused_and_stored_nowhere() {
    for scheme in signing() {
        let name = &scheme.name;
        let ((signs, verifies), (wrong, _)) = (secret(scheme.key, 7), secret(scheme.key, 8));
        let disk = Disk::new();
        let config = ReceiverConfig::new(vec![source("shop", &scheme, &[&verifies])]);
        let receiver = start(TokioHost, disk.open().await, config).await;
        let same = |body: String| body;
        let forged = receiver.send(request(&scheme, &wrong, "evt_1", same)).await;
        assert_eq!(forged.status, 401, "{name}");
        let signs_body = scheme.signed.has(&Part::Body) || scheme.body_hash_query.is_some();
        if signs_body {
            // One bit of one letter.
            let change = |body: String| body.replace("order.paid", "order.qaid");
            let changed = receiver.send(request(&scheme, &signs, "evt_1", change)).await;
            assert_eq!(changed.status, 401, "{name}");
            assert_eq!(
                text(&changed),
                text(&forged),
                "{name}: the answer tells which check failed"
            );
        }
        let mut bare = request(&scheme, &signs, "evt_1", same);
        bare.headers_mut().clear();
        // Mailgun signs in the body.
        if scheme.signature.header.is_some() {
            assert_eq!(receiver.send(bare).await.status, 401, "{name}");
        }
        assert_eq!(receiver.store.totals().await.unwrap().events, 0, "{name}");
        receiver.stop().await;
    }
}

#[tokio::test]
async fn what_is_old_is_refused_where_the_scheme_signs_the_time() {
    for scheme in signing().into_iter().filter(|scheme| scheme.tolerance.is_some()) {
        let (signs, verifies) = secret(scheme.key, 7);
        let source = source("shop", &scheme, &[&verifies]);
        let key = Key::parse(scheme.key, &signs).unwrap();
        let tolerance = source.verifier.tolerance.expect("it has one");
        let now = Timestamp::from_secs(1_767_225_600);
        for (at, is_taken) in [
            (now.minus(tolerance), true),
            (now.plus(tolerance), true),
            (now.minus(tolerance).minus(hookproof_core::time::Millis::from_secs(1)), false),
            (now.plus(tolerance).plus(hookproof_core::time::Millis::from_secs(1)), false),
        ] {
            let body = format!("{{\"id\":\"evt_1\",\"webhookTimestamp\":{}}}", at.as_millis());
            let url = format!("{BASE}/shop");
            let message =
                Message { id: "evt_1", at, method: "POST", url: &url, body: body.as_bytes() };
            let signed = scheme.sign(std::slice::from_ref(&key), &message).unwrap();
            let headers: Vec<_> = signed
                .headers
                .into_iter()
                .map(|(name, value)| (name, value.into_bytes()))
                .collect();
            let request = hookproof_core::scheme::Request {
                method: "POST",
                url: &url,
                headers: &headers,
                body: body.as_bytes(),
            };
            let verifier = &source.verifier;
            let found = verifier.scheme.verify(&verifier.keys, &request, now, verifier.tolerance);
            assert_eq!(found.is_ok(), is_taken, "{}: {found:?}", scheme.name);
        }
    }
}

#[tokio::test]
async fn in_a_rotation_both_secrets_are_good_and_two_sources_have_each_their_own_scheme() {
    let github = known::find("github").unwrap();
    let stripe = known::find("stripe").unwrap();
    let [(new, _), (old, _), (other, _)] = [1, 2, 3].map(|number| secret(github.key, number));
    let mut stripe_source = source("shop", &stripe, &[&other]);
    let github_source = source("shop", &github, &[&new, &old]);
    stripe_source.id = crate::given::source_id("bank");
    let disk = Disk::new();
    let config = ReceiverConfig::new(vec![github_source, stripe_source]);
    let receiver = start(TokioHost, disk.open().await, config).await;
    let same = |body: String| body;
    for (secret, id, status) in [(&new, "evt_1", 202), (&old, "evt_2", 202), (&other, "evt_3", 401)]
    {
        let answer = receiver.send(request(&github, secret, id, same)).await;
        assert_eq!(answer.status, status, "{id}");
    }
    let mut to_bank = request(&stripe, &other, "evt_1", same);
    *to_bank.uri_mut() = "/hooks/bank".parse().unwrap();
    assert_eq!(receiver.send(to_bank).await.status, 202, "an id is one's own source's");
    receiver.stop().await;
}

#[tokio::test]
async fn a_verified_event_without_a_usable_id_is_refused_and_says_where_the_id_should_be() {
    let github = known::find("github").unwrap();
    let (signs, verifies) = secret(github.key, 7);
    let disk = Disk::new();
    let config = ReceiverConfig::new(vec![source("shop", &github, &[&verifies])]);
    let receiver = start(TokioHost, disk.open().await, config).await;
    let good = || request(&github, &signs, "evt_1", |body| body);
    let mut without = good();
    without.headers_mut().remove("x-github-delivery");
    let mut twice = good();
    twice.headers_mut().append("x-github-delivery", "evt_2".parse().unwrap());
    let mut odd = good();
    odd.headers_mut().insert("x-github-delivery", "not an id".parse().unwrap());
    for request in [without, twice, odd] {
        let answer = receiver.send(request).await;
        assert_eq!(answer.status, 400);
        assert!(text(&answer).contains("X-GitHub-Delivery"), "{}", text(&answer));
    }
    assert_eq!(receiver.store.totals().await.unwrap().events, 0);
    receiver.stop().await;
}

#[test]
fn only_an_id_that_is_signed_is_trusted() {
    let check = |name: &str, is_unsigned: bool| {
        let scheme = known::find(name).unwrap();
        let (_, verifies) = secret(scheme.key, 7);
        let source = source("shop", &scheme, &[&verifies]);
        assert_eq!(source.verifier.trusts_unsigned_id(), is_unsigned, "{name}");
    };
    for name in ["standard-webhooks", "svix", "stripe", "slack", "square", "paddle"] {
        check(name, false);
    }
    for name in ["github", "gitlab", "linear", "seed-1"] {
        check(name, true);
    }
}

#[test]
fn a_source_that_cannot_be_verified_is_refused_with_what_is_missing() {
    let check = |written: &str, problem: &str| {
        let error = toml::from_str::<Source>(&format!("id = \"shop\"\n{written}")).unwrap_err();
        assert!(error.to_string().contains(problem), "{written}\n{error}");
        assert!(!error.to_string().contains("topsecret"), "{error}");
    };
    let secrets = "secrets = [\"topsecret\"]\n";
    check(
        &format!("scheme = \"githup\"\n{secrets}"),
        "`scheme` is \"githup\"; the known ones are standard-webhooks,",
    );
    check(&format!("scheme = \"shopify\"\n{secrets}"), "`event_id` is missing");
    check(
        &format!("scheme = \"github\"\nevent_id = {{ header = \"a\", json = \"/b\" }}\n{secrets}"),
        "`event_id` needs a `header` or a `json` pointer",
    );
    check(
        &format!("scheme = \"github\"\ntolerance = \"5m\"\n{secrets}"),
        "`tolerance` is of no use: the scheme github signs no time",
    );
    check(&format!("scheme = \"square\"\n{secrets}"), "`url` is missing");
    check(secrets, "`secrets[0]`: ");
    check("scheme = \"github\"\nsecrets = []", "0 secrets given");
    check(&format!("scheme = \"github\"\nown_scheme = {{}}\n{secrets}"), "missing field");
    check(
        "secrets = [\"topsecret\"]\n[own_scheme]\nname = \"own\"\nsource = \"\"\n\
         algorithm = \"hmac-sha256\"\nkey = \"literal\"\nsigned = \"\"\nencoding = \"hex\"\n\
         signature = { header = \"x-signature\" }",
        "`own_scheme`: `signed` is empty",
    );
}
