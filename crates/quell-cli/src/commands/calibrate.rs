//! `quell calibrate`: the noise, the sampling rate or the steps that meet a target.

use anyhow::Result;
use quell_privacy::{
    Bound, Error, Event, Neighbors,
    accounting::{Calibration, Target},
    event::Record,
    number::{Toward, format_exact, format_rounded},
    units::{Delta, Epsilon, Probability},
};
use quell_report::Interval;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    commands::account::report_best,
    flags::{
        Format,
        event::{Batch, DescribedRun, Relation, Run},
        placeholder::IncompleteEvent,
    },
    hint, print,
    progress::Bar,
    refusal::Refusal,
};

const EXAMPLES: &str = r#"Examples:
  quell calibrate --epsilon 1 --delta 1e-5 --sampling-rate 0.01 --steps 1000
  quell calibrate --epsilon 1 --delta 1e-5 --sampling-rate 0.01 --noise-multiplier 1.5
  quell calibrate --epsilon 1 --delta 1e-5 --noise-multiplier 1.5 --steps 1000 --format json
  quell calibrate --mu 0.5 --steps 100
  quell calibrate --true-positive-rate 0.05 --false-positive-rate 0.01 --batch-size 256 --records 60000 --steps 1000
  quell calibrate --epsilon 2 --delta 1e-6 --noise laplace --steps 10 --neighbors replace
  quell calibrate --epsilon 2 --delta 1e-6 --event '{"repeated":{"count":50,"event":{"discrete_laplace":{"scale":"?","sensitivity":1}}}}'"#;

/// Find the noise, the sampling rate or the steps that meet a privacy target
///
/// Give two of --noise-multiplier, --sampling-rate (or --batch-size and --records) and --steps; the command
/// finds the third. Without --noise-multiplier, it finds the noise, with a sampling rate of 1 and one step
/// if these are missing, too. With all three given, it checks whether they meet the target. With --event, it
/// finds any number of an event: write "?" in place of this number. Exit code 1 means that no value meets the
/// target, or that the given values miss it.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    /// Target: ε at --delta
    #[arg(long, value_name = "E", allow_negative_numbers = true, requires = "delta", conflicts_with_all = ["mu", "true_positive_rate"])]
    epsilon: Option<f64>,
    /// Target: δ at --epsilon
    #[arg(long, value_name = "D", allow_negative_numbers = true, conflicts_with_all = ["mu", "true_positive_rate"])]
    delta: Option<f64>,
    /// Target: μ of Gaussian differential privacy
    #[arg(long, value_name = "M", allow_negative_numbers = true, conflicts_with = "true_positive_rate")]
    mu: Option<f64>,
    /// Target: probability of outcomes that --mu may ignore (1e-9 if not given)
    #[arg(long, value_name = "S", allow_negative_numbers = true, requires = "mu")]
    slack: Option<f64>,
    /// Target: largest true-positive rate of any attack, at --false-positive-rate
    #[arg(long, value_name = "T", allow_negative_numbers = true, requires = "false_positive_rate")]
    true_positive_rate: Option<f64>,
    /// Target: false-positive rate at which --true-positive-rate holds
    #[arg(long, value_name = "F", allow_negative_numbers = true, requires = "true_positive_rate")]
    false_positive_rate: Option<f64>,
    #[command(flatten)]
    run: Run,
    /// Event as JSON, with "?" in place of the number to find
    ///
    /// @FILE reads a file, - reads standard input.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["noise_multiplier", "noise", "sampling_rate", "batch_size", "records", "sampling", "steps"])]
    event: Option<String>,
    #[command(flatten)]
    relation: Relation,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Significant digits in text.
const DIGITS: usize = 5;

pub(crate) fn run(flags: &Flags) -> Result<bool> {
    let relation = flags.relation;
    if let Some(argument) = &flags.event {
        let open = IncompleteEvent::read(argument)?;
        let calibration = Calibration::new(flags.target()?.ok_or_else(no_target)?, relation.neighbors());
        let progress = Bar::spinner("calibrating");
        let value = with_hint(calibration.value(&open.parameter, open.start(), |value| open.with(value)))?;
        drop(progress);
        return flags.report(Some(Found::from_incomplete(&open, value)), &open.record(value)?.event);
    }
    let multiplier = flags.run.noise_multiplier()?;
    let batch = flags.run.batch(relation)?;
    let described =
        |multiplier, batch, steps| DescribedRun { noise: flags.run.noise, multiplier, batch, steps };
    if let (Some(multiplier), Some(batch), Some(steps)) = (multiplier, batch, flags.run.steps) {
        let run = described(multiplier, batch, steps);
        return match (flags.delta, flags.target()?) {
            (_, Some(_)) => flags.report(None, &run.event()),
            (Some(delta), None) => report_best(&run.event(), relation, Delta::new(delta)?, flags.format),
            (None, None) => Err(no_target()),
        };
    }
    let calibration = Calibration::new(flags.target()?.ok_or_else(no_target)?, relation.neighbors());
    let progress = Bar::spinner("calibrating");
    let (found, run) = match (multiplier, batch, flags.run.steps) {
        (None, batch, steps) => {
            let batch = batch.map_or_else(Batch::full, Ok)?;
            let steps = steps.unwrap_or(1);
            let found =
                with_hint(calibration.least_noise(|multiplier| described(multiplier, batch, steps).event()))?;
            (Found::real("noise_multiplier", found.get(), Toward::Up), described(found, batch, steps))
        }
        (Some(multiplier), None, Some(steps)) => {
            let found = with_hint(
                calibration.largest_rate(|rate| described(multiplier, Batch::Poisson(rate), steps).event()),
            )?;
            (
                Found::real("sampling_rate", found.get(), Toward::Down),
                described(multiplier, Batch::Poisson(found), steps),
            )
        }
        (Some(multiplier), Some(batch), _) => {
            let found =
                with_hint(calibration.most_steps(|steps| described(multiplier, batch, steps).event()))?;
            (Found::whole("steps", found), described(multiplier, batch, found))
        }
        (Some(_), None, None) => {
            let sentence = "the sampling rate and the number of steps are both missing, expected one unknown";
            return Err(Refusal::new(
                sentence,
                "give --sampling-rate to find the steps, or --steps to find the sampling rate",
            )
            .into());
        }
    };
    drop(progress);
    flags.report(Some(found), &run.event())
}

fn no_target() -> anyhow::Error {
    let hint = "give --epsilon and --delta, or --mu, or --true-positive-rate and --false-positive-rate";
    Refusal::new("no privacy target is given, expected one", hint).into()
}

/// Adds a hint to the error that no value reaches the target.
fn with_hint<T>(found: Result<T, Error>) -> Result<T> {
    found.map_err(|error| match error {
        Error::Unreachable { .. } => {
            let hint = "raise the target, or change one of the given numbers";
            Refusal::new(error.to_string(), hint).denied().into()
        }
        other => hint::for_unsupported(other),
    })
}

impl Flags {
    fn target(&self) -> Result<Option<Target>> {
        if let (Some(epsilon), Some(delta)) = (self.epsilon, self.delta) {
            return Ok(Some(Target::EpsilonDelta {
                epsilon: Epsilon::new(epsilon)?,
                delta: Delta::new(delta)?,
            }));
        }
        if let Some(mu) = self.mu {
            if !(mu > 0.0 && mu.is_finite()) {
                return Err(Error::OutOfRange { what: "mu", value: mu, range: "(0, inf)" }.into());
            }
            return Ok(Some(Target::Gaussian { mu, slack: Delta::new(self.slack.unwrap_or(1e-9))? }));
        }
        if let (Some(true_positive), Some(false_positive)) =
            (self.true_positive_rate, self.false_positive_rate)
        {
            let target = Target::Power {
                false_positive_rate: Probability::new(false_positive)?,
                true_positive_rate: Probability::new(true_positive)?,
            };
            if true_positive <= false_positive {
                let sentence = format!(
                    "true-positive-rate is {true_positive}, expected more than the false-positive rate {false_positive}"
                );
                return Err(Refusal::new(sentence, "random guessing already reaches equal rates").into());
            }
            return Ok(Some(target));
        }
        Ok(None)
    }

    /// Prints the value found and its cost; returns false if that misses the target.
    fn report(&self, found: Option<Found>, event: &Event) -> Result<bool> {
        let target = self.target()?.ok_or_else(no_target)?;
        // Judge the event with the same calibration, so that a value that fits is reported as fitting.
        let bound = Calibration::new(target, self.relation.neighbors()).judge(event)?;
        match self.format {
            Format::Json => print::json(&self.document(found, event, target, bound))?,
            Format::Text => {
                let found = found.map(|found| format!("{}: {}\n", found.name.replace('_', " "), found.text));
                let claim = format!("claim: {} {}\n", describe_bound(target, bound), self.relation.when());
                print::lines(&(found.unwrap_or_default() + &claim))?;
            }
        }
        let goal = match target {
            Target::EpsilonDelta { epsilon, .. } => epsilon.get(),
            Target::Gaussian { mu, .. } => mu,
            Target::Power { true_positive_rate, .. } => true_positive_rate.get(),
        };
        let is_met = bound.upper <= goal;
        if !is_met {
            print::status(&format!("the given values miss the target of {}", format_exact(goal)));
        }
        Ok(is_met)
    }

    fn document(
        &self,
        found: Option<Found>,
        event: &Event,
        target: Target,
        bound: Bound,
    ) -> impl Serialize + use<> {
        #[derive(Serialize)]
        struct Document {
            unknown: Option<&'static str>,
            value: Value,
            target: Value,
            achieved: Value,
            neighbors: Neighbors,
            event: Record,
        }
        let (name, target) = match target {
            Target::EpsilonDelta { epsilon, delta } => {
                ("epsilon", json!({"epsilon": epsilon, "delta": delta}))
            }
            Target::Gaussian { mu, slack } => ("mu", json!({"mu": mu, "slack": slack})),
            Target::Power { false_positive_rate, true_positive_rate } => (
                "true_positive_rate",
                json!({"false_positive_rate": false_positive_rate, "true_positive_rate": true_positive_rate}),
            ),
        };
        let (unknown, value) = found.map_or((None, Value::Null), |found| (Some(found.name), found.value));
        Document {
            unknown,
            value,
            target,
            achieved: json!({name: Interval(bound)}),
            neighbors: self.relation.neighbors(),
            event: event.clone().into(),
        }
    }
}

/// A value found by the search.
struct Found {
    /// JSON name of the value.
    name: &'static str,
    value: Value,
    /// Rounded to the side that still meets the target.
    text: String,
}

impl Found {
    fn real(name: &'static str, value: f64, safe: Toward) -> Self {
        Self { name, value: json!(value), text: format_rounded(value, DIGITS, safe) }
    }

    fn whole(name: &'static str, value: u64) -> Self {
        Self { name, value: json!(value), text: value.to_string() }
    }

    fn from_incomplete(open: &IncompleteEvent, value: f64) -> Self {
        if open.parameter.whole {
            return Self::whole(open.field, value as u64);
        }
        Self::real(open.field, value, if open.parameter.costs { Toward::Down } else { Toward::Up })
    }
}

/// The cost of a run, in the units of the target.
fn describe_bound(target: Target, bound: Bound) -> String {
    let upper = format_rounded(bound.upper, DIGITS, Toward::Up);
    match target {
        Target::EpsilonDelta { delta, .. } => format!("ε ≤ {upper} at δ = {}", format_exact(delta.get())),
        Target::Gaussian { slack, .. } => {
            format!("μ ≤ {upper} up to a slack of {}", format_exact(slack.get()))
        }
        Target::Power { false_positive_rate, .. } => {
            format!(
                "true-positive rate ≤ {upper} at a false-positive rate of {}",
                format_exact(false_positive_rate.get())
            )
        }
    }
}
