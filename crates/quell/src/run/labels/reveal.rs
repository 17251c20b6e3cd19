//! What the votes cost at the votes that were cast: less than what was paid, where teachers agree. That number is itself a secret of the data, and shown only for a price.

use quell_privacy::{
    ledger::{Book, Ledger},
    mechanism::{Asked, Poll, ReleasedCost, Rule, SmoothCost, VoteCost},
    units::{Delta, NoiseMultiplier, Order},
};
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    pate::Ballots,
    run::{Folder, debt},
    voting::{Journal, Plan, Release},
};

/// What was shown about the cost of the votes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revealed {
    /// ε of all answers and of this number, at the δ of the plan.
    pub epsilon: f64,
    /// Whether it is a property of the dataset, or of what came out: where questions were screened, the latter.
    pub of_the_dataset: bool,
}

/// The order is fixed before votes are seen. At ε about one and δ = 1e-5 the best is between 10 and 20.
const ORDER: f64 = 12.0;

/// Noise over what one record can move: the release itself then costs ρ = 1/64.
const NOISE: f64 = 8.0;

/// Part of δ with which the bound may fail: less than what a ledger has set aside.
const FAILURE: f64 = 1e-3;

/// The mechanism, for a plan at this δ. Costs change over as many ballots as the noise has: that is what smoothness is
/// measured in. Where teachers agree by ten times the noise, a smoothness of four over the noise leaves next to nothing of the sensitivity.
fn mechanism(delta: Delta, deviation: NoiseMultiplier) -> Result<SmoothCost, Error> {
    let smoothness = (4.0 / deviation.get()).clamp(1e-3, 1.0);
    let noise = NoiseMultiplier::new(NOISE)?;
    Ok(SmoothCost::new(Order::new(ORDER)?, smoothness, noise, noise, Delta::new(FAILURE * delta.get())?)?)
}

/// What a plan pays to show what its votes cost.
pub(super) fn price(plan: &Plan) -> Result<SmoothCost, Error> {
    let Release::Polls(Poll { rule: Rule::Gaussian(deviation), .. }, _) = plan.release else { return Err(unfit()) };
    mechanism(plan.delta, deviation)
}

/// Whether the cost of such votes can be shown: asked before anything is paid.
pub(super) fn check(plan: &Plan) -> Result<(), Error> {
    price(plan)?;
    match plan.release {
        Release::Polls(Poll { screening: Some(screening), .. }, _) if u32::try_from(screening.threshold).is_err() => Err(unfit()),
        _ => Ok(()),
    }
}

/// Pays for the votes and for what they cost, before the first question: later, the budget might not bear it.
pub(super) fn reserve<B: Book>(plan: &Plan, ledger: &mut Ledger<B>, folder: &Folder) -> Result<(), Error> {
    let Release::Polls(poll, rounds) = plan.release else { return Err(unfit()) };
    debt::lease(ledger, folder, (poll, rounds), (plan.epsilon, plan.delta))?;
    debt::lease_reveal(ledger, folder, price(plan)?)?;
    Ok(())
}

/// Adds up what every question of the journal cost at its votes, and shows a bound; pays first, if that is still to be done. Nothing if that was paid for and lost when the run was killed.
pub(super) fn reveal<B: Book>(
    plan: &Plan,
    ballots: &Ballots,
    journal: &Journal,
    ledger: &mut Ledger<B>,
    folder: &Folder,
) -> Result<Option<Revealed>, Error> {
    if let Some(revealed) = folder.revealed()? {
        debt::check(ledger, folder)?;
        return Ok(Some(revealed));
    }
    let Release::Polls(Poll { rule: Rule::Gaussian(deviation), screening, .. }, _) = plan.release else { return Err(unfit()) };
    let asked = if screening.is_some() { Asked::OnTheWay } else { Asked::InAdvance };
    let teachers = ballots.teachers().try_into().unwrap_or(u32::MAX);
    let mut cost = VoteCost::new(Order::new(ORDER)?, teachers, asked);
    for entry in journal.entries() {
        let votes = ballots.votes(entry.question);
        if let Some(screening) = screening {
            cost.screened(&votes, screening.threshold.try_into().map_err(|_| unfit())?, screening.deviation)?;
        }
        if entry.answer.is_some() {
            cost.answered(&votes, deviation)?;
        }
    }
    let mut lease = debt::lease_reveal(ledger, folder, mechanism(plan.delta, deviation)?)?;
    let Some(paid) = lease.next() else { return Ok(None) };
    let released: ReleasedCost = paid?.run(&cost)?;
    let revealed = Revealed { epsilon: released.epsilon(plan.delta), of_the_dataset: released.asked == Asked::InAdvance };
    folder.write_revealed(&revealed)?;
    lease.confirm()?;
    Ok(Some(revealed))
}

/// Where there is no theorem.
pub(super) fn unfit() -> Error {
    Error::Setting {
        name: "reveal",
        found: "true".into(),
        expected: "false, but for teachers with a gaussian or confident aggregator and questions that do not follow from answers",
    }
}
