//! Deferred gradients of linear layers: outer products, added for many records at once.

use std::ops::Range;

use rayon::prelude::*;

use super::{Network, Placed};
use crate::{
    kernel::{
        balance::Balance,
        outer::{Panels, Products, Segment},
    },
    layer::Pass,
};

/// The inputs and the scaled output gradients of each linear layer, for some records.
#[derive(Default)]
pub(super) struct Deferred {
    layers: Vec<Factors>,
    segments: Vec<Segment>,
}

/// The factors of one layer's outer products; empty if the layer is not linear.
#[derive(Default)]
struct Factors {
    inputs: Vec<f32>,
    gradients: Vec<f32>,
    /// For each record, a constant input of one after rescaling.
    ones: Vec<f32>,
}

fn panels(placed: &Placed) -> (Panels, Panels) {
    (Panels::right(placed.layer.inputs()), Panels::left(placed.layer.outputs()))
}

/// The most numbers that are buffered (32 MB), unless [`RECORDS`] records need more.
const NUMBERS: usize = 1 << 23;
/// The least number of records that are buffered together.
const RECORDS: usize = 1 << 10;

impl Deferred {
    /// Number of records that are buffered at a time.
    pub(super) fn capacity(network: &Network) -> usize {
        let linear = network.layers.iter().filter(|placed| placed.layer.is_outer_product()).map(panels);
        let numbers: usize = linear.map(|(right, left)| right.padded() + left.padded()).sum();
        NUMBERS.checked_div(numbers).map_or(usize::MAX, |records| records.max(RECORDS))
    }

    /// Prepares buffers for the records of some blocks, and divides them among threads.
    ///
    /// `ends` are the ends of the blocks. `shares` holds the units that each thread works on.
    pub(super) fn split(
        &mut self,
        network: &Network,
        ends: &[usize],
        shares: &[Vec<Range<usize>>],
    ) -> Vec<Share<'_>> {
        self.segments.clear();
        for unit in shares.iter().flatten().filter(|unit| !unit.is_empty()) {
            let mut from = unit.start;
            let within =
                ends.partition_point(|end| *end <= from)..ends.partition_point(|end| *end < unit.end);
            for to in ends[within].iter().copied().chain([unit.end]) {
                if to > from {
                    self.segments.push(Segment { rows: from..to, last: ends.binary_search(&to).is_ok() });
                    from = to;
                }
            }
        }
        self.layers.resize_with(network.layers.len(), Default::default);
        let mut split: Vec<Share<'_>> =
            shares.iter().map(|_| Share { layers: Vec::new(), segments: &self.segments }).collect();
        let counts: Vec<usize> =
            shares.iter().map(|units| units.iter().map(ExactSizeIterator::len).sum()).collect();
        for (placed, factors) in network.layers.iter().zip(&mut self.layers) {
            let (right, left) = panels(placed);
            let (width, height) =
                if placed.layer.is_outer_product() { (right.padded(), left.padded()) } else { (0, 0) };
            let records: usize = counts.iter().sum();
            factors.inputs.resize(records * width, 0.0);
            factors.gradients.resize(records * height, 0.0);
            factors.ones.resize(records, 1.0);
            let (mut inputs, mut gradients) =
                (factors.inputs.as_mut_slice(), factors.gradients.as_mut_slice());
            let mut ones = factors.ones.as_mut_slice();
            for (records, share) in counts.iter().zip(&mut split) {
                share.layers.push(Slices {
                    inputs: inputs.split_off_mut(..records * width).unwrap_or_default(),
                    gradients: gradients.split_off_mut(..records * height).unwrap_or_default(),
                    ones: ones.split_off_mut(..*records).unwrap_or_default(),
                });
            }
        }
        split
    }

    /// Adds the gradients of all linear layers to `sum`.
    pub(super) fn add(&self, network: &Network, sum: &mut [f64]) {
        let (mut jobs, mut rest, mut before) = (Vec::new(), sum, 0);
        for (placed, factors) in network.layers.iter().zip(&self.layers) {
            let own = rest.split_off_mut(..placed.weights.end - before).unwrap_or_default();
            before = placed.weights.end;
            if !placed.layer.is_outer_product() {
                continue;
            }
            let (width, height) = (placed.layer.inputs(), placed.layer.outputs());
            let (right, left) = panels(placed);
            let (matrix, bias) = own.split_at_mut(width * height);
            let rows = Products::rows(height, rayon::current_num_threads());
            for (tile, (matrix, bias)) in
                matrix.chunks_mut(rows * width).zip(bias.chunks_mut(rows)).enumerate()
            {
                let (left, right) =
                    ((left, factors.gradients.as_slice()), (right, factors.inputs.as_slice()));
                let ones = &factors.ones;
                jobs.push(Products {
                    segments: &self.segments,
                    left,
                    right,
                    ones,
                    first: tile * rows,
                    matrix,
                    bias,
                });
            }
        }
        jobs.into_par_iter().with_max_len(1).for_each(Products::add);
    }
}

/// A thread's part of the buffers of one layer.
struct Slices<'a> {
    inputs: &'a mut [f32],
    gradients: &'a mut [f32],
    ones: &'a mut [f32],
}

/// A thread's part of the buffers.
pub(super) struct Share<'a> {
    layers: Vec<Slices<'a>>,
    segments: &'a [Segment],
}

impl Share<'_> {
    /// Writes a layer's inputs and scaled output gradients for the records of a unit.
    ///
    /// A record with scale zero contributes zeros, even where its numbers are not finite.
    pub(super) fn write(
        &mut self,
        number: usize,
        placed: &Placed,
        unit: &Range<usize>,
        pass: Pass<'_>,
        scales: &[f32],
    ) {
        let (right, left) = panels(placed);
        let (width, height) = (placed.layer.inputs(), placed.layer.outputs());
        let slices = &mut self.layers[number];
        let first = self.segments.partition_point(|segment| segment.rows.start < unit.start);
        let places = self.segments[first..].iter().take_while(|segment| segment.rows.end <= unit.end);
        let balanced: Vec<Balance> = scales
            .iter()
            .zip(pass.input.chunks_exact(width))
            .map(|(scale, x)| Balance::new(*scale, x))
            .collect();
        let [input_factors, gradient_factors] = [Balance::input, Balance::gradient]
            .map(|factor: fn(Balance) -> _| balanced.iter().copied().map(factor).collect::<Vec<_>>());
        for Segment { rows, .. } in places {
            let inputs = slices.inputs.split_off_mut(..rows.len() * right.padded()).unwrap_or_default();
            let gradients = slices.gradients.split_off_mut(..rows.len() * left.padded()).unwrap_or_default();
            let ones = slices.ones.split_off_mut(..rows.len()).unwrap_or_default();
            let range = |width: usize| (rows.start - unit.start) * width..(rows.end - unit.start) * width;
            right.write(inputs, &input_factors[range(1)], &pass.input[range(width)]);
            left.write(gradients, &gradient_factors[range(1)], &pass.output_gradient[range(height)]);
            ones.iter_mut().zip(&balanced[range(1)]).for_each(|(one, balance)| *one = balance.one());
        }
    }
}
