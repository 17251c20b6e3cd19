//! The settings of a labelling run, as a TOML file.

use std::path::Path;

use quell_privacy::{mechanism::Voters, units::SamplingRate};
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    features::Features,
    file,
    learner::{
        average::Average,
        optimizer::Optimizer,
        schedule::{Schedule, Shape},
    },
    network::{self, Architecture},
    run::{
        NewBudget, Source,
        configuration::{LARGEST_CONFIGURATION, from_toml, to_toml},
    },
    voting,
    voting::student,
};

/// The settings of a labelling run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Configuration {
    /// The private records, with the public records as test data.
    pub data: Source,
    /// The number of public records that may be asked about, from the first on.
    /// The other public records are used for evaluation only. The default is four fifths of the public
    /// records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions: Option<usize>,
    /// The features that voters use.
    #[serde(skip_serializing_if = "Features::is_raw")]
    pub features: Features,
    /// The voters.
    pub voters: VoterSettings,
    /// How questions are asked, and what may be spent on them.
    pub votes: voting::Recipe,
    /// The student, which is trained on the answers.
    pub student: Student,
    /// The total budget of the dataset, used if its ledger does not exist yet.
    /// If omitted, the budget is the cost of this run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<NewBudget>,
    /// The seed of public randomness. It does not affect the noise.
    pub seed: u64,
}

/// The settings of the voters: teachers, or the nearest records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum VoterSettings {
    /// Models trained on disjoint shards of the private records.
    Teachers {
        /// The number of teachers.
        count: usize,
        /// The model of a teacher; logistic regression on the features if omitted.
        #[serde(default)]
        model: Architecture,
        /// How a teacher is trained.
        #[serde(default = "teacher")]
        training: student::SoftLabelTraining,
    },
    /// The records nearest to a question, within a random sample.
    Nearest {
        /// The number of nearest records that vote.
        neighbors: usize,
        /// Probability that a record enters a sample.
        rate: f64,
        /// The number of principal components on which distance is measured.
        /// The components are those of the public records' features. If omitted, distance is measured on the
        /// features.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        components: Option<usize>,
        /// The number of turns. Each turn has the same number of answers.
        /// Before each turn but the first, a student is trained, and distance is measured on its features.
        #[serde(default = "once")]
        turns: u32,
    },
}

fn once() -> u32 {
    1
}

/// The default training of a teacher: a small convex problem, solved to convergence.
fn teacher() -> student::SoftLabelTraining {
    student::SoftLabelTraining {
        epochs: 40,
        least_steps: 300,
        batch: 32,
        optimizer: Optimizer::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 },
        schedule: Schedule { learning_rate: 5e-3, warm_up: 0, shape: Shape::Cosine { last: 0.0 } },
        average: Average::None,
        views: None,
        mixup: 0.0,
        self_training: 0.0,
    }
}

impl VoterSettings {
    /// The default teachers, `count` of them.
    #[must_use]
    pub fn teachers(count: usize) -> Self {
        Self::Teachers { count, model: Architecture::default(), training: teacher() }
    }
}

impl Default for VoterSettings {
    fn default() -> Self {
        Self::teachers(250)
    }
}

/// The settings of the student, which is trained on the answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Student {
    /// The features that the student uses; the raw records if omitted.
    #[serde(skip_serializing_if = "Features::is_raw")]
    pub features: Features,
    /// The model of the student.
    pub model: Architecture,
    /// Which questions are asked.
    pub choice: Choice,
    /// How labels spread to the other public records.
    pub propagation: student::Propagation,
    /// How the student is trained.
    pub training: student::SoftLabelTraining,
}

/// Which questions are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// First the questions that represent many others.
    #[default]
    Representative,
    /// Representative questions for half of the answers, then the most uncertain questions.
    Active,
    /// In the order of the file.
    InOrder,
}

impl Configuration {
    /// Reads settings from TOML.
    pub fn parse(text: &str) -> Result<Self, Error> {
        from_toml(text)
    }

    /// Reads settings from a file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::parse(&file::read_text(path, LARGEST_CONFIGURATION)?)
    }

    /// Records the hashes of the public networks that compute features.
    /// Also records the scaling of their inputs, which must be the same for voters and student.
    pub(super) fn pin(&mut self) -> Result<(), Error> {
        self.data.pin(&mut self.features)?;
        let scaling = self.data.scaling.clone();
        self.data.pin(&mut self.student.features)?;
        match (&self.features, &self.student.features) {
            (Features::Network { .. }, Features::Network { path, .. }) if scaling != self.data.scaling => {
                let found = "was trained on records with another scaling than the voters use".into();
                Err(network::Error::PublicNetwork {
                    path: path.clone(),
                    found,
                    expected: "a network with the scaling of the voters",
                }
                .into())
            }
            _ => Ok(()),
        }
    }

    /// The public facts about the votes among `classes` classes.
    pub fn vote_facts(&self, classes: usize) -> Result<voting::VoteFacts, Error> {
        let (voters, ballots) = match self.voters {
            VoterSettings::Teachers { count, .. } => (Voters::Teachers, count),
            VoterSettings::Nearest { neighbors, rate, .. } => {
                (Voters::Nearest { rate: SamplingRate::new(rate)? }, neighbors)
            }
        };
        let at_most_u32 = |count: usize| count.try_into().unwrap_or(u32::MAX);
        Ok(voting::VoteFacts {
            candidates: classes,
            voters,
            ballots: at_most_u32(ballots),
            questions: at_most_u32(self.questions.unwrap_or(0)),
        })
    }

    /// The default settings for labelling the embedded digits by teachers.
    pub fn digits_by_teachers() -> Result<Self, Error> {
        Self::parse(include_str!("teachers.toml"))
    }

    /// The default settings for labelling the embedded digits by nearest neighbours.
    pub fn digits_by_neighbors() -> Result<Self, Error> {
        Self::parse(include_str!("neighbors.toml"))
    }

    /// Writes the settings as TOML.
    pub fn write(&self) -> Result<String, Error> {
        to_toml(self)
    }
}
