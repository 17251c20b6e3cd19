//! Thresholds on an ordered finite domain, by the exponential mechanism and by a tree of counts.

use quell_privacy::{
    Neighbors,
    ledger::{Book, Ledger},
    mechanism::{Additive, Noise, Sensitive},
    units::{ClipNorm, Delta, Epsilon, NoiseMultiplier, Probability},
};

use super::{FiniteClass, neighbors_of};
use crate::{Error, learner::Privacy};

/// A point of the domain, and its label.
pub type LabelledPoint = (u32, bool);

/// All thresholds t on the points 0, …, X - 1: the label of x is predicted as x ≥ t.
///
/// There are X + 1 of them. A point beyond the domain counts as the last one.
///
/// ```
/// use quell::{
///     learner::bayes::Thresholds,
///     ledger::InMemory,
///     privacy::units::{Delta, Epsilon},
/// };
/// let points: Vec<(u32, bool)> = (0..5_000).map(|i| (i % 1_000, i % 1_000 >= 321)).collect();
/// let thresholds = Thresholds { domain: 1_000 };
/// let mut ledger = InMemory::ledger("points", Epsilon::new(1.0)?, Delta::new(1e-6)?)?;
/// let threshold = thresholds.choose(&mut ledger, Epsilon::new(1.0)?, &points)?;
/// assert!((316..=326).contains(&threshold));
/// # Ok::<(), quell::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// X: number of points of the domain.
    pub domain: u32,
}

/// A tree of noisy counts, from which the errors of all thresholds follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tree {
    /// The thresholds.
    pub thresholds: Thresholds,
    /// Standard deviation of the noise over the contribution of one record to all counts.
    pub noise_multiplier: NoiseMultiplier,
}

/// The largest domain, for which all errors still fit into memory.
const MOST_POINTS: u32 = 1 << 26;

impl Thresholds {
    /// The class of all thresholds.
    #[must_use]
    pub fn class(self, epsilon: Epsilon) -> FiniteClass {
        FiniteClass { hypotheses: self.domain as usize + 1, epsilon }
    }

    /// For each point of the domain: records with label true minus those with label false.
    fn balances(self, points: &[LabelledPoint]) -> Vec<f64> {
        let mut balances = vec![0.0; self.domain as usize];
        for (point, label) in points {
            let place = (*point).min(self.domain.saturating_sub(1)) as usize;
            balances[place] += if *label { 1.0 } else { -1.0 };
        }
        balances
    }

    fn checked(self) -> Result<Self, Error> {
        if (1..=MOST_POINTS).contains(&self.domain) {
            return Ok(self);
        }
        let found = self.domain.to_string();
        Err(Error::Setting { name: "domain", found, expected: "a number of points in [1, 2^26]" })
    }

    /// Pays ε and chooses a threshold by the exponential mechanism.
    ///
    /// # Theorem
    /// (THEORY, Finite classes, Thresholds) The errors exceed the least number of errors by at most
    /// (1/ε) ln((X + 1)/β) with probability 1 - β, or by twice that if records are replaced. No pure guarantee
    /// allows much less: see [`Thresholds::least_excess`].
    pub fn choose<B: Book>(
        self,
        ledger: &mut Ledger<B>,
        epsilon: Epsilon,
        points: &[LabelledPoint],
    ) -> Result<u32, Error> {
        let class = self.checked()?.class(epsilon);
        let mechanism = class.mechanism(neighbors_of(ledger)?)?;
        // n/2 minus the errors of threshold 0, and then of each next one: a point goes from true to false.
        let balances = self.balances(points);
        let mut utility = 0.5 * balances.iter().sum::<f64>();
        let mut utilities = vec![utility];
        for balance in balances {
            utility -= balance;
            utilities.push(utility);
        }
        let paid = ledger.charge(mechanism)?;
        Ok(paid.run(&Sensitive::new(utilities))? as u32)
    }

    /// A lower bound on the errors beyond the least, for every mechanism with a pure guarantee ε.
    ///
    /// # Theorem
    /// [BKN10; CH11] (THEORY, Thresholds) If a mechanism errs on fewer than k records more than the best
    /// threshold with probability 1 - β, on every dataset with a perfect threshold, then k is at least
    /// ln((X - 2)(1 - β)/β)/2ε if records are replaced, and half of that if they are added or removed.
    #[must_use]
    pub fn least_excess(self, epsilon: Epsilon, neighbors: Neighbors, failure: Probability) -> f64 {
        let moves = match neighbors {
            Neighbors::AddRemove => 4.0,
            Neighbors::Replace => 2.0,
        };
        let (others, beta) = (f64::from(self.domain) - 2.0, failure.get());
        ((others.max(0.0) * (1.0 - beta) / beta).ln() / (moves * epsilon.get())).max(0.0)
    }
}

impl Tree {
    /// The tree with the least noise for ε and δ.
    pub fn for_epsilon(
        thresholds: Thresholds,
        epsilon: Epsilon,
        delta: Delta,
        neighbors: Neighbors,
    ) -> Result<Self, Error> {
        let thresholds = thresholds.checked()?;
        let privacy = Privacy { epsilon: Some(epsilon.get()), neighbors, ..Privacy::default() };
        let mechanism = |noise_multiplier| Self { thresholds, noise_multiplier }.mechanism();
        let (mechanism, _) = privacy.calibrate(delta, 1, mechanism)?;
        Ok(Self { thresholds, noise_multiplier: mechanism.noise_multiplier })
    }

    /// L: the number of levels with counts, at least log₂ X.
    #[must_use]
    pub fn levels(self) -> u32 {
        self.thresholds.domain.next_power_of_two().ilog2().max(1)
    }

    /// The mechanism that the ledger is charged for.
    ///
    /// # Theorem
    /// (THEORY, Thresholds) A record is in one node of each of the L levels, with 1 or -1. So it moves the
    /// counts by √L in the L2 norm, and by twice that if it is replaced.
    fn mechanism(self) -> Result<Additive, quell_privacy::Error> {
        let levels = self.levels();
        Ok(Additive {
            noise: Noise::Gaussian,
            contribution: ClipNorm::new(f64::from(levels).sqrt() * (1.0 + 1e-12))?,
            noise_multiplier: self.noise_multiplier,
            // Level l has 2^(L - l) nodes, from the points themselves on.
            dimension: (2 << levels) - 2,
        })
    }

    /// A bound on the errors of the chosen threshold beyond the least.
    ///
    /// # Theorem
    /// (THEORY, Thresholds) [DNPR10; CSS11] The errors of a threshold are sums of at most L counts (two if L
    /// is one), with noise of standard deviation z√L each. With probability 1 - β all X + 1 sums err by at
    /// most zL √(2 ln(2(X + 1)/β)). Twice that is the bound. It grows with (log X)^(3/2), which is more than
    /// that of the exponential mechanism; in return all errors are known, and no pure guarantee is needed.
    #[must_use]
    pub fn excess(self, failure: Probability) -> f64 {
        let levels = f64::from(self.levels());
        let sums = f64::from(self.thresholds.domain) + 1.0;
        let deviation = self.noise_multiplier.get() * (levels * levels.max(2.0)).sqrt();
        2.0 * deviation * (2.0 * (2.0 * sums / failure.get()).ln()).sqrt() * (1.0 + 1e-6)
    }

    /// The counts of all nodes, from the points to the two halves of the domain.
    fn nodes(self, points: &[LabelledPoint]) -> Vec<f64> {
        let mut level = self.thresholds.balances(points);
        level.resize(1 << self.levels(), 0.0);
        let mut nodes = level.clone();
        while level.len() > 2 {
            level = level.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
            nodes.extend(&level);
        }
        nodes
    }

    /// Pays and returns, for each threshold, its errors minus those of threshold 0, with noise.
    ///
    /// Everything that is computed from them is free.
    pub fn release<B: Book>(
        self,
        ledger: &mut Ledger<B>,
        points: &[LabelledPoint],
    ) -> Result<Vec<f64>, Error> {
        neighbors_of(ledger)?;
        let levels = self.thresholds.checked().map(|_| self.levels())?;
        let paid = ledger.charge(self.mechanism()?)?;
        let nodes = paid.run(&Sensitive::new(self.nodes(points)))?;
        Ok((0..=self.thresholds.domain as usize).map(|end| sum_below(&nodes, levels, end)).collect())
    }

    /// Pays and returns the threshold with the fewest errors after noise.
    pub fn choose<B: Book>(self, ledger: &mut Ledger<B>, points: &[LabelledPoint]) -> Result<u32, Error> {
        let errors = self.release(ledger, points)?;
        let best = errors.iter().enumerate().min_by(|(_, a), (_, b)| a.total_cmp(b));
        Ok(best.map_or(0, |(threshold, _)| threshold as u32))
    }
}

/// The sum of the counts of all points below `end`, from the fewest nodes.
fn sum_below(nodes: &[f64], levels: u32, end: usize) -> f64 {
    let (mut total, mut start, mut first) = (0.0, 0, 0);
    for level in (0..levels).rev() {
        // The nodes of a level begin after those of the finer levels.
        first = (2 << levels) - (2 << (levels - level));
        let node = start >> level;
        if start + (1 << level) <= end {
            total += nodes[first + node];
            start += 1 << level;
        }
    }
    // The whole domain is both halves.
    if start < end { total + nodes[first + start] } else { total }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distances of the counts of neighbours, for all records of small domains.
    #[test]
    fn a_record_moves_the_counts_by_the_root_of_the_levels() {
        for domain in [1, 2, 3, 5, 8, 9, 33] {
            let tree = Tree {
                thresholds: Thresholds { domain },
                noise_multiplier: NoiseMultiplier::new(1.0).unwrap(),
            };
            let mechanism = tree.mechanism().unwrap();
            let points = [(0, true), (domain / 2, false), (domain, true)];
            let base = tree.nodes(&points);
            assert_eq!(base.len(), mechanism.dimension);
            let moved = |points: &[LabelledPoint], base: &[f64]| {
                tree.nodes(points).iter().zip(base).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
            };
            let mut widest = [0.0_f64; 2];
            for record in (0..=domain).flat_map(|point| [(point, false), (point, true)]) {
                widest[0] = widest[0].max(moved(&[&points[..], &[record]].concat(), &base));
                for other in (0..=domain).flat_map(|point| [(point, false), (point, true)]) {
                    let with = tree.nodes(&[record]);
                    widest[1] = widest[1].max(moved(&[other], &with));
                }
            }
            let contribution = mechanism.contribution.get();
            for (widest, charged) in widest.into_iter().zip([contribution, 2.0 * contribution]) {
                assert!(widest <= charged && widest > 0.999 * charged, "{domain}: {widest} {charged}");
            }
        }
    }
}
