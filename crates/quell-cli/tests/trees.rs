//! `quell train --model tree` and `--model forest`, from outside.

use std::{fmt::Write as _, fs, path::Path};

use crate::command::{Ran, folder, quell, run};

const SCHEMA: &str = "user = 'who'\n[label]\ncolumn = 'kind'\nclasses = ['cat', 'dog', 'bird']\n\
    [[column]]\nname = 'weight'\nbounds = [0, 32]\n[[column]]\nname = 'coat'\ncategories = ['fur', 'feathers']\nunknown = true\n\
    [[column]]\nname = 'legs'\nbounds = [0, 8]\n";

/// A table of animals. Birds have feathers, and dogs are heavier than cats. The last rows are damaged.
fn animals(here: &Path, name: &str, count: usize) {
    let mut rows = String::from("who,weight,coat,legs,kind\n");
    for i in 0..count {
        let (weight, coat, kind) =
            [(4 + i % 3, "fur", "cat"), (18 + i % 9, "fur", "dog"), (1, "feathers", "bird")][i % 3];
        writeln!(rows, "u{},{weight},{coat},4,{kind}", i / 2).unwrap();
    }
    rows += "x,nan,,4,cat\ny,inf,scales,4,dog\nz,3,fur,4,fish\nw\n";
    fs::write(here.join(name), rows).unwrap();
}

fn project(name: &str) -> std::path::PathBuf {
    let here = folder(&format!("trees {name}"));
    animals(&here, "animals.csv", 3000);
    animals(&here, "test.csv", 90);
    fs::write(here.join("schema.toml"), SCHEMA).unwrap();
    here
}

fn train(here: &Path, model: &str, more: &str) -> Ran {
    let asked = "train animals.csv --schema schema.toml --records 3000 --delta 1e-6";
    run(here, &format!("{asked} --model {model} {more}"))
}

fn accuracy(ran: &Ran) -> f64 {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    said["accuracy"].as_f64().unwrap()
}

#[test]
fn both_models_learn_predict_and_resume() {
    for model in ["tree", "forest"] {
        let here = project(model);
        let ran = train(&here, model, "--test test.csv --epsilon 2 --output run --format json");
        assert!(accuracy(&ran) > 0.9, "{model}: {}", ran.stdout);
        let predicted = run(&here, "predict run test.csv");
        assert!(predicted.code == 0 && predicted.stdout.contains("bird"), "{}", predicted.stderr);
        let again = run(&here, "resume run");
        assert!(again.code == 0, "{}", again.stderr);
    }
}

/// The report states thresholds in the units of the schema, and categories by name.
#[test]
fn the_report_of_a_tree_is_a_list_of_rules() {
    let here = project("rules");
    let ran = train(&here, "tree", "--epsilon 4 --output run --format json");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let report = fs::read_to_string(here.join("run/report.md")).unwrap();
    let rules = report.split("The rules of the tree").nth(1).unwrap_or_else(|| panic!("{report}"));
    let document = run(&here, "report run --format json").stdout;
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert!(document["learned"]["rules"][0]["conditions"][0].is_string(), "{document}");
    // Birds have feathers, and nothing else has. They weigh 1, and everything else 4 or more.
    let of_birds = |line: &&str| {
        let tells = ["coat = feathers", "coat ≠ fur", "weight ≤ 2"];
        line.contains("| bird (") && tells.iter().any(|condition| line.contains(condition))
    };
    assert!(rules.lines().any(|line| of_birds(&line)), "{rules}");
    // Cats weigh at most 6, and dogs 18 or more.
    let weights = report.match_indices("weight ≤ ").map(|(place, found)| {
        let rest = &report[place + found.len()..];
        rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse::<f64>().unwrap()
    });
    assert!(
        weights.clone().any(|weight| (6.0..=20.0).contains(&weight)),
        "{:?}",
        weights.collect::<Vec<_>>()
    );
}

#[test]
fn a_numeric_target_is_predicted_in_its_units() {
    let numbers = SCHEMA
        .replace("column = 'kind'\nclasses = ['cat', 'dog', 'bird']", "column = 'weight'\nbounds = [0, 32]")
        .replace("[[column]]\nname = 'weight'\nbounds = [0, 32]\n", "ignore_me")
        .replace("ignore_me", "[[column]]\nname = 'kind'\ncategories = ['cat', 'dog', 'bird']\n");
    for model in ["tree", "forest"] {
        let here = project(&format!("numbers {model}"));
        fs::write(here.join("schema.toml"), &numbers).unwrap();
        let ran = train(&here, model, "--test test.csv --epsilon 4 --output run --format json");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let predicted = run(&here, "predict run test.csv").stdout;
        // The first three rows are a cat, a dog and a bird.
        let number = |line: &str| line.rsplit(',').next().and_then(|number| number.parse().ok());
        let numbers: Vec<f64> = predicted.lines().filter_map(number).take(3).collect();
        let [cat, dog, bird] = numbers[..] else { panic!("{predicted}") };
        assert!(dog > cat + 8.0 && dog > bird + 10.0 && (0.0..=32.0).contains(&bird), "{model}: {numbers:?}");
    }
}

#[test]
fn users_and_replaced_records_are_protected() {
    for (model, terms) in ["tree", "forest"].into_iter().flat_map(|model| {
        ["--users --records 1504", "--neighbors replace --records 3004"].map(|terms| (model, terms))
    }) {
        let here = project(&format!("{model} {terms}"));
        let asked =
            "train animals.csv --schema schema.toml --delta 1e-6 --test test.csv --format json --epsilon 4";
        assert!(accuracy(&run(&here, &format!("{asked} --model {model} {terms}"))) > 0.8, "{model} {terms}");
    }
}

/// With few records, splits are public random ones, and the command says so. One record and one class do.
#[test]
fn few_records_get_random_splits() {
    let here = project("few");
    let ran = run(
        &here,
        "train animals.csv --schema schema.toml --model tree --records 20 --epsilon 0.1 --delta 1e-6",
    );
    assert!(ran.code == 0 && ran.stderr.contains("at random"), "{}", ran.stderr);
    let one = SCHEMA.replace("'cat', 'dog', 'bird'", "'cat'");
    fs::write(here.join("schema.toml"), one).unwrap();
    for (model, rows) in ["tree", "forest"]
        .into_iter()
        .flat_map(|model| ["", "a,5,fur,4,cat\n", "a,,,,cat\nb,nan,x,,cat\n"].map(|rows| (model, rows)))
    {
        let name = format!("d{model}{}", rows.len());
        fs::write(here.join("animals.csv"), format!("who,weight,coat,legs,kind\n{rows}")).unwrap();
        let asked = "train animals.csv --schema schema.toml --records 1 --epsilon 1 --delta 1e-6";
        let ran = run(&here, &format!("{asked} --model {model} --dataset {name} --output {name}"));
        assert_eq!(ran.code, 0, "{model} {rows:?}: {}", ran.stderr);
        let predicted = run(&here, &format!("predict {name} test.csv"));
        assert!(predicted.code == 0 && predicted.stdout.contains("cat"), "{model}: {}", predicted.stderr);
    }
}

#[test]
fn settings_that_trees_do_not_have_are_refused() {
    let here = project("refused");
    for (more, says) in [
        ("--epsilon 1 --steps 5", "settings of other models"),
        ("--epsilon 1 --learning-rate 2", "settings of other models"),
        ("", "--epsilon"),
    ] {
        let ran = train(&here, "tree", more);
        assert!(ran.code == 2 && ran.stderr.contains(says), "{more}: {}", ran.stderr);
    }
    fs::write(here.join("deep.toml"), "[tree]\ndepth = 13\n").unwrap();
    let ran = train(&here, "tree", "--epsilon 1 --config deep.toml");
    assert!(ran.code == 2 && ran.stderr.contains("depth is 13, expected at most 12"), "{}", ran.stderr);
    fs::write(here.join("many.toml"), "[glm]\ntrees = 5000\n").unwrap();
    let ran = train(&here, "forest", "--epsilon 1 --config many.toml");
    assert!(ran.code == 2 && ran.stderr.contains("trees is 5000"), "{}", ran.stderr);
    assert!(!here.join(".quell").exists(), "nothing was charged");
}

#[test]
fn the_models_are_listed() {
    let listed = quell("models").data();
    assert!(listed.contains("\nforest ") && listed.contains("\ntree "), "{listed}");
}
