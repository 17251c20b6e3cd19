//! Data-dependent cost of votes: summed as a sensitive number and released by a paid mechanism.

use std::sync::Arc;

use super::{Votes, noisy_max::drawn};
use crate::{
    Error, Event, Neighbors,
    accounting::{
        Conversion,
        distance::excess,
        renyi_epsilon,
        votes::{GaussianMax, Ladder, Place, Screen, ln_error, smooth_sum},
    },
    ledger::Paid,
    mechanism::{Mechanism, Sealed, unit_event},
    noise::{
        exact::{Ratio, discrete_gaussian},
        random::Stream,
        rounded::DISTANCE,
    },
    number::format_brief,
    special::normal_quantile,
    units::{Delta, Epsilon, NoiseMultiplier, Order, Rho, Scale},
};

/// When the questions were chosen, which decides what may be claimed (THEORY, Votes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// All questions were chosen before the first answer, and none was screened.
    ///
    /// The cost is then a function of the dataset.
    InAdvance,
    /// The answered questions depend on earlier answers or on screening.
    ///
    /// The cost is then a function of the outputs.
    OnTheWay,
}

/// The Rényi divergences, at one order, of all releases about votes.
///
/// Sensitive: the divergences are functions of the votes. Only [`SmoothCost`] can release them.
///
/// # Contract
/// A neighbour differs in at most one ballot for each question: the ballots belong to teachers with disjoint
/// training records, or to people themselves. No dataset casts more than `teachers` ballots for a question;
/// that number is public. Every release about the votes is added here, with the noise that this crate drew.
pub struct VoteCost {
    order: Order,
    teachers: u32,
    asked: Asked,
    places: Vec<Place>,
    ladders: Vec<(Kind, Arc<Ladder>)>,
    /// The data-independent cost. Public.
    independent: f64,
    /// Distance of the drawn noise from the ideal noise. Public.
    distance: f64,
}

/// Settings that need a separate ladder.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Maximum { candidates: usize, deviation: f64 },
    Screen { threshold: u64, deviation: f64 },
}

/// How much closer rounding can bring two noisy counts, in deviations.
///
/// Drawn noise is rounded to 2³⁰ steps per deviation, so two noisy counts come closer by at most one step.
const CLOSER: f64 = 1.0 / (1 << 30) as f64;

/// Half a grid step, in deviations.
///
/// A rounded number reaches a threshold on the grid if the unrounded number is at most half a step below the
/// threshold.
const HALF_STEP: f64 = 0.5 * CLOSER;

/// Most releases that one cost can hold. The accounting covers this many roundings.
const MOST_RELEASES: usize = 1_000_000;

impl VoteCost {
    /// Starts with no releases. The order must be chosen before votes are seen.
    #[must_use]
    pub fn new(order: Order, teachers: u32, asked: Asked) -> Self {
        Self {
            order,
            teachers,
            asked,
            places: Vec::new(),
            ladders: Vec::new(),
            independent: 0.0,
            distance: 0.0,
        }
    }

    /// Records that the winner of these votes after Gaussian noise was released.
    ///
    /// The rule is [`Rule::Gaussian`](super::Rule::Gaussian).
    ///
    /// # Theorem
    /// [PSMRTE18, Theorem 6], for the deviation that is drawn. Rounded noise decides as continuous noise
    /// does, except where two counts are within a step of each other.
    pub fn answered(&mut self, votes: &Votes, deviation: NoiseMultiplier) -> Result<(), Error> {
        let counts = self.counts(votes)?;
        let deviation = drawn(deviation) * (1.0 - 1e-15);
        let kind = Kind::Maximum { candidates: counts.len(), deviation };
        let ladder = self.ladder(kind);
        let rung = ladder.rung(ln_error(&counts, deviation, CLOSER));
        self.independent +=
            GaussianMax { deviation: NoiseMultiplier::new(deviation)? }.independent(self.order);
        self.distance += counts.len() as f64 * DISTANCE;
        self.places.push(Place { ladder, rung });
        Ok(())
    }

    /// Records that a noisy threshold test on the largest count was released: one bit.
    ///
    /// The noise is that of [`Rule::Gaussian`](super::Rule::Gaussian): rounded to a grid on which a vote is a
    /// whole number of steps.
    pub fn screened(
        &mut self,
        votes: &Votes,
        threshold: u64,
        deviation: NoiseMultiplier,
    ) -> Result<(), Error> {
        let most = self.counts(votes)?.into_iter().max().unwrap_or(0);
        let deviation = drawn(deviation) * (1.0 - 1e-15);
        let ladder = self.ladder(Kind::Screen { threshold, deviation });
        let screen = Screen { threshold, deviation: NoiseMultiplier::new(deviation)? };
        self.independent += screen.independent(self.order);
        self.distance += DISTANCE;
        self.asked = Asked::OnTheWay;
        self.places.push(Place { ladder, rung: most as usize });
        Ok(())
    }

    /// The data-independent divergence, which is public.
    #[must_use]
    pub fn independent(&self) -> f64 {
        self.independent
    }

    fn counts(&self, votes: &Votes) -> Result<Vec<u64>, Error> {
        let counts: Vec<u64> = votes.counts().iter().map(|count| count.unsigned_abs()).collect();
        if counts.iter().sum::<u64>() <= u64::from(self.teachers) {
            return Ok(counts);
        }
        let range = "no less than the number of ballots";
        Err(Error::OutOfRange { what: "number of teachers", value: f64::from(self.teachers), range })
    }

    fn ladder(&mut self, kind: Kind) -> Arc<Ladder> {
        if let Some((_, ladder)) = self.ladders.iter().find(|(known, _)| *known == kind) {
            return ladder.clone();
        }
        let ladder = Arc::new(match kind {
            Kind::Maximum { candidates, deviation } => {
                Ladder::of_maximum(candidates, deviation, self.order.get())
            }
            Kind::Screen { threshold, deviation } => {
                Ladder::of_screen(threshold, deviation, self.teachers, HALF_STEP, self.order.get())
            }
        });
        self.ladders.push((kind, ladder.clone()));
        ladder
    }
}

/// Releases an upper bound on a [`VoteCost`] by smooth sensitivity.
///
/// The first release is the sensitivity: how far one person can move the cost. The second release is the
/// cost, with noise scaled to that sensitivity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SmoothCost {
    order: Order,
    smoothness: f64,
    scale_noise: NoiseMultiplier,
    noise: NoiseMultiplier,
    failure: Delta,
}

/// Grid steps per sensitivity, in either release.
const STEPS: f64 = (1 << 20) as f64;

/// Grid steps that rounding may add between neighbours.
///
/// One step is for rounding up to an integer, the others are for floating point.
const ROUNDED: f64 = 4.0;

/// Sensitivities below this fraction of the independent cost are raised to it.
const LEAST: f64 = 1.0 / (1 << 24) as f64;

/// The smallest step of the second grid, as a fraction of the independent cost.
///
/// The floating-point roundings of a million releases add up to about a tenth of such a step.
const LEAST_STEP: f64 = 1.0 / (1 << 30) as f64;

impl SmoothCost {
    /// A release at the order of the cost.
    ///
    /// The smoothness β is in [0.001, 1], both noises are in [0.1, 900]. Both noises are multiples of what
    /// one person can move: `scale_noise` of the logarithm of the sensitivity, `noise` of the cost. The
    /// released number fails to be a bound with probability at most `failure`, which is also the δ of the
    /// release.
    pub fn new(
        order: Order,
        smoothness: f64,
        scale_noise: NoiseMultiplier,
        noise: NoiseMultiplier,
        failure: Delta,
    ) -> Result<Self, Error> {
        if !(0.001..=1.0).contains(&smoothness) {
            return Err(Error::OutOfRange { what: "smoothness", value: smoothness, range: "[0.001, 1]" });
        }
        if let Some(out) =
            [scale_noise, noise].into_iter().find(|noise| !(0.1..=900.0).contains(&noise.get()))
        {
            return Err(Error::OutOfRange {
                what: "noise_multiplier",
                value: out.get(),
                range: "[0.1, 900]",
            });
        }
        Ok(Self { order, smoothness, scale_noise, noise, failure })
    }

    /// ρ of both releases, 1/2σ₁² + 1/2σ₂², rounded up.
    fn rho(&self) -> f64 {
        let each = |noise: NoiseMultiplier| 0.5 / (noise.get() * noise.get());
        (each(self.scale_noise) + each(self.noise)) * (1.0 + 1e-14)
    }

    /// Deviations that either noise exceeds downwards with probability at most `failure` / 3.
    fn margin(&self) -> f64 {
        -normal_quantile(self.failure.get() / 3.0) * (1.0 + 1e-12)
    }

    /// Draws the bound that is released.
    ///
    /// # Theorem
    /// The logarithm of a β-smooth bound S moves by at most β, so noise makes it public; with the margin it
    /// gives Ŝ ≥ S except with a third of the failure probability. Then noise for a sensitivity of Ŝ makes
    /// the cost public. With the margin, and Ŝ added for the neighbours, the result is a bound. Both releases
    /// are integers with exactly drawn discrete Gaussian noise. (THEORY, Votes)
    fn draw(&self, cost: &VoteCost, stream: &mut Stream) -> Result<f64, Error> {
        let smooth = smooth_sum(&cost.places, self.smoothness) * (1.0 + 1e-9);
        let step = self.smoothness / STEPS;
        let logarithm = (smooth.max(LEAST * cost.independent).ln() / step).ceil();
        let spent: f64 = cost.places.iter().map(Place::cost).sum();
        #[cfg(feature = "exact-statistics")]
        let (logarithm, spent) = withheld(cost, smooth, logarithm, spent);
        let logarithm = self.above(logarithm, self.scale_noise, STEPS, stream)?;
        let sensitivity = (logarithm * step).exp().min(cost.independent) * (1.0 + 1e-9);
        let step = (sensitivity / STEPS).max(LEAST_STEP * cost.independent);
        let bound = self.above((spent / step).ceil(), self.noise, sensitivity / step, stream)?;
        Ok(((bound * step + sensitivity) * (1.0 + 1e-14)).clamp(0.0, cost.independent))
    }

    /// Adds noise and a safety margin to an integer.
    ///
    /// One person moves the integer by `moves` steps. Because of the margin the result is not below the
    /// integer, except with the probability behind `margin`.
    ///
    /// # Theorem
    /// [CKS20, Theorem 4], and Pr[X ≤ -m] ≤ Φ(-(m-1)/scale): a decreasing function summed from m on is at
    /// most its integral from m - 1 on.
    fn above(
        &self,
        integer: f64,
        noise: NoiseMultiplier,
        moves: f64,
        stream: &mut Stream,
    ) -> Result<f64, Error> {
        let scale = Scale::new(((moves + ROUNDED) * noise.get()).ceil())?;
        let margin = (self.margin() * scale.get()).ceil() + 1.0;
        Ok(integer + margin + discrete_gaussian(Ratio::above(scale), stream) as f64)
    }
}

/// Returns zeros for both statistics if a test watches them.
///
/// The statistics are the logarithm of the sensitivity and the cost.
/// The stated movement of the cost is the one that noise is drawn for when the sensitivity is released
/// without noise.
#[cfg(feature = "exact-statistics")]
fn withheld(cost: &VoteCost, smooth: f64, logarithm: f64, spent: f64) -> (f64, f64) {
    use crate::exact::{Norm, withhold};
    let sensitivity = smooth.max(LEAST * cost.independent).min(cost.independent) * (1.0 + 1e-9);
    let step = (sensitivity / STEPS).max(LEAST_STEP * cost.independent);
    let moves = sensitivity + ROUNDED * step;
    let first =
        withhold(&"sensitivity of the cost of votes", Norm::L1, (STEPS + ROUNDED, STEPS + ROUNDED), || {
            vec![logarithm]
        });
    let second = withhold(&"cost of votes", Norm::L1, (moves, moves), || vec![spent]);
    (if first { 0.0 } else { logarithm }, if second { 0.0 } else { spent })
}

impl Sealed for SmoothCost {}

impl Mechanism for SmoothCost {
    /// # Theorem
    /// Earlier releases are fixed, so the sum is a function of the dataset alone. Two releases with discrete
    /// Gaussian noise [CKS20, Theorem 4]; the second has its sensitivity except with a third of the failure
    /// probability, which is slack (THEORY, Votes; Filters).
    fn event(&self, _: Neighbors) -> Event {
        let noise = unit_event(Rho::new(self.rho()), |rho| Event::ZeroConcentrated { rho });
        let slack =
            unit_event(Epsilon::new(0.0), |epsilon| Event::Approximate { epsilon, delta: self.failure });
        Event::Composed(vec![noise, slack])
    }
}

impl std::fmt::Display for SmoothCost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (order, beta, failure) =
            (format_brief(self.order.get()), format_brief(self.smoothness), format_brief(self.failure.get()));
        let (first, second) = (format_brief(self.scale_noise.get()), format_brief(self.noise.get()));
        write!(
            f,
            "data-dependent cost of votes at Rényi order {order} by smooth sensitivity with smoothness {beta}, noise {first} and {second}, failure probability {failure}"
        )
    }
}

impl Paid<SmoothCost> {
    /// Releases a bound on the cost that holds except with probability `failure`.
    ///
    /// How close the bound is to the cost depends on the votes and stays secret.
    pub fn run(mut self, cost: &VoteCost) -> Result<ReleasedCost, Error> {
        let release = self.mechanism;
        if cost.order != release.order {
            let range = "what was paid for";
            return Err(Error::OutOfRange { what: "order", value: cost.order.get(), range });
        }
        if !(1..=MOST_RELEASES).contains(&cost.places.len()) {
            let releases = cost.places.len() as f64;
            return Err(Error::OutOfRange { what: "number of releases", value: releases, range: "[1, 1e6]" });
        }
        let mut stream = self.key()?.stream(0);
        Ok(ReleasedCost {
            order: cost.order,
            divergence: release.draw(cost, &mut stream)?,
            own: release.rho() * cost.order.get(),
            failure: release.failure,
            asked: cost.asked,
            distance: cost.distance,
        })
    }
}

/// The released cost of votes: a bound that holds except with probability `failure`.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct ReleasedCost {
    /// The order of the divergences.
    pub order: Order,
    /// Bound on the divergence of all earlier releases about the votes.
    pub divergence: f64,
    /// The divergence of this release itself.
    pub own: f64,
    /// Probability that `divergence` is too small or that this release costs more than `own`.
    pub failure: Delta,
    /// When the questions were chosen.
    pub asked: Asked,
    /// Total variation between the noise of the votes and the ideal noise.
    pub distance: f64,
}

impl ReleasedCost {
    /// ε of the votes and of this release at δ, rounded up.
    ///
    /// It includes the failure probability. ε is infinite if δ is too small for the failure probability or
    /// for the distance of the noise.
    ///
    /// # Theorem
    /// THEORY, Votes. In advance: by the tight conversion [CKS20, Proposition 12], at this dataset and its
    /// neighbours, in both directions. On the way: the privacy loss of all releases exceeds ε with
    /// probability at most δ, by Markov's inequality as in [Mir17, Proposition 3]. A thousandth of δ is kept
    /// for the distance of the noise.
    #[must_use]
    pub fn epsilon(&self, delta: Delta) -> f64 {
        let (order, left) = (self.order.get(), 0.999 * delta.get() - self.failure.get());
        if left <= 0.0 {
            return f64::INFINITY;
        }
        let divergence = (self.divergence + self.own) * (1.0 + 1e-14);
        let epsilon = match self.asked {
            Asked::InAdvance => renyi_epsilon(Conversion::Tight, order, divergence, left),
            Asked::OnTheWay => (divergence - left.ln() / (order - 1.0)) * (1.0 + 1e-14),
        };
        if excess(epsilon, self.distance) <= 1e-3 * delta.get() { epsilon } else { f64::INFINITY }
    }
}

#[cfg(test)]
mod tests;
