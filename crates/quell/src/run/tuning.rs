//! A job that searches settings: it trains with several, and releases the best model alone.
//!
//! The search is one plan of the ledger ([`BestOf`]). What the trials release stays in the subfolder `private`
//! until the search has ended; then the best model leaves, and the rest is forgotten. The number of trials and
//! the time of the search stay hidden, because the guarantee needs that.

use std::num::NonZero;

use quell_privacy::{
    Bound, Event, Neighbors,
    ledger::{Book, Ledger, Note, Spent, Terms, Trial, Unit},
    mechanism::{Best, BestOf, Count, Price, Sensitive, TrialPlan},
    number::format_brief,
    units::{Delta, Epsilon},
};
use serde::{Deserialize, Serialize};

use super::{
    Configuration, Covered, Folder, Guarantee, Job, Metrics, Outcome, PaymentRecord, Progress, Registered,
    Settings, Training, Watch, charge,
    configuration::to_toml,
    registry::{ForMethod, LearnerSettings as _, with_method},
};
use crate::{
    Error,
    data::Schema,
    features::Features,
    learner::{
        Control, Evaluation, PublicFacts, Snapshot as _, Subject,
        privacy::{charged, cost},
    },
    network::Architecture,
    range::POSITIVE,
    run,
};

/// The settings of a search, as `tune.toml` holds them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuningConfiguration {
    /// Expected number of trials. After each trial the search ends with probability one over it.
    pub expected: NonZero<u32>,
    /// ε of the whole search.
    pub epsilon: f64,
    /// δ of the whole search. Chosen by the number of records if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// ε of the noisy score of each trial, if the test records are private.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_epsilon: Option<f64>,
    /// ε of each trial without its score, at δ over the expected number of trials. Chosen by the search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial_epsilon: Option<f64>,
    /// The settings that trials are drawn from.
    pub candidates: Vec<Candidate>,
}

/// The settings of one kind of trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// What distinguishes it from the others, in the words of the user.
    pub name: String,
    /// All its settings.
    pub configuration: Configuration,
}

/// How the settings of a model were found, as its file records it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchRecord {
    /// Expected number of trials.
    pub expected: u32,
    /// The candidate that won.
    pub winner: String,
    /// All candidates, in words.
    pub candidates: Vec<String>,
    /// Whether the score was computed on private test records, with noise.
    pub private_score: bool,
    /// The privacy event of a trial of each kind, as JSON.
    pub trials: Vec<String>,
}

impl SearchRecord {
    /// The privacy event of the search; `None` if the record is damaged.
    pub(super) fn event(&self) -> Option<Event> {
        let trials: Option<Vec<Event>> =
            self.trials.iter().map(|trial| serde_json::from_str(trial).ok()).collect();
        Some(Event::BestOf { expected: self.expected, trials: trials? })
    }
}

/// A job that searches settings: its complete settings and its plan.
pub struct Tuning {
    /// The settings, with defaults filled in.
    pub configuration: TuningConfiguration,
    search: BestOf,
    trials: Vec<TrialPlan>,
    guarantee: Guarantee,
    /// The mechanism of a private score.
    score: Option<Count>,
}

/// What a trial found, until it is released.
pub(super) struct Found {
    pub(super) checkpoint: Vec<u8>,
    pub(super) evaluation: Option<Evaluation>,
}

/// The best trial so far, as a private file holds it before the bytes of the checkpoint.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    /// The bits of the score. JSON has no infinity.
    score: u64,
    kind: usize,
    evaluation: Option<Evaluation>,
    /// Whether the search has ended.
    has_ended: bool,
}

/// Public facts about the data of a candidate, without which it cannot be planned.
struct Facts {
    shape: Vec<usize>,
    are_features: bool,
    public: PublicFacts,
    schema: Option<Schema>,
    unit: Unit,
    score_is_public: bool,
    /// The data with its pinned facts, and the features and the model that were chosen for it.
    chosen: (run::Source, Option<Features>, Option<String>),
}

/// The share of ε that the score of a trial costs if it is private and not given.
const SCORE_SHARE: f64 = 0.1;

/// ε of a search over ε of its trials, for the first attempt.
const USUAL_RATIO: f64 = 1.7;

/// A plan is accepted if it uses at least this share of ε.
const ENOUGH: f64 = 0.985;

/// Most plans that are made to meet ε.
const ATTEMPTS: usize = 8;

impl Tuning {
    /// Reads the data and completes the settings. Nothing is paid.
    pub fn new(mut configuration: TuningConfiguration) -> Result<Self, Error> {
        POSITIVE.check("epsilon", configuration.epsilon)?;
        if configuration.candidates.is_empty() {
            let found = "none".into();
            return Err(Error::Setting { name: "candidates", found, expected: "at least one" });
        }
        let mut all = Vec::new();
        for candidate in &mut configuration.candidates {
            let settings = std::mem::take(&mut candidate.configuration).with_learner()?;
            let facts = with_method(&settings.clone(), Inspect(settings.clone()))?;
            let (data, features, name) = facts.chosen.clone();
            let model = Architecture { name, ..settings.model.clone() };
            candidate.configuration = Configuration { data, features, model, ..settings };
            all.push(facts);
        }
        let data = |candidate: &Candidate| run::Source {
            // Features may scale the records.
            scaling: None,
            ..candidate.configuration.data.clone()
        };
        let first = data(&configuration.candidates[0]);
        if configuration.candidates.iter().any(|candidate| data(candidate) != first) {
            return Err(Error::Setting {
                name: "the data",
                found: "different in two candidates".into(),
                expected: "the same in all: one ledger pays for the search",
            });
        }
        let is_public = all.iter().all(|facts| facts.score_is_public);
        if !is_public && all.iter().any(|facts| facts.unit == Unit::User) {
            return Err(Error::Setting {
                name: "the test records",
                found: "private, and the search protects users".into(),
                expected: "public test records: a private score protects records alone",
            });
        }
        let neighbors = configuration.candidates[0].privacy()?.neighbors;
        let delta = if let Some(delta) = configuration.delta {
            Delta::new(delta)?
        } else {
            // The δ that a single training would have.
            let mut alone = configuration.candidates[0].clone();
            alone.set_target(configuration.epsilon, None)?;
            alone.plan(&all[0])?.1
        };
        configuration.delta = Some(delta.get());
        let unit = all[0].unit;
        let search = Search { facts: &all, is_public, neighbors, delta };
        let resumes = configuration.trial_epsilon.is_some();
        let mut trial_epsilon = configuration.trial_epsilon.unwrap_or(configuration.epsilon / USUAL_RATIO);
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let planned = search.plan(&configuration, trial_epsilon)?;
            let total = planned.3.upper;
            let fits = total <= configuration.epsilon;
            let is_enough = total >= ENOUGH * configuration.epsilon;
            if fits {
                last = Some((planned, trial_epsilon));
            }
            if resumes || (fits && is_enough) {
                break;
            }
            trial_epsilon *= configuration.epsilon / total * if fits { 0.9995 } else { 0.998 };
        }
        let Some(((best_of, trials, completed, epsilon, score), trial_epsilon)) = last else {
            return Err(Error::Setting {
                name: "epsilon",
                found: format!("{}, too little for this search", format_brief(configuration.epsilon)),
                expected: "a larger ε, or fewer expected trials",
            });
        };
        configuration.candidates = completed;
        configuration.trial_epsilon = Some(trial_epsilon);
        configuration.score_epsilon = score.map(|(epsilon, _)| epsilon);
        let guarantee = Guarantee { epsilon, delta, unit, neighbors, covers: Covered::Everything };
        let score = score.map(|(_, count)| count);
        Ok(Self { configuration, search: best_of, trials, guarantee, score })
    }

    fn source(&self) -> &run::Source {
        // There is at least one candidate.
        &self.configuration.candidates[0].configuration.data
    }

    /// Runs one trial; `None` if it was stopped.
    fn run_trial(&self, trial: &mut Trial, watch: &mut Watch<'_>) -> Result<Option<(f64, Found)>, Error> {
        let settings = self.configuration.candidates[trial.kind()].configuration.clone();
        let mut should_stop = || watch(Progress::hidden("searching")) == Control::Stop;
        with_method(
            &settings.clone(),
            RunTrial { settings, trial, score: self.score, should_stop: &mut should_stop },
        )
    }

    /// Takes the right to release, and releases the best trial.
    ///
    /// The folder keeps the right beside the trial, so that a run that is killed afterwards releases the same trial.
    fn released<B: Book>(
        &self,
        best: Best<Found>,
        ledger: &mut Ledger<B>,
        folder: &Folder,
    ) -> Result<Best<Found>, Error> {
        if folder.read_private(RIGHT)?.is_some() {
            return Ok(best);
        }
        let cost = (self.guarantee.epsilon, self.guarantee.delta);
        let (lease, _) = charge::lease(ledger, folder, (self.search.clone(), BestOf::RUNS), cost)?;
        let Some(last) = lease.in_blocks_of(BestOf::RUNS).last().transpose()? else {
            return Err(run::Error::SearchReleased { path: folder.path().to_owned() }.into());
        };
        let best = last.release(best)?;
        folder.write_private(RIGHT, &[])?;
        Ok(best)
    }

    fn record(&self, winner: usize) -> Result<SearchRecord, Error> {
        let name = |candidate: &Candidate| candidate.name.clone();
        let text = |trial: &TrialPlan| {
            serde_json::to_string(&trial.event())
                .map_err(|_| Error::saved("tune.toml", "not writable", "an event"))
        };
        Ok(SearchRecord {
            expected: self.configuration.expected.get(),
            winner: name(&self.configuration.candidates[winner]),
            candidates: self.configuration.candidates.iter().map(name).collect(),
            private_score: self.score.is_some(),
            trials: self.trials.iter().map(text).collect::<Result<_, _>>()?,
        })
    }

    fn outcome(&self, folder: &Folder, paid: PaymentRecord, score: Option<f64>) -> Result<Outcome, Error> {
        let model = folder.model()?;
        let record = model.configuration.search.clone();
        let winner = record.as_ref().map_or("", |record| record.winner.as_str());
        let metrics = folder.metrics()?;
        let mut results = vec![format!("best settings: {winner}")];
        results.extend(metrics.evaluation.iter().map(|found| found.describe("public test records")));
        let correct = score.filter(|_| self.score.is_some());
        results.extend(correct.map(|correct| {
            format!("noisy number of correct predictions on private test records: {correct}")
        }));
        results.extend(model.summary());
        let json = serde_json::json!({
            "best": winner,
            "candidates": record.map(|record| record.candidates),
            "accuracy": metrics.evaluation.as_ref().and_then(Evaluation::accuracy),
            "evaluation": metrics.evaluation,
            "noisy_correct": correct,
        });
        Ok(Outcome {
            is_finished: true,
            position: "the search".into(),
            paid: Some(paid),
            results,
            remarks: vec![
                "the number of trials and the time of a search are private: do not publish them".into(),
            ],
            json: json.as_object().cloned().unwrap_or_default(),
            answers: None,
        })
    }
}

/// What all plans of one search have in common.
struct Search<'a> {
    facts: &'a [Facts],
    is_public: bool,
    neighbors: Neighbors,
    delta: Delta,
}

/// A planned search: its mechanism, its trials, the complete settings, its ε, and its private score.
type Planned = (BestOf, Vec<TrialPlan>, Vec<Candidate>, Bound, Option<(f64, Count)>);

impl Search<'_> {
    /// Plans the search with this ε for each trial.
    fn plan(&self, settings: &TuningConfiguration, trial_epsilon: f64) -> Result<Planned, Error> {
        let Self { facts, is_public, neighbors, delta } = *self;
        let score = if is_public {
            None
        } else {
            let epsilon = settings.score_epsilon.unwrap_or(SCORE_SHARE * settings.epsilon);
            let price = Price::laplace(Epsilon::new(epsilon)?).under(neighbors);
            Some((epsilon, Count::for_epsilon(price)?))
        };
        let trial_delta = delta.get() / f64::from(settings.expected.get());
        let (mut trials, mut completed) = (Vec::new(), Vec::new());
        for (candidate, facts) in settings.candidates.iter().zip(facts) {
            let mut candidate = candidate.clone();
            candidate.set_target(trial_epsilon, Some(trial_delta))?;
            if candidate.privacy()?.neighbors != neighbors {
                return Err(Error::Setting {
                    name: "neighbors",
                    found: "different in two candidates".into(),
                    expected: "the same in all",
                });
            }
            let mut trial = candidate.plan(facts)?.0;
            if let Some((_, count)) = score {
                trial = trial.then(&count, 1, neighbors);
            }
            trials.push(trial);
            completed.push(candidate);
        }
        let search = BestOf::new(settings.expected, trials.clone(), neighbors);
        let ideal = cost(&search, BestOf::RUNS, neighbors, delta)?;
        let upper = ideal.upper.max(charged(&search, BestOf::RUNS, (neighbors, delta), settings.epsilon)?);
        Ok((search, trials, completed, Bound { upper, ..ideal }, score))
    }
}

impl Candidate {
    fn section(&mut self) -> Result<&mut dyn crate::learner::section::Section, Error> {
        let learner = self
            .configuration
            .learner
            .ok_or_else(|| Error::saved("tune.toml", "without a learner", "one"))?;
        Ok((learner.row().section)(&mut self.configuration))
    }

    fn privacy(&mut self) -> Result<crate::learner::Privacy, Error> {
        Ok(*self.section()?.guarantee().0)
    }

    /// Sets ε and δ of the candidate. The noise follows from them.
    fn set_target(&mut self, epsilon: f64, delta: Option<f64>) -> Result<(), Error> {
        let privacy = self.section()?.guarantee().0;
        (privacy.epsilon, privacy.noise_multiplier) = (Some(epsilon), None);
        privacy.delta = delta;
        Ok(())
    }

    /// Plans the candidate, completes its settings, and returns its trial with its δ.
    fn plan(&mut self, facts: &Facts) -> Result<(TrialPlan, Delta), Error> {
        struct Plan<'a>(&'a mut Configuration, &'a Facts);
        impl ForMethod for Plan<'_> {
            type Output = Result<(TrialPlan, Delta), Error>;

            fn call<M: Registered>(self) -> Self::Output {
                let Facts { shape, are_features, public, schema, .. } = self.1;
                let subject = Subject {
                    shape,
                    are_features: *are_features,
                    facts: public.clone(),
                    schema: schema.as_ref(),
                };
                let (recipe, model) = M::Recipe::section(self.0);
                let method = M::plan(recipe, model, &subject)?;
                let (mechanism, runs) = method.mechanism();
                let cost = method.cost();
                Ok((TrialPlan::default().then(&mechanism, runs, cost.neighbors), cost.delta))
            }
        }
        let settings = self.configuration.clone();
        with_method(&settings, Plan(&mut self.configuration, facts))
    }
}

/// Reads the data of a candidate and returns public facts about it.
struct Inspect(Configuration);

impl ForMethod for Inspect {
    type Output = Result<Facts, Error>;

    fn call<M: Registered>(self) -> Self::Output {
        let training = Training::<M>::new(self.0)?;
        let has_test = training.dataset.test.is_some();
        let score_is_public = training.public_test().is_some();
        if !has_test {
            return Err(Error::Setting {
                name: "the test records",
                found: "none".into(),
                expected: "records to compare the trials on: a public file (`test`), or a test part of the data",
            });
        }
        let train = &training.dataset.train;
        let cost = training.method.cost();
        let guarantee = Guarantee {
            epsilon: cost.epsilon,
            delta: cost.delta,
            unit: training.configuration.data.unit,
            neighbors: cost.neighbors,
            covers: Covered::Everything,
        };
        // The name and the budget of the ledger do not matter to a method.
        training.method.check(&guarantee.terms("search".into(), None, Some(1.0))?, train)?;
        if !score_is_public && train.classes().is_none() {
            return Err(Error::Setting {
                name: "the test records",
                found: "private, and the target is a number".into(),
                expected: "public test records: a private score exists for classes alone",
            });
        }
        let are_features = !training.configuration.computed_features().is_raw();
        let Configuration { data, features, model, .. } = &training.configuration;
        let schema = data.schema.as_ref().filter(|_| !are_features);
        Ok(Facts {
            shape: train.shape().to_vec(),
            are_features,
            public: PublicFacts {
                records: training.configuration.public_count(train),
                classes: train.classes().map(<[String]>::len),
            },
            schema: schema.map(|schema| M::Recipe::LEARNER.label_use().columns(schema)),
            unit: training.configuration.data.unit,
            score_is_public,
            chosen: (data.clone(), features.clone(), model.name.clone()),
        })
    }
}

/// Runs one trial of a search.
struct RunTrial<'a> {
    settings: Configuration,
    trial: &'a mut Trial,
    score: Option<Count>,
    should_stop: &'a mut dyn FnMut() -> bool,
}

impl ForMethod for RunTrial<'_> {
    type Output = Result<Option<(f64, Found)>, Error>;

    fn call<M: Registered>(self) -> Self::Output {
        let Self { settings, trial, score, should_stop } = self;
        let training = Training::<M>::new(settings)?;
        let method = &training.method;
        let mut task = method.task(&training.dataset.train, training.configuration.data.unit)?;
        let mut state = method.state(None)?;
        let (mechanism, runs) = method.mechanism();
        let mut is_stopped = false;
        method.fit(trial.lease(mechanism, runs)?, &mut task, &mut state, |_| {
            is_stopped = should_stop();
            Ok(if is_stopped { Control::Stop } else { Control::Continue })
        })?;
        if is_stopped {
            return Ok(None);
        }
        let predictor = method.model(&state);
        let evaluation = training.public_test().map(|test| predictor.evaluate(test));
        let score = match (score, &training.dataset.test, &evaluation) {
            (Some(count), Some(test), None) => {
                let correct = predictor.correct(test).into_iter().filter(|correct| *correct).count() as u64;
                // The lease of one run hands out one run.
                match trial.lease(count, 1)?.next() {
                    Some(paid) => paid?.run(&Sensitive::new(correct))?.value,
                    None => f64::NEG_INFINITY,
                }
            }
            (_, _, Some(evaluation)) => evaluation.goodness(),
            (_, _, None) => f64::NEG_INFINITY,
        };
        Ok(Some((score, Found { checkpoint: state.save()?, evaluation })))
    }
}

/// Prepares the files of the winner, without writing one.
struct Conclude<'a, B> {
    settings: Configuration,
    found: Found,
    folder: &'a Folder,
    ledger: &'a mut Ledger<B>,
}

/// The files of a released model, ready to be written.
struct Conclusion {
    configuration: Configuration,
    checkpoint: Vec<u8>,
    metrics: Metrics,
    model: Vec<u8>,
}

impl<B: Book> ForMethod for Conclude<'_, B> {
    type Output = Result<Conclusion, Error>;

    fn call<M: Registered>(self) -> Self::Output {
        let Self { settings, found, folder, ledger } = self;
        let training = Training::<M>::new(settings)?;
        let steps = training.method.steps();
        let bounds = training.configuration.data.target_bounds();
        let metrics = Metrics {
            steps,
            taken: steps,
            evaluation: found.evaluation.map(|evaluation| evaluation.in_units(bounds)),
            in_target_units: true,
            ..Metrics::default()
        };
        let model = training.model_at(&found.checkpoint, ledger, folder)?.save()?;
        Ok(Conclusion { configuration: training.configuration, checkpoint: found.checkpoint, metrics, model })
    }
}

impl Job for Tuning {
    fn dataset(&self) -> String {
        self.source().name()
    }

    fn former_names(&self) -> Vec<String> {
        self.source().former_names()
    }

    fn note(&self) -> Note {
        let subject = self.configuration.candidates[0].configuration.subject();
        Note {
            file: self.source().file_name(),
            release: Some(format!("best of several trials, such as a {subject}")),
            ..Note::default()
        }
    }

    fn is_demonstration(&self) -> bool {
        self.source().path.is_none()
    }

    fn guarantee(&self) -> Guarantee {
        self.guarantee
    }

    fn settings(&self) -> Result<Settings, Error> {
        let TuningConfiguration { expected, candidates, trial_epsilon, .. } = &self.configuration;
        let json = serde_json::json!({
            "configuration": self.configuration,
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta.get(),
            "trial_epsilon": trial_epsilon,
        });
        Ok(Settings {
            toml: to_toml(&self.configuration)?,
            json: json.as_object().cloned().unwrap_or_default(),
            amount: format!("a search of {expected} expected trials of {} candidates", candidates.len()),
        })
    }

    fn terms(&self) -> Result<Terms, Error> {
        let budget = self.configuration.candidates[0].configuration.budget;
        self.guarantee.terms(self.dataset(), budget, Some(self.configuration.epsilon))
    }

    fn quote<B: Book>(&self, ledger: &mut Ledger<B>) -> Result<Spent, Error> {
        self.guarantee.check(ledger)?;
        Ok(ledger.quote(&self.search, BestOf::RUNS)?.1)
    }

    fn go<B: Book>(
        &self,
        ledger: &mut Ledger<B>,
        folder: &Folder,
        watch: &mut Watch<'_>,
    ) -> Result<Outcome, Error> {
        let folder = &folder.clone().locked()?;
        self.guarantee.check(ledger)?;
        if !folder.is_search() {
            folder.write_search(&to_toml(&self.configuration)?)?;
        }
        let cost = (self.guarantee.epsilon, self.guarantee.delta);
        if folder.has_model() {
            return self.outcome(folder, folder.paid()?, None);
        }
        let (lease, paid) = charge::lease(ledger, folder, (self.search.clone(), BestOf::RUNS), cost)?;
        let mut lease = lease.in_blocks_of(1);
        let kept = folder.best(self.configuration.candidates.len())?;
        let best = match kept {
            Some((best, true)) => best,
            kept => {
                // One run is left for the release.
                let Some(attempt) = lease.next().transpose()?.filter(|_| lease.position() < BestOf::RUNS)
                else {
                    return Err(run::Error::SearchReleased { path: folder.path().to_owned() }.into());
                };
                let searched = attempt.search(
                    kept.map(|(best, _)| best),
                    |trial| self.run_trial(trial, watch),
                    |best, has_ended| folder.write_best(best, has_ended),
                )?;
                let Some(best) = searched else { return Ok(stopped(paid)) };
                best
            }
        };
        drop(lease);
        let best = self.released(best, ledger, folder)?;
        // From here on the best trial is public, and so is whether its model can be written.
        let (score, kind) = (best.score, best.kind);
        let mut settings = self.configuration.candidates[kind].configuration.clone();
        settings.search = Some(self.record(kind)?);
        let found = best.found;
        let conclusion = with_method(&settings.clone(), Conclude { settings, found, folder, ledger })?;
        let Conclusion { configuration, checkpoint, metrics, model } = conclusion;
        folder.write_configuration(&configuration)?;
        folder.write_checkpoint(&checkpoint)?;
        folder.write_metrics(&metrics)?;
        folder.write(Folder::MODEL, &model)?;
        folder.forget_private()?;
        self.outcome(folder, paid, Some(score))
    }
}

/// The outcome of a search that was stopped. It says nothing of the trials.
fn stopped(paid: PaymentRecord) -> Outcome {
    Outcome {
        is_finished: false,
        position: "a part of the search".into(),
        paid: Some(paid),
        results: Vec::new(),
        remarks: Vec::new(),
        json: serde_json::Map::new(),
        answers: None,
    }
}

impl Folder {
    /// The best trial that was kept, and whether the search has ended.
    ///
    /// A file that cannot be read says nothing: the search then begins again, and no error tells what was in it.
    fn best(&self, kinds: usize) -> Result<Option<(Best<Found>, bool)>, Error> {
        Ok(self.read_private(BEST)?.and_then(|bytes| {
            let (length, rest) = bytes.split_first_chunk::<8>()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let (header, checkpoint) = rest.split_at_checked(length)?;
            let Kept { score, kind, evaluation, has_ended } = serde_json::from_slice(header).ok()?;
            let found = Found { checkpoint: checkpoint.to_vec(), evaluation };
            (kind < kinds).then_some((Best { score: f64::from_bits(score), kind, found }, has_ended))
        }))
    }

    fn write_best(&self, best: &Best<Found>, has_ended: bool) -> Result<(), Error> {
        let kept = Kept {
            score: best.score.to_bits(),
            kind: best.kind,
            evaluation: best.found.evaluation.clone(),
            has_ended,
        };
        let header =
            serde_json::to_vec(&kept).map_err(|_| Error::saved("best", "not writable", "numbers"))?;
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header);
        bytes.extend(&best.found.checkpoint);
        self.write_private(BEST, &bytes)
    }
}

/// The private file with the best trial so far.
const BEST: &str = "best";

/// The private file that says that this folder may release the best trial.
const RIGHT: &str = "right";
