//! The process that paid for something: a copy of it made by `fork` must not use it again.

use crate::error::{Error, Result};

/// The process in which something was made.
///
/// After a fork both processes hold the same noise, or the same unused steps of a payment. Used twice, one payment
/// would release twice, or the same noise would be drawn twice.
#[derive(Clone, Copy)]
pub(crate) struct Process(u32);

impl Process {
    /// The process that runs.
    pub(crate) fn this() -> Self {
        Self(std::process::id())
    }

    /// Refuses in any other process.
    pub(crate) fn check(self, what: &str) -> Result<()> {
        if self.0 == std::process::id() {
            return Ok(());
        }
        let found = format!("{what} belongs to the process that made it, and this is a copy of that process");
        let hint = "use it in the process that made it; a ledger in a file can be used by several processes";
        Err(Error::Hinted("RunError", found, hint.into()))
    }
}
