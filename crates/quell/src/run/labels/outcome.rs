//! What may be known about a run that labels.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::Revealed;
use crate::{dp_sgd::Evaluation, run::Paid, voting::Journal};

/// What who watches is told. All of it is public.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moment {
    /// Teachers that have learned.
    Teachers {
        /// So far.
        done: usize,
        /// In all.
        of: usize,
    },
    /// Questions that were put.
    Asked {
        /// So far.
        asked: usize,
        /// Of these, answered.
        answered: usize,
        /// Answers that were paid for.
        of: u64,
    },
    /// The student learns.
    Student {
        /// Share of its steps.
        share: f64,
    },
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Which debt it lived on; none if nothing was paid yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paid: Option<Paid>,
    /// What the votes cost at the votes that were cast, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revealed: Option<Revealed>,
    /// Whether that was paid for, and lost when the run was killed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reveal_lost: bool,
    /// Questions that were answered.
    pub answered: usize,
    /// Questions that were refused.
    pub refused: usize,
    /// Of the answers, the share that is right; where public records have labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<f64>,
    /// The student on the public records that were never asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unseen: Option<Evaluation>,
    /// The student on all public records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<Evaluation>,
    /// Time it took, in seconds, all sittings together.
    pub seconds: f64,
    /// Whether it went to its end.
    pub finished: bool,
}

impl Outcome {
    pub(super) fn count<A: Clone + Serialize + DeserializeOwned>(&mut self, journal: &Journal<A>) {
        self.answered = journal.answers().len();
        self.refused = journal.entries().len() - self.answered;
    }
}
