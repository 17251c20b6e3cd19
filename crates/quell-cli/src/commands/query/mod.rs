//! `quell query`: releases a statistic of a table, paid for from its ledger.

mod keys;
mod shown;
mod words;

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use quell::{
    data::{Predicate, Table},
    statistics::{self, Axis, Bins, Grouped, Question},
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
  quell query census.csv histogram --column age --bounds 0 100 --bins 10 --epsilon 0.2
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
    /// Count numbers in this many equal bins between --bounds
    ///
    /// A number beyond the bounds is in the nearest bin.
    #[arg(long, value_name = "N", value_parser = crate::flags::parse_count, conflicts_with = "keys", requires = "bounds")]
    bins: Option<u64>,
    /// Count numbers between these edges, separated by commas
    ///
    /// A number beyond the outer edges is left out.
    #[arg(long, value_name = "0,18,65", value_delimiter = ',', allow_hyphen_values = true, conflicts_with_all = ["keys", "bins", "bounds"])]
    edges: Option<Vec<f64>>,
    /// Column that divides the records into groups, for a count, sum, mean or histogram
    ///
    /// A record is in one group at most, so all groups together cost one ε. A histogram with groups counts
    /// the records for each key and group. Two columns make a table of groups: give --group-by and --groups
    /// twice.
    #[arg(long, value_name = "NAME")]
    group_by: Option<Vec<String>>,
    /// Keys of the groups, separated by commas
    ///
    /// Records with another key are left out. Only a count, or a histogram without --keys, can do without
    /// this list: then the answer contains the groups that many records are in, and costs a δ.
    #[arg(long, value_name = "A,B,C", value_parser = keys::parse, requires = "group_by")]
    groups: Option<Vec<Keys>>,
    /// Groups of numbers, in place of --groups: so many equal bins between two bounds
    #[arg(long, num_args = 3, value_names = ["LOWER", "UPPER", "N"], allow_hyphen_values = true, requires = "group_by", conflicts_with = "groups")]
    group_bins: Option<Vec<f64>>,
    /// Groups of numbers, in place of --groups: between these edges
    #[arg(long, value_name = "0,18,65", value_delimiter = ',', allow_hyphen_values = true, requires = "group_by", conflicts_with_all = ["groups", "group_bins"])]
    group_edges: Option<Vec<f64>>,
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
    ledger.annotate(&flags.note());
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
        // Questions without groups or bins keep the text that they had before there were any.
        if let Some(fields) = question.as_object_mut() {
            match self.group_by.as_deref() {
                None => {}
                Some([group_by]) => {
                    fields.insert("group_by".into(), json!(group_by));
                    fields.insert("groups".into(), json!(keys::list(self.groups.as_deref())));
                }
                Some(columns) => {
                    fields.insert("group_by".into(), json!(columns));
                    fields.insert("groups".into(), json!(keys::lists(self.groups.as_deref())));
                }
            }
            let numbers = [
                ("bins", json!(self.bins)),
                ("edges", json!(self.edges)),
                ("group_bins", json!(self.group_bins)),
                ("group_edges", json!(self.group_edges)),
            ];
            fields.extend(
                numbers.into_iter().filter(|(_, given)| !given.is_null()).map(|(name, it)| (name.into(), it)),
            );
        }
        let question = json!({"query": question});
        let output = self.output.clone().map(|path| (path, question));
        Payment { epsilon: self.epsilon, dry_run: self.dry_run, format: self.format, output }
    }

    /// Builds the question from the flags.
    fn question(&self) -> Result<Question> {
        if self.statistic != Statistic::Histogram && (self.bins.is_some() || self.edges.is_some()) {
            let sentence = "--bins and --edges are for a histogram, expected a histogram";
            return Err(Refusal::new(sentence, "divide other statistics with --group-bins").into());
        }
        if self.statistic == Statistic::Histogram && self.bounds.is_some() && self.bins.is_none() {
            let sentence = "a histogram has --bounds and no --bins, expected a number of bins";
            return Err(Refusal::new(sentence, "add --bins 10, or leave --bounds out to count keys").into());
        }
        let statistic = match self.group_by.as_deref() {
            Some(columns) => self.grouped(columns)?,
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
            Statistic::Histogram => match self.bins()? {
                Some(bins) => {
                    let by = vec![Axis::bins(self.column()?, bins)];
                    statistics::Statistic::Grouped(Grouped::Count { by })
                }
                None => statistics::Statistic::Histogram {
                    column: self.column()?,
                    keys: keys::list(self.keys.as_deref()),
                },
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

    /// The bins of a histogram of numbers, if they are given.
    fn bins(&self) -> Result<Option<Bins>> {
        Ok(match (&self.edges, self.bins) {
            (Some(edges), _) => Some(Bins::new(edges.clone())?),
            (None, Some(count)) => {
                Some(Bins::equal(self.bounds()?, usize::try_from(count).unwrap_or(usize::MAX))?)
            }
            (None, None) => None,
        })
    }

    /// The columns that divide the records into groups; `None` if the groups are not known.
    fn axes(&self, columns: &[String]) -> Result<Option<Vec<Axis>>> {
        let bins = match (&self.group_edges, self.group_bins.as_deref()) {
            (Some(edges), _) => Some(Bins::new(edges.clone())?),
            (None, Some(&[lower, upper, count])) => {
                if count.fract() != 0.0 {
                    let sentence = format!("the number of bins is {count}, expected a whole number");
                    return Err(Refusal::new(sentence, "write --group-bins LOWER UPPER N").into());
                }
                Some(Bins::equal(Bounds::new(lower, upper)?, count as usize)?)
            }
            (None, _) => None,
        };
        let lists = keys::lists(self.groups.as_deref());
        match (columns, bins, lists) {
            ([column], Some(bins), _) => Ok(Some(vec![Axis::bins(column, bins)])),
            ([column], None, Some(lists)) => Ok(Some(vec![Axis::keys(column, lists.concat())])),
            ([_], None, None) => Ok(None),
            ([one, other], None, Some(lists)) if lists.len() == 2 => {
                let [first, second] = [&lists[0], &lists[1]].map(Clone::clone);
                Ok(Some(vec![Axis::keys(one, first), Axis::keys(other, second)]))
            }
            ([_, _], ..) => {
                let sentence =
                    "two columns of groups have no two lists of groups, expected one list for each";
                Err(Refusal::new(sentence, "write --group-by A --groups a,b --group-by B --groups c,d")
                    .into())
            }
            _ => {
                let sentence = format!("--group-by is given {} times, expected once or twice", columns.len());
                Err(Refusal::new(sentence, "select the others with --where").into())
            }
        }
    }

    /// Builds a statistic for each group of the selected records.
    fn grouped(&self, columns: &[String]) -> Result<statistics::Statistic> {
        let axes = self.axes(columns)?;
        let missing = || {
            let sentence = "no groups are given, expected the keys of the groups";
            Refusal::new(sentence, "add --groups A,B,C from public knowledge, not from the data")
        };
        let first = || columns.first().cloned().unwrap_or_default();
        Ok(match (self.statistic, axes) {
            (Statistic::Count, Some(by)) => statistics::Statistic::Grouped(Grouped::Count { by }),
            // The number of records in each group is a histogram.
            (Statistic::Count, None) => statistics::Statistic::Histogram { column: first(), keys: None },
            (Statistic::Histogram, Some(groups)) if groups.len() == 1 => {
                let column = self.column()?;
                let own = match (self.bins()?, keys::list(self.keys.as_deref())) {
                    (Some(bins), _) => Axis::bins(column, bins),
                    (None, Some(keys)) => Axis::keys(column, keys),
                    (None, None) => {
                        let sentence = "no keys are given, expected keys, because groups are given";
                        return Err(
                            Refusal::new(sentence, "add --keys or --bins, or leave --groups out").into()
                        );
                    }
                };
                statistics::Statistic::Grouped(Grouped::Count { by: [vec![own], groups].concat() })
            }
            (Statistic::Histogram, None) if self.keys.is_none() && self.bins()?.is_none() => {
                let columns = [self.column()?, first()];
                statistics::Statistic::Grouped(Grouped::UnknownPairs { columns })
            }
            (Statistic::Histogram, Some(_)) => {
                let sentence = "a histogram has two columns of groups, expected one";
                return Err(Refusal::new(sentence, "leave one out, or ask for a count").into());
            }
            (Statistic::Sum, by) => statistics::Statistic::Grouped(Grouped::Sum {
                column: self.column()?,
                bounds: self.bounds()?,
                by: by.ok_or_else(missing)?,
            }),
            (Statistic::Mean, by) => statistics::Statistic::Grouped(Grouped::Mean {
                column: self.column()?,
                bounds: self.bounds()?,
                by: by.ok_or_else(missing)?,
            }),
            (Statistic::Histogram, None) => return Err(missing().into()),
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
