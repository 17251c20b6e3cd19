//! The numbers that a record adds to the sums of its class.

use std::ops::Range;

use crate::data::Schema;

/// One column of a table, and the features that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A number in [-1, 1], at this place among the features.
    Number(usize),
    /// The indicators of the categories. At most one of them is one.
    Categories(Range<usize>),
}

/// The layout of the numbers that a record adds to the sums of its class.
///
/// The first is a constant. A number x follows as x and 1 - x², and a category as its indicators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) parts: Vec<Part>,
    /// Number of features of an example.
    pub(super) features: usize,
}

impl Block {
    /// The layout for the columns of a schema. Without a schema, each of `features` features is a number.
    ///
    /// A category that is not known is one more category if the schema says so, and adds nothing otherwise.
    /// A number that is not known is zero, as it is for predictions; its indicator is not used.
    pub(super) fn new(schema: Option<&Schema>, features: usize) -> Self {
        let Some(schema) = schema else {
            return Self { parts: (0..features).map(Part::Number).collect(), features };
        };
        let (mut parts, mut next) = (Vec::new(), 0);
        for column in &schema.columns {
            let unknown = usize::from(column.unknown);
            let width = column.categories().map_or(1, <[_]>::len) + unknown;
            parts.push(match column.categories() {
                Some(_) => Part::Categories(next..next + width),
                None => Part::Number(next),
            });
            next += width;
        }
        Self { parts, features: next }
    }

    /// Number of numbers in a block.
    pub(super) fn len(&self) -> usize {
        let width = |part: &Part| match part {
            Part::Number(_) => 2,
            Part::Categories(range) => range.len(),
        };
        1 + self.parts.iter().map(width).sum::<usize>()
    }

    /// The constant of every record, before the block is shortened.
    pub(super) fn constant(&self) -> f64 {
        0.5 * (self.parts.len() as f64).sqrt()
    }

    /// The length by which a block is divided, so that it has length at most one.
    ///
    /// # Theorem
    /// (THEORY, Naive Bayes) For x in [-1, 1], x² + (1 - x²)² = 1 - x²(1 - x²) ≤ 1, and at most one indicator
    /// of a column is one. So d columns and the constant w₀ have length at most √(w₀² + d).
    pub(super) fn length(&self) -> f64 {
        (self.constant().powi(2) + self.parts.len() as f64).sqrt()
    }

    /// Writes the block of an example, divided by its largest length.
    #[inline(always)]
    pub(super) fn write(&self, example: &[f32], into: &mut [f32]) {
        let factor = self.length().recip() as f32;
        into[0] = self.constant() as f32 * factor;
        let mut place = 1;
        for part in &self.parts {
            match part {
                Part::Number(feature) => {
                    let x = example[*feature].clamp(-1.0, 1.0);
                    (into[place], into[place + 1]) = (factor * x, factor * (1.0 - x * x));
                    place += 2;
                }
                Part::Categories(range) => {
                    let to = &mut into[place..place + range.len()];
                    to.iter_mut().zip(&example[range.clone()]).for_each(|(to, x)| *to = factor * x);
                    place += range.len();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_length_at_most_one_and_some_have_nearly_one() {
        let schema = "[label]\ncolumn = 'y'\nclasses = ['n', 'p']\n[[column]]\nname = 'a'\nbounds = [0, 1]\n\
            unknown = true\n[[column]]\nname = 'b'\nbounds = [0, 1]\n[[column]]\nname = 'c'\ncategories = ['x', 'y']\n";
        let block = Block::new(Some(&Schema::parse(schema).unwrap()), 0);
        assert_eq!((block.features, block.len(), block.parts.len()), (5, 7, 3));
        let (mut into, mut most) = (vec![0.0; 7], 0.0_f64);
        for a in -20..=20 {
            for b in -20..=20 {
                for category in [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]] {
                    let (a, b) = (a as f32 / 10.0, b as f32 / 10.0);
                    block.write(&[a, 1.0, b, category[0], category[1]], &mut into);
                    most = most.max(into.iter().map(|x| f64::from(*x).powi(2)).sum());
                }
            }
        }
        assert!((0.999..=1.0 + 1e-6).contains(&most), "{most}");
    }

    #[test]
    fn without_a_schema_every_feature_is_a_number() {
        let block = Block::new(None, 3);
        assert_eq!((block.len(), block.features), (7, 3));
        let mut into = vec![0.0; 7];
        block.write(&[0.5, f32::NAN, f32::INFINITY], &mut into);
        let expected = [(1, 0.5), (2, 0.75), (5, 1.0), (6, 0.0)];
        for (place, x) in expected {
            assert!((f64::from(into[place]) * block.length() - x).abs() < 1e-6, "{place}: {into:?}");
        }
        assert!(into[3].is_nan(), "a record with NaN has no length, and adds nothing");
    }
}
