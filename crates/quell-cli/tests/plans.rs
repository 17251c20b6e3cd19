//! `quell query` with several statistics, quantiles, parts, schemas and limits for users.

use std::{fmt::Write as _, fs, path::PathBuf};

use crate::command::{Ran, folder, json, quell_with, run};
use quell::data::Schema;
use serde_json::Value;

const SCHEMA: &str = "user = 'who'\n[label]\ncolumn = 'smokes'\nclasses = ['yes', 'no']\n[[column]]\nname = 'city'\ncategories = ['Bern', 'Basel']\n[[column]]\nname = 'age'\nbounds = [0, 100]\n[[column]]\nname = 'stars'\ncategories = ['1', '2', '3']\n";

/// A table of 2,000 records of 200 users, and its ledger.
struct Project {
    folder: PathBuf,
}

impl Project {
    fn new(name: &str, terms: &[&str]) -> Self {
        let folder = folder(&format!("plans {name}"));
        let mut rows = String::from("who,city,age,smokes,stars\n");
        for i in 0..2000 {
            let (city, smokes) = (["Bern", "Basel"][i % 2], ["yes", "no"][i / 2 % 2]);
            writeln!(rows, "u{},{city},{},{smokes},{}", i % 200, 20 + i % 50, 1 + i % 3).unwrap();
        }
        fs::write(folder.join("people.csv"), rows).unwrap();
        fs::write(folder.join("schema.toml"), SCHEMA).unwrap();
        let project = Self { folder };
        let create = ["ledger", "create", "people", "--epsilon", "20", "--delta", "1e-6"];
        assert_eq!(project.quell(&[&create, terms].concat()).code, 0);
        project
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn quell(&self, arguments: &[&str]) -> Ran {
        quell_with(&[arguments, &["--ledger", &self.path("book")]].concat(), "")
    }

    fn query(&self, arguments: &[&str]) -> Ran {
        self.quell(&[&["query", self.path("people.csv").as_str()], arguments].concat())
    }

    fn spent(&self) -> f64 {
        self.quell(&["ledger", "list", "--format", "json"]).json()[0]["spent"].as_f64().unwrap()
    }
}

const AGE: [&str; 5] = ["--column", "age", "--bounds", "0", "100"];

fn answers(json: &Value) -> Vec<(String, Value)> {
    let all = json["answer"]["several"].as_array().unwrap_or_else(|| panic!("{json}"));
    all.iter().map(|one| (one["question"].as_str().unwrap().to_owned(), one["answer"].clone())).collect()
}

#[test]
fn several_statistics_are_one_charge_with_an_answer_for_each() {
    let project = Project::new("several", &[]);
    let ran = project.query(&[&["count,mean,median", "--epsilon", "6"], &AGE[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", ran.stdout);
    for (line, start) in lines.iter().zip(["count: ", "mean of age: ", "median of age: "]) {
        assert!(line.starts_with(start) && line.contains(" ± "), "{line}");
    }
    assert!(ran.stderr.contains("charged to \"people\" in line 1: "), "{}", ran.stderr);
    assert!(project.spent() <= 6.001 && project.spent() > 3.0, "{}", project.spent());
    let columns = ["--column", "age", "--bounds", "0", "100", "--column", "stars", "--bounds", "1", "3"];
    let json =
        project.query(&[&["mean,count", "--epsilon", "6", "--format", "json"], &columns[..]].concat()).json();
    let answers = answers(&json);
    let names: Vec<&str> = answers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["mean of age", "mean of stars", "count"]);
    let mean = |place: usize| answers[place].1["number"]["value"].as_f64().unwrap();
    assert!((mean(0) - 44.5).abs() < 5.0 && (mean(1) - 2.0).abs() < 0.5, "{json}");
}

#[test]
fn quantiles_of_one_plan_are_in_order_and_a_median_is_a_word() {
    let project = Project::new("quantiles", &[]);
    let ran = project.query(
        &[&["quantile", "--quantile", "0.75,0.25,0.5", "--epsilon", "3", "--format", "json"], &AGE[..]]
            .concat(),
    );
    let json = ran.json();
    let quantiles = json["answer"]["quantiles"].as_array().unwrap();
    let found: Vec<(f64, f64)> = quantiles
        .iter()
        .map(|pair| (pair[0].as_f64().unwrap(), pair[1]["value"].as_f64().unwrap()))
        .collect();
    assert_eq!(found.iter().map(|(q, _)| *q).collect::<Vec<_>>(), [0.75, 0.25, 0.5]);
    assert!(found[1].1 <= found[2].1 && found[2].1 <= found[0].1, "{found:?}");
    let ran = project.query(&[&["median", "--epsilon", "1"], &AGE[..]].concat());
    assert!(ran.code == 0 && ran.stdout.starts_with("median: "), "{} {}", ran.stdout, ran.stderr);
    let groups = ["--group-by", "city", "--groups", "Bern,Basel"];
    let ran = project.query(&[&["median", "--epsilon", "1"], &AGE[..], &groups].concat());
    assert!(ran.code == 0 && ran.stdout.lines().count() == 2, "{} {}", ran.stdout, ran.stderr);
    let refused = project.query(&[&["quantile", "--quantile", "1.5", "--epsilon", "1"], &AGE[..]].concat());
    assert_eq!(refused.code, 2);
}

#[test]
fn parts_are_answered_if_they_exclude_each_other_and_refused_otherwise() {
    let project = Project::new("parts", &[]);
    let ran = project.query(&["count", "--part", "age < 30", "--part", "age >= 30", "--epsilon", "2"]);
    assert_eq!((ran.code, ran.stdout.lines().count()), (0, 2), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("age < 30   "), "{}", ran.stdout);
    assert!(project.spent() <= 2.001, "{}", project.spent());
    let refused = project.query(&["count", "--part", "age < 30", "--part", "age >= 29", "--epsilon", "2"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("a record may satisfy both"), "{}", refused.stderr);
    assert!(project.spent() <= 2.001);
}

#[test]
fn a_file_of_questions_is_a_plan_and_mistakes_in_it_cost_nothing() {
    let project = Project::new("file", &[]);
    let plan = project.path("plan.toml");
    fs::write(
        &plan,
        "[[question]]\nstatistic = 'count'\nwhere = \"city = 'Bern'\"\n\n[[question]]\nstatistic = 'mean'\ncolumn = 'age'\nbounds = [0, 100]\ngroup_by = 'city'\ngroups = ['Bern', 'Basel']\n\n[[question]]\nstatistic = 'histogram'\ncolumn = 'smokes'\nkeys = ['yes', 'no']\n",
    )
    .unwrap();
    let output = project.path("answers.txt");
    let ask = ["--plan", plan.as_str(), "--epsilon", "6", "--output", output.as_str()];
    let ran = project.query(&ask);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = fs::read_to_string(&output).unwrap();
    assert!(text.starts_with("count where city = 'Bern': "), "{text}");
    assert!(text.contains("\nmean of age by city:\n  Bern   ") && text.contains("\n  yes  "), "{text}");
    let spent = project.spent();
    let again = project.query(&ask);
    assert!(again.code == 0 && again.stderr.contains("repeated without a new charge"), "{}", again.stderr);
    assert_eq!(fs::read_to_string(&output).unwrap(), text);
    for (mistake, said) in [
        ("[[question]]\nstatistic = 'mena'\n", "plan.toml is invalid: line 2"),
        ("[[question]]\nstatistic = 'mean'\ncolum = 'age'\n", "did you mean `column`?"),
        ("question = []\n", "the plan has no question"),
        ("[[question]]\nstatistic = 'mean'\ncolumn = 'age'\n", "no bounds are given"),
        (
            "[[question]]\nstatistic = 'mean'\ncolumn = 'agee'\nbounds = [0, 1]\n",
            "there is no column \"agee\"",
        ),
    ] {
        fs::write(&plan, mistake).unwrap();
        let ran = project.query(&["--plan", &plan, "--epsilon", "1"]);
        assert!(ran.code == 2 && ran.stderr.contains(said), "{mistake}: {}", ran.stderr);
        assert!(ran.stderr.contains("\nhint: "), "{mistake}: {}", ran.stderr);
    }
    assert_eq!(project.spent().to_bits(), spent.to_bits());
}

#[test]
fn a_text_column_is_refused_with_a_schema_and_noted_without_one() {
    let project = Project::new("schema", &[]);
    let schema = project.path("schema.toml");
    let with_schema = |arguments: &[&str]| project.query(&[arguments, &["--schema", &schema]].concat());
    for statistic in ["mean", "sum", "median", "variance", "range"] {
        let bounds = ["--column", "city", "--bounds", "0", "9", "--epsilon", "1"];
        let refused = with_schema(&[&[statistic], &bounds[..]].concat());
        assert_eq!(refused.code, 2, "{statistic}");
        assert!(
            refused.stderr.starts_with("error: column \"city\" is declared as categories, expected numbers"),
            "{}",
            refused.stderr
        );
    }
    assert_eq!(project.spent(), 0.0);
    // Bounds, keys and groups come from the schema. Stars are categories that are numbers.
    let ran = with_schema(&["mean", "--column", "age", "--epsilon", "1"]);
    assert!(ran.code == 0 && !ran.stderr.contains("note: "), "{}", ran.stderr);
    let ran = with_schema(&["histogram", "--column", "city", "--epsilon", "1"]);
    assert!(ran.code == 0 && ran.stdout.starts_with("Bern  ") && ran.stdout.lines().count() == 2);
    let ran = with_schema(&["mean", "--column", "age", "--group-by", "smokes", "--epsilon", "1"]);
    assert!(ran.code == 0 && ran.stdout.starts_with("yes  "), "{} {}", ran.stdout, ran.stderr);
    let stars = ["mean", "--column", "stars", "--bounds", "1", "3", "--epsilon", "1"];
    assert_eq!(with_schema(&stars).code, 0);
    let ran = project.query(&["mean", "--column", "city", "--bounds", "0", "9", "--epsilon", "1"]);
    assert!(
        ran.stderr.starts_with("note: cells of \"city\" that are empty or no numbers are left out\n"),
        "{}",
        ran.stderr
    );
}

#[test]
fn numbers_of_columns_with_texts_dates_and_categories_are_refused_before_payment() {
    let project = Project::new("kinds", &[]);
    let kinds = [
        ("who", "text = { hashed = 4 }", "text"),
        ("age", "date = { from = '2024-01-01', to = '2024-12-31' }", "dates"),
        ("smokes", "boolean = true", "numbers"),
        ("city", "categories = ['Bern', 'Basel']", "categories"),
    ];
    let declared = kinds.map(|(name, kind, _)| format!("[[column]]\nname = '{name}'\n{kind}\n"));
    fs::write(project.folder.join("kinds.toml"), declared.concat()).unwrap();
    let path = project.path("kinds.toml");
    let questions: [&[&str]; 4] = [
        &["mean", "--bounds", "0", "10"],
        &["median", "--bounds", "0", "10"],
        &["histogram", "--bounds", "0", "10", "--bins", "2"],
        &["histogram", "--edges", "0,5,10"],
    ];
    // Truths are the numbers 0 and 1: their mean is a share.
    for (name, _, declared) in kinds.into_iter().filter(|(name, ..)| *name != "smokes") {
        for question in questions {
            let rest = ["--column", name, "--schema", &path, "--epsilon", "1"];
            let refused = project.query(&[question, &rest[..]].concat());
            let said =
                format!("error: column \"{name}\" is declared as {declared}, expected numbers\nhint: ");
            assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{name}: {question:?}");
            assert!(refused.stderr.starts_with(&said), "{}", refused.stderr);
        }
        let groups = ["count", "--group-by", name, "--group-bins", "0", "10", "2", "--schema", &path];
        let refused = project.query(&[&groups[..], &["--epsilon", "1"]].concat());
        assert!(refused.code == 2 && refused.stderr.contains("expected numbers"), "{}", refused.stderr);
    }
    assert_eq!(project.spent(), 0.0);
    // Keys are no numbers.
    let keys = ["histogram", "--column", "smokes", "--keys", "yes,no", "--schema", &path, "--epsilon", "1"];
    assert_eq!(project.query(&keys).code, 0);
}

#[test]
fn the_layout_that_a_schema_declares_is_a_part_of_the_question() {
    let project = Project::new("layout", &[]);
    let (schema, output) = (project.path("schema.toml"), project.path("mean.txt"));
    let asked = |layout: &str| {
        fs::write(&schema, format!("{SCHEMA}[file]\n{layout}\n")).unwrap();
        let question = ["mean", "--column", "age", "--epsilon", "1", "--schema", &schema];
        project.query(&[&question[..], &["--output", &output]].concat())
    };
    assert_eq!(asked("missing = ['20']").code, 0);
    let again = asked("missing = ['20']");
    assert!(again.code == 0 && again.stderr.contains("without a new charge"), "{}", again.stderr);
    for other in ["missing = ['21']", "", "quotes = false\nmissing = ['20']"] {
        let refused = asked(other);
        assert!(refused.code == 2 && refused.stderr.contains("already exists"), "{}", refused.stderr);
    }
}

#[test]
fn records_of_users_are_limited_in_ledgers_of_users() {
    let project = Project::new("users", &["--unit", "user"]);
    let refused = project.query(&["count", "--epsilon", "1"]);
    assert!(refused.code == 2 && refused.stderr.contains("--max-per-user"), "{}", refused.stderr);
    let refused = project.query(&["count", "--max-per-user", "3", "--epsilon", "1"]);
    assert!(refused.code == 2 && refused.stderr.contains("add --user COLUMN"), "{}", refused.stderr);
    let json = project
        .query(&["count", "--max-per-user", "3", "--user", "who", "--epsilon", "3", "--format", "json"])
        .json();
    let count = json["answer"]["number"]["value"].as_f64().unwrap();
    assert!((count - 600.0).abs() < 40.0, "{json}");
    assert!(project.spent() <= 3.001, "{}", project.spent());
    let ran = project.query(&[
        "mean,count",
        "--column",
        "age",
        "--schema",
        &project.path("schema.toml"),
        "--max-per-user",
        "2",
        "--epsilon",
        "2",
        "--dry-run",
    ]);
    assert!(
        ran.code == 0 && ran.stdout.contains(", of at most 2 records of each user: would raise"),
        "{}",
        ran.stdout
    );
    let records = Project::new("records", &[]);
    let refused = records.query(&["count", "--max-per-user", "3", "--user", "who", "--epsilon", "1"]);
    assert_eq!(refused.code, 2, "{}", refused.stdout);
    assert_eq!(records.spent(), 0.0);
}

#[test]
fn a_schema_of_users_uses_the_first_records_of_each_and_costs_what_is_said() {
    // 4,000 users with six records each; from the second record on, their ages are far from the first.
    let here = folder("plans schema users");
    let mut rows = String::from("who,age,smokes\n");
    for i in 0..24_000 {
        let age = if i < 4000 { 20 + i % 50 } else { 800_000 };
        writeln!(rows, "u{},{age},{}", i % 4000, ["yes", "no"][i % 2]).unwrap();
    }
    fs::write(here.join("visits.csv"), rows).unwrap();
    run(&here, "ledger create visits --epsilon 9 --delta 1e-6 --unit user");
    let asked = "schema visits.csv --numbers age --user who --label smokes --epsilon 2";
    let refused = run(&here, asked);
    assert!(refused.code == 2 && refused.stderr.contains("add --max-per-user N"), "{}", refused.stderr);
    let no_user = "schema visits.csv --numbers age --label smokes --epsilon 2 --max-per-user 1";
    assert_eq!(run(&here, no_user).code, 2);
    let spent = || json(&here, "ledger list --format json")[0]["spent"].as_f64().unwrap();
    assert_eq!(spent(), 0.0);
    let bounds = |text: &str| Schema::parse(text).unwrap().columns[0].bounds().unwrap();
    let one = run(&here, &format!("{asked} --max-per-user 1"));
    assert!(one.code == 0 && bounds(&one.stdout)[1] < 1000.0, "{}{}", one.stdout, one.stderr);
    let first = spent();
    assert!(first > 1.5 && first <= 2.0, "{first}");
    // Two of three records of a user are far away, and the charge of three records is still ε = 2.
    let three = run(&here, &format!("{asked} --max-per-user 3"));
    assert!(three.code == 0 && bounds(&three.stdout)[1] >= 800_000.0, "{}{}", three.stdout, three.stderr);
    // The ledger rounds up.
    assert!(spent() > first + 1.2 && spent() <= 4.0 * (1.0 + 1e-8), "{}", spent());
    let shown = run(&here, "ledger show visits").stdout;
    assert!(shown.contains(", of at most 3 records of each user"), "{shown}");
    run(&here, "ledger create others --epsilon 9 --delta 1e-6");
    let records = run(&here, &format!("{asked} --max-per-user 3 --dataset others"));
    assert!(records.code == 2 && records.stderr.contains("protects records"), "{}", records.stderr);
}

#[test]
fn an_evaluation_of_users_counts_the_first_records_of_each() {
    let here = folder("plans evaluate users");
    // Four records of each of 500 users: the model is right about the first, and wrong about the others.
    let table = |wrong: usize| {
        let mut rows = String::from("who,age,y\n");
        for i in 0..2000 {
            let is_old = (i + usize::from(i >= 500) * wrong) % 2;
            writeln!(rows, "u{},{},{}", i % 500, 20 + 60 * (i % 2), ["no", "yes"][is_old]).unwrap();
        }
        rows
    };
    fs::write(here.join("visits.csv"), table(0)).unwrap();
    fs::write(here.join("later.csv"), table(1)).unwrap();
    let schema = "user = 'who'\n[label]\ncolumn = 'y'\nclasses = ['no', 'yes']\n[[column]]\nname = 'age'\nbounds = [0, 100]\n";
    fs::write(here.join("schema.toml"), schema).unwrap();
    let trained = run(
        &here,
        "train visits.csv --schema schema.toml --users --model logistic --records 500 --epsilon 9 --delta 1e-6 --output first",
    );
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    run(&here, "ledger create later --epsilon 9 --delta 1e-6 --unit user");
    let asked = "evaluate first later.csv --epsilon 2 --format json";
    let refused = run(&here, asked);
    assert!(refused.code == 2 && refused.stderr.contains("add --max-per-user N"), "{}", refused.stderr);
    let share = |most: u32| {
        let answer = json(&here, &format!("{asked} --max-per-user {most}"));
        answer["answer"]["accuracy"]["value"].as_f64().unwrap_or_else(|| panic!("{answer}"))
    };
    assert!((share(1) - 1.0).abs() < 0.1 && (share(4) - 0.25).abs() < 0.1);
    let spent = json(&here, "ledger list --format json");
    let spent =
        spent.as_array().unwrap().iter().find(|one| one["dataset"] == "later").unwrap()["spent"].as_f64();
    assert!(spent.is_some_and(|spent| (3.5..=4.0 * (1.0 + 1e-8)).contains(&spent)), "{spent:?}");
    assert_eq!(run(&here, &format!("{asked} --max-per-user 2 --records 1000")).code, 2);
    run(&here, "ledger create others --epsilon 9 --delta 1e-6");
    assert_eq!(run(&here, &format!("{asked} --max-per-user 2 --dataset others")).code, 2);
}

/// A table to train on and a table of public test records.
fn trained(name: &str, test: &str) -> (PathBuf, Ran) {
    let here = folder(&format!("plans {name}"));
    let mut rows = String::from("x,c,y\n");
    for i in 0..300 {
        writeln!(rows, "{},{},{}", i % 10, ["red", "blue"][i % 2], ["no", "yes"][usize::from(i % 10 > 4)])
            .unwrap();
    }
    fs::write(here.join("people.csv"), rows).unwrap();
    fs::write(here.join("test.csv"), test).unwrap();
    fs::write(
        here.join("schema.toml"),
        "[label]\ncolumn = 'y'\nclasses = ['no', 'yes']\n[[column]]\nname = 'x'\nbounds = [0, 9]\n[[column]]\nname = 'c'\ncategories = ['red', 'blue']\n",
    )
    .unwrap();
    let path = |name: &str| here.join(name).display().to_string();
    let ran = quell_with(
        &[
            "train",
            &path("people.csv"),
            "--schema",
            &path("schema.toml"),
            "--test",
            &path("test.csv"),
            "--records",
            "300",
            "--epsilon",
            "5",
            "--delta",
            "1e-5",
            "--output",
            &path("run"),
            "--ledger",
            &path("book"),
        ],
        "",
    );
    (here, ran)
}

#[test]
fn public_test_records_that_fit_no_class_are_refused_before_anything_is_paid() {
    let (here, ran) = trained("unfit", "x,c,y\n1,red,no.\n9,blue,yes.\n8,blue,yes.\n");
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(
        ran.stderr.contains("column \"y\" of 3 of 3 records of ")
            && ran
                .stderr
                .contains(" is none of the classes, such as \"no.\", expected one of no, yes\nhint: "),
        "{}",
        ran.stderr
    );
    assert!(!here.join("book").exists() && !here.join("run").exists(), "nothing is paid");
    let (_, ran) = trained("nearly fit", "x,c,y\n1,red,no\n9,blue,yes\nten,blue,yes\n3,green,maybe\n");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for said in [
        "note: column \"x\" of 1 of 4 records of ",
        "note: column \"c\" of 1 of 4 records of ",
        " is none of the classes, such as \"maybe\", expected one of no, yes; these records are left out",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
}

#[test]
fn records_that_do_not_fit_the_schema_have_no_prediction_unless_asked_for() {
    let (here, ran) = trained("predict", "x,c,y\n1,red,no\n9,blue,yes\n");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let path = |name: &str| here.join(name).display().to_string();
    fs::write(here.join("new.csv"), "x,c\n9,blue\nabc,red\n1,Martian\n2\n,red\n").unwrap();
    let predict = |more: &[&str]| {
        quell_with(&[&["predict", &path("run"), &path("new.csv"), "--scores"], more].concat(), "")
    };
    let ran = predict(&[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[2..5], ["2,,,", "3,,,", "4,,,"], "{}", ran.stdout);
    assert!(lines[1].starts_with("1,yes,0.") && lines[5].split(',').all(|cell| !cell.is_empty()));
    assert!(
        ran.stderr.starts_with(
            "note: 3 of 5 records do not fit the schema and have no prediction; --predict-all predicts them\n  record 2: \"x\" is no number\n  record 3: \"c\" is none of the categories\n  record 4: \"c\" is missing, because the row is short\n"
        ),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("abc") && !ran.stderr.contains("Martian"), "no value is shown");
    let json: Value = serde_json::from_str(&predict(&["--format", "json"]).stdout).unwrap();
    assert!(json[1]["prediction"].is_null() && json[1]["scores"].as_object().unwrap().is_empty(), "{json}");
    let all = predict(&["--predict-all"]);
    assert!(
        all.stdout.lines().skip(1).all(|line| line.split(',').all(|cell| !cell.is_empty())),
        "{}",
        all.stdout
    );
    assert!(
        all.stderr.contains("3 of 5 records do not fit the schema; such cells count as missing"),
        "{}",
        all.stderr
    );
}
