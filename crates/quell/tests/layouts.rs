//! Tables as they come: delimiters, missing headers, archives, aliases, dates, texts, true and false.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;

use crate::made::{Folder, gzip, labels, npy, npz, rows};
use parquet::{
    data_type::{BoolType, ByteArray, ByteArrayType, Int64Type},
    file::{properties::WriterProperties, writer::SerializedFileWriter},
    schema::parser::parse_message_type,
};
use proptest::prelude::*;
use quell::{
    Error,
    data::{
        Dataset, FeatureKind, Fit, FormatError, Layout, Options, Schema, Table, TableError, TextFeatures,
        name_of, open, shares_records, unlabelled,
    },
};

const SCHEMA: &str = "
    [file]
    delimiter = ','
    header = ['age', 'work', 'day', 'smoker', 'note', 'income']
    missing = ['?', '-999']
    [label]
    column = 'income'
    classes = ['<=50K', '>50K']
    aliases = { '<=50K.' = '<=50K', '>50K.' = '>50K' }
    [[column]]
    name = 'age'
    bounds = [20, 60]
    [[column]]
    name = 'work'
    categories = ['state', 'private']
    aliases = { 'State-gov' = 'state' }
    unknown = true
    [[column]]
    name = 'day'
    date = { from = '2024-01-01', to = '2024-01-31', parts = ['weekday'] }
    [[column]]
    name = 'smoker'
    boolean = true
    [[column]]
    name = 'note'
    text = { hashed = 4 }
    unknown = true
";

fn read(name: &str, content: impl AsRef<[u8]>, schema: &str) -> Result<Dataset, Error> {
    let folder = Folder::new().with(name, content);
    let schema = Some(Schema::parse(schema).unwrap());
    open(folder.path().join(name), &Options { schema, ..Options::default() })
}

/// The settings of the first column, which is a text.
fn text_of(schema: &mut Schema) -> &mut TextFeatures {
    let FeatureKind::Text(text) = &mut schema.columns[0].kind else { panic!("no text") };
    text
}

fn layout(text: &str) -> Layout {
    let text = format!("[[column]]\nname = 'q'\nboolean = true\n[file]\n{text}");
    Schema::parse(&text).unwrap().file
}

fn texts(name: &str, content: impl AsRef<[u8]>, settings: &str, column: &str) -> Vec<Option<String>> {
    let folder = Folder::new().with(name, content);
    Table::open_as(folder.path().join(name), &layout(settings)).unwrap().all().texts(column).unwrap()
}

fn refused(name: &str, content: impl AsRef<[u8]>, settings: &str) -> Error {
    let folder = Folder::new().with(name, content);
    let table = Table::open_as(folder.path().join(name), &layout(settings));
    table.and_then(|table| table.all().count()).unwrap_err()
}

#[test]
fn a_file_without_a_header_is_read_by_declared_names() {
    let train = read(
        "adult.data",
        "40, State-gov, 2024-01-31, YES, a b, <=50K\n60, ?, x, 0, ?, >50K.\n\n-999, private, 2024-01-01 10:00, , b a, <=50K.\n",
        SCHEMA,
    );
    let train = train.unwrap().train;
    let day = |place: usize, number: f32| {
        let mut numbers = vec![0.0; 8];
        (numbers[0], numbers[1 + place]) = (number, 1.0);
        numbers
    };
    let rows = rows(&train);
    assert_eq!(labels(&train), [0, 1, 0]);
    // Wednesday is the last day of the range, Monday the first.
    assert_eq!(rows[0][..14], [vec![0.0, 1.0, 0.0, 0.0], day(2, 1.0), vec![0.0, 1.0]].concat());
    assert_eq!(rows[1][..14], [vec![1.0, 0.0, 0.0, 1.0], vec![0.0; 8], vec![1.0, 0.0]].concat());
    assert_eq!(rows[2][..14], [vec![0.0, 0.0, 1.0, 0.0], day(0, -1.0), vec![0.0, 0.0]].concat());
    assert_eq!(
        (rows[0][14..].len(), rows[0][18], rows[1][14..].to_vec()),
        (5, 0.0, vec![0.0, 0.0, 0.0, 0.0, 1.0])
    );
    assert_eq!(rows[0][14..], rows[2][14..], "the order of words does not matter");
    let schema = Schema::parse(SCHEMA).unwrap();
    assert_eq!(schema.features().len(), train.width());
    assert_eq!(schema.features()[4..7], ["day", "day (weekday)=Mon", "day (weekday)=Tue"]);
    // Learners see numbers and categories, in the same order.
    assert_eq!(schema.plain().features(), schema.features());
    assert_eq!(schema.plain().plain(), schema.plain());
}

#[test]
fn cells_of_declared_layouts_fit_their_schema() {
    let good = "40, State-gov, 2024-01-31, YES, a b, <=50K.\n?, ?, ?, ?, ?, >50K\n";
    let bad = "x, nurse, soon, maybe, , none\n";
    let folder = Folder::new().with("t.data", format!("{good}{bad}"));
    let fit = Fit::new(folder.path().join("t.data"), &Schema::parse(SCHEMA).unwrap(), true).unwrap();
    let found: Vec<_> = fit.misfits.iter().map(|misfit| (misfit.record, misfit.to_string())).collect();
    assert_eq!(fit.records, 3);
    let said = [
        "is no number, such as \"x\"",
        "is none of the categories, such as \"nurse\"",
        "is no date, such as \"soon\"",
        "is neither true nor false, such as \"maybe\"",
        "is none of the classes, such as \"none\"",
    ];
    assert_eq!(found, said.map(|said| (3, said.to_owned())));
}

#[test]
fn a_cell_fits_where_the_encoder_knows_it() {
    let message = "message people { required int64 grade; required boolean smoker; }";
    let properties = Arc::new(WriterProperties::builder().build());
    let schema = Arc::new(parse_message_type(message).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[1, 2, 3], None, None).unwrap();
    column.close().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<BoolType>().write_batch(&[true, false, true], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    let folder = Folder::new().with("t.parquet", writer.into_inner().unwrap());
    let path = folder.path().join("t.parquet");
    // Numbers are compared as numbers, however an alias is written. True is 1 where numbers are declared.
    let schema = Schema::parse(
        "[[column]]\nname = 'grade'\ncategories = ['2']\naliases = { '1.0' = '2' }
        [[column]]\nname = 'smoker'\nbounds = [0, 1]",
    );
    let schema = schema.unwrap();
    let fit = Fit::new(&path, &schema, false).unwrap();
    let found: Vec<_> = fit.misfits.iter().map(|misfit| (misfit.record, misfit.column.as_str())).collect();
    assert_eq!(found, [(3, "grade")]);
    let read = unlabelled(&path, &schema).unwrap();
    assert_eq!(rows(&read), [[1.0, 1.0], [1.0, -1.0], [0.0, 1.0]]);
    // A number that stands for a missing one is missing, however it is written.
    let schema = "[file]\nmissing = ['-999']\n[[column]]\nname = 'age'\nbounds = [0, 9]\n";
    let folder = Folder::new().with("t.csv", "age\n-999.0\n-999\n\" \"\nten\n");
    let fit = Fit::new(folder.path().join("t.csv"), &Schema::parse(schema).unwrap(), false).unwrap();
    assert_eq!(fit.misfits.iter().map(|misfit| misfit.record).collect::<Vec<_>>(), [4]);
}

#[test]
fn a_zip_of_a_compressed_table_is_that_table() {
    let table = b"a,b\n1,2\n3,4\n".to_vec();
    let archive = npz(&[("t.csv.gz", gzip(&table))]);
    assert_eq!(texts("t.zip", &archive, "", "b"), [Some("2".to_owned()), Some("4".to_owned())]);
    let records = gzip(b"1;2\n3;4\n");
    let declared = "header = ['a', 'b']\ndelimiter = ';'";
    assert_eq!(texts("t.zip", npz(&[("t.data.gz", records)]), declared, "a").len(), 2);
    // What is no text is refused by its name, whatever the header is.
    for (name, says) in
        [("t.parquet", "Parquet in a zip archive"), ("t.zip", "a zip archive of a zip archive")]
    {
        for settings in ["", declared] {
            let error = refused("t.zip", npz(&[(name, table.clone())]), settings);
            assert!(error.to_string().contains(says), "{error}");
        }
    }
    let error = refused("t.zip", npz(&[("t.csv.gz", table)]), declared);
    assert!(matches!(error, Error::Format(FormatError::Packed { .. })), "{error}");
}

#[test]
fn with_a_declared_header_nothing_depends_on_the_first_record() {
    let names = "delimiter = ','\nheader = ['a', 'b']";
    for (first, cells) in [
        ("1,2", "1"),
        ("x;y", "x;y"),
        ("PAR1,2", "PAR1"),
        ("PK\u{3}\u{4},2", "PK\u{3}\u{4}"),
        ("same,same", "same"),
        ("a,b", "a"),
    ] {
        let found = texts("people.data", format!("{first}\nu,v\n"), names, "a");
        assert_eq!(found, [Some(cells.to_owned()), Some("u".to_owned())], "{first}");
    }
    // The same holds for records to learn from: no first record makes another format of the file.
    for first in ["\0\0\u{8}\u{1}x", "PAR1", "PK\u{3}\u{4}"] {
        let train = read("people.data", format!("{first},,,,,>50K\n,,,,,>50K\n"), SCHEMA).unwrap().train;
        assert_eq!(train.len(), 2, "{first}");
    }
    for nothing in ["", "\n\n"] {
        assert!(texts("people.data", nothing, names, "a").is_empty());
    }
}

#[test]
fn declared_names_need_a_declared_delimiter_whatever_the_file_holds() {
    for content in ["1,2\n", "1;2\n", ""] {
        let error = refused("a.csv", content, "header = ['a', 'b']");
        assert!(matches!(error, Error::Format(FormatError::NoDelimiter { .. })), "{content:?}: {error}");
    }
    // The name of the file declares tabs.
    assert_eq!(texts("a.tsv", "1\t2\n", "header = ['a', 'b']", "b"), [Some("2".to_owned())]);
}

#[test]
fn a_declared_decimal_comma_is_read_and_a_point_is_no_number_then() {
    let content = "q;n\nyes;2,5\nno;-1e3\nno;1.5\nno;1,5,2\nno;-9,0\n";
    let settings = "decimal = ','\nmissing = ['-9']";
    let folder = Folder::new().with("t.csv", content);
    let table = Table::open_as(folder.path().join("t.csv"), &layout(settings)).unwrap();
    assert_eq!(table.all().numbers("n").unwrap(), [Some(2.5), Some(-1000.0), None, None, None]);
    assert_eq!(table.select(&"n > 2".parse().unwrap()).unwrap().count().unwrap(), 1);
    let plain = Table::open(folder.path().join("t.csv")).unwrap();
    assert_eq!(plain.all().numbers("n").unwrap()[..3], [None, Some(-1000.0), Some(1.5)]);
    // The first row is looked at in the same way.
    let error = refused("t.csv", "2,5;a\n1,5;b\n", "decimal = ','");
    assert!(matches!(error, Error::Format(FormatError::NoHeader { .. })), "{error}");
    let schema = format!(
        "[file]\n{settings}\n[[column]]\nname = 'n'\nbounds = [0, 5]\n[[column]]\nname = 'q'\nboolean = true"
    );
    let fit = Fit::new(folder.path().join("t.csv"), &Schema::parse(&schema).unwrap(), false).unwrap();
    assert_eq!(fit.misfits.iter().map(|misfit| misfit.record).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn a_declared_encoding_decides_how_letters_are_read() {
    let content = b"gr\xf6\xdfe,t\n1,Z\xfcrich\n2,\x80 5\n3,plain\n";
    let found = |settings: &str| texts("t.csv", content, settings, "t");
    let cell = |text: &str| Some(text.to_owned());
    assert_eq!(found("encoding = 'latin-1'"), [cell("Zürich"), cell("€ 5"), cell("plain")]);
    assert_eq!(found("encoding = 'windows-1252'"), found("encoding = 'latin-1'"));
    // Without it, nothing is guessed from the bytes of a record.
    assert_eq!(found(""), [cell("Z\u{fffd}rich"), cell("\u{fffd} 5"), cell("plain")]);
    assert_eq!(texts("t.csv", content, "encoding = 'latin-1'", "größe")[0], cell("1"));
    let text = "[[column]]\nname = 'q'\nboolean = true\n[file]\nencoding = 'utf-16'";
    assert!(Schema::parse(text).is_err());
}

#[test]
fn rows_with_more_cells_than_columns_are_counted() {
    let folder = Folder::new().with("t.csv", "q,r\nyes,1\nyes,1,2\nno\nno,1,\n");
    let schema = Schema::parse("ignore = ['r']\n[[column]]\nname = 'q'\nboolean = true").unwrap();
    let fit = Fit::new(folder.path().join("t.csv"), &schema, false).unwrap();
    assert_eq!((fit.records, fit.long), (4, vec![2, 4]));
}

#[test]
fn a_declared_delimiter_is_used_as_it_is_declared() {
    assert_eq!(texts("a.csv", "a|b\n1|2,3\n", "delimiter = '|'", "b"), [Some("2,3".to_owned())]);
    assert_eq!(texts("a.csv", "a\tb\n1\t\"2\n", "delimiter = 'tab'", "b"), [Some("\"2".to_owned())]);
    assert_eq!(texts("a.csv", "a\tb\n1\t\"2\"\n", "quotes = true", "b"), [Some("2".to_owned())]);
    assert!(matches!(
        refused("a.csv", "a,b\n1,2\n", "delimiter = ';'"),
        Error::Format(FormatError::Separator { found: "commas", expected: "semicolons", .. })
    ));
    for wrong in ["''", "'ab'", "'\"'", "\"\\n\"", "'é'"] {
        let text = format!("[[column]]\nname = 'q'\nboolean = true\n[file]\ndelimiter = {wrong}");
        assert!(Schema::parse(&text).is_err(), "{wrong}");
    }
}

#[test]
fn declared_marks_are_missing_cells_for_every_use() {
    let content = "n,t\n-999,?\n1,a\n-999.0, ? \n";
    let settings = "missing = ['?', '-999']";
    assert_eq!(texts("a.csv", content, settings, "t"), [None, Some("a".to_owned()), None]);
    let folder = Folder::new().with("a.csv", content);
    let table = Table::open_as(folder.path().join("a.csv"), &layout(settings)).unwrap();
    assert_eq!(table.all().numbers("n").unwrap(), [None, Some(1.0), None]);
    assert_eq!(table.select(&"t is missing".parse().unwrap()).unwrap().count().unwrap(), 2);
    let plain = Table::open(folder.path().join("a.csv")).unwrap();
    assert_eq!(plain.select(&"t is missing".parse().unwrap()).unwrap().count().unwrap(), 0);
}

#[test]
fn the_only_file_of_an_archive_is_a_table() {
    let csv = b"a,b\n1,2\n".to_vec();
    for (name, inside, content) in
        [("t.zip", "x/table.csv", csv.clone()), ("t.csv.zip", "t.tsv", b"a\tb\n1\t2\n".to_vec())]
    {
        let archive =
            npz(&[("__MACOSX/table.csv", csv.clone()), (inside, content), (".hidden", csv.clone())]);
        assert_eq!(texts(name, archive, "", "b"), [Some("2".to_owned())], "{inside}");
    }
    let found = |content: Vec<u8>| match refused("t.zip", content, "") {
        Error::Format(FormatError::NoTable { found, .. }) => found,
        other => panic!("{other}"),
    };
    assert_eq!(
        found(npz(&[("a.csv", csv.clone()), ("b.csv", csv.clone())])),
        "a zip archive of several files"
    );
    assert_eq!(found(npz(&[("__MACOSX/a.csv", csv.clone())])), "an empty zip archive");
    assert_eq!(found(csv), "named .zip and not a zip archive");
}

#[test]
fn a_damaged_archive_is_refused() {
    let content: Vec<u8> =
        (0..2000).flat_map(|row: u32| format!("{row},{}\n", row * row).into_bytes()).collect();
    let archive = npz(&[("t.csv", [b"a,b\n".to_vec(), content].concat())]);
    // The bytes after the name of the file, and the length in the directory at the end.
    let start = archive.windows(5).position(|window| window == b"t.csv").unwrap() + 5;
    let directory = archive.windows(4).rposition(|window| window == b"PK\x01\x02").unwrap();
    for (place, change) in
        [(start + 40, 0x55), (directory + 24, 1), (directory + 25, 0xff), (directory + 16, 1)]
    {
        let mut damaged = archive.clone();
        damaged[place] ^= change;
        let error = refused("t.zip", damaged, "");
        assert!(matches!(error, Error::Format(FormatError::Packed { .. })), "{place}: {error}");
    }
}

#[test]
fn a_schema_with_contradicting_columns_is_refused() {
    for (wrong, said) in [
        ("boolean = true\nbounds = [0, 1]", "several of bounds, categories, boolean, date and text"),
        ("boolean = true\ntext = { hashed = 3 }", "several of"),
        ("date = { from = '2024-01-02', to = '2024-01-01' }", "the earlier day first"),
        ("text = {}", "text without features, expected hashed or embedding"),
        ("text = { hashed = 1, vocabulary = 'x' }", "expected hashed or embedding"),
        ("text = { hashed = 0 }", "1 to 65536 features"),
        ("categories = ['a']\naliases = { b = 'c' }", "alias"),
        ("categories = ['a', 'b']\naliases = { b = 'a' }", "alias"),
        ("bounds = [0, 1]\naliases = { b = 'a' }", "alias"),
    ] {
        let error = Schema::parse(&format!("[[column]]\nname = 'a'\n{wrong}")).unwrap_err().to_string();
        assert!(error.contains(said), "{wrong}: {error}");
    }
    let twice = "[file]\nheader = ['a', 'a']\n[[column]]\nname = 'a'\nboolean = true";
    assert!(Schema::parse(twice).unwrap_err().to_string().contains("a name twice"));
    let date = "[[column]]\nname = 'a'\ndate = { from = 2024-01-01, to = '2024-02-30' }";
    assert!(Schema::parse(date).is_err());
    let plain =
        Schema::parse("[[column]]\nname = 'a'\ndate = { from = 2024-01-01, to = 2024-02-29 }").unwrap();
    assert_eq!(Schema::parse(&plain.to_toml().unwrap()).unwrap(), plain);
}

#[test]
fn a_public_embedding_gives_texts_their_numbers_and_is_pinned() {
    let schema = |vectors: &str| {
        format!(
            "[label]\ncolumn = 'y'\nclasses = ['0', '1']\n[[column]]\nname = 't'\nunknown = true\ntext = {{ embedding = {vectors:?} }}"
        )
    };
    let folder = Folder::new().with("t.csv", "t,y\ngood film,1\nBAD film,0\n,0\nxyz,1\n");
    let vectors = folder.put("vectors.txt.gz", gzip(b"good 1 0\nbad -1 0\nfilm 0 1\n"));
    let settings = Schema::parse(&schema(vectors.to_str().unwrap())).unwrap();
    let path = folder.path().join("t.csv");
    let data = open(&path, &Options { schema: Some(settings.clone()), ..Options::default() }).unwrap();
    let rows = rows(&data.train);
    assert_eq!(data.train.shape(), [3]);
    assert!(rows[0][0] > 0.0 && rows[1][0] < 0.0, "{rows:?}");
    assert_eq!(rows[2..], [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]);
    let mut both = settings.clone();
    text_of(&mut both).hashed = Some(4);
    let data = open(&path, &Options { schema: Some(both), ..Options::default() }).unwrap();
    assert_eq!((data.train.shape(), data.train.len()), (&[7][..], 4));
    // Vectors that change after a run recorded them are refused.
    let mut pinned = settings;
    let text = text_of(&mut pinned);
    (text.dimension, text.digest) = (Some(2), Some("0".repeat(64)));
    let refused = open(&path, &Options { schema: Some(pinned), ..Options::default() }).unwrap_err();
    assert!(matches!(refused, Error::Setting { name: "the embedding", .. }), "{refused}");
}

#[test]
fn names_of_classes_and_users_may_be_texts_in_arrays() {
    let wide = |words: &[&str]| -> Vec<u8> {
        let padded = words.iter().flat_map(|word| word.chars().chain(std::iter::repeat('\0')).take(4));
        padded.flat_map(|character| (character as u32).to_le_bytes()).collect()
    };
    let narrow = |words: &[&str]| -> Vec<u8> {
        words.iter().flat_map(|word| word.bytes().chain(std::iter::repeat(0)).take(4)).collect()
    };
    let words = ["cat", "dück", "owl", "cat"];
    let classes = ["cat", "dück", "dog"].map(str::to_owned).to_vec();
    let folder = Folder::new()
        .with("x.npy", npy("|u1", "(4, 1)", &[1, 2, 3, 4]))
        .with("y.npy", npy("<U4", "(4,)", &wide(&words)))
        .with("users.npy", npy("|S4", "(4,)", &narrow(&["ann", "bob", "bob", "ann"])));
    let options = Options { classes: Some(classes), ..Options::default() };
    let train = open(folder.path(), &options).unwrap().train;
    assert_eq!((labels(&train), train.user_count()), (vec![0, 1, 0], Some(2)));
    assert!(matches!(
        open(folder.path(), &Options::default()),
        Err(Error::Format(FormatError::NoClasses { .. }))
    ));
    for wrong in ["<U0", "<U1025", "|S", "<U-1", ">U4", "|O"] {
        let folder = Folder::new()
            .with("x.npy", npy("|u1", "(4, 1)", &[1, 2, 3, 4]))
            .with("y.npy", npy(wrong, "(4,)", &wide(&words)));
        assert!(
            matches!(open(folder.path(), &options), Err(Error::Format(FormatError::Broken { .. }))),
            "{wrong}"
        );
    }
}

#[test]
fn names_of_users_in_arrays_that_are_no_text_stay_different() {
    let bytes = |words: &[[u8; 2]]| words.concat();
    let narrow = bytes(&[*b"\xfcm", *b"\xf6m", *b"\xe4m", *b"\xfcm"]);
    // Code points beyond Unicode.
    let wide: Vec<u8> = [0x11_0000_u32, 0x11_0001, 0xd800, 0x11_0000].map(u32::to_le_bytes).concat();
    for (kind, users) in [("|S2", narrow), ("<U1", wide)] {
        let folder = Folder::new()
            .with("x.npy", npy("|u1", "(4, 1)", &[1, 2, 3, 4]))
            .with("y.npy", npy("|u1", "(4,)", &[0, 1, 0, 1]))
            .with("users.npy", npy(kind, "(4,)", &users));
        let options = Options { classes: Some(vec!["a".into(), "b".into()]), ..Options::default() };
        assert_eq!(open(folder.path(), &options).unwrap().train.user_count(), Some(3), "{kind}");
    }
}

/// Else all records without a user would be those of one user.
#[test]
fn a_mark_of_a_missing_user_is_read_in_the_declared_encoding() {
    let folder = Folder::new().with("t.csv", b"who,x\n\x96,1\n\x96,2\nann,3\n");
    let settings = layout("encoding = 'latin-1'\nmissing = ['–']");
    let table = Table::open_as(folder.path().join("t.csv"), &settings).unwrap();
    let limited = table.all().at_most_per_user("who", 1).unwrap();
    assert_eq!(limited.numbers("x").unwrap(), [Some(3.0)]);
}

#[test]
fn an_archive_of_the_data_is_the_data() {
    let folder = Folder::new().with("people.data", "1,a\n");
    let archive = |name: &str, member: &str| folder.put(name, npz(&[(member, b"1,a\n".to_vec())]));
    let data = folder.path().join("people.data");
    for path in [
        archive("people.data.zip", "people.data"),
        archive("people.zip", "people.data"),
        archive("other.zip", "folder/people.data"),
        archive("packed.zip", "people.data.gz"),
    ] {
        assert!(shares_records(&path, &data) && shares_records(&data, &path), "{}", path.display());
        assert_eq!(name_of(&path), name_of(&data), "{}", path.display());
    }
    let other = archive("test.zip", "test.data");
    assert!(!shares_records(&other, &data));
}

/// A table of six columns in many layouts, and the schema of each.
fn layouts(table: &[[String; 6]]) -> Vec<(&'static str, Vec<u8>, String)> {
    let names = ["age", "work", "day", "smoker", "note", "income"];
    let is_declared = |line: &&str| line.contains("header =") || line.contains("delimiter =");
    let without = SCHEMA.lines().filter(|line| !is_declared(line)).collect::<Vec<_>>().join("\n");
    let written = |separator: &str, header: bool| {
        let head = header.then(|| names.join(separator));
        let lines = head.into_iter().chain(table.iter().map(|row| row.join(separator)));
        lines.map(|line| line + "\n").collect::<String>().into_bytes()
    };
    let declared = |separator: &str| SCHEMA.replace("delimiter = ','", &format!("delimiter = '{separator}'"));
    vec![
        ("t.csv", written(",", true), without.clone()),
        ("t.csv", written(";", true), without.clone()),
        ("t.txt", written("\t", true), without.clone()),
        ("t.tsv", written("\t", true), without.clone()),
        ("t.csv.gz", gzip(&written(",", true)), without.clone()),
        ("t.zip", npz(&[("t.csv", written(";", true))]), without.clone()),
        ("t.data", written(",", false), SCHEMA.to_owned()),
        ("t.data", written("|", false), declared("|")),
        ("t.data.gz", gzip(&written(";", false)), declared(";")),
        ("t.zip", npz(&[("t.tsv", written("\t", false))]), SCHEMA.replace("delimiter = ','", "")),
        ("t.parquet", in_parquet(&names, table), without),
    ]
}

fn in_parquet(names: &[&str], table: &[[String; 6]]) -> Vec<u8> {
    let fields: Vec<String> = names.iter().map(|name| format!("optional binary {name} (UTF8);")).collect();
    // Numbers in Parquet are declared: the schema reads the age as one.
    let fields = fields.concat().replace("optional binary age (UTF8);", "optional double age;");
    let schema = Arc::new(parse_message_type(&format!("message people {{ {fields} }}")).unwrap());
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for column in 0..names.len() {
        let cells: Vec<&str> = table.iter().map(|row| row[column].trim()).collect();
        let mut next = group.next_column().unwrap().unwrap();
        if column == 0 {
            let numbers: Vec<Option<f64>> = cells.iter().map(|cell| cell.parse().ok()).collect();
            let levels: Vec<i16> = numbers.iter().map(|number| i16::from(number.is_some())).collect();
            let values: Vec<f64> = numbers.into_iter().flatten().collect();
            next.typed::<parquet::data_type::DoubleType>().write_batch(&values, Some(&levels), None).unwrap();
        } else {
            let levels: Vec<i16> = cells.iter().map(|cell| i16::from(!cell.is_empty())).collect();
            let values: Vec<ByteArray> =
                cells.iter().filter(|cell| !cell.is_empty()).map(|cell| ByteArray::from(*cell)).collect();
            next.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None).unwrap();
        }
        next.close().unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap()
}

fn row() -> impl Strategy<Value = [String; 6]> {
    let age = prop_oneof![
        Just("?".to_owned()),
        Just("-999".to_owned()),
        (10..70_u32).prop_map(|age| age.to_string())
    ];
    let work = prop::sample::select(vec!["state", "State-gov", "private", "?", "other", " private "]);
    let day = prop::sample::select(vec!["2024-01-01", "2024-01-15", "2023-12-31", "?", "soon", "2024/01/03"]);
    let smoker = prop::sample::select(vec!["yes", "no", "TRUE", "0", "1", "?", "maybe"]);
    let note = prop::sample::select(vec!["a b", "b a", "good film", "?", "Good", "x-y z"]);
    let income = prop::sample::select(vec!["<=50K", ">50K.", ">50K", "<=50K.", "none"]);
    (age, work, day, smoker, note, income).prop_map(|(age, work, day, smoker, note, income)| {
        [age, work.into(), day.into(), smoker.into(), note.into(), income.into()]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_same_table_in_every_format_has_the_same_records(table in prop::collection::vec(row(), 1..12)) {
        let mut all = layouts(&table).into_iter().map(|(name, content, schema)| {
            let train = read(name, content, &schema).unwrap_or_else(|error| panic!("{name}: {error}")).train;
            (name, rows(&train), labels(&train))
        });
        let (_, first, classes) = all.next().unwrap();
        for (name, rows, labels) in all {
            prop_assert_eq!(&rows, &first, "{}", name);
            prop_assert_eq!(&labels, &classes, "{}", name);
        }
    }

    #[test]
    fn any_bytes_named_zip_are_a_table_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let folder = Folder::new().with("t.zip", [b"PK\x03\x04".to_vec(), bytes].concat());
        let _ = Table::open(folder.path().join("t.zip"));
    }
}

#[test]
fn a_column_that_the_declared_header_lacks_is_refused_by_its_name_alone() {
    let text = SCHEMA.replace("'smoker', 'note', 'income']", "'smokes', 'note', 'income']");
    let error = read("t.data", "secret,1,2,3,4,5\n", &text).unwrap_err();
    assert!(matches!(&error, Error::Table(TableError::NoColumn { name, .. }) if name == "smoker"), "{error}");
    assert!(!error.to_string().contains("secret"));
}
