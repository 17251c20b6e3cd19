//! The programs in `examples/` that draw figures run, and what they assert holds.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "../../../examples/threshold.rs"]
mod threshold;

#[test]
fn threshold_runs() {
    threshold::main().unwrap();
}
