//! Trained models: predictions, measures, and what paid for them.

use std::path::PathBuf;

use numpy::{PyArray1, PyArrayDyn};
use pyo3::{prelude::*, types::PyBytes};
use quell::{
    data::{self, Examples},
    learner::Evaluation,
    run::{Model, Prediction},
};
use quell_privacy::number::{Toward, format_exact, format_rounded};
use serde_json::json;

use crate::{
    data::PyTable,
    error::{Error, Result},
    records::{PyExamples, matrix},
};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyModel>()
}

/// A trained model. It is public: it was paid for.
#[pyclass(name = "Model", module = "quell._native", frozen)]
pub(crate) struct PyModel(Model);

/// Records to predict or to measure: arrays, or a table.
#[derive(FromPyObject)]
enum Asked<'py> {
    Examples(PyRef<'py, PyExamples>),
    Table(PyRef<'py, PyTable>),
}

impl PyModel {
    pub(crate) fn new(model: Model) -> Self {
        Self(model)
    }

    /// The features of records, as the model was trained on them.
    fn examples(&self, asked: &Asked<'_>) -> Result<Examples> {
        let source = &self.0.configuration.data;
        let examples = match (asked, &source.schema) {
            (Asked::Examples(examples), None) => match &source.scaling {
                Some(scaling) => examples.examples.clone().scaled(scaling)?,
                None => examples.examples.clone(),
            },
            (Asked::Table(table), Some(schema)) => data::unlabelled_in(&table.table, schema)?,
            (Asked::Examples(_), Some(_)) => return Err(mismatch("an array", "a table")),
            (Asked::Table(_), None) => return Err(mismatch("a table", "an array")),
        };
        if examples.shape() != self.0.shape {
            let (found, expected) = (examples.shape(), &self.0.shape);
            let message = format!("a record has the shape {found:?}, expected {expected:?} as in training");
            return Err(Error::Other("DataError", message));
        }
        Ok(self.0.features(examples)?)
    }
}

fn mismatch(found: &str, expected: &str) -> Error {
    Error::Other("DataError", format!("the records are {found}, and the model was trained on {expected}"))
}

#[pymethods]
impl PyModel {
    /// Opens a model by its file, or by the folder of its run.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(Self(py.detach(|| Model::open(&path)).map_err(Error::from)?))
    }

    /// Reads a model from the bytes of its file.
    #[staticmethod]
    fn restore(bytes: &[u8]) -> PyResult<Self> {
        Ok(Self(Model::restore(bytes).map_err(Error::from)?))
    }

    /// The bytes of a model file.
    fn save<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.save().map_err(Error::from)?))
    }

    /// The bytes of an ONNX file.
    fn onnx<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.to_onnx().map_err(Error::from)?))
    }

    /// The names of the classes; none for a model that predicts numbers.
    #[getter]
    fn classes(&self) -> Option<Vec<String>> {
        self.0.classes.clone()
    }

    /// The shape of a record.
    #[getter]
    fn shape(&self) -> Vec<usize> {
        self.0.shape.clone()
    }

    /// All weights, in the order of the layers.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, self.0.predictor.weights())
    }

    /// Settings, payment and promise, as JSON.
    fn about(&self) -> PyResult<String> {
        let Model { configuration, paid, statement, .. } = &self.0;
        let (epsilon, delta) = (format_rounded(paid.epsilon.upper, 4, Toward::Up), format_exact(paid.delta));
        let about = json!({
            "title": configuration.subject(),
            "configuration": configuration,
            "epsilon": paid.epsilon.upper,
            "delta": paid.delta,
            "claim": format!("ε ≤ {epsilon} at δ = {delta}"),
            "receipt": paid.receipt,
            "statement": statement,
            "learned": self.0.learned(),
            "curves": self.0.curves().map_err(Error::from)?,
            "columns": self.0.predictor.columns(),
        });
        Ok(about.to_string())
    }

    /// The place of the predicted class of each record, or its cluster; -1 where there is no prediction.
    fn predict_places<'py>(&self, py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let examples = self.examples(&asked)?;
        let predicted = py.detach(|| self.0.predict_from(&examples));
        let classes = self.0.classes.as_deref().unwrap_or_default();
        let place = |prediction: Option<Prediction>| match prediction {
            Some(Prediction::Class(name)) => {
                classes.iter().position(|class| *class == name).map_or(-1, |place| place as i64)
            }
            // Clusters are numbered from 1.
            Some(Prediction::Cluster(number)) => i64::from(number) - 1,
            _ => -1,
        };
        Ok(PyArray1::from_vec(py, predicted.into_iter().map(place).collect()))
    }

    /// The predicted number of each record, in the units of the target; NaN where there is none.
    fn predict_numbers<'py>(
        &self,
        py: Python<'py>,
        asked: Asked<'py>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let examples = self.examples(&asked)?;
        let predicted = py.detach(|| self.0.predict_from(&examples));
        let number = |prediction: Option<Prediction>| match prediction {
            Some(Prediction::Number(number)) => number,
            _ => f64::NAN,
        };
        Ok(PyArray1::from_vec(py, predicted.into_iter().map(number).collect()))
    }

    /// The probability of each class, the coordinates, or the squared distance to each centre.
    fn scores<'py>(&self, py: Python<'py>, asked: Asked<'py>) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let examples = self.examples(&asked)?;
        let scores = py.detach(|| self.0.predictor.scores(&examples));
        let columns = scores.first().map_or(0, Vec::len);
        matrix(py, &scores, columns)
    }

    /// Measures of the model on records with targets, as JSON. They are exact, not private.
    fn evaluate(&self, py: Python<'_>, examples: &PyExamples) -> PyResult<String> {
        let found = py.detach(|| -> Result<Evaluation> {
            Ok(self.0.evaluate(&self.0.features(examples.examples.clone())?))
        })?;
        Ok(serde_json::to_string(&found).map_err(Error::from)?)
    }
}
