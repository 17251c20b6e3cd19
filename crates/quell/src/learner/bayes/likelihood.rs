//! One sample from a posterior distribution on finitely many parameters.

use quell_privacy::{
    Neighbors,
    ledger::{Book, Ledger},
    mechanism::{Selection, Sensitive},
    units::{ClipNorm, Epsilon},
};

use super::neighbors_of;
use crate::{Error, learner::parts};

/// A prior on finitely many parameters, with log-likelihoods that are clipped to [-B, B].
///
/// The posterior is flattened: likelihood and prior have the power ρ. Then one sample is private.
///
/// # Theorem
/// [WFS15, Algorithm 1; MT07] (THEORY, One posterior) A record moves the sum of log-likelihoods of a parameter
/// by at most B if it is added or removed, and by 2B if it is replaced. A sample with ρ = min(1, ε/2B), or
/// min(1, ε/4B), is the exponential mechanism with ε. In regular models the sample has the asymptotic
/// variance (1 + 1/ρ)/nI, with I the Fisher information: for ρ < 1 and replacement, 1 + 4B/ε times that of
/// the best estimate.
///
/// ```
/// use quell::{
///     learner::bayes::FinitePosterior,
///     ledger::InMemory,
///     privacy::units::{Delta, Epsilon},
/// };
/// // The bias of a coin, on 99 points.
/// let biases: Vec<f64> = (1..100).map(|i| f64::from(i) / 100.0).collect();
/// let posterior = FinitePosterior { prior: vec![1.0; 99], bound: 4.7, epsilon: Epsilon::new(1.0)? };
/// let coins: Vec<bool> = (0..10_000).map(|i| i % 10 < 3).collect();
/// let mut ledger = InMemory::ledger("coins", Epsilon::new(1.0)?, Delta::new(1e-6)?)?;
/// let drawn = posterior.sample(&mut ledger, coins.len(), |coin, logarithms| {
///     for (logarithm, bias) in logarithms.iter_mut().zip(&biases) {
///         *logarithm = if coins[coin] { bias.ln() } else { (1.0 - bias).ln() };
///     }
/// })?;
/// assert!((biases[drawn] - 0.3).abs() < 0.2);
/// # Ok::<(), quell::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FinitePosterior {
    /// The weight of each parameter before any record was seen; the weights need not add up to one.
    pub prior: Vec<f64>,
    /// B: the largest size of a log-likelihood.
    pub bound: f64,
    /// ε.
    pub epsilon: Epsilon,
}

impl FinitePosterior {
    fn sensitivity(&self, neighbors: Neighbors) -> f64 {
        match neighbors {
            Neighbors::AddRemove => self.bound,
            Neighbors::Replace => 2.0 * self.bound,
        }
    }

    /// ρ: the power of the likelihood and of the prior.
    #[must_use]
    pub fn power(&self, neighbors: Neighbors) -> f64 {
        (self.epsilon.get() / (2.0 * self.sensitivity(neighbors))).min(1.0)
    }

    /// The mechanism that the ledger is charged for.
    ///
    /// If ρ is one, it costs less than ε.
    pub fn mechanism(&self, neighbors: Neighbors) -> Result<Selection, Error> {
        let sensitivity = self.sensitivity(neighbors);
        let epsilon = self.epsilon.get().min(2.0 * sensitivity);
        Ok(Selection {
            candidates: self.prior.len(),
            sensitivity: ClipNorm::new(sensitivity)?,
            epsilon: Epsilon::new(epsilon)?,
            permute_and_flip: false,
        })
    }

    /// Adds up the log-likelihoods of all records and the logarithm of the prior, and hides the sums.
    ///
    /// `logarithms` writes the log-likelihoods of all parameters for a record. One that is not a number counts
    /// zero.
    pub fn utilities(
        &self,
        records: usize,
        mut logarithms: impl FnMut(usize, &mut [f64]),
    ) -> Sensitive<Vec<f64>> {
        // The logarithm of a negative weight is not a number. Like a weight of zero, it is the lowest.
        let lowest = |logarithm: f64| if logarithm.is_nan() { f64::NEG_INFINITY } else { logarithm };
        let of_prior = |weight: &f64| parts::unbounded_parts(lowest(weight.ln()), self.bound);
        let mut totals: Vec<i128> = self.prior.iter().map(of_prior).collect();
        let mut buffer = vec![0.0; totals.len()];
        for record in 0..records {
            buffer.fill(0.0);
            logarithms(record, &mut buffer);
            parts::add(&mut totals, &buffer, self.bound);
        }
        Sensitive::new(totals.into_iter().map(|total| parts::number(total, self.bound)).collect())
    }

    /// Pays, draws a parameter and returns its number.
    ///
    /// `logarithms` writes the log-likelihoods of all parameters for a record.
    pub fn sample<B: Book>(
        &self,
        ledger: &mut Ledger<B>,
        records: usize,
        logarithms: impl FnMut(usize, &mut [f64]),
    ) -> Result<usize, Error> {
        let neighbors = neighbors_of(ledger)?;
        let paid = ledger.charge(self.mechanism(neighbors)?)?;
        Ok(paid.run(&self.utilities(records, logarithms))?)
    }
}
