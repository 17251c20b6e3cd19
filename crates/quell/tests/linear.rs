//! Linear models on tables: every family, every algorithm, and tables that are hard.

use std::{fmt::Write, path::PathBuf};

use quell::{
    Error,
    data::{self, Options, Schema},
    learner::{
        self, Control, Evaluation, Method, Prediction, PublicFacts, Snapshot, Subject,
        glm::{Algorithm, Family, FrankWolfe, Glm, Minimized, Recipe},
        schedule::Schedule,
    },
    network::Architecture,
    random::PublicRandom,
    run::{Configuration, Driver, Folder, Job, Learner, Model, train},
};
use quell_ledger::{InMemory, Location, Store};
use quell_privacy::{
    Neighbors,
    ledger::{Budget, Composition, Ledger, Terms, Unit},
    mechanism::{HiddenDescent, ObjectivePerturbation, OutputPerturbation, PosteriorSample},
    units::{Delta, Epsilon},
};

use crate::scratch::Scratch;

/// A table and its schema.
struct Made {
    table: Scratch,
    schema: Schema,
    records: u64,
}

const COLUMNS: &str = "[[column]]\nname = 'a'\nbounds = [0, 100]\n[[column]]\nname = 'b'\nbounds = [-5, 5]\n\
     [[column]]\nname = 'c'\ncategories = ['red', 'blue']\nunknown = true\n";

/// Rows of three features and a target, which `target` computes from two of them in [-1, 1] and a colour.
fn made(
    label: &str,
    records: u64,
    mut target: impl FnMut(f64, f64, bool, &mut PublicRandom) -> String,
) -> Made {
    let mut chance = PublicRandom::of(1, records);
    let mut text = String::from("a,b,c,y\n");
    for _ in 0..records {
        let [a, b] = [(); 2].map(|()| f64::from(chance.between(-1.0, 1.0)));
        let red = chance.below(2) == 0;
        let y = target(a, b, red, &mut chance);
        let colour = if red { "red" } else { "blue" };
        writeln!(text, "{},{},{colour},{y}", 50.0 + 50.0 * a, 5.0 * b).unwrap();
    }
    let schema = Schema::parse(&format!("[label]\ncolumn = 'y'\n{label}\n{COLUMNS}")).unwrap();
    Made { table: Scratch::new("linear.csv", text), schema, records }
}

fn classes(records: u64) -> Made {
    made("classes = ['no', 'yes']", records, |a, b, red, chance| {
        let score = 3.0 * a - 2.0 * b + if red { 0.8 } else { -0.8 } + 0.3 * f64::from(chance.normal());
        if score > 0.0 { "yes" } else { "no" }.into()
    })
}

fn numbers(records: u64) -> Made {
    made("bounds = [0, 10]", records, |a, b, red, chance| {
        let colour = if red { 0.5 } else { -0.5 };
        (5.0 + 2.0 * a - b + colour + 0.2 * f64::from(chance.normal())).to_string()
    })
}

impl Made {
    fn configuration(&self, epsilon: f64) -> Configuration {
        let mut asked = Configuration::default();
        asked.data.path = Some(self.table.path().to_owned());
        asked.data.schema = Some(self.schema.clone());
        asked.training.privacy.epsilon = Some(epsilon);
        asked.training.sampling.records = Some(self.records);
        asked
    }

    fn additive(&self, epsilon: f64) -> Configuration {
        let mut asked = self.configuration(epsilon);
        asked.model.name = Some("additive".into());
        asked
    }

    fn with(&self, algorithm: Algorithm, epsilon: f64) -> Configuration {
        let mut asked = self.configuration(epsilon);
        (asked.learner, asked.glm.method) = (Some(Learner::Glm), algorithm);
        asked
    }

    fn examples(&self) -> quell::data::Examples {
        let options = Options { schema: Some(self.schema.clone()), ..Options::default() };
        data::open(self.table.path(), &options).unwrap().train
    }

    /// The accuracy of a model, or R² for numbers.
    fn score(&self, model: &Model) -> f64 {
        let examples = self.examples();
        match model.predictor.evaluate(&examples) {
            Evaluation::Numbers { error, count, .. } => {
                let values: Vec<f64> =
                    (0..examples.len()).map(|example| examples.number(example).unwrap().into()).collect();
                let mean = values.iter().sum::<f64>() / count as f64;
                let variance = values.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / count as f64;
                1.0 - error * error / variance
            }
            evaluation => evaluation.accuracy().unwrap(),
        }
    }
}

/// Runs a job to its end, or up to a step, with its own ledger and folder.
pub(crate) struct Fit {
    pub(crate) stop_after: u64,
}

pub(crate) struct Fitted {
    folder: PathBuf,
    pub(crate) model: Option<Model>,
    pub(crate) spent: f64,
    pub(crate) settings: String,
    /// What the run remarked before and after.
    pub(crate) remarks: Vec<String>,
}

impl Driver for Fit {
    type Output = Result<Fitted, Error>;

    fn drive<J: Job>(self, job: &J) -> Self::Output {
        let path = Scratch::new("run", "").path().with_extension("folder");
        let folder = Folder::create(&path)?;
        let store = Store::create(Location::File(path.join("ledger.db"))).unwrap();
        let terms = job.terms()?;
        let mut ledger = Ledger::create(store.book(&terms.dataset).unwrap(), terms)?;
        let settings = format!("{} {}", job.settings()?.toml, job.guarantee());
        let stop = self.stop_after;
        let mut last = job.go(&mut ledger, &folder, &mut |progress| {
            if progress.done >= stop { Control::Stop } else { Control::Continue }
        })?;
        assert_eq!(last.is_finished, stop == u64::MAX);
        if !last.is_finished {
            last = job.go(&mut ledger, &folder, &mut |_| Control::Continue)?;
            assert!(last.is_finished, "{last:?}");
        }
        let state = ledger.state()?;
        assert_eq!(state.charges().len(), 1);
        let spent = state.spent().epsilon;
        let remarks = [job.remarks(), last.remarks].concat();
        Ok(Fitted { model: Some(folder.model()?), folder: path, spent, settings, remarks })
    }
}

impl Drop for Fitted {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn fit(configuration: Configuration) -> Result<Fitted, Error> {
    train(configuration, Fit { stop_after: u64::MAX })?
}

/// All algorithms but those that sample: `learn::bayes` tests them.
fn algorithms() -> impl Iterator<Item = Algorithm> {
    let samples = |algorithm: &Algorithm| matches!(algorithm, Algorithm::OnePosterior | Algorithm::Sgld);
    Algorithm::ALL.into_iter().filter(move |algorithm| !samples(algorithm))
}

fn model(configuration: Configuration) -> Model {
    fit(configuration).unwrap().model.take().unwrap()
}

#[test]
fn a_table_needs_no_setting_but_epsilon() {
    let (classes, numbers) = (classes(3_000), numbers(3_000));
    for (made, name, least) in [(&classes, "mlp-small", 0.9), (&numbers, "additive", 0.85)] {
        let found = model(made.configuration(3.0));
        assert_eq!(found.configuration.model.name.as_deref(), Some(name));
        assert!(made.score(&found) > least, "{}", made.score(&found));
    }
}

/// A linear model is no better than the larger class, or the mean.
#[test]
fn an_additive_model_learns_curves() {
    let classes = made("classes = ['inside', 'outside']", 3_000, |a, _, _, _| {
        if a.abs() < 0.5 { "inside" } else { "outside" }.into()
    });
    let numbers = made("bounds = [0, 2]", 3_000, |_, b, _, _| (b * b).to_string());
    // One threshold is right for at most three quarters of the records, and no line explains b².
    for (made, linear, least, most) in [(&classes, "logistic", 0.9, 0.78), (&numbers, "linear", 0.8, 0.1)] {
        let additive = made.score(&model(made.additive(10.0)));
        let mut asked = made.configuration(10.0);
        asked.model.name = Some(linear.into());
        let straight = made.score(&model(asked));
        assert!(additive > least && straight < most, "{additive} {straight}");
    }
    // Only the method that standardises has curves, and only a few waves are sensible.
    let mut asked = classes.with(Algorithm::Newton, 1.0);
    asked.model.name = Some("additive".into());
    let refusal = fit(asked).err().unwrap().to_string();
    assert!(refusal.starts_with("method is newton, and the model is additive"), "{refusal}");
    let mut asked = classes.configuration(1.0);
    asked.glm.waves = Some(9);
    assert_eq!(fit(asked).err().unwrap().to_string(), "waves is 9, expected a number in [0, 8]");
    let mut asked = classes.configuration(1.0);
    (asked.model.name, asked.glm.waves) = (Some("logistic".into()), Some(5));
    let refusal = fit(asked).err().unwrap().to_string();
    assert_eq!(refusal, "waves is 5, and the model is logistic, expected 0, or the model additive or forest");
}

/// The curve of the column that decides has its shape, in the units of the column and of the target.
#[test]
fn the_curves_of_a_model_are_those_of_the_data() {
    let numbers = made("bounds = [0, 2]", 3_000, |_, b, _, _| (b * b).to_string());
    let fitted = model(numbers.configuration(10.0));
    let curves = fitted.curves().unwrap().unwrap();
    assert_eq!((curves.score.as_str(), curves.are_shortened), ("the predicted y", false));
    let [a, b, c] = curves.columns.as_slice() else { panic!("{curves:?}") };
    assert!(b.spread > 0.7 && b.spread < 1.3 && a.spread < 0.3 && c.spread < 0.2, "{curves:?}");
    assert!(c.unknown.is_some() && a.unknown.is_none());
    let at = |x: f64| b.values.at(x).unwrap()[0];
    assert!((at(-5.0) - at(0.0) - 1.0).abs() < 0.25 && (at(5.0) - at(0.0) - 1.0).abs() < 0.25, "{b:?}");
    // A network mixes columns.
    let mut asked = numbers.configuration(10.0);
    (asked.model.name, asked.training.steps) = (Some("mlp-tanh".into()), Some(2));
    assert_eq!(model(asked).curves().unwrap(), None);
}

/// Labels that are written otherwise than the classes leave no record. Nothing but released sums may say so.
#[test]
fn a_run_on_no_record_says_that_it_released_noise() {
    let (classes, mut other) = (classes(1_000), classes(1_000));
    other.schema.label.as_mut().unwrap().classes = Some(vec!["No".into(), "Yes".into()]);
    for name in ["additive", "logistic", "mlp-small", "tree", "naive-bayes"] {
        for (made, is_noise) in [(&classes, false), (&other, true)] {
            let mut asked = made.configuration(3.0);
            asked.model.name = Some(name.into());
            let said = fit(asked).unwrap().remarks.join("\n");
            assert_eq!(said.contains("cannot be told from noise"), is_noise, "{name}: {said}");
        }
    }
}

/// A network may predict any number, and the target has bounds.
#[test]
fn predictions_of_networks_are_within_the_bounds_of_the_target() {
    let made = numbers(200);
    let mut asked = made.configuration(1.0);
    asked.model.name = Some("mlp-tanh".into());
    asked.training.steps = Some(3);
    asked.training.schedule = Some(Schedule::constant(1e4));
    let found = model(asked);
    let network = found.predictor.network().unwrap();
    let raw = learner::scores(&network.network, &network.weights, &made.examples(), network.loss);
    assert!(raw.iter().any(|numbers| numbers[0].abs() > 2.0), "the network leaves the bounds");
    let read = Model::restore(&found.save().unwrap()).unwrap();
    for prediction in read.predict(&made.examples()).unwrap() {
        let Some(Prediction::Number(number)) = prediction else { panic!("{prediction:?}") };
        assert!((0.0..=10.0).contains(&number), "{number}");
    }
    assert!(read.evaluate(&made.examples()).error().unwrap() <= 10.0);
}

/// Weights shrink with each step by the learning rate times the penalty, so that product is limited.
#[test]
fn a_large_penalty_does_not_make_the_weights_infinite() {
    for (made, least) in [(&classes(300), 0.4), (&numbers(300), -0.5)] {
        for penalty in [1.0, 1e3] {
            let mut asked = made.configuration(1.0);
            asked.glm.regularization = Some(penalty);
            assert!(made.score(&model(asked)) > least);
        }
    }
}

/// Remarks depend on public facts, so they can be read before anything is paid.
#[test]
fn remarks_say_what_noise_does_and_which_model_is_fitted() {
    struct Remarks;
    impl Driver for Remarks {
        type Output = String;

        fn drive<J: Job>(self, job: &J) -> String {
            job.remarks().join("\n")
        }
    }
    let made = classes(300);
    let said = |asked: Configuration| train(asked, Remarks).unwrap();
    assert!(said(made.configuration(0.01)).contains("will be mostly noise"));
    assert!(said(made.configuration(0.3)).contains("each number gets a straight line"));
    assert_eq!(said(made.configuration(10.0)), "");
    let newton = said(made.with(Algorithm::Newton, 10.0));
    assert_eq!(newton, "the model is logistic: the method newton fits no additive model");
    let hidden = said(made.with(Algorithm::HiddenState, 10.0));
    assert_eq!(hidden, "the model is logistic: the method hidden-state fits no additive model");
    let mut named = made.with(Algorithm::Newton, 10.0);
    named.model.name = Some("logistic".into());
    assert_eq!(said(named), "");
    // The settings in a report say how many waves there are, and why there are none.
    let description = model(made.configuration(0.3)).description().unwrap();
    let waves = description.settings.iter().find(|(name, _)| *name == "waves for each number").unwrap();
    assert!(waves.1.as_str().unwrap().starts_with("0: the noise is too large"), "{waves:?}");
}

#[test]
fn curves_stay_close_to_lines_where_records_are_few_for_each_number() {
    // Two columns are numbers. With so large an ε, noise is no reason for lines.
    let waves = |name: &str, records, given| {
        let made = classes(records);
        let mut asked = made.configuration(30.0);
        (asked.model.name, asked.glm.waves) = (Some(name.into()), given);
        model(asked).configuration.glm.waves
    };
    for name in ["additive", "forest"] {
        assert_eq!((waves(name, 199, None), waves(name, 200, None)), (Some(2), Some(8)), "{name}");
    }
    assert_eq!(waves("additive", 199, Some(8)), Some(8));
}

/// All numbers that a run writes about errors have the units of the target.
#[test]
fn errors_in_the_folder_of_a_run_have_the_units_of_the_target() {
    let (made, test) = (numbers(300), numbers(40));
    let mut asked = made.configuration(5.0);
    asked.data.test = Some(test.table.path().to_owned());
    let fitted = fit(asked).unwrap();
    let metrics = Folder::open(&fitted.folder).unwrap().metrics().unwrap();
    let expected = fitted.model.as_ref().unwrap().evaluate(&test.examples());
    assert_eq!(metrics.evaluation, Some(expected));
}

/// The features and the number of classes are public, so a mistake costs nothing.
#[test]
fn data_of_another_shape_than_the_plan_is_refused_before_payment() {
    fn check<M: Method<Recipe = Recipe>>() {
        let (made, other) = (classes(50), numbers(50));
        let examples = made.examples();
        let mut recipe = Recipe { records: Some(50), ..Recipe::default() };
        (recipe.privacy.epsilon, recipe.privacy.delta) = (Some(1.0), Some(1e-3));
        let facts = PublicFacts { records: None, classes: Some(2) };
        let subject = Subject { shape: &[5], are_features: false, facts, schema: Some(&made.schema) };
        let method = M::plan(&mut recipe, &mut Architecture::default(), &subject).unwrap();
        let (epsilon, delta) = (Epsilon::new(1.0).unwrap(), Delta::new(1e-3).unwrap());
        let mut ledger = InMemory::ledger("linear", epsilon, delta).unwrap();
        let narrow =
            quell::data::Examples::numbers(&[4], vec![0.0; 200], examples.targets().clone()).unwrap();
        for wrong in [&other.examples(), &narrow] {
            let refusal = method.train(wrong, &mut ledger).unwrap_err();
            assert!(matches!(refusal, Error::Setting { name: "the data", .. }), "{refusal}");
        }
        assert_eq!(ledger.state().unwrap().charges().len(), 0);
        method.train(&examples, &mut ledger).unwrap();
    }
    check::<Glm>();
    check::<Minimized<OutputPerturbation>>();
    check::<FrankWolfe>();
}

#[test]
fn each_type_plans_its_own_method() {
    let made = classes(50);
    let facts = PublicFacts { records: Some(50), classes: Some(2) };
    let subject = Subject { shape: &[5], are_features: false, facts, schema: Some(&made.schema) };
    let recipe = |method: Algorithm| {
        let mut recipe = Recipe { method, ..Recipe::default() };
        recipe.privacy.epsilon = Some(1.0);
        recipe
    };
    let mut own = recipe(Algorithm::Standardized);
    FrankWolfe::plan(&mut own, &mut Architecture::default(), &subject).unwrap();
    assert_eq!(own.method, Algorithm::FrankWolfe);
    let mut own = recipe(Algorithm::Newton);
    Minimized::<ObjectivePerturbation>::plan(&mut own, &mut Architecture::default(), &subject).unwrap();
    assert_eq!(own.method, Algorithm::ObjectivePerturbation);
    let mut other = recipe(Algorithm::OutputPerturbation);
    let refusal = Glm::plan(&mut other, &mut Architecture::default(), &subject).err().unwrap();
    assert!(matches!(refusal, Error::Setting { name: "method", .. }), "{refusal}");
}

/// The class depends on two columns together, so an additive model is right in three of four quadrants.
#[test]
fn a_forest_learns_what_columns_say_together() {
    let classes = made("classes = ['same', 'different']", 4_000, |a, b, _, _| {
        if (a > 0.0) == (b > 0.0) { "same" } else { "different" }.into()
    });
    let numbers =
        made("bounds = [0, 2]", 4_000, |a, _, red, _| if red { 1.0 + a } else { 1.0 - a }.to_string());
    for (made, least, most) in [(&classes, 0.9, 0.8), (&numbers, 0.7, 0.2)] {
        let additive = made.score(&model(made.additive(10.0)));
        let mut asked = made.configuration(10.0);
        asked.model.name = Some("forest".into());
        let forest = made.score(&model(asked));
        assert!(forest > least && additive < most, "{forest} {additive}");
    }
    for (model, trees, refusal) in [
        (
            Some("forest"),
            0,
            "trees is 0, expected a number in [1, 4096], and less for columns with very many categories",
        ),
        (
            Some("forest"),
            5_000,
            "trees is 5000, expected a number in [1, 4096], and less for columns with very many categories",
        ),
        (None, 9, "trees is given, expected none, except for a forest"),
    ] {
        let mut asked = classes.configuration(1.0);
        (asked.model.name, asked.glm.trees) = (model.map(Into::into), Some(trees));
        assert_eq!(fit(asked).err().unwrap().to_string(), refusal);
    }
    let mut asked = classes.with(Algorithm::Newton, 1.0);
    asked.model.name = Some("forest".into());
    let refusal = fit(asked).err().unwrap().to_string();
    assert!(refusal.starts_with("method is newton, and the model is forest"), "{refusal}");
}

/// The trees are drawn from the seed in the settings: the same settings plan the same layers.
#[test]
fn the_trees_of_a_forest_are_a_public_setting() {
    let made = classes(300);
    let trained = |seed: Option<u64>| {
        let mut asked = made.configuration(1.0);
        asked.model.name = Some("forest".into());
        asked.glm.tree_seed = seed;
        let mut model = model(asked);
        let again = Model::restore(&model.save().unwrap()).unwrap();
        assert_eq!(again.digest().unwrap(), model.digest().unwrap());
        std::mem::take(&mut model.configuration.model.layers)
    };
    assert_eq!(trained(None), trained(Some(1)));
    assert_ne!(trained(Some(2)), trained(Some(1)));
}

/// With so much budget the noise is small, so what an algorithm reaches is what it does without noise.
/// Few large numbers among many small ones: the median is far from the mean.
#[test]
fn numbers_are_expected_values_where_the_target_is_skewed() {
    let skewed = made("bounds = [0, 10]", 10_000, |a, _, _, chance| {
        let large = if chance.below(10) == 0 { 7.0 } else { 0.3 };
        (large + 0.2 * a).to_string()
    });
    let examples = skewed.examples();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let targets: Vec<f64> = (0..examples.len()).map(|row| examples.number(row).unwrap().into()).collect();
    for (algorithm, family) in [
        (Algorithm::Standardized, "additive"),
        (Algorithm::Standardized, "linear"),
        (Algorithm::Newton, "linear"),
        (Algorithm::Adassp, "linear"),
        (Algorithm::Standardized, "poisson"),
    ] {
        let mut asked = skewed.with(algorithm, 3.0);
        asked.model.name = Some(family.into());
        let fitted = model(asked);
        let predicted: Vec<f64> = fitted.predictor.scores(&examples).iter().map(|s| s[0].into()).collect();
        let (found, expected) = (mean(&predicted), mean(&targets));
        // Half of the range is one. Without calibration, the difference is more than a tenth.
        assert!((found - expected).abs() < 0.03, "{algorithm:?} {family}: {found} {expected}");
    }
}

/// Classes with much chance in them: probabilities are far from 0 and 1.
#[test]
fn probabilities_are_shares_of_what_is_the_case() {
    for label in ["classes = ['no', 'yes']", "classes = ['no', 'yes', 'never']"] {
        let uncertain = made(label, 20_000, |a, b, _, chance| {
            let share = 1.0 / (1.0 + f64::exp(-(2.0 * a - b)));
            if f64::from(chance.between(0.0, 1.0)) < share { "yes" } else { "no" }.into()
        });
        let examples = uncertain.examples();
        let scores = model(uncertain.additive(3.0)).predictor.scores(&examples);
        let sure: Vec<usize> = (0..examples.len()).filter(|row| scores[*row][1] > 0.8).collect();
        let said = sure.iter().map(|row| f64::from(scores[*row][1])).sum::<f64>() / sure.len() as f64;
        let right = sure.iter().filter(|row| examples.label(**row) == Some(1)).count() as f64;
        let share = right / sure.len() as f64;
        // About 3,000 records: the share has a standard deviation of 0.006.
        assert!(sure.len() > 1_000 && (said - share).abs() < 0.035, "{label}: {said} {share}");
    }
}

#[test]
fn every_algorithm_learns_and_is_charged_what_was_asked() {
    let (classes, numbers) = (classes(2_000), numbers(2_000));
    for algorithm in algorithms() {
        for (made, least) in [(&classes, 0.88), (&numbers, 0.55)] {
            let is_number = made.schema.label.as_ref().is_some_and(|label| label.bounds.is_some());
            if algorithm == Algorithm::Adassp && !is_number {
                continue;
            }
            let mut asked = made.with(algorithm, 30.0);
            if algorithm == Algorithm::FrankWolfe {
                asked.glm.radius = Some(if is_number { 2.0 } else { 20.0 });
            }
            let fitted = fit(asked).unwrap_or_else(|error| panic!("{algorithm:?}: {error}"));
            let score = made.score(fitted.model.as_ref().unwrap());
            assert!(score > least, "{algorithm:?}: {score}");
            assert!((25.0..=30.0).contains(&fitted.spent), "{algorithm:?}: {}", fitted.spent);
        }
    }
}

#[test]
fn every_family_predicts_what_it_is_for() {
    let (classes, numbers) = (classes(2_000), numbers(2_000));
    for (family, made, least) in [
        (Family::Additive, &classes, 0.9),
        (Family::Additive, &numbers, 0.9),
        (Family::Forest, &classes, 0.9),
        (Family::Forest, &numbers, 0.9),
        (Family::Logistic, &classes, 0.9),
        (Family::Svm, &classes, 0.9),
        (Family::Linear, &numbers, 0.9),
        (Family::Ridge, &numbers, 0.9),
        (Family::Quantile, &numbers, 0.85),
        (Family::Poisson, &numbers, 0.8),
    ] {
        let mut asked = made.configuration(20.0);
        asked.model.name = Some(family.name().into());
        let score = made.score(&model(asked));
        assert!(score > least, "{family:?}: {score}");
    }
    // A quantile is above that share of the targets.
    for quantile in [0.1_f32, 0.9] {
        let mut asked = numbers.configuration(20.0);
        asked.model.name = Some("quantile".into());
        asked.glm.quantile = Some(quantile);
        let (model, examples) = (model(asked), numbers.examples());
        let predicted = model.predictor.scores(&examples);
        let below =
            (0..examples.len()).filter(|example| examples.number(*example).unwrap() < predicted[*example][0]);
        let share = below.count() as f32 / examples.len() as f32;
        assert!((share - quantile).abs() < 0.07, "{quantile}: {share}");
    }
}

#[test]
fn several_classes_are_told_apart_by_every_algorithm_for_classes() {
    let made = made("classes = ['x', 'y', 'z']", 3_000, |a, b, _, _| {
        if a > b.max(0.0) {
            "x"
        } else if b > 0.0 {
            "y"
        } else {
            "z"
        }
        .into()
    });
    for algorithm in algorithms().filter(|algorithm| *algorithm != Algorithm::Adassp) {
        let score = made.score(&model(made.with(algorithm, 30.0)));
        assert!(score > 0.7, "{algorithm:?}: {score}");
    }
}

#[test]
fn a_stopped_run_goes_on_where_it_stopped_and_is_charged_once() {
    let (classes, numbers) = (classes(300), numbers(300));
    for algorithm in algorithms() {
        let made = if algorithm == Algorithm::Adassp { &numbers } else { &classes };
        // One release cannot stop in the middle.
        let stop_after = match algorithm {
            Algorithm::OutputPerturbation | Algorithm::ObjectivePerturbation | Algorithm::HiddenState => {
                u64::MAX
            }
            _ => 7,
        };
        let fitted = train(made.with(algorithm, 5.0), Fit { stop_after }).unwrap().unwrap();
        assert!(fitted.spent <= 5.0, "{algorithm:?}");
    }
}

#[test]
fn complete_settings_yield_the_same_plan() {
    let (classes, numbers) = (classes(300), numbers(300));
    for algorithm in algorithms() {
        let made = if algorithm == Algorithm::Adassp { &numbers } else { &classes };
        for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
            let mut asked = made.with(algorithm, 2.0);
            asked.training.privacy.neighbors = neighbors;
            let first = fit(asked).unwrap();
            let written = std::fs::read_to_string(first.folder.join("config.toml")).unwrap();
            let again = fit(Configuration::parse(&written).unwrap()).unwrap();
            assert_eq!(first.settings, again.settings, "{algorithm:?}");
            // The report plans again, from the model.
            let description = first.model.as_ref().unwrap().description().unwrap();
            assert_eq!((description.records, description.neighbors), (300, neighbors));
        }
    }
}

/// A resumed run reads its settings again, and the ledger compares the events.
#[test]
fn settings_that_are_written_and_read_again_cost_the_same_event() {
    fn check<M: Method<Recipe = Recipe>>(algorithm: Algorithm) {
        let (classes, numbers) = (classes(1), numbers(1));
        let is_regression = matches!(algorithm, Algorithm::Adassp | Algorithm::OnePosterior);
        let (schema, classes) =
            if is_regression { (&numbers.schema, None) } else { (&classes.schema, Some(2)) };
        for records in (0..32).map(|i| 50 + 37 * i) {
            let mut recipe = Recipe { method: algorithm, records: Some(records), ..Recipe::default() };
            recipe.privacy.epsilon = Some(2.0);
            let facts = PublicFacts { records: None, classes };
            let subject = Subject { shape: &[5], are_features: false, facts, schema: Some(schema) };
            let mut model = Architecture::default();
            let first = M::plan(&mut recipe, &mut model, &subject).unwrap();
            let written = recipe.clone();
            let again = M::plan(&mut recipe, &mut model, &subject).unwrap();
            assert_eq!(first.event(), again.event(), "{algorithm:?} {records}");
            assert_eq!(written, recipe, "{algorithm:?} {records}");
        }
    }
    for algorithm in Algorithm::ALL {
        match algorithm {
            Algorithm::OutputPerturbation => check::<Minimized<OutputPerturbation>>(algorithm),
            Algorithm::ObjectivePerturbation => check::<Minimized<ObjectivePerturbation>>(algorithm),
            Algorithm::HiddenState => check::<Minimized<HiddenDescent>>(algorithm),
            Algorithm::OnePosterior => check::<Minimized<PosteriorSample>>(algorithm),
            Algorithm::FrankWolfe => check::<FrankWolfe>(algorithm),
            _ => check::<Glm>(algorithm),
        }
    }
}

/// A plan for records that are added or removed charges half of what a replacement costs.
#[test]
fn frank_wolfe_refuses_a_ledger_with_other_neighbours() {
    let made = numbers(50);
    let examples = made.examples();
    let mut recipe = Recipe { records: Some(50), ..Recipe::default() };
    recipe.privacy.epsilon = Some(1.0);
    let facts = PublicFacts { records: None, classes: None };
    let subject = Subject { shape: examples.shape(), are_features: false, facts, schema: Some(&made.schema) };
    let method = FrankWolfe::plan(&mut recipe, &mut Architecture::default(), &subject).unwrap();
    let (epsilon, delta) = (Epsilon::new(9.0).unwrap(), Delta::new(1e-3).unwrap());
    for (neighbors, is_right) in [(Neighbors::AddRemove, true), (Neighbors::Replace, false)] {
        let terms = Terms {
            dataset: "linear".into(),
            unit: Unit::Example,
            neighbors,
            budget: Budget { epsilon: Some(epsilon), delta },
            composition: Composition::Combined,
        };
        let mut ledger = Ledger::create(InMemory::new("linear"), terms).unwrap();
        let (mechanism, runs) = method.mechanism();
        let mut task = method.task(&examples, Unit::Example).unwrap();
        let mut state = method.state(None).unwrap();
        let lease = ledger.reserve(mechanism, runs).unwrap();
        let fitted = method.fit(lease, &mut task, &mut state, |_| Ok(Control::Continue));
        assert_eq!(fitted.is_ok(), is_right, "{neighbors:?}");
        assert_eq!(state.taken() > 0, is_right, "{neighbors:?}");
        assert_eq!(method.train(&examples, &mut ledger).is_ok(), is_right, "{neighbors:?}");
    }
}

#[test]
fn the_learner_follows_from_the_data_and_the_settings() {
    let made = classes(60);
    let chosen = |change: &dyn Fn(&mut Configuration)| {
        let mut asked = made.configuration(5.0);
        change(&mut asked);
        model(asked).configuration.learner
    };
    assert_eq!(chosen(&|_| {}), Some(Learner::Glm));
    assert_eq!(chosen(&|asked| asked.training.seed = 9), Some(Learner::Glm));
    assert_eq!(chosen(&|asked| asked.model.name = Some("logistic".into())), Some(Learner::Glm));
    assert_eq!(chosen(&|asked| asked.model.name = Some("svm".into())), Some(Learner::Glm));
    assert_eq!(chosen(&|asked| asked.training.steps = Some(3)), Some(Learner::Glm));
    assert_eq!(chosen(&|asked| asked.training.epochs = Some(3.0)), Some(Learner::DpSgd));
    let replaced = |asked: &mut Configuration| {
        (asked.training.epochs, asked.training.privacy.neighbors) = (Some(3.0), Neighbors::Replace);
        asked.glm.privacy.neighbors = Neighbors::Replace;
    };
    assert_eq!(chosen(&replaced), Some(Learner::DpSgd));
    assert_eq!(chosen(&|asked| asked.training.sampling.rate = Some(0.5)), Some(Learner::DpSgd));
    assert_eq!(chosen(&|asked| asked.model.name = Some("mlp".into())), Some(Learner::DpSgd));
    let mut both = made.configuration(1.0);
    (both.learner, both.training.epochs) = (Some(Learner::Glm), Some(3.0));
    assert!(matches!(fit(both).err(), Some(Error::Setting { name: "model", .. })));
}

#[test]
fn settings_that_do_not_fit_are_refused_by_name() {
    let (classes, numbers) = (classes(30), numbers(30));
    let below = made("bounds = [-1, 10]", 30, |_, _, _, _| "1".into());
    let refused = |made: &Made, change: &dyn Fn(&mut Configuration)| {
        let mut asked = made.configuration(1.0);
        change(&mut asked);
        match fit(asked).err() {
            Some(Error::Setting { name, .. } | Error::OutOfRange { what: name, .. }) => name,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&numbers, &|asked| asked.model.name = Some("svm".into())), "model");
    assert_eq!(refused(&classes, &|asked| asked.model.name = Some("ridge".into())), "model");
    assert_eq!(refused(&below, &|asked| asked.model.name = Some("poisson".into())), "model");
    assert_eq!(refused(&classes, &|asked| asked.glm.quantile = Some(0.5)), "quantile");
    assert_eq!(refused(&classes, &|asked| asked.glm.method = Algorithm::Adassp), "method");
    assert_eq!(refused(&classes, &|asked| asked.glm.regularization = Some(-1.0)), "regularization");
    assert_eq!(refused(&classes, &|asked| asked.glm.learning_rate = Some(0.0)), "learning_rate");
    assert_eq!(refused(&classes, &|asked| asked.glm.steps = Some(0)), "steps");
    assert_eq!(refused(&classes, &|asked| asked.glm.learning_rate = Some(1e7)), "learning_rate");
    let diverging = |asked: &mut Configuration| {
        (asked.glm.learning_rate, asked.glm.regularization) = (Some(9.0), Some(1.0));
    };
    assert_eq!(refused(&classes, &diverging), "learning_rate");
    assert_eq!(refused(&classes, &|asked| asked.training.sampling.records = Some(0)), "records");
    assert_eq!(refused(&classes, &|asked| asked.training.privacy.epsilon = Some(-1.0)), "epsilon");
    // Settings of other learners are not swallowed.
    let other = |learner: Learner, change: &dyn Fn(&mut Configuration)| {
        refused(&classes, &|asked| {
            asked.learner = Some(learner);
            change(asked);
        })
    };
    assert_eq!(other(Learner::DpSgd, &|asked| asked.glm.regularization = Some(0.5)), "learner");
    assert_eq!(other(Learner::DpSgd, &|asked| asked.glm.waves = Some(2)), "learner");
    assert_eq!(other(Learner::Glm, &|asked| asked.unsupervised.clusters = Some(2)), "learner");
    assert_eq!(other(Learner::Unsupervised, &|asked| asked.naive_bayes.records = Some(9)), "learner");
    assert_eq!(other(Learner::DpSgd, &|asked| asked.model.name = Some("linear".into())), "method");
    // A setting that the method does not have is not swallowed.
    for (method, name) in [
        (Algorithm::OutputPerturbation, "steps"),
        (Algorithm::ObjectivePerturbation, "learning_rate"),
        (Algorithm::FrankWolfe, "regularization"),
        (Algorithm::Standardized, "radius"),
        (Algorithm::NoisyGd, "sampling_rate"),
    ] {
        let given = |asked: &mut Configuration| {
            asked.glm.method = method;
            match name {
                "steps" => asked.glm.steps = Some(5),
                "learning_rate" => asked.glm.learning_rate = Some(0.5),
                "regularization" => asked.glm.regularization = Some(0.5),
                "radius" => asked.glm.radius = Some(0.5),
                _ => asked.glm.sampling_rate = Some(0.5),
            }
        };
        assert_eq!(refused(&classes, &given), name, "{method:?}");
    }
}

/// diffprivlib 0.6.6 computes a sensitivity of zero for these bounds, and adds no noise.
#[test]
fn bounds_from_zero_to_a_hundred_are_learned_and_get_noise() {
    let column = "[label]\ncolumn = 'y'\nbounds = [0, 100]\n[[column]]\nname = 'x'\nbounds = [0, 100]\n";
    let rows: Vec<String> = (0..2_000).map(|i| format!("{},{}", i % 101, i % 101)).collect();
    let made = Made {
        table: Scratch::new("hundred.csv", format!("x,y\n{}\n", rows.join("\n"))),
        schema: Schema::parse(column).unwrap(),
        records: 2_000,
    };
    let (first, second) = (model(made.configuration(1.0)), model(made.configuration(1.0)));
    assert!(made.score(&first) > 0.8, "{}", made.score(&first));
    assert_ne!(first.predictor.weights(), second.predictor.weights(), "no noise was added");
}

#[test]
fn hard_tables_train_and_predict_numbers() {
    let wide: Vec<String> = (0..40).map(|i| format!("w{i}")).collect();
    let columns: Vec<String> =
        wide.iter().map(|name| format!("[[column]]\nname = '{name}'\nbounds = [0, 1]\n")).collect();
    let wide_schema = columns.concat();
    let two = "[label]\ncolumn = 'y'\nclasses = ['n', 'p']\n";
    let cases = [
        // One record.
        ("a,y\n5,p\n".to_owned(), format!("{two}[[column]]\nname = 'a'\nbounds = [0, 9]\n"), 1),
        // No record at all.
        ("a,y\n".to_owned(), format!("{two}[[column]]\nname = 'a'\nbounds = [0, 9]\n"), 10),
        // A constant column and one class only.
        ("a,y\n5,p\n5,p\n5,p\n".to_owned(), format!("{two}[[column]]\nname = 'a'\nbounds = [0, 9]\n"), 3),
        // More features than records.
        (
            format!("{},y\n{}p\n{}n\n", wide.join(","), "1,".repeat(40), "0,".repeat(40)),
            format!("{two}{wide_schema}"),
            2,
        ),
        // Missing, infinite and absurd cells, and no number at all in a column of categories.
        (
            "a,c,y\n,x,p\ninf,,n\nnan,z,p\n1e300,y,n\n".to_owned(),
            format!(
                "{two}[[column]]\nname = 'a'\nbounds = [0, 9]\nunknown = true\n\
                 [[column]]\nname = 'c'\ncategories = ['x', 'y']\n"
            ),
            4,
        ),
        // Categories alone.
        ("c,y\nx,p\ny,n\n".to_owned(), format!("{two}[[column]]\nname = 'c'\ncategories = ['x', 'y']\n"), 2),
    ];
    for (text, schema, records) in cases {
        let made =
            Made { table: Scratch::new("hard.csv", &text), schema: Schema::parse(&schema).unwrap(), records };
        for algorithm in algorithms().filter(|algorithm| *algorithm != Algorithm::Adassp) {
            let model = fit(made.with(algorithm, 1.0))
                .unwrap_or_else(|error| panic!("{algorithm:?} {text:?}: {error}"))
                .model
                .take()
                .unwrap();
            let predicted = model.predict(&made.examples()).unwrap();
            assert!(predicted.iter().all(Option::is_some), "{algorithm:?} {text:?}");
        }
    }
}
