//! The gradients of a network, as the trusted room asks for them.

use quell_privacy::mechanism::{Clip, Contributions};

use crate::network::{Network, Task, Workspace};

/// Records that are added up in single precision where nobody has to prove anything.
const TOGETHER: usize = 1 << 10;

/// One gradient per record, at weights that may change from step to step.
pub struct Gradients<'a, T> {
    network: &'a Network,
    task: &'a T,
    weights: &'a [f32],
    workspace: &'a mut Workspace,
}

impl<'a, T: Task> Gradients<'a, T> {
    /// The gradients of the task's losses at these weights.
    pub fn new(network: &'a Network, task: &'a T, weights: &'a [f32], workspace: &'a mut Workspace) -> Self {
        Self { network, task, weights, workspace }
    }

    /// The sum of the gradients of some records as they are: for training without privacy.
    pub fn add(&mut self, records: &[usize], sum: &mut [f64]) {
        let blocks: Vec<&[usize]> = records.chunks(TOGETHER).collect();
        self.network.add_gradients(self.weights, self.task, &blocks, &[], None, sum, self.workspace);
    }
}

impl<T: Task> Contributions for Gradients<'_, T> {
    fn dimension(&self) -> usize {
        self.network.parameters()
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clip: &Clip, sum: &mut [f64]) {
        let scales = |squared: &[f64], scales: &mut [f32]| clip.scales(squared, scales);
        self.network.add_gradients(self.weights, self.task, blocks, clip.parts(), Some(&scales), sum, self.workspace);
    }
}
