//! Losses: what one example's outputs cost, and the gradient with respect to them.
//!
//! Everything here is a function of one example. What is no example (an output or target that is no number, a class that
//! does not exist, a target of the wrong kind) gets a gradient of NaN and never an error: the mechanism that clips leaves it
//! out, and whether that happened is nobody's to know.

use serde::{Deserialize, Serialize};

use crate::{
    Error,
    range::{BELOW_ONE, INSIDE_UNIT, POSITIVE},
};

/// What is minimised.
///
/// ```
/// use quell::loss::{Loss, Target};
/// let loss: Loss = serde_json::from_str(r#"{"cross_entropy": {"label_smoothing": 0.0}}"#)?;
/// let mut gradient = [0.0; 2];
/// let value = loss.loss_and_gradient(&[0.0, 0.0], Target::Class(1), &mut gradient);
/// assert_eq!((value, gradient), (2f32.ln(), [0.5, -0.5]));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Loss {
    /// -Σ pₖ ln softmax(outputs)ₖ, one output per class, where p is 1 - s at the class, plus s/K everywhere.
    CrossEntropy {
        /// s: how much of the target is spread over all classes.
        #[serde(default)]
        label_smoothing: f32,
    },
    /// -y ln σ(z) - (1 - y) ln(1 - σ(z)) of one output z; y is class 0 or 1, or a number between.
    BinaryCrossEntropy,
    /// Half the square of the residual, so that the gradient is the residual, and the limit of Huber losses.
    Squared,
    /// Half the square of a residual up to `delta`, and linear beyond.
    Huber {
        /// Where the parabola goes over into lines.
        #[serde(default = "one")]
        delta: f32,
    },
    /// Least at a quantile: `quantile` times what the output is too low, or the rest to one times what it is too high.
    Pinball {
        /// Which quantile is learnt.
        quantile: f32,
    },
}

fn one() -> f32 {
    1.0
}

/// What the outputs of one example should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// A class, counted from zero.
    Class(u32),
    /// A number.
    Number(f32),
}

/// Infinite outputs count as this much: further than any finite one, and differences are still numbers.
const FARTHEST: f64 = 1e300;

impl Loss {
    /// Whether every setting is in its range.
    pub fn check(&self) -> Result<(), Error> {
        match *self {
            Self::CrossEntropy { label_smoothing } => BELOW_ONE.check("label_smoothing", label_smoothing.into()),
            Self::Huber { delta } => POSITIVE.check("delta", delta.into()),
            Self::Pinball { quantile } => INSIDE_UNIT.check("quantile", quantile.into()),
            Self::BinaryCrossEntropy | Self::Squared => Ok(()),
        }
    }

    /// How many outputs a network needs, given the number of classes; a number is predicted by one.
    #[must_use]
    pub fn outputs(&self, classes: usize) -> usize {
        if matches!(self, Self::CrossEntropy { .. }) { classes } else { 1 }
    }

    /// Whether classes are predicted, and not numbers.
    #[must_use]
    pub fn classifies(&self) -> bool {
        matches!(self, Self::CrossEntropy { .. } | Self::BinaryCrossEntropy)
    }

    /// The loss of one example; `gradient` becomes the gradient with respect to its outputs.
    ///
    /// Both are NaN, in every entry, where there is no answer: the module says when.
    pub fn loss_and_gradient(&self, outputs: &[f32], target: Target, gradient: &mut [f32]) -> f32 {
        let loss = if outputs.len() == gradient.len() { self.of_row(outputs, target, gradient) } else { None };
        loss.unwrap_or_else(|| {
            gradient.fill(f32::NAN);
            f32::NAN
        })
    }

    /// The same for rows of `width` outputs each, one per target; rows without a target have none that is a number.
    pub fn losses_and_gradients(
        &self,
        width: usize,
        outputs: &[f32],
        targets: impl IntoIterator<Item = Target>,
        gradients: &mut [f32],
        losses: &mut [f32],
    ) {
        let mut targets = targets.into_iter();
        let width = width.max(1);
        let mut rows = outputs.chunks(width);
        let mut losses = losses.iter_mut();
        for gradient in gradients.chunks_mut(width) {
            let target = targets.next().unwrap_or(Target::Number(f32::NAN));
            let row = rows.next().filter(|row| row.len() == width).unwrap_or_default();
            let loss = self.loss_and_gradient(row, target, gradient);
            if let Some(place) = losses.next() {
                *place = loss;
            }
        }
        losses.for_each(|left| *left = f32::NAN);
    }

    /// What outputs stand for: the likeliest class, or the number itself. None if there are not as many as the loss needs.
    #[must_use]
    pub fn predict(&self, outputs: &[f32]) -> Option<Target> {
        match (self, outputs) {
            (Self::CrossEntropy { .. }, _) => arg_max(outputs).map(|class| Target::Class(class as u32)),
            (Self::BinaryCrossEntropy, [output]) => Some(Target::Class((*output > 0.0).into())),
            (Self::Squared | Self::Huber { .. } | Self::Pinball { .. }, [output]) => Some(Target::Number(*output)),
            _ => None,
        }
    }

    /// What outputs say in detail: the probability of each class, or the number itself.
    #[must_use]
    pub fn scores(&self, outputs: &[f32]) -> Vec<f32> {
        match (self, outputs) {
            (Self::CrossEntropy { .. }, _) => {
                let largest = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let powers: Vec<f32> = outputs.iter().map(|output| (output - largest).exp()).collect();
                let sum: f32 = powers.iter().sum();
                powers.into_iter().map(|power| power / sum).collect()
            }
            (Self::BinaryCrossEntropy, [output]) => vec![1.0 / (1.0 + output.exp()), 1.0 / (1.0 + (-output).exp())],
            _ => outputs.to_vec(),
        }
    }

    /// How many of the rows of `width` outputs are predicted to be exactly what they should be: over their number, the accuracy.
    #[must_use]
    pub fn correct(&self, width: usize, outputs: &[f32], targets: impl IntoIterator<Item = Target>) -> usize {
        outputs.chunks_exact(width.max(1)).zip(targets).filter(|(row, target)| self.predict(row) == Some(*target)).count()
    }

    fn of_row(self, outputs: &[f32], target: Target, gradient: &mut [f32]) -> Option<f32> {
        if let Self::CrossEntropy { label_smoothing } = self {
            return cross_entropy(outputs, target, label_smoothing.into(), gradient);
        }
        let ([output], [place]) = (outputs, gradient) else { return None };
        let output = f64::from(*output);
        let (loss, slope) = match (self, target) {
            (Self::BinaryCrossEntropy, Target::Class(class @ 0..=1)) => binary(output, class.into()),
            (Self::BinaryCrossEntropy, Target::Number(number)) if (0.0..=1.0).contains(&number) => binary(output, number.into()),
            (Self::Squared, Target::Number(number)) => squared(output - f64::from(number)),
            (Self::Huber { delta }, Target::Number(number)) => huber(output - f64::from(number), delta.into()),
            (Self::Pinball { quantile }, Target::Number(number)) => pinball(output - f64::from(number), quantile.into()),
            _ => return None,
        };
        *place = slope as f32;
        Some(loss as f32)
    }
}

fn cross_entropy(outputs: &[f32], target: Target, smoothing: f64, gradient: &mut [f32]) -> Option<f32> {
    let Target::Class(class) = target else { return None };
    let class = usize::try_from(class).ok().filter(|class| *class < outputs.len())?;
    let output = |k: usize| f64::from(outputs[k]).clamp(-FARTHEST, FARTHEST);
    let largest = (0..outputs.len()).map(output).fold(f64::NEG_INFINITY, f64::max);
    // NaN passes through the clamp and makes this sum NaN, and with it everything below.
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
    // `max` drops a NaN; the product brings it back.
    let loss = output.max(0.0) - target * output + (-output.abs()).exp().ln_1p();
    // σ(z) - y, without cancellation at either end.
    let slope = (1.0 - target) * sigmoid(output) - target * sigmoid(-output);
    (loss, slope)
}

/// 1/(1 + e⁻ᶻ): far below zero it is e⁻ᶻ's reciprocal, far above it is 1, and nothing overflows to NaN.
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
        // NaN comes this way.
        squared(residual)
    }
}

fn pinball(residual: f64, quantile: f64) -> (f64, f64) {
    let slope = match residual.partial_cmp(&0.0) {
        Some(std::cmp::Ordering::Less) => -quantile,
        Some(std::cmp::Ordering::Greater) => 1.0 - quantile,
        // At the kink any slope between is one; zero says that nothing is left to do.
        Some(std::cmp::Ordering::Equal) => 0.0,
        None => f64::NAN,
    };
    (slope * residual, slope)
}

/// Where the largest number is, the first of several; NaN is less than any. None of none.
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
