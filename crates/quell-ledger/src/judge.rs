//! Whether the lines of a ledger add up to what they say.

use std::collections::HashSet;

use quell_privacy::{
    Neighbors,
    ledger::{Charge, Line, State},
};

use crate::{
    chain::{Body, Row},
    finding::{Finding, Problem},
};

/// How far a recomputed ε may be above the one written down: accountants stop where the bracket is a thousandth wide, and where in it the answer lies may differ
/// between processors and versions.
const TOLERANCE: f64 = 2e-3;

/// What is wrong with the lines of a dataset, and remarks.
pub(crate) fn findings(row: &Row, bodies: &[Body]) -> (Vec<Finding>, Vec<String>) {
    let dataset = &row.dataset;
    let mut findings = Vec::new();
    let mut looser = 0;
    let mut known: Option<(State, f64)> = None;
    let mut believed = HashSet::new();
    for (body, number) in bodies.iter().zip(0..) {
        let (state, spent) = match next(known.take(), &body.line) {
            Ok(next) => next,
            Err(error) => {
                findings.push(Problem::Nonsense { cause: error.to_string() }.at(dataset, number));
                return (findings, Vec::new());
            }
        };
        if let Line::Charged(charge) = &body.line {
            match is_honest(&mut believed, charge, state.terms().neighbors) {
                Ok(true) => {}
                Ok(false) => findings.push(Problem::Underpriced { what: charge.what.clone() }.at(dataset, number)),
                Err(error) => findings.push(Problem::Nonsense { cause: error.to_string() }.at(dataset, number)),
            }
        }
        let (found, cap) = (body.spent(), state.budget().cap());
        if spent > found * (1.0 + TOLERANCE) + f64::MIN_POSITIVE {
            findings.push(Problem::Understated { found, expected: spent }.at(dataset, number));
        } else if spent < found * (1.0 - TOLERANCE) {
            looser += 1;
        }
        if found > cap {
            findings.push(Problem::Overspent { spent: found, cap }.at(dataset, number));
        }
        known = Some((state, spent));
    }
    if let Some((state, _)) = &known
        && state.budget().cap() != row.cap
    {
        let (found, expected) = (row.cap.to_string(), state.budget().cap().to_string());
        findings.push(Problem::Row { what: "the cap", found, expected }.of(dataset));
    }
    let notes = if looser == 0 {
        Vec::new()
    } else {
        vec![format!("dataset {dataset:?}: {looser} lines were written with a larger ε than today's accountant finds")]
    };
    (findings, notes)
}

/// Whether a charge is as dear as its plan. Many charges are for the same plan, and pricing one takes a while.
fn is_honest(believed: &mut HashSet<String>, charge: &Charge, neighbors: Neighbors) -> Result<bool, quell_privacy::Error> {
    let key = serde_json::to_string(&(&charge.plan, &charge.cost)).unwrap_or_default();
    let honest = believed.contains(&key) || charge.cost.covers(&charge.plan.event, neighbors)?;
    if honest && !key.is_empty() {
        believed.insert(key);
    }
    Ok(honest)
}

/// State and ε after one more line. Leases change neither, and ε is dear to compute.
fn next(known: Option<(State, f64)>, line: &Line) -> Result<(State, f64), quell_privacy::Error> {
    let Some((mut state, spent)) = known else {
        let state = State::new(std::slice::from_ref(line))?;
        let spent = state.spent().epsilon;
        return Ok((state, spent));
    };
    state.follow(line)?;
    let spent = match line {
        Line::Leased { .. } | Line::Confirmed { .. } => spent,
        Line::Opened(_) | Line::Charged(_) | Line::Raised { .. } => state.spent().epsilon,
    };
    Ok((state, spent))
}
