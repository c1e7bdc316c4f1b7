//! What may be asked, and what is answered.

use hookproof_core::time::Timestamp;
use hookproof_receiver::sqlite::rows;
use hookproof_runtime::tokio_host::TokioHost;
use http_body_util::Full;
use hyper::Request;
use serde_json::{Value, json};

use crate::given::{Disk, config, event, source_id, start, text};

#[tokio::test]
async fn effects_are_counted_by_event_and_by_source() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config()).await;
    receiver.deliver("shop", "msg_1").await;
    receiver.deliver("bank", "msg_1").await;
    receiver.deliver("shop", "a:b").await;
    receiver.until(|totals| totals.applied == 3).await;
    let check = async |path: &str, id: &str, count: u64| {
        let answer = receiver.get(path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.headers["content-type"], "application/json", "{path}");
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(body, json!({ "event_id": id, "count": count }), "{path}");
    };
    check("/effects/msg_1", "msg_1", 2).await;
    check("/effects/msg_1?source=shop", "msg_1", 1).await;
    check("/effects/msg_1?source=other", "msg_1", 0).await;
    check("/effects/msg_1?source=no.id", "msg_1", 0).await;
    check("/effects/a:b", "a:b", 1).await;
    check("/effects/a%3Ab", "a:b", 1).await;
    check("/effects/msg_2", "msg_2", 0).await;
    check("/effects/no.id", "no.id", 0).await;
    receiver.stop().await;
}

#[tokio::test]
async fn a_question_that_would_be_misunderstood_is_refused() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config()).await;
    let answer = receiver.get("/effects/msg_1?sorce=shop").await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.headers["content-type"], "application/problem+json");
    let problem: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        problem,
        json!({
            "type": "about:blank",
            "title": "Bad Request",
            "status": 400,
            "detail": "the query may hold one parameter: `source`, with the id of a source",
        })
    );
    for path in ["/effects/", "/effects/a/b", "/effect", "/health/x", "/effects/%zz"] {
        assert_eq!(receiver.get(path).await.status, 404, "{path}");
        let post = Request::post(path).body(Full::default()).unwrap();
        assert_eq!(receiver.send(post).await.status, 404, "there is nothing to post to at {path}");
    }
    for path in ["/effects", "/effects/msg_1", "/health"] {
        let post = Request::post(path).body(Full::default()).unwrap();
        assert_eq!(receiver.send(post).await.status, 405, "{path}");
    }
    receiver.stop().await;
}

#[tokio::test]
async fn the_totals_show_a_second_effect_if_there_ever_is_one() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, config()).await;
    receiver.deliver("shop", "msg_1").await;
    receiver.deliver("shop", "msg_1").await;
    receiver.deliver("shop", "msg_2").await;
    receiver.until(|totals| totals.applied == 2).await;
    let second = |c: &rusqlite::Connection| {
        let at = Timestamp::from_millis(1);
        rows::insert_effect(c, &source_id("shop"), &event("msg_1"), at, "again")
    };
    receiver.store.database().write(second).await.unwrap();

    let answer = receiver.get("/effects").await;
    assert_eq!(
        text(&answer),
        r#"{"events":2,"pending":0,"claimed":0,"applied":2,"superseded":0,"dead":0,"effects":3,"effects_twice":1,"to_reconcile":0,"duplicates":1}"#
    );
    assert_eq!(receiver.get("/health").await.status, 200);
    receiver.stop().await;
}
