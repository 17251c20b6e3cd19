//! Configurations: one that is read can be written, and read again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use quell::run::Configuration;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match Configuration::parse(text) {
        Ok(mut configuration) => {
            let written = configuration.write().expect("a configuration can be written");
            Configuration::parse(&written).expect("what was written can be read");
            // A network that is described is built or refused.
            if let Err(error) = configuration.model.build(&[1, 8, 8], 10) {
                assert!(!error.to_string().is_empty() && error.hint().is_none_or(|hint| !hint.to_string().is_empty()));
            }
        }
        Err(error) => assert!(!error.to_string().is_empty() && error.hint().is_none_or(|hint| !hint.to_string().is_empty())),
    }
});
