//! Faults: killed processes, races, corruption, truncation, a full disk. `make faults` runs more rounds.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use super::fixture::{
    Chance, DATASET, charge, count, create, open, race, room_for, run_race, start_worker, terms,
    worker_command, worker_role,
};
use quell_ledger::{Error, Finding, Problem, Store, verify, verify_export};
use quell_privacy::ledger::{Ledger, Receipt};

/// Rounds of killing, unless `QUELL_FAULT_ROUNDS` is set.
const ROUNDS: u64 = 200;
/// Rounds with the same database. A longer ledger takes longer to check.
const ROUNDS_PER_LEDGER: u64 = 40;

fn rounds() -> u64 {
    std::env::var("QUELL_FAULT_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS)
}

/// Whether this is the longer variant.
fn longer() -> bool {
    rounds() > ROUNDS
}

/// The test that a worker process runs.
const WORKER: &str = "faults::worker";

#[test]
fn worker() {
    let Some((role, place, out)) = worker_role() else { return };
    if role == "make" {
        return drop(create(&Store::create(place.as_str()).unwrap(), DATASET, Some(10.0)));
    }
    let store = Store::open(place.as_str()).unwrap();
    match role.as_str() {
        "race" => race(&store, &out),
        "release" => release(&store, &out),
        "fill" => fill(&store, &out),
        other => panic!("no such role: {other}"),
    }
}

/// Charges and releases until it is killed.
fn release(store: &Store, out: &Path) {
    let mut ledger = open(store, DATASET);
    let mut released = fs::OpenOptions::new().append(true).create(true).open(out).unwrap();
    loop {
        let paid = ledger.charge(count(1.0)).unwrap();
        released.write_all(format!("{} {}\n", paid.receipt().entry, paid.receipt().head).as_bytes()).unwrap();
    }
}

/// What was released, as far as it was.
fn releases(out: &Path) -> Vec<Receipt> {
    let text = fs::read_to_string(out).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let receipt = |line: &str| {
        let (entry, head) = line.split_once(' ').unwrap();
        Receipt::new(DATASET.into(), entry.parse().unwrap(), head.into())
    };
    whole.lines().map(receipt).collect()
}

fn wait_until(ready: impl Fn() -> bool) {
    let began = std::time::Instant::now();
    while !ready() {
        assert!(began.elapsed() < Duration::from_mins(1), "a worker does not work");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn nothing_is_released_unpaid_however_often_processes_are_killed() {
    let rounds = rounds();
    let mut chance = Chance::new();
    let (mut released, mut unreleased, mut busy) = (0, 0, 0);
    let mut directory = tempfile::tempdir().unwrap();
    for round in 0..rounds {
        if round % ROUNDS_PER_LEDGER == 0 {
            directory = tempfile::tempdir().unwrap();
            create(&Store::create(directory.path()).unwrap(), DATASET, None);
        }
        let place = directory.path().join("ledger.db");
        let outs = [directory.path().join("released.0"), directory.path().join("released.1")];
        let before: usize = outs.iter().map(|out| releases(out).len()).sum();
        let mut workers =
            outs.each_ref().map(|out| start_worker(WORKER, "release", place.to_str().unwrap(), out));
        // Now and then while they are still opening the ledger, otherwise in the midst of things.
        if round % 4 != 0 {
            wait_until(|| outs.iter().map(|out| releases(out).len()).sum::<usize>() > before);
        }
        for worker in &mut workers {
            std::thread::sleep(Duration::from_micros(chance.below(40_000)));
            // On Unix this is SIGKILL.
            worker.kill().unwrap();
        }
        for worker in &mut workers {
            worker.wait().unwrap();
        }
        let receipts: Vec<Receipt> = outs.iter().flat_map(|out| releases(out)).collect();
        // Also as the next program to come would find it, log and all.
        let report = verify(place.as_path(), &receipts, &[]).unwrap();
        assert!(report.is_good(), "round {round}: {:?}", report.findings);
        let mut entries: Vec<u64> = receipts.iter().map(|receipt| receipt.entry).collect();
        entries.sort_unstable();
        entries.dedup();
        assert_eq!(entries.len(), receipts.len(), "round {round}: two releases on one debt");
        busy += u64::from(receipts.len() > before);
        if (round + 1) % ROUNDS_PER_LEDGER == 0 || round + 1 == rounds {
            let debts =
                open(&Store::open(place.as_path()).unwrap(), DATASET).state().unwrap().charges().len();
            assert!(debts >= receipts.len(), "{debts} debts, {} releases", receipts.len());
            released += receipts.len();
            unreleased += debts - receipts.len();
        }
    }
    println!(
        "{rounds} rounds, {released} releases, all paid; {unreleased} paid and not released; released something in {busy} rounds"
    );
    assert!(busy > rounds / 2 && unreleased > 0, "killed too early to see anything: {busy} of {rounds}");
}

#[test]
fn eight_processes_that_race_get_exactly_the_cap() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::create(directory.path()).unwrap();
    drop(create(&store, DATASET, Some(room_for(100) / 8.0)));
    let granted = run_race(WORKER, 8, directory.path().to_str().unwrap(), directory.path());
    assert_eq!(granted.iter().sum::<u32>(), 100, "{granted:?}");
    assert_eq!(store.datasets().unwrap()[0].lines, 101);
    let report = store.verify(&[], &[]);
    assert!(report.is_good(), "{report:?}");
}

/// A small ledger that was closed.
fn small(directory: &Path) -> (PathBuf, Vec<Receipt>) {
    let store = Store::create(directory).unwrap();
    let receipts = charge(&mut create(&store, DATASET, Some(10.0)), 2);
    (directory.join("ledger.db"), receipts)
}

/// Somewhere that forgets quickly.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

fn clear_logs(path: &Path) {
    for end in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", path.display()));
    }
}

#[test]
fn every_flipped_byte_of_a_small_ledger_is_found() {
    let original = scratch();
    let (path, _) = small(original.path());
    let report = verify(path.as_path(), &[], &[]).unwrap();
    assert!(report.is_good() && report.notes.is_empty(), "{report:?}");
    for name in ["ledger.db", "ledger.db.seal"] {
        let whole = fs::read(original.path().join(name)).unwrap();
        let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        println!("{name}: {} bytes", whole.len());
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (whole, original) = (&whole, original.path());
                scope.spawn(move || flip_some(original, name, whole, (thread..whole.len()).step_by(threads)));
            }
        });
    }
}

/// One bit, another each time; in the longer variant several, at random.
fn mask(place: usize) -> u8 {
    let several = place.wrapping_mul(0x9e37_79b9) >> 7;
    if longer() { several as u8 | 1 } else { 1 << (place % 8) }
}

fn flip_some(original: &Path, name: &str, whole: &[u8], places: impl Iterator<Item = usize>) {
    let directory = scratch();
    for name in ["ledger.db", "ledger.db.seal", "signing.key"] {
        fs::copy(original.join(name), directory.path().join(name)).unwrap();
    }
    let (database, target) = (directory.path().join("ledger.db"), directory.path().join(name));
    for place in places {
        let mut bytes = whole.to_vec();
        bytes[place] ^= mask(place);
        fs::write(&target, &bytes).unwrap();
        clear_logs(&database);
        let report = verify(database.as_path(), &[], &[]).unwrap();
        assert!(!report.is_good(), "byte {place} of {name} was flipped, and nobody noticed");
        if name == "ledger.db" {
            clear_logs(&database);
            let opened = Store::open(database.as_path())
                .is_ok_and(|store| store.book(DATASET).is_ok_and(|book| Ledger::open(book).is_ok()));
            assert!(!opened, "byte {place} was flipped, and the ledger opened");
            assert_eq!(fs::read(&target).unwrap(), bytes, "looking at a damaged ledger changes it");
        }
    }
}

#[test]
fn every_flipped_byte_of_an_export_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _) = small(directory.path());
    let whole = Store::open(path.as_path()).unwrap().export(DATASET).unwrap();
    assert!(verify_export(&whole).is_ok());
    for place in 0..whole.len() {
        let mut bytes = whole.clone().into_bytes();
        bytes[place] ^= 1 << (place % 7);
        // What is not text is no export.
        let Ok(text) = String::from_utf8(bytes) else { continue };
        assert!(verify_export(&text).is_err(), "byte {place} was flipped, and nobody noticed");
    }
    assert!(verify_export(&whole[..whole.len() - 1]).is_err(), "cut short");
    assert!(verify_export(&format!("{whole} ")).is_err(), "added to");
}

/// Changes a database as somebody who has all power over it, but not the key. The seal goes too.
fn forge(path: &Path, sql: &str) {
    let _ = fs::remove_file(format!("{}.seal", path.display()));
    let connection = rusqlite::Connection::open(path).unwrap();
    let mut statement =
        connection.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").unwrap();
    let triggers: Vec<(String, String)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    drop(statement);
    connection.execute_batch("PRAGMA foreign_keys = OFF; BEGIN").unwrap();
    for (name, _) in &triggers {
        connection.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    connection.execute_batch(sql).unwrap();
    for (_, sql) in &triggers {
        connection.execute_batch(sql).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
}

const LAST_LINE_TAKEN: &str = "DELETE FROM entries WHERE number = (SELECT last FROM datasets);
    UPDATE datasets SET lines = lines - 1, last = last - 1,
        head = (SELECT hash FROM entries WHERE number = (SELECT max(number) FROM entries)),
        spent = (SELECT json_extract(body, '$.spent') FROM entries WHERE number = (SELECT max(number) FROM entries))";

fn is_unsigned(findings: &[Finding]) -> bool {
    matches!(findings, [Finding { problem: Problem::Signature, .. }])
}

#[test]
fn a_forged_ledger_is_found_by_its_signature_and_grants_nothing() {
    for (forgery, sql) in [
        ("last line taken", LAST_LINE_TAKEN),
        ("name changed", "UPDATE datasets SET name = 'x'"),
        ("text changed", "UPDATE entries SET body = replace(body, 'count', 'Count') WHERE number = 1"),
        ("row changed", "UPDATE datasets SET spent = 0.5"),
        ("cap changed", "UPDATE datasets SET cap = 100"),
        (
            "lines exchanged",
            "UPDATE entries SET number = 5 - number WHERE number > 0; UPDATE entries SET number = number - 2 WHERE number > 0",
        ),
        ("line removed", "DELETE FROM entries WHERE number = 1"),
        ("key changed", "UPDATE meta SET value = zeroblob(32)"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let (path, _) = small(directory.path());
        forge(&path, sql);
        let report = verify(path.as_path(), &[], &[]).unwrap();
        assert!(!report.is_good(), "{forgery}");
        if forgery == "last line taken" {
            assert!(is_unsigned(&report.findings), "everything but the signature is right: {report:?}");
        }
        let mut store = Store::open(path.as_path()).unwrap();
        let opened = Ledger::open(store.book(DATASET).unwrap());
        // A wrong cap in the row is no cap: the cashier goes by the lines.
        let granted = opened.and_then(|mut ledger| ledger.charge(count(1.0)));
        assert!(granted.is_err(), "{forgery}");
        // Nobody is shown it, either.
        assert!(store.datasets().is_err(), "{forgery}");
        assert!(store.entries(DATASET).is_err(), "{forgery}");
        assert!(store.export(DATASET).is_err(), "{forgery}");
    }
}

#[test]
fn a_rebuilt_chain_is_found_by_receipts_and_exports() {
    // The holder of the key rewrites history: the same number of lines, all signed.
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, receipts) = small(one.path());
    let export = Store::open(path.as_path()).unwrap().export(DATASET).unwrap();
    fs::copy(one.path().join("signing.key"), two.path().join("signing.key")).unwrap();
    let mut store = Store::create(two.path()).unwrap();
    let mut ledger = Ledger::create(store.book(DATASET).unwrap(), terms(DATASET, Some(10.0))).unwrap();
    for _ in 0..2 {
        let _paid = ledger.charge(count(100.0)).unwrap();
    }
    assert!(store.verify(&[], &[]).is_good(), "by itself it is as good as any");
    assert_eq!(store.verify(&receipts, &[]).findings.len(), 2);
    assert!(matches!(
        store.verify(&[], &[&export]).findings[..],
        [Finding { problem: Problem::Forked { .. }, .. }]
    ));
}

#[test]
fn an_older_copy_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _) = small(directory.path());
    let copies = ["ledger.db", "ledger.db.seal"].map(|name| fs::read(directory.path().join(name)).unwrap());
    let receipts = charge(&mut open(&Store::open(path.as_path()).unwrap(), DATASET), 1);
    let export = Store::open(path.as_path()).unwrap().export(DATASET).unwrap();
    assert!(verify(path.as_path(), &receipts, &[&export]).unwrap().is_good());
    // The database alone: the seal beside it knows better, and it does not open.
    fs::write(&path, &copies[0]).unwrap();
    let findings = verify(path.as_path(), &[], &[]).unwrap().findings;
    assert!(
        findings.iter().any(|finding| matches!(finding.problem, Problem::Truncated { .. })),
        "{findings:?}"
    );
    assert!(matches!(Store::open(path.as_path()).err(), Some(Error::Damaged(_))));
    // With its seal: only who has seen the last line knows.
    fs::write(directory.path().join("ledger.db.seal"), &copies[1]).unwrap();
    clear_logs(&path);
    assert!(verify(path.as_path(), &[], &[]).unwrap().is_good());
    for findings in [
        verify(path.as_path(), &receipts, &[]).unwrap().findings,
        verify(path.as_path(), &[], &[&export]).unwrap().findings,
    ] {
        assert!(
            matches!(findings[..], [Finding { problem: Problem::Truncated { lines: 3, expected: 4 }, .. }]),
            "{findings:?}"
        );
    }
}

#[test]
fn a_lost_log_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let (path, _) = small(directory.path());
    let out = directory.path().join("released");
    let mut worker = start_worker(WORKER, "release", path.to_str().unwrap(), &out);
    wait_until(|| releases(&out).len() >= 3);
    worker.kill().unwrap();
    worker.wait().unwrap();
    let log = format!("{}-wal", path.display());
    let (database, whole) = (fs::read(&path).unwrap(), fs::read(&log).unwrap());
    // A log that is damaged in the middle ends there, for SQLite.
    let mut bytes = whole.clone();
    bytes[whole.len() / 3] ^= 1;
    for damaged in [Some(bytes), None] {
        clear_logs(&path);
        if let Some(bytes) = damaged {
            fs::write(&log, bytes).unwrap();
        }
        let findings = verify(path.as_path(), &[], &[]).unwrap().findings;
        assert!(
            findings.iter().any(|finding| matches!(finding.problem, Problem::Truncated { .. })),
            "{findings:?}"
        );
        assert!(
            matches!(Store::open(path.as_path()).err(), Some(Error::Damaged(_))),
            "no grant on a ledger that lost its end"
        );
    }
    // Wherever it is damaged: a ledger that opens has all debts.
    for place in (0..whole.len()).step_by(if longer() { 1 } else { 61 }) {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        clear_logs(&path);
        fs::write(&log, bytes).unwrap();
        let debts = Store::open(path.as_path()).ok().and_then(|store| {
            let mut ledger = Ledger::open(store.book(DATASET).ok()?).ok()?;
            Some(ledger.state().ok()?.charges().len())
        });
        assert!(debts.is_none_or(|debts| debts >= 2 + releases(&out).len()), "byte {place}: {debts:?}");
        fs::write(&path, &database).unwrap();
    }
    clear_logs(&path);
    fs::write(&log, whole).unwrap();
    assert!(
        verify(path.as_path(), &releases(&out), &[]).unwrap().is_good(),
        "and with its log it is whole again"
    );
}

/// Charges until something gives, and writes down how often it was granted, and what gave.
fn fill(store: &Store, out: &Path) {
    let mut ledger = open(store, DATASET);
    let (granted, error) = charge_until_it_fails(&mut ledger);
    fs::write(out, format!("{granted} {error}")).unwrap();
}

fn charge_until_it_fails(ledger: &mut Ledger<quell_ledger::Volume>) -> (usize, String) {
    let mut granted = 0;
    loop {
        match ledger.charge(count(1.0)) {
            Ok(_) => granted += 1,
            Err(error) => return (granted, error.to_string()),
        }
        assert!(granted < 100_000, "the disk does not fill up");
    }
}

/// A ledger that ran out of room kept every debt, granted nothing more, and goes on when there is room.
fn recovers(store: &mut Store, before: usize, granted: usize) {
    let mut ledger = open(store, DATASET);
    let debts = ledger.state().unwrap().charges().len();
    assert!(
        debts == before + granted || debts == before + granted + 1,
        "{granted} granted, {} debts",
        debts - before
    );
    charge(&mut ledger, 5);
    let report = store.verify(&[], &[]);
    assert!(report.is_good(), "{report:?}");
}

#[test]
fn a_file_that_may_not_grow_loses_no_debt() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::create(directory.path()).unwrap();
    charge(&mut create(&store, DATASET, None), 3);
    let out = directory.path().join("filled");
    let worker = worker_command(WORKER, "fill", directory.path().to_str().unwrap(), &out);
    // In units of 512 or 1024 bytes. The signal that comes with the limit is ignored, so that writing fails instead.
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 512; exec \"$@\"", "sh"])
        .arg(worker.get_program())
        .args(worker.get_args());
    limited
        .envs(worker.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdout(std::process::Stdio::null());
    assert!(limited.status().unwrap().success());
    let text = fs::read_to_string(&out).unwrap();
    let (granted, error) = text.split_once(' ').unwrap();
    assert!(error.contains("writing a line failed"), "{error}");
    let granted = granted.parse().unwrap();
    assert!(granted > 10, "{granted}");
    recovers(&mut store, 3, granted);
}

/// A file system in memory of a few hundred kilobytes, if we may have one.
struct Small(tempfile::TempDir);

impl Small {
    fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=600k", "tmpfs"])
            .arg(directory.path())
            .output();
        mounted.is_ok_and(|mount| mount.status.success()).then_some(Self(directory))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn a_ledger_that_cannot_be_written_can_be_verified() {
    let Some(disk) = Small::mount() else {
        return eprintln!("NOT RUN: the test on a read-only disk, because mounting one is not permitted");
    };
    let (path, receipts) = small(disk.0.path());
    assert!(Command::new("mount").args(["-o", "remount,ro"]).arg(disk.0.path()).status().unwrap().success());
    let report = verify(path.as_path(), &receipts, &[]).unwrap();
    assert!(report.is_good() && report.lines == 3, "{report:?}");
    let granted = Store::open(path.as_path()).is_ok_and(|store| {
        store
            .book(DATASET)
            .is_ok_and(|book| Ledger::open(book).and_then(|mut ledger| ledger.charge(count(1.0))).is_ok())
    });
    assert!(!granted, "nothing is granted that cannot be written down");
}

#[test]
fn a_full_disk_loses_no_debt() {
    let Some(disk) = Small::mount() else {
        return eprintln!("NOT RUN: the test on a full disk, because mounting one is not permitted");
    };
    let ballast = disk.0.path().join("ballast");
    fs::write(&ballast, vec![1; 200_000]).unwrap();
    let mut store = Store::create(disk.0.path()).unwrap();
    let mut ledger = create(&store, DATASET, None);
    let (granted, error) = charge_until_it_fails(&mut ledger);
    assert!(granted > 10 && error.contains("full"), "{granted}: {error}");
    assert!(ledger.charge(count(1.0)).is_err(), "still full");
    assert_eq!(store.datasets().unwrap()[0].lines, 1 + granted as u64, "nothing is lost while it is full");
    fs::remove_file(ballast).unwrap();
    charge(&mut ledger, 1);
    drop(ledger);
    recovers(&mut store, 0, granted + 1);
}

/// A ledger as the first version wrote it: without a rule against replacing the key.
#[test]
fn a_ledger_of_the_first_version_opens_and_is_brought_up_to_date() {
    let directory = tempfile::tempdir().unwrap();
    let (path, receipts) = small(directory.path());
    let _ = fs::remove_file(format!("{}.seal", path.display()));
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("DROP TRIGGER meta_begin; PRAGMA user_version = 1")
        .unwrap();
    let report = verify(path.as_path(), &receipts, &[]).unwrap();
    assert!(report.is_good(), "{report:?}");
    charge(&mut open(&Store::open(path.as_path()).unwrap(), DATASET), 1);
    let replace = "INSERT OR REPLACE INTO meta VALUES ('public_key', zeroblob(32))";
    assert!(rusqlite::Connection::open(&path).unwrap().execute_batch(replace).is_err());
    assert!(verify(path.as_path(), &receipts, &[]).unwrap().is_good());
    // One without a rule that it should have is refused, whichever version it says it has.
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("DROP TRIGGER entries_stay; PRAGMA user_version = 1")
        .unwrap();
    assert!(Store::open(path.as_path()).is_err());
}

/// Whatever is there when a program that makes a ledger is killed, it is no other ledger, and making it goes on.
#[test]
fn a_creation_that_was_interrupted_is_recognised_and_goes_on() {
    let whole = tempfile::tempdir().unwrap();
    small(whole.path());
    for (names, sql) in [
        // A file without anything, one in which only the journal was chosen, with and without a key.
        (&[][..], ""),
        (&["signing.key"][..], ""),
        (&["signing.key"][..], "PRAGMA journal_mode = WAL"),
        (&[][..], "PRAGMA journal_mode = WAL"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            fs::copy(whole.path().join(name), directory.path().join(name)).unwrap();
        }
        let path = directory.path().join("ledger.db");
        fs::write(&path, "").unwrap();
        if !sql.is_empty() {
            rusqlite::Connection::open(&path).unwrap().query_row(sql, [], |_| Ok(())).unwrap();
        }
        let report = verify(path.as_path(), &[], &[]).unwrap();
        assert!(
            report.is_good() && report.notes.iter().any(|note| note.contains("interrupted")),
            "{names:?} {sql}: {report:?}"
        );
        assert!(
            matches!(Store::open(path.as_path()).err(), Some(Error::NotALedger { found, .. }) if found.contains("interrupted"))
        );
        let mut store = Store::create(path.as_path()).unwrap();
        charge(&mut create(&store, DATASET, Some(10.0)), 1);
        assert!(store.verify(&[], &[]).is_good());
    }
    // What once had lines and has none now was not interrupted.
    fs::write(whole.path().join("ledger.db"), "").unwrap();
    let findings = verify(whole.path(), &[], &[]).unwrap().findings;
    assert!(
        findings.iter().any(|finding| matches!(finding.problem, Problem::Truncated { lines: 0, .. })),
        "{findings:?}"
    );
}

/// Kills processes that make ledgers, at random moments.
#[test]
fn making_a_ledger_can_be_killed_at_any_moment() {
    let mut chance = Chance::new();
    let mut whole = 0;
    for round in 0..40 {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger.db");
        let mut worker = start_worker(WORKER, "make", path.to_str().unwrap(), &directory.path().join("out"));
        std::thread::sleep(Duration::from_micros(chance.below(100_000)));
        worker.kill().unwrap();
        worker.wait().unwrap();
        if path.exists() {
            let report = verify(path.as_path(), &[], &[]).unwrap();
            assert!(report.is_good(), "round {round}: {report:?}");
            whole += report.datasets;
        }
        let mut store = Store::create(path.as_path()).unwrap();
        if store.datasets().unwrap().is_empty() {
            drop(create(&store, DATASET, Some(10.0)));
        }
        charge(&mut open(&store, DATASET), 1);
        let report = store.verify(&[], &[]);
        assert!(report.is_good(), "round {round}: {report:?}");
    }
    println!("{whole} of 40 were made before they were killed");
}
