//! Statistics for each cell: keys or bins of one or two columns, or disjoint conditions.

use quell_privacy::{
    mechanism::{
        Bounds, GroupedMean, GroupedQuantile, GroupedSum, Histogram, KeyedNumber, Price, Quantile, Release,
        Sensitive, StableHistogram,
    },
    units::{Epsilon, Probability},
};

use super::{Answer, Bins, Visitor};
use crate::{
    Error,
    data::{Filter, Predicate, Row, Selection, Use, fractions_as_keys},
    error::quoted,
};

/// A column, or a list of conditions, that divides the records.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Name of the column. Conditions name their columns themselves, and leave it empty.
    pub column: String,
    /// How it divides the records.
    pub partition: Partition,
}

/// How the records are divided. A record is in one part at most.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Partition {
    /// By these keys. Records with another key or none are left out.
    Keys(Vec<String>),
    /// Into these bins of numbers. Records without a finite number, or with one that is in no bin, are left out.
    Bins(Bins),
    /// By conditions of which no record can satisfy two. Records that satisfy none are left out.
    ///
    /// Conditions are refused unless this is proved from their texts.
    Conditions(Vec<Predicate>),
}

/// A statistic for each cell: a part of one column, or a pair of parts of two columns.
///
/// A record is in one cell at most, so all cells together cost one ε. The number of records for each key of one
/// column is [`Statistic::Histogram`](super::Statistic::Histogram), too.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Grouped {
    /// Number of records in each cell.
    Count {
        /// One or two columns that divide the records.
        by: Vec<Axis>,
    },
    /// Sum of a column in each cell.
    Sum {
        /// Name of the column with the numbers.
        column: String,
        /// Range that every number is clamped to.
        bounds: Bounds,
        /// One or two columns that divide the records.
        by: Vec<Axis>,
    },
    /// Mean of a column in each cell.
    Mean {
        /// Name of the column with the numbers.
        column: String,
        /// Range that every number is clamped to.
        bounds: Bounds,
        /// One or two columns that divide the records.
        by: Vec<Axis>,
    },
    /// Quantile of a column in each cell.
    Quantile {
        /// Name of the column with the numbers.
        column: String,
        /// Range that every number is clamped to.
        bounds: Bounds,
        /// Which quantile: 0.5 is the median.
        quantile: Probability,
        /// One or two columns that divide the records.
        by: Vec<Axis>,
    },
    /// Number of records for each pair of keys of two columns, for the pairs that many records have.
    UnknownPairs {
        /// Names of the two columns.
        columns: [String; 2],
    },
}

/// The most cells of an answer.
const MOST_CELLS: usize = 100_000;

impl Axis {
    /// A column that divides the records by keys.
    #[must_use]
    pub fn keys(column: impl Into<String>, keys: Vec<String>) -> Self {
        Self { column: column.into(), partition: Partition::Keys(keys) }
    }

    /// A column of numbers that divides the records into bins.
    #[must_use]
    pub fn bins(column: impl Into<String>, bins: Bins) -> Self {
        Self { column: column.into(), partition: Partition::Bins(bins) }
    }

    /// Conditions that divide the records.
    #[must_use]
    pub fn conditions(conditions: Vec<Predicate>) -> Self {
        Self { column: String::new(), partition: Partition::Conditions(conditions) }
    }

    /// The names of all parts.
    fn names(&self) -> Vec<String> {
        match &self.partition {
            Partition::Keys(keys) => keys.clone(),
            Partition::Bins(bins) => bins.names(),
            Partition::Conditions(conditions) => conditions.iter().map(|one| one.text().to_owned()).collect(),
        }
    }
}

/// Finds the cell of a record.
struct Divider<'a> {
    axes: Vec<Place<'a>>,
    /// The cells of a row that are read, in order.
    readings: Vec<(&'a str, Use)>,
}

/// Where the parts of an axis are found in a row.
enum Place<'a> {
    /// The slot of the key.
    Key(usize),
    /// The slot of the number.
    Bin(usize, &'a Bins),
    /// Each condition with the first slot of its cells.
    Conditions(Vec<(usize, Filter, &'a str)>),
}

impl<'a> Divider<'a> {
    fn new(records: &Selection<'a>, by: &'a [Axis]) -> Result<Self, Error> {
        let (mut axes, mut readings) = (Vec::new(), Vec::new());
        for axis in by {
            let slot = readings.len();
            axes.push(match &axis.partition {
                Partition::Keys(_) => {
                    readings.push((axis.column.as_str(), records.use_of_keys(&axis.column)));
                    Place::Key(slot)
                }
                Partition::Bins(bins) => {
                    readings.push((axis.column.as_str(), Use::Number));
                    Place::Bin(slot, bins)
                }
                Partition::Conditions(conditions) => {
                    let mut filters = Vec::new();
                    for condition in conditions {
                        let filter = records.filter(condition)?;
                        let cells = records.cells_of(&filter);
                        filters.push((readings.len(), filter, condition.text()));
                        readings.extend(cells);
                    }
                    Place::Conditions(filters)
                }
            });
        }
        Ok(Self { axes, readings })
    }

    /// The text of the cell of a record. A record that lacks a key or a number has no cell.
    ///
    /// One record has one text at most, whatever is in it: that is why all cells together cost one ε.
    fn cell(&self, row: &Row<'_>) -> Option<String> {
        match self.axes.as_slice() {
            [one, other] => Some(text(&one.part(row)?, &other.part(row)?)),
            [one, ..] => one.part(row),
            [] => None,
        }
    }
}

impl Place<'_> {
    /// The name of the part that a record is in.
    fn part(&self, row: &Row<'_>) -> Option<String> {
        match self {
            Self::Key(slot) => row.key(*slot).map(std::borrow::Cow::into_owned),
            Self::Bin(slot, bins) => {
                row.number(*slot).and_then(|number| bins.place(number)).map(|place| bins.name(place))
            }
            Self::Conditions(filters) => {
                // The first part that a record is in: so it is in one part, whatever was proved about them.
                let holds = filters.iter().find(|(slot, filter, _)| filter.takes(row, *slot));
                holds.map(|(_, _, name)| (*name).to_owned())
            }
        }
    }
}

/// Refuses conditions unless it is proved that no record satisfies two of them.
fn check_disjoint(records: &Selection<'_>, conditions: &[Predicate]) -> Result<(), Error> {
    let filters = conditions.iter().map(|one| records.filter(one)).collect::<Result<Vec<_>, _>>()?;
    for (number, filter) in filters.iter().enumerate() {
        if let Some(before) = filters[..number].iter().position(|other| !other.is_disjoint(filter)) {
            return Err(Error::Setting {
                name: "a part",
                found: format!(
                    "{} beside {}, and a record may satisfy both",
                    quoted(conditions[number].text()),
                    quoted(conditions[before].text())
                ),
                expected: "conditions that exclude each other, such as age < 18 and age >= 18",
            });
        }
    }
    Ok(())
}

impl std::fmt::Display for Grouped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (what, by) = match self {
            Self::Count { by } => ("count".to_owned(), by.as_slice()),
            Self::Sum { column, by, .. } => (format!("sum of {column}"), by.as_slice()),
            Self::Mean { column, by, .. } => (format!("mean of {column}"), by.as_slice()),
            Self::Quantile { column, quantile, by, .. } if quantile.get() == 0.5 => {
                (format!("median of {column}"), by.as_slice())
            }
            Self::Quantile { column, quantile, by, .. } => {
                (format!("quantile {} of {column}", quantile.get()), by.as_slice())
            }
            Self::UnknownPairs { columns: [one, other] } => return write!(f, "count by {one} and {other}"),
        };
        let names: Vec<&str> = by
            .iter()
            .map(|axis| if axis.column.is_empty() { "condition" } else { axis.column.as_str() })
            .collect();
        write!(f, "{what} by {}", names.join(" and "))
    }
}

impl Grouped {
    /// Passes the mechanism that answers this question to a visitor.
    ///
    /// For an ε, `price` is the price of known cells, `stable` makes the mechanism for unknown keys, and `share`
    /// is the ε of one record.
    pub(super) fn visit<'a, V: Visitor<'a>>(
        &'a self,
        records: &'a Selection<'a>,
        price: impl Fn(f64) -> Result<Price, Error> + 'a,
        stable: impl Fn(f64) -> Result<StableHistogram, Error> + 'a,
        share: impl Fn(f64) -> Result<Epsilon, Error> + 'a,
        visitor: V,
    ) -> Result<V::Output, Error> {
        Ok(match self {
            Self::Count { by } => {
                let keys = cells(records, by)?;
                visitor.visit(
                    move |epsilon| Ok(Histogram::for_epsilon(keys.clone(), price(epsilon)?)?),
                    || counted(records, by),
                    |paid, data| paid.run(&data).map(|bins| answer(by, bins)),
                )
            }
            Self::Sum { column, bounds, by } => {
                let keys = cells(records, by)?;
                visitor.visit(
                    move |epsilon| Ok(GroupedSum::for_epsilon(keys.clone(), *bounds, price(epsilon)?)?),
                    || keyed_numbers(records, by, column),
                    |paid, data| paid.run(&data).map(|bins| answer(by, bins)),
                )
            }
            Self::Mean { column, bounds, by } => {
                let keys = cells(records, by)?;
                visitor.visit(
                    move |epsilon| Ok(GroupedMean::for_epsilon(keys.clone(), *bounds, price(epsilon)?)?),
                    || keyed_numbers(records, by, column),
                    |paid, data| paid.run(&data).map(|bins| answer(by, bins)),
                )
            }
            Self::Quantile { column, bounds, quantile, by } => {
                let keys = cells(records, by)?;
                visitor.visit(
                    move |epsilon| {
                        let quantile =
                            Quantile { bounds: *bounds, quantile: *quantile, epsilon: share(epsilon)? };
                        Ok(GroupedQuantile { keys: keys.clone(), quantile })
                    },
                    || keyed_numbers(records, by, column),
                    |paid, data| paid.run(&data).map(|bins| answer(by, bins)),
                )
            }
            Self::UnknownPairs { columns } => {
                let by = move || columns.each_ref().map(|column| Axis::keys(column, Vec::new()));
                // The texts of pairs are in another order than the pairs.
                let sorted = move |mut bins: Vec<_>| {
                    bins.sort_by_key(|(text, _): &(String, Release)| pair(text));
                    answer(&by(), bins)
                };
                visitor.visit(
                    stable,
                    move || counted(records, &by()),
                    move |paid, data| {
                        let least = paid.threshold();
                        let bins = paid.run(&data)?;
                        Ok(if bins.is_empty() { Answer::NoPair { least } } else { sorted(bins) })
                    },
                )
            }
        })
    }
}

/// The texts of all cells of one or two columns.
fn cells(records: &Selection<'_>, by: &[Axis]) -> Result<Vec<String>, Error> {
    let names: Vec<Vec<String>> = by.iter().map(Axis::names).collect();
    names.iter().try_for_each(|names| check_keys("a list of groups", names))?;
    for axis in by {
        match &axis.partition {
            Partition::Keys(keys) => check_spelling(records, &axis.column, keys)?,
            Partition::Conditions(conditions) => check_disjoint(records, conditions)?,
            Partition::Bins(_) => {}
        }
    }
    if let [one, other] = by
        && one.column == other.column
        && matches!((&one.partition, &other.partition), (Partition::Keys(_), Partition::Keys(_)))
    {
        let found = format!("the column {} twice", quoted(&one.column));
        return Err(Error::Setting { name: "groups", found, expected: "two different columns" });
    }
    let found = match names.as_slice() {
        [one] if one.len() <= MOST_CELLS => return Ok(one.clone()),
        [one, other] if one.len().saturating_mul(other.len()) <= MOST_CELLS => {
            let pairs = one.iter().flat_map(|one| other.iter().map(move |other| text(one, other)));
            return Ok(pairs.collect());
        }
        [_] | [_, _] => format!("{} cells", names.iter().map(Vec::len).product::<usize>()),
        columns => format!("{} columns", columns.len()),
    };
    Err(Error::Setting { name: "groups", found, expected: "one or two columns with at most 100000 cells" })
}

/// Refuses a key that no record can have: a schema excludes it, or a column of integers has keys of digits.
pub(super) fn check_spelling(records: &Selection<'_>, column: &str, keys: &[String]) -> Result<(), Error> {
    keys.iter().try_for_each(|key| records.check_key(column, key))?;
    let is_misspelt = |key: &&String| key.parse::<i128>().map_or(true, |number| number.to_string() != **key);
    match keys.iter().find(is_misspelt).filter(|_| records.use_of_keys(column) == Use::Name) {
        Some(key) => Err(Error::Setting {
            name: "a key of integers",
            found: quoted(key),
            expected: "the digits of an integer, such as 30",
        }),
        None => Ok(()),
    }
}

/// Refuses a list without keys, and a list with the same key twice.
pub(super) fn check_keys(name: &'static str, keys: &[String]) -> Result<(), Error> {
    let wrong = |found: String| Error::Setting { name, found, expected: "a list with every key once" };
    if keys.is_empty() {
        return Err(wrong("empty".into()));
    }
    let mut seen = std::collections::HashSet::new();
    match keys.iter().find(|key| !seen.insert(key.as_str())) {
        Some(twice) => Err(wrong(format!("a list with {} twice", quoted(twice)))),
        None => Ok(()),
    }
}

/// The cell and the number of every record; NaN where a number is missing.
fn keyed_numbers(
    records: &Selection<'_>,
    by: &[Axis],
    column: &str,
) -> Result<Sensitive<Vec<KeyedNumber>>, Error> {
    let mut all = Vec::new();
    let divider = Divider::new(records, by)?;
    let mut readings = divider.readings.clone();
    readings.push((column, Use::Number));
    let number = divider.readings.len();
    records
        .scan(&readings, |row| all.push((divider.cell(row), row.number(number).unwrap_or(f64::NAN))))
        .map_err(fractions_as_keys)?;
    Ok(Sensitive::new(all))
}

/// The cell of every record.
fn counted(records: &Selection<'_>, by: &[Axis]) -> Result<Sensitive<Vec<Option<String>>>, Error> {
    let mut all = Vec::new();
    let divider = Divider::new(records, by)?;
    records.scan(&divider.readings, |row| all.push(divider.cell(row))).map_err(fractions_as_keys)?;
    Ok(Sensitive::new(all))
}

/// A pair of keys as one text. Different pairs have different texts.
///
/// The length of the first key comes first, so no key can imitate another pair.
fn text(one: &str, other: &str) -> String {
    format!("{}:{one}{other}", one.len())
}

/// The pair of keys behind a text of [`text`].
fn pair(text: &str) -> Option<[String; 2]> {
    let (length, keys) = text.split_once(':')?;
    let (one, other) = keys.split_at_checked(length.parse().ok()?)?;
    Some([one.to_owned(), other.to_owned()])
}

/// The answer about the cells of one or two columns.
fn answer(by: &[Axis], bins: Vec<(String, Release)>) -> Answer {
    if by.len() < 2 {
        return Answer::Bins(bins);
    }
    Answer::Cells(bins.into_iter().filter_map(|(text, release)| Some((pair(&text)?, release))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_pairs_have_different_texts_and_a_text_gives_its_pair_back() {
        let keys = ["", "a", "b", "ab", "1:a", ":", "0:", "é", "a\nb", "\"", "2:ab1:a"];
        let mut texts = std::collections::HashSet::new();
        for one in keys {
            for other in keys {
                let text = text(one, other);
                assert_eq!(pair(&text), Some([one.to_owned(), other.to_owned()]));
                assert!(texts.insert(text), "{one:?} and {other:?}");
            }
        }
        assert_eq!([pair("a"), pair("9:ab"), pair("1:é")], [None, None, None]);
    }

    #[test]
    fn lists_of_keys_are_refused_if_empty_or_with_a_key_twice() {
        let keys = |keys: &[&str]| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(check_keys("groups", &keys(&["a", "", "A", " a"])).is_ok());
        let twice = check_keys("groups", &keys(&["a", "b", "a"])).unwrap_err().to_string();
        assert_eq!(twice, "groups is a list with \"a\" twice, expected a list with every key once");
        assert!(check_keys("keys", &[]).is_err());
    }
}
