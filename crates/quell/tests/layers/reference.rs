//! Layers by their definitions, one example at a time, in double precision and without any thought of speed.

use quell::{
    layer::{Axes, Sides, Spec},
    random::PublicRandom,
};

/// Takes an example through a layer. Weights are used up from the front.
pub(crate) fn forward(
    recipe: &Spec,
    shape: &[usize],
    weights: &mut &[f64],
    input: &[f64],
) -> (Vec<usize>, Vec<f64>) {
    let same = |f: &dyn Fn(f64) -> f64| (shape.to_vec(), input.iter().map(|x| f(*x)).collect());
    let channels = *shape.last().unwrap();
    let places = input.len() / channels;
    match recipe {
        Spec::Linear { outputs } => (vec![*outputs], linear(input, *outputs, weights)),
        Spec::Pointwise { outputs } => {
            let (matrix, bias) = (take(weights, channels * outputs), take(weights, *outputs));
            let sum = |place: usize, o: usize| {
                bias[o]
                    + (0..channels)
                        .map(|c| input[place * channels + c] * matrix[c * outputs + o])
                        .sum::<f64>()
            };
            let all = (0..places)
                .flat_map(|place| (0..*outputs).map(move |o| (place, o)))
                .map(|(place, o)| sum(place, o))
                .collect();
            ([&shape[..shape.len() - 1], &[*outputs]].concat(), all)
        }
        Spec::Convolution { outputs, kernel, stride, padding, groups, standardized } => {
            let sides = [sides(*kernel, shape, 1), sides(*stride, shape, 1), sides(*padding, shape, 0)];
            convolution(shape, *outputs, sides, (*groups, *standardized), weights, input)
        }
        Spec::MaxPool { kernel, stride } | Spec::MeanPool { kernel, stride } => {
            let largest = matches!(recipe, Spec::MaxPool { .. });
            pool(
                shape,
                [sides(*kernel, shape, 1), sides(stride.unwrap_or(*kernel), shape, 1)],
                input,
                largest,
            )
        }
        Spec::GlobalMean {} => {
            let mean =
                |c: usize| (0..places).map(|place| input[place * channels + c]).sum::<f64>() / places as f64;
            (vec![channels], (0..channels).map(mean).collect())
        }
        Spec::GroupNorm { groups } => {
            let width = channels / groups;
            (shape.to_vec(), normalize(input, channels, weights, |place| place % channels / width))
        }
        Spec::LayerNorm { over: Axes::Last } => {
            (shape.to_vec(), normalize(input, channels, weights, |place| place / channels))
        }
        Spec::LayerNorm { over: Axes::All } => {
            (shape.to_vec(), normalize(input, input.len(), weights, |_| 0))
        }
        Spec::Embedding { words, width } => {
            let table = take(weights, words * width);
            let row = |word: f64| (0..*words).find(|row| *row as f64 == word);
            let vector = |word: f64| {
                row(word).map_or(vec![0.0; *width], |row| table[row * width..][..*width].to_vec())
            };
            (vec![shape[0], *width], input.iter().flat_map(|word| vector(*word)).collect())
        }
        Spec::Positions {} => {
            let own = take(weights, input.len());
            (shape.to_vec(), input.iter().zip(own).map(|(x, w)| x + w).collect())
        }
        Spec::Dropout { .. } => same(&|x| x),
        Spec::Flatten {} => (vec![input.len()], input.to_vec()),
        Spec::Reshape { shape } => (shape.clone(), input.to_vec()),
        Spec::Residual { layers, projection } => {
            let (shape_of_block, block) = chain(layers, shape, weights, input);
            let (_, other) = chain(projection, shape, weights, input);
            (shape_of_block, block.iter().zip(other).map(|(a, b)| a + b).collect())
        }
        Spec::SelfAttention { heads, causal } => {
            (shape.to_vec(), attention([shape[0], channels], *heads, *causal, weights, input))
        }
        Spec::Relu {} => same(&|x| x.max(0.0)),
        Spec::Tanh {} => same(&f64::tanh),
        Spec::Selu {} => same(&|x| {
            1.050_700_987_355_480_5 * if x > 0.0 { x } else { 1.673_263_242_354_377_2 * x.exp_m1() }
        }),
        Spec::Gelu {} => same(&|x| {
            0.5 * x * (1.0 + (std::f64::consts::FRAC_2_PI.sqrt() * (x + 0.044_715 * x.powi(3))).tanh())
        }),
        Spec::Silu {} => same(&|x| x / (1.0 + (-x).exp())),
        Spec::Sigmoid {} => same(&|x| 1.0 / (1.0 + (-x).exp())),
        Spec::HardTanh {} => same(&|x| x.clamp(-1.0, 1.0)),
        Spec::Standardize { limit } => {
            let [centres, rates, gains] = [(); 3].map(|()| take(weights, input.len()));
            let limit = f64::from(*limit);
            let number = |i: usize| gains[i] * ((input[i] - centres[i]) * rates[i]).clamp(-limit, limit);
            (shape.to_vec(), (0..input.len()).map(number).collect())
        }
        Spec::Waves { numbers, amplitudes } => waves(input, numbers, amplitudes),
        Spec::Leaves { columns, trees, seed } => leaves(input, columns, (*trees, *seed), weights),
        Spec::DecisionTree { depth, outputs } => decision_tree(input, *depth, *outputs, weights),
        Spec::BoundLength {} => {
            let length = input.iter().map(|x| x * x).sum::<f64>().sqrt();
            same(&|x| x / length.max(1.0))
        }
        Spec::AppendSquares {} => {
            let squares = input.iter().map(|x| x * x);
            (vec![2 * input.len()], input.iter().copied().chain(squares).collect())
        }
        other => panic!("{} has no reference", other.name()),
    }
}

/// All numbers, and straight lines between the waves at multiples of 1/32.
fn waves(input: &[f64], numbers: &[usize], amplitudes: &[f32]) -> (Vec<usize>, Vec<f64>) {
    let wave = |t: f64, k: usize| {
        let share = 1.0 / (1.0 + (-1.702 * t).exp());
        f64::from(amplitudes[k]) * 2_f64.sqrt() * (std::f64::consts::PI * (k + 1) as f64 * share).cos()
    };
    let mut output = input.to_vec();
    for number in numbers {
        let t = input[*number].clamp(-8.0, 8.0);
        let low = ((t * 32.0).floor() / 32.0).min(8.0 - 1.0 / 32.0);
        let line = |k: usize| wave(low, k) + (t - low) * 32.0 * (wave(low + 1.0 / 32.0, k) - wave(low, k));
        output.extend((0..amplitudes.len()).map(line));
    }
    (vec![output.len()], output)
}

/// The values of the leaf that comparisons lead to.
fn decision_tree(
    input: &[f64],
    depth: usize,
    outputs: usize,
    weights: &mut &[f64],
) -> (Vec<usize>, Vec<f64>) {
    let questions = (1 << depth) - 1;
    let [features, thresholds] = [(); 2].map(|()| take(weights, questions));
    let values = take(weights, (questions + 1) * outputs);
    let end = (0..depth).fold(0, |node, _| {
        let feature = (features[node].max(0.0).floor() as usize).min(input.len() - 1);
        2 * node + if input[feature] > thresholds[node] { 2 } else { 1 }
    });
    (vec![outputs], values[(end - questions) * outputs..][..outputs].to_vec())
}

/// All numbers, and the leaves of random trees, written from the definition of the layer.
fn leaves(
    input: &[f64],
    columns: &[usize],
    (trees, seed): (usize, u64),
    weights: &mut &[f64],
) -> (Vec<usize>, Vec<f64>) {
    let mut output = input.to_vec();
    for tree in 0..trees {
        let mut chance = PublicRandom::of(seed, tree as u64);
        let mut asked = Vec::new();
        let (mut leaf, mut count) = (0, 1);
        while asked.len() < (1 + tree % 4).min(columns.len()) {
            let column = chance.below(columns.len());
            if asked.contains(&column) {
                continue;
            }
            asked.push(column);
            let first: usize = columns[..column].iter().map(|categories| (*categories).max(1)).sum();
            let answer = if columns[column] == 0 {
                chance.between(0.0, 1.0);
                input[first] > take(weights, 1)[0]
            } else {
                let mut coins = Vec::new();
                while !coins.contains(&true) || (columns[column] > 1 && !coins.contains(&false)) {
                    coins = (0..columns[column]).map(|_| chance.bits() >= 1 << 63).collect();
                }
                let present = input[first..][..columns[column]].iter().position(|x| *x > 0.5);
                present.is_some_and(|category| coins[category])
            };
            (leaf, count) = (2 * leaf + usize::from(answer), 2 * count);
        }
        output.extend((0..count).map(|own| f64::from(u8::from(own == leaf)) - 1.0 / count as f64));
    }
    (vec![output.len()], output)
}

/// Layers one after the other.
pub(crate) fn chain(
    recipes: &[Spec],
    shape: &[usize],
    weights: &mut &[f64],
    input: &[f64],
) -> (Vec<usize>, Vec<f64>) {
    let start = (shape.to_vec(), input.to_vec());
    recipes.iter().fold(start, |(shape, values), recipe| forward(recipe, &shape, weights, &values))
}

fn take<'a>(weights: &mut &'a [f64], count: usize) -> &'a [f64] {
    let (own, rest) = weights.split_at(count);
    *weights = rest;
    own
}

fn linear(input: &[f64], outputs: usize, weights: &mut &[f64]) -> Vec<f64> {
    let (matrix, bias) = (take(weights, input.len() * outputs), take(weights, outputs));
    matrix
        .chunks(input.len())
        .zip(bias)
        .map(|(row, b)| b + row.iter().zip(input).map(|(w, x)| w * x).sum::<f64>())
        .collect()
}

fn sides(sides: Sides, shape: &[usize], row: usize) -> [usize; 2] {
    match sides {
        Sides::Same(side) if shape.len() == 2 => [row, side],
        Sides::Same(side) => [side, side],
        Sides::Each(sides) => sides,
    }
}

/// A sequence is an image of one row.
fn image(shape: &[usize]) -> [usize; 3] {
    if let [length, channels] = *shape { [1, length, channels] } else { [shape[0], shape[1], shape[2]] }
}

fn arranged(shape: &[usize], down: usize, across: usize, channels: usize) -> Vec<usize> {
    if shape.len() == 2 { vec![across, channels] } else { vec![down, across, channels] }
}

fn convolution(
    shape: &[usize],
    outputs: usize,
    [kernel, stride, padding]: [[usize; 2]; 3],
    (groups, standardized): (usize, bool),
    weights: &mut &[f64],
    input: &[f64],
) -> (Vec<usize>, Vec<f64>) {
    let [rows, columns, channels] = image(shape);
    let (per_group, width) = (channels / groups, outputs / groups);
    let patch = kernel[0] * kernel[1] * per_group;
    let mut filters = take(weights, patch * outputs).to_vec();
    let bias = take(weights, outputs);
    let place = |g: usize, i: usize, j: usize, c: usize, o: usize| {
        (((g * kernel[0] + i) * kernel[1] + j) * per_group + c) * width + o
    };
    if standardized {
        for (g, o) in (0..groups).flat_map(|g| (0..width).map(move |o| (g, o))) {
            let places: Vec<usize> = (0..patch).map(|p| (g * patch + p) * width + o).collect();
            let mean = places.iter().map(|p| filters[*p]).sum::<f64>() / patch as f64;
            let length = (places.iter().map(|p| (filters[*p] - mean).powi(2)).sum::<f64>() + 1e-4).sqrt();
            for p in places {
                filters[p] = (filters[p] - mean) / length;
            }
        }
    }
    let (down, across) = (
        (rows + 2 * padding[0] - kernel[0]) / stride[0] + 1,
        (columns + 2 * padding[1] - kernel[1]) / stride[1] + 1,
    );
    let mut output = Vec::new();
    for (y, x) in (0..down).flat_map(|y| (0..across).map(move |x| (y, x))) {
        for o in 0..outputs {
            let (g, mut sum) = (o / width, bias[o]);
            for (i, j) in (0..kernel[0]).flat_map(|i| (0..kernel[1]).map(move |j| (i, j))) {
                let (v, u) = (
                    (y * stride[0] + i).wrapping_sub(padding[0]),
                    (x * stride[1] + j).wrapping_sub(padding[1]),
                );
                if v < rows && u < columns {
                    let pixel = &input[(v * columns + u) * channels + g * per_group..][..per_group];
                    sum +=
                        (0..per_group).map(|c| pixel[c] * filters[place(g, i, j, c, o % width)]).sum::<f64>();
                }
            }
            output.push(sum);
        }
    }
    (arranged(shape, down, across, outputs), output)
}

fn pool(
    shape: &[usize],
    [kernel, stride]: [[usize; 2]; 2],
    input: &[f64],
    largest: bool,
) -> (Vec<usize>, Vec<f64>) {
    let [rows, columns, channels] = image(shape);
    let (down, across) = ((rows - kernel[0]) / stride[0] + 1, (columns - kernel[1]) / stride[1] + 1);
    let mut output = Vec::new();
    for (y, x, c) in
        (0..down).flat_map(|y| (0..across).flat_map(move |x| (0..channels).map(move |c| (y, x, c))))
    {
        let window: Vec<f64> = (0..kernel[0] * kernel[1])
            .map(|k| {
                input[((y * stride[0] + k / kernel[1]) * columns + x * stride[1] + k % kernel[1]) * channels
                    + c]
            })
            .collect();
        let mean = window.iter().sum::<f64>() / window.len() as f64;
        output.push(if largest { window.iter().copied().fold(f64::MIN, f64::max) } else { mean });
    }
    (arranged(shape, down, across, channels), output)
}

/// `team` says which numbers are normalised together; weights repeat after `period` numbers.
fn normalize(input: &[f64], period: usize, weights: &mut &[f64], team: impl Fn(usize) -> usize) -> Vec<f64> {
    let (weight, bias) = (take(weights, period), take(weights, period));
    let one = |place: usize| {
        let own: Vec<f64> =
            (0..input.len()).filter(|other| team(*other) == team(place)).map(|other| input[other]).collect();
        let mean = own.iter().sum::<f64>() / own.len() as f64;
        let variance = own.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / own.len() as f64;
        (input[place] - mean) / (variance + 1e-5).sqrt() * weight[place % period] + bias[place % period]
    };
    (0..input.len()).map(one).collect()
}

fn attention(
    [length, channels]: [usize; 2],
    heads: usize,
    causal: bool,
    weights: &mut &[f64],
    input: &[f64],
) -> Vec<f64> {
    let shape = [length, channels];
    let (_, all) = forward(&Spec::Pointwise { outputs: 3 * channels }, &shape, weights, input);
    let width = channels / heads;
    let number = |which: usize, place: usize, head: usize, k: usize| {
        all[place * 3 * channels + which * channels + head * width + k]
    };
    let mut found = vec![0.0; length * channels];
    for (head, i) in (0..heads).flat_map(|head| (0..length).map(move |i| (head, i))) {
        let seen = if causal { i + 1 } else { length };
        let product =
            |j: usize| (0..width).map(|k| number(0, i, head, k) * number(1, j, head, k)).sum::<f64>();
        let scores: Vec<f64> = (0..seen).map(|j| (product(j) / (width as f64).sqrt()).exp()).collect();
        let total: f64 = scores.iter().sum();
        for k in 0..width {
            let mean = (0..seen).map(|j| scores[j] / total * number(2, j, head, k)).sum();
            found[i * channels + head * width + k] = mean;
        }
    }
    forward(&Spec::Pointwise { outputs: channels }, &shape, weights, &found).1
}
