//! Laws of predicates: what is printed is read again, what is read is evaluated as written, and nothing panics.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::scratch::Scratch;
use proptest::prelude::*;
use quell::{
    Error,
    data::{Predicate, TableError},
};

/// An expression as a test would write one.
#[derive(Clone, Debug)]
enum Naive {
    Number(usize, &'static str, i32),
    Text(usize, &'static str, String),
    Numbers(usize, Vec<i32>),
    Texts(usize, Vec<String>),
    Missing(usize),
    Not(Box<Naive>),
    And(Box<Naive>, Box<Naive>),
    Or(Box<Naive>, Box<Naive>),
}

const COLUMNS: [&str; 3] = ["age", "the \"city\"", "not"];
const CELLS: [&str; 8] = ["", "-2", "0", "1", "1.0", "it's", "b", "nan"];
const OPERATORS: [&str; 6] = ["=", "!=", "<", "<=", ">", ">="];
/// Operators between texts: a table without a schema does not say which of two texts comes first.
const EQUALITIES: [&str; 2] = ["=", "!="];

impl Naive {
    fn written(&self) -> String {
        let column = |i: &usize| {
            if *i == 0 { "age".to_owned() } else { format!("\"{}\"", COLUMNS[*i].replace('"', "\"\"")) }
        };
        let quoted = |text: &String| format!("'{}'", text.replace('\'', "''"));
        match self {
            Self::Number(i, operator, number) => format!("{}{operator}{number}", column(i)),
            Self::Text(i, operator, text) => format!("{} {operator} {}", column(i), quoted(text)),
            Self::Numbers(i, list) => {
                format!(
                    "{} IN ({})",
                    column(i),
                    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
                )
            }
            Self::Texts(i, list) => {
                format!("{} in({})", column(i), list.iter().map(quoted).collect::<Vec<_>>().join(" , "))
            }
            Self::Missing(i) => format!("{} is Missing", column(i)),
            Self::Not(inner) => format!("not ({})", inner.written()),
            Self::And(left, right) => format!("({}) and ({})", left.written(), right.written()),
            Self::Or(left, right) => format!("({})or({})", left.written(), right.written()),
        }
    }

    fn holds(&self, row: &[&str]) -> bool {
        let number = |i: &usize| row[*i].parse::<f64>().ok().filter(|number| !number.is_nan());
        let compare = |operator: &str, order: std::cmp::Ordering| match operator {
            "=" => order.is_eq(),
            "!=" => order.is_ne(),
            "<" => order.is_lt(),
            "<=" => order.is_le(),
            ">" => order.is_gt(),
            _ => order.is_ge(),
        };
        match self {
            Self::Number(i, operator, value) => {
                number(i).is_some_and(|cell| compare(operator, cell.partial_cmp(&f64::from(*value)).unwrap()))
            }
            Self::Text(i, operator, value) => !row[*i].is_empty() && compare(operator, row[*i].cmp(value)),
            Self::Numbers(i, list) => {
                number(i).is_some_and(|cell| list.iter().any(|value| f64::from(*value) == cell))
            }
            Self::Texts(i, list) => !row[*i].is_empty() && list.iter().any(|value| value == row[*i]),
            Self::Missing(i) => row[*i].is_empty(),
            Self::Not(inner) => !inner.holds(row),
            Self::And(left, right) => left.holds(row) && right.holds(row),
            Self::Or(left, right) => left.holds(row) || right.holds(row),
        }
    }
}

fn expressions() -> impl Strategy<Value = Naive> {
    let column = 0..COLUMNS.len();
    let operator = prop::sample::select(&OPERATORS[..]);
    let text = || prop::sample::select(&CELLS[..]).prop_map(str::to_owned);
    let test = prop_oneof![
        (column.clone(), operator, -3..3)
            .prop_map(|(i, operator, number)| Naive::Number(i, operator, number)),
        (column.clone(), prop::sample::select(&EQUALITIES[..]), text())
            .prop_map(|(i, operator, text)| Naive::Text(i, operator, text)),
        (column.clone(), prop::collection::vec(-3..3, 1..4)).prop_map(|(i, list)| Naive::Numbers(i, list)),
        (column.clone(), prop::collection::vec(text(), 1..4)).prop_map(|(i, list)| Naive::Texts(i, list)),
        column.prop_map(Naive::Missing),
    ];
    test.prop_recursive(5, 30, 2, |inner| {
        let pair = || (inner.clone().prop_map(Box::new), inner.clone().prop_map(Box::new));
        prop_oneof![
            inner.clone().prop_map(|inner| Naive::Not(Box::new(inner))),
            pair().prop_map(|(left, right)| Naive::And(left, right)),
            pair().prop_map(|(left, right)| Naive::Or(left, right)),
        ]
    })
}

/// Words that expressions are made of, and some that they are not.
fn words() -> impl Strategy<Value = String> {
    let known = prop::sample::select(
        &[
            "and", "or", "not", "in", "is", "missing", "(", ")", ",", "age", "\"", "'", "''", "'x'", "1",
            "-", "1e999", "=", "<>", "!", "é",
        ][..],
    );
    prop::collection::vec(prop_oneof![4 => known.prop_map(str::to_owned), 1 => ".{0,3}"], 0..20)
        .prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn a_printed_predicate_is_read_as_itself(expression in expressions()) {
        let predicate: Predicate = expression.written().parse().unwrap();
        let again: Predicate = predicate.to_string().parse().unwrap();
        prop_assert_eq!(&again, &predicate);
        prop_assert_eq!(again.to_string(), predicate.to_string());
    }

    #[test]
    fn a_row_is_selected_where_the_expression_holds(
        expression in expressions(),
        rows in prop::collection::vec(prop::array::uniform3(prop::sample::select(&CELLS[..])), 1..20),
    ) {
        let mut content = String::from("age,\"the \"\"city\"\"\",not,row\n");
        for (i, row) in rows.iter().enumerate() {
            content.extend([row.join(",").as_str(), ",", i.to_string().as_str(), "\n"]);
        }
        let file = Scratch::new("rows.csv", content);
        let expected: Vec<_> = (0..rows.len()).filter(|i| expression.holds(&rows[*i])).map(|i| Some(i as f64)).collect();
        let selected = |predicate: &Predicate| file.table().select(predicate).unwrap().numbers("row").unwrap();
        let predicate: Predicate = expression.written().parse().unwrap();
        prop_assert_eq!(selected(&predicate), expected.clone());
        prop_assert_eq!(selected(&predicate.to_string().parse().unwrap()), expected);
    }

    #[test]
    fn no_text_makes_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), words in words()) {
        for text in [String::from_utf8_lossy(&bytes).into_owned(), words] {
            match text.parse::<Predicate>() {
                Ok(predicate) => prop_assert_eq!(predicate.to_string().parse::<Predicate>().unwrap(), predicate),
                Err(error) => prop_assert!(!error.to_string().is_empty() && error.hint().is_some()),
            }
        }
    }

    #[test]
    fn no_bytes_make_the_reader_of_csv_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let file = Scratch::new("bytes.csv", [b"a,b\n".as_slice(), &bytes].concat());
        file.table().all().texts("a").unwrap();
        file.table().all().numbers("b").unwrap();
        let file = Scratch::new("bytes.csv", bytes);
        if let Ok(table) = quell::data::Table::open(file.path()) {
            table.all().count().unwrap();
        }
    }
}

fn mistake(text: &str) -> (String, usize) {
    match text.parse::<Predicate>().unwrap_err() {
        Error::Table(TableError::Malformed { found, place, .. }) => (found, place.at),
        other => panic!("{other}"),
    }
}

#[test]
fn and_binds_before_or_and_not_before_and() {
    let same =
        |left: &str, right: &str| assert_eq!(left.parse::<Predicate>().unwrap(), right.parse().unwrap());
    same("a=1 or b=1 and not c=1 and d=1", "a = 1 or (b = 1 and (not (c = 1)) and d = 1)");
    same("3 < a and 'x' >= b and 1 <> c and d == 2", "a > 3 and b <= 'x' and c != 1 and d = 2");
    same("a NOT IN (1) and b IS NOT MISSING", "not a in (1) and not b is missing");
    same("\"a\" = 1", "a = 1");
    assert_ne!("\"A\" = 1".parse::<Predicate>().unwrap(), "a = 1".parse().unwrap());
}

#[test]
fn a_mistake_is_pointed_at() {
    assert_eq!(mistake(""), ("its end".into(), 0));
    assert_eq!(mistake("age"), ("its end".into(), 3));
    assert_eq!(mistake("age >= and"), ("the word and".into(), 7));
    assert_eq!(mistake("élan = 'x' é"), ("a column name".into(), 11));
    assert_eq!(mistake("age = 'x"), ("an opening quote".into(), 6));
    assert_eq!(mistake("age = 12abc"), ("a word that begins like a number".into(), 6));
    assert_eq!(mistake("age = 1e999"), ("a number that is not finite".into(), 6));
    assert_eq!(mistake("age in (1, 'x')"), ("numbers and texts in one list".into(), 11));
    assert_eq!(mistake("age in ()"), (")".into(), 8));
    assert_eq!(mistake("(age = 1"), ("its end".into(), 8));
    assert_eq!(mistake("age = 1)"), (")".into(), 7));
    assert_eq!(mistake("age = 1; x"), (";".into(), 7));
    assert_eq!(mistake("age is null"), ("a column name".into(), 7));
    assert_eq!(mistake("age = other"), ("a column name".into(), 6));
    assert_eq!(mistake("1 = 2"), ("a number".into(), 4));
}

#[test]
fn depth_is_bounded_and_length_is_not() {
    let deep = format!("{}a = 1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(mistake(&deep).1, 100);
    assert_eq!(mistake(&"not ".repeat(100_000)).1, 400);
    let long = format!("a = 1{}", " or a = 1".repeat(100_000));
    assert!(long.parse::<Predicate>().is_ok());
    assert!(format!("{}a = 1{}", "(".repeat(99), ")".repeat(99)).parse::<Predicate>().is_ok());
}
