//! Each layer as ONNX operators. Examples have the shapes of the layers: images with channels last.

use super::{
    graph::{Graph, Tensor},
    message::{Attribute, Element},
    trees,
};
use crate::{
    Error,
    layer::{Axes, Sides, Spec, WaveTable, standardize_filters},
};

/// Added to the variance by normalisations.
const SMALLEST_VARIANCE: f32 = 1e-5;

/// Adds layers one after the other; returns their output and the weights that remain.
pub(super) fn chain<'w>(
    graph: &mut Graph,
    layers: &[Spec],
    input: Tensor,
    weights: &'w [f32],
) -> Result<(Tensor, &'w [f32]), Error> {
    let (mut value, mut rest) = (input, weights);
    for layer in layers {
        let built = layer.build(&value.shape)?;
        let (own, after) = rest.split_at_checked(built.parameters()).ok_or_else(|| unfit(layer.name()))?;
        let output = add(graph, layer, &value, own)?;
        value = graph.reshape(&output, built.output());
        rest = after;
    }
    Ok((value, rest))
}

/// The error for a layer that has no ONNX form.
fn unfit(layer: &str) -> Error {
    Error::Setting {
        name: "layer",
        found: layer.into(),
        expected: "a layer that can be written as ONNX operators",
    }
}

/// Adds one layer.
fn add(graph: &mut Graph, layer: &Spec, input: &Tensor, weights: &[f32]) -> Result<Tensor, Error> {
    Ok(match layer {
        Spec::Linear { outputs } => linear(graph, input, *outputs, weights),
        Spec::Pointwise { outputs } => {
            let width = input.shape.last().copied().unwrap_or(0);
            pointwise(graph, input, [width, *outputs], weights)
        }
        Spec::Convolution { outputs, kernel, stride, padding, groups, standardized } => {
            let window = [(*kernel, 1), (*stride, 1), (*padding, 0)];
            convolution(graph, input, window, (*outputs, *groups, *standardized), weights)
                .ok_or_else(|| unfit("convolution"))?
        }
        Spec::MaxPool { kernel, stride } => {
            pooling(graph, "MaxPool", input, *kernel, *stride).ok_or_else(|| unfit("max_pool"))?
        }
        Spec::MeanPool { kernel, stride } => {
            pooling(graph, "AveragePool", input, *kernel, *stride).ok_or_else(|| unfit("mean_pool"))?
        }
        Spec::GlobalMean {} => {
            let (channels, rows) = rows_of(input);
            let places = graph.reshape(input, &[rows, channels]);
            graph.mean(&places, &[0])
        }
        Spec::GroupNorm { groups } => group_normalization(graph, input, *groups, weights),
        Spec::LayerNorm { over: Axes::Last } => layer_normalization(graph, input, weights),
        Spec::LayerNorm { over: Axes::All } => {
            let flat = graph.flatten(input);
            layer_normalization(graph, &flat, weights)
        }
        Spec::BatchNorm {} => return Err(unfit("batch_norm")),
        Spec::Embedding { words, width } => embedding(graph, input, [*words, *width], weights),
        Spec::Positions {} => {
            let added = graph.floats(&input.shape, weights);
            graph.apply("Add", input, &[&added])
        }
        // Numbers are dropped in training only, and the shape of the output is that of the layer.
        Spec::Dropout { .. } | Spec::Flatten {} | Spec::Reshape { .. } => input.clone(),
        Spec::Residual { layers, projection } => {
            let (block, rest) = chain(graph, layers, input.clone(), weights)?;
            let (other, _) = chain(graph, projection, input.clone(), rest)?;
            let other = graph.reshape(&other, &block.shape);
            graph.apply("Add", &block, &[&other.name])
        }
        Spec::SelfAttention { heads, causal } => attention(graph, input, *heads, *causal, weights),
        Spec::Relu {} => graph.apply("Relu", input, &[]),
        Spec::Tanh {} => graph.apply("Tanh", input, &[]),
        Spec::Sigmoid {} => graph.apply("Sigmoid", input, &[]),
        Spec::Selu {} => graph.apply("Selu", input, &[]),
        Spec::Gelu {} => gelu(graph, input),
        Spec::Silu {} => {
            let share = graph.apply("Sigmoid", input, &[]);
            graph.apply("Mul", input, &[&share.name])
        }
        Spec::HardTanh {} => clamp(graph, input, 1.0),
        Spec::Standardize { limit } => standardize(graph, input, *limit, weights),
        Spec::Waves { numbers, amplitudes } => waves(graph, input, numbers, amplitudes),
        Spec::Leaves { columns, trees, seed } => {
            trees::leaves(graph, input, columns, (*trees, *seed), weights)
        }
        Spec::DecisionTree { depth, outputs } => {
            trees::decision_tree(graph, input, *depth, *outputs, weights)
        }
        Spec::BoundLength {} => bound_length(graph, input),
        Spec::AppendSquares {} => {
            let flat = graph.flatten(input);
            let squares = graph.apply("Mul", &flat, &[&flat.name]);
            graph.concatenate(&[flat, squares])
        }
    })
}

/// Number of channels, and number of positions.
fn rows_of(input: &Tensor) -> (usize, usize) {
    let channels = input.shape.last().copied().unwrap_or(1);
    (channels, input.size() / channels.max(1))
}

fn linear(graph: &mut Graph, input: &Tensor, outputs: usize, weights: &[f32]) -> Tensor {
    let flat = graph.flatten(input);
    let (matrix, bias) = weights.split_at(outputs * flat.size());
    let matrix = graph.floats(&[outputs, flat.size()], matrix);
    let bias = graph.floats(&[outputs], bias);
    graph.node("Gemm", &[&flat.name, &matrix, &bias], &[("transB", Attribute::Integer(1))], &[outputs])
}

/// Weighted sums of the channels of each position. The matrix has a row for each input.
fn pointwise(graph: &mut Graph, input: &Tensor, [inputs, outputs]: [usize; 2], weights: &[f32]) -> Tensor {
    let (matrix, bias) = weights.split_at(inputs * outputs);
    let matrix = graph.floats(&[inputs, outputs], matrix);
    let bias = graph.floats(&[outputs], bias);
    let mut shape = input.shape.clone();
    shape.pop();
    shape.push(outputs);
    let sums = graph.node("MatMul", &[&input.name, &matrix], &[], &shape);
    graph.apply("Add", &sums, &[&bias])
}

/// An image, channels first, of an image or a sequence with channels last.
fn channels_first(graph: &mut Graph, input: &Tensor) -> Option<Tensor> {
    let image = match *input.shape.as_slice() {
        [length, channels] => graph.reshape(input, &[1, length, channels]),
        [_, _, _] => input.clone(),
        _ => return None,
    };
    Some(graph.transpose(&image, &[2, 0, 1]))
}

/// Rows and columns of a window, as ONNX writes them.
fn sides(sides: Sides, is_sequence: bool, row: usize) -> Option<Vec<i64>> {
    sides.along(is_sequence, row).map(|sides| sides.map(|side| side as i64).to_vec())
}

/// Number of positions of a window along one axis.
fn positions(length: usize, kernel: i64, stride: i64, padding: i64) -> usize {
    ((length as i64 + 2 * padding - kernel) / stride.max(1) + 1).max(0) as usize
}

fn convolution(
    graph: &mut Graph,
    input: &Tensor,
    [kernel, stride, padding]: [(Sides, usize); 3],
    (outputs, groups, standardized): (usize, usize, bool),
    weights: &[f32],
) -> Option<Tensor> {
    let is_sequence = input.shape.len() == 2;
    let kernel = sides(kernel.0, is_sequence, kernel.1)?;
    let stride = sides(stride.0, is_sequence, stride.1)?;
    let padding = sides(padding.0, is_sequence, padding.1)?;
    let image = channels_first(graph, input)?;
    let (channels, width) = (image.shape[0] / groups, outputs / groups);
    let places = (kernel[0] * kernel[1]) as usize;
    let patch = places * channels;
    let (filters, bias) = weights.split_at(patch * outputs);
    let filters =
        if standardized { standardize_filters([groups, patch, width], filters).0 } else { filters.to_vec() };
    // From [groups, rows, columns, channels, outputs of a group] to [outputs, channels, rows, columns].
    let mut ordered = Vec::with_capacity(filters.len());
    for output in 0..outputs {
        let (group, own) = (output / width, output % width);
        for channel in 0..channels {
            for place in 0..places {
                ordered.push(filters[(group * patch + place * channels + channel) * width + own]);
            }
        }
    }
    let shape = [outputs, channels, kernel[0] as usize, kernel[1] as usize];
    let (filters, bias) = (graph.floats(&shape, &ordered), graph.floats(&[outputs], bias));
    let along = |axis: usize| positions(image.shape[axis + 1], kernel[axis], stride[axis], padding[axis]);
    let output = [outputs, along(0), along(1)];
    let settings = [
        ("group", Attribute::Integer(groups as i64)),
        ("kernel_shape", Attribute::Integers(kernel)),
        ("pads", Attribute::Integers([padding.clone(), padding].concat())),
        ("strides", Attribute::Integers(stride)),
    ];
    let result = graph.node("Conv", &[&image.name, &filters, &bias], &settings, &output);
    Some(graph.transpose(&result, &[1, 2, 0]))
}

fn pooling(
    graph: &mut Graph,
    operator: &str,
    input: &Tensor,
    kernel: Sides,
    stride: Option<Sides>,
) -> Option<Tensor> {
    let is_sequence = input.shape.len() == 2;
    let stride = sides(stride.unwrap_or(kernel), is_sequence, 1)?;
    let kernel = sides(kernel, is_sequence, 1)?;
    let image = channels_first(graph, input)?;
    let along = |axis: usize| positions(image.shape[axis + 1], kernel[axis], stride[axis], 0);
    let output = [image.shape[0], along(0), along(1)];
    let settings = [("kernel_shape", Attribute::Integers(kernel)), ("strides", Attribute::Integers(stride))];
    let result = graph.node(operator, &[&image.name], &settings, &output);
    Some(graph.transpose(&result, &[1, 2, 0]))
}

/// (x - mean) / √(variance + 10⁻⁵) over all positions and the channels of a group.
fn group_normalization(graph: &mut Graph, input: &Tensor, groups: usize, weights: &[f32]) -> Tensor {
    let (channels, rows) = rows_of(input);
    let split = graph.reshape(input, &[rows, groups, channels / groups]);
    let mean = graph.mean(&split, &[0, 2]);
    let centred = graph.apply("Sub", &split, &[&mean.name]);
    let squares = graph.apply("Mul", &centred, &[&centred.name]);
    let variance = graph.mean(&squares, &[0, 2]);
    let smallest = graph.float(SMALLEST_VARIANCE);
    let variance = graph.apply("Add", &variance, &[&smallest]);
    let deviation = graph.apply("Sqrt", &variance, &[]);
    let normal = graph.apply("Div", &centred, &[&deviation.name]);
    let normal = graph.reshape(&normal, &input.shape);
    let (weight, bias) = weights.split_at(channels);
    let (weight, bias) = (graph.floats(&[channels], weight), graph.floats(&[channels], bias));
    let scaled = graph.apply("Mul", &normal, &[&weight]);
    graph.apply("Add", &scaled, &[&bias])
}

fn layer_normalization(graph: &mut Graph, input: &Tensor, weights: &[f32]) -> Tensor {
    let (channels, _) = rows_of(input);
    let (weight, bias) = weights.split_at(channels);
    let (weight, bias) = (graph.floats(&[channels], weight), graph.floats(&[channels], bias));
    let settings = [("axis", Attribute::Integer(-1)), ("epsilon", Attribute::Float(SMALLEST_VARIANCE))];
    graph.node("LayerNormalization", &[&input.name, &weight, &bias], &settings, &input.shape)
}

/// Rows of a table. An input that is no index becomes zeros.
fn embedding(graph: &mut Graph, input: &Tensor, [words, width]: [usize; 2], weights: &[f32]) -> Tensor {
    let table = graph.floats(&[words, width], weights);
    let (zero, count) = (graph.float(0.0), graph.float(words as f32));
    let whole = graph.apply("Floor", input, &[]);
    let tests = [
        graph.apply("Equal", input, &[&whole.name]),
        graph.apply("GreaterOrEqual", input, &[&zero]),
        graph.apply("Less", input, &[&count]),
    ];
    let known = graph.apply("And", &tests[0], &[&tests[1].name]);
    let known = graph.apply("And", &known, &[&tests[2].name]);
    let index = graph.node("Where", &[&known.name, &input.name, &zero], &[], &input.shape);
    let index = graph.cast(&index, Element::Integer);
    let rows = graph.look_up(&table, &index, &[width]);
    let kept = graph.cast(&known, Element::Float);
    let kept = graph.reshape(&kept, &[input.size(), 1]);
    graph.apply("Mul", &rows, &[&kept.name])
}

/// softmax(QKᵀ/√d) V for each head, between two projections.
fn attention(graph: &mut Graph, input: &Tensor, heads: usize, causal: bool, weights: &[f32]) -> Tensor {
    let (channels, length) = rows_of(input);
    let width = channels / heads;
    let (before, after) = weights.split_at(3 * channels * (channels + 1));
    let all = pointwise(graph, input, [channels, 3 * channels], before);
    // [length, which, heads, width] to [which, heads, length, width]
    let all = graph.reshape(&all, &[length, 3, heads, width]);
    let part = |graph: &mut Graph, which: i64| {
        let index = graph.integers(&[], &[which]);
        let shape = [length, heads, width];
        let part = graph.node("Gather", &[&all.name, &index], &[("axis", Attribute::Integer(2))], &shape);
        graph.transpose(&part, &[1, 0, 2])
    };
    let (queries, keys, values) = (part(graph, 0), part(graph, 1), part(graph, 2));
    let keys = graph.transpose(&keys, &[0, 2, 1]);
    let products = graph.node("MatMul", &[&queries.name, &keys.name], &[], &[heads, length, length]);
    let scale = graph.float(1.0 / (width as f32).sqrt());
    let mut products = graph.apply("Mul", &products, &[&scale]);
    if causal {
        let later =
            |place: usize| (0..length).map(move |other| if other > place { f32::NEG_INFINITY } else { 0.0 });
        let mask: Vec<f32> = (0..length).flat_map(later).collect();
        let mask = graph.floats(&[length, length], &mask);
        products = graph.apply("Add", &products, &[&mask]);
    }
    let axis = [("axis", Attribute::Integer(-1))];
    let shares = graph.node("Softmax", &[&products.name], &axis, &products.shape);
    let mixed = graph.node("MatMul", &[&shares.name, &values.name], &[], &[heads, length, width]);
    let mixed = graph.transpose(&mixed, &[1, 0, 2]);
    let mixed = graph.reshape(&mixed, &[length, channels]);
    pointwise(graph, &mixed, [channels, channels], after)
}

/// x Φ(x), with Φ approximated by tanh, as the layer computes it.
fn gelu(graph: &mut Graph, input: &Tensor) -> Tensor {
    let [half, one, slope, cube] = [0.5, 1.0, 0.797_884_6, 0.044_715].map(|number| graph.float(number));
    let square = graph.apply("Mul", input, &[&input.name]);
    let third = graph.apply("Mul", &square, &[&input.name]);
    let third = graph.apply("Mul", &third, &[&cube]);
    let sum = graph.apply("Add", input, &[&third.name]);
    let inner = graph.apply("Mul", &sum, &[&slope]);
    let inner = graph.apply("Tanh", &inner, &[]);
    let share = graph.apply("Add", &inner, &[&one]);
    let twice = graph.apply("Mul", input, &[&share.name]);
    graph.apply("Mul", &twice, &[&half])
}

pub(super) fn clamp(graph: &mut Graph, input: &Tensor, limit: f32) -> Tensor {
    let (low, high) = (graph.float(-limit), graph.float(limit));
    graph.apply("Clip", input, &[&low, &high])
}

fn standardize(graph: &mut Graph, input: &Tensor, limit: f32, weights: &[f32]) -> Tensor {
    let size = input.size();
    let part = |number: usize| &weights[number * size..(number + 1) * size];
    let [centre, rate, gain] = [0, 1, 2].map(|number| graph.floats(&input.shape, part(number)));
    let centred = graph.apply("Sub", input, &[&centre]);
    let mut scaled = graph.apply("Mul", &centred, &[&rate]);
    if limit < f32::MAX {
        scaled = clamp(graph, &scaled, limit);
    }
    graph.apply("Mul", &scaled, &[&gain])
}

/// The numbers, followed by straight lines between the points of a table of waves.
fn waves(graph: &mut Graph, input: &Tensor, numbers: &[usize], amplitudes: &[f32]) -> Tensor {
    let flat = graph.flatten(input);
    if numbers.is_empty() || amplitudes.is_empty() {
        return flat;
    }
    let table = WaveTable::new(amplitudes);
    let (largest, intervals, rows) = table.grid();
    let count = amplitudes.len();
    let last = rows.len() / count - 1;
    let table = graph.floats(&[last + 1, count], rows);
    let chosen = graph.select(&flat, numbers);
    let chosen = clamp(graph, &chosen, largest);
    let step = graph.float(intervals);
    let scaled = graph.apply("Mul", &chosen, &[&step]);
    let first = graph.apply("Floor", &scaled, &[]);
    // The number of the last interval in whole steps from the middle of the table.
    let end = graph.float(largest * intervals - 1.0);
    let first = graph.node("Min", &[&first.name, &end], &[], &first.shape);
    let place = graph.apply("Sub", &scaled, &[&first.name]);
    let middle = graph.float(largest * intervals);
    let index = graph.apply("Add", &first, &[&middle]);
    let index = graph.cast(&index, Element::Integer);
    let one = graph.integers(&[], &[1]);
    let next = graph.apply("Add", &index, &[&one]);
    let (low, high) = (graph.look_up(&table, &index, &[count]), graph.look_up(&table, &next, &[count]));
    let rise = graph.apply("Sub", &high, &[&low.name]);
    let place = graph.reshape(&place, &[numbers.len(), 1]);
    let added = graph.apply("Mul", &rise, &[&place.name]);
    let lines = graph.apply("Add", &low, &[&added.name]);
    let lines = graph.flatten(&lines);
    graph.concatenate(&[flat, lines])
}

/// x / max(1, ‖x‖)
fn bound_length(graph: &mut Graph, input: &Tensor) -> Tensor {
    let flat = graph.flatten(input);
    let axes = graph.integers(&[1], &[1]);
    let keep = [("keepdims", Attribute::Integer(1))];
    let length = graph.node("ReduceL2", &[&flat.name, &axes], &keep, &[1]);
    let one = graph.float(1.0);
    let length = graph.node("Max", &[&length.name, &one], &[], &[1]);
    graph.apply("Div", &flat, &[&length.name])
}
