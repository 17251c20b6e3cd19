//! Tables from Parquet: what its types become, and that damage is an error and not a panic.
#![allow(missing_docs, clippy::unwrap_used)]

use std::sync::Arc;

use crate::scratch::Scratch;
use parquet::{
    basic::{Compression, GzipLevel, ZstdLevel},
    data_type::{
        BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
        FloatType, Int32Type, Int64Type, Int96, Int96Type,
    },
    file::{
        properties::{EnabledStatistics, WriterProperties},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::parser::parse_message_type,
};
use proptest::prelude::*;
use quell::{
    Error, Hint,
    data::{self, FormatError, Kind, Options, Predicate, Schema, Table, TableError},
    ledger::InMemory,
    privacy::{
        Neighbors,
        ledger::{Budget, Composition, Ledger, Terms, Unit},
        units::{Delta, Epsilon},
    },
    statistics::{Answer, Axis, Grouped, Question, Statistic},
};

type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

/// A file of row groups, each written by a function of its number.
fn written(
    schema: &str,
    groups: usize,
    compression: Compression,
    write: impl Fn(usize, &mut Group<'_>),
) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(&format!("message table {{ {schema} }}")).unwrap());
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    for number in 0..groups {
        let mut group = writer.next_row_group().unwrap();
        write(number, &mut group);
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

/// One column of which every value is there.
fn column<T: DataType>(group: &mut Group<'_>, values: &[T::T]) {
    levelled::<T>(group, values, None, None);
}

fn levelled<T: DataType>(
    group: &mut Group<'_>,
    values: &[T::T],
    levels: Option<&[i16]>,
    repeated: Option<&[i16]>,
) {
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<T>().write_batch(values, levels, repeated).unwrap();
    column.close().unwrap();
}

/// A file of one required column.
fn of<T: DataType>(declaration: &str, values: &[T::T]) -> Scratch {
    let bytes = written(&format!("required {declaration};"), 1, Compression::UNCOMPRESSED, |_, group| {
        column::<T>(group, values);
    });
    Scratch::new("table.parquet", bytes)
}

fn numbers<T: DataType>(declaration: &str, values: &[T::T]) -> Vec<Option<f64>> {
    let file = of::<T>(declaration, values);
    assert_eq!(file.table().columns()[0].kind, Kind::Number);
    file.table().all().numbers("x").unwrap()
}

fn texts<T: DataType>(declaration: &str, values: &[T::T]) -> Vec<Option<String>> {
    of::<T>(declaration, values).table().all().texts("x").unwrap()
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

fn fixed(bytes: &[u8]) -> FixedLenByteArray {
    FixedLenByteArray::from(bytes.to_vec())
}

/// Two groups of three people; the age of the second in each is missing.
fn people(compression: Compression) -> Vec<u8> {
    let schema = "required binary name (UTF8); optional int64 age; required group home { optional binary city (STRING); }
        optional group tags (LIST) { repeated group list { required int32 element; } } required boolean smoker;";
    written(schema, 2, compression, |number, group| {
        let named = |names: [&str; 3]| names.map(|name| ByteArray::from(format!("{name}{number}").as_str()));
        column::<ByteArrayType>(group, &named(["Ada", "Bob", "Eve"]));
        levelled::<Int64Type>(group, &[36, 17], Some(&[1, 0, 1]), None);
        levelled::<ByteArrayType>(
            group,
            &[ByteArray::from("Bern"), ByteArray::from("")],
            Some(&[1, 1, 0]),
            None,
        );
        levelled::<Int32Type>(group, &[1, 2, 3, 4], Some(&[2, 2, 2, 2]), Some(&[0, 1, 0, 0]));
        column::<BoolType>(group, &[true, false, true]);
    })
}

#[test]
fn numbers_are_numbers() {
    assert_eq!(numbers::<Int32Type>("int32 x", &[-1, i32::MAX]), [Some(-1.0), Some(2_147_483_647.0)]);
    assert_eq!(numbers::<Int32Type>("int32 x (UINT_32)", &[-1, 7]), [Some(4_294_967_295.0), Some(7.0)]);
    assert_eq!(numbers::<Int32Type>("int32 x (INTEGER(8, true))", &[-3]), [Some(-3.0)]);
    assert_eq!(numbers::<Int64Type>("int64 x (UINT_64)", &[-1]), [Some(18_446_744_073_709_551_615.0)]);
    assert_eq!(numbers::<FloatType>("float x", &[1.5, f32::NAN, f32::INFINITY]), [Some(1.5), None, None]);
    assert_eq!(numbers::<DoubleType>("double x", &[0.1, f64::NAN, 1e308]), [Some(0.1), None, Some(1e308)]);
    assert_eq!(numbers::<Int32Type>("int32 x (DECIMAL(9, 2))", &[-125]), [Some(-1.25)]);
    assert_eq!(numbers::<Int64Type>("int64 x (DECIMAL(18, 3))", &[1]), [Some(0.001)]);
    let minus_one = numbers::<FixedLenByteArrayType>(
        "fixed_len_byte_array(16) x (DECIMAL(38, 1))",
        &[fixed(&[0xff; 16])],
    );
    assert_eq!(minus_one, [Some(-0.1)]);
    let two = [ByteArray::from(vec![1_u8, 0]), ByteArray::from(vec![0x80_u8])];
    assert_eq!(numbers::<ByteArrayType>("binary x (DECIMAL(20, 0))", &two), [Some(256.0), Some(-128.0)]);
    let halves = [[0x00, 0x3c], [0x00, 0xc1], [0x01, 0x00], [0x00, 0x7c]].map(|bytes| fixed(&bytes));
    assert_eq!(
        numbers::<FixedLenByteArrayType>("fixed_len_byte_array(2) x (FLOAT16)", &halves),
        [Some(1.0), Some(-2.5), Some(2_f64.powi(-24)), None]
    );
}

#[test]
fn strings_dates_and_times_are_text() {
    let bytes = [ByteArray::from("Bern"), ByteArray::from(b"Z\xfcrich".to_vec()), ByteArray::from("")];
    assert_eq!(texts::<ByteArrayType>("binary x (STRING)", &bytes), some(&["Bern", "Z\u{fffd}rich", ""]));
    assert_eq!(texts::<ByteArrayType>("binary x", &bytes[..1]), some(&["Bern"]));
    assert_eq!(texts::<Int32Type>("int32 x (DATE)", &[0, 19_782]), some(&["1970-01-01", "2024-02-29"]));
    assert_eq!(texts::<Int32Type>("int32 x (DATE)", &[i32::MAX]), [None]);
    assert_eq!(texts::<Int32Type>("int32 x (TIME_MILLIS)", &[45_296_500]), some(&["12:34:56.5"]));
    assert_eq!(
        texts::<Int64Type>("int64 x (TIMESTAMP(MICROS, true))", &[-1]),
        some(&["1969-12-31 23:59:59.999999"])
    );
    assert_eq!(
        texts::<Int64Type>("int64 x (TIMESTAMP_MILLIS)", &[1_709_251_199_000]),
        some(&["2024-02-29 23:59:59"])
    );
    assert_eq!(
        texts::<Int64Type>("int64 x (TIMESTAMP(NANOS, false))", &[1]),
        some(&["1970-01-01 00:00:00.000000001"])
    );
    let mut moment = Int96::new();
    moment.set_data(1_500_000_000, 0, 2_440_589);
    assert_eq!(texts::<Int96Type>("int96 x", &[moment]), some(&["1970-01-02 00:00:01.5"]));
    let uuid = fixed(&(0..16).collect::<Vec<u8>>());
    assert_eq!(
        texts::<FixedLenByteArrayType>("fixed_len_byte_array(16) x (UUID)", &[uuid]),
        some(&["00010203-0405-0607-0809-0a0b0c0d0e0f"])
    );
}

#[test]
fn every_compression_in_use_is_read() {
    let gzip = Compression::GZIP(GzipLevel::default());
    let zstd = Compression::ZSTD(ZstdLevel::default());
    for compression in
        [Compression::UNCOMPRESSED, Compression::SNAPPY, gzip, zstd, Compression::LZ4, Compression::LZ4_RAW]
    {
        let file = Scratch::new("people.parquet", people(compression));
        let names = file.table().all().texts("name").unwrap();
        assert_eq!(names, some(&["Ada0", "Bob0", "Eve0", "Ada1", "Bob1", "Eve1"]), "{compression}");
    }
}

#[test]
fn rows_are_selected_across_row_groups() {
    // Parquet by its bytes, whatever it is called.
    let file = Scratch::new("people.data", people(Compression::SNAPPY));
    let table = file.table();
    let kinds: Vec<_> = table.columns().iter().map(|column| (column.name.as_str(), column.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("name", Kind::Text),
            ("age", Kind::Number),
            ("home.city", Kind::Text),
            ("tags.list.element", Kind::Unreadable),
            ("smoker", Kind::Boolean)
        ]
    );
    let selected =
        |text: &str| table.select(&text.parse::<Predicate>().unwrap()).unwrap().texts("name").unwrap();
    assert_eq!(selected("age >= 18"), some(&["Ada0", "Ada1"]));
    assert_eq!(selected("age is missing"), some(&["Bob0", "Bob1"]));
    assert_eq!(selected("home.city = 'Bern' and name > 'Ada0'"), some(&["Ada1"]));
    assert_eq!(
        selected("home.city = '' or home.city is missing and name = 'Eve1'"),
        some(&["Bob0", "Bob1", "Eve1"])
    );
    assert_eq!(selected("smoker = 1 and smoker = 'true' and age < 18"), some(&["Eve0", "Eve1"]));
    assert_eq!(selected("smoker is missing"), []);
    assert_eq!(table.all().numbers("smoker").unwrap()[..2], [Some(1.0), Some(0.0)]);
    assert_eq!(table.all().count().unwrap(), 6);
}

#[test]
fn a_use_against_the_schema_is_refused_by_the_schema_alone() {
    let file = Scratch::new("people.parquet", people(Compression::SNAPPY));
    let table = file.table();
    let refused = |text: &str| table.select(&text.parse::<Predicate>().unwrap()).unwrap_err();
    let error = refused("smoker = 1 and name >= 5");
    assert_eq!(
        error.to_string(),
        "column \"name\" contains text, expected numbers\n  smoker = 1 and name >= 5\n                 ^"
    );
    assert_eq!(error.hint(), Some(Hint::CompareWith { kind: Kind::Text }));
    assert!(matches!(refused("age in ('x')"), Error::Table(TableError::WrongUse { kind: Kind::Number, .. })));
    assert!(matches!(
        refused("tags.list.element is missing"),
        Error::Table(TableError::WrongUse { kind: Kind::Unreadable, .. })
    ));
    assert!(matches!(
        table.all().numbers("name"),
        Err(Error::Table(TableError::WrongUse { place: None, .. }))
    ));
    assert!(matches!(table.all().texts("age"), Err(Error::Table(TableError::WrongUse { .. }))));
    assert_eq!(refused("home.citi = 'x'").hint(), Some(Hint::DidYouMean { name: "home.city".into() }));
}

#[test]
fn many_rows_are_read_in_batches() {
    let values: Vec<i64> = (0..100_001).collect();
    let bytes =
        written("required int64 x;", 3, Compression::SNAPPY, |_, group| column::<Int64Type>(group, &values));
    let file = Scratch::new("many.parquet", bytes);
    let table = file.table();
    assert_eq!(table.select(&"x >= 50000".parse().unwrap()).unwrap().count().unwrap(), 3 * 50_001);
    let read = table.all().numbers("x").unwrap();
    assert!(read.into_iter().eq((0..3).flat_map(|_| values.iter().map(|value| Some(*value as f64)))));
}

#[test]
fn a_table_without_rows_has_columns() {
    let file = Scratch::new("none.parquet", written("required int64 x;", 0, Compression::SNAPPY, |_, _| ()));
    assert_eq!(file.table().all().count().unwrap(), 0);
    assert!(file.table().all().numbers("x").unwrap().is_empty());
}

#[test]
fn tables_written_by_other_libraries_are_read() {
    for library in ["pyarrow", "polars", "duckdb"] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/tables");
        let table = Table::open(format!("{folder}/{library}.parquet")).unwrap();
        let all = table.all();
        let texts = |column: &str| {
            all.texts(column).unwrap().into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>()
        };
        assert_eq!(texts("name"), ["Ada", "Bob", "", "Zoë"], "{library}");
        assert_eq!(all.numbers("age").unwrap(), [Some(36.0), None, Some(17.0), Some(41.0)], "{library}");
        assert_eq!(all.numbers("income").unwrap(), [Some(5000.5), None, None, Some(1e9)], "{library}");
        assert_eq!(all.numbers("price").unwrap(), [1.25, 0.0, -0.01, 1_234_567.89].map(Some), "{library}");
        assert_eq!(texts("born"), ["1987-12-10", "", "2008-02-29", "1899-03-01"], "{library}");
        let seen = ["2024-02-29 23:59:59.5", "", "1969-12-31 23:00:00", "2000-01-01 00:00:00"];
        assert_eq!(texts("seen"), seen, "{library}");
        assert_eq!(texts("smoker"), ["true", "false", "", "true"], "{library}");
        assert_eq!(texts("home.city"), ["Bern", "", "", "Basel"], "{library}");
        assert_eq!(table.columns().last().unwrap().kind, Kind::Unreadable, "{library}");
        let selected =
            table.select(&"born < '2000' and (age > 40 or home.city = 'Bern')".parse().unwrap()).unwrap();
        assert_eq!(selected.numbers("age").unwrap(), [Some(36.0), Some(41.0)], "{library}");
    }
}

/// How many users records have that are told apart by a column `x`.
fn users<T: DataType>(declaration: &str, values: &[T::T]) -> Result<usize, Error> {
    let schema = format!("required {declaration}; required boolean z; required binary y (UTF8);");
    let bytes = written(&schema, 1, Compression::SNAPPY, |_, group| {
        column::<T>(group, values);
        column::<BoolType>(group, &vec![true; values.len()]);
        column::<ByteArrayType>(group, &vec![ByteArray::from("a"); values.len()]);
    });
    let file = Scratch::new("people.parquet", bytes);
    let schema = Schema::parse(
        "user = 'x'\n[label]\ncolumn = 'y'\nclasses = ['a', 'b']\n[[column]]\nname = 'z'\nbounds = [0, 1]\n",
    );
    let options = Options { schema: Some(schema.unwrap()), ..Options::default() };
    data::open(file.path(), &options).map(|data| data.train.user_count().unwrap())
}

#[test]
fn as_many_people_are_as_many_users_whatever_they_are_called() {
    for first in [0, -3, 1 << 53, 1_800_000_000_000_000_000, i64::MAX - 39] {
        let ids: Vec<i64> = (0..40).map(|id| first + id).collect();
        for declaration in ["int64 x", "int64 x (UINT_64)"] {
            assert_eq!(users::<Int64Type>(declaration, &ids).unwrap(), 40, "{declaration} from {first}");
        }
    }
    assert_eq!(users::<Int64Type>("int64 x (UINT_64)", &[-1, -2, -3, i64::MIN]).unwrap(), 4);
    assert_eq!(users::<Int32Type>("int32 x (UINT_32)", &[-1, -2, 1]).unwrap(), 3);
    let names = [&b"M\xfcller"[..], b"M\xf6ller", b"M\xe4ller", b"M\xef\xbf\xbdller", b"\xff", b"\xfe"];
    let names = names.map(|name| ByteArray::from(name.to_vec()));
    assert_eq!(users::<ByteArrayType>("binary x (UTF8)", &names).unwrap(), names.len());
    assert_eq!(users::<ByteArrayType>("binary x", &names).unwrap(), names.len());
    // Who has no name is nobody, as in every format.
    let some = ["ada", "", "bob", " ", "ada"].map(ByteArray::from);
    assert_eq!(users::<ByteArrayType>("binary x (UTF8)", &some).unwrap(), 2);
    let uuids = [1, 2, 3].map(|last| fixed(&[[0; 15].as_slice(), &[last]].concat()));
    assert_eq!(users::<FixedLenByteArrayType>("fixed_len_byte_array(16) x (UUID)", &uuids).unwrap(), 3);
    assert_eq!(users::<BoolType>("boolean x", &[true, false, true]).unwrap(), 2);
}

#[test]
fn fractions_are_not_taken_for_users() {
    let refusals = [
        users::<DoubleType>("double x", &[7.25, 0.0, -0.0]),
        users::<FloatType>("float x", &[7.25]),
        users::<Int64Type>("int64 x (DECIMAL(18, 2))", &[725]),
        users::<ByteArrayType>("binary x (DECIMAL(38, 0))", &[ByteArray::from(vec![7_u8, 25])]),
        users::<FixedLenByteArrayType>("fixed_len_byte_array(2) x (FLOAT16)", &[fixed(&[7, 25])]),
    ];
    for refused in refusals {
        let error = refused.unwrap_err();
        let said = format!("{error} {error:?} {}", error.hint().unwrap());
        assert!(said.contains("\"x\"") && said.contains("users") && !said.contains('7'), "{said}");
    }
}

/// Integers have one spelling as keys. Another one would be paid for, and count nothing.
#[test]
fn integers_are_counted_by_their_digits_and_other_keys_are_refused_before_payment() {
    let file = of::<Int64Type>("int64 x", &[[30; 60], [-4; 60], [31; 60]].concat());
    let table = file.table();
    let terms = Terms {
        dataset: "people".into(),
        unit: Unit::Example,
        neighbors: Neighbors::AddRemove,
        budget: Budget { epsilon: Some(Epsilon::new(30.0).unwrap()), delta: Delta::new(1e-6).unwrap() },
        composition: Composition::Addition,
    };
    let mut ledger = Ledger::create(InMemory::new("people"), terms).unwrap();
    let mut ask = |keys: &[&str], is_grouped: bool| {
        let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
        let statistic = if is_grouped {
            Statistic::Grouped(Grouped::Count { by: vec![Axis::keys("x", keys)] })
        } else {
            Statistic::Histogram { column: "x".into(), keys: Some(keys) }
        };
        Question::new(statistic, 10.0).ask(&mut ledger, &table.all())
    };
    for is_grouped in [false, true] {
        let Answer::Bins(bins) = ask(&["30", "-4", "7"], is_grouped).unwrap() else { panic!("no bins") };
        for ((_, release), truth) in bins.iter().zip([60.0, 60.0, 0.0]) {
            assert!((release.value - truth).abs() < 25.0, "{bins:?}");
        }
        for wrong in ["30.0", "abc", "+30", "030", " 30"] {
            let refused = ask(&["31", wrong], is_grouped);
            assert!(matches!(refused, Err(Error::Setting { name: "a key of integers", .. })), "{wrong}");
        }
    }
}

#[test]
fn a_long_cell_is_no_error() {
    let count = |long: usize, quoted: bool| {
        let schema = Arc::new(parse_message_type("message table { required binary k (UTF8); }").unwrap());
        let properties =
            WriterProperties::builder().set_dictionary_enabled(false).set_statistics_truncate_length(None);
        let kept = if quoted { EnabledStatistics::Page } else { EnabledStatistics::None };
        // Some writers quote the largest value in the header of its page.
        let properties =
            properties.set_statistics_enabled(kept).set_write_page_header_statistics(quoted).build();
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
        let mut group = writer.next_row_group().unwrap();
        let mut values = vec![ByteArray::from("k"); 100];
        values.push(ByteArray::from(vec![b'z'; long]));
        column::<ByteArrayType>(&mut group, &values);
        group.close().unwrap();
        let file = Scratch::new("long.parquet", writer.into_inner().unwrap());
        (file.table().all().count(), file.table().all().texts("k").map(|texts| texts.len()))
    };
    for long in [1 << 10, 1 << 16, 5 << 20, 17 << 20] {
        for quoted in [false, true] {
            assert_eq!(
                count(long, quoted),
                (Ok(101), Ok(101)),
                "{long} bytes, in the header of the page: {quoted}"
            );
        }
    }
}

/// A file of a schema alone: its elements have so many children each.
fn footer(children: &[u32]) -> Vec<u8> {
    let varint = |number: u32| {
        let mut rest = number;
        let mut bytes = Vec::new();
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes
    };
    // Thrift's compact protocol: version 1, then a list of structs.
    let mut bytes = [vec![0x15, 2, 0x19, 0xfc], varint(children.len() as u32)].concat();
    for count in children {
        if *count == 0 {
            // A leaf is a required INT32 named a …
            bytes.extend([0x15, 2, 0x25, 0, 0x18, 1, b'a', 0]);
        } else {
            // … and a group is required, and has children.
            bytes.extend([[0x35, 0, 0x18, 1, b'a', 0x15].to_vec(), varint(count << 1), vec![0]].concat());
        }
    }
    // No rows in no groups.
    bytes.extend([0x16, 0, 0x19, 0x0c, 0]);
    let length = (bytes.len() as u32).to_le_bytes();
    [b"PAR1".as_slice(), &bytes, &length, b"PAR1"].concat()
}

#[test]
fn a_schema_that_would_exhaust_the_stack_or_the_memory_is_damage() {
    let open = |children: &[u32]| Table::open(Scratch::new("forged.parquet", footer(children)).path());
    assert_eq!(open(&[1, 0]).unwrap().columns().len(), 1);
    assert_eq!(open(&[1, 1, 0]).unwrap().columns()[0].name, "a.a");
    let deep = [vec![1; 100_000], vec![0]].concat();
    assert!(
        matches!(open(&deep), Err(Error::Format(FormatError::Damaged { part, .. })) if part == "the footer")
    );
    assert!(matches!(open(&[1, i32::MAX as u32, 0]), Err(Error::Format(FormatError::Damaged { .. }))));
}

/// Asks everything of a file that may be damaged.
fn ask(bytes: &[u8]) -> Result<(), Error> {
    let file = Scratch::new("damaged.parquet", bytes);
    let table = Table::open(file.path())?;
    let all = table.all();
    all.texts("name").and(all.numbers("age")).and(all.texts("home.city")).and(all.numbers("smoker"))?;
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn damage_is_an_error_or_a_value_and_never_a_panic(
        place in any::<prop::sample::Index>(), byte in any::<u8>(), cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = people(Compression::SNAPPY);
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Err(error) = ask(&bytes) {
            prop_assert!(!error.to_string().contains("Ada"));
        }
    }
}
