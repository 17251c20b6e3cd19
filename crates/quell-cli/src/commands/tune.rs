//! `quell tune`: search settings, and release the best model alone.

use std::num::NonZero;

use anyhow::Result;
use clap::{Args as _, Command, FromArgMatches as _};
use quell::run::{Candidate, Tuning, TuningConfiguration};

use super::train;
use crate::{drive, progress::Bar, refusal::Refusal};

const EXAMPLES: &str = "\
Examples:
  quell tune --epsilon 3
  quell tune --epsilon 3 --try learning-rate=0.5,1,2 --try steps=50,100
  quell tune census.csv --schema census.toml --records 5000 --epsilon 1 --try model=additive,forest
  quell tune --epsilon 3 --try learning-rate=0.5,1,2 --show-trials
  quell tune --epsilon 3 --trials 30 --dry-run";

/// Search settings, and release only the best model, charged to the ledger
///
/// Each trial trains with settings that are drawn at random from those to --try. After each trial a random draw
/// decides whether the search goes on, so that it has --trials trials on average, and one at least. The best trial
/// on the test records is released. The other trials, their number and their scores stay hidden: that is why a search costs much less
/// than its trials together. The ε of the command is that of the whole search; the trials get less.
/// Public test records (--test or --public-test) are compared for nothing more. With a private test part, each
/// trial pays for a noisy score.
/// All other flags are those of `quell train`.
#[derive(clap::Args)]
// `train::Flags` is flattened into this struct, and groups have the names of their structs.
#[group(id = "tune")]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Settings to try: a flag of `quell train` without its dashes, and its values
    ///
    /// Several of them are combined. If not given: models for a table, and learning rates for other data.
    #[arg(long = "try", value_name = "FLAG=A,B,C")]
    tries: Vec<String>,
    /// Expected number of trials
    #[arg(long, value_name = "N", default_value = "10")]
    trials: NonZero<u32>,
    /// Try every combination once, and show all scores; all trials are charged
    #[arg(long, conflicts_with = "trials")]
    show_trials: bool,
    /// ε of the noisy score of each trial, if the test part is private
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    score_epsilon: Option<f64>,
    #[command(flatten)]
    base: train::Flags,
}

/// Most combinations of settings.
const MOST_CANDIDATES: usize = 1000;

pub(crate) fn run(flags: &Flags) -> Result<()> {
    let bar = Bar::spinner("planning");
    let tuning = Tuning::new(flags.configuration()?)?;
    drop(bar);
    drive::start(&tuning, &flags.base.terms, "-tune")
}

impl Flags {
    fn configuration(&self) -> Result<TuningConfiguration> {
        let mut base = self.base.configuration()?;
        let epsilon = self.base.epsilon.or_else(|| base.stated_epsilon());
        let Some(epsilon) = epsilon else {
            return Err(Refusal::new(
                "epsilon is missing, expected the ε of the whole search",
                "add --epsilon 1",
            )
            .into());
        };
        if self.base.noise_multiplier.is_some() {
            let sentence =
                "--noise-multiplier is given, expected none: the noise follows from ε of the search";
            return Err(Refusal::new(sentence, "leave it out").into());
        }
        let tries = if self.tries.is_empty() {
            vec![usual(
                base.data
                    .schema
                    .as_ref()
                    .map(|schema| schema.label.as_ref().is_some_and(|label| label.classes.is_some())),
            )]
        } else {
            self.tries.clone()
        };
        let mut combinations: Vec<Vec<String>> = vec![Vec::new()];
        for text in &tries {
            let values = choices(text)?;
            combinations = combinations
                .into_iter()
                .flat_map(|known| {
                    values.iter().map(move |value| [known.clone(), vec![value.clone()]].concat())
                })
                .collect();
            if combinations.len() > MOST_CANDIDATES {
                let sentence = format!("the settings to try have more than {MOST_CANDIDATES} combinations");
                return Err(Refusal::new(sentence, "try fewer values").into());
            }
        }
        let candidates =
            combinations.into_iter().map(|chosen| self.candidate(&chosen)).collect::<Result<Vec<_>>>()?;
        let count = u32::try_from(candidates.len()).ok().and_then(NonZero::new);
        Ok(TuningConfiguration {
            expected: count.filter(|_| self.show_trials).unwrap_or(self.trials),
            show_trials: self.show_trials,
            epsilon,
            delta: self.base.delta.or_else(|| base.stated_delta()),
            score_epsilon: self.score_epsilon,
            trial_epsilon: None,
            candidates,
        })
    }

    /// The settings of `quell train` with the base flags and these.
    fn candidate(&self, chosen: &[String]) -> Result<Candidate> {
        let command = train::Flags::augment_args_for_update(Command::new("quell tune").no_binary_name(true));
        let matches = command.try_get_matches_from(chosen).map_err(|error| {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            let sentence = line.strip_prefix("error: ").unwrap_or(line).to_owned();
            Refusal::new(sentence, "write --try FLAG=A,B with a flag of `quell train --help`")
        })?;
        let mut flags = self.base.clone();
        flags.update_from_arg_matches(&matches)?;
        let configuration = flags.configuration()?;
        Ok(Candidate { name: chosen.join(" "), configuration })
    }
}

/// What is tried if the user names nothing: models for a table, learning rates for other data.
///
/// `table` says whether the label of a table has classes.
fn usual(table: Option<bool>) -> String {
    match table {
        Some(true) => "model=additive,logistic,forest,tree".into(),
        Some(false) => "model=additive,linear,forest,tree".into(),
        None => "learning-rate=0.25,0.5,1,2,4".into(),
    }
}

/// `--flag=value` for each value of `flag=a,b,c`.
fn choices(text: &str) -> Result<Vec<String>> {
    let wrong = || {
        let sentence = format!("--try is {text:?}, expected FLAG=A,B,C");
        Refusal::new(sentence, "for example, --try learning-rate=0.5,1,2")
    };
    let (flag, values) = text.split_once('=').ok_or_else(wrong)?;
    let flag = flag.trim().trim_start_matches('-');
    let values: Vec<&str> = values.split(',').map(str::trim).collect();
    if flag.is_empty() || values.iter().any(|value| value.is_empty()) {
        return Err(wrong().into());
    }
    if !VARIABLE.contains(&flag) {
        let sentence = format!("--try varies {flag:?}, expected one of {}", VARIABLE.join(", "));
        return Err(Refusal::new(
            sentence,
            "the data, the guarantee and the output are the same for all trials",
        )
        .into());
    }
    Ok(values.into_iter().map(|value| format!("--{flag}={value}")).collect())
}

/// Flags that trials may vary. All others are about the data, the guarantee or the output.
const VARIABLE: [&str; 16] = [
    "model",
    "method",
    "features",
    "prepare",
    "components",
    "clusters",
    "quantile",
    "regularization",
    "steps",
    "epochs",
    "sampling",
    "sampling-rate",
    "batch-size",
    "clip-norm",
    "learning-rate",
    "seed",
];
