//! The per-record gradients of a network, as contributions to a mechanism.

use quell_privacy::mechanism::{Clipper, Contributions};

use crate::network::{Network, Task, Workspace};

/// Records that are added in single precision when training without privacy.
const BLOCK: usize = 1 << 10;

/// One gradient per record, at the weights of the current step.
pub struct Gradients<'a, T> {
    network: &'a Network,
    task: &'a T,
    weights: &'a [f32],
    workspace: &'a mut Workspace,
}

impl<'a, T: Task> Gradients<'a, T> {
    /// Creates the gradients of the task's losses at these weights.
    pub fn new(network: &'a Network, task: &'a T, weights: &'a [f32], workspace: &'a mut Workspace) -> Self {
        Self { network, task, weights, workspace }
    }

    /// Adds the unclipped gradients of some records to `sum`, for training without privacy.
    pub fn add(&mut self, records: &[usize], sum: &mut [f64]) {
        let blocks: Vec<&[usize]> = records.chunks(BLOCK).collect();
        self.network.add_gradients(self.weights, self.task, &blocks, &[], None, sum, self.workspace);
    }
}

impl<T: Task> Contributions for Gradients<'_, T> {
    fn dimension(&self) -> usize {
        self.network.parameters()
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]) {
        let scales = |squared: &[f64], scales: &mut [f32]| clipper.scales(squared, scales);
        self.network.add_gradients(
            self.weights,
            self.task,
            blocks,
            clipper.parts(),
            Some(&scales),
            sum,
            self.workspace,
        );
    }
}
