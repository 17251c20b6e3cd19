//! The native module of the Python package `quell`: `quell._native`.
//!
//! The package in `python/quell` is what people import. What a guarantee rests on is checked here: settings cross the
//! border as JSON and are read by the types of the library, records cross it as arrays. Long work releases the
//! interpreter.

// Functions that Python calls get their arguments as values.
#![expect(clippy::needless_pass_by_value, reason = "pyo3 extracts arguments as values")]

mod accounting;
mod columns;
mod data;
mod descent;
mod error;
mod ledger;
mod mechanisms;
mod model;
mod process;
mod records;
mod statistics;
mod training;
mod votes;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    accounting::register(module)?;
    columns::register(module)?;
    data::register(module)?;
    descent::register(module)?;
    ledger::register(module)?;
    mechanisms::register(module)?;
    model::register(module)?;
    records::register(module)?;
    statistics::register(module)?;
    training::register(module)?;
    votes::register(module)
}
