//! A rough picture of a composition, to choose the tilt, the grid and the window by. No bound depends on it.

use super::law::Law;

/// A few hundred cells of each law with their P-mass and mean loss.
pub(crate) struct Sketch {
    factors: Vec<(Vec<(f64, f64)>, f64)>,
}

/// Where the tilted losses lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Saddle {
    pub(crate) theta: f64,
    /// Estimate of ε, or of ln δ, that goes with it.
    pub(crate) value: f64,
    /// Standard deviation of the tilted sum.
    pub(crate) deviation: f64,
}

impl Sketch {
    pub(crate) fn new(factors: &[(Law, u64)]) -> Self {
        Self { factors: factors.iter().map(|(law, count)| (cells(law), *count as f64)).collect() }
    }

    /// ln E[e^(θL)] of the sum under P, its mean and its variance when tilted.
    fn cumulants(&self, theta: f64) -> (f64, f64, f64) {
        let (mut ln_total, mut mean, mut variance) = (0.0, 0.0, 0.0);
        for (cells, count) in &self.factors {
            let top = cells.iter().map(|(_, loss)| theta * loss).fold(f64::NEG_INFINITY, f64::max);
            let shift = (top - 600.0).max(0.0);
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

    fn best(&self, objective: impl Fn(f64, f64) -> f64) -> Saddle {
        let value = |ln_theta: f64| {
            let theta = ln_theta.exp();
            objective(theta, self.cumulants(theta).0)
        };
        // Golden section on ln θ; the objective is quasi-convex up to the sketch's coarseness.
        let (mut low, mut high) = (-7.0_f64, 17.0_f64);
        let ratio = 0.618_033_988_749_894_9;
        let (mut left, mut right) = (high - ratio * (high - low), low + ratio * (high - low));
        let (mut at_left, mut at_right) = (value(left), value(right));
        while high - low > 0.03 {
            if at_left < at_right || at_right.is_nan() {
                (high, right, at_right) = (right, left, at_left);
                left = high - ratio * (high - low);
                at_left = value(left);
            } else {
                (low, left, at_left) = (left, right, at_right);
                right = low + ratio * (high - low);
                at_right = value(right);
            }
        }
        let theta = (0.5 * (low + high)).exp();
        let (ln_total, _, variance) = self.cumulants(theta);
        Saddle { theta, value: objective(theta, ln_total), deviation: variance.sqrt() }
    }

    /// The largest step at which the grid should widen the bracket of ε by no more than `gap`.
    ///
    /// A loss at distance u from a node and h - u from the next is spread over both, which adds u(h - u) to the variance: on
    /// average h²/6, and at most rh at distance r from the node where the grid is anchored. Per step this adds (θ+1)/2 of it
    /// to the upper bound, and about twice that comes off the lower one.
    pub(crate) fn step_for(&self, gap: f64, theta: f64) -> f64 {
        let mut spots: Vec<(f64, f64)> = Vec::new();
        for (cells, count) in &self.factors {
            let top = cells.iter().map(|(_, loss)| theta * loss).fold(f64::NEG_INFINITY, f64::max);
            let shift = (top - 600.0).max(0.0);
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
        let widening =
            |h: f64| 1.5 * (theta + 1.0) * spots.iter().map(|(weight, r)| weight * (r * h).min(h * h / 6.0)).sum::<f64>();
        let (mut low, mut high) = (-30.0_f64, 5.0_f64);
        for _ in 0..20 {
            let middle = 0.5 * (low + high);
            if widening(middle.exp()) > gap { high = middle } else { low = middle }
        }
        low.exp()
    }

    /// The same tilt, but no more of it than lifts a probability of e^`ln_delta` at loss `epsilon` to one: where losses are
    /// bounded and ε is near their largest sum, the best bound is at infinity.
    fn moderate(&self, saddle: Saddle, epsilon: f64, ln_delta: f64) -> Saddle {
        let distance = (epsilon - self.cumulants(0.0).1).max(1e-12);
        let most = 2.0 * (10.0 - ln_delta) / distance;
        if saddle.theta <= most {
            return saddle;
        }
        Saddle { theta: most, deviation: self.cumulants(most).2.sqrt(), ..saddle }
    }

    /// The tilt at which the Rényi conversion gives the least ε for δ; `value` is that ε.
    pub(crate) fn saddle_for_delta(&self, delta: f64) -> Saddle {
        let saddle =
            self.best(|theta, ln_total| (ln_total - delta.ln() - (1.0 + theta).ln()) / theta + (theta / (1.0 + theta)).ln());
        if saddle.value <= 0.0 {
            // ε is zero or nearly so: what matters is δ(0).
            return Saddle { value: 0.0, ..self.saddle_for_epsilon(0.0) };
        }
        self.moderate(saddle, saddle.value, delta.ln())
    }

    /// The tilt at which Chernoff's bound on δ(ε) is least; `value` is the ln of that bound.
    pub(crate) fn saddle_for_epsilon(&self, epsilon: f64) -> Saddle {
        let saddle = self.best(|theta, ln_total| ln_total - theta * epsilon - (1.0 + theta).ln());
        self.moderate(saddle, epsilon, saddle.value.min(0.0))
    }
}

fn cells(law: &Law) -> Vec<(f64, f64)> {
    let mut marks = law.landmarks();
    marks.dedup();
    let mut cells = Vec::with_capacity(marks.len() + 1);
    let Some(&first) = marks.first() else { return cells };
    let mut left = law.tails(first);
    cells.push((left.p.below, first));
    for &mark in &marks[1..] {
        let right = law.tails(mark);
        let (p, q) = (left.p.between(right.p).0, left.q.between(right.q).0);
        if p > 0.0 && q > 0.0 {
            cells.push((p, (p / q).ln()));
        }
        left = right;
    }
    cells.retain(|(mass, _)| *mass > 0.0);
    cells
}
