//! Private statistics of a table, and the private accuracy of a model.
//!
//! A [`Question`] names a [`Statistic`] and its ε, a mechanism answers it, and the [`Answer`] states its
//! error.
//!
//! ```
//! use quell::{
//!     data::Table,
//!     ledger::InMemory,
//!     privacy::{mechanism::Bounds, units::{Delta, Epsilon}},
//!     statistics::{Question, Statistic},
//! };
//! # let folder = std::env::temp_dir().join(format!("quell-statistics-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let path = folder.join("people.csv");
//! std::fs::write(&path, "age\n36\n41\n17\n")?;
//! let people = Table::open(&path)?;
//! let mut ledger = InMemory::ledger("people", Epsilon::new(1.0)?, Delta::new(1e-6)?)?;
//! let mean = Statistic::Mean { column: "age".into(), bounds: Bounds::new(0.0, 120.0)? };
//! let answer = Question::new(mean, 0.5).ask(&mut ledger, &people.all())?;
//! println!("{answer}");
//! assert!(Question::new(Statistic::Count, 0.6).ask(&mut ledger, &people.all()).is_err(), "0.5 is left");
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accuracy;
mod answer;
mod bins;
mod columns;
mod groups;
mod plan;
mod question;

pub use accuracy::{Accuracy, Score};
pub use answer::{Answer, Named};
pub use bins::Bins;
pub use columns::{ColumnValues, Columns, ColumnsPlan, Found, Unknown, WIDEST};
pub use groups::{Axis, Grouped, Partition};
pub use plan::{Part, Plan};
pub use question::{Question, Statistic, Visitor};
