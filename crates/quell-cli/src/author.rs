//! Words that the ledger stores with a charge: who made it, and from which file.

use std::path::Path;

use quell_privacy::ledger::Note;

/// The environment variable that replaces the name of the user. Empty means that no name is stored.
const VARIABLE: &str = "QUELL_USER";

/// Who runs the command: the variable `QUELL_USER`, or the user name of the operating system.
pub(crate) fn name() -> Option<String> {
    match std::env::var_os(VARIABLE) {
        Some(given) => Some(given.to_string_lossy().trim().to_owned()).filter(|name| !name.is_empty()),
        None => system_name(),
    }
}

#[cfg(unix)]
fn system_name() -> Option<String> {
    // In a container a user may have a number and no name.
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::effective()).ok().flatten();
    user.map(|user| user.name).or_else(|| std::env::var("USER").ok()).filter(|name| !name.is_empty())
}

#[cfg(not(unix))]
fn system_name() -> Option<String> {
    std::env::var("USERNAME").ok().filter(|name| !name.is_empty())
}

/// The words about a charge for the records of a file.
pub(crate) fn note(data: Option<&Path>, release: impl Into<String>) -> Note {
    let file = data.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    Note { by: name(), file, release: Some(release.into()), condition: None }
}
