//! Calibration: the least noise, the most steps or the largest rate that meets a target.
//!
//! Every answer is a value whose upper bound was *computed* to meet the target; its distance from the best
//! value is a stated tolerance. If a bound is too wide to decide whether a value fits, the search also tries
//! values beyond it.

use super::{Bound, Pld, TradeOff, best_by};
use crate::{
    Error, Event, Neighbors,
    units::{Delta, Epsilon, NoiseMultiplier, Probability, SamplingRate},
};

/// The limit that a release must not exceed.
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

/// A calibration: a target, the neighbouring relation, and the accountant that checks it.
///
/// ```
/// use quell_privacy::{Event, Neighbors, accounting::{Calibration, Target}};
/// use quell_privacy::units::{Delta, Epsilon, SamplingRate};
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

/// The parameter of an event that is searched for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name, for messages.
    pub name: &'static str,
    /// Whether a larger value costs more.
    ///
    /// If so, the largest value that fits is found, else the least.
    pub costs: bool,
    /// Whether it is an integer.
    pub whole: bool,
    /// The least value that is tried, above zero.
    pub least: f64,
    /// The largest value that is tried.
    pub largest: f64,
    /// The range of values, for messages.
    pub range: &'static str,
}

impl Parameter {
    const NOISE_MULTIPLIER: Self = Self {
        name: "noise multiplier",
        costs: false,
        whole: false,
        least: 1e-6,
        largest: 1e12,
        range: "[1e-6, 1e12]",
    };
    const SAMPLING_RATE: Self = Self {
        name: "sampling rate",
        costs: true,
        whole: false,
        least: 1e-15,
        largest: 1.0,
        range: "[1e-15, 1]",
    };
    const STEPS: Self = Self {
        name: "number of steps",
        costs: true,
        whole: true,
        least: 1.0,
        largest: LARGEST_WHOLE,
        range: "[1, 2^53]",
    };

    /// The value at a position of the search, along which costs fall.
    ///
    /// An integer is rounded to the side on which it costs less.
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

/// Integers up to this are exact.
const LARGEST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Answers are within this fraction of the best one (beyond the accountant's own width).
const TOLERANCE: f64 = 2e-4;

/// The largest ε of a target; a larger one promises nothing.
const LARGEST_EPSILON: f64 = 1e4;

/// How often a search continues beyond an undecided value.
///
/// A value is undecided if the bounds are too wide to tell whether it fits.
const PATIENCE: u32 = 3;

impl Calibration {
    /// Uses every applicable accountant for (ε, δ), and privacy loss distributions for other targets.
    #[must_use]
    pub fn new(target: Target, neighbors: Neighbors) -> Self {
        Self { target, neighbors, pld: Pld { relative: 4e-4, absolute: 1e-5, ..Pld::default() } }
    }

    /// The least noise multiplier, rounded up.
    pub fn least_noise(&self, event: impl Fn(NoiseMultiplier) -> Event) -> Result<NoiseMultiplier, Error> {
        NoiseMultiplier::new(
            self.value(&Parameter::NOISE_MULTIPLIER, 1.0, |z| Ok(event(NoiseMultiplier::new(z)?)))?,
        )
    }

    /// The largest sampling rate, rounded down.
    pub fn largest_rate(&self, event: impl Fn(SamplingRate) -> Event) -> Result<SamplingRate, Error> {
        SamplingRate::new(self.value(&Parameter::SAMPLING_RATE, 0.01, |q| Ok(event(SamplingRate::new(q)?)))?)
    }

    /// The largest number of steps.
    pub fn most_steps(&self, event: impl Fn(u64) -> Event) -> Result<u64, Error> {
        Ok(self.value(&Parameter::STEPS, 100.0, |steps| Ok(event(steps as u64)))? as u64)
    }

    /// The value of a parameter that just meets the target; the search begins at `start`.
    pub fn value(
        &self,
        parameter: &Parameter,
        start: f64,
        event: impl Fn(f64) -> Result<Event, Error>,
    ) -> Result<f64, Error> {
        if let Target::EpsilonDelta { epsilon, .. } = self.target
            && epsilon.get() > LARGEST_EPSILON
        {
            return Err(Error::OutOfRange {
                what: "epsilon",
                value: epsilon.get(),
                range: "[0, 10000] as a target",
            });
        }
        let (first, last) = (parameter.place(parameter.least), parameter.place(parameter.largest));
        let range = (first.min(last), first.max(last));
        let start = parameter.place(start).clamp(range.0, range.1);
        let x = self.search(start, range, |x| event(parameter.at(x)))?;
        x.map(|x| parameter.at(x)).ok_or(Error::Unreachable { what: parameter.name, range: parameter.range })
    }

    /// The cost of an event, in the units of the target.
    pub fn judge(&self, event: &Event) -> Result<Bound, Error> {
        let trade_off = || TradeOff::new(&self.pld, event, self.neighbors);
        match self.target {
            Target::EpsilonDelta { delta, .. } => {
                Ok(best_by(&self.pld, event, self.neighbors, delta)?.1.epsilon)
            }
            Target::Gaussian { slack, .. } => trade_off()?.gaussian(slack),
            Target::Power { false_positive_rate, .. } => Ok(trade_off()?.power(false_positive_rate)),
        }
    }

    fn evaluate(&self, event: &Event) -> Result<Evaluation, Error> {
        let (bound, limit) = match self.target {
            // At ε = 0, δ measures the distance from the target.
            Target::EpsilonDelta { epsilon, delta } if epsilon.get() == 0.0 => {
                (self.pld.delta(event, self.neighbors, 0.0)?, delta.get())
            }
            Target::EpsilonDelta { epsilon, .. } => (self.judge(event)?, epsilon.get()),
            Target::Gaussian { mu, .. } => (self.judge(event)?, mu),
            Target::Power { true_positive_rate, .. } => (self.judge(event)?, true_positive_rate.get()),
        };
        // Written so that NaN does not fit.
        let fits = bound.upper <= limit;
        let excess = (bound.upper / limit).ln();
        Ok(Evaluation {
            excess: if fits { excess.min(0.0) } else { excess.max(f64::MIN_POSITIVE) },
            clear: fits || bound.lower > limit,
        })
    }

    /// The least x in the range whose event fits, to the tolerance.
    ///
    /// Costs fall as x grows.
    ///
    /// `None` if no event is found to fit.
    fn search(
        &self,
        start: f64,
        range: (f64, f64),
        event: impl Fn(f64) -> Result<Event, Error>,
    ) -> Result<Option<f64>, Error> {
        let evaluate = |x: f64| self.evaluate(&event(x)?);
        let (mut low, mut high);
        let mut stride = 0.5;
        let first = evaluate(start)?;
        if first.fits() {
            high = (start, first.excess);
            low = high;
            let (mut x, mut unclear) = (start, 0);
            while x > range.0 {
                x = (x - stride).max(range.0);
                let here = evaluate(x)?;
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
                let here = evaluate(x)?;
                if here.fits() {
                    high = (x, here.excess);
                    break;
                }
                low = (x, here.excess);
                stride *= 2.0;
            }
        }
        let mut evaluations = 0;
        while high.0 - low.0 > TOLERANCE {
            evaluations += 1;
            // A value far from the target gives little information about the target's position.
            let (over, under) = (low.1.min(3.0), high.1.max(-3.0));
            let root = low.0 + (high.0 - low.0) * over / (over - under);
            // Aim just beyond the root, on the side where the bracket is wider, so that both ends close in.
            let aimed =
                if high.0 - root > root - low.0 { root + 0.4 * TOLERANCE } else { root - 0.4 * TOLERANCE };
            let margin = 0.02 * (high.0 - low.0);
            // Sometimes take the middle, in case costs do not fall evenly.
            let x = if aimed.is_finite() && evaluations % 4 != 0 {
                aimed.clamp(low.0 + margin, high.0 - margin)
            } else {
                0.5 * (low.0 + high.0)
            };
            let here = evaluate(x)?;
            if here.fits() { high = (x, here.excess) } else { low = (x, here.excess) }
        }
        Ok(Some(high.0))
    }
}

/// The evaluation of one event against the target.
#[derive(Clone, Copy)]
struct Evaluation {
    /// ln of the event's cost over the target.
    excess: f64,
    /// Whether the bounds decide that the event fits, or that it does not.
    clear: bool,
}

impl Evaluation {
    fn fits(self) -> bool {
        self.excess <= 0.0
    }
}
