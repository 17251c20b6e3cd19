//! Schemas: one that is read is what is written.
#![no_main]
use libfuzzer_sys::fuzz_target;
use quell::data::Schema;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match Schema::parse(text) {
        Ok(schema) => {
            let written = schema.to_toml().expect("a schema can be written");
            assert_eq!(Schema::parse(&written).expect("what was written can be read"), schema);
            let _ = (schema.features(), schema.unscaled(0.5));
        }
        Err(error) => assert!(!error.to_string().is_empty() && error.hint().is_none_or(|hint| !hint.to_string().is_empty())),
    }
});
