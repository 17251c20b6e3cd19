//! The command `quell`: it reads flags, calls the libraries, and prints.
//!
//! Standard output is data only; everything else goes to standard error. Exit code 0 means an answer or yes,
//! 1 means no (the budget refuses, a ledger was changed, no finite ε is known) or that a run was stopped, 2
//! means an error, and 130 means that a second Ctrl-C ended the command.
// Only `print` and `progress` write to the terminal.
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

mod author;
mod browser;
mod commands;
mod drive;
mod dry_run;
#[cfg(feature = "exact-statistics")]
mod exact;
mod flags;
mod hint;
mod interrupt;
mod memory;
mod origin;
mod paint;
mod payment;
mod print;
mod progress;
mod records;
mod refusal;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, error::ErrorKind};
use quell::run;

use commands::{
    account, calibrate, curve, evaluate, export, init, label, ledger, models, plan, predict, query, report,
    schema, shell, synthesize, train, tune,
};
use refusal::{Refusal, Stopped};

const EXAMPLES: &str = "\
Examples:
  quell train
  quell pate
  quell knn
  quell account --noise-multiplier 1.1 --sampling-rate 0.01 --steps 10000 --delta 1e-5
  quell calibrate --epsilon 1 --delta 1e-5 --sampling-rate 0.01 --steps 1000
  quell curve moments-advanced
  quell plan --records 10000 --dimension 50 --epsilon 1
  quell ledger create census --epsilon 3 --delta 1e-6
  quell query census.csv mean --column age --bounds 0 100 --epsilon 0.5
  quell synthesize census.csv --schema census.toml --records 5000 --epsilon 1 --delta 1e-6";

/// Differentially private machine learning: models, labels and statistics within a privacy budget
#[derive(Parser)]
#[command(name = "quell", version, after_help = EXAMPLES)]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    Account(account::Flags),
    Calibrate(calibrate::Flags),
    Completions(shell::Completions),
    Curve(curve::Flags),
    Evaluate(evaluate::Flags),
    Export(export::Flags),
    Init(Box<init::Flags>),
    Knn(Box<label::Knn>),
    Ledger(ledger::Flags),
    Man(shell::Manual),
    Models(models::Flags),
    Pate(Box<label::Pate>),
    Plan(plan::Flags),
    Predict(predict::Flags),
    Query(Box<query::Flags>),
    Report(report::Flags),
    Schema(schema::Flags),
    Synthesize(Box<synthesize::Flags>),
    Train(Box<train::Flags>),
    Tune(Box<tune::Flags>),
    Resume(train::Resume),
}

fn main() -> ExitCode {
    #[cfg(feature = "exact-statistics")]
    return exact::watched(command);
    #[cfg(not(feature = "exact-statistics"))]
    command()
}

/// Parses the command line and runs the subcommand.
fn command() -> ExitCode {
    std::panic::set_hook(Box::new(report_panic));
    memory::protect();
    let outcome = match Command::try_parse() {
        Ok(command) => match command.verb {
            Verb::Account(flags) => account::run(&flags),
            Verb::Calibrate(flags) => calibrate::run(&flags),
            Verb::Completions(flags) => flags.run(Command::command()).map(|()| true),
            Verb::Curve(flags) => curve::run(flags).map(|()| true),
            Verb::Evaluate(flags) => evaluate::run(&flags).map(|()| true),
            Verb::Export(flags) => export::run(&flags).map(|()| true),
            Verb::Init(flags) => init::run(*flags).map(|()| true),
            Verb::Knn(flags) => label::knn(&flags).map(|()| true),
            Verb::Ledger(flags) => ledger::run(flags),
            Verb::Man(flags) => flags.run(Command::command()).map(|()| true),
            Verb::Models(flags) => models::run(&flags).map(|()| true),
            Verb::Pate(flags) => label::pate(&flags).map(|()| true),
            Verb::Plan(flags) => plan::run(&flags).map(|()| true),
            Verb::Predict(flags) => predict::run(&flags).map(|()| true),
            Verb::Query(flags) => query::run(&flags).map(|()| true),
            Verb::Report(flags) => report::run(&flags).map(|()| true),
            Verb::Schema(flags) => schema::run(&flags).map(|()| true),
            Verb::Synthesize(flags) => synthesize::run(&flags).map(|()| true),
            Verb::Train(flags) => train::run(&flags).map(|()| true),
            Verb::Tune(flags) => tune::run(&flags).map(|()| true),
            Verb::Resume(flags) => train::resume(&flags).map(|()| true),
        },
        Err(misuse) => match misuse.kind() {
            ErrorKind::DisplayHelp
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            | ErrorKind::DisplayVersion => print::help(&misuse.render().to_string()).map(|()| true),
            _ => Err(usage_error(&misuse)),
        },
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => report_error(&error),
    }
}

/// Prints an error (exit code 2) or a refusal (exit code 1).
fn report_error(error: &anyhow::Error) -> ExitCode {
    if let Some(stopped) = error.downcast_ref::<Stopped>() {
        print::status(&stopped.to_string());
        return ExitCode::from(1);
    }
    let text = format!("{error:#}");
    let refusal = error.downcast_ref::<Refusal>();
    let data = error.downcast_ref::<quell::Error>();
    // The text of ledger and privacy errors ends with a hint. Other errors have no hint in their text, even
    // if a path in them contains one.
    let text_has_hint = error.downcast_ref::<quell_ledger::Error>().is_some()
        || error.downcast_ref::<quell_privacy::Error>().is_some()
        || matches!(data, Some(quell::Error::Privacy(_)));
    let (sentence, hint_in_text) = text
        .rsplit_once("\nhint: ")
        .filter(|_| text_has_hint)
        .map_or((text.as_str(), None), |(sentence, hint)| (sentence, Some(hint.to_owned())));
    let hint = hint_in_text
        .or_else(|| refusal.map(|refusal| refusal.hint().to_owned()))
        .or_else(|| data.and_then(hint::for_missing_setting))
        .or_else(|| data.and_then(quell::Error::hint).map(|hint| hint::phrase(&hint)));
    // For an unreadable expression or file, the error shows an excerpt with a mark at the problem.
    let picture = data.and_then(quell::Error::picture);
    let end = picture.as_ref().map(|picture| format!("\n{picture}")).unwrap_or_default();
    let sentence = sentence.strip_suffix(&end).unwrap_or(sentence);
    let privacy = match data {
        Some(quell::Error::Privacy(privacy)) => Some(privacy),
        _ => error.downcast_ref::<quell_privacy::Error>(),
    };
    // A restored older copy counts as a changed ledger.
    let changed = matches!(
        data,
        Some(quell::Error::Run(run::Error::LedgerRolledBack { .. } | run::Error::AheadOfLease { .. }))
    );
    let denied = matches!(
        privacy,
        Some(quell_privacy::Error::Refused { .. } | quell_privacy::Error::Unreachable { .. })
    );
    let is_refusal = changed || denied || refusal.is_some_and(Refusal::is_denied);
    print::failure(
        if is_refusal { "refused" } else { "error" },
        sentence,
        picture.as_deref(),
        hint.as_deref(),
    );
    ExitCode::from(if is_refusal { 1 } else { 2 })
}

/// Reduces a clap error of several paragraphs to one sentence and one hint.
fn usage_error(misuse: &clap::Error) -> anyhow::Error {
    let text = misuse.render().to_string();
    let mut paragraphs = text.split("\n\n");
    let sentence = paragraphs.next().unwrap_or_default().trim_start_matches("error: ");
    // The similar flag of another meaning would make ε too small.
    if sentence.contains("'--epochs'") {
        return Refusal::new(sentence, "give --steps: epochs times records, divided by the batch size")
            .into();
    }
    let tip = paragraphs.find_map(|paragraph| paragraph.trim().strip_prefix("tip: "));
    let tip = tip.filter(|tip| !tip.contains("'-- "));
    Refusal::new(sentence, tip.unwrap_or("try quell --help, or --help after a subcommand")).into()
}

/// Panic hook: prints an internal error like any other error and exits with code 2.
fn report_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic
        .location()
        .map(|location| format!(" at {}:{}", location.file(), location.line()))
        .unwrap_or_default();
    let payload = panic.payload();
    let reason = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let reason = reason.unwrap_or("no reason was given");
    print::failure(
        "error",
        &format!("internal error{place}: {reason}"),
        None,
        Some("this is a bug in quell: please report the whole command"),
    );
    std::process::exit(2);
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Command;

    /// The most words of a summary.
    const MOST_WORDS: usize = 15;

    /// Collects the summaries of a command, its flags, their values and its subcommands.
    fn summaries(command: &clap::Command) -> Vec<String> {
        let flags = command.get_arguments().flat_map(|flag| {
            let values = flag.get_possible_values();
            let values = values.iter().filter_map(|value| value.get_help().map(ToString::to_string));
            flag.get_help().map(ToString::to_string).into_iter().chain(values).collect::<Vec<_>>()
        });
        let about = command.get_about().map(ToString::to_string);
        about.into_iter().chain(flags).chain(command.get_subcommands().flat_map(summaries)).collect()
    }

    #[test]
    fn a_summary_in_the_help_has_at_most_fifteen_words() {
        let all = summaries(&Command::command());
        assert!(all.len() > 100, "only {} summaries were found", all.len());
        let long: Vec<&String> =
            all.iter().filter(|summary| summary.split_whitespace().count() > MOST_WORDS).collect();
        assert!(long.is_empty(), "{long:#?}");
    }
}
