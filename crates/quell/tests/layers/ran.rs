//! A layer that has been run on some examples.

use quell::layer::{Layer, Pass};

/// Everything that a layer wrote.
pub(crate) struct Ran<'a> {
    layer: &'a dyn Layer,
    input: &'a [f32],
    output_gradient: &'a [f32],
    pub(crate) output: Vec<f32>,
    pub(crate) input_gradient: Vec<f32>,
    pub(crate) squared: Vec<f64>,
    kept: Vec<f32>,
}

impl<'a> Ran<'a> {
    /// Forward, backward and lengths. What a layer keeps begins as NaN: it must not depend on what was there before.
    pub(crate) fn new(
        layer: &'a dyn Layer,
        weights: &[f32],
        input: &'a [f32],
        output_gradient: &'a [f32],
        coins: &[u64],
    ) -> Self {
        let mut ran = Self::back(layer, weights, input, output_gradient, coins, true);
        ran.measure();
        ran
    }

    /// Forward and backward alone.
    pub(crate) fn back(
        layer: &'a dyn Layer,
        weights: &[f32],
        input: &'a [f32],
        output_gradient: &'a [f32],
        coins: &[u64],
        wanted: bool,
    ) -> Self {
        let examples = input.len() / layer.inputs();
        let mut output = vec![f32::NAN; examples * layer.outputs()];
        let mut input_gradient = vec![f32::NAN; input.len()];
        let mut kept = vec![f32::NAN; examples * layer.kept()];
        layer.forward(weights, input, &mut output, &mut kept, coins);
        let pass = Pass { input, output: &output, output_gradient };
        layer.backward(weights, pass, &mut kept, wanted.then_some(&mut input_gradient));
        Self { layer, input, output_gradient, output, input_gradient, squared: vec![0.0; examples], kept }
    }

    pub(crate) fn measure(&mut self) {
        let pass = Pass { input: self.input, output: &self.output, output_gradient: self.output_gradient };
        self.layer.squared_norms(pass, &mut self.kept, &mut self.squared);
    }

    /// Adds the scaled sum of gradients, or the plain sum.
    pub(crate) fn add_to(&mut self, sum: &mut [f32], scales: Option<&[f32]>) {
        let pass = Pass { input: self.input, output: &self.output, output_gradient: self.output_gradient };
        match scales {
            Some(scales) => self.layer.add_scaled(pass, &mut self.kept, scales, sum),
            None => self.layer.add(pass, &mut self.kept, sum),
        }
    }

    /// The scaled sum of gradients.
    pub(crate) fn sum(&mut self, scales: &[f32]) -> Vec<f32> {
        let mut sum = vec![0.0; self.layer.parameters()];
        self.add_to(&mut sum, Some(scales));
        sum
    }

    /// The gradient of one example.
    pub(crate) fn gradient(&mut self, example: usize) -> Vec<f32> {
        let mut scales = vec![0.0; self.squared.len()];
        scales[example] = 1.0;
        self.sum(&scales)
    }

    /// The sum without privacy.
    pub(crate) fn add(&mut self) -> Vec<f32> {
        let mut sum = vec![0.0; self.layer.parameters()];
        self.add_to(&mut sum, None);
        sum
    }
}

/// Numbers to the last bit; a NaN is a NaN.
pub(crate) fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|x| if x.is_nan() { u32::MAX } else { x.to_bits() }).collect()
}

/// The largest difference, relative to the largest number.
pub(crate) fn distance(found: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(1e-3_f64, |largest, x| largest.max(x.abs()));
    let differences = found.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).abs() / largest);
    // A NaN is infinitely far.
    differences.fold(0.0, |worst, x| if x.is_nan() { f64::INFINITY } else { worst.max(x) })
}
