//! `quell synthesize`, from a private table to synthetic rows that are used in its place.

use std::{fs, path::Path};

use crate::command::{Ran, charges, folder, json, run};

const SCHEMA: &str = r#"
ignore = ["education"]
[label]
column = "income"
classes = ["<=50K", ">50K"]
[[column]]
name = "age"
bounds = [17, 90]
[[column]]
name = "hours_per_week"
bounds = [1, 99]
[[column]]
name = "sex"
categories = ["Female", "Male"]
unknown = true
"#;

const SYNTHESIZE: &str = "synthesize census.csv --schema census.toml --records 5000";

fn census(here: &Path) {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/census.csv");
    fs::copy(table, here.join("census.csv")).unwrap();
    fs::write(here.join("census.toml"), SCHEMA).unwrap();
}

fn works(ran: &Ran) {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn rows_are_made_once_paid_for_and_used_in_place_of_the_table() {
    let here = folder("synthesize");
    census(&here);
    let ran = run(&here, &format!("{SYNTHESIZE} --epsilon 2 --output one"));
    works(&ran);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines.contains(&"synthetic rows: one/synthetic.csv"), "{}", ran.stdout);
    assert!(
        lines.iter().any(|line| line.starts_with("error of ") && line.contains("% of the records in a cell"))
    );
    assert!(lines.iter().any(|line| line.starts_with("claim: ε ≤ 2")), "{}", ran.stdout);
    let rows = fs::read_to_string(here.join("one/synthetic.csv")).unwrap();
    assert_eq!((rows.lines().next(), rows.lines().count()), (Some("age,hours_per_week,sex,income"), 5_001));

    // The rows are training data with the same schema.
    fs::copy(here.join("one/synthetic.csv"), here.join("rows.csv")).unwrap();
    let trained =
        "train rows.csv --schema census.toml --records 5000 --epsilon 5 --output model --test census.csv";
    let trained = json(&here, &format!("{trained} --format json"));
    assert!(trained["accuracy"].as_f64().unwrap() > 0.76, "{trained}");

    // More rows cost nothing.
    let more = run(&here, "synthesize --from one --rows 200 --seed 3");
    works(&more);
    assert_eq!((more.stdout.lines().count(), charges(&here, "census")), (201, 1));
    assert!(more.stderr.contains("cost no ε"), "{}", more.stderr);
    let again = run(&here, "synthesize --from one/model.safetensors");
    assert_eq!(again.stdout, rows);

    let measured = json(&here, "evaluate one rows.csv --public --format json");
    assert!(measured["evaluation"]["pairs"]["distance"].as_f64().unwrap() < 0.01, "{measured}");
    let report = run(&here, "report one");
    works(&report);
    for words in [
        "Synthetic data on census",
        "Counts of the columns",
        "Errors of pairs of columns",
        "Error in a cell of a pair",
    ] {
        assert!(report.stdout.contains(words), "{words}: {}", report.stdout);
    }
    let listed = run(&here, "models");
    assert!(listed.stdout.contains("\nsynthesizer "), "{}", listed.stdout);
}

#[test]
fn settings_and_results_are_shown_as_json() {
    let here = folder("synthesize json");
    census(&here);
    let dry = json(&here, &format!("{SYNTHESIZE} --epsilon 1 --dry-run --format json"));
    assert_eq!(dry["configuration"]["synthesis"]["rows"], 5000, "{dry}");
    let ran = json(&here, &format!("{SYNTHESIZE} --epsilon 1 --rows 10 --output one --format json"));
    assert_eq!((&ran["rows"], &ran["synthetic"]), (&10.into(), &"synthetic.csv".into()), "{ran}");
    let errors = &ran["error_of_pairs"];
    let pairs = ["measured", "not_measured"].map(|which| errors[which]["pairs"].as_u64().unwrap_or(0));
    assert_eq!(pairs.iter().sum::<u64>(), 6, "{ran}");
    assert_eq!(ran["measured_pairs"].as_array().map(|pairs| pairs.len() as u64), Some(pairs[0]));
    assert_eq!(fs::read_to_string(here.join("one/synthetic.csv")).unwrap().lines().count(), 11);
}

#[test]
fn synthetic_data_that_cannot_be_made_is_refused_in_words() {
    let here = folder("synthesize refused");
    census(&here);
    works(&run(
        &here,
        "train census.csv --schema census.toml --records 5000 --epsilon 1 --output model --dataset other",
    ));
    for (flags, words) in [
        ("synthesize", "no data is given"),
        ("synthesize census.csv", "no schema is given"),
        ("synthesize census.csv --schema census.toml --epsilon 1", "number of records"),
        ("synthesize census.csv --schema census.toml --records 5000", "no epsilon is given"),
        ("synthesize census.csv --schema census.toml --records 5000 --epsilon 1 --rows 99999999999", "rows"),
        ("synthesize census.csv --schema census.toml --records 5000 --epsilon 1 --users", "users"),
        ("synthesize --from model --rows 5", "no model of synthetic data"),
        ("synthesize --from model --epsilon 5", "cannot be used with"),
        ("synthesize --from nowhere", "nowhere"),
    ] {
        let ran = run(&here, flags);
        assert!(ran.code == 2 && ran.stderr.contains(words), "{flags}: {}", ran.stderr);
    }
    assert_eq!(charges(&here, "census"), 0);
    works(&run(&here, &format!("{SYNTHESIZE} --epsilon 1 --output rows")));
    let predicted = run(&here, "predict rows census.csv");
    assert!(
        predicted.code == 2 && predicted.stderr.contains("quell synthesize --from"),
        "{}",
        predicted.stderr
    );
}

/// What a file says about the guarantee of any learner must not weaken what the flags ask for.
#[test]
fn flags_override_the_guarantee_of_a_file() {
    let here = folder("synthesize file");
    census(&here);
    for (file, text) in [("epsilon.toml", "epsilon = 8.0"), ("noise.toml", "noise_multiplier = 0.5")] {
        fs::write(here.join(file), format!("[training.privacy]\n{text}\ndelta = 1e-5\n")).unwrap();
        let ran = run(&here, &format!("{SYNTHESIZE} --config {file} --epsilon 1 --dry-run"));
        assert!(ran.stderr.contains("ε ≤ 1") || ran.code != 0, "{file}: {} {}", ran.stdout, ran.stderr);
        assert!(!ran.stderr.contains("ε ≤ 8"), "{file}: {}", ran.stderr);
    }
}

/// A private table that happens to be called synthetic.csv has one ledger, wherever it is copied to.
#[test]
fn a_table_called_synthetic_gets_no_new_budget_from_another_folder() {
    let here = folder("called synthetic");
    census(&here);
    for copy in ["people", "others"] {
        fs::create_dir(here.join(copy)).unwrap();
        fs::copy(here.join("census.csv"), here.join(copy).join("synthetic.csv")).unwrap();
    }
    let train = |table: &str| {
        let flags = "--schema census.toml --records 5000 --model naive-bayes --epsilon 1";
        run(&here, &format!("train {table} {flags}"))
    };
    works(&train("people/synthetic.csv"));
    let copied = train("others/synthetic.csv");
    assert!(copied.code == 1 && copied.stderr.contains("refused"), "{}", copied.stderr);
    #[cfg(unix)]
    for (link, file) in [("linked", "people"), ("link.csv", "people/synthetic.csv")] {
        std::os::unix::fs::symlink(here.join(file), here.join(link)).unwrap();
        let linked = if link == "linked" { "linked/synthetic.csv" } else { link };
        assert_ne!(train(linked).code, 0, "{linked}");
    }
    assert_eq!(charges(&here, "synthetic"), 1);
}
