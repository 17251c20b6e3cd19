use quell_privacy::{Neighbors, laws, ledger::Unit};

use super::*;
use crate::{
    data::{Examples, Targets},
    learner::{PublicFacts, loss::Loss},
    network::{self, models},
    random::PublicRandom,
};

const WIDTH: usize = 5;

/// Examples of 15 users, with hostile values and some usual ones.
fn examples(records: usize, classes: usize, chance: &mut PublicRandom) -> Examples {
    let hostile = [0.4, -1.0, 1.0, 0.0, 1e30, f32::MAX, 1e-40, -7.0];
    let value = |number: usize, chance: &mut PublicRandom| {
        // Every other record is usual: its score is in a range between the first and the last.
        if number / WIDTH % 2 == 0 { chance.normal() } else { hostile[chance.below(hostile.len())] }
    };
    let values = (0..WIDTH * records).map(|number| value(number, chance)).collect();
    let users: Vec<_> = (0..records).map(|_| Some([chance.below(15) as u8])).collect();
    let labels = (0..records).map(|_| chance.below(classes) as u32).collect();
    let names = (0..classes).map(|class| class.to_string()).collect();
    let targets = Targets::Classes { labels, names };
    Examples::numbers(&[WIDTH], values, targets).unwrap().with_users(&users).unwrap()
}

fn last_run(loss: Loss, outputs: usize, noise: f64) -> LastRun {
    let calibration = Calibration::of(loss, outputs).unwrap();
    let descent = Descent {
        sampling: Sampling::Full,
        clipping: Clipping::Flat { norm: ClipNorm::new(1.0).unwrap() },
        noise_multiplier: NoiseMultiplier::new(noise).unwrap(),
        dimension: calibration.length(),
    };
    LastRun { calibration, descent }
}

const CROSS_ENTROPY: Loss = Loss::CrossEntropy { label_smoothing: 0.0 };

/// The contract of contributions for examples, rows and users, with hostile values.
#[test]
fn vectors_keep_the_contract_and_are_at_most_one_long() {
    for (classes, loss, outputs) in
        [(2, CROSS_ENTROPY, 2), (2, Loss::BinaryCrossEntropy, 1), (3, CROSS_ENTROPY, 3)]
    {
        let mut chance = PublicRandom::of(3, classes as u64);
        let examples = examples(60, classes, &mut chance);
        let network = network::named("mlp-small", &[WIDTH], outputs).unwrap();
        let weights: Vec<f32> = network.initialize(3).iter().map(|weight| 4.0 * weight).collect();
        let last = last_run(loss, outputs, 1.0);
        for (unit, neighbors) in [
            (Unit::Example, Neighbors::AddRemove),
            (Unit::Example, Neighbors::Replace),
            (Unit::User, Neighbors::AddRemove),
            // More users are declared than there are.
            (Unit::User, Neighbors::Replace),
        ] {
            let task = Supervised::new(&examples, loss, None).protecting(unit, neighbors, 20).unwrap();
            let all: Vec<usize> = (0..task.records()).collect();
            let mut vectors = last.vectors(&network, &weights, &task);
            assert_eq!(laws::check_contributions(&mut vectors, &all), Ok(()), "{unit:?} {neighbors:?}");
            let mut ranges = 0;
            for record in all {
                let vector = laws::sum(&mut vectors, &[record]);
                let squared: f64 = vector.iter().map(|x| x * x).sum();
                let total: f64 = vector.iter().sum();
                if squared.is_nan() {
                    // Sums of huge numbers overflow. The mechanism drops such a record.
                    continue;
                }
                assert!(squared <= 1.0 + 1e-6, "{squared}");
                // An example counts once; a record without examples counts nowhere.
                assert!((total - 1.0).abs() < 1e-6 || total == 0.0, "{total}");
                ranges = ranges.max(vector.iter().position(|x| *x > 0.0).unwrap_or(0));
            }
            assert!(ranges > 0);
        }
    }
}

/// The last digit of an output may decide on its range.
#[test]
fn a_vector_is_the_same_whatever_the_other_records_are() {
    let mut chance = PublicRandom::of(4, 1);
    let examples = examples(700, 2, &mut chance);
    let network = network::named("mlp", &[WIDTH], 2).unwrap();
    let weights = network.initialize(5);
    let task = Supervised::new(&examples, CROSS_ENTROPY, None);
    let last = last_run(CROSS_ENTROPY, 2, 1.0);
    let mut vectors = last.vectors(&network, &weights, &task);
    let all: Vec<usize> = (0..examples.len()).collect();
    let alone: Vec<Vec<f64>> = all.iter().map(|record| laws::sum(&mut vectors, &[*record])).collect();
    let third = all.len() / 3;
    for records in [&all[..], &all[..3], &all[third..2 * third + 1]] {
        let records: Vec<usize> =
            records.iter().copied().filter(|record| alone[*record].iter().all(|x| x.is_finite())).collect();
        let together = laws::sum(&mut vectors, &records);
        let mut sum = vec![0.0; together.len()];
        for record in &records {
            sum.iter_mut().zip(&alone[*record]).for_each(|(sum, x)| *sum += x);
        }
        assert_eq!(together, sum, "{} records", records.len());
    }
}

#[test]
fn a_record_without_a_score_has_no_length() {
    let values = [vec![0.1; WIDTH], vec![f32::MAX; WIDTH], vec![-0.3; WIDTH]].concat();
    let targets = Targets::Classes { labels: vec![0, 1, 1], names: vec!["a".into(), "b".into()] };
    let examples = Examples::numbers(&[WIDTH], values, targets).unwrap();
    assert_eq!(examples.len(), 3);
    let network = network::named("logistic", &[WIDTH], 2).unwrap();
    // Both outputs of the second record are infinite, and their difference is not a number.
    let weights = vec![4.0; network.parameters()];
    let task = Supervised::new(&examples, CROSS_ENTROPY, None);
    let last = last_run(CROSS_ENTROPY, 2, 1.0);
    let mut vectors = last.vectors(&network, &weights, &task);
    let all: Vec<usize> = (0..task.records()).collect();
    assert_eq!(laws::check_contributions(&mut vectors, &all), Ok(()));
    let norm = |record: usize| laws::sum(&mut vectors, &[record]).iter().map(|x| x * x).sum::<f64>();
    let norms: Vec<f64> = all.into_iter().map(norm).collect();
    // The mechanism drops a record whose length is not a number.
    assert!(norms[0] == 1.0 && norms[1].is_nan() && norms[2] == 1.0, "{norms:?}");
}

/// Every built-in model ends with the linear layer into which a correction is folded.
#[test]
fn scores_of_every_model_are_multiplied_by_the_scale_and_moved_by_the_offset() {
    let mut chance = PublicRandom::of(5, 1);
    for (model, outputs) in models().iter().flat_map(|model| [(model, 2), (model, 4)]) {
        let shape = match model.name {
            "logistic" | "mlp" | "mlp-small" | "mlp-tanh" => vec![6],
            "digits" => vec![8, 8, 1],
            "cifar-cnn" => vec![32, 32, 3],
            _ => vec![28, 28, 1],
        };
        let Ok(network) = network::named(model.name, &shape, outputs) else {
            panic!("{}", model.name);
        };
        let weights = network.initialize(9);
        let last = last_run(CROSS_ENTROPY, outputs, 1.0);
        // Most records with a high score are of another class: the scale is less than one.
        let mut released = vec![0.0; last.length()];
        for (range, pair) in released.chunks_exact_mut(2).enumerate() {
            pair.copy_from_slice(if range < 10 { &[700.0, 300.0] } else { &[300.0, 700.0] });
        }
        let mut corrected = weights.clone();
        last.correct(&released, 28_000, &network, &mut corrected);
        let sum: Vec<f64> = released.iter().map(|x| f64::from(*x)).collect();
        let Correction { scale, offset } = last.calibration.correction(&sum, 28_000.0, 1.0);
        assert!(scale < 0.5 && (outputs > 2 || offset.abs() > 0.05), "{scale} {offset}");
        let input: Vec<f32> = (0..shape.iter().product()).map(|_| chance.normal()).collect();
        let of = |weights: &[f32]| -> Vec<f64> {
            let mut single = network.single();
            let outputs = single.outputs(weights, |to| to.copy_from_slice(&input));
            outputs.iter().map(|x| f64::from(*x)).collect()
        };
        let (before, after) = (of(&weights), of(&corrected));
        for (place, (before, after)) in before.iter().zip(&after).enumerate() {
            let moved = if outputs == 2 && place == 1 { offset } else { 0.0 };
            assert!((scale * before + moved - after).abs() < 1e-3, "{} {before} {after}", model.name);
        }
    }
}

#[test]
fn only_networks_for_classes_with_a_linear_last_layer_are_calibrated() {
    let subject = |classes: Option<usize>| {
        let facts = PublicFacts { records: Some(30_000), classes };
        Subject { shape: &[WIDTH], are_features: false, facts, schema: None }
    };
    let delta = Delta::new(1e-6).unwrap();
    let mut recipe = Recipe::default();
    recipe.privacy.epsilon = Some(1.0);
    let named = Architecture { name: Some("mlp".into()), layers: Vec::new() };
    let own = |layers: Vec<Spec>| Architecture { name: None, layers };
    let squashed = own(vec![Spec::Linear { outputs: 2 }, Spec::Tanh {}]);
    let chosen = |recipe: &Recipe, model: &Architecture, classes: Option<usize>, records: u64| {
        LastRun::chosen(recipe, model, &subject(classes), (records, delta))
    };
    assert!(chosen(&recipe, &named, Some(2), 30_000).unwrap().is_some());
    assert!(chosen(&recipe, &own(vec![Spec::Linear { outputs: 2 }]), Some(2), 30_000).unwrap().is_some());
    assert_eq!(chosen(&recipe, &squashed, Some(2), 30_000).unwrap(), None);
    assert_eq!(chosen(&recipe, &named, None, 30_000).unwrap(), None);
    let hinge = Recipe { loss: Some(Loss::Hinge { smoothing: 0.5 }), ..recipe.clone() };
    assert_eq!(chosen(&hinge, &named, Some(2), 30_000).unwrap(), None);
    // Too few records for the noise, unless it is asked for.
    assert_eq!(chosen(&recipe, &named, Some(2), 3_000).unwrap(), None);
    let asked =
        Recipe { calibration: Some(Recalibration::Scores { noise_multiplier: None }), ..recipe.clone() };
    assert!(chosen(&asked, &named, Some(2), 3_000).unwrap().is_some());
    for (model, classes) in [(&squashed, Some(2)), (&named, None)] {
        let refused = chosen(&asked, model, classes, 30_000);
        assert!(matches!(refused, Err(Error::Setting { name: "calibration", .. })), "{refused:?}");
    }
    let none = Recipe { calibration: Some(Recalibration::None {}), ..recipe.clone() };
    assert_eq!(chosen(&none, &named, Some(2), 30_000).unwrap(), None);
    // Noise that somebody chose, or that an earlier plan chose, pays for the steps alone.
    recipe.privacy.noise_multiplier = Some(4.0);
    assert_eq!(chosen(&recipe, &named, Some(2), 30_000).unwrap(), None);
}
