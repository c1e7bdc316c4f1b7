//! Opening a database: whose it is, who has it, and which version it has.

use std::fs;

use hookproof_runtime::database::{Database, DatabaseConfig, Durability, OpenError, Schema};
use rusqlite::Connection;

use crate::given::{HOST, Home, NOTES, note};

const TWO: Schema = Schema {
    migrations: &[NOTES.migrations[0], "ALTER TABLE notes ADD COLUMN seen INTEGER DEFAULT 7;"],
    ..NOTES
};

/// The third cannot be made: the table is there already.
const BROKEN: Schema = Schema {
    migrations: &[TWO.migrations[0], TWO.migrations[1], "CREATE TABLE notes (n);"],
    ..NOTES
};

fn pragma(connection: &Connection, name: &str) -> i64 {
    connection.pragma_query_value(None, name, |row| row.get(0)).expect("a number")
}

#[tokio::test]
async fn a_new_file_gets_the_schema_its_version_and_its_mark() {
    let home = Home::new();
    let _database = Database::open(&HOST, &home.config(), &TWO).expect("a database");
    let beside = home.beside();
    assert_eq!(pragma(&beside, "user_version"), 2);
    assert_eq!(pragma(&beside, "application_id"), 0x6e6f_7465);
    beside.execute_batch("SELECT n, text, seen FROM notes").expect("both migrations were made");
}

#[tokio::test]
async fn what_was_written_is_there_when_the_file_is_opened_again() {
    let home = Home::new();
    home.notes().write(note(1)).await.expect("it is committed");
    let database = home.reopen(&NOTES).await.expect("it opens again");
    database.write(note(2)).await.expect("it is committed");
    assert_eq!(home.numbers(), [1, 2]);
}

#[tokio::test]
async fn an_older_file_is_migrated_and_keeps_its_rows() {
    let home = Home::new();
    home.notes().write(note(1)).await.expect("it is committed");
    let database = home.reopen(&TWO).await.expect("it is migrated");
    let seen = database.read(|connection| {
        Ok(connection.query_row("SELECT n, seen FROM notes", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
        })?)
    });
    assert_eq!(seen.await.expect("it is readable"), (1, 7));
    assert_eq!(pragma(&home.beside(), "user_version"), 2);
}

#[tokio::test]
async fn a_migration_that_fails_leaves_the_file_as_it_was() {
    let home = Home::new();
    home.notes().write(note(1)).await.expect("it is committed");
    let error = home.reopen(&BROKEN).await.expect_err("it cannot be migrated");
    assert!(matches!(error, OpenError::Refused { .. }), "{error:?}");
    assert!(error.to_string().contains("table notes already exists"), "{error}");
    assert_eq!(pragma(&home.beside(), "user_version"), 1, "not half migrated");
    home.beside().execute_batch("SELECT seen FROM notes").expect_err("nor a half schema");
    home.reopen(&TWO).await.expect("a better build can migrate it");
    assert_eq!(home.numbers(), [1]);
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused() {
    let home = Home::new();
    drop(home.reopen(&TWO).await.expect("a database"));
    let error = home.reopen(&NOTES).await.expect_err("it is newer");
    assert!(matches!(error, OpenError::Newer { found: 2, known: 1, .. }), "{error:?}");
    let message = format!(
        "{} has schema version 2, and this build knows versions up to 1; use the newer build that \
         wrote it",
        home.path().display()
    );
    assert_eq!(error.to_string(), message);
    home.reopen(&TWO).await.expect("the newer build still opens it");
}

#[tokio::test]
async fn a_file_of_another_kind_is_refused_each_time_and_not_touched() {
    let foreign: [&str; 3] = [
        "CREATE TABLE theirs (n);",
        "PRAGMA application_id = 7;",
        "PRAGMA user_version = 1; CREATE TABLE notes (n);",
    ];
    for sql in foreign {
        let home = Home::new();
        home.beside().execute_batch(sql).expect("somebody else's file");
        let before = fs::read(home.path()).expect("it is readable");
        for _ in 0..2 {
            let error =
                Database::open(&HOST, &home.config(), &NOTES).expect_err("it is not for notes");
            assert!(matches!(error, OpenError::Foreign { .. }), "{sql}: {error:?}");
            let message = format!(
                "{} is not a hookproof notes database; give another --database",
                home.path().display()
            );
            assert_eq!(error.to_string(), message);
        }
        assert!(fs::read(home.path()).expect("it is readable") == before, "{sql}: it is changed");
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_not_touched() {
    let home = Home::new();
    let letter = "to whom it may concern\n".repeat(100);
    fs::write(home.path(), &letter).expect("a file");
    let error = Database::open(&HOST, &home.config(), &NOTES).expect_err("it is a letter");
    let message = format!("cannot open {}: file is not a database", home.path().display());
    assert_eq!(error.to_string(), message);
    assert_eq!(fs::read_to_string(home.path()).expect("it is readable"), letter);
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_told() {
    let home = Home::new();
    let path = home.path().join("deeper").join("notes.db");
    let config = DatabaseConfig { path: path.clone(), durability: Durability::PowerLoss };
    let error = Database::open(&HOST, &config, &NOTES).expect_err("there is no such directory");
    let message = error.to_string();
    let expected = format!("cannot open {}: ", path.display());
    assert!(message.starts_with(&expected), "{message}");
}

#[tokio::test]
async fn a_file_is_open_once_until_the_last_handle_is_gone() {
    let home = Home::new();
    let database = home.notes();
    let clone = database.clone();
    let check = || {
        let error = Database::open(&HOST, &home.config(), &NOTES).expect_err("it is in use");
        let message = format!(
            "{} is in use by another process; stop it, or give another --database",
            home.path().display()
        );
        assert_eq!(error.to_string(), message);
    };
    check();
    drop(database);
    check();
    clone.write(note(1)).await.expect("the other handle is as good");
    drop(clone);
    home.reopen(&NOTES).await.expect("it is free");
}
