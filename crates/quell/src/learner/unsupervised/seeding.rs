//! Ordinary k-means on public points: k-means++ and the iteration of Lloyd.

use crate::random::PublicRandom;

/// The most iterations for one choice of first centres.
const MOST_ITERATIONS: usize = 100;

/// Public points with weights.
pub(super) struct Points<'a> {
    /// The coordinates, one point after the other.
    pub(super) values: &'a [f64],
    /// Coordinates of one point.
    pub(super) dimension: usize,
    /// The weight of each point; none below zero.
    pub(super) weights: &'a [f64],
}

/// The nearest centre, and the squared distance to it. The first centre if no distance is a number.
#[inline(always)]
pub(super) fn nearest(point: &[f64], centres: &[f64]) -> (usize, f64) {
    let mut best = (0, f64::INFINITY);
    for (number, centre) in centres.chunks_exact(point.len()).enumerate() {
        let squared: f64 = point.iter().zip(centre).map(|(x, c)| (x - c) * (x - c)).sum();
        if squared < best.1 {
            best = (number, squared);
        }
    }
    best
}

impl Points<'_> {
    fn rows(&self) -> impl Iterator<Item = (&[f64], f64)> {
        self.values.chunks_exact(self.dimension).zip(self.weights.iter().copied())
    }

    /// The weighted mean of the squared distances to the nearest centres.
    pub(super) fn inertia(&self, centres: &[f64]) -> f64 {
        let total: f64 = self.weights.iter().sum();
        let sum: f64 = self.rows().map(|(point, weight)| weight * nearest(point, centres).1).sum();
        sum / total.max(f64::MIN_POSITIVE)
    }

    /// The best centres of several attempts.
    pub(super) fn cluster(&self, clusters: usize, attempts: usize, random: &mut PublicRandom) -> Vec<f64> {
        let mut best = (f64::INFINITY, Vec::new());
        for _ in 0..attempts {
            let centres = self.iterate(self.first_centres(clusters, random));
            let inertia = self.inertia(&centres);
            if inertia < best.0 || best.1.is_empty() {
                best = (inertia, centres);
            }
        }
        best.1
    }

    /// Chooses points as centres, with probabilities by weight and squared distance (k-means++).
    fn first_centres(&self, clusters: usize, random: &mut PublicRandom) -> Vec<f64> {
        let mut centres = Vec::with_capacity(clusters * self.dimension);
        let mut distances = vec![1.0; self.weights.len()];
        for _ in 0..clusters {
            let chances = distances.iter().zip(self.weights).map(|(distance, weight)| distance * weight);
            let total: f64 = chances.clone().sum();
            let mut left = f64::from(random.between(0.0, 1.0)) * total;
            let chosen = chances.into_iter().position(|chance| {
                left -= chance;
                left < 0.0
            });
            let chosen = chosen.unwrap_or_else(|| random.below(self.weights.len()));
            let point = &self.values[chosen * self.dimension..][..self.dimension];
            centres.extend_from_slice(point);
            let is_first = centres.len() == self.dimension;
            for (distance, (other, _)) in distances.iter_mut().zip(self.rows()) {
                let squared = nearest(other, point).1;
                *distance = if is_first { squared } else { distance.min(squared) };
            }
        }
        centres
    }

    /// Moves every centre to the mean of its points until no point changes its centre.
    fn iterate(&self, mut centres: Vec<f64>) -> Vec<f64> {
        let mut assigned = vec![usize::MAX; self.weights.len()];
        for _ in 0..MOST_ITERATIONS {
            let mut has_changed = false;
            let mut sums = vec![0.0; centres.len()];
            let mut weights = vec![0.0; centres.len() / self.dimension];
            for ((point, weight), own) in self.rows().zip(&mut assigned) {
                let (centre, _) = nearest(point, &centres);
                has_changed |= *own != centre;
                *own = centre;
                weights[centre] += weight;
                let sum = &mut sums[centre * self.dimension..][..self.dimension];
                sum.iter_mut().zip(point).for_each(|(sum, x)| *sum += weight * x);
            }
            if !has_changed {
                break;
            }
            let moved = centres.chunks_exact_mut(self.dimension).zip(sums.chunks_exact(self.dimension));
            for ((centre, sum), weight) in moved.zip(weights).filter(|(_, weight)| *weight > 0.0) {
                centre.iter_mut().zip(sum).for_each(|(centre, sum)| *centre = sum / weight);
            }
        }
        centres
    }
}
