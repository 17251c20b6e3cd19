//! What will be done, without gaps.

use quell_privacy::{
    Bound, Event, Neighbors,
    accounting::{Calibration, Pld, Target as Wanted},
    mechanism::{ClippedSum, Clipping, Epoch, Mechanism, Sampling},
    units::{BatchSize, ClipNorm, Delta, Epsilon, LearningRate, NoiseMultiplier, Probability, SamplingRate, Scale, Stability},
};

use super::{Augmentation, Clip, Recipe, Sampler};
use crate::{
    Error,
    average::Average,
    loss::Loss,
    network::Network,
    optimizer::Optimizer,
    price,
    schedule::{Schedule, Shape},
};

/// What is known about the data without looking at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Number of records (or users), if it is public.
    pub records: Option<u64>,
    /// Number of classes; none if numbers are predicted.
    pub classes: Option<usize>,
}

/// What the ledger is asked to pay for.
#[derive(Clone, Debug, PartialEq)]
pub enum Release {
    /// So many sums, each on a batch of its own.
    Sums(ClippedSum, u64),
    /// So many epochs, in each of which every record takes part once.
    Epochs(Epoch, u64),
}

impl Release {
    /// All of it, as an accountant sees it.
    #[must_use]
    pub fn event(&self, neighbors: Neighbors) -> Event {
        match self {
            Self::Sums(sum, steps) => sum.event(neighbors).repeated(*steps),
            Self::Epochs(epoch, epochs) => epoch.event(neighbors).repeated(*epochs),
        }
    }

    /// How far all of it is, in total variation, from what the event describes.
    #[must_use]
    pub fn distance(&self) -> f64 {
        match self {
            Self::Sums(sum, steps) => sum.distance() * *steps as f64,
            Self::Epochs(epoch, epochs) => epoch.distance() * *epochs as f64,
        }
    }

    /// What all of it costs at δ, the distance included, as an interval.
    pub fn epsilon(&self, neighbors: Neighbors, delta: Delta) -> Result<Bound, Error> {
        price::epsilon(&self.ideal(neighbors), self.distance(), delta)
    }

    /// The upper end of that alone.
    pub(crate) fn upper(&self, neighbors: Neighbors, delta: Delta) -> Result<f64, Error> {
        price::upper(&self.ideal(neighbors), self.distance(), delta)
    }

    /// What the event costs at any δ.
    fn ideal(&self, neighbors: Neighbors) -> impl Fn(Delta) -> Result<Bound, Error> {
        let event = self.event(neighbors);
        move |delta| Ok(Pld::default().epsilon(&event, neighbors, delta)?)
    }

    /// Noise over the clip norm.
    #[must_use]
    pub fn noise_multiplier(&self) -> f64 {
        match self {
            Self::Sums(ClippedSum { noise_multiplier, .. }, _) | Self::Epochs(Epoch { noise_multiplier, .. }, _) => {
                noise_multiplier.get()
            }
        }
    }

    /// How many runs of the mechanism are paid for.
    #[must_use]
    pub fn runs(&self) -> u64 {
        match self {
            Self::Sums(_, runs) | Self::Epochs(_, runs) => *runs,
        }
    }

    /// Number of steps of the optimizer.
    #[must_use]
    pub fn steps(&self) -> u64 {
        match self {
            Self::Sums(_, steps) => *steps,
            Self::Epochs(epoch, epochs) => epochs.saturating_mul(epoch.batches.into()),
        }
    }
}

/// Everything that is fixed before the first record is looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What is paid for.
    pub release: Release,
    /// When two datasets are neighbours.
    pub neighbors: Neighbors,
    /// δ at which it is judged.
    pub delta: Delta,
    /// What it costs, as an interval.
    pub epsilon: Bound,
    /// What a sum is divided by: a public number.
    pub expected_batch: f64,
    /// What is minimised.
    pub loss: Loss,
    /// How weights follow gradients.
    pub optimizer: Optimizer,
    /// How fast.
    pub schedule: Schedule,
    /// Which average of the iterates is the model.
    pub average: Average,
    /// Several versions of every image.
    pub augmentation: Option<Augmentation>,
    /// What first weights and other public chance follow from.
    pub seed: u64,
}

/// Most versions of an image.
const MOST_VERSIONS: usize = 1 << 12;

/// How often a record takes part if nobody says.
const EPOCHS: f64 = 20.0;

/// Part of the records in a batch if nobody says, and the least number of them.
const RATE: f64 = 0.02;
const SMALLEST_BATCH: f64 = 64.0;

/// δ if nobody says: a tenth of one over the number of records, rounded down to a power of ten. A δ of 1/n would allow to publish one record outright.
#[must_use]
pub fn default_delta(records: u64) -> f64 {
    let exponent = (10.0 * records.max(1) as f64).log10().ceil();
    10_f64.powf(-exponent.clamp(2.0, 300.0))
}

impl Recipe {
    /// Fills the gaps, for a network and by public facts. Nothing is paid yet.
    pub fn plan(&self, facts: &Facts, network: &Network) -> Result<Plan, Error> {
        let records = self.sampling.records.or(facts.records).filter(|records| *records > 0).ok_or(Error::Missing {
            what: "number of records",
            hint: "give a public number, it need not be exact; or ask for a noisy one with `quell query DATA count`",
        })?;
        let delta = Delta::new(self.privacy.delta.unwrap_or_else(|| default_delta(records)))?;
        let loss = self.loss(facts.classes);
        let optimizer = self.optimizer.unwrap_or(Optimizer::Momentum { momentum: 0.9, nesterov: false, weight_decay: 0.0 });
        let schedule = self.schedule.unwrap_or(Schedule { learning_rate: 0.5, warm_up: 0, shape: Shape::Constant });
        loss.check()?;
        optimizer.check()?;
        schedule.check()?;
        self.average.check()?;
        self.check_augmentation()?;
        let neighbors = self.privacy.neighbors;
        let (mut release, mut expected_batch) = self.release(records, delta, network, 0.0)?;
        let mut epsilon = release.epsilon(neighbors, delta)?;
        // Calibration is judged by a finer grid than a claim; what little is missing is asked for once more.
        for shave in [5e-4, 1e-3, 2e-3, 5e-3] {
            if self.privacy.epsilon.is_none_or(|wanted| epsilon.upper <= wanted) {
                break;
            }
            (release, expected_batch) = self.release(records, delta, network, shave)?;
            epsilon = release.epsilon(neighbors, delta)?;
        }
        if let Some(wanted) = self.privacy.epsilon.filter(|wanted| epsilon.upper > *wanted) {
            let found = format!("{wanted}, and these steps with this noise cost {}", epsilon.upper);
            return Err(Error::Setting {
                name: "epsilon",
                found,
                expected: "at least as much; leave out one of noise, steps and rate",
            });
        }
        let (average, augmentation, seed) = (self.average, self.augmentation, self.seed);
        Ok(Plan { release, neighbors, delta, epsilon, expected_batch, loss, optimizer, schedule, average, augmentation, seed })
    }

    /// What is minimised: cross-entropy for classes and half the square for numbers, unless something else is asked for.
    #[must_use]
    pub fn loss(&self, classes: Option<usize>) -> Loss {
        self.loss.unwrap_or(match classes {
            Some(_) => Loss::CrossEntropy { label_smoothing: 0.0 },
            None => Loss::Squared,
        })
    }

    fn check_augmentation(&self) -> Result<(), Error> {
        match self.augmentation {
            Some(Augmentation { versions, .. }) if !(1..=MOST_VERSIONS).contains(&versions) => {
                Err(Error::Setting { name: "versions", found: versions.to_string(), expected: "a number in [1, 4096]" })
            }
            _ => Ok(()),
        }
    }

    /// Rate, steps and noise; whichever is not given follows from the others.
    fn release(&self, records: u64, delta: Delta, network: &Network, shave: f64) -> Result<(Release, f64), Error> {
        let (neighbors, count) = (self.privacy.neighbors, records as f64);
        let rate = match self.sampling.by {
            Sampler::Full => Some(1.0),
            _ => self.sampling.rate.or(self.sampling.batch.map(|batch| (batch as f64 / count).min(1.0))),
        };
        let target = self.privacy.epsilon.map(|epsilon| Epsilon::new(epsilon * (1.0 - shave))).transpose()?;
        let target = target.map(|epsilon| Wanted::EpsilonDelta { epsilon, delta });
        let noise = self.privacy.noise_multiplier.map(NoiseMultiplier::new).transpose()?;
        let calibration = |wanted: Wanted| Calibration::new(wanted, neighbors);
        // Events do not depend on clipping.
        let event = |rate: f64, noise: NoiseMultiplier, steps: u64| {
            let (release, _) = self.assemble(records, rate, noise, steps, network)?;
            Ok::<_, Error>(release.event(neighbors))
        };
        let or_nothing = |event: Result<Event, Error>| event.unwrap_or(Event::NonPrivate);
        let rate = match (rate, target, noise, self.steps) {
            (Some(rate), ..) => rate,
            (None, Some(target), Some(noise), Some(steps)) => {
                calibration(target).largest_rate(|rate| or_nothing(event(rate.get(), noise, steps)))?.get()
            }
            _ => RATE.max(SMALLEST_BATCH / count).min(1.0),
        };
        let rate = SamplingRate::new(rate)?.get();
        let steps = match (self.steps, self.epochs, target, noise) {
            (Some(steps), ..) => steps,
            (None, Some(epochs), ..) if epochs > 0.0 && epochs / rate < 1e15 => (epochs / rate).round().max(1.0) as u64,
            (None, Some(epochs), ..) => {
                return Err(Error::Setting { name: "epochs", found: epochs.to_string(), expected: "a positive number" });
            }
            (None, None, Some(target), Some(noise)) => {
                calibration(target).most_steps(|steps| or_nothing(event(rate, noise, steps)))?
            }
            _ => (EPOCHS / rate).round() as u64,
        };
        if steps == 0 {
            return Err(Error::Setting { name: "steps", found: "0".into(), expected: "at least 1" });
        }
        let noise = match (noise, target) {
            (Some(noise), _) => noise,
            (None, Some(target)) => {
                // An error in the settings is said as such.
                event(rate, NoiseMultiplier::new(1.0)?, steps)?;
                calibration(target).least_noise(|noise| or_nothing(event(rate, noise, steps)))?
            }
            (None, None) => {
                return Err(Error::Missing {
                    what: "epsilon",
                    hint: "say what may be spent with --epsilon, or how much noise with --noise-multiplier",
                });
            }
        };
        self.assemble(records, rate, noise, steps, network)
    }

    /// The mechanism of these numbers.
    fn assemble(
        &self,
        records: u64,
        rate: f64,
        noise_multiplier: NoiseMultiplier,
        steps: u64,
        network: &Network,
    ) -> Result<(Release, f64), Error> {
        let dimension = network.parameters();
        let sampling = match self.sampling.by {
            Sampler::Poisson => Sampling::Poisson { rate: SamplingRate::new(rate)? },
            Sampler::Full => Sampling::Full,
            Sampler::WithoutReplacement => {
                Sampling::WithoutReplacement { size: (rate * records as f64).round().max(1.0) as u64, records }
            }
            Sampler::Shuffled => {
                let batches = (1.0 / rate).round().clamp(1.0, 1e9) as u32;
                let expected = records as f64 / f64::from(batches);
                let clipping = self.clipping.settings(network, noise_multiplier, expected)?;
                let epoch = Epoch { batches, clipping, noise_multiplier, dimension };
                epoch.check(self.privacy.neighbors)?;
                return Ok((Release::Epochs(epoch, steps.div_ceil(batches.into())), expected));
            }
        };
        let expected = match sampling {
            Sampling::WithoutReplacement { size, .. } => size as f64,
            _ => rate * records as f64,
        };
        let clipping = self.clipping.settings(network, noise_multiplier, expected)?;
        let sum = ClippedSum { sampling, clipping, noise_multiplier, dimension };
        sum.check(self.privacy.neighbors)?;
        Ok((Release::Sums(sum, steps), expected))
    }
}

impl Clip {
    /// As the trusted room wants it.
    fn settings(self, network: &Network, noise: NoiseMultiplier, expected_batch: f64) -> Result<Clipping, Error> {
        Ok(match self {
            Self::Flat { norm } => Clipping::Flat { norm: ClipNorm::new(norm)? },
            Self::PerLayer { norm } => {
                let parts = network.parts();
                let share = ClipNorm::new(norm / (parts.len().max(1) as f64).sqrt())?;
                Clipping::PerPart { norms: vec![share; parts.len()], parts }
            }
            Self::Automatic { norm, stability } => {
                Clipping::Automatic { norm: ClipNorm::new(norm)?, stability: Stability::new(stability)? }
            }
            Self::Adaptive { norm, quantile, learning_rate, count_noise } => Clipping::Adaptive {
                norm: ClipNorm::new(norm)?,
                quantile: Probability::new(quantile)?,
                learning_rate: LearningRate::new(learning_rate)?,
                // Not so little that the count alone would cost more than the step.
                count_noise: Scale::new(count_noise.unwrap_or_else(|| (expected_batch / 20.0).max(2.0 * noise.get())))?,
                expected_batch: BatchSize::new(expected_batch)?,
            },
        })
    }
}
