//! How much noise the steps of a plan need, by the accountants of `quell-privacy`.

use quell_privacy::{
    Error as PrivacyError, Event, Neighbors,
    accounting::{Calibration, Conversion, Renyi, Target, closed},
    mechanism::{Clipping, Descent, Sampling},
    units::{ClipNorm, Delta, Epsilon, NoiseMultiplier, SamplingRate},
};

use super::{Privacy, Problem};
use crate::Error;

/// From this number of sampled steps on, Rényi divergences replace privacy loss distributions, which take long.
const MANY_STEPS: u64 = 1_000_000;

/// The noise multiplier of T steps on all records, rounded up.
///
/// # Theorem
/// T Gaussian releases of multiplier √T z₁ are one of multiplier z₁.
pub(super) fn of_full_batches(one_release: f64, steps: u64) -> Result<NoiseMultiplier, Error> {
    Ok(NoiseMultiplier::new(one_release * (steps as f64).sqrt() * (1.0 + 8.0 * f64::EPSILON))?)
}

/// The noise multiplier of T steps on Poisson samples, rounded up.
pub(super) fn of_samples(privacy: Privacy, rate: SamplingRate, steps: u64) -> Result<NoiseMultiplier, Error> {
    least(privacy, steps, |multiplier| Ok(Event::dp_sgd(multiplier, rate, steps)))
}

/// The noise multiplier of T releases on all records, beside T on samples with smaller multipliers.
///
/// A release on a sample has the multiplier of [`of_correction`].
pub(super) fn of_references(
    privacy: Privacy,
    rate: SamplingRate,
    steps: u64,
) -> Result<NoiseMultiplier, Error> {
    least(privacy, steps, |multiplier| {
        let correction = of_correction(multiplier.get(), rate.get())?;
        Ok(Event::Composed(vec![
            Event::gaussian(multiplier).repeated(steps),
            Event::dp_sgd(correction, rate, steps),
        ]))
    })
}

/// The noise multiplier of a correction on a sample, given that of a reference gradient on all records.
///
/// A correction is twice as long as a gradient. Where sampling amplifies fully, this ratio makes the variance of
/// both least. A multiplier much below one is not amplified, so it stays above 0.8.
pub(super) fn of_correction(reference: f64, rate: f64) -> Result<NoiseMultiplier, PrivacyError> {
    NoiseMultiplier::new((reference * rate * std::f64::consts::FRAC_1_SQRT_2).max(0.8))
}

/// The least multiplier at which an event meets the guarantee.
fn least(
    privacy: Privacy,
    steps: u64,
    event: impl Fn(NoiseMultiplier) -> Result<Event, PrivacyError>,
) -> Result<NoiseMultiplier, Error> {
    let Privacy { epsilon, delta, neighbors } = privacy;
    if steps < MANY_STEPS {
        let calibration = Calibration::new(Target::EpsilonDelta { epsilon, delta }, neighbors);
        let parameter = quell_privacy::accounting::Parameter {
            name: "noise multiplier",
            costs: false,
            whole: false,
            least: 1e-3,
            largest: 1e9,
            range: "[1e-3, 1e9]",
        };
        let found = calibration.value(&parameter, 1.0, |z| event(NoiseMultiplier::new(z)?))?;
        return Ok(NoiseMultiplier::new(found)?);
    }
    let fits = |ln: f64| -> Result<bool, Error> {
        let renyi = Renyi::for_delta(&event(NoiseMultiplier::new(ln.exp())?)?, neighbors, delta)?;
        Ok(renyi.epsilon(delta, Conversion::Tight).upper <= epsilon.get())
    };
    // Each value that is returned was found to fit.
    let (mut low, mut high) = (1e-3_f64.ln(), 1e9_f64.ln());
    if !fits(high)? {
        return Err(PrivacyError::Unreachable { what: "noise multiplier", range: "[1e-3, 1e9]" }.into());
    }
    while high - low > 1e-4 {
        let middle = 0.5 * (low + high);
        if fits(middle)? { high = middle } else { low = middle }
    }
    Ok(NoiseMultiplier::new(high.exp())?)
}

/// The multiplier of the noise that a step of [`Descent`] draws: larger than the ideal, for its rounding.
///
/// `None` if the noise does not fit the grid of the mechanism.
pub(super) fn drawn(problem: &Problem, multiplier: NoiseMultiplier) -> Option<f64> {
    let descent = Descent {
        sampling: Sampling::Full,
        clipping: Clipping::Flat { norm: ClipNorm::new(1.0).ok()? },
        noise_multiplier: multiplier,
        dimension: problem.dimension as usize,
    };
    descent.inflation().map(|inflation| multiplier.get() * inflation)
}

/// About the multiplier of sampled steps that matches one release: an estimate, for choices only.
///
/// By the central limit theorem, 1/z₁² = q²T(e^(1/z²) - 1). Two percent are added, and eight more where Rényi
/// divergences are used.
pub(super) fn estimate(one_release: f64, rate: f64, steps: u64) -> f64 {
    let share = (rate * one_release).powi(2) * steps as f64;
    let margin = if steps < MANY_STEPS { 1.02 } else { 1.1 };
    margin / share.recip().ln_1p().sqrt()
}

/// The noise of DP-GD on the mean gradient, by two accountings.
///
/// DP-GD averages gradients that are clipped to length C over n records, adds Gaussian noise of standard deviation
/// λ, and releases all T iterates. A record is replaced, so the mean moves by at most 2C/n.
///
/// ```
/// use quell::learner::convex::DpGdNoise;
/// use quell_privacy::units::{ClipNorm, Delta, Epsilon};
/// let (epsilon, delta) = (Epsilon::new(1.0)?, Delta::new(1e-5)?);
/// let noise = DpGdNoise::new(1000, 100, ClipNorm::new(1.0)?, epsilon, delta)?;
/// assert!(noise.basic > 1.15 && noise.basic < 1.16);
/// assert!(noise.tight < 0.08);
/// # Ok::<(), quell::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct DpGdNoise {
    /// λ by basic composition: (2CT/(εn)) √(2 ln(2T/δ)).
    pub basic: f64,
    /// λ by the exact profile of T Gaussian releases.
    pub tight: f64,
}

impl DpGdNoise {
    /// Computes both.
    ///
    /// # Theorem
    /// Basic composition: Claim 2.3 of Brown's lecture on DP gradient descent, for ε ≤ 1 and δ ≤ 1/2. Tight: T
    /// Gaussian releases are one with noise √T times smaller, whose profile is known exactly.
    pub fn new(
        records: u64,
        steps: u64,
        clip_norm: ClipNorm,
        epsilon: Epsilon,
        delta: Delta,
    ) -> Result<Self, Error> {
        for (what, count) in [("records", records), ("steps", steps)] {
            if count == 0 {
                return Err(Error::OutOfRange { what, value: 0.0, range: "[1, 2^53]" });
            }
        }
        let contribution = clip_norm.get() / records as f64;
        let one_release = Privacy { epsilon, delta, neighbors: Neighbors::Replace }.one_release()?;
        Ok(Self {
            basic: 2.0 * contribution * closed::dp_gd_sigma(epsilon, delta, steps)?.get(),
            tight: contribution * of_full_batches(one_release, steps)?.get(),
        })
    }
}
