//! Convolutions over images and sequences.

use super::{Layer, Pass, Shape};
use crate::{
    kernel::{
        numbers::{add, add_scaled, squared_length},
        patches::Window,
        product::{Into, Matrix, multiply},
    },
    random::PublicRandom,
};

/// A convolution in one or two dimensions, with stride, padding and groups.
///
/// The weights of a group are a matrix with one row for every number of a patch (row, column, channel) and
/// one column for every output. After all groups there is one bias for every output.
///
/// The gradient of each example is computed, kept until its scale is known, and then added. This takes as
/// many operations as adding it directly, and the norm is that of exactly the numbers that are added. (Norms
/// from Gram matrices suffer from cancellation between positions, and would need double precision.)
#[derive(Clone, Debug)]
pub struct Convolution {
    window: Window,
    /// The window of one group.
    group: Window,
    groups: usize,
    outputs: usize,
    positions: usize,
    output: Shape,
}

impl Convolution {
    /// Creates a convolution over an image of `[rows, columns, channels]`.
    ///
    /// `None` if the window does not fit into the image, or if the groups do not divide inputs and outputs.
    #[must_use]
    pub fn over_image(
        image: [usize; 3],
        outputs: usize,
        kernel: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        groups: usize,
    ) -> Option<Self> {
        let [rows, columns, channels] = image;
        let window = Window { image: [rows, columns], channels, kernel, stride, padding };
        let [down, across] = window.positions()?;
        let divides = channels > 0
            && outputs > 0
            && groups > 0
            && channels.is_multiple_of(groups)
            && outputs.is_multiple_of(groups);
        divides.then(|| Self {
            window,
            group: Window { channels: channels / groups, ..window },
            groups,
            outputs,
            positions: down * across,
            output: vec![down, across, outputs],
        })
    }

    /// Creates a convolution over a sequence of `[length, channels]`.
    #[must_use]
    pub fn over_sequence(
        [length, channels]: [usize; 2],
        outputs: usize,
        kernel: usize,
        stride: usize,
        padding: usize,
        groups: usize,
    ) -> Option<Self> {
        let flat =
            Self::over_image([1, length, channels], outputs, [1, kernel], [1, stride], [0, padding], groups)?;
        Some(Self { output: flat.output[1..].to_vec(), ..flat })
    }

    /// Length of a patch of one group.
    fn patch(&self) -> usize {
        self.group.kernel[0] * self.group.kernel[1] * self.group.channels
    }

    /// Outputs of one group.
    fn width(&self) -> usize {
        self.outputs / self.groups
    }

    /// Total length of all patches of an example.
    fn patches(&self) -> usize {
        self.positions * self.patch() * self.groups
    }

    /// The weight matrix of a group.
    fn weights<'a>(&self, weights: &'a [f32], group: usize) -> Matrix<'a> {
        let size = self.patch() * self.width();
        Matrix::new(&weights[group * size..(group + 1) * size], self.width())
    }

    /// The outputs of one group at all positions of some examples, one row per position.
    fn columns<'a>(&self, numbers: &'a [f32], group: usize) -> Matrix<'a> {
        let rows = numbers.len() / self.outputs;
        Matrix::strided(numbers.get(group * self.width()..).unwrap_or(&[]), rows, self.width(), self.outputs)
    }

    /// Writes the patches of all examples, group by group.
    fn cut(&self, input: &[f32], patches: &mut [f32]) {
        let examples = input.len() / self.inputs();
        let size = self.positions * self.patch();
        if self.groups == 1 {
            let pairs = input.chunks_exact(self.inputs()).zip(patches.chunks_exact_mut(size));
            pairs.for_each(|(image, patches)| self.group.cut(image, patches));
            return;
        }
        let (channels, mut part) = (self.group.channels, vec![0.0; self.inputs() / self.groups]);
        for group in 0..self.groups {
            for (example, image) in input.chunks_exact(self.inputs()).enumerate() {
                let pixels = image
                    .chunks_exact(self.window.channels)
                    .map(|pixel| &pixel[group * channels..][..channels]);
                part.chunks_exact_mut(channels).zip(pixels).for_each(|(to, from)| to.copy_from_slice(from));
                self.group.cut(&part, &mut patches[(group * examples + example) * size..][..size]);
            }
        }
    }

    /// Adds all patches to the image gradient: the transpose of [`Convolution::cut`].
    fn paste(&self, patches: &[f32], image_gradient: &mut [f32]) {
        let examples = image_gradient.len() / self.inputs();
        let size = self.positions * self.patch();
        image_gradient.fill(0.0);
        if self.groups == 1 {
            let pairs = image_gradient.chunks_exact_mut(self.inputs()).zip(patches.chunks_exact(size));
            pairs.for_each(|(image, patches)| self.group.paste(patches, image));
            return;
        }
        let (channels, mut part) = (self.group.channels, vec![0.0; self.inputs() / self.groups]);
        let inputs = self.inputs();
        for group in 0..self.groups {
            for (example, image) in image_gradient.chunks_exact_mut(inputs).enumerate() {
                part.fill(0.0);
                self.group.paste(&patches[(group * examples + example) * size..][..size], &mut part);
                let pixels = image
                    .chunks_exact_mut(self.window.channels)
                    .map(|pixel| &mut pixel[group * channels..][..channels]);
                part.chunks_exact(channels).zip(pixels).for_each(|(from, to)| to.copy_from_slice(from));
            }
        }
    }

    /// Splits `kept` into the patches of all examples and one gradient per example.
    fn split<'a>(&self, kept: &'a mut [f32]) -> (&'a mut [f32], &'a mut [f32]) {
        let examples = kept.len() / self.kept();
        kept.split_at_mut(examples * self.patches())
    }

    /// Writes or adds the summed gradient of some examples to `gradient`. `patches` returns their patches by
    /// group.
    fn gradient<'p>(
        &self,
        patches: impl Fn(usize) -> &'p [f32],
        output_gradient: &[f32],
        gradient: &mut [f32],
        into: Into,
    ) {
        let size = self.patch() * self.width();
        let (matrices, bias) = gradient.split_at_mut(size * self.groups);
        for (group, matrix) in matrices.chunks_exact_mut(size).enumerate() {
            let patches = Matrix::new(patches(group), self.patch()).transposed();
            multiply(patches, self.columns(output_gradient, group), matrix, self.width(), into);
        }
        if into == Into::Overwrite {
            bias.fill(0.0);
        }
        output_gradient.chunks_exact(self.outputs).for_each(|row| add(bias, row));
    }
}

impl Layer for Convolution {
    fn inputs(&self) -> usize {
        self.window.image[0] * self.window.image[1] * self.window.channels
    }

    fn output(&self) -> &Shape {
        &self.output
    }

    fn parameters(&self) -> usize {
        self.outputs * (self.patch() + 1)
    }

    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let [rows, columns] = self.window.kernel;
        vec![
            ("weight".into(), vec![self.groups, rows, columns, self.group.channels, self.width()]),
            ("bias".into(), vec![self.outputs]),
        ]
    }

    fn kept(&self) -> usize {
        self.patches() + self.parameters()
    }

    fn initialize(&self, weights: &mut [f32], random: &mut PublicRandom) {
        let bound = 1.0 / (self.patch() as f32).sqrt();
        for weight in weights {
            *weight = random.between(-bound, bound);
        }
    }

    fn forward(&self, weights: &[f32], input: &[f32], output: &mut [f32], kept: &mut [f32], _: &[u64]) {
        let (patches, _) = self.split(kept);
        self.cut(input, patches);
        let bias = &weights[self.patch() * self.outputs..];
        output.chunks_exact_mut(self.outputs).for_each(|row| row.copy_from_slice(bias));
        let per_group = patches.len() / self.groups;
        for (group, patches) in patches.chunks_exact(per_group.max(1)).enumerate() {
            let patches = Matrix::new(patches, self.patch());
            multiply(
                patches,
                self.weights(weights, group),
                &mut output[group * self.width()..],
                self.outputs,
                Into::Add,
            );
        }
    }

    fn backward(
        &self,
        weights: &[f32],
        pass: Pass<'_>,
        kept: &mut [f32],
        input_gradient: Option<&mut [f32]>,
    ) {
        let Some(input_gradient) = input_gradient else { return };
        // The gradient by the weights needs the patches later, so the gradient by the patches gets its own
        // buffer.
        let examples = kept.len() / self.kept();
        crate::kernel::scratch(examples * self.patches(), |patches| {
            let per_group = patches.len() / self.groups;
            for (group, patches) in patches.chunks_exact_mut(per_group.max(1)).enumerate() {
                let gradient = self.columns(pass.output_gradient, group);
                multiply(
                    gradient,
                    self.weights(weights, group).transposed(),
                    patches,
                    self.patch(),
                    Into::Overwrite,
                );
            }
            self.paste(patches, input_gradient);
        });
    }

    fn squared_norms(&self, pass: Pass<'_>, kept: &mut [f32], squared: &mut [f64]) {
        let (patches, gradients) = self.split(kept);
        let size = self.positions * self.patch();
        let examples = gradients
            .chunks_exact_mut(self.parameters())
            .zip(pass.output_gradient.chunks_exact(self.outputs()));
        let count = squared.len();
        for (example, ((gradient, output_gradient), square)) in examples.zip(squared).enumerate() {
            let own = |group: usize| &patches[(group * count + example) * size..][..size];
            self.gradient(own, output_gradient, gradient, Into::Overwrite);
            *square += squared_length(gradient);
        }
    }

    fn add_scaled(&self, _: Pass<'_>, kept: &mut [f32], scales: &[f32], sum: &mut [f32]) {
        let (_, gradients) = self.split(kept);
        for (gradient, scale) in
            gradients.chunks_exact(self.parameters()).zip(scales).filter(|(_, scale)| **scale != 0.0)
        {
            add_scaled(sum, *scale, gradient);
        }
    }

    fn add(&self, pass: Pass<'_>, kept: &mut [f32], sum: &mut [f32]) {
        let (patches, _) = self.split(kept);
        let per_group = patches.len() / self.groups;
        self.gradient(
            |group| &patches[group * per_group..][..per_group],
            pass.output_gradient,
            sum,
            Into::Add,
        );
    }
}
