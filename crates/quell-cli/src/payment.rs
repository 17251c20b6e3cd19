//! Pays for a release: quotes the price, charges the ledger, then prints the answer.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use quell::{
    run::{self, Purchase},
    statistics::Visitor,
};
use quell_ledger::Volume;
use quell_privacy::{
    Error,
    ledger::{Ledger, Paid, Receipt, Spent, State},
    mechanism::Mechanism,
    number::{Toward, format_rounded},
    units::Epsilon,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{flags::Format, print, refusal::Refusal};

/// The ε to spend on one answer, and how to write the answer.
#[derive(Clone, Debug)]
pub(crate) struct Payment {
    /// The ε of the answer.
    pub(crate) epsilon: f64,
    /// Whether to print the price only, without paying.
    pub(crate) dry_run: bool,
    pub(crate) format: Format,
    /// The file for the answer, and everything that the answer depends on.
    ///
    /// The same question for the same file is paid for once.
    pub(crate) output: Option<(PathBuf, Value)>,
}

/// An answer as it is stored until its file is written.
#[derive(Serialize, Deserialize)]
struct StoredAnswer {
    text: String,
    answer: Value,
    receipt: Receipt,
}

impl StoredAnswer {
    fn new(answer: &(impl Display + Serialize), receipt: &Receipt) -> Result<Self, Error> {
        let cannot = |_| Error::Book { cause: "the answer cannot be written as JSON".into() };
        Ok(Self {
            text: answer.to_string(),
            answer: serde_json::to_value(answer).map_err(cannot)?,
            receipt: receipt.clone(),
        })
    }
}

/// Writes a path as a part of a question. Different paths have different texts, even if they are not UTF-8.
pub(crate) fn path_text(path: &Path) -> String {
    path.as_os_str().as_encoded_bytes().escape_ascii().to_string()
}

/// Refuses ε = 0, which buys no answer.
pub(crate) fn check_positive(epsilon: f64) -> Result<()> {
    if Epsilon::new(epsilon)?.get() == 0.0 {
        return Err(Refusal::new(
            "epsilon is 0, expected a positive number",
            "an answer with ε = 0 would not depend on the data",
        )
        .into());
    }
    Ok(())
}

/// Pays for the answer to a question and prints it.
pub(crate) struct AnswerRelease<'l, S> {
    pub(crate) payment: Payment,
    pub(crate) ledger: &'l mut Ledger<Volume>,
    /// Brings the answer into the form that is printed.
    pub(crate) show: S,
}

impl<'a, A, T: Display + Serialize, S: FnOnce(A) -> T> Visitor<'a, A> for AnswerRelease<'_, S> {
    type Output = Result<()>;

    fn visit<M: Mechanism + 'a, D: 'a>(
        self,
        make: impl Fn(f64) -> Result<M, quell::Error> + 'a,
        read: impl FnOnce() -> Result<D, quell::Error> + 'a,
        run: impl FnOnce(Paid<M>, D) -> Result<A, Error> + 'a,
    ) -> Result<()> {
        let Self { payment, ledger, show } = self;
        payment.release(ledger, make, read, |paid, data| run(paid, data).map(show))
    }
}

impl Payment {
    /// Reads the data, pays for a mechanism, runs it and prints the answer.
    ///
    /// `make` builds the mechanism for an ε.
    fn release<M: Mechanism, D, A: Display + Serialize>(
        &self,
        ledger: &mut Ledger<Volume>,
        make: impl Fn(f64) -> Result<M, quell::Error>,
        read: impl FnOnce() -> Result<D, quell::Error>,
        run: impl FnOnce(Paid<M>, D) -> Result<A, Error>,
    ) -> Result<()> {
        let mechanism = make(self.epsilon)?;
        // Errors in the question are reported before its price.
        let data = read()?;
        let draw = |paid: Paid<M>| {
            let receipt = paid.receipt().clone();
            StoredAnswer::new(&run(paid, data)?, &receipt)
        };
        let cap = ledger.state()?.budget().cap();
        if self.dry_run {
            let before = ledger.state()?.spent().epsilon;
            let after = self.check_price(ledger, &make)?;
            return self.report_price(&mechanism.to_string(), before, after, cap);
        }
        let Some((path, question)) = &self.output else {
            self.check_price(ledger, &make)?;
            let stored = draw(ledger.charge(mechanism)?)?;
            print::lines(&self.document(&stored, ledger.state()?.spent(), cap)?)?;
            return self.print_charge(&stored, ledger, cap);
        };
        let mut purchase = Purchase::open(path, question)?;
        if !purchase.is_paid(ledger, ANSWER)? {
            self.check_price(ledger, &make)?;
        }
        if purchase.answer::<StoredAnswer>(ANSWER).is_some() {
            print::status(
                "note: the ledger was charged for this answer before, so the answer is repeated without a new charge; for a new answer, name another file",
            );
        }
        let stored = purchase.buy(ledger, ANSWER, mechanism, draw)?;
        let stored =
            stored.ok_or_else(|| quell::Error::from(run::Error::AnswerLost { path: path.clone() }))?;
        let document = self.document(&stored, ledger.state()?.spent(), cap)?;
        std::fs::write(path, document + "\n").with_context(|| format!("cannot write {}", path.display()))?;
        print::status(&format!("wrote {}", path.display()));
        self.print_charge(&stored, ledger, cap)
    }

    /// Returns what would be spent after the release, and refuses more than the budget.
    fn check_price<M: Mechanism>(
        &self,
        ledger: &mut Ledger<Volume>,
        make: &impl Fn(f64) -> Result<M, quell::Error>,
    ) -> Result<Spent> {
        let before = ledger.state()?.spent().epsilon;
        let (charge, after) = ledger.quote(&make(self.epsilon)?, 1)?;
        let cap = ledger.state()?.budget().cap();
        if after.epsilon <= cap && ledger.state()?.is_last(&charge) {
            let sentence = "the δ of this question exceeds the δ that the ledger reserves for questions with a δ, so the ledger could grant no later charge";
            let addition = "or create a ledger with --composition addition, which reserves all of its δ for such questions";
            let hint = format!("{}, {addition}", smaller_delta(ledger.state()?));
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
        make: &impl Fn(f64) -> Result<M, quell::Error>,
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
                "the same question with --epsilon {} fits the budget; {raise}",
                format_rounded(low, 3, Toward::Down)
            )
        } else {
            format!(
                "the budget has no room for this question at any ε; use the answers that were paid for, {raise}"
            )
        };
        anyhow::Error::new(
            Refusal::new(Error::Refused { would_be, spent, budget }.to_string(), hint).denied(),
        )
    }

    fn report_price(&self, what: &str, before: f64, after: Spent, cap: f64) -> Result<()> {
        if self.format == Format::Json {
            let price = json!({"what": what, "spent_before": before, "spent_after": after.epsilon, "theorem": after.theorem.to_string(), "cap": if cap.is_finite() { Some(cap) } else { None }});
            return print::json(&price);
        }
        let (before, after) =
            (format_rounded(before, 4, Toward::Up), format_rounded(after.epsilon, 4, Toward::Up));
        print::line(&format!(
            "{what}: would raise the spent ε from {before} to {after}; {}",
            print::budget(cap)
        ))
    }

    /// Writes the answer in the requested format.
    fn document(&self, stored: &StoredAnswer, spent: Spent, cap: f64) -> Result<String> {
        if self.format == Format::Text {
            return Ok(stored.text.clone());
        }
        let finite = |number: f64| number.is_finite().then_some(number);
        let epsilon = json!({"spent": finite(spent.epsilon), "budget": finite(cap), "theorem": spent.theorem.to_string()});
        let document = json!({"answer": stored.answer, "receipt": stored.receipt, "epsilon": epsilon});
        Ok(quell_report::escape::json(&serde_json::to_string_pretty(&document)?))
    }

    fn print_charge(&self, stored: &StoredAnswer, ledger: &mut Ledger<Volume>, cap: f64) -> Result<()> {
        if self.format == Format::Text {
            let balance = print::balance(ledger.state()?.spent(), cap);
            print::status(&format!("{}: {balance}", print::charged(&stored.receipt)));
        }
        Ok(())
    }
}

/// Suggests a δ that a question with its own δ may have.
fn smaller_delta(state: &State) -> String {
    let left = state.slack_left();
    if left <= 0.0 {
        return "the ledger has no δ left for questions with a δ; ask a question without a δ".into();
    }
    format!(
        "leave --delta out, or give at most {}, since {} is left for all questions with a δ",
        format_rounded(left / 2.0, 2, Toward::Down),
        format_rounded(left, 2, Toward::Down)
    )
}

/// The name of the only part of a question.
const ANSWER: &str = "answer";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_paths_are_different_questions() {
        assert_eq!(path_text(Path::new("data/people.csv")), "data/people.csv");
        let paths =
            ["é.csv", "e.csv", r"\xc3\xa9.csv", "'.csv", r"\'.csv"].map(|path| path_text(Path::new(path)));
        assert!((1..paths.len()).all(|i| !paths[..i].contains(&paths[i])), "{paths:?}");
    }
}
