//! How risk and work grow with n, d and ε: the exponents of the lecture's tables.

use quell::learner::convex::{Loss, Method, Problem};

use super::{
    ERRORS, plan, privacy, problem,
    simulated::{Cone, Run, start},
    steps_of,
};

/// The slope of ln y over ln x between two points.
fn slope((x, y): (f64, f64), (other_x, other_y): (f64, f64)) -> f64 {
    (other_y / y).ln() / (other_x / x).ln()
}

#[test]
fn the_bounds_have_the_exponents_of_the_table() {
    let (few, many, small, large) = (1e5, 4e5, 40.0, 160.0);
    let table = [
        // Method, loss, exponents of n, d and 1/z₁, where z₁ is about √(2 ln(1/δ))/ε.
        (Method::OutputPerturbation, Loss::Convex, -1.0 / 2.0, 1.0 / 4.0, -1.0 / 2.0),
        (Method::OutputPerturbation, Loss::SmoothConvex, -2.0 / 3.0, 1.0 / 3.0, -2.0 / 3.0),
        (Method::OutputPerturbation, Loss::StronglyConvex, -1.0, 1.0 / 2.0, -1.0),
        (Method::NoisyGd, Loss::Convex, -1.0, 1.0 / 2.0, -1.0),
        (Method::NoisyGd, Loss::SmoothConvex, -1.0, 1.0 / 2.0, -1.0),
        (Method::NoisyGd, Loss::StronglyConvex, -2.0, 1.0, -2.0),
        (Method::NoisyGd, Loss::SmoothNonConvex, -1.0, 1.0 / 2.0, -1.0),
        (Method::ObjectivePerturbation, Loss::SmoothGlm, -1.0, 1.0 / 2.0, -1.0),
    ];
    for (method, loss, in_records, in_dimension, in_privacy) in table {
        let risk =
            |n: f64, d: f64, epsilon: f64| plan(&problem(n as u64, d as u64), epsilon, method, loss).risk;
        let inverse = |epsilon: f64| privacy(epsilon).one_release().unwrap().recip();
        let found = [
            slope((few, risk(few, small, 1.0)), (many, risk(many, small, 1.0))),
            slope((small, risk(few, small, 1.0)), (large, risk(few, large, 1.0))),
            slope((inverse(0.5), risk(few, small, 0.5)), (inverse(2.0), risk(few, small, 2.0))),
        ];
        for (found, expected) in found.into_iter().zip([in_records, in_dimension, in_privacy]) {
            // The multiplier of objective perturbation is at δ/2, and Hessians cost a little.
            let tolerance = if method == Method::ObjectivePerturbation { 0.02 } else { 2e-3 };
            assert!((found - expected).abs() < tolerance, "{method:?} {loss:?}: {found} against {expected}");
        }
    }
    // Any Hessian: the noise of objective perturbation grows like √d, and the risk like d. √(2 ln(1/δ)) is added
    // to √d, so that the exponent comes closer as d grows.
    let risk = |d: f64| {
        plan(&problem(1 << 50, d as u64), 1.0, Method::ObjectivePerturbation, Loss::SmoothConvex).risk
    };
    let found = slope((1e6, risk(1e6)), (4e6, risk(4e6)));
    assert!((found - 1.0).abs() < 0.01, "{found}");
}

#[test]
fn the_work_has_the_exponents_of_the_table() {
    let (few, many) = (2e5, 8e5);
    let work = |method, loss| {
        let of = |n: f64| plan(&problem(n as u64, 2000), 1.0, method, loss).gradient_evaluations.unwrap();
        slope((few, of(few)), (many, of(many)))
    };
    let near = |found: f64, expected: f64, tolerance: f64, what: &str| {
        assert!((found - expected).abs() < tolerance, "{what}: {found} against {expected}");
    };
    near(work(Method::NoisyGd, Loss::Convex), 3.0, 0.01, "NoisyGD, convex");
    near(work(Method::NoisyGd, Loss::StronglyConvex), 3.0, 0.01, "NoisyGD, strongly convex");
    near(work(Method::NoisySgd, Loss::Convex), 2.0, 0.15, "NoisySGD, convex");
    near(work(Method::NoisySgd, Loss::StronglyConvex), 2.0, 0.15, "NoisySGD, strongly convex");
    // n^(3/2)/d^(1/8) for large d, by Kulkarni, Lee and Liu.
    near(work(Method::SmoothedSgd, Loss::Convex), 1.5, 0.15, "smoothed");
    // Smooth losses take few steps, so more records are needed for whole numbers not to matter.
    let of =
        |n: f64| plan(&problem(n as u64, 50), 1.0, Method::NoisyGd, Loss::SmoothConvex).gradient_evaluations;
    near(slope((1e6, of(1e6).unwrap()), (4e6, of(4e6).unwrap())), 2.0, 0.01, "NoisyGD, smooth");
}

/// On the cone, simulated risk falls with n and ε and grows with d as the table says.
///
/// Steps and noise of a plan scale so that the paths for other n and d are the same up to the length of a step,
/// which is about R/√T. So besides the statistical error, a slope is off by about ln(1 + 2/√T)/ln(x'/x).
#[test]
fn simulated_risk_has_the_exponents_of_the_table() {
    let simulated = |records: u64, dimension: u64, epsilon: f64| {
        let problem = Problem { smoothness: None, strong_convexity: None, ..problem(records, dimension) };
        let steps = steps_of(&plan(&problem, epsilon, Method::NoisyGd, Loss::Convex));
        let run =
            Run { problem: &problem, task: &Cone, steps, start: start(dimension, 1.0), is_projected: false };
        let (risk, error) = run.mean(150);
        (risk, error / risk, steps.steps as f64)
    };
    let inverse = |epsilon: f64| privacy(epsilon).one_release().unwrap().recip();
    let base = (200, 8, 1.5);
    let low = simulated(base.0, base.1, base.2);
    let cases = [
        (200.0, 800.0, simulated(800, base.1, base.2), -1.0, "n"),
        (8.0, 2.0, simulated(base.0, 2, base.2), 0.5, "d"),
        (inverse(1.5), inverse(4.0), simulated(base.0, base.1, 4.0), -1.0, "ε"),
    ];
    for (x, other, (risk, error, steps), expected, what) in cases {
        let found = slope((x, low.0), (other, risk));
        let statistics = ERRORS * (low.1.powi(2) + error.powi(2)).sqrt();
        let length_of_steps = (2.0 / low.2.min(steps).sqrt()).ln_1p();
        let tolerance = (statistics + length_of_steps) / (other / x).ln().abs();
        assert!(tolerance < 0.25, "the test has no power: {tolerance}");
        assert!((found - expected).abs() <= tolerance, "{what}: {found} ± {tolerance} against {expected}");
    }
}
