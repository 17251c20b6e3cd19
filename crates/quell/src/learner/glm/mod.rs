//! Generalised linear models: private regression and classification of tables.
//!
//! A [`Recipe`] holds the settings, some of which may be missing. A [`Plan`] is complete: all its numbers
//! follow from the recipe and public facts, and from no record. [`Glm`] offers it to
//! [`Training`](crate::run::Training), which pays and keeps the results.
//!
//! The default method needs no setting but ε and a rough number of records. Every run of its one mechanism
//! releases a noisy sum over all records. The first runs find the mean of every column, the next ones its
//! spread. Both standardise the columns. All other runs are gradients of the loss.
//!
//! ```
//! use quell::{
//!     data::{Examples, Targets},
//!     learner::{Method, PublicFacts, Subject, glm::{Glm, Recipe}},
//!     ledger::InMemory,
//!     network::Architecture,
//!     privacy::units::{Delta, Epsilon},
//! };
//! // 4,000 numbers in [-1, 1]; the class says whether the first of two is the larger one.
//! let x: Vec<f32> = (0..4_000).map(|i| (i * i % 2_003) as f32 / 1_001.5 - 1.0).collect();
//! let labels = x.chunks(2).map(|pair| u32::from(pair[0] > pair[1])).collect();
//! let names = vec!["second".into(), "first".into()];
//! let examples = Examples::numbers(&[2], x, Targets::Classes { labels, names })?;
//!
//! let mut recipe = Recipe::default();
//! (recipe.privacy.epsilon, recipe.privacy.delta) = (Some(1.0), Some(1e-5));
//! let facts = PublicFacts { records: Some(2_000), classes: Some(2) };
//! let subject = Subject { shape: &[2], are_features: false, facts, schema: None };
//! let method = Glm::plan(&mut recipe, &mut Architecture::default(), &subject)?;
//! let mut ledger = InMemory::ledger("pairs", Epsilon::new(1.0)?, Delta::new(1e-5)?)?;
//! let model = method.train(&examples, &mut ledger)?;
//! assert!(model.evaluate(&examples).accuracy() > Some(0.9));
//! # Ok::<(), quell::Error>(())
//! ```

mod algorithm;
mod calibration;
pub(super) mod cholesky;
mod columns;
mod compact;
mod curves;
mod encoding;
mod frank_wolfe;
mod leaves;
mod method;
mod minimized;
mod minimizer;
mod plan;
mod rate;
mod recipe;
mod rows;
mod rules;
mod stages;
mod standardization;
mod state;
mod suitability;
mod theory;
mod vectors;
mod waves;
mod weights;

pub use algorithm::Algorithm;
pub(in crate::learner) use columns::Columns;
pub use curves::{Category, Curve, Curves, Knot, Values};
pub use frank_wolfe::FrankWolfe;
pub use method::Glm;
pub use minimized::Minimized;
pub(crate) use minimizer::{MOST_RECORDS, short};
pub use minimizer::{Minimizer, Problem};
pub use plan::Plan;
pub use recipe::{Family, Recipe};
use standardization::Standardization;
pub(in crate::learner) use standardization::{NORMAL, SPREADS, shrink};
pub use state::State;
pub use weights::Weights;
