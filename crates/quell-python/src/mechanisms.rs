//! Mechanisms on values that Python hands over: one value, or one row of values, for each record.

use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use quell_privacy::{
    Neighbors,
    ledger::{Book, Ledger, Note, Paid, Receipt, Unit},
    mechanism::{
        Bounds, Mechanism, NoisyMax, RandomizedResponse, Rule, Selection, Sensitive, TotalScores, Votes,
    },
    units::{ClipNorm, Epsilon},
};
use serde::Deserialize;
use serde_json::json;

use crate::{
    error::{Error, Result},
    ledger::PyLedger,
    statistics::{check_positive, check_price},
};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(randomized_response, module)?)?;
    module.add_function(wrap_pyfunction!(noisy_max, module)?)?;
    module.add_function(wrap_pyfunction!(choose, module)?)
}

/// What a mechanism may cost, and the words for the ledger.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    epsilon: f64,
    one_record_per_user: bool,
    note: Note,
}

/// Opens a ledger whose unit is one record, and pays for a mechanism. `make` makes it for a share of ε.
fn pay<M: Mechanism>(
    ledger: &PyLedger,
    settings: &str,
    make: impl Fn(f64, Neighbors) -> Result<M>,
) -> Result<(Paid<M>, Receipt)> {
    let Settings { epsilon, one_record_per_user, note } = serde_json::from_str(settings)?;
    check_positive(epsilon)?;
    let mut ledger: Ledger<_> = ledger.open()?;
    let terms = ledger.state()?.terms().clone();
    if terms.unit == Unit::User && !one_record_per_user {
        return Err(quell::Error::Setting {
            name: "unit",
            found: "user, and there may be several values of one user".into(),
            expected: "example, or one_record_per_user=True if every user has only one value",
        }
        .into());
    }
    charge(&mut ledger, &note, epsilon, |share| make(share * epsilon, terms.neighbors))
}

fn charge<M: Mechanism, B: Book>(
    ledger: &mut Ledger<B>,
    note: &Note,
    epsilon: f64,
    make: impl Fn(f64) -> Result<M>,
) -> Result<(Paid<M>, Receipt)> {
    ledger.annotate(note);
    let mechanism = make(1.0)?;
    check_price(ledger, &mechanism, make, epsilon)?;
    let paid = ledger.charge(mechanism)?;
    let receipt = paid.receipt().clone();
    Ok((paid, receipt))
}

/// One answer for each record, true or random: the places of the answers, and the receipt as JSON.
#[pyfunction]
fn randomized_response<'py>(
    py: Python<'py>,
    ledger: &PyLedger,
    answers: &Bound<'py, PyArray1<u32>>,
    choices: u32,
    settings: &str,
) -> PyResult<(Bound<'py, PyArray1<u32>>, String)> {
    let answers = answers.try_readonly()?.as_array().to_vec();
    let (released, receipt) = py.detach(|| -> Result<_> {
        let (paid, receipt) = pay(ledger, settings, |epsilon, neighbors| {
            if neighbors == Neighbors::AddRemove {
                let found = "the ledger protects against adding or removing a record, expected a ledger with neighbors=\"replace\"";
                let hint = "the number of answers is the number of records, which only a ledger with neighbors=\"replace\" makes public";
                return Err(Error::Hinted("UnsupportedError", found.into(), hint.into()));
            }
            Ok(RandomizedResponse::for_epsilon(choices, Epsilon::new(epsilon)?)?)
        })?;
        Ok((paid.run(&Sensitive::new(answers))?, receipt))
    })?;
    Ok((PyArray1::from_vec(py, released), json!(receipt).to_string()))
}

/// The candidate with most ballots after noise, and the receipt as JSON. A record has one ballot.
#[pyfunction]
fn noisy_max(
    py: Python<'_>,
    ledger: &PyLedger,
    ballots: &Bound<'_, PyArray1<u32>>,
    candidates: usize,
    settings: &str,
) -> PyResult<(usize, String)> {
    let ballots = ballots.try_readonly()?;
    let votes = Votes::tally(candidates, ballots.as_array().iter().map(|ballot| *ballot as usize));
    Ok(py.detach(|| -> Result<_> {
        check_candidates(candidates)?;
        let (paid, receipt) = pay(ledger, settings, |epsilon, _| {
            Ok(NoisyMax { candidates, rule: Rule::PermuteAndFlip(Epsilon::new(epsilon)?) })
        })?;
        Ok((paid.run(&votes)?, json!(receipt).to_string()))
    })?)
}

/// The candidate with the highest total score, more likely than others, and the receipt as JSON.
///
/// `scores` has a row for each record and a column for each candidate. Scores are clamped to the bounds.
#[pyfunction]
fn choose(
    py: Python<'_>,
    ledger: &PyLedger,
    scores: &Bound<'_, PyArray2<f64>>,
    bounds: (f64, f64),
    permute_and_flip: bool,
    settings: &str,
) -> PyResult<(usize, String)> {
    let scores = scores.try_readonly()?;
    let view = scores.as_array();
    let (candidates, rows): (usize, Vec<Vec<f64>>) =
        (view.ncols(), view.outer_iter().map(|row| row.to_vec()).collect());
    Ok(py.detach(|| -> Result<_> {
        check_candidates(candidates)?;
        let bounds = Bounds::new(bounds.0, bounds.1)?;
        let mut scores = TotalScores::new(candidates, bounds, ledger.open()?.state()?.terms().neighbors);
        for row in &rows {
            scores.add(row);
        }
        let (paid, receipt) = pay(ledger, settings, |epsilon, _| {
            let (sensitivity, epsilon) = (ClipNorm::new(TotalScores::SENSITIVITY)?, Epsilon::new(epsilon)?);
            Ok(Selection { candidates, sensitivity, epsilon, permute_and_flip })
        })?;
        Ok((paid.run(&scores.utilities())?, json!(receipt).to_string()))
    })?)
}

fn check_candidates(candidates: usize) -> Result<()> {
    if candidates >= 2 {
        return Ok(());
    }
    let (name, found, expected) = ("candidates", candidates.to_string(), "at least 2");
    Err(quell::Error::Setting { name, found, expected }.into())
}
