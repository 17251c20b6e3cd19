//! What comes out, for people and for programs.

use quell_privacy::{
    mechanism::{Release, Within},
    number::{Toward, rounded},
};
use serde::Serialize;

use crate::print;

/// An answer to a question.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// One number.
    Number {
        /// What it is.
        name: &'static str,
        #[serde(flatten)]
        release: Release,
    },
    /// Yes or no.
    Truth(bool),
    /// A number for each key.
    Bins(Vec<(String, Release)>),
    /// Two numbers.
    Ends([Release; 2]),
}

impl Answer {
    pub(super) fn number(name: &'static str, release: Release) -> Self {
        Self::Number { name, release }
    }
}

/// As many digits as the noise leaves meaningful, and one more.
fn spoken(release: &Release) -> String {
    let Release { value, within } = *release;
    match within {
        // A count has no digits after the point.
        Within::Value(error) if value.fract() == 0.0 && error >= 1.0 => format!("{value} ± {error}"),
        Within::Value(error) => {
            let places = (1.0 - error.max(1e-300).log10().floor()).clamp(0.0, 17.0) as usize;
            format!("{value:.places$} ± {}", rounded(error, 2, Toward::Up))
        }
        Within::Secret => format!("{} (how far off is a secret of the data)", rounded(value, 6, Toward::Down)),
        Within::Rank(records) => format!("{} ± {records} records", rounded(value, 6, Toward::Down)),
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number { name, release } => write!(f, "{name}: {}", spoken(release)),
            Self::Truth(answer) => f.write_str(if *answer { "yes" } else { "no" }),
            Self::Bins(bins) => {
                let rows: Vec<Vec<String>> = bins.iter().map(|(key, release)| vec![key.clone(), spoken(release)]).collect();
                f.write_str(&print::table(&rows, &[]))
            }
            Self::Ends([low, high]) => write!(f, "from: {}\nto: {}", spoken(low), spoken(high)),
        }
    }
}
