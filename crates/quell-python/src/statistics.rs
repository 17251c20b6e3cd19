//! Statistics of a table, charged to its ledger.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use quell::{
    data::{Predicate, Selection, Table},
    statistics::{self, Answer, Axis, Bins, Grouped, Named, Part, Plan, Question, Visitor},
};
use quell_privacy::{
    ledger::{Book, Ledger, Note, Paid, Receipt, Unit},
    mechanism::{AboveThreshold, Bounds, Mechanism, Noise, PerUser, Sensitive, SparseVector},
    number::{Toward, format_rounded},
    units::{Epsilon, Probability},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    data::PyTable,
    error::{Error, Result},
    ledger::PyLedger,
    process::Process,
};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyWatch>()?;
    module.add_function(wrap_pyfunction!(ask, module)?)?;
    module.add_function(wrap_pyfunction!(watch, module)?)
}

/// Questions, and what their answers may cost together.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    questions: Vec<Asked>,
    epsilon: f64,
    delta: Option<f64>,
    noise: Noise,
    records: Records,
    note: Note,
    /// Whether to report the price, and charge nothing.
    dry_run: bool,
}

/// Which records of a user are used.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Records {
    /// The column of the users.
    user: Option<String>,
    max_per_user: Option<u32>,
    one_record_per_user: bool,
}

impl Records {
    fn select<'t>(&self, table: &'t Table, condition: Option<&str>) -> Result<Selection<'t>> {
        let selection = match condition {
            Some(condition) => table.select(&condition.parse::<Predicate>()?)?,
            None => table.all(),
        };
        Ok(match (self.max_per_user, &self.user) {
            (Some(most), Some(user)) => selection.at_most_per_user(user, most)?,
            _ => selection,
        })
    }
}

/// One question, in words and as a statistic.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    name: String,
    #[serde(rename = "where")]
    condition: Option<String>,
    statistic: Statistic,
}

/// A statistic, as Python writes it.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Statistic {
    Count { by: Vec<Division> },
    Reaches { threshold: u64 },
    Sum { column: String, bounds: Bounds, by: Vec<Division> },
    Mean { column: String, bounds: Bounds, by: Vec<Division> },
    Variance { column: String, bounds: Bounds },
    Histogram { column: String, keys: Option<Vec<String>> },
    Pairs { columns: [String; 2] },
    Quantile { column: String, bounds: Bounds, quantile: Probability, by: Vec<Division> },
    Quantiles { column: String, bounds: Bounds, quantiles: Vec<Probability> },
    SmoothMedian { column: String, bounds: Bounds },
    Range { column: String, bounds: Bounds, inside: Probability },
}

/// How a column, or a list of conditions, divides the records.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Division {
    Keys { column: String, keys: Vec<String> },
    Bins { column: String, bounds: Bounds, bins: usize },
    Edges { column: String, edges: Vec<f64> },
    Conditions(Vec<String>),
}

impl Division {
    fn axis(self) -> Result<Axis> {
        Ok(match self {
            Self::Keys { column, keys } => Axis::keys(column, keys),
            Self::Bins { column, bounds, bins } => Axis::bins(column, Bins::equal(bounds, bins)?),
            Self::Edges { column, edges } => Axis::bins(column, Bins::new(edges)?),
            Self::Conditions(texts) => {
                let conditions = texts.iter().map(|text| text.parse());
                Axis::conditions(conditions.collect::<std::result::Result<Vec<Predicate>, _>>()?)
            }
        })
    }
}

impl Statistic {
    fn build(self) -> Result<statistics::Statistic> {
        use statistics::Statistic as Built;
        let axes = |by: Vec<Division>| by.into_iter().map(Division::axis).collect::<Result<Vec<Axis>>>();
        Ok(match self {
            Self::Count { by } if by.is_empty() => Built::Count,
            Self::Count { by } => Built::Grouped(Grouped::Count { by: axes(by)? }),
            Self::Reaches { threshold } => Built::Reaches { threshold },
            Self::Sum { column, bounds, by } if by.is_empty() => Built::Sum { column, bounds },
            Self::Sum { column, bounds, by } => {
                Built::Grouped(Grouped::Sum { column, bounds, by: axes(by)? })
            }
            Self::Mean { column, bounds, by } if by.is_empty() => Built::Mean { column, bounds },
            Self::Mean { column, bounds, by } => {
                Built::Grouped(Grouped::Mean { column, bounds, by: axes(by)? })
            }
            Self::Variance { column, bounds } => Built::Variance { column, bounds },
            Self::Histogram { column, keys } => Built::Histogram { column, keys },
            Self::Pairs { columns } => Built::Grouped(Grouped::UnknownPairs { columns }),
            Self::Quantile { column, bounds, quantile, by } if by.is_empty() => {
                Built::Quantile { column, bounds, quantile }
            }
            Self::Quantile { column, bounds, quantile, by } => {
                Built::Grouped(Grouped::Quantile { column, bounds, quantile, by: axes(by)? })
            }
            Self::Quantiles { column, bounds, quantiles } => Built::Quantiles { column, bounds, quantiles },
            Self::SmoothMedian { column, bounds } => Built::SmoothMedian { column, bounds },
            Self::Range { column, bounds, inside } => Built::Range { column, bounds, inside },
        })
    }
}

/// What a charge released, or what it would cost.
#[derive(Serialize)]
struct Released {
    answers: Vec<Named>,
    /// For each answer without a key: the noisy count from which a key is shown.
    least: Vec<Option<u64>>,
    receipt: Option<Receipt>,
    /// The mechanism, in words.
    what: String,
    /// ε of all charges before this one, and with it; infinite numbers are null.
    before: Option<f64>,
    after: Option<f64>,
}

/// Pays for the answers to questions and draws them. Settings and answers are JSON.
#[pyfunction]
fn ask(py: Python<'_>, table: &PyTable, ledger: &PyLedger, settings: &str) -> PyResult<String> {
    Ok(py.detach(|| -> Result<String> {
        let settings: Settings = serde_json::from_str(settings)?;
        let mut released = settings.ask(&table.table, &mut ledger.open()?)?;
        let least = |named: &Named| match named.answer {
            Answer::NoKey { least } | Answer::NoPair { least } => Some(least),
            _ => None,
        };
        released.least = released.answers.iter().map(least).collect();
        Ok(serde_json::to_string(&released)?)
    })?)
}

impl Settings {
    fn ask<B: Book>(self, table: &Table, ledger: &mut Ledger<B>) -> Result<Released> {
        let Self { questions, epsilon, delta, noise, records, note, dry_run } = self;
        check_positive(epsilon)?;
        ledger.annotate(&note);
        let state = ledger.state()?.clone();
        let (mut built, mut selections) = (Vec::new(), Vec::new());
        for asked in questions {
            selections.push(records.select(table, asked.condition.as_deref())?);
            built.push((asked.name, asked.statistic.build()?));
        }
        let release = Release { ledger, epsilon, dry_run };
        let one_record_per_user = records.one_record_per_user;
        // A single question is not a plan with one part: the ledger has other words for it.
        if let ([(name, statistic)], [selected]) = (built.as_slice(), selections.as_slice()) {
            let question =
                Question { statistic: statistic.clone(), noise, epsilon, delta, one_record_per_user };
            let (answer, mut released) = question.visit(&state, selected, release)??;
            let named = |answer| Named { question: name.clone(), answer };
            released.answers.extend(answer.map(named));
            return Ok(released);
        }
        let parts = built.into_iter().zip(&selections);
        let parts = parts.map(|((name, statistic), records)| Part { statistic, records, name });
        let plan = Plan { parts: parts.collect(), noise, epsilon, delta, one_record_per_user };
        let (answer, mut released) = plan.visit(&state, release)??;
        if let Some(Answer::Several(answers)) = answer {
            released.answers = answers;
        }
        Ok(released)
    }
}

/// Refuses ε = 0, which buys no answer.
pub(crate) fn check_positive(epsilon: f64) -> Result<()> {
    if Epsilon::new(epsilon)?.get() == 0.0 {
        let found = "epsilon is 0, expected a positive number";
        let hint = "an answer with ε = 0 would not depend on the data";
        return Err(Error::Hinted("SettingError", found.into(), hint.into()));
    }
    Ok(())
}

/// Charges the ledger and draws the answer, or says what that would cost.
struct Release<'l, B> {
    ledger: &'l mut Ledger<B>,
    epsilon: f64,
    dry_run: bool,
}

impl<'a, B: Book> Visitor<'a> for Release<'_, B> {
    type Output = Result<(Option<Answer>, Released)>;

    fn visit<M: Mechanism + 'a, D: 'a>(
        self,
        make: impl Fn(f64) -> std::result::Result<M, quell::Error> + 'a,
        read: impl FnOnce() -> std::result::Result<D, quell::Error> + 'a,
        run: impl FnOnce(Paid<M>, D) -> std::result::Result<Answer, quell_privacy::Error> + 'a,
    ) -> Self::Output {
        let Self { ledger, epsilon, dry_run } = self;
        let mechanism = make(epsilon)?;
        // Errors in the question come before its price.
        let data = read()?;
        let (before, after) = check_price(ledger, &mechanism, |share| Ok(make(share * epsilon)?), epsilon)?;
        let what = mechanism.to_string();
        let mut released =
            Released { answers: Vec::new(), least: Vec::new(), receipt: None, what, before, after };
        if dry_run {
            return Ok((None, released));
        }
        let paid = ledger.charge(mechanism)?;
        released.receipt = Some(paid.receipt().clone());
        Ok((Some(run(paid, data)?), released))
    }
}

/// ε before and after a charge. Refuses a charge beyond the budget, and one after which nothing could be charged.
///
/// `make` makes the mechanism for a share of ε.
pub(crate) fn check_price<M: Mechanism, B: Book>(
    ledger: &mut Ledger<B>,
    mechanism: &M,
    make: impl Fn(f64) -> Result<M>,
    epsilon: f64,
) -> Result<(Option<f64>, Option<f64>)> {
    let finite = |number: f64| number.is_finite().then_some(number);
    let before = ledger.state()?.spent().epsilon;
    let (charge, after) = ledger.quote(mechanism, 1)?;
    let (state, cap) = (ledger.state()?.clone(), ledger.state()?.budget().cap());
    let smaller_delta = || {
        let left = state.slack_left();
        if left <= 0.0 {
            return "the ledger has no δ left for questions with a δ; ask a question without a δ".to_owned();
        }
        format!(
            "leave delta out, or give at most {}, since {} is left for all questions with a δ",
            format_rounded(left / 2.0, 2, Toward::Down),
            format_rounded(left, 2, Toward::Down)
        )
    };
    if after.epsilon <= cap && state.is_last(&charge) {
        let found = "the δ of this question exceeds the δ that the ledger reserves for questions with a δ, so the ledger could grant no later charge";
        let addition = "or create a ledger with composition=\"addition\", which reserves all of its δ for such questions";
        return Err(Error::Hinted("BudgetError", found.into(), format!("{}, {addition}", smaller_delta())));
    }
    if after.epsilon <= cap {
        return Ok((finite(before), finite(after.epsilon)));
    }
    // The largest share of ε with which the charge fits.
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..12 {
        let middle = 0.5 * (low + high);
        let fits = make(middle).ok().and_then(|one| ledger.quote(&one, 1).ok());
        if fits.is_some_and(|(_, after)| after.epsilon <= cap) { low = middle } else { high = middle }
    }
    let raise = "or raise the budget with Ledger.set_budget";
    let hint = if after.epsilon.is_infinite() {
        smaller_delta()
    } else if low > 0.0 {
        let fits = format_rounded(low * epsilon, 3, Toward::Down);
        format!("the same question with epsilon={fits} fits the budget; {raise}")
    } else {
        format!(
            "the budget has no room for this question at any ε; use the answers that were paid for, {raise}"
        )
    };
    let refused = quell_privacy::Error::Refused { would_be: after.epsilon, spent: before, budget: cap };
    Err(Error::Hinted("BudgetError", refused.to_string(), hint))
}

/// Questions about counts above a threshold.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WatchSettings {
    threshold: i64,
    positives: u32,
    epsilon: f64,
    records: Records,
    note: Note,
}

/// A charge that answers which conditions enough records satisfy, until so many conditions were satisfied.
#[pyclass(name = "Watch", module = "quell._native", frozen)]
struct PyWatch {
    table: Table,
    records: Records,
    process: Process,
    above: Mutex<AboveThreshold>,
    receipt: Receipt,
}

/// Pays for a sparse vector of counts of a table.
#[pyfunction]
fn watch(py: Python<'_>, table: &PyTable, ledger: &PyLedger, settings: &str) -> PyResult<PyWatch> {
    Ok(py.detach(|| -> Result<PyWatch> {
        let WatchSettings { threshold, positives, epsilon, records, note } = serde_json::from_str(settings)?;
        check_positive(epsilon)?;
        if positives == 0 {
            return Err(quell::Error::Setting {
                name: "positives",
                found: "0".into(),
                expected: "a positive number",
            }
            .into());
        }
        let mut ledger = ledger.open()?;
        ledger.annotate(&note);
        check_unit(ledger.state()?.terms().unit, &records)?;
        let most = records.max_per_user.unwrap_or(1);
        let make = |share: f64| {
            let epsilon = PerUser::epsilon_of_record(Epsilon::new(share * epsilon)?, most)?;
            Ok(SparseVector::new(threshold, positives, epsilon)?)
        };
        // Columns that do not fit are an error before the charge.
        records.select(&table.table, None)?;
        let paid = if let Some(records) = records.max_per_user {
            let limited = |share: f64| Ok(PerUser { mechanism: make(share)?, records });
            check_price(&mut ledger, &limited(1.0)?, limited, epsilon)?;
            ledger.charge(limited(1.0)?)?.of_records()
        } else {
            check_price(&mut ledger, &make(1.0)?, make, epsilon)?;
            ledger.charge(make(1.0)?)?
        };
        let receipt = paid.receipt().clone();
        Ok(PyWatch {
            table: table.table.clone(),
            records,
            process: Process::this(),
            above: Mutex::new(paid.run()?),
            receipt,
        })
    })?)
}

/// Refuses a ledger of users without a limit on their records, and a limit in a ledger of records.
fn check_unit(unit: Unit, records: &Records) -> Result<()> {
    let (found, expected) = match (unit, records.one_record_per_user, records.max_per_user) {
        (Unit::User, false, None) => (
            "user, and a table may have several records of one user",
            "example, or a table with a limit on the records of each user",
        ),
        (Unit::Example, _, Some(_)) => (
            "example, and the records of each user are limited",
            "user, or no limit on the records of a user",
        ),
        _ => return Ok(()),
    };
    Err(quell::Error::Setting { name: "unit", found: found.into(), expected }.into())
}

#[pymethods]
impl PyWatch {
    /// Whether the noisy number of records that satisfy a condition reaches the threshold; none once all is spent.
    fn ask(&self, py: Python<'_>, condition: Option<&str>) -> PyResult<Option<bool>> {
        Ok(py.detach(|| -> Result<Option<bool>> {
            self.process.check("a watch")?;
            let count = self.records.select(&self.table, condition)?.count()?;
            let count = Sensitive::new(i64::try_from(count).unwrap_or(i64::MAX));
            Ok(self.above.lock().unwrap_or_else(PoisonError::into_inner).ask(&count))
        })?)
    }

    /// The receipt of the charge, as JSON.
    #[getter]
    fn receipt(&self) -> String {
        json!(self.receipt).to_string()
    }
}
