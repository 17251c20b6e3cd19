//! The state of a run. It is public, because it follows from released values alone.

use safetensors::{SafeTensors, serialize};
use serde::{Deserialize, Serialize};

use super::{Algorithm, Plan, Standardization, cholesky::Cholesky, stages::Stage, standardization::Estimate};
use crate::{
    Error,
    learner::{
        Snapshot,
        average::Mean,
        calibration::{Calibration, Correction},
        loss::Loss,
        signal::is_noise,
        tensors::{Tensor, TensorFile},
    },
};

/// Sums of releases, weights, and step counters of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    counters: Counters,
    /// Sums of releases, by the stage that made them.
    sums: Sums,
    /// The weights: rows for the outputs, then the biases.
    weights: Vec<f64>,
    /// The momentum of the weights.
    velocity: Vec<f64>,
    /// The weights to which later gradients are compared.
    anchor: Vec<f64>,
    mean: Mean,
    /// The constants that standardise the columns, once they are known.
    standardization: Option<Standardization>,
    /// The factors of the upper bound of the Hessian, once it is known.
    hessian: Option<Cholesky>,
}

#[derive(Clone, Debug, PartialEq)]
struct Sums {
    means: Vec<f64>,
    deviations: Vec<f64>,
    moments: Vec<f64>,
    reference: Vec<f64>,
    calibration: Vec<f64>,
}

/// Numbers of steps, and of releases in each sum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counters {
    position: u64,
    taken: u64,
    means: u64,
    deviations: u64,
    moments: u64,
    reference: u64,
    averaged: u64,
    calibration: u64,
}

/// Key of the counters in the metadata of a file.
const COUNTERS: &str = "quell.progress";

/// The noise of an estimate of which every release was lost.
const NO_ESTIMATE: f64 = 1e9;

impl State {
    /// The state before the first step.
    pub(super) fn new(plan: &Plan) -> Result<Self, Error> {
        let columns = plan.columns.width() + usize::from(plan.classes.is_none());
        let weights = plan.outputs() * (plan.features() + 1);
        let zeros = |stage: Stage, length: usize| {
            let is_used = plan.stages.iter().any(|(used, _)| *used == stage);
            vec![0.0; if is_used { length } else { 0 }]
        };
        Ok(Self {
            counters: Counters::default(),
            sums: Sums {
                means: zeros(Stage::Means, columns),
                deviations: zeros(Stage::Deviations, columns),
                moments: zeros(Stage::Moments, (columns + 1) * (plan.columns.width() + 1)),
                reference: zeros(Stage::Reference, weights),
                calibration: zeros(Stage::Calibration, plan.calibration.map_or(0, Calibration::length)),
            },
            weights: vec![0.0; weights],
            velocity: vec![0.0; weights],
            anchor: zeros(Stage::Correction, weights),
            mean: plan.average.start(weights)?,
            standardization: None,
            hessian: None,
        })
    }

    /// The weights at which the next vectors are computed, and those of the reference.
    pub(super) fn weights(&self, plan: &Plan, stage: Stage) -> [Vec<f32>; 2] {
        let own = match (stage, &self.standardization) {
            (Stage::Calibration, Some(standardization)) => &self.fitted(plan, standardization.usual_length),
            _ => &self.weights,
        };
        [own, &self.anchor].map(|weights| weights.iter().map(|weight| *weight as f32).collect())
    }

    /// The constants for the current stage. They are final once gradients are computed.
    pub(super) fn standardization(&mut self, plan: &Plan) -> Standardization {
        self.standardization.get_or_insert_with(|| self.sums.estimate(&self.counters, plan)).clone()
    }

    /// Uses a release. `position` is the number of the step in the plan.
    pub(super) fn apply(&mut self, plan: &Plan, released: &[f32], position: u64) -> Result<(), Error> {
        let (stage, number) = plan.stage(position);
        let add = |to: &mut [f64]| to.iter_mut().zip(released).for_each(|(to, x)| *to += f64::from(*x));
        match stage {
            Stage::Means => {
                add(&mut self.sums.means);
                self.counters.means += 1;
                self.standardization = None;
            }
            Stage::Deviations => {
                add(&mut self.sums.deviations);
                self.counters.deviations += 1;
                self.standardization = None;
            }
            Stage::Moments => {
                add(&mut self.sums.moments);
                self.counters.moments += 1;
                self.hessian = None;
            }
            Stage::Gradient => self.descend(plan, released)?,
            Stage::Reference => {
                if number.is_multiple_of(plan.descent.sampling.batches()) {
                    self.sums.reference.fill(0.0);
                    self.counters.reference = 0;
                    self.anchor.clone_from(&self.weights);
                }
                add(&mut self.sums.reference);
                self.counters.reference += 1;
            }
            Stage::Correction => self.correct(plan, released)?,
            Stage::Calibration => {
                add(&mut self.sums.calibration);
                self.counters.calibration += 1;
            }
        }
        self.counters.position = position + 1;
        self.counters.taken += 1;
        Ok(())
    }

    /// One step of gradient descent.
    fn descend(&mut self, plan: &Plan, released: &[f32]) -> Result<(), Error> {
        let divisor = plan.expected_batch() * plan.scale(Stage::Gradient);
        let mut gradient: Vec<f64> =
            released.iter().take(self.weights.len()).map(|sum| f64::from(*sum) / divisor).collect();
        self.penalize(plan, &mut gradient);
        if plan.algorithm == Algorithm::Newton {
            self.precondition(plan, &mut gradient);
        }
        self.step(plan, &gradient)
    }

    /// One step with a gradient whose variance is reduced.
    fn correct(&mut self, plan: &Plan, released: &[f32]) -> Result<(), Error> {
        // All batches of the reference were lost: there is no gradient to correct.
        if self.counters.reference == 0 {
            return Ok(());
        }
        let batch = plan.expected_batch();
        let divisor = batch * plan.scale(Stage::Correction);
        let reference = batch * self.counters.reference as f64 * plan.scale(Stage::Reference);
        let mut gradient: Vec<f64> = released
            .iter()
            .zip(&self.sums.reference)
            .map(|(sum, total)| f64::from(*sum) / divisor + total / reference)
            .collect();
        self.penalize(plan, &mut gradient);
        self.step(plan, &gradient)
    }

    /// Adds the gradient of the penalty. Biases, which are the last weights, have none.
    fn penalize(&self, plan: &Plan, gradient: &mut [f64]) {
        let rows = plan.outputs() * plan.features();
        let penalized = gradient.iter_mut().zip(&self.weights).take(rows);
        penalized.for_each(|(gradient, weight)| *gradient += plan.regularization * weight);
    }

    fn step(&mut self, plan: &Plan, gradient: &[f64]) -> Result<(), Error> {
        for ((weight, velocity), gradient) in self.weights.iter_mut().zip(&mut self.velocity).zip(gradient) {
            *velocity = plan.momentum * *velocity - plan.learning_rate * gradient;
            *weight += *velocity;
        }
        self.mean.add(&self.weights.iter().map(|weight| *weight as f32).collect::<Vec<_>>())
    }

    /// Multiplies the gradient of each output by the inverse of the upper bound of the Hessian.
    fn precondition(&mut self, plan: &Plan, gradient: &mut [f64]) {
        if self.hessian.is_none() {
            self.hessian = self.sums.hessian(&self.counters, plan);
        }
        let Some(hessian) = &self.hessian else { return };
        for output in 0..plan.outputs() {
            transform(plan, gradient, output, |row| hessian.solve(row));
        }
    }

    /// The weights of the linear layer that becomes the model.
    fn fitted(&self, plan: &Plan, usual_length: f64) -> Vec<f64> {
        if plan.algorithm == Algorithm::Adassp {
            let mut weights =
                self.sums.solution(&self.counters, plan).unwrap_or_else(|| self.weights.clone());
            // The target in the products was divided by the usual length.
            for weight in &mut *weights {
                *weight *= usual_length;
            }
            return weights;
        }
        match self.mean.weights() {
            Some(mean) => mean.iter().map(|weight| f64::from(*weight)).collect(),
            None => self.weights.clone(),
        }
    }

    /// Whether no mean or deviation of the columns can be told from noise. False if none is released.
    pub(super) fn is_noise(&self, plan: &Plan) -> bool {
        let (noise, counters) = (plan.descent.noise_multiplier.get(), &self.counters);
        let sums = [(&self.sums.means, counters.means), (&self.sums.deviations, counters.deviations)];
        let (mut squares, mut numbers) = (0.0, 0.0);
        for (sums, count) in sums.into_iter().filter(|(_, count)| *count > 0) {
            let variance = noise * noise * count as f64;
            squares += sums.iter().map(|sum| sum * sum / variance).sum::<f64>();
            numbers += sums.len() as f64;
        }
        noise > 0.0 && numbers > 0.0 && is_noise(squares, numbers)
    }

    /// The weights of all layers of the model.
    pub(super) fn model(&self, plan: &Plan) -> Vec<f32> {
        let estimate = || self.sums.estimate(&self.counters, plan);
        let standardization = self.standardization.clone().unwrap_or_else(estimate);
        let usual_length = standardization.usual_length;
        let [centre, spread] = standardization.target;
        let linear = self.fitted(plan, usual_length);
        let (matrix, biases) = linear.split_at(plan.outputs() * plan.features());
        let (factor, offset) = match plan.loss {
            Loss::Squared | Loss::Huber { .. } | Loss::Pinball { .. } => (spread, centre),
            Loss::Poisson => (1.0, mean_count(centre).ln()),
            Loss::CrossEntropy { .. } | Loss::BinaryCrossEntropy | Loss::Hinge { .. } => (1.0, 0.0),
        };
        let Correction { scale, offset: shift } =
            plan.correction(&self.sums.calibration, self.counters.calibration);
        let (factor, offset) = (scale * factor, scale * offset + shift);
        let matrix = matrix.iter().map(|weight| factor * weight);
        // The constant feature of the bias is one over the usual length, like one number of an example.
        let biases = biases.iter().map(|bias| factor * bias / usual_length + offset);
        let mut weights = standardization.layers(plan);
        weights.extend(matrix.chain(biases).map(|weight| weight as f32));
        weights
    }

    /// Restores a state that [`Snapshot::save`] wrote for the same plan.
    pub(super) fn restore(bytes: &[u8], plan: &Plan) -> Result<Self, Error> {
        let file = TensorFile::of_checkpoint(bytes)?;
        let damaged = |part: &str| file.damaged(part);
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|_| damaged("the header"))?;
        let text = header.metadata().as_ref().and_then(|metadata| metadata.get(COUNTERS));
        let text = text.ok_or_else(|| damaged("counters"))?;
        let mut state = Self::new(plan)?;
        state.counters = serde_json::from_str(text).map_err(|_| damaged("counters"))?;
        for (name, values) in state.tensors_mut() {
            let read = file.double(name)?;
            if read.len() != values.len() {
                return Err(damaged(name));
            }
            values.copy_from_slice(&read);
        }
        state.mean.restore(state.counters.averaged, &file.double(AVERAGE)?)?;
        Ok(state)
    }

    fn tensors_mut(&mut self) -> [(&'static str, &mut Vec<f64>); 8] {
        [
            ("means", &mut self.sums.means),
            ("deviations", &mut self.sums.deviations),
            ("moments", &mut self.sums.moments),
            ("reference", &mut self.sums.reference),
            ("calibration", &mut self.sums.calibration),
            ("anchor", &mut self.anchor),
            ("weights", &mut self.weights),
            ("velocity", &mut self.velocity),
        ]
    }
}

/// The name of the average of the iterates in a file.
const AVERAGE: &str = "average";

impl Sums {
    /// Estimates the constants that standardise from all releases so far.
    fn estimate(&self, counters: &Counters, plan: &Plan) -> Standardization {
        if !plan.algorithm.standardizes() {
            return Standardization::declared(plan);
        }
        let (noise, records) = (plan.descent.noise_multiplier.get(), plan.records as f64);
        // A sum of k releases has noise of √k standard deviations. If all were lost, all numbers are zeros.
        let of = |sums: &[f64], count: u64, scale: f64| {
            let divisor = count.max(1) as f64 * records * scale;
            let values: Vec<f64> = sums.iter().map(|sum| sum / divisor).collect();
            let noise = if count == 0 { NO_ESTIMATE } else { noise * (count as f64).sqrt() / divisor };
            (values, noise)
        };
        let (means, mean_noise) = of(&self.means, counters.means, plan.mean_scale());
        let centres = Standardization::centres(plan, &Estimate { values: &means, noise: mean_noise });
        let (deviations, noise) = of(&self.deviations, counters.deviations, plan.deviation_scale());
        Standardization::new(plan, centres, mean_noise, &Estimate { values: &deviations, noise })
    }

    /// The mean products of all pairs of features, as the lower triangle of a matrix, and of features with
    /// the target. The constant feature is the last one. Also the noise in each of them.
    ///
    /// `None` if every release was lost.
    fn products(&self, counters: &Counters, plan: &Plan) -> Option<(Vec<f64>, Vec<f64>, f64)> {
        let divisor = (counters.moments > 0).then_some(counters.moments as f64 * plan.records as f64)?;
        let (width, side) = (plan.columns.width(), plan.columns.width() + 1);
        // Rows of products with each feature; the products with the constant feature follow as biases.
        let rows = self.moments.len() / side;
        let product = |row: usize, column: usize| {
            let place = if column == width { rows * width + row } else { row * width + column };
            self.moments[place] / divisor
        };
        let mut matrix = vec![0.0; side * side];
        for row in 0..side {
            for column in 0..=row {
                // Each pair was measured twice, with independent noise.
                matrix[row * side + column] = 0.5 * (product(row, column) + product(column, row));
            }
        }
        let with_target =
            if rows > side { (0..side).map(|column| product(side, column)).collect() } else { Vec::new() };
        let noise = plan.descent.noise_multiplier.get() * (counters.moments as f64).sqrt() / divisor;
        Some((matrix, with_target, noise))
    }

    /// The solution of ridge regression, with a ridge that makes up for the noise (Wang 2018, AdaSSP).
    ///
    /// The smallest eigenvalue is raised to the usual size of the noise in it.
    fn solution(&self, counters: &Counters, plan: &Plan) -> Option<Vec<f64>> {
        let (mut matrix, mut weights, noise) = self.products(counters, plan)?;
        let side = plan.columns.width() + 1;
        (0..side - 1).for_each(|feature| matrix[feature * (side + 1)] += plan.regularization);
        let factors = Cholesky::raised(&matrix, side, noise * (side as f64).sqrt())?;
        factors.solve(&mut weights);
        Some(weights)
    }

    /// The factors of an upper bound of the Hessian that makes up for its noise.
    fn hessian(&self, counters: &Counters, plan: &Plan) -> Option<Cholesky> {
        let (mut matrix, _, noise) = self.products(counters, plan)?;
        let side = plan.columns.width() + 1;
        let noise = noise * (2.0 * side as f64).sqrt();
        let curvature = plan.curvature();
        for product in &mut *matrix {
            *product *= curvature;
        }
        for feature in 0..side {
            matrix[feature * (side + 1)] += curvature * noise + plan.regularization;
        }
        Cholesky::raised(&matrix, side, curvature * noise)
    }
}

/// Changes the row of one output, its bias last.
fn transform(plan: &Plan, weights: &mut [f64], output: usize, change: impl FnOnce(&mut [f64])) {
    let width = plan.columns.width();
    let bias = plan.outputs() * width + output;
    let mut row: Vec<f64> = weights[output * width..][..width].to_vec();
    row.push(weights[bias]);
    change(&mut row);
    weights[output * width..][..width].copy_from_slice(&row[..width]);
    weights[bias] = row[width];
}

/// The mean of counts in [0, 1], from the mean of counts that were scaled to [-1, 1].
///
/// Noise may have moved the mean to zero or below; it is kept away from zero.
pub(super) fn mean_count(centre: f64) -> f64 {
    (0.5 * centre + 0.5).clamp(0.001, 1.0)
}

impl Snapshot for State {
    fn position(&self) -> u64 {
        self.counters.position
    }

    fn taken(&self) -> u64 {
        self.counters.taken
    }

    /// The file is a safetensors file.
    fn save(&self) -> Result<Vec<u8>, Error> {
        let counters = Counters { averaged: self.mean.count(), ..self.counters.clone() };
        let text = serde_json::to_string(&counters)
            .map_err(|_| Error::saved("counters", "not writable", "numbers"))?;
        let mut state = self.clone();
        let mut tensors: Vec<(&str, Tensor)> =
            state.tensors_mut().into_iter().map(|(name, values)| (name, Tensor::double(values))).collect();
        tensors.push((AVERAGE, Tensor::double(self.mean.state())));
        let metadata = [(COUNTERS.to_owned(), text)].into();
        serialize(tensors, Some(metadata)).map_err(|_| Error::saved("checkpoint", "not writable", "tensors"))
    }
}
