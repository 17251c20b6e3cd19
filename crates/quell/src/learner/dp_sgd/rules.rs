//! The settings of DP-SGD that nobody gave: chosen by rules, from public facts alone.
//!
//! `docs/evidence.md`, Defaults, says on which data the numbers were found, and on which they were checked.

use crate::{
    learner::{
        Subject,
        average::Average,
        loss::Loss,
        optimizer::Optimizer,
        schedule::{Schedule, Shape},
    },
    network::Network,
};

/// What a record is, for the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::learner) enum Kind {
    /// A picture, features of a picture, or a sequence of vectors: many numbers of the same kind.
    Picture,
    /// Columns of numbers and categories. A list of numbers or words without a schema counts as a table.
    Table {
        /// Number of columns.
        columns: usize,
        /// Whether numbers have mean zero and spread one.
        is_standardized: bool,
    },
}

impl Kind {
    /// The kind of the records that a method is planned for.
    pub(in crate::learner) fn of(subject: &Subject<'_>) -> Self {
        if subject.are_features || subject.shape.len() > 1 {
            Self::Picture
        } else {
            Self::table(subject, false)
        }
    }

    /// Records of one shape without a schema.
    pub(super) fn of_shape(shape: &[usize]) -> Self {
        match *shape {
            [columns] => Self::Table { columns, is_standardized: false },
            _ => Self::Picture,
        }
    }

    /// A table. Without a schema, every number of a record is a column.
    pub(in crate::learner) fn table(subject: &Subject<'_>, is_standardized: bool) -> Self {
        let width = subject.shape.iter().product();
        Self::Table { columns: subject.schema.map_or(width, |schema| schema.columns.len()), is_standardized }
    }
}

/// The rules for one network on one kind of data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rules {
    kind: Kind,
    is_linear: bool,
    /// Numbers of a record.
    width: usize,
    /// Inputs of the last layer.
    last_inputs: usize,
    loss: Loss,
}

/// The least sampling rate.
const LEAST_RATE: f64 = 0.02;
/// The fewest epochs, where somebody gave a small sampling rate.
const FEWEST_EPOCHS: f64 = 5.0;
/// The fewest steps.
const FEWEST_STEPS: f64 = 100.0;
/// How much of [`Rules::steps`]' `records_over_noise` each step needs.
const RECORDS_OVER_NOISE_PER_STEP: f64 = 33.0;
/// The average covers about this share of the steps.
const AVERAGED_SHARE: f64 = 0.1;

impl Rules {
    pub(super) fn new(kind: Kind, network: &Network, loss: Loss) -> Self {
        let outputs = network.outputs().max(1);
        let last = network.parts().last().copied().unwrap_or(0);
        Self {
            kind,
            is_linear: network.parts().len() == 1,
            width: network.input().iter().product::<usize>().max(1),
            last_inputs: (last / outputs).max(1),
            loss,
        }
    }

    /// The clip norm.
    ///
    /// Gradients of pictures are long and alike: nearly all are clipped. Those of rows of a table are not:
    /// a small norm would let the frequent class decide, and a network be far too sure of its predictions.
    pub(super) fn clip_norm(self) -> f64 {
        match self.kind {
            Kind::Picture => 0.1,
            Kind::Table { is_standardized: true, .. } if !self.is_linear && self.loss.classifies() => 5.0,
            Kind::Table { .. } => 1.0,
        }
    }

    /// The sampling rate for a number of records.
    pub(super) fn rate(self, records: f64) -> f64 {
        let batch = if self.is_linear { 8192.0 } else { 2048.0 };
        (batch / records).clamp(LEAST_RATE, 1.0)
    }

    /// The number of steps, at a sampling rate.
    ///
    /// `records_over_noise` is the number of records over the noise multiplier of one release with the same
    /// guarantee: how far the sum of all records stands out of the noise.
    pub(super) fn steps(self, records_over_noise: f64, rate: f64) -> u64 {
        let most = if self.is_linear { 300.0 } else { 1000.0 };
        let steps = (records_over_noise / RECORDS_OVER_NOISE_PER_STEP).clamp(FEWEST_STEPS, most);
        steps.max(FEWEST_EPOCHS / rate).round() as u64
    }

    /// The number of steps where the noise of a step is given, and ε is not.
    pub(super) fn steps_for_noise(self, noise: f64, rate: f64, records: f64) -> u64 {
        // T steps of noise σ at rate q are like one release of noise σ/(q√T).
        let root = rate * records / (RECORDS_OVER_NOISE_PER_STEP * noise);
        self.steps(RECORDS_OVER_NOISE_PER_STEP * root * root, rate)
    }

    /// The learning rate: the noise of all steps together moves each weight by a fixed distance.
    ///
    /// `noise` is the standard deviation of the noise in the mean gradient of a step. With momentum m, the
    /// noise of T steps moves a weight by η/(1 - m)·√T·noise.
    pub(super) fn schedule(self, optimizer: Optimizer, steps: u64, noise: f64, clip_norm: f64) -> Schedule {
        let (kept, is_adaptive) = match optimizer {
            Optimizer::Sgd { .. } => (0.0, false),
            Optimizer::Momentum { momentum, .. } => (momentum, false),
            // These divide by the size of the gradient, which is that of its noise.
            _ => (0.0, true),
        };
        let distance = match (self.kind, self.is_linear) {
            (_, true) => 4.0 / (self.width as f64).sqrt(),
            (Kind::Picture, false) => 0.1,
            // More columns and more units add up more noise.
            (Kind::Table { columns, .. }, false) => {
                let units = (64.0 / self.last_inputs as f64).min(1.0);
                units.sqrt().sqrt() / (columns.max(1) as f64).sqrt()
            }
        };
        let root = (steps.max(1) as f64).sqrt();
        let learning_rate = if is_adaptive {
            distance / root
        } else {
            // With little noise, the curvature of the loss limits the steps.
            let most = if self.loss.classifies() {
                10.0 / clip_norm
            } else {
                200.0 / self.last_inputs.max(64) as f64
            };
            (distance / (root * noise)).min(most) * (1.0 - kept)
        };
        Schedule { learning_rate: two_digits(learning_rate), warm_up: 0, shape: Shape::Constant }
    }

    /// The average of the iterates.
    pub(super) fn average(steps: u64) -> Average {
        let covered = AVERAGED_SHARE * steps as f64;
        if covered > 1.0 { Average::Exponential { decay: 1.0 - 1.0 / covered } } else { Average::None }
    }
}

/// Rounds a positive number to two significant digits.
fn two_digits(number: f64) -> f64 {
    format!("{number:.1e}").parse().unwrap_or(number)
}
