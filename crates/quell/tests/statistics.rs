//! Statistics through the library: what they cost, and which ledgers refuse them.

use quell::{
    Error,
    data::Table,
    ledger::InMemory,
    privacy::{
        Neighbors,
        ledger::{Budget, Composition, Ledger, Terms, Unit},
        mechanism::{Bounds, Count, Histogram, IntegerNoise, Mechanism, Price, StableHistogram},
        units::{Delta, Epsilon, Probability},
    },
    statistics::{Accuracy, Answer, Question, Statistic},
    voting::{Recipe, VoteFacts, pate::Ballots},
};
use quell_privacy::mechanism::Voters;

use crate::made::Folder;

fn ledger(unit: Unit, neighbors: Neighbors) -> Ledger<InMemory> {
    let budget = Budget { epsilon: Some(Epsilon::new(20.0).unwrap()), delta: Delta::new(1e-6).unwrap() };
    let terms =
        Terms { dataset: "people".into(), unit, neighbors, budget, composition: Composition::Addition };
    Ledger::create(InMemory::new("people"), terms).unwrap()
}

fn people(folder: &Folder) -> Table {
    let path = folder.path().join("people.csv");
    let rows: Vec<String> = (0..400).map(|i| format!("{},{}", 20 + i % 50, ["a", "b"][i % 2])).collect();
    std::fs::write(&path, format!("age,kind\n{}\n", rows.join("\n"))).unwrap();
    Table::open(&path).unwrap()
}

fn every_statistic() -> Vec<Statistic> {
    let (column, bounds) = (|| "age".to_owned(), Bounds::new(0.0, 100.0).unwrap());
    vec![
        Statistic::Count,
        Statistic::Reaches { threshold: 100 },
        Statistic::Sum { column: column(), bounds },
        Statistic::Mean { column: column(), bounds },
        Statistic::Variance { column: column(), bounds },
        Statistic::Histogram { column: "kind".into(), keys: Some(vec!["a".into(), "b".into()]) },
        Statistic::Histogram { column: "kind".into(), keys: None },
        Statistic::Quantile { column: column(), bounds, quantile: Probability::new(0.9).unwrap() },
        Statistic::Range { column: column(), bounds, inside: Probability::new(0.9).unwrap() },
    ]
}

#[test]
fn a_question_with_laplace_noise_costs_the_epsilon_that_it_is_asked_for() {
    let folder = Folder::new();
    let table = people(&folder);
    for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
        for statistic in every_statistic() {
            let mut ledger = ledger(Unit::Example, neighbors);
            let _ = Question::new(statistic.clone(), 0.5).ask(&mut ledger, &table.all()).unwrap();
            let spent = ledger.state().unwrap().spent().epsilon;
            // The exponential mechanism behind quantiles costs a little less at a δ.
            assert!((0.45..=0.5001).contains(&spent), "{statistic:?} under {neighbors:?} costs {spent}");
        }
    }
}

#[test]
fn answers_are_near_the_truth() {
    let folder = Folder::new();
    let table = people(&folder);
    let mut ledger = ledger(Unit::Example, Neighbors::AddRemove);
    let Answer::Number { release, .. } =
        Question::new(Statistic::Count, 5.0).ask(&mut ledger, &table.all()).unwrap()
    else {
        panic!("a count is a number")
    };
    // Noise of scale 1/5 exceeds 5 with a probability of e⁻²⁵.
    assert!((release.value - 400.0).abs() < 5.0, "{release:?}");
}

#[test]
fn a_ledger_that_protects_users_refuses_to_count_records() {
    let folder = Folder::new();
    let table = people(&folder);
    let mut ledger = ledger(Unit::User, Neighbors::AddRemove);
    for statistic in every_statistic() {
        let question = Question::new(statistic, 0.1);
        let refused = question.ask(&mut ledger, &table.all());
        assert!(matches!(refused, Err(Error::Setting { name: "unit", .. })), "{refused:?}");
        assert!(Question { one_record_per_user: true, ..question }.ask(&mut ledger, &table.all()).is_ok());
    }
    assert_eq!(ledger.state().unwrap().charges().len(), every_statistic().len());
}

#[test]
fn ballots_in_memory_are_answered_from_a_ledger_of_the_same_promise_only() {
    let recipe = Recipe { epsilon: Some(2.0), delta: Some(1e-6), answers: Some(2), ..Recipe::default() };
    let facts = VoteFacts { candidates: 2, voters: Voters::Teachers, ballots: 50, questions: 2 };
    let plan = recipe.plan(&facts).unwrap();
    let mut ballots = Ballots::new(2, 2).unwrap();
    (0..50).for_each(|_| ballots.push(&[0, 1]));
    for (unit, neighbors) in [(Unit::User, Neighbors::AddRemove), (Unit::Example, Neighbors::Replace)] {
        let mut other = ledger(unit, neighbors);
        let refused = plan.answer(&ballots, Unit::Example, &mut other);
        assert!(matches!(refused, Err(Error::OtherTerms { .. })), "{refused:?}");
        assert!(other.state().unwrap().charges().is_empty());
    }
    let answers =
        plan.answer(&ballots, Unit::Example, &mut ledger(Unit::Example, Neighbors::AddRemove)).unwrap();
    assert_eq!(answers.len(), 2);
}

#[test]
fn a_gaussian_price_for_replacement_has_twice_the_noise() {
    use quell::privacy::mechanism::Sum;
    let (bounds, epsilon) = (Bounds::new(0.0, 1.0).unwrap(), Epsilon::new(1.0).unwrap());
    let price = Price::gaussian(epsilon, Delta::new(1e-6).unwrap());
    let of = |price: Price| Sum::for_epsilon(bounds, price).unwrap().noise_multiplier.get();
    assert_eq!(of(price.under(Neighbors::Replace)), 2.0 * of(price));
}

#[test]
fn a_replaced_record_moves_both_counts_of_an_accuracy() {
    let epsilon = Epsilon::new(0.5).unwrap();
    for (neighbors, moves, scale) in [(Neighbors::AddRemove, 1, 2.0), (Neighbors::Replace, 2, 4.0)] {
        let mut ledger = ledger(Unit::Example, neighbors);
        let accuracy = Accuracy::new(0.5);
        accuracy.ask(&mut ledger, &[true, true, false]).unwrap();
        Accuracy { records: Some(3), ..accuracy }.ask(&mut ledger, &[true, true, false]).unwrap();
        let [both, one] = [moves, 1].map(|moves| IntegerNoise::for_epsilon(epsilon, moves).unwrap());
        // The scale is rounded up, by a part in a million at most.
        assert!((scale..=scale * (1.0 + 1e-6)).contains(&both.scale()), "{}", both.scale());
        let keys = ["right", "wrong"].map(str::to_owned).to_vec();
        let expected =
            [Histogram { keys, noise: both }.event(neighbors), Count { noise: one }.event(neighbors)];
        let charged: Vec<_> =
            ledger.state().unwrap().charges().iter().map(|charge| charge.charge.plan.event.clone()).collect();
        assert_eq!(charged, expected);
    }
}

#[test]
fn an_accuracy_is_refused_where_users_may_have_several_records() {
    let mut ledger = ledger(Unit::User, Neighbors::AddRemove);
    assert!(matches!(Accuracy::new(0.5).ask(&mut ledger, &[true]), Err(Error::Setting { .. })));
    assert!(ledger.state().unwrap().charges().is_empty());
    let declared = Accuracy { one_record_per_user: true, ..Accuracy::new(0.5) };
    declared.ask(&mut ledger, &[true]).unwrap();
}

#[test]
fn unknown_keys_cost_half_of_epsilon_for_each_half_of_a_replacement() {
    let (epsilon, delta) = (Epsilon::new(0.5).unwrap(), Delta::new(1e-6).unwrap());
    let of = |neighbors| StableHistogram::for_epsilon(epsilon, delta, neighbors).unwrap();
    assert_eq!(of(Neighbors::AddRemove), StableHistogram::new(epsilon, delta).unwrap());
    let half = Delta::new(1e-6 / (1.0 + 0.25_f64.exp())).unwrap();
    assert_eq!(of(Neighbors::Replace), StableHistogram::new(Epsilon::new(0.25).unwrap(), half).unwrap());
    assert_eq!([of(Neighbors::AddRemove).threshold(), of(Neighbors::Replace).threshold()], [28, 58]);
}
