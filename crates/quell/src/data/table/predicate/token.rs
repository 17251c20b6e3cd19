//! Splits an expression into tokens.

use std::{fmt, iter::Peekable, str::Chars};

use super::Operator;
use crate::data::table::error::{Error, Place};

/// Words that are the name of a column only in double quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    And,
    Or,
    Not,
    In,
    Is,
    Missing,
}

impl Keyword {
    const ALL: [(&str, Self); 6] = [
        ("and", Self::And),
        ("or", Self::Or),
        ("not", Self::Not),
        ("in", Self::In),
        ("is", Self::Is),
        ("missing", Self::Missing),
    ];

    fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, keyword)| *keyword)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Keyword(Keyword),
    Name(String),
    Number(f64),
    Text(String),
    Operator(Operator),
    Open,
    Close,
    Comma,
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keyword(word) => {
                let (name, _) = Keyword::ALL[*word as usize];
                write!(f, "the word {name}")
            }
            Self::Name(_) => f.write_str("a column name"),
            Self::Number(_) => f.write_str("a number"),
            Self::Text(_) => f.write_str("a text"),
            Self::Operator(operator) => write!(f, "{operator}"),
            Self::Open => f.write_str("("),
            Self::Close => f.write_str(")"),
            Self::Comma => f.write_str("a comma"),
            Self::End => f.write_str("its end"),
        }
    }
}

/// Returns whether a name needs no double quotes.
pub(super) fn is_bare(name: &str) -> bool {
    name.starts_with(starts_name) && name.chars().all(continues_name) && Keyword::of(name).is_none()
}

fn starts_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// Returns whether a character may continue a name. A dot joins the parts of a nested Parquet column.
fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '.'
}

/// Splits an expression into tokens, each with the number of characters before it.
pub(super) fn tokens(expression: &str) -> Result<Vec<(Token, usize)>, Error> {
    let mut scanner = Scanner { expression, rest: expression.chars().peekable(), at: 0 };
    let mut tokens = Vec::new();
    loop {
        while scanner.next_if(char::is_whitespace).is_some() {}
        let at = scanner.at;
        let token = scanner.token()?;
        let end = token == Token::End;
        tokens.push((token, at));
        if end {
            return Ok(tokens);
        }
    }
}

struct Scanner<'a> {
    expression: &'a str,
    rest: Peekable<Chars<'a>>,
    /// The number of characters read so far.
    at: usize,
}

impl Scanner<'_> {
    fn next_if(&mut self, wanted: impl FnOnce(char) -> bool) -> Option<char> {
        let c = self.rest.next_if(|c| wanted(*c))?;
        self.at += 1;
        Some(c)
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        std::iter::from_fn(|| self.next_if(&wanted)).collect()
    }

    fn malformed(&self, at: usize, found: impl Into<String>, expected: &'static str) -> Error {
        let place = Place { expression: self.expression.to_owned(), at };
        Error::Malformed { found: found.into(), expected, place }
    }

    fn token(&mut self) -> Result<Token, Error> {
        let start = self.at;
        let Some(&first) = self.rest.peek() else { return Ok(Token::End) };
        if starts_name(first) {
            let word = self.take_while(continues_name);
            return Ok(Keyword::of(&word).map_or(Token::Name(word), Token::Keyword));
        }
        if first.is_ascii_digit() || matches!(first, '.' | '+' | '-') {
            return self.number();
        }
        self.next_if(|_| true);
        Ok(match first {
            '\'' => Token::Text(self.quoted('\'', start)?),
            '"' => Token::Name(self.quoted('"', start)?),
            '(' => Token::Open,
            ')' => Token::Close,
            ',' => Token::Comma,
            '=' => {
                self.next_if(|c| c == '=');
                Token::Operator(Operator::Equal)
            }
            '!' if self.next_if(|c| c == '=').is_some() => Token::Operator(Operator::Unequal),
            '<' if self.next_if(|c| c == '=').is_some() => Token::Operator(Operator::AtMost),
            '<' if self.next_if(|c| c == '>').is_some() => Token::Operator(Operator::Unequal),
            '<' => Token::Operator(Operator::Less),
            '>' if self.next_if(|c| c == '=').is_some() => Token::Operator(Operator::AtLeast),
            '>' => Token::Operator(Operator::Greater),
            other => {
                let found = if other.is_control() { "a control character".into() } else { other.to_string() };
                return Err(self.malformed(
                    start,
                    found,
                    "a column, a number, a text in single quotes, and, or, not, in, is",
                ));
            }
        })
    }

    /// Reads a number and all characters joined to it.
    ///
    /// So `12abc` is one error and not two tokens.
    fn number(&mut self) -> Result<Token, Error> {
        let start = self.at;
        let mut word = String::new();
        while let Some(c) = self.next_if(|c| {
            c.is_alphanumeric()
                || matches!(c, '.' | '_')
                || (matches!(c, '+' | '-') && (word.is_empty() || word.ends_with(['e', 'E'])))
        }) {
            word.push(c);
        }
        match word.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Token::Number(number)),
            Ok(_) => {
                Err(self.malformed(start, "a number that is not finite", "one between -1.8e308 and 1.8e308"))
            }
            Err(_) => {
                Err(self.malformed(start, "a word that begins like a number", "a number like -1.5 or 2e3"))
            }
        }
    }

    /// Reads the text after an opening quote. A quote inside the text is written twice.
    fn quoted(&mut self, quote: char, start: usize) -> Result<String, Error> {
        let mut text = String::new();
        loop {
            text.push_str(&self.take_while(|c| c != quote));
            if self.next_if(|c| c == quote).is_none() {
                return Err(self.malformed(start, "an opening quote", "a closing one after it"));
            }
            if self.next_if(|c| c == quote).is_none() {
                return Ok(text);
            }
            text.push(quote);
        }
    }
}
