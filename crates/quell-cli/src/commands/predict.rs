//! `quell predict`: predictions of a model for records.

use std::path::PathBuf;

use anyhow::{Context, Result};
use quell::{
    data::{Examples, csv_cell},
    learner::Predictor,
    run::{Model, Prediction},
};
use serde_json::{Value, json};

use quell_report::escape;

use crate::{
    commands::recommend::Recommended,
    flags::{Format, parse_positive},
    print, records,
    refusal::Refusal,
};

const EXAMPLES: &str = "\
Examples:
  quell train --output first
  quell predict first
  quell predict first --scores --output predictions.csv
  quell predict first/model.safetensors --format json";

/// Predict records with a model, and print CSV
///
/// The prediction of a record is its class or number, its cluster, or its coordinates along the components. For a
/// model of ratings, the records are the ratings of some users, and the predictions are the best items for each user.
/// Predictions cost no ε of the training data, because they are computed from the released model. Nothing
/// protects the records that are predicted.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Folder of a run, or a model.safetensors
    model: PathBuf,
    /// Records in any format that `quell train` reads
    ///
    /// A table needs no label. If not given: the test part of the embedded digits.
    data: Option<PathBuf>,
    /// Number of items that are recommended to each user, for a model of ratings
    #[arg(long, value_name = "K", default_value_t = 10, value_parser = parse_positive)]
    top: u64,
    /// Add a column for each class with its predicted probability (for svm: its score)
    #[arg(long)]
    scores: bool,
    /// File to write (standard output if not given)
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Output format; text is CSV
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    let model = Model::open(&flags.model)?;
    let text = match &model.predictor {
        Predictor::Factorization(factorization) => {
            let found =
                Recommended::new(&model, factorization, flags.data.as_deref(), usize::try_from(flags.top)?)?;
            match flags.format {
                Format::Json => pretty(&found.objects())?,
                Format::Text => found.lines(),
            }
        }
        Predictor::Synthesizer(_) => {
            let sentence = "the model predicts nothing: it draws synthetic rows";
            return Err(Refusal::new(sentence, "draw rows with `quell synthesize --from RUN`").into());
        }
        _ => {
            if flags.scores && !(model.predictor.is_supervised() && model.classes.is_some()) {
                print::status("note: --scores adds no column, because the model predicts no classes");
            }
            let examples = records::unlabelled(&model, flags.data.as_deref())?;
            let predicted = {
                let _progress = crate::progress::Bar::spinner("predicting");
                Predicted::new(&model, &examples, flags.scores)
            };
            match flags.format {
                Format::Json => pretty(&predicted.objects())?,
                Format::Text => predicted.lines(),
            }
        }
    };
    match &flags.output {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
            print::status(&format!("wrote {}", path.display()));
        }
        None => print::document(&text)?,
    }
    print::status(
        "note: predictions cost no ε of the training data, because they are computed from the released model; \
         nothing protects the records that were predicted",
    );
    Ok(())
}

/// JSON in several lines, safe to show on a terminal.
fn pretty(objects: &[Value]) -> Result<String> {
    Ok(escape::json(&serde_json::to_string_pretty(objects)?) + "\n")
}

/// The predictions for all records.
struct Predicted<'m> {
    /// The names of the columns of a prediction.
    columns: Vec<String>,
    predictions: Vec<Option<Prediction>>,
    /// The names of the classes, each with a column of scores; empty if no scores are asked for.
    names: &'m [String],
    /// The probability of each class, for each record.
    scores: Vec<Vec<f32>>,
}

impl<'m> Predicted<'m> {
    fn new(model: &'m Model, examples: &Examples, with_scores: bool) -> Self {
        let has_scores = with_scores && model.predictor.is_supervised();
        let names = model.classes.as_deref().filter(|_| has_scores).unwrap_or_default();
        let scores = if names.is_empty() { Vec::new() } else { model.predictor.scores(examples) };
        let columns = model.predictor.columns();
        Self { columns, predictions: model.predict_from(examples), names, scores }
    }

    /// Each class with its score for one record.
    fn scores(&self, record: usize) -> impl Iterator<Item = (&String, &f32)> {
        self.names.iter().zip(self.scores.get(record).into_iter().flatten())
    }

    /// CSV with a header and one line per record.
    fn lines(&self) -> String {
        let head = std::iter::once("record".to_owned())
            .chain(self.columns.iter().cloned())
            .chain(self.names.iter().map(|name| csv_cell(name)));
        let mut text = head.collect::<Vec<_>>().join(",") + "\n";
        for (record, prediction) in self.predictions.iter().enumerate() {
            let mut cells = vec![(record + 1).to_string()];
            match prediction {
                Some(Prediction::Coordinates(numbers)) => {
                    cells.extend(numbers.iter().map(ToString::to_string));
                }
                Some(prediction) => cells.push(csv_cell(&prediction.to_string())),
                None => cells.extend(self.columns.iter().map(|_| String::new())),
            }
            cells.extend(self.scores(record).map(|(_, score)| format!("{score:.4}")));
            text.push_str(&(cells.join(",") + "\n"));
        }
        text
    }

    fn objects(&self) -> Vec<Value> {
        let object = |(record, prediction): (usize, &Option<Prediction>)| {
            let prediction = match prediction {
                Some(Prediction::Class(name)) => json!(name),
                Some(Prediction::Number(number)) => json!(number),
                Some(Prediction::Cluster(number)) => json!(number),
                Some(Prediction::Coordinates(numbers)) => json!(numbers),
                None => Value::Null,
            };
            let mut object = json!({"record": record + 1, "prediction": prediction});
            if !self.names.is_empty() {
                let scores = self.scores(record).map(|(name, score)| (name.clone(), json!(score)));
                object["scores"] = Value::Object(scores.collect());
            }
            object
        };
        self.predictions.iter().enumerate().map(object).collect()
    }
}
