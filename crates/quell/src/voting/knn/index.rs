//! Exact nearest-neighbour search: matrix products select candidates, then exact distances decide.

use rayon::prelude::*;

use super::candidates::{Candidates, Margin};
use crate::{
    Error,
    kernel::{
        numbers::squared_length,
        product::{Into, Matrix, multiply},
        scratch,
        search::{not_above, products_with, squared_distances},
    },
};

/// A record near a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbor {
    /// The index of the record.
    pub record: u32,
    /// The squared Euclidean distance from the query, Σ (x - y)².
    pub distance: f32,
}

/// An index of private vectors for nearest-neighbour search.
///
/// A distance is the sum of squared differences in double precision, rounded once. It depends on the query
/// and the record only, to the last bit and on every machine. It is accurate even if the two are nearly
/// equal. Of records at the same distance, the record with the lower index is nearer.
///
/// # Contract
/// The answer to a query depends on the query and its sample only. If one record is added to the sample, the
/// answer stays the same, or the record enters the answer and at most one other record leaves it. So votes
/// change by at most √2 in L2.
///
/// A record or query with a number that is not finite has no distance: such a record is never a neighbour,
/// and such a query has no neighbours.
///
/// ```
/// use quell::voting::knn::Index;
/// let index = Index::new(&[0.0, 0.0, 3.0, 4.0, 1.0, 0.0], 2)?;
/// let near = &index.nearest(&[3.0, 3.0], 2)?[0];
/// assert_eq!([(near[0].record, near[0].distance), (near[1].record, near[1].distance)], [(1, 1.0), (2, 13.0)]);
/// let near = &index.nearest_among(&[3.0, 3.0], &[vec![0, 2]], 1)?[0];
/// assert_eq!(near[0].record, 2);
/// # Ok::<(), quell::Error>(())
/// ```
pub struct Index {
    rows: Vec<f32>,
    width: usize,
    margin: Margin,
    /// The [`Margin::offset`] of each record; infinite if it is never a neighbour.
    offsets: Vec<f32>,
}

/// The largest number of queries in one product.
/// A block of records is fetched from memory once for this number of queries.
const QUERIES: usize = 384;
/// The number of records in a block.
/// The product of a block with the queries stays in the cache until it is used.
const RECORDS: usize = 256;
/// The size of a tile of records, in numbers.
/// Tiles are used where each query has its own sample.
const TILE: usize = 1 << 16;
/// The share of sampled records above which one product with all records is faster.
/// Below this share, separate products with the records of the sample are faster.
const DENSE: f64 = 0.25;

impl Index {
    /// Builds an index from rows of `width` numbers, one after the other.
    pub fn new(rows: &[f32], width: usize) -> Result<Self, Error> {
        check_rows("rows", rows, width)?;
        if u32::try_from(rows.len() / width).is_err() {
            return Err(Error::Setting {
                name: "rows",
                found: "2³² or more".into(),
                expected: "fewer than 2³²",
            });
        }
        let (mut rows, margin) = (rows.to_vec(), Margin::new(width));
        let offsets = rows.par_chunks_exact_mut(width).map(|row| {
            if row.iter().all(|x| x.is_finite()) {
                return margin.offset(squared_length(row));
            }
            row.fill(0.0);
            f32::INFINITY
        });
        Ok(Self { offsets: offsets.collect(), rows, width, margin })
    }

    /// The number of records. It is private, like the records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether the index is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// The number of components of a vector.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Finds the nearest `k` of all records for each query, nearest first.
    /// A query is a row of [`width`](Self::width) numbers. If there are fewer than `k` records, the answer
    /// has all of them.
    pub fn nearest(&self, queries: &[f32], k: usize) -> Result<Vec<Vec<Neighbor>>, Error> {
        check_rows("queries", queries, self.width)?;
        Ok(self.search(queries, None, k))
    }

    /// Finds the nearest `k` records of each query's own sample.
    /// A sample holds indices of records in ascending order. If it has fewer than `k` records, the answer has
    /// all of them.
    pub fn nearest_among(
        &self,
        queries: &[f32],
        samples: &[Vec<usize>],
        k: usize,
    ) -> Result<Vec<Vec<Neighbor>>, Error> {
        check_rows("queries", queries, self.width)?;
        let wrong =
            |found: &str, expected| Err(Error::Setting { name: "samples", found: found.into(), expected });
        if samples.len() != queries.len() / self.width {
            return wrong(&format!("a list of {}", samples.len()), "a sample for each query");
        }
        let ascending = |sample: &Vec<usize>| {
            sample.is_sorted_by(|a, b| a < b) && sample.last().is_none_or(|record| *record < self.len())
        };
        if !samples.par_iter().all(ascending) {
            return wrong("not in order", "records of the index in ascending order, each once");
        }
        Ok(self.search(queries, Some(samples), k))
    }

    fn search(&self, queries: &[f32], samples: Option<&[Vec<usize>]>, k: usize) -> Vec<Vec<Neighbor>> {
        // Each thread gets the same number of groups, and no group is large.
        let (count, threads) = (queries.len() / self.width, rayon::current_num_threads());
        let group = count.div_ceil(threads * count.div_ceil(threads * QUERIES).max(1)).max(1);
        let groups = queries.par_chunks(group * self.width).enumerate();
        let answers = groups.flat_map_iter(|(number, queries)| {
            let samples = samples.map(|samples| &samples[number * group..][..queries.len() / self.width]);
            self.search_group(queries, samples, k)
        });
        answers.collect()
    }

    fn search_group(&self, queries: &[f32], samples: Option<&[Vec<usize>]>, k: usize) -> Vec<Vec<Neighbor>> {
        let candidates = queries.chunks_exact(self.width).map(|query| {
            let length = squared_length(query);
            Candidates::new(if length.is_finite() { k } else { 0 }, self.margin, length)
        });
        let mut candidates: Vec<Candidates> = candidates.collect();
        let doubled: Vec<f32> = queries.iter().map(|x| -2.0 * x).collect();
        let pairs = |samples: &[Vec<usize>]| samples.iter().map(Vec::len).sum::<usize>() as f64;
        match samples {
            Some(samples) if pairs(samples) < DENSE * (self.len() * samples.len()) as f64 => {
                self.scan_samples(&doubled, samples, &mut candidates);
            }
            samples => self.scan_all(&doubled, samples, &mut candidates),
        }
        self.measure(queries, &mut candidates);
        let neighbor = |(record, distance)| Neighbor { record: record as u32, distance };
        candidates.into_iter().map(|candidates| candidates.nearest().map(neighbor).collect()).collect()
    }

    /// Scans all records block by block, with matrix products.
    fn scan_all(&self, doubled: &[f32], samples: Option<&[Vec<usize>]>, candidates: &mut [Candidates]) {
        let mut found = Vec::with_capacity(RECORDS);
        let mut rests: Option<Vec<&[usize]>> =
            samples.map(|samples| samples.iter().map(Vec::as_slice).collect());
        scratch(candidates.len() * RECORDS, |products| {
            let blocks = self.rows.chunks(RECORDS * self.width).zip(self.offsets.chunks(RECORDS)).enumerate();
            for (block, (rows, offsets)) in blocks {
                let first = block * RECORDS;
                let transposed = Matrix::new(rows, self.width).transposed();
                multiply(Matrix::new(doubled, self.width), transposed, products, RECORDS, Into::Overwrite);
                for (query, (candidates, products)) in
                    candidates.iter_mut().zip(products.chunks_exact(RECORDS)).enumerate()
                {
                    if candidates.wanted() == 0 {
                        continue;
                    }
                    found.clear();
                    not_above(&products[..offsets.len()], offsets, candidates.bound(), &mut found);
                    let sample = rests.as_mut().map(|rests| take_until(&mut rests[query], first + RECORDS));
                    for place in found.iter().map(|place| *place as usize) {
                        if sample.is_none_or(|sample| sample.binary_search(&(first + place)).is_ok()) {
                            candidates.push(first + place, products[place], offsets[place]);
                        }
                    }
                    candidates.tidy(&self.offsets);
                }
            }
        });
    }

    /// Scans the records of each sample, tile by tile.
    /// A record that was fetched for one query is then in the cache for the others.
    fn scan_samples(&self, doubled: &[f32], samples: &[Vec<usize>], candidates: &mut [Candidates]) {
        let records = (TILE / self.width).max(1);
        let mut rests: Vec<&[usize]> = samples.iter().map(Vec::as_slice).collect();
        scratch(records, |products| {
            for first in (0..self.len()).step_by(records) {
                let queries = doubled.chunks_exact(self.width).zip(&mut rests).zip(candidates.iter_mut());
                for ((query, rest), candidates) in queries.filter(|(_, candidates)| candidates.wanted() > 0) {
                    let sample = take_until(rest, first + records);
                    products_with(query, &self.rows, sample.iter().copied(), &mut products[..sample.len()]);
                    for (record, product) in sample.iter().zip(&*products) {
                        let offset = self.offsets[*record];
                        let above = *product + offset > candidates.bound();
                        if !above {
                            candidates.push(*record, *product, offset);
                        }
                    }
                    candidates.tidy(&self.offsets);
                }
            }
        });
    }

    /// Computes the exact distances of the remaining candidates, record by record.
    /// Each record is fetched once for all queries.
    fn measure(&self, queries: &[f32], candidates: &mut [Candidates]) {
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for (query, candidates) in candidates.iter_mut().enumerate() {
            pairs.extend(candidates.remaining(&self.offsets).map(|record| (record as u32, query as u32)));
        }
        pairs.sort_unstable();
        let mut distances = vec![0.0; candidates.len()];
        for pairs in pairs.chunk_by(|a, b| a.0 == b.0) {
            let record = pairs[0].0 as usize;
            let row = &self.rows[record * self.width..(record + 1) * self.width];
            squared_distances(
                row,
                queries,
                pairs.iter().map(|pair| pair.1 as usize),
                &mut distances[..pairs.len()],
            );
            for ((_, query), distance) in pairs.iter().zip(&distances) {
                candidates[*query as usize].measured(record, *distance as f32);
            }
        }
    }
}

/// Takes the records before `end` from the rest of a sample.
/// A linear scan stays in the cache; a binary search would touch distant memory.
fn take_until<'a>(rest: &mut &'a [usize], end: usize) -> &'a [usize] {
    let (taken, left) = rest.split_at(rest.iter().take_while(|record| **record < end).count());
    *rest = left;
    taken
}

fn check_rows(name: &'static str, rows: &[f32], width: usize) -> Result<(), Error> {
    if width == 0 {
        return Err(Error::Setting { name: "width", found: "0".into(), expected: "at least 1" });
    }
    if !rows.len().is_multiple_of(width) {
        return Err(Error::Setting {
            name,
            found: "cut off inside a row".into(),
            expected: "whole rows of the width",
        });
    }
    Ok(())
}
