//! Models in files: what is read can be written and used.
#![no_main]
use libfuzzer_sys::fuzz_target;
use quell::run::Model;

fuzz_target!(|input: &[u8]| {
    match Model::restore(input) {
        Ok(model) => {
            model.save().expect("a model can be written");
            if let Some(found) = model.predictor.network().filter(|found| found.network.parameters() < 1 << 16) {
                found.network.predict(&found.weights, 1, |_, input| input.fill(0.5), |_, _| {});
            }
        }
        Err(error) => assert!(!error.to_string().is_empty() && error.hint().is_none_or(|hint| !hint.to_string().is_empty())),
    }
});
