//! Recomputes the costs and the totals that the lines of a ledger state.

use std::collections::HashSet;

use quell_privacy::{
    Neighbors,
    ledger::{Charge, Line, State},
};

use crate::{
    chain::{Body, Row},
    finding::{Finding, Problem},
};

/// How far a recomputed ε may exceed the recorded ε, relative to the recorded ε.
///
/// Accountants stop when the bracket is a thousandth wide. The position of the answer inside the bracket may
/// differ between processors and versions.
const TOLERANCE: f64 = 2e-3;

/// Problems in the lines of a dataset, and notes.
pub(crate) fn findings(row: &Row, bodies: &[Body]) -> (Vec<Finding>, Vec<String>) {
    let dataset = &row.dataset;
    let mut findings = Vec::new();
    let mut overstated = 0;
    let mut previous: Option<(State, f64)> = None;
    let mut verified = HashSet::new();
    for (body, number) in bodies.iter().zip(0..) {
        let (state, spent) = match next(previous.take(), &body.line) {
            Ok(next) => next,
            Err(error) => {
                findings.push(Problem::Nonsense { cause: error.to_string() }.at(dataset, number));
                return (findings, Vec::new());
            }
        };
        if let Line::Charged(charge) = &body.line {
            match covers_plan(&mut verified, charge, state.terms().neighbors) {
                Ok(true) => {}
                Ok(false) => {
                    findings.push(Problem::Underpriced { what: charge.what.clone() }.at(dataset, number));
                }
                Err(error) => {
                    findings.push(Problem::Nonsense { cause: error.to_string() }.at(dataset, number));
                }
            }
        }
        let (found, cap) = (body.spent(), state.budget().cap());
        if spent > found * (1.0 + TOLERANCE) + f64::MIN_POSITIVE {
            findings.push(Problem::Understated { found, expected: spent }.at(dataset, number));
        } else if spent < found * (1.0 - TOLERANCE) {
            overstated += 1;
        }
        if found > cap {
            findings.push(Problem::Overspent { spent: found, cap }.at(dataset, number));
        }
        previous = Some((state, spent));
    }
    if let Some((state, _)) = &previous
        && state.budget().cap() != row.cap
    {
        let (found, expected) = (row.cap.to_string(), state.budget().cap().to_string());
        findings.push(Problem::Row { what: "the cap", found, expected }.of(dataset));
    }
    let notes = if overstated == 0 {
        Vec::new()
    } else {
        vec![format!(
            "dataset {dataset:?}: {overstated} lines were written with a larger ε than today's accountant finds"
        )]
    };
    (findings, notes)
}

/// Whether a charge is at least the cost of its plan.
///
/// Verified plans are cached: many charges share the same plan, and computing a cost is slow.
fn covers_plan(
    verified: &mut HashSet<String>,
    charge: &Charge,
    neighbors: Neighbors,
) -> Result<bool, quell_privacy::Error> {
    let key = serde_json::to_string(&(&charge.plan, &charge.cost)).unwrap_or_default();
    let covered = verified.contains(&key) || charge.cost.covers(&charge.plan.event, neighbors)?;
    if covered && !key.is_empty() {
        verified.insert(key);
    }
    Ok(covered)
}

/// State and ε after one more line.
///
/// Leases and confirmations do not change ε, so ε, which is expensive to compute, is computed only for other
/// lines.
fn next(previous: Option<(State, f64)>, line: &Line) -> Result<(State, f64), quell_privacy::Error> {
    let Some((mut state, spent)) = previous else {
        let state = State::new(std::slice::from_ref(line))?;
        let spent = state.spent().epsilon;
        return Ok((state, spent));
    };
    state.apply(line)?;
    let spent = match line {
        Line::Leased { .. } | Line::Confirmed { .. } => spent,
        Line::Opened(_) | Line::Charged(_) | Line::Raised { .. } => state.spent().epsilon,
    };
    Ok((state, spent))
}
