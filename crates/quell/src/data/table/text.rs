//! Columns of text: the words of a cell become numbers.
//!
//! Words are hashed, or looked up in a public embedding. The numbers of a cell depend on that cell and on
//! public things alone: nothing is counted over all records, because a vocabulary or a word frequency of
//! private records would be a release.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::embedding::Embedding;
use crate::Error;
use crate::data::TableError;

/// The most numbers of a text.
pub(super) const MOST: usize = 1 << 16;

/// How the words of a text become numbers in [-1, 1].
///
/// Either `hashed` or `embedding` is given, or both: then both kinds of numbers are features.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TextFeatures {
    /// The number of features to which words are hashed.
    ///
    /// A word adds 1 or -1 to one feature, both by its hash. The features of a text are scaled to length 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hashed: Option<usize>,
    /// A public file of word vectors. A text becomes the weighted mean of the vectors of its words.
    ///
    /// The file has a word and its numbers in each line, like those of GloVe and fastText. A safetensors file
    /// holds a matrix, and `vocabulary` names its words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding: Option<PathBuf>,
    /// The words of a safetensors file, one in each line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<PathBuf>,
    /// The number of numbers of a vector, recorded at the first use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dimension: Option<usize>,
    /// The BLAKE3 hash of words and vectors, recorded at the first use. Changed vectors are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl TextFeatures {
    /// The number of features, if it is known without reading the embedding.
    pub(super) fn width(&self) -> Option<usize> {
        let hashed = self.hashed.unwrap_or(0);
        if self.embedding.is_none() { Some(hashed) } else { self.dimension.map(|numbers| numbers + hashed) }
    }

    /// Refuses settings that contradict each other.
    pub(super) fn check(&self, column: &str) -> Result<(), Error> {
        let wrong = |because| Err(TableError::Schema { path: None, because }.into());
        let sizes = [self.hashed, self.dimension].into_iter().flatten();
        if sizes.into_iter().any(|size| !(1..=MOST).contains(&size)) {
            return wrong(format!(
                "column {column:?} has text of another size, expected 1 to {MOST} features"
            ));
        }
        if self.embedding.is_none() && (self.hashed.is_none() || self.vocabulary.is_some()) {
            return wrong(format!(
                "column {column:?} has text without features, expected hashed or embedding"
            ));
        }
        Ok(())
    }

    /// The public files that the features need.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.embedding.iter().chain(&self.vocabulary)
    }

    /// Records dimension and hash of the embedding at the first use, and refuses another one afterwards.
    pub(crate) fn pin(&mut self) -> Result<(), Error> {
        if let Some(embedding) = self.load()? {
            self.dimension = Some(embedding.dimension());
            self.digest = Some(embedding.digest().to_owned());
        }
        Ok(())
    }

    /// Reads the embedding, if there is one.
    fn load(&self) -> Result<Option<Embedding>, Error> {
        let Some(path) = &self.embedding else { return Ok(None) };
        let embedding = Embedding::read(path, self.vocabulary.as_deref())?;
        let is_other = self.digest.as_ref().is_some_and(|digest| digest != embedding.digest())
            || self.dimension.is_some_and(|dimension| dimension != embedding.dimension());
        if is_other {
            return Err(Error::Setting {
                name: "the embedding",
                found: "other vectors than the run began with".into(),
                expected: "the same vectors",
            });
        }
        Ok(Some(embedding))
    }

    /// Prepares the conversion of texts, and reads the embedding for that.
    pub(super) fn prepare(&self) -> Result<Words, Error> {
        Ok(Words { embedding: self.load()?, hashed: self.hashed.unwrap_or(0) })
    }
}

/// Converts texts to numbers: first those of the embedding, then the hashed ones.
pub(super) struct Words {
    embedding: Option<Embedding>,
    hashed: usize,
}

impl Words {
    fn embedded(&self) -> usize {
        self.embedding.as_ref().map_or(0, Embedding::dimension)
    }

    pub(super) fn width(&self) -> usize {
        self.embedded() + self.hashed
    }

    /// Writes the numbers of a text, and returns whether any of its words counts.
    pub(super) fn write(&self, text: &str, numbers: &mut [f32]) -> bool {
        let (embedded, hashed) = numbers.split_at_mut(self.embedded());
        let is_known = self.embedding.as_ref().is_some_and(|embedding| embedding.mean(text, embedded));
        let is_hashed = self.hashed > 0 && hash(text, hashed);
        is_known || is_hashed
    }
}

fn hash(text: &str, numbers: &mut [f32]) -> bool {
    numbers.fill(0.0);
    let lower = text.to_lowercase();
    for word in words(&lower) {
        let mut hasher = blake3::Hasher::new_derive_key("quell words of texts, version 1");
        hasher.update(word.as_bytes());
        let mut bytes = [0; 8];
        hasher.finalize_xof().fill(&mut bytes);
        let hash = u64::from_le_bytes(bytes);
        let place = (hash >> 1) % numbers.len() as u64;
        numbers[place as usize] += if hash & 1 == 1 { 1.0 } else { -1.0 };
    }
    let squares: f64 = numbers.iter().map(|number| f64::from(*number) * f64::from(*number)).sum();
    if squares > 0.0 {
        let scale = squares.sqrt().recip();
        for number in numbers.iter_mut() {
            *number = (f64::from(*number) * scale) as f32;
        }
    }
    squares > 0.0
}

/// The words of a text: runs of letters and digits.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashed_text_has_length_one_and_forgets_case_order_and_signs() {
        let (mut one, mut two) = ([0.0; 32], [0.0; 32]);
        assert!(hash("A good, good film!", &mut one) && hash("film GOOD a good", &mut two));
        assert_eq!(one, two);
        assert!((one.iter().map(|number| number * number).sum::<f32>() - 1.0).abs() < 1e-6);
        assert!(hash("a bad film", &mut two) && one != two);
        assert!(!hash(" ,! ", &mut two) && two == [0.0; 32]);
    }

    #[test]
    fn the_hash_of_a_word_never_changes() {
        let mut numbers = [0.0; 1000];
        hash("quell", &mut numbers);
        let place = numbers.iter().position(|number| *number != 0.0).unwrap();
        assert_eq!((place, numbers[place]), (997, -1.0));
    }
}
