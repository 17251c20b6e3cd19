//! The words with which the ledger describes a question.

use quell_privacy::ledger::Note;

use super::Flags;
use crate::author;

impl Flags {
    /// What is asked, about which columns and which records. All of it is typed by the user.
    pub(super) fn note(&self) -> Note {
        let statistic = serde_json::to_value(self.statistic).ok();
        let mut release =
            statistic.as_ref().and_then(|name| name.as_str()).unwrap_or("answer").replace('-', " ");
        if let Some(column) = &self.column {
            release.push_str(&format!(" of {column}"));
        }
        if let Some(columns) = &self.group_by {
            release.push_str(&format!(" by {}", columns.join(" and ")));
        }
        Note { condition: self.condition.clone(), ..author::note(Some(&self.data), release) }
    }
}
