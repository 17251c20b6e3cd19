//! `quell schema`, as a whole.

use std::{fs, path::Path};

use crate::command::{Ran, folder, quell_with};
use quell::data::Schema;

/// The census, with a ledger.
struct Project {
    table: String,
    ledger: String,
    output: String,
}

impl Project {
    fn new(name: &str, epsilon: &str, more: &[&str]) -> Self {
        let folder = folder(name);
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/census.csv"), path("census.csv"))
            .unwrap();
        let project = Self { table: path("census.csv"), ledger: path("ledger"), output: path("schema.toml") };
        let create = [
            "ledger",
            "create",
            "census",
            "--epsilon",
            epsilon,
            "--delta",
            "1e-6",
            "--ledger",
            &project.ledger,
        ];
        let ran = quell_with(&[&create[..], more].concat(), "");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        project
    }

    fn schema(&self, flags: &str) -> Ran {
        let flags: Vec<&str> = flags.split_whitespace().collect();
        quell_with(&[&["schema", &self.table, "--ledger", &self.ledger][..], &flags].concat(), "")
    }

    fn spent(&self) -> f64 {
        let list = quell_with(&["ledger", "list", "--format", "json", "--ledger", &self.ledger], "").json();
        list[0]["spent"].as_f64().unwrap()
    }
}

#[test]
fn column_names_are_free_and_unknown_values_are_gaps() {
    let project = Project::new("schema_free", "1", &[]);
    let text = project.schema("").data();
    // The comments are the same on every line of a kind.
    let lines: Vec<&str> = text.lines().map(|line| line.split("  # ").next().unwrap().trim_end()).collect();
    let has = |wanted: &[&str]| lines.windows(wanted.len()).any(|window| window == wanted);
    assert!(has(&["[label]", "column = \"income\"", "# bounds = [lowest, highest]"]), "{text}");
    assert!(has(&["[[column]]", "name = \"age\"", "# bounds = [lowest, highest]"]), "{text}");
    assert!(text.contains("# the last column; choose another with --label"), "{text}");
    assert!(text.parse::<toml::Table>().is_ok(), "{text}");
    // It is not to be used before somebody has filled it in.
    assert!(Schema::parse(&text).is_err(), "{text}");
    let text = project
        .schema("--numbers age,hours_per_week --categories sex --ignore education --label income")
        .data();
    assert!(text.contains("ignore = [\"education\"]") && !text.contains("name = \"education\""), "{text}");
    let filled = text
        .replacen("# bounds = [lowest, highest]", "# no bounds of the label", 1)
        .replace("# bounds = [lowest, highest]", "bounds = [0, 100]")
        .replace("# categories = [\"…\", \"…\"]", "categories = [\"Female\", \"Male\"]")
        .replace("# classes = [\"…\", \"…\"]", "classes = [\"<=50K\", \">50K\"]");
    let schema = Schema::parse(&filled).unwrap_or_else(|error| panic!("{error}\n{filled}"));
    assert_eq!(schema.features(), ["age", "sex=Female", "sex=Male", "hours_per_week"]);
    assert_eq!(project.spent(), 0.0);
}

#[test]
fn bounds_and_categories_are_charged() {
    let project = Project::new("schema_paid", "6", &[]);
    let flags = format!(
        "--numbers age,hours_per_week --within 0 1000 --label income --epsilon 5 --output {}",
        project.output
    );
    let ran = project.schema(&flags);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("charged to \"census\" in line 1, ε = 1"), "{}", ran.stderr);
    let schema = Schema::read(&project.output).unwrap();
    assert_eq!(schema.label.unwrap().classes.as_deref(), Some(&["<=50K".to_owned(), ">50K".to_owned()][..]));
    let column = |name: &str| schema.columns.iter().find(|column| column.name == name).unwrap();
    let [low, high] = column("age").bounds().unwrap();
    // Ages are 17 to 90. An end that leaves out a hundred records of them has probability e^-100.
    assert!((0.0..=20.0).contains(&low) && (70.0..=1000.0).contains(&high), "{low} {high}");
    assert_eq!(column("sex").categories(), Some(&["Female".to_owned(), "Male".to_owned()][..]));
    let education = column("education").categories().unwrap();
    assert!(
        column("education").unknown && education.contains(&"HS-grad".to_owned()) && education.len() > 5,
        "{education:?}"
    );
    let spent = project.spent();
    assert!(spent > 2.0 && spent <= 5.01, "{spent}");
    // What does not fit is refused before anything of it is paid.
    let more = project.schema("--numbers age,hours_per_week --label income --epsilon 5");
    assert_eq!((more.code, more.stdout.as_str()), (1, ""), "{}", more.stderr);
    assert!(more.stderr.starts_with("refused: ") && more.stderr.contains("\nhint: "), "{}", more.stderr);
    let more = project.schema("--numbers age,hours_per_week --label income --epsilon 0.5 --delta 1e-7");
    assert!(more.code == 1 && more.stderr.contains("a much smaller --delta"), "{}", more.stderr);
    assert_eq!(project.spent().to_bits(), spent.to_bits());
}

#[test]
fn each_column_may_have_its_own_range_and_all_columns_are_one_charge() {
    let project = Project::new("schema_within", "6", &[]);
    let ran = project
        .schema("--numbers age,hours_per_week --within 0 50 --within age=20,30 --label income --epsilon 5");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let schema = Schema::parse(&ran.stdout).unwrap();
    let bounds =
        |name: &str| schema.columns.iter().find(|column| column.name == name).unwrap().bounds().unwrap();
    // Most ages are above 30, and count as 30.
    let ([low, high], [least, most]) = (bounds("age"), bounds("hours_per_week"));
    assert!((20.0..=30.0).contains(&low) && high == 30.0, "{low} {high}");
    assert!((0.0..=50.0).contains(&least) && (40.0..=50.0).contains(&most), "{least} {most}");
    let list = quell_with(&["ledger", "list", "--format", "json", "--ledger", &project.ledger], "").json();
    assert_eq!(list[0]["lines"], 2, "{list}");
}

#[test]
fn the_charge_under_replacement_is_at_most_the_given_epsilon() {
    let project = Project::new("schema_replace", "6", &["--neighbors", "replace"]);
    let ran = project.schema("--numbers age,hours_per_week --label income --epsilon 5");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(Schema::parse(&ran.stdout).is_ok(), "{}", ran.stdout);
    assert!(project.spent() <= 5.01, "{}", project.spent());
}

#[test]
fn bounds_contain_a_column_of_ties_anywhere_in_the_range() {
    let project = Project::new("schema_ties", "30", &[]);
    // Many contacts with one, few with up to 63; shares of one; prices.
    let row = |i: u32| {
        format!("{},{},{},no", 1 + 62 / (1 + i % 700), f64::from(i % 50) / 100.0, 500_000 + 100 * (i % 3))
    };
    let rows: Vec<String> = (0..10_000).map(row).collect();
    fs::write(&project.table, format!("campaign,share,price,sick\n{}\n", rows.join("\n"))).unwrap();
    for _ in 0..5 {
        let ran = project.schema("--numbers campaign,share,price --epsilon 4");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let schema = Schema::parse(&ran.stdout).unwrap();
        // A hundred times too wide is chosen once in some ten thousand times, and an end that leaves out a tenth of the records never.
        for (name, low, high) in
            [("campaign", 1.0, 4.0), ("share", 0.1, 0.4), ("price", 500_100.0, 500_100.0)]
        {
            let [lower, upper] =
                schema.columns.iter().find(|column| column.name == name).unwrap().bounds().unwrap();
            assert!(
                lower <= low && upper >= high && upper - lower < 2000.0 * high,
                "{name}: {lower} {upper}"
            );
        }
    }
}

#[test]
fn rare_categories_are_not_released() {
    let project = Project::new("schema_rare", "6", &[]);
    let rows: Vec<String> = (0..1000).map(|i| format!("person{i},no")).collect();
    fs::write(&project.table, format!("name,sick\n{}\n", rows.join("\n"))).unwrap();
    let ran = project.schema("--all-categories --epsilon 2");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        !ran.stdout.contains("person") && ran.stdout.contains("No category is frequent enough"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("classes = [\"no\"]"), "{}", ran.stdout);
}

#[test]
fn wrong_schemas_are_refused_before_any_charge() {
    let project = Project::new("schema_mistakes", "5", &[]);
    for (flags, says) in [
        ("--label height", "height"),
        ("--numbers agee", "agee"),
        ("--numbers age --categories age", "given twice"),
        ("--label age --ignore age", "expected one role"),
        ("--ignore age,education,sex,hours_per_week", "no column besides"),
        ("--ignore age,education,sex,hours_per_week,income", "no column is left"),
        ("--all-categories --epsilon 0 --delta 1e-9", "epsilon is 0"),
        ("--all-categories --epsilon -1 --delta 1e-9", "epsilon is -1"),
        ("--all-categories --epsilon NaN --delta 1e-9", "epsilon is NaN"),
        ("--all-categories --epsilon 1 --delta 2", "delta is 2"),
        ("--all-categories --epsilon 1 --delta 1e-9 --within 5 1", "the upper bound is 1"),
        ("--all-categories --epsilon 1 --delta 1e-9 --dataset others", "others"),
        ("--all-categories --epsilon 1 --within NaN 5", "a bound is NaN"),
        ("--all-categories --epsilon 1 --within -1e308 1e308", "a bound is "),
        ("--all-categories --epsilon 1 --within 7", "--within has 1 numbers"),
        ("--all-categories --epsilon 1 --within age=0,120", "expected a column of numbers"),
        ("--all-categories --epsilon 1 --numbers age --within age=0", "expected two numbers"),
        ("--all-categories --epsilon 1 --numbers age --within age=low,high", "expected two numbers"),
        ("--all-categories --epsilon 1 --output no/such/folder/schema.toml", "cannot be written"),
        ("--all-categories --epsilon 1 --output .", "cannot be written"),
        ("--delta 1e-9", "--epsilon"),
    ] {
        let ran = project.schema(flags);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{flags}: {}", ran.stderr);
        assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains(says), "{flags}: {}", ran.stderr);
        assert!(!ran.stderr.contains("internal error"), "{flags}: {}", ran.stderr);
    }
    let nothing = quell_with(&["schema", "nowhere.csv"], "");
    assert!(nothing.code == 2 && nothing.stderr.contains("nowhere.csv"), "{}", nothing.stderr);
    assert_eq!(project.spent(), 0.0);
}
