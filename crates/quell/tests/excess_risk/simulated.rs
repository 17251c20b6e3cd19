//! Noisy descent on problems whose minimum is known: its mean excess risk is below the bound, and not far below.

use quell::{
    learner::convex::{
        Descend, Loss, Method, Plan, Problem, Procedure,
        excess_risk::{Average, StepSize},
    },
    random::PublicRandom,
};

use super::{ERRORS, length, mean, normal, plan, steps_of};

/// Losses of records of a few kinds, equally many of each.
pub(super) trait Task {
    /// Number of kinds.
    fn kinds(&self) -> usize {
        1
    }

    /// Adds the gradient of a kind.
    fn add_gradient(&self, kind: usize, w: &[f64], out: &mut [f64]);

    /// The quantity that is bounded: the excess risk, or the squared gradient.
    fn risk(&self, w: &[f64]) -> f64;
}

/// The loss ‖w‖: convex and 1-Lipschitz.
pub(super) struct Cone;

impl Task for Cone {
    fn add_gradient(&self, _: usize, w: &[f64], out: &mut [f64]) {
        let length = length(w).max(f64::MIN_POSITIVE);
        out.iter_mut().zip(w).for_each(|(out, w)| *out += w / length);
    }

    fn risk(&self, w: &[f64]) -> f64 {
        length(w)
    }
}

/// The losses √(‖w ± c‖² + s²): convex, 1-Lipschitz and 1/s-smooth, with the minimum of their mean at zero.
pub(super) struct Bowls {
    /// The last coordinate of c; the others are zero.
    pub(super) apart: f64,
    /// s.
    pub(super) width: f64,
}

impl Bowls {
    fn from(&self, kind: usize, w: &[f64]) -> (Vec<f64>, f64) {
        let mut from = w.to_vec();
        let last = from.len() - 1;
        from[last] += if kind == 0 { self.apart } else { -self.apart };
        let loss = (length(&from).powi(2) + self.width * self.width).sqrt();
        (from, loss)
    }
}

impl Task for Bowls {
    fn kinds(&self) -> usize {
        2
    }

    fn add_gradient(&self, kind: usize, w: &[f64], out: &mut [f64]) {
        let (from, loss) = self.from(kind, w);
        out.iter_mut().zip(from).for_each(|(out, from)| *out += from / loss);
    }

    fn risk(&self, w: &[f64]) -> f64 {
        let mean = |w: &[f64]| 0.5 * (self.from(0, w).1 + self.from(1, w).1);
        mean(w) - mean(&vec![0.0; w.len()])
    }
}

/// The loss λ‖w‖²/2.
struct Quadratic(f64);

impl Task for Quadratic {
    fn add_gradient(&self, _: usize, w: &[f64], out: &mut [f64]) {
        out.iter_mut().zip(w).for_each(|(out, w)| *out += self.0 * w);
    }

    fn risk(&self, w: &[f64]) -> f64 {
        0.5 * self.0 * length(w).powi(2)
    }
}

/// The loss Σ(1 - cos(kwⱼ))/k²: smooth, with many minima. Its squared gradient is bounded.
struct Waves(f64);

impl Task for Waves {
    fn add_gradient(&self, _: usize, w: &[f64], out: &mut [f64]) {
        out.iter_mut().zip(w).for_each(|(out, w)| *out += (self.0 * w).sin() / self.0);
    }

    fn risk(&self, w: &[f64]) -> f64 {
        w.iter().map(|w| ((self.0 * w).sin() / self.0).powi(2)).sum()
    }
}

/// One run of a plan.
pub(super) struct Run<'a> {
    pub(super) problem: &'a Problem,
    pub(super) task: &'a dyn Task,
    pub(super) steps: Descend,
    pub(super) start: Vec<f64>,
    /// Whether iterates are projected onto the ball of radius R around the start.
    pub(super) is_projected: bool,
}

impl Run<'_> {
    /// The records of a Poisson sample, by their kinds.
    fn sample(&self, random: &mut PublicRandom, mut take: impl FnMut(usize, &mut PublicRandom)) {
        let n = self.problem.records;
        let rate = self.steps.batch_size as f64 / n as f64;
        if self.steps.batch_size == n {
            (0..n as usize).for_each(|record| take(record % self.task.kinds(), random));
            return;
        }
        // The distance to the next record of the sample is geometric.
        let mut at = 0.0;
        loop {
            let unit = f64::from(1.0 - random.between(0.0, 1.0));
            at += (unit.ln() / (-rate).ln_1p()).floor() + 1.0;
            if at > n as f64 {
                return;
            }
            take(at as usize % self.task.kinds(), random);
        }
    }

    /// An unbiased noisy estimate of the gradient of the mean loss.
    fn estimate(&self, w: &[f64], random: &mut PublicRandom) -> Vec<f64> {
        let (d, kinds) = (w.len(), self.task.kinds());
        let batch = self.steps.batch_size as f64;
        let mut sum = vec![0.0; d];
        if self.steps.batch_size == self.problem.records && self.steps.smoothing == 0.0 {
            (0..kinds).for_each(|kind| self.task.add_gradient(kind, w, &mut sum));
            for sum in &mut sum {
                *sum *= batch / kinds as f64;
            }
        } else {
            let mut shifted = w.to_vec();
            self.sample(random, |kind, random| {
                if self.steps.smoothing > 0.0 {
                    let shift = |w: &f64| w + self.steps.smoothing * normal(random);
                    shifted = w.iter().map(shift).collect();
                }
                self.task.add_gradient(kind, &shifted, &mut sum);
            });
        }
        let noise = self.steps.noise_multiplier.get() * self.problem.lipschitz;
        sum.iter().map(|sum| (sum + noise * normal(random)) / batch).collect()
    }

    /// The estimate of a variance-reduced step.
    fn corrected(&self, w: &[f64], reference: &[f64], noise: f64, random: &mut PublicRandom) -> Vec<f64> {
        let (d, kinds) = (w.len(), self.task.kinds());
        let (n, batch) = (self.problem.records as f64, self.steps.batch_size as f64);
        let (mut here, mut there, mut all) = (vec![0.0; d], vec![0.0; d], vec![0.0; d]);
        (0..kinds).for_each(|kind| self.task.add_gradient(kind, reference, &mut all));
        self.sample(random, |kind, _| {
            self.task.add_gradient(kind, w, &mut here);
            self.task.add_gradient(kind, reference, &mut there);
        });
        let scale = self.problem.lipschitz;
        let correction = 2.0 * scale * self.steps.noise_multiplier.get();
        (0..d)
            .map(|j| {
                all[j] / kinds as f64
                    + noise * scale * normal(random) / n
                    + (here[j] - there[j] + correction * normal(random)) / batch
            })
            .collect()
    }

    fn projected(&self, w: &mut [f64]) {
        let from: Vec<f64> = w.iter().zip(&self.start).map(|(w, start)| w - start).collect();
        let scale = self.problem.radius / length(&from).max(self.problem.radius);
        if self.is_projected {
            w.iter_mut().zip(from).zip(&self.start).for_each(|((w, from), start)| *w = start + scale * from);
        }
    }

    /// The risk of the average for which the bound holds.
    pub(super) fn risk(&self, random: &mut PublicRandom) -> f64 {
        let steps = self.steps.steps;
        let (mut w, mut average, mut total) = (self.start.clone(), vec![0.0; self.start.len()], 0.0);
        let mut of_drawn = 0.0;
        let epochs = self.steps.reference.map_or(1, |reference| reference.epochs);
        let (mut reference, mut epoch) = (w.clone(), vec![0.0; w.len()]);
        for t in 1..=steps {
            let weight = match self.steps.average {
                Average::Linear => t as f64,
                // Relative to the last weight, which does not overflow.
                Average::Geometric(ratio) => ratio.powf(t as f64 - steps as f64),
                _ => 1.0,
            };
            average.iter_mut().zip(&w).for_each(|(average, w)| *average += weight * w);
            total += weight;
            of_drawn += self.task.risk(&w) / steps as f64;
            let eta = match self.steps.step_size {
                StepSize::Constant(eta) => eta,
                StepSize::Decreasing { strong_convexity } => 2.0 / (strong_convexity * (t as f64 + 1.0)),
                StepSize::Growing(_) => return self.accelerated(random),
            };
            let estimate = match self.steps.reference {
                None => self.estimate(&w, random),
                Some(noisy) => {
                    epoch.iter_mut().zip(&w).for_each(|(epoch, w)| *epoch += w);
                    self.corrected(&w, &reference, noisy.noise_multiplier.get(), random)
                }
            };
            w.iter_mut().zip(estimate).for_each(|(w, estimate)| *w -= eta * estimate);
            self.projected(&mut w);
            let in_epoch = steps / epochs;
            if self.steps.reference.is_some() && t % in_epoch == 0 {
                reference = epoch.iter().map(|epoch| epoch / in_epoch as f64).collect();
                epoch.fill(0.0);
            }
        }
        if self.steps.average == Average::Drawn {
            return of_drawn;
        }
        let average: Vec<f64> = average.iter().map(|average| average / total).collect();
        self.task.risk(&average)
    }

    fn accelerated(&self, random: &mut PublicRandom) -> f64 {
        let StepSize::Growing(gamma) = self.steps.step_size else { panic!("the steps do not grow") };
        let (mut x, mut aggregate) = (self.start.clone(), self.start.clone());
        let between = |a: &[f64], b: &[f64], alpha: f64| -> Vec<f64> {
            a.iter().zip(b).map(|(a, b)| (1.0 - alpha) * a + alpha * b).collect()
        };
        for t in 1..=self.steps.steps {
            let alpha = 2.0 / (t as f64 + 1.0);
            let estimate = self.estimate(&between(&aggregate, &x, alpha), random);
            x.iter_mut().zip(estimate).for_each(|(x, estimate)| *x -= gamma * t as f64 * estimate);
            aggregate = between(&aggregate, &x, alpha);
        }
        self.task.risk(&aggregate)
    }

    /// Mean and standard error of the risk over so many runs.
    pub(super) fn mean(&self, runs: u64) -> (f64, f64) {
        let risks: Vec<f64> = (0..runs).map(|run| self.risk(&mut PublicRandom::of(7, run))).collect();
        mean(&risks)
    }
}

/// Weights at this distance from zero, along the diagonal.
pub(super) fn start(dimension: u64, distance: f64) -> Vec<f64> {
    vec![distance / (dimension as f64).sqrt(); dimension as usize]
}

/// Checks that a plan's mean risk is below its bound, and at least a share of it.
fn check(problem: &Problem, plan: &Plan, task: &dyn Task, runs: u64, share: f64) {
    let is_projected = plan.loss == Loss::StronglyConvex;
    let start = start(problem.dimension, problem.radius);
    let run = Run { problem, task, steps: steps_of(plan), start, is_projected };
    let (risk, error) = run.mean(runs);
    let name = format!("{} for {}", plan.method.name(), plan.loss.name());
    assert!(risk + ERRORS * error <= plan.risk, "{name}: {risk} ± {error} above {}", plan.risk);
    assert!(risk - ERRORS * error >= share * plan.risk, "{name}: {risk} ± {error} far below {}", plan.risk);
}

#[test]
fn noisy_descent_on_a_cone_is_below_the_convex_bound() {
    let problem = Problem { smoothness: None, strong_convexity: None, ..super::problem(300, 5) };
    check(&problem, &plan(&problem, 2.0, Method::NoisyGd, Loss::Convex), &Cone, 200, 0.5);
    check(&problem, &plan(&problem, 2.0, Method::NoisySgd, Loss::Convex), &Cone, 100, 0.4);
}

#[test]
fn noisy_descent_on_bowls_is_below_the_smooth_bound() {
    let width = 0.005;
    let problem = Problem { smoothness: Some(1.0 / width), strong_convexity: None, ..super::problem(300, 5) };
    let task = Bowls { apart: width, width };
    for (method, runs, share) in
        [(Method::NoisyGd, 100, 0.4), (Method::NoisySgd, 60, 0.2), (Method::NoisySvrg, 60, 0.1)]
    {
        check(&problem, &plan(&problem, 2.0, method, Loss::SmoothConvex), &task, runs, share);
    }
}

#[test]
fn noisy_descent_on_a_parabola_is_below_the_strongly_convex_bounds() {
    // On the ball of radius 1 around the start, weights are at most 2 from zero, and gradients at most 1 long.
    let problem = Problem { smoothness: Some(0.5), strong_convexity: Some(0.5), ..super::problem(300, 5) };
    let task = Quadratic(0.5);
    check(&problem, &plan(&problem, 2.0, Method::NoisyGd, Loss::StronglyConvex), &task, 200, 0.1);
    check(&problem, &plan(&problem, 2.0, Method::NoisySgd, Loss::StronglyConvex), &task, 50, 0.1);
    check(&problem, &plan(&problem, 2.0, Method::NoisyGd, Loss::SmoothStronglyConvex), &task, 400, 0.05);
    check(&problem, &plan(&problem, 2.0, Method::NoisySgd, Loss::SmoothStronglyConvex), &task, 400, 0.05);
}

#[test]
fn noisy_descent_on_waves_is_below_the_bound_on_the_squared_gradient() {
    // Four coordinates start at 0.9π/2, close to a maximum. Gradients are at most 1 long.
    let radius = 0.9 * std::f64::consts::PI;
    let problem =
        Problem { smoothness: Some(1.0), strong_convexity: None, radius, ..super::problem(1000, 4) };
    for method in [Method::NoisyGd, Method::NoisySgd] {
        check(&problem, &plan(&problem, 1.0, method, Loss::SmoothNonConvex), &Waves(2.0), 200, 0.2);
    }
}

#[test]
fn accelerated_descent_on_a_smoothed_cone_is_below_its_bound() {
    let problem = Problem { smoothness: None, strong_convexity: None, ..super::problem(1000, 5) };
    check(&problem, &plan(&problem, 1.0, Method::SmoothedSgd, Loss::Convex), &Cone, 40, 0.02);
}

#[test]
fn perturbed_minimisers_are_below_their_bounds() {
    let mut random = PublicRandom::new(3);
    let (runs, d) = (4000, 10);
    let noise = |random: &mut PublicRandom, scale: f64| -> Vec<f64> {
        (0..d).map(|_| scale * normal(random)).collect()
    };
    let judge = |risks: &[f64], plan: &Plan, share: f64| {
        let (risk, error) = mean(risks);
        let name = format!("{} for {}", plan.method.name(), plan.loss.name());
        assert!(risk + ERRORS * error <= plan.risk, "{name}: {risk} ± {error} above {}", plan.risk);
        assert!(risk >= share * plan.risk, "{name}: {risk} ± {error} far below {}", plan.risk);
    };
    let settings = |plan: &Plan| match plan.procedure {
        Procedure::Minimise { regularization, noise } => (regularization, noise),
        Procedure::Descend(_) => panic!("{plan:?} takes steps"),
    };
    // The minimum of the cone stays where it is: r‖w - w₁‖²/2 pulls less than the cone.
    let problem = Problem { smoothness: Some(0.02), strong_convexity: None, ..super::problem(1000, d) };
    let output = plan(&problem, 1.0, Method::OutputPerturbation, Loss::Convex);
    let (weight, scale) = settings(&output);
    assert!(weight < 1.0);
    let risks: Vec<f64> = (0..runs).map(|_| length(&noise(&mut random, scale))).collect();
    judge(&risks, &output, 0.4);
    // The minimiser of β‖w‖²/2 + r‖w - w₁‖²/2 + ⟨b, w⟩ is (r w₁ - b)/(β + r).
    let beta = 0.02;
    let first = start(d, 1.0);
    let minimiser = |weight: f64, b: &[f64]| -> Vec<f64> {
        first.iter().zip(b).map(|(first, b)| (weight * first - b) / (beta + weight)).collect()
    };
    for loss in [Loss::SmoothConvex, Loss::SmoothGlm] {
        let output = plan(&problem, 1.0, Method::OutputPerturbation, loss);
        let (weight, scale) = settings(&output);
        let risks: Vec<f64> = (0..runs)
            .map(|_| {
                let minimum = minimiser(weight, &[0.0; 10]);
                let noise = noise(&mut random, scale);
                let w: Vec<f64> = minimum.iter().zip(noise).map(|(minimum, noise)| minimum + noise).collect();
                0.5 * beta * length(&w).powi(2)
            })
            .collect();
        judge(&risks, &output, 0.3);
        let objective = plan(&problem, 1.0, Method::ObjectivePerturbation, loss);
        let (weight, scale) = settings(&objective);
        let risks: Vec<f64> = (0..runs)
            .map(|_| 0.5 * beta * length(&minimiser(weight, &noise(&mut random, scale))).powi(2))
            .collect();
        judge(&risks, &objective, 0.1);
    }
    // The minimiser of a strongly convex loss itself, with noise. The bound for smooth losses is exact.
    let problem = Problem { smoothness: Some(0.5), strong_convexity: Some(0.5), ..super::problem(1000, d) };
    for (loss, share) in [(Loss::StronglyConvex, 0.003), (Loss::SmoothStronglyConvex, 0.9)] {
        let output = plan(&problem, 1.0, Method::OutputPerturbation, loss);
        let (_, scale) = settings(&output);
        let risks: Vec<f64> = (0..runs).map(|_| 0.25 * length(&noise(&mut random, scale)).powi(2)).collect();
        let (risk, error) = mean(&risks);
        assert!(
            risk - ERRORS * error <= output.risk && risk >= share * output.risk,
            "{risk} ± {error}: {output:?}"
        );
    }
}
