//! `quell train` and `quell resume`: from data to a model that was paid for.

mod flags;

use std::{path::PathBuf, sync::atomic::Ordering};

use anyhow::{Context, Result};
use quell::{
    dp_sgd::{Going, Release},
    run::{Configuration, Folder, Job, Moment, Outcome},
};
use quell_ledger::Volume;
use quell_privacy::{
    Neighbors,
    ledger::{Ledger, Spent},
    number::{Toward, given, rounded},
};
use serde_json::json;

use crate::{
    arguments::Format,
    interrupt, labels,
    payment::balance,
    print,
    purse::{self, Purse},
    refusal::Refusal,
    report,
};
pub(crate) use flags::Flags;

const RESUME_EXAMPLES: &str = "\
Examples:
  quell train --output runs/first
  quell resume runs/first";

/// Go on with a run that was stopped or killed; nothing is paid twice
///
/// Steps that were leased and not written down are lost: they are paid for, and taking them again would be another release. A run on which another process works is refused,
/// and so is a ledger that is older than the run.
#[derive(clap::Args)]
#[command(after_help = RESUME_EXAMPLES)]
pub(crate) struct Resume {
    /// Folder of the run
    run: PathBuf,
    #[command(flatten)]
    purse: Purse,
    /// How what came of it is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    let configuration = flags.configuration()?;
    // Whatever can be wrong is said before anything is paid.
    let job = prepared(configuration)?;
    let name = job.configuration.data.name();
    let public = job.configuration.data.path.is_none();
    let smaller = "train with a smaller --epsilon";
    if flags.terms.dry_run {
        flags.report_price(&job)?;
        return purse::preview(&flags.terms.purse, &name, |ledger| quote(&job, ledger), smaller, public);
    }
    let mut ledger = flags.terms.purse.open_or_create(&name, || Ok(job.terms()?), public)?;
    let after = quote(&job, &mut ledger)?;
    purse::afford(&mut ledger, &name, after, smaller, public)?;
    let folder = flags.terms.folder(&name)?;
    let outcome = watched(&job, |watch| Ok(job.start(&mut ledger, &folder, watch)?))?;
    conclude(&job, &mut ledger, &folder, &outcome, flags.terms.format)
}

pub(crate) fn resume(flags: &Resume) -> Result<()> {
    let folder = Folder::open(&flags.run)?.locked()?;
    if folder.labels_anything() {
        return labels::resume(&folder, &flags.purse, flags.format);
    }
    let job = prepared(folder.configuration()?)?;
    let mut ledger = flags.purse.ledger(&job.configuration.data.name())?;
    let outcome = watched(&job, |watch| Ok(job.resume(&mut ledger, &folder, watch)?))?;
    conclude(&job, &mut ledger, &folder, &outcome, flags.format)
}

/// Reads the data and fills the gaps.
fn prepared(configuration: Configuration) -> Result<Job> {
    let _progress = print::Progress::new("reading", None);
    Ok(Job::new(configuration)?)
}

/// What would be spent after the run, if the ledger is one for it.
fn quote(job: &Job, ledger: &mut Ledger<Volume>) -> Result<Spent> {
    job.check(ledger)?;
    let (_, after) = match &job.plan.release {
        Release::Sums(sum, steps) => ledger.quote(sum, *steps)?,
        Release::Epochs(epoch, epochs) => ledger.quote(epoch, *epochs)?,
    };
    Ok(after)
}

/// Runs with a bar, and stops after a step when asked to.
fn watched(job: &Job, go: impl FnOnce(&mut dyn FnMut(Moment) -> Going) -> Result<Outcome>) -> Result<Outcome> {
    let stop = interrupt::flag();
    let mut bar = print::Line::new();
    let start = std::time::Instant::now();
    let mut first = None;
    let budget = rounded(job.plan.epsilon.upper, 4, Toward::Up);
    let outcome = go(&mut |moment| {
        let begun = *first.get_or_insert(moment.step.saturating_sub(1));
        let (done, left) = (moment.step - begun, moment.steps - moment.step);
        let seconds = start.elapsed().as_secs_f64() / done.max(1) as f64 * left as f64;
        let accuracy = moment.accuracy.map(|share| format!(", accuracy {:.1} %", 100.0 * share)).unwrap_or_default();
        bar.show(|| {
            format!(
                "step {} of {}, {seconds:.0} s left, ε {} of {budget}{accuracy}",
                moment.step,
                moment.steps,
                rounded(moment.epsilon, 3, Toward::Up)
            )
        });
        if stop.load(Ordering::Relaxed) { Going::Stop } else { Going::On }
    });
    drop(bar);
    outcome
}

/// Writes model and report, and says what came of it.
fn conclude(job: &Job, ledger: &mut Ledger<Volume>, folder: &Folder, outcome: &Outcome, format: Format) -> Result<()> {
    let place = folder.path().display();
    if !outcome.finished {
        let sentence = format!("stopped after step {} of {}", outcome.position, outcome.metrics.steps);
        return Err(Refusal::new(sentence, format!("go on with `quell resume {place}`; it is paid for")).final_word().into());
    }
    let model = job.model(ledger, folder)?;
    folder.write(Folder::MODEL, &model.save()?)?;
    report::write(folder, &model)?;
    let accuracy = outcome.metrics.evaluation.as_ref().and_then(quell::dp_sgd::Evaluation::accuracy);
    let (paid, metrics) = (&outcome.paid, &outcome.metrics);
    if format == Format::Json {
        return print::json(&json!({
            "run": folder.path(),
            "ledger": paid.receipt,
            "epsilon": paid.epsilon,
            "delta": paid.delta,
            "accuracy": accuracy,
            "evaluation": metrics.evaluation,
            "steps": metrics.steps,
            "taken": metrics.taken,
            "seconds": metrics.seconds,
        }));
    }
    match &metrics.evaluation {
        Some(quell::dp_sgd::Evaluation::Classes { correct, count, .. }) => {
            print::data(&format!(
                "accuracy: {:.1} % ({correct} of {count} public test records)",
                100.0 * accuracy.unwrap_or(0.0)
            ))?;
        }
        Some(quell::dp_sgd::Evaluation::Numbers { error, count }) => {
            print::data(&format!("error: {error:.4} (root mean square over {count} public test records)"))?;
        }
        None => {}
    }
    let when = match job.plan.neighbors {
        Neighbors::AddRemove => "when one record is added or removed",
        Neighbors::Replace => "when one record is replaced",
    };
    let when =
        when.replace("record", if job.configuration.data.unit == quell_privacy::ledger::Unit::User { "user" } else { "record" });
    print::data(&format!("claim: ε ≤ {} at δ = {} {when}", rounded(paid.epsilon.upper, 4, Toward::Up), given(paid.delta)))?;
    print::sentence(&format!("run: {place}"))?;
    if metrics.taken < metrics.steps {
        print::note(&format!(
            "{} of {} steps were paid for and lost when the run was killed",
            metrics.steps - metrics.taken,
            metrics.steps
        ));
    }
    let state = ledger.state().context("the ledger cannot be read again")?;
    let balance = balance(state.spent(), state.budget().cap());
    print::note(&format!("paid in line {} of {:?}: {balance}", paid.receipt.entry, paid.receipt.dataset));
    Ok(())
}
