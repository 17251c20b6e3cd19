//! Shows ledgers: all datasets, the lines of one, and its privacy guarantee in sentences.

use anyhow::Result;
use quell_ledger::{Entry, Summary};
use quell_privacy::{
    Event, Statement,
    ledger::{Budget, Line, Note},
    number::{Toward, format_exact, format_rounded},
};
use serde_json::{Value, json};

use super::{Listed, Named};
use crate::{
    flags::{Format, ledger::Dataset},
    print,
};

/// Formats ε for people, rounded up.
fn epsilon(value: f64) -> String {
    format_rounded(value, 4, Toward::Up)
}

/// Formats ε for programs. Infinity becomes null, because JSON has no infinity.
fn number(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { Value::Null }
}

/// Lists all datasets with their budgets and their last charges.
pub(super) fn list(listed: &Listed) -> Result<()> {
    let mut store = listed.ledgers.store()?;
    let mut datasets = Vec::new();
    for summary in store.datasets()? {
        let entries = store.entries(&summary.dataset)?;
        let last = entries.into_iter().rev().find(|entry| matches!(entry.line, Line::Charged(_)));
        datasets.push((summary, last));
    }
    if listed.format == Format::Json {
        let row = |(s, last): &(Summary, Option<Entry>)| {
            let last = last.as_ref().map(released);
            json!({"dataset": s.dataset, "lines": s.lines, "spent": number(s.spent), "cap": number(s.cap), "head": s.head, "last_charge": last})
        };
        return print::json(&datasets.iter().map(row).collect::<Vec<_>>());
    }
    let header = ["dataset", "ε spent", "budget", "lines", "head", "last charge"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    rows.extend(datasets.into_iter().map(|(s, last)| {
        let last = last.as_ref().map_or_else(|| "none".into(), in_words);
        let head = s.head[..16].to_owned();
        vec![s.dataset, epsilon(s.spent), format_cap(s.cap), s.lines.to_string(), head, last]
    }));
    print::lines(&print::table(&rows, &[1, 2, 3]))
}

fn format_cap(cap: f64) -> String {
    if cap.is_finite() { format_exact(cap) } else { "no cap".into() }
}

/// A charge for programs: when, by whom, from which file, and for what.
fn released(entry: &Entry) -> Value {
    let Note { by, file, release, condition } = &entry.note;
    let what = if let Line::Charged(charge) = &entry.line { Some(&charge.what) } else { None };
    json!({"line": entry.number, "time": entry.time, "by": by, "file": file, "release": release, "condition": condition, "mechanism": what})
}

/// A charge for people, in one line.
fn in_words(entry: &Entry) -> String {
    let Note { by, file, .. } = &entry.note;
    let by = by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let file = file.as_ref().map(|file| format!(" from {file}")).unwrap_or_default();
    format!("{}{by}{file}: {}", entry.time, subject(entry))
}

/// What was released. The mechanism, for lines of earlier versions.
fn subject(entry: &Entry) -> String {
    if entry.note.release.is_some() { entry.note.to_string() } else { describe(&entry.line) }
}

/// Shows the lines of a ledger.
pub(super) fn show(named: &Named) -> Result<()> {
    let entries = named.listed.ledgers.store()?.entries(&named.dataset)?;
    if named.listed.format == Format::Json {
        let row = |(e, added): (&Entry, f64)| json!({"number": e.number, "time": e.time, "line": e.line, "spent": number(e.spent), "added": number(added), "head": e.head, "note": e.note});
        let added = added(&entries);
        return print::json(&entries.iter().zip(added).map(row).collect::<Vec<_>>());
    }
    // A ledger of an earlier version has no words, and a column without words is left out.
    let has_names = entries.iter().any(|e| e.note.by.is_some());
    let has_files = entries.iter().any(|e| e.note.file.is_some());
    let row = |cells: [String; 7]| -> Vec<String> {
        let is_shown = |column: usize| (column != 4 || has_names) && (column != 5 || has_files);
        cells.into_iter().enumerate().filter(|(column, _)| is_shown(*column)).map(|(_, cell)| cell).collect()
    };
    let header = ["line", "time", "ε added", "ε spent", "by", "file", "entry"];
    let mut rows = vec![row(header.map(str::to_owned))];
    let added = added(&entries);
    rows.extend(gathered(entries).into_iter().map(|(lines, e)| {
        let is_charge = matches!(e.line, Line::Charged(_));
        let added = usize::try_from(e.number).ok().and_then(|number| added.get(number)).filter(|_| is_charge);
        // To the nearest of four digits: the difference of two rounded totals is no bound.
        let added = added.map(|added| epsilon(added * (1.0 - 5e-5)));
        let mechanism = describe(&e.line);
        let words = e.note.to_string();
        let entry = if words.is_empty() { mechanism } else { format!("{words}: {mechanism}") };
        let word = |text: Option<String>| text.unwrap_or_default();
        row([lines, e.time, word(added), epsilon(e.spent), word(e.note.by), word(e.note.file), entry])
    }));
    print::lines(&print::table(&rows, &[0, 2, 3]))
}

/// The ε that each line added to the total. It depends on the lines before, because costs compose.
fn added(entries: &[Entry]) -> Vec<f64> {
    let before = std::iter::once(0.0).chain(entries.iter().map(|entry| entry.spent));
    entries.iter().zip(before).map(|(entry, before)| (entry.spent - before).max(0.0)).collect()
}

/// Lines with their numbers. Neighbouring leases and confirmations of a charge become one.
fn gathered(entries: Vec<Entry>) -> Vec<(String, Entry)> {
    let mut lines: Vec<(u64, Entry)> = Vec::new();
    for entry in entries {
        match lines.last_mut() {
            Some((_, last))
                if handed_out(&last.line).is_some_and(|own| handed_out(&entry.line) == Some(own)) =>
            {
                *last = entry;
            }
            _ => lines.push((entry.number, entry)),
        }
    }
    let numbers =
        |first: u64, last: u64| if first == last { last.to_string() } else { format!("{first}-{last}") };
    lines.into_iter().map(|(first, entry)| (numbers(first, entry.number), entry)).collect()
}

/// The charge whose steps a line hands out or confirms.
fn handed_out(line: &Line) -> Option<u64> {
    match line {
        Line::Leased { charge, .. } | Line::Confirmed { charge, .. } => Some(*charge),
        Line::Opened(_) | Line::Charged(_) | Line::Raised { .. } => None,
    }
}

/// Describes a line of the ledger in words.
fn describe(line: &Line) -> String {
    let budget = |budget: &Budget| {
        format!(
            "{} at δ = {}",
            budget.epsilon.map_or_else(|| "no cap".into(), |e| format!("ε ≤ {}", format_exact(e.get()))),
            format_exact(budget.delta.get())
        )
    };
    match line {
        Line::Opened(terms) => {
            format!(
                "created: {}, neighbors: {}, privacy unit: {}",
                budget(&terms.budget),
                terms.neighbors,
                terms.unit
            )
        }
        Line::Charged(charge) => {
            let seeded = if charge.non_private { "NOT PRIVATE (the noise came from a seed): " } else { "" };
            // The runs of a search together are one release.
            if charge.steps == 1 || matches!(charge.plan.event, Event::BestOf { .. }) {
                format!("{seeded}{}", charge.what)
            } else {
                format!("{seeded}{} times: {}", charge.steps, charge.what)
            }
        }
        Line::Leased { charge, until } => format!("leased steps of line {charge} up to step {until}"),
        Line::Confirmed { charge, until } => {
            format!("leased and confirmed steps of line {charge} up to step {until}")
        }
        Line::Raised { budget: new, reason } => format!("budget changed to {}: {reason}", budget(new)),
    }
}

/// States the privacy guarantee of a dataset, and lists what was released.
pub(super) fn statement(named: &Named) -> Result<()> {
    let mut ledger = named.listed.ledgers.ledger(&Dataset::named(&named.dataset))?;
    let statement = Statement::new(ledger.state()?)?;
    let entries = named.listed.ledgers.store()?.entries(&named.dataset)?;
    let charges = entries.iter().filter(|entry| matches!(entry.line, Line::Charged(_)));
    if named.listed.format == Format::Json {
        let mut statement = serde_json::to_value(&statement)?;
        if let Some(fields) = statement.as_object_mut() {
            fields.insert("releases".into(), charges.map(released).collect());
        }
        return print::json(&statement);
    }
    print::lines(&statement.to_string())?;
    let releases: Vec<String> =
        charges.map(|entry| format!("  line {}, {}", entry.number, in_words(entry))).collect();
    if releases.is_empty() {
        return Ok(());
    }
    print::line("Releases:")?;
    releases.iter().try_for_each(|release| print::line(release))
}
