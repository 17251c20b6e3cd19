//! What can be said on the command line; it goes over what a configuration says.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;
use quell::{
    run::{
        Architecture,
        labels::{About, Choice, Configuration, Electors, Elsewhere},
    },
    voting::{self, Aggregator},
};
use quell_privacy::mechanism::Bounds;

use crate::{
    arguments::whole,
    run::{Sight, Source, Terms, Users},
};

/// What questions to teachers and to the nearest records have in common.
#[derive(clap::Args)]
pub(super) struct Common {
    #[command(flatten)]
    source: Source,
    /// Public records to be labelled, in a file of the same kind; their own labels are used only to measure
    #[arg(long, value_name = "DATA")]
    public: Option<PathBuf>,
    /// The first so many public records may be asked about; the others only measure (four fifths if not given)
    #[arg(long, value_name = "N", value_parser = whole)]
    questions: Option<u64>,
    #[command(flatten)]
    sight: Sight,
    /// What the student is: one of `quell models`
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// How ballots become an answer
    #[arg(long, value_enum)]
    pub(super) aggregator: Option<By>,
    /// ε of all answers together
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// δ
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: Option<f64>,
    /// How many questions may be answered (as many as ε pays for if not given)
    #[arg(long, value_name = "N", value_parser = whole)]
    answers: Option<u64>,
    /// Noise on the counts, in ballots
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    deviation: Option<f64>,
    /// What share of the ballots must agree, with noise, where the aggregator refuses answers
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    threshold: Option<f64>,
    /// Which questions come first
    #[arg(long, value_enum)]
    choice: Option<Which>,
    #[command(flatten)]
    pub(super) terms: Terms,
}

/// How ballots become an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum By {
    /// Most votes after Laplace noise
    Laplace,
    /// Most votes after Gaussian noise
    Gaussian,
    /// The same, where enough agree
    Confident,
    /// The same, where enough disagree with the student
    Interactive,
    /// Most votes, where no few ballots could change that; only the other questions are paid for
    Stable,
}

impl From<By> for Aggregator {
    fn from(by: By) -> Self {
        match by {
            By::Laplace => Self::Laplace,
            By::Gaussian => Self::Gaussian,
            By::Confident => Self::Confident,
            By::Interactive => Self::Interactive,
            By::Stable => Self::Stable,
        }
    }
}

/// Which questions come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Which {
    /// Those in the midst of many others
    Representative,
    /// Half of them so, then those that are most in doubt
    Active,
    /// As they stand in the file
    InOrder,
}

impl Common {
    /// What is asked for: flags over the file over what is usual.
    pub(super) fn configuration(&self, usual: impl FnOnce() -> Result<Configuration>) -> Result<Configuration> {
        let mut asked = match &self.source.config {
            Some(path) => Configuration::read(path).with_context(|| format!("in {}", path.display()))?,
            None => usual()?,
        };
        self.source.over(&self.terms, &mut asked.data)?;
        asked.data.test = self.public.clone().or(asked.data.test.take());
        if let Some(questions) = self.questions {
            asked.questions = Some(usize::try_from(questions).unwrap_or(usize::MAX));
        }
        self.sight.over(&mut asked.features);
        if let Some(model) = &self.model {
            asked.student.model = Architecture { name: Some(model.clone()), layers: Vec::new() };
        }
        if let Some(choice) = self.choice {
            asked.student.choice = match choice {
                Which::Representative => Choice::Representative,
                Which::Active => Choice::Active,
                Which::InOrder => Choice::InOrder,
            };
        }
        self.votes(&mut asked.votes);
        asked.seed = self.terms.seed.unwrap_or(asked.seed);
        asked.budget = self.terms.allowance(asked.votes.delta)?.or(asked.budget);
        Ok(asked)
    }

    /// What is said about the votes.
    fn votes(&self, votes: &mut voting::Recipe) {
        if let Some(aggregator) = self.aggregator {
            votes.aggregator = aggregator.into();
        }
        if self.deviation.is_some() && self.answers.is_some() && self.epsilon.is_none() {
            // Noise and answers say it all; an ε from elsewhere would contradict them.
            votes.epsilon = None;
        }
        let given = [self.epsilon.is_some(), self.deviation.is_some(), self.answers.is_some()];
        if given.iter().filter(|given| **given).count() == 2 {
            // So do any two of them.
            (votes.epsilon, votes.deviation, votes.answers) = (None, None, None);
        }
        votes.epsilon = self.epsilon.or(votes.epsilon);
        votes.delta = self.delta.or(votes.delta);
        votes.deviation = self.deviation.or(votes.deviation);
        votes.answers = self.answers.map(|answers| u32::try_from(answers).unwrap_or(u32::MAX)).or(votes.answers);
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

/// Label public records by a vote of teachers that learned from disjoint parts of private ones, and train a student on the answers
///
/// Without DATA, the embedded digits: one part is private, the other public. Records are dealt to teachers by their own content (or by whose they are), so that
/// one record touches one teacher. Of ε, noise and answers any may be left out. What was answered stands in answers.jsonl of the run's folder; a run that was
/// stopped goes on with `quell resume`: teachers that have learned do not learn again, and no answer that was given is paid for again.
#[derive(clap::Args)]
#[command(after_help = PATE_EXAMPLES)]
pub(crate) struct Pate {
    #[command(flatten)]
    pub(super) common: Common,
    /// How many teachers there are
    #[arg(long, value_name = "N", value_parser = whole)]
    teachers: Option<u64>,
    /// What teachers are: one of `quell models`
    #[arg(long, value_name = "NAME")]
    teacher_model: Option<String>,
    #[command(flatten)]
    pub(super) users: Users,
    /// Ballots of teachers from elsewhere, instead of DATA: a CSV or Parquet file with a row for each question and a column for each teacher, who each name one of --classes, counted from
    /// 0; what is no ballot abstains; answers only, no student. One record must touch the ballots of one teacher alone, or one person with --users; with --neighbors replace, so must one and
    /// whatever it is exchanged for
    #[arg(long, value_name = "FILE", requires = "about", conflicts_with_all = ["data", "config", "teachers", "teacher_model", "public", "questions", "model", "choice", "schema", "shape", "public_test", "features", "public_network"])]
    pub(super) ballots: Option<PathBuf>,
    /// Show, for a price of its own, what the answers cost at the votes that were cast: less, where teachers agree
    #[arg(long)]
    reveal_cost: bool,
    /// How many labels the ballots are about; each names some, counted from 0, with ; between them
    #[arg(long, value_name = "N", value_parser = whole, requires = "ballots", group = "about")]
    labels: Option<u64>,
    /// How many labels a ballot may name: the fewer, the less noise (all of them if not given)
    #[arg(long, value_name = "N", value_parser = whole, requires = "labels", conflicts_with_all = ["classes", "range"])]
    most: Option<u64>,
    /// The ballots are numbers, held to these bounds: LOW,HIGH
    #[arg(long, value_name = "LOW,HIGH", value_parser = bounds, requires = "ballots", group = "about", allow_hyphen_values = true)]
    range: Option<Bounds>,
}

/// Two numbers with a comma between them.
fn bounds(text: &str) -> Result<Bounds, String> {
    let number = |text: &str| text.trim().parse().ok();
    let (lower, upper) = text
        .split_once(',')
        .and_then(|(lower, upper)| Some((number(lower)?, number(upper)?)))
        .ok_or("expected two numbers with a comma between them")?;
    Bounds::new(lower, upper).map_err(|error| error.to_string())
}

impl Pate {
    /// What is wanted from ballots that lie in a file.
    pub(super) fn elsewhere(&self, ballots: &Path) -> Elsewhere {
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let about = match (self.labels.map(count), self.range) {
            (Some(labels), _) => About::Labels { labels, most: self.most.map_or(labels, count) },
            (None, Some(bounds)) => About::Range(bounds),
            (None, None) => About::Classes(self.common.source.classes.as_ref().map_or(0, |names| names.0.len())),
        };
        let mut votes = voting::Recipe::default();
        self.common.votes(&mut votes);
        votes.reveal |= self.reveal_cost;
        let unit = self.users.unit();
        Elsewhere { ballots: ballots.to_owned(), dataset: self.common.terms.dataset.clone(), unit, about, votes }
    }

    pub(super) fn configuration(&self) -> Result<Configuration> {
        let digits = self.common.source.data.is_none();
        let usual = || Ok(if digits { Configuration::digits_by_teachers()? } else { Configuration::default() });
        let mut asked = self.common.configuration(usual)?;
        asked.votes.reveal |= self.reveal_cost;
        self.users.over(&mut asked.data);
        if !matches!(asked.voters, Electors::Teachers { .. }) {
            asked.voters = Electors::teachers(250);
        }
        if let Electors::Teachers { count, model, .. } = &mut asked.voters {
            if let Some(teachers) = self.teachers {
                *count = usize::try_from(teachers).unwrap_or(usize::MAX);
            }
            if let Some(name) = &self.teacher_model {
                *model = Architecture { name: Some(name.clone()), layers: Vec::new() };
            }
        }
        Ok(asked)
    }
}

const KNN_EXAMPLES: &str = "\
Examples:
  quell knn
  quell knn --neighbors-that-vote 60 --sampling-rate 0.3 --epsilon 3 --output runs/nearest
  quell knn --dry-run --format json";

/// Label public records by a vote of the nearest private ones within a sample, and train a student on the answers
///
/// Without DATA, the embedded digits: one part is private, the other public. For each question a sample of the private records is drawn and those nearest to it
/// vote, with noise; sampling makes an answer cheaper. Of ε, noise and answers any may be left out.
#[derive(clap::Args)]
#[command(after_help = KNN_EXAMPLES)]
pub(crate) struct Knn {
    #[command(flatten)]
    pub(super) common: Common,
    /// How many of the nearest records vote
    #[arg(long, value_name = "K", value_parser = whole)]
    neighbors_that_vote: Option<u64>,
    /// Probability that a record enters the sample of a question
    #[arg(long, value_name = "Q", allow_negative_numbers = true)]
    sampling_rate: Option<f64>,
    /// Measure what is near on so many principal components of the public records
    #[arg(long, value_name = "N", value_parser = whole)]
    components: Option<u64>,
    /// Train a student so often and ask by what it has learned to see
    #[arg(long, value_name = "N", value_parser = whole)]
    turns: Option<u64>,
}

impl Knn {
    pub(super) fn configuration(&self) -> Result<Configuration> {
        let digits = self.common.source.data.is_none();
        let usual = || Ok(if digits { Configuration::digits_by_neighbors()? } else { Configuration::default() });
        let mut asked = self.common.configuration(usual)?;
        if !matches!(asked.voters, Electors::Nearest { .. }) {
            asked.voters = Electors::Nearest { neighbors: 300, rate: 0.1, components: None, turns: 1 };
        }
        if let Electors::Nearest { neighbors, rate, components, turns } = &mut asked.voters {
            let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
            *neighbors = self.neighbors_that_vote.map_or(*neighbors, whole);
            *rate = self.sampling_rate.unwrap_or(*rate);
            *components = self.components.map(whole).or(*components);
            *turns = self.turns.map_or(*turns, |turns| u32::try_from(turns).unwrap_or(u32::MAX));
        }
        Ok(asked)
    }
}
