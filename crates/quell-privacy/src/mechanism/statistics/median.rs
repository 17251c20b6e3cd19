//! The median with data-dependent noise: small where many values are close to the median.

use super::Bounds;
use crate::{
    Error, Event, Neighbors,
    accounting::distance::excess,
    ledger::Paid,
    mechanism::{Mechanism, Release, Sealed, Sensitive, Within},
    noise::exact::{Ratio, discrete_laplace},
    number::format_brief,
    units::{Delta, Epsilon},
};

/// The median, released by smooth sensitivity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SmoothMedian {
    bounds: Bounds,
    epsilon: Epsilon,
    delta: Delta,
}

/// Values are mapped to a grid of 2²⁸ steps, called places, between the bounds.
const PLACES: i64 = 1 << 28;

/// Laplace noise of scale one is drawn in steps of 2⁻⁵⁶.
const FINE_BITS: u32 = 56;

/// Scales of the noise are multiples of 2⁻¹⁶ places.
const SCALE_BITS: u32 = 16;

/// Answers lie on a public grid with 2¹² steps per largest scale of the noise.
///
/// This grid is coarse enough to hide the steps of the noise, which depend on the data.
const COARSE: f64 = (1 << 12) as f64;

/// The smallest ε for which all products below fit into 127 bits.
const LEAST_EPSILON: f64 = 1e-4;

impl SmoothMedian {
    /// (ε, δ) for the median between these bounds.
    ///
    /// ε must be at least 1e-4. δ must be well above 1.2e-13 (1 + e^ε), which the finite precision of the
    /// noise takes from it.
    pub fn new(bounds: Bounds, epsilon: Epsilon, delta: Delta) -> Result<Self, Error> {
        let median = Self { bounds, epsilon, delta };
        let precise = median.exact_delta() >= 0.5 * delta.get();
        if epsilon.get() >= LEAST_EPSILON && delta.get() <= 0.5 && precise && median.smoothness() > 0.0 {
            return Ok(median);
        }
        let range = "[1e-4, inf), large enough for delta and not too large for it";
        Err(Error::OutOfRange { what: "epsilon", value: epsilon.get(), range })
    }

    /// δ that is left for the mechanism with real-valued noise.
    ///
    /// Rounding fine noise of scale s to the public grid g differs from rounding real-valued noise only
    /// within a fine step of a boundary: probability at most 2 · 2⁻⁵⁶ (s/g + 1). The discrete Laplace
    /// distribution is within 2⁻⁵⁶ of the rounded one. What this distance costs is taken from δ.
    fn exact_delta(&self) -> f64 {
        let distance = 2.0 * (COARSE + 2.0) / (1_u64 << FINE_BITS) as f64;
        self.delta.get() - excess(self.epsilon.get(), distance)
    }

    /// β = ln(1 + ε/2ln(2/δ)), less an allowance for rounding the scale up.
    ///
    /// The scale is rounded up to a multiple of 2⁻¹⁶ places and is at least 2/ε places.
    fn smoothness(&self) -> f64 {
        let epsilon = self.epsilon.get();
        (0.5 * epsilon / (2.0 / self.exact_delta()).ln()).ln_1p() - epsilon.max(2.0) / f64::from(1 << 16)
    }

    /// The step of the public grid, in places: the largest scale is 2 PLACES/ε.
    fn coarse(&self) -> i64 {
        (2.0 * PLACES as f64 / self.epsilon.get() / COARSE).ceil() as i64
    }
}

impl Sealed for SmoothMedian {}

impl Mechanism for SmoothMedian {
    /// # Theorem
    /// [NRS07]: with S a β-smooth bound on the local sensitivity, β = ln(1 + ε/2ln(2/δ)), Laplace noise of
    /// scale 2S/ε makes the median (ε, δ)-DP. S = max e^(-β(j-i-1)) (x(j) - x(i)) over i ≤ m ≤ j is smooth
    /// whether a record is replaced, added or removed (THEORY, Median).
    fn event(&self, _: Neighbors) -> Event {
        Event::Approximate { epsilon: self.epsilon, delta: self.delta }
    }
}

impl std::fmt::Display for SmoothMedian {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (epsilon, delta) = (format_brief(self.epsilon.get()), format_brief(self.delta.get()));
        write!(
            f,
            "median of numbers clamped to {} by smooth sensitivity with epsilon {epsilon} and delta {delta}",
            self.bounds
        )
    }
}

impl Paid<SmoothMedian> {
    /// Returns the median. Its error depends on the data and stays secret.
    pub fn run(mut self, values: &Sensitive<Vec<f64>>) -> Result<Release, Error> {
        let mut stream = self.key()?.stream(0);
        let median = self.mechanism;
        let width = median.bounds.upper() - median.bounds.lower();
        let place =
            |value: f64| (((value - median.bounds.lower()) / width * PLACES as f64) as i64).clamp(0, PLACES);
        let mut places: Vec<i64> =
            values.0.iter().filter_map(|value| median.bounds.hold(*value)).map(place).collect();
        places.sort_unstable();
        let sensitivity = smooth_sensitivity(&places, median.smoothness()).max(1.0) * (1.0 + 1e-12);
        let scale = (2.0 * sensitivity / median.epsilon.get() * f64::from(1 << SCALE_BITS)).ceil() as i128;
        let noise = i128::from(discrete_laplace(Ratio::power_of_two(FINE_BITS), &mut stream));
        let middle = places.get(places.len().saturating_sub(1) / 2).copied().unwrap_or(0);
        // All terms are in places · 2⁷²: 2¹⁰⁰ for the median, 2⁶³ · 2⁵⁸ at most for the noise.
        let bits = FINE_BITS + SCALE_BITS;
        let step = i128::from(median.coarse()) << bits;
        let answer = ((i128::from(middle) << bits) + noise * scale + step / 2).div_euclid(step);
        let value = median.bounds.lower() + answer as f64 * median.coarse() as f64 / PLACES as f64 * width;
        Ok(Release {
            value: value.clamp(median.bounds.lower(), median.bounds.upper()),
            within: Within::Secret,
        })
    }
}

/// The smooth sensitivity: max e^(-β(j-i-1)) (x(j) - x(i)) over i ≤ m ≤ j, i < j.
///
/// The bounds stand before the first and after the last value.
///
/// # Theorem
/// [NRS07]: the best j does not decrease as i grows, so bisecting the range of i takes O(n log n) steps.
fn smooth_sensitivity(places: &[i64], beta: f64) -> f64 {
    // Indices are shifted by one: 0 is the lower bound, n + 1 the upper bound.
    let n = places.len();
    let at = |i: usize| if i == 0 { 0 } else { places.get(i - 1).copied().unwrap_or(PLACES) };
    let middle = n.div_ceil(2);
    let worth = |i: usize, j: usize| {
        if i < j { (-beta * (j - i - 1) as f64).exp() * (at(j) - at(i)) as f64 } else { 0.0 }
    };
    let mut best = 0.0_f64;
    let mut ranges = vec![(0, middle, middle, n + 1)];
    while let Some((first, last, low, high)) = ranges.pop() {
        let i = usize::midpoint(first, last);
        let (mut chosen, mut most) = (low, f64::NEG_INFINITY);
        for j in low..=high {
            if worth(i, j) > most {
                (chosen, most) = (j, worth(i, j));
            }
        }
        best = best.max(most);
        if i > first {
            ranges.push((first, i - 1, low, chosen));
        }
        if i < last {
            ranges.push((i + 1, last, chosen, high));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, computed with two loops.
    fn by_definition(places: &[i64], beta: f64) -> f64 {
        let padded: Vec<i64> = [0].iter().chain(places).chain(&[PLACES]).copied().collect();
        let middle = places.len().div_ceil(2);
        let mut best = 0.0_f64;
        for i in 0..=middle {
            for j in middle.max(i + 1)..padded.len() {
                best = best.max((-beta * (j - i - 1) as f64).exp() * (padded[j] - padded[i]) as f64);
            }
        }
        best
    }

    fn some_places(seed: u64, count: usize) -> Vec<i64> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as i64
        };
        // Clusters, so that sensitivities vary.
        let mut places: Vec<i64> =
            (0..count).map(|_| ((next() % 7) * 30_000_000 + next() % 1_000_000).clamp(0, PLACES)).collect();
        places.sort_unstable();
        places
    }

    #[test]
    fn a_dilation_costs_half_of_epsilon_for_every_epsilon() {
        for (epsilon, delta) in
            [(0.01, 1e-6), (1.0, 1e-6), (5.0, 1e-6), (12.0, 1e-5), (16.0, 3e-6), (17.0, 1e-5)]
        {
            let bounds = Bounds::new(0.0, 1.0).unwrap();
            let median =
                SmoothMedian::new(bounds, Epsilon::new(epsilon).unwrap(), Delta::new(delta).unwrap())
                    .unwrap();
            let (beta, l) = (median.smoothness(), (2.0 / median.exact_delta()).ln());
            // THEORY, Median: L(e^β - 1) ≤ ε/2 where the scale grows, β ≤ ε/2 where it shrinks.
            assert!(l * beta.exp_m1() <= 0.5 * epsilon && beta <= 0.5 * epsilon, "{epsilon} {delta}");
        }
    }

    #[test]
    fn halving_finds_the_sensitivity_of_the_definition() {
        for count in 0..60 {
            for beta in [1e-3, 0.02, 0.3, 2.0] {
                let places = some_places(count as u64 + 1, count);
                let (fast, slow) = (smooth_sensitivity(&places, beta), by_definition(&places, beta));
                assert!((fast - slow).abs() <= 1e-9 * slow, "{count} values, β = {beta}: {fast} for {slow}");
            }
        }
    }

    #[test]
    fn sensitivity_is_smooth_and_bounds_every_change_of_the_median() {
        let median = |places: &[i64]| places.get(places.len().saturating_sub(1) / 2).copied().unwrap_or(0);
        for count in 0..25 {
            for beta in [0.02, 0.3] {
                let here = some_places(count as u64 + 77, count);
                let s = smooth_sensitivity(&here, beta);
                for extra in [0, 1, 15_000_000, 60_500_000, 150_000_000, PLACES] {
                    let mut there = here.clone();
                    there.push(extra);
                    there.sort_unstable();
                    let t = smooth_sensitivity(&there, beta);
                    assert!(
                        s <= beta.exp() * t * (1.0 + 1e-12) && t <= beta.exp() * s * (1.0 + 1e-12),
                        "{s} and {t}"
                    );
                    assert!((median(&here) - median(&there)).abs() as f64 <= s.min(t), "{count} values");
                }
            }
        }
    }
}
