//! `quell ledger verify`: checks that no line of a ledger was changed or removed.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use quell_ledger::{Evidence, Location, receipts, verify_with, witnesses};
use quell_privacy::ledger::Receipt;
use serde_json::Value;

use super::Listed;
use crate::{flags::Format, print, refusal::Refusal};

/// The size limits in bytes of an artifact and of an export that are read.
const ARTIFACT: u64 = 64 << 20;
const EXPORT: u64 = 1 << 30;

#[derive(clap::Args)]
pub(super) struct Verify {
    /// Datasets that must have a ledger; all ledgers are checked
    #[arg(value_name = "DATASET")]
    datasets: Vec<String>,
    /// JSON file that contains receipts, such as a released answer
    #[arg(long, value_name = "FILE")]
    artifact: Vec<PathBuf>,
    /// Earlier document of `quell ledger export`
    #[arg(long, value_name = "FILE")]
    export: Vec<PathBuf>,
    /// Folder of runs, models and answers whose receipts are compared
    ///
    /// If not given: the folder that contains the directory of the ledger.
    #[arg(long, value_name = "FOLDER")]
    project: Option<PathBuf>,
    /// Public key in hexadecimal, to verify without the signing key
    #[arg(long, value_name = "HEX")]
    public_key: Option<String>,
    #[command(flatten)]
    listed: Listed,
}

/// Reads a document up to a size limit.
pub(super) fn read(path: &Path, most: u64) -> Result<String> {
    let mut text = String::new();
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    // A device has no length and may never end, so its limit is the smaller one.
    let most = if file.metadata().is_ok_and(|file| file.is_file()) { most } else { most.min(ARTIFACT) };
    file.take(most + 1)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read {}", path.display()))?;
    if text.len() as u64 > most {
        let sentence = format!("{} has more than {most} bytes, expected a document", path.display());
        return Err(Refusal::new(
            sentence,
            "use an answer of `quell query --format json`, or a document of `quell ledger export`",
        )
        .into());
    }
    Ok(text)
}

/// Reads an earlier export.
pub(super) fn read_export(path: &Path) -> Result<String> {
    read(path, EXPORT)
}

impl Verify {
    pub(super) fn run(self) -> Result<bool> {
        let location = self.listed.ledgers.location();
        if !self.datasets.is_empty() {
            let mut store = self.listed.ledgers.store()?;
            self.datasets.iter().try_for_each(|dataset| store.entries(dataset).map(drop))?;
        }
        let mut given = Vec::new();
        for path in &self.artifact {
            let artifact: Value = serde_json::from_str(&read(path, ARTIFACT)?)
                .with_context(|| format!("{} is not JSON", path.display()))?;
            let found = receipts(&artifact);
            if found.is_empty() {
                let sentence = format!(
                    "{} contains no receipt, expected an object with dataset, entry and head",
                    path.display()
                );
                return Err(Refusal::new(
                    sentence,
                    "an answer of `quell query --format json` contains a receipt",
                )
                .into());
            }
            given.extend(found);
        }
        let exports = self.export.iter().map(|path| read_export(path)).collect::<Result<Vec<String>>>()?;
        let exports: Vec<&str> = exports.iter().map(String::as_str).collect();
        let folder = self.folder(&location);
        let found = witnesses(&folder);
        let witnesses: Vec<Receipt> = found.receipts.into_iter().map(|(_, receipt)| receipt).collect();
        let public_key = self.public_key.as_deref();
        let mut report = verify_with(
            location,
            &Evidence { receipts: &given, witnesses: &witnesses, exports: &exports, public_key },
        )?;
        if let Some(why) = found.incomplete {
            let folder = folder.display();
            report.notes.push(format!("the search for receipts in {folder} is not complete: {why}"));
        }
        if self.listed.format == Format::Json {
            print::json(&report)?;
            return Ok(report.is_good());
        }
        for note in &report.notes {
            print::status(&format!("note: {note}"));
        }
        for finding in &report.findings {
            print::line(&format!("{finding}"))?;
        }
        if report.is_good() {
            let plural = |count: u64| if count == 1 { "" } else { "s" };
            let (lines, datasets) = (report.lines, report.datasets as u64);
            let agree = match report.receipts as u64 {
                0 => String::new(),
                compared => format!(
                    "; {compared} receipt{} {} with the ledger",
                    plural(compared),
                    if compared == 1 { "agrees" } else { "agree" }
                ),
            };
            print::lines(&format!(
                "all {lines} line{} of {datasets} dataset{} are unchanged{agree}",
                plural(lines),
                plural(datasets)
            ))?;
        }
        Ok(report.is_good())
    }

    /// Returns the folder in which receipts are searched.
    fn folder(&self, location: &Location) -> PathBuf {
        match (&self.project, location) {
            (Some(folder), _) => folder.clone(),
            (None, Location::File(path)) => match path.parent().and_then(Path::parent) {
                Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
                _ => PathBuf::from("."),
            },
            (None, Location::Server(_)) => PathBuf::from("."),
        }
    }
}
