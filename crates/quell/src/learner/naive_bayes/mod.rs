//! Naive Bayes: a class from the distributions of single columns, with one release.
//!
//! A [`Recipe`] holds the settings, some of which may be missing. A [`Plan`] is complete: all its numbers are
//! public and fixed before the first record is read. [`NaiveBayes`] offers it to
//! [`Training`](crate::run::Training), which pays and keeps the results.
//!
//! Within a class, a number has a normal distribution and a category has a probability. One noisy sum over all
//! records holds everything that these distributions need. The model is a network: the logarithm of a normal
//! density is linear in x and x², so a layer appends squares, and a linear layer adds up.
//!
//! ```
//! use quell::{
//!     data::{Examples, Targets},
//!     learner::{Method, PublicFacts, Subject, naive_bayes::{NaiveBayes, Recipe}},
//!     ledger::InMemory,
//!     network::Architecture,
//!     privacy::units::{Delta, Epsilon},
//! };
//! // 2,000 numbers in [-1, 1]; those of the second class are close to zero.
//! let x: Vec<f32> = (0..2_000).map(|i| if i % 2 == 0 { (i % 7) as f32 / 3.0 - 1.0 } else { 0.0 }).collect();
//! let labels = (0..2_000).map(|i| i % 2).collect();
//! let names = vec!["far".into(), "near".into()];
//! let examples = Examples::numbers(&[1], x, Targets::Classes { labels, names })?;
//!
//! let mut recipe = Recipe::default();
//! (recipe.privacy.epsilon, recipe.privacy.delta) = (Some(1.0), Some(1e-5));
//! let facts = PublicFacts { records: Some(2_000), classes: Some(2) };
//! let subject = Subject { shape: &[1], are_features: false, facts, schema: None };
//! let method = NaiveBayes::plan(&mut recipe, &mut Architecture::default(), &subject)?;
//! let mut ledger = InMemory::ledger("numbers", Epsilon::new(1.0)?, Delta::new(1e-5)?)?;
//! let model = method.train(&examples, &mut ledger)?;
//! assert!(model.evaluate(&examples).accuracy() > Some(0.8));
//! # Ok::<(), quell::Error>(())
//! ```

mod block;
mod estimate;
mod method;
mod plan;
mod recipe;
mod released;
mod vectors;

use block::Block;
pub use method::NaiveBayes;
pub use plan::Plan;
pub use recipe::Recipe;
pub use released::ReleasedSum;
pub use vectors::Vectors;

/// The name of the model, as settings write it.
pub const NAME: &str = "naive-bayes";

/// The model in words, for a title.
pub const TITLE: &str = "Naive Bayes";

/// One sentence on the model and its use.
pub const PURPOSE: &str = "Naive Bayes, for classes: independent columns, learned from one release.";
