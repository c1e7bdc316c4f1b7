//! Group commit: what waits is committed together, and answered after.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use hookproof_runtime::database::{Database, DatabaseConfig, Durability, Schema, StoreError};
use rusqlite::Connection;
use tokio::sync::oneshot::error::TryRecvError;

use crate::given::{HOST, Hold, Home, note, pause, result, start};

/// Queues an operation behind those that are queued already.
async fn queue<T: Send + 'static>(
    database: &Database,
    operation: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
) -> tokio::sync::oneshot::Receiver<Result<T, StoreError>> {
    let database = database.clone();
    let started = start(async move { database.write(operation).await });
    pause().await;
    started
}

fn seen(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.query_row("SELECT count(*) FROM notes", [], |row| row.get(0))?)
}

#[tokio::test]
async fn an_answer_comes_only_after_the_commit_of_the_whole_group() {
    let home = Home::new();
    let database = home.notes();
    let before = Hold::writer(&database).await;
    let mut first = queue(&database, note(1)).await;
    let (mut last, operation) = Hold::new(seen);
    let second = queue(&database, operation).await;

    before.go_on();
    last.began().await;
    pause().await;
    assert_eq!(first.try_recv().map(drop), Err(TryRecvError::Empty), "it is executed only");
    assert_eq!(home.numbers(), [0_i64; 0]);
    assert_eq!(database.read(seen).await.expect("it is readable"), 0);

    last.go_on();
    result(first).await.expect("it is committed");
    assert_eq!(home.numbers(), [1]);
    assert_eq!(result(second).await.expect("it is committed"), 1, "they shared a transaction");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_of_many_writes_at_once_is_durable_when_it_is_answered() {
    let home = Home::new();
    let database = home.notes();
    let path = home.path();
    let writes: Vec<_> = (0..400)
        .map(|n| {
            let (database, path) = (database.clone(), path.clone());
            start(async move {
                database.write(note(n)).await.expect("it is committed");
                let beside = Connection::open(path).expect("the file opens");
                let sql = "SELECT count(*) FROM notes WHERE n = ?1";
                beside.query_row(sql, [n], |row| row.get::<_, i64>(0)).expect("a number")
            })
        })
        .collect();
    for write in writes {
        assert_eq!(result(write).await, 1, "another connection sees it");
    }
    assert_eq!(home.numbers(), (0..400).collect::<Vec<_>>());
}

#[tokio::test]
async fn an_operation_that_fails_neither_undoes_nor_fails_its_neighbours() {
    let home = Home::new();
    let database = home.notes();
    let hold = Hold::writer(&database).await;
    let first = queue(&database, note(1)).await;
    let gives_up = queue(&database, |connection| {
        note(2)(connection)?;
        Err::<(), _>(StoreError::Corrupt("on purpose".to_owned()))
    })
    .await;
    let clashes = queue(&database, |connection| {
        note(3)(connection)?;
        note(1)(connection)
    })
    .await;
    let last = queue(&database, |connection| {
        note(4)(connection)?;
        seen(connection)
    })
    .await;
    hold.go_on();

    result(first).await.expect("the first is committed");
    let error = result(gives_up).await.expect_err("it gave up").to_string();
    assert_eq!(error, "the store holds what cannot be understood: on purpose");
    let error = result(clashes).await.expect_err("there is a 1 already");
    assert!(matches!(error, StoreError::Sqlite(_)), "{error:?}");
    assert!(error.to_string().starts_with("the store refused: UNIQUE constraint"), "{error}");
    assert_eq!(result(last).await.expect("the last is committed"), 2, "1 and 4 are there");
    assert_eq!(home.numbers(), [1, 4]);
}

#[tokio::test]
async fn when_a_transaction_is_lost_all_in_it_are_told_that_nothing_is_stored() {
    let home = Home::new();
    let database = home.notes();
    let hold = Hold::writer(&database).await;
    let first = queue(&database, note(1)).await;
    let breaks = queue(&database, |connection| {
        note(2)(connection)?;
        Ok(connection.execute_batch("ROLLBACK")?)
    })
    .await;
    let last = queue(&database, note(3)).await;
    hold.go_on();

    for write in [first, breaks, last] {
        let error = result(write).await.expect_err("it is lost");
        assert!(matches!(error, StoreError::NotCommitted(_)), "{error:?}");
        assert!(error.to_string().starts_with("the store could not commit: "), "{error}");
    }
    assert_eq!(home.numbers(), [0_i64; 0]);
    database.write(note(4)).await.expect("the next group is as good as any");
    assert_eq!(home.numbers(), [4]);
}

#[tokio::test]
async fn when_a_commit_fails_all_in_it_are_told_that_nothing_is_stored() {
    let schema = Schema {
        migrations: &["CREATE TABLE notes (
            n INTEGER PRIMARY KEY,
            text TEXT NOT NULL,
            follows INTEGER REFERENCES notes (n) DEFERRABLE INITIALLY DEFERRED
        ) STRICT;"],
        ..crate::given::NOTES
    };
    let home = Home::new();
    let database = Database::open(&HOST, &home.config(), &schema).expect("a database");
    let follow = |n: i64, before: Option<i64>| {
        move |connection: &Connection| {
            connection.execute("INSERT INTO notes VALUES (?1, '', ?2)", (n, before))?;
            Ok(())
        }
    };
    let hold = Hold::writer(&database).await;
    let first = queue(&database, follow(1, None)).await;
    let dangles = queue(&database, follow(2, Some(9))).await;
    hold.go_on();
    for write in [first, dangles] {
        let error = result(write).await.expect_err("it is not committed").to_string();
        assert_eq!(error, "the store could not commit: FOREIGN KEY constraint failed");
    }
    database.write(follow(3, None)).await.expect("the next group is as good as any");
    assert_eq!(home.numbers(), [3]);
}

#[tokio::test]
async fn what_waits_is_committed_in_groups_of_at_most_256() {
    let home = Home::new();
    let database = home.notes();
    let hold = Hold::writer(&database).await;
    let beside = Arc::new(Mutex::new(home.beside()));
    let writes: Vec<_> = (0..600)
        .map(|n| {
            let (database, beside) = (database.clone(), beside.clone());
            start(async move {
                database
                    .write(move |connection| {
                        let beside = beside.lock().expect("no operation panics");
                        let before = seen(&beside)?.to_string();
                        connection.execute("INSERT INTO notes VALUES (?1, ?2)", (n, before))?;
                        Ok(())
                    })
                    .await
            })
        })
        .collect();
    pause().await;
    hold.go_on();
    for write in writes {
        result(write).await.expect("it is committed");
    }
    let beside = home.beside();
    let sql = "SELECT CAST(text AS INTEGER) AS before, count(*) FROM notes GROUP BY 1 ORDER BY 1";
    let mut statement = beside.prepare(sql).expect("SQL");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
    let groups: Vec<(i64, i64)> = rows.map(|row| row.expect("a row")).collect();
    assert_eq!(groups, [(0, 256), (256, 256), (512, 88)], "(committed before, in the group)");
}

#[tokio::test]
async fn no_more_than_1024_operations_wait_for_the_writer() {
    let home = Home::new();
    let database = home.notes();
    let hold = Hold::writer(&database).await;
    let mut waiting = Vec::new();
    for n in 0..1030 {
        let mut write = Box::pin(database.write(note(n)));
        // Polled once: in the queue, or before it.
        tokio::task::yield_now().await;
        std::future::poll_fn(|context| {
            assert!(write.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        waiting.push(write);
    }
    // Who is in the queue is past giving up; who waits for a place in it is not.
    drop(waiting);
    hold.go_on();
    database.write(note(-1)).await.expect("it is committed");
    let numbers = home.numbers();
    assert_eq!(numbers.len(), 1 + 1024);
    assert_eq!(numbers.last(), Some(&1023));
}

#[tokio::test]
async fn who_waits_for_a_place_in_the_queue_gets_it_once_there_is_room() {
    let home = Home::new();
    let database = home.notes();
    let hold = Hold::writer(&database).await;
    let writes: Vec<_> = (0..1500)
        .map(|n| {
            let database = database.clone();
            start(async move { database.write(note(n)).await })
        })
        .collect();
    pause().await;
    hold.go_on();
    for write in writes {
        result(write).await.expect("it is committed");
    }
    assert_eq!(home.numbers().len(), 1500);
}

#[tokio::test]
async fn an_operation_stands_when_its_caller_gives_up() {
    let home = Home::new();
    let database = home.notes();
    let hold = Hold::writer(&database).await;
    {
        let mut write = pin!(database.write(note(1)));
        std::future::poll_fn(|context| {
            assert!(write.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
    }
    hold.go_on();
    database.write(note(2)).await.expect("it is committed");
    assert_eq!(home.numbers(), [1, 2]);
}

#[tokio::test]
async fn what_is_queued_is_done_before_the_last_handle_is_gone() {
    let home = Home::new();
    let database = home.notes();
    let hold = Hold::writer(&database).await;
    let write = queue(&database, note(1)).await;
    drop(database);
    hold.go_on();
    result(write).await.expect("it is committed");
    assert_eq!(home.numbers(), [1]);
}

#[tokio::test]
async fn a_write_waits_for_a_connection_beside_that_writes() {
    let home = Home::new();
    let database = home.notes();
    let beside = home.beside();
    beside.execute_batch("BEGIN IMMEDIATE").expect("nobody writes");
    let mut write = queue(&database, note(1)).await;
    pause().await;
    assert_eq!(write.try_recv().map(drop), Err(TryRecvError::Empty));
    beside.execute_batch("ROLLBACK").expect("it ends");
    result(write).await.expect("it is committed");
}

#[tokio::test]
async fn a_commit_is_synced_unless_only_the_end_of_the_process_counts() {
    for (durability, synchronous) in [(Durability::PowerLoss, 2), (Durability::ProcessEnd, 0)] {
        let home = Home::new();
        let config = DatabaseConfig { path: home.path(), durability };
        let database = Database::open(&HOST, &config, &crate::given::NOTES).expect("a database");
        let settings = database.write(|connection| {
            let pragma = |name| connection.pragma_query_value(None, name, |row| row.get(0));
            let journal: String =
                connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
            let numbers: [i64; 2] = [pragma("synchronous")?, pragma("foreign_keys")?];
            Ok((journal, numbers))
        });
        assert_eq!(settings.await.expect("it is committed"), ("wal".to_owned(), [synchronous, 1]));
    }
}

#[tokio::test]
async fn an_operation_that_panics_is_undone_and_the_others_go_on() {
    let home = Home::new();
    let database = home.notes();
    let broken = database
        .write(|connection| -> Result<(), StoreError> {
            note(1)(connection)?;
            panic!("on purpose")
        })
        .await;
    let error = broken.expect_err("it panicked");
    assert!(error.to_string().ends_with("the operation panicked, and was undone"), "{error}");
    database.write(note(2)).await.expect("the writer goes on");
    let read = database.read(|_| -> Result<(), StoreError> { panic!("on purpose") }).await;
    assert!(matches!(read, Err(StoreError::NotCommitted(_))), "{read:?}");
    assert_eq!(database.read(seen).await.expect("the reader goes on"), 1);
    assert_eq!(home.numbers(), [2]);
}
