//! Reads records from tables, arrays and images.
//!
//! A [`Table`] is a CSV or Parquet file, and a [`Predicate`] selects rows of it. [`Examples`] are the records
//! that a learner trains on. [`open`] reads them from tables, arrays and images.
//!
//! This module returns private values to the caller. Only public facts are free: the names and the declared
//! types of columns. A type is never inferred from values, a cell that does not have the declared type is
//! missing, and no error depends on a record. Otherwise an error message would be an unpaid release.
//!
//! ```
//! use quell::data::{Predicate, Table};
//! # let folder = std::env::temp_dir().join(format!("quell-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let path = folder.join("people.csv");
//! std::fs::write(&path, "name,age,city\nAda,36,Bern\nBob,,Basel\nEve,17,Bern\n")?;
//! let people = Table::open(&path)?;
//! let in_bern = people.select(&"city = 'Bern'".parse()?)?;
//! assert_eq!(in_bern.numbers("age")?, [Some(36.0), Some(17.0)]);
//! let adults: Predicate = "age >= 18".parse()?;
//! assert_eq!(people.select(&adults)?.count()?, 1);
//! assert_eq!(people.all().numbers("age")?, [Some(36.0), None, Some(17.0)]);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod examples;
mod formats;
mod table;

pub(crate) use examples::dataset::{SYNTHETIC, belongs_to, is_test_part, location, whole};
pub use examples::{
    Examples, Targets,
    dataset::{
        Dataset, Format, Options, former_names, is_same, name_of, open, shares_records, unlabelled,
        unlabelled_in,
    },
    ratings::{RatingColumns, UserRatings},
    records::Records,
    scaling::Scaling,
    split::Split,
};
pub use formats::{
    csv::csv_cell,
    digits::digits,
    error::Error as FormatError,
    folder::{NewPictures, pictures},
};
pub use table::{
    Table,
    date::{DateOrder, DatePart, DateRange, Day},
    error::{Error as TableError, Place},
    feature::{Feature, FeatureKind, Label},
    fit::{Fit, Misfit, MisfitKind},
    header::{Column, Kind, Use},
    layout::{Decimal, Delimiter, Encoding, Layout},
    memory::{ColumnCells, Scalar},
    predicate::Predicate,
    row::Row,
    schema::{Schema, TestPart, unscaled},
    selection::Selection,
    text::TextFeatures,
};
pub(crate) use table::{feature::TRUTHS, predicate::Filter, selection::fractions_as_keys};
