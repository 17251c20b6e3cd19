//! Answers of teachers from elsewhere: there are ballots, and nothing else is known.

use quell_privacy::{
    ledger::{Book, Ledger, Terms, Unit},
    mechanism::{Answer, Polling, Voters},
};

use super::{Moment, Outcome, payment, reveal};
use crate::{
    Error,
    dp_sgd::Going,
    pate::Ballots,
    run::{Allowance, Folder},
    voting::{Aggregator, Asker, Facts, Journal, Plan, Recipe},
};

/// Ballots, and how questions are put to whoever cast them.
pub struct External {
    ballots: Ballots,
    votes: Recipe,
    /// What will be asked and what it costs.
    pub plan: Plan,
}

impl External {
    /// Fills the gaps. Nothing is paid.
    ///
    /// # Contract
    /// One record, or one user, touches the ballots of one teacher alone.
    pub fn new(ballots: Ballots, votes: &Recipe) -> Result<Self, Error> {
        if votes.aggregator == Aggregator::Interactive {
            let found = "interactive".into();
            return Err(Error::Setting {
                name: "aggregator",
                found,
                expected: "another: without public records there is no student",
            });
        }
        if votes.reveal && !matches!(votes.aggregator, Aggregator::Gaussian | Aggregator::Confident) {
            return Err(reveal::unfit());
        }
        let facts = Facts {
            candidates: ballots.classes(),
            voters: Voters::Teachers,
            ballots: ballots.teachers().try_into().unwrap_or(u32::MAX),
            questions: ballots.questions().try_into().unwrap_or(u32::MAX),
        };
        let plan = votes.plan(&facts)?;
        Ok(Self { ballots, votes: votes.clone(), plan })
    }

    /// The first line of a ledger that is still to be opened.
    pub fn terms(&self, dataset: &str, budget: Option<Allowance>) -> Result<Terms, Error> {
        payment::terms(&self.plan, dataset.into(), Unit::Example, budget, &self.votes)
    }

    /// Pays and asks, in the order of the questions.
    pub fn go<B: Book>(
        &self,
        ledger: &mut Ledger<B>,
        folder: &Folder,
        watch: &mut (dyn FnMut(Moment) -> Going + Send),
    ) -> Result<Outcome, Error> {
        let begun = std::time::Instant::now();
        let mut journal = Journal::open(&folder.file(Folder::ANSWERS))?;
        let order: Vec<usize> = (0..self.ballots.questions()).collect();
        let votes = |question: usize| self.ballots.votes(question);
        let mut asker = InOrder { ballots: &self.ballots };
        let going = payment::answer(&self.plan, ledger, folder, &mut journal, &order, votes, &mut asker, watch)?;
        let mut outcome = Outcome { paid: folder.paid_if_any()?, finished: going != Going::Stop, ..Outcome::default() };
        outcome.count(&journal);
        if outcome.finished && self.votes.reveal {
            outcome.revealed = Some(reveal::reveal(&self.plan, &self.ballots, &journal, ledger)?);
        }
        outcome.seconds = begun.elapsed().as_secs_f64();
        folder.write_labels(&outcome)?;
        Ok(outcome)
    }
}

/// Asks one question after the other.
struct InOrder<'b> {
    ballots: &'b Ballots,
}

impl Asker for InOrder<'_> {
    fn choose(&mut self, journal: &Journal, polling: &Polling) -> Result<Vec<usize>, Error> {
        let first = journal.entries().len();
        Ok((first..self.ballots.questions()).take(64.min(polling.answers_left() as usize)).collect())
    }

    fn put(&mut self, polling: &mut Polling, questions: &[usize]) -> Result<Vec<Answer>, Error> {
        questions.iter().map(|question| Ok(polling.ask(&self.ballots.votes(*question), &[])?)).collect()
    }
}
