//! All output of the command: data to standard output, everything else to standard error.
//!
//! All text is escaped ([`escape`]), so that no control character from a user or a file reaches the terminal.
//! Only documents that go into a file or a pipe are written unchanged. The words for budgets and charges that
//! several commands use are here, too.

use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};

use anyhow::{Context, Result};
use quell_privacy::{
    ledger::{Receipt, Spent},
    number::{Toward, format_exact, format_rounded},
};
use quell_report::escape;

use crate::paint;

/// Writes one line of data; line ends inside the text are escaped.
pub(crate) fn line(text: &str) -> Result<()> {
    write_out(&escape::line(text))
}

/// Writes several lines of data.
///
/// Names and other untrusted texts inside it must not contain line ends; [`table`] escapes them.
pub(crate) fn lines(text: &str) -> Result<()> {
    write_out(&escape::lines(text))
}

/// Writes a document (CSV, TOML, HTML, an export) unchanged; escapes it on a terminal.
pub(crate) fn document(text: &str) -> Result<()> {
    if stdout().is_terminal() { lines(text) } else { write_out(text) }
}

/// Writes a help text, with colours where standard output is a terminal that shows them.
pub(crate) fn help(text: &str) -> Result<()> {
    let text = escape::lines(text);
    write_out(&if paint::is_shown(&stdout()) { paint::help(&text) } else { text })
}

/// Writes to standard output. A closed pipe (`quell … | head -1`) is not an error.
fn write_out(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    match write!(out, "{text}{end}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

/// Writes data as JSON, one document.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<()> {
    write_out(&escape::json(&serde_json::to_string_pretty(value)?))
}

/// Writes one line to standard error.
pub(crate) fn status(text: &str) {
    // An error here is ignored: there is nowhere left to report it.
    let text = escape::line(text);
    let text = if paint::is_shown(&stderr()) { paint::message(&text) } else { text };
    let _ = writeln!(stderr().lock(), "{text}");
}

/// Writes an error: a sentence, an optional excerpt below it, and an optional hint.
///
/// Sentence and hint take one line each. All parts are limited in length.
pub(crate) fn failure(kind: &str, sentence: &str, picture: Option<&str>, hint: Option<&str>) {
    let shortened =
        |text: &str| escape::short(&text.split_whitespace().collect::<Vec<_>>().join(" "), escape::LONGEST);
    status(&format!("{kind}: {}", shortened(sentence)));
    for line in picture.into_iter().flat_map(|picture| picture.trim_end().lines().take(10)) {
        status(&escape::short(line, escape::LONGEST));
    }
    if let Some(hint) = hint {
        status(&format!("hint: {}", shortened(hint)));
    }
}

/// Formats rows as aligned columns, two spaces apart.
///
/// The columns in `right` are right-aligned; the last column is not padded. Every cell is escaped to one
/// line.
pub(crate) fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| escape::line(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let count = |text: &String| text.chars().count();
    // A row with fewer cells has a sentence in its last cell, which must not widen that column.
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter().filter(|row| column + 1 < row.len()).map(|row| count(&row[column])).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in &rows {
        for (column, cell) in row.iter().enumerate() {
            let padding = " ".repeat(widths[column].saturating_sub(count(cell)));
            match (column + 1 == row.len(), right.contains(&column)) {
                (true, _) => text.push_str(cell),
                (false, true) => text.extend([&padding, cell, "  "]),
                (false, false) => text.extend([cell, &padding, "  "]),
            }
        }
        text.push('\n');
    }
    text
}

/// Describes the budget.
pub(crate) fn budget(cap: f64) -> String {
    if cap.is_finite() {
        format!("the budget is {}", format_exact(cap))
    } else {
        "the ledger has no cap".into()
    }
}

/// Describes the charge of a receipt.
pub(crate) fn charged(receipt: &Receipt) -> String {
    format!("charged to {:?} in line {}", receipt.dataset, receipt.entry)
}

/// Describes how much of the budget is spent.
pub(crate) fn balance(spent: Spent, cap: f64) -> String {
    let spent = format_rounded(spent.epsilon, 4, Toward::Up);
    if cap.is_finite() {
        format!("ε {spent} of {} is spent", format_exact(cap))
    } else {
        format!("ε {spent} is spent; the ledger has no cap")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_in_a_short_row_does_not_widen_its_column() {
        let cells = |row: &[&str]| row.iter().map(ToString::to_string).collect::<Vec<_>>();
        let rows = [
            cells(&["name", "ε", "why"]),
            cells(&["a", "1.25", "because"]),
            cells(&["b", "a long sentence"]),
        ];
        assert_eq!(table(&rows, &[1]), "name     ε  why\na     1.25  because\nb     a long sentence\n");
    }

    #[test]
    fn a_cell_cannot_forge_a_row() {
        let rows = [vec!["a\r\n9  forged".to_owned(), "b\u{1b}[2J".to_owned()]];
        assert_eq!(table(&rows, &[]), "a\\r\\n9  forged  b\\u{1b}[2J\n");
    }
}
