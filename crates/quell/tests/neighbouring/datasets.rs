//! Datasets as people have them, in every format, and what one person can do to them.

use std::{fmt::Write, path::PathBuf, sync::Arc};

use parquet::{
    basic::Compression,
    data_type::{ByteArray, ByteArrayType, DataType, FloatType},
    file::{
        properties::WriterProperties,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::parser::parse_message_type,
};
use quell::{
    data::{Examples, Label, Schema},
    random::PublicRandom,
    run::Source,
};
use quell_privacy::{Neighbors, ledger::Unit};

use crate::made::{Folder, cifar, idx, npy, npz, png};

/// One record, before it is written into a file.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// Stays with the record when others come and go.
    pub(crate) identity: u64,
    pub(crate) user: Option<u64>,
    pub(crate) values: [f32; WIDTH],
    /// No class if it is 2 or more.
    pub(crate) label: u8,
    /// Whether its picture, or its row, is damaged.
    pub(crate) damaged: bool,
    /// Whether a cell of its row has 17 MiB.
    pub(crate) long: bool,
}

pub(crate) const WIDTH: usize = 4;

/// How it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Table,
    Tabs,
    /// Semicolons, no header, a column of text.
    Bare,
    Parquet,
    Npy,
    Npz,
    Idx,
    Cifar,
    Pictures,
}

/// All of them; the last one is that of records without places.
pub(crate) const FORMATS: [Format; 9] = [
    Format::Table,
    Format::Tabs,
    Format::Bare,
    Format::Parquet,
    Format::Npy,
    Format::Npz,
    Format::Idx,
    Format::Cifar,
    Format::Pictures,
];

fn value(chance: &mut PublicRandom) -> f32 {
    let sign = [1.0, -1.0][chance.below(2)];
    sign * match chance.below(14) {
        0 => f32::NAN,
        1 => f32::INFINITY,
        2 => 3e38,
        3 => f32::MAX,
        4 => 1e20,
        5 => f32::MIN_POSITIVE / 8.0,
        6 => f32::from_bits(1),
        7 => 0.0,
        _ => chance.normal(),
    }
}

impl Record {
    /// One like any other, or, if it is hostile, whatever can be written down.
    pub(crate) fn new(chance: &mut PublicRandom, users: usize, hostile: bool) -> Self {
        let mut values = [0.0; WIDTH];
        values.iter_mut().for_each(|x| *x = if hostile { value(chance) } else { chance.normal() });
        let odd = hostile && chance.below(4) == 0;
        Self {
            identity: chance.bits(),
            user: (!(hostile && chance.below(6) == 0)).then(|| chance.below(users) as u64),
            values,
            label: if odd { 2 + chance.below(2) as u8 } else { chance.below(2) as u8 },
            damaged: hostile && chance.below(6) == 0,
            long: hostile && chance.below(200) == 0,
        }
    }

    /// One that is hostile every other time.
    fn any(chance: &mut PublicRandom, users: usize) -> Self {
        let hostile = chance.below(2) == 0;
        Self::new(chance, users, hostile)
    }

    /// The cell of the column of categories: one of two that are declared, none, or another one.
    fn category(&self) -> &'static str {
        ["p", "q", "", "other"][(self.identity % 4) as usize]
    }

    /// The class in the cell of the label, some of which are not declared.
    fn class(&self) -> &'static str {
        ["a", "b", "", "c"][usize::from(self.label)]
    }

    /// The numeric target, which may be missing or beyond its bounds.
    fn number(&self) -> f32 {
        [0.0, 0.7, f32::NAN, 1e30][usize::from(self.label)]
    }

    fn bytes(&self) -> [u8; WIDTH] {
        self.values.map(|x| if x.is_finite() { (x * 40.0 + 128.0).clamp(0.0, 255.0) as u8 } else { 0 })
    }
}

/// So many records, some of them hostile.
pub(crate) fn records(chance: &mut PublicRandom, count: usize, users: usize) -> Vec<Record> {
    (0..count)
        .map(|_| {
            let hostile = chance.below(5) == 0;
            Record::new(chance, users, hostile)
        })
        .collect()
}

/// A neighbour: one unit comes, goes or is exchanged for another.
pub(crate) fn neighbour(
    chance: &mut PublicRandom,
    all: &[Record],
    unit: Unit,
    neighbors: Neighbors,
    users: usize,
) -> Vec<Record> {
    let mut other = all.to_vec();
    match (unit, neighbors) {
        (Unit::Example, Neighbors::AddRemove) if chance.below(2) == 0 && !all.is_empty() => {
            other.remove(chance.below(all.len()));
        }
        (Unit::Example, Neighbors::AddRemove) => {
            // One more, maybe the same as another.
            let same = chance.below(4) == 0 && !all.is_empty();
            let record = if same {
                Record { identity: chance.bits(), ..all[chance.below(all.len())].clone() }
            } else {
                Record::any(chance, users)
            };
            other.insert(chance.below(all.len() + 1), record);
        }
        (Unit::Example, Neighbors::Replace) => {
            let place = chance.below(all.len());
            let old = &all[place];
            other[place] = match chance.below(8) {
                0 => Record { label: 3, ..old.clone() },
                1 => Record { user: None, ..old.clone() },
                2 => Record { values: [f32::NAN; WIDTH], ..old.clone() },
                3 => Record { damaged: true, ..old.clone() },
                4 => all[chance.below(all.len())].clone(),
                5 => Record { long: true, ..old.clone() },
                _ => Record::any(chance, users),
            };
        }
        (Unit::User, neighbors) => {
            let gone = all[chance.below(all.len())].user;
            let goes = neighbors == Neighbors::Replace || chance.below(2) == 0;
            if goes {
                other.retain(|record| record.user.is_none() || record.user != gone);
            }
            if neighbors == Neighbors::Replace || !goes {
                // Somebody new, with several records or only unusable ones.
                let name = users as u64 + chance.below(1000) as u64;
                for _ in 0..chance.below(5) {
                    let record = Record { user: Some(name), ..Record::any(chance, users) };
                    other.insert(chance.below(other.len() + 1), record);
                }
            }
        }
    }
    other
}

/// What the worst that somebody can do makes of a dataset, one neighbour for each way. The first record, and whoever it belongs to, does it.
///
/// A dataset without records has those neighbours that have one more.
pub(crate) fn hostile(all: &[Record], unit: Unit, neighbors: Neighbors) -> Vec<Vec<Record>> {
    let plain =
        Record { identity: 1, user: Some(500), values: [0.5; WIDTH], label: 0, damaged: false, long: false };
    let first = all.first().cloned().unwrap_or(plain);
    let with = |values: [f32; WIDTH]| Record { values, ..first.clone() };
    let ways = [
        Record { label: 2, ..first.clone() },
        Record { label: 1 - first.label.min(1), ..first.clone() },
        Record { user: None, ..first.clone() },
        Record { damaged: true, ..first.clone() },
        Record { long: true, ..first.clone() },
        with([f32::NAN; WIDTH]),
        with([f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 0.0]),
        with([f32::MAX; WIDTH]),
        with([f32::MIN; WIDTH]),
        with([f32::from_bits(1); WIDTH]),
        with([0.0; WIDTH]),
        all.last().cloned().unwrap_or_else(|| first.clone()),
    ];
    let theirs = |record: &Record| match unit {
        Unit::Example => record.identity == first.identity,
        Unit::User => record.user.is_some() && record.user == first.user,
    };
    let without: Vec<Record> = all.iter().filter(|record| !theirs(record)).cloned().collect();
    match (unit, neighbors) {
        (Unit::Example, Neighbors::Replace) => {
            let at_first = |record: Record| [vec![record], all[1..].to_vec()].concat();
            if all.is_empty() { Vec::new() } else { ways.into_iter().map(at_first).collect() }
        }
        // One more, before all others: their places change.
        (Unit::Example, Neighbors::AddRemove) => {
            let more = ways
                .into_iter()
                .map(|record| [vec![Record { identity: 2, ..record }], all.to_vec()].concat());
            more.chain((!all.is_empty()).then_some(without)).collect()
        }
        (Unit::User, neighbors) => {
            let rest = if neighbors == Neighbors::Replace { &without } else { all };
            // Somebody with two records, at both ends.
            let who =
                |record: &Record| Record { identity: 2, user: record.user.map(|_| 600), ..record.clone() };
            let two = |record: &Record| {
                [vec![who(record)], rest.to_vec(), vec![Record { identity: 3, ..who(record) }]].concat()
            };
            ways.iter().map(two).chain((!all.is_empty()).then(|| without.clone())).collect()
        }
    }
}

/// A Parquet file of columns that hold text, or nothing, and numbers; some rows to a group.
fn parquet(all: &[Record]) -> Vec<u8> {
    type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;
    fn column<T: DataType>(group: &mut Group<'_>, values: &[Option<T::T>]) {
        let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
        let there: Vec<T::T> = values.iter().flatten().cloned().collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<T>().write_batch(&there, Some(&levels), None).unwrap();
        column.close().unwrap();
    }
    let numbers: String = (0..WIDTH).map(|i| format!("optional float x{i}; ")).collect();
    let schema = format!(
        "message people {{ optional binary u (UTF8); {numbers} optional binary c (UTF8); optional float z; optional binary y (UTF8); }}"
    );
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    for records in all.chunks(16) {
        let mut group = writer.next_row_group().unwrap();
        let texts = |of: &dyn Fn(&Record) -> Option<String>| {
            records
                .iter()
                .map(|record| of(record).map(|text| ByteArray::from(text.into_bytes())))
                .collect::<Vec<_>>()
        };
        column::<ByteArrayType>(&mut group, &texts(&|record| record.user.map(|user| format!("u{user}"))));
        for i in 0..WIDTH {
            // A damaged row has no cells.
            let numbers: Vec<Option<f32>> =
                records.iter().map(|record| (!record.damaged).then_some(record.values[i])).collect();
            column::<FloatType>(&mut group, &numbers);
        }
        column::<ByteArrayType>(&mut group, &texts(&|record| Some(record.category().to_owned())));
        let targets: Vec<Option<f32>> = records.iter().map(|record| Some(record.number())).collect();
        column::<FloatType>(&mut group, &targets);
        let label = |record: &Record| match (record.damaged, record.long) {
            (true, _) => None,
            (false, true) => Some("c".repeat(17 << 20)),
            (false, false) => Some(record.class().to_owned()),
        };
        column::<ByteArrayType>(&mut group, &texts(&label));
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

const SCHEMA: &str = "[label]\ncolumn = 'y'\nclasses = ['a', 'b']\n";

/// Writes records over those that were there, and says what is public about them.
pub(crate) fn write(
    folder: &Folder,
    all: &[Record],
    format: Format,
    unit: Unit,
    share: Option<f64>,
) -> Source {
    let by_user = unit == Unit::User;
    let mut source = Source { unit, dataset: Some("people".into()), ..Source::default() };
    let names = || Some(vec!["a".to_owned(), "b".to_owned()]);
    let users = || {
        all.iter()
            .map(|record| record.user.map(|user| format!("u{user}")).unwrap_or_default() + "\n")
            .collect::<String>()
    };
    let users = || folder.put("users.txt", users());
    let schema = || {
        let user = if by_user { "ignore = ['z']\nuser = 'u'\n" } else { "ignore = ['z', 'u']\n" };
        let mut columns: String =
            (0..WIDTH).map(|i| format!("[[column]]\nname = 'x{i}'\nbounds = [-3, 3]\n")).collect();
        columns += if format == Format::Bare {
            "[[column]]\nname = 'c'\ntext = { hashed = 3 }\nunknown = true\n[file]\ndelimiter = ';'\nmissing = ['q']\nheader = ['u', 'x0', 'x1', 'x2', 'x3', 'c', 'z', 'y']\n"
        } else {
            "[[column]]\nname = 'c'\ncategories = ['p', 'q']\nunknown = true\n"
        };
        let test = share.map(|share| format!("[test]\nshare = {share}\n")).unwrap_or_default();
        Some(Schema::parse(&format!("{user}{SCHEMA}{test}{columns}")).unwrap())
    };
    match format {
        Format::Table | Format::Tabs | Format::Bare => {
            let names = if format == Format::Bare { "" } else { "u,x0,x1,x2,x3,c,z,y\n" };
            let mut text = names.to_owned();
            for record in all {
                let mut cells: Vec<String> = record.values.iter().map(ToString::to_string).collect();
                if record.long {
                    cells[1] = "1".repeat(17 << 20);
                }
                if record.damaged && format == Format::Tabs {
                    cells[0].insert(0, '"');
                }
                let user = record.user.map(|user| format!("u{user}")).unwrap_or_default();
                // A damaged row ends early.
                let row = if record.damaged {
                    format!("{user},{}", cells[0])
                } else {
                    let [category, number, class] = [
                        record.category().to_owned(),
                        record.number().to_string(),
                        record.class().to_owned(),
                    ];
                    format!("{user},{},{category},{number},{class}", cells.join(","))
                };
                writeln!(text, "{row}").unwrap();
            }
            source.path = Some(match format {
                Format::Tabs => folder.put("people.tsv", text.replace(',', "\t")),
                Format::Bare => folder.put("people.data", text.replace(',', ";")),
                _ => folder.put("people.csv", text),
            });
            source.schema = schema();
        }
        Format::Parquet => {
            source.path = Some(folder.put("people.parquet", parquet(all)));
            source.schema = schema();
        }
        Format::Npy | Format::Npz => {
            let features: Vec<u8> =
                all.iter().flat_map(|record| record.values).flat_map(f32::to_le_bytes).collect();
            let labels: Vec<u8> =
                all.iter().flat_map(|record| i64::from(record.label).to_le_bytes()).collect();
            let features = npy("<f4", &format!("({}, {WIDTH})", all.len()), &features);
            let labels = npy("<i8", &format!("({},)", all.len()), &labels);
            source.classes = names();
            source.path = Some(if format == Format::Npz {
                folder.put("people.npz", npz(&[("x.npy", features), ("y.npy", labels)]))
            } else {
                folder.put("arrays/y.npy", labels);
                folder.put("arrays/x.npy", features)
            });
            source.users = by_user.then(users);
        }
        Format::Idx => {
            let pixels: Vec<u8> = all.iter().flat_map(Record::bytes).collect();
            let labels: Vec<u8> = all.iter().map(|record| record.label).collect();
            folder.put("train-labels-idx1-ubyte", idx(8, &[all.len() as u32], &labels));
            source.classes = names();
            source.path =
                Some(folder.put("train-images-idx3-ubyte", idx(8, &[all.len() as u32, 2, 2], &pixels)));
            source.users = by_user.then(users);
        }
        Format::Cifar => {
            // Two files, as people have several. A label that is no class is any other byte.
            let picture = |record: &Record| {
                let [red, green, blue, corner] = record.bytes();
                let mut bytes = cifar([0, 1, 10, 255][usize::from(record.label)], [red, green, blue]);
                bytes[1] = corner;
                bytes
            };
            let (first, second) = all.split_at(all.len().min(16));
            folder.put("cifar/data_batch_1.bin", first.iter().flat_map(picture).collect::<Vec<u8>>());
            folder.put("cifar/data_batch_2.bin", second.iter().flat_map(picture).collect::<Vec<u8>>());
            source.classes = names();
            source.path = Some(folder.path().join("cifar"));
            source.users = by_user.then(users);
        }
        Format::Pictures => {
            let root = folder.path().join("pictures");
            let _ = std::fs::remove_dir_all(&root);
            // Folders of classes are there, whoever is in them.
            ["a", "b"].iter().for_each(|class| std::fs::create_dir_all(root.join(class)).unwrap());
            let mut whose = String::from("file,user\n");
            for (place, record) in all.iter().enumerate() {
                let class = ["a", "b", "c", "d"][usize::from(record.label)];
                let whole = png(png::ColorType::Grayscale, png::BitDepth::Eight, [2, 2], &record.bytes());
                let bytes = if record.damaged { &whole[..whole.len() / 2] } else { &whole };
                let name = format!("{class}/{:016x}-{place}.png", record.identity);
                folder.put(&format!("pictures/{name}"), bytes);
                let user = record.user.map(|user| format!("u{user}")).unwrap_or_default();
                writeln!(whose, "{name},{user}").unwrap();
            }
            source.users = by_user.then(|| folder.put("whose.csv", whose));
            (source.path, source.classes, source.shape) = (Some(root), names(), Some([1, 2, 2]));
        }
    }
    source
}

/// Public records in the same format, to test on or to ask about.
pub(crate) fn write_public(
    folder: &Folder,
    chance: &mut PublicRandom,
    count: usize,
    format: Format,
) -> PathBuf {
    let all: Vec<Record> = (0..count).map(|_| Record::new(chance, 1, false)).collect();
    let place = Folder::new();
    let source = write(&place, &all, format, Unit::Example, None);
    let from = source.path.unwrap();
    let to = folder.path().join("public").join(from.strip_prefix(place.path()).unwrap());
    copy(
        &if from.is_dir() { from.clone() } else { from.parent().unwrap().to_owned() },
        &if from.is_dir() { to.clone() } else { to.parent().unwrap().to_owned() },
    );
    to
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() { copy(&from, &to) } else { std::fs::copy(from, to).map(drop).unwrap() }
    }
}

/// Makes the numeric column of a table the label, in place of the class.
pub(crate) fn predict_numbers(schema: &mut Schema) {
    schema.ignore.iter_mut().filter(|name| *name == "z").for_each(|name| *name = "y".into());
    schema.label = Some(Label { column: "z".into(), bounds: Some([0.0, 1.0]), ..Label::default() });
}

/// Who the records of examples are, in their order: records as they were written, which pictures in folders are not.
pub(crate) fn identities(examples: &Examples, all: &[Record], format: Format) -> Vec<u64> {
    let rows = rows(all, format);
    (0..examples.len()).map(|record| rows[examples.row(record)].identity).collect()
}

/// The records in the order in which they are read.
pub(crate) fn rows(all: &[Record], format: Format) -> Vec<&Record> {
    let mut rows: Vec<&Record> = all.iter().collect();
    if format == Format::Pictures {
        rows.sort_by_key(|record| (record.label, format!("{:016x}", record.identity)));
    }
    rows
}
