//! Checks that model, method and data fit to each other.

use super::{Algorithm, Columns, Family, Recipe};
use crate::{
    Error, Input,
    data::Examples,
    learner::{Subject, method::check_targets},
};

/// The most steps, far beyond any use.
const MOST_STEPS: u64 = 1 << 32;

/// Checks a number of steps.
pub(super) fn check_step_count(steps: u64) -> Result<(), Error> {
    if (1..=MOST_STEPS).contains(&steps) {
        return Ok(());
    }
    Err(Error::Setting { name: "steps", found: steps.to_string(), expected: "a number in [1, 2^32]" })
}

/// Checks that model, method and data fit to each other. Returns the public number of records.
pub(super) fn checked_records(recipe: &Recipe, family: Family, subject: &Subject<'_>) -> Result<u64, Error> {
    subject.check_schema()?;
    let classes = subject.facts.classes;
    let misfit = |name, found: &str, expected| Error::Setting { name, found: found.into(), expected };
    if !family.is_additive() && family.classifies() != classes.is_some() {
        let (found, expected) = if classes.is_some() {
            ("one for numbers, and the targets are classes", "additive, logistic or svm")
        } else {
            ("one for classes, and the targets are numbers", "additive, linear, ridge, poisson or quantile")
        };
        return Err(misfit("model", &format!("{}, {found}", family.name()), expected));
    }
    if recipe.quantile.is_some() && family != Family::Quantile {
        return Err(misfit("quantile", "given", "none, except for quantile regression"));
    }
    if (recipe.trees.is_some() || recipe.tree_seed.is_some()) && family != Family::Forest {
        return Err(misfit("trees", "given", "none, except for a forest"));
    }
    let counts_from_zero = subject.schema.is_none_or(|schema| {
        schema.label.as_ref().and_then(|label| label.bounds).is_none_or(|[low, _]| low == 0.0)
    });
    if family == Family::Poisson && !counts_from_zero {
        let found = "poisson, and the bounds of the target do not begin at 0";
        return Err(misfit("model", found, "bounds from 0 to the largest count"));
    }
    for (name, is_given) in [
        ("steps", recipe.steps.is_some()),
        ("learning_rate", recipe.learning_rate.is_some()),
        ("regularization", recipe.regularization.is_some()),
        ("sampling_rate", recipe.sampling_rate.is_some()),
        ("radius", recipe.radius.is_some()),
        ("waves", recipe.waves.is_some()),
        ("trees", recipe.trees.is_some() || recipe.tree_seed.is_some()),
    ] {
        if is_given && !recipe.method.has(name) {
            let found = format!("given, and the method is {}", recipe.method.name());
            return Err(misfit(name, &found, "a method with this setting, or no such setting"));
        }
    }
    if !family.is_additive() && recipe.waves.is_some_and(|waves| waves > 0) {
        let found = format!("{}, and the model is {}", recipe.waves.unwrap_or(0), family.name());
        return Err(misfit("waves", &found, "0, or the model additive or forest"));
    }
    if recipe.records == Some(0) {
        return Err(misfit("records", "0", "at least 1"));
    }
    let is_regression = matches!(family, Family::Linear | Family::Ridge);
    if matches!(recipe.method, Algorithm::Adassp | Algorithm::OnePosterior) && !is_regression {
        let found = format!("{}, and the model is {}", recipe.method.name(), family.name());
        let expected = if classes.is_some() {
            "another method: this one is for numeric targets"
        } else {
            "another method, or the model linear or ridge"
        };
        return Err(misfit("method", &found, expected));
    }
    let records = recipe.records.or(subject.facts.records).filter(|records| *records > 0);
    records.ok_or(Error::Missing { what: Input::RecordCount })
}

/// Checks that examples have the features and the classes that a model was planned for: public facts.
pub(super) fn check_examples(
    examples: &Examples,
    columns: &Columns,
    classes: Option<usize>,
) -> Result<(), Error> {
    check_targets(examples, columns.width(), classes)
}
