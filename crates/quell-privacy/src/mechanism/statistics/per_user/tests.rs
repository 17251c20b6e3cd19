//! What a user with several records costs, against the same statistic of one record.

use super::*;
use crate::{
    accounting::{Pld, Renyi},
    mechanism::{
        Bounds, Count, Histogram, Mean, Price, Quantiles, Range, SmoothMedian, StableHistogram, Sum,
        Together, Variance,
    },
    units::{Order, Probability},
};

const RELATIONS: [Neighbors; 2] = [Neighbors::AddRemove, Neighbors::Replace];

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).unwrap()
}

fn delta(value: f64) -> Delta {
    Delta::new(value).unwrap()
}

/// ε of an event at a δ; the Rényi divergence of order two where there is no dominating pair.
fn bound(event: &Event, neighbors: Neighbors) -> f64 {
    match Pld::default().epsilon(event, neighbors, delta(1e-6)) {
        Ok(bound) => bound.upper,
        Err(_) => Renyi::new(event, neighbors).unwrap().divergence(Order::new(2.0).unwrap()),
    }
}

fn limited<M: Mechanism>(mechanism: M, neighbors: Neighbors) -> Event {
    PerUser { mechanism, records: 12 }.event(neighbors)
}

#[test]
fn a_user_with_many_records_costs_what_one_record_costs_where_the_noise_grows_with_them() {
    let bounds = Bounds::new(-2.0, 3.0).unwrap();
    for neighbors in RELATIONS {
        for price in [Price::laplace(epsilon(0.7)), Price::gaussian(epsilon(0.7), delta(1e-6))] {
            let (one, many) = (price.under(neighbors), price.under(neighbors).for_users_with(12));
            let compare = |alone: Event, limited: Event| {
                let (alone, limited) = (bound(&alone, neighbors), bound(&limited, neighbors));
                assert!(
                    (alone - limited).abs() <= 4e-3 * alone,
                    "{neighbors:?} {price:?}: {alone} {limited}"
                );
            };
            compare(
                Count::for_epsilon(one).unwrap().event(neighbors),
                limited(Count::for_epsilon(many).unwrap(), neighbors),
            );
            compare(
                Sum::for_epsilon(bounds, one).unwrap().event(neighbors),
                limited(Sum::for_epsilon(bounds, many).unwrap(), neighbors),
            );
            compare(
                Mean::for_epsilon(bounds, one).unwrap().event(neighbors),
                limited(Mean::for_epsilon(bounds, many).unwrap(), neighbors),
            );
            compare(
                Variance::for_epsilon(bounds, one).unwrap().event(neighbors),
                limited(Variance::for_epsilon(bounds, many).unwrap(), neighbors),
            );
            let keys = vec!["a".to_owned()];
            compare(
                Histogram::for_epsilon(keys.clone(), one).unwrap().event(neighbors),
                limited(Histogram::for_epsilon(keys, many).unwrap(), neighbors),
            );
        }
    }
}

#[test]
fn epsilon_and_delta_of_a_record_give_those_of_a_user_back_and_no_more() {
    for records in [1, 2, 5, 1000] {
        for (e, d) in [(0.01, 1e-9), (1.0, 1e-6), (5.0, 1e-3)] {
            let (each, small) = PerUser::share_of_record(epsilon(e), delta(d), records).unwrap();
            let event = group(&Event::Approximate { epsilon: each, delta: small }, records);
            let Event::Approximate { epsilon: all, delta: all_delta } = event else { panic!("{event:?}") };
            assert!(all.get() <= e && all.get() > e * (1.0 - 1e-9), "{records}: {all:?}");
            assert!(all_delta.get() <= d && all_delta.get() > d * (1.0 - 1e-6), "{records}: {all_delta:?}");
        }
    }
    let (each, small) = PerUser::share_of_record(epsilon(1.0), delta(1e-6), 4).unwrap();
    for neighbors in RELATIONS {
        let names = StableHistogram::for_epsilon(each, small, neighbors).unwrap();
        let Event::Approximate { epsilon, delta } =
            (PerUser { mechanism: names, records: 4 }).event(neighbors)
        else {
            panic!()
        };
        assert!(epsilon.get() <= 1.0 + 1e-9, "{neighbors:?} {epsilon:?}");
        assert!(delta.get() <= 1e-6 * (1.0 + 1e-9), "{neighbors:?} {delta:?}");
    }
    let median = SmoothMedian::new(Bounds::new(0.0, 1.0).unwrap(), each, small).unwrap();
    let event = PerUser { mechanism: median, records: 4 }.event(Neighbors::AddRemove);
    assert!(matches!(event, Event::Approximate { epsilon, .. } if epsilon.get() <= 1.0));
}

#[test]
fn ranges_of_quantiles_add_up_over_the_records_of_a_user() {
    let (bounds, half) = (Bounds::new(0.0, 10.0).unwrap(), Probability::new(0.5).unwrap());
    let quantiles = Quantiles::for_epsilon(bounds, vec![half; 3], epsilon(1.2 / 4.0)).unwrap();
    let event = PerUser { mechanism: quantiles, records: 4 }.event(Neighbors::AddRemove);
    let Event::Composed(each) = event else { panic!("{event:?}") };
    for event in each {
        assert!(matches!(event, Event::Exponential { epsilon } if (epsilon.get() - 0.4).abs() < 1e-12));
    }
    let range = Range { bounds, inside: half, epsilon: epsilon(0.1) };
    let event = PerUser { mechanism: range, records: 3 }.event(Neighbors::Replace);
    let all = Pld::default().epsilon(&event, Neighbors::Replace, delta(1e-15)).unwrap();
    assert!(all.upper <= 0.6 * (1.0 + 1e-9), "{all:?}");
}

#[test]
fn events_without_a_theorem_for_groups_have_no_bound_and_one_record_changes_nothing() {
    let rate = crate::units::SamplingRate::new(0.5).unwrap();
    let sampled = Event::Pure { epsilon: epsilon(0.1) }.poisson_sampled(rate);
    assert_eq!(group(&sampled, 2), Event::NonPrivate);
    assert_eq!(group(&sampled, 1), sampled);
    let mixed = Event::Composed(vec![Event::Pure { epsilon: epsilon(0.1) }, sampled]);
    let Event::Composed(parts) = group(&mixed, 2) else { panic!() };
    assert_eq!(parts[1], Event::NonPrivate);
    let huge = Event::DiscreteLaplace { scale: crate::units::Scale::new(1.0).unwrap(), sensitivity: 1 << 31 };
    assert_eq!(group(&huge, 2), Event::NonPrivate);
    let count = Count::for_epsilon(epsilon(0.1)).unwrap();
    assert!(PerUser { mechanism: count, records: 0 }.check(Neighbors::AddRemove).is_err());
    let mut plan = Together::new(Neighbors::AddRemove);
    plan.add(&count).unwrap();
    let text = PerUser { mechanism: plan, records: 2 }.to_string();
    assert!(text.ends_with(", of at most 2 records of each user"), "{text}");
}
