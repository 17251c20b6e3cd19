//! Recommendations from ratings, with the user as the unit of privacy.
//!
//! All ratings of one user together are one record. A [`Recipe`] holds the settings, some of which may be
//! missing. A [`Plan`] is complete: all its numbers are public and fixed before the first rating is read.
//! [`Factorizing`] offers it to [`Training`](crate::run::Training), which pays and keeps the results.
//!
//! Every run of one mechanism releases a noisy sum of one vector for each user. The first run finds popular
//! items in a public list. The second run measures them, and finds their biases. With enough users, four more
//! runs find pairs of items that the same users rate, and from these the factors of items. What a run sums
//! depends on earlier releases alone. A [`Factorization`] holds these numbers about items and none about
//! users: recommendations are computed from a user's own ratings, on the side of the user.
//!
//! Examples have one feature, the rating, and the item is their class.
//!
//! ```
//! use quell::{
//!     data::{Examples, Targets},
//!     learner::{Method, Predictor, PublicFacts, Subject, factorization::{Factorizing, Recipe}},
//!     ledger::InMemory,
//!     network::Architecture,
//!     privacy::{Neighbors, ledger::{Budget, Composition, Ledger, Terms, Unit}, units::{Delta, Epsilon}},
//! };
//! // 4,000 users rate three of six items, either the first three or the last three.
//! let ratings = (0..12_000_u32).map(|i| (i / 3, i % 3 + 3 * (i / 3 % 2)));
//! let (users, labels): (Vec<_>, Vec<_>) = ratings.map(|(user, item)| (Some(user.to_le_bytes()), item)).unzip();
//! let names = ["a", "b", "c", "d", "e", "f"].map(String::from).to_vec();
//! let targets = Targets::Classes { labels, names };
//! let examples = Examples::numbers(&[1], vec![4.0; 12_000], targets)?.with_users(&users)?;
//!
//! let mut recipe = Recipe { bounds: Some([1.0, 5.0]), records: Some(4_000), ..Recipe::default() };
//! (recipe.privacy.epsilon, recipe.privacy.delta) = (Some(1.0), Some(1e-5));
//! let facts = PublicFacts { records: None, classes: Some(6) };
//! let subject = Subject { shape: &[1], are_features: false, facts, schema: None };
//! let method = Factorizing::plan(&mut recipe, &mut Architecture::default(), &subject)?;
//! let terms = Terms {
//!     dataset: "ratings".into(),
//!     unit: Unit::User,
//!     neighbors: Neighbors::AddRemove,
//!     budget: Budget { epsilon: Some(Epsilon::new(1.0)?), delta: Delta::new(1e-5)? },
//!     composition: Composition::Combined,
//! };
//! let mut ledger = Ledger::create(InMemory::new("ratings"), terms)?;
//! let Predictor::Factorization(model) = method.train(&examples, &mut ledger)? else { unreachable!() };
//! let best = model.recommend(&[(3, 5.0), (4, 5.0)], 1);
//! assert_eq!(best[0].item, 5);
//! # Ok::<(), quell::Error>(())
//! ```

mod method;
mod model;
mod plan;
mod popular;
mod recipe;
mod state;
mod taste;
mod vectors;

pub use method::Factorizing;
pub(crate) use model::restore;
pub use model::{Factorization, Recommendation};
pub use plan::Plan;
pub use popular::{Popular, PopularItem};
pub use recipe::{NAME, PURPOSE, Recipe, TITLE};
pub use state::State;
pub use vectors::Ratings;
