//! `quell report`, `quell predict` and `quell evaluate`, on runs that the library made.

use std::fs;

use crate::command::{Ran, quell_with};
use crate::trained::Trained;
use quell::{
    data::{FeatureKind, Options, Schema},
    learner::{Predictor, schedule::Schedule},
    run::Model,
};
use serde_json::Value;

fn run(arguments: &[&str]) -> Ran {
    quell_with(arguments, "")
}

/// One sentence and one hint, nothing on standard output.
fn refused(ran: &Ran, says: &str) {
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{says}: {}", ran.stderr);
    assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains(says), "{says}: {}", ran.stderr);
    let hint = ran.stderr.lines().nth(1);
    // A number out of its range says what is expected, and needs no hint.
    assert!(
        ran.stderr.lines().count() <= 2 && hint.is_none_or(|line| line.starts_with("hint: ")),
        "{says}: {}",
        ran.stderr
    );
    assert!(hint.is_some() || says.starts_with("epsilon is NaN"), "{says}: {}", ran.stderr);
    assert!(
        !ran.stderr.contains("internal error") && !ran.stderr.contains("panicked"),
        "{says}: {}",
        ran.stderr
    );
}

#[test]
fn a_report_states_the_guarantee_and_the_results() {
    let trained = Trained::new("report");
    let digits = trained.digits();
    let ran = run(&["report", &digits]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let [markdown, html] =
        ["report.md", "report.html"].map(|name| fs::read_to_string(format!("{digits}/{name}")).unwrap());
    assert_eq!(ran.stdout, markdown);
    assert_eq!(ran.stderr, format!("wrote {digits}/report.md and {digits}/report.html\n"));
    let json = run(&["report", &digits, "--format", "json"]).json();
    let accuracy = json["accuracy"].as_f64().unwrap();
    assert!(accuracy > 0.5, "{accuracy}");
    let percent = format!("{:.1} %", 100.0 * accuracy);
    let head = json["receipt"]["head"].as_str().unwrap();
    for page in [&markdown, &html] {
        for words in [
            "Logistic regression on digits, predicts one of 10 classes",
            "when one example is added or removed",
            "Not covered",
            "1e-5",
            &percent,
            head,
            "noise multiplier",
        ] {
            assert!(page.contains(words), "no {words:?} in {page}");
        }
        for words in [
            "Accuracy over the run",
            "Privacy loss over the run",
            "Error rates of the best attack",
            "Calibration of the probabilities",
            "Measures of each class",
            "Confusion matrix",
        ] {
            assert!(page.contains(words), "no {words:?}");
        }
    }
    assert_eq!(html.matches("<svg").count(), 4);
    // The page is whole in itself.
    for outside in ["<script", "<link", "<img", "src=", "href=", "@import"] {
        assert!(!html.contains(outside), "{outside}");
    }
    // Its letters are in it.
    let fonts = html.matches("url(data:font/woff2;base64,").count();
    assert_eq!((fonts, html.matches("url(").count()), (2, 2));
    assert_eq!(html.replace("http://www.w3.org/2000/svg", "").matches("http").count(), 0);
    assert_eq!(html.matches("<td style=").count(), 100, "a cell for each two classes");
    let upper = json["epsilon"]["upper"].as_f64().unwrap();
    assert!((2.9..=3.0).contains(&upper) && json["figures"].as_array().unwrap().len() == 4, "{json}");
}

#[test]
fn a_report_is_written_only_to_the_given_file() {
    let trained = Trained::new("report_output");
    let digits = trained.digits();
    for (name, begins) in
        [("a.html", "<!DOCTYPE html>"), ("a.md", "# Logistic regression on digits"), ("a.json", "{")]
    {
        let path = trained.path(name);
        let ran = run(&["report", &digits, "--output", &path]);
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr), (0, "", format!("wrote {path}\n")));
        assert!(fs::read_to_string(&path).unwrap().starts_with(begins), "{name}");
    }
    assert!(!fs::exists(format!("{digits}/report.md")).unwrap());
    refused(
        &run(&["report", &digits, "--output", &trained.path("a.doc")]),
        "expected a name that ends in .md, .html, .pdf or .json",
    );
    refused(&run(&["report", &trained.path("nothing")]), "contains no run");
    fs::remove_file(format!("{digits}/model.safetensors")).unwrap();
    let unfinished = run(&["report", &digits]);
    refused(&unfinished, &format!("error: the run in {digits} has no model yet\n"));
    assert!(unfinished.stderr.ends_with(&format!("\nhint: finish the run with `quell resume {digits}`\n")));
}

#[test]
fn names_in_a_report_are_escaped() {
    let trained = Trained::new("report_names");
    let census = trained.census(|configuration| configuration.data.dataset = Some("<b>|census|</b>".into()));
    assert_eq!(run(&["report", &census]).code, 0);
    let html = fs::read_to_string(format!("{census}/report.html")).unwrap();
    assert!(!html.contains("<b>|") && html.contains("&lt;b&gt;|census|"), "{html}");
    let markdown = fs::read_to_string(format!("{census}/report.md")).unwrap();
    assert!(!markdown.contains("<b>") && markdown.contains("\\|census\\|"), "{markdown}");
    // The held-out part is private: nothing is said about it.
    assert!(html.contains("not measured") && !html.contains("Confusion matrix"), "{html}");
}

#[test]
fn every_record_has_one_line_of_predictions() {
    let trained = Trained::new("predict");
    let digits = trained.digits();
    let ran = run(&["predict", &digits]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.starts_with("note: predictions cost no ε") && ran.stderr.lines().count() == 1,
        "{}",
        ran.stderr
    );
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], "record,prediction");
    assert!(
        lines[1..].iter().enumerate().all(|(i, line)| line.split(',').next() == Some(&(i + 1).to_string()))
    );
    let count = run(&["evaluate", &digits, "--format", "json"]).json()["evaluation"]["classes"]["count"]
        .as_u64()
        .unwrap();
    assert_eq!(lines.len() as u64, count + 1);
    // By the file as by the folder, and to a file as to the terminal.
    let (file, output) = (format!("{digits}/model.safetensors"), trained.path("said.csv"));
    assert_eq!(run(&["predict", &file, "--output", &output]).code, 0);
    assert_eq!(fs::read_to_string(&output).unwrap(), ran.stdout);
    // The likeliest is what is said.
    let scored = run(&["predict", &digits, "--scores"]).stdout;
    assert_eq!(scored.lines().next(), Some("record,prediction,0,1,2,3,4,5,6,7,8,9"));
    for (line, plain) in scored.lines().zip(&lines).skip(1) {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        let largest = cells[2..].iter().copied().fold(0.0, f64::max);
        assert!(
            (cells[2..].iter().sum::<f64>() - 1.0).abs() < 1e-3 && cells[2 + cells[1] as usize] == largest,
            "{line}"
        );
        assert!(line.starts_with(plain), "{line}");
    }
    let objects: Value =
        serde_json::from_str(&run(&["predict", &digits, "--scores", "--format", "json"]).stdout).unwrap();
    assert_eq!(objects[0]["record"], 1);
    assert!(
        objects[0]["scores"].as_object().unwrap().len() == 10 && objects[0]["prediction"].is_string(),
        "{}",
        objects[0]
    );
}

#[test]
fn every_record_of_a_table_without_a_label_is_predicted() {
    let trained = Trained::new("predict_table");
    let census = trained.census(|_| {});
    let rows = "age,education,sex,hours_per_week\n20,HS-grad,Female,10\n55,Doctorate,Male,70\n,,,\n";
    fs::write(trained.path("new.csv"), rows).unwrap();
    let ran = run(&["predict", &census, &trained.path("new.csv")]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        (lines.len(), lines[1]),
        (4, "1,<=50K"),
        "a record of which nothing is known is predicted too: {}",
        ran.stdout
    );
    let whole = run(&["predict", &census, &trained.path("census.csv")]);
    assert_eq!(whole.stdout.lines().count(), 5001, "{}", whole.stderr);
    for (rows, says) in [
        ("age,education,sex\n20,HS-grad,Female\n", "hours_per_week"),
        ("age,education,sex,hours_per_week,height\n20,HS-grad,Female,10,180\n", "height"),
    ] {
        fs::write(trained.path("new.csv"), rows).unwrap();
        refused(&run(&["predict", &census, &trained.path("new.csv")]), says);
    }
    refused(&run(&["predict", &census]), "no data is given");
    refused(&run(&["predict", &census, &trained.path("nowhere.csv")]), "nowhere.csv");
}

#[test]
fn predicted_numbers_have_the_units_of_their_column() {
    let trained = Trained::new("numbers");
    let schema = crate::trained::SCHEMA.replace(
        "column = \"income\"\nclasses = [\"<=50K\", \">50K\"]",
        "column = \"age\"\nbounds = [17, 90]",
    );
    let schema = schema
        .replace("[[column]]\nname = \"age\"\nbounds = [17, 90]\n", "")
        .replace("\"education\"", "\"education\", \"income\"");
    let census = trained.census(|configuration| {
        configuration.data.schema = Some(Schema::parse(&schema).unwrap());
        configuration.training.schedule = Some(Schedule::constant(0.05));
    });
    let table = trained.path("census.csv");
    let said = run(&["predict", &census, &table]).stdout;
    let numbers: Vec<f64> =
        said.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse().unwrap()).collect();
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    assert!(numbers.len() == 5000 && (25.0..55.0).contains(&mean), "people are about 39 years old: {mean}");
    fs::copy(&table, trained.path("public.csv")).unwrap();
    let text = run(&["evaluate", &census, &trained.path("public.csv"), "--public"]).data();
    let error: f64 =
        text.strip_prefix("root mean square error: ").unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((8.0..25.0).contains(&error), "{text}");
    let paid = run(&["evaluate", &census, &table, "--epsilon", "1", "--ledger", &trained.ledger]);
    refused(&paid, "the model predicts numbers");
    let report = run(&["report", &census]);
    assert!(
        report.code == 0 && report.stdout.contains("| target | a number |"),
        "{}{}",
        report.stdout,
        report.stderr
    );
    refused(&run(&["predict", &census, &trained.path("nowhere")]), "nowhere");
}

#[test]
fn every_command_states_the_same_error_of_numbers() {
    let here = crate::command::folder("same error");
    let rows: Vec<String> =
        (0..600).map(|row| format!("{},{}", row % 20, 2 * (row % 20) + row % 3)).collect();
    fs::write(here.join("sizes.csv"), format!("x,y\n{}\n", rows[..400].join("\n"))).unwrap();
    fs::write(here.join("public.csv"), format!("x,y\n{}\n", rows[400..].join("\n"))).unwrap();
    let schema = "[label]\ncolumn = \"y\"\nbounds = [0, 50]\n[[column]]\nname = \"x\"\nbounds = [0, 20]\n";
    fs::write(here.join("sizes.toml"), schema).unwrap();
    let train = "train sizes.csv --schema sizes.toml --test public.csv --records 400 --epsilon 3 --method dp-sgd --steps 20 --output run";
    let trained = crate::command::run(&here, train);
    let error = trained
        .stdout
        .strip_prefix("root mean square error: ")
        .and_then(|rest| rest.split(' ').next())
        .unwrap();
    // The last part of y, which is 0, 1 or 2, does not follow from x: no model has an error below 0.81. On the
    // scale of training, from -1 to 1, that would be 0.03.
    assert!(error.parse::<f64>().unwrap() > 0.7, "{}", trained.stdout);
    let evaluated = crate::command::run(&here, "evaluate run public.csv --public").stdout;
    assert!(evaluated.starts_with(&format!("root mean square error: {error} (over ")), "{evaluated} {error}");
    let report = crate::command::run(&here, "report run").stdout;
    assert!(report.contains(&format!("| root mean square error | {error} |")), "{report}");
}

#[test]
fn data_of_another_shape_is_refused() {
    let trained = Trained::new("other_kind");
    let digits = trained.digits();
    let array = |sides: [u8; 3], bytes: usize| {
        let mut file = vec![0, 0, 8, 3];
        file.extend(sides.iter().flat_map(|side| [0, 0, 0, *side]));
        file.extend(std::iter::repeat_n(1, bytes));
        file
    };
    fs::write(trained.path("some-labels-idx1-ubyte"), [0, 0, 8, 1, 0, 0, 0, 2, 3, 7]).unwrap();
    fs::write(trained.path("some-images-idx3-ubyte"), array([2, 5, 8], 80)).unwrap();
    let images = trained.path("some-images-idx3-ubyte");
    for arguments in [&["predict", &digits, &images][..], &["evaluate", &digits, &images, "--public"]] {
        refused(&run(arguments), "an example of the data has the shape 1 × 5 × 8, expected 1 × 8 × 8");
    }
    fs::write(&images, array([2, 8, 8], 128)).unwrap();
    assert_eq!(run(&["predict", &digits, &images]).stdout.lines().count(), 3);
    let both = run(&["evaluate", &digits, &images, "--public", "--format", "json"]).json();
    assert_eq!(both["evaluation"]["classes"]["count"], 2);
    refused(&run(&["evaluate", &digits, &images]), "expected --public or --epsilon");
    fs::write(&images, &array([2, 8, 8], 128)[..100]).unwrap();
    refused(&run(&["predict", &digits, &images]), "some-images-idx3-ubyte");
    fs::write(trained.path("table.csv"), "a,b\n1,2\n").unwrap();
    refused(&run(&["predict", &digits, &trained.path("table.csv")]), "table.csv");
}

#[test]
fn evaluation_on_public_data_is_free() {
    let trained = Trained::new("evaluate");
    let digits = trained.digits();
    let ran = run(&["evaluate", &digits]);
    let text = ran.data();
    let json = run(&["evaluate", &digits, "--public", "--format", "json"]).json();
    let accuracy = json["accuracy"].as_f64().unwrap();
    let classes = &json["evaluation"]["classes"];
    let [correct, count] = ["correct", "count"].map(|name| classes[name].as_u64().unwrap());
    assert_eq!(
        text.lines().next().unwrap(),
        format!("accuracy: {:.2} %, {correct} of {count} correct", 100.0 * accuracy)
    );
    // Three lines, a row for each class, an empty line, and a table of probabilities.
    assert!(text.lines().count() > 3 + 11 + 2, "{text}");
    let measures = &classes["measures"];
    let [auc, f1, loss] = ["auc", "f1", "log_loss"].map(|name| measures[name].as_f64().unwrap());
    let words = format!("AUC {auc:.3}, mean F1 {f1:.3}, log loss {loss:.3}, calibration error ");
    assert!(text.lines().nth(1).unwrap().contains(&words), "{text}");
    assert_eq!(measures["classes"].as_array().unwrap().len(), 10);
    assert_eq!(
        run(&["report", &digits, "--format", "json"]).json()["metrics"]["evaluation"],
        json["evaluation"]
    );
    // As the run itself measured it.
    assert_eq!(run(&["report", &digits, "--format", "json"]).json()["accuracy"], json["accuracy"]);
}

#[test]
fn evaluation_on_private_data_is_charged() {
    let trained = Trained::new("evaluate_private");
    let census = trained.census(|_| {});
    let table = trained.path("census.csv");
    let spent = || {
        run(&["ledger", "list", "--format", "json", "--ledger", &trained.ledger]).json()[0]["spent"]
            .as_f64()
            .unwrap()
    };
    let before = spent();
    refused(&run(&["evaluate", &census, &table]), "expected --public or --epsilon");
    refused(&run(&["evaluate", &census, &table, "--public"]), "the private training data of the model");
    refused(
        &run(&["evaluate", &census, &table, "--epsilon", "0", "--ledger", &trained.ledger]),
        "epsilon is 0",
    );
    refused(
        &run(&["evaluate", &census, &table, "--epsilon", "NaN", "--ledger", &trained.ledger]),
        "epsilon is NaN",
    );
    refused(
        &run(&[
            "evaluate",
            &census,
            &table,
            "--epsilon",
            "1",
            "--dataset",
            "other",
            "--ledger",
            &trained.ledger,
        ]),
        "other",
    );
    refused(
        &run(&["evaluate", &census, &table, "--epsilon", "1", "--records", "0", "--ledger", &trained.ledger]),
        "records is 0",
    );
    let dry = run(&["evaluate", &census, &table, "--epsilon", "1", "--dry-run", "--ledger", &trained.ledger]);
    assert!(dry.code == 0 && dry.stdout.contains("would raise the spent ε"), "{}{}", dry.stdout, dry.stderr);
    assert_eq!(spent().to_bits(), before.to_bits(), "nothing was paid");

    let ran = run(&[
        "evaluate",
        &census,
        &table,
        "--epsilon",
        "2",
        "--format",
        "json",
        "--ledger",
        &trained.ledger,
    ])
    .json();
    let answer = &ran["answer"];
    let [right, records] = [answer["right"]["value"].as_f64().unwrap(), answer["records"].as_f64().unwrap()];
    let schema = Some(Schema::parse(crate::trained::SCHEMA).unwrap());
    let held_out =
        quell::data::open(&table, &Options { schema, ..Options::default() }).unwrap().test.unwrap().len();
    assert!((records - held_out as f64).abs() < 30.0, "{held_out} were held out: {answer}");
    let accuracy = answer["accuracy"]["value"].as_f64().unwrap();
    assert!((accuracy - right / records).abs() < 1e-12 && accuracy > 0.6, "{answer}");
    let error = answer["accuracy"]["within"]["value"].as_f64().unwrap();
    assert!(error > 0.0 && error < 0.01, "{answer}");
    assert_eq!(
        (&ran["receipt"]["dataset"], ran["epsilon"]["budget"].as_f64()),
        (&"census".into(), Some(10.0))
    );
    assert!(spent() > before + 0.5, "{before} {}", spent());

    // How many of all records are in a share of them is not public; of a file of its own it may be.
    let all = ["--epsilon", "2", "--records", "1000", "--ledger", &trained.ledger];
    refused(
        &run(&[&["evaluate", &census, &table], &all[..]].concat()),
        "whose number of records is not public",
    );
    let other = trained.path("thousand.csv");
    let thousand: Vec<String> =
        fs::read_to_string(&table).unwrap().lines().take(1001).map(str::to_owned).collect();
    fs::write(&other, thousand.join("\n")).unwrap();
    let text = run(&[&["evaluate", &census, &other, "--dataset", "census"], &all[..]].concat());
    assert!(
        text.code == 0 && text.stdout.starts_with("accuracy: ") && text.stdout.contains(" of 1000 correct"),
        "{}",
        text.stdout
    );
    assert!(text.stderr.starts_with("charged to "), "{}", text.stderr);
    let too_much = run(&["evaluate", &census, &table, "--epsilon", "9", "--ledger", &trained.ledger]);
    assert_eq!((too_much.code, too_much.stdout.as_str()), (1, ""), "{}", too_much.stderr);
    assert!(
        too_much.stderr.starts_with("refused: ") && too_much.stderr.contains("fits the budget"),
        "{}",
        too_much.stderr
    );

    // Another file of public records is free, with all its records and not a fifth of them.
    let lines: Vec<String> =
        fs::read_to_string(&table).unwrap().lines().take(101).map(str::to_owned).collect();
    fs::write(trained.path("public.csv"), lines.join("\n")).unwrap();
    let public =
        run(&["evaluate", &census, &trained.path("public.csv"), "--public", "--format", "json"]).json();
    assert_eq!(public["evaluation"]["classes"]["count"], 100);
    fs::write(trained.path("public.csv"), "age,education,sex,hours_per_week\n20,HS-grad,Female,10\n")
        .unwrap();
    refused(&run(&["evaluate", &census, &trained.path("public.csv"), "--public"]), "income");
}

#[test]
fn a_private_test_file_is_charged_to_the_ledger_of_the_data() {
    let trained = Trained::new("evaluate_holdout");
    let source =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/census.csv")).unwrap();
    let rows: Vec<&str> = source.lines().take(501).collect();
    fs::write(trained.path("holdout.csv"), rows.join("\n")).unwrap();
    let schema = crate::trained::SCHEMA.replace("share = 0.2", "file = 'holdout.csv'");
    let census = trained.census(|asked| asked.data.schema = Some(Schema::parse(&schema).unwrap()));
    let holdout = trained.path("holdout.csv");
    refused(&run(&["evaluate", &census, &holdout, "--public"]), "the private training data of the model");
    let output = trained.path("accuracy.json");
    let evaluate = |model: &str| {
        let asked = ["evaluate", model, &holdout, "--epsilon", "1", "--records", "500", "--format", "json"];
        run(&[&asked[..], &["--output", &output, "--ledger", &trained.ledger]].concat())
    };
    let answer = || fs::read_to_string(&output).unwrap();
    assert_eq!(evaluate(&census).code, 0);
    let first: Value = serde_json::from_str(&answer()).unwrap();
    assert_eq!(first["receipt"]["dataset"], "census");
    // The same question is charged once, and another model is another question.
    let again = evaluate(&format!("{census}/model.safetensors"));
    assert!(again.code == 0 && again.stderr.contains("without a new charge"), "{}", again.stderr);
    let kept: Value =
        serde_json::from_str(&fs::read_to_string(format!("{output}.paid.json")).unwrap()).unwrap();
    let question: Value = serde_json::from_str(kept["question"].as_str().unwrap()).unwrap();
    let mut model = Model::open(census.as_ref()).unwrap();
    let digest = model.digest().unwrap();
    assert!(digest.len() == 64 && question["evaluate"]["model"] == digest.as_str(), "{question}");
    assert_eq!(serde_json::from_str::<Value>(&answer()).unwrap(), first);
    // A model with other bounds of a column predicts something else, with the same weights.
    let column = &mut model.configuration.data.schema.as_mut().unwrap().columns[0];
    let [low, high] = column.bounds().unwrap();
    column.kind = FeatureKind::Bounds([low - 1.0, high]);
    assert_ne!(model.digest().unwrap(), digest);
    let Predictor::Network(network) = &mut model.predictor else { panic!("no network") };
    network.weights[0] += 1.0;
    fs::write(trained.path("other.safetensors"), model.save().unwrap()).unwrap();
    refused(&evaluate(&trained.path("other.safetensors")), "already exists");
}

/// An NPY file of version 1.
fn npy(header: &str, values: &[u8]) -> Vec<u8> {
    let header = format!("{header:<117}\n");
    let length = u16::try_from(header.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00".as_slice(), &length, header.as_bytes(), values].concat()
}

#[test]
fn a_folder_that_contains_a_public_test_file_is_private() {
    let trained = Trained::new("evaluate_around");
    let source =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/census.csv")).unwrap();
    let rows: Vec<&str> = source.lines().take(501).collect();
    fs::write(trained.path("holdout.csv"), rows.join("\n")).unwrap();
    let schema = crate::trained::SCHEMA.replace("share = 0.2", "file = 'holdout.csv'\npublic = true");
    let census = trained.census(|asked| asked.data.schema = Some(Schema::parse(&schema).unwrap()));
    // More of the private records, as arrays beside their table.
    fs::write(
        trained.path("x.npy"),
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }", &[0; 32]),
    )
    .unwrap();
    fs::write(
        trained.path("y.npy"),
        npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }", &[0, 1]),
    )
    .unwrap();
    refused(
        &run(&["evaluate", &census, &trained.path("."), "--public"]),
        "the private training data of the model",
    );
    let public = run(&["evaluate", &census, &trained.path("holdout.csv"), "--public"]);
    assert_eq!(public.code, 0, "{}", public.stderr);
}

#[test]
fn a_truncated_model_file_is_refused() {
    let trained = Trained::new("damaged");
    let digits = trained.digits();
    let bytes = fs::read(format!("{digits}/model.safetensors")).unwrap();
    let damaged = trained.path("damaged.safetensors");
    for length in (0..bytes.len()).step_by(100) {
        fs::write(&damaged, &bytes[..length]).unwrap();
        let ran = run(&["predict", &damaged]);
        refused(&ran, "is not a readable model");
        assert!(ran.stderr.contains("damaged.safetensors"), "{}", ran.stderr);
    }
    // The same length, with another shape, type or name in its header.
    for (from, to) in [
        ("[1,8,8]", "[1,8,9]"),
        ("[1,8,8]", "[9,9,9]"),
        ("[10,64]", "[64,10]"),
        ("[10,64]", "[20,32]"),
        ("0.weight", "9.weight"),
        ("F32", "I32"),
        ("quell.paid", "quell.debt"),
    ] {
        let mut changed = bytes.clone();
        let places: Vec<usize> = (0..bytes.len() - from.len())
            .filter(|place| bytes[*place..].starts_with(from.as_bytes()))
            .collect();
        assert!(!places.is_empty(), "no {from} in the header");
        for place in places {
            changed[place..place + to.len()].copy_from_slice(to.as_bytes());
        }
        fs::write(&damaged, &changed).unwrap();
        refused(&run(&["predict", &damaged]), "is not a readable model");
        refused(&run(&["evaluate", &damaged]), "is not a readable model");
    }
    refused(&run(&["predict", &trained.path("nothing.safetensors")]), "nothing.safetensors");
    refused(&run(&["evaluate", &trained.folder.to_string_lossy()]), "contains no run");
}
