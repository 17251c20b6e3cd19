//! `quell account`: what an event costs.

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use quell_privacy::{
    Bound, Error, Event,
    accounting::{Answer, Method, Pld, TradeOff, best, closed},
    number::{Toward, given, rounded},
    units::{Delta, Probability},
};
use serde::Serialize;

use crate::{
    answer::{Entries, Extra, Interval},
    arguments::{Described, Format, Relation},
    print::{self, Progress},
    refusal::Refusal,
};

const EXAMPLES: &str = r#"Examples:
  quell account --noise-multiplier 1.1 --sampling-rate 0.01 --steps 10000 --delta 1e-5
  quell account --noise-multiplier 1.1 --batch-size 600 --records 60000 --steps 10000 --delta 1e-5 --accountant all
  quell account --noise laplace --noise-multiplier 2 --delta 1e-6 --attack --group 3
  quell account --noise-multiplier 2 --sampling without-replacement --batch-size 64 --records 5000 --steps 500 --neighbors replace --delta 1e-6
  quell account --event '{"zero_concentrated":{"rho":0.5}}' --delta 1e-5 --format json
  echo '{"version":1,"event":{"gaussian":{"noise_multiplier":2.0}}}' | quell account --event - --delta 1e-5"#;

/// What an event costs: ε at a given δ, as an interval, and what may be claimed
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    #[command(flatten)]
    described: Described,
    /// Chance that the guarantee fails
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: f64,
    /// Which accountant to ask, repeatable; without it, the best bound that may be claimed
    #[arg(long, value_name = "NAME", value_parser = accountants())]
    accountant: Vec<Asked>,
    /// Also: how well the best attack does at 1 % false positives
    #[arg(long)]
    attack: bool,
    /// Also: ε for groups of K records
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    group: Option<u32>,
    /// How the answer is written
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// An accountant by name, or all of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    One(Method),
    All,
}

/// The names of accountants.
pub(crate) fn accountants() -> impl TypedValueParser<Value = Asked> {
    let names = Method::ALL.iter().map(|method| method.name()).chain(["all"]);
    PossibleValuesParser::new(names)
        .map(|name| Method::ALL.into_iter().find(|method| method.name() == name).map_or(Asked::All, Asked::One))
}

/// The methods that were asked for, each once.
pub(crate) fn methods(asked: &[Asked]) -> Vec<Method> {
    if asked.contains(&Asked::All) {
        return Method::ALL.to_vec();
    }
    let mut methods = Vec::new();
    for asked in asked {
        match asked {
            Asked::One(method) if !methods.contains(method) => methods.push(*method),
            _ => {}
        }
    }
    methods
}

pub(crate) fn run(flags: &Flags) -> Result<()> {
    let delta = Delta::new(flags.delta)?;
    let event = flags.described.event(None)?;
    let report = Report::new(flags, &event, delta)?;
    match flags.format {
        Format::Text => print::data(&report.text(flags.described.relation)),
        Format::Json => print::json(&report.json()),
    }
}

/// ε of an event as the best theorem has it.
pub(crate) fn report_best(event: &Event, relation: Relation, delta: Delta, format: Format) -> Result<()> {
    let (method, answer) = best(event, relation.neighbors(), delta)?;
    let answers = vec![(method, Ok(answer))];
    let report = Report { delta, relation, best: Some(method), answers, attack: None, group: None };
    match format {
        Format::Text => print::data(&report.text(relation)),
        Format::Json => print::json(&report.json()),
    }
}

/// Everything that was asked, answered.
struct Report {
    delta: Delta,
    relation: Relation,
    /// The method that won, where none was named.
    best: Option<Method>,
    answers: Vec<(Method, Result<Answer, Error>)>,
    attack: Option<Result<Bound, Error>>,
    group: Option<(u32, Result<f64, Error>)>,
}

/// The false-positive rate at which attacks are compared.
const FALSE_POSITIVE_RATE: f64 = 0.01;

impl Report {
    fn new(flags: &Flags, event: &Event, delta: Delta) -> Result<Self> {
        let _progress = Progress::new("accounting", None);
        let (relation, neighbors) = (flags.described.relation, flags.described.relation.neighbors());
        let methods = methods(&flags.accountant);
        let (best, answers) = if methods.is_empty() {
            let (method, answer) = best(event, neighbors, delta)?;
            (Some(method), vec![(method, Ok(answer))])
        } else {
            (None, methods.into_iter().map(|method| (method, method.epsilon(event, neighbors, delta))).collect())
        };
        // With nobody left who answers, the first refusal is the answer.
        if answers.iter().all(|(_, answer)| answer.is_err())
            && let Some((_, Err(error))) = answers.first()
        {
            return Err(match error {
                Error::Unsupported { .. } => {
                    Refusal::new(error.to_string(), "leave out --accountant for the best bound there is").into()
                }
                other => other.clone().into(),
            });
        }
        let attack = flags.attack.then(|| {
            let rate = Probability::new(FALSE_POSITIVE_RATE)?;
            Ok(TradeOff::new(&Pld::default(), event, neighbors)?.power(rate))
        });
        let group = flags.group.map(|size| (size, closed::group_epsilon(&Pld::default(), event, neighbors, delta, size)));
        Ok(Self { delta, relation, best, answers, attack, group })
    }

    fn text(&self, relation: Relation) -> String {
        let mut rows = vec![["accountant", "ε lower", "ε upper", "theorem"].map(String::from).to_vec()];
        for (method, answer) in &self.answers {
            let name = method.name().to_owned();
            rows.push(match answer {
                Ok(Answer { epsilon, theorem, .. }) => vec![name, down(epsilon.lower), up(epsilon.upper), (*theorem).to_owned()],
                Err(error) => vec![name, no_answer(error)],
            });
        }
        let mut text = print::table(&rows, &[1, 2]);
        text.push_str(&self.claim(relation));
        if let Some(power) = &self.attack {
            text.push_str(&attack_sentence(power));
        }
        if let Some((size, epsilon)) = &self.group {
            text.push_str(&group_sentence(*size, epsilon, self.delta));
        }
        text
    }

    /// What may be said in public: the least upper bound that is one.
    fn claim(&self, relation: Relation) -> String {
        let claimable = self.answers.iter().filter_map(|(_, answer)| answer.as_ref().ok()).filter(|answer| answer.claimable);
        let least = claimable.map(|answer| answer.epsilon.upper).reduce(f64::min);
        let (delta, when) = (given(self.delta.get()), relation.when());
        match least {
            None => "claim: nothing, since none of these numbers is a bound\n".into(),
            Some(f64::INFINITY) => format!("claim: nothing, since no finite ε is known at δ = {delta} {when}\n"),
            Some(epsilon) => format!("claim: ε ≤ {} at δ = {delta} {when}\n", up(epsilon)),
        }
    }

    fn json(&self) -> impl Serialize + use<'_> {
        #[derive(Serialize)]
        struct Document<'a> {
            delta: Delta,
            neighbors: quell_privacy::Neighbors,
            #[serde(skip_serializing_if = "Option::is_none")]
            best: Option<&'static str>,
            accountants: Entries<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            attack: Option<Extra<Attack>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            group: Option<Extra<Group>>,
        }
        #[derive(Serialize)]
        struct Attack {
            false_positive_rate: f64,
            true_positive_rate: Interval,
        }
        #[derive(Serialize)]
        struct Group {
            size: u32,
            epsilon: Interval,
        }
        let attack = |power: Bound| Attack { false_positive_rate: FALSE_POSITIVE_RATE, true_positive_rate: Interval(power) };
        let group = |size, upper| Group { size, epsilon: Interval(Bound { lower: 0.0, upper }) };
        Document {
            delta: self.delta,
            neighbors: self.relation.neighbors(),
            best: self.best.map(Method::name),
            accountants: Entries(&self.answers),
            attack: self.attack.clone().map(|power| power.map(attack).into()),
            group: self.group.clone().map(|(size, epsilon)| epsilon.map(|upper| group(size, upper)).into()),
        }
    }
}

/// Significant digits in text.
const DIGITS: usize = 4;

fn up(value: f64) -> String {
    rounded(value, DIGITS, Toward::Up)
}

fn down(value: f64) -> String {
    rounded(value, DIGITS, Toward::Down)
}

/// A refusal, beside the name of the accountant that refused.
fn no_answer(error: &Error) -> String {
    match error {
        Error::Unsupported { event, because, .. } => format!("no theorem: {event} {because}"),
        other => format!("no answer: {other}"),
    }
}

fn attack_sentence(power: &Result<Bound, Error>) -> String {
    match power {
        Ok(power) => format!(
            "attack: at 1 % false positives no test recognises a record more than {} % of the time; the best one does at least {} % of the time\n",
            up(power.upper * 100.0),
            down(power.lower * 100.0),
        ),
        Err(error) => format!("attack: {}\n", no_answer(error)),
    }
}

fn group_sentence(size: u32, epsilon: &Result<f64, Error>, delta: Delta) -> String {
    match epsilon {
        Ok(epsilon) if epsilon.is_finite() => {
            format!("group: ε ≤ {} at δ = {} for groups of {size} records\n", up(*epsilon), given(delta.get()))
        }
        Ok(_) => format!("group: no finite ε is known at δ = {} for groups of {size} records\n", given(delta.get())),
        Err(error) => format!("group: {}\n", no_answer(error)),
    }
}
