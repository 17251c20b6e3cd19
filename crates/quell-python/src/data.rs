//! Tables in memory.

use std::sync::Arc;

use pyo3::prelude::*;
use quell::data::{ColumnCells, Table};

use crate::error::{Error, Result};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTable>()
}

/// A table.
#[pyclass(name = "Table", module = "quell._native", frozen)]
pub(crate) struct PyTable(Arc<Table>);

impl PyTable {
    pub(crate) fn shared(&self) -> Arc<Table> {
        Arc::clone(&self.0)
    }
}

/// The cells of a column.
#[derive(FromPyObject)]
enum Cells {
    Numbers(Vec<f64>),
    Texts(Vec<Option<String>>),
}

#[pymethods]
impl PyTable {
    /// Columns by their names.
    #[staticmethod]
    fn of_columns(columns: Vec<(String, Cells)>) -> PyResult<Self> {
        let columns = columns.into_iter().map(|(name, cells)| {
            let cells = match cells {
                Cells::Numbers(cells) => ColumnCells::Numbers(cells),
                Cells::Texts(cells) => ColumnCells::Texts(cells),
            };
            (name, cells)
        });
        let table = || -> Result<Table> { Ok(Table::in_memory(columns.collect()).map_err(Error::from)?) };
        Ok(Self(Arc::new(table()?)))
    }
}
