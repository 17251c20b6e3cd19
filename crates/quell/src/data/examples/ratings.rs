//! Reads ratings: rows with a user, an item and a number.
//!
//! The list of items is public and read from another file. A rating of any other item is left out, and so is
//! a row without a user or a number. Whether a row is left out depends on that row alone.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    Error,
    data::{
        Examples, Row, Table, Targets, Use,
        examples::{Features, memory::Memory, split::Tag},
        formats::{array::NO_CLASS, stream},
    },
    file,
};

/// The columns of a table of ratings, and the public list of items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatingColumns {
    /// The column with the user of a rating.
    pub user: String,
    /// The column with the item that is rated.
    pub item: String,
    /// The column with the rating: a number.
    pub value: String,
    /// The public list of items: a table with the column of items, or a text file with one item a line.
    pub items: PathBuf,
    /// BLAKE3 hash of the list in hexadecimal, recorded at the first use. A changed list is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// All ratings of one user.
#[derive(Clone, Debug, PartialEq)]
pub struct UserRatings {
    /// The name of the user.
    pub user: String,
    /// Items, by their place in the public list, and their ratings.
    pub ratings: Vec<(u32, f32)>,
}

/// The largest text file that is read as a list of items, in bytes.
const LARGEST_LIST: u64 = 1 << 30;
/// The most items.
const MOST_ITEMS: usize = 1 << 24;

impl RatingColumns {
    /// Reads the public list of items, each of them once, in the order of the file.
    pub fn list(&self) -> Result<Vec<String>, Error> {
        let (mut items, mut seen) = (Vec::new(), HashSet::new());
        let mut add = |item: &str| {
            let item = item.trim();
            if !item.is_empty() && items.len() <= MOST_ITEMS && seen.insert(item.to_owned()) {
                items.push(item.to_owned());
            }
        };
        if is_table(&self.items) {
            let scanned = Table::open(&self.items)?.all().scan(&[(&self.item, Use::Name)], |row| {
                if let Some(item) = row.name(0) {
                    add(&String::from_utf8_lossy(item));
                }
            });
            scanned.map_err(|error| match error {
                Error::Table(error) => error.in_file(&self.items).into(),
                error => error,
            })?;
        } else {
            file::read_text(&self.items, LARGEST_LIST)?.lines().for_each(add);
        }
        if (1..=MOST_ITEMS).contains(&items.len()) {
            return Ok(items);
        }
        Err(Error::Setting {
            name: "the public list of items",
            found: if items.is_empty() { "empty".into() } else { "too long".into() },
            expected: "1 to 16777216 items",
        })
    }

    /// Records the hash of the list at the first use, and refuses another list afterwards.
    pub(crate) fn pin(&mut self) -> Result<(), Error> {
        let mut hasher = blake3::Hasher::new();
        for item in self.list()? {
            hasher.update(item.as_bytes()).update(b"\n");
        }
        let found = hasher.finalize().to_hex().to_string();
        if *self.digest.get_or_insert(found.clone()) == found {
            return Ok(());
        }
        Err(Error::Setting {
            name: "the public list of items",
            found: "another list than the run began with".into(),
            expected: "the same list",
        })
    }

    /// Reads ratings to train on: one example for each rating, whose class is the item.
    pub fn open(&self, path: &Path, items: &[String]) -> Result<Examples, Error> {
        let memory = Memory::new(Memory::USUAL);
        let bytes = (size_of::<Option<Tag>>() + size_of::<u32>() + size_of::<f32>()) as u64;
        let (mut users, mut labels, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let mut full = Ok(());
        self.scan(path, items, |row, item, value| {
            if full.is_err() {
                return;
            }
            full = memory.take(bytes, path);
            users.push(row.name(0).and_then(Tag::of_user));
            // A rating without an item or a number is left out.
            labels.push(item.filter(|_| value.is_some()).unwrap_or(NO_CLASS));
            values.push(value.unwrap_or(0.0));
        })?;
        full?;
        let targets = Targets::Classes { labels, names: items.to_vec() };
        Examples::assemble(&[1], Features::Numbers(values), 1.0, targets, Some(users))
    }

    /// Reads the ratings of each user, in the order in which users appear. The result is private.
    ///
    /// A user without a usable rating is a user without ratings.
    pub fn users(&self, path: &Path, items: &[String]) -> Result<Vec<UserRatings>, Error> {
        let (mut users, mut places): (Vec<UserRatings>, HashMap<Vec<u8>, usize>) = Default::default();
        self.scan(path, items, |row, item, value| {
            let Some(name) = row.name(0) else { return };
            let place = *places.entry(name.to_vec()).or_insert_with(|| {
                let user = String::from_utf8_lossy(name).into_owned();
                users.push(UserRatings { user, ratings: Vec::new() });
                users.len() - 1
            });
            users[place].ratings.extend(item.zip(value));
        })?;
        Ok(users)
    }

    /// Visits each row, with its item and its number.
    fn scan(
        &self,
        path: &Path,
        items: &[String],
        mut each: impl FnMut(&Row<'_>, Option<u32>, Option<f32>),
    ) -> Result<(), Error> {
        let places: HashMap<&[u8], u32> = items.iter().map(String::as_bytes).zip(0..).collect();
        let readings = [(&*self.user, Use::Name), (&*self.item, Use::Name), (&*self.value, Use::Number)];
        Table::open(path)?.all().scan(&readings, |row| {
            let item = row.name(1).and_then(|item| places.get(item.trim_ascii()).copied());
            let value = row.number(2).map(|value| value.clamp(f32::MIN.into(), f32::MAX.into()) as f32);
            each(row, item, value);
        })
    }
}

/// Whether the name of a file says that it is a table.
fn is_table(path: &Path) -> bool {
    let path = if stream::packed(path) { path.with_extension("") } else { path.to_owned() };
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    ["csv", "tsv", "parquet", "pq", "zip"].iter().any(|table| extension == *table)
}
