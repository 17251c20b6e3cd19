//! Networks on privately found components: one plan, one charge.

use quell::{
    Error,
    data::digits,
    learner::{
        Augmentation, Method, PublicFacts, Subject,
        dp_sgd::{DpSgd, Recipe, Sampler},
        prepared::{Preparation, Prepared},
    },
    network::Architecture,
    run::{Configuration, Model, train},
};
use quell_privacy::{
    Event, Neighbors,
    accounting::Pld,
    mechanism::Mechanism,
    units::{Delta, NoiseMultiplier},
};

use crate::linear::{Fit, Fitted};

/// The digits on so many components.
fn asked(count: usize, noise_multiplier: Option<f64>) -> Configuration {
    let mut asked = Configuration::digits().unwrap();
    asked.budget = None;
    asked.training.preparation = Some(Preparation::Components { count, noise_multiplier });
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
        let fitted = fit(asked(20, None), stop_after);
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
