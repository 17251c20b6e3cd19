//! Errors of the library as exceptions of `quell.errors`, with their hints.

use pyo3::{prelude::*, sync::PyOnceLock, types::PyType};
use quell::{Hint, Input};

/// An error on its way to Python.
pub(crate) enum Error {
    /// An error of the library.
    Quell(quell::Error),
    /// An error of the store of ledgers.
    Ledger(quell_ledger::Error),
    /// A setting that is no valid JSON or TOML, or a file that cannot be used: the class, and the message.
    Other(&'static str, String),
    /// The class, the message, and a hint in the words of the Python package.
    Hinted(&'static str, String, String),
    /// An exception of a Python function that was called.
    Python(PyErr),
    /// An error of the privacy crate, and a hint in Python words in place of the library's own.
    Privacy(quell_privacy::Error, &'static str),
}

/// The result of a function that Python calls.
pub(crate) type Result<T> = std::result::Result<T, Error>;

impl From<quell::Error> for Error {
    fn from(error: quell::Error) -> Self {
        Self::Quell(error)
    }
}

impl From<quell_privacy::Error> for Error {
    fn from(error: quell_privacy::Error) -> Self {
        Self::Quell(error.into())
    }
}

impl From<quell_ledger::Error> for Error {
    fn from(error: quell_ledger::Error) -> Self {
        Self::Ledger(error)
    }
}

impl From<PyErr> for Error {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<serde_json::Error> for Error {
    /// A setting from Python that the library does not know.
    fn from(error: serde_json::Error) -> Self {
        let text = error.to_string();
        // Where an error is in the JSON helps nobody who wrote none.
        let said = text.split(" at line ").next().unwrap_or_default();
        Self::Other("SettingError", said.to_owned())
    }
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::Python(error) => error,
            Error::Privacy(error, hint) => {
                let error = quell::Error::from(error);
                raise(class(&error), error.to_string(), Some(hint.to_owned()))
            }
            Error::Other(class, message) => raise(class, message, None),
            Error::Hinted(class, message, hint) => raise(class, message, Some(hint)),
            Error::Ledger(error) => {
                let text = error.to_string();
                let (message, hint) = text.split_once("\nhint: ").unwrap_or((&text, ""));
                let hint = Some(ledger_hint(&error, hint)).filter(|hint| !hint.is_empty());
                raise("LedgerError", message.to_owned(), hint)
            }
            Error::Quell(error) => {
                let hint = error.hint().map(|hint| phrase(&hint));
                raise(class(&error), error.to_string(), hint)
            }
        }
    }
}

/// The class of `quell.errors` for an error of the library.
fn class(error: &quell::Error) -> &'static str {
    use quell_privacy::Error as Privacy;
    match error {
        quell::Error::Privacy(Privacy::Refused { .. }) => "BudgetError",
        quell::Error::Privacy(Privacy::Unsupported { .. }) => "UnsupportedError",
        quell::Error::Privacy(Privacy::Book { .. }) | quell::Error::OtherTerms { .. } => "LedgerError",
        quell::Error::Format(_) | quell::Error::Table(_) | quell::Error::Sizes { .. } => "DataError",
        quell::Error::Run(_) | quell::Error::SavedState { .. } => "RunError",
        quell::Error::Absent { .. }
        | quell::Error::Unreadable { .. }
        | quell::Error::Unwritable { .. }
        | quell::Error::TooLong { .. } => "FileError",
        _ => "SettingError",
    }
}

/// Phrases a hint in the words of the Python package. Hints that name nothing of it have the words of the library.
fn phrase(hint: &Hint) -> String {
    match hint {
        Hint::ChooseModel => "quell.models() lists the models; settings={\"model\": {\"layers\": …}} gives layers".into(),
        Hint::DeclareClasses => {
            "declare the classes with classes=[…]; they are not read from the records, because that would reveal something about them".into()
        }
        Hint::DeclareImages => "declare the classes with classes=[…], and the shape of images".into(),
        Hint::WriteSchema { .. } => "describe the columns with quell.Schema.of, or release them with quell.find_schema".into(),
        Hint::ResumeRun { .. } => "choose another output=, or continue with quell.resume".into(),
        Hint::NameRun | Hint::NameModel => "name the folder of a run, or a model.safetensors".into(),
        Hint::FinishRun { folder } => format!("finish the run with quell.resume({:?}, …)", folder.display().to_string()),
        Hint::SpendLess => "give a smaller epsilon=, or raise the budget with Ledger.set_budget".into(),
        Hint::Give { what: Input::RecordCount } => "give records=, a rough public number".into(),
        Hint::Give { what: Input::Epsilon } => "give epsilon=".into(),
        Hint::Give { what: Input::Users } => {
            "give users=, or a schema with user=, or a ledger that protects one example".into()
        }
        _ => hint.to_string(),
    }
}

/// The hint of an error of the store of ledgers, in the words of the Python package.
fn ledger_hint(error: &quell_ledger::Error, hint: &str) -> String {
    match error {
        quell_ledger::Error::NotFound { .. } => {
            "create one with quell.Ledger.create, or name the folder that holds ledger.db with at=".into()
        }
        _ => hint.to_owned(),
    }
}

/// Makes an exception of `quell.errors`.
fn raise(class: &str, message: String, hint: Option<String>) -> PyErr {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    Python::attach(|py| {
        let module = MODULE.get_or_try_init(py, || PyModule::import(py, "quell.errors").map(Bound::unbind));
        let made = module.and_then(|module| {
            let class = module.bind(py).getattr(class)?.cast_into::<PyType>()?;
            class.call1((message, hint))
        });
        made.map_or_else(|error| error, PyErr::from_value)
    })
}
