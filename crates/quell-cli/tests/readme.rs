//! The README says only what is true: its commands are run and their output compared.

mod command;

use std::{path::Path, process::Command};

use command::folder;

/// Numbers that noise makes different from run to run, as one sign.
fn without_numbers(text: &str) -> String {
    let mut masked = String::new();
    for c in text.chars() {
        let number = c.is_ascii_digit() || (c == '.' && masked.ends_with('#'));
        match (number, masked.ends_with('#')) {
            (true, true) => {}
            (true, false) => masked.push('#'),
            (false, _) => masked.push(c),
        }
    }
    masked
}

#[test]
fn commands_of_the_readme_print_what_it_says() {
    let readme = include_str!("../../../README.md");
    let here = folder("readme");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut run = 0;
    for block in readme.split("```console").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        // `console random`: what is printed holds noise, and what is said beside the data is shown too.
        let (random, block) = block.split_once('\n').map(|(mark, block)| (mark.trim() == "random", block)).unwrap();
        for entry in block.split("$ ").skip(1) {
            let (command, expected) = entry.split_once('\n').unwrap();
            if command == "make test" {
                assert_eq!(expected, "", "the test command is this test's own");
                continue;
            }
            let arguments = command.strip_prefix("cargo run --release -- ").unwrap_or_else(|| panic!("cannot run `{command}`"));
            let arguments = arguments.replace("examples/", &format!("{}/", examples.display()));
            let output = Command::new(env!("CARGO_BIN_EXE_quell")).args(words(&arguments)).current_dir(&here).output().unwrap();
            let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
            if random {
                assert_eq!(without_numbers(&(stdout + &stderr)), without_numbers(expected), "`{command}` prints something else");
            } else {
                assert!(output.status.success(), "`{command}`: {stderr}");
                assert_eq!(stdout, expected, "`{command}` prints something else");
            }
            run += 1;
        }
    }
    assert!(run >= 8, "only {run} commands found");
}

/// Words as a shell would cut them: double quotes hold one together.
fn words(line: &str) -> Vec<String> {
    let pieces = line.split('"').enumerate();
    pieces
        .flat_map(
            |(i, piece)| if i % 2 == 1 { vec![piece.to_owned()] } else { piece.split_whitespace().map(str::to_owned).collect() },
        )
        .collect()
}

#[test]
fn numbers_are_masked_and_nothing_else() {
    assert_eq!(without_numbers("mean: 38.58 ± 0.12\nline 3 of 10."), "mean: # ± #\nline # of #");
    assert_eq!(words(r#"query a.csv count --where "age >= 65""#), ["query", "a.csv", "count", "--where", "age >= 65"]);
}
