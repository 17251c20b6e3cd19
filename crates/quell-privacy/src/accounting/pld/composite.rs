//! Several releases on one sample: their composition as one law, to which sampling theorems apply.
//!
//! A symmetric pair is determined by its profile, and any convex profile above that of the composition
//! belongs to a pair that dominates the composition [ZDW22]. So this module bounds the composed profile at
//! the nodes of its grid, from above and from below, and turns each bound back into a pair.

use std::{cell::RefCell, sync::Arc};

use super::{
    Pld, Profiles, atoms::Atoms, exact::exact_delta, law::Law, privacy_loss::PrivacyLoss, question::Question,
};

/// Relative rounding error of the masses of a pair.
///
/// Profiles are moved outward by this amount. For the upper pair the code checks that the margin still holds.
pub(super) const ROUNDING: f64 = 1e-9;

/// The largest losses of the lower pair, so that e^-ε is a normal number.
const FARTHEST: f64 = 650.0;

/// The smallest probability that the untilted profile resolves.
const TAIL: f64 = 1e-15;

/// Probabilities to which further profiles are tilted, each with the smallest one it resolves.
///
/// A tilted profile is precise for as many deviations on either side as rounding allows.
const FAR: [(f64, f64); 2] = [(1e-20, 1e-48), (1e-64, 1e-110)];

/// Larger probabilities are known without a tilt.
const MOST_IN_TAIL: f64 = 1e-8;

/// The composition of symmetric pairs as one law between two laws of finitely many losses.
///
/// `None` if no bound was found. The newest results are cached, because several accountants ask for the same
/// composition in both directions. The cache changes no answer.
pub(super) fn composite(loss: &PrivacyLoss) -> Option<Law> {
    thread_local! {
        static NEWEST: RefCell<Vec<(Factors, Option<Law>)>> = const { RefCell::new(Vec::new()) };
    }
    let known = NEWEST.with_borrow(|newest| {
        newest.iter().find(|(factors, _)| *factors == loss.factors).map(|(_, law)| law.clone())
    });
    known.unwrap_or_else(|| {
        let law = compose(loss);
        NEWEST.with_borrow_mut(|newest| {
            newest.truncate(REMEMBERED - 1);
            newest.insert(0, (loss.factors.clone(), law.clone()));
        });
        law
    })
}

/// Laws, each with its number of repetitions.
type Factors = Vec<(Law, u64)>;

/// How many compositions are cached.
const REMEMBERED: usize = 8;

/// Composes the parts given that all losses are finite, then adds the infinite losses.
///
/// # Theorem
/// Let a symmetric pair have an infinite loss with probability p. Then Q has mass p where P has none, and
/// without these outcomes both have mass 1 - p, so P = (1 - p)P' + p∞ for a symmetric pair (P', Q') of finite
/// losses. With I = 1 - Π(1 - p)^count the composition has δ(ε) = I + (1 - I)δ'(ε), which grows with I and
/// with δ'. So upper bounds on both give an upper bound, and lower bounds on both give a lower bound.
fn compose(loss: &PrivacyLoss) -> Option<Law> {
    let infinite_below = loss.infinite();
    let finite = given_finite(loss);
    let profiles = PRECISE.profiles_of(&finite, TAIL);
    let above = points_above(&PRECISE, loss, &finite, &profiles)?;
    let upper = pair_below(&above)?;
    let mut below = at_zero_and_above(&profiles.lower);
    below.retain(|(epsilon, _)| *epsilon <= FARTHEST);
    // Beyond the last node, no finite loss is known from below.
    if let Some(last) = below.last_mut() {
        last.1 = 0.0;
    }
    for (_, delta) in &mut below {
        *delta = (infinite_below + (1.0 - infinite_below) * *delta) * (1.0 - ROUNDING);
    }
    let lower = Pair::new(&below).map_or_else(|| Atoms::pure(0.0), |pair| pair.atoms());
    Some(Law::Between { lower: Arc::new(lower), upper: Arc::new(upper) })
}

/// A profile that is precise where it is large has the same relative precision where it is small.
const PRECISE: Pld = Pld { relative: 1e-3, absolute: 1e-4, longest: 1 << 17 };

/// The laws of a loss, given that all are finite.
fn given_finite(loss: &PrivacyLoss) -> PrivacyLoss {
    let mut finite = PrivacyLoss::default();
    finite.factors = loss.factors.iter().map(|(law, count)| (law.given_finite(), *count)).collect();
    finite
}

/// Points above the profile of one direction, at ε ≥ 0 in increasing order; `None` if they contradict others.
///
/// They hold in this direction whether the pair is symmetric or not.
pub(super) fn upper_profile(pld: &Pld, loss: &PrivacyLoss) -> Option<Vec<(f64, f64)>> {
    let finite = given_finite(loss);
    let mut points = points_above(pld, loss, &finite, &pld.profiles_of(&finite, TAIL))?;
    if let Some(law) = loss.single() {
        for (epsilon, delta) in &mut points {
            *delta = delta.min(exact_delta(law, *epsilon).upper * (1.0 + ROUNDING));
        }
    }
    // A profile decreases. A point that is no lower than an earlier one says nothing.
    let mut least = f64::INFINITY;
    points.retain(|(_, delta)| {
        let is_lower = *delta < least;
        least = least.min(*delta);
        is_lower
    });
    Some(points)
}

fn points_above(
    pld: &Pld,
    loss: &PrivacyLoss,
    finite: &PrivacyLoss,
    profiles: &Profiles,
) -> Option<Vec<(f64, f64)>> {
    let infinite_above = infinite(&loss.factors);
    let mut above = at_zero_and_above(&profiles.upper);
    // Without a node at or below zero only the trivial bound is known there: a probability is at most one.
    if above.first().is_none_or(|(epsilon, _)| *epsilon > 0.0) {
        above.insert(0, (0.0, 1.0));
    }
    let far = tail(pld, finite);
    // Bounds that contradict each other are invalid. A lower profile decreases, so its value at the next node
    // is a bound here.
    let is_contradicted = |(epsilon, delta): &(f64, f64)| {
        let next = profiles.lower.partition_point(|(node, _)| node >= epsilon).checked_sub(1);
        next.is_some_and(|next| profiles.lower[next].1 * (1.0 - ROUNDING) > *delta)
    };
    if far.iter().any(is_contradicted) {
        return None;
    }
    above.extend(far);
    sort_and_keep_lowest(&mut above);
    for (_, delta) in &mut above {
        *delta = ((infinite_above + (1.0 - infinite_above) * *delta) * (1.0 + ROUNDING)).min(1.0);
    }
    Some(above)
}

/// Sorts points by ε; of several points at one ε, keeps the lowest.
pub(super) fn sort_and_keep_lowest(points: &mut Vec<(f64, f64)>) {
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    points.dedup_by(|next, kept| next.0 == kept.0);
}

/// The law of the largest convex, symmetric profile below the points; `None` if there is none.
pub(super) fn pair_below(points: &[(f64, f64)]) -> Option<Atoms> {
    Pair::new(points).filter(|pair| pair.is_above(points)).map(|pair| pair.atoms())
}

/// P[L = ∞] of the sum, rounded up.
fn infinite(factors: &[(Law, u64)]) -> f64 {
    let ln_finite: f64 =
        factors.iter().map(|(law, count)| *count as f64 * (-law.infinite().min(1.0)).ln_1p()).sum();
    (-ln_finite.exp_m1() * (1.0 + 1e-12)).min(1.0)
}

/// Upper bounds at probabilities that the rounding of an untilted profile hides.
///
/// They come from tilted profiles, and from the largest loss if there is one. All losses are finite. Every
/// point is a bound by itself. Where no point is found only tightness is lost: a profile decreases, so a
/// bound at a smaller ε also holds at larger ones.
fn tail(pld: &Pld, loss: &PrivacyLoss) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> =
        FAR.iter().flat_map(|(likely, least)| pld.far_profile(&loss.factors, *likely, *least)).collect();
    points.retain(|(epsilon, delta)| *epsilon > 0.0 && *delta < MOST_IN_TAIL);
    let largest = Question::Epsilon { delta: 0.0 }.first_bracket(&loss.factors).upper;
    if largest.is_finite() {
        points.retain(|(epsilon, _)| *epsilon < largest);
        points.push((largest, 0.0));
    }
    points
}

/// The points of a profile at ε ≥ 0 in increasing order.
///
/// The first point is interpolated: at ε = 0 it lies on the chord between its neighbours.
fn at_zero_and_above(profile: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> =
        profile.iter().copied().take_while(|(epsilon, _)| *epsilon > 0.0).collect();
    let below = profile.get(points.len()).copied().filter(|(epsilon, _)| epsilon.is_finite());
    if let (Some((right, high)), Some((left, low))) = (points.last().copied(), below) {
        // The interpolation is linear in e^ε.
        let share = -left.exp_m1() / (right.exp() - left.exp());
        points.push((0.0, low + share * (high - low)));
    } else if let Some((_, delta)) = below {
        points.push((0.0, delta));
    }
    points.reverse();
    points
}

/// A symmetric pair, given by the corners of its profile.
///
/// The profile is linear in e^ε between the corners.
struct Pair {
    /// Loss and P-mass of the positive losses, in increasing order.
    ///
    /// The negative losses mirror them, with P and Q exchanged.
    positive: Vec<(f64, f64)>,
    /// Mass of the loss zero, under both P and Q.
    zero: f64,
    infinite: f64,
}

impl Pair {
    /// The pair whose profile is the largest convex, symmetric one below the points.
    ///
    /// The points have ε ≥ 0. `None` if there is no such pair. Every convex profile below the points, such as
    /// the profile that they bound, is also below this profile. Where the points lie on a profile that is
    /// linear between them, this profile is below that one.
    fn new(points: &[(f64, f64)]) -> Option<Self> {
        // From its smallest value on, a decreasing profile is constant.
        let least = points.iter().enumerate().min_by(|a, b| a.1.1.total_cmp(&b.1.1))?.0;
        let corners = hull(&points[..=least]);
        let infinite = corners.last()?.1;
        // The decrease from one corner to the next, per growth of e^ε relative to the first corner: minus the
        // slope times e^ε there.
        let fall = |j: usize| match corners.get(j + 1) {
            Some((right, low)) => (corners[j].1 - low) / (right - corners[j].0).exp_m1(),
            None => 0.0,
        };
        // A corner at zero stays if the profile is convex there. Otherwise the first corner that stays is the
        // first one at which the profile is convex against its mirror image.
        let zero = 1.0 - corners[0].1 - 2.0 * fall(0);
        let is_convex = zero >= 0.0;
        let mirrored = |j: usize| {
            let (epsilon, delta) = corners[j];
            // The slope from (-ε, 1 - e^-ε (1 - δ)) to (ε, δ), times e^ε.
            ((1.0 - delta) * -(-epsilon).exp_m1()) / -(-2.0 * epsilon).exp_m1()
        };
        let first = if is_convex { 1 } else { (1..corners.len()).find(|j| mirrored(*j) >= fall(*j))? };
        let mass = |j: usize| {
            let before = if j == first && !is_convex {
                mirrored(j)
            } else {
                // fall(j - 1) e^width, also where e^width is out of range.
                (corners[j - 1].1 - corners[j].1) / -(corners[j - 1].0 - corners[j].0).exp_m1()
            };
            (corners[j].0, (before - fall(j)).max(0.0))
        };
        let positive: Vec<(f64, f64)> = (first..corners.len()).map(mass).collect();
        let total = infinite + positive.iter().map(|(loss, p)| p * (1.0 + (-loss).exp())).sum::<f64>();
        // Mass that rounding removed is placed at zero, where it costs nothing. Mass that rounding added
        // makes the pair slightly larger.
        let found = (1.0 - total).max(0.0);
        (total < 1.0 + ROUNDING && (found - zero.max(0.0)).abs() < ROUNDING).then_some(Self {
            positive,
            zero: found,
            infinite,
        })
    }

    /// Whether the profile, recomputed from positive terms, lies above all points.
    ///
    /// It must keep most of the margin by which the points were moved outward.
    fn is_above(&self, points: &[(f64, f64)]) -> bool {
        let at = |loss: f64| points[points.partition_point(|(epsilon, _)| *epsilon < loss)].1;
        // δ at a corner, and e^ε Q[L ≥ ε] there.
        let (mut delta, mut q) = (self.infinite, 0.0);
        let mut right = f64::INFINITY;
        for (loss, mass) in self.positive.iter().rev() {
            if q > 0.0 {
                delta += q * -(loss - right).exp_m1();
                q *= (loss - right).exp();
            }
            if delta < at(*loss) * (1.0 - 0.1 * ROUNDING) {
                return false;
            }
            q += mass;
            right = *loss;
        }
        true
    }

    fn atoms(&self) -> Atoms {
        let below = self.positive.iter().rev().map(|(loss, p)| (-loss, p * (-loss).exp(), *p));
        let zero = (self.zero > 0.0).then_some((0.0, self.zero, self.zero));
        let above = self.positive.iter().map(|(loss, p)| (*loss, *p, p * (-loss).exp()));
        Atoms::new(&below.chain(zero).chain(above).collect::<Vec<_>>(), self.infinite)
    }
}

/// The corners of the largest convex function of e^ε below the points.
///
/// The points are in increasing order.
fn hull(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = Vec::new();
    for point in points {
        while let [.., left, middle] = corners.as_slice() {
            // Slopes on both sides of the middle, times e^ε there.
            let before = (middle.1 - left.1) / -(left.0 - middle.0).exp_m1();
            let after = (point.1 - middle.1) / (point.0 - middle.0).exp_m1();
            if before < after {
                break;
            }
            corners.pop();
        }
        corners.push(*point);
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Event, Neighbors,
        units::{Delta, Epsilon, NoiseMultiplier, SamplingRate, Scale},
    };

    /// All products of the atoms of two laws: an independent way to compute their composition.
    fn product(one: &Atoms, two: &Atoms) -> Atoms {
        let mut atoms: Vec<(f64, f64, f64)> = one
            .triples()
            .flat_map(|a| two.triples().map(move |b| (a.0 + b.0, a.1 * b.1, a.2 * b.2)))
            .collect();
        atoms.sort_by(|a, b| a.0.total_cmp(&b.0));
        Atoms::new(&atoms, 0.0)
    }

    #[test]
    fn several_releases_on_one_sample_cost_what_their_product_costs() {
        let discrete =
            |scale: f64| Event::DiscreteLaplace { scale: Scale::new(scale).unwrap(), sensitivity: 1 };
        for (rate, delta) in [(0.1, 1e-6), (0.01, 1e-5), (0.5, 1e-3)] {
            let inner = product(&Atoms::discrete_laplace(3.0, 1), &Atoms::discrete_laplace(7.0, 1));
            let truth = Law::Removed { rate, inner: Box::new(Law::Atoms(Arc::new(inner))) };
            let truth = crate::accounting::pld::exact_epsilon(&truth, delta);
            let event = Event::Composed(vec![discrete(3.0), discrete(7.0)])
                .poisson_sampled(SamplingRate::new(rate).unwrap());
            let found =
                Pld::default().epsilon(&event, Neighbors::AddRemove, Delta::new(delta).unwrap()).unwrap();
            assert!(
                found.lower <= truth.upper && truth.lower <= found.upper,
                "{rate} {delta}: {found:?} {truth:?}"
            );
            assert!(
                found.upper - truth.upper <= 2e-3 * truth.upper + 2e-4,
                "{rate} {delta}: {found:?} {truth:?}"
            );
            assert!(
                truth.lower - found.lower <= 2e-3 * truth.upper + 2e-4,
                "{rate} {delta}: {found:?} {truth:?}"
            );
        }
    }

    /// Gaussians compose to a Gaussian, also when they are composed through a profile.
    #[test]
    fn a_profile_made_a_pair_again_is_the_pair() {
        let mu = |x: f64| Law::gaussian(x);
        let mut both = PrivacyLoss::default();
        both.factors = vec![(mu(0.3), 1), (mu(0.4), 1)];
        let Some(Law::Between { lower, upper }) = composite(&both) else { panic!("no bound") };
        for epsilon in [0.0, 0.1, 0.7, 1.5, 2.5] {
            let truth = crate::accounting::pld::exact_delta(&mu(0.5), epsilon);
            let at = |atoms: &Arc<Atoms>| {
                crate::accounting::pld::exact_delta(&Law::Atoms(Arc::clone(atoms)), epsilon)
            };
            let (below, above) = (at(&lower).lower, at(&upper).upper);
            assert!(below <= truth.upper && truth.lower <= above, "{epsilon}: {below} {truth:?} {above}");
            assert!(
                above <= 1.01 * truth.upper + 1e-12 && below >= 0.98 * truth.lower - 1e-12,
                "{epsilon}: {below} {truth:?} {above}"
            );
        }
    }

    #[test]
    fn a_guarantee_with_a_delta_on_a_sample_beside_others_has_a_price() {
        let given =
            Event::Approximate { epsilon: Epsilon::new(0.25).unwrap(), delta: Delta::new(1e-8).unwrap() };
        let laplace = Event::Laplace { noise_multiplier: NoiseMultiplier::new(4.0).unwrap() };
        let sampled = Event::Composed(vec![given, laplace]).poisson_sampled(SamplingRate::new(0.1).unwrap());
        let found =
            Pld::default().epsilon(&sampled, Neighbors::AddRemove, Delta::new(1e-6).unwrap()).unwrap();
        // ln(1 + 0.1 (e^0.5 - 1)), the largest loss apart from δ.
        assert!(found.upper < 0.0630 && found.upper > 0.05, "{found:?}");
    }
}
