//! The debt of a run that labels: written down before the first question, and whatever is recorded is never paid for again.

use quell_privacy::{
    ledger::{Book, Budget, Composition, Ledger, Line, Spent, Terms, Unit},
    mechanism::{Finding, Form, Survey, Votes},
    units::{Delta, Epsilon},
};

use super::{Moment, reveal};
use crate::{
    Error,
    dp_sgd::Going,
    pate::Replies,
    run::{Allowance, Folder, debt},
    voting::{Asker, Entry, Journal, Plan, Recipe, Release, Reply, ask, entry},
};

/// The first line of a ledger that is still to be opened.
pub(super) fn terms(plan: &Plan, dataset: String, unit: Unit, budget: Option<Allowance>, votes: &Recipe) -> Result<Terms, Error> {
    let (epsilon, delta) = match budget {
        Some(allowance) => (allowance.epsilon, Delta::new(allowance.delta)?),
        // A little room for rounding: what is promised is what is spent.
        None if votes.reveal => {
            return Err(Error::Missing {
                what: "budget",
                hint: "what the votes cost is itself paid for: say with --budget what may be spent in all, more than --epsilon by half and one",
            });
        }
        None => (votes.epsilon.unwrap_or(plan.epsilon.upper * 1.001), plan.delta),
    };
    // Stable winners have a Rényi bound and no other. A ledger for that alone divides δ among its orders, and needs a little more room, unless somebody has said what may be spent.
    let stable = matches!(plan.release, Release::Stable(_));
    let room = if stable && budget.is_none() { 1.06 } else { 1.0 };
    let composition = if stable { Composition::Renyi } else { Composition::Combined };
    let budget = Budget { epsilon: Some(Epsilon::new(epsilon * room)?), delta };
    Ok(Terms { dataset, unit, neighbors: plan.neighbors, budget, composition })
}

/// Whether the ledger is about the same promise.
pub(super) fn check<B: Book>(plan: &Plan, unit: Unit, ledger: &mut Ledger<B>) -> Result<(), Error> {
    let terms = ledger.state()?.terms();
    if terms.neighbors != plan.neighbors || terms.unit != unit {
        return Err(Error::OtherPromise { dataset: terms.dataset.clone() });
    }
    Ok(())
}

/// What would be spent after everything that a run pays for. Nothing is written down.
pub(super) fn quote<B: Book>(plan: &Plan, unit: Unit, votes: &Recipe, ledger: &mut Ledger<B>) -> Result<Spent, Error> {
    check(plan, unit, ledger)?;
    let charge = match &plan.release {
        Release::Polls(poll, rounds) => ledger.quote(poll, *rounds)?.0,
        Release::Stable(stable) => ledger.quote(stable, 1)?.0,
        Release::Surveys(survey, rounds) => ledger.quote(survey, *rounds)?.0,
    };
    let reveal = if votes.reveal { Some(ledger.quote(&reveal::price(plan)?, 1)?.0) } else { None };
    let mut state = ledger.state()?.clone();
    for charge in std::iter::once(charge).chain(reveal) {
        state.follow(&Line::Charged(charge))?;
    }
    Ok(state.spent())
}

/// Pays, if that is still to be done, and asks until everything is answered that was paid for.
#[allow(
    clippy::too_many_arguments,
    reason = "what was planned, who pays, where it is kept, and who is asked: a struct would rename them"
)]
pub(super) fn answer<B: Book>(
    plan: &Plan,
    ledger: &mut Ledger<B>,
    folder: &Folder,
    journal: &mut Journal,
    order: &[usize],
    votes: impl Fn(usize) -> Votes,
    asker: &mut impl Asker,
    watch: &mut (dyn FnMut(Moment) -> Going + Send),
) -> Result<Going, Error> {
    match &plan.release {
        Release::Stable(stable) => {
            let (mut lease, _) = debt::lease(ledger, folder, (*stable, 1), (plan.epsilon, plan.delta))?;
            let asked = journal.entries().len() as u64;
            debt::within_lease(folder, "answers", asked, lease.position().saturating_mul(asked))?;
            // Everything is leased at once, so what was not asked when a run was killed is lost.
            let Some(paid) = lease.next() else { return Ok(Going::On) };
            let mut stability = paid?.run()?;
            for block in order.chunks(64) {
                let answers = block.iter().map(|question| stability.ask(&votes(*question)));
                let answers = answers.collect::<Result<Vec<_>, _>>()?;
                journal.record(&block.iter().zip(answers).filter_map(entry).collect::<Vec<_>>())?;
            }
            lease.confirm()?;
            Ok(Going::On)
        }
        Release::Polls(poll, rounds) => {
            let (lease, _) = debt::lease(ledger, folder, (*poll, *rounds), (plan.epsilon, plan.delta))?;
            let rounds = lease.position();
            let (asked, answered) = (journal.entries().len() as u64, journal.answers().len() as u64);
            debt::within_lease(folder, "questions that were put", asked, rounds.saturating_mul(poll.questions.into()))?;
            debt::within_lease(folder, "answers", answered, rounds.saturating_mul(poll.answers.into()))?;
            let of = plan.release.answers().unwrap_or(0);
            ask(lease.in_blocks_of(1), journal, asker, |moment| {
                watch(Moment::Asked { asked: moment.asked, answered: moment.answered, of })
            })
        }
        Release::Surveys(..) => Err(Error::Setting { name: "votes", found: "a survey".into(), expected: "a poll about classes" }),
    }
}

/// The same for labels and numbers, in the order of the questions.
pub(super) fn survey<B: Book>(
    plan: &Plan,
    ledger: &mut Ledger<B>,
    folder: &Folder,
    journal: &mut Journal<Reply>,
    replies: &Replies,
    watch: &mut (dyn FnMut(Moment) -> Going + Send),
) -> Result<Going, Error> {
    let Release::Surveys(survey, rounds) = plan.release else {
        return Err(Error::Setting { name: "votes", found: "a poll".into(), expected: "a survey about labels or numbers" });
    };
    let (lease, _) = debt::lease(ledger, folder, (survey, rounds), (plan.epsilon, plan.delta))?;
    let leased = lease.position().saturating_mul(survey.questions.into());
    debt::within_lease(folder, "answers", journal.entries().len() as u64, leased)?;
    // A run that is killed loses the round it is in.
    let mut lease = lease.in_blocks_of(1);
    while journal.entries().len() < replies.questions() {
        let Some(paid) = lease.next() else { break };
        let mut open = paid?.run()?;
        let first = journal.entries().len();
        let round = first..replies.questions().min(first + survey.questions as usize);
        let entry = |question| Ok(Entry { question, answer: reply(&survey, open.ask(replies.ballots(question))?) });
        let entries = round.map(entry).collect::<Result<Vec<_>, Error>>()?;
        journal.record(&entries)?;
        lease.confirm()?;
        let asked = journal.entries().len();
        if watch(Moment::Asked { asked, answered: asked, of: u64::from(survey.questions) * rounds }) == Going::Stop {
            return Ok(Going::Stop);
        }
    }
    Ok(Going::On)
}

/// What is said of what was found: the labels with more than half of the ballots, or a number within the bounds.
fn reply(survey: &Survey, finding: Finding) -> Option<Reply> {
    let half = 0.5 * f64::from(survey.teachers);
    match (finding, survey.form) {
        (Finding::Counts(counts), _) => {
            let won = (0_u32..).zip(counts).filter(|(_, count)| *count > half);
            Some(Reply::Labels(won.map(|(label, _)| label).collect()))
        }
        (Finding::Mean(mean), Form::Number(bounds)) => Some(Reply::Number(mean.clamp(bounds.lower(), bounds.upper()))),
        (Finding::Mean(_) | Finding::Exhausted, _) => None,
    }
}
