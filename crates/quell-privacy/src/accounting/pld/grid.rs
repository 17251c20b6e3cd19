//! Discretises a law on a grid of losses ih, from above and from below.
//!
//! A pair (P, Q) is, up to what matters for privacy, the random variable Y = dQ/dP under P, and one pair
//! dominates another exactly if its Y is larger in convex order: δ(ε) = E[(1 - e^ε Y)₊] is an expectation of
//! a convex function of Y. So an upper bound is a mean-preserving *spread* of Y onto the grid, and a lower
//! bound is a mean-preserving *contraction* onto the grid. Both move the profile by O(h²), and both stay
//! bounds under composition. [DGKKM22, §3; THEORY, Grid]
//!
//! Not every point of the grid needs a node: where there is little mass the nodes are far apart.
//! [`contraction`](super::contraction) computes the contraction.

use super::{
    contraction::{Cell, contract},
    law::Law,
    tails::{Tails, tail_error},
};
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

/// A grid for one law: its step, its ends, and the losses that matter.
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

/// A law at the nodes of a grid, exact up to the rounding of tails.
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

    /// A fallback lower bound: one node, at or below the mean, carries all mass.
    ///
    /// Every law with the same masses under P and Q dominates it.
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
/// It is an atom if the grid separates the atoms. Otherwise it is a fixed point, found from the median: the
/// mean loss within one step of itself. A record that is rarely sampled has nearly all its mass at one small loss. A node at that loss
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
pub(super) const NODE_ROUNDOFFS: f64 = 600.0;

/// Most nodes of one law; so many take about 100 MB.
const MOST_NODES: usize = 1 << 20;

/// A point of the grid that may carry mass.
struct GridNode {
    index: i64,
    tails: Tails,
}

/// Nodes from `low` to `high`: dense around the anchor, with wider strides in the tails.
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

    /// P-masses at the two ends of the cell, for an upper bound.
    ///
    /// They are at least p in all, and at most q under Q. For k outside the cell the profile Σ w (1 - k/kᵢ)₊
    /// is then at least the true one, p - kq or 0; inside it is the chord of a convex function.
    fn spread(&self) -> (f64, f64) {
        let (p, q) = (self.p + self.p_error, (self.q - self.q_error).max(0.0));
        // a + b = p and a + b e^-width = q (in units of e^-x)
        let b = ((p - q) / -(-self.width).exp_m1()).clamp(0.0, p);
        (p - b, b)
    }

    /// P-masses at the two ends of the cell, for a lower bound.
    ///
    /// They are at most p in all, at least q under Q, and have the mean of the cell.
    fn reduced(&self) -> (f64, f64) {
        let (p, q) = ((self.p - self.p_error).max(0.0), self.q + self.q_error);
        if p <= q {
            return (p, 0.0); // rounding alone: all losses in the cell are above its left end
        }
        // a + b = p and a + b e^-width = q. b is not computed as p - a: in a wide cell that loses all digits.
        let fall = -(-self.width).exp_m1();
        let (a, b) = ((q - p * (-self.width).exp()) / fall, (p - q) / fall);
        if a < 0.0 {
            return (0.0, (q.ln() + self.width).exp().min(p));
        }
        // An atom at the right end is below it by rounding alone: the slack of the loss covers this.
        if a * self.width.exp_m1() <= NODE_ROUNDOFFS * ROUNDOFF * p { (0.0, p) } else { (a, b) }
    }
}

/// Grids of about `cells` cells that dominate the laws, and their step.
///
/// `None` if there are far too many nodes. At most `high_tail` of the finite losses becomes infinite: with a
/// tail of zero, losses must be bounded.
pub(crate) fn upper_masses(
    laws: &[Law],
    cells: usize,
    low_tail: f64,
    high_tail: f64,
) -> Option<(Vec<Masses>, f64)> {
    let ranges: Vec<(f64, f64)> = laws.iter().map(|law| law.range(low_tail, high_tail)).collect();
    let widest = ranges.iter().map(|(low, high)| high - low).fold(0.0, f64::max);
    let h = widest.max(1e-12) / cells as f64;
    // A steep tilt keeps all nodes.
    let lay = |(law, (low, high)): (&Law, (f64, f64))| {
        OnGrid::new(law, Grid { h, low, high, theta: 1e9, relevant: 0.0 }).map(|grid| grid.upper())
    };
    let masses: Option<Vec<Masses>> = laws.iter().zip(ranges).map(lay).collect();
    Some((masses?, h))
}
