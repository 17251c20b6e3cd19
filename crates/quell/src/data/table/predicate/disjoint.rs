//! Proves that no row can satisfy two conditions.
//!
//! Each comparison of a condition allows a set of cells: some numbers or texts, and maybe a missing cell. A
//! condition is written as a list of alternatives, each of which restricts some cells. Two conditions are
//! disjoint if every pair of alternatives leaves no value to some cell. The proof is one-sided: it may fail for
//! conditions that are disjoint, and never succeeds for others.

use std::cmp::Ordering;

use super::{Operator, filter::Test};
use crate::data::table::header::{Reading, Use};

/// The most alternatives of a condition. Beyond, nothing is proved.
const MOST: usize = 1024;

/// A number or a text that a cell is compared with. Cells are finite numbers, or texts.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(f64),
    Text(String),
}

impl Value {
    /// The order of the comparisons of conditions. Numbers and texts do not meet: a cell is read as one of them.
    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => one.partial_cmp(other).unwrap_or(Ordering::Equal),
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            (Self::Number(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Number(_)) => Ordering::Greater,
        }
    }
}

/// The place of a cut between cells: just before or just after a value.
#[derive(Clone, Debug, PartialEq)]
enum Cut {
    Start,
    Before(Value),
    After(Value),
    End,
}

impl Cut {
    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Start, Self::Start) | (Self::End, Self::End) => Ordering::Equal,
            (Self::Start, _) | (_, Self::End) => Ordering::Less,
            (_, Self::Start) | (Self::End, _) => Ordering::Greater,
            (Self::Before(one) | Self::After(one), Self::Before(two) | Self::After(two)) => {
                let side = |cut: &Self| matches!(cut, Self::After(_));
                one.order(two).then(side(self).cmp(&side(other)))
            }
        }
    }
}

/// The cells that a comparison allows: intervals in order, and maybe a missing cell.
#[derive(Clone, Debug)]
struct Allowed {
    intervals: Vec<(Cut, Cut)>,
    missing: bool,
}

impl Allowed {
    fn between(from: Cut, to: Cut) -> Self {
        Self { intervals: vec![(from, to)], missing: false }
    }

    fn compared(operator: Operator, value: Value) -> Self {
        let (before, after) = (Cut::Before(value.clone()), Cut::After(value));
        match operator {
            Operator::Equal => Self::between(before, after),
            Operator::Unequal => {
                Self { intervals: vec![(Cut::Start, before), (after, Cut::End)], missing: false }
            }
            Operator::Less => Self::between(Cut::Start, before),
            Operator::AtMost => Self::between(Cut::Start, after),
            Operator::Greater => Self::between(after, Cut::End),
            Operator::AtLeast => Self::between(before, Cut::End),
        }
    }

    fn listed(mut values: Vec<Value>) -> Self {
        values.sort_by(Value::order);
        let point = |value: Value| (Cut::Before(value.clone()), Cut::After(value));
        Self { intervals: values.into_iter().map(point).collect(), missing: false }
    }

    /// Every cell that is not allowed here.
    fn others(&self) -> Self {
        let (mut intervals, mut from) = (Vec::new(), Cut::Start);
        for (low, high) in &self.intervals {
            intervals.push((from, low.clone()));
            from = high.clone();
        }
        intervals.push((from, Cut::End));
        Self { intervals, missing: !self.missing }
    }

    /// The cells that both allow.
    fn and(&self, other: &Self) -> Self {
        let mut intervals = Vec::new();
        for (low, high) in &self.intervals {
            for (from, to) in &other.intervals {
                let low = if low.order(from).is_lt() { from } else { low };
                let high = if high.order(to).is_gt() { to } else { high };
                if low.order(high).is_lt() {
                    intervals.push((low.clone(), high.clone()));
                }
            }
        }
        Self { intervals, missing: self.missing && other.missing }
    }

    fn is_empty(&self) -> bool {
        !self.missing && self.intervals.iter().all(|(low, high)| !low.order(high).is_lt())
    }
}

/// What one alternative of a condition allows for some cells.
type Alternative = Vec<(Reading, Allowed)>;

/// Both alternatives at once; `None` if a cell has no value left.
fn merged(one: &Alternative, other: &Alternative) -> Option<Alternative> {
    let mut all = one.clone();
    for (reading, allowed) in other {
        match all.iter_mut().find(|(known, _)| known == reading) {
            Some((_, known)) => {
                *known = known.and(allowed);
                if known.is_empty() {
                    return None;
                }
            }
            None => all.push((*reading, allowed.clone())),
        }
    }
    (!is_missing_number(&all)).then_some(all)
}

/// Whether a column must be missing as text and have a number, which no cell can.
fn is_missing_number(all: &Alternative) -> bool {
    let is_missing = |allowed: &Allowed| Allowed { missing: false, ..allowed.clone() }.is_empty();
    all.iter().any(|(text, allowed)| {
        let needs_number = |(other, needed): &(Reading, Allowed)| {
            other.column == text.column && other.usage == Use::Number && !needed.missing
        };
        text.usage == Use::Text && is_missing(allowed) && all.iter().any(needs_number)
    })
}

/// The alternatives of a test, or of its negation; `None` if there are too many.
fn alternatives(test: &Test, readings: &[Reading], negated: bool) -> Option<Vec<Alternative>> {
    let atom = |slot: usize, allowed: Allowed| {
        let allowed = if negated { allowed.others() } else { allowed };
        let reading = *readings.get(slot)?;
        Some(if allowed.is_empty() { Vec::new() } else { vec![vec![(reading, allowed)]] })
    };
    match test {
        Test::Number { slot, operator, number } => {
            atom(*slot, Allowed::compared(*operator, Value::Number(*number)))
        }
        Test::Text { slot, operator, text } => {
            atom(*slot, Allowed::compared(*operator, Value::Text(text.clone())))
        }
        Test::NumberIn { slot, numbers } => {
            atom(*slot, Allowed::listed(numbers.iter().copied().map(Value::Number).collect()))
        }
        Test::TextIn { slot, texts } => {
            atom(*slot, Allowed::listed(texts.iter().cloned().map(Value::Text).collect()))
        }
        Test::Missing { slot, usage: Use::Number | Use::Text | Use::Name } => {
            atom(*slot, Allowed { intervals: Vec::new(), missing: true })
        }
        Test::Not(inner) => alternatives(inner, readings, !negated),
        // De Morgan: the negation of a conjunction is the disjunction of the negations.
        Test::All(links) | Test::Any(links) if matches!(test, Test::All(_)) == negated => {
            let mut all = Vec::new();
            for link in links {
                all.extend(alternatives(link, readings, negated)?);
            }
            (all.len() <= MOST).then_some(all)
        }
        Test::All(links) | Test::Any(links) => {
            let mut all = vec![Vec::new()];
            for link in links {
                let next = alternatives(link, readings, negated)?;
                if all.len().saturating_mul(next.len()) > MOST {
                    return None;
                }
                all = all.iter().flat_map(|one| next.iter().filter_map(|two| merged(one, two))).collect();
            }
            Some(all)
        }
    }
}

/// Whether it is proved that no row satisfies both tests.
pub(super) fn is_disjoint(one: (&Test, &[Reading]), other: (&Test, &[Reading])) -> bool {
    let of = |(test, readings): (&Test, &[Reading])| alternatives(test, readings, false);
    match (of(one), of(other)) {
        (Some(one), Some(other)) => {
            one.iter().all(|one| other.iter().all(|other| merged(one, other).is_none()))
        }
        _ => false,
    }
}
