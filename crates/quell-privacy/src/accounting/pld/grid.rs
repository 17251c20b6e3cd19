//! Discretises a law on a grid of losses ih, from above and from below.
//!
//! A pair (P, Q) is, up to what matters for privacy, the random variable Y = dQ/dP under P, and one pair
//! dominates another exactly if its Y is larger in convex order: δ(ε) = E[(1 - e^ε Y)₊] is an expectation of
//! a convex function of Y. So an upper bound is a mean-preserving *spread* of Y onto the grid, and a lower
//! bound is a mean-preserving *contraction* onto the grid. Both move the profile by O(h²), and both stay
//! bounds under composition. [DGKKM22, §3; THEORY, Grid]
//!
//! Not every point of the grid needs a node: where there is little mass the nodes are far apart.

use super::law::{Law, Tails, tail_error};
use crate::special::{ROUNDOFF, bisect_smallest};

/// Probabilities under P of the losses offset + index·h, and of an infinite loss.
#[derive(Clone, Debug)]
pub(crate) struct Masses {
    pub(crate) offset: f64,
    /// Increasing order.
    pub(crate) indices: Vec<i64>,
    pub(crate) weights: Vec<f64>,
    pub(crate) infinite: f64,
}

/// A grid for one law: its step, its ends, and how finely it must resolve which losses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) h: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The tilt under which the masses will be composed …
    pub(crate) theta: f64,
    /// … and the share of the tilted mass that decides the answer.
    pub(crate) relevant: f64,
}

/// A law at the nodes of a grid: exact, except for the rounding of its tails.
pub(crate) struct OnGrid {
    offset: f64,
    h: f64,
    nodes: Vec<GridNode>,
    infinite: f64,
}

impl OnGrid {
    /// Evaluates the law at the nodes; `None` if there are too many nodes.
    pub(crate) fn new(law: &Law, grid: Grid) -> Option<Self> {
        let offset = anchor(law, grid);
        Some(Self { offset, h: grid.h, nodes: nodes(law, grid, offset)?, infinite: law.infinite() })
    }

    fn cells(&self) -> impl Iterator<Item = CellMasses> + '_ {
        self.nodes.windows(2).map(|pair| {
            let (left, right) = (&pair[0], &pair[1]);
            let width = (right.index - left.index) as f64 * self.h;
            CellMasses::new(left.tails, right.tails, self.offset + left.index as f64 * self.h, width)
        })
    }

    fn masses(&self, weights: Vec<f64>, infinite: f64) -> Masses {
        Masses {
            offset: self.offset,
            indices: self.nodes.iter().map(|node| node.index).collect(),
            weights,
            infinite,
        }
    }

    /// Masses that dominate the pair.
    ///
    /// Mass above the last node becomes infinite, and mass below the first node moves up to it.
    pub(crate) fn upper(&self) -> Masses {
        let mut weights = vec![0.0; self.nodes.len()];
        for (j, cell) in self.cells().enumerate() {
            let (at_left, at_right) = cell.spread();
            weights[j] += at_left;
            weights[j + 1] += at_right;
        }
        let (first, last) = (&self.nodes[0].tails, &self.nodes[self.nodes.len() - 1].tails);
        weights[0] += first.p.below + tail_error(first.p.below);
        self.masses(weights, last.p.above + tail_error(last.p.above))
    }

    /// Masses that are dominated by the pair.
    ///
    /// Mass beyond the nodes is dropped, except for infinite losses.
    pub(crate) fn lower(&self) -> Masses {
        let cells: Vec<Cell> = self
            .cells()
            .map(|cell| {
                let (a, b) = cell.reduced();
                Cell { a, b, width: cell.width }
            })
            .collect();
        let weights = contract(&cells).unwrap_or_else(|| self.collapse());
        self.masses(weights, self.infinite)
    }

    /// All mass at one node, at or below the mean: dominated by any law with these totals.
    fn collapse(&self) -> Vec<f64> {
        let (first, last) = (&self.nodes[0].tails, &self.nodes[self.nodes.len() - 1].tails);
        let ((p, p_error), (q, q_error)) = (first.p.between(last.p), first.q.between(last.q));
        let (p, q) = ((p - p_error).max(0.0), q + q_error);
        // p/q and q e^loss may overflow, logarithms do not; q is positive, because its error is.
        let (mean, ln_q) = (p.ln() - q.ln(), q.ln());
        let mut weights = vec![0.0; self.nodes.len()];
        // A node that is above the mean by rounding alone is covered by the slack of the loss.
        let below =
            |node: &GridNode| self.offset + node.index as f64 * self.h <= mean + 1.5 * (p_error + q_error);
        if let Some(j) = self.nodes.iter().rposition(below) {
            weights[j] = p.min((ln_q + self.offset + self.nodes[j].index as f64 * self.h).exp());
        }
        weights
    }
}

/// The anchor of the grid: an atom, or a mean loss near the median.
///
/// It is an atom if the grid separates the atoms, otherwise the mean of the losses within a step of the
/// anchor. A record that is rarely sampled has nearly all its mass at one small loss. A node at that loss
/// makes the grid nearly exact; a node next to it loses nearly everything.
fn anchor(law: &Law, Grid { h, low, high, theta, .. }: Grid) -> f64 {
    // Without a tilt the whole profile is needed, also next to the largest loss, where a node at the atom
    // makes the bounds on the density worse.
    if let Some(lattice) = law.lattice().filter(|lattice| theta > 0.0 && lattice.spacing >= 2.0 * h) {
        return lattice.atom;
    }
    // A sample of fixed size has an atom at zero.
    if law.tails(0.0).p.below - law.tails(-f64::MIN_POSITIVE).p.below > 0.2 {
        return 0.0;
    }
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

/// Largest excess of a node's loss over that of its mass, in units of roundoff.
///
/// `compose` adds them to the slack of each step.
pub(super) const CHARGED_TO_SLACK: f64 = 600.0;

/// Most nodes of one law; so many take about 100 MB.
const MOST_NODES: usize = 1 << 20;

/// A point of the grid that may carry mass.
struct GridNode {
    index: i64,
    tails: Tails,
}

/// Nodes from `low` to `high`: every point around the anchor, and wider strides in the tails.
///
/// The strides grow as the tilted mass beyond decreases. A law with few losses has nodes beside each loss,
/// and nowhere else.
fn nodes(law: &Law, Grid { h, low, high, theta, relevant }: Grid, offset: f64) -> Option<Vec<GridNode>> {
    let at = |index: i64| GridNode { index, tails: law.tails(offset + index as f64 * h) };
    if let Some((losses, _)) = law.finite().filter(|(losses, _)| 3 * losses.len() <= MOST_NODES) {
        let inside = losses.iter().filter(|(loss, _)| (low..=high).contains(loss));
        // A loss at a node may be rounded to either side of it.
        let beside = inside.flat_map(|(loss, _)| {
            let nearest = ((loss - offset) / h).round() as i64;
            nearest - 1..=nearest + 1
        });
        let mut indices: Vec<i64> = beside.chain([-1, 0, 1]).collect();
        indices.sort_unstable();
        indices.dedup();
        return Some(indices.into_iter().map(at).collect());
    }
    // A cell of width m with the share w of the tilted mass causes as large an error as a cell of width 1
    // with the share m²w, as long as the tilt varies little within the cell. Where there is almost no mass,
    // the tilt may vary.
    let stride = |beyond: f64, loss: f64, last: i64| {
        let spare = 0.02 * relevant / (beyond * (theta * loss).min(600.0).exp()).max(1e-300);
        let widest = (0.25 + 0.3 * spare.ln().max(0.0)) / ((theta + 1.0) * h);
        (spare.sqrt().min(widest).min(1e9) as i64).clamp(1, 1 + last + last / 4)
    };
    let (bottom, top) = (((low - offset) / h).floor() as i64, ((high - offset) / h).ceil() as i64);
    let mut below = Vec::new();
    let (mut index, mut last) = (0, 1);
    let centre = at(0);
    let mut beyond = centre.tails.p.below;
    while index > bottom.min(-1) {
        last = stride(beyond, offset + index as f64 * h, last);
        index = (index - last).max(bottom.min(-1));
        let node = at(index);
        beyond = node.tails.p.below;
        below.push(node);
        if below.len() > MOST_NODES {
            return None;
        }
    }
    below.reverse();
    let mut nodes = below;
    let (mut index, mut last) = (0, 1);
    let mut beyond = centre.tails.p.above;
    nodes.push(centre);
    while index < top.max(1) {
        last = stride(beyond, offset + index as f64 * h, last);
        index = (index + last).min(top.max(1));
        let node = at(index);
        beyond = node.tails.p.above;
        nodes.push(node);
        if nodes.len() > MOST_NODES {
            return None;
        }
    }
    Some(nodes)
}

/// Mass of the losses in one cell (x, x + width], with error bounds.
///
/// `p` is the mass under P, and `q` is the mass under Q times e^x.
struct CellMasses {
    p: f64,
    p_error: f64,
    q: f64,
    q_error: f64,
    width: f64,
}

impl CellMasses {
    fn new(left: Tails, right: Tails, x: f64, width: f64) -> Self {
        let ((p, p_error), (q, q_error)) = (left.p.between(right.p), left.q.between(right.q));
        let scale = x.exp();
        if scale.is_finite() && scale > 0.0 {
            return Self { p, p_error, q: q * scale, q_error: q_error * scale, width };
        }
        // e^x is out of range, so only P is known here; the widest q that is compatible with it is safe for
        // either bound.
        Self { p, p_error, q: p, q_error: p, width }
    }

    /// P-masses at the two ends of the cell: at least p in all, at most q under Q.
    ///
    /// For k outside the cell the profile Σ w (1 - k/kᵢ)₊ is then at least the true one, p - kq or 0; inside
    /// it is the chord of a convex function.
    fn spread(&self) -> (f64, f64) {
        let (p, q) = (self.p + self.p_error, (self.q - self.q_error).max(0.0));
        // a + b = p and a + b e^-width = q (in units of e^-x)
        let b = ((p - q) / -(-self.width).exp_m1()).clamp(0.0, p);
        (p - b, b)
    }

    /// P-masses at the two ends: at most p in all, at least q under Q, with the cell at its mean.
    fn reduced(&self) -> (f64, f64) {
        let (p, q) = ((self.p - self.p_error).max(0.0), self.q + self.q_error);
        if p <= q {
            return (p, 0.0); // rounding alone: all losses in the cell are above its left end
        }
        // a + b = p and a + b e^-width = q, each solved by itself: in a wide cell p - b has no digits left.
        let fall = -(-self.width).exp_m1();
        let (a, b) = ((q - p * (-self.width).exp()) / fall, (p - q) / fall);
        if a < 0.0 {
            return (0.0, (q.ln() + self.width).exp().min(p));
        }
        // An atom at the right end is below it by rounding alone: the slack of the loss covers this.
        if a * self.width.exp_m1() <= CHARGED_TO_SLACK * ROUNDOFF * p { (0.0, p) } else { (a, b) }
    }
}

/// P-masses (a, b) at the ends of a cell, with its mass and mean.
struct Cell {
    a: f64,
    b: f64,
    width: f64,
}

/// Nearly the largest contraction onto the nodes; see the module documentation.
///
/// The cells' masses have a profile δ⁺ that is piecewise linear in k = e^ε with kinks at the nodes. Inside a
/// cell it exceeds the true profile by at most a tent of height D = at(e^width - 1) at the fraction t =
/// b/(ae^width + b) of the cell, reached when the cell's mass sits at one point. So lowering δ⁺ at the nodes
/// by c with (1-t)cⱼ + tcⱼ₊₁ ≥ D in each cell gives a piecewise linear function below the true profile. Where
/// it would fall below the trivial profiles, 0 or (total P) - k (total Q), it is clamped to them. The largest
/// convex function below it is the profile that is returned; `None` if the grid is too coarse for any.
fn contract(cells: &[Cell]) -> Option<Vec<f64>> {
    let nodes = cells.len() + 1;
    let mut spread = vec![0.0; nodes];
    for (j, cell) in cells.iter().enumerate() {
        spread[j] += cell.a;
        spread[j + 1] += cell.b;
    }
    let tents: Vec<Tent> = cells.iter().map(Tent::new).collect();
    let (above_zero, above_line) = profile_at_nodes(&spread, cells);
    let c = lowering(&tents, &above_zero, &above_line)?;
    let mut weights = vec![0.0; nodes];
    for i in 0..nodes {
        let (before, after) = (i.checked_sub(1), (i + 1 < nodes).then_some(i + 1));
        let trivial =
            |bound: &[f64]| [before, Some(i), after].into_iter().flatten().all(|j| c[j] == bound[j]);
        if trivial(&above_zero) || trivial(&above_line) {
            continue; // a line, without a kink
        }
        // The slope of c changes at node i by this much, in P-mass: k ((cᵢ₊₁ - cᵢ)/(kᵢ₊₁ - k) - (cᵢ -
        // cᵢ₋₁)/(k - kᵢ₋₁)).
        let after = after.map_or(0.0, |j| (c[j] - c[i]) / cells[i].width.exp_m1());
        let before = before.map_or(0.0, |j| (c[i] - c[j]) / -(-cells[j].width).exp_m1());
        weights[i] = spread[i] - after + before;
    }
    make_convex(&mut weights, cells);
    Some(weights)
}

/// The largest excess of the chord of a cell over the profile.
///
/// It is at most a tent of this height at this fraction of the cell.
struct Tent {
    height: f64,
    at: f64,
}

impl Tent {
    fn new(&Cell { a, b, width }: &Cell) -> Self {
        if a <= 0.0 || b <= 0.0 {
            return Self { height: 0.0, at: 0.5 };
        }
        let at = b / (a * width.exp() + b);
        Self { height: a * at * width.exp_m1() * (1.0 + 1e-12), at } // 1e-12 covers the rounding here
    }

    /// How much to lower the profile at the two ends, where `left` and `right` are available.
    ///
    /// The end that is nearer and has more gives more. Neither end gives most of what it has if the other end
    /// can give it. Any pair that covers the tent is valid; in trials these pairs lost least.
    fn asked(&self, left: f64, right: f64) -> (f64, f64) {
        let t = self.at;
        // In the upper tail the right end has almost nothing, and gives almost nothing.
        let share = if right < 0.05 * left && t < 0.99 { right / left } else { 1.0 };
        let (near, far) = ((1.0 - t).powi(3), (t * share).powi(3));
        let scale = self.height / ((1.0 - t) * near + t * far);
        let (mut l, mut r) = (scale * near, scale * far);
        if r > 0.2 * right && right < left {
            r = 0.2 * right;
            l = (self.height - t * r) / (1.0 - t);
        } else if l > 0.2 * left && left < right && t > 0.2 {
            l = 0.2 * left;
            r = (self.height - (1.0 - t) * l) / t;
        }
        (l, r)
    }

    fn covered(&self, left: f64, right: f64) -> bool {
        (1.0 - self.at) * left + self.at * right >= self.height * (1.0 - 1e-13)
    }
}

/// How far to lower the profile at each node, never below a trivial profile.
///
/// `None` if that is impossible.
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
    // Beyond a node that is clamped to a trivial profile, all nodes are clamped to it.
    let peak = (0..c.len()).max_by(|&i, &j| cap(i).total_cmp(&cap(j))).unwrap_or(0);
    if let Some(first) = (peak..c.len()).find(|&i| c[i] == above_zero[i]) {
        c[first..].copy_from_slice(&above_zero[first..]);
    }
    if let Some(last) = (0..=peak).rev().find(|&i| c[i] == above_line[i]) {
        c[..=last].copy_from_slice(&above_line[..=last]);
    }
    // What a clamped end cannot give, the other end of the cell gives.
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
    let fine = |(j, tent): (usize, &Tent)| {
        tent.covered(c[j], c[j + 1]) || held(j, above_zero) || held(j, above_line)
    };
    tents.iter().enumerate().all(fine).then_some(c)
}

/// The profile at each node, and its height above its tangent at k = 0.
///
/// At node i these are Σ_{j>i} wⱼ(1 - e^(lᵢ-lⱼ)) and Σ_{j<i} wⱼ(e^(lᵢ-lⱼ) - 1).
fn profile_at_nodes(weights: &[f64], cells: &[Cell]) -> (Vec<f64>, Vec<f64>) {
    let nodes = weights.len();
    let (mut above_zero, mut above_line) = (vec![0.0; nodes], vec![0.0; nodes]);
    let mut discounted = 0.0;
    for i in (1..nodes).rev() {
        let fall = -(-cells[i - 1].width).exp_m1();
        above_zero[i - 1] = above_zero[i] + fall * (discounted + weights[i]);
        discounted = (discounted + weights[i]) * (1.0 - fall);
    }
    let mut compounded = 0.0;
    for i in 1..nodes {
        let rise = cells[i - 1].width.exp_m1();
        above_line[i] = above_line[i - 1] + rise * (compounded + weights[i - 1]);
        compounded = (compounded + weights[i - 1]) * (1.0 + rise);
    }
    (above_zero, above_line)
}

/// Replaces the profile with kinks `weights` by the largest convex profile below it.
///
/// A node with negative mass is removed. Its mass is divided between its neighbours so that the sums under P
/// and Q stay the same.
fn make_convex(weights: &mut [f64], cells: &[Cell]) {
    let mut position = vec![0.0; weights.len()];
    for (j, cell) in cells.iter().enumerate() {
        position[j + 1] = position[j] + cell.width;
    }
    let mut kept: Vec<usize> = Vec::with_capacity(weights.len());
    for i in 0..weights.len() {
        kept.push(i);
        // The right neighbour of the top of the stack is the next node; the last node has none.
        let right = i + 1;
        while let Some(&node) = kept.last() {
            if weights[node] >= 0.0 {
                break;
            }
            let debt = std::mem::take(&mut weights[node]);
            kept.pop();
            match kept.last().copied() {
                // The profile ends at zero from above, so a negative mass at the last node is rounding, which
                // the caller covers.
                _ if right >= weights.len() => {}
                Some(left) => {
                    let (l, r) = (position[node] - position[left], position[right] - position[node]);
                    let share = (-l).exp() * (-r).exp_m1() / (-(l + r)).exp_m1();
                    weights[left] += debt * share;
                    weights[right] += debt * (1.0 - share);
                }
                None => weights[right] += debt,
            }
        }
    }
}
