//! Copies the patches of a convolution to rows of a matrix, and back.

/// A window that moves over an image with channels last. A sequence is an image with one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Rows and columns of the image.
    pub(crate) image: [usize; 2],
    pub(crate) channels: usize,
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    pub(crate) padding: [usize; 2],
}

impl Window {
    /// Counts the positions of the window down and across; `None` if it does not fit into the image.
    pub(crate) fn positions(&self) -> Option<[usize; 2]> {
        let along = |axis: usize| {
            let room = (self.image[axis] + 2 * self.padding[axis]).checked_sub(self.kernel[axis])?;
            (self.kernel[axis] > 0)
                .then(|| room.checked_div(self.stride[axis]).map(|steps| steps + 1))
                .flatten()
        };
        Some([along(0)?, along(1)?])
    }

    /// Finds the part of the window that lies inside the image, along one axis.
    ///
    /// Returns its start within the window, its length, and its start within the image.
    fn overlap(&self, axis: usize, position: usize) -> (usize, usize, usize) {
        let start = position * self.stride[axis];
        let (padding, end) = (self.padding[axis], self.image[axis]);
        let skipped = padding.saturating_sub(start).min(self.kernel[axis]);
        let first = (start + skipped).saturating_sub(padding);
        (skipped, (self.kernel[axis] - skipped).min(end.saturating_sub(first)), first)
    }

    /// Calls `each` with every contiguous run of every patch that lies inside the image.
    ///
    /// The arguments are the position, the offset in the patch, the offset in the image and the length of the
    /// run.
    #[inline(always)]
    fn runs(&self, positions: [usize; 2], mut each: impl FnMut(usize, usize, usize, usize)) {
        let (row_of_image, row_of_patch) = (self.image[1] * self.channels, self.kernel[1] * self.channels);
        for y in 0..positions[0] {
            let (top, rows, first_row) = self.overlap(0, y);
            for x in 0..positions[1] {
                let (left, columns, first_column) = self.overlap(1, x);
                for k in 0..rows {
                    let patch = (top + k) * row_of_patch + left * self.channels;
                    let image = (first_row + k) * row_of_image + first_column * self.channels;
                    each(y * positions[1] + x, patch, image, columns * self.channels);
                }
            }
        }
    }

    fn length(&self) -> usize {
        self.kernel[0] * self.kernel[1] * self.channels
    }

    /// Writes the patch at every position of one image, one row per patch.
    pub(crate) fn cut(&self, image: &[f32], patches: &mut [f32]) {
        let (Some(positions), length) = (self.positions(), self.length()) else { return };
        // A patch that reaches beyond the image is padded with zeros. All other numbers are written below.
        for (position, patch) in
            patches.chunks_exact_mut(length).take(positions[0] * positions[1]).enumerate()
        {
            let is_inside = |axis: usize, place: usize| self.overlap(axis, place).1 == self.kernel[axis];
            if !(is_inside(0, position / positions[1]) && is_inside(1, position % positions[1])) {
                patch.fill(0.0);
            }
        }
        self.runs(positions, |position, patch, place, run| {
            let patch = position * length + patch;
            patches[patch..patch + run].copy_from_slice(&image[place..place + run]);
        });
    }

    /// Adds every patch to its position in the image: the transpose of [`Window::cut`].
    pub(crate) fn paste(&self, patches: &[f32], image: &mut [f32]) {
        let (Some(positions), length) = (self.positions(), self.length()) else { return };
        super::fast(
            #[inline(always)]
            || {
                self.runs(positions, |position, patch, place, run| {
                    let patch = position * length + patch;
                    let (to, from) = (&mut image[place..place + run], &patches[patch..patch + run]);
                    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
                });
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_and_pasting_are_transposes_and_padding_is_zero() {
        for (image, kernel, stride, padding) in [
            ([5, 4], [3, 2], [1, 1], [0, 0]),
            ([7, 7], [3, 3], [2, 2], [1, 1]),
            ([1, 9], [1, 4], [1, 3], [0, 3]),
            ([2, 2], [4, 4], [1, 2], [3, 2]),
        ] {
            let window = Window { image, channels: 3, kernel, stride, padding };
            let positions = window.positions().unwrap();
            let (numbers, length) = (image[0] * image[1] * 3, window.length());
            let picture: Vec<f32> = (1..=numbers).map(|i| i as f32).collect();
            let mut patches = vec![f32::NAN; positions[0] * positions[1] * length];
            window.cut(&picture, &mut patches);
            // By the definition, one number at a time.
            for (row, patch) in patches.chunks(length).enumerate() {
                let (y, x) = (row / positions[1], row % positions[1]);
                for (place, value) in patch.iter().enumerate() {
                    let (i, j, c) = (place / 3 / kernel[1], place / 3 % kernel[1], place % 3);
                    let (v, u) = (
                        (y * stride[0] + i).wrapping_sub(padding[0]),
                        (x * stride[1] + j).wrapping_sub(padding[1]),
                    );
                    let expected =
                        if v < image[0] && u < image[1] { picture[(v * image[1] + u) * 3 + c] } else { 0.0 };
                    assert_eq!(*value, expected);
                }
            }
            // ⟨cut(x), y⟩ = ⟨x, paste(y)⟩
            let weights: Vec<f32> = (0..patches.len()).map(|i| (i % 5) as f32 - 2.0).collect();
            let mut pasted = vec![0.0; numbers];
            window.paste(&weights, &mut pasted);
            let dot = |a: &[f32], b: &[f32]| {
                a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>()
            };
            assert_eq!(dot(&patches, &weights), dot(&picture, &pasted));
        }
        assert_eq!(
            Window { image: [2, 2], channels: 1, kernel: [3, 3], stride: [1, 1], padding: [0, 0] }
                .positions(),
            None
        );
        assert_eq!(
            Window { image: [2, 2], channels: 1, kernel: [1, 1], stride: [0, 1], padding: [0, 0] }
                .positions(),
            None
        );
    }
}
