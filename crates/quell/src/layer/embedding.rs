//! A vector for every word of a vocabulary.

use std::collections::{HashMap, HashSet};

use super::{Layer, Pass, Shape};
use crate::{
    chance::Chance,
    kernel::numbers::{add, add_scaled, squared_length},
};

/// Replaces whole numbers by rows of a table. What is no whole number, or beyond the table, becomes zeros and teaches nothing.
///
/// The gradient of an example is zero but for the rows of its words. Those are made and kept, one for each word that occurs, at the place where it
/// occurs first; the table itself never is.
#[derive(Clone, Debug)]
pub struct Embedding {
    words: usize,
    width: usize,
    places: usize,
    output: Shape,
}

impl Embedding {
    /// For sequences of `length` words out of so many, each to become `width` numbers.
    #[must_use]
    pub fn new(length: usize, words: usize, width: usize) -> Self {
        Self { words, width, places: length, output: vec![length, width] }
    }

    /// The row of a word.
    fn row(&self, word: f32) -> Option<usize> {
        let row = word as usize;
        (row < self.words && row as f32 == word).then_some(row)
    }

    /// For each row that occurs in an example, the place where it occurs first, in order.
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

    /// The rows of the gradient, each where its word occurs first.
    fn kept(&self) -> usize {
        self.outputs()
    }

    fn initialize(&self, weights: &mut [f32], chance: &mut Chance) {
        for weight in weights {
            *weight = chance.normal();
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

    /// A word cannot move a little: the derivative by it is zero.
    fn backward(&self, _: &[f32], _: Pass<'_>, _: &mut [f32], input_gradient: Option<&mut [f32]>) {
        if let Some(input_gradient) = input_gradient {
            input_gradient.fill(0.0);
        }
    }

    fn squared_norms(&self, pass: Pass<'_>, kept: &mut [f32], squared: &mut [f64]) {
        let gradients = kept.chunks_exact_mut(self.outputs()).zip(pass.output_gradient.chunks_exact(self.outputs()));
        let mut first = HashMap::new();
        for ((words, (rows, gradients)), square) in pass.input.chunks_exact(self.places).zip(gradients).zip(squared) {
            first.clear();
            for (place, (word, gradient)) in words.iter().zip(gradients.chunks_exact(self.width)).enumerate() {
                let Some(row) = self.row(*word) else { continue };
                let home = *first.entry(row).or_insert(place);
                let sum = &mut rows[home * self.width..][..self.width];
                if home == place {
                    sum.copy_from_slice(gradient);
                } else {
                    add(sum, gradient);
                }
            }
            // In the order of the places, so that the same words give the same number to the last bit.
            *square +=
                self.first_places(words).map(|(place, _)| squared_length(&rows[place * self.width..][..self.width])).sum::<f64>();
        }
    }

    fn add_scaled(&self, pass: Pass<'_>, kept: &mut [f32], scales: &[f32], sum: &mut [f32]) {
        let examples = pass.input.chunks_exact(self.places).zip(kept.chunks_exact(self.outputs()));
        for ((words, rows), scale) in examples.zip(scales).filter(|(_, scale)| **scale != 0.0) {
            for (place, row) in self.first_places(words) {
                add_scaled(&mut sum[row * self.width..][..self.width], *scale, &rows[place * self.width..][..self.width]);
            }
        }
    }
}
