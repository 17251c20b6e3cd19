//! How the command behaves towards people and other programs.

use std::process::{Command, Stdio};

use crate::command::{folder, quell};

/// Every subcommand that has a help page.
const PAGES: [&str; 23] = [
    "",
    "account",
    "calibrate",
    "curve",
    "curve epsilon-steps",
    "curve delta-epsilon",
    "curve tradeoff",
    "curve laplace-gaussian",
    "curve moments-advanced",
    "evaluate",
    "init",
    "knn",
    "ledger",
    "models",
    "pate",
    "plan",
    "predict",
    "query",
    "report",
    "resume",
    "schema",
    "synthesize",
    "train",
];

#[test]
fn every_example_in_the_help_runs() {
    let tables = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let binaries = std::path::Path::new(env!("CARGO_BIN_EXE_quell")).parent().unwrap();
    let path = format!("{}:{}", binaries.display(), std::env::var("PATH").unwrap());
    for page in PAGES {
        let help = quell(&format!("{page} --help")).data();
        let examples =
            help.split_once("Examples:\n").unwrap_or_else(|| panic!("no examples in {page} --help")).1;
        let examples: Vec<&str> = examples.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        assert!(examples.len() >= 2, "{page}");
        // A page is complete in itself, given the table it speaks of.
        let folder = folder(&format!("examples {page}"));
        for file in ["census.csv", "census.toml", "votes.csv", "questions.toml"] {
            std::fs::copy(tables.join(file), folder.join(file)).unwrap();
        }
        for example in examples {
            // What is asked about must be there first: a ledger, or a run.
            let opens = ["query", "schema"].contains(&page) && example.starts_with("quell ledger create");
            let trains = ["evaluate", "predict", "report", "resume"].contains(&page)
                && example.starts_with("quell train");
            let labels = page == "report" && example.starts_with("quell knn");
            assert!(opens || trains || labels || example.contains(&format!("quell {page}")), "{example}");
            let ran = Command::new("sh")
                .args(["-c", example])
                .current_dir(&folder)
                .env("PATH", &path)
                .output()
                .unwrap();
            let stderr = String::from_utf8(ran.stderr).unwrap();
            assert!(ran.status.success(), "{example}: {stderr}");
            // These say what was paid, or what is promised, beside what they print.
            if [
                "init",
                "knn",
                "ledger",
                "pate",
                "query",
                "train",
                "resume",
                "predict",
                "evaluate",
                "report",
                "schema",
                "synthesize",
            ]
            .iter()
            .any(|verb| example.contains(&format!("quell {verb}")))
            {
                assert!(!ran.stdout.is_empty() || !stderr.is_empty(), "{example}");
                continue;
            }
            match example.split_once("--output ") {
                Some((_, file)) => {
                    assert!(
                        folder.join(file).exists() && stderr == format!("wrote {file}\n"),
                        "{example}: {stderr}"
                    );
                }
                None => assert!(!ran.stdout.is_empty() && stderr.is_empty(), "{example}: {stderr}"),
            }
        }
    }
}

#[test]
fn help_and_version_go_to_standard_output() {
    assert!(quell("--version").data().starts_with("quell "));
    assert!(quell("account -h").data().contains("--noise-multiplier"));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    for arguments in [
        "--help",
        "account --noise-multiplier 1 --delta 1e-5",
        "curve laplace-gaussian --format json",
        "curve tradeoff",
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_quell"))
            .args(arguments.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let ran = child.wait_with_output().unwrap();
        assert_eq!(
            (ran.status.code(), String::from_utf8(ran.stderr).unwrap().as_str()),
            (Some(0), ""),
            "{arguments}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_quell"))
        .args(["account", "--noise-multiplier", "1", "--delta", "1e-5"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(2));
    assert!(String::from_utf8(ran.stderr).unwrap().starts_with("error: cannot write to standard output"));
}

#[test]
fn no_colour_is_ever_printed() {
    let run = |arguments: &str| {
        let ran = Command::new(env!("CARGO_BIN_EXE_quell"))
            .args(arguments.split_whitespace())
            .envs([("CLICOLOR_FORCE", "1"), ("FORCE_COLOR", "1"), ("TERM", "xterm-256color")])
            .output()
            .unwrap();
        [ran.stdout, ran.stderr].concat()
    };
    for arguments in
        ["--help", "account", "account --help", "account --noise-multiplier 1 --delta 1e-5", "curve tradeoff"]
    {
        assert!(!run(arguments).contains(&0x1b), "{arguments}");
    }
}
