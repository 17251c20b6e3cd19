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
