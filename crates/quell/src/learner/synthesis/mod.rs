//! Synthetic data: rows that resemble those of a private table.
//!
//! A [`Recipe`] holds the settings, some of which may be missing. A [`Plan`] is complete: all its numbers are
//! public and fixed before the first record is read. [`Synthesis`] offers it to
//! [`Training`](crate::run::Training), which pays and keeps the results.
//!
//! Every run of one mechanism releases a noisy sum of one vector for each record: in which cells of some columns
//! or pairs of columns it is. The first runs count the values of each column. The next ones count coarse groups
//! of all pairs, from which the pairs are chosen that columns depend on most. These are measured in three rounds.
//! The last run counts all pairs again, so that errors can be estimated for pairs that were not measured. A
//! graphical model is fitted to all counts but the last, and rows are drawn from it. What a run counts depends on
//! earlier releases alone. Why these choices are made is in THEORY, Synthetic data.
//!
//! Examples are the columns of a schema with unknown cells marked and the label as one more column
//! ([`Schema::with_label_as_column`](crate::data::Schema::with_label_as_column)).
//!
//! ```
//! use quell::{
//!     data::{Examples, Schema, Targets},
//!     learner::{Method, Predictor, PublicFacts, Subject, synthesis::{Recipe, Synthesis}},
//!     ledger::InMemory,
//!     network::Architecture,
//!     privacy::units::{Delta, Epsilon},
//! };
//! let schema = Schema::parse(
//!     "[[column]]\nname = 'smokes'\ncategories = ['no', 'yes']\n[[column]]\nname = 'ill'\ncategories = ['no', 'yes']\n",
//! )?;
//! // In 4,000 records, whoever smokes is ill. The features of a column: no, yes, unknown.
//! let row = |i: u32| if i % 4 == 0 { [0.0, 1.0, 0.0, 0.0, 1.0, 0.0] } else { [1.0, 0.0, 0.0, 1.0, 0.0, 0.0] };
//! let x: Vec<f32> = (0..4_000).flat_map(row).collect();
//! let examples = Examples::numbers(&[6], x, Targets::Numbers(vec![0.0; 4_000]))?;
//!
//! let mut recipe = Recipe { records: Some(4_000), ..Recipe::default() };
//! (recipe.privacy.epsilon, recipe.privacy.delta) = (Some(1.0), Some(1e-5));
//! let facts = PublicFacts { records: None, classes: None };
//! let subject = Subject { shape: &[6], are_features: false, facts, schema: Some(&schema) };
//! let method = Synthesis::plan(&mut recipe, &mut Architecture::default(), &subject)?;
//! let mut ledger = InMemory::ledger("people", Epsilon::new(1.0)?, Delta::new(1e-5)?)?;
//! let Predictor::Synthesizer(model) = method.train(&examples, &mut ledger)? else { unreachable!() };
//! let rows = model.csv(1_000, 7);
//! let ill_smokers = rows.lines().filter(|row| *row == "yes,yes").count();
//! assert!((200..300).contains(&ill_smokers), "{ill_smokers}");
//! # Ok::<(), quell::Error>(())
//! ```

mod choice;
mod distribution;
mod domain;
mod draw;
mod errors;
mod file;
mod fit;
mod groups;
mod junction;
mod measured;
mod measurements;
mod method;
mod minimize;
mod model;
mod plan;
mod propagation;
mod query;
mod recipe;
mod schedule;
mod vectors;

pub use domain::{Column, Domain, Kind};
pub use errors::{ErrorSummary, PairError};
pub(crate) use file::restore;
pub use measurements::Measurements;
pub use method::Synthesis;
pub use model::{MeasuredColumn, Synthesizer};
pub use plan::Plan;
pub use recipe::{MOST_ROWS, NAME, PURPOSE, Recipe, TITLE};
pub use vectors::{Records, Vectors};

/// The state of a run: all releases so far.
pub type State = crate::learner::sums::Releases<Measurements>;
