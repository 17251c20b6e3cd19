//! The scattering transform of Bruna and Mallat (2013), with the conventions of kymatio's `Scattering2D`.
//!
//! The coefficients of a picture x are its local means x ∗ φ, the local means of its wavelet energies |x ∗ ψ|
//! ∗ φ, and those of the second order ||x ∗ ψ| ∗ ψ'| ∗ φ. They change little if the picture is shifted or
//! deformed a little, and keep most of the information about its class. Nothing is learned.

use rustfft::num_complex::Complex;

use super::{
    Transform,
    filters::{Average, Grid, Morlet, cropped},
};

/// The transform for pictures of one size.
pub(crate) struct Scattering {
    /// Rows and columns of a picture.
    image: [usize; 2],
    /// The rows and the columns of the picture that fill the padded grid.
    ///
    /// Pictures are reflected at their borders.
    pub(crate) reflected: [Vec<usize>; 2],
    /// The grids at full resolution, at half of it, and so on.
    grids: Vec<Grid<f32>>,
    /// φ at each resolution: a matrix for rows and a transposed matrix for columns.
    pub(crate) averages: Vec<[Vec<f32>; 2]>,
    /// ψ by scale and angle: its spectrum at each resolution to which it is applied.
    pub(crate) wavelets: Vec<Vec<Vec<Vec<f32>>>>,
    pub(crate) second_order: bool,
    /// Channels, rows and columns of the output.
    pub(crate) output: [usize; 3],
}

/// Number of coefficients for one position of one channel.
pub(super) fn coefficients(scales: usize, angles: usize, order: usize) -> usize {
    let first = 1 + scales * angles;
    if order < 2 { first } else { first + scales * (scales - 1) / 2 * angles * angles }
}

/// Rows or columns of the padded grid: those of the picture and a margin.
fn padded(side: usize, reach: usize) -> usize {
    (side / reach + 2) * reach
}

/// The row or column of the picture that is reflected to a position.
fn reflect(at: isize, side: usize) -> usize {
    let period = 2 * (side as isize - 1);
    let at = at.rem_euclid(period);
    at.min(period - at) as usize
}

impl Scattering {
    /// Creates the transform for pictures of a shape (channels first).
    ///
    /// It needs at least 2^scales rows and columns, one scale and one angle.
    pub(crate) fn new(
        [channels, rows, columns]: [usize; 3],
        scales: usize,
        angles: usize,
        order: usize,
    ) -> Self {
        let (image, reach) = ([rows, columns], 1 << scales);
        let sides = image.map(|side| padded(side, reach));
        let reflected = [0, 1].map(|axis| {
            let before = (sides[axis] - image[axis]) / 2;
            (0..sides[axis]).map(|at| reflect(at as isize - before as isize, image[axis])).collect()
        });
        let width = 0.8 * f64::from(1 << (scales - 1));
        let average = |side: usize, step: usize| Average { side, width, step, reach }.matrix();
        let averages = (0..scales).map(|scale| {
            let [down, across] = sides.map(|side| average(side, 1 << scale));
            let across = (0..sides[1] >> scale)
                .flat_map(|column| across.iter().map(move |weights| weights[column] as f32));
            [down.iter().flatten().map(|weight| *weight as f32).collect(), across.collect()]
        });
        Self {
            image,
            reflected,
            grids: (0..scales).map(|scale| Grid::new(sides.map(|side| side >> scale))).collect(),
            averages: averages.collect(),
            wavelets: wavelets(&Grid::new(sides), scales, angles),
            second_order: order > 1,
            output: [channels * coefficients(scales, angles, order), rows >> scales, columns >> scales],
        }
    }

    /// Rows and columns of the grid at the resolution of a scale.
    pub(crate) fn sides(&self, scale: usize) -> [usize; 2] {
        [self.grids[scale].rows, self.grids[scale].columns]
    }

    /// The spectra of all wavelets of a scale, at the resolution of a faster one, row by row.
    pub(crate) fn rows_of_wavelets(&self, scale: usize, faster: usize) -> Vec<f32> {
        let [rows, columns] = self.sides(faster);
        let places = (0..rows).flat_map(|row| (0..columns).map(move |column| column * rows + row));
        let of_angle = |wavelet: &Vec<Vec<f32>>| places.clone().map(|place| wavelet[faster][place]).collect();
        self.wavelets[scale].iter().flat_map(|wavelet| -> Vec<f32> { of_angle(wavelet) }).collect()
    }

    /// Number of output positions.
    fn places(&self) -> usize {
        self.output[1] * self.output[2]
    }

    /// Computes the modulus of a wavelet convolution from a spectrum, at the wavelet's resolution.
    fn wavelet_modulus(
        &self,
        spectrum: &[Complex<f32>],
        [from, to]: [usize; 2],
        wavelet: &[f32],
        buffers: &mut Buffers,
    ) {
        let (source, target) = (&self.grids[from], &self.grids[to]);
        let Buffers { folded, picture, modulus, scratch, .. } = buffers;
        let (folded, picture) = (&mut folded[..target.size()], &mut picture[..target.size()]);
        // Subsampling a picture folds its spectrum.
        folded.fill(Complex::default());
        for (column, (numbers, weights)) in
            spectrum.chunks_exact(source.rows).zip(wavelet.chunks_exact(source.rows)).enumerate()
        {
            let folded = &mut folded[column % target.columns * target.rows..][..target.rows];
            for (numbers, weights) in numbers.chunks_exact(target.rows).zip(weights.chunks_exact(target.rows))
            {
                folded
                    .iter_mut()
                    .zip(numbers)
                    .zip(weights)
                    .for_each(|((sum, number), weight)| *sum += number * weight);
            }
        }
        target.inverse(folded, picture, scratch);
        for (to, from) in modulus.iter_mut().zip(&*picture) {
            *to = (from.re * from.re + from.im * from.im).sqrt();
        }
    }

    /// Computes the local means of `buffers.modulus`.
    fn average(&self, scale: usize, buffers: &mut Buffers, into: &mut [f32]) {
        let (grid, [down, across], [_, rows, columns]) =
            (&self.grids[scale], &self.averages[scale], self.output);
        let narrow = &mut buffers.narrow[..grid.columns];
        for (into, weights) in into.chunks_exact_mut(columns).zip(down.chunks_exact(grid.rows)).take(rows) {
            narrow.fill(0.0);
            for (row, weight) in buffers.modulus.chunks_exact(grid.columns).zip(weights) {
                narrow.iter_mut().zip(row).for_each(|(sum, number)| *sum += weight * number);
            }
            into.fill(0.0);
            for (number, weights) in narrow.iter().zip(across.chunks_exact(columns)) {
                into.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += weight * number);
            }
        }
    }

    /// Computes all coefficients of one channel.
    fn scatter(&self, channel: &[f32], into: &mut [f32], buffers: &mut Buffers) {
        let (places, scales) = (self.places(), self.wavelets.len());
        let width = self.image[1];
        let from = self.reflected[0]
            .iter()
            .flat_map(|row| self.reflected[1].iter().map(move |column| row * width + column));
        buffers.modulus.iter_mut().zip(from).for_each(|(to, from)| *to = channel[from]);
        let (mean, rest) = into.split_at_mut(places);
        self.average(0, buffers, mean);
        let angles = self.wavelets[0].len();
        let (first, second) = rest.split_at_mut(scales * angles * places);
        let mut second = second.chunks_exact_mut(places);
        let [mut picture_spectrum, mut modulus_spectrum] = std::mem::take(&mut buffers.spectra);
        self.transform(0, &mut picture_spectrum, buffers);
        let wavelets = self
            .wavelets
            .iter()
            .enumerate()
            .flat_map(|(scale, all)| all.iter().map(move |wavelet| (scale, wavelet)));
        for ((scale, wavelet), into) in wavelets.zip(first.chunks_exact_mut(places)) {
            self.wavelet_modulus(&picture_spectrum, [0, scale], &wavelet[0], buffers);
            self.average(scale, buffers, into);
            if !self.second_order || scale + 1 == scales {
                continue;
            }
            let modulus_spectrum = &mut modulus_spectrum[..self.grids[scale].size()];
            self.transform(scale, modulus_spectrum, buffers);
            let slower = self.wavelets.iter().enumerate().skip(scale + 1);
            for (slower, wavelet) in
                slower.flat_map(|(slower, all)| all.iter().map(move |wavelet| (slower, wavelet)))
            {
                self.wavelet_modulus(modulus_spectrum, [scale, slower], &wavelet[scale], buffers);
                if let Some(into) = second.next() {
                    self.average(slower, buffers, into);
                }
            }
        }
        buffers.spectra = [picture_spectrum, modulus_spectrum];
    }

    /// Computes the spectrum of `buffers.modulus`.
    fn transform(&self, scale: usize, spectrum: &mut [Complex<f32>], buffers: &mut Buffers) {
        let grid = &self.grids[scale];
        let picture = &mut buffers.picture[..grid.size()];
        picture.iter_mut().zip(&buffers.modulus).for_each(|(to, from)| *to = Complex::new(*from, 0.0));
        grid.forward(picture, spectrum, &mut buffers.scratch);
    }
}

/// Computes the spectra of all wavelets, divided by the size of the grid.
///
/// The inverse transform does not divide by that size.
fn wavelets(grid: &Grid<f64>, scales: usize, angles: usize) -> Vec<Vec<Vec<Vec<f32>>>> {
    let first = (angles as isize - 2) / 2;
    let wavelet = |scale: usize, angle: usize| {
        let size = f64::from(1 << scale);
        let turn = std::f64::consts::PI / angles as f64;
        let morlet = Morlet {
            angle: (first - angle as isize) as f64 * turn,
            width: 0.8 * size,
            frequency: 0.75 * std::f64::consts::PI / size,
            slant: 4.0 / angles as f64,
        };
        let spectrum = morlet.spectrum(grid);
        let at = |step: usize| {
            let area = (grid.size() / (step * step)) as f64;
            cropped(&spectrum, grid, step).into_iter().map(move |number| (number / area) as f32).collect()
        };
        // At full resolution for the picture, then at the resolution of each smaller scale's energies.
        (0..scale.max(1)).map(|faster| at(1 << faster)).collect()
    };
    (0..scales).map(|scale| (0..angles).map(|angle| wavelet(scale, angle)).collect()).collect()
}

/// Buffers for the transform of one channel.
pub(super) struct Buffers {
    /// The picture that is transformed or averaged next.
    modulus: Vec<f32>,
    spectra: [Vec<Complex<f32>>; 2],
    folded: Vec<Complex<f32>>,
    picture: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
    narrow: Vec<f32>,
}

impl Transform for Scattering {
    type Buffers = Buffers;

    fn output(&self) -> &[usize] {
        &self.output
    }

    fn buffers(&self) -> Buffers {
        let size = self.grids[0].size();
        let numbers = |count: usize| vec![Complex::default(); count];
        Buffers {
            modulus: vec![0.0; size],
            spectra: [numbers(size), numbers(size)],
            folded: numbers(size),
            picture: numbers(size),
            scratch: numbers(self.grids.iter().map(Grid::scratch).max().unwrap_or(0)),
            narrow: vec![0.0; self.grids[0].columns],
        }
    }

    fn apply(&self, record: &[f32], into: &mut [f32], buffers: &mut Buffers) {
        let pixels = self.image[0] * self.image[1];
        let channels = record.len() / pixels;
        for (channel, into) in record
            .chunks_exact(pixels)
            .zip(into.chunks_exact_mut(self.output.iter().product::<usize>() / channels))
        {
            self.scatter(channel, into, buffers);
        }
    }
}
