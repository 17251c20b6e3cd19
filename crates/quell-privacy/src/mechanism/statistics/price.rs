//! The ε that one answer is designed for, and the noise that follows from it.

use crate::{
    Error, Neighbors,
    accounting::closed::gaussian_sigma,
    mechanism::{IntegerNoise, Noise},
    units::{Delta, Epsilon, NoiseMultiplier, Scale},
};

/// The target of one answer: ε, the noise, and the neighbour relation.
///
/// A plain [`Epsilon`] is also a price: Laplace noise, with one record added or removed. The ledger charges
/// for the noise of the mechanism, whatever the price was. The charge differs from the ε of the price for
/// Gaussian noise, for answers of several noisy numbers, and if the ledger has another neighbour relation.
///
/// ```
/// use quell_privacy::{Neighbors, mechanism::{Bounds, Mean, Mechanism, Price}, units::{Delta, Epsilon}};
/// let (bounds, epsilon) = (Bounds::new(0.0, 120.0)?, Epsilon::new(0.5)?);
/// let pure = Mean::for_epsilon(bounds, epsilon)?;
/// let gaussian = Mean::for_epsilon(bounds, Price::gaussian(epsilon, Delta::new(1e-6)?).under(Neighbors::Replace))?;
/// assert!(pure.event(Neighbors::AddRemove) != gaussian.event(Neighbors::Replace));
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    epsilon: Epsilon,
    /// δ that Gaussian noise is calibrated for. `None` for Laplace noise.
    gaussian: Option<Delta>,
    neighbors: Neighbors,
    /// The most records of one user.
    records: u32,
}

impl From<Epsilon> for Price {
    fn from(epsilon: Epsilon) -> Self {
        Self::laplace(epsilon)
    }
}

impl Price {
    /// A pure ε guarantee, by Laplace noise.
    #[must_use]
    pub fn laplace(epsilon: Epsilon) -> Self {
        Self { epsilon, gaussian: None, neighbors: Neighbors::AddRemove, records: 1 }
    }

    /// An (ε, δ) guarantee, by Gaussian noise. Many answers with Gaussian noise compose to less.
    #[must_use]
    pub fn gaussian(epsilon: Epsilon, delta: Delta) -> Self {
        Self { epsilon, gaussian: Some(delta), neighbors: Neighbors::AddRemove, records: 1 }
    }

    /// The same price under another neighbour relation.
    #[must_use]
    pub fn under(self, neighbors: Neighbors) -> Self {
        Self { neighbors, ..self }
    }

    /// The same price for all records of a user, who has at most so many.
    ///
    /// The noise grows by this number. [`PerUser`](crate::mechanism::PerUser) makes it the price of a user.
    #[must_use]
    pub fn for_users_with(self, records: u32) -> Self {
        Self { records, ..self }
    }

    pub(super) fn noise(self) -> Noise {
        if self.gaussian.is_some() { Noise::Gaussian } else { Noise::Laplace }
    }

    pub(super) fn neighbors(self) -> Neighbors {
        self.neighbors
    }

    /// An equal share of ε for each of several noisy numbers.
    pub(super) fn divided_by(self, parts: u32) -> Result<Self, Error> {
        Ok(Self { epsilon: Epsilon::new(self.epsilon.get() / f64::from(parts))?, ..self })
    }

    /// Noise for counts, where one record moves `moves` of them by one each.
    pub(super) fn integer_noise(self, moves: u32) -> Result<IntegerNoise, Error> {
        match self.gaussian {
            None => IntegerNoise::for_epsilon(self.epsilon, moves.saturating_mul(self.records)),
            Some(delta) => {
                let sigma = gaussian_sigma(self.epsilon, delta)?.get();
                Ok(IntegerNoise::new(
                    Noise::Gaussian,
                    Scale::new(sigma * f64::from(moves).sqrt() * f64::from(self.records))?,
                ))
            }
        }
    }

    /// Scale of the noise on a sum, divided by the largest contribution of one record.
    pub(super) fn noise_multiplier(self) -> Result<NoiseMultiplier, Error> {
        let over_movement = match self.gaussian {
            // One part in 10¹² covers the rounding of the quotient.
            None => 1.0 / self.epsilon.get() * (1.0 + 1e-12),
            Some(delta) => gaussian_sigma(self.epsilon, delta)?.get(),
        };
        NoiseMultiplier::new(over_movement * self.neighbors.reach() * f64::from(self.records))
    }
}
