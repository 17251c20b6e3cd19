//! The debt of a run that labels: written down before the first question, and whatever is recorded is never paid for again.

use quell_privacy::{
    ledger::{Book, Budget, Composition, Ledger, Terms, Unit},
    mechanism::Votes,
    units::{Delta, Epsilon},
};

use super::Moment;
use crate::{
    Error,
    dp_sgd::Going,
    run::{Allowance, Folder, Paid},
    voting::{Asker, Journal, Plan, Recipe, Release, ask, entry},
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
    let before = folder.paid_if_any()?;
    let paid = |receipt| Paid { receipt, epsilon: plan.epsilon, delta: plan.delta.get() };
    match &plan.release {
        // Everything is paid for at once, so what was not asked when a run was killed is lost.
        Release::Stable(_) if before.is_some() => Ok(Going::On),
        Release::Stable(stable) => {
            let charged = ledger.charge(*stable)?;
            folder.write_paid(&paid(charged.receipt().clone()))?;
            let mut stability = charged.run()?;
            for block in order.chunks(64) {
                let answers = block.iter().map(|question| stability.ask(&votes(*question)));
                let answers = answers.collect::<Result<Vec<_>, _>>()?;
                journal.record(&block.iter().zip(answers).filter_map(entry).collect::<Vec<_>>())?;
            }
            Ok(Going::On)
        }
        Release::Polls(poll, rounds) => {
            let lease = match &before {
                Some(before) => ledger.resume(*poll, before.receipt.entry)?,
                None => ledger.reserve(*poll, *rounds)?,
            };
            if before.is_none() {
                folder.write_paid(&paid(lease.receipt().clone()))?;
            }
            let of = plan.release.answers().unwrap_or(0);
            ask(lease.in_blocks_of(1), journal, asker, |moment| {
                watch(Moment::Asked { asked: moment.asked, answered: moment.answered, of })
            })
        }
    }
}
