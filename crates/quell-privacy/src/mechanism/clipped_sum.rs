//! The step of DP-SGD: draw a batch, clip, sum, add Gaussian noise.

use super::{
    Clipping, Contributions, Mechanism, Sampling, Sealed, Step,
    sampling::tagged,
    summation::{COINS, Summation},
};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    number::brief,
    units::{ClipNorm, NoiseMultiplier},
};

/// The sum over a batch of clipped vectors, plus Gaussian noise.
///
/// Batch, clipping, noise and cost all come from this one value, so they cannot disagree. The noise is that of the ideal mechanism, times
/// [`ClippedSum::inflation`].
#[derive(Clone, Debug, PartialEq)]
pub struct ClippedSum {
    /// Who takes part.
    pub sampling: Sampling,
    /// How long a vector may be.
    pub clipping: Clipping,
    /// Standard deviation of the noise over that length.
    pub noise_multiplier: NoiseMultiplier,
    /// Length of the vectors, in numbers.
    pub dimension: usize,
}

impl ClippedSum {
    fn summation(&self) -> Summation<'_> {
        Summation { clipping: &self.clipping, noise_multiplier: self.noise_multiplier, dimension: self.dimension }
    }

    /// Standard deviation of the noise that is drawn over that of the ideal mechanism, which makes up for floating point; none if the vector is too
    /// long for the grid or adaptive clipping leaves no noise for the sum.
    ///
    /// # Theorem
    /// (THEORY, Steps) Less than a thousandth more than one, for a million numbers and a noise multiplier up to 10.
    #[must_use]
    pub fn inflation(&self) -> Option<f64> {
        self.summation().inflation()
    }
}

impl Sealed for ClippedSum {}

impl Mechanism for ClippedSum {
    /// # Theorem
    /// (THEORY, Steps) A Gaussian release on the batch, whatever the clipping: each record contributes a vector of length at most 1/z, in units of the
    /// noise, the noisy count of adaptive clipping included [ATMR21, Theorem 1].
    fn event(&self, neighbors: Neighbors) -> Event {
        match self.check(neighbors) {
            Ok(()) => self.sampling.event(self.summation().event()),
            Err(_) => Event::NonPrivate,
        }
    }

    fn check(&self, neighbors: Neighbors) -> Result<(), Error> {
        self.sampling.check(neighbors)?;
        self.summation().check()
    }

    fn distance(&self) -> f64 {
        self.summation().distance()
    }
}

impl std::fmt::Display for ClippedSum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { sampling, clipping, noise_multiplier, dimension } = self;
        let noise = brief(noise_multiplier.get());
        write!(f, "sum of vectors of {dimension} numbers {clipping} {sampling} with Gaussian noise of {noise} times that")
    }
}

impl Paid<ClippedSum> {
    /// The same with another clip norm, which may depend on everything released so far: noise is relative to it, so the cost stays. Parts that are clipped apart
    /// keep their proportions.
    pub fn with_clip_norm(mut self, norm: ClipNorm) -> Self {
        self.mechanism.clipping = self.mechanism.clipping.with_norm(norm);
        self
    }

    /// The batch and the sum are born and die in here; only what is noisy comes back. An empty batch is a batch, and a vector that is not finite
    /// adds nothing. Where batches have a fixed size, see that there are as many records as are paid for before they are: here a missing one adds nothing and one too many is never drawn.
    pub fn run(mut self, records: usize, contributions: &mut impl Contributions) -> Result<Step, Error> {
        let step = self.mechanism.clone();
        step.sampling.check(self.neighbors)?;
        step.summation().run(
            || self.key(),
            |key| {
                let mut coins = key.stream(COINS);
                let batch = step.sampling.draw(records, &mut coins);
                tagged(batch, &mut coins)
            },
            contributions,
        )
    }
}
