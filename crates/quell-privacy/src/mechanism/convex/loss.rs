//! Convex losses of a linear prediction, with bounds on their first two derivatives.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::double::Double;
use crate::{
    number::format_brief,
    units::{Probability, Threshold},
};

/// A convex loss ℓ(z; y) of a prediction z = ⟨w, x⟩ and a target y.
///
/// # Contract
/// For every target, ℓ is convex in z, its slope ℓ' is continuous, |ℓ'| ≤ [`ConvexLoss::slope`], and ℓ'
/// changes by at most [`ConvexLoss::curvature`] times the change of z. A loss is defined by the slope that is
/// computed: where the slope contains e^z, it is interpolated linearly between multiples of 1/1024. This
/// changes the slope by at most a part in 8 million of its bound, and keeps it monotone.
///
/// ```
/// use quell_privacy::mechanism::ConvexLoss;
/// let loss = ConvexLoss::Logistic;
/// assert_eq!((loss.slope(), loss.curvature()), (1.0, 0.25));
/// // The derivative of ln(1 + e^-z) is -1/(1 + e^z).
/// assert!((loss.slope_at(0.3, 1.0) + 1.0 / (1.0 + 0.3_f64.exp())).abs() < 1e-7);
/// let text = serde_json::to_string(&loss).unwrap();
/// assert_eq!(text, r#""logistic""#);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ConvexLoss {
    /// Logistic regression: ln(1 + e^(-yz)) for the class y = 1 where the target is positive, -1 elsewhere.
    Logistic,
    /// Huber's loss, which is the squared loss (z - y)²/2 with its slope clipped to the threshold.
    Huber {
        /// The largest slope.
        threshold: Threshold,
    },
    /// The hinge loss max(0, 1 - yz) of a support vector machine, with a quadratic corner.
    ///
    /// The class y is 1 where the target is positive, -1 elsewhere.
    HuberHinge {
        /// h: the loss is quadratic for |1 - yz| ≤ h.
        smoothing: Threshold,
    },
    /// Quantile regression: the pinball loss, with a quadratic corner (its Moreau envelope).
    Quantile {
        /// q: the quantile; 1/2 for the median.
        level: Probability,
        /// h: the slope is (z - y)/h, clipped to [-q, 1 - q].
        smoothing: Threshold,
    },
    /// Poisson regression: e^z - yz where |z| ≤ ln(1 + most), extended linearly.
    ///
    /// Targets are clamped to [0, most].
    Poisson {
        /// The largest count.
        most: Threshold,
    },
}

/// Knots per unit of z at which e^z is evaluated.
const KNOTS: f64 = 1024.0;

/// Beyond this z the slope of the logistic loss is constant.
const LOGISTIC_END: f64 = 40.0;

impl ConvexLoss {
    /// The largest |ℓ'|, for every prediction and target.
    #[must_use]
    pub fn slope(&self) -> f64 {
        match self {
            Self::Logistic | Self::HuberHinge { .. } => 1.0,
            Self::Huber { threshold } => threshold.get(),
            Self::Quantile { level, .. } => level.get().max(1.0 - level.get()),
            // A chord of e^z is above e^z, and at most its value at the next knot.
            Self::Poisson { most } => (1.0 + most.get()) * KNOTS.recip().exp() * (1.0 + 1e-12),
        }
    }

    /// The largest ℓ'', for every prediction and target.
    #[must_use]
    pub fn curvature(&self) -> f64 {
        match self {
            // No chord of 1/(1 + e^z) is steeper than its tangent at zero.
            Self::Logistic => 0.25,
            Self::Huber { .. } => 1.0,
            Self::HuberHinge { smoothing } => 0.5 / smoothing.get(),
            Self::Quantile { smoothing, .. } => smoothing.get().recip(),
            Self::Poisson { .. } => self.slope(),
        }
    }

    /// ℓ'(z; y), zero where the prediction or the target is not finite.
    #[must_use]
    pub fn slope_at(&self, prediction: f64, target: f64) -> f64 {
        if prediction.is_finite() && target.is_finite() {
            self.derivatives(prediction.into(), target).0.high
        } else {
            0.0
        }
    }

    /// Whether [`ConvexLoss::value`] is known.
    pub(super) fn has_value(&self) -> bool {
        matches!(self, Self::Logistic | Self::Huber { .. })
    }

    /// ℓ(z; y) up to a constant for each target: the integral of the slope that is computed.
    ///
    /// # Contract
    /// [`ConvexLoss::has_value`].
    ///
    /// # Theorem
    /// The slope is linear between knots, so trapezoids are its integral. The sums of 81,920 numbers in the
    /// table, at most 40, err by less than 2²³ times [`super::double::ROUNDING`]. The other operations err by
    /// less than 16L(|z| + 40) times that, with L the bound on the slope.
    pub(super) fn value(&self, z: Double, target: f64) -> Double {
        let sign = if target > 0.0 { 1.0 } else { -1.0 };
        match self {
            Self::Logistic => softplus(z.signed(sign)),
            Self::Huber { threshold } => {
                let (gap, most) = (z.plus(-target), threshold.get());
                let inside = gap.clamp(-most, most);
                // g²/2 inside, and the tangent outside.
                let beyond = gap.add(inside.signed(-1.0));
                inside.multiply(inside).times(0.5).add(beyond.multiply(inside))
            }
            Self::HuberHinge { .. } | Self::Quantile { .. } | Self::Poisson { .. } => Double::default(),
        }
    }

    /// The same loss with rounder corners, from the roundest on: stages of a search that ends at this loss.
    pub(super) fn eased(&self) -> Vec<Self> {
        let widths = |smoothing: &Threshold| {
            let end = smoothing.get();
            let halved = std::iter::successors(Some(1.0), |width| Some(0.25 * width));
            let wider = halved.take_while(move |width| *width > end);
            wider.filter_map(|width| Threshold::new(width).ok())
        };
        match self {
            Self::Logistic | Self::Huber { .. } | Self::Poisson { .. } => Vec::new(),
            Self::HuberHinge { smoothing } => {
                widths(smoothing).map(|smoothing| Self::HuberHinge { smoothing }).collect()
            }
            Self::Quantile { level, smoothing } => {
                widths(smoothing).map(|smoothing| Self::Quantile { level: *level, smoothing }).collect()
            }
        }
    }

    /// ℓ'(z; y), and ℓ'' in double precision.
    ///
    /// # Theorem
    /// Each slope takes at most four operations, on numbers of the size of the slope where it is not clamped.
    /// So it errs by at most four times [`super::double::ROUNDING`] of its bound.
    pub(super) fn derivatives(&self, z: Double, target: f64) -> (Double, f64) {
        let sign = if target > 0.0 { 1.0 } else { -1.0 };
        match self {
            Self::Logistic => {
                let margin = z.signed(sign).clamp(-LOGISTIC_END, LOGISTIC_END);
                let (value, rate) = interpolated(falling, margin);
                (value.signed(-sign), -rate)
            }
            Self::Huber { threshold } => ramp(z.plus(-target), 1.0, -threshold.get(), threshold.get()),
            Self::HuberHinge { smoothing } => {
                let gap = z.signed(-sign).add(Double::sum(1.0, smoothing.get()));
                let (value, rate) = ramp(gap, self.curvature(), 0.0, 1.0);
                (value.signed(-sign), rate)
            }
            Self::Quantile { level, .. } => {
                ramp(z.plus(-target), self.curvature(), -level.get(), 1.0 - level.get())
            }
            Self::Poisson { most } => {
                let end = most.get().ln_1p();
                let (value, rate) = interpolated(f64::exp, z.clamp(-end, end));
                (value.plus(-target.clamp(0.0, most.get())), rate)
            }
        }
    }
}

impl std::fmt::Display for ConvexLoss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Logistic => f.write_str("logistic loss"),
            Self::Huber { threshold } => {
                write!(f, "Huber loss of threshold {}", format_brief(threshold.get()))
            }
            Self::HuberHinge { smoothing } => {
                write!(f, "hinge loss smoothed by {}", format_brief(smoothing.get()))
            }
            Self::Quantile { level, smoothing } => {
                let (level, smoothing) = (format_brief(level.get()), format_brief(smoothing.get()));
                write!(f, "pinball loss of level {level} smoothed by {smoothing}")
            }
            Self::Poisson { most } => write!(f, "Poisson loss of counts up to {}", format_brief(most.get())),
        }
    }
}

/// The number times a rate, clamped, and the rate where it is not clamped.
fn ramp(number: Double, rate: f64, low: f64, high: f64) -> (Double, f64) {
    let value = number.times(rate);
    let clamped = value.clamp(low, high);
    (clamped, if clamped == value { rate } else { 0.0 })
}

/// A function interpolated linearly between multiples of 1/1024, and its slope.
///
/// The low part of z decides on which side of a knot z lies, so the interpolation is continuous.
fn interpolated(function: impl Fn(f64) -> f64, z: Double) -> (Double, f64) {
    let knot = z.times(KNOTS).floor();
    let (left, right) = (function(knot / KNOTS), function((knot + 1.0) / KNOTS));
    let rise = Double::sum(right, -left);
    let share = z.times(KNOTS).plus(-knot);
    (rise.multiply(share).plus(left), rise.high * KNOTS)
}

/// 1/(1 + e^m).
fn falling(margin: f64) -> f64 {
    1.0 / (1.0 + margin.exp())
}

/// Minus the integral of the interpolated 1/(1 + e^m) up to m, so ln(1 + e^-m) up to a constant.
fn softplus(margin: Double) -> Double {
    const END: f64 = LOGISTIC_END * KNOTS;
    static SUMS: LazyLock<Vec<Double>> = LazyLock::new(|| {
        let mut sums = vec![Double::default()];
        for step in 0..2 * END as u32 {
            let knot = f64::from(step) - END;
            let trapezoid =
                Double::sum(falling(knot / KNOTS), falling((knot + 1.0) / KNOTS)).times(0.5 / KNOTS);
            sums.push(sums[step as usize].add(trapezoid));
        }
        sums
    });
    let inside = margin.clamp(-LOGISTIC_END, LOGISTIC_END);
    let knot = inside.times(KNOTS).floor();
    let share = inside.times(KNOTS).plus(-knot);
    let (left, right) = (falling(knot / KNOTS), falling((knot + 1.0) / KNOTS));
    let rise = Double::sum(right, -left).multiply(share).times(0.5).plus(left);
    let sum = SUMS[(knot + END) as usize].add(rise.multiply(share).times(1.0 / KNOTS));
    // Beyond the ends the slope is constant.
    let beyond = margin.add(inside.signed(-1.0));
    sum.add(beyond.times(left)).signed(-1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn losses() -> Vec<ConvexLoss> {
        let threshold = |x: f64| Threshold::new(x).unwrap();
        let level = |x: f64| Probability::new(x).unwrap();
        vec![
            ConvexLoss::Logistic,
            ConvexLoss::Huber { threshold: threshold(0.7) },
            ConvexLoss::HuberHinge { smoothing: threshold(0.1) },
            ConvexLoss::Quantile { level: level(0.9), smoothing: threshold(0.05) },
            ConvexLoss::Quantile { level: level(0.0), smoothing: threshold(3.0) },
            ConvexLoss::Poisson { most: threshold(20.0) },
        ]
    }

    /// Steps of 1/3000 cross every knot; the steepest step must stay below the curvature and reach it nearly.
    #[test]
    fn slopes_are_monotone_and_within_their_bounds_and_reach_them() {
        for loss in losses() {
            for target in [-1e9, -3.0, 0.0, 1.0, 2.5, 1e9] {
                let mut steepest: f64 = 0.0;
                let mut largest: f64 = 0.0;
                let mut before: Option<Double> = None;
                for step in -150_000..=150_000 {
                    let z = Double::from(f64::from(step) / 3000.0);
                    let (slope, _) = loss.derivatives(z, target);
                    largest = largest.max(slope.high.abs());
                    if let Some(before) = before {
                        let rise = slope.add(before.signed(-1.0)).high;
                        assert!(rise >= -1e-30, "{loss:?} {target} {z:?}: {rise}");
                        steepest = steepest.max(rise * 3000.0);
                    }
                    before = Some(slope);
                }
                assert!(largest <= loss.slope(), "{loss:?} {target}: {largest}");
                // The steps are rounded to 16 digits.
                assert!(steepest <= loss.curvature() * (1.0 + 1e-9), "{loss:?} {target}: {steepest}");
                let is_crossed = target.abs() < 1e9
                    || !matches!(loss, ConvexLoss::Huber { .. } | ConvexLoss::Quantile { .. });
                assert!(!is_crossed || steepest > 0.99 * loss.curvature(), "{loss:?} {target}: {steepest}");
                let is_reached = !matches!(loss, ConvexLoss::Quantile { .. } | ConvexLoss::Poisson { .. });
                assert!(!is_reached || largest > 0.999 * loss.slope(), "{loss:?} {target}: {largest}");
            }
        }
    }

    /// Between two neighbouring doubles the slope moves by no more than the curvature allows, at knots too.
    #[test]
    fn slopes_are_continuous_at_knots() {
        for loss in losses() {
            for knot in [-3.0, -0.25, 0.0, 0.5, 1.0, 2.0] {
                let tiny = 1.0 / (1_u128 << 80) as f64;
                let left = loss.derivatives(Double { high: knot, low: -tiny }, 1.0).0;
                let right = loss.derivatives(Double { high: knot, low: tiny }, 1.0).0;
                let rise = right.add(left.signed(-1.0)).high;
                let error = 8.0 * super::super::double::ROUNDING * loss.slope();
                assert!(rise.abs() <= 2.0 * tiny * loss.curvature() + error, "{loss:?} {knot}: {rise}");
            }
        }
    }

    #[test]
    fn slopes_are_those_of_their_losses() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        let [logistic, huber, hinge, quantile, _, poisson] = losses().try_into().unwrap();
        for z in [-45.0, -3.3, -0.1, 0.0, 0.77, 5.0, 50.0_f64] {
            assert!(near(logistic.slope_at(z, 1.0), -1.0 / (1.0 + z.exp())), "{z}");
            assert!(near(logistic.slope_at(z, 0.0), 1.0 / (1.0 + (-z).exp())), "{z}");
            assert!(near(huber.slope_at(z, 0.5), (z - 0.5).clamp(-0.7, 0.7)));
            assert!(near(hinge.slope_at(z, 3.0), -(5.0 * (1.1 - z)).clamp(0.0, 1.0)));
            assert!(near(hinge.slope_at(z, -3.0), (5.0 * (1.1 + z)).clamp(0.0, 1.0)));
            assert!(near(quantile.slope_at(z, 0.1), (20.0 * (z - 0.1)).clamp(-0.9, 0.1)));
            let clamped = z.clamp(-(21_f64.ln()), 21_f64.ln());
            assert!((poisson.slope_at(z, 4.0) - (clamped.exp() - 4.0)).abs() < 1e-5, "{z}");
        }
        assert_eq!(logistic.slope_at(f64::NAN, 1.0), 0.0);
        assert_eq!(huber.slope_at(1.0, f64::INFINITY), 0.0);
        assert_eq!(poisson.slope_at(0.0, 1e300), poisson.slope_at(0.0, 20.0));
    }

    #[test]
    fn losses_are_read_as_they_are_written_and_bad_numbers_are_refused() {
        for loss in losses() {
            let text = serde_json::to_string(&loss).unwrap();
            assert_eq!(serde_json::from_str::<ConvexLoss>(&text).unwrap(), loss);
        }
        for text in [
            r#"{"huber":{"threshold":0.0}}"#,
            r#"{"huber":{"threshold":1.0,"other":1}}"#,
            r#"{"quantile":{"level":1.5,"smoothing":1.0}}"#,
            r#"{"poisson":{"most":1e9}}"#,
        ] {
            assert!(serde_json::from_str::<ConvexLoss>(text).is_err(), "{text}");
        }
    }
}
