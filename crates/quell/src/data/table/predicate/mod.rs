//! Conditions that select rows, such as `age >= 18 and city in ('Bern', 'Basel')`.

mod disjoint;
mod filter;
mod parser;
mod token;

use std::{fmt, str::FromStr};

use crate::Error;
use crate::data::table::header::Use;
pub(crate) use filter::Filter;

/// A condition on one record.
///
/// - Comparisons `=` `!=` `<` `<=` `>` `>=` are between a column and a number (`1.5`, `-2e3`) or a text
///   (`'Bern'`, with `''` for a quote in it). `==` and `<>` are other spellings of `=` and `!=`. Only
///   `=` and `!=` compare texts, unless the file declares a column of texts or a schema declares dates: the order
///   of texts is not that of the dates or numbers in them.
/// - `city in ('Bern', 'Basel')` and `age in (1, 2)`; `city not in (…)` is `not city in (…)`.
/// - `income is missing`; `income is not missing` is `not income is missing`.
/// - `not` binds tighter than `and`, and `and` tighter than `or`. Parentheses group. Keywords may be in
///   capitals.
/// - A column is a bare name, or any name in double quotes (`"blood pressure"`, with `""` for a double quote
///   in it).
///
/// A comparison with a missing value is false, also with `!=`, and so is `in`. `not` inverts the result. So
/// if the age is missing, `age != 5` is false and `not age = 5` is true: there is no third truth value.
///
/// If the file does not declare the type of a column, the literal does: in CSV, `zip = '08001'` compares text
/// and `zip = 8001` compares numbers. A cell that is not a finite number is then missing. In CSV, `is
/// missing` tests for an empty cell.
///
/// If a schema declares a column ([`Table::declared_by`](crate::data::Table::declared_by)), then days are
/// compared as days, all ways to write true or a category are equal, and a value that the schema excludes is an
/// error.
///
/// ```
/// use quell::data::Predicate;
/// let adults: Predicate = "age >= 18 AND NOT (city = 'Bern' or \"blood pressure\" is missing)".parse()?;
/// assert_eq!(adults.to_string(), "age >= 18.0 and not (city = 'Bern' or \"blood pressure\" is missing)");
/// let error = "age >= and".parse::<Predicate>().unwrap_err();
/// assert!(error.to_string().ends_with("\n  age >= and\n         ^"));
/// # Ok::<(), quell::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Predicate {
    expression: Expression,
    /// The text of the expression, which error messages point into.
    text: String,
}

impl Predicate {
    /// The text that the predicate was read from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl FromStr for Predicate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Ok(Self { expression: parser::parse(text)?, text: text.to_owned() })
    }
}

/// Two predicates are equal if they are the same expression, whatever their spelling.
impl PartialEq for Predicate {
    fn eq(&self, other: &Self) -> bool {
        self.expression == other.expression
    }
}

impl fmt::Display for Predicate {
    /// Writes a text that parses to the same predicate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.expression, f)
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Expression {
    Compare { column: Name, operator: Operator, literal: Literal },
    In { column: Name, literals: Vec<Literal> },
    Missing { column: Name },
    Not(Box<Expression>),
    All(Vec<Expression>),
    Any(Vec<Expression>),
}

impl Expression {
    fn negated_if(self, negated: bool) -> Self {
        if negated { Self::Not(Box::new(self)) } else { self }
    }

    /// Writes an inner chain in parentheses, so that it parses to an inner chain again.
    fn fmt_link(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(_) | Self::Any(_) => write!(f, "({self})"),
            _ => fmt::Display::fmt(self, f),
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compare { column, operator, literal } => write!(f, "{column} {operator} {literal}"),
            Self::In { column, literals } => {
                write!(f, "{column} in (")?;
                for (i, literal) in literals.iter().enumerate() {
                    write!(f, "{}{literal}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str(")")
            }
            Self::Missing { column } => write!(f, "{column} is missing"),
            Self::Not(inner) => {
                f.write_str("not ")?;
                inner.fmt_link(f)
            }
            Self::All(links) | Self::Any(links) => {
                let word = if matches!(self, Self::All(_)) { " and " } else { " or " };
                for (i, link) in links.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { word })?;
                    link.fmt_link(f)?;
                }
                Ok(())
            }
        }
    }
}

/// The name of a column, and its position in the text.
#[derive(Clone, Debug)]
struct Name {
    text: String,
    at: usize,
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if token::is_bare(&self.text) {
            f.write_str(&self.text)
        } else {
            write!(f, "\"{}\"", self.text.replace('"', "\"\""))
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Literal {
    Number(f64),
    Text(String),
}

impl Literal {
    fn usage(&self) -> Use {
        match self {
            Self::Number(_) => Use::Number,
            Self::Text(_) => Use::Text,
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Writes the fewest digits that parse to the same number.
            Self::Number(number) => write!(f, "{number:?}"),
            Self::Text(text) => write!(f, "'{}'", text.replace('\'', "''")),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Operator {
    /// Returns the operator for swapped sides.
    fn mirrored(self) -> Self {
        match self {
            Self::Equal | Self::Unequal => self,
            Self::Less => Self::Greater,
            Self::AtMost => Self::AtLeast,
            Self::Greater => Self::Less,
            Self::AtLeast => Self::AtMost,
        }
    }

    /// Returns whether the comparison holds between two finite numbers or two texts.
    fn holds<T: PartialOrd + ?Sized>(self, left: &T, right: &T) -> bool {
        match self {
            Self::Equal => left == right,
            Self::Unequal => left != right,
            Self::Less => left < right,
            Self::AtMost => left <= right,
            Self::Greater => left > right,
            Self::AtLeast => left >= right,
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::Unequal => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        })
    }
}
