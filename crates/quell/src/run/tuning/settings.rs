//! The settings of a search, and the record of it in a model.

use std::num::NonZero;

use quell_privacy::{Event, number::format_brief};
use serde::{Deserialize, Serialize};

use crate::run::Configuration;

/// The settings of a search, as `tune.toml` holds them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TuningConfiguration {
    /// Expected number of trials. After each trial the search ends with probability one over it.
    ///
    /// If all trials are shown, it is the number of candidates.
    pub expected: NonZero<u32>,
    /// Whether every candidate is tried once, and the score of every trial is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub show_trials: bool,
    /// ε of the whole search.
    pub epsilon: f64,
    /// δ of the whole search. Chosen by the number of records if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// ε of the noisy score of each trial, if the test records are private.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_epsilon: Option<f64>,
    /// ε of each trial without its score, at δ over the expected number of trials. Chosen by the search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial_epsilon: Option<f64>,
    /// The settings that trials are drawn from.
    pub candidates: Vec<Candidate>,
}

/// The settings of one kind of trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// What distinguishes it from the others, in the words of the user.
    pub name: String,
    /// All its settings.
    pub configuration: Configuration,
}

/// How the settings of a model were found, as its file records it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchRecord {
    /// Expected number of trials.
    pub expected: u32,
    /// The candidate that won.
    pub winner: String,
    /// All candidates, in words.
    pub candidates: Vec<String>,
    /// Whether the score was computed on private test records, with noise.
    pub private_score: bool,
    /// The privacy event of a trial of each kind, as JSON. If all trials are shown, one event of all of them.
    pub trials: Vec<String>,
    /// Whether every candidate was tried once, and the score of every trial is shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shows_trials: bool,
}

impl SearchRecord {
    /// The privacy event of the search; `None` if the record is damaged.
    pub(in crate::run) fn event(&self) -> Option<Event> {
        let trials: Option<Vec<Event>> =
            self.trials.iter().map(|trial| serde_json::from_str(trial).ok()).collect();
        if self.shows_trials {
            return trials?.into_iter().next();
        }
        Some(Event::BestOf { expected: self.expected, trials: trials? })
    }
}

/// The score of a trial that is shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialRecord {
    /// What distinguishes its settings from those of other trials.
    pub settings: String,
    /// What was measured, such as `accuracy`.
    pub measure: String,
    /// Whether a higher value is better.
    pub higher_is_better: bool,
    /// The measured value; `None` if it is not a number.
    pub value: Option<f64>,
}

impl TrialRecord {
    /// A number that is larger for better trials of one search.
    #[must_use]
    pub fn goodness(&self) -> f64 {
        let sign = if self.higher_is_better { 1.0 } else { -1.0 };
        self.value.map_or(f64::NEG_INFINITY, |value| sign * value)
    }

    /// The value in words.
    #[must_use]
    pub fn describe_value(&self) -> String {
        match self.value {
            Some(share) if matches!(self.measure.as_str(), "accuracy" | "explained variance") => {
                format!("{:.1} %", 100.0 * share)
            }
            Some(value) => format_brief(value),
            None => "none".into(),
        }
    }
}
