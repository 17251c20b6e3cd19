//! A labelling run: private votes label public records, and a student learns from the labels.
//! The voters are teachers, or the private records nearest to a question.
//!
//! The subfolder `private` of the folder holds private data: shards, and the ballots of finished teachers
//! while the other teachers are trained. The run removes the subfolder when the questions are answered. The
//! [parent module](super) says which parts of the folder are public.

mod asker;
mod configuration;
mod external;
mod labelling;
mod payment;
mod results;
mod reveal;
mod voters;

pub use configuration::{Choice, Configuration, Student, VoterSettings};
pub use external::{About, External, ExternalBallots};
pub use labelling::Labelling;
pub use results::Results;
pub use reveal::Revealed;
