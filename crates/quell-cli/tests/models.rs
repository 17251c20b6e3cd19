//! `quell models`, as a whole.

use crate::command::{quell, quell_with};
use quell::run::Configuration;

#[test]
fn every_model_has_a_description_and_weights() {
    let text = quell("models").data();
    let (text, others) = text.split_once("\n\n").unwrap();
    let (linear, unsupervised) = others.split_once("\n\n").unwrap();
    for (table, name) in [(linear, "\npoisson "), (unsupervised, "\nkmeans ")] {
        assert!(table.contains(name) && table.lines().skip(1).all(|line| line.ends_with('.')), "{table}");
    }
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("name") && lines.len() >= 10, "{text}");
    assert!(text.contains("logistic        7850  One linear layer"), "{text}");
    assert!(lines[1..].iter().all(|line| line.ends_with('.')), "{text}");
    let json = quell("models --input 28x28x1 --format json").json();
    let models = json["models"].as_array().unwrap();
    assert_eq!(models.len(), lines.len() - 1);
    // 16·64 + 16, 32·256 + 32, 512·32 + 32, 32·10 + 10: the network of Opacus.
    let cnn = models.iter().find(|model| model["name"] == "cnn").unwrap();
    assert_eq!(cnn["weights"], 26_010);
}

#[test]
fn weights_depend_on_the_shape_and_unfit_models_are_marked() {
    let json = quell("models --input 5 --outputs 2 --format json").json();
    let models = json["models"].as_array().unwrap();
    let of = |name: &str| models.iter().find(|model| model["name"] == name).unwrap();
    assert_eq!(of("logistic")["weights"], 12);
    assert!(of("cnn")["weights"].is_null() && of("cnn")["error"].is_string(), "{json}");
    let text = quell("models --input 5 --outputs 2").data();
    assert!(
        text.lines().any(|line| line.starts_with("cnn ") && line.ends_with("Not for this shape.")),
        "{text}"
    );
}

#[test]
fn printed_layers_are_a_valid_configuration() {
    let json = quell("models --format json").json();
    for model in json["models"].as_array().unwrap() {
        let name = model["name"].as_str().unwrap();
        let text = quell(&format!("models {name}")).data();
        assert!(text.starts_with(&format!(
            "# {name} for examples of 28 × 28 × 1 and 10 outputs: {} weights.\n",
            model["weights"]
        )));
        let mut configuration =
            Configuration::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
        let network = configuration.model.build(&[1, 28, 28], 10).unwrap();
        assert_eq!(network.parameters() as u64, model["weights"].as_u64().unwrap(), "{name}");
    }
}

#[test]
fn models_without_fixed_layers_are_described() {
    for name in ["additive", "naive-bayes", "kmeans", "factorization"] {
        let ran = quell_with(&["models", name], "");
        assert!(
            ran.code == 0 && ran.stdout.starts_with(&format!("{name}: ")),
            "{} {}",
            ran.stdout,
            ran.stderr
        );
        let json = quell_with(&["models", name, "--format", "json"], "").json();
        assert_eq!(json["name"], name);
    }
}

#[test]
fn unknown_names_and_shapes_are_refused() {
    for (arguments, says) in [
        ("models ccn", "ccn"),
        ("models cnn --input 28", "expected"),
        ("models cnn --input 1x1x1", "kernel"),
        ("models --input 28x28x1x1", "28x28x1"),
        ("models --input 0", "expected"),
        ("models logistic --outputs 0", "outputs"),
        ("models logistic --input 999999999x999999999x999999999", "expected"),
        ("models logistic --outputs 99999999999999", "outputs"),
    ] {
        let ran = quell_with(&arguments.split_whitespace().collect::<Vec<_>>(), "");
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments}: {}", ran.stderr);
        assert!(
            ran.stderr.starts_with("error: ") && ran.stderr.contains(says),
            "{arguments}: {}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains("\nhint: ") && !ran.stderr.contains("internal error"),
            "{arguments}: {}",
            ran.stderr
        );
    }
}
