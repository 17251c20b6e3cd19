//! Questions, one block after the other, until what was paid for is used up.

use quell_privacy::{
    ledger::{Book, Lease},
    mechanism::{Answer, Poll, Polling},
};

use super::{Entry, Journal};
use crate::{Error, dp_sgd::Going};

/// What who watches is told after a block of questions. All of it is public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Questions that were put.
    pub asked: usize,
    /// Of these, answered.
    pub answered: usize,
}

/// Whoever knows what to ask next, and whom.
pub trait Asker {
    /// The next questions, by what was answered so far: none that is in the journal. None ends it.
    fn choose(&mut self, journal: &Journal, polling: &Polling) -> Result<Vec<usize>, Error>;

    /// Puts them to the voters; one answer for each.
    fn put(&mut self, polling: &mut Polling, questions: &[usize]) -> Result<Vec<Answer>, Error>;
}

/// Puts questions until the lease or the questions are used up.
pub fn ask<B: Book>(
    mut lease: Lease<'_, Poll, B>,
    journal: &mut Journal,
    asker: &mut impl Asker,
    mut watch: impl FnMut(Moment) -> Going,
) -> Result<Going, Error> {
    let mut polling: Option<Polling> = None;
    loop {
        let mut open = match polling.take() {
            Some(open) if open.is_open() => open,
            spent => match lease.next() {
                None => return Ok(Going::On),
                Some(paid) => match spent {
                    None => paid?.run()?,
                    Some(mut spent) => {
                        spent.add(paid?)?;
                        spent
                    }
                },
            },
        };
        let questions = asker.choose(journal, &open)?;
        if questions.is_empty() {
            return Ok(Going::On);
        }
        let entries: Vec<Entry> = questions.iter().zip(asker.put(&mut open, &questions)?).filter_map(entry).collect();
        journal.record(&entries)?;
        lease.confirm()?;
        polling = Some(open);
        let moment = Moment { asked: journal.entries().len(), answered: journal.answers().len() };
        if watch(moment) == Going::Stop {
            return Ok(Going::Stop);
        }
    }
}

/// Nothing for a question that was not looked at: it may be put again.
pub(crate) fn entry((question, answer): (&usize, Answer)) -> Option<Entry> {
    match answer {
        Answer::Winner(class) => Some(Entry { question: *question, answer: Some(class as u32) }),
        Answer::Refused => Some(Entry { question: *question, answer: None }),
        Answer::Exhausted => None,
    }
}
