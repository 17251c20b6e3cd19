//! Output and objective perturbation: what they release, and what they cost.
//!
//! The densities of objective perturbation in one dimension are integrated here, from formulas that share
//! nothing with the library. Statistics are judged at a false-alarm rate of about 1e-6.

use crate::book::{ledger, without_cap};
use quell_privacy::{
    Error, Event, Neighbors,
    accounting::{Conversion, Pld, Renyi},
    ledger::Paid,
    mechanism::{ConvexLoss, LinearObjective, Mechanism, ObjectivePerturbation, OutputPerturbation, Rows},
    units::{
        CurvatureRatio, Delta, NoiseMultiplier, Order, Probability, Regularization, SamplingRate, Threshold,
        Tolerance,
    },
};

fn times(value: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(value).unwrap()
}

fn perturbed(noise_multiplier: f64, ratio: f64) -> Event {
    Event::PerturbedObjective {
        noise_multiplier: times(noise_multiplier),
        curvature_ratio: CurvatureRatio::new(ratio).unwrap(),
    }
}

/// A one-dimensional objective: the slope of its losses, and their curvature.
struct Line {
    slope: Box<dyn Fn(f64) -> f64>,
    curvature: Box<dyn Fn(f64) -> f64>,
    penalty: f64,
    deviation: f64,
}

impl Line {
    /// ∇J(θ), which is -b.
    fn gradient(&self, theta: f64) -> f64 {
        (self.slope)(theta) + self.penalty * theta
    }

    /// ln of the density of the minimiser: that of b, times J''.
    fn ln_density(&self, theta: f64) -> f64 {
        let b = self.gradient(theta) / self.deviation;
        -0.5 * b * b + ((self.curvature)(theta) + self.penalty).ln()
            - (self.deviation * std::f64::consts::TAU.sqrt()).ln()
    }
}

/// A dataset with a record and the same without it.
struct Pair {
    with: Line,
    without: Line,
    /// The range of θ outside of which both densities are negligible, and the points of discontinuity.
    reach: f64,
    name: &'static str,
    /// L/σ as a multiplier, and β/Λ.
    event: Event,
}

fn logistic(theta: f64) -> f64 {
    1.0 / (1.0 + (-theta).exp())
}

/// Losses of a record x = 1 and of some others, with slope at most one.
fn pairs() -> Vec<Pair> {
    let mut pairs = Vec::new();
    // A record of class -1, beside `others` records of class 1 with x = 1.
    for (penalty, deviation, others) in
        [(0.5, 2.0, 0.0), (0.05, 1.0, 3.0), (5.0, 4.0, 50.0), (0.01, 3.0, 0.0)]
    {
        let line = |with: f64| Line {
            slope: Box::new(move |theta| with * logistic(theta) - others * logistic(-theta)),
            curvature: Box::new(move |theta| (with + others) * logistic(theta) * logistic(-theta)),
            penalty,
            deviation,
        };
        let event = perturbed(deviation, 0.25 / penalty);
        let reach = (14.0 * deviation + others) / penalty;
        pairs.push(Pair { with: line(1.0), without: line(0.0), reach, name: "logistic", event });
    }
    // Huber's loss of threshold one: targets within reach and out of reach.
    for (penalty, deviation, target) in [
        (0.5, 1.5, 0.0),
        (0.001, 2.0, 0.0),
        (0.02, 1.0, 7.0),
        (1.0, 3.0, 1e6),
        (30.0, 0.8, 0.1),
        (100.0, 2.0, 1e6),
    ] {
        let line = |with: f64| Line {
            slope: Box::new(move |theta| with * (theta - target).clamp(-1.0, 1.0)),
            curvature: Box::new(move |theta| if (theta - target).abs() < 1.0 { with } else { 0.0 }),
            penalty,
            deviation,
        };
        let event = perturbed(deviation, 1.0 / penalty);
        let reach = (14.0 * deviation + 1.0) / penalty;
        pairs.push(Pair { with: line(1.0), without: line(0.0), reach, name: "huber", event });
    }
    pairs
}

/// ∫ f over θ, by the midpoint rule in a variable that is dense where losses bend.
fn integral(reach: f64, f: impl Fn(f64) -> f64) -> f64 {
    let steps = 200_000;
    let end = reach.asinh();
    let h = 2.0 * end / f64::from(steps);
    (0..steps)
        .map(|step| {
            let u = -end + h * (f64::from(step) + 0.5);
            f(u.sinh()) * u.cosh() * h
        })
        .sum()
}

/// δ(ε) of two densities, given by their logarithms.
fn profile(pair: &Pair, p: &Line, q: &Line, epsilon: f64) -> f64 {
    integral(pair.reach, |theta| (p.ln_density(theta).exp() - (epsilon + q.ln_density(theta)).exp()).max(0.0))
}

#[test]
fn densities_of_minimisers_integrate_to_one() {
    for pair in pairs() {
        for line in [&pair.with, &pair.without] {
            let total = integral(pair.reach, |theta| line.ln_density(theta).exp());
            assert!((total - 1.0).abs() < 1e-4, "{}: {total}", pair.name);
        }
    }
}

#[test]
fn profiles_of_objective_perturbation_are_never_above_their_bound_and_sometimes_nearly_as_large() {
    let mut nearest: f64 = 0.0;
    for pair in pairs() {
        for epsilon in [0.0, 0.1, 0.5, 1.0, 1.5, 2.0, 3.0] {
            let bound = Pld::default().delta(&pair.event, Neighbors::AddRemove, epsilon).unwrap();
            assert!(bound.lower <= bound.upper, "{bound:?}");
            for (p, q) in [(&pair.with, &pair.without), (&pair.without, &pair.with)] {
                let truth = profile(&pair, p, q, epsilon);
                assert!(
                    truth <= bound.upper * (1.0 + 1e-4) + 1e-6,
                    "{} {:?} {epsilon}: {truth} {bound:?}",
                    pair.name,
                    pair.event
                );
                if (1e-4..0.5).contains(&truth) {
                    let delta = Delta::new(truth).unwrap();
                    let claimed = Pld::default().epsilon(&pair.event, Neighbors::AddRemove, delta).unwrap();
                    nearest = nearest.max(epsilon / claimed.upper);
                }
            }
        }
    }
    assert!(nearest > 0.9, "{nearest}");
}

/// Without the factor two for both tails the bound would be untrue: a steep loss that bends at zero.
#[test]
fn a_record_without_curvature_elsewhere_needs_both_tails() {
    let pair = pairs().into_iter().find(|pair| pair.event == perturbed(2.0, 1000.0)).unwrap();
    for epsilon in [0.5_f64, 1.0, 2.0] {
        let truth = profile(&pair, &pair.without, &pair.with, epsilon);
        let gaussian =
            Pld::default().delta(&Event::gaussian(times(2.0)), Neighbors::AddRemove, epsilon).unwrap();
        assert!(
            truth > 1.98 * gaussian.upper && truth <= 2.0 * gaussian.upper * (1.0 + 1e-4),
            "{truth} {gaussian:?}"
        );
    }
}

/// A loss of constant slope is a sum with Gaussian noise, so no bound can be below that of Gaussian noise.
#[test]
fn lower_bounds_of_objective_perturbation_are_those_of_gaussian_noise() {
    for (z, ratio) in [(2.0, 0.1), (0.7, 3.0), (5.0, 0.0)] {
        for delta in [1e-3, 1e-6, 1e-10] {
            let delta = Delta::new(delta).unwrap();
            let of = |event: &Event| Pld::default().epsilon(event, Neighbors::AddRemove, delta).unwrap();
            let (found, gaussian) = (of(&perturbed(z, ratio)), of(&Event::gaussian(times(z))));
            assert!(found.lower >= gaussian.lower * (1.0 - 1e-9) && found.lower <= gaussian.upper);
            assert!(found.upper >= gaussian.upper);
        }
    }
}

/// The closed forms of THEORY, Objective perturbation: Gaussian profiles, shifted and doubled.
#[test]
fn profiles_of_single_releases_are_shifted_and_doubled_gaussian_profiles() {
    let gaussian = |z: f64, epsilon: f64| {
        Pld::default().delta(&Event::gaussian(times(z)), Neighbors::AddRemove, epsilon).unwrap().upper
    };
    for (z, ratio) in [(2.0, 0.1), (0.7, 3.0), (5.0, 0.0), (20.0, 0.02)] {
        let shift = f64::ln_1p(ratio);
        for epsilon in [0.2, 1.0, 2.0, 4.0_f64] {
            let epsilon = epsilon + shift + 0.5 / (z * z);
            let bound = Pld::default().delta(&perturbed(z, ratio), Neighbors::AddRemove, epsilon).unwrap();
            let expected = gaussian(z, epsilon - shift).max(2.0 * gaussian(z, epsilon));
            let error = (bound.upper - expected).abs();
            assert!(error <= 1e-8 * expected + 1e-290, "{z} {ratio} {epsilon}: {bound:?} {expected}");
        }
    }
}

#[test]
fn renyi_divergences_of_objective_perturbation_are_never_above_their_bound() {
    for pair in pairs() {
        let renyi = Renyi::new(&pair.event, Neighbors::AddRemove).unwrap();
        for alpha in [1.1, 1.5, 2.0, 4.0, 10.0] {
            let bound = renyi.divergence(Order::new(alpha).unwrap());
            for (p, q) in [(&pair.with, &pair.without), (&pair.without, &pair.with)] {
                let moment = integral(1.5 * pair.reach, |theta| {
                    (alpha * p.ln_density(theta) + (1.0 - alpha) * q.ln_density(theta)).exp()
                });
                let truth = moment.ln() / (alpha - 1.0);
                assert!(truth <= bound + 2e-3, "{} {:?} {alpha}: {truth} {bound}", pair.name, pair.event);
            }
        }
    }
}

/// Moments of max(0, N) and |N| by quadrature.
#[test]
fn renyi_bounds_have_their_closed_form() {
    let moment = |t: f64, tail: &dyn Fn(f64) -> f64| {
        let (h, root) = (1e-3, std::f64::consts::TAU.sqrt());
        let term = |x: f64| (t * tail(x) - 0.5 * x * x).exp() / root * h;
        (-60_000..60_000).map(|i| term(f64::from(i) * h)).sum::<f64>()
    };
    for (z, ratio) in [(2.0, 0.1), (0.7, 3.0), (1.0, 0.0)] {
        let (mu, shift) = (1.0 / z, f64::ln_1p(ratio));
        for alpha in [1.01, 1.5, 2.0, 8.0] {
            let t = alpha - 1.0;
            let remove = shift + mu * mu / 2.0 + moment(t * mu, &|x| x.max(0.0)).ln() / t;
            let add = mu * mu / 2.0 + moment(t * mu, &f64::abs).ln() / t;
            let replace = shift + 2.0 * mu * mu + moment(2.0 * t * mu, &f64::abs).ln() / t;
            let of = |neighbors| {
                Renyi::new(&perturbed(z, ratio), neighbors).unwrap().divergence(Order::new(alpha).unwrap())
            };
            let (found, replaced) = (of(Neighbors::AddRemove), of(Neighbors::Replace));
            assert!((found / remove.max(add) - 1.0).abs() < 1e-6, "{z} {alpha}: {found} {remove} {add}");
            assert!((replaced / replace - 1.0).abs() < 1e-6, "{z} {alpha}: {replaced} {replace}");
        }
    }
}

/// Two records at any angle, one replaced by the other, in two dimensions: the density by its own formula.
#[test]
fn renyi_divergences_between_replaced_records_are_never_above_their_bound() {
    let (penalty, deviation) = (0.5, 1.5);
    let bound = Renyi::new(&perturbed(deviation, 0.25 / penalty), Neighbors::Replace).unwrap();
    for angle in [0.0, 0.8, 1.6, 2.5, std::f64::consts::PI] {
        let other = (angle.cos(), angle.sin());
        let ln_density = |x: (f64, f64), theta: (f64, f64)| {
            let z = x.0 * theta.0 + x.1 * theta.1;
            let b = (logistic(z) * x.0 + penalty * theta.0, logistic(z) * x.1 + penalty * theta.1);
            let bend = logistic(z) * logistic(-z);
            // det(ΛI + ℓ'' xxᵀ) = Λ(Λ + ℓ'')
            -0.5 * (b.0 * b.0 + b.1 * b.1) / (deviation * deviation) + (penalty * (penalty + bend)).ln()
                - (std::f64::consts::TAU * deviation * deviation).ln()
        };
        let (reach, steps) = (40.0, 600);
        let h = 2.0 * reach / f64::from(steps);
        for alpha in [1.5, 2.0, 4.0] {
            let mut moment = 0.0;
            let mut total = 0.0;
            for i in 0..steps {
                for j in 0..steps {
                    let theta = (-reach + h * (f64::from(i) + 0.5), -reach + h * (f64::from(j) + 0.5));
                    let (p, q) = (ln_density((1.0, 0.0), theta), ln_density(other, theta));
                    total += p.exp() * h * h;
                    moment += (alpha * p + (1.0 - alpha) * q).exp() * h * h;
                }
            }
            assert!((total - 1.0).abs() < 1e-6, "{total}");
            let truth = moment.ln() / (alpha - 1.0);
            assert!(truth <= bound.divergence(Order::new(alpha).unwrap()), "{angle} {alpha}: {truth}");
        }
    }
}

/// [KST12, Theorem 2]: Λ = 2β/ε and σ = L √(8 ln(2/δ) + 4ε)/ε give (ε, δ).
#[test]
fn bounds_of_objective_perturbation_are_below_those_of_its_inventors() {
    for epsilon in [0.1, 0.5, 1.0, 3.0] {
        for delta in [1e-4_f64, 1e-6, 1e-9] {
            let multiplier = (8.0 * (2.0 / delta).ln() + 4.0 * epsilon).sqrt() / epsilon;
            let event = perturbed(multiplier, epsilon / 2.0);
            let delta = Delta::new(delta).unwrap();
            let found = Pld::default().epsilon(&event, Neighbors::AddRemove, delta).unwrap().upper;
            assert!(found < 0.9 * epsilon, "{epsilon} {delta:?}: {found}");
            let renyi = Renyi::new(&event, Neighbors::AddRemove).unwrap();
            assert!(renyi.epsilon(delta, Conversion::Tight).upper < epsilon);
        }
    }
}

#[test]
fn objective_perturbation_composes_and_is_refused_where_no_theorem_holds() {
    let delta = Delta::new(1e-6).unwrap();
    let both = Event::Composed(vec![perturbed(5.0, 0.1), Event::gaussian(times(100.0))]);
    let pld = |event: &Event, neighbors| Pld::default().epsilon(event, neighbors, delta);
    let (one, two) =
        (pld(&perturbed(5.0, 0.1), Neighbors::AddRemove).unwrap(), pld(&both, Neighbors::AddRemove).unwrap());
    assert!(one.upper < two.upper && two.upper < 1.01 * one.upper, "{one:?} {two:?}");
    let ten = pld(&both.clone().repeated(10), Neighbors::AddRemove).unwrap();
    let renyi = Renyi::new(&both.clone().repeated(10), Neighbors::AddRemove).unwrap();
    assert!(ten.upper > 3.0 * one.upper && ten.upper < 10.0 * one.upper, "{ten:?}");
    assert!(ten.upper < renyi.epsilon(delta, Conversion::Tight).upper);
    // A record replaced: only divergences are bounded.
    assert!(matches!(pld(&both, Neighbors::Replace), Err(Error::Unsupported { .. })));
    let replaced = Renyi::new(&both, Neighbors::Replace).unwrap().epsilon(delta, Conversion::Tight).upper;
    assert!(replaced > 1.5 * one.upper && replaced < 5.0, "{replaced}");
    let sampled = both.poisson_sampled(SamplingRate::new(0.1).unwrap());
    assert!(matches!(pld(&sampled, Neighbors::AddRemove), Err(Error::Unsupported { .. })));
}

fn objective(loss: ConvexLoss, penalty: f64, dimension: usize) -> LinearObjective {
    LinearObjective {
        loss,
        regularization: Regularization::new(penalty).unwrap(),
        dimension,
        most_records: 10_000,
        tolerance: Tolerance::new(1e-7).unwrap(),
    }
}

/// Runs a mechanism many times with noise from a seed.
fn many<M: Mechanism>(mechanism: M, runs: u64, run: impl Fn(Paid<M>) -> Vec<f64>) -> Vec<Vec<f64>> {
    let mut ledger = without_cap(Neighbors::AddRemove).seeded(77);
    let lease = ledger.reserve(mechanism, runs).unwrap().in_blocks_of(runs);
    lease.map(|paid| run(paid.unwrap())).collect()
}

/// Whether numbers have mean zero and this deviation, to 4.9 standard errors.
fn is_normal(values: &[f64], deviation: f64) -> bool {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| x * x).sum::<f64>() / n;
    mean.abs() <= 4.9 * deviation / n.sqrt()
        && (variance / (deviation * deviation) - 1.0).abs() <= 4.9 * (2.0 / n).sqrt()
}

/// Checks numbers, and that halved numbers and numbers five percent smaller fail the check.
fn check_normal(values: &[f64], deviation: f64) {
    assert!(is_normal(values, deviation), "{deviation}");
    for factor in [0.5, 0.95] {
        let smaller: Vec<f64> = values.iter().map(|x| factor * x).collect();
        assert!(!is_normal(&smaller, deviation), "{factor} {deviation}");
    }
}

#[test]
fn noise_of_output_perturbation_is_that_of_its_contribution() {
    for (loss, slope) in [
        (ConvexLoss::Logistic, 1.0),
        (ConvexLoss::Huber { threshold: Threshold::new(0.3).unwrap() }, 0.3),
        (
            ConvexLoss::Quantile {
                level: Probability::new(0.2).unwrap(),
                smoothing: Threshold::new(0.1).unwrap(),
            },
            0.8,
        ),
    ] {
        let mechanism =
            OutputPerturbation { objective: objective(loss, 4.0, 3), noise_multiplier: times(2.0) };
        let empty = Rows { dimension: 3, ..Rows::default() };
        let released = many(mechanism, 4000, |paid| paid.run(&empty).unwrap());
        let values: Vec<f64> = released.concat();
        // z(L + 2τ)/Λ
        check_normal(&values, 2.0 * slope / 4.0);
        assert!((mechanism.deviation().unwrap() / (0.5 * slope) - 1.0).abs() < 1e-5);
    }
}

#[test]
fn the_tolerance_counts_for_both_neighbours() {
    let mut objective = objective(ConvexLoss::Logistic, 4.0, 3);
    objective.tolerance = Tolerance::new(0.25).unwrap();
    let output = OutputPerturbation { objective, noise_multiplier: times(2.0) };
    // (1 + 2 · 0.25)/4
    assert!((output.contribution() - 0.375).abs() < 1e-9, "{}", output.contribution());
    // Weights that are the exact minimisers of neighbours are as far apart as one record moves them.
    objective.tolerance = Tolerance::new(1e-9).unwrap();
    let exact = OutputPerturbation { objective, noise_multiplier: times(2.0) };
    assert!(exact.contribution() >= 0.25 && exact.contribution() < 0.25 + 1e-8);
}

#[test]
fn objective_perturbation_without_records_releases_both_noises_and_they_are_independent() {
    let mut objective = objective(ConvexLoss::Logistic, 4.0, 3);
    objective.tolerance = Tolerance::new(0.01).unwrap();
    let mechanism =
        ObjectivePerturbation { objective, noise_multiplier: times(2.0), output_multiplier: times(100.0) };
    // 100 · 2τ/Λ
    let output = mechanism.output_deviation().unwrap();
    assert!((output / 0.5 - 1.0).abs() < 1e-4, "{output}");
    let empty = Rows { dimension: 3, ..Rows::default() };
    let released = many(mechanism, 4000, |paid| paid.run(&empty).unwrap()).concat();
    // The minimiser is -b/Λ up to the tolerance.
    check_normal(&released, f64::hypot(2.0 / 4.0, output));
}

/// The gradient of the objective at the released weights is -b.
#[test]
fn the_linear_term_can_be_read_off_the_minimiser() {
    let loss = ConvexLoss::Logistic;
    let mechanism = ObjectivePerturbation {
        objective: objective(loss, 0.5, 2),
        noise_multiplier: times(3.0),
        output_multiplier: times(100.0),
    };
    let rows = Rows {
        dimension: 2,
        features: vec![0.6, 0.8, -0.5, 0.1, 0.0, 0.9, 30.0, 40.0],
        targets: vec![1.0, -1.0, 1.0, -1.0],
    };
    // The last record is longer than one: it is (0.6, 0.8).
    let scaled: [[f64; 2]; 4] = [[0.6, 0.8], [-0.5, 0.1], [0.0, 0.9], [0.6, 0.8]];
    let released = many(mechanism, 4000, |paid| paid.run(&rows).unwrap());
    let mut linear = Vec::new();
    for weights in &released {
        for j in 0..2 {
            let mut gradient = 0.5 * weights[j];
            for (x, y) in scaled.iter().zip(&rows.targets) {
                let z = x[0] * weights[0] + x[1] * weights[1];
                gradient -= y * logistic(-y * z) * x[j];
            }
            linear.push(gradient);
        }
    }
    check_normal(&linear, 3.0);
}

#[test]
fn records_that_are_not_numbers_change_nothing() {
    let good = Rows { dimension: 1, features: vec![0.5, 1.0], targets: vec![1.0, -1.0] };
    let mut bad = good.clone();
    bad.features.extend([f64::NAN, 1.0, f64::INFINITY]);
    bad.targets.extend([1.0, f64::NAN, 1.0]);
    let output = OutputPerturbation {
        objective: objective(ConvexLoss::Logistic, 1.0, 1),
        noise_multiplier: times(1.0),
    };
    let perturbed = ObjectivePerturbation {
        objective: objective(ConvexLoss::Logistic, 1.0, 1),
        noise_multiplier: times(1.0),
        output_multiplier: times(50.0),
    };
    let outputs = |rows: &Rows| many(output, 3, |paid| paid.run(rows).unwrap());
    let objectives = |rows: &Rows| many(perturbed, 3, |paid| paid.run(rows).unwrap());
    assert_eq!(outputs(&good), outputs(&bad));
    assert_eq!(objectives(&good), objectives(&bad));
}

#[test]
fn a_ledger_charges_for_linear_models_and_refuses_settings_without_a_proof() {
    let rows = Rows { dimension: 2, features: vec![0.5, 1.0], targets: vec![1.0] };
    let mechanism = ObjectivePerturbation {
        objective: objective(ConvexLoss::Logistic, 2.0, 2),
        noise_multiplier: times(5.0),
        output_multiplier: times(100.0),
    };
    // β/Λ = 1/8, rounded up.
    let Event::Composed(parts) = mechanism.event(Neighbors::AddRemove) else { panic!("one release") };
    let [Event::PerturbedObjective { noise_multiplier, curvature_ratio }, output] = parts.as_slice() else {
        panic!("{parts:?}")
    };
    assert_eq!((*noise_multiplier, output), (times(5.0), &Event::gaussian(times(100.0))));
    assert!(curvature_ratio.get() >= 0.125 && curvature_ratio.get() < 0.125 + 1e-9);
    let (mut ledger, _) = ledger(2.0);
    let paid = ledger.reserve(mechanism, 1).unwrap().in_blocks_of(1).next().unwrap().unwrap();
    assert_eq!(paid.run(&rows).unwrap().len(), 2);
    let spent = ledger.state().unwrap().spent().epsilon;
    assert!(spent > 0.8 && spent < 1.2, "{spent}");
    let mut replacing = without_cap(Neighbors::Replace);
    let paid = replacing.reserve(mechanism, 1).unwrap().in_blocks_of(1).next().unwrap().unwrap();
    let wrong = Rows { dimension: 3, ..Rows::default() };
    assert!(matches!(paid.run(&wrong), Err(Error::OutOfRange { what: "dimension", .. })));
    let mut refused = mechanism;
    refused.objective.tolerance = Tolerance::new(1e-15).unwrap();
    refused.objective.most_records = 1 << 30;
    assert!(refused.least_tolerance() > 1e-15);
    assert_eq!(refused.event(Neighbors::AddRemove), Event::NonPrivate);
    assert!(ledger.reserve(refused, 1).is_err());
    let output = OutputPerturbation { objective: refused.objective, noise_multiplier: times(1.0) };
    assert_eq!(output.event(Neighbors::AddRemove), Event::NonPrivate);
    assert!(ledger.reserve(output, 1).is_err());
}
