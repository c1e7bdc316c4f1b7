//! Reads: beside the writer, each on one snapshot.

use hookproof_runtime::database::StoreError;
use rusqlite::Connection;

use crate::given::{Hold, Home, note, result, start};

fn count(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.query_row("SELECT count(*) FROM notes", [], |row| row.get(0))?)
}

#[tokio::test]
async fn a_read_sees_what_was_answered_before_it() {
    let home = Home::new();
    let database = home.notes();
    for n in 1..=5 {
        database.write(note(n)).await.expect("it is committed");
        assert_eq!(database.read(count).await.expect("it is readable"), n);
    }
}

#[tokio::test]
async fn a_read_sees_one_snapshot_whatever_is_committed_meanwhile() {
    let home = Home::new();
    let database = home.notes();
    database.write(note(1)).await.expect("it is committed");
    let (mut hold, between) = Hold::new(|_| Ok(()));
    let read = {
        let database = database.clone();
        start(async move {
            database
                .read(move |connection| {
                    let before = count(connection)?;
                    between(connection)?;
                    Ok((before, count(connection)?))
                })
                .await
        })
    };
    hold.began().await;
    database.write(note(2)).await.expect("a read is in no writer's way");
    hold.go_on();
    assert_eq!(result(read).await.expect("it is readable"), (1, 1));
    assert_eq!(database.read(count).await.expect("it is readable"), 2, "the next one sees it");
}

#[tokio::test]
async fn a_read_is_answered_while_the_writer_is_busy() {
    let home = Home::new();
    let database = home.notes();
    let hold = Hold::writer(&database).await;
    assert_eq!(database.read(count).await.expect("it is readable"), 0);
    hold.go_on();
}

#[tokio::test]
async fn a_read_cannot_write() {
    let home = Home::new();
    let database = home.notes();
    let error = database.read(note(1)).await.expect_err("it is refused").to_string();
    assert_eq!(error, "the store refused: attempt to write a readonly database");
    assert_eq!(home.numbers(), [0_i64; 0]);
}

#[tokio::test]
async fn a_read_that_fails_is_in_nobodys_way() {
    let home = Home::new();
    let database = home.notes();
    let failed = database.read(|connection| Ok(connection.execute_batch("SELECT * FROM none")?));
    assert!(matches!(failed.await, Err(StoreError::Sqlite(_))));
    database.write(note(1)).await.expect("it is committed");
    assert_eq!(database.read(count).await.expect("it is readable"), 1);
}
