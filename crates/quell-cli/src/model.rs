//! Opens models: from the folder of a run, or from a file.

use std::path::Path;

use anyhow::Result;
use quell::{
    Error, network,
    run::{Folder, Model},
};

use crate::refusal::Refusal;

/// Opens a model by its file or by the folder of its run.
pub(crate) fn open(path: &Path) -> Result<Model> {
    if path.is_dir() { Ok(open_run(path)?.1) } else { read(path) }
}

/// Opens the model of a run; returns the folder too.
pub(crate) fn open_run(path: &Path) -> Result<(Folder, Model)> {
    let folder = Folder::open(path)?;
    let file = folder.file(Folder::MODEL);
    if !file.is_file() {
        let sentence = format!("the run in {} has no model yet", path.display());
        return Err(
            Refusal::new(sentence, format!("finish the run with `quell resume {}`", path.display())).into()
        );
    }
    let model = read(&file)?;
    Ok((folder, model))
}

/// Reads a model file; errors name the file.
fn read(path: &Path) -> Result<Model> {
    Model::open(path).map_err(|error| match error {
        error @ (Error::Absent { .. }
        | Error::Unreadable { .. }
        | Error::Network(network::Error::PublicNetwork { .. })) => error.into(),
        error => {
            let sentence = format!("{} is not a readable model: {error}", path.display());
            Refusal::new(sentence, "give the folder of a run, or its model.safetensors").into()
        }
    })
}
