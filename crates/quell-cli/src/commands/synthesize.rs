//! `quell synthesize`: synthetic rows of a private table.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use quell::{
    learner::{
        Predictor,
        synthesis::{self, MOST_ROWS},
    },
    run::{self, Configuration, Learner, Model},
};
use serde_json::json;

use crate::{
    drive,
    flags::{
        Format, parse_count, parse_positive,
        run::{RunArgs, TableArgs, UserArgs},
    },
    print,
    refusal::Refusal,
};

const EXAMPLES: &str = "\
Examples:
  quell synthesize census.csv --schema census.toml --records 5000 --epsilon 1 --delta 1e-6 --budget 3
  quell synthesize census.csv --schema census.toml --records 5000 --epsilon 1 --delta 1e-6 --rows 1000 --output runs/rows
  quell synthesize --from runs/rows --rows 20000 --seed 2 > more.csv";

/// Make synthetic rows of a table, charged to its ledger
///
/// The command counts the values of columns and of chosen pairs of columns with noise, fits a graphical model to
/// the counts, and draws rows from it: synthetic.csv in the folder of the run. The rows have the columns of the schema, the
/// label among them, and can be used with the same schema. One share of the budget estimates the error of pairs that
/// were not measured.
///
/// With --from, the command draws rows from a finished run, which costs nothing, and prints them.
/// The command does not count the records, because their number may be private: state it with --records, approximately.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    #[command(flatten)]
    source: TableArgs,
    /// Draw rows from a finished run or its model.safetensors, and print CSV
    #[arg(long, value_name = "RUN", conflicts_with_all = [
        "data", "config", "schema", "epsilon", "delta", "noise_multiplier",
        "records", "users", "neighbors", "dataset", "budget", "output", "dry_run", "location",
    ])]
    from: Option<PathBuf>,
    /// ε of the run
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// δ of the run
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: Option<f64>,
    /// Standard deviation of the noise in each of the runs
    #[arg(long, value_name = "Z", allow_negative_numbers = true)]
    noise_multiplier: Option<f64>,
    /// Approximate number of records (or users); a public number
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    records: Option<u64>,
    /// Number of synthetic rows; the number of records if not given
    #[arg(long, value_name = "N", value_parser = parse_count)]
    rows: Option<u64>,
    #[command(flatten)]
    users: UserArgs,
    #[command(flatten)]
    terms: RunArgs,
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    match &flags.from {
        Some(path) => flags.draw(path),
        // All errors in the configuration are reported before anything is paid.
        None => run::train(flags.configuration()?, drive::Start::reading(&flags.terms))?,
    }
}

impl Flags {
    /// Builds the configuration: flags override the file, and the file overrides the defaults.
    fn configuration(&self) -> Result<Configuration> {
        let mut asked = match &self.source.config {
            Some(path) => Configuration::read(path).with_context(|| format!("in {}", path.display()))?,
            None => Configuration::default(),
        };
        self.source.apply_to(&self.terms, &mut asked.data)?;
        self.users.apply_to(&mut asked.data);
        if asked.data.path.is_none() || asked.data.schema.is_none() {
            let what = if asked.data.path.is_none() { "data" } else { "schema" };
            let sentence = format!("no {what} is given, expected a table and its schema");
            let hint = "quell synthesize DATA --schema FILE, or --from RUN to draw from a finished run; `quell schema` helps with a schema";
            return Err(Refusal::new(sentence, hint).into());
        }
        asked.learner = Some(Learner::Synthesis);
        asked.model.name = Some(synthesis::NAME.into());
        // Flags override the file: they go where settings of all learners are, which override the section.
        let shared = &mut asked.training;
        if self.noise_multiplier.is_some() && self.epsilon.is_none() {
            // The noise determines ε; an ε from the file would contradict it.
            (shared.privacy.epsilon, asked.synthesis.privacy.epsilon) = (None, None);
        }
        shared.privacy.epsilon = self.epsilon.or(shared.privacy.epsilon);
        shared.privacy.delta = self.delta.or(shared.privacy.delta);
        shared.privacy.noise_multiplier = self.noise_multiplier.or(shared.privacy.noise_multiplier);
        shared.sampling.records = self.records.or(shared.sampling.records);
        if let Some(change) = self.terms.neighbors {
            (shared.privacy.neighbors, asked.synthesis.privacy.neighbors) = (change.into(), change.into());
        }
        let delta = asked.budget.map(|budget| budget.delta).or_else(|| asked.stated_delta());
        let recipe = &mut asked.synthesis;
        recipe.rows = self.rows.or(recipe.rows);
        recipe.seed = self.terms.seed.unwrap_or(recipe.seed);
        asked.budget = self.terms.new_budget(delta)?.or(asked.budget);
        Ok(asked)
    }

    /// Draws rows from a model, and prints them.
    fn draw(&self, path: &Path) -> Result<()> {
        let model = Model::open(path)?;
        let Predictor::Synthesizer(synthesizer) = &model.predictor else {
            let sentence = format!("{} is no model of synthetic data", path.display());
            return Err(Refusal::new(sentence, "give the folder of a run of `quell synthesize`").into());
        };
        let rows = self.rows.or(model.configuration.synthesis.rows).unwrap_or(0);
        if rows > MOST_ROWS {
            let sentence = format!("rows is {rows}, expected at most {MOST_ROWS} rows at once");
            return Err(Refusal::new(sentence, "draw several times, each time with another --seed").into());
        }
        let seed = self.terms.seed.unwrap_or(model.configuration.synthesis.seed);
        let text = synthesizer.csv(rows as usize, seed);
        if self.terms.format.of_results()? == Format::Json {
            return print::json(&json!({"rows": rows, "seed": seed, "csv": text}));
        }
        print::document(&text)?;
        print::status("note: rows cost no ε, because they are drawn from the released model");
        Ok(())
    }
}
