//! Vectors with few numbers that are not zero.

use quell_privacy::mechanism::Clipper;

use crate::{kernel::numbers::squared_length, learner::blocks::add_blocks};

/// A vector with few numbers that are not zero.
#[derive(Clone, Debug, Default)]
pub(in crate::learner) struct Sparse {
    /// Places and numbers, as they were added. A place may occur several times.
    entries: Vec<(usize, f64)>,
    /// Each place once, and its number.
    places: Vec<usize>,
    values: Vec<f32>,
}

impl Sparse {
    /// Adds a number at a place.
    pub(in crate::learner) fn add(&mut self, place: usize, number: f64) {
        self.entries.push((place, number));
    }

    /// All places and numbers that were added.
    #[cfg(test)]
    pub(in crate::learner) fn entries(&self) -> &[(usize, f64)] {
        &self.entries
    }

    /// Adds up the numbers of each place. The result does not depend on their order.
    fn merge(&mut self, is_repeated: bool) {
        self.places.clear();
        self.values.clear();
        if is_repeated {
            self.entries.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        }
        for same in self.entries.chunk_by(|a, b| a.0 == b.0) {
            self.places.push(same[0].0);
            self.values.push(same.iter().map(|entry| entry.1).sum::<f64>() as f32);
        }
        self.entries.clear();
    }
}

/// Adds the clipped vectors of some blocks of records, each of `length` numbers, to a sum.
///
/// `write` adds the numbers of a record to an empty vector, and returns whether a place may be repeated.
/// `buffers` makes the buffers of one thread.
pub(in crate::learner) fn add_sparse<B>(
    blocks: &[&[usize]],
    clipper: &Clipper,
    sum: &mut [f64],
    length: usize,
    buffers: impl Fn() -> B + Sync,
    write: impl Fn(usize, &mut Sparse, &mut B) -> bool + Sync,
) {
    add_blocks(blocks, sum, |blocks| {
        let (mut total, mut vector, mut buffers) = (vec![0.0; length], Sparse::default(), buffers());
        for record in blocks.iter().flat_map(|block| *block) {
            let is_repeated = write(*record, &mut vector, &mut buffers);
            vector.merge(is_repeated);
            let mut scale = [0.0];
            clipper.scales(&[squared_length(&vector.values)], &mut scale);
            // Zero times a number that is not finite is not zero.
            if scale[0] != 0.0 {
                for (place, value) in vector.places.iter().zip(&vector.values) {
                    total[*place] += f64::from(scale[0]) * f64::from(*value);
                }
            }
        }
        total
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_one_place_are_added_up_whatever_their_order() {
        let entries = [(7, 0.1), (2, 0.3), (7, -0.5), (2, 1e-9)];
        let merged = |order: [usize; 4]| {
            let mut vector = Sparse::default();
            for number in order {
                vector.add(entries[number].0, entries[number].1);
            }
            vector.merge(true);
            (vector.places, vector.values)
        };
        let (places, values) = merged([0, 1, 2, 3]);
        assert_eq!((places, values), (vec![2, 7], vec![(0.3 + 1e-9) as f32, (0.1 - 0.5) as f32]));
        assert_eq!(merged([3, 2, 1, 0]), merged([0, 1, 2, 3]));
        assert_eq!(merged([2, 0, 3, 1]), merged([0, 1, 2, 3]));
    }
}
