//! `quell query`: a statistic of a table, paid for from its ledger.

mod answer;
mod question;

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use quell::data::{Predicate, Selection, Table};
use quell_ledger::Volume;
use quell_privacy::{
    Error,
    ledger::{Ledger, Paid, Receipt, Spent, Unit},
    mechanism::{Mechanism, Noise},
    number::{Toward, given, rounded},
    units::Epsilon,
};

use crate::{arguments::Format, print, purse::Purse, refusal::Refusal};
use answer::Answer;

const EXAMPLES: &str = "\
Examples:
  quell ledger create census --epsilon 3 --delta 1e-6
  quell query census.csv count --epsilon 0.1 --where \"age >= 65\"
  quell query census.csv mean --column age --bounds 0 100 --epsilon 0.5
  quell query census.csv histogram --column sex --keys Female,Male --epsilon 0.2
  quell query census.csv histogram --column education --epsilon 0.5 --delta 1e-9
  quell query census.csv quantile --column age --bounds 0 120 --quantile 0.9 --epsilon 0.3 --format json";

/// A statistic of a CSV or Parquet file, released through the ledger of its dataset
///
/// Bounds, keys and the condition are public: they must not be read off the data. A value that is missing or no number is left out. The
/// answer comes with the range in which the noise stays in nineteen cases of twenty, and with a receipt of the ledger.
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
    /// Keys of a histogram, separated by commas; without them, keys that many records have are shown, which needs --delta
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    keys: Option<Vec<String>>,
    /// Which quantile
    #[arg(long, value_name = "P", default_value_t = 0.5, allow_negative_numbers = true)]
    quantile: f64,
    /// Part of the records between the ends of a range
    #[arg(long, value_name = "P", default_value_t = 0.95, allow_negative_numbers = true)]
    inside: f64,
    /// What a count must reach
    #[arg(long, value_name = "N", value_parser = crate::arguments::whole)]
    threshold: Option<u64>,
    /// ε of this answer
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: f64,
    /// δ of this answer, for Gaussian noise, unknown keys and smooth medians
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
    #[command(flatten)]
    purse: Purse,
    /// How the answer is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// What can be asked.
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

/// Law of the noise of counts and sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Law {
    /// A pure guarantee.
    #[default]
    Laplace,
    /// Cheaper in the long run; needs --delta.
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
    if Epsilon::new(flags.epsilon)?.get() == 0.0 {
        return Err(Refusal::new("epsilon is 0, expected more", "an answer that costs nothing says nothing").into());
    }
    // Whatever can be wrong with the question is said before anything is paid.
    let table = Table::open(&flags.data)?;
    let predicate = flags.condition.as_deref().map(str::parse::<Predicate>).transpose()?;
    let selection = match &predicate {
        Some(predicate) => table.select(predicate)?,
        None => table.all(),
    };
    let mut ledger = flags.purse.ledger(&dataset)?;
    let unit = ledger.state()?.terms().unit;
    if unit == Unit::User && !flags.one_record_per_user {
        let sentence = format!("the ledger of {dataset:?} protects users, and a table may hold several records of one");
        return Err(Refusal::new(sentence, "where every person has one record, say so with --one-record-per-user").into());
    }
    flags.ask(&mut ledger, &selection)
}

impl Flags {
    fn dataset(&self) -> Result<String> {
        let stem = || self.data.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let named = self.dataset.clone().or_else(stem);
        named.ok_or_else(|| {
            Refusal::new(format!("{} has no file name", self.data.display()), "name the dataset with --dataset").into()
        })
    }

    /// Reads the data, pays for the mechanism that `make` builds for an ε, and runs it.
    fn release<M: Mechanism, D>(
        &self,
        ledger: &mut Ledger<Volume>,
        make: impl Fn(f64) -> Result<M>,
        read: impl FnOnce() -> Result<D>,
        run: impl FnOnce(Paid<M>, D) -> Result<Answer, Error>,
    ) -> Result<()> {
        let mechanism = make(self.epsilon)?;
        // What is wrong with the question is said before its price.
        let data = read()?;
        let before = ledger.state()?.spent().epsilon;
        let (_, after) = ledger.quote(&mechanism, 1)?;
        let cap = ledger.state()?.budget().cap();
        let fits = after.epsilon <= cap;
        if !fits {
            return Err(self.refused(ledger, &make, before, after.epsilon, cap));
        }
        if self.dry_run {
            return self.report_price(&mechanism.to_string(), before, after, cap);
        }
        let paid = ledger.charge(mechanism)?;
        let receipt = paid.receipt().clone();
        let answer = run(paid, data)?;
        // Others may have charged in between.
        let after = ledger.state().map_or(after, quell_privacy::ledger::State::spent);
        self.report(&answer, &receipt, after, cap)
    }

    /// What it would have cost, what is left, and what to do.
    fn refused<M: Mechanism>(
        &self,
        ledger: &mut Ledger<Volume>,
        make: &impl Fn(f64) -> Result<M>,
        spent: f64,
        would_be: f64,
        budget: f64,
    ) -> anyhow::Error {
        let (mut low, mut high) = (0.0, self.epsilon);
        for _ in 0..12 {
            let middle = 0.5 * (low + high);
            let fits = make(middle).ok().and_then(|m| ledger.quote(&m, 1).ok()).is_some_and(|(_, after)| after.epsilon <= budget);
            if fits { low = middle } else { high = middle }
        }
        let raise = "or raise the budget with `quell ledger raise`";
        let hint = if would_be.is_infinite() {
            "the delta of this question is more than the ledger has set aside for such; ask with a far smaller --delta".into()
        } else if low > 0.0 {
            format!("a question of this kind with --epsilon {} still fits; ask for less, {raise}", rounded(low, 3, Toward::Down))
        } else {
            format!("nothing is left for a question of this kind; ask another dataset, {raise}")
        };
        anyhow::Error::new(Refusal::new(Error::Refused { would_be, spent, budget }.to_string(), hint).final_word())
    }

    fn report_price(&self, what: &str, before: f64, after: Spent, cap: f64) -> Result<()> {
        if self.format == Format::Json {
            let price = serde_json::json!({"what": what, "spent_before": before, "spent_after": after.epsilon, "theorem": after.theorem.to_string(), "cap": if cap.is_finite() { Some(cap) } else { None }});
            return print::json(&price);
        }
        let (before, after) = (rounded(before, 4, Toward::Up), rounded(after.epsilon, 4, Toward::Up));
        print::data(&format!(
            "{what}: ε would rise from {before} to {after}, the budget is {}",
            if cap.is_finite() { given(cap) } else { "without a cap".into() }
        ))
    }

    fn report(&self, answer: &Answer, receipt: &Receipt, spent: Spent, cap: f64) -> Result<()> {
        if self.format == Format::Json {
            let theorem = spent.theorem.to_string();
            let epsilon = serde_json::json!({"spent": if spent.epsilon.is_finite() { Some(spent.epsilon) } else { None }, "budget": if cap.is_finite() { Some(cap) } else { None }, "theorem": theorem});
            return print::json(&serde_json::json!({"answer": answer, "receipt": receipt, "epsilon": epsilon}));
        }
        print::data(&answer.to_string())?;
        let cap = if cap.is_finite() { format!("of {}", given(cap)) } else { "without a cap".into() };
        let spent = rounded(spent.epsilon, 4, Toward::Up);
        print::note(&format!("paid in line {} of {:?}: ε {spent} {cap} is spent", receipt.entry, receipt.dataset));
        Ok(())
    }

    /// The column asked about.
    fn column(&self) -> Result<&str> {
        let missing = || Refusal::new("no column is named, expected the one that is asked about", "add --column NAME");
        Ok(self.column.as_deref().ok_or_else(missing)?)
    }

    /// Its numbers, NaN where there is none.
    fn numbers(&self, selection: &Selection<'_>) -> Result<Vec<f64>> {
        Ok(selection.numbers(self.column()?)?.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect())
    }
}
