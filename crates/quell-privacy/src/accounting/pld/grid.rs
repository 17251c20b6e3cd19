//! A law of loss laid on a grid of losses ih, once from above and once from below.
//!
//! A pair (P, Q) is, up to what matters for privacy, the random variable Y = dQ/dP under P, and one pair dominates
//! another exactly if its Y is larger in convex order: δ(ε) = E[(1 - e^ε Y)₊] is an expectation of a convex function of Y.
//! So an upper bound is a mean-preserving *spread* of Y onto the grid, and a lower bound is a mean-preserving *contraction*
//! onto the grid. Both move the profile by O(h²), and both stay bounds under composition. [DGKKM22, §3; THEORY, Grid]

use super::law::{Law, TAIL_ERROR, Tails};
use crate::special::bisect_smallest;

/// Probabilities under P of the losses offset + (start + j)h, and of an infinite loss.
#[derive(Clone, Debug)]
pub(crate) struct Masses {
    pub(crate) offset: f64,
    pub(crate) start: i64,
    pub(crate) weights: Vec<f64>,
    pub(crate) infinite: f64,
}

/// The law on the grid of step `h`: dominating, and (if wanted) dominated.
pub(crate) struct Discretized {
    pub(crate) upper: Masses,
    pub(crate) lower: Option<Masses>,
}

/// Lays `law` on a grid of step `h`, between the losses `low` and `high`.
///
/// # Contract
/// The upper masses dominate the pair: what lies above `high` becomes infinite, what lies below `low` rises to it. The
/// lower masses are dominated by it: what lies outside, but for infinite losses, is dropped. Rounding errors of the tails go to the safe side.
pub(crate) fn discretize(law: &Law, h: f64, (low, high): (f64, f64), want_lower: bool) -> Discretized {
    let offset = offset(law, h, (low, high));
    let start = ((low - offset) / h).floor() as i64;
    let cells = (((high - offset) / h).ceil() as i64 - start).max(1) as usize;
    let loss = |node: usize| offset + (start + node as i64) as f64 * h;
    let mut upper = vec![0.0; cells + 1];
    let mut lower = vec![(0.0, 0.0); if want_lower { cells } else { 0 }];
    let first = law.tails(loss(0));
    let mut left = first;
    for cell in 0..cells {
        let right = law.tails(loss(cell + 1));
        let masses = CellMasses::new(left, right, loss(cell), h);
        let (at_left, at_right) = masses.spread();
        upper[cell] += at_left;
        upper[cell + 1] += at_right;
        if want_lower {
            lower[cell] = masses.reduced();
        }
        left = right;
    }
    upper[0] += first.p.below * (1.0 + TAIL_ERROR);
    let upper = Masses { offset, start, weights: upper, infinite: left.p.above * (1.0 + TAIL_ERROR) };
    let lower = want_lower.then(|| Masses { offset, start, weights: contract(&lower, h), infinite: law.infinite() });
    Discretized { upper, lower }
}

/// Where the grid is anchored: at the mean of the losses within a step of it, near the median. A record that is rarely
/// sampled has nearly all its mass at one small loss; with a node there the grid loses nothing, next to one nearly all.
fn offset(law: &Law, h: f64, (low, high): (f64, f64)) -> f64 {
    let mut anchor = bisect_smallest(low, high, 40, |x| law.tails(x).p.above < 0.5);
    for _ in 0..4 {
        let (left, right) = (law.tails(anchor - h), law.tails(anchor + h));
        let mean = (left.p.between(right.p).0 / left.q.between(right.q).0).ln();
        if !(mean - anchor).is_finite() || (mean - anchor).abs() > h {
            break;
        }
        anchor = mean;
    }
    anchor
}

/// Mass of the losses in one cell (x, x + h] under P and, times e^x, under Q, with what each may be off by.
struct CellMasses {
    p: f64,
    p_error: f64,
    q: f64,
    q_error: f64,
    h: f64,
}

impl CellMasses {
    fn new(left: Tails, right: Tails, x: f64, h: f64) -> Self {
        let ((p, p_error), (q, q_error)) = (left.p.between(right.p), left.q.between(right.q));
        let scale = x.exp();
        if scale.is_finite() && scale > 0.0 {
            return Self { p, p_error, q: q * scale, q_error: q_error * scale, h };
        }
        // e^x is out of range, so only P is known here; the widest q that goes with it is safe for either bound.
        Self { p, p_error, q: p, q_error: p, h }
    }

    /// P-masses at the two ends of the cell: at least p in all, at most q under Q.
    ///
    /// For k outside the cell the profile Σ w (1 - k/kᵢ)₊ is then at least the true one, p - kq or 0; inside it is the
    /// chord of a convex function.
    fn spread(&self) -> (f64, f64) {
        let (p, q) = (self.p + self.p_error, (self.q - self.q_error).max(0.0));
        // a + b = p and a + b e^-h = q (in units of e^-x)
        let b = ((p - q) / -(-self.h).exp_m1()).clamp(0.0, p);
        (p - b, b)
    }

    /// P-masses at the two ends with at most p in all and at least q under Q, as if the cell lay at its mean.
    fn reduced(&self) -> (f64, f64) {
        let (p, q) = ((self.p - self.p_error).max(0.0), self.q + self.q_error);
        if p <= q {
            return (p, 0.0); // rounding alone: all losses in the cell are above its left end
        }
        let b = (p - q) / -(-self.h).exp_m1();
        if b <= p { (p - b, b) } else { (0.0, q * self.h.exp()) }
    }
}

/// The largest contraction onto the grid, nearly: see the module header.
///
/// `cells[j]` are the P-masses (a, b) at the ends of cell j that have the mass and the mean of the cell. Their profile δ⁺ is
/// piecewise linear in k = e^ε with kinks on the grid. Inside cell j it exceeds the true one by at most a tent of height
/// D = at(e^h - 1) at the fraction t = b/(ae^h + b) of the cell, reached when the cell's mass sits at one point. So lowering
/// δ⁺ at the nodes by c with (1-t)cⱼ + tcⱼ₊₁ ≥ D in each cell gives a piecewise linear function below the true profile.
/// Where it would fall below the trivial profiles, 0 or (total P) - k (total Q), it is held at them. The largest convex
/// function below it is the profile that is returned.
fn contract(cells: &[(f64, f64)], h: f64) -> Vec<f64> {
    let nodes = cells.len() + 1;
    let mut spread = vec![0.0; nodes];
    for (j, (a, b)) in cells.iter().enumerate() {
        spread[j] += a;
        spread[j + 1] += b;
    }
    let (grow, up, down) = (h.exp(), h.exp_m1(), -(-h).exp_m1());
    let tents: Vec<Tent> = cells.iter().map(|&(a, b)| Tent::new(a, b, grow, up)).collect();
    let (above_zero, above_line) = profile_at_nodes(&spread, grow, up, down);
    let Some(c) = lowering(&tents, &above_zero, &above_line) else {
        return vec![0.0; nodes]; // the grid is too coarse to say anything
    };
    let mut weights = vec![0.0; nodes];
    for i in 0..nodes {
        let (before, after) = (i.checked_sub(1), (i + 1 < nodes).then_some(i + 1));
        let trivial = |bound: &[f64]| [before, Some(i), after].into_iter().flatten().all(|j| c[j] == bound[j]);
        if trivial(&above_zero) || trivial(&above_line) {
            continue; // a line, without a kink
        }
        // The slope of c changes at node i by this much, in P-mass: k ((cᵢ₊₁ - cᵢ)/(k(e^h - 1)) - (cᵢ - cᵢ₋₁)/(k(1 - e^-h))).
        let after = after.map_or(0.0, |j| (c[j] - c[i]) / up);
        let before = before.map_or(0.0, |j| (c[i] - c[j]) / down);
        weights[i] = spread[i] - after + before;
    }
    make_convex(&mut weights, h);
    weights
}

/// By how much the chord of a cell may exceed the profile: at most a tent of this height at this fraction of the cell.
struct Tent {
    height: f64,
    at: f64,
}

impl Tent {
    fn new(a: f64, b: f64, grow: f64, up: f64) -> Self {
        if a <= 0.0 || b <= 0.0 {
            return Self { height: 0.0, at: 0.5 };
        }
        let at = b / (a * grow + b);
        Self { height: a * at * up * (1.0 + 1e-12), at } // the factor covers the rounding of these lines
    }

    /// What to take off at the two ends: more at the end that is nearer, and less where there is far less to take than at the
    /// other. Any such pair is valid; this one was found to lose least.
    fn asked(&self, left: f64, right: f64) -> (f64, f64) {
        let (left, right) = if left.min(right) > 0.2 * left.max(right) { (1.0, 1.0) } else { (left * left, right * right) };
        let (l, r) = ((1.0 - self.at).powi(3) * left, self.at.powi(3) * right);
        let total = (1.0 - self.at) * l + self.at * r;
        if total > 0.0 { (self.height * l / total, self.height * r / total) } else { (self.height, self.height) }
    }

    fn covered(&self, left: f64, right: f64) -> bool {
        (1.0 - self.at) * left + self.at * right >= self.height * (1.0 - 1e-13)
    }
}

/// How far to lower the profile at each node, never below a trivial one; `None` if that cannot be.
fn lowering(tents: &[Tent], above_zero: &[f64], above_line: &[f64]) -> Option<Vec<f64>> {
    let cap = |i: usize| above_zero[i].min(above_line[i]);
    let mut c = vec![0.0_f64; tents.len() + 1];
    for (j, tent) in tents.iter().enumerate() {
        let (left, right) = tent.asked(cap(j), cap(j + 1));
        c[j] = c[j].max(left);
        c[j + 1] = c[j + 1].max(right);
    }
    for (i, c) in c.iter_mut().enumerate() {
        *c = c.min(cap(i));
    }
    // What an end that is held cannot give, the other end of the cell gives.
    for (j, tent) in tents.iter().enumerate() {
        if c[j] == above_line[j] && !tent.covered(c[j], c[j + 1]) {
            c[j + 1] = ((tent.height - (1.0 - tent.at) * c[j]) / tent.at).min(cap(j + 1));
        }
    }
    for (j, tent) in tents.iter().enumerate().rev() {
        if c[j + 1] == above_zero[j + 1] && !tent.covered(c[j], c[j + 1]) {
            c[j] = ((tent.height - tent.at * c[j + 1]) / (1.0 - tent.at)).min(cap(j));
        }
    }
    let held = |j: usize, bound: &[f64]| c[j] == bound[j] && c[j + 1] == bound[j + 1];
    let fine = |(j, tent): (usize, &Tent)| tent.covered(c[j], c[j + 1]) || held(j, above_zero) || held(j, above_line);
    tents.iter().enumerate().all(fine).then_some(c)
}

/// At each node i: Σ_{j>i} wⱼ(1 - e^((i-j)h)), the profile, and Σ_{j<i} wⱼ(e^((i-j)h) - 1), its height above its tangent at k = 0.
fn profile_at_nodes(weights: &[f64], grow: f64, up: f64, down: f64) -> (Vec<f64>, Vec<f64>) {
    let nodes = weights.len();
    let (mut above_zero, mut above_line) = (vec![0.0; nodes], vec![0.0; nodes]);
    let mut discounted = 0.0;
    for i in (1..nodes).rev() {
        above_zero[i - 1] = above_zero[i] + down * (discounted + weights[i]);
        discounted = (discounted + weights[i]) / grow;
    }
    let mut compounded = 0.0;
    for i in 1..nodes {
        above_line[i] = above_line[i - 1] + up * (compounded + weights[i - 1]);
        compounded = (compounded + weights[i - 1]) * grow;
    }
    (above_zero, above_line)
}

/// Replaces the profile with kinks `weights` by the largest convex one below it: a node with negative mass is removed
/// and its mass divided between its neighbours so that the sums under P and Q stay.
fn make_convex(weights: &mut [f64], h: f64) {
    let mut kept: Vec<usize> = Vec::with_capacity(weights.len());
    for i in 0..weights.len() {
        kept.push(i);
        // The right neighbour of the top of the stack is the next node; the last one has none.
        let right = i + 1;
        while let Some(&node) = kept.last() {
            if weights[node] >= 0.0 {
                break;
            }
            let debt = std::mem::take(&mut weights[node]);
            kept.pop();
            match kept.last().copied() {
                // The profile ends at zero from above, so a debt of the last node is rounding, which the caller pays for.
                _ if right >= weights.len() => {}
                Some(left) => {
                    let (l, r) = ((node - left) as f64 * h, (right - node) as f64 * h);
                    let share = (-l).exp() * (-r).exp_m1() / (-(l + r)).exp_m1();
                    weights[left] += debt * share;
                    weights[right] += debt * (1.0 - share);
                }
                None => weights[right] += debt,
            }
        }
    }
}
