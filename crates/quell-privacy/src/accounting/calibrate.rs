//! The other way round: the least noise, the most steps or the largest rate that fits a target.
//!
//! Every answer is the last value that was *seen* to fit, by an upper bound; how far it may be from the best is a stated
//! tolerance. A bound that is too wide to tell whether a value fits does not end a search: what lies beyond is looked at, too.

use super::{Bound, Pld, TradeOff, best_by};
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

/// A number in an event that is searched for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name, for messages.
    pub name: &'static str,
    /// Whether a larger one costs more; then the largest that fits is found, else the least.
    pub costs: bool,
    /// Whether it is a whole number.
    pub whole: bool,
    /// Least value that is tried, above zero.
    pub least: f64,
    /// Largest value that is tried.
    pub largest: f64,
    /// These two, for messages.
    pub range: &'static str,
}

impl Parameter {
    const NOISE_MULTIPLIER: Self =
        Self { name: "noise multiplier", costs: false, whole: false, least: 1e-6, largest: 1e12, range: "[1e-6, 1e12]" };
    const SAMPLING_RATE: Self =
        Self { name: "sampling rate", costs: true, whole: false, least: 1e-15, largest: 1.0, range: "[1e-15, 1]" };
    const STEPS: Self =
        Self { name: "number of steps", costs: true, whole: true, least: 1.0, largest: LARGEST_WHOLE, range: "[1, 2^53]" };

    /// The value at a place of the search, along which costs fall; rounded to the side on which it costs less.
    fn at(&self, x: f64) -> f64 {
        let value = if self.costs { (-x).exp() } else { x.exp() };
        let value = match (self.whole, self.costs) {
            (true, true) => (value * (1.0 + 1e-12)).floor(),
            (true, false) => (value * (1.0 - 1e-12)).ceil(),
            (false, _) => value,
        };
        value.clamp(self.least, self.largest)
    }

    fn place(&self, value: f64) -> f64 {
        if self.costs { -value.ln() } else { value.ln() }
    }
}

/// Whole numbers up to this are exact.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Answers are within this fraction of the best one (beyond the accountant's own width).
const TOLERANCE: f64 = 2e-4;

/// A target above this promises nothing.
const LARGEST_EPSILON: f64 = 1e4;

/// How often a search goes on beyond a value of which the bounds do not tell whether it fits.
const PATIENCE: u32 = 3;

impl Calibration {
    /// Judged by every accountant that applies, for (ε, δ), and by privacy loss distributions for the other targets.
    #[must_use]
    pub fn new(target: Target, neighbors: Neighbors) -> Self {
        Self { target, neighbors, pld: Pld { relative: 4e-4, absolute: 1e-5, ..Pld::default() } }
    }

    /// The least noise multiplier, rounded up.
    pub fn least_noise(&self, event: impl Fn(NoiseMultiplier) -> Event) -> Result<NoiseMultiplier, Error> {
        NoiseMultiplier::new(self.value(&Parameter::NOISE_MULTIPLIER, 1.0, |z| Ok(event(NoiseMultiplier::new(z)?)))?)
    }

    /// The largest sampling rate, rounded down.
    pub fn largest_rate(&self, event: impl Fn(SamplingRate) -> Event) -> Result<SamplingRate, Error> {
        SamplingRate::new(self.value(&Parameter::SAMPLING_RATE, 0.01, |q| Ok(event(SamplingRate::new(q)?)))?)
    }

    /// The most steps.
    pub fn most_steps(&self, event: impl Fn(u64) -> Event) -> Result<u64, Error> {
        Ok(self.value(&Parameter::STEPS, 100.0, |steps| Ok(event(steps as u64)))? as u64)
    }

    /// The value of any number in an event that just meets the target; `start` is where the search begins.
    pub fn value(&self, parameter: &Parameter, start: f64, event: impl Fn(f64) -> Result<Event, Error>) -> Result<f64, Error> {
        if let Target::EpsilonDelta { epsilon, .. } = self.target
            && epsilon.get() > LARGEST_EPSILON
        {
            return Err(Error::OutOfRange { what: "epsilon", value: epsilon.get(), range: "[0, 10000] as a target" });
        }
        let (first, last) = (parameter.place(parameter.least), parameter.place(parameter.largest));
        let range = (first.min(last), first.max(last));
        let start = parameter.place(start).clamp(range.0, range.1);
        let x = self.search(start, range, |x| event(parameter.at(x)))?;
        x.map(|x| parameter.at(x)).ok_or(Error::Unreachable { what: parameter.name, range: parameter.range })
    }

    /// What an event comes to, in the units of the target.
    pub fn judge(&self, event: &Event) -> Result<Bound, Error> {
        let trade_off = || TradeOff::new(&self.pld, event, self.neighbors);
        match self.target {
            Target::EpsilonDelta { delta, .. } => Ok(best_by(&self.pld, event, self.neighbors, delta)?.1.epsilon),
            Target::Gaussian { slack, .. } => trade_off()?.gaussian(slack),
            Target::Power { false_positive_rate, .. } => Ok(trade_off()?.power(false_positive_rate)),
        }
    }

    fn look(&self, event: &Event) -> Result<Look, Error> {
        let (bound, limit) = match self.target {
            // Where nothing may be lost at all, it is δ that tells how far away that is.
            Target::EpsilonDelta { epsilon, delta } if epsilon.get() == 0.0 => {
                (self.pld.delta(event, self.neighbors, 0.0)?, delta.get())
            }
            Target::EpsilonDelta { epsilon, .. } => (self.judge(event)?, epsilon.get()),
            Target::Gaussian { mu, .. } => (self.judge(event)?, mu),
            Target::Power { true_positive_rate, .. } => (self.judge(event)?, true_positive_rate.get()),
        };
        // Written so that a NaN does not fit.
        let fits = bound.upper <= limit;
        let excess = (bound.upper / limit).ln();
        Ok(Look {
            excess: if fits { excess.min(0.0) } else { excess.max(f64::MIN_POSITIVE) },
            clear: fits || bound.lower > limit,
        })
    }

    /// The least x in the range whose event fits, to the tolerance; costs fall as x grows. None if no event is seen to fit.
    fn search(&self, start: f64, range: (f64, f64), event: impl Fn(f64) -> Result<Event, Error>) -> Result<Option<f64>, Error> {
        let look = |x: f64| self.look(&event(x)?);
        let (mut low, mut high);
        let mut stride = 0.5;
        let first = look(start)?;
        if first.fits() {
            high = (start, first.excess);
            low = high;
            let (mut x, mut unclear) = (start, 0);
            while x > range.0 {
                x = (x - stride).max(range.0);
                let here = look(x)?;
                if here.fits() {
                    high = (x, here.excess);
                    unclear = 0;
                } else {
                    if unclear == 0 {
                        low = (x, here.excess);
                    }
                    unclear += 1;
                    if here.clear || unclear > PATIENCE {
                        break;
                    }
                }
                stride *= 2.0;
            }
            if unclear == 0 && x <= range.0 && high.0 <= range.0 {
                return Ok(Some(high.0)); // the whole range fits
            }
        } else {
            low = (start, first.excess);
            loop {
                if low.0 >= range.1 {
                    return Ok(None);
                }
                let x = (low.0 + stride).min(range.1);
                let here = look(x)?;
                if here.fits() {
                    high = (x, here.excess);
                    break;
                }
                low = (x, here.excess);
                stride *= 2.0;
            }
        }
        let mut looks = 0;
        while high.0 - low.0 > TOLERANCE {
            looks += 1;
            // What is far from the target says little about where it is.
            let (over, under) = (low.1.min(3.0), high.1.max(-3.0));
            let root = low.0 + (high.0 - low.0) * over / (over - under);
            // Aimed to land just beyond the root, on the side where the bracket is wider, so that both ends close in.
            let aimed = if high.0 - root > root - low.0 { root + 0.4 * TOLERANCE } else { root - 0.4 * TOLERANCE };
            let margin = 0.02 * (high.0 - low.0);
            // Now and then the middle, in case that costs do not fall as evenly as that.
            let x = if aimed.is_finite() && looks % 4 != 0 {
                aimed.clamp(low.0 + margin, high.0 - margin)
            } else {
                0.5 * (low.0 + high.0)
            };
            let here = look(x)?;
            if here.fits() { high = (x, here.excess) } else { low = (x, here.excess) }
        }
        Ok(Some(high.0))
    }
}

/// What is seen of one event.
#[derive(Clone, Copy)]
struct Look {
    /// ln of what the event has over what it may have.
    excess: f64,
    /// Whether the bounds tell that it fits, or that it does not.
    clear: bool,
}

impl Look {
    fn fits(self) -> bool {
        self.excess <= 0.0
    }
}
