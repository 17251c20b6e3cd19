use quell_privacy::{laws, ledger::Unit};

use super::*;
use crate::{
    data::{Examples, Schema, Targets},
    learner::{
        Method, PublicFacts, Snapshot, Subject,
        sums::{Estimates, Releases},
        tree::{Recipe, Splits, Tree},
    },
    network::Architecture,
    random::PublicRandom,
};

const COLUMNS: &str = "[[column]]\nname = 'a'\nbounds = [0, 1]\nunknown = true\n[[column]]\nname = 'b'\nbounds = [0, 1]\n\
     [[column]]\nname = 'c'\ncategories = ['x', 'y', 'z']\n";
const WIDTH: usize = 6;

fn method(classes: Option<usize>, splits: Splits, depth: usize) -> Tree {
    let label = classes.map_or("bounds = [0, 5]".to_owned(), |classes| {
        format!("classes = {:?}", (0..classes).map(|class| class.to_string()).collect::<Vec<_>>())
    });
    let schema = Schema::parse(&format!("[label]\ncolumn = 'y'\n{label}\n{COLUMNS}")).unwrap();
    let mut recipe =
        Recipe { records: Some(40), depth: Some(depth), splits: Some(splits), ..Recipe::default() };
    recipe.privacy.epsilon = Some(1.0);
    let facts = PublicFacts { records: None, classes };
    let subject = Subject { shape: &[WIDTH], are_features: false, facts, schema: Some(&schema) };
    Tree::plan(&mut recipe, &mut Architecture::default(), &subject).unwrap()
}

/// Hostile examples of 15 users.
fn examples(classes: Option<usize>, records: usize, chance: &mut PublicRandom) -> Examples {
    let hostile = [0.4, -1.0, 1.0, 0.0, 1e30, f32::MAX, 1e-40, -7.0];
    let values = (0..WIDTH * records).map(|_| hostile[chance.below(hostile.len())]).collect();
    let targets = match classes {
        Some(classes) => Targets::Classes {
            labels: (0..records).map(|_| chance.below(classes) as u32).collect(),
            names: (0..classes).map(|class| class.to_string()).collect(),
        },
        None => Targets::Numbers((0..records).map(|_| chance.between(-1.0, 1.0)).collect()),
    };
    let users: Vec<_> = (0..records).map(|_| Some([chance.below(15) as u8])).collect();
    Examples::numbers(&[WIDTH], values, targets).unwrap().with_users(&users).unwrap()
}

/// A release that splits some nodes: random numbers far above the noise.
fn release(method: &Tree, chance: &mut PublicRandom) -> Vec<f32> {
    let noise = method.plan.sums.noise() as f32;
    (0..method.plan.sums.descent.dimension).map(|_| 300.0 * noise * chance.between(0.0, 1.0)).collect()
}

/// The contract of contributions in every run, for classes, numbers and users, with hostile values.
#[test]
fn vectors_keep_the_contract_and_are_one_long() {
    let mut chance = PublicRandom::of(3, 1);
    for classes in [Some(1), Some(2), Some(3), None] {
        let examples = examples(classes, 40, &mut chance);
        for (splits, unit) in [Splits::Measured, Splits::Random]
            .into_iter()
            .flat_map(|splits| [(splits, Unit::Example), (splits, Unit::User)])
        {
            let method = method(classes, splits, 3);
            let (task, mut state) = (method.task(&examples, unit).unwrap(), method.state(None).unwrap());
            let mut runs = 0;
            while let Some(mut vectors) = state.estimates().vectors(&task, method.plan.sums.descent.dimension)
            {
                let all: Vec<usize> = (0..task.records()).collect();
                assert_eq!(laws::check_contributions(&mut vectors, &all), Ok(()), "{unit:?} {classes:?}");
                for record in all {
                    let sum = laws::sum(&mut vectors, &[record]);
                    let length = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
                    // Nothing is clipped.
                    assert!(length < 1.0 + 1e-6, "{length}");
                    let is_whole = classes.is_some() && unit == Unit::Example && runs == 0;
                    assert!(!is_whole || length > 1.0 - 1e-6, "{length}");
                }
                state.apply(Some(&release(&method, &mut chance)));
                runs += 1;
            }
            assert_eq!(runs, method.plan.sums.runs);
            assert_eq!(splits == Splits::Random, runs == 1);
        }
    }
}

/// What a record adds does not depend on the other records.
#[test]
fn sums_do_not_depend_on_records_that_are_not_in_them() {
    let method = method(Some(2), Splits::Measured, 2);
    let sums = |first: f32| {
        let mut chance = PublicRandom::of(6, 1);
        let values = (0..WIDTH * 12)
            .map(|place| if place < WIDTH { first } else { [0.0, 1.0, 0.1, -0.7][chance.below(4)] })
            .collect();
        let labels = (0..12).map(|record| record % 2).collect();
        let names = vec!["0".into(), "1".into()];
        let examples = Examples::numbers(&[WIDTH], values, Targets::Classes { labels, names }).unwrap();
        let task = method.task(&examples, Unit::Example).unwrap();
        let mut state = method.state(None).unwrap();
        let mut sums = Vec::new();
        while let Some(mut vectors) = state.estimates().vectors(&task, method.plan.sums.descent.dimension) {
            sums.push(laws::sum(&mut vectors, &(1..12).collect::<Vec<_>>()));
            state.apply(Some(&release(&method, &mut chance)));
        }
        sums
    };
    let usual = sums(1.0);
    for hostile in [3e38, -3e38, 0.9, 1e-40] {
        assert_eq!(sums(hostile), usual, "{hostile}");
    }
}

/// The same releases yield the same tree, whether they come from a file or not, and lost runs are lost.
#[test]
fn a_saved_state_grows_the_same_tree_again() {
    let mut chance = PublicRandom::of(8, 1);
    for (classes, lost) in
        [(Some(3), None), (None, None), (Some(2), Some(0)), (Some(2), Some(1)), (Some(2), Some(3))]
    {
        let method = method(classes, Splits::Measured, 3);
        let mut state: Releases<Growth> = method.state(None).unwrap();
        for run in 0..method.plan.sums.runs {
            let released = release(&method, &mut chance);
            state.apply(if lost == Some(run) { None } else { Some(&released) });
            let again = method.state(Some(&state.save().unwrap())).unwrap();
            assert_eq!(again.position(), run + 1);
            assert_eq!(again.estimates().nodes, state.estimates().nodes);
            assert_eq!(method.model(&again).weights(), method.model(&state).weights());
        }
        let weights = method.model(&state).weights().to_vec();
        assert!(weights.iter().all(|weight| weight.is_finite()));
        // Without a release for the leaves, all leaves predict the same.
        if lost == Some(3) {
            let values = &weights[weights.len() - 8..];
            assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
        }
    }
}

/// Random releases choose the splits, and none asks what the questions above it have answered.
#[test]
fn no_question_is_asked_whose_answer_is_known() {
    let mut chance = PublicRandom::of(8, 1);
    for classes in [Some(2), None] {
        let method = method(classes, Splits::Measured, 7);
        let mut state = method.state(None).unwrap();
        for _ in 0..method.plan.sums.runs {
            state.apply(Some(&release(&method, &mut chance)));
        }
        let growth = state.estimates();
        let mut asked = 0;
        for node in 0..growth.nodes.len() {
            let path = growth.path(node);
            for (place, (question, _)) in path.iter().enumerate() {
                assert!(method.plan.cells.is_open(*question, &path[..place]), "{path:?}");
            }
            asked = asked.max(path.len());
        }
        assert!(asked > 4, "{asked}");
    }
}
