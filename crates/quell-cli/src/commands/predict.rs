//! `quell predict`: predictions of a model for records.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use quell::{
    data::{Examples, Fit, Misfit, csv_cell},
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
/// protects the records that are predicted. A record with a cell that does not fit the schema has no prediction.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Folder of a run, or a model.safetensors
    model: PathBuf,
    /// Records in any format that `quell train` reads
    ///
    /// A table needs no label, and neither do images: one file, or a folder. If not given: the test part of the
    /// embedded digits.
    data: Option<PathBuf>,
    /// Number of items that are recommended to each user, for a model of ratings
    #[arg(long, value_name = "K", default_value_t = 10, value_parser = parse_positive)]
    top: u64,
    /// Add a column for each class with its predicted probability (for svm: its score)
    #[arg(long)]
    scores: bool,
    /// Predict records that do not fit the schema, too; such a cell counts as missing
    #[arg(long)]
    predict_all: bool,
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
            let records::Unlabelled { examples, files } = records::unlabelled(&model, flags.data.as_deref())?;
            let misfits = Misfits::new(&model, flags.data.as_deref())?;
            let mut predicted = {
                let _progress = crate::progress::Bar::spinner("predicting");
                Predicted { files, ..Predicted::new(&model, &examples, flags.scores) }
            };
            if !flags.predict_all {
                predicted.leave_out(&misfits);
            }
            misfits.report(flags.predict_all);
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

/// The cells of a table that do not fit the schema of the model.
struct Misfits(Fit);

impl Misfits {
    /// The most records that are listed.
    const LISTED: usize = 10;

    fn new(model: &Model, path: Option<&Path>) -> Result<Self> {
        Ok(Self(match (&model.configuration.data.schema, path) {
            (Some(schema), Some(path)) => Fit::new(path, schema, false)?,
            _ => Fit::default(),
        }))
    }

    /// The first misfit of each record with a cell that the schema does not allow.
    fn first_of_each(&self) -> Vec<&Misfit> {
        let mut first: Vec<&Misfit> = self.0.misfits.iter().filter(|misfit| !misfit.is_declared).collect();
        first.dedup_by_key(|misfit| misfit.record);
        first
    }

    /// Says which records do not fit. Their values are not shown: nothing says that they are public.
    fn report(&self, are_predicted: bool) {
        let records = self.first_of_each();
        if !records.is_empty() {
            let (verb, outcome) = if records.len() == 1 { ("does", "has") } else { ("do", "have") };
            let effect = if are_predicted {
                "such cells count as missing".to_owned()
            } else {
                format!("{outcome} no prediction; --predict-all predicts them")
            };
            let joint = if are_predicted { ";" } else { " and" };
            print::status(&format!(
                "note: {} of {} records {verb} not fit the schema{joint} {effect}",
                records.len(),
                self.0.records
            ));
            for misfit in records.iter().take(Self::LISTED) {
                print::status(&format!("  record {}: {:?} {}", misfit.record, misfit.column, misfit.kind));
            }
            if records.len() > Self::LISTED {
                print::status(&format!("  … and {} more", records.len() - Self::LISTED));
            }
        }
        if let Some(first) = self.0.long.first() {
            let (count, all) = (self.0.long.len(), self.0.records);
            let verb = if count == 1 { "has" } else { "have" };
            print::status(&format!(
                "note: {count} of {all} records {verb} more cells than there are columns, record {first} first; \
                 cells after the last column are not read, and those before it may be in the wrong column"
            ));
        }
        for (count, misfit) in self.0.by_column().into_iter().filter(|(_, misfit)| misfit.is_declared) {
            print::status(&format!(
                "note: {:?} of {count} of {} records {}; the schema declares it as unknown",
                misfit.column, self.0.records, misfit.kind
            ));
        }
    }
}

/// The predictions for all records.
struct Predicted<'m> {
    /// The file of each record, if the records are image files; empty otherwise.
    files: Vec<String>,
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
        Self { files: Vec::new(), columns, predictions: model.predict_from(examples), names, scores }
    }

    /// Leaves the predictions of records that do not fit empty.
    fn leave_out(&mut self, misfits: &Misfits) {
        for misfit in misfits.first_of_each() {
            let record = misfit.record - 1;
            if let Some(prediction) = self.predictions.get_mut(record) {
                *prediction = None;
            }
            if let Some(scores) = self.scores.get_mut(record) {
                scores.clear();
            }
        }
    }

    /// Each class with its score for one record.
    fn scores(&self, record: usize) -> impl Iterator<Item = (&String, &f32)> {
        self.names.iter().zip(self.scores.get(record).into_iter().flatten())
    }

    /// CSV with a header and one line per record.
    fn lines(&self) -> String {
        let head = std::iter::once("record".to_owned())
            .chain((!self.files.is_empty()).then(|| "file".to_owned()))
            .chain(self.columns.iter().cloned())
            .chain(self.names.iter().map(|name| csv_cell(name)));
        let mut text = head.collect::<Vec<_>>().join(",") + "\n";
        for (record, prediction) in self.predictions.iter().enumerate() {
            let mut cells = vec![(record + 1).to_string()];
            cells.extend(self.files.get(record).map(|file| csv_cell(file)));
            match prediction {
                Some(Prediction::Coordinates(numbers)) => {
                    cells.extend(numbers.iter().map(ToString::to_string));
                }
                Some(prediction) => cells.push(csv_cell(&prediction.to_string())),
                None => cells.extend(self.columns.iter().map(|_| String::new())),
            }
            let scores = self.scores.get(record).filter(|scores| !scores.is_empty());
            cells.extend((0..self.names.len()).map(|class| {
                scores.and_then(|scores| scores.get(class)).map_or_else(String::new, |it| format!("{it:.4}"))
            }));
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
            if let Some(file) = self.files.get(record) {
                object["file"] = json!(file);
            }
            if !self.names.is_empty() {
                let scores = self.scores(record).map(|(name, score)| (name.clone(), json!(score)));
                object["scores"] = Value::Object(scores.collect());
            }
            object
        };
        self.predictions.iter().enumerate().map(object).collect()
    }
}
