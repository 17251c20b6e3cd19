//! The filters of the scattering transform, with the conventions of kymatio.
//!
//! They are Morlet wavelets and a Gaussian, periodic on the grid.

use std::{f64::consts::PI, sync::Arc};

use rustfft::{Fft, FftNum, FftPlanner, num_complex::Complex};

/// The grid of a periodic picture, and its Fourier transforms.
///
/// A spectrum is stored in column-major order, so that each transform moves its numbers only once.
pub(super) struct Grid<T: FftNum> {
    pub(super) rows: usize,
    pub(super) columns: usize,
    /// Along rows and along columns.
    forward: [Arc<dyn Fft<T>>; 2],
    inverse: [Arc<dyn Fft<T>>; 2],
}

impl<T: FftNum> Grid<T> {
    pub(super) fn new([rows, columns]: [usize; 2]) -> Self {
        let mut planner = FftPlanner::new();
        let forward = [planner.plan_fft_forward(columns), planner.plan_fft_forward(rows)];
        let inverse = [planner.plan_fft_inverse(columns), planner.plan_fft_inverse(rows)];
        Self { rows, columns, forward, inverse }
    }

    pub(super) fn size(&self) -> usize {
        self.rows * self.columns
    }

    /// Length of the scratch buffer that a transform needs.
    pub(super) fn scratch(&self) -> usize {
        self.forward.iter().chain(&self.inverse).map(|plan| plan.get_inplace_scratch_len()).max().unwrap_or(0)
    }

    /// Computes the spectrum of a picture, and overwrites the picture.
    pub(super) fn forward(
        &self,
        picture: &mut [Complex<T>],
        spectrum: &mut [Complex<T>],
        scratch: &mut [Complex<T>],
    ) {
        self.forward[0].process_with_scratch(picture, scratch);
        transpose(picture, spectrum, self.columns);
        self.forward[1].process_with_scratch(spectrum, scratch);
    }

    /// Computes the picture of a spectrum, times the grid size, and overwrites the spectrum.
    pub(super) fn inverse(
        &self,
        spectrum: &mut [Complex<T>],
        picture: &mut [Complex<T>],
        scratch: &mut [Complex<T>],
    ) {
        self.inverse[1].process_with_scratch(spectrum, scratch);
        transpose(spectrum, picture, self.rows);
        self.inverse[0].process_with_scratch(picture, scratch);
    }
}

/// Transposes a matrix with rows of `width` numbers.
fn transpose<T: Copy>(from: &[T], to: &mut [T], width: usize) {
    let height = from.len() / width;
    for (column, to) in to.chunks_exact_mut(height).enumerate() {
        to.iter_mut().zip(from[column..].iter().step_by(width)).for_each(|(to, from)| *to = *from);
    }
}

/// The parameters of a Morlet wavelet.
#[derive(Clone, Copy)]
pub(super) struct Morlet {
    /// Direction of the oscillation.
    pub(super) angle: f64,
    /// Standard deviation of the Gaussian envelope along that direction.
    pub(super) width: f64,
    /// Frequency of the oscillation.
    pub(super) frequency: f64,
    /// Ratio of the envelope's width along the oscillation to its width across.
    pub(super) slant: f64,
}

/// The integral of a Gaussian of width one, as kymatio computes it.
#[expect(
    clippy::approx_constant,
    reason = "with all digits of π, numbers would differ from kymatio's in the fifth"
)]
const AREA: f64 = 2.0 * 3.1415;
/// Periods on each side of the grid that are summed to make a filter periodic.
const PERIODS: isize = 2;

impl Morlet {
    /// Computes the Fourier transform of ψ(u) = g(u) (exp(i ξ·u) - K), which is real.
    ///
    /// g is a Gaussian, and K is chosen such that the sum of ψ is zero.
    pub(super) fn spectrum(self, grid: &Grid<f64>) -> Vec<f64> {
        let (mut wavelet, envelope) = self.waves(grid);
        let total: Complex<f64> = wavelet.iter().sum();
        let mean = total / envelope.iter().sum::<f64>();
        for (wave, gaussian) in wavelet.iter_mut().zip(&envelope) {
            *wave -= mean * gaussian;
        }
        let mut spectrum = vec![Complex::default(); grid.size()];
        grid.forward(&mut wavelet, &mut spectrum, &mut vec![Complex::default(); grid.scratch()]);
        spectrum.iter().map(|number| number.re).collect()
    }

    /// Computes g(u) exp(i ξ·u) and g(u) on the grid.
    fn waves(self, grid: &Grid<f64>) -> (Vec<Complex<f64>>, Vec<f64>) {
        // Values below exp(-100) are negligible in single precision.
        const NEGLIGIBLE: f64 = -100.0;
        let (sine, cosine) = self.angle.sin_cos();
        let slant_squared = self.slant * self.slant;
        let scale = 1.0 / (2.0 * self.width * self.width);
        let curvature = [
            (cosine * cosine + slant_squared * sine * sine) * scale,
            2.0 * (1.0 - slant_squared) * sine * cosine * scale,
            (sine * sine + slant_squared * cosine * cosine) * scale,
        ];
        let area = AREA * self.width * self.width / self.slant;
        let (mut wavelet, mut envelope) = (vec![Complex::default(); grid.size()], vec![0.0; grid.size()]);
        let along = |side: usize| {
            (-PERIODS * side as isize..(PERIODS + 1) * side as isize).map(move |at| (at, at as f64))
        };
        for (row, x) in along(grid.rows) {
            for (column, y) in along(grid.columns) {
                let exponent = -(curvature[0] * x * x + curvature[1] * x * y + curvature[2] * y * y);
                if exponent < NEGLIGIBLE {
                    continue;
                }
                let (row, column) =
                    (row.rem_euclid(grid.rows as isize), column.rem_euclid(grid.columns as isize));
                let place = row as usize * grid.columns + column as usize;
                let gaussian = exponent.exp() / area;
                wavelet[place] += Complex::from_polar(gaussian, self.frequency * (x * cosine + y * sine));
                envelope[place] += gaussian;
            }
        }
        (wavelet, envelope)
    }
}

/// The frequencies of an axis that remain if every `step`-th point is kept.
///
/// High frequencies are cut off.
fn kept_frequencies(side: usize, step: usize) -> impl Iterator<Item = usize> + Clone {
    let small = side / step;
    (0..small).map(move |at| if at < small / 2 { at } else { at + side - small })
}

/// Crops a spectrum to that of every `step`-th row and column.
pub(super) fn cropped(spectrum: &[f64], grid: &Grid<f64>, step: usize) -> Vec<f64> {
    let rows = kept_frequencies(grid.rows, step);
    kept_frequencies(grid.columns, step)
        .flat_map(|column| rows.clone().map(move |row| spectrum[column * grid.rows + row]))
        .collect()
}

/// A Gaussian average along one axis of a periodic picture, as a matrix.
pub(super) struct Average {
    /// Points of the axis at full resolution.
    pub(super) side: usize,
    /// Width of the Gaussian at full resolution.
    pub(super) width: f64,
    /// The input has every `step`-th point of the axis.
    pub(super) step: usize,
    /// Points at full resolution per output. The first and the last output lie outside the image and are
    /// dropped.
    pub(super) reach: usize,
}

impl Average {
    /// Computes the weights of the input points for each output.
    pub(super) fn matrix(&self) -> Vec<Vec<f64>> {
        let (side, points) = (self.side as isize, self.side / self.step);
        let gaussian = |at: isize| {
            let periods = (-PERIODS..=PERIODS).map(|period| (at + period * side) as f64);
            let total: f64 = periods.map(|x| (-x * x / (2.0 * self.width * self.width)).exp()).sum();
            total / (AREA.sqrt() * self.width)
        };
        let wave = |number: usize, at: isize, side: usize| {
            (2.0 * PI * number as f64 * at as f64 / side as f64).cos()
        };
        let amplitude =
            |number: usize| -> f64 { (0..side).map(|at| gaussian(at) * wave(number, at, self.side)).sum() };
        let spectrum: Vec<f64> = kept_frequencies(self.side, self.step).map(amplitude).collect();
        let weight = |distance: isize| -> f64 {
            let waves = spectrum
                .iter()
                .enumerate()
                .map(|(number, amplitude)| amplitude * wave(number, distance, points));
            waves.sum::<f64>() / points as f64
        };
        let stride = self.reach / self.step;
        let row = |out: usize| (0..points).map(move |at| (out * stride) as isize - at as isize);
        (1..self.side / self.reach - 1).map(|out| row(out).map(weight).collect()).collect()
    }
}
