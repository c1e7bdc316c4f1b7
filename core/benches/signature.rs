//! What signing and verifying cost, beside the bare HMAC of the same bytes.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hmac::{Hmac, KeyInit as _, Mac as _};
use hookproof_core::scheme::{Key, Message, Request, known};
use hookproof_core::secret::{Secret, Secrets};
use hookproof_core::signature::{Signed, TOLERANCE, sign, verify};
use hookproof_core::time::Timestamp;
use sha2::Sha256;

const ID: &str = "msg_hookproof_1";
const SECONDS: i64 = 1_700_000_000;
const NOW: Timestamp = Timestamp::from_secs(SECONDS);

fn benches(criterion: &mut Criterion) {
    let bytes = [7; 32];
    let secret = Secret::from_bytes(bytes).expect("32 bytes are a secret");
    let text = secret.reveal();
    let secrets = Secrets::one(secret);
    for size in [1024_usize, 65_536] {
        let body = vec![b'x'; size];
        let mut group = criterion.benchmark_group(format!("{size} bytes"));
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function("bare HMAC", |b| {
            b.iter(|| {
                let mut mac = Hmac::<Sha256>::new_from_slice(&bytes).expect("any key");
                mac.update(black_box(&body));
                mac.finalize().into_bytes()
            });
        });
        group.bench_function("sign", |b| {
            b.iter(|| sign(&secrets, ID, SECONDS, black_box(&body)));
        });
        let signature = sign(&secrets, ID, SECONDS, &body);
        group.bench_function("verify", |b| {
            let signed = Signed {
                id: Some(ID.as_bytes()),
                timestamp: Some(b"1700000000"),
                signature: Some(signature.as_bytes()),
                body: &body,
            };
            b.iter(|| verify(&secrets, black_box(&signed), NOW, TOLERANCE));
        });
        let message = Message { id: ID, at: NOW, method: "POST", url: "", body: &body };
        for name in ["standard-webhooks", "stripe", "github"] {
            let scheme = known::find(name).expect("it is known");
            let key = Key::parse(scheme.key, &text).expect("it is a key of either form");
            let keys = [key];
            group.bench_function(format!("sign by {name}"), |b| {
                b.iter(|| scheme.sign(&keys, black_box(&message)));
            });
            let signed = scheme.sign(&keys, &message).expect("it signs");
            let headers: Vec<_> =
                signed.headers.into_iter().map(|(name, value)| (name, value.into())).collect();
            group.bench_function(format!("verify by {name}"), |b| {
                let request = Request { method: "POST", url: "", headers: &headers, body: &body };
                b.iter(|| scheme.verify(&keys, black_box(&request), NOW, scheme.tolerance));
            });
        }
        group.finish();
    }
}

criterion_group!(signature, benches);
criterion_main!(signature);
