//! Verification of a store: finds edits, deletions and truncation.

use std::{collections::BTreeMap, path::Path};

use quell_privacy::ledger::Receipt;
use serde::Serialize;

use crate::{
    chain::{Hash, Row},
    database::Database,
    error::Error,
    export::{Export, verify_export, walk},
    finding::{Finding, Problem},
    hexadecimal::hex,
    judge,
    signature::{Key, is_signed},
};

/// Result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Number of datasets checked.
    pub datasets: usize,
    /// Number of lines checked.
    pub lines: u64,
    /// Number of receipts compared.
    pub receipts: usize,
    /// The problems found; empty if the store is sound.
    pub findings: Vec<Finding>,
    /// Remarks that are not problems.
    pub notes: Vec<String>,
}

/// Evidence kept outside of a store, to compare the store with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Evidence<'a> {
    /// Receipts of releases from this store.
    pub receipts: &'a [Receipt],
    /// Receipts that may belong to other ledgers.
    ///
    /// Only those that name this ledger, or one of its datasets, are compared.
    pub witnesses: &'a [Receipt],
    /// Earlier exports.
    pub exports: &'a [&'a str],
    /// The public key of the store, in hexadecimal, for users without the signing key.
    pub public_key: Option<&'a str>,
}

impl Report {
    /// Whether no problem was found.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.findings.is_empty()
    }

    fn take<T>(&mut self, answer: Result<T, Error>) -> Option<T> {
        match answer {
            Ok(answer) => Some(answer),
            Err(Error::Damaged(finding)) => {
                self.findings.push(*finding);
                None
            }
            Err(error) => {
                self.findings.push(Problem::Unreadable { cause: error.to_string() }.in_store());
                None
            }
        }
    }
}

/// Checks the whole store. Unreadable parts become findings, not errors.
pub(crate) fn verify(database: &mut dyn Database, key: &Path, evidence: &Evidence<'_>) -> Report {
    let mut report = Report::default();
    let inspected = database.inspect();
    if let Some((findings, notes)) = report.take(inspected) {
        report.findings.extend(findings);
        report.notes.extend(notes);
    }
    let (mut public, mut chains) = (None, BTreeMap::new());
    // A blank file has no key and no lines to check; receipts and exports are still compared.
    if !database.is_blank().unwrap_or(false) {
        let found = database.public_key();
        public = report.take(found).flatten();
        let rows = database.rows();
        let rows = report.take(rows).unwrap_or_default();
        check_key(&mut report, public.as_ref(), key, evidence.public_key, rows.is_empty());
        for row in rows {
            let name = row.dataset.clone();
            let heads = check_dataset(&mut report, database, row, public.as_ref());
            chains.insert(name, heads);
        }
    }
    let own_key = public.as_ref().map(|key| hex(key)).or_else(|| evidence.public_key.map(str::to_owned));
    // A receipt that names one of these datasets but another public key shows that the ledger was deleted and
    // created again.
    let is_relevant = |receipt: &&Receipt| {
        receipt.ledger.is_some() && (receipt.ledger == own_key || chains.contains_key(&receipt.dataset))
    };
    let others = evidence.witnesses.iter().filter(|receipt| !is_relevant(receipt)).count();
    if others > 0 {
        report.notes.push(format!(
            "{others} receipts belong to other ledgers, or name no ledger, and were not compared"
        ));
    }
    for receipt in evidence.receipts.iter().chain(evidence.witnesses.iter().filter(is_relevant)) {
        report.receipts += 1;
        report.findings.extend(check_receipt(&chains, receipt, public.as_ref()));
    }
    for text in evidence.exports {
        match verify_export(text) {
            Ok(export) => check_export(&mut report, &chains, &export, public.as_ref()),
            Err(findings) => report.findings.extend(findings),
        }
    }
    report
}

/// Compares the public key in the ledger with the expected key and the signing key.
fn check_key(
    report: &mut Report,
    public: Option<&[u8; 32]>,
    path: &Path,
    expected: Option<&str>,
    is_new: bool,
) {
    let found = public.map_or_else(|| "missing".to_owned(), |key| hex(key));
    let mut differs = |expected: String, says| {
        report.findings.push(Problem::PublicKey { found: found.clone(), expected, says }.in_store());
    };
    if let Some(expected) = expected
        && expected != found
    {
        differs(expected.to_owned(), "was given");
    }
    match Key::load(path) {
        Ok(key) if public == Some(&key.public()) => {}
        // An older version could be interrupted between creating the tables and writing the key.
        Ok(_) | Err(Error::KeyMissing { .. }) if public.is_none() && is_new => {
            report.notes.push(
                "the ledger has no key and no lines yet: its creation was interrupted; `quell ledger create` completes it"
                    .into(),
            );
        }
        Ok(key) => differs(hex(&key.public()), "the signing key beside the ledger says"),
        Err(Error::KeyMissing { .. }) if expected.is_some() => {}
        Err(Error::KeyMissing { path }) => {
            let path = path.display().to_string();
            report.findings.push(Problem::KeyMissing { path, public: found }.in_store());
        }
        Err(error) => report.findings.push(Problem::Unreadable { cause: error.to_string() }.in_store()),
    }
}

/// Compares a receipt with the ledger; returns a finding if they disagree.
fn check_receipt(
    chains: &BTreeMap<String, Vec<Hash>>,
    receipt: &Receipt,
    public: Option<&[u8; 32]>,
) -> Option<Finding> {
    let found = public.map_or_else(|| "missing".to_owned(), |key| hex(key));
    match &receipt.ledger {
        Some(ledger) if *ledger != found => {
            let problem = Problem::PublicKey { found, expected: ledger.clone(), says: "a receipt says" };
            Some(problem.at(&receipt.dataset, receipt.entry))
        }
        _ => missing_line(chains, &receipt.dataset, receipt.entry, &receipt.head),
    }
}

/// Checks one dataset and returns the head after each readable line.
fn check_dataset(
    report: &mut Report,
    database: &mut dyn Database,
    row: Row,
    public: Option<&[u8; 32]>,
) -> Vec<Hash> {
    let name = row.dataset;
    let snapshot = database.snapshot(&name, 0);
    let Some((row, entries)) = report.take(snapshot).flatten() else { return Vec::new() };
    report.datasets += 1;
    report.lines += entries.len() as u64;
    match walk(&row, &entries) {
        Ok(bodies) => {
            let (findings, notes) = judge::findings(&row, &bodies);
            report.findings.extend(findings);
            report.notes.extend(notes);
        }
        Err(findings) => report.findings.extend(findings),
    }
    if !public.is_some_and(|public| is_signed(public, &row.dataset, row.lines, &row.head, &row.signature)) {
        report.findings.push(Problem::Signature.of(&name));
    }
    entries.into_iter().map(|entry| entry.hash).collect()
}

/// A finding if the ledger lacks the line `entry` with the head `head`.
fn missing_line(
    chains: &BTreeMap<String, Vec<Hash>>,
    dataset: &str,
    entry: u64,
    head: &str,
) -> Option<Finding> {
    let Some(heads) = chains.get(dataset) else { return Some(Problem::NoDataset.of(dataset)) };
    match usize::try_from(entry).ok().and_then(|entry| heads.get(entry)) {
        None => Some(
            Problem::Truncated { lines: heads.len() as u64, expected: entry.saturating_add(1) }.of(dataset),
        ),
        Some(found) if hex(found) != head => {
            Some(Problem::Forked { found: hex(found), expected: head.to_owned() }.at(dataset, entry))
        }
        Some(_) => None,
    }
}

fn check_export(
    report: &mut Report,
    chains: &BTreeMap<String, Vec<Hash>>,
    export: &Export,
    public: Option<&[u8; 32]>,
) {
    report.findings.extend(missing_line(
        chains,
        &export.dataset,
        export.lines.saturating_sub(1),
        &export.head,
    ));
    let found = public.map_or_else(|| "missing".to_owned(), |key| hex(key));
    if found != export.public_key {
        let problem =
            Problem::PublicKey { found, expected: export.public_key.clone(), says: "an export says" };
        report.findings.push(problem.of(&export.dataset));
    }
}
