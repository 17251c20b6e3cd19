//! Features of laws on which only choices depend.
//!
//! Properties on which a bound depends are in `pld::law`.

use crate::accounting::pld::{Law, sampled_loss};

impl Law {
    /// Whether the loss has a density and no atoms.
    pub(in crate::accounting) fn is_smooth(&self) -> bool {
        match self {
            Self::Gaussian { .. } | Self::Exchanged { .. } => true,
            Self::Removed { inner, .. } | Self::Added { inner, .. } => inner.is_smooth(),
            Self::Laplace { .. }
            | Self::BoundedRange { .. }
            | Self::Atoms(_)
            | Self::FixedSize { .. }
            | Self::Replaced { .. }
            | Self::Between { .. }
            | Self::Mixture(_)
            | Self::Perturbed { .. } => false,
        }
    }

    /// Losses in increasing order, dense where the law has its features.
    ///
    /// They are enough for a sketch, not for a bound.
    pub(super) fn landmarks(&self) -> Vec<f64> {
        const COUNT: i32 = 80;
        let spread = |half: f64| (-COUNT..=COUNT).map(|i| half * f64::from(i) / f64::from(COUNT)).collect();
        match self {
            Self::Gaussian { mu, .. } => (-COUNT..=COUNT)
                .map(|i| mu * mu / 2.0 + mu * 15.0 * f64::from(i) / f64::from(COUNT))
                .collect(),
            Self::Laplace { epsilon } | Self::BoundedRange { epsilon } => spread(*epsilon),
            Self::Atoms(atoms) | Self::Between { upper: atoms, .. } => {
                let stride = atoms.losses().len().div_ceil(2 * COUNT as usize).max(1);
                let mut marks: Vec<f64> = atoms.losses().iter().copied().step_by(stride).collect();
                marks.extend(atoms.losses().last());
                marks
            }
            Self::Removed { rate, inner } => {
                inner.landmarks().into_iter().map(|l| sampled_loss(*rate, l)).collect()
            }
            Self::Added { rate, inner } => {
                inner.landmarks().into_iter().map(|l| -sampled_loss(*rate, -l)).collect()
            }
            Self::Exchanged { rate, mu } => {
                let loss = |y: f64| {
                    let side = |shift: f64| sampled_loss(*rate, shift * y - mu * mu / 2.0);
                    side(*mu) - side(-*mu)
                };
                (-COUNT..=COUNT).map(|i| loss((15.0 + mu) * f64::from(i) / f64::from(COUNT))).collect()
            }
            Self::FixedSize { rate, inner } => {
                let marks = inner.landmarks();
                let below = marks.iter().filter(|l| **l < 0.0).map(|l| -sampled_loss(*rate, -l));
                let above = marks.iter().filter(|l| **l > 0.0).map(|l| sampled_loss(*rate, *l));
                below.chain([0.0]).chain(above).collect()
            }
            Self::Replaced { bound, .. } => bound.landmarks(),
            Self::Mixture(parts) => {
                let mut marks: Vec<f64> = parts.iter().flat_map(|(_, law)| law.landmarks()).collect();
                marks.sort_by(f64::total_cmp);
                marks
            }
            Self::Perturbed { mu, shift, .. } => {
                let mark = |i: i32| shift + mu * mu / 2.0 + mu * 15.0 * f64::from(i) / f64::from(COUNT);
                (-1..=COUNT).map(mark).collect()
            }
        }
    }
}
