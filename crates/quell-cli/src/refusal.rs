//! A sentence that says why there is no answer, and the next thing to try.

/// An error of the command itself, where the next step is known. Errors of the library pass through as they are.
#[derive(Debug)]
pub(crate) struct Refusal {
    sentence: String,
    hint: String,
    /// The answer is no, rather than that there is none.
    no: bool,
}

impl Refusal {
    pub(crate) fn new(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), hint: hint.into(), no: false }
    }

    /// The question was understood, and the answer is no: exit code 1.
    pub(crate) fn final_word(self) -> Self {
        Self { no: true, ..self }
    }

    pub(crate) fn is_no(&self) -> bool {
        self.no
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
