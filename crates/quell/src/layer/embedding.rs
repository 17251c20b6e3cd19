//! Word embeddings.

use std::collections::{HashMap, HashSet};

use super::{Layer, Pass, Shape};
use crate::{
    kernel::numbers::{add, add_scaled, squared_length},
    random::PublicRandom,
};

/// Replaces word indices by rows of a table.
///
/// An input that is not an index of the table becomes zeros and contributes no gradient.
///
/// The gradient of an example is zero outside the rows of its words. Only those rows are computed and kept,
/// one for each distinct word, at the position of its first occurrence. The gradient of the whole table is
/// never formed for one example.
#[derive(Clone, Debug)]
pub struct Embedding {
    words: usize,
    width: usize,
    places: usize,
    output: Shape,
}

impl Embedding {
    /// Creates the layer for sequences of `length` words. The table has `words` rows of `width` numbers.
    #[must_use]
    pub fn new(length: usize, words: usize, width: usize) -> Self {
        Self { words, width, places: length, output: vec![length, width] }
    }

    /// The table row of a word; `None` if it is not an index of the table.
    fn row(&self, word: f32) -> Option<usize> {
        let row = word as usize;
        (row < self.words && row as f32 == word).then_some(row)
    }

    /// For each distinct row in an example, the position of its first occurrence, in order.
    fn first_places<'a>(&self, example: &'a [f32]) -> impl Iterator<Item = (usize, usize)> + use<'_, 'a> {
        let mut seen = HashSet::new();
        let rows = example.iter().enumerate().filter_map(|(place, word)| Some((place, self.row(*word)?)));
        rows.filter(move |(_, row)| seen.insert(*row))
    }
}

impl Layer for Embedding {
    fn inputs(&self) -> usize {
        self.places
    }

    fn output(&self) -> &Shape {
        &self.output
    }

    fn parameters(&self) -> usize {
        self.words * self.width
    }

    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        vec![("weight".into(), vec![self.words, self.width])]
    }

    /// The rows of the gradient, each at the first occurrence of its word.
    fn kept(&self) -> usize {
        self.outputs()
    }

    fn initialize(&self, weights: &mut [f32], random: &mut PublicRandom) {
        for weight in weights {
            *weight = random.normal();
        }
    }

    fn forward(&self, weights: &[f32], input: &[f32], output: &mut [f32], _: &mut [f32], _: &[u64]) {
        for (word, output) in input.iter().zip(output.chunks_exact_mut(self.width)) {
            match self.row(*word) {
                Some(row) => output.copy_from_slice(&weights[row * self.width..][..self.width]),
                None => output.fill(0.0),
            }
        }
    }

    /// Indices are discrete, so the gradient by the input is zero.
    fn backward(&self, _: &[f32], _: Pass<'_>, _: &mut [f32], input_gradient: Option<&mut [f32]>) {
        if let Some(input_gradient) = input_gradient {
            input_gradient.fill(0.0);
        }
    }

    fn squared_norms(&self, pass: Pass<'_>, kept: &mut [f32], squared: &mut [f64]) {
        let gradients =
            kept.chunks_exact_mut(self.outputs()).zip(pass.output_gradient.chunks_exact(self.outputs()));
        let mut first = HashMap::new();
        for ((words, (rows, gradients)), square) in
            pass.input.chunks_exact(self.places).zip(gradients).zip(squared)
        {
            first.clear();
            for (place, (word, gradient)) in words.iter().zip(gradients.chunks_exact(self.width)).enumerate()
            {
                let Some(row) = self.row(*word) else { continue };
                let first_place = *first.entry(row).or_insert(place);
                let sum = &mut rows[first_place * self.width..][..self.width];
                if first_place == place {
                    sum.copy_from_slice(gradient);
                } else {
                    add(sum, gradient);
                }
            }
            // In the order of the positions, so that the same words give the same norm to the last bit.
            *square += self
                .first_places(words)
                .map(|(place, _)| squared_length(&rows[place * self.width..][..self.width]))
                .sum::<f64>();
        }
    }

    fn add_scaled(&self, pass: Pass<'_>, kept: &mut [f32], scales: &[f32], sum: &mut [f32]) {
        let examples = pass.input.chunks_exact(self.places).zip(kept.chunks_exact(self.outputs()));
        for ((words, rows), scale) in examples.zip(scales).filter(|(_, scale)| **scale != 0.0) {
            for (place, row) in self.first_places(words) {
                add_scaled(
                    &mut sum[row * self.width..][..self.width],
                    *scale,
                    &rows[place * self.width..][..self.width],
                );
            }
        }
    }
}
