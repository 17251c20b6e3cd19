//! Permission to write one line of a ledger.

use super::{Line, State};

/// Permission to write one line, which only a [`Ledger`](super::Ledger) creates, after checking the line.
///
/// A permit is bound to the line, to all lines before it, and to the ε and the cap that it was checked
/// against. It cannot be copied, and it ends with the call for which it was created. So a program that holds
/// a [`Book`](super::Book) cannot write a line that no ledger has checked.
#[derive(Debug)]
pub struct Permit<'a> {
    /// The state after the lines before. `None` before the first line.
    before: Option<&'a State>,
    line: &'a Line,
    spent: f64,
    cap: f64,
}

impl<'a> Permit<'a> {
    pub(super) fn new(before: Option<&'a State>, line: &'a Line, spent: f64, cap: f64) -> Self {
        Self { before, line, spent, cap }
    }

    /// The number of the line, the first being 0.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.before.map_or(0, State::lines)
    }

    /// The line.
    #[must_use]
    pub fn line(&self) -> &'a Line {
        self.line
    }

    /// ε after the line; infinite if there is no bound.
    #[must_use]
    pub fn spent(&self) -> f64 {
        self.spent
    }

    /// The largest allowed ε; infinite if there is no cap.
    #[must_use]
    pub fn cap(&self) -> f64 {
        self.cap
    }

    /// Whether the line was checked against exactly these lines.
    ///
    /// A book that holds other lines must refuse the permit.
    #[must_use]
    pub fn follows(&self, before: Option<&State>) -> bool {
        self.before == before
    }
}
