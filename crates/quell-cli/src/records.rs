//! Records that a model is asked about, read as the model's own were.

use std::path::Path;

use anyhow::Result;
use quell::{
    data::{self, Examples, Options},
    run::Model,
};

use crate::refusal::Refusal;

/// Records with labels.
pub(crate) struct Labelled {
    pub(crate) examples: Examples,
    /// Whether they may be looked at, as far as is known.
    pub(crate) access: Access,
    /// Whether they are a share that was split off by what records hold: then nobody knows how many there are.
    pub(crate) is_split: bool,
    /// Name of their ledger, unless somebody says otherwise.
    pub(crate) dataset: String,
}

/// Who may look at records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everyone.
    Public,
    /// They come from the data that the model was trained on, which is private.
    Private,
    /// Nothing is said about them.
    Unsaid,
}

/// Records with labels, in a file or a folder; those to test on where there is such a part, and of the embedded digits if nothing is named.
pub(crate) fn labelled(model: &Model, path: Option<&Path>) -> Result<Labelled> {
    let Some(path) = path else {
        return Ok(Labelled { examples: digits(model)?, access: Access::Public, is_split: true, dataset: "digits".into() });
    };
    let test = model.configuration.data.schema.as_ref().and_then(|schema| schema.test.as_ref());
    let is_test = is_test_file(model, path);
    let own = !is_test && is_own(model, path);
    let found = data::open(path, &options(model, own))?;
    let access = match (own, &found.test) {
        (true, Some(_)) if found.test_is_public => Access::Public,
        (true, _) => Access::Private,
        (false, _) if is_test && !test.is_some_and(|test| test.public) => Access::Private,
        (false, _) => Access::Unsaid,
    };
    let examples = fitting(model, found.test.unwrap_or(found.train))?;
    if examples.classes() != model.classes.as_deref() {
        let named = |names: Option<&[String]>| names.map_or_else(|| "a number".into(), |names| names.join(", "));
        let sentence = format!(
            "the targets of {} are {}, expected those of the model: {}",
            path.display(),
            named(examples.classes()),
            named(model.classes.as_deref())
        );
        return Err(Refusal::new(sentence, "evaluate the model on data of the kind it was trained on").into());
    }
    let dataset = if own || is_test { model.paid.receipt.dataset.clone() } else { data::name_of(path).unwrap_or_default() };
    let is_split = own && test.is_some_and(|test| test.share.is_some());
    Ok(Labelled { examples, access, is_split, dataset })
}

/// Records to make predictions about. Tables need no label; other formats are read with theirs.
pub(crate) fn unlabelled(model: &Model, path: Option<&Path>) -> Result<Examples> {
    let Some(path) = path else { return digits(model) };
    let examples = if let Some(schema) = &model.configuration.data.schema {
        data::unlabelled(path, schema)?
    } else {
        // Whoever wants a prediction for each record is told where there is none to make.
        let found = data::open(path, &Options { public: true, ..options(model, false) })?;
        found.test.unwrap_or(found.train)
    };
    fitting(model, examples)
}

/// The part of the embedded digits that nothing is trained on, as the model saw the rest of them.
fn digits(model: &Model) -> Result<Examples> {
    let source = &model.configuration.data;
    if source.path.is_some() {
        let sentence = "no data is named, and the model was trained on other data than the embedded digits";
        return Err(Refusal::new(sentence, "name a file or a folder after the model").into());
    }
    let digits = source.open()?;
    fitting(model, digits.test.unwrap_or(digits.train))
}

/// What was public about the model's own data.
fn options(model: &Model, own: bool) -> Options {
    let source = &model.configuration.data;
    let mut schema = source.schema.clone();
    // How a file was divided into parts says nothing about another file.
    if let Some(schema) = schema.as_mut().filter(|_| !own) {
        schema.test = None;
    }
    let shape = model.shape.as_slice().try_into().ok();
    let (scaling, classes) = (source.scaling.clone(), model.classes.clone());
    Options { schema, scaling, classes, shape, public_test: own && source.public_test, ..Options::default() }
}

/// Whether this is the file that the schema of the model names as its test part.
fn is_test_file(model: &Model, path: &Path) -> bool {
    let source = &model.configuration.data;
    let file = source.schema.as_ref().and_then(|schema| schema.test.as_ref()?.file.as_ref());
    match (file, source.path.as_deref()) {
        (Some(file), Some(data)) => data::shares_records(path, &data.parent().unwrap_or(data).join(file)),
        _ => false,
    }
}

/// Whether these are the files that the model was trained on, or one of them.
fn is_own(model: &Model, path: &Path) -> bool {
    model.configuration.data.path.as_deref().is_some_and(|own| data::shares_records(path, own))
}

/// The features that the model was trained on, of records that are like its own.
fn fitting(model: &Model, examples: Examples) -> Result<Examples> {
    if examples.shape() == model.shape {
        return Ok(model.features(examples)?);
    }
    let sides = |shape: &[usize]| shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(" × ");
    let sentence = format!(
        "an example of the data is {}, expected {} as the model was trained on",
        sides(examples.shape()),
        sides(&model.shape)
    );
    Err(Refusal::new(sentence, "use data of the same kind and size").into())
}
