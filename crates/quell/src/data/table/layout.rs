//! How a table is written in its file: separators, quotes, names of columns, marks of missing cells.
//!
//! A text file does not state these facts, so a caller declares them where the usual ones do not fit. Without
//! a declared header, the first row holds the names of the columns. Names are public, so the separator of the
//! first row may be looked for in it. With a declared header, the first row is a record. Then nothing is
//! looked for: the separator is the declared one, or a tab if the name of the file ends in `.tsv`.

use std::{borrow::Cow, fmt, str::FromStr};

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
    /// If omitted, it is found in the row of names: a comma, a semicolon or a tab. With a declared header it is
    /// needed, unless the name of the file ends in `.tsv`.
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
    /// The character before the decimals of a number: a point by default, or a comma.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decimal: Option<Decimal>,
    /// How letters are written as bytes: UTF-8 by default, or Latin-1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
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
        let writing = self.writing();
        let numbers = texts.iter().filter_map(|text| writing.number(text.as_bytes())).collect();
        Marks { texts, numbers, writing }
    }

    /// How numbers and letters are written.
    pub(in crate::data) fn writing(&self) -> Writing {
        Writing { decimal: self.decimal.unwrap_or_default(), encoding: self.encoding.unwrap_or_default() }
    }
}

/// The character before the decimals of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decimal {
    /// 2.5
    #[default]
    #[serde(rename = ".")]
    Point,
    /// 2,5. A cell with a point is no number then.
    #[serde(rename = ",")]
    Comma,
}

impl FromStr for Decimal {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "." => Ok(Self::Point),
            "," => Ok(Self::Comma),
            _ => Err(Error::Setting {
                name: "decimal",
                found: crate::error::quoted(text),
                expected: "a point or a comma",
            }),
        }
    }
}

/// How letters are written as bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    /// UTF-8. Bytes that are no UTF-8 are read as U+FFFD.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// Latin-1 as Windows writes it (code page 1252): one byte for each letter.
    #[serde(rename = "latin-1", alias = "windows-1252")]
    Latin1,
}

impl FromStr for Encoding {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text.to_ascii_lowercase().as_str() {
            "utf-8" | "utf8" => Ok(Self::Utf8),
            "latin-1" | "latin1" | "iso-8859-1" | "windows-1252" | "cp1252" => Ok(Self::Latin1),
            _ => Err(Error::Setting {
                name: "encoding",
                found: crate::error::quoted(text),
                expected: "utf-8 or latin-1",
            }),
        }
    }
}

/// The letters of the bytes 0x80 to 0x9f in code page 1252. Five of the bytes have no letter.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// How the numbers and letters of a text file are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::data) struct Writing {
    decimal: Decimal,
    encoding: Encoding,
}

impl Writing {
    /// Returns a cell as a number, if it is a finite number.
    pub(in crate::data) fn number(self, cell: &[u8]) -> Option<f64> {
        let cell = std::str::from_utf8(cell).ok()?;
        let number = match self.decimal {
            Decimal::Point => cell.parse(),
            Decimal::Comma if cell.contains('.') => return None,
            Decimal::Comma => cell.replacen(',', ".", 1).parse(),
        };
        number.ok().filter(|number: &f64| number.is_finite())
    }

    /// Returns a cell as text.
    pub(in crate::data) fn text(self, cell: &[u8]) -> Cow<'_, str> {
        match self.encoding {
            Encoding::Latin1 if !cell.is_ascii() => {
                let letter = |byte: &u8| match byte {
                    0x80..=0x9f => WINDOWS[usize::from(byte - 0x80)],
                    byte => char::from(*byte),
                };
                Cow::Owned(cell.iter().map(letter).collect())
            }
            Encoding::Utf8 | Encoding::Latin1 => String::from_utf8_lossy(cell),
        }
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

/// The texts and numbers that stand for missing cells, and how all others are written.
#[derive(Clone, Debug, Default)]
pub(in crate::data) struct Marks {
    texts: Vec<String>,
    numbers: Vec<f64>,
    pub(in crate::data) writing: Writing,
}

impl Marks {
    pub(in crate::data) fn has_text(&self, cell: &[u8]) -> bool {
        self.texts.iter().any(|text| text.as_bytes() == cell)
    }

    pub(in crate::data) fn has_number(&self, number: f64) -> bool {
        self.numbers.contains(&number)
    }
}
