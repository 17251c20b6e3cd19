//! Exported ONNX files, read by a small reader of protocol buffers that shares no code with the writer.
//!
//! benches/export.py runs the files with onnxruntime and compares the scores.

use std::{collections::HashSet, fs, path::Path};

use crate::command::{folder, json, run};

/// The fields of a message: number and content.
#[derive(Debug)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Float,
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return number;
        }
    }
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let field = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)),
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(content)
            }
            5 => {
                let (content, rest) = bytes.split_at(4);
                bytes = rest;
                assert!(f32::from_le_bytes(content.try_into().unwrap()).is_finite());
                Field::Float
            }
            other => panic!("wire type {other}"),
        };
        all.push((tag >> 3, field));
    }
    all
}

fn messages<'a>(bytes: &'a [u8], number: u64) -> Vec<&'a [u8]> {
    let wanted = |(found, field): (u64, Field<'a>)| match field {
        Field::Bytes(content) if found == number => Some(content),
        _ => None,
    };
    fields(bytes).into_iter().filter_map(wanted).collect()
}

fn texts(bytes: &[u8], number: u64) -> Vec<String> {
    messages(bytes, number).iter().map(|text| String::from_utf8(text.to_vec()).unwrap()).collect()
}

fn numbers(bytes: &[u8], number: u64) -> Vec<u64> {
    let wanted = |(found, field): &(u64, Field<'_>)| match field {
        Field::Number(value) if *found == number => Some(*value),
        _ => None,
    };
    fields(bytes).iter().filter_map(wanted).collect()
}

/// What the tests look at.
struct Exported {
    inputs: Vec<String>,
    outputs: Vec<String>,
    operators: Vec<String>,
    /// Number of floats in all constants.
    floats: u64,
    /// All texts in constants.
    words: Vec<String>,
    metadata: Vec<(String, String)>,
}

/// Reads a file, and checks that every value is defined before it is used.
fn read(path: &Path) -> Exported {
    let bytes = fs::read(path).unwrap();
    assert_eq!(numbers(&bytes, 1), [9], "version of the format");
    let operators = messages(&bytes, 8);
    assert_eq!((operators.len(), numbers(operators[0], 2)), (1, vec![19]), "operator set");
    let graph = messages(&bytes, 7)[0];
    let name = |value: &&[u8]| texts(value, 1)[0].clone();
    let inputs: Vec<String> = messages(graph, 11).iter().map(name).collect();
    let outputs: Vec<String> = messages(graph, 12).iter().map(name).collect();
    let mut defined: HashSet<String> = inputs.iter().cloned().collect();
    assert_eq!(defined.len(), inputs.len(), "no input twice");
    let (mut floats, mut all_words) = (0, Vec::new());
    for constant in messages(graph, 5) {
        let count: u64 = numbers(constant, 1).iter().product();
        let (raw, words) = (messages(constant, 9), messages(constant, 6));
        let (size, found) = match numbers(constant, 2)[0] {
            1 => (4, raw[0].len()),
            7 | 11 => (8, raw[0].len()),
            8 => (1, words.len()),
            other => panic!("element type {other}"),
        };
        assert_eq!(count * size, found as u64, "size of a constant");
        all_words.extend(texts(constant, 6));
        floats += if size == 4 { count } else { 0 };
        assert!(defined.insert(texts(constant, 8)[0].clone()), "a name twice");
    }
    let mut kinds = Vec::new();
    for node in messages(graph, 1) {
        for input in texts(node, 1) {
            assert!(defined.contains(&input), "{input} is used before it is defined");
        }
        for output in texts(node, 2) {
            assert!(defined.insert(output), "a name twice");
        }
        kinds.extend(texts(node, 4));
        for attribute in messages(node, 5) {
            let kind = numbers(attribute, 20);
            let float =
                fields(attribute).iter().any(|(number, field)| *number == 2 && matches!(field, Field::Float));
            assert!(kind == [2] || kind == [7] || (kind == [1] && float), "{attribute:?}");
        }
    }
    assert!(outputs.iter().all(|output| defined.contains(output)), "every output is computed");
    let pair = |entry: &&[u8]| (texts(entry, 1)[0].clone(), texts(entry, 2)[0].clone());
    let metadata = messages(&bytes, 14).iter().map(pair).collect();
    Exported { inputs, outputs, operators: kinds, floats, words: all_words, metadata }
}

fn works(here: &Path, line: &str) -> String {
    let ran = run(here, line);
    assert_eq!(ran.code, 0, "{line}: {}", ran.stderr);
    ran.stdout
}

#[test]
fn networks_of_images_are_exported_with_all_weights() {
    let here = folder("export images");
    for (model, operators) in [
        ("logistic", vec!["Transpose", "Reshape", "Gemm", "Softmax"]),
        ("mlp-tanh", vec!["Tanh", "Gemm"]),
        ("digits", vec!["Conv", "MaxPool", "Tanh"]),
        ("resnet", vec!["Conv", "Relu", "Sqrt", "ReduceMean", "Add"]),
        ("transformer", vec!["LayerNormalization", "MatMul", "Softmax"]),
    ] {
        let train = format!("train --model {model} --steps 1 --epsilon 1");
        let weights = json(&here, &format!("{train} --dry-run --format json"))["weights"].as_u64().unwrap();
        works(&here, &format!("{train} --output {model}"));
        works(&here, &format!("export {model} --output {model}.onnx"));
        let exported = read(&here.join(format!("{model}.onnx")));
        assert_eq!((exported.inputs.len(), exported.inputs[0].as_str()), (1, "input"), "{model}");
        assert_eq!(exported.outputs, ["prediction", "scores"], "{model}");
        for operator in operators {
            assert!(exported.operators.iter().any(|found| found == operator), "{model}: {operator}");
        }
        // Few constants are no weights: scaling, and numbers of formulas.
        assert!((weights..weights + 40).contains(&exported.floats), "{model}: {}", exported.floats);
        let of = |key: &str| exported.metadata.iter().find(|(name, _)| name == key).unwrap().1.clone();
        assert!(of("quell.classes").starts_with("[\"0\",\"1\"") && of("quell.statement").contains("Promise"));
        assert!(of("quell.paid").contains("\"receipt\""));
    }
}

#[test]
fn the_scattering_transform_is_exported_as_products_of_matrices() {
    let here = folder("export scattering");
    works(&here, "train --features scattering --steps 1 --epsilon 1 --output run");
    works(&here, "export run --output model.onnx");
    let exported = read(&here.join("model.onnx"));
    assert_eq!((exported.inputs.as_slice(), exported.outputs.len()), (["input".to_owned()].as_slice(), 2));
    // Two products each: the reflected picture, four local means, two Fourier transforms, three inverse ones.
    let count = |operator: &str| exported.operators.iter().filter(|found| *found == operator).count();
    assert!(count("MatMul") == 20 && count("Sqrt") == 4, "{:?}", exported.operators);
}

#[test]
fn models_of_tables_take_the_columns_by_name() {
    let here = folder("export tables");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for file in ["census.csv", "census.toml"] {
        fs::copy(examples.join(file), here.join(file)).unwrap();
    }
    for (model, operator) in
        [("additive", "Floor"), ("forest", "Or"), ("tree", "GatherElements"), ("naive-bayes", "Gemm")]
    {
        works(
            &here,
            &format!(
                "train census.csv --schema census.toml --records 5000 --epsilon 1 --delta 1e-7 --budget 9 --model {model} --output {model}"
            ),
        );
        works(&here, &format!("export {model} --output {model}.onnx"));
        let exported = read(&here.join(format!("{model}.onnx")));
        assert_eq!(exported.inputs, ["age", "education", "sex", "hours_per_week"], "{model}");
        for wanted in ["Equal", "IsNaN", operator] {
            assert!(exported.operators.iter().any(|found| found == wanted), "{model}: {wanted}");
        }
        let columns = exported.metadata.iter().find(|(name, _)| name == "quell.columns").unwrap();
        assert!(columns.1.contains("\"bounds\":[17.0,90.0]"), "{}", columns.1);
    }
    // What has no ONNX form is refused with the reason.
    works(
        &here,
        "train census.csv --schema census.toml --records 5000 --epsilon 1 --delta 1e-7 --model kmeans --clusters 2 --output clusters",
    );
    works(&here, "train --features hog --steps 1 --epsilon 1 --output hog");
    for (model, says) in
        [("clusters", "kmeans, expected a network"), ("hog", "oriented gradients, expected a model on raw")]
    {
        let refused = run(&here, &format!("export {model} --output refused.onnx"));
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{}", refused.stderr);
        assert!(refused.stderr.contains(says) && !here.join("refused.onnx").exists(), "{}", refused.stderr);
    }
}

#[test]
fn every_spelling_of_a_cell_is_exported_and_no_column_takes_the_name_of_another_value() {
    let here = folder("export names");
    let columns = [
        ("constant_2", "bounds = [0, 9]"),
        ("prediction", "bounds = [0, 9]\nunknown = true"),
        ("scores", "boolean = true"),
        ("colour", "categories = ['red', 'blue']\naliases = { Rot = 'red', maroon = 'red' }\nunknown = true"),
    ];
    let mut schema = String::from("[label]\ncolumn = 'y'\nclasses = ['no', 'yes']\n");
    for (name, kind) in columns {
        schema += &format!("[[column]]\nname = '{name}'\n{kind}\n");
    }
    let rows = (0..60).map(|i| {
        let word = |words: &[&'static str]| words[i % words.len()];
        let (truth, colour) = (word(&["Yes", "no"]), word(&["Rot", "red", "blue"]));
        format!("{},{},{truth},{colour},{}\n", i % 10, i % 7, word(&["no", "yes"]))
    });
    let table = String::from("constant_2,prediction,scores,colour,y\n") + &rows.collect::<String>();
    fs::write(here.join("people.csv"), table).unwrap();
    fs::write(here.join("schema.toml"), schema).unwrap();
    works(
        &here,
        "train people.csv --schema schema.toml --records 60 --epsilon 5 --delta 1e-4 --model logistic --output run",
    );
    works(&here, "export run --output model.onnx");
    // The reader refuses a name that is given twice.
    let exported = read(&here.join("model.onnx"));
    assert_eq!(exported.inputs, columns.map(|(name, _)| name));
    assert_eq!(exported.outputs, ["prediction_output", "scores_output"]);
    for word in ["red", "blue", "Rot", "maroon", "yes", "YES", "fAlSe", "0", "1"] {
        assert!(exported.words.iter().any(|found| found == word), "{word}: {:?}", exported.words);
    }
    fs::write(
        here.join("dates.toml"),
        fs::read_to_string(here.join("schema.toml")).unwrap().replace(
            "name = 'constant_2'\nbounds = [0, 9]",
            "name = 'constant_2'\ndate = { from = '2024-01-01', to = '2024-12-31' }",
        ),
    )
    .unwrap();
    works(
        &here,
        "train people.csv --schema dates.toml --records 60 --epsilon 5 --delta 1e-4 --model logistic --budget 20 --dataset dates --output dates",
    );
    let refused = run(&here, "export dates --output dates.onnx");
    assert!(
        refused.code == 2 && refused.stderr.contains("trained on column \"constant_2\", which has dates"),
        "{}",
        refused.stderr
    );
}
