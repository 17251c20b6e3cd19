//! `quell evaluate`: measures a model, free on public data and paid on private data.

use std::{
    hash::{Hash, Hasher},
    path::PathBuf,
};

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
    model,
    payment::{self, Payment},
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

/// How often a model is right: free on public data, a paid count on private data
///
/// On public data (--public) everything is shown. On private data (--epsilon) the noisy number of right predictions is released through the ledger
/// of the dataset, with the range in which the noise stays in nineteen cases of twenty.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Folder of a run, or a model.safetensors
    model: PathBuf,
    /// Records with labels in any format that can be trained on (the public test part of the embedded digits if not given)
    data: Option<PathBuf>,
    /// The data is public: everyone may know all of it
    #[arg(long, conflicts_with_all = ["epsilon", "records", "dataset", "one_record_per_user", "dry_run"])]
    public: bool,
    /// The data is private, and this ε is paid for the answer
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// Number of records that are evaluated, if it is public: then only the right predictions are counted. Of data with a test part in a file of its own it is the number of records there; where a share is split off, it is not public
    #[arg(long, value_name = "N", value_parser = parse_count, requires = "epsilon")]
    records: Option<u64>,
    /// Name of the dataset in the ledger (of the one the model was trained on or else of the file, if not given)
    #[arg(long, value_name = "NAME", requires = "epsilon")]
    dataset: Option<String>,
    /// Every person has one record: needed where the ledger protects users
    #[arg(long, requires = "epsilon")]
    one_record_per_user: bool,
    /// Say what it would cost, and pay nothing
    #[arg(long, requires = "epsilon")]
    dry_run: bool,
    /// File for the paid answer (standard output if not given); the same question for the same file is paid for once, however often the command is killed and run again
    #[arg(long, value_name = "FILE", requires = "epsilon", conflicts_with = "dry_run")]
    output: Option<PathBuf>,
    #[command(flatten)]
    ledgers: LedgerArgs,
    /// How the answer is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    if let Some(epsilon) = flags.epsilon {
        payment::positive(epsilon)?;
    }
    if flags.records == Some(0) {
        return Err(Refusal::new(
            "records is 0, expected the number of records",
            "leave it out if it is not public",
        )
        .into());
    }
    let model = model::open(&flags.model)?;
    let found = records::labelled(&model, flags.data.as_deref())?;
    match (flags.epsilon, flags.public, found.access) {
        (Some(epsilon), ..) => flags.pay(&model, &found, epsilon),
        (None, _, Access::Public) | (None, true, Access::Unsaid) => flags.show(&model, &found),
        (None, true, Access::Private) => {
            let sentence = "these records are of the data that the model was trained on, which is private";
            let hint = "pay for a noisy count with --epsilon, or declare their test part public in the schema, if it is";
            Err(Refusal::new(sentence, hint).into())
        }
        (None, false, Access::Private | Access::Unsaid) => {
            let sentence = "it is not said whether the data may be looked at, expected --public or --epsilon";
            let hint = "data that everyone may know is free with --public; of private data a noisy count is paid for with --epsilon E";
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
                let mut text = format!("accuracy: {accuracy}, {correct} of {count} right\n\n");
                let mut rows =
                    vec![["class", "records", "right", "mostly taken for"].map(str::to_owned).to_vec()];
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
            let sentence = "the model predicts numbers, and only right predictions of classes can be counted";
            return Err(Refusal::new(sentence, "evaluate it on public data with --public").into());
        }
        if self.records.is_some() && found.is_split {
            let sentence = "the records that are evaluated are a share of the data, and how many those are is not public";
            return Err(Refusal::new(
                sentence,
                "leave --records out: then right and wrong predictions are counted",
            )
            .into());
        }
        let dataset = self.dataset.as_deref().map_or_else(|| found.dataset.clone(), Dataset::named);
        let mut ledger = self.ledgers.ledger(&dataset)?;
        let dataset = dataset.name;
        payment::one_record_each(&mut ledger, &dataset, self.one_record_per_user)?;
        let question = format!(
            "evaluate {:016x} {:?} {epsilon} {:?} {dataset:?}",
            digest(model),
            self.data,
            self.records
        );
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

/// Hashes the weights to tell models apart: another model is another question.
fn digest(model: &Model) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    model.weights.iter().for_each(|weight| weight.to_bits().hash(&mut hasher));
    hasher.finish()
}

/// The released accuracy on private data.
#[derive(Serialize)]
struct Score {
    /// Right predictions divided by records, with the error that holds in nineteen cases of twenty.
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
            return f.write_str("accuracy: unknown, since the noise is larger than the number of records");
        };
        let (share, error) = (100.0 * value, 100.0 * error);
        let places = (1.0 - error.max(1e-300).log10().floor()).clamp(0.0, 6.0) as usize;
        // The stated error includes the rounding error.
        let about = format_rounded(error + 0.5 * 10_f64.powi(-(places as i32)), 2, Toward::Up);
        write!(
            f,
            "accuracy: {share:.places$} % ± {about} points, {} of {} right",
            self.right.value, self.records
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accuracy_says_how_far_off_it_is() {
        let right = Release { value: 900.0, within: Within::Value(30.0) };
        assert_eq!(Score::new(right, 1000.0).to_string(), "accuracy: 90.0 % ± 3.1 points, 900 of 1000 right");
        let nothing = Score::new(Release { value: 3.0, within: Within::Value(30.0) }, -4.0).to_string();
        assert!(nothing.starts_with("accuracy: unknown"), "{nothing}");
        let more = Score::new(Release { value: 20.0, within: Within::Value(30.0) }, 10.0);
        assert_eq!(more.accuracy.map(|accuracy| accuracy.value), Some(1.0));
    }
}
