//! Encodes the rows of a table as examples, as the schema declares.

use std::{collections::HashMap, path::Path};

use crate::Error;
use crate::data::{
    Examples, Kind, Row, Schema, Table, TableError, Targets, Use,
    examples::{Features, memory::Memory, split::Tag},
    formats::array::NO_CLASS,
};

/// How the cells of one column become numbers.
enum Meaning {
    Bounds([f64; 2]),
    /// The index of each category by its text. Columns declared as numbers use `Numbers`.
    Texts(HashMap<String, usize>),
    Numbers(Vec<f64>),
}

/// A column that is read, and how.
struct Part<'a> {
    name: &'a str,
    meaning: Meaning,
}

impl<'a> Part<'a> {
    fn new(
        table: &Table,
        name: &'a str,
        bounds: Option<[f64; 2]>,
        list: Option<&[String]>,
    ) -> Result<Self, Error> {
        let list = list.unwrap_or_default();
        let meaning = match bounds {
            Some(bounds) => Meaning::Bounds(bounds),
            None if kind(table, name) == Some(Kind::Number) => {
                let numbers: Option<Vec<f64>> = list.iter().map(|text| text.trim().parse().ok()).collect();
                let because =
                    || format!("column {name:?} contains numbers, expected numbers as its categories");
                Meaning::Numbers(
                    numbers.ok_or_else(|| TableError::Schema { path: None, because: because() })?,
                )
            }
            None => Meaning::Texts(
                list.iter().enumerate().map(|(index, text)| (text.trim().to_owned(), index)).collect(),
            ),
        };
        Ok(Self { name, meaning })
    }

    fn reading(&self) -> (&'a str, Use) {
        let usage = if matches!(self.meaning, Meaning::Texts(_)) { Use::Text } else { Use::Number };
        (self.name, usage)
    }

    /// Scales a number from its bounds to [-1, 1].
    fn number(&self, row: &Row<'_>, slot: usize) -> Option<f32> {
        let Meaning::Bounds([low, high]) = self.meaning else { return None };
        Some(((row.number(slot)?.clamp(low, high) - low) / (high - low) * 2.0 - 1.0) as f32)
    }

    /// Returns the index of a category.
    fn index(&self, row: &Row<'_>, slot: usize) -> Option<usize> {
        match &self.meaning {
            Meaning::Bounds(_) => None,
            Meaning::Texts(indices) => indices.get(row.text(slot)?.trim()).copied(),
            Meaning::Numbers(numbers) => {
                let number = row.number(slot)?;
                numbers.iter().position(|category| *category == number)
            }
        }
    }
}

/// Which columns of a schema are read besides the features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::data) enum Purpose {
    /// The label and the user.
    Training,
    /// The user: the learner needs no label.
    TrainingWithoutLabels,
    /// Neither: records to predict are not trained on, so their users are not needed.
    Prediction,
}

/// Reads a whole table, and holds its features as floats in memory.
///
/// Without labels, every target is 0 and no record is left out for lack of one.
pub(in crate::data) fn examples(
    table: &Table,
    path: &Path,
    schema: &Schema,
    purpose: Purpose,
    memory: &Memory,
) -> Result<Examples, Error> {
    schema.check()?;
    let columns = schema.columns.iter();
    let parts =
        columns.map(|column| Part::new(table, &column.name, column.bounds, column.categories.as_deref()));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let mut readings: Vec<_> = parts.iter().map(Part::reading).collect();
    let declared = match (&schema.label, purpose) {
        (Some(label), Purpose::Training) => Some(label),
        (None, Purpose::Training) => return Err(TableError::NoLabel.into()),
        (_, Purpose::TrainingWithoutLabels | Purpose::Prediction) => None,
    };
    let label = declared
        .map(|label| Part::new(table, &label.column, label.bounds, label.classes.as_deref()))
        .transpose()?;
    let label_slot = readings.len();
    readings.extend(label.as_ref().map(Part::reading));
    let user_slot = readings.len();
    let user = schema.user.as_deref().filter(|_| purpose != Purpose::Prediction);
    readings.extend(user.map(|user| (user, Use::Name)));
    mentioned(table, path, schema, &readings)?;

    let width = schema.features().len();
    let (mut values, mut labels, mut numbers, mut users) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut full = Ok(());
    table.all().scan(&readings, |row| {
        if full.is_err() {
            return;
        }
        full = memory.take(4 * width as u64 + 24, path);
        for (slot, (part, column)) in parts.iter().zip(&schema.columns).enumerate() {
            encode(part, column.categories.as_ref().map(Vec::len), column.unknown, row, slot, &mut values);
        }
        match &label {
            None => numbers.push(0.0),
            Some(label) if matches!(label.meaning, Meaning::Bounds(_)) => {
                numbers.push(label.number(row, label_slot).unwrap_or(f32::NAN));
            }
            Some(label) => {
                labels.push(label.index(row, label_slot).map_or(NO_CLASS, |index| index as u32));
            }
        }
        if user.is_some() {
            users.push(row.name(user_slot).and_then(Tag::of_user));
        }
    })?;
    full?;
    let targets = match declared.and_then(|label| label.classes.as_ref()) {
        Some(names) => Targets::Classes { labels, names: names.clone() },
        _ => Targets::Numbers(numbers),
    };
    Examples::assemble(&[width], Features::Numbers(values), 1.0, targets, user.map(|_| users))
}

fn encode(
    part: &Part<'_>,
    categories: Option<usize>,
    unknown: bool,
    row: &Row<'_>,
    slot: usize,
    into: &mut Vec<f32>,
) {
    let known = if let Some(count) = categories {
        let index = part.index(row, slot);
        let first = into.len();
        into.resize(first + count, 0.0);
        index.inspect(|index| into[first + index] = 1.0).is_some()
    } else {
        let number = part.number(row, slot);
        into.push(number.unwrap_or(0.0));
        number.is_some()
    };
    if unknown {
        into.push(f32::from(u8::from(!known)));
    }
}

/// Checks that the schema mentions every column of the table, which catches misspelt names.
///
/// All columns that are read must exist first: if a file has no header, its first row is a record, whose
/// cells must not be named in an error.
fn mentioned(table: &Table, path: &Path, schema: &Schema, readings: &[(&str, Use)]) -> Result<(), Error> {
    readings.iter().try_for_each(|(name, usage)| table.header().reading(name, *usage).map(drop))?;
    let known = |name: &String| {
        schema.ignore.contains(name)
            || schema.user.as_ref() == Some(name)
            || schema.label.as_ref().is_some_and(|label| label.column == *name)
            || schema.columns.iter().any(|column| column.name == *name)
    };
    let names = table.columns().iter().map(|column| &column.name).filter(|name| !name.is_empty());
    match names.clone().find(|name| !known(name)) {
        Some(name) => Err(TableError::Unmentioned { path: path.to_owned(), name: name.clone() }.into()),
        None => Ok(()),
    }
}

fn kind(table: &Table, name: &str) -> Option<Kind> {
    table.columns().iter().find(|column| column.name == name).map(|column| column.kind)
}
