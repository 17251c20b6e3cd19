//! Everything that can go wrong in this crate.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::data::{Column, Kind, Use};

/// Why there is no answer. A message says what is and what was expected; [`Error::hint`] says what to try next.
///
/// What is said depends on public things alone: the path, the format, the shape of a record, the types of the columns, the
/// schema, the expression.
/// No message holds a value read from a record or the number of records, and no record's value decides whether there is a
/// message. A column is named if it was asked for, or nearly: what stands where names belong may be a record.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No file and no folder.
    #[error("{} does not exist, expected a file or folder of data", path.display())]
    Absent {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The operating system does not hand out the file.
    #[error("{} cannot be read: {because}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        because: std::io::ErrorKind,
    },
    /// The operating system does not let the file be written.
    #[error("{} cannot be written: {because}", path.display())]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system says.
        because: std::io::ErrorKind,
    },
    /// A file that is longer than anything that is read from such a file.
    #[error("{} is longer than {most} bytes, expected a file of this kind", path.display())]
    FileTooLong {
        /// The file.
        path: PathBuf,
        /// The most bytes that are read.
        most: u64,
    },
    /// A file, but no table.
    #[error("{} is {found}, expected CSV with a header row, or Parquet", path.display())]
    NoTable {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// A first row that cannot be names. It is not shown: it may be a record.
    #[error("the first row of {} holds a number, expected the names of the columns", path.display())]
    NoHeader {
        /// The file.
        path: PathBuf,
    },
    /// Cells separated by something else.
    #[error("the first row of {} is separated by {found}, expected {expected}", path.display())]
    Separator {
        /// The file.
        path: PathBuf,
        /// What it uses.
        found: &'static str,
        /// What its name promises.
        expected: &'static str,
    },
    /// Two columns of one name.
    #[error("columns {} and {} of {} have the same name, expected every name once", columns[0], columns[1], path.display())]
    DuplicateColumn {
        /// The file.
        path: PathBuf,
        /// Which they are, counted from 1.
        columns: [usize; 2],
    },
    /// A Parquet file that its reader does not understand.
    #[error("{} is damaged or not Parquet: {part} cannot be decoded", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where it stopped.
        part: String,
    },
    /// A compression of Parquet that is not read here.
    #[error("{} is compressed with {codec}, expected snappy, gzip, zstd, lz4 or nothing", path.display())]
    Codec {
        /// The file.
        path: PathBuf,
        /// Its compression.
        codec: &'static str,
    },
    /// A layer that cannot take what comes into it.
    #[error("{layer} gets numbers arranged as {found:?}, expected {expected}")]
    LayerInput {
        /// Which layer.
        layer: String,
        /// What comes out of the layer before it.
        found: Vec<usize>,
        /// What it could take.
        expected: String,
    },
    /// A setting of a layer that it cannot have, here.
    #[error("{setting} of {layer} is {found}, expected {expected}")]
    LayerSetting {
        /// Which layer.
        layer: String,
        /// The name of the setting.
        setting: &'static str,
        /// What it is.
        found: String,
        /// What it may be.
        expected: String,
    },
    /// A layer under which no example has a gradient of its own.
    #[error(
        "{layer} mixes the examples of a batch, so that no example has a gradient of its own to clip, expected layers that look at one example at a time"
    )]
    MixesExamples {
        /// Which layer.
        layer: String,
    },
    /// A network that is larger than anything that was meant.
    #[error("with {layer} the network has more than {most} {what}, expected at most that many")]
    NetworkSize {
        /// The layer that was too much.
        layer: String,
        /// What there is too much of.
        what: &'static str,
        /// What is allowed.
        most: u128,
    },
    /// Layers in layers without end.
    #[error("{layer} is inside of {most} others and has layers itself, expected at most {most} around each other")]
    LayersInLayers {
        /// Which layer.
        layer: String,
        /// What is allowed.
        most: usize,
    },
    /// Nothing where layers are expected.
    #[error("{place} has no layers, expected at least one")]
    NoLayers {
        /// The network, or a layer made of layers.
        place: String,
    },
    /// A model that nobody knows.
    #[error("there is no model {}, expected one of {}", quoted(name), listed(models))]
    NoModel {
        /// The name asked for.
        name: String,
        /// The names there are.
        models: Vec<String>,
    },
    /// A name that no column has.
    #[error("there is no column {}, expected one of the {columns} that the file has{}", quoted(name), shown(place.as_ref()))]
    NoColumn {
        /// The name asked for.
        name: String,
        /// How many columns there are.
        columns: usize,
        /// The name that it may have been meant to be. Others are not said: a file without a header has a record there.
        near: Option<String>,
        /// Where in an expression it was asked for.
        place: Option<Place>,
    },
    /// A column read as what it is not.
    #[error("column {} holds {kind}, expected {usage}{}", quoted(name), shown(place.as_ref()))]
    WrongUse {
        /// The name of the column.
        name: String,
        /// What the schema says.
        kind: Kind,
        /// What was asked for.
        usage: Use,
        /// Where in an expression it was asked for.
        place: Option<Place>,
    },
    /// Numbers that cannot tell users apart.
    #[error("column {} holds floating-point or decimal numbers, expected integers or text that tell users apart", quoted(name))]
    FractionsAsUsers {
        /// The name of the column.
        name: String,
    },
    /// An expression that is none.
    #[error("the expression has {found} at character {}, expected {expected}{}", place.at + 1, shown(Some(place)))]
    Malformed {
        /// What is there.
        found: String,
        /// What could be there.
        expected: &'static str,
        /// Where.
        place: Place,
    },
    /// A setting out of its range.
    #[error("{name} is {found}, expected {expected}")]
    Setting {
        /// Its name.
        name: &'static str,
        /// What it is.
        found: String,
        /// What it may be.
        expected: &'static str,
    },
    /// A file with a network that was to make features, and cannot.
    #[error("the public network {} {found}, expected {expected}", path.display())]
    PublicNetwork {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        found: String,
        /// What would do.
        expected: &'static str,
    },
    /// A binary file that is not what its header or its length says.
    #[error("{} has {found}, expected {expected}", path.display())]
    Broken {
        /// The file, or the file in an archive.
        path: PathBuf,
        /// What is there.
        found: String,
        /// What could be there.
        expected: String,
    },
    /// Text that was packed, and does not unpack.
    #[error("{} is damaged: it cannot be unpacked to its end", path.display())]
    Packed {
        /// The file.
        path: PathBuf,
    },
    /// Not a zip archive.
    #[error("{} is damaged or not an archive of arrays: its directory cannot be read", path.display())]
    NoArchive {
        /// The file.
        path: PathBuf,
    },
    /// Not a picture.
    #[error("{} is {found}, expected a PNG or JPEG file in grey or colour", path.display())]
    NoImage {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// A picture of another size.
    #[error("{} has {}, expected {} as the pictures before it", path.display(), sides(found), sides(expected))]
    Shape {
        /// The file.
        path: PathBuf,
        /// Its channels, rows and columns.
        found: [usize; 3],
        /// Those of the others.
        expected: [usize; 3],
    },
    /// A picture alone.
    #[error("{} is one picture, expected a folder of folders of pictures", path.display())]
    OnePicture {
        /// The file.
        path: PathBuf,
    },
    /// A folder that is no class.
    #[error("{} has a folder {}, expected one of the classes {}", path.display(), quoted(name), listed(classes))]
    NoClass {
        /// The folder of folders.
        path: PathBuf,
        /// The name.
        name: String,
        /// The classes there are.
        classes: Vec<String>,
    },
    /// More than may be held in memory.
    #[error("{} takes more than {limit} bytes in memory, expected less", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What is allowed.
        limit: u64,
    },
    /// Nothing that can be learned from.
    #[error("{} is no data that can be recognised", path.display())]
    Unrecognised {
        /// The file or folder.
        path: PathBuf,
    },
    /// Features without labels.
    #[error("the labels of {} are missing, expected {expected}", path.display())]
    NoLabels {
        /// The file or folder.
        path: PathBuf,
        /// Where they were looked for.
        expected: &'static str,
    },
    /// Labels that are indices of something.
    #[error("the labels in {} are integers, and it is not said which classes there are", path.display())]
    NoClasses {
        /// The file of the labels.
        path: PathBuf,
    },
    /// Something public about private data that nobody has declared.
    #[error("the {what} in {} must be declared", path.display())]
    Undeclared {
        /// The file or folder.
        path: PathBuf,
        /// What must be said.
        what: &'static str,
    },
    /// Two files that do not belong together. How many records they have is not said.
    #[error("{} and {} have not as many records, expected the same number in both", path.display(), other.display())]
    Counts {
        /// The features.
        path: PathBuf,
        /// Labels or users.
        other: PathBuf,
    },
    /// A table about which nothing is public.
    #[error("{} is a table without a schema, expected one that states the bounds and categories of its columns", path.display())]
    NoSchema {
        /// The table.
        path: PathBuf,
    },
    /// A schema that is none. What is said is about the schema, which is public.
    #[error("{} is wrong: {because}", path.as_ref().map_or("the schema".into(), |path| path.display().to_string()))]
    Schema {
        /// Its file, if it has one.
        path: Option<PathBuf>,
        /// Why.
        because: String,
    },
    /// A column that the schema does not have.
    #[error("{} has a column {} that is not in the schema, expected every column there", path.display(), quoted(name))]
    Unmentioned {
        /// The table.
        path: PathBuf,
        /// The name.
        name: String,
    },
    /// Two lists that should have one entry for each record.
    #[error("there are not as many {name} as records, expected {name} for every record")]
    Sizes {
        /// What there is too much or too little of.
        name: &'static str,
    },
    /// A setting outside the range in which it means something.
    #[error("{what} is {value}, expected a number in {range}")]
    OutOfRange {
        /// Name of the setting.
        what: &'static str,
        /// What was given.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// Vectors that do not belong together.
    #[error("{what} holds {found} numbers, expected {expected}")]
    Length {
        /// Name of the vector.
        what: &'static str,
        /// Its length.
        found: usize,
        /// That of the others.
        expected: usize,
    },
    /// One who would be in two shards.
    #[error("a {who} is in two shards, expected one: two teachers would have learned from them")]
    TwoShards {
        /// What kind of unit.
        who: &'static str,
    },
    /// Something that must be said and was not.
    #[error("no {what} is given")]
    Missing {
        /// What.
        what: &'static str,
        /// What to do about it.
        hint: &'static str,
    },
    /// The trusted room refuses.
    #[error(transparent)]
    Privacy(#[from] quell_privacy::Error),
    /// A configuration that cannot be read.
    #[error("the configuration cannot be read: {because}")]
    Configuration {
        /// What its reader says, with line and column.
        because: String,
    },
    /// A folder that is to be made and is there.
    #[error("{} is there already, expected the name of a new folder", path.display())]
    RunExists {
        /// The folder.
        path: PathBuf,
    },
    /// A file that is to hold an answer, and holds another one.
    #[error("{} is there already, expected the name of a new file", path.display())]
    AnswerExists {
        /// The file.
        path: PathBuf,
    },
    /// An answer that was paid for and is lost.
    #[error("the answer in {} was paid for and is lost: the command was killed while it was drawn", path.display())]
    AnswerLost {
        /// The file.
        path: PathBuf,
    },
    /// A folder without a run.
    #[error("{} holds no run that was begun", path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// A run on which another process works.
    #[error("another process works on the run in {}", path.display())]
    RunBusy {
        /// The folder.
        path: PathBuf,
    },
    /// A ledger in which a line is missing that a run has seen.
    #[error(
        "the run in {} has seen line {line} of the ledger of {}, and that line is missing or another one: the ledger, which has {lines} lines, is an older copy or not the one that paid",
        path.display(), quoted(dataset)
    )]
    LedgerRolledBack {
        /// The folder.
        path: PathBuf,
        /// The dataset.
        dataset: String,
        /// Number of the line that was seen.
        line: u64,
        /// Number of lines that the ledger has.
        lines: u64,
    },
    /// Results of more steps than the ledger has leased.
    #[error("the run in {} holds {found} {what}, and the ledger has leased {leased}: it is an older copy of the one that paid", path.display())]
    AheadOfLease {
        /// The folder.
        path: PathBuf,
        /// What is counted.
        what: &'static str,
        /// How many the run holds.
        found: u64,
        /// How many were leased.
        leased: u64,
    },
    /// A ledger that promises something else.
    #[error("the ledger of {} protects another unit, or counts other datasets as neighbours", quoted(dataset))]
    OtherPromise {
        /// The dataset.
        dataset: String,
    },
    /// A saved state of another recipe, or a damaged one.
    #[error("{} of the saved state is {found}, expected {expected}", quoted(part))]
    SavedState {
        /// Name of the part.
        part: String,
        /// What it is.
        found: &'static str,
        /// What it should be.
        expected: &'static str,
    },
}

impl Error {
    /// The next thing to try.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Absent { .. } => "check the path".into(),
            Self::Unreadable { .. } => "check the permissions, and that the path is a file".into(),
            Self::NoTable { .. } => "unpack it, or export it again as comma-separated UTF-8 text or as Parquet".into(),
            Self::NoHeader { .. } => "put a row of names above the records; a name must not be a number".into(),
            Self::Separator { .. } => {
                "export it with commas between the cells and points in the numbers, or name a tab-separated file .tsv".into()
            }
            Self::DuplicateColumn { .. } => "rename one of them".into(),
            Self::Damaged { .. } => "export the file again".into(),
            Self::Codec { .. } => "write the file with snappy or zstd compression".into(),
            Self::LayerInput { .. } => "flatten and reshape change the arrangement; or check the layers before it".into(),
            Self::LayerSetting { setting: "kernel", .. } => {
                "choose a smaller kernel, more padding, or fewer layers that make the image smaller".into()
            }
            Self::LayerSetting { setting: "output", .. } => {
                "give the block a projection to the same shape, or layers that keep the shape".into()
            }
            Self::LayerSetting { .. } => "change this setting, or the layer before it".into(),
            Self::MixesExamples { .. } => "use group_norm instead".into(),
            Self::NetworkSize { .. } => "make layers narrower, or images smaller before wide layers".into(),
            Self::LayersInLayers { .. } | Self::NoLayers { .. } => "write the layers one after the other".into(),
            Self::NoModel { name, models } => match nearest(name, models) {
                Some(near) => format!("did you mean {}?", quoted(near)),
                None => "quell models lists what can be named; a list of layers can be given instead".into(),
            },
            Self::NoColumn { near: Some(near), .. } => format!("did you mean {}?", quoted(near)),
            Self::NoColumn { near: None, .. } => {
                "names are case-sensitive, and stand in the first row; write one with spaces or signs in double quotes".into()
            }
            Self::FractionsAsUsers { .. } => "export the column as integers or as text".into(),
            Self::WrongUse { kind: Kind::Unreadable, .. } => "export the column as numbers or text".into(),
            Self::WrongUse { place: None, .. } => {
                "choose another column, or export the file with another type for this one".into()
            }
            Self::WrongUse { usage: Use::Number, .. } => "compare it with text in single quotes, like 'a'".into(),
            Self::WrongUse { usage: Use::Text | Use::Name, .. } => "compare it with a number, without quotes".into(),
            Self::Malformed { .. } => {
                "an expression reads like: age >= 18 and (city in ('Bern', 'Basel') or not income is missing)".into()
            }
            Self::Broken { .. } | Self::Packed { .. } | Self::NoArchive { .. } => "download or export the file again".into(),
            Self::NoImage { .. } => "remove the file, or export it again".into(),
            Self::Shape { .. } => "bring all pictures to one size and to one of grey and colour".into(),
            Self::OnePicture { .. } | Self::NoClass { .. } => "pictures lie in one folder for each class: data/cat/1.png, data/dog/2.jpg".into(),
            Self::TooLarge { .. } => "allow more memory, or take fewer or smaller records".into(),
            Self::Unrecognised { .. } => {
                "data is a .csv, .tsv or .parquet table with a schema, IDX or CIFAR-10 files, .npy or .npz arrays, or a folder of folders of pictures"
                    .into()
            }
            Self::NoLabels { .. } => "put the labels there, or rename them".into(),
            Self::NoClasses { .. } => "declare the classes: they are not read off the records, because that would tell something about them".into(),
            Self::Undeclared { .. } => {
                "say it with --classes cat,dog and --shape ROWSxCOLUMNSxCHANNELS, or put public pictures into test beside train: private pictures are not asked".into()
            }
            Self::Counts { .. } => "check that the files belong together".into(),
            Self::NoSchema { path } => format!("quell schema {} finds one privately; or write it by hand", path.display()),
            Self::Schema { .. } => "a column reads like: [[column]] name = \"age\" bounds = [18, 90]".into(),
            Self::Unmentioned { name, .. } => {
                format!("give it bounds or categories, or write it into the list: ignore = [{}]", quoted(name))
            }
            Self::Setting { name, .. } => format!("change {name}"),
            Self::PublicNetwork { .. } => {
                "features come from the model.safetensors that `quell train` left; put it back to where it was, or name another".into()
            }
            Self::Sizes { .. } => "give every record its features, its target and, if there are users, its user".into(),
            Self::OutOfRange { what, .. } => format!("change {what} in the configuration"),
            Self::Configuration { .. } => "see the examples; names are written with underscores".into(),
            Self::RunExists { .. } => "choose another --output, or go on with `quell resume`".into(),
            Self::AnswerExists { .. } => "choose another --output; the same question with the same --output is paid for once".into(),
            Self::AnswerLost { .. } => "drawing it again would be another release: ask again with another --output".into(),
            Self::NoRun { .. } => "name the folder that `quell train` made".into(),
            Self::RunBusy { .. } => "wait until it ends, or stop it first".into(),
            Self::LedgerRolledBack { .. } | Self::AheadOfLease { .. } => {
                "put the newest ledger back; if it is lost, start a new run, and charge what was released to the ledger that is left".into()
            }
            Self::Unwritable { .. } => "free space, or ask for write access to the folder".into(),
            Self::FileTooLong { .. } => "name another file".into(),
            Self::OtherPromise { .. } => "train with the unit and the neighbours of the ledger, or name another dataset".into(),
            Self::Missing { hint, .. } => (*hint).into(),
            Self::TwoShards { .. } => "let all records of a person go to one shard; without --shards, that is how they are dealt".into(),
            Self::Privacy(_) => "change the settings of the privacy, or ask for less".into(),
            Self::Length { .. } => "use the weights that the state was started with".into(),
            Self::SavedState { .. } => "resume with the configuration that the run was started with, or start again".into(),
        }
    }

    /// Lines that stand below the sentence and show the place of the trouble, if there are any. The text of the error ends with them, after a line end.
    #[must_use]
    pub fn picture(&self) -> Option<String> {
        match self {
            Self::NoColumn { place, .. } | Self::WrongUse { place, .. } => place.as_ref().map(ToString::to_string),
            Self::Malformed { place, .. } => Some(place.to_string()),
            // Their readers put nothing before the picture that has a line end.
            Self::Configuration { because } | Self::Schema { because, .. } => {
                because.split_once('\n').map(|(_, picture)| picture.to_owned())
            }
            _ => None,
        }
    }

    /// A part of a saved state that is not what it should be.
    pub(crate) fn saved(part: &str, found: &'static str, expected: &'static str) -> Self {
        Self::SavedState { part: part.into(), found, expected }
    }

    /// A column that is not there.
    #[must_use]
    pub fn no_column(name: &str, columns: &[Column]) -> Self {
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).filter(|name| !name.is_empty()).collect();
        Self::NoColumn { name: name.to_owned(), columns: columns.len(), near: nearest(name, &names).cloned(), place: None }
    }

    /// What the operating system refused.
    pub(crate) fn io(path: &Path, error: &std::io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            std::io::ErrorKind::NotFound => Self::Absent { path },
            because => Self::Unreadable { path, because },
        }
    }

    /// What the operating system refused to write.
    pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> Self {
        Self::Unwritable { path: path.to_owned(), because: error.kind() }
    }

    /// The same, pointing at a place of an expression.
    pub(crate) fn at(mut self, here: &Place) -> Self {
        if let Self::NoColumn { place, .. } | Self::WrongUse { place, .. } = &mut self {
            *place = Some(here.clone());
        }
        self
    }
}

/// A character of an expression, shown by a caret under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The whole expression.
    pub expression: String,
    /// Characters before the one meant.
    pub at: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line: String = self.expression.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        write!(f, "  {line}\n  {}^", " ".repeat(self.at))
    }
}

fn shown(place: Option<&Place>) -> String {
    place.map(|place| format!("\n{place}")).unwrap_or_default()
}

/// A name as one can write it in an expression, without what could move a cursor, and not longer than a line.
pub(crate) fn quoted(name: &str) -> String {
    const LONGEST: usize = 60;
    let mut text: String = name.chars().take(LONGEST).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if name.chars().nth(LONGEST).is_some() {
        text.push('…');
    }
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// A picture's size in words.
fn sides([channels, rows, columns]: &[usize; 3]) -> String {
    format!("{columns} by {rows} pixels in {}", if *channels == 1 { "grey" } else { "colour" })
}

/// The first names of many.
fn listed(columns: &[String]) -> String {
    const MOST: usize = 20;
    if columns.is_empty() {
        return "none: no column has a name".into();
    }
    let names: Vec<String> = columns.iter().take(MOST).map(|name| quoted(name)).collect();
    let more = columns.len().saturating_sub(MOST);
    if more == 0 { names.join(", ") } else { format!("{} and {more} more", names.join(", ")) }
}

/// The name that a misspelt one was meant to be: at most a third of its letters are wrong.
fn nearest<'a>(name: &str, columns: &'a [String]) -> Option<&'a String> {
    let wrong = |column: &str| edits(&column.to_lowercase(), &name.to_lowercase());
    let (distance, column) = columns.iter().map(|column| (wrong(column), column)).min_by_key(|(distance, _)| *distance)?;
    (distance * 3 <= name.chars().count().max(3)).then_some(column)
}

/// Letters to insert, delete or replace to get from one word to another (Levenshtein).
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}
