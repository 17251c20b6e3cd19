//! Parses tokens into an expression.
//!
//! ```text
//! any        = all { "or" all }
//! all        = term { "and" term }
//! term       = "not" term | "(" any ")" | test
//! test       = column operator literal | literal operator column
//!            | column [ "not" ] "in" "(" literal { "," literal } ")"
//!            | column "is" [ "not" ] "missing"
//! ```

use super::{Expression, Literal, Name, token};
use crate::data::table::error::{Error, Place};
use token::{Keyword, Token};

/// The deepest nesting: more than anyone writes, and little enough for any stack.
const DEEPEST: usize = 100;

pub(super) fn parse(text: &str) -> Result<Expression, Error> {
    let mut parser = Parser { text, tokens: token::tokens(text)?, next: 0, depth: 0 };
    let expression = parser.any()?;
    match parser.peek() {
        Token::End => Ok(expression),
        _ => Err(parser.unexpected("and, or, or the end")),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// The tokens. The last is `End`, which is never consumed.
    tokens: Vec<(Token, usize)>,
    next: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.next].0
    }

    fn at(&self) -> usize {
        self.tokens[self.next].1
    }

    fn accept(&mut self, token: &Token) -> bool {
        let accepted = self.peek() == token && *token != Token::End;
        self.next += usize::from(accepted);
        accepted
    }

    fn expect(&mut self, token: &Token, expected: &'static str) -> Result<(), Error> {
        if self.accept(token) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn unexpected(&self, expected: &'static str) -> Error {
        self.malformed(self.at(), self.peek().to_string(), expected)
    }

    fn malformed(&self, at: usize, found: impl Into<String>, expected: &'static str) -> Error {
        Error::Malformed {
            found: found.into(),
            expected,
            place: Place { expression: self.text.to_owned(), at },
        }
    }

    fn any(&mut self) -> Result<Expression, Error> {
        self.chain(Keyword::Or, Self::all, Expression::Any)
    }

    fn all(&mut self) -> Result<Expression, Error> {
        self.chain(Keyword::And, Self::term, Expression::All)
    }

    fn chain(
        &mut self,
        word: Keyword,
        link: fn(&mut Self) -> Result<Expression, Error>,
        join: fn(Vec<Expression>) -> Expression,
    ) -> Result<Expression, Error> {
        let first = link(self)?;
        let mut links = vec![first];
        while self.accept(&Token::Keyword(word)) {
            links.push(link(self)?);
        }
        Ok(if links.len() == 1 { links.remove(0) } else { join(links) })
    }

    fn term(&mut self) -> Result<Expression, Error> {
        if self.depth == DEEPEST {
            return Err(self.malformed(self.at(), "too many nested parentheses or nots", "at most 100"));
        }
        self.depth += 1;
        let term = if self.accept(&Token::Keyword(Keyword::Not)) {
            Expression::Not(Box::new(self.term()?))
        } else if self.accept(&Token::Open) {
            let inner = self.any()?;
            self.expect(&Token::Close, "and, or, or a closing parenthesis")?;
            inner
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(term)
    }

    fn test(&mut self) -> Result<Expression, Error> {
        if let Some(literal) = self.literal() {
            let operator = self.operator("a comparison: = != < <= > >=")?;
            let column =
                self.column("a column name: text is in single quotes, a name bare or in double quotes")?;
            return Ok(Expression::Compare { column, operator: operator.mirrored(), literal });
        }
        let column =
            self.column("a column name, a number, a text in single quotes, not or an opening parenthesis")?;
        if self.accept(&Token::Keyword(Keyword::Is)) {
            let negated = self.accept(&Token::Keyword(Keyword::Not));
            self.expect(&Token::Keyword(Keyword::Missing), "missing, or not missing")?;
            return Ok(Expression::Missing { column }.negated_if(negated));
        }
        let negated = self.accept(&Token::Keyword(Keyword::Not));
        if self.accept(&Token::Keyword(Keyword::In)) {
            let literals = self.list()?;
            return Ok(Expression::In { column, literals }.negated_if(negated));
        }
        if negated {
            return Err(self.unexpected("in"));
        }
        let operator =
            self.operator("a comparison (= != < <= > >=), in, not in, is missing or is not missing")?;
        match self.literal() {
            Some(literal) => Ok(Expression::Compare { column, operator, literal }),
            None => Err(self.unexpected("a number, or a text in single quotes")),
        }
    }

    fn operator(&mut self, expected: &'static str) -> Result<super::Operator, Error> {
        let Token::Operator(operator) = *self.peek() else { return Err(self.unexpected(expected)) };
        self.next += 1;
        Ok(operator)
    }

    fn column(&mut self, expected: &'static str) -> Result<Name, Error> {
        let Token::Name(text) = self.peek() else { return Err(self.unexpected(expected)) };
        let name = Name { text: text.clone(), at: self.at() };
        self.next += 1;
        Ok(name)
    }

    fn literal(&mut self) -> Option<Literal> {
        let literal = match self.peek() {
            Token::Number(number) => Literal::Number(*number),
            Token::Text(text) => Literal::Text(text.clone()),
            _ => return None,
        };
        self.next += 1;
        Some(literal)
    }

    /// Parses literals in parentheses, all numbers or all texts.
    fn list(&mut self) -> Result<Vec<Literal>, Error> {
        self.expect(&Token::Open, "an opening parenthesis")?;
        let mut literals: Vec<Literal> = Vec::new();
        loop {
            let at = self.at();
            let Some(literal) = self.literal() else {
                return Err(self.unexpected("a number, or a text in single quotes"));
            };
            if literals.first().is_some_and(|first| first.usage() != literal.usage()) {
                return Err(self.malformed(
                    at,
                    "numbers and texts in one list",
                    "only numbers or only texts",
                ));
            }
            literals.push(literal);
            if self.accept(&Token::Close) {
                return Ok(literals);
            }
            self.expect(&Token::Comma, "a comma or a closing parenthesis")?;
        }
    }
}
