//! Payments: too small, too late, twice.

use quell_ledger::{Store, Volume};
use quell_privacy::{
    ledger::{Budget, Composition, Ledger, Terms},
    mechanism::{Additive, Mechanism, Noise},
    units::{ClipNorm, Delta, Epsilon, NoiseMultiplier},
};

use super::{Attempt, refused};
use crate::fixture::{DATASET, budget, charge, count, create, open, room_for, terms};

pub(crate) const ATTEMPTS: &[Attempt] = &[
    ("more steps than any budget bears", too_many_steps),
    ("no steps at all", no_steps),
    ("a seed under a cap", seeded),
    ("a cap of minus zero, zero, more than thirty", odd_caps),
    ("numbers that are no epsilon or delta", odd_numbers),
    ("a cap below what is spent", lowered),
    ("a larger delta after a charge", raised_delta),
    ("a ledger that is opened a second time", opened_again),
    ("a state that is stale", stale),
    ("two runs that go on with one charge", resumed_twice),
    ("going on with a dearer mechanism", resumed_dearer),
    ("going on with a line that is no charge", resumed_nothing),
    ("going on under a seed", resumed_seeded),
    ("a key that was used for another plan", key_of_another_plan),
    ("a key that was used up", key_used_up),
    ("a dataset without a name", nameless),
    ("noise that is not there", no_noise),
];

fn with(cap: Option<f64>, attempt: impl FnOnce(&Store, Ledger<Volume>)) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path()).unwrap();
    let ledger = create(&store, DATASET, cap);
    attempt(&store, ledger);
}

fn too_many_steps() {
    with(Some(30.0), |_, mut ledger| {
        for (steps, because) in [
            (31, "epsilon would be 30.99"),
            (1 << 53, "epsilon would be 9.0"),
            (u64::MAX, "more than 2^53 repetitions"),
        ] {
            refused(ledger.reserve(count(1.0), steps), because);
        }
    });
}

fn no_steps() {
    with(Some(1.0), |_, mut ledger| {
        refused(ledger.reserve(count(1.0), 0), "steps is 0, expected");
        refused(ledger.reserve_once("key", count(1.0), 0), "steps is 0, expected");
    });
}

fn seeded() {
    with(Some(30.0), |_, ledger| refused(ledger.seeded(1).charge(count(1.0)), "epsilon would be ∞"));
}

fn odd_caps() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path()).unwrap();
    for cap in [-0.0, 0.0, 30.001, 1e300] {
        let made = Ledger::create(store.book("odd").unwrap(), terms("odd", Some(cap)));
        refused(made, &format!("epsilon of a budget is {cap}, expected"));
    }
    with(Some(1.0), |_, mut ledger| {
        refused(ledger.raise(budget(Some(31.0)), "more"), "epsilon of a budget is 31, expected");
    });
}

fn odd_numbers() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0] {
        refused(Epsilon::new(number), &format!("epsilon is {number}, expected"));
        refused(Delta::new(number), &format!("delta is {number}, expected"));
    }
    for (number, because) in [
        ("-1", "epsilon is -1, expected"),
        ("-1e-300", "epsilon is -0"),
        ("1e999", "number out of range"),
        ("\"1\"", "invalid type: string"),
    ] {
        refused(serde_json::from_str::<Budget>(&format!("{{\"epsilon\":{number},\"delta\":1e-6}}")), because);
    }
    refused(serde_json::from_str::<Budget>("{\"epsilon\":1,\"delta\":2}"), "delta is 2, expected");
}

fn lowered() {
    with(Some(10.0), |_, mut ledger| {
        charge(&mut ledger, 3);
        refused(ledger.raise(budget(Some(2.0)), "less"), "the budget is 2, of which 3");
    });
}

fn raised_delta() {
    with(Some(10.0), |_, mut ledger| {
        charge(&mut ledger, 1);
        let more = Budget { delta: Delta::new(1e-3).unwrap(), ..budget(Some(10.0)) };
        refused(ledger.raise(more, "more"), "a larger delta after the first charge");
    });
}

fn opened_again() {
    with(Some(1.0), |store, mut ledger| {
        charge(&mut ledger, 1);
        let again = Ledger::create(store.book(DATASET).unwrap(), terms(DATASET, Some(30.0)));
        refused(again, "this dataset has a ledger already");
    });
}

fn stale() {
    with(Some(room_for(3)), |store, mut ledger| {
        let mut other = open(store, DATASET);
        charge(&mut ledger, 3);
        refused(other.charge(count(1.0)), "epsilon would be 4");
    });
}

fn resumed_twice() {
    with(Some(room_for(8)), |store, mut ledger| {
        let mut other = open(store, DATASET);
        let entry = ledger.reserve(count(1.0), 8).unwrap().entry();
        let (mut one, mut two) = (
            ledger.resume(count(1.0), entry).unwrap().in_blocks_of(1),
            other.resume(count(1.0), entry).unwrap().in_blocks_of(1),
        );
        let mut taken = 0;
        while one.next().map(Result::unwrap).is_some() | two.next().map(Result::unwrap).is_some() {
            taken += 1;
        }
        assert_eq!(taken, 4, "two at a time");
    });
}

fn resumed_dearer() {
    with(Some(30.0), |_, mut ledger| {
        let entry = ledger.reserve(count(10.0), 3).unwrap().entry();
        refused(ledger.resume(count(9.9), entry), "is the charge of another plan");
    });
}

fn resumed_nothing() {
    with(Some(30.0), |_, mut ledger| {
        let entry = ledger.reserve(count(10.0), 3).unwrap().entry();
        for other in [0, entry + 1, u64::MAX] {
            refused(ledger.resume(count(10.0), other), &format!("line {other} is not a charge"));
        }
    });
}

fn resumed_seeded() {
    with(None, |store, mut ledger| {
        let entry = ledger.reserve(count(10.0), 3).unwrap().entry();
        refused(open(store, DATASET).seeded(3).resume(count(10.0), entry), "is the charge of another plan");
        let seeded = open(store, DATASET).seeded(3).reserve(count(10.0), 3).unwrap().entry();
        refused(ledger.resume(count(10.0), seeded), "is the charge of another plan");
    });
}

fn key_of_another_plan() {
    with(Some(30.0), |_, mut ledger| {
        drop(ledger.reserve_once("key", count(10.0), 2).unwrap());
        for (scale, steps, because) in [
            (9.0, 2, "is the charge of another plan"),
            (10.0, 3, "another number of steps"),
            (10.0, 1, "another number of steps"),
        ] {
            refused(ledger.reserve_once("key", count(scale), steps), because);
        }
    });
}

fn key_used_up() {
    with(Some(30.0), |_, mut ledger| {
        let steps = |ledger: &mut Ledger<Volume>| {
            ledger.reserve_once("key", count(10.0), 2).unwrap().flatten().count()
        };
        assert_eq!((steps(&mut ledger), steps(&mut ledger)), (2, 0));
    });
}

fn nameless() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path()).unwrap();
    refused(Ledger::create(store.book("").unwrap(), terms("", None)), "the dataset has no name");
}

fn no_noise() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::create(directory.path()).unwrap();
    let terms = Terms { composition: Composition::Combined, ..terms(DATASET, Some(30.0)) };
    let mut ledger = Ledger::create(store.book(DATASET).unwrap(), terms).unwrap();
    let least = Additive {
        noise: Noise::Gaussian,
        contribution: ClipNorm::new(1.0).unwrap(),
        noise_multiplier: NoiseMultiplier::new(1e-6).unwrap(),
        dimension: 1,
    };
    assert!(least.event(quell_privacy::Neighbors::AddRemove) != quell_privacy::Event::NonPrivate);
    refused(ledger.charge(least), "epsilon would be 5.001e11");
    refused(NoiseMultiplier::new(0.0), "noise_multiplier is 0, expected");
}
