//! Answers to questions about a table.

use quell_privacy::{
    mechanism::{Release, Within},
    number::{Toward, format_rounded},
};
use serde::Serialize;

/// An answer to a question, with its error.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Answer {
    /// A single number.
    Number {
        /// Name of the statistic.
        name: &'static str,
        /// The number and its error.
        #[serde(flatten)]
        release: Release,
    },
    /// Yes or no.
    Truth(bool),
    /// A number for each key.
    Bins(Vec<(String, Release)>),
    /// No key is shown, because none has a noisy count of `least`. As JSON, it is an empty list of bins.
    #[serde(rename = "bins", serialize_with = "nothing")]
    NoKey {
        /// The noisy count from which a key is shown.
        least: u64,
    },
    /// No pair of keys is shown, because none has a noisy count of `least`. As JSON, it is an empty list of cells.
    #[serde(rename = "cells", serialize_with = "nothing")]
    NoPair {
        /// The noisy count from which a pair is shown.
        least: u64,
    },
    /// A number for each pair of keys of two columns.
    Cells(Vec<([String; 2], Release)>),
    /// Lower and upper end of a range.
    Ends([Release; 2]),
    /// Several quantiles, each with its number.
    Quantiles(Vec<(f64, Release)>),
    /// The answers of a plan, in its order.
    Several(Vec<Named>),
}

/// Writes an empty list: the threshold is in the words of the answer.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn nothing<S: serde::Serializer>(_least: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(std::iter::empty::<u64>())
}

/// An answer of a plan, with the words of its question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Named {
    /// What was asked, such as `mean of age`.
    pub question: String,
    /// The answer.
    pub answer: Answer,
}

impl Answer {
    /// Formats a number with one digit more than the noise leaves meaningful.
    ///
    /// The stated error includes the rounding.
    #[must_use]
    pub fn describe(release: &Release) -> String {
        let Release { value, within } = *release;
        match within {
            // A count is an integer.
            Within::Value(error) if value.fract() == 0.0 && error >= 1.0 => format!("{value} ± {error}"),
            Within::Value(error) => {
                let places = (1.0 - error.max(1e-300).log10().floor()).clamp(0.0, 17.0) as usize;
                let error = error + 0.5 * 10_f64.powi(-(places as i32));
                format!("{value:.places$} ± {}", format_rounded(error, 2, Toward::Up))
            }
            Within::Secret => {
                format!("{} (the size of the error is private)", format_rounded(value, 6, Toward::Down))
            }
            // All digits: rounding could move the answer past many records.
            Within::Rank(records) => format!("{value} ± {records} records"),
        }
    }
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.answer {
            Answer::Number { release, .. } => write!(f, "{}: {}", self.question, Answer::describe(release)),
            answer @ Answer::Truth(_) => write!(f, "{}: {answer}", self.question),
            answer => {
                let lines = answer.to_string();
                write!(f, "{}:\n  {}", self.question, lines.trim_end().replace('\n', "\n  "))
            }
        }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number { name, release } => write!(f, "{name}: {}", Self::describe(release)),
            Self::Truth(answer) => f.write_str(if *answer { "yes" } else { "no" }),
            // Keys come from the data. The debug form keeps control characters from acting on a terminal.
            Self::Bins(bins) => {
                bins.iter().try_for_each(|(key, release)| writeln!(f, "{key:?}: {}", Self::describe(release)))
            }
            Self::NoKey { least } => {
                write!(f, "no key is shown: none has a noisy count of {least} or more")
            }
            Self::NoPair { least } => {
                write!(f, "no pair of keys is shown: none has a noisy count of {least} or more")
            }
            Self::Cells(cells) => cells.iter().try_for_each(|([row, column], release)| {
                writeln!(f, "{row:?}, {column:?}: {}", Self::describe(release))
            }),
            Self::Ends([low, high]) => {
                write!(f, "from: {}\nto: {}", Self::describe(low), Self::describe(high))
            }
            Self::Quantiles(quantiles) => {
                quantiles.iter().enumerate().try_for_each(|(number, (q, release))| {
                    write!(f, "{}{q}: {}", if number == 0 { "" } else { "\n" }, Self::describe(release))
                })
            }
            Self::Several(answers) => answers
                .iter()
                .enumerate()
                .try_for_each(|(number, named)| write!(f, "{}{named}", if number == 0 { "" } else { "\n" })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_interval_contains_the_exact_one() {
        for (value, error) in
            [(38.6049, 0.1301), (0.000_012_345, 0.000_002), (123_456.7, 30.2), (99.95, 1.0), (5.0, 0.05)]
        {
            let text = Answer::describe(&Release { value, within: Within::Value(error) });
            let (printed, stated) = text.split_once(" ± ").unwrap();
            let (printed, stated): (f64, f64) = (printed.parse().unwrap(), stated.parse().unwrap());
            assert!(printed - stated <= value - error && printed + stated >= value + error, "{text}");
        }
    }

    #[test]
    fn quantiles_are_printed_with_all_their_digits() {
        for value in [40.0, 1_234_567.8, 39.999_999_9, -0.25] {
            let text = Answer::describe(&Release { value, within: Within::Rank(26.0) });
            assert_eq!(text, format!("{value} ± 26 records"));
            assert_eq!(text.split(' ').next().unwrap().parse::<f64>().unwrap().to_bits(), value.to_bits());
        }
    }

    #[test]
    fn a_key_cannot_act_on_a_terminal() {
        let bins =
            Answer::Bins(vec![("a\u{1b}[2J\n9".into(), Release { value: 3.0, within: Within::Value(1.0) })]);
        assert_eq!(bins.to_string(), "\"a\\u{1b}[2J\\n9\": 3 ± 1\n");
    }
}
