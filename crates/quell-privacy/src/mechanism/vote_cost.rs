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
    units::{Delta, Epsilon, NoiseMultiplier, Order, Scale},
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

/// Releases an upper bound on a [`VoteCost`] by smooth sensitivity with Gaussian noise (GNSS).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SmoothCost {
    order: Order,
    smoothness: f64,
    noise_multiplier: NoiseMultiplier,
    failure: Delta,
    delta: Delta,
}

/// The grid of what is released has so many steps to the largest cost, over the noise multiplier: scales of the noise are integers below 2³⁰.
const STEPS: f64 = (1 << 29) as f64;

/// The least scale of the noise, in steps: rounding it to an integer is a part in 2¹².
const LEAST_SCALE: f64 = 4096.0;

/// Steps that rounding may add between neighbours: one for the sum, one for the shift, and two for floating point.
const ROUNDED: f64 = 4.0;

impl SmoothCost {
    /// At the order of the cost; `smoothness` is β, in [0.001, 1]; the noise is `noise_multiplier`, in [0.1, 1e6], times the smooth sensitivity; what is released
    /// is below the cost with probability at most `failure`; and `delta` is the δ at which the release itself is charged to the ledger.
    pub fn new(
        order: Order,
        smoothness: f64,
        noise_multiplier: NoiseMultiplier,
        failure: Delta,
        delta: Delta,
    ) -> Result<Self, Error> {
        let release = Self { order, smoothness, noise_multiplier, failure, delta };
        if !(0.001..=1.0).contains(&smoothness) {
            return Err(Error::OutOfRange { what: "smoothness", value: smoothness, range: "[0.001, 1]" });
        }
        if !(0.1..=1e6).contains(&noise_multiplier.get()) {
            return Err(Error::OutOfRange { what: "noise_multiplier", value: noise_multiplier.get(), range: "[0.1, 1e6]" });
        }
        if release.divergence(order.get()).is_infinite() {
            let range = "(1, 1/(1 - e^(-2 smoothness))), below which the release has a bound";
            return Err(Error::OutOfRange { what: "order", value: order.get(), range });
        }
        Ok(release)
    }

    /// How many scales of the noise are added, so that the noise takes the sum below the cost with probability `failure` at most, and below that of a neighbour
    /// too: √(2 ln(1/failure)) + 1/σ.
    fn shift(&self) -> f64 {
        (-2.0 * self.failure.get().ln()).sqrt() + 1.0 / self.noise_multiplier.get()
    }

    /// Divergence of order α of what is released; rounded up, infinite where there is none.
    ///
    /// # Theorem
    /// Two Gaussians whose scales have the ratio r ∈ [e^-β, e^β] and whose means are at most min(1, r)/σ + t|r - 1| apart, in units of the first scale; in closed form,
    /// and the largest over r (THEORY, Votes). [PSMRTE18, Theorem 23] is the same for t = 0, less tightly. Each cell of r takes the worst of its ends.
    fn divergence(&self, alpha: f64) -> f64 {
        const CELLS: i32 = 64;
        let (sigma, shift) = (self.noise_multiplier.get(), self.shift());
        let cell = |low: f64, high: f64| {
            let (least, most) = (low.exp(), high.exp());
            let left = alpha * least * least + 1.0 - alpha;
            let moved = most.min(1.0) / sigma + shift * (least - 1.0).abs().max((most - 1.0).abs());
            // Falls below one and rises above it.
            let square = if low < 0.0 { least * least } else { most * most };
            let scales = (alpha * square.ln() - (alpha * square + 1.0 - alpha).ln()) / (2.0 * (alpha - 1.0));
            //         = (α ln r² - ln(αr² + 1 - α)) / 2(α-1)
            if left > 0.0 { scales + alpha * moved * moved / (2.0 * left) } else { f64::INFINITY }
        };
        let width = self.smoothness / f64::from(CELLS);
        let cells = (-CELLS..CELLS).map(|i| cell(width * f64::from(i), width * f64::from(i + 1)));
        cells.fold(0.0, f64::max) * (1.0 + 1e-9) + 1e-12
    }

    /// What is released, in steps, and the length of a step, which is public.
    ///
    /// # Theorem
    /// An integer with discrete Gaussian noise of an integer scale k, drawn exactly. Neighbours' integers are at most k/σ + t|k - k'| apart, and k ≤ e^β k' (THEORY, Votes).
    fn draw(&self, cost: &VoteCost, stream: &mut Stream) -> Result<(i64, f64), Error> {
        let sigma = self.noise_multiplier.get();
        let step = cost.independent * sigma / STEPS;
        // β, less what rounding the scale to an integer and floating point take.
        let smooth = smooth_sum(&cost.places, self.smoothness - 1.0 / LEAST_SCALE - 1e-6);
        let sensitivity = smooth * (1.0 + 1e-9) + ROUNDED * step;
        let scale = (sensitivity * sigma / step).ceil().clamp(LEAST_SCALE, 1e9);
        let spent: f64 = cost.places.iter().map(Place::cost).sum();
        let above = (spent / step).ceil() as i64 + (self.shift() * scale).ceil() as i64;
        Ok((above + discrete_gaussian(Ratio::above(Scale::new(scale)?), stream), step))
    }
}

impl Sealed for SmoothCost {}

impl Mechanism for SmoothCost {
    /// # Theorem
    /// What was released before is fixed, so the sum is a function of the dataset with this smooth sensitivity, and the divergences are those of
    /// [`SmoothCost::divergence`]. They end at an order that ledgers go beyond, so what is charged is their (ε, δ). [CKS20, Proposition 12]
    fn event(&self, _: Neighbors) -> Event {
        let end = -1.0 / (-2.0 * self.smoothness).exp_m1();
        let orders = (1..256).map(|i| 1.0 + (end - 1.0) * f64::from(i) / 256.0);
        let epsilon = |alpha: f64| renyi_epsilon(Conversion::Tight, alpha, self.divergence(alpha), self.delta.get());
        let least = orders.map(epsilon).fold(f64::INFINITY, f64::min);
        super::unit_event(Epsilon::new(least), |epsilon| Event::Approximate { epsilon, delta: self.delta })
    }
}

impl std::fmt::Display for SmoothCost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (order, beta) = (brief(self.order.get()), brief(self.smoothness));
        let (noise, failure) = (brief(self.noise_multiplier.get()), brief(self.failure.get()));
        write!(f, "cost of votes at order {order} by smooth sensitivity, smoothness {beta}, noise {noise}, failure {failure}")
    }
}

impl Paid<SmoothCost> {
    /// A bound on the cost, which holds but for the probability of failure. How much noise is in it is a secret of the votes.
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
        let (noisy, step) = release.draw(cost, &mut stream)?;
        Ok(ReleasedCost {
            order: cost.order,
            divergence: (noisy as f64 * step).clamp(0.0, cost.independent),
            own: release.divergence(cost.order.get()),
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
    /// Probability that `divergence` is too small.
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
