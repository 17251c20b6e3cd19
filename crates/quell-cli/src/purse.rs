//! Where the ledgers of a project are, and what is said when one of them refuses.

use anyhow::{Context, Result};
use quell_ledger::{Location, Store, Volume};
use quell_privacy::ledger::Ledger;

/// Which ledger.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Purse {
    /// Directory, file or postgres:// address of the ledgers (the variable `QUELL_LEDGER`, or .quell, if not given)
    #[arg(long = "ledger", value_name = "WHERE")]
    location: Option<String>,
}

impl Purse {
    pub(crate) fn location(&self) -> Location {
        let named = self.location.clone().or_else(|| std::env::var("QUELL_LEDGER").ok().filter(|value| !value.is_empty()));
        match Location::from(named.as_deref().unwrap_or(".quell")) {
            // A name without an extension is that of a directory, whether it is there yet or not.
            Location::File(path) if path.extension().is_none() && !path.is_file() => Location::File(path.join("ledger.db")),
            location => location,
        }
    }

    /// Opens the store, and makes it, with its directory, if there is none.
    pub(crate) fn make(&self) -> Result<Store> {
        let location = self.location();
        if let Location::File(path) = &location
            && let Some(directory) = path.parent()
        {
            std::fs::create_dir_all(directory).with_context(|| format!("cannot make the directory {}", directory.display()))?;
        }
        Ok(Store::create(location)?)
    }

    pub(crate) fn store(&self) -> Result<Store> {
        Ok(Store::open(self.location())?)
    }

    /// The ledger of a dataset that has one.
    pub(crate) fn ledger(&self, dataset: &str) -> Result<Ledger<Volume>> {
        let mut store = self.store()?;
        // Names the datasets there are, where this is none of them.
        store.entries(dataset)?;
        Ok(Ledger::open(store.book(dataset)?)?)
    }
}
