//! `quell schema`: what is public about a table, as a file to start from; bounds and categories for a price.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use quell::data::{Column, Kind, Table};
use quell_ledger::Volume;
use quell_privacy::{
    Neighbors,
    ledger::{Ledger, Receipt},
    mechanism::{Bounds, Mechanism, Range, Sensitive, StableHistogram},
    number::given,
    units::{Delta, Epsilon, Probability},
};

use crate::{
    arguments::Format,
    payment::{self, Payment},
    print,
    purse::Purse,
    refusal::Refusal,
};

const EXAMPLES: &str = "\
Examples:
  quell schema census.csv
  quell schema census.csv --numbers age,hours_per_week --categories education,sex --label income
  quell ledger create census --epsilon 3 --delta 1e-6
  quell schema census.csv --numbers age,hours_per_week --within 0 1000 --label income --epsilon 1 --delta 1e-9 --output schema.toml";

/// A schema of a table to start from: names freely, bounds and categories for a price
///
/// Without --epsilon, what is not known is left open, to be filled in from what is publicly known. With it, bounds of numbers and
/// the more frequent categories are found through the ledger of the dataset, ε being divided equally between the columns.
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
    /// δ for all columns of categories together
    #[arg(long, value_name = "D", allow_negative_numbers = true, requires = "epsilon")]
    delta: Option<f64>,
    /// Where numbers are looked for, from what is publicly known
    #[arg(long, num_args = 2, value_names = ["LOWER", "UPPER"], allow_hyphen_values = true, requires = "epsilon")]
    within: Option<Vec<f64>>,
    /// Name of the dataset in the ledger (the name of the file if not given)
    #[arg(long, value_name = "NAME", requires = "epsilon")]
    dataset: Option<String>,
    /// Every person has one record: needed where the ledger protects users
    #[arg(long, requires = "epsilon")]
    one_record_per_user: bool,
    #[command(flatten)]
    purse: Purse,
    /// File to write (standard output if not given)
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Where numbers are looked for if nobody says.
const WITHIN: [f64; 2] = [-1e6, 1e6];

/// Part of the records between the ends that are looked for, and by how much of their distance these are then moved apart.
const INSIDE: f64 = 0.98;
const WIDER: f64 = 0.1;

/// What a column is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Number,
    Category,
    /// Nobody has said.
    Open,
}

/// What is known of the values of a column.
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
        let sentence = format!("{} has no column besides {label:?}, expected one to learn from", flags.data.display());
        return Err(Refusal::new(sentence, "a schema needs a label and at least one other column").into());
    }
    let values = match flags.epsilon {
        Some(epsilon) => flags.find(&table, &roles, epsilon)?,
        None => roles.iter().map(|_| Values::Open).collect(),
    };
    let text = flags.text(&roles, &values, &label);
    match &flags.output {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
            print::note(&format!("wrote {}", path.display()));
            Ok(())
        }
        None => print::data(&text),
    }
}

impl Flags {
    /// Every column that is looked at, and what it is taken for.
    fn roles(&self, table: &Table) -> Result<Vec<(String, Role)>> {
        let named = table.columns().iter().filter(|column| !column.name.is_empty());
        let names: Vec<String> = named.clone().map(|column| column.name.clone()).collect();
        let mentioned = self.numbers.iter().chain(&self.categories).chain(&self.ignore).chain(&self.user);
        if let Some(name) = mentioned.clone().chain(&self.label).find(|name| !names.contains(name)) {
            return Err(quell::Error::NoColumn { name: name.clone(), columns: names, place: None }.into());
        }
        let mentioned: Vec<&String> = mentioned.collect();
        if let Some(twice) = mentioned.iter().enumerate().find(|(i, name)| mentioned[..*i].contains(name)) {
            let sentence = format!("column {:?} is named twice, expected one meaning for each", twice.1);
            return Err(Refusal::new(sentence, "a column is numbers, categories, ignored, or the user").into());
        }
        let passed_over = |name: &String| self.ignore.contains(name) || self.user.as_ref() == Some(name);
        named.filter(|column| !passed_over(&column.name)).map(|column| Ok((column.name.clone(), self.role(column)?))).collect()
    }

    fn role(&self, column: &Column) -> Result<Role> {
        let (number, category) = (self.numbers.contains(&column.name), self.categories.contains(&column.name));
        Ok(match (column.kind, number, category) {
            (Kind::Unreadable, ..) => {
                let sentence = format!("column {:?} is {}, expected numbers or text", column.name, column.kind);
                return Err(Refusal::new(sentence, format!("leave it out with --ignore {}", column.name)).into());
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
                let sentence = format!("column {label:?} is to be learned and also the user or ignored, expected one of them");
                return Err(Refusal::new(sentence, "name another --label").into());
            }
            return Ok(label.clone());
        }
        let missing = || Refusal::new("no column is left to be learned", "leave fewer out");
        Ok(roles.last().map(|(name, _)| name.clone()).ok_or_else(missing)?)
    }

    /// Bounds and categories of every column, paid for.
    fn find(&self, table: &Table, roles: &[(String, Role)], epsilon: f64) -> Result<Vec<Values>> {
        payment::positive(epsilon)?;
        let [lower, upper] = match self.within.as_deref() {
            Some(&[lower, upper]) => [lower, upper],
            _ => WITHIN,
        };
        let bounds = Bounds::new(lower, upper)?;
        let inside = Probability::new(INSIDE)?;
        let counted = roles.iter().filter(|(_, role)| *role == Role::Category).count();
        let delta = match self.delta {
            Some(delta) => Some(Delta::new(delta)?),
            None if counted == 0 => None,
            None => {
                let sentence = "no delta is given, expected one for categories that are not known in advance";
                let hint = "add --delta, far below that of the budget; or name the columns of --numbers, and leave out others with --ignore";
                return Err(Refusal::new(sentence, hint).into());
            }
        };
        let dataset = self.dataset.clone().map_or_else(|| dataset(&self.data), Ok)?;
        let mut ledger = self.purse.ledger(&dataset)?;
        payment::one_record_each(&mut ledger, &dataset, self.one_record_per_user)?;
        let replace = ledger.state()?.terms().neighbors == Neighbors::Replace;
        let numbers = |epsilon: f64| Ok(Range { bounds, inside, epsilon: Epsilon::new(epsilon / 2.0)? });
        let names = |epsilon: f64, delta: f64| {
            // For an exchange: (2ε, (1 + e^ε)δ).
            let (epsilon, delta) =
                if replace { (epsilon / 2.0, delta / (1.0 + (epsilon / 2.0).exp())) } else { (epsilon, delta) };
            Ok(StableHistogram::new(Epsilon::new(epsilon)?, Delta::new(delta)?)?)
        };
        // All of it as one question costs no less than in parts: what is refused is refused before anything is paid.
        let payment = Payment { epsilon, dry_run: false, format: Format::Text };
        match delta {
            Some(delta) if counted > 0 => payment.price(&mut ledger, &|epsilon| names(epsilon, delta.get()))?,
            _ => payment.price(&mut ledger, &numbers)?,
        };
        let share = epsilon / roles.len().max(1) as f64;
        let delta_share = delta.map_or(0.0, |delta| delta.get() / counted.max(1) as f64);
        let mut found = Vec::new();
        let mut receipts = Vec::new();
        for (name, role) in roles {
            found.push(if *role == Role::Number {
                let values: Vec<f64> = table.all().numbers(name)?.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect();
                let paid = charge(&mut ledger, numbers(share)?, &mut receipts)?;
                let [low, high] = paid.run(&Sensitive::new(values))?;
                Values::Bounds(wider(low.value, high.value, [lower, upper]))
            } else {
                let values = texts(table, name)?;
                let paid = charge(&mut ledger, names(share, delta_share)?, &mut receipts)?;
                Values::Names(paid.run(&Sensitive::new(values))?.into_iter().map(|(name, _)| name).collect())
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

    /// The schema as TOML, with what is to be filled in.
    fn text(&self, roles: &[(String, Role)], values: &[Values], label: &str) -> String {
        let mut text = String::from("# What is public about the table. Nothing here may be read off private records for free.\n");
        if !self.ignore.is_empty() {
            let names: Vec<String> = self.ignore.iter().map(|name| quoted(name)).collect();
            text.push_str(&format!("ignore = [{}]\n", names.join(", ")));
        }
        if let Some(user) = &self.user {
            text.push_str(&format!("user = {}\n", quoted(user)));
        }
        let column = |name: &str| roles.iter().zip(values).find(|((other, _), _)| other == name);
        text.push_str(&format!("\n[label]\ncolumn = {}\n", quoted(label)));
        if self.label.is_none() {
            text.push_str("# The last column: name another with --label.\n");
        }
        if let Some(((_, role), values)) = column(label) {
            text.push_str(&stated(*role, values, "classes"));
        }
        text.push_str("\n# A part to test on:\n# [test]\n# share = 0.2\n");
        for ((name, role), values) in roles.iter().zip(values).filter(|((name, _), _)| name != label) {
            text.push_str(&format!("\n[[column]]\nname = {}\n{}", quoted(name), stated(*role, values, "categories")));
            if matches!(values, Values::Names(_)) {
                text.push_str("unknown = true\n");
            }
        }
        text
    }
}

/// Lines that say what the values of a column are, or what is to be said.
fn stated(role: Role, values: &Values, lists: &str) -> String {
    match (values, role) {
        (Values::Bounds([low, high]), _) => format!("bounds = [{low:?}, {high:?}]\n"),
        (Values::Names(names), _) if names.is_empty() => {
            format!(
                "# No value is frequent enough to be shown: name some, or leave the column out.\n# {lists} = [\"…\", \"…\"]\n"
            )
        }
        (Values::Names(names), _) => {
            format!("{lists} = [{}]\n", names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "))
        }
        (Values::Open, Role::Number) => "# bounds = [lowest, highest]\n".into(),
        (Values::Open, Role::Category) => format!("# {lists} = [\"…\", \"…\"]\n"),
        (Values::Open, Role::Open) => format!("# bounds = [lowest, highest], or {lists} = [\"…\", \"…\"]\n"),
    }
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
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

/// Pays for one column.
fn charge<M: Mechanism>(
    ledger: &mut Ledger<Volume>,
    mechanism: M,
    receipts: &mut Vec<Receipt>,
) -> Result<quell_privacy::ledger::Paid<M>> {
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
        assert_eq!(wider(18.3, 78.2, [0.0, 1000.0]), [12.0, 85.0]);
        assert_eq!(wider(0.11, 0.42, [0.0, 1.0]), [0.07, 0.46]);
        assert_eq!(wider(-3.0, 90.0, [0.0, 95.0]), [0.0, 95.0]);
        let [low, high] = wider(5.0, 5.0, [-1e6, 1e6]);
        assert!(low < 5.0 && high > 5.0 && high - low < 1.0, "{low} {high}");
    }

    /// What a column is taken for.
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

    #[test]
    fn names_are_quoted_as_toml() {
        for name in ["plain", "say \"a\"", "back\\slash", "two\nlines", "é'"] {
            let text = format!("name = {}", quoted(name));
            let read: toml::Table = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(read["name"].as_str(), Some(name));
        }
    }
}
