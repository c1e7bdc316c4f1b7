"""Signs and verifies with the packages that vendors give to their users.

Reads a JSON list of requests from standard input and writes one answer for each, in order. A
request is what hookproof signed; an answer tells whether the package of its scheme accepts it,
whether it refuses the same request with a changed body, and what the package's side signs itself.
A package that is not there is an answer too: whoever asked decides what follows from it.
"""

import base64
import hashlib
import hmac
import io
import json
import sys
import time
from collections import namedtuple
from contextlib import redirect_stdout
from datetime import datetime, timezone
from types import SimpleNamespace
from urllib.parse import parse_qsl

Oracle = namedtuple("Oracle", "accepts sign")
Signed = namedtuple("Signed", "headers body secret", defaults=(None, None))


class Stopped(datetime):
    """Stands in for `datetime` in packages that ask it for the time."""

    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(time.time(), tz)


def digest(case, text, encode=lambda mac: mac.hexdigest(), key=None):
    """The vendor's algorithm by Python's own `hmac`, where its package only verifies."""
    return encode(hmac.new(key or case.secret.encode(), text.encode(), hashlib.sha256))


def in_base64(mac):
    return base64.b64encode(mac.digest()).decode()


def standard(webhook, prefix):
    def accepts(case):
        webhook(case.secret).verify(case.body, case.headers)
        return True

    def sign(case):
        at = datetime.fromtimestamp(case.at, tz=timezone.utc)
        signature = webhook(case.secret).sign(case.id, at, case.body)
        names = (f"{prefix}-id", f"{prefix}-timestamp", f"{prefix}-signature")
        return Signed(dict(zip(names, (case.id, str(case.at), signature))))

    return Oracle(accepts, sign)


def standard_webhooks():
    import standardwebhooks.webhooks as package

    package.datetime = Stopped

    return standard(package.Webhook, "webhook")


def svix():
    import standardwebhooks.webhooks as inner
    from svix.webhooks import Webhook

    inner.datetime = Stopped

    return standard(Webhook, "svix")


def standard_webhooks_v1a():
    from nacl.signing import SigningKey

    def key(case):
        return SigningKey(base64.b64decode(case.secret.removeprefix("whsk_"))[:32])

    def signed(case):
        return f"{case.id}.{case.at}.{case.body}".encode()

    def accepts(case):
        signature = base64.b64decode(case.headers["webhook-signature"].removeprefix("v1a,"))
        return bool(key(case).verify_key.verify(signed(case), signature))

    def sign(case):
        signature = base64.b64encode(key(case).sign(signed(case)).signature).decode()
        names = ("webhook-id", "webhook-timestamp", "webhook-signature")
        return Signed(dict(zip(names, (case.id, str(case.at), f"v1a,{signature}"))))

    return Oracle(accepts, sign)


def stripe():
    from stripe import WebhookSignature

    def accepts(case):
        header = case.headers["Stripe-Signature"]
        return WebhookSignature.verify_header(case.body, header, case.secret, tolerance=300)

    def sign(case):
        header = WebhookSignature.generate_signature_header(case.body, case.secret, case.at)
        return Signed({"Stripe-Signature": header})

    return Oracle(accepts, sign)


def slack():
    from slack_sdk.signature import SignatureVerifier

    def accepts(case):
        return SignatureVerifier(case.secret).is_valid_request(case.body, case.headers)

    def sign(case):
        time = str(case.at)
        verifier = SignatureVerifier(case.secret)
        signature = verifier.generate_signature(timestamp=time, body=case.body)
        return Signed({"X-Slack-Request-Timestamp": time, "X-Slack-Signature": signature})

    return Oracle(accepts, sign)


def twilio():
    from twilio.request_validator import RequestValidator

    def parameters(case):
        is_form = "bodySHA256" not in case.url
        return dict(parse_qsl(case.body, keep_blank_values=True)) if is_form else case.body

    def accepts(case):
        signature = case.headers["X-Twilio-Signature"]
        return RequestValidator(case.secret).validate(case.url, parameters(case), signature)

    def sign(case):
        given = parameters(case)
        given = given if isinstance(given, dict) else {}
        signature = RequestValidator(case.secret).compute_signature(case.url, given)
        return Signed({"X-Twilio-Signature": signature})

    return Oracle(accepts, sign)


def sendgrid():
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from sendgrid.helpers.eventwebhook import EventWebhook

    form = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    names = ("X-Twilio-Email-Event-Webhook-Timestamp", "X-Twilio-Email-Event-Webhook-Signature")

    def sign(case):
        seed = hashlib.sha256(case.secret.encode()).digest()
        key = ec.derive_private_key(int.from_bytes(seed[:31]), ec.SECP256R1())
        message = f"{case.at}{case.body}".encode()
        signature = base64.b64encode(key.sign(message, ec.ECDSA(hashes.SHA256()))).decode()
        public = base64.b64encode(key.public_key().public_bytes(*form)).decode()
        return Signed(dict(zip(names, (str(case.at), signature))), secret=public)

    def accepts(case):
        time, signature = (case.headers[name] for name in names)
        return EventWebhook(case.secret).verify_signature(case.body, signature, time)

    return Oracle(accepts, sign)


def hubspot():
    import hubspot.utils.signature as package

    package.datetime = Stopped

    def accepts(case):
        return package.Signature.is_valid(
            signature=case.headers["X-HubSpot-Signature-v3"],
            client_secret=case.secret,
            request_body=case.body,
            http_uri=case.url,
            signature_version="v3",
            timestamp=case.headers["X-HubSpot-Request-Timestamp"],
        )

    def sign(case):
        time = str(case.at * 1000)
        given = (case.secret, case.body, "v3", case.url, "POST", time)
        signature = package.Signature.get_signature(*given)
        return Signed({"X-HubSpot-Request-Timestamp": time, "X-HubSpot-Signature-v3": signature})

    return Oracle(accepts, sign)


def adyen():
    from Adyen.util import generate_payload_sig, is_valid_hmac_payload

    def accepts(case):
        signature = case.headers["HmacSignature"]
        return is_valid_hmac_payload(signature, case.secret, case.body.encode())

    def sign(case):
        signature = generate_payload_sig(case.body.encode(), case.secret)
        return Signed({"HmacSignature": signature.decode()})

    return Oracle(accepts, sign)


def square():
    from square.utils.webhooks_helper import verify_signature

    def accepts(case):
        return verify_signature(
            request_body=case.body,
            signature_header=case.headers["x-square-hmacsha256-signature"],
            signature_key=case.secret,
            notification_url=case.url,
        )

    def sign(case):
        signature = digest(case, case.url + case.body, in_base64)
        return Signed({"x-square-hmacsha256-signature": signature})

    return Oracle(accepts, sign)


def paddle():
    from paddle_billing.Notifications import PaddleSignature, Secret, Verifier

    def accepts(case):
        request = SimpleNamespace(headers=case.headers, body=case.body.encode())
        return Verifier().verify(request, Secret(case.secret))

    def sign(case):
        signed = f"{case.at}:{case.body}".encode()
        signature = PaddleSignature.calculate_hmac(case.secret, signed).hexdigest()
        return Signed({"Paddle-Signature": f"ts={case.at};h1={signature}"})

    return Oracle(accepts, sign)


def discord():
    from discord_interactions import verify_key
    from nacl.signing import SigningKey

    def accepts(case):
        time, signature = (
            case.headers["X-Signature-Timestamp"],
            case.headers["X-Signature-Ed25519"],
        )
        return verify_key(case.body.encode(), signature, time, case.secret[64:])

    def sign(case):
        key = SigningKey(bytes.fromhex(case.secret)[:32])
        signature = key.sign(f"{case.at}{case.body}".encode()).signature.hex()
        return Signed({"X-Signature-Timestamp": str(case.at), "X-Signature-Ed25519": signature})

    return Oracle(accepts, sign)


def workos():
    from workos.webhooks._verification import verify_header

    def accepts(case):
        header, body = case.headers["WorkOS-Signature"], case.body.encode()
        verify_header(event_body=body, event_signature=header, secret=case.secret)
        return True

    def sign(case):
        signature = digest(case, f"{case.at}000.{case.body}")
        return Signed({"WorkOS-Signature": f"t={case.at}000, v1={signature}"})

    return Oracle(accepts, sign)


def github():
    from gidgethub.sansio import validate_event

    def accepts(case):
        signature = case.headers["X-Hub-Signature-256"]
        validate_event(case.body.encode(), signature=signature, secret=case.secret)
        return True

    def sign(case):
        return Signed({"X-Hub-Signature-256": f"sha256={digest(case, case.body)}"})

    return Oracle(accepts, sign)


def convoy():
    from convoy.utils.webhook import Webhook

    def accepts(case):
        # What it returns for a wrong signature is a text, which is true as well.
        header = case.headers["X-Convoy-Signature"]
        return Webhook(case.secret).verify_signature(case.body, header) is True

    def sign(case):
        return Signed({"X-Convoy-Signature": Webhook(case.secret).create_signature(case.body)})

    return Oracle(accepts, sign)


def mailgun():
    import django.conf
    from anymail.webhooks.mailgun import MailgunTrackingWebhookView

    if not django.conf.settings.configured:
        django.conf.settings.configure()

    def accepts(case):
        view = MailgunTrackingWebhookView(webhook_signing_key=case.secret)
        request = SimpleNamespace(content_type="application/json", body=case.body.encode())
        view.validate_request(request)
        return True

    def sign(case):
        signature = digest(case, f"{case.at}{case.id}")
        block = {"timestamp": str(case.at), "token": case.id, "signature": signature}
        return Signed({}, body=json.dumps({"signature": block}))

    return Oracle(accepts, sign)


ORACLES = {
    "adyen": adyen,
    "convoy": convoy,
    "discord": discord,
    "github": github,
    "hubspot": hubspot,
    "mailgun": mailgun,
    "paddle": paddle,
    "sendgrid": sendgrid,
    "slack": slack,
    "square": square,
    "standard-webhooks": standard_webhooks,
    "standard-webhooks-v1a": standard_webhooks_v1a,
    "stripe": stripe,
    "svix": svix,
    "twilio": twilio,
    "workos": workos,
}


def is_accepted(oracle, case):
    """Packages refuse by an exception or by a value: either is a no."""
    try:
        return oracle.accepts(case) is True
    except Exception:
        return False


def answer(case):
    try:
        oracle = ORACLES[case.scheme]()
    except ImportError as missing:
        return {"missing": missing.name or str(missing)}
    signed = oracle.sign(case)
    own = SimpleNamespace(**vars(case))
    own.headers = signed.headers
    own.body = case.body if signed.body is None else signed.body
    own.secret = case.secret if signed.secret is None else signed.secret
    # Where we cannot sign, the package is asked about its own side's request.
    sent = case if case.is_signed else own
    changed = SimpleNamespace(**vars(sent))
    changed.body = changed.body.replace("1", "2")
    return {
        "accepts_its_own": is_accepted(oracle, own),
        "accepts": is_accepted(oracle, sent),
        "accepts_changed": is_accepted(oracle, changed),
        "headers": own.headers,
        "body": own.body,
        "secret": own.secret,
    }


def main():
    cases = [SimpleNamespace(**case) for case in json.load(sys.stdin)]
    # Before any package is imported: the time is that of the requests, which are all of one time.
    time.time = lambda: float(cases[0].at)
    # One package prints what it refuses.
    with redirect_stdout(io.StringIO()):
        answers = [answer(case) for case in cases]
    json.dump(answers, sys.stdout)


main()
