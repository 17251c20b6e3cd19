//! Reveals the data-dependent privacy cost of the votes, as a paid release.
//! This cost is less than the price paid where teachers agree. It is a function of private data, so showing
//! it costs privacy too.

use quell_privacy::{
    ledger::{Book, Ledger},
    mechanism::{Asked, Poll, ReleasedCost, Rule, SmoothCost, VoteCost},
    units::{Delta, NoiseMultiplier, Order},
};
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    run::{Folder, charge},
    voting::{Aggregation, Journal, Plan, pate::Ballots},
};

/// The released data-dependent cost of the votes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revealed {
    /// ε of all answers and of this release, at the δ of the plan.
    pub epsilon: f64,
    /// Whether ε is a property of the dataset, rather than of the released answers.
    /// If questions were screened, ε is a property of the released answers.
    pub of_the_dataset: bool,
}

/// The Rényi order, fixed before any votes are seen.
/// At ε about one and δ = 1e-5 the best order is between 10 and 20.
const ORDER: f64 = 12.0;

/// Noise multiplier of the release, which then costs ρ = 1/64.
const NOISE: f64 = 8.0;

/// The share of δ with which the bound may fail.
/// It is less than a ledger sets aside.
const FAILURE: f64 = 1e-3;

/// The mechanism that releases the cost, for a plan at this δ.
/// The cost changes on the scale of the noise, counted in ballots, so smoothness is relative to the noise.
/// Where teachers agree by ten times the noise, a smoothness of four over the noise makes the smooth
/// sensitivity almost vanish.
fn mechanism(delta: Delta, deviation: NoiseMultiplier) -> Result<SmoothCost, Error> {
    let smoothness = (4.0 / deviation.get()).clamp(1e-3, 1.0);
    let noise = NoiseMultiplier::new(NOISE)?;
    Ok(SmoothCost::new(Order::new(ORDER)?, smoothness, noise, noise, Delta::new(FAILURE * delta.get())?)?)
}

/// The mechanism whose price a plan pays to reveal the cost of its votes.
pub(super) fn price(plan: &Plan) -> Result<SmoothCost, Error> {
    let Aggregation::Polls(Poll { rule: Rule::Gaussian(deviation), .. }, _) = plan.aggregation else {
        return Err(unfit());
    };
    mechanism(plan.delta, deviation)
}

/// Checks, before anything is paid, that the cost of such votes can be revealed.
pub(super) fn check(plan: &Plan) -> Result<(), Error> {
    price(plan)?;
    match plan.aggregation {
        Aggregation::Polls(Poll { screening: Some(screening), .. }, _)
            if u32::try_from(screening.threshold).is_err() =>
        {
            Err(unfit())
        }
        _ => Ok(()),
    }
}

/// Pays for the votes and for the reveal, before the first question.
/// Later the budget might not suffice for the reveal.
pub(super) fn reserve<B: Book>(plan: &Plan, ledger: &mut Ledger<B>, folder: &Folder) -> Result<(), Error> {
    let Aggregation::Polls(poll, rounds) = plan.aggregation else { return Err(unfit()) };
    charge::lease(ledger, folder, (poll, rounds), (plan.epsilon, plan.delta))?;
    charge::lease_reveal(ledger, folder, price(plan)?)?;
    Ok(())
}

/// Adds up the cost of every question in the journal and releases a bound.
/// Pays first if that is still to be done. Returns `None` if the release was paid for and lost when the run
/// was killed.
pub(super) fn reveal<B: Book>(
    plan: &Plan,
    ballots: &Ballots,
    journal: &Journal,
    ledger: &mut Ledger<B>,
    folder: &Folder,
) -> Result<Option<Revealed>, Error> {
    if let Some(revealed) = folder.revealed()? {
        charge::check(ledger, folder)?;
        return Ok(Some(revealed));
    }
    let Aggregation::Polls(Poll { rule: Rule::Gaussian(deviation), screening, .. }, _) = plan.aggregation
    else {
        return Err(unfit());
    };
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
    let mut lease = charge::lease_reveal(ledger, folder, mechanism(plan.delta, deviation)?)?;
    let Some(paid) = lease.next() else { return Ok(None) };
    let released: ReleasedCost = paid?.run(&cost)?;
    let revealed = Revealed {
        epsilon: released.epsilon(plan.delta),
        of_the_dataset: released.asked == Asked::InAdvance,
    };
    folder.write_revealed(&revealed)?;
    lease.confirm()?;
    Ok(Some(revealed))
}

/// The error for settings that no theorem covers.
pub(super) fn unfit() -> Error {
    Error::Setting {
        name: "reveal",
        found: "true".into(),
        expected: "false; only teachers with a gaussian or confident aggregator and questions chosen in advance can reveal their cost",
    }
}
