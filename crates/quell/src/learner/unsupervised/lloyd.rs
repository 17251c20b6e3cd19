//! Runs that move the centres of clusters to the noisy means of their records.

use super::{
    Facts,
    seeding::nearest,
    vectors::{Buffers, shortened},
};

/// The share of a vector's squared length that counts, as a root: 1/4 for the count, 3/4 for the deviation.
const COUNT: f64 = 0.5;
fn deviation_share() -> f64 {
    0.75_f64.sqrt()
}

/// The centres of clusters.
#[derive(Clone, Debug)]
pub(super) struct Lloyd {
    /// The directions in which clusters are sought, one after the other; `None` if all are.
    basis: Option<Vec<f64>>,
    /// Number of directions.
    dimension: usize,
    /// The centres relative to the mean, one after the other.
    centres: Vec<f64>,
    /// The deviation from a centre at which it is shortened.
    radius: f64,
    /// The noisy number of records of each cluster, in the last run that was not lost.
    pub(super) sizes: Option<Vec<f64>>,
}

impl Lloyd {
    pub(super) fn new(basis: Option<Vec<f64>>, dimension: usize, centres: Vec<f64>, radius: f64) -> Self {
        Self { basis, dimension, centres, radius: radius.max(1e-9), sizes: None }
    }

    pub(super) fn clusters(&self) -> usize {
        self.centres.len() / self.dimension
    }

    pub(super) fn dimension(&self) -> usize {
        self.dimension
    }

    /// Writes count and deviation of an example, in the places of its cluster.
    #[inline(always)]
    pub(super) fn write(&self, buffers: &mut Buffers) {
        let Buffers { deviation, point, values, pieces, .. } = buffers;
        point.clear();
        match &self.basis {
            None => point.extend_from_slice(deviation),
            Some(basis) => point.extend(
                basis
                    .chunks_exact(deviation.len())
                    .map(|direction| direction.iter().zip(&*deviation).map(|(q, y)| q * y).sum::<f64>()),
            ),
        }
        let (cluster, _) = nearest(point, &self.centres);
        let centre = &self.centres[cluster * self.dimension..][..self.dimension];
        point.iter_mut().zip(centre).for_each(|(x, c)| *x -= c);
        let factor = deviation_share() * shortened(point.iter().map(|x| x * x).sum(), self.radius);
        values.push(COUNT as f32);
        values.extend(point.iter().map(|x| (factor * x) as f32));
        pieces.push((cluster, 1));
        pieces.push((self.clusters() + cluster * self.dimension, self.dimension));
    }

    /// Moves the centres. A centre with too few records for its noise stays.
    pub(super) fn apply(&mut self, facts: &Facts, released: &[f64]) {
        let noise = facts.noise;
        let (counts, sums) = released.split_at(self.clusters());
        let sizes: Vec<f64> = counts.iter().map(|count| count / COUNT).collect();
        let sums = sums.chunks_exact(self.dimension);
        for ((centre, sum), size) in self.centres.chunks_exact_mut(self.dimension).zip(sums).zip(&sizes) {
            if *size > 4.0 * noise {
                let sum: Vec<f64> = sum.iter().map(|x| x / deviation_share()).collect();
                let mean = shrunken_mean(&sum, *size, noise / deviation_share());
                centre.iter_mut().zip(mean).for_each(|(centre, mean)| *centre += self.radius * mean);
            }
        }
        self.sizes = Some(sizes);
    }

    /// The centres among all features, within the bounds of the data.
    pub(super) fn outputs(&self, mean: &[f64]) -> Vec<f32> {
        let mut outputs = Vec::with_capacity(self.clusters() * mean.len());
        for centre in self.centres.chunks_exact(self.dimension) {
            let mut full = mean.to_vec();
            match &self.basis {
                None => full.iter_mut().zip(centre).for_each(|(x, c)| *x += c),
                Some(basis) => {
                    for (direction, c) in basis.chunks_exact(mean.len()).zip(centre) {
                        full.iter_mut().zip(direction).for_each(|(x, q)| *x += c * q);
                    }
                }
            }
            outputs.extend(full.iter().map(|x| x.clamp(-1.0, 1.0) as f32));
        }
        outputs
    }
}

/// The mean of a noisy sum over a noisy count, shrunk as far as noise explains its length (James and Stein).
pub(super) fn shrunken_mean(sum: &[f64], count: f64, noise: f64) -> Vec<f64> {
    let squared: f64 = sum.iter().map(|x| (x / count).powi(2)).sum();
    let explained = sum.len() as f64 * (noise / count).powi(2);
    let kept = if squared > 0.0 { (1.0 - explained / squared).max(0.0) } else { 0.0 };
    sum.iter().map(|x| kept * x / count).collect()
}
