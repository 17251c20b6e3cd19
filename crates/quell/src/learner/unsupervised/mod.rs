//! Models without labels: private clusters (k-means) and principal components.
//!
//! A [`Recipe`] holds the settings, some of which may be missing. A [`Plan`] is complete: all its numbers are
//! public and fixed before the first record is read. [`Unsupervised`] offers it to
//! [`Training`](crate::run::Training), which pays and keeps the results.
//!
//! Every run of one mechanism releases a noisy sum of one vector for each record. The first runs find the mean
//! of all records and their usual distance from it. The next ones find moments, or divide the space. For
//! k-means, the last runs move the centres. What a run sums depends on earlier releases alone.
//!
//! ```
//! use quell::{
//!     data::{Examples, Targets},
//!     learner::{Evaluation, Method, PublicFacts, Subject, unsupervised::{Recipe, Unsupervised}},
//!     ledger::InMemory,
//!     network::Architecture,
//!     privacy::units::{Delta, Epsilon},
//! };
//! // 2,000 points near (-1/2, -1/2) and as many near (1/2, 1/2). Targets are not used.
//! let x: Vec<f32> = (0..8_000).map(|i| if i % 4 < 2 { -0.5 } else { 0.5 }).collect();
//! let examples = Examples::numbers(&[2], x, Targets::Numbers(vec![0.0; 4_000]))?;
//!
//! let mut recipe = Recipe { clusters: Some(2), records: Some(4_000), ..Recipe::default() };
//! (recipe.privacy.epsilon, recipe.privacy.delta) = (Some(1.0), Some(1e-5));
//! let mut model = Architecture { name: Some("kmeans".into()), ..Architecture::default() };
//! let facts = PublicFacts { records: None, classes: None };
//! let subject = Subject { shape: &[2], are_features: false, facts, schema: None };
//! let method = Unsupervised::plan(&mut recipe, &mut model, &subject)?;
//! let mut ledger = InMemory::ledger("points", Epsilon::new(1.0)?, Delta::new(1e-5)?)?;
//! let clusters = method.train(&examples, &mut ledger)?;
//! let Evaluation::Clusters { inertia, .. } = clusters.evaluate(&examples) else { unreachable!() };
//! assert!(inertia < 0.05);
//! # Ok::<(), quell::Error>(())
//! ```

mod centres;
mod components;
mod kmeans;
mod lloyd;
mod loadings;
mod method;
mod models;
mod plan;
mod recipe;
mod seeding;
mod state;
mod survey;
mod tree;
mod vectors;

pub use centres::{Centre, Centres, Coordinate, Mean, Share};
pub(crate) use components::RUNS as COMPONENT_RUNS;
pub use loadings::{Direction, Loading, Loadings};
pub use method::Unsupervised;
pub(crate) use models::restore;
pub use models::{Clusters, Components};
pub use plan::Plan;
pub use recipe::{Kind, Recipe};
pub(super) use state::Findings;
pub use state::State;
pub(super) use vectors::Vectors;

/// Public numbers that estimates are made with.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Facts {
    /// Number of features.
    width: usize,
    /// Number of columns: the largest squared length of an example.
    columns: f64,
    /// The public number of records.
    records: f64,
    /// Standard deviation of the noise in each number of a release.
    noise: f64,
    /// Standard deviation of the noise if there were one release with the whole guarantee.
    whole_noise: f64,
}
