//! CSV and TSV tables. First byte: packed or not, commas or tabs; then every question, and examples by a schema.
#![no_main]
use libfuzzer_sys::fuzz_target;
use quell::data::{Options, Schema, Split};
use quell_fuzz::{ask, learn, put, split};

const SCHEMA: &str = "
    user = 'who'
    [label]
    column = 'c'
    classes = ['x', 'y']
    [[column]]
    name = 'a'
    bounds = [-1, 1]
    unknown = true
    [[column]]
    name = 'b'
    categories = ['x', '']
";

fuzz_target!(|input: &[u8]| {
    let (first, content) = split(input);
    let name = ["table.csv", "table.csv.gz", "table.tsv", "table.tsv.gz"][usize::from(first & 3)];
    let path = put(name, content);
    ask(&path);
    let schema = Schema::parse(SCHEMA).expect("the schema is right");
    learn(&path, &Options { schema: Some(schema), split: Some(Split { share: 0.5 }), ..Options::default() });
});
