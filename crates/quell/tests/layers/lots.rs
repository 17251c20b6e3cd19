//! Dropout: who is left out.

use quell::layer::{Dropout, Spec};

use super::ran::Ran;

#[test]
fn a_coin_decides_who_is_left_out_and_the_rest_keeps_the_mean() {
    const SIZE: usize = 100_000;
    let layer = Dropout::new(0.3, 1, vec![SIZE]).unwrap();
    let (input, gradient) = (vec![2.0; 2 * SIZE], vec![3.0; 2 * SIZE]);
    let ran = Ran::new(&layer, &[], &input, &gradient, &[11, 12]);
    for example in ran.output.chunks(SIZE) {
        let left_out = example.iter().filter(|x| **x == 0.0).count();
        // Six standard deviations of a coin that falls 100,000 times.
        assert!((left_out as f64 - 30_000.0).abs() < 6.0 * (100_000.0_f64 * 0.3 * 0.7).sqrt(), "{left_out}");
        assert!(example.iter().all(|x| *x == 0.0 || (*x - 2.0 / 0.7).abs() < 1e-6));
    }
    // What was left out has no derivative, and the rest that of its factor.
    for (y, g) in ran.output.iter().zip(&ran.input_gradient) {
        assert!((g - 1.5 * y).abs() < 1e-6);
    }
    assert_ne!(ran.output[..SIZE], ran.output[SIZE..]);
}

#[test]
fn layers_of_one_network_leave_out_different_numbers() {
    const SIZE: usize = 1000;
    let (input, gradient) = (vec![1.0; SIZE], vec![1.0; SIZE]);
    let outputs: Vec<Vec<f32>> = [1, 2, 1]
        .map(|number| {
            Ran::new(&Dropout::new(0.5, number, vec![SIZE]).unwrap(), &[], &input, &gradient, &[5]).output
        })
        .to_vec();
    assert_eq!(outputs[0], outputs[2]);
    let both = outputs[0].iter().zip(&outputs[1]).filter(|(a, b)| **a == 0.0 && **b == 0.0).count();
    // A quarter, within six standard deviations.
    assert!((both as f64 - 250.0).abs() < 6.0 * (1000.0_f64 * 0.25 * 0.75).sqrt(), "{both}");

    // Layers that are built together get different numbers, also inside of a block.
    let dropout = || Spec::Dropout { rate: 0.5 };
    let block = Spec::Residual { layers: vec![dropout(), dropout()], projection: Vec::new() };
    let layer = block.build(&[SIZE]).unwrap();
    let ran = Ran::new(layer.as_ref(), &[], &input, &gradient, &[5]);
    // 1 + 4 where neither left the number out; were both the same, that would be a half.
    let kept = ran.output.iter().filter(|y| **y == 5.0).count();
    assert!((kept as f64 - 250.0).abs() < 6.0 * (1000.0_f64 * 0.25 * 0.75).sqrt(), "{kept}");
}

#[test]
fn nobody_is_left_out_when_not_training() {
    let layer = Dropout::new(0.9, 1, vec![50]).unwrap();
    let (input, gradient) = (vec![1.5; 100], vec![1.0; 100]);
    let ran = Ran::new(&layer, &[], &input, &gradient, &[]);
    assert_eq!((ran.output, ran.input_gradient), (input.clone(), gradient.clone()));
}

#[test]
fn rates_are_below_one() {
    for rate in [1.0, -0.1, f32::NAN, f32::INFINITY] {
        assert!(Dropout::new(rate, 1, vec![3]).is_none());
    }
    assert!(Dropout::new(0.0, 1, vec![3]).is_some());
}
