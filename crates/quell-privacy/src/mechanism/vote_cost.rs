//! What the votes of a run cost at the votes that were cast: added up in secret, shown for a price.

use std::sync::Arc;

use super::{Mechanism, Sealed, Votes, noisy_max::drawn};
use crate::{
    Error, Event, Neighbors,
    accounting::{
        Conversion, renyi_epsilon,
        votes::{GaussianMax, Ladder, Place, Screen, ln_error, smooth_sum},
    },
    ledger::Paid,
    noise::{
        exact::{Ratio, discrete_gaussian},
        random::Stream,
        rounded::DISTANCE,
    },
    number::brief,
    special::normal_quantile,
    units::{Delta, Epsilon, NoiseMultiplier, Order, Rho, Scale},
};

/// When the questions were chosen. What may be claimed differs (THEORY, Votes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// All of them before the first was answered, and none was screened: the cost is a number that belongs to the dataset.
    InAdvance,
    /// Which questions were answered depends on earlier answers or on screens: the cost belongs to what came out.
    OnTheWay,
}

/// The divergences, at one order, of all that was released about votes. Sensitive: they are functions of the votes, and there is no way to read them but
/// [`SmoothCost`].
///
/// # Contract
/// A neighbour has at most one other ballot in each question: the ballots are teachers', each taught with records of its own, or people's own. No dataset
/// casts more than `teachers` ballots in a question; that number is public. Everything that was shown about the votes is added here, as drawn by this crate.
pub struct VoteCost {
    order: Order,
    teachers: u32,
    asked: Asked,
    places: Vec<Place>,
    ladders: Vec<(Kind, Arc<Ladder>)>,
    /// What it costs whatever the votes: public.
    independent: f64,
    /// Of the noise from the ideal one: public.
    distance: f64,
}

/// Settings that have a ladder of their own.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Maximum { candidates: usize, deviation: f64 },
    Screen { threshold: u64, deviation: f64 },
}

/// Drawn noise is rounded to 2³⁰ steps to the deviation, so two noisy counts are closer by a step at most.
const CLOSER: f64 = 1.0 / (1 << 30) as f64;

/// A rounded number reaches a threshold on the grid if the number itself is not below it by more than half a step, in deviations.
const HALF_STEP: f64 = 0.5 * CLOSER;

/// Releases about votes that one cost can hold: so many roundings are accounted for.
const MOST_RELEASES: usize = 1_000_000;

impl VoteCost {
    /// Nothing so far. The order is chosen before votes are seen.
    #[must_use]
    pub fn new(order: Order, teachers: u32, asked: Asked) -> Self {
        Self { order, teachers, asked, places: Vec::new(), ladders: Vec::new(), independent: 0.0, distance: 0.0 }
    }

    /// The winner of these votes after Gaussian noise was shown: [`Rule::Gaussian`](super::Rule::Gaussian).
    ///
    /// # Theorem
    /// [PSMRTE18, Theorem 6], for the deviation that is drawn. Rounded noise decides as continuous noise does, but where two counts are within a step of each other.
    pub fn answered(&mut self, votes: &Votes, deviation: NoiseMultiplier) -> Result<(), Error> {
        let counts = self.counts(votes)?;
        let deviation = drawn(deviation) * (1.0 - 1e-15);
        let kind = Kind::Maximum { candidates: counts.len(), deviation };
        let ladder = self.ladder(kind);
        let rung = ladder.rung(ln_error(&counts, deviation, CLOSER));
        self.independent += GaussianMax { deviation: NoiseMultiplier::new(deviation)? }.independent(self.order);
        self.distance += counts.len() as f64 * DISTANCE;
        self.places.push(Place { ladder, rung });
        Ok(())
    }

    /// Whether the largest count reached the threshold after Gaussian noise was shown, yes or no. The noise is that of
    /// [`Rule::Gaussian`](super::Rule::Gaussian): rounded to a grid on which a vote is a whole number of steps.
    pub fn screened(&mut self, votes: &Votes, threshold: u64, deviation: NoiseMultiplier) -> Result<(), Error> {
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

    /// The divergence whatever the votes, which is public.
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
            Kind::Maximum { candidates, deviation } => Ladder::of_maximum(candidates, deviation, self.order.get()),
            Kind::Screen { threshold, deviation } => {
                Ladder::of_screen(threshold, deviation, self.teachers, HALF_STEP, self.order.get())
            }
        });
        self.ladders.push((kind, ladder.clone()));
        ladder
    }
}

/// Releases an upper bound on a [`VoteCost`] by smooth sensitivity: first how far one person can move it, then the cost with noise to match.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SmoothCost {
    order: Order,
    smoothness: f64,
    scale_noise: NoiseMultiplier,
    noise: NoiseMultiplier,
    failure: Delta,
}

/// Steps of the grid to what one person can move, in either release.
const STEPS: f64 = (1 << 20) as f64;

/// Steps that rounding may add between neighbours: one for the next integer, and the rest for floating point.
const ROUNDED: f64 = 4.0;

/// Sensitivities below this part of the independent cost are taken for it.
const LEAST: f64 = 1.0 / (1 << 24) as f64;

/// No step of the second grid is smaller than this part of the independent cost: a million roundings are a tenth of it.
const LEAST_STEP: f64 = 1.0 / (1 << 30) as f64;

impl SmoothCost {
    /// At the order of the cost, with smoothness β in [0.001, 1]. Both noises, in [0.1, 900], are over what one person can move: the first that of the logarithm of the sensitivity,
    /// the second that of the cost. What is released is no bound with probability at most `failure`, which is also the δ of the release.
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
        if let Some(out) = [scale_noise, noise].into_iter().find(|noise| !(0.1..=900.0).contains(&noise.get())) {
            return Err(Error::OutOfRange { what: "noise_multiplier", value: out.get(), range: "[0.1, 900]" });
        }
        Ok(Self { order, smoothness, scale_noise, noise, failure })
    }

    /// ρ of both releases, 1/2σ₁² + 1/2σ₂², rounded up.
    fn rho(&self) -> f64 {
        let each = |noise: NoiseMultiplier| 0.5 / (noise.get() * noise.get());
        (each(self.scale_noise) + each(self.noise)) * (1.0 + 1e-14)
    }

    /// Deviations that either noise exceeds downwards with a third of the probability of failure.
    fn margin(&self) -> f64 {
        -normal_quantile(self.failure.get() / 3.0) * (1.0 + 1e-12)
    }

    /// What is released.
    ///
    /// # Theorem
    /// The logarithm of a β-smooth bound S moves by at most β, so noise makes it public; with the margin it is Ŝ ≥ S but for a third of the failure. Then noise for a sensitivity
    /// of Ŝ makes the cost public, and with the margin, and Ŝ for the neighbours, it is a bound. Integers with discrete Gaussian noise, drawn exactly. (THEORY, Votes)
    fn draw(&self, cost: &VoteCost, stream: &mut Stream) -> Result<f64, Error> {
        let smooth = smooth_sum(&cost.places, self.smoothness) * (1.0 + 1e-9);
        let step = self.smoothness / STEPS;
        let logarithm = (smooth.max(LEAST * cost.independent).ln() / step).ceil();
        let logarithm = self.above(logarithm, self.scale_noise, STEPS, stream)?;
        let sensitivity = (logarithm * step).exp().min(cost.independent) * (1.0 + 1e-9);
        let step = (sensitivity / STEPS).max(LEAST_STEP * cost.independent);
        let spent: f64 = cost.places.iter().map(Place::cost).sum();
        let bound = self.above((spent / step).ceil(), self.noise, sensitivity / step, stream)?;
        Ok(((bound * step + sensitivity) * (1.0 + 1e-14)).clamp(0.0, cost.independent))
    }

    /// An integer of which one person moves so many steps, with noise, and the margin by which it is not below the integer.
    ///
    /// # Theorem
    /// [CKS20, Theorem 4], and Pr[X ≤ -m] ≤ Φ(-(m-1)/scale): a falling function summed from m on is at most its integral from m - 1 on.
    fn above(&self, integer: f64, noise: NoiseMultiplier, moves: f64, stream: &mut Stream) -> Result<f64, Error> {
        let scale = Scale::new(((moves + ROUNDED) * noise.get()).ceil())?;
        let margin = (self.margin() * scale.get()).ceil() + 1.0;
        Ok(integer + margin + discrete_gaussian(Ratio::above(scale), stream) as f64)
    }
}

impl Sealed for SmoothCost {}

impl Mechanism for SmoothCost {
    /// # Theorem
    /// What was released before is fixed, so the sum is a function of the dataset alone. Two releases with discrete Gaussian noise [CKS20, Theorem 4]; the second has its
    /// sensitivity but for a third of the failure, which is slack (THEORY, Votes; Filters).
    fn event(&self, _: Neighbors) -> Event {
        let noise = super::unit_event(Rho::new(self.rho()), |rho| Event::ZeroConcentrated { rho });
        let slack = super::unit_event(Epsilon::new(0.0), |epsilon| Event::Approximate { epsilon, delta: self.failure });
        Event::Composed(vec![noise, slack])
    }
}

impl std::fmt::Display for SmoothCost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (order, beta, failure) = (brief(self.order.get()), brief(self.smoothness), brief(self.failure.get()));
        let (first, second) = (brief(self.scale_noise.get()), brief(self.noise.get()));
        write!(
            f,
            "cost of votes at order {order} by smooth sensitivity, smoothness {beta}, noise {first} and {second}, failure {failure}"
        )
    }
}

impl Paid<SmoothCost> {
    /// A bound on the cost, which holds but for the probability of failure. How close it is is a secret of the votes.
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

/// What votes cost, released: a bound but for the probability `failure`.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct ReleasedCost {
    /// The order of the divergences.
    pub order: Order,
    /// Of all that was shown about the votes before.
    pub divergence: f64,
    /// Of this release.
    pub own: f64,
    /// Probability that `divergence` is too small, or this release dearer than `own`.
    pub failure: Delta,
    /// When the questions were chosen.
    pub asked: Asked,
    /// Total variation between the noise of the votes and the ideal noise.
    pub distance: f64,
}

impl ReleasedCost {
    /// ε of the votes and of this release at δ, failure included; infinite where δ does not bear it. Rounded up.
    ///
    /// # Theorem
    /// THEORY, Votes. In advance: by the tight conversion [CKS20, Proposition 12], at this dataset and its neighbours, in both directions. On the way: the privacy loss of all that
    /// was shown exceeds ε with probability at most δ, by Markov's inequality as in [Mir17, Proposition 3]. A thousandth of δ is kept for the distance of the noise.
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
        if (1.0 + epsilon.exp()) * self.distance <= 1e-3 * delta.get() { epsilon } else { f64::INFINITY }
    }
}

#[cfg(test)]
mod tests;
