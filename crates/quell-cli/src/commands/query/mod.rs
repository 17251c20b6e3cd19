//! `quell query`: releases statistics of a table, paid for from its ledger.

mod asked;
mod keys;
mod shown;
mod words;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::ValueEnum;
use quell::{
    data::{Kind, Layout, Predicate, Schema, Selection, Table},
    statistics::{Part, Plan, Question},
};
use quell_privacy::mechanism::Noise;
use serde_json::{Value, json};

use self::{
    asked::{Asked, OneOrMany, PlanFile, Statistic},
    keys::Keys,
    shown::Shown,
};
use crate::{
    flags::{
        Format,
        layout::LayoutArgs,
        ledger::{Dataset, LedgerArgs},
    },
    payment::{self, AnswerRelease, Payment, path_text},
    print,
    refusal::Refusal,
};

const EXAMPLES: &str = "\
Examples:
  quell ledger create census --epsilon 4 --delta 1e-6
  quell query census.csv count --epsilon 0.1 --where \"age >= 65\" --output over65.txt
  quell query census.csv mean --column age --bounds 0 100 --epsilon 0.5
  quell query census.csv histogram --column sex --keys Female,Male --epsilon 0.2
  quell query census.csv histogram --column education --epsilon 0.5
  quell query census.csv histogram --column age --bounds 0 100 --bins 10 --epsilon 0.2
  quell query census.csv mean --column age --bounds 0 100 --group-by sex --groups Female,Male --epsilon 0.5
  quell query census.csv histogram --column income --keys '<=50K,>50K' --group-by sex --groups Female,Male --epsilon 0.2
  quell query census.csv quantile --column age --bounds 0 120 --quantile 0.25,0.5,0.75 --epsilon 0.3
  quell query census.csv count,mean,median --column age --bounds 0 100 --epsilon 0.3
  quell query census.csv count --part \"age < 18\" --part \"age >= 18\" --epsilon 0.1
  quell query census.csv count --part \"age < 18\" --part \"age >= 18\" --group-by sex --groups Female,Male --epsilon 0.1
  quell query census.csv --plan questions.toml --epsilon 0.2 --format json";

/// Release statistics of a table, charged to the ledger of its dataset
///
/// Several statistics, separated by commas, are one charge: --epsilon is what all of them cost together.
/// Bounds, keys and conditions are public: do not derive them from the data. Missing values and values
/// that are not numbers are left out. The answer has an error that holds with 95 % probability, and a receipt
/// of the ledger. The error of a quantile is a number of records: "40 ± 26 records" means that the requested
/// rank is at most 26 records away from a rank of the value 40.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// CSV or Parquet file
    data: PathBuf,
    /// Statistics to release, separated by commas
    #[arg(value_enum, value_delimiter = ',', num_args = 1, required_unless_present = "plan")]
    statistics: Vec<Statistic>,
    /// TOML file of questions, in place of statistics and their flags
    ///
    /// Each [[question]] has a statistic and the flags of this command: column, bounds, where, keys, and so on.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["statistics", "column", "condition", "bounds", "keys", "bins", "edges", "group_by", "part", "quantile", "inside", "threshold"])]
    plan: Option<PathBuf>,
    /// Column of the statistic; give it several times for several columns
    #[arg(long, value_name = "NAME")]
    column: Vec<String>,
    /// TOML schema whose bounds, categories and user column are used where no flag gives others
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// Condition on records, such as "age >= 65 and sex = 'Female'"
    #[arg(long = "where", value_name = "EXPRESSION")]
    condition: Option<String>,
    /// Public bounds to which every number is clamped, once or once for each column
    #[arg(long, num_args = 2, value_names = ["LOWER", "UPPER"], allow_hyphen_values = true)]
    bounds: Option<Vec<f64>>,
    /// Keys of a histogram, separated by commas
    ///
    /// Without keys, the answer contains the keys that many records have, and costs a δ. A key with a comma
    /// stands in double quotes, as in a CSV file.
    #[arg(long, value_name = "A,B,C", value_parser = keys::parse)]
    keys: Option<Vec<Keys>>,
    /// Count numbers in this many equal bins between --bounds
    ///
    /// A number beyond the bounds is in the nearest bin.
    #[arg(long, value_name = "N", value_parser = crate::flags::parse_count, conflicts_with = "keys", requires = "bounds")]
    bins: Option<u64>,
    /// Count numbers between these edges, separated by commas
    ///
    /// A number beyond the outer edges is left out.
    #[arg(long, value_name = "0,18,65", value_delimiter = ',', allow_hyphen_values = true, conflicts_with_all = ["keys", "bins", "bounds"])]
    edges: Option<Vec<f64>>,
    /// Column that divides the records into groups
    ///
    /// Counts, sums, means, medians, quantiles and histograms can have groups.
    /// A record is in one group at most, so all groups together cost one ε. A histogram with groups counts
    /// the records for each key and group. Two columns make a table of groups: give --group-by and --groups
    /// twice.
    #[arg(long, value_name = "NAME")]
    group_by: Option<Vec<String>>,
    /// Keys of the groups, separated by commas
    ///
    /// Records with another key are left out. Only a count, or a histogram without --keys, can do without
    /// this list: then the answer contains the groups that many records are in, and costs a δ.
    #[arg(long, value_name = "A,B,C", value_parser = keys::parse, requires = "group_by")]
    groups: Option<Vec<Keys>>,
    /// Groups of numbers, in place of --groups: so many equal bins between two bounds
    #[arg(long, num_args = 3, value_names = ["LOWER", "UPPER", "N"], allow_hyphen_values = true, requires = "group_by", conflicts_with = "groups")]
    group_bins: Option<Vec<f64>>,
    /// Groups of numbers, in place of --groups: between these edges
    #[arg(long, value_name = "0,18,65", value_delimiter = ',', allow_hyphen_values = true, requires = "group_by", conflicts_with_all = ["groups", "group_bins"])]
    group_edges: Option<Vec<f64>>,
    /// Condition that selects a part of the records; give it several times
    ///
    /// Each part has its own answer, and all parts together cost one ε. No record may satisfy two of the
    /// conditions: the command proves this from the conditions, or refuses them. --group-by divides each part.
    #[arg(long, value_name = "EXPRESSION")]
    part: Option<Vec<String>>,
    /// Quantiles to release, separated by commas
    #[arg(
        long,
        value_name = "P",
        value_delimiter = ',',
        default_value = "0.5",
        allow_negative_numbers = true
    )]
    quantile: Vec<f64>,
    /// Fraction of the records inside a range
    #[arg(long, value_name = "P", default_value_t = 0.95, allow_negative_numbers = true)]
    inside: f64,
    /// Number of records that the count must reach
    #[arg(long, value_name = "N", value_parser = crate::flags::parse_count)]
    threshold: Option<u64>,
    /// ε of this answer
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: f64,
    /// δ of this answer, for Gaussian noise, unknown keys and smooth medians
    ///
    /// If not given: the δ of the budget for Gaussian noise, and a small part of it for the others.
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: Option<f64>,
    /// Distribution of the noise
    #[arg(long, value_enum, default_value_t)]
    noise: Distribution,
    /// Name of the dataset in the ledger (the name of the file if not given)
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    /// State that every user has one record, if the ledger protects users
    #[arg(long)]
    one_record_per_user: bool,
    /// Use at most this many records of each user, if the ledger protects users
    ///
    /// The first ones in the file are used. The noise grows with this number. --user names the column.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "one_record_per_user")]
    max_per_user: Option<u32>,
    /// Column that says whose record it is (the user of --schema if not given)
    #[arg(long, value_name = "COLUMN", requires = "max_per_user")]
    user: Option<String>,
    /// Report the privacy cost, and charge nothing
    #[arg(long)]
    dry_run: bool,
    /// File for the answer (standard output if not given)
    ///
    /// The same question for the same file is charged once, even if the command is killed and run again.
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    output: Option<PathBuf>,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    ledgers: LedgerArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The distribution of the noise on counts and sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Distribution {
    /// Pure differential privacy (δ = 0).
    #[default]
    Laplace,
    /// Needs a δ; many answers compose to a smaller total ε.
    Gaussian,
}

impl From<Distribution> for Noise {
    fn from(distribution: Distribution) -> Self {
        match distribution {
            Distribution::Laplace => Self::Laplace,
            Distribution::Gaussian => Self::Gaussian,
        }
    }
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    let dataset = flags.dataset()?;
    payment::check_positive(flags.epsilon)?;
    // All errors in the question are reported before anything is paid.
    let schema = flags.schema.as_ref().map(Schema::read).transpose()?;
    let layout = flags.layout.over(schema.as_ref().map(|schema| &schema.file));
    let table = Table::open_as(&flags.data, &layout)?;
    let questions = flags.questions(schema.as_ref())?;
    let user = flags.user(schema.as_ref())?;
    let selections = questions.iter().map(|asked| select(&table, asked, flags.max_per_user, user.as_deref()));
    let selections = selections.collect::<Result<Vec<_>>>()?;
    let statistics = questions.iter().map(Asked::statistic).collect::<Result<Vec<_>>>()?;
    let is_limited = flags.one_record_per_user || flags.max_per_user.is_some();
    let hint =
        "add --max-per-user N and --user COLUMN, or --one-record-per-user if every user has only one record";
    let mut ledger = flags.ledgers.ledger_of_records(&dataset, is_limited, hint)?;
    ledger.annotate(&words::note(&flags.data, &questions));
    if schema.is_none() && flags.format == Format::Text && !flags.dry_run {
        note_undeclared(&table, &questions);
    }
    let state = ledger.state()?.clone();
    let release = AnswerRelease {
        payment: flags.payment(&questions, user.as_deref(), &layout),
        ledger: &mut ledger,
        show: Shown,
    };
    let one_record_per_user = flags.one_record_per_user;
    let (noise, epsilon, delta) = (flags.noise.into(), flags.epsilon, flags.delta);
    if let ([statistic], [selection]) = (statistics.as_slice(), selections.as_slice()) {
        let question = Question { statistic: statistic.clone(), noise, epsilon, delta, one_record_per_user };
        return question.visit(&state, selection, release)?;
    }
    let parts = questions.iter().zip(statistics).zip(&selections).map(|((asked, statistic), records)| {
        let condition = asked.condition.as_ref().map(|text| format!(" where {text}")).unwrap_or_default();
        Part { name: format!("{statistic}{condition}"), statistic, records }
    });
    let plan = Plan { parts: parts.collect(), noise, epsilon, delta, one_record_per_user };
    plan.visit(&state, release)?
}

/// Selects the records of a question.
fn select<'t>(
    table: &'t Table,
    asked: &Asked,
    most: Option<u32>,
    user: Option<&str>,
) -> Result<Selection<'t>> {
    let selection = match &asked.condition {
        Some(condition) => table.select(&condition.parse::<Predicate>()?)?,
        None => table.all(),
    };
    Ok(match (most, user) {
        (Some(most), Some(user)) => selection.at_most_per_user(user, most)?,
        _ => selection,
    })
}

/// Says how cells are treated that are no numbers, where nothing declares that the column has numbers.
fn note_undeclared(table: &Table, questions: &[Asked]) {
    let is_undeclared =
        |name: &str| table.columns().iter().any(|one| one.name == name && one.kind == Kind::Undeclared);
    let mut names: Vec<&str> =
        questions.iter().filter_map(Asked::numbers).filter(|it| is_undeclared(it)).collect();
    names.sort_unstable();
    names.dedup();
    if let Some((first, rest)) = names.split_first() {
        let names = rest.iter().fold(format!("{first:?}"), |text, name| format!("{text} and {name:?}"));
        print::status(&format!("note: cells of {names} that are empty or no numbers are left out"));
    }
}

impl Flags {
    fn dataset(&self) -> Result<Dataset> {
        Dataset::of(self.dataset.as_ref(), &self.data).ok_or_else(|| {
            Refusal::new(
                format!("{} has no file name", self.data.display()),
                "name the dataset with --dataset",
            )
            .into()
        })
    }

    /// The column of the users, if the records of each user are limited.
    fn user(&self, schema: Option<&Schema>) -> Result<Option<String>> {
        if self.max_per_user.is_none() {
            return Ok(None);
        }
        let user = self.user.clone().or_else(|| schema.and_then(|schema| schema.user.clone()));
        let missing = || {
            Refusal::new(
                "no column of users is given, expected the column that says whose record it is",
                "add --user COLUMN",
            )
        };
        user.ok_or_else(|| missing().into()).map(Some)
    }

    /// All questions, from the plan or from the flags.
    fn questions(&self, schema: Option<&Schema>) -> Result<Vec<Asked>> {
        let questions = match &self.plan {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                let plan: PlanFile = toml::from_str(&text).map_err(|error| {
                    let because = quell::describe_toml_error(&text, &error);
                    let hint = "a question reads like: [[question]] statistic = \"mean\" column = \"age\" bounds = [0, 100]";
                    Refusal::new(format!("{} is invalid: {because}", path.display()), hint)
                })?;
                plan.question
            }
            None => self.asked()?,
        };
        if questions.is_empty() {
            return Err(Refusal::new(
                "the plan has no question, expected at least one",
                "add a [[question]]",
            )
            .into());
        }
        match schema {
            Some(schema) => questions.into_iter().map(|asked| asked.declared_by(schema)).collect(),
            None => Ok(questions),
        }
    }

    /// The questions of the flags: each statistic, of each column that it can have.
    fn asked(&self) -> Result<Vec<Asked>> {
        let pairs: Vec<Vec<f64>> =
            self.bounds.iter().flat_map(|bounds| bounds.chunks(2)).map(<[f64]>::to_vec).collect();
        if pairs.len() > 1 && pairs.len() != self.column.len() {
            let sentence = format!(
                "--bounds is given {} times for {} columns, expected once, or once for each column",
                pairs.len(),
                self.column.len()
            );
            return Err(
                Refusal::new(sentence, "write --column A --bounds 0 1 --column B --bounds 0 9").into()
            );
        }
        let mut all = Vec::new();
        for statistic in &self.statistics {
            let columns = if statistic.has_column() && !self.column.is_empty() {
                self.column.iter().map(Some).collect()
            } else {
                // A count may be given a column, and does not read it.
                vec![self.column.first()]
            };
            for (number, column) in columns.into_iter().enumerate() {
                let bounds = pairs.get(number).or(pairs.first().filter(|_| pairs.len() == 1)).cloned();
                all.push(self.question(*statistic, column.cloned(), bounds));
            }
        }
        Ok(all)
    }

    fn question(&self, statistic: Statistic, column: Option<String>, bounds: Option<Vec<f64>>) -> Asked {
        let group_by = self.group_by.clone().map(|mut columns| match columns.len() {
            1 => OneOrMany::One(columns.remove(0)),
            _ => OneOrMany::Many(columns),
        });
        // The keys of one column may be given by several flags.
        let groups = match &group_by {
            Some(OneOrMany::One(_)) => {
                keys::list(self.groups.as_deref()).map(|keys| vec![OneOrMany::Many(keys)])
            }
            _ => keys::lists(self.groups.as_deref())
                .map(|lists| lists.into_iter().map(OneOrMany::Many).collect()),
        };
        Asked {
            statistic,
            column,
            condition: self.condition.clone(),
            bounds,
            keys: keys::list(self.keys.as_deref()),
            bins: self.bins,
            edges: self.edges.clone(),
            group_by,
            groups,
            group_bins: self.group_bins.clone(),
            group_edges: self.group_edges.clone(),
            parts: self.part.clone(),
            quantile: Some(match self.quantile.as_slice() {
                [one] => OneOrMany::One(*one),
                many => OneOrMany::Many(many.to_vec()),
            }),
            inside: Some(self.inside),
            threshold: self.threshold,
        }
    }

    fn payment(&self, questions: &[Asked], user: Option<&str>, layout: &Layout) -> Payment {
        let question = match questions {
            [asked] if self.plan.is_none() => self.one_question(asked),
            _ => json!({
                "data": path_text(&self.data),
                "dataset": self.dataset,
                "delta": self.delta,
                "epsilon": self.epsilon,
                "noise": Noise::from(self.noise),
                "questions": questions,
            }),
        };
        let mut question = question;
        if let (Some(fields), Some(most)) = (question.as_object_mut(), self.max_per_user) {
            fields.insert("max_per_user".into(), json!(most));
            fields.insert("user".into(), json!(user));
        }
        // Questions about files of the usual layout keep the text that they had before there were others.
        if let (Some(fields), false) = (question.as_object_mut(), layout.is_default()) {
            fields.insert("file".into(), json!(layout));
        }
        let output = self.output.clone().map(|path| (path, json!({"query": question})));
        Payment { epsilon: self.epsilon, dry_run: self.dry_run, format: self.format, output }
    }

    /// A single question, as it was written before there were plans.
    fn one_question(&self, asked: &Asked) -> Value {
        let mut question = json!({
            "bounds": asked.bounds,
            "column": asked.column,
            "data": path_text(&self.data),
            "dataset": self.dataset,
            "delta": self.delta,
            "epsilon": self.epsilon,
            "inside": self.inside,
            "keys": asked.keys,
            "noise": Noise::from(self.noise),
            "quantile": asked.quantile,
            "statistic": asked.statistic,
            "threshold": self.threshold,
            "where": self.condition,
        });
        // Questions without groups or bins keep the text that they had before there were any.
        if let Some(fields) = question.as_object_mut() {
            if asked.group_by.is_some() {
                fields.insert("group_by".into(), json!(asked.group_by));
                let groups = match (&asked.group_by, asked.groups.as_deref()) {
                    (Some(OneOrMany::One(_)), Some([only])) => json!(only),
                    (_, groups) => json!(groups),
                };
                fields.insert("groups".into(), groups);
            }
            let numbers = [
                ("bins", json!(asked.bins)),
                ("edges", json!(asked.edges)),
                ("group_bins", json!(asked.group_bins)),
                ("group_edges", json!(asked.group_edges)),
                ("parts", json!(asked.parts)),
            ];
            fields.extend(
                numbers.into_iter().filter(|(_, given)| !given.is_null()).map(|(name, it)| (name.into(), it)),
            );
        }
        question
    }
}
