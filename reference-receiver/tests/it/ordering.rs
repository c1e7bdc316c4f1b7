//! Events about versions of entities: whatever the order of arrival, an entity ends at its highest
//! version, and what is late is acknowledged and has no effect.

use hookproof_core::inbox::InboxRule;
use hookproof_core::ordering::Late;
use hookproof_core::time::Millis;
use hookproof_receiver::config::{ReceiverConfig, Source};
use hookproof_receiver::ordering::{OrderingRule, Versioned};
use hookproof_receiver::sqlite::SqliteInbox;
use hookproof_receiver::store::{Applied, InboxStore as _, Totals, Work};
use hookproof_runtime::tokio_host::TokioHost;

use crate::given::{
    Disk, FailsFirst, Post, Running, config, moment, moment_in, rule, source, start, verified,
};

/// A source whose events carry versions.
fn ordered(late: &str) -> ReceiverConfig {
    let rule = format!("entity = '/data/id'\nversion = '/data/version'\nlate = '{late}'");
    let ordering: OrderingRule = toml::from_str(&rule).expect("a rule");
    let shop = Source { ordering: Some(ordering), ..source("shop") };
    ReceiverConfig { sources: vec![shop, source("bank")], ..config() }
}

/// An event whose effect tells its entity and version.
fn event_of(entity: &str, version: u64) -> String {
    format!(r#"{{"type":"{entity}{version}","data":{{"id":"{entity}","version":{version}}}}}"#)
}

/// What took effect, in that order.
async fn effects(store: &SqliteInbox<TokioHost>) -> Vec<String> {
    column(store, "SELECT summary FROM effects ORDER BY id").await
}

async fn column(store: &SqliteInbox<TokioHost>, sql: &'static str) -> Vec<String> {
    let read = store.database().read(move |connection| {
        let mut statement = connection.prepare(sql)?;
        let rows = statement.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    });
    read.await.expect("it is readable")
}

/// Sends these, each only once the one before is worked off; every one is accepted.
async fn send_in_turn(receiver: &Running<SqliteInbox<TokioHost>>, events: &[(&str, u64)]) {
    for (entity, version) in events {
        let id = format!("msg_{entity}{version}");
        let post = Post::new("shop", &id, event_of(entity, *version).as_bytes());
        let answer = receiver.send(post.request()).await;
        assert_eq!(answer.status, 202, "what is late is acknowledged like anything else");
        receiver.until(|totals| totals.pending + totals.claimed == 0).await;
    }
}

#[tokio::test]
async fn whatever_the_order_of_arrival_an_entity_ends_at_its_highest_version() {
    for order in [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]] {
        let disk = Disk::new();
        let receiver = start(TokioHost, disk.open().await, ordered("ignore")).await;
        send_in_turn(&receiver, &order.map(|version| ("a", version))).await;

        let mut highest = 0;
        let mut newer = Vec::new();
        for version in order {
            if version > highest {
                highest = version;
                newer.push(format!("a{version}"));
            }
        }
        let applied = u64::try_from(newer.len()).expect("few");
        assert_eq!(effects(&receiver.store).await, newer, "{order:?}");
        let totals = receiver.until(|_| true).await;
        let superseded = 3 - applied;
        let expected =
            Totals { events: 3, applied, superseded, effects: applied, ..Totals::default() };
        assert_eq!(totals, expected, "{order:?}");
        assert_eq!(column(&receiver.store, "SELECT event_id FROM entities").await, ["msg_a3"]);
        receiver.stop().await;
    }
}

#[tokio::test]
async fn the_order_holds_over_a_restart_and_for_each_entity_by_itself() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, ordered("ignore")).await;
    send_in_turn(&receiver, &[("a", 5), ("b", 2)]).await;
    receiver.stop().await;
    let receiver = start(TokioHost, disk.open().await, ordered("ignore")).await;
    send_in_turn(&receiver, &[("a", 4), ("b", 3), ("a", 6), ("b", 1)]).await;
    assert_eq!(effects(&receiver.store).await, ["a5", "b2", "b3", "a6"]);
    let phases = column(&receiver.store, "SELECT phase FROM inbox ORDER BY seq").await;
    let (applied, late) = ("applied", "superseded");
    assert_eq!(phases, [applied, applied, late, applied, applied, late]);
    receiver.stop().await;
}

#[tokio::test]
async fn what_is_late_asks_for_its_entity_to_be_fetched_again_if_the_source_is_set_so() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, ordered("reconcile")).await;
    send_in_turn(&receiver, &[("a", 7), ("a", 6)]).await;
    // The same version under another id is a repetition, and never late.
    let post = Post::new("shop", "msg_again", event_of("a", 7).as_bytes());
    receiver.send(post.request()).await;
    let totals = receiver.until(|totals| totals.superseded == 2).await;
    assert_eq!((totals.to_reconcile, totals.effects), (1, 1));
    let asked = "SELECT source || ' ' || entity || ' ' || event_id FROM reconciliations";
    assert_eq!(column(&receiver.store, asked).await, ["shop a msg_a6"]);
    receiver.stop().await;
}

#[tokio::test]
async fn an_event_without_a_version_and_a_source_without_a_rule_apply_as_they_come() {
    let disk = Disk::new();
    let receiver = start(TokioHost, disk.open().await, ordered("ignore")).await;
    for (source, id, body) in [
        ("shop", "msg_1", event_of("a", 2)),
        ("shop", "msg_2", r#"{"type":"none","data":{"id":"a"}}"#.to_owned()),
        ("bank", "msg_3", event_of("a", 2)),
        ("bank", "msg_4", event_of("a", 1)),
    ] {
        receiver.send(Post::new(source, id, body.as_bytes()).request()).await;
        receiver.until(|totals| totals.pending + totals.claimed == 0).await;
    }
    assert_eq!(effects(&receiver.store).await, ["a2", "none", "a2", "a1"]);
    receiver.stop().await;
}

#[tokio::test]
async fn a_version_that_is_no_number_is_never_applied_and_ends_as_a_dead_letter() {
    let disk = Disk::new();
    let config = ReceiverConfig { inbox: rule(2, Millis::from_secs(30)), ..ordered("ignore") };
    let receiver = start(TokioHost, disk.open().await, config).await;
    let body = br#"{"type":"a","data":{"id":"a","version":"newest"}}"#;
    let answer = receiver.send(Post::new("shop", "msg_1", body).request()).await;
    assert_eq!(answer.status, 202);
    let totals = receiver.until(|totals| totals.dead == 1).await;
    assert_eq!(totals.effects, 0);
    receiver.stop().await;
}

async fn claimed<S: hookproof_receiver::store::InboxStore>(store: &S, id: &str) -> Work {
    store.record(verified("shop", id)).await.expect("it is recorded");
    store.claim(moment()).await.expect("it is claimed").expect("one is due")
}

fn version(version: u64) -> Option<Versioned> {
    Some(Versioned { entity: "a".to_owned(), version, late: Late::Ignore })
}

#[tokio::test]
async fn a_version_is_remembered_in_the_transaction_of_its_effect_and_in_no_other() {
    let disk = Disk::new();
    let store = disk.open_with(TokioHost, FailsFirst::new(1)).await;
    let newer = claimed(&store, "msg_2").await;
    let failed = store.apply(&newer, version(2), moment()).await.expect("an answer");
    assert!(matches!(failed, Applied::Failed(_)), "{failed:?}");
    // The newer effect is undone, so the older version is the newest that there is.
    let older = claimed(&store, "msg_1").await;
    let applied = store.apply(&older, version(1), moment()).await.expect("an answer");
    assert_eq!(applied, Applied::Done);
    let applied = store.apply(&newer, version(2), moment()).await.expect("an answer");
    assert_eq!(applied, Applied::Done);
}

#[tokio::test]
async fn a_claim_that_was_taken_over_neither_applies_nor_supersedes() {
    let disk = Disk::new();
    let store = disk.open().await;
    let newer = claimed(&store, "msg_2").await;
    assert_eq!(store.apply(&newer, version(2), moment()).await.expect("it applies"), Applied::Done);
    let late = claimed(&store, "msg_1").await;
    let lost = moment_in(Millis::from_hours(1), &InboxRule::default());
    assert_eq!(store.release_expired(lost).await.expect("it is released"), 1);
    let answer = store.apply(&late, version(1), moment()).await.expect("an answer");
    assert_eq!(answer, Applied::TakenOver);
    assert_eq!(
        column(&store, "SELECT phase FROM inbox ORDER BY seq").await,
        ["applied", "pending"]
    );
}
