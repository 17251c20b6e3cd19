//! Waves of numbers: features from which a linear layer forms smooth curves.

use super::{Layer, Pass, Shape};

/// Appends waves of some of the numbers to all numbers.
///
/// The wave of order k of a standardised number t is amplitude · √2 cos(πk · s(t)), where s(t) = 1/(1 + e⁻¹·⁷⁰²ᵗ)
/// is nearly the share of a normal column below t. A sum of waves is a smooth curve of the number. It is
/// computed from a table, with straight lines in between: the layer is these lines.
#[derive(Clone, Debug)]
pub struct Waves {
    table: Table,
    numbers: Vec<usize>,
    inputs: usize,
    output: Shape,
}

impl Waves {
    /// Creates the layer for examples of a number of features.
    ///
    /// `numbers` are the indices of those with waves. `None` if one is out of range, or an amplitude is not
    /// finite.
    #[must_use]
    pub fn new(inputs: usize, numbers: &[usize], amplitudes: &[f32]) -> Option<Self> {
        let fits = numbers.iter().all(|number| *number < inputs) && amplitudes.iter().all(|a| a.is_finite());
        fits.then(|| Self {
            table: Table::new(amplitudes),
            numbers: numbers.to_vec(),
            inputs,
            output: vec![inputs + numbers.len() * amplitudes.len()],
        })
    }
}

impl Layer for Waves {
    fn inputs(&self) -> usize {
        self.inputs
    }

    fn output(&self) -> &Shape {
        &self.output
    }

    fn forward(&self, _: &[f32], input: &[f32], output: &mut [f32], _: &mut [f32], _: &[u64]) {
        let width = self.outputs();
        for (x, y) in input.chunks_exact(self.inputs).zip(output.chunks_exact_mut(width)) {
            let (same, waves) = y.split_at_mut(self.inputs);
            same.copy_from_slice(x);
            for (waves, number) in waves.chunks_exact_mut(self.table.count.max(1)).zip(&self.numbers) {
                self.table.write(x[*number], 1.0, waves);
            }
        }
    }

    fn backward(&self, _: &[f32], pass: Pass<'_>, _: &mut [f32], input_gradient: Option<&mut [f32]>) {
        let Some(input_gradient) = input_gradient else { return };
        let gradients = pass.output_gradient.chunks_exact(self.outputs());
        let examples = pass.input.chunks_exact(self.inputs).zip(gradients);
        for ((x, g), result) in examples.zip(input_gradient.chunks_exact_mut(self.inputs)) {
            let (same, waves) = g.split_at(self.inputs);
            result.copy_from_slice(same);
            for (waves, number) in waves.chunks_exact(self.table.count.max(1)).zip(&self.numbers) {
                result[*number] += self.table.slope(x[*number], waves);
            }
        }
    }
}

/// All waves at points of a grid, row after row.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// Number of waves.
    pub(crate) count: usize,
    rows: Vec<f32>,
}

/// The largest number in the table. Beyond it, waves are constant.
const LARGEST: f32 = 8.0;
/// Intervals of the table between two whole numbers.
const INTERVALS: f32 = 32.0;

impl Table {
    /// The waves of orders 1, 2, … with these amplitudes.
    pub(crate) fn new(amplitudes: &[f32]) -> Self {
        let points = (2.0 * LARGEST * INTERVALS) as usize;
        let row = |point: usize| {
            let number = point as f64 / f64::from(INTERVALS) - f64::from(LARGEST);
            let share = 1.0 / (1.0 + (-1.702 * number).exp());
            let wave = move |(order, amplitude): (usize, &f32)| {
                let angle = std::f64::consts::PI * (order + 1) as f64 * share;
                (f64::from(*amplitude) * std::f64::consts::SQRT_2 * angle.cos()) as f32
            };
            amplitudes.iter().enumerate().map(wave)
        };
        Self { count: amplitudes.len(), rows: (0..=points).flat_map(row).collect() }
    }

    /// The largest number, the intervals between two whole numbers, and the waves at all points.
    pub(crate) fn grid(&self) -> (f32, f32, &[f32]) {
        (LARGEST, INTERVALS, &self.rows)
    }

    /// The rows around a number, and its place between them: 0 at the first one, 1 at the second one.
    #[inline(always)]
    fn around(&self, number: f32) -> (&[f32], &[f32], f32) {
        // NaN fails both comparisons and stays NaN.
        let below = if number > LARGEST { LARGEST } else { number };
        let scaled = INTERVALS * if below < -LARGEST { -LARGEST } else { below };
        // The middle of the table is at zero, so that no digit of a small number is lost.
        let middle = LARGEST * INTERVALS;
        let first = ((scaled.floor() + middle) as usize).min((2.0 * middle) as usize - 1);
        let rows = &self.rows[first * self.count..(first + 2) * self.count];
        let (first_row, second_row) = rows.split_at(self.count);
        (first_row, second_row, scaled - (first as f32 - middle))
    }

    /// Writes the waves of a number, times a factor.
    #[inline(always)]
    pub(crate) fn write(&self, number: f32, factor: f32, waves: &mut [f32]) {
        let (first, second, place) = self.around(number);
        let lines = |waves: &mut [f32], first: &[f32], second: &[f32]| {
            for (wave, (a, b)) in waves.iter_mut().zip(first.iter().zip(second)) {
                *wave = factor * (a + place * (b - a));
            }
        };
        // The usual number of waves fills a vector register.
        if let (Ok(first), Ok(second), Ok(waves)) = (
            <&[f32; 8]>::try_from(first),
            <&[f32; 8]>::try_from(second),
            <&mut [f32; 8]>::try_from(&mut *waves),
        ) {
            let mut eight = [0.0; 8];
            lines(&mut eight, first, second);
            *waves = eight;
            return;
        }
        lines(waves, first, second);
    }

    /// The derivative of the sum of all waves times a gradient.
    fn slope(&self, number: f32, gradient: &[f32]) -> f32 {
        let (first, second, place) = self.around(number);
        // Beyond the table the derivative is zero, and of NaN it is NaN.
        let inside = if number.abs() > LARGEST { 0.0 } else { INTERVALS + 0.0 * place };
        gradient.iter().zip(first.iter().zip(second)).map(|(g, (a, b))| g * inside * (b - a)).sum()
    }
}
