//! Events, and bounds on what they cost, by every accountant.

mod calibration;
mod trade_off;

use pyo3::prelude::*;
use quell_privacy::{
    Event, Neighbors,
    accounting::{Method, Pld, Renyi, best_by, best_delta_by, closed},
    event::Record,
    number::{Toward, format_rounded},
    units::{Delta, Epsilon, Order},
};

use crate::error::{Error, Result};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_event, module)?)?;
    module.add_function(wrap_pyfunction!(event_record, module)?)?;
    module.add_function(wrap_pyfunction!(accountants, module)?)?;
    module.add_function(wrap_pyfunction!(epsilon, module)?)?;
    module.add_function(wrap_pyfunction!(delta, module)?)?;
    module.add_function(wrap_pyfunction!(group_epsilon, module)?)?;
    module.add_function(wrap_pyfunction!(renyi_divergences, module)?)?;
    module.add_function(wrap_pyfunction!(gaussian_noise, module)?)?;
    module.add_function(wrap_pyfunction!(rounded_text, module)?)?;
    module.add_function(wrap_pyfunction!(calibration::calibrate, module)?)?;
    module.add_function(wrap_pyfunction!(calibration::judge, module)?)?;
    module.add_class::<trade_off::PyTradeOff>()
}

/// Reads a relation between neighbours.
pub(crate) fn neighbors(name: &str) -> Result<Neighbors> {
    serde_json::from_value(name.into()).map_err(|_| {
        let found = format!("neighbors is {name:?}, expected \"add_remove\" or \"replace\"");
        Error::Other("SettingError", found)
    })
}

/// Reads an event, or a record of one, which is recognised by its version.
fn parsed(text: &str) -> Result<Event> {
    // Where an error is in the text helps nobody who wrote no text.
    let refused = |error: serde_json::Error| {
        let text = error.to_string();
        let said = text.split(" at line ").next().unwrap_or_default();
        Error::Other("SettingError", said.to_owned())
    };
    let value: serde_json::Value = serde_json::from_str(text).map_err(refused)?;
    // From the text again: a value does not tell a field that is given twice.
    Ok(if value.get("version").is_some() {
        serde_json::from_str::<Record>(text).map_err(refused)?.event
    } else {
        serde_json::from_str(text).map_err(refused)?
    })
}

/// The PLD accountant with a precision.
fn precision(tightness: Option<f64>) -> Result<Pld> {
    let Some(relative) = tightness else { return Ok(Pld::default()) };
    if !(1e-9..=0.5).contains(&relative) {
        let range = "[1e-9, 0.5]";
        return Err(quell_privacy::Error::OutOfRange { what: "tightness", value: relative, range }.into());
    }
    // The default has the same ratio of absolute and relative precision.
    Ok(Pld { relative, absolute: 0.1 * relative, ..Pld::default() })
}

/// Finds an accountant by its name.
fn method(name: &str) -> Result<Method> {
    Method::ALL.into_iter().find(|method| method.name() == name).ok_or_else(|| {
        let names: Vec<String> = Method::ALL.iter().map(|method| format!("{:?}", method.name())).collect();
        Error::Other(
            "SettingError",
            format!("accountant is {name:?}, expected \"best\" or one of {}", names.join(", ")),
        )
    })
}

/// Says what helps where no theorem covers an event.
pub(crate) fn refused(error: quell_privacy::Error) -> Error {
    let hint = match &error {
        quell_privacy::Error::Unsupported { because, .. } if because.contains("use replace") => {
            "pass neighbors=\"replace\""
        }
        quell_privacy::Error::Unsupported { because, .. } if because.contains("use the Rényi accountant") => {
            "leave out accountant, or pass accountant=\"rdp\""
        }
        quell_privacy::Error::Unsupported { .. } => {
            "if a guarantee of the release is known, describe the release as Pure, Approximate, ZeroConcentrated or Renyi"
        }
        quell_privacy::Error::Unreachable { .. } => "raise the target, or change one of the fixed numbers",
        quell_privacy::Error::Malformed { .. } => "the message says which number of the event does not fit",
        _ => return error.into(),
    };
    Error::Privacy(error, hint)
}

/// Reads an event, or a record of one, and writes it as a ledger stores it.
#[pyfunction]
fn read_event(text: &str) -> PyResult<String> {
    Ok(parsed(text).and_then(|event| Ok(serde_json::to_string(&event)?))?)
}

/// Reads an event, and writes its record: the event with the version of the format.
#[pyfunction]
fn event_record(text: &str) -> PyResult<String> {
    Ok(parsed(text).and_then(|event| Ok(serde_json::to_string(&Record::from(event))?))?)
}

/// Names and theorems of all accountants.
#[pyfunction]
fn accountants() -> Vec<(&'static str, &'static str)> {
    Method::ALL.map(|method| (method.name(), method.theorem())).to_vec()
}

/// Name of the accountant, lower end, upper end, theorem, and whether the upper end may be claimed.
type Answer = (&'static str, f64, f64, &'static str, bool);

/// ε of an event at δ, by one accountant or by the best.
#[pyfunction]
fn epsilon(
    py: Python<'_>,
    event: &str,
    neighbors: &str,
    delta: f64,
    accountant: Option<&str>,
    tightness: Option<f64>,
) -> PyResult<Answer> {
    Ok(py.detach(|| -> Result<Answer> {
        let (event, neighbors, delta) = (parsed(event)?, self::neighbors(neighbors)?, Delta::new(delta)?);
        let pld = precision(tightness)?;
        let (method, answer) = match accountant.map(method).transpose()? {
            None => best_by(&pld, &event, neighbors, delta).map_err(refused)?,
            Some(method) => (method, method.epsilon_by(&pld, &event, neighbors, delta).map_err(refused)?),
        };
        let bound = answer.epsilon;
        Ok((method.name(), bound.lower, bound.upper, answer.theorem, answer.claimable))
    })?)
}

/// δ of an event at ε, by one accountant or by the best.
#[pyfunction]
fn delta(
    py: Python<'_>,
    event: &str,
    neighbors: &str,
    epsilon: f64,
    accountant: Option<&str>,
    tightness: Option<f64>,
) -> PyResult<Answer> {
    Ok(py.detach(|| -> Result<Answer> {
        let (event, neighbors) = (parsed(event)?, self::neighbors(neighbors)?);
        let (epsilon, pld) = (Epsilon::new(epsilon)?, precision(tightness)?);
        let (method, answer) = match accountant.map(method).transpose()? {
            None => best_delta_by(&pld, &event, neighbors, epsilon).map_err(refused)?,
            Some(method) => (method, method.delta_by(&pld, &event, neighbors, epsilon).map_err(refused)?),
        };
        let bound = answer.delta;
        Ok((method.name(), bound.lower, bound.upper, answer.theorem, answer.claimable))
    })?)
}

/// An upper bound on ε for groups of records.
#[pyfunction]
fn group_epsilon(
    py: Python<'_>,
    event: &str,
    neighbors: &str,
    delta: f64,
    size: u32,
    tightness: Option<f64>,
) -> PyResult<f64> {
    Ok(py.detach(|| -> Result<f64> {
        let (event, neighbors) = (parsed(event)?, self::neighbors(neighbors)?);
        closed::group_epsilon(&precision(tightness)?, &event, neighbors, Delta::new(delta)?, size)
            .map_err(refused)
    })?)
}

/// Upper bounds on the Rényi divergences of an event at several orders.
#[pyfunction]
fn renyi_divergences(py: Python<'_>, event: &str, neighbors: &str, orders: Vec<f64>) -> PyResult<Vec<f64>> {
    Ok(py.detach(|| -> Result<Vec<f64>> {
        let renyi = Renyi::new(&parsed(event)?, self::neighbors(neighbors)?).map_err(refused)?;
        orders.into_iter().map(|order| Ok(renyi.divergence(Order::new(order)?))).collect()
    })?)
}

/// The least σ over the sensitivity for (ε, δ), exact or by the textbook.
#[pyfunction]
fn gaussian_noise(epsilon: f64, delta: f64, textbook: bool) -> PyResult<f64> {
    let find = || -> Result<f64> {
        let (epsilon, delta) = (Epsilon::new(epsilon)?, Delta::new(delta)?);
        let found = if textbook {
            closed::classic_gaussian_sigma(epsilon, delta)
        } else {
            closed::gaussian_sigma(epsilon, delta)
        };
        Ok(found.map_err(refused)?.get())
    };
    Ok(find()?)
}

/// A number in decimal, rounded up or down.
#[pyfunction]
fn rounded_text(value: f64, digits: usize, up: bool) -> String {
    format_rounded(value, digits.clamp(1, 17), if up { Toward::Up } else { Toward::Down })
}
