//! A rough estimate of a composition, used to choose tilt, grid and window.

use super::golden_section;
use crate::accounting::pld::Law;

/// A few hundred cells of each law with their P-mass and mean loss.
pub(in crate::accounting) struct Sketch {
    factors: Vec<(Vec<(f64, f64)>, f64)>,
}

/// A tilt of the losses, and the properties of their tilted sum.
#[derive(Clone, Copy, Debug)]
pub(in crate::accounting) struct Tilt {
    pub(in crate::accounting) theta: f64,
    /// ln E[e^(θL)] of the sum under P.
    pub(in crate::accounting) ln_total: f64,
    /// Standard deviation of the tilted sum.
    pub(in crate::accounting) deviation: f64,
}

impl Tilt {
    /// Chernoff's bound on ln δ(ε), up to the factor from the payoff of the tilt.
    pub(in crate::accounting) fn ln_delta(&self, epsilon: f64) -> f64 {
        self.ln_total - self.theta * epsilon - self.theta.ln_1p()
    }
}

impl Sketch {
    /// Sketches a composition without the upper tail of mass `negligible` of each law.
    ///
    /// A rarely sampled law has a few huge losses that are too unlikely to matter. If they were kept, they
    /// would dominate every moment.
    pub(in crate::accounting) fn new(factors: &[(Law, u64)], negligible: f64) -> Self {
        Self { factors: factors.iter().map(|(law, count)| (cells(law, negligible), *count as f64)).collect() }
    }

    /// ln E[e^(θL)] of the sum, and mean and variance of the tilted sum.
    fn cumulants(&self, theta: f64) -> (f64, f64, f64) {
        let (mut ln_total, mut mean, mut variance) = (0.0, 0.0, 0.0);
        for (cells, count) in &self.factors {
            let shift = largest_exponent(cells, theta);
            let (mut zeroth, mut first, mut second) = (0.0, 0.0, 0.0);
            for (mass, loss) in cells {
                let weight = mass * (theta * loss - shift).exp();
                zeroth += weight;
                first += weight * loss;
                second += weight * loss * loss;
            }
            first /= zeroth;
            ln_total += count * (zeroth.ln() + shift);
            mean += count * first;
            variance += count * (second / zeroth - first * first).max(0.0);
        }
        (ln_total, mean, variance)
    }

    /// The number of composed releases.
    pub(in crate::accounting) fn releases(&self) -> f64 {
        self.factors.iter().map(|(_, count)| count).sum::<f64>().max(1.0)
    }

    /// The mean of the sum under P.
    pub(in crate::accounting) fn mean(&self) -> f64 {
        self.cumulants(0.0).1
    }

    fn tilt(&self, theta: f64) -> Tilt {
        let (ln_total, _, variance) = self.cumulants(theta);
        Tilt { theta, ln_total, deviation: variance.sqrt() }
    }

    /// The tilt that minimises the objective, a function of θ and ln E[e^(θL)].
    fn best(&self, objective: impl Fn(f64, f64) -> f64) -> Tilt {
        let value = |ln_theta: f64| {
            let theta = ln_theta.exp();
            objective(theta, self.cumulants(theta).0)
        };
        // The objective is quasi-convex in ln θ, up to the coarseness of the sketch.
        self.tilt(golden_section((-7.0, 17.0), 0.03, value).exp())
    }

    /// The largest step that should widen the bracket of ε by at most `gap`.
    ///
    /// A loss at distance u from a node and h - u from the next is spread over both, which adds u(h - u) to
    /// the variance: on average h²/6, and at most rh at distance r from the node where the grid is anchored.
    /// Each release adds (θ+1)/2 of this to the upper bound, and lowers the lower bound by about twice that.
    pub(in crate::accounting) fn step_for(&self, gap: f64, theta: f64) -> f64 {
        let mut spots: Vec<(f64, f64)> = Vec::new();
        for (cells, count) in &self.factors {
            let shift = largest_exponent(cells, theta);
            let weight = |(mass, loss): &(f64, f64)| mass * (theta * loss - shift).exp();
            let total: f64 = cells.iter().map(weight).sum();
            let mut below = 0.0;
            let anchor = cells.iter().find(|(mass, _)| {
                below += mass;
                below >= 0.5
            });
            let anchor = anchor.map_or(0.0, |(_, loss)| *loss);
            spots.extend(cells.iter().map(|cell| (count * weight(cell) / total, (cell.1 - anchor).abs())));
        }
        let widening = |h: f64| {
            1.5 * (theta + 1.0)
                * spots.iter().map(|(weight, r)| weight * (r * h).min(h * h / 6.0)).sum::<f64>()
        };
        let (mut low, mut high) = (-30.0_f64, 5.0_f64);
        for _ in 0..20 {
            let middle = 0.5 * (low + high);
            if widening(middle.exp()) > gap { high = middle } else { low = middle }
        }
        low.exp()
    }

    /// The least ε that the Rényi conversion gives for δ.
    pub(in crate::accounting) fn epsilon(&self, delta: f64) -> f64 {
        let convert = |theta: f64, ln_total: f64| {
            (ln_total - delta.ln() - theta.ln_1p()) / theta + (theta / (1.0 + theta)).ln()
        };
        let tilt = self.best(convert);
        convert(tilt.theta, tilt.ln_total).max(0.0)
    }

    /// The tilt that minimises Chernoff's bound on δ(ε).
    ///
    /// The tilt is capped near the one that raises a probability of e^`ln_delta` at loss ε to one. Where
    /// losses are bounded and ε is near their largest sum, the uncapped minimum is at infinity.
    pub(in crate::accounting) fn tilt_for(&self, epsilon: f64, ln_delta: f64) -> Tilt {
        let tilt = self.best(|theta, ln_total| ln_total - theta * epsilon - theta.ln_1p());
        let distance = (epsilon - self.mean()).max(1e-12);
        let most = 2.0 * (10.0 - ln_delta) / distance;
        if tilt.theta <= most { tilt } else { self.tilt(most) }
    }
}

/// The number to subtract from the exponents θL, so that the largest stays in range.
fn largest_exponent(cells: &[(f64, f64)], theta: f64) -> f64 {
    let top = cells.iter().map(|(_, loss)| theta * loss).fold(f64::NEG_INFINITY, f64::max);
    (top - 600.0).max(0.0)
}

/// Cells of one law, up to where at most `negligible` of its mass lies above.
fn cells(law: &Law, negligible: f64) -> Vec<(f64, f64)> {
    let mut marks = law.landmarks();
    marks.dedup();
    let infinite = law.infinite();
    // A mark at an atom may be rounded to either side of the atom.
    let tails = |mark: f64| law.tails(mark + law.rounding(mark));
    let mut cells = Vec::with_capacity(marks.len() + 2);
    let Some(&first) = marks.first() else { return cells };
    let (mut left, mut at) = (tails(first), first);
    cells.push((left.p.below, first));
    for &mark in &marks[1..] {
        if left.p.above - infinite <= negligible {
            break;
        }
        let right = tails(mark);
        let ((p, p_error), (q, q_error)) = (left.p.between(right.p), left.q.between(right.q));
        // Masses of the size of rounding errors have no meaningful mean; other means lie in the cell.
        if p > 4.0 * p_error && q > 4.0 * q_error {
            cells.push((p, (p / q).ln().clamp(at, mark)));
        } else if p > 0.0 {
            cells.push((p, 0.5 * (at + mark)));
        }
        (left, at) = (right, mark);
    }
    // The mass above the last mark.
    let beyond = left.p.above - infinite;
    if beyond > negligible {
        cells.push((beyond, at));
    }
    cells.retain(|(mass, _)| *mass > 0.0);
    cells
}
