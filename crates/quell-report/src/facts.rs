//! The contents of a report, independent of the output format.

use quell::{
    features::Features,
    layer::Spec,
    learner::{Evaluation, glm::Family},
    network::Architecture,
    run::{Folder, Origin, PaymentRecord, Source, named_models},
};
use quell_privacy::{
    Neighbors,
    ledger::Unit,
    number::{Toward, format_brief, format_exact, format_rounded},
};
use serde::Serialize;
use serde_json::Value;

use crate::plot::{Figure, Scatter};
use crate::{columns::Columns, html, labelled, learned::Findings, markdown, trained};

/// The report of a run.
pub struct Report {
    /// The model or task, and the dataset.
    pub(crate) title: String,
    /// One sentence about the kind of run.
    pub(crate) kind: &'static str,
    /// The most important numbers: name, value and remark.
    pub(crate) headlines: Vec<[String; 3]>,
    /// The privacy statement in sentences, each with its leading words.
    pub(crate) statement: Vec<(String, String)>,
    /// Tables of names and values, with their headings.
    pub(crate) lists: Vec<List>,
    /// Figures, each with a sentence that explains how to read it.
    pub(crate) figures: Vec<(Figure, &'static str)>,
    /// What the model learned, for models whose weights say something to people.
    pub(crate) learned: Option<Findings>,
    /// What is to be said about each column of a table.
    pub(crate) columns: Option<Columns>,
    /// Further tables, such as the measures of each class.
    pub(crate) tables: Vec<Findings>,
    /// Predicted numbers against actual ones, with a sentence that explains how to read them.
    pub(crate) scatter: Option<(Scatter, &'static str)>,
    pub(crate) confusion: Option<Confusion>,
    /// The report as JSON, for programs.
    pub(crate) document: Value,
}

impl Report {
    /// Builds the report of a training or labelling run. The run must have a model.
    pub fn of_run(folder: &Folder) -> Result<Self, quell::Error> {
        let model = folder.model()?;
        if folder.is_labelling() { labelled::facts(folder, &model) } else { trained::facts(folder, &model) }
    }

    /// The report as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        markdown::page(self)
    }

    /// The report as one HTML page, including its figures.
    #[must_use]
    pub fn html(&self) -> String {
        html::page(self)
    }

    /// The report as JSON, for programs.
    #[must_use]
    pub fn json(&self) -> &Value {
        &self.document
    }

    /// The pages that belong into the folder of the run: file name and contents.
    #[must_use]
    pub fn pages(&self) -> [(&'static str, String); 2] {
        [("report.md", self.markdown()), ("report.html", self.html())]
    }
}

/// A heading with a table of names and values.
pub(crate) type List = (&'static str, Vec<[String; 2]>);

/// The confusion matrix on public data.
pub(crate) struct Confusion {
    pub(crate) names: Vec<String>,
    /// `counts[actual][predicted]`.
    pub(crate) counts: Vec<Vec<u64>>,
}

/// Largest number of classes for which the whole matrix is shown.
const MOST_CLASSES: usize = 40;

impl Confusion {
    /// The most frequent mistakes.
    fn mistakes(&self) -> Vec<[String; 2]> {
        const LIMIT: usize = 20;
        let cells = self.counts.iter().enumerate().flat_map(|(actual, row)| {
            row.iter().enumerate().map(move |(predicted, count)| (*count, actual, predicted))
        });
        let mut wrong: Vec<(u64, usize, usize)> =
            cells.filter(|(count, actual, predicted)| *count > 0 && actual != predicted).collect();
        wrong.sort_by_key(|(count, actual, predicted)| (std::cmp::Reverse(*count), *actual, *predicted));
        let name = |class: usize| self.names.get(class).map_or("", String::as_str);
        wrong
            .iter()
            .take(LIMIT)
            .map(|(count, actual, predicted)| {
                row(&count.to_string(), format!("{} predicted as {}", name(*actual), name(*predicted)))
            })
            .collect()
    }
}

/// The confusion matrix for few classes; for many, a table of frequent mistakes.
pub(crate) fn confusion(
    evaluation: &Evaluation,
    names: &[String],
    lists: &mut Vec<List>,
) -> Option<Confusion> {
    let Evaluation::Classes { confusion, .. } = evaluation else { return None };
    let confusion = Confusion { names: names.to_vec(), counts: confusion.clone() };
    if names.len() <= MOST_CLASSES {
        return Some(confusion);
    }
    lists.push(("Most frequent mistakes", confusion.mistakes()));
    None
}

/// A heading and the date, version and command line of the run; nothing if they are unknown.
pub(crate) fn origin(folder: &Folder) -> Result<Option<List>, quell::Error> {
    Ok(folder.origin()?.map(|Origin { date, version, command }| {
        let mut rows = vec![row("started", date), row("version", format!("quell {version}"))];
        rows.extend(command.map(|command| row("command", command)));
        ("This run", rows)
    }))
}

/// The kind of the model in words, for a title.
pub(crate) fn kind(model: &Architecture, predicts_classes: bool) -> String {
    let named = named_models().into_iter().find(|named| Some(named.name) == model.name.as_deref());
    match named {
        // One linear layer is trained for classes and for numbers.
        Some(named) if named.name == Family::Logistic.name() && !predicts_classes => {
            Family::Linear.title().into()
        }
        Some(named) => named.title.into(),
        None if model.layers.iter().any(has_convolution) => "Convolutional network".into(),
        None => capitalized(&architecture(model)),
    }
}

fn has_convolution(layer: &Spec) -> bool {
    match layer {
        Spec::Convolution { .. } => true,
        Spec::Residual { layers, .. } => layers.iter().any(has_convolution),
        _ => false,
    }
}

/// The text with a capital letter.
pub(crate) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Name of the model, or its number of layers if it has no name.
pub(crate) fn architecture(model: &Architecture) -> String {
    let plural = if model.layers.len() == 1 { "" } else { "s" };
    model.name.clone().unwrap_or_else(|| format!("network of {} layer{plural}", model.layers.len()))
}

/// Names of layers, with the number of outputs where the layer has that setting.
pub(crate) fn layers(specs: &[Spec]) -> String {
    let name = |spec: &Spec| {
        let name = spec.name().replace('_', " ");
        match spec {
            Spec::Linear { outputs } | Spec::Pointwise { outputs } | Spec::Convolution { outputs, .. } => {
                format!("{name} {outputs}")
            }
            Spec::Residual { layers: inner, .. } => format!("{name} ({})", layers(inner)),
            _ => name,
        }
    };
    specs.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Rounds up to four digits, so that the printed bound is never too small.
pub(crate) fn round_up(value: f64) -> String {
    format_rounded(value, 4, Toward::Up)
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// The share of a count among all, in percent; `None` of nothing.
pub(crate) fn share_of(count: u64, all: u64) -> Option<String> {
    (all > 0).then(|| percent(count as f64 / all as f64))
}

pub(crate) fn row(name: &str, value: impl Into<String>) -> [String; 2] {
    [name.into(), value.into()]
}

pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{seconds:.1} s"),
        ..5400.0 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// The headlines for ε and δ.
///
/// `whose` says what the numbers cover: `of this run`.
pub(crate) fn cost(paid: &PaymentRecord, whose: &str) -> Vec<[String; 3]> {
    vec![
        ["ε".into(), format!("≤ {}", format_rounded(paid.epsilon.upper, 3, Toward::Up)), whose.into()],
        ["δ".into(), format_exact(paid.delta), whose.into()],
    ]
}

/// Description of the source of the records.
pub(crate) fn source(source: &Source) -> String {
    source
        .path
        .as_ref()
        .map_or_else(|| "the embedded digits, which are public".into(), |path| path.display().to_string())
}

/// Dimensions of an example.
pub(crate) fn dimensions(shape: &[usize]) -> String {
    shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(" × ")
}

pub(crate) fn guarantee(paid: &PaymentRecord, unit: Unit, neighbors: Neighbors) -> Vec<[String; 2]> {
    let PaymentRecord { receipt, epsilon, delta } = paid;
    let change = match neighbors {
        Neighbors::AddRemove => "is added or removed",
        Neighbors::Replace => "is replaced by another",
    };
    let protected = match unit {
        Unit::Example => format!("one example {change}"),
        Unit::User => format!("one user with all their records {change}"),
    };
    let interval =
        format!("between {} and {}", format_rounded(epsilon.lower, 4, Toward::Down), round_up(epsilon.upper));
    let mut rows = Vec::new();
    if receipt.non_private {
        rows.push(row(
            "NOT PRIVATE",
            "the noise came from a seed; everyone who knows the seed can remove the noise",
        ));
    }
    rows.extend([row("protected change", protected), row("ε", interval), row("δ", format_exact(*delta))]);
    rows
}

pub(crate) fn ledger_entry(paid: &PaymentRecord) -> Vec<[String; 2]> {
    vec![
        row("ledger", &paid.receipt.dataset),
        row("line", paid.receipt.entry.to_string()),
        row("head", &paid.receipt.head),
    ]
}

/// Name and settings of the features.
pub(crate) fn features(features: &Features) -> String {
    if let Features::Network { path, .. } = features {
        return format!("all layers except the last of {}, which was declared public", path.display());
    }
    let mut settings = serde_json::to_value(features).unwrap_or_default();
    let kind = settings.as_object_mut().and_then(|fields| fields.remove("kind"));
    format!("{} ({})", describe(&kind), describe(&settings))
}

/// The number of names and the first of them.
pub(crate) fn shortened(names: &[String]) -> String {
    const LIMIT: usize = 20;
    let first = names.iter().take(LIMIT).cloned().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(LIMIT);
    if more == 0 {
        format!("{}: {first}", names.len())
    } else {
        format!("{}: {first} and {more} more", names.len())
    }
}

/// Describes a setting on one line, as it is written in a configuration.
pub(crate) fn describe(setting: &impl Serialize) -> String {
    fn text_of(value: &Value) -> String {
        match value {
            Value::String(text) => text.replace('_', " "),
            Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), format_brief),
            Value::Object(fields) => {
                let named = fields.iter().map(|(name, value)| match value {
                    Value::Object(inner) if inner.is_empty() => name.replace('_', " "),
                    Value::Object(_) => format!("{} ({})", name.replace('_', " "), text_of(value)),
                    _ => format!("{} {}", name.replace('_', " "), text_of(value)),
                });
                named.collect::<Vec<_>>().join(", ")
            }
            other => other.to_string(),
        }
    }
    serde_json::to_value(setting).map(|value| text_of(&value)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_are_described_on_one_line() {
        assert_eq!(
            describe(&json!({"momentum": {"momentum": 0.9, "nesterov": false}})),
            "momentum (momentum 0.9, nesterov false)"
        );
        assert_eq!(describe(&json!("inverse_sqrt")), "inverse sqrt");
        assert_eq!(
            describe(&json!({"learning_rate": 2.0, "shape": {"linear": {}}})),
            "learning rate 2, shape (linear)"
        );
    }

    #[test]
    fn the_title_of_every_named_model_is_in_words() {
        let titled = |name: &str, predicts_classes| {
            let model = Architecture { name: Some(name.into()), ..Architecture::default() };
            kind(&model, predicts_classes)
        };
        for model in named_models() {
            let title = titled(model.name, true);
            assert!(title.starts_with(char::is_uppercase) && title.len() > 8, "{}: {title}", model.name);
            // A name with a hyphen is no title.
            assert!(!model.name.contains('-') || title.to_lowercase() != model.name, "{title}");
        }
        assert_eq!(titled("mlp-small", true), "Small neural network");
        assert_eq!(
            [true, false].map(|classes| titled("logistic", classes)),
            ["Logistic regression", "Linear regression"]
        );
    }

    #[test]
    fn features_are_named_with_their_settings() {
        assert_eq!(features(&Features::hog()), "hog (block 2, cell 4, orientations 9)");
    }

    #[test]
    fn layers_are_named_with_what_comes_out_of_them() {
        let inner = vec![Spec::Pointwise { outputs: 8 }, Spec::Gelu {}];
        let all = [
            Spec::Linear { outputs: 64 },
            Spec::GlobalMean {},
            Spec::Residual { layers: inner, projection: Vec::new() },
        ];
        assert_eq!(layers(&all), "linear 64, global mean, residual (pointwise 8, gelu)");
    }

    #[test]
    fn the_most_frequent_mistakes_come_first() {
        let names = ["a", "b", "c"].map(str::to_owned).to_vec();
        let confusion = Confusion { names, counts: vec![vec![9, 1, 0], vec![4, 9, 0], vec![0, 2, 9]] };
        let expected = [["4", "b predicted as a"], ["2", "c predicted as b"], ["1", "a predicted as b"]]
            .map(|pair| pair.map(str::to_owned));
        assert_eq!(confusion.mistakes(), expected);
    }
}
