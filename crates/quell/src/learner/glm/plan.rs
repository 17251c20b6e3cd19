//! The complete plan of a linear model.

use quell_privacy::{
    Bound, Neighbors,
    mechanism::{Clipping, Descent, Sampling},
    units::{ClipNorm, Delta, SamplingRate},
};

use super::{
    Algorithm, Columns, Family, Recipe, Standardization, calibration::Calibration, standardization::limit,
    theory::Theory,
};
use crate::{
    Error, Input,
    data::Examples,
    layer::{MOST_TREES, Spec, Trees, WaveTable},
    learner::{Subject, average::Average, loss::Loss, method::check_targets},
    range::{NOT_NEGATIVE, POSITIVE},
};

/// All settings of a run. They follow from the recipe and public facts, and from no record.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The mechanism that the ledger is charged for: sums of vectors of length at most one.
    pub descent: Descent,
    /// Number of runs of the mechanism that are paid for.
    pub runs: u64,
    /// When two datasets are neighbours.
    pub neighbors: Neighbors,
    /// δ of the guarantee.
    pub delta: Delta,
    /// ε of the whole plan, as an interval.
    pub epsilon: Bound,
    /// Number of records (or users) that the plan was made for: a public number.
    pub records: u64,
    /// The model.
    pub family: Family,
    /// The algorithm that fits the model.
    pub algorithm: Algorithm,
    /// The loss that training minimises.
    pub loss: Loss,
    /// Number of gradient steps.
    pub steps: u64,
    /// The learning rate.
    pub learning_rate: f64,
    /// How much of the last step the next one repeats.
    pub momentum: f64,
    /// The average of the iterates that becomes the model.
    pub average: Average,
    /// The weight of the penalty on the weights.
    pub regularization: f64,
    /// Number of classes; `None` if numbers are predicted.
    pub classes: Option<usize>,
    /// The amplitudes of the waves of each number; none for linear models.
    pub waves: Vec<f32>,
    /// Number of trees of a forest, and the public seed that they are drawn from; none for other models.
    pub trees: Option<(u64, u64)>,
    /// The trees of a forest.
    pub(super) forest: Option<Trees>,
    /// The waves, as a table.
    pub(super) wave_table: WaveTable,
    /// The uses of the steps: so many of each, in this order. Those of SVRG alternate.
    pub(super) stages: Vec<(Stage, u64)>,
    pub(super) columns: Columns,
    /// How the outputs of the fitted model are calibrated.
    pub(super) calibration: Option<Calibration>,
}

/// The use of one step of the mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The sum of all examples.
    Means,
    /// The sum of the absolute deviations from the centres. Deviations above one count as one.
    Deviations,
    /// The sum of the products of all pairs of features, and of features and a numeric target.
    Moments,
    /// The sum of the gradients.
    Gradient,
    /// The sum of the gradients at a point to which later gradients are compared.
    Reference,
    /// The sum of the differences between gradients and those at the reference.
    Correction,
    /// The sum from which scale and offset of the fitted outputs are corrected.
    Calibration,
}

impl Stage {
    /// Whether scores of examples are computed, from standardised columns, leaves and waves.
    pub(super) fn has_scores(self) -> bool {
        !matches!(self, Self::Means | Self::Deviations | Self::Moments)
    }
}

/// Default number of gradient steps of logistic regression. Twice as many gain nothing (docs/evidence.md).
///
/// All other losses have twice as many: with longer steps they diverge where all columns say the same.
pub(super) const STEPS: u64 = 45;
/// Number of gradient steps for which the learning rates were found.
const REFERENCE_STEPS: f64 = 100.0;
/// The length of the noise in the mean of all gradients, beyond which it hides them.
///
/// Clipped gradients, and so their mean, are at most this long.
const MOST_NOISE: f64 = 1.0;

/// The largest learning rate, far beyond any use. A run that diverges has paid, and has no model.
const FASTEST: f64 = 1e6;
/// The most steps, far beyond any use.
const MOST_STEPS: u64 = 1 << 32;

/// Sampling rate of stochastic gradient descent.
pub(super) const RATE: f64 = 0.02;
/// Batches in an epoch of variance reduction.
const BATCHES: u32 = 10;

impl Plan {
    /// Completes the settings for a model, from public facts. Nothing is charged yet.
    pub fn new(recipe: &Recipe, family: Family, subject: &Subject<'_>) -> Result<Self, Error> {
        let (classes, algorithm) = (subject.facts.classes, recipe.method);
        check_steps(algorithm)?;
        let records = checked_records(recipe, family, subject)?;
        let (is_additive, is_forest) = (family.is_additive(), family == Family::Forest);
        let family = family.linear(classes);
        let loss = family.loss(classes, recipe.quantile)?;
        let columns = Columns::new(subject.schema, subject.shape.iter().product());
        let outputs = loss.outputs(classes.unwrap_or(1));
        let delta = recipe.privacy.delta_for(records)?;
        let weights = outputs * (columns.width() + 1);
        let shape = (curvature(loss), family.weight_length());
        let theory = Theory::new(recipe, records, weights, shape, delta)?;
        let steps = recipe.steps.unwrap_or(match algorithm {
            Algorithm::Standardized if family == Family::Logistic => STEPS,
            Algorithm::Standardized => 2 * STEPS,
            Algorithm::NoisyGd | Algorithm::NoisySgd => theory.steps,
            Algorithm::Sgld => 20 * (1.0 / RATE) as u64,
            Algorithm::Svrg => 10 * u64::from(BATCHES),
            Algorithm::Adassp => 18,
            Algorithm::Newton => 30,
            // Refused above.
            Algorithm::OutputPerturbation
            | Algorithm::ObjectivePerturbation
            | Algorithm::HiddenState
            | Algorithm::FrankWolfe
            | Algorithm::OnePosterior => 0,
        });
        check_step_count(steps)?;
        let has_numbers = columns.numbers() > 0 || classes.is_none();
        let calibration = Calibration::chosen(recipe, loss, (records, steps, delta))?;
        let stages = stages(algorithm, steps, has_numbers, calibration.is_some());
        let sampling = match algorithm {
            Algorithm::NoisySgd | Algorithm::Sgld => {
                let usual = if algorithm == Algorithm::Sgld { RATE } else { theory.sampling_rate };
                Sampling::Poisson { rate: SamplingRate::new(recipe.sampling_rate.unwrap_or(usual))? }
            }
            Algorithm::Svrg => Sampling::Shuffled { batches: BATCHES },
            _ => Sampling::Full,
        };
        let trees = is_forest.then(|| (recipe.trees.unwrap_or(TREES), recipe.tree_seed.unwrap_or(TREE_SEED)));
        let forest = trees.map(|(trees, seed)| grow(&columns, trees, seed)).transpose()?;
        let leaves = forest.as_ref().map_or(0, Trees::leaves);
        let all_steps: u64 = stages.iter().map(|(_, steps)| steps).sum();
        let runs = all_steps.div_ceil(sampling.batches());
        let targets = usize::from(classes.is_none());
        let clipping = Clipping::Flat { norm: ClipNorm::new(1.0)? };
        let calibrate = |waves: usize| {
            let features = columns.width() + 1;
            let dimension = stages.iter().map(|(stage, _)| match stage {
                Stage::Means | Stage::Deviations => columns.width() + targets,
                Stage::Moments => (features + targets) * features,
                Stage::Gradient | Stage::Reference | Stage::Correction => {
                    outputs * (features + leaves + waves * columns.numbers())
                }
                Stage::Calibration => calibration.map_or(0, Calibration::length),
            });
            let dimension = dimension.max().unwrap_or(0);
            recipe.privacy.calibrate(delta, runs, |noise_multiplier| {
                Ok(Descent { sampling, clipping: clipping.clone(), noise_multiplier, dimension })
            })
        };
        let waves = match recipe.waves {
            Some(waves) => waves,
            None if !is_additive => 0,
            // The noise hardly depends on the number of waves.
            None => {
                calibrate(MOST_WAVES).map_or(0, |(descent, _)| curves(&descent, runs, records, columns.count))
            }
        };
        let waves = amplitudes(waves)?;
        let (descent, epsilon) = calibrate(waves.len())?;
        let regularization =
            recipe.regularization.unwrap_or(if family == Family::Ridge { 1.0 / records as f64 } else { 0.0 });
        NOT_NEGATIVE.check("regularization", regularization)?;
        let mut plan = Self {
            descent,
            runs,
            neighbors: recipe.privacy.neighbors,
            delta,
            epsilon,
            records,
            family,
            algorithm,
            loss,
            steps,
            learning_rate: 0.0,
            momentum: momentum(algorithm, classes),
            average: average(algorithm, classes, steps, regularization),
            regularization,
            classes,
            wave_table: WaveTable::new(&waves),
            waves,
            trees,
            forest,
            stages,
            columns,
            calibration,
        };
        plan.learning_rate = recipe.learning_rate.unwrap_or_else(|| plan.default_learning_rate());
        plan.check_learning_rate()?;
        Ok(plan)
    }

    /// Number of features that scores are sums of: those of the examples, leaves, and waves of numbers.
    pub(super) fn features(&self) -> usize {
        self.columns.width() + self.leaves() + self.columns.numbers() * self.waves.len()
    }

    /// Number of leaves of all trees.
    pub(super) fn leaves(&self) -> usize {
        self.forest.as_ref().map_or(0, Trees::leaves)
    }

    /// The mean of the indicator of a leaf over examples that answer every question by a fair coin.
    pub(super) fn leaf_share(&self, leaf: usize) -> f32 {
        self.forest.as_ref().map_or(0.0, |trees| trees.shares[leaf])
    }

    /// The factor of the leaves before examples get the usual length: all trees count like all columns.
    pub(super) fn leaf_amplitude(&self) -> f64 {
        let trees = self.trees.map_or(1, |(trees, _)| trees);
        let gain = if self.waves.is_empty() { NOISY_LEAF_GAIN } else { LEAF_GAIN };
        gain * (self.columns.count as f64 / trees as f64).sqrt()
    }

    /// The squared length of the leaves of an example.
    pub(super) fn leaf_power(&self) -> f64 {
        self.forest.as_ref().map_or(0.0, |trees| self.leaf_amplitude().powi(2) * trees.squared_length())
    }

    /// The thresholds of all questions about numbers.
    pub(super) fn thresholds(&self, constants: &Standardization) -> Vec<f32> {
        let of = |trees: &Trees| trees.thresholds(&constants.centres, &constants.spreads);
        self.forest.as_ref().map_or_else(Vec::new, of)
    }

    /// The sum of the squared amplitudes of the waves of a number, over that of the number.
    pub(super) fn wave_power(&self) -> f64 {
        self.waves.iter().map(|amplitude| f64::from(*amplitude).powi(2)).sum()
    }

    /// Number of outputs of the model.
    pub(super) fn outputs(&self) -> usize {
        self.loss.outputs(self.classes.unwrap_or(1))
    }

    /// The use of a step, and its number among those of the same use.
    pub(super) fn stage(&self, step: u64) -> (Stage, u64) {
        if self.algorithm == Algorithm::Svrg {
            let (epoch, within) = (step / u64::from(BATCHES), step % u64::from(BATCHES));
            let stage = if epoch.is_multiple_of(2) { Stage::Reference } else { Stage::Correction };
            return (stage, epoch / 2 * u64::from(BATCHES) + within);
        }
        let mut before = 0;
        for (stage, steps) in &self.stages {
            if step < before + steps {
                return (*stage, step - before);
            }
            before += steps;
        }
        (Stage::Gradient, self.steps)
    }

    /// The divisor of a sum over one batch: a public number.
    pub(super) fn expected_batch(&self) -> f64 {
        match self.descent.sampling {
            Sampling::Poisson { rate } => rate.get() * self.records as f64,
            Sampling::Shuffled { batches } => self.records as f64 / f64::from(batches),
            Sampling::Full | Sampling::WithoutReplacement { .. } => self.records as f64,
        }
    }

    /// ρ: the power of the likelihood whose posterior Langevin steps sample from; `None` for other methods.
    ///
    /// # Theorem
    /// [WFS15, Section 4] (THEORY, Langevin steps) A step moves the weights by -η∇f, with f the mean loss,
    /// plus noise of variance (ηz/b)², where b is the expected batch. These are Langevin steps of length η
    /// for the density e^(-f/T) if the variance is 2ηT. So T = ηz²/2b² and ρ = 1/(NT). The steps have a finite
    /// length, batches are samples and gradients are clipped, so the last iterate is only nearly a sample.
    /// Privacy does not depend on that: every step is paid for.
    #[must_use]
    pub fn langevin_power(&self) -> Option<f64> {
        let noise = self.descent.noise_multiplier.get() / self.expected_batch();
        let temperature = 0.5 * self.learning_rate * noise * noise;
        (self.algorithm == Algorithm::Sgld).then(|| 1.0 / (self.records as f64 * temperature))
    }

    /// The factor that makes an example, and its numeric target, a vector of length at most one.
    ///
    /// Data without a schema may be longer; the mechanism clips it.
    pub(super) fn mean_scale(&self) -> f64 {
        (self.columns.count as f64 + self.target_columns()).sqrt().recip()
    }

    /// The factor that makes the absolute deviations of all numbers a vector of length at most one.
    pub(super) fn deviation_scale(&self) -> f64 {
        (self.columns.numbers() as f64 + self.target_columns()).max(1.0).sqrt().recip()
    }

    /// One if the target is a column of numbers, and zero if it is a class.
    fn target_columns(&self) -> f64 {
        if self.classes.is_none() { 1.0 } else { 0.0 }
    }

    /// The factor of the vectors of a stage before they are clipped to length one.
    pub(super) fn scale(&self, stage: Stage) -> f64 {
        match (stage, self.algorithm) {
            (Stage::Means, _) => self.mean_scale(),
            (Stage::Deviations, _) => self.deviation_scale(),
            (Stage::Correction, _) => 4.0,
            // Slopes are at most one for classes, and so are examples on the declared bounds.
            (Stage::Moments | Stage::Calibration, _)
            | (_, Algorithm::NoisyGd | Algorithm::NoisySgd | Algorithm::Svrg | Algorithm::Sgld) => 1.0,
            _ if self.classes.is_some() => 7.0,
            _ => 1.5,
        }
    }

    /// Standard deviation of the noise in the mean of all gradients of unit length, as if all steps were one.
    fn noise_share(&self) -> f64 {
        let noise = self.descent.noise_multiplier.get() / (self.runs as f64).sqrt();
        let outputs = self.classes.map_or(1, |classes| classes - 1).max(1);
        noise * ((self.columns.width() + 1) as f64 * outputs as f64).sqrt() / self.records as f64
    }

    /// Whether an additive model has straight lines without a setting, because curves would fit noise.
    pub(super) fn is_too_noisy_for_curves(&self) -> bool {
        curves(&self.descent, self.runs, self.records, self.columns.count) == 0
    }

    /// Whether the noise in the mean gradient is longer than any mean gradient.
    pub(super) fn is_mostly_noise(&self) -> bool {
        self.noise_share() > MOST_NOISE
    }

    /// Refuses steps with which the weights grow beyond all numbers, whatever the records are.
    fn check_learning_rate(&self) -> Result<(), Error> {
        POSITIVE.check("learning_rate", self.learning_rate)?;
        let (value, range) = (self.learning_rate, "(0, 1e6], and at most 2 divided by the regularization");
        // Each step multiplies a weight by 1 - ηλ. Newton's method divides by λ or more.
        let is_penalty_stable =
            self.algorithm == Algorithm::Newton || self.learning_rate * self.regularization <= 2.0;
        if self.learning_rate > FASTEST || !is_penalty_stable {
            return Err(Error::OutOfRange { what: "learning_rate", value, range });
        }
        Ok(())
    }

    /// The learning rate. It falls with the noise, and is at most one over the weight of the penalty.
    fn default_learning_rate(&self) -> f64 {
        let most =
            if self.algorithm == Algorithm::Newton { f64::INFINITY } else { 1.0 / self.regularization };
        self.unpenalized_learning_rate().min(most)
    }

    /// The learning rate for a loss without penalty.
    fn unpenalized_learning_rate(&self) -> f64 {
        let noise = self.noise_share();
        match self.algorithm {
            Algorithm::Standardized if self.classes.is_some() => {
                (1.4 * noise.powf(-0.75)).min(192.0) * REFERENCE_STEPS / self.steps as f64
            }
            Algorithm::Standardized => {
                let most = if self.waves.is_empty() { 1.0 } else { 3.0 };
                // Leaves add weights, and so noise.
                let rate = if self.forest.is_none() { 0.005 } else { 0.0025 };
                (rate / noise).min(most) * REFERENCE_STEPS / self.steps as f64
            }
            Algorithm::Newton => 0.3,
            Algorithm::Adassp
            | Algorithm::OutputPerturbation
            | Algorithm::ObjectivePerturbation
            | Algorithm::HiddenState
            | Algorithm::FrankWolfe
            | Algorithm::OnePosterior => 1.0,
            Algorithm::NoisyGd | Algorithm::NoisySgd | Algorithm::Svrg | Algorithm::Sgld => {
                self.theoretical_learning_rate()
            }
        }
    }

    /// The learning rate η that minimises R²/(2ηT) + η(variance)/2, at most 1/smoothness.
    fn theoretical_learning_rate(&self) -> f64 {
        let dimension = (self.outputs() * (self.columns.width() + 1)) as f64;
        let noise = self.descent.noise_multiplier.get() / self.expected_batch();
        let sampled = if self.descent.sampling == Sampling::Full { 0.0 } else { 1.0 / self.expected_batch() };
        let variance = dimension * noise * noise + sampled;
        (self.family.weight_length() / (self.steps as f64 * variance).sqrt()).min(1.0 / self.curvature())
    }

    /// Largest second derivative of the loss, for examples of length one.
    pub(super) fn curvature(&self) -> f64 {
        curvature(self.loss)
    }

    /// The layers of the model.
    pub(super) fn layers(&self) -> Vec<Spec> {
        let mut layers = Vec::new();
        if let Some((trees, seed)) = self.trees {
            let columns = self.columns.questions.clone();
            layers.push(Spec::Leaves { columns, trees: trees as usize, seed });
        }
        layers.push(Spec::Standardize { limit: limit(self.classes) as f32 });
        if !self.waves.is_empty() {
            let numbers = (0..self.columns.width()).filter(|feature| !self.columns.is_indicator(*feature));
            layers.extend([
                Spec::Waves { numbers: numbers.collect(), amplitudes: self.waves.clone() },
                // Multiplies all features so that examples of usual length have length one.
                Spec::Standardize { limit: f32::MAX },
            ]);
        }
        let outputs = self.outputs();
        if self.bounds_lengths() {
            layers.push(Spec::BoundLength {});
        }
        layers.push(Spec::Linear { outputs });
        if matches!(self.family, Family::Linear | Family::Ridge | Family::Quantile) {
            layers.push(Spec::HardTanh {});
        }
        layers
    }

    /// Whether unusually long examples are scaled to the usual length, and not only their gradients.
    pub(super) fn bounds_lengths(&self) -> bool {
        self.algorithm.standardizes()
            && matches!(self.family, Family::Logistic | Family::Svm | Family::Poisson)
    }
}

/// Refuses an algorithm whose steps are no noisy sums. Other types plan it.
fn check_steps(algorithm: Algorithm) -> Result<(), Error> {
    if algorithm.takes_steps() {
        return Ok(());
    }
    Err(Error::Setting {
        name: "method",
        found: format!("{}, which another type plans", algorithm.name()),
        expected: "a method whose steps are noisy sums, such as standardized or newton",
    })
}

/// How much of the last step the next one repeats.
fn momentum(algorithm: Algorithm, classes: Option<usize>) -> f64 {
    match algorithm {
        Algorithm::Standardized if classes.is_some() => 0.8,
        Algorithm::Standardized => 0.9,
        Algorithm::Newton => 0.5,
        _ => 0.0,
    }
}

/// The average of the iterates that becomes the model.
fn average(algorithm: Algorithm, classes: Option<usize>, steps: u64, regularization: f64) -> Average {
    match algorithm {
        Algorithm::Standardized if classes.is_some() => Average::Uniform { skip: 7 * (steps / 10) },
        Algorithm::Standardized | Algorithm::Newton => Average::Uniform { skip: steps / 2 },
        // The last iterate is the sample.
        Algorithm::Adassp | Algorithm::Sgld => Average::None,
        // The rate of a strongly convex loss needs this average.
        _ if regularization > 0.0 => Average::Linear,
        _ => Average::Uniform { skip: 0 },
    }
}

/// Largest second derivative of a loss, for examples of length one.
fn curvature(loss: Loss) -> f64 {
    match loss {
        Loss::BinaryCrossEntropy => 0.25,
        Loss::CrossEntropy { .. } => 0.5,
        Loss::Hinge { smoothing } | Loss::Pinball { smoothing, .. } => 0.5 / f64::from(smoothing),
        Loss::Squared | Loss::Huber { .. } | Loss::Poisson => 1.0,
    }
}

/// Default number of trees of a forest.
const TREES: u64 = 128;

/// The default seed of the trees: any number is as good.
const TREE_SEED: u64 = 1;

/// The factor of leaves, relative to indicators, where noise is small enough for curves, and where it is not.
///
/// Smaller gains keep noise in the values of the many leaves from the scores (docs/evidence.md).
const LEAF_GAIN: f64 = 0.8;
const NOISY_LEAF_GAIN: f64 = 0.4;

/// Checks a number of steps.
fn check_step_count(steps: u64) -> Result<(), Error> {
    if (1..=MOST_STEPS).contains(&steps) {
        return Ok(());
    }
    Err(Error::Setting { name: "steps", found: steps.to_string(), expected: "a number in [1, 2^32]" })
}

/// Draws the trees of a forest: a public choice.
fn grow(columns: &Columns, trees: u64, seed: u64) -> Result<Trees, Error> {
    let fits = |trees: &usize| (1..=MOST_TREES).contains(trees) && Trees::fit(&columns.questions, *trees);
    let count = usize::try_from(trees).ok().filter(fits);
    let expected = "a number in [1, 4096], and less for columns with very many categories";
    let count = count.ok_or_else(|| Error::Setting { name: "trees", found: trees.to_string(), expected })?;
    Ok(Trees::new(&columns.questions, count, seed))
}

/// The most waves of a number.
const MOST_WAVES: usize = 8;

/// Chooses the number of waves: eight where noise is small for each column, or none.
///
/// The threshold was found on five tables (docs/evidence.md): with fewer records, lines predict as well as curves.
fn curves(descent: &Descent, runs: u64, records: u64, columns: usize) -> u64 {
    let noise = descent.noise_multiplier.get() / (runs as f64).sqrt();
    if records as f64 / (noise * (columns as f64).sqrt()) < 150.0 { 0 } else { MOST_WAVES as u64 }
}

/// The amplitudes of so many waves. Curves of one or two waves stay close to lines.
fn amplitudes(waves: u64) -> Result<Vec<f32>, Error> {
    if waves > MOST_WAVES as u64 {
        let expected = "a number in [0, 8]";
        return Err(Error::Setting { name: "waves", found: waves.to_string(), expected });
    }
    let [strength, decay] = if waves <= 2 { [0.5, 1.0] } else { [1.0, 0.5] };
    Ok((1..=waves).map(|order| (strength * (order as f64).powf(-decay)) as f32).collect())
}

/// The uses of all steps. About a twentieth of them find means, and as many find spreads; at least one each.
fn stages(algorithm: Algorithm, steps: u64, has_numbers: bool, is_calibrated: bool) -> Vec<(Stage, u64)> {
    let share = |part: u64| ((steps + part / 2) / part).max(1);
    let mut stages = Vec::new();
    if algorithm.standardizes() {
        let part = share(if algorithm == Algorithm::Newton { 14 } else { 18 });
        stages.push((Stage::Means, part));
        stages.extend(has_numbers.then_some((Stage::Deviations, part)));
    }
    match algorithm {
        Algorithm::Standardized | Algorithm::NoisyGd | Algorithm::NoisySgd | Algorithm::Sgld => {
            stages.push((Stage::Gradient, steps));
        }
        Algorithm::Adassp => stages.push((Stage::Moments, steps)),
        Algorithm::Newton => {
            stages.extend([(Stage::Moments, (2 * steps).div_ceil(7)), (Stage::Gradient, steps)]);
        }
        // They alternate, epoch by epoch.
        Algorithm::Svrg => {
            let steps = steps.next_multiple_of(BATCHES.into());
            stages.extend([(Stage::Reference, steps), (Stage::Correction, steps)]);
        }
        Algorithm::OutputPerturbation
        | Algorithm::ObjectivePerturbation
        | Algorithm::HiddenState
        | Algorithm::FrankWolfe
        | Algorithm::OnePosterior => {}
    }
    stages.extend(is_calibrated.then_some((Stage::Calibration, share(22))));
    stages
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        learner::{PublicFacts, glm::State},
        random::PublicRandom,
    };

    /// Two numbers of the standard normal distribution.
    fn normal(random: &mut PublicRandom) -> [f64; 2] {
        let mut unit = || (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        let (radius, angle) = ((-2.0 * (1.0 - unit()).ln()).sqrt(), std::f64::consts::TAU * unit());
        [radius * angle.cos(), radius * angle.sin()]
    }

    /// For the mean loss c/2 w², the density with the power ρ has variance 1/(ρNc). Steps of length η inflate
    /// it by 1/(1 - ηc/2): the variance v solves v = (1 - ηc)²v + (ηz/b)².
    #[test]
    fn langevin_steps_have_the_variance_of_the_posterior_with_the_stated_power() {
        let mut recipe = Recipe { method: Algorithm::Sgld, learning_rate: Some(0.2), ..Recipe::default() };
        (recipe.privacy.epsilon, recipe.privacy.delta) = (Some(1.0), Some(1e-5));
        let facts = PublicFacts { records: Some(5_000), classes: None };
        let subject = Subject { shape: &[1], are_features: false, facts, schema: None };
        let plan = Plan::new(&recipe, Family::Linear, &subject).unwrap();
        let (power, records, batch) =
            (plan.langevin_power().unwrap(), plan.records as f64, plan.expected_batch());
        let (eta, noise) = (plan.learning_rate, plan.descent.noise_multiplier.get());
        let injected = (eta * noise / batch).powi(2);
        assert!((injected / (2.0 * eta / (power * records)) - 1.0).abs() < 1e-12);
        let curvature = 0.5;
        let mut state = State::new(&plan).unwrap();
        let mut random = PublicRandom::new(5);
        let steps = 200_000;
        let mut squares = 0.0;
        for step in 0..steps {
            let [weights, _] = state.weights(&plan, Stage::Gradient);
            let gradient: Vec<f32> = weights
                .iter()
                .zip(normal(&mut random))
                .map(|(w, z)| (batch * curvature * f64::from(*w) + noise * z) as f32)
                .collect();
            state.apply(&plan, &gradient, step).unwrap();
            squares += f64::from(weights[0]).powi(2) / steps as f64;
        }
        let expected = 1.0 / (power * records * curvature * (1.0 - 0.5 * eta * curvature));
        // 200,000 steps with correlation time 2/ηc count like 10,000 samples: 4.9 √(2/10⁴) is seven hundredths.
        assert!((squares / expected - 1.0).abs() < 0.07, "{squares} {expected}");
        // Other methods state no power.
        recipe.method = Algorithm::NoisySgd;
        assert_eq!(Plan::new(&recipe, Family::Linear, &subject).unwrap().langevin_power(), None);
    }
}
