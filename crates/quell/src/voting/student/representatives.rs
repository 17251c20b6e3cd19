//! Representatives: the public rows to ask about.

use std::{cmp::Ordering, collections::BinaryHeap};

use rayon::prelude::*;

use super::count_rows;
use crate::{
    Error,
    random::PublicRandom,
    voting::knn::{Index, Neighbor},
};

/// The number of rounds of k-means.
/// Later rounds move the centres too little to change which row is nearest to a centre.
const ROUNDS: usize = 12;

/// Chooses `count` rows that represent all rows, or all rows if there are fewer.
///
/// The rows are those nearest to the centres of `count` clusters. K-means finds the clusters: Lloyd's
/// iterations, which start as Arthur and Vassilvitskii (2007) describe. The rows that represent most others
/// come first, so any prefix of the result is a good choice too.
///
/// ```
/// let points = [0.0, 0.1, 0.2, 9.0, 9.1, 5.0];
/// let chosen = quell::voting::student::representatives(&points, 1, 3, 0)?;
/// assert_eq!(chosen, [1, 3, 5]);
/// # Ok::<(), quell::Error>(())
/// ```
pub fn representatives(points: &[f32], width: usize, count: usize, seed: u64) -> Result<Vec<usize>, Error> {
    let rows = count_rows(points, width)?;
    if count >= rows {
        return order(points, width, &(0..rows).collect::<Vec<_>>(), &vec![1.0; rows]);
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut centers = spread_out(points, width, count, seed);
    let mut clusters = assign(points, &centers, width)?;
    for _ in 1..ROUNDS {
        move_centers(points, &clusters, &mut centers, width);
        clusters = assign(points, &centers, width)?;
    }
    // The row nearest to each centre. A centre without rows has none.
    let mut medoids: Vec<Option<(usize, f32)>> = vec![None; count];
    let mut sizes = vec![0.0_f32; count];
    for (row, (cluster, distance)) in clusters.iter().enumerate() {
        sizes[*cluster] += 1.0;
        let medoid = &mut medoids[*cluster];
        if medoid.is_none_or(|(_, least)| *distance < least) {
            *medoid = Some((row, *distance));
        }
    }
    let (chosen, sizes): (Vec<usize>, Vec<f32>) =
        medoids.iter().zip(sizes).filter_map(|(medoid, size)| medoid.map(|(row, _)| (row, size))).unzip();
    order(points, width, &chosen, &sizes)
}

/// Draws the initial centres (k-means++).
/// Each row is drawn with probability proportional to its squared distance to the rows drawn before it.
fn spread_out(points: &[f32], width: usize, count: usize, seed: u64) -> Vec<f32> {
    let mut random = PublicRandom::of(seed, 0);
    let rows = points.len() / width;
    let (mut next, mut nearest) = (random.below(rows), vec![f32::INFINITY; rows]);
    let mut centers = Vec::with_capacity(count * width);
    while centers.len() < count * width {
        let center = &points[next * width..(next + 1) * width];
        centers.extend_from_slice(center);
        nearest.par_iter_mut().zip(points.par_chunks_exact(width)).with_min_len(256).for_each(
            |(nearest, row)| {
                let distance: f32 = row.iter().zip(center).map(|(a, b)| (a - b) * (a - b)).sum();
                *nearest = nearest.min(distance);
            },
        );
        let total: f64 = nearest.iter().copied().map(f64::from).sum();
        let mut left = f64::from(random.between(0.0, 1.0)) * total;
        // If all rows coincide with a centre, any row will do.
        next = if total > 0.0 {
            let passed = |distance: &f32| {
                left -= f64::from(*distance);
                left < 0.0
            };
            nearest.iter().position(passed).unwrap_or(rows - 1)
        } else {
            random.below(rows)
        };
    }
    centers
}

/// The nearest centre of each row, and its squared distance.
fn assign(points: &[f32], centers: &[f32], width: usize) -> Result<Vec<(usize, f32)>, Error> {
    let nearest = Index::new(centers, width)?.nearest(points, 1)?;
    let first = |near: &Vec<Neighbor>| {
        near.first().map_or((0, f32::INFINITY), |near| (near.record as usize, near.distance))
    };
    Ok(nearest.iter().map(first).collect())
}

/// Moves each centre to the mean of its rows.
fn move_centers(points: &[f32], clusters: &[(usize, f32)], centers: &mut [f32], width: usize) {
    let (mut sums, mut sizes) = (vec![0.0_f64; centers.len()], vec![0_u32; centers.len() / width]);
    for (row, (cluster, _)) in points.chunks_exact(width).zip(clusters) {
        sizes[*cluster] += 1;
        sums[cluster * width..(cluster + 1) * width]
            .iter_mut()
            .zip(row)
            .for_each(|(sum, x)| *sum += f64::from(*x));
    }
    for ((center, sum), size) in centers.chunks_exact_mut(width).zip(sums.chunks_exact(width)).zip(sizes) {
        if size > 0 {
            center.iter_mut().zip(sum).for_each(|(center, sum)| *center = (sum / f64::from(size)) as f32);
        }
    }
}

/// A row that may come next, and its last known gain.
struct Candidate {
    gain: f32,
    place: usize,
    /// The number of placed rows when the gain was computed.
    known: usize,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.gain.total_cmp(&other.gain).then(other.place.cmp(&self.place))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

/// Orders the chosen rows greedily, by the gain of each row.
///
/// The gain is the amount by which the row shortens the distances of all chosen rows to their nearest placed
/// row. A chosen row counts as often as its cluster has rows. Distances are not squared: with squares, a row
/// between two clusters would come before a row in the middle of either.
///
/// The gain of a row can only fall when other rows are placed. So if a recomputed gain is at least as large as
/// all other known gains, it is the largest (Minoux 1978).
fn order(points: &[f32], width: usize, chosen: &[usize], sizes: &[f32]) -> Result<Vec<usize>, Error> {
    let rows: Vec<f32> =
        chosen.iter().flat_map(|row| &points[row * width..(row + 1) * width]).copied().collect();
    let near = Index::new(&rows, width)?.nearest(&rows, chosen.len())?;
    let by_place = |near: Vec<Neighbor>| {
        let mut distances = vec![f32::INFINITY; chosen.len()];
        for near in near {
            distances[near.record as usize] = near.distance.sqrt();
        }
        distances
    };
    let between: Vec<Vec<f32>> = near.into_iter().map(by_place).collect();
    let farthest = between.iter().flatten().copied().fold(0.0, f32::max);
    let mut nearest = vec![farthest; chosen.len()];
    let gain = |place: usize, nearest: &[f32]| -> f32 {
        let gains = between[place].iter().zip(nearest).zip(sizes);
        gains.map(|((distance, nearest), size)| size * (nearest - distance).max(0.0)).sum()
    };
    let first = (0..chosen.len()).map(|place| Candidate { gain: gain(place, &nearest), place, known: 0 });
    let (mut waiting, mut ordered) = (first.collect::<BinaryHeap<_>>(), Vec::with_capacity(chosen.len()));
    while let Some(candidate) = waiting.pop() {
        if candidate.known < ordered.len() {
            waiting.push(Candidate {
                gain: gain(candidate.place, &nearest),
                known: ordered.len(),
                ..candidate
            });
            continue;
        }
        ordered.push(chosen[candidate.place]);
        nearest
            .iter_mut()
            .zip(&between[candidate.place])
            .for_each(|(nearest, distance)| *nearest = nearest.min(*distance));
    }
    Ok(ordered)
}
