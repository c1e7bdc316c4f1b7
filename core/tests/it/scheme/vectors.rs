//! What other implementations sign: computed with Python 3 (hmac, hashlib, base64, and the package
//! cryptography for Ed25519), for one message.

/// A scheme, its secret, and what a request carries: names of headers, or pointers into the body.
pub(crate) type Vector = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

pub(crate) const VECTORS: [Vector; 28] = [
    (
        "standard-webhooks",
        "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=",
        &[
            ("webhook-id", "msg_1"),
            ("webhook-timestamp", "1700000000"),
            ("webhook-signature", "v1,6JupH8uCQWsVyP4gald8CEjv8zxW6TNrNNm+gBxNTgE="),
        ],
    ),
    (
        "svix",
        "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=",
        &[
            ("svix-id", "msg_1"),
            ("svix-timestamp", "1700000000"),
            ("svix-signature", "v1,6JupH8uCQWsVyP4gald8CEjv8zxW6TNrNNm+gBxNTgE="),
        ],
    ),
    (
        "stripe",
        "a literal secret of a vendor",
        &[(
            "Stripe-Signature",
            "t=1700000000,v1=305086f3275cb5a6ebf5dae0d3ae7183cf449cf9453e132dd2eb5357e86417d1",
        )],
    ),
    (
        "slack",
        "a literal secret of a vendor",
        &[
            ("X-Slack-Request-Timestamp", "1700000000"),
            (
                "X-Slack-Signature",
                "v0=eaa41ea481cc94d91b48edf48a5ba3319279321db5dcd91445f66834248a3f09",
            ),
        ],
    ),
    (
        "zoom",
        "a literal secret of a vendor",
        &[
            ("x-zm-request-timestamp", "1700000000"),
            (
                "x-zm-signature",
                "v0=eaa41ea481cc94d91b48edf48a5ba3319279321db5dcd91445f66834248a3f09",
            ),
        ],
    ),
    (
        "paddle",
        "a literal secret of a vendor",
        &[(
            "Paddle-Signature",
            "ts=1700000000;h1=f798951fd5d409abc0b5d23311ab8622d2e7152b48fcfe80cd42a559b119d949",
        )],
    ),
    (
        "calendly",
        "a literal secret of a vendor",
        &[(
            "Calendly-Webhook-Signature",
            "t=1700000000,v1=305086f3275cb5a6ebf5dae0d3ae7183cf449cf9453e132dd2eb5357e86417d1",
        )],
    ),
    (
        "workos",
        "a literal secret of a vendor",
        &[(
            "WorkOS-Signature",
            "t=1700000000000, v1=01cc30f804766f4ea58c36ab4789e1a809e07f5b8e38db68d8094c58fbbde204",
        )],
    ),
    (
        "convoy-advanced",
        "a literal secret of a vendor",
        &[(
            "X-Convoy-Signature",
            "t=1700000000,v1=a23b9bd273f6eb9614b248e78030161e90e1084a38663f7f46b4715e2b6273df",
        )],
    ),
    (
        "zendesk",
        "a literal secret of a vendor",
        &[
            ("X-Zendesk-Webhook-Signature-Timestamp", "2023-11-14T22:13:20Z"),
            ("X-Zendesk-Webhook-Signature", "PSngCEsSP0KE3D/UVE4hrKYKMvC2OKjAU1x+fBas1kQ="),
        ],
    ),
    (
        "seed-2",
        "a literal secret of a vendor",
        &[
            ("X-Webhook-Timestamp", "1700000000"),
            (
                "X-Webhook-Signature",
                "305086f3275cb5a6ebf5dae0d3ae7183cf449cf9453e132dd2eb5357e86417d1",
            ),
        ],
    ),
    (
        "github",
        "a literal secret of a vendor",
        &[(
            "X-Hub-Signature-256",
            "sha256=e304029c945ae4f7a47d6bcbb2e3419daba9d9394a2f2100b96fc5f2874f68a4",
        )],
    ),
    (
        "shopify",
        "a literal secret of a vendor",
        &[("X-Shopify-Hmac-SHA256", "4wQCnJRa5PekfWvLsuNBnaup2TlKLyEAuW/F8odPaKQ=")],
    ),
    (
        "intercom",
        "a literal secret of a vendor",
        &[("X-Hub-Signature", "sha1=0080650a52ab98a06ecfdffee94985da64757117")],
    ),
    (
        "linear",
        "a literal secret of a vendor",
        &[("Linear-Signature", "e304029c945ae4f7a47d6bcbb2e3419daba9d9394a2f2100b96fc5f2874f68a4")],
    ),
    (
        "adyen",
        "0102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F20",
        &[("HmacSignature", "nWmnI6RziZWF0IOHa4WIHSK79UKVpsqyaQDeaf82Jps=")],
    ),
    (
        "gitlab",
        "a literal secret of a vendor",
        &[("X-Gitlab-Token", "a literal secret of a vendor")],
    ),
    (
        "dropbox",
        "a literal secret of a vendor",
        &[(
            "X-Dropbox-Signature",
            "e304029c945ae4f7a47d6bcbb2e3419daba9d9394a2f2100b96fc5f2874f68a4",
        )],
    ),
    (
        "typeform",
        "a literal secret of a vendor",
        &[("Typeform-Signature", "sha256=4wQCnJRa5PekfWvLsuNBnaup2TlKLyEAuW/F8odPaKQ=")],
    ),
    (
        "lemonsqueezy",
        "a literal secret of a vendor",
        &[("X-Signature", "e304029c945ae4f7a47d6bcbb2e3419daba9d9394a2f2100b96fc5f2874f68a4")],
    ),
    (
        "convoy",
        "a literal secret of a vendor",
        &[(
            "X-Convoy-Signature",
            "e304029c945ae4f7a47d6bcbb2e3419daba9d9394a2f2100b96fc5f2874f68a4",
        )],
    ),
    (
        "seed-1",
        "a literal secret of a vendor",
        &[
            ("X-Webhook-ID", "msg_1"),
            ("X-Webhook-Timestamp", "1700000000"),
            (
                "X-Webhook-Signature",
                "sha256=e304029c945ae4f7a47d6bcbb2e3419daba9d9394a2f2100b96fc5f2874f68a4",
            ),
        ],
    ),
    (
        "square",
        "a literal secret of a vendor",
        &[("x-square-hmacsha256-signature", "mMYpjsVC1JYhMDSRu/fj7uOBoMbPKsx6zKqQW15Onno=")],
    ),
    (
        "hubspot",
        "a literal secret of a vendor",
        &[
            ("X-HubSpot-Request-Timestamp", "1700000000000"),
            ("X-HubSpot-Signature-v3", "6xWwYz42+IYKjXljHZ8Vuy6XcH5A+jRCV7O8XlaJFyw="),
        ],
    ),
    (
        "mailgun",
        "a literal secret of a vendor",
        &[
            ("/signature/token", "msg_1"),
            ("/signature/timestamp", "1700000000"),
            (
                "/signature/signature",
                "e8b4f96dbadb86c6ff8d6579e16e701221ab8ddd9741e30454b71859ff07e591",
            ),
        ],
    ),
    (
        "standard-webhooks-v1a",
        "whsk_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyB5tVYuj+ZU+UB4sRLoqYunkB+FOuaVvtfg45ELrQSWZA==",
        &[
            ("webhook-id", "msg_1"),
            ("webhook-timestamp", "1700000000"),
            (
                "webhook-signature",
                "v1a,qx1UkKM5jtkysuQhM5RoC0pOZfg7v4J1JePcSY3WwYoHRtKxaV1X8cVDCMputJxRjrTQhcHQfl0IvUJ2ZBZ3BA==",
            ),
        ],
    ),
    (
        "discord",
        "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2079b5562e8fe654f94078b112e8a98ba7901f853ae695bed7e0e3910bad049664",
        &[
            ("X-Signature-Timestamp", "1700000000"),
            (
                "X-Signature-Ed25519",
                "ec915205af9fbdbea8ce814f00d0c4405155190c509fa681dfd196e02d637d28d73a4830ee954bae231a1711a7c5be37564793fdfeec7383b5f35f7a84605106",
            ),
        ],
    ),
    (
        "twilio",
        "a literal secret of a vendor",
        &[
            ("I-Twilio-Idempotency-Token", "msg_1"),
            ("X-Twilio-Signature", "JimGuNy4Ubrc4uR3PtJOwCF+gWM="),
        ],
    ),
];
