//! The settings of a vote, with optional fields.

use quell_privacy::Neighbors;
use serde::{Deserialize, Serialize};

/// How questions are asked.
/// Of ε, noise and answers any one may be omitted; it follows from the others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// How ballots become an answer.
    pub aggregator: Aggregator,
    /// ε of all answers together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// δ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// The neighbouring relation.
    pub neighbors: Neighbors,
    /// The largest number of questions that are answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<u32>,
    /// The largest number of questions that are asked.
    /// If omitted and questions can be refused, it is 1.5 times the number of answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions: Option<u32>,
    /// Standard deviation of Gaussian noise on the counts, or scale of Laplace noise; in ballots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// The share of all ballots that the largest noisy count must reach.
    /// The default is 0.6. For stable winners the threshold follows from the noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Standard deviation of the noise on the largest count, in ballots.
    /// The default is 2.5 times the noise on the counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screening_deviation: Option<f64>,
    /// Whether to reveal the data-dependent cost of the votes, as a paid release.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reveal: bool,
    /// The number of unstable questions to pay for, for stable winners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unstable: Option<u32>,
}

/// How ballots become an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregator {
    /// The class with the most votes after Laplace noise (LNMax).
    Laplace,
    /// The class with the most votes after Gaussian noise (GNMax).
    #[default]
    Gaussian,
    /// GNMax for questions on which enough voters agree (Confident-GNMax).
    Confident,
    /// GNMax for questions on which enough voters disagree with the student (Interactive-GNMax).
    Interactive,
    /// The class with the most votes, without noise, where that class is stable.
    /// A winner is stable if no small number of ballots could change it. Only the other questions are paid
    /// for.
    Stable,
}

impl Aggregator {
    /// Whether some questions may be refused.
    #[must_use]
    pub fn screens(self) -> bool {
        matches!(self, Self::Confident | Self::Interactive)
    }
}
