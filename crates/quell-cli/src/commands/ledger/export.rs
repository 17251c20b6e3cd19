//! `quell ledger export`: writes documents that witness a ledger, to be kept elsewhere.

use std::{
    fs,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use quell_ledger::Store;

use super::verify::read_export;
use crate::{flags::ledger::LedgerArgs, print, refusal::Refusal};

const SCHEDULE: &str = "\
With --into, the command compares each ledger with its newest document in the folder, and then writes a new document, whose name contains the number of lines.
Run it on a schedule, and choose a folder that the people who write the ledger cannot change. Exit code 1 means that a ledger is older than its newest document,
or differs from it.

Example for cron:
  0 * * * *  quell ledger export --into /mnt/archive/ledgers --ledger /home/project/.quell";

#[derive(clap::Args)]
#[command(after_help = SCHEDULE)]
pub(super) struct Export {
    /// Name of the dataset (with --into: all datasets if not given)
    #[arg(required_unless_present = "into")]
    dataset: Option<String>,
    /// File to write (standard output if not given)
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Folder for the documents; the command never replaces a document
    #[arg(long, value_name = "FOLDER", conflicts_with = "output")]
    into: Option<PathBuf>,
    #[command(flatten)]
    ledgers: LedgerArgs,
}

impl Export {
    /// Exports ledgers. Returns whether they agree with their earlier exports.
    pub(super) fn run(self) -> Result<bool> {
        let mut store = self.ledgers.store()?;
        if let Some(folder) = &self.into {
            let datasets = match &self.dataset {
                Some(dataset) => vec![dataset.clone()],
                None => store.datasets()?.into_iter().map(|summary| summary.dataset).collect(),
            };
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot create the folder {}", folder.display()))?;
            let mut all_agree = true;
            for dataset in datasets {
                all_agree &= archive(&mut store, &dataset, folder)?;
            }
            return Ok(all_agree);
        }
        let Some(dataset) = &self.dataset else {
            return Err(
                Refusal::new("no dataset is given, expected one", "name a dataset, or give --into").into()
            );
        };
        let text = store.export(dataset)?;
        match &self.output {
            None => print::document(&text)?,
            Some(path) => {
                fs::write(path, &text).with_context(|| format!("cannot write {}", path.display()))?;
                print::status(&format!(
                    "wrote {}; keep this file where nobody who writes the ledger can change it",
                    path.display()
                ));
            }
        }
        Ok(true)
    }
}

/// Compares a ledger with its newest document in a folder, and adds one if it has grown.
fn archive(store: &mut Store, dataset: &str, folder: &Path) -> Result<bool> {
    let stem = stem(dataset);
    if let Some(newest) = newest(folder, &stem)? {
        let earlier = read_export(&newest)?;
        let report = store.verify(&[], &[&earlier]);
        if !report.is_good() {
            for finding in &report.findings {
                print::line(&format!("{finding}"))?;
            }
            print::status(&format!(
                "ledger {:?} does not agree with {}; no document was written",
                dataset,
                newest.display()
            ));
            return Ok(false);
        }
    }
    let text = store.export(dataset)?;
    let lines = quell_ledger::verify_export(&text).map_or(0, |export| export.lines);
    let path = folder.join(format!("{stem}.{lines:012}.json"));
    let written = fs::OpenOptions::new().write(true).create_new(true).open(&path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    match written {
        Ok(()) => print::status(&format!("wrote {}", path.display())),
        // The ledger has not grown since the last export.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error).with_context(|| format!("cannot write {}", path.display())),
    }
    Ok(true)
}

/// Returns the start of the file name for a dataset.
///
/// Letters, digits and hyphens are kept. Every other byte is written as `_` and two hexadecimal digits.
fn stem(dataset: &str) -> String {
    let mut stem = String::new();
    for byte in dataset.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' => stem.push(char::from(byte)),
            // Writing to a string cannot fail.
            other => drop(std::fmt::Write::write_fmt(&mut stem, format_args!("_{other:02x}"))),
        }
    }
    stem
}

/// Finds the document with the most lines.
fn newest(folder: &Path, stem: &str) -> Result<Option<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let names = entries.flatten().map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let lines = name
            .strip_prefix(stem)
            .and_then(|rest| rest.strip_prefix('.'))
            .and_then(|rest| rest.strip_suffix(".json"));
        lines.is_some_and(|lines| lines.len() == 12 && lines.bytes().all(|digit| digit.is_ascii_digit()))
    });
    Ok(names.max())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_datasets_have_different_file_names() {
        assert_eq!(stem("a/b"), "a_2fb");
        assert_ne!(stem("a_2fb"), stem("a/b"));
    }
}
