//! A tree that grows with every release. It is public, because it follows from released values alone.

use super::{
    Plan, Splits,
    cells::{Cells, Question},
    gain::Histograms,
    vectors::{Stage, Vectors},
};
use crate::{
    learner::{Supervised, sums::Estimates},
    random::PublicRandom,
};

/// A tree, and what is left to be released.
#[derive(Clone, Debug)]
pub struct Growth {
    cells: Cells,
    /// Standard deviation of the noise in each number of a release.
    noise: f64,
    /// Number of runs that are left, the last one of them for the leaves.
    runs: u64,
    pub(super) nodes: Vec<Node>,
    /// The nodes that the next run may split.
    live: Vec<usize>,
    /// The sums of releases for the leaves, leaf after leaf, and their number.
    leaves: Vec<f64>,
    measured: u64,
}

/// A node of a tree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Node {
    /// The question, and the node for no; the node for yes is the next one. `None` for a leaf.
    pub(super) split: Option<(Question, usize)>,
    /// The place among the leaves, or among the nodes that the next run may split.
    place: Option<usize>,
}

impl Node {
    const LEAF: Self = Self { split: None, place: None };
}

impl Growth {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut growth = Self {
            cells: plan.cells.clone(),
            noise: plan.sums.noise(),
            runs: plan.sums.runs,
            nodes: vec![Node::LEAF],
            live: vec![0],
            leaves: Vec::new(),
            measured: 0,
        };
        if plan.splits == Splits::Random {
            growth.draw(0, plan.depth, &mut Vec::new(), &mut PublicRandom::of(plan.seed, 0));
            growth.live.clear();
        }
        growth.number();
        growth
    }

    /// Splits a leaf at random, and its leaves, down to a depth. `before` are the columns of the questions above.
    fn draw(&mut self, node: usize, depth: usize, before: &mut Vec<usize>, random: &mut PublicRandom) {
        if depth == 0 {
            return;
        }
        let (column, question) = self.cells.draw(before, random);
        self.split(node, question);
        before.push(column);
        if let Some((_, children)) = self.nodes[node].split {
            self.draw(children, depth - 1, before, random);
            self.draw(children + 1, depth - 1, before, random);
        }
        before.pop();
    }

    /// Turns a leaf into a node with two leaves.
    fn split(&mut self, node: usize, question: Question) {
        let children = self.nodes.len();
        self.nodes[node].split = Some((question, children));
        self.nodes.extend([Node::LEAF; 2]);
        self.live.extend([children, children + 1]);
    }

    /// Numbers the nodes that the next run measures.
    fn number(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.place = None);
        let measured: Vec<usize> = if self.measures_leaves() {
            (0..self.nodes.len()).filter(|node| self.nodes[*node].split.is_none()).collect()
        } else {
            self.live.clone()
        };
        for (place, node) in measured.into_iter().enumerate() {
            self.nodes[node].place = Some(place);
        }
    }

    /// Whether the next run measures the leaves: it is the last one, or no node can be split.
    fn measures_leaves(&self) -> bool {
        self.runs <= 1 || self.live.is_empty()
    }

    /// What the next run sums; `None` if all runs are over.
    pub(super) fn stage(&self) -> Option<Stage<'_>> {
        (self.runs > 0).then_some(Stage {
            growth: self,
            cells: &self.cells,
            is_leaves: self.measures_leaves(),
        })
    }

    /// The place of the node of an example among those that the next run measures.
    #[inline(always)]
    pub(super) fn place(&self, example: &[f32]) -> Option<usize> {
        let mut node = self.nodes[0];
        while let Some((question, children)) = node.split {
            node = self.nodes[children + usize::from(question.is_above(example))];
        }
        node.place
    }

    /// Number of nodes that the next run measures.
    fn measured_nodes(&self) -> usize {
        self.nodes.iter().filter(|node| node.place.is_some()).count()
    }

    /// Splits every node where a gain is sure.
    fn grow(&mut self, released: &[f64]) {
        let (values, live) = (self.cells.values() * self.cells.count(), std::mem::take(&mut self.live));
        let scale = cell_scale(&self.cells);
        for (node, counts) in live.into_iter().zip(released.chunks_exact(values)) {
            let counts: Vec<f64> = counts.iter().map(|count| count / scale).collect();
            let noise = self.noise / scale;
            let histograms = Histograms { cells: &self.cells, counts: &counts, noise };
            if let Some(question) = histograms.best(&self.path(node)) {
                self.split(node, question);
            }
        }
    }

    /// The questions above a node, from the root on, with their answers.
    pub(super) fn path(&self, node: usize) -> Vec<(Question, bool)> {
        let mut path = Vec::new();
        let mut at = node;
        // The children of a node come after it.
        for above in (0..node).rev() {
            if let Some((question, children)) = self.nodes[above].split
                && (children..children + 2).contains(&at)
            {
                path.push((question, at == children + 1));
                at = above;
            }
        }
        path.reverse();
        path
    }

    /// The released values of each leaf, in the order of the nodes, and the noise in each number.
    ///
    /// All values are zero if every release for the leaves was lost.
    pub(super) fn leaf_values(&self) -> (Vec<Vec<f64>>, f64) {
        let (values, leaves) =
            (self.cells.values(), self.nodes.iter().filter(|node| node.split.is_none()).count());
        let scale = leaf_scale(&self.cells) * self.measured.max(1) as f64;
        let mut sums = self.leaves.clone();
        sums.resize(leaves * values, 0.0);
        let scaled = |leaf: &[f64]| leaf.iter().map(|sum| sum / scale).collect();
        let noise = self.noise * (self.measured.max(1) as f64).sqrt() / scale;
        (sums.chunks_exact(values).map(scaled).collect(), noise)
    }
}

/// The factor of the histograms of an example: it is in one cell of each column, and the vector has length one.
pub(super) fn cell_scale(cells: &Cells) -> f64 {
    leaf_scale(cells) / (cells.columns() as f64).sqrt()
}

/// The factor of the values of an example: one for a class, and √½ for a count and a number in [-1, 1].
pub(super) fn leaf_scale(cells: &Cells) -> f64 {
    if cells.classes().is_some() { 1.0 } else { std::f64::consts::FRAC_1_SQRT_2 }
}

impl Estimates for Growth {
    type Task<'t> = Supervised<'t>;
    type Vectors<'a> = Vectors<'a>;

    fn vectors<'a>(&'a self, task: &'a Supervised<'_>, dimension: usize) -> Option<Vectors<'a>> {
        Some(Vectors::new(task, self.stage()?, self.length(), dimension))
    }

    fn length(&self) -> usize {
        let cells = if self.measures_leaves() { 1 } else { self.cells.count() };
        if self.runs == 0 { 0 } else { self.measured_nodes() * cells * self.cells.values() }
    }

    /// A node whose release was lost is measured again by the next run.
    fn apply(&mut self, released: Option<&[f64]>) {
        let is_leaves = self.measures_leaves();
        self.runs = self.runs.saturating_sub(1);
        if let Some(released) = released {
            if is_leaves {
                self.leaves.resize(released.len(), 0.0);
                self.leaves.iter_mut().zip(released).for_each(|(sum, x)| *sum += x);
                self.measured += 1;
            } else {
                self.grow(released);
            }
        }
        self.number();
    }
}
