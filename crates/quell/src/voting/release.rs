//! What the ledger is asked to pay for, and what that costs.

use quell_privacy::{
    Bound, Event, Neighbors,
    accounting::{Conversion, Pld, Renyi},
    mechanism::{Mechanism, Poll, StableMax, Survey},
    units::Delta,
};

use crate::{Error, price};

/// What the ledger is asked to pay for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Release {
    /// So many rounds of questions.
    Polls(Poll, u64),
    /// Stable winners.
    Stable(StableMax),
    /// So many rounds of questions about labels or numbers.
    Surveys(Survey, u64),
}

impl Release {
    /// All of it, as an accountant sees it.
    #[must_use]
    pub fn event(&self, neighbors: Neighbors) -> Event {
        match self {
            Self::Polls(poll, rounds) => poll.event(neighbors).repeated(*rounds),
            Self::Stable(stable) => stable.event(neighbors),
            Self::Surveys(survey, rounds) => survey.event(neighbors).repeated(*rounds),
        }
    }

    /// How far all of it is, in total variation, from what the event describes.
    #[must_use]
    pub fn distance(&self) -> f64 {
        match self {
            Self::Polls(poll, rounds) => poll.distance() * *rounds as f64,
            Self::Stable(stable) => stable.distance(),
            Self::Surveys(survey, rounds) => survey.distance() * *rounds as f64,
        }
    }

    /// What all of it costs at δ, the distance included, as an interval.
    pub fn epsilon(&self, neighbors: Neighbors, delta: Delta) -> Result<Bound, Error> {
        self.judged(neighbors, |ideal| price::epsilon(ideal, self.distance(), delta))
    }

    /// The upper end of that alone.
    pub(super) fn upper(&self, neighbors: Neighbors, delta: Delta) -> Result<f64, Error> {
        self.judged(neighbors, |ideal| price::upper(ideal, self.distance(), delta))
    }

    /// Hands on what the event costs at any δ. Stable winners have a Rényi bound and no other.
    pub(super) fn judged<T>(
        &self,
        neighbors: Neighbors,
        judge: impl FnOnce(&dyn Fn(Delta) -> Result<Bound, Error>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let event = self.event(neighbors);
        if let Self::Stable(_) = self {
            let renyi = Renyi::new(&event, neighbors)?;
            return judge(&|delta| Ok(renyi.epsilon(delta, Conversion::Tight)));
        }
        judge(&|delta| Ok(Pld::default().epsilon(&event, neighbors, delta)?))
    }

    /// Answers that are paid for, where they are counted.
    #[must_use]
    pub fn answers(&self) -> Option<u64> {
        match self {
            Self::Polls(poll, rounds) => Some(u64::from(poll.answers) * rounds),
            Self::Stable(_) => None,
            Self::Surveys(survey, rounds) => Some(u64::from(survey.questions) * rounds),
        }
    }
}
