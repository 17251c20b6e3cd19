//! Pays for a release: quotes the price, charges the ledger, then prints the answer.

use std::{fmt::Display, path::PathBuf};

use anyhow::{Context, Result};
use quell::run::{self, Purchase};
use quell_ledger::Volume;
use quell_privacy::{
    Error,
    ledger::{Ledger, Paid, Receipt, Spent, State, Unit},
    mechanism::Mechanism,
    number::{Toward, format_exact, format_rounded},
    units::Epsilon,
};
use serde::{Deserialize, Serialize};

use crate::{flags::Format, print, refusal::Refusal};

/// The ε to spend on one answer, and how to write the answer.
#[derive(Clone, Debug)]
pub(crate) struct Payment {
    /// The ε of the answer.
    pub(crate) epsilon: f64,
    /// Whether to print the price only, without paying.
    pub(crate) dry_run: bool,
    pub(crate) format: Format,
    /// The file for the answer, and the question in words.
    ///
    /// The same question for the same file is paid for once.
    pub(crate) output: Option<(PathBuf, String)>,
}

/// An answer as it is stored until its file is written.
#[derive(Serialize, Deserialize)]
struct Told {
    text: String,
    answer: serde_json::Value,
    receipt: Receipt,
}

impl Told {
    fn new(answer: &(impl Display + Serialize), receipt: &Receipt) -> Result<Self, Error> {
        let cannot = |_| Error::Book { cause: "the answer cannot be written as JSON".into() };
        Ok(Self {
            text: answer.to_string(),
            answer: serde_json::to_value(answer).map_err(cannot)?,
            receipt: receipt.clone(),
        })
    }
}

/// Refuses ε = 0, which buys no answer.
pub(crate) fn positive(epsilon: f64) -> Result<()> {
    if Epsilon::new(epsilon)?.get() == 0.0 {
        return Err(
            Refusal::new("epsilon is 0, expected more", "an answer that costs nothing says nothing").into()
        );
    }
    Ok(())
}

/// Refuses to count records if the ledger protects users, unless each user has one record.
pub(crate) fn one_record_each(ledger: &mut Ledger<Volume>, dataset: &str, said: bool) -> Result<()> {
    if ledger.state()?.terms().unit == Unit::User && !said {
        let sentence =
            format!("the ledger of {dataset:?} protects users, and a table may hold several records of one");
        return Err(Refusal::new(
            sentence,
            "where every person has one record, say so with --one-record-per-user",
        )
        .into());
    }
    Ok(())
}

impl Payment {
    /// Reads the data, pays for a mechanism, runs it and prints the answer.
    ///
    /// `make` builds the mechanism for an ε.
    pub(crate) fn release<M: Mechanism, D, A: Display + Serialize>(
        &self,
        ledger: &mut Ledger<Volume>,
        make: impl Fn(f64) -> Result<M>,
        read: impl FnOnce() -> Result<D>,
        run: impl FnOnce(Paid<M>, D) -> Result<A, Error>,
    ) -> Result<()> {
        let mechanism = make(self.epsilon)?;
        // Errors in the question are reported before its price.
        let data = read()?;
        let draw = |paid: Paid<M>| {
            let receipt = paid.receipt().clone();
            Told::new(&run(paid, data)?, &receipt)
        };
        let cap = ledger.state()?.budget().cap();
        if self.dry_run {
            let before = ledger.state()?.spent().epsilon;
            let after = self.price(ledger, &make)?;
            return self.report_price(&mechanism.to_string(), before, after, cap);
        }
        let Some((path, question)) = &self.output else {
            self.price(ledger, &make)?;
            let told = draw(ledger.charge(mechanism)?)?;
            print::lines(&self.document(&told, ledger.state()?.spent(), cap)?)?;
            return self.say_paid(&told, ledger, cap);
        };
        let mut purchase = Purchase::open(path, question)?;
        if !purchase.is_paid(ledger, ANSWER)? {
            self.price(ledger, &make)?;
        }
        if purchase.answer::<Told>(ANSWER).is_some() {
            print::status(
                "this is the answer that was paid for before; name another file for a new one, if the data has changed since",
            );
        }
        let told = purchase.buy(ledger, ANSWER, mechanism, draw)?;
        let told = told.ok_or_else(|| quell::Error::from(run::Error::AnswerLost { path: path.clone() }))?;
        let document = self.document(&told, ledger.state()?.spent(), cap)?;
        std::fs::write(path, document + "\n").with_context(|| format!("cannot write {}", path.display()))?;
        print::status(&format!("wrote {}", path.display()));
        self.say_paid(&told, ledger, cap)
    }

    /// Returns what would be spent after the release, and refuses more than the budget.
    fn price<M: Mechanism>(
        &self,
        ledger: &mut Ledger<Volume>,
        make: &impl Fn(f64) -> Result<M>,
    ) -> Result<Spent> {
        let before = ledger.state()?.spent().epsilon;
        let (charge, after) = ledger.quote(&make(self.epsilon)?, 1)?;
        let cap = ledger.state()?.budget().cap();
        if after.epsilon <= cap && ledger.state()?.is_last(&charge) {
            let sentence = "the delta of this question is more than the ledger sets aside for such questions, so it could grant nothing after it";
            let addition = "where such questions are all there are, open a ledger with --composition addition, which sets all of its delta aside for them";
            let hint = format!("{}; {addition}", smaller_delta(ledger.state()?));
            return Err(Refusal::new(sentence, hint).denied().into());
        }
        if after.epsilon <= cap {
            Ok(after)
        } else {
            Err(self.refused(ledger, make, before, after.epsilon, cap))
        }
    }

    /// Creates the refusal: the cost, the remaining budget, and a hint.
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
            let fits = make(middle)
                .ok()
                .and_then(|m| ledger.quote(&m, 1).ok())
                .is_some_and(|(_, after)| after.epsilon <= budget);
            if fits { low = middle } else { high = middle }
        }
        let raise = "or raise the budget with `quell ledger raise`";
        let hint = if would_be.is_infinite() {
            ledger.state().map_or_else(|error| error.to_string(), smaller_delta)
        } else if low > 0.0 {
            format!(
                "a question of this kind with --epsilon {} still fits; ask for less, {raise}",
                format_rounded(low, 3, Toward::Down)
            )
        } else {
            format!("nothing is left for a question of this kind; ask another dataset, {raise}")
        };
        anyhow::Error::new(
            Refusal::new(Error::Refused { would_be, spent, budget }.to_string(), hint).denied(),
        )
    }

    fn report_price(&self, what: &str, before: f64, after: Spent, cap: f64) -> Result<()> {
        if self.format == Format::Json {
            let price = serde_json::json!({"what": what, "spent_before": before, "spent_after": after.epsilon, "theorem": after.theorem.to_string(), "cap": if cap.is_finite() { Some(cap) } else { None }});
            return print::json(&price);
        }
        let (before, after) =
            (format_rounded(before, 4, Toward::Up), format_rounded(after.epsilon, 4, Toward::Up));
        print::line(&format!("{what}: ε would rise from {before} to {after}, {}", budget(cap)))
    }

    /// Writes the answer in the requested format.
    fn document(&self, told: &Told, spent: Spent, cap: f64) -> Result<String> {
        if self.format == Format::Text {
            return Ok(told.text.clone());
        }
        let finite = |number: f64| number.is_finite().then_some(number);
        let epsilon = serde_json::json!({"spent": finite(spent.epsilon), "budget": finite(cap), "theorem": spent.theorem.to_string()});
        let document =
            serde_json::json!({"answer": told.answer, "receipt": told.receipt, "epsilon": epsilon});
        Ok(quell_report::escape::json(&serde_json::to_string_pretty(&document)?))
    }

    fn say_paid(&self, told: &Told, ledger: &mut Ledger<Volume>, cap: f64) -> Result<()> {
        if self.format == Format::Text {
            let Receipt { entry, dataset, .. } = &told.receipt;
            print::status(&format!(
                "paid in line {entry} of {dataset:?}: {}",
                balance(ledger.state()?.spent(), cap)
            ));
        }
        Ok(())
    }
}

/// Suggests a δ that a question with its own δ may have.
fn smaller_delta(state: &State) -> String {
    let left = state.slack_left();
    if left <= 0.0 {
        return "nothing is left of what the ledger sets aside for such questions; ask one without a delta"
            .into();
    }
    format!(
        "leave --delta out, or ask with at most {}; {} is left for all such questions",
        format_rounded(left / 2.0, 2, Toward::Down),
        format_rounded(left, 2, Toward::Down)
    )
}

/// The name of the only part of a question.
const ANSWER: &str = "answer";

/// Describes the budget.
pub(crate) fn budget(cap: f64) -> String {
    if cap.is_finite() { format!("the budget is {}", format_exact(cap)) } else { "there is no cap".into() }
}

/// Describes how much of the budget is spent.
pub(crate) fn balance(spent: Spent, cap: f64) -> String {
    let cap = if cap.is_finite() { format!("of {}", format_exact(cap)) } else { "without a cap".into() };
    format!("ε {} {cap} is spent", format_rounded(spent.epsilon, 4, Toward::Up))
}
