//! Whether released sums can be told from their noise.

/// The remark on a run whose released sums cannot be told from noise.
pub(super) const NOISE_ALONE: &str = "warning: what this run released cannot be told from noise, as if there were no record at all; check that the records are read as intended: delimiter, header, classes, bounds and the number of records";

/// Standard deviations by which a squared length must exceed that of noise.
const MARGIN: f64 = 4.0;

/// Whether noise alone explains a vector with this squared length, in units of the noise of one number.
///
/// The squared length of n standard normal numbers has mean n and variance 2n. This uses released numbers
/// alone, so it costs nothing.
pub(super) fn is_noise(squared_length: f64, numbers: f64) -> bool {
    squared_length < numbers + MARGIN * (2.0 * numbers).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_noise_and_a_signal_is_not() {
        assert!(is_noise(400.0, 400.0) && is_noise(500.0, 400.0));
        assert!(!is_noise(600.0, 400.0) && !is_noise(100.0, 1.0));
    }
}
