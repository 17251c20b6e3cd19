//! The book of one dataset.

use std::path::PathBuf;

use quell_privacy::ledger::{Book, Line, Permit, Receipt, State};

use crate::{
    chain::{self, Body, Place, Row, Stored},
    database::{Database, Outcome, Step},
    error::Error,
    finding::Problem,
    hexadecimal::hex,
    signature::{self, Key, is_signed},
};

/// The book of one dataset in a store.
///
/// # Contract
/// That of [`Book`]. What it reads it has checked: every hash from the first line on, and the signature of the head; a damaged ledger
/// gives an error and no lines. It writes only with a permit that was judged against exactly the lines that it has read itself, so a ledger that was shown
/// other lines cannot write here.
pub struct Volume {
    database: Box<dyn Database>,
    dataset: String,
    key_path: PathBuf,
    key: Option<Key>,
    /// How far this book has read or written, with everything before it checked.
    place: Place,
    /// What the lines up to that place add up to. None before the first line.
    state: Option<State>,
}

impl Volume {
    pub(crate) fn new(database: Box<dyn Database>, dataset: &str, key_path: PathBuf) -> Self {
        Self { database, dataset: dataset.to_owned(), key_path, key: None, place: Place::start(dataset), state: None }
    }

    /// Name of the dataset.
    #[must_use]
    pub fn dataset(&self) -> &str {
        &self.dataset
    }

    /// Reads the lines that were written since the last look.
    fn catch_up(&mut self) -> Result<Vec<Line>, Error> {
        let from = self.place.lines;
        let Some(row) = self.database.row(&self.dataset)? else {
            let known = self.database.rows()?.into_iter().map(|row| row.dataset).collect();
            return Err(Error::UnknownDataset { dataset: self.dataset.clone(), known });
        };
        if row.lines < from {
            return Err(Problem::Truncated { lines: row.lines, expected: from }.of(&self.dataset).into());
        }
        if row.lines == from {
            if row.head != self.place.head {
                let (found, expected) = (hex(&row.head), hex(&self.place.head));
                return Err(Problem::Forked { found, expected }.at(&self.dataset, from.saturating_sub(1)).into());
            }
            return Ok(Vec::new());
        }
        let Some((row, stored)) = self.database.snapshot(&self.dataset, from)? else {
            return Err(Problem::NoDataset.of(&self.dataset).into());
        };
        let mut place = self.place.clone();
        let bodies = stored.iter().map(|stored| place.follow(&self.dataset, stored)).collect::<Result<Vec<Body>, _>>()?;
        let Some(last) = bodies.last() else {
            return Err(Problem::Truncated { lines: from, expected: row.lines }.of(&self.dataset).into());
        };
        place.check(&row, last)?;
        let public = self.database.public_key()?.unwrap_or_default();
        signature::belongs(&self.key_path, &public)?;
        if !is_signed(&public, &row.dataset, row.lines, &row.head, &row.signature) {
            return Err(Problem::Signature.of(&self.dataset).into());
        }
        let lines: Vec<Line> = bodies.into_iter().map(|body| body.line).collect();
        let nonsense = |error: quell_privacy::Error| Problem::Nonsense { cause: error.to_string() }.of(&self.dataset);
        let state = follow(self.state.clone(), &lines).map_err(nonsense)?;
        (self.place, self.state) = (place, state);
        Ok(lines)
    }

    /// A line with the hash that its text has.
    fn line(&mut self, number: u64) -> Result<Stored, Error> {
        let Some(stored) = self.database.entry(&self.dataset, number)? else {
            let lines = self.database.row(&self.dataset)?.map_or(0, |row| row.lines);
            return Err(Problem::Truncated { lines, expected: number.saturating_add(1) }.of(&self.dataset).into());
        };
        if stored.number != number || chain::link(&stored.previous, &stored.body) != stored.hash {
            return Err(Problem::Edited.at(&self.dataset, number).into());
        }
        Ok(stored)
    }

    /// The key that signs for this ledger, and no other.
    fn key(&mut self) -> Result<&Key, Error> {
        if self.key.is_none() {
            let key = Key::load(&self.key_path)?;
            let expected = self.database.public_key()?;
            if expected != Some(key.public()) {
                let expected = expected.map_or_else(|| "missing".to_owned(), |key| hex(&key));
                return Err(Error::KeyDiffers { path: self.key_path.clone(), expected });
            }
            self.key = Some(key);
        }
        self.key.as_ref().ok_or_else(|| Error::KeyMissing { path: self.key_path.clone() })
    }

    /// Whether a line may stand at its number at all.
    fn check(&self, number: u64, line: &Line, spent: f64, cap: f64) -> Result<(), Error> {
        let misplaced = |because| Err(Error::Misplaced { dataset: self.dataset.clone(), number, because });
        // Written so that a NaN is refused.
        if !(spent >= 0.0 && spent <= cap) {
            return Err(Error::OverCap { spent, cap });
        }
        let sets = match line {
            Line::Opened(terms) if number != 0 || terms.dataset != self.dataset => {
                return misplaced("opens a ledger that is not this one");
            }
            Line::Opened(terms) => Some(terms.budget.cap()),
            _ if number == 0 => return misplaced("comes before the terms"),
            Line::Raised { budget, .. } => Some(budget.cap()),
            Line::Charged(_) | Line::Leased { .. } | Line::Confirmed { .. } => None,
        };
        match sets {
            Some(expected) if expected != cap => Err(Error::CapDiffers { cap, expected }),
            _ if i64::try_from(number).is_err() => misplaced("has a number that no ledger reaches"),
            _ => Ok(()),
        }
    }
}

impl Book for Volume {
    type Error = Error;

    fn read(&mut self, from: u64) -> Result<Vec<Line>, Error> {
        if from == self.place.lines {
            return self.catch_up();
        }
        // Only lines that follow from the first one are believed.
        (self.place, self.state) = (Place::start(&self.dataset), None);
        let mut lines = self.catch_up()?;
        match usize::try_from(from) {
            Ok(skipped) if skipped <= lines.len() => Ok(lines.split_off(skipped)),
            _ => Err(Problem::Truncated { lines: lines.len() as u64, expected: from }.of(&self.dataset).into()),
        }
    }

    fn append(&mut self, permit: &Permit<'_>) -> Result<Option<Receipt>, Error> {
        let (number, line, spent, cap) = (permit.number(), permit.line(), permit.spent(), permit.cap());
        self.check(number, line, spent, cap)?;
        if number > self.place.lines {
            self.catch_up()?;
        }
        if number < self.place.lines {
            return Ok(None);
        }
        if number > self.place.lines {
            return Err(Problem::Truncated { lines: self.place.lines, expected: number }.of(&self.dataset).into());
        }
        if !permit.follows(self.state.as_ref()) {
            let because = "was judged against other lines than this ledger has";
            return Err(Error::Misplaced { dataset: self.dataset.clone(), number, because });
        }
        let Some(body) = Body::text(number, line, spent) else {
            let because = "cannot be written down: it holds an infinite number, or is nested too deeply to be read again";
            return Err(Error::Misplaced { dataset: self.dataset.clone(), number, because });
        };
        let old = self.place.head;
        let (head, lines) = (chain::link(&old, &body), number + 1);
        let dataset = self.dataset.clone();
        let key = self.key()?;
        let (signature, public) = (key.sign(&dataset, lines, &head), key.public());
        let entry = Stored { number, body, previous: old, hash: head };
        let row = Row { dataset, lines, head, spent, cap, signature };
        let sets_cap = matches!(line, Line::Opened(_) | Line::Raised { .. });
        match self.database.append(&Step { old, entry: &entry, row: &row, sets_cap })? {
            Outcome::Written => {
                let nonsense = |error: quell_privacy::Error| Problem::Nonsense { cause: error.to_string() }.of(&self.dataset);
                self.state = follow(self.state.take(), std::slice::from_ref(line)).map_err(nonsense)?;
                self.place = Place { lines, head };
                Ok(Some(chain::receipt(&self.dataset, number, &head, &public)))
            }
            Outcome::Taken => Ok(None),
            Outcome::Elsewhere => Err(self.elsewhere(number)?),
            Outcome::OtherCap => {
                let expected = self.database.row(&self.dataset)?.map_or(f64::NAN, |row| row.cap);
                Err(Error::CapDiffers { cap, expected })
            }
        }
    }

    fn receipt(&mut self, number: u64) -> Result<Receipt, Error> {
        self.database.is_in_place()?;
        let head = self.line(number)?.hash;
        let public = self.database.public_key()?.unwrap_or_default();
        Ok(chain::receipt(&self.dataset, number, &head, &public))
    }
}

impl Volume {
    /// Why a line that is next does not follow.
    fn elsewhere(&mut self, number: u64) -> Result<Error, Error> {
        let problem = match self.database.row(&self.dataset)? {
            Some(row) if row.lines == number => Problem::Forked { found: hex(&row.head), expected: hex(&self.place.head) },
            Some(row) => Problem::Truncated { lines: row.lines, expected: number },
            None => Problem::NoDataset,
        };
        Ok(problem.of(&self.dataset).into())
    }
}

/// What lines add up to after what is known already.
fn follow(known: Option<State>, lines: &[Line]) -> Result<Option<State>, quell_privacy::Error> {
    let Some(mut state) = known else { return if lines.is_empty() { Ok(None) } else { State::new(lines).map(Some) } };
    for line in lines {
        state.follow(line)?;
    }
    Ok(Some(state))
}
