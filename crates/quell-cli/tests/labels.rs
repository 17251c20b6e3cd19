//! `quell pate` and `quell knn`, as people and power cuts use them.

use std::{collections::BTreeSet, path::Path, time::Duration};

use crate::command::{charges, folder, json, run, start};
use serde_json::Value;

/// The questions of a journal, each with its answer.
fn journal(here: &Path, run: &str) -> Vec<(u64, Option<u64>)> {
    let text = std::fs::read_to_string(here.join(run).join("answers.jsonl")).unwrap();
    let line = |line: &str| {
        let entry: Value = serde_json::from_str(line).unwrap();
        (entry["question"].as_u64().unwrap(), entry["answer"].as_u64())
    };
    text.lines().map(line).collect()
}

#[test]
fn pate_and_knn_label_the_embedded_digits_and_train_a_student() {
    let here = folder("labels digits");
    for verb in ["pate", "knn"] {
        let first = run(&here, verb);
        assert_eq!(first.code, 0, "{}", first.stderr);
        assert!(
            first.stdout.starts_with("questions: ") && first.stdout.contains("answered, "),
            "{}",
            first.stdout
        );
        assert!(
            first.stdout.contains("claim: ε ≤ ")
                && first.stdout.contains(&format!("run: runs/digits-{verb}-1")),
            "{}",
            first.stdout
        );
        let again = json(&here, &format!("{verb} --format json"));
        assert!(again["epsilon"]["upper"].as_f64().unwrap() <= 3.0 && again["delta"] == 1e-5, "{again}");
        // What the README says, less what noise may do.
        assert!(again["accuracy"]["all"].as_f64().unwrap() > 0.75, "{again}");
        let answered = again["answered"].as_u64().unwrap();
        let entries = journal(&here, again["run"].as_str().unwrap());
        let distinct: BTreeSet<u64> = entries.iter().map(|(question, _)| *question).collect();
        assert!(answered > 10 && distinct.len() == entries.len(), "{again}");
        assert_eq!(entries.iter().filter(|(_, answer)| answer.is_some()).count() as u64, answered);
        for file in ["labels.toml", "paid.json", "outcome.json", "model.safetensors"] {
            assert!(here.join(again["run"].as_str().unwrap()).join(file).is_file(), "{file}");
        }
        // Ballots do not outlive the questions.
        assert!(!here.join(again["run"].as_str().unwrap()).join("private").exists());
        // The student is a model like any other.
        let model = format!("evaluate {}", again["run"].as_str().unwrap());
        assert_eq!(run(&here, &model).code, 0);
    }
    assert_eq!(charges(&here, "digits"), 4);
    assert_eq!(run(&here, "ledger verify").code, 0);
}

#[test]
fn refused_runs_leave_no_files_and_no_charge() {
    let here = folder("labels refused");
    let looked = run(&here, "pate --dry-run");
    assert!(
        looked.code == 0
            && looked.stdout.contains("150 teachers")
            && looked.stderr.contains("nothing was charged"),
        "{}",
        looked.stderr
    );
    for (name, text) in [
        ("outside.csv", "a,b,c\n0,1,2\n0,3,1\n"),
        ("negative.csv", "a,b,c\n0,1,2\n0,-1,1\n"),
        ("ragged.csv", "a,b,c\n0,1,2\n0,1\n"),
        ("words.csv", "a,b,c\n0,1,two\n0,1,1\n"),
        ("empty.csv", "a,b,c\n"),
        ("nothing.csv", ""),
        ("good.csv", "a,b,c\n0,1,2\n0,1,1\n"),
    ] {
        std::fs::write(here.join(name), text).unwrap();
    }
    // What is no ballot abstains. No word and no number tells of it.
    let priced = |name: &str| {
        run(&here, &format!("pate --ballots {name} --classes 3 --deviation 40 --answers 2 --dry-run"))
    };
    let good = priced("good.csv");
    assert!(
        good.code == 0 && good.stderr.contains("a cell without a valid ballot is an abstention"),
        "{}",
        good.stderr
    );
    for name in ["outside.csv", "negative.csv", "ragged.csv", "words.csv"] {
        let bad = priced(name);
        assert_eq!(
            (bad.code, bad.stdout.replace(name.trim_end_matches(".csv"), "good"), bad.stderr),
            (good.code, good.stdout.clone(), good.stderr.clone()),
            "{name}"
        );
    }
    for (arguments, code, says) in [
        ("pate --users", 2, "no list of users is given"),
        ("pate --classes 10 --dry-run", 2, "the embedded digits have theirs"),
        ("pate --ballots empty.csv --classes 3", 2, "no question is given"),
        ("pate --ballots nothing.csv --classes 3", 2, "empty"),
        ("pate --ballots missing.csv --classes 3", 2, "missing.csv"),
        ("pate --ballots good.csv --classes 1", 2, "classes is 1"),
        ("pate --ballots good.csv", 2, "--classes"),
        ("pate --ballots good.csv --classes 3 --answers 3", 2, "answers is 3"),
        ("pate --ballots good.csv --classes 3 --aggregator interactive", 2, "aggregator"),
        ("pate --ballots good.csv --classes 3 --aggregator laplace --reveal-cost", 2, "reveal"),
        (
            "pate --ballots good.csv --classes 3 --deviation 9 --answers 2 --reveal-cost",
            2,
            "no budget is given",
        ),
        ("pate --reveal-cost --choice active", 2, "reveal"),
        (
            "pate --ballots good.csv --classes 3 --deviation 0.01 --epsilon 1",
            2,
            "does not pay for a single answer",
        ),
        ("pate --ballots good.csv --classes 3 --aggregator stable --deviation 1 --epsilon 1", 2, "epsilon"),
        ("pate --teachers 0", 2, "voter"),
        ("pate --epsilon 0", 2, "epsilon is 0"),
        ("pate --epsilon 1 --deviation 1 --answers 50", 2, "epsilon"),
        ("pate --questions 0", 2, "questions is 0"),
        ("pate --questions 100000", 2, "questions is 100000"),
        ("pate --model nonsense", 2, "nonsense"),
        ("pate --teacher-model nonsense", 2, "nonsense"),
        ("pate nothing.idx", 2, "nothing.idx"),
        ("knn --sampling-rate 1.5", 2, "1.5"),
        ("knn --neighbors-that-vote 0", 2, "voter"),
        ("knn --aggregator laplace", 2, "aggregator"),
        ("pate --epsilon 2 --budget 1 --delta 1e-5 --dataset small", 1, "the budget is 1"),
        ("knn --epsilon 2 --budget 1 --delta 1e-5 --dataset small", 1, "the budget is 1"),
    ] {
        let ran = run(&here, arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (code, ""), "{arguments}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(says) && !ran.stderr.contains("internal error"),
            "{arguments}: {}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains("error: ") || ran.stderr.contains("refused: "),
            "{arguments}: {}",
            ran.stderr
        );
    }
    assert!(!here.join("runs").exists(), "a run that was refused leaves no folder");
    assert_eq!(charges(&here, "small"), 0);
}

#[test]
fn external_ballots_are_answered_up_to_the_charged_number() {
    let here = folder("labels ballots");
    let header: Vec<String> = (0..200).map(|teacher| format!("t{teacher}")).collect();
    let row = |class: usize| vec![class.to_string(); 200].join(",");
    let rows: Vec<String> = (0..30).map(|question| row(question % 4)).collect();
    std::fs::write(here.join("votes.csv"), format!("{}\n{}\n", header.join(","), rows.join("\n"))).unwrap();
    let ran = json(
        &here,
        "pate --ballots votes.csv --classes 4 --deviation 5 --answers 20 --output run --format json",
    );
    assert_eq!((ran["answered"].as_u64(), ran["refused"].as_u64()), (Some(20), Some(0)), "{ran}");
    // Noise of 5 on counts that a record moves by √2, twenty times: μ = √20 · √2 / 5.
    let epsilon = ran["epsilon"]["upper"].as_f64().unwrap();
    assert!(epsilon > 5.7 && epsilon < 6.2, "{ran}");
    let entries = journal(&here, "run");
    // A lead of two hundred ballots over noise of 5.
    assert!(
        entries.iter().all(|(question, answer)| *answer == Some(question % 4)) && entries.len() == 20,
        "{entries:?}"
    );
    let screened = "pate --ballots votes.csv --classes 4 --deviation 5 --answers 20 --aggregator confident --threshold 1";
    let half = json(&here, &format!("{screened} --dataset other --output other --format json"));
    let (answered, refused) = (half["answered"].as_u64().unwrap(), half["refused"].as_u64().unwrap());
    assert!(answered <= 20 && refused > 0 && answered + refused <= 30, "{half}");
    let stable = "pate --ballots votes.csv --classes 4 --aggregator stable --epsilon 20";
    let stable = json(&here, &format!("{stable} --dataset third --output third --format json"));
    assert_eq!((stable["answered"].as_u64(), stable["refused"].as_u64()), (Some(30), Some(0)), "{stable}");
    // Where all agree, what was cast costs far less than what could have been.
    let header: Vec<String> = (0..600).map(|teacher| format!("t{teacher}")).collect();
    let rows = [vec!["1"; 600].join(","), String::new()].join("\n").repeat(300);
    std::fs::write(here.join("many.csv"), format!("{}\n{rows}", header.join(","))).unwrap();
    let revealed = "pate --ballots many.csv --classes 4 --deviation 40 --answers 300 --delta 1e-5 --budget 20 --reveal-cost";
    let revealed = json(&here, &format!("{revealed} --dataset fourth --output fourth --format json"));
    let (worst, cast) = (&revealed["epsilon"]["upper"], &revealed["revealed"]["epsilon"]);
    assert!(
        cast.as_f64().unwrap() < 0.6 * worst.as_f64().unwrap()
            && revealed["revealed"]["of_the_dataset"] == true,
        "{revealed}"
    );
    for aggregator in ["laplace", "gaussian"] {
        let arguments = format!(
            "pate --ballots votes.csv --classes 4 --aggregator {aggregator} --epsilon 5 --dataset {aggregator}"
        );
        assert_eq!(run(&here, &arguments).code, 0, "{aggregator}");
    }
    assert_eq!(run(&here, "ledger verify").code, 0);
}

#[test]
fn repeated_kills_charge_no_answer_twice_and_train_no_teacher_twice() {
    let here = folder("labels killed");
    let mut child = start(&here, "pate --teachers 200 --output run").spawn().unwrap();
    // Some teachers have voted.
    while !here.join("run/private/ballots-3").is_file() {
        assert!(child.try_wait().unwrap().is_none(), "it ended too early");
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let voted = |here: &Path| {
        let files = std::fs::read_dir(here.join("run/private")).into_iter().flatten().flatten();
        files
            .filter_map(|file| Some((file.file_name(), file.metadata().ok()?.modified().ok()?)))
            .collect::<Vec<_>>()
    };
    let before: Vec<_> =
        voted(&here).into_iter().filter(|(name, _)| name.to_string_lossy().starts_with("ballots-")).collect();
    assert_eq!(charges(&here, "digits"), 0, "nothing is paid before the teachers are there");
    for time in 0..6 {
        let mut child = start(&here, "resume run").spawn().unwrap();
        std::thread::sleep(Duration::from_millis(u64::from(40 + time * 97_u32 % 400)));
        let after = voted(&here);
        assert!(after.is_empty() || before.iter().all(|old| after.contains(old)), "a teacher voted twice");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let end = json(&here, "resume run --format json");
    assert_eq!(charges(&here, "digits"), 1, "one plan was paid for once");
    let entries = journal(&here, "run");
    let distinct: BTreeSet<u64> = entries.iter().map(|(question, _)| *question).collect();
    assert_eq!(distinct.len(), entries.len(), "a question was answered twice");
    assert!(end["epsilon"]["upper"].as_f64().unwrap() <= 3.0 && !here.join("run/private").exists());
    // Done is done: nothing is asked and nothing is paid.
    assert_eq!(
        (json(&here, "resume run --format json")["answered"].clone(), charges(&here, "digits")),
        (end["answered"].clone(), 1)
    );
}

#[test]
fn a_report_states_voters_questions_and_guarantee() {
    let here = folder("labels report");
    for (arguments, voters) in [
        ("pate --teachers 60 --aggregator confident --threshold 0.5 --answers 20 --epsilon 8", "60 teachers"),
        ("knn --turns 2", "the 40 records nearest to a question"),
    ] {
        let verb = arguments.split_whitespace().next().unwrap();
        let said = json(&here, &format!("{arguments} --output {verb} --format json"));
        let [markdown, html] = ["report.md", "report.html"]
            .map(|name| std::fs::read_to_string(here.join(verb).join(name)).unwrap());
        let (answered, refused) = (said["answered"].as_u64().unwrap(), said["refused"].as_u64().unwrap());
        let share = |value: &Value| format!("{:.1} %", 100.0 * value.as_f64().unwrap());
        let (right, unseen, all) = (
            share(&said["answers_right"]),
            share(&said["accuracy"]["unseen"]),
            share(&said["accuracy"]["all"]),
        );
        let head = said["ledger"]["head"].as_str().unwrap();
        let asked = format!("to {} questions", answered + refused);
        for page in [&markdown, &html] {
            for words in [
                voters,
                "when one example is added or removed",
                "Not covered",
                "1e-5",
                head,
                &right,
                &unseen,
                &all,
                &asked,
            ] {
                assert!(page.contains(words), "no {words:?} in {page}");
            }
            for words in
                ["Privacy loss over the answers", "Error rates of the best attack", "Confusion matrix"]
            {
                assert!(page.contains(words), "no {words:?}");
            }
        }
        assert_eq!(html.matches("<svg").count(), 3);
        assert!(
            !html.contains("<script") && !html.contains("http://www.w3.org/1999") && !html.contains("src=")
        );
        let line = |name: &str, value: u64| format!("| {name} | {value} |");
        assert!(
            markdown.contains(&line("answered", answered)) && markdown.contains(&line("refused", refused)),
            "{markdown}"
        );
        // The same again, from what the folder holds.
        let again = run(&here, &format!("report {verb}"));
        assert_eq!((again.code, again.stdout == markdown), (0, true), "{}", again.stderr);
        let report = json(&here, &format!("report {verb} --format json"));
        let per_class: u64 =
            report["answers_per_class"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(per_class, answered);
        // What the answers so far cost rises to what was paid.
        let figures = report["figures"].as_array().unwrap();
        let cost = figures.iter().find(|figure| figure["title"] == "Privacy loss over the answers").unwrap();
        let points = cost["series"][0]["points"].as_array().unwrap();
        let costs: Vec<f64> = points.iter().map(|point| point["upper"].as_f64().unwrap()).collect();
        assert!(costs[0] == 0.0 && costs.is_sorted_by(|a, b| a < b), "{costs:?}");
        assert_eq!(costs.last().unwrap(), &report["epsilon"]["upper"].as_f64().unwrap());
    }
    let [teachers, nearest] =
        ["pate", "knn"].map(|verb| std::fs::read_to_string(here.join(verb).join("report.md")).unwrap());
    assert!(
        teachers.contains("the largest count reaches 30 of 60 ballots, with Gaussian noise"),
        "{teachers}"
    );
    assert!(nearest.contains("| sampling rate | 0.5 |") && nearest.contains("| turns | 2; "), "{nearest}");
    assert!(!nearest.contains("answered only if"), "{nearest}");
}

#[test]
fn external_ballots_need_a_ledger_with_the_same_unit_and_neighbors() {
    let here = folder("labels promise");
    let rows: Vec<String> = (0..20)
        .map(|row| (0..50).map(|teacher| ((row + teacher % 2) % 3).to_string()).collect::<Vec<_>>().join(","))
        .collect();
    let header = (0..50).map(|teacher| format!("t{teacher}")).collect::<Vec<_>>().join(",");
    std::fs::write(here.join("b.csv"), format!("{header}\n{}\n", rows.join("\n"))).unwrap();
    let ask = "pate --ballots b.csv --classes 3 --epsilon 2 --delta 1e-6 --dataset people";
    for (terms, flags, code) in [
        ("--unit user", "", 2),
        ("--neighbors replace", "", 2),
        ("--unit user", "--users", 0),
        ("--unit user --neighbors replace", "--users --neighbors replace", 0),
        ("", "--users", 2),
    ] {
        let _ = std::fs::remove_dir_all(here.join("book"));
        let created =
            run(&here, &format!("ledger create people --epsilon 5 --delta 1e-5 {terms} --ledger book"));
        assert_eq!(created.code, 0, "{}", created.stderr);
        for dry in ["--dry-run", ""] {
            let asked = run(&here, &format!("{ask} {flags} {dry} --ledger book"));
            assert_eq!(asked.code, code, "{terms} | {flags} {dry}: {}", asked.stderr);
            assert!(
                code == 0
                    || asked.stderr.contains("another promise")
                    || asked.stderr.contains("another privacy unit"),
                "{}",
                asked.stderr
            );
        }
    }
    for flag in
        ["--users who.txt", "--schema s.toml", "--public-network n", "--public-test", "--features hog"]
    {
        let refused = run(&here, &format!("{ask} {flag} --dry-run --ledger book"));
        assert_eq!(refused.code, 2, "{flag}: {}", refused.stderr);
    }
}
