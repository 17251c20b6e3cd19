//! The centres of clusters in the units of the schema, and a map of them.
//!
//! Everything here follows from released centres and sizes and from public bounds, so it costs nothing.

use serde::Serialize;

use super::Clusters;
use crate::{
    data::{Schema, unscaled},
    features::eigen::eigen,
};

/// The centres of all clusters, in words and units.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Centres {
    /// The clusters, in the order of their numbers.
    pub clusters: Vec<Centre>,
    /// Standard deviation of the noise in a size, if sizes were released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_noise: Option<f64>,
    /// The shares of the spread between the centres that the two axes of the map show.
    pub map_shares: [f64; 2],
}

/// The centre of one cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Centre {
    /// The number of the cluster, from 1.
    pub cluster: usize,
    /// The noisy number of records (or users), if it was released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<f64>,
    /// The columns of the schema. Empty if the records are no table.
    pub columns: Vec<Coordinate>,
    /// The place of the centre on a map: its coordinates along the two directions of largest spread.
    pub map: [f64; 2],
}

/// What a centre says of one column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Coordinate {
    /// The name of the column.
    pub column: String,
    /// The mean number, or the shares of the categories.
    #[serde(flatten)]
    pub mean: Mean,
    /// The share of unknown cells, if the schema says that unknown cells have a feature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<f64>,
}

/// The released mean of a column in one cluster. Shares are clamped to [0, 1].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mean {
    /// A number, in the units of the column. A missing number counts as the middle of the bounds.
    Number(f64),
    /// The share of each category, in the order of the schema.
    Shares(Vec<Share>),
}

/// The share of a category.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The category, as the schema names it.
    pub category: String,
    /// Its share of the records, between 0 and 1.
    pub share: f64,
}

impl Mean {
    /// The category with the largest share; `None` for numbers.
    #[must_use]
    pub fn most_frequent(&self) -> Option<&Share> {
        let Self::Shares(shares) = self else { return None };
        // Of equal shares, the first.
        shares.iter().rev().max_by(|a, b| a.share.total_cmp(&b.share))
    }
}

impl Centres {
    /// Describes clusters of the records of a table, or of other records if there is no schema.
    #[must_use]
    pub fn new(clusters: &Clusters, schema: Option<&Schema>) -> Self {
        let schema = schema.filter(|schema| schema.features().len() == clusters.width);
        let (map, map_shares) = map(clusters);
        let sizes = clusters.sizes.as_deref();
        let centres = clusters.centres.chunks_exact(clusters.width.max(1)).zip(map);
        let centre = |(number, (centre, map)): (usize, (&[f32], [f64; 2]))| Centre {
            cluster: number + 1,
            size: sizes.and_then(|sizes| sizes.get(number)).map(|size| size.max(0.0)),
            columns: schema.map(|schema| coordinates(schema, centre)).unwrap_or_default(),
            map,
        };
        Self {
            clusters: centres.enumerate().map(centre).collect(),
            size_noise: sizes.map(|_| clusters.size_noise),
            map_shares,
        }
    }

    /// The columns, those in which the centres differ most first.
    ///
    /// The difference is that on the scale of training, so it says how much a column counts.
    #[must_use]
    pub fn order(&self, schema: Option<&Schema>) -> Vec<usize> {
        let count = self.clusters.first().map_or(0, |centre| centre.columns.len());
        let spread = |column: usize| {
            let bounds = schema.and_then(|schema| schema.columns.get(column)?.bounds());
            let points: Vec<Vec<f64>> = (self.clusters.iter())
                .map(|centre| match (&centre.columns[column].mean, bounds) {
                    (Mean::Number(number), Some([low, high])) => vec![2.0 * (number - low) / (high - low)],
                    (Mean::Number(number), None) => vec![*number],
                    (Mean::Shares(shares), _) => shares.iter().map(|share| share.share).collect(),
                })
                .collect();
            let width = points.first().map_or(0, Vec::len);
            (0..width)
                .map(|at| {
                    let mean = points.iter().map(|point| point[at]).sum::<f64>() / points.len() as f64;
                    points.iter().map(|point| (point[at] - mean).powi(2)).sum::<f64>()
                })
                .sum::<f64>()
        };
        let spreads: Vec<f64> = (0..count).map(spread).collect();
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|a, b| spreads[*b].total_cmp(&spreads[*a]));
        order
    }
}

/// The columns of one centre.
fn coordinates(schema: &Schema, centre: &[f32]) -> Vec<Coordinate> {
    let mut rest = centre.iter().map(|x| f64::from(*x));
    let mut next = move || rest.next().unwrap_or(0.0);
    let columns = schema.columns.iter().map(|column| {
        let mean = match (column.categories(), column.bounds()) {
            (Some(names), _) => Mean::Shares(
                (names.iter())
                    .map(|name| Share { category: name.clone(), share: next().clamp(0.0, 1.0) })
                    .collect(),
            ),
            (None, bounds) => Mean::Number(unscaled(next(), bounds.unwrap_or([-1.0, 1.0]))),
        };
        let unknown = column.unknown.then(|| next().clamp(0.0, 1.0));
        Coordinate { column: column.name.clone(), mean, unknown }
    });
    columns.collect()
}

/// The most clusters on a map. The time grows with the cube of their number.
const MOST_ON_MAP: usize = 256;

/// The centres along the two directions of largest spread, and the share of the spread of each.
///
/// The directions follow from the matrix of products of the centres, which is small where images have many
/// features.
fn map(clusters: &Clusters) -> (Vec<[f64; 2]>, [f64; 2]) {
    let (count, width) = (clusters.count(), clusters.width);
    if !(2..=MOST_ON_MAP).contains(&count) {
        return (vec![[0.0; 2]; count], [0.0; 2]);
    }
    let mut points: Vec<f64> = clusters.centres.iter().map(|x| f64::from(*x)).collect();
    for feature in 0..width {
        let mean = points.iter().skip(feature).step_by(width).sum::<f64>() / count as f64;
        points.iter_mut().skip(feature).step_by(width).for_each(|x| *x -= mean);
    }
    let row = |number: usize| &points[number * width..][..width];
    let product = |a: usize, b: usize| row(a).iter().zip(row(b)).map(|(x, y)| x * y).sum::<f64>();
    let products: Vec<f64> = (0..count * count).map(|at| product(at / count, at % count)).collect();
    let all: f64 = (0..count).map(|number| products[number * (count + 1)]).sum();
    if all <= 0.0 {
        return (vec![[0.0; 2]; count], [0.0; 2]);
    }
    let (values, vectors) = eigen(products, count);
    // An eigenvector times the root of its eigenvalue has the coordinates of all centres.
    let along = |direction: usize, number: usize| {
        vectors[direction * count + number] * values[direction].max(0.0).sqrt()
    };
    let places = (0..count).map(|number| [0, 1].map(|direction| along(direction, number)));
    (places.collect(), [0, 1].map(|direction| values[direction].max(0.0) / all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        let text = "[[column]]\nname = 'age'\nbounds = [20, 80]\nunknown = true\n[[column]]\nname = 'work'\n\
                    categories = ['private', 'state']\n";
        Schema::parse(text).unwrap()
    }

    #[test]
    fn centres_are_in_the_units_of_the_schema() {
        let centres = vec![0.0, 0.25, 0.8, 0.2, 1.0, 0.0, -0.1, 0.5];
        let clusters = Clusters { width: 4, centres, sizes: Some(vec![90.0, -3.0]), size_noise: 4.0 };
        let centres = Centres::new(&clusters, Some(&schema()));
        let [first, second] = centres.clusters.as_slice() else { unreachable!() };
        assert_eq!((first.cluster, first.size, second.size), (1, Some(90.0), Some(0.0)));
        assert_eq!(first.columns[0].mean, Mean::Number(50.0));
        assert_eq!((first.columns[0].unknown, first.columns[1].unknown), (Some(0.25), None));
        assert_eq!(second.columns[0].mean, Mean::Number(80.0));
        let most = |centre: &Centre| centre.columns[1].mean.most_frequent().unwrap().clone();
        assert_eq!(most(first).category, "private");
        assert!((most(first).share - 0.8).abs() < 1e-6);
        // Noise makes a share negative.
        let Mean::Shares(shares) = &second.columns[1].mean else { unreachable!() };
        assert_eq!((shares[0].share, most(second).category.as_str()), (0.0, "state"));
        // Without a schema, or with one of other features, no column has a name.
        assert!(Centres::new(&clusters, None).clusters[0].columns.is_empty());
        // The ages differ most on the scale of training, and not at all where both are 50.
        assert_eq!(centres.order(Some(&schema())), [0, 1]);
        let centres = vec![0.0, 0.25, 0.8, 0.2, 0.0, 0.0, -0.1, 0.5];
        let clusters = Clusters { centres, ..clusters };
        assert_eq!(Centres::new(&clusters, Some(&schema())).order(Some(&schema())), [1, 0]);
    }

    #[test]
    fn distances_on_the_map_are_those_of_centres_in_a_plane() {
        let points = [[1.0, 2.0, 0.5], [-1.0, 0.0, 0.5], [0.0, -1.0, 0.5], [2.0, 2.5, 0.5]];
        let centres: Vec<f32> = points.iter().flatten().map(|x| *x as f32).collect();
        let clusters = Clusters { width: 3, centres, sizes: None, size_noise: 1.0 };
        let found = Centres::new(&clusters, None);
        let distance =
            |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        for (a, of_a) in found.clusters.iter().zip(&points) {
            for (b, of_b) in found.clusters.iter().zip(&points) {
                assert!((distance(&a.map, &b.map) - distance(of_a, of_b)).abs() < 1e-9);
            }
        }
        assert!((found.map_shares[0] + found.map_shares[1] - 1.0).abs() < 1e-9);
        assert!(found.map_shares[0] > found.map_shares[1] && found.size_noise.is_none());
    }

    #[test]
    fn one_cluster_and_equal_centres_have_a_map_of_one_place() {
        for count in [1, 3] {
            let clusters = Clusters { width: 2, centres: vec![0.5; 2 * count], sizes: None, size_noise: 1.0 };
            let centres = Centres::new(&clusters, None);
            assert!(centres.clusters.iter().all(|centre| centre.map == [0.0; 2]), "{centres:?}");
        }
    }
}
