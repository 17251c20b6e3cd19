//! Histograms of oriented gradients (Dalal and Triggs 2005), with the conventions of scikit-image's `hog`.

use super::Transform;

/// The transform for pictures of one size.
pub(super) struct Hog {
    /// Channels, rows and columns of a picture.
    image: [usize; 3],
    orientations: usize,
    /// Rows and columns of a cell, in pixels.
    cell: usize,
    /// Rows and columns of a block, in cells.
    block: usize,
    output: [usize; 1],
}

/// Regularises the norm of a block, so that a block without any gradient stays zero.
const SMALLEST: f64 = 1e-5;
/// The largest value of a number after the first normalisation of its block.
const LARGEST: f64 = 0.2;

impl Hog {
    /// Creates the transform; `None` if a block does not fit into a picture.
    pub(super) fn new(image: [usize; 3], orientations: usize, cell: usize, block: usize) -> Option<Self> {
        let along = |side: usize| side.checked_div(cell)?.checked_sub(block.max(1)).map(|more| more + 1);
        let blocks = along(image[1])?.checked_mul(along(image[2])?)?;
        let output = block.checked_mul(block)?.checked_mul(orientations)?.checked_mul(blocks)?;
        Some(Self { image, orientations, cell, block, output: [output] })
    }

    fn cells(&self) -> [usize; 2] {
        [self.image[1] / self.cell, self.image[2] / self.cell]
    }

    /// The gradient at a pixel, down and across, of the channel where it is largest.
    ///
    /// Differences at the border are zero.
    fn gradient(&self, picture: &[f32], row: usize, column: usize) -> [f64; 2] {
        let [_, rows, columns] = self.image;
        let difference = |channel: &[f32], at: usize, end: usize, place: usize, stride: usize| {
            let inside = at > 0 && at + 1 < end;
            if inside { f64::from(channel[place + stride]) - f64::from(channel[place - stride]) } else { 0.0 }
        };
        let place = row * columns + column;
        let of_channel = |channel: &[f32]| {
            [difference(channel, row, rows, place, columns), difference(channel, column, columns, place, 1)]
        };
        let mut steepest = [0.0_f64; 2];
        for gradient in picture.chunks_exact(rows * columns).map(of_channel) {
            // Among equal channels, the first counts.
            if gradient[0].hypot(gradient[1]) > steepest[0].hypot(steepest[1]) {
                steepest = gradient;
            }
        }
        steepest
    }

    /// Computes the mean gradient magnitude of each cell in each direction.
    fn histograms(&self, picture: &[f32], histograms: &mut [f64]) {
        let [down, across] = self.cells();
        histograms.fill(0.0);
        let width = 180.0 / self.orientations as f64;
        for row in 0..down * self.cell {
            for column in 0..across * self.cell {
                let [y, x] = self.gradient(picture, row, column);
                let angle = y.atan2(x).to_degrees().rem_euclid(180.0);
                // An angle that was rounded to 180° belongs to no bin.
                let Some(bin) = (0..self.orientations).find(|bin| angle < width * (bin + 1) as f64) else {
                    continue;
                };
                let cell = row / self.cell * across + column / self.cell;
                histograms[cell * self.orientations + bin] += y.hypot(x) / (self.cell * self.cell) as f64;
            }
        }
    }
}

/// Normalises a block to length one, clamps its numbers to `LARGEST`, and normalises it again.
fn normalize(block: &mut [f64]) {
    let shorten = |block: &mut [f64]| {
        let length = (block.iter().map(|x| x * x).sum::<f64>() + SMALLEST * SMALLEST).sqrt();
        for x in block.iter_mut() {
            *x /= length;
        }
    };
    shorten(block);
    for x in block.iter_mut() {
        *x = x.min(LARGEST);
    }
    shorten(block);
}

impl Transform for Hog {
    /// The histograms of all cells, and one block.
    type Buffers = [Vec<f64>; 2];

    fn output(&self) -> &[usize] {
        &self.output
    }

    fn buffers(&self) -> Self::Buffers {
        let [down, across] = self.cells();
        [down * across, self.block * self.block].map(|cells| vec![0.0; cells * self.orientations])
    }

    fn apply(&self, record: &[f32], into: &mut [f32], [histograms, block]: &mut Self::Buffers) {
        self.histograms(record, histograms);
        let [down, across] = self.cells();
        let run = self.block * self.orientations;
        let corners = (0..=down - self.block)
            .flat_map(|row| (0..=across - self.block).map(move |column| (row, column)));
        for ((row, column), into) in corners.zip(into.chunks_exact_mut(block.len())) {
            for (line, to) in block.chunks_exact_mut(run).enumerate() {
                let from = ((row + line) * across + column) * self.orientations;
                to.copy_from_slice(&histograms[from..from + run]);
            }
            normalize(block);
            into.iter_mut().zip(&*block).for_each(|(to, from)| *to = *from as f32);
        }
    }
}
