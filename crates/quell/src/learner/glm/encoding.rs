//! How a stage encodes examples: standardised numbers, and constants for the categories that are there.
//!
//! The right factor of a vector has a value for every indicator, also where it is 0: minus its mean share.
//! These values are the same for all examples. So scores, lengths and sums need one operation for each
//! category that is there, and the rest is computed once for a block or a step.

use super::{
    Plan, Standardization,
    compact::{CompactExample, CompactRecords},
    stages::Stage,
    standardization::limit,
};
use crate::{
    kernel::numbers::{add_scaled, dot, squared_length},
    layer::WaveTable,
    learner::loss::Target,
};

/// The encoding of one stage.
pub(super) struct Encoding<'a> {
    records: &'a CompactRecords,
    /// Number of rows of the released matrix.
    pub(super) outputs: usize,
    has_biases: bool,
    /// Numbers become gain · clamp((x - centre) · rate, -limit, limit), or |…| where spreads are measured.
    centres: Vec<f32>,
    rates: Vec<f32>,
    gains: Vec<f32>,
    limit: f32,
    is_absolute: bool,
    /// The waves of each number, and their factor.
    waves: Option<&'a WaveTable>,
    wave_gain: f32,
    /// Whether a numeric target is one more number.
    has_target: bool,
    /// Columns of the released matrix.
    columns: usize,
    /// The column of each number.
    places: Vec<usize>,
    /// The value of each indicator that is 0, and the sum of their squares.
    zeros: Vec<f64>,
    zeros_squared: f64,
    /// For each value of an indicator, what it adds to the value of its indicator, and to the squared length.
    steps: Vec<f64>,
    squared_steps: Vec<f64>,
}

/// Weights in the order in which scores are computed: for each feature, the numbers of all outputs.
#[derive(Default)]
pub(super) struct PackedWeights {
    lanes: usize,
    numbers: Vec<f32>,
    indicator_values: Vec<f32>,
    /// The scores of an example whose numbers and indicators are all 0.
    zeros: Vec<f32>,
    pub(super) biases: Vec<f32>,
}

/// The sum of the outer products of a block.
#[derive(Default)]
pub(super) struct Sums {
    lanes: usize,
    numbers: Vec<f32>,
    /// The sum of the left factors, of all examples and of those with each value of an indicator.
    left: Vec<f64>,
    indicator_values: Vec<f64>,
    /// The values of indicators of the block, in the order in which they were found, and whether each one is there.
    found: Vec<u32>,
    is_found: Vec<bool>,
    biases: Vec<f64>,
}

impl<'a> Encoding<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        records: &'a CompactRecords,
        stage: Stage,
        standardization: &Standardization,
    ) -> Self {
        let width = plan.columns.width();
        let is_mean = matches!(stage, Stage::Means | Stage::Deviations);
        let has_target = is_mean && plan.classes.is_none();
        let has_scores = stage.has_scores();
        let (targets, outputs) = (usize::from(plan.classes.is_none()), plan.outputs());
        let outputs = match stage {
            Stage::Means | Stage::Deviations => 1,
            Stage::Moments => width + 1 + targets,
            Stage::Gradient | Stage::Reference | Stage::Correction | Stage::Calibration => outputs,
        };
        // Centre, rate and gain of a feature, or of the target, which is the last one.
        let constants = standardization.weights(plan);
        let scale = plan.scale(stage) as f32;
        let leaf_gain = standardization.leaf_gain(plan) as f32;
        let of = |feature: usize| match stage {
            _ if has_scores && feature >= width => [plan.leaf_share(feature - width), 1.0, leaf_gain],
            Stage::Means => [0.0, 1.0, scale],
            Stage::Deviations if feature == width => [standardization.target[0] as f32, 1.0, scale],
            Stage::Deviations if plan.columns.is_indicator(feature) => [0.0, 1.0, 0.0],
            Stage::Deviations => [constants[feature], 1.0, scale],
            _ => [0, 1, 2].map(|kind| constants[kind * width + feature]),
        };
        let limit = match stage {
            Stage::Means => f32::INFINITY,
            // So that Plan::deviation_scale makes the vector at most one long.
            Stage::Deviations => 1.0,
            _ => limit(plan.classes) as f32,
        };
        let value = |feature: usize, x: f32| {
            let [centre, rate, gain] = of(feature);
            f64::from(gain * between((x - centre) * rate, limit))
        };
        let zeros: Vec<f64> = records.indicators.iter().map(|feature| value(*feature, 0.0)).collect();
        let steps = records.indicator_values.iter().map(|indicator_value| {
            let (zero, own) = (
                zeros[indicator_value.indicator],
                value(records.indicators[indicator_value.indicator], indicator_value.value),
            );
            (own - zero, own * own - zero * zero)
        });
        let (steps, squared_steps) = steps.unzip();
        let mut places: Vec<usize> =
            records.numbers.iter().copied().chain(has_target.then_some(width)).collect();
        let column = |kind: usize| places.iter().map(|place| of(*place)[kind]).collect();
        let [centres, rates, gains] = [0, 1, 2].map(column);
        let waves = Some(&plan.wave_table).filter(|table| has_scores && table.count > 0);
        let before_waves = width + usize::from(has_target) + if has_scores { plan.leaves() } else { 0 };
        let columns = before_waves + records.numbers.len() * waves.map_or(0, |table| table.count);
        places.extend(before_waves..columns);
        Self {
            records,
            outputs,
            has_biases: !is_mean,
            centres,
            rates,
            gains,
            limit,
            is_absolute: stage == Stage::Deviations,
            has_target,
            columns,
            waves,
            wave_gain: standardization.wave_gain() as f32,
            places,
            zeros_squared: zeros.iter().map(|zero| zero * zero).sum(),
            zeros,
            steps,
            squared_steps,
        }
    }

    /// Numbers of all outputs that are stored for one feature: one, or a multiple of eight for vector units.
    pub(super) fn lanes(&self) -> usize {
        if self.outputs == 1 { 1 } else { self.outputs.next_multiple_of(8) }
    }

    /// Number of numbers of an example and of their waves, with a numeric target where it is one of them.
    pub(super) fn numbers(&self) -> usize {
        self.places.len()
    }

    /// Number of numbers that are released.
    pub(super) fn vector_length(&self) -> usize {
        self.outputs * (self.columns + usize::from(self.has_biases))
    }

    /// Writes the numbers of an example, and returns the squared length of all its features.
    #[inline(always)]
    pub(super) fn encode(&self, example: CompactExample<'_>, right: &mut [f32]) -> f64 {
        let constants = self.centres.iter().zip(&self.rates).zip(&self.gains);
        for ((y, x), ((centre, rate), gain)) in right.iter_mut().zip(example.numbers).zip(constants) {
            *y = gain * between((x - centre) * rate, self.limit);
        }
        if let Some(table) = self.waves {
            let waves = right[example.numbers.len()..].chunks_exact_mut(table.count);
            let numbers = example.numbers.iter().zip(&self.centres).zip(&self.rates);
            for (waves, ((x, centre), rate)) in waves.zip(numbers) {
                table.write(between((x - centre) * rate, self.limit), self.wave_gain, waves);
            }
        }
        if let (true, [.., y], Target::Number(target)) = (self.has_target, &mut *right, example.target) {
            let last = self.centres.len() - 1;
            *y = self.gains[last] * between((target - self.centres[last]) * self.rates[last], self.limit);
        }
        if self.is_absolute {
            for y in &mut *right {
                *y = y.abs();
            }
        }
        let mut indicators = self.zeros_squared;
        for indicator_value in example.indicator_values {
            indicators += self.squared_steps[*indicator_value as usize];
        }
        // Differences of squares may leave less than nothing, by rounding.
        squared_length(right) + if indicators < 0.0 { 0.0 } else { indicators }
    }

    /// Writes all features of an example.
    pub(super) fn expand(&self, example: CompactExample<'_>, numbers: &[f32], dense: &mut [f32]) {
        for (feature, zero) in self.records.indicators.iter().zip(&self.zeros) {
            dense[*feature] = *zero as f32;
        }
        for indicator_value in example.indicator_values {
            let indicator = self.records.indicator_values[*indicator_value as usize].indicator;
            let value = self.zeros[indicator] + self.steps[*indicator_value as usize];
            dense[self.records.indicators[indicator]] = value as f32;
        }
        for (place, number) in self.places.iter().zip(numbers) {
            dense[*place] = *number;
        }
    }

    /// Packs weights: rows for the outputs, then the biases.
    pub(super) fn pack(&self, weights: &[f32]) -> PackedWeights {
        let (lanes, outputs) = (self.lanes(), self.outputs);
        let (matrix, own_biases) = weights.split_at(outputs * self.columns);
        let weight = |output: usize, feature: usize| matrix[output * self.columns + feature];
        let mut numbers = vec![0.0; self.places.len() * lanes];
        for (row, place) in numbers.chunks_exact_mut(lanes).zip(&self.places) {
            (0..outputs).for_each(|output| row[output] = weight(output, *place));
        }
        let mut indicator_values = vec![0.0; self.steps.len() * lanes];
        let of_indicator_values = self.records.indicator_values.iter().zip(&self.steps);
        for (row, (indicator_value, step)) in
            indicator_values.chunks_exact_mut(lanes).zip(of_indicator_values)
        {
            let feature = self.records.indicators[indicator_value.indicator];
            (0..outputs).for_each(|output| row[output] = (f64::from(weight(output, feature)) * step) as f32);
        }
        let (mut zeros, mut biases) = (vec![0.0; lanes], vec![0.0; lanes]);
        biases[..outputs].copy_from_slice(own_biases);
        for (output, zero) in zeros.iter_mut().enumerate().take(outputs) {
            let of_indicators = self.records.indicators.iter().zip(&self.zeros);
            let sum: f64 =
                of_indicators.map(|(feature, zero)| f64::from(weight(output, *feature)) * zero).sum();
            *zero = sum as f32;
        }
        PackedWeights { lanes, numbers, indicator_values, zeros, biases }
    }

    pub(super) fn sums(&self) -> Sums {
        let lanes = self.lanes();
        Sums {
            lanes,
            numbers: vec![0.0; self.places.len() * lanes],
            left: vec![0.0; lanes],
            indicator_values: vec![0.0; self.steps.len() * lanes],
            found: Vec::new(),
            is_found: vec![false; self.steps.len()],
            biases: vec![0.0; lanes],
        }
    }

    /// Writes a sum of outer products as a matrix: rows for the outputs, then the biases.
    pub(super) fn combine(&self, sums: &Sums, vector: &mut [f64]) {
        let (lanes, columns) = (sums.lanes, self.columns);
        let (matrix, biases) = vector.split_at_mut(self.outputs * columns);
        for (output, row) in matrix.chunks_exact_mut(columns).enumerate() {
            for (place, sum) in self.places.iter().zip(sums.numbers.iter().skip(output).step_by(lanes)) {
                row[*place] = f64::from(*sum);
            }
            for (feature, zero) in self.records.indicators.iter().zip(&self.zeros) {
                row[*feature] = zero * sums.left[output];
            }
            // Only values of indicators of the block, so that the sum does not depend on other records.
            for indicator_value in &sums.found {
                let indicator_value = *indicator_value as usize;
                let feature =
                    self.records.indicators[self.records.indicator_values[indicator_value].indicator];
                row[feature] +=
                    self.steps[indicator_value] * sums.indicator_values[indicator_value * lanes + output];
            }
        }
        biases.copy_from_slice(&sums.biases[..biases.len()]);
    }
}

impl PackedWeights {
    /// Writes the scores of an example, without biases.
    #[inline(always)]
    pub(super) fn scores(&self, numbers: &[f32], indicator_values: &[u32], scores: &mut [f32]) {
        if let ([score], [zero]) = (&mut *scores, self.zeros.as_slice()) {
            *score = dot(&self.numbers, numbers) + zero;
            for indicator_value in indicator_values {
                *score += self.indicator_values[*indicator_value as usize];
            }
            return;
        }
        // Eight outputs at a time stay in registers.
        let (chunks, zeros) = (scores.as_chunks_mut::<8>().0, self.zeros.as_chunks::<8>().0);
        for (chunk, (scores, zeros)) in chunks.iter_mut().zip(zeros).enumerate() {
            let mut sum = *zeros;
            for (x, row) in numbers.iter().zip(self.numbers.chunks_exact(self.lanes)) {
                let row = row.as_chunks::<8>().0[chunk];
                for (sum, w) in sum.iter_mut().zip(row) {
                    *sum += x * w;
                }
            }
            *scores = sum;
        }
        for indicator_value in indicator_values {
            add_lanes(
                scores,
                1.0,
                &self.indicator_values[*indicator_value as usize * self.lanes..][..self.lanes],
            );
        }
    }
}

impl Sums {
    pub(super) fn clear(&mut self) {
        self.numbers.fill(0.0);
        self.left.fill(0.0);
        for indicator_value in self.found.drain(..) {
            let indicator_value = indicator_value as usize;
            self.is_found[indicator_value] = false;
            self.indicator_values[indicator_value * self.lanes..][..self.lanes].fill(0.0);
        }
        self.biases.fill(0.0);
    }

    /// Adds the scaled outer product of the factors of an example.
    #[inline(always)]
    pub(super) fn add(
        &mut self,
        scale: f32,
        left: &[f32],
        numbers: &[f32],
        indicator_values: &[u32],
        constant: f32,
    ) {
        for indicator_value in indicator_values {
            if !std::mem::replace(&mut self.is_found[*indicator_value as usize], true) {
                self.found.push(*indicator_value);
            }
        }
        if let [left] = left {
            let left = scale * left;
            add_scaled(&mut self.numbers, left, numbers);
            for indicator_value in indicator_values {
                self.indicator_values[*indicator_value as usize] += f64::from(left);
            }
        } else {
            for (row, x) in self.numbers.chunks_exact_mut(self.lanes).zip(numbers) {
                add_lanes(row, scale * x, left);
            }
            for indicator_value in indicator_values {
                let row = &mut self.indicator_values[*indicator_value as usize * self.lanes..][..self.lanes];
                for (sum, left) in row.iter_mut().zip(left) {
                    *sum += f64::from(scale * left);
                }
            }
        }
        for ((sum, bias), left) in self.left.iter_mut().zip(&mut self.biases).zip(left) {
            let left = scale * left;
            *sum += f64::from(left);
            *bias += f64::from(left * constant);
        }
    }
}

/// Computes `sum += scale · row` for lengths that are multiples of eight.
#[inline(always)]
fn add_lanes(sum: &mut [f32], scale: f32, row: &[f32]) {
    for (place, row) in sum.as_chunks_mut::<8>().0.iter_mut().zip(row.as_chunks::<8>().0) {
        // In copies, because the compiler cannot know that the slices do not overlap.
        let (mut sum, row) = (*place, *row);
        for (sum, x) in sum.iter_mut().zip(row) {
            *sum += scale * x;
        }
        *place = sum;
    }
}

/// Clamps to ±limit. NaN stays NaN.
///
/// `clamp` checks its bounds for each number, which a vector unit cannot.
#[inline(always)]
fn between(x: f32, limit: f32) -> f32 {
    let below = if x > limit { limit } else { x };
    if below < -limit { -limit } else { below }
}
