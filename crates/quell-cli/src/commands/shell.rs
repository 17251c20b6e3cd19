//! `quell completions` and `quell man`: what shells and manual readers need.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::print;

const COMPLETIONS: &str = "\
Examples:
  quell completions bash > ~/.local/share/bash-completion/completions/quell
  quell completions zsh > ~/.zfunc/_quell
  quell completions fish > ~/.config/fish/completions/quell.fish";

/// Print a script that completes commands and flags in a shell
#[derive(clap::Args)]
#[command(after_help = COMPLETIONS)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// A shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Completions {
    /// Prints the script for the whole command.
    pub(crate) fn run(&self, mut command: clap::Command) -> Result<()> {
        let shell = match self.shell {
            Shell::Bash => clap_complete::Shell::Bash,
            Shell::Zsh => clap_complete::Shell::Zsh,
            Shell::Fish => clap_complete::Shell::Fish,
        };
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, "quell", &mut script);
        print::document(&String::from_utf8(script)?)
    }
}

const MANUAL: &str = "\
Example:
  quell man --output ~/.local/share/man/man1
  man quell-train";

/// Write manual pages, one for each command
#[derive(clap::Args)]
#[command(after_help = MANUAL)]
pub(crate) struct Manual {
    /// Folder for the pages
    #[arg(long, value_name = "FOLDER")]
    output: PathBuf,
}

impl Manual {
    /// Writes the pages of a command and of all its subcommands.
    pub(crate) fn run(&self, mut command: clap::Command) -> Result<()> {
        // Names and flags of subcommands are completed first.
        command.build();
        fs::create_dir_all(&self.output)
            .with_context(|| format!("cannot create the folder {}", self.output.display()))?;
        let pages = write(&command, "quell", &self.output)?;
        print::status(&format!("wrote {pages} manual pages to {}", self.output.display()));
        Ok(())
    }
}

/// Writes the page of a command and the pages of its subcommands; returns the number of pages.
fn write(command: &clap::Command, name: &str, folder: &Path) -> Result<usize> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    let path = folder.join(format!("{name}.1"));
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    let mut pages = 1;
    for subcommand in command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help") {
        pages += write(subcommand, &format!("{name}-{}", subcommand.get_name()), folder)?;
    }
    Ok(pages)
}
