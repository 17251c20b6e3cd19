//! Files as people have them, and mistakes with them, by whole commands.

use std::{fmt::Write as _, fs, path::Path};

use crate::command::{charges, folder, run};

const SCHEMA: &str =
    "[label]\ncolumn = 'y'\nclasses = ['no', 'yes']\n[[column]]\nname = 'a'\nbounds = [0, 100]\n";

fn table(rows: u32) -> String {
    let mut text = String::from("a,y\n");
    (0..rows).for_each(|row| {
        writeln!(text, "{},{}", row % 100, ["no", "yes"][(row % 100 / 50) as usize]).unwrap();
    });
    text
}

/// A run on a small table, in the folder `run`.
fn trained(here: &Path, flags: &str) {
    fs::write(here.join("t.csv"), table(2000)).unwrap();
    fs::write(here.join("t.toml"), SCHEMA).unwrap();
    let ran = run(
        here,
        &format!("train t.csv --schema t.toml --records 2000 --epsilon 3 --delta 1e-6 --output run {flags}"),
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn the_only_row_of_a_file_without_a_header_is_in_no_error() {
    let here = folder("files_secret");
    fs::write(here.join("t.txt"), "my secret record\nanother\n").unwrap();
    for command in ["init", "schema"] {
        let ran = run(&here, &format!("{command} t.txt"));
        assert_eq!((ran.code, ran.stdout.contains("secret")), (2, false), "{}", ran.stdout);
        assert!(
            ran.stderr.contains("no column besides the label") && !ran.stderr.contains("secret"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn a_file_with_declared_names_needs_its_delimiter() {
    let here = folder("files_delimiter");
    fs::write(here.join("t.csv"), "1;no\n2;yes\n").unwrap();
    fs::write(here.join("t.toml"), format!("{SCHEMA}[file]\nheader = ['a', 'y']\n")).unwrap();
    let flags = "--records 2000 --epsilon 3 --delta 1e-6";
    let ran = run(&here, &format!("train t.csv --schema t.toml {flags}"));
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("its delimiter is not") && ran.stderr.contains("under [file]"),
        "{}",
        ran.stderr
    );
    assert!(!here.join(".quell").exists());
}

#[test]
fn rows_that_are_longer_than_the_header_are_mentioned_with_predictions() {
    let here = folder("files_long");
    trained(&here, "");
    fs::write(here.join("new.csv"), "a\n1\n2,3\n").unwrap();
    let ran = run(&here, "predict run new.csv");
    assert_eq!((ran.code, ran.stdout.lines().count()), (0, 3), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("1 of 2 records has more cells than there are columns, record 2"),
        "{}",
        ran.stderr
    );
    fs::write(here.join("new.csv"), "b\n1\n").unwrap();
    let ran = run(&here, "predict run new.csv");
    assert!(ran.stderr.contains("new.csv has no column \"a\", which the model reads"), "{}", ran.stderr);
}

#[test]
fn public_records_whose_labels_do_not_fit_are_not_evaluated_in_silence() {
    let here = folder("files_labels");
    trained(&here, "");
    fs::write(here.join("other.csv"), table(100).replace("no", "No").replace("yes", "Yes")).unwrap();
    let ran = run(&here, "evaluate run other.csv --public");
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("is none of the classes, such as \"No\""), "{}", ran.stderr);
    fs::write(here.join("other.csv"), table(100) + "5,No\n").unwrap();
    let ran = run(&here, "evaluate run other.csv --public");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("column \"y\" of 1 of 101 records"), "{}", ran.stderr);
    // Of private records nothing is said.
    let paid = run(&here, "evaluate run other.csv --epsilon 1 --dataset t");
    assert!(!paid.stderr.contains("101"), "{}", paid.stderr);
}

#[test]
fn categories_are_not_bought_until_numbers_are_declared() {
    let here = folder("files_kinds");
    fs::write(here.join("t.csv"), table(5000)).unwrap();
    run(&here, "ledger create t --epsilon 30 --delta 1e-6");
    let ran = run(&here, "schema t.csv --epsilon 1");
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("2 of 2 columns") && ran.stderr.contains("--all-categories"),
        "{}",
        ran.stderr
    );
    assert_eq!(charges(&here, "t"), 0);
    for flags in ["--all-categories", "--categories a,y", "--numbers a", "--categories y --ignore a"] {
        let ran = run(&here, &format!("schema t.csv --epsilon 1 {flags}"));
        let is_alone = flags.contains("--ignore");
        assert_eq!(ran.code, if is_alone { 2 } else { 0 }, "{flags}: {}", ran.stderr);
    }
    // What is too rare to be listed is said, in the schema and beside it.
    let ran = run(&here, "schema t.csv --epsilon 1 --numbers a");
    let said = "fewer than about ";
    assert!(ran.stdout.contains(said) && ran.stderr.contains(said), "{} {}", ran.stdout, ran.stderr);
}

#[test]
fn init_keeps_the_name_of_the_dataset_and_says_which_gap_is_left() {
    let here = folder("files_init");
    fs::write(here.join("t.csv"), table(5000)).unwrap();
    let ran = run(&here, "init t.csv --numbers a --epsilon 3 --dataset people");
    assert!(ran.stderr.contains("quell ledger create people --epsilon 3 --delta 1e-6"), "{}", ran.stderr);
    run(&here, "ledger create people --epsilon 30 --delta 1e-6");
    let ran = run(&here, "init t.csv --numbers a --within 0 1000 --epsilon 3 --dataset people");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("state a public number of records in t-run.toml"), "{}", ran.stderr);
    let settings = fs::read_to_string(here.join("t-run.toml")).unwrap();
    assert!(settings.contains("\ndataset = \"people\""), "{settings}");
    // A removed schema does not hide the file that still stands in the way.
    fs::remove_file(here.join("t-schema.toml")).unwrap();
    fs::remove_file(here.join("t-run.toml")).unwrap();
    let ran = run(&here, "init t.csv --numbers a --within 0 1000 --epsilon 2 --dataset people");
    assert!(ran.stderr.contains("t-schema.toml.paid.json already exists"), "{}", ran.stderr);
}

#[test]
fn the_folder_of_a_run_is_not_named_like_a_table() {
    let here = folder("files_output");
    fs::write(here.join("t.csv"), table(200)).unwrap();
    fs::write(here.join("t.toml"), SCHEMA).unwrap();
    let ran = run(
        &here,
        "synthesize t.csv --schema t.toml --records 200 --epsilon 1 --delta 1e-6 --output rows.csv",
    );
    assert_eq!((ran.code, here.join("rows.csv").exists()), (2, false), "{}", ran.stderr);
    assert!(ran.stderr.contains("expected the folder of the run"), "{}", ran.stderr);
}

#[test]
fn images_are_predicted_one_by_one_or_from_a_folder() {
    let here = folder("files_images");
    let picture = |name: &str, value: u8| {
        let path = here.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut encoder = png::Encoder::new(fs::File::create(path).unwrap(), 6, 6);
        encoder.set_color(png::ColorType::Grayscale);
        encoder.write_header().unwrap().write_image_data(&[value; 36]).unwrap();
    };
    for number in 0..20 {
        picture(&format!("data/dark/{number}.png"), number);
        picture(&format!("data/light/{number}.png"), 255 - number);
    }
    let ran = run(
        &here,
        "train data --classes dark,light --shape 6x6 --features raw --model logistic --records 40 --epsilon 10 --delta 1e-3 --output run",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    picture("new/a.png", 3);
    picture("new/b/c,d.png", 200);
    let ran = run(&here, "predict run new");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!((lines.len(), lines[0]), (3, "record,file,prediction"), "{}", ran.stdout);
    assert!(lines[1].starts_with("1,a.png,") && lines[2].starts_with("2,\"b/c,d.png\","), "{}", ran.stdout);
    let ran = run(&here, "predict run new/a.png --format json");
    assert!(ran.code == 0 && ran.stdout.contains("\"file\": \"a.png\""), "{} {}", ran.stdout, ran.stderr);
    // An image that cannot be read is named: nobody is protected from who predicts.
    fs::write(here.join("new/e.png"), "no picture").unwrap();
    let ran = run(&here, "predict run new");
    assert!(ran.code == 2 && ran.stderr.contains("e.png"), "{}", ran.stderr);
    // Public images that are not used are counted.
    fs::create_dir_all(here.join("public/zebra")).unwrap();
    fs::create_dir_all(here.join("public/dark")).unwrap();
    fs::copy(here.join("new/a.png"), here.join("public/dark/a.png")).unwrap();
    fs::copy(here.join("new/a.png"), here.join("public/zebra/a.png")).unwrap();
    let ran = run(&here, "evaluate run public --public");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("1 of 2 records are left out"), "{}", ran.stderr);
}
