//! Parquet tables. Their decoder asserts of damaged files what is not so; the reader catches that, hence the fuzzer must not
//! take it for the end. What the reader does not catch still ends the fuzzer.
#![no_main]
use libfuzzer_sys::fuzz_target;
use quell_fuzz::{ask, put};
use std::sync::Once;

static QUIET: Once = Once::new();

fuzz_target!(|input: &[u8]| {
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| ())));
    ask(&put("table.parquet", input));
});
