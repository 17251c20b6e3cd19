//! `quell export`: writes a model as an ONNX file, which other programs run.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use quell::run::Model;

use crate::print;

const EXAMPLES: &str = "\
Examples:
  quell export runs/census-1 --output census.onnx
  quell export model.safetensors --output model.onnx

The inputs of a model of a table are its columns, by name and in their own units. The outputs are prediction and scores,
as in `quell predict --scores`. The metadata holds columns, classes, bounds and the privacy guarantee. Oriented
gradients, dates and texts cannot be exported, nor models that are no networks.";

/// Write a model as an ONNX file, for other programs
///
/// This costs no ε: the file is made from the released model alone.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Folder of a run, or a model.safetensors file
    model: PathBuf,
    /// File to write
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    let bytes = Model::open(&flags.model)?.to_onnx()?;
    fs::write(&flags.output, bytes).with_context(|| format!("cannot write {}", flags.output.display()))?;
    print::status(&format!("wrote {}", flags.output.display()));
    Ok(())
}
