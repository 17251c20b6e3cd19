//! NPY files. First byte: features or labels, classes or none, and of how many records the other file is.
#![no_main]
use libfuzzer_sys::fuzz_target;
use quell::data::Options;
use quell_fuzz::{classes, learn, put, split};

fuzz_target!(|input: &[u8]| {
    let (first, content) = split(input);
    let (labels, declared, count) = (first & 0x80 != 0, first & 0x40 != 0, first & 0x3f);
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({count},)}}");
    let mut other = b"\x93NUMPY\x01\x00".to_vec();
    other.extend((header.len() as u16).to_le_bytes());
    other.extend(header.as_bytes());
    other.resize(other.len() + 4 * usize::from(count), 0);
    let path = put("x.npy", if labels { &other } else { content });
    put("y.npy", if labels { content } else { &other });
    learn(&path, &if declared { classes(3) } else { Options::default() });
});
