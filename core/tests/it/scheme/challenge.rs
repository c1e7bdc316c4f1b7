//! What is answered when a vendor asks whether an endpoint wants its events.

use hookproof_core::scheme::{Answer, Challenge, ChallengeError, Request, Scheme};

use super::{key, scheme};

/// Zoom, "Using webhooks": the example of a challenge.
const ZOOM: &str = r#"{
    "payload": {"plainToken": "qgg8vlvZRS6UYooatFL8Aw"},
    "event_ts": 1654503849680,
    "event": "endpoint.url_validation"
}"#;

fn answer(name: &str, request: &Request<'_>) -> Result<Option<Answer>, ChallengeError> {
    let scheme = scheme(name);
    scheme.answer(&key(&scheme, "secretValueTest"), request)
}

fn to_zoom(body: &str) -> Result<Option<Answer>, ChallengeError> {
    answer("zoom", &Request { method: "POST", body: body.as_bytes(), ..Request::default() })
}

fn to_dropbox(method: &str, url: &str) -> Result<Option<Answer>, ChallengeError> {
    answer("dropbox", &Request { method, url, ..Request::default() })
}

#[test]
fn zooms_challenge_is_answered_with_its_token_and_the_mac_of_that() {
    // elastic/beats, x-pack/filebeat/input/http_endpoint, the test of Zoom's challenge.
    let mac = "70c1f2e2e6ca2d39297490d1f9142c7d701415ea8e6151f6562a08fa657a40ff";
    let found = to_zoom(ZOOM).unwrap().expect("it is a challenge");
    assert_eq!(found.content_type, "application/json");
    let body: serde_json::Value = serde_json::from_str(&found.body).unwrap();
    let expected =
        serde_json::json!({ "plainToken": "qgg8vlvZRS6UYooatFL8Aw", "encryptedToken": mac });
    assert_eq!(body, expected);
    let other = ZOOM.replace("endpoint.url_validation", "meeting.started");
    for event in [other.as_str(), "", "{", "[]"] {
        assert_eq!(to_zoom(event), Ok(None), "{event}");
    }
}

#[test]
fn a_token_that_could_be_a_signed_request_is_never_signed() {
    let long = "a".repeat(201);
    for token in ["v0:1700000000:{}", "", "a b", "\\u00fc", "a\\n", "<b>", &long] {
        let asked = ZOOM.replace("qgg8vlvZRS6UYooatFL8Aw", token);
        assert_eq!(to_zoom(&asked), Err(ChallengeError::Token), "{token:?}");
    }
    let without = ZOOM.replace("plainToken", "token");
    assert_eq!(to_zoom(&without), Err(ChallengeError::Token));
    // Where the body alone is signed, a token that is answered is a body that is signed.
    let of = |name: &str| Scheme { challenge: Some(Challenge::TokenMac), ..scheme(name) };
    for name in ["github", "mailgun", "square", "zendesk"] {
        let refused = of(name).check().unwrap_err().to_string();
        assert!(refused.contains("`challenge` would sign requests"), "{name}: {refused}");
    }
    for name in ["gitlab", "discord", "standard-webhooks-v1a"] {
        let refused = of(name).check().unwrap_err().to_string();
        assert!(refused.contains("`challenge` needs an `algorithm` that is a MAC"), "{refused}");
    }
    for name in ["zoom", "slack", "stripe", "svix"] {
        assert_eq!(of(name).check(), Ok(()), "{name}");
    }
}

#[test]
fn dropboxs_challenge_is_echoed_as_text() {
    let text = |body: &str| Answer { content_type: "text/plain", body: body.to_owned() };
    let url = "https://example.org/hooks?a=1&challenge=";
    for (value, expected) in [("abc-1_2", "abc-1_2"), ("a%2Bb%3D", "a+b="), ("abc#top", "abc")] {
        let found = to_dropbox("GET", &format!("{url}{value}"));
        assert_eq!(found, Ok(Some(text(expected))), "{value}");
    }
    for value in ["", "%3Cscript%3E", "a+b", "%ff"] {
        let found = to_dropbox("GET", &format!("{url}{value}"));
        assert_eq!(found, Err(ChallengeError::Token), "{value}");
    }
    assert_eq!(to_dropbox("POST", &format!("{url}abc")), Ok(None));
    assert_eq!(to_dropbox("GET", "https://example.org/hooks"), Ok(None));
}

#[test]
fn a_scheme_without_a_challenge_answers_none() {
    let url = "https://example.org/?challenge=abc";
    let request = Request { method: "GET", url, headers: &[], body: ZOOM.as_bytes() };
    for name in ["stripe", "slack", "github"] {
        assert_eq!(answer(name, &request), Ok(None), "{name}");
    }
}
