//! The table of learners, and the table of models that settings can name.

use serde::{Deserialize, Serialize};

use super::Configuration;
use crate::{
    data::Schema,
    learner::{
        factorization, glm::Family, naive_bayes, section::Section, synthesis, tree, unsupervised::Kind,
    },
    network,
};

/// A learner. Its settings are a section of a configuration; those of DP-SGD are `training`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Learner {
    /// DP-SGD, for all networks.
    DpSgd,
    /// Linear models.
    Glm,
    /// Models without labels: clusters and principal components.
    Unsupervised,
    /// Naive Bayes.
    NaiveBayes,
    /// A decision tree.
    Tree,
    /// Recommendations from ratings.
    Factorization,
    /// Synthetic data.
    Synthesis,
}

/// What a run must know about a learner besides its methods.
pub(super) struct Row {
    pub(super) learner: Learner,
    /// The name, as a configuration writes it.
    pub(super) name: &'static str,
    /// The section of a configuration with the settings of the learner.
    pub(super) section: fn(&mut Configuration) -> &mut dyn Section,
    /// The section in words, with examples of its settings.
    pub(super) settings: &'static str,
    /// How the label of a table is used.
    pub(super) label: LabelUse,
}

/// All learners. Their methods are in the registry.
pub(super) const LEARNERS: [Row; 7] = [
    Row {
        learner: Learner::DpSgd,
        name: "dp-sgd",
        section: |all| &mut all.training,
        settings: "training, such as steps or clipping",
        label: LabelUse::Target,
    },
    Row {
        learner: Learner::Glm,
        name: "glm",
        section: |all| &mut all.glm,
        settings: "glm, such as quantile, regularization, radius or waves",
        label: LabelUse::Target,
    },
    Row {
        learner: Learner::Unsupervised,
        name: "unsupervised",
        section: |all| &mut all.unsupervised,
        settings: "unsupervised, such as clusters or components",
        label: LabelUse::Ignored,
    },
    Row {
        learner: Learner::NaiveBayes,
        name: "naive-bayes",
        section: |all| &mut all.naive_bayes,
        settings: "naive_bayes",
        label: LabelUse::Target,
    },
    Row {
        learner: Learner::Tree,
        name: "tree",
        section: |all| &mut all.tree,
        settings: "tree",
        label: LabelUse::Target,
    },
    Row {
        learner: Learner::Synthesis,
        name: "synthesis",
        section: |all| &mut all.synthesis,
        settings: "synthesis",
        label: LabelUse::Column,
    },
    Row {
        learner: Learner::Factorization,
        name: "factorization",
        section: |all| &mut all.factorization,
        settings: "factorization",
        label: LabelUse::Ignored,
    },
];

impl Learner {
    /// The row of the learner in the table.
    pub(super) fn row(self) -> &'static Row {
        // A test checks that every learner has a row.
        LEARNERS.iter().find(|row| row.learner == self).unwrap_or(&LEARNERS[0])
    }

    /// How the label of a table is used.
    #[must_use]
    pub fn label_use(self) -> LabelUse {
        self.row().label
    }
}

/// How a learner uses the label of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelUse {
    /// It is the target that the model predicts.
    Target,
    /// It is not read.
    Ignored,
    /// It is one more column.
    Column,
}

impl LabelUse {
    /// The schema by which such a learner reads a table.
    #[must_use]
    pub fn schema(self, schema: &Schema) -> Schema {
        match self {
            Self::Target | Self::Ignored => schema.clone(),
            Self::Column => schema.with_label_as_column(),
        }
    }

    /// The columns that such a learner plans for: numbers and categories, unless the label is one of them.
    pub(super) fn columns(self, schema: &Schema) -> Schema {
        match self {
            Self::Target | Self::Ignored => schema.plain(),
            Self::Column => schema.clone(),
        }
    }
}

/// A model that settings can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedModel {
    /// The name, as settings write it.
    pub name: &'static str,
    /// The model in words, for a title.
    pub title: &'static str,
    /// One sentence on the model and its use.
    pub purpose: &'static str,
    /// The data that the model is for.
    pub group: ModelGroup,
    /// The learner that trains the model.
    pub learner: Learner,
}

/// The data that a model is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelGroup {
    /// Tables with a label.
    Table,
    /// Data whose label is not predicted.
    WithoutLabels,
    /// All data with labels.
    Network,
}

/// All models that settings can name, group after group.
///
/// Logistic regression is a model of tables, and a network.
#[must_use]
pub fn named_models() -> Vec<NamedModel> {
    let row = |group: ModelGroup, learner: Learner| {
        move |[name, title, purpose]: [&'static str; 3]| NamedModel { name, title, purpose, group, learner }
    };
    let linear = Family::ALL.map(|family| [family.name(), family.title(), family.purpose()]);
    let unsupervised = Kind::ALL.map(|kind| [kind.name(), kind.title(), kind.purpose()]);
    let (table, without_labels) = (ModelGroup::Table, ModelGroup::WithoutLabels);
    let mut models = linear.map(row(table, Learner::Glm)).to_vec();
    models.push(row(table, Learner::NaiveBayes)([
        naive_bayes::NAME,
        naive_bayes::TITLE,
        naive_bayes::PURPOSE,
    ]));
    models.push(row(table, Learner::Tree)([tree::NAME, tree::TITLE, tree::PURPOSE]));
    models.extend(unsupervised.map(row(without_labels, Learner::Unsupervised)));
    let factorization = [factorization::NAME, factorization::TITLE, factorization::PURPOSE];
    models.push(row(without_labels, Learner::Factorization)(factorization));
    let synthesis = [synthesis::NAME, synthesis::TITLE, synthesis::PURPOSE];
    models.push(row(without_labels, Learner::Synthesis)(synthesis));
    let networks = network::models().iter().map(|model| [model.name, model.title, model.purpose]);
    models.extend(networks.map(row(ModelGroup::Network, Learner::DpSgd)));
    models
}

/// The names of all models, each once.
#[must_use]
pub fn model_names() -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for model in named_models() {
        if !names.iter().any(|known| known == model.name) {
            names.push(model.name.into());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_learner_of_a_named_model_has_a_row_with_the_name_of_its_setting() {
        for NamedModel { learner, name, .. } in named_models() {
            let rows: Vec<&Row> = LEARNERS.iter().filter(|row| row.learner == learner).collect();
            assert_eq!(rows.len(), 1, "{name}");
            let written = serde_json::to_value(learner).unwrap();
            assert_eq!(written, rows[0].name, "{name}");
        }
    }
}
