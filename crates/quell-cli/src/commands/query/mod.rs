//! `quell query`: releases a statistic of a table, paid for from its ledger.

mod keys;
mod shown;

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use quell::{
    data::{Predicate, Table},
    statistics::{self, Grouped, Question},
};
use quell_privacy::{
    mechanism::{Bounds, Noise},
    units::Probability,
};
use serde::Serialize;
use serde_json::json;

use self::{keys::Keys, shown::Shown};
use crate::{
    flags::{
        Format,
        ledger::{Dataset, LedgerArgs},
    },
    payment::{self, AnswerRelease, Payment, path_text},
    refusal::Refusal,
};

const EXAMPLES: &str = "\
Examples:
  quell ledger create census --epsilon 3 --delta 1e-6
  quell query census.csv count --epsilon 0.1 --where \"age >= 65\" --output over65.txt
  quell query census.csv mean --column age --bounds 0 100 --epsilon 0.5
  quell query census.csv histogram --column sex --keys Female,Male --epsilon 0.2
  quell query census.csv histogram --column education --epsilon 0.5
  quell query census.csv mean --column age --bounds 0 100 --group-by sex --groups Female,Male --epsilon 0.5
  quell query census.csv histogram --column income --keys '<=50K,>50K' --group-by sex --groups Female,Male --epsilon 0.2
  quell query census.csv quantile --column age --bounds 0 120 --quantile 0.9 --epsilon 0.3 --format json";

/// Release a statistic of a table, charged to the ledger of its dataset
///
/// Bounds, keys and the condition are public: do not derive them from the data. Missing values and values
/// that are not numbers are left out. The answer has an error that holds with 95 % probability, and a receipt
/// of the ledger. The error of a quantile is a number of records: "40 ± 26 records" means that the requested
/// rank is at most 26 records away from a rank of the value 40.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// CSV (with a header) or Parquet file
    data: PathBuf,
    /// Statistic to release
    #[arg(value_enum)]
    statistic: Statistic,
    /// Column of the statistic
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    /// Condition on records, such as "age >= 65 and sex = 'Female'"
    #[arg(long = "where", value_name = "EXPRESSION")]
    condition: Option<String>,
    /// Public bounds to which every number is clamped
    #[arg(long, num_args = 2, value_names = ["LOWER", "UPPER"], allow_hyphen_values = true)]
    bounds: Option<Vec<f64>>,
    /// Keys of a histogram, separated by commas
    ///
    /// Without keys, the answer contains the keys that many records have, and costs a δ. A key with a comma
    /// stands in double quotes, as in a CSV file.
    #[arg(long, value_name = "A,B,C", value_parser = keys::parse)]
    keys: Option<Vec<Keys>>,
    /// Column whose keys divide the records into groups, for a count, sum, mean or histogram
    ///
    /// A record is in one group at most, so all groups together cost one ε. A histogram with groups counts
    /// the records for each key and group.
    #[arg(long, value_name = "NAME")]
    group_by: Option<String>,
    /// Keys of the groups, separated by commas
    ///
    /// Records with another key are left out. Only a count, or a histogram without --keys, can do without
    /// this list: then the answer contains the groups that many records are in, and costs a δ.
    #[arg(long, value_name = "A,B,C", value_parser = keys::parse, requires = "group_by")]
    groups: Option<Vec<Keys>>,
    /// Quantile to release
    #[arg(long, value_name = "P", default_value_t = 0.5, allow_negative_numbers = true)]
    quantile: f64,
    /// Fraction of the records inside a range
    #[arg(long, value_name = "P", default_value_t = 0.95, allow_negative_numbers = true)]
    inside: f64,
    /// Number of records that the count must reach
    #[arg(long, value_name = "N", value_parser = crate::flags::parse_count)]
    threshold: Option<u64>,
    /// ε of this answer
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: f64,
    /// δ of this answer, for Gaussian noise, unknown keys and smooth medians
    ///
    /// If not given: the δ of the budget for Gaussian noise, and a small part of it for the others.
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: Option<f64>,
    /// Distribution of the noise
    #[arg(long, value_enum, default_value_t)]
    noise: Distribution,
    /// Name of the dataset in the ledger (the name of the file if not given)
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    /// State that every user has one record; needed if the ledger protects users
    #[arg(long)]
    one_record_per_user: bool,
    /// Report the privacy cost, and charge nothing
    #[arg(long)]
    dry_run: bool,
    /// File for the answer (standard output if not given)
    ///
    /// The same question for the same file is charged once, even if the command is killed and run again.
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    output: Option<PathBuf>,
    #[command(flatten)]
    ledgers: LedgerArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The statistics that the command can release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Statistic {
    /// Number of records
    Count,
    /// Whether the number of records reaches --threshold
    Reaches,
    /// Sum of a column
    Sum,
    /// Mean of a column
    Mean,
    /// Variance of a column
    Variance,
    /// Number of records for each key of a column
    Histogram,
    /// Quantile of a column
    Quantile,
    /// Median of a column, with noise scaled by smooth sensitivity
    SmoothMedian,
    /// Two numbers between which most records of a column lie
    Range,
}

/// The distribution of the noise on counts and sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Distribution {
    /// Pure differential privacy (δ = 0).
    #[default]
    Laplace,
    /// Needs a δ; many answers compose to a smaller total ε.
    Gaussian,
}

impl From<Distribution> for Noise {
    fn from(distribution: Distribution) -> Self {
        match distribution {
            Distribution::Laplace => Self::Laplace,
            Distribution::Gaussian => Self::Gaussian,
        }
    }
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    let dataset = flags.dataset()?;
    payment::check_positive(flags.epsilon)?;
    // All errors in the question are reported before anything is paid.
    let table = Table::open(&flags.data)?;
    let predicate = flags.condition.as_deref().map(str::parse::<Predicate>).transpose()?;
    let selection = match &predicate {
        Some(predicate) => table.select(predicate)?,
        None => table.all(),
    };
    let question = flags.question()?;
    let mut ledger = flags.ledgers.ledger_of_records(&dataset, flags.one_record_per_user)?;
    let state = ledger.state()?.clone();
    let release = AnswerRelease { payment: flags.payment(), ledger: &mut ledger, show: Shown };
    question.visit(&state, &selection, release)?
}

impl Flags {
    fn dataset(&self) -> Result<Dataset> {
        Dataset::of(self.dataset.as_ref(), &self.data).ok_or_else(|| {
            Refusal::new(
                format!("{} has no file name", self.data.display()),
                "name the dataset with --dataset",
            )
            .into()
        })
    }

    fn payment(&self) -> Payment {
        let mut question = json!({
            "bounds": self.bounds,
            "column": self.column,
            "data": path_text(&self.data),
            "dataset": self.dataset,
            "delta": self.delta,
            "epsilon": self.epsilon,
            "inside": self.inside,
            "keys": keys::list(self.keys.as_deref()),
            "noise": Noise::from(self.noise),
            "quantile": self.quantile,
            "statistic": self.statistic,
            "threshold": self.threshold,
            "where": self.condition,
        });
        // Questions without groups keep the text that they had before there were groups.
        if let (Some(group_by), Some(fields)) = (&self.group_by, question.as_object_mut()) {
            fields.insert("group_by".into(), json!(group_by));
            fields.insert("groups".into(), json!(keys::list(self.groups.as_deref())));
        }
        let question = json!({"query": question});
        let output = self.output.clone().map(|path| (path, question));
        Payment { epsilon: self.epsilon, dry_run: self.dry_run, format: self.format, output }
    }

    /// Builds the question from the flags.
    fn question(&self) -> Result<Question> {
        let statistic = match &self.group_by {
            Some(group_by) => self.grouped(group_by)?,
            None => self.statistic()?,
        };
        Ok(Question {
            statistic,
            noise: self.noise.into(),
            epsilon: self.epsilon,
            delta: self.delta,
            one_record_per_user: self.one_record_per_user,
        })
    }

    /// Builds a statistic of all selected records.
    fn statistic(&self) -> Result<statistics::Statistic> {
        Ok(match self.statistic {
            Statistic::Count => statistics::Statistic::Count,
            Statistic::Reaches => {
                let missing = || {
                    Refusal::new("no threshold is given, expected a number of records", "add --threshold N")
                };
                statistics::Statistic::Reaches { threshold: self.threshold.ok_or_else(missing)? }
            }
            Statistic::Sum => statistics::Statistic::Sum { column: self.column()?, bounds: self.bounds()? },
            Statistic::Mean => statistics::Statistic::Mean { column: self.column()?, bounds: self.bounds()? },
            Statistic::Variance => {
                statistics::Statistic::Variance { column: self.column()?, bounds: self.bounds()? }
            }
            Statistic::Histogram => statistics::Statistic::Histogram {
                column: self.column()?,
                keys: keys::list(self.keys.as_deref()),
            },
            Statistic::Quantile => statistics::Statistic::Quantile {
                column: self.column()?,
                bounds: self.bounds()?,
                quantile: Probability::new(self.quantile)?,
            },
            Statistic::SmoothMedian => {
                statistics::Statistic::SmoothMedian { column: self.column()?, bounds: self.bounds()? }
            }
            Statistic::Range => statistics::Statistic::Range {
                column: self.column()?,
                bounds: self.bounds()?,
                inside: Probability::new(self.inside)?,
            },
        })
    }

    /// Builds a statistic for each group of the selected records.
    fn grouped(&self, group_by: &str) -> Result<statistics::Statistic> {
        let (group_by, groups) = (group_by.to_owned(), keys::list(self.groups.as_deref()));
        let missing = || {
            let sentence = "no groups are given, expected the keys of the groups";
            Refusal::new(sentence, "add --groups A,B,C from public knowledge, not from the data")
        };
        Ok(match self.statistic {
            // The number of records in each group is a histogram.
            Statistic::Count => statistics::Statistic::Histogram { column: group_by, keys: groups },
            Statistic::Histogram => {
                let keys = match (keys::list(self.keys.as_deref()), groups) {
                    (Some(keys), Some(groups)) => Some([keys, groups]),
                    (None, None) => None,
                    (Some(_), None) => return Err(missing().into()),
                    (None, Some(_)) => {
                        let sentence = "no keys are given, expected keys, because groups are given";
                        return Err(Refusal::new(sentence, "add --keys, or leave --groups out").into());
                    }
                };
                let columns = [self.column()?, group_by];
                statistics::Statistic::Grouped(Grouped::Pairs { columns, keys })
            }
            Statistic::Sum => statistics::Statistic::Grouped(Grouped::Sum {
                column: self.column()?,
                bounds: self.bounds()?,
                group_by,
                keys: groups.ok_or_else(missing)?,
            }),
            Statistic::Mean => statistics::Statistic::Grouped(Grouped::Mean {
                column: self.column()?,
                bounds: self.bounds()?,
                group_by,
                keys: groups.ok_or_else(missing)?,
            }),
            _ => {
                let sentence = "this statistic has no groups, expected a count, sum, mean or histogram";
                let hint = "leave --group-by out, or ask about one group with --where";
                return Err(Refusal::new(sentence, hint).into());
            }
        })
    }

    /// Returns the column that the question is about.
    fn column(&self) -> Result<String> {
        let missing =
            || Refusal::new("no column is given, expected the column of the statistic", "add --column NAME");
        Ok(self.column.clone().ok_or_else(missing)?)
    }

    fn bounds(&self) -> Result<Bounds> {
        if let Some(&[lower, upper]) = self.bounds.as_deref() {
            return Ok(Bounds::new(lower, upper)?);
        }
        let hint = "add --bounds LOWER UPPER from public knowledge, not from the data";
        Err(Refusal::new("no bounds are given, expected the range to which numbers are clamped", hint).into())
    }
}
