//! `quell schema`: writes a first schema of a table; bounds and categories are paid for.

mod release;
pub(super) mod text;

use std::path::PathBuf;

use anyhow::{Context, Result};
use quell::{
    data::{Column, Kind, Table, TableError},
    statistics::Found,
};
use serde::Serialize;

use crate::{
    flags::{layout::LayoutArgs, ledger::LedgerArgs},
    print,
    refusal::Refusal,
};

const EXAMPLES: &str = "\
Examples:
  quell schema census.csv
  quell schema census.csv --numbers age,hours_per_week --categories education,sex --label income
  quell ledger create census --epsilon 3 --delta 1e-6
  quell schema census.csv --numbers age,hours_per_week --within 0 1000 --within age=0,120 --label income --epsilon 1 --output schema.toml";

/// Write a first schema of a table; bounds and categories are paid releases
///
/// Without --epsilon, the schema contains the names of the columns and gaps that you fill in from public
/// knowledge. With --epsilon, the command charges the ledger of the dataset and releases bounds of numbers and
/// the frequent categories. All columns are one charge, and each has the same share of it. Among sixteen columns or
/// more, the label has three shares.
///
/// Bounds are round numbers that contain nearly all records. Bounds of half the width are preferred if they
/// exclude less than another thousandth of the records. A column needs about 1,000 records divided by its ε; more
/// records or more ε give sharper bounds. If all but one or two percent of the values of a column are equal,
/// the column is treated as a constant; state its bounds yourself.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// CSV or Parquet file
    pub(super) data: PathBuf,
    /// Column to predict (the last if not given)
    #[arg(long, value_name = "COLUMN")]
    label: Option<String>,
    /// Columns of numbers, separated by commas
    ///
    /// A CSV file does not declare the types of its columns.
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    numbers: Vec<String>,
    /// Columns of categories, separated by commas
    ///
    /// With --epsilon and --numbers, every column that is not a number is a category.
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    categories: Vec<String>,
    /// With --epsilon: every column that is declared as nothing else is a category
    #[arg(long, requires = "epsilon")]
    all_categories: bool,
    /// Columns to leave out, separated by commas
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    ignore: Vec<String>,
    /// Column that identifies the user of a record
    #[arg(long, value_name = "COLUMN")]
    user: Option<String>,
    /// ε for all columns together; without it, no values are used
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub(super) epsilon: Option<f64>,
    /// δ for all columns of categories together
    ///
    /// If not given: a small part of the δ of the budget.
    #[arg(long, value_name = "D", allow_negative_numbers = true, requires = "epsilon")]
    delta: Option<f64>,
    /// Public range in which numbers are searched (-1e13 to 1e13 if not given)
    ///
    /// Two numbers are for all columns. `--within age=0,120` is for one column, and may be given several times.
    #[arg(long, num_args = 1..=2, value_names = ["LOWER", "UPPER"], allow_negative_numbers = true, requires = "epsilon")]
    within: Option<Vec<String>>,
    /// Name of the dataset in the ledger (the name of the file if not given)
    #[arg(long, value_name = "NAME", requires = "epsilon")]
    pub(super) dataset: Option<String>,
    /// State that every user has one record, if the ledger protects users
    #[arg(long, requires = "epsilon")]
    one_record_per_user: bool,
    /// Use at most this many records of each user, if the ledger protects users
    ///
    /// The first ones in the file are used. More records of a user mean less ε for each.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), requires_all = ["epsilon", "user"], conflicts_with = "one_record_per_user")]
    max_per_user: Option<u32>,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    ledgers: LedgerArgs,
    /// File to write (standard output if not given)
    ///
    /// The same question for the same file is charged once, even if the command is killed and run again.
    #[arg(long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
}

impl Flags {
    /// The flags that are given and say something about a table.
    pub(super) fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--label", self.label.is_some()),
            ("--numbers", !self.numbers.is_empty()),
            ("--categories", !self.categories.is_empty()),
            ("--ignore", !self.ignore.is_empty()),
            ("--user", self.user.is_some()),
            ("--epsilon", self.epsilon.is_some()),
            ("--output", self.output.is_some()),
        ];
        let given = all.into_iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| flag);
        given.chain(self.layout.given()).collect()
    }
}

/// The type that a column is assumed to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    Number,
    Category,
    /// The user has not declared a type.
    Open,
}

/// The known facts about the values of a column.
#[derive(Clone, Debug)]
enum Values {
    Bounds([f64; 2]),
    Names(Vec<String>),
    Open,
}

impl From<Found> for Values {
    fn from(found: Found) -> Self {
        match found {
            Found::Bounds(bounds) => Self::Bounds(bounds),
            Found::Names(names) => Self::Names(names),
            // No number of records is asked for.
            Found::Count(_) => Self::Open,
        }
    }
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    let table = Table::open_as(&flags.data, &flags.layout.layout())?;
    let roles = flags.roles(&table)?;
    let label = flags.label(&roles)?;
    if !roles.iter().any(|(name, _)| *name != label) {
        // The only name is not shown: in a file without a header it is a record.
        let sentence = format!(
            "{} has no column besides the label, expected at least one other column",
            flags.data.display()
        );
        let hint = "declare the character between the cells with --delimiter, and the names with --header if the file has none; or leave fewer columns out";
        return Err(Refusal::new(sentence, hint).into());
    }
    flags.check_roles(&table)?;
    // The output path is checked first: a paid answer must not be lost because it cannot be written.
    if let Some(path) = &flags.output {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        if path.is_dir() || parent.is_some_and(|parent| !parent.is_dir()) {
            let sentence =
                format!("{} cannot be written, expected a file in an existing folder", path.display());
            return Err(Refusal::new(sentence, "name another file with --output").into());
        }
    }
    let (values, rarest) = match flags.epsilon {
        Some(epsilon) => flags.release(&table, &roles, &label, epsilon)?,
        None => (roles.iter().map(|_| Values::Open).collect(), vec![None; roles.len()]),
    };
    let text = flags.text(&table, &roles, &values, &rarest, &label);
    match &flags.output {
        Some(path) => {
            if let Err(error) = std::fs::write(path, &text) {
                print::document(&text)?;
                return Err(error).with_context(|| {
                    format!("cannot write {}; the schema is printed instead", path.display())
                });
            }
            print::status(&format!("wrote {}", path.display()));
            if table.is_text() && flags.layout.layout().header.is_none() {
                // A record of words looks like a row of names. So the row is not shown, because it may be a record.
                print::status(&format!(
                    "note: the first row of {} was read as the names of the columns; if it is a record, the schema contains \
                     it: remove the schema, and declare the names with --header A,B,C",
                    flags.data.display()
                ));
            }
        }
        None => print::document(&text)?,
    }
    Ok(())
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
            let sentence = format!("column {:?} is given twice, expected one role for each column", twice.1);
            return Err(Refusal::new(
                sentence,
                "name a column in one of --numbers, --categories, --ignore and --user",
            )
            .into());
        }
        let is_left_out = |name: &String| self.ignore.contains(name) || self.user.as_ref() == Some(name);
        named
            .filter(|column| !is_left_out(&column.name))
            .map(|column| Ok((column.name.clone(), self.role(column)?)))
            .collect()
    }

    /// Refuses to buy categories of columns about which nothing is declared: they may be numbers.
    ///
    /// The columns are not named: a file without a header has a record in place of the names.
    fn check_roles(&self, table: &Table) -> Result<()> {
        let is_named = |name: &String| {
            [&self.categories, &self.ignore].iter().any(|names| names.contains(name))
                || self.user.as_ref() == Some(name)
        };
        let columns = table.columns().iter().filter(|column| !column.name.is_empty());
        let open =
            columns.clone().filter(|column| column.kind == Kind::Undeclared && !is_named(&column.name));
        let count = open.count();
        if self.epsilon.is_none() || self.all_categories || !self.numbers.is_empty() || count == 0 {
            return Ok(());
        }
        let sentence = format!(
            "{count} of {} columns are declared neither as numbers nor as categories, and categories of numbers are of no use",
            columns.count()
        );
        let hint = "list the numbers with --numbers A,B,C, all others are categories then; or add --all-categories if no column has numbers";
        Err(Refusal::new(sentence, hint).into())
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
                let sentence =
                    format!("column {label:?} is the label and also the user or ignored, expected one role");
                return Err(Refusal::new(sentence, "name another --label").into());
            }
            return Ok(label.clone());
        }
        let missing = || Refusal::new("no column is left for the label", "leave fewer columns out");
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
    fn the_role_of_a_column_follows_from_flags_and_declared_types() {
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
