//! The command `quell`: glue and words around `quell-privacy`. No algorithm lives here.
//!
//! Standard output is data only; everything else goes to standard error. Exit code 0 is an answer or a yes, 1 a no (a budget refuses, a ledger
//! was changed, no finite ε is known), 2 an error.
#![deny(unsafe_code)]
// `print` is the one printer.
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::dbg_macro)]

mod account;
mod answer;
mod arguments;
mod calibrate;
mod curve;
mod evaluate;
#[cfg(feature = "exact-statistics")]
mod exact;
mod interrupt;
mod labels;
mod ledger;
mod memory;
mod model;
mod models;
mod payment;
mod placeholder;
mod plot;
mod predict;
mod print;
mod purse;
mod query;
mod recipe;
mod records;
mod refusal;
mod report;
mod run;
mod schema;
mod train;
mod visible;

use std::process::ExitCode;

use clap::{Parser, error::ErrorKind};

use refusal::Refusal;

const EXAMPLES: &str = "\
Examples:
  quell train
  quell pate
  quell knn
  quell account --noise-multiplier 1.1 --sampling-rate 0.01 --steps 10000 --delta 1e-5
  quell calibrate --epsilon 1 --delta 1e-5 --sampling-rate 0.01 --steps 1000
  quell curve moments-advanced
  quell ledger create census --epsilon 3 --delta 1e-6
  quell query census.csv mean --column age --bounds 0 100 --epsilon 0.5";

/// Differentially private machine learning: models and statistics that are paid for from a budget, and what anything costs.
#[derive(Parser)]
#[command(name = "quell", version, after_help = EXAMPLES, disable_help_subcommand = true)]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    Account(account::Flags),
    Calibrate(calibrate::Flags),
    Curve(curve::Flags),
    Evaluate(evaluate::Flags),
    Knn(Box<labels::Knn>),
    Ledger(ledger::Flags),
    Models(models::Flags),
    Pate(Box<labels::Pate>),
    Predict(predict::Flags),
    Query(query::Flags),
    Report(report::Flags),
    Schema(schema::Flags),
    Train(Box<train::Flags>),
    Resume(train::Resume),
}

fn main() -> ExitCode {
    #[cfg(feature = "exact-statistics")]
    return exact::watched(command);
    #[cfg(not(feature = "exact-statistics"))]
    command()
}

/// Does what the command line says.
fn command() -> ExitCode {
    std::panic::set_hook(Box::new(give_up));
    memory::protect();
    let outcome = match Command::try_parse() {
        Ok(command) => match command.verb {
            Verb::Account(flags) => account::run(&flags),
            Verb::Calibrate(flags) => calibrate::run(&flags),
            Verb::Curve(flags) => curve::run(flags).map(|()| true),
            Verb::Evaluate(flags) => evaluate::run(&flags).map(|()| true),
            Verb::Knn(flags) => labels::knn(&flags).map(|()| true),
            Verb::Ledger(flags) => ledger::run(flags),
            Verb::Models(flags) => models::run(&flags).map(|()| true),
            Verb::Pate(flags) => labels::pate(&flags).map(|()| true),
            Verb::Predict(flags) => predict::run(&flags).map(|()| true),
            Verb::Query(flags) => query::run(&flags).map(|()| true),
            Verb::Report(flags) => report::run(&flags).map(|()| true),
            Verb::Schema(flags) => schema::run(&flags).map(|()| true),
            Verb::Train(flags) => train::run(&flags).map(|()| true),
            Verb::Resume(flags) => train::resume(&flags).map(|()| true),
        },
        Err(misuse) => match misuse.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => print::data(&misuse.render().to_string()).map(|()| true),
            _ => Err(misunderstood(&misuse)),
        },
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => complain(&error),
    }
}

/// Says why there is no answer (2), or that the answer is no (1).
fn complain(error: &anyhow::Error) -> ExitCode {
    let text = format!("{error:#}");
    let refusal = error.downcast_ref::<Refusal>();
    let data = error.downcast_ref::<quell::Error>();
    // Errors of the ledger bring their hint with them, at their end. Others do not, whatever a path in them says.
    let brings = error.downcast_ref::<quell_ledger::Error>().is_some()
        || error.downcast_ref::<quell_privacy::Error>().is_some()
        || matches!(data, Some(quell::Error::Privacy(_)));
    let (sentence, own) = text
        .rsplit_once("\nhint: ")
        .filter(|_| brings)
        .map_or((text.as_str(), None), |(sentence, hint)| (sentence, Some(hint.to_owned())));
    let hint = own.or_else(|| refusal.map(|refusal| refusal.hint().to_owned())).or_else(|| data.map(quell::Error::hint));
    // An expression or a file that cannot be read is shown, with a mark where the trouble is.
    let picture = data.and_then(quell::Error::picture);
    let end = picture.as_ref().map(|picture| format!("\n{picture}")).unwrap_or_default();
    let sentence = sentence.strip_suffix(&end).unwrap_or(sentence);
    let privacy = match data {
        Some(quell::Error::Privacy(privacy)) => Some(privacy),
        _ => error.downcast_ref::<quell_privacy::Error>(),
    };
    // An older copy of a ledger is a ledger that was changed.
    let changed = matches!(data, Some(quell::Error::LedgerRolledBack { .. } | quell::Error::AheadOfLease { .. }));
    let denied = matches!(privacy, Some(quell_privacy::Error::Refused { .. } | quell_privacy::Error::Unreachable { .. }));
    let no = changed || denied || refusal.is_some_and(Refusal::is_no);
    print::complaint(if no { "refused" } else { "error" }, sentence, picture.as_deref(), hint.as_deref());
    ExitCode::from(if no { 1 } else { 2 })
}

/// One sentence and one hint out of the several paragraphs clap has for a command line it cannot read.
fn misunderstood(misuse: &clap::Error) -> anyhow::Error {
    if misuse.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Refusal::new("no subcommand was given, expected one of those that quell --help lists", "try quell --help").into();
    }
    let text = misuse.render().to_string();
    let mut paragraphs = text.split("\n\n");
    let sentence = paragraphs.next().unwrap_or_default().trim_start_matches("error: ");
    let tip = paragraphs.find_map(|paragraph| paragraph.trim().strip_prefix("tip: "));
    Refusal::new(sentence, tip.unwrap_or("try quell --help, or --help after a subcommand")).into()
}

/// A mistake in the program itself: said in a sentence like any other error, with no number printed.
fn give_up(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(|place| format!(" at {}:{}", place.file(), place.line())).unwrap_or_default();
    let said = panic.payload();
    let reason = said.downcast_ref::<&str>().copied().or_else(|| said.downcast_ref::<String>().map(String::as_str));
    let reason = reason.unwrap_or("no reason was given");
    print::complaint(
        "error",
        &format!("internal error{place}: {reason}"),
        None,
        Some("this is a bug in quell: please report the whole command"),
    );
    std::process::exit(2);
}
