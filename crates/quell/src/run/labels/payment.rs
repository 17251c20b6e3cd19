//! What a labelling run pays for: its answers and, if requested, their data-dependent cost.
//!
//! A run pays before its first question. Recorded answers are never paid for again.

use quell_privacy::{
    ledger::{Book, Composition, Ledger, Line, Spent, Terms, Unit},
    mechanism::{Asked, Finding, Form, Poll, ReleasedCost, Rule, SmoothCost, StableMax, Survey, VoteCost},
    units::{Delta, Epsilon, NoiseMultiplier, Order},
};
use serde::{Deserialize, Serialize};

use super::Results;
use crate::{
    Error, Input,
    learner::Control,
    run::{Covered, Folder, Guarantee, NewBudget, Progress, Watch, charge},
    voting::{
        Aggregation, Asker, Entry, Journal, Plan, Recipe, SurveyAnswer, ask, entry,
        pate::{Ballots, SurveyBallots},
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
    if budget.is_none() && votes.reveal {
        return Err(Error::Missing { what: Input::Budget });
    }
    let mut terms = guarantee(plan, unit, votes).terms(dataset, budget, votes.epsilon)?;
    if matches!(plan.aggregation, Aggregation::Stable(_)) {
        // Stable winners have only a Rényi bound.
        terms.composition = Composition::Renyi;
        if let Some(epsilon) = terms.budget.epsilon.filter(|_| budget.is_none()) {
            // Rényi composition alone divides δ among its orders, and so needs a slightly larger budget.
            terms.budget.epsilon = Some(Epsilon::new(epsilon.get() * 1.06)?);
        }
    }
    Ok(terms)
}

/// The privacy guarantee of the answers.
pub(super) fn guarantee(plan: &Plan, unit: Unit, votes: &Recipe) -> Guarantee {
    let covers = if votes.reveal { Covered::VotesWithoutCost } else { Covered::Votes };
    let Plan { epsilon, delta, neighbors, .. } = *plan;
    Guarantee { epsilon, delta, unit, neighbors, covers }
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

/// The total spent after all charges of a run. Nothing is charged.
pub(super) fn quote<B: Book>(
    plan: &Plan,
    unit: Unit,
    votes: &Recipe,
    ledger: &mut Ledger<B>,
) -> Result<Spent, Error> {
    guarantee(plan, unit, votes).check(ledger)?;
    let charge = match &plan.aggregation {
        Aggregation::Polls(poll, rounds) => ledger.quote(poll, *rounds)?.0,
        Aggregation::Stable(stable) => ledger.quote(stable, 1)?.0,
        Aggregation::Surveys(survey, rounds) => ledger.quote(survey, *rounds)?.0,
    };
    let reveal = if votes.reveal { Some(ledger.quote(&reveal_mechanism(plan)?, 1)?.0) } else { None };
    let mut state = ledger.state()?.clone();
    for charge in std::iter::once(charge).chain(reveal) {
        state.apply(&Line::Charged(charge))?;
    }
    Ok(state.spent())
}

/// A labelling run that pays: its plan and settings, its ledger and its folder.
pub(super) struct Payment<'a, B: Book> {
    pub(super) plan: &'a Plan,
    pub(super) votes: &'a Recipe,
    pub(super) ledger: &'a mut Ledger<B>,
    pub(super) folder: &'a Folder,
}

impl<B: Book> Payment<'_, B> {
    /// Pays once, and answers questions from ballots for classes.
    /// Then reveals the data-dependent cost, if the settings request it.
    ///
    /// `order` lists the questions for stable winners. Otherwise `asker` chooses the questions.
    pub(super) fn answer_from_ballots(
        &mut self,
        ballots: &Ballots,
        order: &[usize],
        asker: &mut impl Asker,
        journal: &mut Journal,
        results: &mut Results,
        watch: &mut Watch<'_>,
    ) -> Result<Control, Error> {
        if self.votes.reveal {
            self.reserve_reveal()?;
        }
        let control = match self.plan.aggregation {
            Aggregation::Stable(stable) => self.answer_stable(stable, ballots, order, journal)?,
            Aggregation::Polls(..) | Aggregation::Surveys(..) => self.answer(asker, journal, watch)?,
        };
        if control != Control::Stop && self.votes.reveal {
            results.revealed = self.reveal(ballots, journal)?;
            results.reveal_lost = results.revealed.is_none();
        }
        Ok(control)
    }

    /// Pays once, and asks questions until all paid answers are given.
    pub(super) fn answer(
        &mut self,
        asker: &mut impl Asker,
        journal: &mut Journal,
        watch: &mut Watch<'_>,
    ) -> Result<Control, Error> {
        let Self { plan, folder, .. } = *self;
        let Aggregation::Polls(poll, rounds) = plan.aggregation else {
            return Err(Error::Setting {
                name: "votes",
                found: "a survey".into(),
                expected: "a poll about classes",
            });
        };
        let (lease, _) = charge::lease(self.ledger, folder, (poll, rounds), (plan.epsilon, plan.delta))?;
        let leased = lease.position();
        let (asked, answered) = (journal.entries().len() as u64, journal.answers().len() as u64);
        charge::within_lease(
            folder,
            "questions that were put",
            asked,
            leased.saturating_mul(poll.questions.into()),
        )?;
        charge::within_lease(folder, "answers", answered, leased.saturating_mul(poll.answers.into()))?;
        let total = u64::from(poll.answers) * rounds;
        ask(lease.in_blocks_of(1), journal, asker, |journal| {
            watch(Progress::counted("answer", journal.answers().len() as u64, total))
        })
    }

    /// Pays once, and asks for the stable winner of each question.
    ///
    /// All questions are one step of the lease. So a killed run loses the questions that it had not recorded.
    fn answer_stable(
        &mut self,
        stable: StableMax,
        ballots: &Ballots,
        order: &[usize],
        journal: &mut Journal,
    ) -> Result<Control, Error> {
        let Self { plan, folder, .. } = *self;
        let (mut lease, _) = charge::lease(self.ledger, folder, (stable, 1), (plan.epsilon, plan.delta))?;
        let asked = journal.entries().len() as u64;
        charge::within_lease(folder, "answers", asked, lease.position().saturating_mul(asked))?;
        let Some(paid) = lease.next() else { return Ok(Control::Continue) };
        let mut stability = paid?.run()?;
        for block in order.chunks(64) {
            let answers = block.iter().map(|question| stability.ask(&ballots.votes(*question)));
            let answers = answers.collect::<Result<Vec<_>, _>>()?;
            journal.record(&block.iter().zip(answers).filter_map(entry).collect::<Vec<_>>())?;
        }
        lease.confirm()?;
        Ok(Control::Continue)
    }

    /// Pays once, and asks about labels or numbers in the order of the questions.
    pub(super) fn answer_survey(
        &mut self,
        ballots: &SurveyBallots,
        journal: &mut Journal<SurveyAnswer>,
        watch: &mut Watch<'_>,
    ) -> Result<Control, Error> {
        let Self { plan, folder, .. } = *self;
        let Aggregation::Surveys(survey, rounds) = plan.aggregation else {
            return Err(Error::Setting {
                name: "votes",
                found: "a poll".into(),
                expected: "a survey about labels or numbers",
            });
        };
        let (lease, _) = charge::lease(self.ledger, folder, (survey, rounds), (plan.epsilon, plan.delta))?;
        let leased = lease.position().saturating_mul(survey.questions.into());
        charge::within_lease(folder, "answers", journal.entries().len() as u64, leased)?;
        // Each round is a block of its own, so a killed run loses one round at most.
        let mut lease = lease.in_blocks_of(1);
        while journal.entries().len() < ballots.questions() {
            let Some(paid) = lease.next() else { break };
            let mut open = paid?.run()?;
            let first = journal.entries().len();
            let round = first..ballots.questions().min(first + survey.questions as usize);
            let entry = |question| {
                let finding = open.ask(ballots.ballots(question))?;
                Ok(Entry { question, answer: survey_answer(&survey, finding) })
            };
            let entries = round.map(entry).collect::<Result<Vec<_>, Error>>()?;
            journal.record(&entries)?;
            lease.confirm()?;
            let asked = journal.entries().len();
            let total = u64::from(survey.questions) * rounds;
            if watch(Progress::counted("answer", asked as u64, total)) == Control::Stop {
                return Ok(Control::Stop);
            }
        }
        Ok(Control::Continue)
    }

    /// Pays for the answers and for the reveal, before the first question.
    /// After the questions, the budget might no longer suffice for the reveal.
    fn reserve_reveal(&mut self) -> Result<(), Error> {
        let Self { plan, folder, .. } = *self;
        let Aggregation::Polls(poll, rounds) = plan.aggregation else { return Err(unfit_for_reveal()) };
        charge::lease(self.ledger, folder, (poll, rounds), (plan.epsilon, plan.delta))?;
        charge::lease_reveal(self.ledger, folder, reveal_mechanism(plan)?)?;
        Ok(())
    }

    /// Releases a bound on the total cost of the questions in the journal.
    /// Returns `None` if the release was paid for and lost when the run was killed.
    fn reveal(&mut self, ballots: &Ballots, journal: &Journal) -> Result<Option<Revealed>, Error> {
        let Self { plan, folder, .. } = *self;
        if let Some(revealed) = folder.revealed()? {
            charge::check(self.ledger, folder)?;
            return Ok(Some(revealed));
        }
        let Aggregation::Polls(Poll { rule: Rule::Gaussian(deviation), screening, .. }, _) = plan.aggregation
        else {
            return Err(unfit_for_reveal());
        };
        let asked = if screening.is_some() { Asked::OnTheWay } else { Asked::InAdvance };
        let teachers = ballots.teachers().try_into().unwrap_or(u32::MAX);
        let mut cost = VoteCost::new(Order::new(ORDER)?, teachers, asked);
        for entry in journal.entries() {
            let votes = ballots.votes(entry.question);
            if let Some(screening) = screening {
                let threshold = screening.threshold.try_into().map_err(|_| unfit_for_reveal())?;
                cost.screened(&votes, threshold, screening.deviation)?;
            }
            if entry.answer.is_some() {
                cost.answered(&votes, deviation)?;
            }
        }
        let mut lease = charge::lease_reveal(self.ledger, folder, reveal_mechanism(plan)?)?;
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
}

/// Turns the finding of a survey into its answer.
/// The answer names the labels on more than half of the ballots, or a number clamped to the bounds.
fn survey_answer(survey: &Survey, finding: Finding) -> Option<SurveyAnswer> {
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

/// The released data-dependent cost of the votes.
///
/// This cost is less than the price paid where teachers agree. It depends on private data, so its release
/// costs privacy too.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revealed {
    /// ε of all answers and of this release, at the δ of the plan.
    pub epsilon: f64,
    /// Whether ε is a property of the dataset.
    /// If questions were screened, ε is a property of the released answers.
    pub of_the_dataset: bool,
}

/// The Rényi order of the reveal, fixed before any votes are seen.
/// At ε about one and δ = 1e-5 the best order is between 10 and 20.
const ORDER: f64 = 12.0;

/// The noise multiplier of the reveal, which then costs ρ = 1/64.
const NOISE: f64 = 8.0;

/// The share of δ with which the revealed bound may fail.
/// A ledger sets aside more than this.
const FAILURE: f64 = 1e-3;

/// The mechanism that reveals the cost of a plan's votes.
///
/// The noise on the counts is the scale, in ballots, on which the cost changes. So smoothness is relative to
/// that noise. If teachers agree by ten times the noise, a smoothness of four divided by the noise makes the
/// smooth sensitivity almost zero.
fn reveal_mechanism(plan: &Plan) -> Result<SmoothCost, Error> {
    let Aggregation::Polls(Poll { rule: Rule::Gaussian(deviation), .. }, _) = plan.aggregation else {
        return Err(unfit_for_reveal());
    };
    let smoothness = (4.0 / deviation.get()).clamp(1e-3, 1.0);
    let (order, noise) = (Order::new(ORDER)?, NoiseMultiplier::new(NOISE)?);
    Ok(SmoothCost::new(order, smoothness, noise, noise, Delta::new(FAILURE * plan.delta.get())?)?)
}

/// Checks, before anything is paid, that the cost of a plan's votes can be revealed.
pub(super) fn check_reveal(plan: &Plan) -> Result<(), Error> {
    reveal_mechanism(plan)?;
    match plan.aggregation {
        Aggregation::Polls(Poll { screening: Some(screening), .. }, _)
            if u32::try_from(screening.threshold).is_err() =>
        {
            Err(unfit_for_reveal())
        }
        _ => Ok(()),
    }
}

/// The error for settings whose data-dependent cost no theorem covers.
pub(super) fn unfit_for_reveal() -> Error {
    Error::Setting {
        name: "reveal",
        found: "true".into(),
        expected: "false; only teachers with a gaussian or confident aggregator and questions chosen in advance can reveal their cost",
    }
}
