//! `quell report`: what a run was, what it promises and what came of it, on a page for people.
//!
//! Everything on the page is public: it follows from settings, releases that were paid for, and data that was declared public.

mod facts;
mod figures;
mod html;
mod labelled;
mod markdown;
mod trained;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use quell::run::{Folder, Model};

use crate::{model, print, refusal::Refusal, visible};
use facts::Facts;

const EXAMPLES: &str = "\
Examples:
  quell train --output first
  quell report first
  quell report first --format json
  quell report first --output first.html
  quell knn --output nearest
  quell report nearest";

/// What a run was, what it promises and what came of it
///
/// Without flags, report.md and report.html are written anew into the folder of the run, and the report is printed.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Folder of the run
    run: PathBuf,
    /// How it is written; by the end of the name of --output if not given
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Write it to this file, and nothing into the folder
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Text with tables.
    Markdown,
    /// One page with pictures.
    Html,
    /// For programs: all digits.
    Json,
}

impl Format {
    /// By the end of a name.
    fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("md" | "markdown" | "txt") => Ok(Self::Markdown),
            Some("html" | "htm") => Ok(Self::Html),
            Some("json") => Ok(Self::Json),
            _ => {
                let sentence = format!("the output is {}, expected a name that ends in .md, .html or .json", path.display());
                Err(Refusal::new(sentence, "or say which of them with --format").into())
            }
        }
    }

    fn of_facts(self, facts: &Facts) -> Result<String> {
        Ok(match self {
            Self::Markdown => markdown::page(facts),
            Self::Html => html::page(facts),
            Self::Json => visible::json(&serde_json::to_string_pretty(&facts.document)?) + "\n",
        })
    }
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    // Before the work: a name that cannot be written to is known at once.
    let format = match (&flags.output, flags.format) {
        (_, Some(format)) => Some(format),
        (Some(path), None) => Some(Format::of(path)?),
        (None, None) => None,
    };
    let (folder, model) = model::of_run(&flags.run)?;
    let facts = Facts::new(&folder, &model)?;
    match (format, &flags.output) {
        (Some(format), Some(path)) => {
            std::fs::write(path, format.of_facts(&facts)?).with_context(|| format!("cannot write {}", path.display()))?;
            print::note(&format!("wrote {}", path.display()));
            Ok(())
        }
        (Some(format), None) => print::document(&format.of_facts(&facts)?),
        (None, _) => {
            write_pages(&folder, &facts)?;
            print::document(&markdown::page(&facts))?;
            print::note(&format!("wrote {} and {}", folder.file(MARKDOWN).display(), folder.file(HTML).display()));
            Ok(())
        }
    }
}

const MARKDOWN: &str = "report.md";
const HTML: &str = "report.html";

/// Writes both pages into the folder of a run.
pub(crate) fn write(folder: &Folder, model: &Model) -> Result<()> {
    write_pages(folder, &Facts::new(folder, model)?)
}

fn write_pages(folder: &Folder, facts: &Facts) -> Result<()> {
    folder.write(MARKDOWN, markdown::page(facts).as_bytes())?;
    Ok(folder.write(HTML, html::page(facts).as_bytes())?)
}
