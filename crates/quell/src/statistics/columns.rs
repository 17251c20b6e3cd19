//! Bounds and categories of columns that nobody knows, released together.

use quell_privacy::{
    Event, Neighbors,
    accounting::{Conversion, Renyi},
    ledger::{Book, Composition, Ledger, Paid, State},
    mechanism::{Bounds, Count, Enclosure, Mechanism, PerUser, Sensitive, StableHistogram, Together},
    units::{Delta, Epsilon},
};
use serde::{Deserialize, Serialize};

use super::question::{check_unit, numbers};
use crate::{
    Error,
    data::{Kind, Selection},
};

/// The range in which numbers are searched, if no other is known.
///
/// Times in milliseconds since 1970 are below 10¹³.
pub const WIDEST: [f64; 2] = [-1e13, 1e13];

/// The part of the budget's δ for categories, if no other is given.
///
/// A ledger sets aside little more for guarantees with their own δ.
const DELTA: f64 = 1.0 / 2000.0;

/// The part of the budget's δ at which a ledger with all theorems evaluates Rényi divergences.
const RENYI: f64 = 0.1;

/// The shares of ε that a label gets in a table with many columns, where an equal share may show no class.
const LABEL_SHARES: f64 = 3.0;

/// The number of columns from which on a label gets more than an equal share.
const MANY_COLUMNS: usize = 16;

/// What is asked about a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unknown {
    /// Bounds that contain nearly all numbers, searched within a public range.
    Bounds(Bounds),
    /// The frequent categories.
    Categories,
}

/// What was released about a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Found {
    /// Bounds of the numbers.
    Bounds([f64; 2]),
    /// The frequent categories.
    Names(Vec<String>),
    /// Number of records, rounded down to 1 where noise made it less.
    Count(u64),
}

/// Questions about the columns of a table that one charge answers: what a schema needs.
///
/// All columns have an equal share of ε. Among sixteen columns or more, the label has three shares, unless
/// `label_shares` says how many.
///
/// ```
/// use quell::{data::{ColumnCells, Table}, ledger::InMemory};
/// use quell::{privacy::{mechanism::Bounds, units::{Delta, Epsilon}}, statistics::{Columns, Found, Unknown}};
/// let ages = (0..5000).map(|i| f64::from(i % 80)).collect();
/// let people = Table::in_memory(vec![("age".into(), ColumnCells::Numbers(ages))])?;
/// let mut ledger = InMemory::ledger("people", Epsilon::new(1.0)?, Delta::new(1e-6)?)?;
/// let within = Unknown::Bounds(Bounds::new(0.0, 1000.0)?);
/// let asked = Columns { columns: vec![("age".into(), within)], ..Columns::default() };
/// let found = asked.ask(&mut ledger, &people.all(), 1.0)?;
/// assert!(matches!(found[0], Found::Bounds([low, high]) if low <= 1.0 && (70.0..=200.0).contains(&high)));
/// # Ok::<(), quell::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    /// The columns, and what is asked about each.
    pub columns: Vec<(String, Unknown)>,
    /// The column to predict, if there is one.
    pub label: Option<String>,
    /// The shares of ε that the label gets; if not given, one, or three among many columns.
    pub label_shares: Option<f64>,
    /// Whether the number of records is asked for, too. It is the last answer.
    pub counts: bool,
    /// δ of all categories together; a small part of the δ of the budget if not given.
    pub delta: Option<f64>,
    /// Whether each user has one record. Without this, a ledger that protects users needs a limit.
    pub one_record_per_user: bool,
}

impl Columns {
    /// Whether the label has more than an equal share.
    #[must_use]
    pub fn is_wide(&self) -> bool {
        self.columns.len() >= MANY_COLUMNS
    }

    /// Fixes the questions for a ledger, before anything is paid. `epsilon` is for all answers together.
    pub fn plan(
        &self,
        state: &State,
        epsilon: f64,
        most_per_user: Option<u32>,
    ) -> Result<ColumnsPlan, Error> {
        check_unit(state, self.one_record_per_user, most_per_user)?;
        let delta = Delta::new(self.delta.unwrap_or(DELTA * state.budget().delta.get()))?.get();
        let counted = self.columns.iter().filter(|(_, unknown)| *unknown == Unknown::Categories).count();
        let of_label = self.label_shares.unwrap_or(if self.is_wide() { LABEL_SHARES } else { 1.0 });
        let shares = |name: &String| if self.label.as_ref() == Some(name) { of_label } else { 1.0 };
        let columns = self.columns.iter().map(|(name, unknown)| (Some(*unknown), shares(name)));
        let questions = Questions {
            columns: columns.chain(self.counts.then_some((None, 1.0))).collect(),
            delta: delta / counted.max(1) as f64,
            neighbors: state.terms().neighbors,
            most: most_per_user,
        };
        let share = questions.share(epsilon, state)?;
        Ok(ColumnsPlan {
            names: self.columns.iter().map(|(name, _)| name.clone()).collect(),
            questions,
            share,
        })
    }

    /// Pays for all answers and draws them.
    pub fn ask<B: Book>(
        &self,
        ledger: &mut Ledger<B>,
        records: &Selection<'_>,
        epsilon: f64,
    ) -> Result<Vec<Found>, Error> {
        let plan = self.plan(&ledger.state()?.clone(), epsilon, records.most_per_user())?;
        let (values, together) = (plan.read(records)?, plan.mechanism()?);
        Ok(match records.most_per_user() {
            Some(records) => {
                let limited = PerUser { mechanism: together, records };
                plan.run(ledger.charge(limited)?.of_records(), values)?
            }
            None => plan.run(ledger.charge(together)?, values)?,
        })
    }
}

/// Questions about columns whose cost is fixed.
pub struct ColumnsPlan {
    names: Vec<String>,
    questions: Questions,
    share: f64,
}

/// The values of all columns, which only the mechanisms of a plan can read.
pub struct ColumnValues(Vec<Values>);

enum Values {
    Numbers(Enclosure, Sensitive<Vec<f64>>),
    Names(StableHistogram, Sensitive<Vec<Option<String>>>),
    Count(Count, Sensitive<u64>),
}

impl ColumnsPlan {
    /// ε of a column with one share.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.share
    }

    /// δ of a column of categories.
    #[must_use]
    pub fn delta(&self) -> f64 {
        self.questions.delta
    }

    /// The number of records below which a category is not listed, usually; none for numbers.
    pub fn rarest(&self) -> Result<Vec<Option<u64>>, Error> {
        let rarest = |question: &Question| match question {
            Question::Names(histogram) => Some(histogram.threshold()),
            Question::Numbers(_) | Question::Count(_) => None,
        };
        Ok(self.questions.at(self.share)?.iter().map(rarest).collect())
    }

    /// The mechanism to pay for. If users are limited, it is that of [`PerUser`].
    pub fn mechanism(&self) -> Result<Together, Error> {
        Ok(self.questions.plan(self.share)?)
    }

    /// Reads the columns. Everything that can fail is done before the charge.
    pub fn read(&self, records: &Selection<'_>) -> Result<ColumnValues, Error> {
        let questions = self.questions.at(self.share)?.into_iter();
        let names = self.names.iter().map(String::as_str).chain(std::iter::repeat(""));
        let values = questions.zip(names).map(|(question, name)| {
            Ok(match question {
                Question::Numbers(enclosure) => Values::Numbers(enclosure, numbers(records, name)?),
                Question::Names(histogram) => Values::Names(histogram, Sensitive::new(texts(records, name)?)),
                Question::Count(count) => Values::Count(count, Sensitive::new(records.count()?)),
            })
        });
        Ok(ColumnValues(values.collect::<Result<_, Error>>()?))
    }

    /// Draws the answers.
    pub fn run(
        &self,
        mut paid: Paid<Together>,
        values: ColumnValues,
    ) -> Result<Vec<Found>, quell_privacy::Error> {
        let mut found = Vec::new();
        for (place, values) in values.0.into_iter().enumerate() {
            found.push(match values {
                Values::Numbers(enclosure, values) => {
                    let bounds = paid.take(place, enclosure)?.run(&values)?;
                    Found::Bounds([bounds.lower(), bounds.upper()])
                }
                Values::Names(histogram, values) => {
                    let names = paid.take(place, histogram)?.run(&values)?;
                    Found::Names(names.into_iter().map(|(name, _)| name).collect())
                }
                Values::Count(count, records) => {
                    Found::Count(paid.take(place, count)?.run(&records)?.value.max(1.0) as u64)
                }
            });
        }
        Ok(found)
    }
}

/// The mechanism that answers a question.
enum Question {
    Numbers(Enclosure),
    Names(StableHistogram),
    Count(Count),
}

/// The questions about all columns, for any ε of a column.
struct Questions {
    /// What is asked, or none for the number of records, and the shares of ε.
    columns: Vec<(Option<Unknown>, f64)>,
    /// δ of a column of categories.
    delta: f64,
    neighbors: Neighbors,
    /// The most records of a user, if they are limited.
    most: Option<u32>,
}

impl Questions {
    fn at(&self, share: f64) -> Result<Vec<Question>, quell_privacy::Error> {
        let question = |(unknown, shares): &(Option<Unknown>, f64)| {
            // A mechanism is made for one record; all records of a user together cost the share.
            let (epsilon, delta) = PerUser::share_of_record(
                Epsilon::new(share * shares)?,
                Delta::new(self.delta)?,
                self.most.unwrap_or(1),
            )?;
            Ok(match unknown {
                Some(Unknown::Bounds(within)) => Question::Numbers(Enclosure { within: *within, epsilon }),
                Some(Unknown::Categories) => {
                    Question::Names(StableHistogram::for_epsilon(epsilon, delta, self.neighbors)?)
                }
                None => Question::Count(Count::for_epsilon(epsilon)?),
            })
        };
        self.columns.iter().map(question).collect()
    }

    fn plan(&self, share: f64) -> Result<Together, quell_privacy::Error> {
        let mut plan = Together::new(self.neighbors);
        for question in self.at(share)? {
            match question {
                Question::Numbers(enclosure) => plan.add(&enclosure)?,
                Question::Names(histogram) => plan.add(&histogram)?,
                Question::Count(count) => plan.add(&count)?,
            }
        }
        Ok(plan)
    }

    /// What a plan does to the data of one user, or of one record.
    fn event(&self, plan: Together) -> Event {
        match self.most {
            Some(records) => PerUser { mechanism: plan, records }.event(self.neighbors),
            None => plan.event(self.neighbors),
        }
    }

    /// The ε of one share, so that all answers together cost `epsilon`.
    ///
    /// An equal share is always enough, because ε adds up. Many columns compose to less by their Rényi
    /// divergences, so a larger share is searched for, where the ledger uses these. The share depends on the terms
    /// of the ledger and not on what was spent: a repeated question finds the same share.
    fn share(&self, epsilon: f64, state: &State) -> Result<f64, quell_privacy::Error> {
        let shares: f64 = self.columns.iter().map(|(_, shares)| shares).sum();
        let mut low = epsilon / shares.max(1.0);
        let terms = state.terms();
        if !matches!(terms.composition, Composition::Combined | Composition::Renyi) {
            return Ok(low);
        }
        let Ok(delta) = Delta::new(RENYI * terms.budget.delta.get()) else { return Ok(low) };
        let mut high = epsilon;
        for _ in 0..12 {
            let middle = 0.5 * (low + high);
            let event = without_delta(&self.event(self.plan(middle)?));
            let cost = Renyi::new(&event, self.neighbors)?.epsilon(delta, Conversion::Tight).upper;
            // A hundredth is for the fixed orders of a ledger.
            if cost <= 0.99 * epsilon { low = middle } else { high = middle }
        }
        Ok(low)
    }
}

/// The event with ε in place of each (ε, δ): a ledger counts these δ apart.
fn without_delta(event: &Event) -> Event {
    match event {
        Event::Approximate { epsilon, .. } => Event::Pure { epsilon: *epsilon },
        Event::Composed(events) => Event::Composed(events.iter().map(without_delta).collect()),
        other => other.clone(),
    }
}

/// Reads a column as text, whatever its declared type.
fn texts(records: &Selection<'_>, name: &str) -> Result<Vec<Option<String>>, Error> {
    if records.kind(name) == Some(Kind::Number) {
        let numbers = records.numbers(name)?.into_iter();
        return Ok(numbers.map(|number| number.map(|number| number.to_string())).collect());
    }
    records.texts(name)
}
