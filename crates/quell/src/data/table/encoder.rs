//! Encodes the rows of a table as examples, as the schema declares.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use crate::Error;
use crate::data::{
    DateRange, Examples, Feature, FeatureKind, Kind, Label, Row, Schema, Table, TableError, Targets, Use,
    examples::{Features, memory::Memory, split::Tag},
    formats::array::NO_CLASS,
    table::{feature::TRUTHS, text::Words},
};

/// How the cells of one column become numbers.
enum Meaning {
    Bounds([f64; 2]),
    /// The index of each category by its text. Columns declared as numbers use `Numbers`.
    Texts(HashMap<String, usize>),
    Numbers(Vec<(f64, usize)>),
    /// The categories false and true.
    Truth,
    Date(DateRange),
    Words(Words),
}

/// A column that is read, and how.
pub(super) struct Part<'a> {
    name: &'a str,
    meaning: Meaning,
    /// The number of categories, or 0 if the column has none.
    categories: usize,
}

impl<'a> Part<'a> {
    pub(super) fn of_column(table: &Table, column: &'a Feature) -> Result<Self, Error> {
        let name = column.name.as_str();
        let (meaning, categories) = match &column.kind {
            FeatureKind::Bounds(bounds) => (Meaning::Bounds(*bounds), 0),
            FeatureKind::Categories { names, aliases } => {
                return Self::of_list(table, name, names, aliases);
            }
            FeatureKind::Boolean if kind(table, name) == Some(Kind::Number) => {
                (Meaning::Numbers(vec![(0.0, 0), (1.0, 1)]), TRUTHS.len())
            }
            FeatureKind::Boolean => (Meaning::Truth, TRUTHS.len()),
            FeatureKind::Date(date) => (Meaning::Date(date.clone()), 0),
            FeatureKind::Text(text) => (Meaning::Words(text.prepare()?), 0),
        };
        Ok(Self { name, meaning, categories })
    }

    pub(super) fn of_label(table: &Table, label: &'a Label) -> Result<Self, Error> {
        if let Some(bounds) = label.bounds {
            return Ok(Self { name: &label.column, meaning: Meaning::Bounds(bounds), categories: 0 });
        }
        Self::of_list(table, &label.column, label.classes.as_deref().unwrap_or_default(), &label.aliases)
    }

    /// A column of categories or classes.
    fn of_list(
        table: &Table,
        name: &'a str,
        list: &[String],
        aliases: &BTreeMap<String, String>,
    ) -> Result<Self, Error> {
        let place = |name: &str| list.iter().position(|other| other.trim() == name.trim());
        let aliases = aliases.iter().filter_map(|(alias, name)| Some((alias, place(name)?)));
        let all = list.iter().zip(0..).chain(aliases).map(|(text, index)| (text.trim(), index));
        let meaning = if kind(table, name) == Some(Kind::Number) {
            let numbers: Option<Vec<(f64, usize)>> =
                all.map(|(text, index)| Some((text.parse().ok()?, index))).collect();
            let because = || format!("column {name:?} contains numbers, expected numbers as its categories");
            Meaning::Numbers(numbers.ok_or_else(|| TableError::Schema { path: None, because: because() })?)
        } else {
            Meaning::Texts(all.map(|(text, index)| (text.to_owned(), index)).collect())
        };
        Ok(Self { name, meaning, categories: list.len() })
    }

    /// The column, and how its cells are read.
    pub(super) fn reading(&self) -> (&'a str, Use) {
        let usage = match self.meaning {
            Meaning::Bounds(_) | Meaning::Numbers(_) => Use::Number,
            Meaning::Texts(_) | Meaning::Truth | Meaning::Date(_) | Meaning::Words(_) => Use::Text,
        };
        (self.name, usage)
    }

    /// The number of features, without the one for unknown cells.
    fn width(&self) -> usize {
        match &self.meaning {
            Meaning::Bounds(_) => 1,
            Meaning::Texts(_) | Meaning::Numbers(_) | Meaning::Truth => self.categories,
            Meaning::Date(date) => 1 + date.parts.iter().map(|part| part.names().len()).sum::<usize>(),
            Meaning::Words(words) => words.width(),
        }
    }

    /// Scales a number from its bounds to [-1, 1].
    fn number(&self, row: &Row<'_>, slot: usize) -> Option<f32> {
        let Meaning::Bounds(bounds) = self.meaning else { return None };
        Some(scaled(row.number(slot)?, bounds))
    }

    /// Returns the index of a category.
    fn index(&self, row: &Row<'_>, slot: usize) -> Option<usize> {
        match &self.meaning {
            Meaning::Texts(indices) => indices.get(row.text(slot)?.trim()).copied(),
            Meaning::Numbers(numbers) => {
                let number = row.number(slot)?;
                numbers.iter().find(|(category, _)| *category == number).map(|(_, index)| *index)
            }
            Meaning::Truth => {
                let text = row.text(slot)?;
                TRUTHS
                    .iter()
                    .position(|words| words.iter().any(|word| text.trim().eq_ignore_ascii_case(word)))
            }
            Meaning::Bounds(_) | Meaning::Date(_) | Meaning::Words(_) => None,
        }
    }

    /// Whether a cell is what the column declares. Any text is a text.
    pub(super) fn fits(&self, row: &Row<'_>, slot: usize) -> bool {
        match &self.meaning {
            Meaning::Bounds(_) => row.number(slot).is_some(),
            Meaning::Texts(_) | Meaning::Numbers(_) | Meaning::Truth => self.index(row, slot).is_some(),
            Meaning::Date(DateRange { order, .. }) => {
                row.text(slot).is_some_and(|cell| order.day(&cell).is_some())
            }
            Meaning::Words(_) => row.text(slot).is_some(),
        }
    }

    /// Appends the features of a cell. `unknown` adds one that is 1 if the cell is unknown.
    fn encode(&self, unknown: bool, row: &Row<'_>, slot: usize, into: &mut Vec<f32>) {
        let first = into.len();
        let mark = |is_known: bool| unknown.then(|| f32::from(u8::from(!is_known)));
        match &self.meaning {
            Meaning::Bounds(_) => {
                let number = self.number(row, slot);
                into.push(number.unwrap_or(0.0));
                into.extend(mark(number.is_some()));
            }
            Meaning::Date(DateRange { from, to, parts, order }) => {
                let day = row.text(slot).and_then(|cell| order.day(&cell));
                let bounds = [*from, *to].map(|day| f64::from(day.number()));
                into.push(day.map_or(0.0, |day| scaled(f64::from(day.number()), bounds)));
                into.extend(mark(day.is_some()));
                for part in parts {
                    let first = into.len();
                    into.resize(first + part.names().len(), 0.0);
                    if let Some(day) = day {
                        into[first + part.index(day)] = 1.0;
                    }
                }
            }
            Meaning::Words(words) => {
                into.resize(first + words.width(), 0.0);
                let is_known = row.text(slot).is_some_and(|text| words.write(&text, &mut into[first..]));
                into.extend(mark(is_known));
            }
            Meaning::Texts(_) | Meaning::Numbers(_) | Meaning::Truth => {
                into.resize(first + self.categories, 0.0);
                let index = self.index(row, slot);
                if let Some(index) = index {
                    into[first + index] = 1.0;
                }
                into.extend(mark(index.is_some()));
            }
        }
    }
}

/// Clamps a number to its bounds and scales it to [-1, 1].
fn scaled(number: f64, [low, high]: [f64; 2]) -> f32 {
    ((number.clamp(low, high) - low) / (high - low) * 2.0 - 1.0) as f32
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
    let parts = schema.columns.iter().map(|column| Part::of_column(table, column));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let mut readings: Vec<_> = parts.iter().map(Part::reading).collect();
    let declared = match (&schema.label, purpose) {
        (Some(label), Purpose::Training) => Some(label),
        (None, Purpose::Training) => return Err(TableError::NoLabel.into()),
        (_, Purpose::TrainingWithoutLabels | Purpose::Prediction) => None,
    };
    let label = declared.map(|label| Part::of_label(table, label)).transpose()?;
    let label_slot = readings.len();
    readings.extend(label.as_ref().map(Part::reading));
    let user_slot = readings.len();
    let user = schema.user.as_deref().filter(|_| purpose != Purpose::Prediction);
    readings.extend(user.map(|user| (user, Use::Name)));
    mentioned(table, path, schema, &readings)?;

    let width =
        parts.iter().zip(&schema.columns).map(|(part, column)| part.width() + usize::from(column.unknown));
    let width = width.sum::<usize>();
    let (mut values, mut labels, mut numbers, mut users) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut full = Ok(());
    table.all().scan(&readings, |row| {
        if full.is_err() {
            return;
        }
        full = memory.take(4 * width as u64 + 24, path);
        for (slot, (part, column)) in parts.iter().zip(&schema.columns).enumerate() {
            part.encode(column.unknown, row, slot, &mut values);
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
