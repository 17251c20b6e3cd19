//! The vector of each record in each stage: its values, its deviations, products of them, or its gradient.

use quell_privacy::mechanism::{Clipper, Contributions};

use super::{
    Plan, Standardization,
    compact::{CompactExample, CompactRecords},
    encoding::{Encoding, PackedWeights, Sums},
    stages::Stage,
    standardization::limit,
    state::mean_count,
};
use crate::{
    kernel::{
        fast,
        numbers::{add_scaled, add_totals, add_wide, squared_length},
    },
    learner::{
        blocks::add_blocks,
        loss::{Loss, Target},
    },
};

/// The vectors of all records in one stage.
///
/// The vector of an example is an outer product: a left factor with one number for each output, times a right
/// factor with one number for each feature, and where the stage has biases, the left factor times a constant.
/// A record with several examples has the mean of their vectors.
///
/// # Theorem
/// The clauses of the contract of [`Contributions`] hold:
///
/// 1. *Length.* An outer product is as long as the product of the lengths of its factors, and the constant is
///    one more number of the right factor. The mean of several vectors is measured as it is.
/// 2. *One record.* A vector follows from the features of its record, and from centres, spreads and weights that
///    follow from released sums alone. So does the value of a category that is absent.
/// 3. *Scale zero.* A vector whose scale is zero is not added, so it may be infinite or NaN.
/// 4. *Precision.* Numbers of a block are added in single precision, in the order of its records. Sums of
///    categories are added in double precision, and only categories of the block have one. `add_blocks` deals
///    blocks to threads by their position.
pub(super) struct Vectors<'a> {
    plan: &'a Plan,
    records: &'a CompactRecords,
    /// Whether a record may have several examples.
    is_grouped: bool,
    stage: Stage,
    standardization: &'a Standardization,
    encoding: Encoding<'a>,
    /// The weights at which gradients are computed, and those of the reference.
    weights: [PackedWeights; 2],
}

/// The buffers of one thread.
struct Buffers {
    /// The numbers of an example, standardised.
    right: Vec<f32>,
    left: Vec<f32>,
    scores: Vec<f32>,
    other: Vec<f32>,
    sums: Sums,
    /// A sum of outer products as one vector.
    vector: Vec<f64>,
    /// All features of an example.
    dense: Vec<f32>,
    /// The vector of a record with several examples.
    own: Vec<f32>,
    /// The sum of a block, in single precision.
    block: Vec<f32>,
    /// The sum of all blocks, in double precision.
    total: Vec<f64>,
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

impl<'a> Vectors<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        (records, is_grouped): (&'a CompactRecords, bool),
        stage: Stage,
        standardization: &'a Standardization,
        weights: [&[f32]; 2],
    ) -> Self {
        let encoding = Encoding::new(plan, records, stage, standardization);
        let weights = match stage {
            Stage::Means | Stage::Deviations | Stage::Moments => {
                [PackedWeights::default(), PackedWeights::default()]
            }
            Stage::Gradient | Stage::Reference | Stage::Calibration => {
                [encoding.pack(weights[0]), PackedWeights::default()]
            }
            Stage::Correction => weights.map(|weights| encoding.pack(weights)),
        };
        Self { plan, records, is_grouped, stage, standardization, encoding, weights }
    }

    /// Number of numbers in the vector of a record.
    fn length(&self) -> usize {
        match (self.stage, self.plan.calibration) {
            (Stage::Calibration, Some(calibration)) => calibration.length(),
            _ => self.encoding.vector_length(),
        }
    }

    /// Whether the vectors of a block are added up number by number.
    fn is_dense(&self) -> bool {
        self.is_grouped || matches!(self.stage, Stage::Moments | Stage::Calibration)
    }

    fn buffers(&self) -> Buffers {
        let lanes = self.encoding.lanes();
        let numbers = self.length();
        let is_moments = self.stage == Stage::Moments;
        let is_dense = self.is_dense();
        let left = if is_moments { self.encoding.outputs } else { lanes };
        Buffers {
            right: vec![0.0; self.encoding.numbers()],
            left: vec![0.0; left],
            scores: vec![0.0; lanes],
            other: vec![0.0; lanes],
            sums: if is_moments { Sums::default() } else { self.encoding.sums() },
            vector: vec![0.0; if is_moments { 0 } else { numbers }],
            dense: vec![0.0; if is_moments { self.plan.columns.width() } else { 0 }],
            own: vec![0.0; if is_dense { numbers } else { 0 }],
            block: vec![0.0; if is_dense { numbers } else { 0 }],
            total: vec![0.0; numbers],
        }
    }

    /// Adds the clipped vectors of a block to the total of a thread.
    fn add_block(&self, block: &[usize], clipper: &Clipper, buffers: &mut Buffers) {
        buffers.block.fill(0.0);
        buffers.sums.clear();
        fast(
            #[inline(always)]
            || {
                for record in block {
                    if self.is_grouped || self.stage == Stage::Calibration {
                        self.add_group(*record, clipper, buffers);
                    } else {
                        self.add_single(*record, clipper, buffers);
                    }
                }
            },
        );
        if self.is_dense() {
            add_wide(&mut buffers.total, &buffers.block);
        } else {
            self.encoding.combine(&buffers.sums, &mut buffers.vector);
            add_totals(&mut buffers.total, &buffers.vector);
        }
    }

    /// Adds the clipped vector of a record with at most one example to the sum of its block.
    #[inline(always)]
    fn add_single(&self, record: usize, clipper: &Clipper, buffers: &mut Buffers) {
        let mut scale = [0.0];
        let Some(example) = self.records.examples(record).next() else {
            return clipper.scales(&[0.0], &mut scale);
        };
        // No closure: code in one is not compiled for the vector instructions of this machine.
        let example = self.records.example(example);
        let right = self.factors(example, buffers);
        let Buffers { left, right: numbers, sums, dense, block, .. } = buffers;
        clipper.scales(&[squared_length(left) * right.squared_length()], &mut scale);
        // Zero times a number that is not finite is not zero.
        if scale[0] != 0.0 {
            if self.stage == Stage::Moments {
                add_products(block, scale[0], left, dense, right.constant);
            } else {
                sums.add(scale[0], left, numbers, example.indicator_values, right.constant);
            }
        }
    }

    /// Adds the clipped mean of the vectors of a record's examples to the sum of its block.
    #[inline(always)]
    fn add_group(&self, record: usize, clipper: &Clipper, buffers: &mut Buffers) {
        let (mut scale, examples) = ([0.0], self.records.examples(record));
        buffers.own.fill(0.0);
        buffers.sums.clear();
        let fraction = 1.0 / examples.len() as f32;
        for example in examples {
            let example = self.records.example(example);
            if self.stage == Stage::Calibration {
                self.add_outputs(example, fraction, buffers);
                continue;
            }
            let right = self.factors(example, buffers);
            let Buffers { left, right: numbers, sums, dense, own, .. } = buffers;
            if self.stage == Stage::Moments {
                add_products(own, fraction, left, dense, right.constant);
            } else {
                sums.add(fraction, left, numbers, example.indicator_values, right.constant);
            }
        }
        if !matches!(self.stage, Stage::Moments | Stage::Calibration) {
            self.encoding.combine(&buffers.sums, &mut buffers.vector);
            buffers.own.iter_mut().zip(&buffers.vector).for_each(|(own, x)| *own = *x as f32);
        }
        clipper.scales(&[squared_length(&buffers.own)], &mut scale);
        if scale[0] != 0.0 {
            add_scaled(&mut buffers.block, scale[0], &buffers.own);
        }
    }

    /// Adds what the fitted model says about an example, and its target, to the vector of its record.
    fn add_outputs(&self, example: CompactExample<'_>, fraction: f32, buffers: &mut Buffers) {
        let Buffers { right, scores, own, .. } = buffers;
        let features = self.encoding.encode(example, right);
        let length = if self.plan.bounds_lengths() { features.sqrt().max(1.0).recip() } else { 1.0 };
        self.scores(example, &self.weights[0], (right, length), scores);
        if let Loss::Squared | Loss::Huber { .. } = self.plan.loss {
            let [centre, spread] = self.standardization.target;
            scores[0] = (centre + spread * f64::from(scores[0])) as f32;
        }
        if let Some(calibration) = self.plan.calibration {
            calibration.add(&scores[..self.encoding.outputs], example.target, fraction, own);
        }
    }

    /// Writes the factors of an example's vector.
    #[inline(always)]
    fn factors(&self, example: CompactExample<'_>, buffers: &mut Buffers) -> Right {
        let Buffers { right, left, scores, other, dense, .. } = buffers;
        let features = self.encoding.encode(example, right);
        if matches!(self.stage, Stage::Means | Stage::Deviations) {
            left.fill(1.0);
            return Right { features, constant: 0.0 };
        }
        let shrunk = features.sqrt().max(1.0).recip();
        let constant = self.standardization.usual_length.recip();
        if self.stage == Stage::Moments {
            self.encoding.expand(example, right, dense);
            return self.products(example.target, left, dense, Right { features, constant: constant as f32 });
        }
        // Either unusually long examples are shortened, or only their gradients.
        let [length, weight] = if self.plan.bounds_lengths() { [shrunk, 1.0] } else { [1.0, shrunk] };
        self.derivatives(example, &self.weights[0], (right, length), scores, left);
        if self.stage == Stage::Correction {
            self.derivatives(example, &self.weights[1], (right, length), scores, other);
            left.iter_mut().zip(other).for_each(|(own, other)| *own -= *other);
        }
        // The left factor has the length of the example, and the constant is divided by it.
        let factor = (self.plan.scale(self.stage) * weight * length) as f32;
        for slope in &mut *left {
            *slope *= factor;
        }
        Right { features, constant: (constant / length) as f32 }
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

    /// Writes the scores of an example, in units of the spread of a numeric target.
    ///
    /// The example is multiplied by `length`.
    #[inline(always)]
    fn scores(
        &self,
        example: CompactExample<'_>,
        weights: &PackedWeights,
        (numbers, length): (&[f32], f64),
        scores: &mut [f32],
    ) {
        let constants = self.standardization;
        let offset = match self.plan.loss {
            Loss::Poisson => mean_count(constants.target[0]).ln() as f32,
            _ => 0.0,
        };
        weights.scores(numbers, example.indicator_values, scores);
        let (part, length) = (constants.usual_length.recip() as f32, length as f32);
        for (score, bias) in scores.iter_mut().zip(&weights.biases) {
            *score = length * *score + bias * part + offset;
        }
    }

    /// Writes the derivatives of the loss by the scores, in units of the spread of a numeric target.
    ///
    /// The example is multiplied by `length`.
    #[inline(always)]
    fn derivatives(
        &self,
        example: CompactExample<'_>,
        weights: &PackedWeights,
        (numbers, length): (&[f32], f64),
        scores: &mut [f32],
        slopes: &mut [f32],
    ) {
        let plan = self.plan;
        let target = match plan.loss {
            Loss::Squared | Loss::Huber { .. } | Loss::Pinball { .. } => {
                Target::Number(self.number(example.target) as f32)
            }
            Loss::Poisson | Loss::CrossEntropy { .. } | Loss::BinaryCrossEntropy | Loss::Hinge { .. } => {
                example.target
            }
        };
        self.scores(example, weights, (numbers, length), scores);
        let outputs = self.encoding.outputs;
        plan.loss.gradient(&scores[..outputs], target, &mut slopes[..outputs]);
        // Residuals of counts are relative to their mean.
        if plan.loss == Loss::Poisson {
            let count = mean_count(self.standardization.target[0]);
            for slope in &mut *slopes {
                *slope /= count as f32;
            }
        }
    }
}

/// Adds the scaled outer product of two factors to a sum, and then the biases.
fn add_products(sum: &mut [f32], scale: f32, left: &[f32], right: &[f32], constant: f32) {
    let (matrix, biases) = sum.split_at_mut(left.len() * right.len());
    for (row, factor) in matrix.chunks_exact_mut(right.len()).zip(left) {
        add_scaled(row, scale * factor, right);
    }
    add_scaled(biases, scale * constant, left);
}

impl Contributions for Vectors<'_> {
    fn dimension(&self) -> usize {
        self.plan.descent.dimension
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]) {
        add_blocks(blocks, sum, |blocks| {
            let mut buffers = self.buffers();
            for block in blocks {
                self.add_block(block, clipper, &mut buffers);
            }
            buffers.total
        });
    }
}

#[cfg(test)]
mod tests {
    use quell_privacy::{laws, ledger::Unit};

    use super::*;
    use crate::{
        data::{Examples, Schema, Targets},
        learner::{
            Method, PublicFacts, Subject, Supervised,
            glm::{Algorithm, Glm, Recipe, State},
        },
        network::{Architecture, Task},
        random::PublicRandom,
    };

    const COLUMNS: &str = "[[column]]\nname = 'a'\nbounds = [0, 1]\n[[column]]\nname = 'b'\nbounds = [0, 1]\n\
         [[column]]\nname = 'c'\ncategories = ['x', 'y', 'z']\n";

    /// A state after random releases of means and deviations, so that absent categories have values, too.
    fn standardized(plan: &Plan, chance: &mut PublicRandom) -> State {
        let mut state = State::new(plan).unwrap();
        let before =
            plan.stages.iter().filter(|(stage, _)| matches!(stage, Stage::Means | Stage::Deviations));
        for step in 0..before.map(|(_, steps)| steps).sum::<u64>() {
            let released: Vec<f32> = (0..plan.descent.dimension).map(|_| chance.between(0.0, 20.0)).collect();
            state.apply(plan, &released, step).unwrap();
        }
        state
    }

    /// The records as a stage reads them.
    fn compact(
        glm: &Glm,
        task: &Supervised<'_>,
        stage: Stage,
        constants: &Standardization,
    ) -> CompactRecords {
        let records = CompactRecords::new(task, &glm.plan.columns);
        match &glm.plan.forest {
            Some(trees) if stage.has_scores() => {
                records.with_leaves(task, trees, &glm.plan.thresholds(constants))
            }
            _ => records,
        }
    }

    /// Scores during training are those of the finished model, so gradients are those of its loss.
    #[test]
    fn scores_in_training_are_those_of_the_model() {
        let mut chance = PublicRandom::of(4, 1);
        for (label, name) in [
            ("classes = ['n', 'p']", "additive"),
            ("classes = ['n', 'p']", "logistic"),
            ("classes = ['n', 'p', 'q']", "additive"),
            ("classes = ['n', 'p']", "forest"),
            ("classes = ['n', 'p', 'q']", "forest"),
        ] {
            let schema = Schema::parse(&format!("[label]\ncolumn = 'y'\n{label}\n{COLUMNS}")).unwrap();
            let names = schema.label.as_ref().and_then(|label| label.classes.clone()).unwrap();
            let (classes, records) = (names.len(), 30);
            let row = |chance: &mut PublicRandom| {
                let mut row = [chance.between(-1.0, 1.0), chance.between(-1.0, 1.0), 0.0, 0.0, 0.0];
                // One of three categories, or none.
                let category = chance.below(4);
                row.iter_mut().skip(2).nth(category).into_iter().for_each(|place| *place = 1.0);
                row
            };
            let values = (0..records).flat_map(|_| row(&mut chance)).collect();
            let labels = (0..records).map(|_| chance.below(classes) as u32).collect();
            let examples = Examples::numbers(&[5], values, Targets::Classes { labels, names }).unwrap();
            let mut recipe = Recipe { records: Some(1_000), ..Recipe::default() };
            recipe.privacy.epsilon = Some(3.0);
            let facts = PublicFacts { records: None, classes: Some(classes) };
            let subject = Subject { shape: &[5], are_features: false, facts, schema: Some(&schema) };
            let mut architecture = Architecture { name: Some(name.into()), ..Architecture::default() };
            let glm = Glm::plan(&mut recipe, &mut architecture, &subject).unwrap();
            assert_eq!(glm.plan.waves.is_empty(), name == "logistic");
            let mut state = State::new(&glm.plan).unwrap();
            let before: u64 = glm.plan.stages.iter().take(2).map(|(_, steps)| steps).sum();
            for step in 0..=before {
                let released: Vec<f32> =
                    (0..glm.plan.descent.dimension).map(|_| 300.0 * chance.between(-1.0, 1.0)).collect();
                state.apply(&glm.plan, &released, step).unwrap();
            }
            let standardization = state.standardization(&glm.plan);
            let (task, [weights, _]) =
                (glm.task(&examples, Unit::Example).unwrap(), state.weights(&glm.plan, Stage::Gradient));
            let records = compact(&glm, &task, Stage::Gradient, &standardization);
            let vectors = Vectors::new(
                &glm.plan,
                (&records, false),
                Stage::Gradient,
                &standardization,
                [&weights, &[]],
            );
            let mut buffers = vectors.buffers();
            let scores = glm.model(&state).scores(&examples);
            for (record, scores) in scores.iter().enumerate() {
                vectors.factors(records.example(record), &mut buffers);
                let own = glm.plan.loss.scores(&buffers.scores[..glm.plan.outputs()]);
                let close = scores.iter().zip(&own).all(|(a, b)| (a - b).abs() < 1e-4);
                assert!(close && scores.len() == classes, "{label} {name}: {scores:?} {own:?}");
                let spread = own.iter().fold(0.0_f32, |most, p| most.max((p - own[0]).abs()));
                assert!(spread > 1e-3, "{own:?}");
            }
        }
    }

    /// A record with values that no schema makes, some of them infinite, changes no sum of other records.
    #[test]
    fn sums_do_not_depend_on_records_that_are_not_in_them() {
        let schema =
            Schema::parse(&format!("[label]\ncolumn = 'y'\nclasses = ['n', 'p']\n{COLUMNS}")).unwrap();
        let records = 12;
        let sums = |first: f32, unit: Unit, name: &str| {
            let mut chance = PublicRandom::of(6, 1);
            let values: Vec<f32> = (0..5 * records)
                .map(|place| if place < 5 { first } else { [0.0, 1.0, 0.1, -0.7][chance.below(4)] })
                .collect();
            let names = vec!["n".into(), "p".into()];
            let labels = (0..records).map(|record| record % 2).collect();
            let examples = Examples::numbers(&[5], values, Targets::Classes { labels, names }).unwrap();
            // Numbers are made finite before they are scaled.
            let scaling = crate::data::Scaling { mean: vec![0.0], deviation: vec![0.5] };
            let users: Vec<_> = (0..records).map(|record| Some([record as u8])).collect();
            let examples = examples.with_users(&users).unwrap().scaled(&scaling).unwrap();
            let mut recipe =
                Recipe { waves: Some(3), calibration: Some(true), records: Some(40), ..Recipe::default() };
            recipe.privacy.epsilon = Some(1.0);
            let facts = PublicFacts { records: None, classes: Some(2) };
            let subject = Subject { shape: &[5], are_features: false, facts, schema: Some(&schema) };
            let mut model = Architecture { name: Some(name.into()), ..Architecture::default() };
            let glm = Glm::plan(&mut recipe, &mut model, &subject).unwrap();
            let task = glm.task(&examples, unit).unwrap();
            let mut state = standardized(&glm.plan, &mut chance);
            let (standardization, weights) =
                (state.standardization(&glm.plan), state.weights(&glm.plan, Stage::Gradient));
            let others: Vec<usize> = (1..task.records()).collect();
            let stages = glm.plan.stages.iter().map(|(stage, _)| {
                let records = compact(&glm, &task, *stage, &standardization);
                let records = (&records, task.is_grouped());
                let mut vectors =
                    Vectors::new(&glm.plan, records, *stage, &standardization, [&weights[0], &weights[1]]);
                laws::sum(&mut vectors, &others)
            });
            stages.collect::<Vec<_>>()
        };
        let units = [Unit::Example, Unit::User];
        for (unit, name) in units.into_iter().flat_map(|unit| [(unit, "additive"), (unit, "forest")]) {
            let usual = sums(1.0, unit, name);
            assert!(usual.iter().flatten().all(|x| x.is_finite()) && usual[0].iter().any(|x| *x != 0.0));
            for hostile in [3e38, -3e38, 0.9, 1e-40] {
                assert_eq!(sums(hostile, unit, name), usual, "{hostile} {unit:?} {name}");
            }
        }
    }

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
            let cases = methods.into_iter().flat_map(|method| units.map(|unit| (method, unit, None)));
            let forests = units.map(|unit| (Algorithm::Standardized, unit, Some("forest".to_owned())));
            // AdaSSP has no model for classes.
            for (method, unit, name) in
                cases.chain(forests).filter(|(method, ..)| *method != Algorithm::Adassp || classes.is_none())
            {
                let waves = (method == Algorithm::Standardized).then_some(3);
                let calibration = Some(method.standardizes());
                let mut recipe =
                    Recipe { method, calibration, waves, records: Some(40), ..Recipe::default() };
                recipe.privacy.epsilon = Some(1.0);
                let facts = PublicFacts { records: None, classes };
                let subject = Subject { shape: &[5], are_features: false, facts, schema: Some(&schema) };
                let mut model = Architecture { name, ..Architecture::default() };
                let glm = Glm::plan(&mut recipe, &mut model, &subject).unwrap();
                let task = glm.task(&examples, unit).unwrap();
                let mut state = standardized(&glm.plan, &mut chance);
                let standardization = state.standardization(&glm.plan);
                let mut weights = state.weights(&glm.plan, Stage::Gradient);
                weights.iter_mut().flatten().for_each(|weight| *weight = chance.normal());
                let [own, anchor] = &weights;
                for (stage, _) in &glm.plan.stages {
                    let records = compact(&glm, &task, *stage, &standardization);
                    let records = (&records, task.is_grouped());
                    let mut vectors =
                        Vectors::new(&glm.plan, records, *stage, &standardization, [own, anchor]);
                    let all: Vec<usize> = (0..task.records()).collect();
                    let kept = laws::check_contributions(&mut vectors, &all);
                    assert_eq!(kept, Ok(()), "{method:?} {unit:?} {stage:?} {label}");
                }
            }
        }
    }
}
