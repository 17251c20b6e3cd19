//! The convex loss of clipped gradients: it is one, and its gradients are the clipped ones.

use proptest::prelude::*;
use quell::learner::{
    convex::{ClippedGlm, Glm, Logistic, Squared},
    loss::{Loss, Target},
};
use quell_privacy::units::ClipNorm;

fn clip(value: f64) -> ClipNorm {
    ClipNorm::new(value).unwrap()
}

/// Length of the features after clipping ℓ'(z)x to C, with the sign of ℓ', over that of the features: what DP-SGD does.
fn clipped_derivative(glm: &impl Glm, z: f64, features: &[f64], clip_norm: f64) -> f64 {
    let gradient: Vec<f64> = features.iter().map(|x| glm.derivative(z) * x).collect();
    let length = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
    let scale = (clip_norm / length).min(1.0);
    scale * glm.derivative(z)
}

fn check(
    glm: impl Glm + Copy,
    features: &[f64],
    clip_norm: f64,
    z: f64,
    other: f64,
) -> Result<(), TestCaseError> {
    let norm = features.iter().map(|x| x * x).sum::<f64>().sqrt();
    let clipped = ClippedGlm::new(glm, norm, clip(clip_norm));
    let expected = clipped_derivative(&glm, z, features, clip_norm);
    prop_assert!(
        (clipped.derivative(z) - expected).abs() <= 1e-9 * expected.abs(),
        "{} {}",
        clipped.derivative(z),
        expected
    );
    // g' is the derivative of g. It changes by at most the width of the difference, as both ℓ'' ≤ 1.
    let width = 1e-5 * (1.0 + z.abs());
    let difference = (clipped.loss(z + width) - clipped.loss(z - width)) / (2.0 * width);
    prop_assert!((difference - expected).abs() <= 2.0 * width, "{} {}", difference, expected);
    // Convex: a chord is above, and a tangent below.
    let slack = 1e-12 * (1.0 + clipped.loss(z).abs() + clipped.loss(other).abs());
    let middle = clipped.loss(0.5 * (z + other));
    prop_assert!(middle <= 0.5 * (clipped.loss(z) + clipped.loss(other)) + slack);
    prop_assert!(clipped.loss(other) >= clipped.loss(z) + clipped.derivative(z) * (other - z) - slack);
    // Below ℓ, and equal to it where nothing is clipped.
    prop_assert!(clipped.loss(z) <= glm.loss(z) + slack);
    if norm * glm.derivative(z).abs() <= clip_norm * (1.0 - 1e-9) {
        prop_assert_eq!(clipped.loss(z), glm.loss(z));
    }
    Ok(())
}

proptest! {
    #[test]
    fn clipping_logistic_regression_descends_on_a_convex_loss(
        target in prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0], features in prop::collection::vec(-3.0..3.0, 1..5),
        clip_norm in 0.01..10.0, z in -30.0..30.0, other in -30.0..30.0,
    ) {
        check(Logistic { target }, &features, clip_norm, z, other)?;
    }

    #[test]
    fn clipping_linear_regression_descends_on_a_convex_loss(
        target in -5.0..5.0, features in prop::collection::vec(-3.0..3.0, 1..5), clip_norm in 0.01..10.0, z in -30.0..30.0, other in -30.0..30.0,
    ) {
        check(Squared { target }, &features, clip_norm, z, other)?;
    }

    #[test]
    fn clipped_linear_regression_is_a_huber_loss(target in -5.0f32..5.0, z in -30.0f32..30.0, norm in 0.5f64..4.0) {
        let clipped = ClippedGlm::new(Squared { target: target.into() }, norm, clip(2.0));
        let mut gradient = [0.0];
        let loss = Loss::Huber { delta: (2.0 / norm) as f32 }.loss_and_gradient(&[z], Target::Number(target), &mut gradient);
        prop_assert!((f64::from(loss) - clipped.loss(z.into())).abs() <= 1e-6 * (1.0 + clipped.loss(z.into())));
        prop_assert!((f64::from(gradient[0]) - clipped.derivative(z.into())).abs() <= 1e-6 * (1.0 + clipped.derivative(z.into()).abs()));
    }
}

#[test]
fn a_logistic_loss_bends_where_the_derivative_reaches_the_slope() {
    // C/‖x‖ = 1/4 and y = 0: σ(b) = 1/4 at b = -ln 3; ℓ' is positive, so there is no a.
    let zero = ClippedGlm::new(Logistic { target: 0.0 }, 4.0, clip(1.0));
    assert_eq!(zero.unclipped(), (f64::NEG_INFINITY, (1.0f64 / 4.0).ln() - (3.0f64 / 4.0).ln()));
    let one = ClippedGlm::new(Logistic { target: 1.0 }, 4.0, clip(1.0));
    assert_eq!(one.unclipped(), (-zero.unclipped().1, f64::INFINITY));
    let half = ClippedGlm::new(Logistic { target: 0.5 }, 4.0, clip(1.0));
    assert_eq!(half.unclipped(), (zero.unclipped().1, -zero.unclipped().1));
    assert_eq!(zero.derivative(1e30), 0.25);
    assert_eq!(one.derivative(-1e30), -0.25);
}

#[test]
fn long_features_bend_far_out_and_precisely() {
    // At a slope of 10⁻¹⁸ the target itself swallows it: 1 - 10⁻¹⁸ is 1.
    let one = ClippedGlm::new(Logistic { target: 1.0 }, 1e18, clip(1.0));
    assert!((one.unclipped().0 - 18.0 * 10f64.ln()).abs() < 1e-9);
    assert!((one.derivative(one.unclipped().0) + 1e-18).abs() < 1e-30);
}

#[test]
fn short_features_and_none_are_never_clipped() {
    let everywhere = (f64::NEG_INFINITY, f64::INFINITY);
    for norm in [0.0, 0.5, 1.0] {
        assert_eq!(ClippedGlm::new(Logistic { target: 1.0 }, norm, clip(1.0)).unclipped(), everywhere);
    }
    let clipped = ClippedGlm::new(Squared { target: 1.0 }, 0.0, clip(1.0));
    assert_eq!(
        (clipped.unclipped(), clipped.loss(1e6), clipped.derivative(1e6)),
        (everywhere, 0.5 * 999_999f64.powi(2), 999_999.0)
    );
}

#[test]
fn a_length_that_is_none_has_no_loss() {
    for norm in [f64::NAN, f64::INFINITY, -1.0] {
        for z in [0.0, 1.0, -1e30, f64::INFINITY] {
            let (logistic, squared) = (Logistic { target: 1.0 }, Squared { target: 1.0 });
            let (logistic, squared) =
                (ClippedGlm::new(logistic, norm, clip(1.0)), ClippedGlm::new(squared, norm, clip(1.0)));
            let all = [logistic.loss(z), logistic.derivative(z), squared.loss(z), squared.derivative(z)];
            assert!(all.iter().all(|x| x.is_nan()), "{norm} {z}: {all:?}");
        }
    }
}
