//! What a run that labels public records is asked to do, as a file.

use std::path::Path;

use quell_privacy::{mechanism::Voters, units::SamplingRate};
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    average::Average,
    features::Features,
    optimizer::Optimizer,
    run::{Allowance, Architecture, Source, configuration::LARGEST_CONFIGURATION, file},
    schedule::{Schedule, Shape},
    student, toml_error, voting,
};

/// What a run is asked to do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Configuration {
    /// Private records, and public ones as what to test on.
    pub data: Source,
    /// Of the public records, the first so many may be asked about, and the others only measure the student; four fifths of them if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions: Option<usize>,
    /// What voters look at.
    #[serde(skip_serializing_if = "Features::is_raw")]
    pub features: Features,
    /// Who votes.
    pub voters: Electors,
    /// How questions are put, and what may be spent on them.
    pub votes: voting::Recipe,
    /// Who learns from the answers.
    pub student: Student,
    /// What may be spent on the dataset in all, if its ledger is still to be opened; what this run costs if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Allowance>,
    /// What public chance follows from. Noise does not.
    pub seed: u64,
}

/// Who votes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Electors {
    /// Models that learned from disjoint shards.
    Teachers {
        /// How many.
        count: usize,
        /// What they are; logistic regression on the features if left out.
        #[serde(default)]
        model: Architecture,
        /// How they learn.
        #[serde(default = "teacher")]
        training: student::Recipe,
    },
    /// The records nearest to a question, within a sample.
    Nearest {
        /// How many of them vote.
        neighbors: usize,
        /// Probability that a record enters a sample.
        rate: f64,
        /// On how many principal components of the public records' features near is measured; on the features themselves if left out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        components: Option<usize>,
        /// How often a student is trained and its features are used to ask again: the answers are divided among so many turns.
        #[serde(default = "once")]
        turns: u32,
    },
}

fn once() -> u32 {
    1
}

/// How a teacher learns if nobody says: a convex problem with few examples, to its end.
fn teacher() -> student::Recipe {
    student::Recipe {
        epochs: 40,
        least_steps: 300,
        batch: 32,
        optimizer: Optimizer::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 },
        schedule: Schedule { learning_rate: 5e-3, warm_up: 0, shape: Shape::Cosine { last: 0.0 } },
        average: Average::None,
        views: None,
        mixup: 0.0,
        trust: 0.0,
    }
}

impl Electors {
    /// So many teachers, as they usually are.
    #[must_use]
    pub fn teachers(count: usize) -> Self {
        Self::Teachers { count, model: Architecture::default(), training: teacher() }
    }
}

impl Default for Electors {
    fn default() -> Self {
        Self::teachers(250)
    }
}

/// Who learns from the answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Student {
    /// What it looks at; records as they are if left out.
    #[serde(skip_serializing_if = "Features::is_raw")]
    pub features: Features,
    /// What it is.
    pub model: Architecture,
    /// Which questions are asked.
    pub choice: Choice,
    /// How answers spread to the other public records.
    pub propagation: student::Propagation,
    /// How it learns.
    pub training: student::Recipe,
}

/// Which questions are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Those in the midst of many others first.
    #[default]
    Representative,
    /// Half of them so, then those about which the answers so far leave most doubt.
    Active,
    /// In the order of the file.
    InOrder,
}

impl Configuration {
    /// Reads TOML.
    pub fn parse(text: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| Error::Configuration { because: toml_error::describe(text, &error) })
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::parse(&file::read_text(path, LARGEST_CONFIGURATION)?)
    }

    /// Writes down which public networks voters and the student look through.
    pub(super) fn pin(&mut self) -> Result<(), Error> {
        self.features.pin(&mut self.data)?;
        let scaling = self.data.scaling.clone();
        self.student.features.pin(&mut self.data)?;
        match (&self.features, &self.student.features) {
            (Features::Network { .. }, Features::Network { path, .. }) if scaling != self.data.scaling => {
                let found = "learned from records that were scaled otherwise than voters see them".into();
                Err(Error::PublicNetwork { path: path.clone(), found, expected: "one that sees records as voters do" })
            }
            _ => Ok(()),
        }
    }

    /// What is public about the votes among so many classes.
    pub fn election(&self, classes: usize) -> Result<voting::Facts, Error> {
        let (voters, ballots) = match self.voters {
            Electors::Teachers { count, .. } => (Voters::Teachers, count),
            Electors::Nearest { neighbors, rate, .. } => (Voters::Nearest { rate: SamplingRate::new(rate)? }, neighbors),
        };
        let most = |count: usize| count.try_into().unwrap_or(u32::MAX);
        Ok(voting::Facts { candidates: classes, voters, ballots: most(ballots), questions: most(self.questions.unwrap_or(0)) })
    }

    /// How the embedded digits are labelled by teachers unless somebody says otherwise.
    pub fn digits_by_teachers() -> Result<Self, Error> {
        Self::parse(include_str!("teachers.toml"))
    }

    /// How the embedded digits are labelled by their neighbours unless somebody says otherwise.
    pub fn digits_by_neighbors() -> Result<Self, Error> {
        Self::parse(include_str!("neighbors.toml"))
    }

    /// The same as TOML.
    pub fn write(&self) -> Result<String, Error> {
        toml::to_string(self).map_err(|error| Error::Configuration { because: error.to_string() })
    }
}
