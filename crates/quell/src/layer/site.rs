//! The position of a layer in a network, and the network's size so far.

use super::Error;
use super::{Layer, Shape, Spec};

/// The most weights of a network: four gigabytes.
const MOST_WEIGHTS: u128 = 1 << 30;
/// The most numbers in memory per example: values, their gradients, and `kept` numbers.
const MOST_NUMBERS: u128 = 1 << 26;
/// The most layers, including nested ones.
const MOST_LAYERS: usize = 1 << 12;
/// The deepest nesting of layers.
const DEEPEST: usize = 8;

/// The total size of the layers built so far.
///
/// It stops a malicious configuration before anything is allocated.
#[derive(Default)]
pub(crate) struct Tally {
    weights: u128,
    numbers: u128,
    layers: usize,
    dropout_layers: u64,
}

/// A position in a network.
pub(crate) struct Site<'a> {
    /// The name of the layer in messages.
    layer: String,
    depth: usize,
    tally: &'a mut Tally,
}

/// Multiplies numbers. The product saturates at 2¹²⁸ - 1, which is far beyond every limit.
pub(super) fn product(numbers: &[usize]) -> u128 {
    numbers.iter().fold(1, |product: u128, number| product.saturating_mul(*number as u128))
}

impl<'a> Site<'a> {
    /// The position of a layer that is not part of a network.
    pub(super) fn alone(recipe: &Spec, tally: &'a mut Tally) -> Self {
        Self { layer: recipe.name().into(), depth: 0, tally }
    }

    /// Builds a sequence of layers. `around` is the name of the layer that contains them, or empty.
    pub(super) fn chain(
        tally: &mut Tally,
        (around, depth): (&str, usize),
        input: &[usize],
        recipes: &[Spec],
    ) -> Result<Vec<Box<dyn Layer>>, Error> {
        let inside = if around.is_empty() { String::new() } else { format!(" in {around}") };
        let mut layers: Vec<Box<dyn Layer>> = Vec::new();
        for (number, recipe) in recipes.iter().enumerate() {
            let layer = format!("layer {} ({}){inside}", number + 1, recipe.name());
            let shape: Shape = layers.last().map_or(input, |layer| layer.output()).to_vec();
            layers.push(recipe.build_at(&shape, &mut Site { layer, depth, tally })?);
        }
        Ok(layers)
    }

    /// Builds the layers that this layer contains.
    pub(super) fn build_inner(
        &mut self,
        input: &[usize],
        recipes: &[Spec],
    ) -> Result<Vec<Box<dyn Layer>>, Error> {
        if self.depth == DEEPEST {
            return Err(Error::TooDeep { layer: self.layer.clone(), most: DEEPEST });
        }
        Self::chain(self.tally, (&self.layer, self.depth + 1), input, recipes)
    }

    /// Returns a number that no other dropout layer of the network gets.
    pub(super) fn dropout_number(&mut self) -> u64 {
        self.tally.dropout_layers += 1;
        self.tally.dropout_layers
    }

    /// Checks whether the network may grow by this many weights, and numbers per example.
    ///
    /// Call it before computing these products as `usize`, which could overflow.
    pub(super) fn check_size(&self, weights: u128, numbers: u128) -> Result<(), Error> {
        let tally = &self.tally;
        let refuse = |what, most: u128| Err(Error::TooLarge { layer: self.layer.clone(), what, most });
        if tally.weights.saturating_add(weights) > MOST_WEIGHTS {
            return refuse("weights", MOST_WEIGHTS);
        }
        if tally.numbers.saturating_add(numbers) > MOST_NUMBERS {
            return refuse("numbers for each example", MOST_NUMBERS);
        }
        if tally.layers == MOST_LAYERS { refuse("layers", MOST_LAYERS as u128) } else { Ok(()) }
    }

    /// Adds a layer to the totals. The layers that it contains were added before.
    pub(super) fn count(&mut self, layer: &dyn Layer, has_layers: bool) -> Result<(), Error> {
        let values = 2 * product(layer.output());
        let (weights, numbers) = if has_layers {
            (0, values)
        } else {
            (layer.parameters() as u128, values + layer.kept() as u128)
        };
        self.check_size(weights, numbers)?;
        self.tally.weights += weights;
        self.tally.numbers += numbers;
        self.tally.layers += 1;
        Ok(())
    }

    /// The error for an input of the wrong shape.
    pub(super) fn shape_error(&self, found: &[usize], expected: impl Into<String>) -> Error {
        Error::Input { layer: self.layer.clone(), found: found.to_vec(), expected: expected.into() }
    }

    /// The error for a setting outside its range.
    pub(super) fn setting(
        &self,
        setting: &'static str,
        found: &impl ToString,
        expected: impl Into<String>,
    ) -> Error {
        let layer = self.layer.clone();
        Error::Setting { layer, setting, found: found.to_string(), expected: expected.into() }
    }

    /// The error for a layer that mixes examples.
    pub(super) fn mixes(&self) -> Error {
        Error::MixesExamples { layer: self.layer.clone() }
    }

    /// The error for an empty list of layers.
    pub(super) fn empty(&self) -> Error {
        Error::NoLayers { place: self.layer.clone() }
    }
}
