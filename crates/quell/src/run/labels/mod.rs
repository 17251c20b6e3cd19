//! Labelling runs: private votes label public records, and a student is trained on the labels.
//!
//! The voters are teachers, or the private records nearest to a question. A run on external ballots releases
//! answers only; it has no student.
//!
//! The subfolder `private` of the folder holds private data: the shards of the records, and the ballots of
//! finished teachers while other teachers are trained. The run removes the subfolder when the questions are
//! answered. The [parent module](super) says which parts of the folder are public.

mod configuration;
mod external;
mod labelling;
mod payment;
mod voters;

pub use configuration::{Choice, Configuration, Student, VoterSettings};
pub use external::{About, External, ExternalBallots};
pub use labelling::{Labelling, Results};
pub use payment::Revealed;
