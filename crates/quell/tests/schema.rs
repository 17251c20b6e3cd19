//! From tables to examples: bounds, categories, users and splits, as a schema says, and nothing learned for free.
#![allow(missing_docs, clippy::unwrap_used)]

use std::{fmt::Write as _, sync::Arc};

use crate::made::{Folder, gzip, labels, rows};
use parquet::{
    data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type},
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::parser::parse_message_type,
};
use proptest::prelude::*;
use quell::{
    Error, Hint,
    data::{
        Dataset, Feature, FormatError, Label, Layout, Options, Schema, Table, TableError, TestPart, open,
        unlabelled,
    },
};

const SCHEMA: &str = "
    ignore = ['id']
    [label]
    column = 'sick'
    classes = ['no', 'yes']
    [[column]]
    name = 'age'
    bounds = [20, 60]
    [[column]]
    name = 'city'
    categories = ['Bern', 'Basel']
";

const PEOPLE: &str = "id,age,city,sick\n1,40,Bern,yes\n2,20,Basel,no\n3,100,Chur,yes\n4,,,no\n5,x,Bern,maybe\n6,50,Bern,\n7,-5,Basel ,no\n";

fn schema(text: &str) -> Schema {
    Schema::parse(text).unwrap()
}

fn read(content: &str, schema_text: &str) -> Result<Dataset, Error> {
    let folder = Folder::new().with("people.csv", content);
    open(
        folder.path().join("people.csv"),
        &Options { schema: Some(schema(schema_text)), ..Options::default() },
    )
}

fn refused(text: &str) -> String {
    Schema::parse(text).unwrap_err().to_string()
}

#[test]
fn numbers_are_clamped_and_scaled_and_categories_are_one_hot() {
    let train = read(PEOPLE, SCHEMA).unwrap().train;
    assert_eq!(train.shape(), [3]);
    // Without a class there is no example: 5 and 6 are left out. A missing number is the middle, an unknown city is none.
    assert_eq!(
        rows(&train),
        [[0.0, 1.0, 0.0], [-1.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 1.0]]
    );
    assert_eq!(labels(&train), [1, 0, 1, 0, 0]);
    assert_eq!(train.classes().unwrap(), ["no", "yes"]);
    assert_eq!(schema(SCHEMA).features(), ["age", "city=Bern", "city=Basel"]);
}

#[test]
fn what_is_unknown_may_have_a_feature_of_its_own() {
    let text = SCHEMA.replace("60]", "60]\nunknown = true").replace("'Basel']", "'Basel']\nunknown = true");
    let train = read(PEOPLE, &text).unwrap().train;
    assert_eq!(schema(&text).features(), ["age", "age=?", "city=Bern", "city=Basel", "city=?"]);
    let expected = [
        [0.0, 0.0, 1.0, 0.0, 0.0],
        [-1.0, 0.0, 0.0, 1.0, 0.0],
        [1.0, 0.0, 0.0, 0.0, 1.0],
        [0.0, 1.0, 0.0, 0.0, 1.0],
    ];
    assert_eq!(rows(&train)[..4], expected);
}

#[test]
fn a_number_to_learn_is_scaled_and_back() {
    let text = SCHEMA
        .replace("classes = ['no', 'yes']", "bounds = [-10, 30]")
        .replace("'sick'", "'id'")
        .replace("['id']", "['sick']");
    let train = read(PEOPLE, &text).unwrap().train;
    let numbers: Vec<f32> = (0..train.len()).map(|index| train.number(index).unwrap()).collect();
    assert_eq!(numbers, [-0.45, -0.4, -0.35, -0.3, -0.25, -0.2, -0.15]);
    assert!((schema(&text).unscaled(-0.45).unwrap() - 1.0).abs() < 1e-6);
    assert_eq!(schema(&text).unscaled(1.0), Some(30.0));
    assert_eq!(schema(SCHEMA).unscaled(1.0), None);
    let other = read("id,age,city,sick\nx,1,Bern,no\n,1,Bern,no\n99,1,Bern,no\n", &text).unwrap().train;
    assert_eq!((other.len(), other.number(0)), (1, Some(1.0)));
}

#[test]
fn users_are_told_apart_by_their_column() {
    let text = SCHEMA.replace("ignore = ['id']", "user = 'id'");
    let content =
        "id,age,city,sick\nada,30,Bern,no\nbob,30,Bern,no\n,30,Bern,no\nada,31,Bern,yes\neve,30,Bern,maybe\n";
    let train = read(content, &text).unwrap().train;
    // Nobody's record is left out, and so is one without a class: eve is no user.
    assert_eq!((train.users(), train.user_count()), (Some([0, 1, 0].as_slice()), Some(2)));
}

#[test]
fn the_side_of_a_user_does_not_depend_on_other_users() {
    let text = format!("{}\n[test]\nshare = 0.5", SCHEMA.replace("ignore = ['id']", "user = 'id'"));
    let people = |users: std::ops::Range<u32>| {
        let mut content = String::from("id,age,city,sick\n");
        users.for_each(|user| {
            writeln!(content, "u{user},{},Bern,no\nu{user},60,Basel,yes", 20 + user % 40).unwrap();
        });
        content
    };
    let tested = |data: Dataset| data.test.unwrap().user_count().unwrap();
    let all = tested(read(&people(0..40), &text).unwrap());
    assert!((8..32).contains(&all), "{all}");
    let one_by_one = (0..40).map(|user| tested(read(&people(user..user + 1), &text).unwrap())).sum::<usize>();
    assert_eq!(all, one_by_one);
}

#[test]
fn a_share_is_as_private_as_the_rest() {
    let mut content = String::from("id,age,city,sick\n");
    (0..400).for_each(|record| {
        writeln!(content, "{record},{},Bern,no", f64::from(record) / 10.0 + 20.0).unwrap();
    });
    let data = read(&content, &format!("{SCHEMA}\n[test]\nshare = 0.25")).unwrap();
    let test = data.test.unwrap();
    assert_eq!(data.train.len() + test.len(), 400);
    assert!((50..150).contains(&test.len()) && !data.test_is_public);
    let public = read(&content, &format!("{SCHEMA}\n[test]\nshare = 0.25\npublic = true"));
    assert!(matches!(public, Err(Error::Setting { name: "test", .. })), "all records are promised the same");
    assert!(read(&content, SCHEMA).unwrap().test.is_none());
}

#[test]
fn another_file_may_be_the_test_part() {
    let folder = Folder::new()
        .with("train.csv", PEOPLE)
        .with("test.csv.gz", gzip(b"id,age,city,sick\n9,60,Basel,yes\n"));
    let text = format!("{SCHEMA}\n[test]\nfile = 'test.csv.gz'\npublic = true");
    let options = Options { schema: Some(schema(&text)), ..Options::default() };
    let data = open(folder.path().join("train.csv"), &options).unwrap();
    assert_eq!(
        (data.train.len(), rows(data.test.as_ref().unwrap()), data.test_is_public),
        (5, vec![vec![1.0, 0.0, 1.0]], true)
    );
}

#[test]
fn predictions_need_no_label_and_no_user() {
    let text = SCHEMA.replace("ignore = ['id']", "user = 'id'");
    let folder = Folder::new().with("new.csv", "age,city\n40,Bern\nx,y\n");
    let examples = unlabelled(folder.path().join("new.csv"), &schema(&text)).unwrap();
    assert_eq!((rows(&examples), examples.user_count()), (vec![vec![0.0, 1.0, 0.0], vec![0.0; 3]], None));
    let labelled = Folder::new().with("new.csv", PEOPLE);
    assert_eq!(unlabelled(labelled.path().join("new.csv"), &schema(&text)).unwrap().len(), 7);
}

#[test]
fn packed_tables_are_tables() {
    let folder = Folder::new()
        .with("people.csv.gz", gzip(PEOPLE.as_bytes()))
        .with("people.tsv.gz", gzip(PEOPLE.replace(',', "\t").as_bytes()))
        .with("two.csv.gz", [gzip(b"a\n1\n"), gzip(b"2\n")].concat())
        .with("cut.csv.gz", &gzip(PEOPLE.as_bytes())[..40])
        .with("fake.csv.gz", PEOPLE)
        .with("people.parquet.gz", gzip(b"PAR1"));
    for name in ["people.csv.gz", "people.tsv.gz"] {
        let table = Table::open(folder.path().join(name)).unwrap();
        assert_eq!(table.columns()[2].name, "city");
        assert_eq!(table.all().numbers("age").unwrap()[..3], [Some(40.0), Some(20.0), Some(100.0)]);
        assert_eq!(table.all().count().unwrap(), 7);
    }
    assert_eq!(Table::open(folder.path().join("two.csv.gz")).unwrap().all().count().unwrap(), 2);
    let cut = Table::open(folder.path().join("cut.csv.gz")).and_then(|table| table.all().count());
    assert!(matches!(cut, Err(Error::Format(FormatError::Packed { .. }))));
    assert!(matches!(
        Table::open(folder.path().join("fake.csv.gz")),
        Err(Error::Format(FormatError::NoTable { .. }))
    ));
    assert!(matches!(
        Table::open(folder.path().join("people.parquet.gz")),
        Err(Error::Format(FormatError::NoTable { found: "Parquet in gzip", .. }))
    ));
}

#[test]
fn parquet_columns_are_compared_as_what_they_are_declared() {
    let message = "message people { required int64 grade; required boolean smoker; required binary city (UTF8); required double x; required int64 who; }";
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer =
        SerializedFileWriter::new(Vec::new(), Arc::new(parse_message_type(message).unwrap()), properties)
            .unwrap();
    let mut group = writer.next_row_group().unwrap();
    macro_rules! column {
        ($kind:ty, $values:expr) => {{
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<$kind>().write_batch(&$values, None, None).unwrap();
            column.close().unwrap();
        }};
    }
    column!(Int64Type, [3, 5, 4]);
    column!(BoolType, [true, false, true]);
    column!(ByteArrayType, ["Bern", "Basel", "Chur"].map(ByteArray::from));
    column!(DoubleType, [0.0, f64::NAN, 10.0]);
    column!(Int64Type, [7, 8, 7]);
    group.close().unwrap();
    let folder = Folder::new().with("people.parquet", writer.into_inner().unwrap());
    let text = "user = 'who'\n[label]\ncolumn = 'grade'\nclasses = ['5', '3.0', '4']
        [[column]]\nname = 'smoker'\ncategories = ['true']\n[[column]]\nname = 'city'\ncategories = ['Basel']
        [[column]]\nname = 'x'\nbounds = [0, 10]\nunknown = true";
    let path = folder.path().join("people.parquet");
    let read = |text: &str| open(&path, &Options { schema: Some(schema(text)), ..Options::default() });
    let train = read(text).unwrap().train;
    assert_eq!(labels(&train), [1, 0, 2]);
    assert_eq!(rows(&train), [[1.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]]);
    assert_eq!(train.users(), Some([0, 1, 0].as_slice()));
    assert!(matches!(read(&text.replace("'5'", "'five'")), Err(Error::Table(TableError::Schema { .. }))));
    let error = read(&text.replace("categories = ['Basel']", "bounds = [0, 1]")).unwrap_err();
    assert!(matches!(error, Error::Table(TableError::WrongUse { .. })), "{error}");
}

#[test]
fn a_table_without_a_schema_is_refused_with_a_hint() {
    let folder = Folder::new().with("people.csv", PEOPLE);
    let error = folder.open("people.csv").unwrap_err();
    assert!(matches!(error, Error::Table(TableError::NoSchema { .. })));
    assert!(matches!(error.hint(), Some(Hint::WriteSchema { .. })), "{:?}", error.hint());
}

#[test]
fn a_schema_and_its_table_have_the_same_columns() {
    assert!(
        matches!(read(PEOPLE, &SCHEMA.replace("['id']", "[]")), Err(Error::Table(TableError::Unmentioned { name, .. })) if name == "id")
    );
    assert!(
        matches!(read(PEOPLE, &SCHEMA.replace("'city'", "'town'")), Err(Error::Table(TableError::NoColumn { name, .. })) if name == "town")
    );
    // Where a record stands in the place of the names, none of it is shown.
    let error = read("Ada Lovelace,Bern,positive\nBob,Basel,negative\n", SCHEMA).unwrap_err();
    let said = format!("{error} {error:?} {}", error.hint().unwrap());
    assert!(!["Ada", "Bern", "positive"].iter().any(|cell| said.contains(cell)), "{said}");
    let error = read("id,age,sick\n1,2,no\n", SCHEMA).unwrap_err();
    assert!(matches!(&error, Error::Table(TableError::NoColumn { name, .. }) if name == "city"), "{error}");
    // What is ignored need not be there, and a column without a name cannot be mentioned.
    assert_eq!(read("age,city,sick,\n40,Bern,no,5\n", SCHEMA).unwrap().train.len(), 1);
}

#[test]
fn a_schema_that_contradicts_itself_is_refused() {
    assert!(refused("").contains("no column to learn from"));
    // The message quotes nothing of the file.
    let unknown = refused(&format!("typo = 1\n{SCHEMA}"));
    assert!(unknown.contains("line 1, column 1: unknown field") && !unknown.contains("typo"), "{unknown}");
    assert!(refused(&SCHEMA.replace("bounds", "bound")).contains("bound"));
    assert!(refused(&SCHEMA.replace("'age'", "'city'")).contains("\"city\" is named twice"));
    assert!(refused(&SCHEMA.replace("'age'", "''")).contains("has no name"));
    assert!(refused(&SCHEMA.replace("['id']", "['sick']")).contains("\"sick\""));
    assert!(refused("[label]\ncolumn = 'a'\nclasses = ['x']").contains("no column to learn from"));
    assert!(
        refused(&SCHEMA.replace("bounds = [20, 60]", "")).contains("a column has none of bounds, categories")
    );
    assert!(refused(&SCHEMA.replace("classes = ['no', 'yes']", "")).contains("label has neither or both"));
    assert!(refused(&SCHEMA.replace("['no', 'yes']", "[]")).contains("no classes or one twice"));
    assert!(refused(&SCHEMA.replace("'Basel'", "'Bern'")).contains("no categories or one twice"));
    for bounds in ["[60, 20]", "[20, 20]", "[nan, 1]", "[0, inf]", "[-1e308, 1e308]"] {
        assert!(
            refused(&SCHEMA.replace("[20, 60]", bounds)).contains("expected two finite numbers"),
            "{bounds}"
        );
    }
    assert!(refused(&SCHEMA.replace("[20, 60]", "[20, 60, 70]")).contains("invalid"));
    for test in ["", "share = 1.0", "share = -0.5", "share = 0.5\nfile = 'x'"] {
        assert!(Schema::parse(&format!("{SCHEMA}\n[test]\n{test}")).is_err(), "{test}");
    }
}

#[test]
fn a_schema_file_is_named_in_its_error() {
    let folder = Folder::new()
        .with("good.toml", SCHEMA)
        .with("bad.toml", "[label")
        .with("binary.toml", [0xff, 0xfe, 0]);
    assert_eq!(Schema::read(folder.path().join("good.toml")).unwrap(), schema(SCHEMA));
    for name in ["bad.toml", "binary.toml"] {
        assert!(Schema::read(folder.path().join(name)).unwrap_err().to_string().contains(name));
    }
    assert!(matches!(Schema::read(folder.path().join("none.toml")), Err(Error::Absent { .. })));
}

#[test]
fn no_record_makes_an_error_and_none_is_shown() {
    let cells = ["", "secret", "1e999", "\"", "nan", "\u{fffd}", ",,,", "-0", "yes", "Bern"];
    for first in cells {
        for second in cells {
            let data = read(
                &format!("id,age,city,sick\n1,{first},{second},no\n2,{second},{first},{second}\n"),
                SCHEMA,
            )
            .unwrap();
            assert!(!format!("{data:?}").contains("secret"));
            assert!(rows(&data.train).concat().iter().all(|value| (-1.0..=1.0).contains(value)));
        }
    }
}

#[test]
fn features_that_do_not_fit_into_memory_are_refused() {
    let folder = Folder::new().with("people.csv", PEOPLE);
    let allowed = |memory| {
        let options = Options { schema: Some(schema(SCHEMA)), memory: Some(memory), ..Options::default() };
        open(folder.path().join("people.csv"), &options)
    };
    assert!(allowed(7 * (3 * 4 + 24)).is_ok());
    assert!(matches!(allowed(7 * (3 * 4 + 24) - 1), Err(Error::Format(FormatError::TooLarge { .. }))));
}

proptest! {
    #[test]
    fn a_schema_is_what_was_written(
        names in prop::collection::hash_set("[a-zA-Z0-9 .'\"=\\\\ü\u{1}-]{1,8}", 4..8), low in -1e9..1e9_f64, width in 1e-3..1e9_f64,
        categories in prop::collection::hash_set(".{0,6}", 1..5), unknown: bool, share in prop::option::of(0.0..0.999_f64), public: bool,
    ) {
        let names: Vec<String> = names.into_iter().collect();
        let categories: Vec<String> = categories.into_iter().collect();
        let written = Schema {
            ignore: names[4..].to_vec(),
            user: unknown.then(|| names[0].clone()),
            label: Some(Label { column: names[1].clone(), classes: Some(categories.clone()), ..Label::default() }),
            file: Layout { missing: names[4..].to_vec(), ..Layout::default() },
            test: share.map(|share| TestPart { share: Some(share), file: None, public }),
            columns: vec![
                Feature { unknown, ..Feature::numbers(&names[2], [low, low + width]) },
                Feature { unknown: !unknown, ..Feature::categorical(&names[3], categories) },
            ],
        };
        prop_assert_eq!(Schema::parse(&written.to_toml().unwrap()).unwrap(), written);
    }

    #[test]
    fn any_text_is_a_schema_or_an_error(text in ".{0,200}") {
        let _ = Schema::parse(&text);
    }
}
