//! A run from private votes to a student: public records are labelled by teachers or by the nearest private records, and a student learns from the answers.
//!
//! Everything in the folder is public, but for the subfolder `private`, where the ballots of finished teachers wait for the others; it goes when the questions are
//! answered.

mod asker;
mod configuration;
mod external;
mod job;
mod outcome;
mod payment;
mod reveal;
mod voters;

pub use configuration::{Choice, Configuration, Electors, Student};
pub use external::{About, Elsewhere, External};
pub use job::Job;
pub use outcome::{Moment, Outcome};
pub use reveal::Revealed;
