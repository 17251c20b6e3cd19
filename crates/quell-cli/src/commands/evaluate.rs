//! `quell evaluate`: measures a model, free on public data and paid on private data.

use std::path::PathBuf;

use anyhow::Result;
use quell::{
    learner::{Evaluation, evaluate, loss::Target, predictions},
    run::Model,
};
use quell_privacy::{
    Neighbors,
    mechanism::{Count, Histogram, IntegerNoise, Release, Sensitive, Within},
    number::{Toward, format_brief, format_rounded},
    units::Epsilon,
};
use serde::Serialize;
use serde_json::json;

use crate::{
    commands::predict,
    flags::{
        Format,
        ledger::{Dataset, LedgerArgs},
        parse_count,
    },
    payment::{self, Payment, path_text},
    print,
    records::{self, Access, Labelled},
    refusal::Refusal,
};

const EXAMPLES: &str = "\
Examples:
  quell train --output first
  quell evaluate first
  quell evaluate first/model.safetensors --format json
  quell evaluate first --epsilon 0.1 --dataset digits";

/// Measure the accuracy of a model on public or private data
///
/// On public data (--public), the evaluation is free and shows every result. On private data (--epsilon), the
/// command charges the ledger of the dataset and releases a noisy accuracy. The printed error holds with 95 %
/// probability.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Folder of a run, or a model.safetensors
    model: PathBuf,
    /// Records with labels, in any format that `quell train` reads
    ///
    /// If not given: the public test part of the embedded digits.
    data: Option<PathBuf>,
    /// Declare the data public: everyone may know all of it
    #[arg(long, conflicts_with_all = ["epsilon", "records", "dataset", "one_record_per_user", "dry_run"])]
    public: bool,
    /// Declare the data private, and charge this ε for the answer
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// Number of evaluated records, if this number is public
    ///
    /// Then the noise is on the number of correct predictions only. If the test part of the data is a file, give the
    /// number of records of that file. If the test part is a share of the data, its number of records is not public.
    #[arg(long, value_name = "N", value_parser = parse_count, requires = "epsilon")]
    records: Option<u64>,
    /// Name of the dataset in the ledger
    ///
    /// If not given: the dataset of the model if the data belongs to it, else the name of the file.
    #[arg(long, value_name = "NAME", requires = "epsilon")]
    dataset: Option<String>,
    /// State that every user has one record; needed if the ledger protects users
    #[arg(long, requires = "epsilon")]
    one_record_per_user: bool,
    /// Report the privacy cost, and charge nothing
    #[arg(long, requires = "epsilon")]
    dry_run: bool,
    /// File for the paid answer (standard output if not given)
    ///
    /// The same question for the same file is charged once, even if the command is killed and run again.
    #[arg(long, value_name = "FILE", requires = "epsilon", conflicts_with = "dry_run")]
    output: Option<PathBuf>,
    #[command(flatten)]
    ledgers: LedgerArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    if let Some(epsilon) = flags.epsilon {
        payment::check_positive(epsilon)?;
    }
    if flags.records == Some(0) {
        return Err(Refusal::new(
            "records is 0, expected a positive number",
            "leave --records out if the number of records is not public",
        )
        .into());
    }
    let model = Model::open(&flags.model)?;
    let found = records::labelled(&model, flags.data.as_deref())?;
    match (flags.epsilon, flags.public, found.access) {
        (Some(epsilon), ..) => flags.pay(&model, &found, epsilon),
        (None, _, Access::Public) | (None, true, Access::Undeclared) => flags.show(&model, &found),
        (None, true, Access::Private) => {
            let sentence = "the records belong to the private training data of the model";
            let hint = "release a noisy accuracy with --epsilon; or declare the test part public in the schema, if everyone may know it";
            Err(Refusal::new(sentence, hint).into())
        }
        (None, false, Access::Private | Access::Undeclared) => {
            let sentence = "the data is declared neither public nor private, expected --public or --epsilon";
            let hint = "add --public if everyone may know the data; for private data, release a noisy accuracy with --epsilon E";
            Err(Refusal::new(sentence, hint).into())
        }
    }
}

impl Flags {
    fn show(&self, model: &Model, found: &Labelled) -> Result<()> {
        let result = evaluate(&model.network, &model.weights, &found.examples, predict::loss(model)?);
        if self.format == Format::Json {
            let accuracy = result.accuracy();
            return print::json(
                &json!({"public": true, "accuracy": accuracy, "classes": model.classes, "evaluation": result}),
            );
        }
        match (&result, &model.classes) {
            (Evaluation::Classes { correct, count, confusion }, Some(names)) => {
                let accuracy = result
                    .accuracy()
                    .map_or_else(|| "none".into(), |share| format!("{:.2} %", 100.0 * share));
                let mut text = format!("accuracy: {accuracy}, {correct} of {count} correct\n\n");
                let mut rows =
                    vec![["class", "records", "correct", "most frequent error"].map(str::to_owned).to_vec()];
                for (class, (name, counts)) in names.iter().zip(confusion).enumerate() {
                    let right = counts.get(class).copied().unwrap_or(0);
                    // Of the wrong classes, take the most frequent; of equally frequent ones, the first.
                    let other =
                        counts.iter().enumerate().filter(|(said, count)| *said != class && **count > 0);
                    let other = other.max_by_key(|(said, count)| (**count, std::cmp::Reverse(*said)));
                    let other = other.map(|(said, count)| {
                        format!("{} ({count})", names.get(said).map_or("", String::as_str))
                    });
                    rows.push(vec![
                        name.clone(),
                        counts.iter().sum::<u64>().to_string(),
                        right.to_string(),
                        other.unwrap_or_default(),
                    ]);
                }
                text.push_str(&print::table(&rows, &[1, 2]));
                print::lines(&text)
            }
            (Evaluation::Numbers { error, count }, _) => {
                let bounds = model.configuration.data.schema.as_ref().and_then(|schema| schema.label.bounds);
                let error = bounds.map_or(*error, |[low, high]| error * 0.5 * (high - low));
                print::lines(&format!("root mean square error: {} over {count} records", format_brief(error)))
            }
            (Evaluation::Classes { .. }, None) => {
                Err(Refusal::new("the model has no classes", "train it again").into())
            }
        }
    }

    fn pay(&self, model: &Model, found: &Labelled, epsilon: f64) -> Result<()> {
        if model.classes.is_none() {
            let sentence = "the model predicts numbers, expected a model that predicts classes";
            return Err(Refusal::new(sentence, "evaluate it on public data with --public").into());
        }
        if self.records.is_some() && found.is_split {
            let sentence = "--records is given, but the evaluated records are a share of the data, whose number of records is not public";
            return Err(Refusal::new(sentence, "leave --records out").into());
        }
        let dataset = self.dataset.as_deref().map_or_else(|| found.dataset.clone(), Dataset::named);
        let mut ledger = self.ledgers.ledger(&dataset)?;
        let dataset = dataset.name;
        payment::check_one_record_per_user(&mut ledger, &dataset, self.one_record_per_user)?;
        let question = json!({"evaluate": {
            "data": self.data.as_deref().map(path_text),
            "dataset": dataset,
            "epsilon": epsilon,
            "model": model.digest(),
            "records": self.records,
        }});
        let output = self.output.clone().map(|path| (path, question));
        let payment = Payment { epsilon, dry_run: self.dry_run, format: self.format, output };
        let predicted = predictions(&model.network, &model.weights, &found.examples, predict::loss(model)?);
        let right: Vec<bool> = predicted
            .iter()
            .enumerate()
            .map(|(record, said)| {
                matches!((said, found.examples.label(record)), (Some(Target::Class(said)), Some(label)) if *said == label)
            })
            .collect();
        if let Some(records) = self.records {
            // One record changes this count by at most one under either neighbour relation.
            let make = |epsilon| Ok(Count { noise: IntegerNoise::for_epsilon(Epsilon::new(epsilon)?, 1)? });
            let read = || Ok(Sensitive::new(right.iter().filter(|right| **right).count() as u64));
            return payment.release(&mut ledger, make, read, |paid, data| {
                Ok(Score::new(paid.run(&data)?, records as f64))
            });
        }
        // A record is either right or wrong. So both counts together cost as much as one count, or twice as
        // much if one record is replaced.
        let moves = if ledger.state()?.terms().neighbors == Neighbors::Replace { 2 } else { 1 };
        let keys = ["right", "wrong"].map(str::to_owned);
        let make = |epsilon| {
            Ok(Histogram {
                keys: keys.to_vec(),
                noise: IntegerNoise::for_epsilon(Epsilon::new(epsilon)?, moves)?,
            })
        };
        let read = || {
            Ok(Sensitive::new(
                right.iter().map(|right| Some(keys[usize::from(!right)].clone())).collect::<Vec<_>>(),
            ))
        };
        payment.release(&mut ledger, make, read, |paid, data| {
            let counts = paid.run(&data)?;
            let all: f64 = counts.iter().map(|(_, count)| count.value).sum();
            let nothing = Release { value: 0.0, within: Within::Secret };
            Ok(Score::new(counts.first().map_or(nothing, |(_, right)| *right), all))
        })
    }
}

/// The released accuracy on private data.
#[derive(Serialize)]
struct Score {
    /// Right predictions divided by records, with the error that holds with probability 95 %.
    accuracy: Option<Release>,
    /// The noisy number of right predictions.
    right: Release,
    /// The number of records: public, or the sum of both noisy counts.
    records: f64,
}

impl Score {
    /// Computes the accuracy and its error.
    ///
    /// Let r records be right and w wrong, with noise x and y on these counts. Then the error of (r + x)/(r +
    /// x + w + y) is ((1 - a)x - ay)/(r + x + w + y) for a = r/(r + w). That is a weighted mean of two
    /// independent noises, divided by the noisy number of records. A mean of two noises strays no further
    /// than one of them.
    fn new(right: Release, records: f64) -> Self {
        let accuracy = match right.within {
            Within::Value(error) if records > 0.0 => Some(Release {
                value: (right.value / records).clamp(0.0, 1.0),
                within: Within::Value(error / records),
            }),
            _ => None,
        };
        Self { accuracy, right, records }
    }
}

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(Release { value, within: Within::Value(error) }) = self.accuracy else {
            return f.write_str("accuracy: unknown, because the noise is larger than the number of records");
        };
        let (share, error) = (100.0 * value, 100.0 * error);
        let places = (1.0 - error.max(1e-300).log10().floor()).clamp(0.0, 6.0) as usize;
        // The stated error includes the rounding error.
        let about = format_rounded(error + 0.5 * 10_f64.powi(-(places as i32)), 2, Toward::Up);
        write!(
            f,
            "accuracy: {share:.places$} % ± {about} percentage points, {} of {} correct",
            self.right.value, self.records
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noisy_accuracy_is_printed_with_its_error() {
        let right = Release { value: 900.0, within: Within::Value(30.0) };
        assert_eq!(
            Score::new(right, 1000.0).to_string(),
            "accuracy: 90.0 % ± 3.1 percentage points, 900 of 1000 correct"
        );
        let nothing = Score::new(Release { value: 3.0, within: Within::Value(30.0) }, -4.0).to_string();
        assert!(nothing.starts_with("accuracy: unknown"), "{nothing}");
        let more = Score::new(Release { value: 20.0, within: Within::Value(30.0) }, 10.0);
        assert_eq!(more.accuracy.map(|accuracy| accuracy.value), Some(1.0));
    }
}
