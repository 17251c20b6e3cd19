//! Asks questions in blocks until the paid answers are used up.

use quell_privacy::{
    ledger::{Book, Lease},
    mechanism::{Answer, Poll, Polling},
};

use super::{Entry, Journal};
use crate::{Error, learner::Control};

/// Chooses the next questions and asks the voters.
pub trait Asker {
    /// Chooses the next questions, given the answers so far.
    /// No question is in the journal. An empty choice ends the asking.
    fn choose(&mut self, journal: &Journal, polling: &Polling) -> Result<Vec<usize>, Error>;

    /// Asks the voters; returns one answer for each question.
    fn put(&mut self, polling: &mut Polling, questions: &[usize]) -> Result<Vec<Answer>, Error>;
}

/// Asks questions until the lease or the questions are used up.
///
/// `watch` is called with the journal after each block of questions.
pub fn ask<B: Book>(
    mut lease: Lease<'_, Poll, B>,
    journal: &mut Journal,
    asker: &mut impl Asker,
    mut watch: impl FnMut(&Journal) -> Control,
) -> Result<Control, Error> {
    let mut polling: Option<Polling> = None;
    loop {
        let mut open = match polling.take() {
            Some(open) if open.is_open() => open,
            spent => match lease.next() {
                None => return Ok(Control::Continue),
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
            return Ok(Control::Continue);
        }
        let entries: Vec<Entry> =
            questions.iter().zip(asker.put(&mut open, &questions)?).filter_map(entry).collect();
        journal.record(&entries)?;
        lease.confirm()?;
        polling = Some(open);
        if watch(journal) == Control::Stop {
            return Ok(Control::Stop);
        }
    }
}

/// The journal entry of an answer.
/// `None` for a question that the voters did not look at; it may be asked again.
pub(crate) fn entry((question, answer): (&usize, Answer)) -> Option<Entry> {
    match answer {
        Answer::Winner(class) => Some(Entry { question: *question, answer: Some(class as u32) }),
        Answer::Refused => Some(Entry { question: *question, answer: None }),
        Answer::Exhausted => None,
    }
}
