//! Flags of all runs on data, for training and labelling. Flags override the configuration.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use quell::{
    data::Schema,
    features::Features,
    run::{self, Folder, NewBudget},
};
use quell_privacy::ledger::Unit;

use crate::{
    flags::{Change, Format, ledger::LedgerArgs, parse_count},
    refusal::Refusal,
};

/// The source of the records.
#[derive(Clone, clap::Args)]
pub(crate) struct SourceArgs {
    /// File or folder of private records; the embedded digits if not given
    pub(crate) data: Option<PathBuf>,
    /// TOML file with these and more settings; flags override it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// TOML file with the public facts about the columns of a table
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Names of the classes, separated by commas, or the number of classes
    ///
    /// Needed if labels are numbers or folder names. Numbers are counted from 0.
    #[arg(long, value_name = "NAMES", value_parser = names, group = "about")]
    pub(crate) classes: Option<Names>,
    /// Rows, columns and channels of images in folders: 32x32x3, or 28x28 for greyscale
    ///
    /// In a configuration the channels are first: shape = [3, 32, 32].
    /// An unreadable image or an image of another shape counts as a record, but the model learns nothing from it.
    #[arg(long, value_name = "SHAPE", value_parser = shape)]
    shape: Option<[usize; 3]>,
    /// Declare the test part of the data public: everyone may know all of it
    #[arg(long)]
    public_test: bool,
}

/// The source of the records of a table.
#[derive(clap::Args)]
pub(crate) struct TableArgs {
    /// CSV or Parquet file of private records
    pub(crate) data: Option<PathBuf>,
    /// TOML file with these and more settings; flags override it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// TOML file with the public facts about the columns of a table
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
}

impl TableArgs {
    pub(crate) fn apply_to(&self, terms: &RunArgs, source: &mut run::Source) -> Result<()> {
        source.path = self.data.clone().or(source.path.take());
        source.dataset = terms.dataset.clone().or(source.dataset.take());
        if let Some(path) = &self.schema {
            source.schema = Some(Schema::read(path)?);
        }
        Ok(())
    }
}

/// Names of classes.
#[derive(Clone, Debug)]
pub(crate) struct Names(pub(crate) Vec<String>);

/// Largest number of classes.
const MOST_CLASSES: usize = 1 << 16;

/// Parses comma-separated names, or a number of classes.
fn names(text: &str) -> Result<Names, String> {
    if let Ok(count) = text.trim().parse::<usize>() {
        return Ok(Names((0..count.min(MOST_CLASSES)).map(|class| class.to_string()).collect()));
    }
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    let distinct: std::collections::HashSet<&String> = names.iter().collect();
    if distinct.len() != names.len() || names.iter().any(String::is_empty) {
        return Err("expected a number, or different names separated by commas".into());
    }
    Ok(Names(names))
}

/// Parses rows, columns and optional channels; returns channels, rows and columns.
fn shape(text: &str) -> Result<[usize; 3], String> {
    let sides: Option<Vec<usize>> = text.split('x').map(|side| side.trim().parse().ok()).collect();
    match sides.as_deref() {
        Some([rows, columns]) => Ok([1, *rows, *columns]),
        Some([rows, columns, channels]) => Ok([*channels, *rows, *columns]),
        _ => Err("expected rows, columns and channels with x between them, like 32x32x3".into()),
    }
}

impl SourceArgs {
    pub(crate) fn apply_to(&self, terms: &RunArgs, source: &mut run::Source) -> Result<()> {
        source.path = self.data.clone().or(source.path.take());
        source.dataset = terms.dataset.clone().or(source.dataset.take());
        if let Some(path) = &self.schema {
            source.schema = Some(Schema::read(path)?);
        }
        source.classes = self.classes.as_ref().map(|names| names.0.clone()).or(source.classes.take());
        source.shape = self.shape.or(source.shape);
        source.public_test |= self.public_test;
        Ok(())
    }
}

/// Features computed from the records.
#[derive(Clone, clap::Args)]
pub(crate) struct FeatureArgs {
    /// Features computed from each image before training
    #[arg(long, value_enum)]
    features: Option<FeatureKind>,
    /// Public model.safetensors; all layers except the last compute the features
    #[arg(long, value_name = "FILE", conflicts_with = "features")]
    public_network: Option<PathBuf>,
}

/// Kinds of features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FeatureKind {
    /// The raw records
    Raw,
    /// Histograms of oriented gradients
    Hog,
    /// Scattering transform (wavelets); the best features for a linear model at small ε
    Scattering,
}

impl FeatureArgs {
    /// The features that the flags ask for.
    pub(crate) fn asked(&self) -> Option<Features> {
        let computed = self.features.map(|kind| match kind {
            FeatureKind::Raw => Features::default(),
            FeatureKind::Hog => Features::hog(),
            FeatureKind::Scattering => Features::scattering(),
        });
        self.public_network.as_ref().map(Features::network).or(computed)
    }
}

/// The privacy unit.
#[derive(Clone, clap::Args)]
pub(crate) struct UserArgs {
    /// Protect each person with all their records (user-level privacy)
    ///
    /// The file contains the user of each record: integers or names in NPY or IDX, or text with one line per record.
    /// For images in folders, it is a CSV file with the columns file (such as cat/1.png) and user. Without a file,
    /// the schema or an array `users` beside the other arrays names the users.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "")]
    users: Option<String>,
}

impl UserArgs {
    /// The privacy unit: user or example.
    pub(crate) fn unit(&self) -> Unit {
        if self.users.is_some() { Unit::User } else { Unit::Example }
    }

    /// The file with the user of each record.
    pub(crate) fn file(&self) -> Option<&str> {
        self.users.as_deref().filter(|file| !file.is_empty())
    }

    pub(crate) fn apply_to(&self, source: &mut run::Source) {
        if let Some(users) = &self.users {
            source.unit = Unit::User;
            // Without a file, the data contains the users.
            source.users = Some(PathBuf::from(users)).filter(|_| !users.is_empty()).or(source.users.take());
        }
    }
}

/// Guarantee, ledger and output of a run.
#[derive(Clone, clap::Args)]
pub(crate) struct RunArgs {
    /// Neighboring datasets: which change of the data the guarantee hides
    #[arg(long, value_enum)]
    pub(crate) neighbors: Option<Change>,
    /// Name of the dataset in the ledger (the name of the file if not given)
    #[arg(long, value_name = "NAME")]
    pub(crate) dataset: Option<String>,
    /// Total budget of the dataset, if this run creates its ledger
    ///
    /// If not given: the ε of this run.
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    budget: Option<f64>,
    /// Seed of the initial weights and other public randomness, but not of the noise
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub(crate) seed: Option<u64>,
    /// Folder of the run (a new folder in runs/ if not given)
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Show the plan and its privacy cost, and charge nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) ledgers: LedgerArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: RunFormat,
}

/// Whether a name is that of a table.
fn is_table(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    ["csv", "tsv", "parquet"].iter().any(|name| extension == *name)
}

/// Output format of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunFormat {
    /// Text for people.
    #[default]
    Text,
    /// JSON for programs, with all digits.
    Json,
    /// With --dry-run: all settings, as --config reads them.
    Toml,
}

impl RunFormat {
    /// The format of results, which are never TOML.
    pub(crate) fn of_results(self) -> Result<Format> {
        match self {
            Self::Text => Ok(Format::Text),
            Self::Json => Ok(Format::Json),
            Self::Toml => {
                let sentence = "--format toml prints settings, expected --dry-run beside it";
                Err(Refusal::new(sentence, "add --dry-run, or give --format text or json").into())
            }
        }
    }
}

impl RunArgs {
    /// The total budget, if --budget is given.
    pub(crate) fn new_budget(&self, delta: Option<f64>) -> Result<Option<NewBudget>> {
        let Some(epsilon) = self.budget else { return Ok(None) };
        let delta = delta.ok_or_else(|| {
            Refusal::new(
                "--budget is given and δ is not, expected both",
                "add --delta D, far below one over the number of records: 1e-6 for 100,000 records",
            )
        })?;
        Ok(Some(NewBudget { epsilon, delta }))
    }

    /// Refuses an output folder that exists, before a ledger is made for a run that cannot start.
    pub(crate) fn check_output(&self) -> Result<()> {
        match &self.output {
            Some(path) if is_table(path) => {
                let sentence = format!("the output is {}, expected the folder of the run", path.display());
                let hint =
                    "name a folder, such as runs/first; synthetic rows are the file synthetic.csv in it";
                Err(Refusal::new(sentence, hint).into())
            }
            Some(path) if path.exists() => {
                Err(quell::Error::from(run::Error::Exists { path: path.clone() }).into())
            }
            _ => Ok(()),
        }
    }

    /// Creates the folder of the run.
    pub(crate) fn folder(&self, name: &str) -> Result<Folder> {
        Ok(match &self.output {
            Some(path) => Folder::create(path)?,
            None => Folder::number(Path::new("runs"), name)?,
        })
    }
}
