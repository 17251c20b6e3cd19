//! Centres and spreads of all columns, estimated from noisy sums.
//!
//! A linear model learns fastest from columns of mean zero and spread one. Both numbers are private, so they
//! are paid for: averages of noisy means, and averages of noisy mean deviations. What is done with them here
//! is post-processing. Estimates with much noise are shrunk towards their common mean.

use super::{Algorithm, Columns, Plan};

/// Deviations are clamped to this number of spreads: values beyond are winsorised.
///
/// Classes gain from the tails of the columns, and linear regression suffers from them.
pub(super) fn limit(classes: Option<usize>) -> f64 {
    if classes.is_some() { 12.0 } else { 4.0 }
}

/// A mean absolute deviation times this is the standard deviation of a normal column: √(π/2), rounded.
pub(in crate::learner) const NORMAL: f64 = 1.25;

/// The smallest and the largest spread of a column with values in [-1, 1].
pub(in crate::learner) const SPREADS: [f64; 2] = [0.001, 1.0];

/// Variance of the means of targets over data sets, as prior knowledge.
const TARGET_VARIANCE: f64 = 0.1;

/// The centre and the spread of every feature, and of the target where it is a number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Standardization {
    /// What is subtracted.
    pub(super) centres: Vec<f64>,
    /// What divides the difference.
    pub(super) spreads: Vec<f64>,
    /// Centre and spread of a numeric target.
    pub(super) target: [f64; 2],
    /// The factor for standardised numbers, relative to indicators.
    gain: f64,
    /// The usual length of a standardised example.
    pub(super) usual_length: f64,
}

/// Averages of released means, and the standard deviation of the noise in them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Estimate<'a> {
    pub(super) values: &'a [f64],
    pub(super) noise: f64,
}

/// The gain where classes are predicted.
const CLASS_GAIN: f64 = 0.8;

impl Standardization {
    /// The constants that use nothing but the declared bounds: no example is longer than the usual length.
    ///
    /// Data without a schema may be longer; the mechanism clips it.
    pub(super) fn declared(plan: &Plan) -> Self {
        let width = plan.columns.width();
        Self {
            centres: vec![0.0; width],
            spreads: vec![1.0; width],
            target: [0.0, 1.0],
            gain: 1.0,
            usual_length: (plan.columns.count as f64).sqrt(),
        }
    }

    /// Centres of all features from their noisy means, and of the target, which is the last of them.
    pub(super) fn centres(plan: &Plan, means: &Estimate<'_>) -> (Vec<f64>, f64) {
        let Plan { columns, .. } = plan;
        let (features, target) = means.values.split_at(columns.width().min(means.values.len()));
        let mut centres = features.to_vec();
        let numbers = columns.numbers();
        shrink(&mut of_numbers(columns, &mut centres), means.noise);
        // With classes, the centre of a noisy column is better at the middle of its bounds.
        let damping = if plan.classes.is_some() {
            1.0 / (1.0 + means.noise.powi(2) / numbers.max(1) as f64)
        } else {
            1.0
        };
        for (feature, centre) in centres.iter_mut().enumerate() {
            *centre = if columns.is_indicator(feature) {
                centre.clamp(0.0, 1.0)
            } else {
                damping * centre.clamp(-1.0, 1.0)
            };
        }
        let target = target.first().copied().unwrap_or(0.0).clamp(-1.0, 1.0);
        (centres, target / (1.0 + means.noise.powi(2) / TARGET_VARIANCE))
    }

    /// All constants, from the centres and the noisy mean deviations from them.
    pub(super) fn new(
        plan: &Plan,
        (centres, target): (Vec<f64>, f64),
        means_noise: f64,
        deviations: &Estimate<'_>,
    ) -> Self {
        let Plan { columns, records, .. } = plan;
        let noise = NORMAL * deviations.noise;
        let mut spreads: Vec<f64> = deviations.values.iter().map(|deviation| NORMAL * deviation).collect();
        // Without any number, no deviations are released.
        spreads.resize(spreads.len().max(columns.width()), 0.0);
        let target_spread = if plan.classes.is_none() { spreads.pop() } else { None };
        shrink(&mut of_numbers(columns, &mut spreads), noise);
        // A spread that noise alone could explain is raised to three times the noise, but to no more than half
        // the range.
        let floor = (3.0 * deviations.noise).min(0.5);
        let bounded = |spread: f64| spread.max(floor).clamp(SPREADS[0], SPREADS[1]);
        for (feature, spread) in spreads.iter_mut().enumerate() {
            *spread = if columns.is_indicator(feature) {
                let rarest = (2.0 * means_noise).max(1.0 / *records as f64).min(0.5);
                let share = centres[feature].clamp(rarest, 0.5);
                (share * (1.0 - share)).powf(0.25)
            } else {
                bounded(*spread)
            };
        }
        let target = [target, target_spread.map_or(1.0, bounded)];
        let gain = if plan.classes.is_some() { CLASS_GAIN } else { 1.0 };
        let mut standardization = Self { centres, spreads, target, gain, usual_length: 1.0 };
        standardization.usual_length = standardization.typical_length(plan);
        standardization
    }

    /// The length of a standardised example that is not unusual.
    fn typical_length(&self, plan: &Plan) -> f64 {
        let columns = &plan.columns;
        let numbers = columns.numbers() as f64;
        if plan.classes.is_none() {
            let others = columns.count as f64 - numbers;
            let usual = (numbers * (1.0 + plan.wave_power()) + 1.4 * others + plan.leaf_power() + 2.0).sqrt();
            return if plan.algorithm == Algorithm::Adassp { usual } else { 0.8 * usual };
        }
        let indicators: f64 = (0..columns.width())
            .filter(|feature| columns.is_indicator(*feature))
            .map(|feature| {
                let (centre, spread) = (self.centres[feature], self.spreads[feature]);
                centre * (1.0 - centre) / (spread * spread)
            })
            .sum();
        let curves = self.gain.powi(2) * numbers * (1.0 + plan.wave_power());
        1.4 * (curves + indicators + plan.leaf_power() + 1.0).sqrt()
    }

    /// The weights of the layer that standardises: centres, rates and gains.
    ///
    /// Examples of usual length have length one. Indicators are not winsorised.
    pub(super) fn weights(&self, plan: &Plan) -> Vec<f32> {
        let width = plan.columns.width();
        let mut weights: Vec<f32> = self.centres.iter().map(|centre| *centre as f32).collect();
        let constants = (0..width).map(|feature| {
            let spread = self.spreads[feature];
            if plan.columns.is_indicator(feature) {
                (1.0, 1.0 / (spread * self.usual_length))
            } else {
                (1.0 / spread, self.gain / self.usual_length)
            }
        });
        let (rates, gains): (Vec<f64>, Vec<f64>) = constants.unzip();
        weights.extend(rates.iter().chain(&gains).map(|constant| *constant as f32));
        weights
    }

    /// The factor of the waves: their amplitudes are relative to that of a number.
    pub(super) fn wave_gain(&self) -> f64 {
        self.gain / self.usual_length
    }

    /// The factor of the features of leaves.
    pub(super) fn leaf_gain(&self, plan: &Plan) -> f64 {
        plan.leaf_amplitude() / self.usual_length
    }

    /// The weights of all layers before the linear one.
    pub(super) fn layers(&self, plan: &Plan) -> Vec<f32> {
        let (width, leaves) = (plan.columns.width(), plan.leaves());
        let mut constants = self.weights(plan);
        let mut gains = constants.split_off(2 * width);
        let (centres, rates) = constants.split_at(width);
        gains.extend(std::iter::repeat_n(self.leaf_gain(plan) as f32, leaves));
        let mut later = vec![1.0; width + leaves];
        if !plan.waves.is_empty() {
            // Waves are of standardised numbers, so the gains of numbers follow after them.
            for feature in (0..width).filter(|feature| !plan.columns.is_indicator(*feature)) {
                std::mem::swap(&mut gains[feature], &mut later[feature]);
            }
        }
        let mut weights = plan.thresholds(self);
        weights.extend(centres);
        weights.extend(std::iter::repeat_n(0.0, leaves));
        weights.extend(rates);
        weights.extend(std::iter::repeat_n(1.0, leaves));
        weights.extend(gains);
        if !plan.waves.is_empty() {
            let all = plan.features();
            weights.extend(std::iter::repeat_n(0.0, all));
            weights.extend(std::iter::repeat_n(1.0, all));
            later.resize(all, self.wave_gain() as f32);
            weights.extend(later);
        }
        weights
    }
}

/// The estimates of all features that are numbers.
fn of_numbers<'e>(columns: &Columns, estimates: &'e mut [f64]) -> Vec<&'e mut f64> {
    let features = estimates.iter_mut().take(columns.width()).enumerate();
    features.filter(|(feature, _)| !columns.is_indicator(*feature)).map(|(_, estimate)| estimate).collect()
}

/// Shrinks estimates towards their mean, as far as noise explains their spread.
///
/// The positive-part estimator of James and Stein around the mean (Efron and Morris 1973), for four or more
/// numbers with equal noise.
pub(in crate::learner) fn shrink(estimates: &mut [&mut f64], noise: f64) {
    if estimates.len() < 4 {
        return;
    }
    let count = estimates.len() as f64;
    let mean = estimates.iter().map(|estimate| **estimate).sum::<f64>() / count;
    let squares: f64 = estimates.iter().map(|estimate| (**estimate - mean).powi(2)).sum();
    let kept = if squares > 0.0 { (1.0 - (count - 3.0) * noise * noise / squares).max(0.0) } else { 0.0 };
    for estimate in estimates {
        **estimate = mean + kept * (**estimate - mean);
    }
}
