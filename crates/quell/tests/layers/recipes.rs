//! Layers as they are written down: what is read is what was written, and what cannot be is said in words.

use proptest::prelude::*;
use quell::{
    Error, Hint,
    layer::{self, Spec},
    network::build,
};

use super::cases::cases;

fn read(text: &str) -> Spec {
    serde_json::from_str(text).unwrap()
}

fn refusal(text: &str, shape: &[usize]) -> String {
    let error = build(shape, &[read(text)]).err().unwrap();
    assert!(error.hint().is_some());
    error.to_string()
}

#[test]
fn recipes_are_read_as_they_are_written() {
    #[derive(serde::Serialize, serde::Deserialize)]
    struct File {
        layers: Vec<Spec>,
    }
    let file = File { layers: cases(0).map(|case| case.recipe).collect() };
    let text = toml::to_string(&file).unwrap();
    let again: File = toml::from_str(&text).unwrap();
    assert_eq!(again.layers, file.layers);
    for recipe in file.layers {
        assert_eq!(serde_json::from_str::<Spec>(&serde_json::to_string(&recipe).unwrap()).unwrap(), recipe);
    }
    let by_hand = "layers = [{ kind = \"max_pool\", kernel = [3, 2] }, { kind = \"relu\" }]";
    assert_eq!(toml::from_str::<File>(by_hand).unwrap().layers[1], Spec::Relu {});
}

#[test]
fn unknown_words_are_refused() {
    for text in [
        r#"{"kind":"linear","outputs":3,"bias":false}"#,
        r#"{"kind":"relu","slope":1}"#,
        r#"{"kind":"lstm"}"#,
        r#"{"kind":"linear"}"#,
        r#"{"kind":"linear","outputs":-1}"#,
        r#"{"kind":"max_pool","kernel":[1,2,3]}"#,
        r#"{"outputs":3}"#,
    ] {
        assert!(serde_json::from_str::<Spec>(text).is_err(), "{text}");
    }
}

#[test]
fn batch_norm_is_refused_with_the_reason_and_the_replacement() {
    let error = build(&[5, 5, 4], &[Spec::Relu {}, read(r#"{"kind":"batch_norm"}"#)]).err().unwrap();
    assert_eq!(
        error.to_string(),
        "layer 2 (batch_norm) mixes the examples of a batch, so no example has its own gradient to clip; \
         expected layers that process each example separately"
    );
    assert_eq!(error.hint(), Some(Hint::UseGroupNorm));
}

#[test]
fn what_does_not_fit_is_said_in_words() {
    for (text, shape, expected) in [
        (
            r#"{"kind":"group_norm","groups":3}"#,
            vec![5, 5, 4],
            "groups of layer 1 (group_norm) is 3, expected a divisor of the 4 channels",
        ),
        (
            r#"{"kind":"self_attention","heads":0}"#,
            vec![5, 4],
            "heads of layer 1 (self_attention) is 0, expected a divisor of the 4 channels",
        ),
        (
            r#"{"kind":"self_attention","heads":1}"#,
            vec![4],
            "the input of layer 1 (self_attention) has the shape [4], expected a sequence [length, channels]",
        ),
        (
            r#"{"kind":"dropout","rate":1.5}"#,
            vec![4],
            "rate of layer 1 (dropout) is 1.5, expected a number in [0, 1)",
        ),
        (
            r#"{"kind":"convolution","outputs":4,"kernel":9,"padding":1}"#,
            vec![5, 6, 1],
            "kernel of layer 1 (convolution) is 9 × 9, expected at most 7 × 8, the size of the input with padding",
        ),
        (
            r#"{"kind":"convolution","outputs":4,"kernel":[3,3]}"#,
            vec![5, 2],
            "kernel of layer 1 (convolution) is two numbers, expected one, for a sequence",
        ),
        (
            r#"{"kind":"convolution","outputs":5,"kernel":1,"groups":2}"#,
            vec![5, 4],
            "outputs of layer 1 (convolution) is 5, expected a multiple of the 2 groups",
        ),
        (
            r#"{"kind":"mean_pool","kernel":2,"stride":0}"#,
            vec![5, 4],
            "stride of layer 1 (mean_pool) is 0, expected whole numbers from 1 to 1048576",
        ),
        (
            r#"{"kind":"reshape","shape":[2,3]}"#,
            vec![5],
            "shape of layer 1 (reshape) is [2, 3], expected one to three numbers whose product is 5, the size of the input",
        ),
        (
            r#"{"kind":"residual","layers":[{"kind":"linear","outputs":3}]}"#,
            vec![5],
            "output of layer 1 (residual) is [3], expected [5], the shape that it is added to",
        ),
        (
            r#"{"kind":"residual","layers":[]}"#,
            vec![5],
            "layer 1 (residual) has no layers, expected at least one",
        ),
        (
            r#"{"kind":"residual","layers":[{"kind":"relu"},{"kind":"group_norm","groups":2}]}"#,
            vec![5],
            "groups of layer 2 (group_norm) in layer 1 (residual) is 2, expected a divisor of the 5 channels",
        ),
        (
            r#"{"kind":"embedding","words":5,"width":3}"#,
            vec![5, 4],
            "the input of layer 1 (embedding) has the shape [5, 4], expected a sequence of words, [length]",
        ),
        (
            r#"{"kind":"relu"}"#,
            vec![5, 0],
            "the input of layer 1 (relu) has the shape [5, 0], expected [numbers], [length, channels] or [rows, columns, channels], none of them zero",
        ),
    ] {
        assert_eq!(refusal(text, &shape), expected);
    }
    assert_eq!(
        build(&[3], &[]).err().unwrap().to_string(),
        "the network has no layers, expected at least one"
    );
    assert!(
        read(r#"{"kind":"group_norm","groups":3}"#)
            .build(&[4])
            .err()
            .unwrap()
            .to_string()
            .starts_with("groups of group_norm is 3")
    );
}

#[test]
fn a_forged_recipe_is_refused_before_anything_is_allocated() {
    let most = usize::MAX;
    for (text, shape) in [
        (r#"{"kind":"linear","outputs":1048576}"#.to_owned(), vec![2000]),
        (r#"{"kind":"linear","outputs":18446744073709551615}"#.to_owned(), vec![3]),
        (r#"{"kind":"relu"}"#.to_owned(), vec![most, most, most]),
        (r#"{"kind":"global_mean"}"#.to_owned(), vec![1 << 40, 1 << 40]),
        (r#"{"kind":"convolution","outputs":1048576,"kernel":1048576,"padding":1048576}"#.to_owned(), vec![1, 1, 1 << 20]),
        (r#"{"kind":"convolution","outputs":1,"kernel":1,"padding":1048576}"#.to_owned(), vec![1, 1, 1]),
        (
            r#"{"kind":"convolution","outputs":1,"kernel":18446744073709551615,"padding":9223372036854775808}"#.to_owned(),
            vec![1, 1, 1],
        ),
        (r#"{"kind":"max_pool","kernel":18446744073709551615,"stride":1}"#.to_owned(), vec![9, 9, 1]),
        (r#"{"kind":"embedding","words":16777216,"width":1048576}"#.to_owned(), vec![3]),
        (r#"{"kind":"embedding","words":16777217,"width":1}"#.to_owned(), vec![3]),
        (r#"{"kind":"self_attention","heads":1}"#.to_owned(), vec![1 << 20, 1]),
        (r#"{"kind":"self_attention","heads":1}"#.to_owned(), vec![1, 1 << 20]),
        (r#"{"kind":"reshape","shape":[18446744073709551615,18446744073709551615]}"#.to_owned(), vec![1]),
        (r#"{"kind":"reshape","shape":[]}"#.to_owned(), vec![1]),
        (r#"{"kind":"reshape","shape":[1,1,1,1]}"#.to_owned(), vec![1]),
    ] {
        assert!(read(&text).build(&shape).is_err(), "{text}");
    }
    // Each by itself would do.
    let wide = Spec::Linear { outputs: 1 << 18 };
    let error =
        build(&[1 << 11], &[wide, Spec::Linear { outputs: 1 << 11 }, Spec::Linear { outputs: 1 << 18 }])
            .err()
            .unwrap();
    assert!(matches!(error, Error::Layer(layer::Error::TooLarge { what: "weights", .. })), "{error}");
    let many = vec![Spec::Relu {}; 5000];
    assert!(matches!(
        build(&[1], &many).err().unwrap(),
        Error::Layer(layer::Error::TooLarge { what: "layers", .. })
    ));
    let deep = (0..50)
        .fold(Spec::Relu {}, |inner, _| Spec::Residual { layers: vec![inner], projection: Vec::new() });
    assert!(matches!(deep.build(&[1]).err().unwrap(), Error::Layer(layer::Error::TooDeep { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_settings_make_a_panic_and_what_is_built_is_within_bounds(
        sizes in proptest::collection::vec(prop_oneof![4 => 0_usize..9, 1 => any::<usize>()], 0..5),
        [a, b, c, d, e] in prop::array::uniform5(prop_oneof![6 => 0_usize..7, 1 => (0_usize..64).prop_map(|bits| 1 << bits), 1 => any::<usize>()]),
        standardized: bool,
    ) {
        use quell::layer::{Axes, Sides::{Each, Same}};
        let recipes = [
            Spec::Linear { outputs: a },
            Spec::Pointwise { outputs: a },
            Spec::Convolution { outputs: a, kernel: Same(b), stride: Same(c), padding: Same(d), groups: e, standardized },
            Spec::Convolution { outputs: a, kernel: Each([b, c]), stride: Same(1), padding: Each([d, e]), groups: 1, standardized },
            Spec::MaxPool { kernel: Each([a, b]), stride: Some(Each([c, d])) },
            Spec::MeanPool { kernel: Same(a), stride: None },
            Spec::GlobalMean {},
            Spec::GroupNorm { groups: a },
            Spec::LayerNorm { over: Axes::All },
            Spec::Embedding { words: a, width: b },
            Spec::Reshape { shape: vec![a, b] },
            Spec::Standardize { limit: a as f32 },
            Spec::SelfAttention { heads: a, causal: true },
            Spec::Residual { layers: vec![Spec::Pointwise { outputs: a }], projection: vec![Spec::Pointwise { outputs: a }] },
        ];
        for recipe in recipes {
            if let Ok(layer) = recipe.build(&sizes) {
                prop_assert!(layer.parameters() <= 1 << 30 && layer.kept() + layer.outputs() <= 1 << 26);
                prop_assert_eq!(layer.inputs(), sizes.iter().product::<usize>());
                prop_assert!(layer.outputs() > 0);
            }
        }
    }
}
