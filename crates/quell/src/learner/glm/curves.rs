//! What each column of a table adds to the scores of a fitted model.
//!
//! The layers of an additive or linear model treat each column alone, except for the last ones: one shortens
//! unusually long examples, and one clamps predictions to the bounds of the target. Without these two, a score
//! is a constant plus one number for each column. Everything here follows from released weights and public
//! bounds, so it costs nothing.

use std::sync::Mutex;

use serde::Serialize;

use crate::{
    Error,
    data::{Feature, Schema},
    layer::Spec,
    learner::{NetworkModel, loss::Loss},
    network::{self, Network},
    random::PublicRandom,
};

/// What all columns of a table add to the scores of a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curves {
    /// What the numbers are added to, as a noun phrase.
    pub score: String,
    /// The classes that have a score each. One name, the second class or the target, if there is one score.
    pub lines: Vec<String>,
    /// Whether scores of unusually long examples are shortened after all columns were added.
    pub are_shortened: bool,
    /// Whether the model joins columns, as a forest does. Then a curve is a mean over random records.
    pub are_means: bool,
    /// The columns, in the order of the schema.
    pub columns: Vec<Curve>,
}

/// What one column adds. Each value has one number for each score.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// The name of the column.
    pub column: String,
    /// The largest difference between two values, for numbers within the usual range.
    pub spread: f64,
    /// The values.
    #[serde(flatten)]
    pub values: Values,
    /// What an unknown cell adds, if the schema says that unknown cells have a feature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<Vec<f64>>,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Values {
    /// For a column of numbers: straight lines between these points, from bound to bound.
    ///
    /// The curve is zero at the released mean of the column, or at the middle of its bounds if none was released.
    Curve {
        /// Most numbers are in this range: the released mean, and four released deviations to each side.
        usual: [f64; 2],
        /// The points, from left to right, in the units of the column.
        points: Vec<Knot>,
    },
    /// For a column of categories. The mean over all categories is zero.
    Categories(Vec<Category>),
}

impl Values {
    /// What a number adds to each score; `None` for categories.
    #[must_use]
    pub fn at(&self, number: f64) -> Option<Vec<f64>> {
        let Self::Curve { points, .. } = self else { return None };
        let after = points.iter().position(|knot| knot.at >= number).unwrap_or(points.len());
        let (Some(from), Some(to)) = (points.get(after.max(1) - 1), points.get(after.max(1))) else {
            return points.last().map(|knot| knot.adds.clone());
        };
        let position = ((number - from.at) / (to.at - from.at)).clamp(0.0, 1.0);
        Some(from.adds.iter().zip(&to.adds).map(|(from, to)| from + position * (to - from)).collect())
    }
}

/// A point of a curve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Knot {
    /// The number in the column.
    pub at: f64,
    /// What it adds to each score.
    pub adds: Vec<f64>,
}

/// The value of a category.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Category {
    /// The category, as the schema names it.
    pub category: String,
    /// What it adds to each score.
    pub adds: Vec<f64>,
}

/// Deviations to each side of the mean that a usual number is within.
const USUAL: f64 = 4.0;
/// Curves are computed this often for each deviation, and this often between the bounds.
const POINTS: [f64; 2] = [8.0, 32.0];
/// The most features of a model with curves. The time grows with their square.
const MOST_FEATURES: usize = 1_000;
/// Random records over which the curves of a forest are means.
const REFERENCES: usize = 64;
/// A point is left out if the line between its neighbours misses it by this share of the spread.
const TOLERANCE: f64 = 1e-3;

impl Curves {
    /// What each column adds, for a model with these layers.
    ///
    /// `classes` are the names of the classes. `None` if a layer mixes columns, as those of most networks do, or
    /// if there are more than a thousand features, which nobody looks at one by one.
    pub fn new(
        model: &NetworkModel,
        layers: &[Spec],
        schema: &Schema,
        classes: Option<&[String]>,
    ) -> Result<Option<Self>, Error> {
        let mut linear = 0;
        let keeps_columns_apart = layers.iter().enumerate().all(|(place, layer)| match layer {
            Spec::Linear { .. } => {
                linear += 1;
                true
            }
            Spec::Standardize { .. } | Spec::Waves { .. } | Spec::AppendSquares {} | Spec::BoundLength {} => {
                linear == 0
            }
            // As the first layer it clamps features to [-1, 1], where they are.
            Spec::HardTanh {} => linear == 1 || place == 0,
            Spec::Leaves { .. } => place == 0,
            _ => false,
        });
        let names = schema.features();
        if names.len() > MOST_FEATURES
            || !keeps_columns_apart
            || linear != 1
            || model.network.input().iter().product::<usize>() != names.len()
        {
            return Ok(None);
        }
        let are_means = matches!(layers.first(), Some(Spec::Leaves { .. }));
        // Neither of the layers that are left out has weights.
        let is_separable = |layer: &&Spec| !matches!(layer, Spec::BoundLength {} | Spec::HardTanh {});
        let separable: Vec<Spec> = layers.iter().filter(is_separable).cloned().collect();
        let scores = Scores {
            network: network::build(&[names.len()], &separable)?,
            model,
            width: names.len(),
            standard: standard(model),
            references: if are_means { references(schema, standard(model)) } else { Vec::new() },
            unit: match (model.loss, schema.label.as_ref().and_then(|label| label.bounds)) {
                // The logarithm of a count has no unit.
                (Loss::Poisson, _) | (_, None) => 1.0,
                (_, Some([low, high])) => 0.5 * (high - low),
            },
        };
        let mut first = 0;
        let columns = schema.columns.iter().map(|column| {
            let start = first;
            first += column.categories().map_or(1, <[_]>::len) + usize::from(column.unknown);
            scores.curve(column, start)
        });
        let target = schema.label.as_ref().map_or("the target", |label| label.column.as_str());
        let columns = columns.collect();
        let (score, lines) = match (model.loss, classes) {
            (Loss::BinaryCrossEntropy, Some([_, second, ..])) => {
                (format!("the log odds of {second}"), vec![second.clone()])
            }
            (Loss::Hinge { .. }, Some([_, second])) => {
                (format!("the score of {second}"), vec![second.clone()])
            }
            (Loss::CrossEntropy { .. } | Loss::Hinge { .. }, Some(names)) => {
                ("the score of each class".into(), names.to_vec())
            }
            (Loss::Poisson, _) => (format!("the logarithm of the expected {target}"), vec![target.into()]),
            _ => (format!("the predicted {target}"), vec![target.into()]),
        };
        let are_shortened = layers.iter().any(|layer| matches!(layer, Spec::BoundLength {}));
        Ok(Some(Self { score, lines, are_shortened, are_means, columns }))
    }
}

/// The centres and the rates of all features: the weights of a layer that standardises them first.
///
/// Only the leaves of random trees may precede it; they keep the features in front.
fn standard(model: &NetworkModel) -> Option<[&[f32]; 2]> {
    let tensors: Vec<_> = model.network.tensors().collect();
    let place = usize::from(tensors.first().is_some_and(|(name, ..)| name == "0.threshold"));
    let find = |name: &str| {
        let name = format!("{place}.{name}");
        let (_, _, range) = tensors.iter().find(|(known, ..)| *known == name)?;
        model.weights.get(range.clone())
    };
    Some([find("centre")?, find("rate")?])
}

/// Random records of the schema: numbers within two released deviations of their means, and any category.
fn references(schema: &Schema, standard: Option<[&[f32]; 2]>) -> Vec<Vec<f32>> {
    let width = schema.features().len();
    let mut random = PublicRandom::of(1, 0);
    let mut record = || {
        let (mut features, mut first) = (vec![0.0; width], 0);
        for column in &schema.columns {
            if let Some(categories) = column.categories() {
                features[first + random.below(categories.len())] = 1.0;
            } else {
                let [centre, rate] = standard.map_or([0.0, 1.0], |all| all.map(|part| part[first]));
                features[first] = (centre + random.between(-2.0, 2.0) / rate.max(0.5)).clamp(-1.0, 1.0);
            }
            first += column.categories().map_or(1, <[_]>::len) + usize::from(column.unknown);
        }
        features
    };
    (0..REFERENCES).map(|_| record()).collect()
}

/// The scores of examples, without the layers that mix columns.
struct Scores<'a> {
    network: Network,
    model: &'a NetworkModel,
    /// Number of features of an example.
    width: usize,
    /// The released centres and rates of all features, if there are any.
    standard: Option<[&'a [f32]; 2]>,
    /// Records in which one column is replaced at a time; none if the scores are sums over columns.
    references: Vec<Vec<f32>>,
    /// The unit of the scores.
    unit: f64,
}

impl Scores<'_> {
    /// The scores of examples that have these numbers at some features of a column, and zeros elsewhere.
    ///
    /// If the model joins columns: the mean scores of random records whose column has these numbers.
    fn of(&self, column: std::ops::Range<usize>, examples: &[Vec<(usize, f64)>]) -> Vec<Vec<f64>> {
        if self.references.is_empty() {
            let zeros = vec![vec![0.0; self.width]];
            return self.replaced(&zeros, column, examples);
        }
        self.replaced(&self.references, column, examples)
    }

    /// The mean scores of records whose column has these numbers.
    fn replaced(
        &self,
        records: &[Vec<f32>],
        column: std::ops::Range<usize>,
        examples: &[Vec<(usize, f64)>],
    ) -> Vec<Vec<f64>> {
        let all = self.scores(records.len() * examples.len(), |number, input| {
            input.copy_from_slice(&records[number % records.len()]);
            input[column.clone()].fill(0.0);
            examples[number / records.len()].iter().for_each(|(feature, x)| input[*feature] = *x as f32);
        });
        let mean = |rows: &[Vec<f64>]| {
            let mut sum = vec![0.0; rows.first().map_or(0, Vec::len)];
            for row in rows {
                sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            }
            sum.into_iter().map(|sum| sum / rows.len() as f64).collect()
        };
        all.chunks(records.len()).map(mean).collect()
    }

    /// The scores of so many examples.
    fn scores(&self, count: usize, write: impl Fn(usize, &mut [f32]) + Sync) -> Vec<Vec<f64>> {
        let results = Mutex::new(vec![Vec::new(); count]);
        self.network.predict(&self.model.weights, count, write, |example, outputs| {
            let mut scores: Vec<f64> = outputs.iter().map(|x| self.unit * f64::from(*x)).collect();
            // Probabilities depend on differences of scores alone.
            if matches!(self.model.loss, Loss::CrossEntropy { .. }) {
                let mean = scores.iter().sum::<f64>() / scores.len() as f64;
                for score in &mut scores {
                    *score -= mean;
                }
            }
            results.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[example] = scores;
        });
        results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// What a column adds, whose features begin at `first`.
    fn curve(&self, column: &Feature, first: usize) -> Curve {
        match (column.categories(), column.bounds()) {
            (Some(categories), _) => self.categories(column, categories, first),
            (None, bounds) => self.numbers(column, bounds.unwrap_or([-1.0, 1.0]), first),
        }
    }

    fn categories(&self, column: &Feature, names: &[String], first: usize) -> Curve {
        let count = names.len() + usize::from(column.unknown);
        let examples: Vec<_> = (0..count).map(|place| vec![(first + place, 1.0)]).collect();
        let mut all = self.of(first..first + count, &examples);
        let lines = all.first().map_or(0, Vec::len);
        let means: Vec<f64> = (0..lines)
            .map(|line| all[..names.len()].iter().map(|adds| adds[line]).sum::<f64>() / names.len() as f64)
            .collect();
        for adds in &mut all {
            subtract(adds, &means);
        }
        let unknown = if column.unknown { all.pop() } else { None };
        let spread = spread(all.iter());
        let named = names.iter().cloned().zip(all);
        let values = named.map(|(category, adds)| Category { category, adds }).collect();
        Curve { column: column.name.clone(), spread, values: Values::Categories(values), unknown }
    }

    fn numbers(&self, column: &Feature, [low, high]: [f64; 2], first: usize) -> Curve {
        let standard = self.standard.map(|parts| parts.map(|part| f64::from(part[first])));
        let [centre, rate] = standard.unwrap_or([0.0, 1.0]);
        let usual = if standard.is_some() { USUAL / rate } else { 1.0 };
        let [start, end] = [centre - usual, centre + usual].map(|x| x.clamp(-1.0, 1.0));
        let even = (0..=POINTS[1] as i32).map(|i| 2.0 * f64::from(i) / POINTS[1] - 1.0);
        // Waves are constant beyond eight deviations, and numbers are winsorised beyond twelve.
        let around = (-12 * POINTS[0] as i32..=12 * POINTS[0] as i32)
            .map(|i| centre + f64::from(i) / POINTS[0] / rate);
        let mut places: Vec<f64> =
            even.chain(around.filter(|x| x.abs() <= 1.0)).chain([start, end]).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let mut examples: Vec<_> = places.iter().map(|x| vec![(first, *x)]).collect();
        examples.push(vec![(first, centre.clamp(-1.0, 1.0))]);
        // An unknown number counts as the middle.
        examples.push(vec![(first, 0.0), (first + 1, 1.0)][..if column.unknown { 2 } else { 1 }].to_vec());
        let mut all = self.of(first..first + 1 + usize::from(column.unknown), &examples);
        let (unknown, zero) = (all.pop().filter(|_| column.unknown), all.pop().unwrap_or_default());
        let shifted = |mut adds: Vec<f64>| {
            subtract(&mut adds, &zero);
            adds
        };
        let in_units = |x: f64| low + (0.5 * x + 0.5) * (high - low);
        let all: Vec<Vec<f64>> = all.into_iter().map(shifted).collect();
        let is_usual = |x: f64| (start..=end).contains(&x);
        let spread = spread(all.iter().zip(&places).filter(|(_, x)| is_usual(**x)).map(|(adds, _)| adds));
        let mut kept: Vec<usize> = Vec::new();
        for place in 0..all.len() {
            let is_end = place == 0 || place + 1 == all.len() || [start, end].contains(&places[place]);
            if is_end || !is_straight(&places, &all, [kept[kept.len() - 1], place + 1], TOLERANCE * spread) {
                kept.push(place);
            }
        }
        let knot = |place: usize| Knot { at: in_units(places[place]), adds: all[place].clone() };
        let points = kept.into_iter().map(knot).collect();
        let usual = [start, end].map(in_units);
        Curve {
            column: column.name.clone(),
            spread,
            values: Values::Curve { usual, points },
            unknown: unknown.map(shifted),
        }
    }
}

/// Whether all points between two points are on the line between them, up to a tolerance.
fn is_straight(places: &[f64], all: &[Vec<f64>], [from, to]: [usize; 2], tolerance: f64) -> bool {
    (from + 1..to).all(|between| {
        let position = (places[between] - places[from]) / (places[to] - places[from]);
        let mut lines = all[from].iter().zip(&all[to]).zip(&all[between]);
        lines.all(|((a, b), own)| (a + position * (b - a) - own).abs() <= tolerance)
    })
}

fn subtract(adds: &mut [f64], shift: &[f64]) {
    adds.iter_mut().zip(shift).for_each(|(x, shift)| *x -= shift);
}

/// The largest difference between two values of one line.
fn spread<'a>(all: impl Iterator<Item = &'a Vec<f64>>) -> f64 {
    let mut ends: Vec<[f64; 2]> = Vec::new();
    for adds in all {
        ends.resize(adds.len(), [f64::INFINITY, f64::NEG_INFINITY]);
        for (end, x) in ends.iter_mut().zip(adds) {
            *end = [end[0].min(*x), end[1].max(*x)];
        }
    }
    ends.iter().map(|[low, high]| high - low).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::Predictor;
    use std::sync::Arc;

    const SCHEMA: &str = "[[column]]\nname = 'age'\nbounds = [0, 100]\nunknown = true\n\
         [[column]]\nname = 'work'\ncategories = ['x', 'y']\n[[column]]\nname = 'hours'\nbounds = [-5, 5]\n";

    /// A model with random weights for a schema, and its layers.
    fn model(layers: Vec<Spec>, loss: Loss, width: usize) -> (NetworkModel, Vec<Spec>) {
        let network = network::build(&[width], &layers).unwrap();
        let mut chance = PublicRandom::of(8, 1);
        let mut weights: Vec<f32> = (0..network.parameters()).map(|_| chance.between(-0.5, 0.5)).collect();
        // Rates are positive.
        weights[width..2 * width].iter_mut().for_each(|rate| *rate = 1.0 + rate.abs());
        let Predictor::Network(model) = Predictor::network_of(Arc::new(network), weights, loss) else {
            unreachable!()
        };
        (model, layers)
    }

    fn additive(outputs: usize, last: Option<Spec>) -> Vec<Spec> {
        let mut layers = vec![
            Spec::Standardize { limit: 12.0 },
            Spec::Waves { numbers: vec![0, 4], amplitudes: vec![1.0, 0.5, 0.3] },
            Spec::Standardize { limit: f32::MAX },
            Spec::BoundLength {},
            Spec::Linear { outputs },
        ];
        layers.extend(last);
        layers
    }

    /// The difference of the scores of two records is the sum of the differences of their columns.
    #[test]
    fn scores_are_sums_of_the_curves() {
        let label = "[label]\ncolumn = 'y'\n";
        for (label, loss, classes, outputs) in [
            ("classes = ['n', 'p']", Loss::BinaryCrossEntropy, vec!["n", "p"], 1),
            (
                "classes = ['n', 'p', 'q']",
                Loss::CrossEntropy { label_smoothing: 0.0 },
                vec!["n", "p", "q"],
                3,
            ),
            ("bounds = [0, 40]", Loss::Squared, vec![], 1),
        ]
        .map(|(rest, loss, classes, outputs)| (format!("{label}{rest}\n"), loss, classes, outputs))
        {
            let schema = Schema::parse(&format!("{label}{SCHEMA}")).unwrap();
            let names: Vec<String> = classes.into_iter().map(str::to_owned).collect();
            let clamp = (loss == Loss::Squared).then_some(Spec::HardTanh {});
            let (model, layers) = model(additive(outputs, clamp), loss, 5);
            let curves = Curves::new(&model, &layers, &schema, Some(&names)).unwrap().unwrap();
            assert!(curves.are_shortened && curves.columns.len() == 3 && curves.lines.len() == outputs);
            let [age, work, hours] = curves.columns.as_slice() else { unreachable!() };
            let Values::Curve { points: ages, .. } = &age.values else { unreachable!() };
            let Values::Categories(works) = &work.values else { unreachable!() };
            assert!(works[0].adds.iter().zip(&works[1].adds).all(|(a, b)| (a + b).abs() < 1e-6), "{works:?}");
            assert!(age.spread > 0.01 && ages.len() > 5, "{age:?}");
            // Twenty is -0.6 on the scale of training, three hours are 0.6.
            let separable: Vec<Spec> = layers
                .iter()
                .filter(|layer| !matches!(layer, Spec::BoundLength {} | Spec::HardTanh {}))
                .cloned()
                .collect();
            let network = network::build(&[5], &separable).unwrap();
            let records = [[-0.6, 0.0, 1.0, 0.0, 0.6], [0.0, 1.0, 0.0, 1.0, -0.2]];
            let scores = Mutex::new([Vec::new(), Vec::new()]);
            network.predict(
                &model.weights,
                2,
                |i, input| input.copy_from_slice(&records[i]),
                |i, outputs| scores.lock().unwrap()[i] = outputs.to_vec(),
            );
            let [first, second] = scores.into_inner().unwrap();
            let unit = if loss == Loss::Squared { 20.0 } else { 1.0 };
            let mean = |x: &[f32]| x.iter().map(|x| f64::from(*x)).sum::<f64>() / x.len() as f64;
            let shift = if outputs == 3 { mean(&first) - mean(&second) } else { 0.0 };
            let (young, long, short) =
                (age.values.at(20.0).unwrap(), hours.values.at(3.0).unwrap(), hours.values.at(-1.0).unwrap());
            for line in 0..outputs {
                let of_first = young[line] + works[0].adds[line] + long[line];
                let of_second = age.unknown.as_ref().unwrap()[line] + works[1].adds[line] + short[line];
                let truth = unit * (f64::from(first[line]) - f64::from(second[line]) - shift);
                let error = (of_first - of_second - truth).abs();
                assert!(error < 5e-3 * unit, "{line}: {of_first} {of_second} {truth}");
            }
        }
    }

    /// A line needs its ends, the usual range and the points where it is winsorised.
    #[test]
    fn a_line_has_few_points() {
        let schema = Schema::parse(&format!("[label]\ncolumn = 'y'\nbounds = [0, 1]\n{SCHEMA}")).unwrap();
        let layers = vec![Spec::Standardize { limit: 4.0 }, Spec::Linear { outputs: 1 }];
        let (mut model, layers) = model(layers, Loss::Squared, 5);
        (model.weights[0], model.weights[5]) = (0.2, 10.0);
        let curves = Curves::new(&model, &layers, &schema, None).unwrap().unwrap();
        let Values::Curve { usual, points } = &curves.columns[0].values else { unreachable!() };
        assert!((usual[0] - 40.0).abs() < 1e-4 && (usual[1] - 80.0).abs() < 1e-4, "{usual:?}");
        assert!((4..=6).contains(&points.len()), "{points:?}");
        assert!(points[0].at == 0.0 && points[points.len() - 1].at == 100.0);
    }

    #[test]
    fn the_curves_of_a_forest_are_means_over_random_records() {
        let schema = format!("[label]\ncolumn = 'y'\nclasses = ['n', 'p']\n{SCHEMA}");
        let schema = Schema::parse(&schema).unwrap();
        let leaves = Spec::Leaves { columns: vec![0, 0, 2, 0], trees: 16, seed: 1 };
        let layers = vec![leaves, Spec::Standardize { limit: 12.0 }, Spec::Linear { outputs: 1 }];
        let (mut model, layers) = model(layers, Loss::BinaryCrossEntropy, 5);
        let names = ["n", "p"].map(str::to_owned);
        let tensors: Vec<_> = model.network.tensors().collect();
        let range = |name: &str| tensors.iter().find(|(known, ..)| known == name).unwrap().2.clone();
        for (name, value) in [("0.threshold", 0.1), ("1.centre", 0.0), ("1.rate", 1.0), ("1.gain", 1.0)] {
            model.weights[range(name)].fill(value);
        }
        let linear = range("1.gain").end..model.weights.len();
        model.weights[linear.clone()].fill(0.0);
        // Hours alone have a weight: two for each unit on the scale of training, which is five hours.
        model.weights[linear.start + 4] = 2.0;
        let curves = Curves::new(&model, &layers, &schema, Some(&names)).unwrap().unwrap();
        assert!(curves.are_means);
        let [age, work, hours] = curves.columns.as_slice() else { unreachable!() };
        let difference = hours.values.at(3.0).unwrap()[0] - hours.values.at(-1.0).unwrap()[0];
        assert!((difference - 1.6).abs() < 1e-5 && age.spread < 1e-5 && work.spread < 1e-5, "{curves:?}");
        // Leaves join columns. Their weights change the means of the columns that they ask about.
        model.weights[linear.start + 5..linear.end - 1].iter_mut().step_by(3).for_each(|x| *x = 1.0);
        let joined = Curves::new(&model, &layers, &schema, Some(&names)).unwrap().unwrap();
        assert!(joined.columns[..2].iter().any(|column| column.spread > 1e-3), "{joined:?}");
    }

    #[test]
    fn naive_bayes_has_curves() {
        let schema =
            Schema::parse(&format!("[label]\ncolumn = 'y'\nclasses = ['n', 'p']\n{SCHEMA}")).unwrap();
        let layers = vec![Spec::HardTanh {}, Spec::AppendSquares {}, Spec::Linear { outputs: 2 }];
        let loss = Loss::CrossEntropy { label_smoothing: 0.0 };
        let (model, layers) = model(layers, loss, 5);
        let names = ["n", "p"].map(str::to_owned);
        let curves = Curves::new(&model, &layers, &schema, Some(&names)).unwrap().unwrap();
        assert_eq!((curves.lines.len(), curves.columns.len(), curves.are_means), (2, 3, false));
        assert!(curves.columns.iter().all(|column| column.spread > 0.0), "{curves:?}");
    }

    #[test]
    fn layers_that_mix_columns_have_no_curves() {
        let schema = Schema::parse(&format!("[label]\ncolumn = 'y'\nbounds = [0, 1]\n{SCHEMA}")).unwrap();
        let layers = vec![Spec::Linear { outputs: 3 }, Spec::Relu {}, Spec::Linear { outputs: 1 }];
        let (model, layers) = model(layers, Loss::Squared, 5);
        assert_eq!(Curves::new(&model, &layers, &schema, None).unwrap(), None);
    }
}
