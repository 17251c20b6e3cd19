//! Public facts about a dataset, and the default δ that follows from them.

/// Public facts about a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicFacts {
    /// Number of records (or users), if it is public.
    pub records: Option<u64>,
    /// Number of classes; `None` if numbers are predicted.
    pub classes: Option<usize>,
}

/// The default δ: 1/(10·records), rounded down to a power of ten.
///
/// A δ of 1/n would allow a mechanism to publish one record outright.
#[must_use]
pub fn default_delta(records: u64) -> f64 {
    let exponent = (10.0 * records.max(1) as f64).log10().ceil();
    10_f64.powf(-exponent.clamp(2.0, 300.0))
}
