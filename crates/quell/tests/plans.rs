//! Several statistics in one charge, disjoint parts, and limits on the records of a user.

use proptest::prelude::*;
use quell::{
    Error,
    data::{Fit, MisfitKind, Predicate, Schema, Table},
    ledger::InMemory,
    privacy::{
        Neighbors,
        accounting::Pld,
        ledger::{Budget, Composition, Ledger, Paid, Terms, Unit},
        mechanism::{Bounds, Mechanism, Noise},
        units::{Delta, Epsilon, Probability},
    },
    statistics::{Answer, Axis, Grouped, Named, Part, Plan, Question, Statistic, Visitor},
};

use crate::scratch::Scratch;

fn ledger(unit: Unit, neighbors: Neighbors, epsilon: f64) -> Ledger<InMemory> {
    let budget = Budget { epsilon: Some(Epsilon::new(epsilon).unwrap()), delta: Delta::new(1e-6).unwrap() };
    let terms =
        Terms { dataset: "people".into(), unit, neighbors, budget, composition: Composition::Combined };
    Ledger::create(InMemory::new("people"), terms).unwrap()
}

/// Two thousand records of ages 20 to 69; user u7 has half of them, and every other user has one.
fn people() -> Scratch {
    let row = |i: usize| {
        let user = if i.is_multiple_of(2) { "u7".into() } else { format!("v{i}") };
        format!("{user},{},{}", 20 + i / 2 % 50, ["a", "b"][i % 2])
    };
    Scratch::new(
        "people.csv",
        format!("user,age,kind\n{}\n", (0..2000).map(row).collect::<Vec<_>>().join("\n")),
    )
}

fn bounds() -> Bounds {
    Bounds::new(0.0, 100.0).unwrap()
}

fn half() -> Probability {
    Probability::new(0.5).unwrap()
}

fn every_statistic() -> Vec<Statistic> {
    let (column, bounds) = (|| "age".to_owned(), bounds());
    let kinds = || vec![Axis::keys("kind", vec!["a".into(), "b".into()])];
    vec![
        Statistic::Count,
        Statistic::Reaches { threshold: 100 },
        Statistic::Sum { column: column(), bounds },
        Statistic::Mean { column: column(), bounds },
        Statistic::Variance { column: column(), bounds },
        Statistic::Histogram { column: "kind".into(), keys: Some(vec!["a".into()]) },
        Statistic::Histogram { column: "kind".into(), keys: None },
        Statistic::Grouped(Grouped::Mean { column: column(), bounds, by: kinds() }),
        Statistic::Grouped(Grouped::Quantile { column: column(), bounds, quantile: half(), by: kinds() }),
        Statistic::Quantile { column: column(), bounds, quantile: half() },
        Statistic::Quantiles { column: column(), bounds, quantiles: vec![half(), half()] },
        Statistic::SmoothMedian { column: column(), bounds },
        Statistic::Range { column: column(), bounds, inside: half() },
    ]
}

fn several(answer: Answer) -> Vec<Named> {
    let Answer::Several(answers) = answer else { panic!("{answer:?}") };
    answers
}

#[test]
fn a_plan_of_every_statistic_is_one_charge_that_costs_no_more_than_its_epsilon() {
    let file = people();
    let table = file.table();
    for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
        let (mut ledger, all) = (ledger(Unit::Example, neighbors, 4.0), table.all());
        let part = |statistic: Statistic| Part { name: statistic.to_string(), statistic, records: &all };
        let plan = Plan::new(every_statistic().into_iter().map(part).collect(), 3.0);
        let answers = several(plan.ask(&mut ledger).unwrap());
        let names: Vec<&str> = answers.iter().map(|named| named.question.as_str()).collect();
        assert_eq!(names[..3], ["count", "count reaches 100", "sum of age"]);
        assert_eq!(names[7..10], ["mean of age by kind", "median of age by kind", "median of age"]);
        let state = ledger.state().unwrap();
        assert_eq!(state.charges().len(), 1);
        let spent = state.spent().epsilon;
        assert!(spent <= 3.0001 && spent > 1.5, "{neighbors:?}: {spent}");
    }
}

#[test]
fn gaussian_noise_of_a_plan_is_less_than_that_of_equal_shares() {
    let file = people();
    let table = file.table();
    let all = table.all();
    let part = |_| Part { name: "count".into(), statistic: Statistic::Count, records: &all };
    let error = |noise: Noise, parts: usize| {
        let mut ledger = ledger(Unit::Example, Neighbors::AddRemove, 4.0);
        let plan = Plan { noise, ..Plan::new((0..parts).map(part).collect(), 1.0) };
        let answers = several(plan.ask(&mut ledger).unwrap());
        let spent = ledger.state().unwrap().spent().epsilon;
        // The theorems of a ledger leave some of δ to others, and discrete noise costs a little more than continuous noise.
        assert!(spent <= 1.01, "{noise}: {spent}");
        let Answer::Number { release, .. } = &answers[0].answer else { panic!("{answers:?}") };
        let quell::privacy::mechanism::Within::Value(error) = release.within else { panic!("{release:?}") };
        error
    };
    let (one, sixteen) = (error(Noise::Gaussian, 1), error(Noise::Gaussian, 16));
    // √16 = 4, and not 16.
    assert!(sixteen < 4.5 * one && sixteen > 3.5 * one, "{one} and {sixteen}");
    assert!(sixteen < error(Noise::Laplace, 16));
}

/// ε of a plan at a δ.
struct Cost {
    epsilon: f64,
    delta: f64,
    neighbors: Neighbors,
}

impl<'a> Visitor<'a> for Cost {
    type Output = f64;

    fn visit<M: Mechanism + 'a, D: 'a>(
        self,
        make: impl Fn(f64) -> Result<M, Error> + 'a,
        _: impl FnOnce() -> Result<D, Error> + 'a,
        _: impl FnOnce(Paid<M>, D) -> Result<Answer, quell::privacy::Error> + 'a,
    ) -> f64 {
        let event = make(self.epsilon).unwrap().event(self.neighbors);
        Pld::default().epsilon(&event, self.neighbors, Delta::new(self.delta).unwrap()).unwrap().upper
    }
}

#[test]
fn a_gaussian_plan_meets_its_epsilon_at_its_delta_whatever_statistics_it_has() {
    let file = people();
    let table = file.table();
    let all = table.all();
    let part = |statistic: Statistic| Part { name: statistic.to_string(), statistic, records: &all };
    let unknown = || Statistic::Histogram { column: "kind".into(), keys: None };
    let median = || Statistic::SmoothMedian { column: "age".into(), bounds: bounds() };
    for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
        let mut ledger = ledger(Unit::Example, neighbors, 4.0);
        for delta in [None, Some(1e-7)] {
            for statistics in
                [vec![Statistic::Count, unknown()], vec![unknown(), Statistic::Count, median(), unknown()]]
            {
                let parts = statistics.into_iter().map(part).collect();
                let plan = Plan { noise: Noise::Gaussian, delta, ..Plan::new(parts, 1.0) };
                let asked = Cost { epsilon: 1.0, delta: delta.unwrap_or(1e-6), neighbors };
                let cost = plan.visit(ledger.state().unwrap(), asked).unwrap();
                assert!(cost <= 1.0 && cost > 0.9, "{neighbors:?}, {delta:?}: {cost}");
            }
        }
    }
}

#[test]
fn a_plan_of_nothing_and_one_with_two_limits_are_refused_before_anything_is_paid() {
    let file = people();
    let table = file.table();
    let mut ledger = ledger(Unit::User, Neighbors::AddRemove, 4.0);
    let [one, two] = [1, 2].map(|most| table.all().at_most_per_user("user", most).unwrap());
    let part = |records| Part { name: "count".into(), statistic: Statistic::Count, records };
    for parts in [vec![], vec![part(&one), part(&two)]] {
        let refused = Plan::new(parts, 1.0).ask(&mut ledger);
        assert!(matches!(refused, Err(Error::Setting { name: "a plan", .. })), "{refused:?}");
    }
    assert!(ledger.state().unwrap().charges().is_empty());
    assert!(Plan::new(vec![part(&two)], 1.0).ask(&mut ledger).is_ok());
}

#[test]
fn a_limit_on_the_records_of_a_user_is_needed_by_ledgers_of_users_and_refused_by_others() {
    let file = people();
    let table = file.table();
    for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
        for statistic in every_statistic() {
            let limited = table.all().at_most_per_user("user", 3).unwrap();
            let mut ledger_of_users = ledger(Unit::User, neighbors, 20.0);
            let question = Question::new(statistic.clone(), 1.0);
            assert!(question.ask(&mut ledger_of_users, &table.all()).is_err());
            question
                .ask(&mut ledger_of_users, &limited)
                .unwrap_or_else(|error| panic!("{statistic}: {error}"));
            let spent = ledger_of_users.state().unwrap().spent().epsilon;
            assert!(spent <= 1.0001 && spent > 0.6, "{statistic} under {neighbors:?}: {spent}");
            let refused = question.ask(&mut ledger(Unit::Example, neighbors, 20.0), &limited);
            assert!(matches!(refused, Err(Error::Setting { name: "unit", .. })), "{refused:?}");
        }
    }
}

#[test]
fn the_first_records_of_each_user_are_kept_and_their_noise_grows_with_the_limit() {
    let file = people();
    let table = file.table();
    for (most, truth) in [(1, 1001.0), (5, 1005.0), (100_000, 2000.0)] {
        let limited = table.all().at_most_per_user("user", most).unwrap();
        assert_eq!(limited.count().unwrap() as f64, truth);
        let mut ledger = ledger(Unit::User, Neighbors::AddRemove, 20.0);
        let answer = Question::new(Statistic::Count, 2.0).ask(&mut ledger, &limited).unwrap();
        let Answer::Number { release, .. } = answer else { panic!() };
        let quell::privacy::mechanism::Within::Value(error) = release.within else { panic!() };
        // Noise of scale most/2 exceeds 1.5 times as much in one of twenty cases.
        assert!((error - 1.5 * f64::from(most)).abs() < 0.2 * f64::from(most) + 1.0, "{most}: {error}");
    }
    let some: Predicate = "age >= 68".parse().unwrap();
    let limited = table.select(&some).unwrap().at_most_per_user("user", 2).unwrap();
    // The condition comes first, so both records of u7 are among the old.
    assert_eq!(limited.numbers("age").unwrap().iter().flatten().filter(|age| **age >= 68.0).count(), 42);
    assert!(table.all().at_most_per_user("nobody", 2).is_err());
    assert!(table.all().at_most_per_user("user", 0).is_err());
}

fn parts(table: &Table, conditions: &[&str]) -> Result<Vec<(String, f64)>, Error> {
    let conditions = conditions.iter().map(|text| text.parse()).collect::<Result<Vec<Predicate>, _>>()?;
    let statistic = Statistic::Grouped(Grouped::Count { by: vec![Axis::conditions(conditions)] });
    let mut ledger = ledger(Unit::Example, Neighbors::Replace, 20.0);
    let answer = Question::new(statistic, 10.0).ask(&mut ledger, &table.all())?;
    let Answer::Bins(bins) = answer else { panic!("{answer:?}") };
    Ok(bins.into_iter().map(|(name, release)| (name, release.value)).collect())
}

#[test]
fn parts_have_their_own_counts_and_cost_one_epsilon_together() {
    let file = people();
    let found = parts(&file.table(), &["age < 30", "age >= 30 and kind = 'a'", "age > 60 and kind = 'b'"]);
    let found = found.unwrap();
    for ((name, value), (condition, truth)) in found.iter().zip([
        ("age < 30", 400.0),
        ("age >= 30 and kind = 'a'", 800.0),
        ("age > 60 and kind = 'b'", 180.0),
    ]) {
        assert!(name == condition && (value - truth).abs() < 20.0, "{found:?}");
    }
}

#[test]
fn conditions_are_parts_only_if_they_are_proved_disjoint() {
    let file = Scratch::new("table.csv", "a,b,c\n1,x,2\n");
    let table = file.table();
    for disjoint in [
        &["a < 1", "a >= 1"][..],
        &["a < 1", "a = 1", "a > 1", "a is missing"],
        &["a in (1, 2)", "a in (3, 4)", "a not in (1, 2, 3, 4) and a > 0"],
        &["b = 'x'", "b != 'x'", "b is missing"],
        &["b < 'm'", "b >= 'm'"],
        &["not (a < 1 or b = 'x')", "a < 1", "b = 'x' and a >= 1"],
        &["a = 1 and b = 'x'", "a = 1 and b = 'y'", "a = 2"],
        &["a > 1 and a < 1", "a = 5", "a = 6"],
        &["a = 1 or a = 2", "a = 3 or (a = 4 and b = 'x')"],
        &["a != 1", "a = 1", "not (a != 1 or a = 1)"],
        &["a = 0", "a = 1"],
    ] {
        assert!(parts(&table, disjoint).is_ok(), "{disjoint:?}");
    }
    for joint in [
        &["a < 1", "a <= 1"][..],
        &["a < 1", "b = 'x'"],
        &["a < 1", "not a = 5"],
        &["a = 1", "a = 1.0"],
        &["a = 0", "a = -0"],
        // A cell may be read as a number by one and as text by the other.
        &["a = 1", "a = '1'"],
        &["a = 1 or b = 'x'", "a = 2 or b = 'y'"],
        &["not a = 1", "not a = 2"],
        &["a >= 1", "a <= 1"],
        &["b >= 'x'", "b <= 'x'"],
        &["a < 3 and a > 2.9", "a > 2"],
    ] {
        let refused = parts(&table, joint).unwrap_err();
        assert!(matches!(refused, Error::Setting { name: "a list of parts", .. }), "{joint:?}: {refused}");
    }
}

/// A condition about two columns, as text.
fn condition() -> impl Strategy<Value = String> {
    let number = || (0..4_i32).prop_map(|n| n.to_string());
    let operator = || prop::sample::select(vec!["=", "!=", "<", "<=", ">", ">="]);
    let text = || prop::sample::select(vec!["'x'", "'y'", "''"]);
    let leaf = prop_oneof![
        (operator(), number()).prop_map(|(operator, n)| format!("a {operator} {n}")),
        (operator(), text()).prop_map(|(operator, t)| format!("b {operator} {t}")),
        (operator(), text()).prop_map(|(operator, t)| format!("a {operator} {t}")),
        (number(), number()).prop_map(|(one, two)| format!("a in ({one}, {two})")),
        prop::sample::select(vec!["a is missing", "b is missing", "b in ('x', 'z')"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|one| format!("not ({one})")),
            (inner.clone(), inner.clone()).prop_map(|(one, two)| format!("({one}) and ({two})")),
            (inner.clone(), inner).prop_map(|(one, two)| format!("({one}) or ({two})")),
        ]
    })
}

proptest! {
    #[test]
    fn no_row_satisfies_two_conditions_that_are_proved_disjoint(one in condition(), two in condition()) {
        let cells = ["", "0", "-0", "1", "1.0", "2.5", "3", "x", "y", "z", "nan"];
        let rows: Vec<String> =
            cells.iter().flat_map(|a| ["", "x", "y", "w"].map(|b| format!("{a},{b}"))).collect();
        let file = Scratch::new("rows.csv", format!("a,b\n{}\n", rows.join("\n")));
        let table = file.table();
        if one != two && parts(&table, &[&one, &two]).is_ok() {
            let both: Predicate = format!("({one}) and ({two})").parse().unwrap();
            prop_assert_eq!(table.select(&both).unwrap().count().unwrap(), 0, "{} and {}", one, two);
        }
    }
}

#[test]
fn cells_that_do_not_fit_a_schema_are_found_with_their_record_and_reason() {
    let schema = "[label]\ncolumn = 'y'\nclasses = ['no', 'yes']\n[[column]]\nname = 'x'\nbounds = [0, 9]\n[[column]]\nname = 'c'\ncategories = ['red', 'blue']\n[[column]]\nname = 'd'\ncategories = ['1', '2']\nunknown = true\n";
    let schema = Schema::parse(schema).unwrap();
    let file = Scratch::new(
        "fit.csv",
        "x,c,d,y\n1, red ,1,yes\nabc,blue,1,no\n99,green,7,yes.\n,,,\n5,red\n1e400,red,2,no\n",
    );
    let fit = Fit::new(file.path(), &schema, true).unwrap();
    let found: Vec<(usize, &str, MisfitKind, bool)> =
        fit.misfits.iter().map(|it| (it.record, it.column.as_str(), it.kind, it.is_declared)).collect();
    assert_eq!(
        found,
        [
            (2, "x", MisfitKind::NoNumber, false),
            (3, "c", MisfitKind::NoCategory, false),
            (3, "d", MisfitKind::NoCategory, true),
            (3, "y", MisfitKind::NoClass, false),
            (4, "y", MisfitKind::NoClass, false),
            (5, "d", MisfitKind::NoCell, false),
            (5, "y", MisfitKind::NoClass, false),
            (6, "x", MisfitKind::NoNumber, false),
        ]
    );
    assert_eq!(fit.records, 6);
    assert_eq!(fit.by_column().iter().map(|(count, _)| *count).collect::<Vec<_>>(), [2, 1, 1, 3, 1]);
    let unlabelled = Fit::new(file.path(), &schema, false).unwrap();
    assert!(unlabelled.misfits.iter().all(|misfit| misfit.column != "y"));
}
