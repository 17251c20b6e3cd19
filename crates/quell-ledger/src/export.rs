//! Export of a ledger as a JSON document for auditors, archives and later comparison.

use quell_privacy::ledger::State;
use serde::{Deserialize, Serialize};

use crate::{
    chain::{Body, Hash, Position, Row, Stored, genesis},
    finding::{Finding, Problem},
    hexadecimal::{bytes, hex},
    judge,
    signature::is_signed,
};

const FORMAT: &str = "quell-ledger export 1";

/// The document. Only one spelling is valid, so any changed byte is detected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: String,
    dataset: String,
    entries: Vec<Exported>,
    lines: u64,
    head: String,
    /// Null if there is no bound.
    spent: Option<f64>,
    /// Null if there is no cap.
    cap: Option<f64>,
    public_key: String,
    signature: String,
    /// The blake3 hash of the document with this field empty.
    checksum: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exported {
    number: u64,
    body: String,
    hash: String,
}

/// The contents of a verified export.
#[derive(Clone, Debug, PartialEq)]
pub struct Export {
    /// Name of the dataset.
    pub dataset: String,
    /// Number of lines.
    pub lines: u64,
    /// Head of the chain, in hexadecimal.
    pub head: String,
    /// The public key of the signature, in hexadecimal.
    pub public_key: String,
    /// State after all lines.
    pub state: State,
}

pub(crate) fn write(
    row: &Row,
    entries: &[Stored],
    public_key: &[u8; 32],
) -> Result<String, serde_json::Error> {
    let finite = |number: f64| number.is_finite().then_some(number);
    let exported =
        |entry: &Stored| Exported { number: entry.number, body: entry.body.clone(), hash: hex(&entry.hash) };
    let document = Document {
        format: FORMAT.to_owned(),
        dataset: row.dataset.clone(),
        entries: entries.iter().map(exported).collect(),
        lines: row.lines,
        head: hex(&row.head),
        spent: finite(row.spent),
        cap: finite(row.cap),
        public_key: hex(public_key),
        signature: hex(&row.signature),
        checksum: String::new(),
    };
    let checksum = checksum(&document)?;
    serialize(&Document { checksum, ..document })
}

fn serialize(document: &Document) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(document).map(|text| text + "\n")
}

fn checksum(document: &Document) -> Result<String, serde_json::Error> {
    let without_checksum = Document { checksum: String::new(), ..document.clone() };
    serialize(&without_checksum).map(|text| hex(blake3::hash(text.as_bytes()).as_bytes()))
}

/// Checks that an export is unchanged, signed and consistent.
///
/// No byte may be changed, the hash chain must be unbroken, the key in the document must have signed the
/// head, and the lines must add up to the recorded totals. The function cannot tell whether that key is the
/// right one: compare `public_key` with the key you expect.
pub fn verify_export(text: &str) -> Result<Export, Vec<Finding>> {
    let damaged = |cause: &str| vec![Problem::Export { cause: cause.to_owned() }.in_store()];
    let document: Document = serde_json::from_str(text).map_err(|error| damaged(&error.to_string()))?;
    if document.format != FORMAT {
        return Err(damaged("it has another format"));
    }
    if checksum(&document).ok().as_ref() != Some(&document.checksum)
        || serialize(&document).ok().as_deref() != Some(text)
    {
        return Err(damaged("its checksum does not match its text"));
    }
    let keys = (bytes(&document.public_key), bytes(&document.signature), bytes(&document.head));
    let (Some(public), Some(signature), Some(head)) = keys else {
        return Err(damaged("its key, signature or head is malformed"));
    };
    let row = Row {
        dataset: document.dataset.clone(),
        lines: document.lines,
        head,
        spent: document.spent.unwrap_or(f64::INFINITY),
        cap: document.cap.unwrap_or(f64::INFINITY),
        signature,
    };
    let entries = stored(&document).ok_or_else(|| damaged("it contains a malformed hash"))?;
    let bodies = walk(&row, &entries)?;
    let mut findings = judge::findings(&row, &bodies).0;
    if !is_signed(&public, &row.dataset, row.lines, &row.head, &row.signature) {
        findings.push(Problem::Signature.of(&row.dataset));
    }
    let lines: Vec<_> = bodies.into_iter().map(|body| body.line).collect();
    match State::new(&lines) {
        Ok(state) if findings.is_empty() => {
            let Document { dataset, lines, head, public_key, .. } = document;
            Ok(Export { dataset, lines, head, public_key, state })
        }
        _ => Err(findings),
    }
}

/// The lines of a document with their hashes.
fn stored(document: &Document) -> Option<Vec<Stored>> {
    let mut previous: Hash = genesis(&document.dataset);
    let mut entries = Vec::with_capacity(document.entries.len());
    for entry in &document.entries {
        let hash = bytes(&entry.hash)?;
        entries.push(Stored { number: entry.number, body: entry.body.clone(), previous, hash });
        previous = hash;
    }
    Some(entries)
}

/// Checks a chain from its first line to its row and returns the parsed lines.
pub(crate) fn walk(row: &Row, entries: &[Stored]) -> Result<Vec<Body>, Vec<Finding>> {
    let mut position = Position::start(&row.dataset);
    let bodies: Result<Vec<Body>, Finding> =
        entries.iter().map(|entry| position.advance(&row.dataset, entry)).collect();
    let bodies = bodies.map_err(|finding| vec![finding])?;
    let last = bodies
        .last()
        .ok_or_else(|| vec![Problem::Truncated { lines: 0, expected: row.lines }.of(&row.dataset)])?;
    position.check(row, last).map_err(|finding| vec![finding])?;
    Ok(bodies)
}
