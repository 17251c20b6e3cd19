//! How far one ballot can move the cost of a question, at these votes and at all others within some distance.
//!
//! A question stands on a rung of a ladder, and its cost is a function of the rung. One ballot takes it at most `reach` rungs up or down, so what can
//! happen within d ballots is what is written on d · reach rungs either way: nothing is assumed of the cost but that.

use std::sync::Arc;

use super::{coin, likely::concentrated, rho};
use crate::special::ln_normal_below;

/// Rungs to the distance that one ballot can move the maximum.
const FINE: usize = 32;

/// Rungs below which questions are taken to stand on the lowest.
const MOST_RUNGS: usize = 1 << 18;

/// A cost this small against the largest is small enough for the lowest rung.
const SMALL: f64 = 1e-8;

/// Costs by rung.
pub(crate) struct Ladder {
    /// ln of the largest probability of error on each rung but the last; empty where a rung is a count.
    levels: Vec<f64>,
    costs: Vec<f64>,
    /// By how much one ballot changes the cost of a question on this rung, at most.
    changes: Vec<f64>,
    reach: usize,
}

impl Ladder {
    /// For the noisy maximum. A question with probability of error at most q stands on the rung above z = Φ⁻¹(q/(m-1)).
    ///
    /// # Theorem
    /// One ballot moves z by at most √2/σ (THEORY, Votes): 32 rungs, and one for the rounding of logarithms, which is far below a rung. The cost of a rung is
    /// that of its largest q, which bounds that of every smaller one [PSMRTE18, Theorem 6].
    pub(crate) fn of_maximum(candidates: usize, deviation: f64, alpha: f64) -> Self {
        if candidates < 2 {
            return Self::new(Vec::new(), vec![0.0], 0);
        }
        let ln_others = ((candidates - 1) as f64).ln();
        let width = std::f64::consts::SQRT_2 / deviation / FINE as f64;
        let anyway = concentrated(0.0, rho(deviation), alpha);
        // From the top, q = (m-1)/2, down to where nearly nothing is paid.
        let (mut levels, mut costs) = (Vec::new(), vec![anyway]);
        for rung in 1..MOST_RUNGS {
            let level = ln_others + ln_normal_below(-width * rung as f64);
            let cost = concentrated(level, rho(deviation), alpha);
            levels.push(level);
            costs.push(cost);
            if cost <= SMALL * anyway {
                break;
            }
        }
        levels.reverse();
        costs.reverse();
        Self::new(levels, costs, FINE + 1)
    }

    /// For the screen. A rung is the largest count, from none to all `teachers`, and one ballot moves it by at most one. The threshold may lie `aside` by so many
    /// deviations, to either side: by which the rounding of noise moves it.
    pub(crate) fn of_screen(threshold: u64, deviation: f64, teachers: u32, aside: f64, alpha: f64) -> Self {
        let cost = |most: u32| {
            let at = |aside: f64| coin((f64::from(most) - threshold as f64) / deviation + aside, deviation, 0.0, alpha);
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

/// A question on its rung.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) ladder: Arc<Ladder>,
    /// One of the ladder's.
    pub(crate) rung: usize,
}

impl Place {
    /// What the question cost.
    pub(crate) fn cost(&self) -> f64 {
        self.ladder.costs.get(self.rung).copied().unwrap_or(f64::INFINITY)
    }

    /// The rungs that so many ballots can take it to.
    fn within(&self, ballots: usize) -> std::ops::Range<usize> {
        let rungs = ballots.saturating_mul(self.ladder.reach);
        let last = self.rung.saturating_add(rungs).saturating_add(1);
        self.rung.saturating_sub(rungs)..last.min(self.ladder.changes.len())
    }
}

fn largest(changes: &[f64]) -> f64 {
    changes.iter().copied().fold(0.0, f64::max)
}

/// A β-smooth bound on how far one person, who has one ballot in each question, can move the sum of all costs: max e^(-βd) Σ A(d).
///
/// # Theorem
/// [NRS07; PSMRTE18, Algorithms 4 and 5]: A(d) of a question, the most that one ballot changes at any votes within d ballots, is at most A(d + 1) of any neighbour, whose rungs within
/// d + 1 ballots are these and more. So S(x) ≤ e^β S(x'), and S ≥ Σ A(0).
pub(crate) fn smooth_sum(places: &[Place], beta: f64) -> f64 {
    let most: f64 = places.iter().map(|place| largest(&place.ladder.changes)).sum();
    let mut windows: Vec<(std::ops::Range<usize>, f64)> = places.iter().map(|place| (place.rung..place.rung, 0.0)).collect();
    let mut best = 0.0_f64;
    for ballots in 0.. {
        let shrink = (-beta * f64::from(ballots)).exp();
        // From here on nothing is larger.
        if ballots > 0 && shrink * most <= best {
            break;
        }
        let mut sum = 0.0;
        for (place, (seen, change)) in places.iter().zip(&mut windows) {
            let now = place.within(ballots as usize);
            let changes = &place.ladder.changes;
            *change = change.max(largest(&changes[now.start..seen.start])).max(largest(&changes[seen.end..now.end]));
            *seen = now;
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
