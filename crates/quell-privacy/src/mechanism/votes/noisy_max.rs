//! Noisy maximum: the candidate with the most votes after noise.

use std::num::NonZero;

use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{IntegerNoise, Mechanism, Noise, Sealed, unit_event},
    noise::{
        random::Key,
        rounded::{self, DISTANCE, GRID, Shape},
        select::{Coefficient, permute_and_flip},
    },
    number::format_brief,
    units::{Epsilon, NoiseMultiplier, Scale},
};

/// Vote counts with one ballot per record. Sensitive: callers cannot read the counts.
pub struct Votes {
    pub(crate) counts: Vec<i64>,
}

#[cfg(feature = "exact-statistics")]
impl Votes {
    /// Returns zero counts if a test watches these counts, otherwise a copy.
    ///
    /// The stated sensitivity is that of one replaced ballot.
    pub(super) fn withheld(&self) -> Self {
        use crate::exact::{Norm, withhold};
        let values = || self.counts.iter().map(|count| *count as f64).collect();
        let seen = withhold(&"votes", Norm::L2, (std::f64::consts::SQRT_2, std::f64::consts::SQRT_2), values);
        Self { counts: if seen { vec![0; self.counts.len()] } else { self.counts.clone() } }
    }
}

impl Votes {
    /// Counts ballots. A ballot for a candidate that does not exist is ignored.
    pub fn tally(candidates: usize, ballots: impl IntoIterator<Item = usize>) -> Self {
        let mut counts = vec![0; candidates];
        for ballot in ballots {
            if let Some(count) = counts.get_mut(ballot) {
                *count += 1;
            }
        }
        Self { counts }
    }

    /// The counts, for mechanisms that were paid for.
    pub(super) fn counts(&self) -> &[i64] {
        &self.counts
    }
}

/// How the noisy maximum is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// Discrete Laplace noise of this scale on every count.
    Laplace(Scale),
    /// Gaussian noise of this standard deviation on every count.
    Gaussian(NoiseMultiplier),
    /// Exponential noise on every count, drawn by permute and flip.
    ///
    /// The scale is 1/ε if records are added or removed and 2/ε if they are replaced. The winner of permute
    /// and flip has the same distribution. [DKSSWXZ21]
    Exponential(Epsilon),
    /// Permute and flip.
    PermuteAndFlip(Epsilon),
}

/// The candidate with most votes, after noise on each count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoisyMax {
    /// Number of candidates.
    pub candidates: usize,
    /// How the maximum is computed.
    pub rule: Rule,
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Laplace(scale) => write!(f, "{}", IntegerNoise::new(Noise::Laplace, *scale)),
            Self::Gaussian(deviation) => {
                write!(f, "Gaussian noise of standard deviation {}", format_brief(deviation.get()))
            }
            Self::Exponential(epsilon) => {
                write!(f, "exponential noise, epsilon {}", format_brief(epsilon.get()))
            }
            Self::PermuteAndFlip(epsilon) => {
                write!(f, "permute and flip, epsilon {}", format_brief(epsilon.get()))
            }
        }
    }
}

/// The event of Laplace noise on counts.
///
/// One count moves by one, or two counts do if ballots are replaced.
pub(super) fn laplace_event(scale: Scale, ballots: Neighbors) -> Event {
    let epsilon = ballots.reach() / IntegerNoise::new(Noise::Laplace, scale).scale() * (1.0 + 1e-15);
    unit_event(Epsilon::new(epsilon), |epsilon| Event::Pure { epsilon })
}

/// The standard deviation of the noise that is actually drawn, in votes.
///
/// Compared with the requested deviation, it is smaller by at most one grid step for each vote.
pub(super) fn drawn(deviation: NoiseMultiplier) -> f64 {
    GRID as f64 / rounded::steps_per_unit(deviation.get()) as f64
}

impl Sealed for NoisyMax {}

impl Mechanism for NoisyMax {
    /// # Theorem
    /// Adding or removing a ballot moves one count by one. Replacing a ballot moves two counts by one.
    /// - Laplace: given all other noise, candidate i wins if its own noise reaches a number that moves by at
    ///   most one (two): 1/scale (2/scale)-DP. [DR14, Claim 3.9]
    /// - Gaussian: post-processing of the noisy counts, which move by 1 (√2) in L2. A vote is a whole number
    ///   of grid steps, rounded up. Relative to a vote the drawn noise is therefore slightly smaller than
    ///   requested, and the charge is for the drawn noise.
    /// - Permute and flip with coefficient ε if ballots are added or removed, ε/2 if they are replaced: its
    ///   winner has the distribution of the winner under exponential noise of scale 1/ε or 2/ε [DKSSWXZ21],
    ///   to which the argument for Laplace noise applies.
    fn event(&self, neighbors: Neighbors) -> Event {
        match self.rule {
            Rule::Laplace(scale) => laplace_event(scale, neighbors),
            Rule::Gaussian(deviation) => {
                // A replacement moves the counts by √2, and the event is stated for half of that.
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
        write!(f, "candidate with most votes among {} candidates, with {}", self.candidates, self.rule)
    }
}

impl Paid<NoisyMax> {
    /// Returns the index of the winner. The lowest index wins a tie.
    pub fn run(mut self, votes: &Votes) -> Result<usize, Error> {
        let NoisyMax { candidates, rule } = self.mechanism;
        let range = "what was paid for, at least one";
        let wrong =
            Error::OutOfRange { what: "number of candidates", value: votes.counts.len() as f64, range };
        if votes.counts.len() != candidates {
            return Err(wrong);
        }
        winner(votes, rule, self.neighbors, &self.key()?).ok_or(wrong)
    }
}

/// The first candidate with the most votes after noise; `None` if there is no candidate.
///
/// `ballots` says whether ballots are added and removed or replaced.
pub(super) fn winner(votes: &Votes, rule: Rule, ballots: Neighbors, key: &Key) -> Option<usize> {
    let mut stream = key.stream(0);
    let first_largest = |noisy: &[i64]| (0..noisy.len()).rev().max_by_key(|&i| noisy[i]);
    match rule {
        Rule::Laplace(scale) => {
            let noise = IntegerNoise::new(Noise::Laplace, scale);
            let noisy: Vec<i64> =
                votes.counts.iter().map(|count| count.saturating_add(noise.draw(&mut stream))).collect();
            first_largest(&noisy)
        }
        Rule::Gaussian(deviation) => {
            let steps = i128::from(rounded::steps_per_unit(deviation.get()));
            // Clamped to a range where noise cannot overflow. Clamping never increases the distance of two
            // counts.
            let held = |count: &i64| (i128::from(*count) * steps).min(1 << 62) as i64;
            let mut noisy: Vec<i64> = votes.counts.iter().map(held).collect();
            rounded::add(Shape::Gaussian, key, &mut noisy);
            first_largest(&noisy)
        }
        Rule::Exponential(epsilon) | Rule::PermuteAndFlip(epsilon) => {
            // `Coefficient` divides the ε that it is given by 2Δ.
            let factor = if ballots == Neighbors::AddRemove { 2.0 } else { 1.0 };
            let coefficient = Coefficient::new(
                Epsilon::new(factor * epsilon.get()).unwrap_or(epsilon),
                NonZero::<u64>::MIN,
            );
            permute_and_flip(&votes.counts, coefficient, &mut stream)
        }
    }
}
