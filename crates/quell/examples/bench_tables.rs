//! Trains a linear model on a table several times, for `benches/tables.py`.
//!
//! Arguments: the folder of the table (train.csv, test.csv, schema.toml), the number of records, ε, the
//! number of runs, and settings for the configuration as TOML. Prints the score of every run, its seconds and
//! the learning rate as JSON, and the seconds of fitting in memory if the settings are empty. The score is the accuracy, or R² of a numeric target.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a bench reads the clock and its arguments"
)]

use std::{path::Path, time::Instant};

use quell::{
    data::{self, Options, Schema, Targets},
    learner::{
        Control, Evaluation, Method, PublicFacts, Subject,
        glm::{Glm, Recipe},
    },
    ledger::InMemory,
    network::Architecture,
    privacy::{
        ledger::Ledger,
        units::{Delta, Epsilon},
    },
    run::{Configuration, Driver, Folder, Job, Model, train},
};

type Failure = Box<dyn std::error::Error>;

struct InScratch<'a>(&'a Path);

impl Driver for InScratch<'_> {
    type Output = Result<Model, Failure>;

    fn drive<J: Job>(self, job: &J) -> Self::Output {
        let mut ledger = Ledger::create(InMemory::new("table"), job.terms()?)?;
        let folder = Folder::create(self.0)?;
        job.go(&mut ledger, &folder, &mut |_| Control::Continue)?;
        Ok(folder.model()?)
    }
}

/// Seconds that planning, paying and fitting take once the records are in memory.
fn fit(folder: &Path, options: &Options, records: u64, epsilon: f64) -> Result<f64, Failure> {
    let examples = data::open(folder.join("train.csv"), options)?.train;
    let start = Instant::now();
    let mut recipe = Recipe { records: Some(records), ..Recipe::default() };
    recipe.privacy.epsilon = Some(epsilon);
    let classes = match examples.targets() {
        Targets::Classes { names, .. } => Some(names.len()),
        Targets::Numbers(_) => None,
    };
    let facts = PublicFacts { records: None, classes };
    let subject =
        Subject { shape: examples.shape(), are_features: false, facts, schema: options.schema.as_ref() };
    let method = Glm::plan(&mut recipe, &mut Architecture::default(), &subject)?;
    let mut ledger =
        InMemory::ledger("table", Epsilon::new(epsilon)?, Delta::new(recipe.privacy.delta.unwrap_or(1e-6))?)?;
    method.train(&examples, &mut ledger)?;
    Ok(start.elapsed().as_secs_f64())
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, records, epsilon, runs, settings] = arguments.as_slice() else {
        return Err("expected a folder, records, epsilon, runs and settings".into());
    };
    let folder = Path::new(folder);
    let schema = Schema::read(folder.join("schema.toml"))?;
    let options = Options { schema: Some(schema.clone()), public: true, ..Options::default() };
    let test = data::open(folder.join("test.csv"), &options)?.train;
    let scratch = std::env::temp_dir().join(format!("quell-tables-{}", std::process::id()));
    let (mut scores, mut seconds, mut chosen) = (Vec::new(), Vec::new(), [None; 2]);
    for run in 0..runs.parse::<u64>()? {
        let mut configuration = Configuration::parse(settings)?;
        configuration.data.path = Some(folder.join("train.csv"));
        configuration.data.schema = Some(schema.clone());
        let recipe = &mut configuration.training;
        recipe.privacy.epsilon = Some(epsilon.parse()?);
        recipe.sampling.records = Some(records.parse()?);
        let start = Instant::now();
        let path = scratch.join(run.to_string());
        let model = train(configuration, InScratch(&path))??;
        seconds.push(start.elapsed().as_secs_f64());
        let glm = &model.configuration.glm;
        chosen = [glm.learning_rate, glm.steps.map(|steps| steps as f64)];
        scores.push(match (model.predictor.evaluate(&test), test.targets()) {
            (Evaluation::Numbers { error, .. }, Targets::Numbers(numbers)) => {
                let mean = numbers.iter().map(|y| f64::from(*y)).sum::<f64>() / numbers.len() as f64;
                let variance = numbers.iter().map(|y| (f64::from(*y) - mean).powi(2)).sum::<f64>()
                    / numbers.len() as f64;
                1.0 - error * error / variance
            }
            (evaluation, _) => evaluation.accuracy().unwrap_or(f64::NAN),
        });
        std::fs::remove_dir_all(&path)?;
    }
    std::fs::remove_dir_all(&scratch)?;
    // The automatic choice, on records in memory, as the peers fit theirs.
    let fit_seconds = settings.is_empty().then(|| fit(folder, &options, records.parse()?, epsilon.parse()?));
    let fit_seconds = fit_seconds.transpose()?;
    println!(
        "{}",
        serde_json::json!({ "scores": scores, "seconds": seconds, "learning_rate": chosen[0], "steps": chosen[1], "fit_seconds": fit_seconds })
    );
    Ok(())
}
