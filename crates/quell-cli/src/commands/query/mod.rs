//! `quell query`: releases a statistic of a table, paid for from its ledger.

mod answer;

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use quell::{
    data::{Predicate, Table},
    statistics::{self, Answer, Question, Visitor},
};
use quell_ledger::Volume;
use quell_privacy::{
    ledger::{Ledger, Paid},
    mechanism::{Bounds, Mechanism, Noise},
    units::Probability,
};

use crate::{
    flags::{
        Format,
        ledger::{Dataset, LedgerArgs},
    },
    payment::{self, Payment},
    refusal::Refusal,
};
use answer::Shown;

const EXAMPLES: &str = "\
Examples:
  quell ledger create census --epsilon 3 --delta 1e-6
  quell query census.csv count --epsilon 0.1 --where \"age >= 65\" --output over65.txt
  quell query census.csv mean --column age --bounds 0 100 --epsilon 0.5
  quell query census.csv histogram --column sex --keys Female,Male --epsilon 0.2
  quell query census.csv histogram --column education --epsilon 0.5
  quell query census.csv quantile --column age --bounds 0 120 --quantile 0.9 --epsilon 0.3 --format json";

/// A statistic of a CSV or Parquet file, released through the ledger of its dataset
///
/// Bounds, keys and the condition are public: they must not be read off the data. A value that is missing or no number is left out. The
/// answer comes with an error that holds in nineteen cases of twenty, and with a receipt of the ledger. The error of a quantile is in records:
/// "40 ± 26 records" says that the wanted rank is at most 26 records away from those that the value 40 has.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// CSV (with a header) or Parquet file
    data: PathBuf,
    /// What is asked
    #[arg(value_enum)]
    statistic: Statistic,
    /// Column that is asked about
    #[arg(long, value_name = "NAME")]
    column: Option<String>,
    /// Only records for which this holds, as in "age >= 65 and sex = 'Female'"
    #[arg(long = "where", value_name = "EXPRESSION")]
    condition: Option<String>,
    /// Bounds that every number is held to
    #[arg(long, num_args = 2, value_names = ["LOWER", "UPPER"], allow_hyphen_values = true)]
    bounds: Option<Vec<f64>>,
    /// Keys of a histogram, separated by commas; without them, keys that many records have are shown, at a δ
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    keys: Option<Vec<String>>,
    /// Which quantile
    #[arg(long, value_name = "P", default_value_t = 0.5, allow_negative_numbers = true)]
    quantile: f64,
    /// Part of the records between the ends of a range
    #[arg(long, value_name = "P", default_value_t = 0.95, allow_negative_numbers = true)]
    inside: f64,
    /// What a count must reach
    #[arg(long, value_name = "N", value_parser = crate::flags::parse_count)]
    threshold: Option<u64>,
    /// ε of this answer
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: f64,
    /// δ of this answer, for Gaussian noise, unknown keys and smooth medians (for noise that of the budget, for the others a small part of it, if not given)
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: Option<f64>,
    /// Law of the noise
    #[arg(long, value_enum, default_value_t)]
    noise: Law,
    /// Name of the dataset in the ledger (the name of the file if not given)
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    /// Every person has one record: needed where the ledger protects users
    #[arg(long)]
    one_record_per_user: bool,
    /// Say what it would cost, and pay nothing
    #[arg(long)]
    dry_run: bool,
    /// File for the answer (standard output if not given); the same question for the same file is paid for once, however often the command is killed and run again
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    output: Option<PathBuf>,
    #[command(flatten)]
    ledgers: LedgerArgs,
    /// How the answer is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The statistics that the command can release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Statistic {
    /// How many records
    Count,
    /// Whether as many records as --threshold
    Reaches,
    /// Sum of a column
    Sum,
    /// Mean of a column
    Mean,
    /// Variance of a column
    Variance,
    /// Records for each key of a column
    Histogram,
    /// Quantile of a column
    Quantile,
    /// Median of a column, with noise fitted to the data
    SmoothMedian,
    /// Two numbers between which most records of a column lie
    Range,
}

/// The distribution of the noise on counts and sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Law {
    /// A pure guarantee.
    #[default]
    Laplace,
    /// Cheaper in the long run: many answers with it add up to less.
    Gaussian,
}

impl From<Law> for Noise {
    fn from(law: Law) -> Self {
        match law {
            Law::Laplace => Self::Laplace,
            Law::Gaussian => Self::Gaussian,
        }
    }
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    let dataset = flags.dataset()?;
    payment::positive(flags.epsilon)?;
    // All errors in the question are reported before anything is paid.
    let table = Table::open(&flags.data)?;
    let predicate = flags.condition.as_deref().map(str::parse::<Predicate>).transpose()?;
    let selection = match &predicate {
        Some(predicate) => table.select(predicate)?,
        None => table.all(),
    };
    let question = flags.question()?;
    let mut ledger = flags.ledgers.ledger(&dataset)?;
    payment::one_record_each(&mut ledger, &dataset.name, flags.one_record_per_user)?;
    let state = ledger.state()?.clone();
    question.visit(&state, &selection, Asking { payment: flags.payment(), ledger: &mut ledger })?
}

/// Pays for the answer to a question and prints it.
struct Asking<'l> {
    payment: Payment,
    ledger: &'l mut Ledger<Volume>,
}

impl Visitor for Asking<'_> {
    type Output = Result<()>;

    fn visit<M: Mechanism, D>(
        self,
        make: impl Fn(f64) -> Result<M, quell::Error>,
        read: impl FnOnce() -> Result<D, quell::Error>,
        run: impl FnOnce(Paid<M>, D) -> Result<Answer, quell_privacy::Error>,
    ) -> Result<()> {
        let make = |epsilon| Ok(make(epsilon)?);
        self.payment.release(self.ledger, make, || Ok(read()?), |paid, data| run(paid, data).map(Shown))
    }
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
        let asked = (
            &self.data,
            self.statistic,
            &self.column,
            &self.condition,
            &self.bounds,
            &self.keys,
            self.quantile,
        );
        let more = (self.inside, self.threshold, self.epsilon, self.delta, self.noise, &self.dataset);
        let output = self.output.clone().map(|path| (path, format!("query {asked:?} {more:?}")));
        Payment { epsilon: self.epsilon, dry_run: self.dry_run, format: self.format, output }
    }

    /// Builds the question from the flags.
    fn question(&self) -> Result<Question> {
        let statistic = match self.statistic {
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
            Statistic::Histogram => {
                statistics::Statistic::Histogram { column: self.column()?, keys: self.keys.clone() }
            }
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
        };
        Ok(Question {
            statistic,
            noise: self.noise.into(),
            epsilon: self.epsilon,
            delta: self.delta,
            one_record_per_user: self.one_record_per_user,
        })
    }

    /// Returns the column that the question is about.
    fn column(&self) -> Result<String> {
        let missing =
            || Refusal::new("no column is named, expected the one that is asked about", "add --column NAME");
        Ok(self.column.clone().ok_or_else(missing)?)
    }

    fn bounds(&self) -> Result<Bounds> {
        if let Some(&[lower, upper]) = self.bounds.as_deref() {
            return Ok(Bounds::new(lower, upper)?);
        }
        let hint = "add --bounds LOWER UPPER from what is publicly known, not from the data; quantile and range need them too";
        Err(Refusal::new("no bounds are given, expected the range that numbers are held to", hint).into())
    }
}
