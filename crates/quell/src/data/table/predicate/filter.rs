//! A predicate whose columns were found in a table's header. Evaluating it cannot fail.

use std::collections::HashSet;

use super::{Expression, Literal, Name, Operator, Predicate, disjoint::is_disjoint};
use crate::data::table::{
    declared::{Declared, truth},
    error::{Error, Place},
    header::{Header, Kind, Reading, Use},
    row::Row,
};

/// Tests rows whose cells are those of `readings`, in that order.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) readings: Vec<Reading>,
    /// The test; `None` selects every row.
    test: Option<Test>,
}

/// An expression that refers to columns by their position in the readings.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Number {
        slot: usize,
        operator: Operator,
        number: f64,
    },
    Text {
        slot: usize,
        operator: Operator,
        text: String,
    },
    /// The numbers are sorted by `total_cmp`, without -0.
    NumberIn {
        slot: usize,
        numbers: Vec<f64>,
    },
    TextIn {
        slot: usize,
        texts: HashSet<String>,
    },
    Missing {
        slot: usize,
        usage: Use,
    },
    Not(Box<Test>),
    All(Vec<Test>),
    Any(Vec<Test>),
}

impl Filter {
    /// Creates a filter that selects every row and reads no column.
    pub(crate) fn everything() -> Self {
        Self { readings: Vec::new(), test: None }
    }

    /// Looks up the columns. Errors are only about their names and types.
    pub(crate) fn new(predicate: &Predicate, header: &Header) -> Result<Self, Error> {
        let mut binder = Binder { header, text: &predicate.text, readings: Vec::new() };
        let test = binder.test(&predicate.expression)?;
        Ok(Self { readings: binder.readings, test: Some(test) })
    }

    /// Returns whether it is proved that no row is selected by both filters.
    pub(crate) fn is_disjoint(&self, other: &Self) -> bool {
        match (&self.test, &other.test) {
            (Some(one), Some(two)) => is_disjoint((one, &self.readings), (two, &other.readings)),
            _ => false,
        }
    }

    /// Returns whether a row is selected. The filter's first cell is in slot `first`.
    pub(crate) fn takes(&self, row: &Row<'_>, first: usize) -> bool {
        self.test.as_ref().is_none_or(|test| test.holds(row, first))
    }
}

struct Binder<'a> {
    header: &'a Header,
    text: &'a str,
    readings: Vec<Reading>,
}

impl Binder<'_> {
    fn test(&mut self, expression: &Expression) -> Result<Test, Error> {
        Ok(match expression {
            Expression::Compare { column, operator, literal } => {
                let literal = &self.meant(column, literal, *operator)?;
                let slot = self.slot(column, literal.usage())?;
                match literal {
                    Literal::Number(number) => Test::Number { slot, operator: *operator, number: *number },
                    Literal::Text(text) => Test::Text { slot, operator: *operator, text: text.clone() },
                }
            }
            Expression::In { column, literals } => self.list(column, literals)?,
            Expression::Missing { column } => {
                let reading =
                    self.header.presence(&column.text).map_err(|error| error.at(&self.place(column)))?;
                Test::Missing { slot: self.place_of(reading), usage: reading.usage }
            }
            Expression::Not(inner) => Test::Not(Box::new(self.test(inner)?)),
            Expression::All(links) => {
                Test::All(links.iter().map(|link| self.test(link)).collect::<Result<_, _>>()?)
            }
            Expression::Any(links) => {
                Test::Any(links.iter().map(|link| self.test(link)).collect::<Result<_, _>>()?)
            }
        })
    }

    /// Creates a test for a list. The parser admits only literals of one type into a list.
    fn list(&mut self, column: &Name, literals: &[Literal]) -> Result<Test, Error> {
        let literals = literals.iter().map(|literal| self.meant(column, literal, Operator::Equal));
        let literals = literals.collect::<Result<Vec<_>, _>>()?;
        let usage = literals.first().map_or(Use::Text, Literal::usage);
        let slot = self.slot(column, usage)?;
        let (mut numbers, mut texts) = (Vec::new(), HashSet::new());
        for literal in literals {
            match literal {
                // -0 + 0 = 0
                Literal::Number(number) => numbers.push(number + 0.0),
                Literal::Text(text) => _ = texts.insert(text),
            }
        }
        numbers.sort_by(f64::total_cmp);
        Ok(match usage {
            Use::Number => Test::NumberIn { slot, numbers },
            Use::Text | Use::Name => Test::TextIn { slot, texts },
        })
    }

    /// What a literal means for its column. Literals that the schema excludes are refused, and so is an order of
    /// texts: it is not the order of dates or numbers that are written in them.
    fn meant(&self, column: &Name, literal: &Literal, operator: Operator) -> Result<Literal, Error> {
        let place = self.header.find(&column.text).map_err(|error| error.at(&self.place(column)))?;
        let (kind, declared) = (self.header.columns[place].kind, self.header.declared(place));
        let is_ordered = !matches!(operator, Operator::Equal | Operator::Unequal);
        let excluded =
            |declared: &Declared, found: &str| declared.refuse(&column.text, found).at(&self.place(column));
        match (literal, declared) {
            (Literal::Text(text), Some(declared @ (Declared::Truth | Declared::Date(_)))) => {
                let meant = declared.meant(text).ok_or_else(|| excluded(declared, text))?;
                // A Parquet file may store true and false as 1 and 0.
                let index = truth(&meant).filter(|_| kind == Kind::Number);
                Ok(index.map_or(Literal::Text(meant), |index| Literal::Number(index as f64)))
            }
            (Literal::Text(_), declared)
                if is_ordered && (kind == Kind::Undeclared || declared.is_some()) =>
            {
                Err(Error::TextOrder { name: column.text.clone(), place: self.place(column) })
            }
            (Literal::Text(text), Some(declared @ Declared::Names { .. })) => {
                declared.meant(text).map(Literal::Text).ok_or_else(|| excluded(declared, text))
            }
            (Literal::Number(number), Some(declared)) if !is_ordered && !declared.has_number(*number) => {
                Err(excluded(declared, &number.to_string()))
            }
            _ => Ok(literal.clone()),
        }
    }

    fn slot(&mut self, column: &Name, usage: Use) -> Result<usize, Error> {
        let reading =
            self.header.reading(&column.text, usage).map_err(|error| error.at(&self.place(column)))?;
        Ok(self.place_of(reading))
    }

    /// Returns the slot for a column and its type. Repeated mentions share one slot.
    fn place_of(&mut self, reading: Reading) -> usize {
        self.readings.iter().position(|known| *known == reading).unwrap_or_else(|| {
            self.readings.push(reading);
            self.readings.len() - 1
        })
    }

    fn place(&self, column: &Name) -> Place {
        Place { expression: self.text.to_owned(), at: column.at }
    }
}

impl Test {
    fn holds(&self, row: &Row<'_>, first: usize) -> bool {
        match self {
            Self::Number { slot, operator, number } => {
                row.number(first + slot).is_some_and(|cell| operator.holds(&cell, number))
            }
            Self::Text { slot, operator, text } => {
                row.text(first + slot).is_some_and(|cell| operator.holds(cell.as_ref(), text.as_str()))
            }
            Self::NumberIn { slot, numbers } => row.number(first + slot).is_some_and(|cell| {
                numbers.binary_search_by(|number| number.total_cmp(&(cell + 0.0))).is_ok()
            }),
            Self::TextIn { slot, texts } => {
                row.text(first + slot).is_some_and(|cell| texts.contains(cell.as_ref()))
            }
            Self::Missing { slot, usage: Use::Number } => row.number(first + slot).is_none(),
            Self::Missing { slot, usage: Use::Text | Use::Name } => row.text(first + slot).is_none(),
            Self::Not(inner) => !inner.holds(row, first),
            Self::All(links) => links.iter().all(|link| link.holds(row, first)),
            Self::Any(links) => links.iter().any(|link| link.holds(row, first)),
        }
    }
}
