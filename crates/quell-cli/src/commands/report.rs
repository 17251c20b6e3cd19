//! `quell report`: settings, guarantee and results of a run.
//!
//! All content of a report is public: it follows from settings, releases that were paid for, and data that
//! was declared public.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use quell::run::Folder;
use quell_report::{Report, escape};

use crate::{browser, print, progress::Bar, refusal::Refusal};

const EXAMPLES: &str = "\
Examples:
  quell train --output first
  quell report first
  quell report first --format json
  quell report first --output first.html
  quell knn --output nearest
  quell report nearest";

/// Report the settings, the guarantee and the results of a run
///
/// Without flags, the command writes report.md and report.html into the folder of the run, and prints the
/// report.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Folder of the run
    run: PathBuf,
    /// Output format (from the file extension of --output if not given)
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write the report to this file, and nothing into the folder
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Markdown with tables.
    Markdown,
    /// One HTML page with figures.
    Html,
    /// JSON for programs, with all digits.
    Json,
    /// The HTML page, printed by an installed Chromium or Chrome.
    Pdf,
}

impl Format {
    /// The format that belongs to a file extension.
    fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("md" | "markdown" | "txt") => Ok(Self::Markdown),
            Some("html" | "htm") => Ok(Self::Html),
            Some("json") => Ok(Self::Json),
            Some("pdf") => Ok(Self::Pdf),
            _ => {
                let sentence = format!(
                    "the output is {}, expected a name that ends in .md, .html, .pdf or .json",
                    path.display()
                );
                Err(Refusal::new(sentence, "or give the format with --format").into())
            }
        }
    }

    fn write(self, report: &Report) -> Result<Vec<u8>> {
        let text = match self {
            Self::Markdown => report.markdown(),
            Self::Html => report.html(),
            Self::Json => escape::json(&serde_json::to_string_pretty(report.json())?) + "\n",
            Self::Pdf => {
                let _bar = Bar::spinner("printing");
                return browser::pdf(&report.html());
            }
        };
        Ok(text.into_bytes())
    }
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    // Check the name of the output before the work starts.
    let format = match (&flags.output, flags.format) {
        (_, Some(format)) => Some(format),
        (Some(path), None) => Some(Format::of(path)?),
        (None, None) => None,
    };
    let folder = Folder::open(&flags.run)?;
    let report = {
        let _bar = Bar::spinner("composing");
        Report::of_run(&folder)?
    };
    match (format, &flags.output) {
        (Some(format), Some(path)) => {
            std::fs::write(path, format.write(&report)?)
                .with_context(|| format!("cannot write {}", path.display()))?;
            print::status(&format!("wrote {}", path.display()));
            Ok(())
        }
        (Some(Format::Pdf), None) => {
            let sentence = "a PDF does not fit on a terminal, expected --output";
            Err(Refusal::new(sentence, "for example, --output report.pdf").into())
        }
        (Some(format), None) => print::document(&String::from_utf8_lossy(&format.write(&report)?)),
        (None, _) => {
            let [markdown, html] = report.pages();
            for (file, page) in [&markdown, &html] {
                folder.write(file, page.as_bytes())?;
            }
            print::document(&markdown.1)?;
            print::status(&format!(
                "wrote {} and {}",
                folder.file(markdown.0).display(),
                folder.file(html.0).display()
            ));
            Ok(())
        }
    }
}
