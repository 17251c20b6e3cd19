//! The privacy guarantee that a recipe asks for, and what a plan costs.

use quell_ledger::InMemory;
use quell_privacy::{
    Bound, Event, Neighbors,
    accounting::{Calibration, Pld, Target, best, distance},
    ledger::{Budget, Composition, Ledger, Terms, Unit},
    mechanism::Mechanism,
    number::{Toward, format_rounded},
    units::{Delta, Epsilon, NoiseMultiplier},
};
use serde::{Deserialize, Serialize};

use super::default_delta;
use crate::{Error, Input, range::POSITIVE};

/// The privacy guarantee of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Privacy {
    /// ε of the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// δ of the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// Standard deviation of the noise divided by the clip norm.
    ///
    /// Mechanisms without such noise use it as their scale of privacy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_multiplier: Option<f64>,
    /// When two datasets are neighbours.
    pub neighbors: Neighbors,
}

/// Shares by which the target ε is reduced, one after the other, until the cost is within the target.
///
/// Calibration is more precise than the claimed bound.
const MARGINS: [f64; 5] = [0.0, 5e-4, 1e-3, 2e-3, LARGEST_MARGIN];
const LARGEST_MARGIN: f64 = 5e-3;

/// The most plans that are tried. Calibration may use theorems that a ledger cannot.
const ATTEMPTS: usize = 10;

impl Privacy {
    /// δ of the guarantee: that of the settings, or the default for the number of records.
    pub(crate) fn delta_for(&self, records: u64) -> Result<Delta, Error> {
        Ok(Delta::new(self.delta.unwrap_or_else(|| default_delta(records)))?)
    }

    /// Finds a plan whose cost is within the requested ε.
    ///
    /// `plan` makes a plan for a target. The target is smaller than the request where that is needed; it is
    /// `None` if no ε is requested. `cost` is the cost of a plan.
    pub(super) fn meet<P>(
        &self,
        delta: Delta,
        plan: impl Fn(Option<Target>) -> Result<P, Error>,
        cost: impl Fn(&P) -> Result<Bound, Error>,
    ) -> Result<(P, Bound), Error> {
        self.epsilon.map_or(Ok(()), |epsilon| POSITIVE.check("epsilon", epsilon))?;
        let (mut least, mut share) = (f64::INFINITY, 1.0);
        for attempt in 1..=ATTEMPTS {
            let target = |epsilon: f64| {
                Ok::<_, Error>(Target::EpsilonDelta { epsilon: Epsilon::new(epsilon * share)?, delta })
            };
            let planned = plan(self.epsilon.map(target).transpose()?)?;
            let epsilon = cost(&planned)?;
            let Some(wanted) = self.epsilon.filter(|wanted| epsilon.upper > *wanted) else {
                return Ok((planned, epsilon));
            };
            least = least.min(epsilon.upper);
            let excess = epsilon.upper / wanted;
            share = match MARGINS.get(attempt) {
                Some(margin) if excess < 1.0 + LARGEST_MARGIN => 1.0 - margin,
                _ => share * (1.0 - LARGEST_MARGIN) / excess,
            };
        }
        let (wanted, cost) = (self.epsilon.unwrap_or(0.0), format_rounded(least, 4, Toward::Up));
        Err(Error::Setting {
            name: "epsilon",
            found: format!("{wanted}, less than the {cost} that the noise and the steps cost"),
            expected: "at least that cost, or no setting for noise, steps or rate",
        })
    }

    /// Plans `runs` runs of a mechanism with the least noise that is private enough.
    ///
    /// A noise multiplier in the settings is used as it is.
    pub(super) fn calibrate<M: Mechanism>(
        &self,
        delta: Delta,
        runs: u64,
        mechanism: impl Fn(NoiseMultiplier) -> Result<M, quell_privacy::Error>,
    ) -> Result<(M, Bound), Error> {
        let neighbors = self.neighbors;
        let given = self.noise_multiplier.map(NoiseMultiplier::new).transpose()?;
        let plan = |target: Option<Target>| {
            let noise = match (given, target) {
                (Some(noise), _) => noise,
                (None, Some(target)) => {
                    // Report an error in the settings as such, and not as a failed calibration.
                    mechanism(NoiseMultiplier::new(1.0)?)?.check(neighbors)?;
                    let event = |noise| {
                        let mechanism = mechanism(noise);
                        mechanism.map_or(Event::NonPrivate, |planned| planned.event_of_runs(neighbors, runs))
                    };
                    Calibration::new(target, neighbors).least_noise(event)?
                }
                (None, None) => return Err(Error::Missing { what: Input::Epsilon }),
            };
            let mechanism = mechanism(noise)?;
            mechanism.check(neighbors)?;
            Ok(mechanism)
        };
        self.meet(delta, plan, |mechanism| {
            let ideal = cost(mechanism, runs, neighbors, delta)?;
            let budget = self.epsilon.unwrap_or_else(|| budget_for(ideal.upper));
            let upper = ideal.upper.max(charged(mechanism, runs, (neighbors, delta), budget)?);
            Ok(Bound { upper, ..ideal })
        })
    }
}

/// ε that a ledger without other charges, opened with this budget for this run, would charge.
///
/// For most mechanisms it is the ε of the accountant. Selections compose by another theorem in a ledger.
pub(crate) fn charged<M: Mechanism>(
    mechanism: &M,
    runs: u64,
    (neighbors, delta): (Neighbors, Delta),
    budget: f64,
) -> Result<f64, Error> {
    let epsilon = Some(budget).filter(|budget| *budget > 0.0 && budget.is_finite());
    let terms = Terms {
        dataset: "plan".into(),
        unit: Unit::Example,
        neighbors,
        budget: Budget { epsilon: epsilon.map(Epsilon::new).transpose()?, delta },
        composition: Composition::Combined,
    };
    let mut ledger = Ledger::create(InMemory::new("plan"), terms)?;
    Ok(ledger.quote(mechanism, runs)?.1.epsilon)
}

impl Privacy {
    /// The noise multiplier with which `runs` Gaussian releases would be private enough.
    ///
    /// It is a public measure of the noise, for settings that must be chosen before the plan.
    pub(crate) fn gaussian_noise(&self, delta: Delta, runs: u64) -> Result<f64, Error> {
        if let Some(noise) = self.noise_multiplier {
            return Ok(noise);
        }
        let epsilon = self.epsilon.ok_or(Error::Missing { what: Input::Epsilon })?;
        POSITIVE.check("epsilon", epsilon)?;
        let epsilon = Epsilon::new(epsilon)?;
        let calibration = Calibration::new(Target::EpsilonDelta { epsilon, delta }, self.neighbors);
        Ok(calibration.least_noise(|noise| Event::gaussian(noise).repeated(runs))?.get())
    }
}

/// The ε of a budget that pays for a run of this ε: a little more, rounded up to four digits.
pub(crate) fn budget_for(epsilon: f64) -> f64 {
    // Accountants of later versions may find a slightly larger ε.
    let enough = epsilon * 1.001;
    format_rounded(enough, 4, Toward::Up).parse().unwrap_or(enough)
}

/// Returns a function that computes ε of the ideal mechanism at any δ.
fn ideal<M: Mechanism>(
    mechanism: &M,
    runs: u64,
    neighbors: Neighbors,
) -> impl Fn(Delta) -> Result<Bound, quell_privacy::Error> {
    let event = mechanism.event_of_runs(neighbors, runs);
    move |delta| match Pld::default().epsilon(&event, neighbors, delta) {
        Err(quell_privacy::Error::Unsupported { .. }) => Ok(best(&event, neighbors, delta)?.1.epsilon),
        epsilon => epsilon,
    }
}

/// ε of a number of runs at δ, as an interval. It covers the distance between ideal and drawn noise.
pub(crate) fn cost<M: Mechanism>(
    mechanism: &M,
    runs: u64,
    neighbors: Neighbors,
    delta: Delta,
) -> Result<Bound, Error> {
    Ok(distance::epsilon(&ideal(mechanism, runs, neighbors), mechanism.distance_of_runs(runs), delta)?)
}

/// Upper bound on ε of the first `runs` runs at δ.
pub(super) fn spent_after<M: Mechanism>(
    mechanism: &M,
    runs: u64,
    neighbors: Neighbors,
    delta: Delta,
) -> Result<f64, Error> {
    if runs == 0 {
        return Ok(0.0);
    }
    Ok(distance::upper(&ideal(mechanism, runs, neighbors), mechanism.distance_of_runs(runs), delta)?)
}
