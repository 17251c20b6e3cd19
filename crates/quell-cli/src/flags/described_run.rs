//! A fully specified run of noisy steps, and its event.

use std::fmt;

use anyhow::Result;
use clap::ValueEnum;
use quell_privacy::{
    Event,
    units::{NoiseMultiplier, SamplingRate},
};

use quell_privacy::number::format_exact;

/// The distribution of the noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Noise {
    #[default]
    Gaussian,
    Laplace,
}

/// Values for flags that are not given.
pub(crate) struct Defaults {
    pub(crate) noise_multiplier: f64,
    pub(crate) sampling_rate: f64,
    pub(crate) steps: u64,
}

/// How a batch is sampled, with its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Batch {
    Poisson(SamplingRate),
    Fixed { batch: u64, records: u64, replaced: bool },
}

impl Batch {
    /// Every record in every step.
    pub(crate) fn full() -> Result<Self> {
        Ok(Self::Poisson(SamplingRate::new(1.0)?))
    }
}

/// A fully specified run of noisy steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DescribedRun {
    pub(crate) noise: Noise,
    pub(crate) multiplier: NoiseMultiplier,
    pub(crate) batch: Batch,
    pub(crate) steps: u64,
}

impl DescribedRun {
    /// The event of one step.
    pub(crate) fn step(&self) -> Event {
        let release = match self.noise {
            Noise::Gaussian => Event::gaussian(self.multiplier),
            Noise::Laplace => Event::laplace(self.multiplier),
        };
        match self.batch {
            Batch::Poisson(rate) if rate.get() == 1.0 => release,
            Batch::Poisson(rate) => release.poisson_sampled(rate),
            Batch::Fixed { batch, records, replaced: false } => {
                Event::SampledWithoutReplacement { batch, records, event: Box::new(release) }
            }
            Batch::Fixed { batch, records, replaced: true } => {
                Event::SampledWithReplacement { batch, records, event: Box::new(release) }
            }
        }
    }

    /// The event of all steps.
    pub(crate) fn event(&self) -> Event {
        if self.steps == 1 { self.step() } else { self.step().repeated(self.steps) }
    }
}

impl fmt::Display for DescribedRun {
    /// Describes one step.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noise = if self.noise == Noise::Gaussian { "Gaussian" } else { "Laplace" };
        write!(f, "{noise} noise multiplier {}", format_exact(self.multiplier.get()))?;
        match self.batch {
            Batch::Poisson(rate) if rate.get() == 1.0 => Ok(()),
            Batch::Poisson(rate) => write!(f, ", Poisson sampling rate {}", format_exact(rate.get())),
            Batch::Fixed { batch, records, replaced } => {
                write!(
                    f,
                    ", {batch} of {records} records with{} replacement",
                    if replaced { "" } else { "out" }
                )
            }
        }
    }
}
