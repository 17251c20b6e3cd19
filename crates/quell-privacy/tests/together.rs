//! A plan of several statistics: what it costs, and that it hands out what was paid for, once.

use crate::book::ledger;
use quell_privacy::{
    Event, Neighbors,
    mechanism::{
        Bounds, Count, Enclosure, Mean, Mechanism, PerUser, Price, Quantile, Sensitive, Sum, Together,
    },
    units::{Delta, Epsilon, Probability},
};

fn count(epsilon: f64) -> Count {
    Count::for_epsilon(Epsilon::new(epsilon).unwrap()).unwrap()
}

fn mean(epsilon: f64) -> Mean {
    Mean::for_epsilon(Bounds::new(0.0, 10.0).unwrap(), Epsilon::new(epsilon).unwrap()).unwrap()
}

fn plan(epsilon: f64) -> Together {
    let mut plan = Together::new(Neighbors::AddRemove);
    plan.add(&count(epsilon)).unwrap();
    plan.add(&mean(epsilon)).unwrap();
    plan
}

#[test]
fn one_charge_pays_for_every_part_once_and_for_no_other_statistic() {
    let (mut ledger, _) = ledger(1.0);
    let mut paid = ledger.charge(plan(0.25)).unwrap();
    assert!(paid.take(0, count(0.26)).is_err(), "less noise than was paid for");
    assert!(paid.take(0, mean(0.25)).is_err(), "another statistic");
    assert!(paid.take(1, count(0.25)).is_err(), "the place of another part");
    assert!(paid.take(2, count(0.25)).is_err(), "there are two parts");
    let counted = paid.take(0, count(0.25)).unwrap();
    assert!(paid.take(0, count(0.25)).is_err(), "a part twice");
    let receipt = counted.receipt().clone();
    assert!(counted.run(&Sensitive::new(1000)).unwrap().value > 500.0);
    let average = paid.take(1, mean(0.25)).unwrap();
    assert_eq!(*average.receipt(), receipt);
    let average = average.run(&Sensitive::new(vec![7.0; 1000])).unwrap();
    assert!((average.value - 7.0).abs() < 2.0, "{average:?}");
    let state = ledger.state().unwrap();
    assert_eq!((state.charges().len(), state.lines()), (1, 2), "one line");
    assert!(state.spent().epsilon <= 0.5 && state.spent().epsilon > 0.45, "{:?}", state.spent());
}

#[test]
fn a_part_is_not_taken_for_a_mechanism_that_a_ledger_refuses() {
    // Both are exponential mechanisms with the same ε, which is too small for an enclosure.
    let (bounds, epsilon) = (Bounds::new(0.0, 10.0).unwrap(), Epsilon::new(1e-9).unwrap());
    let median = Quantile { bounds, quantile: Probability::new(0.5).unwrap(), epsilon };
    let enclosure = Enclosure { within: bounds, epsilon };
    let mut plan = Together::new(Neighbors::AddRemove);
    assert!(plan.add(&enclosure).is_err());
    plan.add(&median).unwrap();
    assert_eq!(enclosure.event(Neighbors::AddRemove), median.event(Neighbors::AddRemove));
    let (mut ledger, _) = ledger(1.0);
    let mut paid = ledger.charge(plan).unwrap();
    assert!(paid.take(0, enclosure).is_err());
    assert!(paid.take(0, median).is_ok(), "a refusal takes nothing");
}

#[test]
fn parts_have_noise_of_their_own() {
    let mut ledger = crate::book::without_cap(Neighbors::AddRemove).seeded(7);
    let mut plan = Together::new(Neighbors::AddRemove);
    for _ in 0..8 {
        plan.add(&count(1e-3)).unwrap();
    }
    let mut paid = ledger.charge(plan).unwrap();
    let mut answers: Vec<i64> = (0..8)
        .map(|part| paid.take(part, count(1e-3)).unwrap().run(&Sensitive::new(0)).unwrap().value as i64)
        .collect();
    answers.sort_unstable();
    answers.dedup();
    assert!(answers.len() >= 7, "{answers:?}");
}

#[test]
fn a_plan_is_refused_without_parts_and_under_another_relation() {
    let (mut ledger, _) = ledger(1.0);
    assert!(ledger.charge(Together::new(Neighbors::AddRemove)).is_err());
    let mut replaced = Together::new(Neighbors::Replace);
    replaced.add(&count(0.1)).unwrap();
    assert!(ledger.charge(replaced.clone()).is_err());
    assert_eq!(replaced.event(Neighbors::AddRemove), Event::NonPrivate);
    assert_eq!(ledger.state().unwrap().charges().len(), 0);
}

#[test]
fn gaussian_sums_of_one_plan_compose_like_one_gaussian() {
    let price = Price::gaussian(Epsilon::new(0.3).unwrap(), Delta::new(1e-6).unwrap());
    let sum = Sum::for_epsilon(Bounds::new(0.0, 1.0).unwrap(), price).unwrap();
    let (mut ledger, _) = ledger(10.0);
    let spent = |sums: usize, ledger: &mut quell_privacy::ledger::Ledger<_>| {
        let mut plan = Together::new(Neighbors::AddRemove);
        (0..sums).for_each(|_| plan.add(&sum).unwrap());
        ledger.quote(&plan, 1).unwrap().1.epsilon
    };
    let (one, four) = (spent(1, &mut ledger), spent(4, &mut ledger));
    assert!(four < 2.3 * one, "{one} and {four}");
}

#[test]
fn a_user_with_several_records_pays_for_all_of_them() {
    let (mut ledger, _) = ledger(1.0);
    let limited = PerUser { mechanism: plan(0.1), records: 4 };
    let cost = ledger.quote(&limited, 1).unwrap().1.epsilon;
    assert!(cost > 0.75 && cost <= 0.8 * (1.0 + 1e-6), "{cost}");
    let mut paid = ledger.charge(limited).unwrap().of_records();
    assert!(paid.take(0, count(0.4)).is_err() && paid.take(0, count(0.1)).is_ok());
}
