//! Rényi divergences of sampled mechanisms.
//!
//! Sums have only positive terms and give E[(dP/dQ)^α] - 1, not E[(dP/dQ)^α], so that a divergence of 1e-16
//! keeps all its digits.

use crate::special::ln_sum_exp;

/// Gaussian noise on a Poisson sample, for adding or removing a record.
///
/// # Theorem
/// [MTZ19, Theorem 5]: the larger of the two directions is E_Q[(1 - q + q dP/dQ)^α] with P = N(1, σ²),
/// Q = N(0, σ²).
pub(super) fn gaussian(alpha: f64, rate: f64, sigma: f64) -> f64 {
    let ln_excess = if alpha.fract() == 0.0 && alpha <= 1e6 {
        gaussian_integer(alpha as u32, rate, sigma)
    } else {
        gaussian_quadrature(alpha, rate, sigma)
    };
    ln_one_plus_exp(ln_excess) / (alpha - 1.0)
}

/// ln(1 + e^x).
fn ln_one_plus_exp(x: f64) -> f64 {
    if x > 40.0 { x + (-x).exp() } else { x.exp().ln_1p() }
}

/// ln(e^x - 1) for x > 0.
fn ln_exp_m1(x: f64) -> f64 {
    if x > 40.0 { x } else { x.exp_m1().ln() }
}

/// ln Σ_{k≥2} C(α,k) (1-q)^(α-k) qᵏ (e^((k²-k)/2σ²) - 1).
///
/// The ones of the binomial sum are subtracted term by term.
fn gaussian_integer(alpha: u32, rate: f64, sigma: f64) -> f64 {
    let (ln_rate, ln_rest) = (rate.ln(), (-rate).ln_1p());
    let inverse = 1.0 / (2.0 * sigma * sigma);
    let n = f64::from(alpha);
    let mut ln_binomial = n.ln() + ((n - 1.0) / 2.0).ln();
    let mut terms = Vec::with_capacity(alpha as usize);
    for k in (2..=alpha).map(f64::from) {
        let term = ln_binomial + (n - k) * ln_rest + k * ln_rate + ln_exp_m1((k * k - k) * inverse);
        terms.push(term);
        ln_binomial += ((n - k) / (k + 1.0)).ln();
    }
    ln_sum_exp(&terms)
}

/// Largest number of quadrature points; beyond it the bound is infinite.
const MOST_POINTS: usize = 4_000_000;

/// ln(E[(1+y)^α] - 1) for y = q(e^((2x-1)/2σ²) - 1), x ~ N(0, σ²).
///
/// Since E[y] = 0 it is ln E[(1+y)^α - 1 - αy], whose integrand is never negative.
///
/// The trapezoidal rule on the whole line is exact up to exp(-2πd/h) for an integrand analytic in a strip of
/// half-width d; here d ≥ min(πσ², …) because 1 - q + qw vanishes only at Im x = πσ². [TW14, Theorem 5.1]
fn gaussian_quadrature(alpha: f64, rate: f64, sigma: f64) -> f64 {
    let variance = sigma * sigma;
    let h = (sigma / 4.0).min(variance / 2.4);
    let (from, to) = (-13.0 * sigma, alpha + 13.0 * sigma);
    let points = ((to - from) / h).ceil() as usize;
    if points > MOST_POINTS {
        return f64::INFINITY;
    }
    let terms: Vec<f64> = (0..=points)
        .map(|i| from + i as f64 * h)
        .map(|x| ln_convexity(alpha, rate, (2.0 * x - 1.0) / (2.0 * variance)) - x * x / (2.0 * variance))
        .collect();
    ln_sum_exp(&terms) + h.ln() - 0.5 * (2.0 * std::f64::consts::PI * variance).ln()
}

/// ln((1+y)^α - 1 - αy) for y = q(e^l - 1) > -1.
fn ln_convexity(alpha: f64, rate: f64, l: f64) -> f64 {
    if l > 600.0 {
        return alpha * (rate.ln() + l); // e^l is out of range, and 1 - q does not show
    }
    let y = rate * l.exp_m1();
    if (alpha + 1.0) * y.abs() < 0.05 {
        // α(α-1)/2 y² (1 + (α-2)/3 y (1 + (α-3)/4 y (…)))
        let mut series = 1.0;
        for k in (3..12).rev().map(f64::from) {
            series = 1.0 + (alpha - k + 1.0) / k * y * series;
        }
        return (alpha * (alpha - 1.0) / 2.0 * y * y * series).ln();
    }
    let grown = alpha * y.ln_1p();
    if grown > 40.0 {
        return grown + (-(1.0 + alpha * y) * (-grown).exp()).ln_1p();
    }
    (grown.exp_m1() - alpha * y).ln()
}

/// Any Rényi curve on a Poisson sample, add or remove, for integer α ≥ 2.
///
/// # Theorem
/// [ZW19, Theorem 5]: E ≤ (1-q)^(α-1)(αq - q + 1) + C(α,2) q² (1-q)^(α-2) e^ε(2) + 3 Σ_{k≥3} C(α,k)
/// (1-q)^(α-k) qᵏ e^((k-1)ε(k)). Where the sides of a dominating pair can be exchanged the factor 3 is not
/// needed (THEORY, Rényi on samples).
///
/// The first term is the binomial sum up to k = 1, so the excess over one is Σ_{k≥2} C(α,k) (1-q)^(α-k) qᵏ
/// (cₖe^((k-1)ε(k)) - 1).
pub(super) fn general(alpha: u32, rate: f64, curve: impl Fn(f64) -> f64, symmetric: bool) -> f64 {
    let n = f64::from(alpha);
    let ln_rest = (-rate).ln_1p();
    let mut terms = Vec::with_capacity(alpha as usize);
    let mut ln_binomial = n.ln();
    for k in (2..=alpha).map(f64::from) {
        ln_binomial += ((n - k + 1.0) / k).ln();
        let ln_factor = if k > 2.0 && !symmetric { 3.0_f64.ln() } else { 0.0 };
        let excess = ln_exp_m1(ln_factor + (k - 1.0) * curve(k));
        terms.push(ln_binomial + (n - k) * ln_rest + k * rate.ln() + excess);
    }
    ln_one_plus_exp(ln_sum_exp(&terms)) / (n - 1.0)
}

/// Any mechanism of divergence ε(α) on a Poisson sample, for replacing a record.
///
/// # Theorem
/// Reveal whether the record was sampled; to reveal less is post-processing [Mir17, Proposition 1]. With
/// probability 1 - q both neighbours do the same, with probability q their divergence is at most ε(α), so
/// E ≤ 1 - q + q e^((α-1)ε(α)).
pub(super) fn revealed(alpha: f64, rate: f64, divergence: f64) -> f64 {
    ln_one_plus_exp(rate.ln() + ln_exp_m1((alpha - 1.0) * divergence)) / (alpha - 1.0)
}

/// ln E_Q[(dP/dQ - 1)^j] at even j, if it is known.
///
/// These are the sharper terms of [WBK19, Theorem 27].
#[derive(Clone, Debug)]
pub(crate) enum FixedSizeMoments {
    /// N(μ, 1) against N(0, 1).
    Gaussian {
        mu: f64,
    },
    Unknown,
}

impl FixedSizeMoments {
    fn ln_even(&self, j: u32) -> f64 {
        match self {
            Self::Unknown => f64::INFINITY,
            Self::Gaussian { mu } => {
                // Trapezoidal rule for E[(e^(μx - μ²/2) - 1)^j], entire in x and dominated near x = ±√j and
                // x = jμ.
                let j = f64::from(j);
                let h = 0.05_f64.min(0.5 / (1.0 + mu));
                let reach = 13.0 + 2.0 * j.sqrt();
                let (from, to) = (-reach, j * mu + reach);
                let points = ((to - from) / h).ceil() as usize;
                if points > MOST_POINTS {
                    return f64::INFINITY;
                }
                let terms: Vec<f64> = (0..=points)
                    .map(|i| from + i as f64 * h)
                    .map(|x| {
                        let l = mu * x - mu * mu / 2.0;
                        let base = if l > 40.0 { l } else { l.exp_m1().abs().ln() };
                        j * base - x * x / 2.0
                    })
                    .collect();
                ln_sum_exp(&terms) + h.ln() - 0.5 * (2.0 * std::f64::consts::PI).ln()
            }
        }
    }
}

/// A sample of fixed size, for replacing a record, for integer α ≥ 2.
///
/// # Theorem
/// [WBK19, Theorems 9 and 27]: E ≤ 1 + Σ_{j≥2} C(α,j) qʲ bⱼ with b₂ = min(4(e^ε(2) - 1), 2e^ε(2)) and
/// bⱼ = min(4√(m(2⌊j/2⌋) m(2⌈j/2⌉)), 2e^((j-1)ε(j))), m(j) = E_Q[(dP/dQ - 1)^j].
pub(super) fn fixed_size(
    alpha: u32,
    rate: f64,
    curve: impl Fn(f64) -> f64,
    moments: &FixedSizeMoments,
) -> f64 {
    let n = f64::from(alpha);
    let mut ln_binomial = n.ln();
    let mut terms = Vec::with_capacity(alpha as usize);
    let even: Vec<f64> =
        (0..=alpha / 2 + 1).map(|half| if half == 0 { 0.0 } else { moments.ln_even(2 * half) }).collect();
    for j in 2..=alpha {
        let k = f64::from(j);
        ln_binomial += ((n - k + 1.0) / k).ln();
        let plain = 2.0_f64.ln() + (k - 1.0) * curve(k);
        let sharp = if j == 2 {
            4.0_f64.ln() + ln_exp_m1(curve(2.0))
        } else {
            4.0_f64.ln() + 0.5 * (even[(j / 2) as usize] + even[j.div_ceil(2) as usize])
        };
        terms.push(ln_binomial + k * rate.ln() + plain.min(sharp));
    }
    ln_one_plus_exp(ln_sum_exp(&terms)) / (n - 1.0)
}
