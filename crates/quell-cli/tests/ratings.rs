//! `quell train --model factorization`, from the table of ratings to recommendations.

use std::{fmt::Write, fs, path::Path};

use quell::random::PublicRandom;

use crate::command::{Ran, charges, folder, json, run};

/// Two groups of users and the two halves of a list of items that they rate.
fn tables(here: &Path) {
    let mut chance = PublicRandom::new(5);
    for (name, users, first) in [("ratings.csv", 2_000, 0), ("public.csv", 50, 9_000)] {
        let mut text = String::from("user,film,stars\n");
        for user in first..first + users {
            for item in 0..15 {
                let stars = 3 + chance.below(3);
                writeln!(text, "{user},film {},{stars}", (user % 2) * 15 + item).unwrap();
            }
        }
        fs::write(here.join(name), text).unwrap();
    }
    let mut list = String::from("film,year\n");
    (0..30).for_each(|item| writeln!(list, "film {item},1999").unwrap());
    fs::write(here.join("films.csv"), list).unwrap();
    fs::write(
        here.join("mine.csv"),
        "user,film,stars\nada,film 1,5\nada,film 2,5\nbob,film 16,4\nbob,film 17,5\n",
    )
    .unwrap();
}

fn works(ran: &Ran) {
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

const TRAIN: &str = "train ratings.csv --model factorization --user user --item film --value stars --bounds 0.5 5 \
     --records 2000 --epsilon 1.5";

#[test]
fn items_are_learned_recommended_measured_and_reported() {
    let here = folder("ratings");
    tables(&here);
    let ran = run(&here, &format!("{TRAIN} --items films.csv --test public.csv --output one"));
    works(&ran);
    assert!(ran.stdout.starts_with("root mean square error: 0."), "{}", ran.stdout);
    assert_eq!(charges(&here, "ratings"), 1);

    let predicted = run(&here, "predict one mine.csv --top 3");
    works(&predicted);
    let lines: Vec<&str> = predicted.stdout.lines().collect();
    assert_eq!((lines[0], lines.len()), ("user,rank,film,prediction", 7));
    for (line, (user, half)) in lines[1..].iter().zip([("ada", 0), ("bob", 1)].iter().flat_map(|of| [of; 3]))
    {
        let cells: Vec<&str> = line.split(',').collect();
        let film: usize = cells[2].strip_prefix("film ").unwrap().parse().unwrap();
        assert!(cells[0] == *user && film / 15 == *half && ![1, 2, 16, 17].contains(&film), "{line}");
    }
    let objects = json(&here, "predict one mine.csv --format json");
    assert_eq!(objects[1]["items"].as_array().map(Vec::len), Some(10), "{objects}");

    let measured = json(&here, "evaluate one public.csv --public --format json");
    let measured = &measured["evaluation"]["ratings"];
    assert!(measured["error"].as_f64().unwrap() < 1.0, "{measured}");
    // Each user rates fifteen films of one half. Of the three that are held out, factors find all.
    assert!(measured["recall_at_10"].as_f64().unwrap() > 0.9 && measured["users"] == 50, "{measured}");
    let shown = run(&here, "evaluate one public.csv --public");
    assert!(shown.stdout.contains("\nrecall@10: "), "{}", shown.stdout);
    let private = run(&here, "evaluate one ratings.csv --public");
    assert!(private.code == 2 && private.stderr.contains("private"), "{}", private.stderr);
    let report = run(&here, "report one");
    works(&report);
    assert!(report.stdout.contains("Recommendations on ratings"), "{}", report.stdout);
    assert!(report.stdout.contains("| item | released popularity |"), "{}", report.stdout);
    assert!(ran.stdout.contains("\nmost popular items: film "), "{}", ran.stdout);
    let learned = &json(&here, "report one --format json")["learned"]["items"];
    assert_eq!(learned["items"].as_array().map(Vec::len), Some(30), "{learned}");
    let audited = run(&here, "models");
    assert!(audited.stdout.contains("\nfactorization "), "{}", audited.stdout);
}

/// A file of labels beside images is as private as the images.
#[test]
fn labels_beside_the_data_are_no_public_list() {
    let here = folder("ratings labels");
    for file in ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"] {
        fs::write(here.join(file), "user,film,stars\nada,film 1,5\n").unwrap();
    }
    let ran = run(
        &here,
        "train train-images-idx3-ubyte --model factorization --user user --item film --value stars --bounds 1 5 \
         --items train-labels-idx1-ubyte --records 20 --epsilon 1",
    );
    assert!(ran.code == 2 && ran.stderr.contains("the list of items is the data"), "{}", ran.stderr);
    // Labels of the test part are as private, whether the data is named by a file or by its folder.
    fs::create_dir(here.join("mn")).unwrap();
    for file in ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte"] {
        fs::write(here.join("mn").join(file), "user,film,stars\nada,film 1,5\n").unwrap();
    }
    for data in ["mn", "mn/train-images-idx3-ubyte"] {
        let ran = run(
            &here,
            &format!(
                "train {data} --model factorization --user user --item film --value stars --bounds 1 5 \
                 --items mn/t10k-labels-idx1-ubyte --records 20 --epsilon 1"
            ),
        );
        assert!(ran.code == 2 && ran.stderr.contains("the list of items is the data"), "{}", ran.stderr);
    }
}

#[test]
fn ratings_that_cannot_be_learned_are_refused_in_words() {
    let here = folder("ratings refused");
    tables(&here);
    let film = "--item film --value stars --items films.csv";
    for (flags, words) in [
        (String::from("--bounds 0.5 5"), "not described as ratings"),
        (format!("--bounds 0.5 5 {film}"), "--user is not given"),
        (format!("--user user {film}"), "hint: add --bounds LOWER UPPER"),
        (format!("--user user --bounds 5 1 {film}"), "bounds is 5 and 1"),
        (format!("--user who --bounds 0.5 5 {film}"), "who"),
        (format!("--user user --bounds 0.5 5 {film} --steps 5"), "settings of other models"),
        (
            String::from("--user user --item film --value stars --bounds 1 5 --items ratings.csv"),
            "trained on",
        ),
    ] {
        let ran =
            run(&here, &format!("train ratings.csv --model factorization --records 20 --epsilon 1 {flags}"));
        assert!(ran.code == 2 && ran.stderr.contains(words), "{flags}: {}", ran.stderr);
    }
    // A ledger that protects examples does not protect users.
    works(&run(&here, "ledger create ratings --epsilon 10 --delta 1e-6"));
    let ran = run(&here, &format!("{TRAIN} --items films.csv --output one"));
    assert!(ran.code == 2 && ran.stderr.contains("unit"), "{}", ran.stderr);
    assert_eq!(charges(&here, "ratings"), 0);
}

/// What a file with private records holds must not decide an answer, whatever it is named as.
#[test]
fn private_records_named_as_public_files_are_refused_before_they_are_read() {
    let here = folder("ratings oracle");
    let people = [("with", "user,film,stars\nada,a,5\nbob,b,4\n"), ("without", "user,film,stars\n")];
    // The hash of the items of the first table, which a guess could name.
    let guess = "items = 'ratings.csv'\ndigest = 'b97be8c19c3ab0d2ac3a33f8c9f7e62a7ec1a5a5a2a8a0e9d6cd6b4e1f1c8a9d'\n";
    let ratings = "[data.ratings]\nuser = 'user'\nitem = 'film'\nvalue = 'stars'\n";
    let settings = format!(
        "[data]\npath = 'ratings.csv'\n{ratings}{guess}[factorization]\nbounds = [1, 5]\nrecords = 9\n"
    );
    let network =
        "[data]\npath = 'ratings.csv'\n[features]\nkind = 'network'\npath = 'ratings.csv'\ndigest = '00'\n";
    let mut answers = Vec::new();
    for (name, text) in people {
        let place = here.join(name);
        fs::create_dir(&place).unwrap();
        fs::write(place.join("ratings.csv"), text).unwrap();
        fs::write(place.join("guess.toml"), &settings).unwrap();
        fs::write(place.join("network.toml"), network).unwrap();
        answers.push(["guess", "network"].map(|file| {
            let ran = run(&place, &format!("train --config {file}.toml --epsilon 1 --dry-run"));
            assert!(ran.code == 2 && ran.stderr.contains("the data that is trained on"), "{}", ran.stderr);
            ran.stderr
        }));
    }
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn training_data_is_recognised_from_another_folder() {
    let here = folder("ratings elsewhere");
    let inner = here.join("inner");
    fs::create_dir(&inner).unwrap();
    tables(&inner);
    works(&run(&inner, &format!("{TRAIN} --items films.csv --output one")));
    let outside = run(&here, "evaluate inner/one inner/ratings.csv --public");
    assert!(outside.code == 2 && outside.stderr.contains("private"), "{} {}", outside.stdout, outside.stderr);
    works(&run(&here, "evaluate inner/one inner/public.csv --public"));
}

#[test]
fn more_users_than_memory_are_refused_in_words() {
    let here = folder("ratings many");
    tables(&here);
    for many in ["18446744073709551615", "100000000000"] {
        let flags = format!("--items films.csv --neighbors replace --delta 1e-5 --records {many}");
        let ran = run(&here, &TRAIN.replace("--records 2000", &flags));
        assert!(ran.code == 2 && ran.stderr.contains("at most 268435456 users"), "{}", ran.stderr);
    }
}
