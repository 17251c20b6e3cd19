//! What a report promises: this run first, then all releases from the dataset together.

use quell::run::PaymentRecord;
use quell_privacy::{
    Error, Event, Neighbors,
    accounting::{Pld, TradeOff},
    ledger::{Promise, Unit},
    number::format_exact,
    units::Probability,
};

use crate::facts::round_up;

/// What the numbers of a run cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Covers {
    /// Everything that the run released.
    Everything,
    /// The answers. The revealed cost of the votes is a second charge.
    AnswersOnly,
}

/// The false-positive rate at which an attack on the run is described.
const FALSE_POSITIVES: f64 = 0.01;

/// What a run released, and what protects it.
pub(crate) struct Released<'a> {
    /// The payment: ε and δ of the run.
    pub(crate) paid: &'a PaymentRecord,
    /// The privacy event of the whole run; `None` if only ε and δ are known.
    pub(crate) event: Option<&'a Event>,
    /// The privacy unit.
    pub(crate) unit: Unit,
    /// The neighbouring relation.
    pub(crate) neighbors: Neighbors,
    /// What ε and δ cover.
    pub(crate) covers: Covers,
}

/// The sentences of the promise, each with its leading words.
///
/// `statement` is the statement of the ledger after the run: it covers all releases from the dataset.
pub(crate) fn sentences(released: &Released<'_>, statement: &str) -> Result<Vec<(String, String)>, Error> {
    let all = split(statement).into_iter().filter(|(word, _)| word != "This plan alone");
    let own = if released.paid.receipt.non_private { Vec::new() } else { of_run(released)? };
    Ok(own.into_iter().chain(all).collect())
}

/// The largest true-positive rate of a membership test that sees the results of the run.
///
/// The event has exact noise. The noise that was drawn is rounded, and (1 + e^ε) times its distance from exact
/// noise is a part of δ: so the distance is less than δ. It moves the false positives by less than δ, which a
/// slope of at most 1/α turns into power, and the power by less than δ.
fn power(released: &Released<'_>) -> Result<f64, Error> {
    let promise = Promise { epsilon: released.paid.epsilon.upper, delta: released.paid.delta };
    let allowed = promise.power(FALSE_POSITIVES);
    let Some(event) = released.event else { return Ok(allowed) };
    match TradeOff::new(&Pld::default(), event, released.neighbors) {
        Ok(attack) => {
            let inexact = (1.0 + 1.0 / FALSE_POSITIVES) * released.paid.delta;
            let exact = attack.power(Probability::new(FALSE_POSITIVES)?).upper;
            Ok((exact + inexact).clamp(FALSE_POSITIVES, allowed))
        }
        Err(Error::Unsupported { .. }) => Ok(allowed),
        Err(other) => Err(other),
    }
}

/// The promise of the run alone.
fn of_run(released: &Released<'_>) -> Result<Vec<(String, String)>, Error> {
    let Released { paid, unit, neighbors, covers, .. } = released;
    let change = match neighbors {
        Neighbors::AddRemove => format!("when one {unit} is added or removed"),
        Neighbors::Replace => format!("when one {unit} is replaced by another"),
    };
    let what = match covers {
        Covers::Everything => "This covers everything that the run released, and nothing else.",
        Covers::AnswersOnly => {
            "This covers the answers. The cost of the votes was released, too, and is a second charge of the ledger."
        }
    };
    let (epsilon, delta) = (round_up(paid.epsilon.upper), format_exact(paid.delta));
    let (wrong, right) = (100.0 * FALSE_POSITIVES, 100.0 * power(released)?);
    Ok(vec![
        ("This run".into(), format!("ε ≤ {epsilon} at δ = {delta}, {change}. {what}")),
        (
            "Attack on this run".into(),
            format!(
                "at a false-positive rate of {} %, a membership test has a true-positive rate of at most {} %.",
                format_exact(wrong),
                round_up(right)
            ),
        ),
    ])
}

/// Splits a statement into lines, each with its leading words before a colon, if any.
fn split(statement: &str) -> Vec<(String, String)> {
    let lines = statement.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| match line.split_once(": ") {
            Some((word, rest)) if word.chars().count() <= 24 => (word.to_owned(), rest.to_owned()),
            _ => (String::new(), line.to_owned()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use quell_privacy::{Bound, ledger::Receipt, units::NoiseMultiplier};

    use super::*;

    fn paid(epsilon: f64) -> PaymentRecord {
        let receipt = Receipt::new("a".into(), 1, "0".into());
        PaymentRecord { receipt, epsilon: Bound { lower: 0.0, upper: epsilon }, delta: 1e-6 }
    }

    /// The promise of one release with pure differential privacy at this ε.
    fn written(paid: &PaymentRecord, statement: &str) -> Vec<(String, String)> {
        let released = Released {
            paid,
            event: Some(&Event::laplace(NoiseMultiplier::new(1.0 / paid.epsilon.upper).unwrap())),
            unit: Unit::Example,
            neighbors: Neighbors::AddRemove,
            covers: Covers::Everything,
        };
        sentences(&released, statement).unwrap()
    }

    #[test]
    fn a_statement_is_divided_at_the_words_before_a_colon() {
        let parts =
            split("Dataset \"a\": what was released.\nPromise: if one: two.\n\nNo word here at all.\n");
        let leading: Vec<&str> = parts.iter().map(|(word, _)| word.as_str()).collect();
        assert_eq!(leading, ["Dataset \"a\"", "Promise", ""]);
        assert_eq!(parts[1].1, "if one: two.");
    }

    #[test]
    fn the_promise_is_about_the_run_first_and_then_about_the_budget() {
        let parts = written(&paid(3.0), "Promise: all releases, ε ≤ 30.\nThis plan alone: ε ≤ 3.\n");
        let leading: Vec<&str> = parts.iter().map(|(word, _)| word.as_str()).collect();
        assert_eq!(leading, ["This run", "Attack on this run", "Promise"]);
        assert!(parts[0].1.starts_with("ε ≤ 3.000 at δ = 1e-6, when one example is added or removed."));
        // e³ · 0.01 + 10⁻⁶ = 0.20086
        assert!(parts[1].1.contains("at most 20.09 %"), "{}", parts[1].1);
    }

    #[test]
    fn a_run_with_noise_from_a_seed_promises_nothing() {
        let mut seeded = paid(3.0);
        seeded.receipt.non_private = true;
        assert!(written(&seeded, "NOTHING IS PROMISED: the noise came from a seed.").len() == 1);
    }
}
