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

/// As many digits as the noise leaves meaningful, and one more; what rounding adds is part of the stated error.
fn spoken(release: &Release) -> String {
    let Release { value, within } = *release;
    match within {
        // A count has no digits after the point.
        Within::Value(error) if value.fract() == 0.0 && error >= 1.0 => format!("{value} ± {error}"),
        Within::Value(error) => {
            let places = (1.0 - error.max(1e-300).log10().floor()).clamp(0.0, 17.0) as usize;
            let error = error + 0.5 * 10_f64.powi(-(places as i32));
            format!("{value:.places$} ± {}", rounded(error, 2, Toward::Up))
        }
        Within::Secret => format!("{} (how far off is a secret of the data)", rounded(value, 6, Toward::Down)),
        // All digits: a rounded answer could be many records away.
        Within::Rank(records) => format!("{value} ± {records} records"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_within_what_is_printed() {
        for (value, error) in [(38.6049, 0.1301), (0.000_012_345, 0.000_002), (123_456.7, 30.2), (99.95, 1.0), (5.0, 0.05)] {
            let text = spoken(&Release { value, within: Within::Value(error) });
            let (said, stated) = text.split_once(" ± ").unwrap();
            let (said, stated): (f64, f64) = (said.parse().unwrap(), stated.parse().unwrap());
            assert!(said - stated <= value - error && said + stated >= value + error, "{text}");
        }
    }

    #[test]
    fn quantiles_are_printed_with_all_their_digits() {
        for value in [40.0, 1_234_567.8, 39.999_999_9, -0.25] {
            let text = spoken(&Release { value, within: Within::Rank(26.0) });
            assert_eq!(text, format!("{value} ± 26 records"));
            assert_eq!(text.split(' ').next().unwrap().parse::<f64>().unwrap().to_bits(), value.to_bits());
        }
    }
}
