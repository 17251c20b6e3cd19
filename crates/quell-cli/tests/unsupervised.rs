//! `quell train --model kmeans` and `--model components`, from the table to the report.

use std::{fmt::Write, fs, path::Path};

use crate::command::{Ran, charges, folder, json, run};

/// Two groups of 1,000 records in two columns, as a private table and as a public one.
fn tables(here: &Path) {
    for (name, shift) in [("people.csv", 0.0), ("public.csv", 0.01)] {
        let mut text = String::from("a,b,y\n");
        for row in 0..2_000 {
            let middle = if row % 2 == 0 { 2.0 } else { 8.0 };
            let near = |step: u32| middle + shift + f64::from(row * step % 11) / 20.0 - 0.25;
            writeln!(text, "{},{},{}", near(3), near(7), ["", "no"][usize::from(row % 5 > 0)]).unwrap();
        }
        fs::write(here.join(name), text).unwrap();
    }
    let columns = "[[column]]\nname = 'a'\nbounds = [0, 10]\n[[column]]\nname = 'b'\nbounds = [0, 10]\n";
    fs::write(here.join("schema.toml"), format!("ignore = ['y']\n{columns}")).unwrap();
    let label = "[label]\ncolumn = 'y'\nclasses = ['yes', 'no']\n";
    fs::write(here.join("labelled.toml"), format!("{label}{columns}")).unwrap();
}

fn works(ran: &Ran) {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn clusters_are_found_predicted_measured_and_reported() {
    let here = folder("kmeans");
    tables(&here);
    let train = "train people.csv --records 2000 --epsilon 5 --model kmeans --clusters 2 --test public.csv";
    let ran = run(&here, &format!("{train} --schema schema.toml --output one"));
    works(&ran);
    assert!(ran.stdout.starts_with("mean squared distance to the centres: 0.0"), "{}", ran.stdout);
    assert_eq!(charges(&here, "people"), 1);

    let predicted = run(&here, "predict one public.csv");
    works(&predicted);
    let mut lines = predicted.stdout.lines();
    assert_eq!(lines.next(), Some("record,cluster"));
    let clusters: Vec<&str> = lines.map(|line| line.split_once(',').unwrap().1).collect();
    assert!(clusters.len() == 2_000 && clusters[0] != clusters[1], "{:?}", &clusters[..4]);
    assert!(clusters.chunks(2).all(|pair| pair == &clusters[..2]) && ["1", "2"].contains(&clusters[0]));

    let measured = json(&here, "evaluate one public.csv --public --format json");
    assert!(measured["evaluation"]["clusters"]["inertia"].as_f64().unwrap() < 0.05, "{measured}");
    let private = run(&here, "evaluate one people.csv --epsilon 1");
    assert!(private.code == 2 && private.stderr.contains("predicts no target"), "{}", private.stderr);
    let undeclared = run(&here, "evaluate one people.csv --public");
    assert!(undeclared.code == 2 && undeclared.stderr.contains("private"), "{}", undeclared.stderr);

    let report = run(&here, "report one");
    works(&report);
    for words in [
        "Clusters by k-means on people",
        "## The clusters",
        "| cluster | size | ",
        "inertia",
        "uses no label",
    ] {
        assert!(report.stdout.contains(words), "{words}: {}", report.stdout);
    }
    // The centres are near 2 and 8, in the units of the schema.
    let learned = &json(&here, "report one --format json")["learned"]["clusters"]["clusters"];
    let mut centres = [0, 1].map(|cluster| learned[cluster]["columns"][0]["number"].as_f64().unwrap());
    centres.sort_by(f64::total_cmp);
    assert!((1.5..2.5).contains(&centres[0]) && (7.5..8.5).contains(&centres[1]), "{learned}");
    assert!(ran.stdout.contains("\ncluster 2: about "), "{}", ran.stdout);
    let page = fs::read_to_string(here.join("one/report.html")).unwrap();
    assert!(page.contains("<title>Map of the clusters</title>"));
    // A label in the schema is not read, so the records without one take part.
    works(&run(&here, &format!("{train} --schema labelled.toml --output two --ledger second")));
    works(&run(
        &here,
        &format!("{train} --schema labelled.toml --output three --ledger third --neighbors replace"),
    ));
}

#[test]
fn components_are_found_predicted_measured_and_reported() {
    let here = folder("components");
    tables(&here);
    let ran = run(
        &here,
        "train people.csv --schema schema.toml --records 2000 --epsilon 5 --model components --components 1 \
         --test public.csv --output one",
    );
    works(&ran);
    assert!(ran.stdout.starts_with("explained variance: 99."), "{}", ran.stdout);
    let predicted = run(&here, "predict one public.csv");
    works(&predicted);
    assert!(predicted.stdout.starts_with("record,component_1\n1,"), "{}", &predicted.stdout[..50]);
    let measured = json(&here, "evaluate one public.csv --public --format json");
    assert!(measured["evaluation"]["components"]["explained"].as_f64().unwrap() > 0.99, "{measured}");
    let report = json(&here, "report one --format json");
    let titles: Vec<&str> = report["figures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|figure| figure["title"].as_str().unwrap())
        .collect();
    assert!(titles.contains(&"Variance along each direction"), "{titles:?}");
    // Both columns move together.
    let direction = &report["learned"]["components"]["directions"][0];
    let weight = |place: usize| direction["loadings"][place]["weight"].as_f64().unwrap();
    assert!(weight(0) > 0.6 && weight(1) > 0.6 && direction["is_above_noise"] == true, "{direction}");
    assert!(ran.stdout.contains("\ndirection 1: +0."), "{}", ran.stdout);
    // The digits need no schema and no number of records.
    let digits = run(&here, "train --model components --components 5 --epsilon 2");
    works(&digits);
    assert!(digits.stdout.starts_with("explained variance: "), "{}", digits.stdout);
}

#[test]
fn missing_and_contradicting_settings_are_refused_in_a_sentence() {
    let here = folder("unsupervised refused");
    tables(&here);
    let table = "train people.csv --schema schema.toml --epsilon 1";
    fs::write(here.join("other.csv"), "a,y\n1,no\n").unwrap();
    for (flags, says) in [
        ("", "the schema has no [label]"),
        ("--model logistic", "the schema has no [label]"),
        ("--model kmeans", "hint: add --clusters K"),
        ("--model components", "hint: add --components K"),
        (
            "--model naive-bayes --components 3",
            "--components is given, and the model naive-bayes is no network",
        ),
        ("--model pca", "did you mean \"components\"?"),
        ("--model kmeans --clusters 2 --records 0", "expected a whole number of at least 1"),
        ("--model kmeans --clusters 2 --test other.csv", "one of the 2 columns of other.csv"),
        ("--model kmeans --clusters 0", "clusters is 0"),
        ("--model kmeans --clusters 101", "clusters is 101"),
        ("--model components --components 3", "components is 3"),
        ("--model components --clusters 3", "clusters is given"),
        ("--model kmeans --clusters 2 --steps 5", "settings of other models"),
        ("--model kmeans --clusters 2 --regularization 5", "settings of other models"),
        ("--model logistic --clusters 2", "a model without labels"),
    ] {
        let records = if flags.contains("--records") { "" } else { "--records 100" };
        let ran = run(&here, &format!("{table} {records} {flags}"));
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{flags}: {}", ran.stderr);
        assert!(ran.stderr.contains(says) && !ran.stderr.contains("internal"), "{flags}: {}", ran.stderr);
    }
    assert!(!here.join(".quell").exists(), "nothing was charged");
}
