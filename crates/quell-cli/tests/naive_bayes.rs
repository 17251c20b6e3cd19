//! `quell train --model naive-bayes`, from outside.

use std::{fmt::Write as _, fs, path::Path};

use crate::command::{Ran, folder, quell, run};

const SCHEMA: &str = "user = 'who'\n[label]\ncolumn = 'kind'\nclasses = ['cat', 'dog', 'bird']\n\
    [[column]]\nname = 'weight'\nbounds = [0, 30]\n[[column]]\nname = 'coat'\ncategories = ['fur', 'feathers']\nunknown = true\n";

/// A table of animals. Birds are light and have feathers, dogs are heavy.
fn animals(here: &Path, name: &str, count: usize) {
    let mut rows = String::from("who,weight,coat,kind\n");
    for i in 0..count {
        let (weight, coat, kind) =
            [(4 + i % 3, "fur", "cat"), (18 + i % 9, "fur", "dog"), (1, "feathers", "bird")][i % 3];
        writeln!(rows, "u{},{weight},{coat},{kind}", i / 2).unwrap();
    }
    rows += "x,nan,,cat\ny,inf,scales,dog\nz,3,fur,fish\nw\n";
    fs::write(here.join(name), rows).unwrap();
}

fn project(name: &str) -> std::path::PathBuf {
    let here = folder(&format!("naive bayes {name}"));
    animals(&here, "animals.csv", 1500);
    animals(&here, "test.csv", 90);
    fs::write(here.join("schema.toml"), SCHEMA).unwrap();
    here
}

fn train(here: &Path, more: &str) -> Ran {
    let asked = "train animals.csv --schema schema.toml --model naive-bayes --records 1500 --delta 1e-6";
    run(here, &format!("{asked} {more}"))
}

#[test]
fn one_release_learns_classes_and_the_model_predicts() {
    let here = project("learns");
    let ran = train(&here, "--test test.csv --epsilon 2 --output run --format json");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(said["steps"] == 1 && said["accuracy"].as_f64().unwrap() > 0.9, "{said}");
    let report = fs::read_to_string(here.join("run/report.md")).unwrap();
    assert!(report.contains("naive-bayes") && report.contains("one sum over all records"), "{report}");
    let predicted = run(&here, "predict run test.csv");
    assert!(predicted.code == 0 && predicted.stdout.contains("bird"), "{}", predicted.stderr);
    let again = run(&here, "resume run");
    assert!(again.code == 0, "{}", again.stderr);
}

#[test]
fn users_and_replaced_records_are_protected() {
    for terms in ["--users --records 754", "--neighbors replace --records 1504"] {
        let here = project(terms);
        let asked = "train animals.csv --schema schema.toml --model naive-bayes --delta 1e-6 --test test.csv";
        let ran = run(&here, &format!("{asked} --epsilon 4 {terms} --format json"));
        assert_eq!(ran.code, 0, "{terms}: {}", ran.stderr);
        let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert!(said["accuracy"].as_f64().unwrap() > 0.8, "{terms}: {said}");
    }
}

#[test]
fn settings_that_naive_bayes_does_not_have_are_refused() {
    let here = project("refused");
    for (more, says) in [
        ("--epsilon 1 --steps 5", "settings of other models"),
        ("--epsilon 1 --learning-rate 2", "settings of other models"),
        ("--epsilon 1 --quantile 0.3", "settings of other models"),
        ("", "--epsilon"),
    ] {
        let ran = train(&here, more);
        assert!(ran.code == 2 && ran.stderr.contains(says), "{more}: {}", ran.stderr);
    }
    let numbers = SCHEMA
        .replace("column = 'kind'\nclasses = ['cat', 'dog', 'bird']", "column = 'kind'\nbounds = [0, 1]");
    fs::write(here.join("schema.toml"), numbers).unwrap();
    let ran = train(&here, "--epsilon 1");
    assert!(ran.code == 2 && ran.stderr.contains("the target is a number"), "{}", ran.stderr);
    assert!(!here.join(".quell").exists(), "nothing was charged");
}

#[test]
fn the_model_is_listed() {
    assert!(quell("models").data().contains("\nnaive-bayes "));
}
