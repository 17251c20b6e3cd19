//! Flags of every run on data, whether it trains or labels. They go over what a configuration says.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use quell::{
    data::Schema,
    features::Features,
    run::{self, Allowance, Folder},
};
use quell_privacy::ledger::Unit;

use crate::{
    arguments::{Change, Format, whole},
    purse::Purse,
    refusal::Refusal,
};

/// Where records come from.
#[derive(clap::Args)]
pub(crate) struct Source {
    /// File or folder of private records; the embedded digits if not given
    pub(crate) data: Option<PathBuf>,
    /// TOML file with everything below and more; flags go over it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// TOML file that says what is public about the columns of a table
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// The classes, where labels are numbers or names of folders: their names with commas between them, or how many there are, counted from 0
    #[arg(long, value_name = "NAMES", value_parser = names, group = "about")]
    pub(crate) classes: Option<Names>,
    /// Rows, columns and channels of pictures in folders: 32x32x3, or 28x28 in grey; one that cannot be read or is different counts, and nothing is learned from it
    #[arg(long, value_name = "SHAPE", value_parser = shape)]
    shape: Option<[usize; 3]>,
    /// The test part that lies with the data is public: everyone may know all of it
    #[arg(long)]
    public_test: bool,
}

/// Names of classes.
#[derive(Clone, Debug)]
pub(crate) struct Names(pub(crate) Vec<String>);

/// More classes than can be voted for.
const MOST_CLASSES: usize = 1 << 16;

/// Names with commas between them, or a number of classes.
fn names(text: &str) -> Result<Names, String> {
    if let Ok(count) = text.trim().parse::<usize>() {
        return Ok(Names((0..count.min(MOST_CLASSES)).map(|class| class.to_string()).collect()));
    }
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    let distinct: std::collections::HashSet<&String> = names.iter().collect();
    if distinct.len() != names.len() || names.iter().any(String::is_empty) {
        return Err("expected a number, or different names with commas between them".into());
    }
    Ok(Names(names))
}

/// Rows, columns and maybe channels, as channels, rows and columns.
fn shape(text: &str) -> Result<[usize; 3], String> {
    let sides: Option<Vec<usize>> = text.split('x').map(|side| side.trim().parse().ok()).collect();
    match sides.as_deref() {
        Some([rows, columns]) => Ok([1, *rows, *columns]),
        Some([rows, columns, channels]) => Ok([*channels, *rows, *columns]),
        _ => Err("expected rows, columns and channels with x between them, like 32x32x3".into()),
    }
}

impl Source {
    pub(crate) fn over(&self, terms: &Terms, source: &mut run::Source) -> Result<()> {
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

/// What stands between records and whoever looks at them.
#[derive(clap::Args)]
pub(crate) struct Sight {
    /// What is made of each picture before anybody learns from it
    #[arg(long, value_enum)]
    features: Option<Made>,
    /// Public model.safetensors: all its layers but the last are put before whoever learns
    #[arg(long, value_name = "FILE", conflicts_with = "features")]
    public_network: Option<PathBuf>,
}

/// What is made of each picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Made {
    /// Nothing: records are learned from as they are
    Raw,
    /// How steep it is in each direction, cell by cell
    Hog,
    /// How strongly it swings at each place, scale and angle: under a small ε, a linear model learns most from this
    Scattering,
}

impl Sight {
    pub(crate) fn over(&self, features: &mut Features) {
        let made = self.features.map(|made| match made {
            Made::Raw => Features::default(),
            Made::Hog => Features::hog(),
            Made::Scattering => Features::scattering(),
        });
        if let Some(asked) = self.public_network.as_ref().map(Features::network).or(made) {
            *features = asked;
        }
    }
}

/// Who is protected.
#[derive(clap::Args)]
pub(crate) struct Users {
    /// Protect people with all their records; who they are says the schema, an array `users` beside the others, or this file: integers in NPY or IDX, or text with a line for each record
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "")]
    users: Option<String>,
}

impl Users {
    /// Whom it protects.
    pub(crate) fn unit(&self) -> Unit {
        if self.users.is_some() { Unit::User } else { Unit::Example }
    }

    /// The file that says whose records they are.
    pub(crate) fn file(&self) -> Option<&str> {
        self.users.as_deref().filter(|file| !file.is_empty())
    }

    pub(crate) fn over(&self, source: &mut run::Source) {
        if let Some(users) = &self.users {
            source.unit = Unit::User;
            // Without a name, the data says it itself.
            source.users = Some(PathBuf::from(users)).filter(|_| !users.is_empty()).or(source.users.take());
        }
    }
}

/// What is promised, who pays, and where it ends.
#[derive(clap::Args)]
pub(crate) struct Terms {
    /// Which change of the data is hidden
    #[arg(long, value_enum)]
    pub(crate) neighbors: Option<Change>,
    /// Name of the dataset in the ledger (the name of the file if not given)
    #[arg(long, value_name = "NAME")]
    pub(crate) dataset: Option<String>,
    /// Most that all runs on the dataset together may cost, if its ledger is opened now (ε of this run if not given)
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    budget: Option<f64>,
    /// What first weights and other public chance follow from; noise does not
    #[arg(long, value_name = "N", value_parser = whole)]
    pub(crate) seed: Option<u64>,
    /// Folder of the run (a new one in runs if not given)
    #[arg(long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Say what would be done and what it would cost, and pay nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) purse: Purse,
    /// How what came of it is written
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

impl Terms {
    /// What may be spent in all, if that is said.
    pub(crate) fn allowance(&self, delta: Option<f64>) -> Result<Option<Allowance>> {
        let Some(epsilon) = self.budget else { return Ok(None) };
        let delta =
            delta.ok_or_else(|| Refusal::new("a budget needs a δ, expected --delta beside --budget", "add --delta 1e-6, say"))?;
        Ok(Some(Allowance { epsilon, delta }))
    }

    /// A folder that is not there yet.
    pub(crate) fn folder(&self, name: &str) -> Result<Folder> {
        Ok(match &self.output {
            Some(path) => Folder::create(path)?,
            None => Folder::number(Path::new("runs"), name)?,
        })
    }
}
