//! A decision tree: private splits and private leaves, as rules that people can read.
//!
//! A [`Recipe`] holds the settings, some of which may be missing. A [`Plan`] is complete: all its numbers are
//! public and fixed before the first record is read. [`Tree`] offers it to
//! [`Training`](crate::run::Training), which pays and keeps the results.
//!
//! Every run of one mechanism releases a noisy sum of one vector for each record. Each of the first runs counts
//! the classes in histograms of all columns, at all nodes of one level. Every node is then split by the question
//! with the largest gain, unless noise explains the gain. The last run counts the classes at the leaves. Numeric
//! targets have counts and sums instead. What a run counts depends on earlier releases alone. Where noise would
//! hide every gain, splits are public random ones, and one run counts at the leaves.
//!
//! ```
//! use quell::{
//!     data::{Examples, Targets},
//!     learner::{Method, PublicFacts, Subject, tree::{Recipe, Tree}},
//!     ledger::InMemory,
//!     network::Architecture,
//!     privacy::units::{Delta, Epsilon},
//! };
//! // 8,000 numbers in [-1, 1]; the class says whether one of two is above a quarter.
//! let x: Vec<f32> = (0..8_000).map(|i| (i * i % 2_003) as f32 / 1_001.5 - 1.0).collect();
//! let labels = x.chunks(2).map(|pair| u32::from(pair[1] > 0.25)).collect();
//! let names = vec!["small".into(), "large".into()];
//! let examples = Examples::numbers(&[2], x, Targets::Classes { labels, names })?;
//!
//! let mut recipe = Recipe::default();
//! (recipe.privacy.epsilon, recipe.privacy.delta) = (Some(1.0), Some(1e-5));
//! let facts = PublicFacts { records: Some(4_000), classes: Some(2) };
//! let subject = Subject { shape: &[2], are_features: false, facts, schema: None };
//! let method = Tree::plan(&mut recipe, &mut Architecture::default(), &subject)?;
//! let mut ledger = InMemory::ledger("pairs", Epsilon::new(1.0)?, Delta::new(1e-5)?)?;
//! let model = method.train(&examples, &mut ledger)?;
//! assert!(model.evaluate(&examples).accuracy() > Some(0.9));
//! # Ok::<(), quell::Error>(())
//! ```

mod cells;
mod estimate;
mod gain;
mod growth;
mod method;
mod plan;
mod recipe;
mod rules;
mod vectors;

pub use growth::Growth;
pub use method::Tree;
pub use plan::Plan;
pub use recipe::{Recipe, Splits};
pub use rules::{Rule, rules};

/// The name of the model, as settings write it.
pub const NAME: &str = "tree";

/// The model in words, for a title.
pub const TITLE: &str = "Decision tree";

/// One sentence on the model and its use.
pub const PURPOSE: &str = "A decision tree with private splits and leaves: rules that people can read.";
