//! What a report says, before it is known how.

use anyhow::Result;
use quell::{
    dp_sgd::Evaluation,
    features::Features,
    layer::Recipe,
    run::{Architecture, Folder, Model, Paid, Source},
};
use quell_privacy::{
    Neighbors,
    ledger::Unit,
    number::{Toward, brief, given, rounded},
};
use serde::Serialize;
use serde_json::Value;

use super::{labelled, trained};
use crate::plot::Figure;

/// Everything that is said about a run.
pub(super) struct Facts {
    /// What was done on what.
    pub(super) title: String,
    /// What kind of thing that is, in a sentence.
    pub(super) kind: &'static str,
    /// The few numbers that everybody looks for first: what, how much, and a word about it.
    pub(super) headlines: Vec<[String; 3]>,
    /// The promise in sentences, each with the word it begins with.
    pub(super) statement: Vec<(String, String)>,
    /// Lists of names and values, with their headings.
    pub(super) lists: Vec<List>,
    /// Pictures, with a sentence on how to read each.
    pub(super) figures: Vec<(Figure, &'static str)>,
    pub(super) confusion: Option<Confusion>,
    /// The same for programs.
    pub(super) document: Value,
}

impl Facts {
    /// Of a run of either kind.
    pub(super) fn new(folder: &Folder, model: &Model) -> Result<Self> {
        if folder.labels_anything() { labelled::facts(folder, model) } else { trained::facts(folder, model) }
    }
}

/// A heading with its list.
pub(super) type List = (&'static str, Vec<[String; 2]>);

/// How often each class was taken for each, on public data.
pub(super) struct Confusion {
    pub(super) names: Vec<String>,
    /// `counts[is][said]`.
    pub(super) counts: Vec<Vec<u64>>,
}

/// Classes that are still seen at a glance, each against each.
const MOST_CLASSES: usize = 40;

impl Confusion {
    /// The pairs of classes that are mistaken most often.
    fn mistakes(&self) -> Vec<[String; 2]> {
        const MOST: usize = 20;
        let cells = self
            .counts
            .iter()
            .enumerate()
            .flat_map(|(is, row)| row.iter().enumerate().map(move |(said, count)| (*count, is, said)));
        let mut wrong: Vec<(u64, usize, usize)> = cells.filter(|(count, is, said)| *count > 0 && is != said).collect();
        wrong.sort_by_key(|(count, is, said)| (std::cmp::Reverse(*count), *is, *said));
        let name = |class: usize| self.names.get(class).map_or("", String::as_str);
        wrong
            .iter()
            .take(MOST)
            .map(|(count, is, said)| row(&count.to_string(), format!("{} taken for {}", name(*is), name(*said))))
            .collect()
    }
}

/// Of a few classes each against each; of many a list of the most frequent mistakes.
pub(super) fn confusion(evaluation: &Evaluation, names: &[String], lists: &mut Vec<List>) -> Option<Confusion> {
    let Evaluation::Classes { confusion, .. } = evaluation else { return None };
    let confusion = Confusion { names: names.to_vec(), counts: confusion.clone() };
    if names.len() <= MOST_CLASSES {
        return Some(confusion);
    }
    lists.push(("Most frequent mistakes", confusion.mistakes()));
    None
}

/// What the model is called; its layers if it has no name.
pub(super) fn architecture(model: &Architecture) -> String {
    model.name.clone().unwrap_or_else(|| format!("network of {} layers", model.layers.len()))
}

/// Names of layers, with how much comes out of those that say so.
pub(super) fn layers(recipes: &[Recipe]) -> String {
    let name = |recipe: &Recipe| {
        let name = recipe.name().replace('_', " ");
        match recipe {
            Recipe::Linear { outputs } | Recipe::Pointwise { outputs } | Recipe::Convolution { outputs, .. } => {
                format!("{name} {outputs}")
            }
            Recipe::Residual { layers: inner, .. } => format!("{name} ({})", layers(inner)),
            _ => name,
        }
    };
    recipes.iter().map(name).collect::<Vec<_>>().join(", ")
}

pub(super) fn up(value: f64) -> String {
    rounded(value, 4, Toward::Up)
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

pub(super) fn row(name: &str, value: impl Into<String>) -> [String; 2] {
    [name.into(), value.into()]
}

pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{seconds:.1} s"),
        ..5400.0 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// What it costs, for everybody who looks for that first.
pub(super) fn cost(paid: &Paid) -> Vec<[String; 3]> {
    vec![
        ["ε".into(), format!("≤ {}", rounded(paid.epsilon.upper, 3, Toward::Up)), "of this run".into()],
        ["δ".into(), given(paid.delta), "chance that ε fails".into()],
    ]
}

/// Where records come from.
pub(super) fn source(source: &Source) -> String {
    source.path.as_ref().map_or_else(|| "the embedded digits, which are public".into(), |path| path.display().to_string())
}

/// How many numbers an example has.
pub(super) fn sides(shape: &[usize]) -> String {
    shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(" × ")
}

/// Lines of a statement, of which most begin with a word and a colon.
pub(super) fn sentences(statement: &str) -> Vec<(String, String)> {
    let lines = statement.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| match line.split_once(": ") {
            Some((word, rest)) if word.chars().count() <= 24 => (word.to_owned(), rest.to_owned()),
            _ => (String::new(), line.to_owned()),
        })
        .collect()
}

pub(super) fn promise(paid: &Paid, unit: Unit, neighbors: Neighbors) -> Vec<[String; 2]> {
    let Paid { receipt, epsilon, delta } = paid;
    let change = match neighbors {
        Neighbors::AddRemove => "is added or removed",
        Neighbors::Replace => "is exchanged for another",
    };
    let hidden = match unit {
        Unit::Example => format!("that one example {change}"),
        Unit::User => format!("that one person {change}, with all their examples"),
    };
    let interval = format!("between {} and {}", rounded(epsilon.lower, 4, Toward::Down), up(epsilon.upper));
    let mut rows = Vec::new();
    if receipt.non_private {
        rows.push(row("NOT PRIVATE", "the noise came from a seed, and whoever knows it can take the noise away"));
    }
    rows.extend([row("what is hidden", hidden), row("ε", interval), row("δ", given(*delta))]);
    rows
}

pub(super) fn debt(paid: &Paid) -> Vec<[String; 2]> {
    vec![row("ledger", &paid.receipt.dataset), row("line", paid.receipt.entry.to_string()), row("head", &paid.receipt.head)]
}

/// Their name, and how they are set.
pub(super) fn features(features: &Features) -> String {
    if let Features::Network { path, .. } = features {
        return format!("all layers but the last of {}, which was declared public", path.display());
    }
    let mut settings = serde_json::to_value(features).unwrap_or_default();
    let kind = settings.as_object_mut().and_then(|fields| fields.remove("kind"));
    format!("{} ({})", words(&kind), words(&settings))
}

/// The first names of many.
pub(super) fn shortened(names: &[String]) -> String {
    const MOST: usize = 20;
    let first = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(MOST);
    if more == 0 { format!("{}: {first}", names.len()) } else { format!("{}: {first} and {more} more", names.len()) }
}

/// A setting as it is written in a configuration, on one line.
pub(super) fn words(setting: &impl Serialize) -> String {
    fn spoken(value: &Value) -> String {
        match value {
            Value::String(text) => text.replace('_', " "),
            Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), brief),
            Value::Object(fields) => {
                let named = fields.iter().map(|(name, value)| match value {
                    Value::Object(inner) if inner.is_empty() => name.replace('_', " "),
                    Value::Object(_) => format!("{} ({})", name.replace('_', " "), spoken(value)),
                    _ => format!("{} {}", name.replace('_', " "), spoken(value)),
                });
                named.collect::<Vec<_>>().join(", ")
            }
            other => other.to_string(),
        }
    }
    serde_json::to_value(setting).map(|value| spoken(&value)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_words_on_one_line() {
        assert_eq!(words(&json!({"momentum": {"momentum": 0.9, "nesterov": false}})), "momentum (momentum 0.9, nesterov false)");
        assert_eq!(words(&json!("inverse_sqrt")), "inverse sqrt");
        assert_eq!(words(&json!({"learning_rate": 2.0, "shape": {"linear": {}}})), "learning rate 2, shape (linear)");
    }

    #[test]
    fn features_are_named_with_their_settings() {
        assert_eq!(features(&Features::hog()), "hog (block 2, cell 4, orientations 9)");
    }

    #[test]
    fn layers_are_named_with_what_comes_out_of_them() {
        let inner = vec![Recipe::Pointwise { outputs: 8 }, Recipe::Gelu {}];
        let all =
            [Recipe::Linear { outputs: 64 }, Recipe::GlobalMean {}, Recipe::Residual { layers: inner, projection: Vec::new() }];
        assert_eq!(layers(&all), "linear 64, global mean, residual (pointwise 8, gelu)");
    }

    #[test]
    fn the_most_frequent_mistakes_come_first() {
        let names = ["a", "b", "c"].map(str::to_owned).to_vec();
        let confusion = Confusion { names, counts: vec![vec![9, 1, 0], vec![4, 9, 0], vec![0, 2, 9]] };
        let expected =
            [["4", "b taken for a"], ["2", "c taken for b"], ["1", "a taken for b"]].map(|pair| pair.map(str::to_owned));
        assert_eq!(confusion.mistakes(), expected);
    }

    #[test]
    fn a_statement_is_cut_at_its_leading_words() {
        let cut = sentences("Dataset \"a\": what was released.\nPromise: if one: two.\n\nNo word here at all.\n");
        let words: Vec<&str> = cut.iter().map(|(word, _)| word.as_str()).collect();
        assert_eq!(words, ["Dataset \"a\"", "Promise", ""]);
        assert_eq!(cut[1].1, "if one: two.");
    }
}
