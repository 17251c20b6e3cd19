//! Builds layers from unchecked settings, or returns an error that says what does not fit.

use super::Error;
use super::{
    Convolution, DecisionTree, Embedding, Layer, Leaves, Pool, Pooling, Reshape, Residual, SelfAttention,
    Sides, Spec, StandardizedConvolution, Trees,
    site::{Site, product},
};

/// The largest allowed setting. With it, the products below do not overflow.
pub(super) const LARGEST: usize = 1 << 20;
/// The largest vocabulary. Single precision represents all integers up to this one exactly.
const MOST_WORDS: usize = 1 << 24;

/// The most trees of a forest.
pub(crate) const MOST_TREES: usize = 1 << 12;

/// A window over an image. A sequence is an image with one row.
struct Frame {
    image: [usize; 3],
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    positions: [usize; 2],
    is_sequence: bool,
}

/// Checks that a setting is in 1..=most.
pub(super) fn within(
    site: &Site<'_>,
    setting: &'static str,
    found: usize,
    most: usize,
) -> Result<usize, Error> {
    let allowed = (1..=most).contains(&found);
    if allowed {
        Ok(found)
    } else {
        Err(site.setting(setting, &found, format!("a whole number from 1 to {most}")))
    }
}

/// Checks that a setting divides the channels.
pub(super) fn divides(
    site: &Site<'_>,
    setting: &'static str,
    found: usize,
    channels: usize,
) -> Result<(), Error> {
    let divides = found > 0 && channels.is_multiple_of(found);
    if divides {
        Ok(())
    } else {
        Err(site.setting(setting, &found, format!("a divisor of the {channels} channels")))
    }
}

/// Boxes a layer, or returns an error if the shape does not fit.
pub(super) fn fits<L: Layer + 'static>(
    layer: Option<L>,
    input: &[usize],
    site: &Site<'_>,
) -> Result<Box<dyn Layer>, Error> {
    match layer {
        Some(layer) => Ok(Box::new(layer)),
        None => Err(site.shape_error(input, "another shape")),
    }
}

impl Frame {
    fn new(input: &[usize], [kernel, stride, padding]: [Sides; 3], site: &Site<'_>) -> Result<Self, Error> {
        let (image, is_sequence) = match *input {
            [rows, columns, channels] => ([rows, columns, channels], false),
            [length, channels] => ([1, length, channels], true),
            _ => {
                return Err(site.shape_error(
                    input,
                    "an image [rows, columns, channels] or a sequence [length, channels]",
                ));
            }
        };
        let sides = |setting: &'static str, sides: Sides, row: usize, least: usize| {
            let along = sides
                .along(is_sequence, row)
                .ok_or_else(|| site.setting(setting, &"two numbers", "one, for a sequence"))?;
            let allowed = along.iter().all(|side| (least..=LARGEST).contains(side));
            let expected = || format!("whole numbers from {least} to {LARGEST}");
            if allowed {
                Ok(along)
            } else {
                Err(site.setting(setting, &pair(along, is_sequence), expected()))
            }
        };
        let (kernel, stride) = (sides("kernel", kernel, 1, 1)?, sides("stride", stride, 1, 1)?);
        let padding = sides("padding", padding, 0, 0)?;
        let room = [0, 1].map(|axis| image[axis] + 2 * padding[axis]);
        if room[0] < kernel[0] || room[1] < kernel[1] {
            let padded = if padding == [0, 0] { "" } else { " with padding" };
            let expected = format!("at most {}, the size of the input{padded}", pair(room, is_sequence));
            return Err(site.setting("kernel", &pair(kernel, is_sequence), expected));
        }
        let positions = [0, 1].map(|axis| (room[axis] - kernel[axis]) / stride[axis] + 1);
        Ok(Self { image, kernel, stride, padding, positions, is_sequence })
    }
}

/// Formats the sides of a window for a message.
fn pair([rows, columns]: [usize; 2], is_sequence: bool) -> String {
    if is_sequence { columns.to_string() } else { format!("{rows} × {columns}") }
}

pub(super) fn convolution(
    input: &[usize],
    outputs: usize,
    window: [Sides; 3],
    (groups, standardized): (usize, bool),
    site: &Site<'_>,
) -> Result<Box<dyn Layer>, Error> {
    let frame = Frame::new(input, window, site)?;
    let Frame { image, kernel, stride, padding, positions, is_sequence } = frame;
    let outputs = within(site, "outputs", outputs, LARGEST)?;
    divides(site, "groups", groups, image[2])?;
    if !outputs.is_multiple_of(groups) {
        return Err(site.setting("outputs", &outputs, format!("a multiple of the {groups} groups")));
    }
    let patch = product(&[kernel[0], kernel[1], image[2] / groups]);
    let weights = (patch.saturating_add(1)).saturating_mul(outputs as u128);
    let places = product(&positions);
    let patches = places.saturating_mul(patch).saturating_mul(groups as u128);
    let values = places.saturating_mul(outputs as u128);
    site.check_size(weights, patches.saturating_add(weights).saturating_add(values))?;
    let layer = if is_sequence {
        Convolution::over_sequence([image[1], image[2]], outputs, kernel[1], stride[1], padding[1], groups)
    } else {
        Convolution::over_image(image, outputs, kernel, stride, padding, groups)
    };
    if standardized {
        fits(layer.map(StandardizedConvolution::new), input, site)
    } else {
        fits(layer, input, site)
    }
}

pub(super) fn pooling(
    pool: Pool,
    input: &[usize],
    [kernel, stride]: [Sides; 2],
    site: &Site<'_>,
) -> Result<Box<dyn Layer>, Error> {
    let Frame { image, kernel, stride, is_sequence, .. } =
        Frame::new(input, [kernel, stride, Sides::Same(0)], site)?;
    let layer = if is_sequence {
        Pooling::over_sequence(pool, [image[1], image[2]], kernel[1], stride[1])
    } else {
        Pooling::new(pool, image, kernel, stride)
    };
    fits(layer, input, site)
}

pub(super) fn embedding(
    input: &[usize],
    words: usize,
    width: usize,
    site: &Site<'_>,
) -> Result<Box<dyn Layer>, Error> {
    let [length] = *input else { return Err(site.shape_error(input, "a sequence of words, [length]")) };
    let (words, width) = (within(site, "words", words, MOST_WORDS)?, within(site, "width", width, LARGEST)?);
    site.check_size(product(&[words, width]), product(&[length, width]))?;
    Ok(Box::new(Embedding::new(length, words, width)))
}

pub(super) fn leaves(
    input: &[usize],
    columns: &[usize],
    (trees, seed): (usize, u64),
    site: &Site<'_>,
) -> Result<Box<dyn Layer>, Error> {
    let trees = within(site, "trees", trees, MOST_TREES)?;
    let width = columns.iter().map(|categories| (*categories).max(1) as u128).sum::<u128>();
    if width != product(input) {
        let expected =
            format!("numbers of categories, or 0 for a number, that make {} inputs", product(input));
        return Err(site.setting("columns", &format!("{width} inputs"), expected));
    }
    if !Trees::fit_in_memory(columns, trees) {
        return Err(site.setting("trees", &trees, "fewer for columns with so many categories"));
    }
    // At most four questions and sixteen leaves.
    site.check_size(4 * trees as u128, width + 16 * trees as u128)?;
    Ok(Box::new(Leaves::new(columns, trees, seed)))
}

pub(super) fn decision_tree(
    input: &[usize],
    depth: usize,
    outputs: usize,
    site: &Site<'_>,
) -> Result<Box<dyn Layer>, Error> {
    let outputs = within(site, "outputs", outputs, LARGEST)?;
    if depth > DecisionTree::DEEPEST {
        return Err(site.setting("depth", &depth, format!("at most {}", DecisionTree::DEEPEST)));
    }
    site.check_size((2 + outputs as u128) << depth, outputs as u128)?;
    fits(DecisionTree::new(input.iter().product(), depth, outputs), input, site)
}

pub(super) fn reshape(input: &[usize], shape: &[usize], site: &Site<'_>) -> Result<Box<dyn Layer>, Error> {
    if product(shape) != product(input) || !(1..=3).contains(&shape.len()) {
        let expected =
            format!("one to three numbers whose product is {}, the size of the input", product(input));
        return Err(site.setting("shape", &format!("{shape:?}"), expected));
    }
    Ok(Box::new(Reshape::new(shape.to_vec())))
}

pub(super) fn residual(
    input: &[usize],
    layers: &[Spec],
    projection: &[Spec],
    site: &mut Site<'_>,
) -> Result<Box<dyn Layer>, Error> {
    if layers.is_empty() {
        return Err(site.empty());
    }
    let (layers, projection) = (site.build_inner(input, layers)?, site.build_inner(input, projection)?);
    let block_shape: &[usize] = layers.last().map_or(input, |layer| layer.output());
    let shortcut_shape: &[usize] = projection.last().map_or(input, |layer| layer.output());
    if block_shape != shortcut_shape {
        let expected = format!("{shortcut_shape:?}, the shape that it is added to");
        return Err(site.setting("output", &format!("{block_shape:?}"), expected));
    }
    fits(Residual::new(layers, projection), input, site)
}

pub(super) fn attention(
    input: &[usize],
    heads: usize,
    causal: bool,
    site: &Site<'_>,
) -> Result<Box<dyn Layer>, Error> {
    let [length, channels] = *input else {
        return Err(site.shape_error(input, "a sequence [length, channels]"));
    };
    divides(site, "heads", heads, channels)?;
    let weights = product(&[4, channels, channels + 1]);
    site.check_size(weights, product(&[heads, length, length]))?;
    fits(SelfAttention::new([length, channels], heads, causal), input, site)
}
