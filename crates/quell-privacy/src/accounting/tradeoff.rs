//! Hypothesis testing: how well the best attacker can distinguish neighbours.
//!
//! The trade-off function β(α) is the least false-negative rate of any test with false-positive rate α. It is
//! dual to the profile: a test with rate α has power at most δ(ε) + e^ε α for every ε, and the best test
//! attains the infimum. [DRS22, Prop. 2.12]

use super::{
    Bound, Pld,
    pld::{PrivacyLoss, Profiles, privacy_losses},
};
use crate::{
    Error, Event, Neighbors,
    special::{bisect_smallest, ln_gaussian_delta, normal_below, normal_quantile},
    units::{Delta, Probability},
};

/// Upper and lower bounds on the trade-off function of an event.
///
/// ```
/// use quell_privacy::{Event, Neighbors, accounting::{Pld, TradeOff}};
/// use quell_privacy::units::{NoiseMultiplier, Probability, SamplingRate};
/// let run = Event::dp_sgd(NoiseMultiplier::new(1.0)?, SamplingRate::new(0.01)?, 1000);
/// let attack = TradeOff::new(&Pld::default(), &run, Neighbors::AddRemove)?;
/// let power = attack.power(Probability::new(0.01)?);
/// assert!(power.lower > 0.0290 && power.upper < 0.0293, "{power:?}");
/// # Ok::<(), quell_privacy::Error>(())
/// ```
pub struct TradeOff {
    kind: Kind,
    pld: Pld,
    event: Event,
    neighbors: Neighbors,
}

enum Kind {
    /// N(μ, 1) against N(0, 1), in closed form, with bounds on μ.
    Gaussian(Bound),
    Profiles(Vec<Profiles>),
    NonPrivate,
}

/// The smallest false-positive rate, approximately, that is resolved well.
const SMALLEST_RATE: f64 = 1e-9;

impl TradeOff {
    /// Composes the event once for all questions.
    pub fn new(pld: &Pld, event: &Event, neighbors: Neighbors) -> Result<Self, Error> {
        let losses = privacy_losses(event, neighbors)?;
        let kind = if losses.iter().any(|loss| loss.non_private) {
            Kind::NonPrivate
        } else if let Some(mu) = losses.first().and_then(PrivacyLoss::gaussian) {
            Kind::Gaussian(mu)
        } else {
            pld.profiles(event, neighbors, SMALLEST_RATE)?.map_or(Kind::NonPrivate, Kind::Profiles)
        };
        Ok(Self { kind, pld: *pld, event: event.clone(), neighbors })
    }

    /// μ from above, if the event is a composition of Gaussians or of last iterates.
    ///
    /// It is exact for Gaussians.
    pub(crate) fn exact_gaussian(event: &Event, neighbors: Neighbors) -> Result<Option<f64>, Error> {
        let losses = privacy_losses(event, neighbors)?;
        let non_private = losses.iter().any(|loss| loss.non_private);
        Ok(losses
            .first()
            .filter(|_| !non_private)
            .and_then(PrivacyLoss::gaussian)
            .map(|mu| mu.upper * (1.0 + 1e-15)))
    }

    /// True-positive rate of the best test at a false-positive rate, for the worse direction.
    #[must_use]
    pub fn power(&self, false_positive_rate: Probability) -> Bound {
        let alpha = false_positive_rate.get();
        match &self.kind {
            Kind::NonPrivate => Bound { lower: 1.0, upper: 1.0 },
            Kind::Gaussian(mu) => {
                let power = |mu: f64| {
                    if alpha == 0.0 { 0.0 } else { normal_below(normal_quantile_ends(alpha) + mu) }
                };
                Bound {
                    lower: power(mu.lower) * (1.0 - 1e-12),
                    upper: (power(mu.upper) * (1.0 + 1e-12)).min(1.0),
                }
            }
            Kind::Profiles(directions) => directions
                .iter()
                .map(|d| power(d, alpha))
                .fold(Bound { lower: alpha, upper: alpha }, Bound::max),
        }
    }

    /// False-negative rate of the best test, 1 - power: only its lower end may be claimed.
    #[must_use]
    pub fn beta(&self, false_positive_rate: Probability) -> Bound {
        let power = self.power(false_positive_rate);
        Bound { lower: 1.0 - power.upper, upper: 1.0 - power.lower }
    }

    /// The least μ for which the event is μ-GDP up to `slack`.
    ///
    /// This means δ(ε) ≤ δ_μ(ε) + slack for every ε.
    ///
    /// # Contract
    /// `upper` is a true bound: no test has a false-negative rate more than `slack` below that of N(μ, 1)
    /// against N(0, 1). Without slack the answer for sampled noise would be that of no sampling at all,
    /// because a record that was sampled every time decides far out in the tail. Gaussians need no slack and
    /// get their exact μ.
    pub fn gaussian(&self, slack: Delta) -> Result<Bound, Error> {
        match &self.kind {
            Kind::NonPrivate => return Ok(Bound { lower: f64::INFINITY, upper: f64::INFINITY }),
            Kind::Gaussian(mu) => {
                return Ok(Bound { lower: mu.lower * (1.0 - 1e-15), upper: mu.upper * (1.0 + 1e-15) });
            }
            Kind::Profiles(_) => {}
        }
        // One composition gives the whole profile, unless its rounding error exceeds the slack.
        let quick = self.gaussian_from_profiles(slack.get())?;
        if quick.upper <= quick.lower * (1.0 + CLOSE) {
            return Ok(quick);
        }
        let careful = self.gaussian_by_halving(slack)?;
        Ok(Bound { lower: quick.lower.max(careful.lower), upper: quick.upper.min(careful.upper) })
    }

    /// [`TradeOff::gaussian`] from profiles at many ε.
    ///
    /// Both profiles fall. Between adjacent nodes a > b the event's profile is at most δ(b) and δ_μ is at
    /// least δ_μ(a), so it is enough that δ_μ(a) reaches δ(b).
    fn gaussian_from_profiles(&self, slack: f64) -> Result<Bound, Error> {
        let Kind::Profiles(rough) = &self.kind else { return Ok(Bound { lower: 0.0, upper: f64::INFINITY }) };
        let at_zero = rough.iter().map(|d| {
            d.lower.iter().filter(|(epsilon, _)| *epsilon >= 0.0).map(|(_, delta)| *delta).fold(0.0, f64::max)
        });
        let absolute = self.pld.absolute.min(NARROW * at_zero.fold(0.0, f64::max)).max(1e-9);
        let fine = Pld { absolute, ..self.pld };
        let Some(profiles) = fine.profiles(&self.event, self.neighbors, 1e-2 * slack)? else {
            return Ok(Bound { lower: f64::INFINITY, upper: f64::INFINITY });
        };
        let mut bound = Bound { lower: 0.0, upper: 0.0 };
        for direction in &profiles {
            // Negative ε are the other direction's positive ε.
            for (epsilon, delta) in direction.lower.iter().filter(|(epsilon, _)| *epsilon >= 0.0) {
                raise(&mut bound.lower, *epsilon, delta - slack);
            }
            // Above the first node the profile is at most that of the first node. Written so that NaN is no
            // proof.
            let covered =
                direction.upper.first().is_some_and(|(epsilon, delta)| *epsilon >= 0.0 && *delta <= slack);
            if !covered {
                bound.upper = f64::INFINITY;
            }
            for pair in direction.upper.windows(2).filter(|pair| pair[0].0 >= 0.0) {
                raise(&mut bound.upper, pair[0].0, pair[1].1 - slack);
            }
        }
        Ok(Bound { lower: bound.lower.min(bound.upper), upper: bound.upper })
    }

    /// [`TradeOff::gaussian`] by one composition for every ε that matters.
    fn gaussian_by_halving(&self, slack: Delta) -> Result<Bound, Error> {
        // From here on δ is at most the slack.
        let end = self.pld.epsilon(&self.event, self.neighbors, slack)?.upper;
        if end.is_infinite() {
            return Ok(Bound { lower: 0.0, upper: f64::INFINITY });
        }
        // Halve the interval with the largest μ until that μ is close to the lower bound. Negative ε are the
        // other direction's positive ε.
        let profile = |epsilon: f64| self.pld.delta(&self.event, self.neighbors, epsilon);
        let start = profile(0.0)?;
        let mut lower = least_mu(0.0, start.lower - slack.get());
        let mut intervals = vec![Piece::new((0.0, start.upper), (end, slack.get()), slack)];
        loop {
            let most = (0..intervals.len())
                .max_by(|&i, &j| intervals[i].mu.total_cmp(&intervals[j].mu))
                .unwrap_or(0);
            let Piece { low, high, mu } = intervals[most];
            if intervals.len() >= MOST_INTERVALS || mu <= lower * (1.0 + NARROW) {
                return Ok(Bound { lower: lower.min(mu), upper: mu });
            }
            let middle = 0.5 * (low.0 + high.0);
            let found = profile(middle)?;
            lower = lower.max(least_mu(middle, found.lower - slack.get()));
            intervals[most] = Piece::new(low, (middle, found.upper), slack);
            intervals.push(Piece::new((middle, found.upper), high, slack));
        }
    }
}

/// An interval of ε, and the μ that covers the profile over all of it.
#[derive(Clone, Copy)]
struct Piece {
    /// ε and δ(ε), from above, at its ends.
    low: (f64, f64),
    high: (f64, f64),
    mu: f64,
}

impl Piece {
    /// Covers the profile between two points.
    ///
    /// Between the ends, δ is at most linear in e^ε: E[max(0, 1 - e^(ε-L))] is convex in e^ε. It falls, and
    /// so does δ_μ. So for adjacent points a < b of a finer division it is enough that δ_μ(b) reaches the
    /// value of the line at a.
    fn new(low: (f64, f64), high: (f64, f64), slack: Delta) -> Self {
        let width = high.0 - low.0;
        let line = |part: f64| {
            let weight = (part * width).exp_m1() / width.exp_m1();
            // Where e^width overflows, or the interval is empty.
            let weight = if weight.is_finite() { weight.clamp(0.0, 1.0) * (1.0 - 1e-12) } else { 0.0 };
            low.1 - weight * (low.1 - high.1).max(0.0)
        };
        let mut mu = 0.0;
        for point in 0..POINTS {
            let (a, b) = (f64::from(point) / f64::from(POINTS), f64::from(point + 1) / f64::from(POINTS));
            raise(&mut mu, low.0 + b * width, line(a) - slack.get());
        }
        Self { low, high, mu }
    }
}

/// Number of points at which a line is compared with the profile of a Gaussian.
const POINTS: u32 = 64;

/// The largest number of intervals into which [`TradeOff::gaussian`] cuts the range of ε …
const MOST_INTERVALS: usize = 64;

/// … unless its answer is this close to a lower bound before.
const NARROW: f64 = 2e-3;

/// The largest relative gap between the bounds from one composition.
const CLOSE: f64 = 0.01;

/// Raises μ until δ_μ(ε) ≥ δ.
fn raise(mu: &mut f64, epsilon: f64, delta: f64) {
    let reached = delta <= 0.0 || (*mu > 0.0 && ln_gaussian_delta(*mu, epsilon) >= delta.ln());
    if !reached {
        *mu = mu.max(least_mu(epsilon, delta));
    }
}

/// The least μ for which δ_μ(ε) ≥ δ, rounded up.
fn least_mu(epsilon: f64, delta: f64) -> f64 {
    if delta <= 0.0 {
        return 0.0;
    }
    if delta >= 1.0 || delta.is_nan() {
        return f64::INFINITY;
    }
    let reaches = |mu: f64| mu > 0.0 && ln_gaussian_delta(mu, epsilon) >= delta.ln();
    let mut high = 0.2;
    while !reaches(high) {
        high *= 2.0;
    }
    bisect_smallest(0.0, high, 60, reaches)
}

fn normal_quantile_ends(p: f64) -> f64 {
    if p >= 1.0 { f64::INFINITY } else { normal_quantile(p) }
}

fn power(profiles: &Profiles, alpha: f64) -> Bound {
    let price = |epsilon: f64| if alpha == 0.0 { 0.0 } else { epsilon.exp() * alpha };
    let least = |profile: &[(f64, f64)]| {
        profile.iter().map(|(epsilon, delta)| delta + price(*epsilon)).fold(f64::INFINITY, f64::min)
    };
    let upper = least(&profiles.upper).min(1.0);
    // The lower profile is linear in e^ε between its nodes, down to ε = -∞, and at least zero above them.
    let above = profiles.lower.first().map_or(0.0, |(epsilon, _)| price(*epsilon));
    let lower = least(&profiles.lower).min(above);
    Bound { lower: if lower.is_finite() { lower.clamp(0.0, upper) } else { 0.0 }, upper }
}
