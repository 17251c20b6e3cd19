//! The README says only what is true: its commands are run and their output compared.

use std::process::Command;

#[test]
fn commands_of_the_readme_print_what_it_says() {
    let readme = include_str!("../../../README.md");
    let mut run = 0;
    for block in readme.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
        for entry in block.split("$ ").skip(1) {
            let (command, expected) = entry.split_once('\n').unwrap();
            if command == "make test" {
                assert_eq!(expected, "", "the test command is this test's own");
                continue;
            }
            let arguments = command.strip_prefix("cargo run --release -- ").unwrap_or_else(|| panic!("cannot run `{command}`"));
            let output = Command::new(env!("CARGO_BIN_EXE_quell")).args(arguments.split(' ')).output().unwrap();
            assert!(output.status.success(), "`{command}`: {}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "`{command}` prints something else");
            run += 1;
        }
    }
    assert!(run >= 3, "only {run} commands found");
}
