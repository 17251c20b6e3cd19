//! Names, reasons and files that try to write to the terminal themselves.

use std::path::Path;

use crate::command::{Ran, folder, start};
use serde_json::Value;

/// Turns red, goes back to the beginning of the line, and forges one.
const HOSTILE: &str = "a\u{1b}[31m\r\nline 9 forged\nhint: forged\u{9b}2J\u{7}\u{202e}\u{7f}";

fn ran(here: &Path, arguments: &[&str]) -> Ran {
    start(here, "").args(arguments).output().unwrap().into()
}

fn forged(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("line 9 forged") || line.starts_with("hint: forged"))
}

/// Whether nothing in it acts on a terminal, and no line is forged.
#[track_caller]
fn harmless(ran: &Ran) {
    for text in [&ran.stdout, &ran.stderr] {
        let acts = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        assert!(acts.is_none() && !forged(text), "{acts:?} in {text:?}");
    }
}

#[test]
fn control_characters_in_arguments_are_escaped() {
    let here = folder("hostile typed");
    let created = ran(&here, &["ledger", "create", HOSTILE, "--epsilon", "1", "--delta", "1e-6"]);
    assert_eq!(created.code, 0, "{}", created.stderr);
    harmless(&created);
    let raised = ran(&here, &["ledger", "raise", HOSTILE, "--epsilon", "2", "--reason", HOSTILE]);
    assert_eq!(raised.code, 0, "{}", raised.stderr);
    for arguments in [
        &["ledger", "list"][..],
        &["ledger", "show", HOSTILE],
        &["ledger", "statement", HOSTILE],
        &["ledger", "verify"],
        &["ledger", "show", &HOSTILE.replace('a', "b")],
        &["ledger", "raise", HOSTILE, "--epsilon", "x", "--reason", HOSTILE],
        &["train", "--model", HOSTILE],
        &["train", HOSTILE],
        &["resume", HOSTILE],
        &["train", "--config", HOSTILE],
        &["evaluate", HOSTILE],
        &["report", HOSTILE],
        &["predict", HOSTILE],
        &["schema", HOSTILE],
        &["pate", "--ballots", HOSTILE, "--classes", "3"],
        &["account", "--event", HOSTILE],
        &["curve", HOSTILE],
        &[HOSTILE],
        &["train", HOSTILE, HOSTILE],
        &["train", &format!("--{HOSTILE}")],
    ] {
        harmless(&ran(&here, arguments));
    }
    let shown = ran(&here, &["ledger", "show", HOSTILE]).stdout;
    assert_eq!(shown.lines().count(), 3, "a head and two lines: {shown}");
    // Programs get what was typed.
    for arguments in
        [&["ledger", "show", HOSTILE, "--format", "json"][..], &["ledger", "list", "--format", "json"]]
    {
        let said = ran(&here, arguments);
        harmless(&said);
        let value: Value = serde_json::from_str(&said.stdout).unwrap();
        let found =
            if arguments[1] == "list" { &value[0]["dataset"] } else { &value[1]["line"]["raised"]["reason"] };
        assert_eq!(found, HOSTILE);
    }
}

#[test]
fn control_characters_in_files_are_escaped() {
    let here = folder("hostile files");
    let quoted = format!("\"{HOSTILE}\"");
    std::fs::write(here.join("names.csv"), format!("{quoted},b\n1,2\n")).unwrap();
    std::fs::write(here.join("key.toml"), format!("[training]\n{HOSTILE} = 5\n")).unwrap();
    std::fs::write(here.join("value.toml"), format!("[training]\nsteps = {quoted}\n")).unwrap();
    std::fs::write(
        here.join("name.toml"),
        "[model]\nname = \"a\\u001b[31m\\r\\nline 9 forged\\u009b2J\\u202e\"\n",
    )
    .unwrap();
    std::fs::write(
        here.join("field.toml"),
        "[training]\n\"a\\u001b[31m\\r\\nline 9 forged\\u009b2J\\u202e\" = 1\n",
    )
    .unwrap();
    assert_eq!(ran(&here, &["ledger", "create", "names", "--epsilon", "1", "--delta", "1e-6"]).code, 0);
    for arguments in [
        &["train", "--config", "key.toml"][..],
        &["train", "--config", "value.toml"],
        &["train", "--config", "name.toml"],
        &["train", "--config", "field.toml"],
        &["pate", "--config", "field.toml"],
        &["train", "names.csv", "--schema", "field.toml"],
        &["query", "names.csv", "count", "--where", "c > 1", "--epsilon", "0.1"],
        &["query", "names.csv", "count", "--where", HOSTILE, "--epsilon", "0.1"],
        &["query", "names.csv", "mean", "--column", "c", "--bounds", "0", "1", "--epsilon", "0.1"],
    ] {
        let said = ran(&here, arguments);
        assert!(said.code == 2 && said.stderr.contains("error: "), "{arguments:?}: {}", said.stderr);
        harmless(&said);
    }
}

#[test]
fn control_characters_in_class_names_are_escaped() {
    let here = folder("hostile classes");
    let row = |row: usize| format!("{},\"{}\"", row % 17, if row.is_multiple_of(2) { HOSTILE } else { "b" });
    let rows: Vec<String> = (0..200).map(row).collect();
    std::fs::write(here.join("people.csv"), format!("x,y\n{}\n", rows.join("\n"))).unwrap();
    let name = serde_json::to_string(HOSTILE).unwrap().replace('\u{7f}', "\\u007f");
    let schema = format!(
        "[label]\ncolumn = \"y\"\nclasses = [{name}, \"b\"]\n[[column]]\nname = \"x\"\nbounds = [0, 17]\n"
    );
    std::fs::write(here.join("people.toml"), schema).unwrap();
    let train = "train people.csv --schema people.toml --records 200 --epsilon 2 --delta 1e-4 --budget 9 --steps 5 --sampling-rate 0.2 --output run";
    let trained = ran(&here, &train.split_whitespace().collect::<Vec<_>>());
    assert_eq!(trained.code, 0, "{}", trained.stderr);
    for arguments in [
        &["evaluate", "run", "people.csv", "--epsilon", "0.1", "--dry-run"][..],
        &["report", "run"],
        &["evaluate", "run", "copy.csv", "--public"],
    ] {
        std::fs::copy(here.join("people.csv"), here.join("copy.csv")).unwrap();
        let said = ran(&here, arguments);
        assert_eq!(said.code, 0, "{arguments:?}: {}", said.stderr);
        harmless(&said);
    }
    for page in ["report.md", "report.html"] {
        let text = std::fs::read_to_string(here.join("run").join(page)).unwrap();
        assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{page}");
    }
    // A file for programs says what the class is called.
    let predicted = ran(&here, &["predict", "run", "people.csv", "--format", "json"]);
    harmless(&predicted);
    let values: Value = serde_json::from_str(&predicted.stdout).unwrap();
    assert!(
        values
            .as_array()
            .unwrap()
            .iter()
            .all(|value| value["prediction"] == HOSTILE || value["prediction"] == "b")
    );
}

#[test]
fn endless_files_are_read_and_shown_up_to_a_limit() {
    let here = folder("hostile long");
    let long = "x".repeat(10 << 20);
    for (name, text) in [
        ("line.toml", format!("[training]\nsteps = \"{long}\"\n")),
        ("key.toml", format!("[training]\n{long} = 1\n")),
        ("table.toml", format!("[{long}]\n")),
        ("junk.toml", long),
    ] {
        std::fs::write(here.join(name), text).unwrap();
        for arguments in [
            &["train", "--config", name][..],
            &["pate", "--config", name],
            &["train", "a.csv", "--schema", name],
        ] {
            let said = ran(&here, arguments);
            assert!(said.code == 2 && said.stderr.len() < 4000, "{arguments:?}: {} bytes", said.stderr.len());
        }
    }
    #[cfg(unix)]
    for arguments in [
        &["train", "--config", "/dev/zero"][..],
        &["pate", "--config", "/dev/zero"],
        &["evaluate", "/dev/zero"],
        &["predict", "/dev/zero"],
        &["train", "--public-network", "/dev/zero"],
    ] {
        let said = ran(&here, arguments);
        assert!(said.code == 2 && said.stderr.len() < 4000, "{arguments:?}: {}", said.stderr);
    }
}
