//! The complete plan of a linear model.

use quell_privacy::{
    Bound, Neighbors,
    mechanism::{Clipping, Descent, Sampling},
    units::{ClipNorm, Delta},
};

use super::{
    Algorithm, Columns, Family, Recipe, calibration,
    leaves::{TREE_SEED, TREES, grow},
    rate::curvature,
    rules::{Rules, Uses},
    stages::Stage,
    standardization::limit,
    suitability::{check_step_count, checked_records},
    theory::Theory,
    waves::{MOST_WAVES, amplitudes, curves},
};
use crate::{
    Error,
    layer::{Spec, Trees, WaveTable},
    learner::{Subject, average::Average, calibration::Calibration, loss::Loss},
    range::NOT_NEGATIVE,
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
    /// What distinguishes the algorithm from the others.
    pub(super) rules: Rules,
    /// The uses of the steps and their numbers, in this order. Those of SVRG alternate.
    pub(super) stages: Vec<(Stage, u64)>,
    pub(super) columns: Columns,
    /// How the outputs of the fitted model are calibrated.
    pub(super) calibration: Option<Calibration>,
}

impl Plan {
    /// Completes the settings for a model, from public facts. Nothing is charged yet.
    pub fn new(recipe: &Recipe, family: Family, subject: &Subject<'_>) -> Result<Self, Error> {
        let (classes, algorithm) = (subject.facts.classes, recipe.method);
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
        let rules = Rules::new(recipe, (family, classes), &theory)?;
        let (steps, sampling) = (recipe.steps.unwrap_or(rules.usual_steps), rules.sampling);
        check_step_count(steps)?;
        let has_numbers = columns.numbers() > 0 || classes.is_none();
        let calibration = calibration::chosen(recipe, (loss, outputs), (records, steps, delta))?;
        let stages = rules.stages(steps, has_numbers, calibration.is_some());
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
            None => calibrate(MOST_WAVES).map_or(0, |(descent, _)| curves(&descent, runs, records, &columns)),
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
            momentum: rules.momentum,
            average: rules.average(steps, regularization),
            regularization,
            classes,
            wave_table: WaveTable::new(&waves),
            waves,
            trees,
            forest,
            rules,
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

    /// Number of outputs of the model.
    pub(super) fn outputs(&self) -> usize {
        self.loss.outputs(self.classes.unwrap_or(1))
    }

    /// The use of a step, and its number among those of the same use.
    pub(super) fn stage(&self, step: u64) -> (Stage, u64) {
        if let Uses::Alternating(batches) = self.rules.uses {
            let (epoch, within) = (step / u64::from(batches), step % u64::from(batches));
            let stage = if epoch.is_multiple_of(2) { Stage::Reference } else { Stage::Correction };
            return (stage, epoch / 2 * u64::from(batches) + within);
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
        match stage {
            Stage::Means => self.mean_scale(),
            Stage::Deviations => self.deviation_scale(),
            Stage::Correction => 4.0,
            Stage::Moments | Stage::Calibration => 1.0,
            Stage::Gradient | Stage::Reference => self.rules.gradient_scale,
        }
    }

    /// The layers of the model.
    pub(super) fn layers(&self) -> Vec<Spec> {
        let mut layers = Vec::new();
        if let Some((trees, seed)) = self.trees {
            let columns = self.columns.categories.clone();
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
