//! Where in a network a layer is built, and how large the network is so far.

use super::{Layer, Recipe, Shape};
use crate::Error;

/// Weights of a network: four gigabytes.
const MOST_WEIGHTS: u128 = 1 << 30;
/// Numbers that are in memory for each example of a chunk: what goes through the layers, its gradients, and what layers keep.
const MOST_NUMBERS: u128 = 1 << 26;
/// Layers, those inside of others included.
const MOST_LAYERS: usize = 1 << 12;
/// Layers around a layer.
const DEEPEST: usize = 8;

/// What the layers that were built take together: a forged recipe ends here, before anything is allocated.
#[derive(Default)]
pub(crate) struct Tally {
    weights: u128,
    numbers: u128,
    layers: usize,
    lots: u64,
}

/// One place in a network.
pub(crate) struct Site<'a> {
    /// How it is called in a message.
    layer: String,
    depth: usize,
    tally: &'a mut Tally,
}

/// Numbers multiplied; 2¹²⁸ is far beyond every bound.
pub(super) fn product(numbers: &[usize]) -> u128 {
    numbers.iter().fold(1, |product: u128, number| product.saturating_mul(*number as u128))
}

impl<'a> Site<'a> {
    /// A layer by itself.
    pub(super) fn alone(recipe: &Recipe, tally: &'a mut Tally) -> Self {
        Self { layer: recipe.name().into(), depth: 0, tally }
    }

    /// Builds layers one after the other; they are called layers of `around`, if they are inside of something.
    pub(super) fn chain(
        tally: &mut Tally,
        (around, depth): (&str, usize),
        input: &[usize],
        recipes: &[Recipe],
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

    /// The same for what is inside of this layer.
    pub(super) fn inside(&mut self, input: &[usize], recipes: &[Recipe]) -> Result<Vec<Box<dyn Layer>>, Error> {
        if self.depth == DEEPEST {
            return Err(Error::LayersInLayers { layer: self.layer.clone(), most: DEEPEST });
        }
        Self::chain(self.tally, (&self.layer, self.depth + 1), input, recipes)
    }

    /// A number that no other layer gets, for drawing lots.
    pub(super) fn number(&mut self) -> u64 {
        self.tally.lots += 1;
        self.tally.lots
    }

    /// Whether so many more weights, and numbers for an example, are allowed: asked before they are multiplied in machine words.
    pub(super) fn afford(&self, weights: u128, numbers: u128) -> Result<(), Error> {
        let tally = &self.tally;
        let refuse = |what, most: u128| Err(Error::NetworkSize { layer: self.layer.clone(), what, most });
        if tally.weights.saturating_add(weights) > MOST_WEIGHTS {
            return refuse("weights", MOST_WEIGHTS);
        }
        if tally.numbers.saturating_add(numbers) > MOST_NUMBERS {
            return refuse("numbers for each example", MOST_NUMBERS);
        }
        if tally.layers == MOST_LAYERS { refuse("layers", MOST_LAYERS as u128) } else { Ok(()) }
    }

    /// Counts a layer with what it takes; what is inside of it was counted before.
    pub(super) fn count(&mut self, layer: &dyn Layer, has_layers: bool) -> Result<(), Error> {
        let values = 2 * product(layer.output());
        let (weights, numbers) =
            if has_layers { (0, values) } else { (layer.parameters() as u128, values + layer.kept() as u128) };
        self.afford(weights, numbers)?;
        self.tally.weights += weights;
        self.tally.numbers += numbers;
        self.tally.layers += 1;
        Ok(())
    }

    /// It gets what it cannot take.
    pub(super) fn misfit(&self, found: &[usize], expected: impl Into<String>) -> Error {
        Error::LayerInput { layer: self.layer.clone(), found: found.to_vec(), expected: expected.into() }
    }

    /// A setting is not what it may be.
    pub(super) fn setting(&self, setting: &'static str, found: &impl ToString, expected: impl Into<String>) -> Error {
        let layer = self.layer.clone();
        Error::LayerSetting { layer, setting, found: found.to_string(), expected: expected.into() }
    }

    /// What mixes examples.
    pub(super) fn mixes(&self) -> Error {
        Error::MixesExamples { layer: self.layer.clone() }
    }

    /// No layers where there must be some.
    pub(super) fn empty(&self) -> Error {
        Error::NoLayers { place: self.layer.clone() }
    }
}
