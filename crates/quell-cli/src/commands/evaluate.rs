//! `quell evaluate`: measures a model, free on public data and paid on private data.

use std::{convert::identity, path::PathBuf};

use anyhow::Result;
use quell::{
    data::Examples,
    learner::{Calibration, ClassMeasures, Evaluation},
    run::Model,
    statistics::Accuracy,
};
use quell_privacy::number::format_brief;
use serde_json::json;

use crate::{
    author,
    flags::{
        Format,
        ledger::{Dataset, LedgerArgs},
        parse_count,
    },
    payment::{self, AnswerRelease, Payment, path_text},
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
/// On public data (--public), the evaluation is free and shows every measure: AUC, F1, log loss, calibration, R²,
/// and what a constant prediction reaches. On private data (--epsilon), the command charges the ledger of the
/// dataset and releases a noisy accuracy, and no other measure. The printed error holds with 95 % probability.
///
/// For clusters the measure is the mean squared distance to the centres, and for components the explained
/// variance. For synthetic data it is the distance between its pairs of columns and those of the data. For a model
/// of ratings, each rating is predicted from the other ratings of its user. The measure recall@10 is the share of
/// a fifth of the ratings that is among ten recommendations made from the rest.
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
    #[arg(long, conflicts_with_all = ["epsilon", "records", "dataset", "one_record_per_user", "max_per_user", "dry_run"])]
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
    /// State that every user has one record, if the ledger protects users
    #[arg(long, requires = "epsilon")]
    one_record_per_user: bool,
    /// Evaluate at most this many records of each user, if the ledger protects users
    ///
    /// The first ones in the data are used. The noise grows with this number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires = "epsilon", conflicts_with_all = ["one_record_per_user", "records"])]
    max_per_user: Option<u32>,
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

/// Hint for a model that cannot be evaluated on private data.
const ONLY_PUBLIC: &str = "evaluate it on other records, which are public; or declare the test part public before training, if everyone may know it: public_test = true under [data] of the configuration";

/// Whether the model predicts classes. Other measures are not released with noise.
fn predicts_classes(model: &Model) -> bool {
    model.predictor.is_supervised() && model.classes.is_some()
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
            let hint = if predicts_classes(&model) {
                "release a noisy accuracy with --epsilon; or train with --public-test, or public = true under [test] of the schema, if everyone may know the test part"
            } else {
                ONLY_PUBLIC
            };
            Err(Refusal::new(sentence, hint).into())
        }
        (None, false, Access::Private | Access::Undeclared) => {
            let sentence = "the data is declared neither public nor private, expected --public or --epsilon";
            let hint = match found.access {
                _ if predicts_classes(&model) => {
                    "add --public if everyone may know the data; for private data, release a noisy accuracy with --epsilon E"
                }
                Access::Private => ONLY_PUBLIC,
                _ => "add --public if everyone may know the data; a private measure exists for classes alone",
            };
            Err(Refusal::new(sentence, hint).into())
        }
    }
}

impl Flags {
    fn show(&self, model: &Model, found: &Labelled) -> Result<()> {
        // These records are declared public, all of them.
        if let (Access::Undeclared, Some(path)) = (found.access, &self.data) {
            model.check_public_records(path)?.iter().for_each(|remark| print::status(remark));
            let (rows, used) = (found.examples.row_count(), found.examples.len());
            // The remarks above speak of tables.
            if used < rows && model.configuration.data.schema.is_none() {
                let left_out = rows - used;
                print::status(&format!(
                    "note: {left_out} of {rows} records are left out: their class is none of the model's, or they cannot be read in its shape"
                ));
            }
        }
        let result = model.evaluate(&found.examples);
        if self.format == Format::Json {
            let accuracy = result.accuracy();
            // The items of ratings are no classes that are predicted.
            let classes = model.classes.as_ref().filter(|_| model.predictor.is_supervised());
            return print::json(
                &json!({"public": true, "accuracy": accuracy, "classes": classes, "evaluation": result}),
            );
        }
        match (&result, &model.classes) {
            (Evaluation::Classes { correct, count, confusion, measures }, Some(names)) => {
                let accuracy = result
                    .accuracy()
                    .map_or_else(|| "none".into(), |share| format!("{:.2} %", 100.0 * share));
                let mut text = format!("accuracy: {accuracy}, {correct} of {count} correct\n");
                for line in result.describe_measures() {
                    text.push_str(&line);
                    text.push('\n');
                }
                text.push('\n');
                text.push_str(&classes_table(names, confusion, measures.as_deref()));
                if let Some(calibration) = measures.as_ref().and_then(|all| all.calibration.as_ref()) {
                    text.push('\n');
                    text.push_str(&calibration_table(names, calibration));
                }
                print::lines(&text)
            }
            (Evaluation::Numbers { .. }, _) => {
                let first = result.describe("records");
                let lines: Vec<String> = std::iter::once(first).chain(result.describe_measures()).collect();
                print::lines(&lines.join("\n"))
            }
            (Evaluation::Clusters { inertia, count }, _) => print::lines(&format!(
                "mean squared distance to the centres: {} over {count} records",
                format_brief(*inertia)
            )),
            (Evaluation::Components { explained, count }, _) => {
                print::lines(&format!("explained variance: {:.2} % of {count} records", 100.0 * explained))
            }
            (Evaluation::Pairs { distance, count }, _) => print::lines(&format!(
                "distance between synthetic rows and the data: {}, from {count} records\n\
                 This is the mean total variation distance of all pairs of columns, in groups of values: \
                 0 if the shares are equal, 1 if no value is shared.",
                format_brief(*distance)
            )),
            (Evaluation::Ratings { error, count, recall, users }, _) => {
                let recall = recall.map_or_else(
                    || "recall@10: none, because no user has five ratings".into(),
                    |recall| {
                        let share = 100.0 * recall;
                        format!("recall@10: {share:.1} % of the held-out items that ten can be, over {users} users")
                    },
                );
                let error = format!("root mean square error: {} over {count} ratings", format_brief(*error));
                print::lines(&format!("{error}\n{recall}"))
            }
            (Evaluation::Classes { .. }, None) => {
                Err(Refusal::new("the model has no classes", "train it again").into())
            }
        }
    }

    fn pay(&self, model: &Model, found: &Labelled, epsilon: f64) -> Result<()> {
        if !predicts_classes(model) {
            let sentence = if model.predictor.is_supervised() {
                "the model predicts numbers, expected a model that predicts classes"
            } else {
                "the model predicts no target, expected a model that predicts classes"
            };
            let hint = match found.access {
                Access::Private => ONLY_PUBLIC,
                Access::Public | Access::Undeclared => "evaluate it on public data with --public",
            };
            return Err(Refusal::new(sentence, hint).into());
        }
        if self.records.is_some() && found.is_split {
            let sentence = "--records is given, but the evaluated records are a share of the data, whose number of records is not public";
            return Err(Refusal::new(sentence, "leave --records out").into());
        }
        let dataset = self.dataset.as_deref().map_or_else(|| found.dataset.clone(), Dataset::named);
        let is_limited = self.one_record_per_user || self.max_per_user.is_some();
        let hint = "add --max-per-user N, or --one-record-per-user if every user has only one record";
        let mut ledger = self.ledgers.ledger_of_records(&dataset, is_limited, hint)?;
        let limited = self.max_per_user.map(|most| limited(&found.examples, most)).transpose()?;
        let examples = limited.as_ref().unwrap_or(&found.examples);
        let mut question = json!({"evaluate": {
            "data": self.data.as_deref().map(path_text),
            "dataset": dataset.name,
            "epsilon": epsilon,
            "model": model.digest()?,
            "records": self.records,
        }});
        // Questions without a limit keep the text that they had before there was one.
        if let Some(most) = self.max_per_user {
            question["evaluate"]["max_per_user"] = json!(most);
        }
        let output = self.output.clone().map(|path| (path, question));
        let payment = Payment { epsilon, dry_run: self.dry_run, format: self.format, output };
        let correct = model.predictor.correct(examples);
        let accuracy = Accuracy {
            epsilon,
            records: self.records,
            one_record_per_user: self.one_record_per_user,
            most_per_user: self.max_per_user,
        };
        let name = model.configuration.model.name.as_deref().unwrap_or("model");
        ledger.annotate(&author::note(self.data.as_deref(), format!("accuracy of {name}")));
        let state = ledger.state()?.clone();
        accuracy.visit(&state, &correct, AnswerRelease { payment, ledger: &mut ledger, show: identity })?
    }
}

/// The first records of each user, at most so many of each.
fn limited(examples: &Examples, most: u32) -> Result<Examples> {
    examples.at_most_per_user(most).ok_or_else(|| {
        let sentence = "the evaluated records have no users, expected records that say whose they are";
        let hint = "name the column in the schema before training: user = \"…\"; or ask with --one-record-per-user if every user has only one record";
        Refusal::new(sentence, hint).into()
    })
}

/// One row for each class: examples, precision, recall, F1, AUC, and the most frequent error.
fn classes_table(names: &[String], confusion: &[Vec<u64>], measures: Option<&ClassMeasures>) -> String {
    let titles = ["class", "records", "correct", "precision", "recall", "F1", "AUC", "most frequent error"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    let number = |measure: Option<f64>| measure.map_or_else(|| "none".into(), |x| format!("{x:.3}"));
    for (class, (name, counts)) in names.iter().zip(confusion).enumerate() {
        let right = counts.get(class).copied().unwrap_or(0);
        // Of the wrong classes, take the most frequent; of equally frequent ones, the first.
        let other = counts.iter().enumerate().filter(|(said, count)| *said != class && **count > 0);
        let other = other.max_by_key(|(said, count)| (**count, std::cmp::Reverse(*said)));
        let other =
            other.map(|(said, count)| format!("{} ({count})", names.get(said).map_or("", String::as_str)));
        let own = measures.and_then(|all| all.classes.get(class).cloned()).unwrap_or_default();
        rows.push(vec![
            name.clone(),
            counts.iter().sum::<u64>().to_string(),
            right.to_string(),
            number(own.precision),
            number(own.recall),
            number(own.f1),
            number(own.auc),
            other.unwrap_or_default(),
        ]);
    }
    print::table(&rows, &[1, 2, 3, 4, 5, 6])
}

/// One row for each group of predicted probabilities: how often they come true.
fn calibration_table(names: &[String], calibration: &Calibration) -> String {
    let what = match names {
        [_, second] => format!("probability of {second}"),
        _ => "probability of the predicted class".into(),
    };
    let mut rows = vec![vec![what, "records".into(), "mean".into(), "comes true".into()]];
    rows.extend(calibration.bins.iter().map(|bin| {
        vec![
            format!("{:.1} to {:.1}", bin.range[0], bin.range[1]),
            bin.examples.to_string(),
            format!("{:.3}", bin.probability),
            format!("{:.3}", bin.share),
        ]
    }));
    print::table(&rows, &[1, 2, 3])
}
