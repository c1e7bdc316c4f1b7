//! Requests and signatures that vendors publish, in their documentation or in the tests of their own
//! libraries; for Dropbox, which publishes none, in those of another one. Mailgun and Zendesk publish
//! none either: of theirs, other implementations are asked.

use hookproof_core::scheme::{Fault, Message, SignError};
use hookproof_core::time::Timestamp;

use super::{check, key, scheme};

#[test]
fn the_published_vector_of_github_verifies() {
    // GitHub, "Validating webhook deliveries", "Testing the webhook payload validation".
    let digest = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let value = format!("sha256={digest}");
    let (secret, body) = ("It's a Secret to Everybody", b"Hello, World!");
    check("github", secret, "", &[("x-hub-signature-256", &value)], body, None);
}

#[test]
fn the_published_vector_of_slack_verifies() {
    // slackapi/python-slack-sdk, tests/signature/test_signature_verifier.py.
    let body = b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow\
        &channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner\
        &command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands\
        %2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN\
        &trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let headers = [
        ("X-Slack-Request-Timestamp", "1531420618"),
        (
            "X-Slack-Signature",
            "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
        ),
    ];
    check("slack", "8f742231b10e8888abcd99yyyzzz85a5", "", &headers, body, None);
}

#[test]
fn the_published_vectors_of_twilio_verify() {
    // twilio/twilio-python, tests/unit/test_request_validator.py.
    let uri = "https://mycompany.com/myapp.php?foo=1&bar=2";
    let plain = uri.replace("https", "http");
    let hashed = format!(
        "{uri}&bodySHA256=0a1ff7634d9ab3b95db5c9a2dfe9416e41502b283a80c7cf19632632f96e6620"
    );
    let form = b"CallSid=CA1234567890ABCDE&Digits=1234&From=%2B14158675309&To=%2B18005551212\
        &Caller=%2B14158675309";
    let twice = b"Sid=CA123&SidAccount=AC123&Digits=5678&Digits=1234";
    let json = b"{\"property\": \"value\", \"boolean\": true}";
    let with_port = |url: &str| url.replace(".com", ".com:1234");
    let cases: [(&str, &[u8], &str); 7] = [
        (uri, form, "RSOYDt4T1cUTdK1PDd93/VVr8B8="),
        (uri, twice, "IK+Dwps556ElfBT0I3Rgjkr1wJU="),
        (&with_port(uri), form, "RSOYDt4T1cUTdK1PDd93/VVr8B8="),
        (&with_port(&plain), form, "Zmvh+3yNM1Phv2jhDCwEM3q5ebU="),
        (uri, form, "kvajT1Ptam85bY51eRf/AJRuM3w="),
        (&plain, form, "0ZXoZLH/DfblKGATFgpif+LLRf4="),
        (&hashed, json, "a9nBmqA0ju/hNViExpshrM61xv4="),
    ];
    for (url, body, signature) in cases {
        check("twilio", "12345", url, &[("X-Twilio-Signature", signature)], body, None);
    }
    let headers = [("X-Twilio-Signature", "a9nBmqA0ju/hNViExpshrM61xv4=")];
    check("twilio", "12345", &hashed, &headers, b"{}", Fault::BodyHash);
    check("twilio", "12345", "", &headers, form, Fault::MissingUrl);
}

pub(crate) const SENDGRID_KEY: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8\
    kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==";
pub(crate) const SENDGRID_BODY: &str = "[{\"email\":\"hello@world.com\",\"event\":\"dropped\",\
    \"reason\":\"Bounced Address\",\
    \"sg_event_id\":\"ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA\",\
    \"sg_message_id\":\"LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0\",\
    \"smtp-id\":\"<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>\",\
    \"timestamp\":1600112492}]\r\n";
pub(crate) const SENDGRID_HEADERS: [(&str, &str); 2] = [
    ("X-Twilio-Email-Event-Webhook-Timestamp", "1600112502"),
    (
        "X-Twilio-Email-Event-Webhook-Signature",
        "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZ\
         tM=",
    ),
];

#[test]
fn the_published_vector_of_sendgrid_verifies_with_its_trailing_line_break_only() {
    // sendgrid/sendgrid-python, test/unit/test_eventwebhook.py.
    let body = SENDGRID_BODY.as_bytes();
    check("sendgrid", SENDGRID_KEY, "", &SENDGRID_HEADERS, body, None);
    let cut = SENDGRID_BODY.trim_end().as_bytes();
    check("sendgrid", SENDGRID_KEY, "", &SENDGRID_HEADERS, cut, Fault::Mismatch);
    let other = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqTxd43gyp8IOEto2LdIfjRQrIbsd4SXZkLW6jDutdhXSJCWHw\
        8REntlo7aNDthvj+y7GjUuFDb/R1NGe1OPzpA==";
    check("sendgrid", other, "", &SENDGRID_HEADERS, body, Fault::Mismatch);
}

#[test]
fn the_published_vector_of_v1a_is_signed_and_verified() {
    // svix/svix-webhooks, the asymmetric test of the server's worker.
    let private = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMi\
        cMFs6Kvg==";
    let signature = "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8\
        EM+m7TBAg==";
    let scheme = scheme("standard-webhooks-v1a");
    let private = key(&scheme, private);
    let (id, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", b"{\"test\": 2432232314}");
    let at = Timestamp::from_secs(1_614_265_330);
    let message = Message { id, at, method: "POST", url: "", body };
    let signed = scheme.sign(std::slice::from_ref(&private), &message).unwrap();
    assert_eq!(signed.headers[2], ("webhook-signature".to_owned(), signature.to_owned()));
    let public = private.public_text().unwrap();
    let list = format!("v1,AAAA {signature}");
    let headers = [
        ("webhook-id", id),
        ("webhook-timestamp", "1614265330"),
        ("webhook-signature", list.as_str()),
    ];
    check("standard-webhooks-v1a", &public, "", &headers, body, None);
    assert_eq!(scheme.sign(&[key(&scheme, &public)], &message), Err(SignError::CannotSign));
}

#[test]
fn the_published_vector_of_hubspot_verifies() {
    // HubSpot/hubspot-api-python, tests/spec/utils/test_signature.py, version 3.
    let headers = [
        ("X-HubSpot-Request-Timestamp", "15000000"),
        ("X-HubSpot-Signature-v3", "HPW73RUtKmcYoEDADG0s6MmGFWUzWJKAW07r8RDgcQw="),
    ];
    let secret = "yyyyyyyy-yyyy-yyyy-yyyy-yyyyyyyyyyyy";
    let url = "https://www.example.com/webhook_uri";
    let body = b"{'example_field':'example_value'}";
    check("hubspot", secret, url, &headers, body, None);
    check("hubspot", secret, &format!("{url}/"), &headers, body, Fault::Mismatch);
}

#[test]
fn the_published_vectors_of_square_verify() {
    // square/square-python-sdk, tests/integration/test_webhooks_helper.py.
    let body = "{\"merchant_id\":\"MLEFBHHSJGVHD\",\"type\":\"webhooks.test_notification\",\
        \"event_id\":\"ac3ac95b-f97d-458c-a6e6-18981597e05f\",\
        \"created_at\":\"2022-07-13T20:30:59.037339943Z\",\
        \"data\":{\"type\":\"webhooks\",\"id\":\"bc368e64-01aa-407e-b46e-3231809b1129\"}}";
    let escaped = "{\"data\":{\"type\":\"webhooks\",\"id\":\">id<\"}}";
    let cases = [
        (
            "Ibxx_5AKakO-3qeNVR61Dw",
            "https://webhook.site/679a4f3a-dcfa-49ee-bac5-9d0edad886b9",
            body,
            "GF4YkrJgGBDZ9NIYbNXBnMzqb2HoL4RW/S6vkZ9/2N4=",
        ),
        (
            "signature-key",
            "https://webhook.site/webhooks",
            escaped,
            "Cxt7+aTi4rKgcA0bC4g9EHdVtLSDWdqccmL5MvihU4U=",
        ),
    ];
    for (secret, url, body, signature) in cases {
        let headers = [("x-square-hmacsha256-signature", signature)];
        check("square", secret, url, &headers, body.as_bytes(), None);
        check("square", "MCmhFRxGX82xMwg5FsaoQA", url, &headers, body.as_bytes(), Fault::Mismatch);
    }
}

#[test]
fn the_published_vector_of_paddle_verifies_beside_a_dummy() {
    // PaddleHQ/paddle-python-sdk, tests/Unit/Notification/test_Verifier.py; the last of its secrets.
    let signature = "d96299976a6eb066f484d7fde011ac56fc32b38fc9940bc419d6e537fdc6ef02";
    let value = format!("ts=1696195954;h1=dummy;h1={signature}");
    let headers = [("Paddle-Signature", value.as_str())];
    let secrets = [
        ("pdl_ntf_01hbpjmytsa32fhr36nqgc3kgb_WvRO0eL4Bj9rgYYIBZY6wZhG4EHy9jzh", None),
        (
            "pdl_ntf_01hbpjmytsa32fhr36nqgc3kgb_TjIG2BXbm83HPXqNfziwe506sBEdqL/4",
            Some(Fault::Mismatch),
        ),
    ];
    for (secret, expected) in secrets {
        check("paddle", secret, "", &headers, b"hello-world", expected);
    }
}

#[test]
fn the_published_vector_of_adyen_verifies_with_each_of_its_line_breaks() {
    // Adyen/adyen-python-api-library, test/test_util.py, test_is_valid_hmac_payload.
    let body = r#"{
    "type": "merchant.created",
    "environment": "test",
    "createdAt": "01-01-2024",
    "data": {
        "capabilities": {
            "sendToTransferInstrument": {
                "requested": true,
                "requestedLevel": "notApplicable"
            }
        },
        "companyId": "YOUR_COMPANY_ID",
        "merchantId": "YOUR_MERCHANT_ACCOUNT",
        "status": "PreActive"
    }
}"#;
    let secret = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056";
    let headers = [("HmacSignature", "NiqA5vsdV5etZMOaR27+GBSG4i6JeP6j1wkCM6t53vA=")];
    check("adyen", secret, "", &headers, body.as_bytes(), None);
    let ended = format!("{body}\n");
    check("adyen", secret, "", &headers, ended.as_bytes(), Fault::Mismatch);
}

#[test]
fn the_vector_of_another_implementation_of_dropbox_verifies() {
    // The npm package hapi-dropbox-webhooks 1.1.0, test/index.js.
    let signature = "0a8c16b085420b960dc78664279fe09e936a2a01b1f91064869d9e77dfd64529";
    let headers = [("X-Dropbox-Signature", signature)];
    let body = br#"{"delta": {"users": [12345]}}"#;
    check("dropbox", "the_secret", "", &headers, body, None);
    check("dropbox", "another_secret", "", &headers, body, Fault::Mismatch);
}
