//! `https` endpoints: who is trusted, and under which name.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::time::Millis;
use hookproof_runtime::host::Host;
use hookproof_sender::tls::Tls;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CertifiedKey, IsCa, KeyPair,
    generate_simple_self_signed,
};
use tokio::io::AsyncWriteExt as _;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, version};

use crate::receiver::{accepting, read_request};
use crate::running::{HOST, Home, Seen, config};

/// An `https` receiver that answers 200 to all who get as far as a request.
struct Secure {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Secure {
    async fn start(certificate: CertificateDer<'static>, key: &KeyPair) -> Self {
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&version::TLS13, &version::TLS12])
            .expect("both versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("a certificate with its key");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let requests = Arc::new(AtomicUsize::new(0));
        let seen = requests.clone();
        let address = accepting(move |stream| {
            let (acceptor, seen) = (acceptor.clone(), seen.clone());
            async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                if read_request(&mut stream).await.is_empty() {
                    return;
                }
                seen.fetch_add(1, SeqCst);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
                let _ = stream.shutdown().await;
            }
        })
        .await;
        Self { address, requests }
    }

    fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/hook", self.address.port())
    }

    fn count(&self) -> usize {
        self.requests.load(SeqCst)
    }
}

fn self_signed(name: &str) -> CertifiedKey<KeyPair> {
    generate_simple_self_signed([name.to_owned()]).expect("a certificate")
}

/// What comes of two attempts at most to `url`.
async fn deliver(url: &str, trusted: Option<&str>) -> Seen {
    let home = Home::new();
    let tls = Tls::new(trusted.map(str::as_bytes)).expect("trust anchors");
    let sender = home.start_with(config(&[10]), tls).await;
    let endpoint = sender.register(url).await;
    let event = sender.publish("{}").await;
    sender.settled(&endpoint.delivery_of(&event)).await
}

const TLS: Outcome = Outcome::Failed { failure: Failure::Tls };

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_whose_own_certificate_is_trusted_is_delivered_to() {
    let CertifiedKey { cert, signing_key } = self_signed("localhost");
    let secure = Secure::start(cert.der().clone(), &signing_key).await;
    let seen = deliver(&secure.url("localhost"), Some(&cert.pem())).await;
    assert_eq!(seen.story(), ["200"]);
    assert_eq!(secure.count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_whose_authority_is_trusted_is_delivered_to() {
    let mut authority = CertificateParams::new(Vec::new()).expect("parameters");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(authority, key).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let leaf = CertificateParams::new(names).expect("parameters");
    let leaf = leaf.signed_by(&key, &authority).expect("a certificate");
    let secure = Secure::start(leaf.der().clone(), &key).await;
    for host in ["localhost", "127.0.0.1"] {
        let seen = deliver(&secure.url(host), Some(&authority.pem())).await;
        assert_eq!(seen.story(), ["200"], "as {host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_nobody_vouches_for_is_a_tls_failure_and_is_retried() {
    let CertifiedKey { cert, signing_key } = self_signed("localhost");
    let secure = Secure::start(cert.der().clone(), &signing_key).await;
    let other = self_signed("localhost").cert.pem();
    for trusted in [None, Some(other.as_str())] {
        let seen = deliver(&secure.url("localhost"), trusted).await;
        assert_eq!(seen.outcomes(), [TLS, TLS]);
    }
    assert_eq!(secure.count(), 0, "no request is sent to it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_another_name_is_a_tls_failure() {
    let CertifiedKey { cert, signing_key } = self_signed("localhost");
    let secure = Secure::start(cert.der().clone(), &signing_key).await;
    let seen = deliver(&secure.url("127.0.0.1"), Some(&cert.pem())).await;
    assert_eq!(seen.outcomes(), [TLS, TLS]);

    let CertifiedKey { cert, signing_key } = self_signed("elsewhere.test");
    let secure = Secure::start(cert.der().clone(), &signing_key).await;
    let seen = deliver(&secure.url("localhost"), Some(&cert.pem())).await;
    assert_eq!(seen.outcomes(), [TLS, TLS]);
    assert_eq!(secure.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_speaks_no_tls_is_a_tls_failure() {
    let address = accepting(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        HOST.sleep(Millis::from_secs(60)).await;
    })
    .await;
    let seen = deliver(&format!("https://{address}/"), None).await;
    assert_eq!(seen.outcomes(), [TLS, TLS]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_that_never_ends_is_a_timeout() {
    let address = accepting(|stream| async move {
        HOST.sleep(Millis::from_secs(60)).await;
        drop(stream);
    })
    .await;
    let home = Home::new();
    let mut config = config(&[]);
    config.policy.total_timeout = Millis::new(300);
    config.policy.connect_timeout = Millis::new(300);
    let sender = home.start(config).await;
    let endpoint = sender.register(&format!("https://{address}/")).await;
    let event = sender.publish("{}").await;
    let seen = sender.settled(&endpoint.delivery_of(&event)).await;
    assert_eq!(seen.outcomes(), [Outcome::Failed { failure: Failure::Timeout }]);
}

#[test]
fn trust_anchors_must_be_certificates() {
    let check = |pem: &str, expected: &str| {
        let error = Tls::new(Some(pem.as_bytes())).map(drop).expect_err("it is refused");
        assert!(error.to_string().contains(expected), "{error}");
    };
    check("", "there is no PEM certificate in it");
    check("not PEM", "there is no PEM certificate in it");
    check(
        &KeyPair::generate().expect("a key").serialize_pem(),
        "there is no PEM certificate in it",
    );
    check("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "");
}
