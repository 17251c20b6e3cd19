//! Answers public questions by private votes: PATE, Private-kNN, and a student model.
//!
//! The votes are private. The questions and the released answers are public, so a student model may be
//! trained on them.
//!
//! ```
//! use quell::voting::{VoteFacts, Recipe, pate::Ballots};
//! use quell::{ledger::InMemory, privacy::{ledger::Unit, mechanism::Voters, units::Epsilon}};
//! // For each of 30 questions, all of 200 teachers vote for class 1 of 3.
//! let mut ballots = Ballots::new(3, 30)?;
//! for _ in 0..200 {
//!     ballots.push(&[1; 30]);
//! }
//! let recipe = Recipe { epsilon: Some(2.0), delta: Some(1e-5), answers: Some(30), ..Recipe::default() };
//! let facts = VoteFacts { candidates: 3, voters: Voters::Teachers, ballots: 200, questions: 30 };
//! let plan = recipe.plan(&facts)?;
//! let mut ledger = InMemory::ledger("patients", Epsilon::new(2.0)?, plan.delta)?;
//! let answered = plan.answer(&ballots, Unit::Example, &mut ledger)?;
//! assert!(answered.entries.iter().filter(|entry| entry.answer == Some(1)).count() >= 25);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "the answers of a run, in a file")]
mod journal;
pub mod knn;
pub mod pate;
mod plan;
mod recipe;
pub mod student;

pub(crate) use journal::{Asker, ask, entry};
pub use journal::{Entry, Journal, SurveyAnswer};
pub use plan::{Aggregation, Answered, Plan, VoteFacts};
pub use recipe::{Aggregator, Recipe};
