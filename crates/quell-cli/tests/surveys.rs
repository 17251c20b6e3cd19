//! `quell pate --ballots` where teachers name labels or say numbers.

use std::{path::Path, time::Duration};

use crate::command::{charges, folder, json, run, start};
use serde_json::{Value, json};

/// The answers of a journal, whose questions must come in order and without a gap.
fn answers(here: &Path, run: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(here.join(run).join("answers.jsonl")).unwrap();
    let entries: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!((0..).zip(&entries).all(|(question, entry): (u64, _)| entry["question"] == question), "{run}");
    entries.into_iter().map(|entry| entry["answer"].clone()).collect()
}

/// A file with a row for each question, in which a teacher's cell is what `cell` says.
fn write(here: &Path, name: &str, questions: usize, teachers: usize, cell: impl Fn(usize, usize) -> String) {
    let header: Vec<String> = (0..teachers).map(|teacher| format!("t{teacher}")).collect();
    let row =
        |question: usize| (0..teachers).map(|teacher| cell(question, teacher)).collect::<Vec<_>>().join(",");
    let rows: Vec<String> = (0..questions).map(row).collect();
    std::fs::write(here.join(name), format!("{}\n{}\n", header.join(","), rows.join("\n"))).unwrap();
}

#[test]
fn majority_labels_win_and_cost_depends_on_the_labels_per_ballot() {
    let here = folder("surveys labels");
    // Question 5 has no label that wins; some name nothing, some another label, and some write spaces.
    write(&here, "votes.csv", 30, 200, |question, teacher| match (question, teacher) {
        (5, _) | (_, 0..20) => String::new(),
        (_, 20..40) => format!("{}", (question + 3) % 6),
        (_, 40..60) => format!("{} {}", (question + 1) % 6, question % 6),
        _ => format!("{};{}", question % 6, (question + 1) % 6),
    });
    let asked = "pate --ballots votes.csv --labels 6 --most 2 --deviation 5 --answers 20";
    let ran = json(&here, &format!("{asked} --output run --format json"));
    assert_eq!((ran["answered"].as_u64(), ran["refused"].as_u64()), (Some(20), Some(0)), "{ran}");
    // Two labels more and two less, twenty times: μ = √20 · 2 / 5.
    let epsilon = ran["epsilon"]["upper"].as_f64().unwrap();
    assert!(epsilon > 8.7207 && epsilon < 8.75, "{ran}");
    let found = answers(&here, "run");
    assert_eq!(found.len(), 20);
    for (question, answer) in found.iter().enumerate() {
        let (a, b) = (question % 6, (question + 1) % 6);
        let wanted = if question == 5 { json!([]) } else { json!([a.min(b), a.max(b)]) };
        // Majorities of 80 and more over noise of 5.
        assert_eq!(*answer, wanted, "question {question}");
    }
    assert_eq!(charges(&here, "votes"), 1);
    // If a ballot may name all, all six may move: √6 for √4.
    let all = run(&here, "pate --ballots votes.csv --labels 6 --deviation 5 --answers 20 --dry-run");
    assert!(all.stderr.contains("20 answers: ε ≤ 11.20 at δ = 1e-5; nothing was charged"), "{}", all.stderr);
    // As many as ε pays for, in words.
    let text = run(&here, "pate --ballots votes.csv --labels 6 --most 2 --epsilon 2 --dataset other");
    assert!(
        text.code == 0 && text.stdout.contains("answered, 0 refused\nclaim: ε ≤ "),
        "{}{}",
        text.stdout,
        text.stderr
    );
    assert_eq!(run(&here, "ledger verify").code, 0);
}

#[test]
fn the_answer_to_a_question_about_numbers_is_their_clamped_mean() {
    let here = folder("surveys numbers");
    // Question 3 is far outside of the bounds.
    write(&here, "votes.csv", 20, 200, |question, teacher| match question {
        3 => "1e6".into(),
        _ => format!("{}", question as f64 - 4.0 + (teacher as f64 - 99.5) / 50.0),
    });
    let asked =
        "pate --ballots votes.csv --range -10,30 --deviation 4 --answers 20 --output run --format json";
    let ran = json(&here, asked);
    // One ballot moves the sum by the distance of the bounds, twenty times: μ = √20 / 4.
    let epsilon = ran["epsilon"]["upper"].as_f64().unwrap();
    assert!(epsilon > 4.9833 && epsilon < 5.0 && ran["answered"] == 20, "{ran}");
    let deviation = 4.0 * 40.0 / 200.0;
    let mut exact = 0;
    for (question, answer) in answers(&here, "run").into_iter().enumerate() {
        let (answer, truth) =
            (answer.as_f64().unwrap(), if question == 3 { 30.0 } else { question as f64 - 4.0 });
        assert!(
            (answer - truth).abs() < 6.0 * deviation && answer <= 30.0,
            "question {question}: {answer} for {truth}"
        );
        exact += usize::from((answer - truth).abs() < 1e-6);
    }
    // All without noise, or at the bound.
    assert!(exact <= 1, "no noise");
    assert_eq!(charges(&here, "votes"), 1);
}

#[test]
fn refused_runs_leave_no_files_and_no_charge() {
    let here = folder("surveys refused");
    for (name, text) in [
        ("outside.csv", "a,b,c\n0,1,2\n0,1;3,1\n"),
        ("twice.csv", "a,b,c\n0,1;1,2\n"),
        ("many.csv", "a,b,c\n0,1,2\n,,\n0;1;2,1,1\n"),
        ("negative.csv", "a,b,c\n0,-1,1\n"),
        ("ragged.csv", "a,b,c\n0,1,2\n0,1\n"),
        ("words.csv", "a,b,c\n0,1,two\n"),
        ("holes.csv", "a,b,c\n0,1,2\n0,,2\n"),
        ("infinite.csv", "a,b,c\n0,1,inf\n"),
        ("empty.csv", "a,b,c\n"),
        ("good.csv", "a,b,c\n0,1,2\n0,1,1\n"),
    ] {
        std::fs::write(here.join(name), text).unwrap();
    }
    // What is no ballot names nothing. No word and no number tells of it.
    let priced = |name: &str, about: &str| {
        run(&here, &format!("pate --ballots {name} {about} --answers 1 --epsilon 2 --dry-run"))
    };
    for (about, names) in [
        (
            "--labels 3 --most 2",
            ["outside.csv", "twice.csv", "many.csv", "negative.csv", "words.csv", "ragged.csv"].as_slice(),
        ),
        ("--range 0,1", &["ragged.csv", "words.csv", "holes.csv", "infinite.csv"]),
    ] {
        let good = priced("good.csv", about);
        assert_eq!(good.code, 0, "{}", good.stderr);
        for name in names {
            let bad = priced(name, about);
            assert_eq!(
                (bad.code, bad.stdout.replace(name.trim_end_matches(".csv"), "good"), bad.stderr),
                (good.code, good.stdout.clone(), good.stderr.clone()),
                "{name} {about}"
            );
        }
    }
    for (arguments, says) in [
        ("empty.csv --labels 3", "no question is given"),
        ("empty.csv --range 0,1", "no question is given"),
        ("missing.csv --range 0,1", "missing.csv"),
        ("good.csv --labels 0", "labels"),
        ("good.csv --labels 3 --most 0", "most"),
        ("good.csv --labels 3 --most 4", "most"),
        ("good.csv --range 1,0", "--range"),
        ("good.csv --range 1", "--range"),
        ("good.csv --range 0,nan", "--range"),
        ("good.csv --range 0,1 --most 2", "--most"),
        ("good.csv --range 0,1 --labels 3", "--labels"),
        ("good.csv --classes 3 --labels 3", "--labels"),
        ("good.csv", "--labels"),
        ("good.csv --labels 3 --aggregator confident", "aggregator"),
        ("good.csv --range 0,1 --reveal-cost", "reveal"),
        ("good.csv --range 0,1 --answers 3", "answers is 3"),
        ("good.csv --labels 3 --deviation 0.01 --epsilon 1", "does not pay for a single answer"),
    ] {
        let ran = run(&here, &format!("pate --ballots {arguments}"));
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments}: {}", ran.stderr);
        assert!(ran.stderr.contains(says) && ran.stderr.contains("error: "), "{arguments}: {}", ran.stderr);
        assert!(!ran.stderr.contains("internal error"), "{arguments}: {}", ran.stderr);
    }
    let over =
        run(&here, "pate --ballots good.csv --labels 3 --answers 2 --epsilon 2 --budget 1 --delta 1e-5");
    assert!(over.code == 1 && over.stderr.contains("the budget is 1"), "{}", over.stderr);
    assert!(!here.join("runs").exists(), "a run that was refused leaves no folder");
    assert_eq!(charges(&here, "good"), 0);
}

#[test]
fn repeated_kills_charge_no_answer_twice() {
    const QUESTIONS: usize = 1600;
    let here = folder("surveys killed");
    write(&here, "votes.csv", QUESTIONS, 300, |question, teacher| {
        format!("{};{}", question % 7, 7 + teacher % 2)
    });
    let asked = "pate --ballots votes.csv --labels 9 --most 2 --deviation 24 --answers 1600 --output run";
    let length = || std::fs::metadata(here.join("run/answers.jsonl")).map_or(0, |file| file.len());
    let mut child = start(&here, asked).spawn().unwrap();
    for _ in 0..4 {
        // Killed when it has answered something.
        let before = length();
        while length() == before && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        child = start(&here, "resume run").spawn().unwrap();
    }
    child.wait().unwrap();
    let end = json(&here, "resume run --format json");
    assert_eq!(charges(&here, "votes"), 1, "one plan was paid for once");
    let found = answers(&here, "run");
    // Sixteen rounds of a hundred questions: who is killed loses the round it is in.
    assert!(found.len() >= QUESTIONS - 400, "{}", found.len());
    assert!(end["answered"].as_u64().unwrap() as usize == found.len(), "{end}");
    assert!(found.iter().enumerate().all(|(question, answer)| answer[0] == question % 7), "all named it");
    // Killed before it said that it had finished, and the rest of the answers lost: what is left is not paid for, and so not answered again.
    std::fs::remove_file(here.join("run/outcome.json")).unwrap();
    let text = std::fs::read_to_string(here.join("run/answers.jsonl")).unwrap();
    let kept: Vec<&str> = text.lines().take(300).collect();
    std::fs::write(here.join("run/answers.jsonl"), format!("{}\n", kept.join("\n"))).unwrap();
    let again = json(&here, "resume run --format json");
    assert_eq!((again["answered"].as_u64(), charges(&here, "votes")), (Some(300), 1), "{again}");
    assert_eq!(run(&here, "ledger verify").code, 0);
}
