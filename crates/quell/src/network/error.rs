//! Errors about named models and public networks.

use std::path::PathBuf;

use crate::{
    Hint,
    error::{listed, quoted},
    hint::nearest,
};

/// Why a named model or a public network cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no model of this name.
    #[error("there is no model {}, expected one of {}", quoted(name), listed(models))]
    NoModel {
        /// The requested name.
        name: String,
        /// The names of all models.
        models: Vec<String>,
    },
    /// The file of a public network cannot be used for features.
    #[error("the public network {} {found}, expected {expected}", path.display())]
    PublicNetwork {
        /// The file.
        path: PathBuf,
        /// What is wrong with the file.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
}

impl Error {
    /// What to try next.
    pub(crate) fn hint(&self) -> Hint {
        match self {
            Self::NoModel { name, models } => match other_name(name)
                .filter(|other| models.iter().any(|model| model == other))
                .or_else(|| nearest(name, models.iter().map(String::as_str)))
            {
                Some(near) => Hint::DidYouMean { name: near.to_owned() },
                None => Hint::ChooseModel,
            },
            Self::PublicNetwork { .. } => Hint::RestoreNetwork,
        }
    }
}

/// The model that other libraries and papers call by this name.
fn other_name(name: &str) -> Option<&'static str> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    Some(match plain.to_ascii_lowercase().as_str() {
        "pca" | "principalcomponents" | "principalcomponentanalysis" => "components",
        "randomforest" | "randomforests" | "forests" => "forest",
        "boosting" | "gradientboosting" | "gbm" | "gbdt" | "xgboost" | "lightgbm" | "ebm" | "gam" => {
            "additive"
        }
        "nb" | "gaussiannb" | "bayes" => "naive-bayes",
        "decisiontree" | "cart" => "tree",
        "als" | "mf" | "matrixfactorization" | "matrixfactorisation" | "svd" | "recommender" => {
            "factorization"
        }
        "clusters" | "clustering" | "lloyd" => "kmeans",
        "synthesis" | "synthetic" | "mst" | "aim" => "synthesizer",
        "logisticregression" => "logistic",
        "linearregression" => "linear",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_libraries_lead_to_models_that_exist() {
        let models = crate::run::model_names();
        for (name, model) in [
            ("pca", "components"),
            ("random-forest", "forest"),
            ("RandomForest", "forest"),
            ("boosting", "additive"),
            ("gradient-boosting", "additive"),
            ("xgboost", "additive"),
            ("nb", "naive-bayes"),
            ("gaussian-nb", "naive-bayes"),
            ("decision-tree", "tree"),
            ("als", "factorization"),
            ("mf", "factorization"),
            ("matrix-factorization", "factorization"),
            ("k-means", "kmeans"),
            ("mst", "synthesizer"),
            ("logistic_regression", "logistic"),
            ("LinearRegression", "linear"),
        ] {
            let error = Error::NoModel { name: name.into(), models: models.clone() };
            assert_eq!(error.hint(), Hint::DidYouMean { name: model.into() }, "{name}");
        }
    }
}
