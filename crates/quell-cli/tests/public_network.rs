//! A public network before whoever learns: what it makes of records, and what is said where it cannot.

use std::{fs, path::Path, process::Command};

use crate::command::{Ran, folder};
use quell::{
    data::{Examples, digits},
    features::Features,
    learner::{
        loss::{Loss, arg_max},
        scores,
    },
    run::Model,
};
use serde_json::Value;

fn run(here: &Path, arguments: &str) -> Ran {
    Command::new(env!("CARGO_BIN_EXE_quell"))
        .args(arguments.split_whitespace())
        .current_dir(here)
        .output()
        .unwrap()
        .into()
}

fn json(here: &Path, arguments: &str) -> Value {
    let ran = run(here, &format!("{arguments} --format json"));
    assert_eq!(ran.code, 0, "{arguments}: {}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn refused(here: &Path, arguments: &str, says: &str) {
    let ran = run(here, arguments);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments}: {}", ran.stderr);
    assert!(ran.stderr.contains(says) && ran.stderr.contains("hint: "), "{arguments}: {}", ran.stderr);
}

fn row(examples: &Examples, record: usize) -> Vec<f32> {
    let mut row = vec![0.0; examples.width()];
    examples.gather(record, &mut row);
    row
}

/// A folder with a model of the embedded digits, of three layers.
fn with_network(name: &str) -> std::path::PathBuf {
    let here = folder(name);
    json(&here, "train --model mlp-tanh --output public");
    here
}

#[test]
fn the_last_layer_on_features_of_a_network_predicts_as_the_network() {
    let here = with_network("network features");
    let path = here.join("public/model.safetensors");
    let (model, records) = (Model::open(&path).unwrap(), digits().unwrap().test.unwrap());
    let seen = Features::network(&path).apply(&records).unwrap();
    assert_eq!((seen.shape(), seen.len()), ([1000].as_slice(), records.len()));
    // The weights of the last layer stand last, one row for each class, then what is added.
    let own = model.predictor.network().unwrap();
    let (weights, added) = own.weights[own.weights.len() - 10 * 1001..].split_at(10 * 1000);
    let said = scores(&own.network, &own.weights, &records, Loss::CrossEntropy { label_smoothing: 0.0 });
    for (record, said) in said.iter().enumerate() {
        let features = row(&seen, record);
        let score = |class: usize| -> f32 {
            let products = features.iter().zip(&weights[class * 1000..]).map(|(x, w)| x * w);
            products.sum::<f32>() + added[class]
        };
        assert_eq!(arg_max(&(0..10).map(score).collect::<Vec<_>>()), arg_max(said), "record {record}");
    }
}

#[test]
fn voters_and_table_models_use_features_of_a_public_network() {
    let here = with_network("network voters");
    let network = "--public-network public/model.safetensors";
    for verb in ["knn", "pate --teachers 50"] {
        let output = verb.split_whitespace().next().unwrap();
        let labelled = json(&here, &format!("{verb} {network} --output {output}"));
        assert!(labelled["accuracy"]["all"].as_f64().unwrap() > 0.6, "{labelled}");
        let kept = fs::read_to_string(here.join(output).join("labels.toml")).unwrap();
        assert!(kept.contains("kind = \"network\"") && kept.contains("digest = \""), "{kept}");
        let report = fs::read_to_string(here.join(output).join("report.md")).unwrap();
        assert!(report.contains("all layers except the last of public/model.safetensors"), "{report}");
        assert_eq!(json(&here, &format!("resume {output}"))["answered"], labelled["answered"]);
    }
    let linear = json(&here, &format!("train {network} --model logistic --output linear"));
    assert!(linear["accuracy"].as_f64().unwrap() > 0.6, "{linear}");
    let tested = json(&here, "evaluate linear");
    assert_eq!(tested["accuracy"], linear["accuracy"], "the same features as in training");
    assert_eq!(
        run(&here, "predict linear").stdout.lines().count(),
        1 + digits().unwrap().test.unwrap().len()
    );

    // A model on a network's features needs that very network.
    json(&here, "train --model mlp-tanh --seed 5 --output other");
    fs::copy(here.join("public/model.safetensors"), here.join("kept")).unwrap();
    fs::copy(here.join("other/model.safetensors"), here.join("public/model.safetensors")).unwrap();
    refused(&here, "predict linear", "public/model.safetensors has changed since it was first used");
    refused(&here, "resume knn", "has changed since it was first used");
    fs::remove_file(here.join("public/model.safetensors")).unwrap();
    refused(&here, "predict linear", "the public network public/model.safetensors does not exist");
    fs::rename(here.join("kept"), here.join("public/model.safetensors")).unwrap();
    refused(&here, "knn --public-network linear/model.safetensors", "uses the features of another network");
}

#[test]
fn files_that_are_not_a_fitting_network_are_refused() {
    let here = with_network("network refused");
    json(&here, "train --model logistic --output line");
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for file in ["census.csv", "census.toml"] {
        fs::copy(examples.join(file), here.join(file)).unwrap();
    }
    for (arguments, says) in [
        ("knn --public-network census.csv", "the public network census.csv contains no model"),
        ("train --public-network public/config.toml", "contains no model"),
        (
            "pate --public-network nothing.safetensors",
            "the public network nothing.safetensors does not exist",
        ),
        ("pate --public-network public", "the public network public cannot be read"),
        (
            "train census.csv --schema census.toml --public-network public/model.safetensors",
            "expects records of 1 × 8 × 8",
        ),
        ("knn --public-network line/model.safetensors", "line/model.safetensors has one layer"),
        ("knn --features hog --public-network public/model.safetensors", "cannot be used with"),
    ] {
        let ran = run(&here, arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{arguments}: {}", ran.stderr);
    }
    assert!(!here.join("runs").exists(), "a run that was refused leaves no folder");
}
