//! Tables without a header: dates, texts, aliases, true and false. First byte: the delimiter.
//!
//! Every input is a table: no first record makes an error.
#![no_main]
use libfuzzer_sys::fuzz_target;
use quell::data::{Options, Schema, open};
use quell_fuzz::{learn, put, split};

const SCHEMA: &str = "
    [file]
    header = ['c', 'a', 'b', 'd', 'e']
    missing = ['?', '-1']
    [label]
    column = 'c'
    classes = ['x', 'y']
    aliases = { 'x.' = 'x' }
    [[column]]
    name = 'a'
    date = { from = '1970-01-01', to = '2030-12-31', parts = ['month', 'weekday'] }
    unknown = true
    [[column]]
    name = 'b'
    boolean = true
    [[column]]
    name = 'd'
    text = { hashed = 7 }
    unknown = true
    [[column]]
    name = 'e'
    date = { from = '2000-01-01', to = '2000-01-02', order = 'day-month-year' }
";

fuzz_target!(|input: &[u8]| {
    let (first, content) = split(input);
    let path = put("table.data", content);
    let mut schema = Schema::parse(SCHEMA).expect("the schema is right");
    schema.file.delimiter = char::from(first & 127).to_string().parse().ok();
    let options = Options { schema: Some(schema), ..Options::default() };
    assert!(open(&path, &options).is_ok(), "no record makes an error");
    learn(&path, &options);
});
