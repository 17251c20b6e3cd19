//! Files that are put back, removed, exchanged, or no files at all.

use std::{fs, path::Path, process::Command};

use quell_ledger::{Error, Store, verify, witnesses};

use super::{
    Attempt,
    fixture::{DATASET, charge, count, create, open},
};

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
    let refused = ledger.charge(count(1.0)).err().unwrap().to_string();
    assert!(refused.contains("removed or replaced"), "{refused}");
    fs::remove_dir_all(directory.path().join("elsewhere")).unwrap();
    assert!(ledger.charge(count(1.0)).is_err());
    assert!(ledger.receipt(1).is_err(), "no receipt is believed either");
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
    assert!(ledger.charge(count(1.0)).is_err());
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
    assert!(lease.next().unwrap().is_err());
    let entry = lease.entry();
    drop(lease);
    assert!(ledger.resume(count(1.0), entry).is_err());
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
    for statement in [
        "INSERT OR REPLACE INTO meta VALUES ('public_key', zeroblob(32))",
        "REPLACE INTO meta VALUES ('public_key', zeroblob(32))",
        "INSERT INTO meta VALUES ('public_key', zeroblob(32)) ON CONFLICT (name) DO UPDATE SET value = zeroblob(32)",
        "UPDATE OR REPLACE meta SET value = zeroblob(32)",
        "DELETE FROM meta",
    ] {
        assert!(sql(statement).is_err(), "{statement}");
    }
}

fn added_key() {
    assert!(sql("INSERT INTO meta VALUES ('another', zeroblob(32))").is_err());
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
        let granted = Store::open(database.as_path())
            .and_then(|store| store.book(DATASET))
            .is_ok_and(|book| quell_privacy::ledger::Ledger::open(book).and_then(|mut ledger| ledger.charge(count(1.0))).is_ok());
        assert!(!granted, "{name}");
        assert!(!verify(database.as_path(), &[], &[]).is_ok_and(|report| report.is_good()), "{name}");
    }
}

fn no_key() {
    let directory = tempfile::tempdir().unwrap();
    charge(&mut create(&Store::create(directory.path()).unwrap(), DATASET, Some(10.0)), 1);
    fs::remove_file(directory.path().join("signing.key")).unwrap();
    assert!(!verify(directory.path(), &[], &[]).unwrap().is_good(), "a key that is gone is only a note");
    let store = Store::open(directory.path()).unwrap();
    assert!(open(&store, DATASET).charge(count(1.0)).is_err());
    assert!(!matches!(store.book(DATASET).err(), Some(Error::KeyMissing { .. })), "reading needs no key");
}
