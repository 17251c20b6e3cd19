//! Records in memory, for runs that read no file.

use std::{fmt, sync::Arc};

use crate::{
    Error,
    data::{Dataset, Examples, Options, Schema, Table, examples::dataset::of_table},
};

/// Records in memory, and public records to test on. Clones share them.
#[derive(Clone)]
pub struct Records(Arc<Held>);

enum Held {
    Examples { train: Examples, test: Option<Examples> },
    Table { train: Table, test: Option<Table> },
}

impl Records {
    /// Examples, and examples that are public.
    #[must_use]
    pub fn of_examples(train: Examples, public_test: Option<Examples>) -> Self {
        Self(Arc::new(Held::Examples { train, test: public_test }))
    }

    /// A table, and a table of public records with the same columns. A schema describes both.
    #[must_use]
    pub fn of_tables(train: Table, public_test: Option<Table>) -> Self {
        Self(Arc::new(Held::Table { train, test: public_test }))
    }

    /// The public table of records to test on, if the records are a table.
    pub(crate) fn public_table(&self) -> Option<&Table> {
        match &*self.0 {
            Held::Table { test, .. } => test.as_ref(),
            Held::Examples { .. } => None,
        }
    }

    /// The examples, as [`open`](crate::data::open) reads them from a file.
    pub(crate) fn open(&self, options: &Options) -> Result<Dataset, Error> {
        match &*self.0 {
            Held::Examples { train, test } => {
                let others = options.classes.as_deref().is_some_and(|names| train.classes() != Some(names));
                if options.schema.is_some() || others || options.shape.is_some() {
                    let name = "the schema, classes or shape";
                    let expected = "none, or the same: examples in memory have theirs";
                    return Err(Error::Setting { name, found: "given".into(), expected });
                }
                let scaled = |examples: &Examples| match &options.scaling {
                    Some(scaling) => examples.clone().scaled(scaling),
                    None => Ok(examples.clone()),
                };
                let test = test.as_ref().map(scaled).transpose()?;
                let test_is_public = test.is_some();
                Ok(Dataset { name: String::new(), train: scaled(train)?, test, test_is_public })
            }
            Held::Table { train, test } => {
                let dataset = of_table(train, options)?;
                let Some(test) = test else { return Ok(dataset) };
                // The split in the schema applies to the private records only.
                let whole = options.schema.clone().map(|schema| Schema { test: None, ..schema });
                let options = Options { schema: whole, public: true, ..options.clone() };
                let test = Some(of_table(test, &options)?.train);
                Ok(Dataset { test, test_is_public: true, ..dataset })
            }
        }
    }
}

impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Records {
    /// Shows no value and no number of records.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &*self.0 {
            Held::Examples { .. } => "Records(examples)",
            Held::Table { .. } => "Records(table)",
        })
    }
}
