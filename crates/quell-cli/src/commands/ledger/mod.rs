//! `quell ledger`: manages budgets, shows what was spent, and verifies the ledger's integrity.

mod export;
mod verify;
mod view;

use anyhow::Result;
use clap::ValueEnum;
use quell_privacy::{
    ledger::{Budget, Composition, Ledger, Line, Note, Promise, State, Terms, Unit},
    number::{Toward, format_exact, format_rounded},
    units::{Delta, Epsilon},
};

use crate::{
    author,
    flags::{
        Format,
        event::Relation,
        ledger::{Dataset, LedgerArgs, signed},
    },
    print,
    refusal::Refusal,
};

use export::Export;
use verify::Verify;
use view::{list, show, statement};

const EXAMPLES: &str = "\
Examples:
  quell ledger create census --epsilon 3 --delta 1e-6
  quell ledger list
  quell ledger show census
  quell ledger statement census
  quell ledger raise census --epsilon 4 --reason \"approved by the review board\"
  quell ledger export census --output census.ledger.json
  quell ledger export --into archive
  quell ledger verify --export census.ledger.json";

/// Manage the privacy budgets of datasets
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Create a ledger for a dataset, with a budget and a privacy unit
    Create(Create),
    /// List all datasets with their budgets
    List(Listed),
    /// Show the lines of a ledger
    Show(Named),
    /// State the privacy guarantee of a dataset, in sentences
    Statement(Named),
    /// Check ledgers for edits, deletions and truncation
    ///
    /// Exit code 1 means that a ledger was changed.
    Verify(Verify),
    /// Change the budget of a dataset
    ///
    /// After the first charge, the promise has the largest ε of all budgets since then, rounded up to a whole number if
    /// the budget was raised. Its δ counts once for the first budget, and once more for each whole ε above it.
    Raise(Raise),
    /// Export all lines of a ledger with its signed head
    Export(Export),
    /// Allow a PostgreSQL role to append to the ledgers, and nothing else
    Grant(Grant),
}

#[derive(clap::Args)]
struct Create {
    /// Name of the dataset
    dataset: String,
    /// Largest ε of all releases together
    #[arg(
        long,
        value_name = "E",
        allow_negative_numbers = true,
        required_unless_present = "no_cap",
        conflicts_with = "no_cap"
    )]
    epsilon: Option<f64>,
    /// Set no cap; nothing is promised (for public data and tests)
    #[arg(long)]
    no_cap: bool,
    /// δ of the budget
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: f64,
    /// Privacy unit: who is protected
    #[arg(long, value_enum, default_value_t)]
    unit: UnitArg,
    /// Theorem that composes the costs of plans
    ///
    /// With combined, Gaussian DP gets 80 % of δ, Rényi DP gets 10 %, and the rest is for releases with a δ of their own.
    #[arg(long, value_enum, default_value_t)]
    composition: CompositionArg,
    #[command(flatten)]
    relation: Relation,
    #[command(flatten)]
    ledgers: LedgerArgs,
}

/// Whose data a guarantee protects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum UnitArg {
    /// One record.
    #[default]
    Example,
    /// One person with all their records.
    User,
}

/// Theorem that composes the costs of plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum CompositionArg {
    /// The smallest bound of the others.
    #[default]
    // Earlier versions called this variant `best`.
    #[value(alias = "best")]
    Combined,
    /// Gaussian DP, or addition of ε.
    Gaussian,
    /// Rényi DP, or addition of ε.
    Renyi,
    /// Addition of ε.
    Addition,
}

#[derive(clap::Args)]
struct Listed {
    #[command(flatten)]
    ledgers: LedgerArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(clap::Args)]
struct Named {
    /// Name of the dataset
    dataset: String,
    #[command(flatten)]
    listed: Listed,
}

#[derive(clap::Args)]
struct Raise {
    /// Name of the dataset
    dataset: String,
    /// New ε of the budget
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: f64,
    /// New δ of the budget (the old δ if not given)
    ///
    /// After the first charge, the new δ must not exceed the old δ.
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: Option<f64>,
    /// Reason for the change, for the auditor
    #[arg(long)]
    reason: String,
    /// Accept that the δ of the promise grows, or that the promise ends
    #[arg(long)]
    accept: bool,
    #[command(flatten)]
    ledgers: LedgerArgs,
}

#[derive(clap::Args)]
struct Grant {
    /// Name of an existing role of the server
    role: String,
    #[command(flatten)]
    ledgers: LedgerArgs,
}

/// Runs the command. Returns false if verification or export has findings.
pub(crate) fn run(flags: Flags) -> Result<bool> {
    match flags.verb {
        Verb::Create(create) => create.run().map(|()| true),
        Verb::List(listed) => list(&listed).map(|()| true),
        Verb::Show(named) => show(&named).map(|()| true),
        Verb::Statement(named) => statement(&named).map(|()| true),
        Verb::Verify(verify) => verify.run(),
        Verb::Raise(raise) => raise.run().map(|()| true),
        Verb::Export(export) => export.run(),
        Verb::Grant(grant) => grant.run().map(|()| true),
    }
}

impl Create {
    fn run(self) -> Result<()> {
        let budget =
            Budget { epsilon: self.epsilon.map(Epsilon::new).transpose()?, delta: Delta::new(self.delta)? };
        let unit = match self.unit {
            UnitArg::Example => Unit::Example,
            UnitArg::User => Unit::User,
        };
        let composition = match self.composition {
            CompositionArg::Combined => Composition::Combined,
            CompositionArg::Gaussian => Composition::Gaussian,
            CompositionArg::Renyi => Composition::Renyi,
            CompositionArg::Addition => Composition::Addition,
        };
        let terms = Terms {
            dataset: self.dataset.clone(),
            unit,
            neighbors: self.relation.neighbors(),
            budget,
            composition,
        };
        let store = self.ledgers.make()?;
        Ledger::create(signed(store.book(&self.dataset)?), terms)?;
        let when = if unit == Unit::User {
            self.relation.when().replace("record", "user")
        } else {
            self.relation.when().into()
        };
        let delta = format_exact(self.delta);
        let budget = match self.epsilon {
            Some(cap) => {
                format!("ε ≤ {} for all releases together, at δ = {delta}, {when}", format_exact(cap))
            }
            None => format!("no cap at δ = {delta}, {when}; nothing is promised"),
        };
        print::status(&format!("created a ledger for {:?} at {}: {budget}", self.dataset, store.location()));
        Ok(())
    }
}

impl Raise {
    fn run(self) -> Result<()> {
        let mut ledger = self.ledgers.ledger(&Dataset::named(&self.dataset))?;
        let old = ledger.state()?.budget();
        let delta = self.delta.map_or(Ok(old.delta), Delta::new)?;
        let budget = Budget { epsilon: Some(Epsilon::new(self.epsilon)?), delta };
        if !self.accept {
            self.check_promise(ledger.state()?, budget)?;
        }
        let before = ledger.state()?.promise();
        ledger.annotate(&Note { by: author::name(), ..Note::default() });
        let receipt = ledger.raise(budget, &self.reason)?;
        let state = ledger.state()?;
        print::status(&format!(
            "changed the budget of {:?} in line {}: ε ≤ {} at δ = {}",
            self.dataset,
            receipt.entry,
            format_exact(self.epsilon),
            format_exact(delta.get())
        ));
        match state.promise() {
            Ok(promise) => {
                let change = match before {
                    Ok(before) if before.delta < promise.delta => {
                        format!("; its δ grows from {} to {}", delta_of(before), delta_of(promise))
                    }
                    Ok(before) if before.delta > promise.delta => {
                        format!("; its δ falls from {} to {}", delta_of(before), delta_of(promise))
                    }
                    Ok(_) => "; its δ stays the same".into(),
                    Err(_) => String::new(),
                };
                print::status(&format!(
                    "the promise for all releases from this dataset is {}{change}",
                    format_promise(promise)
                ));
            }
            Err(why) => print::status(&format!("nothing is promised: {why}")),
        }
        Ok(())
    }

    /// Refuses a budget that would raise the δ of the promise, or end the promise.
    fn check_promise(&self, state: &State, budget: Budget) -> Result<()> {
        let Ok(before) = state.promise() else { return Ok(()) };
        let mut after = state.clone();
        after.apply(&Line::Raised { budget, reason: self.reason.clone() })?;
        let would_be = match after.promise() {
            Ok(after) if after.delta <= before.delta => return Ok(()),
            Ok(after) => format_promise(after),
            Err(why) => format!("nothing: {why}"),
        };
        let sentence =
            format!("this budget would change the promise from {} to {would_be}", format_promise(before));
        Err(Refusal::new(
            sentence,
            "results may have been seen, so δ counts for every budget that could have been set; to change the budget anyway, add --accept",
        )
        .into())
    }
}

fn format_promise(promise: Promise) -> String {
    format!("ε ≤ {} at δ = {}", format_exact(promise.epsilon), delta_of(promise))
}

fn delta_of(promise: Promise) -> String {
    format_rounded(promise.delta, 4, Toward::Up)
}

impl Grant {
    fn run(self) -> Result<()> {
        let mut store = self.ledgers.store()?;
        store.grant(&self.role)?;
        print::status(&format!(
            "role {:?} may append to the ledgers at {}, and nothing else",
            self.role,
            store.location()
        ));
        Ok(())
    }
}
