//! `quell schema`: writes a first schema of a table; bounds and categories are paid for.

mod found;
mod text;

use std::path::PathBuf;

use anyhow::{Context, Result};
use quell::data::{Column, Kind, Table, TableError};
use serde::{Deserialize, Serialize};

use crate::{flags::ledger::LedgerArgs, print, refusal::Refusal};

const EXAMPLES: &str = "\
Examples:
  quell schema census.csv
  quell schema census.csv --numbers age,hours_per_week --categories education,sex --label income
  quell ledger create census --epsilon 3 --delta 1e-6
  quell schema census.csv --numbers age,hours_per_week --within 0 1000 --label income --epsilon 1 --output schema.toml";

/// A schema of a table to start from: names freely, bounds and categories for a price
///
/// Without --epsilon, what is not known is left open, to be filled in from what is publicly known. With it, bounds of numbers and
/// the more frequent categories are found through the ledger of the dataset, ε being divided equally between the columns.
/// Bounds are round numbers that hold nearly all records: half the width is worth a thousandth of them. The fewer the records, the more ε a column needs: 1,000 divided by its
/// ε are enough, and with more of either the bounds get sharper. A column in which all but one or two in a hundred are equal is taken for a constant; state its bounds yourself.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// CSV (with a header) or Parquet file
    data: PathBuf,
    /// Column to be learned (the last if not given)
    #[arg(long, value_name = "COLUMN")]
    label: Option<String>,
    /// Columns of numbers, separated by commas; the columns of a CSV file are nothing by themselves
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    numbers: Vec<String>,
    /// Columns of categories, separated by commas (with --epsilon, all that are not numbers)
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    categories: Vec<String>,
    /// Columns that are not looked at, separated by commas
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    ignore: Vec<String>,
    /// Column that tells people apart
    #[arg(long, value_name = "COLUMN")]
    user: Option<String>,
    /// ε for all columns together; without it nothing is looked at
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// δ for all columns of categories together (a small part of that of the budget if not given)
    #[arg(long, value_name = "D", allow_negative_numbers = true, requires = "epsilon")]
    delta: Option<f64>,
    /// Where numbers are looked for, from what is publicly known (-1e9 to 1e9 if not given)
    #[arg(long, num_args = 2, value_names = ["LOWER", "UPPER"], allow_hyphen_values = true, requires = "epsilon")]
    within: Option<Vec<f64>>,
    /// Name of the dataset in the ledger (the name of the file if not given)
    #[arg(long, value_name = "NAME", requires = "epsilon")]
    dataset: Option<String>,
    /// Every person has one record: needed where the ledger protects users
    #[arg(long, requires = "epsilon")]
    one_record_per_user: bool,
    #[command(flatten)]
    ledgers: LedgerArgs,
    /// File to write (standard output if not given); the same question for the same file is paid for once, however often the command is killed and run again
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The type that a column is assumed to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Number,
    Category,
    /// The user has not declared a type.
    Open,
}

/// The known facts about the values of a column.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Values {
    Bounds([f64; 2]),
    Names(Vec<String>),
    Open,
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    let table = Table::open(&flags.data)?;
    let roles = flags.roles(&table)?;
    let label = flags.label(&roles)?;
    if !roles.iter().any(|(name, _)| *name != label) {
        let sentence =
            format!("{} has no column besides {label:?}, expected one to learn from", flags.data.display());
        return Err(Refusal::new(sentence, "a schema needs a label and at least one other column").into());
    }
    // The output path is checked first: a paid answer must not be lost because it cannot be written.
    if let Some(path) = &flags.output {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if path.is_dir() || parent.is_some_and(|parent| !parent.is_dir()) {
            let sentence =
                format!("{} cannot be written, expected a file in a folder that is there", path.display());
            return Err(Refusal::new(sentence, "name another file with --output").into());
        }
    }
    let values = match flags.epsilon {
        Some(epsilon) => flags.find(&table, &roles, epsilon)?,
        None => roles.iter().map(|_| Values::Open).collect(),
    };
    let text = flags.text(&roles, &values, &label);
    match &flags.output {
        Some(path) => {
            if let Err(error) = std::fs::write(path, &text) {
                print::document(&text)?;
                return Err(error)
                    .with_context(|| format!("cannot write {}, so it is printed", path.display()));
            }
            print::status(&format!("wrote {}", path.display()));
            Ok(())
        }
        None => print::document(&text),
    }
}

impl Flags {
    /// Lists every column that is used, with its assumed type.
    fn roles(&self, table: &Table) -> Result<Vec<(String, Role)>> {
        let named = table.columns().iter().filter(|column| !column.name.is_empty());
        let names: Vec<String> = named.clone().map(|column| column.name.clone()).collect();
        let mentioned = self.numbers.iter().chain(&self.categories).chain(&self.ignore).chain(&self.user);
        if let Some(name) = mentioned.clone().chain(&self.label).find(|name| !names.contains(name)) {
            return Err(quell::Error::from(TableError::no_column(name, table.columns())).into());
        }
        let mentioned: Vec<&String> = mentioned.collect();
        if let Some(twice) = mentioned.iter().enumerate().find(|(i, name)| mentioned[..*i].contains(name)) {
            let sentence = format!("column {:?} is named twice, expected one meaning for each", twice.1);
            return Err(
                Refusal::new(sentence, "a column is numbers, categories, ignored, or the user").into()
            );
        }
        let passed_over = |name: &String| self.ignore.contains(name) || self.user.as_ref() == Some(name);
        named
            .filter(|column| !passed_over(&column.name))
            .map(|column| Ok((column.name.clone(), self.role(column)?)))
            .collect()
    }

    fn role(&self, column: &Column) -> Result<Role> {
        let (number, category) =
            (self.numbers.contains(&column.name), self.categories.contains(&column.name));
        Ok(match (column.kind, number, category) {
            (Kind::Unreadable, ..) => {
                let sentence =
                    format!("column {:?} is {}, expected numbers or text", column.name, column.kind);
                return Err(
                    Refusal::new(sentence, format!("leave it out with --ignore {}", column.name)).into()
                );
            }
            (Kind::Text, true, _) => {
                let sentence = format!("column {:?} is declared as text, expected numbers", column.name);
                return Err(Refusal::new(sentence, "leave it out of --numbers").into());
            }
            (_, true, _) => Role::Number,
            (_, _, true) | (Kind::Text | Kind::Boolean, ..) => Role::Category,
            (Kind::Number, ..) => Role::Number,
            (Kind::Undeclared, ..) if self.epsilon.is_some() => Role::Category,
            (Kind::Undeclared, ..) => Role::Open,
        })
    }

    fn label(&self, roles: &[(String, Role)]) -> Result<String> {
        if let Some(label) = &self.label {
            if !roles.iter().any(|(name, _)| name == label) {
                let sentence = format!(
                    "column {label:?} is to be learned and also the user or ignored, expected one of them"
                );
                return Err(Refusal::new(sentence, "name another --label").into());
            }
            return Ok(label.clone());
        }
        let missing = || Refusal::new("no column is left to be learned", "leave fewer out");
        Ok(roles.last().map(|(name, _)| name.clone()).ok_or_else(missing)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the assumed type of a column.
    fn role(flags: &str, kind: Kind) -> Option<Role> {
        #[derive(clap::Parser)]
        struct Command {
            #[command(flatten)]
            flags: Flags,
        }
        let words = ["schema", "table.parquet"].into_iter().chain(flags.split_whitespace());
        let flags = <Command as clap::Parser>::try_parse_from(words).unwrap().flags;
        flags.role(&Column { name: "a".into(), kind }).ok()
    }

    #[test]
    fn a_column_is_what_is_said_or_declared_and_nothing_by_itself() {
        use Kind::{Boolean, Number, Text, Undeclared, Unreadable};
        for (flags, kind, expected) in [
            ("", Number, Some(Role::Number)),
            ("", Text, Some(Role::Category)),
            ("", Boolean, Some(Role::Category)),
            ("", Undeclared, Some(Role::Open)),
            ("--epsilon 1", Undeclared, Some(Role::Category)),
            ("--numbers a", Undeclared, Some(Role::Number)),
            ("--categories a", Number, Some(Role::Category)),
            ("--categories a", Undeclared, Some(Role::Category)),
            ("--numbers a", Text, None),
            ("", Unreadable, None),
        ] {
            assert_eq!(role(flags, kind), expected, "{flags} {kind}");
        }
    }
}
