//! The settings of a factorization of ratings, some of which may be missing.

use serde::{Deserialize, Serialize};

use crate::{
    Error,
    learner::{Privacy, section::Guaranteed},
};

/// The name of the model, as settings write it.
pub const NAME: &str = "factorization";

/// The model in words, for a title.
pub const TITLE: &str = "Recommendations";

/// One sentence on the model and its use.
pub const PURPOSE: &str = "Recommendations from ratings: popularity, biases and factors of public --items.";

/// The settings of a factorization. Missing settings are chosen from public facts alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// The privacy guarantee. It protects each user with all their ratings.
    pub privacy: Privacy,
    /// A public number of users. It need not be exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// The smallest and the largest rating. A rating beyond them counts as the nearer one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<[f64; 2]>,
    /// Whether factors are found, besides popularity and biases. By default: if they stand out from noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factors: Option<bool>,
}

impl Guaranteed for Recipe {
    fn guarantee(&mut self) -> (&mut Privacy, &mut Option<u64>) {
        (&mut self.privacy, &mut self.records)
    }
}

impl Recipe {
    /// The declared bounds.
    pub(super) fn scale(&self) -> Result<Scale, Error> {
        let found =
            self.bounds.map_or_else(|| "not given".into(), |[lower, upper]| format!("{lower} and {upper}"));
        let bounds = self.bounds.filter(|[lower, upper]| {
            let fits = |x: f64| x.abs() <= f64::from(f32::MAX);
            fits(*lower) && fits(*upper) && (upper - lower) as f32 > 0.0
        });
        bounds.map(|[lower, upper]| Scale { lower, upper }).ok_or(Error::Setting {
            name: "bounds",
            found,
            expected: "the smallest and the largest possible rating, such as 0.5 and 5",
        })
    }
}

/// The map from ratings to stars. All numbers of the method are chosen for stars.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    pub(super) lower: f64,
    pub(super) upper: f64,
}

impl Scale {
    /// The number of stars between the bounds.
    pub(super) const STARS: f64 = 4.5;
    /// The public guess of a rating, in stars above the lower bound.
    pub(super) const GUESS: f64 = 3.0;

    /// A rating in stars, from 0 to [`Self::STARS`]; `None` if it is not finite.
    pub(super) fn stars(self, rating: f32) -> Option<f32> {
        let position = (f64::from(rating) - self.lower) / (self.upper - self.lower);
        rating.is_finite().then(|| (position.clamp(0.0, 1.0) * Self::STARS) as f32)
    }

    /// The rating that a number of stars stands for, within the bounds.
    pub(super) fn rating(self, stars: f64) -> f64 {
        self.lower + stars.clamp(0.0, Self::STARS) / Self::STARS * (self.upper - self.lower)
    }
}

/// Sorts ratings by item, and replaces all ratings of one item by their mean.
///
/// The result depends on these ratings alone, and not on their order.
pub(super) fn merged(mut ratings: Vec<(u32, f32)>) -> Vec<(u32, f32)> {
    ratings.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    ratings
        .chunk_by(|a, b| a.0 == b.0)
        .map(|same| {
            let sum: f64 = same.iter().map(|(_, value)| f64::from(*value)).sum();
            (same[0].0, (sum / same.len() as f64) as f32)
        })
        .collect()
}
