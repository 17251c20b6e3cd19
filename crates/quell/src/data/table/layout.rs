//! How a table is written in its file: separators, quotes, names of columns, marks of missing cells.
//!
//! A text file does not state these facts, so a caller declares them where the usual ones do not fit. Without
//! a declared header, the first row holds the names of the columns. Names are public, so the separator of the
//! first row may be looked for in it. With a declared header, the first row is a record. Then nothing is
//! looked for: the separator is the declared one, or the one that the name of the file implies.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::data::TableError;

/// How a table is written in its file. By default this is found in the name of the file and its first row.
///
/// Parquet files have names, types and separations of their own. Of these settings they use `missing` alone.
///
/// ```
/// use quell::data::{Layout, Table};
/// # let path = std::env::temp_dir().join(format!("quell-layout-{}.data", std::process::id()));
/// std::fs::write(&path, "39; State-gov\n50; ?\n")?;
/// let layout = Layout {
///     delimiter: Some(";".parse()?),
///     header: Some(vec!["age".into(), "work".into()]),
///     missing: vec!["?".into()],
///     ..Layout::default()
/// };
/// let table = Table::open_as(&path, &layout)?;
/// assert_eq!(table.all().texts("work")?, [Some("State-gov".to_owned()), None]);
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Layout {
    /// The character between two cells.
    ///
    /// If omitted, it is found in the row of names: a comma, a semicolon or a tab. If `header` declares the
    /// names, it is a tab for a file named `.tsv`, and a comma for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<Delimiter>,
    /// Whether cells can be quoted. By default they can, except where tabs separate them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quotes: Option<bool>,
    /// The names of all columns in order, for a file without a row of names.
    ///
    /// If this is given, the first row is a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<Vec<String>>,
    /// Cells with one of these texts or numbers are missing, besides empty ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

impl Layout {
    /// Whether nothing is declared.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses a layout that contradicts itself.
    pub(super) fn check(&self) -> Result<(), Error> {
        let wrong = |because: &str| Err(TableError::Schema { path: None, because: because.into() }.into());
        let Some(header) = &self.header else { return Ok(()) };
        if header.iter().all(|name| name.trim().is_empty()) {
            return wrong("file has a header without names, expected the names of all columns in order");
        }
        let mut seen = std::collections::HashSet::new();
        // A column without a name is not read, so several may have none.
        if header.iter().any(|name| !name.is_empty() && !seen.insert(name)) {
            return wrong("file has a header with a name twice, expected every name once");
        }
        Ok(())
    }

    /// The marks of missing cells, as they are compared with cells.
    pub(super) fn marks(&self) -> Marks {
        let texts: Vec<String> = self.missing.iter().map(|text| text.trim().to_owned()).collect();
        let numbers = texts.iter().filter_map(|text| text.parse().ok()).collect();
        Marks { texts, numbers }
    }
}

/// The character between two cells: one ASCII character, neither a quote nor a line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Delimiter(u8);

impl Delimiter {
    pub(in crate::data) const COMMA: Self = Self(b',');
    pub(in crate::data) const SEMICOLON: Self = Self(b';');
    pub(in crate::data) const TAB: Self = Self(b'\t');

    /// The byte between two cells.
    #[must_use]
    pub fn byte(self) -> u8 {
        self.0
    }

    /// The name of the delimiter in messages.
    pub(in crate::data) fn name(self) -> &'static str {
        match self.0 {
            b',' => "commas",
            b';' => "semicolons",
            b'\t' => "tabs",
            _ => "the declared delimiter",
        }
    }
}

impl FromStr for Delimiter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let found = match text {
            "tab" | "\\t" => b'\t',
            _ => match text.as_bytes() {
                [byte] => *byte,
                _ => 0,
            },
        };
        if found.is_ascii() && !matches!(found, 0 | b'"' | b'\n' | b'\r') {
            return Ok(Self(found));
        }
        Err(Error::Setting {
            name: "delimiter",
            found: crate::error::quoted(text),
            expected: "one character such as \",\", \";\" or \"|\", or the word tab",
        })
    }
}

impl TryFrom<String> for Delimiter {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Delimiter> for String {
    fn from(delimiter: Delimiter) -> Self {
        delimiter.to_string()
    }
}

impl fmt::Display for Delimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == b'\t' { f.write_str("tab") } else { write!(f, "{}", char::from(self.0)) }
    }
}

/// The texts and numbers that stand for missing cells.
#[derive(Clone, Debug, Default)]
pub(in crate::data) struct Marks {
    texts: Vec<String>,
    numbers: Vec<f64>,
}

impl Marks {
    pub(in crate::data) fn has_text(&self, cell: &[u8]) -> bool {
        self.texts.iter().any(|text| text.as_bytes() == cell)
    }

    pub(in crate::data) fn has_number(&self, number: f64) -> bool {
        self.numbers.contains(&number)
    }
}
