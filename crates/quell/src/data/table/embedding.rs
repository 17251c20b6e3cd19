//! Public word vectors, read from a file.
//!
//! A text becomes the mean of the vectors of its words. The vectors are standardised over the words of the
//! file, and a word counts the less the earlier it is in the file: such files list frequent words first (the
//! weights of Arora, Liang and Ma 2017). Both follow from the file alone, which is public.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use safetensors::{Dtype, SafeTensors};

use super::text::{MOST, words};
use crate::data::{examples::memory::Memory, formats::stream::Stream};
use crate::{Error, file};

/// The longest line of a file of word vectors, in bytes.
const LONGEST_LINE: u64 = 1 << 20;
/// The largest safetensors file, in bytes.
const LARGEST: u64 = 4 << 30;
/// The most words.
const MOST_WORDS: usize = 1 << 23;
/// The share of a text above which words are frequent: a/(a + p) is the weight of a word of frequency p.
const RARE: f64 = 1e-2;
/// The standardised mean that becomes 1. Larger ones are clamped.
const WIDEST: f64 = 2.0;

/// Standardised vectors of words.
pub(super) struct Embedding {
    places: HashMap<String, u32>,
    dimension: usize,
    /// The vectors, one after another.
    vectors: Vec<f32>,
    digest: String,
}

impl Embedding {
    /// Reads a text file of words and vectors, or a safetensors file with a list of words.
    pub(super) fn read(path: &Path, vocabulary: Option<&Path>) -> Result<Self, Error> {
        let memory = Memory::new(Memory::USUAL);
        let (list, dimension, vectors) = match vocabulary {
            Some(vocabulary) => matrix(path, vocabulary, &memory)?,
            None => lines(path, &memory)?,
        };
        let mut hasher = blake3::Hasher::new();
        let mut places = HashMap::new();
        for (place, word) in (0..).zip(list) {
            hasher.update(word.as_bytes()).update(b"\n");
            // The first of equal words counts: it is the more frequent one.
            places.entry(word).or_insert(place);
        }
        for number in &vectors {
            hasher.update(&number.to_le_bytes());
        }
        let mut read = Self { places, dimension, vectors, digest: hasher.finalize().to_hex().to_string() };
        read.standardize();
        Ok(read)
    }

    pub(super) fn dimension(&self) -> usize {
        self.dimension
    }

    pub(super) fn digest(&self) -> &str {
        &self.digest
    }

    /// Gives each number mean 0 and deviation 1 over all words.
    fn standardize(&mut self) {
        let count = (self.vectors.len() / self.dimension).max(1) as f64;
        for place in 0..self.dimension {
            let column = || self.vectors.iter().skip(place).step_by(self.dimension).map(|n| f64::from(*n));
            let mean = column().sum::<f64>() / count;
            let variance = column().map(|number| (number - mean) * (number - mean)).sum::<f64>() / count;
            let scale = if variance > 0.0 { variance.sqrt().recip() } else { 0.0 };
            for number in self.vectors.iter_mut().skip(place).step_by(self.dimension) {
                *number = ((f64::from(*number) - mean) * scale) as f32;
            }
        }
    }

    /// Writes the weighted mean of the vectors of a text, and returns whether it has a known word.
    ///
    /// A piece between white space that is no known word is split at its signs.
    pub(super) fn mean(&self, text: &str, numbers: &mut [f32]) -> bool {
        let (mut sums, mut total) = (vec![0.0_f64; self.dimension], 0.0);
        // Frequencies of words fall like 1/rank: p = 1/(rank · ln words).
        let spread = (self.places.len() as f64).ln().max(1.0);
        let mut add = |place: u32| {
            let frequency = (f64::from(place + 1) * spread).recip();
            let weight = RARE / (RARE + frequency);
            total += weight;
            let vector = &self.vectors[place as usize * self.dimension..][..self.dimension];
            sums.iter_mut().zip(vector).for_each(|(sum, number)| *sum += weight * f64::from(*number));
        };
        let lower = text.to_lowercase();
        for piece in lower.split_whitespace() {
            match self.places.get(piece) {
                Some(place) => add(*place),
                None => words(piece).filter_map(|word| self.places.get(word)).for_each(|place| add(*place)),
            }
        }
        let scale = if total > 0.0 { (total * WIDEST).recip() } else { 0.0 };
        for (number, sum) in numbers.iter_mut().zip(sums) {
            *number = (sum * scale).clamp(-1.0, 1.0) as f32;
        }
        total > 0.0
    }
}

/// Words, dimension and vectors.
type Vectors = (Vec<String>, usize, Vec<f32>);

/// Reads lines of a word and its numbers, with spaces between them.
///
/// The first line may hold two numbers: those of words and of numbers in a vector.
fn lines(path: &Path, memory: &Memory) -> Result<Vectors, Error> {
    let (mut list, mut dimension, mut vectors) = (Vec::new(), 0, Vec::new());
    for (index, line) in each_line(path)?.enumerate() {
        let line = line?;
        let mut cells = line.trim_end().split(' ');
        let word = cells.next().unwrap_or_default();
        let before = vectors.len();
        let is_valid = cells.all(|cell| match cell.parse::<f32>() {
            Ok(number) if number.is_finite() => {
                vectors.push(number);
                vectors.len() - before <= MOST
            }
            _ => false,
        });
        let found = vectors.len() - before;
        if index == 0 && is_valid && found == 1 && word.parse::<usize>().is_ok() {
            vectors.clear();
            continue;
        }
        dimension = if list.is_empty() { found } else { dimension };
        if !is_valid || found == 0 || found != dimension || list.len() == MOST_WORDS {
            return Err(wrong(
                path,
                format!("line {} of another form", index + 1),
                "a word and the same number of finite numbers in every line, with spaces between them",
            ));
        }
        memory.take(4 * found as u64 + word.len() as u64 + 64, path)?;
        list.push(word.to_owned());
    }
    if list.is_empty() {
        return Err(wrong(path, "no words".into(), "a word and its numbers in every line"));
    }
    Ok((list, dimension, vectors))
}

/// Reads the only matrix of a safetensors file, and the word of each row from a list.
fn matrix(path: &Path, vocabulary: &Path, memory: &Memory) -> Result<Vectors, Error> {
    let bytes = file::read(path, LARGEST)?;
    memory.take(bytes.len() as u64, path)?;
    let expected = "a safetensors file with one matrix of F16, BF16 or F32";
    let other = |found: &str| wrong(path, found.into(), expected);
    let tensors = SafeTensors::deserialize(&bytes).map_err(|_| other("another format"))?;
    let mut views =
        tensors.tensors().into_iter().map(|(_, view)| view).filter(|view| view.shape().len() == 2);
    let (Some(view), None) = (views.next(), views.next()) else {
        return Err(other("no matrix or several"));
    };
    let [rows, dimension] = [view.shape()[0], view.shape()[1]];
    if rows == 0 || rows > MOST_WORDS || dimension == 0 || dimension > MOST {
        return Err(other("a matrix of a size that is not supported"));
    }
    memory.take_all(rows as u64 * dimension as u64, 4, path)?;
    let pairs = || view.data().chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let vectors: Vec<f32> = match view.dtype() {
        Dtype::F16 => pairs().map(half).collect(),
        Dtype::BF16 => pairs().map(|bits| f32::from_bits(u32::from(bits) << 16)).collect(),
        Dtype::F32 => {
            let numbers = view.data().chunks_exact(4);
            numbers.map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]])).collect()
        }
        _ => return Err(other("a matrix of another type")),
    };
    if vectors.iter().any(|number| !number.is_finite()) {
        return Err(other("numbers that are not finite"));
    }
    let mut list = Vec::new();
    for word in each_line(vocabulary)?.take(rows + 1) {
        let word = word?;
        memory.take(word.len() as u64 + 64, vocabulary)?;
        list.push(word.trim().to_owned());
    }
    if list.len() == rows {
        return Ok((list, dimension, vectors));
    }
    Err(wrong(vocabulary, "another number of lines".into(), "one word for each row of the matrix"))
}

/// Converts the bits of a half-precision number that is finite. Others become infinite.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    sign * match exponent {
        0 => fraction * 2_f32.powi(-24),
        31 => f32::INFINITY,
        _ => (1024.0 + fraction) * 2_f32.powi(exponent - 25),
    }
}

/// The lines of a file, which may be gzipped. Bytes that are not UTF-8 are read as U+FFFD.
fn each_line(path: &Path) -> Result<impl Iterator<Item = Result<String, Error>>, Error> {
    let mut reader = BufReader::new(Stream::open(path)?.into_reader());
    let mut failed = false;
    Ok(std::iter::from_fn(move || {
        if failed {
            return None;
        }
        let mut line = Vec::new();
        match reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) => return None,
            Ok(count) if (count as u64) < LONGEST_LINE => {
                return Some(Ok(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()));
            }
            Ok(_) => {}
            Err(error) => {
                failed = true;
                return Some(Err(Error::io(path, &error)));
            }
        }
        failed = true;
        Some(Err(wrong(path, "a line of more than a mebibyte".into(), "shorter lines")))
    }))
}

fn wrong(path: &Path, found: String, expected: &str) -> Error {
    crate::data::FormatError::Broken { path: path.to_owned(), found, expected: expected.into() }.into()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests make files")]
mod tests {
    use super::*;

    #[test]
    fn half_precision_numbers_are_converted_exactly() {
        for (bits, number) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x0001, 5.960_464_5e-8),
            (0x7bff, 65504.0),
        ] {
            assert_eq!(half(bits), number, "{bits:x}");
        }
        assert!(half(0x7c00).is_infinite());
    }

    #[test]
    fn a_text_is_the_mean_of_its_known_words_and_rare_words_count_more() {
        let path = std::env::temp_dir().join(format!("quell-vectors-{}.txt", std::process::id()));
        std::fs::write(&path, "3 2\nthe 1 0\ngood 0 1\nbad 0 -1\n").unwrap();
        let read = Embedding::read(&path, None).unwrap();
        assert_eq!(read.dimension(), 2);
        let mean = |text: &str| {
            let mut numbers = [0.0; 2];
            let is_known = read.mean(text, &mut numbers);
            is_known.then_some(numbers)
        };
        assert_eq!(mean("xyz !"), None);
        assert_eq!(mean("Good"), mean("(good)"));
        assert_eq!(mean("good xyz"), mean("good"));
        let [the, good, both] = ["the", "good", "the good"].map(|text| mean(text).unwrap());
        assert!((both[1] - good[1]).abs() < (both[1] - the[1]).abs(), "{the:?} {good:?} {both:?}");
        for wrong in ["a 1 2\nb 1\n", "a 1 x\n", "a nan\n", "", "word\n"] {
            std::fs::write(&path, wrong).unwrap();
            assert!(Embedding::read(&path, None).is_err(), "{wrong:?}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
