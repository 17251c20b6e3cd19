//! Discrete distributions.

use super::{
    super::exact::{
        Ratio, bernoulli, bernoulli_exp, discrete_gaussian, discrete_laplace, exponent, proposal,
    },
    fits, is_coin, stream, uncorrelated,
};
use crate::{special::normal_below, units::Scale};

const DRAWS: usize = 200_000;
const SCALES: [f64; 9] = [1e-3, 0.2, 0.7, 1.0, 3.3, 60.0, 1e4, 3e6, 1e9];

fn ratio(scale: f64) -> Ratio {
    Ratio::above(Scale::new(scale).unwrap())
}

/// P[X ≤ k] of the discrete Laplace distribution.
fn laplace_up_to(scale: f64, k: i64) -> f64 {
    let tail = |m: f64| (-m / scale).exp() / (1.0 + (-1.0 / scale).exp());
    if k < 0 { tail(-k as f64) } else { 1.0 - tail(k as f64 + 1.0) }
}

/// P[X ≤ k] of the discrete Gaussian.
///
/// This is a sum for σ < 20, and else the normal distribution, which is then closer than 1/24σ² < 2e-4.
fn gaussian_up_to(sigma: f64) -> impl Fn(i64) -> f64 {
    let reach = if sigma < 20.0 { 400_i64 } else { 0 };
    let mass: Vec<f64> = (-reach..=reach).map(|x| (-0.5 * (x as f64 / sigma).powi(2)).exp()).collect();
    let total: f64 = mass.iter().sum();
    let sums: Vec<f64> = mass
        .iter()
        .scan(0.0, |sum, m| {
            *sum += m / total;
            Some(*sum)
        })
        .collect();
    move |k| {
        if reach == 0 {
            normal_below((k as f64 + 0.5) / sigma)
        } else {
            sums[(k.clamp(-reach, reach) + reach) as usize]
        }
    }
}

#[test]
fn scales_are_rounded_up_by_a_millionth_at_most() {
    let mut scale = 1e-3;
    while scale <= 1e9 {
        let rounded = ratio(scale).get();
        assert!(scale <= rounded && rounded <= scale * (1.0 + 1.0 / f64::from(1 << 20)), "{scale} {rounded}");
        scale = (scale * 1.01).next_up();
    }
    assert_eq!(ratio(0.5).get(), 0.5);
    assert_eq!(ratio(1e9).get(), 1e9);
}

#[test]
fn coins_have_their_probability() {
    let mut stream = stream(10);
    for (numerator, denominator) in [(0, 1), (1, 3), (2, 7), (1 << 100, 3 << 100), (5, 5)] {
        let ones = (0..DRAWS).filter(|_| bernoulli(numerator, denominator, &mut stream)).count();
        let (n, p) = (DRAWS as f64, numerator as f64 / denominator as f64);
        // Hoeffding's inequality, which holds at 0 and 1 too.
        assert!(
            (ones as f64 - n * p).abs()
                <= (n * super::SURPRISE / 2.0).sqrt() * f64::from(u8::from(p != 0.0 && p != 1.0)),
            "{p}"
        );
    }
    for (numerator, denominator) in
        [(1_u128, 1000_u128), (1, 2), (1, 1), (5, 2), (7 << 80, 1 << 80), ((1 << 127) - 1, 1 << 126)]
    {
        let probability = (-(numerator as f64 / denominator as f64)).exp();
        assert!(
            is_coin(probability, 400_000, || bernoulli_exp(numerator, denominator, &mut stream)),
            "{numerator}/{denominator}"
        );
    }
    assert!(!is_coin((-0.5_f64).exp(), 400_000, || bernoulli_exp(475, 1000, &mut stream)));
    assert!(bernoulli_exp(0, 1, &mut stream));
    assert!(!bernoulli_exp(u128::MAX, 1, &mut stream));
}

#[test]
fn discrete_laplace_noise_has_its_distribution() {
    let mut stream = stream(11);
    for scale in SCALES {
        let numbers: Vec<i64> = (0..DRAWS).map(|_| discrete_laplace(ratio(scale), &mut stream)).collect();
        let true_scale = ratio(scale).get();
        assert!(fits(&numbers, |k| laplace_up_to(true_scale, k)), "scale {scale}");
        if scale >= 0.7 {
            assert!(
                !fits(&numbers, |k| laplace_up_to(true_scale / 0.95, k)),
                "noise 5 % too small passes at {scale}"
            );
        }
    }
}

#[test]
fn discrete_gaussian_noise_has_its_distribution() {
    let mut stream = stream(12);
    for scale in SCALES {
        let numbers: Vec<i64> = (0..DRAWS).map(|_| discrete_gaussian(ratio(scale), &mut stream)).collect();
        let true_scale = ratio(scale).get();
        assert!(fits(&numbers, gaussian_up_to(true_scale)), "scale {scale}");
        if scale >= 0.7 {
            assert!(
                !fits(&numbers, gaussian_up_to(true_scale / 0.95)),
                "noise 5 % too small passes at {scale}"
            );
        }
    }
}

#[test]
fn exponents_are_those_of_the_theorem() {
    for scale in SCALES {
        let sigma = ratio(scale).get();
        let t = proposal(ratio(scale)) as f64;
        assert!(sigma <= t && t <= sigma + 1.0);
        for multiple in [0.0, 0.5, 1.0, 3.0, 40.0] {
            let size = (multiple * t).round();
            let expected = (size - sigma * sigma / t).powi(2) / (2.0 * sigma * sigma);
            match exponent(ratio(scale), size as u64) {
                Some((numerator, denominator)) => {
                    let found = numerator as f64 / denominator as f64;
                    assert!(
                        (found - expected).abs() <= 1e-9 * expected.max(1e-6),
                        "{scale}, {size}: {found} {expected}"
                    );
                }
                None => assert!(expected > f64::from(1 << 25), "{scale}, {size}: {expected}"),
            }
        }
    }
}

#[test]
fn uniform_and_reused_noise_are_refused() {
    let draw = |seed| {
        let mut stream = stream(seed);
        (0..DRAWS).map(|_| discrete_gaussian(ratio(1000.0), &mut stream)).collect::<Vec<i64>>()
    };
    let mut stream = stream(13);
    // Uniform of the same variance: width √12 σ.
    let uniform: Vec<i64> = (0..DRAWS).map(|_| stream.below(3465) as i64 - 1732).collect();
    assert!(!fits(&uniform, gaussian_up_to(1000.0)));
    let (one, other) = (draw(14), draw(15));
    assert!(uncorrelated(&one, &other) && uncorrelated(&one[..DRAWS / 2], &one[DRAWS / 2..]));
    assert!(!uncorrelated(&one, &draw(14)));
}
