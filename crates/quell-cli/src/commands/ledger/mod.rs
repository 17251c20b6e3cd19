//! `quell ledger`: manages budgets, shows what was spent, and verifies the ledger's integrity.

mod export;
mod verify;

use anyhow::Result;
use clap::ValueEnum;
use quell_ledger::Entry;
use quell_privacy::{
    Statement,
    ledger::{Budget, Composition, Ledger, Line, Promise, State, Terms, Unit},
    number::{Toward, format_exact, format_rounded},
    units::{Delta, Epsilon},
};
use serde_json::{Value, json};

use crate::{
    flags::{
        Format,
        event::Relation,
        ledger::{Dataset, LedgerArgs},
    },
    print,
    refusal::Refusal,
};

use export::Export;
use verify::Verify;

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

/// Budgets of datasets: open, look at, check
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Open a ledger for a dataset: what may be spent on it, and whom that protects
    Create(Create),
    /// All datasets, and what is spent
    List(Listed),
    /// The lines of a ledger
    Show(Named),
    /// What was promised, in plain sentences
    Statement(Named),
    /// Look for edits, deletions and truncation; exit code 1 if there are any
    Verify(Verify),
    /// Change a budget; once something was charged, the promise is that of the largest budget, and δ counts once more for each whole ε up to it
    Raise(Raise),
    /// All lines with the signed head, as documents to keep elsewhere
    Export(Export),
    /// Let a role of a PostgreSQL server append to its ledgers, and nothing else
    Grant(Grant),
}

#[derive(clap::Args)]
struct Create {
    /// Name of the dataset
    dataset: String,
    /// Most that all releases together may cost
    #[arg(
        long,
        value_name = "E",
        allow_negative_numbers = true,
        required_unless_present = "no_cap",
        conflicts_with = "no_cap"
    )]
    epsilon: Option<f64>,
    /// No limit and no promise: for public data and tests
    #[arg(long)]
    no_cap: bool,
    /// δ of the budget
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: f64,
    /// Whom it protects
    #[arg(long, value_enum, default_value_t)]
    unit: Whom,
    /// How plans are added up
    #[arg(long, value_enum, default_value_t)]
    composition: Adding,
    #[command(flatten)]
    relation: Relation,
    #[command(flatten)]
    ledgers: LedgerArgs,
}

/// Whose data a guarantee protects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Whom {
    /// One record.
    #[default]
    Example,
    /// One person with all their records.
    User,
}

/// How plans are added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Adding {
    /// Any of the others may grant a plan. Gaussian DP has 80 % of δ, Rényi 10 %, slack the rest.
    #[default]
    // Earlier versions called this variant `best`.
    #[value(alias = "best")]
    Combined,
    /// Gaussian DP, or addition.
    Gaussian,
    /// Rényi divergences, or addition.
    Renyi,
    /// Addition.
    Addition,
}

#[derive(clap::Args)]
struct Listed {
    #[command(flatten)]
    ledgers: LedgerArgs,
    /// How it is written
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
    /// The new cap
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: f64,
    /// The new δ (the old one if not given; no larger than it once something was charged)
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: Option<f64>,
    /// Why, for the auditor
    #[arg(long)]
    reason: String,
    /// Accept that the promise gets a larger δ, or ends
    #[arg(long)]
    accept: bool,
    #[command(flatten)]
    ledgers: LedgerArgs,
}

#[derive(clap::Args)]
struct Grant {
    /// Name of the role, which exists on the server
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

/// Formats ε for people, rounded up.
fn epsilon(value: f64) -> String {
    format_rounded(value, 4, Toward::Up)
}

/// Formats ε for programs. Infinity becomes null, because JSON has no infinity.
fn number(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { Value::Null }
}

impl Create {
    fn run(self) -> Result<()> {
        let budget =
            Budget { epsilon: self.epsilon.map(Epsilon::new).transpose()?, delta: Delta::new(self.delta)? };
        let unit = match self.unit {
            Whom::Example => Unit::Example,
            Whom::User => Unit::User,
        };
        let composition = match self.composition {
            Adding::Combined => Composition::Combined,
            Adding::Gaussian => Composition::Gaussian,
            Adding::Renyi => Composition::Renyi,
            Adding::Addition => Composition::Addition,
        };
        let terms = Terms {
            dataset: self.dataset.clone(),
            unit,
            neighbors: self.relation.neighbors(),
            budget,
            composition,
        };
        let store = self.ledgers.make()?;
        Ledger::create(store.book(&self.dataset)?, terms)?;
        let cap = self.epsilon.map_or_else(
            || "no cap, and no promise".into(),
            |cap| format!("ε ≤ {} in all", format_exact(cap)),
        );
        print::status(&format!(
            "opened a ledger for {:?} at {}: {cap}, at δ = {}, {}",
            self.dataset,
            store.location(),
            format_exact(self.delta),
            if unit == Unit::User {
                self.relation.when().replace("record", "user")
            } else {
                self.relation.when().into()
            }
        ));
        Ok(())
    }
}

fn list(listed: &Listed) -> Result<()> {
    let datasets = listed.ledgers.store()?.datasets()?;
    if listed.format == Format::Json {
        let row = |s: &quell_ledger::Summary| json!({"dataset": s.dataset, "lines": s.lines, "spent": number(s.spent), "cap": number(s.cap), "head": s.head});
        return print::json(&datasets.iter().map(row).collect::<Vec<_>>());
    }
    let mut rows = vec![["dataset", "ε spent", "of", "lines", "head"].map(str::to_owned).to_vec()];
    rows.extend(datasets.into_iter().map(|s| {
        vec![s.dataset, epsilon(s.spent), given_cap(s.cap), s.lines.to_string(), s.head[..16].to_owned()]
    }));
    print::lines(&print::table(&rows, &[1, 2, 3]))
}

fn given_cap(cap: f64) -> String {
    if cap.is_finite() { format_exact(cap) } else { "no cap".into() }
}

fn show(named: &Named) -> Result<()> {
    let entries = named.listed.ledgers.store()?.entries(&named.dataset)?;
    if named.listed.format == Format::Json {
        let row = |e: &Entry| json!({"number": e.number, "time": e.time, "line": e.line, "spent": number(e.spent), "head": e.head});
        return print::json(&entries.iter().map(row).collect::<Vec<_>>());
    }
    let mut rows = vec![["line", "time", "ε after", "what"].map(str::to_owned).to_vec()];
    rows.extend(
        entries.iter().map(|e| vec![e.number.to_string(), e.time.clone(), epsilon(e.spent), words(&e.line)]),
    );
    print::lines(&print::table(&rows, &[0, 2]))
}

/// Describes a line of the ledger in words.
fn words(line: &Line) -> String {
    let budget = |budget: &Budget| {
        format!(
            "{} at δ = {}",
            budget.epsilon.map_or_else(|| "no cap".into(), |e| format!("ε ≤ {}", format_exact(e.get()))),
            format_exact(budget.delta.get())
        )
    };
    match line {
        Line::Opened(terms) => {
            format!("opened: {}, {}, for one {}", budget(&terms.budget), terms.neighbors, terms.unit)
        }
        Line::Charged(charge) => {
            let seeded = if charge.non_private { "NOT PRIVATE (its noise came from a seed): " } else { "" };
            if charge.steps == 1 {
                format!("{seeded}{}", charge.what)
            } else {
                format!("{seeded}{} times: {}", charge.steps, charge.what)
            }
        }
        Line::Leased { charge, until } => format!("line {charge}: steps up to {until} handed out"),
        Line::Confirmed { charge, until } => format!("line {charge}: steps up to {until} confirmed"),
        Line::Raised { budget: new, reason } => format!("budget changed to {}: {reason}", budget(new)),
    }
}

fn statement(named: &Named) -> Result<()> {
    let mut ledger = named.listed.ledgers.ledger(&Dataset::named(&named.dataset))?;
    let statement = Statement::new(ledger.state()?)?;
    if named.listed.format == Format::Json {
        return print::json(&statement);
    }
    print::lines(&statement.to_string())
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
        let receipt = ledger.raise(budget, &self.reason)?;
        let state = ledger.state()?;
        print::status(&format!(
            "line {} of {:?}: at most ε = {} at δ = {} is granted from now on",
            receipt.entry,
            self.dataset,
            format_exact(self.epsilon),
            format_exact(delta.get())
        ));
        match state.promise() {
            Ok(promise) => {
                print::status(&format!("promised for everything from this dataset: {}", promised(promise)));
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
            Ok(after) => promised(after),
            Err(why) => format!("nothing: {why}"),
        };
        let sentence =
            format!("this budget would change the promise from {} to {would_be}", promised(before));
        Err(Refusal::new(
            sentence,
            "results may have been seen, so every budget that could have been set counts; accept it with --accept",
        )
        .into())
    }
}

fn promised(promise: Promise) -> String {
    format!("ε ≤ {} at δ = {}", format_exact(promise.epsilon), format_rounded(promise.delta, 4, Toward::Up))
}

impl Grant {
    fn run(self) -> Result<()> {
        let mut store = self.ledgers.store()?;
        store.grant(&self.role)?;
        print::status(&format!(
            "{:?} may append to the ledgers at {}, and nothing else",
            self.role,
            store.location()
        ));
        Ok(())
    }
}
