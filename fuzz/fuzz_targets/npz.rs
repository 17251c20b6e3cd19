//! NPZ archives.
#![no_main]
use libfuzzer_sys::fuzz_target;
use quell_fuzz::{classes, learn, put};

fuzz_target!(|input: &[u8]| learn(&put("data.npz", input), &classes(3)));
