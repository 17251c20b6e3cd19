//! `quell calibrate`: the least noise, the largest sampling rate or the most steps that meet a target.

use anyhow::Result;
use quell_privacy::{
    Bound, Error, Event, Neighbors,
    accounting::{Calibration, Conversion, Pld, Renyi, Target, TradeOff},
    event::Record,
    number::{Toward, given, rounded},
    units::{Delta, Epsilon, Probability},
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    account::report_best,
    answer::Interval,
    arguments::{Format, Relation, Run},
    print::{self, Progress},
    recipe::{Batch, Recipe},
    refusal::Refusal,
};

const EXAMPLES: &str = "\
Examples:
  quell calibrate --epsilon 1 --delta 1e-5 --sampling-rate 0.01 --steps 1000
  quell calibrate --epsilon 1 --delta 1e-5 --sampling-rate 0.01 --noise-multiplier 1.5
  quell calibrate --epsilon 1 --delta 1e-5 --noise-multiplier 1.5 --steps 1000 --format json
  quell calibrate --mu 0.5 --steps 100
  quell calibrate --true-positive-rate 0.05 --false-positive-rate 0.01 --batch-size 256 --records 60000 --steps 1000
  quell calibrate --epsilon 2 --delta 1e-6 --noise laplace --steps 10 --neighbors replace";

/// The noise, the sampling rate or the steps that meet a target: whichever is left out
///
/// Give two out of --noise-multiplier, --sampling-rate (or --batch-size and --records) and --steps, and the third is found.
/// Without --noise-multiplier it is the noise that is found, and a rate or a number of steps that is left out is 1.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Target: ε at --delta
    #[arg(long, value_name = "E", allow_negative_numbers = true, requires = "delta", conflicts_with_all = ["mu", "true_positive_rate"])]
    epsilon: Option<f64>,
    /// Target: the δ of --epsilon
    #[arg(long, value_name = "D", allow_negative_numbers = true, conflicts_with_all = ["mu", "true_positive_rate"])]
    delta: Option<f64>,
    /// Target: μ of Gaussian differential privacy
    #[arg(long, value_name = "M", allow_negative_numbers = true, conflicts_with = "true_positive_rate")]
    mu: Option<f64>,
    /// Probability that --mu may leave out (1e-9 if not given)
    #[arg(long, value_name = "S", allow_negative_numbers = true, requires = "mu")]
    slack: Option<f64>,
    /// Target: no attack finds a record more often than this …
    #[arg(long, value_name = "T", allow_negative_numbers = true, requires = "false_positive_rate")]
    true_positive_rate: Option<f64>,
    /// … when it is wrong about this many others
    #[arg(long, value_name = "F", allow_negative_numbers = true, requires = "true_positive_rate")]
    false_positive_rate: Option<f64>,
    #[command(flatten)]
    run: Run,
    #[command(flatten)]
    relation: Relation,
    /// How the answer is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Significant digits in text.
const DIGITS: usize = 5;

pub(crate) fn run(flags: &Flags) -> Result<()> {
    let relation = flags.relation;
    let multiplier = flags.run.noise_multiplier()?;
    let batch = flags.run.batch(relation)?;
    let known = |multiplier, batch, steps| Recipe { noise: flags.run.noise, multiplier, batch, steps };
    if let (Some(multiplier), Some(batch), Some(steps)) = (multiplier, batch, flags.run.steps) {
        let recipe = known(multiplier, batch, steps);
        return match (flags.delta, flags.target()?) {
            (Some(delta), _) => report_best(&recipe.event(), relation, Delta::new(delta)?, flags.format),
            (None, Some(target)) => flags.report(None, &recipe, target),
            (None, None) => Err(no_target()),
        };
    }
    let target = flags.target()?.ok_or_else(no_target)?;
    let progress = Progress::new("calibrating", None);
    let calibration = Calibration::new(target, relation.neighbors());
    let (unknown, recipe) = match (multiplier, batch, flags.run.steps) {
        (None, batch, steps) => {
            let batch = batch.map_or_else(Batch::whole, Ok)?;
            let steps = steps.unwrap_or(1);
            let found = calibration.least_noise(|multiplier| known(multiplier, batch, steps).event());
            (Unknown::NoiseMultiplier, known(hinted(found)?, batch, steps))
        }
        (Some(multiplier), None, Some(steps)) => {
            let found = calibration.largest_rate(|rate| known(multiplier, Batch::Poisson(rate), steps).event());
            (Unknown::SamplingRate, known(multiplier, Batch::Poisson(hinted(found)?), steps))
        }
        (Some(multiplier), Some(batch), _) => {
            let found = calibration.most_steps(|steps| known(multiplier, batch, steps).event());
            (Unknown::Steps, known(multiplier, batch, hinted(found)?))
        }
        (Some(_), None, None) => {
            let sentence = "both the sampling rate and the number of steps are left out, expected one unknown";
            return Err(
                Refusal::new(sentence, "give --sampling-rate 1 for the most steps, --steps 1 for the largest rate").into()
            );
        }
    };
    drop(progress);
    flags.report(Some(unknown), &recipe, target)
}

fn no_target() -> anyhow::Error {
    let hint = "give --epsilon and --delta, or --mu, or --true-positive-rate and --false-positive-rate";
    Refusal::new("no target is given, expected one to calibrate to", hint).into()
}

/// Says what to change where no value reaches the target.
fn hinted<T>(found: Result<T, Error>) -> Result<T> {
    found.map_err(|error| match error {
        Error::Unreachable { .. } => {
            Refusal::new(error.to_string(), "raise the target, or change one of the numbers that were given").into()
        }
        other => other.into(),
    })
}

impl Flags {
    fn target(&self) -> Result<Option<Target>> {
        if let (Some(epsilon), Some(delta)) = (self.epsilon, self.delta) {
            return Ok(Some(Target::EpsilonDelta { epsilon: Epsilon::new(epsilon)?, delta: Delta::new(delta)? }));
        }
        if let Some(mu) = self.mu {
            if !(mu > 0.0 && mu.is_finite()) {
                return Err(Error::OutOfRange { what: "mu", value: mu, range: "(0, inf)" }.into());
            }
            return Ok(Some(Target::Gaussian { mu, slack: Delta::new(self.slack.unwrap_or(1e-9))? }));
        }
        if let (Some(found), Some(wrong)) = (self.true_positive_rate, self.false_positive_rate) {
            let target =
                Target::Power { false_positive_rate: Probability::new(wrong)?, true_positive_rate: Probability::new(found)? };
            if found <= wrong {
                let sentence = format!("true-positive-rate is {found}, expected more than the false-positive rate {wrong}");
                return Err(Refusal::new(sentence, "random guessing finds as many as it is wrong about").into());
            }
            return Ok(Some(target));
        }
        Ok(None)
    }

    /// Says what was found, and what a run with it costs.
    fn report(&self, unknown: Option<Unknown>, recipe: &Recipe, target: Target) -> Result<()> {
        let event = recipe.event();
        let cost = Cost::new(&event, self.relation, target)?;
        match self.format {
            Format::Json => print::json(&self.document(unknown, recipe, target, &cost)),
            Format::Text => {
                let found = unknown.map(|unknown| format!("{}: {}\n", unknown.name(), unknown.text(recipe)));
                let claim = format!("claim: {} {}\n", cost.words(), self.relation.when());
                print::data(&(found.unwrap_or_default() + &claim))
            }
        }
    }

    fn document(&self, unknown: Option<Unknown>, recipe: &Recipe, target: Target, cost: &Cost) -> impl Serialize + use<> {
        #[derive(Serialize)]
        struct Document {
            unknown: Option<Unknown>,
            value: Value,
            target: Value,
            achieved: Value,
            neighbors: Neighbors,
            event: Record,
        }
        let target = match target {
            Target::EpsilonDelta { epsilon, delta } => json!({"epsilon": epsilon, "delta": delta}),
            Target::Gaussian { mu, slack } => json!({"mu": mu, "slack": slack}),
            Target::Power { false_positive_rate, true_positive_rate } => {
                json!({"false_positive_rate": false_positive_rate, "true_positive_rate": true_positive_rate})
            }
        };
        Document {
            unknown,
            value: unknown.map_or(Value::Null, |unknown| unknown.value(recipe)),
            target,
            achieved: json!({cost.name(): Interval(cost.bound)}),
            neighbors: self.relation.neighbors(),
            event: recipe.event().into(),
        }
    }
}

/// What is searched for.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Unknown {
    NoiseMultiplier,
    SamplingRate,
    Steps,
}

impl Unknown {
    fn name(self) -> &'static str {
        match self {
            Self::NoiseMultiplier => "noise multiplier",
            Self::SamplingRate => "sampling rate",
            Self::Steps => "steps",
        }
    }

    /// Rounded to the side on which the target is still met.
    fn text(self, recipe: &Recipe) -> String {
        match (self, recipe.batch) {
            (Self::NoiseMultiplier, _) => rounded(recipe.multiplier.get(), DIGITS, Toward::Up),
            (Self::SamplingRate, Batch::Poisson(rate)) => rounded(rate.get(), DIGITS, Toward::Down),
            _ => recipe.steps.to_string(),
        }
    }

    fn value(self, recipe: &Recipe) -> Value {
        match (self, recipe.batch) {
            (Self::NoiseMultiplier, _) => json!(recipe.multiplier),
            (Self::SamplingRate, Batch::Poisson(rate)) => json!(rate),
            _ => json!(recipe.steps),
        }
    }
}

/// What a run costs, in the units of the target.
struct Cost {
    target: Target,
    bound: Bound,
}

impl Cost {
    /// Judged as the calibration judged it, so that what was found to fit is seen to fit.
    fn new(event: &Event, relation: Relation, target: Target) -> Result<Self> {
        let pld = Pld { relative: 4e-4, absolute: 1e-5, ..Pld::default() };
        let neighbors = relation.neighbors();
        let trade_off = || TradeOff::new(&pld, event, neighbors);
        let bound = match target {
            Target::EpsilonDelta { delta, .. } => match pld.epsilon(event, neighbors, delta) {
                Err(Error::Unsupported { .. }) => Renyi::new(event, neighbors)?.epsilon(delta, Conversion::Tight),
                answer => answer?,
            },
            Target::Gaussian { slack, .. } => trade_off()?.gaussian(slack)?,
            Target::Power { false_positive_rate, .. } => trade_off()?.power(false_positive_rate),
        };
        Ok(Self { target, bound })
    }

    fn name(&self) -> &'static str {
        match self.target {
            Target::EpsilonDelta { .. } => "epsilon",
            Target::Gaussian { .. } => "mu",
            Target::Power { .. } => "true_positive_rate",
        }
    }

    fn words(&self) -> String {
        let upper = rounded(self.bound.upper, DIGITS, Toward::Up);
        match self.target {
            Target::EpsilonDelta { delta, .. } => format!("ε ≤ {upper} at δ = {}", given(delta.get())),
            Target::Gaussian { slack, .. } => format!("μ ≤ {upper} up to a slack of {}", given(slack.get())),
            Target::Power { false_positive_rate, .. } => {
                format!("true-positive rate ≤ {upper} at a false-positive rate of {}", given(false_positive_rate.get()))
            }
        }
    }
}
