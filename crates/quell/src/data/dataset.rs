//! What is trained and tested on.

use super::Examples;

/// Records to train on, and maybe others to test on.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// What it is called: the name of its file or folder.
    pub name: String,
    /// What a learner trains on.
    pub train: Examples,
    /// What nothing is trained on.
    pub test: Option<Examples>,
    /// Whether the test part may be looked at for free. Otherwise what is said about it must be paid for too.
    pub test_is_public: bool,
}
