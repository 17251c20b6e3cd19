//! The scattering transform as ONNX operators.
//!
//! The Fourier transforms of the small periodic pictures are products with matrices of cosines and sines. A
//! complex product is a product of real matrices that have the real and the imaginary part one below the other,
//! or side by side.

use std::f64::consts::TAU;

use super::{
    graph::{Graph, Tensor},
    message::Attribute,
};
use crate::features::{SMALLEST_VARIANCE, Scattering};

/// A matrix of constants, row by row.
struct Matrix {
    rows: usize,
    columns: usize,
    numbers: Vec<f32>,
}

impl Matrix {
    fn new(rows: usize, columns: usize, at: impl Fn(usize, usize) -> f64) -> Self {
        let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let numbers = places.map(|(row, column)| at(row, column) as f32).collect();
        Self { rows, columns, numbers }
    }

    /// This matrix times each matrix in the last two axes.
    fn times(&self, graph: &mut Graph, right: &Tensor) -> Tensor {
        let mut shape = right.shape.clone();
        let last = shape.len() - 2;
        shape[last] = self.rows;
        let own = graph.floats(&[self.rows, self.columns], &self.numbers);
        graph.node("MatMul", &[&own, &right.name], &[], &shape)
    }

    /// Each matrix in the last two axes times this matrix.
    fn after(&self, graph: &mut Graph, left: &Tensor) -> Tensor {
        let mut shape = left.shape.clone();
        let last = shape.len() - 1;
        shape[last] = self.columns;
        let own = graph.floats(&[self.rows, self.columns], &self.numbers);
        graph.node("MatMul", &[&left.name, &own], &[], &shape)
    }
}

/// A complex picture: its real and its imaginary part.
struct Complex {
    real: Tensor,
    imaginary: Tensor,
}

/// cos and sin of 2π·a·b/side.
fn wave(is_sine: bool, a: usize, b: usize, side: usize) -> f64 {
    // Whole turns are taken off before rounding.
    let angle = TAU * ((a * b) % side) as f64 / side as f64;
    if is_sine { angle.sin() } else { angle.cos() }
}

/// Half of an axis, counted from the end.
fn half(graph: &mut Graph, input: &Tensor, from_end: usize, is_second: bool) -> Tensor {
    let axis = input.shape.len() - from_end;
    let length = input.shape[axis] / 2;
    let start = if is_second { length } else { 0 };
    // The batch comes before all axes.
    let [starts, ends, axes] =
        [start, start + length, axis + 1].map(|number| graph.integers(&[1], &[number as i64]));
    let mut shape = input.shape.clone();
    shape[axis] = length;
    graph.node("Slice", &[&input.name, &starts, &ends, &axes], &[], &shape)
}

/// The product of a complex matrix, whose parts are one below the other, and one whose parts are side by side.
///
/// `both` has all four products of parts.
fn complex(graph: &mut Graph, both: &Tensor) -> Complex {
    let [above, below] = [false, true].map(|is_second| half(graph, both, 2, is_second));
    let [real, cross] = [false, true].map(|is_second| half(graph, &above, 1, is_second));
    let [other_cross, square] = [false, true].map(|is_second| half(graph, &below, 1, is_second));
    Complex {
        real: graph.apply("Sub", &real, &[&square.name]),
        imaginary: graph.apply("Add", &cross, &[&other_cross.name]),
    }
}

/// The spectrum of real pictures. `places` says which row and column of a picture is at each point of the grid.
fn spectrum(graph: &mut Graph, input: &Tensor, places: [&[usize]; 2]) -> Complex {
    let [rows, columns] = places.map(<[usize]>::len);
    let length = |from_end: usize| input.shape[input.shape.len() - from_end];
    // exp(-2πi·k·n/N), summed over all points n of the grid that show the same row or column.
    let sum = |places: &[usize], frequency: usize, shown: usize, is_imaginary: bool| -> f64 {
        let points = places.iter().enumerate().filter(|(_, place)| **place == shown);
        let waves = points.map(|(point, _)| wave(is_imaginary, frequency, point, places.len()));
        waves.sum::<f64>() * if is_imaginary { -1.0 } else { 1.0 }
    };
    let down = Matrix::new(2 * rows, length(2), |row, shown| sum(places[0], row % rows, shown, row >= rows));
    let across = Matrix::new(length(1), 2 * columns, |shown, column| {
        sum(places[1], column % columns, shown, column >= columns)
    });
    let half_way = down.times(graph, input);
    let both = across.after(graph, &half_way);
    complex(graph, &both)
}

/// |x ∗ ψ| of a spectrum at every `step`-th row and column, for each wavelet ψ.
fn energies(graph: &mut Graph, spectrum: &Complex, wavelets: &[f32], step: usize) -> Tensor {
    let shape = &spectrum.real.shape;
    let (before, sides) = shape.split_at(shape.len() - 2);
    let (rows, columns) = (sides[0], sides[1]);
    let count = wavelets.len() / (rows * columns);
    let wavelets = graph.floats(&[count, rows, columns], wavelets);
    let one = [before, &[1, rows, columns]].concat();
    let all = [before, &[count, rows, columns]].concat();
    let parts = [&spectrum.real, &spectrum.imaginary].map(|part| {
        let part = graph.reshape(part, &one);
        graph.node("Mul", &[&part.name, &wavelets], &[], &all)
    });
    // The inverse transform at some points has the rows of those points.
    let stacked = [before, &[count, 2 * rows, columns]].concat();
    let axis = [("axis", Attribute::Integer(all.len() as i64 - 1))];
    let stacked = graph.node("Concat", &[&parts[0].name, &parts[1].name], &axis, &stacked);
    let (kept_rows, kept_columns) = (rows / step, columns / step);
    let down = Matrix::new(2 * kept_rows, 2 * rows, |to, from| {
        let (is_imaginary, was_imaginary) = (to >= kept_rows, from >= rows);
        let number = wave(is_imaginary != was_imaginary, to % kept_rows * step, from % rows, rows);
        if was_imaginary && !is_imaginary { -number } else { number }
    });
    let across = Matrix::new(columns, 2 * kept_columns, |from, to| {
        wave(to >= kept_columns, to % kept_columns * step, from, columns)
    });
    let half_way = down.times(graph, &stacked);
    let both = across.after(graph, &half_way);
    let Complex { real, imaginary } = complex(graph, &both);
    let squares = [&real, &imaginary].map(|part| graph.apply("Mul", part, &[&part.name]));
    let sum = graph.apply("Add", &squares[0], &[&squares[1].name]);
    graph.apply("Sqrt", &sum, &[])
}

/// The local means of pictures at the resolution of a scale.
fn average(graph: &mut Graph, transform: &Scattering, scale: usize, input: &Tensor) -> Tensor {
    let ([rows, columns], [_, down_to, across_to]) = (transform.sides(scale), transform.output);
    let [down, across] = &transform.averages[scale];
    let down = Matrix::new(down_to, rows, |to, from| f64::from(down[to * rows + from]));
    let across = Matrix::new(columns, across_to, |from, to| f64::from(across[from * across_to + to]));
    let half_way = down.times(graph, input);
    across.after(graph, &half_way)
}

/// Adds the transform of pictures with channels, rows and columns.
pub(super) fn add(graph: &mut Graph, transform: &Scattering, groups: usize, input: &Tensor) -> Tensor {
    let [_, rows, columns] = transform.output;
    let channels = input.shape[0];
    let scales = transform.wavelets.len();
    let reflected = transform.reflected.each_ref().map(Vec::as_slice);
    // φ of the reflected picture.
    let shown = [1, 2].map(|axis| {
        let places = reflected[axis - 1];
        let picture = input.shape[axis];
        Matrix::new(places.len(), picture, |point, place| f64::from(u8::from(places[point] == place)))
    });
    let padded = shown[0].times(graph, input);
    let transposed = Matrix::new(shown[1].columns, shown[1].rows, |place, point| {
        f64::from(shown[1].numbers[point * shown[1].columns + place])
    });
    let padded = transposed.after(graph, &padded);
    let list = |graph: &mut Graph, tensor: &Tensor| {
        let count = tensor.size() / (channels * rows * columns);
        graph.reshape(tensor, &[channels, count, rows, columns])
    };
    let mean = average(graph, transform, 0, &padded);
    let mut parts = vec![list(graph, &mean)];
    let mut second = Vec::new();
    let picture = spectrum(graph, input, reflected);
    for scale in 0..scales {
        let first = energies(graph, &picture, &transform.rows_of_wavelets(scale, 0), 1 << scale);
        let means = average(graph, transform, scale, &first);
        parts.push(list(graph, &means));
        if !transform.second_order || scale + 1 == scales {
            continue;
        }
        let points = transform.sides(scale).map(|side| (0..side).collect::<Vec<usize>>());
        let spectrum = spectrum(graph, &first, points.each_ref().map(Vec::as_slice));
        let slower: Vec<Tensor> = (scale + 1..scales)
            .map(|slower| {
                let wavelets = transform.rows_of_wavelets(slower, scale);
                let energies = energies(graph, &spectrum, &wavelets, 1 << (slower - scale));
                average(graph, transform, slower, &energies)
            })
            .collect();
        let together = join(graph, &slower, 2);
        second.push(list(graph, &together));
    }
    parts.extend(second);
    let all = join(graph, &parts, 1);
    let all = graph.reshape(&all, &transform.output);
    normalize(graph, &all, groups)
}

/// Joins tensors along an axis, counted without the batch.
fn join(graph: &mut Graph, parts: &[Tensor], axis: usize) -> Tensor {
    let mut shape = parts[0].shape.clone();
    shape[axis] = parts.iter().map(|part| part.shape[axis]).sum();
    let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    graph.node("Concat", &names, &[("axis", Attribute::Integer(axis as i64 + 1))], &shape)
}

/// Gives each group of channels mean zero and variance one.
fn normalize(graph: &mut Graph, input: &Tensor, groups: usize) -> Tensor {
    if groups == 0 {
        return input.clone();
    }
    let grouped = graph.reshape(input, &[groups, input.size() / groups]);
    let mean = graph.mean(&grouped, &[1]);
    let centred = graph.apply("Sub", &grouped, &[&mean.name]);
    let squares = graph.apply("Mul", &centred, &[&centred.name]);
    let variance = graph.mean(&squares, &[1]);
    let least = graph.float(SMALLEST_VARIANCE as f32);
    let sum = graph.apply("Add", &variance, &[&least]);
    let deviation = graph.apply("Sqrt", &sum, &[]);
    let result = graph.apply("Div", &centred, &[&deviation.name]);
    graph.reshape(&result, &input.shape)
}
