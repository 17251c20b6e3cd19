//! What a book promises, tested on SQLite and on PostgreSQL by the same functions.

use std::path::Path;

use super::fixture::{
    DATASET, budget, charge, count, create,
    forger::{Forged, digits},
    open, race, room_for, run_race, terms, worker_command, worker_role,
};
use quell_ledger::{Error, Location, Problem, Store, Volume, verify_export};
use quell_privacy::ledger::{Book, Ledger, Line, Note, Permit, Receipt};

/// A place for a store, and a directory for what belongs to it.
struct Place<'a> {
    location: Location,
    address: String,
    directory: &'a Path,
    /// Runs SQL as somebody with another program.
    sql: &'a (dyn Fn(&str) -> Result<(), String> + Sync),
    prefix: &'a str,
}

impl Place<'_> {
    fn key(&self) -> std::path::PathBuf {
        self.directory.join("signing.key")
    }

    fn store(&self) -> Store {
        Store::create_with_key(self.location.clone(), &self.key()).unwrap()
    }
}

type Test = fn(&Place);

const TESTS: [(&str, Test); 11] = [
    ("words_are_kept_with_charges_and_change_nothing", words_are_kept_with_charges_and_change_nothing),
    ("lines_are_read_as_they_were_written", lines_are_read_as_they_were_written),
    ("a_number_is_given_once", a_number_is_given_once),
    ("the_cap_holds_and_a_raise_is_written_down", the_cap_holds_and_a_raise_is_written_down),
    ("a_killed_run_resumes", a_killed_run_resumes),
    ("other_programs_cannot_change_a_ledger", other_programs_cannot_change_a_ledger),
    ("without_its_key_nothing_is_written", without_its_key_nothing_is_written),
    ("exports_and_receipts_find_what_is_missing", exports_and_receipts_find_what_is_missing),
    ("lines_that_lie_are_found", lines_that_lie_are_found),
    ("stores_made_at_the_same_time_are_one", stores_made_at_the_same_time_are_one),
    ("processes_that_race_get_exactly_the_cap", processes_that_race_get_exactly_the_cap),
];

#[test]
fn a_file_keeps_a_book() {
    for (name, test) in TESTS {
        println!("{name}");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger.db");
        let sql = |sql: &str| {
            let connection = rusqlite::Connection::open(&path).unwrap();
            connection.execute_batch(&format!("BEGIN; {sql}; COMMIT")).map_err(|error| error.to_string())
        };
        let address = path.to_str().unwrap().to_owned();
        test(&Place {
            location: path.as_path().into(),
            address,
            directory: directory.path(),
            sql: &sql,
            prefix: "",
        });
    }
}

#[cfg(feature = "postgres")]
#[test]
fn a_server_keeps_a_book() {
    let server = match super::fixture::server::Server::start() {
        Ok(server) => server,
        Err(why) => return eprintln!("NOT RUN: the tests on PostgreSQL, because {why}"),
    };
    for (name, test) in TESTS {
        println!("{name}");
        let directory = tempfile::tempdir().unwrap();
        let url = server.database(name);
        let sql = |sql: &str| {
            let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
            client.batch_execute(&format!("BEGIN; {sql}; COMMIT")).map_err(|error| format!("{error:?}"))
        };
        test(&Place {
            location: url.as_str().into(),
            address: url.clone(),
            directory: directory.path(),
            sql: &sql,
            prefix: "quell_",
        });
    }
}

#[test]
fn a_store_is_a_file_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(Store::open(directory.path()).err(), Some(Error::NotFound { .. })));
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "opening makes nothing");
    assert!(Store::create("").is_err(), "SQLite would keep it in memory");
    assert!(Store::create(directory.path().join("no/such/directory").as_path()).is_err());
    let other = directory.path().join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    let before = std::fs::read(&other).unwrap();
    assert!(matches!(Store::create(other.as_path()).err(), Some(Error::NotALedger { .. })));
    assert_eq!(std::fs::read(&other).unwrap(), before, "what is not ours is left alone");
    std::fs::write(&other, "not a database at all, but a text of some length").unwrap();
    assert!(matches!(Store::open(other.as_path()).err(), Some(Error::Sqlite { .. })));
    // Names that SQLite takes for databases in memory are files to us.
    for name in [":memory:", "file::memory:", "file:x?mode=memory"] {
        let status = worker_command(WORKER, "create", name, &directory.path().join("out"))
            .current_dir(&directory)
            .status()
            .unwrap();
        assert!(status.success() && directory.path().join(name).is_file(), "{name}");
    }
}

/// The test that a worker process runs.
const WORKER: &str = "book::worker";

#[test]
fn worker() {
    let Some((role, place, out)) = worker_role() else { return };
    if role == "create" {
        return drop(create(&Store::create(place.as_str()).unwrap(), &place, None));
    }
    race(&Store::open_with_key(place.as_str(), &out.with_file_name("signing.key")).unwrap(), &out);
}

/// The words of a charge are in the chain, and the state is that of a ledger without words.
fn words_are_kept_with_charges_and_change_nothing(place: &Place) {
    let mut store = place.store();
    let mut bare = create(&store, DATASET, Some(10.0));
    let mut worded = create(&store, "other", Some(10.0));
    let note = Note {
        by: Some("ada".into()),
        file: Some("people.csv".into()),
        release: Some("count".into()),
        condition: Some("age > 3 and name = '\u{0}\"'".into()),
    };
    worded.annotate(&note);
    charge(&mut bare, 2);
    charge(&mut worded, 1);
    // A lease has no words.
    drop(worded.reserve_once("key", count(10.0), 1).unwrap().next().unwrap().unwrap());
    drop(bare.reserve_once("key", count(10.0), 1).unwrap().next().unwrap().unwrap());
    worded.raise(budget(Some(9.0)), "less").unwrap();
    let entries = store.entries("other").unwrap();
    let kept: Vec<&Note> = entries.iter().map(|entry| &entry.note).collect();
    let name = Note { by: note.by.clone(), ..Note::default() };
    assert_eq!(kept, [&Note::default(), &note, &note, &Note::default(), &name]);
    assert!(store.entries(DATASET).unwrap().iter().all(|entry| entry.note.is_empty()));
    charge(&mut worded, 1);
    bare.raise(budget(Some(9.0)), "less").unwrap();
    assert_eq!(bare.state().unwrap().spent(), worded.state().unwrap().spent());
    assert!(store.verify(&[], &[]).is_good());
    // Words are as protected as everything else in a line.
    let text = store.export("other").unwrap();
    assert!(verify_export(&text).is_ok() && verify_export(&text.replace("ada", "eve")).is_err());
}

fn lines_are_read_as_they_were_written(place: &Place) {
    let mut store = place.store();
    let mut first = create(&store, DATASET, Some(10.0));
    let mut other = create(&store, "other", None);
    let receipts = charge(&mut first, 3);
    charge(&mut other, 2);
    assert_eq!(receipts.iter().map(|receipt| receipt.entry).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(first.receipt(2).unwrap(), receipts[1]);
    let state = first.state().unwrap().clone();
    let mut again = open(&store, DATASET);
    assert_eq!(again.state().unwrap(), &state, "another reader sees the same");
    assert!(
        Ledger::create(store.book(DATASET).unwrap(), terms(DATASET, None)).is_err(),
        "a dataset has one ledger"
    );
    let datasets = store.datasets().unwrap();
    let summary: Vec<_> =
        datasets.iter().map(|summary| (summary.dataset.as_str(), summary.lines, summary.cap)).collect();
    assert_eq!(summary, [("other", 3, f64::INFINITY), (DATASET, 4, 10.0)]);
    assert_eq!(datasets[1].spent, state.spent().epsilon);
    let entries = store.entries(DATASET).unwrap();
    assert_eq!(entries.len(), 4);
    assert_eq!(entries[3].head, receipts[2].head);
    assert!(matches!(&entries[1].line, Line::Charged(charge) if charge.what.contains("count")));
    let report = store.verify(&receipts, &[]);
    assert!(report.is_good() && report.datasets == 2 && report.lines == 7, "{report:?}");
    let missing = store.book("nothing").unwrap().read(0).unwrap_err();
    assert!(matches!(&missing, Error::UnknownDataset { known, .. } if known.len() == 2), "{missing}");
    assert!(matches!(store.entries("nothing"), Err(Error::UnknownDataset { .. })));
}

/// A book that gives every permit to other books as well.
struct Shared<'a> {
    own: Volume,
    others: Vec<Volume>,
    said: &'a mut Vec<Result<Option<Receipt>, Error>>,
}

impl Book for Shared<'_> {
    type Error = Error;

    fn read(&mut self, from: u64) -> Result<Vec<Line>, Error> {
        self.own.read(from)
    }

    fn append(&mut self, permit: &Permit<'_>) -> Result<Option<Receipt>, Error> {
        let receipt = self.own.append(permit);
        self.said.extend(self.others.iter_mut().map(|other| other.append(permit)));
        receipt
    }

    fn receipt(&mut self, number: u64) -> Result<Receipt, Error> {
        self.own.receipt(number)
    }
}

fn a_number_is_given_once(place: &Place) {
    let mut store = place.store();
    for dataset in [DATASET, "another"] {
        drop(create(&store, dataset, Some(10.0)));
    }
    let mut said = Vec::new();
    let book = |dataset: &str| store.book(dataset).unwrap();
    let others = vec![book(DATASET), book("another"), book("missing")];
    let mut ledger = Ledger::open(Shared { own: book(DATASET), others, said: &mut said }).unwrap();
    let receipt = ledger.raise(budget(Some(10.0)), "one").unwrap();
    drop(ledger);
    assert!(matches!(said[0], Ok(None)), "the number is taken: {:?}", said[0]);
    assert!(
        matches!(said[1], Err(Error::Misplaced { .. })),
        "judged against the lines of another dataset: {:?}",
        said[1]
    );
    assert!(matches!(said[2], Err(Error::UnknownDataset { .. })), "{:?}", said[2]);
    let mut two = book(DATASET);
    let raised = |reason: &str| Line::Raised { budget: budget(Some(10.0)), reason: reason.into() };
    assert_eq!(two.read(1).unwrap(), [raised("one")], "nothing is kept of the ones who were late");
    assert_eq!(two.receipt(1).unwrap(), receipt);
    assert!(matches!(two.read(9), Err(Error::Damaged(_))), "there are no such lines");
    // The terms of a dataset open no other one.
    said = Vec::new();
    let shared = Shared { own: book("fourth"), others: vec![book("fifth"), book(DATASET)], said: &mut said };
    drop(Ledger::create(shared, terms("fourth", Some(10.0))).unwrap());
    assert!(matches!(said[..], [Err(Error::Misplaced { .. }), Err(Error::Misplaced { .. })]), "{said:?}");
    let lines: Vec<_> =
        store.datasets().unwrap().into_iter().map(|summary| (summary.dataset, summary.lines)).collect();
    assert_eq!(lines, [("another".to_owned(), 1), ("fourth".into(), 1), (DATASET.into(), 2)]);
}

fn the_cap_holds_and_a_raise_is_written_down(place: &Place) {
    let mut store = place.store();
    let mut ledger = create(&store, DATASET, Some(room_for(3)));
    charge(&mut ledger, 3);
    assert!(matches!(ledger.charge(count(1.0)), Err(quell_privacy::Error::Refused { .. })));
    // The database says so once more, by its own means.
    let prefix = place.prefix;
    let refused =
        (place.sql)(&format!("UPDATE {prefix}datasets SET lines = lines + 1, last = last + 1, spent = 99"));
    assert!(refused.unwrap_err().to_lowercase().contains("check"), "the constraint refuses it");
    assert_eq!(store.datasets().unwrap()[0].lines, 4, "nothing was written");
    ledger.raise(budget(Some(room_for(4))), "one more").unwrap();
    charge(&mut ledger, 1);
    assert!(ledger.charge(count(1.0)).is_err());
    assert!(ledger.raise(budget(Some(1.0)), "below what is spent").is_err());
    ledger.raise(budget(None), "no cap").unwrap();
    charge(&mut ledger, 1);
    let mut seeded = open(&store, DATASET).seeded(1);
    let _paid = seeded.charge(count(1.0)).unwrap();
    assert_eq!(store.datasets().unwrap()[0].spent, f64::INFINITY);
    assert!(store.entries(DATASET).unwrap().iter().any(|entry| matches!(&entry.line, Line::Raised { .. })));
    let report = store.verify(&[], &[]);
    assert!(report.is_good(), "{report:?}");
}

fn a_killed_run_resumes(place: &Place) {
    let mut store = place.store();
    let mut ledger = create(&store, DATASET, Some(room_for(10)));
    let mut lease = ledger.reserve(count(1.0), 10).unwrap().in_blocks_of(4);
    let entry = lease.entry();
    assert_eq!(lease.by_ref().take(5).flatten().count(), 5);
    drop(lease);
    drop(ledger);
    let mut ledger = open(&store, DATASET);
    assert_eq!(ledger.resume(count(1.0), entry).unwrap().flatten().count(), 2, "eight were leased");
    assert!(ledger.charge(count(1.0)).is_err(), "all ten count");
    let report = store.verify(&[], &[]);
    assert!(report.is_good(), "{report:?}");
}

fn other_programs_cannot_change_a_ledger(place: &Place) {
    let mut store = place.store();
    charge(&mut create(&store, DATASET, Some(10.0)), 2);
    let hash = if place.prefix.is_empty() { "zeroblob(32)" } else { "decode(repeat('00', 32), 'hex')" };
    for sql in [
        "UPDATE @entries SET body = 'x' WHERE number = 1".to_owned(),
        "DELETE FROM @entries WHERE number = 2".into(),
        "DELETE FROM @entries".into(),
        "DELETE FROM @datasets".into(),
        "UPDATE @datasets SET spent = 0".into(),
        "UPDATE @datasets SET cap = 1000".into(),
        "UPDATE @datasets SET lines = lines - 1, last = last - 1".into(),
        "UPDATE @datasets SET lines = lines + 1, last = last + 1".into(),
        format!("UPDATE @datasets SET lines = lines + 1, last = last + 1, head = {hash}, spent = 0"),
        format!("UPDATE @datasets SET head = {hash}"),
        "UPDATE @datasets SET name = 'x'".into(),
        format!("INSERT INTO @entries SELECT id, lines, 'x', head, {hash} FROM @datasets"),
        format!("INSERT INTO @entries SELECT id, last, 'x', {hash}, head FROM @datasets"),
        "UPDATE @meta SET value = value".into(),
        "DELETE FROM @meta".into(),
    ] {
        let said = (place.sql)(&sql.replace('@', place.prefix));
        assert!(said.is_err(), "{sql} was accepted");
    }
    if place.prefix.is_empty() {
        // SQLite removes what it replaces without asking the triggers.
        for sql in [
            "INSERT OR REPLACE INTO entries SELECT dataset, number, 'x', previous, hash FROM entries WHERE number = 2",
            "INSERT OR REPLACE INTO datasets SELECT id, name, genesis, 1, 0, head, 0, cap, signature FROM datasets",
        ] {
            assert!((place.sql)(sql).is_err(), "{sql} was accepted");
        }
    } else {
        assert!((place.sql)("TRUNCATE quell_entries CASCADE").is_err());
        (place.sql)("DROP TRIGGER quell_entries_stay ON quell_entries").unwrap();
        let report = store.verify(&[], &[]);
        assert!(
            matches!(report.findings[..], [quell_ledger::Finding { problem: Problem::Schema { .. }, .. }]),
            "{report:?}"
        );
        return;
    }
    let report = store.verify(&[], &[]);
    assert!(report.is_good(), "{report:?}");
}

fn without_its_key_nothing_is_written(place: &Place) {
    let mut store = place.store();
    charge(&mut create(&store, DATASET, Some(10.0)), 2);
    let saved = std::fs::read(place.key()).unwrap();
    std::fs::remove_file(place.key()).unwrap();
    let mut ledger = open(&store, DATASET);
    let error = ledger.charge(count(1.0)).err().unwrap().to_string();
    assert!(error.contains("signing key") && error.contains("is missing"), "{error}");
    drop(place.store());
    assert!(!place.key().exists(), "a lost key is not replaced");
    std::fs::write(place.key(), "0".repeat(64)).unwrap();
    let error = ledger.charge(count(1.0)).err().unwrap().to_string();
    assert!(error.contains("another ledger"), "{error}");
    let findings = store.verify(&[], &[]).findings;
    assert!(
        matches!(findings[..], [quell_ledger::Finding { problem: Problem::PublicKey { .. }, .. }]),
        "{findings:?}"
    );
    assert!(store.datasets().is_err(), "somebody else has signed it");
    std::fs::write(place.key(), saved).unwrap();
    assert_eq!(store.datasets().unwrap()[0].lines, 3);
    charge(&mut ledger, 1);
    assert!(store.verify(&[], &[]).is_good());
}

fn exports_and_receipts_find_what_is_missing(place: &Place) {
    let mut store = place.store();
    let mut ledger = create(&store, DATASET, Some(10.0));
    let receipts = charge(&mut ledger, 3);
    let export = store.export(DATASET).unwrap();
    let read = verify_export(&export).unwrap();
    assert_eq!((read.lines, read.head.as_str()), (4, receipts[2].head.as_str()));
    assert_eq!(Some(read.public_key), store.public_key().unwrap());
    assert_eq!(read.state.charges().len(), 3);
    charge(&mut ledger, 1);
    assert!(store.verify(&receipts, &[&export]).is_good(), "an export of the past");
    let mut forged = receipts[1].clone();
    forged.head.clone_from(&receipts[2].head);
    let mut future = receipts[2].clone();
    future.entry = 99;
    let mut elsewhere = receipts[2].clone();
    elsewhere.dataset = "elsewhere".into();
    let findings = store.verify(&[forged, future, elsewhere], &[]).findings;
    let problems: Vec<_> = findings.into_iter().map(|finding| finding.problem).collect();
    assert!(matches!(
        problems[..],
        [Problem::Forked { .. }, Problem::Truncated { lines: 5, expected: 100 }, Problem::NoDataset]
    ));
    let findings = store.verify(&[], &[&export.replace("count", "Count")]).findings;
    assert!(
        matches!(findings[..], [quell_ledger::Finding { problem: Problem::Export { .. }, .. }]),
        "{findings:?}"
    );
}

/// Somebody with the key and another program writes what the cashier would not.
fn lines_that_lie_are_found(place: &Place) {
    let mut store = place.store();
    let mut ledger = create(&store, DATASET, Some(10.0));
    let mut head = charge(&mut ledger, 1)[0].head.clone();
    let (mut honest, _) = ledger.quote(&count(1.0), 1).unwrap();
    drop(ledger);
    let mut write = |number, line: &Line, spent: f64| {
        let forged = Forged::new(DATASET, number, &head, line, (spent, 10.0), &place.key());
        let blob = |bytes: &[u8]| {
            if place.prefix.is_empty() {
                format!("X'{}'", digits(bytes))
            } else {
                format!("'\\x{}'", digits(bytes))
            }
        };
        (place.sql)(&forged.sql(place.prefix, blob)).unwrap();
        head = forged.head();
    };
    write(2, &Line::Charged(honest.clone()), 1.0);
    honest.cost.pure = Some(1e-3);
    write(3, &Line::Charged(honest), 2.01);
    assert!(
        open(&store, DATASET).state().unwrap().charges().len() == 3,
        "chained and signed as they must be"
    );
    write(4, &Line::Leased { charge: 1, until: 7 }, 2.01);
    let findings = store.verify(&[], &[]).findings;
    let found: Vec<_> = findings.iter().map(|finding| (finding.entry.unwrap(), &finding.problem)).collect();
    let expected = matches!(
        found[..],
        [(2, Problem::Understated { .. }), (3, Problem::Underpriced { .. }), (4, Problem::Nonsense { .. })]
    );
    assert!(expected, "{found:?}");
    assert!(Ledger::open(store.book(DATASET).unwrap()).is_err(), "steps that were not paid for");
}

fn stores_made_at_the_same_time_are_one(place: &Place) {
    std::thread::scope(|scope| {
        for thread in 0..6 {
            scope.spawn(move || charge(&mut create(&place.store(), &format!("dataset {thread}"), None), 2));
        }
    });
    let mut store = place.store();
    let report = store.verify(&[], &[]);
    assert!(report.is_good() && report.datasets == 6 && report.lines == 18, "{report:?}");
}

fn processes_that_race_get_exactly_the_cap(place: &Place) {
    let mut store = place.store();
    drop(create(&store, DATASET, Some(room_for(60) / 8.0)));
    let granted = run_race(WORKER, 4, &place.address, place.directory);
    assert_eq!(granted.iter().sum::<u32>(), 60, "{granted:?}");
    assert_eq!(store.datasets().unwrap()[0].lines, 61);
    let report = store.verify(&[], &[]);
    assert!(report.is_good(), "{report:?}");
}
