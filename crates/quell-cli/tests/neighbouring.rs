//! Runs whole commands on neighbouring tables, including hostile tables.
//!
//! The data that a mechanism receives may differ by one record. Printed text, files and exit codes must not
//! differ at all. The feature `exact-statistics` records the data that a mechanism receives, and gives the
//! mechanism zeros or no records instead. So everything that a command prints or writes must be the same for
//! neighbours, to the last byte.
#![allow(clippy::unwrap_used)]

mod command;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use command::{Ran, folder, start};
use parquet::{
    data_type::{ByteArray, ByteArrayType, DataType, DoubleType},
    file::{
        properties::WriterProperties,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::parser::parse_message_type,
};
use quell::random::PublicRandom;
use serde_json::Value;

/// Questions of a plan, one of each kind that a plan can hold.
const PLAN: &str = "[[question]]\nstatistic = 'count'\nwhere = 'x > 0'\n[[question]]\nstatistic = 'sum'\ncolumn = 'x'\nbounds = [-3, 3]\ngroup_by = 'c'\ngroups = ['red', 'blue']\n[[question]]\nstatistic = 'histogram'\ncolumn = 'y'\nkeys = ['a', 'b']\n[[question]]\nstatistic = 'quantile'\ncolumn = 'x'\nbounds = [-3, 3]\nquantile = [0.1, 0.9]\n[[question]]\nstatistic = 'mean'\ncolumn = 'x'\nbounds = [-3, 3]\nparts = ['x < 0', 'x >= 0']\n";

const SCHEMA: &str = "ignore = ['u']\n[label]\ncolumn = 'y'\nclasses = ['a', 'b']\n[[column]]\nname = 'x'\nbounds = [-3, 3]\n[[column]]\nname = 'c'\ncategories = ['red', 'blue']\n";

/// A row as it is written, from ordinary to hostile.
fn row(chance: &mut PublicRandom) -> String {
    let number = match chance.below(12) {
        0 => String::new(),
        1 => "nan".into(),
        2 => "-inf".into(),
        3 => "1e400".into(),
        4 => "3.4e38".into(),
        5 => "1e-320".into(),
        6 => "word".into(),
        _ => chance.normal().to_string(),
    };
    let key = ["red", "blue", "red", "blue", "", "\u{fffd}", "a very rare key", " red ", "\"red", "\""]
        [chance.below(10)];
    let label = ["a", "b", "a", "b", "", "other"][chance.below(6)];
    match chance.below(10) {
        0 => format!("u{}", chance.below(9)),
        1 => format!("u1,{number},{key},{label},more,cells"),
        _ => format!("u{},{number},{key},{label}", chance.below(9)),
    }
}

/// A row with a cell of 17 MiB.
fn long_row() -> String {
    format!("u1,0.5,{},a", "z".repeat(17 << 20))
}

/// The rows of a table as CSV, where cells with quotes are quoted, or as TSV, where a quote is a letter.
fn table(rows: &[String], tabs: bool) -> String {
    let quoted = |cell: &str| {
        if cell.contains('"') { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
    };
    let line = |row: &String| {
        let cells = row.split(',');
        if tabs {
            cells.collect::<Vec<_>>().join("\t")
        } else {
            cells.map(quoted).collect::<Vec<_>>().join(",")
        }
    };
    let lines: Vec<String> = std::iter::once(&"u,x,c,y".to_owned()).chain(rows).map(line).collect();
    lines.join("\n") + "\n"
}

/// The same rows as Parquet: numbers are what can be read as such, everything else is text or missing.
fn parquet(rows: &[String]) -> Vec<u8> {
    fn column<T: DataType>(group: &mut SerializedRowGroupWriter<'_, Vec<u8>>, cells: Vec<Option<T::T>>) {
        let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
        let there: Vec<T::T> = cells.into_iter().flatten().collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<T>().write_batch(&there, Some(&levels), None).unwrap();
        column.close().unwrap();
    }
    let cell = |row: &String, place: usize| row.split(',').nth(place).map(str::to_owned);
    let texts = |place: usize| {
        rows.iter().map(|row| cell(row, place).map(|text| ByteArray::from(text.into_bytes()))).collect()
    };
    let schema = "message people { optional binary u (UTF8); optional double x; optional binary c (UTF8); optional binary y (UTF8); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer =
        SerializedFileWriter::new(Vec::new(), schema, Arc::new(WriterProperties::default())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    column::<ByteArrayType>(&mut group, texts(0));
    column::<DoubleType>(&mut group, rows.iter().map(|row| cell(row, 1)?.parse().ok()).collect());
    column::<ByteArrayType>(&mut group, texts(2));
    column::<ByteArrayType>(&mut group, texts(3));
    group.close().unwrap();
    writer.into_inner().unwrap()
}

/// Teachers who agree, as many as it takes for a winner to be stable.
const AGREED: usize = 90;

/// Ballots on four questions: of one teacher for each row, who has seen this record only, and of the teachers
/// who agree.
fn votes(rows: &[String]) -> String {
    let cell = |row: &String, question: usize| match question {
        0 | 1 => row.split(',').nth(1 + question).unwrap_or_default().replace('"', "\"\""),
        2 => (row.len() % 3).to_string(),
        _ => format!("{};{}", row.len() % 5, (row.len() + 1) % 5),
    };
    let line = |question: usize| {
        let ballots = rows.iter().map(|row| format!("\"{}\"", cell(row, question)));
        ballots.chain(vec!["0".to_owned(); AGREED]).collect::<Vec<_>>().join(",")
    };
    let header: Vec<String> = (0..rows.len() + AGREED).map(|teacher| format!("t{teacher}")).collect();
    std::iter::once(header.join(",")).chain((0..4).map(line)).map(|line| line + "\n").collect()
}

/// One row more or less, or another in its place.
fn neighbour(chance: &mut PublicRandom, rows: &[String], exchanged: bool) -> Vec<String> {
    let mut other = rows.to_vec();
    let row = |chance: &mut PublicRandom| if chance.below(12) == 0 { long_row() } else { row(chance) };
    match (exchanged, chance.below(3)) {
        (true, _) => other[chance.below(rows.len())] = row(chance),
        (false, 0) => drop(other.remove(chance.below(rows.len()))),
        (false, 1) => other.insert(chance.below(rows.len()), rows[chance.below(rows.len())].clone()),
        (false, _) => other.insert(chance.below(rows.len()), row(chance)),
    }
    other
}

/// What everyone may see of a command, and what its mechanisms were given.
struct Seen {
    ran: Ran,
    files: Vec<(PathBuf, Vec<u8>)>,
    statistics: Vec<Value>,
}

/// Files that a command wrote, without times, receipts and keys, which no two runs have in common.
fn files(here: &Path, into: &mut Vec<(PathBuf, Vec<u8>)>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(here).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let differs = [
            "ledger",
            "people.csv",
            "people.tsv",
            "people.parquet",
            "votes.csv",
            "seen",
            "model.safetensors",
            "report.md",
            "report.html",
            "paid.json",
            "metrics.json",
            "outcome.json",
            "witness.json",
            "intended.json",
            "reveal-paid.json",
            "reveal-intended.json",
            "origin.json",
            ".lock",
        ];
        if path.is_dir() && name != "ledger" {
            into.push((path.clone(), Vec::new()));
            files(&path, into);
        } else if path.is_file() {
            let bytes =
                if differs.contains(&name.as_str()) { Vec::new() } else { std::fs::read(&path).unwrap() };
            into.push((path, bytes));
        }
    }
}

/// Runs a command on a table with a ledger of its own.
fn look(here: &Path, arguments: &str, rows: &[String], exchanged: bool) -> Seen {
    let _ = (std::fs::remove_dir_all(here), std::fs::create_dir_all(here));
    // Only what the command reads: a long row takes its time.
    let made: [(&str, &dyn Fn() -> Vec<u8>); 4] = [
        ("people.csv", &|| table(rows, false).into_bytes()),
        ("people.tsv", &|| table(rows, true).into_bytes()),
        ("people.parquet", &|| parquet(rows)),
        ("votes.csv", &|| votes(rows).into_bytes()),
    ];
    for (name, bytes) in made.iter().filter(|(name, _)| arguments.contains(name)) {
        std::fs::write(here.join(name), bytes()).unwrap();
    }
    std::fs::write(here.join("schema.toml"), SCHEMA).unwrap();
    std::fs::write(here.join("plan.toml"), PLAN).unwrap();
    let public: Vec<String> =
        (0..12).map(|row| format!("u,{}.5,red,{}", row % 4, ["a", "b"][row % 2])).collect();
    std::fs::write(here.join("public.csv"), format!("u,x,c,y\n{}\n", public.join("\n"))).unwrap();
    let relation = if exchanged { "replace" } else { "add-remove" };
    let users = if arguments.contains("--max-per-user") { "--unit user" } else { "" };
    let create = format!(
        "ledger create people --epsilon 30 --delta 1e-5 --neighbors {relation} {users} --ledger ledger"
    );
    // A ledger for stable winners is opened with the price of these.
    assert!(arguments.contains("stable") || command::run(here, &create).code == 0);
    let mut command = start(here, &format!("{arguments} --ledger ledger"));
    let ran = command.env("QUELL_EXACT_STATISTICS", here.join("seen")).output().unwrap().into();
    let seen = std::fs::read_to_string(here.join("seen")).unwrap();
    let statistics = seen.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut written = Vec::new();
    files(here, &mut written);
    Seen { ran, files: written, statistics }
}

/// Without how long it took.
fn words(text: &str) -> String {
    text.lines().filter(|line| !line.contains("seconds")).collect::<Vec<_>>().join("\n")
}

fn numbers(statistic: &Value) -> Vec<f64> {
    statistic["values"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap_or(f64::NAN)).collect()
}

/// How far statistics moved, at most, of what is charged for.
fn moved(base: &Seen, other: &Seen, exchanged: bool) -> f64 {
    let far = |(a, b): (&Value, &Value)| {
        assert_eq!(numbers(a).len(), numbers(b).len(), "{a} {b}");
        let apart: Vec<f64> = numbers(a).iter().zip(numbers(b)).map(|(a, b)| (a - b).abs()).collect();
        let distance = if a["norm"] == "L2" {
            apart.iter().map(|x| x * x).sum::<f64>().sqrt()
        } else {
            apart.iter().sum()
        };
        let allowed = a[if exchanged { "exchange" } else { "addition" }].as_f64().unwrap();
        if a["mechanism"] == b["mechanism"] && !distance.is_nan() {
            distance / allowed
        } else {
            f64::INFINITY
        }
    };
    assert_eq!(base.statistics.len(), other.statistics.len(), "one has more releases than the other");
    base.statistics.iter().zip(&other.statistics).map(far).fold(0.0, f64::max)
}

const COMMANDS: [&str; 69] = [
    "query people.parquet count --epsilon 1",
    "query people.parquet count --epsilon 1 --where x>=0",
    "query people.parquet mean --column x --bounds -3 3 --epsilon 1",
    "query people.parquet quantile --column x --bounds -3 3 --epsilon 1",
    "query people.parquet histogram --column c --keys red,blue --epsilon 1",
    "query people.parquet histogram --column c --epsilon 1 --delta 1e-9",
    "schema people.parquet --numbers x --within -9 9 --label y --ignore u --epsilon 4",
    "schema people.parquet",
    "train people.parquet --schema schema.toml --noise-multiplier 2 --steps 2 --sampling full --records 30 --delta 1e-5 --output run",
    "knn people.parquet --schema schema.toml --public public.csv --deviation 20 --answers 3 --delta 1e-5 --output run",
    "pate people.parquet --schema schema.toml --public public.csv --teachers 100 --aggregator stable --deviation 3 --delta 1e-5 --output run",
    "pate people.csv --schema schema.toml --public public.csv --teachers 12 --deviation 3 --answers 3 --delta 1e-5 --reveal-cost --output run",
    "pate --ballots votes.csv --labels 5 --most 2 --deviation 5 --answers 4 --delta 1e-5 --dataset people --output run",
    "pate --ballots votes.csv --range -1,3 --deviation 5 --answers 4 --delta 1e-5 --dataset people --output run",
    "pate --ballots votes.csv --classes 3 --aggregator stable --deviation 3 --delta 1e-5 --dataset people --output run",
    "pate --ballots votes.csv --classes 3 --aggregator confident --deviation 3 --answers 2 --delta 1e-5 --reveal-cost --dataset people --output run",
    "query people.csv count --epsilon 1",
    "query people.csv count --epsilon 1 --where x>=0",
    "query people.csv reaches --threshold 20 --epsilon 1",
    "query people.csv sum --column x --bounds -3 3 --epsilon 1",
    "query people.csv mean --column x --bounds -3 3 --epsilon 1",
    "query people.csv variance --column x --bounds -3 3 --epsilon 1",
    "query people.csv quantile --column x --bounds -3 3 --epsilon 1",
    "query people.csv range --column x --bounds -3 3 --epsilon 1",
    "query people.csv smooth-median --column x --bounds -3 3 --epsilon 1 --delta 1e-9",
    "query people.csv histogram --column c --keys red,blue --epsilon 1",
    "query people.csv histogram --column c --epsilon 1 --delta 1e-9",
    "query people.csv count --group-by c --groups red,blue,green --epsilon 1",
    "query people.csv count --group-by c --epsilon 1 --delta 1e-9",
    "query people.csv sum --column x --bounds -3 3 --group-by c --groups red,blue,green --epsilon 1",
    "query people.csv mean --column x --bounds -3 3 --group-by c --groups red,blue,green --epsilon 1",
    "query people.csv histogram --column c --keys red,blue --group-by y --groups a,b --epsilon 1",
    "query people.csv histogram --column c --group-by y --epsilon 1 --delta 1e-9",
    "query people.parquet mean --column x --bounds -3 3 --group-by c --groups red,blue --epsilon 1",
    "query people.parquet histogram --column c --keys red,blue --group-by y --groups a,b --epsilon 1",
    "query people.csv histogram --column x --bounds -3 3 --bins 4 --epsilon 1",
    "query people.csv histogram --column x --edges -1,0,2 --epsilon 1",
    "query people.csv histogram --column x --bounds -3 3 --bins 4 --group-by c --groups red,blue --epsilon 1",
    "query people.csv count --group-by x --group-bins -3 3 4 --epsilon 1",
    "query people.csv mean --column x --bounds -3 3 --group-by c --groups red,blue --group-by y --groups a,b --epsilon 1",
    "query people.parquet histogram --column x --bounds -3 3 --bins 4 --epsilon 1",
    "query people.parquet sum --column x --bounds -3 3 --group-by x --group-edges -1,0,2 --epsilon 1",
    "query people.csv count,mean,median --column x --bounds -3 3 --epsilon 1",
    "query people.csv quantile --column x --bounds -3 3 --quantile 0.25,0.5,0.75 --epsilon 1",
    "query people.csv count --part x<0 --part x>=0 --epsilon 1",
    "query people.csv mean --column x --bounds -3 3 --part c='red' --part c!='red' --epsilon 1",
    "query people.csv median --column x --bounds -3 3 --group-by c --groups red,blue --epsilon 1",
    "query people.csv --plan plan.toml --epsilon 1",
    "query people.csv --plan plan.toml --schema schema.toml --noise gaussian --epsilon 1",
    "query people.parquet --plan plan.toml --epsilon 1",
    "schema people.csv --numbers x --within -9 9 --within x=-3,3 --label y --ignore u --epsilon 4",
    "query people.csv count --epsilon 1 --dry-run",
    "query people.tsv count --epsilon 1",
    "query people.tsv histogram --column c --keys red,blue --epsilon 1",
    "train people.tsv --schema schema.toml --noise-multiplier 2 --steps 2 --sampling full --records 30 --delta 1e-5 --output run",
    "schema people.csv --numbers x --within -9 9 --label y --ignore u --epsilon 4",
    "schema people.csv",
    "train people.csv --schema schema.toml --noise-multiplier 2 --steps 2 --sampling full --records 30 --delta 1e-5 --output run",
    "train people.csv --schema schema.toml --model naive-bayes --noise-multiplier 2 --records 30 --delta 1e-5 --output run",
    "train people.csv --schema schema.toml --model forest --noise-multiplier 2 --steps 3 --records 30 --delta 1e-5 --output run",
    "train people.csv --schema schema.toml --model tree --noise-multiplier 2 --records 30 --delta 1e-5 --output run",
    "train people.csv --schema schema.toml --noise-multiplier 2 --steps 2 --records 30 --delta 1e-5 --dry-run",
    "train people.csv --schema schema.toml --users --noise-multiplier 2 --steps 2 --records 30",
    "pate people.csv --schema schema.toml --users --epsilon 1",
    "pate people.csv --schema schema.toml --public public.csv --teachers 3 --deviation 20 --answers 3 --delta 1e-5 --output run",
    "knn people.csv --schema schema.toml --public public.csv --deviation 20 --answers 3 --delta 1e-5 --output run",
    // Asked for another promise than the ledger's, under which the number of records would be public.
    "train people.csv --schema schema.toml --noise-multiplier 2 --steps 2 --sampling without-replacement --batch-size 5 --records 30 --delta 1e-5 --neighbors replace",
    "train people.csv --schema schema.toml --noise-multiplier 2 --steps 2 --sampling without-replacement --batch-size 5 --records 30 --delta 1e-5 --neighbors replace --dry-run",
    "train people.csv --schema schema.toml --noise-multiplier 2 --steps 2 --delta 1e-5 --neighbors replace --dry-run",
];

/// Exit code of a command, and whether anything is handed to a mechanism.
fn expected(arguments: &str) -> (i32, bool) {
    match arguments {
        // Nobody says who the users are.
        _ if arguments.contains("--users") => (2, false),
        "schema people.csv" | "schema people.parquet" => (0, false),
        // A question is handed over before its price is said.
        _ => (0, !arguments.contains("--dry-run") || arguments.starts_with("query")),
    }
}

#[test]
fn commands_release_nothing_beyond_the_charged_difference_of_one_record() {
    let times: usize =
        std::env::var("QUELL_NEIGHBOUR_CASES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let here = folder("neighbouring");
    let (mut compared, mut most) = (0, 0.0_f64);
    for (number, arguments) in COMMANDS.iter().enumerate() {
        let other_promise = arguments.contains("--neighbors");
        for exchanged in if other_promise { &[false][..] } else { &[false, true] } {
            let exchanged = *exchanged;
            let relation = if exchanged { "--neighbors replace" } else { "--neighbors add-remove" };
            let trains = ["train", "pate", "knn"].iter().any(|verb| arguments.starts_with(verb));
            let arguments = if trains && !other_promise {
                format!("{arguments} {relation}")
            } else {
                (*arguments).to_owned()
            };
            let mut chance = PublicRandom::of(11, number as u64 * 2 + u64::from(exchanged));
            // The number of teachers is public. If a record is added, removed or replaced, the ballots of one
            // teacher change.
            let one_teacher = arguments.contains("--ballots");
            let rows: Vec<String> = (0..30).map(|_| row(&mut chance)).collect();
            let base = look(&here, &arguments, &rows, exchanged);
            let released = !base.statistics.is_empty();
            let expected = if other_promise { (2, false) } else { expected(&arguments) };
            assert_eq!((base.ran.code, released), expected, "{arguments}: {}", base.ran.stderr);
            for _ in 0..6 * times {
                let other = neighbour(&mut chance, &rows, exchanged || one_teacher);
                let other = look(&here, &arguments, &other, exchanged);
                assert_eq!(
                    other.ran.code, base.ran.code,
                    "{arguments}: {}{}",
                    base.ran.stderr, other.ran.stderr
                );
                assert_eq!(words(&other.ran.stdout), words(&base.ran.stdout), "{arguments}");
                assert_eq!(words(&other.ran.stderr), words(&base.ran.stderr), "{arguments}");
                assert!(other.files == base.files, "{arguments}: other files, or other content");
                let moved = moved(&base, &other, exchanged);
                assert!(moved <= 1.0, "{arguments}: moved by {moved} of what is charged for");
                (compared, most) = (compared + 1, most.max(moved));
            }
        }
    }
    assert!(most > 0.9, "{most}");
    println!("{compared} commands compared, the farthest moved by {most} of what was charged for");
}

#[test]
fn evaluations_release_nothing_beyond_the_charged_difference_of_one_record() {
    let here = folder("neighbouring model");
    let train = "train people.csv --schema schema.toml --noise-multiplier 2 --steps 2 --sampling full --records 30 --delta 1e-5 --output run";
    let mut chance = PublicRandom::new(12);
    let rows: Vec<String> = (0..30).map(|_| row(&mut chance)).collect();
    let trained = look(&here, train, &rows, false);
    assert_eq!(trained.ran.code, 0, "{}", trained.ran.stderr);
    let model = std::fs::read(here.join("run/model.safetensors")).unwrap();
    let there = folder("neighbouring evaluation");
    std::fs::write(there.parent().unwrap().join("neighbouring.safetensors"), &model).unwrap();
    for (arguments, exchanged) in [
        ("evaluate ../neighbouring.safetensors people.csv --epsilon 1 --dataset people", false),
        ("evaluate ../neighbouring.safetensors people.csv --epsilon 1 --dataset people", true),
        ("evaluate ../neighbouring.safetensors people.csv --epsilon 1 --records 30 --dataset people", false),
        ("evaluate ../neighbouring.safetensors people.csv --epsilon 1 --records 30 --dataset people", true),
    ] {
        let base = look(&there, arguments, &rows, exchanged);
        assert_eq!(base.ran.code, 0, "{}", base.ran.stderr);
        for _ in 0..6 {
            let other = look(&there, arguments, &neighbour(&mut chance, &rows, exchanged), exchanged);
            assert_eq!(
                (other.ran.code, &other.ran.stdout, &other.ran.stderr),
                (base.ran.code, &base.ran.stdout, &base.ran.stderr)
            );
            let moved = moved(&base, &other, exchanged);
            assert!(moved <= 1.0, "{arguments}: moved by {moved} of what is charged for");
        }
    }
}

/// Questions with at most two records of each user.
const OF_USERS: [&str; 8] = [
    "query people.csv count",
    "query people.csv mean --column x --bounds -3 3",
    "query people.csv histogram --column c --delta 1e-9",
    "query people.csv count,median --column x --bounds -3 3 --where x>-1",
    "query people.parquet sum --column x --bounds -3 3 --group-by c --groups red,blue",
    "query people.csv --plan plan.toml",
    "query people.csv count --part x<0 --part x>=0 --group-by c --groups red,blue",
    "schema people.csv --numbers x --within -9 9 --label y",
];

#[test]
fn questions_about_users_release_nothing_beyond_the_charged_difference_of_one_user() {
    let here = folder("neighbouring users");
    let mut most = 0.0_f64;
    for (number, question) in OF_USERS.iter().enumerate() {
        for exchanged in [false, true] {
            let mut chance = PublicRandom::of(13, number as u64 * 2 + u64::from(exchanged));
            let arguments = format!("{question} --user u --max-per-user 2 --epsilon 1");
            let rows: Vec<String> = (0..30).map(|_| row(&mut chance)).collect();
            let base = look(&here, &arguments, &rows, exchanged);
            assert_eq!(base.ran.code, 0, "{arguments}: {}", base.ran.stderr);
            for _ in 0..6 {
                // All records of one user are removed, or others are in their places.
                let user = format!("u{}", chance.below(9));
                let is_of = |row: &String| row.split(',').next() == Some(user.as_str());
                let mut other: Vec<String> = rows.iter().filter(|row| !is_of(row)).cloned().collect();
                if exchanged {
                    for _ in 0..chance.below(6) {
                        let cells = row(&mut chance);
                        let cells = cells.split_once(',').map_or("", |(_, rest)| rest);
                        other.insert(chance.below(other.len()), format!("{user},{cells}"));
                    }
                }
                let other = look(&here, &arguments, &other, exchanged);
                assert_eq!(words(&other.ran.stdout), words(&base.ran.stdout), "{arguments}");
                assert_eq!(words(&other.ran.stderr), words(&base.ran.stderr), "{arguments}");
                // The charge is for two records of a user.
                let moved = moved(&base, &other, exchanged) / 2.0;
                assert!(moved <= 1.0, "{arguments}: moved by {moved} of what is charged for");
                most = most.max(moved);
            }
        }
    }
    assert!(most > 0.9, "{most}");
}
