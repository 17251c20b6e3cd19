//! Everything that can go wrong in this crate.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::data::{Kind, Use};

/// Why there is no answer. A message says what is and what was expected; [`Error::hint`] says what to try next.
///
/// What is said depends on public things alone: the path, the format, the names and types of the columns, the expression.
/// No message holds a value read from a record, and no record's value decides whether there is a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No file.
    #[error("{} does not exist, expected a CSV or Parquet file", path.display())]
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
    #[error("{} has two columns named {}, expected every name once", path.display(), quoted(name))]
    DuplicateColumn {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
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
    #[error("there is no column {}, expected one of {}{}", quoted(name), listed(columns), shown(place.as_ref()))]
    NoColumn {
        /// The name asked for.
        name: String,
        /// The names there are.
        columns: Vec<String>,
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
            Self::NoColumn { name, columns, .. } => match nearest(name, columns) {
                Some(near) => format!("did you mean {}?", quoted(near)),
                None => "names are case-sensitive; write one with spaces or signs in double quotes".into(),
            },
            Self::WrongUse { kind: Kind::Unreadable, .. } => "export the column as numbers or text".into(),
            Self::WrongUse { place: None, .. } => {
                "choose another column, or export the file with another type for this one".into()
            }
            Self::WrongUse { usage: Use::Number, .. } => "compare it with text in single quotes, like 'a'".into(),
            Self::WrongUse { usage: Use::Text, .. } => "compare it with a number, without quotes".into(),
            Self::Malformed { .. } => {
                "an expression reads like: age >= 18 and (city in ('Bern', 'Basel') or not income is missing)".into()
            }
        }
    }

    /// What the operating system refused.
    pub(crate) fn io(path: &Path, error: &std::io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            std::io::ErrorKind::NotFound => Self::Absent { path },
            because => Self::Unreadable { path, because },
        }
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
