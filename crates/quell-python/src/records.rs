//! Records to train on, as arrays or tables in memory.

use numpy::{IxDyn, PyArrayDyn, PyArrayMethods as _, PyReadonlyArrayDyn, PyUntypedArrayMethods as _};
use pyo3::prelude::*;
use quell::data::{Examples, Records, Targets};

use crate::{
    data::PyTable,
    error::{Error, Result},
};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyExamples>()?;
    module.add_class::<PyRecords>()
}

/// Arrays as records: features, and the target of each record.
#[pyclass(name = "Examples", module = "quell._native", frozen)]
pub(crate) struct PyExamples {
    pub(crate) examples: Examples,
    has_users: bool,
}

/// The numbers of an array in the order of its records. This is the one copy of the records.
fn values<T: numpy::Element + Copy>(array: &PyReadonlyArrayDyn<'_, T>) -> Vec<T> {
    match array.as_slice() {
        Ok(slice) => slice.to_vec(),
        Err(_) => array.as_array().iter().copied().collect(),
    }
}

/// The shape of a record: that of the array without its first axis.
fn shape(shape: &[usize]) -> Result<(usize, Vec<usize>)> {
    match shape {
        [] => Err(Error::Other(
            "DataError",
            "the array has no axis, expected records along the first axis".into(),
        )),
        [records] => Ok((*records, vec![1])),
        [records, shape @ ..] => Ok((*records, shape.to_vec())),
    }
}

/// Features as bytes or numbers.
enum Features {
    Bytes(Vec<u8>),
    Numbers(Vec<f32>),
}

impl Features {
    fn read(array: &Bound<'_, PyAny>) -> Result<(Vec<usize>, usize, Self)> {
        if let Ok(array) = array.cast::<PyArrayDyn<u8>>() {
            let (records, shape) = shape(array.shape())?;
            return Ok((shape, records, Self::Bytes(values(&array.readonly()))));
        }
        let array = array
            .cast::<PyArrayDyn<f32>>()
            .map_err(|_| Error::Other("DataError", "the features are no array of float32 or uint8".into()))?;
        let (records, shape) = shape(array.shape())?;
        Ok((shape, records, Self::Numbers(values(&array.readonly()))))
    }

    fn with(self, shape: &[usize], targets: Targets) -> Result<Examples> {
        Ok(match self {
            Self::Bytes(values) => Examples::bytes(shape, values, u8::MAX, targets)?,
            Self::Numbers(values) => Examples::numbers(shape, values, targets)?,
        })
    }
}

#[pymethods]
impl PyExamples {
    /// Records with a class each: its place in `names`. A place beyond the list means that there is no class.
    #[staticmethod]
    fn classes(
        features: &Bound<'_, PyAny>,
        labels: PyReadonlyArrayDyn<'_, u32>,
        names: Vec<String>,
        users: Option<Vec<Option<Vec<u8>>>>,
    ) -> PyResult<Self> {
        Self::new(features, Targets::Classes { labels: values(&labels), names }, users)
    }

    /// Records with a number each. A number that is not finite means that there is none.
    #[staticmethod]
    fn numbers(
        features: &Bound<'_, PyAny>,
        targets: PyReadonlyArrayDyn<'_, f32>,
        users: Option<Vec<Option<Vec<u8>>>>,
    ) -> PyResult<Self> {
        Self::new(features, Targets::Numbers(values(&targets)), users)
    }

    /// Records without a target.
    #[staticmethod]
    fn unlabelled(features: &Bound<'_, PyAny>, users: Option<Vec<Option<Vec<u8>>>>) -> PyResult<Self> {
        let (shape, records, features) = Features::read(features)?;
        let examples = features.with(&shape, Targets::Numbers(vec![0.0; records]))?;
        Ok(Self { has_users: users.is_some(), examples: with_users(examples, users)? })
    }
}

impl PyExamples {
    fn new(
        features: &Bound<'_, PyAny>,
        targets: Targets,
        users: Option<Vec<Option<Vec<u8>>>>,
    ) -> PyResult<Self> {
        let (shape, _, features) = Features::read(features)?;
        let examples = features.with(&shape, targets)?;
        Ok(Self { has_users: users.is_some(), examples: with_users(examples, users)? })
    }
}

fn with_users(examples: Examples, users: Option<Vec<Option<Vec<u8>>>>) -> Result<Examples> {
    Ok(match users {
        Some(users) => examples.with_users(&users)?,
        None => examples,
    })
}

/// Records to train on, and public records to test on.
#[pyclass(name = "Records", module = "quell._native", frozen)]
pub(crate) struct PyRecords {
    pub(crate) records: Records,
    /// Whether the user of each record is given beside an array. In a table a schema says it.
    pub(crate) has_users: bool,
}

#[pymethods]
impl PyRecords {
    /// Arrays.
    #[staticmethod]
    #[pyo3(signature = (train, public_test = None))]
    fn of_examples(train: &PyExamples, public_test: Option<&PyExamples>) -> Self {
        let test = public_test.map(|test| test.examples.clone());
        Self { records: Records::of_examples(train.examples.clone(), test), has_users: train.has_users }
    }

    /// Tables.
    #[staticmethod]
    #[pyo3(signature = (train, public_test = None))]
    fn of_tables(train: &PyTable, public_test: Option<&PyTable>) -> Self {
        let test = public_test.map(|test| test.table.clone());
        Self { records: Records::of_tables(train.table.clone(), test), has_users: false }
    }
}

/// Numbers of each record, as an array with a row for each.
pub(crate) fn matrix<'py>(
    py: Python<'py>,
    rows: &[Vec<f32>],
    columns: usize,
) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
    let flat: Vec<f32> = rows.iter().flatten().copied().collect();
    numpy::PyArray1::from_vec(py, flat).reshape(IxDyn(&[rows.len(), columns]))
}
