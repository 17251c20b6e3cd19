//! Inputs at which a formula is not defined, or of which nothing is left.

use quell::layer::{Dropout, Embedding, Layer, Normalization, Pool, Pooling, SelfAttention, Spec};

use super::ran::Ran;

#[test]
fn of_equal_numbers_the_first_gets_the_gradient() {
    let layer = Pooling::new(Pool::Largest, [2, 3, 1], [2, 2], [1, 1]).unwrap();
    let ran = Ran::new(&layer, &[], &[5.0, 5.0, 1.0, 5.0, 2.0, 5.0], &[1.0, 10.0], &[]);
    assert_eq!(ran.output, [5.0, 5.0]);
    assert_eq!(ran.input_gradient, [1.0, 10.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn what_is_no_word_becomes_zeros_and_teaches_nothing() {
    let layer = Embedding::new(6, 3, 2);
    let words = [1.0, -1.0, 3.0, 0.5, f32::NAN, f32::INFINITY];
    let mut ran = Ran::new(&layer, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &words, &[7.0; 12], &[]);
    assert_eq!(ran.output, [3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!((ran.gradient(0), ran.squared), (vec![0.0, 0.0, 7.0, 7.0, 0.0, 0.0], vec![98.0]));
}

#[test]
fn a_word_that_occurs_twice_is_measured_once() {
    // Lengths of the two gradients apart would give 2 · 98 in place of (7 + 7)² · 2.
    let layer = Embedding::new(2, 3, 2);
    let mut ran = Ran::new(&layer, &[0.0; 6], &[2.0, 2.0], &[7.0; 4], &[]);
    assert_eq!((ran.gradient(0), ran.squared), (vec![0.0, 0.0, 0.0, 0.0, 14.0, 14.0], vec![392.0]));
}

#[test]
fn equal_numbers_are_normalised_to_zeros() {
    for layer in [
        Normalization::over_groups(&[3, 4], 2).unwrap(),
        Normalization::over_last_axis(&[3, 4]).unwrap(),
        Normalization::over_all(&[3, 4]).unwrap(),
    ] {
        let mut weights = vec![0.0; layer.parameters()];
        layer.initialize(&mut weights, &mut quell::random::PublicRandom::new(1));
        let ran = Ran::new(&layer, &weights, &[1000.7; 12], &[1.0; 12], &[]);
        assert!(ran.output.iter().all(|y| *y == 0.0) && ran.input_gradient.iter().all(|g| g.is_finite()));
    }
}

#[test]
fn a_filter_of_equal_weights_is_standardised_to_zeros() {
    let recipe = r#"{"kind":"convolution","outputs":2,"kernel":3,"standardized":true}"#;
    let layer = serde_json::from_str::<Spec>(recipe).unwrap().build(&[3, 3, 1]).unwrap();
    let mut weights = vec![0.7; layer.parameters()];
    weights[18..].copy_from_slice(&[1.0, -2.0]);
    let mut ran = Ran::new(layer.as_ref(), &weights, &[1.0; 9], &[1.0, 1.0], &[]);
    assert_eq!(ran.output, [1.0, -2.0]);
    assert!(ran.gradient(0).iter().all(|g| g.is_finite()));
}

#[test]
fn attention_of_huge_products_looks_at_the_largest() {
    let layer = SelfAttention::new([3, 1], 1, false).unwrap();
    // Queries, keys and values are the input itself, times 10¹⁰ for the first two.
    let weights = [1e10, 1e10, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
    let ran = Ran::new(&layer, &weights, &[1.0, 2.0, 3.0], &[1.0; 3], &[]);
    assert_eq!(ran.output, [3.0; 3]);
    assert!(ran.input_gradient.iter().all(|g| g.is_finite()));
}

#[test]
fn what_is_left_out_is_zero_even_where_it_was_not_finite() {
    let layer = Dropout::new(0.5, 1, vec![100]).unwrap();
    let ran = Ran::new(&layer, &[], &[f32::NAN; 100], &[f32::INFINITY; 100], &[3]);
    let left_out = ran.output.iter().filter(|y| **y == 0.0).count();
    assert!((20..80).contains(&left_out), "{left_out}");
    assert_eq!(ran.input_gradient.iter().filter(|g| **g == 0.0).count(), left_out);
}
