//! Finding edits, deletions and truncation.

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

/// What was checked, and what was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Datasets that were checked.
    pub datasets: usize,
    /// Lines that were checked.
    pub lines: u64,
    /// What is wrong. None is good.
    pub findings: Vec<Finding>,
    /// What is worth knowing and not wrong.
    pub notes: Vec<String>,
}

impl Report {
    /// Nothing was found.
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

/// Checks everything. What cannot be read is a finding, not an error.
pub(crate) fn verify(database: &mut dyn Database, key: &Path, receipts: &[Receipt], exports: &[&str]) -> Report {
    let mut report = Report::default();
    let inspected = database.inspect();
    if let Some((findings, notes)) = report.take(inspected) {
        report.findings.extend(findings);
        report.notes.extend(notes);
    }
    let public = database.public_key();
    let public = report.take(public).flatten();
    check_key(&mut report, public.as_ref(), key);
    let rows = database.rows();
    let mut chains = BTreeMap::new();
    for row in report.take(rows).unwrap_or_default() {
        let name = row.dataset.clone();
        let heads = check_dataset(&mut report, database, row, public.as_ref());
        chains.insert(name, heads);
    }
    for receipt in receipts {
        report.findings.extend(missing(&chains, &receipt.dataset, receipt.entry, &receipt.head));
    }
    for text in exports {
        match verify_export(text) {
            Ok(export) => check_export(&mut report, &chains, &export, public.as_ref()),
            Err(findings) => report.findings.extend(findings),
        }
    }
    report
}

/// Whether the public key in the ledger is that of the key beside it, if that is here.
fn check_key(report: &mut Report, public: Option<&[u8; 32]>, path: &Path) {
    match Key::load(path) {
        Ok(key) if public == Some(&key.public()) => {}
        Ok(key) => {
            let found = public.map_or_else(|| "missing".to_owned(), |key| hex(key));
            let says = "the signing key beside the ledger says";
            report.findings.push(Problem::PublicKey { found, expected: hex(&key.public()), says }.in_store());
        }
        Err(error) => report.notes.push(format!("the public key was not compared with the signing key: {error}")),
    }
}

/// The heads after each line of a dataset, as far as they could be read.
fn check_dataset(report: &mut Report, database: &mut dyn Database, row: Row, public: Option<&[u8; 32]>) -> Vec<Hash> {
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

/// What is wrong if a line with this head was seen once.
fn missing(chains: &BTreeMap<String, Vec<Hash>>, dataset: &str, entry: u64, head: &str) -> Option<Finding> {
    let Some(heads) = chains.get(dataset) else { return Some(Problem::NoDataset.of(dataset)) };
    match usize::try_from(entry).ok().and_then(|entry| heads.get(entry)) {
        None => Some(Problem::Truncated { lines: heads.len() as u64, expected: entry.saturating_add(1) }.of(dataset)),
        Some(found) if hex(found) != head => {
            Some(Problem::Forked { found: hex(found), expected: head.to_owned() }.at(dataset, entry))
        }
        Some(_) => None,
    }
}

fn check_export(report: &mut Report, chains: &BTreeMap<String, Vec<Hash>>, export: &Export, public: Option<&[u8; 32]>) {
    report.findings.extend(missing(chains, &export.dataset, export.lines.saturating_sub(1), &export.head));
    let found = public.map_or_else(|| "missing".to_owned(), |key| hex(key));
    if found != export.public_key {
        let problem = Problem::PublicKey { found, expected: export.public_key.clone(), says: "an export says" };
        report.findings.push(problem.of(&export.dataset));
    }
}
