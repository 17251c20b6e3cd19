//! The moments accountant and group privacy, by Rényi divergences.

use crate::{
    accounting::{Bound, Renyi},
    units::{Delta, Order},
};

impl Renyi {
    /// The moments accountant: integer moments λ up to `largest`, and Markov's inequality. [ACGMMTZ16,
    /// Theorem 2]
    #[must_use]
    pub fn moments_accountant(&self, delta: Delta, largest: u32) -> Bound {
        // The log moment α(λ) is λ times the divergence of order λ + 1, and ε = (α(λ) - ln δ)/λ.
        let Some(delta) = self.left_of(delta.get()) else {
            return Bound { lower: 0.0, upper: f64::INFINITY };
        };
        if self.at(2.0) == 0.0 {
            return Bound { lower: 0.0, upper: 0.0 }; // neighbours do the same
        }
        let epsilon = |lambda: f64| self.at(lambda + 1.0) - delta.ln() / lambda;
        let upper = (1..=largest.max(1)).map(|l| epsilon(f64::from(l))).fold(f64::INFINITY, f64::min);
        Bound { lower: 0.0, upper: upper.max(0.0) }
    }

    /// ε(α) for groups of 2^`doublings` records. [Mir17, Proposition 2]
    ///
    /// It is 3^doublings times ε(2^doublings α), for α ≥ 2.
    #[must_use]
    pub fn group(&self, order: Order, doublings: u32) -> f64 {
        if order.get() < 2.0 || doublings > 30 || self.divergence(order).is_infinite() {
            return f64::INFINITY;
        }
        3.0_f64.powi(doublings as i32) * self.at(order.get() * f64::from(1u32 << doublings))
    }
}
