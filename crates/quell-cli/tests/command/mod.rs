//! Runs whole commands.
#![allow(dead_code, reason = "each test crate uses its part")]

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// What a command did.
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) code: i32,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            stdout: String::from_utf8(output.stdout).expect("stdout is text"),
            stderr: String::from_utf8(output.stderr).expect("stderr is text"),
            code: output.status.code().expect("no signal"),
        }
    }
}

impl Ran {
    /// The data, of a command that must succeed and say nothing else.
    pub(crate) fn data(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{}", self.stdout);
        self.stdout
    }

    /// The data as JSON.
    pub(crate) fn json(self) -> serde_json::Value {
        let text = self.data();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

/// The command with arguments separated by spaces.
pub(crate) fn quell(arguments: &str) -> Ran {
    quell_with(&arguments.split_whitespace().collect::<Vec<_>>(), "")
}

/// The command with arguments that may hold spaces, and standard input.
pub(crate) fn quell_with(arguments: &[&str], input: &str) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_quell"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdin = child.stdin.take().expect("piped");
    // A command that does not read its input closes it.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("the command ends").into()
}

/// An empty folder for one test.
pub(crate) fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a folder for the test");
    path
}

/// The command with arguments separated by spaces, ready to start in a folder.
pub(crate) fn start(here: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quell"));
    command
        .args(arguments.split_whitespace())
        .current_dir(here)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What it did there.
pub(crate) fn run(here: &Path, arguments: &str) -> Ran {
    start(here, arguments).output().expect("the command starts").into()
}

/// What it printed there, as JSON; it must succeed, whatever else it says.
pub(crate) fn json(here: &Path, arguments: &str) -> serde_json::Value {
    let ran = run(here, arguments);
    assert_eq!(ran.code, 0, "{arguments}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.stdout))
}

/// How often the ledger of a dataset there was charged.
pub(crate) fn charges(here: &Path, dataset: &str) -> usize {
    run(here, &format!("ledger show {dataset} --format json")).stdout.matches("\"charged\"").count()
}

/// Splits a command line into words as a shell does; quotes of either kind keep one word together.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut quote, mut is_inside) = (None, false);
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                if !is_inside {
                    words.push(String::new());
                    is_inside = true;
                }
            }
            None if c.is_whitespace() => is_inside = false,
            _ => {
                if !is_inside {
                    words.push(String::new());
                    is_inside = true;
                }
                words.last_mut().unwrap().push(c);
            }
        }
    }
    words
}
