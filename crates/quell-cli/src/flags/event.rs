//! Flags that describe an event and the neighboring relation.

use std::{fmt, io::Read};

use anyhow::{Context, Result};
use clap::{
    ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser},
};
use quell_privacy::{
    Event, Neighbors,
    accounting::Method,
    event::Record,
    number::format_exact,
    units::{Contraction, Diameter, NoiseMultiplier, SamplingRate},
};

use super::{Change, parse_count};
use crate::refusal::Refusal;

/// The distribution of the noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Noise {
    #[default]
    Gaussian,
    Laplace,
}

/// How a batch is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sampling {
    /// Each record independently.
    #[default]
    Poisson,
    /// A random set of fixed size, without replacement.
    WithoutReplacement,
    /// Independent draws with replacement.
    WithReplacement,
}

/// The relation between neighbouring datasets.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Relation {
    /// Neighboring datasets: which change of one record the guarantee hides
    #[arg(long, value_enum, default_value_t)]
    neighbors: Change,
}

impl Relation {
    pub(crate) fn neighbors(self) -> Neighbors {
        self.neighbors.into()
    }

    /// The relation as the end of a sentence.
    pub(crate) fn when(self) -> &'static str {
        match self.neighbors {
            Change::AddRemove => "when one record is added or removed",
            Change::Replace => "when one record is replaced",
        }
    }
}

/// A run of noisy steps, each on a sample of the records.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Run {
    /// Noise scale divided by the largest contribution of one record (σ/C, or b/C)
    ///
    /// The scale is the standard deviation σ of Gaussian noise, or the scale b of Laplace noise.
    #[arg(long, value_name = "Z", allow_negative_numbers = true)]
    pub(crate) noise_multiplier: Option<f64>,
    /// Distribution of the noise
    #[arg(long, value_enum, default_value_t)]
    pub(crate) noise: Noise,
    /// Probability that a record enters a batch
    #[arg(long, value_name = "Q", allow_negative_numbers = true, conflicts_with_all = ["batch_size", "records"])]
    pub(crate) sampling_rate: Option<f64>,
    /// Size of a batch: expected under Poisson sampling, exact otherwise
    #[arg(long, value_name = "B", value_parser = parse_count, allow_negative_numbers = true, requires = "records")]
    pub(crate) batch_size: Option<u64>,
    /// Size of the dataset
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true, requires = "batch_size")]
    pub(crate) records: Option<u64>,
    /// How a batch is sampled
    ///
    /// Batches of a fixed size need --batch-size, --records and --neighbors replace.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) sampling: Sampling,
    /// Number of steps
    #[arg(long, value_name = "T", value_parser = steps, allow_negative_numbers = true)]
    pub(crate) steps: Option<u64>,
}

impl Run {
    pub(crate) fn noise_multiplier(&self) -> Result<Option<NoiseMultiplier>> {
        Ok(self.noise_multiplier.map(NoiseMultiplier::new).transpose()?)
    }

    /// The sampling of a batch; none if the flags do not specify it.
    pub(crate) fn batch(&self, relation: Relation) -> Result<Option<Batch>> {
        if let (Some(batch), Some(records)) = (self.batch_size, self.records)
            && !(1..=records).contains(&batch)
        {
            let sentence = format!(
                "batch-size is {batch}, expected a number from 1 to the number of records, {records}"
            );
            return Err(Refusal::new(sentence, "--records is the size of the whole dataset").into());
        }
        if self.sampling == Sampling::Poisson {
            let rate = match (self.batch_size, self.records) {
                (Some(batch), Some(records)) => Some(batch as f64 / records as f64),
                _ => self.sampling_rate,
            };
            return Ok(rate.map(SamplingRate::new).transpose()?.map(Batch::Poisson));
        }
        let (Some(batch), Some(records)) = (self.batch_size, self.records) else {
            let sentence = "a batch of fixed size needs the batch size and the size of the dataset";
            return Err(
                Refusal::new(sentence, "give --batch-size and --records instead of --sampling-rate").into()
            );
        };
        if relation.neighbors() != Neighbors::Replace {
            let sentence =
                "a batch of fixed size reveals the number of records, expected --neighbors replace";
            return Err(Refusal::new(sentence, "add --neighbors replace, or use --sampling poisson").into());
        }
        Ok(Some(Batch::Fixed { batch, records, replaced: self.sampling == Sampling::WithReplacement }))
    }

    /// The run, with missing flags taken from `defaults`.
    pub(crate) fn with_defaults(&self, defaults: &Defaults, relation: Relation) -> Result<DescribedRun> {
        Ok(DescribedRun {
            noise: self.noise,
            multiplier: match self.noise_multiplier()? {
                Some(multiplier) => multiplier,
                None => NoiseMultiplier::new(defaults.noise_multiplier)?,
            },
            batch: match self.batch(relation)? {
                Some(batch) => batch,
                None => Batch::Poisson(SamplingRate::new(defaults.sampling_rate)?),
            },
            steps: self.steps.unwrap_or(defaults.steps),
        })
    }
}

/// Values for flags that are not given.
pub(crate) struct Defaults {
    pub(crate) noise_multiplier: f64,
    pub(crate) sampling_rate: f64,
    pub(crate) steps: u64,
}

/// How a batch is sampled, with its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Batch {
    Poisson(SamplingRate),
    Fixed { batch: u64, records: u64, replaced: bool },
}

impl Batch {
    /// Every record in every step.
    pub(crate) fn full() -> Result<Self> {
        Ok(Self::Poisson(SamplingRate::new(1.0)?))
    }
}

/// A fully specified run of noisy steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DescribedRun {
    pub(crate) noise: Noise,
    pub(crate) multiplier: NoiseMultiplier,
    pub(crate) batch: Batch,
    pub(crate) steps: u64,
}

impl DescribedRun {
    /// The event of one step.
    pub(crate) fn step(&self) -> Event {
        let release = match self.noise {
            Noise::Gaussian => Event::gaussian(self.multiplier),
            Noise::Laplace => Event::laplace(self.multiplier),
        };
        match self.batch {
            Batch::Poisson(rate) if rate.get() == 1.0 => release,
            Batch::Poisson(rate) => release.poisson_sampled(rate),
            Batch::Fixed { batch, records, replaced: false } => {
                Event::SampledWithoutReplacement { batch, records, event: Box::new(release) }
            }
            Batch::Fixed { batch, records, replaced: true } => {
                Event::SampledWithReplacement { batch, records, event: Box::new(release) }
            }
        }
    }

    /// The event of all steps.
    pub(crate) fn event(&self) -> Event {
        if self.steps == 1 { self.step() } else { self.step().repeated(self.steps) }
    }
}

impl fmt::Display for DescribedRun {
    /// Describes one step.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noise = if self.noise == Noise::Gaussian { "Gaussian" } else { "Laplace" };
        write!(f, "{noise} noise multiplier {}", format_exact(self.multiplier.get()))?;
        match self.batch {
            Batch::Poisson(rate) if rate.get() == 1.0 => Ok(()),
            Batch::Poisson(rate) => write!(f, ", Poisson sampling rate {}", format_exact(rate.get())),
            Batch::Fixed { batch, records, replaced } => {
                write!(
                    f,
                    ", {batch} of {records} records with{} replacement",
                    if replaced { "" } else { "out" }
                )
            }
        }
    }
}

/// Steps on all records, of which only the last iterate is released.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Hidden {
    /// Only the last iterate is released, and each step stretches distances by at most C
    ///
    /// C is the Lipschitz constant of a step before noise, for every dataset, at most 1. For gradient descent
    /// with learning rate η on a loss that is λ-strongly convex, it is 1 - ηλ, if η is small enough.
    #[arg(long, value_name = "C", allow_negative_numbers = true, conflicts_with_all = ["noise", "sampling_rate", "batch_size", "records", "sampling"])]
    contraction: Option<f64>,
    /// Only the last iterate is released; iterates are projected on a set of diameter D
    ///
    /// The unit of D is the largest contribution of one record to a step.
    #[arg(long, value_name = "D", allow_negative_numbers = true, conflicts_with_all = ["noise", "sampling_rate", "batch_size", "records", "sampling"])]
    diameter: Option<f64>,
}

impl Hidden {
    /// The event of such steps; none if neither flag is given.
    fn event(&self, run: &DescribedRun) -> Result<Option<Event>> {
        if self.contraction.is_none() && self.diameter.is_none() {
            return Ok(None);
        }
        Ok(Some(Event::HiddenState {
            noise_multiplier: run.multiplier,
            contraction: Contraction::new(self.contraction.unwrap_or(1.0))?,
            steps: run.steps,
            diameter: self.diameter.map(Diameter::new).transpose()?,
        }))
    }
}

/// An event, described by the flags of a run or given as JSON.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Described {
    #[command(flatten)]
    pub(crate) run: Run,
    #[command(flatten)]
    hidden: Hidden,
    /// Event as JSON; @FILE reads a file, - reads standard input
    ///
    /// The event is plain, or a record with a version.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["noise_multiplier", "noise", "sampling_rate", "batch_size", "records", "sampling", "steps", "contraction", "diameter"])]
    event: Option<String>,
    #[command(flatten)]
    pub(crate) relation: Relation,
}

impl Described {
    /// The event that was given as JSON, if any.
    pub(crate) fn json_event(&self) -> Result<Option<Event>> {
        self.event.as_deref().map(read_event).transpose()
    }

    /// The event. Without `defaults`, --noise-multiplier or --event is required.
    pub(crate) fn event(&self, defaults: Option<&Defaults>) -> Result<Event> {
        if let Some(event) = self.json_event()? {
            return Ok(event);
        }
        if defaults.is_none() && self.run.noise_multiplier.is_none() {
            let hint = "try --noise-multiplier 1.1 --sampling-rate 0.01 --steps 10000";
            return Err(
                Refusal::new("no event is described, expected --noise-multiplier or --event", hint).into()
            );
        }
        let single_step = Defaults { noise_multiplier: 1.0, sampling_rate: 1.0, steps: 1 };
        let run = self.run.with_defaults(defaults.unwrap_or(&single_step), self.relation)?;
        Ok(self.hidden.event(&run)?.unwrap_or_else(|| run.event()))
    }

    /// The event, if only the last iterate of several steps is released.
    pub(crate) fn hidden_event(&self, defaults: &Defaults) -> Result<Option<Event>> {
        match self.json_event()? {
            Some(event) => Ok(Some(event).filter(|event| matches!(event, Event::HiddenState { .. }))),
            None => self.hidden.event(&self.run.with_defaults(defaults, self.relation)?),
        }
    }

    /// A description of the event, for titles.
    pub(crate) fn describe(&self, event: &Event, defaults: &Defaults) -> Result<String> {
        if let Event::HiddenState { steps, .. } = event {
            let plural = if *steps == 1 { "" } else { "s" };
            return Ok(format!("last iterate of {steps} step{plural}, {}", describe_step(event)));
        }
        if self.event.is_some() {
            return Ok(event.to_string());
        }
        let run = self.run.with_defaults(defaults, self.relation)?;
        let plural = if run.steps == 1 { "" } else { "s" };
        Ok(format!("{run}, {} step{plural}", run.steps))
    }
}

/// Describes one step of which the iterate stays hidden, for titles; other events by their names.
pub(crate) fn describe_step(event: &Event) -> String {
    let Event::HiddenState { noise_multiplier, contraction, diameter, .. } = event else {
        return event.to_string();
    };
    let domain = diameter.map_or_else(String::new, |d| format!(", diameter {}", format_exact(d.get())));
    format!(
        "Gaussian noise multiplier {}, contraction {}{domain}",
        format_exact(noise_multiplier.get()),
        format_exact(contraction.get())
    )
}

/// Largest event that is read, in bytes.
const MAX_EVENT_BYTES: u64 = 64 << 20;

/// The text of an event: the argument itself, a file, or standard input.
pub(crate) fn event_text(argument: &str) -> Result<String> {
    if argument == "-" {
        read(std::io::stdin().lock()).context("cannot read the event from standard input")
    } else if let Some(path) = argument.strip_prefix('@') {
        let file = std::fs::File::open(path).with_context(|| format!("cannot read the event from {path}"))?;
        read(file).with_context(|| format!("cannot read the event from {path}"))
    } else {
        Ok(argument.to_owned())
    }
}

fn read_event(argument: &str) -> Result<Event> {
    let text = event_text(argument)?;
    parse_event(&text).map_err(|error| {
        let hint = if argument.starts_with(['-', '@', '{', '"']) {
            r#"an event looks like {"repeated":{"count":100,"event":{"gaussian":{"noise_multiplier":2.0}}}}"#
        } else {
            "to read a file, put an @ before its name"
        };
        // A file may have been named by mistake: its contents stay where they are.
        let error = match argument.strip_prefix('@') {
            Some(_) => format!("line {}, column {} is no part of an event", error.line(), error.column()),
            None => error.to_string(),
        };
        Refusal::new(format!("the event cannot be read: {error}"), hint).into()
    })
}

fn read(from: impl Read) -> Result<String> {
    let mut text = String::new();
    from.take(MAX_EVENT_BYTES + 1).read_to_string(&mut text)?;
    anyhow::ensure!(text.len() as u64 <= MAX_EVENT_BYTES, "the event is longer than 64 MiB");
    Ok(text)
}

/// Parses a plain event, or a record, recognised by its version.
pub(crate) fn parse_event(text: &str) -> Result<Event, serde_json::Error> {
    let value: serde_json::Value = serde_json::from_str(text)?;
    if value.get("version").is_some() {
        Ok(serde_json::from_str::<Record>(text)?.event)
    } else {
        serde_json::from_str(text)
    }
}

/// Parses a positive whole number.
fn steps(text: &str) -> Result<u64, String> {
    parse_count(text).ok().filter(|steps| *steps > 0).ok_or_else(|| "expected a positive whole number".into())
}

/// An accountant by name, or all of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestedMethod {
    One(Method),
    All,
}

/// Parser for the names of accountants.
pub(crate) fn accountants() -> impl TypedValueParser<Value = RequestedMethod> {
    let names = Method::ALL.iter().map(|method| method.name()).chain(["all"]);
    PossibleValuesParser::new(names).map(|name| {
        Method::ALL
            .into_iter()
            .find(|method| method.name() == name)
            .map_or(RequestedMethod::All, RequestedMethod::One)
    })
}

/// The requested methods, without duplicates.
pub(crate) fn methods(requested: &[RequestedMethod]) -> Vec<Method> {
    if requested.contains(&RequestedMethod::All) {
        return Method::ALL.to_vec();
    }
    let mut methods = Vec::new();
    for request in requested {
        match request {
            RequestedMethod::One(method) if !methods.contains(method) => methods.push(*method),
            _ => {}
        }
    }
    methods
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_read_exactly_or_not_at_all() {
        for (text, number) in
            [("10000", 10_000), ("1e4", 10_000), ("10_000", 10_000), ("18446744073709551615", u64::MAX)]
        {
            assert_eq!(parse_count(text), Ok(number));
        }
        for text in ["1.5", "-1", "1e300", "NaN", "inf", "", "ten", "18446744073709551616"] {
            assert!(parse_count(text).is_err(), "{text}");
        }
        assert!(steps("0").is_err());
    }

    #[test]
    fn an_error_on_a_file_quotes_nothing_of_it() {
        let file = std::env::temp_dir().join(format!("quell-{}-names.json", std::process::id()));
        std::fs::write(&file, r#"{"Eve-4711": 1}"#).unwrap();
        let refused = read_event(&format!("@{}", file.display())).unwrap_err().to_string();
        std::fs::remove_file(&file).unwrap();
        assert!(!refused.contains("Eve") && refused.contains("line 1"), "{refused}");
    }

    #[test]
    fn a_bare_event_and_its_record_are_the_same_event() {
        let bare = r#"{"gaussian":{"noise_multiplier":2.0}}"#;
        let record = format!(r#"{{"version":1,"event":{bare}}}"#);
        assert_eq!(parse_event(bare).unwrap(), parse_event(&record).unwrap());
        assert!(parse_event(&record.replace('1', "2")).is_err());
        assert!(parse_event(&bare.replace("}}", r#","unknown":1}}"#)).is_err());
    }
}
