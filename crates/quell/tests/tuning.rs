//! Searches of settings: one plan, one charge, one model.

use std::path::PathBuf;

use quell::{
    Error,
    learner::{
        Control,
        dp_sgd::Clip,
        schedule::{Schedule, Shape},
    },
    run::{self, Candidate, Configuration, Folder, Job, Outcome, Tuning, TuningConfiguration},
};
use quell_ledger::{Location, Store, Volume};
use quell_privacy::{Event, ledger::Ledger};

use crate::scratch::Scratch;

/// A search of learning rates for the digits.
fn asked(epsilon: f64, expected: u32, rates: &[f64]) -> TuningConfiguration {
    let candidate = |rate: &f64| {
        let mut configuration = Configuration::digits().unwrap();
        configuration.budget = None;
        (configuration.model.name, configuration.training.steps) = (Some("logistic".into()), Some(20));
        configuration.training.schedule =
            Some(Schedule { learning_rate: *rate, warm_up: 0, shape: Shape::Constant });
        Candidate { name: format!("rate {rate}"), configuration }
    };
    TuningConfiguration {
        expected: expected.try_into().unwrap(),
        show_trials: false,
        epsilon,
        delta: None,
        score_epsilon: None,
        trial_epsilon: None,
        candidates: rates.iter().map(candidate).collect(),
    }
}

/// A search that tries all learning rates and shows their scores.
fn shown(epsilon: f64, rates: &[f64]) -> TuningConfiguration {
    let count = u32::try_from(rates.len()).unwrap();
    TuningConfiguration { show_trials: true, ..asked(epsilon, count, rates) }
}

/// A folder and a ledger for one search.
struct Place {
    path: PathBuf,
    folder: Folder,
    ledger: Ledger<Volume>,
}

impl Place {
    fn new(job: &Tuning) -> Self {
        let path = Scratch::new("tune", "").path().with_extension("folder");
        std::fs::create_dir_all(&path).unwrap();
        let store = Store::create(Location::File(path.join("ledger.db"))).unwrap();
        let ledger = Ledger::create(store.book(&job.dataset()).unwrap(), job.terms().unwrap()).unwrap();
        Self { folder: Folder::create(&path.join("run")).unwrap(), ledger, path }
    }

    fn go(&mut self, job: &Tuning, control: Control) -> Result<Outcome, Error> {
        let of = if job.configuration.show_trials { job.configuration.candidates.len() as u64 } else { 0 };
        job.go(&mut self.ledger, &self.folder, &mut |progress| {
            assert_eq!((progress.of, progress.accuracy), (of, None), "only shown trials are counted");
            assert!(progress.done <= of);
            control
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[test]
fn a_search_pays_once_and_releases_one_model() {
    let job = Tuning::new(asked(2.0, 4, &[1.0, 2.0])).unwrap();
    let mut place = Place::new(&job);
    let outcome = place.go(&job, Control::Continue).unwrap();
    assert!(outcome.is_finished, "{outcome:?}");
    let state = place.ledger.state().unwrap();
    assert_eq!(state.charges().len(), 1);
    let spent = state.spent().epsilon;
    assert!(spent <= 2.0 && spent > 1.9, "{spent}");
    let model = place.folder.model().unwrap();
    let search = model.configuration.search.as_ref().unwrap();
    assert!(search.winner.starts_with("rate ") && search.candidates.len() == 2);
    // The report states the cost of the search, not that of the trial.
    let event = model.description().unwrap().event;
    assert_eq!(event, state.charges()[0].charge.plan.event);
    assert!(matches!(event, Event::BestOf { expected: 4, .. }));
    // Time would tell the number of trials.
    let metrics = place.folder.metrics().unwrap();
    assert_eq!((metrics.seconds, metrics.points.len()), (0.0, 0));
    let trial = job.configuration.trial_epsilon.unwrap();
    assert!(trial < 1.8 && trial > 0.8, "{trial}");
    assert!(!place.folder.file("private").exists());
    // The same command again shows the same model, for nothing.
    let again = place.go(&job, Control::Continue).unwrap();
    assert_eq!(again.results[0], outcome.results[0]);
    assert_eq!(place.ledger.state().unwrap().charges().len(), 1);
}

/// Continues a job in its folder.
struct Again<'a>(&'a mut Ledger<Volume>, &'a Folder);

impl run::Driver for Again<'_> {
    type Output = Result<Outcome, Error>;

    fn drive<J: Job>(self, job: &J) -> Self::Output {
        job.go(self.0, self.1, &mut |_| Control::Continue)
    }
}

#[test]
fn a_stopped_search_shows_nothing_and_goes_on() {
    let job = Tuning::new(asked(2.0, 3, &[1.0])).unwrap();
    let mut place = Place::new(&job);
    let stopped = place.go(&job, Control::Stop).unwrap();
    assert!(!stopped.is_finished && stopped.results.is_empty() && stopped.json.is_empty(), "{stopped:?}");
    assert!(place.folder.model().is_err());
    // From the settings in the folder, the same search follows.
    let finished = run::resume(&place.folder, Again(&mut place.ledger, &place.folder)).unwrap().unwrap();
    assert!(finished.is_finished);
    assert_eq!(place.ledger.state().unwrap().charges().len(), 1);
}

#[test]
fn a_copy_of_a_search_cannot_release_a_second_model() {
    let job = Tuning::new(asked(2.0, 3, &[1.0])).unwrap();
    let mut place = Place::new(&job);
    assert!(!place.go(&job, Control::Stop).unwrap().is_finished);
    let copy = place.path.join("copy");
    std::fs::create_dir(&copy).unwrap();
    for entry in std::fs::read_dir(place.folder.path()).unwrap().map(Result::unwrap) {
        if entry.path().is_file() {
            std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
        }
    }
    assert!(place.go(&job, Control::Continue).unwrap().is_finished);
    let copy = Folder::open(&copy).unwrap();
    let refused = job.go(&mut place.ledger, &copy, &mut |_| Control::Continue);
    assert!(matches!(refused, Err(Error::Run(run::Error::SearchReleased { .. }))), "{refused:?}");
    assert!(copy.model().is_err());
}

/// Whether the best model can be written is a property of the best trial: it is seen once.
#[test]
fn a_search_whose_best_model_cannot_be_written_is_over() {
    let mut overflowing = asked(2.0, 3, &[1e30]);
    overflowing.candidates[0].configuration.training.clipping = Some(Clip::Flat { norm: 1e20 });
    let job = Tuning::new(overflowing).unwrap();
    let mut place = Place::new(&job);
    // The weights overflow in every trial.
    assert!(place.go(&job, Control::Continue).is_err());
    // Without the private files, another search would show another outcome.
    std::fs::remove_dir_all(place.folder.file("private")).unwrap();
    let second = place.go(&job, Control::Continue);
    assert!(matches!(second, Err(Error::Run(run::Error::SearchReleased { .. }))), "{second:?}");
}

#[test]
fn candidates_of_different_data_are_refused() {
    let mut different = asked(2.0, 3, &[1.0, 2.0]);
    different.candidates[1].configuration.data.dataset = Some("other".into());
    let refused = Tuning::new(different).err().map(|error| error.to_string());
    assert!(refused.is_some_and(|words| words.contains("the data is different in two candidates")));
}

#[test]
fn the_better_settings_win_almost_always() {
    // A learning rate of nearly zero learns nothing.
    let job = Tuning::new(asked(4.0, 30, &[1e-9, 2.0])).unwrap();
    let winner = |_| {
        let mut place = Place::new(&job);
        place.go(&job, Control::Continue).unwrap();
        place.folder.model().unwrap().configuration.search.unwrap().winner
    };
    // A search tries only the worse one in one of 31 cases; in ten of twelve, once in 10¹³ runs.
    let good = (0..12).map(winner).filter(|winner| winner == "rate 2").count();
    assert!(good > 2, "{good}");
}

#[test]
fn more_trials_leave_less_for_each() {
    let trial =
        |expected| Tuning::new(asked(2.0, expected, &[1.0])).unwrap().configuration.trial_epsilon.unwrap();
    let (one, ten, hundred) = (trial(1), trial(10), trial(100));
    // What a single trial costs, with all its roundings, is the ε of the search.
    assert!(one > 1.95 && one < 2.02, "{one}");
    assert!(hundred < ten && ten < one && hundred > 0.3 * one, "{one} {ten} {hundred}");
}

#[test]
fn searches_that_cannot_be_compared_are_refused_before_payment() {
    let refused = |asked| match Tuning::new(asked).err() {
        Some(error) => error.to_string(),
        None => "planned".into(),
    };
    assert!(refused(asked(2.0, 3, &[])).contains("candidates"));
    assert!(refused(asked(-1.0, 3, &[1.0])).contains("epsilon"));
}

#[test]
fn a_search_that_shows_its_trials_pays_for_all_of_them() {
    let job = Tuning::new(shown(2.0, &[1e-9, 1.0, 2.0])).unwrap();
    let mut place = Place::new(&job);
    let outcome = place.go(&job, Control::Continue).unwrap();
    assert!(outcome.is_finished && outcome.remarks.is_empty(), "{outcome:?}");
    let state = place.ledger.state().unwrap();
    assert_eq!(state.charges().len(), 1);
    let spent = state.spent().epsilon;
    assert!(spent <= 2.0 && spent > 1.9, "{spent}");
    // Three trials cost more than one, and less than three times as much.
    let trial = job.configuration.trial_epsilon.unwrap();
    assert!(trial < 2.0 / 1.5 && trial > 2.0 / 3.0, "{trial}");
    let model = place.folder.model().unwrap();
    assert_eq!(model.description().unwrap().event, state.charges()[0].charge.plan.event);
    // The model is the trial with the highest of the scores.
    let trials = place.folder.metrics().unwrap().trials;
    let names: Vec<&str> = trials.iter().map(|trial| trial.settings.as_str()).collect();
    assert_eq!(names, ["rate 0.000000001", "rate 1", "rate 2"]);
    let best = trials.iter().max_by(|a, b| a.value.unwrap().total_cmp(&b.value.unwrap())).unwrap();
    assert_eq!(model.configuration.search.unwrap().winner, best.settings);
    assert!(trials[0].value < best.value, "{trials:?}");
    let table = outcome.results.iter().position(|line| line == "accuracy of all trials:").unwrap();
    assert!(outcome.results[table + 1].ends_with(" %  rate 0.000000001"), "{:?}", outcome.results);
    assert!(!place.folder.file("private").exists());
}

#[test]
fn a_stopped_search_that_shows_its_trials_goes_on_with_the_next_trial() {
    let job = Tuning::new(shown(2.0, &[1.0, 2.0])).unwrap();
    let mut place = Place::new(&job);
    assert!(!place.go(&job, Control::Stop).unwrap().is_finished);
    let finished = run::resume(&place.folder, Again(&mut place.ledger, &place.folder)).unwrap().unwrap();
    assert!(finished.is_finished);
    assert_eq!(place.folder.metrics().unwrap().trials.len(), 2, "no trial is lost");
    assert_eq!(place.ledger.state().unwrap().charges().len(), 1);
}

#[test]
fn a_trial_that_was_killed_is_charged_and_not_repeated() {
    let job = Tuning::new(shown(2.0, &[1.0, 2.0])).unwrap();
    let mut place = Place::new(&job);
    assert!(!place.go(&job, Control::Stop).unwrap().is_finished);
    // As if the program was killed before the first trial was saved.
    std::fs::remove_dir_all(place.folder.file("private")).unwrap();
    assert!(place.go(&job, Control::Continue).unwrap().is_finished);
    let trials = place.folder.metrics().unwrap().trials;
    assert_eq!(trials.len(), 1);
    assert_eq!(place.folder.model().unwrap().configuration.search.unwrap().winner, "rate 2");
}

/// The test part of a table is private, so each trial pays for a noisy count.
#[test]
fn a_private_score_is_paid_for_and_kept() {
    let row = |row: usize| format!("{}.{row:04},{}\n", row % 9, ["no", "yes"][usize::from(row % 9 > 4)]);
    let rows = (0..2000).map(row).collect::<Vec<_>>().concat();
    let file = Scratch::new("score.csv", format!("x,y\n{rows}"));
    let text = format!(
        "[data]\npath = {:?}\n[data.schema.label]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n\
         [data.schema.test]\nshare = 0.2\n[[data.schema.column]]\nname = \"x\"\nbounds = [0, 9]\n[model]\nname = \"additive\"\n",
        file.path()
    );
    let mut configuration = Configuration::parse(&text).unwrap();
    (configuration.glm.records, configuration.glm.privacy.epsilon) = (Some(1600), Some(2.0));
    let candidates = vec![Candidate { name: "additive".into(), configuration }];
    let job = Tuning::new(TuningConfiguration { candidates, ..asked(2.0, 3, &[1.0]) }).unwrap();
    assert!(job.configuration.score_epsilon.is_some_and(|epsilon| epsilon > 0.1 && epsilon < 0.3));
    let mut place = Place::new(&job);
    let outcome = place.go(&job, Control::Continue).unwrap();
    // About 400 records are held out, and a line separates the classes.
    let correct = place.folder.metrics().unwrap().noisy_correct.unwrap();
    assert!(correct > 200.0 && correct < 600.0, "{correct}");
    assert!(outcome.results.iter().any(|line| line.contains(&format!("private test records: {correct}"))));
    assert_eq!(outcome.json["accuracy"], serde_json::Value::Null);
    // The same command again shows the same number.
    let again = place.go(&job, Control::Continue).unwrap();
    assert_eq!(again.results, outcome.results);
}
