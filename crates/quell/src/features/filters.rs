//! Filters of the scattering transform and the grids they live on, with the conventions of kymatio: Morlet wavelets and a Gaussian, periodic on the grid.

use std::{f64::consts::PI, sync::Arc};

use rustfft::{Fft, FftNum, FftPlanner, num_complex::Complex};

/// Rows and columns of a periodic picture, and its Fourier transforms.
///
/// A spectrum lies column after column, so that each transform moves its numbers once.
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

    /// Numbers that a transform wants to be lent.
    pub(super) fn scratch(&self) -> usize {
        self.forward.iter().chain(&self.inverse).map(|plan| plan.get_inplace_scratch_len()).max().unwrap_or(0)
    }

    /// From a picture, which is lost, to its spectrum.
    pub(super) fn forward(&self, picture: &mut [Complex<T>], spectrum: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        self.forward[0].process_with_scratch(picture, scratch);
        transpose(picture, spectrum, self.columns);
        self.forward[1].process_with_scratch(spectrum, scratch);
    }

    /// From a spectrum, which is lost, to its picture, times the size of the grid.
    pub(super) fn inverse(&self, spectrum: &mut [Complex<T>], picture: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        self.inverse[1].process_with_scratch(spectrum, scratch);
        transpose(spectrum, picture, self.rows);
        self.inverse[0].process_with_scratch(picture, scratch);
    }
}

/// Writes what lies in rows of `width` column after column.
fn transpose<T: Copy>(from: &[T], to: &mut [T], width: usize) {
    let height = from.len() / width;
    for (column, to) in to.chunks_exact_mut(height).enumerate() {
        to.iter_mut().zip(from[column..].iter().step_by(width)).for_each(|(to, from)| *to = *from);
    }
}

/// A wavelet: the direction in which it swings, how wide it is, how fast it swings, and how much longer it is across.
#[derive(Clone, Copy)]
pub(super) struct Morlet {
    pub(super) angle: f64,
    pub(super) width: f64,
    pub(super) frequency: f64,
    pub(super) slant: f64,
}

/// The area under a Gaussian of width one, as kymatio has it.
#[expect(clippy::approx_constant, reason = "with all digits of π, numbers would differ from kymatio's in the fifth")]
const AREA: f64 = 2.0 * 3.1415;
/// So many periods on each side are laid over each other.
const PERIODS: isize = 2;

impl Morlet {
    /// ψ(u) = g(u) (exp(i ξ·u) - K) with a Gaussian g, and K such that the sum of ψ is zero; the real part of its Fourier transform, which has no other.
    pub(super) fn spectrum(self, grid: &Grid<f64>) -> Vec<f64> {
        let (mut swinging, still) = self.waves(grid);
        let total: Complex<f64> = swinging.iter().sum();
        let mean = total / still.iter().sum::<f64>();
        for (wave, gaussian) in swinging.iter_mut().zip(&still) {
            *wave -= mean * gaussian;
        }
        let mut spectrum = vec![Complex::default(); grid.size()];
        grid.forward(&mut swinging, &mut spectrum, &mut vec![Complex::default(); grid.scratch()]);
        spectrum.iter().map(|number| number.re).collect()
    }

    /// g(u) exp(i ξ·u) and g(u), on the grid.
    fn waves(self, grid: &Grid<f64>) -> (Vec<Complex<f64>>, Vec<f64>) {
        // Below exp(-100) nothing is left in single precision.
        const FAINT: f64 = -100.0;
        let (sine, cosine) = self.angle.sin_cos();
        let squeezed = self.slant * self.slant;
        let scale = 1.0 / (2.0 * self.width * self.width);
        let curvature = [
            (cosine * cosine + squeezed * sine * sine) * scale,
            2.0 * (1.0 - squeezed) * sine * cosine * scale,
            (sine * sine + squeezed * cosine * cosine) * scale,
        ];
        let area = AREA * self.width * self.width / self.slant;
        let (mut swinging, mut still) = (vec![Complex::default(); grid.size()], vec![0.0; grid.size()]);
        let along = |side: usize| (-PERIODS * side as isize..(PERIODS + 1) * side as isize).map(move |at| (at, at as f64));
        for (row, x) in along(grid.rows) {
            for (column, y) in along(grid.columns) {
                let exponent = -(curvature[0] * x * x + curvature[1] * x * y + curvature[2] * y * y);
                if exponent < FAINT {
                    continue;
                }
                let (row, column) = (row.rem_euclid(grid.rows as isize), column.rem_euclid(grid.columns as isize));
                let place = row as usize * grid.columns + column as usize;
                let gaussian = exponent.exp() / area;
                swinging[place] += Complex::from_polar(gaussian, self.frequency * (x * cosine + y * sine));
                still[place] += gaussian;
            }
        }
        (swinging, still)
    }
}

/// The frequencies of an axis that are left on every `step`-th of its points, in order: high ones are cut off.
fn kept(side: usize, step: usize) -> impl Iterator<Item = usize> + Clone {
    let small = side / step;
    (0..small).map(move |at| if at < small / 2 { at } else { at + side - small })
}

/// A spectrum as it is on every `step`-th row and column.
pub(super) fn cropped(spectrum: &[f64], grid: &Grid<f64>, step: usize) -> Vec<f64> {
    let rows = kept(grid.rows, step);
    kept(grid.columns, step).flat_map(|column| rows.clone().map(move |row| spectrum[column * grid.rows + row])).collect()
}

/// A Gaussian average along one axis of a periodic picture, as a matrix.
pub(super) struct Average {
    /// Points of the axis in full.
    pub(super) side: usize,
    /// Of the Gaussian, in full.
    pub(super) width: f64,
    /// The axis has every so manieth point.
    pub(super) step: usize,
    /// One number comes out for so many points in full. The first and the last, which lie outside of the image, do not.
    pub(super) reach: usize,
}

impl Average {
    /// For each number that comes out, the weights of the points that go in.
    pub(super) fn matrix(&self) -> Vec<Vec<f64>> {
        let (side, points) = (self.side as isize, self.side / self.step);
        let gaussian = |at: isize| {
            let periods = (-PERIODS..=PERIODS).map(|period| (at + period * side) as f64);
            let total: f64 = periods.map(|x| (-x * x / (2.0 * self.width * self.width)).exp()).sum();
            total / (AREA.sqrt() * self.width)
        };
        let wave = |number: usize, at: isize, side: usize| (2.0 * PI * number as f64 * at as f64 / side as f64).cos();
        let amplitude = |number: usize| -> f64 { (0..side).map(|at| gaussian(at) * wave(number, at, self.side)).sum() };
        let spectrum: Vec<f64> = kept(self.side, self.step).map(amplitude).collect();
        let weight = |distance: isize| -> f64 {
            let waves = spectrum.iter().enumerate().map(|(number, amplitude)| amplitude * wave(number, distance, points));
            waves.sum::<f64>() / points as f64
        };
        let stride = self.reach / self.step;
        let row = |out: usize| (0..points).map(move |at| (out * stride) as isize - at as isize);
        (1..self.side / self.reach - 1).map(|out| row(out).map(weight).collect()).collect()
    }
}
