//! `quell account`: the privacy cost of an event.

use anyhow::Result;
use quell_privacy::{
    Bound, Error, Event, Neighbors,
    accounting::{self, Method, Pld, TradeOff, best_by, best_delta_by, closed},
    number::{Toward, format_exact, format_rounded},
    units::{Delta, Epsilon, Probability},
};
use quell_report::Interval;
use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::{
    flags::{
        Format,
        event::{Described, Relation, RequestedMethod, accountants, methods},
    },
    hint, print,
    progress::Bar,
    refusal::Refusal,
};

const EXAMPLES: &str = r#"Examples:
  quell account --noise-multiplier 1.1 --sampling-rate 0.01 --steps 10000 --delta 1e-5
  quell account --noise-multiplier 1.1 --sampling-rate 0.01 --steps 10000 --epsilon 4 --tightness 1e-5
  quell account --noise-multiplier 1.1 --batch-size 600 --records 60000 --steps 10000 --delta 1e-5 --accountant all
  quell account --noise laplace --noise-multiplier 2 --delta 1e-6 --attack --group 3
  quell account --noise-multiplier 2 --sampling without-replacement --batch-size 64 --records 5000 --steps 500 --neighbors replace --delta 1e-6
  quell account --noise-multiplier 20 --contraction 0.99 --steps 100000 --delta 1e-6
  quell account --event '{"zero_concentrated":{"rho":0.5}}' --delta 1e-5 --format json
  echo '{"version":1,"event":{"gaussian":{"noise_multiplier":2.0}}}' | quell account --event - --delta 1e-5"#;

/// Compute the privacy cost of an event: its ε or its δ
///
/// With --delta, the answer is ε. With --epsilon, the answer is δ. The answer is an interval that contains
/// the true value; only the upper end may be claimed. Exit code 1 means that no finite ε (or no δ below one)
/// is known.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Flags {
    #[command(flatten)]
    described: Described,
    /// δ of the guarantee; the answer is ε
    #[arg(
        long,
        value_name = "D",
        allow_negative_numbers = true,
        required_unless_present = "epsilon",
        conflicts_with = "epsilon"
    )]
    delta: Option<f64>,
    /// ε of the guarantee; the answer is δ
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// Width of the interval of the PLD accountant, relative to the answer
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    tightness: Option<f64>,
    /// Accountant to use; may be repeated (the one with the best bound if not given)
    #[arg(long, value_name = "NAME", value_parser = accountants())]
    accountant: Vec<RequestedMethod>,
    /// Also compute the true-positive rate of the best attack at 1 % false positives
    #[arg(long)]
    attack: bool,
    /// Also compute ε for groups of K records
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "epsilon")]
    group: Option<u32>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub(crate) fn run(flags: &Flags) -> Result<bool> {
    let question = match (flags.delta, flags.epsilon) {
        (Some(delta), _) => Question::Epsilon(Delta::new(delta)?),
        (None, Some(epsilon)) => Question::Delta(Epsilon::new(epsilon)?),
        (None, None) => {
            return Err(Refusal::new(
                "neither δ nor ε is given, expected one of them",
                "give --delta or --epsilon",
            )
            .into());
        }
    };
    let pld = precision(flags.tightness)?;
    let event = flags.described.event(None)?;
    let report = Report::new(flags, &event, question, &pld)?;
    if let Some(tightness) = flags.tightness
        && report.is_wider_than(&pld)
    {
        print::status(&format!(
            "note: the interval is wider than --tightness {}, because of memory or rounding limits",
            format_exact(tightness)
        ));
    }
    report.print(flags.format)
}

/// The PLD accountant with the requested precision.
fn precision(tightness: Option<f64>) -> Result<Pld> {
    let Some(relative) = tightness else { return Ok(Pld::default()) };
    if !(1e-9..=0.5).contains(&relative) {
        return Err(Error::OutOfRange { what: "tightness", value: relative, range: "[1e-9, 0.5]" }.into());
    }
    // The default has the same ratio of absolute and relative precision.
    Ok(Pld { relative, absolute: 0.1 * relative, ..Pld::default() })
}

/// Reports the best known ε of an event.
pub(crate) fn report_best(event: &Event, relation: Relation, delta: Delta, format: Format) -> Result<bool> {
    let question = Question::Epsilon(delta);
    let (method, answer) = question.best(&Pld::default(), event, relation.neighbors())?;
    let answers = vec![(method, Ok(answer))];
    Report { question, relation, best: Some(method), answers, attack: None, group: None }.print(format)
}

/// The quantity to compute.
#[derive(Clone, Copy)]
enum Question {
    /// ε at this δ.
    Epsilon(Delta),
    /// δ at this ε.
    Delta(Epsilon),
}

impl Question {
    fn answer(
        self,
        method: Method,
        pld: &Pld,
        event: &Event,
        neighbors: Neighbors,
    ) -> Result<MethodAnswer, Error> {
        match self {
            Self::Epsilon(delta) => Ok(method.epsilon_by(pld, event, neighbors, delta)?.into()),
            Self::Delta(epsilon) => Ok(method.delta_by(pld, event, neighbors, epsilon)?.into()),
        }
    }

    fn best(self, pld: &Pld, event: &Event, neighbors: Neighbors) -> Result<(Method, MethodAnswer), Error> {
        match self {
            Self::Epsilon(delta) => {
                best_by(pld, event, neighbors, delta).map(|(method, answer)| (method, answer.into()))
            }
            Self::Delta(epsilon) => {
                best_delta_by(pld, event, neighbors, epsilon).map(|(method, answer)| (method, answer.into()))
            }
        }
    }

    /// The symbol of the quantity.
    fn symbol(self) -> &'static str {
        match self {
            Self::Epsilon(_) => "ε",
            Self::Delta(_) => "δ",
        }
    }

    /// The given quantity and its value.
    fn condition(self) -> String {
        match self {
            Self::Epsilon(delta) => format!("δ = {}", format_exact(delta.get())),
            Self::Delta(epsilon) => format!("ε = {}", format_exact(epsilon.get())),
        }
    }

    /// Whether a bound guarantees nothing.
    fn is_vacuous(self, upper: f64) -> bool {
        match self {
            Self::Epsilon(_) => upper == f64::INFINITY,
            Self::Delta(_) => upper >= 1.0,
        }
    }
}

/// The ε or δ computed by one accountant.
#[derive(Clone, Copy)]
struct MethodAnswer {
    /// `epsilon` or `delta`.
    what: &'static str,
    bound: Bound,
    theorem: &'static str,
    /// False for estimates, which must not be claimed.
    claimable: bool,
}

impl From<accounting::Answer> for MethodAnswer {
    fn from(answer: accounting::Answer) -> Self {
        Self { what: "epsilon", bound: answer.epsilon, theorem: answer.theorem, claimable: answer.claimable }
    }
}

impl From<accounting::DeltaAnswer> for MethodAnswer {
    fn from(answer: accounting::DeltaAnswer) -> Self {
        Self { what: "delta", bound: answer.delta, theorem: answer.theorem, claimable: answer.claimable }
    }
}

impl Serialize for MethodAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry(self.what, &Interval(self.bound))?;
        map.serialize_entry("theorem", self.theorem)?;
        map.serialize_entry("claimable", &self.claimable)?;
        map.end()
    }
}

/// Answers of several accountants by name, in the order of the request.
struct Entries<'a>(&'a [(Method, Result<MethodAnswer, Error>)]);

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (method, answer) in self.0 {
            map.serialize_entry(method.name(), &Extra::from(answer.clone()))?;
        }
        map.end()
    }
}

/// An additional result: its value, or the reason why there is none.
#[derive(Serialize)]
#[serde(untagged)]
enum Extra<T> {
    Value(T),
    Refused { error: String },
}

impl<T> From<Result<T, Error>> for Extra<T> {
    fn from(result: Result<T, Error>) -> Self {
        match result {
            Ok(value) => Self::Value(value),
            Err(error) => Self::Refused { error: error.to_string() },
        }
    }
}

/// All answers to one request.
struct Report {
    question: Question,
    relation: Relation,
    /// The best method, if none was requested.
    best: Option<Method>,
    answers: Vec<(Method, Result<MethodAnswer, Error>)>,
    attack: Option<Result<Bound, Error>>,
    group: Option<(u32, Result<f64, Error>)>,
}

/// The false-positive rate at which attacks are compared.
const FALSE_POSITIVE_RATE: f64 = 0.01;

impl Report {
    fn new(flags: &Flags, event: &Event, question: Question, pld: &Pld) -> Result<Self> {
        let _progress = Bar::spinner("accounting");
        let (relation, neighbors) = (flags.described.relation, flags.described.relation.neighbors());
        let methods = methods(&flags.accountant);
        let (best, answers) = if methods.is_empty() {
            let (method, answer) = question.best(pld, event, neighbors).map_err(hint::for_unsupported)?;
            (Some(method), vec![(method, Ok(answer))])
        } else {
            (
                None,
                methods
                    .into_iter()
                    .map(|method| (method, question.answer(method, pld, event, neighbors)))
                    .collect(),
            )
        };
        // If no accountant has an answer, report the first refusal.
        if answers.iter().all(|(_, answer)| answer.is_err())
            && let Some((_, Err(error))) = answers.first()
        {
            return Err(match error {
                Error::Unsupported { .. } => {
                    Refusal::new(error.to_string(), "leave out --accountant for the best known bound").into()
                }
                other => other.clone().into(),
            });
        }
        let attack = flags.attack.then(|| {
            let rate = Probability::new(FALSE_POSITIVE_RATE)?;
            Ok(TradeOff::new(pld, event, neighbors)?.power(rate))
        });
        let group = match (flags.group, question) {
            (Some(size), Question::Epsilon(delta)) => {
                Some((size, closed::group_epsilon(pld, event, neighbors, delta, size)))
            }
            _ => None,
        };
        Ok(Self { question, relation, best, answers, attack, group })
    }

    /// Prints the report; returns false if no informative bound is known.
    fn print(&self, format: Format) -> Result<bool> {
        match format {
            Format::Text => print::lines(&self.text())?,
            Format::Json => print::json(&self.json())?,
        }
        let least = |claimable: bool| {
            let bounds = self
                .successful()
                .filter(|answer| answer.claimable == claimable)
                .map(|answer| answer.bound.upper);
            bounds.reduce(f64::min)
        };
        Ok(!least(true).or_else(|| least(false)).is_some_and(|upper| self.question.is_vacuous(upper)))
    }

    fn successful(&self) -> impl Iterator<Item = &MethodAnswer> {
        self.answers.iter().filter_map(|(_, answer)| answer.as_ref().ok())
    }

    /// Whether the PLD accountant gave a wider interval than requested.
    fn is_wider_than(&self, pld: &Pld) -> bool {
        let wide = |answer: &MethodAnswer| {
            answer.bound.upper - answer.bound.lower > (pld.relative * answer.bound.upper).max(pld.absolute)
        };
        let by_pld = self.answers.iter().filter(|(method, _)| *method == Method::Pld);
        by_pld.filter_map(|(_, answer)| answer.as_ref().ok()).any(wide)
    }

    fn text(&self) -> String {
        let symbol = self.question.symbol();
        let heads = [
            "accountant".to_owned(),
            format!("{symbol} lower"),
            format!("{symbol} upper"),
            "theorem".to_owned(),
        ];
        let mut rows = vec![heads.to_vec()];
        for (method, answer) in &self.answers {
            let name = method.name().to_owned();
            rows.push(match answer {
                Ok(MethodAnswer { bound, theorem, .. }) => {
                    vec![name, down(bound.lower), up(bound.upper), (*theorem).to_owned()]
                }
                Err(error) => vec![name, no_answer(error)],
            });
        }
        let mut text = print::table(&rows, &[1, 2]);
        text.push_str(&self.claim());
        if let Some(power) = &self.attack {
            text.push_str(&attack_sentence(power));
        }
        if let (Some((size, epsilon)), Question::Epsilon(delta)) = (&self.group, self.question) {
            text.push_str(&group_sentence(*size, epsilon, delta));
        }
        text
    }

    /// The claim: the smallest upper bound that is proven.
    fn claim(&self) -> String {
        let least = self
            .successful()
            .filter(|answer| answer.claimable)
            .map(|answer| answer.bound.upper)
            .reduce(f64::min);
        let (symbol, condition, when) =
            (self.question.symbol(), self.question.condition(), self.relation.when());
        match (least, self.question) {
            (None, _) => "claim: nothing, because all of these numbers are estimates\n".into(),
            (Some(f64::INFINITY), Question::Epsilon(_)) => {
                format!("claim: nothing, because no finite ε is known at {condition} {when}\n")
            }
            (Some(1.0..), Question::Delta(_)) => {
                format!("claim: nothing, because no δ below one is known at {condition} {when}\n")
            }
            (Some(upper), _) => format!("claim: {symbol} ≤ {} at {condition} {when}\n", up(upper)),
        }
    }

    fn json(&self) -> impl Serialize + use<'_> {
        #[derive(Serialize)]
        struct Document<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            delta: Option<Delta>,
            #[serde(skip_serializing_if = "Option::is_none")]
            epsilon: Option<Epsilon>,
            neighbors: Neighbors,
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
        let attack = |power: Bound| Attack {
            false_positive_rate: FALSE_POSITIVE_RATE,
            true_positive_rate: Interval(power),
        };
        let group = |size, upper| Group { size, epsilon: Interval(Bound { lower: 0.0, upper }) };
        let (delta, epsilon) = match self.question {
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
    format_rounded(value, DIGITS, Toward::Up)
}

fn down(value: f64) -> String {
    format_rounded(value, DIGITS, Toward::Down)
}

/// The refusal of an accountant, for its row of the table.
fn no_answer(error: &Error) -> String {
    match error {
        Error::Unsupported { event, because, .. } => format!("no theorem: {event} {because}"),
        other => format!("no answer: {other}"),
    }
}

fn attack_sentence(power: &Result<Bound, Error>) -> String {
    match power {
        Ok(power) => format!(
            "attack: at a false-positive rate of 1 %, the best membership test has a true-positive rate between {} % and {} %\n",
            down(power.lower * 100.0),
            up(power.upper * 100.0),
        ),
        Err(error) => format!("attack: {}\n", no_answer(error)),
    }
}

fn group_sentence(size: u32, epsilon: &Result<f64, Error>, delta: Delta) -> String {
    match epsilon {
        Ok(epsilon) if epsilon.is_finite() => {
            format!(
                "group: ε ≤ {} at δ = {} for groups of {size} records\n",
                up(*epsilon),
                format_exact(delta.get())
            )
        }
        Ok(_) => format!(
            "group: no finite ε is known at δ = {} for groups of {size} records\n",
            format_exact(delta.get())
        ),
        Err(error) => format!("group: {}\n", no_answer(error)),
    }
}
