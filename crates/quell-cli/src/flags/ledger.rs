//! Finds the ledgers of a project, and reports when one of them refuses a plan.

use std::path::Path;

use anyhow::{Context, Result};
use quell::{
    data,
    run::{Folder, Job},
};
use quell_ledger::{Location, Store, Volume};
use quell_privacy::{
    ledger::{Book as _, Ledger, Note, Spent, Terms, Unit},
    number::{Toward, format_exact, format_rounded},
};

use crate::{author, print, refusal::Refusal};

/// Which ledger.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LedgerArgs {
    /// Directory, file or postgres:// address of the ledgers
    ///
    /// A file that ends in .url contains the address. If not given: the variable `QUELL_LEDGER`, or .quell.
    #[arg(long = "ledger", value_name = "WHERE")]
    location: Option<String>,
}

/// The name of a dataset's ledger, and names that it may have had before.
#[derive(Clone, Debug)]
pub(crate) struct Dataset {
    pub(crate) name: String,
    /// Names that earlier versions used. Empty if the user names the ledger.
    pub(crate) former: Vec<String>,
}

impl Dataset {
    /// Returns the named dataset, or that of a file or folder.
    ///
    /// Returns `None` if neither has a name.
    pub(crate) fn of(named: Option<&String>, path: &Path) -> Option<Self> {
        if let Some(name) = named {
            return Some(Self::named(name));
        }
        data::name_of(path).map(|name| Self { name, former: data::former_names(path) })
    }

    /// Returns the dataset that the user names.
    pub(crate) fn named(name: &str) -> Self {
        Self { name: name.to_owned(), former: Vec::new() }
    }

    /// Returns the dataset of a job.
    pub(crate) fn of_job(job: &impl Job) -> Self {
        Self { name: job.dataset(), former: job.former_names() }
    }

    /// Returns the dataset that paid for a run, or that of its job before payment.
    pub(crate) fn of_run(folder: &Folder, job: &impl Job) -> Self {
        folder.paid().map_or_else(|_| Self::of_job(job), |paid| Self::named(&paid.receipt.dataset))
    }

    /// Refuses if a ledger exists under a former name: its charges would be forgotten.
    fn check(&self, store: &mut Store) -> Result<()> {
        for former in &self.former {
            if store.has(former)? {
                let name = &self.name;
                let sentence = format!(
                    "there is a ledger named {former:?}; earlier versions used this name for the data that is now called {name:?}, and the charges of {former:?} must still count"
                );
                let hint = format!(
                    "continue with this ledger by --dataset {former}; if it belongs to other data, use --dataset {name} (in the config.toml of a run: dataset under [data])"
                );
                return Err(Refusal::new(sentence, hint).into());
            }
        }
        Ok(())
    }
}

impl LedgerArgs {
    pub(crate) fn location(&self) -> Location {
        let named = self
            .location
            .clone()
            .or_else(|| std::env::var("QUELL_LEDGER").ok().filter(|value| !value.is_empty()));
        match Location::from(named.as_deref().unwrap_or(".quell")) {
            // A name without an extension is a directory, whether it exists yet or not.
            Location::File(path) if path.extension().is_none() && !path.is_file() => {
                Location::File(path.join("ledger.db"))
            }
            location => location,
        }
    }

    /// Opens the store. Creates the store and its directory if they do not exist.
    pub(crate) fn make(&self) -> Result<Store> {
        let location = self.location();
        if let Location::File(path) = &location
            && let Some(directory) = path.parent()
        {
            std::fs::create_dir_all(directory)
                .with_context(|| format!("cannot create the directory {}", directory.display()))?;
        }
        Ok(Store::create(location)?)
    }

    pub(crate) fn store(&self) -> Result<Store> {
        Ok(Store::open(self.location())?)
    }

    /// Opens the ledger of a dataset, and creates it with these terms if none exists.
    ///
    /// A ledger that is created for `public` data is a demonstration.
    pub(crate) fn open_or_create(
        &self,
        dataset: &Dataset,
        terms: impl FnOnce() -> Result<Terms>,
        public: bool,
    ) -> Result<Ledger<Volume>> {
        let mut store = self.make()?;
        dataset.check(&mut store)?;
        let name = dataset.name.as_str();
        if store.has(name)? {
            return Ok(Ledger::open(store.book(name)?)?);
        }
        let terms = terms()?;
        let (budget, delta) = (format_exact(terms.budget.cap()), format_exact(terms.budget.delta.get()));
        let ledger = Ledger::create(signed(store.book(name)?), terms)?;
        let demonstration = if public {
            "; this ledger is a demonstration with a large budget, because the embedded digits are public"
        } else {
            ""
        };
        let location = self.location();
        print::status(&format!(
            "created a ledger for {name:?} at {location}: ε ≤ {budget} for all releases together, at δ = {delta}{demonstration}"
        ));
        Ok(ledger)
    }

    /// Opens the ledger of a dataset, if it exists. Creates nothing.
    pub(crate) fn existing(&self, dataset: &Dataset) -> Result<Option<Ledger<Volume>>> {
        if let Location::File(path) = self.location()
            && !path.exists()
        {
            return Ok(None);
        }
        let mut store = self.store()?;
        dataset.check(&mut store)?;
        let name = dataset.name.as_str();
        Ok(if store.has(name)? { Some(Ledger::open(store.book(name)?)?) } else { None })
    }

    /// Opens the ledger of a dataset, which must exist.
    pub(crate) fn ledger(&self, dataset: &Dataset) -> Result<Ledger<Volume>> {
        let mut store = self.store()?;
        dataset.check(&mut store)?;
        // If this dataset has no ledger, the error lists the datasets that have one.
        store.entries(&dataset.name)?;
        Ok(Ledger::open(store.book(&dataset.name)?)?)
    }

    /// Opens the ledger of a dataset for questions that count records.
    ///
    /// Refuses a ledger that protects users, unless each user has one record.
    pub(crate) fn ledger_of_records(
        &self,
        dataset: &Dataset,
        is_limited: bool,
        hint: &str,
    ) -> Result<Ledger<Volume>> {
        if let Location::File(path) = self.location()
            && !path.exists()
        {
            let sentence = format!("there is no ledger at {}", path.display());
            let hint = format!(
                "create one with the budget of all releases: quell ledger create {} --epsilon 3 --delta 1e-6",
                quoted(&dataset.name)
            );
            return Err(Refusal::new(sentence, hint).into());
        }
        let mut ledger = self.ledger(dataset)?;
        if ledger.state()?.terms().unit == Unit::User && !is_limited {
            let sentence = format!(
                "the ledger of {:?} protects users, and a user may have several records in the table",
                dataset.name
            );
            return Err(Refusal::new(sentence, hint).into());
        }
        Ok(ledger)
    }
}

/// A name as a word of a command line.
fn quoted(name: &str) -> String {
    let is_plain = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c));
    if is_plain { name.to_owned() } else { format!("'{}'", name.replace('\'', "'\\''")) }
}

/// The book, with the name of the user for the lines that it writes next.
pub(crate) fn signed(mut book: Volume) -> Volume {
    book.annotate(&Note { by: author::name(), ..Note::default() });
    book
}

/// Prints what a ledger would have spent after a plan, if the ledger exists.
///
/// Refuses a plan that the ledger would refuse.
pub(crate) fn preview(
    ledgers: &LedgerArgs,
    dataset: &Dataset,
    quote: impl FnOnce(&mut Ledger<Volume>) -> Result<Spent>,
    smaller: &str,
    public: bool,
) -> Result<()> {
    let Some(mut ledger) = ledgers.existing(dataset)? else { return Ok(()) };
    let after = quote(&mut ledger)?;
    let name = dataset.name.as_str();
    check_budget(&mut ledger, name, after, smaller, public)?;
    let state = ledger.state()?;
    let (before, after) =
        (format_rounded(state.spent().epsilon, 4, Toward::Up), format_rounded(after.epsilon, 4, Toward::Up));
    print::status(&format!(
        "this run would raise the spent ε of {name:?} from {before} to {after}; {}",
        print::budget(state.budget().cap())
    ));
    Ok(())
}

/// Refuses a plan that would exceed the budget, before anything is created for it.
pub(crate) fn check_budget(
    ledger: &mut Ledger<Volume>,
    name: &str,
    after: Spent,
    smaller: &str,
    public: bool,
) -> Result<()> {
    let (spent, budget) = (ledger.state()?.spent().epsilon, ledger.state()?.budget().cap());
    let fits = after.epsilon <= budget;
    if fits {
        return Ok(());
    }
    let hint = if public {
        "the budget of the demonstration is used up; delete .quell, or use another ledger with --ledger"
            .to_owned()
    } else {
        format!("{smaller}, or raise the budget with `quell ledger raise {name}`")
    };
    let refused = quell_privacy::Error::Refused { would_be: after.epsilon, spent, budget };
    Err(Refusal::new(refused.to_string(), hint).denied().into())
}
