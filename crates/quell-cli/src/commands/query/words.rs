//! The words with which the ledger describes questions.

use std::path::Path;

use quell_privacy::ledger::Note;

use super::asked::Asked;
use crate::author;

/// What is asked, about which columns and which records. All of it is typed by the user.
pub(super) fn note(data: &Path, questions: &[Asked]) -> Note {
    // The condition of a single question has a place of its own.
    let condition = match questions {
        [one] => one.condition.clone(),
        _ => None,
    };
    let words = |asked: &Asked| match &asked.condition {
        Some(condition) if questions.len() > 1 => format!("{} where {condition}", asked.words()),
        _ => asked.words(),
    };
    let release: Vec<String> = questions.iter().map(words).collect();
    Note { condition, ..author::note(Some(data), release.join("; ")) }
}

impl Asked {
    fn words(&self) -> String {
        let statistic = serde_json::to_value(self.statistic).ok();
        let mut words =
            statistic.as_ref().and_then(|name| name.as_str()).unwrap_or("answer").replace('-', " ");
        if let Some(column) = &self.column {
            words.extend([" of ", column]);
        }
        if let Some(columns) = &self.group_by {
            words.extend([" by ", &columns.list().join(" and ")]);
        }
        if let Some(parts) = &self.parts {
            words.extend([", in parts ", &parts.join(" | ")]);
        }
        words
    }
}
