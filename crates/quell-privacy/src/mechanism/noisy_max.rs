//! The candidate with most votes, after noise.

use std::num::NonZero;

use super::{IntegerNoise, Mechanism, Noise, Sealed, unit_event};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    noise::{
        random::Key,
        rounded::{self, DISTANCE, GRID, Shape},
        select::{Coefficient, permute_and_flip},
    },
    number::brief,
    units::{Epsilon, NoiseMultiplier, Scale},
};

/// One ballot per record. Sensitive: there is no way to read the counts.
pub struct Votes {
    pub(crate) counts: Vec<i64>,
}

#[cfg(feature = "exact-statistics")]
impl Votes {
    /// No votes in place of these, if they are watched: one ballot becomes another.
    pub(super) fn withheld(&self) -> Self {
        use crate::exact::{Norm, withhold};
        let values = || self.counts.iter().map(|count| *count as f64).collect();
        let seen = withhold(&"votes", Norm::L2, (std::f64::consts::SQRT_2, std::f64::consts::SQRT_2), values);
        Self { counts: if seen { vec![0; self.counts.len()] } else { self.counts.clone() } }
    }
}

impl Votes {
    /// Counts ballots. One for a candidate that does not exist is not counted.
    pub fn tally(candidates: usize, ballots: impl IntoIterator<Item = usize>) -> Self {
        let mut counts = vec![0; candidates];
        for ballot in ballots {
            if let Some(count) = counts.get_mut(ballot) {
                *count += 1;
            }
        }
        Self { counts }
    }

    /// For what is paid for.
    pub(super) fn counts(&self) -> &[i64] {
        &self.counts
    }
}

/// How the noisy maximum is taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Discrete Laplace noise of this scale on every count.
    Laplace(Scale),
    /// Gaussian noise of this standard deviation on every count.
    Gaussian(NoiseMultiplier),
    /// Exponential noise on every count, of scale 1/ε if records come or go and 2/ε if they are exchanged. Drawn by permute and flip, whose winner has the same
    /// distribution. [DKSSWXZ21]
    Exponential(Epsilon),
    /// Permute and flip.
    PermuteAndFlip(Epsilon),
}

/// The candidate with most votes, after noise on each count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoisyMax {
    /// How many candidates there are.
    pub candidates: usize,
    /// How the maximum is taken.
    pub rule: Rule,
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Laplace(scale) => write!(f, "{}", IntegerNoise::new(Noise::Laplace, *scale)),
            Self::Gaussian(deviation) => write!(f, "Gaussian noise of standard deviation {}", brief(deviation.get())),
            Self::Exponential(epsilon) => write!(f, "exponential noise, epsilon {}", brief(epsilon.get())),
            Self::PermuteAndFlip(epsilon) => write!(f, "permute and flip, epsilon {}", brief(epsilon.get())),
        }
    }
}

/// Of Laplace noise on counts of which one moves by one, or two do if ballots are exchanged.
pub(super) fn laplace_event(scale: Scale, ballots: Neighbors) -> Event {
    let epsilon = ballots.reach() / IntegerNoise::new(Noise::Laplace, scale).scale() * (1.0 + 1e-15);
    unit_event(Epsilon::new(epsilon), |epsilon| Event::Pure { epsilon })
}

/// The standard deviation that is drawn, in votes: at most a grid step for each vote below what was asked for.
pub(super) fn drawn(deviation: NoiseMultiplier) -> f64 {
    GRID as f64 / rounded::steps_per_unit(deviation.get()) as f64
}

impl Sealed for NoisyMax {}

impl Mechanism for NoisyMax {
    /// # Theorem
    /// A ballot that comes or goes moves one count by one, one that is exchanged two of them.
    /// - Laplace: given all other noise, candidate i wins if its own noise reaches a number that moves by at most one (two): 1/scale (2/scale)-DP.
    ///   [DR14, Claim 3.9]
    /// - Gaussian: post-processing of the noisy counts, which move by 1 (√2) in L2. A vote is a whole number of grid steps, rounded up, and the noise that is
    ///   a little smaller against it is what is charged for.
    /// - Permute and flip with coefficient ε if ballots come or go, ε/2 if they are exchanged: its winner is that of exponential noise of scale 1/ε or 2/ε
    ///   [DKSSWXZ21], to which the argument for Laplace noise applies.
    fn event(&self, neighbors: Neighbors) -> Event {
        match self.rule {
            Rule::Laplace(scale) => laplace_event(scale, neighbors),
            Rule::Gaussian(deviation) => {
                // An exchange moves the counts by √2, and the event is stated for half of that.
                let half = if neighbors == Neighbors::Replace { 2.0_f64.sqrt() } else { 1.0 };
                unit_event(NoiseMultiplier::new(drawn(deviation) * half * (1.0 - 1e-15)), Event::gaussian)
            }
            Rule::Exponential(epsilon) | Rule::PermuteAndFlip(epsilon) => Event::Pure { epsilon },
        }
    }

    fn distance(&self) -> f64 {
        match self.rule {
            Rule::Gaussian(_) => self.candidates as f64 * DISTANCE,
            Rule::Laplace(_) | Rule::Exponential(_) | Rule::PermuteAndFlip(_) => 0.0,
        }
    }
}

impl std::fmt::Display for NoisyMax {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "candidate with most of the votes for {} with {}", self.candidates, self.rule)
    }
}

impl Paid<NoisyMax> {
    /// The number of the winner. Of equals the first wins.
    pub fn run(mut self, votes: &Votes) -> Result<usize, Error> {
        let NoisyMax { candidates, rule } = self.mechanism;
        let range = "what was paid for, at least one";
        let wrong = Error::OutOfRange { what: "number of candidates", value: votes.counts.len() as f64, range };
        if votes.counts.len() != candidates {
            return Err(wrong);
        }
        winner(votes, rule, self.neighbors, &self.key()?).ok_or(wrong)
    }
}

/// The first of those with most votes after noise, where `ballots` come and go or are exchanged; none if there is no candidate.
pub(super) fn winner(votes: &Votes, rule: Rule, ballots: Neighbors, key: &Key) -> Option<usize> {
    let mut stream = key.stream(0);
    let first_largest = |noisy: &[i64]| (0..noisy.len()).rev().max_by_key(|&i| noisy[i]);
    match rule {
        Rule::Laplace(scale) => {
            let noise = IntegerNoise::new(Noise::Laplace, scale);
            let noisy: Vec<i64> = votes.counts.iter().map(|count| count.saturating_add(noise.draw(&mut stream))).collect();
            first_largest(&noisy)
        }
        Rule::Gaussian(deviation) => {
            let steps = i128::from(rounded::steps_per_unit(deviation.get()));
            // Held where noise cannot overflow; holding moves no two counts apart.
            let held = |count: &i64| (i128::from(*count) * steps).min(1 << 62) as i64;
            let mut noisy: Vec<i64> = votes.counts.iter().map(held).collect();
            rounded::add(Shape::Gaussian, key, &mut noisy);
            first_largest(&noisy)
        }
        Rule::Exponential(epsilon) | Rule::PermuteAndFlip(epsilon) => {
            // The coefficient is ε/2Δ of what is given.
            let factor = if ballots == Neighbors::AddRemove { 2.0 } else { 1.0 };
            let coefficient = Coefficient::new(Epsilon::new(factor * epsilon.get()).unwrap_or(epsilon), NonZero::<u64>::MIN);
            permute_and_flip(&votes.counts, coefficient, &mut stream)
        }
    }
}
