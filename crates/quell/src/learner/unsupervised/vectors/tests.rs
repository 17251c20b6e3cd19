//! The vectors of every stage keep the contract, and are at most one long.

use quell_privacy::{laws, ledger::Unit};

use super::*;
use crate::{
    data::{Examples, Schema, Targets},
    learner::{
        Method, PublicFacts, Snapshot, Subject,
        unsupervised::{Recipe, Unsupervised},
    },
    network::Architecture,
    random::PublicRandom,
};

const SCHEMA: &str = "[[column]]\nname = 'a'\nbounds = [0, 1]\n[[column]]\nname = 'b'\nbounds = [0, 1]\n\
     [[column]]\nname = 'c'\ncategories = ['x', 'y', 'z']\n";

fn planned(recipe: &Recipe, name: &str) -> Unsupervised {
    let schema = Schema::parse(SCHEMA).unwrap();
    let mut model = Architecture { name: Some(name.into()), ..Architecture::default() };
    let facts = PublicFacts { records: recipe.records, classes: None };
    let subject = Subject { shape: &[5], are_features: false, facts, schema: Some(&schema) };
    Unsupervised::plan(&mut recipe.clone(), &mut model, &subject).unwrap()
}

/// k-means with many and with few columns, with noise from which clusters emerge and none, and components.
fn methods() -> Vec<Unsupervised> {
    let mut methods = Vec::new();
    for (epsilon, records) in [(0.1, 200), (3.0, 200), (30.0, 100_000)] {
        let mut recipe = Recipe { records: Some(records), ..Recipe::default() };
        (recipe.privacy.epsilon, recipe.privacy.delta) = (Some(epsilon), Some(1e-5));
        for clusters in [1, 2, 3, 150] {
            methods.push(planned(&Recipe { clusters: Some(clusters), ..recipe.clone() }, "kmeans"));
        }
        methods.push(planned(&Recipe { components: Some(2), ..recipe }, "components"));
    }
    methods
}

/// Numbers in [-1, 1], and one category.
fn usual(chance: &mut PublicRandom) -> Vec<f32> {
    let mut example = vec![chance.between(-1.0, 1.0), [-1.0, 0.2, 1.0][chance.below(3)], 0.0, 0.0, 0.0];
    example[2 + chance.below(3)] = 1.0;
    example
}

fn hostile(chance: &mut PublicRandom) -> Vec<f32> {
    const VALUES: [f32; 9] =
        [0.4, -1.0, 1.0, 0.0, 1e30, f32::MAX, f32::NAN, f32::NEG_INFINITY, f32::MIN_POSITIVE];
    (0..5).map(|_| VALUES[chance.below(VALUES.len())]).collect()
}

fn examples(chance: &mut PublicRandom, make: fn(&mut PublicRandom) -> Vec<f32>) -> Examples {
    let values = (0..60).flat_map(|_| make(chance)).collect();
    let users: Vec<_> = (0..60).map(|_| Some([chance.below(15) as u8])).collect();
    Examples::numbers(&[5], values, Targets::Numbers(vec![0.0; 60])).unwrap().with_users(&users).unwrap()
}

/// Calls `check` for each run. Releases are the true sums plus noise of the size `wild`.
fn each_run(method: &Unsupervised, records: &Supervised<'_>, wild: f32, mut check: impl FnMut(Vectors<'_>)) {
    let mut state = method.state(None).unwrap();
    let mut chance = PublicRandom::new(wild.to_bits().into());
    while let Some(stage) = state.estimates().stage() {
        let dimension = method.plan.sums.descent.dimension;
        assert!(stage.length(5) <= dimension, "{stage:?} is longer than {dimension}");
        check(Vectors::new(records, stage, 5, dimension));
        let mut released = vec![0.0; dimension];
        let vectors = Vectors::new(records, stage, 5, dimension);
        let mut buffers = vectors.buffers();
        for record in 0..records.records() {
            vectors.write(record, 0, &mut buffers);
            if squared_length(&buffers.values).is_finite() {
                add_pieces(&mut released, 1.0, &buffers.values, &buffers.pieces);
            }
        }
        for x in &mut released {
            *x += wild * chance.normal();
        }
        state.apply(Some(&released));
    }
    assert_eq!(state.position(), method.plan.sums.runs);
}

#[test]
fn vectors_of_every_stage_keep_the_contract() {
    let mut chance = PublicRandom::new(3);
    let all = [examples(&mut chance, usual), examples(&mut chance, hostile)];
    for method in methods() {
        for (examples, unit) in all.iter().flat_map(|all| [Unit::Example, Unit::User].map(|unit| (all, unit)))
        {
            let task = method.task(examples, unit).unwrap();
            for wild in [0.01, 30.0] {
                each_run(&method, &task, wild, |mut vectors| {
                    let all: Vec<usize> = (0..task.records()).collect();
                    let stage = vectors.stage;
                    assert_eq!(laws::check_contributions(&mut vectors, &all), Ok(()), "{unit:?} {stage:?}");
                });
            }
        }
    }
}

/// THEORY, Clusters and components: clipping changes no vector of an example within its bounds.
#[test]
fn no_vector_within_the_bounds_is_longer_than_one() {
    let mut chance = PublicRandom::new(4);
    let examples = examples(&mut chance, usual);
    let (mut longest, mut stages) = (0.0_f64, 0);
    for method in methods() {
        let task = method.task(&examples, Unit::Example).unwrap();
        for wild in [0.01, 30.0] {
            each_run(&method, &task, wild, |vectors| {
                let mut buffers = vectors.buffers();
                for record in 0..task.records() {
                    vectors.write(record, 0, &mut buffers);
                    let length = squared_length(&buffers.values).sqrt();
                    assert!(length <= 1.0 + 1e-6, "{:?}: {length}", vectors.stage);
                    longest = longest.max(length);
                }
                stages += 1;
            });
        }
    }
    assert!(longest > 1.0 - 1e-6 && stages > 300, "{longest} {stages}");
}

#[test]
fn a_restored_state_goes_on_as_the_saved_one_whatever_was_lost() {
    let mut chance = PublicRandom::new(5);
    for method in methods() {
        let (mut state, mut lost) = (method.state(None).unwrap(), 0);
        for run in 0..method.plan.sums.runs {
            let release: Vec<f32> =
                (0..method.plan.sums.descent.dimension).map(|_| 30.0 * chance.normal()).collect();
            // In one state of each method, everything is lost.
            let keeps = chance.below(3) > 0 && method.plan.sums.runs.is_multiple_of(2);
            lost += u64::from(!keeps);
            state.apply(keeps.then_some(release.as_slice()));
            let restored = method.state(Some(&state.save().unwrap())).unwrap();
            assert_eq!((restored.position(), restored.taken()), (run + 1, run + 1 - lost));
            assert_eq!(
                format!("{:?}", restored.estimates().model()),
                format!("{:?}", state.estimates().model())
            );
        }
        assert!(state.estimates().model().weights().iter().all(|x| x.is_finite() && x.abs() <= 1.0));
        let mut bytes = state.save().unwrap();
        bytes.truncate(bytes.len() - 3);
        assert!(method.state(Some(&bytes)).is_err());
    }
}
