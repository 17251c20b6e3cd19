//! Networks on privately found components: one plan, one charge.

use quell::{
    Error,
    data::{Examples, Schema, Targets, digits},
    learner::{
        Augmentation, Method, PublicFacts, Subject,
        dp_sgd::{DpSgd, Recipe, Sampler},
        prepared::{Preparation, Prepared},
    },
    ledger::InMemory,
    network::Architecture,
    random::PublicRandom,
    run::{Configuration, Model, train},
};
use quell_privacy::{
    Event, Neighbors,
    accounting::Pld,
    mechanism::Mechanism,
    units::{Delta, Epsilon, NoiseMultiplier},
};

use crate::linear::{Fit, Fitted};

/// The digits, prepared first.
fn asked(preparation: Preparation) -> Configuration {
    let mut asked = Configuration::digits().unwrap();
    asked.budget = None;
    asked.training.preparation = Some(preparation);
    asked
}

fn fit(asked: Configuration, stop_after: u64) -> Fitted {
    train(asked, Fit { stop_after }).unwrap().unwrap()
}

fn accuracy(model: &Model) -> f64 {
    let test = digits().unwrap().test.unwrap();
    let test = match &model.configuration.data.scaling {
        Some(scaling) => test.scaled(scaling).unwrap(),
        None => test,
    };
    model.predictor.evaluate(&test).accuracy().unwrap()
}

#[test]
fn a_network_learns_from_components_that_are_paid_for_in_the_same_plan() {
    for stop_after in [u64::MAX, 5, 40] {
        // The run stops within the preparation, or within the steps, and goes on.
        let components = Preparation::Components { count: 20, noise_multiplier: None };
        let fitted = fit(asked(components), stop_after);
        let model = fitted.model.as_ref().unwrap();
        assert!(fitted.spent <= 3.0 && fitted.spent > 2.9, "{}", fitted.spent);
        // Without a preparation it is 0.93.
        assert!(accuracy(model) > 0.8, "{} after {stop_after}", accuracy(model));
        let again = Model::restore(&model.save().unwrap()).unwrap();
        assert_eq!(accuracy(&again), accuracy(model));
        assert_eq!(again.digest().unwrap(), model.digest().unwrap());
        assert!(fitted.settings.contains("kind = \"components\""), "{}", fitted.settings);
    }
}

/// A table whose declared bounds are far wider than its numbers, and whose class follows from one column.
fn wide_table() -> Examples {
    let mut chance = PublicRandom::of(7, 1);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..3_000 {
        let [a, b] = [chance.normal(), chance.normal()];
        values.extend([-0.9 + 0.02 * a, 0.5 + 0.02 * b]);
        labels.push(u32::from(a > 0.0));
    }
    let targets = Targets::Classes { labels, names: vec!["low".into(), "high".into()] };
    Examples::numbers(&[2], values, targets).unwrap()
}

/// Without a preparation, half of 60 networks had an accuracy of 0.52 or less, and the best one had 0.89.
#[test]
fn columns_within_far_too_wide_bounds_are_put_right_by_a_preparation() {
    let examples = wide_table();
    let trained = |preparation: Preparation| {
        let mut recipe = Recipe { steps: Some(60), preparation: Some(preparation), ..Recipe::default() };
        (recipe.privacy.epsilon, recipe.privacy.delta) = (Some(2.0), Some(1e-5));
        let mut model = Architecture { name: Some("logistic".into()), ..Architecture::default() };
        let facts = PublicFacts { records: Some(3_000), classes: Some(2) };
        let subject = Subject { shape: &[2], are_features: false, facts, schema: None };
        let mut ledger =
            InMemory::ledger("table", Epsilon::new(2.0).unwrap(), Delta::new(1e-5).unwrap()).unwrap();
        let method = Prepared::plan(&mut recipe, &mut model, &subject).unwrap();
        let model = method.train(&examples, &mut ledger).unwrap();
        model.evaluate(&examples).accuracy().unwrap()
    };
    for preparation in [
        Preparation::Standardize { noise_multiplier: None },
        Preparation::Quantiles { noise_multiplier: None },
    ] {
        let accuracy = trained(preparation);
        assert!(accuracy > 0.9, "{preparation:?}: {accuracy}");
    }
}

/// The features of digits, stopped within the preparation and later.
#[test]
fn runs_with_prepared_columns_stop_and_go_on_and_keep_their_transform() {
    for (preparation, kind) in [
        (Preparation::Standardize { noise_multiplier: None }, "standardize"),
        (Preparation::Quantiles { noise_multiplier: None }, "quantiles"),
    ] {
        for stop_after in [1, 2, 40] {
            let fitted = fit(asked(preparation), stop_after);
            let model = fitted.model.as_ref().unwrap();
            assert!(fitted.spent <= 3.0 && fitted.spent > 2.9, "{}", fitted.spent);
            assert!(fitted.settings.contains(&format!("kind = \"{kind}\"")), "{}", fitted.settings);
            assert!(accuracy(model) > 0.8, "{} after {stop_after}", accuracy(model));
            let again = Model::restore(&model.save().unwrap()).unwrap();
            assert_eq!(again.digest().unwrap(), model.digest().unwrap());
            let [kept, saved] = [&again, model].map(|model| &model.predictor.network().unwrap().preparation);
            assert!(kept == saved && kept.is_some());
        }
    }
}

/// Pictures have their channels first, and the sums of a preparation have them last.
#[test]
fn a_channel_of_pictures_is_transformed_by_its_own_numbers() {
    let mut chance = PublicRandom::of(8, 3);
    let (records, plane) = (2_000, 4);
    // The three channels have different means and spreads, in every place.
    let values = (0..records).flat_map(|_| {
        let mut channel = |mean: f32, spread: f32| [(); 4].map(|()| mean + spread * chance.normal());
        [channel(-0.6, 0.1), channel(0.1, 0.25), channel(0.6, 0.1)].concat()
    });
    let targets = Targets::Classes { labels: vec![0; records], names: vec!["a".into(), "b".into()] };
    let examples = Examples::numbers(&[3, 2, 2], values.collect(), targets).unwrap();
    let mut recipe = Recipe { steps: Some(1), ..Recipe::default() };
    recipe.preparation = Some(Preparation::Standardize { noise_multiplier: Some(1.0) });
    (recipe.privacy.epsilon, recipe.privacy.delta) = (Some(20.0), Some(1e-5));
    let mut model = Architecture { name: Some("logistic".into()), ..Architecture::default() };
    let facts = PublicFacts { records: Some(records as u64), classes: Some(2) };
    let subject = Subject { shape: &[3, 2, 2], are_features: false, facts, schema: None };
    let method = Prepared::plan(&mut recipe, &mut model, &subject).unwrap();
    let mut ledger =
        InMemory::ledger("pictures", Epsilon::new(20.0).unwrap(), Delta::new(1e-5).unwrap()).unwrap();
    let model = method.train(&examples, &mut ledger).unwrap();
    let prepared = model.network().unwrap().preparation.as_ref().unwrap().apply(&examples).unwrap();
    assert_eq!(prepared.shape(), [3, 2, 2]);
    let (mut row, mut means) = (vec![0.0; 3 * plane], vec![0.0; 3 * plane]);
    let mut squares = means.clone();
    for record in 0..records {
        prepared.gather(record, &mut row);
        for (place, x) in row.iter().enumerate() {
            means[place] += x / records as f32;
            squares[place] += x * x / records as f32;
        }
    }
    for (mean, square) in means.iter().zip(&squares) {
        assert!(mean.abs() < 0.3 && (0.3..2.0).contains(square), "{means:?} {squares:?}");
    }
}

fn planned(mut recipe: Recipe, width: usize) -> Result<(Prepared, Recipe), Error> {
    let mut model = Architecture { name: Some("mlp".into()), ..Architecture::default() };
    let facts = PublicFacts { records: Some(60_000), classes: Some(10) };
    let subject = Subject { shape: &[width], are_features: false, facts, schema: None };
    recipe.privacy.delta = Some(1e-5);
    let planned = Prepared::plan(&mut recipe, &mut model, &subject)?;
    let again = Prepared::plan(&mut recipe.clone(), &mut model, &subject)?;
    assert_eq!(again.mechanism(), planned.mechanism());
    Ok((planned, recipe))
}

fn recipe(noise: f64, preparation: Option<f64>) -> Recipe {
    let mut recipe = Recipe { steps: Some(2_000), ..Recipe::default() };
    (recipe.sampling.rate, recipe.privacy.noise_multiplier) = (Some(0.01), Some(noise));
    recipe.preparation = Some(Preparation::Components { count: 10, noise_multiplier: preparation });
    recipe
}

/// Abadi et al. 2016 with 2,000 steps: the ε of the whole includes that of the components.
#[test]
fn the_cost_is_that_of_all_runs_together() {
    let (planned, _) = planned(recipe(4.0, Some(7.0)), 50).unwrap();
    let noise = |z: f64| NoiseMultiplier::new(z).unwrap();
    let rate = quell_privacy::units::SamplingRate::new(0.01).unwrap();
    // Twelve releases with noise 7·√12 cost as much as one with noise 7.
    let whole = Event::Composed(vec![Event::gaussian(noise(7.0)), Event::dp_sgd(noise(4.0), rate, 2_000)]);
    let (neighbors, delta) = (Neighbors::AddRemove, Delta::new(1e-5).unwrap());
    let truth = Pld::default().epsilon(&whole, neighbors, delta).unwrap();
    let stated = planned.cost().epsilon;
    assert!(stated.upper >= truth.lower && stated.upper <= 1.01 * truth.upper, "{stated:?} {truth:?}");
    let steps = Pld::default().epsilon(&Event::dp_sgd(noise(4.0), rate, 2_000), neighbors, delta).unwrap();
    assert!(stated.lower > steps.upper, "the preparation costs something: {stated:?} {steps:?}");
    let (mechanism, runs) = planned.mechanism();
    assert_eq!((runs, mechanism.at_run(11).descent.dimension), (2_012, 50 * 51 / 2));
}

#[test]
fn settings_that_do_not_fit_a_preparation_are_refused() {
    let named = |recipe: Recipe, width: usize| match planned(recipe, width) {
        Err(Error::Setting { name, .. }) => name,
        other => panic!("{:?}", other.map(|(_, recipe)| recipe)),
    };
    let mut shuffled = recipe(4.0, Some(7.0));
    shuffled.sampling.by = Sampler::Shuffled;
    assert_eq!(named(shuffled, 50), "sampling");
    let mut augmented = recipe(4.0, Some(7.0));
    augmented.augmentation = Some(Augmentation { versions: 2, shift: 1, mirror: false });
    assert_eq!(named(augmented, 50), "augmentation");
    assert_eq!(named(recipe(4.0, Some(7.0)), 9), "components");
    let mut dear = recipe(4.0, Some(0.5));
    (dear.privacy.epsilon, dear.privacy.noise_multiplier) = (Some(1.0), None);
    assert_eq!(named(dear, 50), "noise multiplier of the preparation");
    // The steps of a preparation of columns need a column of numbers.
    let mut without_numbers = recipe(4.0, Some(7.0));
    without_numbers.preparation = Some(Preparation::Quantiles { noise_multiplier: Some(7.0) });
    let schema = Schema::parse("[[column]]\nname = 'a'\ncategories = ['x', 'y']\n").unwrap();
    let facts = PublicFacts { records: Some(1_000), classes: Some(2) };
    let subject = Subject { shape: &[2], are_features: false, facts, schema: Some(&schema) };
    let refused = Prepared::plan(&mut without_numbers, &mut Architecture::default(), &subject);
    assert!(matches!(refused.err(), Some(Error::Setting { name: "preparation", .. })));
    // Without ε, nothing says how much noise the preparation has.
    assert!(matches!(planned(recipe(4.0, None), 50), Err(Error::Missing { .. })));
    // DP-SGD alone does not ignore a preparation.
    let network = quell::network::named("logistic", &[50], 2).unwrap();
    let facts = PublicFacts { records: Some(1_000), classes: Some(2) };
    assert!(recipe(4.0, Some(7.0)).plan(&facts, &network).is_err());
    let facts = PublicFacts { records: Some(1_000), classes: Some(2) };
    let subject = Subject { shape: &[50], are_features: false, facts, schema: None };
    let plain = DpSgd::plan(&mut recipe(4.0, Some(7.0)), &mut Architecture::default(), &subject);
    assert!(matches!(plain.err(), Some(Error::Setting { name: "preparation", .. })));
}
