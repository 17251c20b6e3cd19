//! Synthetic data: what rows hold, and what is refused.

use std::fmt::Write;

use quell::{
    Error,
    data::{Options, Schema, open},
    learner::{
        Control, Method, Predictor, PublicFacts, Subject,
        synthesis::{Recipe, Synthesis, Synthesizer},
    },
    ledger::InMemory,
    network::Architecture,
    random::PublicRandom,
    run::{self, Configuration, Driver, Job, Model, Outcome, train},
};
use quell_ledger::{Location, Store};
use quell_privacy::{
    ledger::Ledger,
    units::{Delta, Epsilon},
};

use crate::made::Folder;

/// Plans for a schema, and trains on the text of a table.
fn synthesize(schema: &str, table: &str, records: u64) -> Result<Synthesizer, Error> {
    let here = Folder::new();
    let path = here.path().join("table.csv");
    std::fs::write(&path, table).unwrap();
    let schema = Schema::parse(schema)?;
    let options =
        Options { schema: Some(schema.with_label_as_column()), ignore_label: true, ..Options::default() };
    let examples = open(&path, &options)?.train;
    let mut recipe = Recipe { records: Some(records), ..Recipe::default() };
    (recipe.privacy.epsilon, recipe.privacy.delta) = (Some(3.0), Some(1e-5));
    let facts = PublicFacts { records: None, classes: None };
    let subject = Subject { shape: examples.shape(), are_features: false, facts, schema: Some(&schema) };
    let mut model = Architecture::default();
    let method = Synthesis::plan(&mut recipe, &mut model, &subject)?;
    // Completed settings yield the same plan.
    let again = Synthesis::plan(&mut recipe.clone(), &mut model, &subject)?;
    assert_eq!((again.plan.sums.runs, again.plan.rows), (method.plan.sums.runs, method.plan.rows));
    assert_eq!(again.plan.sums.descent, method.plan.sums.descent);
    let budget = (Epsilon::new(3.0)?, Delta::new(1e-5)?);
    let mut ledger = InMemory::ledger("table", budget.0, budget.1)?;
    match method.train(&examples, &mut ledger)? {
        Predictor::Synthesizer(model) => Ok(model),
        _ => panic!("another model"),
    }
}

const SCHEMA: &str = "[label]\ncolumn = 'y'\nbounds = [-5, 5]\n[[column]]\nname = 'a'\nbounds = [0, 10]\n\
    [[column]]\nname = 'b, c'\ncategories = ['u', 'say \"v\"']\nunknown = true\n";

#[test]
fn tables_at_the_edge_yield_rows_of_the_schema() {
    let head = "a,\"b, c\",y\n";
    let many = |row: &str| head.to_owned() + &row.repeat(500);
    for (table, name) in [
        (head.to_owned(), "no row"),
        (head.to_owned() + "1,u,2\n", "one row"),
        (many("3,u,1\n"), "constant"),
        (many(",,\n"), "all missing"),
        (many("nan,other,inf\n"), "nothing known"),
        (many("1e300,u,-1e300\n"), "beyond the bounds"),
    ] {
        let model = synthesize(SCHEMA, &table, 500).unwrap_or_else(|error| panic!("{name}: {error}"));
        let rows = model.csv(200, 1);
        let mut lines = rows.lines();
        assert_eq!(lines.next(), Some("a,\"b, c\",y"), "{name}");
        assert_eq!(lines.clone().count(), 200, "{name}");
        let mut at_bounds = [0.0; 2];
        for line in lines {
            let (a, rest) = line.split_once(',').unwrap();
            let (b, y) = rest.rsplit_once(',').unwrap();
            let number = |text: &str, bounds: [f64; 2]| {
                let x: f64 = text.parse().unwrap_or_else(|_| panic!("{name}: {line}"));
                assert!((bounds[0]..=bounds[1]).contains(&x), "{name}: {line}");
                x
            };
            let (a, y) = (number(a, [0.0, 10.0]), number(y, [-5.0, 5.0]));
            assert!(["u", "\"say \"\"v\"\"\"", ""].contains(&b), "{name}: {line}");
            at_bounds[0] += f64::from(u8::from(a == 10.0)) / 200.0;
            at_bounds[1] += f64::from(u8::from(y == -5.0)) / 200.0;
        }
        // Values beyond a bound are drawn at the bound, as often as the model says.
        let said = [model.column(0)[33], model.column(2)[0]];
        if name == "beyond the bounds" {
            for (drawn, said) in at_bounds.iter().zip(said) {
                assert!(said > 0.5 && (drawn - said).abs() < 0.05, "{drawn} {said}");
            }
        }
    }
    let unknown = synthesize(SCHEMA, &many(",,\n"), 500).unwrap();
    let empty = unknown.csv(500, 1).lines().filter(|line| line.contains(",,")).count();
    assert!(empty > 400, "{empty}");
}

#[test]
fn one_column_alone_is_counted_in_one_run() {
    let schema = "[[column]]\nname = 'a'\ncategories = ['u', 'v']\nunknown = true\n";
    let table = "a\n".to_owned() + &"u\n".repeat(300) + &"\"\"\n".repeat(100);
    let model = synthesize(schema, &table, 400).unwrap();
    assert!(model.errors().is_empty() && model.error(false).is_none());
    let rows = model.csv(400, 1);
    assert_eq!(rows.lines().count(), 401);
    let count = |cell: &str| rows.lines().filter(|line| *line == cell).count();
    assert!(
        count("u").abs_diff(300) < 25 && count("\"\"").abs_diff(100) < 25,
        "{} {}",
        count("u"),
        count("\"\"")
    );
}

#[test]
fn the_same_seed_draws_the_same_rows_and_another_seed_draws_others() {
    let model =
        synthesize(SCHEMA, &("a,\"b, c\",y\n".to_owned() + &"1,u,2\n4,,1\n".repeat(300)), 600).unwrap();
    assert_eq!(model.csv(300, 4), model.csv(300, 4));
    assert_ne!(model.csv(300, 4), model.csv(300, 5));
    assert_eq!(model.csv(0, 4).lines().count(), 1);
}

#[test]
fn data_without_a_schema_is_refused() {
    let facts = PublicFacts { records: Some(10), classes: None };
    let subject = Subject { shape: &[2], are_features: false, facts, schema: None };
    let mut recipe = Recipe::default();
    recipe.privacy.epsilon = Some(1.0);
    let refusal = Synthesis::plan(&mut recipe, &mut Architecture::default(), &subject).err().unwrap();
    assert!(refusal.to_string().contains("a table with a schema"), "{refusal}");
}

/// Reads the terms of a job.
struct Terms;

impl Driver for Terms {
    type Output = quell_privacy::ledger::Terms;

    fn drive<J: Job>(self, job: &J) -> Self::Output {
        job.terms().unwrap()
    }
}

/// Runs a job until a step, or to its end.
struct Until<'a>(&'a run::Folder, &'a mut Ledger<quell_ledger::Volume>, Option<u64>);

impl Driver for Until<'_> {
    type Output = Result<Outcome, Error>;

    fn drive<J: Job>(self, job: &J) -> Self::Output {
        let Self(folder, ledger, stop) = self;
        job.go(ledger, folder, &mut |progress| {
            if Some(progress.done) == stop { Control::Stop } else { Control::Continue }
        })
    }
}

#[test]
fn a_stopped_run_continues_and_its_model_can_be_opened() {
    let here = Folder::new();
    let path = here.path().join("table.csv");
    let mut text = String::from("who,a,b,y\n");
    let mut random = PublicRandom::new(3);
    for row in 0..2_000 {
        let a = random.below(3);
        writeln!(text, "{},{},{},{a}", row % 700, ["u", "v", "w"][a], 10 * a + random.below(10)).unwrap();
    }
    std::fs::write(&path, text).unwrap();
    let schema = "user = 'who'\n[label]\ncolumn = 'y'\nclasses = ['0', '1', '2']\n[[column]]\nname = 'a'\n\
        categories = ['u', 'v', 'w']\n[[column]]\nname = 'b'\nbounds = [0, 30]\n";
    let mut asked = Configuration::default();
    asked.data.path = Some(path);
    asked.data.schema = Some(Schema::parse(schema).unwrap());
    asked.data.unit = quell_privacy::ledger::Unit::User;
    asked.model.name = Some("synthesizer".into());
    (asked.synthesis.privacy.epsilon, asked.synthesis.records) = (Some(2.0), Some(700));
    let store = Store::create(Location::File(here.path().join("ledger.db"))).unwrap();
    let folder = run::Folder::create(&here.path().join("run")).unwrap();
    let terms = train(asked.clone(), Terms).unwrap();
    let mut ledger = Ledger::create(store.book(&terms.dataset).unwrap(), terms).unwrap();
    for stop in [Some(3), Some(6), Some(14), None] {
        let outcome =
            train(folder.configuration().unwrap_or(asked.clone()), Until(&folder, &mut ledger, stop));
        let outcome = outcome.unwrap().unwrap();
        assert_eq!(outcome.is_finished, stop.is_none());
        assert_eq!(folder.file("synthetic.csv").exists(), stop.is_none());
    }
    let rows = std::fs::read_to_string(folder.file("synthetic.csv")).unwrap();
    assert_eq!((rows.lines().next(), rows.lines().count()), (Some("a,b,y,who"), 701));
    let model = Model::open(folder.path()).unwrap();
    let Predictor::Synthesizer(synthesizer) = &model.predictor else { panic!("another model") };
    assert_eq!(synthesizer.csv(700, 0), rows);
    assert_eq!(model.description().unwrap().records, 700);
    let agrees = rows.lines().skip(1).filter(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        ["u", "v", "w"].iter().position(|name| *name == cells[0]) == cells[2].parse().ok()
    });
    assert!(agrees.count() > 550);
}
