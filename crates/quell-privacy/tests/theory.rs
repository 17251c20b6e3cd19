//! Theory links: every key cited in the code has a row in THEORY.md, and every row is cited.

// The walls are those of the library; its tests read the documents.
#![allow(clippy::disallowed_methods)]

use std::{collections::BTreeSet, fs, path::Path};

fn sources(folder: &Path, into: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            // Comments and strings: a slice of numbers is no citation.
            let text = fs::read_to_string(path).unwrap();
            into.extend(
                text.lines()
                    .filter(|line| line.contains("//") || line.contains('"'))
                    .flat_map(|line| [line, "\n"]),
            );
        }
    }
}

/// Letters, then two digits: `MTZ19`.
fn is_key(word: &str) -> bool {
    let letters = word.trim_end_matches(|c: char| c.is_ascii_digit());
    word.len() == letters.len() + 2
        && !letters.is_empty()
        && letters.chars().all(char::is_alphabetic)
        && word.starts_with(|c: char| c.is_uppercase())
}

/// Keys inside square brackets.
fn cited(text: &str) -> BTreeSet<String> {
    let brackets =
        text.split('[').skip(1).filter_map(|rest| rest.split(']').next()).filter(|inside| inside.len() < 80);
    let words = brackets.flat_map(|inside| {
        inside.split([',', ';', ' ']).map(str::trim).map(str::to_owned).collect::<Vec<_>>()
    });
    words.filter(|word| is_key(word)).collect()
}

#[test]
fn every_citation_has_a_row_and_every_row_is_cited() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut code = String::new();
    sources(&root.join("src"), &mut code);
    let theory = fs::read_to_string(root.join("../../THEORY.md")).unwrap();
    let rows: BTreeSet<String> = theory
        .lines()
        .filter_map(|line| line.strip_prefix("| "))
        .filter_map(|row| row.split(' ').next())
        .filter(|key| is_key(key))
        .map(str::to_owned)
        .collect();
    let code = cited(&code);
    assert!(rows.len() > 20, "{rows:?}");
    assert_eq!(
        code.difference(&rows).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "cited without a row in THEORY.md"
    );
    assert_eq!(rows.difference(&code).collect::<Vec<_>>(), Vec::<&String>::new(), "rows that no code cites");
}

#[test]
fn every_test_named_in_the_theory_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let theory = fs::read_to_string(root.join("../../THEORY.md")).unwrap();
    let mut seen = 0;
    for row in theory.lines().filter(|line| line.starts_with("| ")) {
        let Some(tests) = row.split('|').nth(5) else { continue };
        let mut file = String::new();
        for name in tests.split('`').skip(1).step_by(2) {
            let test = match name.split_once("::") {
                Some((path, test)) => {
                    // What only the crate itself can see is tested inside it.
                    let places = [root.join("tests").join(path), root.join("src").join(path)];
                    file = places
                        .iter()
                        .find_map(|place| fs::read_to_string(place).ok())
                        .unwrap_or_else(|| panic!("no file {path}"));
                    test
                }
                None => name,
            };
            assert!(file.contains(&format!("fn {test}(")), "THEORY.md names {name}, which does not exist");
            seen += 1;
        }
    }
    assert!(seen > 25, "only {seen} tests found");
}
