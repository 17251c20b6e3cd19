//! The one printer: data to standard output, everything else to standard error, progress only where someone looks.
//!
//! Nothing that acts on a terminal leaves it, whoever typed it and whichever file held it ([`visible`]). Only a document that goes into a file or a pipe is
//! written as it is.

use std::{
    io::{ErrorKind, IsTerminal, Write, stderr, stdout},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};

use crate::visible;

/// Writes data, one line: a line end within it is shown as `\n`.
pub(crate) fn sentence(text: &str) -> Result<()> {
    write_out(&visible::line(text))
}

/// Writes data, several lines. Names and other texts within it must not bring line ends of their own: a [`table`] sees to that.
pub(crate) fn data(text: &str) -> Result<()> {
    write_out(&visible::lines(text))
}

/// Writes a document for a program or a file (CSV, TOML, HTML, an export), byte by byte; to a terminal like other data.
pub(crate) fn document(text: &str) -> Result<()> {
    if stdout().is_terminal() { data(text) } else { write_out(text) }
}

/// A reader that has gone away (`quell … | head -1`) has all it wanted.
fn write_out(text: &str) -> Result<()> {
    let mut out = stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    match write!(out, "{text}{end}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot write to standard output"),
        _ => Ok(()),
    }
}

/// Writes data as JSON, one document.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<()> {
    write_out(&visible::json(&serde_json::to_string_pretty(value)?))
}

/// Says something that is not data, on one line.
pub(crate) fn note(text: &str) {
    // Nobody is left to hear that standard error cannot be written.
    let _ = writeln!(stderr().lock(), "{}", visible::line(text));
}

/// Says why there is no answer: each on one line and not without end, whatever the text was cut from. `picture` stands below the sentence, line by line.
pub(crate) fn complaint(kind: &str, sentence: &str, picture: Option<&str>, hint: Option<&str>) {
    let line = |text: &str| visible::short(&text.split_whitespace().collect::<Vec<_>>().join(" "), visible::LONGEST);
    note(&format!("{kind}: {}", line(sentence)));
    for picture in picture.into_iter().flat_map(|picture| picture.trim_end().lines().take(10)) {
        note(&visible::short(picture, visible::LONGEST));
    }
    if let Some(hint) = hint {
        note(&format!("hint: {}", line(hint)));
    }
}

/// Rows as aligned columns, two spaces apart; the columns named in `right` are flushed right, the last one is not padded. A cell is one line, whatever it holds.
pub(crate) fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| visible::line(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let count = |text: &String| text.chars().count();
    // A row that ends early says a sentence in its last cell, which must not widen that column.
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().filter(|row| column + 1 < row.len()).map(|row| count(&row[column])).max().unwrap_or(0))
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

/// A line on standard error about work that takes more than a second; nothing unless that is a terminal.
pub(crate) struct Progress {
    done: Arc<AtomicUsize>,
    /// Dropped to stop the line, which is then joined so that it does not overwrite what follows.
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// `total` is the number of steps, if they can be counted.
    pub(crate) fn new(what: &'static str, total: Option<usize>) -> Self {
        let done = Arc::new(AtomicUsize::new(0));
        if !stderr().is_terminal() {
            return Self { done, running: None };
        }
        let (sender, stopped) = channel();
        let (counter, start) = (Arc::clone(&done), Instant::now());
        let line = std::thread::spawn(move || {
            let mut pause = Duration::from_secs(1);
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                let state = bar(counter.load(Ordering::Relaxed), total);
                let _ = write!(stderr().lock(), "\r\x1b[K{what} {state} {} s", start.elapsed().as_secs());
                pause = Duration::from_millis(200);
            }
            let _ = write!(stderr().lock(), "\r\x1b[K");
        });
        Self { done, running: Some((sender, line)) }
    }

    /// One more step is done.
    pub(crate) fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((sender, line)) = self.running.take() {
            drop(sender);
            let _ = line.join();
        }
    }
}

/// A line on standard error that is written over and over; nothing unless that is a terminal.
pub(crate) struct Line {
    /// When it was last written; none where nobody looks.
    shown: Option<Instant>,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self { shown: stderr().is_terminal().then(Instant::now) }
    }

    /// Shows a text, unless the last one is too fresh to have been read.
    pub(crate) fn show(&mut self, text: impl FnOnce() -> String) {
        if self.shown.is_some_and(|shown| shown.elapsed() > Duration::from_millis(200)) {
            let _ = write!(stderr().lock(), "\r\x1b[K{}", visible::line(&text()));
            self.shown = Some(Instant::now());
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(stderr().lock(), "\r\x1b[K");
        }
    }
}

fn bar(done: usize, total: Option<usize>) -> String {
    total.map_or_else(
        || "…".into(),
        |total| {
            let filled = 30 * done.min(total) / total.max(1);
            format!("[{}{}] {done}/{total}", "#".repeat(filled), "-".repeat(30 - filled))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_in_a_short_row_does_not_widen_its_column() {
        let cells = |row: &[&str]| row.iter().map(ToString::to_string).collect::<Vec<_>>();
        let rows = [cells(&["name", "ε", "why"]), cells(&["a", "1.25", "because"]), cells(&["b", "a long sentence"])];
        assert_eq!(table(&rows, &[1]), "name     ε  why\na     1.25  because\nb     a long sentence\n");
    }

    #[test]
    fn a_cell_cannot_forge_a_row() {
        let rows = [vec!["a\r\n9  forged".to_owned(), "b\u{1b}[2J".to_owned()]];
        assert_eq!(table(&rows, &[]), "a\\r\\n9  forged  b\\u{1b}[2J\n");
    }

    #[test]
    fn the_bar_fills_with_the_work() {
        assert_eq!(bar(0, Some(2)), format!("[{}] 0/2", "-".repeat(30)));
        assert_eq!(bar(2, Some(2)), format!("[{}] 2/2", "#".repeat(30)));
        assert_eq!(bar(5, None), "…");
    }
}
