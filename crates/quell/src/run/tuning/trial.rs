//! One trial of a search, and the files of the trial that is released.

use quell_privacy::{
    ledger::{Book, Ledger, Trial},
    mechanism::{Count, Sensitive},
};

use super::TrialRecord;
use crate::{
    Error,
    learner::{Control, Evaluation, Snapshot as _},
    run::{Configuration, Folder, Metrics, Registered, Training, registry::ForMethod},
};

/// What a trial found, until it is released.
pub(super) struct Found {
    pub(super) checkpoint: Vec<u8>,
    pub(super) evaluation: Option<Evaluation>,
}

/// Runs one trial of a search.
pub(super) struct RunTrial<'a> {
    pub(super) settings: Configuration,
    pub(super) trial: &'a mut Trial,
    pub(super) score: Option<Count>,
    pub(super) should_stop: &'a mut dyn FnMut() -> bool,
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
        let predictor = training.predictor(&state);
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
pub(super) struct Conclude<'a, B> {
    pub(super) settings: Configuration,
    pub(super) found: Found,
    pub(super) trials: Vec<TrialRecord>,
    pub(super) noisy_correct: Option<f64>,
    pub(super) folder: &'a Folder,
    pub(super) ledger: &'a mut Ledger<B>,
}

/// The files of a released model, ready to be written.
pub(super) struct Conclusion {
    pub(super) configuration: Configuration,
    pub(super) checkpoint: Vec<u8>,
    pub(super) metrics: Metrics,
    pub(super) model: Vec<u8>,
    pub(super) remarks: Vec<String>,
}

impl<B: Book> ForMethod for Conclude<'_, B> {
    type Output = Result<Conclusion, Error>;

    fn call<M: Registered>(self) -> Self::Output {
        let Self { settings, found, trials, noisy_correct, folder, ledger } = self;
        let training = Training::<M>::new(settings)?;
        let steps = training.method.steps();
        let bounds = training.configuration.data.target_bounds();
        let metrics = Metrics {
            steps,
            taken: steps,
            evaluation: found.evaluation.map(|evaluation| evaluation.in_units(bounds)),
            in_target_units: true,
            trials,
            noisy_correct,
            ..Metrics::default()
        };
        let model = training.model_at(&found.checkpoint, ledger, folder)?.save()?;
        let remarks = training.method.remarks_on(&training.method.state(Some(&found.checkpoint))?);
        let Training { configuration, .. } = training;
        Ok(Conclusion { configuration, checkpoint: found.checkpoint, metrics, model, remarks })
    }
}
