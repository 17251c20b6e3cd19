//! `quell predict`: predictions of a model for records.

use std::path::PathBuf;

use anyhow::{Context, Result};
use quell::{
    learner::{
        loss::{Loss, Target},
        scores,
    },
    run::Model,
};
use serde_json::{Value, json};

use quell_report::escape;

use crate::{flags::Format, print, records, refusal::Refusal};

const EXAMPLES: &str = "\
Examples:
  quell train --output first
  quell predict first
  quell predict first --scores --output predictions.csv
  quell predict first/model.safetensors --format json";

/// Predict records with a model, and print CSV
///
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
    /// Add a column for each class with its predicted probability
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
    let loss = loss(&model)?;
    let examples = records::unlabelled(&model, flags.data.as_deref())?;
    let all = {
        let _progress = crate::progress::Bar::spinner("predicting");
        scores(&model.network, &model.weights, &examples, loss)
    };
    let text = match flags.format {
        Format::Json => escape::json(&serde_json::to_string_pretty(&flags.objects(&model, &all))?) + "\n",
        Format::Text => flags.lines(&model, &all),
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

/// The loss that the model was trained with, which defines the meaning of its outputs.
pub(crate) fn loss(model: &Model) -> Result<Loss> {
    let missing = || {
        Refusal::new("the model does not record its loss, so its outputs have no meaning", "train it again")
    };
    Ok(model.configuration.training.loss.ok_or_else(missing)?)
}

impl Flags {
    /// CSV with a header and one line per record.
    fn lines(&self, model: &Model, all: &[Vec<f32>]) -> String {
        let names = model.classes.as_deref().filter(|_| self.scores).unwrap_or_default();
        let head = ["record".to_owned(), "prediction".to_owned()]
            .into_iter()
            .chain(names.iter().map(|name| cell(name)));
        let mut text = head.collect::<Vec<_>>().join(",") + "\n";
        for (record, scores) in all.iter().enumerate() {
            let mut cells = vec![
                (record + 1).to_string(),
                prediction(model, scores).map_or_else(String::new, |predicted| predicted.csv()),
            ];
            cells.extend(names.iter().zip(scores).map(|(_, score)| format!("{score:.4}")));
            text.push_str(&(cells.join(",") + "\n"));
        }
        text
    }

    fn objects(&self, model: &Model, all: &[Vec<f32>]) -> Vec<Value> {
        let object = |(record, scores): (usize, &Vec<f32>)| {
            let predicted = prediction(model, scores).map_or(Value::Null, |predicted| predicted.value());
            match &model.classes {
                Some(names) if self.scores => {
                    let scores: serde_json::Map<String, Value> =
                        names.iter().cloned().zip(scores.iter().map(|score| json!(score))).collect();
                    json!({"record": record + 1, "prediction": predicted, "scores": scores})
                }
                _ => json!({"record": record + 1, "prediction": predicted}),
            }
        };
        all.iter().enumerate().map(object).collect()
    }
}

/// A predicted class or number.
enum Prediction<'a> {
    Class(&'a str),
    Number(f64),
}

impl Prediction<'_> {
    fn csv(&self) -> String {
        match self {
            Self::Class(name) => cell(name),
            Self::Number(number) => format!("{number}"),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::Class(name) => json!(name),
            Self::Number(number) => json!(number),
        }
    }
}

/// The prediction for one record; none if the output is not a number.
fn prediction<'a>(model: &'a Model, scores: &[f32]) -> Option<Prediction<'a>> {
    if let Some(names) = &model.classes {
        // Of equal scores the first wins, as everywhere.
        let likeliest = Loss::CrossEntropy { label_smoothing: 0.0 }.predict(scores)?;
        let Target::Class(class) = likeliest else { return None };
        return names.get(class as usize).map(|name| Prediction::Class(name));
    }
    let number = *scores.first().filter(|number| number.is_finite())?;
    let unscaled = model.configuration.data.schema.as_ref().and_then(|schema| schema.unscaled(number));
    Some(Prediction::Number(unscaled.unwrap_or(f64::from(number))))
}

/// A CSV cell, quoted if necessary.
fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) || text.trim() != text {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_quoted_where_it_must_be() {
        assert_eq!(cell("<=50K"), "<=50K");
        assert_eq!(cell("a,b"), "\"a,b\"");
        assert_eq!(cell("say \"a\""), "\"say \"\"a\"\"\"");
        assert_eq!(cell(" a"), "\" a\"");
    }
}
