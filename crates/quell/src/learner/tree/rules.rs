//! A tree as rules in words, with thresholds in the units of the schema.

use serde::Serialize;

use crate::{
    data::Schema,
    layer::{DecisionTree, Spec},
    learner::{NetworkModel, loss::Loss},
};

/// The conditions that lead to a leaf, and what is predicted there.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rule {
    /// One condition for each column that is asked about: `30 < age ≤ 37.5`, `work = private`.
    pub conditions: Vec<String>,
    /// The likeliest class with its share, or the number.
    pub prediction: String,
}

/// The rules of a decision tree, leaf after leaf; `None` if the network is no decision tree.
///
/// Conditions that follow from others are left out, and so are leaves that no record can reach. If all
/// leaves below a question have the same class, they are one rule, with the range of their shares.
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
    writer.write(0, 0, &Path::default(), &mut rules);
    let rule = |(path, prediction): (Path, Prediction)| Rule {
        conditions: path.0.iter().map(|condition| writer.words(condition)).collect(),
        prediction: writer.describe(&prediction),
    };
    Some(rules.into_iter().map(rule).collect())
}

/// The name of a feature, and its bounds or its category.
struct Name<'a> {
    /// The place of the column in the schema.
    place: usize,
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
    for (place, column) in schema.iter().flat_map(|schema| &schema.columns).enumerate() {
        let named = |kind| Name { place, column: &column.name, kind };
        match column.categories() {
            Some(categories) => names.extend(categories.iter().map(|name| named(Kind::Category(name)))),
            None => names.push(named(Kind::Number(column.bounds().unwrap_or([-1.0, 1.0])))),
        }
        names.extend(column.unknown.then(|| named(Kind::Unknown)));
    }
    names
}

/// What the answers so far say about a column.
#[derive(Clone, Debug, PartialEq)]
enum Condition {
    /// The number of a feature is above the first threshold, and not above the second one.
    Between { feature: usize, above: Option<f32>, most: Option<f32> },
    /// The cell holds the category of a feature, or is unknown: no other feature of the column is 1.
    Is { feature: usize },
    /// The cell does not hold any of these.
    IsNot { features: Vec<usize> },
}

/// The conditions on the way to a node, in the order in which columns are first asked about.
#[derive(Clone, Debug, Default, PartialEq)]
struct Path(Vec<Condition>);

/// What is predicted by one leaf, or by several with the same class.
#[derive(Clone, Debug, PartialEq)]
enum Prediction {
    Number(String),
    /// The class, and the least and the largest of its shares.
    Class(usize, [f32; 2]),
}

impl Prediction {
    /// The prediction of two neighbouring leaves, if it is the same.
    fn merged(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) if a == b => Some(self.clone()),
            (Self::Class(a, [low, high]), Self::Class(b, [lower, higher])) if a == b => {
                Some(Self::Class(*a, [low.min(*lower), high.max(*higher)]))
            }
            _ => None,
        }
    }
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
    fn write(&self, node: usize, depth: usize, path: &Path, rules: &mut Vec<(Path, Prediction)>) {
        let nodes = self.layer.nodes(&self.model.weights);
        if depth == self.depth {
            let outputs = self.model.network.outputs();
            let leaf = node + 1 - (1 << self.depth);
            let values = &nodes.values[leaf * outputs..][..outputs];
            return rules.push((path.clone(), self.prediction(values)));
        }
        // No number is above the threshold of a leaf that stands above the last level.
        if nodes.thresholds[node] >= f32::MAX {
            return self.write(2 * node + 1, depth + 1, path, rules);
        }
        let before = rules.len();
        for answer in [false, true] {
            let feature = nodes.features[node] as usize;
            if let Some(path) = self.narrowed(path, feature, nodes.thresholds[node], answer) {
                self.write(2 * node + 1 + usize::from(answer), depth + 1, &path, rules);
            }
        }
        if let [(_, first), rest @ ..] = &rules[before..] {
            let merged = rest.iter().try_fold(first.clone(), |all, (_, next)| all.merged(next));
            if let Some(merged) = merged {
                rules.truncate(before);
                rules.push((path.clone(), merged));
            }
        }
    }

    /// The path with one more answer; `None` if no record has all of them.
    fn narrowed(&self, path: &Path, feature: usize, threshold: f32, answer: bool) -> Option<Path> {
        let mut path = path.clone();
        match self.names.get(feature) {
            Some(Name { kind: Kind::Category(_) | Kind::Unknown, place, .. }) => {
                // The condition on the same column, which has numbers besides if unknown ones are marked.
                let same = path.0.iter_mut().find(|condition| self.column(condition) == Some(*place));
                match (same, answer) {
                    (Some(Condition::Is { feature: known }), true) => {
                        return (*known == feature).then_some(path);
                    }
                    (Some(Condition::Is { feature: known }), false) => {
                        return (*known != feature).then_some(path);
                    }
                    (Some(Condition::IsNot { features }), false) => {
                        if !features.contains(&feature) {
                            features.push(feature);
                        }
                    }
                    (Some(Condition::IsNot { features }), true) if features.contains(&feature) => {
                        return None;
                    }
                    (Some(same @ Condition::IsNot { .. }), true) => *same = Condition::Is { feature },
                    (_, true) => path.0.push(Condition::Is { feature }),
                    (_, false) => path.0.push(Condition::IsNot { features: vec![feature] }),
                }
            }
            Some(Name { kind: Kind::Number(_), .. }) | None => {
                let same = path.0.iter().position(
                    |condition| matches!(condition, Condition::Between { feature: known, .. } if *known == feature),
                );
                let place = same.unwrap_or(path.0.len());
                if same.is_none() {
                    path.0.push(Condition::Between { feature, above: None, most: None });
                }
                let Some(Condition::Between { above, most, .. }) = path.0.get_mut(place) else { return None };
                if answer {
                    *above = Some(above.map_or(threshold, |above| above.max(threshold)));
                } else {
                    *most = Some(most.map_or(threshold, |most| most.min(threshold)));
                }
                if above.zip(*most).is_some_and(|(above, most)| above >= most) {
                    return None;
                }
            }
        }
        Some(path)
    }

    /// The column of a condition on categories; `None` for numbers.
    fn column(&self, condition: &Condition) -> Option<usize> {
        let feature = match condition {
            Condition::Is { feature } => *feature,
            Condition::IsNot { features } => *features.first()?,
            Condition::Between { .. } => return None,
        };
        self.names.get(feature).map(|name| name.place)
    }

    /// A condition in words.
    fn words(&self, condition: &Condition) -> String {
        match condition {
            Condition::Between { feature, above, most } => {
                let (name, bounds) = match self.names.get(*feature) {
                    Some(Name { column, kind: Kind::Number(bounds), .. }) => ((*column).to_owned(), *bounds),
                    _ => (format!("feature {}", feature + 1), [-1.0, 1.0]),
                };
                let [low, high] = bounds;
                let number = |x: f32| brief(low + 0.5 * (f64::from(x) + 1.0) * (high - low));
                match (above.map(number), most.map(number)) {
                    (Some(above), Some(most)) => format!("{above} < {name} ≤ {most}"),
                    (Some(above), None) => format!("{name} > {above}"),
                    (None, Some(most)) => format!("{name} ≤ {most}"),
                    (None, None) => name,
                }
            }
            Condition::Is { feature } => match self.names.get(*feature) {
                Some(Name { column, kind: Kind::Category(category), .. }) => format!("{column} = {category}"),
                Some(Name { column, .. }) => format!("{column} is unknown"),
                None => format!("feature {}", feature + 1),
            },
            Condition::IsNot { features } => {
                let column =
                    features.first().and_then(|first| self.names.get(*first)).map_or("", |n| n.column);
                let others: Vec<&str> = (features.iter())
                    .filter_map(|feature| match self.names.get(*feature)?.kind {
                        Kind::Category(category) => Some(category),
                        _ => None,
                    })
                    .collect();
                let is_known = others.len() < features.len();
                match (others.is_empty(), is_known) {
                    (true, _) => format!("{column} is known"),
                    (false, true) => format!("{column} is known and ≠ {}", others.join(", ")),
                    (false, false) => format!("{column} ≠ {}", others.join(", ")),
                }
            }
        }
    }

    fn prediction(&self, values: &[f32]) -> Prediction {
        if self.model.loss == Loss::Squared {
            let number = values.first().copied().unwrap_or(0.0);
            let unscaled = self.schema.and_then(|schema| schema.unscaled(number));
            return Prediction::Number(brief(unscaled.unwrap_or(f64::from(number))));
        }
        let shares = self.model.loss.scores(values);
        let best = shares.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        let (class, share) = best.unwrap_or((0, &1.0));
        Prediction::Class(class, [*share; 2])
    }

    fn describe(&self, prediction: &Prediction) -> String {
        match prediction {
            Prediction::Number(number) => number.clone(),
            Prediction::Class(class, shares) => {
                let number = class.to_string();
                let name = self.classes.and_then(|classes| classes.get(*class)).unwrap_or(&number);
                let [low, high] = shares.map(|share| format!("{:.0}", 100.0 * share));
                if low == high { format!("{name} ({low} %)") } else { format!("{name} ({low} to {high} %)") }
            }
        }
    }
}

/// A number with four digits or so, without zeros at the end.
fn brief(number: f64) -> String {
    let digits = 3 - number.abs().max(1e-3).log10().floor() as i32;
    let text = format!("{number:.*}", usize::try_from(digits).unwrap_or(0));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{
        data::{Examples, Targets},
        learner::{Predictor, loss::Target},
        network,
        random::PublicRandom,
    };

    const SCHEMA: &str = "[label]\ncolumn = 'y'\nclasses = ['n', 'p']\n\
        [[column]]\nname = 'age'\nbounds = [0, 80]\nunknown = true\n\
        [[column]]\nname = 'work'\ncategories = ['a', 'b', 'c']\nunknown = true\n";
    const WIDTH: usize = 6;

    fn tree(depth: usize, weights: Vec<f32>) -> (Predictor, Vec<Spec>) {
        let layers = vec![Spec::DecisionTree { depth, outputs: 1 }];
        let network = Arc::new(network::build(&[WIDTH], &layers).unwrap());
        (Predictor::network_of(network, weights, Loss::BinaryCrossEntropy), layers)
    }

    /// The rules of a tree: features and thresholds level by level, then the scores of the leaves.
    fn written(depth: usize, questions: &[(f32, f32)], leaves: &[f32]) -> Vec<Rule> {
        let features = questions.iter().map(|question| question.0);
        let weights = features.chain(questions.iter().map(|q| q.1)).chain(leaves.iter().copied()).collect();
        let (predictor, layers) = tree(depth, weights);
        let (schema, classes) = (Schema::parse(SCHEMA).unwrap(), ["n", "p"].map(str::to_owned));
        rules(predictor.network().unwrap(), &layers, Some(&schema), Some(&classes)).unwrap()
    }

    fn shown(rules: &[Rule]) -> Vec<String> {
        rules.iter().map(|rule| format!("{}: {}", rule.conditions.join(" and "), rule.prediction)).collect()
    }

    #[test]
    fn conditions_that_follow_from_others_are_left_out() {
        // Above 30, the next question is about 40. Below, it is about 50: no number is above.
        let rules = written(2, &[(0.0, -0.25), (0.0, 0.25), (0.0, 0.0)], &[1.0, -1.0, -1.0, 1.0]);
        assert_eq!(shown(&rules), ["age ≤ 30: p (73 %)", "30 < age ≤ 40: n (73 %)", "age > 40: p (73 %)"]);
        let rules = written(2, &[(2.0, 0.5), (3.0, 0.5), (3.0, 0.5)], &[1.0, -1.0, 1.0, -1.0]);
        assert_eq!(shown(&rules), ["work ≠ a, b: p (73 %)", "work = b: n (73 %)", "work = a: p (73 %)"]);
        let rules = written(2, &[(5.0, 0.5), (2.0, 0.5), (1.0, 0.5)], &[1.0, -1.0, 1.0, -1.0]);
        let expected = [
            "work is known and ≠ a: p (73 %)",
            "work = a: n (73 %)",
            "work is unknown and age is known: p (73 %)",
            "work is unknown and age is unknown: n (73 %)",
        ];
        assert_eq!(shown(&rules), expected);
    }

    #[test]
    fn neighbouring_leaves_with_the_same_class_are_one_rule() {
        let questions = [(0.0, -0.25), (2.0, 0.5), (3.0, 0.5)];
        let rules = written(2, &questions, &[1.0, 2.0, -1.0, 1.0]);
        let expected = ["age ≤ 30: p (73 to 88 %)", "age > 30 and work ≠ b: n (73 %)"];
        assert_eq!(shown(&rules)[..2], expected);
        assert_eq!(shown(&written(2, &questions, &[1.0; 4])), [": p (73 %)"]);
        // A leaf above the last level asks nothing.
        assert_eq!(shown(&written(1, &[(0.0, f32::MAX)], &[-1.0, 1.0])), [": n (73 %)"]);
    }

    /// Random trees, whose questions contradict each other often.
    #[test]
    fn a_record_meets_the_conditions_of_one_rule_and_has_its_prediction() {
        let mut random = PublicRandom::new(3);
        let schema = Schema::parse(SCHEMA).unwrap();
        for depth in [0, 1, 4, 7] {
            let questions = (1 << depth) - 1;
            let features: Vec<f32> = (0..questions).map(|_| random.below(WIDTH) as f32).collect();
            let thresholds: Vec<f32> = (features.iter())
                .map(|feature| if *feature == 0.0 { random.between(-1.0, 1.0) } else { 0.5 })
                .collect();
            let leaves: Vec<f32> = (0..1 << depth).map(|_| random.normal()).collect();
            let (predictor, layers) = tree(depth, [features, thresholds, leaves].concat());
            let layer = DecisionTree::new(WIDTH, depth, 1).unwrap();
            let model = predictor.network().unwrap();
            let writer = Writer {
                model,
                layer,
                depth,
                names: names(Some(&schema)),
                schema: Some(&schema),
                classes: None,
            };
            let mut found = Vec::new();
            writer.write(0, 0, &Path::default(), &mut found);
            assert_eq!(rules(model, &layers, Some(&schema), None).map(|all| all.len()), Some(found.len()));
            let mut examples = Vec::new();
            for _ in 0..200 {
                let is_known = random.below(4) > 0;
                let age = if is_known { random.between(-1.0, 1.0) } else { 0.0 };
                let mut work = [0.0; 4];
                work[random.below(4)] = 1.0;
                examples.push([&[age, f32::from(u8::from(!is_known))][..], &work].concat());
            }
            let targets = Targets::Numbers(vec![0.0; examples.len()]);
            let predicted =
                predictor.predictions(&Examples::numbers(&[WIDTH], examples.concat(), targets).unwrap());
            for (example, predicted) in examples.iter().zip(predicted) {
                let met = found.iter().filter(|(path, _)| {
                    path.0.iter().all(|condition| match condition {
                        Condition::Between { feature, above, most } => {
                            above.is_none_or(|above| example[*feature] > above)
                                && most.is_none_or(|most| example[*feature] <= most)
                        }
                        Condition::Is { feature } => example[*feature] > 0.5,
                        Condition::IsNot { features } => features.iter().all(|f| example[*f] <= 0.5),
                    })
                });
                let met: Vec<&Prediction> = met.map(|(_, prediction)| prediction).collect();
                let [Prediction::Class(class, _)] = met[..] else { panic!("{example:?}: {met:?}") };
                assert_eq!(predicted, Some(Target::Class(*class as u32)), "{example:?}");
            }
        }
    }
}
