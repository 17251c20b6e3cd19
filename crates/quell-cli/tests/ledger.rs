//! Tests of `quell ledger` and `quell query` from outside: answers, refusals, and the detection of changed
//! ledgers.

use std::{fmt::Write, fs, path::Path};

use crate::command::{Ran, folder, json, quell_with, run, start};

/// A folder with a table of a thousand people and an open ledger.
struct Project {
    folder: std::path::PathBuf,
    ledger: String,
    table: String,
}

impl Project {
    fn new(name: &str, epsilon: &str) -> Self {
        let folder = folder(name);
        let mut rows = String::from("age,city,income\n");
        for i in 0..1000 {
            let city = if i % 4 == 0 { "Bern" } else { "Basel" };
            writeln!(rows, "{},{city},{}", 20 + i % 60, if i == 17 { "none" } else { "100" }).unwrap();
        }
        rows += "99,Atlantis,100\n";
        let table = folder.join("people.csv");
        fs::write(&table, rows).unwrap();
        let project = Self {
            ledger: folder.join("book").display().to_string(),
            table: table.display().to_string(),
            folder,
        };
        let opened = project.quell(&["ledger", "create", "people", "--epsilon", epsilon, "--delta", "1e-6"]);
        assert_eq!((opened.code, opened.stdout.as_str()), (0, ""), "{}", opened.stderr);
        assert!(opened.stderr.contains("created a ledger for \"people\""), "{}", opened.stderr);
        project
    }

    fn quell(&self, arguments: &[&str]) -> Ran {
        quell_with(&[arguments, &["--ledger", &self.ledger]].concat(), "")
    }

    fn query(&self, arguments: &str) -> Ran {
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        self.quell(&[&["query", self.table.as_str()], arguments.as_slice()].concat())
    }

    fn spent(&self) -> f64 {
        let list = self.quell(&["ledger", "list", "--format", "json"]).json();
        list.as_array().unwrap().iter().find(|row| row["dataset"] == "people").unwrap()["spent"]
            .as_f64()
            .unwrap()
    }
}

/// The number after the first colon.
fn number(text: &str) -> f64 {
    text.split(": ").nth(1).unwrap().split(' ').next().unwrap().trim().parse().unwrap()
}

#[test]
fn every_statistic_is_answered_and_charged() {
    let project = Project::new("every_statistic", "30");
    for (question, low, high) in [
        ("count --epsilon 2", 980.0, 1020.0),
        ("count --epsilon 2 --noise gaussian --delta 1e-7", 950.0, 1050.0),
        ("sum --column income --bounds 0 200 --epsilon 2", 98_000.0, 102_000.0),
        ("mean --column age --bounds 0 120 --epsilon 2", 46.0, 53.0),
        ("variance --column age --bounds 0 120 --epsilon 2", 230.0, 370.0),
        ("quantile --column age --bounds 0 120 --quantile 0.25 --epsilon 2", 31.0, 40.0),
        ("smooth-median --column age --bounds 0 120 --epsilon 2 --delta 1e-10", 40.0, 60.0),
    ] {
        let ran = project.query(question);
        assert_eq!(ran.code, 0, "{question}: {}", ran.stderr);
        assert!(ran.stderr.contains("charged to \"people\" in line "), "{}", ran.stderr);
        let answer = number(&ran.stdout);
        assert!((low..=high).contains(&answer), "{question}: {}", ran.stdout);
    }
    let yes = project.query("reaches --threshold 500 --epsilon 2");
    assert_eq!((yes.code, yes.stdout.as_str()), (0, "yes\n"));
    let range = project.query("range --column age --bounds 0 120 --inside 0.5 --epsilon 2").stdout;
    assert!(range.starts_with("from: ") && range.contains("\nto: "), "{range}");
    let known = project.query("histogram --column city --keys Bern,Basel,Geneva --epsilon 2").stdout;
    assert!(
        known.lines().map(|line| line.split(' ').next().unwrap()).eq(["Bern", "Basel", "Geneva"]),
        "{known}"
    );
    let unknown = project.query("histogram --column city --epsilon 2 --delta 1e-10").stdout;
    assert!(
        unknown.contains("Bern") && unknown.contains("Basel") && !unknown.contains("Atlantis"),
        "{unknown}"
    );
    assert!(project.spent() > 10.0);
}

#[test]
fn an_answer_with_a_condition_has_a_receipt_in_json() {
    let project = Project::new("conditions", "20");
    let ran = project.quell(&[
        "query",
        &project.table,
        "count",
        "--where",
        "city = 'Bern' and age >= 20",
        "--epsilon",
        "10",
        "--format",
        "json",
    ]);
    let answer = ran.json();
    assert!((answer["answer"]["number"]["value"].as_f64().unwrap() - 250.0).abs() < 10.0, "{answer}");
    assert_eq!(answer["receipt"]["dataset"], "people");
    assert_eq!(answer["receipt"]["entry"], 1);
    assert!((answer["epsilon"]["spent"].as_f64().unwrap() - 10.0).abs() < 0.01, "{answer}");
    assert_eq!(answer["epsilon"]["budget"], 20.0);
    let file = project.folder.join("answer.json");
    fs::write(&file, answer.to_string()).unwrap();
    let verified = project.quell(&["ledger", "verify", "--artifact", file.to_str().unwrap()]);
    assert_eq!(verified.code, 0, "{}", verified.stdout);
    fs::write(&file, answer.to_string().replace("\"entry\":1", "\"entry\":0")).unwrap();
    assert_eq!(project.quell(&["ledger", "verify", "--artifact", file.to_str().unwrap()]).code, 1);
}

#[test]
fn a_refusal_states_the_epsilon_that_fits_and_charges_nothing() {
    let project = Project::new("refusals_of_a_budget", "1");
    assert_eq!(project.query("count --epsilon 0.7").code, 0);
    let before = project.spent();
    let ran = project.query("count --epsilon 0.5");
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.starts_with("refused: epsilon would be 1.2"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: the same question with --epsilon 0.29"), "{}", ran.stderr);
    assert_eq!(project.spent().to_bits(), before.to_bits());
    assert_eq!(project.query("count --epsilon 0.29").code, 0);
    assert_eq!(project.quell(&["ledger", "raise", "people", "--epsilon", "0.5", "--reason", "less"]).code, 1);
    let raised = project.quell(&[
        "ledger",
        "raise",
        "people",
        "--epsilon",
        "2",
        "--reason",
        "the board agreed",
        "--accept",
    ]);
    assert_eq!(raised.code, 0, "{}", raised.stderr);
    assert_eq!(project.query("count --epsilon 0.5").code, 0);
    let shown = project.quell(&["ledger", "show", "people"]).data();
    assert!(shown.contains("the board agreed") && shown.lines().count() == 6, "{shown}");
}

#[test]
fn a_dry_run_reports_the_cost_and_charges_nothing() {
    let project = Project::new("dry_run", "1");
    let ran = project.query("count --epsilon 0.25 --dry-run");
    assert_eq!(
        ran.stdout,
        "count with discrete Laplace noise of scale 4: would raise the spent ε from 0 to 0.2500; the budget is 1\n"
    );
    assert_eq!(project.spent(), 0.0);
}

#[test]
fn a_question_with_a_delta_leaves_budget_for_other_questions() {
    let project = Project::new("own_delta", "10");
    let all = project.query("histogram --column city --epsilon 1 --delta 5e-7");
    assert!(all.code == 1 && all.stderr.contains("could grant no later charge"), "{}", all.stderr);
    assert!(all.stderr.contains("give at most 2.5e-8, since 5.0e-8 is left"), "{}", all.stderr);
    assert!(all.stderr.contains("create a ledger with --composition addition"), "{}", all.stderr);
    // What the hint says is so.
    let create =
        ["ledger", "create", "added", "--epsilon", "10", "--delta", "1e-6", "--composition", "addition"];
    assert_eq!(project.quell(&create).code, 0);
    for _ in 0..2 {
        let ran = project.query("histogram --column city --epsilon 1 --delta 4.9e-7 --dataset added");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
    assert_eq!(project.spent(), 0.0);
    for question in [
        "histogram --column city --epsilon 0.5",
        "smooth-median --column age --bounds 0 120 --epsilon 1",
        "histogram --column city --epsilon 0.5 --delta 2.5e-8",
        "count --epsilon 1 --noise gaussian",
    ] {
        let ran = project.query(question);
        assert_eq!(ran.code, 0, "{question}: {}", ran.stderr);
    }
    assert!(project.spent() < 5.0, "{}", project.spent());
    let late = project.query("histogram --column city --epsilon 0.5 --delta 2.5e-8");
    assert!(late.code == 1 && late.stderr.contains("is left for all questions with a δ"), "{}", late.stderr);
}

#[test]
fn the_former_name_of_a_composition_is_accepted() {
    let project = Project::new("former_composition", "1");
    let create = ["ledger", "create", "old", "--epsilon", "1", "--delta", "1e-6", "--composition", "best"];
    let opened = project.quell(&create);
    assert_eq!(opened.code, 0, "{}", opened.stderr);
    let lines = project.quell(&["ledger", "show", "old", "--format", "json"]).json();
    assert_eq!(lines[0]["line"]["opened"]["composition"], "combined", "{lines}");
    assert!(!project.quell(&["ledger", "create", "--help"]).stdout.contains("best"));
}

#[test]
fn wrong_questions_are_refused_before_any_charge_and_show_no_record() {
    let project = Project::new("mistakes", "5");
    for (arguments, says) in [
        ("mean --column agee --bounds 0 100 --epsilon 1", "agee"),
        ("mean --bounds 0 100 --epsilon 1", "no column is given"),
        ("mean --column age --epsilon 1", "no bounds are given"),
        ("mean --column age --bounds 100 0 --epsilon 1", "the upper bound is 0"),
        ("mean --column age --bounds 0 100 --epsilon -1", "epsilon is -1"),
        ("mean --column age --bounds 0 100 --epsilon 0", "expected"),
        ("mean --column age --bounds 0 100 --epsilon NaN", "epsilon is NaN"),
        ("count --epsilon 1 --where age>>3", "expression"),
        ("reaches --epsilon 1", "no threshold"),
        ("count --epsilon 1 --dataset others", "others"),
        ("medain --epsilon 1", "invalid value 'medain'"),
        ("quantile --column age --bounds 0 1 --quantile 2 --epsilon 1", "probability is 2"),
    ] {
        let ran = project.query(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments}: {}", ran.stderr);
        assert!(
            ran.stderr.starts_with("error: ") && ran.stderr.contains(says),
            "{arguments}: {}",
            ran.stderr
        );
        assert!(
            !ran.stderr.contains("internal error") && !ran.stderr.contains("Atlantis"),
            "{arguments}: {}",
            ran.stderr
        );
    }
    let nothing =
        quell_with(&["query", "nowhere.csv", "count", "--epsilon", "1", "--ledger", &project.ledger], "");
    assert!(nothing.code == 2 && nothing.stderr.contains("nowhere.csv"), "{}", nothing.stderr);
    let elsewhere =
        quell_with(&["query", &project.table, "count", "--epsilon", "1", "--ledger", "no/such/place"], "");
    assert!(elsewhere.code == 2 && elsewhere.stderr.contains("quell ledger create"), "{}", elsewhere.stderr);
    assert_eq!(project.spent(), 0.0);
    // A cell that is no number is left out, and nobody hears of it.
    let sum = project.query("sum --column income --bounds 0 200 --epsilon 2");
    assert!(sum.code == 0 && !sum.stderr.contains("none"), "{}", sum.stderr);
}

#[test]
fn a_ledger_of_users_requires_one_record_per_user() {
    let project = Project::new("users", "5");
    let create = ["ledger", "create", "visits", "--epsilon", "1", "--delta", "1e-6", "--unit", "user"];
    assert_eq!(project.quell(&create).code, 0);
    let ran = project.query("count --epsilon 0.1 --dataset visits");
    assert!(ran.code == 2 && ran.stderr.contains("--one-record-per-user"), "{}", ran.stderr);
    assert_eq!(project.query("count --epsilon 0.1 --dataset visits --one-record-per-user").code, 0);
    let again = project.quell(&create);
    assert!(again.code == 2 && again.stderr.contains("has a ledger already"), "{}", again.stderr);
}

#[test]
fn statements_and_lists_are_printed_as_text_and_json() {
    let project = Project::new("statements", "3");
    assert_eq!(project.query("count --epsilon 0.5").code, 0);
    let text = project.quell(&["ledger", "statement", "people"]).data();
    for words in [
        "when one example is added or removed",
        "ε ≤ 0.5",
        "at δ = 1e-6",
        "Budget: ε ≤ 3",
        "false-positive rate of 1 %",
        "Not covered",
    ] {
        assert!(text.contains(words), "{words:?} in {text}");
    }
    let json = project.quell(&["ledger", "statement", "people", "--format", "json"]).json();
    assert!(json["counted"]["epsilon"].as_f64().unwrap() <= 0.5 && json["plans"] == 1, "{json}");
    let list = project.quell(&["ledger", "list"]).data();
    assert!(
        list.starts_with("dataset  ε spent  budget  lines  head              last charge\npeople"),
        "{list}"
    );
    let lines = project.quell(&["ledger", "show", "people", "--format", "json"]).json();
    assert_eq!(lines[1]["line"]["charged"]["plan"]["version"], 1, "{lines}");
}

#[test]
fn verify_finds_edits_truncations_and_older_copies() {
    let project = Project::new("verify", "10");
    let file = Path::new(&project.ledger).join("ledger.db");
    assert_eq!(project.query("count --epsilon 1").code, 0);
    let older = fs::read(&file).unwrap();
    let export = project.folder.join("export.json");
    assert_eq!(project.query("count --epsilon 1").code, 0);
    let wrote = project.quell(&["ledger", "export", "people", "--output", export.to_str().unwrap()]);
    assert_eq!(wrote.code, 0, "{}", wrote.stderr);
    let check = |with_export: bool| {
        let export = ["--export", export.to_str().unwrap()];
        project.quell(&[&["ledger", "verify"][..], if with_export { &export[..] } else { &[] }].concat())
    };
    assert_eq!((check(false).code, check(true).code), (0, 0), "{}{}", check(true).stdout, check(true).stderr);
    // An older copy of everything is only found by what was kept elsewhere.
    let newest = fs::read(&file).unwrap();
    fs::write(&file, older).unwrap();
    let found = check(true);
    assert!(found.code == 1 && !found.stdout.is_empty(), "{}{}", found.stdout, found.stderr);
    fs::write(&file, newest).unwrap();
    assert_eq!(check(true).code, 0);
    // An edit inside a line.
    let mut edited = fs::read(&file).unwrap();
    let place = edited.windows(5).position(|bytes| bytes == b"count").unwrap();
    edited[place] = b'C';
    fs::write(&file, edited).unwrap();
    assert_eq!(check(false).code, 1);
    let after = project.query("count --epsilon 1");
    assert!(
        after.code == 2 && after.stdout.is_empty(),
        "nothing is released from a damaged ledger: {}",
        after.stderr
    );
    // An export with a letter changed.
    let text = fs::read_to_string(&export).unwrap();
    fs::write(&export, text.replacen("count", "Count", 1)).unwrap();
    assert_eq!(check(true).code, 1);
}

#[test]
fn a_raise_reports_the_promise_and_a_late_cap_ends_it() {
    let project = Project::new("raises", "1");
    for _ in 0..2 {
        assert_eq!(project.query("count --epsilon 0.2").code, 0);
    }
    let raise = ["ledger", "raise", "people", "--epsilon", "2.5", "--reason", "the board agreed"];
    let asked = project.quell(&raise);
    assert!(
        asked.code == 2 && asked.stderr.contains("from ε ≤ 1 at δ = 1.000e-6 to ε ≤ 3 at δ = 3.00"),
        "{}",
        asked.stderr
    );
    let raised = project.quell(&[&raise[..], &["--accept"]].concat());
    assert_eq!(raised.code, 0, "{}", raised.stderr);
    assert!(
        raised.stderr.contains("ε ≤ 3 at δ = 3.000e-6") || raised.stderr.contains("ε ≤ 3 at δ = 3.001e-6"),
        "{}",
        raised.stderr
    );
    let larger = ["ledger", "raise", "people", "--epsilon", "3", "--delta", "1e-3", "--reason", "more"];
    assert_eq!(project.quell(&larger).code, 2, "delta is not raised after a charge");
    let create = ["ledger", "create", "late", "--no-cap", "--delta", "1e-6"];
    assert_eq!(project.quell(&create).code, 0);
    for _ in 0..3 {
        assert_eq!(project.query("count --epsilon 0.5 --dataset late").code, 0);
    }
    let raised = project.quell(&["ledger", "raise", "late", "--epsilon", "1.6", "--reason", "now we know"]);
    assert!(raised.code == 0 && raised.stderr.contains("nothing is promised"), "{}", raised.stderr);
    let text = project.quell(&["ledger", "statement", "late"]).data();
    assert!(text.contains("NOTHING IS PROMISED: the ledger had no cap for some time"), "{text}");
    for cap in ["--epsilon=-0", "--epsilon=0", "--epsilon=31"] {
        let refused = project.quell(&["ledger", "create", "odd", cap, "--delta", "1e-6"]);
        assert!(
            refused.code == 2 && refused.stderr.contains("epsilon of a budget"),
            "{cap}: {}",
            refused.stderr
        );
    }
}

/// Copies a ledger, files only.
fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn receipts_and_exports_reveal_an_older_copy_of_a_ledger() {
    let project = Project::new("older_copies", "10");
    let (ledger, saved) = (Path::new(&project.ledger).to_owned(), project.folder.join(".saved"));
    let archive = project.folder.join("archive").display().to_string();
    let export = || project.quell(&["ledger", "export", "--into", &archive]);
    let ask = |name: &str| {
        let answer = project.query("count --epsilon 1 --format json");
        assert_eq!(answer.code, 0, "{}", answer.stderr);
        fs::write(project.folder.join(name), &answer.stdout).unwrap();
    };
    ask("first.json");
    assert_eq!(export().code, 0);
    copy(&ledger, &saved);
    ask("second.json");
    let good = project.quell(&["ledger", "verify"]);
    assert!(
        good.code == 0 && good.stdout.contains("2 receipts agree with the ledger"),
        "{}{}",
        good.stdout,
        good.stderr
    );
    assert_eq!(export().code, 0);
    assert_eq!(fs::read_dir(&archive).unwrap().count(), 2, "one document for each length");
    assert_eq!((export().code, fs::read_dir(&archive).unwrap().count()), (0, 2));
    copy(&saved, &ledger);
    let found = project.quell(&["ledger", "verify"]);
    assert!(
        found.code == 1 && found.stdout.contains("3 lines were written, of which the ledger has 2"),
        "{}",
        found.stdout
    );
    let nothing = project.quell(&["ledger", "verify", "--project", &project.ledger]);
    assert_eq!(nothing.code, 0, "by itself the copy is sound");
    // Removed with its key, and made anew.
    fs::remove_dir_all(&saved).unwrap();
    fs::remove_dir_all(&ledger).unwrap();
    assert_eq!(project.quell(&["ledger", "create", "people", "--epsilon", "10", "--delta", "1e-6"]).code, 0);
    let anew = project.quell(&["ledger", "verify"]);
    assert!(anew.code == 1 && anew.stdout.contains("a receipt says"), "{}{}", anew.stdout, anew.stderr);
    let found = export();
    assert!(
        found.code == 1 && found.stdout.contains("the end is missing, or this is an older copy"),
        "{}",
        found.stdout
    );
    assert_eq!(fs::read_dir(&archive).unwrap().count(), 2, "nothing is written over");
}

#[test]
fn every_command_refuses_a_ledger_with_a_foreign_signature() {
    let project = Project::new("foreign ledger", "1");
    assert_eq!(project.query("count --epsilon 0.9").code, 0);
    let forged = Project::new("foreign ledger forged", "0.1");
    assert_eq!(forged.query("count --epsilon 0.05").code, 0);
    for file in fs::read_dir(&forged.ledger).unwrap() {
        let file = file.unwrap();
        if file.file_name().to_string_lossy().starts_with("ledger.db") {
            fs::copy(file.path(), Path::new(&project.ledger).join(file.file_name())).unwrap();
        }
    }
    for read in [
        &["ledger", "list"][..],
        &["ledger", "show", "people"],
        &["ledger", "statement", "people"],
        &["ledger", "export", "people"],
    ] {
        let ran = project.quell(read);
        assert!(
            ran.code != 0 && ran.stdout.is_empty() && ran.stderr.contains("signing.key"),
            "{read:?}: {}{}",
            ran.stdout,
            ran.stderr
        );
    }
    assert_eq!(project.query("count --epsilon 0.01 --dry-run").code, 2);
    assert_eq!(project.quell(&["ledger", "verify"]).code, 1);
}

#[test]
fn a_missing_key_is_a_finding_and_an_auditor_needs_only_the_public_key() {
    let project = Project::new("no_key", "10");
    let public =
        project.quell(&["ledger", "export", "people"]).json()["public_key"].as_str().unwrap().to_owned();
    fs::remove_file(Path::new(&project.ledger).join("signing.key")).unwrap();
    let found = project.quell(&["ledger", "verify"]);
    assert!(found.code == 1 && found.stdout.contains("is missing"), "{}", found.stdout);
    assert_eq!(project.quell(&["ledger", "verify", "--public-key", &public]).code, 0);
    assert_eq!(project.quell(&["ledger", "verify", "--public-key", &"0".repeat(64)]).code, 1);
}

#[cfg(unix)]
#[test]
fn endless_documents_are_refused() {
    let project = Project::new("endless", "10");
    for flag in ["--artifact", "--export"] {
        let ran = project.quell(&["ledger", "verify", flag, "/dev/zero"]);
        assert_eq!(ran.code, 2, "{flag}: {}", ran.stdout);
    }
}

/// A ledger with charges of three people: one by name, one by the name of the account, one without a name.
fn annotated(name: &str) -> std::path::PathBuf {
    let here = folder(name);
    std::fs::write(here.join("people.csv"), "age,town\n30,Ulm\n40,Bonn\n").unwrap();
    let as_user = |user: &str, words: &[&str]| {
        let mut command = start(&here, "");
        let ran: Ran = command.args(words).env("QUELL_USER", user).output().unwrap().into();
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    };
    as_user("ada", &["ledger", "create", "people", "--epsilon", "3", "--delta", "1e-6"]);
    let mean = ["query", "people.csv", "mean", "--column", "age", "--bounds", "0", "100", "--epsilon", "0.5"];
    as_user("ada", &[&mean[..], &["--where", "town = 'Ulm'"]].concat());
    as_user("", &["query", "people.csv", "count", "--epsilon", "0.1"]);
    here
}

#[test]
fn a_ledger_says_who_asked_what_about_which_file() {
    let here = annotated("ledger words");
    let shown = run(&here, "ledger show people").data();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].contains(" by ") && lines[0].contains(" file "), "{shown}");
    assert!(lines[1].contains(" ada ") && lines[1].contains("created"), "{shown}");
    assert!(
        lines[2].contains(" ada  people.csv  mean of age where town = 'Ulm': mean of numbers"),
        "{shown}"
    );
    assert!(lines[3].contains("people.csv  count: count") && !lines[3].contains("ada"), "{shown}");
    let all = json(&here, "ledger show people --format json");
    assert_eq!(
        all[1]["note"],
        serde_json::json!({
            "by": "ada", "file": "people.csv", "release": "mean of age", "condition": "town = 'Ulm'"
        })
    );
    assert_eq!(all[2]["note"].get("by"), None);
    let listed = run(&here, "ledger list").data();
    assert!(listed.contains("from people.csv: count"), "{listed}");
    let stated = run(&here, "ledger statement people").data();
    let releases = stated.split("Releases:\n").nth(1).unwrap();
    assert!(releases.contains("by ada from people.csv: mean of age where town = 'Ulm'"), "{stated}");
    assert_eq!(json(&here, "ledger statement people --format json")["releases"][0]["by"], "ada");
    assert_eq!(run(&here, "ledger verify").code, 0);
}

#[test]
fn a_raise_says_what_delta_becomes() {
    let here = annotated("ledger raise words");
    let raised = run(&here, "ledger raise people --epsilon 4 --reason more --accept");
    assert!(raised.stderr.contains("its δ grows from 1.000e-6 to 2.000e-6"), "{}", raised.stderr);
    let lowered = run(&here, "ledger raise people --epsilon 3.5 --reason less");
    assert!(lowered.stderr.contains("its δ stays the same"), "{}", lowered.stderr);
}
