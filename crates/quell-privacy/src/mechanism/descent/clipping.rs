//! Clipping of vectors: the settings, and the scales that a learner asks for.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicI64, Ordering},
};

use serde::{Deserialize, Serialize};

use crate::{
    Error,
    number::format_brief,
    units::{BatchSize, ClipNorm, LearningRate, NoiseMultiplier, Probability, Scale, Stability},
};

/// How a record's vector is clipped.
///
/// No event depends on the clip norm: noise is relative to [`Clipping::norm`].
///
/// ```
/// use quell_privacy::{mechanism::Clipping, units::ClipNorm};
/// let norms = vec![ClipNorm::new(3.0)?, ClipNorm::new(4.0)?];
/// let parts = Clipping::PerPart { parts: vec![100, 10], norms };
/// assert!(parts.norm() >= 5.0 && parts.norm() < 5.0 + 1e-12);
/// let text = r#"{"per_part":{"parts":[100,10],"norms":[3.0,4.0]}}"#;
/// assert_eq!(serde_json::from_str::<Clipping>(text).unwrap(), parts);
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Clipping {
    /// Shortens a longer vector to the norm.
    Flat {
        /// The clip norm.
        norm: ClipNorm,
    },
    /// Shortens consecutive parts of the vector, such as layers, each to its own norm.
    PerPart {
        /// Lengths of the parts, in coordinates; together they make up the vector.
        parts: Vec<usize>,
        /// The clip norm of each part.
        norms: Vec<ClipNorm>,
    },
    /// Scales every vector to nearly the same length: times norm/(length + stability). [BWZK23]
    Automatic {
        /// The clip norm.
        norm: ClipNorm,
        /// Vectors much shorter than this stay short.
        stability: Stability,
    },
    /// Flat clipping with a norm that follows a quantile of the lengths. [ATMR21]
    ///
    /// A noisy count of the lengths within the norm is released with each sum. Slightly more noise on the sum
    /// pays for it.
    Adaptive {
        /// The initial clip norm.
        norm: ClipNorm,
        /// The target share of vectors that are no longer than the norm.
        quantile: Probability,
        /// The learning rate of the norm.
        learning_rate: LearningRate,
        /// Standard deviation of the noise on the count, in records.
        ///
        /// It must be more than half the noise multiplier; a twentieth of a batch is usual.
        count_noise: Scale,
        /// The divisor of the count: the public or expected batch size.
        expected_batch: BatchSize,
    },
}

impl Clipping {
    /// The largest length of a clipped vector, rounded up.
    #[must_use]
    pub fn norm(&self) -> f64 {
        match self {
            Self::Flat { norm } | Self::Automatic { norm, .. } | Self::Adaptive { norm, .. } => norm.get(),
            Self::PerPart { norms, .. } => {
                let squares = norms.iter().map(|norm| norm.get() * norm.get()).sum::<f64>();
                squares.sqrt() * (1.0 + (norms.len() as f64 + 4.0) * f64::EPSILON)
            }
        }
    }

    /// Replaces the norm; parts keep their proportions.
    pub(super) fn with_norm(mut self, new: ClipNorm) -> Self {
        let factor = new.get() / self.norm();
        match &mut self {
            Self::Flat { norm } | Self::Automatic { norm, .. } | Self::Adaptive { norm, .. } => *norm = new,
            Self::PerPart { norms, .. } => {
                for norm in norms {
                    // In range, so that there is no error.
                    *norm = ClipNorm::new((norm.get() * factor).clamp(1e-30, 1e30)).unwrap_or(*norm);
                }
            }
        }
        self
    }

    /// Checks the settings for vectors of this dimension.
    pub(super) fn check(&self, dimension: usize) -> Result<(), Error> {
        let Self::PerPart { parts, norms } = self else { return Ok(()) };
        if parts.is_empty() || parts.len() != norms.len() {
            return Err(Error::OutOfRange {
                what: "number of norms",
                value: norms.len() as f64,
                range: "[n, n] for n parts",
            });
        }
        // A sum that overflows cannot equal the dimension.
        let numbers = parts.iter().try_fold(0_usize, |sum, part| sum.checked_add(*part));
        if numbers != Some(dimension) {
            let value = parts.iter().map(|part| *part as f64).sum();
            return Err(Error::OutOfRange {
                what: "sum of the lengths of the parts",
                value,
                range: "[d, d] for vectors of dimension d",
            });
        }
        Ok(())
    }

    /// The noise multipliers of the sum and, with adaptive clipping, of the count.
    ///
    /// They are relative to the norm and to half a record. Both releases together cost as one Gaussian of
    /// `noise_multiplier`. `None` if the count alone costs more.
    ///
    /// # Theorem
    /// (THEORY, Steps) [ATMR21, Theorem 1] z_Δ = (z⁻² - (2σ_b)⁻²)^(-1/2), rounded up.
    pub(super) fn multipliers(&self, noise_multiplier: NoiseMultiplier) -> Option<(f64, Option<f64>)> {
        let z = noise_multiplier.get();
        let Self::Adaptive { count_noise, .. } = self else { return Some((z, None)) };
        let count = 2.0 * count_noise.get();
        // z⁻² - c⁻² = (1 - (z/c)²)/z², where the difference must not be lost in rounding.
        let remaining = 1.0 - (z / count).powi(2);
        (remaining > 1e-6).then(|| (z / (remaining * (1.0 - 1e-9)).sqrt(), Some(count)))
    }

    /// Computes the share of vectors within the norm, and the next norm.
    ///
    /// The noisy count is of b - 1/2, summed over the batch.
    ///
    /// # Theorem
    /// [ATMR21, Algorithm 1] C·e^(-η(b̃ - γ)), a geometric step towards the quantile γ.
    pub(super) fn adapt(&self, count: f64) -> Option<(f64, ClipNorm)> {
        let Self::Adaptive { norm, quantile, learning_rate, expected_batch, .. } = self else { return None };
        let share = count / expected_batch.get() + 0.5;
        let next = norm.get() * (-learning_rate.get() * (share - quantile.get())).exp();
        // In range, so that there is no error.
        Some((share, ClipNorm::new(next.clamp(1e-30, 1e30)).unwrap_or(*norm)))
    }

    /// Makes the clipper for vectors of a dimension.
    pub(super) fn clipper(&self, dimension: usize) -> Clipper {
        match self {
            Self::Flat { norm } => Clipper::new(vec![dimension], Rule::Shorten(vec![*norm])),
            Self::PerPart { parts, norms } => Clipper::new(parts.clone(), Rule::Shorten(norms.clone())),
            Self::Automatic { norm, stability } => {
                Clipper::new(vec![dimension], Rule::Normalize { norm: *norm, stability: *stability })
            }
            Self::Adaptive { norm, .. } => {
                Clipper::new(vec![dimension], Rule::ShortenAndCount { norm: *norm, count: AtomicI64::new(0) })
            }
        }
    }
}

impl std::fmt::Display for Clipping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let norm = format_brief(self.norm());
        match self {
            Self::Flat { .. } => write!(f, "clipped to norm {norm}"),
            Self::PerPart { parts, .. } => write!(f, "clipped in {} parts to total norm {norm}", parts.len()),
            Self::Automatic { stability, .. } => {
                write!(f, "normalised to norm {norm} (stability {})", format_brief(stability.get()))
            }
            Self::Adaptive { quantile, count_noise, .. } => {
                let (quantile, noise) = (format_brief(quantile.get()), format_brief(count_noise.get()));
                write!(
                    f,
                    "clipped adaptively to the quantile {quantile} of norms (first norm {norm}, count noise {noise})"
                )
            }
        }
    }
}

/// Computes the scales by which a learner multiplies vectors before it adds them.
///
/// Only a mechanism creates this value.
///
/// # Contract
/// A learner asks once for every record that is added, from any number of threads.
pub struct Clipper {
    parts: Vec<usize>,
    rule: Rule,
    /// The squared lengths that were reported, recorded only for [`laws`](crate::laws).
    seen: Option<Mutex<Vec<Vec<f64>>>>,
}

enum Rule {
    /// min(1, C/‖v‖) for each part.
    Shorten(Vec<ClipNorm>),
    /// C/(‖v‖ + γ).
    Normalize { norm: ClipNorm, stability: Stability },
    /// min(1, C/‖v‖), and a count of the vectors with ‖v‖ ≤ C.
    ///
    /// The count is Σ (b - 1/2) in units of 2⁻²⁵, where b says whether ‖v‖ ≤ C.
    ShortenAndCount { norm: ClipNorm, count: AtomicI64 },
    /// The same scale for all lengths.
    Fixed(f32),
}

impl Clipper {
    fn new(parts: Vec<usize>, rule: Rule) -> Self {
        Self { parts, rule, seen: None }
    }

    /// Gives every record the same scale, and records the reported lengths.
    pub(crate) fn fixed(parts: Vec<usize>, scale: f32) -> Self {
        Self { seen: Some(Mutex::default()), ..Self::new(parts, Rule::Fixed(scale)) }
    }

    /// Shortens each part to the same norm, and records the reported lengths.
    pub(crate) fn recording(parts: Vec<usize>, norm: ClipNorm) -> Self {
        let norms = vec![norm; parts.len()];
        Self { seen: Some(Mutex::default()), ..Self::new(parts, Rule::Shorten(norms)) }
    }

    /// The recorded squared lengths, one entry for each call of [`Clipper::scales`].
    pub(crate) fn seen(self) -> Vec<Vec<f64>> {
        self.seen
            .map(|lengths| lengths.into_inner().unwrap_or_else(PoisonError::into_inner))
            .unwrap_or_default()
    }

    /// Lengths, in coordinates, of the consecutive parts that are clipped separately.
    ///
    /// There is one part, the whole vector, unless clipping is by parts.
    #[must_use]
    pub fn parts(&self) -> &[usize] {
        &self.parts
    }

    /// Computes the scale of each part of one record's vector from the squared lengths.
    ///
    /// A scale is zero where a length is not finite, because an error would reveal the record. All scales are
    /// zero if the number of lengths differs from the number of parts.
    #[inline]
    pub fn scales(&self, squared: &[f64], scales: &mut [f32]) {
        scales.fill(0.0);
        if let Some(lengths) = &self.seen {
            lengths.lock().unwrap_or_else(PoisonError::into_inner).push(squared.to_vec());
        }
        if squared.len() != self.parts.len() || scales.len() != self.parts.len() {
            return;
        }
        match &self.rule {
            Rule::Shorten(norms) => {
                for ((scale, squared), norm) in scales.iter_mut().zip(squared).zip(norms) {
                    *scale = shorten(length(*squared), *norm);
                }
            }
            Rule::Normalize { norm, stability } => {
                for (scale, squared) in scales.iter_mut().zip(squared) {
                    *scale = length(*squared)
                        .map_or(0.0, |length| rounded_down(norm.get() / (length + stability.get())));
                }
            }
            Rule::ShortenAndCount { norm, count } => {
                for (scale, squared) in scales.iter_mut().zip(squared) {
                    let length = length(*squared);
                    *scale = shorten(length, *norm);
                    count.fetch_add(2 * within(length, *norm) - BIT, Ordering::Relaxed);
                }
            }
            Rule::Fixed(scale) => scales.fill(*scale),
        }
    }

    /// Σ (b - 1/2) over all records, if clipping is adaptive.
    pub(super) fn count(&self) -> Option<f64> {
        let Rule::ShortenAndCount { count, .. } = &self.rule else { return None };
        // Exact below 2²⁸ records, and beyond that to a part in 2⁵³.
        Some(count.load(Ordering::Relaxed) as f64 / (2 * BIT) as f64)
    }
}

/// The length, or `None` if it is not finite.
fn length(squared: f64) -> Option<f64> {
    // Written so that NaN is rejected.
    (squared >= 0.0 && squared.is_finite()).then(|| squared.sqrt())
}

/// min(1, C/‖v‖), rounded down.
fn shorten(length: Option<f64>, norm: ClipNorm) -> f32 {
    match length {
        None => 0.0,
        Some(length) if length <= norm.get() => 1.0,
        Some(length) => rounded_down(norm.get() / length),
    }
}

/// Rounds a scale down to single precision; a subnormal result becomes zero.
///
/// A subnormal number would have an unbounded relative rounding error.
fn rounded_down(scale: f64) -> f32 {
    // One part in 2²³ is more than the cast can add.
    let cast = (scale.min(1e38) * (1.0 - 1.0 / f64::from(1 << 23))) as f32;
    if cast.is_normal() { cast } else { 0.0 }
}

/// One record, in the units of the count.
const BIT: i64 = 1 << 24;

/// The part of a record that counts as no longer than C.
///
/// The unit is 1/[`BIT`]. The part is the whole record up to 15/16 C, nothing from 17/16 C on, and linear in
/// between. So the last digits of a length, which may depend on the block, move the count by their own size
/// and not by a whole record.
fn within(length: Option<f64>, norm: ClipNorm) -> i64 {
    let share = |length: f64| (8.5 - 8.0 * (length / norm.get())).clamp(0.0, 1.0);
    (length.map_or(0.0, share) * BIT as f64).round() as i64
}

/// Bound on the change of the other records' counts between neighbours, over a half.
///
/// It is the slope of `within` times the length, 8 · 17/16, times the drift of `records` lengths, and one
/// unit of rounding for each.
pub(super) fn count_error(records: f64, drift: f64) -> f64 {
    2.0 * records * (8.5 * drift * (1.0 + 1e-3) + 1.0 / BIT as f64)
}
