//! Where the ledgers of a project are, and what is said when one of them refuses.

use anyhow::{Context, Result};
use quell_ledger::{Location, Store, Volume};
use quell_privacy::{
    ledger::{Ledger, Spent, Terms},
    number::{Toward, given, rounded},
};

use crate::{payment, print, refusal::Refusal};

/// Which ledger.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Purse {
    /// Directory, file or postgres:// address of the ledgers, or a .url file that holds the address (the variable `QUELL_LEDGER`, or .quell, if not given)
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

    /// The ledger of a dataset; opened with these terms if there is none. `public` data makes it a demonstration.
    pub(crate) fn open_or_create(
        &self,
        name: &str,
        terms: impl FnOnce() -> Result<Terms>,
        public: bool,
    ) -> Result<Ledger<Volume>> {
        let mut store = self.make()?;
        if store.has(name)? {
            return Ok(Ledger::open(store.book(name)?)?);
        }
        let terms = terms()?;
        let (budget, delta) = (given(terms.budget.cap()), given(terms.budget.delta.get()));
        let ledger = Ledger::create(store.book(name)?, terms)?;
        let demonstration =
            if public { "; the embedded digits are public, so it is a demonstration with a large budget" } else { "" };
        let location = self.location();
        print::note(&format!("opened a ledger for {name:?} at {location}: ε ≤ {budget} in all, at δ = {delta}{demonstration}"));
        Ok(ledger)
    }

    /// The ledger of a dataset, if there is one. Nothing is made.
    pub(crate) fn existing(&self, dataset: &str) -> Result<Option<Ledger<Volume>>> {
        if let Location::File(path) = self.location()
            && !path.exists()
        {
            return Ok(None);
        }
        let mut store = self.store()?;
        Ok(if store.has(dataset)? { Some(Ledger::open(store.book(dataset)?)?) } else { None })
    }

    /// The ledger of a dataset that has one.
    pub(crate) fn ledger(&self, dataset: &str) -> Result<Ledger<Volume>> {
        let mut store = self.store()?;
        // Names the datasets there are, where this is none of them.
        store.entries(dataset)?;
        Ok(Ledger::open(store.book(dataset)?)?)
    }
}

/// Says what a plan would bring a ledger to, if there is one; refuses a plan that it would refuse.
pub(crate) fn preview(
    purse: &Purse,
    name: &str,
    quote: impl FnOnce(&mut Ledger<Volume>) -> Result<Spent>,
    smaller: &str,
    public: bool,
) -> Result<()> {
    let Some(mut ledger) = purse.existing(name)? else { return Ok(()) };
    let after = quote(&mut ledger)?;
    afford(&mut ledger, name, after, smaller, public)?;
    let state = ledger.state()?;
    let (before, after) = (rounded(state.spent().epsilon, 4, Toward::Up), rounded(after.epsilon, 4, Toward::Up));
    print::note(&format!("ledger of {name:?}: ε would rise from {before} to {after}, {}", payment::budget(state.budget().cap())));
    Ok(())
}

/// Refuses a plan after which more would be spent than the budget bears, before anything is made for it.
pub(crate) fn afford(ledger: &mut Ledger<Volume>, name: &str, after: Spent, smaller: &str, public: bool) -> Result<()> {
    let (spent, budget) = (ledger.state()?.spent().epsilon, ledger.state()?.budget().cap());
    let fits = after.epsilon <= budget;
    if fits {
        return Ok(());
    }
    let hint = if public {
        "the demonstration's budget is used up; delete .quell, or keep another ledger with --ledger".to_owned()
    } else {
        format!("{smaller}, or raise the budget with `quell ledger raise {name}`")
    };
    let refused = quell_privacy::Error::Refused { would_be: after.epsilon, spent, budget };
    Err(Refusal::new(refused.to_string(), hint).final_word().into())
}
