//! Contraction of a law onto the nodes of a grid: the lower bound of [`grid`](super::grid).
//!
//! Everything here computes with profiles at the nodes. [DGKKM22, §3; THEORY, Grid]

/// P-masses (a, b) at the ends of a cell, with its mass and mean.
pub(super) struct Cell {
    pub(super) a: f64,
    pub(super) b: f64,
    pub(super) width: f64,
}

/// Nearly the largest contraction onto the nodes.
///
/// The cells' masses have a profile δ⁺ that is piecewise linear in k = e^ε with kinks at the nodes. Inside a
/// cell it exceeds the true profile by at most a tent of height D = at(e^width - 1) at the fraction t =
/// b/(ae^width + b) of the cell, reached when the cell's mass sits at one point. So lowering δ⁺ at the nodes
/// by c with (1-t)cⱼ + tcⱼ₊₁ ≥ D in each cell gives a piecewise linear function below the true profile. Where
/// it would fall below the trivial profiles, 0 or (total P) - k (total Q), it is clamped to them. The largest
/// convex function below it is the profile that is returned; `None` if the grid is too coarse for any.
pub(super) fn contract(cells: &[Cell]) -> Option<Vec<f64>> {
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

    /// How much to lower the profile at the two ends of the cell.
    ///
    /// At most `left` and `right` are available.
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
