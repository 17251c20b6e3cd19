//! Ledgers: budgets, charges and statements.

use pyo3::prelude::*;
use quell_ledger::{InMemory, Location, Store, Volume};
use quell_privacy::{
    Statement,
    ledger::{Book, Budget, Ledger, Line, Note, Permit, Receipt, Terms},
    units::{Delta, Epsilon},
};
use serde_json::json;

use crate::{
    error::{Error, Result},
    process::Process,
};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyLedger>()
}

/// The book of a ledger, wherever it is stored.
pub(crate) enum AnyBook {
    Stored(Box<Volume>),
    InMemory(InMemory),
}

impl Book for AnyBook {
    type Error = String;

    fn read(&mut self, from: u64) -> std::result::Result<Vec<Line>, String> {
        match self {
            Self::Stored(book) => book.read(from).map_err(|error| error.to_string()),
            Self::InMemory(book) => book.read(from).map_err(|error| error.to_string()),
        }
    }

    fn append(&mut self, permit: &Permit<'_>) -> std::result::Result<Option<Receipt>, String> {
        match self {
            Self::Stored(book) => book.append(permit).map_err(|error| error.to_string()),
            Self::InMemory(book) => book.append(permit).map_err(|error| error.to_string()),
        }
    }

    fn receipt(&mut self, number: u64) -> std::result::Result<Receipt, String> {
        match self {
            Self::Stored(book) => book.receipt(number).map_err(|error| error.to_string()),
            Self::InMemory(book) => book.receipt(number).map_err(|error| error.to_string()),
        }
    }

    fn annotate(&mut self, note: &Note) {
        match self {
            Self::Stored(book) => book.annotate(note),
            Self::InMemory(book) => book.annotate(note),
        }
    }
}

/// The ledger of one dataset: where it is. Each use opens it again, and checks it from its first line on.
#[pyclass(name = "Ledger", module = "quell._native", frozen)]
pub(crate) struct PyLedger {
    place: Place,
    dataset: String,
}

enum Place {
    /// A store, and the text that names it. The text may contain a password.
    Stored {
        location: Location,
        text: String,
    },
    InMemory {
        book: InMemory,
        process: Process,
    },
}

impl Place {
    /// The place that a text names now: another working directory later names no other ledger.
    fn stored(text: &str) -> Self {
        match location(text) {
            Location::File(path) => {
                let path = std::path::absolute(&path).unwrap_or(path);
                Self::Stored { text: path.display().to_string(), location: Location::File(path) }
            }
            location @ Location::Server(_) => Self::Stored { location, text: text.to_owned() },
        }
    }
}

impl PyLedger {
    fn book(&self) -> Result<AnyBook> {
        Ok(match &self.place {
            Place::Stored { location, .. } => {
                let mut store = Store::open(location.clone())?;
                // If there is no ledger of this name, the error lists those that there are.
                store.entries(&self.dataset)?;
                AnyBook::Stored(Box::new(store.book(&self.dataset)?))
            }
            Place::InMemory { book, process } => {
                process.check("a ledger in memory")?;
                AnyBook::InMemory(book.clone())
            }
        })
    }

    /// Opens the ledger.
    pub(crate) fn open(&self) -> Result<Ledger<AnyBook>> {
        Ok(Ledger::open(self.book()?)?)
    }
}

/// Reads the location of a store. A name without an extension is a folder.
fn location(text: &str) -> Location {
    match Location::from(text) {
        Location::File(path) if path.extension().is_none() && !path.is_file() => {
            Location::File(path.join("ledger.db"))
        }
        location => location,
    }
}

#[pymethods]
impl PyLedger {
    /// Creates the ledger of a dataset. `terms` is the first line, as JSON; without a place it is in memory.
    #[staticmethod]
    fn create(py: Python<'_>, terms: &str, place: Option<&str>, by: Option<String>) -> PyResult<Self> {
        Ok(py.detach(|| -> Result<Self> {
            let terms: Terms = serde_json::from_str(terms)?;
            let dataset = terms.dataset.clone();
            let place = match place {
                Some(text) => Place::stored(text),
                None => Place::InMemory { book: InMemory::new(&dataset), process: Process::this() },
            };
            let mut book = match &place {
                Place::Stored { location, .. } => {
                    if let Location::File(path) = location
                        && let Some(folder) = path.parent()
                    {
                        std::fs::create_dir_all(folder).map_err(|error| {
                            Error::Other(
                                "FileError",
                                format!("{} cannot be created: {error}", folder.display()),
                            )
                        })?;
                    }
                    AnyBook::Stored(Box::new(Store::create(location.clone())?.book(&dataset)?))
                }
                Place::InMemory { book, .. } => AnyBook::InMemory(book.clone()),
            };
            book.annotate(&Note { by, ..Note::default() });
            Ledger::create(book, terms)?;
            Ok(Self { place, dataset })
        })?)
    }

    /// The ledger of a dataset in a store. Opening it checks all lines.
    #[staticmethod]
    fn existing(py: Python<'_>, dataset: String, place: &str) -> PyResult<Self> {
        let found = Self { place: Place::stored(place), dataset };
        py.detach(|| found.open().map(drop))?;
        Ok(found)
    }

    /// Whether a store has a ledger of this name.
    #[staticmethod]
    fn exists(py: Python<'_>, dataset: &str, place: &str) -> PyResult<bool> {
        Ok(py.detach(|| -> Result<bool> {
            let location = location(place);
            if let Location::File(path) = &location
                && !path.exists()
            {
                return Ok(false);
            }
            Ok(Store::open(location)?.has(dataset)?)
        })?)
    }

    /// The name of the dataset.
    #[getter]
    fn dataset(&self) -> &str {
        &self.dataset
    }

    /// Where the ledger is stored; none if it is in memory.
    #[getter]
    fn location(&self) -> Option<String> {
        match &self.place {
            Place::Stored { location: Location::File(path), .. } => {
                let here = std::env::current_dir().ok();
                let path = here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path);
                Some(path.display().to_string())
            }
            Place::Stored { location, .. } => Some(location.to_string()),
            Place::InMemory { .. } => None,
        }
    }

    /// The place with which the ledger can be opened again, for another process; none if it is in memory.
    #[getter]
    fn place(&self) -> Option<&str> {
        match &self.place {
            Place::Stored { text, .. } => Some(text),
            Place::InMemory { .. } => None,
        }
    }

    /// Terms, spent ε, budget and charges, as JSON. An infinite number is null.
    fn state(&self, py: Python<'_>) -> PyResult<String> {
        Ok(py.detach(|| -> Result<String> {
            let mut ledger = self.open()?;
            let state = ledger.state()?;
            let charges: Vec<_> = state
                .charges()
                .iter()
                .map(|account| json!({ "entry": account.entry, "charge": account.charge, "leased": account.leased }))
                .collect();
            let (spent, budget) = (state.spent(), state.budget());
            let state = json!({
                "terms": state.terms(),
                "spent": spent.epsilon,
                "budget": budget,
                "lines": state.lines(),
                "charges": charges,
            });
            Ok(state.to_string())
        })?)
    }

    /// The promise of the ledger, in sentences.
    fn statement(&self, py: Python<'_>) -> PyResult<String> {
        Ok(py.detach(|| -> Result<String> { Ok(Statement::new(self.open()?.state()?)?.to_string()) })?)
    }

    /// Sets another budget. Spent ε stays spent.
    fn set_budget(
        &self,
        py: Python<'_>,
        epsilon: Option<f64>,
        delta: f64,
        reason: &str,
        by: Option<String>,
    ) -> PyResult<()> {
        Ok(py.detach(|| -> Result<()> {
            let budget =
                Budget { epsilon: epsilon.map(Epsilon::new).transpose()?, delta: Delta::new(delta)? };
            let mut ledger = self.open()?;
            ledger.annotate(&Note { by, ..Note::default() });
            ledger.raise(budget, reason)?;
            Ok(())
        })?)
    }
}
