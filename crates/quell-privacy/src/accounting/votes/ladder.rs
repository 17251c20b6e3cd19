//! How far one ballot can move the cost of a question.
//!
//! The bound is for these votes, and for all votes within some distance of them.
//!
//! A question is on a rung of a ladder, and its cost is a function of the rung. One ballot moves it at most
//! `reach` rungs up or down, so d ballots can change the cost only as the d · reach rungs in either direction
//! do. No other property of the cost is assumed.

use std::sync::Arc;

use super::{likely::concentrated, rho, screen_divergence};
use crate::special::ln_normal_below;

/// Number of rungs in the distance that one ballot can move the maximum.
const FINE: usize = 32;

/// Largest number of rungs; questions below are placed on the lowest rung.
const MOST_RUNGS: usize = 1 << 18;

/// The ladder ends where the cost is at most this part of the largest.
const SMALL: f64 = 1e-8;

/// The costs of a question by rung.
pub(crate) struct Ladder {
    /// ln of the largest probability of error on each rung but the last.
    ///
    /// It is empty if a rung is a count.
    levels: Vec<f64>,
    costs: Vec<f64>,
    /// The largest change of the cost by one ballot, for a question on each rung.
    changes: Vec<f64>,
    reach: usize,
}

impl Ladder {
    /// The ladder of the noisy maximum.
    ///
    /// A question with probability of error at most q is on the rung above z = Φ⁻¹(q/(m-1)).
    ///
    /// # Theorem
    /// One ballot moves z by at most √2/σ (THEORY, Votes): 32 rungs, and one for the rounding of logarithms,
    /// which is far below a rung. The cost of a rung is that of its largest q, which bounds that of every
    /// smaller one [PSMRTE18, Theorem 6].
    pub(crate) fn of_maximum(candidates: usize, deviation: f64, alpha: f64) -> Self {
        if candidates < 2 {
            return Self::new(Vec::new(), vec![0.0], 0);
        }
        let ln_others = ((candidates - 1) as f64).ln();
        let width = std::f64::consts::SQRT_2 / deviation / FINE as f64;
        let independent = concentrated(0.0, rho(deviation), alpha);
        // From the top, q = (m-1)/2, down to a negligible cost.
        let (mut levels, mut costs) = (Vec::new(), vec![independent]);
        for rung in 1..MOST_RUNGS {
            let level = ln_others + ln_normal_below(-width * rung as f64);
            let cost = concentrated(level, rho(deviation), alpha);
            levels.push(level);
            costs.push(cost);
            if cost <= SMALL * independent {
                break;
            }
        }
        levels.reverse();
        costs.reverse();
        Self::new(levels, costs, FINE + 1)
    }

    /// The ladder of the screen.
    ///
    /// A rung is the largest count, from none to all `teachers`, and one ballot moves it by at most one. The
    /// rounding of noise may move the threshold by `aside` deviations in either direction.
    pub(crate) fn of_screen(threshold: u64, deviation: f64, teachers: u32, aside: f64, alpha: f64) -> Self {
        let cost = |most: u32| {
            let at = |aside: f64| {
                screen_divergence(
                    (f64::from(most) - threshold as f64) / deviation + aside,
                    deviation,
                    0.0,
                    alpha,
                )
            };
            at(-aside).max(at(aside))
        };
        Self::new(Vec::new(), (0..=teachers).map(cost).collect(), 1)
    }

    fn new(levels: Vec<f64>, costs: Vec<f64>, reach: usize) -> Self {
        let change = |rung: usize| {
            let near = &costs[rung.saturating_sub(reach)..(rung + reach + 1).min(costs.len())];
            near.iter().map(|cost| (cost - costs[rung]).abs()).fold(0.0, f64::max)
        };
        let changes = (0..costs.len()).map(change).collect();
        Self { levels, costs, changes, reach }
    }

    /// The rung of a question with this probability of error, as a logarithm rounded up.
    pub(crate) fn rung(&self, ln_q: f64) -> usize {
        self.levels.partition_point(|level| *level < ln_q)
    }
}

/// A question and its rung.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) ladder: Arc<Ladder>,
    /// The index of a rung of the ladder.
    pub(crate) rung: usize,
}

impl Place {
    /// The cost of the question.
    pub(crate) fn cost(&self) -> f64 {
        self.ladder.costs.get(self.rung).copied().unwrap_or(f64::INFINITY)
    }

    /// The rungs that so many ballots can reach.
    fn within(&self, ballots: usize) -> std::ops::Range<usize> {
        let rungs = ballots.saturating_mul(self.ladder.reach);
        let last = self.rung.saturating_add(rungs).saturating_add(1);
        self.rung.saturating_sub(rungs)..last.min(self.ladder.changes.len())
    }
}

fn largest(changes: &[f64]) -> f64 {
    changes.iter().copied().fold(0.0, f64::max)
}

/// A β-smooth bound on the change of the total cost by one person.
///
/// It is max e^(-βd) Σ A(d). The person has one ballot in each question.
///
/// # Theorem
/// [NRS07; PSMRTE18, Algorithms 4 and 5]: A(d) of a question, the largest change by one ballot at any votes
/// within d ballots, is at most A(d + 1) of any neighbour, whose rungs within d + 1 ballots include these. So
/// S(x) ≤ e^β S(x'), and S ≥ Σ A(0).
pub(crate) fn smooth_sum(places: &[Place], beta: f64) -> f64 {
    let most: f64 = places.iter().map(|place| largest(&place.ladder.changes)).sum();
    let mut windows: Vec<(std::ops::Range<usize>, f64)> =
        places.iter().map(|place| (place.rung..place.rung, 0.0)).collect();
    let mut best = 0.0_f64;
    for ballots in 0.. {
        let shrink = (-beta * f64::from(ballots)).exp();
        // No larger distance can give a larger value.
        if ballots > 0 && shrink * most <= best {
            break;
        }
        let mut sum = 0.0;
        for (place, (window, change)) in places.iter().zip(&mut windows) {
            let now = place.within(ballots as usize);
            let changes = &place.ladder.changes;
            *change = change
                .max(largest(&changes[now.start..window.start]))
                .max(largest(&changes[window.end..now.end]));
            *window = now;
            sum += *change;
        }
        best = best.max(shrink * sum);
    }
    best
}

#[cfg(test)]
impl Ladder {
    pub(super) fn costs(&self) -> &[f64] {
        &self.costs
    }

    /// A(d) of a question on this rung.
    pub(super) fn change_within(self: &Arc<Self>, rung: usize, ballots: usize) -> f64 {
        largest(&self.changes[Place { ladder: self.clone(), rung }.within(ballots)])
    }
}
