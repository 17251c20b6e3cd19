//! The planner: steps, batch and noise with the least work that comes close to the limit of a method.

use quell_privacy::units::{NoiseMultiplier, SamplingRate};

use super::{
    Descend, Loss, Method, Privacy, Problem, Procedure, Reference,
    excess_risk::{self, Reached, noise_variance, variance},
    noise, perturbation,
    search::{least_steps, least_work},
};
use crate::Error;

/// Bound, gradient evaluations and procedure.
pub(super) type Planned = (f64, Option<f64>, Procedure);

/// Plans a method that has a theorem for this class of losses. The problem is checked.
pub(super) fn plan(
    problem: &Problem,
    privacy: Privacy,
    method: Method,
    loss: Loss,
    factor: f64,
) -> Result<Planned, Error> {
    let planner = Planner { problem, privacy, loss, factor, one: privacy.one_release()? };
    match method {
        Method::OutputPerturbation => Ok(minimise(perturbation::of_output(problem, loss, planner.one)?)),
        Method::ObjectivePerturbation => Ok(minimise(perturbation::of_objective(problem, loss, privacy)?)),
        Method::NoisyGd => planner.full_batches(),
        Method::NoisySgd => planner.samples(),
        Method::SmoothedSgd => planner.smoothed(),
        Method::NoisySvrg => planner.reduced(),
    }
}

fn minimise(found: perturbation::Perturbed) -> Planned {
    let perturbation::Perturbed { risk, regularization, noise } = found;
    (risk, None, Procedure::Minimise { regularization, noise })
}

/// How often a plan is chosen anew if an estimate of its noise was too small.
const REPAIRS: u32 = 14;

/// The least noise multipliers of samples, one for each attempt.
///
/// Estimates of the noise are the better the larger the noise is.
fn least_multipliers() -> impl Iterator<Item = f64> {
    (0..REPAIRS).scan(0.8, |least, repair| {
        *least *= 1.0 + 0.25 * f64::from(repair);
        Some(*least)
    })
}

/// A batch size, and a few that are a little larger: estimates of the noise are mostly a little too small.
fn enlarged(batch: u64, records: u64) -> impl Iterator<Item = u64> {
    let larger = move |batch: &u64| (*batch < records).then(|| (batch + batch.div_ceil(10)).min(records));
    std::iter::successors(Some(batch), larger).take(4)
}

struct Planner<'a> {
    problem: &'a Problem,
    privacy: Privacy,
    loss: Loss,
    factor: f64,
    /// Noise multiplier of one release on all records.
    one: f64,
}

impl Planner<'_> {
    fn full_batches(&self) -> Result<Planned, Error> {
        let target = self.factor * excess_risk::limit(self.problem, self.loss, self.one)?;
        let steps = least_steps(|steps| Ok(self.full(steps)?.0.risk <= target))?.ok_or_else(too_long)?;
        let (reached, multiplier) = self.full(steps)?;
        let n = self.problem.records;
        let work = n as f64 * steps as f64;
        Ok((reached.risk, Some(work), Procedure::Descend(descend(reached, steps, n, multiplier))))
    }

    /// The bound of a number of steps on all records, and their noise multiplier.
    fn full(&self, steps: u64) -> Result<(Reached, NoiseMultiplier), Error> {
        let multiplier = noise::of_full_batches(self.one, steps)?;
        let drawn = noise::drawn(self.problem, multiplier).ok_or_else(too_long)?;
        let variance = variance(self.problem, self.problem.records as f64, drawn);
        Ok((excess_risk::of_descent(self.problem, self.loss, steps, variance)?, multiplier))
    }

    fn samples(&self) -> Result<Planned, Error> {
        let target = self.factor * excess_risk::limit(self.problem, self.loss, self.one)?;
        self.least_work(target, 0.0, |steps, batch, multiplier| {
            let variance = variance(self.problem, batch as f64, multiplier);
            excess_risk::of_descent(self.problem, self.loss, steps, variance)
        })
    }

    fn smoothed(&self) -> Result<Planned, Error> {
        // The limit of accelerated steps is 2/√3 times that of plain ones.
        let limit = excess_risk::limit(self.problem, self.loss, self.one)? * 2.0 / 3.0_f64.sqrt();
        let target = self.factor * limit;
        // A third of what the factor leaves is for the smoothing.
        let d = self.problem.dimension as f64;
        let width = (self.factor - 1.0) / 3.0 * limit / (self.problem.lipschitz * d.sqrt());
        self.least_work(target, width, |steps, batch, multiplier| {
            // Records are shifted independently, so that there is no covariance to subtract.
            let variance = (batch as f64).recip() + noise_variance(self.problem, batch as f64, multiplier);
            Ok(excess_risk::of_smoothed_descent(self.problem, width, steps, variance))
        })
    }

    /// Chooses steps and batch by estimates of the noise, until the accounted noise meets the target.
    fn least_work(
        &self,
        target: f64,
        smoothing: f64,
        reached: impl Fn(u64, u64, f64) -> Result<Reached, Error>,
    ) -> Result<Planned, Error> {
        let n = self.problem.records;
        for least in least_multipliers() {
            let fits = |steps: u64, batch: u64| {
                let estimate = if batch == n {
                    1.01 * self.one * (steps as f64).sqrt()
                } else {
                    noise::estimate(self.one, batch as f64 / n as f64, steps)
                };
                (batch == n || estimate >= least)
                    && reached(steps, batch, estimate).is_ok_and(|reached| reached.risk <= target)
            };
            let (steps, chosen) = least_work(n, fits).ok_or_else(too_long)?;
            for batch in enlarged(chosen, n) {
                let multiplier = self.sampled(batch, steps)?;
                let drawn = noise::drawn(self.problem, multiplier).ok_or_else(too_long)?;
                let found = reached(steps, batch, drawn)?;
                if found.risk <= target {
                    let work = steps as f64 * batch as f64;
                    let descend = Descend { smoothing, ..descend(found, steps, batch, multiplier) };
                    return Ok((found.risk, Some(work), Procedure::Descend(descend)));
                }
            }
        }
        Err(too_long())
    }

    /// The accounted noise multiplier of samples of this size.
    fn sampled(&self, batch: u64, steps: u64) -> Result<NoiseMultiplier, Error> {
        let n = self.problem.records;
        if batch == n {
            return noise::of_full_batches(self.one, steps);
        }
        noise::of_samples(self.privacy, SamplingRate::new(batch as f64 / n as f64)?, steps)
    }

    fn reduced(&self) -> Result<Planned, Error> {
        let problem = self.problem;
        let n = problem.records as f64;
        // Reference and correction share the guarantee, and a correction is twice as long: three times the noise.
        let target = self.factor * 3.0 * excess_risk::limit(problem, self.loss, self.one)?;
        for least in least_multipliers() {
            let fits = |steps: u64, batch: u64| {
                // Where sampling amplifies fully, references have a third of 1/z₁², and corrections two thirds.
                let reference = 1.02 * self.one * (3.0 * steps as f64).sqrt();
                let correction = noise::estimate(self.one * 1.5_f64.sqrt(), batch as f64 / n, steps);
                let epochs = epochs(problem.records, steps, batch).0;
                correction >= least
                    && self
                        .reached_by_reduction(steps, epochs, batch, (reference, correction))
                        .is_ok_and(|found| found.risk <= target)
            };
            let (least_steps, chosen) = least_work(problem.records, fits).ok_or_else(too_long)?;
            for batch in enlarged(chosen, problem.records) {
                let (epochs, steps) = epochs(problem.records, least_steps, batch);
                let rate = SamplingRate::new(batch as f64 / n)?;
                let multiplier = noise::of_references(self.privacy, rate, steps)?;
                let correction = noise::of_correction(multiplier.get(), rate.get())?;
                let drawn = |multiplier| noise::drawn(problem, multiplier).ok_or_else(too_long);
                let both = (drawn(multiplier)?, drawn(correction)?);
                let found = self.reached_by_reduction(steps, epochs, batch, both)?;
                if found.risk <= target {
                    let work = 2.0 * batch as f64 * steps as f64 + n * epochs as f64;
                    let reference = Some(Reference { epochs, noise_multiplier: multiplier });
                    let descend = Descend { reference, ..descend(found, steps, batch, correction) };
                    return Ok((found.risk, Some(work), Procedure::Descend(descend)));
                }
            }
        }
        Err(too_long())
    }

    /// The bound of variance-reduced steps with these multipliers of reference and correction.
    fn reached_by_reduction(
        &self,
        steps: u64,
        epochs: u64,
        batch: u64,
        (reference, correction): (f64, f64),
    ) -> Result<Reached, Error> {
        let (n, batch) = (self.problem.records as f64, batch as f64);
        let variance = noise_variance(self.problem, n, reference)
            + noise_variance(self.problem, batch, 2.0 * correction);
        excess_risk::of_reduced_descent(self.problem, batch, epochs, steps, variance)
    }
}

/// Epochs whose corrections cost about as much as their references, and the steps that they take together.
fn epochs(records: u64, steps: u64, batch: u64) -> (u64, u64) {
    let wanted = 2.0 * batch as f64 * steps as f64 / records as f64;
    let epochs = (wanted.round() as u64).clamp(1, steps);
    (epochs, epochs * steps.div_ceil(epochs))
}

fn descend(reached: Reached, steps: u64, batch_size: u64, noise_multiplier: NoiseMultiplier) -> Descend {
    let Reached { step_size, average, .. } = reached;
    Descend { steps, step_size, average, batch_size, noise_multiplier, smoothing: 0.0, reference: None }
}

/// The error for a problem that no plan comes close enough to the limit of.
fn too_long() -> Error {
    Error::Setting {
        name: "factor",
        found: "out of reach of 2^50 steps, or of the noise that a step can draw".into(),
        expected: "a larger factor, or fewer records",
    }
}
