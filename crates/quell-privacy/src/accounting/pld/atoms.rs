//! Laws with finitely many losses: discrete noise, randomized response, and pairs that dominate given
//! guarantees.

use super::{
    law::Lattice,
    tails::{Sides, Tails},
};

/// Finitely many losses with their probabilities under P and Q, and possibly an infinite loss.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Atoms {
    losses: Vec<f64>,
    /// Probabilities under P and under Q.
    masses: Vec<(f64, f64)>,
    /// For each j: probabilities under P of the atoms from j on, and before j.
    p: Vec<Sides>,
    q: Vec<Sides>,
    infinite: f64,
}

/// A running sum of positive numbers, compensated for rounding. [Neumaier 1974]
///
/// Its error does not grow with the number of terms.
struct Compensated {
    high: f64,
    low: f64,
}

impl Compensated {
    fn add(&mut self, term: f64) -> f64 {
        let sum = self.high + term;
        self.low += if self.high >= term { (self.high - sum) + term } else { (term - sum) + self.high };
        self.high = sum;
        self.high + self.low
    }
}

impl Atoms {
    /// Builds the law from (loss, probability under P, probability under Q), sorted by loss.
    ///
    /// `infinite` is P[L = ∞] = Q[L = -∞].
    pub(crate) fn new(atoms: &[(f64, f64, f64)], infinite: f64) -> Self {
        let cumulate = |mass: &dyn Fn(&(f64, f64, f64)) -> f64, beneath: f64, beyond: f64| {
            let mut sides = vec![Sides { above: beyond, below: beneath }; atoms.len() + 1];
            let mut sum = Compensated { high: beneath, low: 0.0 };
            for (j, atom) in atoms.iter().enumerate() {
                sides[j + 1].below = sum.add(mass(atom));
            }
            let mut sum = Compensated { high: beyond, low: 0.0 };
            for (j, atom) in atoms.iter().enumerate().rev() {
                sides[j].above = sum.add(mass(atom));
            }
            sides
        };
        Self {
            losses: atoms.iter().map(|a| a.0).collect(),
            masses: atoms.iter().map(|a| (a.1, a.2)).collect(),
            p: cumulate(&|a| a.1, 0.0, infinite),
            q: cumulate(&|a| a.2, infinite, 0.0),
            infinite,
        }
    }

    /// Losses with their probabilities under P.
    pub(crate) fn list(&self) -> Vec<(f64, f64)> {
        self.triples().map(|(loss, p, _)| (loss, p)).collect()
    }

    /// Losses with their probabilities under P and under Q.
    pub(super) fn triples(&self) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
        self.losses.iter().zip(&self.masses).map(|(loss, (p, q))| (*loss, *p, *q))
    }

    /// The losses in increasing order.
    pub(in crate::accounting) fn losses(&self) -> &[f64] {
        &self.losses
    }

    /// The likeliest loss and the distance between adjacent losses, if that distance is constant.
    pub(super) fn lattice(&self) -> Option<Lattice> {
        let (first, second) = (*self.losses.first()?, *self.losses.get(1)?);
        let spacing = second - first;
        let even = self.losses.windows(2).all(|pair| ((pair[1] - pair[0]) / spacing - 1.0).abs() < 1e-9);
        let likeliest = self.masses.iter().zip(&self.losses).max_by(|a, b| a.0.0.total_cmp(&b.0.0))?;
        even.then_some(Lattice { atom: *likeliest.1, spacing })
    }

    /// The law conditioned on finite losses.
    ///
    /// The infinite losses have the same probability under P as under Q.
    pub(super) fn given_finite(&self) -> Self {
        let rest = 1.0 - self.infinite;
        let atoms: Vec<(f64, f64, f64)> =
            self.triples().map(|(loss, p, q)| (loss, p / rest, q / rest)).collect();
        Self::new(&atoms, 0.0)
    }

    /// P[L = ∞].
    pub(super) fn infinite(&self) -> f64 {
        self.infinite
    }

    pub(super) fn tails(&self, x: f64) -> Tails {
        let j = self.losses.partition_point(|&loss| loss <= x);
        Tails { p: self.p[j], q: self.q[j] }
    }

    /// Two losses ±ε: the pair that dominates every ε-DP mechanism. [KOV15]
    pub(crate) fn pure(epsilon: f64) -> Self {
        Self::approximate(epsilon, 0.0)
    }

    /// The pair that dominates every (ε, δ)-DP mechanism. [KOV15]
    pub(crate) fn approximate(epsilon: f64, delta: f64) -> Self {
        let likely = (1.0 - delta) / (1.0 + (-epsilon).exp());
        let unlikely = (1.0 - delta) * (-epsilon).exp() / (1.0 + (-epsilon).exp());
        if epsilon == 0.0 {
            return Self::new(&[(0.0, 1.0 - delta, 1.0 - delta)], delta);
        }
        Self::new(&[(-epsilon, unlikely, likely), (epsilon, likely, unlikely)], delta)
    }

    /// k-ary randomized response; `None` if every answer is true.
    pub(crate) fn randomized_response(choices: u32, randomized: f64) -> Option<Self> {
        let other = randomized / f64::from(choices);
        let same = 1.0 - randomized + other;
        let loss = (same / other).ln();
        if other == 0.0 {
            return None;
        }
        if loss == 0.0 {
            return Some(Self::pure(0.0));
        }
        let neither = f64::from(choices - 2) * other;
        Some(Self::new(&[(-loss, other, same), (0.0, neither, neither), (loss, same, other)], 0.0))
    }

    /// Discrete Laplace noise of scale s against the same noise shifted by k: Pr[n] ∝ e^(-|n|/s).
    pub(crate) fn discrete_laplace(scale: f64, shift: u32) -> Self {
        let (a, k) = (1.0 / scale, f64::from(shift));
        let outer = 1.0 / (1.0 + (-a).exp()); // Pr[n ≤ 0]
        let far = (-a * k).exp();
        let mut atoms = vec![(-a * k, outer * far, outer)];
        for n in (1..shift).rev().map(f64::from) {
            let unit = -(-a).exp_m1() * outer; // Pr[n = 0]
            atoms.push((a * (k - 2.0 * n), unit * (-a * n).exp(), unit * (-a * (k - n)).exp()));
        }
        atoms.push((a * k, outer, outer * far));
        Self::new(&atoms, 0.0)
    }

    /// Discrete Gaussian noise of deviation σ against the same noise shifted by k: Pr[n] ∝ e^(-n²/2σ²).
    pub(crate) fn discrete_gaussian(deviation: f64, shift: u32) -> Self {
        let (s, k) = (2.0 * deviation * deviation, f64::from(shift));
        let reach = (39.0 * deviation).ceil(); // beyond it the weights are below the smallest positive number
        let weight = |n: f64| (-n * n / s).exp();
        let total = 1.0 + 2.0 * (1..=reach as u64).rev().map(|n| weight(n as f64)).sum::<f64>();
        let (from, to) = (-(reach as i64), reach as i64 + i64::from(shift));
        let atoms: Vec<_> = (from..=to)
            .rev()
            .map(|n| n as f64)
            .map(|n| (k * (k - 2.0 * n) / s, weight(n) / total, weight(n - k) / total))
            .collect();
        Self::new(&atoms, 0.0)
    }
}
