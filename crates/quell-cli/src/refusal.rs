//! An error of the command, with a hint what to try next.

/// An error of the command itself, with a hint. Library errors are passed on unchanged.
#[derive(Debug)]
pub(crate) struct Refusal {
    sentence: String,
    hint: String,
    /// Whether the request was understood and denied (exit code 1), rather than an error (2).
    denied: bool,
}

impl Refusal {
    pub(crate) fn new(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), hint: hint.into(), denied: false }
    }

    /// Says which of several things the refusal is about.
    pub(crate) fn in_place(self, place: &str) -> Self {
        Self { sentence: format!("{place}: {}", self.sentence), ..self }
    }

    /// Marks the request as understood and denied: exit code 1.
    pub(crate) fn denied(self) -> Self {
        Self { denied: true, ..self }
    }

    pub(crate) fn is_denied(&self) -> bool {
        self.denied
    }

    pub(crate) fn hint(&self) -> &str {
        &self.hint
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Refusal {}

/// The end of a run that the user stopped with Ctrl-C: exit code 1, and no error.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// The position reached, such as `step 40 of 300`.
    pub(crate) position: String,
    /// The folder of the run.
    pub(crate) folder: String,
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { position, folder } = self;
        write!(f, "Stopped at {position}. Continue with: quell resume {folder} (no step is charged twice)")
    }
}

impl std::error::Error for Stopped {}
