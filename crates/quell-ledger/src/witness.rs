//! Receipts that lie about in a project: in run folders, models and answers.
//!
//! A ledger that was put back from an older copy is sound by itself. Everything that was released since knows better: each artifact carries a receipt, which is a line and
//! the head of the chain after it.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use quell_privacy::ledger::Receipt;
use serde_json::Value;

/// Folders below the project that are looked into, one within the other.
const DEPTH: usize = 6;
/// Files that are looked at, at most.
const FILES: usize = 100_000;
/// Largest text that is read, and largest header of a model.
const TEXT: u64 = 8 << 20;

/// What was found in a project.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Witnesses {
    /// Receipts, each with the file that it stands in.
    pub receipts: Vec<(PathBuf, Receipt)>,
    /// Not everything was looked at: there are too many files, or some are too large or cannot be read.
    pub incomplete: bool,
}

/// Receipts in a JSON document: wherever an object has a dataset, an entry and a head.
#[must_use]
pub fn receipts(document: &Value) -> Vec<Receipt> {
    let mut found = Vec::new();
    collect(document, &mut found);
    found
}

/// Receipts in the JSON files and models below a folder. Hidden folders and links are left out.
#[must_use]
pub fn witnesses(folder: &Path) -> Witnesses {
    let mut witnesses = Witnesses::default();
    let mut left = FILES;
    look(folder, DEPTH, &mut left, &mut witnesses);
    witnesses.receipts.sort_by(|one, two| one.0.cmp(&two.0));
    witnesses
}

fn look(folder: &Path, depth: usize, left: &mut usize, witnesses: &mut Witnesses) {
    let Ok(entries) = fs::read_dir(folder) else {
        witnesses.incomplete = true;
        return;
    };
    for entry in entries.flatten() {
        let (path, hidden) = (entry.path(), entry.file_name().as_encoded_bytes().starts_with(b"."));
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && !hidden {
            if depth == 0 {
                witnesses.incomplete = true;
            } else {
                look(&path, depth - 1, left, witnesses);
            }
        } else if kind.is_file() {
            let Some(texts) = texts(&path) else { continue };
            if *left == 0 {
                witnesses.incomplete = true;
                return;
            }
            *left -= 1;
            match texts {
                Ok(texts) => {
                    let documents = texts.iter().filter_map(|text| serde_json::from_str::<Value>(text).ok());
                    let found = documents.flat_map(|document| receipts(&document));
                    witnesses.receipts.extend(found.map(|receipt| (path.clone(), receipt)));
                }
                Err(_) => witnesses.incomplete = true,
            }
        }
    }
}

/// The JSON documents in a file, if it is of a kind that holds some.
fn texts(path: &Path) -> Option<io::Result<Vec<String>>> {
    match path.extension()?.to_str()? {
        "json" => Some(text(path).map(|text| vec![text])),
        "jsonl" => Some(text(path).map(|text| text.lines().map(str::to_owned).collect())),
        "safetensors" => Some(header(path).map(|text| vec![text])),
        _ => None,
    }
}

fn text(path: &Path) -> io::Result<String> {
    let bytes = crate::file::read_at_most(path, TEXT)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// The header of a model: its length in eight bytes, then JSON.
fn header(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > TEXT {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "its header is too long"));
    }
    let mut text = String::new();
    file.take(length).read_to_string(&mut text)?;
    Ok(text)
}

fn collect(value: &Value, found: &mut Vec<Receipt>) {
    match value {
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
            if let (Some(dataset), Some(entry), Some(head)) =
                (text("dataset"), fields.get("entry").and_then(Value::as_u64), text("head"))
            {
                found.push(Receipt { ledger: text("ledger"), ..Receipt::new(dataset, entry, head) });
            }
            fields.values().for_each(|field| collect(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        // Models keep documents as texts within a document.
        Value::String(text) if text.starts_with('{') => {
            if let Ok(inner) = serde_json::from_str::<Value>(text) {
                collect(&inner, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
