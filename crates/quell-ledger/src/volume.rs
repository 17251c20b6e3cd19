//! The book of one dataset.

use std::path::PathBuf;

use quell_privacy::ledger::{Book, Line, Note, Permit, Receipt, State};

use crate::{
    chain::{self, Body, Position, Row, Stored},
    database::{Database, Outcome, PendingLine},
    error::Error,
    finding::Problem,
    hexadecimal::hex,
    signature::{self, Key, is_signed},
};

/// The book of one dataset in a store.
///
/// # Contract
/// The contract of [`Book`]. A volume checks everything it reads: every hash from the first line on, and the
/// signature of the head. For a damaged ledger it returns an error and no lines. It writes only with a permit
/// that was judged against exactly the lines that the volume has read itself, so a ledger that was shown
/// other lines cannot write to it.
pub struct Volume {
    database: Box<dyn Database>,
    dataset: String,
    key_path: PathBuf,
    key: Option<Key>,
    /// Position up to which this volume has read or written.
    ///
    /// All lines before it are checked.
    position: Position,
    /// State after the lines up to that position. None before the first line.
    state: Option<State>,
    /// Words to store with the next lines.
    note: Note,
}

impl Volume {
    pub(crate) fn new(database: Box<dyn Database>, dataset: &str, key_path: PathBuf) -> Self {
        Self {
            database,
            dataset: dataset.to_owned(),
            key_path,
            key: None,
            position: Position::start(dataset),
            state: None,
            note: Note::default(),
        }
    }

    /// Name of the dataset.
    #[must_use]
    pub fn dataset(&self) -> &str {
        &self.dataset
    }

    /// Reads and checks the lines written since the last call.
    fn catch_up(&mut self) -> Result<Vec<Line>, Error> {
        let from = self.position.lines;
        let Some(row) = self.database.row(&self.dataset)? else {
            let known = self.database.rows()?.into_iter().map(|row| row.dataset).collect();
            return Err(Error::UnknownDataset { dataset: self.dataset.clone(), known });
        };
        if row.lines < from {
            return Err(Problem::Truncated { lines: row.lines, expected: from }.of(&self.dataset).into());
        }
        if row.lines == from {
            if row.head != self.position.head {
                let (found, expected) = (hex(&row.head), hex(&self.position.head));
                return Err(Problem::Forked { found, expected }
                    .at(&self.dataset, from.saturating_sub(1))
                    .into());
            }
            return Ok(Vec::new());
        }
        let Some((row, stored)) = self.database.snapshot(&self.dataset, from)? else {
            return Err(Problem::NoDataset.of(&self.dataset).into());
        };
        let mut position = self.position.clone();
        let bodies = stored
            .iter()
            .map(|stored| position.advance(&self.dataset, stored))
            .collect::<Result<Vec<Body>, _>>()?;
        let Some(last) = bodies.last() else {
            return Err(Problem::Truncated { lines: from, expected: row.lines }.of(&self.dataset).into());
        };
        position.check(&row, last)?;
        let public = self.database.public_key()?.unwrap_or_default();
        signature::check_public_key(&self.key_path, &public)?;
        if !is_signed(&public, &row.dataset, row.lines, &row.head, &row.signature) {
            return Err(Problem::Signature.of(&self.dataset).into());
        }
        let lines: Vec<Line> = bodies.into_iter().map(|body| body.line).collect();
        let nonsense =
            |error: quell_privacy::Error| Problem::Nonsense { cause: error.to_string() }.of(&self.dataset);
        let state = apply_lines(self.state.clone(), &lines).map_err(nonsense)?;
        (self.position, self.state) = (position, state);
        Ok(lines)
    }

    /// Reads a line and checks that its text matches its hash.
    fn line(&mut self, number: u64) -> Result<Stored, Error> {
        let Some(stored) = self.database.entry(&self.dataset, number)? else {
            let lines = self.database.row(&self.dataset)?.map_or(0, |row| row.lines);
            return Err(Problem::Truncated { lines, expected: number.saturating_add(1) }
                .of(&self.dataset)
                .into());
        };
        if stored.number != number || chain::link(&stored.previous, &stored.body) != stored.hash {
            return Err(Problem::Edited.at(&self.dataset, number).into());
        }
        Ok(stored)
    }

    /// The signing key, after checking that it matches the public key of the ledger.
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

    /// Checks that a line is valid at its number and within the cap.
    fn check(&self, number: u64, line: &Line, spent: f64, cap: f64) -> Result<(), Error> {
        let misplaced = |because| Err(Error::Misplaced { dataset: self.dataset.clone(), number, because });
        // This form of the condition refuses NaN.
        if !(spent >= 0.0 && spent <= cap) {
            return Err(Error::OverCap { spent, cap });
        }
        let new_cap = match line {
            Line::Opened(terms) if number != 0 || terms.dataset != self.dataset => {
                return misplaced("opens a ledger that is not this one");
            }
            Line::Opened(terms) => Some(terms.budget.cap()),
            _ if number == 0 => return misplaced("comes before the terms"),
            Line::Raised { budget, .. } => Some(budget.cap()),
            Line::Charged(_) | Line::Leased { .. } | Line::Confirmed { .. } => None,
        };
        match new_cap {
            Some(expected) if expected != cap => Err(Error::CapDiffers { cap, expected }),
            _ if i64::try_from(number).is_err() => misplaced("has a number that is too large"),
            _ => Ok(()),
        }
    }
}

impl Book for Volume {
    type Error = Error;

    fn read(&mut self, from: u64) -> Result<Vec<Line>, Error> {
        if from == self.position.lines {
            return self.catch_up();
        }
        // Reads again from the first line, because only a complete chain can be checked.
        (self.position, self.state) = (Position::start(&self.dataset), None);
        let mut lines = self.catch_up()?;
        match usize::try_from(from) {
            Ok(skipped) if skipped <= lines.len() => Ok(lines.split_off(skipped)),
            _ => {
                Err(Problem::Truncated { lines: lines.len() as u64, expected: from }.of(&self.dataset).into())
            }
        }
    }

    fn append(&mut self, permit: &Permit<'_>) -> Result<Option<Receipt>, Error> {
        let (number, line, spent, cap) = (permit.number(), permit.line(), permit.spent(), permit.cap());
        self.check(number, line, spent, cap)?;
        if number > self.position.lines {
            self.catch_up()?;
        }
        if number < self.position.lines {
            return Ok(None);
        }
        if number > self.position.lines {
            return Err(Problem::Truncated { lines: self.position.lines, expected: number }
                .of(&self.dataset)
                .into());
        }
        if !permit.follows(self.state.as_ref()) {
            let because = "was checked against other lines than this ledger has";
            return Err(Error::Misplaced { dataset: self.dataset.clone(), number, because });
        }
        let Some(body) = Body::text(number, line, spent, &self.note) else {
            let because =
                "cannot be written: it contains an infinite number, or is nested too deeply to be read again";
            return Err(Error::Misplaced { dataset: self.dataset.clone(), number, because });
        };
        let previous_head = self.position.head;
        let (head, lines) = (chain::link(&previous_head, &body), number + 1);
        let dataset = self.dataset.clone();
        let key = self.key()?;
        let (signature, public) = (key.sign(&dataset, lines, &head), key.public());
        let entry = Stored { number, body, previous: previous_head, hash: head };
        let row = Row { dataset, lines, head, spent, cap, signature };
        let sets_cap = matches!(line, Line::Opened(_) | Line::Raised { .. });
        match self.database.append(&PendingLine { previous_head, entry: &entry, row: &row, sets_cap })? {
            Outcome::Written => {
                let nonsense = |error: quell_privacy::Error| {
                    Problem::Nonsense { cause: error.to_string() }.of(&self.dataset)
                };
                self.state = apply_lines(self.state.take(), std::slice::from_ref(line)).map_err(nonsense)?;
                self.position = Position { lines, head };
                Ok(Some(chain::receipt(&self.dataset, number, &head, &public)))
            }
            Outcome::Taken => Ok(None),
            Outcome::HeadDiffers => Err(self.explain_head(number)?),
            Outcome::OtherCap => {
                let expected = self.database.row(&self.dataset)?.map_or(f64::NAN, |row| row.cap);
                Err(Error::CapDiffers { cap, expected })
            }
        }
    }

    fn receipt(&mut self, number: u64) -> Result<Receipt, Error> {
        self.database.check_in_place()?;
        let head = self.line(number)?.hash;
        let public = self.database.public_key()?.unwrap_or_default();
        Ok(chain::receipt(&self.dataset, number, &head, &public))
    }

    fn annotate(&mut self, note: &Note) {
        self.note = note.clone();
    }
}

impl Volume {
    /// The error for a line that does not follow the head of the ledger.
    fn explain_head(&mut self, number: u64) -> Result<Error, Error> {
        let problem = match self.database.row(&self.dataset)? {
            Some(row) if row.lines == number => {
                Problem::Forked { found: hex(&row.head), expected: hex(&self.position.head) }
            }
            Some(row) => Problem::Truncated { lines: row.lines, expected: number },
            None => Problem::NoDataset,
        };
        Ok(problem.of(&self.dataset).into())
    }
}

/// The state after more lines.
fn apply_lines(previous: Option<State>, lines: &[Line]) -> Result<Option<State>, quell_privacy::Error> {
    let Some(mut state) = previous else {
        return if lines.is_empty() { Ok(None) } else { State::new(lines).map(Some) };
    };
    for line in lines {
        state.apply(line)?;
    }
    Ok(Some(state))
}
