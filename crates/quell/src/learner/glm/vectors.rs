//! The vector of each record in each stage: its values, its deviations, products of them, or its gradient.

use quell_privacy::mechanism::{Clipper, Contributions};
use rayon::prelude::*;

use super::{Family, Plan, Standardization, plan::Stage, standardization::limit, state::mean_count};
use crate::{
    kernel::{
        fast,
        numbers::{add_scaled, add_totals, add_wide, dot, squared_length},
    },
    layer::{Layer, Standardize},
    learner::{Supervised, loss::Target},
    network::Task,
};

/// The vectors of all records in one stage.
///
/// The vector of an example is an outer product: a left factor with one number for each output, times a right
/// factor with one number for each feature, and where the stage has biases, the left factor times a constant.
/// A record with several examples has the mean of their vectors.
pub(super) struct Vectors<'a> {
    plan: &'a Plan,
    records: &'a Supervised<'a>,
    stage: Stage,
    standardization: &'a Standardization,
    layer: Standardize,
    constants: Vec<f32>,
    /// The weights at which gradients are computed, and those of the reference.
    weights: [&'a [f32]; 2],
    shape: Shape,
}

/// The numbers of a vector.
#[derive(Clone, Copy)]
struct Shape {
    left: usize,
    right: usize,
    has_biases: bool,
}

impl Shape {
    fn new(plan: &Plan, stage: Stage) -> Self {
        let (width, targets) = (plan.columns.width(), usize::from(plan.classes.is_none()));
        match stage {
            Stage::Means | Stage::Deviations => Self { left: 1, right: width + targets, has_biases: false },
            Stage::Moments => Self { left: width + 1 + targets, right: width, has_biases: true },
            Stage::Gradient | Stage::Reference | Stage::Correction => {
                Self { left: plan.outputs(), right: width, has_biases: true }
            }
        }
    }

    fn numbers(self) -> usize {
        self.left * (self.right + usize::from(self.has_biases))
    }
}

/// The buffers of one thread.
struct Buffers {
    raw: Vec<f32>,
    left: Vec<f32>,
    right: Vec<f32>,
    scores: Vec<f32>,
    other: Vec<f32>,
    /// The vector of a record with several examples.
    own: Vec<f32>,
    /// The sum of a block, in single precision.
    block: Vec<f32>,
    /// The sum of all blocks, in double precision.
    total: Vec<f64>,
}

impl<'a> Vectors<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        records: &'a Supervised<'a>,
        stage: Stage,
        standardization: &'a Standardization,
        weights: [&'a [f32]; 2],
    ) -> Self {
        let layer = Standardize::new(limit(plan.classes) as f32, vec![plan.columns.width()]);
        let constants = standardization.weights(plan);
        Self {
            plan,
            records,
            stage,
            standardization,
            layer,
            constants,
            weights,
            shape: Shape::new(plan, stage),
        }
    }

    fn buffers(&self) -> Buffers {
        let Shape { left, right, .. } = self.shape;
        let numbers = self.shape.numbers();
        Buffers {
            raw: vec![0.0; self.plan.columns.width()],
            left: vec![0.0; left],
            right: vec![0.0; right],
            scores: vec![0.0; left],
            other: vec![0.0; left],
            own: vec![0.0; if self.records.is_grouped() { numbers } else { 0 }],
            block: vec![0.0; numbers],
            total: vec![0.0; numbers],
        }
    }

    /// Adds the clipped vectors of a block to the total of a thread.
    fn add_block(&self, block: &[usize], clipper: &Clipper, buffers: &mut Buffers) {
        buffers.block.fill(0.0);
        fast(
            #[inline(always)]
            || {
                for record in block {
                    self.add_record(*record, clipper, buffers);
                }
            },
        );
        add_wide(&mut buffers.total, &buffers.block);
    }

    /// Adds the clipped vector of a record to the sum of its block.
    #[inline(always)]
    fn add_record(&self, record: usize, clipper: &Clipper, buffers: &mut Buffers) {
        let mut scale = [0.0];
        let examples = self.records.examples(record);
        if self.records.is_grouped() {
            buffers.own.fill(0.0);
            for number in 0..examples {
                let right = self.factors(record, number, buffers);
                let Buffers { left, right: features, own, .. } = buffers;
                self.shape.add(own, 1.0 / examples as f32, left, features, right.constant);
            }
            clipper.scales(&[squared_length(&buffers.own)], &mut scale);
            // Zero times a number that is not finite is not zero.
            if scale[0] != 0.0 {
                add_scaled(&mut buffers.block, scale[0], &buffers.own);
            }
        } else if examples == 0 {
            clipper.scales(&[0.0], &mut scale);
        } else {
            let right = self.factors(record, 0, buffers);
            let Buffers { left, right: features, block, .. } = buffers;
            clipper.scales(&[squared_length(left) * right.squared_length()], &mut scale);
            if scale[0] != 0.0 {
                self.shape.add(block, scale[0], left, features, right.constant);
            }
        }
    }

    /// Writes the factors of an example's vector.
    #[inline(always)]
    fn factors(&self, record: usize, number: usize, buffers: &mut Buffers) -> Right {
        let Buffers { raw, left, right, scores, other, .. } = buffers;
        self.records.gather(record, number, raw);
        let target = self.records.target_of(record, number);
        if matches!(self.stage, Stage::Means | Stage::Deviations) {
            left.fill(1.0);
            let target = match target {
                Target::Number(number) => Some(number),
                Target::Class(_) => None,
            };
            for (feature, (to, x)) in right.iter_mut().zip(raw.iter().copied().chain(target)).enumerate() {
                *to = self.value(feature, x);
            }
            return Right { features: squared_length(right), constant: 0.0 };
        }
        self.layer.forward(&self.constants, raw, right, &mut [], &[]);
        let features = squared_length(right);
        let shrunk = features.sqrt().max(1.0).recip();
        let constant = self.standardization.radius.recip();
        if self.stage == Stage::Moments {
            return self.products(target, left, right, Right { features, constant: constant as f32 });
        }
        // Either unusually long examples are shortened, or only their gradients.
        let [length, weight] = if self.plan.bounds_lengths() { [shrunk, 1.0] } else { [1.0, shrunk] };
        self.derivatives(target, self.weights[0], (right, length), scores, left);
        if self.stage == Stage::Correction {
            self.derivatives(target, self.weights[1], (right, length), scores, other);
            left.iter_mut().zip(other).for_each(|(own, other)| *own -= *other);
        }
        // The left factor has the length of the example, and the constant is divided by it.
        let factor = (self.plan.scale(self.stage) * weight * length) as f32;
        for slope in &mut *left {
            *slope *= factor;
        }
        Right { features, constant: (constant / length) as f32 }
    }

    /// The number that a value contributes to means or deviations. The target is the last feature.
    fn value(&self, feature: usize, x: f32) -> f32 {
        let (columns, constants) = (&self.plan.columns, self.standardization);
        if self.stage == Stage::Means {
            return self.plan.scale(Stage::Means) as f32 * x;
        }
        let is_target = feature == columns.width();
        if !is_target && columns.is_indicator(feature) {
            return 0.0;
        }
        let centre = if is_target { constants.target[0] } else { constants.centres[feature] };
        self.plan.scale(Stage::Deviations) as f32 * (x - centre as f32).abs().min(1.0)
    }

    /// The numeric target in units of its spread.
    fn number(&self, target: Target) -> f64 {
        let [centre, spread] = self.standardization.target;
        match target {
            Target::Number(number) => {
                let most = limit(self.plan.classes);
                ((f64::from(number) - centre) / spread).clamp(-most, most)
            }
            Target::Class(_) => f64::NAN,
        }
    }

    /// Writes the left factor of all products: the example, the constant feature, and a numeric target.
    ///
    /// With a numeric target, unusually long examples count less: their products have length at most one.
    fn products(&self, target: Target, left: &mut [f32], right: &[f32], mut of_right: Right) -> Right {
        let part = f64::from(of_right.constant);
        let (example, rest) = left.split_at_mut(right.len());
        example.copy_from_slice(right);
        let weight = if let [constant, place] = rest {
            let number = part * self.number(target);
            (*constant, *place) = (part as f32, number as f32);
            (of_right.features + number * number).max(1.0).recip()
        } else {
            // Both factors have the length one at most. The constant is divided by what shortens the example.
            let shrunk = of_right.features.sqrt().max(1.0).recip();
            of_right.constant = (part / shrunk) as f32;
            rest.fill(of_right.constant);
            shrunk * shrunk
        };
        for x in &mut *left {
            *x *= weight as f32;
        }
        of_right
    }

    /// Writes the derivatives of the loss by the scores, in units of the spread of a numeric target.
    ///
    /// The example is multiplied by `length`.
    #[inline(always)]
    fn derivatives(
        &self,
        target: Target,
        weights: &[f32],
        (example, length): (&[f32], f64),
        scores: &mut [f32],
        slopes: &mut [f32],
    ) {
        let (plan, constants) = (self.plan, self.standardization);
        let (matrix, biases) = weights.split_at(scores.len() * example.len());
        let count = mean_count(constants.target[0]);
        let (target, offset) = match plan.family {
            Family::Linear | Family::Ridge | Family::Quantile => {
                (Target::Number(self.number(target) as f32), 0.0)
            }
            Family::Poisson => (target, count.ln() as f32),
            Family::Logistic | Family::Svm => (target, 0.0),
        };
        let part = constants.radius.recip() as f32;
        for ((score, row), bias) in scores.iter_mut().zip(matrix.chunks_exact(example.len())).zip(biases) {
            *score = length as f32 * dot(row, example) + bias * part + offset;
        }
        plan.loss.loss_and_gradient(scores, target, slopes);
        // Residuals of counts are relative to their mean.
        if plan.family == Family::Poisson {
            for slope in &mut *slopes {
                *slope /= count as f32;
            }
        }
    }
}

/// What is known about the right factor of a vector.
#[derive(Clone, Copy)]
struct Right {
    /// The squared length of the features.
    features: f64,
    /// The input of the biases.
    constant: f32,
}

impl Right {
    fn squared_length(self) -> f64 {
        self.features + f64::from(self.constant) * f64::from(self.constant)
    }
}

impl Shape {
    /// Adds the scaled outer product of two factors to a sum, and then the biases.
    #[inline(always)]
    fn add(self, sum: &mut [f32], scale: f32, left: &[f32], right: &[f32], constant: f32) {
        let (matrix, biases) = sum.split_at_mut(self.left * self.right);
        for (row, factor) in matrix.chunks_exact_mut(self.right).zip(left) {
            add_scaled(row, scale * factor, right);
        }
        if self.has_biases {
            add_scaled(biases, scale * constant, left);
        }
    }
}

impl Contributions for Vectors<'_> {
    fn dimension(&self) -> usize {
        self.plan.descent.dimension
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]) {
        let threads = rayon::current_num_threads().clamp(1, blocks.len().max(1));
        let share = blocks.len().div_ceil(threads).max(1);
        let totals: Vec<Vec<f64>> = blocks
            .par_chunks(share)
            .map(|blocks| {
                let mut buffers = self.buffers();
                for block in blocks {
                    self.add_block(block, clipper, &mut buffers);
                }
                buffers.total
            })
            .collect();
        // In the order of the blocks, whichever thread is first.
        for total in &*totals {
            add_totals(&mut sum[..self.shape.numbers()], total);
        }
    }
}

#[cfg(test)]
mod tests {
    use quell_privacy::{laws, ledger::Unit};

    use super::*;
    use crate::{
        data::{Examples, Schema, Targets},
        learner::{
            Method, PublicFacts, Subject,
            glm::{Algorithm, Glm, Recipe, State},
        },
        network::Architecture,
        random::PublicRandom,
    };

    const COLUMNS: &str = "[[column]]\nname = 'a'\nbounds = [0, 1]\n[[column]]\nname = 'b'\nbounds = [0, 1]\n\
         [[column]]\nname = 'c'\ncategories = ['x', 'y', 'z']\n";

    /// The contract of contributions, in every stage of every algorithm that takes steps, for classes, numbers and users.
    #[test]
    fn vectors_keep_the_contract_of_contributions() {
        let (records, mut chance) = (40, PublicRandom::of(3, 1));
        for label in ["classes = ['n', 'p']", "classes = ['n', 'p', 'q']", "bounds = [0, 5]"] {
            let schema = Schema::parse(&format!("[label]\ncolumn = 'y'\n{label}\n{COLUMNS}")).unwrap();
            let names = schema.label.as_ref().and_then(|label| label.classes.clone());
            let classes = names.as_ref().map(Vec::len);
            let values = (0..5 * records).map(|_| [0.4, -1.0, 1.0, 0.0, 1e30][chance.below(5)]).collect();
            let targets = match &names {
                Some(names) => Targets::Classes {
                    labels: (0..records).map(|_| chance.below(names.len()) as u32).collect(),
                    names: names.clone(),
                },
                None => Targets::Numbers((0..records).map(|_| chance.between(-1.0, 1.0)).collect()),
            };
            let users: Vec<_> = (0..records).map(|_| Some([chance.below(15) as u8])).collect();
            let examples = Examples::numbers(&[5], values, targets).unwrap().with_users(&users).unwrap();
            let methods = [
                Algorithm::Standardized,
                Algorithm::Newton,
                Algorithm::Svrg,
                Algorithm::NoisyGd,
                Algorithm::NoisySgd,
                Algorithm::Sgld,
                Algorithm::Adassp,
            ];
            let units = [Unit::Example, Unit::User];
            let cases = methods.into_iter().flat_map(|method| units.map(|unit| (method, unit)));
            // AdaSSP has no model for classes.
            for (method, unit) in
                cases.filter(|(method, _)| *method != Algorithm::Adassp || classes.is_none())
            {
                let mut recipe = Recipe { method, records: Some(40), ..Recipe::default() };
                recipe.privacy.epsilon = Some(1.0);
                let facts = PublicFacts { records: None, classes };
                let subject = Subject { shape: &[5], are_features: false, facts, schema: Some(&schema) };
                let glm = Glm::plan(&mut recipe, &mut Architecture::default(), &subject).unwrap();
                let task = glm.task(&examples, unit).unwrap();
                let mut state = State::new(&glm.plan).unwrap();
                let standardization = state.standardization(&glm.plan);
                let mut weights = state.weights();
                weights.iter_mut().flatten().for_each(|weight| *weight = chance.normal());
                let [own, anchor] = &weights;
                for (stage, _) in &glm.plan.stages {
                    let mut vectors = Vectors::new(&glm.plan, &task, *stage, &standardization, [own, anchor]);
                    let all: Vec<usize> = (0..task.records()).collect();
                    let kept = laws::check_contributions(&mut vectors, &all);
                    assert_eq!(kept, Ok(()), "{method:?} {unit:?} {stage:?} {label}");
                }
            }
        }
    }
}
