//! `quell init`: writes the files that a first run on own data needs.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use quell::data::{self, Format};

use super::schema::{
    self,
    text::{line, quoted},
};
use crate::{print, refusal::Refusal};

const EXAMPLES: &str = "\
Examples:
  quell init census.csv --label income
  quell init census.csv --numbers age,hours_per_week --config my-run.toml --output my-schema.toml
  quell init census.csv --header age,education,sex,hours,income --delimiter , --config bare-run.toml --output bare.toml";

/// Write a schema and a configuration for own data, with a comment on every line
///
/// The files have gaps that you fill in from public knowledge. The names of columns come from the header, types
/// from Parquet. Nothing else is read, and nothing is charged. With --epsilon, bounds and categories are
/// released and charged, like those of `quell schema`. Other data than tables needs no schema.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
#[group(id = "init")]
pub(crate) struct Flags {
    #[command(flatten)]
    schema: schema::Flags,
    /// Configuration to write (NAME-run.toml if not given)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(crate) fn run(flags: Flags) -> Result<()> {
    let Flags { mut schema, config } = flags;
    let path = schema.data.clone();
    let format = Format::find(&path)?;
    let name = data::name_of(&path).unwrap_or_else(|| "data".into());
    let config = config.unwrap_or_else(|| PathBuf::from(format!("{name}-run.toml")));
    check_new(&config, "--config")?;
    let mut next = format!("quell train --config {}", config.display());
    if format == Format::Table {
        // The same paid question is asked again for the same file, after a run that was killed.
        let is_paid = schema.epsilon.is_some();
        let file = schema.output.take().unwrap_or_else(|| PathBuf::from(format!("{name}-schema.toml")));
        if !is_paid {
            check_new(&file, "--output")?;
        }
        let _ = write!(next, " --schema {}", file.display());
        schema.output = Some(file);
        schema::run(&schema)?;
    } else if let given @ [_, ..] = schema.given().as_slice() {
        let sentence = format!("{} is not a table, expected a table for a schema", path.display());
        return Err(Refusal::new(sentence, format!("leave out {}", given.join(" and "))).into());
    }
    std::fs::write(&config, configuration(&path, &name, schema.dataset.as_deref(), format))
        .with_context(|| format!("cannot write {}", config.display()))?;
    print::status(&format!("wrote {}", config.display()));
    let written = schema.output.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
    if written.is_some_and(|schema| !schema::text::has_gaps(&schema)) {
        print::status(&format!("state a public number of records in {}, then: {next}", config.display()));
    } else {
        print::status(&format!("fill in the gaps, then: {next}"));
    }
    Ok(())
}

/// Refuses to overwrite a file, which may hold what a person wrote.
fn check_new(path: &Path, flag: &str) -> Result<()> {
    if !path.exists() {
        return Ok(());
    }
    let sentence = format!("{} exists, expected a new file", path.display());
    Err(Refusal::new(sentence, format!("name another file with {flag}, or remove this one")).into())
}

/// Writes the settings of a run, from the path and the format alone.
fn configuration(path: &Path, name: &str, dataset: Option<&str>, format: Format) -> String {
    let path = format!("path = {}", quoted(&path.to_string_lossy()));
    let dataset = match dataset {
        Some(dataset) => format!("dataset = {}", quoted(dataset)),
        None => format!("# dataset = {}", quoted(name)),
    };
    let mut lines = vec![
        ("[data]", "the private records"),
        (path.as_str(), "a file or a folder"),
        ("# test = \"…\"", "public test records, in a file of the same kind"),
    ];
    match format {
        Format::Table => {}
        Format::Folder => lines.extend([
            ("# public_test = true", "everyone may know the folder test beside train"),
            ("# classes = [\"…\", \"…\"]", "the names of the folders"),
            ("# shape = [3, 32, 32]", "channels, rows and columns of every image"),
        ]),
        _ => lines.extend([
            ("# public_test = true", "everyone may know the test part of the data"),
            ("# classes = [\"…\", \"…\"]", "for integers: names in their order; for names: all of them"),
        ]),
    }
    lines.extend([
        (dataset.as_str(), "the name of its ledger"),
        ("# unit = \"user\"", "protect each person with all their records"),
        ("# users = \"…\"", "a file that says whose record each one is"),
        ("", ""),
        ("[model]", "what is trained"),
        ("# name = \"logistic\"", "`quell models` lists all; chosen by the data if not given"),
        ("", ""),
        ("[training.privacy]", "the cost of this run"),
        ("epsilon = 1.0", "ε: a smaller one is more private"),
        ("delta = 1e-6", "δ: much less than 1 divided by the number of records"),
        ("", ""),
        ("[training.sampling]", "the size of the data"),
        ("# records = 10000", "a public number of records, even a rough one"),
        ("", ""),
        ("# [budget]", "of the ledger, if there is none yet; the cost of this run if not given"),
        ("# epsilon = 3.0", "ε of all releases together"),
        ("# delta = 1e-6", "δ of all releases together"),
    ]);
    let written = |(setting, comment): (&str, &str)| {
        if setting.is_empty() { "\n".to_owned() } else { line(setting, comment) }
    };
    let lines: String = lines.into_iter().map(written).collect();
    format!("# Settings of `quell train`. Flags override them.\n\n{lines}")
}
