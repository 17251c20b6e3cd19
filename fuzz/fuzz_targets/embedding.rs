//! Word vectors. First byte: text, text in gzip, or safetensors with a list of words.
#![no_main]
use libfuzzer_sys::fuzz_target;
use quell::data::{FeatureKind, Options, Schema, TextFeatures};
use quell_fuzz::{learn, put, split};

fuzz_target!(|input: &[u8]| {
    let (first, content) = split(input);
    let table = put("texts.csv", b"t,c\na b,x\nb the,y\n,x\n");
    let name = ["words.txt", "words.txt.gz", "words.safetensors"][usize::from(first % 3)];
    let vocabulary = (first % 3 == 2).then(|| put("list.txt", b"a\nb\nthe\n"));
    let mut schema = Schema::parse("[label]\ncolumn = 'c'\nclasses = ['x', 'y']\n[[column]]\nname = 't'\nboolean = true")
        .expect("the schema is right");
    let embedding = Some(put(name, content));
    schema.columns[0].kind = FeatureKind::Text(TextFeatures { embedding, vocabulary, ..TextFeatures::default() });
    learn(&table, &Options { schema: Some(schema), ..Options::default() });
});
