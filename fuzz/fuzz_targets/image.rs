//! PNG and JPEG pictures.
#![no_main]
use libfuzzer_sys::fuzz_target;
use quell::data::Options;
use quell_fuzz::{learn, put};

fuzz_target!(|input: &[u8]| {
    let path = put("pictures/class/1.png", input);
    let folder = path.ancestors().nth(2).expect("a file is in two folders");
    learn(folder, &Options { public: true, ..Options::default() });
});
