//! Answers to public questions, by private votes: what PATE and Private-kNN have in common.
//!
//! Who votes is private; what is asked, and which answers were released, is public.

mod asking;
mod journal;
mod plan;
mod recipe;
mod release;

pub(crate) use asking::entry;
pub use asking::{Asker, Moment, ask};
pub use journal::{Entry, Journal, Reply};
pub use plan::{Facts, Plan};
pub use recipe::{Aggregator, Recipe};
pub use release::Release;
