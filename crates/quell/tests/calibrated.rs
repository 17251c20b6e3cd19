//! Networks on prepared records whose probabilities are calibrated: one more release in the same plan.

use quell::{
    Error,
    data::{Examples, Schema, Targets},
    learner::{
        Control, Evaluation, Method, PublicFacts, Subject,
        dp_sgd::{Clip, DpSgd, Recipe},
        prepared::{Preparation, Prepared, Recalibration},
    },
    ledger::{InMemory, Location, Store},
    network::Architecture,
    random::PublicRandom,
    run::{Configuration, Driver, Folder, Job, Model, train},
};
use quell_privacy::{
    Event, Neighbors,
    accounting::Pld,
    ledger::Ledger,
    mechanism::Mechanism,
    units::{Delta, Epsilon, NoiseMultiplier, SamplingRate},
};

use crate::scratch::Scratch;

const RECORDS: usize = 8_000;

/// Two columns, and a class that follows from one of them with a probability between 0.1 and 0.9.
fn uncertain(seed: u64) -> (Vec<f32>, Vec<u32>) {
    let mut chance = PublicRandom::of(21, seed);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..RECORDS {
        let x = [chance.between(-1.0, 1.0), chance.between(-1.0, 1.0)];
        let probability = 1.0 / (1.0 + (-2.2 * x[0]).exp());
        values.extend(x);
        labels.push(u32::from(chance.between(0.0, 1.0) < probability));
    }
    (values, labels)
}

fn examples(seed: u64) -> Examples {
    let (values, labels) = uncertain(seed);
    let targets = Targets::Classes { labels, names: vec!["no".into(), "yes".into()] };
    Examples::numbers(&[2], values, targets).unwrap()
}

/// Gradients are clipped so much that a network becomes far too sure.
fn recipe(calibration: Option<Recalibration>) -> Recipe {
    let mut recipe = Recipe { steps: Some(150), calibration, ..Recipe::default() };
    recipe.preparation = Some(Preparation::Standardize { noise_multiplier: None });
    recipe.clipping = Some(Clip::Flat { norm: 0.05 });
    (recipe.privacy.epsilon, recipe.privacy.delta) = (Some(8.0), Some(1e-5));
    recipe.sampling.records = Some(RECORDS as u64);
    recipe
}

fn architecture() -> Architecture {
    Architecture { name: Some("mlp-small".into()), ..Architecture::default() }
}

fn planned(recipe: &mut Recipe) -> Result<Prepared, Error> {
    let facts = PublicFacts { records: Some(RECORDS as u64), classes: Some(2) };
    let subject = Subject { shape: &[2], are_features: false, facts, schema: None };
    Prepared::plan(recipe, &mut architecture(), &subject)
}

fn log_loss(evaluation: &Evaluation) -> f64 {
    let Evaluation::Classes { measures, .. } = evaluation else { panic!("{evaluation:?}") };
    measures.as_ref().unwrap().log_loss.unwrap()
}

/// In 40 runs without a calibration, the log loss was between 1.32 and 1.39, and 0.543 to 0.548 with one.
#[test]
fn a_network_that_is_too_sure_is_corrected() {
    let (train, test) = (examples(1), examples(2));
    let of = |calibration: Option<Recalibration>| {
        let mut ledger =
            InMemory::ledger("table", Epsilon::new(8.0).unwrap(), Delta::new(1e-5).unwrap()).unwrap();
        let model = planned(&mut recipe(calibration)).unwrap().train(&train, &mut ledger).unwrap();
        let evaluation = model.evaluate(&test);
        (log_loss(&evaluation), evaluation.accuracy().unwrap())
    };
    let ((usual, accuracy), (without, before)) = (of(None), of(Some(Recalibration::None {})));
    assert!(without > 0.65 && usual < 0.6, "{usual} {without}");
    assert!(accuracy > before - 0.05, "{accuracy} {before}");
}

/// The ledger is charged for the preparation, the steps and the calibration, and for nothing else.
#[test]
fn the_charge_is_the_epsilon_of_all_runs_together() {
    let mut asked = recipe(Some(Recalibration::Scores { noise_multiplier: Some(6.0) }));
    asked.preparation = Some(Preparation::Standardize { noise_multiplier: Some(7.0) });
    (asked.privacy.epsilon, asked.privacy.noise_multiplier) = (None, Some(2.0));
    asked.sampling.rate = Some(0.1);
    let method = planned(&mut asked).unwrap();
    let noise = |z: f64| NoiseMultiplier::new(z).unwrap();
    let steps = Event::dp_sgd(noise(2.0), SamplingRate::new(0.1).unwrap(), 150);
    let (prepares, calibrates) = (Event::gaussian(noise(7.0)), Event::gaussian(noise(6.0)));
    let (neighbors, delta) = (Neighbors::AddRemove, Delta::new(1e-5).unwrap());
    let epsilon =
        |events: Vec<Event>| Pld::default().epsilon(&Event::Composed(events), neighbors, delta).unwrap();
    let truth = epsilon(vec![prepares.clone(), steps.clone(), calibrates]);
    let without = epsilon(vec![prepares, steps]);
    let stated = method.cost().epsilon;
    assert!(stated.upper >= truth.lower && stated.upper <= 1.01 * truth.upper, "{stated:?} {truth:?}");
    assert!(stated.lower > without.upper, "the calibration costs something: {stated:?} {without:?}");
    let (mechanism, runs) = method.mechanism();
    assert_eq!(runs, 2 + 150 + 1);
    let kinds = [0, 1, 2, 151, 152].map(|run| mechanism.clone().at_run(run).descent);
    assert_eq!(kinds[0], kinds[1]);
    assert_eq!(kinds[2], kinds[3]);
    assert_eq!((kinds[4].noise_multiplier.get(), kinds[4].dimension), (6.0, 56));
    // What is charged is what was quoted, and what the accountant says about the event of the plan.
    let mut ledger = InMemory::ledger("table", Epsilon::new(20.0).unwrap(), delta).unwrap();
    method.train(&examples(1), &mut ledger).unwrap();
    let charged = ledger.state().unwrap().spent().epsilon;
    assert!(charged >= truth.lower && charged <= 1.01 * truth.upper, "{charged} {truth:?}");
    // After all steps, the calibration is not spent yet.
    assert!(method.spent_after(152).unwrap() <= 1.01 * without.upper);
}

/// Settings of a run that an earlier version wrote have noise and no calibration: nothing is added to them.
#[test]
fn complete_settings_yield_the_same_plan_again_with_and_without_a_calibration() {
    let mut asked = recipe(None);
    let first = planned(&mut asked).unwrap();
    assert!(matches!(asked.calibration, Some(Recalibration::Scores { noise_multiplier: Some(_) })));
    let text = toml::to_string(&asked).unwrap();
    let mut again: Recipe = toml::from_str(&text).unwrap();
    assert_eq!(planned(&mut again).unwrap().mechanism(), first.mechanism());
    assert_eq!(again, asked);
    // As an earlier version planned it.
    let mut earlier = recipe(Some(Recalibration::None {}));
    let without = planned(&mut earlier).unwrap();
    earlier.calibration = None;
    let text = toml::to_string(&earlier).unwrap();
    assert!(!text.contains("calibration"), "{text}");
    let mut resumed: Recipe = toml::from_str(&text).unwrap();
    let resumed_plan = planned(&mut resumed).unwrap();
    assert_eq!(resumed_plan.mechanism(), without.mechanism());
    assert_eq!((resumed.calibration, resumed_plan.mechanism().1), (None, 152));
}

#[test]
fn settings_that_do_not_fit_a_calibration_are_refused() {
    let named = |asked: Result<Prepared, Error>| match asked.err() {
        Some(Error::Setting { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    let scores = |noise_multiplier| Some(Recalibration::Scores { noise_multiplier });
    assert_eq!(named(planned(&mut recipe(scores(Some(0.4))))), "noise multiplier of the calibration");
    // Without ε, nothing says how much noise it has.
    let mut noise = recipe(scores(None));
    noise.preparation = Some(Preparation::Standardize { noise_multiplier: Some(7.0) });
    (noise.privacy.epsilon, noise.privacy.noise_multiplier) = (None, Some(2.0));
    assert!(matches!(planned(&mut noise).err(), Some(Error::Missing { .. })));
    // DP-SGD alone does not ignore it.
    let mut plain = Recipe { preparation: None, ..recipe(scores(None)) };
    let facts = PublicFacts { records: Some(1_000), classes: Some(2) };
    let subject = Subject { shape: &[2], are_features: false, facts, schema: None };
    let refused = DpSgd::plan(&mut plain, &mut architecture(), &subject).err();
    assert!(matches!(refused, Some(Error::Setting { name: "calibration", .. })), "{refused:?}");
    plain.calibration = Some(Recalibration::None {});
    assert!(DpSgd::plan(&mut plain, &mut architecture(), &subject).is_ok());
}

/// The table of [`uncertain`] in a file, and a run on it that has 2 + `steps` + 1 steps.
fn configuration(table: &Scratch, steps: u64) -> Configuration {
    let schema = "[label]\ncolumn = 'y'\nclasses = ['no', 'yes']\n[[column]]\nname = 'a'\nbounds = [-1, 1]\n\
                  [[column]]\nname = 'b'\nbounds = [-1, 1]\n";
    let mut asked = Configuration::default();
    asked.data.path = Some(table.path().to_owned());
    asked.data.schema = Some(Schema::parse(schema).unwrap());
    (asked.training, asked.model) = (recipe(None), architecture());
    asked.training.steps = Some(steps);
    asked
}

/// Where a run stops, and what it does then.
#[derive(Clone, Copy, Debug)]
struct Break {
    /// The step after which the run stops.
    after: u64,
    /// Whether the process was killed later: what it saved afterwards is gone, and what it leased is not.
    is_killed: bool,
}

struct Broken {
    model: Model,
    remarks: Vec<String>,
    taken: u64,
}

impl Driver for Break {
    type Output = Broken;

    fn drive<J: Job>(self, job: &J) -> Broken {
        let place = Scratch::new("calibrated", "").path().with_extension("folder");
        let folder = Folder::create(&place).unwrap();
        let store = Store::create(Location::File(place.join("ledger.db"))).unwrap();
        let terms = job.terms().unwrap();
        let mut ledger = Ledger::create(store.book(&terms.dataset).unwrap(), terms).unwrap();
        let stopped = job.go(&mut ledger, &folder, &mut |progress| {
            if progress.done >= self.after { Control::Stop } else { Control::Continue }
        });
        assert!(!stopped.unwrap().is_finished, "{self:?}");
        let checkpoint = std::fs::read(folder.file("checkpoint.safetensors")).unwrap();
        let mut last = job.go(&mut ledger, &folder, &mut |_| Control::Continue).unwrap();
        if self.is_killed {
            std::fs::remove_file(folder.file(Folder::MODEL)).unwrap();
            std::fs::write(folder.file("checkpoint.safetensors"), checkpoint).unwrap();
            last = job.go(&mut ledger, &folder, &mut |_| Control::Continue).unwrap();
        }
        assert!(last.is_finished, "{self:?}");
        assert_eq!(ledger.state().unwrap().charges().len(), 1);
        assert!(ledger.state().unwrap().spent().epsilon <= 8.0);
        let (model, taken) = (folder.model().unwrap(), folder.metrics().unwrap().taken);
        let _ = std::fs::remove_dir_all(&place);
        Broken { model, remarks: last.remarks, taken }
    }
}

#[test]
fn a_run_goes_on_wherever_it_is_broken_off_and_says_if_its_calibration_is_lost() {
    let (values, labels) = uncertain(1);
    let rows = values.chunks_exact(2).zip(&labels);
    let rows: Vec<String> =
        rows.map(|(x, y)| format!("{},{},{}", x[0], x[1], ["no", "yes"][*y as usize])).collect();
    let table = Scratch::new("uncertain.csv", format!("a,b,y\n{}\n", rows.join("\n")));
    let test = examples(2);
    // In blocks of 7, the last of 153 runs is in a block with five steps. The last of 155 is alone.
    let breaks = |steps: u64, of: &[(u64, bool, bool)]| {
        for &(after, is_killed, is_lost) in of {
            let broken = train(configuration(&table, steps), Break { after, is_killed }).unwrap();
            let case = format!("{steps} steps, after {after}, killed: {is_killed}");
            let says = broken.remarks.iter().any(|remark| remark.contains("not calibrated"));
            assert_eq!(says, is_lost, "{case}: {:?}", broken.remarks);
            let found = log_loss(&broken.model.predictor.evaluate(&test));
            // After few steps, a network is not sure of anything.
            let (is_right, is_wrong) = (found < 0.62, found > 0.62 || after < 100);
            assert!(if is_lost { is_wrong } else { is_right }, "{case}: {found}");
            assert!(broken.taken <= steps + 3 && broken.taken > 0, "{case}");
            let again = Model::restore(&broken.model.save().unwrap()).unwrap();
            assert_eq!(again.digest().unwrap(), broken.model.digest().unwrap(), "{case}");
        }
    };
    breaks(
        150,
        &[
            (1, false, false),
            (2, false, false),
            (60, false, false),
            // Within the last block, at whose end the run stops.
            (152, false, false),
            // After the calibration, which was saved.
            (153, false, false),
            // Killed before the calibration was saved.
            (60, true, true),
            (140, true, true),
        ],
    );
    breaks(152, &[(154, false, false), (155, true, false)]);
}
