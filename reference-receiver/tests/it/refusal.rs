//! What is refused leaves nothing behind and gives nothing away.

use hookproof_core::id::ID_BYTES_MAX;
use hookproof_core::signature::{ID_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, sign};
use hookproof_core::time::{Millis, Timestamp};
use hookproof_receiver::effect::Ledger;
use hookproof_receiver::sqlite::SqliteInbox;
use hookproof_receiver::store::{InboxStore as _, Totals};
use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;

use crate::given::{BODY, Disk, Fused, Post, Running, config, secrets, start, text};

#[tokio::test]
async fn whatever_is_wrong_with_a_signature_the_answer_is_the_same_and_nothing_is_stored() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config()).await;
    let first = receiver.send(good().without(SIGNATURE_HEADER).request()).await;
    assert_eq!(first.status, 401);
    assert_eq!(first.headers["content-type"], "application/problem+json");
    for (what, post) in unverifiable() {
        let answer = receiver.send(post.request()).await;
        assert_eq!(answer.status, first.status, "{what}");
        assert_eq!(answer.headers, first.headers, "{what}");
        assert_eq!(text(&answer), text(&first), "{what}");
    }
    assert_eq!(receiver.store.totals().await.unwrap(), Totals::default());
    receiver.stop().await;
}

fn good() -> Post {
    Post::new("shop", "msg_1", BODY)
}

fn unverifiable() -> Vec<(&'static str, Post)> {
    let now = TokioHost.now();
    let at = |seconds: i64| {
        let then = Timestamp::from_secs(now.as_secs() + seconds);
        Post::at("shop", "msg_1", then, BODY)
    };
    let good_signature = good().header(SIGNATURE_HEADER).to_owned();
    let same = |name| (name, good().header(name).to_owned());
    let [same_id, same_timestamp, same_signature] =
        [ID_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER].map(same);
    vec![
        ("no headers", Post { headers: vec![], ..good() }),
        ("no id", good().without(ID_HEADER)),
        ("no timestamp", good().without(TIMESTAMP_HEADER)),
        ("empty id", good().replacing(ID_HEADER, "")),
        ("empty signature", good().replacing(SIGNATURE_HEADER, "")),
        ("no MAC", good().replacing(SIGNATURE_HEADER, "v1,")),
        ("other version", good().replacing(SIGNATURE_HEADER, good_signature.replace("v1,", "v2,"))),
        ("id twice", good().with(same_id.0, same_id.1)),
        ("timestamp twice", good().with(same_timestamp.0, same_timestamp.1)),
        ("signature twice", good().with(same_signature.0, same_signature.1)),
        ("other id", good().replacing(ID_HEADER, "msg_2")),
        ("other body", Post { body: b"{}".to_vec(), ..good() }),
        ("other source", Post { path: "/hooks/bank".to_owned(), ..good() }),
        ("too old", at(-310)),
        ("too new", at(310)),
        ("timestamp in ms", at(now.as_secs() * 999)),
        ("no number", good().replacing(TIMESTAMP_HEADER, "now")),
        ("unusable id, no signature", good().replacing(ID_HEADER, "a.b")),
        ("no JSON, no signature", Post { body: b"{".to_vec(), ..good() }),
    ]
}

#[tokio::test]
async fn a_timestamp_within_the_tolerance_is_accepted_on_either_side() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config()).await;
    for (id, seconds) in [("old", -270), ("new", 270)] {
        let then = Timestamp::from_secs(TokioHost.now().as_secs() + seconds);
        assert_eq!(receiver.send(Post::at("shop", id, then, BODY).request()).await.status, 202);
    }
    receiver.stop().await;
}

#[tokio::test]
async fn a_source_has_its_own_tolerance() {
    let mut config = config();
    config.sources[1].verifier.tolerance = Some(Millis::from_secs(60));
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config).await;
    let then = Timestamp::from_secs(TokioHost.now().as_secs() - 120);
    for (source, status) in [("shop", 202), ("bank", 401)] {
        let post = Post::at(source, "msg_1", then, BODY);
        assert_eq!(receiver.send(post.request()).await.status, status, "{source}");
    }
    receiver.stop().await;
}

#[tokio::test]
async fn a_forged_request_does_not_use_up_the_id() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config()).await;
    let forged = good().replacing(SIGNATURE_HEADER, sign(&secrets("forger"), "msg_1", 1, BODY));
    assert_eq!(receiver.send(forged.request()).await.status, 401);
    assert_eq!(receiver.send(good().request()).await.status, 202);
    receiver.until(|totals| totals.applied == 1).await;
    receiver.stop().await;
}

#[tokio::test]
async fn a_signed_event_id_of_a_bad_form_is_a_bad_request() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config()).await;
    for id in ["a b", "a/b", "a~b", &"x".repeat(ID_BYTES_MAX + 1)] {
        let answer = receiver.send(Post::new("shop", id, BODY).request()).await;
        assert_eq!(answer.status, 400, "{id}");
        assert!(text(&answer).contains("`webhook-id`: an identifier may"), "{}", text(&answer));
    }
    assert_eq!(receiver.store.totals().await.unwrap(), Totals::default());
    receiver.stop().await;
}

#[tokio::test]
async fn an_event_id_that_could_be_split_elsewhere_is_refused_like_a_forged_one() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config()).await;
    let answer = receiver.send(Post::new("shop", "a.b", BODY).request()).await;
    assert_eq!(answer.status, 401);
    assert_eq!(receiver.store.totals().await.unwrap(), Totals::default());
    receiver.stop().await;
}

#[tokio::test]
async fn a_path_that_is_not_there_and_a_method_that_it_does_not_take_are_said_so() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config()).await;
    let moved = |path: &str| Post { path: path.to_owned(), ..good() }.request();
    let check = async |method: &str, path: &str, status: u16, allow: Option<&str>| {
        let mut request = moved(path);
        *request.method_mut() = method.parse().unwrap();
        let answer = receiver.send(request).await;
        let found = answer.headers.get("allow").map(|value| value.to_str().unwrap());
        assert_eq!((answer.status, found), (status, allow), "{method} {path}");
    };
    check("POST", "/hooks/nobody", 404, None).await;
    check("GET", "/hooks/nobody", 404, None).await;
    check("POST", "/hooks/shop/more", 404, None).await;
    check("POST", "/hooks/", 404, None).await;
    check("POST", "/hooks", 404, None).await;
    check("POST", "/", 404, None).await;
    check("GET", "/hooks/shop", 405, Some("POST")).await;
    check("PUT", "/hooks/shop", 405, Some("POST")).await;
    check("DELETE", "/hooks/shop", 405, Some("POST")).await;
    check("HEAD", "/hooks/shop", 405, Some("POST")).await;
    check("POST", "/effects", 405, Some("GET, HEAD")).await;
    check("POST", "/health", 405, Some("GET, HEAD")).await;
    check("POST", "/hooks/sh%6Fp", 202, None).await;
    assert_one_event(&receiver).await;
    receiver.stop().await;
}

async fn assert_one_event(receiver: &Running<SqliteInbox<TokioHost>>) {
    assert_eq!(receiver.until(|totals| totals.applied == 1).await.events, 1);
}

#[tokio::test]
async fn how_old_a_request_is_the_wall_clock_says() {
    let (disk, host) = (Disk::new(), Fused::new(None));
    host.set_wall_ahead(-3_600_000);
    let store = disk.open_with(host.clone(), Ledger).await;
    let receiver = start(host, store, config()).await;
    let an_hour_ago = Timestamp::from_secs(TokioHost.wall().as_secs() - 3_600);
    let by_the_wall = Post::at("shop", "msg_1", an_hour_ago, BODY).request();
    assert_eq!(receiver.send(by_the_wall).await.status, 202);
    let by_what_has_passed = Post::new("shop", "msg_2", BODY).request();
    assert_eq!(receiver.send(by_what_has_passed).await.status, 401);
    receiver.stop().await;
}
