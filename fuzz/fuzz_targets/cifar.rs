//! CIFAR-10 batches. First byte: packed or not, and maybe the same once more as the part to test on.
#![no_main]
use libfuzzer_sys::fuzz_target;
use quell::data::Options;
use quell_fuzz::{learn, put, split};

fuzz_target!(|input: &[u8]| {
    let (first, content) = split(input);
    let ending = if first & 1 == 0 { "bin" } else { "bin.gz" };
    let folder = format!("{}", first & 3);
    let path = put(&format!("{folder}/data_batch_1.{ending}"), content);
    if first & 2 != 0 {
        put(&format!("{folder}/test_batch.{ending}"), content);
    }
    learn(path.parent().expect("a file is in a folder"), &Options::default());
});
