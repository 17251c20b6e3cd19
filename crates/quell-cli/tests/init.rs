//! `quell init`, and tables as they come, by whole commands.

use std::{fmt::Write as _, fs, path::Path};

use crate::command::{charges, folder, json, run};
use quell::{data::Schema, run::Configuration};

/// Every line of a file that sets something has a comment, and so has every gap. The first lines are a comment.
fn is_commented(text: &str) -> bool {
    let settings = text.split_once("\n\n").unwrap().1.lines().filter(|line| !line.is_empty());
    settings.clone().count() > 5 && settings.into_iter().all(|line| line.contains("  # "))
}

fn people(rows: u32) -> String {
    let mut text = String::from("age;job;y\n");
    for row in 0..rows {
        let rich = row % 3 == 0;
        writeln!(text, "{};{};{}", 20 + row % 50, if rich { "boss" } else { "clerk" }, u8::from(rich))
            .unwrap();
    }
    text
}

#[test]
fn init_writes_files_with_a_comment_on_every_line_and_charges_nothing() {
    let here = folder("init_table");
    fs::write(here.join("people.csv"), people(300)).unwrap();
    let ran = run(&here, "init people.csv");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("quell train --config people-run.toml --schema people-schema.toml"),
        "{}",
        ran.stderr
    );
    let (schema, settings) = (read(&here, "people-schema.toml"), read(&here, "people-run.toml"));
    assert!(is_commented(&schema), "{schema}");
    assert!(is_commented(&settings), "{settings}");
    assert!(["age", "job", "y"].iter().all(|name| schema.contains(&format!("\"{name}\""))), "{schema}");
    // Nothing of a record is in the files, and there is no ledger.
    assert!(!schema.contains("boss") && !settings.contains("boss") && !here.join(".quell").exists());
    assert!(Configuration::parse(&settings).is_ok(), "{settings}");
    // What a person wrote is not overwritten.
    assert_eq!(run(&here, "init people.csv").code, 2);
}

#[test]
fn a_schema_and_a_configuration_with_filled_gaps_train() {
    let here = folder("init_train");
    fs::write(here.join("people.csv"), people(300)).unwrap();
    run(&here, "init people.csv --numbers age --categories job,y");
    let filled = |name: &str, gaps: &[(&str, &str)]| {
        let text = gaps.iter().fold(read(&here, name), |text, (gap, value)| {
            assert!(text.contains(gap), "{gap}: {text}");
            text.replace(gap, value)
        });
        fs::write(here.join(name), text).unwrap();
    };
    filled(
        "people-schema.toml",
        &[
            ("# bounds = [lowest, highest]", "bounds = [20, 70]"),
            ("# categories = [\"…\", \"…\"]", "categories = ['boss', 'clerk']"),
            ("# classes = [\"…\", \"…\"]", "classes = ['0', '1']"),
        ],
    );
    filled("people-run.toml", &[("# records = 10000", "records = 300")]);
    assert_eq!(
        Schema::read(here.join("people-schema.toml")).unwrap().features(),
        ["age", "job=boss", "job=clerk"]
    );
    let ran = run(&here, "train --config people-run.toml --schema people-schema.toml");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(charges(&here, "people"), 1);
}

#[test]
fn init_of_other_data_writes_a_configuration_alone() {
    let here = folder("init_pictures");
    fs::create_dir_all(here.join("pictures/cat")).unwrap();
    fs::write(here.join("pictures/cat/1.png"), "no picture").unwrap();
    let ran = run(&here, "init pictures");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let settings = read(&here, "pictures-run.toml");
    assert!(is_commented(&settings) && settings.contains("# shape"), "{settings}");
    assert!(!settings.contains("cat") && !here.join("pictures-schema.toml").exists(), "{settings}");
    assert!(Configuration::parse(&settings).is_ok(), "{settings}");
    assert_eq!(run(&here, "init pictures --config other.toml --epsilon 1").code, 2);
}

#[test]
fn a_first_row_that_may_be_a_record_is_said_to_be_names_and_is_not_printed() {
    let here = folder("init_words");
    fs::write(here.join("words.csv"), "ann,clerk,never\nbob,boss,often\n").unwrap();
    let said = "the first row of words.csv was read as the names of the columns";
    let ran = run(&here, "init words.csv");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains(said) && ran.stderr.contains("--header A,B,C"), "{}", ran.stderr);
    for word in ["ann", "clerk", "never", "bob", "boss", "often"] {
        assert!(!ran.stderr.contains(word) && !ran.stdout.contains(word), "{}", ran.stderr);
    }
    // The names are declared, so the first row is a record.
    let ran = run(
        &here,
        "init words.csv --header name,work,smokes --delimiter , --config own.toml --output own-schema.toml",
    );
    assert_eq!((ran.code, ran.stderr.contains("the first row")), (0, false), "{}", ran.stderr);
    let written = read(&here, "own-schema.toml") + &read(&here, "own.toml");
    assert!(written.contains("smokes") && !written.contains("clerk"), "{written}");
}

#[test]
fn init_of_other_data_refuses_what_only_a_table_has() {
    let here = folder("init other flags");
    fs::write(here.join("records.npy"), b"\x93NUMPY").unwrap();
    for flag in [
        "--label y",
        "--numbers a,b",
        "--categories a",
        "--ignore a",
        "--user a",
        "--header a,b",
        "--missing x",
    ] {
        let refused = run(&here, &format!("init records.npy {flag}"));
        let name = flag.split(' ').next().unwrap();
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{flag}");
        assert!(
            refused
                .stderr
                .contains("records.npy is not a table, expected a table for a schema\nhint: leave out ")
                && refused.stderr.contains(name),
            "{}",
            refused.stderr
        );
    }
    assert_eq!(fs::read_dir(&here).unwrap().count(), 1, "nothing is written");
}

#[test]
fn init_with_a_price_charges_the_ledger_and_fills_the_gaps() {
    let here = folder("init_paid");
    fs::write(here.join("people.csv"), people(20_000)).unwrap();
    run(&here, "ledger create people --epsilon 10 --delta 1e-6");
    let ran = run(&here, "init people.csv --numbers age --within 0 1000 --epsilon 5");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let schema = read(&here, "people-schema.toml");
    assert!(is_commented(&schema), "{schema}");
    assert_eq!(Schema::parse(&schema).unwrap().columns.len(), 2);
    assert!(charges(&here, "people") > 0);
}

#[test]
fn a_file_without_a_header_answers_questions_by_declared_names() {
    let here = folder("init_headerless");
    let mut rows = String::new();
    (0..2000)
        .for_each(|row| writeln!(rows, "{}; {}", row % 100, if row % 4 == 0 { "?" } else { "a" }).unwrap());
    fs::write(here.join("people.data"), rows).unwrap();
    run(&here, "ledger create people --epsilon 30 --delta 1e-6");
    let ask = |flags: &str| {
        let flags = format!("query people.data count --epsilon 10 --format json {flags}");
        json(&here, &flags)["answer"]["number"]["value"].as_f64().unwrap()
    };
    let names = "--delimiter ; --header age,work --missing ?";
    assert!((ask(names) - 2000.0).abs() < 10.0);
    let here_only = |condition: &str| {
        let mut words = vec!["query", "people.data", "count", "--epsilon", "10", "--format", "json"];
        words.extend(names.split(' ').chain(["--where", condition]));
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_quell"))
            .args(words)
            .current_dir(&here)
            .output()
            .unwrap();
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()["answer"]["number"]["value"]
            .as_f64()
            .unwrap()
    };
    assert!((here_only("work is missing") - 500.0).abs() < 10.0);
}

fn read(here: &Path, name: &str) -> String {
    fs::read_to_string(here.join(name)).unwrap()
}
