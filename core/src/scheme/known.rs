//! The schemes in the field, each with where it is written.

use super::{
    Algorithm, Challenge, Encoding, KeyForm, Part, Place, Scheme, Template, TimestampUnit,
};
use crate::signature::TOLERANCE;
use crate::time::Millis;

use super::Algorithm::{EcdsaP256, Ed25519, HmacSha1, HmacSha256, Token};
use super::Encoding::{Base64, Hex, Plain};

/// Every scheme that is known, the standard one first.
#[must_use]
pub fn all() -> Vec<Scheme> {
    [standards(), with_time(), body_only(), with_request()].concat()
}

/// Standard Webhooks 1.0.0 with a shared secret: what this project's own sender signs by.
#[must_use]
pub fn standard_webhooks() -> Scheme {
    standards().swap_remove(0)
}

/// The scheme of this name.
#[must_use]
pub fn find(name: &str) -> Option<Scheme> {
    all().into_iter().find(|scheme| scheme.name == name)
}

fn scheme(
    (name, source): (&str, &str),
    (algorithm, key): (Algorithm, KeyForm),
    signed: Vec<Part>,
    signature: Place,
    encoding: Encoding,
) -> Scheme {
    Scheme {
        name: name.to_owned(),
        source: source.to_owned(),
        algorithm,
        key,
        signed: Template::from(signed),
        encoding,
        signature,
        id: None,
        timestamp: None,
        timestamp_unit: TimestampUnit::Seconds,
        tolerance: None,
        body_hash_query: None,
        any_port: false,
        challenge: None,
        warning: None,
    }
}

impl Scheme {
    fn id_in(self, place: Place) -> Self {
        Self { id: Some(place), ..self }
    }

    fn time_in(self, place: Place) -> Self {
        Self { timestamp: Some(place), ..self }
    }

    fn unit(self, timestamp_unit: TimestampUnit) -> Self {
        Self { timestamp_unit, ..self }
    }

    fn within(self, tolerance: Millis) -> Self {
        Self { tolerance: Some(tolerance), ..self }
    }

    fn asks(self, challenge: Challenge) -> Self {
        Self { challenge: Some(challenge), ..self }
    }

    fn warn(self, warning: &str) -> Self {
        Self { warning: Some(warning.to_owned()), ..self }
    }
}

fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

fn secs(secs: u64) -> Millis {
    Millis::from_secs(secs)
}

/// A list of fields such as `t=…,v1=…` in a header: where the time stands, and the signature.
fn fields(header: &str, separator: &str, [time, signature]: [&str; 2]) -> (Place, Place) {
    let place = |prefix| Place::header(header).separator(separator).prefix(prefix);
    (place(time), place(signature))
}

fn standards() -> Vec<Scheme> {
    let standard = |name, source, vendor: &str, tag, kind| {
        let header = |which: &str| Place::header(&format!("{vendor}-{which}"));
        let signed = vec![Part::Id, text("."), Part::Timestamp, text("."), Part::Body];
        let signature = header("signature").prefix(tag).separator(" ");
        scheme((name, source), kind, signed, signature, Base64)
            .id_in(header("id"))
            .time_in(header("timestamp"))
            .within(TOLERANCE)
    };
    vec![
        standard(
            "standard-webhooks",
            "Standard Webhooks 1.0.0, \"Signature scheme\", v1",
            "webhook",
            "v1,",
            (HmacSha256, KeyForm::Whsec),
        ),
        standard(
            "standard-webhooks-v1a",
            "Standard Webhooks 1.0.0, \"Signature scheme\", v1a",
            "webhook",
            "v1a,",
            (Ed25519, KeyForm::Ed25519),
        ),
        standard(
            "svix",
            "Svix and Clerk: docs.svix.com, \"How to verify webhooks manually\"",
            "svix",
            "v1,",
            (HmacSha256, KeyForm::Whsec),
        ),
    ]
}

/// The schemes that sign a time and the body.
fn with_time() -> Vec<Scheme> {
    let literal = (HmacSha256, KeyForm::Literal);
    let listed = |about, separator, names: [&str; 2], header, joint| {
        let (time, signature) = fields(header, separator, names);
        let signed = vec![Part::Timestamp, text(joint), Part::Body];
        scheme(about, literal, signed, signature, Hex).time_in(time)
    };
    let versioned = |about, signature, time| {
        let signed = vec![text("v0:"), Part::Timestamp, text(":"), Part::Body];
        let signature = Place::header(signature).prefix("v0=");
        scheme(about, literal, signed, signature, Hex).time_in(Place::header(time))
    };
    let joined = || vec![Part::Timestamp, Part::Body];
    vec![
        listed(
            ("stripe", "Stripe: docs.stripe.com, \"Verify webhook signatures manually\""),
            ",",
            ["t=", "v1="],
            "Stripe-Signature",
            ".",
        )
        .within(TOLERANCE),
        versioned(
            ("slack", "Slack: \"Verifying requests from Slack\""),
            "X-Slack-Signature",
            "X-Slack-Request-Timestamp",
        )
        .within(TOLERANCE),
        versioned(
            ("zoom", "Zoom: \"Verify webhook events\""),
            "x-zm-signature",
            "x-zm-request-timestamp",
        )
        .asks(Challenge::TokenMac),
        listed(
            ("paddle", "Paddle: \"Verify webhook signatures\""),
            ";",
            ["ts=", "h1="],
            "Paddle-Signature",
            ":",
        )
        .within(secs(5)),
        listed(
            ("calendly", "Calendly: \"Webhook signatures\""),
            ",",
            ["t=", "v1="],
            "Calendly-Webhook-Signature",
            ".",
        )
        .within(secs(180)),
        listed(
            ("workos", "WorkOS: \"Sync data using webhooks\"; the time is in milliseconds"),
            ", ",
            ["t=", "v1="],
            "WorkOS-Signature",
            ".",
        )
        .unit(TimestampUnit::Milliseconds)
        .within(secs(180)),
        listed(
            ("convoy-advanced", "Convoy: \"Signatures\", advanced; a comma follows the time"),
            ",",
            ["t=", "v1="],
            "X-Convoy-Signature",
            ",",
        ),
        scheme(
            ("zendesk", "Zendesk: \"Verifying webhook authenticity\"; the body may be empty"),
            literal,
            joined(),
            Place::header("X-Zendesk-Webhook-Signature"),
            Base64,
        )
        .time_in(Place::header("X-Zendesk-Webhook-Signature-Timestamp"))
        .unit(TimestampUnit::Rfc3339),
        scheme(
            ("discord", "Discord: \"Security and authorization\" of interactions"),
            (Ed25519, KeyForm::Ed25519Hex),
            joined(),
            Place::header("X-Signature-Ed25519"),
            Hex,
        )
        .time_in(Place::header("X-Signature-Timestamp")),
        scheme(
            ("sendgrid", "Twilio SendGrid: \"Event Webhook security features\", signed"),
            (EcdsaP256, KeyForm::P256Spki),
            joined(),
            Place::header("X-Twilio-Email-Event-Webhook-Signature"),
            Base64,
        )
        .time_in(Place::header("X-Twilio-Email-Event-Webhook-Timestamp"))
        .warn("the body may end in CR LF, which is signed: keep it"),
        scheme(
            ("seed-2", "seed document 2: hash_hmac of timestamp . '.' . payload"),
            literal,
            vec![Part::Timestamp, text("."), Part::Body],
            Place::header("X-Webhook-Signature"),
            Hex,
        )
        .time_in(Place::header("X-Webhook-Timestamp"))
        .within(TOLERANCE)
        .warn("the document names no headers: X-Webhook-Signature and -Timestamp are assumed"),
    ]
}

/// The schemes that sign the body alone, or nothing.
fn body_only() -> Vec<Scheme> {
    let literal = (HmacSha256, KeyForm::Literal);
    let body = |about, kind, header, prefix: &str, encoding| {
        scheme(about, kind, vec![Part::Body], Place::header(header).prefix(prefix), encoding)
    };
    vec![
        body(
            ("github", "GitHub: \"Validating webhook deliveries\""),
            literal,
            "X-Hub-Signature-256",
            "sha256=",
            Hex,
        ),
        body(
            ("shopify", "Shopify: \"Validate the origin of your webhook\""),
            literal,
            "X-Shopify-Hmac-SHA256",
            "",
            Base64,
        ),
        body(
            ("intercom", "Intercom: \"Signed notifications\""),
            (HmacSha1, KeyForm::Literal),
            "X-Hub-Signature",
            "sha1=",
            Hex,
        ),
        body(
            ("linear", "Linear: \"Securing webhooks\"; the time is in the body"),
            literal,
            "Linear-Signature",
            "",
            Hex,
        )
        .time_in(Place::json("/webhookTimestamp"))
        .unit(TimestampUnit::Milliseconds)
        .within(secs(60)),
        body(
            ("adyen", "Adyen: \"Verify HMAC signatures\" of banking webhooks"),
            (HmacSha256, KeyForm::Hex),
            "HmacSignature",
            "",
            Base64,
        ),
        scheme(
            ("gitlab", "GitLab: \"Webhooks\", secret token"),
            (Token, KeyForm::Literal),
            vec![],
            Place::header("X-Gitlab-Token"),
            Plain,
        ),
        body(("dropbox", "Dropbox: \"Webhooks\""), literal, "X-Dropbox-Signature", "", Hex)
            .asks(Challenge::Echo),
        body(
            ("typeform", "Typeform: \"Secure your webhooks\""),
            literal,
            "Typeform-Signature",
            "sha256=",
            Base64,
        ),
        body(
            ("lemonsqueezy", "Lemon Squeezy: \"Signing requests\""),
            literal,
            "X-Signature",
            "",
            Hex,
        ),
        body(("convoy", "Convoy: \"Signatures\", simple"), literal, "X-Convoy-Signature", "", Hex),
        body(
            ("seed-1", "seed document 1: X-Webhook-Signature"),
            literal,
            "X-Webhook-Signature",
            "sha256=",
            Hex,
        )
        .id_in(Place::header("X-Webhook-ID"))
        .time_in(Place::header("X-Webhook-Timestamp")),
    ]
}

/// The schemes that sign more of the request, or what is in the body.
fn with_request() -> Vec<Scheme> {
    let literal = (HmacSha256, KeyForm::Literal);
    let twilio = scheme(
        ("twilio", "Twilio: \"Validating requests are coming from Twilio\""),
        (HmacSha1, KeyForm::Literal),
        vec![Part::Url, Part::Form],
        Place::header("X-Twilio-Signature"),
        Base64,
    )
    .id_in(Place::header("I-Twilio-Idempotency-Token"))
    .warn("names and values of the form are joined without separators");
    vec![
        Scheme { body_hash_query: Some("bodySHA256".to_owned()), any_port: true, ..twilio },
        scheme(
            ("square", "Square: \"Validate and verify event notifications\""),
            literal,
            vec![Part::Url, Part::Body],
            Place::header("x-square-hmacsha256-signature"),
            Base64,
        ),
        scheme(
            ("hubspot", "HubSpot: \"Validating requests\", version 3; the time in milliseconds"),
            literal,
            vec![Part::Method, Part::UrlDecoded, Part::Body, Part::Timestamp],
            Place::header("X-HubSpot-Signature-v3"),
            Base64,
        )
        .time_in(Place::header("X-HubSpot-Request-Timestamp"))
        .unit(TimestampUnit::Milliseconds)
        .within(TOLERANCE),
        scheme(
            ("mailgun", "Mailgun: \"Securing webhooks\"; the token is a nonce: take it once"),
            literal,
            vec![Part::Timestamp, Part::Id],
            Place::json("/signature/signature"),
            Hex,
        )
        .id_in(Place::json("/signature/token"))
        .time_in(Place::json("/signature/timestamp")),
    ]
}
