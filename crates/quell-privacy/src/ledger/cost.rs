//! The cost of one plan under each composition theorem.

use serde::{Deserialize, Serialize};

use crate::{
    Error, Event, Neighbors,
    accounting::{Pld, Renyi, TradeOff},
    special::normal_quantile,
    units::{Delta, Order},
};

/// Orders at which Rényi divergences are added up.
///
/// They must never change: old ledgers contain curves at these orders.
pub(crate) const ORDERS: [f64; 14] =
    [1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0, 128.0, 256.0];

/// How far a recorded number may be below the number computed today, relative to it.
///
/// Accountants stop when the bracket is a thousandth wide, and the position of the answer in the bracket may
/// differ between processors and versions.
pub(super) const TOLERANCE: f64 = 2e-3;

/// The cost of a plan, once for each composition theorem. `None` means no bound.
///
/// # Contract
/// For each theorem and for every ε, the profile of the plan is at most that of the named pair plus `slack`
/// (THEORY, Filters), and the mechanism that runs is within `distance` of the one that was accounted for, in
/// total variation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Dominated by randomized response with this ε.
    pub pure: Option<f64>,
    /// Dominated by N(μ, 1) against N(0, 1) with this μ.
    pub gaussian: Option<f64>,
    /// Rényi divergences at the ledger's fixed orders, in increasing order.
    pub renyi: Option<Vec<f64>>,
    /// δ that the bounds above do not cover.
    pub slack: f64,
    /// Total variation between the ideal noise and the noise drawn, over all steps.
    pub distance: f64,
}

impl Cost {
    /// The cost of a plan that is fixed in advance, as a whole.
    ///
    /// `allowance` is the slack that may be used if the plan has no pure bound and is no composition of
    /// Gaussians. If `only_addition` is set, it may be used whenever the plan has no pure bound.
    pub(crate) fn new(
        plan: &Event,
        neighbors: Neighbors,
        distance: f64,
        allowance: Delta,
        only_addition: bool,
    ) -> Result<Self, Error> {
        let (event, mut slack) = without_approximations(plan);
        let renyi = match Renyi::new(&event, neighbors) {
            Ok(renyi) => {
                let at = |order: &f64| Order::new(*order).map(|order| renyi.divergence(order));
                let curve = ORDERS.iter().map(at).collect::<Result<Vec<f64>, Error>>()?;
                // An infinite divergence is no bound, and JSON cannot represent it.
                curve.iter().all(|divergence| divergence.is_finite()).then_some(curve)
            }
            Err(Error::Unsupported { .. }) => None,
            Err(other) => return Err(other),
        };
        // A value that overflows is no bound, as above.
        let mut pure = pure_epsilon(&event, neighbors).and_then(finite);
        let mut gaussian = match TradeOff::exact_gaussian(&event, neighbors) {
            Ok(exact) => exact.or_else(|| pure.map(gaussian_of_pure)).and_then(finite),
            Err(Error::Unsupported { .. }) => None,
            Err(other) => return Err(other),
        };
        if pure.is_none() && (gaussian.is_none() || only_addition) {
            let pld = Pld::default();
            match pld.epsilon(&event, neighbors, allowance) {
                Ok(epsilon) => {
                    pure = finite(epsilon.upper);
                    if gaussian.is_none() {
                        gaussian = finite(TradeOff::new(&pld, &event, neighbors)?.gaussian(allowance)?.upper);
                    }
                    slack += allowance.get();
                }
                Err(Error::Unsupported { .. }) if renyi.is_some() => {}
                Err(other) => return Err(other),
            }
        }
        Ok(Self { pure, gaussian, renyi, slack, distance })
    }

    /// Whether a plan costs no more than this, according to today's accountants.
    ///
    /// This is for an auditor, who does not trust recorded costs. The distance of the noise is a property of
    /// the mechanism that ran, and is trusted.
    pub fn covers(&self, plan: &Event, neighbors: Neighbors) -> Result<bool, Error> {
        let own_slack = without_approximations(plan).1;
        // The bounds used the rest of the slack. If there is no rest, a bound that needs slack is not found.
        let allowance = Delta::new((self.slack - own_slack) * (1.0 + TOLERANCE))
            .or_else(|_| Delta::new(f64::MIN_POSITIVE))?;
        let true_cost = Self::new(plan, neighbors, self.distance, allowance, self.pure.is_some())?;
        let fits = |written: f64, found: f64| written >= found * (1.0 - TOLERANCE);
        // A bound that is recorded as `None` claims nothing.
        let covered = |written: Option<f64>, found: Option<f64>| {
            written.is_none_or(|written| found.is_some_and(|found| fits(written, found)))
        };
        let curve_covered = match (&self.renyi, &true_cost.renyi) {
            (Some(written), Some(found)) => {
                written.len() == found.len()
                    && written.iter().zip(found).all(|(written, found)| fits(*written, *found))
            }
            (written, _) => written.is_none(),
        };
        Ok(covered(self.pure, true_cost.pure)
            && covered(self.gaussian, true_cost.gaussian)
            && curve_covered
            && fits(self.slack, own_slack))
    }

    /// Whether all numbers are finite and not negative.
    pub(crate) fn makes_sense(&self) -> bool {
        let curve = self.renyi.iter().flatten();
        let mut numbers = curve.chain(&self.pure).chain(&self.gaussian).chain([&self.slack, &self.distance]);
        numbers.all(|number| *number >= 0.0 && number.is_finite())
    }

    /// The cost of a plan without any bound.
    pub(crate) fn unbounded() -> Self {
        Self { pure: None, gaussian: None, renyi: None, slack: 0.0, distance: 0.0 }
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// The μ of any ε-DP mechanism. [DRS22, Proposition 2.12]
///
/// N(μ, 1) against N(0, 1) dominates randomized response if they agree at its corner,
/// 1 - Φ(-μ/2)·2 = (e^ε - 1)/(e^ε + 1). The trade-off of randomized response is two straight lines that meet
/// at α = β = 1/(1 + e^ε); a convex curve that passes through that corner, and through (0, 1) and (1, 0),
/// lies below both.
fn gaussian_of_pure(epsilon: f64) -> f64 {
    let corner = 1.0 / (1.0 + epsilon.exp());
    if corner <= 0.0 { f64::INFINITY } else { -2.0 * normal_quantile(corner) * (1.0 + 1e-12) + 1e-15 }
}

/// Replaces each (ε, δ) of the event by ε; also returns the sum of the δs.
///
/// [KOV15]: the pair that dominates (ε, δ) is randomized response, except for δ.
fn without_approximations(event: &Event) -> (Event, f64) {
    match event {
        Event::Approximate { epsilon, delta } => (Event::Pure { epsilon: *epsilon }, delta.get()),
        Event::Composed(events) => {
            let (events, slacks): (Vec<Event>, Vec<f64>) = events.iter().map(without_approximations).unzip();
            (Event::Composed(events), slacks.iter().sum::<f64>() * (1.0 + 1e-9))
        }
        Event::Repeated { count, event } => {
            let (event, slack) = without_approximations(event);
            (event.repeated(*count), slack * *count as f64 * (1.0 + 1e-9))
        }
        // Inside a sample or a trial (ε, δ) stays, and has no Rényi bound there.
        Event::Gaussian { .. }
        | Event::Laplace { .. }
        | Event::DiscreteGaussian { .. }
        | Event::DiscreteLaplace { .. }
        | Event::RandomizedResponse { .. }
        | Event::Exponential { .. }
        | Event::Pure { .. }
        | Event::ZeroConcentrated { .. }
        | Event::Renyi { .. }
        | Event::PoissonSampled { .. }
        | Event::SampledWithoutReplacement { .. }
        | Event::SampledWithReplacement { .. }
        | Event::NonPrivate
        | Event::PerturbedObjective { .. }
        | Event::HiddenState { .. }
        | Event::BestOf { .. } => (event.clone(), 0.0),
    }
}

/// The largest privacy loss, if it is bounded.
///
/// It adds up under composition [DMNS06]. A sample costs no more than the event that runs on it, and less by
/// [BBG18, Theorem 8] if records are added or removed.
fn pure_epsilon(event: &Event, neighbors: Neighbors) -> Option<f64> {
    // Each of these is a handful of roundings.
    let up = |epsilon: f64| epsilon * (1.0 + 1e-14);
    match event {
        Event::Laplace { noise_multiplier } => Some(up(neighbors.reach() / noise_multiplier.get())),
        Event::DiscreteLaplace { scale, sensitivity } => {
            Some(up(neighbors.reach() * f64::from(*sensitivity) / scale.get()))
        }
        Event::RandomizedResponse { choices, randomized } => {
            let (k, p) = (f64::from(*choices), randomized.get());
            // The presence of a record is visible.
            (p > 0.0 && neighbors == Neighbors::Replace).then(|| up((k * (1.0 - p) / p).ln_1p()))
            //                    ln(1 + k(1-p)/p): truthful 1 - p + p/k, any other answer p/k
        }
        Event::Exponential { epsilon } | Event::Pure { epsilon } => Some(epsilon.get()),
        Event::PoissonSampled { rate, event } => {
            let inner = pure_epsilon(event, neighbors)?;
            Some(match neighbors {
                Neighbors::AddRemove if inner < 700.0 => up((rate.get() * inner.exp_m1()).ln_1p()).min(inner),
                Neighbors::AddRemove | Neighbors::Replace => inner,
            })
        }
        Event::SampledWithoutReplacement { event, .. } if neighbors == Neighbors::Replace => pure_epsilon(event, neighbors),
        Event::Composed(events) => {
            events.iter().try_fold(0.0, |sum, event| Some(sum + pure_epsilon(event, neighbors)?)).map(|sum: f64| sum * (1.0 + 1e-9))
        }
        Event::Repeated { count, event } => Some(up(*count as f64 * pure_epsilon(event, neighbors)?)),
        // The best of several trials costs at most three of them [LT19, Theorem 3.2].
        Event::BestOf { trials, expected: 1.. } => trials
            .iter()
            .try_fold(0.0, |most: f64, trial| Some(most.max(pure_epsilon(trial, neighbors)?)))
            .map(|most| up(3.0 * most)),
        Event::Gaussian { .. }
        | Event::DiscreteGaussian { .. }
        | Event::Approximate { .. }
        | Event::ZeroConcentrated { .. }
        | Event::Renyi { .. }
        // Adding a record exchanges one record of the sample.
        | Event::SampledWithoutReplacement { .. }
        // A record drawn several times contributes several times.
        | Event::SampledWithReplacement { .. }
        | Event::NonPrivate
        | Event::PerturbedObjective { .. }
        | Event::HiddenState { .. }
        | Event::BestOf { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Epsilon, NoiseMultiplier, SamplingRate, Scale};

    #[test]
    fn a_cost_covers_its_plan_and_no_dearer_one() {
        let gaussian = |noise: f64| Event::gaussian(NoiseMultiplier::new(noise).unwrap());
        let sampled = |noise| gaussian(noise).poisson_sampled(SamplingRate::new(0.01).unwrap()).repeated(100);
        let count = |scale: f64| Event::DiscreteLaplace { scale: Scale::new(scale).unwrap(), sensitivity: 1 };
        let given = |epsilon: f64| Event::Approximate {
            epsilon: Epsilon::new(epsilon).unwrap(),
            delta: Delta::new(1e-8).unwrap(),
        };
        let allowance = Delta::new(1e-7).unwrap();
        for (plan, dearer) in [
            (gaussian(2.0), gaussian(1.99)),
            (sampled(2.0), sampled(1.99)),
            (count(2.0), count(1.99)),
            (given(0.5), given(0.51)),
            (Event::Composed(vec![given(0.5), count(2.0)]), Event::Composed(vec![given(0.5), count(1.99)])),
            (gaussian(2.0), Event::NonPrivate),
        ] {
            let cost = Cost::new(&plan, Neighbors::AddRemove, 0.0, allowance, false).unwrap();
            assert!(cost.covers(&plan, Neighbors::AddRemove).unwrap(), "{plan:?} {cost:?}");
            assert!(!cost.covers(&dearer, Neighbors::AddRemove).unwrap(), "{dearer:?}");
        }
        assert!(Cost::unbounded().covers(&Event::NonPrivate, Neighbors::AddRemove).unwrap());
    }

    #[test]
    fn orders_of_old_ledgers_stay() {
        assert_eq!(ORDERS, [1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0, 128.0, 256.0]);
    }

    #[test]
    fn a_cost_that_overflows_is_no_bound() {
        let leak = Event::Pure { epsilon: Epsilon::new(1e300).unwrap() };
        let cost =
            Cost::new(&leak.repeated(1 << 50), Neighbors::AddRemove, 0.0, Delta::new(1e-7).unwrap(), false)
                .unwrap();
        assert_eq!((cost.pure, cost.gaussian), (None, None));
    }
}
