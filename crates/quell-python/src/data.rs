//! Records from Python: tables of columns, and matrices of numbers.
//!
//! Every array is copied once on its way in. A computation reads the same records from its first step to its last,
//! so it owns them: a Python program may change its arrays while the computation runs.

use std::sync::Arc;

use numpy::{Element, PyReadonlyArray1, PyReadonlyArrayDyn};
use pyo3::{
    prelude::*,
    types::{PyBool, PyFloat, PyString},
};
use quell::data::{ColumnCells, Layout, Scalar, Schema, Table};
use serde_json::Value;

use crate::error::{Error, Result};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyTable>()
}

/// A table of records, and the schema that declares its columns. Clones share the records.
#[pyclass(name = "Table", module = "quell._native", frozen)]
pub(crate) struct PyTable {
    pub(crate) table: Table,
    pub(crate) schema: Option<Schema>,
}

#[pymethods]
impl PyTable {
    /// A table of columns in memory: the name, the kind and the chunks of each, and the units in a second of times.
    #[staticmethod]
    fn in_memory(columns: Vec<(String, String, u32, Vec<Bound<'_, PyAny>>)>) -> PyResult<Self> {
        let mut all = Vec::new();
        for (name, kind, per_second, chunks) in columns {
            all.push((name, cells(&kind, per_second, &chunks)?));
        }
        Ok(Self { table: Table::in_memory(all).map_err(Error::from)?, schema: None })
    }

    /// Opens a CSV or Parquet file. The layout is JSON, and so is the schema: an object, or the path of a file.
    #[staticmethod]
    fn open(py: Python<'_>, path: &str, layout: &str, schema: Option<&str>) -> PyResult<Self> {
        Ok(py.detach(|| -> Result<Self> {
            let schema = schema.map(read_schema).transpose()?;
            // What the caller gives goes before what the schema declares.
            let declared = schema.as_ref().map(|schema| serde_json::to_value(&schema.file)).transpose()?;
            let mut settings = declared.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
            if let (Some(settings), Value::Object(given)) =
                (settings.as_object_mut(), serde_json::from_str(layout)?)
            {
                settings.extend(given);
            }
            let layout: Layout = serde_json::from_value(settings)?;
            Ok(Self { table: Table::open_as(path, &layout)?, schema: None }.with(schema))
        })?)
    }

    /// The same records, read as a schema declares them.
    fn declared_by(&self, py: Python<'_>, schema: &str) -> PyResult<Self> {
        Ok(py.detach(|| -> Result<Self> {
            let table = Self { table: self.table.clone(), schema: None };
            Ok(table.with(Some(read_schema(schema)?)))
        })?)
    }

    /// The name and the kind of each column.
    #[getter]
    fn columns(&self) -> Vec<(String, &'static str)> {
        use quell::data::Kind;
        let kind = |kind| match kind {
            Kind::Number => "number",
            Kind::Text => "text",
            Kind::Boolean => "boolean",
            Kind::Undeclared => "undeclared",
            Kind::Unreadable => "unreadable",
        };
        self.table.columns().iter().map(|column| (column.name.clone(), kind(column.kind))).collect()
    }

    /// The schema as JSON, if there is one.
    #[getter]
    fn schema(&self) -> PyResult<Option<String>> {
        let json = |schema: &Schema| serde_json::to_string(schema).map_err(Error::from);
        Ok(self.schema.as_ref().map(json).transpose()?)
    }

    /// The key of a column as the table writes it.
    fn key(&self, column: &str, text: &str) -> PyResult<String> {
        Ok(self.table.key(column, text).map_err(Error::from)?)
    }
}

impl PyTable {
    fn with(self, schema: Option<Schema>) -> Self {
        match schema {
            Some(schema) => Self { table: self.table.declared_by(&schema), schema: Some(schema) },
            None => self,
        }
    }
}

/// Reads a schema: JSON that is an object, or a string with the path of a file.
pub(crate) fn read_schema(json: &str) -> Result<Schema> {
    match serde_json::from_str(json)? {
        Value::String(path) => Ok(Schema::read(path)?),
        settings => {
            let text = toml::to_string(&settings);
            let text =
                text.map_err(|error| Error::Other("DataError", format!("the schema is invalid: {error}")))?;
            Ok(Schema::parse(&text)?)
        }
    }
}

/// The cells of a column from chunks of arrays.
fn cells(kind: &str, per_second: u32, chunks: &[Bound<'_, PyAny>]) -> PyResult<ColumnCells> {
    Ok(match kind {
        "numbers" => ColumnCells::Numbers(numbers(chunks)?),
        "integers" => ColumnCells::Integers(values(chunks)?),
        "naturals" => ColumnCells::Naturals(values(chunks)?),
        "truths" => ColumnCells::Truths(values(chunks)?),
        "days" => ColumnCells::Days(values(chunks)?),
        "moments" => ColumnCells::Moments { units: values(chunks)?, per_second },
        "times" => ColumnCells::Times { units: values(chunks)?, per_second },
        "utf8" => ColumnCells::Texts(each(chunks, utf8)?),
        "views" => ColumnCells::Texts(each(chunks, views)?),
        "texts" => ColumnCells::Texts(each(chunks, |chunk, into| {
            chunk.try_iter()?.try_for_each(|cell| {
                into.push(text(&cell?));
                Ok(())
            })
        })?),
        "undeclared" => ColumnCells::Undeclared(each(chunks, |chunk, into| {
            chunk.try_iter()?.try_for_each(|cell| {
                into.push(scalar(&cell?));
                Ok(())
            })
        })?),
        "listed" => listed(chunks)?,
        "unreadable" => {
            let counts = each(chunks, |chunk, into| {
                into.push(chunk.extract::<usize>()?);
                Ok(())
            })?;
            ColumnCells::Unreadable(counts.iter().sum())
        }
        other => return Err(Error::Other("DataError", format!("a column has the kind {other:?}")).into()),
    })
}

/// Collects the cells of all chunks.
fn each<'py, T>(
    chunks: &[Bound<'py, PyAny>],
    mut read: impl FnMut(&Bound<'py, PyAny>, &mut Vec<T>) -> PyResult<()>,
) -> PyResult<Vec<T>> {
    let mut all = Vec::new();
    chunks.iter().try_for_each(|chunk| read(chunk, &mut all))?;
    Ok(all)
}

/// An array, and which of its cells are valid; without the second, all are.
type Chunk<'py, T> = (PyReadonlyArray1<'py, T>, Option<PyReadonlyArray1<'py, bool>>);

fn values<T: Element + Copy>(chunks: &[Bound<'_, PyAny>]) -> PyResult<Vec<Option<T>>> {
    each(chunks, |chunk, into| {
        let (values, valid): Chunk<'_, T> = chunk.extract()?;
        let valid = valid.as_ref().map(|valid| valid.as_array());
        let is_valid = |row: usize| valid.as_ref().is_none_or(|valid| valid.get(row) == Some(&true));
        into.extend(values.as_array().iter().enumerate().map(|(row, value)| is_valid(row).then_some(*value)));
        Ok(())
    })
}

/// Numbers of single or double precision; NaN where one is missing.
fn numbers(chunks: &[Bound<'_, PyAny>]) -> PyResult<Vec<f64>> {
    each(chunks, |chunk, into| {
        let (array, valid): (Bound<'_, PyAny>, Option<PyReadonlyArray1<'_, bool>>) = chunk.extract()?;
        let first = into.len();
        if let Ok(single) = array.extract::<PyReadonlyArray1<'_, f32>>() {
            into.extend(single.as_array().iter().map(|number| f64::from(*number)));
        } else {
            into.extend(array.extract::<PyReadonlyArray1<'_, f64>>()?.as_array().iter());
        }
        if let Some(valid) = valid {
            for (number, valid) in into[first..].iter_mut().zip(valid.as_array()) {
                *number = if *valid { *number } else { f64::NAN };
            }
        }
        Ok(())
    })
}

/// Texts of the Arrow formats `utf8` and `large_utf8`: where each begins and ends, and the bytes of all.
fn utf8(chunk: &Bound<'_, PyAny>, into: &mut Vec<Option<String>>) -> PyResult<()> {
    type Texts<'py> =
        (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, u8>, Option<PyReadonlyArray1<'py, bool>>);
    let (offsets, bytes, valid): Texts<'_> = chunk.extract()?;
    let (offsets, bytes) = (offsets.as_slice()?, bytes.as_slice()?);
    let valid = valid.as_ref().map(|valid| valid.as_array());
    for (row, pair) in offsets.windows(2).enumerate() {
        let is_valid = valid.as_ref().is_none_or(|valid| valid.get(row) == Some(&true));
        let range = usize::try_from(pair[0]).ok().zip(usize::try_from(pair[1]).ok());
        let text = range.filter(|_| is_valid).and_then(|(from, to)| bytes.get(from..to));
        into.push(text.and_then(owned));
    }
    Ok(())
}

/// Texts of the Arrow format `utf8_view`: 16 bytes for each, and the buffers of the long ones.
fn views(chunk: &Bound<'_, PyAny>, into: &mut Vec<Option<String>>) -> PyResult<()> {
    type Views<'py> =
        (PyReadonlyArray1<'py, u8>, Vec<PyReadonlyArray1<'py, u8>>, Option<PyReadonlyArray1<'py, bool>>);
    let (all, buffers, valid): Views<'_> = chunk.extract()?;
    let buffers =
        buffers.iter().map(|buffer| buffer.as_slice()).collect::<std::result::Result<Vec<_>, _>>()?;
    let valid = valid.as_ref().map(|valid| valid.as_array());
    for (row, view) in all.as_slice()?.chunks_exact(16).enumerate() {
        let is_valid = valid.as_ref().is_none_or(|valid| valid.get(row) == Some(&true));
        let number = |at: usize| {
            let bytes = view.get(at..at + 4)?.try_into().ok()?;
            usize::try_from(i32::from_le_bytes(bytes)).ok()
        };
        // Up to twelve bytes are in the view itself. Else it has a prefix, a buffer and a place in that buffer.
        let text = number(0).filter(|_| is_valid).and_then(|length| {
            if length <= 12 {
                return view.get(4..4 + length);
            }
            let from = number(12)?;
            buffers.get(number(8)?)?.get(from..from.checked_add(length)?)
        });
        into.push(text.and_then(owned));
    }
    Ok(())
}

/// A text of these bytes. Bytes that are no text are missing.
fn owned(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// Places in lists of texts, one list for each chunk. A place beyond the list is a missing cell.
fn listed(chunks: &[Bound<'_, PyAny>]) -> PyResult<ColumnCells> {
    let (mut places, mut texts): (Vec<u32>, Vec<Arc<str>>) = (Vec::new(), Vec::new());
    for chunk in chunks {
        let (found, list): (PyReadonlyArray1<'_, i64>, Vec<Option<String>>) = chunk.extract()?;
        // The place of each text of this chunk among all texts.
        let of: Vec<u32> = list
            .into_iter()
            .map(|one| {
                one.map_or(u32::MAX, |one| {
                    texts.push(one.into());
                    texts.len() as u32 - 1
                })
            })
            .collect();
        let place = |place: &i64| usize::try_from(*place).ok().and_then(|place| of.get(place)).copied();
        places.extend(found.as_array().iter().map(|one| place(one).unwrap_or(u32::MAX)));
    }
    Ok(ColumnCells::Listed { places, texts })
}

/// A cell of texts: a string, or a date or a time, which is read as its text.
fn text(cell: &Bound<'_, PyAny>) -> Option<String> {
    if let Ok(text) = cell.cast::<PyString>() {
        // A string with lone surrogates is no text.
        return text.to_str().ok().map(str::to_owned);
    }
    if cell.hasattr("isoformat").unwrap_or(false) {
        return cell.str().ok().and_then(|text| text.extract().ok()).filter(|text: &String| text != "NaT");
    }
    None
}

/// A cell of a column without a declared type. What is neither a number nor a text is missing.
fn scalar(cell: &Bound<'_, PyAny>) -> Option<Scalar> {
    if cell.is_none() {
        return None;
    }
    if let Ok(truth) = cell.cast::<PyBool>() {
        return Some(Scalar::Truth(truth.is_true()));
    }
    if let Some(text) = text(cell) {
        return Some(Scalar::Text(text));
    }
    if cell.is_instance_of::<PyString>() {
        return None;
    }
    if let Ok(number) = cell.cast::<PyFloat>() {
        return Some(Scalar::Number(number.value()));
    }
    if let Ok(truth) = cell.extract::<bool>() {
        return Some(Scalar::Truth(truth));
    }
    if let Ok(number) = cell.extract::<i64>() {
        return Some(Scalar::Integer(number));
    }
    cell.extract::<f64>().ok().map(Scalar::Number)
}

/// The numbers of an array, row after row.
pub(crate) enum Numbers {
    /// Bytes, such as pixels.
    Bytes(Vec<u8>),
    /// Numbers of single precision. A larger number is infinite.
    Singles(Vec<f32>),
}

/// Copies an array once, whatever its strides are. Returns its shape and its numbers.
pub(crate) fn read_array(array: &Bound<'_, PyAny>) -> Result<(Vec<usize>, Numbers)> {
    fn copied<T: Element + Copy, N>(
        array: &Bound<'_, PyAny>,
        convert: impl Fn(T) -> N,
    ) -> Option<(Vec<usize>, Vec<N>)> {
        let array = array.extract::<PyReadonlyArrayDyn<'_, T>>().ok()?;
        let view = array.as_array();
        Some((view.shape().to_vec(), view.iter().map(|number| convert(*number)).collect()))
    }
    let bytes = |(shape, numbers)| (shape, Numbers::Bytes(numbers));
    let singles = |(shape, numbers)| (shape, Numbers::Singles(numbers));
    copied(array, |number: u8| number)
        .map(bytes)
        .or_else(|| copied(array, |number: f32| number).map(singles))
        .or_else(|| copied(array, |number: f64| number as f32).map(singles))
        .ok_or_else(|| {
            let found = "an array is of another type, expected float32, float64 or uint8";
            Error::Other("DataError", found.into())
        })
}

/// Copies an array like [`read_array`], as numbers of single precision.
pub(crate) fn read_singles(array: &Bound<'_, PyAny>) -> Result<(Vec<usize>, Vec<f32>)> {
    let (shape, numbers) = read_array(array)?;
    Ok(match numbers {
        Numbers::Bytes(bytes) => (shape, bytes.into_iter().map(f32::from).collect()),
        Numbers::Singles(singles) => (shape, singles),
    })
}
