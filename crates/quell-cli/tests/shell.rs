//! Help, completions and manual pages.

use std::process::Command;

use crate::command::{folder, quell, run};

/// Names of all commands, as the help lists them.
fn commands() -> Vec<String> {
    let help = quell("--help").data();
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    list.lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn the_command_alone_and_help_print_the_help() {
    let help = quell("--help").data();
    assert!(help.contains("Usage: quell") && !help.contains('\u{1b}'), "{help}");
    assert_eq!(quell("").data(), quell("-h").data());
    assert_eq!(quell("help").data(), help);
    assert_eq!(quell("help ledger raise").data(), quell("ledger raise --help").data());
    assert!(quell("ledger").data().contains("statement"));
    let unknown = quell("help nonsense");
    assert!(unknown.code == 2 && unknown.stderr.contains("nonsense"), "{}", unknown.stderr);
}

#[test]
fn completions_name_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = quell(&format!("completions {shell}")).data();
        for command in commands() {
            assert!(script.contains(&command), "{shell}: {command}");
        }
        assert!(script.contains("noise-multiplier"), "{shell}");
    }
    assert_eq!(quell("completions tcsh").code, 2);
}

#[test]
fn bash_completes_commands_and_flags() {
    let here = folder("completions");
    std::fs::write(here.join("quell.bash"), quell("completions bash").data()).unwrap();
    let complete = |words: &str, count: usize| {
        let last = words.split(' ').next_back().unwrap();
        let script = format!(
            "source ./quell.bash; COMP_WORDS=({words}); COMP_CWORD={count}; _quell quell '{last}' ''; echo \"${{COMPREPLY[@]}}\""
        );
        let ran = Command::new("bash").args(["-c", &script]).current_dir(&here).output().unwrap();
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(complete("quell tra", 1), "train");
    assert_eq!(complete("quell ledger sta", 2), "statement");
    assert_eq!(complete("quell train --noise", 2), "--noise-multiplier");
}

#[test]
fn every_command_has_a_manual_page() {
    let here = folder("manual");
    let ran = run(&here, "man --output pages");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    let page = |name: &str| std::fs::read_to_string(here.join(format!("pages/{name}.1"))).unwrap();
    assert!(page("quell").contains("quell"));
    for command in commands().iter().filter(|command| *command != "help") {
        let page = page(&format!("quell-{command}"));
        assert!(page.starts_with(".ie") && page.contains(&format!("quell\\-{command}")), "{page}");
    }
    assert!(page("quell-ledger-raise").contains("\\-\\-reason"));
}
