//! Functions of single features: straight lines between knots.

/// One function of each feature: straight lines between knots, constant beyond the first and the last one.
#[derive(Clone, Debug, PartialEq)]
pub struct PiecewiseLinear {
    /// Number of knots of a feature, at least two.
    pub knots: usize,
    /// The places of the knots, in increasing order, one feature after the other.
    pub inputs: Vec<f32>,
    /// The values at the knots, one feature after the other.
    pub outputs: Vec<f32>,
}

impl PiecewiseLinear {
    /// Number of features.
    #[must_use]
    pub fn width(&self) -> usize {
        self.inputs.len() / self.knots
    }

    /// Replaces every feature of a record by the value of its lines. NaN stays NaN.
    pub(super) fn apply(&self, record: &mut [f32]) {
        let lines = self.inputs.chunks_exact(self.knots).zip(self.outputs.chunks_exact(self.knots));
        for (x, (inputs, outputs)) in record.iter_mut().zip(lines) {
            let after = inputs.partition_point(|input| *input <= *x).clamp(1, self.knots - 1);
            let ([low, high], [from, to]) =
                ([inputs[after - 1], inputs[after]], [outputs[after - 1], outputs[after]]);
            // Knots at the same place are a step.
            let place = if high > low { ((*x - low) / (high - low)).clamp(0.0, 1.0) } else { 1.0 };
            *x = if x.is_nan() { *x } else { from + place * (to - from) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_straight_between_knots_and_constant_beyond() {
        let lines = PiecewiseLinear {
            knots: 3,
            inputs: vec![-1.0, 0.0, 1.0, -1.0, 0.5, 0.5],
            outputs: vec![0.0, 4.0, 5.0, -1.0, 0.0, 1.0],
        };
        assert_eq!(lines.width(), 2);
        let of = |x: f32| {
            let mut record = [x, x];
            lines.apply(&mut record);
            record
        };
        for (x, expected) in [
            (-7.0, [0.0, -1.0]),
            (-0.5, [2.0, -2.0 / 3.0]),
            (0.0, [4.0, -1.0 / 3.0]),
            (0.5, [4.5, 1.0]),
            (f32::INFINITY, [5.0, 1.0]),
        ] {
            assert!(
                of(x).iter().zip(expected).all(|(y, wanted)| (y - wanted).abs() < 1e-6),
                "{x} {:?}",
                of(x)
            );
        }
        assert!(of(f32::NAN).iter().all(|y| y.is_nan()));
    }
}
