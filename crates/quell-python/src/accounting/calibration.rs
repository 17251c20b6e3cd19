//! Calibration: the number of an event that just meets a target.

use std::sync::Mutex;

use pyo3::prelude::*;
use quell_privacy::{
    Event,
    accounting::{Calibration, Parameter, Target},
    units::{Delta, Epsilon, Probability},
};
use serde::Deserialize;

use super::{neighbors, parsed, refused};
use crate::error::{Error, Result};

/// Numbers of events that can be found.
///
/// Each has a name, whether larger values cost more, whether it is whole, where its search begins, and its
/// range.
const NUMBERS: [(&str, bool, bool, f64, f64, f64, &str); 15] = [
    ("noise_multiplier", false, false, 1.0, 1e-6, 1e12, "[1e-6, 1e12]"),
    ("deviation", false, false, 1.0, 1e-3, 1e9, "[1e-3, 1e9]"),
    ("scale", false, false, 1.0, 1e-3, 1e9, "[1e-3, 1e9]"),
    ("randomized", false, false, 1.0, 1e-15, 1.0, "[1e-15, 1]"),
    ("records", false, true, 1.0, 1.0, 9e15, "[1, 9e15]"),
    ("sensitivity", true, true, 1.0, 1.0, 5e5, "[1, 500000]"),
    ("choices", true, true, 2.0, 2.0, 4e9, "[2, 4e9]"),
    ("epsilon", true, false, 1.0, 1e-12, 1e6, "[1e-12, 1e6]"),
    ("delta", true, false, 0.999_999, 1e-300, 0.999_999, "[1e-300, 1)"),
    ("rho", true, false, 1.0, 1e-12, 1e6, "[1e-12, 1e6]"),
    ("rate", true, false, 0.01, 1e-15, 1.0, "[1e-15, 1]"),
    ("sampling_rate", true, false, 0.01, 1e-15, 1.0, "[1e-15, 1]"),
    ("batch", true, true, 1.0, 1.0, 9e15, "[1, 9e15]"),
    ("count", true, true, 100.0, 1.0, 9e15, "[1, 9e15]"),
    ("steps", true, true, 100.0, 1.0, 9e15, "[1, 9e15]"),
];

/// A target, as Python writes it.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Wanted {
    Epsilon { epsilon: Epsilon, delta: Delta },
    Gaussian { mu: f64, slack: Delta },
    Power { false_positive_rate: Probability, true_positive_rate: Probability },
}

fn target(text: &str) -> Result<Target> {
    Ok(match serde_json::from_str(text)? {
        Wanted::Epsilon { epsilon, delta } => Target::EpsilonDelta { epsilon, delta },
        Wanted::Gaussian { mu, slack } => {
            if !(mu > 0.0 && mu.is_finite()) {
                let range = "(0, inf)";
                return Err(quell_privacy::Error::OutOfRange { what: "mu", value: mu, range }.into());
            }
            Target::Gaussian { mu, slack }
        }
        Wanted::Power { false_positive_rate, true_positive_rate } => {
            Target::Power { false_positive_rate, true_positive_rate }
        }
    })
}

/// Searches for the value with which a Python function makes an event that meets the target.
///
/// `make` gets a value and returns the event as JSON. The result is the value, its event, and the bounds on
/// the cost of the event in the units of the target.
#[pyfunction]
#[pyo3(signature = (make, find, wanted, neighbors, least, largest))]
pub(super) fn calibrate(
    py: Python<'_>,
    make: Py<PyAny>,
    find: &str,
    wanted: &str,
    neighbors: &str,
    least: Option<f64>,
    largest: Option<f64>,
) -> PyResult<(f64, String, f64, f64)> {
    Ok(py.detach(|| -> Result<_> {
        let Some(&(name, costs, whole, start, low, high, range)) =
            NUMBERS.iter().find(|(name, ..)| *name == find)
        else {
            let names: Vec<&str> = NUMBERS.iter().map(|(name, ..)| *name).collect();
            let text = format!("find is {find:?}, expected one of {}", names.join(", "));
            return Err(Error::Other("SettingError", text));
        };
        let (least, largest) = (least.unwrap_or(low), largest.unwrap_or(high));
        if !(low..=high).contains(&least) || !(least..=high).contains(&largest) {
            let text = format!("{name} is searched from {least} to {largest}, expected a range in {range}");
            return Err(Error::Other("SettingError", text));
        }
        let parameter = Parameter { name, costs, whole, least, largest, range };
        let calibration = Calibration::new(target(wanted)?, self::neighbors(neighbors)?);
        // What the function raised, or what it returned that is no event.
        let failure: Mutex<Option<Error>> = Mutex::new(None);
        let event = |value: f64| {
            made(&make, value, whole).map_err(|error| {
                *failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
                stopped()
            })
        };
        let found = calibration.value(&parameter, start.clamp(least, largest), event);
        if let Some(error) = failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            return Err(error);
        }
        let value = found.map_err(refused)?;
        let event = made(&make, value, whole)?;
        let bound = calibration.judge(&event).map_err(refused)?;
        Ok((value, serde_json::to_string(&event)?, bound.lower, bound.upper))
    })?)
}

/// Ends a search in which the function of the caller failed. Its own error replaces this one.
fn stopped() -> quell_privacy::Error {
    quell_privacy::Error::Malformed { event: "the event".into(), because: "it could not be made" }
}

/// The event that the function makes of a value.
fn made(make: &Py<PyAny>, value: f64, whole: bool) -> Result<Event> {
    let text = Python::attach(|py| -> PyResult<String> {
        py.check_signals()?;
        let made = if whole { make.call1(py, (value as u64,))? } else { make.call1(py, (value,))? };
        made.extract(py)
    });
    parsed(&text?)
}

/// Bounds on the cost of an event, in the units of a target.
#[pyfunction]
pub(super) fn judge(py: Python<'_>, event: &str, wanted: &str, neighbors: &str) -> PyResult<(f64, f64)> {
    Ok(py.detach(|| -> Result<_> {
        let calibration = Calibration::new(target(wanted)?, self::neighbors(neighbors)?);
        let bound = calibration.judge(&parsed(event)?).map_err(refused)?;
        Ok((bound.lower, bound.upper))
    })?)
}
