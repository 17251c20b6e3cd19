//! Collects the receipts stored in a project: in run folders, models and answers.
//!
//! A ledger restored from an older copy is consistent in itself. The artifacts released since that copy
//! reveal it: each artifact carries a receipt, which names a line and the head of the chain after that line.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use quell_privacy::ledger::Receipt;
use serde_json::Value;

/// Largest depth of nested folders that are searched.
const MAX_DEPTH: usize = 6;
/// Largest number of files that are read.
const MAX_FILES: usize = 100_000;
/// Largest text file or model header that is read, in bytes.
const MAX_BYTES: u64 = 8 << 20;

/// The receipts found in a project.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Witnesses {
    /// Receipts, each with the file that contains it.
    pub receipts: Vec<(PathBuf, Receipt)>,
    /// Why the search was incomplete, if it was: too many files, or one that is too large or unreadable.
    pub incomplete: Option<String>,
}

impl Witnesses {
    /// Notes the first reason why the search is incomplete.
    fn lack(&mut self, why: impl FnOnce() -> String) {
        self.incomplete.get_or_insert_with(why);
    }
}

/// Finds receipts in a JSON document: objects with a dataset, an entry and a head.
#[must_use]
pub fn receipts(document: &Value) -> Vec<Receipt> {
    let mut found = Vec::new();
    collect_receipts(document, &mut found);
    found
}

/// Finds receipts in the JSON files and models below a folder.
///
/// Hidden folders and symbolic links are skipped.
#[must_use]
pub fn witnesses(folder: &Path) -> Witnesses {
    let mut witnesses = Witnesses::default();
    let mut files_left = MAX_FILES;
    scan_folder(folder, MAX_DEPTH, &mut files_left, &mut witnesses);
    witnesses.receipts.sort_by(|one, two| one.0.cmp(&two.0));
    witnesses
}

fn scan_folder(folder: &Path, depth: usize, files_left: &mut usize, witnesses: &mut Witnesses) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => return witnesses.lack(|| format!("{} cannot be read: {error}", folder.display())),
    };
    for entry in entries.flatten() {
        let (path, hidden) = (entry.path(), entry.file_name().as_encoded_bytes().starts_with(b"."));
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && !hidden {
            if depth == 0 {
                witnesses.lack(|| format!("{} is more than {MAX_DEPTH} folders below it", path.display()));
            } else {
                scan_folder(&path, depth - 1, files_left, witnesses);
            }
        } else if kind.is_file() {
            let Some(texts) = texts(&path) else { continue };
            if *files_left == 0 {
                witnesses.lack(|| format!("there are more than {MAX_FILES} files"));
                return;
            }
            *files_left -= 1;
            match texts {
                Ok(texts) => {
                    let documents = texts.iter().filter_map(|text| serde_json::from_str::<Value>(text).ok());
                    let found = documents.flat_map(|document| receipts(&document));
                    witnesses.receipts.extend(found.map(|receipt| (path.clone(), receipt)));
                }
                Err(error) => witnesses.lack(|| format!("{} cannot be read: {error}", path.display())),
            }
        }
    }
}

/// Reads the JSON documents in a file; none for other types of files.
fn texts(path: &Path) -> Option<io::Result<Vec<String>>> {
    match path.extension()?.to_str()? {
        "json" => Some(text(path).map(|text| vec![text])),
        "jsonl" => Some(text(path).map(|text| text.lines().map(str::to_owned).collect())),
        "safetensors" => Some(header(path).map(|text| vec![text])),
        _ => None,
    }
}

fn text(path: &Path) -> io::Result<String> {
    let bytes = crate::file::read_at_most(path, MAX_BYTES)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads the header of a model: its length in eight bytes, then JSON.
fn header(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "its header is too long"));
    }
    let mut text = String::new();
    file.take(length).read_to_string(&mut text)?;
    Ok(text)
}

fn collect_receipts(value: &Value, found: &mut Vec<Receipt>) {
    match value {
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
            if let (Some(dataset), Some(entry), Some(head)) =
                (text("dataset"), fields.get("entry").and_then(Value::as_u64), text("head"))
            {
                found.push(Receipt { ledger: text("ledger"), ..Receipt::new(dataset, entry, head) });
            }
            fields.values().for_each(|field| collect_receipts(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_receipts(item, found)),
        // Models store JSON documents as strings inside a JSON document.
        Value::String(text) if text.starts_with('{') => {
            if let Ok(inner) = serde_json::from_str::<Value>(text) {
                collect_receipts(&inner, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
