//! Activation functions.

use super::{Layer, Pass, Shape};
use crate::kernel::numbers::{exp, map, map_two, tanh};

/// An activation function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Function {
    /// max(0, x)
    Relu,
    /// tanh x
    Tanh,
    /// Scaled exponential linear unit: λx above zero, λα(eˣ - 1) below.
    Selu,
    /// x Φ(x), where the normal distribution function is approximated by tanh.
    Gelu,
    /// x / (1 + e⁻ˣ)
    Silu,
    /// 1 / (1 + e⁻ˣ)
    Sigmoid,
    /// x clamped to [-1, 1]
    HardTanh,
}

const SELU_SCALE: f32 = 1.050_701;
const SELU_ALPHA: f32 = 1.673_263_2;
/// √(2/π)
const GELU_SLOPE: f32 = 0.797_884_6;
const GELU_CUBE: f32 = 0.044_715;

impl Function {
    fn apply(self, input: &[f32], output: &mut [f32]) {
        match self {
            // This comparison keeps NaN.
            Self::Relu => map(input, output, |x| if x < 0.0 { 0.0 } else { x }),
            Self::Tanh => map(input, output, tanh),
            Self::Selu => {
                map(input, output, |x| SELU_SCALE * if x > 0.0 { x } else { SELU_ALPHA * (exp(x) - 1.0) });
            }
            Self::Gelu => {
                map(input, output, |x| 0.5 * x * (1.0 + tanh(GELU_SLOPE * (x + GELU_CUBE * x * x * x))));
            }
            Self::Silu => map(input, output, |x| x * sigmoid(x)),
            Self::Sigmoid => map(input, output, sigmoid),
            // `clamp` keeps NaN.
            Self::HardTanh => map(input, output, |x| x.clamp(-1.0, 1.0)),
        }
    }

    /// Multiplies the output gradient by the derivative at each number.
    fn differentiate(self, pass: Pass<'_>, result: &mut [f32]) {
        let Pass { input, output, output_gradient } = pass;
        match self {
            Self::Relu => map_two(output, output_gradient, result, |y, g| if y > 0.0 { g } else { 0.0 }),
            Self::Tanh => map_two(output, output_gradient, result, |y, g| g * (1.0 - y * y)),
            Self::Sigmoid => map_two(output, output_gradient, result, |y, g| g * y * (1.0 - y)),
            Self::HardTanh => {
                map_two(input, output_gradient, result, |x, g| if x.abs() > 1.0 { 0.0 } else { g });
            }
            Self::Selu => map_two(output, output_gradient, result, |y, g| {
                g * if y > 0.0 { SELU_SCALE } else { y + SELU_SCALE * SELU_ALPHA }
            }),
            Self::Gelu => map_two(input, output_gradient, result, |x, g| {
                let t = tanh(GELU_SLOPE * (x + GELU_CUBE * x * x * x));
                let slope = GELU_SLOPE * (1.0 + 3.0 * GELU_CUBE * x * x);
                g * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope)
            }),
            Self::Silu => map_two(input, output_gradient, result, |x, g| {
                let s = sigmoid(x);
                g * s * (1.0 + x * (1.0 - s))
            }),
        }
    }
}

#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// A layer that applies an activation function to every number.
#[derive(Clone, Debug)]
pub struct Activation {
    function: Function,
    output: Shape,
}

impl Activation {
    /// Creates the layer for examples of a shape.
    #[must_use]
    pub fn new(function: Function, shape: Shape) -> Self {
        Self { function, output: shape }
    }
}

impl Layer for Activation {
    fn inputs(&self) -> usize {
        self.outputs()
    }

    fn output(&self) -> &Shape {
        &self.output
    }

    fn forward(&self, _: &[f32], input: &[f32], output: &mut [f32], _: &mut [f32], _: &[u64]) {
        self.function.apply(input, output);
    }

    fn backward(&self, _: &[f32], pass: Pass<'_>, _: &mut [f32], input_gradient: Option<&mut [f32]>) {
        if let Some(input_gradient) = input_gradient {
            self.function.differentiate(pass, input_gradient);
        }
    }
}
