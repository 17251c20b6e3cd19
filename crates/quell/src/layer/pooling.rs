//! Max and mean pooling.

use super::{Layer, Pass, Shape};
use crate::kernel::fast;

/// The number that represents a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// The largest number. Among equal numbers, the first gets the gradient.
    Largest,
    /// The mean.
    Mean,
}

/// Pooling over windows of an image `[rows, columns, channels]` or a sequence, without padding.
///
/// Windows may overlap or leave gaps.
#[derive(Clone, Debug)]
pub struct Pooling {
    pool: Pool,
    image: [usize; 3],
    kernel: [usize; 2],
    stride: [usize; 2],
    positions: [usize; 2],
    output: Shape,
}

impl Pooling {
    /// Creates pooling over an image; `None` if the window does not fit into it.
    #[must_use]
    pub fn new(pool: Pool, image: [usize; 3], kernel: [usize; 2], stride: [usize; 2]) -> Option<Self> {
        let along = |axis: usize| {
            let room = image[axis].checked_sub(kernel[axis]).filter(|_| kernel[axis] > 0)?;
            room.checked_div(stride[axis]).map(|steps| steps + 1)
        };
        let positions = [along(0)?, along(1)?];
        let output = vec![positions[0], positions[1], image[2]];
        (image[2] > 0).then_some(Self { pool, image, kernel, stride, positions, output })
    }

    /// Creates pooling over a sequence of `[length, channels]`.
    #[must_use]
    pub fn over_sequence(
        pool: Pool,
        [length, channels]: [usize; 2],
        kernel: usize,
        stride: usize,
    ) -> Option<Self> {
        let flat = Self::new(pool, [1, length, channels], [1, kernel], [1, stride])?;
        Some(Self { output: flat.output[1..].to_vec(), ..flat })
    }

    /// Creates pooling with one window over all positions: the output is `[channels]`.
    #[must_use]
    pub fn over_all(pool: Pool, shape: &[usize]) -> Option<Self> {
        let (channels, places) = shape.split_last()?;
        let length = places.iter().product();
        let flat = Self::new(pool, [1, length, *channels], [1, length], [1, 1])?;
        Some(Self { output: vec![*channels], ..flat })
    }

    /// Calls `each` with the offsets of every output pixel and its input pixels.
    ///
    /// The last argument says whether it is the first input pixel of the window.
    #[inline(always)]
    fn windows(&self, mut each: impl FnMut(usize, usize, bool)) {
        let channels = self.image[2];
        for y in 0..self.positions[0] {
            for x in 0..self.positions[1] {
                let to = (y * self.positions[1] + x) * channels;
                for i in 0..self.kernel[0] {
                    for j in 0..self.kernel[1] {
                        let from =
                            ((y * self.stride[0] + i) * self.image[1] + x * self.stride[1] + j) * channels;
                        each(to, from, i == 0 && j == 0);
                    }
                }
            }
        }
    }

    fn share(&self) -> f32 {
        1.0 / (self.kernel[0] * self.kernel[1]) as f32
    }
}

impl Layer for Pooling {
    fn inputs(&self) -> usize {
        self.image.iter().product()
    }

    fn output(&self) -> &Shape {
        &self.output
    }

    fn forward(&self, _: &[f32], input: &[f32], output: &mut [f32], _: &mut [f32], _: &[u64]) {
        let (channels, share) = (self.image[2], self.share());
        for (image, output) in input.chunks_exact(self.inputs()).zip(output.chunks_exact_mut(self.outputs()))
        {
            fast(
                #[inline(always)]
                || {
                    self.windows(|to, from, first| {
                        let (to, from) = (&mut output[to..to + channels], &image[from..from + channels]);
                        match self.pool {
                            Pool::Largest if first => to.copy_from_slice(from),
                            // A NaN counts as the largest number.
                            Pool::Largest => {
                                to.iter_mut().zip(from).for_each(|(to, x)| {
                                    *to = if *to >= *x || to.is_nan() { *to } else { *x }
                                });
                            }
                            Pool::Mean if first => {
                                to.iter_mut().zip(from).for_each(|(to, x)| *to = share * x);
                            }
                            Pool::Mean => to.iter_mut().zip(from).for_each(|(to, x)| *to += share * x),
                        }
                    });
                },
            );
        }
    }

    fn backward(&self, _: &[f32], pass: Pass<'_>, _: &mut [f32], input_gradient: Option<&mut [f32]>) {
        let Some(input_gradient) = input_gradient else { return };
        input_gradient.fill(0.0);
        let (channels, share, size) = (self.image[2], self.share(), self.outputs());
        let mut remaining = vec![0.0_f32; size];
        for (example, to) in input_gradient.chunks_exact_mut(self.inputs()).enumerate() {
            let (image, output) =
                (&pass.input[example * self.inputs()..], &pass.output[example * size..][..size]);
            // The gradient that is not assigned yet. The first of several equal numbers gets all of it.
            remaining.copy_from_slice(&pass.output_gradient[example * size..][..size]);
            fast(
                #[inline(always)]
                || {
                    self.windows(|place, from, _| {
                        let (gradient, output) =
                            (&mut remaining[place..place + channels], &output[place..place + channels]);
                        let (to, image) = (&mut to[from..from + channels], &image[from..from + channels]);
                        match self.pool {
                            Pool::Largest => {
                                for (((to, x), y), g) in to.iter_mut().zip(image).zip(output).zip(gradient) {
                                    *to += if *x == *y { *g } else { 0.0 };
                                    *g = if *x == *y { 0.0 } else { *g };
                                }
                            }
                            Pool::Mean => to.iter_mut().zip(gradient).for_each(|(to, g)| *to += share * *g),
                        }
                    });
                },
            );
        }
    }
}
