//! The other way round: the least noise, the most steps or the largest rate that fits a target.
//!
//! Every answer is the last value that was *seen* to fit, by an upper bound; how far it may be from the best is a stated
//! tolerance, never a hope about monotonicity.

use super::{Bound, Conversion, Pld, Renyi, TradeOff};
use crate::{
    Error, Event, Neighbors,
    units::{Delta, Epsilon, NoiseMultiplier, Probability, SamplingRate},
};

/// What a release must not exceed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// (ε, δ).
    EpsilonDelta {
        /// ε.
        epsilon: Epsilon,
        /// δ.
        delta: Delta,
    },
    /// μ of Gaussian differential privacy, up to a slack (see [`TradeOff::gaussian`]).
    Gaussian {
        /// μ.
        mu: f64,
        /// Probability that may be left out.
        slack: Delta,
    },
    /// Power of the best attack at a false-positive rate.
    Power {
        /// At this false-positive rate …
        false_positive_rate: Probability,
        /// … no test has a true-positive rate above this.
        true_positive_rate: Probability,
    },
}

/// A calibration: a target, the relation it is meant for, and the accountant that judges.
///
/// ```
/// use quell_privacy::{Event, Neighbors, accounting::{Calibration, Target}, units::{Delta, Epsilon, SamplingRate}};
/// let target = Target::EpsilonDelta { epsilon: Epsilon::new(1.0)?, delta: Delta::new(1e-5)? };
/// let rate = SamplingRate::new(0.01)?;
/// let noise = Calibration::new(target, Neighbors::AddRemove).least_noise(|z| Event::dp_sgd(z, rate, 1000))?;
/// assert!((noise.get() - 1.4147).abs() < 1e-3);
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    target: Target,
    neighbors: Neighbors,
    pld: Pld,
}

/// Answers are within this fraction of the best one (beyond the accountant's own width).
const TOLERANCE: f64 = 2e-4;

impl Calibration {
    /// Judged by the PLD accountant, and by the Rényi accountant where no dominating pair is known.
    #[must_use]
    pub fn new(target: Target, neighbors: Neighbors) -> Self {
        Self { target, neighbors, pld: Pld { relative: 4e-4, absolute: 1e-5, ..Pld::default() } }
    }

    /// The least noise multiplier, rounded up.
    pub fn least_noise(&self, event: impl Fn(NoiseMultiplier) -> Event) -> Result<NoiseMultiplier, Error> {
        let unreachable = Error::Unreachable { what: "noise multiplier", range: "[1e-6, 1e12]" };
        let at = |ln: f64| NoiseMultiplier::new(ln.exp().clamp(1e-6, 1e12));
        let ln = self.search(0.0, (-13.8, 27.6), |ln| Ok(event(at(ln)?)), unreachable)?;
        at(ln)
    }

    /// The largest sampling rate, rounded down.
    pub fn largest_rate(&self, event: impl Fn(SamplingRate) -> Event) -> Result<SamplingRate, Error> {
        let unreachable = Error::Unreachable { what: "sampling rate", range: "[1e-15, 1]" };
        let at = |minus_ln: f64| SamplingRate::new((-minus_ln).exp().clamp(1e-15, 1.0));
        let minus_ln = self.search(4.6, (0.0, 34.5), |x| Ok(event(at(x)?)), unreachable)?;
        at(minus_ln)
    }

    /// The most steps.
    pub fn most_steps(&self, event: impl Fn(u64) -> Event) -> Result<u64, Error> {
        let fits = |steps: u64| -> Result<bool, Error> { Ok(self.excess(&event(steps))? <= 0.0) };
        if !fits(1)? {
            return Err(Error::Unreachable { what: "number of steps", range: "[1, 2^53]" });
        }
        let (mut low, mut high) = (1_u64, 2_u64);
        while fits(high)? {
            low = high;
            high = high.saturating_mul(4);
            if high >= 1 << 53 {
                return Ok(low);
            }
        }
        while high - low > 1 {
            let middle = ((low as f64 * high as f64).sqrt() as u64).clamp(low + 1, high - 1);
            let middle = if high - low < 16 { low + (high - low) / 2 } else { middle };
            if fits(middle)? { low = middle } else { high = middle }
        }
        Ok(low)
    }

    /// ln of what the event has over what it may have; zero or less fits.
    fn excess(&self, event: &Event) -> Result<f64, Error> {
        Ok(match self.target {
            Target::EpsilonDelta { epsilon, delta } if epsilon.get() == 0.0 => {
                (self.pld.delta(event, self.neighbors, 0.0)?.upper / delta.get()).ln()
            }
            Target::EpsilonDelta { epsilon, delta } => (self.epsilon(event, delta)?.upper / epsilon.get()).ln(),
            Target::Gaussian { mu, slack } => (TradeOff::new(&self.pld, event, self.neighbors)?.gaussian(slack)?.upper / mu).ln(),
            Target::Power { false_positive_rate, true_positive_rate } => {
                let power = TradeOff::new(&self.pld, event, self.neighbors)?.power(false_positive_rate);
                (power.upper / true_positive_rate.get()).ln()
            }
        })
    }

    fn epsilon(&self, event: &Event, delta: Delta) -> Result<Bound, Error> {
        match self.pld.epsilon(event, self.neighbors, delta) {
            Err(Error::Unsupported { .. }) => Ok(Renyi::new(event, self.neighbors)?.epsilon(delta, Conversion::Tight)),
            answer => answer,
        }
    }

    /// The least x in the range whose event fits, to the tolerance; the excess falls as x grows.
    fn search(
        &self,
        start: f64,
        range: (f64, f64),
        event: impl Fn(f64) -> Result<Event, Error>,
        unreachable: Error,
    ) -> Result<f64, Error> {
        let excess = |x: f64| self.excess(&event(x)?);
        let at_start = excess(start)?;
        let (mut low, mut high);
        let mut stride = 0.5;
        if at_start <= 0.0 {
            high = (start, at_start);
            loop {
                let x = (high.0 - stride).max(range.0);
                let here = excess(x)?;
                if here > 0.0 {
                    low = (x, here);
                    break;
                }
                high = (x, here);
                if x <= range.0 {
                    return Ok(x); // the whole range fits
                }
                stride *= 2.0;
            }
        } else {
            low = (start, at_start);
            loop {
                let x = (low.0 + stride).min(range.1);
                let here = excess(x)?;
                if here <= 0.0 {
                    high = (x, here);
                    break;
                }
                low = (x, here);
                if x >= range.1 {
                    return Err(unreachable);
                }
                stride *= 2.0;
            }
        }
        while high.0 - low.0 > TOLERANCE {
            let root = low.0 + (high.0 - low.0) * low.1 / (low.1 - high.1);
            // Aimed to land just beyond the root, on the side where the bracket is wider, so that both ends close in.
            let aimed = if high.0 - root > root - low.0 { root + 0.4 * TOLERANCE } else { root - 0.4 * TOLERANCE };
            let margin = 0.02 * (high.0 - low.0);
            let x = if aimed.is_finite() { aimed.clamp(low.0 + margin, high.0 - margin) } else { 0.5 * (low.0 + high.0) };
            let here = excess(x)?;
            if here <= 0.0 { high = (x, here) } else { low = (x, here) }
        }
        Ok(high.0)
    }
}
