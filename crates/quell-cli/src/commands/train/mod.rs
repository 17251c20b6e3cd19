//! `quell train` and `quell resume`: train a model and pay for it.

mod flags;

use std::path::PathBuf;

use anyhow::Result;
use quell::run::{self, Folder};

use crate::{
    drive,
    flags::{Format, ledger::LedgerArgs},
};
pub(crate) use flags::Flags;

const RESUME_EXAMPLES: &str = "\
Examples:
  quell train --output runs/first
  quell resume runs/first";

/// Continue a run that was stopped or killed; nothing is charged twice
///
/// Steps that were leased but not saved are lost: they stay charged, and the command does not run them again,
/// because that would be another release. The command refuses a run on which another process works, and a
/// ledger that is older than the run.
#[derive(clap::Args)]
#[command(after_help = RESUME_EXAMPLES)]
pub(crate) struct Resume {
    /// Folder of the run
    run: PathBuf,
    #[command(flatten)]
    ledgers: LedgerArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    // All errors in the configuration are reported before anything is paid.
    run::train(flags.configuration()?, drive::Start::reading(&flags.terms))?
}

pub(crate) fn resume(flags: &Resume) -> Result<()> {
    drive::resume(&Folder::open(&flags.run)?.locked()?, &flags.ledgers, flags.format)
}
