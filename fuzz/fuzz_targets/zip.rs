//! Zip archives of a table.
#![no_main]
use libfuzzer_sys::fuzz_target;
use quell_fuzz::{ask, put};

fuzz_target!(|input: &[u8]| ask(&put("table.zip", input)));
