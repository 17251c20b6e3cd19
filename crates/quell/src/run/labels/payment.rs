//! The debt of a run that labels: written down before the first question, and whatever is recorded is never paid for again.

use quell_privacy::{
    ledger::{Book, Budget, Composition, Lease, Ledger, Receipt, Terms, Unit},
    mechanism::{Finding, Form, Mechanism, Survey, Votes},
    units::{Delta, Epsilon},
};

use super::Moment;
use crate::{
    Error,
    dp_sgd::Going,
    pate::Replies,
    run::{Allowance, Folder, Paid},
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
    // Stable winners have a Rényi bound and no other. A ledger for that alone divides δ among its orders, and needs a little more room.
    let stable = matches!(plan.release, Release::Stable(_));
    let (composition, room) = if stable { (Composition::Renyi, 1.06) } else { (Composition::Best, 1.0) };
    let budget = Budget { epsilon: Some(Epsilon::new(epsilon * room)?), delta };
    Ok(Terms { dataset, unit, neighbors: plan.neighbors, budget, composition })
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
        // Everything is paid for at once, so what was not asked when a run was killed is lost.
        Release::Stable(_) if folder.paid_if_any()?.is_some() => Ok(Going::On),
        Release::Stable(stable) => {
            let charged = ledger.charge(*stable)?;
            folder.write_paid(&paid(plan, charged.receipt()))?;
            let mut stability = charged.run()?;
            for block in order.chunks(64) {
                let answers = block.iter().map(|question| stability.ask(&votes(*question)));
                let answers = answers.collect::<Result<Vec<_>, _>>()?;
                journal.record(&block.iter().zip(answers).filter_map(entry).collect::<Vec<_>>())?;
            }
            Ok(Going::On)
        }
        Release::Polls(poll, rounds) => {
            let lease = lease(plan, *poll, *rounds, ledger, folder)?;
            let of = u64::from(poll.answers) * rounds;
            ask(lease, journal, asker, |moment| watch(Moment::Asked { asked: moment.asked, answered: moment.answered, of }))
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
    let mut lease = lease(plan, survey, rounds, ledger, folder)?;
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

fn paid(plan: &Plan, receipt: &Receipt) -> Paid {
    Paid { receipt: receipt.clone(), epsilon: plan.epsilon, delta: plan.delta.get() }
}

/// What is left of what was paid for; it is paid for now if that is still to be done. A run that is killed loses the round it is in.
fn lease<'l, M: Mechanism, B: Book>(
    plan: &Plan,
    mechanism: M,
    rounds: u64,
    ledger: &'l mut Ledger<B>,
    folder: &Folder,
) -> Result<Lease<'l, M, B>, Error> {
    if let Some(before) = folder.paid_if_any()? {
        return Ok(ledger.resume(mechanism, before.receipt.entry)?.in_blocks_of(1));
    }
    let lease = ledger.reserve(mechanism, rounds)?;
    folder.write_paid(&paid(plan, lease.receipt()))?;
    Ok(lease.in_blocks_of(1))
}
