//! A division of the space into leaves, each measured with noise: where many records lie.

use super::{
    Facts,
    lloyd::{Lloyd, shrunken_mean},
    seeding::Points,
    survey::WIDE,
    vectors::{Buffers, shortened},
};
use crate::random::PublicRandom;

/// A vector has three parts of length at most one: count, deviation and squared deviation.
const PARTS: f64 = 3.0;
/// The least count of a leaf that is trusted, in standard deviations of noise.
const TRUSTED: f64 = 3.0;
/// The distance of the halves of a leaf from its centre, in standard deviations along the axis.
const HALVES: f64 = 0.8;
/// The radius of the next level, in root mean square deviations from the leaves.
const NEXT_RADIUS: f64 = 2.75;
/// The smallest radius, in usual distances from the mean.
const LEAST_RADIUS: f64 = 0.05;
/// The radius of the first run with clusters, in root mean square deviations.
const CLUSTER_RADIUS: f64 = 2.5;
/// Choices of first centres among the leaves.
const ATTEMPTS: usize = 10;
/// The public seed of the choices.
const SEED: u64 = 0x7265_6576;

/// A place of the tree: a leaf, or a division at a number along an axis.
#[derive(Clone, Copy, Debug)]
enum Node {
    Leaf(usize),
    Division { axis: usize, at: f64, low: usize, high: usize },
}

/// The leaves so far.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    facts: Facts,
    nodes: Vec<Node>,
    /// The centres of the leaves relative to the mean, one after the other.
    centres: Vec<f64>,
    /// The number of records of each leaf, with noise; positive.
    counts: Vec<f64>,
    /// The deviation at which it is shortened.
    radius: f64,
    /// The usual distance of a record from the mean.
    distance: f64,
    /// The root mean square deviation from the leaves.
    spread: f64,
}

impl Tree {
    /// One leaf for all records, whose usual distance from the mean is known.
    pub(super) fn new(facts: Facts, distance: f64) -> Self {
        Self {
            facts,
            nodes: vec![Node::Leaf(0)],
            centres: vec![0.0; facts.width],
            counts: vec![facts.records],
            radius: WIDE * distance,
            distance,
            spread: distance,
        }
    }

    pub(super) fn leaves(&self) -> usize {
        self.counts.len()
    }

    /// The leaf of a point.
    #[inline(always)]
    fn leaf(&self, point: &[f64]) -> usize {
        let mut place = 0;
        loop {
            match self.nodes[place] {
                Node::Leaf(leaf) => return leaf,
                Node::Division { axis, at, low, high } => place = if point[axis] > at { high } else { low },
            }
        }
    }

    /// Writes count, deviation and squared deviation of an example, in the places of its leaf.
    #[inline(always)]
    pub(super) fn write(&self, buffers: &mut Buffers) {
        let Buffers { deviation, values, pieces, .. } = buffers;
        let (width, leaves) = (self.facts.width, self.leaves());
        let leaf = self.leaf(deviation);
        let centre = &self.centres[leaf * width..][..width];
        deviation.iter_mut().zip(centre).for_each(|(x, c)| *x -= c);
        let factor = shortened(deviation.iter().map(|x| x * x).sum(), self.radius);
        let scale = PARTS.sqrt().recip();
        values.push(scale as f32);
        values.extend(deviation.iter().map(|x| (scale * factor * x) as f32));
        values.extend(deviation.iter().map(|x| (scale * (factor * x).powi(2)) as f32));
        pieces.push((leaf, 1));
        // Deviation and squared deviation of a leaf are neighbours.
        pieces.push((leaves + 2 * leaf * width, 2 * width));
    }

    /// Moves the leaves to the noisy means of their records, and divides those that are wide.
    pub(super) fn apply(&mut self, released: &[f64]) {
        let (width, leaves) = (self.facts.width, self.leaves());
        let noise = PARTS.sqrt() * self.facts.noise;
        let (counts, sums) = released.split_at(leaves);
        let mut divisions = Vec::new();
        let mut all_squares = 0.0;
        for leaf in 0..leaves {
            let count = PARTS.sqrt() * counts[leaf];
            if count <= TRUSTED * noise {
                self.counts[leaf] = count.max(0.1);
                continue;
            }
            self.counts[leaf] = count;
            let sums: Vec<f64> =
                sums[2 * leaf * width..][..2 * width].iter().map(|x| PARTS.sqrt() * x).collect();
            let (sum, squares) = sums.split_at(width);
            let mean = shrunken_mean(sum, count, noise);
            let centre = &mut self.centres[leaf * width..][..width];
            centre.iter_mut().zip(&mean).for_each(|(centre, mean)| *centre += self.radius * mean);
            // The sum of squares about the mean.
            let about = squares.iter().zip(&mean).map(|(square, mean)| square - count * mean * mean);
            let widest = about.clone().enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
            all_squares += about.sum::<f64>();
            if let Some((axis, square)) = widest.filter(|(_, square)| *square > noise) {
                divisions.push((leaf, axis, HALVES * self.radius * (square / count).sqrt()));
            }
        }
        for (leaf, axis, distance) in divisions {
            self.divide(leaf, axis, distance);
        }
        self.spread = self.radius * (all_squares / self.facts.records).max(1e-4).sqrt();
        self.radius = self.radius.min((NEXT_RADIUS * self.spread).max(LEAST_RADIUS * self.distance));
    }

    /// Divides a leaf at its centre. Its halves are so far from the centre.
    fn divide(&mut self, leaf: usize, axis: usize, distance: f64) {
        let (width, new) = (self.facts.width, self.leaves());
        let Some(place) = self.nodes.iter().position(|node| matches!(node, Node::Leaf(own) if *own == leaf))
        else {
            return;
        };
        let mut half = self.centres[leaf * width..][..width].to_vec();
        let at = half[axis];
        self.centres[leaf * width + axis] = at - distance;
        half[axis] = at + distance;
        self.centres.extend(half);
        self.counts[leaf] *= 0.5;
        self.counts.push(self.counts[leaf]);
        self.nodes[place] = Node::Division { axis, at, low: self.nodes.len(), high: self.nodes.len() + 1 };
        self.nodes.extend([Node::Leaf(leaf), Node::Leaf(new)]);
    }

    /// The first centres of clusters, from the leaves.
    pub(super) fn clusters(&self, clusters: usize) -> Lloyd {
        let mut random = PublicRandom::new(SEED);
        let width = self.facts.width;
        if self.leaves() <= clusters {
            let mut centres = self.centres.clone();
            let spread = 0.5 * self.radius / (width as f64).sqrt();
            while centres.len() < clusters * width {
                let leaf = random.below(self.leaves());
                let copy = &self.centres[leaf * width..][..width];
                centres.extend(copy.iter().map(|x| x + spread * f64::from(random.normal())));
            }
            return Lloyd::new(None, width, centres, self.radius);
        }
        let points = Points { values: &self.centres, dimension: width, weights: &self.counts };
        let centres = points.cluster(clusters, ATTEMPTS, &mut random);
        let squared = self.spread.powi(2) + points.inertia(&centres);
        let radius = (CLUSTER_RADIUS * squared.sqrt()).min(WIDE * self.distance);
        Lloyd::new(None, width, centres, radius)
    }
}
