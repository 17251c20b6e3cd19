//! Bounds and categories that nobody knew, released through the ledger of the dataset.

use std::path::Path;

use anyhow::Result;
use quell::data::{Kind, Table};
use quell_ledger::Volume;
use quell_privacy::{
    Error, Neighbors,
    ledger::{Ledger, Line, Paid, Receipt},
    mechanism::{Bounds, Mechanism, Range, Sensitive, StableHistogram},
    number::given,
    units::{Delta, Epsilon, Probability},
};

use super::{Flags, Role, Values};
use crate::{payment, print, refusal::Refusal};

/// Where numbers are looked for if nobody says.
const WITHIN: [f64; 2] = [-1e6, 1e6];

/// Part of the records between the ends that are looked for, and by how much of their distance these are then moved apart. An end nearer to the last record would
/// often be found beyond it, in the wide gap where no record is.
const INSIDE: f64 = 0.9;
const WIDER: f64 = 0.3;

/// Part of the budget's δ for categories if nobody says; a ledger sets aside little more for guarantees with a δ of their own.
const DELTA: f64 = 1.0 / 2000.0;

/// What is asked about a column.
enum Question {
    Numbers(Range),
    Names(StableHistogram),
}

impl Flags {
    /// Bounds and categories of every column, paid for.
    pub(super) fn find(&self, table: &Table, roles: &[(String, Role)], epsilon: f64) -> Result<Vec<Values>> {
        payment::positive(epsilon)?;
        let [lower, upper] = match self.within.as_deref() {
            Some(&[lower, upper]) => [lower, upper],
            _ => WITHIN,
        };
        let bounds = Bounds::new(lower, upper)?;
        let inside = Probability::new(INSIDE)?;
        let dataset = self.dataset.clone().map_or_else(|| dataset(&self.data), Ok)?;
        let mut ledger = self.purse.ledger(&dataset)?;
        payment::one_record_each(&mut ledger, &dataset, self.one_record_per_user)?;
        let (terms, budget) = (ledger.state()?.terms().clone(), ledger.state()?.budget());
        let counted = roles.iter().filter(|(_, role)| *role == Role::Category).count();
        let share = epsilon / roles.len().max(1) as f64;
        let delta = Delta::new(self.delta.unwrap_or(DELTA * budget.delta.get()))?.get() / counted.max(1) as f64;
        let question = |role: &Role| -> Result<Question> {
            if *role == Role::Number {
                return Ok(Question::Numbers(Range { bounds, inside, epsilon: Epsilon::new(share / 2.0)? }));
            }
            // For an exchange: (2ε, (1 + e^ε)δ).
            let (epsilon, delta) = match terms.neighbors {
                Neighbors::AddRemove => (share, delta),
                Neighbors::Replace => (share / 2.0, delta / (1.0 + (share / 2.0).exp())),
            };
            Ok(Question::Names(StableHistogram::new(Epsilon::new(epsilon)?, Delta::new(delta)?)?))
        };
        let questions = roles.iter().map(|(_, role)| question(role)).collect::<Result<Vec<Question>>>()?;
        afford(&mut ledger, &questions)?;
        let mut found = Vec::new();
        let mut receipts = Vec::new();
        for ((name, _), question) in roles.iter().zip(questions) {
            found.push(match question {
                Question::Numbers(range) => {
                    let values = table.all().numbers(name)?.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect();
                    let paid = charge(&mut ledger, range, &mut receipts)?;
                    let [low, high] = paid.run(&Sensitive::new(values))?;
                    Values::Bounds(wider(low.value, high.value, [lower, upper]))
                }
                Question::Names(histogram) => {
                    let values = texts(table, name)?;
                    let paid = charge(&mut ledger, histogram, &mut receipts)?;
                    Values::Names(paid.run(&Sensitive::new(values))?.into_iter().map(|(name, _)| name).collect())
                }
            });
        }
        let spent = ledger.state()?.spent();
        let balance = payment::balance(spent, ledger.state()?.budget().cap());
        if let (Some(first), Some(last)) = (receipts.first(), receipts.last()) {
            let lines = if receipts.len() == 1 {
                format!("line {}", first.entry)
            } else {
                format!("lines {} to {}", first.entry, last.entry)
            };
            print::note(&format!("paid in {lines} of {dataset:?}, ε = {} for each column: {balance}", given(share)));
        }
        Ok(found)
    }
}

/// Two ends moved apart and to round numbers, within what was publicly known.
fn wider(low: f64, high: f64, [least, most]: [f64; 2]) -> [f64; 2] {
    let margin = (WIDER * (high - low)).max(1e-9 * (most - least)).max(1e-6 * low.abs().max(high.abs()));
    // A unit of which the margin is a few.
    let unit = 10_f64.powf(margin.log10().floor());
    // Without the last digits, which a product with a tenth leaves behind, and without the sign of zero.
    let tidy = |value: f64| format!("{value:.12e}").parse().unwrap_or(value) + 0.0;
    let (low, high) = (tidy(((low - margin) / unit).floor() * unit), tidy(((high + margin) / unit).ceil() * unit));
    [low.max(least), high.min(most)]
}

/// A column as text, whatever it is declared as.
fn texts(table: &Table, name: &str) -> Result<Vec<Option<String>>> {
    let is_number = table.columns().iter().any(|column| column.name == name && column.kind == Kind::Number);
    if is_number {
        return Ok(table.all().numbers(name)?.into_iter().map(|number| number.map(|number| number.to_string())).collect());
    }
    Ok(table.all().texts(name)?)
}

/// Whether the budget bears all questions, one after the other: what is refused is refused before anything is paid.
fn afford(ledger: &mut Ledger<Volume>, questions: &[Question]) -> Result<()> {
    let mut state = ledger.state()?.clone();
    let (spent, budget) = (state.spent().epsilon, state.budget().cap());
    for question in questions {
        let (charge, _) = match question {
            Question::Numbers(range) => ledger.quote(range, 1)?,
            Question::Names(histogram) => ledger.quote(histogram, 1)?,
        };
        let would_be = state.spent_with(&charge).epsilon;
        if would_be > budget {
            let hint = if would_be.is_infinite() {
                "the delta of the categories is more than the ledger has set aside for such; give a far smaller --delta"
            } else {
                "give a smaller --epsilon, or raise the budget with `quell ledger raise`"
            };
            return Err(Refusal::new(Error::Refused { would_be, spent, budget }.to_string(), hint).final_word().into());
        }
        state.follow(&Line::Charged(charge))?;
    }
    Ok(())
}

/// Pays for one column.
fn charge<M: Mechanism>(ledger: &mut Ledger<Volume>, mechanism: M, receipts: &mut Vec<Receipt>) -> Result<Paid<M>> {
    let paid = ledger.charge(mechanism)?;
    receipts.push(paid.receipt().clone());
    Ok(paid)
}

fn dataset(path: &Path) -> Result<String> {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let missing = || Refusal::new(format!("{} has no file name", path.display()), "name the dataset with --dataset");
    Ok(stem.ok_or_else(missing)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_moved_apart_to_round_numbers_and_not_beyond_what_is_known() {
        assert_eq!(wider(19.3, 63.2, [0.0, 1000.0]), [0.0, 80.0]);
        assert_eq!(wider(0.11, 0.42, [0.0, 1.0]), [0.01, 0.52]);
        assert_eq!(wider(-3.0, 90.0, [0.0, 95.0]), [0.0, 95.0]);
        let [low, high] = wider(5.0, 5.0, [-1e6, 1e6]);
        assert!(low < 5.0 && high > 5.0 && high - low < 1.0, "{low} {high}");
    }
}
