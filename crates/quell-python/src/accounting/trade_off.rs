//! The power of attacks on an event.

use pyo3::prelude::*;
use quell_privacy::{
    accounting::TradeOff,
    units::{Delta, Probability},
};

use super::{neighbors, parsed, precision, refused};
use crate::error::Result;

/// The trade-off function of an event, composed once for all questions.
#[pyclass(name = "TradeOff", module = "quell._native", frozen)]
pub(super) struct PyTradeOff(TradeOff);

#[pymethods]
impl PyTradeOff {
    #[new]
    fn new(py: Python<'_>, event: &str, neighbors: &str, tightness: Option<f64>) -> PyResult<Self> {
        Ok(py.detach(|| -> Result<_> {
            let (event, neighbors) = (parsed(event)?, self::neighbors(neighbors)?);
            Ok(Self(TradeOff::new(&precision(tightness)?, &event, neighbors).map_err(refused)?))
        })?)
    }

    /// Bounds on the true-positive rate of the best test at each false-positive rate.
    fn powers(&self, py: Python<'_>, false_positive_rates: Vec<f64>) -> PyResult<Vec<(f64, f64)>> {
        Ok(py.detach(|| -> Result<_> {
            let power = |rate: f64| -> Result<(f64, f64)> {
                let power = self.0.power(Probability::new(rate)?);
                Ok((power.lower, power.upper))
            };
            false_positive_rates.into_iter().map(power).collect()
        })?)
    }

    /// Bounds on the least μ of Gaussian differential privacy, up to a slack.
    fn gaussian(&self, py: Python<'_>, slack: f64) -> PyResult<(f64, f64)> {
        Ok(py.detach(|| -> Result<_> {
            let bound = self.0.gaussian(Delta::new(slack)?).map_err(refused)?;
            Ok((bound.lower, bound.upper))
        })?)
    }
}
