//! Where a run comes from: its date, the version of Quell, and the command line.

use serde::{Deserialize, Serialize};

/// Where a run comes from. Front ends write it for the report; it holds public words alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The time at which the run started, such as `2026-11-18 13:05 UTC`.
    pub date: String,
    /// The version of Quell.
    pub version: String,
    /// The command line that started the run, without passwords and without folders of absolute paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}
