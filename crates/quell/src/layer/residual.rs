//! Residual blocks.

use super::{Layer, Pass, Shape, chain::Chain};
use crate::{kernel::numbers::add, random::PublicRandom};

/// y = x + f(x), or p(x) + f(x) if f changes the shape.
///
/// The weights are those of f, layer by layer, then those of p.
pub struct Residual {
    block: Chain,
    projection: Option<Chain>,
}

impl Residual {
    /// Creates a block from the layers of f and the layers of p. Without a projection, p is the identity.
    ///
    /// `None` if the layers do not fit onto each other, or if the two terms have different sizes.
    #[must_use]
    pub fn new(layers: Vec<Box<dyn Layer>>, projection: Vec<Box<dyn Layer>>) -> Option<Self> {
        let block = Chain::new(layers)?;
        let projection = if projection.is_empty() { None } else { Some(Chain::new(projection)?) };
        let size = block.output().iter().product::<usize>();
        let fits = match &projection {
            Some(chain) => {
                chain.inputs() == block.inputs() && chain.output().iter().product::<usize>() == size
            }
            None => block.inputs() == size,
        };
        fits.then_some(Self { block, projection })
    }

    /// Splits `kept` into the parts of the block and of the projection.
    fn split<'a>(&self, kept: &'a mut [f32]) -> (&'a mut [f32], &'a mut [f32]) {
        let examples = kept.len() / self.kept();
        kept.split_at_mut(examples * self.block.kept())
    }
}

impl Layer for Residual {
    fn inputs(&self) -> usize {
        self.block.inputs()
    }

    fn output(&self) -> &Shape {
        self.block.output()
    }

    fn parameters(&self) -> usize {
        self.block.parameters() + self.projection.as_ref().map_or(0, Chain::parameters)
    }

    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let projection = self.projection.iter().flat_map(|chain| chain.tensors("projection."));
        self.block.tensors("").into_iter().chain(projection).collect()
    }

    fn kept(&self) -> usize {
        self.block.kept() + self.projection.as_ref().map_or(0, Chain::kept)
    }

    fn initialize(&self, weights: &mut [f32], random: &mut PublicRandom) {
        let (block, projection) = weights.split_at_mut(self.block.parameters());
        self.block.initialize(block, random);
        self.projection.iter().for_each(|chain| chain.initialize(projection, random));
    }

    fn forward(&self, weights: &[f32], input: &[f32], output: &mut [f32], kept: &mut [f32], seeds: &[u64]) {
        let (block, projection) = weights.split_at(self.block.parameters());
        let (kept, rest) = self.split(kept);
        output.copy_from_slice(self.block.forward(block, input, kept, seeds));
        match &self.projection {
            Some(chain) => add(output, chain.forward(projection, input, rest, seeds)),
            None => add(output, input),
        }
    }

    fn backward(
        &self,
        weights: &[f32],
        pass: Pass<'_>,
        kept: &mut [f32],
        input_gradient: Option<&mut [f32]>,
    ) {
        let (block, projection) = weights.split_at(self.block.parameters());
        let (kept, rest) = self.split(kept);
        let Some(input_gradient) = input_gradient else {
            self.block.backward(block, pass, kept, None);
            return self.projection.iter().for_each(|chain| chain.backward(projection, pass, rest, None));
        };
        self.block.backward(block, pass, kept, Some(input_gradient));
        match &self.projection {
            Some(chain) => {
                let mut other = vec![0.0; input_gradient.len()];
                chain.backward(projection, pass, rest, Some(&mut other));
                add(input_gradient, &other);
            }
            None => add(input_gradient, pass.output_gradient),
        }
    }

    fn squared_norms(&self, pass: Pass<'_>, kept: &mut [f32], squared: &mut [f64]) {
        let (kept, rest) = self.split(kept);
        self.block.squared_norms(pass, kept, squared);
        self.projection.iter().for_each(|chain| chain.squared_norms(pass, rest, squared));
    }

    fn add_scaled(&self, pass: Pass<'_>, kept: &mut [f32], scales: &[f32], sum: &mut [f32]) {
        let (block, projection) = sum.split_at_mut(self.block.parameters());
        let (kept, rest) = self.split(kept);
        self.block.add_scaled(pass, kept, scales, block);
        self.projection.iter().for_each(|chain| chain.add_scaled(pass, rest, scales, projection));
    }

    fn add(&self, pass: Pass<'_>, kept: &mut [f32], sum: &mut [f32]) {
        let (block, projection) = sum.split_at_mut(self.block.parameters());
        let (kept, rest) = self.split(kept);
        self.block.add(pass, kept, block);
        self.projection.iter().for_each(|chain| chain.add(pass, rest, projection));
    }
}
