//! Statistics for each key of a column, and histograms of two columns.

use quell_privacy::mechanism::{
    Bounds, GroupedMean, GroupedSum, Histogram, KeyedNumber, Price, Release, Sensitive, StableHistogram,
};

use super::{Answer, Visitor};
use crate::{
    Error,
    data::{Selection, Use},
    error::quoted,
};

/// A statistic for each key of a column, or for each pair of keys of two columns.
///
/// A record has at most one key, so all groups together cost one ε. The number of records for each key of one
/// column is [`Statistic::Histogram`](super::Statistic::Histogram).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Grouped {
    /// Sum of a column for each key of another column.
    Sum {
        /// Name of the column with the numbers.
        column: String,
        /// Range that every number is clamped to.
        bounds: Bounds,
        /// Name of the column with the keys.
        group_by: String,
        /// The keys. Records with another key or none are left out.
        keys: Vec<String>,
    },
    /// Mean of a column for each key of another column.
    Mean {
        /// Name of the column with the numbers.
        column: String,
        /// Range that every number is clamped to.
        bounds: Bounds,
        /// Name of the column with the keys.
        group_by: String,
        /// The keys. Records with another key or none are left out.
        keys: Vec<String>,
    },
    /// Number of records for each pair of keys of two columns.
    Pairs {
        /// Names of the two columns.
        columns: [String; 2],
        /// The keys of each column. Without them, the answer shows the pairs that many records have.
        keys: Option<[Vec<String>; 2]>,
    },
}

impl Grouped {
    /// Passes the mechanism that answers this question to a visitor.
    ///
    /// `price` is the price of known keys, and `stable` makes the mechanism for unknown keys, for an ε.
    pub(super) fn visit<V: Visitor>(
        &self,
        records: &Selection<'_>,
        price: impl Fn(f64) -> Result<Price, Error>,
        stable: impl Fn(f64) -> Result<StableHistogram, Error>,
        visitor: V,
    ) -> Result<V::Output, Error> {
        Ok(match self {
            Self::Sum { column, bounds, group_by, keys } => {
                check_keys("groups", keys)?;
                visitor.visit(
                    |epsilon| Ok(GroupedSum::for_epsilon(keys.clone(), *bounds, price(epsilon)?)?),
                    || keyed_numbers(records, group_by, column),
                    |paid, data| paid.run(&data).map(Answer::Bins),
                )
            }
            Self::Mean { column, bounds, group_by, keys } => {
                check_keys("groups", keys)?;
                visitor.visit(
                    |epsilon| Ok(GroupedMean::for_epsilon(keys.clone(), *bounds, price(epsilon)?)?),
                    || keyed_numbers(records, group_by, column),
                    |paid, data| paid.run(&data).map(Answer::Bins),
                )
            }
            Self::Pairs { columns, keys: Some([rows, others]) } => {
                check_keys("keys", rows)?;
                check_keys("groups", others)?;
                let known = || rows.iter().flat_map(|row| others.iter().map(move |other| text(row, other)));
                visitor.visit(
                    |epsilon| Ok(Histogram::for_epsilon(known().collect(), price(epsilon)?)?),
                    || pairs(records, columns),
                    |paid, data| paid.run(&data).map(cells),
                )
            }
            Self::Pairs { columns, keys: None } => {
                // The texts of pairs are in another order than the pairs.
                let sorted = |mut bins: Vec<_>| {
                    bins.sort_by_key(|(text, _): &(String, Release)| pair(text));
                    cells(bins)
                };
                visitor.visit(stable, || pairs(records, columns), |paid, data| paid.run(&data).map(sorted))
            }
        })
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

/// The key and the number of every record; NaN where a number is missing.
fn keyed_numbers(
    records: &Selection<'_>,
    group_by: &str,
    column: &str,
) -> Result<Sensitive<Vec<KeyedNumber>>, Error> {
    let mut all = Vec::new();
    records.scan(&[(group_by, Use::Text), (column, Use::Number)], |row| {
        all.push((row.text(0).map(std::borrow::Cow::into_owned), row.number(1).unwrap_or(f64::NAN)));
    })?;
    Ok(Sensitive::new(all))
}

/// The pair of keys of every record, as one text. A record without one of the keys has no pair.
fn pairs(records: &Selection<'_>, columns: &[String; 2]) -> Result<Sensitive<Vec<Option<String>>>, Error> {
    let (mut all, [row_name, other_name]) = (Vec::new(), columns);
    records.scan(&[(row_name, Use::Text), (other_name, Use::Text)], |row| {
        all.push(row.text(0).zip(row.text(1)).map(|(one, other)| text(&one, &other)));
    })?;
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

/// The answer about pairs of keys.
fn cells(bins: Vec<(String, Release)>) -> Answer {
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
