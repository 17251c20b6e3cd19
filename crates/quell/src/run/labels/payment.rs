//! Payment of a labelling run, before its first question; recorded answers are never paid again.

use quell_privacy::{
    ledger::{Book, Budget, Composition, Ledger, Line, Spent, Terms, Unit},
    mechanism::{Finding, Form, Survey, Votes},
    units::{Delta, Epsilon},
};

use super::reveal;
use crate::{
    Error, Input,
    learner::Control,
    run::{Folder, NewBudget, Progress, Promise, Watch, charge},
    voting::{
        Aggregation, Asker, Entry, Journal, Plan, Recipe, SurveyAnswer, ask, entry, pate::SurveyBallots,
    },
};

/// The terms with which to open a ledger that does not exist yet.
pub(super) fn terms(
    plan: &Plan,
    dataset: String,
    unit: Unit,
    budget: Option<NewBudget>,
    votes: &Recipe,
) -> Result<Terms, Error> {
    let (epsilon, delta) = match budget {
        Some(budget) => (budget.epsilon, Delta::new(budget.delta)?),
        None if votes.reveal => {
            return Err(Error::Missing { what: Input::Budget });
        }
        // The budget has a small margin for rounding.
        None => (votes.epsilon.unwrap_or(plan.epsilon.upper * 1.001), plan.delta),
    };
    // Stable winners have only a Rényi bound. A ledger with Rényi composition alone divides δ among its
    // orders. It needs a slightly larger budget, unless the settings give a budget.
    let stable = matches!(plan.aggregation, Aggregation::Stable(_));
    let room = if stable && budget.is_none() { 1.06 } else { 1.0 };
    let composition = if stable { Composition::Renyi } else { Composition::Combined };
    let budget = Budget { epsilon: Some(Epsilon::new(epsilon * room)?), delta };
    Ok(Terms { dataset, unit, neighbors: plan.neighbors, budget, composition })
}

/// The privacy guarantee of the answers.
pub(super) fn promise(plan: &Plan, unit: Unit) -> Promise {
    let Plan { epsilon, delta, neighbors, .. } = *plan;
    Promise { epsilon, delta, unit, neighbors, is_by_vote: true }
}

/// What the payment covers, in words.
pub(super) fn amount(plan: &Plan) -> String {
    plan.aggregation.answers().map_or("all stable answers".into(), |answers| format!("{answers} answers"))
}

/// Values derived from the settings, as JSON.
pub(super) fn settings(plan: &Plan) -> serde_json::Map<String, serde_json::Value> {
    let answers = plan.aggregation.answers();
    let json = serde_json::json!({"answers": answers, "epsilon": plan.epsilon, "delta": plan.delta.get()});
    json.as_object().cloned().unwrap_or_default()
}

/// Checks that the ledger has the same neighbours and the same privacy unit.
pub(super) fn check<B: Book>(plan: &Plan, unit: Unit, ledger: &mut Ledger<B>) -> Result<(), Error> {
    let terms = ledger.state()?.terms();
    if terms.neighbors != plan.neighbors || terms.unit != unit {
        return Err(Error::OtherPromise { dataset: terms.dataset.clone() });
    }
    Ok(())
}

/// The total spent after all charges of a run. Nothing is written to the ledger.
pub(super) fn quote<B: Book>(
    plan: &Plan,
    unit: Unit,
    votes: &Recipe,
    ledger: &mut Ledger<B>,
) -> Result<Spent, Error> {
    check(plan, unit, ledger)?;
    let charge = match &plan.aggregation {
        Aggregation::Polls(poll, rounds) => ledger.quote(poll, *rounds)?.0,
        Aggregation::Stable(stable) => ledger.quote(stable, 1)?.0,
        Aggregation::Surveys(survey, rounds) => ledger.quote(survey, *rounds)?.0,
    };
    let reveal = if votes.reveal { Some(ledger.quote(&reveal::price(plan)?, 1)?.0) } else { None };
    let mut state = ledger.state()?.clone();
    for charge in std::iter::once(charge).chain(reveal) {
        state.apply(&Line::Charged(charge))?;
    }
    Ok(state.spent())
}

/// Pays if the run has not paid, and asks until all paid answers are given.
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
    watch: &mut Watch<'_>,
) -> Result<Control, Error> {
    match &plan.aggregation {
        Aggregation::Stable(stable) => {
            let (mut lease, _) = charge::lease(ledger, folder, (*stable, 1), (plan.epsilon, plan.delta))?;
            let asked = journal.entries().len() as u64;
            charge::within_lease(folder, "answers", asked, lease.position().saturating_mul(asked))?;
            // All questions are one lease, so a killed run loses the questions that it had not recorded.
            let Some(paid) = lease.next() else { return Ok(Control::Continue) };
            let mut stability = paid?.run()?;
            for block in order.chunks(64) {
                let answers = block.iter().map(|question| stability.ask(&votes(*question)));
                let answers = answers.collect::<Result<Vec<_>, _>>()?;
                journal.record(&block.iter().zip(answers).filter_map(entry).collect::<Vec<_>>())?;
            }
            lease.confirm()?;
            Ok(Control::Continue)
        }
        Aggregation::Polls(poll, rounds) => {
            let (lease, _) = charge::lease(ledger, folder, (*poll, *rounds), (plan.epsilon, plan.delta))?;
            let rounds = lease.position();
            let (asked, answered) = (journal.entries().len() as u64, journal.answers().len() as u64);
            charge::within_lease(
                folder,
                "questions that were put",
                asked,
                rounds.saturating_mul(poll.questions.into()),
            )?;
            charge::within_lease(folder, "answers", answered, rounds.saturating_mul(poll.answers.into()))?;
            let of = plan.aggregation.answers().unwrap_or(0);
            ask(lease.in_blocks_of(1), journal, asker, |journal| {
                watch(Progress::counted("answer", journal.answers().len() as u64, of))
            })
        }
        Aggregation::Surveys(..) => {
            Err(Error::Setting { name: "votes", found: "a survey".into(), expected: "a poll about classes" })
        }
    }
}

/// Pays and asks like [`answer`], for labels or numbers, in the order of the questions.
pub(super) fn survey<B: Book>(
    plan: &Plan,
    ledger: &mut Ledger<B>,
    folder: &Folder,
    journal: &mut Journal<SurveyAnswer>,
    replies: &SurveyBallots,
    watch: &mut Watch<'_>,
) -> Result<Control, Error> {
    let Aggregation::Surveys(survey, rounds) = plan.aggregation else {
        return Err(Error::Setting {
            name: "votes",
            found: "a poll".into(),
            expected: "a survey about labels or numbers",
        });
    };
    let (lease, _) = charge::lease(ledger, folder, (survey, rounds), (plan.epsilon, plan.delta))?;
    let leased = lease.position().saturating_mul(survey.questions.into());
    charge::within_lease(folder, "answers", journal.entries().len() as u64, leased)?;
    // A killed run loses its current round.
    let mut lease = lease.in_blocks_of(1);
    while journal.entries().len() < replies.questions() {
        let Some(paid) = lease.next() else { break };
        let mut open = paid?.run()?;
        let first = journal.entries().len();
        let round = first..replies.questions().min(first + survey.questions as usize);
        let entry =
            |question| Ok(Entry { question, answer: reply(&survey, open.ask(replies.ballots(question))?) });
        let entries = round.map(entry).collect::<Result<Vec<_>, Error>>()?;
        journal.record(&entries)?;
        lease.confirm()?;
        let asked = journal.entries().len();
        let of = u64::from(survey.questions) * rounds;
        if watch(Progress::counted("answer", asked as u64, of)) == Control::Stop {
            return Ok(Control::Stop);
        }
    }
    Ok(Control::Continue)
}

/// Turns a finding into a reply.
/// The reply names the labels on more than half of the ballots, or a number clamped to the bounds.
fn reply(survey: &Survey, finding: Finding) -> Option<SurveyAnswer> {
    let half = 0.5 * f64::from(survey.teachers);
    match (finding, survey.form) {
        (Finding::Counts(counts), _) => {
            let won = (0_u32..).zip(counts).filter(|(_, count)| *count > half);
            Some(SurveyAnswer::Labels(won.map(|(label, _)| label).collect()))
        }
        (Finding::Mean(mean), Form::Number(bounds)) => {
            Some(SurveyAnswer::Number(mean.clamp(bounds.lower(), bounds.upper())))
        }
        (Finding::Mean(_) | Finding::Exhausted, _) => None,
    }
}
