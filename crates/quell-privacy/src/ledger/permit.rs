//! Permission to write one line of a ledger.

use super::{Line, State};

/// Permission to write one line. Only a [`Ledger`](super::Ledger) makes one, after it judged the line.
///
/// A permit is bound to the line, to all lines before it, and to the ε and the cap it was judged against. It cannot be copied, and it ends with the call that
/// it was made for. So a program that holds a [`Book`](super::Book) cannot write into it what no ledger has judged.
#[derive(Debug)]
pub struct Permit<'a> {
    /// What the lines before add up to. None before the first line.
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

    /// ε after the line; infinite where there is no bound.
    #[must_use]
    pub fn spent(&self) -> f64 {
        self.spent
    }

    /// The most that ε may be; infinite where there is no cap.
    #[must_use]
    pub fn cap(&self) -> f64 {
        self.cap
    }

    /// Whether the line was judged against these lines, and no others. A book that holds other lines must refuse the permit.
    #[must_use]
    pub fn follows(&self, before: Option<&State>) -> bool {
        self.before == before
    }
}
