//! Every kind of layer, in odd sizes.

use quell::{
    layer::{Layer, Spec},
    random::PublicRandom,
};

const CASES: &[(&str, &[usize])] = &[
    (r#"{"kind":"linear","outputs":7}"#, &[5, 3]),
    (r#"{"kind":"linear","outputs":1}"#, &[1]),
    (r#"{"kind":"pointwise","outputs":4}"#, &[5, 3]),
    (r#"{"kind":"pointwise","outputs":7}"#, &[3, 2, 5]),
    (r#"{"kind":"convolution","outputs":4,"kernel":[3,2],"stride":[2,3],"padding":[1,0]}"#, &[7, 5, 3]),
    (r#"{"kind":"convolution","outputs":9,"kernel":3,"padding":[2,1],"groups":3}"#, &[5, 4, 6]),
    (r#"{"kind":"convolution","outputs":5,"kernel":4}"#, &[4, 4, 1]),
    (r#"{"kind":"convolution","outputs":6,"kernel":4,"stride":3,"padding":2,"groups":2}"#, &[9, 4]),
    (
        r#"{"kind":"convolution","outputs":4,"kernel":3,"stride":2,"padding":1,"standardized":true}"#,
        &[5, 6, 3],
    ),
    (r#"{"kind":"convolution","outputs":6,"kernel":[2,3],"groups":2,"standardized":true}"#, &[4, 3, 4]),
    (r#"{"kind":"convolution","outputs":3,"kernel":2,"stride":3,"standardized":true}"#, &[8, 3]),
    (r#"{"kind":"max_pool","kernel":[3,2],"stride":[2,1]}"#, &[7, 5, 3]),
    (r#"{"kind":"max_pool","kernel":2}"#, &[5, 4, 2]),
    (r#"{"kind":"max_pool","kernel":2,"stride":3}"#, &[9, 4]),
    (r#"{"kind":"mean_pool","kernel":[3,2],"stride":[2,1]}"#, &[7, 5, 3]),
    (r#"{"kind":"mean_pool","kernel":4,"stride":3}"#, &[9, 4]),
    (r#"{"kind":"global_mean"}"#, &[5, 3, 4]),
    (r#"{"kind":"global_mean"}"#, &[7, 3]),
    (r#"{"kind":"group_norm","groups":3}"#, &[5, 3, 6]),
    (r#"{"kind":"group_norm","groups":1}"#, &[7, 5]),
    (r#"{"kind":"group_norm","groups":5}"#, &[3, 3, 5]),
    (r#"{"kind":"group_norm","groups":4}"#, &[12]),
    (r#"{"kind":"layer_norm"}"#, &[7, 5]),
    (r#"{"kind":"layer_norm","over":"all"}"#, &[3, 2, 5]),
    (r#"{"kind":"layer_norm"}"#, &[9]),
    (r#"{"kind":"embedding","words":5,"width":3}"#, &[7]),
    (r#"{"kind":"positions"}"#, &[5, 3]),
    (r#"{"kind":"dropout","rate":0.4}"#, &[11]),
    (r#"{"kind":"waves","numbers":[0,3],"amplitudes":[1.0,0.7,0.5]}"#, &[5]),
    (r#"{"kind":"waves","numbers":[1],"amplitudes":[1,1,1,1,1,1,1,1]}"#, &[2]),
    (r#"{"kind":"waves","numbers":[2,0],"amplitudes":[1,1,1,1,1,1,1,1,0.9,0.8,0.7,0.6]}"#, &[3]),
    (r#"{"kind":"waves","numbers":[1],"amplitudes":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,0.5]}"#, &[3]),
    (
        r#"{"kind":"residual","layers":[{"kind":"waves","numbers":[1],"amplitudes":[1,1,1,1,1,1,1,1,1,1]},
            {"kind":"linear","outputs":3}]}"#,
        &[3],
    ),
    (r#"{"kind":"leaves","columns":[0,3,0,1],"trees":9,"seed":5}"#, &[6]),
    (r#"{"kind":"leaves","columns":[0],"trees":3,"seed":1}"#, &[1]),
    (r#"{"kind":"decision_tree","depth":2,"outputs":3}"#, &[4]),
    (r#"{"kind":"decision_tree","depth":0,"outputs":1}"#, &[2]),
    (r#"{"kind":"flatten"}"#, &[3, 2, 5]),
    (r#"{"kind":"reshape","shape":[5,6]}"#, &[3, 2, 5]),
    (r#"{"kind":"self_attention","heads":3}"#, &[7, 6]),
    (r#"{"kind":"self_attention","heads":1,"causal":true}"#, &[5, 3]),
    (r#"{"kind":"self_attention","heads":2,"causal":true}"#, &[6, 4]),
    (r#"{"kind":"self_attention","heads":2}"#, &[1, 4]),
    (
        r#"{"kind":"residual","layers":[{"kind":"linear","outputs":5},{"kind":"tanh"},{"kind":"linear","outputs":5}]}"#,
        &[5],
    ),
    (
        r#"{"kind":"residual","layers":[{"kind":"layer_norm"},{"kind":"self_attention","heads":2},
            {"kind":"residual","layers":[{"kind":"pointwise","outputs":4},{"kind":"gelu"}]}]}"#,
        &[5, 4],
    ),
    (
        r#"{"kind":"residual","layers":[{"kind":"group_norm","groups":2},{"kind":"silu"},{"kind":"dropout","rate":0.3},
            {"kind":"convolution","outputs":6,"kernel":3,"stride":2,"padding":1,"standardized":true}],
            "projection":[{"kind":"convolution","outputs":6,"kernel":1,"stride":2},{"kind":"tanh"}]}"#,
        &[5, 3, 4],
    ),
    (r#"{"kind":"relu"}"#, &[11]),
    (r#"{"kind":"tanh"}"#, &[11]),
    (r#"{"kind":"selu"}"#, &[3, 5]),
    (r#"{"kind":"gelu"}"#, &[11]),
    (r#"{"kind":"silu"}"#, &[11]),
    (r#"{"kind":"sigmoid"}"#, &[11]),
    (r#"{"kind":"hard_tanh"}"#, &[11]),
    (r#"{"kind":"standardize","limit":0.75}"#, &[3, 5]),
    (r#"{"kind":"bound_length"}"#, &[2]),
    (r#"{"kind":"append_squares"}"#, &[3, 2]),
];

/// A layer, weights, and examples for it.
pub(crate) struct Case {
    pub(crate) recipe: Spec,
    pub(crate) shape: Vec<usize>,
    pub(crate) layer: Box<dyn Layer>,
    pub(crate) weights: Vec<f32>,
    pub(crate) input: Vec<f32>,
    pub(crate) output_gradient: Vec<f32>,
    pub(crate) coins: Vec<u64>,
}

/// All kinds, each with so many examples.
pub(crate) fn cases(examples: usize) -> impl Iterator<Item = Case> {
    CASES.iter().zip(1..).map(move |((recipe, shape), number)| {
        let recipe: Spec = serde_json::from_str(recipe).unwrap();
        let layer = recipe.build(shape).unwrap();
        let mut chance = PublicRandom::of(7, number);
        let mut numbers = |count: usize| -> Vec<f32> { (0..count).map(|_| chance.normal()).collect() };
        let weights = numbers(layer.parameters());
        let mut input = numbers(examples * layer.inputs());
        let output_gradient = numbers(examples * layer.outputs());
        if matches!(recipe, Spec::Embedding { .. }) {
            // Words, some of them twice, and some that are none.
            let words = [0.0, 1.0, 2.0, 3.0, 4.0, 1.0, -1.0, 5.0, 2.5, -0.0, 1e30];
            for x in &mut input {
                *x = words[chance.below(words.len())];
            }
        }
        let coins = (0..examples).map(|_| chance.bits()).collect();
        Case { recipe, shape: shape.to_vec(), layer, weights, input, output_gradient, coins }
    })
}

impl Case {
    /// The numbers of one example.
    pub(crate) fn example(&self, example: usize) -> (&[f32], &[f32]) {
        let (inputs, outputs) = (self.layer.inputs(), self.layer.outputs());
        (&self.input[example * inputs..][..inputs], &self.output_gradient[example * outputs..][..outputs])
    }

    pub(crate) fn name(&self) -> String {
        format!("{} of {:?}", self.recipe.name(), self.shape)
    }
}
