//! The hints of the library, in the words of the command line: flags and subcommands.

use quell::{Hint, Input};
use quell_privacy::Error;

use crate::refusal::Refusal;

/// Phrases a hint for the command line. Hints that need no flag have the words of the library.
pub(crate) fn phrase(hint: &Hint) -> String {
    match hint {
        Hint::ChooseModel => "`quell models` lists the models; --config can give a list of layers".into(),
        Hint::DeclareClasses => {
            "declare the classes with --classes cat,dog, or their number with --classes 10; they are not read from the records, because that would reveal something about them".into()
        }
        Hint::DeclareImages => {
            "declare them with --classes cat,dog and --shape ROWSxCOLUMNSxCHANNELS, or put public images into a folder test beside train; private images are not used for this".into()
        }
        Hint::WriteSchema { path } => {
            format!("`quell init {}` writes one to fill in; with --epsilon it buys bounds and categories", path.display())
        }
        Hint::NameColumns => {
            "put a row of names above the records: each column has its own name, and a name is not a number; or declare the names with --header A,B,C, in a schema with [file] header = [\"A\", \"B\", \"C\"], and the delimiter".into()
        }
        Hint::DeclareDelimiter => {
            "declare the character between the cells with --delimiter, in a schema with delimiter = \",\" under [file]; it is not looked for in a record".into()
        }
        Hint::RestoreNetwork => {
            "features come from the model.safetensors that `quell train` wrote; put the file back, or name another one".into()
        }
        Hint::ResumeRun { .. } => "choose another --output, or continue with `quell resume`".into(),
        Hint::NameRun => "name the folder that `quell train`, `quell pate` or `quell knn` made".into(),
        Hint::FinishRun { folder } => format!("finish the run with `quell resume {}`", folder.display()),
        Hint::NewOutput => {
            "choose another --output; the same question with the same --output is paid for once".into()
        }
        Hint::AskAgain => {
            "ask again with another --output; drawing the answer again is another release and is charged".into()
        }
        Hint::SpendLess => "ask for less, or raise the budget with `quell ledger raise`".into(),
        Hint::Give { what } => give(*what).map_or_else(|| hint.to_string(), Into::into),
        _ => hint.to_string(),
    }
}

/// Names the flag that provides a missing input, if there is one.
fn give(what: Input) -> Option<&'static str> {
    Some(match what {
        Input::PublicRecords => {
            "give public records with --public, in a file of the same kind; or declare the test part of the data public with --public-test"
        }
        Input::Answers => "every question was refused; lower --threshold, or use more teachers",
        Input::Users => {
            "name the column of users in the schema, an array `users` in an archive, or a file with --users FILE; the embedded digits have no users"
        }
        Input::RecordCount => {
            "give a public number with --records, even a rough one; for a table, `quell query` releases a count"
        }
        Input::Epsilon => "set the privacy budget with --epsilon, or the noise with --noise-multiplier",
        Input::Budget => {
            "revealing the cost of the votes is charged as well: set --budget to at least 1.5 times --epsilon, plus 1"
        }
        _ => return None,
    })
}

/// Names the flag of a setting that is not given, if it has one.
pub(crate) fn for_missing_setting(error: &quell::Error) -> Option<String> {
    let quell::Error::Setting { name, found, .. } = error else { return None };
    let flag = match (*name, found.as_str()) {
        ("clusters", "not given") => "--clusters K",
        ("components", "not given") => "--components K",
        ("bounds", "not given") => "--bounds LOWER UPPER",
        ("the data", "not described as ratings") => {
            "--user COLUMN, --item COLUMN, --value COLUMN, --bounds LOWER UPPER and --items FILE"
        }
        _ => return None,
    };
    Some(format!("add {flag}"))
}

/// Adds a hint to the error that no theorem applies to an event.
pub(crate) fn for_unsupported(error: Error) -> anyhow::Error {
    match &error {
        Error::Unsupported { because, .. } if because.contains("use replace") => {
            Refusal::new(error.to_string(), "add --neighbors replace").into()
        }
        Error::Unsupported { .. } => {
            let hint = "if a guarantee of the release is known, describe the release as pure, approximate, zero_concentrated or renyi";
            Refusal::new(error.to_string(), hint).into()
        }
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use clap::CommandFactory;

    use super::*;

    /// Hints that name flags or subcommands.
    fn hints() -> Vec<Hint> {
        let path = std::path::PathBuf::from("people.csv");
        let inputs = [
            Input::PublicRecords,
            Input::Answers,
            Input::Users,
            Input::RecordCount,
            Input::Epsilon,
            Input::Budget,
        ];
        let mut hints = vec![
            Hint::ChooseModel,
            Hint::DeclareClasses,
            Hint::DeclareImages,
            Hint::WriteSchema { path: path.clone() },
            Hint::NameColumns,
            Hint::DeclareDelimiter,
            Hint::RestoreNetwork,
            Hint::ResumeRun { folder: path.clone() },
            Hint::FinishRun { folder: path },
            Hint::NameRun,
            Hint::NewOutput,
            Hint::AskAgain,
            Hint::SpendLess,
        ];
        hints.extend(inputs.map(|what| Hint::Give { what }));
        hints
    }

    /// The words of a text that start with a prefix, without the prefix.
    fn words<'a>(text: &'a str, prefix: &str) -> Vec<&'a str> {
        let end = |rest: &'a str| rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap();
        text.split(prefix).skip(1).map(end).collect()
    }

    #[test]
    fn flags_and_subcommands_in_hints_exist() {
        let command = crate::Command::command();
        let verbs: HashSet<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        let flags: HashSet<&str> = command
            .get_subcommands()
            .flat_map(|verb| verb.get_arguments().filter_map(clap::Arg::get_long))
            .collect();
        for hint in hints() {
            let said = phrase(&hint);
            let (named_flags, named_verbs) = (words(&said, "--"), words(&said, "`quell "));
            assert!(!named_flags.is_empty() || !named_verbs.is_empty(), "{said}");
            assert!(named_flags.iter().all(|flag| flags.contains(flag)), "{said}");
            assert!(named_verbs.iter().all(|verb| verbs.contains(verb)), "{said}");
        }
    }
}
