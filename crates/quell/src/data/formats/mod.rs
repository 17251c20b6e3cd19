//! Readers, one for each file format. They share the input stream and the array type.

pub(super) mod array;
pub(super) mod calendar;
pub(super) mod cifar;
pub(super) mod csv;
pub(super) mod digits;
pub(super) mod error;
pub(super) mod folder;
pub(super) mod idx;
mod image;
pub(super) mod npy;
pub(super) mod numpy;
pub(super) mod parquet;
pub(super) mod stream;
pub(super) mod zipped;
