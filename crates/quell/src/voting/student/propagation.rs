//! Label spreading: computes soft labels of all rows from the labels of a few rows.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::count_rows;
use crate::{
    Error, Input,
    range::{INSIDE_UNIT, POSITIVE},
    voting::knn::Index,
};

/// Label spreading (Zhou et al. 2004): F ← αSF + (1 - α)Y.
///
/// F holds the soft labels and Y the answers. S holds the normalised weights of a graph in which each row has
/// edges to its nearest neighbours.
///
/// An answer has weight 1 - α only. So neighbours with other answers outvote a wrong answer even at the row
/// of that answer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Propagation {
    /// The number of neighbours of each row.
    pub neighbors: usize,
    /// The largest number of edges that an answer travels.
    pub steps: usize,
    /// α, the share taken from neighbours.
    /// With few answers, labels must spread far, and α should be near one. With hundreds of answers for each
    /// class, 0.95 is better.
    pub alpha: f64,
}

impl Default for Propagation {
    fn default() -> Self {
        Self { neighbors: 4, steps: 60, alpha: 0.99 }
    }
}

impl Propagation {
    /// Checks that every setting is in its range.
    pub fn check(&self) -> Result<(), Error> {
        POSITIVE.check("neighbors", self.neighbors as f64)?;
        POSITIVE.check("steps", self.steps as f64)?;
        INSIDE_UNIT.check("alpha", self.alpha)
    }

    /// Computes the class probabilities of each row from the classes of some rows.
    /// A row has `width` numbers. A row that no answer reaches has the same probability for all classes.
    ///
    /// ```
    /// use quell::voting::student::Propagation;
    /// let points = [0.0, 0.1, 0.2, 9.0, 9.1, 9.2];
    /// let soft_labels = Propagation { neighbors: 2, ..Propagation::default() }.spread(&points, 1, &[(0, 0), (5, 1)], 2)?;
    /// assert!(soft_labels[2 * 2] > 0.99 && soft_labels[3 * 2 + 1] > 0.99);
    /// # Ok::<(), quell::Error>(())
    /// ```
    pub fn spread(
        &self,
        points: &[f32],
        width: usize,
        labels: &[(usize, u32)],
        classes: usize,
    ) -> Result<Vec<f32>, Error> {
        self.check()?;
        let rows = count_rows(points, width)?;
        let answers = answers(labels, rows, classes)?;
        let graph = Graph::new(points, width, self.neighbors)?;
        let (mut soft_labels, mut next) = (answers.clone(), vec![0.0; rows * classes]);
        let alpha = self.alpha as f32;
        for _ in 0..self.steps {
            graph.step(alpha, &soft_labels, &answers, &mut next, classes);
            std::mem::swap(&mut soft_labels, &mut next);
        }
        for row in soft_labels.chunks_exact_mut(classes) {
            let total: f32 = row.iter().sum();
            if total > 0.0 && total.is_finite() {
                for share in row.iter_mut() {
                    *share /= total;
                }
            } else {
                row.fill(1.0 / classes as f32);
            }
        }
        Ok(soft_labels)
    }
}

/// The matrix Y, which holds the answers.
/// An answer has the value one divided by the number of answers of its class.
/// So a frequent class does not dominate the others.
fn answers(labels: &[(usize, u32)], rows: usize, classes: usize) -> Result<Vec<f32>, Error> {
    if classes == 0 {
        return Err(Error::Setting {
            name: "classes",
            found: "0".into(),
            expected: "a whole number above 0",
        });
    }
    if labels.is_empty() {
        return Err(Error::Missing { what: Input::Answers });
    }
    let mut counts = vec![0.0_f32; classes];
    for (row, class) in labels {
        if *row >= rows {
            let expected = "the index of a public row, counted from 0";
            return Err(Error::Setting { name: "row of a label", found: row.to_string(), expected });
        }
        let Some(count) = counts.get_mut(*class as usize) else {
            let expected = "one of the classes, counted from 0";
            return Err(Error::Setting { name: "label", found: class.to_string(), expected });
        };
        *count += 1.0;
    }
    let mut answers = vec![0.0; rows * classes];
    for (row, class) in labels {
        answers[row * classes + *class as usize] += counts[*class as usize].recip();
    }
    Ok(answers)
}

/// The nearest other rows of each row, with squared distances, nearest first.
/// Of rows at the same distance, the row with the lower index comes first.
fn nearest(points: &[f32], width: usize, count: usize) -> Result<Vec<Vec<(usize, f32)>>, Error> {
    // One more neighbour, because each row is its own nearest neighbour.
    let near = Index::new(points, width)?.nearest(points, count.saturating_add(1))?;
    let others = near.into_iter().enumerate().map(|(row, near)| {
        let others = near
            .into_iter()
            .map(|near| (near.record as usize, near.distance))
            .filter(|(other, _)| *other != row);
        others.take(count).collect()
    });
    Ok(others.collect())
}

/// The weights between neighbours, row after row.
struct Graph {
    /// Where the edges of each row begin, and where the last row ends.
    starts: Vec<usize>,
    edges: Vec<(usize, f32)>,
}

impl Graph {
    fn new(points: &[f32], width: usize, neighbors: usize) -> Result<Self, Error> {
        let near = nearest(points, width, neighbors)?;
        // The reach of a row is the distance to its farthest neighbour.
        let reach: Vec<f32> =
            near.iter().map(|row| row.last().map_or(0.0, |(_, distance)| distance.sqrt())).collect();
        let mut joined: Vec<Vec<(usize, f32)>> = vec![Vec::new(); near.len()];
        for (row, others) in near.iter().enumerate() {
            for (other, distance) in others {
                // Distances are divided by the reach of both rows (Zelnik-Manor and Perona 2005). So labels
                // spread equally well in dense and sparse regions.
                let weight = (-distance / (reach[row] * reach[*other]).max(f32::MIN_POSITIVE)).exp();
                joined[row].push((*other, weight));
                joined[*other].push((row, weight));
            }
        }
        for edges in &mut joined {
            // Two rows that are neighbours of each other have two edges. One is removed.
            edges.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
            edges.dedup_by_key(|(other, _)| *other);
        }
        let degrees: Vec<f32> =
            joined.iter().map(|edges| edges.iter().map(|(_, weight)| weight).sum()).collect();
        let mut graph = Self { starts: vec![0], edges: Vec::new() };
        for (row, edges) in joined.into_iter().enumerate() {
            let normal = |(other, weight): (usize, f32)| {
                (other, weight / (degrees[row] * degrees[other]).sqrt().max(f32::MIN_POSITIVE))
            };
            graph.edges.extend(edges.into_iter().map(normal));
            graph.starts.push(graph.edges.len());
        }
        Ok(graph)
    }

    /// to = αSF + (1 - α)Y.
    fn step(&self, alpha: f32, from: &[f32], answers: &[f32], to: &mut [f32], classes: usize) {
        let rows = to.par_chunks_exact_mut(classes).zip(answers.par_chunks_exact(classes)).enumerate();
        rows.with_min_len(256).for_each(|(row, (to, answers))| {
            to.iter_mut().zip(answers).for_each(|(to, answer)| *to = (1.0 - alpha) * answer);
            for (other, weight) in &self.edges[self.starts[row]..self.starts[row + 1]] {
                let soft_labels = &from[other * classes..(other + 1) * classes];
                to.iter_mut().zip(soft_labels).for_each(|(to, share)| *to += alpha * weight * share);
            }
        });
    }
}
