//! `quell pate` and `quell knn`: from private votes to labels and a student.

mod flags;

use std::sync::atomic::Ordering;

use anyhow::Result;
use quell::{
    dp_sgd::{Evaluation, Going},
    run::{
        Folder,
        labels::{Configuration, Elsewhere, External, Job, Moment, Outcome, Revealed},
    },
    voting::Plan,
};
use quell_ledger::Volume;
use quell_privacy::{
    Neighbors,
    ledger::{Ledger, Unit},
    number::{Toward, given, rounded},
};
use serde_json::{Value, json};

use crate::{arguments::Format, interrupt, model, print, purse, purse::Purse, refusal::Refusal, report};
use flags::Common;
pub(crate) use flags::{Knn, Pate};

pub(crate) fn pate(flags: &Pate) -> Result<()> {
    if let Some(path) = &flags.ballots {
        if flags.users.file().is_some() {
            let sentence = "a file of users is given for ballots, of which nobody knows whose records they come from";
            return Err(Refusal::new(
                sentence,
                "say --users without a file, if each person touches the ballots of one teacher alone",
            )
            .into());
        }
        return answer_ballots(&flags.common, &flags.elsewhere(path));
    }
    run(&flags.common, flags.configuration()?, "pate")
}

pub(crate) fn knn(flags: &Knn) -> Result<()> {
    run(&flags.common, flags.configuration()?, "knn")
}

fn run(flags: &Common, configuration: Configuration, verb: &str) -> Result<()> {
    // Whatever can be wrong is said before anything is paid.
    let job = Job::new(configuration)?;
    let name = job.configuration.data.name();
    let public = job.configuration.data.path.is_none();
    let smaller = "ask with a smaller --epsilon";
    if flags.terms.dry_run {
        report_price(&job, flags.terms.format)?;
        return purse::preview(&flags.terms.purse, &name, |ledger| Ok(job.quote(ledger)?), smaller, public);
    }
    let mut ledger = flags.terms.purse.open_or_create(&name, || Ok(job.terms()?), public)?;
    let after = job.quote(&mut ledger)?;
    purse::afford(&mut ledger, &name, after, smaller, public)?;
    let folder = flags.terms.folder(&format!("{name}-{verb}"))?;
    let outcome = watched(|watch| Ok(job.go(&mut ledger, &folder, watch)?))?;
    conclude(&job, &mut ledger, &folder, &outcome, flags.terms.format)
}

/// Goes on with a run that labels, or with one on ballots from elsewhere.
pub(crate) fn resume(folder: &Folder, purse: &Purse, format: Format) -> Result<()> {
    if let Some(asked) = folder.elsewhere()? {
        let external = asked.open()?;
        return answer(&external, &mut purse.ledger(&asked.name())?, folder, format);
    }
    let job = Job::new(folder.labels_configuration()?)?;
    let mut ledger = purse.ledger(&job.configuration.data.name())?;
    let outcome = watched(|watch| Ok(job.go(&mut ledger, folder, watch)?))?;
    conclude(&job, &mut ledger, folder, &outcome, format)
}

/// Runs with a bar, and stops when asked to.
fn watched<T>(go: impl FnOnce(&mut (dyn FnMut(Moment) -> Going + Send)) -> Result<T>) -> Result<T> {
    let stop = interrupt::flag();
    let mut bar = print::Line::new();
    let outcome = go(&mut |moment| {
        bar.show(|| match moment {
            Moment::Teachers { done, of } => format!("teacher {done} of {of} has learned"),
            Moment::Asked { asked, answered, of } => format!("{asked} questions asked, {answered} answered of {of} paid for"),
            Moment::Student { share } => format!("the student learns: {:.0} %", 100.0 * share),
        });
        if stop.load(Ordering::Relaxed) { Going::Stop } else { Going::On }
    });
    drop(bar);
    outcome
}

fn report_price(job: &Job, format: Format) -> Result<()> {
    let plan = &job.plan;
    if format == Format::Json {
        return print::json(&json!({
            "configuration": job.configuration,
            "answers": plan.release.answers(),
            "epsilon": plan.epsilon,
            "delta": plan.delta.get(),
        }));
    }
    print::document(&job.configuration.write()?)?;
    print::note(&format!(
        "{}: ε ≤ {} at δ = {}; nothing was paid",
        answers(plan),
        rounded(plan.epsilon.upper, 4, Toward::Up),
        given(plan.delta.get())
    ));
    Ok(())
}

/// What is paid for.
fn answers(plan: &Plan) -> String {
    plan.release.answers().map_or("all stable answers".into(), |answers| format!("{answers} answers"))
}

/// Says that there is more to come.
fn stopped(folder: &Folder, outcome: &Outcome) -> anyhow::Error {
    let sentence = format!("stopped after {} answers", outcome.answered);
    Refusal::new(sentence, format!("go on with `quell resume {}`", folder.path().display())).final_word().into()
}

/// Writes the report and says what came of it.
fn conclude(job: &Job, ledger: &mut Ledger<Volume>, folder: &Folder, outcome: &Outcome, format: Format) -> Result<()> {
    let place = folder.path().display();
    if !outcome.finished {
        return Err(stopped(folder, outcome));
    }
    report::write(folder, &model::of_run(folder.path())?.1)?;
    let accuracy = |evaluation: &Option<Evaluation>| evaluation.as_ref().and_then(Evaluation::accuracy);
    if format == Format::Json {
        let mut object = object(folder, &job.plan, outcome);
        object["answers_right"] = json!(outcome.right);
        object["accuracy"] = json!({"unseen": accuracy(&outcome.unseen), "all": accuracy(&outcome.all)});
        object["seconds"] = json!(outcome.seconds);
        return print::json(&object);
    }
    let right = outcome.right.map(|share| format!(", {:.1} % of the answers are right", 100.0 * share)).unwrap_or_default();
    print::data(&format!("questions: {} answered, {} refused{right}", outcome.answered, outcome.refused))?;
    for (evaluation, whose) in
        [(&outcome.unseen, "public records that were never asked about"), (&outcome.all, "public records in all")]
    {
        if let Some(Evaluation::Classes { correct, count, .. }) = evaluation {
            let share = 100.0 * accuracy(evaluation).unwrap_or(0.0);
            print::data(&format!("accuracy: {share:.1} % ({correct} of {count} {whose})"))?;
        }
    }
    claim(&job.plan, job.configuration.data.unit)?;
    reveal(outcome, &job.plan)?;
    print::sentence(&format!("run: {place}"))?;
    balance(ledger, outcome.paid.as_ref().map(|paid| paid.receipt.entry))
}

/// What came of any questions.
fn object(folder: &Folder, plan: &Plan, outcome: &Outcome) -> Value {
    json!({
        "run": folder.path(),
        "ledger": outcome.paid.as_ref().map(|paid| &paid.receipt),
        "epsilon": outcome.paid.as_ref().map(|paid| paid.epsilon),
        "delta": plan.delta.get(),
        "revealed": outcome.revealed,
        "reveal_lost": outcome.reveal_lost,
        "answered": outcome.answered,
        "refused": outcome.refused,
    })
}

fn claim(plan: &Plan, unit: Unit) -> Result<()> {
    let who = if unit == Unit::User { "user" } else { "record" };
    let when = match plan.neighbors {
        Neighbors::AddRemove => "added or removed",
        Neighbors::Replace => "replaced",
    };
    let epsilon = rounded(plan.epsilon.upper, 4, Toward::Up);
    print::data(&format!(
        "claim: ε ≤ {epsilon} at δ = {} when one {who} is {when}, whatever the votes were",
        given(plan.delta.get())
    ))
}

/// Says what the answers cost at the votes that were cast, where that was asked for.
fn reveal(outcome: &Outcome, plan: &Plan) -> Result<()> {
    if outcome.reveal_lost {
        print::note("what the votes cost was paid for, and lost when the run was killed");
    }
    let Some(Revealed { epsilon, of_the_dataset }) = outcome.revealed else { return Ok(()) };
    let of = if of_the_dataset { "these data and their neighbours" } else { "what came out" };
    let epsilon = rounded(epsilon, 4, Toward::Up);
    print::data(&format!(
        "at the votes that were cast: ε ≤ {epsilon} at δ = {}, of {of}, this line included",
        given(plan.delta.get())
    ))
}

fn balance(ledger: &mut Ledger<Volume>, entry: Option<u64>) -> Result<()> {
    let state = ledger.state()?;
    let line = entry.map(|entry| format!("paid in line {entry} of {:?}: ", state.terms().dataset)).unwrap_or_default();
    print::note(&format!("{line}{}", crate::payment::balance(state.spent(), state.budget().cap())));
    Ok(())
}

/// Answers of teachers from elsewhere.
fn answer_ballots(flags: &Common, asked: &Elsewhere) -> Result<()> {
    let (name, external) = (asked.name(), asked.open()?);
    // Always said: whether there is such a cell is private.
    print::note("a cell that is no ballot abstains, and no message says whether there is one");
    let smaller = "ask with a smaller --epsilon";
    if flags.terms.dry_run {
        let epsilon = rounded(external.plan.epsilon.upper, 4, Toward::Up);
        print::data(&format!(
            "{}: ε would be {epsilon} at δ = {}; nothing was paid",
            answers(&external.plan),
            given(external.plan.delta.get())
        ))?;
        return purse::preview(&flags.terms.purse, &name, |ledger| Ok(external.quote(ledger)?), smaller, false);
    }
    let budget = flags.terms.allowance(asked.votes.delta)?;
    let mut ledger = flags.terms.purse.open_or_create(&name, || Ok(external.terms(&name, budget)?), false)?;
    let after = external.quote(&mut ledger)?;
    purse::afford(&mut ledger, &name, after, smaller, false)?;
    let folder = flags.terms.folder(&format!("{name}-pate"))?;
    folder.write_elsewhere(asked)?;
    answer(&external, &mut ledger, &folder, flags.terms.format)
}

/// Asks, and says what came of it.
fn answer(external: &External, ledger: &mut Ledger<Volume>, folder: &Folder, format: Format) -> Result<()> {
    let outcome = watched(|watch| Ok(external.go(ledger, folder, watch)?))?;
    if !outcome.finished {
        return Err(stopped(folder, &outcome));
    }
    if format == Format::Json {
        return print::json(&object(folder, &external.plan, &outcome));
    }
    print::data(&format!("questions: {} answered, {} refused", outcome.answered, outcome.refused))?;
    claim(&external.plan, Unit::Example)?;
    reveal(&outcome, &external.plan)?;
    print::sentence(&format!("answers: {}", folder.file(Folder::ANSWERS).display()))?;
    balance(ledger, outcome.paid.as_ref().map(|paid| paid.receipt.entry))
}
