//! Networks with a name.

use quell::{
    Error, Hint,
    network::{self, build, layers_of, models},
};

#[test]
fn named_models_are_what_the_papers_say() {
    // Weights, counted by hand from the shapes.
    let mnist: &[usize] = &[28, 28, 1];
    let cifar: &[usize] = &[32, 32, 3];
    let convolutions = 3 * 9 * 32
        + 32 * 9 * 32
        + 32 * 9 * 64
        + 64 * 9 * 64
        + 64 * 9 * 128
        + 128 * 9 * 128
        + 2 * (32 + 64 + 128);
    for (name, shape, parameters) in [
        ("logistic", mnist, 7850),
        ("mlp", mnist, 785 * 1000 + 1001 * 10),
        ("mlp-tanh", mnist, 785 * 1000 + 1001 * 10),
        ("cnn", mnist, 65 * 16 + 257 * 32 + 513 * 32 + 33 * 10),
        ("cnn-tanh", mnist, 65 * 16 + 257 * 32 + 513 * 32 + 33 * 10),
        ("cifar-cnn", cifar, convolutions + 2049 * 128 + 129 * 10),
        ("digits", &[8, 8, 1], 10 * 16 + 145 * 32 + 129 * 10),
    ] {
        let network = build(shape, &layers_of(name, shape, 10).unwrap()).unwrap();
        assert_eq!((network.parameters(), network.outputs()), (parameters, 10), "{name}");
    }
}

#[test]
fn every_model_takes_the_shapes_it_is_for() {
    let shapes: [(&str, &[&[usize]]); 10] = [
        ("logistic", &[&[3], &[28, 28, 1], &[7, 2]]),
        ("mlp", &[&[3], &[28, 28, 1]]),
        ("mlp-small", &[&[3], &[28, 28, 1]]),
        ("mlp-tanh", &[&[3], &[28, 28, 1]]),
        ("cnn", &[&[28, 28, 1], &[32, 32, 3]]),
        ("cnn-tanh", &[&[28, 28, 1], &[32, 32, 3]]),
        ("cifar-cnn", &[&[32, 32, 3], &[28, 28, 1], &[8, 8, 1]]),
        ("digits", &[&[8, 8, 1], &[28, 28, 1]]),
        ("resnet", &[&[32, 32, 3], &[28, 28, 1], &[8, 8, 1], &[1, 1, 1]]),
        ("transformer", &[&[20, 4], &[15], &[28, 28, 1], &[8, 8, 3]]),
    ];
    assert_eq!(models().iter().map(|model| model.name).collect::<Vec<_>>(), shapes.map(|(name, _)| name));
    for (name, shapes) in shapes {
        for shape in shapes {
            let network = build(shape, &layers_of(name, shape, 3).unwrap()).unwrap();
            assert_eq!((network.outputs(), network.input().as_slice()), (3, *shape), "{name}");
            let names: Vec<String> = network.tensors().map(|(name, _, _)| name).collect();
            let mut unique = names.clone();
            unique.sort();
            unique.dedup();
            assert_eq!(unique.len(), names.len(), "{name}");
        }
    }
    assert!(models().iter().all(|model| model.purpose.ends_with('.')));
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let text = |name: &str, shape: &[usize]| layers_of(name, shape, 10).unwrap_err().to_string();
    assert_eq!(
        text("cnn", &[8, 8, 1]),
        "kernel of layer 4 (convolution) is 4 × 4, expected at most 3 × 3, the size of the input"
    );
    assert_eq!(
        text("cnn", &[784]),
        "the input of layer 1 (convolution) has the shape [784], expected an image [rows, columns, channels] or a sequence [length, channels]"
    );
    assert_eq!(
        text("digits", &[3, 3, 1]),
        "kernel of layer 6 (max_pool) is 2 × 2, expected at most 1 × 1, the size of the input"
    );
    let unknown = layers_of("cnn-tahn", &[28, 28, 1], 10).unwrap_err();
    assert!(
        matches!(unknown, Error::Network(network::Error::NoModel { .. }))
            && unknown.hint() == Some(Hint::DidYouMean { name: "cnn-tanh".into() }),
        "{unknown}"
    );
    assert!(
        text("vgg", &[28, 28, 1])
            .starts_with("there is no model \"vgg\", expected one of \"logistic\", \"mlp\"")
    );
    assert_eq!(
        layers_of("logistic", &[3], 0).unwrap_err().to_string(),
        "outputs of layer 1 (linear) is 0, expected a whole number from 1 to 1048576"
    );
}
