//! Plans: the noise meets the guarantee, the numbers are those of the theorems.

use quell::{
    Error,
    learner::convex::{
        DpGdNoise, Factor, Loss, Method, Plan, Privacy, Problem, Procedure,
        excess_risk::{self, of_descent, variance},
        perturbation,
    },
};
use quell_privacy::{
    Event, Neighbors,
    accounting::{Calibration, Target, closed},
    mechanism::{Clipping, Descent, Sampling},
    units::{ClipNorm, Delta, Epsilon, NoiseMultiplier, SamplingRate},
};

use super::{plan, privacy, problem, steps_of};

/// Every plan for a problem.
fn all(problem: &Problem, privacy: Privacy) -> Vec<Plan> {
    let plans = Loss::ALL.map(|loss| Plan::all(problem, privacy, loss, Factor::default()));
    plans.into_iter().flatten().map(Result::unwrap).collect()
}

/// What a plan does to the records.
fn event(problem: &Problem, plan: &Plan) -> Event {
    let steps = steps_of(plan);
    let (multiplier, count) = (steps.noise_multiplier, steps.steps);
    let rate = SamplingRate::new(steps.batch_size as f64 / problem.records as f64).unwrap();
    let sums = Event::dp_sgd(multiplier, rate, count);
    match steps.reference {
        Some(reference) => {
            Event::Composed(vec![Event::gaussian(reference.noise_multiplier).repeated(count), sums])
        }
        None => sums,
    }
}

#[test]
fn the_accountant_confirms_the_noise_of_every_plan() {
    let mut seen = 0;
    for (problem, epsilon, neighbors) in [
        (problem(2000, 20), 1.0, Neighbors::AddRemove),
        (problem(300, 5), 4.0, Neighbors::Replace),
        (problem(50, 100), 0.3, Neighbors::AddRemove),
    ] {
        let privacy = Privacy { neighbors, ..privacy(epsilon) };
        let target = Target::EpsilonDelta { epsilon: privacy.epsilon, delta: privacy.delta };
        for plan in all(&problem, privacy) {
            let Procedure::Descend(steps) = plan.procedure else { continue };
            let event = event(&problem, &plan);
            let found = Calibration::new(target, neighbors).judge(&event).unwrap();
            assert!(found.upper <= epsilon * (1.0 + 1e-9), "{found:?} for {plan:?}");
            assert!(found.lower >= 0.9 * epsilon, "noise is not wasted: {found:?} for {plan:?}");
            seen += 1;
            // The bound is that of the noise that the mechanism draws.
            if plan.method == Method::NoisyGd || plan.method == Method::NoisySgd {
                let descent = Descent {
                    sampling: Sampling::Full,
                    clipping: Clipping::Flat { norm: ClipNorm::new(problem.lipschitz).unwrap() },
                    noise_multiplier: steps.noise_multiplier,
                    dimension: problem.dimension as usize,
                };
                let drawn = steps.noise_multiplier.get() * descent.inflation().unwrap();
                let variance = variance(&problem, steps.batch_size as f64, drawn);
                let again = of_descent(&problem, plan.loss, steps.steps, variance).unwrap();
                assert_eq!((again.risk, again.step_size), (plan.risk, steps.step_size));
            }
        }
    }
    assert!(seen > 40, "{seen} plans");
}

#[test]
fn output_perturbation_has_the_noise_of_its_sensitivity() {
    for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
        let (problem, privacy) = (problem(500, 10), Privacy { neighbors, ..privacy(1.0) });
        for loss in [Loss::Convex, Loss::SmoothConvex, Loss::StronglyConvex, Loss::SmoothStronglyConvex] {
            let found = perturbation::of_output(&problem, loss, privacy.one_release().unwrap()).unwrap();
            let curvature = if loss.is_strongly_convex() {
                problem.strong_convexity.unwrap()
            } else {
                found.regularization
            };
            let contribution = problem.lipschitz / (problem.records as f64 * curvature);
            let multiplier = NoiseMultiplier::new(found.noise / contribution).unwrap();
            let cost = closed::epsilon(&Event::gaussian(multiplier), neighbors, privacy.delta).unwrap();
            assert!(cost.upper <= 1.0 + 1e-9 && cost.lower > 0.999, "{cost:?} for {loss:?}");
        }
    }
}

#[test]
fn plans_come_within_the_factor_of_their_limits() {
    let problem = problem(3000, 30);
    let one = privacy(1.0).one_release().unwrap();
    for factor in [1.1, 1.5, 3.0] {
        for loss in Loss::ALL {
            let limit = excess_risk::limit(&problem, loss, one).unwrap();
            let plans = Plan::all(&problem, privacy(1.0), loss, Factor::new(factor).unwrap());
            for plan in plans.map(Result::unwrap).filter(|plan| plan.gradient_evaluations.is_some()) {
                let own = match plan.method {
                    Method::SmoothedSgd => 2.0 / 3.0_f64.sqrt(),
                    Method::NoisySvrg => 3.0,
                    _ => 1.0,
                };
                assert!(plan.risk <= factor * own * limit, "{plan:?}");
            }
        }
    }
}

#[test]
fn more_steps_on_all_records_come_to_the_limit() {
    let problem = problem(3000, 30);
    let one = privacy(1.0).one_release().unwrap();
    for loss in Loss::ALL {
        let limit = excess_risk::limit(&problem, loss, one).unwrap();
        let risk = |steps: u64| {
            let variance = variance(&problem, 3000.0, one * (steps as f64).sqrt());
            of_descent(&problem, loss, steps, variance).unwrap().risk
        };
        let last = risk(1 << 40);
        assert!((last / limit - 1.0).abs() < 1e-5, "{last} against {limit} for {loss:?}");
        // Larger steps contract a little more on smooth and strongly convex losses.
        if loss != Loss::SmoothStronglyConvex {
            assert!((0..40).all(|i| risk(1 << i) >= limit * (1.0 - 1e-9)), "{loss:?}");
        }
    }
}

/// The cells of the lecture, with ρ = 1/(2z₁²) and the constants of THEORY, Noisy descent.
#[test]
fn the_table_has_the_cells_of_the_lecture() {
    for (records, dimension, epsilon) in [(10_000, 50, 1.0), (100_000, 10, 0.2), (3000, 3, 5.0)] {
        let problem = problem(records, dimension);
        let (n, d) = (records as f64, dimension as f64);
        let rho = privacy(epsilon).one_release().unwrap().powi(2).recip() / 2.0;
        let (beta, lambda) = (0.5, 0.1);
        let is = |found: f64, expected: f64, what: &str| {
            assert!((found / expected - 1.0).abs() < 1e-9, "{what}: {found} against {expected}");
        };
        let risk = |method, loss| plan(&problem, epsilon, method, loss).risk;
        // Output perturbation: d^(1/4)LR/(n^(1/2)ρ^(1/4)), and d^(1/3)β^(1/3)L^(2/3)R^(4/3)/(n^(2/3)ρ^(1/3)).
        let cell = d.powf(0.25) / (n.sqrt() * rho.powf(0.25));
        is(risk(Method::OutputPerturbation, Loss::Convex), 2_f64.powf(0.25) * cell, "output, convex");
        let cell = (d * beta / (n * n * rho)).cbrt();
        is(risk(Method::OutputPerturbation, Loss::SmoothConvex), 0.75 * cell, "output, smooth");
        // NoisyGD: √d LR/(n√ρ), and dL²/(n²λρ).
        let one = privacy(epsilon).one_release().unwrap();
        let limit = |loss| excess_risk::limit(&problem, loss, one).unwrap();
        is(limit(Loss::Convex), (d / (2.0 * rho)).sqrt() / n, "NoisyGD, convex");
        is(limit(Loss::StronglyConvex), d / (n * n * lambda * rho), "NoisyGD, strongly convex");
        let start = problem.start(Loss::SmoothNonConvex);
        let cell = 2.0 * (beta * d * start / rho).sqrt() / n;
        is(limit(Loss::SmoothNonConvex), cell, "NoisyGD, not convex");
        // Steps of NoisyGD: n²ρ/d, and nβR√ρ/(√d L). Steps are whole, and noise is drawn 0.2 % larger.
        let about = |found: u64, expected: f64, what: &str| {
            let off = (found as f64 - expected).abs();
            assert!(off <= 1.0 + 0.02 * expected, "{what}: {found} against {expected}");
        };
        let steps = |loss| steps_of(&plan(&problem, epsilon, Method::NoisyGd, loss)).steps;
        let factor: f64 = 1.5;
        about(steps(Loss::Convex), 2.0 * n * n * rho / (d * (factor * factor - 1.0)), "convex");
        // At (1/x + x)/2 = 3/2 times the limit, x of the steps are enough.
        let x = factor - (factor * factor - 1.0).sqrt();
        about(steps(Loss::SmoothConvex), x * n * beta * (2.0 * rho / d).sqrt(), "smooth");
        about(steps(Loss::StronglyConvex), 2.0 * n * n * rho / (d * (factor - 1.0)), "strongly convex");
    }
}

#[test]
fn the_bounds_are_at_most_those_of_the_lecture() {
    // R²/(Tη) + ηdσ², R²/(Tη) + η(n²L² + dσ²) and 4(n²L² + dσ²)/(λ(T + 1)), for the sum of n losses. The sum
    // has n times our λ, and its η is ours over n.
    let (n, d, l, r, sigma) = (1000.0, 20.0, 1.0, 1.0, 300.0_f64);
    let problem = problem(1000, 20);
    let variance = variance(&problem, n, sigma / l);
    for steps in [1_u64, 10, 1000, 100_000] {
        let t = steps as f64;
        let noise = d * sigma * sigma;
        for eta in [1e-6, 1e-5, 1e-4, 1e-3, 1e-2] {
            let lecture = |rest: f64| (r * r / (t * eta) + eta * rest) / n;
            let found = of_descent(&problem, Loss::Convex, steps, variance).unwrap().risk;
            assert!(found <= lecture(n * n * l * l + noise));
            // The smooth bound needs η ≤ 1/β, and the sum is n times as smooth.
            if eta <= 1.0 / (0.5 * n) {
                let found = of_descent(&problem, Loss::SmoothConvex, steps, variance).unwrap().risk;
                assert!(found <= lecture(noise));
            }
        }
        let lecture = 4.0 * (n * n * l * l + noise) / (n * 0.1 * (t + 1.0)) / n;
        let found = of_descent(&problem, Loss::StronglyConvex, steps, variance).unwrap().risk;
        assert!((found / lecture - 0.5).abs() < 1e-12, "{found} against {lecture}");
    }
}

#[test]
fn objective_perturbation_tends_to_the_limit_of_noisy_descent_in_linear_models() {
    let problem = problem(10_000_000, 50);
    let linear = plan(&problem, 1.0, Method::ObjectivePerturbation, Loss::SmoothGlm).risk;
    // √d LR/n times the multiplier at (ε, δ/2).
    let half = Delta::new(0.5e-5).unwrap();
    let sigma = closed::gaussian_sigma(Epsilon::new(1.0).unwrap(), half).unwrap().get();
    let limit = 50_f64.sqrt() * sigma / 1e7;
    assert!(linear > limit && linear < 1.1 * limit, "{linear} against {limit}");
    // Any Hessian: the noise grows with the length of b, and the bound with d.
    let any = plan(&problem, 1.0, Method::ObjectivePerturbation, Loss::SmoothConvex).risk;
    assert!(any > 2.0 * linear && any < 50_f64.sqrt() * linear, "{any} against {linear}");
}

#[test]
fn sampling_saves_gradients_and_smoothing_saves_steps() {
    let problem = problem(20_000, 20);
    let of = |method, loss| plan(&problem, 1.0, method, loss);
    let work = |method, loss| of(method, loss).gradient_evaluations.unwrap();
    for loss in Loss::ALL {
        assert!(work(Method::NoisySgd, loss) < work(Method::NoisyGd, loss), "{loss:?}");
    }
    assert!(work(Method::NoisySvrg, Loss::SmoothConvex) < work(Method::NoisySgd, Loss::SmoothConvex));
    let steps = |method| steps_of(&of(method, Loss::Convex)).steps;
    assert!(20 * steps(Method::SmoothedSgd) < steps(Method::NoisyGd));
    assert!(work(Method::SmoothedSgd, Loss::Convex) < work(Method::NoisySgd, Loss::Convex));
}

#[test]
fn the_two_noises_of_dp_gd_are_those_of_the_lecture_and_of_the_accountant() {
    let (epsilon, delta) = (Epsilon::new(0.5).unwrap(), Delta::new(1e-6).unwrap());
    for (records, steps, clip) in [(1000_u64, 1_u64, 1.0), (5000, 50, 0.5), (100, 1000, 3.0)] {
        let noise = DpGdNoise::new(records, steps, ClipNorm::new(clip).unwrap(), epsilon, delta).unwrap();
        let (n, t) = (records as f64, steps as f64);
        let lecture = 2.0 * clip * t * (2.0 * (2.0 * t / 1e-6).ln()).sqrt() / (0.5 * n);
        assert!((noise.basic / lecture - 1.0).abs() < 1e-12, "{noise:?} against {lecture}");
        assert!(noise.tight < noise.basic);
        // In units of one record's contribution C/n, where a record is replaced.
        let multiplier = NoiseMultiplier::new(noise.tight * n / clip).unwrap();
        let event = Event::gaussian(multiplier).repeated(steps);
        let cost = closed::epsilon(&event, Neighbors::Replace, delta).unwrap();
        assert!(cost.upper <= 0.5 * (1.0 + 1e-9) && cost.lower > 0.4999, "{cost:?}");
    }
    let none = DpGdNoise::new(0, 1, ClipNorm::new(1.0).unwrap(), epsilon, delta);
    assert!(matches!(none, Err(Error::OutOfRange { what: "records", .. })));
}

#[test]
fn numbers_out_of_range_are_refused() {
    let good = problem(100, 10);
    let bad = [
        Problem { records: 0, ..good },
        Problem { dimension: 0, ..good },
        Problem { records: u64::MAX, ..good },
        Problem { lipschitz: 0.0, ..good },
        Problem { lipschitz: f64::NAN, ..good },
        Problem { radius: -1.0, ..good },
        Problem { lipschitz: 1e200, radius: 1e200, ..good },
        Problem { smoothness: Some(0.0), ..good },
        Problem { strong_convexity: Some(f64::INFINITY), ..good },
        // No loss is both that steep in its middle and 1-Lipschitz, or that smooth.
        Problem { strong_convexity: Some(1.1), smoothness: None, ..good },
        Problem { strong_convexity: Some(0.6), ..good },
    ];
    for problem in bad {
        assert!(problem.check().is_err(), "{problem:?}");
        for loss in Loss::ALL {
            for plan in Plan::all(&problem, privacy(1.0), loss, Factor::default()) {
                assert!(plan.is_err(), "{plan:?}");
            }
        }
    }
    assert!(good.check().is_ok());
    for factor in [1.0, f64::NAN, 101.0] {
        assert!(Factor::new(factor).is_err());
    }
}

#[test]
fn without_a_theorem_there_is_no_plan() {
    let problem = problem(100, 10);
    for method in Method::ALL {
        for loss in Loss::ALL {
            let plan = Plan::new(&problem, privacy(1.0), method, loss, Factor::default());
            assert_eq!(plan.is_ok(), method.applies_to(loss), "{method:?} {loss:?}: {plan:?}");
        }
    }
    let bare = Problem { smoothness: None, strong_convexity: None, ..problem };
    for loss in Loss::ALL {
        for plan in Plan::all(&bare, privacy(1.0), loss, Factor::default()) {
            assert_eq!(plan.is_ok(), loss == Loss::Convex, "{plan:?}");
        }
    }
    // At ε = 0 only Gaussian noise has a plan.
    let none = Privacy { epsilon: Epsilon::new(0.0).unwrap(), ..privacy(1.0) };
    let of = |method| Plan::new(&problem, none, method, Loss::SmoothGlm, Factor::default());
    assert!(of(Method::ObjectivePerturbation).is_err() && of(Method::NoisyGd).is_ok());
}

#[test]
fn a_plan_that_is_no_better_than_the_start_says_so() {
    let (few, many) = (problem(50, 100), problem(100_000, 10));
    for loss in Loss::ALL {
        let useful = |problem: &Problem| plan(problem, 0.1, Method::NoisyGd, loss).is_useful(problem);
        assert!(!useful(&few) && useful(&many), "{loss:?}");
    }
}
