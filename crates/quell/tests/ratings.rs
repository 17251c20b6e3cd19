//! Recommendations: what they find, what they refuse, and that runs can be resumed.

use std::{fmt::Write, path::PathBuf};

use quell::{
    Error,
    data::{Examples, RatingColumns, Targets},
    learner::{
        Control, Evaluation, Method, Predictor, PublicFacts, Snapshot, Subject,
        factorization::{Factorization, Factorizing, Recipe},
    },
    ledger::InMemory,
    network::Architecture,
    random::PublicRandom,
    run::{Configuration, Driver, Folder, Job, Model, train},
};
use quell_ledger::{Location, Store};
use quell_privacy::{
    Neighbors,
    ledger::{Budget, Composition, Ledger, Terms, Unit},
    units::{Delta, Epsilon},
};

use crate::scratch::Scratch;

/// Ratings of users, items and numbers.
fn examples(ratings: &[(u32, u32, f32)], items: usize) -> Examples {
    let labels = ratings.iter().map(|(_, item, _)| *item).collect();
    let names = (0..items).map(|item| item.to_string()).collect();
    let values = ratings.iter().map(|(.., value)| *value).collect();
    // Ratings of other items are left out.
    let known = ratings.iter().filter(|(_, item, _)| (*item as usize) < items);
    let users: Vec<_> = known.map(|(user, ..)| Some(user.to_le_bytes())).collect();
    let examples = Examples::numbers(&[1], values, Targets::Classes { labels, names }).unwrap();
    examples.with_users(&users).unwrap()
}

fn planned(mut recipe: Recipe, items: usize) -> Result<Factorizing, Error> {
    let mut model = Architecture::default();
    let facts = PublicFacts { records: None, classes: Some(items) };
    let subject = Subject { shape: &[1], are_features: false, facts, schema: None };
    recipe.privacy.delta = Some(1e-5);
    let planned = Factorizing::plan(&mut recipe, &mut model, &subject)?;
    // Completed settings yield the same plan.
    let again = Factorizing::plan(&mut recipe.clone(), &mut model, &subject)?;
    assert_eq!(
        (again.plan.sums.runs, &again.plan.sums.descent),
        (planned.plan.sums.runs, &planned.plan.sums.descent)
    );
    Ok(planned)
}

fn recipe(epsilon: f64, records: u64) -> Recipe {
    let mut recipe = Recipe { records: Some(records), bounds: Some([0.5, 5.0]), ..Recipe::default() };
    recipe.privacy.epsilon = Some(epsilon);
    recipe
}

fn ledger(epsilon: f64, unit: Unit) -> Ledger<InMemory> {
    let terms = Terms {
        dataset: "ratings".into(),
        unit,
        neighbors: Neighbors::AddRemove,
        budget: Budget { epsilon: Some(Epsilon::new(epsilon).unwrap()), delta: Delta::new(1e-5).unwrap() },
        composition: Composition::Combined,
    };
    Ledger::create(InMemory::new("ratings"), terms).unwrap()
}

fn fitted(recipe: Recipe, data: &Examples) -> Factorization {
    let epsilon = recipe.privacy.epsilon.unwrap();
    let method = planned(recipe, data.classes().unwrap().len()).unwrap();
    match method.train(data, &mut ledger(epsilon, Unit::User)).unwrap() {
        Predictor::Factorization(found) => found,
        other => panic!("{other:?}"),
    }
}

/// Two groups of users. Each rates the items of their own half, and no others.
fn groups(users: u32, items: u32) -> Vec<(u32, u32, f32)> {
    let mut chance = PublicRandom::new(8);
    let own = |user: u32| (0..items / 2).map(move |item| (user, user % 2 * items / 2 + item));
    (0..users).flat_map(own).map(|(user, item)| (user, item, [4.0, 5.0][chance.below(2)])).collect()
}

#[test]
fn factors_recommend_items_of_the_group_of_a_user() {
    let (users, items) = (3_000, 40);
    let ratings = groups(users, items);
    let data = examples(&ratings, items as usize);
    let found = fitted(recipe(3.0, users.into()), &data);
    assert!(found.factor_count() >= 2 && found.kept().len() == items as usize, "{}", found.factor_count());
    for half in [0, 1] {
        let own: Vec<(u32, f32)> = (0..4).map(|item| (half * items / 2 + item, 5.0)).collect();
        let best = found.recommend(&own, 10);
        assert_eq!(best.len(), 10);
        for one in &best {
            assert_eq!(one.item / (items / 2), half, "{best:?}");
            assert!(own.iter().all(|(item, _)| *item != one.item), "{best:?}");
            assert!((0.5..=5.0).contains(&one.rating) && one.rating > 3.5, "{best:?}");
        }
        // Items of the other half are predicted to be rated lower.
        let all = found.recommend(&own, items as usize);
        let mean = |of: u32| {
            let those: Vec<f64> =
                all.iter().filter(|one| one.item / (items / 2) == of).map(|one| one.rating).collect();
            those.iter().sum::<f64>() / those.len() as f64
        };
        assert!(mean(half) > mean(1 - half) + 0.1, "{} {}", mean(half), mean(1 - half));
    }
    let Evaluation::Ratings { error, .. } = found.evaluate(&data) else { panic!("no error") };
    let popular = fitted(Recipe { factors: Some(false), ..recipe(3.0, users.into()) }, &data);
    let Evaluation::Ratings { error: without, .. } = popular.evaluate(&data) else { panic!("no error") };
    assert!(popular.factor_count() == 0 && error < 0.7 && without < 0.7, "{error} {without}");
}

#[test]
fn biases_and_popularity_are_about_right_with_little_noise() {
    // Everyone rates item 0 with 5 and item 1 with 2; half of them also item 2 with 3.5.
    let mut ratings = Vec::new();
    for user in 0..5_000 {
        ratings.extend([(user, 0, 5.0), (user, 1, 2.0)]);
        ratings.extend((user % 2 == 0).then_some((user, 2, 3.5)));
    }
    let found = fitted(Recipe { factors: Some(false), ..recipe(20.0, 5_000) }, &examples(&ratings, 5));
    let of = |item: u32| {
        let place = found.kept().iter().position(|kept| *kept == item).unwrap();
        (found.popularity()[place], found.biases()[place])
    };
    let expected = 2_500.0 / 3_f32.sqrt() + 2_500.0 / 2_f32.sqrt();
    assert!((of(0).0 / expected - 1.0).abs() < 0.05, "{:?} {expected}", of(0));
    assert!((of(2).0 * 3_f32.sqrt() / 2_500.0 - 1.0).abs() < 0.05, "{:?}", of(2));
    // Deviations are shortened to one star for each item, which is 1.5 here, or √1.5 for three items.
    assert!((0.9..1.3).contains(&of(0).1) && (-1.3..-0.9).contains(&of(1).1), "{:?} {:?}", of(0), of(1));
    assert!(of(2).1.abs() < 0.1, "{:?}", of(2));
}

#[test]
fn hard_data_gives_models_of_finite_numbers() {
    let odd = [f32::NAN, f32::INFINITY, 3e38, f32::MIN, 5.5];
    let cases = [
        (Vec::new(), 10, 10),
        (vec![(0, 0, 4.0)], 1, 1),
        (vec![(0, 0, 4.0); 50], 3, 1),
        ((0..500).map(|item| (0, item % 70, 4.0)).collect(), 70, 1_000),
        (odd.iter().zip(0..).map(|(value, item)| (item % 2, item, *value)).collect(), 5, 2),
        // Items that the list does not have.
        ((0..30).map(|item| (item % 3, item, 1.0)).collect(), 2, 3),
    ];
    for (ratings, items, records) in cases {
        for (epsilon, factors) in [(0.1, true), (0.1, false), (30.0, true)] {
            let data = examples(&ratings, items);
            let found = fitted(Recipe { factors: Some(factors), ..recipe(epsilon, records) }, &data);
            assert!(found.weights().iter().all(|x| x.is_finite()), "{items} {epsilon} {factors}");
            for own in [vec![], vec![(0, f32::NAN)], vec![(0, 9.0), (0, -3.0), (900, 2.0)]] {
                let best = found.recommend(&own, 3);
                assert!(best.iter().all(|one| (0.5..=5.0).contains(&one.rating)), "{best:?}");
                assert!(best.iter().all(|one| (one.item as usize) < items), "{best:?}");
            }
            let Evaluation::Ratings { error, .. } = found.evaluate(&data) else { panic!("no error") };
            assert!(error.is_finite() && error <= 4.5, "{error}");
        }
    }
}

/// With surplus users, an added user may take the place of another one. That is paid for under `Replace` alone.
#[test]
fn a_lease_of_a_ledger_with_other_neighbours_is_refused() {
    let mut replaced = recipe(1.0, 1);
    replaced.privacy.neighbors = Neighbors::Replace;
    let planned = planned(replaced, 5).unwrap();
    let data = examples(&[(0, 0, 4.0), (1, 1, 4.0)], 5);
    let (mut task, mut state) = (planned.task(&data, Unit::User).unwrap(), planned.state(None).unwrap());
    let mut ledger = ledger(9.0, Unit::User);
    let (mechanism, runs) = planned.mechanism();
    let lease = ledger.reserve(mechanism, runs).unwrap();
    let refused = planned.fit(lease, &mut task, &mut state, |_| Ok(Control::Continue));
    assert!(matches!(refused, Err(Error::OtherTerms { .. })), "{refused:?}");
    assert_eq!(state.position(), 0);
}

#[test]
fn settings_and_ledgers_that_do_not_fit_are_refused() {
    for bounds in [None, Some([5.0, 0.5]), Some([1.0, 1.0]), Some([f64::NAN, 1.0]), Some([0.0, 1e300])] {
        let refused = planned(Recipe { bounds, ..recipe(1.0, 10) }, 5).err();
        assert!(matches!(refused, Some(Error::Setting { name: "bounds", .. })), "{bounds:?} {refused:?}");
    }
    assert!(planned(Recipe { records: None, ..recipe(1.0, 10) }, 5).is_err());
    assert!(planned(recipe(1.0, 10), 0).is_err());
    let data = examples(&[(0, 0, 4.0)], 5);
    let refused = planned(recipe(1.0, 10), 5).unwrap().train(&data, &mut ledger(1.0, Unit::Example));
    let sentence = refused.unwrap_err().to_string();
    assert!(sentence.contains("all ratings of one user together"), "{sentence}");
}

#[test]
fn factors_are_found_where_users_are_many_enough() {
    let runs = |epsilon, records| planned(recipe(epsilon, records), 5_000).unwrap().plan.sums.runs;
    assert_eq!((runs(0.5, 600), runs(3.0, 600), runs(1.0, 100_000)), (2, 6, 6));
    let plan = planned(recipe(1.0, 100_000), 5_000).unwrap().plan;
    assert_eq!((plan.kept, plan.paired, plan.sums.descent.dimension), (5_000, 500, 125_250));
    assert_eq!(planned(recipe(0.5, 600), 5_000).unwrap().remarks().len(), 1);
}

/// Runs a job, is stopped after some runs, and goes on.
struct Interrupted(u64);

impl Driver for Interrupted {
    type Output = (Model, PathBuf, u64);

    fn drive<J: Job>(self, job: &J) -> Self::Output {
        let path = Scratch::new("run", "").path().with_extension("folder");
        let folder = Folder::create(&path).unwrap();
        let store = Store::create(Location::File(path.join("ledger.db"))).unwrap();
        let terms = job.terms().unwrap();
        assert_eq!(terms.unit, Unit::User);
        let mut ledger = Ledger::create(store.book(&terms.dataset).unwrap(), terms).unwrap();
        let mut steps = Vec::new();
        for stop in [self.0, u64::MAX] {
            job.go(&mut ledger, &folder, &mut |progress| {
                steps.push(progress.done);
                if progress.done == stop { Control::Stop } else { Control::Continue }
            })
            .unwrap();
        }
        assert!(steps.is_sorted_by(|a, b| a < b), "{steps:?}");
        assert_eq!(ledger.state().unwrap().charges().len(), 1);
        let taken = folder.metrics().unwrap().taken;
        let model = folder.model().unwrap();
        let again = Model::restore(&model.save().unwrap()).unwrap();
        assert_eq!(format!("{:?}", again.predictor), format!("{:?}", model.predictor));
        assert_eq!(again.digest().unwrap(), model.digest().unwrap());
        (model, path, taken)
    }
}

fn configuration(table: &Scratch, items: &Scratch, records: u64) -> Configuration {
    let mut asked = Configuration::default();
    asked.data.path = Some(table.path().to_owned());
    asked.data.ratings = Some(RatingColumns {
        user: "u".into(),
        item: "i".into(),
        value: "r".into(),
        items: items.path().to_owned(),
        digest: None,
    });
    asked.factorization.bounds = Some([0.5, 5.0]);
    asked.training.privacy.epsilon = Some(3.0);
    asked.training.sampling.records = Some(records);
    asked
}

#[test]
fn a_table_of_ratings_is_learned_and_an_interrupted_run_goes_on() {
    let mut text = String::from("u,i,r\n");
    for (user, item, value) in groups(3_000, 40) {
        writeln!(text, "{user},{item},{value}").unwrap();
    }
    text.push_str(",3,4\n7,3,\n7,,4\n7,unknown,4\n");
    let table = Scratch::new("ratings.csv", text);
    let list = (0..40).map(|item| item.to_string()).collect::<Vec<_>>().join("\n") + "\n";
    let items = Scratch::new("items.txt", &list);
    for (stop, neighbors) in [(1, Neighbors::AddRemove), (2, Neighbors::Replace), (5, Neighbors::AddRemove)] {
        let mut asked = configuration(&table, &items, 3_000);
        asked.factorization.privacy.neighbors = neighbors;
        let (model, _, taken) = train(asked, Interrupted(stop)).unwrap();
        assert_eq!((taken, model.classes.as_ref().map(Vec::len)), (6, Some(40)));
        let Predictor::Factorization(found) = &model.predictor else { panic!("no factors") };
        let best = found.recommend(&[(21, 5.0), (22, 5.0), (23, 5.0)], 5);
        assert!(best.iter().all(|one| one.item >= 20), "{best:?}");
        // The same settings go on with the same list only.
        let mut again = model.configuration.clone();
        let changed = Scratch::new("items.txt", list.replace("3\n", "33\n"));
        again.data.ratings.as_mut().unwrap().items = changed.path().to_owned();
        assert!(train(again, Interrupted(1)).is_err());
    }
    // The private ratings themselves are no public list.
    let refused = train(configuration(&table, &table, 10), Interrupted(1)).err().unwrap();
    assert!(refused.to_string().contains("the data that is trained on"), "{refused}");
}
