//! Words about a charge, for the people who read a ledger.

use serde::{Deserialize, Serialize};

/// Words about a charge: who made it, from which file, and for what.
///
/// # Contract
/// All words are public: names that the user typed, never anything that was computed from records. Neither a
/// decision nor a cost depends on them. A ledger passes them to its book and does not read them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// Who made the charge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The name of the file that holds the records, without its folders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What is released: a statistic and its columns, or a model and what it predicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// The condition that selects the records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}

/// The most characters that a book keeps of each text.
const LONGEST: usize = 1000;

impl Note {
    /// Whether there are no words.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The same words, each text cut to a thousand characters.
    #[must_use]
    pub fn shortened(&self) -> Self {
        let cut = |text: &Option<String>| {
            let text = text.as_ref().filter(|text| !text.is_empty())?;
            Some(match text.char_indices().nth(LONGEST) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text.clone(),
            })
        };
        Self {
            by: cut(&self.by),
            file: cut(&self.file),
            release: cut(&self.release),
            condition: cut(&self.condition),
        }
    }

    /// The words about a line that is not a charge: who wrote it.
    #[must_use]
    pub fn without_release(&self) -> Self {
        Self { by: self.by.clone(), ..Self::default() }
    }
}

impl std::fmt::Display for Note {
    /// Writes what was released, and the condition.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.release.as_deref().unwrap_or_default())?;
        match &self.condition {
            Some(condition) if self.release.is_some() => write!(f, " where {condition}"),
            Some(condition) => write!(f, "where {condition}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let note = Note { by: Some("é".repeat(2000)), file: Some(String::new()), ..Note::default() };
        let kept = note.shortened();
        assert_eq!(kept.by.map(|by| by.chars().count()), Some(LONGEST + 1));
        assert_eq!(kept.file, None);
    }
}
