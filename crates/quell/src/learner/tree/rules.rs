//! A tree as rules in words, with thresholds in the units of the schema.

use crate::{
    data::Schema,
    layer::{DecisionTree, Spec},
    learner::{NetworkModel, loss::Loss},
};

/// The conditions that lead to a leaf, and what is predicted there.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// All conditions, from the root on: `age > 37.5`, `work = private`.
    pub conditions: Vec<String>,
    /// The likeliest class with its share, or the number.
    pub prediction: String,
}

/// The rules of a decision tree, leaf after leaf; `None` if the network is no decision tree.
#[must_use]
pub fn rules(
    model: &NetworkModel,
    layers: &[Spec],
    schema: Option<&Schema>,
    classes: Option<&[String]>,
) -> Option<Vec<Rule>> {
    let [Spec::DecisionTree { depth, outputs }] = layers else { return None };
    let layer = DecisionTree::new(model.network.input().iter().product(), *depth, *outputs)?;
    let writer = Writer { model, layer, depth: *depth, names: names(schema), schema, classes };
    let mut rules = Vec::new();
    writer.write(0, 0, &mut Vec::new(), &mut rules);
    Some(rules)
}

/// The name of a feature, and its bounds or its category.
struct Name<'a> {
    column: &'a str,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Number([f64; 2]),
    Category(&'a str),
    Unknown,
}

fn names(schema: Option<&Schema>) -> Vec<Name<'_>> {
    let mut names = Vec::new();
    for column in schema.iter().flat_map(|schema| &schema.columns) {
        let named = |kind| Name { column: &column.name, kind };
        match &column.categories {
            Some(categories) => names.extend(categories.iter().map(|name| named(Kind::Category(name)))),
            None => names.push(named(Kind::Number(column.bounds.unwrap_or([-1.0, 1.0])))),
        }
        names.extend(column.unknown.then(|| named(Kind::Unknown)));
    }
    names
}

struct Writer<'a> {
    model: &'a NetworkModel,
    layer: DecisionTree,
    depth: usize,
    names: Vec<Name<'a>>,
    schema: Option<&'a Schema>,
    classes: Option<&'a [String]>,
}

impl Writer<'_> {
    fn write(&self, node: usize, depth: usize, path: &mut Vec<String>, rules: &mut Vec<Rule>) {
        let nodes = self.layer.nodes(&self.model.weights);
        if depth == self.depth {
            let outputs = self.model.network.outputs();
            let leaf = node + 1 - (1 << self.depth);
            let values = &nodes.values[leaf * outputs..][..outputs];
            rules.push(Rule { conditions: path.clone(), prediction: self.prediction(values) });
            return;
        }
        // No number is above the threshold of a leaf that stands above the last level.
        if nodes.thresholds[node] >= f32::MAX {
            return self.write(2 * node + 1, depth + 1, path, rules);
        }
        for answer in [false, true] {
            path.push(self.condition(nodes.features[node] as usize, nodes.thresholds[node], answer));
            self.write(2 * node + 1 + usize::from(answer), depth + 1, path, rules);
            path.pop();
        }
    }

    fn condition(&self, feature: usize, threshold: f32, answer: bool) -> String {
        let Some(Name { column, kind }) = self.names.get(feature) else {
            return format!("feature {} {} {threshold}", feature + 1, if answer { ">" } else { "≤" });
        };
        match kind {
            Kind::Number([low, high]) => {
                let number = low + 0.5 * (f64::from(threshold) + 1.0) * (high - low);
                format!("{column} {} {}", if answer { ">" } else { "≤" }, brief(number))
            }
            Kind::Category(category) => format!("{column} {} {category}", if answer { "=" } else { "≠" }),
            Kind::Unknown => format!("{column} is {}", if answer { "unknown" } else { "known" }),
        }
    }

    fn prediction(&self, values: &[f32]) -> String {
        if self.model.loss == Loss::Squared {
            let number = values.first().copied().unwrap_or(0.0);
            let unscaled = self.schema.and_then(|schema| schema.unscaled(number));
            return brief(unscaled.unwrap_or(f64::from(number)));
        }
        let shares = self.model.loss.scores(values);
        let best = shares.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        let (class, share) = best.unwrap_or((0, &1.0));
        let number = class.to_string();
        let name = self.classes.and_then(|classes| classes.get(class)).unwrap_or(&number);
        format!("{name} ({:.0} %)", 100.0 * share)
    }
}

/// A number with four digits or so, without zeros at the end.
fn brief(number: f64) -> String {
    let digits = 3 - number.abs().max(1e-3).log10().floor() as i32;
    let text = format!("{number:.*}", usize::try_from(digits).unwrap_or(0));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
