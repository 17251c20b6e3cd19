//! The clipped gradients of a batch, added up.

use std::ops::Range;

use rayon::prelude::*;

use super::{Network, Task, tape::Tape};
use crate::kernel::{
    numbers::{add, add_totals, add_wide, scaled_into, squared_length},
    product::{Into, Matrix, multiply},
};

/// The scale of every part of a record's gradient, for its squared lengths; [`quell_privacy::mechanism::Clip`] behind it.
pub type Scales<'a> = &'a (dyn Fn(&[f64], &mut [f32]) + Sync);

/// Memory that is used again from batch to batch.
#[derive(Default)]
pub struct Workspace {
    threads: Vec<Thread>,
    /// For each linear layer, what went in and the scaled gradients of what came out, for the whole batch.
    deferred: Vec<(Vec<f32>, Vec<f32>)>,
}

/// What one thread works with.
struct Thread {
    tape: Tape,
    /// The sum of a chunk, of one layer at a time.
    partial: Vec<f32>,
    /// The sum so far, in double precision.
    total: Vec<f64>,
}

/// Numbers of a tile of a weight matrix that is summed over all blocks before the next: it stays in the cache.
const TILE: usize = 1 << 15;

/// How the gradient is cut into parts that are clipped apart, for each layer.
struct Parts {
    count: usize,
    of_layer: Vec<usize>,
}

impl Parts {
    fn new(network: &Network, lengths: &[usize]) -> Self {
        let ends: Vec<usize> = lengths
            .iter()
            .scan(0, |end, length| {
                *end += length;
                Some(*end)
            })
            .collect();
        let part = |weights: &Range<usize>| ends.partition_point(|end| *end < weights.end).min(ends.len().saturating_sub(1));
        Self { count: lengths.len().max(1), of_layer: network.layers.iter().map(|placed| part(&placed.weights)).collect() }
    }

    /// Whether every layer lies in one part. The length of a part that ends within a layer is not known.
    fn hold_whole_layers(network: &Network, lengths: &[usize]) -> bool {
        let mut end = 0;
        lengths.iter().all(|length| {
            end += length;
            !network.layers.iter().any(|placed| placed.weights.start < end && end < placed.weights.end)
        })
    }
}

impl Network {
    /// `sum += Σ scale · gradient` over all records of all blocks, with the scales that are asked for from `scales`, or one.
    ///
    /// Numbers are added in single precision within a block only, and block by block in double precision. `parts` are the lengths of what is clipped apart: whole layers each, or nothing is added.
    #[allow(
        clippy::too_many_arguments,
        reason = "weights, task and batch, how to clip, and where to put the sum: a struct would rename them"
    )]
    pub fn add_gradients(
        &self,
        weights: &[f32],
        task: &impl Task,
        blocks: &[&[usize]],
        parts: &[usize],
        scales: Option<Scales<'_>>,
        sum: &mut [f64],
        workspace: &mut Workspace,
    ) {
        if !Parts::hold_whole_layers(self, parts) {
            // No length, no scale: nothing is added.
            return;
        }
        let parts = Parts::new(self, parts);
        if blocks.iter().copied().flatten().any(|record| task.examples(*record) != 1) {
            return self.add_groups(weights, task, blocks, &parts, scales, sum, workspace);
        }
        let records: Vec<(usize, usize)> = blocks.iter().copied().flatten().map(|record| (*record, 0)).collect();
        let ends = ends(blocks);
        let everything_deferred = self.layers.iter().all(|placed| placed.weights.is_empty() || placed.layer.is_outer_product());
        let shares = if everything_deferred { self.even_shares(records.len()) } else { self.shares_within_blocks(&ends) };
        workspace.prepare(self, shares.len(), true);
        self.defer(records.len(), workspace);

        let mut slices = Deferred::split(self, &mut workspace.deferred, &shares);
        let jobs: Vec<_> = shares.iter().zip(workspace.threads.iter_mut()).zip(slices.drain(..)).collect();
        jobs.into_par_iter().for_each(|((units, thread), mut deferred)| {
            for unit in units {
                let records = &records[unit.clone()];
                thread.tape.learn(self, weights, task, records, 1.0);
                thread.add_unit(self, &parts, scales, records.len(), &mut deferred);
            }
        });
        self.collect(&workspace.threads[..shares.len()], sum);
        self.add_products(&ends, &workspace.deferred, sum);
    }

    /// Equal numbers of records for every thread, in units of at most a chunk.
    fn even_shares(&self, records: usize) -> Vec<Vec<Range<usize>>> {
        let threads = rayon::current_num_threads().clamp(1, records.div_ceil(8).max(1));
        let cut = |from: usize, to: usize, pieces: usize| {
            (0..pieces).map(move |i| from + (to - from) * i / pieces..from + (to - from) * (i + 1) / pieces)
        };
        cut(0, records, threads)
            .map(|share| cut(share.start, share.end, share.len().div_ceil(self.chunk).max(1)).collect())
            .collect()
    }

    /// Units of at most a chunk that are cut by their place in a block alone, and dealt to the threads in order.
    fn shares_within_blocks(&self, ends: &[usize]) -> Vec<Vec<Range<usize>>> {
        let mut units = Vec::new();
        let mut from = 0;
        for &to in ends {
            let pieces = (to - from).div_ceil(self.chunk).max(1);
            units.extend((0..pieces).map(|i| from + (to - from) * i / pieces..from + (to - from) * (i + 1) / pieces));
            from = to;
        }
        let threads = rayon::current_num_threads().clamp(1, units.len().max(1));
        let mut shares = vec![Vec::new(); threads];
        for unit in units.into_iter().filter(|unit| !unit.is_empty()) {
            // Where the middle of the unit lies.
            let share = (unit.start + unit.end) * threads / (2 * from.max(1));
            shares[share.min(threads - 1)].push(unit);
        }
        shares
    }

    /// Room for what goes into the linear layers and the gradients of what comes out.
    fn defer(&self, records: usize, workspace: &mut Workspace) {
        workspace.deferred.resize_with(self.layers.len(), Default::default);
        for (placed, (inputs, gradients)) in self.layers.iter().zip(&mut workspace.deferred) {
            if placed.layer.is_outer_product() {
                inputs.resize(records * placed.layer.inputs(), 0.0);
                gradients.resize(records * placed.layer.outputs(), 0.0);
            }
        }
    }

    /// Adds up what the threads have.
    fn collect(&self, threads: &[Thread], sum: &mut [f64]) {
        for placed in self.layers.iter().filter(|placed| !placed.layer.is_outer_product()) {
            let range = placed.weights.clone();
            for thread in threads {
                add_totals(&mut sum[range.clone()], &thread.total[range.clone()]);
            }
        }
    }

    /// The gradients of linear layers: for each block a product, tile by tile, so that a tile stays in the cache for all blocks.
    fn add_products(&self, ends: &[usize], deferred: &[(Vec<f32>, Vec<f32>)], sum: &mut [f64]) {
        for (placed, (inputs, gradients)) in
            self.layers.iter().zip(deferred).filter(|(placed, _)| placed.layer.is_outer_product())
        {
            let (width, height) = (placed.layer.inputs(), placed.layer.outputs());
            let (matrix, bias) = sum[placed.weights.clone()].split_at_mut(width * height);
            let rows = (TILE / width).clamp(1, height.div_ceil(rayon::current_num_threads()));
            matrix.par_chunks_mut(rows * width).enumerate().for_each(|(tile, total)| {
                let (first, rows) = (tile * rows, total.len() / width);
                crate::kernel::scratch(total.len(), |product| {
                    each_block(ends, |from, to| {
                        let left = Matrix::strided(&gradients[from * height + first..to * height], to - from, rows, height);
                        let right = Matrix::new(&inputs[from * width..to * width], width);
                        multiply(left.transposed(), right, product, width, Into::Overwrite);
                        add_wide(total, product);
                    });
                });
            });
            let mut block = vec![0.0; height];
            each_block(ends, |from, to| {
                block.fill(0.0);
                gradients[from * height..to * height].chunks_exact(height).for_each(|gradient| add(&mut block, gradient));
                add_wide(bias, &block);
            });
        }
    }

    /// The same for records of several examples, whose mean gradient is made, measured, scaled and added, one record after the other.
    #[allow(clippy::too_many_arguments, reason = "the same as above")]
    fn add_groups(
        &self,
        weights: &[f32],
        task: &impl Task,
        blocks: &[&[usize]],
        parts: &Parts,
        scales: Option<Scales<'_>>,
        sum: &mut [f64],
        workspace: &mut Workspace,
    ) {
        let records: Vec<usize> = blocks.concat();
        let threads = rayon::current_num_threads().clamp(1, records.len().max(1));
        workspace.prepare(self, threads, false);
        let jobs: Vec<_> = records.chunks(records.len().div_ceil(threads).max(1)).zip(&mut workspace.threads).collect();
        let used = jobs.len();
        jobs.into_par_iter().for_each(|(records, thread)| {
            for &record in records {
                thread.add_group(self, weights, task, record, parts, scales);
            }
        });
        for thread in &workspace.threads[..used] {
            add_totals(sum, &thread.total);
        }
    }
}

/// Where each block ends.
fn ends(blocks: &[&[usize]]) -> Vec<usize> {
    blocks
        .iter()
        .scan(0, |end, block| {
            *end += block.len();
            Some(*end)
        })
        .collect()
}

fn each_block(ends: &[usize], mut each: impl FnMut(usize, usize)) {
    let mut from = 0;
    for &to in ends {
        if to > from {
            each(from, to);
        }
        from = to;
    }
}

impl Workspace {
    /// Clean sums for so many threads: of everything, or of what is not deferred.
    fn prepare(&mut self, network: &Network, threads: usize, deferring: bool) {
        if self.threads.iter().any(|thread| thread.total.len() != network.parameters) {
            self.threads.clear();
        }
        self.threads.resize_with(threads, || Thread {
            tape: Tape::new(network, network.chunk),
            partial: vec![0.0; network.parameters],
            total: vec![0.0; network.parameters],
        });
        for placed in network.layers.iter().filter(|placed| !(deferring && placed.layer.is_outer_product())) {
            self.threads.iter_mut().for_each(|thread| thread.total[placed.weights.clone()].fill(0.0));
        }
    }
}

/// A thread's rows of what is deferred, for each layer.
struct Deferred<'a>(Vec<(&'a mut [f32], &'a mut [f32])>);

impl<'a> Deferred<'a> {
    /// For each share of the records its rows.
    fn split(network: &Network, deferred: &'a mut [(Vec<f32>, Vec<f32>)], shares: &[Vec<Range<usize>>]) -> Vec<Self> {
        let mut split: Vec<Self> = shares.iter().map(|_| Self(Vec::new())).collect();
        for (placed, (inputs, gradients)) in network.layers.iter().zip(deferred) {
            let (mut inputs, mut gradients) = (inputs.as_mut_slice(), gradients.as_mut_slice());
            for (share, own) in shares.iter().zip(&mut split) {
                let records: usize = share.iter().map(ExactSizeIterator::len).sum();
                let records = if placed.layer.is_outer_product() { records } else { 0 };
                let (mine, rest) = std::mem::take(&mut inputs).split_at_mut(records * placed.layer.inputs());
                let (my_gradients, others) = std::mem::take(&mut gradients).split_at_mut(records * placed.layer.outputs());
                (inputs, gradients) = (rest, others);
                own.0.push((mine, my_gradients));
            }
        }
        split
    }

    /// Writes a layer's rows: zeros for a record that adds nothing, whatever it holds.
    fn take(
        &mut self,
        number: usize,
        width: usize,
        height: usize,
        input: &[f32],
        gradient: &[f32],
        scales: impl Iterator<Item = f32>,
    ) {
        let records = input.len() / width;
        let (inputs, gradients) = &mut self.0[number];
        let (to, rest) = std::mem::take(inputs).split_at_mut(records * width);
        let (gradient_to, gradient_rest) = std::mem::take(gradients).split_at_mut(records * height);
        (*inputs, *gradients) = (rest, gradient_rest);
        to.copy_from_slice(input);
        for (position, scale) in scales.enumerate().take(records) {
            let row = position * height..(position + 1) * height;
            scaled_into(&mut gradient_to[row.clone()], scale, &gradient[row]);
            if scale == 0.0 {
                // Zero times what is not finite is not zero.
                to[position * width..(position + 1) * width].fill(0.0);
            }
        }
    }
}

impl Thread {
    /// Measures, scales and adds the examples on the tape.
    fn add_unit(
        &mut self,
        network: &Network,
        parts: &Parts,
        ask: Option<Scales<'_>>,
        examples: usize,
        deferred: &mut Deferred<'_>,
    ) {
        // Rows of parts, one for each example.
        let mut factors = vec![1.0_f32; examples * parts.count];
        if let Some(ask) = ask {
            let mut squared = vec![0.0_f64; examples * parts.count];
            let mut column = vec![0.0_f64; examples];
            for (number, placed) in network.layers.iter().enumerate().filter(|(_, placed)| !placed.weights.is_empty()) {
                let (pass, kept) = self.tape.pass(network, number, examples);
                column.fill(0.0);
                placed.layer.squared_norms(pass, kept, &mut column);
                let part = parts.of_layer[number];
                squared.chunks_exact_mut(parts.count).zip(&column).for_each(|(row, square)| row[part] += square);
            }
            for (squared, factors) in squared.chunks_exact(parts.count).zip(factors.chunks_exact_mut(parts.count)) {
                ask(squared, factors);
            }
        }
        for (number, placed) in network.layers.iter().enumerate().filter(|(_, placed)| !placed.weights.is_empty()) {
            let (pass, kept) = self.tape.pass(network, number, examples);
            let own = factors.chunks_exact(parts.count).map(|factors| factors[parts.of_layer[number]]);
            if placed.layer.is_outer_product() {
                deferred.take(number, placed.layer.inputs(), placed.layer.outputs(), pass.input, pass.output_gradient, own);
                continue;
            }
            let range = placed.weights.clone();
            let partial = &mut self.partial[range.clone()];
            partial.fill(0.0);
            if ask.is_some() {
                placed.layer.add_scaled(pass, kept, &own.collect::<Vec<_>>(), partial);
            } else {
                placed.layer.add(pass, kept, partial);
            }
            add_wide(&mut self.total[range], partial);
        }
    }

    /// Makes the mean gradient of a record's examples, measures, scales and adds it.
    fn add_group(
        &mut self,
        network: &Network,
        weights: &[f32],
        task: &impl Task,
        record: usize,
        parts: &Parts,
        ask: Option<Scales<'_>>,
    ) {
        let count = task.examples(record);
        let examples: Vec<(usize, usize)> = (0..count).map(|example| (record, example)).collect();
        self.partial.fill(0.0);
        for chunk in examples.chunks(network.chunk) {
            self.tape.learn(network, weights, task, chunk, 1.0 / count as f32);
            for (number, placed) in network.layers.iter().enumerate().filter(|(_, placed)| !placed.weights.is_empty()) {
                let (pass, kept) = self.tape.pass(network, number, chunk.len());
                placed.layer.add(pass, kept, &mut self.partial[placed.weights.clone()]);
            }
        }
        let (mut squared, mut factors) = (vec![0.0; parts.count], vec![1.0; parts.count]);
        if let Some(ask) = ask {
            for (placed, part) in network.layers.iter().zip(&parts.of_layer) {
                squared[*part] += squared_length(&self.partial[placed.weights.clone()]);
            }
            ask(&squared, &mut factors);
        }
        for (placed, part) in network.layers.iter().zip(&parts.of_layer).filter(|(_, part)| factors[**part] != 0.0) {
            let numbers = &mut self.partial[placed.weights.clone()];
            for x in numbers.iter_mut() {
                *x *= factors[*part];
            }
            add_wide(&mut self.total[placed.weights.clone()], numbers);
        }
    }
}
