//! A hypothesis of a finite class, chosen by the exponential mechanism.

use quell_privacy::{
    Neighbors,
    ledger::{Book, Ledger},
    mechanism::{Selection, Sensitive},
    units::{ClipNorm, Epsilon, Probability},
};

use super::neighbors_of;
use crate::{Error, learner::parts};

/// A finite class of hypotheses, of which one with a small empirical error is chosen.
///
/// The losses of a record are clipped to [0, 1]. A loss that is not a number counts one half, which favours no
/// hypothesis.
///
/// ```
/// use quell::{
///     learner::bayes::FiniteClass,
///     ledger::InMemory,
///     privacy::{Neighbors, units::{Delta, Epsilon, Probability}},
/// };
/// // Which of 50 numbers predicts most coins of bias 0.3, in the squared loss?
/// let coins: Vec<f64> = (0..2_000).map(|i| if i % 10 < 3 { 1.0 } else { 0.0 }).collect();
/// let class = FiniteClass { hypotheses: 50, epsilon: Epsilon::new(1.0)? };
/// let mut ledger = InMemory::ledger("coins", Epsilon::new(1.0)?, Delta::new(1e-6)?)?;
/// let chosen = class.choose(&mut ledger, coins.len(), |coin, losses| {
///     for (bias, loss) in losses.iter_mut().enumerate() {
///         *loss = (coins[coin] - bias as f64 / 50.0).powi(2);
///     }
/// })?;
/// assert!((chosen as f64 / 50.0 - 0.3).abs() < 0.25);
/// assert!(class.excess(Neighbors::AddRemove, Probability::new(1e-6)?) < 20.0);
/// # Ok::<(), quell::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FiniteClass {
    /// Number of hypotheses.
    pub hypotheses: usize,
    /// ε.
    pub epsilon: Epsilon,
}

impl FiniteClass {
    /// The most that a record moves half the number of records minus the errors of a hypothesis.
    ///
    /// # Theorem
    /// (THEORY, Finite classes) A loss in [0, 1] is within one half of one half, and two of them are within
    /// one of each other.
    fn sensitivity(neighbors: Neighbors) -> f64 {
        match neighbors {
            Neighbors::AddRemove => 0.5,
            Neighbors::Replace => 1.0,
        }
    }

    /// The mechanism that the ledger is charged for.
    pub fn mechanism(&self, neighbors: Neighbors) -> Result<Selection, Error> {
        Ok(Selection {
            candidates: self.hypotheses,
            sensitivity: ClipNorm::new(Self::sensitivity(neighbors))?,
            epsilon: self.epsilon,
            permute_and_flip: false,
        })
    }

    /// A bound on how many more records the choice errs on than the best hypothesis.
    ///
    /// # Theorem
    /// [DR14, Theorem 3.11] (THEORY, Finite classes) With probability 1 - β the sum of the losses exceeds the
    /// least one by at most (1/ε) ln(|H|/β) if records are added or removed, and by (2/ε) ln(|H|/β) if
    /// records are replaced. This holds for every dataset.
    #[must_use]
    pub fn excess(&self, neighbors: Neighbors, failure: Probability) -> f64 {
        let sensitivity = Self::sensitivity(neighbors);
        let choices = (self.hypotheses.max(1) as f64 / failure.get()).ln();
        // The mechanism rounds utilities and ε to parts in a million.
        2.0 * sensitivity / self.epsilon.get() * choices * (1.0 + 1e-5) + sensitivity * 1e-5
    }

    /// A bound on how much larger the risk of the choice is than the least risk in the class.
    ///
    /// # Theorem
    /// (THEORY, Finite classes) For n independent records of one distribution, with probability 1 - β: by
    /// Hoeffding's inequality and a union bound all empirical risks are within √(ln(4|H|/β)/2n) of the risks,
    /// and the choice has at most the excess of failure β/2.
    #[must_use]
    pub fn risk_excess(&self, neighbors: Neighbors, records: u64, failure: Probability) -> f64 {
        let (n, half) = (records as f64, 0.5 * failure.get());
        let classes = self.hypotheses.max(1) as f64;
        let empirical = Probability::new(half).map_or(f64::INFINITY, |half| self.excess(neighbors, half));
        2.0 * ((2.0 * classes / half).ln() / (2.0 * n)).sqrt() + empirical / n
    }

    /// Adds up the losses of all records, and hides the sums.
    ///
    /// `losses` writes the losses of all hypotheses on a record.
    pub fn utilities(
        &self,
        records: usize,
        mut losses: impl FnMut(usize, &mut [f64]),
    ) -> Sensitive<Vec<f64>> {
        let mut totals = vec![0; self.hypotheses];
        let mut buffer = vec![0.0; self.hypotheses];
        for record in 0..records {
            buffer.fill(0.0);
            losses(record, &mut buffer);
            for loss in &mut buffer {
                *loss = 0.5 - loss.clamp(0.0, 1.0);
            }
            parts::add(&mut totals, &buffer, 0.5);
        }
        Sensitive::new(totals.into_iter().map(|total| parts::number(total, 0.5)).collect())
    }

    /// Pays, chooses a hypothesis and returns its number.
    ///
    /// `losses` writes the losses of all hypotheses on a record.
    pub fn choose<B: Book>(
        &self,
        ledger: &mut Ledger<B>,
        records: usize,
        losses: impl FnMut(usize, &mut [f64]),
    ) -> Result<usize, Error> {
        let neighbors = neighbors_of(ledger)?;
        let paid = ledger.charge(self.mechanism(neighbors)?)?;
        Ok(paid.run(&self.utilities(records, losses))?)
    }
}
