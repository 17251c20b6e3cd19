//! Finds unknown bounds and categories, released through the ledger of the dataset.

use anyhow::Result;
use quell::{
    data::{Kind, Table},
    run::Purchase,
};
use quell_ledger::Volume;
use quell_privacy::{
    Error,
    ledger::{Ledger, Line, Paid},
    mechanism::{Bounds, Enclosure, Mechanism, Sensitive, StableHistogram},
    number::format_exact,
    units::{Delta, Epsilon},
};
use serde_json::json;

use super::{Flags, Role, Values};
use crate::{
    author,
    flags::ledger::Dataset,
    payment::{self, path_text},
    print,
    refusal::Refusal,
};

/// The default range in which numbers are searched.
const WITHIN: [f64; 2] = [-1e9, 1e9];

/// The default part of the budget's δ for categories.
///
/// A ledger sets aside little more for guarantees with their own δ.
const DELTA: f64 = 1.0 / 2000.0;

/// The mechanism that answers the question about a column.
enum Question {
    Numbers(Enclosure),
    Names(StableHistogram),
}

impl Question {
    /// What is asked, for the ledger.
    fn words(&self, column: &str) -> String {
        match self {
            Self::Numbers(_) => format!("bounds of {column} for a schema"),
            Self::Names(_) => format!("categories of {column} for a schema"),
        }
    }
}

impl Flags {
    /// Finds bounds and categories of every column, and pays for them.
    pub(super) fn release(
        &self,
        table: &Table,
        roles: &[(String, Role)],
        epsilon: f64,
    ) -> Result<Vec<Values>> {
        payment::check_positive(epsilon)?;
        let [lower, upper] = match self.within.as_deref() {
            Some(&[lower, upper]) => [lower, upper],
            _ => WITHIN,
        };
        let within = Bounds::new(lower, upper)?;
        let missing = || {
            Refusal::new(
                format!("{} has no file name", self.data.display()),
                "name the dataset with --dataset",
            )
        };
        let dataset = Dataset::of(self.dataset.as_ref(), &self.data).ok_or_else(missing)?;
        let mut ledger = self.ledgers.ledger_of_records(&dataset, self.one_record_per_user)?;
        let dataset = dataset.name;
        let (neighbors, budget) = (ledger.state()?.terms().neighbors, ledger.state()?.budget());
        let counted = roles.iter().filter(|(_, role)| *role == Role::Category).count();
        let share = epsilon / roles.len().max(1) as f64;
        let delta =
            Delta::new(self.delta.unwrap_or(DELTA * budget.delta.get()))?.get() / counted.max(1) as f64;
        let question = |role: &Role| -> Result<Question> {
            if *role == Role::Number {
                return Ok(Question::Numbers(Enclosure { within, epsilon: Epsilon::new(share)? }));
            }
            let (epsilon, delta) = (Epsilon::new(share)?, Delta::new(delta)?);
            Ok(Question::Names(StableHistogram::for_epsilon(epsilon, delta, neighbors)?))
        };
        let questions = roles.iter().map(|(_, role)| question(role)).collect::<Result<Vec<Question>>>()?;
        let asked = json!({"schema": {
            "data": path_text(&self.data),
            "dataset": dataset,
            "delta": delta,
            "epsilon": epsilon,
            "roles": roles,
            "within": [within.lower(), within.upper()],
        }});
        let mut purchase = self.output.as_deref().map(|path| Purchase::open(path, &asked)).transpose()?;
        let mut unpaid = Vec::new();
        for ((name, _), question) in roles.iter().zip(&questions) {
            let paid = purchase.as_ref().map_or(Ok(false), |purchase| purchase.is_paid(&mut ledger, name))?;
            unpaid.extend((!paid).then_some(question));
        }
        check_budget(&mut ledger, &unpaid)?;
        let first = ledger.state()?.lines();
        let mut found = Vec::new();
        for ((name, _), question) in roles.iter().zip(questions) {
            ledger.annotate(&author::note(Some(&self.data), question.words(name)));
            let values = match question {
                Question::Numbers(enclosure) => {
                    let values = table
                        .all()
                        .numbers(name)?
                        .into_iter()
                        .map(|number| number.unwrap_or(f64::NAN))
                        .collect();
                    let run = |paid: Paid<Enclosure>| {
                        let bounds = paid.run(&Sensitive::new(values))?;
                        Ok(Values::Bounds([bounds.lower(), bounds.upper()]))
                    };
                    buy(&mut ledger, purchase.as_mut(), name, enclosure, run)?
                }
                Question::Names(histogram) => {
                    let values = texts(table, name)?;
                    let run = |paid: Paid<StableHistogram>| {
                        Ok(Values::Names(
                            paid.run(&Sensitive::new(values))?.into_iter().map(|(name, _)| name).collect(),
                        ))
                    };
                    buy(&mut ledger, purchase.as_mut(), name, histogram, run)?
                }
            };
            if values.is_none() {
                print::status(&format!(
                    "note: the values of column {name:?} were charged and then lost; the schema has a gap for them"
                ));
            }
            found.push(values.unwrap_or(Values::Open));
        }
        let (lines, spent) = (ledger.state()?.lines(), ledger.state()?.spent());
        if lines > first {
            let balance = print::balance(spent, ledger.state()?.budget().cap());
            let lines = if lines == first + 1 {
                format!("line {first}")
            } else {
                format!("lines {first} to {}", lines - 1)
            };
            print::status(&format!(
                "charged to {dataset:?} in {lines}, ε = {} for each column: {balance}",
                format_exact(share)
            ));
        }
        Ok(found)
    }
}

/// Reads a column as text, whatever its declared type.
fn texts(table: &Table, name: &str) -> Result<Vec<Option<String>>> {
    let is_number = table.columns().iter().any(|column| column.name == name && column.kind == Kind::Number);
    if is_number {
        return Ok(table
            .all()
            .numbers(name)?
            .into_iter()
            .map(|number| number.map(|number| number.to_string()))
            .collect());
    }
    Ok(table.all().texts(name)?)
}

/// Checks that the budget suffices for all questions, one after the other.
///
/// A refusal comes before anything is paid.
fn check_budget(ledger: &mut Ledger<Volume>, questions: &[&Question]) -> Result<()> {
    let mut state = ledger.state()?.clone();
    let (spent, budget) = (state.spent().epsilon, state.budget().cap());
    for question in questions {
        let (charge, _) = match question {
            Question::Numbers(enclosure) => ledger.quote(enclosure, 1)?,
            Question::Names(histogram) => ledger.quote(histogram, 1)?,
        };
        let would_be = state.spent_with(&charge).epsilon;
        if would_be > budget {
            let hint = if would_be.is_infinite() {
                "the δ of the categories exceeds the δ that the ledger reserves for releases with a δ; give a much smaller --delta"
            } else {
                "give a smaller --epsilon, or raise the budget with `quell ledger raise`"
            };
            return Err(Refusal::new(Error::Refused { would_be, spent, budget }.to_string(), hint)
                .denied()
                .into());
        }
        state.apply(&Line::Charged(charge))?;
    }
    Ok(())
}

/// Pays for the answer about one column.
///
/// Returns `None` if the answer was paid for before and is lost.
fn buy<M: Mechanism>(
    ledger: &mut Ledger<Volume>,
    purchase: Option<&mut Purchase>,
    name: &str,
    mechanism: M,
    run: impl FnOnce(Paid<M>) -> Result<Values, Error>,
) -> Result<Option<Values>> {
    Ok(match purchase {
        Some(purchase) => purchase.buy(ledger, name, mechanism, run)?,
        None => Some(run(ledger.charge(mechanism)?)?),
    })
}
