//! Every layer against its laws, against a naive version of itself in double precision, and against PyTorch.
#![allow(missing_docs, clippy::unwrap_used)]

mod cases;
mod derivatives;
mod edges;
mod golden;
mod laws;
mod lots;
mod models;
mod networks;
mod ran;
mod recipes;
mod reference;
