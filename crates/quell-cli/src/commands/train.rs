//! `quell train` and `quell resume`: train a model and pay for it.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{
    ValueEnum,
    builder::{PossibleValue, PossibleValuesParser},
};
use quell::{
    learner::{
        dp_sgd::{Clip, Sampler},
        glm::Algorithm,
        prepared::Preparation,
        schedule::{Schedule, Shape},
    },
    run::{self, Configuration, Folder, Learner, ModelGroup, NamedModel, named_models},
};

use crate::{
    drive,
    flags::{
        Format,
        ledger::LedgerArgs,
        parse_count, parse_positive,
        ratings::RatingArgs,
        run::{FeatureArgs, RunArgs, SourceArgs, UserArgs},
    },
    refusal::Refusal,
};

const EXAMPLES: &str = "\
Examples:
  quell train
  quell train --epsilon 1 --steps 50 --output runs/small
  quell train --noise-multiplier 4 --sampling-rate 0.25 --steps 40 --model logistic --format json
  quell train census.csv --schema census.toml --records 5000 --epsilon 1
  quell train --model kmeans --clusters 10 --epsilon 1
  quell train --features scattering --model logistic --learning-rate 2
  quell train --dry-run";

/// Train a model, charged to the ledger of the dataset
///
/// DATA is a CSV or Parquet file with a schema, a folder or file of IDX, CIFAR-10, NPY or NPZ, or a folder with
/// one folder of images for each class. Without DATA, the command trains on the embedded digits.
///
/// A table gets an additive model, or a small network if it is large, and images get a linear model of scattering
/// features. They need no setting but ε and a rough number of records. The models kmeans
/// and components use no label. The model factorization recommends items: it needs a table of ratings and a
/// public list of items, and protects each user with all their ratings. Other data, and settings of DP-SGD, get a
/// network that is trained with DP-SGD. Any of ε, noise, steps and sampling rate may be left out.
///
/// The command does not count the records, because their number may be private. State it with --records:
/// approximately, or exactly for batches of a fixed size. Without --delta, δ is a power of ten below 0.1 divided
/// by this number.
#[derive(Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    #[command(flatten)]
    source: SourceArgs,
    /// Public examples to test on
    #[arg(long, value_name = "DATA")]
    test: Option<PathBuf>,
    #[command(flatten)]
    features: FeatureArgs,
    /// Model to train: one of `quell models`
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Method that trains the model; chosen by the data if not given
    #[arg(long, value_parser = method_names())]
    method: Option<String>,
    /// Quantile that the model `quantile` predicts; the median if not given
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    quantile: Option<f32>,
    /// Number of clusters, for the model `kmeans`
    #[arg(long, value_name = "K", value_parser = parse_count)]
    clusters: Option<u64>,
    /// Number of principal components, for the model `components` or before a network
    #[arg(long, value_name = "K", value_parser = parse_count)]
    components: Option<u64>,
    /// What to measure privately first, to scale all columns of numbers for a network
    #[arg(long, value_enum, conflicts_with = "components")]
    prepare: Option<PrepareArg>,
    #[command(flatten)]
    ratings: RatingArgs,
    /// Weight λ of the penalty λ/2 ‖w‖² of a model of tables
    ///
    /// For methods that standardise columns, w are the weights of standardised columns, and waves count like
    /// columns.
    #[arg(long, value_name = "L", allow_negative_numbers = true)]
    regularization: Option<f64>,
    /// ε of the run
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub(crate) epsilon: Option<f64>,
    /// δ of the run
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    pub(crate) delta: Option<f64>,
    /// Standard deviation of the noise divided by the clip norm
    #[arg(long, value_name = "Z", allow_negative_numbers = true)]
    pub(crate) noise_multiplier: Option<f64>,
    /// Number of steps
    #[arg(long, value_name = "T", value_parser = parse_count, conflicts_with = "epochs")]
    steps: Option<u64>,
    /// Number of epochs, instead of --steps
    ///
    /// An epoch is as many steps as one record needs, on average, to enter one batch.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    epochs: Option<f64>,
    /// How a batch is sampled
    #[arg(long, value_enum)]
    sampling: Option<SamplingArg>,
    /// Probability that a record enters a batch
    #[arg(long, value_name = "Q", allow_negative_numbers = true, conflicts_with = "batch_size")]
    sampling_rate: Option<f64>,
    /// Expected size of a batch, instead of --sampling-rate
    #[arg(long, value_name = "B", value_parser = parse_count)]
    batch_size: Option<u64>,
    /// Approximate number of records (or users); a public number
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    records: Option<u64>,
    /// Largest norm of the gradient of one record
    #[arg(long, value_name = "C", allow_negative_numbers = true)]
    clip_norm: Option<f64>,
    /// Learning rate
    #[arg(long, value_name = "R", allow_negative_numbers = true)]
    learning_rate: Option<f64>,
    #[command(flatten)]
    users: UserArgs,
    #[command(flatten)]
    pub(crate) terms: RunArgs,
}

/// How a batch is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SamplingArg {
    /// Poisson sampling: each record independently
    Poisson,
    /// Every record in every step
    Full,
    /// A random set of fixed size; needs --neighbors replace
    WithoutReplacement,
    /// Every record once per epoch; no privacy amplification by sampling
    Shuffled,
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    // All errors in the configuration are reported before anything is paid.
    let asked = Configuration { is_only_planned: flags.terms.dry_run, ..flags.configuration()? };
    run::train(asked, drive::Start::reading(&flags.terms))?
}

pub(crate) fn resume(flags: &Resume) -> Result<()> {
    drive::resume(&Folder::open(&flags.run)?.locked()?, &flags.ledgers, flags.format)
}

impl Flags {
    /// Builds the configuration: flags override the file, and the file overrides the defaults.
    pub(crate) fn configuration(&self) -> Result<Configuration> {
        let mut asked = match (&self.source.config, &self.source.data) {
            (Some(path), _) => Configuration::read(path).with_context(|| format!("in {}", path.display()))?,
            // The settings for digits are those of a network, except for the budget.
            (None, None) if self.is_of(ModelGroup::WithoutLabels) => {
                Configuration { budget: Configuration::digits()?.budget, ..Configuration::default() }
            }
            (None, None) => Configuration::digits()?,
            (None, Some(_)) => Configuration::default(),
        };
        self.source.apply_to(&self.terms, &mut asked.data)?;
        self.users.apply_to(&mut asked.data);
        self.ratings.apply_to(&mut asked)?;
        asked.data.test = self.test.clone().or(asked.data.test.take());
        asked.features = self.features.asked().or(asked.features.take());
        if let Some(model) = &self.model {
            asked.model.name = Some(model.clone());
            asked.model.layers.clear();
        }
        let recipe = &mut asked.training;
        if self.noise_multiplier.is_some() && self.epsilon.is_none() {
            // The noise determines ε; an ε from the file would contradict it.
            recipe.privacy.epsilon = None;
        }
        recipe.privacy.epsilon = self.epsilon.or(recipe.privacy.epsilon);
        recipe.privacy.delta = self.delta.or(recipe.privacy.delta);
        recipe.privacy.noise_multiplier = self.noise_multiplier.or(recipe.privacy.noise_multiplier);
        if let Some(change) = self.terms.neighbors {
            asked.set_neighbors(change.into());
        }
        let recipe = &mut asked.training;
        if self.steps.is_some() || self.epochs.is_some() {
            (recipe.steps, recipe.epochs) = (self.steps, self.epochs);
        }
        if let Some(sampling) = self.sampling {
            recipe.sampling.by = match sampling {
                SamplingArg::Poisson => Sampler::Poisson,
                SamplingArg::Full => Sampler::Full,
                SamplingArg::WithoutReplacement => Sampler::WithoutReplacement,
                SamplingArg::Shuffled => Sampler::Shuffled,
            };
        }
        if self.sampling_rate.is_some() || self.batch_size.is_some() {
            (recipe.sampling.rate, recipe.sampling.batch) = (self.sampling_rate, self.batch_size);
        }
        recipe.sampling.records = self.records.or(recipe.sampling.records);
        if let Some(norm) = self.clip_norm {
            recipe.clipping = Some(match recipe.clipping {
                None | Some(Clip::Flat { .. }) => Clip::Flat { norm },
                Some(Clip::PerLayer { .. }) => Clip::PerLayer { norm },
                Some(Clip::Automatic { stability, .. }) => Clip::Automatic { norm, stability },
                Some(Clip::Adaptive { quantile, learning_rate, count_noise, .. }) => {
                    Clip::Adaptive { norm, quantile, learning_rate, count_noise }
                }
            });
        }
        if let Some(learning_rate) = self.learning_rate {
            let usual = Schedule { learning_rate, warm_up: 0, shape: Shape::Constant };
            recipe.schedule =
                Some(recipe.schedule.map_or(usual, |schedule| Schedule { learning_rate, ..schedule }));
        }
        recipe.seed = self.terms.seed.unwrap_or(recipe.seed);
        if let Some(name) = &self.method {
            // Every other name is that of a linear method: the parser knows no more.
            let linear = Algorithm::named(name);
            asked.learner = Some(if linear.is_some() { Learner::Glm } else { Learner::DpSgd });
            asked.glm.method = linear.unwrap_or_default();
        }
        asked.glm.quantile = self.quantile.or(asked.glm.quantile);
        asked.glm.regularization = self.regularization.or(asked.glm.regularization);
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        asked.unsupervised.clusters = self.clusters.map(count).or(asked.unsupervised.clusters);
        if let Some(components) = self.components.map(count) {
            let is_of_tables = self.is_of(ModelGroup::Table) && !self.is_of(ModelGroup::Network);
            if let Some(name) = self.model.as_deref().filter(|_| is_of_tables) {
                let sentence = format!(
                    "--components is given, and the model {name} is no network, expected a network or the model components"
                );
                let hint = "leave --components out, or train a network on components, such as --model mlp";
                return Err(Refusal::new(sentence, hint).into());
            }
            // Before a network, components are a preparation. They are a model of their own otherwise.
            if self.is_of(ModelGroup::Network) {
                asked.training.preparation =
                    Some(Preparation::Components { count: components, noise_multiplier: None });
            } else {
                asked.unsupervised.components = Some(components);
            }
        }
        if let Some(name) =
            self.model.as_deref().filter(|_| self.prepare.is_some() && !self.is_of(ModelGroup::Network))
        {
            let sentence =
                format!("--prepare is given, and the model {name} is no network, expected a network");
            let hint = "leave --prepare out, or train a network, such as --model mlp";
            return Err(Refusal::new(sentence, hint).into());
        }
        asked.training.preparation = self.prepare.map(PrepareArg::preparation).or(asked.training.preparation);
        let delta = asked.budget.map(|budget| budget.delta).or_else(|| asked.stated_delta());
        asked.budget = self.terms.new_budget(delta)?.or(asked.budget);
        Ok(asked)
    }
}

impl Flags {
    /// Whether the flags name a model of this group.
    fn is_of(&self, group: ModelGroup) -> bool {
        let is_named = |model: &NamedModel| Some(model.name) == self.model.as_deref();
        named_models().iter().any(|model| model.group == group && is_named(model))
    }
}

/// What is found about all columns of numbers, as flags name it.
#[derive(Clone, Copy, ValueEnum)]
enum PrepareArg {
    /// Nothing: numbers are scaled by their declared bounds alone
    None,
    /// Mean and spread: numbers are shifted and scaled
    Standardize,
    /// Quantiles: a number becomes the share of records below it
    Quantiles,
}

impl PrepareArg {
    fn preparation(self) -> Preparation {
        match self {
            Self::None => Preparation::None {},
            Self::Standardize => Preparation::Standardize { noise_multiplier: None },
            Self::Quantiles => Preparation::Quantiles { noise_multiplier: None },
        }
    }
}

/// The name of the method for networks.
const DP_SGD: &str = "dp-sgd";

/// The names of all methods, with a sentence on each.
fn method_names() -> PossibleValuesParser {
    let linear = Algorithm::ALL.map(|method| PossibleValue::new(method.name()).help(method.purpose()));
    PossibleValuesParser::new(
        [PossibleValue::new(DP_SGD).help("DP-SGD, for every model")].into_iter().chain(linear),
    )
}

const RESUME_EXAMPLES: &str = "\
Examples:
  quell train --output runs/first
  quell resume runs/first";

/// Continue a run that was stopped or killed; nothing is charged twice
///
/// Steps that were leased but not saved are lost: they stay charged, and the command does not run them again,
/// because that would be another release. The command refuses a run on which another process works, and a
/// ledger that is older than the run.
#[derive(clap::Args)]
#[command(after_help = RESUME_EXAMPLES)]
pub(crate) struct Resume {
    /// Folder of the run
    run: PathBuf,
    #[command(flatten)]
    ledgers: LedgerArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}
