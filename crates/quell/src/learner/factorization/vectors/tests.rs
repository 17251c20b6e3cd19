//! The vectors of every stage keep the contract, and are at most one long.

use std::collections::HashSet;

use quell_privacy::laws;

use super::*;
use crate::{
    data::Targets,
    learner::{
        Method, PublicFacts, Subject,
        factorization::{Factorizing, Plan, Recipe, state::Items},
        sums::Releases,
    },
    network::Architecture,
    random::PublicRandom,
};

const ITEMS: usize = 300;

fn planned(records: u64, factors: bool, items: usize) -> Plan {
    let mut recipe = Recipe {
        bounds: Some([0.5, 5.0]),
        records: Some(records),
        factors: Some(factors),
        ..Recipe::default()
    };
    (recipe.privacy.noise_multiplier, recipe.privacy.delta) = (Some(2.0), Some(1e-5));
    let facts = PublicFacts { records: None, classes: Some(items) };
    let subject = Subject { shape: &[1], are_features: false, facts, schema: None };
    Factorizing::plan(&mut recipe, &mut Architecture::default(), &subject).unwrap().plan
}

/// Users with no, one, some and thousands of ratings, twice of the same item, of any value.
fn hostile(plan: &Plan) -> Ratings {
    const VALUES: [f32; 9] =
        [0.5, 5.0, 3.0, 1e30, f32::MAX, f32::NAN, f32::NEG_INFINITY, f32::INFINITY, f32::MIN_POSITIVE];
    let mut chance = PublicRandom::new(3);
    let (mut users, mut labels, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for user in 0..40_u32 {
        for _ in 0..[1, 2, 7, 40, 2_000][user as usize % 5] {
            users.push(Some(user.to_le_bytes()));
            labels.push(chance.below(plan.items + 20) as u32);
            values.push(VALUES[chance.below(VALUES.len())]);
        }
    }
    let names = (0..plan.items + 20).map(|item| item.to_string()).collect();
    let examples = Examples::numbers(&[1], values, Targets::Classes { labels, names }).unwrap();
    let examples = examples.with_users(&users).unwrap();
    let unit = (Unit::User, Neighbors::AddRemove, 40);
    let mut ratings = Ratings::new(&examples, unit, plan.items, plan.scale).unwrap();
    // A user without ratings, and one who rates everything as differently as possible.
    ratings.users.push(Vec::new());
    ratings.users.push((0..plan.items as u32).map(|item| (item, [0.0, 4.5][item as usize % 2])).collect());
    ratings
}

/// Calls `check` for each run. Releases are the true sums plus noise of the size `wild`.
fn each_run(plan: &Plan, ratings: &Ratings, wild: f32, mut check: impl FnMut(Vectors<'_>)) {
    let mut state = Releases::new(Items::new(plan), plan.sums.runs, None).unwrap();
    let mut chance = PublicRandom::new(wild.to_bits().into());
    let all: Vec<usize> = (0..ratings.records()).collect();
    while let Some(stage) = state.estimates().stage() {
        let dimension = plan.sums.descent.dimension;
        assert!(stage.length() <= dimension, "{} is longer than {dimension}", stage.length());
        check(Vectors::new(ratings, stage, dimension));
        let sum = laws::sum(&mut Vectors::new(ratings, stage, dimension), &all);
        let released: Vec<f32> = sum.iter().map(|x| *x as f32 + wild * chance.normal()).collect();
        state.apply(Some(&released));
        assert!(state.estimates().model().weights().iter().all(|weight| weight.is_finite()));
    }
}

fn plans() -> Vec<Plan> {
    let mut plans = Vec::new();
    for (records, items) in [(1, 1), (40, ITEMS), (400, ITEMS), (10_000, 90), (3, 2)] {
        plans.extend([false, true].map(|factors| planned(records, factors, items)));
    }
    plans
}

#[test]
fn vectors_of_every_stage_keep_the_contract_for_hostile_users() {
    for plan in plans() {
        let ratings = hostile(&plan);
        let all: Vec<usize> = (0..ratings.records()).collect();
        for wild in [0.0, 10.0, 1e6] {
            each_run(&plan, &ratings, wild, |mut vectors| {
                laws::check_contributions(&mut vectors, &all)
                    .unwrap_or_else(|broken| panic!("{:?}: {broken}", vectors.stage.length()));
            });
        }
    }
}

#[test]
fn no_vector_is_longer_than_one_and_those_of_usual_users_are_not_shorter() {
    for plan in plans() {
        let ratings = hostile(&plan);
        each_run(&plan, &ratings, 0.1, |vectors| {
            for user in &ratings.users {
                let mut vector = Sparse::default();
                vectors.stage.write(user, &mut vector, &mut Vec::new());
                let entries = vector.entries();
                let length = entries.iter().map(|(_, x)| x * x).sum::<f64>().sqrt();
                assert!(length <= 1.0 + 1e-6, "{length}");
                let is_biases = matches!(vectors.stage, Stage::Biases { .. });
                let least = if is_biases { SHARE_OF_ITEMS.sqrt() } else { 1.0 };
                assert!(entries.is_empty() || length >= least - 1e-6, "{length}");
                // No place is written twice.
                let places: HashSet<usize> = entries.iter().map(|(place, _)| *place).collect();
                assert_eq!(places.len(), entries.len());
            }
        });
    }
}

#[test]
fn ratings_of_one_item_by_one_user_count_once_whatever_their_order() {
    let merge = |ratings: &[(u32, f32)]| merged(ratings.to_vec());
    assert_eq!(merge(&[(3, 1.0), (1, 2.0), (3, 4.0)]), [(1, 2.0), (3, 2.5)]);
    assert_eq!(merge(&[(3, 4.0), (3, 1.0), (1, 2.0)]), [(1, 2.0), (3, 2.5)]);
}

#[test]
fn examples_as_the_unit_of_privacy_are_refused() {
    assert!(check_unit(Unit::Example).unwrap_err().to_string().contains("a user"));
    assert!(check_unit(Unit::User).is_ok());
}
