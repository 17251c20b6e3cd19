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
With --into, every ledger is written into a folder under a name that says how many lines it has, and compared with the newest document there before: run it on a
schedule, into a place that whoever writes the ledger cannot change. Exit code 1 if a ledger is older than its last document, or another one.

Example of a line for cron:
  0 * * * *  quell ledger export --into /mnt/archive/ledgers --ledger /home/project/.quell";

#[derive(clap::Args)]
#[command(after_help = SCHEDULE)]
pub(super) struct Export {
    /// Name of the dataset (all of them with --into, if not given)
    #[arg(required_unless_present = "into")]
    dataset: Option<String>,
    /// File to write (standard output if not given)
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Folder that keeps one document per ledger and length; nothing in it is ever replaced
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
                .with_context(|| format!("cannot make the folder {}", folder.display()))?;
            let mut good = true;
            for dataset in datasets {
                good &= archive(&mut store, &dataset, folder)?;
            }
            return Ok(good);
        }
        let Some(dataset) = &self.dataset else {
            return Err(Refusal::new("no dataset is named, expected one", "name it, or give --into").into());
        };
        let text = store.export(dataset)?;
        match &self.output {
            None => print::document(&text)?,
            Some(path) => {
                fs::write(path, &text).with_context(|| format!("cannot write {}", path.display()))?;
                print::status(&format!(
                    "wrote {}; keep it where the ledger cannot be changed together with it",
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
                "{:?} was compared with {}; nothing was written",
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
    fn every_dataset_has_a_name_of_its_own() {
        assert_eq!(stem("a/b"), "a_2fb");
        assert_ne!(stem("a_2fb"), stem("a/b"));
    }
}
