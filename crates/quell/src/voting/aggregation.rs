//! The mechanism that the ledger is charged for, and its cost.

use quell_privacy::{
    Bound, Event, Neighbors,
    accounting::{Conversion, Pld, Renyi, distance},
    mechanism::{Mechanism, Poll, StableMax, Survey},
    units::Delta,
};

use crate::Error;

/// A function that computes ε of the event at any δ.
type Ideal<'a> = dyn Fn(Delta) -> Result<Bound, quell_privacy::Error> + 'a;

/// The mechanism that the ledger is charged for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregation {
    /// A poll about classes, and the number of its rounds.
    Polls(Poll, u64),
    /// Winners that are released without noise where they are stable.
    Stable(StableMax),
    /// A survey about labels or numbers, and the number of its rounds.
    Surveys(Survey, u64),
}

impl Aggregation {
    /// The event of all rounds, as an accountant sees it.
    #[must_use]
    pub fn event(&self, neighbors: Neighbors) -> Event {
        match self {
            Self::Polls(poll, rounds) => poll.event(neighbors).repeated(*rounds),
            Self::Stable(stable) => stable.event(neighbors),
            Self::Surveys(survey, rounds) => survey.event(neighbors).repeated(*rounds),
        }
    }

    /// The total variation distance of all rounds from what the event describes.
    #[must_use]
    pub fn distance(&self) -> f64 {
        match self {
            Self::Polls(poll, rounds) => poll.distance() * *rounds as f64,
            Self::Stable(stable) => stable.distance(),
            Self::Surveys(survey, rounds) => survey.distance() * *rounds as f64,
        }
    }

    /// ε of all rounds at δ, including the distance, as an interval.
    pub fn epsilon(&self, neighbors: Neighbors, delta: Delta) -> Result<Bound, Error> {
        self.judged(neighbors, |ideal| distance::epsilon(ideal, self.distance(), delta))
    }

    /// The upper end of the interval of [`Aggregation::epsilon`].
    pub(super) fn upper(&self, neighbors: Neighbors, delta: Delta) -> Result<f64, Error> {
        self.judged(neighbors, |ideal| distance::upper(ideal, self.distance(), delta))
    }

    /// Passes the ε of the event, as a function of δ, to `judge`.
    /// Stable winners have only a Rényi bound.
    pub(super) fn judged<T>(
        &self,
        neighbors: Neighbors,
        judge: impl FnOnce(&Ideal<'_>) -> Result<T, quell_privacy::Error>,
    ) -> Result<T, Error> {
        let event = self.event(neighbors);
        if let Self::Stable(_) = self {
            let renyi = Renyi::new(&event, neighbors)?;
            return Ok(judge(&|delta| Ok(renyi.epsilon(delta, Conversion::Tight)))?);
        }
        Ok(judge(&|delta| Pld::default().epsilon(&event, neighbors, delta))?)
    }

    /// The number of paid answers; `None` for stable winners, which are not counted.
    #[must_use]
    pub fn answers(&self) -> Option<u64> {
        match self {
            Self::Polls(poll, rounds) => Some(u64::from(poll.answers) * rounds),
            Self::Stable(_) => None,
            Self::Surveys(survey, rounds) => Some(u64::from(survey.questions) * rounds),
        }
    }
}
