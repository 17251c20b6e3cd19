//! The student: which rows it asks about, what it makes of the answers, and what it learns from them.

use quell::{
    Error,
    data::{Examples, Targets, digits},
    learner::{
        evaluate,
        loss::{Loss, arg_max},
        optimizer::Optimizer,
    },
    network::{self, Network},
    random::PublicRandom,
    voting::student::{Propagation, SoftLabelTraining, Views, representatives},
};

const CENTERS: [[f32; 2]; 3] = [[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]];

/// Points around centres, so many around each, and which centre each belongs to.
fn blobs(sizes: [usize; 3]) -> (Vec<f32>, Vec<u32>) {
    let mut chance = PublicRandom::new(3);
    let (mut points, mut labels) = (Vec::new(), Vec::new());
    for (class, (center, size)) in CENTERS.iter().zip(sizes).enumerate() {
        for _ in 0..size {
            points.extend(center.iter().map(|x| x + 0.5 * chance.normal()));
            labels.push(class as u32);
        }
    }
    (points, labels)
}

fn named(labels: Vec<u32>, classes: u32) -> Targets {
    Targets::Classes { labels, names: (0..classes).map(|class| class.to_string()).collect() }
}

fn named_network(name: &str, shape: &[usize], classes: usize) -> Network {
    network::build(shape, &network::layers_of(name, shape, classes).unwrap()).unwrap()
}

fn one_hot(labels: &[u32], classes: usize) -> Vec<f32> {
    labels
        .iter()
        .flat_map(|label| (0..classes).map(move |class| f32::from(u8::from(class as u32 == *label))))
        .collect()
}

fn accuracy(network: &Network, weights: &[f32], examples: &Examples) -> f64 {
    evaluate(network, weights, examples, Loss::CrossEntropy { label_smoothing: 0.0 }).accuracy().unwrap()
}

/// Rows whose guess is wrong.
fn wrong(guesses: &[f32], labels: &[u32], classes: usize) -> usize {
    guesses
        .chunks_exact(classes)
        .zip(labels)
        .filter(|(guess, label)| arg_max(guess) != Some(**label as usize))
        .count()
}

#[test]
fn a_wrong_answer_in_a_tight_cluster_is_corrected() {
    let (points, labels) = blobs([40, 40, 40]);
    let mut answers: Vec<(usize, u32)> = (0..120).step_by(8).map(|row| (row, labels[row])).collect();
    answers[1].1 = 2;
    let guesses = Propagation::default().spread(&points, 2, &answers, 3).unwrap();
    assert_eq!(wrong(&guesses, &labels, 3), 0, "the answer about row 8 included");
    let stubborn =
        Propagation { alpha: 0.01, ..Propagation::default() }.spread(&points, 2, &answers, 3).unwrap();
    assert_eq!(arg_max(&stubborn[3 * 8..3 * 9]), Some(2), "who listens to nobody keeps it");
    for row in guesses.chunks_exact(3) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
}

#[test]
fn a_cluster_that_no_answer_reaches_is_left_open() {
    let (points, _) = blobs([40, 40, 40]);
    let guesses = Propagation::default().spread(&points, 2, &[(0, 0), (40, 1)], 3).unwrap();
    assert!(guesses[100 * 3..101 * 3].iter().all(|guess| (guess - 1.0 / 3.0).abs() < 1e-6));
    assert!(guesses[1] < 1e-6 && guesses[0] > 0.99);
}

#[test]
fn the_first_representatives_are_of_all_clusters_the_largest_first() {
    let (points, labels) = blobs([30, 300, 90]);
    for seed in 0..5 {
        let chosen = representatives(&points, 2, 20, seed).unwrap();
        let first: Vec<u32> = chosen[..3].iter().map(|row| labels[*row]).collect();
        assert_eq!(first[0], 1);
        assert!((0..3).all(|class| first.contains(&class)), "{first:?}");
        let mut rows = chosen.clone();
        rows.sort_unstable();
        rows.dedup();
        assert!(
            rows.len() == chosen.len() && (18..=20).contains(&rows.len()),
            "{} different rows",
            rows.len()
        );
    }
}

#[test]
fn representatives_are_nearer_to_all_than_rows_by_chance() {
    let (points, _) = blobs([200, 200, 200]);
    let far = |chosen: &[usize]| -> f32 {
        let distance = |point: &[f32], row: &usize| {
            (point[0] - points[2 * row]).powi(2) + (point[1] - points[2 * row + 1]).powi(2)
        };
        points
            .chunks_exact(2)
            .map(|point| chosen.iter().map(|row| distance(point, row)).fold(f32::MAX, f32::min))
            .sum()
    };
    let chosen = representatives(&points, 2, 60, 1).unwrap();
    let mut chance = PublicRandom::new(1);
    let by_chance: Vec<usize> = (0..60).map(|_| chance.below(600)).collect();
    // The first part alone, too.
    assert!(far(&chosen) < 0.7 * far(&by_chance), "{} and {}", far(&chosen), far(&by_chance));
    assert!(
        far(&chosen[..15]) < 0.7 * far(&by_chance[..15]),
        "{} and {}",
        far(&chosen[..15]),
        far(&by_chance[..15])
    );
}

#[test]
fn all_rows_are_representatives_if_as_many_are_wanted() {
    let mut chosen = representatives(&[1.0, 1.0, 5.0], 1, 9, 0).unwrap();
    assert_eq!(chosen[0], 0, "two are there");
    chosen.sort_unstable();
    assert_eq!(chosen, [0, 1, 2]);
    assert!(!representatives(&[1.0; 8], 1, 3, 0).unwrap().is_empty(), "all rows are the same");
}

#[test]
fn a_student_of_sixty_noisy_answers_reads_digits_it_never_saw() {
    let digits = digits().unwrap();
    let (public, width) = (digits.train, 64);
    let labels: Vec<u32> = (0..public.len()).map(|row| public.label(row).unwrap()).collect();
    let points = features(&public);
    let chosen = representatives(&points, width, 60, 1).unwrap();
    let mut answers: Vec<(usize, u32)> = chosen.iter().map(|row| (*row, labels[*row])).collect();
    answers[20].1 = (answers[20].1 + 1) % 10;
    let guesses = Propagation::default().spread(&points, width, &answers, 10).unwrap();
    assert!(wrong(&guesses, &labels, 10) * 100 < 4 * labels.len(), "{} wrong", wrong(&guesses, &labels, 10));
    // What the rows really are is nothing a student knows.
    let unlabelled = Examples::numbers(public.shape(), points, named(vec![0; public.len()], 10)).unwrap();
    let network = named_network("digits", &[8, 8, 1], 10);
    let mut told = Vec::new();
    let recipe =
        SoftLabelTraining { epochs: 1, least_steps: 1200, views: None, ..SoftLabelTraining::default() };
    let weights =
        recipe.train(&network, &unlabelled, &guesses, 1, |taken, steps| told.push((taken, steps))).unwrap();
    let reached = accuracy(&network, &weights, &digits.test.unwrap());
    assert!(reached > 0.95, "{reached}");
    assert!(told.len() as u64 == told[0].1 && (1200..1212).contains(&told.len()), "{}", told.len());
    assert_eq!(told.last(), Some(&(told[0].1, told[0].1)));
}

fn features(examples: &Examples) -> Vec<f32> {
    let mut rows = vec![0.0; examples.len() * examples.width()];
    rows.chunks_exact_mut(examples.width()).enumerate().for_each(|(row, into)| examples.gather(row, into));
    rows
}

#[test]
fn a_student_of_a_table_learns_by_mixing_rows() {
    let (points, labels) = blobs([60, 60, 60]);
    let guesses = one_hot(&labels, 3);
    let examples = Examples::numbers(&[2], points, named(labels, 3)).unwrap();
    let network = named_network("logistic", &[2], 3);
    let recipe = SoftLabelTraining {
        epochs: 30,
        least_steps: 0,
        batch: 30,
        mixup: 0.5,
        ..SoftLabelTraining::default()
    };
    let recipe = SoftLabelTraining { schedule: quell::learner::schedule::Schedule::constant(0.05), ..recipe };
    let weights = recipe.train(&network, &examples, &guesses, 1, |_, _| ()).unwrap();
    assert!(accuracy(&network, &weights, &examples) > 0.97);
    let plain = SoftLabelTraining { mixup: 0.0, ..recipe }
        .train(&network, &examples, &guesses, 1, |_, _| ())
        .unwrap();
    assert!(weights != plain, "mixing changes what is learned");
}

#[test]
fn the_weights_follow_from_the_seed() {
    let (points, labels) = blobs([20, 20, 20]);
    let guesses = one_hot(&labels, 3);
    let examples = Examples::numbers(&[2], points, named(labels, 3)).unwrap();
    let network = named_network("mlp", &[2], 3);
    let train = |seed: u64| {
        SoftLabelTraining { epochs: 2, least_steps: 0, ..SoftLabelTraining::default() }
            .train(&network, &examples, &guesses, seed, |_, _| ())
            .unwrap()
    };
    assert!(train(1) == train(1));
    assert!(train(1) != train(2));
}

#[test]
fn a_view_that_may_not_differ_is_the_image() {
    let mut chance = PublicRandom::new(1);
    let pixels: Vec<f32> = (0..20 * 2 * 8 * 6).map(|_| chance.between(0.0, 1.0)).collect();
    let labels: Vec<u32> = (0..20).map(|row| row % 2).collect();
    let guesses = one_hot(&labels, 2);
    let examples = Examples::numbers(&[2, 8, 6], pixels, named(labels, 2)).unwrap();
    let network = named_network("digits", &[8, 6, 2], 2);
    let train = |views: Option<Views>| {
        SoftLabelTraining { epochs: 2, least_steps: 0, views, ..SoftLabelTraining::default() }
            .train(&network, &examples, &guesses, 1, |_, _| ())
            .unwrap()
    };
    let still = Views { shift: 0.0, rotation: 0.0, stretch: 0.0, shear: 0.0 };
    assert!(train(Some(still)) == train(None));
    for moved in [
        Views { shift: 0.1, ..still },
        Views { rotation: 10.0, ..still },
        Views { stretch: 0.1, ..still },
        Views { shear: 0.1, ..still },
    ] {
        assert!(train(Some(moved)) != train(None), "{moved:?}");
    }
}

#[test]
fn a_student_that_trusts_itself_forgets_what_does_not_fit() {
    let (points, labels) = blobs([60, 60, 60]);
    let mut guesses = one_hot(&labels, 3);
    // A third of the first cluster is said to be of the second class.
    for row in (0..60).step_by(3) {
        guesses[3 * row..3 * row + 3].copy_from_slice(&[0.0, 1.0, 0.0]);
    }
    let examples = Examples::numbers(&[2], points, named(labels, 3)).unwrap();
    let network = named_network("logistic", &[2], 3);
    let sure = |self_training: f32| {
        let schedule = quell::learner::schedule::Schedule::constant(0.05);
        let optimizer = Optimizer::Momentum { momentum: 0.9, nesterov: false, weight_decay: 0.0 };
        let recipe = SoftLabelTraining {
            epochs: 120,
            least_steps: 0,
            batch: 30,
            self_training,
            schedule,
            optimizer,
            ..SoftLabelTraining::default()
        };
        let weights = recipe.train(&network, &examples, &guesses, 1, |_, _| ()).unwrap();
        let scores = quell::learner::scores(
            &network,
            &weights,
            &examples,
            Loss::CrossEntropy { label_smoothing: 0.0 },
        );
        scores[..60].iter().map(|score| score[0]).sum::<f32>() / 60.0
    };
    let (trusting, obeying) = (sure(0.8), sure(0.0));
    assert!(trusting > obeying + 0.05, "{trusting} and {obeying}");
}

#[test]
fn bad_input_is_refused_in_words() {
    let said = |error: Error| error.to_string();
    let spread = |points: &[f32], width, labels: &[(usize, u32)], classes| {
        said(Propagation::default().spread(points, width, labels, classes).unwrap_err())
    };
    assert_eq!(spread(&[], 2, &[(0, 0)], 2), "no public record is given");
    assert_eq!(spread(&[1.0; 4], 0, &[(0, 0)], 2), "width is 0, expected a whole number above 0");
    assert_eq!(spread(&[1.0; 5], 2, &[(0, 0)], 2), "the length of the last public row is 1, expected 2");
    assert_eq!(spread(&[1.0; 4], 2, &[], 2), "no answer is given");
    assert_eq!(spread(&[1.0; 4], 2, &[(0, 0)], 0), "classes is 0, expected a whole number above 0");
    assert_eq!(
        spread(&[1.0; 4], 2, &[(2, 0)], 2),
        "row of a label is 2, expected the index of a public row, counted from 0"
    );
    assert_eq!(spread(&[1.0; 4], 2, &[(0, 2)], 2), "label is 2, expected one of the classes, counted from 0");
    let settings = Propagation { alpha: 1.0, ..Propagation::default() };
    assert_eq!(
        said(settings.spread(&[1.0], 1, &[(0, 0)], 1).unwrap_err()),
        "alpha is 1, expected a number in (0, 1)"
    );
    // One row has no neighbour.
    assert_eq!(Propagation::default().spread(&[1.0], 1, &[(0, 1)], 2).unwrap(), [0.0, 1.0]);
    let refused = "a number of a public row is NaN, expected a number in (-inf, inf)";
    assert_eq!(spread(&[1.0, f32::NAN], 1, &[(0, 0)], 2), refused);
    assert_eq!(said(representatives(&[1.0, f32::NAN], 1, 1, 0).unwrap_err()), refused);
    assert_eq!(said(representatives(&[], 1, 1, 0).unwrap_err()), "no public record is given");
    assert!(representatives(&[1.0, 2.0], 1, 0, 0).unwrap().is_empty());

    let examples = Examples::numbers(&[2], vec![0.0; 4], named(vec![0, 1], 2)).unwrap();
    let network = named_network("logistic", &[2], 2);
    let train = |recipe: SoftLabelTraining, examples: &Examples, guesses: &[f32]| {
        said(recipe.train(&network, examples, guesses, 0, |_, _| ()).unwrap_err())
    };
    let recipe = SoftLabelTraining::default();
    let nothing = Examples::numbers(&[2], Vec::new(), named(Vec::new(), 2)).unwrap();
    assert_eq!(train(recipe, &nothing, &[]), "no public record is given");
    assert_eq!(train(recipe, &examples, &[1.0, 0.0]), "the length of soft labels is 2, expected 4");
    assert_eq!(train(recipe, &examples, &[0.5; 4]), "no answer is given");
    assert_eq!(train(recipe, &examples, &[f32::NAN; 4]), "a soft label is NaN, expected a number in [0, 1]");
    assert_eq!(
        train(recipe, &examples, &[-1.0, 2.0, 0.0, 1.0]),
        "a soft label is -1, expected a number in [0, 1]"
    );
    let wide = Examples::numbers(&[3], vec![0.0; 6], named(vec![0, 1], 2)).unwrap();
    assert_eq!(train(recipe, &wide, &[1.0, 0.0, 0.0, 1.0]), "the length of a public row is 3, expected 2");
    assert_eq!(
        train(SoftLabelTraining { batch: 0, ..recipe }, &examples, &[]),
        "batch is 0, expected a number in (0, inf)"
    );
    assert_eq!(
        train(SoftLabelTraining { mixup: 1.0, ..recipe }, &examples, &[]),
        "mixup is 1, expected a number in [0, 1)"
    );
    assert!(toml::from_str::<SoftLabelTraining>("epoch = 3").is_err(), "a setting that nobody knows");
    assert_eq!(toml::from_str::<SoftLabelTraining>("epochs = 3").unwrap().epochs, 3);
}
