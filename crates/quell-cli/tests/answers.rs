//! Answers of `quell query` on a table with ties: right, and within the error that is printed.

use std::{collections::BTreeMap, fs, path::Path};

use crate::command::{folder, quell_with};

const CENSUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/census.csv");

/// Answers to the same question about the census, with the text that was printed.
fn ask(name: &str, relation: &str, question: &str, times: usize) -> Vec<String> {
    let ledger = folder(name).join("book").display().to_string();
    let create = [
        "ledger",
        "create",
        "census",
        "--epsilon",
        "30",
        "--delta",
        "1e-6",
        "--neighbors",
        relation,
        "--ledger",
        &ledger,
    ];
    assert_eq!(quell_with(&create, "").code, 0);
    let question: Vec<&str> = question.split_whitespace().collect();
    let ask = || {
        let ran = quell_with(&[&["query", CENSUS][..], &question, &["--ledger", &ledger]].concat(), "");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    (0..times).map(|_| ask()).collect()
}

/// A column of the census: its values with how many records have each.
fn column(place: usize) -> BTreeMap<i64, u64> {
    let mut counts = BTreeMap::new();
    for row in fs::read_to_string(Path::new(CENSUS)).unwrap().lines().skip(1) {
        if let Some(value) = row.split(',').nth(place).and_then(|cell| cell.trim().parse().ok()) {
            *counts.entry(value).or_insert(0) += 1;
        }
    }
    counts
}

/// How many records a number is away from the wanted part of all.
fn off(counts: &BTreeMap<i64, u64>, quantile: f64, answer: f64) -> f64 {
    let sum = |holds: &dyn Fn(f64) -> bool| {
        counts.iter().filter(|(v, _)| holds(**v as f64)).map(|(_, n)| *n as f64).sum::<f64>()
    };
    let wanted = quantile * sum(&|_| true);
    (sum(&|value| value < answer) - wanted).max(wanted - sum(&|value| value <= answer)).max(0.0)
}

/// The number after a word, and what follows " ± ".
fn number(text: &str, after: &str) -> (f64, f64) {
    let line =
        text.lines().find_map(|line| line.strip_prefix(after)).unwrap_or_else(|| panic!("{after} in {text}"));
    let (value, error) = line.split_once(" ± ").unwrap();
    (value.parse().unwrap(), error.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn the_median_of_a_column_with_ties_is_the_tied_value() {
    for relation in ["add-remove", "replace"] {
        let name = format!("answers_ties_{relation}");
        for text in ask(&name, relation, "quantile --column hours_per_week --bounds 0 100 --epsilon 1", 5) {
            let (value, error) = number(&text, "median: ");
            assert!(value == 40.0 && (10.0..60.0).contains(&error), "{text}");
        }
    }
}

#[test]
fn quantiles_and_ranges_are_within_the_printed_error() {
    let ages = column(0);
    // One answer in twenty may be farther off; five of eight are not by chance.
    let question = "quantile --column age --bounds 0 120 --quantile 0.9 --epsilon 0.5";
    let far = ask("answers_quantile", "add-remove", question, 8).into_iter().filter(|text| {
        let (value, error) = number(text, "quantile: ");
        off(&ages, 0.9, value) > error
    });
    assert!(far.count() < 5);
    let question = "range --column age --bounds 0 120 --inside 0.8 --epsilon 1";
    let far = ask("answers_range", "add-remove", question, 8).into_iter().filter(|text| {
        let ([low, low_error], [high, high_error]) =
            (<[f64; 2]>::from(number(text, "from: ")), number(text, "to: ").into());
        off(&ages, 0.1, low) > low_error || off(&ages, 0.9, high) > high_error
    });
    assert!(far.count() < 5);
}
