//! What a report says, before it is known how.

use anyhow::Result;
use quell::{
    dp_sgd::{Evaluation, Plan, Sampler},
    features::Features,
    layer::Recipe,
    run::{Configuration, Folder, Metrics, Model, Paid},
};
use quell_privacy::{
    Neighbors,
    ledger::Unit,
    number::{Toward, brief, given, rounded},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::figures;
use crate::{answer::Interval, plot::Figure};

/// Everything that is said about a run.
pub(super) struct Facts {
    /// What was trained on what.
    pub(super) title: String,
    /// The few numbers that everybody looks for first: what, how much, and a word about it.
    pub(super) headlines: Vec<[String; 3]>,
    /// The promise in sentences, each with the word it begins with.
    pub(super) statement: Vec<(String, String)>,
    /// Lists of names and values, with their headings.
    pub(super) lists: Vec<(&'static str, Vec<[String; 2]>)>,
    /// Pictures, with a sentence on how to read each.
    pub(super) figures: Vec<(Figure, &'static str)>,
    pub(super) confusion: Option<Confusion>,
    /// The same for programs.
    pub(super) document: Value,
}

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

impl Facts {
    pub(super) fn new(folder: &Folder, model: &Model) -> Result<Self> {
        let (metrics, configuration) = (folder.metrics()?, &model.configuration);
        let classes = model.classes.as_ref().map(Vec::len);
        let plan = configuration.training.plan(&quell::dp_sgd::Facts { records: None, classes }, &model.network)?;
        let figures: Vec<(Figure, &str)> =
            [figures::accuracy(&metrics), figures::epsilon(&metrics, &model.paid), figures::attack(&plan)?]
                .into_iter()
                .flatten()
                .collect();
        let drawn: Vec<&Figure> = figures.iter().map(|(figure, _)| figure).collect();
        let Paid { receipt, epsilon, delta } = &model.paid;
        let name = architecture(configuration);
        let document = json!({
            "run": folder.path(),
            "dataset": receipt.dataset,
            "unit": configuration.data.unit,
            "neighbors": plan.neighbors,
            "epsilon": Interval(*epsilon),
            "delta": delta,
            "receipt": receipt,
            "statement": model.statement,
            "accuracy": metrics.evaluation.as_ref().and_then(Evaluation::accuracy),
            "metrics": metrics,
            "model": {"name": name, "shape": model.shape, "classes": model.classes, "weights": model.network.parameters()},
            "configuration": configuration,
            "figures": drawn,
        });
        let mut lists = vec![
            ("The guarantee of this run", promise(model, &plan)),
            ("The debt that paid for it", debt(&model.paid)),
            ("What came of it", result(model, &metrics)),
            ("What it was trained on", data(model)),
            ("How it was trained", settings(model, &plan, &metrics)),
        ];
        let mut confusion = match (&metrics.evaluation, &model.classes) {
            (Some(Evaluation::Classes { confusion, .. }), Some(names)) => {
                Some(Confusion { names: names.clone(), counts: confusion.clone() })
            }
            _ => None,
        };
        if let Some(many) = confusion.take_if(|confusion| confusion.names.len() > MOST_CLASSES) {
            lists.push(("Most frequent mistakes", many.mistakes()));
        }
        Ok(Self {
            title: format!("{name} on {}", receipt.dataset),
            headlines: headlines(model, &metrics),
            statement: sentences(&model.statement),
            lists,
            figures,
            confusion,
            document,
        })
    }
}

/// What the model is called; its layers if it has no name.
fn architecture(configuration: &Configuration) -> String {
    let layers = || format!("network of {} layers", configuration.model.layers.len());
    configuration.model.name.clone().unwrap_or_else(layers)
}

/// Names of layers, with how much comes out of those that say so.
fn layers(recipes: &[Recipe]) -> String {
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

fn up(value: f64) -> String {
    rounded(value, 4, Toward::Up)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn row(name: &str, value: impl Into<String>) -> [String; 2] {
    [name.into(), value.into()]
}

fn headlines(model: &Model, metrics: &Metrics) -> Vec<[String; 3]> {
    let mut all = vec![
        ["ε".into(), format!("≤ {}", rounded(model.paid.epsilon.upper, 3, Toward::Up)), "of this run".into()],
        ["δ".into(), given(model.paid.delta), "chance that ε fails".into()],
    ];
    match &metrics.evaluation {
        Some(evaluation @ Evaluation::Classes { count, .. }) => {
            let accuracy = evaluation.accuracy().map_or_else(|| "none".into(), percent);
            all.push(["accuracy".into(), accuracy, format!("on {count} public examples")]);
        }
        Some(Evaluation::Numbers { error, count }) => {
            all.push(["error".into(), brief(in_units(model, *error)), format!("root mean square on {count} public examples")]);
        }
        None => all.push(["accuracy".into(), "not measured".into(), "there are no public test data".into()]),
    }
    all.push(["steps".into(), metrics.steps.to_string(), format!("in {}", duration(metrics.seconds))]);
    all
}

fn duration(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{seconds:.1} s"),
        ..5400.0 => format!("{:.1} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// An error of numbers in [-1, 1] as one of the numbers of the column.
fn in_units(model: &Model, error: f64) -> f64 {
    let bounds = model.configuration.data.schema.as_ref().and_then(|schema| schema.label.bounds);
    bounds.map_or(error, |[low, high]| error * 0.5 * (high - low))
}

/// Lines of a statement, of which most begin with a word and a colon.
fn sentences(statement: &str) -> Vec<(String, String)> {
    let lines = statement.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| match line.split_once(": ") {
            Some((word, rest)) if word.chars().count() <= 24 => (word.to_owned(), rest.to_owned()),
            _ => (String::new(), line.to_owned()),
        })
        .collect()
}

fn promise(model: &Model, plan: &Plan) -> Vec<[String; 2]> {
    let Paid { receipt, epsilon, delta } = &model.paid;
    let change = match plan.neighbors {
        Neighbors::AddRemove => "is added or removed",
        Neighbors::Replace => "is exchanged for another",
    };
    let hidden = match model.configuration.data.unit {
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

fn debt(paid: &Paid) -> Vec<[String; 2]> {
    vec![row("ledger", &paid.receipt.dataset), row("line", paid.receipt.entry.to_string()), row("head", &paid.receipt.head)]
}

fn result(model: &Model, metrics: &Metrics) -> Vec<[String; 2]> {
    let mut rows = match &metrics.evaluation {
        Some(evaluation @ Evaluation::Classes { correct, count, .. }) => vec![
            row("accuracy", evaluation.accuracy().map_or_else(|| "none".into(), percent)),
            row("public test data", format!("{correct} of {count} examples predicted right")),
        ],
        Some(Evaluation::Numbers { error, count }) => vec![
            row("root mean square error", brief(in_units(model, *error))),
            row("public test data", format!("{count} examples")),
        ],
        None => vec![row("public test data", "none, or the run has not come to its end: private data is not looked at for free")],
    };
    if metrics.taken < metrics.steps {
        let lost = "paid for, and lost when the run was interrupted or not yet taken";
        rows.push(row("steps", format!("{} of {} taken; the others were {lost}", metrics.taken, metrics.steps)));
    }
    rows.push(row("time", duration(metrics.seconds)));
    rows
}

fn data(model: &Model) -> Vec<[String; 2]> {
    let (source, training) = (&model.configuration.data, &model.configuration.training);
    let path =
        source.path.as_ref().map_or_else(|| "the embedded digits, which are public".into(), |path| path.display().to_string());
    let mut rows = vec![row("dataset", &model.paid.receipt.dataset), row("source", path)];
    if let Some(records) = training.sampling.records {
        let what = if source.unit == Unit::User { "people" } else { "examples" };
        rows.push(row("size, as publicly known", format!("{records} {what}")));
    }
    let sides: Vec<String> = model.shape.iter().map(ToString::to_string).collect();
    rows.push(row("numbers per example", sides.join(" × ")));
    if !model.configuration.features.is_raw() {
        rows.push(row("features", features(&model.configuration.features)));
    }
    match &model.classes {
        Some(names) => rows.push(row("classes", shortened(names))),
        None => rows.push(row("target", "a number")),
    }
    if let Some(schema) = &source.schema {
        rows.push(row("learned", format!("{} from {} columns", schema.label.column, schema.columns.len())));
    }
    if let Some(test) = &source.test {
        rows.push(row("public test data", test.display().to_string()));
    }
    rows
}

/// Their name, and how they are set.
fn features(features: &Features) -> String {
    let mut settings = serde_json::to_value(features).unwrap_or_default();
    let kind = settings.as_object_mut().and_then(|fields| fields.remove("kind"));
    format!("{} ({})", words(&kind), words(&settings))
}

/// The first names of many.
fn shortened(names: &[String]) -> String {
    const MOST: usize = 20;
    let first = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(MOST);
    if more == 0 { format!("{}: {first}", names.len()) } else { format!("{}: {first} and {more} more", names.len()) }
}

fn settings(model: &Model, plan: &Plan, metrics: &Metrics) -> Vec<[String; 2]> {
    let training = &model.configuration.training;
    let sampling = match training.sampling.by {
        Sampler::Poisson => "each record on its own coin",
        Sampler::Full => "every record in every step",
        Sampler::WithoutReplacement => "a set of fixed size",
        Sampler::Shuffled => "every record once per epoch",
    };
    let rate = training.sampling.rate.map(|rate| format!(", rate {}", brief(rate))).unwrap_or_default();
    let mut rows = vec![
        row("model", architecture(&model.configuration)),
        row("layers", layers(&model.configuration.model.layers)),
        row("weights", model.network.parameters().to_string()),
        row("steps", metrics.steps.max(plan.release.steps()).to_string()),
        row("who takes part", format!("{sampling}{rate}")),
        row("batch on average", brief(plan.expected_batch)),
        row("noise multiplier", brief(plan.release.noise_multiplier())),
        row("clipping", words(&training.clipping)),
        row("loss", words(&plan.loss)),
        row("optimizer", words(&plan.optimizer)),
        row("learning rate", format!("{}, {}", brief(plan.schedule.learning_rate), words(&plan.schedule.shape))),
        row("average of iterates", words(&plan.average)),
    ];
    if plan.schedule.warm_up > 0 {
        rows.push(row("warm-up", format!("{} steps", plan.schedule.warm_up)));
    }
    if let Some(augmentation) = &plan.augmentation {
        rows.push(row("versions of an image", words(augmentation)));
    }
    rows.push(row("seed of what is public", plan.seed.to_string()));
    rows
}

/// A setting as it is written in a configuration, on one line.
fn words(setting: &impl Serialize) -> String {
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
