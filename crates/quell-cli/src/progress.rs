//! Progress bars on standard error. They are drawn only on a terminal.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use quell::run::Progress;
use quell_privacy::number::{Toward, format_rounded};

use crate::print;

/// Time between two updates of a spinner.
const TICK: Duration = Duration::from_millis(200);

/// A progress bar, and whether it has shown a position. Dropping it clears the line.
pub(crate) struct Bar(ProgressBar, AtomicBool);

impl Bar {
    /// Creates a bar for a job; [`Bar::show`] sets its length.
    pub(crate) fn for_job() -> Self {
        Self::new("{prefix} [{bar:30}] {pos}/{len}, {eta} left{msg}", Some(0))
    }

    /// Creates a bar for work of `parts` equal parts.
    pub(crate) fn with_parts(what: &'static str, parts: usize) -> Self {
        let bar = Self::new("{prefix} [{bar:30}] {pos}/{len}", Some(parts as u64));
        bar.0.set_prefix(what);
        bar
    }

    /// Creates a spinner for work of unknown length.
    pub(crate) fn spinner(what: &'static str) -> Self {
        let bar = Self::new("{prefix} … {elapsed}", None);
        bar.0.set_prefix(what);
        bar.0.enable_steady_tick(TICK);
        bar
    }

    fn new(template: &str, length: Option<u64>) -> Self {
        let bar = ProgressBar::with_draw_target(length, ProgressDrawTarget::stderr());
        // The bar uses no colour.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("#>-"));
        }
        Self(bar, AtomicBool::new(false))
    }

    /// Says something above the bar.
    pub(crate) fn say(&self, text: &str) {
        self.0.suspend(|| print::status(text));
    }

    /// Counts one more part as done.
    pub(crate) fn step(&self) {
        self.0.inc(1);
    }

    /// Shows the progress of a job. `budget` is the ε that the whole job costs.
    pub(crate) fn show(&self, progress: &Progress, budget: &str) {
        let epsilon =
            progress.epsilon.map(|spent| format!(", ε {} of {budget}", format_rounded(spent, 3, Toward::Up)));
        let accuracy = progress.accuracy.map(|share| format!(", accuracy {:.1} %", 100.0 * share));
        self.0.set_prefix(progress.stage);
        if progress.of == 0 {
            // Position and length are private, and so is the time.
            if let Ok(style) = ProgressStyle::with_template("{prefix} …") {
                self.0.set_style(style);
            }
            return;
        }
        self.0.set_length(progress.of);
        self.0.set_position(progress.done);
        if !self.1.swap(true, Ordering::Relaxed) {
            // A resumed run has steps that took none of the time since this bar began.
            self.0.reset_eta();
        }
        self.0.set_message(epsilon.unwrap_or_default() + &accuracy.unwrap_or_default());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
