//! The uses of the steps of a plan.

/// The use of one step of the mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The sum of all examples.
    Means,
    /// The sum of the absolute deviations from the centres. Deviations above one count as one.
    Deviations,
    /// The sum of the products of all pairs of features, and of features and a numeric target.
    Moments,
    /// The sum of the gradients.
    Gradient,
    /// The sum of the gradients at a point to which later gradients are compared.
    Reference,
    /// The sum of the differences between gradients and those at the reference.
    Correction,
    /// The sum from which scale and offset of the fitted outputs are corrected.
    Calibration,
}

impl Stage {
    /// Whether scores of examples are computed, from standardised columns, leaves and waves.
    pub(super) fn has_scores(self) -> bool {
        !matches!(self, Self::Means | Self::Deviations | Self::Moments)
    }
}
