//! The hash chain: each hash covers a line and all lines before it.

use std::time::{SystemTime, UNIX_EPOCH};

use quell_privacy::ledger::{Line, Note, Receipt};
use serde::{Deserialize, Serialize};

use crate::{
    finding::{Finding, Problem},
    hexadecimal::hex,
};

/// A blake3 hash.
pub(crate) type Hash = [u8; 32];

/// The hash before the first line.
///
/// It depends on the name of the dataset, so that a chain cannot be used for another dataset.
pub(crate) fn genesis(dataset: &str) -> Hash {
    let mut hasher = blake3::Hasher::new_derive_key("quell-ledger 2026 first line of a dataset");
    hasher.update(dataset.as_bytes());
    hasher.finalize().into()
}

/// The head after a line: blake3(previous ‖ body).
pub(crate) fn link(previous: &Hash, body: &str) -> Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(previous);
    hasher.update(body.as_bytes());
    hasher.finalize().into()
}

/// The stored content of a line, as JSON whose exact bytes are hashed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Body {
    pub(crate) number: u64,
    pub(crate) time: String,
    pub(crate) line: Line,
    /// ε after the line; null if there is no bound.
    pub(crate) spent: Option<f64>,
    /// Words for people. Lines of earlier versions have none.
    #[serde(default, skip_serializing_if = "Note::is_empty")]
    pub(crate) note: Note,
}

/// Length of a date such as 2026-01-31.
const DAY: usize = 10;

impl Body {
    /// The JSON text of a line written now; none if JSON cannot represent the line.
    ///
    /// JSON has no infinity, and parsers refuse deep nesting, so the text is parsed again and compared.
    pub(crate) fn text(number: u64, line: &Line, spent: f64, note: &Note) -> Option<String> {
        let note = match line {
            Line::Charged(_) => note.shortened(),
            Line::Opened(_) | Line::Raised { .. } => note.without_release().shortened(),
            Line::Leased { .. } | Line::Confirmed { .. } => Note::default(),
        };
        let now = utc(SystemTime::now());
        let time = match line {
            Line::Opened(_) | Line::Charged(_) | Line::Raised { .. } => now,
            // How long a run takes depends on private records, and tells how many trials a search had. So these
            // lines have a day and no time.
            Line::Leased { .. } | Line::Confirmed { .. } => now.chars().take(DAY).collect(),
        };
        let body = Self { number, time, line: line.clone(), spent: spent.is_finite().then_some(spent), note };
        let text = serde_json::to_string(&body).ok()?;
        serde_json::from_str::<Self>(&text).is_ok_and(|parsed| parsed == body).then_some(text)
    }

    /// The cap that the line sets; none if the line does not change the budget.
    ///
    /// An infinite cap means that there is no cap.
    pub(crate) fn cap(&self) -> Option<f64> {
        match &self.line {
            Line::Opened(terms) => Some(terms.budget.cap()),
            Line::Raised { budget, .. } => Some(budget.cap()),
            Line::Charged(_) | Line::Leased { .. } | Line::Confirmed { .. } => None,
        }
    }

    /// ε after the line; infinite if there is no bound.
    pub(crate) fn spent(&self) -> f64 {
        self.spent.unwrap_or(f64::INFINITY)
    }
}

/// A line as the database stores it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) number: u64,
    pub(crate) body: String,
    pub(crate) previous: Hash,
    pub(crate) hash: Hash,
}

/// The row of a dataset in the database: the totals of its lines.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) dataset: String,
    pub(crate) lines: u64,
    pub(crate) head: Hash,
    pub(crate) spent: f64,
    pub(crate) cap: f64,
    pub(crate) signature: [u8; 64],
}

/// A position in a chain: a number of lines and the head after them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Position {
    pub(crate) lines: u64,
    pub(crate) head: Hash,
}

impl Position {
    /// The position before the first line.
    pub(crate) fn start(dataset: &str) -> Self {
        Self { lines: 0, head: genesis(dataset) }
    }

    /// Advances by one line after checking number, hashes and content of the line.
    pub(crate) fn advance(&mut self, dataset: &str, stored: &Stored) -> Result<Body, Finding> {
        let expected = self.lines;
        if stored.number != expected {
            return Err(Problem::Gap { found: stored.number, expected }.at(dataset, expected));
        }
        if stored.previous != self.head {
            return Err(Problem::Forked { found: hex(&stored.previous), expected: hex(&self.head) }
                .at(dataset, expected));
        }
        if link(&stored.previous, &stored.body) != stored.hash {
            return Err(Problem::Edited.at(dataset, expected));
        }
        let unparsable = |cause: String| Problem::Unparsable { cause }.at(dataset, expected);
        let body: Body = serde_json::from_str(&stored.body).map_err(|error| unparsable(error.to_string()))?;
        if body.number != expected {
            return Err(unparsable(format!("it states the number {}", body.number)));
        }
        match &body.line {
            Line::Opened(terms) if terms.dataset != dataset => {
                return Err(unparsable(format!("it opens the dataset {:?}", terms.dataset)));
            }
            _ => {}
        }
        (self.lines, self.head) = (expected + 1, stored.hash);
        Ok(body)
    }

    /// Checks that the row of the dataset agrees with its lines.
    ///
    /// `last` is the last line.
    pub(crate) fn check(&self, row: &Row, last: &Body) -> Result<(), Finding> {
        let differs = |what, found: String, expected: String| {
            Err(Problem::Row { what, found, expected }.of(&row.dataset))
        };
        if self.lines != row.lines {
            return differs("the number of lines", row.lines.to_string(), self.lines.to_string());
        }
        if self.head != row.head {
            return differs("the head", hex(&row.head), hex(&self.head));
        }
        if last.spent() != row.spent {
            return differs("epsilon spent", row.spent.to_string(), last.spent().to_string());
        }
        Ok(())
    }
}

/// The receipt of a line in a ledger with this public key.
pub(crate) fn receipt(dataset: &str, entry: u64, head: &Hash, public_key: &[u8; 32]) -> Receipt {
    Receipt::new(dataset.to_owned(), entry, hex(head)).of_ledger(hex(public_key))
}

/// Formats a time as RFC 3339, in whole seconds.
///
/// Uses Howard Hinnant's days-to-civil algorithm, for years from 1970.
fn utc(time: SystemTime) -> String {
    // A clock before 1970 is wrong, but that is no reason to refuse a charge.
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second_of_day) = (seconds / 86_400 + 719_468, seconds % 86_400);
    // Years start in March here, so that the leap day is the last day of the year.
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second_of_day / 3_600, second_of_day / 60 % 60, second_of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_written_as_the_calendar_has_it() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_792_108_800, "2026-10-16T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(UNIX_EPOCH + std::time::Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn every_dataset_has_its_own_first_hash() {
        assert_ne!(genesis("a"), genesis("b"));
        assert_ne!(link(&genesis("a"), "x"), link(&genesis("b"), "x"));
    }

    #[test]
    fn a_line_without_words_is_what_earlier_versions_wrote() {
        let old = r#"{"number":1,"time":"2026-01-01T00:00:00Z","line":{"leased":{"charge":0,"until":2}},"spent":1.0}"#;
        let body: Body = serde_json::from_str(old).unwrap();
        assert!(body.note.is_empty());
        assert_eq!(serde_json::to_string(&body).unwrap(), old);
    }

    #[test]
    fn a_line_that_json_cannot_say_is_not_written() {
        let budget = quell_privacy::ledger::Budget {
            epsilon: None,
            delta: quell_privacy::units::Delta::new(1e-6).unwrap(),
        };
        let fine = Line::Raised { budget, reason: "because".into() };
        assert!(Body::text(1, &fine, f64::INFINITY, &Note::default()).is_some());
        let mut event = quell_privacy::Event::NonPrivate;
        for _ in 0..200 {
            event = event.repeated(1);
        }
        let cost = quell_privacy::ledger::Cost {
            pure: None,
            gaussian: None,
            renyi: None,
            slack: 0.0,
            distance: 0.0,
        };
        let charge = |plan, cost| quell_privacy::ledger::Charge {
            what: String::new(),
            plan,
            steps: 1,
            cost,
            non_private: false,
            key: None,
        };
        assert!(
            Body::text(1, &Line::Charged(charge(event.into(), cost.clone())), 0.0, &Note::default())
                .is_none(),
            "too deep to be read again"
        );
        let endless = quell_privacy::ledger::Cost { slack: f64::INFINITY, ..cost };
        let event = quell_privacy::Event::NonPrivate;
        assert!(
            Body::text(1, &Line::Charged(charge(event.into(), endless)), 0.0, &Note::default()).is_none(),
            "infinite"
        );
    }
}
