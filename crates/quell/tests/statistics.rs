//! Statistics through the library: what they cost, and which ledgers refuse them.

use quell::{
    Error,
    data::Table,
    ledger::InMemory,
    privacy::{
        Neighbors,
        ledger::{Budget, Composition, Ledger, Terms, Unit},
        mechanism::{Bounds, Count, Histogram, IntegerNoise, Mechanism, PerUser, Price, StableHistogram},
        units::{Delta, Epsilon, Probability},
    },
    statistics::{Accuracy, Answer, Axis, Bins, Grouped, Question, Statistic},
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
    let kinds = || vec![Axis::keys("kind", ["a", "b", "c"].map(str::to_owned).to_vec())];
    let ages = || vec![Axis::bins("age", Bins::equal(bounds, 5).unwrap())];
    vec![
        Statistic::Count,
        Statistic::Reaches { threshold: 100 },
        Statistic::Sum { column: column(), bounds },
        Statistic::Mean { column: column(), bounds },
        Statistic::Variance { column: column(), bounds },
        Statistic::Histogram { column: "kind".into(), keys: Some(vec!["a".into(), "b".into()]) },
        Statistic::Histogram { column: "kind".into(), keys: None },
        Statistic::Grouped(Grouped::Sum { column: column(), bounds, by: kinds() }),
        Statistic::Grouped(Grouped::Mean { column: column(), bounds, by: kinds() }),
        Statistic::Grouped(Grouped::Mean { column: column(), bounds, by: [kinds(), ages()].concat() }),
        Statistic::Grouped(Grouped::Count { by: ages() }),
        Statistic::Grouped(Grouped::Count { by: [kinds(), ages()].concat() }),
        Statistic::Grouped(Grouped::UnknownPairs { columns: ["kind".into(), column()] }),
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

fn bins(answer: Answer) -> Vec<(String, f64)> {
    let Answer::Bins(bins) = answer else { panic!("{answer:?}") };
    bins.into_iter().map(|(key, release)| (key, release.value)).collect()
}

#[test]
fn groups_hold_the_records_with_their_key_and_other_records_are_left_out() {
    let folder = Folder::new();
    let path = folder.path().join("people.csv");
    // In the last rows a number or a key is missing or not finite, or the key is not declared.
    let strange = "nan,a\ninf,a\n,a\nword,a\n1e999,b\n7,\n7\n7,c\n7,\"a,b\"\n";
    std::fs::write(&path, format!("age,kind\n{}{}{strange}", "30,a\n".repeat(200), "70,b\n".repeat(100)))
        .unwrap();
    let (table, bounds) = (Table::open(&path).unwrap(), Bounds::new(0.0, 100.0).unwrap());
    let column = || "age".to_owned();
    let keys = || ["b", "empty", "a", "a,b", "c d"].map(str::to_owned).to_vec();
    for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
        let mut ledger = ledger(Unit::Example, neighbors);
        let mut ask = |grouped| {
            let question = Question::new(Statistic::Grouped(grouped), 5.0);
            question.ask(&mut ledger, &table.all()).unwrap()
        };
        let kinds = || vec![Axis::keys("kind", keys())];
        let sums = bins(ask(Grouped::Sum { column: column(), bounds, by: kinds() }));
        let means = bins(ask(Grouped::Mean { column: column(), bounds, by: kinds() }));
        for (place, (key, sum)) in keys().into_iter().zip([7000.0, 0.0, 6000.0, 7.0, 0.0]).enumerate() {
            // Noise of scale 40 at most exceeds 1,000 with a probability of e⁻²⁵.
            assert!(sums[place].0 == key && (sums[place].1 - sum).abs() < 1000.0, "{sums:?}");
            assert!(means[place].0 == key && (0.0..=100.0).contains(&means[place].1), "{means:?}");
        }
        // With 200 records the sum is off by less than 1,000 and the count by less than 20.
        assert!((means[2].1 - 30.0).abs() < 9.0 && (means[0].1 - 70.0).abs() < 30.0, "{means:?}");
        let ages = Axis::keys("age", vec!["30".into(), "70".into(), "nan".into()]);
        let pairs = ask(Grouped::Count { by: [kinds(), vec![ages]].concat() });
        let Answer::Cells(cells) = pairs else { panic!("{pairs:?}") };
        assert_eq!(cells.len(), 15);
        for ([kind, age], release) in cells {
            let truth = match (kind.as_str(), age.as_str()) {
                ("a", "30") => 200.0,
                ("b", "70") => 100.0,
                ("a", "nan") => 1.0,
                _ => 0.0,
            };
            assert!((release.value - truth).abs() < 20.0, "{kind} {age}: {release:?}");
        }
    }
}

#[test]
fn numbers_are_counted_in_the_bins_that_they_are_in() {
    let folder = Folder::new();
    let path = folder.path().join("people.csv");
    // Numbers beyond the bounds are in the outer bins. A cell without a finite number is in none.
    let rows = "20,a\n".repeat(100) + &"99,b\n".repeat(50) + &"-7,b\n".repeat(30) + "nan,a\ninf,a\n,b\nx,a\n";
    std::fs::write(&path, format!("age,kind\n{rows}")).unwrap();
    let (table, bounds) = (Table::open(&path).unwrap(), Bounds::new(0.0, 40.0).unwrap());
    for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
        let mut ledger = ledger(Unit::Example, neighbors);
        let mut ask = |by| {
            let question = Question::new(Statistic::Grouped(Grouped::Count { by }), 5.0);
            question.ask(&mut ledger, &table.all()).unwrap()
        };
        let ages = Axis::bins("age", Bins::equal(bounds, 2).unwrap());
        let counts = bins(ask(vec![ages.clone()]));
        assert_eq!([counts[0].0.as_str(), counts[1].0.as_str()], ["[0, 20)", "[20, 40]"]);
        // Noise of scale 2/5 exceeds 10 with a probability of e⁻²⁵.
        assert!((counts[0].1 - 30.0).abs() < 10.0 && (counts[1].1 - 150.0).abs() < 10.0, "{counts:?}");
        let kinds = Axis::keys("kind", vec!["a".into(), "b".into()]);
        let Answer::Cells(cells) = ask(vec![ages, kinds]) else { panic!("two columns have cells") };
        let counts: Vec<f64> = cells.iter().map(|(_, release)| release.value).collect();
        for (count, truth) in counts.iter().zip([0.0, 30.0, 100.0, 50.0]) {
            assert!((count - truth).abs() < 10.0, "{cells:?}");
        }
    }
}

#[test]
fn cells_of_three_columns_or_too_many_cells_are_refused() {
    let folder = Folder::new();
    let table = people(&folder);
    let mut ledger = ledger(Unit::Example, Neighbors::AddRemove);
    let many = Axis::bins("age", Bins::equal(Bounds::new(0.0, 100.0).unwrap(), 400).unwrap());
    for by in [vec![], vec![many.clone(); 2], vec![many; 3]] {
        let grouped = Statistic::Grouped(Grouped::Count { by });
        let refused = Question::new(grouped, 1.0).ask(&mut ledger, &table.all());
        assert!(matches!(refused, Err(Error::Setting { name: "groups", .. })), "{refused:?}");
    }
}

#[test]
fn groups_of_nobody_are_answered_and_lists_of_keys_are_checked_before_anything_is_paid() {
    let folder = Folder::new();
    let path = folder.path().join("people.csv");
    std::fs::write(&path, "age,kind\n").unwrap();
    let (table, bounds) = (Table::open(&path).unwrap(), Bounds::new(0.0, 100.0).unwrap());
    let mut ledger = ledger(Unit::Example, Neighbors::AddRemove);
    let mut ask = |keys: &[&str]| {
        let keys = keys.iter().map(ToString::to_string).collect();
        let grouped = Grouped::Mean { column: "age".into(), bounds, by: vec![Axis::keys("kind", keys)] };
        Question::new(Statistic::Grouped(grouped), 1.0).ask(&mut ledger, &table.all())
    };
    let means = bins(ask(&["a", "b"]).unwrap());
    assert!(means.len() == 2 && means.iter().all(|(_, mean)| (0.0..=100.0).contains(mean)), "{means:?}");
    for keys in [&["a", "b", "a"] as &[&str], &[]] {
        assert!(matches!(ask(keys), Err(Error::Setting { name: "a list of groups", .. })), "{keys:?}");
    }
    assert_eq!(ledger.state().unwrap().charges().len(), 1);
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
    assert_eq!(answers.entries.len(), 2);
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
fn the_accuracy_of_limited_users_has_noise_for_all_records_of_a_user() {
    let records = [true, true, false, true];
    for (neighbors, moves) in [(Neighbors::AddRemove, 3), (Neighbors::Replace, 6)] {
        let mut ledger = ledger(Unit::User, neighbors);
        let limited = Accuracy { most_per_user: Some(3), ..Accuracy::new(0.5) };
        limited.ask(&mut ledger, &records).unwrap();
        let charge = ledger.state().unwrap().charges()[0].charge.plan.event.clone();
        let noise = IntegerNoise::for_epsilon(Epsilon::new(0.5).unwrap(), moves).unwrap();
        let keys = ["right", "wrong"].map(str::to_owned).to_vec();
        let mechanism = PerUser { mechanism: Histogram { keys, noise }, records: 3 };
        assert_eq!(charge, mechanism.event(neighbors));
        let spent = ledger.state().unwrap().spent().epsilon;
        assert!(spent <= 0.5 * (1.0 + 1e-6) && spent > 0.49, "{spent}");
    }
    // A record that is removed would let another record of its user in.
    let mut of_records = ledger(Unit::Example, Neighbors::AddRemove);
    let limited = Accuracy { most_per_user: Some(3), ..Accuracy::new(0.5) };
    assert!(limited.ask(&mut of_records, &records).is_err());
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
