//! Ledgers under the names that earlier versions gave to datasets.
//!
//! A command finds such a ledger, and charges no other ledger unless the user names one.

use std::{fs, path::Path};

use crate::command::{charges, folder, run};

/// Two folders of pictures that cannot be read, which are records all the same, and a table.
fn project(name: &str) -> std::path::PathBuf {
    let here = folder(name);
    for class in ["cat", "dog"] {
        let folder = here.join("pictures/train").join(class);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("1.png"), "no picture").unwrap();
    }
    fs::write(here.join("people.csv"), "age,income\n1,3\n2,4\n").unwrap();
    here
}

fn datasets(here: &Path) -> Vec<String> {
    let list = run(here, "ledger list --format json").json();
    list.as_array().unwrap().iter().map(|row| row["dataset"].as_str().unwrap().to_owned()).collect()
}

const TRAIN: &str =
    "--classes cat,dog --shape 8x8 --records 2 --epsilon 1 --delta 1e-5 --steps 1 --model logistic";

#[test]
fn a_ledger_named_train_still_counts() {
    let here = project("former_train");
    assert_eq!(run(&here, "ledger create train --epsilon 3 --delta 1e-5").code, 0);
    for data in ["pictures/train", "pictures", "pictures/train/", "./pictures/../pictures/train"] {
        for more in ["", "--dry-run"] {
            let ran = run(&here, &format!("train {data} {TRAIN} {more}"));
            assert_eq!(ran.code, 2, "{data} {more}: {}", ran.stderr);
            assert!(ran.stderr.contains("error: there is a ledger named \"train\""), "{}", ran.stderr);
            let hint = ran.stderr.lines().last().unwrap();
            assert!(
                hint.starts_with("hint: ")
                    && hint.contains("--dataset train")
                    && hint.contains("--dataset pictures")
            );
        }
    }
    assert_eq!((datasets(&here), charges(&here, "train")), (vec!["train".to_owned()], 0));
    let old = run(&here, &format!("train pictures/train {TRAIN} --dataset train"));
    assert_eq!((old.code, charges(&here, "train")), (0, 1), "{}", old.stderr);
    let new = run(&here, &format!("train pictures/train {TRAIN} --dataset pictures"));
    assert_eq!((new.code, charges(&here, "pictures")), (0, 1), "{}", new.stderr);
    // Both are there, and it is still not said which is meant.
    assert_eq!(run(&here, &format!("train pictures/train {TRAIN}")).code, 2);
}

#[test]
fn a_resumed_run_uses_the_ledger_that_was_charged() {
    let here = project("former_resume");
    assert_eq!(run(&here, &format!("train pictures/train {TRAIN} --dataset train --output run")).code, 0);
    // As an earlier version wrote it, which named the ledger by the folder.
    let file = here.join("run/config.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("dataset = \"train\"\n"), "{text}");
    fs::write(&file, text.replace("dataset = \"train\"\n", "")).unwrap();
    let ran = run(&here, "resume run");
    assert_eq!((ran.code, charges(&here, "train")), (0, 1), "{}", ran.stderr);
    assert_eq!(datasets(&here), ["train"]);
}

#[test]
fn a_ledger_named_after_a_packed_table_still_counts() {
    let here = project("former_packed");
    for name in ["people.csv", "people"] {
        assert_eq!(run(&here, &format!("ledger create {name} --epsilon 3 --delta 1e-5")).code, 0);
    }
    for question in
        ["query people.csv count --epsilon 1", "schema people.csv --numbers age,income --epsilon 1"]
    {
        let ran = run(&here, question);
        assert!(ran.code == 2 && ran.stderr.contains("named \"people.csv\""), "{question}: {}", ran.stderr);
    }
    assert_eq!(run(&here, "query people.csv count --epsilon 1 --dataset people.csv").code, 0);
    assert_eq!(run(&here, "query people.csv count --epsilon 1 --dataset people").code, 0);
    assert_eq!((charges(&here, "people"), charges(&here, "people.csv")), (1, 1));
}
