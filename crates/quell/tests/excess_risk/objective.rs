//! The privacy of objective perturbation, from the exact densities of its output.

use quell::learner::convex::{Glm, Logistic, Loss, Privacy, Problem, perturbation};
use quell_privacy::{
    Neighbors,
    units::{Delta, Epsilon},
};

/// A loss of one weight that is 1-Lipschitz.
#[derive(Clone, Copy)]
enum Record {
    /// ln(1 + e^w) - yw.
    Logistic(f64),
    /// w.
    Line,
    /// √(w² + s²).
    Bowl(f64),
}

impl Record {
    fn slope(self, w: f64) -> f64 {
        match self {
            Self::Logistic(target) => Logistic { target }.derivative(w),
            Self::Line => 1.0,
            Self::Bowl(s) => w / (w * w + s * s).sqrt(),
        }
    }

    fn curvature(self, w: f64) -> f64 {
        match self {
            Self::Logistic(_) => {
                let odds = w.exp();
                odds / (1.0 + odds).powi(2)
            }
            Self::Line => 0.0,
            Self::Bowl(s) => s * s / (w * w + s * s).powf(1.5),
        }
    }
}

/// The largest hockey-stick divergence between outputs on two datasets, in either direction.
fn divergence(datasets: [&[Record]; 2], epsilon: f64, weight: f64, sigma: f64) -> f64 {
    // The density of w is that of b(w) = -Σ ℓ'(w) - Λw, times |b'(w)|.
    let density = |records: &[Record], w: f64| {
        let slope: f64 = records.iter().map(|record| record.slope(w)).sum();
        let curvature: f64 = records.iter().map(|record| record.curvature(w)).sum();
        let b = (slope + weight * w) / sigma;
        (-0.5 * b * b).exp() / (std::f64::consts::TAU.sqrt() * sigma) * (curvature + weight)
    };
    let reach = (9.0 * sigma + 4.0) / weight;
    let count = 40_000;
    let step = 2.0 * reach / f64::from(count);
    let (mut forward, mut backward, mut mass) = (0.0, 0.0, 0.0);
    for i in 0..count {
        let w = -reach + (f64::from(i) + 0.5) * step;
        let (p, q) = (density(datasets[0], w), density(datasets[1], w));
        forward += (p - epsilon.exp() * q).max(0.0) * step;
        backward += (q - epsilon.exp() * p).max(0.0) * step;
        mass += p * step;
    }
    assert!((mass - 1.0).abs() < 1e-7, "the integral covers the density: {mass}");
    forward.max(backward)
}

/// Weight and noise of objective perturbation for the sum of the losses of so many records.
fn settings(records: usize, smoothness: f64, radius: f64, privacy: Privacy) -> (f64, f64) {
    let problem = Problem {
        records: records as u64,
        dimension: 1,
        lipschitz: 1.0,
        smoothness: Some(smoothness),
        strong_convexity: None,
        radius,
    };
    let found = perturbation::of_objective(&problem, Loss::SmoothGlm, privacy).unwrap();
    (records as f64 * found.regularization, records as f64 * found.noise)
}

/// Datasets, smoothness, neighbours, and the share of the noise that is known not to be enough, or zero.
type Case<'a> = (&'a [Record], &'a [Record], f64, Neighbors, f64);

#[test]
fn the_profile_of_objective_perturbation_is_below_delta_and_near_it() {
    let (yes, no, bowl) = (Record::Logistic(1.0), Record::Logistic(0.0), Record::Bowl(0.5));
    let cases: [Case<'_>; 7] = [
        (&[yes, yes, no], &[yes, yes], 0.25, Neighbors::AddRemove, 0.0),
        (&[yes, yes, yes], &[yes, yes], 0.25, Neighbors::AddRemove, 0.0),
        (&[yes, yes, no], &[yes, yes, yes], 0.25, Neighbors::Replace, 0.0),
        (&[bowl], &[], 2.0, Neighbors::AddRemove, 0.0),
        (&[yes, bowl], &[yes], 2.0, Neighbors::AddRemove, 0.0),
        // A line has a gradient of full length everywhere, and no Hessian: it costs half of δ.
        (&[Record::Line], &[], 1e-6, Neighbors::AddRemove, 0.8),
        (&[Record::Line, yes], &[yes], 1e-6, Neighbors::AddRemove, 0.8),
    ];
    for (epsilon, delta) in [(0.5, 1e-2), (1.0, 1e-3), (3.0, 1e-4)] {
        for (one, other, smoothness, neighbors, share) in cases {
            for radius in [0.1, 1.0, 10.0] {
                let privacy = Privacy {
                    epsilon: Epsilon::new(epsilon).unwrap(),
                    delta: Delta::new(delta).unwrap(),
                    neighbors,
                };
                let (weight, sigma) = settings(one.len(), smoothness, radius, privacy);
                let of = |share: f64| divergence([one, other], epsilon, weight, share * sigma);
                let truth = of(1.0);
                let case = format!("{epsilon}, {delta}, {smoothness}, {neighbors:?}, {radius}");
                assert!(truth <= delta, "{truth} at {case}");
                if share > 0.0 {
                    assert!(of(share) > delta, "{} at {case}", of(share));
                }
            }
        }
    }
}

#[test]
fn less_than_two_thirds_of_the_noise_breaks_the_promise_on_a_bowl() {
    // The gradient of a bowl follows the sign of the noise, and its Hessian is as large as the regulariser's.
    let privacy = Privacy {
        epsilon: Epsilon::new(3.0).unwrap(),
        delta: Delta::new(1e-3).unwrap(),
        neighbors: Neighbors::AddRemove,
    };
    let (weight, sigma) = settings(1, 2.0, 0.7, privacy);
    assert!((0.5..2.0).contains(&(2.0 / weight)), "{weight}");
    let of = |share: f64| divergence([&[Record::Bowl(0.5)], &[]], 3.0, weight, share * sigma);
    assert!(of(1.0) < 1e-3 && of(0.66) > 1e-3, "{} and {}", of(1.0), of(0.66));
}

/// The divergence between outputs with and without one record of loss √(‖w‖² + s²) in d dimensions.
///
/// Both laws look the same from every side, so the law of the length of w says it all.
fn divergence_of_lengths(dimension: u64, epsilon: f64, weight: f64, sigma: f64, s: f64) -> f64 {
    let d = dimension as f64;
    // A normal vector of d numbers has the length x with a density in proportion to x^(d - 1) e^(-x²/2).
    let chi = |x: f64| ((d - 1.0) * x.ln() - 0.5 * x * x).exp();
    let count = 40_000;
    let step = (sigma * (d.sqrt() + 9.0) + 4.0) / weight / f64::from(count);
    let (mut forward, mut backward, mut mass) = (0.0, 0.0, 0.0);
    for i in 0..count {
        let length = (f64::from(i) + 0.5) * step;
        let root = (length * length + s * s).sqrt();
        // The length of b, and its derivative.
        let (with, slope) = (weight * length + length / root, weight + s * s / root.powi(3));
        let (p, q) = (chi(with / sigma) * slope, chi(weight * length / sigma) * weight);
        forward += (p - epsilon.exp() * q).max(0.0);
        backward += (q - epsilon.exp() * p).max(0.0);
        mass += p;
    }
    forward.max(backward) / mass
}

#[test]
fn objective_perturbation_of_any_hessian_keeps_its_promise() {
    let (epsilon, delta) = (3.0, 1e-3);
    let privacy = Privacy {
        epsilon: Epsilon::new(epsilon).unwrap(),
        delta: Delta::new(delta).unwrap(),
        neighbors: Neighbors::AddRemove,
    };
    for dimension in [2, 3, 6] {
        let mut worst: f64 = 0.0;
        for radius in [0.03, 0.1, 0.3, 1.0, 3.0] {
            let problem = Problem {
                records: 1,
                dimension,
                lipschitz: 1.0,
                smoothness: Some(2.0),
                strong_convexity: None,
                radius,
            };
            let found = perturbation::of_objective(&problem, Loss::SmoothConvex, privacy).unwrap();
            let of = |share: f64| {
                divergence_of_lengths(dimension, epsilon, found.regularization, share * found.noise, 0.5)
            };
            assert!(of(1.0) <= delta, "{} for {dimension} and {radius}", of(1.0));
            worst = worst.max(of(0.4));
        }
        // In more dimensions, no loss has a gradient along b and a large Hessian across it.
        assert!(dimension > 2 || worst > delta, "{worst} with less than half of the noise");
    }
}
