//! Whole networks: batches against one record at a time, and records against differences in double precision.

use std::sync::Mutex;

use quell::{
    layer::Spec,
    network::{Network, Task, Workspace, build, layers_of},
    random::PublicRandom,
};

use super::{
    derivatives::{differences, roundings, wide},
    ran::{bits, distance},
    reference::chain,
};

/// Records that follow from their number; the loss is half the squared distance to a target.
struct Made {
    inputs: usize,
    outputs: usize,
    words: bool,
    /// Examples of each record, repeated.
    examples: Vec<usize>,
    /// A record that is not finite.
    broken: Option<usize>,
}

impl Made {
    fn new(network: &Network, recipes: &[Spec], examples: &[usize]) -> Self {
        let words = matches!(recipes[0], Spec::Embedding { .. });
        let inputs = network.input().iter().product();
        Self { inputs, outputs: network.outputs(), words, examples: examples.to_vec(), broken: None }
    }

    fn chance(record: usize, example: usize, purpose: u64) -> PublicRandom {
        PublicRandom::of(PublicRandom::of(record as u64, example as u64).bits(), purpose)
    }

    fn input(&self, record: usize, example: usize) -> Vec<f32> {
        let mut chance = Self::chance(record, example, 1);
        (0..self.inputs).map(|_| if self.words { chance.below(5) as f32 } else { chance.normal() }).collect()
    }

    fn target(&self, record: usize, example: usize) -> Vec<f32> {
        let mut chance = Self::chance(record, example, 2);
        (0..self.outputs).map(|_| chance.normal()).collect()
    }
}

impl Task for Made {
    fn is_grouped(&self) -> bool {
        self.examples.iter().any(|count| *count != 1)
    }

    fn examples(&self, record: usize) -> usize {
        self.examples[record % self.examples.len()]
    }

    fn gather(&self, record: usize, example: usize, input: &mut [f32]) {
        input.copy_from_slice(&self.input(record, example));
        if self.broken == Some(record) {
            input.fill(f32::NAN);
        }
    }

    fn differentiate(&self, record: usize, example: usize, outputs: &[f32], gradient: &mut [f32]) {
        let target = self.target(record, example);
        gradient.iter_mut().zip(outputs).zip(target).for_each(|((g, y), t)| *g = y - t);
        if self.broken == Some(record) {
            gradient[0] = f32::INFINITY;
        }
    }

    fn seed(&self, record: usize, example: usize) -> u64 {
        Self::chance(record, example, 3).bits()
    }
}

/// One example of a record, as a record.
struct Alone<'a>(&'a Made, usize);

impl Task for Alone<'_> {
    fn gather(&self, record: usize, _: usize, input: &mut [f32]) {
        self.0.gather(record, self.1, input);
    }

    fn differentiate(&self, record: usize, _: usize, outputs: &[f32], gradient: &mut [f32]) {
        self.0.differentiate(record, self.1, outputs, gradient);
    }

    fn seed(&self, record: usize, _: usize) -> u64 {
        self.0.seed(record, self.1)
    }
}

const NETWORKS: &[(&str, &[usize])] = &[
    (r#"[{"kind":"linear","outputs":9},{"kind":"tanh"},{"kind":"linear","outputs":3}]"#, &[7]),
    (
        r#"[{"kind":"convolution","outputs":4,"kernel":3,"stride":2,"padding":1},{"kind":"relu"},
            {"kind":"residual","layers":[{"kind":"group_norm","groups":2},{"kind":"silu"},{"kind":"dropout","rate":0.25},
                {"kind":"convolution","outputs":4,"kernel":3,"padding":1,"standardized":true}]},
            {"kind":"max_pool","kernel":2,"stride":1},{"kind":"linear","outputs":5},{"kind":"selu"},{"kind":"dropout","rate":0.5},
            {"kind":"linear","outputs":3}]"#,
        &[6, 5, 2],
    ),
    (
        r#"[{"kind":"embedding","words":5,"width":4},{"kind":"positions"},
            {"kind":"residual","layers":[{"kind":"layer_norm"},{"kind":"self_attention","heads":2,"causal":true}]},
            {"kind":"pointwise","outputs":3},{"kind":"gelu"},{"kind":"global_mean"},{"kind":"linear","outputs":2}]"#,
        &[6],
    ),
];

fn networks() -> impl Iterator<Item = (Vec<Spec>, Network, Vec<f32>)> {
    NETWORKS.iter().map(|(recipes, shape)| {
        let recipes: Vec<Spec> = serde_json::from_str(recipes).unwrap();
        let network = build(shape, &recipes).unwrap();
        let weights = network
            .initialize(5)
            .iter()
            .zip(0..)
            .map(|(w, k)| w + 0.2 * PublicRandom::of(8, k).normal())
            .collect();
        (recipes, network, weights)
    })
}

/// Clips each part to length one half; what is not finite adds nothing.
fn clip(squared: &[f64], scales: &mut [f32]) {
    for (square, scale) in squared.iter().zip(scales) {
        *scale = if square.is_finite() { (0.5 / square.sqrt()).min(1.0) as f32 } else { 0.0 };
    }
}

fn sum(
    network: &Network,
    weights: &[f32],
    task: &impl Task,
    blocks: &[&[usize]],
    parts: &[usize],
    clipped: bool,
) -> Vec<f64> {
    let mut sum = vec![0.0; network.parameters()];
    let scales = clipped.then_some(&clip as &(dyn Fn(&[f64], &mut [f32]) + Sync));
    network.add_gradients(weights, task, blocks, parts, scales, &mut sum, &mut Workspace::default());
    sum
}

/// Whether numbers are the sum of vectors, up to single precision.
fn check(found: &[f64], vectors: &[Vec<f64>], what: &str) {
    for (place, total) in found.iter().enumerate() {
        let exact: f64 = vectors.iter().map(|vector| vector[place]).sum();
        let size: f64 = vectors.iter().map(|vector| vector[place].abs()).sum();
        // Sums of at most 64 numbers in single precision.
        assert!((total - exact).abs() <= 4e-6 * size + 1e-7, "{what}: {total} {exact} of {size} at {place}");
    }
}

#[test]
fn batches_in_blocks_are_sums_of_records_one_at_a_time() {
    let records: Vec<usize> = (0..83).collect();
    let cuts: [Vec<&[usize]>; 4] = [
        vec![&records],
        records.chunks(7).collect(),
        vec![&records[..64], &[], &records[64..65], &records[65..]],
        records.chunks(1).collect(),
    ];
    for (recipes, network, weights) in networks() {
        let mut task = Made::new(&network, &recipes, &[1]);
        task.broken = Some(20);
        for parts in [vec![network.parameters()], network.parts()] {
            let alone: Vec<Vec<f64>> = records
                .iter()
                .map(|record| sum(&network, &weights, &task, &[&[*record]], &parts, true))
                .collect();
            assert!(alone[20].iter().all(|x| *x == 0.0), "scale zero adds nothing");
            for blocks in &cuts {
                check(&sum(&network, &weights, &task, blocks, &parts, true), &alone, "clipped");
            }
        }
        task.broken = None;
        let parts = [network.parameters()];
        let alone: Vec<Vec<f64>> = records
            .iter()
            .map(|record| sum(&network, &weights, &task, &[&[*record]], &parts, false))
            .collect();
        for blocks in &cuts {
            check(&sum(&network, &weights, &task, blocks, &parts, false), &alone, "plain");
        }
        for empty in [vec![], vec![&[][..]], vec![&[][..]; 2]] {
            assert!(
                sum(&network, &weights, &task, &empty, &parts, true).iter().all(|x| *x == 0.0),
                "an empty batch is a batch"
            );
        }
    }
}

#[test]
fn every_part_is_clipped_by_its_own_length() {
    for (recipes, network, weights) in networks() {
        let task = Made::new(&network, &recipes, &[1]);
        for record in 0..5 {
            let free = sum(&network, &weights, &task, &[&[record]], &[network.parameters()], false);
            let held = sum(&network, &weights, &task, &[&[record]], &network.parts(), true);
            let mut from = 0;
            for part in network.parts() {
                let length = |v: &[f64]| v[from..from + part].iter().map(|x| x * x).sum::<f64>().sqrt();
                let (free, held) = (length(&free), length(&held));
                assert!((held - free.min(0.5)).abs() < 1e-6, "{held} of {free}");
                from += part;
            }
            assert_eq!(from, network.parameters());
        }
    }
}

#[test]
fn the_gradient_of_a_record_is_the_derivative_of_its_loss() {
    for (recipes, network, weights) in networks() {
        // The definition knows no lots.
        let recipes: Vec<Spec> =
            recipes.iter().filter(|recipe| recipe.name() != "dropout").map(without_lots).collect();
        let network = build(network.input(), &recipes).unwrap();
        let task = Made::new(&network, &recipes, &[1]);
        for record in 0..2 {
            let (input, target) = (wide(&task.input(record, 0)), task.target(record, 0));
            let loss = |weights: &[f64]| {
                let output = chain(&recipes, network.input(), &mut &*weights, &input).1;
                vec![output.iter().zip(&target).map(|(y, t)| 0.5 * (y - f64::from(*t)).powi(2)).sum::<f64>()]
            };
            let expected = differences(&wide(&weights), loss, &[1.0]);
            let found = sum(&network, &weights, &task, &[&[record]], &[network.parameters()], false);
            let far = distance(&found.iter().map(|x| *x as f32).collect::<Vec<_>>(), &expected);
            assert!(far < 2e-6 * recipes.iter().map(roundings).sum::<f64>(), "off by {far}");
        }
    }
}

fn without_lots(recipe: &Spec) -> Spec {
    let Spec::Residual { layers, projection } = recipe else { return recipe.clone() };
    let layers = layers.iter().filter(|recipe| recipe.name() != "dropout").cloned().collect();
    Spec::Residual { layers, projection: projection.clone() }
}

#[test]
fn a_record_of_several_examples_has_the_mean_of_their_gradients() {
    let records: Vec<usize> = (0..11).collect();
    for (recipes, network, weights) in networks() {
        let task = Made::new(&network, &recipes, &[1, 3, 2, 0, 40]);
        for parts in [vec![network.parameters()], network.parts()] {
            let expected: Vec<Vec<f64>> =
                records.iter().map(|record| mean(&network, &weights, &task, *record, &parts)).collect();
            assert!(expected[3].iter().all(|x| *x == 0.0), "no examples, no gradient");
            for blocks in [vec![&records[..]], records.chunks(3).collect(), records.chunks(1).collect()] {
                check(&sum(&network, &weights, &task, &blocks, &parts, true), &expected, "grouped");
            }
        }
    }
}

/// The clipped mean gradient of a record's examples.
fn mean(network: &Network, weights: &[f32], task: &Made, record: usize, parts: &[usize]) -> Vec<f64> {
    let count = task.examples(record);
    let mut mean = vec![0.0; network.parameters()];
    for example in 0..count {
        let one = sum(network, weights, &Alone(task, example), &[&[record]], &[network.parameters()], false);
        mean.iter_mut().zip(one).for_each(|(mean, x)| *mean += x / count as f64);
    }
    let mut rest = mean.as_mut_slice();
    for part in parts {
        let (own, others) = rest.split_at_mut(*part);
        let mut scale = [0.0];
        clip(&[own.iter().map(|x| x * x).sum()], &mut scale);
        for x in own {
            *x *= f64::from(scale[0]);
        }
        rest = others;
    }
    mean
}

#[test]
fn a_workspace_forgets_the_batch_before() {
    for (recipes, network, weights) in networks() {
        let task = Made::new(&network, &recipes, &[1]);
        let mut workspace = Workspace::default();
        let parts = [network.parameters()];
        let run = |records: &[usize], workspace: &mut Workspace| {
            let mut sum = vec![0.0; network.parameters()];
            network.add_gradients(&weights, &task, &[records], &parts, Some(&clip), &mut sum, workspace);
            sum
        };
        let fresh = run(&[4, 5, 6], &mut workspace);
        run(&(0..60).collect::<Vec<_>>(), &mut workspace);
        assert_eq!(run(&[4, 5, 6], &mut workspace), fresh);
    }
}

#[test]
fn a_batch_that_is_too_large_to_put_off_is_added_part_by_part_to_the_same_sum() {
    // 1,024 records of this width are put off at a time.
    let network = build(&[8192], &[Spec::Linear { outputs: 2 }]).unwrap();
    let weights = network.initialize(3);
    let task = Made { inputs: 8192, outputs: 2, words: false, examples: vec![1], broken: None };
    let records: Vec<usize> = (0..2100).collect();
    let blocks: Vec<&[usize]> = records.chunks(90).collect();
    let parts = [network.parameters()];
    let whole = sum(&network, &weights, &task, &blocks, &parts, true);
    let (mut in_turn, mut workspace) = (vec![0.0; network.parameters()], Workspace::default());
    for block in blocks {
        network.add_gradients(&weights, &task, &[block], &parts, Some(&clip), &mut in_turn, &mut workspace);
    }
    assert_eq!(whole, in_turn);
}

#[test]
fn a_record_of_a_named_model_is_the_same_to_the_last_bit_alone_and_in_a_batch() {
    let cases: [(&str, &[usize], usize, usize); 8] = [
        ("logistic", &[784], 10, 700),
        ("logistic", &[784], 1, 700),
        ("mlp", &[784], 10, 70),
        ("cnn", &[28, 28, 1], 10, 70),
        ("cifar-cnn", &[16, 16, 3], 10, 12),
        ("digits", &[8, 8, 1], 10, 130),
        ("resnet", &[9, 8, 3], 3, 20),
        ("transformer", &[20, 4], 1, 40),
    ];
    for (name, shape, outputs, count) in cases {
        let network = build(shape, &layers_of(name, shape, outputs).unwrap()).unwrap();
        let weights = network.initialize(2);
        let task =
            Made { inputs: shape.iter().product(), outputs, words: false, examples: vec![1], broken: None };
        let records: Vec<usize> = (0..count).collect();

        // What comes out.
        let predict = |count: usize, first: usize| {
            let found = Mutex::new(vec![Vec::new(); count]);
            let each = |k: usize, outputs: &[f32]| found.lock().unwrap()[k] = bits(outputs);
            network.predict(&weights, count, |k, input| task.gather(first + k, 0, input), each);
            found.into_inner().unwrap()
        };
        let all = predict(count, 0);
        assert!((0..count).all(|record| predict(1, record)[0] == all[record]), "{name}: outputs");

        // How long the gradient of each part is. Records are asked about in no order.
        let mut workspace = Workspace::default();
        let mut lengths = |blocks: &[&[usize]]| {
            let found = Mutex::new(Vec::new());
            let ask = |squared: &[f64], scales: &mut [f32]| {
                found.lock().unwrap().push(squared.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
                scales.fill(1.0);
            };
            let mut sum = vec![0.0; network.parameters()];
            network.add_gradients(
                &weights,
                &task,
                blocks,
                &network.parts(),
                Some(&ask),
                &mut sum,
                &mut workspace,
            );
            let mut found = found.into_inner().unwrap();
            found.sort();
            found
        };
        let mut alone: Vec<_> = records.iter().flat_map(|record| lengths(&[&[*record]])).collect();
        alone.sort();
        for blocks in [vec![&records[..]], records.chunks(64).collect(), records.chunks(7).collect()] {
            assert!(lengths(&blocks) == alone, "{name}: lengths");
        }
    }
}
