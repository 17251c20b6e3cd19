//! A job that searches settings: it trains with several, and keeps the best model.
//!
//! The search is one plan of the ledger. Usually it is the best of a random number of trials ([`BestOf`]): what the
//! trials release stays in the subfolder `private` until the search has ended; then the best model leaves, and the
//! rest is forgotten. The number of trials and the time of the search stay hidden, because the guarantee needs
//! that. A search that shows its trials ([`AllTrials`]) tries each candidate once, and pays for all of them.

mod kept;
mod plan;
mod settings;
mod trial;

use quell_privacy::{
    Bound, Event,
    ledger::{Book, Ledger, Note, Spent, Terms, Trial},
    mechanism::{AllTrials, Best, BestOf, Count, Mechanism as _, TrialPlan},
    units::Delta,
};

use super::{
    Folder, Guarantee, Job, Outcome, PaymentRecord, Progress, Settings, Watch, charge,
    configuration::to_toml, registry::with_method,
};
use crate::{
    Error,
    learner::{Control, Evaluation},
    run,
};
use kept::Kept;
pub use settings::{Candidate, SearchRecord, TrialRecord, TuningConfiguration};
use trial::{Conclude, Conclusion, Found, RunTrial};

/// A job that searches settings: its complete settings and its plan.
pub struct Tuning {
    /// The settings, with defaults filled in.
    pub configuration: TuningConfiguration,
    release: Release,
    trials: Vec<TrialPlan>,
    guarantee: Guarantee,
    /// The mechanism of a private score.
    score: Option<Count>,
    /// Remarks on the public test records.
    remarks: Vec<String>,
}

/// What a search releases.
#[derive(Clone)]
enum Release {
    /// The best of a random number of trials.
    Best(BestOf),
    /// All trials.
    All(AllTrials),
}

impl Release {
    /// Number of runs of the plan.
    fn runs(&self, candidates: usize) -> u64 {
        match self {
            Self::Best(_) => BestOf::RUNS,
            Self::All(_) => candidates as u64,
        }
    }
}

impl Tuning {
    fn source(&self) -> &run::Source {
        // There is at least one candidate.
        &self.configuration.candidates[0].configuration.data
    }

    /// Runs one trial; `None` if it was stopped.
    fn run_trial(
        &self,
        trial: &mut Trial,
        should_stop: &mut dyn FnMut() -> bool,
    ) -> Result<Option<(f64, Found)>, Error> {
        let settings = self.configuration.candidates[trial.kind()].configuration.clone();
        with_method(&settings.clone(), RunTrial { settings, trial, score: self.score, should_stop })
    }

    /// Searches the best of a random number of trials; `None` if it was stopped.
    fn search<B: Book>(
        &self,
        search: &BestOf,
        (ledger, folder): (&mut Ledger<B>, &Folder),
        watch: &mut Watch<'_>,
    ) -> Result<(Option<Kept>, PaymentRecord), Error> {
        let (lease, paid) = charge::lease(ledger, folder, (search.clone(), BestOf::RUNS), self.cost())?;
        let mut lease = lease.in_blocks_of(1);
        let mut should_stop = || watch(Progress::hidden("searching")) == Control::Stop;
        let best = match folder.kept(self.configuration.candidates.len())? {
            Some(Kept { best, has_ended: true, .. }) => best,
            kept => {
                // One run is left for the release.
                let Some(attempt) = lease.next().transpose()?.filter(|_| lease.position() < BestOf::RUNS)
                else {
                    return Err(run::Error::SearchReleased { path: folder.path().to_owned() }.into());
                };
                let searched = attempt.search(
                    kept.map(|kept| kept.best),
                    |trial| self.run_trial(trial, &mut should_stop),
                    |best, has_ended| folder.keep(best, &[], has_ended),
                )?;
                let Some(best) = searched else { return Ok((None, paid)) };
                best
            }
        };
        drop(lease);
        let best = self.released(best, search, (ledger, folder))?;
        Ok((Some(Kept { best, has_ended: true, trials: Vec::new() }), paid))
    }

    /// Tries every candidate once; `None` if it was stopped.
    fn try_all<B: Book>(
        &self,
        trials: &AllTrials,
        (ledger, folder): (&mut Ledger<B>, &Folder),
        watch: &mut Watch<'_>,
    ) -> Result<(Option<Kept>, PaymentRecord), Error> {
        let count = self.configuration.candidates.len();
        let (lease, paid) = charge::lease(ledger, folder, (trials.clone(), count as u64), self.cost())?;
        let (lease, mut kept) = (lease.in_blocks_of(1), folder.kept(count)?);
        for paid_trial in lease {
            let mut trial = paid_trial?.trial()?;
            let kind = trial.kind();
            let progress = Progress::counted("trials", kind as u64, count as u64);
            // A trial that is stopped would be lost. So the search stops after it.
            let mut is_stopped = false;
            let mut note_stop = || {
                is_stopped |= watch(progress) == Control::Stop;
                false
            };
            let Some((score, found)) = self.run_trial(&mut trial, &mut note_stop)? else { continue };
            let record = self.trial_record(kind, score, found.evaluation.as_ref());
            let newest = Best { score, kind, found };
            let (best, mut records) = match kept.take() {
                // A score that is not a number loses.
                Some(Kept { best, trials, .. }) if best.score >= score || score.is_nan() => (best, trials),
                Some(Kept { trials, .. }) => (newest, trials),
                None => (newest, Vec::new()),
            };
            records.push(record);
            let has_ended = kind + 1 == count;
            folder.keep(&best, &records, has_ended)?;
            kept = Some(Kept { best, has_ended, trials: records });
            if is_stopped && !has_ended {
                return Ok((None, paid));
            }
        }
        if kept.is_none() {
            let expected = "a new search: the trials of this search were lost, and are charged";
            return Err(Error::saved("the trials", "lost when the search was killed", expected));
        }
        Ok((kept, paid))
    }

    fn trial_record(&self, kind: usize, score: f64, evaluation: Option<&Evaluation>) -> TrialRecord {
        let bounds = self.source().target_bounds();
        let (measure, value) =
            evaluation.map_or((NOISY_COUNT, score), |evaluation| evaluation.in_units(bounds).first_measure());
        TrialRecord {
            settings: self.configuration.candidates[kind].name.clone(),
            measure: measure.to_owned(),
            higher_is_better: evaluation.is_none_or(Evaluation::higher_is_better),
            value: Some(value).filter(|value| value.is_finite()),
        }
    }

    fn runs(&self) -> u64 {
        self.release.runs(self.configuration.candidates.len())
    }

    fn cost(&self) -> (Bound, Delta) {
        (self.guarantee.epsilon, self.guarantee.delta)
    }

    /// Takes the right to release, and releases the best trial.
    ///
    /// The folder keeps the right beside the trial, so that a run that is killed afterwards releases the same trial.
    fn released<B: Book>(
        &self,
        best: Best<Found>,
        search: &BestOf,
        (ledger, folder): (&mut Ledger<B>, &Folder),
    ) -> Result<Best<Found>, Error> {
        if folder.has_right()? {
            return Ok(best);
        }
        let (lease, _) = charge::lease(ledger, folder, (search.clone(), BestOf::RUNS), self.cost())?;
        let Some(last) = lease.in_blocks_of(BestOf::RUNS).last().transpose()? else {
            return Err(run::Error::SearchReleased { path: folder.path().to_owned() }.into());
        };
        let best = last.release(best)?;
        folder.keep_right()?;
        Ok(best)
    }

    fn record(&self, winner: usize) -> Result<SearchRecord, Error> {
        let name = |candidate: &Candidate| candidate.name.clone();
        let text = |event: Event| {
            serde_json::to_string(&event).map_err(|_| Error::saved("tune.toml", "not writable", "an event"))
        };
        let events = match &self.release {
            Release::Best(_) => self.trials.iter().map(TrialPlan::event).collect(),
            Release::All(trials) => vec![trials.event_of_runs(self.guarantee.neighbors, self.runs())],
        };
        Ok(SearchRecord {
            expected: self.configuration.expected.get(),
            winner: name(&self.configuration.candidates[winner]),
            candidates: self.configuration.candidates.iter().map(name).collect(),
            private_score: self.score.is_some(),
            trials: events.into_iter().map(text).collect::<Result<_, _>>()?,
            shows_trials: self.configuration.show_trials,
        })
    }

    fn outcome(&self, folder: &Folder, paid: PaymentRecord) -> Result<Outcome, Error> {
        let model = folder.model()?;
        let record = model.configuration.search.clone();
        let winner = record.as_ref().map_or("", |record| record.winner.as_str());
        let metrics = folder.metrics()?;
        let mut results = vec![format!("best settings: {winner}")];
        if let Some(evaluation) = &metrics.evaluation {
            results.push(evaluation.describe("public test records"));
            results.extend(evaluation.describe_measures());
        }
        results.extend(metrics.noisy_correct.map(|correct| {
            format!("{NOISY_COUNT} on private test records: {correct} (the best of several, so a little too large)")
        }));
        results.extend(trial_table(&metrics.trials));
        results.extend(model.summary());
        let json = serde_json::json!({
            "best": winner,
            "candidates": record.map(|record| record.candidates),
            "accuracy": metrics.evaluation.as_ref().and_then(Evaluation::accuracy),
            "evaluation": metrics.evaluation,
            "noisy_correct": metrics.noisy_correct,
            "trials": metrics.trials,
        });
        Ok(Outcome {
            is_finished: true,
            position: "the search".into(),
            paid: Some(paid),
            results,
            remarks: match &self.release {
                Release::Best(_) => vec![
                    "the number of trials and the time of a search are private: do not publish them".into(),
                ],
                Release::All(_) => Vec::new(),
            },
            json: json.as_object().cloned().unwrap_or_default(),
            answers: None,
        })
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
            release: Some(match &self.release {
                Release::Best(_) => format!("the best of several trials, for example: {subject}"),
                Release::All(_) => format!("several trials, for example: {subject}"),
            }),
            ..Note::default()
        }
    }

    fn is_demonstration(&self) -> bool {
        self.source().is_embedded()
    }

    fn guarantee(&self) -> Guarantee {
        self.guarantee
    }

    fn settings(&self) -> Result<Settings, Error> {
        let json = serde_json::json!({
            "configuration": self.configuration,
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta.get(),
            "trial_epsilon": self.configuration.trial_epsilon,
        });
        Ok(Settings {
            toml: to_toml(&self.configuration)?,
            json: json.as_object().cloned().unwrap_or_default(),
            amount: match &self.release {
                Release::Best(search) => search.to_string(),
                Release::All(trials) => trials.to_string(),
            },
        })
    }

    fn remarks(&self) -> Vec<String> {
        self.remarks.clone()
    }

    fn terms(&self) -> Result<Terms, Error> {
        let budget = self.configuration.candidates[0].configuration.budget;
        self.guarantee.terms(self.dataset(), budget, Some(self.configuration.epsilon))
    }

    fn quote<B: Book>(&self, ledger: &mut Ledger<B>) -> Result<Spent, Error> {
        self.guarantee.check(ledger)?;
        let (_, spent) = match &self.release {
            Release::Best(search) => ledger.quote(search, self.runs())?,
            Release::All(trials) => ledger.quote(trials, self.runs())?,
        };
        Ok(spent)
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
        if folder.has_model() {
            return self.outcome(folder, folder.paid()?);
        }
        let (kept, paid) = match &self.release {
            Release::Best(search) => self.search(search, (ledger, folder), watch)?,
            Release::All(trials) => self.try_all(trials, (ledger, folder), watch)?,
        };
        let Some(Kept { best, trials, .. }) = kept else { return Ok(stopped(paid)) };
        // From here on the best trial is public, and so is whether its model can be written.
        let (score, kind) = (best.score, best.kind);
        let mut settings = self.configuration.candidates[kind].configuration.clone();
        settings.search = Some(self.record(kind)?);
        let found = best.found;
        let noisy_correct = Some(score).filter(|_| self.score.is_some());
        let conclude = Conclude { settings: settings.clone(), found, trials, noisy_correct, folder, ledger };
        let conclusion = with_method(&settings, conclude)?;
        let Conclusion { configuration, checkpoint, metrics, model, remarks } = conclusion;
        folder.write_configuration(&configuration)?;
        folder.write_checkpoint(&checkpoint)?;
        folder.write_metrics(&metrics)?;
        folder.write(Folder::MODEL, &model)?;
        folder.forget_private()?;
        let mut outcome = self.outcome(folder, paid)?;
        outcome.remarks.extend(remarks);
        Ok(outcome)
    }
}

/// The outcome of a search that was stopped. It says nothing of the trials.
fn stopped(paid: PaymentRecord) -> Outcome {
    Outcome {
        is_finished: false,
        position: "a trial of the search".into(),
        paid: Some(paid),
        results: Vec::new(),
        remarks: Vec::new(),
        json: serde_json::Map::new(),
        answers: None,
    }
}

/// What is measured on private test records.
const NOISY_COUNT: &str = "noisy number of correct predictions";

/// All trials in words, one line each.
fn trial_table(trials: &[TrialRecord]) -> Vec<String> {
    let values: Vec<String> = trials.iter().map(TrialRecord::describe_value).collect();
    let width = values.iter().map(|value| value.chars().count()).max().unwrap_or(0);
    let head = trials.first().map(|trial| format!("{} of all trials:", trial.measure));
    let rows =
        trials.iter().zip(values).map(|(trial, value)| format!("  {value:>width$}  {}", trial.settings));
    head.into_iter().chain(rows).collect()
}
