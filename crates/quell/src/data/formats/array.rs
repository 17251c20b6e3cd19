//! Arrays of numbers from IDX and NPY files, and examples made from them.

use std::collections::HashMap;

use crate::Error;
use crate::data::{
    Examples, FormatError, Targets,
    examples::{Features, memory::Memory, split::Tag},
    formats::stream::Stream,
};

/// The declared type of the numbers in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::data) enum Numbers {
    Boolean,
    Unsigned,
    Signed,
    Float,
    /// Bytes of text, padded with zeros.
    Bytes,
    /// Characters of text as four-byte code points, padded with zeros.
    Characters,
}

/// How one number or text is stored.
#[derive(Clone, Copy, Debug)]
pub(in crate::data) struct Stored {
    pub(in crate::data) numbers: Numbers,
    /// The size of a number in bytes: 1, 2, 4 or 8. A text has up to 4096.
    pub(in crate::data) size: usize,
    pub(in crate::data) big_endian: bool,
}

/// An array whose header was read and whose numbers follow in the stream.
pub(in crate::data) struct Array<'a> {
    pub(in crate::data) stream: Stream<'a>,
    pub(in crate::data) stored: Stored,
    /// The lengths of the dimensions. The first is the number of records.
    pub(in crate::data) sides: Vec<u64>,
}

/// One number or text of an array.
enum Value {
    Integer(i128),
    Float(f64),
    /// The bytes or the code points of a text, without zeros at the end.
    Text {
        raw: Vec<u8>,
        text: String,
    },
}

/// The features of all records.
pub(in crate::data) struct Block {
    pub(in crate::data) shape: Vec<usize>,
    pub(in crate::data) features: Features,
    pub(in crate::data) unit: f32,
}

/// The label of a record without a class.
pub(in crate::data) const NO_CLASS: u32 = u32::MAX;

impl Value {
    fn number(&self) -> f32 {
        match self {
            Self::Integer(integer) => *integer as f32,
            Self::Float(float) => *float as f32,
            Self::Text { .. } => f32::NAN,
        }
    }
}

impl Stored {
    fn is_text(self) -> bool {
        matches!(self.numbers, Numbers::Bytes | Numbers::Characters)
    }

    fn value(self, bytes: &[u8]) -> Value {
        match self.numbers {
            Numbers::Bytes => {
                let text = String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
                let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                return Value::Text { raw: bytes[..length].to_vec(), text };
            }
            Numbers::Characters => {
                let codes = bytes.chunks_exact(4).map(|code| [code[0], code[1], code[2], code[3]]);
                let character = |code| char::from_u32(u32::from_le_bytes(code)).unwrap_or('\u{fffd}');
                let text: String = codes.clone().map(character).collect();
                let text = text.trim_end_matches('\0').to_owned();
                // Text that is no Unicode is identified by its code units: two people must not become one user.
                let is_text = codes.clone().all(|code| char::from_u32(u32::from_le_bytes(code)).is_some());
                let raw = if is_text { text.as_bytes().to_vec() } else { codes.flatten().collect() };
                return Value::Text { raw, text };
            }
            Numbers::Boolean | Numbers::Unsigned | Numbers::Signed | Numbers::Float => {}
        }
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
            _ => Value::Integer(i128::from(word)),
        }
    }
}

impl Array<'_> {
    /// Returns how many numbers one record has, or `None` if that overflows.
    fn width(&self) -> Option<u64> {
        self.sides.get(1..)?.iter().try_fold(1_u64, |width, side| width.checked_mul(*side))
    }

    fn records(&self) -> u64 {
        self.sides.first().copied().unwrap_or(0)
    }

    /// Describes the dimensions, without the number of records.
    fn shown(&self) -> String {
        let others = self.sides.iter().skip(1).map(u64::to_string);
        let sides = self.sides.first().map(|_| "records".to_owned()).into_iter().chain(others);
        format!("a header with sides [{}]", sides.collect::<Vec<_>>().join(", "))
    }

    /// Returns how many numbers the array has, if the file can hold them.
    ///
    /// Records without features are refused: a header could announce any number of them at no cost.
    fn count(&self) -> Result<u64, Error> {
        let width = self.width().filter(|width| *width > 0);
        let count = width.and_then(|width| width.checked_mul(self.records()));
        let Some(count) = count else {
            return Err(self.stream.broken(self.shown(), "possible dimensions"));
        };
        self.stream.announced(count, self.stored.size as u64)?;
        Ok(count)
    }

    /// Reads all numbers as features.
    ///
    /// Images without a channel dimension get one of length 1. A channel dimension that comes last is moved
    /// to the front.
    pub(in crate::data) fn features(mut self, memory: &Memory) -> Result<Block, Error> {
        let count = self.count()?;
        if self.stored.is_text() {
            return Err(self.stream.broken("text", "numbers as features"));
        }
        if count == 0 {
            // A learner allocates memory for one record, and an empty file does not confirm the size of a
            // record.
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
            numbers.push(value.number());
        })?;
        self.stream.end()?;
        if last {
            channels_first(&mut numbers, &shape, channels);
        }
        Ok(Block { shape, features: Features::Numbers(numbers), unit: 1.0 })
    }

    /// Reads one class or number for each record.
    ///
    /// Integers are indices of classes, texts are their names, and floats are numbers. Classes are declared
    /// elsewhere: inferring them from the largest index would reveal something about a record.
    pub(in crate::data) fn targets(
        mut self,
        classes: Option<&[String]>,
        memory: &Memory,
    ) -> Result<Targets, Error> {
        let count = self.one_each()?;
        memory.take_all(count, 4, self.stream.path())?;
        if self.stored.numbers == Numbers::Float && classes.is_none() {
            let mut numbers: Vec<f32> = self.stream.room(count);
            self.each(count, |value| {
                numbers.push(value.number());
            })?;
            self.stream.end()?;
            return Ok(Targets::Numbers(numbers));
        }
        let names = match classes {
            Some(classes) => classes.to_vec(),
            None if self.stored.numbers == Numbers::Boolean => vec!["false".into(), "true".into()],
            None => return Err(FormatError::NoClasses { path: self.stream.path().to_owned() }.into()),
        };
        let places: HashMap<String, u32> =
            names.iter().map(|name: &String| name.trim().to_owned()).zip(0..).collect();
        let mut labels: Vec<u32> = self.stream.room(count);
        self.each(count, |value| {
            let index = match value {
                Value::Integer(integer) => u32::try_from(integer).ok(),
                Value::Float(float) => Some(float as u32).filter(|index| f64::from(*index) == float),
                Value::Text { text, .. } => places.get(text.trim()).copied(),
            };
            labels.push(index.unwrap_or(NO_CLASS));
        })?;
        self.stream.end()?;
        Ok(Targets::Classes { labels, names })
    }

    /// Reads the user of each record, given by a number or a text.
    pub(in crate::data) fn users(mut self, memory: &Memory) -> Result<Vec<Option<Tag>>, Error> {
        let count = self.one_each()?;
        if self.stored.numbers == Numbers::Float {
            return Err(self.stream.broken("floating-point numbers", "integers that identify users"));
        }
        memory.take_all(count, size_of::<Option<Tag>>() as u64, self.stream.path())?;
        let mut users = self.stream.room(count);
        self.each(count, |value| {
            users.push(match value {
                Value::Integer(integer) => Tag::of_user(integer.to_string().as_bytes()),
                Value::Text { raw, .. } => Tag::of_user(&raw),
                Value::Float(_) => None,
            });
        })?;
        self.stream.end()?;
        Ok(users)
    }

    /// Returns the number of records, if the array has one number for each.
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

/// Makes examples from arrays that must have the same number of records.
pub(in crate::data) fn examples(
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
            return Err(FormatError::Counts { path, other: other_path }.into());
        }
    }
    // The small arrays are read first: without valid labels, the pixels are not needed.
    let targets = labels.targets(classes, memory)?;
    let users = users.map(|users| users.users(memory)).transpose()?;
    let Block { shape, features, unit } = features.features(memory)?;
    Examples::assemble(&shape, features, unit, targets, users)
}

/// Reorders every record from rows, columns, channels to channels, rows, columns.
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
