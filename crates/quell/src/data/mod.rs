//! Records: [`Table`]s from CSV and Parquet with rows selected from them, and [`Examples`] that a learner trains on, which
//! [`open`] reads from tables, arrays and pictures.
//!
//! Values go to the caller as they are: this is the room for people's data. What the caller may *learn for free* is public
//! only: names and declared types of columns. A type is never guessed from values, a cell that is not what it is read as
//! is missing, and no error depends on a record; otherwise an error message would be a release that nobody paid for.
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

mod array;
mod cifar;
mod csv;
mod dataset;
mod digits;
mod encoder;
mod examples;
mod folder;
mod header;
mod idx;
mod image;
mod memory;
mod npy;
mod numpy;
mod parquet;
mod predicate;
mod row;
mod rows;
mod scaling;
mod schema;
mod selection;
mod split;
mod stream;
mod table;
mod users;

pub use dataset::{Dataset, Options, name_of, open, shares_records, unlabelled};
pub use digits::digits;
pub use examples::{Examples, Targets};
pub use header::{Column, Kind, Use};
pub use predicate::Predicate;
pub use row::Row;
pub use scaling::Scaling;
pub use schema::{Feature, Label, Schema, TestPart};
pub use selection::Selection;
pub use split::Split;
pub use table::Table;
