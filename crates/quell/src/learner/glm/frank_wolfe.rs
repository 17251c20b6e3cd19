//! Private Frank-Wolfe on a ball of the ℓ₁ norm: sparse models of many features.
//!
//! Each step moves the weights towards one corner of the ball, ±r in one weight. The corner along which the
//! loss falls fastest is chosen by the exponential mechanism, so the noise grows with the logarithm of the
//! number of weights alone. (Talwar, Thakurta and Zhang 2015, "Nearly-optimal private LASSO".)

use std::sync::Arc;

use quell_privacy::{
    Bound, Neighbors,
    ledger::{Book, Lease, Terms, Unit},
    mechanism::{Selection, Sensitive},
    units::{ClipNorm, Delta, Epsilon, NoiseMultiplier},
};
use rayon::prelude::*;
use serde_json::{Value, json};

use super::{
    Algorithm, Columns, Family, Recipe,
    minimized::declared_layers,
    suitability::{check_examples, checked_records},
    weights::Weights,
};
use crate::{
    Error,
    data::Examples,
    learner::{
        Control, Method, PlannedCost, Predictor, Subject, Supervised,
        loss::Loss,
        parts::{number, parts},
        privacy,
    },
    network::{Architecture, Network, Task},
    range::POSITIVE,
};

/// A linear model whose weights have a bounded sum of absolute values.
pub struct FrankWolfe {
    selection: Selection,
    steps: u64,
    /// r: the largest sum of absolute weights.
    radius: f64,
    network: Arc<Network>,
    columns: Columns,
    loss: Loss,
    classes: Option<usize>,
    records: u64,
    neighbors: Neighbors,
    delta: Delta,
    epsilon: Bound,
    requested: Option<f64>,
    remark: Option<String>,
}

/// The default radius, for features in [-1, 1].
const RADIUS: f64 = 20.0;

/// The range of the default number of steps.
const STEPS: [f64; 2] = [10.0, 200.0];

impl Method for FrankWolfe {
    type Recipe = Recipe;
    type Mechanism = Selection;
    type Task<'a> = Supervised<'a>;
    type State = Weights;

    fn plan(recipe: &mut Recipe, model: &mut Architecture, subject: &Subject<'_>) -> Result<Self, Error> {
        recipe.method = Algorithm::FrankWolfe;
        let is_chosen = model.name.is_none();
        let family = Family::of(model, subject, recipe.method)?;
        let records = checked_records(recipe, family, subject)?;
        let loss = family.loss(subject.facts.classes, recipe.quantile)?;
        let columns = Columns::new(subject.schema, subject.shape.iter().product());
        let outputs = loss.outputs(subject.facts.classes.unwrap_or(1));
        let delta = recipe.privacy.delta_for(records)?;
        let neighbors = recipe.privacy.neighbors;
        let radius = recipe.radius.unwrap_or(RADIUS);
        POSITIVE.check("radius", radius)?;
        let candidates = 2 * outputs * (columns.width() + 1);
        let steps = recipe.steps.unwrap_or_else(|| {
            // Balances the error r²/T of T exact steps and the error r√T ln(candidates)/nε of the choices.
            let epsilon = recipe.privacy.epsilon.unwrap_or(1.0);
            let signal = records as f64 * epsilon * radius / (candidates as f64).ln();
            signal.powf(2.0 / 3.0).clamp(STEPS[0], STEPS[1]).round() as u64
        });
        if steps == 0 {
            return Err(Error::Setting { name: "steps", found: "0".into(), expected: "at least 1" });
        }
        // A utility is a slope of the sum of all losses, without the radius. Slopes by scores are clamped to
        // [-1, 1], and so are products with features. So one record moves a utility by at most one, and
        // replacing a record by at most two.
        let sensitivity = ClipNorm::new(match neighbors {
            Neighbors::AddRemove => 1.0,
            Neighbors::Replace => 2.0,
        })?;
        let (selection, epsilon) = recipe.privacy.calibrate(delta, steps, |noise: NoiseMultiplier| {
            let epsilon = Epsilon::new(noise.get().recip())?;
            Ok(Selection { candidates, sensitivity, epsilon, permute_and_flip: false })
        })?;
        model.name = Some(family.name().into());
        model.layers = declared_layers(family, outputs);
        let network = Arc::new(model.build(subject.shape, outputs)?);
        let requested = recipe.privacy.epsilon;
        recipe.privacy.noise_multiplier = Some(selection.epsilon.get().recip());
        recipe.privacy.delta = Some(delta.get());
        (recipe.records, recipe.steps, recipe.radius) = (Some(records), Some(steps), Some(radius));
        Ok(Self {
            selection,
            steps,
            radius,
            network,
            columns,
            loss,
            classes: subject.facts.classes,
            records,
            neighbors,
            delta,
            epsilon,
            requested,
            remark: family.remark(Algorithm::FrankWolfe, is_chosen),
        })
    }

    fn parameters(&self) -> usize {
        self.network.parameters()
    }

    fn cost(&self) -> PlannedCost {
        let Self { epsilon, delta, neighbors, requested, .. } = *self;
        PlannedCost { epsilon, delta, neighbors, requested }
    }

    fn mechanism(&self) -> (Selection, u64) {
        (self.selection, self.steps)
    }

    fn spent_after(&self, runs: u64) -> Result<f64, Error> {
        privacy::spent_after(&self.selection, runs, self.neighbors, self.delta)
    }

    fn records(&self) -> u64 {
        self.records
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("method", json!(Algorithm::FrankWolfe.name())),
            ("steps", json!(self.steps)),
            ("largest sum of absolute weights", json!(self.radius)),
            ("candidates of a step", json!(self.selection.candidates)),
            ("ε of a step", json!(self.selection.epsilon.get())),
            ("loss", json!(self.loss)),
        ]
    }

    fn remarks(&self) -> Vec<String> {
        self.remark.iter().cloned().collect()
    }

    fn releases(&self) -> &'static str {
        "the corner that each step moves to"
    }

    fn check(&self, _: &Terms, examples: &Examples) -> Result<(), Error> {
        check_examples(examples, &self.columns, self.classes)
    }

    fn task<'a>(&self, examples: &'a Examples, unit: Unit) -> Result<Supervised<'a>, Error> {
        Supervised::new(examples, self.loss, None).protecting(unit, self.neighbors, self.records)
    }

    fn state(&self, saved: Option<&[u8]>) -> Result<Weights, Error> {
        Weights::new(self.parameters(), saved)
    }

    fn fit<B: Book>(
        &self,
        mut lease: Lease<'_, Selection, B>,
        task: &mut Supervised<'_>,
        state: &mut Weights,
        mut watch: impl FnMut(&Weights) -> Result<Control, Error>,
    ) -> Result<(), Error> {
        // The sensitivity of a selection is that of the planned relation.
        crate::terms::check_lease(&mut lease, task.unit(), self.neighbors)?;
        while let Some(paid) = lease.next() {
            let (paid, step) = (paid?, lease.position() - 1);
            let slopes = self.slopes(task, &state.values);
            let signed = |sign: f64| slopes.iter().map(move |slope| sign * slope);
            let utilities = Sensitive::new(signed(-1.0).chain(signed(1.0)).collect());
            let corner = paid.run(&utilities)?;
            let (place, sign) = (corner % slopes.len(), if corner < slopes.len() { 1.0 } else { -1.0 });
            let rate = 2.0 / (step as f64 + 2.0);
            state.values.iter_mut().for_each(|weight| *weight *= 1.0 - rate);
            state.values[place] += rate * sign * self.radius;
            state.advance(step);
            match watch(state)? {
                Control::Stop => return Ok(()),
                Control::Saved => lease.confirm()?,
                Control::Continue => {}
            }
        }
        Ok(())
    }

    fn model(&self, state: &Weights) -> Predictor {
        let weights = state.values.iter().map(|weight| *weight as f32).collect();
        Predictor::network_of(Arc::clone(&self.network), weights, self.loss)
    }
}

impl FrankWolfe {
    /// The slopes of the sum of all losses by each weight. One record moves each by at most one.
    ///
    /// Contributions are clamped to [-1, 1] and rounded towards zero on a grid. Sums of grid steps are exact, so they do
    /// not depend on the order of the records.
    fn slopes(&self, task: &Supervised<'_>, weights: &[f64]) -> Vec<f64> {
        let (width, outputs) = (self.columns.width(), weights.len() / (self.columns.width() + 1));
        let start = || Sum {
            total: vec![0; weights.len()],
            own: vec![0.0; weights.len()],
            example: vec![0.0; width],
            scores: vec![0.0; outputs],
            gradient: vec![0.0; outputs],
        };
        let add = |mut sum: Sum, record: usize| {
            let examples = task.examples(record);
            sum.own.fill(0.0);
            for number in 0..examples {
                task.gather(record, number, &mut sum.example);
                for (output, score) in sum.scores.iter_mut().enumerate() {
                    let row = &weights[output * width..][..width];
                    let dot: f64 = row.iter().zip(&sum.example).map(|(w, x)| w * f64::from(*x)).sum();
                    *score = (dot + weights[outputs * width + output]) as f32;
                }
                let target = task.target_of(record, number);
                self.loss.loss_and_gradient(&sum.scores, target, &mut sum.gradient);
                for (output, slope) in sum.gradient.iter().enumerate() {
                    let slope = f64::from(slope.clamp(-1.0, 1.0)) / examples as f64;
                    let row = &mut sum.own[output * width..][..width];
                    row.iter_mut().zip(&sum.example).for_each(|(own, x)| *own += slope * f64::from(*x));
                    sum.own[outputs * width + output] += slope;
                }
            }
            for (total, own) in sum.total.iter_mut().zip(&sum.own) {
                *total += i128::from(parts(*own, 1.0));
            }
            sum
        };
        let sums = (0..task.records()).into_par_iter().fold(start, add).map(|sum| sum.total);
        let zeros = || vec![0_i128; weights.len()];
        let sums = sums.reduce(zeros, |mut a, b| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            a
        });
        sums.into_iter().map(|sum| number(sum, 1.0)).collect()
    }
}

/// The sum of a thread, and its buffers.
struct Sum {
    total: Vec<i128>,
    own: Vec<f64>,
    example: Vec<f32>,
    scores: Vec<f32>,
    gradient: Vec<f32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        data::{Schema, Targets},
        learner::PublicFacts,
        random::PublicRandom,
    };

    fn method(width: usize, classes: usize) -> FrankWolfe {
        let mut recipe = Recipe { records: Some(50), ..Recipe::default() };
        recipe.privacy.epsilon = Some(1.0);
        let facts = PublicFacts { records: None, classes: Some(classes) };
        let subject = Subject { shape: &[width], are_features: false, facts, schema: None::<&Schema> };
        FrankWolfe::plan(&mut recipe, &mut Architecture::default(), &subject).unwrap()
    }

    /// Examples of random values, some of them far outside of the declared bounds or not numbers.
    fn examples(chance: &mut PublicRandom, width: usize, classes: usize) -> Vec<(Vec<f32>, u32)> {
        let values = [0.3, -1.0, 1.0, 1e30, -5.0, 0.0, f32::MAX, 1e-40];
        (0..=chance.below(40))
            .map(|_| {
                let row = (0..width).map(|_| values[chance.below(values.len())]).collect();
                (row, chance.below(classes) as u32)
            })
            .collect()
    }

    fn of(rows: &[(Vec<f32>, u32)], width: usize, classes: usize) -> Examples {
        let values = rows.iter().flat_map(|(row, _)| row.clone()).collect();
        let labels = rows.iter().map(|(_, label)| *label).collect();
        let names = (0..classes).map(|class| class.to_string()).collect();
        Examples::numbers(&[width], values, Targets::Classes { labels, names }).unwrap()
    }

    #[test]
    fn one_record_moves_each_slope_by_at_most_one_and_some_by_one() {
        let mut most = 0.0_f64;
        for case in 0..200 {
            let mut chance = PublicRandom::of(5, case);
            let (width, classes) = (1 + chance.below(5), 2 + chance.below(3));
            let method = method(width, classes);
            let rows = examples(&mut chance, width, classes);
            let weights: Vec<f64> =
                (0..method.parameters()).map(|_| 9.0 * f64::from(chance.normal())).collect();
            let slopes = |rows: &[(Vec<f32>, u32)]| {
                let examples = of(rows, width, classes);
                let task = method.task(&examples, Unit::Example).unwrap();
                method.slopes(&task, &weights)
            };
            let (with, without) = (slopes(&rows), slopes(&rows[1..]));
            for (a, b) in with.iter().zip(&without) {
                assert!((a - b).abs() <= 1.0, "case {case}: {a} {b}");
                most = most.max((a - b).abs());
            }
        }
        assert!(most > 0.99, "{most}");
    }
}
