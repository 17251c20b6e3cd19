//! What a run chooses where settings are missing: model, features, and the settings of DP-SGD.

use std::fmt::Write;

use quell::{
    Error,
    data::Schema,
    features::Features,
    learner::{
        PublicFacts,
        average::Average,
        dp_sgd::{Clip, Plan, Recipe},
        optimizer::Optimizer,
        prepared::Preparation,
    },
    network,
    random::PublicRandom,
    run::{Configuration, Driver, Job, Learner, train},
};

use crate::{linear::Fit, made, scratch::Scratch};

/// Completes the settings of a run.
struct Resolve;

impl Driver for Resolve {
    type Output = String;

    fn drive<J: Job>(self, job: &J) -> String {
        job.settings().unwrap().toml
    }
}

fn resolved(asked: Configuration) -> Configuration {
    Configuration::parse(&train(asked, Resolve).unwrap()).unwrap()
}

fn plan(text: &str, model: &str, input: &[usize], records: u64, classes: Option<usize>) -> Plan {
    let recipe: Recipe = toml::from_str(text).unwrap();
    let network = network::named(model, input, classes.unwrap_or(1)).unwrap();
    recipe.plan(&PublicFacts { records: Some(records), classes }, &network).unwrap()
}

/// How far the noise of all steps together moves a weight.
fn distance(plan: &Plan) -> f64 {
    let Optimizer::Momentum { momentum, .. } = plan.optimizer else { panic!("{:?}", plan.optimizer) };
    let noise = plan.descent.noise_multiplier.get() * plan.descent.clipping.norm() / plan.expected_batch;
    plan.schedule.learning_rate / (1.0 - momentum) * (plan.steps() as f64).sqrt() * noise
}

#[test]
fn the_noise_of_all_steps_moves_a_weight_by_a_fixed_distance() {
    for (model, input, expected) in [
        ("logistic", [7, 7, 81].as_slice(), 4.0 / 3969_f64.sqrt()),
        ("cnn-tanh", &[28, 28, 1], 0.1),
        ("mlp-small", &[16], 0.25),
    ] {
        for (epsilon, records) in [(0.5, 10_000), (1.0, 10_000), (1.0, 40_000)] {
            let asked = format!("[privacy]\nepsilon = {epsilon}\ndelta = 1e-5");
            let found = distance(&plan(&asked, model, input, records, Some(10)));
            // The learning rate has two digits.
            assert!((found / expected - 1.0).abs() < 0.06, "{model} at ε = {epsilon}: {found}");
        }
    }
}

#[test]
fn the_average_follows_from_the_number_of_steps() {
    for (steps, expected) in [
        (10, Average::None),
        (100, Average::Exponential { decay: 0.9 }),
        (1000, Average::Exponential { decay: 0.99 }),
    ] {
        let asked = format!("steps = {steps}\n[privacy]\nepsilon = 1.0");
        assert_eq!(plan(&asked, "logistic", &[4], 1000, Some(2)).average, expected);
    }
}

#[test]
fn settings_that_are_given_stay_as_they_are() {
    let asked = "steps = 50\naverage = 'none'\n[privacy]\nepsilon = 1.0\n[sampling]\nrate = 0.3\n\
                 [clipping.flat]\nnorm = 3.0\n[schedule]\nlearning_rate = 0.7";
    let plan = plan(asked, "cnn-tanh", &[28, 28, 1], 1000, Some(10));
    assert_eq!((plan.steps(), plan.average), (50, Average::None));
    assert_eq!((plan.expected_batch, plan.schedule.learning_rate), (300.0, 0.7));
    assert_eq!(plan.clipping, Clip::Flat { norm: 3.0 });
}

#[test]
fn gradients_of_pictures_are_clipped_more_than_those_of_tables() {
    let asked = "[privacy]\nepsilon = 1.0";
    assert_eq!(plan(asked, "cnn", &[28, 28, 1], 1000, Some(10)).descent.clipping.norm(), 0.1);
    assert_eq!(plan(asked, "mlp", &[28], 1000, Some(10)).descent.clipping.norm(), 1.0);
}

#[test]
fn little_noise_does_not_make_steps_longer_without_end() {
    let asked = "[privacy]\nepsilon = 20.0\ndelta = 1e-5";
    for (classes, model, most) in [(Some(2), "mlp", 1.0), (None, "mlp", 0.02), (None, "mlp-small", 0.32)] {
        let rate = plan(asked, model, &[10], 100_000, classes).schedule.learning_rate;
        assert!(rate <= most, "{model}: {rate}");
    }
}

/// Pictures of two classes: left or right half bright.
fn pictures() -> made::Folder {
    let (mut images, mut labels) = (Vec::new(), Vec::new());
    for number in 0..200_u8 {
        let is_right = number % 2 == 1;
        let bright = |pixel: u8| if (pixel % 8 >= 4) == is_right { 200 } else { number % 50 };
        images.extend((0..64).map(bright));
        labels.push(u8::from(is_right));
    }
    made::Folder::new()
        .with("train-images-idx3-ubyte", made::idx(8, &[200, 8, 8], &images))
        .with("train-labels-idx1-ubyte", made::idx(8, &[200], &labels))
}

fn of_pictures(folder: &made::Folder) -> Configuration {
    let mut asked = Configuration::default();
    asked.data.path = Some(folder.path().to_owned());
    asked.data.classes = Some(vec!["left".into(), "right".into()]);
    asked.training.privacy.epsilon = Some(1.0);
    asked.training.sampling.records = Some(200);
    asked
}

#[test]
fn pictures_get_a_linear_model_of_scattering_features() {
    let folder = pictures();
    let found = resolved(of_pictures(&folder));
    assert_eq!((found.features.clone(), found.model.layers.len()), (Some(Features::scattering()), 1));
    // The settings that a run writes yield the same run again.
    assert_eq!(resolved(found.clone()), found);
}

#[test]
fn features_or_a_model_in_the_settings_decide() {
    let folder = pictures();
    let mut raw = of_pictures(&folder);
    raw.features = Some(Features::default());
    let mut named = of_pictures(&folder);
    named.model.name = Some("digits".into());
    for asked in [raw, named] {
        let found = resolved(asked);
        assert!(found.computed_features().is_raw() && found.model.layers.len() > 1, "{found:?}");
        assert_eq!(resolved(found.clone()), found);
    }
}

#[test]
fn so_many_pictures_that_their_features_fill_the_memory_stay_raw() {
    let folder = pictures();
    let mut asked = of_pictures(&folder);
    asked.training.sampling.records = Some(1 << 23);
    assert!(resolved(asked).computed_features().is_raw());
}

const SCHEMA: &str = "[[column]]\nname = 'a'\nbounds = [-3, 3]\n[[column]]\nname = 'b'\nbounds = [-3, 3]";

/// Rows with two numbers and a target.
fn table(label: &str, records: u64, target: impl Fn(f32, f32) -> String) -> (Scratch, Configuration) {
    let mut chance = PublicRandom::of(3, records);
    let mut text = String::from("a,b,y\n");
    for _ in 0..records {
        let [a, b] = [(); 2].map(|()| chance.normal());
        writeln!(text, "{a},{b},{}", target(a, b)).unwrap();
    }
    let file = Scratch::new("defaults.csv", text);
    let mut asked = Configuration::default();
    asked.data.path = Some(file.path().to_owned());
    asked.data.schema = Some(Schema::parse(&format!("[label]\ncolumn = 'y'\n{label}\n{SCHEMA}")).unwrap());
    (asked.training.privacy.epsilon, asked.training.privacy.delta) = (Some(3.0), Some(1e-5));
    asked.training.sampling.records = Some(records);
    (file, asked)
}

const CLASSES: &str = "classes = ['no', 'yes']";

fn quadrant(a: f32, b: f32) -> String {
    if a * b > 0.0 { "yes" } else { "no" }.into()
}

#[test]
fn a_large_table_of_classes_gets_a_network_on_standardised_columns() {
    let (_file, asked) = table(CLASSES, 3000, quadrant);
    let found = resolved(asked.clone());
    assert_eq!((found.learner, found.model.name.as_deref()), (Some(Learner::DpSgd), Some("mlp-small")));
    assert!(matches!(found.training.preparation, Some(Preparation::Standardize { .. })), "{found:?}");
    assert_eq!(found.training.clipping, Some(Clip::Flat { norm: 5.0 }));
    assert_eq!(resolved(found.clone()), found);

    // Few records for the noise, a named model or a number as the target: no network.
    let mut small = asked.clone();
    small.training.sampling.records = Some(300);
    assert_eq!(resolved(small).model.name.as_deref(), Some("additive"));
    let mut named = asked.clone();
    named.model.name = Some("additive".into());
    assert_eq!(resolved(named).learner, Some(Learner::Glm));
    let (_file, of_numbers) = table("bounds = [-9, 9]", 3000, |a, b| (a * b).to_string());
    assert_eq!(resolved(of_numbers).model.name.as_deref(), Some("additive"));
}

#[test]
fn the_default_of_a_large_table_learns_what_columns_say_together() {
    let (_file, asked) = table(CLASSES, 3000, quadrant);
    let data = asked.data.clone();
    let model = train(asked, Fit { stop_after: u64::MAX }).unwrap().unwrap().model.take().unwrap();
    let accuracy = model.evaluate(&data.open().unwrap().train).accuracy().unwrap();
    assert!(accuracy > 0.85, "{accuracy}");
}

#[test]
fn columns_stay_on_their_declared_bounds_if_a_setting_says_so() {
    let (_file, mut asked) = table(CLASSES, 3000, quadrant);
    asked.model.name = Some("mlp".into());
    assert!(resolved(asked.clone()).training.preparation.is_some());
    let mut none = asked.clone();
    none.training.preparation = Some(Preparation::None {});
    let found = resolved(none);
    assert_eq!(found.training.preparation, None);
    assert_eq!(resolved(found.clone()), found);
    // A learning rate was found for numbers on some scale.
    asked.training.schedule = toml::from_str::<Recipe>("[schedule]\nlearning_rate = 0.1").unwrap().schedule;
    assert_eq!(resolved(asked).training.preparation, None);
}

/// Error of a network of 1000 units on a number with a spread of 3, and whether the run has a remark.
fn of_numbers(learning_rate: Option<f64>) -> Result<(f64, bool), Error> {
    let (_file, mut asked) = table("bounds = [-10, 10]", 3000, |a, b| (3.0 * (a + b)).to_string());
    asked.model.name = Some("mlp".into());
    if let Some(rate) = learning_rate {
        asked.training.schedule =
            toml::from_str::<Recipe>(&format!("[schedule]\nlearning_rate = {rate}")).unwrap().schedule;
    }
    let data = asked.data.clone();
    let mut fitted = train(asked, Fit { stop_after: u64::MAX })??;
    let evaluation = fitted.model.take().unwrap().evaluate(&data.open()?.train);
    let quell::learner::Evaluation::Numbers { error, .. } = evaluation else { panic!("{evaluation:?}") };
    Ok((error, !fitted.remarks.is_empty()))
}

#[test]
fn a_network_of_numbers_settles_without_a_setting() {
    let (error, has_remark) = of_numbers(None).unwrap();
    assert!(error < 1.5 && !has_remark, "{error}");
}

#[test]
fn a_learning_rate_with_which_a_network_diverges_is_said() {
    let (error, has_remark) = of_numbers(Some(5.0)).unwrap();
    assert!(error > 3.0 && has_remark, "{error} {has_remark}");
}
