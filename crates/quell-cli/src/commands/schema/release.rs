//! Finds unknown bounds and categories, released through the ledger of the dataset.

use anyhow::Result;
use quell::{
    data::{Kind, Selection, Table},
    run::Purchase,
};
use quell_ledger::Volume;
use quell_privacy::{
    Error, Event, Neighbors,
    accounting::{Conversion, Renyi},
    ledger::{Composition, Ledger, Paid, State, Unit},
    mechanism::{Bounds, Enclosure, Mechanism, PerUser, Sensitive, StableHistogram, Together},
    number::{Toward, format_rounded},
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
///
/// Times in milliseconds since 1970 are below 10¹³.
const WITHIN: [f64; 2] = [-1e13, 1e13];

/// The default part of the budget's δ for categories.
///
/// A ledger sets aside little more for guarantees with their own δ.
const DELTA: f64 = 1.0 / 2000.0;

/// The part of the budget's δ at which a ledger with all theorems evaluates Rényi divergences.
const RENYI: f64 = 0.1;

/// The name of the only part of the question.
const SCHEMA: &str = "schema";

/// The mechanism that answers the question about a column.
enum Question {
    Numbers(Enclosure),
    Names(StableHistogram),
}

impl Question {
    /// The number of records below which a category is not listed, usually.
    fn rarest(&self) -> Option<u64> {
        match self {
            Self::Numbers(_) => None,
            Self::Names(histogram) => Some(histogram.threshold()),
        }
    }
}

/// The values of a column, with the mechanism that may read them.
enum Column {
    Numbers(Enclosure, Sensitive<Vec<f64>>),
    Names(StableHistogram, Sensitive<Vec<Option<String>>>),
}

/// The shares of ε that a label gets in a table with many columns, where an equal share may show no class.
const LABEL_SHARES: f64 = 3.0;

/// The number of columns from which on a label gets more than an equal share.
const MANY_COLUMNS: usize = 16;

/// The questions about all columns, for any ε of a column.
struct Questions<'r> {
    /// The role of each column, the range in which its numbers are searched, and its shares of ε.
    columns: Vec<(&'r Role, Bounds, f64)>,
    /// δ of a column of categories.
    delta: f64,
    neighbors: Neighbors,
    /// The most records of a user, if they are limited.
    most: Option<u32>,
}

impl Questions<'_> {
    fn at(&self, share: f64) -> Result<Vec<Question>, Error> {
        let question = |(role, within, shares): &(&Role, Bounds, f64)| {
            // A mechanism is made for one record; all records of a user together cost the share.
            let (epsilon, delta) = PerUser::share_of_record(
                Epsilon::new(share * shares)?,
                Delta::new(self.delta)?,
                self.most.unwrap_or(1),
            )?;
            if **role == Role::Number {
                return Ok(Question::Numbers(Enclosure { within: *within, epsilon }));
            }
            Ok(Question::Names(StableHistogram::for_epsilon(epsilon, delta, self.neighbors)?))
        };
        self.columns.iter().map(question).collect()
    }

    fn plan(&self, share: f64) -> Result<Together, Error> {
        let mut plan = Together::new(self.neighbors);
        for question in self.at(share)? {
            match question {
                Question::Numbers(enclosure) => plan.add(&enclosure)?,
                Question::Names(histogram) => plan.add(&histogram)?,
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

    /// The ε of one share, so that all columns together cost `epsilon`.
    ///
    /// An equal share is always enough, because ε adds up. Many columns compose to less by their Rényi
    /// divergences, so a larger share is searched for, where the ledger uses these. The share depends on the terms
    /// of the ledger and not on what was spent: a repeated command finds the same share.
    fn share(&self, epsilon: f64, state: &State) -> Result<f64, Error> {
        let shares: f64 = self.columns.iter().map(|(_, _, shares)| shares).sum();
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

impl Flags {
    /// Finds bounds and categories of every column, and pays for them with one charge.
    ///
    /// The second part is the number of records below which a category is not listed, for each column of categories.
    pub(super) fn release(
        &self,
        table: &Table,
        roles: &[(String, Role)],
        label: &str,
        epsilon: f64,
    ) -> Result<(Vec<Values>, Vec<Option<u64>>)> {
        payment::check_positive(epsilon)?;
        let within = self.within(roles)?;
        let (mut ledger, dataset) = self.ledger()?;
        let state = ledger.state()?.clone();
        let records = match (self.max_per_user, &self.user) {
            (Some(most), Some(user)) => table.all().at_most_per_user(user, most)?,
            _ => table.all(),
        };
        let counted = roles.iter().filter(|(_, role)| *role == Role::Category).count();
        let delta = Delta::new(self.delta.unwrap_or(DELTA * state.budget().delta.get()))?.get()
            / counted.max(1) as f64;
        let is_wide = roles.len() >= MANY_COLUMNS;
        let shares = |name: &String| if is_wide && name == label { LABEL_SHARES } else { 1.0 };
        let questions = Questions {
            columns: roles
                .iter()
                .zip(&within)
                .map(|((name, role), within)| (role, *within, shares(name)))
                .collect(),
            delta,
            neighbors: state.terms().neighbors,
            most: self.max_per_user,
        };
        let share = questions.share(epsilon, &state)?;
        let plan = questions.plan(share)?;
        let rarest: Vec<Option<u64>> = questions.at(share)?.iter().map(Question::rarest).collect();
        let asked = self.question(roles, label, &within, (&dataset, delta, epsilon));
        let mut purchase = self.output.as_deref().map(|path| Purchase::open(path, &asked)).transpose()?;
        let is_paid =
            purchase.as_ref().map_or(Ok(false), |purchase| purchase.is_paid(&mut ledger, SCHEMA))?;
        if !is_paid {
            match self.max_per_user {
                Some(records) => check_budget(&mut ledger, &PerUser { mechanism: plan.clone(), records })?,
                None => check_budget(&mut ledger, &plan)?,
            }
        }
        // Everything that can fail is done before the charge.
        let mut columns = Vec::new();
        for ((name, _), question) in roles.iter().zip(questions.at(share)?) {
            columns.push(match question {
                Question::Numbers(enclosure) => Column::Numbers(enclosure, numbers(&records, name)?),
                Question::Names(histogram) => {
                    Column::Names(histogram, Sensitive::new(texts(table, &records, name)?))
                }
            });
        }
        let names: Vec<&str> = roles.iter().map(|(name, _)| name.as_str()).collect();
        ledger.annotate(&author::note(Some(&self.data), format!("a schema of {}", names.join(", "))));
        let first = ledger.state()?.lines();
        let found = match self.max_per_user {
            Some(records) => {
                let limited = PerUser { mechanism: plan, records };
                buy(&mut ledger, purchase.as_mut(), limited, |paid| run(paid.of_records(), columns))?
            }
            None => buy(&mut ledger, purchase.as_mut(), plan, |paid| run(paid, columns))?,
        };
        if ledger.state()?.lines() > first {
            let balance = print::balance(ledger.state()?.spent(), ledger.state()?.budget().cap());
            print::status(&format!(
                "charged to {dataset:?} in line {first}, ε = {} for each of {} columns{}: {balance}",
                format_rounded(share, 4, Toward::Up),
                roles.len(),
                if is_wide { ", three times as much for the label" } else { "" }
            ));
        }
        if let Some(rarest) = rarest.iter().flatten().max() {
            print::status(&format!(
                "note: classes and categories with fewer than about {rarest} records are not listed, as the comments of the schema say; add those that you know"
            ));
        }
        if found.is_none() {
            print::status(
                "note: the values of all columns were charged and then lost; the schema has gaps for them",
            );
        }
        Ok((found.unwrap_or_else(|| roles.iter().map(|_| Values::Open).collect()), rarest))
    }

    /// The question of this command, by which a paid answer is recognised.
    fn question(
        &self,
        roles: &[(String, Role)],
        label: &str,
        within: &[Bounds],
        (dataset, delta, epsilon): (&str, f64, f64),
    ) -> serde_json::Value {
        let mut asked = json!({"schema": {
            "data": path_text(&self.data),
            "dataset": dataset,
            "delta": delta,
            "epsilon": epsilon,
            "plan": "one charge",
            "label": label,
            "roles": roles,
            "within": within.iter().map(|within| [within.lower(), within.upper()]).collect::<Vec<_>>(),
        }});
        // Questions about files of the usual layout keep the text that they had before there were others.
        let layout = self.layout.layout();
        if !layout.is_default() {
            asked["schema"]["file"] = json!(layout);
        }
        if let Some(most) = self.max_per_user {
            asked["schema"]["max_per_user"] = json!(most);
            asked["schema"]["user"] = json!(self.user);
        }
        asked
    }

    /// Opens the ledger of the dataset, and returns it with the name of the dataset.
    fn ledger(&self) -> Result<(Ledger<Volume>, String)> {
        let missing = || {
            Refusal::new(
                format!("{} has no file name", self.data.display()),
                "name the dataset with --dataset",
            )
        };
        let dataset = Dataset::of(self.dataset.as_ref(), &self.data).ok_or_else(missing)?;
        let is_limited = self.one_record_per_user || self.max_per_user.is_some();
        let hint = "add --max-per-user N and --user COLUMN, or --one-record-per-user if every user has only one record";
        let mut ledger = self.ledgers.ledger_of_records(&dataset, is_limited, hint)?;
        let dataset = dataset.name;
        if self.max_per_user.is_some() && ledger.state()?.terms().unit != Unit::User {
            // A record that is removed would let another record of its user in, so two records would change.
            let sentence =
                format!("the ledger of {dataset:?} protects records, expected one that protects users");
            return Err(Refusal::new(sentence, "leave --max-per-user out").into());
        }
        Ok((ledger, dataset))
    }

    /// The range in which the numbers of each column are searched.
    fn within(&self, roles: &[(String, Role)]) -> Result<Vec<Bounds>> {
        let wrong = |text: &str| {
            let sentence =
                format!("--within is {text:?}, expected two numbers, or a column with two numbers");
            Refusal::new(sentence, "write --within 0 1000, or --within age=0,120 for one column")
        };
        let (mut usual, mut given, mut loose) = (Bounds::new(WITHIN[0], WITHIN[1])?, Vec::new(), Vec::new());
        for text in self.within.iter().flatten() {
            // A column may have an equals sign in its name; numbers have none.
            let Some((column, range)) = text.rsplit_once('=') else {
                loose.push(text.parse::<f64>().map_err(|_| wrong(text))?);
                continue;
            };
            let ends: Vec<f64> = range
                .split(',')
                .map(|end| end.trim().parse())
                .collect::<Result<_, _>>()
                .map_err(|_| wrong(text))?;
            let &[lower, upper] = ends.as_slice() else { return Err(wrong(text).into()) };
            if !roles.iter().any(|(name, role)| name == column && *role == Role::Number) {
                let sentence = format!("--within names {column:?}, expected a column of numbers");
                return Err(Refusal::new(sentence, "list the column in --numbers").into());
            }
            given.push((column, Bounds::new(lower, upper)?));
        }
        match loose.as_slice() {
            [] => {}
            &[lower, upper] => usual = Bounds::new(lower, upper)?,
            _ => {
                let sentence = format!("--within has {} numbers, expected two", loose.len());
                return Err(Refusal::new(sentence, "write --within age=0,120 for each column").into());
            }
        }
        let of = |(name, _): &(String, Role)| {
            given.iter().find(|(column, _)| column == name).map_or(usual, |(_, bounds)| *bounds)
        };
        Ok(roles.iter().map(of).collect())
    }
}

/// Pays for a mechanism and runs it; once only if there is a file for the answer.
fn buy<M: Mechanism>(
    ledger: &mut Ledger<Volume>,
    purchase: Option<&mut Purchase>,
    mechanism: M,
    run: impl FnOnce(Paid<M>) -> Result<Vec<Values>, Error>,
) -> Result<Option<Vec<Values>>> {
    Ok(match purchase {
        Some(purchase) => purchase.buy(ledger, SCHEMA, mechanism, run)?,
        None => Some(run(ledger.charge(mechanism)?)?),
    })
}

/// Draws the answers about all columns.
fn run(mut paid: Paid<Together>, columns: Vec<Column>) -> Result<Vec<Values>, Error> {
    let mut found = Vec::new();
    for (place, column) in columns.into_iter().enumerate() {
        found.push(match column {
            Column::Numbers(enclosure, values) => {
                let bounds = paid.take(place, enclosure)?.run(&values)?;
                Values::Bounds([bounds.lower(), bounds.upper()])
            }
            Column::Names(histogram, values) => {
                let names = paid.take(place, histogram)?.run(&values)?;
                Values::Names(names.into_iter().map(|(name, _)| name).collect())
            }
        });
    }
    Ok(found)
}

/// Reads a column as numbers; NaN where a number is missing.
fn numbers(records: &Selection<'_>, name: &str) -> Result<Sensitive<Vec<f64>>> {
    let numbers = records.numbers(name)?;
    Ok(Sensitive::new(numbers.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect()))
}

/// Reads a column as text, whatever its declared type.
fn texts(table: &Table, records: &Selection<'_>, name: &str) -> Result<Vec<Option<String>>> {
    let is_number = table.columns().iter().any(|column| column.name == name && column.kind == Kind::Number);
    if is_number {
        return Ok(records
            .numbers(name)?
            .into_iter()
            .map(|number| number.map(|number| number.to_string()))
            .collect());
    }
    Ok(records.texts(name)?)
}

/// Checks that the budget suffices. A refusal comes before anything is paid.
fn check_budget<M: Mechanism>(ledger: &mut Ledger<Volume>, plan: &M) -> Result<()> {
    let (spent, budget) = (ledger.state()?.spent().epsilon, ledger.state()?.budget().cap());
    let (charge, after) = ledger.quote(plan, 1)?;
    let would_be = after.epsilon;
    if would_be <= budget && !ledger.state()?.is_last(&charge) {
        return Ok(());
    }
    let hint = if would_be > budget && would_be.is_finite() {
        "give a smaller --epsilon, or raise the budget with `quell ledger raise`"
    } else {
        "the δ of the categories exceeds the δ that the ledger reserves for releases with a δ; give a much smaller --delta"
    };
    Err(Refusal::new(Error::Refused { would_be, spent, budget }.to_string(), hint).denied().into())
}
