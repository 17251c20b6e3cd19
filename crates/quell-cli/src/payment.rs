//! How a release is paid for: the price first, then the debt, then the answer.

use std::fmt::Display;

use anyhow::Result;
use quell_ledger::Volume;
use quell_privacy::{
    Error,
    ledger::{Ledger, Paid, Receipt, Spent, Unit},
    mechanism::Mechanism,
    number::{Toward, given, rounded},
    units::Epsilon,
};
use serde::Serialize;

use crate::{arguments::Format, print, refusal::Refusal};

/// What may be spent on one answer, and how it is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payment {
    /// ε of the answer.
    pub(crate) epsilon: f64,
    /// Say what it would cost, and pay nothing.
    pub(crate) dry_run: bool,
    pub(crate) format: Format,
}

/// Refuses an ε that buys nothing.
pub(crate) fn positive(epsilon: f64) -> Result<()> {
    if Epsilon::new(epsilon)?.get() == 0.0 {
        return Err(Refusal::new("epsilon is 0, expected more", "an answer that costs nothing says nothing").into());
    }
    Ok(())
}

/// Refuses to count records where the ledger protects people, unless each has one.
pub(crate) fn one_record_each(ledger: &mut Ledger<Volume>, dataset: &str, said: bool) -> Result<()> {
    if ledger.state()?.terms().unit == Unit::User && !said {
        let sentence = format!("the ledger of {dataset:?} protects users, and a table may hold several records of one");
        return Err(Refusal::new(sentence, "where every person has one record, say so with --one-record-per-user").into());
    }
    Ok(())
}

impl Payment {
    /// Reads the data, pays for the mechanism that `make` builds for an ε, runs it, and says what came out.
    pub(crate) fn release<M: Mechanism, D, A: Display + Serialize>(
        &self,
        ledger: &mut Ledger<Volume>,
        make: impl Fn(f64) -> Result<M>,
        read: impl FnOnce() -> Result<D>,
        run: impl FnOnce(Paid<M>, D) -> Result<A, Error>,
    ) -> Result<()> {
        let mechanism = make(self.epsilon)?;
        // What is wrong with the question is said before its price.
        let data = read()?;
        let before = ledger.state()?.spent().epsilon;
        let after = self.price(ledger, &make)?;
        let cap = ledger.state()?.budget().cap();
        if self.dry_run {
            return self.report_price(&mechanism.to_string(), before, after, cap);
        }
        let paid = ledger.charge(mechanism)?;
        let receipt = paid.receipt().clone();
        let answer = run(paid, data)?;
        // Others may have charged in between.
        let after = ledger.state().map_or(after, quell_privacy::ledger::State::spent);
        self.report(&answer, &receipt, after, cap)
    }

    /// What would be spent after it; a no if that is more than the budget.
    fn price<M: Mechanism>(&self, ledger: &mut Ledger<Volume>, make: &impl Fn(f64) -> Result<M>) -> Result<Spent> {
        let before = ledger.state()?.spent().epsilon;
        let (_, after) = ledger.quote(&make(self.epsilon)?, 1)?;
        let cap = ledger.state()?.budget().cap();
        if after.epsilon <= cap { Ok(after) } else { Err(self.refused(ledger, make, before, after.epsilon, cap)) }
    }

    /// What it would have cost, what is left, and what to do.
    fn refused<M: Mechanism>(
        &self,
        ledger: &mut Ledger<Volume>,
        make: &impl Fn(f64) -> Result<M>,
        spent: f64,
        would_be: f64,
        budget: f64,
    ) -> anyhow::Error {
        let (mut low, mut high) = (0.0, self.epsilon);
        for _ in 0..12 {
            let middle = 0.5 * (low + high);
            let fits = make(middle).ok().and_then(|m| ledger.quote(&m, 1).ok()).is_some_and(|(_, after)| after.epsilon <= budget);
            if fits { low = middle } else { high = middle }
        }
        let raise = "or raise the budget with `quell ledger raise`";
        let hint = if would_be.is_infinite() {
            "the delta of this question is more than the ledger has set aside for such; ask with a far smaller --delta".into()
        } else if low > 0.0 {
            format!("a question of this kind with --epsilon {} still fits; ask for less, {raise}", rounded(low, 3, Toward::Down))
        } else {
            format!("nothing is left for a question of this kind; ask another dataset, {raise}")
        };
        anyhow::Error::new(Refusal::new(Error::Refused { would_be, spent, budget }.to_string(), hint).final_word())
    }

    fn report_price(&self, what: &str, before: f64, after: Spent, cap: f64) -> Result<()> {
        if self.format == Format::Json {
            let price = serde_json::json!({"what": what, "spent_before": before, "spent_after": after.epsilon, "theorem": after.theorem.to_string(), "cap": if cap.is_finite() { Some(cap) } else { None }});
            return print::json(&price);
        }
        let (before, after) = (rounded(before, 4, Toward::Up), rounded(after.epsilon, 4, Toward::Up));
        print::sentence(&format!(
            "{what}: ε would rise from {before} to {after}, the budget is {}",
            if cap.is_finite() { given(cap) } else { "without a cap".into() }
        ))
    }

    fn report(&self, answer: &(impl Display + Serialize), receipt: &Receipt, spent: Spent, cap: f64) -> Result<()> {
        if self.format == Format::Json {
            let theorem = spent.theorem.to_string();
            let epsilon = serde_json::json!({"spent": if spent.epsilon.is_finite() { Some(spent.epsilon) } else { None }, "budget": if cap.is_finite() { Some(cap) } else { None }, "theorem": theorem});
            return print::json(&serde_json::json!({"answer": answer, "receipt": receipt, "epsilon": epsilon}));
        }
        print::data(&answer.to_string())?;
        print::note(&format!("paid in line {} of {:?}: {}", receipt.entry, receipt.dataset, balance(spent, cap)));
        Ok(())
    }
}

/// What is spent of a budget.
pub(crate) fn balance(spent: Spent, cap: f64) -> String {
    let cap = if cap.is_finite() { format!("of {}", given(cap)) } else { "without a cap".into() };
    format!("ε {} {cap} is spent", rounded(spent.epsilon, 4, Toward::Up))
}
