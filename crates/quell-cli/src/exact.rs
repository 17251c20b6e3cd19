//! Test feature: records the exact statistics behind the releases of a command.

use std::process::ExitCode;

use quell_privacy::exact::{Coins, watch};
use serde_json::json;

/// Runs the command. If `QUELL_EXACT_STATISTICS` names a file, writes the exact statistics into it.
pub(crate) fn watched(command: impl FnOnce() -> ExitCode) -> ExitCode {
    let Some(path) = std::env::var_os("QUELL_EXACT_STATISTICS") else { return command() };
    let (code, statistics) = watch(Coins::default(), command);
    let lines = statistics.iter().map(|seen| {
        let norm = format!("{:?}", seen.norm);
        json!({"mechanism": seen.mechanism, "values": seen.values, "norm": norm, "addition": seen.addition, "exchange": seen.exchange}).to_string()
    });
    // Without the file the test that asked for it fails.
    let _ = std::fs::write(path, lines.collect::<Vec<_>>().join("\n"));
    code
}
