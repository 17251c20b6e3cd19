//! The vector of each user in each run, of length at most one.
//!
//! Why no vector is longer is in the theory, Recommendations. The mechanism clips in any case, so privacy
//! does not depend on it.

use quell_privacy::{
    Neighbors,
    ledger::Unit,
    mechanism::{Clipper, Contributions},
};

use super::recipe::{Scale, merged};
use crate::{
    Error,
    data::Examples,
    learner::{
        ProtectedRecords, Supervised,
        loss::{Loss, Target},
        sums::{Sparse, add_sparse},
    },
    network::Task,
};

/// The ratings of each user, each item once, in stars. A user is a record.
pub struct Ratings {
    users: Vec<Vec<(u32, f32)>>,
}

impl Ratings {
    /// Groups ratings by user. `records` is the public number of users.
    pub(super) fn new(
        examples: &Examples,
        (unit, neighbors, records): (Unit, Neighbors, u64),
        items: usize,
        scale: Scale,
    ) -> Result<Self, Error> {
        check_unit(unit)?;
        // The loss is not used.
        let grouped = Supervised::new(examples, Loss::Squared, None).protecting(unit, neighbors, records)?;
        let user = |record: usize| {
            let rating = |number: usize| {
                let mut value = [0.0];
                grouped.gather(record, number, &mut value);
                let Target::Class(item) = grouped.target_of(record, number) else { return None };
                Some((item, scale.stars(value[0])?)).filter(|_| (item as usize) < items)
            };
            merged((0..grouped.examples(record)).filter_map(rating).collect())
        };
        Ok(Self { users: (0..grouped.records()).map(user).collect() })
    }
}

impl ProtectedRecords for Ratings {
    fn records(&self) -> usize {
        self.users.len()
    }

    fn unit(&self) -> Unit {
        Unit::User
    }
}

/// Refuses a privacy unit that is not the user.
pub(super) fn check_unit(unit: Unit) -> Result<(), Error> {
    if unit == Unit::User {
        return Ok(());
    }
    Err(Error::Setting {
        name: "the privacy unit",
        found: "an example".into(),
        expected: "a user: all ratings of one user together are one record of this model",
    })
}

/// Marks an item that a run does not use.
pub(super) const NO_PLACE: u32 = u32::MAX;

/// What one run of the mechanism sums. `places` maps each item to its place, or to [`NO_PLACE`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage<'a> {
    /// The items of a user.
    Popularity { items: usize },
    /// The kept items of a user, and their ratings about the mean of the user.
    Biases { places: &'a [u32], count: usize },
    /// The pairs of items of a user, among those with factors.
    Pairs { places: &'a [u32], count: usize },
}

/// The share of the squared length of a vector that shows which items are rated.
pub(super) const SHARE_OF_ITEMS: f64 = 0.6;
/// The share of the squared length of a vector that shows the ratings.
pub(super) const SHARE_OF_RATINGS: f64 = 1.0 - SHARE_OF_ITEMS;

impl Stage<'_> {
    /// Number of numbers in the vector of a user.
    pub(super) fn length(&self) -> usize {
        match *self {
            Self::Popularity { items } => items,
            Self::Biases { count, .. } => 2 * count,
            Self::Pairs { count, .. } => count * (count + 1) / 2,
        }
    }

    /// Writes the vector of a user. `own` is a buffer for places and numbers.
    fn write(&self, ratings: &[(u32, f32)], vector: &mut Sparse, own: &mut Vec<(usize, f64)>) {
        own.clear();
        match *self {
            Self::Popularity { .. } => {
                let each = (ratings.len() as f64).sqrt().recip();
                for (item, _) in ratings {
                    vector.add(*item as usize, each);
                }
            }
            Self::Biases { places, count } => {
                let mean = ratings.iter().map(|(_, stars)| f64::from(*stars)).sum::<f64>()
                    / ratings.len().max(1) as f64;
                let kept = ratings.iter().filter(|(item, _)| places[*item as usize] != NO_PLACE);
                own.extend(
                    kept.map(|(item, stars)| (places[*item as usize] as usize, f64::from(*stars) - mean)),
                );
                let size = (own.len() as f64).sqrt();
                let length = own.iter().map(|(_, r)| r * r).sum::<f64>().sqrt();
                // The deviations are at most √m long, for m items.
                let factor = if length > size { size / length } else { 1.0 };
                for (place, r) in own {
                    vector.add(*place, SHARE_OF_ITEMS.sqrt() / size);
                    vector.add(count + *place, SHARE_OF_RATINGS.sqrt() * factor * *r / size);
                }
            }
            Self::Pairs { places, count } => {
                own.extend(
                    ratings
                        .iter()
                        .map(|(item, _)| places[*item as usize])
                        .filter(|place| (*place as usize) < count)
                        .map(|place| (place as usize, 0.0)),
                );
                own.sort_unstable_by_key(|(place, _)| *place);
                let square = (own.len() as f64).recip();
                for (number, (row, _)) in own.iter().enumerate() {
                    let start = row * count - row * row.saturating_sub(1) / 2;
                    for (column, _) in &own[number..] {
                        let weight = if row == column { 1.0 } else { std::f64::consts::SQRT_2 };
                        vector.add(start + column - row, weight * square);
                    }
                }
            }
        }
    }
}

/// The vectors of all users in one run.
pub struct Vectors<'a> {
    ratings: &'a Ratings,
    stage: Stage<'a>,
    /// Numbers of a release of the mechanism, at least as many as those of a vector.
    dimension: usize,
}

impl<'a> Vectors<'a> {
    pub(super) fn new(ratings: &'a Ratings, stage: Stage<'a>, dimension: usize) -> Self {
        Self { ratings, stage, dimension }
    }
}

impl Contributions for Vectors<'_> {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]) {
        add_sparse(blocks, clipper, sum, self.stage.length(), Vec::new, |record, vector, own| {
            self.stage.write(&self.ratings.users[record], vector, own);
            // A user has each item once.
            false
        });
    }
}

#[cfg(test)]
mod tests;
