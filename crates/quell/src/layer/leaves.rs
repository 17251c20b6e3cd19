//! Leaves of public random trees: features from which a linear layer forms a forest.

use super::{Layer, Pass, Shape};
use crate::random::PublicRandom;

/// Appends the leaves of random trees to all numbers.
///
/// A tree of depth m asks m questions, the same ones on every path. The answers select one of 2ᵐ leaves. The
/// feature of a leaf is 1 - 2⁻ᵐ if the example is in it, and -2⁻ᵐ otherwise. A question compares a number with
/// a threshold, which is a weight of the layer, or asks whether a category is in a fixed random set.
/// Questions follow from the seed alone.
#[derive(Clone, Debug)]
pub struct Leaves {
    trees: Trees,
    inputs: usize,
    output: Shape,
}

impl Leaves {
    /// Creates the layer.
    ///
    /// `columns` holds the number of categories of each column, which are indicators next to each other, or 0
    /// for a number.
    #[must_use]
    pub fn new(columns: &[usize], trees: usize, seed: u64) -> Self {
        let inputs = columns.iter().map(|categories| (*categories).max(1)).sum();
        let trees = Trees::new(columns, trees, seed);
        let output = vec![inputs + trees.leaves()];
        Self { trees, inputs, output }
    }
}

impl Layer for Leaves {
    fn inputs(&self) -> usize {
        self.inputs
    }

    fn output(&self) -> &Shape {
        &self.output
    }

    fn parameters(&self) -> usize {
        self.trees.thresholds
    }

    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        vec![("threshold".into(), vec![self.trees.thresholds])]
    }

    fn initialize(&self, weights: &mut [f32], _: &mut PublicRandom) {
        weights.fill(0.0);
    }

    fn forward(&self, weights: &[f32], input: &[f32], output: &mut [f32], _: &mut [f32], _: &[u64]) {
        let (width, mut categories) = (self.outputs(), Vec::new());
        for (x, y) in input.chunks_exact(self.inputs).zip(output.chunks_exact_mut(width)) {
            let (same, leaves) = y.split_at_mut(self.inputs);
            same.copy_from_slice(x);
            leaves.iter_mut().zip(&self.trees.shares).for_each(|(leaf, share)| *leaf = -share);
            self.trees.find(x, weights, &mut categories, |leaf| leaves[leaf] += 1.0);
        }
    }

    /// Leaves do not change if numbers and thresholds change a little, so their derivatives are zero.
    fn backward(&self, _: &[f32], pass: Pass<'_>, _: &mut [f32], input_gradient: Option<&mut [f32]>) {
        let Some(input_gradient) = input_gradient else { return };
        let gradients = pass.output_gradient.chunks_exact(self.outputs());
        for (gradient, result) in gradients.zip(input_gradient.chunks_exact_mut(self.inputs)) {
            result.copy_from_slice(&gradient[..self.inputs]);
        }
    }
}

/// Random trees. They are public: they depend on the columns and on a seed.
#[derive(Clone, Debug)]
pub(crate) struct Trees {
    /// The first feature of each column, and its number of categories: 0 for a number.
    columns: Vec<(usize, usize)>,
    questions: Vec<Question>,
    /// The depth of each tree.
    depths: Vec<usize>,
    /// For each leaf, one over the number of leaves of its tree.
    pub(crate) shares: Vec<f32>,
    /// Number of questions about numbers.
    thresholds: usize,
}

/// A question of a tree. The answer yes adds `bit` to the number of the leaf.
pub(crate) struct Asked<'t> {
    pub(crate) tree: usize,
    pub(crate) bit: usize,
    /// The number that is compared, or the first indicator of the column.
    pub(crate) feature: usize,
    /// The categories for which the answer is yes; `None` for a number.
    pub(crate) set: Option<&'t [bool]>,
}

#[derive(Clone, Debug)]
struct Question {
    column: usize,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Whether the number is above the threshold: this share of a normal column is below it.
    Number { share: f64 },
    /// Whether the category is in a set.
    Category { is_in: Vec<bool> },
}

/// The depths of trees, in turn. Deeper trees see more columns together, and have fewer records in each leaf.
const DEPTHS: [usize; 4] = [1, 2, 3, 4];

/// The most categories of all questions: their sets are kept in memory.
const MOST_CATEGORIES: usize = 1 << 26;

impl Trees {
    /// Whether the category sets of this number of trees fit in memory.
    pub(crate) fn fit_in_memory(columns: &[usize], trees: usize) -> bool {
        let categories = columns.iter().copied().max().unwrap_or(0).max(1);
        let questions = trees.saturating_mul(DEPTHS[DEPTHS.len() - 1]);
        questions.saturating_mul(categories) <= MOST_CATEGORIES
    }

    pub(crate) fn new(columns: &[usize], trees: usize, seed: u64) -> Self {
        let mut first = 0;
        let columns: Vec<(usize, usize)> = columns
            .iter()
            .map(|categories| {
                let own = first;
                first += (*categories).max(1);
                (own, *categories)
            })
            .collect();
        let (mut questions, mut depths, mut shares) = (Vec::new(), Vec::new(), Vec::new());
        for tree in 0..trees {
            let mut random = PublicRandom::of(seed, tree as u64);
            let depth = DEPTHS[tree % DEPTHS.len()].min(columns.len());
            let mut asked = Vec::with_capacity(depth);
            while asked.len() < depth {
                let column = random.below(columns.len());
                if asked.contains(&column) {
                    continue;
                }
                asked.push(column);
                let kind = match columns[column].1 {
                    0 => Kind::Number { share: f64::from(random.between(0.0, 1.0)) },
                    categories => Kind::Category { is_in: subset(categories, &mut random) },
                };
                questions.push(Question { column, kind });
            }
            let leaves = 1 << depth;
            depths.push(depth);
            shares.extend(std::iter::repeat_n(1.0 / leaves as f32, leaves));
        }
        let is_number = |question: &&Question| matches!(question.kind, Kind::Number { .. });
        let thresholds = questions.iter().filter(is_number).count();
        Self { columns, questions, depths, shares, thresholds }
    }

    /// Number of leaves of all trees.
    pub(crate) fn leaves(&self) -> usize {
        self.shares.len()
    }

    /// Number of trees.
    pub(crate) fn count(&self) -> usize {
        self.depths.len()
    }

    /// All questions, tree after tree.
    pub(crate) fn asked(&self) -> Vec<Asked<'_>> {
        let mut questions = self.questions.iter();
        let mut asked = Vec::with_capacity(self.questions.len());
        for (tree, depth) in self.depths.iter().enumerate() {
            for (place, Question { column, kind }) in questions.by_ref().take(*depth).enumerate() {
                let set = match kind {
                    Kind::Number { .. } => None,
                    Kind::Category { is_in } => Some(is_in.as_slice()),
                };
                let feature = self.columns[*column].0;
                asked.push(Asked { tree, bit: 1 << (depth - 1 - place), feature, set });
            }
        }
        asked
    }

    /// The tree of each leaf, and the number of the leaf in its tree.
    pub(crate) fn leaf_places(&self) -> (Vec<usize>, Vec<usize>) {
        let leaves = self
            .depths
            .iter()
            .enumerate()
            .flat_map(|(tree, depth)| (0..1_usize << depth).map(move |leaf| (tree, leaf)));
        leaves.unzip()
    }

    /// The squared length of all leaves of an example: the same for every example.
    pub(crate) fn squared_length(&self) -> f64 {
        self.depths.iter().map(|depth| 1.0 - 0.5_f64.powi(*depth as i32)).sum()
    }

    /// The thresholds for columns of numbers with these centres and spreads, by feature.
    pub(crate) fn thresholds(&self, centres: &[f64], spreads: &[f64]) -> Vec<f32> {
        let threshold = |question: &Question| match question.kind {
            Kind::Number { share } => {
                let feature = self.columns[question.column].0;
                // Nearly the quantile of the normal distribution.
                let quantile = (share / (1.0 - share)).ln() / 1.702;
                Some((centres[feature] + spreads[feature] * quantile).clamp(-2.0, 2.0) as f32)
            }
            Kind::Category { .. } => None,
        };
        self.questions.iter().filter_map(threshold).collect()
    }

    /// Calls `found` with the leaf of each tree that an example is in. `categories` is a buffer.
    ///
    /// A number that is not one is below all thresholds. A category that is missing is in no set.
    pub(crate) fn find(
        &self,
        example: &[f32],
        thresholds: &[f32],
        categories: &mut Vec<usize>,
        mut found: impl FnMut(usize),
    ) {
        categories.clear();
        categories.extend(self.columns.iter().map(|(first, count)| {
            let indicators = &example[*first..first + count];
            indicators.iter().position(|indicator| *indicator > 0.5).unwrap_or(usize::MAX)
        }));
        let (mut questions, mut thresholds, mut first) = (self.questions.iter(), thresholds.iter(), 0);
        for depth in &self.depths {
            let mut leaf = 0;
            for question in questions.by_ref().take(*depth) {
                let answer = match &question.kind {
                    Kind::Number { .. } => thresholds
                        .next()
                        .is_some_and(|threshold| example[self.columns[question.column].0] > *threshold),
                    Kind::Category { is_in } => {
                        is_in.get(categories[question.column]).copied().unwrap_or(false)
                    }
                };
                leaf = 2 * leaf + usize::from(answer);
            }
            found(first + leaf);
            first += 1 << depth;
        }
    }
}

/// A random set of categories: neither empty nor all of them, unless there is only one.
fn subset(categories: usize, random: &mut PublicRandom) -> Vec<bool> {
    loop {
        let set: Vec<bool> = (0..categories).map(|_| random.bits() >> 63 == 1).collect();
        if set.contains(&true) && (set.contains(&false) || categories == 1) {
            return set;
        }
    }
}
