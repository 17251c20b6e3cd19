//! Flags that say how a text table is written.

use quell::data::{Delimiter, Layout};

/// How a text table is written, where its file does not tell.
#[derive(clap::Args)]
pub(crate) struct LayoutArgs {
    /// Character between cells, or the word tab
    ///
    /// If not given: found in the header of the file. With --header: a tab for .tsv, and a comma for others.
    #[arg(long, value_name = "CHARACTER")]
    delimiter: Option<Delimiter>,
    /// Names of all columns in order, for a file without a header
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    header: Vec<String>,
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
            ("--missing", !self.missing.is_empty()),
        ];
        all.into_iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }

    pub(crate) fn layout(&self) -> Layout {
        Layout {
            delimiter: self.delimiter,
            quotes: None,
            header: Some(self.header.clone()).filter(|names| !names.is_empty()),
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
            missing: if given.missing.is_empty() { declared.missing } else { given.missing },
        }
    }
}
