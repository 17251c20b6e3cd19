//! Additive and linear models of tables, from the dry run to the report.

use std::{fmt::Write, fs, path::Path};

use crate::command::{Ran, folder, json, run};

/// A table whose target is the distance of `a` from 50, and a little more for red records.
fn table(here: &Path) {
    let mut text = String::from("a,colour,y\n");
    for row in 0..2_000_u32 {
        let a = f64::from(row * 37 % 101);
        let colour = ["red", "blue"][usize::from(row % 3 > 0)];
        let y = (a - 50.0).abs() + if colour == "red" { 20.0 } else { 0.0 };
        writeln!(text, "{a},{colour},{y}").unwrap();
    }
    fs::write(here.join("people.csv"), &text).unwrap();
    fs::write(here.join("public.csv"), text.lines().take(200).collect::<Vec<_>>().join("\n")).unwrap();
    let schema = "[label]\ncolumn = 'y'\nbounds = [0, 100]\n[[column]]\nname = 'a'\nbounds = [0, 100]\n\
                  [[column]]\nname = 'colour'\ncategories = ['red', 'blue']\n";
    fs::write(here.join("schema.toml"), schema).unwrap();
}

const TRAIN: &str = "train people.csv --schema schema.toml --records 2000 --epsilon 5 --delta 1e-6";

fn works(ran: &Ran) {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn a_report_draws_what_each_column_adds() {
    let here = folder("columns");
    table(&here);
    let dry = run(&here, &format!("{TRAIN} --dry-run"));
    works(&dry);
    // Neither the settings nor the report count the constants that standardise columns.
    assert!(dry.stderr.contains("dry run of 12 weights"), "{}", dry.stderr);
    assert!(!dry.stdout.contains("34028235"), "{}", dry.stdout);
    let ran = run(&here, &format!("{TRAIN} --output one"));
    works(&ran);
    assert!(ran.stdout.starts_with("model: additive\nclaim: "), "{}", ran.stdout);
    let report = json(&here, "report one --format json");
    assert_eq!(report["model"]["weights"], 12);
    let columns = &report["columns"];
    assert_eq!((columns["score"].as_str(), &columns["lines"][0]), (Some("the predicted y"), &"y".into()));
    let points = columns["columns"][0]["curve"]["points"].as_array().unwrap();
    let at = |place: usize| points[place]["adds"][0].as_f64().unwrap();
    let lowest = (0..points.len()).min_by(|a, b| at(*a).total_cmp(&at(*b))).unwrap();
    let turn = points[lowest]["at"].as_f64().unwrap();
    assert!((40.0..60.0).contains(&turn) && at(0) - at(lowest) > 20.0, "{points:?}");
    let red = &columns["columns"][1]["categories"][0];
    assert!(red["category"] == "red" && red["adds"][0].as_f64().unwrap() > 5.0, "{red}");
    let markdown = fs::read_to_string(here.join("one/report.md")).unwrap();
    assert!(markdown.contains("## What each column adds") && markdown.contains("for red"), "{markdown}");
    let html = fs::read_to_string(here.join("one/report.html")).unwrap();
    assert!(html.contains("<title>colour</title>") && html.contains("<title>a</title>"));
    // Numbers have an error, and no accuracy.
    assert!(markdown.contains("error **not measured**") && !markdown.contains("accuracy"), "{markdown}");
}

/// A hint never leads to a command that is refused with the hint to go back.
#[test]
fn hints_on_numbers_do_not_go_in_a_circle() {
    let here = folder("numbers_hints");
    table(&here);
    works(&run(&here, &format!("{TRAIN} --output one")));
    for arguments in ["evaluate one people.csv", "evaluate one people.csv --public"] {
        let ran = run(&here, arguments);
        assert!(ran.code == 2 && !ran.stderr.contains("--epsilon E"), "{arguments}: {}", ran.stderr);
        assert!(!ran.stderr.contains("noisy accuracy"), "{arguments}: {}", ran.stderr);
    }
    let paid = run(&here, "evaluate one people.csv --epsilon 1");
    assert!(paid.code == 2 && !paid.stderr.contains("--public"), "{}", paid.stderr);
    works(&run(&here, "evaluate one public.csv --public"));
}

/// Without other charges, the ledger charges what the plan claims.
#[test]
fn a_run_with_given_noise_names_one_epsilon() {
    let here = folder("given_noise");
    table(&here);
    let train = TRAIN.replace("--epsilon 5", "--noise-multiplier 10");
    let ran = run(&here, &format!("{train} --output one"));
    works(&ran);
    let number = |text: &str, before: &str| {
        let rest = text.split(before).nth(1).unwrap_or_else(|| panic!("{before}: {text}"));
        rest.split_whitespace().next().unwrap().to_owned()
    };
    let claim = number(&ran.stdout, "claim: ε ≤ ");
    assert_eq!(number(&ran.stderr, "in line 1: ε "), claim);
    let budget = number(&ran.stderr, "ledger.db: ε ≤ ");
    assert!(budget.len() <= 6, "{budget}");
    assert!(number(&run(&here, &format!("{train} --dry-run")).stderr, ": ε ≤ ") == claim);
}

/// What noise does follows from public facts, so it is said before anything is charged.
#[test]
fn remarks_come_before_the_payment() {
    let here = folder("remarks");
    table(&here);
    for (flags, says) in [
        ("--epsilon 0.001", "will be mostly noise"),
        ("--epsilon 0.05", "a straight line"),
        ("--epsilon 5 --method newton", "the model is linear: the method newton fits no additive model"),
        ("--epsilon 0.01 --model kmeans --clusters 9", "so few records for each cluster"),
    ] {
        let train = TRAIN.replace("--epsilon 5", flags);
        let ran = run(&here, &format!("{train} --dry-run"));
        works(&ran);
        assert!(ran.stderr.lines().next().is_some_and(|line| line.contains(says)), "{flags}: {}", ran.stderr);
    }
}
