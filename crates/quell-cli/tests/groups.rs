//! `quell query` with groups: counts, sums, means and histograms of two columns.

use std::{fmt::Write as _, fs, path::PathBuf};

use crate::command::{Ran, folder, quell_with};
use serde_json::Value;

/// A table of 1,200 people and its ledger.
struct Project {
    folder: PathBuf,
}

impl Project {
    fn new(name: &str, epsilon: &str, terms: &[&str]) -> Self {
        let folder = folder(&format!("groups {name}"));
        let mut rows = String::from("city,income,smokes\n");
        for i in 0..1200 {
            let city = ["Bern", "\"Biel, Bienne\"", "La Chaux"][i % 3];
            let income = [["40", "60"], ["80", "80"], ["0", "20"]][i % 3][i / 3 % 2];
            writeln!(rows, "{city},{income},{}", ["yes", "no"][i / 3 % 2]).unwrap();
        }
        rows += "Bern,nan,yes\nBern,inf,\nBern,,no\n,50,yes\nAtlantis,50,yes\nBern\n";
        fs::write(folder.join("people.csv"), rows).unwrap();
        let project = Self { folder };
        let create =
            [&["ledger", "create", "people", "--epsilon", epsilon, "--delta", "1e-6"], terms].concat();
        assert_eq!(project.quell(&create).code, 0);
        project
    }

    fn quell(&self, arguments: &[&str]) -> Ran {
        let ledger = self.folder.join("book").display().to_string();
        quell_with(&[arguments, &["--ledger", &ledger]].concat(), "")
    }

    fn query(&self, arguments: &[&str]) -> Ran {
        let table = self.folder.join("people.csv").display().to_string();
        self.quell(&[&["query", table.as_str()], arguments].concat())
    }

    fn spent(&self) -> f64 {
        self.quell(&["ledger", "list", "--format", "json"]).json()[0]["spent"].as_f64().unwrap()
    }
}

const CITIES: &str = "Bern,\"Biel, Bienne\",La Chaux,Nowhere";
const INCOME: [&str; 5] = ["--column", "income", "--bounds", "0", "100"];
const BY_CITY: [&str; 6] = ["--group-by", "city", "--groups", CITIES, "--epsilon", "2"];

/// The values of the rows of an answer in JSON.
fn values(answer: &Value) -> Vec<(String, f64)> {
    let bins = answer["answer"]["bins"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let value = |bin: &Value| (bin[0].as_str().unwrap().to_owned(), bin[1]["value"].as_f64().unwrap());
    bins.iter().map(value).collect()
}

#[test]
fn every_declared_group_has_one_row_and_all_groups_together_cost_one_epsilon() {
    for relation in ["add-remove", "replace"] {
        let project = Project::new(&format!("rows {relation}"), "20", &["--neighbors", relation]);
        // Errors have scales of at most 2, 200, and 2 for the count and 100 for the sum of a mean. A tail of
        // twenty scales has a probability of e⁻²⁰.
        for (number, (statistic, truths, far)) in [
            (&["count"][..], [406.0, 400.0, 400.0, 0.0], 40.0),
            (&["sum"], [20_000.0, 32_000.0, 4000.0, 0.0], 4000.0),
            (&["mean"], [50.0, 80.0, 10.0, 50.0], 50.0),
        ]
        .into_iter()
        .enumerate()
        {
            let columns = if statistic == ["count"] { &[][..] } else { &INCOME };
            let asked = [statistic, columns, &BY_CITY].concat();
            let answer = project.query(&[&asked[..], &["--format", "json"]].concat()).json();
            let rows = values(&answer);
            assert_eq!(rows.len(), 4, "{answer}");
            for ((key, value), (city, truth)) in
                rows.iter().zip(["Bern", "Biel, Bienne", "La Chaux", "Nowhere"].iter().zip(truths))
            {
                assert!(key == city && (value - truth).abs() <= far, "{statistic:?} {answer}");
            }
            let spent = 2.0 * (number + 1) as f64;
            assert!((answer["epsilon"]["spent"].as_f64().unwrap() - spent).abs() < 0.01, "{answer}");
            assert_eq!(answer["receipt"]["entry"], number + 1);
        }
        let text = project.query(&[&["mean"], &INCOME[..], &BY_CITY].concat());
        let rows: Vec<&str> = text.stdout.lines().collect();
        assert!(
            rows.len() == 4 && rows[1].starts_with("Biel, Bienne  ") && rows[3].contains(" ± "),
            "{rows:?}"
        );
        assert!(text.stderr.contains("\ncharged to \"people\" in line 4"), "{}", text.stderr);
    }
}

#[test]
fn a_histogram_with_groups_is_a_table_of_two_columns() {
    let project = Project::new("pairs", "30", &[]);
    let known = ["histogram", "--column", "city", "--keys", CITIES, "--group-by", "smokes"];
    let known = [&known[..], &["--groups", "yes,no", "--epsilon", "2"]].concat();
    let text = project.query(&known).stdout;
    let rows: Vec<&str> = text.lines().collect();
    assert!(rows.len() == 5 && rows[0].split_whitespace().eq(["yes", "no"]), "{text}");
    assert!(rows[2].starts_with("Biel, Bienne  ") && rows[2].matches(" ± ").count() == 2, "{text}");
    let answer = project.query(&[&known[..], &["--format", "json"]].concat()).json();
    let cells = answer["answer"]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 8);
    for (cell, truth) in cells.iter().zip([201.0, 201.0, 200.0, 200.0, 200.0, 200.0, 0.0, 0.0]) {
        assert!((cell[1]["value"].as_f64().unwrap() - truth).abs() < 15.0, "{cell}");
    }
    assert_eq!(cells[3][0], serde_json::json!(["Biel, Bienne", "no"]));
    assert!((project.spent() - 4.0).abs() < 0.01, "all cells cost one epsilon");
    // Without keys, pairs that few records have are hidden. They cost a δ.
    let unknown =
        ["histogram", "--column", "city", "--group-by", "smokes", "--epsilon", "2", "--delta", "1e-9"];
    let text = project.query(&unknown).stdout;
    assert!(text.contains("Bern") && !text.contains("Atlantis") && !text.contains('-'), "{text}");
    let counted = project.query(&["count", "--group-by", "city", "--epsilon", "2", "--delta", "1e-9"]).stdout;
    assert!(counted.contains("La Chaux  ") && !counted.contains("Atlantis"), "{counted}");
}

#[test]
fn wrong_questions_about_groups_cost_nothing_and_a_small_budget_refuses() {
    let project = Project::new("refused", "1", &[]);
    for (question, says) in [
        ("sum --column income --bounds 0 9 --group-by city --epsilon 1", "no groups are given"),
        ("mean --column income --bounds 0 9 --group-by city --groups a,b,a --epsilon 1", "\"a\" twice"),
        ("mean --column income --bounds 0 9 --group-by town --groups a --epsilon 1", "no column \"town\""),
        ("mean --column income --group-by city --groups a --epsilon 1", "no bounds are given"),
        ("count --groups a,b --epsilon 1", "--group-by"),
        ("count --group-by city --groups a,b,a --epsilon 1", "\"a\" twice"),
        ("histogram --column city --keys a,a --group-by smokes --groups yes --epsilon 1", "\"a\" twice"),
        ("histogram --column city --keys a --group-by smokes --epsilon 1", "no groups are given"),
        ("histogram --column city --group-by smokes --groups yes --epsilon 1", "no keys are given"),
        ("variance --column income --bounds 0 9 --group-by city --groups a --epsilon 1", "has no groups"),
        ("count --group-by city --groups \"a --epsilon 1", "double quote"),
    ] {
        let ran = project.query(&question.split_whitespace().collect::<Vec<_>>());
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{question}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{question}: {}", ran.stderr);
    }
    let refused = project.query(&[&["mean"], &INCOME[..], &BY_CITY].concat());
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("hint: the same question with --epsilon 1.00 fits"),
        "{}",
        refused.stderr
    );
    assert_eq!(project.spent(), 0.0);
    let dry =
        project.query(&[&["mean"], &INCOME[..], &BY_CITY[..4], &["--epsilon", "0.5", "--dry-run"]].concat());
    assert!(dry.stdout.contains("for each of 4 known keys: would raise the spent"), "{}", dry.stdout);
}

#[test]
fn users_are_protected_by_one_record_each() {
    let project = Project::new("users", "5", &["--unit", "user"]);
    let asked = [&["sum"], &INCOME[..], &BY_CITY].concat();
    let refused = project.query(&asked);
    assert!(refused.code == 2 && refused.stderr.contains("--one-record-per-user"), "{}", refused.stderr);
    assert_eq!(project.query(&[&asked[..], &["--one-record-per-user"]].concat()).code, 0);
}

#[test]
fn the_groups_are_a_part_of_the_question_that_is_paid_once() {
    let project = Project::new("once", "20", &[]);
    let file = project.folder.join("means.txt").display().to_string();
    let asked = |groups: &str| {
        let by = ["--group-by", "city", "--groups", groups, "--epsilon", "2", "--output", &file];
        project.query(&[&["mean"], &INCOME[..], &by].concat())
    };
    assert_eq!(asked("Bern,La Chaux").code, 0);
    let first = fs::read_to_string(&file).unwrap();
    assert!(first.lines().count() == 2 && !first.ends_with("\n\n"), "{first:?}");
    assert_eq!((asked("Bern,La Chaux").code, fs::read_to_string(&file).unwrap()), (0, first));
    assert!((project.spent() - 2.0).abs() < 0.01);
    for groups in ["La Chaux,Bern", "Bern", "\"Bern,La Chaux\""] {
        let other = asked(groups);
        assert!(other.code == 2 && other.stderr.contains("already exists"), "{groups}: {}", other.stderr);
    }
    // A question without groups has the text that earlier versions gave it.
    let file = project.folder.join("count.txt").display().to_string();
    assert_eq!(project.query(&["count", "--epsilon", "1", "--output", &file]).code, 0);
    let kept = fs::read_to_string(project.folder.join("count.txt.paid.json")).unwrap();
    assert!(kept.contains("statistic") && !kept.contains("group_by"), "{kept}");
}

#[test]
fn numbers_are_counted_in_bins_of_one_and_two_columns() {
    let project = Project::new("bins", "20", &[]);
    let asked = ["histogram", "--column", "income", "--bounds", "0", "80", "--bins", "2", "--epsilon", "2"];
    let answer = project.query(&[&asked[..], &["--format", "json"]].concat()).json();
    let rows = values(&answer);
    // 200 each of 40, 60, 0 and 20, 400 of 80, and two of 50. Other cells hold no finite number.
    for ((key, count), (name, truth)) in rows.iter().zip([("[0, 40)", 400.0), ("[40, 80]", 802.0)]) {
        assert!(key == name && (count - truth).abs() < 40.0, "{answer}");
    }
    let grid = ["--group-by", "income", "--group-edges", "0,50,100"];
    let cells = project.query(&[&asked[..], &grid, &["--format", "json"]].concat()).json();
    let cells = cells["answer"]["cells"].as_array().unwrap_or_else(|| panic!("{cells}"));
    let counts: Vec<f64> = cells.iter().map(|cell| cell[1]["value"].as_f64().unwrap()).collect();
    for (count, truth) in counts.iter().zip([400.0, 0.0, 200.0, 602.0]) {
        assert!((count - truth).abs() < 40.0, "{cells:?}");
    }
    let spent = project.spent();
    assert!((spent - 4.0).abs() < 0.01, "{spent}");
}

#[test]
fn parts_of_groups_are_a_table_that_costs_one_epsilon() {
    let project = Project::new("parts of groups", "20", &[]);
    let parts = ["--part", "smokes = 'yes'", "--part", "smokes = 'no'"];
    let asked = [&["count"][..], &parts, &BY_CITY, &["--format", "json"]].concat();
    let answer = project.query(&asked).json();
    let cells = answer["answer"]["cells"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let truths = [201.0, 200.0, 200.0, 0.0, 201.0, 200.0, 200.0, 0.0];
    assert_eq!(cells.len(), truths.len());
    for (cell, truth) in cells.iter().zip(truths) {
        assert!((cell[1]["value"].as_f64().unwrap() - truth).abs() < 15.0, "{cell}");
    }
    assert_eq!(cells[5][0], serde_json::json!(["smokes = 'no'", "Biel, Bienne"]));
    assert!((project.spent() - 2.0).abs() < 0.01, "{}", project.spent());
    let shown = project.quell(&["ledger", "show", "people"]).stdout;
    assert!(shown.contains("count by city, in parts smokes = 'yes' | smokes = 'no'"), "{shown}");
    // Parts that overlap, unknown groups, and a third division are refused, and nothing is charged.
    let overlapping = ["--part", "income < 50", "--part", "income < 60"];
    let two = ["--group-by", "city", "--groups", "Bern", "--group-by", "smokes", "--groups", "yes"];
    let one = ["--group-by", "city", "--groups", "Bern"];
    for (asked, said) in [
        ([&["count"][..], &overlapping, &one].concat(), "a record may satisfy both"),
        ([&["count"][..], &parts, &["--group-by", "city"]].concat(), "no groups are given"),
        ([&["count"][..], &parts, &two].concat(), "parts have two columns of groups"),
        ([&["histogram", "--column", "city", "--keys", "Bern"][..], &parts, &one].concat(), "divided twice"),
    ] {
        let refused = project.query(&[&asked[..], &["--epsilon", "1"]].concat());
        assert!(refused.code == 2 && refused.stderr.contains(said), "{said}: {}", refused.stderr);
    }
    assert!((project.spent() - 2.0).abs() < 0.01, "{}", project.spent());
}

#[test]
fn sums_and_means_are_released_for_the_groups_of_two_columns() {
    let project = Project::new("two columns", "20", &[]);
    let groups =
        ["--group-by", "city", "--groups", "Bern,La Chaux", "--group-by", "smokes", "--groups", "yes,no"];
    let asked = [&["mean"][..], &INCOME, &groups, &["--epsilon", "5", "--format", "json"]].concat();
    let cells = project.query(&asked).json();
    let cells = cells["answer"]["cells"].as_array().unwrap_or_else(|| panic!("{cells}"));
    let truths =
        [("Bern", "yes", 40.0), ("Bern", "no", 60.0), ("La Chaux", "yes", 0.0), ("La Chaux", "no", 20.0)];
    for (cell, (city, smokes, mean)) in cells.iter().zip(truths) {
        assert_eq!(cell[0], serde_json::json!([city, smokes]));
        assert!((cell[1]["value"].as_f64().unwrap() - mean).abs() < 15.0, "{cells:?}");
    }
    assert_eq!(cells.len(), 4);
}

#[test]
fn bins_and_groups_that_say_nothing_are_refused_before_payment() {
    let project = Project::new("bins refused", "20", &[]);
    for (asked, words) in [
        ("mean --column income --bounds 0 9 --bins 3", "for a histogram"),
        ("histogram --column income --bins 3", "--bounds"),
        ("histogram --column income --bounds 0 9", "no --bins"),
        ("count --group-by city --groups a --group-by city --groups b", "the column \"city\" twice"),
        ("histogram --column income --bounds 0 9 --bins 0", "bins is 0"),
        ("histogram --column income --edges 3", "edges is a list of 1 numbers"),
        ("histogram --column income --edges 3,1", "1 after 3"),
        ("count --group-by income --group-bins 0 9 2.5", "bins is 2.5, expected a whole number"),
        ("count --group-by city --group-by smokes", "two lists of groups"),
        ("count --group-by a --group-by b --group-by c", "3 times"),
    ] {
        let asked: Vec<&str> = asked.split(' ').chain(["--epsilon", "1"]).collect();
        let ran = project.query(&asked);
        assert!(ran.code == 2 && ran.stderr.contains(words), "{asked:?}: {}", ran.stderr);
    }
    assert!(project.spent() == 0.0);
}
