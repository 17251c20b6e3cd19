//! Finds unknown bounds and categories, released through the ledger of the dataset.

use anyhow::Result;
use quell::{
    data::Table,
    run::Purchase,
    statistics::{Columns, Found, Unknown, WIDEST},
};
use quell_ledger::Volume;
use quell_privacy::{
    Error,
    ledger::{Ledger, Paid, Unit},
    mechanism::{Bounds, Mechanism, PerUser},
    number::{Toward, format_rounded},
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

/// The name of the only part of the question.
const SCHEMA: &str = "schema";

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
        let unknown = |(role, within): (&Role, &Bounds)| match role {
            Role::Number => Unknown::Bounds(*within),
            Role::Category | Role::Open => Unknown::Categories,
        };
        let columns = Columns {
            columns: roles
                .iter()
                .zip(&within)
                .map(|((name, role), within)| (name.clone(), unknown((role, within))))
                .collect(),
            label: Some(label.to_owned()),
            delta: self.delta,
            one_record_per_user: self.one_record_per_user,
            ..Columns::default()
        };
        let questions = columns.plan(&state, epsilon, self.max_per_user)?;
        let (plan, rarest) = (questions.mechanism()?, questions.rarest()?);
        let asked = self.question(roles, label, &within, (&dataset, questions.delta(), epsilon));
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
        let values = questions.read(&records)?;
        let names: Vec<&str> = roles.iter().map(|(name, _)| name.as_str()).collect();
        ledger.annotate(&author::note(Some(&self.data), format!("a schema of {}", names.join(", "))));
        let first = ledger.state()?.lines();
        let found = match self.max_per_user {
            Some(records) => {
                let limited = PerUser { mechanism: plan, records };
                buy(&mut ledger, purchase.as_mut(), limited, |paid| questions.run(paid.of_records(), values))?
            }
            None => buy(&mut ledger, purchase.as_mut(), plan, |paid| questions.run(paid, values))?,
        };
        if ledger.state()?.lines() > first {
            let balance = print::balance(ledger.state()?.spent(), ledger.state()?.budget().cap());
            print::status(&format!(
                "charged to {dataset:?} in line {first}, ε = {} for each of {} columns{}: {balance}",
                format_rounded(questions.share(), 4, Toward::Up),
                roles.len(),
                if columns.is_wide() { ", three times as much for the label" } else { "" }
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
        let values = match found {
            Some(found) => found.into_iter().map(Values::from).collect(),
            None => roles.iter().map(|_| Values::Open).collect(),
        };
        Ok((values, rarest))
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
        let (mut usual, mut given, mut loose) = (Bounds::new(WIDEST[0], WIDEST[1])?, Vec::new(), Vec::new());
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
    run: impl FnOnce(Paid<M>) -> Result<Vec<Found>, Error>,
) -> Result<Option<Vec<Found>>> {
    Ok(match purchase {
        Some(purchase) => purchase.buy(ledger, SCHEMA, mechanism, run)?,
        None => Some(run(ledger.charge(mechanism)?)?),
    })
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
