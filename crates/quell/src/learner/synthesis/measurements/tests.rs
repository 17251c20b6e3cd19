//! What is made of releases, with little noise, much noise and lost runs.

use quell_privacy::laws;

use super::*;
use crate::{
    data::{Examples, Schema, Targets},
    learner::{
        ProtectedRecords as _, Snapshot, Supervised,
        loss::Loss,
        sums::{Estimates as _, Releases},
        synthesis::schedule::runs,
    },
    random::PublicRandom,
};

const SCHEMA: &str = "[label]\ncolumn = 'y'\nclasses = ['n', 'p']\n\
    [[column]]\nname = 'a'\ncategories = ['u', 'v', 'w']\n\
    [[column]]\nname = 'b'\ncategories = ['u', 'v', 'w']\nunknown = true\n\
    [[column]]\nname = 'c'\nbounds = [0, 1]\n";

/// b is mostly a, the number c is large where b is u, y is independent. A tenth of the cells of c is unknown.
fn records(domain: &Domain, count: usize) -> Records {
    let mut random = PublicRandom::new(11);
    let mut values = Vec::new();
    for _ in 0..count {
        let a = [0, 0, 0, 1, 1, 2][random.below(6)];
        let b = if random.below(10) == 0 { random.below(4) } else { a };
        let c = if b == 0 { random.between(0.0, 1.0) } else { random.between(-1.0, 0.2) };
        let one = |place: usize, of: usize| (0..of).map(move |i| f32::from(u8::from(i == place)));
        values.extend(one(a, 4).chain(one(b, 4)));
        values.extend([c, f32::from(u8::from(random.below(10) == 0))]);
        values.extend(one(random.below(2), 3));
    }
    let targets = Targets::Numbers(vec![0.0; count]);
    let examples = Examples::numbers(&[domain.features], values, targets).unwrap();
    Records::new(domain, &Supervised::new(&examples, Loss::Squared, None))
}

fn domain() -> Domain {
    Domain::new(&Schema::parse(SCHEMA).unwrap()).unwrap()
}

/// Takes all runs, of which some are lost.
fn run(
    records: &Records,
    declared: f64,
    noise: f64,
    is_lost: impl Fn(u64) -> bool,
) -> Releases<Measurements> {
    let domain = domain();
    let count = runs(domain.columns.len());
    let first = Measurements::new(domain, declared, noise, 5_000);
    let mut state = Releases::new(first, count, None).unwrap();
    let mut random = PublicRandom::new(5);
    let all: Vec<usize> = (0..records.records()).collect();
    for run in 0..count {
        let release = state.estimates().vectors(records, 5_000).map(|mut vectors| {
            let sum = laws::sum(&mut vectors, &all);
            sum.iter().map(|x| (x + noise * f64::from(random.normal())) as f32).collect::<Vec<f32>>()
        });
        state.apply(release.as_deref().filter(|_| !is_lost(run)));
    }
    assert!(state.estimates().vectors(records, 5_000).is_none() && state.estimates().length() == 0);
    state
}

/// The share of drawn rows for which something holds.
fn share(model: &Synthesizer, holds: impl Fn(&[u16]) -> bool) -> f64 {
    let drawn = model.draw(10_000, &mut PublicRandom::new(1));
    let row = |row: usize| drawn.iter().map(|column| column[row]).collect::<Vec<_>>();
    (0..10_000).filter(|at| holds(&row(*at))).count() as f64 / 10_000.0
}

#[test]
fn rows_have_the_columns_and_pairs_of_the_records() {
    let records = records(&domain(), 20_000);
    let model = run(&records, 20_000.0, 20.0, |_| false).estimates().model();
    assert!(model.measured_pairs().contains(&(0, 1)) && model.measured_pairs().contains(&(1, 2)));
    for (found, expected) in [
        (share(&model, |row| row[0] == 0), 0.5),
        (share(&model, |row| row[0] == 0 && row[1] == 0), 0.5 * (0.9 + 0.1 / 4.0)),
        (share(&model, |row| row[1] == 3), 0.025),
        // Unknown cells of c are not drawn: the schema does not say that there are any.
        (share(&model, |row| row[2] == 34), 0.0),
        (share(&model, |row| row[1] == 0 && row[2] <= 16), 0.0),
        (share(&model, |row| row[3] == 1 && row[0] == 1), 0.5 / 3.0),
        (share(&model, |row| row[3] == 2 || row[0] == 3), 0.0),
    ] {
        assert!((found - expected).abs() < 0.015, "{found} {expected}");
    }
    // The error of the pairs is small, and the stated error says so: it is that of the cells that are not drawn.
    let stated = model.error(true).unwrap();
    assert!(model.errors().len() == 6 && stated.lower < 0.02, "{stated:?}");
}

#[test]
fn the_stated_error_of_pairs_is_that_of_the_model() {
    let records = records(&domain(), 20_000);
    // The tree is lost, and so are the rounds: columns are independent, and the error is large.
    let state = run(&records, 20_000.0, 30.0, |run| (6..19).contains(&run));
    let model = state.estimates().model();
    assert!(model.measured_pairs().is_empty() && model.error(true).is_none());
    let stated = model.error(false).unwrap();
    // The exact error, in the same coarse groups.
    let last = state.estimates();
    let counts = last.counts(20_000.0);
    let modelled =
        last.distribution(20_000.0, true).pairs(&shares(&last.groups, &last.coarse, &counts)).concat();
    let exact = records.counts(&Query::pairs(last.coarse.clone(), &all_pairs(4)));
    let squares = modelled.iter().zip(&exact).map(|(p, count)| (p - count / 20_000.0).powi(2)).sum::<f64>();
    let truth = (squares / exact.len() as f64).sqrt();
    assert!((stated.lower..=stated.upper).contains(&truth) && truth > 0.03, "{stated:?} {truth}");
}

#[test]
fn lost_runs_make_the_rows_worse_and_nothing_else() {
    let records = records(&domain(), 2_000);
    let purposes: [std::ops::Range<u64>; 7] = [0..20, 0..4, 4..6, 6..13, 13..19, 19..20, 0..19];
    for lost in purposes {
        let state = run(&records, 2_000.0, 5.0, |run| lost.contains(&run));
        assert_eq!((state.position(), state.taken()), (20, 20 - (lost.end - lost.start)));
        let model = state.estimates().model();
        assert!(model.weights().iter().all(|p| p.is_finite()), "{lost:?}");
        let rows = model.csv(50, 1);
        assert_eq!(rows.lines().count(), 51, "{lost:?}");
        assert_eq!(model.errors().is_empty(), lost.contains(&19));
    }
}

#[test]
fn a_saved_state_yields_the_same_model() {
    let records = records(&domain(), 3_000);
    for lost in [0..0, 5..9] {
        let state = run(&records, 3_000.0, 8.0, |run| lost.contains(&run));
        let first = Measurements::new(domain(), 3_000.0, 8.0, 5_000);
        let again = Releases::new(first, 20, Some(&state.save().unwrap())).unwrap();
        assert_eq!(again.estimates().model(), state.estimates().model());
        assert_eq!((again.position(), again.taken()), (state.position(), state.taken()));
    }
}

#[test]
fn noise_that_hides_everything_yields_rows() {
    for (count, declared) in [(0, 1.0), (1, 1.0), (5, 1_000.0), (3_000, 3_000.0)] {
        let records = records(&domain(), count);
        let model = run(&records, declared, 1e4, |_| false).estimates().model();
        assert!(model.weights().iter().all(|p| p.is_finite()), "{count}");
        assert_eq!(model.csv(20, 3).lines().count(), 21);
    }
}

#[test]
fn a_wrong_number_of_records_does_not_distort_the_rows() {
    let records = records(&domain(), 20_000);
    let model = run(&records, 4_000.0, 10.0, |_| false).estimates().model();
    assert!((model.records() - 20_000.0).abs() < 100.0, "{}", model.records());
    assert!((share(&model, |row| row[0] == 0) - 0.5).abs() < 0.015);
    // A number that is nearly right is kept.
    let model = run(&records, 20_010.0, 10.0, |_| false).estimates().model();
    assert_eq!(model.records(), 20_010.0);
}
