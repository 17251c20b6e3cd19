//! Calibration: a last release that corrects the scale and the offset of all predictions.
//!
//! Clipped gradients count large errors too little. So numbers are predicted nearer to their median than to
//! their mean, and probabilities are too sure. Both faults are a matter of two numbers, a and b: the corrected
//! output is a · output + b. They follow from one short sum over all records. What noise alone could explain
//! is not corrected.

use super::loss::{Loss, Target};

/// What a record adds to the sum from which scale and offset follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::learner) enum Calibration {
    /// The predicted number, the target, and their products: for a line through predictions and targets.
    Line,
    /// The predicted count and the target: for their ratio.
    Ratio,
    /// One of several ranges of the score of the second class, and whether it is the class.
    Binary,
    /// One of several ranges of the score of the most probable class, and whether it is the class.
    Confidence,
}

/// Ranges of a score, and the width of each. Scores beyond the last range count as in it.
const RANGES: usize = 28;
const WIDTH: f64 = 0.6;
/// Records in a range that count, in standard deviations of noise. Smaller ranges are joined.
const CLEAR: f64 = 8.0;
/// Newton steps of a regression on two numbers.
const NEWTON_STEPS: usize = 25;

/// The correction of an output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::learner) struct Correction {
    /// What multiplies the output.
    pub(in crate::learner) scale: f64,
    /// What is added then.
    pub(in crate::learner) offset: f64,
}

impl Correction {
    /// Leaves every output as it is.
    pub(in crate::learner) const NONE: Self = Self { scale: 1.0, offset: 0.0 };
}

impl Calibration {
    /// The calibration for a loss; `None` if outputs are no expectations or probabilities.
    ///
    /// `outputs` is the number of outputs. With two, the score of the second class is their difference.
    pub(in crate::learner) fn of(loss: Loss, outputs: usize) -> Option<Self> {
        match loss {
            Loss::Squared | Loss::Huber { .. } => Some(Self::Line),
            Loss::Poisson => Some(Self::Ratio),
            Loss::BinaryCrossEntropy => Some(Self::Binary),
            Loss::CrossEntropy { .. } if outputs == 2 => Some(Self::Binary),
            Loss::CrossEntropy { .. } => Some(Self::Confidence),
            Loss::Hinge { .. } | Loss::Pinball { .. } => None,
        }
    }

    /// Number of numbers in the vector of a record.
    pub(in crate::learner) fn length(self) -> usize {
        match self {
            Self::Line => 4,
            Self::Ratio => 2,
            Self::Binary | Self::Confidence => 2 * RANGES,
        }
    }

    /// Adds the share of an example in the vector of its record, which is at most one long.
    ///
    /// `outputs` are those of the fitted model. A target or an output that is not a number makes the vector
    /// one that is not a number, which the mechanism drops.
    pub(in crate::learner) fn add(self, outputs: &[f32], target: Target, fraction: f32, vector: &mut [f32]) {
        let mut add = |place: usize, value: f32| vector[place] += fraction * value;
        match (self, target) {
            (Self::Line, Target::Number(target)) => {
                let [s, y] = [outputs[0], target].map(|x| x.clamp(-1.0, 1.0));
                // Four numbers in [-1, 1], halved, are at most one long.
                [s, y, s * s, s * y].iter().enumerate().for_each(|(place, x)| add(place, 0.5 * x));
            }
            (Self::Ratio, Target::Number(target)) => {
                let [s, y] =
                    [outputs[0].clamp(f32::NEG_INFINITY, 0.0).exp(), (0.5 * target + 0.5).clamp(0.0, 1.0)];
                let half = std::f32::consts::FRAC_1_SQRT_2;
                [s, y].iter().enumerate().for_each(|(place, x)| add(place, half * x));
            }
            (Self::Binary, Target::Class(class)) => {
                // The logarithm of the odds of the second class.
                let score = if let [first, second] = *outputs { second - first } else { outputs[0] };
                add(2 * range(f64::from(score)) + usize::from(class == 1), finite(score));
            }
            (Self::Confidence, Target::Class(class)) => {
                let (best, score) = confidence(outputs);
                add(2 * range(score) + usize::from(class as usize == best), finite(score as f32));
            }
            (Self::Line | Self::Ratio, Target::Class(_))
            | (Self::Binary | Self::Confidence, Target::Number(_)) => add(0, f32::NAN),
        }
    }

    /// The correction that follows from the released sum of a number of vectors.
    ///
    /// `noise` is the standard deviation of the noise in each number of the sum.
    pub(in crate::learner) fn correction(self, sum: &[f64], records: f64, noise: f64) -> Correction {
        match self {
            Self::Line => line(sum, records, noise),
            Self::Ratio => ratio(sum, noise),
            Self::Binary => regression(sum, noise, true),
            Self::Confidence => regression(sum, noise, false),
        }
    }
}

/// One, or NaN for a score that is not finite.
fn finite(score: f32) -> f32 {
    1.0 + 0.0 * score
}

/// The range of a score.
fn range(score: f64) -> usize {
    // NaN becomes 0 here. What is added there is NaN, too.
    (score / WIDTH + 0.5 * RANGES as f64).clamp(0.0, (RANGES - 1) as f64) as usize
}

/// The middle of a range.
fn middle(range: usize) -> f64 {
    (range as f64 + 0.5 - 0.5 * RANGES as f64) * WIDTH
}

/// The most probable class, and the logarithm of its odds.
fn confidence(outputs: &[f32]) -> (usize, f64) {
    let best = (0..outputs.len()).max_by(|a, b| outputs[*a].total_cmp(&outputs[*b])).unwrap_or(0);
    let others = outputs.iter().enumerate().filter(|(place, _)| *place != best);
    let odds: f64 = others.map(|(_, x)| f64::from(x - outputs[best]).exp()).sum();
    (best, -(odds + 1e-30).ln())
}

/// The part of an estimate that noise does not explain, in [0, 1]. `numbers` is how many it has.
fn unexplained_part(squared: f64, numbers: f64, noise: f64) -> f64 {
    // The expected square of noise alone is numbers · noise². Twice that is left out.
    (1.0 - 2.0 * numbers * noise * noise / squared.max(f64::MIN_POSITIVE)).max(0.0)
}

/// The line that predicts targets best from predictions, by least squares.
fn line(sum: &[f64], records: f64, noise: f64) -> Correction {
    let &[s, y, ss, sy] = sum else { return Correction::NONE };
    let [s, y, ss, sy] = [s, y, ss, sy].map(|x| 2.0 * x / records);
    let noise = 2.0 * noise / records;
    // The gradient of the squared error at a = 1 and b = 0. Each of its numbers has noise of √2.
    let [along, offset] = [sy - ss, y - s];
    let part = unexplained_part(along * along + offset * offset, 2.0, std::f64::consts::SQRT_2 * noise);
    // A ridge keeps the scale near one where predictions hardly vary.
    let ridge = 4.0 * noise;
    let (ss, one) = (ss.clamp(0.0, 1.0) + ridge, 1.0 + ridge);
    let s = s.clamp(-1.0, 1.0);
    let determinant = (ss * one - s * s).max(ridge * ridge);
    let scale = 1.0 + part * (one * along - s * offset) / determinant;
    let offset = part * (ss * offset - s * along) / determinant;
    Correction { scale: scale.clamp(0.1, 10.0), offset: offset.clamp(-2.0, 2.0) }
}

/// The ratio of targets to predictions, as the offset of a logarithm.
fn ratio(sum: &[f64], noise: f64) -> Correction {
    let &[predicted, target] = sum else { return Correction::NONE };
    let part = unexplained_part((target - predicted).powi(2), 1.0, std::f64::consts::SQRT_2 * noise);
    let corrected = predicted + part * (target - predicted);
    let floor = CLEAR * noise;
    let offset = (corrected.max(floor) / predicted.max(floor)).ln();
    Correction { offset: offset.clamp(-3.0, 3.0), ..Correction::NONE }
}

/// Logistic regression of what is the case on the scores, from noisy counts of ranges.
fn regression(counts: &[f64], noise: f64, has_offset: bool) -> Correction {
    let (groups, part) = (groups(counts, CLEAR * noise), clear_part(counts, noise, has_offset));
    if groups.len() < 2 || part == 0.0 {
        return Correction::NONE;
    }
    // A prior at no correction, as strong as the noise in a group.
    let prior = CLEAR * noise;
    let [mut scale, mut offset] = [1.0, 0.0];
    for _ in 0..NEWTON_STEPS {
        let mut gradient = [prior * (scale - 1.0), prior * offset];
        let mut hessian = [prior, 0.0, prior];
        for &(score, others, cases) in &groups {
            let probability = 1.0 / (1.0 + f64::exp(-(scale * score + offset)));
            let (all, residual) = (others + cases, (others + cases) * probability - cases);
            let weight = all * (probability * (1.0 - probability)).max(1e-4);
            gradient[0] += residual * score;
            gradient[1] += residual;
            hessian[0] += weight * score * score;
            hessian[1] += weight * score;
            hessian[2] += weight;
        }
        if has_offset {
            let determinant = hessian[0] * hessian[2] - hessian[1] * hessian[1];
            scale -= (hessian[2] * gradient[0] - hessian[1] * gradient[1]) / determinant;
            offset -= (hessian[0] * gradient[1] - hessian[1] * gradient[0]) / determinant;
        } else {
            scale -= gradient[0] / hessian[0];
        }
        // A step that leaves this range is cut, so that Newton's method cannot run away.
        (scale, offset) = (scale.clamp(0.1, 5.0), offset.clamp(-5.0, 5.0));
    }
    Correction { scale: 1.0 + part * (scale - 1.0), offset: part * offset }
}

/// The part of the gradient at no correction that noise does not explain.
fn clear_part(counts: &[f64], noise: f64, has_offset: bool) -> f64 {
    // By the scale, and by the offset: the gradient, and the variance of its noise.
    let ([mut gradient, mut variance], of) = ([[0.0; 2]; 2], if has_offset { 2 } else { 1 });
    for (range, pair) in counts.chunks_exact(2).enumerate() {
        let score = middle(range);
        let probability = 1.0 / (1.0 + f64::exp(-score));
        let residual = (pair[0] + pair[1]) * probability - pair[1];
        for (place, factor) in [score, 1.0].into_iter().enumerate().take(of) {
            gradient[place] += residual * factor;
            variance[place] +=
                (noise * factor).powi(2) * (probability * probability + (1.0 - probability).powi(2));
        }
    }
    let squared = (0..of).map(|place| gradient[place] * gradient[place] / variance[place]).sum();
    unexplained_part(squared, of as f64, 1.0)
}

/// Neighbouring ranges, joined until each group has enough records: mean score, other records, cases.
fn groups(counts: &[f64], enough: f64) -> Vec<(f64, f64, f64)> {
    let mut groups: Vec<(f64, f64, f64)> = Vec::new();
    let (mut weighted, mut totals, mut sums) = (0.0, 0.0, [0.0, 0.0]);
    for (range, pair) in counts.chunks_exact(2).enumerate() {
        let all = (pair[0] + pair[1]).max(0.0);
        (weighted, totals) = (weighted + all * middle(range), totals + all);
        sums = [sums[0] + pair[0], sums[1] + pair[1]];
        if sums[0] + sums[1] >= enough {
            groups.push((weighted / totals, sums[0].max(0.0), sums[1].max(0.0)));
            (weighted, totals, sums) = (0.0, 0.0, [0.0, 0.0]);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::PublicRandom;

    /// The sum of the vectors of examples.
    fn sum(calibration: Calibration, examples: &[(Vec<f32>, Target)]) -> Vec<f64> {
        let mut total = vec![0.0; calibration.length()];
        for (outputs, target) in examples {
            let mut vector = vec![0.0; calibration.length()];
            calibration.add(outputs, *target, 1.0, &mut vector);
            assert!(vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() <= 1.0 + 1e-6, "{vector:?}");
            total.iter_mut().zip(vector).for_each(|(total, x)| *total += f64::from(x));
        }
        total
    }

    #[test]
    fn numbers_get_the_line_of_least_squares() {
        let mut chance = PublicRandom::new(7);
        let examples: Vec<(Vec<f32>, Target)> = (0..20_000)
            .map(|_| {
                let s = chance.between(-0.8, 0.2);
                // A skewed error with mean zero.
                let error = if chance.below(4) == 0 { 0.3 } else { -0.1 };
                (vec![s], Target::Number(0.5 * s + 0.1 + error))
            })
            .collect();
        let released = sum(Calibration::Line, &examples);
        let found = Calibration::Line.correction(&released, 20_000.0, 1.0);
        assert!((found.scale - 0.5).abs() < 0.03 && (found.offset - 0.1).abs() < 0.02, "{found:?}");
        // Noise that could explain the difference leaves the predictions as they are.
        assert_eq!(Calibration::Line.correction(&released, 20_000.0, 1e5), Correction::NONE);
    }

    #[test]
    fn counts_get_the_ratio_of_the_means() {
        let examples = vec![(vec![-2.0], Target::Number(-0.5)); 1_000];
        let released = sum(Calibration::Ratio, &examples);
        // Targets are a quarter of the largest count, and e⁻² of it is predicted.
        let found = Calibration::Ratio.correction(&released, 1_000.0, 0.1);
        assert!((found.offset - (0.25_f64.ln() + 2.0)).abs() < 1e-3 && found.scale == 1.0, "{found:?}");
    }

    #[test]
    fn probabilities_become_shares_of_what_is_the_case() {
        let mut chance = PublicRandom::new(8);
        let examples: Vec<(Vec<f32>, Target)> = (0..40_000)
            .map(|_| {
                let s = chance.between(-5.0, 5.0);
                let probability = 1.0 / (1.0 + (-(0.5 * s - 0.4)).exp());
                (vec![s], Target::Class(u32::from(chance.between(0.0, 1.0) < probability)))
            })
            .collect();
        let found = Calibration::Binary.correction(&sum(Calibration::Binary, &examples), 40_000.0, 5.0);
        assert!((found.scale - 0.5).abs() < 0.03 && (found.offset + 0.4).abs() < 0.05, "{found:?}");
        // The same with two outputs: the most probable class is right as often as its corrected score says.
        let pairs: Vec<(Vec<f32>, Target)> =
            examples.iter().map(|(s, target)| (vec![0.0, s[0]], *target)).collect();
        let of_pairs = sum(Calibration::Binary, &pairs);
        assert_eq!(of_pairs, sum(Calibration::Binary, &examples));
        let found = Calibration::Confidence.correction(&sum(Calibration::Confidence, &pairs), 40_000.0, 5.0);
        assert!((found.scale - 0.5).abs() < 0.05 && found.offset == 0.0, "{found:?}");
    }

    #[test]
    fn noise_alone_corrects_little_and_seldom() {
        let mut chance = PublicRandom::new(9);
        for calibration in
            [Calibration::Line, Calibration::Ratio, Calibration::Binary, Calibration::Confidence]
        {
            let mut corrected = 0;
            for _ in 0..200 {
                let noise: Vec<f64> =
                    (0..calibration.length()).map(|_| 50.0 * f64::from(chance.normal())).collect();
                let found = calibration.correction(&noise, 100.0, 50.0);
                assert!((0.1..=10.0).contains(&found.scale) && found.offset.abs() <= 5.0, "{found:?}");
                corrected += u32::from(found != Correction::NONE);
            }
            // Twice the expected square is exceeded with probability 0.16 at most: 32 ± 5 of 200.
            assert!(corrected < 60, "{calibration:?} {corrected}");
        }
    }

    #[test]
    fn numbers_that_are_not_finite_are_dropped_by_the_mechanism() {
        for calibration in
            [Calibration::Line, Calibration::Ratio, Calibration::Binary, Calibration::Confidence]
        {
            let targets = [Target::Class(0), Target::Number(0.0)];
            let mut vector = vec![0.0; calibration.length()];
            for target in targets {
                calibration.add(&[f32::NAN, f32::INFINITY], target, 1.0, &mut vector);
            }
            assert!(vector.iter().any(|x| x.is_nan()), "{calibration:?}");
        }
    }
}
