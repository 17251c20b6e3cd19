//! Writes a schema as TOML, with a comment on every line and gaps for the user to fill in.

use std::fmt::Write;

use quell::data::{Decimal, Encoding, Kind, Layout, Table};

use super::{Flags, Role, Values};

/// The place of the comment in a line.
const COMMENTS_AT: usize = 40;

impl Flags {
    /// Returns the schema as TOML, with gaps for the user to fill in.
    pub(super) fn text(
        &self,
        table: &Table,
        roles: &[(String, Role)],
        values: &[Values],
        rarest: &[Option<u64>],
        label: &str,
    ) -> String {
        let mut text = String::from(
            "# Public facts about the table. Do not copy values from private records into this file.\n\
             # Other kinds of columns: boolean = true, date = { from = \"2015-01-01\", to = \"2024-12-31\" },\n\
             # text = { hashed = 256 }.\n",
        );
        if !self.ignore.is_empty() {
            text += &line(&format!("ignore = [{}]", list(&self.ignore)), "columns that are not read");
        }
        if let Some(user) = &self.user {
            text += &line(&format!("user = {}", quoted(user)), "the column that says whose record it is");
        }
        text += &file_lines(&self.layout.layout());
        let is_boolean = |name: &str| {
            table.columns().iter().any(|column| column.name == name && column.kind == Kind::Boolean)
        };
        let columns = || roles.iter().zip(values.iter().zip(rarest));
        let column = |name: &str| columns().find(|((other, _), _)| other == name);
        let last =
            if self.label.is_none() { "the last column; choose another with --label" } else { "its name" };
        text += "\n";
        text += &line("[label]", "the column to predict");
        text += &line(&format!("column = {}", quoted(label)), last);
        if let Some(((_, role), (values, rarest))) = column(label) {
            text += &value_lines(*role, values, *rarest, "classes");
        }
        text += "\n";
        text += &line("# [test]", "a test part, as private as the rest");
        text += &line("# share = 0.2", "its share of the records");
        for ((name, role), (values, rarest)) in columns().filter(|((name, _), _)| name != label) {
            text += "\n";
            text += &line("[[column]]", "a column to learn from");
            text += &line(&format!("name = {}", quoted(name)), "its name");
            if is_boolean(name) && matches!(values, Values::Open) {
                text += &line("boolean = true", "the file declares true or false");
                continue;
            }
            text += &value_lines(*role, values, *rarest, "categories");
            if matches!(values, Values::Names(_)) {
                text += &line("unknown = true", "one more feature: missing, or none of the categories");
            }
        }
        text
    }
}

/// Writes how the file is written, if that was declared.
fn file_lines(layout: &Layout) -> String {
    if layout.is_default() {
        return String::new();
    }
    let mut text = format!("\n{}", line("[file]", "how the file is written"));
    if let Some(delimiter) = layout.delimiter {
        text += &line(&format!("delimiter = {}", quoted(&delimiter.to_string())), "between two cells");
    }
    if let Some(names) = &layout.header {
        text += &line(&format!("header = [{}]", list(names)), "the first row of the file is a record");
    }
    if layout.decimal == Some(Decimal::Comma) {
        text += &line("decimal = \",\"", "before the decimals of a number");
    }
    if layout.encoding == Some(Encoding::Latin1) {
        text += &line("encoding = \"latin-1\"", "how letters are written");
    }
    if !layout.missing.is_empty() {
        text += &line(&format!("missing = [{}]", list(&layout.missing)), "cells that count as missing");
    }
    text
}

/// The gaps that a person fills in.
const BOUNDS_GAP: &str = "# bounds = [lowest, highest]";
const NAMES_GAP: &str = "[\"…\", \"…\"]";

/// Whether a schema that was written here has gaps.
pub(in crate::commands) fn has_gaps(text: &str) -> bool {
    text.contains(BOUNDS_GAP) || text.contains(NAMES_GAP)
}

/// Writes the lines for the values of a column, or the gaps to fill in.
fn value_lines(role: Role, values: &Values, rarest: Option<u64>, lists: &str) -> String {
    let rare = rarest.map_or_else(
        || "released: the frequent ones".to_owned(),
        |rarest| format!("released; not listed: those with fewer than about {rarest} records"),
    );
    let bounds = line(BOUNDS_GAP, "numbers: public bounds; others are clamped to them");
    let names = line(&format!("# {lists} = {NAMES_GAP}"), "names: all of them, as the cells write them");
    match (values, role) {
        (Values::Bounds([low, high]), _) => {
            line(&format!("bounds = [{low:?}, {high:?}]"), "released bounds; others are clamped to them")
        }
        (Values::Names(found), _) if found.is_empty() => {
            line("# No category is frequent enough.", "list some, or ignore the column") + &names
        }
        (Values::Names(found), _) => line(&format!("{lists} = [{}]", list(found)), &rare),
        (Values::Open, Role::Number) => bounds,
        (Values::Open, Role::Category) => names,
        (Values::Open, Role::Open) => bounds + &names,
    }
}

/// Writes a line with a comment.
pub(in crate::commands) fn line(setting: &str, comment: &str) -> String {
    let mut line = setting.to_owned();
    let _ = writeln!(line, "{:1$}  # {comment}", "", COMMENTS_AT.saturating_sub(setting.chars().count() + 2));
    line
}

/// Writes the items of a TOML list.
fn list(names: &[String]) -> String {
    names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}

/// Writes a TOML string.
pub(in crate::commands) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_toml() {
        for name in ["plain", "say \"a\"", "back\\slash", "two\nlines", "é'"] {
            let text = format!("name = {}", quoted(name));
            let read: toml::Table = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(read["name"].as_str(), Some(name));
        }
    }
}
