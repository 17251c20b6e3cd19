//! `quell account`: what an event costs.

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use quell_privacy::{
    Bound, Error, Event, Neighbors,
    accounting::{Method, Pld, TradeOff, best_by, best_delta_by, closed},
    number::{Toward, given, rounded},
    units::{Delta, Epsilon, Probability},
};
use serde::Serialize;

use crate::{
    answer::{Entries, Extra, Interval, Said},
    arguments::{Described, Format, Relation},
    print::{self, Progress},
    refusal::Refusal,
};

const EXAMPLES: &str = r#"Examples:
  quell account --noise-multiplier 1.1 --sampling-rate 0.01 --steps 10000 --delta 1e-5
  quell account --noise-multiplier 1.1 --sampling-rate 0.01 --steps 10000 --epsilon 4 --tightness 1e-5
  quell account --noise-multiplier 1.1 --batch-size 600 --records 60000 --steps 10000 --delta 1e-5 --accountant all
  quell account --noise laplace --noise-multiplier 2 --delta 1e-6 --attack --group 3
  quell account --noise-multiplier 2 --sampling without-replacement --batch-size 64 --records 5000 --steps 500 --neighbors replace --delta 1e-6
  quell account --event '{"zero_concentrated":{"rho":0.5}}' --delta 1e-5 --format json
  echo '{"version":1,"event":{"gaussian":{"noise_multiplier":2.0}}}' | quell account --event - --delta 1e-5"#;

/// What an event costs: ε at a given δ, or δ at a given ε, as an interval, and what may be claimed
///
/// Exit code 1 says that no finite ε (or no δ below one) is known.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    #[command(flatten)]
    described: Described,
    /// Chance that the guarantee fails; the answer is ε
    #[arg(
        long,
        value_name = "D",
        allow_negative_numbers = true,
        required_unless_present = "epsilon",
        conflicts_with = "epsilon"
    )]
    delta: Option<f64>,
    /// Privacy loss; the answer is δ
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// How narrow the interval of the PLD accountant shall be, as a fraction of the answer
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    tightness: Option<f64>,
    /// Which accountant to ask, repeatable; without it, the best bound that may be claimed
    #[arg(long, value_name = "NAME", value_parser = accountants())]
    accountant: Vec<Asked>,
    /// Also: how well the best attack does at 1 % false positives
    #[arg(long)]
    attack: bool,
    /// Also: ε for groups of K records
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "epsilon")]
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

pub(crate) fn run(flags: &Flags) -> Result<bool> {
    let asked = match (flags.delta, flags.epsilon) {
        (Some(delta), _) => Question::Epsilon(Delta::new(delta)?),
        (None, Some(epsilon)) => Question::Delta(Epsilon::new(epsilon)?),
        (None, None) => return Err(Refusal::new("neither δ nor ε is given, expected one", "give --delta or --epsilon").into()),
    };
    let pld = precision(flags.tightness)?;
    let event = flags.described.event(None)?;
    let report = Report::new(flags, &event, asked, &pld)?;
    if let Some(tightness) = flags.tightness
        && report.is_wider_than(&pld)
    {
        print::note(&format!(
            "note: the interval is wider than a fraction of {}, which memory or rounding does not allow",
            given(tightness)
        ));
    }
    report.print(flags.format)
}

/// The PLD accountant as precise as asked.
fn precision(tightness: Option<f64>) -> Result<Pld> {
    let Some(relative) = tightness else { return Ok(Pld::default()) };
    if !(1e-9..=0.5).contains(&relative) {
        return Err(Error::OutOfRange { what: "tightness", value: relative, range: "[1e-9, 0.5]" }.into());
    }
    // The default has the same proportions.
    Ok(Pld { relative, absolute: 0.1 * relative, ..Pld::default() })
}

/// ε of an event as the best theorem has it.
pub(crate) fn report_best(event: &Event, relation: Relation, delta: Delta, format: Format) -> Result<bool> {
    let asked = Question::Epsilon(delta);
    let (method, answer) = asked.best(&Pld::default(), event, relation.neighbors())?;
    let answers = vec![(method, Ok(answer))];
    Report { asked, relation, best: Some(method), answers, attack: None, group: None }.print(format)
}

/// What is asked.
#[derive(Clone, Copy)]
enum Question {
    /// ε at this δ.
    Epsilon(Delta),
    /// δ at this ε.
    Delta(Epsilon),
}

impl Question {
    fn ask(self, method: Method, pld: &Pld, event: &Event, neighbors: Neighbors) -> Result<Said, Error> {
        match self {
            Self::Epsilon(delta) => Ok(method.epsilon_by(pld, event, neighbors, delta)?.into()),
            Self::Delta(epsilon) => Ok(method.delta_by(pld, event, neighbors, epsilon)?.into()),
        }
    }

    fn best(self, pld: &Pld, event: &Event, neighbors: Neighbors) -> Result<(Method, Said), Error> {
        match self {
            Self::Epsilon(delta) => best_by(pld, event, neighbors, delta).map(|(method, answer)| (method, answer.into())),
            Self::Delta(epsilon) => best_delta_by(pld, event, neighbors, epsilon).map(|(method, answer)| (method, answer.into())),
        }
    }

    /// The sign of what is asked for.
    fn sign(self) -> &'static str {
        match self {
            Self::Epsilon(_) => "ε",
            Self::Delta(_) => "δ",
        }
    }

    /// What is given, in words.
    fn given(self) -> String {
        match self {
            Self::Epsilon(delta) => format!("δ = {}", given(delta.get())),
            Self::Delta(epsilon) => format!("ε = {}", given(epsilon.get())),
        }
    }

    /// Whether a bound says nothing.
    fn is_nothing(self, upper: f64) -> bool {
        match self {
            Self::Epsilon(_) => upper == f64::INFINITY,
            Self::Delta(_) => upper >= 1.0,
        }
    }
}

/// Everything that was asked, answered.
struct Report {
    asked: Question,
    relation: Relation,
    /// The method that won, where none was named.
    best: Option<Method>,
    answers: Vec<(Method, Result<Said, Error>)>,
    attack: Option<Result<Bound, Error>>,
    group: Option<(u32, Result<f64, Error>)>,
}

/// The false-positive rate at which attacks are compared.
const FALSE_POSITIVE_RATE: f64 = 0.01;

impl Report {
    fn new(flags: &Flags, event: &Event, asked: Question, pld: &Pld) -> Result<Self> {
        let _progress = Progress::new("accounting", None);
        let (relation, neighbors) = (flags.described.relation, flags.described.relation.neighbors());
        let methods = methods(&flags.accountant);
        let (best, answers) = if methods.is_empty() {
            let (method, answer) = asked.best(pld, event, neighbors).map_err(hinted)?;
            (Some(method), vec![(method, Ok(answer))])
        } else {
            (None, methods.into_iter().map(|method| (method, asked.ask(method, pld, event, neighbors))).collect())
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
            Ok(TradeOff::new(pld, event, neighbors)?.power(rate))
        });
        let group = match (flags.group, asked) {
            (Some(size), Question::Epsilon(delta)) => Some((size, closed::group_epsilon(pld, event, neighbors, delta, size))),
            _ => None,
        };
        Ok(Self { asked, relation, best, answers, attack, group })
    }

    /// Prints it; false if nothing finite is known.
    fn print(&self, format: Format) -> Result<bool> {
        match format {
            Format::Text => print::data(&self.text(self.relation))?,
            Format::Json => print::json(&self.json())?,
        }
        let least = |claimable: bool| {
            let said = self.said().filter(|said| said.claimable == claimable).map(|said| said.bound.upper);
            said.reduce(f64::min)
        };
        Ok(!least(true).or_else(|| least(false)).is_some_and(|upper| self.asked.is_nothing(upper)))
    }

    fn said(&self) -> impl Iterator<Item = &Said> {
        self.answers.iter().filter_map(|(_, answer)| answer.as_ref().ok())
    }

    /// Whether privacy loss distributions gave a wider interval than they were asked for.
    fn is_wider_than(&self, pld: &Pld) -> bool {
        let wide = |said: &Said| said.bound.upper - said.bound.lower > (pld.relative * said.bound.upper).max(pld.absolute);
        let by_pld = self.answers.iter().filter(|(method, _)| *method == Method::Pld);
        by_pld.filter_map(|(_, answer)| answer.as_ref().ok()).any(wide)
    }

    fn text(&self, relation: Relation) -> String {
        let sign = self.asked.sign();
        let heads = ["accountant".to_owned(), format!("{sign} lower"), format!("{sign} upper"), "theorem".to_owned()];
        let mut rows = vec![heads.to_vec()];
        for (method, answer) in &self.answers {
            let name = method.name().to_owned();
            rows.push(match answer {
                Ok(Said { bound, theorem, .. }) => vec![name, down(bound.lower), up(bound.upper), (*theorem).to_owned()],
                Err(error) => vec![name, no_answer(error)],
            });
        }
        let mut text = print::table(&rows, &[1, 2]);
        text.push_str(&self.claim(relation));
        if let Some(power) = &self.attack {
            text.push_str(&attack_sentence(power));
        }
        if let (Some((size, epsilon)), Question::Epsilon(delta)) = (&self.group, self.asked) {
            text.push_str(&group_sentence(*size, epsilon, delta));
        }
        text
    }

    /// What may be said in public: the least upper bound that is one.
    fn claim(&self, relation: Relation) -> String {
        let least = self.said().filter(|said| said.claimable).map(|said| said.bound.upper).reduce(f64::min);
        let (sign, known, when) = (self.asked.sign(), self.asked.given(), relation.when());
        match (least, self.asked) {
            (None, _) => "claim: nothing, since none of these numbers is a bound\n".into(),
            (Some(f64::INFINITY), Question::Epsilon(_)) => {
                format!("claim: nothing, since no finite ε is known at {known} {when}\n")
            }
            (Some(1.0..), Question::Delta(_)) => format!("claim: nothing, since no δ below one is known at {known} {when}\n"),
            (Some(upper), _) => format!("claim: {sign} ≤ {} at {known} {when}\n", up(upper)),
        }
    }

    fn json(&self) -> impl Serialize + use<'_> {
        #[derive(Serialize)]
        struct Document<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            delta: Option<Delta>,
            #[serde(skip_serializing_if = "Option::is_none")]
            epsilon: Option<Epsilon>,
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
        let (delta, epsilon) = match self.asked {
            Question::Epsilon(delta) => (Some(delta), None),
            Question::Delta(epsilon) => (None, Some(epsilon)),
        };
        Document {
            delta,
            epsilon,
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

/// Where nobody has a theorem: what can be done about it.
pub(crate) fn hinted(error: Error) -> anyhow::Error {
    match &error {
        Error::Unsupported { because, .. } if because.contains("use replace") => {
            Refusal::new(error.to_string(), "add --neighbors replace").into()
        }
        Error::Unsupported { .. } => {
            let hint = "describe the release by what is known of it, as pure, approximate, zero_concentrated or renyi";
            Refusal::new(error.to_string(), hint).into()
        }
        _ => error.into(),
    }
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
