//! `quell pate` and `quell knn`: label public records by private votes and train a student.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use quell::{
    network::Architecture,
    run::labels::{About, Choice, Configuration, ExternalBallots, Labelling, VoterSettings},
    voting::{self, Aggregator},
};
use quell_privacy::mechanism::Bounds;

use crate::{
    drive,
    flags::{
        parse_count,
        run::{FeatureArgs, RunArgs, SourceArgs, UserArgs},
    },
    print,
    progress::Bar,
    refusal::Refusal,
};

pub(crate) fn pate(flags: &Pate) -> Result<()> {
    let Some(path) = &flags.ballots else { return run(&flags.common, flags.configuration()?, "-pate") };
    if flags.users.file().is_some() {
        let sentence = "--users names a file, but ballots do not belong to records";
        let hint = "use --users without a file if all records of each person go to one teacher";
        return Err(Refusal::new(sentence, hint).into());
    }
    let job = flags.external_ballots(path)?.open()?;
    // Printed always, because the existence of such a cell is private.
    print::status(
        "note: a cell without a valid ballot is an abstention; no message reports such cells, because they are private",
    );
    drive::start(&job, &flags.common.terms, "-pate")
}

pub(crate) fn knn(flags: &Knn) -> Result<()> {
    run(&flags.common, flags.configuration()?, "-knn")
}

fn run(flags: &Common, configuration: Configuration, verb: &str) -> Result<()> {
    // All checks run before anything is charged.
    let bar = Bar::spinner("reading");
    let job = Labelling::new(configuration)?;
    drop(bar);
    drive::start(&job, &flags.terms, verb)
}

/// Flags that `quell pate` and `quell knn` share.
#[derive(clap::Args)]
struct Common {
    #[command(flatten)]
    source: SourceArgs,
    /// Public records to label, in the same format as the data
    ///
    /// Their own labels are used only for evaluation.
    #[arg(long, value_name = "DATA")]
    public: Option<PathBuf>,
    /// Number of public records that may be labelled (four fifths if not given)
    ///
    /// These are the first public records. The others are used only for evaluation.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    questions: Option<u64>,
    #[command(flatten)]
    features: FeatureArgs,
    /// Model of the student: one of `quell models`
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// How ballots are aggregated into an answer
    #[arg(long, value_enum)]
    aggregator: Option<AggregatorArg>,
    /// ε of all answers together
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// δ of all answers together
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: Option<f64>,
    /// Largest number of answers (as many as ε allows if not given)
    #[arg(long, value_name = "N", value_parser = parse_count)]
    answers: Option<u64>,
    /// Standard deviation or scale of the noise on the counts, in ballots
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    deviation: Option<f64>,
    /// Fraction of ballots that must agree, after noise, for aggregators that refuse answers
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    threshold: Option<f64>,
    /// Which questions are asked first
    #[arg(long, value_enum)]
    choice: Option<ChoiceArg>,
    #[command(flatten)]
    terms: RunArgs,
}

/// How ballots are aggregated into an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AggregatorArg {
    /// Largest count after Laplace noise
    Laplace,
    /// Largest count after Gaussian noise
    Gaussian,
    /// As gaussian, but only if enough ballots agree
    Confident,
    /// As gaussian, but only if enough ballots disagree with the student
    Interactive,
    /// Winner without noise, if a few ballots cannot change it; only other questions are charged
    Stable,
}

impl From<AggregatorArg> for Aggregator {
    fn from(by: AggregatorArg) -> Self {
        match by {
            AggregatorArg::Laplace => Self::Laplace,
            AggregatorArg::Gaussian => Self::Gaussian,
            AggregatorArg::Confident => Self::Confident,
            AggregatorArg::Interactive => Self::Interactive,
            AggregatorArg::Stable => Self::Stable,
        }
    }
}

/// Which questions are asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ChoiceArg {
    /// Records close to many others
    Representative,
    /// Half representative, then the most uncertain records
    Active,
    /// In the order of the file
    InOrder,
}

impl Common {
    /// The configuration: flags override the file, which overrides the defaults.
    fn configuration(&self, defaults: impl FnOnce() -> Result<Configuration>) -> Result<Configuration> {
        let mut configuration = match &self.source.config {
            Some(path) => Configuration::read(path).with_context(|| format!("in {}", path.display()))?,
            None => defaults()?,
        };
        self.source.apply_to(&self.terms, &mut configuration.data)?;
        configuration.data.test = self.public.clone().or(configuration.data.test.take());
        if let Some(questions) = self.questions {
            configuration.questions = Some(usize::try_from(questions).unwrap_or(usize::MAX));
        }
        if let Some(asked) = self.features.asked() {
            configuration.features = asked;
        }
        if let Some(model) = &self.model {
            configuration.student.model = Architecture { name: Some(model.clone()), layers: Vec::new() };
        }
        if let Some(choice) = self.choice {
            configuration.student.choice = match choice {
                ChoiceArg::Representative => Choice::Representative,
                ChoiceArg::Active => Choice::Active,
                ChoiceArg::InOrder => Choice::InOrder,
            };
        }
        self.votes(&mut configuration.votes);
        configuration.seed = self.terms.seed.unwrap_or(configuration.seed);
        configuration.budget = self.terms.new_budget(configuration.votes.delta)?.or(configuration.budget);
        Ok(configuration)
    }

    /// Applies the flags about the votes.
    fn votes(&self, votes: &mut voting::Recipe) {
        if let Some(aggregator) = self.aggregator {
            votes.aggregator = aggregator.into();
        }
        if self.deviation.is_some() && self.answers.is_some() && self.epsilon.is_none() {
            // Noise and answers determine ε; an ε from the configuration would contradict them.
            votes.epsilon = None;
        }
        let given = [self.epsilon.is_some(), self.deviation.is_some(), self.answers.is_some()];
        if given.iter().filter(|given| **given).count() == 2 {
            // Any two of ε, noise and answers determine the third.
            (votes.epsilon, votes.deviation, votes.answers) = (None, None, None);
        }
        votes.epsilon = self.epsilon.or(votes.epsilon);
        votes.delta = self.delta.or(votes.delta);
        votes.deviation = self.deviation.or(votes.deviation);
        votes.answers =
            self.answers.map(|answers| u32::try_from(answers).unwrap_or(u32::MAX)).or(votes.answers);
        votes.threshold = self.threshold.or(votes.threshold);
        if let Some(change) = self.terms.neighbors {
            votes.neighbors = change.into();
        }
    }
}

const PATE_EXAMPLES: &str = "\
Examples:
  quell pate
  quell pate --teachers 30 --aggregator confident --threshold 0.5 --answers 20 --epsilon 8 --output runs/confident
  quell pate --ballots votes.csv --labels 10 --most 2 --epsilon 4 --dry-run
  quell pate --ballots votes.csv --range 0,9 --answers 30 --epsilon 2 --dry-run
  quell pate --ballots votes.csv --classes 10 --epsilon 2
  quell pate --dry-run --format json";

/// Label public records by votes of teachers (PATE), and train a student
///
/// Each teacher is trained on its own part of the private records. The teachers vote on the label of each
/// public record, and the student is trained on the answers. Without DATA, the command uses the embedded
/// digits: one part is private, the other public.
///
/// Records are assigned to teachers by their content (or by their user), so that one record affects only one
/// teacher. If one of ε, noise and answers is left out, it follows from the other two.
///
/// The command writes the answers to answers.jsonl in the folder of the run. Continue an interrupted run with
/// `quell resume`: it does not train a teacher twice, and does not charge an answer twice.
#[derive(clap::Args)]
#[command(after_help = PATE_EXAMPLES)]
pub(crate) struct Pate {
    #[command(flatten)]
    common: Common,
    /// Number of teachers
    #[arg(long, value_name = "N", value_parser = parse_count)]
    teachers: Option<u64>,
    /// Model of the teachers: one of `quell models`
    #[arg(long, value_name = "NAME")]
    teacher_model: Option<String>,
    #[command(flatten)]
    users: UserArgs,
    /// CSV or Parquet file with the ballots of external teachers, instead of DATA
    ///
    /// The file has one row per question and one column per teacher. Each ballot is one of --classes, by its name or
    /// its number from 0; other cells are abstentions. The run has answers, but no student. One record (or one
    /// person, with --users) must affect the ballots of one teacher only. With --neighbors replace, a record and its
    /// replacement together must affect the ballots of one teacher only.
    #[arg(long, value_name = "FILE", requires = "about", conflicts_with_all = ["data", "config", "teachers", "teacher_model", "public", "questions", "model", "choice", "schema", "shape", "public_test", "features", "public_network"])]
    ballots: Option<PathBuf>,
    /// Also release the data-dependent ε of the answers, at an additional cost
    ///
    /// The data-dependent ε is smaller where teachers agree.
    #[arg(long)]
    reveal_cost: bool,
    /// Number of labels, for ballots that name several labels
    ///
    /// Such a ballot lists numbers from 0, separated by semicolons.
    #[arg(long, value_name = "N", value_parser = parse_count, requires = "ballots", group = "about")]
    labels: Option<u64>,
    /// Largest number of labels per ballot (all labels if not given)
    ///
    /// Fewer labels need less noise.
    #[arg(long, value_name = "N", value_parser = parse_count, requires = "labels", conflicts_with_all = ["classes", "range"])]
    most: Option<u64>,
    /// Bounds of ballots that are numbers; every ballot is clamped to them
    #[arg(long, value_name = "LOW,HIGH", value_parser = bounds, requires = "ballots", group = "about", allow_hyphen_values = true)]
    range: Option<Bounds>,
}

/// Parses two comma-separated numbers.
fn bounds(text: &str) -> Result<Bounds, String> {
    let number = |text: &str| text.trim().parse().ok();
    let (lower, upper) = text
        .split_once(',')
        .and_then(|(lower, upper)| Some((number(lower)?, number(upper)?)))
        .ok_or("expected two numbers separated by a comma")?;
    Bounds::new(lower, upper).map_err(|error| error.to_string())
}

impl Pate {
    /// The settings for ballots from a file.
    fn external_ballots(&self, ballots: &Path) -> Result<ExternalBallots> {
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let about = match (self.labels.map(count), self.range) {
            (Some(labels), _) => About::Labels { labels, most: self.most.map_or(labels, count) },
            (None, Some(bounds)) => About::Range(bounds),
            (None, None) => {
                About::Classes(self.common.source.classes.as_ref().map_or(0, |names| names.0.len()))
            }
        };
        let mut votes = voting::Recipe::default();
        self.common.votes(&mut votes);
        votes.reveal |= self.reveal_cost;
        let (unit, dataset) = (self.users.unit(), self.common.terms.dataset.clone());
        let budget = self.common.terms.new_budget(votes.delta)?;
        // Without names, classes are called by their numbers.
        let names = self.common.source.classes.as_ref().map(|names| names.0.clone());
        let names =
            names.filter(|names| names.iter().zip(0_u64..).any(|(name, class)| *name != class.to_string()));
        Ok(ExternalBallots { ballots: ballots.to_owned(), dataset, unit, names, about, votes, budget })
    }

    fn configuration(&self) -> Result<Configuration> {
        let digits = self.common.source.data.is_none();
        let defaults =
            || Ok(if digits { Configuration::digits_by_teachers()? } else { Configuration::default() });
        let mut configuration = self.common.configuration(defaults)?;
        configuration.votes.reveal |= self.reveal_cost;
        self.users.apply_to(&mut configuration.data);
        if !matches!(configuration.voters, VoterSettings::Teachers { .. }) {
            configuration.voters = VoterSettings::teachers(250);
        }
        if let VoterSettings::Teachers { count, model, .. } = &mut configuration.voters {
            if let Some(teachers) = self.teachers {
                *count = usize::try_from(teachers).unwrap_or(usize::MAX);
            }
            if let Some(name) = &self.teacher_model {
                *model = Architecture { name: Some(name.clone()), layers: Vec::new() };
            }
        }
        Ok(configuration)
    }
}

const KNN_EXAMPLES: &str = "\
Examples:
  quell knn
  quell knn --neighbors-that-vote 60 --sampling-rate 0.3 --epsilon 3 --output runs/nearest
  quell knn --dry-run --format json";

/// Label public records by votes of the nearest private records, and train a student
///
/// For each public record, the command samples the private records, and the nearest records of the sample
/// vote on its label, with noise. Sampling reduces the ε of an answer. The student is trained on the answers.
/// Without DATA, the command uses the embedded digits: one part is private, the other public. If one of ε,
/// noise and answers is left out, it follows from the other two.
#[derive(clap::Args)]
#[command(after_help = KNN_EXAMPLES)]
pub(crate) struct Knn {
    #[command(flatten)]
    common: Common,
    /// Number of nearest records that vote
    #[arg(long, value_name = "K", value_parser = parse_count)]
    neighbors_that_vote: Option<u64>,
    /// Probability that a record enters the sample of a question
    #[arg(long, value_name = "Q", allow_negative_numbers = true)]
    sampling_rate: Option<f64>,
    /// Number of principal components (of the public records) for distances
    #[arg(long, value_name = "N", value_parser = parse_count)]
    components: Option<u64>,
    /// Number of students that are trained one after the other
    ///
    /// From the second student on, distances use the features of the previous student.
    #[arg(long, value_name = "N", value_parser = parse_count)]
    turns: Option<u64>,
}

impl Knn {
    fn configuration(&self) -> Result<Configuration> {
        let digits = self.common.source.data.is_none();
        let defaults =
            || Ok(if digits { Configuration::digits_by_neighbors()? } else { Configuration::default() });
        let mut configuration = self.common.configuration(defaults)?;
        if !matches!(configuration.voters, VoterSettings::Nearest { .. }) {
            configuration.voters =
                VoterSettings::Nearest { neighbors: 300, rate: 0.1, components: None, turns: 1 };
        }
        if let VoterSettings::Nearest { neighbors, rate, components, turns } = &mut configuration.voters {
            let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
            *neighbors = self.neighbors_that_vote.map_or(*neighbors, whole);
            *rate = self.sampling_rate.unwrap_or(*rate);
            *components = self.components.map(whole).or(*components);
            *turns = self.turns.map_or(*turns, |turns| u32::try_from(turns).unwrap_or(u32::MAX));
        }
        Ok(configuration)
    }
}
