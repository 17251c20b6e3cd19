//! Bounds on ε and δ of events, by every accountant.

use pyo3::prelude::*;
use quell_privacy::{
    Event, Neighbors,
    accounting::{Method, Pld},
    units::Delta,
};

use crate::error::{Error, Result};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(epsilon, module)?)
}

/// Reads a relation between neighbours.
pub(crate) fn neighbors(name: &str) -> Result<Neighbors> {
    Ok(serde_json::from_value(name.into())?)
}

/// ε of an event at δ: the lower end, the upper end, the theorem, and whether the upper end may be claimed.
#[pyfunction]
fn epsilon(
    py: Python<'_>,
    event: &str,
    neighbors: &str,
    delta: f64,
    accountant: &str,
) -> PyResult<(f64, f64, &'static str, bool)> {
    let answer = py.detach(|| -> Result<_> {
        let event: Event = serde_json::from_str(event)?;
        let method = Method::ALL.into_iter().find(|method| method.name() == accountant);
        let method = method.ok_or_else(|| {
            let names = Method::ALL.map(Method::name).join(", ");
            Error::Other("SettingError", format!("the accountant is {accountant:?}, expected one of {names}"))
        })?;
        Ok(method.epsilon_by(&Pld::default(), &event, self::neighbors(neighbors)?, Delta::new(delta)?)?)
    })?;
    Ok((answer.epsilon.lower, answer.epsilon.upper, answer.theorem, answer.claimable))
}
