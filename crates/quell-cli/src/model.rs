//! Where a model is: in the folder of a run, or in a file of its own.

use std::path::Path;

use anyhow::Result;
use quell::{
    Error,
    run::{Folder, Model},
};

use crate::refusal::Refusal;

/// A model by its file, or by the folder of its run.
pub(crate) fn open(path: &Path) -> Result<Model> {
    if path.is_dir() { Ok(of_run(path)?.1) } else { read(path) }
}

/// The model of a run, with its folder.
pub(crate) fn of_run(path: &Path) -> Result<(Folder, Model)> {
    let folder = Folder::open(path)?;
    let file = folder.file(Folder::MODEL);
    if !file.is_file() {
        let sentence = format!("the run in {} has no model yet", path.display());
        return Err(Refusal::new(sentence, format!("bring it to its end with `quell resume {}`", path.display())).into());
    }
    let model = read(&file)?;
    Ok((folder, model))
}

/// Whatever is wrong inside the file is said with its name.
fn read(path: &Path) -> Result<Model> {
    Model::open(path).map_err(|error| match error {
        error @ (Error::Absent { .. } | Error::Unreadable { .. } | Error::PublicNetwork { .. }) => error.into(),
        error => {
            let sentence = format!("{} is no model that can be read: {error}", path.display());
            Refusal::new(sentence, "name the folder of a run, or the model.safetensors that `quell train` left in it").into()
        }
    })
}
