//! Tables from CSV: what is read, what is missing, and that errors say nothing about records.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fmt::Write as _;

use crate::scratch::Scratch;
use quell::{
    Error, Hint,
    data::{FormatError, Kind, Predicate, Table, TableError, Use},
};

fn csv(content: impl AsRef<[u8]>) -> Scratch {
    Scratch::new("table.csv", content)
}

fn names(table: &Table) -> Vec<&str> {
    table.columns().iter().map(|column| column.name.as_str()).collect()
}

fn texts(content: impl AsRef<[u8]>, column: &str) -> Vec<Option<String>> {
    csv(content).table().all().texts(column).unwrap()
}

fn numbers(content: impl AsRef<[u8]>, column: &str) -> Vec<Option<f64>> {
    csv(content).table().all().numbers(column).unwrap()
}

fn refused(file: &Scratch) -> Error {
    Table::open(file.path()).unwrap_err()
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

#[test]
fn columns_have_names_and_no_declared_type() {
    let file = csv("name, age ,\"home, town\"\nAda,36,Bern\n");
    let table = file.table();
    assert_eq!(names(&table), ["name", "age", "home, town"]);
    assert!(table.columns().iter().all(|column| column.kind == Kind::Undeclared));
}

#[test]
fn a_file_without_a_header_is_refused() {
    assert!(matches!(refused(&csv("")), Error::Format(FormatError::NoTable { found: "empty", .. })));
    assert!(matches!(refused(&csv("\n\r\n\n")), Error::Format(FormatError::NoTable { found: "empty", .. })));
}

#[test]
fn a_first_row_that_is_a_record_is_refused_and_not_shown() {
    let error = refused(&csv("Ada,36,Bern\nBob,41,Basel\n"));
    assert!(matches!(error, Error::Format(FormatError::NoHeader { .. })));
    assert!(!format!("{error} {error:?} {}", error.hint().unwrap()).contains("Ada"));
}

#[test]
fn a_header_alone_is_a_table_without_records() {
    for content in ["a,b", "a,b\n", "a,b\r\n\r\n"] {
        assert_eq!(csv(content).table().all().count().unwrap(), 0);
        assert!(numbers(content, "b").is_empty());
    }
}

#[test]
fn quotes_commas_and_newlines_in_cells_are_text() {
    let content = "a,b\n\"x,y\",1\n\"two\nlines\",2\n\"say \"\"hi\"\"\",3\n";
    assert_eq!(texts(content, "a"), some(&["x,y", "two\nlines", "say \"hi\""]));
    assert_eq!(numbers(content, "b"), [Some(1.0), Some(2.0), Some(3.0)]);
}

#[test]
fn byte_order_mark_and_carriage_returns_are_no_text() {
    assert_eq!(texts("\u{feff}a,b\r\nx,1\r\ny,2\r\n", "a"), some(&["x", "y"]));
    assert_eq!(numbers("\u{feff}a,b\r\nx,1\r\ny,2", "b"), [Some(1.0), Some(2.0)]);
    assert_eq!(texts("\u{feff}\"a\"\nx\n", "a"), some(&["x"]));
}

#[test]
fn what_is_not_a_finite_number_is_missing() {
    let cells =
        ["nan", "NaN", "inf", "-Infinity", "1e999", "", "  ", "x", "1_000", "0x10", "1 2", "--1", "½"];
    for cell in cells {
        assert_eq!(numbers(format!("n,a\n{cell},z\n"), "n"), [None], "{cell}");
    }
    assert_eq!(numbers("n\n\"1,5\"\n", "n"), [None]);
}

#[test]
fn finite_numbers_are_read_to_the_last_bit() {
    let exact = [0.0, -1.5, 1e308, -1.797_693_134_862_315_7e308, 5e-324, 0.1, 9_007_199_254_740_993.0];
    for number in exact {
        assert_eq!(numbers(format!("n\n{number}\n"), "n"), [Some(number)]);
        assert_eq!(numbers(format!("n\n \t{number:e} \n"), "n"), [Some(number)]);
    }
    let huge = format!("n\n1{}\n.5\n5.\n+5\n", "0".repeat(300));
    assert_eq!(numbers(huge, "n"), [Some(1e300), Some(0.5), Some(5.0), Some(5.0)]);
}

#[test]
fn short_rows_have_missing_cells_and_long_rows_extra_ones() {
    let content = "a,b,c\n1\n1,2\n1,2,3\n1,2,3,4\n,,\n";
    assert_eq!(numbers(content, "c"), [None, None, Some(3.0), Some(3.0), None]);
    assert_eq!(texts(content, "a"), [some(&["1"; 4]), vec![None]].concat());
}

#[test]
fn bytes_that_are_not_utf8_are_read_as_replacement_characters() {
    assert_eq!(texts(b"a,b\nZ\xfcrich,1\n", "a"), some(&["Z\u{fffd}rich"]));
    assert_eq!(numbers(b"a,b\nZ\xfcrich,1\n", "b"), [Some(1.0)]);
    assert_eq!(numbers(b"a,b\nx,\xfc1\n", "b"), [None]);
}

#[test]
fn an_open_quote_is_no_error() {
    assert_eq!(texts("a,b\n\"x,1\ny,2\n", "a"), some(&["x,1\ny,2"]));
}

#[test]
fn a_record_that_is_too_long_is_one_row_without_cells() {
    const LONGEST: usize = 1 << 24;
    let others = "Ada,1\nBob,2\n".repeat(500);
    let letters = |count: usize| "z".repeat(count);
    let long = [
        format!("{},3\n", letters(LONGEST + (1 << 18))),
        format!("\"{}\n{}\",3\n", letters(LONGEST), letters(100)),
        format!("{}\n", ",".repeat(LONGEST + 1)),
    ];
    for long in &long {
        for (before, after) in [("", others.as_str()), (others.as_str(), ""), (others.as_str(), "Eve,4\n")] {
            let file = csv(format!("a,b\n{before}{long}{after}"));
            let rows = (before.len() + after.len()) / 6 + 1;
            assert_eq!(file.table().all().count().unwrap(), rows as u64);
            let read = file.table().all().numbers("b").unwrap();
            assert_eq!(read.iter().filter(|cell| cell.is_some()).count(), rows - 1);
            assert_eq!(read[before.len() / 6], None);
        }
    }
    // Whether it is too long does not depend on what is around it.
    for before in [0, 1, 100, 70_000] {
        for (length, whole) in [(LONGEST - 17, true), (LONGEST - 16, false)] {
            let content = format!("a,b\n{}{},3\n{others}", "x,1\n".repeat(before), letters(length));
            let read = numbers(content, "b");
            assert_eq!(
                (read.len(), read[before]),
                (before + 1001, whole.then_some(3.0)),
                "{before} before {length} letters"
            );
        }
    }
    let header = refused(&csv(format!("{},b\n1,2\n", letters(LONGEST + 1))));
    assert!(matches!(header, Error::Format(FormatError::NoTable { .. })), "{header}");
}

#[test]
fn a_quote_in_tsv_is_a_letter() {
    let others = "Ada\t1\n".repeat(1000);
    for name in ["\"Bob", "\"", "Bo\"b", "\"Bob\"", "\"\"", "Bob\\"] {
        let file = Scratch::new("table.tsv", format!("a\tb\n{name}\t30\n{others}"));
        let table = file.table();
        assert_eq!(table.all().count().unwrap(), 1001, "{name}");
        assert_eq!(table.all().texts("a").unwrap()[0].as_deref(), Some(name));
        assert_eq!(table.all().numbers("b").unwrap()[..2], [Some(30.0), Some(1.0)], "{name}");
    }
}

#[test]
fn the_first_row_is_not_in_an_error_unless_it_was_nearly_asked_for() {
    let file = csv("Ada Lovelace,Bern,positive\nBob,Basel,negative\n");
    let errors = [
        file.table().all().texts("city").unwrap_err(),
        file.table().select(&"city = 'Bern'".parse().unwrap()).unwrap_err(),
        refused(&csv("Ada Lovelace,positive,positive\nBob,negative,negative\n")),
    ];
    for error in errors {
        let said = format!("{error} {error:?} {}", error.hint().unwrap()).replace("city = 'Bern'", "");
        assert!(!["Ada", "Bern", "positive"].iter().any(|cell| said.contains(cell)), "{said}");
    }
    assert_eq!(
        file.table().all().texts("bern").unwrap_err().hint(),
        Some(Hint::DidYouMean { name: "Bern".into() })
    );
}

#[test]
fn two_columns_of_one_name_are_refused_unless_they_have_none() {
    assert!(matches!(
        refused(&csv("a,b, a\n1,2,3\n")),
        Error::Table(TableError::DuplicateColumn { columns: [1, 3], .. })
    ));
    assert_eq!(numbers(",a,\n1,2,3\n", "a"), [Some(2.0)]);
    assert!(matches!(
        csv(",a,\n1,2,3\n").table().all().numbers(""),
        Err(Error::Table(TableError::NoColumn { .. }))
    ));
}

#[test]
fn the_separator_is_found_in_the_row_of_names() {
    for (name, content) in [
        ("table.tsv", "a\tb\n1\t2\n"),
        ("table.csv", "a;b\n1;2\n"),
        ("table.csv", "a\tb\n1\t2\n"),
        ("table.tsv", "a,b\n1,2\n"),
        ("table.txt", "\"a\";\"b\"\n1;2\n"),
    ] {
        let table = Scratch::new(name, content);
        assert_eq!(table.table().all().numbers("b").unwrap(), [Some(2.0)], "{content:?}");
    }
    assert_eq!(names(&csv("a\nx;y\n").table()), ["a"]);
}

#[test]
fn other_formats_are_named() {
    assert!(matches!(Table::open("no/such/file.csv"), Err(Error::Absent { .. })));
    assert!(matches!(Table::open(std::env::temp_dir()), Err(Error::Unreadable { .. })));
    assert!(matches!(
        refused(&csv(b"\x1f\x8b\x08\x00")),
        Error::Format(FormatError::NoTable { found: "compressed with gzip", .. })
    ));
    assert!(matches!(refused(&csv(b"PK\x03\x04\x14")), Error::Format(FormatError::NoTable { .. })));
    assert!(matches!(refused(&csv(b"\xff\xfea\0,\0b\0\n\0")), Error::Format(FormatError::NoTable { .. })));
    assert!(matches!(refused(&csv(b"a\0,\0b\0\n\0")), Error::Format(FormatError::NoTable { .. })));
    assert!(matches!(
        refused(&Scratch::new("table.parquet", "a,b\n1,2\n")),
        Error::Format(FormatError::Damaged { .. })
    ));
    assert_eq!(names(&csv("PAR1,a\n1,PAR1").table()), ["PAR1", "a"]);
    // A record may hold any byte: only the header tells the format.
    assert_eq!(texts(b"a,b\nx\0y,1\n", "a"), some(&["x\0y"]));
}

#[test]
fn a_misspelt_column_is_answered_with_the_nearest() {
    let file = csv("name,age,income\nAda,36,5\n");
    let error = file.table().all().numbers("Incom").unwrap_err();
    assert_eq!(error.to_string(), "there is no column \"Incom\", expected one of the 3 columns of the file");
    assert_eq!(error.hint(), Some(Hint::DidYouMean { name: "income".into() }));
    let error = file.table().select(&"name = 'Ada' and agee > 3".parse().unwrap()).unwrap_err();
    assert!(error.to_string().ends_with("\n  name = 'Ada' and agee > 3\n                   ^"), "{error}");
    let error = file.table().all().texts("zzzzzz").unwrap_err();
    assert!(error.hint() == Some(Hint::CheckColumnName));
}

#[test]
fn a_literal_declares_what_a_csv_column_is() {
    let file = csv("zip,n\n08001,1\n8001,2\n8001.0,3\nx,4\n,5\n");
    let selected =
        |text: &str| file.table().select(&text.parse::<Predicate>().unwrap()).unwrap().numbers("n").unwrap();
    assert_eq!(selected("zip = 8001"), [Some(1.0), Some(2.0), Some(3.0)]);
    assert_eq!(selected("zip = '8001'"), [Some(2.0)]);
    assert_eq!(selected("zip != 8001"), []);
    assert_eq!(selected("not zip = 8001"), [Some(4.0), Some(5.0)]);
    assert_eq!(selected("zip is missing"), [Some(5.0)]);
    assert_eq!(selected("zip is not missing and zip not in (8001)"), [Some(4.0)]);
    assert_eq!(selected("zip in ('x', '08001')"), [Some(1.0), Some(4.0)]);
    assert_eq!(
        selected("8001 <= zip and zip != '81' or n = 4"),
        [Some(1.0), Some(2.0), Some(3.0), Some(4.0)]
    );
}

#[test]
fn no_content_of_a_record_makes_an_error() {
    let cells =
        ["", "secret", "1e999", "\"", "\"a\"b", "\0", "nan", "\u{fffd}", ",,,,,", "\r", "'; drop table"];
    for first in cells {
        for second in cells {
            let file = csv(format!("a,b\n{first},{second}\n{second}\n"));
            let table = file.table();
            table.all().numbers("a").unwrap();
            table.all().texts("b").unwrap();
            table.select(&"a < 5 or b != 'x' or a is missing".parse().unwrap()).unwrap().count().unwrap();
        }
    }
}

#[test]
fn a_million_records_are_read_once_per_question() {
    let mut content = String::from("a,b,c,d,e,f,g,h,i,j\n");
    for i in 0..1_000_000 {
        writeln!(content, "{i},{}.25,city{},{},word,{i},0.5,,x,{}", i % 90, i % 7, i % 3, i % 1000).unwrap();
    }
    let file = csv(content);
    let table = file.table();
    let selection = table.select(&"b >= 18 and c = 'city3'".parse().unwrap()).unwrap();
    let expected = (0..1_000_000).filter(|i| i % 90 >= 18 && i % 7 == 3).map(f64::from);
    assert!(selection.numbers("a").unwrap().into_iter().eq(expected.map(Some)));
    let mut sum = 0.0;
    table
        .all()
        .scan(&[("j", Use::Number), ("i", Use::Text)], |row| sum += row.number(0).unwrap_or(0.0))
        .unwrap();
    assert_eq!(sum, 499_500.0 * 1000.0);
    assert_eq!(table.all().count().unwrap(), 1_000_000);
}
