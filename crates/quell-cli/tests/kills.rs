//! Runs that were killed between two writes, resumed twice at once, or resumed with another ledger than the one that paid.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use crate::command::{Ran, charges, folder, json, run, start};
use serde_json::Value;

/// Ballots of so many teachers on so many questions, who all agree.
fn ballots(here: &Path, teachers: usize, questions: usize) {
    let header: Vec<String> = (0..teachers).map(|teacher| format!("t{teacher}")).collect();
    let rows: Vec<String> =
        (0..questions).map(|question| vec![(question % 4).to_string(); teachers].join(",")).collect();
    std::fs::write(here.join("votes.csv"), format!("{}\n{}\n", header.join(","), rows.join("\n"))).unwrap();
}

/// A copy of all ledgers, as a backup would have it.
fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

fn remove(here: &Path, files: &[&str]) {
    for file in files {
        let _ = std::fs::remove_file(here.join(file));
    }
}

fn wait_for(mut there: impl FnMut() -> bool) {
    while !there() {
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Asks a run to stop, and waits until it has.
fn interrupt(child: Child) -> Ran {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    child.wait_with_output().unwrap().into()
}

fn metrics(here: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(here.join("run/metrics.json")).ok()?).ok()
}

#[test]
fn an_older_copy_of_the_ledger_cannot_pay_for_steps_again() {
    let here = folder("kills older ledger");
    let taken = || metrics(&here).map_or(0, |metrics| metrics["taken"].as_u64().unwrap());
    let child =
        start(&here, "train --steps 20000 --model logistic --epsilon 3 --output run").spawn().unwrap();
    wait_for(|| taken() > 0);
    assert_eq!(interrupt(child).code, 1);
    let first = taken();
    copy(&here.join(".quell"), &here.join("older"));
    let child = start(&here, "resume run").spawn().unwrap();
    wait_for(|| taken() > first + 800);
    assert_eq!(interrupt(child).code, 1);
    copy(&here.join(".quell"), &here.join("newer"));
    let state: Vec<(PathBuf, Vec<u8>)> = ["checkpoint.safetensors", "metrics.json", "witness.json"]
        .iter()
        .filter_map(|name| {
            Some((here.join("run").join(name), std::fs::read(here.join("run").join(name)).ok()?))
        })
        .collect();
    copy(&here.join("older"), &here.join(".quell"));
    let refused = run(&here, "resume run");
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""), "{}", refused.stderr);
    assert!(refused.stderr.contains("an older copy"), "{}", refused.stderr);
    // Without the witness, the checkpoint alone is ahead of its lease.
    remove(&here, &["run/witness.json"]);
    let refused = run(&here, "resume run");
    assert!(
        refused.code == 1 && refused.stderr.contains("steps, but the ledger has leased"),
        "{}",
        refused.stderr
    );
    assert_eq!(taken(), state_taken(&state));
    // With the newest ledger it goes on.
    copy(&here.join("newer"), &here.join(".quell"));
    for (path, bytes) in &state {
        std::fs::write(path, bytes).unwrap();
    }
    let before = taken();
    let child = start(&here, "resume run").spawn().unwrap();
    wait_for(|| taken() > before);
    assert_eq!(interrupt(child).code, 1);
}

fn state_taken(state: &[(PathBuf, Vec<u8>)]) -> u64 {
    let (_, bytes) = state.iter().find(|(path, _)| path.ends_with("metrics.json")).unwrap();
    serde_json::from_slice::<Value>(bytes).unwrap()["taken"].as_u64().unwrap()
}

#[test]
fn a_run_cannot_use_the_charge_of_another_run() {
    let here = folder("kills other charge");
    ballots(&here, 200, 30);
    let asked = "pate --ballots votes.csv --classes 4 --deviation 20 --answers 20 --epsilon 2 --budget 4 --delta 1e-5";
    assert_eq!(run(&here, "ledger create votes --epsilon 4 --delta 1e-5").code, 0);
    copy(&here.join(".quell"), &here.join("older"));
    assert_eq!(run(&here, &format!("{asked} --output run")).code, 0);
    // In the older copy, the line that paid for the first run pays for another.
    copy(&here.join("older"), &here.join(".quell"));
    assert_eq!(run(&here, &format!("{asked} --output other")).code, 0);
    remove(&here, &["run/outcome.json", "run/witness.json", "run/answers.jsonl"]);
    let refused = run(&here, "resume run");
    assert!(
        refused.code == 1 && refused.stderr.contains("an older copy"),
        "{} {}",
        refused.code,
        refused.stderr
    );
}

#[test]
fn the_cost_of_votes_is_charged_once() {
    let here = folder("kills reveal");
    ballots(&here, 600, 300);
    let asked = "pate --ballots votes.csv --classes 4 --deviation 40 --answers 300 --delta 1e-5 --budget 20 --reveal-cost";
    let first = json(&here, &format!("{asked} --output run --format json"));
    assert!(first["revealed"]["epsilon"].as_f64().is_some() && charges(&here, "votes") == 2, "{first}");
    // Killed before it said that it had finished.
    remove(&here, &["run/outcome.json"]);
    let again = json(&here, "resume run --format json");
    assert_eq!((&again["revealed"], charges(&here, "votes")), (&first["revealed"], 2), "{again}");
    // Killed after the step was leased and before its result was written: lost, and not paid for again.
    remove(&here, &["run/outcome.json", "run/revealed.json"]);
    let lost = json(&here, "resume run --format json");
    assert_eq!(
        (&lost["revealed"], &lost["reveal_lost"], charges(&here, "votes")),
        (&Value::Null, &true.into(), 2),
        "{lost}"
    );
    // Killed before it knew which line had paid.
    remove(&here, &["run/outcome.json", "run/reveal-paid.json"]);
    let text = run(&here, "resume run");
    assert_eq!((text.code, charges(&here, "votes")), (0, 2));
    // The claim is that of the answers. The revealed cost is a second charge, and the claim says so.
    assert!(text.stdout.contains("the revealed cost of the votes is not included"), "{}", text.stdout);
}

#[test]
fn votes_are_not_charged_if_the_budget_is_too_small_for_their_cost() {
    let here = folder("kills reveal budget");
    ballots(&here, 600, 30);
    // The votes alone fit.
    let asked = "pate --ballots votes.csv --classes 4 --answers 30 --epsilon 2 --delta 1e-5 --budget 2.05";
    let refused = run(&here, &format!("{asked} --reveal-cost --output run"));
    assert!(
        refused.code == 1 && refused.stderr.contains("the budget is 2.05"),
        "{} {}",
        refused.code,
        refused.stderr
    );
    assert_eq!((charges(&here, "votes"), here.join("run").exists()), (0, false));
    // A threshold below zero is no share of ballots that a cost is known for.
    let negative = "pate --ballots votes.csv --classes 4 --answers 30 --deviation 40 --aggregator confident --threshold -0.5";
    let refused = run(
        &here,
        &format!("{negative} --delta 1e-5 --budget 20 --reveal-cost --dataset other --output run"),
    );
    assert!(refused.code == 2 && refused.stderr.contains("reveal"), "{} {}", refused.code, refused.stderr);
    assert_eq!(run(&here, &format!("{asked} --output run")).code, 0);
}

#[test]
fn stable_winners_are_charged_once() {
    let here = folder("kills stable");
    ballots(&here, 200, 30);
    let asked =
        "pate --ballots votes.csv --classes 4 --aggregator stable --epsilon 8 --output run --format json";
    let first = json(&here, asked);
    // Noise decides how many winners are stable.
    assert!(first["answered"].as_u64() > Some(0), "{first}");
    assert_eq!(charges(&here, "votes"), 1);
    // Killed before it knew which line had paid.
    remove(&here, &["run/outcome.json", "run/paid.json"]);
    let again = json(&here, "resume run --format json");
    assert_eq!((&again["answered"], charges(&here, "votes")), (&first["answered"], 1), "{again}");
    assert_eq!(again["ledger"], first["ledger"]);
    // Killed before an answer was written: what was leased is lost, and not paid for again.
    remove(&here, &["run/outcome.json", "run/answers.jsonl"]);
    let lost = json(&here, "resume run --format json");
    assert_eq!((lost["answered"].as_u64(), charges(&here, "votes")), (Some(0), 1), "{lost}");
    assert_eq!(run(&here, "ledger verify").code, 0);
}

#[cfg(unix)]
#[test]
fn ballots_are_readable_by_the_owner_only_and_deleted_after_the_questions() {
    use std::os::unix::fs::PermissionsExt;
    let here = folder("kills private");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let private = here.join("run/private");
    let mut child = start(&here, "pate --teachers 200 --output run").spawn().unwrap();
    wait_for(|| private.join("ballots-3").is_file());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(mode(&private), 0o700);
    let files: Vec<PathBuf> = std::fs::read_dir(&private).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 1);
    for file in &files {
        assert_eq!(mode(file), 0o600, "{}", file.display());
    }
    assert_eq!(run(&here, "resume run").code, 0);
    assert!(!private.exists());
    // Killed between the last write and the removal: whatever touches the folder next removes them.
    for arguments in ["resume run", "report run", "evaluate run", "predict run"] {
        std::fs::create_dir(&private).unwrap();
        std::fs::write(private.join("ballots-0"), [0; 64]).unwrap();
        assert_eq!(run(&here, arguments).code, 0, "{arguments}");
        assert!(!private.exists(), "{arguments} leaves the ballots");
    }
}

#[cfg(unix)]
#[test]
fn two_processes_cannot_work_on_one_run() {
    let here = folder("kills lock");
    let mut child = start(&here, "train --steps 20000 --output run").spawn().unwrap();
    wait_for(|| metrics(&here).is_some());
    let second = run(&here, "resume run");
    assert_eq!((second.code, second.stdout.as_str()), (2, ""), "{}", second.stderr);
    assert!(second.stderr.contains("another process is working on the run"), "{}", second.stderr);
    assert!(child.try_wait().unwrap().is_none(), "the first goes on");
    // A kill leaves no lock behind.
    child.kill().unwrap();
    child.wait().unwrap();
    let before = std::fs::read(here.join("run/metrics.json")).unwrap();
    let child = start(&here, "resume run").spawn().unwrap();
    wait_for(|| std::fs::read(here.join("run/metrics.json")).unwrap() != before);
    let stopped = interrupt(child);
    assert!(stopped.code == 1 && stopped.stderr.contains("Stopped at step"), "{}", stopped.stderr);
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_reads_records_leaves_no_core() {
    let here = folder("kills core");
    let mut child = start(&here, "train --steps 20000 --output run").spawn().unwrap();
    wait_for(|| here.join("run/paid.json").is_file());
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let core: Vec<&str> = limits.lines().filter(|line| line.starts_with("Max core file size")).collect();
    assert_eq!(core[0].split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"], "{core:?}");
}

#[test]
fn an_answer_in_a_file_is_charged_once() {
    let here = folder("kills answer");
    let rows: Vec<String> = (0..500).map(|row| format!("{},{}", row % 9, ["a", "b"][row % 2])).collect();
    std::fs::write(here.join("people.csv"), format!("x,y\n{}\n", rows.join("\n"))).unwrap();
    assert_eq!(run(&here, "ledger create people --epsilon 20 --delta 1e-5").code, 0);
    let read = |file: &str| std::fs::read_to_string(here.join(file)).unwrap();
    // What was kept, without one of its answers: killed before it was kept.
    let forget = |file: &str, answer: &str| {
        let mut kept: Value = serde_json::from_str(&read(file)).unwrap();
        assert!(kept["answers"].as_object_mut().unwrap().remove(answer).is_some(), "{kept}");
        std::fs::write(here.join(file), kept.to_string()).unwrap();
    };
    let asked = "query people.csv count --epsilon 1 --output count.txt";
    assert_eq!(run(&here, asked).code, 0);
    let first = read("count.txt");
    assert!(first.contains('±') && charges(&here, "people") == 1, "{first}");
    // Killed before the file was written, or not at all.
    for removed in [&["count.txt"] as &[&str], &[]] {
        remove(&here, removed);
        let again = run(&here, asked);
        assert!(
            again.code == 0 && again.stderr.contains("was charged for this answer before"),
            "{}",
            again.stderr
        );
        assert_eq!((read("count.txt"), charges(&here, "people")), (first.clone(), 1));
    }
    let other = run(&here, "query people.csv count --epsilon 2 --output count.txt");
    assert!(other.code == 2 && other.stderr.contains("already exists"), "{}", other.stderr);
    forget("count.txt.paid.json", "answer");
    let lost = run(&here, asked);
    assert!(lost.code == 2 && lost.stderr.contains("was paid for and is lost"), "{}", lost.stderr);
    assert_eq!(charges(&here, "people"), 1);
    // Killed before the charge.
    let mut kept: Value = serde_json::from_str(&read("count.txt.paid.json")).unwrap();
    kept["key"] = "another".into();
    std::fs::write(here.join("count.txt.paid.json"), kept.to_string()).unwrap();
    assert_eq!((run(&here, asked).code, charges(&here, "people")), (0, 2));
    // Stored by an earlier version, with the question in its debug form.
    let mut kept: Value = serde_json::from_str(&read("count.txt.paid.json")).unwrap();
    let question: Value = serde_json::from_str(kept["question"].as_str().unwrap()).unwrap();
    assert_eq!(question["query"]["statistic"], "count");
    kept["question"] =
        r#"query ("people.csv", Count, None, None, None, None, 0.5) (0.95, None, 1.0, None, Laplace, None)"#
            .into();
    std::fs::write(here.join("count.txt.paid.json"), kept.to_string()).unwrap();
    let earlier = run(&here, asked);
    assert_eq!((earlier.code, charges(&here, "people")), (2, 2));
    assert!(
        earlier.stderr.contains("count.txt.paid.json was written by an earlier version"),
        "{}",
        earlier.stderr
    );
    assert!(earlier.stderr.contains("hint: ask again with another --output"), "{}", earlier.stderr);
    // All columns of a schema are one charge.
    let asked = "schema people.csv --numbers x --within 0 9 --label y --epsilon 8 --output schema.toml";
    assert_eq!((run(&here, asked).code, charges(&here, "people")), (0, 3));
    let first = read("schema.toml");
    remove(&here, &["schema.toml"]);
    assert_eq!((run(&here, asked).code, charges(&here, "people")), (0, 3));
    assert_eq!(read("schema.toml"), first);
    forget("schema.toml.paid.json", "schema");
    let lost = run(&here, asked);
    assert!(
        lost.code == 0 && lost.stderr.contains("all columns were charged and then lost"),
        "{}",
        lost.stderr
    );
    assert_eq!((charges(&here, "people"), run(&here, "ledger verify").code), (3, 0));
}

#[test]
fn a_run_whose_only_step_was_lost_says_so_and_has_no_model() {
    let here = folder("kills only step");
    assert_eq!(run(&here, "train --steps 1 --model logistic --epsilon 3 --output run").code, 0);
    // As after a kill between the lease and the checkpoint.
    remove(
        &here.join("run"),
        &["checkpoint.safetensors", "metrics.json", "model.safetensors", "report.md", "report.html"],
    );
    let resumed = run(&here, "resume run");
    assert_eq!(resumed.code, 2, "{}", resumed.stderr);
    assert!(
        resumed.stderr.contains("all steps of the run in run were charged and lost"),
        "{}",
        resumed.stderr
    );
    assert!(!here.join("run/metrics.json").exists() && !here.join("run/model.safetensors").exists());
    assert_eq!(charges(&here, "digits"), 1);
}
