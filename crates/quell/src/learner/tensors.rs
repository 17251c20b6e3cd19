//! Reading and writing safetensors files.

use std::{borrow::Cow, path::Path};

use safetensors::{Dtype, SafeTensors, View};

use crate::{Error, file, network::Network};

/// Key of the settings in the metadata of a model file.
pub(crate) const CONFIGURATION: &str = "quell.configuration";
/// Key of the shape of an example in the metadata of a model file.
pub(crate) const SHAPE: &str = "quell.shape";

/// The largest file that is read, in bytes.
pub(crate) const LARGEST_FILE: u64 = 1 << 33;

/// Reads the bytes of a model file.
pub(crate) fn read_model(path: &Path) -> Result<Vec<u8>, Error> {
    // A device or a pipe has no size, and may never end.
    if !file::is_file(path)? {
        return Err(Error::saved("model", "not a file", "a model"));
    }
    file::read(path, LARGEST_FILE)
}

/// The tensors of a file, read by name. Numbers that are not finite are refused.
pub(crate) struct TensorFile<'b> {
    file: SafeTensors<'b>,
    /// What the file should hold, for errors.
    expected: &'static str,
}

impl<'b> TensorFile<'b> {
    /// Opens a model file.
    pub(crate) fn of_model(bytes: &'b [u8]) -> Result<Self, Error> {
        Self::open(bytes, CONTENTS_OF_MODEL)
    }

    /// Opens a checkpoint.
    pub(crate) fn of_checkpoint(bytes: &'b [u8]) -> Result<Self, Error> {
        Self::open(bytes, "the contents of a checkpoint of this run")
    }

    fn open(bytes: &'b [u8], expected: &'static str) -> Result<Self, Error> {
        let file = SafeTensors::deserialize(bytes);
        let file = file.map_err(|_| Error::saved("the file", "missing or damaged", expected))?;
        Ok(Self { file, expected })
    }

    /// The error for a part of the file that is missing or damaged.
    pub(crate) fn damaged(&self, part: &str) -> Error {
        Error::saved(part, "missing or damaged", self.expected)
    }

    /// The shape of a tensor; `None` if there is no such tensor.
    pub(crate) fn shape(&self, name: &str) -> Option<Vec<usize>> {
        self.file.tensor(name).ok().map(|tensor| tensor.shape().to_vec())
    }

    /// Whether there is a tensor of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.shape(name).is_some()
    }

    /// Numbers in single precision.
    pub(crate) fn single(&self, name: &str) -> Result<Vec<f32>, Error> {
        let values = numbers(&self.file, name, Dtype::F32, f32::from_le_bytes);
        values.filter(|values| values.iter().all(|x| x.is_finite())).ok_or_else(|| self.damaged(name))
    }

    /// Numbers in double precision.
    pub(crate) fn double(&self, name: &str) -> Result<Vec<f64>, Error> {
        let values = numbers(&self.file, name, Dtype::F64, f64::from_le_bytes);
        values.filter(|values| values.iter().all(|x| x.is_finite())).ok_or_else(|| self.damaged(name))
    }
}

const CONTENTS_OF_MODEL: &str = "the contents of a model of Quell";

/// Reads the numbers of a tensor; `None` if it is missing or of another type.
pub(crate) fn numbers<const BYTES: usize, N>(
    file: &SafeTensors<'_>,
    name: &str,
    kind: Dtype,
    read: impl Fn([u8; BYTES]) -> N,
) -> Option<Vec<N>> {
    let tensor = file.tensor(name).ok().filter(|tensor| tensor.dtype() == kind)?;
    Some(tensor.data().as_chunks::<BYTES>().0.iter().map(|bytes| read(*bytes)).collect())
}

/// The text stored under a name in the metadata.
pub(crate) fn text(bytes: &[u8], name: &str) -> Result<String, Error> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|_| damaged("the header"))?;
    header.metadata().as_ref().and_then(|metadata| metadata.get(name)).cloned().ok_or_else(|| damaged(name))
}

/// Reads the weights of a network. Other tensors of the file are ignored.
pub(crate) fn weights(bytes: &[u8], network: &Network) -> Result<Vec<f32>, Error> {
    let file = SafeTensors::deserialize(bytes).map_err(|_| damaged("the file"))?;
    // A forged description of a network cannot allocate more weights than the file holds.
    if network.parameters() > bytes.len() / 4 {
        return Err(damaged("weights"));
    }
    let mut weights = vec![0.0; network.parameters()];
    for (name, shape, range) in network.tensors() {
        let values = numbers(&file, &name, Dtype::F32, f32::from_le_bytes)
            .filter(|values| values.len() == range.len());
        let fits = file.tensor(&name).is_ok_and(|tensor| tensor.shape() == shape);
        weights[range].copy_from_slice(&values.filter(|_| fits).ok_or_else(|| damaged(&name))?);
    }
    Ok(weights)
}

/// The error for a part of a model file that is missing or damaged.
pub(crate) fn damaged(part: &str) -> Error {
    Error::saved(part, "missing or damaged", CONTENTS_OF_MODEL)
}

/// A tensor to be written to a file.
pub(crate) struct Tensor {
    kind: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Tensor {
    pub(crate) fn single(values: &[f32]) -> Self {
        Self::shaped(values, vec![values.len()])
    }

    pub(crate) fn double(values: &[f64]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { kind: Dtype::F64, shape: vec![values.len()], bytes }
    }

    pub(crate) fn shaped(values: &[f32], shape: Vec<usize>) -> Self {
        Self { kind: Dtype::F32, shape, bytes: values.iter().flat_map(|value| value.to_le_bytes()).collect() }
    }
}

impl View for Tensor {
    fn dtype(&self) -> Dtype {
        self.kind
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }
    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}
