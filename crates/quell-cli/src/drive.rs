//! Runs any job: cost, ledger, folder, progress bar, results.

use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use quell::{
    learner::Control,
    run::{self, Driver, Folder, Guarantee, Job, Outcome, Progress},
};
use quell_ledger::Volume;
use quell_privacy::{
    ledger::{Ledger, Note},
    number::{Toward, format_rounded},
    units::Delta,
};
use quell_report::Report;
use serde_json::json;

use crate::{
    author, dry_run,
    flags::{
        Format,
        ledger::{self, Dataset, LedgerArgs},
        run::RunArgs,
    },
    interrupt, origin, print,
    progress::Bar,
    refusal::Stopped,
};

/// Hint for a budget that is too small.
const SMALLER_EPSILON: &str = "give a smaller --epsilon";

/// Starts a job in a new folder, or with --dry-run only reports its cost.
///
/// `verb` is added to the name of the folder; it is empty for `quell train`.
pub(crate) fn start(job: &impl Job, terms: &RunArgs, verb: &str) -> Result<()> {
    let (dataset, public) = (Dataset::of_job(job), job.is_demonstration());
    let remark = || job.remarks().iter().for_each(|remark| print::status(remark));
    if terms.dry_run {
        remark();
        dry_run::report(job, terms.format)?;
        return ledger::preview(
            &terms.ledgers,
            &dataset,
            |ledger| Ok(job.quote(ledger)?),
            SMALLER_EPSILON,
            public,
        );
    }
    let format = terms.format.of_results()?;
    terms.check_output()?;
    let mut opened = terms.ledgers.open_or_create(&dataset, || Ok(job.terms()?), public)?;
    opened.annotate(&note(job));
    let epsilon_after = job.quote(&mut opened)?;
    ledger::check_budget(&mut opened, &dataset.name, epsilon_after, SMALLER_EPSILON, public)?;
    // Whoever reads it can still stop: nothing is paid yet.
    remark();
    let folder = terms.folder(&format!("{}{verb}", dataset.name))?;
    folder.write_origin(&origin::of_this_run())?;
    run_job(job, &mut opened, &folder, format)
}

/// Starts a job once its data is read.
pub(crate) struct Start<'a> {
    terms: &'a RunArgs,
    bar: Bar,
}

impl<'a> Start<'a> {
    /// Shows that data is being read.
    pub(crate) fn reading(terms: &'a RunArgs) -> Self {
        Self { terms, bar: Bar::spinner("reading") }
    }
}

impl Driver for Start<'_> {
    type Output = Result<()>;

    fn drive<J: Job>(self, job: &J) -> Result<()> {
        drop(self.bar);
        start(job, self.terms, "")
    }
}

/// Continues the job of a folder.
pub(crate) fn resume(folder: &Folder, ledgers: &LedgerArgs, format: Format) -> Result<()> {
    run::resume(folder, Resume { folder, ledgers, format })?
}

struct Resume<'a> {
    folder: &'a Folder,
    ledgers: &'a LedgerArgs,
    format: Format,
}

impl Driver for Resume<'_> {
    type Output = Result<()>;

    fn drive<J: Job>(self, job: &J) -> Result<()> {
        let mut ledger = self.ledgers.ledger(&Dataset::of_run(self.folder, job))?;
        ledger.annotate(&note(job));
        run_job(job, &mut ledger, self.folder, self.format)
    }
}

/// The words with which the ledger describes a job.
fn note(job: &impl Job) -> Note {
    Note { by: author::name(), ..job.note() }
}

/// Runs the job with a progress bar, stops it on Ctrl-C, and prints the results.
fn run_job(job: &impl Job, ledger: &mut Ledger<Volume>, folder: &Folder, format: Format) -> Result<()> {
    let (stop, bar) = (interrupt::flag(), Bar::for_job());
    let budget = format_rounded(job.guarantee().epsilon.upper, 4, Toward::Up);
    let mut is_told = false;
    let outcome = job.go(ledger, folder, &mut |progress: Progress| {
        bar.show(&progress, &budget);
        let is_asked = stop.load(Ordering::Relaxed);
        if is_asked && !std::mem::replace(&mut is_told, true) {
            bar.say("stopping where nothing is lost that was paid for; a second Ctrl-C ends at once");
        }
        if is_asked { Control::Stop } else { Control::Continue }
    })?;
    drop(bar);
    if !outcome.is_finished {
        let folder = folder.path().display().to_string();
        return Err(Stopped { position: outcome.position, folder }.into());
    }
    if outcome.answers.is_none() {
        let report = {
            let _bar = Bar::spinner("composing");
            Report::of_run(folder)?
        };
        report.pages().iter().try_for_each(|(file, page)| folder.write(file, page.as_bytes()))?;
    }
    print_results(job, ledger, folder, outcome, format)
}

fn print_results(
    job: &impl Job,
    ledger: &mut Ledger<Volume>,
    folder: &Folder,
    outcome: Outcome,
    format: Format,
) -> Result<()> {
    // The payment says what was bought. Settings that were edited afterwards say something else.
    let promise = match &outcome.paid {
        Some(paid) => Guarantee { epsilon: paid.epsilon, delta: Delta::new(paid.delta)?, ..job.guarantee() },
        None => job.guarantee(),
    };
    if format == Format::Json {
        let mut object = json!({
            "run": folder.path(),
            "ledger": outcome.paid.as_ref().map(|paid| &paid.receipt),
            "epsilon": outcome.paid.as_ref().map(|paid| paid.epsilon),
            "delta": promise.delta.get(),
        });
        object.as_object_mut().context("an object")?.extend(outcome.json);
        return print::json(&object);
    }
    outcome.results.iter().try_for_each(|line| print::lines(line))?;
    print::lines(&format!("claim: {promise}"))?;
    match outcome.answers {
        Some(file) => print::line(&format!("answers: {}", folder.file(file).display()))?,
        None => print::line(&format!("run: {}", folder.path().display()))?,
    }
    outcome.remarks.iter().for_each(|remark| print::status(remark));
    let state = ledger.state().context("cannot read the ledger after the run")?;
    let balance = print::balance(state.spent(), state.budget().cap());
    print::status(
        &outcome.paid.map_or(balance.clone(), |paid| format!("{}: {balance}", print::charged(&paid.receipt))),
    );
    Ok(())
}
