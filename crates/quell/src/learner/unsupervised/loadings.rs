//! Principal components in words: the columns that each direction weighs most.
//!
//! Everything here follows from released directions and variances, so it costs nothing.

use serde::Serialize;

use super::Components;
use crate::data::Schema;

/// All directions of a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loadings {
    /// The directions, the largest variance first.
    pub directions: Vec<Direction>,
    /// The largest variance that noise alone would show.
    pub noise: f64,
}

/// A direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Direction {
    /// The number of the direction, from 1.
    pub direction: usize,
    /// The released variance along it.
    pub variance: f64,
    /// Whether the variance is larger than that of noise alone.
    pub is_above_noise: bool,
    /// The largest weights of features, at most 50. Numbers are scaled to [-1, 1], and indicators are 0 or 1.
    pub loadings: Vec<Loading>,
}

/// The weight of a feature in a direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loading {
    /// The feature: a column, `column=category`, or `feature 1` where features have no names.
    pub feature: String,
    /// Its weight. The squares of all weights add up to one.
    pub weight: f64,
    /// The released mean of the feature. The coordinate of a record has its features less their means.
    pub mean: f64,
}

/// The most features of a direction that are named.
const MOST_FEATURES: usize = 50;

impl Loadings {
    /// Describes the components of the records of a table, or of other records if there is no schema.
    #[must_use]
    pub fn new(components: &Components, schema: Option<&Schema>) -> Self {
        let width = components.pca.mean.len();
        let names = schema.map(Schema::features).filter(|names| names.len() == width);
        let name = |feature: usize| {
            names.as_ref().map_or_else(|| format!("feature {}", feature + 1), |names| names[feature].clone())
        };
        let directions = components.pca.components.chunks_exact(width.max(1)).zip(&components.pca.variances);
        let direction = |(number, (weights, variance)): (usize, (&[f32], &f64))| {
            let mut order: Vec<usize> = (0..width).collect();
            order.sort_by(|a, b| weights[*b].abs().total_cmp(&weights[*a].abs()));
            order.truncate(MOST_FEATURES);
            let loading = |feature: usize| Loading {
                feature: name(feature),
                weight: f64::from(weights[feature]),
                mean: f64::from(components.pca.mean[feature]),
            };
            Direction {
                direction: number + 1,
                variance: *variance,
                is_above_noise: *variance > components.noise,
                loadings: order.into_iter().map(loading).collect(),
            }
        };
        Self { directions: directions.enumerate().map(direction).collect(), noise: components.noise }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Pca;

    #[test]
    fn the_largest_loadings_come_first_with_their_names() {
        let schema = Schema::parse(
            "[[column]]\nname = 'age'\nbounds = [20, 80]\n[[column]]\nname = 'work'\ncategories = ['a', 'b']\n",
        );
        let pca = Pca {
            mean: vec![0.0; 3],
            components: vec![0.6, -0.8, 0.0, 0.8, 0.6, 0.0],
            variances: vec![0.5, 0.1],
        };
        let components = Components { pca, spectrum: vec![0.5, 0.1, 0.0], noise: 0.2 };
        let loadings = Loadings::new(&components, Some(&schema.unwrap()));
        let [first, second] = loadings.directions.as_slice() else { unreachable!() };
        let names: Vec<&str> = first.loadings.iter().map(|loading| loading.feature.as_str()).collect();
        assert_eq!(names, ["work=a", "age", "work=b"]);
        // The weights are those of the model: a coordinate is computed with the same sign.
        assert!((first.loadings[0].weight + 0.8).abs() < 1e-6 && first.loadings[1].weight > 0.0);
        assert!(first.is_above_noise && !second.is_above_noise);
        assert_eq!(Loadings::new(&components, None).directions[1].loadings[0].feature, "feature 1");
    }
}
