//! Votes of teachers, and of the records nearest to a question.

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use quell::{
    data::{Examples, Table, Targets, Use},
    voting::{
        Aggregation, Answered, Plan, Recipe, VoteFacts,
        knn::NearestVoters,
        pate::{Ballots, Shards},
    },
};
use quell_privacy::{
    ledger::{Ledger, Note, Unit},
    mechanism::Voters,
    units::SamplingRate,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    data::{Numbers, PyTable, read_array, read_singles},
    error::{Error, Result},
    ledger::{AnyBook, PyLedger},
};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyNearest>()?;
    module.add_function(wrap_pyfunction!(shards, module)?)?;
    module.add_function(wrap_pyfunction!(ask_teachers, module)?)
}

/// The shard of each row; the number of shards where a row has no class or no user.
///
/// `users` is a table with one column, which a ledger that protects users needs. If records are added and removed,
/// the shard of a record depends on that record, or on its user. If they are replaced, it depends on the row.
#[pyfunction]
fn shards<'py>(
    py: Python<'py>,
    ledger: &PyLedger,
    features: &Bound<'py, PyAny>,
    labels: &Bound<'py, PyArray1<u32>>,
    classes: usize,
    users: Option<PyRef<'py, PyTable>>,
    count: usize,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let (shape, values) = read_array(features)?;
    let labels = labels.try_readonly()?.as_array().to_vec();
    let users = users.map(|users| users.table.clone());
    let of = py.detach(|| -> Result<Vec<u32>> {
        let mut ledger = ledger.open()?;
        let terms = ledger.state()?.terms();
        if terms.unit == Unit::User && users.is_none() {
            let found = "the ledger protects users and no users are given, expected the user of each record";
            let hint = "add users=..., with one user for each record";
            return Err(Error::Hinted("SettingError", found.into(), hint.into()));
        }
        let rows = labels.len();
        if shape.len() < 2 || shape[0] != rows {
            return Err(quell::Error::Sizes { name: "labels" }.into());
        }
        let targets =
            Targets::Classes { labels, names: (0..classes).map(|class| class.to_string()).collect() };
        let mut examples = match values {
            Numbers::Bytes(values) => Examples::bytes(&shape[1..], values, u8::MAX, targets),
            Numbers::Singles(values) => Examples::numbers(&shape[1..], values, targets),
        }?;
        if let Some(users) = users {
            let names = names(&users)?;
            if names.len() != rows {
                return Err(quell::Error::Sizes { name: "users" }.into());
            }
            let of_records: Vec<_> = (0..examples.len()).map(|record| &names[examples.row(record)]).collect();
            examples =
                examples.with_users(&of_records.into_iter().map(Option::as_ref).collect::<Vec<_>>())?;
        }
        let shards = Shards::deal(&examples, count, terms.neighbors)?;
        let mut of = vec![u32::try_from(count).unwrap_or(u32::MAX); rows];
        for (record, shard) in shards.of().iter().enumerate() {
            of[examples.row(record)] = *shard;
        }
        Ok(of)
    })?;
    Ok(PyArray1::from_vec(py, of))
}

/// The bytes that name the user of each row, in the only column of a table.
fn names(table: &Table) -> Result<Vec<Option<Vec<u8>>>> {
    let mut names = Vec::new();
    let column = table.columns().first().map_or("", |column| column.name.as_str());
    table.all().scan(&[(column, Use::Name)], |row| names.push(row.name(0).map(<[u8]>::to_vec)))?;
    Ok(names)
}

/// What a vote may cost, and the words for the ledger.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    votes: Recipe,
    note: Note,
    /// Whether to report the price, and charge nothing.
    dry_run: bool,
}

impl Settings {
    /// Plans a vote under the neighbours of the ledger, at the δ of its budget unless another is given.
    fn plan(&self, facts: &VoteFacts, ledger: &mut Ledger<AnyBook>) -> Result<(Plan, Unit)> {
        ledger.annotate(&self.note);
        let state = ledger.state()?;
        let (terms, delta) = (state.terms(), state.budget().delta.get());
        let recipe = Recipe {
            neighbors: terms.neighbors,
            delta: self.votes.delta.or(Some(delta)),
            ..self.votes.clone()
        };
        Ok((recipe.plan(facts)?, terms.unit))
    }
}

/// What one round releases, and how many rounds there are.
fn times(round: &impl std::fmt::Display, rounds: u64) -> String {
    if rounds == 1 { round.to_string() } else { format!("{rounds} times {round}") }
}

/// The plan as JSON, with ε of the ledger before and after it.
fn describe(plan: &Plan, ledger: &mut Ledger<AnyBook>) -> Result<Value> {
    let before = ledger.state()?.spent().epsilon;
    let (what, after) = match &plan.aggregation {
        Aggregation::Polls(poll, rounds) => (times(poll, *rounds), ledger.quote(poll, *rounds)?.1),
        Aggregation::Stable(stable) => (stable.to_string(), ledger.quote(stable, 1)?.1),
        Aggregation::Surveys(survey, rounds) => (times(survey, *rounds), ledger.quote(survey, *rounds)?.1),
    };
    let finite = |number: f64| number.is_finite().then_some(number);
    Ok(json!({
        "epsilon": plan.epsilon,
        "delta": plan.delta.get(),
        "most": plan.aggregation.answers(),
        "what": what,
        "before": finite(before),
        "after": finite(after.epsilon),
    }))
}

/// Adds what was released to the description of a plan.
fn with_answers(mut plan: Value, answered: &Answered) -> Value {
    plan["entries"] = json!(answered.entries);
    plan["receipt"] = json!(answered.receipt);
    plan
}

/// Asks teachers. `ballots` has a row for each teacher and a column for each question, all of them classes.
///
/// The unit of the ledger influences one teacher only: shards, or the caller, see to that.
#[pyfunction]
fn ask_teachers(
    py: Python<'_>,
    ledger: &PyLedger,
    ballots: &Bound<'_, PyArray2<u16>>,
    classes: usize,
    settings: &str,
) -> PyResult<String> {
    let ballots = ballots.try_readonly()?;
    let view = ballots.as_array();
    let (teachers, questions) = (view.nrows(), view.ncols());
    let rows: Vec<Vec<u16>> = view.outer_iter().map(|row| row.to_vec()).collect();
    Ok(py.detach(|| -> Result<String> {
        let settings: Settings = serde_json::from_str(settings)?;
        let mut ballots = Ballots::new(classes, questions)?;
        for row in &rows {
            ballots.push(row);
        }
        let facts = VoteFacts {
            candidates: classes,
            voters: Voters::Teachers,
            ballots: u32::try_from(teachers).unwrap_or(u32::MAX),
            questions: u32::try_from(questions).unwrap_or(u32::MAX),
        };
        let mut ledger = ledger.open()?;
        let (plan, unit) = settings.plan(&facts, &mut ledger)?;
        let described = describe(&plan, &mut ledger)?;
        if settings.dry_run {
            return Ok(described.to_string());
        }
        let answered = plan.answer(&ballots, unit, &mut ledger)?;
        Ok(with_answers(described, &answered).to_string())
    })?)
}

/// Private records, of which the nearest to a question vote.
#[pyclass(name = "Nearest", module = "quell._native", frozen)]
struct PyNearest {
    records: Vec<f32>,
    width: usize,
    labels: Vec<u32>,
    classes: usize,
}

#[pymethods]
impl PyNearest {
    /// Copies the records. One whose label is no class is left out.
    #[new]
    fn new(features: &Bound<'_, PyAny>, labels: &Bound<'_, PyArray1<u32>>, classes: usize) -> PyResult<Self> {
        let (shape, values) = read_singles(features)?;
        let labels = labels.try_readonly()?;
        let labels = labels.as_array();
        let (&[rows, width], count) = (shape.as_slice(), labels.len()) else {
            return Err(Error::from(quell::Error::Sizes { name: "features" }).into());
        };
        if rows != count || width == 0 {
            return Err(Error::from(quell::Error::Sizes { name: "labels" }).into());
        }
        let known = |label: &&u32| (**label as usize) < classes;
        let kept = values.chunks_exact(width).zip(labels).filter(|(_, label)| known(label));
        let records: Vec<f32> = kept.flat_map(|(row, _)| row).copied().collect();
        let labels = labels.iter().filter(known).copied().collect();
        Ok(Self { records, width, labels, classes })
    }

    /// Asks the `neighbors` records nearest to each question, within samples at a rate.
    fn ask(
        &self,
        py: Python<'_>,
        ledger: &PyLedger,
        questions: &Bound<'_, PyAny>,
        neighbors: usize,
        rate: f64,
        settings: &str,
    ) -> PyResult<String> {
        let (shape, values) = read_singles(questions)?;
        if shape.len() != 2 || shape[1] != self.width {
            return Err(Error::from(quell::Error::Sizes { name: "features of the questions" }).into());
        }
        Ok(py.detach(|| -> Result<String> {
            let settings: Settings = serde_json::from_str(settings)?;
            let facts = VoteFacts {
                candidates: self.classes,
                voters: Voters::Nearest { rate: SamplingRate::new(rate)? },
                ballots: u32::try_from(neighbors).unwrap_or(u32::MAX),
                questions: u32::try_from(shape[0]).unwrap_or(u32::MAX),
            };
            let mut ledger = ledger.open()?;
            let (plan, unit) = settings.plan(&facts, &mut ledger)?;
            let described = describe(&plan, &mut ledger)?;
            if settings.dry_run {
                return Ok(described.to_string());
            }
            let records = (self.records.as_slice(), self.width);
            let mut voters =
                NearestVoters::new(records, self.labels.clone(), self.classes, neighbors, values)?;
            let answered = plan.answer_nearest(&mut voters, unit, &mut ledger)?;
            Ok(with_answers(described, &answered).to_string())
        })?)
    }
}
