//! Layers as a configuration file describes them.

use serde::{Deserialize, Serialize};

use super::Error;
use super::{
    Activation, AppendSquares, BoundLength, Dropout, Function, Layer, Linear, Normalization, Pool, Pooling,
    Positions, Reshape, Standardize, Waves,
    build::{
        LARGEST, attention, convolution, decision_tree, divides, embedding, fits, leaves, pooling, reshape,
        residual, within,
    },
    site::{Site, Tally, product},
};

/// The settings of one layer. The input shape is not a setting: it is known when the layer is built.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Spec {
    /// Weighted sums of all numbers of an example, whatever their shape.
    Linear {
        /// Number of outputs.
        outputs: usize,
    },
    /// Weighted sums of the channels, with the same weights at every position.
    Pointwise {
        /// Number of outputs.
        outputs: usize,
    },
    /// Weighted sums of the numbers under a moving window of an image or sequence.
    Convolution {
        /// Number of outputs.
        outputs: usize,
        /// Rows and columns of the window.
        kernel: Sides,
        /// Step of the window.
        #[serde(default = "one")]
        stride: Sides,
        /// Rows and columns of zeros around the image.
        #[serde(default = "none")]
        padding: Sides,
        /// Number of groups of channels that are convolved separately.
        #[serde(default = "one_group")]
        groups: usize,
        /// Whether weights are standardised to mean zero and length one before they are used.
        #[serde(default)]
        standardized: bool,
    },
    /// The largest number under a window, for each channel.
    MaxPool {
        /// Rows and columns of the window.
        kernel: Sides,
        /// Step of the window; by default the size of the window.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stride: Option<Sides>,
    },
    /// The mean of the numbers under a window, for each channel.
    MeanPool {
        /// Rows and columns of the window.
        kernel: Sides,
        /// Step of the window; by default the size of the window.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stride: Option<Sides>,
    },
    /// The mean of each channel over all positions.
    GlobalMean {},
    /// Group normalisation: mean zero and variance one over all positions and a group of channels.
    GroupNorm {
        /// Number of groups.
        groups: usize,
    },
    /// Layer normalisation: mean zero and variance one over the numbers of `over`.
    LayerNorm {
        /// The numbers that are normalised together.
        #[serde(default)]
        over: Axes,
    },
    /// Batch normalisation, which is refused: it mixes the examples of a batch.
    BatchNorm {},
    /// A vector for each word of a vocabulary. The inputs are word indices.
    Embedding {
        /// Size of the vocabulary.
        words: usize,
        /// Length of a vector.
        width: usize,
    },
    /// A learned weight added to every number, so that later layers can distinguish positions.
    Positions {},
    /// Dropout: sets random entries to zero during training.
    Dropout {
        /// The share that is set to zero, in [0, 1).
        rate: f32,
    },
    /// The same numbers with shape `[n]`.
    Flatten {},
    /// The same numbers with another shape.
    Reshape {
        /// The new shape.
        shape: Vec<usize>,
    },
    /// Layers whose output is added to their input.
    Residual {
        /// The layers.
        layers: Vec<Spec>,
        /// Layers applied to the input before it is added, where `layers` change the shape.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        projection: Vec<Spec>,
    },
    /// Multi-head self-attention over the positions of a sequence.
    SelfAttention {
        /// Number of attention heads. It must divide the channels.
        heads: usize,
        /// Whether a position attends only to itself and to earlier positions.
        #[serde(default)]
        causal: bool,
    },
    /// max(0, x)
    Relu {},
    /// tanh x
    Tanh {},
    /// Scaled exponential linear unit.
    Selu {},
    /// x Φ(x), approximated by tanh.
    Gelu {},
    /// x / (1 + e⁻ˣ)
    Silu {},
    /// 1 / (1 + e⁻ˣ)
    Sigmoid {},
    /// x clamped to [-1, 1].
    HardTanh {},
    /// Subtracts a centre from each number, multiplies by a rate, clamps, and multiplies by a gain.
    Standardize {
        /// The largest absolute value before the gain; none if omitted.
        #[serde(default = "no_limit", skip_serializing_if = "is_no_limit")]
        limit: f32,
    },
    /// Appends waves of some numbers, from which a linear layer forms smooth curves.
    Waves {
        /// The indices of the numbers that get waves.
        numbers: Vec<usize>,
        /// The amplitude of each wave, of orders 1, 2 and so on.
        amplitudes: Vec<f32>,
    },
    /// Appends the leaves of random trees, from which a linear layer forms a forest.
    Leaves {
        /// The number of categories of each column, or 0 for a number.
        columns: Vec<usize>,
        /// Number of trees.
        trees: usize,
        /// The seed of the trees.
        seed: u64,
    },
    /// A decision tree: comparisons of numbers with thresholds, and values at its leaves.
    DecisionTree {
        /// The depth of all leaves.
        depth: usize,
        /// Number of outputs.
        outputs: usize,
    },
    /// Scales examples that are longer than one to length one.
    BoundLength {},
    /// The numbers of an example, followed by the square of each.
    AppendSquares {},
}

fn no_limit() -> f32 {
    f32::MAX
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_no_limit(limit: &f32) -> bool {
    *limit == f32::MAX
}

/// One number for both sides of a window, or `[rows, columns]`. For a sequence, one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a whole number or two of them, such as 3 or [3, 5]")]
pub enum Sides {
    /// The same for rows and columns.
    Same(usize),
    /// Rows and columns.
    Each([usize; 2]),
}

/// The numbers that layer normalisation normalises together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axes {
    /// The channels of each position.
    #[default]
    Last,
    /// All numbers of an example.
    All,
}

fn one() -> Sides {
    Sides::Same(1)
}

fn none() -> Sides {
    Sides::Same(0)
}

fn one_group() -> usize {
    1
}

impl Spec {
    /// Builds the layer for examples of a shape.
    pub fn build(&self, input: &[usize]) -> Result<Box<dyn Layer>, crate::Error> {
        let mut tally = Tally::default();
        Ok(self.build_at(input, &mut Site::alone(self, &mut tally))?)
    }

    /// Builds a sequence of layers for examples of a shape.
    pub(crate) fn build_all(input: &[usize], recipes: &[Self]) -> Result<Vec<Box<dyn Layer>>, Error> {
        if recipes.is_empty() {
            return Err(Error::NoLayers { place: "the network".into() });
        }
        Site::chain(&mut Tally::default(), ("", 0), input, recipes)
    }

    /// The name of this kind of layer in a configuration file.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Linear { .. } => "linear",
            Self::Pointwise { .. } => "pointwise",
            Self::Convolution { .. } => "convolution",
            Self::MaxPool { .. } => "max_pool",
            Self::MeanPool { .. } => "mean_pool",
            Self::GlobalMean {} => "global_mean",
            Self::GroupNorm { .. } => "group_norm",
            Self::LayerNorm { .. } => "layer_norm",
            Self::BatchNorm {} => "batch_norm",
            Self::Embedding { .. } => "embedding",
            Self::Positions {} => "positions",
            Self::Dropout { .. } => "dropout",
            Self::Flatten {} => "flatten",
            Self::Reshape { .. } => "reshape",
            Self::Residual { .. } => "residual",
            Self::SelfAttention { .. } => "self_attention",
            Self::Relu {} => "relu",
            Self::Tanh {} => "tanh",
            Self::Selu {} => "selu",
            Self::Gelu {} => "gelu",
            Self::Silu {} => "silu",
            Self::Sigmoid {} => "sigmoid",
            Self::HardTanh {} => "hard_tanh",
            Self::Standardize { .. } => "standardize",
            Self::Waves { .. } => "waves",
            Self::Leaves { .. } => "leaves",
            Self::DecisionTree { .. } => "decision_tree",
            Self::BoundLength {} => "bound_length",
            Self::AppendSquares {} => "append_squares",
        }
    }

    /// Builds the layer at a position of a network.
    pub(super) fn build_at(&self, input: &[usize], site: &mut Site<'_>) -> Result<Box<dyn Layer>, Error> {
        let size = product(input);
        if !(1..=3).contains(&input.len()) || size == 0 {
            return Err(site.shape_error(
                input,
                "[numbers], [length, channels] or [rows, columns, channels], none of them zero",
            ));
        }
        site.check_size(0, size)?;
        let layer = self.build_for(input, site)?;
        site.count(layer.as_ref(), matches!(self, Self::Residual { .. }))?;
        Ok(layer)
    }

    /// Builds the layer for a shape that was checked.
    fn build_for(&self, input: &[usize], site: &mut Site<'_>) -> Result<Box<dyn Layer>, Error> {
        match self {
            Self::Linear { outputs } => {
                let outputs = within(site, "outputs", *outputs, LARGEST)?;
                site.check_size(product(&[outputs]) * (product(input) + 1), 0)?;
                Ok(Box::new(Linear::new(input.iter().product(), outputs)))
            }
            Self::Pointwise { outputs } => {
                convolution(input, *outputs, [one(), one(), none()], (1, false), site)
            }
            Self::Convolution { outputs, kernel, stride, padding, groups, standardized } => {
                convolution(input, *outputs, [*kernel, *stride, *padding], (*groups, *standardized), site)
            }
            Self::MaxPool { kernel, stride } => {
                pooling(Pool::Largest, input, [*kernel, stride.unwrap_or(*kernel)], site)
            }
            Self::MeanPool { kernel, stride } => {
                pooling(Pool::Mean, input, [*kernel, stride.unwrap_or(*kernel)], site)
            }
            Self::GlobalMean {} => fits(Pooling::over_all(Pool::Mean, input), input, site),
            Self::GroupNorm { .. } | Self::LayerNorm { .. } | Self::BatchNorm {} => {
                self.normalization(input, site)
            }
            Self::Embedding { words, width } => embedding(input, *words, *width, site),
            Self::Positions {} => Ok(Box::new(Positions::new(input.to_vec()))),
            Self::Dropout { rate } => match Dropout::new(*rate, site.dropout_number(), input.to_vec()) {
                Some(layer) => Ok(Box::new(layer)),
                None => Err(site.setting("rate", rate, "a number in [0, 1)")),
            },
            Self::Flatten {} => Ok(Box::new(Reshape::new(vec![input.iter().product()]))),
            Self::Reshape { shape } => reshape(input, shape, site),
            Self::Residual { layers, projection } => residual(input, layers, projection, site),
            Self::SelfAttention { heads, causal } => attention(input, *heads, *causal, site),
            Self::Relu {} => Ok(Box::new(Activation::new(Function::Relu, input.to_vec()))),
            Self::Tanh {} => Ok(Box::new(Activation::new(Function::Tanh, input.to_vec()))),
            Self::Selu {} => Ok(Box::new(Activation::new(Function::Selu, input.to_vec()))),
            Self::Gelu {} => Ok(Box::new(Activation::new(Function::Gelu, input.to_vec()))),
            Self::Silu {} => Ok(Box::new(Activation::new(Function::Silu, input.to_vec()))),
            Self::Sigmoid {} => Ok(Box::new(Activation::new(Function::Sigmoid, input.to_vec()))),
            Self::HardTanh {} => Ok(Box::new(Activation::new(Function::HardTanh, input.to_vec()))),
            Self::Standardize { limit } if *limit > 0.0 && limit.is_finite() => {
                site.check_size(3 * product(input), 3 * product(input))?;
                Ok(Box::new(Standardize::new(*limit, input.to_vec())))
            }
            Self::Standardize { limit } => Err(site.setting("limit", limit, "a positive number")),
            Self::Waves { numbers, amplitudes } => {
                let size = product(input);
                site.check_size(0, size + product(&[numbers.len(), amplitudes.len()]))?;
                let expected = "indices of numbers of the input, and finite amplitudes";
                let layer = Waves::new(input.iter().product(), numbers, amplitudes);
                layer.map_or_else(
                    || Err(site.setting("numbers", &format!("{numbers:?}"), expected)),
                    |layer| Ok(Box::new(layer) as Box<dyn Layer>),
                )
            }
            Self::Leaves { columns, trees, seed } => leaves(input, columns, (*trees, *seed), site),
            Self::DecisionTree { depth, outputs } => decision_tree(input, *depth, *outputs, site),
            Self::BoundLength {} => Ok(Box::new(BoundLength::new(input.to_vec()))),
            Self::AppendSquares {} => {
                site.check_size(0, 2 * product(input))?;
                Ok(Box::new(AppendSquares::new(input.iter().product())))
            }
        }
    }

    fn normalization(&self, input: &[usize], site: &Site<'_>) -> Result<Box<dyn Layer>, Error> {
        let channels = input.last().copied().unwrap_or(0);
        let layer = match self {
            Self::GroupNorm { groups } => {
                divides(site, "groups", *groups, channels)?;
                Normalization::over_groups(input, *groups)
            }
            Self::LayerNorm { over: Axes::Last } => Normalization::over_last_axis(input),
            Self::LayerNorm { over: Axes::All } => Normalization::over_all(input),
            _ => return Err(site.mixes()),
        };
        fits(layer, input, site)
    }
}

impl Sides {
    /// Rows and columns. For a sequence, the number of rows is `row`.
    pub(crate) fn along(self, is_sequence: bool, row: usize) -> Option<[usize; 2]> {
        match self {
            Self::Same(side) if is_sequence => Some([row, side]),
            Self::Same(side) => Some([side, side]),
            Self::Each(_) if is_sequence => None,
            Self::Each(sides) => Some(sides),
        }
    }
}
