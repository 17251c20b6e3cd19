//! The errors of this crate.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::data::{Column, Kind, Use};

/// An error of this crate.
/// The message says what was found and what was expected; [`Error::hint`] says what to try next.
///
/// A message depends on public facts only: the path, the format, the shape of a record, the types of the
/// columns, the schema, the expression. No message contains a value read from a record or the number of
/// records, and no value of a record decides whether there is a message. A message names a column if the
/// caller asked for that name or nearly that name. It names another column only once all requested columns
/// were found: a file without a header has a record in place of the names.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path does not exist.
    #[error("{} does not exist, expected a file or folder of data", path.display())]
    Absent {
        /// The missing path.
        path: PathBuf,
    },
    /// The operating system does not let the file be read.
    #[error("{} cannot be read: {because}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error kind of the operating system.
        because: std::io::ErrorKind,
    },
    /// The operating system does not let the file be written.
    #[error("{} cannot be written: {because}", path.display())]
    Unwritable {
        /// The file or folder.
        path: PathBuf,
        /// The error kind of the operating system.
        because: std::io::ErrorKind,
    },
    /// The file is longer than any file of its kind.
    #[error("{} is longer than {most} bytes, expected a file of this kind", path.display())]
    FileTooLong {
        /// The file.
        path: PathBuf,
        /// The largest number of bytes that is read.
        most: u64,
    },
    /// The file is not a table.
    #[error("{} is {found}, expected CSV with a header row, or Parquet", path.display())]
    NoTable {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: &'static str,
    },
    /// The first row cannot be column names. It is not shown: it may be a record.
    #[error("the first row of {} holds a number, expected the names of the columns", path.display())]
    NoHeader {
        /// The file.
        path: PathBuf,
    },
    /// The cells have another separator than the name of the file implies.
    #[error("the first row of {} is separated by {found}, expected {expected}", path.display())]
    Separator {
        /// The file.
        path: PathBuf,
        /// The separator that was found.
        found: &'static str,
        /// The separator that the name of the file implies.
        expected: &'static str,
    },
    /// Two columns have the same name.
    #[error("columns {} and {} of {} have the same name, expected every name once", columns[0], columns[1], path.display())]
    DuplicateColumn {
        /// The file.
        path: PathBuf,
        /// The numbers of the two columns, counted from 1.
        columns: [usize; 2],
    },
    /// The Parquet file cannot be decoded.
    #[error("{} is damaged or not Parquet: {part} cannot be decoded", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The part that cannot be decoded.
        part: String,
    },
    /// The compression of the Parquet file is not supported.
    #[error("{} is compressed with {codec}, expected snappy, gzip, zstd, lz4 or nothing", path.display())]
    Codec {
        /// The file.
        path: PathBuf,
        /// The compression of the file.
        codec: &'static str,
    },
    /// The layer cannot take the shape of its input.
    #[error("{layer} gets numbers arranged as {found:?}, expected {expected}")]
    LayerInput {
        /// The layer.
        layer: String,
        /// The shape of the input: the output of the layer before.
        found: Vec<usize>,
        /// The inputs that the layer can take.
        expected: String,
    },
    /// A setting of a layer is invalid in this place.
    #[error("{setting} of {layer} is {found}, expected {expected}")]
    LayerSetting {
        /// The layer.
        layer: String,
        /// The name of the setting.
        setting: &'static str,
        /// What was found.
        found: String,
        /// What is allowed.
        expected: String,
    },
    /// The layer mixes examples, so no example has its own gradient.
    #[error(
        "{layer} mixes the examples of a batch, so that no example has a gradient of its own to clip, expected layers that look at one example at a time"
    )]
    MixesExamples {
        /// The layer.
        layer: String,
    },
    /// The network is larger than the limit.
    #[error("with {layer} the network has more than {most} {what}, expected at most that many")]
    NetworkSize {
        /// The layer that exceeds the limit.
        layer: String,
        /// The quantity that exceeds the limit.
        what: &'static str,
        /// What is allowed.
        most: u128,
    },
    /// Layers are nested too deeply.
    #[error(
        "{layer} is inside of {most} others and has layers itself, expected at most {most} around each other"
    )]
    LayersInLayers {
        /// The layer.
        layer: String,
        /// What is allowed.
        most: usize,
    },
    /// A network, or a layer made of layers, has no layers.
    #[error("{place} has no layers, expected at least one")]
    NoLayers {
        /// The network, or a layer made of layers.
        place: String,
    },
    /// There is no model of this name.
    #[error("there is no model {}, expected one of {}", quoted(name), listed(models))]
    NoModel {
        /// The requested name.
        name: String,
        /// The names of all models.
        models: Vec<String>,
    },
    /// There is no column of this name.
    #[error("there is no column {}, expected one of the {columns} that the file has{}", quoted(name), shown(place.as_ref()))]
    NoColumn {
        /// The requested name.
        name: String,
        /// The number of columns.
        columns: usize,
        /// The most similar column name, if there is one.
        /// Other names are not shown: a file without a header has a record in their place.
        near: Option<String>,
        /// The place in the expression, if the name comes from an expression.
        place: Option<Place>,
    },
    /// The column is used as another kind than it is.
    #[error("column {} holds {kind}, expected {usage}{}", quoted(name), shown(place.as_ref()))]
    WrongUse {
        /// The name of the column.
        name: String,
        /// The kind of the column in the schema.
        kind: Kind,
        /// The requested use.
        usage: Use,
        /// The place in the expression, if the name comes from an expression.
        place: Option<Place>,
    },
    /// The column holds numbers that cannot identify users.
    #[error(
        "column {} holds floating-point or decimal numbers, expected integers or text that tell users apart",
        quoted(name)
    )]
    FractionsAsUsers {
        /// The name of the column.
        name: String,
    },
    /// The expression is malformed.
    #[error("the expression has {found} at character {}, expected {expected}{}", place.at + 1, shown(Some(place)))]
    Malformed {
        /// What was found.
        found: String,
        /// What was expected.
        expected: &'static str,
        /// The place in the expression.
        place: Place,
    },
    /// A setting is invalid.
    #[error("{name} is {found}, expected {expected}")]
    Setting {
        /// The name of the setting.
        name: &'static str,
        /// What was found.
        found: String,
        /// What is allowed.
        expected: &'static str,
    },
    /// The file of a public network cannot be used for features.
    #[error("the public network {} {found}, expected {expected}", path.display())]
    PublicNetwork {
        /// The file.
        path: PathBuf,
        /// What is wrong with the file.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The binary file does not match its header or its length.
    #[error("{} has {found}, expected {expected}", path.display())]
    Broken {
        /// The file, or the file in an archive.
        path: PathBuf,
        /// What was found.
        found: String,
        /// What was expected.
        expected: String,
    },
    /// The compressed text cannot be decompressed.
    #[error("{} is damaged: it cannot be unpacked to its end", path.display())]
    Packed {
        /// The file.
        path: PathBuf,
    },
    /// The file is not a readable zip archive.
    #[error("{} is damaged or not an archive of arrays: its directory cannot be read", path.display())]
    NoArchive {
        /// The file.
        path: PathBuf,
    },
    /// The file is not an image that can be read.
    #[error("{} is {found}, expected a PNG or JPEG file in grey or colour", path.display())]
    NoImage {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: &'static str,
    },
    /// The image has another size than the images before it.
    #[error("{} has {}, expected {} as the pictures before it", path.display(), sides(found), sides(expected))]
    Shape {
        /// The file.
        path: PathBuf,
        /// Its channels, rows and columns.
        found: [usize; 3],
        /// The channels, rows and columns of the other images.
        expected: [usize; 3],
    },
    /// The path is a single image rather than a folder of folders.
    #[error("{} is one picture, expected a folder of folders of pictures", path.display())]
    OnePicture {
        /// The file.
        path: PathBuf,
    },
    /// The name of a folder is not one of the classes.
    #[error("{} has a folder {}, expected one of the classes {}", path.display(), quoted(name), listed(classes))]
    NoClass {
        /// The folder that contains the folders of classes.
        path: PathBuf,
        /// The name that was found.
        name: String,
        /// The classes.
        classes: Vec<String>,
    },
    /// The data exceeds the memory limit.
    #[error("{} takes more than {limit} bytes in memory, expected less", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What is allowed.
        limit: u64,
    },
    /// The format of the data is not recognised.
    #[error("{} is no data that can be recognised", path.display())]
    Unrecognised {
        /// The file or folder.
        path: PathBuf,
    },
    /// The labels are missing.
    #[error("the labels of {} are missing, expected {expected}", path.display())]
    NoLabels {
        /// The file or folder.
        path: PathBuf,
        /// Where labels are expected.
        expected: &'static str,
    },
    /// The labels are integers, and the classes are not declared.
    #[error("the labels in {} are integers, and it is not said which classes there are", path.display())]
    NoClasses {
        /// The file with the labels.
        path: PathBuf,
    },
    /// A public fact about private data must be declared.
    #[error("the {what} in {} must be declared", path.display())]
    Undeclared {
        /// The file or folder.
        path: PathBuf,
        /// What must be declared.
        what: &'static str,
    },
    /// Two files have different numbers of records. The numbers are not shown.
    #[error("{} and {} have not as many records, expected the same number in both", path.display(), other.display())]
    Counts {
        /// The file with the features.
        path: PathBuf,
        /// The file with the labels or the users.
        other: PathBuf,
    },
    /// The table has no schema.
    #[error("{} is a table without a schema, expected one that states the bounds and categories of its columns", path.display())]
    NoSchema {
        /// The table.
        path: PathBuf,
    },
    /// The schema is invalid. The message describes the schema only, which is public.
    #[error("{} is wrong: {because}", path.as_ref().map_or("the schema".into(), |path| path.display().to_string()))]
    Schema {
        /// The file of the schema, if there is one.
        path: Option<PathBuf>,
        /// The reason.
        because: String,
    },
    /// The table has a column that the schema does not have.
    #[error("{} has a column {} that is not in the schema, expected every column there", path.display(), quoted(name))]
    Unmentioned {
        /// The table.
        path: PathBuf,
        /// The name that was found.
        name: String,
    },
    /// A list does not have one entry for each record.
    #[error("there are not as many {name} as records, expected {name} for every record")]
    Sizes {
        /// The name of the list.
        name: &'static str,
    },
    /// A number is out of its range.
    #[error("{what} is {value}, expected a number in {range}")]
    OutOfRange {
        /// The name of the number.
        what: &'static str,
        /// The given value.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// A vector has the wrong length.
    #[error("{what} holds {found} numbers, expected {expected}")]
    Length {
        /// The name of the vector.
        what: &'static str,
        /// The length of the vector.
        found: usize,
        /// The expected length.
        expected: usize,
    },
    /// A record or user would be in two shards.
    #[error("a {who} is in two shards, expected one: two teachers would have learned from them")]
    TwoShards {
        /// The kind of unit.
        who: &'static str,
    },
    /// A required input is missing.
    #[error("no {what} is given")]
    Missing {
        /// What is missing.
        what: &'static str,
        /// What to do about it.
        hint: &'static str,
    },
    /// An error of the privacy crate.
    #[error(transparent)]
    Privacy(#[from] quell_privacy::Error),
    /// The configuration cannot be read.
    #[error("the configuration cannot be read: {because}")]
    Configuration {
        /// The message of the parser, with line and column.
        because: String,
    },
    /// The folder of a new run exists already.
    #[error("{} is there already, expected the name of a new folder", path.display())]
    RunExists {
        /// The folder.
        path: PathBuf,
    },
    /// The output file exists already, or holds the answer to another question.
    #[error("{} is there already, expected the name of a new file", path.display())]
    AnswerExists {
        /// The file.
        path: PathBuf,
    },
    /// The answer was paid for and is lost.
    #[error("the answer in {} was paid for and is lost: the command was killed while it was drawn", path.display())]
    AnswerLost {
        /// The file.
        path: PathBuf,
    },
    /// The folder holds no run.
    #[error("{} holds no run that was begun", path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// Another process works on the run.
    #[error("another process works on the run in {}", path.display())]
    RunBusy {
        /// The folder.
        path: PathBuf,
    },
    /// The ledger lacks a line that the run has seen.
    #[error(
        "the run in {} has seen line {line} of the ledger of {}, and that line is missing or another one: the ledger, which has {lines} lines, is an older copy or not the one that paid",
        path.display(), quoted(dataset)
    )]
    LedgerRolledBack {
        /// The folder.
        path: PathBuf,
        /// The dataset.
        dataset: String,
        /// The number of the line that was seen.
        line: u64,
        /// The number of lines in the ledger.
        lines: u64,
    },
    /// The run holds results of more steps than the ledger has leased.
    #[error("the run in {} holds {found} {what}, and the ledger has leased {leased}: it is an older copy of the one that paid", path.display())]
    AheadOfLease {
        /// The folder.
        path: PathBuf,
        /// The unit of the count.
        what: &'static str,
        /// The number in the run.
        found: u64,
        /// The number that was leased.
        leased: u64,
    },
    /// The ledger has other neighbours or another privacy unit.
    #[error(
        "the ledger of {} protects another unit, or counts other datasets as neighbours",
        quoted(dataset)
    )]
    OtherPromise {
        /// The dataset.
        dataset: String,
    },
    /// The saved state is damaged, or belongs to other settings.
    #[error("{} of the saved state is {found}, expected {expected}", quoted(part))]
    SavedState {
        /// The name of the part.
        part: String,
        /// What was found.
        found: &'static str,
        /// What was expected.
        expected: &'static str,
    },
}

impl Error {
    /// What to try next.
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
            Self::TwoShards { .. } => "put all records of a person into one shard; `Shards::deal` does that".into(),
            Self::Privacy(_) => "change the settings of the privacy, or ask for less".into(),
            Self::Length { .. } => "use the weights that the state was started with".into(),
            Self::SavedState { .. } => "resume with the configuration that the run was started with, or start again".into(),
        }
    }

    /// The lines below the message that show the place of the error, if any.
    /// The text of the error ends with these lines, after a line break.
    #[must_use]
    pub fn picture(&self) -> Option<String> {
        match self {
            Self::NoColumn { place, .. } | Self::WrongUse { place, .. } => {
                place.as_ref().map(ToString::to_string)
            }
            Self::Malformed { place, .. } => Some(place.to_string()),
            // The parsers put no line break before these lines.
            Self::Configuration { because } | Self::Schema { because, .. } => {
                because.split_once('\n').map(|(_, picture)| picture.to_owned())
            }
            _ => None,
        }
    }

    /// The error for an invalid part of a saved state.
    pub(crate) fn saved(part: &str, found: &'static str, expected: &'static str) -> Self {
        Self::SavedState { part: part.into(), found, expected }
    }

    /// The error for a missing column.
    #[must_use]
    pub fn no_column(name: &str, columns: &[Column]) -> Self {
        let names: Vec<String> =
            columns.iter().map(|column| column.name.clone()).filter(|name| !name.is_empty()).collect();
        Self::NoColumn {
            name: name.to_owned(),
            columns: columns.len(),
            near: nearest(name, &names).cloned(),
            place: None,
        }
    }

    /// The error for a file that cannot be read.
    pub(crate) fn io(path: &Path, error: &std::io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            std::io::ErrorKind::NotFound => Self::Absent { path },
            because => Self::Unreadable { path, because },
        }
    }

    /// The error for a file that cannot be written.
    pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> Self {
        Self::Unwritable { path: path.to_owned(), because: error.kind() }
    }

    /// Adds a place in an expression to the error.
    pub(crate) fn at(mut self, here: &Place) -> Self {
        if let Self::NoColumn { place, .. } | Self::WrongUse { place, .. } = &mut self {
            *place = Some(here.clone());
        }
        self
    }
}

/// A character of an expression, displayed by a caret below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The whole expression.
    pub expression: String,
    /// The number of characters before it.
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

/// Quotes a name as in an expression.
/// Control characters, which could move a cursor, are replaced, and a long name is cut.
pub(crate) fn quoted(name: &str) -> String {
    const LONGEST: usize = 60;
    let mut text: String =
        name.chars().take(LONGEST).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if name.chars().nth(LONGEST).is_some() {
        text.push('…');
    }
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// The size of an image in words.
fn sides([channels, rows, columns]: &[usize; 3]) -> String {
    format!("{columns} by {rows} pixels in {}", if *channels == 1 { "grey" } else { "colour" })
}

/// Lists the first of many names.
fn listed(columns: &[String]) -> String {
    const MOST: usize = 20;
    if columns.is_empty() {
        return "none: no column has a name".into();
    }
    let names: Vec<String> = columns.iter().take(MOST).map(|name| quoted(name)).collect();
    let more = columns.len().saturating_sub(MOST);
    if more == 0 { names.join(", ") } else { format!("{} and {more} more", names.join(", ")) }
}

/// The column name nearest to a misspelt name.
/// At most a third of the letters differ.
fn nearest<'a>(name: &str, columns: &'a [String]) -> Option<&'a String> {
    let wrong = |column: &str| strsim::levenshtein(&column.to_lowercase(), &name.to_lowercase());
    let (distance, column) =
        columns.iter().map(|column| (wrong(column), column)).min_by_key(|(distance, _)| *distance)?;
    (distance * 3 <= name.chars().count().max(3)).then_some(column)
}
