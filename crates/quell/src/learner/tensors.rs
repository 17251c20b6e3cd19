//! Reading and writing the tensors of safetensors files.

use std::borrow::Cow;

use safetensors::{Dtype, SafeTensors, View};

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
