//! Where a run comes from: the date, the version, and the command line in public words.

use std::{
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use quell::run::Origin;

/// Describes this process.
pub(crate) fn of_this_run() -> Origin {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    Origin { date: date(seconds), version: env!("CARGO_PKG_VERSION").into(), command: Some(command(words)) }
}

/// The command line, as a report may show it.
///
/// A report is given to others. So an address of a server is hidden, because it may hold a password, and of an
/// absolute path only the last part is shown, because its folders may name people.
fn command(words: impl Iterator<Item = String>) -> String {
    let shown = words.map(|word| match word.split_once('=').filter(|_| word.starts_with("--")) {
        Some((flag, value)) => format!("{flag}={}", quoted(&public(value))),
        None => quoted(&public(&word)),
    });
    std::iter::once("quell".to_owned()).chain(shown).collect::<Vec<_>>().join(" ")
}

/// A word without what others should not read.
fn public(word: &str) -> String {
    if word.contains("://") {
        return format!("{}://…", word.split("://").next().unwrap_or_default());
    }
    let path = Path::new(word);
    match path.file_name().filter(|_| path.is_absolute() || word.starts_with('~')) {
        Some(name) => format!("…/{}", name.to_string_lossy()),
        None => word.to_owned(),
    }
}

/// A word in quotes, if a shell would read it as several.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:,=+@%…~".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A date and time in the Gregorian calendar, from seconds since 1970.
fn date(seconds: u64) -> String {
    let (mut days, minutes) = (seconds / 86_400, seconds % 86_400 / 60);
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02} {:02}:{:02} UTC", days + 1, minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_795_046_399, "2026-11-18 23:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(date(seconds), expected);
        }
    }

    #[test]
    fn a_command_line_shows_no_password_and_no_folder_of_an_absolute_path() {
        let line = |words: &[&str]| command(words.iter().map(|word| (*word).to_owned()));
        assert_eq!(
            line(&["train", "/home/ada/clinic/adult.csv", "--ledger", "postgres://ada:secret@host/db"]),
            "quell train …/adult.csv --ledger postgres://…"
        );
        assert_eq!(line(&["train", "--ledger=postgresql://a:b@c/d"]), "quell train --ledger=postgresql://…");
        assert_eq!(line(&["train", "--schema=/etc/a b.toml"]), "quell train --schema='…/a b.toml'");
        assert_eq!(
            line(&["train", "data/adult.csv", "--classes", "a b,c"]),
            "quell train data/adult.csv --classes 'a b,c'"
        );
        assert_eq!(line(&["train", "it's", ""]), r"quell train 'it'\''s' ''");
    }
}
