//! Files that are put back, removed, exchanged, or no files at all.

use std::{fs, path::Path, process::Command};

use quell_ledger::{Error, Store, verify, witnesses};
use quell_privacy::ledger::Ledger;

use super::{Attempt, refused};
use crate::fixture::{DATASET, charge, count, create, open};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("a ledger that is removed in the middle of a run", removed),
    ("a ledger that is exchanged for a copy in the middle of a run", exchanged),
    ("a ledger that is removed before a run goes on", removed_before_resuming),
    ("an older copy, with what was released since", older_copy),
    ("the key of a ledger, replaced by SQL", replaced_key),
    ("another key, added by SQL", added_key),
    ("a pipe in place of a ledger, its log, its seal or its key", pipes),
    ("a key that is gone", no_key),
];

fn removed() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().join(".quell");
    fs::create_dir(&home).unwrap();
    let store = Store::create(home.as_path()).unwrap();
    let mut ledger = create(&store, DATASET, None);
    charge(&mut ledger, 1);
    fs::rename(&home, directory.path().join("elsewhere")).unwrap();
    refused(ledger.charge(count(1.0)), "removed or replaced");
    fs::remove_dir_all(directory.path().join("elsewhere")).unwrap();
    refused(ledger.charge(count(1.0)), "removed or replaced");
    // No receipt is believed either.
    refused(ledger.receipt(1), "removed or replaced");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn exchanged() {
    let directory = tempfile::tempdir().unwrap();
    let (home, saved) = (directory.path().join(".quell"), directory.path().join("saved"));
    fs::create_dir(&home).unwrap();
    drop(create(&Store::create(home.as_path()).unwrap(), DATASET, Some(10.0)));
    copy(&home, &saved);
    let mut ledger = open(&Store::open(home.as_path()).unwrap(), DATASET);
    charge(&mut ledger, 2);
    fs::rename(&home, directory.path().join("away")).unwrap();
    fs::rename(&saved, &home).unwrap();
    refused(ledger.charge(count(1.0)), "removed or replaced");
    drop(ledger);
    // The copy is as it was: nothing of the other ledger was written beside it.
    assert!(verify(home.as_path(), &[], &[]).unwrap().is_good());
}

fn removed_before_resuming() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().join(".quell");
    fs::create_dir(&home).unwrap();
    let store = Store::create(home.as_path()).unwrap();
    let mut ledger = create(&store, DATASET, None);
    let mut lease = ledger.reserve(count(1.0), 4).unwrap().in_blocks_of(1);
    assert!(lease.next().unwrap().is_ok());
    fs::remove_dir_all(&home).unwrap();
    refused(lease.next().unwrap(), "removed or replaced");
    let entry = lease.entry();
    drop(lease);
    refused(ledger.resume(count(1.0), entry), "removed or replaced");
}

fn older_copy() {
    let directory = tempfile::tempdir().unwrap();
    let (home, saved) = (directory.path().join(".quell"), directory.path().join("saved"));
    fs::create_dir(&home).unwrap();
    drop(create(&Store::create(home.as_path()).unwrap(), DATASET, Some(10.0)));
    copy(&home, &saved);
    let receipt = charge(&mut open(&Store::open(home.as_path()).unwrap(), DATASET), 1).remove(0);
    // What was released lies in the project with its receipt.
    fs::create_dir_all(directory.path().join("runs/one")).unwrap();
    let answer = serde_json::json!({"answer": 1, "receipt": receipt});
    fs::write(directory.path().join("runs/one/paid.json"), answer.to_string()).unwrap();
    fs::remove_dir_all(&home).unwrap();
    fs::rename(&saved, &home).unwrap();
    assert!(verify(home.as_path(), &[], &[]).unwrap().is_good(), "by itself the copy is sound");
    let found = witnesses(directory.path());
    let receipts: Vec<_> = found.receipts.into_iter().map(|(_, receipt)| receipt).collect();
    assert_eq!(receipts.len(), 1);
    assert!(!verify(home.as_path(), &receipts, &[]).unwrap().is_good());
}

fn sql(statement: &str) -> Result<(), rusqlite::Error> {
    let directory = tempfile::tempdir().unwrap();
    drop(create(&Store::create(directory.path()).unwrap(), DATASET, None));
    rusqlite::Connection::open(directory.path().join("ledger.db")).unwrap().execute_batch(statement)
}

fn replaced_key() {
    const REPLACED: &str = "there is one key, and it is never replaced";
    for (statement, because) in [
        ("INSERT OR REPLACE INTO meta VALUES ('public_key', zeroblob(32))", REPLACED),
        ("REPLACE INTO meta VALUES ('public_key', zeroblob(32))", REPLACED),
        (
            "INSERT INTO meta VALUES ('public_key', zeroblob(32)) ON CONFLICT (name) DO UPDATE SET value = zeroblob(32)",
            REPLACED,
        ),
        ("UPDATE OR REPLACE meta SET value = zeroblob(32)", "the key is never changed"),
        ("DELETE FROM meta", "the key is never removed"),
    ] {
        refused(sql(statement), because);
    }
}

fn added_key() {
    refused(
        sql("INSERT INTO meta VALUES ('another', zeroblob(32))"),
        "there is one key, and it is never replaced",
    );
}

fn pipes() {
    for name in ["ledger.db", "ledger.db-wal", "ledger.db.seal", "signing.key"] {
        let directory = tempfile::tempdir().unwrap();
        drop(create(&Store::create(directory.path()).unwrap(), DATASET, None));
        let path = directory.path().join(name);
        let _ = fs::remove_file(&path);
        if !Command::new("mkfifo").arg(&path).status().is_ok_and(|made| made.success()) {
            return eprintln!("NOT RUN: pipes, because mkfifo is not installed");
        }
        // Would wait for ever, if it were read.
        let database = directory.path().join("ledger.db");
        let book = Store::open(database.as_path())
            .and_then(|store| store.book(DATASET))
            .map_err(|error| error.to_string());
        let charged = book.and_then(|book| {
            let charged = Ledger::open(book).and_then(|mut ledger| ledger.charge(count(1.0)).map(drop));
            charged.map_err(|error| error.to_string())
        });
        refused(charged, "is not a regular file");
        assert!(!verify(database.as_path(), &[], &[]).is_ok_and(|report| report.is_good()), "{name}");
    }
}

fn no_key() {
    let directory = tempfile::tempdir().unwrap();
    charge(&mut create(&Store::create(directory.path()).unwrap(), DATASET, Some(10.0)), 1);
    fs::remove_file(directory.path().join("signing.key")).unwrap();
    assert!(!verify(directory.path(), &[], &[]).unwrap().is_good(), "a key that is gone is only a note");
    let store = Store::open(directory.path()).unwrap();
    refused(open(&store, DATASET).charge(count(1.0)), "signing.key is missing");
    assert!(!matches!(store.book(DATASET).err(), Some(Error::KeyMissing { .. })), "reading needs no key");
}
