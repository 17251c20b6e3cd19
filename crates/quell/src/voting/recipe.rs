//! What somebody wants from voters, with gaps.

use quell_privacy::Neighbors;
use serde::{Deserialize, Serialize};

/// How questions are put. Of ε, noise and answers any one may be left out; it follows from the others.
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
    /// When two datasets are neighbours.
    pub neighbors: Neighbors,
    /// How many questions may be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<u32>,
    /// How many questions may be put; where answers are refused, half as many again as answers if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions: Option<u32>,
    /// Standard deviation of Gaussian noise on the counts, or scale of Laplace noise; in ballots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// What share of all ballots the largest count must reach, with noise, to be answered; by default 0.6. For stable winners it follows from the noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Standard deviation of the noise on the largest count, in ballots; by default 2.5 times that on the counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screening_deviation: Option<f64>,
    /// Whether to show, for a price, what the votes cost at the votes that were cast.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reveal: bool,
    /// Where only unstable questions are paid for: how many of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unstable: Option<u32>,
}

/// How ballots become an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregator {
    /// The most votes after Laplace noise (LNMax).
    Laplace,
    /// The most votes after Gaussian noise (GNMax).
    #[default]
    Gaussian,
    /// The same, where enough agree (Confident-GNMax).
    Confident,
    /// The same, where enough disagree with the student (Interactive-GNMax).
    Interactive,
    /// The most votes without noise, where no few ballots could change that; only the other questions are paid for.
    Stable,
}

impl Aggregator {
    /// Whether some questions are refused.
    #[must_use]
    pub fn screens(self) -> bool {
        matches!(self, Self::Confident | Self::Interactive)
    }
}
