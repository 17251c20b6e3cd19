//! The records that a learner trains on: vectors in memory.
//!
//! Bytes stay bytes until a record is gathered, so images take a quarter of the memory of floats. The map
//! from a stored value to a feature is public: a fixed unit, and a mean and a deviation that are settings.

pub(super) mod dataset;
pub(super) mod memory;
pub(super) mod ratings;
pub(super) mod records;
pub(super) mod scaling;
pub(super) mod split;
pub(super) mod users;

use std::{fmt, sync::Arc};

use crate::Error;
use crate::data::{
    Scaling, Split,
    examples::split::{Tag, Users},
    table::rows::Rows,
};

/// Records, each with a target.
///
/// A record without a target is left out, and so is a record without a user if users are known. Whether a
/// record is present depends on that record alone.
///
/// Each record knows its row in the raw data, before any record was left out or split off
/// ([`row`](Self::row)).
///
/// Everything except the shape and the names of the classes is private, including the number of records.
/// `Debug` shows no value.
#[derive(Clone)]
pub struct Examples {
    shape: Vec<usize>,
    width: usize,
    /// Clones share them.
    features: Arc<Features>,
    /// The feature value of one stored unit.
    unit: f32,
    /// One map for each channel, or one for all channels.
    affine: Vec<Affine>,
    targets: Targets,
    users: Option<Users>,
    rows: Rows,
}

/// The target of each record: a class or a number.
#[derive(Clone)]
pub enum Targets {
    /// Each target is one of several classes.
    Classes {
        /// The index of the class of each record.
        labels: Vec<u32>,
        /// The names of the classes. They are public.
        names: Vec<String>,
    },
    /// Each target is a number.
    Numbers(Vec<f32>),
}

/// The stored features, row after row.
#[derive(Clone)]
pub(in crate::data) enum Features {
    Bytes(Vec<u8>),
    Numbers(Vec<f32>),
}

/// An affine map: feature = factor · stored + offset.
#[derive(Clone, Copy, PartialEq)]
struct Affine {
    factor: f32,
    offset: f32,
}

impl Examples {
    /// Creates records from bytes, such as images.
    ///
    /// `values` holds the records row after row. A feature is a byte divided by `largest`.
    ///
    /// ```
    /// use quell::data::{Examples, Targets};
    /// let names = vec!["dark".into(), "bright".into()];
    /// let pixels = Examples::bytes(&[1, 1, 2], vec![0, 1, 4, 3], 4, Targets::Classes { labels: vec![0, 1], names })?;
    /// let mut row = [0.0; 2];
    /// pixels.gather(1, &mut row);
    /// assert_eq!(row, [1.0, 0.75]);
    /// # Ok::<(), quell::Error>(())
    /// ```
    pub fn bytes(shape: &[usize], values: Vec<u8>, largest: u8, targets: Targets) -> Result<Self, Error> {
        let unit = 1.0 / f32::from(largest.max(1));
        Self::assemble(shape, Features::Bytes(values), unit, targets, None)
    }

    /// Creates records from numbers, row after row.
    ///
    /// A number that is not finite becomes 0. Otherwise its record would have no effect in training.
    pub fn numbers(shape: &[usize], values: Vec<f32>, targets: Targets) -> Result<Self, Error> {
        Self::assemble(shape, Features::Numbers(values), 1.0, targets, None)
    }

    /// Checks the sizes, and leaves out records without a target or a user.
    pub(in crate::data) fn assemble(
        shape: &[usize],
        features: Features,
        unit: f32,
        targets: Targets,
        users: Option<Vec<Option<Tag>>>,
    ) -> Result<Self, Error> {
        let width =
            shape.iter().try_fold(1_usize, |width, side| width.checked_mul(*side)).filter(|width| *width > 0);
        let Some(width) = width else {
            return Err(Error::Setting {
                name: "shape",
                found: format!("{shape:?}"),
                expected: "lengths of at least 1",
            });
        };
        let mut features = features;
        if let Features::Numbers(values) = &mut features {
            values.iter_mut().filter(|value| !value.is_finite()).for_each(|value| *value = 0.0);
        }
        let records = targets.len();
        if Some(features.len()) != records.checked_mul(width) {
            return Err(Error::Sizes { name: "features" });
        }
        if users.as_ref().is_some_and(|users| users.len() != records) {
            return Err(Error::Sizes { name: "users" });
        }
        let known = |record: usize| {
            targets.known(record) && users.as_ref().is_none_or(|users| users[record].is_some())
        };
        let kept: Vec<usize> = (0..records).filter(|record| known(*record)).collect();
        let users = users.map(|users| Users::new(users.into_iter()));
        let rows = Rows::all(records);
        let (shape, features) = (shape.to_vec(), Arc::new(features));
        let all = Self { shape, width, features, unit, affine: Vec::new(), targets, users, rows };
        let all = if kept.len() == records { all } else { all.select(&kept) };
        Ok(Self { affine: vec![Affine { factor: unit, offset: 0.0 }], ..all })
    }

    /// Sets the user of each record.
    ///
    /// `users[i]` identifies the user of record `i`. A record without a user (`None`, or a blank name) is
    /// left out, because nobody could say whose contribution it is.
    pub fn with_users<K: AsRef<[u8]>>(self, users: &[Option<K>]) -> Result<Self, Error> {
        let tags = users.iter().map(|user| Tag::of_user(user.as_ref()?.as_ref())).collect();
        let Self { shape, features, unit, affine, targets, rows, .. } = self;
        let known = Self::assemble(&shape, Arc::unwrap_or_clone(features), unit, targets, Some(tags))?;
        let rows = rows.of(&known.rows);
        Ok(Self { affine, rows, ..known })
    }

    /// Sets the user of each row of the raw data.
    ///
    /// Records without a user are left out.
    ///
    /// Returns `None` if the number of tags differs from the number of rows.
    pub(in crate::data) fn with_users_of_rows(self, tags: &[Option<Tag>]) -> Option<Self> {
        if tags.len() != self.row_count() {
            return None;
        }
        let of_records: Vec<Option<Tag>> = (0..self.len()).map(|record| tags[self.row(record)]).collect();
        let known: Vec<usize> = (0..self.len()).filter(|record| of_records[*record].is_some()).collect();
        let users = Some(Users::new(known.iter().map(|record| of_records[*record])));
        Some(Self { users, ..self.select(&known) })
    }

    /// Marks the records as having no fixed rows in the raw data.
    pub(in crate::data) fn without_places(self) -> Self {
        Self { rows: self.rows.without_places(), ..self }
    }

    /// Renumbers the rows as if no record had been left out. This is for public data.
    pub(in crate::data) fn renumbered(self) -> Self {
        Self { rows: Rows::all(self.len()), ..self }
    }

    /// Replaces each feature x by (x - mean) / deviation. Mean and deviation are public.
    pub fn scaled(self, scaling: &Scaling) -> Result<Self, Error> {
        let channels = if self.shape.len() == 3 { self.shape[0] } else { 1 };
        let affine = scaling.per_channel(channels)?;
        let affine = affine
            .map(|(mean, deviation)| Affine { factor: self.unit / deviation, offset: -mean / deviation });
        Ok(Self { affine: affine.collect(), ..self })
    }

    /// Returns the same records with other features, in `values` row after row.
    ///
    /// The new features of a record must depend on the old features of that record alone.
    pub(crate) fn with_features(&self, shape: &[usize], values: Vec<f32>) -> Result<Self, Error> {
        let changed = Self::numbers(shape, values, self.targets.clone())?;
        Ok(Self { users: self.users.clone(), rows: self.rows.clone(), ..changed })
    }

    /// Returns whether the features are bytes, such as pixels. The file format declares it.
    pub(crate) fn are_bytes(&self) -> bool {
        matches!(*self.features, Features::Bytes(_))
    }

    /// Returns the number of records, which is private.
    #[must_use]
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Returns the number of rows of the raw data.
    ///
    /// It includes rows that were left out or split off. It is public if neighbours replace one record by
    /// another, and private otherwise.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.rows.count()
    }

    /// Returns the row of a record in the raw data.
    ///
    /// Rows are numbered before any record was left out or split off.
    ///
    /// # Panics
    /// If there is no such record.
    #[must_use]
    pub fn row(&self, record: usize) -> usize {
        assert!(record < self.len(), "there is no record {record}");
        self.rows.row(record)
    }

    /// Returns whether replacing one record leaves all other records in their rows.
    ///
    /// This is true for arrays and tables. It is false for files in folders, which are sorted by name.
    #[must_use]
    pub fn has_places(&self) -> bool {
        self.rows.has_places()
    }

    /// Returns whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the shape of one record.
    ///
    /// Examples are `[784]`, or channels, rows and columns of an image, `[3, 32, 32]`.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the number of features in one record: the product of the shape.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Writes the features of one record into a slice of length [`width`](Self::width).
    ///
    /// # Panics
    /// If there is no such record, or the slice has another length.
    pub fn gather(&self, index: usize, into: &mut [f32]) {
        assert_eq!(into.len(), self.width, "a record has {} features", self.width);
        let range = index * self.width..(index + 1) * self.width;
        let plane = self.width / self.affine.len();
        match &*self.features {
            Features::Numbers(values) if self.affine == [Affine { factor: 1.0, offset: 0.0 }] => {
                into.copy_from_slice(&values[range]);
            }
            Features::Numbers(values) => {
                for ((into, values), affine) in
                    into.chunks_exact_mut(plane).zip(values[range].chunks_exact(plane)).zip(&self.affine)
                {
                    into.iter_mut()
                        .zip(values)
                        .for_each(|(into, value)| *into = value * affine.factor + affine.offset);
                }
            }
            Features::Bytes(values) => {
                for ((into, values), affine) in
                    into.chunks_exact_mut(plane).zip(values[range].chunks_exact(plane)).zip(&self.affine)
                {
                    into.iter_mut()
                        .zip(values)
                        .for_each(|(into, value)| *into = f32::from(*value) * affine.factor + affine.offset);
                }
            }
        }
    }

    /// Returns a hash that depends on the features of one record alone.
    ///
    /// Random choices about a record must be derived from this hash, not from the record's position:
    /// otherwise removing one record would change the choices for all later records.
    ///
    /// # Panics
    /// If there is no such record.
    #[must_use]
    pub fn fingerprint(&self, index: usize) -> u64 {
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(FACTOR).rotate_left(29);
        let range = index * self.width..(index + 1) * self.width;
        match &*self.features {
            Features::Bytes(values) => {
                let (words, rest) = values[range].as_chunks::<8>();
                let hash = words.iter().fold(FACTOR, |hash, word| mix(hash, u64::from_le_bytes(*word)));
                rest.iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)))
            }
            Features::Numbers(values) => {
                values[range].iter().fold(FACTOR, |hash, value| mix(hash, value.to_bits().into()))
            }
        }
    }

    /// Returns the targets.
    #[must_use]
    pub fn targets(&self) -> &Targets {
        &self.targets
    }

    /// Returns the class of one record.
    ///
    /// Returns `None` if the targets are numbers or there is no such record.
    #[must_use]
    pub fn label(&self, index: usize) -> Option<u32> {
        match &self.targets {
            Targets::Classes { labels, .. } => labels.get(index).copied(),
            Targets::Numbers(_) => None,
        }
    }

    /// Returns the target number of one record.
    ///
    /// Returns `None` if the targets are classes or there is no such record.
    #[must_use]
    pub fn number(&self, index: usize) -> Option<f32> {
        match &self.targets {
            Targets::Classes { .. } => None,
            Targets::Numbers(numbers) => numbers.get(index).copied(),
        }
    }

    /// Returns the names of the classes, or `None` if targets are numbers. The names are public.
    #[must_use]
    pub fn classes(&self) -> Option<&[String]> {
        match &self.targets {
            Targets::Classes { names, .. } => Some(names),
            Targets::Numbers(_) => None,
        }
    }

    /// Returns the user index of each record, if users are known.
    ///
    /// Indices are below [`user_count`](Self::user_count). Each user has at least one record.
    #[must_use]
    pub fn users(&self) -> Option<&[u32]> {
        self.users.as_ref().map(|users| users.of.as_slice())
    }

    /// Returns the number of users, if users are known.
    #[must_use]
    pub fn user_count(&self) -> Option<usize> {
        self.users.as_ref().map(|users| users.tags.len())
    }

    /// Returns the users, if known, in an order that depends on their names alone.
    ///
    /// Adding or removing one user does not change the order of the others.
    #[must_use]
    pub fn users_by_hash(&self) -> Option<Vec<usize>> {
        let users = self.users.as_ref()?;
        let mut order: Vec<usize> = (0..users.tags.len()).collect();
        order.sort_by_key(|user| users.tags[*user]);
        Some(order)
    }

    /// Returns the first records of each user, at most this many of each; `None` if users are not known.
    ///
    /// Which records of a user are kept depends on the records of this user alone.
    ///
    /// ```
    /// use quell::data;
    /// let digits = data::digits()?.train.select(&[0, 1, 2, 3]);
    /// let written = digits.with_users(&["ann", "bob", "ann", "ann"].map(Some))?;
    /// let kept = written.at_most_per_user(2).unwrap();
    /// assert_eq!(kept.users(), Some(&[0, 1, 0][..]));
    /// # Ok::<(), quell::Error>(())
    /// ```
    #[must_use]
    pub fn at_most_per_user(&self, most: u32) -> Option<Self> {
        let mut kept = vec![0; self.user_count()?];
        let is_kept = |user: u32| {
            let records: &mut u32 = &mut kept[user as usize];
            *records = records.saturating_add(1);
            *records <= most
        };
        let users = self.users()?.iter().copied().map(is_kept);
        let records: Vec<usize> =
            users.enumerate().filter(|(_, kept)| *kept).map(|(record, _)| record).collect();
        Some(self.select(&records))
    }

    /// Returns the given records, in the given order.
    ///
    /// # Panics
    /// If there is no such record.
    #[must_use]
    pub fn select(&self, records: &[usize]) -> Self {
        let features = Arc::new(match &*self.features {
            Features::Bytes(values) => Features::Bytes(rows(values, self.width, records)),
            Features::Numbers(values) => Features::Numbers(rows(values, self.width, records)),
        });
        let targets = match &self.targets {
            Targets::Classes { labels, names } => Targets::Classes {
                labels: records.iter().map(|record| labels[*record]).collect(),
                names: names.clone(),
            },
            Targets::Numbers(numbers) => {
                Targets::Numbers(records.iter().map(|record| numbers[*record]).collect())
            }
        };
        let users =
            self.users.as_ref().map(|users| Users::new(records.iter().map(|record| users.tag(*record))));
        let (shape, width, unit, affine) = (self.shape.clone(), self.width, self.unit, self.affine.clone());
        Self { shape, width, features, unit, affine, targets, users, rows: self.rows.select(records) }
    }

    /// Splits the records into a training part and a test part.
    ///
    /// The rule looks at one record at a time: see [`Split`].
    pub fn split(&self, rule: Split) -> Result<(Self, Self), Error> {
        rule.check()?;
        let (test, train): (Vec<usize>, Vec<usize>) =
            (0..self.len()).partition(|record| rule.tests(self.tag(*record)));
        Ok((self.select(&train), self.select(&test)))
    }

    /// Returns which of several shards a record belongs to.
    ///
    /// The shard depends on the record's user or, without users, on the record's own content. Adding or
    /// removing a record therefore changes one shard, and all records of a user are in one shard.
    ///
    /// # Panics
    /// If there is no such record, or no shard.
    #[must_use]
    pub fn shard(&self, record: usize, shards: usize) -> usize {
        self.tag(record).shard(shards)
    }

    /// Returns the tag that decides the part of a record: from its user, or else from its content.
    fn tag(&self, record: usize) -> Tag {
        if let Some(tag) = self.users.as_ref().and_then(|users| users.tag(record)) {
            return tag;
        }
        let range = record * self.width..(record + 1) * self.width;
        let target = match &self.targets {
            Targets::Classes { labels, .. } => labels[record].to_le_bytes(),
            Targets::Numbers(numbers) => numbers[record].to_le_bytes(),
        };
        match &*self.features {
            Features::Bytes(values) => Tag::of_record(&values[range], target),
            Features::Numbers(values) => Tag::of_record(
                &values[range].iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>(),
                target,
            ),
        }
    }
}

impl fmt::Debug for Examples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Examples")
            .field("shape", &self.shape)
            .field("classes", &self.classes())
            .finish_non_exhaustive()
    }
}

impl Targets {
    fn len(&self) -> usize {
        match self {
            Self::Classes { labels, .. } => labels.len(),
            Self::Numbers(numbers) => numbers.len(),
        }
    }

    /// Returns whether a record has a target.
    fn known(&self, record: usize) -> bool {
        match self {
            Self::Classes { labels, names } => (labels[record] as usize) < names.len(),
            Self::Numbers(numbers) => numbers[record].is_finite(),
        }
    }
}

impl Features {
    fn len(&self) -> usize {
        match self {
            Self::Bytes(values) => values.len(),
            Self::Numbers(values) => values.len(),
        }
    }
}

fn rows<T: Copy>(values: &[T], width: usize, records: &[usize]) -> Vec<T> {
    let mut chosen = Vec::with_capacity(records.len() * width);
    for record in records {
        chosen.extend_from_slice(&values[record * width..(record + 1) * width]);
    }
    chosen
}
