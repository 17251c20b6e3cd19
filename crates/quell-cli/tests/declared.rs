//! `quell query` reads conditions, keys and groups as the schema declares the columns.

use std::{fmt::Write as _, fs, path::PathBuf};

use crate::command::{Ran, folder, quell_with};
use serde_json::Value;

const SCHEMA: &str = "\
[label]
column = 'sick'
classes = ['True', 'False']
[[column]]
name = 'admitted'
date = { from = '2018-01-01', to = '2025-12-31', order = 'day-month-year' }
[[column]]
name = 'smoker'
boolean = true
[[column]]
name = 'ward'
categories = ['Cardiology', 'Surgery']
aliases = { Cardio = 'Cardiology' }
[[column]]
name = 'pressure'
bounds = [60, 250]
";

/// A table of 2,000 patients of 200 persons, its schema and its ledger.
struct Clinic {
    folder: PathBuf,
}

impl Clinic {
    fn new(name: &str, unit: &str) -> Self {
        let folder = folder(&format!("declared {name}"));
        let mut rows = String::from("id;person;admitted;smoker;ward;pressure;sick\n");
        for i in 0..2000 {
            // A fifth of the days is before 2020, and their texts are after '2020-01-01'.
            let day = format!("{:02}.07.{}", 21 + i % 7, [2019, 2020, 2021, 2023, 2024][i % 5]);
            let (smoker, ward) = (["yes", "No"][usize::from(i % 4 > 0)], ["Cardio", "Cardiology"][i % 2]);
            writeln!(rows, "{i};p{};{day};{smoker};{ward};{}.5;True", i % 200, 100 + i % 50).unwrap();
        }
        fs::write(folder.join("clinic.csv"), rows).unwrap();
        fs::write(folder.join("clinic.toml"), SCHEMA).unwrap();
        let clinic = Self { folder };
        let create = ["ledger", "create", "clinic", "--epsilon", "30", "--delta", "1e-6", "--unit", unit];
        assert_eq!(clinic.quell(&create).code, 0);
        clinic
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn quell(&self, arguments: &[&str]) -> Ran {
        quell_with(&[arguments, &["--ledger", &self.path("book")]].concat(), "")
    }

    /// Asks with the schema, at ε = 2.
    fn ask(&self, arguments: &[&str]) -> Ran {
        let (table, schema) = (self.path("clinic.csv"), self.path("clinic.toml"));
        let fixed = ["--schema", &schema, "--epsilon", "2"];
        self.quell(&[&["query", &table], arguments, &fixed].concat())
    }

    fn number(&self, arguments: &[&str]) -> f64 {
        let json = self.ask(&[arguments, &["--format", "json"]].concat()).json();
        json["answer"]["number"]["value"].as_f64().unwrap_or_else(|| panic!("{json}"))
    }

    /// The key and the number of each bin.
    fn bins(&self, arguments: &[&str]) -> Vec<(String, f64)> {
        let json = self.ask(&[arguments, &["--format", "json"]].concat()).json();
        let bins = json["answer"]["bins"].as_array().unwrap_or_else(|| panic!("{json}"));
        let bin = |bin: &Value| (bin[0].as_str().unwrap().to_owned(), bin[1]["value"].as_f64().unwrap());
        bins.iter().map(bin).collect()
    }

    fn spent(&self) -> f64 {
        self.quell(&["ledger", "list", "--format", "json"]).json()[0]["spent"].as_f64().unwrap()
    }

    fn refuse(&self, arguments: &[&str], said: &str) {
        let ran = self.ask(arguments);
        assert!(ran.code == 2 && ran.stderr.contains(said), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(self.spent(), 0.0, "{arguments:?}");
    }
}

#[test]
fn conditions_on_dates_truths_and_categories_mean_what_the_schema_declares() {
    let clinic = Clinic::new("meaning", "example");
    for (condition, truth) in [
        ("admitted >= '2020-01-01'", 1600.0),
        ("admitted < '01.01.2020'", 400.0),
        ("smoker = 'true'", 500.0),
        ("smoker = 'no' and smoker != 'Yes'", 1500.0),
        ("smoker = 1", 500.0),
        ("ward = 'Cardiology'", 2000.0),
        ("ward in ('Cardio', 'Surgery')", 2000.0),
    ] {
        let found = clinic.number(&["count", "--where", condition]);
        // Laplace noise of scale 1/2: beyond 15 with a probability below 1e-12.
        assert!((found - truth).abs() < 15.0, "{condition}: {found}");
    }
}

#[test]
fn truths_have_groups_and_a_mean_without_a_list_or_bounds() {
    let clinic = Clinic::new("truths", "example");
    let share = clinic.number(&["mean", "--column", "smoker"]);
    assert!((share - 0.25).abs() < 0.05, "{share}");
    for asked in [
        &["count", "--group-by", "smoker"][..],
        &["histogram", "--column", "smoker"],
        &["count", "--group-by", "smoker", "--groups", "no,yes"],
    ] {
        let bins = clinic.bins(asked);
        assert!(bins[0].0 == "false" && (bins[0].1 - 1500.0).abs() < 15.0, "{bins:?}");
        assert!(bins[1].0 == "true" && (bins[1].1 - 500.0).abs() < 15.0, "{bins:?}");
    }
    let days =
        clinic.bins(&["count", "--part", "admitted < '2020-01-01'", "--part", "admitted >= '1.1.2020'"]);
    assert!((days[0].1 - 400.0).abs() < 15.0 && (days[1].1 - 1600.0).abs() < 15.0, "{days:?}");
    let parts = clinic.bins(&["count", "--part", "smoker = 'yes'", "--part", "smoker = 'off'"]);
    assert!((parts[0].1 - 500.0).abs() < 15.0 && (parts[1].1 - 1500.0).abs() < 15.0, "{parts:?}");
}

#[test]
fn bins_of_a_number_have_the_bounds_of_the_schema() {
    let clinic = Clinic::new("bins", "example");
    let bins = clinic.bins(&["histogram", "--column", "pressure", "--bins", "2"]);
    assert_eq!(bins[0].0, "[60, 155)");
    assert!((bins[0].1 - 2000.0).abs() < 15.0, "{bins:?}");
}

#[test]
fn what_the_schema_excludes_is_refused_before_it_is_paid_for() {
    let clinic = Clinic::new("refused", "example");
    for (arguments, said) in [
        (&["count", "--where", "ward = 'Cardiologie'"][..], "hint: did you mean \"Cardiology\"?"),
        (&["count", "--where", "not ward in ('Cardiology', 'ENT')"], "has no value \"ENT\""),
        (&["count", "--where", "sick = 'true'"], "hint: did you mean \"True\"?"),
        (&["count", "--where", "smoker = 'perhaps'"], "expected \"true\" or \"false\""),
        (&["count", "--where", "smoker = 2"], "has no value \"2\""),
        (&["count", "--where", "admitted = 'yesterday'"], "expected a day such as"),
        (&["count", "--where", "admitted < '2020-01-01 10:00'"], "expected a day such as"),
        (&["count", "--where", "admitted < 2020"], "expected numbers"),
        (&["count", "--where", "pressure > '99'"], "compared with a text by < or >"),
        (&["count", "--where", "ward < 'M'"], "compared with a text by < or >"),
        (&["count", "--part", "ward = 'Cardiology'", "--part", "ward = 'Surgry'"], "mean \"Surgery\"?"),
        (&["mean", "--column", "pressure", "--group-by", "ward", "--groups", "Surgry"], "mean \"Surgery\"?"),
        (&["histogram", "--column", "ward", "--keys", "Cardiology,ENT"], "has no value \"ENT\""),
        (&["histogram", "--column", "pressure"], "hint: add --bins 10 for bins from 60 to 250"),
        (&["count", "--group-by", "pressure"], "hint: add --group-bins 60 250 10"),
        (&["median", "--column", "admitted"], "is declared as dates, expected numbers"),
    ] {
        clinic.refuse(arguments, said);
    }
    // Without a schema, the order of texts is refused as well.
    let table = clinic.path("clinic.csv");
    let ordered = ["query", &table, "count", "--where", "admitted >= '2020-01-01'", "--epsilon", "1"];
    let ran = clinic.quell(&ordered);
    assert!(
        ran.code == 2 && ran.stderr.contains("a column that a schema declares as dates"),
        "{}",
        ran.stderr
    );
    assert_eq!(clinic.spent(), 0.0);
}

#[test]
fn bounds_are_given_once_for_each_column() {
    let clinic = Clinic::new("bounds", "example");
    let two = ["mean", "--column", "pressure", "--column", "smoker", "--bounds", "0", "300"];
    clinic.refuse(&two, "--bounds is given once for 2 columns, expected once for each column");
}

#[test]
fn an_answer_without_keys_says_how_many_records_a_key_needs() {
    let clinic = Clinic::new("no keys", "example");
    // Each of three keys has one record, which is shown with a probability below δ = 1e-7.
    let asked = ["histogram", "--column", "id", "--where", "id < 3"];
    let ran = clinic.ask(&asked);
    let said = "no key is shown: none has a noisy count of ";
    assert!(ran.code == 0 && ran.stdout.starts_with(said), "{}{}", ran.stdout, ran.stderr);
    assert!(clinic.bins(&asked).is_empty());
}

#[test]
fn an_answer_says_how_many_records_of_each_user_it_is_about() {
    let clinic = Clinic::new("users", "user");
    let limited = |asked: &[&str]| {
        let ran = clinic.ask(&[asked, &["--max-per-user", "3", "--user", "person"]].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran.stdout
    };
    assert!(limited(&["count"]).starts_with("count of at most 3 records of each user: "));
    let several = limited(&["count,mean", "--column", "pressure"]);
    assert!(several.contains("mean of pressure of at most 3 records of each user: "), "{several}");
    let groups = limited(&["count", "--group-by", "ward"]);
    assert!(groups.starts_with("answer of at most 3 records of each user:\n  Cardiology"), "{groups}");
    let json = limited(&["count", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["answer"]["max_per_user"], 3);
    let shown = clinic.quell(&["ledger", "show", "clinic"]).stdout;
    assert!(shown.contains("count of at most 3 records of each user"), "{shown}");
}

#[test]
fn several_quantiles_of_groups_are_one_charge() {
    let clinic = Clinic::new("quantiles", "example");
    let asked = ["quantile", "--column", "pressure", "--quantile", "0.25,0.75", "--group-by", "smoker"];
    let ran = clinic.ask(&asked);
    for name in ["quantile 0.25 of pressure by smoker:", "quantile 0.75 of pressure by smoker:"] {
        assert!(ran.stdout.contains(name), "{}{}", ran.stdout, ran.stderr);
    }
    assert!(clinic.spent() > 1.0 && clinic.spent() < 2.01, "{}", clinic.spent());
}

#[test]
fn statistics_have_other_names_and_errors_name_the_question_of_a_plan() {
    let clinic = Clinic::new("names", "example");
    for name in ["std", "stddev"] {
        clinic
            .refuse(&[name, "--column", "pressure"], "hint: ask for the variance, and take its square root");
    }
    let plan = "[[question]]\nstatistic = 'average'\ncolumn = 'pressure'\n[[question]]\nstatistic = 'sum'\ncolumn = 'person'\n";
    fs::write(clinic.folder.join("plan.toml"), plan).unwrap();
    let path = clinic.path("plan.toml");
    clinic.refuse(&["--plan", &path], "error: question 2 (sum of person): no bounds are given");
    for name in ["average", "avg"] {
        let mean = clinic.number(&[name, "--column", "pressure"]);
        assert!((mean - 125.0).abs() < 2.0, "{mean}");
    }
}

#[test]
fn a_ledger_shows_what_each_charge_added_and_suggests_a_similar_dataset() {
    let clinic = Clinic::new("prices", "example");
    clinic.number(&["count"]);
    clinic.bins(&["count", "--group-by", "smoker"]);
    let lines = clinic.quell(&["ledger", "show", "clinic", "--format", "json"]).json();
    let added: Vec<f64> = lines.as_array().unwrap().iter().map(|it| it["added"].as_f64().unwrap()).collect();
    assert!(added.len() == 3 && added[0] == 0.0, "{added:?}");
    assert!(added[1..].iter().all(|added| (1.999..=2.0).contains(added)), "{added:?}");
    let shown = clinic.quell(&["ledger", "show", "clinic"]).stdout;
    let charges: Vec<&str> = shown.lines().skip(2).collect();
    assert!(charges.iter().all(|line| line.contains("    2.000    ")), "{shown}");
    assert_eq!(clinic.quell(&["ledger", "verify", "clinic"]).code, 0);
    for verb in ["statement", "verify"] {
        let unknown = clinic.quell(&["ledger", verb, "clinc"]);
        assert!(
            unknown.code == 2 && unknown.stderr.contains("hint: did you mean \"clinic\"?"),
            "{}",
            unknown.stderr
        );
    }
    let far = clinic.quell(&["ledger", "statement", "patients"]);
    assert!(
        far.stderr.contains("hint: create it with `quell ledger create patients --epsilon E"),
        "{}",
        far.stderr
    );
}
