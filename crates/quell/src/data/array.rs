//! Arrays of numbers as IDX and NPY files hold them, and examples made of several.

use super::{Examples, Targets, examples::Features, memory::Memory, split::Tag, stream::Stream};
use crate::Error;

/// What the numbers of an array are, by declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Numbers {
    Boolean,
    Unsigned,
    Signed,
    Float,
}

/// How one number is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    pub(super) numbers: Numbers,
    /// Bytes of one: 1, 2, 4 or 8.
    pub(super) size: usize,
    pub(super) big_endian: bool,
}

/// A header that was read, and the numbers to come.
pub(super) struct Array<'a> {
    pub(super) stream: Stream<'a>,
    pub(super) stored: Stored,
    /// Sides; the first is the number of records.
    pub(super) sides: Vec<u64>,
}

/// One number.
enum Value {
    Integer(i128),
    Float(f64),
}

/// Features of all records.
pub(super) struct Block {
    pub(super) shape: Vec<usize>,
    pub(super) features: Features,
    pub(super) unit: f32,
}

/// A record's label that is none.
pub(super) const NO_CLASS: u32 = u32::MAX;

impl Stored {
    fn value(self, bytes: &[u8]) -> Value {
        let mut word = [0; 8];
        word[..self.size].copy_from_slice(bytes);
        if self.big_endian {
            word[..self.size].reverse();
        }
        let word = u64::from_le_bytes(word);
        match (self.numbers, self.size) {
            (Numbers::Float, 4) => Value::Float(f64::from(f32::from_bits(word as u32))),
            (Numbers::Float, _) => Value::Float(f64::from_bits(word)),
            (Numbers::Signed, size) => {
                let unused = 64 - 8 * size as u32;
                Value::Integer(i128::from((word << unused) as i64 >> unused))
            }
            (Numbers::Boolean, _) => Value::Integer(i128::from(word != 0)),
            (Numbers::Unsigned, _) => Value::Integer(i128::from(word)),
        }
    }
}

impl Array<'_> {
    /// Numbers in one record; none if that is more than there can be.
    fn width(&self) -> Option<u64> {
        self.sides.get(1..)?.iter().try_fold(1_u64, |width, side| width.checked_mul(*side))
    }

    fn records(&self) -> u64 {
        self.sides.first().copied().unwrap_or(0)
    }

    /// The sides in words, without the number of records.
    fn shown(&self) -> String {
        let others = self.sides.iter().skip(1).map(u64::to_string);
        let sides = self.sides.first().map(|_| "records".to_owned()).into_iter().chain(others);
        format!("a header with sides [{}]", sides.collect::<Vec<_>>().join(", "))
    }

    /// Refuses what the file cannot hold, and records of nothing: their number would cost nothing to forge.
    fn count(&self) -> Result<u64, Error> {
        let width = self.width().filter(|width| *width > 0);
        let count = width.and_then(|width| width.checked_mul(self.records()));
        let Some(count) = count else {
            return Err(self.stream.broken(self.shown(), "sides that are possible"));
        };
        self.stream.announced(count, self.stored.size as u64)?;
        Ok(count)
    }

    /// All numbers, as what a record's features are made of. Images of one channel get a side of 1 for it; channels that
    /// come last are put first.
    pub(super) fn features(mut self, memory: &Memory) -> Result<Block, Error> {
        let count = self.count()?;
        if count == 0 {
            // Whoever learns makes room for a record, and here no byte of the file vouches for the size of one.
            memory.take_all(self.width().unwrap_or(u64::MAX), 4, self.stream.path())?;
        }
        let sides: Vec<usize> = self.sides[1..].iter().map(|side| *side as usize).collect();
        let last = matches!(*sides, [rows, _, 1 | 3] if rows != 1 && rows != 3);
        let shape = match *sides {
            [] => vec![1],
            [rows, columns] => vec![1, rows, columns],
            [rows, columns, channels] if last => vec![channels, rows, columns],
            _ => sides,
        };
        let channels = shape[0];
        if self.stored.numbers == Numbers::Unsigned && self.stored.size == 1 {
            let mut bytes = self.stream.bytes(count, memory)?;
            self.stream.end()?;
            if last {
                channels_first(&mut bytes, &shape, channels);
            }
            return Ok(Block { shape, features: Features::Bytes(bytes), unit: 1.0 / 255.0 });
        }
        let path = self.stream.path().to_owned();
        memory.take_all(count, 4, &path)?;
        let mut numbers: Vec<f32> = self.stream.room(count);
        self.each(count, |value| {
            numbers.push(match value {
                Value::Integer(integer) => integer as f32,
                Value::Float(float) => float as f32,
            });
        })?;
        self.stream.end()?;
        if last {
            channels_first(&mut numbers, &shape, channels);
        }
        Ok(Block { shape, features: Features::Numbers(numbers), unit: 1.0 })
    }

    /// One class or number for each record. Integers are indices of classes, which are declared elsewhere because reading
    /// off the largest would tell something about a record; floats are numbers.
    pub(super) fn targets(mut self, classes: Option<&[String]>, memory: &Memory) -> Result<Targets, Error> {
        let count = self.one_each()?;
        memory.take_all(count, 4, self.stream.path())?;
        if self.stored.numbers == Numbers::Float && classes.is_none() {
            let mut numbers: Vec<f32> = self.stream.room(count);
            self.each(count, |value| {
                numbers.push(match value {
                    Value::Integer(integer) => integer as f32,
                    Value::Float(float) => float as f32,
                });
            })?;
            self.stream.end()?;
            return Ok(Targets::Numbers(numbers));
        }
        let names = match classes {
            Some(classes) => classes.to_vec(),
            None if self.stored.numbers == Numbers::Boolean => vec!["false".into(), "true".into()],
            None => return Err(Error::NoClasses { path: self.stream.path().to_owned() }),
        };
        let mut labels: Vec<u32> = self.stream.room(count);
        self.each(count, |value| {
            let index = match value {
                Value::Integer(integer) => u32::try_from(integer).ok(),
                Value::Float(float) => Some(float as u32).filter(|index| f64::from(*index) == float),
            };
            labels.push(index.unwrap_or(NO_CLASS));
        })?;
        self.stream.end()?;
        Ok(Targets::Classes { labels, names })
    }

    /// The user of each record, by a number.
    pub(super) fn users(mut self, memory: &Memory) -> Result<Vec<Option<Tag>>, Error> {
        let count = self.one_each()?;
        if self.stored.numbers == Numbers::Float {
            return Err(self.stream.broken("floating-point numbers", "integers that tell users apart"));
        }
        memory.take_all(count, size_of::<Option<Tag>>() as u64, self.stream.path())?;
        let mut users = self.stream.room(count);
        self.each(count, |value| {
            users.push(match value {
                Value::Integer(integer) => Tag::of_user(integer.to_string().as_bytes()),
                Value::Float(_) => None,
            });
        })?;
        self.stream.end()?;
        Ok(users)
    }

    /// The number of records, if there is one number for each.
    fn one_each(&self) -> Result<u64, Error> {
        let count = self.count()?;
        if self.sides.is_empty() || count != self.records() {
            return Err(self.stream.broken(self.shown(), "one number for each record"));
        }
        Ok(count)
    }

    fn each(&mut self, count: u64, mut each: impl FnMut(Value)) -> Result<(), Error> {
        let stored = self.stored;
        self.stream.chunks(count, stored.size, |chunk| {
            chunk.chunks_exact(stored.size).for_each(|bytes| each(stored.value(bytes)));
        })
    }
}

/// Examples of arrays that must be about the same number of records.
pub(super) fn examples(
    features: Array<'_>,
    labels: Array<'_>,
    users: Option<Array<'_>>,
    classes: Option<&[String]>,
    memory: &Memory,
) -> Result<Examples, Error> {
    let records = features.records();
    for other in [Some(&labels), users.as_ref()].into_iter().flatten() {
        if other.records() != records {
            let (path, other_path) = (features.stream.path().to_owned(), other.stream.path().to_owned());
            return Err(Error::Counts { path, other: other_path });
        }
    }
    // The small ones first: a file without labels is not worth its pixels.
    let targets = labels.targets(classes, memory)?;
    let users = users.map(|users| users.users(memory)).transpose()?;
    let Block { shape, features, unit } = features.features(memory)?;
    Examples::assemble(&shape, features, unit, targets, users)
}

/// Rows, columns, channels become channels, rows, columns in every record.
fn channels_first<T: Copy>(values: &mut [T], shape: &[usize], channels: usize) {
    let width = shape.iter().product();
    let plane = width / channels;
    let mut record = Vec::with_capacity(width);
    for values in values.chunks_exact_mut(width) {
        record.clear();
        record.extend((0..width).map(|place| values[place % plane * channels + place / plane]));
        values.copy_from_slice(&record);
    }
}
