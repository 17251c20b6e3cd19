//! Losses of one example, and their gradients by the network outputs.
//!
//! Every loss is a function of one example. An invalid example gets a gradient of NaN and never an error: an
//! output or target that is NaN, a class that does not exist, or a target of the wrong kind. The clipping
//! mechanism adds nothing for it. An error would reveal that such an example exists.

use serde::{Deserialize, Serialize};

use crate::{
    Error,
    kernel::numbers::exp,
    range::{BELOW_ONE, INSIDE_UNIT, NOT_NEGATIVE, POSITIVE},
};

/// The loss that training minimises.
///
/// ```
/// use quell::learner::loss::{Loss, Target};
/// let loss: Loss = serde_json::from_str(r#"{"cross_entropy": {"label_smoothing": 0.0}}"#)?;
/// let mut gradient = [0.0; 2];
/// let value = loss.loss_and_gradient(&[0.0, 0.0], Target::Class(1), &mut gradient);
/// assert_eq!((value, gradient), (2f32.ln(), [0.5, -0.5]));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Loss {
    /// Cross-entropy -Σ pₖ ln softmax(outputs)ₖ, with one output per class.
    ///
    /// p is 1 - s at the class, plus s/K everywhere.
    CrossEntropy {
        /// s: the share of the target that is spread over all classes.
        #[serde(default)]
        label_smoothing: f32,
    },
    /// Binary cross-entropy of one output z: -y ln σ(z) - (1 - y) ln(1 - σ(z)).
    ///
    /// y is class 0 or 1, or a number between.
    BinaryCrossEntropy,
    /// Half the squared residual. Its gradient is the residual, and it is the limit of Huber losses.
    Squared,
    /// Half the squared residual up to `delta`, and linear beyond.
    Huber {
        /// The residual at which the loss becomes linear.
        #[serde(default = "one")]
        delta: f32,
    },
    /// Quantile loss: `quantile` times an error that is too low, `1 - quantile` times one that is too high.
    Pinball {
        /// The quantile that is learned.
        quantile: f32,
        /// Residuals up to this are smoothed by a parabola. Zero leaves the kink.
        #[serde(default, skip_serializing_if = "is_zero")]
        smoothing: f32,
    },
    /// The hinge loss of a support vector machine, smoothed by a parabola around its kink.
    ///
    /// It has one output for two classes, and else one output for each class against all others.
    Hinge {
        /// Margins that differ from one by at most this are smoothed.
        #[serde(default = "half")]
        smoothing: f32,
    },
    /// Poisson regression: eᶻ - yz, with the expected count eᶻ.
    ///
    /// Counts are scaled to [-1, 1], so y = (target + 1)/2 is a share of the largest count. No expectation
    /// exceeds the largest count: the loss is linear for z > 0.
    Poisson,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &f32) -> bool {
    *number == 0.0
}

fn half() -> f32 {
    0.5
}

fn one() -> f32 {
    1.0
}

/// The target of one example.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// A class, counted from zero.
    Class(u32),
    /// A number.
    Number(f32),
}

/// Infinite outputs are clamped to this. It exceeds every finite output, and differences stay finite.
const FARTHEST: f64 = 1e300;

impl Loss {
    /// Checks that every setting is in its range.
    pub fn check(&self) -> Result<(), Error> {
        match *self {
            Self::CrossEntropy { label_smoothing } => {
                BELOW_ONE.check("label_smoothing", label_smoothing.into())
            }
            Self::Huber { delta } => POSITIVE.check("delta", delta.into()),
            Self::Pinball { quantile, smoothing } => {
                INSIDE_UNIT.check("quantile", quantile.into())?;
                NOT_NEGATIVE.check("smoothing", smoothing.into())
            }
            Self::Hinge { smoothing } => POSITIVE.check("smoothing", smoothing.into()),
            Self::BinaryCrossEntropy | Self::Squared | Self::Poisson => Ok(()),
        }
    }

    /// Number of outputs that a network needs, for a number of classes. Predicting a number needs one.
    #[must_use]
    pub fn outputs(&self, classes: usize) -> usize {
        match self {
            Self::CrossEntropy { .. } => classes,
            Self::Hinge { .. } if classes > 2 => classes,
            _ => 1,
        }
    }

    /// Whether the loss is for classes, and not for numbers.
    #[must_use]
    pub fn classifies(&self) -> bool {
        matches!(self, Self::CrossEntropy { .. } | Self::BinaryCrossEntropy | Self::Hinge { .. })
    }

    /// Whether the output is the predicted number itself.
    pub(super) fn predicts_outputs(&self) -> bool {
        matches!(self, Self::Squared | Self::Huber { .. } | Self::Pinball { .. })
    }

    /// Returns the loss of one example, and writes its gradient by the outputs to `gradient`.
    ///
    /// The loss and every entry of the gradient are NaN for an invalid example (see the module
    /// documentation).
    pub fn loss_and_gradient(&self, outputs: &[f32], target: Target, gradient: &mut [f32]) -> f32 {
        let loss =
            if outputs.len() == gradient.len() { self.row_loss(outputs, target, gradient) } else { None };
        loss.unwrap_or_else(|| {
            gradient.fill(f32::NAN);
            f32::NAN
        })
    }

    /// Writes the gradient by the outputs, as [`loss_and_gradient`](Self::loss_and_gradient) does, to 2⁻²⁰.
    ///
    /// It computes no loss, and exponentials in single precision, so it is several times as fast.
    #[inline(always)]
    pub(crate) fn gradient(&self, outputs: &[f32], target: Target, gradient: &mut [f32]) {
        match (self, target) {
            (Self::BinaryCrossEntropy, Target::Class(class @ 0..=1)) => {
                if let ([output], [place]) = (outputs, &mut *gradient) {
                    // σ(z) for class 0 and -σ(-z) for class 1, without cancellation at either end.
                    let sign = if class == 1 { -1.0 } else { 1.0 };
                    *place = sign / (1.0 + exp(-sign * output));
                    return;
                }
            }
            (Self::CrossEntropy { label_smoothing: 0.0 }, Target::Class(class))
                if outputs.len() == gradient.len() && (class as usize) < outputs.len() =>
            {
                softmax(outputs, gradient);
                gradient[class as usize] -= 1.0;
                return;
            }
            _ => {}
        }
        self.loss_and_gradient(outputs, target, gradient);
    }

    /// The prediction for some outputs: the likeliest class, or the number itself.
    ///
    /// `None` if the number of outputs does not match the loss.
    #[must_use]
    pub fn predict(&self, outputs: &[f32]) -> Option<Target> {
        match (self, outputs) {
            (Self::BinaryCrossEntropy | Self::Hinge { .. }, [output]) => {
                Some(Target::Class((*output > 0.0).into()))
            }
            (Self::CrossEntropy { .. } | Self::Hinge { .. }, _) => {
                arg_max(outputs).map(|class| Target::Class(class as u32))
            }
            (Self::Squared | Self::Huber { .. } | Self::Pinball { .. }, [output]) => {
                Some(Target::Number(*output))
            }
            (Self::Poisson, [output]) => Some(Target::Number(expected_count(*output))),
            _ => None,
        }
    }

    /// The probability of each class, the outputs of a support vector machine, or the predicted number.
    #[must_use]
    pub fn scores(&self, outputs: &[f32]) -> Vec<f32> {
        match (self, outputs) {
            (Self::CrossEntropy { .. }, _) => {
                let largest = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let powers: Vec<f32> = outputs.iter().map(|output| (output - largest).exp()).collect();
                let sum: f32 = powers.iter().sum();
                powers.into_iter().map(|power| power / sum).collect()
            }
            (Self::BinaryCrossEntropy, [output]) => {
                vec![1.0 / (1.0 + output.exp()), 1.0 / (1.0 + (-output).exp())]
            }
            // The distance from the boundary, for and against each of two classes.
            (Self::Hinge { .. }, [output]) => vec![-output, *output],
            (Self::Poisson, [output]) => vec![expected_count(*output)],
            _ => outputs.to_vec(),
        }
    }

    fn row_loss(self, outputs: &[f32], target: Target, gradient: &mut [f32]) -> Option<f32> {
        if let Self::CrossEntropy { label_smoothing } = self {
            return cross_entropy(outputs, target, label_smoothing.into(), gradient);
        }
        if let Self::Hinge { smoothing } = self {
            return hinge(outputs, target, smoothing.into(), gradient);
        }
        let ([output], [place]) = (outputs, gradient) else { return None };
        let output = f64::from(*output);
        let (loss, slope) = match (self, target) {
            (Self::BinaryCrossEntropy, Target::Class(class @ 0..=1)) => binary(output, class.into()),
            (Self::BinaryCrossEntropy, Target::Number(number)) if (0.0..=1.0).contains(&number) => {
                binary(output, number.into())
            }
            (Self::Squared, Target::Number(number)) => squared(output - f64::from(number)),
            (Self::Huber { delta }, Target::Number(number)) => {
                huber(output - f64::from(number), delta.into())
            }
            (Self::Pinball { quantile, smoothing }, Target::Number(number)) => {
                pinball(output - f64::from(number), quantile.into(), smoothing.into())
            }
            (Self::Poisson, Target::Number(number)) => poisson(output, 0.5 * f64::from(number) + 0.5),
            _ => return None,
        };
        *place = slope as f32;
        Some(loss as f32)
    }
}

/// Writes the probability of each class. All are NaN if an output is not finite.
#[inline(always)]
fn softmax(outputs: &[f32], probabilities: &mut [f32]) {
    let largest = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for (p, output) in probabilities.iter_mut().zip(outputs) {
        *p = exp(output - largest);
    }
    let factor = 1.0 / probabilities.iter().sum::<f32>();
    for p in probabilities {
        *p *= factor;
    }
}

fn cross_entropy(outputs: &[f32], target: Target, smoothing: f64, gradient: &mut [f32]) -> Option<f32> {
    let Target::Class(class) = target else { return None };
    let class = usize::try_from(class).ok().filter(|class| *class < outputs.len())?;
    let output = |k: usize| f64::from(outputs[k]).clamp(-FARTHEST, FARTHEST);
    let largest = (0..outputs.len()).map(output).fold(f64::NEG_INFINITY, f64::max);
    // NaN passes through the clamp and makes this sum, and everything below, NaN.
    let total: f64 = (0..outputs.len()).map(|k| (output(k) - largest).exp()).sum();
    let spread = smoothing / outputs.len() as f64;
    let mut loss = total.ln() - (1.0 - smoothing) * (output(class) - largest);
    for (k, place) in gradient.iter_mut().enumerate() {
        let wanted = if k == class { 1.0 - smoothing + spread } else { spread };
        loss -= spread * (output(k) - largest);
        *place = ((output(k) - largest).exp() / total - wanted) as f32;
    }
    Some(loss as f32)
}

fn binary(output: f64, target: f64) -> (f64, f64) {
    let output = output.clamp(-FARTHEST, FARTHEST);
    // `max` drops a NaN, but the product keeps it.
    let loss = output.max(0.0) - target * output + (-output.abs()).exp().ln_1p();
    // σ(z) - y, without cancellation at either end.
    let slope = (1.0 - target) * sigmoid(output) - target * sigmoid(-output);
    (loss, slope)
}

/// Computes 1/(1 + e⁻ᶻ). Far below zero it tends to zero, far above it is 1; overflow never gives NaN.
pub(crate) fn sigmoid(z: f64) -> f64 {
    (1.0 + (-z).exp()).recip()
}

fn squared(residual: f64) -> (f64, f64) {
    (0.5 * residual * residual, residual)
}

fn huber(residual: f64, delta: f64) -> (f64, f64) {
    if residual.abs() > delta {
        (delta * (residual.abs() - 0.5 * delta), delta * residual.signum())
    } else {
        // This branch also handles NaN.
        squared(residual)
    }
}

fn pinball(residual: f64, quantile: f64, smoothing: f64) -> (f64, f64) {
    if residual.abs() < smoothing {
        // The slope grows evenly from -q at -h to 1 - q at h.
        let slope = 0.5 - quantile + 0.5 * residual / smoothing;
        return (residual * (0.5 - quantile) + 0.25 * (residual * residual / smoothing + smoothing), slope);
    }
    let slope = match residual.partial_cmp(&0.0) {
        Some(std::cmp::Ordering::Less) => -quantile,
        Some(std::cmp::Ordering::Greater) => 1.0 - quantile,
        // At the kink every slope in between is a subgradient. Zero means that the loss is minimal.
        Some(std::cmp::Ordering::Equal) => 0.0,
        None => f64::NAN,
    };
    (slope * residual, slope)
}

/// The sum of the smoothed hinge losses of all outputs. The class of the example has margin z, others -z.
fn hinge(outputs: &[f32], target: Target, smoothing: f64, gradient: &mut [f32]) -> Option<f32> {
    let Target::Class(class) = target else { return None };
    if class as usize >= outputs.len().max(2) {
        return None;
    }
    let mut loss = 0.0;
    for (k, (output, place)) in outputs.iter().zip(gradient).enumerate() {
        let positive = if outputs.len() == 1 { class == 1 } else { class as usize == k };
        let sign = if positive { 1.0 } else { -1.0 };
        let (own, slope) = smooth_hinge(sign * f64::from(*output), smoothing);
        loss += own;
        *place = (sign * slope) as f32;
    }
    Some(loss as f32)
}

/// max(0, 1 - m) of a margin m, smoothed where |1 - m| is at most h.
fn smooth_hinge(margin: f64, h: f64) -> (f64, f64) {
    if margin > 1.0 + h {
        (0.0, 0.0)
    } else if margin < 1.0 - h {
        (1.0 - margin, -1.0)
    } else {
        // This branch also handles NaN.
        let beyond = 1.0 + h - margin;
        (0.25 * beyond * beyond / h, -0.5 * beyond / h)
    }
}

fn poisson(output: f64, count: f64) -> (f64, f64) {
    if output > 0.0 {
        (1.0 + (1.0 - count) * output, 1.0 - count)
    } else {
        // This branch also handles NaN. At -∞ the product may be NaN, and then nothing is learned.
        (output.exp() - count * output, output.exp() - count)
    }
}

/// The expected count of an output, scaled from [0, largest] to [-1, 1].
fn expected_count(output: f32) -> f32 {
    if output > 0.0 { 1.0 } else { 2.0 * output.exp() - 1.0 }
}

/// Index of the largest number, the first of several; `None` for an empty slice.
///
/// NaN counts as less than any number.
#[must_use]
pub fn arg_max(outputs: &[f32]) -> Option<usize> {
    let mut best = 0;
    for (k, output) in outputs.iter().enumerate() {
        if *output > outputs[best] || (outputs[best].is_nan() && !output.is_nan()) {
            best = k;
        }
    }
    (!outputs.is_empty()).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_without_a_loss_are_those_with_it() {
        let cases: [(Loss, usize, &[Target]); 4] = [
            (Loss::BinaryCrossEntropy, 1, &[Target::Class(0), Target::Class(1), Target::Class(2)]),
            (
                Loss::CrossEntropy { label_smoothing: 0.0 },
                3,
                &[Target::Class(0), Target::Class(2), Target::Class(3)],
            ),
            (Loss::CrossEntropy { label_smoothing: 0.1 }, 3, &[Target::Class(1)]),
            (Loss::Squared, 1, &[Target::Number(0.3)]),
        ];
        for (loss, outputs, targets) in cases {
            for target in targets {
                for size in [0.0, 0.1, 3.0, 60.0, f32::NAN] {
                    let scores: Vec<f32> = (0..outputs).map(|k| size * (k as f32 - 0.7)).collect();
                    let (mut own, mut with_loss) = (vec![0.0; outputs], vec![0.0; outputs]);
                    loss.gradient(&scores, *target, &mut own);
                    loss.loss_and_gradient(&scores, *target, &mut with_loss);
                    for (a, b) in own.iter().zip(&with_loss) {
                        let close = (a - b).abs() <= 1e-6 * b.abs() + 1e-7 || (a.is_nan() && b.is_nan());
                        assert!(close, "{loss:?} {scores:?}: {own:?} {with_loss:?}");
                    }
                }
            }
        }
    }
}
