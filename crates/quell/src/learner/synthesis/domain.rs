//! The values that each column of a table can have: categories, or bins of numbers.
//!
//! They follow from the schema alone.

use crate::{
    Error,
    data::{Day, FeatureKind, Schema},
    random::PublicRandom,
};

/// The columns of a table, the label among them.
#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    /// The columns, in the order of a synthetic row.
    pub columns: Vec<Column>,
    /// The column that names users, if there is one.
    pub(super) user: Option<String>,
    /// Number of features of an example.
    pub(super) features: usize,
}

/// A column, and the values that it can have.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The name of the column.
    pub name: String,
    /// The known values.
    pub kind: Kind,
    /// Whether the numbers are days, which are written as dates.
    pub is_date: bool,
    /// Whether synthetic cells may be empty: the schema says that cells can be unknown.
    pub may_be_unknown: bool,
    /// The first of its features in an example.
    start: usize,
}

/// The known values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Numbers within bounds: the lower bound itself, equal bins between the bounds, the upper bound itself.
    Numbers([f64; 2]),
    /// Categories, as they are written in the cells.
    Categories(Vec<String>),
}

/// Bins of equal width between the bounds of a number.
///
/// Values at a bound are counted apart: many columns are mostly at one, and numbers beyond are clamped to it.
const BINS: usize = 32;
/// The most values of a column, and the most columns. They bound time and memory.
const MOST_VALUES: usize = 10_000;
const MOST_COLUMNS: usize = 256;

impl Domain {
    /// The columns of a schema, with the label as the last one.
    pub(super) fn new(schema: &Schema) -> Result<Self, Error> {
        if schema.texts().next().is_some() {
            return Err(Error::Setting {
                name: "the schema",
                found: "with a column of text".into(),
                expected: "numbers, categories, true or false, and dates in synthetic data; ignore the text",
            });
        }
        let read = schema.with_label_as_column();
        let may_be_unknown = schema.columns.iter().map(|column| column.unknown).chain([false]);
        let (mut columns, mut start) = (Vec::new(), 0);
        // Each column is one plain column here: there are no texts and no parts of dates.
        let plain = read.columns.iter().flat_map(|column| {
            let is_date = matches!(column.kind, FeatureKind::Date(_));
            column.plain().into_iter().map(move |plain| (plain, is_date))
        });
        for ((plain, is_date), may_be_unknown) in plain.zip(may_be_unknown) {
            let kind = match plain.bounds() {
                Some(bounds) => Kind::Numbers(bounds),
                None => Kind::Categories(plain.categories().unwrap_or_default().to_vec()),
            };
            let column = Column { name: plain.name, kind, is_date, may_be_unknown, start };
            if column.values() > MOST_VALUES {
                return Err(Error::Setting {
                    name: "a column",
                    found: format!("of {} values", column.values()),
                    expected: "at most 9,999 categories in a column of synthetic data",
                });
            }
            start += column.features();
            columns.push(column);
        }
        if columns.len() > MOST_COLUMNS {
            return Err(Error::Setting {
                name: "the schema",
                found: format!("of {} columns", columns.len()),
                expected: "at most 256 columns in synthetic data; ignore some",
            });
        }
        Ok(Self { columns, user: read.user, features: start })
    }

    /// Number of values of each column.
    pub(super) fn sizes(&self) -> Vec<usize> {
        self.columns.iter().map(Column::values).collect()
    }

    /// Writes the value of each column of an example.
    pub(super) fn write(&self, example: &[f32], values: &mut [u16]) {
        for (column, value) in self.columns.iter().zip(values) {
            *value = column.value(&example[column.start..][..column.features()]) as u16;
        }
    }
}

impl Column {
    /// Number of values. The last one stands for all unknown values.
    #[must_use]
    pub fn values(&self) -> usize {
        1 + match &self.kind {
            Kind::Numbers(_) => BINS + 2,
            Kind::Categories(names) => names.len(),
        }
    }

    /// Number of features: the number or the indicators of the categories, and whether the cell is unknown.
    fn features(&self) -> usize {
        1 + match &self.kind {
            Kind::Numbers(_) => 1,
            Kind::Categories(names) => names.len(),
        }
    }

    /// The value that stands for unknown cells.
    #[must_use]
    pub fn unknown(&self) -> usize {
        self.values() - 1
    }

    /// Whether a synthetic cell can have a value.
    pub(super) fn allows(&self, value: usize) -> bool {
        self.may_be_unknown || value != self.unknown()
    }

    /// Whether neighbouring values are similar.
    pub(super) fn is_ordered(&self) -> bool {
        matches!(self.kind, Kind::Numbers(_))
    }

    /// The value of a cell, by its features. It exists, whatever the features are.
    fn value(&self, features: &[f32]) -> usize {
        let unknown = self.unknown();
        if features.last().is_none_or(|is_unknown| *is_unknown > 0.5) {
            return unknown;
        }
        match self.kind {
            Kind::Numbers(_) => {
                let position = features[0];
                if position.is_nan() {
                    unknown
                } else if position <= -1.0 {
                    0
                } else if position >= 1.0 {
                    BINS + 1
                } else {
                    1 + ((f64::from(position) * 0.5 + 0.5) * BINS as f64).clamp(0.0, BINS as f64 - 1.0)
                        as usize
                }
            }
            Kind::Categories(_) => {
                features[..unknown].iter().position(|feature| *feature > 0.5).unwrap_or(unknown)
            }
        }
    }

    /// Where a number with a value lies: a bound, or the middle of a bin. `None` for other values.
    #[must_use]
    pub fn position(&self, value: usize) -> Option<f64> {
        let Kind::Numbers(bounds) = self.kind else { return None };
        match value {
            0 => Some(bounds[0]),
            1..=BINS => Some(f64::midpoint(edge(bounds, value - 1), edge(bounds, value))),
            _ => (value == BINS + 1).then_some(bounds[1]),
        }
    }

    /// Describes a value in a few words, for figures.
    #[must_use]
    pub fn describe(&self, value: usize) -> String {
        match &self.kind {
            _ if value == self.unknown() => "unknown".into(),
            Kind::Categories(names) => names[value].clone(),
            Kind::Numbers([low, high]) => match value {
                0 => self.written(*low),
                _ if value == BINS + 1 => self.written(*high),
                _ => format!(
                    "from {}",
                    self.written(rounded(edge([*low, *high], value - 1), [*low, *high], 3))
                ),
            },
        }
    }

    /// A cell with a value, as it is written: a number is drawn uniformly from its bin.
    ///
    /// Unknown cells are empty.
    pub(super) fn cell(&self, value: usize, random: &mut PublicRandom) -> String {
        match &self.kind {
            _ if value == self.unknown() => String::new(),
            Kind::Categories(names) => names[value].clone(),
            Kind::Numbers([low, high]) => match value {
                0 => self.written(*low),
                _ if value == BINS + 1 => self.written(*high),
                _ => {
                    let [from, to] = [value - 1, value].map(|bin| edge([*low, *high], bin));
                    let drawn = from + (to - from) * f64::from(random.between(0.0, 1.0));
                    self.written(round(drawn, [*low, *high]).clamp(*low, *high))
                }
            },
        }
    }

    /// A number as a cell shows it.
    fn written(&self, number: f64) -> String {
        if self.is_date { Day::at(number).to_string() } else { format!("{number}") }
    }
}

/// The lower edge of a bin.
fn edge([low, high]: [f64; 2], bin: usize) -> f64 {
    low + (high - low) * bin as f64 / BINS as f64
}

/// A number with about six digits of its range, which is finer than any bin.
fn round(number: f64, bounds: [f64; 2]) -> f64 {
    rounded(number, bounds, 5)
}

/// Rounds a number to so many digits of its range.
fn rounded(number: f64, [low, high]: [f64; 2], digits: u32) -> f64 {
    let unit = 10_f64.powf(f64::from(digits) - (high - low).log10().ceil());
    let rounded = (number * unit).round() / unit;
    if rounded.is_finite() { rounded } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = "[label]\ncolumn = 'y'\nclasses = ['n', 'p']\n[[column]]\nname = 'a'\nbounds = [0, 64]\n\
        [[column]]\nname = 'b'\ncategories = ['x', 'z']\nunknown = true\n";

    #[test]
    fn every_cell_has_a_value_whatever_its_features_are() {
        let domain = Domain::new(&Schema::parse(SCHEMA).unwrap()).unwrap();
        assert_eq!((domain.sizes(), domain.features), (vec![35, 3, 3], 8));
        let value = |example: [f32; 8]| {
            let mut values = [0; 3];
            domain.write(&example, &mut values);
            values
        };
        assert_eq!(value([-1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0]), [0, 0, 1]);
        assert_eq!(value([1.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0]), [33, 1, 0]);
        assert_eq!(value([-0.999, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0]), [1, 2, 2]);
        assert_eq!(value([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0]), [17, 2, 0]);
        let (nan, infinity) = (f32::NAN, f32::INFINITY);
        assert_eq!(value([nan, 0.0, nan, nan, nan, nan, infinity, 0.0]), [34, 2, 1]);
        assert_eq!(value([infinity, nan, infinity, 1e30, -1.0, -1.0, -infinity, nan]), [33, 0, 2]);
        assert_eq!(value([0.5, 1.0, 1.0, 0.0, infinity, 1.0, 0.0, 2.0]), [34, 2, 2]);
    }

    #[test]
    fn a_cell_that_is_written_has_the_value_from_which_it_was_drawn() {
        for bounds in [[0.0, 64.0], [-3.0, 0.5], [1e-9, 3e-9], [-1e12, 1e12]] {
            let column = Column {
                name: String::new(),
                kind: Kind::Numbers(bounds),
                is_date: false,
                may_be_unknown: true,
                start: 0,
            };
            let mut random = PublicRandom::new(1);
            for value in (0..column.unknown()).flat_map(|value| [value; 20]) {
                let number: f64 = column.cell(value, &mut random).parse().unwrap();
                let position = ((number - bounds[0]) / (bounds[1] - bounds[0]) * 2.0 - 1.0) as f32;
                let read = column.value(&[position, 0.0]);
                // A number at the edge of a bin may be rounded into the next one.
                assert!(read.abs_diff(value) <= 1, "{number}: {read} {value}");
                assert!((value == 0) == (number == bounds[0]) || value == 1, "{number} {value}");
            }
            assert_eq!(column.cell(column.unknown(), &mut random), "");
        }
    }
}
