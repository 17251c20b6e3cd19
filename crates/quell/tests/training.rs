//! From a recipe to a model, through a ledger.

use std::path::PathBuf;

use quell::{
    Error, Input,
    data::{Examples, Targets},
    features::Features,
    learner::{
        Augmentation, Control, Gradients, Method, PublicFacts, Snapshot, Subject, Supervised, default_delta,
        dp_sgd::{Checkpoint, Clip, DpSgd, Plan, Recipe, Sampler},
        glm::{self, Algorithm, Glm, Minimized},
        loss::Loss,
        naive_bayes::{self, NaiveBayes},
    },
    ledger::InMemory,
    network::{self, Architecture, Network, Workspace},
    run::{Configuration, Folder, Job, Model, Training},
};
use quell_ledger::{Location, Store, Volume};
use quell_privacy::{
    Neighbors, laws,
    ledger::{Budget, Composition, Ledger, Terms, Unit},
    mechanism::OutputPerturbation,
    units::{Delta, Epsilon},
};

const CLASSES: Loss = Loss::CrossEntropy { label_smoothing: 0.0 };

fn network(name: &str, input: &[usize], outputs: usize) -> Network {
    network::build(input, &network::layers_of(name, input, outputs).unwrap()).unwrap()
}

fn facts(records: u64) -> PublicFacts {
    PublicFacts { records: Some(records), classes: Some(10) }
}

fn recipe(text: &str) -> Recipe {
    toml::from_str(text).unwrap()
}

fn noise_steps_rate(plan: &Plan) -> (f64, u64, f64) {
    (plan.descent.noise_multiplier.get(), plan.steps(), plan.expected_batch)
}

#[test]
fn whatever_is_left_out_follows_from_the_rest() {
    let network = network("logistic", &[64], 10);
    let plan = |text: &str| recipe(text).plan(&facts(10_000), &network).unwrap();
    let whole = plan("steps = 500\n[privacy]\nepsilon = 2.0\ndelta = 1e-5\n[sampling]\nrate = 0.02");
    let (noise, steps, batch) = noise_steps_rate(&whole);
    assert!(
        whole.epsilon.upper <= 2.0 && whole.epsilon.lower > 1.98 && steps == 500 && batch == 200.0,
        "{whole:?}"
    );

    // ε from noise, and the other way round.
    let given = plan(&format!(
        "steps = 500\n[privacy]\nnoise_multiplier = {noise}\ndelta = 1e-5\n[sampling]\nbatch = 200"
    ));
    assert!((given.epsilon.upper - whole.epsilon.upper).abs() < 1e-9);
    // Steps from ε, noise and rate.
    let most = plan(&format!(
        "[privacy]\nepsilon = 2.0\nnoise_multiplier = {noise}\ndelta = 1e-5\n[sampling]\nrate = 0.02"
    ));
    assert!((480..=510).contains(&most.steps()) && most.epsilon.upper <= 2.0, "{}", most.steps());
    // The rate from ε, noise and steps.
    let rate =
        plan(&format!("steps = 500\n[privacy]\nepsilon = 2.0\nnoise_multiplier = {noise}\ndelta = 1e-5"));
    assert!(
        (rate.expected_batch / 200.0 - 1.0).abs() < 0.02 && rate.epsilon.upper <= 2.0,
        "{}",
        rate.expected_batch
    );
    // Epochs are steps.
    assert_eq!(plan("epochs = 10.0\n[privacy]\nepsilon = 2.0\n[sampling]\nrate = 0.02").steps(), 500);
}

#[test]
fn contradictions_and_gaps_are_said_before_anything_is_paid() {
    let network = network("logistic", &[64], 10);
    let refused = |text: &str, facts: &PublicFacts| recipe(text).plan(facts, &network).unwrap_err();
    let all = "steps = 500\n[privacy]\nepsilon = 0.5\nnoise_multiplier = 0.7\n[sampling]\nrate = 0.02";
    assert!(matches!(refused(all, &facts(10_000)), Error::Setting { name: "epsilon", .. }));
    assert!(matches!(refused("steps = 5", &facts(100)), Error::Missing { what: Input::Epsilon }));
    assert!(matches!(
        refused("steps = 0\n[privacy]\nepsilon = 1.0", &facts(100)),
        Error::Setting { name: "steps", .. }
    ));
    assert!(matches!(
        refused("epochs = -1.0\n[privacy]\nepsilon = 1.0", &facts(100)),
        Error::Setting { name: "epochs", .. }
    ));
    let unknown = PublicFacts { records: None, classes: Some(10) };
    assert!(matches!(
        refused("[privacy]\nepsilon = 1.0", &unknown),
        Error::Missing { what: Input::RecordCount }
    ));
    let wor = "steps = 5\n[privacy]\nepsilon = 1.0\n[sampling]\nby = 'without_replacement'\nbatch = 10";
    assert!(
        matches!(refused(wor, &facts(100)), Error::Privacy(_)),
        "the number of records is not public when one may be added"
    );
    assert!(
        toml::from_str::<Recipe>("stepps = 5").is_err()
            && toml::from_str::<Recipe>("[privacy]\neps = 1").is_err()
    );
}

#[test]
fn delta_is_a_tenth_of_one_over_the_number_of_records_or_less() {
    for (records, delta) in [(1, 1e-2), (100, 1e-3), (1438, 1e-5), (60_000, 1e-6), (1_000_000, 1e-7)] {
        assert!((default_delta(records) / delta - 1.0).abs() < 1e-9, "{records}");
    }
    let plan = recipe("steps = 5\n[privacy]\nepsilon = 1.0")
        .plan(&facts(60_000), &network("logistic", &[4], 10))
        .unwrap();
    assert!((plan.delta.get() / 1e-6 - 1.0).abs() < 1e-9);
}

#[test]
fn every_sampler_has_the_event_of_what_it_does() {
    let network = network("logistic", &[64], 10);
    let plan = |by: &str, neighbors: &str| {
        let text = format!(
            "steps = 40\n[privacy]\nnoise_multiplier = 2.0\nneighbors = '{neighbors}'\n[sampling]\nby = '{by}'\nrate = 0.1"
        );
        recipe(&text).plan(&facts(1000), &network).unwrap()
    };
    let words = |plan: &Plan| plan.event().to_string();
    assert!(words(&plan("poisson", "add_remove")).contains("poisson_sampled"));
    let full = plan("full", "add_remove");
    assert!(!words(&full).contains("sampled") && full.expected_batch == 1000.0);
    assert!(words(&plan("without_replacement", "replace")).contains("without_replacement"));
    let shuffled = plan("shuffled", "add_remove");
    // Forty steps are four epochs of ten batches, and cost as four Gaussian releases.
    let numbers = (shuffled.steps_per_run(), shuffled.runs, shuffled.steps(), shuffled.expected_batch);
    assert_eq!(numbers, (10, 4, 40, 100.0));
    assert!(!words(&shuffled).contains("sampled"));
    assert!(shuffled.epsilon.upper > plan("poisson", "add_remove").epsilon.upper);
}

/// Sixteen pictures of two classes, one with a pixel that is not finite (which reading turns into zero), some black.
fn pictures() -> Examples {
    let mut chance = quell::random::PublicRandom::new(5);
    let mut values: Vec<f32> = (0..16 * 64).map(|_| chance.between(0.0, 1.0)).collect();
    values[64..128].fill(0.0);
    values[200] = f32::NAN;
    values[300] = 1e30;
    let labels = (0..16).map(|i| i % 2).collect();
    Examples::numbers(&[1, 8, 8], values, Targets::Classes { labels, names: vec!["a".into(), "b".into()] })
        .unwrap()
}

#[test]
fn gradients_of_networks_obey_the_laws() {
    let examples = pictures();
    for name in ["logistic", "mlp", "digits", "resnet"] {
        let network = network(name, &[8, 8, 1], 2);
        let weights = network.initialize(3);
        for augmentation in [None, Some(quell::learner::Augmentation { versions: 3, shift: 1, mirror: true })]
        {
            let task = Supervised::new(&examples, CLASSES, augmentation);
            let mut workspace = Workspace::default();
            let mut gradients = Gradients::new(&network, &task, &weights, &mut workspace);
            let records: Vec<usize> = (0..16).collect();
            assert_eq!(laws::check_contributions(&mut gradients, &records), Ok(()), "{name}");
            assert_eq!(
                laws::check_parts(&mut gradients, &records, &network.parts()),
                Ok(()),
                "{name}, layer by layer"
            );
        }
    }
}

#[test]
fn parts_that_end_within_a_layer_add_nothing() {
    let (examples, network) = (pictures(), network("mlp", &[8, 8, 1], 2));
    let (task, weights, ask) = (
        Supervised::new(&examples, CLASSES, None),
        network.initialize(3),
        |_: &[f64], scales: &mut [f32]| scales.fill(1.0),
    );
    let size = |parts: &[usize]| {
        let mut sum = vec![0.0; network.parameters()];
        network.add_gradients(
            &weights,
            &task,
            &[&[0, 2, 5]],
            parts,
            Some(&ask),
            &mut sum,
            &mut Workspace::default(),
        );
        sum.iter().map(|x: &f64| x.abs()).fold(0.0, f64::max)
    };
    let all = network.parameters();
    assert!(size(&[all]) > 0.0 && size(&network.parts()) > 0.0);
    assert_eq!((size(&[1, all - 1]), size(&[all - 1, 1])), (0.0, 0.0));
}

#[test]
fn a_record_that_leaves_changes_no_other_gradient_whatever_is_drawn() {
    let (all, kept): (Examples, Vec<usize>) = (pictures(), (1..16).collect());
    let fewer = all.select(&kept);
    let mut recipes = network::layers_of("mlp", &[8, 8, 1], 2).unwrap();
    recipes.insert(1, toml::from_str("kind = 'dropout'\nrate = 0.5").unwrap());
    let network = network::build(&[8, 8, 1], &recipes).unwrap();
    let weights = network.initialize(3);
    let augmentation = Some(quell::learner::Augmentation { versions: 2, shift: 2, mirror: true });
    let gradient = |examples: &Examples, record: usize, seed: u64| {
        let mut task = Supervised::new(examples, CLASSES, augmentation);
        task.reseed(seed);
        let mut sum = vec![0.0; network.parameters()];
        Gradients::new(&network, &task, &weights, &mut Workspace::default()).add(&[record], &mut sum);
        sum
    };
    for record in 1..16 {
        assert!(gradient(&all, record, 7) == gradient(&fewer, record - 1, 7), "record {record}");
    }
    assert!(gradient(&all, 5, 7) != gradient(&all, 5, 8), "another step draws other lots");
}

#[test]
fn a_user_is_one_record_whose_gradient_is_the_mean_of_theirs() {
    let owners: Vec<Option<&str>> = (0..16).map(|i| Some(["ada", "bob", "eve"][i % 3])).collect();
    let examples = pictures().with_users(&owners).unwrap();
    let network = network("mlp", &[8, 8, 1], 2);
    let weights = network.initialize(3);
    let mut workspace = Workspace::default();
    let alone = Supervised::new(&examples, CLASSES, None);
    let mut one_by_one = vec![0.0; network.parameters()];
    let of_bob: Vec<usize> = (0..16).filter(|i| i % 3 == 1).collect();
    Gradients::new(&network, &alone, &weights, &mut workspace).add(&of_bob, &mut one_by_one);
    let task = Supervised::new(&examples, CLASSES, None).by_user().unwrap();
    assert_eq!(task.records(), 3);
    let bob = examples.users().unwrap()[1] as usize;
    let mut together = vec![0.0; network.parameters()];
    Gradients::new(&network, &task, &weights, &mut workspace).add(&[bob], &mut together);
    let size = one_by_one.iter().map(|x: &f64| x.abs()).fold(0.0, f64::max);
    let off = together.iter().zip(&one_by_one).map(|(a, b)| (a * 5.0 - b).abs()).fold(0.0, f64::max);
    assert!(size > 0.1 && off < 1e-5 * size, "{off} of {size}");
    let mut workspace = Workspace::default();
    assert_eq!(
        laws::check_contributions(&mut Gradients::new(&network, &task, &weights, &mut workspace), &[0, 1, 2]),
        Ok(())
    );
    assert!(Supervised::new(&pictures(), CLASSES, None).by_user().is_none());
}

/// A folder of its own for each test, gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("quell-training-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn ledger(&self, job: &Training<DpSgd>) -> Ledger<Volume> {
        let location = Location::File(self.0.join("ledger.db"));
        let mut store = Store::create(location).unwrap();
        let name = job.configuration.data.name();
        if store.datasets().unwrap().iter().any(|known| known.dataset == name) {
            return Ledger::open(store.book(&name).unwrap()).unwrap();
        }
        Ledger::create(store.book(&name).unwrap(), job.terms().unwrap()).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn small_job(change: impl FnOnce(&mut Configuration)) -> Training<DpSgd> {
    let mut configuration = Configuration::digits().unwrap();
    configuration.model.name = Some("logistic".into());
    configuration.training.steps = Some(30);
    change(&mut configuration);
    Training::<DpSgd>::new(configuration).unwrap()
}

#[test]
fn the_embedded_digits_are_learned() {
    let scratch = Scratch::new("digits");
    let job = Training::<DpSgd>::new(Configuration::digits().unwrap()).unwrap();
    let (mut ledger, folder) = (scratch.ledger(&job), Folder::create(&scratch.0.join("run")).unwrap());
    let mut moments = Vec::new();
    let outcome = job
        .go(&mut ledger, &folder, &mut |moment| {
            moments.push((moment.done, moment.epsilon.unwrap()));
            Control::Continue
        })
        .unwrap();
    let accuracy =
        folder.metrics().unwrap().evaluation.as_ref().and_then(quell::learner::Evaluation::accuracy).unwrap();
    // Runs are at 93 % with a deviation of 1 %: below 80 % is no chance.
    assert!(
        accuracy > 0.8 && outcome.is_finished && outcome.paid.as_ref().unwrap().epsilon.upper <= 3.0,
        "{accuracy}"
    );
    assert_eq!(moments.len() as u64, job.method.plan.steps());
    assert!(moments.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
    assert!(
        moments.last().unwrap().1 >= job.method.plan.epsilon.upper,
        "what is shown is never less than what was spent"
    );
    // What was promised stands in the ledger, and the model says so.
    let model = job.model(&mut ledger, &folder).unwrap();
    let read = Model::restore(&model.save().unwrap()).unwrap();
    assert_eq!(
        (read.predictor.weights() == model.predictor.weights(), &read.paid, &read.configuration),
        (true, &model.paid, &model.configuration)
    );
    assert!(
        read.statement.contains("Promise") && read.paid.receipt.entry == outcome.paid.unwrap().receipt.entry
    );
    let again = read.predictor.evaluate(job.public_test().unwrap());
    assert_eq!(again.accuracy(), Some(accuracy));
    let earlier = Model::restore(&without_loss(&model.save().unwrap())).unwrap();
    let loss = |model: &Model| model.predictor.network().unwrap().loss;
    assert_eq!(loss(&earlier), loss(&model));
}

/// A model file as earlier versions wrote it: the loss is in the settings alone.
fn without_loss(bytes: &[u8]) -> Vec<u8> {
    let (length, rest) = bytes.split_at(8);
    let (header, tensors) = rest.split_at(u64::from_le_bytes(length.try_into().unwrap()) as usize);
    let mut header: serde_json::Value = serde_json::from_slice(header).unwrap();
    assert!(header["__metadata__"].as_object_mut().unwrap().remove("quell.loss").is_some());
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), tensors].concat()
}

#[test]
fn a_run_that_is_stopped_goes_on_and_loses_and_pays_nothing_more() {
    let scratch = Scratch::new("resume");
    let job = small_job(|_| ());
    let (mut ledger, folder) = (scratch.ledger(&job), Folder::create(&scratch.0.join("run")).unwrap());
    let mut seen = Vec::new();
    let outcome = job
        .go(&mut ledger, &folder, &mut |moment| {
            seen.push(moment.done);
            if moment.done == 7 { Control::Stop } else { Control::Continue }
        })
        .unwrap();
    // Steps are leased in blocks of two.
    assert!(!outcome.is_finished && folder.metrics().unwrap().taken == 8);
    let spent = ledger.state().unwrap().spent().epsilon;
    // As another process would.
    let job = Training::<DpSgd>::new(Folder::open(folder.path()).unwrap().configuration().unwrap()).unwrap();
    let mut ledger = scratch.ledger(&job);
    let outcome = job
        .go(&mut ledger, &folder, &mut |moment| {
            seen.push(moment.done);
            Control::Continue
        })
        .unwrap();
    assert!(outcome.is_finished && outcome.remarks.is_empty(), "{:?}", outcome.remarks);
    assert_eq!(folder.metrics().unwrap().taken, 30);
    assert!(seen.is_sorted_by(|a, b| a < b) && seen.last() == Some(&30), "no step twice: {seen:?}");
    assert_eq!(folder.metrics().unwrap().taken, seen.len() as u64);
    assert_eq!(ledger.state().unwrap().spent().epsilon, spent);
    let charges = ledger.state().unwrap().charges().len();
    assert_eq!(charges, 1);
}

#[test]
fn a_model_keeps_the_features_that_stand_before_it() {
    let scratch = Scratch::new("features");
    let job = small_job(|configuration| {
        configuration.features = Some(Features::scattering());
        configuration.model.layers.clear();
    });
    assert_eq!(
        (job.dataset.train.shape(), job.method.network.parameters()),
        ([81, 2, 2].as_slice(), 10 * (81 * 4 + 1))
    );
    let (mut ledger, folder) = (scratch.ledger(&job), Folder::create(&scratch.0.join("run")).unwrap());
    let stop = |step: u64| {
        move |moment: quell::run::Progress| {
            if moment.done == step { Control::Stop } else { Control::Continue }
        }
    };
    assert!(!job.go(&mut ledger, &folder, &mut stop(7)).unwrap().is_finished);
    // As another process would.
    let job = Training::<DpSgd>::new(folder.configuration().unwrap()).unwrap();
    assert_eq!(job.configuration.features, Some(Features::scattering()));
    let mut ledger = scratch.ledger(&job);
    let outcome = job.go(&mut ledger, &folder, &mut stop(u64::MAX)).unwrap();
    let accuracy =
        folder.metrics().unwrap().evaluation.as_ref().and_then(quell::learner::Evaluation::accuracy).unwrap();
    assert!(outcome.is_finished && accuracy > 0.8, "{accuracy}");
    let model = Model::restore(&job.model(&mut ledger, &folder).unwrap().save().unwrap()).unwrap();
    assert_eq!(
        (model.shape.as_slice(), &model.configuration.features),
        ([1, 8, 8].as_slice(), &Some(Features::scattering()))
    );
    // Records as they are become what the network was trained on.
    let images = model.configuration.data.open().unwrap().test.unwrap();
    let again = model.evaluate(&model.features(images).unwrap());
    assert_eq!(again.accuracy(), Some(accuracy));
}

#[test]
fn features_and_versions_of_images_exclude_each_other() {
    let mut configuration = Configuration::digits().unwrap();
    configuration.features = Some(Features::hog());
    configuration.training.augmentation = Some(Augmentation { versions: 2, shift: 1, mirror: false });
    let refused = Training::<DpSgd>::new(configuration).err().unwrap().to_string();
    assert!(refused.starts_with("augmentation is several versions"), "{refused}");
}

#[test]
fn a_checkpoint_holds_everything_that_the_next_step_needs() {
    let job = small_job(|configuration| {
        configuration.training.optimizer = toml::from_str::<Recipe>("[optimizer.adam]").unwrap().optimizer;
        configuration.training.clipping =
            Some(Clip::Adaptive { norm: 1.0, quantile: 0.5, learning_rate: 0.2, count_noise: Some(20.0) });
    });
    let mut progress = Checkpoint::new(&job.method.network, &job.method.plan).unwrap();
    let released = |seed: u64| {
        let mut chance = quell::random::PublicRandom::new(seed);
        let sum = (0..job.method.network.parameters()).map(|_| chance.normal()).collect();
        quell_privacy::mechanism::Step {
            sum,
            share_within: Some(0.4),
            next_norm: Some(quell_privacy::units::ClipNorm::new(0.7).unwrap()),
        }
    };
    progress.apply(&job.method.plan, &released(1), 0, 1.0).unwrap();
    let mut restored =
        Checkpoint::restore(&progress.save().unwrap(), &job.method.network, &job.method.plan).unwrap();
    assert_eq!(restored, progress);
    progress.apply(&job.method.plan, &released(2), 1, 1.0).unwrap();
    restored.apply(&job.method.plan, &released(2), 1, 1.0).unwrap();
    assert!(restored == progress && progress.clip_norm().is_some_and(|norm| norm.get() == 0.7));
    // Damage is found, wherever it is.
    let bytes = progress.save().unwrap();
    for cut in (0..bytes.len()).step_by(997) {
        assert!(Checkpoint::restore(&bytes[..cut], &job.method.network, &job.method.plan).is_err(), "{cut}");
    }
    let other = small_job(|configuration| configuration.model.name = Some("mlp".into()));
    assert!(Checkpoint::restore(&bytes, &other.method.network, &other.method.plan).is_err());
}

#[test]
fn every_way_to_sample_and_clip_trains() {
    for (name, text) in [
        ("full", "[sampling]\nby = 'full'\n[clipping.per_layer]\nnorm = 1.0"),
        ("shuffled", "[sampling]\nby = 'shuffled'\nrate = 0.2\n[clipping.automatic]\nnorm = 1.0"),
        ("adaptive", "[sampling]\nrate = 0.3\n[clipping.adaptive]\nnorm = 1.0"),
    ] {
        let scratch = Scratch::new(name);
        let job = small_job(|configuration| {
            let recipe = recipe(&format!(
                "steps = 20\n[privacy]\nepsilon = 8.0\n[schedule]\nlearning_rate = 1.0\n{text}"
            ));
            configuration.training = recipe;
        });
        let (mut ledger, folder) = (scratch.ledger(&job), Folder::create(&scratch.0.join("run")).unwrap());
        let outcome = job.go(&mut ledger, &folder, &mut |_| Control::Continue).unwrap();
        let accuracy = folder
            .metrics()
            .unwrap()
            .evaluation
            .as_ref()
            .and_then(quell::learner::Evaluation::accuracy)
            .unwrap();
        assert!(accuracy > 0.5 && outcome.is_finished, "{name}: {accuracy}");
        assert!(outcome.paid.as_ref().unwrap().epsilon.upper <= 8.0);
        assert_eq!(
            job.configuration.training.sampling.by == Sampler::Shuffled,
            job.method.plan.steps_per_run() > 1
        );
    }
}

#[test]
fn a_ledger_of_another_promise_is_not_charged() {
    let scratch = Scratch::new("promise");
    let job = small_job(|_| ());
    let _ = scratch.ledger(&job);
    let other = small_job(|configuration| configuration.training.privacy.neighbors = Neighbors::Replace);
    let (mut ledger, folder) = (scratch.ledger(&other), Folder::create(&scratch.0.join("run")).unwrap());
    assert!(matches!(
        other.go(&mut ledger, &folder, &mut |_| Control::Continue),
        Err(Error::OtherTerms { .. })
    ));
    assert_eq!(ledger.state().unwrap().charges().len(), 0);
    let mut configuration = Configuration::digits().unwrap();
    configuration.data.unit = Unit::User;
    assert!(
        matches!(Training::<DpSgd>::new(configuration), Err(Error::Missing { what: Input::Users })),
        "digits have no users"
    );
}

#[test]
fn steps_are_leased_before_they_are_taken() {
    let scratch = Scratch::new("lease");
    let job = small_job(|_| ());
    let (mut ledger, folder) = (scratch.ledger(&job), Folder::create(&scratch.0.join("run")).unwrap());
    let mut other = scratch.ledger(&job);
    let outcome = job.go(&mut ledger, &folder, &mut |moment| {
        let leased = other.state().unwrap().charges().iter().map(|account| account.leased).max();
        assert!(leased >= Some(moment.done), "{leased:?} at step {}", moment.done);
        Control::Continue
    });
    assert!(outcome.unwrap().is_finished);
}

/// Plans DP-SGD for examples of so many features and two classes.
fn planned(features: usize) -> DpSgd {
    let mut recipe = recipe("steps = 2\n[privacy]\nepsilon = 1.0\ndelta = 1e-5\n[sampling]\nrate = 0.5");
    let facts = PublicFacts { records: Some(20), classes: Some(2) };
    let subject = Subject { shape: &[features], are_features: false, facts, schema: None };
    DpSgd::plan(&mut recipe, &mut Architecture::default(), &subject).unwrap()
}

fn pairs(names: &[&str]) -> Examples {
    let labels = (0..20).map(|row| row % 2).collect();
    let names = names.iter().map(ToString::to_string).collect();
    let users: Vec<_> = (0..20_u32).map(|row| Some((row / 2).to_le_bytes())).collect();
    let examples = Examples::numbers(&[2], vec![0.5; 40], Targets::Classes { labels, names }).unwrap();
    examples.with_users(&users).unwrap()
}

#[test]
fn data_of_another_width_or_with_other_classes_is_refused_before_payment() {
    let pay = |method: &DpSgd, examples: &Examples| {
        let (epsilon, delta) = (Epsilon::new(1.0).unwrap(), Delta::new(1e-5).unwrap());
        let mut ledger = InMemory::ledger("pairs", epsilon, delta).unwrap();
        let refused = method.train(examples, &mut ledger).err().map(|error| error.to_string());
        (refused, ledger.state().unwrap().charges().len())
    };
    assert_eq!(pay(&planned(2), &pairs(&["n", "p"])), (None, 1));
    let (refused, charges) = pay(&planned(3), &pairs(&["n", "p"]));
    assert!(refused.unwrap().contains("of 2 features") && charges == 0);
    let (refused, charges) = pay(&planned(2), &pairs(&["n", "p", "q"]));
    assert!(refused.unwrap().contains("3 classes") && charges == 0);
}

/// A user with two examples would move a sum of examples by twice what is charged.
#[test]
fn a_lease_of_a_ledger_with_another_unit_is_refused() {
    let (examples, method) = (pairs(&["n", "p"]), planned(2));
    let facts = PublicFacts { records: Some(20), classes: Some(2) };
    let subject = Subject { shape: &[2], are_features: false, facts, schema: None };
    let model = &mut Architecture::default();
    let mut settings = naive_bayes::Recipe::default();
    (settings.privacy.epsilon, settings.privacy.delta) = (Some(1.0), Some(1e-5));
    let linear = glm::Recipe { privacy: settings.privacy, ..glm::Recipe::default() };
    let sums = NaiveBayes::plan(&mut settings, model, &subject).unwrap();
    let descent = Glm::plan(&mut linear.clone(), &mut Architecture::default(), &subject).unwrap();
    let mut settings = glm::Recipe { method: Algorithm::OutputPerturbation, ..linear };
    let model = &mut Architecture::default();
    let minimized = Minimized::<OutputPerturbation>::plan(&mut settings, model, &subject).unwrap();
    for (of_ledger, of_task) in [(Unit::User, Unit::Example), (Unit::Example, Unit::User)] {
        let outcomes = [
            fit(&method, &examples, of_ledger, of_task),
            fit(&sums, &examples, of_ledger, of_task),
            fit(&descent, &examples, of_ledger, of_task),
            fit(&minimized, &examples, of_ledger, of_task),
        ];
        for refused in outcomes {
            assert!(matches!(refused, Err(Error::OtherTerms { .. })), "{refused:?}");
        }
        assert_eq!(fit(&method, &examples, of_ledger, of_ledger), Ok(()));
    }
}

/// Fits a method to records of one unit, with a lease of a ledger of another.
fn fit<M: Method>(method: &M, examples: &Examples, of_ledger: Unit, of_task: Unit) -> Result<(), Error> {
    let terms = Terms {
        dataset: "pairs".into(),
        unit: of_ledger,
        neighbors: Neighbors::AddRemove,
        budget: Budget { epsilon: Some(Epsilon::new(1.0).unwrap()), delta: Delta::new(1e-5).unwrap() },
        composition: Composition::Combined,
    };
    let mut ledger = Ledger::create(InMemory::new("pairs"), terms)?;
    let (mechanism, runs) = method.mechanism();
    let lease = ledger.reserve(mechanism, runs)?;
    let (mut task, mut state) = (method.task(examples, of_task)?, method.state(None)?);
    method.fit(lease, &mut task, &mut state, |_| Ok(Control::Continue))
}
