//! A law of loss laid on a grid of losses ih, once from above and once from below.
//!
//! A pair (P, Q) is, up to what matters for privacy, the random variable Y = dQ/dP under P, and one pair dominates
//! another exactly if its Y is larger in convex order: δ(ε) = E[(1 - e^ε Y)₊] is an expectation of a convex function of Y.
//! So an upper bound is a mean-preserving *spread* of Y onto the grid, and a lower bound is a mean-preserving *contraction*
//! onto the grid. Both move the profile by O(h²), and both stay bounds under composition. [DGKKM22, §3; THEORY, Grid]

use super::law::{Law, Tails};

/// Probabilities under P of the losses (start + j)h, and of an infinite loss.
#[derive(Clone, Debug)]
pub(crate) struct Masses {
    pub(crate) start: i64,
    pub(crate) weights: Vec<f64>,
    pub(crate) infinite: f64,
}

/// The law on the grid of step `h`: dominating, and (if wanted) dominated.
pub(crate) struct Discretized {
    pub(crate) upper: Masses,
    pub(crate) lower: Option<Masses>,
}

/// Lays `law` on the grid of step `h`, between the losses `low` and `high`.
///
/// # Contract
/// The upper masses dominate the pair: what lies above `high` becomes infinite, what lies below `low` rises to it. The
/// lower masses are dominated by it: what lies outside is dropped. Rounding errors of the tails go to the safe side.
pub(crate) fn discretize(law: &Law, h: f64, (low, high): (f64, f64), want_lower: bool) -> Discretized {
    let start = (low / h).floor() as i64;
    let cells = ((high / h).ceil() as i64 - start).max(1) as usize;
    let mut upper = vec![0.0; cells + 1];
    let mut lower = vec![(0.0, 0.0); if want_lower { cells } else { 0 }];
    let first = law.tails(start as f64 * h);
    let mut left = first;
    for cell in 0..cells {
        let right = law.tails((start + cell as i64 + 1) as f64 * h);
        let masses = CellMasses::new(left, right, (start + cell as i64) as f64 * h, h);
        let (at_left, at_right) = masses.spread();
        upper[cell] += at_left;
        upper[cell + 1] += at_right;
        if want_lower {
            lower[cell] = masses.reduced();
        }
        left = right;
    }
    upper[0] += first.p.below * (1.0 + super::law::TAIL_ERROR);
    let upper = Masses { start, weights: upper, infinite: left.p.above * (1.0 + super::law::TAIL_ERROR) };
    let lower = want_lower.then(|| Masses { start, weights: contract(&lower, h, start), infinite: 0.0 });
    Discretized { upper, lower }
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
/// `cells[j]` are the P-masses at the ends of cell j that have the mass and the mean of the cell. Their profile δ⁺ is
/// piecewise linear in k = e^ε with kinks on the grid, and exceeds the true one inside cell j by at most Dⱼ, reached when
/// the cell's mass sits at one point: Dⱼ = ab(e^h - 1)/(ae^h + b). Lowering δ⁺ at each node by c, the larger D of the two
/// adjacent cells, gives a piecewise linear function below the true profile. At the far ends it is held at the trivial
/// profiles 0 and (total P) - k (total Q). The largest convex function below it is the profile that is returned.
fn contract(cells: &[(f64, f64)], h: f64, start: i64) -> Vec<f64> {
    let nodes = cells.len() + 1;
    let mut spread = vec![0.0; nodes];
    for (j, (a, b)) in cells.iter().enumerate() {
        spread[j] += a;
        spread[j + 1] += b;
    }
    let (grow, up, down) = (h.exp(), h.exp_m1(), -(-h).exp_m1());
    // A bound from above on each D; the factor covers the rounding of the formula itself.
    let excess: Vec<f64> = cells
        .iter()
        .map(|&(a, b)| if a > 0.0 && b > 0.0 { a * b * up / (a * grow + b) * (1.0 + 1e-12) } else { 0.0 })
        .collect();
    let needed = |i: usize| {
        let before = if i > 0 { excess[i - 1] } else { 0.0 };
        before.max(if i < cells.len() { excess[i] } else { 0.0 })
    };
    // δ⁺ at the nodes, and how far it is above the line (total P) - k (total Q).
    let (above_zero, above_line) = profile_at_nodes(&spread, grow, up, down);
    let centre = (-start).clamp(0, nodes as i64 - 1) as usize;
    let Some((first, last)) = interior(centre, nodes, &above_zero, &above_line, &excess, needed) else {
        return vec![0.0; nodes];
    };
    let c = |i: usize| match i {
        _ if i <= first => above_line[i],
        _ if i >= last => above_zero[i],
        _ => needed(i),
    };
    let mut weights = vec![0.0; nodes];
    for i in first..=last {
        // The slope of c changes at node i by this much, in P-mass: k ((cᵢ₊₁ - cᵢ)/(k(e^h - 1)) - (cᵢ - cᵢ₋₁)/(k(1 - e^-h))).
        let after = if i + 1 < nodes { (c(i + 1) - c(i)) / up } else { 0.0 };
        let before = if i > 0 { (c(i) - c(i - 1)) / down } else { 0.0 };
        weights[i] = spread[i] - after + before;
    }
    make_convex(&mut weights, h);
    weights
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

/// The nodes between which the profile can be lowered by what is needed without falling below the trivial profiles;
/// at the two nodes returned it is lowered onto them. `None` if the grid is too coarse for any.
fn interior(
    centre: usize,
    nodes: usize,
    above_zero: &[f64],
    above_line: &[f64],
    excess: &[f64],
    needed: impl Fn(usize) -> f64,
) -> Option<(usize, usize)> {
    let free = |i: usize| above_zero[i] >= needed(i) && above_line[i] >= needed(i);
    // Without a free node in the middle, look at the neighbours: the mass may sit in one cell next to zero.
    let centre = [centre, centre + 1, centre.wrapping_sub(1)].into_iter().find(|&i| i < nodes && free(i))?;
    let mut last = centre;
    while last + 1 < nodes && free(last + 1) {
        last += 1;
    }
    if last + 1 < nodes && above_zero[last + 1] >= excess[last] {
        last += 1;
    }
    let mut first = centre;
    while first > 0 && free(first - 1) {
        first -= 1;
    }
    if first > 0 && above_line[first - 1] >= excess[first - 1] {
        first -= 1;
    }
    (first < last).then_some((first, last))
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
