//! The sum of the clipped gradients of a batch.

use std::ops::Range;

use rayon::prelude::*;

use super::{
    Network, Task,
    deferred::{Deferred, Share},
    tape::Tape,
};
use crate::kernel::numbers::{add_totals, add_wide, squared_length};

/// Computes the scale of every part of a record's gradient from the squared norms.
///
/// With privacy, [`quell_privacy::mechanism::Clipper`] computes them.
pub type Scales<'a> = &'a (dyn Fn(&[f64], &mut [f32]) + Sync);

/// Buffers that are reused from batch to batch.
#[derive(Default)]
pub struct Workspace {
    threads: Vec<Thread>,
    deferred: Deferred,
}

/// The buffers of one thread.
struct Thread {
    tape: Tape,
    /// The sum over a chunk, in single precision.
    partial: Vec<f32>,
    /// The sum over all chunks so far, in double precision.
    total: Vec<f64>,
}

/// The parts of the gradient that are clipped separately.
struct Parts {
    count: usize,
    /// The part that each layer belongs to.
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
        let part = |weights: &Range<usize>| {
            ends.partition_point(|end| *end < weights.end).min(ends.len().saturating_sub(1))
        };
        Self {
            count: lengths.len().max(1),
            of_layer: network.layers.iter().map(|placed| part(&placed.weights)).collect(),
        }
    }

    /// Whether every layer lies in one part. The norm of a part that ends within a layer cannot be computed.
    fn hold_whole_layers(network: &Network, lengths: &[usize]) -> bool {
        let mut end = 0;
        lengths.iter().all(|length| {
            end += length;
            !network.layers.iter().any(|placed| placed.weights.start < end && end < placed.weights.end)
        })
    }
}

impl Network {
    /// Computes `sum += Σ scale · gradient` over all records of all blocks.
    ///
    /// `scales` computes the scales; without it, every scale is one. Numbers are added in single precision
    /// only within a block, and in double precision across blocks. `parts` holds the lengths of the parts
    /// that are clipped separately. Each part must consist of whole layers; otherwise nothing is added.
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
            // Without a norm there is no scale, so nothing is added.
            return;
        }
        let batch = Batch { network: self, weights, task, parts: Parts::new(self, parts), scales };
        // A public setting chooses the path, and not the records, because the two paths round differently.
        if task.is_grouped() {
            return batch.add_groups(blocks, sum, workspace);
        }
        let present = batch.present(blocks);
        let present: Vec<&[usize]> = present.iter().map(Vec::as_slice).collect();
        for blocks in groups(&present, Deferred::capacity(self)) {
            batch.add_blocks(blocks, sum, workspace);
        }
    }

    /// Divides the records evenly among the threads, in units of at most a chunk.
    fn even_shares(&self, records: usize) -> Vec<Vec<Range<usize>>> {
        let threads = rayon::current_num_threads().clamp(1, records.div_ceil(8).max(1));
        let cut = |from: usize, to: usize, pieces: usize| {
            (0..pieces).map(move |i| from + (to - from) * i / pieces..from + (to - from) * (i + 1) / pieces)
        };
        cut(0, records, threads)
            .map(|share| cut(share.start, share.end, share.len().div_ceil(self.chunk).max(1)).collect())
            .collect()
    }

    /// Divides each block into units of at most a chunk for the threads, in order.
    ///
    /// The boundaries of the units depend only on the blocks, not on the number of threads.
    fn shares_within_blocks(&self, ends: &[usize]) -> Vec<Vec<Range<usize>>> {
        let mut units = Vec::new();
        let mut from = 0;
        for &to in ends {
            let pieces = (to - from).div_ceil(self.chunk).max(1);
            units.extend(
                (0..pieces).map(|i| from + (to - from) * i / pieces..from + (to - from) * (i + 1) / pieces),
            );
            from = to;
        }
        let threads = rayon::current_num_threads().clamp(1, units.len().max(1));
        let mut shares = vec![Vec::new(); threads];
        for unit in units.into_iter().filter(|unit| !unit.is_empty()) {
            // The thread whose share contains the middle of the unit.
            let share = (unit.start + unit.end) * threads / (2 * from.max(1));
            shares[share.min(threads - 1)].push(unit);
        }
        shares
    }

    /// Adds the totals of the threads to `sum`, except those of deferred layers.
    fn collect(&self, threads: &[Thread], sum: &mut [f64]) {
        for placed in self.layers.iter().filter(|placed| !placed.layer.is_outer_product()) {
            let range = placed.weights.clone();
            for thread in threads {
                add_totals(&mut sum[range.clone()], &thread.total[range.clone()]);
            }
        }
    }
}

/// The inputs that are the same for all records of a batch.
struct Batch<'a, T> {
    network: &'a Network,
    weights: &'a [f32],
    task: &'a T,
    parts: Parts,
    scales: Option<Scales<'a>>,
}

impl<T: Task> Batch<'_, T> {
    /// Returns the records of each block that have an example.
    ///
    /// For the others, whose gradient is zero, it requests a scale and adds nothing.
    fn present(&self, blocks: &[&[usize]]) -> Vec<Vec<usize>> {
        let (zeros, mut factors) = (vec![0.0; self.parts.count], vec![0.0; self.parts.count]);
        let mut has_example = |record: &usize| {
            let present = self.task.examples(*record) > 0;
            if let (false, Some(compute_scales)) = (present, self.scales) {
                compute_scales(&zeros, &mut factors);
            }
            present
        };
        blocks
            .iter()
            .map(|block| block.iter().copied().filter(|record| has_example(record)).collect())
            .collect()
    }

    /// Adds the gradients of records with one example each. The records must fit into the deferred buffers.
    fn add_blocks(&self, blocks: &[&[usize]], sum: &mut [f64], workspace: &mut Workspace) {
        let network = self.network;
        let records: Vec<(usize, usize)> =
            blocks.iter().copied().flatten().map(|record| (*record, 0)).collect();
        let ends = ends(blocks);
        let is_all_deferred =
            network.layers.iter().all(|placed| placed.weights.is_empty() || placed.layer.is_outer_product());
        let shares = if is_all_deferred {
            network.even_shares(records.len())
        } else {
            network.shares_within_blocks(&ends)
        };
        workspace.prepare(network, shares.len(), true);

        let parts_of_deferred = workspace.deferred.split(network, &ends, &shares);
        let jobs: Vec<_> = shares.iter().zip(workspace.threads.iter_mut()).zip(parts_of_deferred).collect();
        jobs.into_par_iter().for_each(|((units, thread), mut deferred)| {
            for unit in units {
                thread.tape.forward_and_backward(
                    network,
                    self.weights,
                    self.task,
                    &records[unit.clone()],
                    1.0,
                );
                thread.add_unit(self, unit, &mut deferred);
            }
        });
        network.collect(&workspace.threads[..shares.len()], sum);
        workspace.deferred.add(network, sum);
    }

    /// Adds the gradients of records with several examples, one record at a time.
    ///
    /// For each record it computes the mean gradient, its norm and its scale, and adds the scaled gradient.
    fn add_groups(&self, blocks: &[&[usize]], sum: &mut [f64], workspace: &mut Workspace) {
        let records: Vec<usize> = blocks.concat();
        let threads = rayon::current_num_threads().clamp(1, records.len().max(1));
        workspace.prepare(self.network, threads, false);
        let jobs: Vec<_> =
            records.chunks(records.len().div_ceil(threads).max(1)).zip(&mut workspace.threads).collect();
        let used = jobs.len();
        jobs.into_par_iter().for_each(|(records, thread)| {
            for &record in records {
                thread.add_group(self, record);
            }
        });
        for thread in &workspace.threads[..used] {
            add_totals(sum, &thread.total);
        }
    }
}

/// Groups consecutive blocks with at most `records` records, or one block each.
fn groups<'a>(blocks: &'a [&'a [usize]], records: usize) -> impl Iterator<Item = &'a [&'a [usize]]> {
    let mut rest = blocks;
    std::iter::from_fn(move || {
        let fit = ends(rest).partition_point(|end| *end <= records).max(1);
        rest.split_off(..fit.min(rest.len())).filter(|group| !group.is_empty())
    })
}

/// Index of the end of each block, counted in records.
fn ends(blocks: &[&[usize]]) -> Vec<usize> {
    blocks
        .iter()
        .scan(0, |end, block| {
            *end += block.len();
            Some(*end)
        })
        .collect()
}

impl Workspace {
    /// Prepares zeroed totals for a number of threads.
    ///
    /// If `deferring`, the totals of deferred layers are not used and not zeroed.
    fn prepare(&mut self, network: &Network, threads: usize, deferring: bool) {
        if self.threads.iter().any(|thread| thread.total.len() != network.parameters) {
            self.threads.clear();
        }
        self.threads.resize_with(threads.max(self.threads.len()), || Thread {
            tape: Tape::new(network, network.chunk),
            partial: vec![0.0; network.parameters],
            total: vec![0.0; network.parameters],
        });
        for placed in network.layers.iter().filter(|placed| !(deferring && placed.layer.is_outer_product())) {
            self.threads.iter_mut().for_each(|thread| thread.total[placed.weights.clone()].fill(0.0));
        }
    }
}

impl Thread {
    /// Computes norms and scales of the examples on the tape, and adds their gradients.
    fn add_unit<T>(&mut self, batch: &Batch<'_, T>, unit: &Range<usize>, deferred: &mut Share<'_>) {
        let Batch { network, parts, scales: compute_scales, .. } = batch;
        let examples = unit.len();
        // One row per example, one column per part.
        let mut factors = vec![1.0_f32; examples * parts.count];
        if let Some(compute_scales) = compute_scales {
            let mut squared = vec![0.0_f64; examples * parts.count];
            let mut column = vec![0.0_f64; examples];
            for (number, placed) in
                network.layers.iter().enumerate().filter(|(_, placed)| !placed.weights.is_empty())
            {
                let (pass, kept) = self.tape.pass(network, number, examples);
                column.fill(0.0);
                placed.layer.squared_norms(pass, kept, &mut column);
                let part = parts.of_layer[number];
                squared
                    .chunks_exact_mut(parts.count)
                    .zip(&column)
                    .for_each(|(row, square)| row[part] += square);
            }
            for (squared, factors) in
                squared.chunks_exact(parts.count).zip(factors.chunks_exact_mut(parts.count))
            {
                compute_scales(squared, factors);
            }
        }
        for (number, placed) in
            network.layers.iter().enumerate().filter(|(_, placed)| !placed.weights.is_empty())
        {
            let (pass, kept) = self.tape.pass(network, number, examples);
            let layer_scales: Vec<f32> =
                factors.chunks_exact(parts.count).map(|factors| factors[parts.of_layer[number]]).collect();
            if placed.layer.is_outer_product() {
                deferred.write(number, placed, unit, pass, &layer_scales);
                continue;
            }
            let range = placed.weights.clone();
            let partial = &mut self.partial[range.clone()];
            partial.fill(0.0);
            if compute_scales.is_some() {
                placed.layer.add_scaled(pass, kept, &layer_scales, partial);
            } else {
                placed.layer.add(pass, kept, partial);
            }
            add_wide(&mut self.total[range], partial);
        }
    }

    /// Computes the mean gradient of a record's examples, scales it and adds it.
    fn add_group(&mut self, batch: &Batch<'_, impl Task>, record: usize) {
        let Batch { network, weights, task, parts, scales: compute_scales } = batch;
        let count = task.examples(record);
        let examples: Vec<(usize, usize)> = (0..count).map(|example| (record, example)).collect();
        self.partial.fill(0.0);
        for chunk in examples.chunks(network.chunk) {
            self.tape.forward_and_backward(network, weights, *task, chunk, 1.0 / count as f32);
            for (number, placed) in
                network.layers.iter().enumerate().filter(|(_, placed)| !placed.weights.is_empty())
            {
                let (pass, kept) = self.tape.pass(network, number, chunk.len());
                placed.layer.add(pass, kept, &mut self.partial[placed.weights.clone()]);
            }
        }
        let (mut squared, mut factors) = (vec![0.0; parts.count], vec![1.0; parts.count]);
        if let Some(compute_scales) = compute_scales {
            for (placed, part) in network.layers.iter().zip(&parts.of_layer) {
                squared[*part] += squared_length(&self.partial[placed.weights.clone()]);
            }
            compute_scales(&squared, &mut factors);
        }
        for (placed, part) in
            network.layers.iter().zip(&parts.of_layer).filter(|(_, part)| factors[**part] != 0.0)
        {
            let numbers = &mut self.partial[placed.weights.clone()];
            for x in numbers.iter_mut() {
                *x *= factors[*part];
            }
            add_wide(&mut self.total[placed.weights.clone()], numbers);
        }
    }
}
