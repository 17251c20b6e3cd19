//! Snapshots of whole commands: standard output, standard error and exit code.
//!
//! `snapshots/` has one file per test. A value that differs between two runs is replaced by a marker:
//! `<hash>`, `<time>`, `<noisy>`, and `…` for the last digits of a number. `INSTA_UPDATE=always` writes what
//! the commands print into the files.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use insta::{assert_snapshot, with_settings};

use crate::command::{Ran, folder, words};

/// Hexadecimal digits from which on a word is a hash.
const HASH_DIGITS: usize = 16;
/// Decimals of a number that are compared if it has more than `MANY_DECIMALS`.
const COMPARED_DECIMALS: usize = 4;
const MANY_DECIMALS: usize = 8;
/// Length of a time such as 2026-11-17T07:16:36Z.
const TIME_LENGTH: usize = 20;

/// Replaces hashes, times, noisy values and the last digits of long numbers by markers.
fn mask(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let starts_word = masked.chars().next_back().is_none_or(|last| !last.is_alphanumeric());
        let (length, marker) = match marked(rest).filter(|_| starts_word) {
            Some((length, marker)) => (length, marker),
            None => (first.len_utf8(), rest[..first.len_utf8()].to_owned()),
        };
        masked.push_str(&marker);
        rest = &rest[length..];
    }
    masked
}

/// The length of the value at the start of the text that differs between runs, and its marker.
fn marked(text: &str) -> Option<(usize, String)> {
    let run = |text: &str, is_in: fn(&char) -> bool| text.chars().take_while(is_in).count();
    let hash = run(text, |c| matches!(c, '0'..='9' | 'a'..='f'));
    if hash >= HASH_DIGITS {
        return Some((hash, "<hash>".into()));
    }
    if text.get(..TIME_LENGTH).is_some_and(is_time) {
        return Some((TIME_LENGTH, "<time>".into()));
    }
    let sign = usize::from(text.starts_with('-'));
    let whole = sign + run(&text[sign..], char::is_ascii_digit);
    if whole == sign {
        return None;
    }
    let decimals = text[whole..].strip_prefix('.').map_or(0, |decimals| run(decimals, char::is_ascii_digit));
    let length = if decimals == 0 { whole } else { whole + 1 + decimals };
    let after = &text[length..];
    if after.starts_with(" ± ") || after.trim_start_matches([',', '\n', ' ']).starts_with("\"within\"") {
        return Some((length, "<noisy>".into()));
    }
    let compared = format!("{}…", &text[..(whole + 1 + COMPARED_DECIMALS).min(length)]);
    Some(if decimals > MANY_DECIMALS { (length, compared) } else { (length, text[..length].into()) })
}

fn is_time(text: &str) -> bool {
    text.chars().zip("0000-00-00T00:00:00Z".chars()).all(|(c, pattern)| match pattern {
        '0' => c.is_ascii_digit(),
        other => c == other,
    })
}

/// Runs a command in a folder, without the settings of the user.
fn run(here: &Path, arguments: &str) -> Ran {
    Command::new(env!("CARGO_BIN_EXE_quell"))
        .args(words(arguments))
        .current_dir(here)
        .env_remove("QUELL_LEDGER")
        .env("QUELL_USER", "ada")
        .output()
        .expect("the command starts")
        .into()
}

/// A transcript of commands that run one after the other: each command, what it prints, and its exit code.
///
/// `masked` replaces values that differ between runs.
fn transcript(here: &Path, commands: &[&str], masked: fn(&str) -> String) -> String {
    let mut text = String::new();
    for arguments in commands {
        let ran = run(here, arguments);
        writeln!(text, "{}", format!("$ quell {arguments}").trim_end()).unwrap();
        for (name, printed) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
            if !printed.is_empty() {
                writeln!(text, "--- {name}\n{}", masked(printed).trim_end_matches('\n')).unwrap();
            }
        }
        writeln!(text, "--- exit code {}\n", ran.code).unwrap();
    }
    text
}

/// Compares a text with the file of this name.
fn compare(name: &str, text: &str) {
    with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        assert_snapshot!(name.to_owned(), text);
    });
}

/// Runs commands in a new folder with the example table, and compares the transcript with its snapshot.
fn check(name: &str, commands: &[&str]) {
    let here = folder(&format!("snapshot_{name}"));
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for file in ["census.csv", "census.toml", "votes.csv"] {
        fs::copy(examples.join(file), here.join(file)).unwrap();
    }
    compare(name, &transcript(&here, commands, mask));
}

/// The subcommands that a help text lists.
fn subcommands(help: &str) -> Vec<String> {
    let list = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let lines = list.lines().take_while(|line| !line.is_empty());
    lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

/// Compares the help of a command and of all its subcommands with their snapshots; returns their names.
fn check_help(here: &Path, command: &str) -> BTreeSet<String> {
    let arguments = format!("{command} --help");
    let name = format!("help{}", command.replace([' ', '-'], "_"));
    compare(&name, &transcript(here, &[arguments.trim_start()], str::to_owned));
    let help = run(here, &arguments).stdout;
    let below = subcommands(&help).into_iter().filter(|subcommand| subcommand != "help");
    let names = below.flat_map(|subcommand| check_help(here, &format!("{command} {subcommand}")));
    names.chain([name.clone()]).collect()
}

#[test]
fn help_of_every_command() {
    let here = folder("snapshot_help");
    let compared = check_help(&here, "");
    let files = fs::read_dir(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let names = names.filter_map(|name| Some(name.strip_suffix(".snap")?.to_owned()));
    let stored: BTreeSet<String> = names.filter(|name| name.starts_with("help")).collect();
    assert_eq!(stored, compared, "every snapshot of a help text belongs to a command");
}

#[test]
fn short_help_of_train() {
    check("short_help", &["train -h"]);
}

#[test]
fn costs_of_events() {
    let steps = "--noise-multiplier 1.1 --sampling-rate 0.01 --steps 1000";
    check(
        "account",
        &[
            &format!("account {steps} --delta 1e-5"),
            &format!("account {steps} --epsilon 2"),
            &format!("account {steps} --delta 1e-5 --accountant all --attack --group 2"),
            &format!("account {steps} --delta 1e-5 --attack --group 2 --format json"),
            "account --noise laplace --noise-multiplier 2 --delta 1e-6 --neighbors replace",
        ],
    );
}

#[test]
fn calibrated_values() {
    check(
        "calibrate",
        &[
            "calibrate --epsilon 1 --delta 1e-5 --sampling-rate 0.01 --steps 1000",
            "calibrate --epsilon 1 --delta 1e-5 --sampling-rate 0.01 --noise-multiplier 1.5",
            "calibrate --mu 0.5 --steps 100",
            "calibrate --epsilon 2 --delta 1e-6 --event '{\"pure\":{\"epsilon\":\"?\"}}' --format json",
        ],
    );
}

#[test]
fn curves_in_the_terminal() {
    check(
        "curve",
        &[
            "curve tradeoff --noise laplace --noise-multiplier 1 --sampling-rate 1 --steps 1",
            "curve laplace-gaussian --epsilon 2",
            "curve laplace-gaussian --output densities.svg",
        ],
    );
}

#[test]
fn plans_of_convex_learning() {
    let size = "plan --records 1000 --dimension 10 --epsilon 1";
    check(
        "plan",
        &[
            size,
            &format!("{size} --smoothness 0.25 --strong-convexity 0.05 --neighbors replace"),
            "plan --records 20 --dimension 100 --epsilon 0.1 --loss convex",
            &format!("{size} --loss strongly-convex"),
            &format!("{size} --strong-convexity 2"),
            &format!("{size} --plot records"),
            &format!("{size} --loss convex --plot epsilon --output plan.gif"),
            "plan --records 0 --dimension 10 --epsilon 1",
            &format!("{size} --factor 1"),
        ],
    );
}

#[test]
fn models_and_their_layers() {
    check(
        "models",
        &["models", "models logistic --input 4 --outputs 2", "models logistic --input 4 --format json"],
    );
}

#[test]
fn a_ledger_from_creation_to_a_larger_budget() {
    check(
        "ledger",
        &[
            "ledger create people --epsilon 3 --delta 1e-6",
            "ledger create patients --epsilon 1 --delta 1e-6 --unit user --neighbors replace",
            "ledger create tests --no-cap --delta 1e-6",
            "query census.csv count --dataset people --epsilon 0.5",
            "ledger statement people",
            "query census.csv count --dataset people --epsilon 0.25 --where \"age >= 65\" --format json",
            "ledger list",
            "ledger list --format json",
            "ledger show people",
            "ledger statement people",
            "ledger statement patients",
            "ledger statement tests",
            "ledger raise people --epsilon 5 --reason 'approved by the review board'",
            "ledger raise people --epsilon 5 --reason 'approved by the review board' --accept",
            "ledger statement people",
            "ledger export people --output people.json",
            "ledger verify --export people.json",
        ],
    );
}

#[test]
fn dry_runs_charge_nothing() {
    check(
        "dry_run",
        &[
            "ledger create census --epsilon 3 --delta 1e-6",
            "query census.csv mean --column age --bounds 0 100 --epsilon 0.5 --dry-run",
            "query census.csv mean --column age --bounds 0 100 --epsilon 0.5 --dry-run --format json",
            "query census.csv histogram --column sex --epsilon 0.5 --dry-run",
            "train census.csv --schema census.toml --records 5000 --epsilon 1 --delta 1e-7 --epochs 5 --dry-run",
            "pate --ballots votes.csv --labels 10 --most 2 --epsilon 4 --delta 1e-5 --answers 20 --dry-run",
            "ledger list",
        ],
    );
}

#[test]
fn schemas_with_gaps() {
    check(
        "schema",
        &["schema census.csv --numbers age,hours_per_week --categories education,sex --label income"],
    );
}

#[test]
fn wrong_flags_are_errors() {
    check(
        "refused_flags",
        &[
            "",
            "acount",
            "account --noise-multiplier 1",
            "account --delta 1e-5",
            "account --noise-multiplier 0 --delta 1e-5",
            "account --noise-multiplier 2 --delta 1e-5 --steps 0",
            "account --event '{\"gauss\":{}}' --delta 1e-5",
            "account --noise-multiplier 2 --sampling without-replacement --batch-size 64 --records 5000 --delta 1e-6",
            "calibrate --steps 10",
            "calibrate --noise-multiplier 2 --epsilon 1 --delta 1e-5",
            "curve tradeoff --output plot.pdf",
            "models nonsense",
            "models additiv",
            "plan --records 500 --dimension 10 --epsilon 1 --plot records",
        ],
    );
}

#[test]
fn targets_that_nothing_meets_are_refused() {
    check(
        "refused_targets",
        &[
            "account --event '\"non_private\"' --delta 1e-5",
            "calibrate --epsilon 1e-9 --delta 1e-12 --noise-multiplier 1e-3 --sampling-rate 1",
            "calibrate --epsilon 0.1 --delta 1e-5 --noise-multiplier 1 --sampling-rate 1 --steps 1",
        ],
    );
}

#[test]
fn wrong_questions_are_errors() {
    check(
        "refused_questions",
        &[
            "query census.csv count --epsilon 1",
            "ledger create census --epsilon 1 --delta 1e-6",
            "ledger create census --epsilon 1 --delta 1e-6",
            "ledger show people",
            "query census.csv mean --epsilon 0.5",
            "query census.csv mean --column age --epsilon 0.5",
            "query census.csv mean --column years --bounds 0 100 --epsilon 0.5",
            "query census.csv count --epsilon 0",
            "query census.csv count --epsilon 0.5 --where \"age >= \"",
            "query absent.csv count --epsilon 0.5 --dataset census",
            "ledger list",
        ],
    );
}

#[test]
fn releases_beyond_the_budget_are_refused() {
    check(
        "refused_releases",
        &[
            "ledger create census --epsilon 1 --delta 1e-6",
            "query census.csv count --epsilon 2",
            "query census.csv histogram --column sex --epsilon 0.5 --delta 1e-6",
            "train census.csv --schema census.toml --records 5000 --epsilon 2 --delta 1e-7 --epochs 5",
            "ledger export census --output census.json",
            "ledger create other --epsilon 1 --delta 1e-6 --ledger elsewhere",
            "ledger verify --export census.json --ledger elsewhere",
            "ledger list",
        ],
    );
}

#[test]
fn runs_and_models_that_are_absent_are_errors() {
    check(
        "refused_runs",
        &[
            "resume runs/absent",
            "report runs/absent",
            "predict absent.safetensors",
            "predict census.csv",
            "train census.csv --epsilon 1",
            "train census.csv --schema census.toml --epsilon 1",
            "train census.csv --schema census.toml --records 5000 --budget 3 --epsilon 1",
            "train census.csv --schema census.toml --records 5000 --epsilon 1 --model additiv",
            "train census.csv --schema census.toml --records 5000 --epsilon 1 --model something",
            "train census.csv --schema census.toml --records 5000 --epsilon 1 --model linear",
            "train census.csv --schema census.toml --records 5000 --epsilon 1 --model linear --method dp-sgd",
            "train census.csv --schema census.toml --records 5000 --epsilon 1 --model additive --epochs 3",
            "train census.csv --schema census.toml --records 5000 --epsilon 1 --method dp-sgd --quantile 0.3",
            "train census.csv --schema census.toml --records 5000 --epsilon -1",
            "train census.csv --schema census.toml --records 5000 --epsilon 1 --learning-rate 1e7",
        ],
    );
}

#[test]
fn only_values_that_differ_between_runs_are_masked() {
    let hash = "9e48c9341a1e9607";
    assert_eq!(mask(&format!("head {hash}, line 54")), "head <hash>, line 54");
    assert_eq!(mask("1  2026-11-17T07:16:36Z   0.5000"), "1  <time>   0.5000");
    assert_eq!(mask("count: -185 ± 31"), "count: <noisy> ± 31");
    assert_eq!(mask("[5.189012345678, -2.5, 1e-5]"), "[5.1890…, -2.5, 1e-5]");
    assert_eq!(mask("ε ≤ 5.194 at δ = 0.000001, x28"), "ε ≤ 5.194 at δ = 0.000001, x28");
}
