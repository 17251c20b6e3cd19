//! The clipped gradients of a batch, added up.

use std::ops::Range;

use rayon::prelude::*;

use super::{
    Network, Task,
    deferred::{Deferred, Share},
    tape::Tape,
};
use crate::kernel::numbers::{add_totals, add_wide, squared_length};

/// The scale of every part of a record's gradient, for its squared lengths; [`quell_privacy::mechanism::Clip`] behind it.
pub type Scales<'a> = &'a (dyn Fn(&[f64], &mut [f32]) + Sync);

/// Memory that is used again from batch to batch.
#[derive(Default)]
pub struct Workspace {
    threads: Vec<Thread>,
    deferred: Deferred,
}

/// What one thread works with.
struct Thread {
    tape: Tape,
    /// The sum of a chunk, of one layer at a time.
    partial: Vec<f32>,
    /// The sum so far, in double precision.
    total: Vec<f64>,
}

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
        let lesson = Lesson { network: self, weights, task, parts: Parts::new(self, parts), scales };
        // By a public setting, and not by what the records are: both ways round differently.
        if task.is_grouped() {
            return lesson.add_groups(blocks, sum, workspace);
        }
        let present = lesson.present(blocks);
        let present: Vec<&[usize]> = present.iter().map(Vec::as_slice).collect();
        for blocks in groups(&present, Deferred::capacity(self)) {
            lesson.add_blocks(blocks, sum, workspace);
        }
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

    /// Adds up what the threads have.
    fn collect(&self, threads: &[Thread], sum: &mut [f64]) {
        for placed in self.layers.iter().filter(|placed| !placed.layer.is_outer_product()) {
            let range = placed.weights.clone();
            for thread in threads {
                add_totals(&mut sum[range.clone()], &thread.total[range.clone()]);
            }
        }
    }
}

/// What is the same for all records of a batch.
struct Lesson<'a, T> {
    network: &'a Network,
    weights: &'a [f32],
    task: &'a T,
    parts: Parts,
    scales: Option<Scales<'a>>,
}

impl<T: Task> Lesson<'_, T> {
    /// The records of each block that have an example. For the others, whose vector is zero, a scale is asked for and nothing is added.
    fn present(&self, blocks: &[&[usize]]) -> Vec<Vec<usize>> {
        let (zeros, mut factors) = (vec![0.0; self.parts.count], vec![0.0; self.parts.count]);
        let mut has_example = |record: &usize| {
            let present = self.task.examples(*record) > 0;
            if let (false, Some(ask)) = (present, self.scales) {
                ask(&zeros, &mut factors);
            }
            present
        };
        blocks.iter().map(|block| block.iter().copied().filter(|record| has_example(record)).collect()).collect()
    }

    /// Adds the gradients of records of one example each, few enough to put off what is put off.
    fn add_blocks(&self, blocks: &[&[usize]], sum: &mut [f64], workspace: &mut Workspace) {
        let network = self.network;
        let records: Vec<(usize, usize)> = blocks.iter().copied().flatten().map(|record| (*record, 0)).collect();
        let ends = ends(blocks);
        let everything_deferred =
            network.layers.iter().all(|placed| placed.weights.is_empty() || placed.layer.is_outer_product());
        let shares = if everything_deferred { network.even_shares(records.len()) } else { network.shares_within_blocks(&ends) };
        workspace.prepare(network, shares.len(), true);

        let parts_of_deferred = workspace.deferred.split(network, &ends, &shares);
        let jobs: Vec<_> = shares.iter().zip(workspace.threads.iter_mut()).zip(parts_of_deferred).collect();
        jobs.into_par_iter().for_each(|((units, thread), mut deferred)| {
            for unit in units {
                thread.tape.learn(network, self.weights, self.task, &records[unit.clone()], 1.0);
                thread.add_unit(self, unit, &mut deferred);
            }
        });
        network.collect(&workspace.threads[..shares.len()], sum);
        workspace.deferred.add(network, sum);
    }

    /// Adds those of records of several examples, whose mean gradient is made, measured, scaled and added, one record after the other.
    fn add_groups(&self, blocks: &[&[usize]], sum: &mut [f64], workspace: &mut Workspace) {
        let records: Vec<usize> = blocks.concat();
        let threads = rayon::current_num_threads().clamp(1, records.len().max(1));
        workspace.prepare(self.network, threads, false);
        let jobs: Vec<_> = records.chunks(records.len().div_ceil(threads).max(1)).zip(&mut workspace.threads).collect();
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

/// Blocks one after the other, of so many records in all, or one block.
fn groups<'a>(blocks: &'a [&'a [usize]], records: usize) -> impl Iterator<Item = &'a [&'a [usize]]> {
    let mut rest = blocks;
    std::iter::from_fn(move || {
        let fit = ends(rest).partition_point(|end| *end <= records).max(1);
        rest.split_off(..fit.min(rest.len())).filter(|group| !group.is_empty())
    })
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

impl Workspace {
    /// Clean sums for so many threads: of everything, or of what is not deferred.
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
    /// Measures, scales and adds the examples on the tape.
    fn add_unit<T>(&mut self, lesson: &Lesson<'_, T>, unit: &Range<usize>, deferred: &mut Share<'_>) {
        let Lesson { network, parts, scales: ask, .. } = lesson;
        let examples = unit.len();
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
            let own: Vec<f32> = factors.chunks_exact(parts.count).map(|factors| factors[parts.of_layer[number]]).collect();
            if placed.layer.is_outer_product() {
                deferred.take(number, placed, unit, pass, &own);
                continue;
            }
            let range = placed.weights.clone();
            let partial = &mut self.partial[range.clone()];
            partial.fill(0.0);
            if ask.is_some() {
                placed.layer.add_scaled(pass, kept, &own, partial);
            } else {
                placed.layer.add(pass, kept, partial);
            }
            add_wide(&mut self.total[range], partial);
        }
    }

    /// Makes the mean gradient of a record's examples, measures, scales and adds it.
    fn add_group(&mut self, lesson: &Lesson<'_, impl Task>, record: usize) {
        let Lesson { network, weights, task, parts, scales: ask } = lesson;
        let count = task.examples(record);
        let examples: Vec<(usize, usize)> = (0..count).map(|example| (record, example)).collect();
        self.partial.fill(0.0);
        for chunk in examples.chunks(network.chunk) {
            self.tape.learn(network, weights, *task, chunk, 1.0 / count as f32);
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
