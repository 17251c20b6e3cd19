//! Reads records to evaluate or predict, in the same way as the model's training records.

use std::path::Path;

use anyhow::Result;
use quell::{
    data::{self, Examples, Format, FormatError, NewPictures, Options, TableError},
    run::{LabelUse, Model},
};
use quell_privacy::ledger::Unit;

use crate::{flags::ledger::Dataset, refusal::Refusal};

/// Records with labels.
pub(crate) struct Labelled {
    pub(crate) examples: Examples,
    /// Who may see the records, as far as is known.
    pub(crate) access: Access,
    /// Whether the records are a share that was split off by their content.
    ///
    /// The number of such records is not public.
    pub(crate) is_split: bool,
    /// The ledger that pays for releases about the records, unless the user names another.
    pub(crate) dataset: Dataset,
}

/// Who may see records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everyone.
    Public,
    /// Nobody. The records come from the model's training data, which is private.
    Private,
    /// Unknown. Nothing declares the records public or private.
    Undeclared,
}

/// Reads records with labels from a file or a folder.
///
/// If the data has a test part, only that part is returned. Without a path, the test part of the embedded
/// digits is returned.
pub(crate) fn labelled(model: &Model, path: Option<&Path>) -> Result<Labelled> {
    let Some(path) = path else {
        return Ok(Labelled {
            examples: digits(model)?,
            access: Access::Public,
            is_split: true,
            dataset: Dataset::named("digits"),
        });
    };
    if let Some(columns) = &model.configuration.data.ratings {
        let is_own = is_training_data(model, path);
        let paid = is_own.then_some(&model.paid.receipt.dataset);
        return Ok(Labelled {
            examples: columns.open(path, model.classes.as_deref().unwrap_or_default())?,
            access: if is_own { Access::Private } else { Access::Undeclared },
            is_split: false,
            dataset: Dataset::of(paid, path).unwrap_or_else(|| Dataset::named("")),
        });
    }
    let test = model.configuration.data.schema.as_ref().and_then(|schema| schema.test.as_ref());
    let is_test = is_test_file(model, path);
    let is_own = !is_test && is_training_data(model, path);
    let mut options = options(model, is_own);
    // The split of the training data depends on its users.
    let source = &model.configuration.data;
    if source.unit == Unit::User && source.path.as_deref().is_some_and(|own| data::is_same(path, own)) {
        options.users.clone_from(&source.users);
    }
    let found = data::open(path, &options)?;
    let access = match (is_own, &found.test) {
        (true, Some(_)) if found.test_is_public => Access::Public,
        (true, _) => Access::Private,
        (false, _) if is_test && test.is_some_and(|test| test.public) => Access::Public,
        (false, _) if is_test => Access::Private,
        (false, _) => Access::Undeclared,
    };
    let examples = with_features(model, found.test.unwrap_or(found.train))?;
    if examples.classes() != model.classes.as_deref() {
        let named =
            |names: Option<&[String]>| names.map_or_else(|| "a number".into(), |names| names.join(", "));
        let sentence = format!(
            "the targets of {} are {}, expected those of the model: {}",
            path.display(),
            named(examples.classes()),
            named(model.classes.as_deref())
        );
        return Err(Refusal::new(sentence, "use data with the same label as the training data").into());
    }
    let paid = (is_own || is_test).then_some(&model.paid.receipt.dataset);
    let dataset = Dataset::of(paid, path).unwrap_or_else(|| Dataset::named(""));
    let is_split = is_own && test.is_some_and(|test| test.share.is_some());
    Ok(Labelled { examples, access, is_split, dataset })
}

/// Records to predict.
pub(crate) struct Unlabelled {
    pub(crate) examples: Examples,
    /// The file of each record, if the records are image files; empty otherwise.
    pub(crate) files: Vec<String>,
}

/// Reads records to predict. Tables and images need no label; other formats are read with their labels.
pub(crate) fn unlabelled(model: &Model, path: Option<&Path>) -> Result<Unlabelled> {
    let of = |examples| Unlabelled { examples, files: Vec::new() };
    let Some(path) = path else { return digits(model).map(of) };
    if let Some(pictures) = pictures(model, path)? {
        let scaled = match &model.configuration.data.scaling {
            Some(scaling) => pictures.examples.scaled(scaling)?,
            None => pictures.examples,
        };
        return Ok(Unlabelled { examples: with_features(model, scaled)?, files: pictures.names });
    }
    let examples = if let Some(schema) = &model.configuration.data.schema {
        data::unlabelled(path, schema).map_err(|error| expected_by_model(error, path))?
    } else {
        // The caller wants a prediction for each record, so a record that cannot be read is an error.
        let found = data::open(path, &Options { public: true, ..options(model, false) })?;
        found.test.unwrap_or(found.train)
    };
    with_features(model, examples).map(of)
}

/// Says of a missing column that the model reads it.
fn expected_by_model(error: quell::Error, path: &Path) -> anyhow::Error {
    let quell::Error::Table(TableError::NoColumn { name, near, .. }) = error else { return error.into() };
    let sentence = format!("{} has no column {name:?}, which the model reads", path.display());
    let hint = near.map_or_else(
        || "use a table with the columns of the training data".to_owned(),
        |near| format!("did you mean {near:?}? The columns have the names of the training data"),
    );
    Refusal::new(sentence, hint).into()
}

/// Reads image files, if the path is one, or a folder of them in which nothing else is recognised.
fn pictures(model: &Model, path: &Path) -> Result<Option<NewPictures>> {
    let Ok(shape) = <[usize; 3]>::try_from(model.shape.as_slice()) else { return Ok(None) };
    let is_other = match Format::find(path) {
        Ok(format) => format != Format::Folder,
        Err(quell::Error::Format(FormatError::SingleImage { .. })) => false,
        Err(quell::Error::Format(FormatError::Unrecognised { .. })) => !path.is_dir(),
        Err(_) => true,
    };
    // Folders named train and test are a dataset, of which the test part is predicted.
    let test = ["test", "val"].map(|name| path.join(name)).into_iter().find(|folder| folder.is_dir());
    let test = test.filter(|_| path.join("train").is_dir());
    let read = || data::pictures(test.as_deref().unwrap_or(path), shape);
    Ok(if is_other { None } else { Some(read()?) })
}

/// Returns the test part of the embedded digits, with the model's features.
fn digits(model: &Model) -> Result<Examples> {
    let source = &model.configuration.data;
    if source.path.is_some() {
        let sentence = "no data is given, and the model was not trained on the embedded digits";
        return Err(Refusal::new(sentence, "give a file or a folder after the model").into());
    }
    let digits = source.open()?;
    with_features(model, digits.test.unwrap_or(digits.train))
}

/// Returns the public facts about the model's training data.
fn options(model: &Model, is_own: bool) -> Options {
    let source = &model.configuration.data;
    let label = model.label_use();
    let mut schema = source.schema.as_ref().map(|schema| label.schema(schema));
    // How one file was divided into parts does not apply to another file.
    if let Some(schema) = schema.as_mut().filter(|_| !is_own) {
        schema.test = None;
    }
    let shape = model.shape.as_slice().try_into().ok();
    let (scaling, classes) = (source.scaling.clone(), model.classes.clone());
    Options {
        schema,
        scaling,
        classes,
        shape,
        public_test: is_own && source.public_test,
        ignore_label: label != LabelUse::Target,
        ..Options::default()
    }
}

/// Returns whether the model's schema names this file as its test part.
fn is_test_file(model: &Model, path: &Path) -> bool {
    let source = &model.configuration.data;
    let file = source.schema.as_ref().and_then(|schema| schema.test.as_ref()?.file.as_ref());
    match (file, source.path.as_deref()) {
        (Some(file), Some(data)) => data::is_same(path, &data.parent().unwrap_or(data).join(file)),
        _ => false,
    }
}

/// Returns whether this path shares records with the model's training data.
fn is_training_data(model: &Model, path: &Path) -> bool {
    model.configuration.data.has_records_of(path)
}

/// Computes the model's features for records of the same shape as its training records.
fn with_features(model: &Model, examples: Examples) -> Result<Examples> {
    if examples.shape() == model.shape {
        return Ok(model.features(examples)?);
    }
    let sides = |shape: &[usize]| shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(" × ");
    let sentence = format!(
        "an example of the data has the shape {}, expected {} as in the training data",
        sides(examples.shape()),
        sides(&model.shape)
    );
    Err(Refusal::new(sentence, "use data of the same shape").into())
}
