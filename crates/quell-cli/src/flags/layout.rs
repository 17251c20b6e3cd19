//! Flags that say how a text table is written.

use quell::data::{Decimal, Delimiter, Encoding, Layout};

/// How a text table is written, where its file does not tell.
#[derive(clap::Args)]
pub(crate) struct LayoutArgs {
    /// Character between cells, or the word tab
    ///
    /// If not given: found in the header of the file. Needed with --header, unless the file is named .tsv.
    #[arg(long, value_name = "CHARACTER")]
    delimiter: Option<Delimiter>,
    /// Names of all columns in order, for a file without a header
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    header: Vec<String>,
    /// Character before decimals: a point, or a comma as in 2,5
    #[arg(long, value_name = "CHARACTER")]
    decimal: Option<Decimal>,
    /// How letters are written: utf-8, or latin-1 as by older programs on Windows
    #[arg(long, value_name = "NAME")]
    encoding: Option<Encoding>,
    /// Cells that count as missing, separated by commas, such as ?
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', allow_hyphen_values = true)]
    missing: Vec<String>,
}

impl LayoutArgs {
    /// The flags that are given.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            ("--delimiter", self.delimiter.is_some()),
            ("--header", !self.header.is_empty()),
            ("--decimal", self.decimal.is_some()),
            ("--encoding", self.encoding.is_some()),
            ("--missing", !self.missing.is_empty()),
        ];
        all.into_iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }

    pub(crate) fn layout(&self) -> Layout {
        Layout {
            delimiter: self.delimiter,
            quotes: None,
            header: Some(self.header.clone()).filter(|names| !names.is_empty()),
            decimal: self.decimal,
            encoding: self.encoding,
            missing: self.missing.clone(),
        }
    }

    /// What the flags declare, and what a schema declares besides.
    pub(crate) fn over(&self, declared: Option<&Layout>) -> Layout {
        let (given, declared) = (self.layout(), declared.cloned().unwrap_or_default());
        Layout {
            delimiter: given.delimiter.or(declared.delimiter),
            quotes: declared.quotes,
            header: given.header.or(declared.header),
            decimal: given.decimal.or(declared.decimal),
            encoding: given.encoding.or(declared.encoding),
            missing: if given.missing.is_empty() { declared.missing } else { given.missing },
        }
    }
}
