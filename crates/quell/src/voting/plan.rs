//! The plan of a vote: what is asked, with which noise, at which cost.

use quell_privacy::{
    Bound, Neighbors,
    ledger::{Book, Ledger, Unit},
    mechanism::{Answer, Form, Mechanism, Poll, Rule, Screening, StableMax, Survey, Voters},
    units::{Delta, NoiseMultiplier, Scale},
};

use super::{Aggregation, Aggregator, Recipe, pate::Ballots};
use crate::{Error, Input};

/// The public facts about a vote.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Election {
    /// The number of classes.
    pub candidates: usize,
    /// The kind of voters.
    pub voters: Voters,
    /// The number of ballots on each question.
    pub ballots: u32,
    /// The number of questions.
    pub questions: u32,
}

/// Everything that is fixed before the first ballot is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// The mechanism that is paid for.
    pub aggregation: Aggregation,
    /// The neighbouring relation.
    pub neighbors: Neighbors,
    /// δ of the guarantee.
    pub delta: Delta,
    /// ε of the plan, as an interval.
    pub epsilon: Bound,
}

/// Default ε and δ.
const EPSILON: f64 = 2.0;
const DELTA: f64 = 1e-5;

/// Default noise on the counts, as a share of all ballots.
/// Used if the settings do not say how many answers are wanted.
const SHARE_OF_BALLOTS: f64 = 0.16;

/// Default noise on numbers: on a mean, a twentieth of the distance of the bounds.
const SHARE_OF_NUMBERS: f64 = 0.05;

/// Default screening: noise on the largest count over noise on the counts, and the threshold.
/// The threshold is the share of the ballots that the largest count must reach.
const SCREENING: f64 = 2.5;
const THRESHOLD: f64 = 0.6;

/// The largest number of rounds of a plan. A killed run loses its current round.
const ROUNDS: u32 = 16;

/// The default number of unstable winners.
const UNSTABLE: u32 = 8;

/// The share of δ for winners that noise takes for stable.
/// The ledger sets aside a slightly larger share.
const MISTAKEN: f64 = 1e-4;

impl Plan {
    /// Pays for all answers and asks the questions in their order.
    /// Returns `None` where an answer was refused.
    ///
    /// This method is for ballots in memory. [`External`](crate::run::labels::External) keeps its answers in
    /// a folder.
    ///
    /// # Contract
    /// One `unit`, a record or a user, influences the ballots of one teacher only.
    pub fn answer<B: Book>(
        &self,
        ballots: &Ballots,
        unit: Unit,
        ledger: &mut Ledger<B>,
    ) -> Result<Vec<Option<usize>>, Error> {
        let Aggregation::Polls(poll, rounds) = self.aggregation else {
            return Err(Error::Setting {
                name: "aggregator",
                found: if let Aggregation::Stable(_) = self.aggregation { "stable" } else { "a survey" }
                    .into(),
                expected: "an aggregator with polls",
            });
        };
        let terms = ledger.state()?.terms();
        if terms.neighbors != self.neighbors || terms.unit != unit {
            return Err(Error::OtherTerms { dataset: terms.dataset.clone() });
        }
        let mut answers = Vec::new();
        for paid in ledger.reserve(poll, rounds)? {
            let mut polling = paid?.run()?;
            while polling.is_open() && answers.len() < ballots.questions() {
                match polling.ask(&ballots.votes(answers.len()), &[])? {
                    Answer::Winner(class) => answers.push(Some(class)),
                    Answer::Refused => answers.push(None),
                    Answer::Exhausted => break,
                }
            }
        }
        Ok(answers)
    }
}

impl Recipe {
    /// Makes a plan with all defaults filled in. Nothing is paid yet.
    pub fn plan(&self, facts: &Election) -> Result<Plan, Error> {
        let delta = Delta::new(self.delta.unwrap_or(DELTA))?;
        self.check(facts)?;
        if self.aggregator == Aggregator::Stable {
            return self.stable(facts, delta);
        }
        let usual = SHARE_OF_BALLOTS * f64::from(facts.ballots);
        self.fill(facts.questions, usual, delta, |deviation, answers| self.polls(facts, deviation, answers))
    }

    /// Makes a plan for teachers who name labels or give numbers.
    pub fn survey(&self, form: Form, teachers: u32, questions: u32) -> Result<Plan, Error> {
        let delta = Delta::new(self.delta.unwrap_or(DELTA))?;
        if self.aggregator != Aggregator::Gaussian || self.reveal {
            let (name, found, expected) = if self.reveal {
                ("reveal", "true".into(), "false, where teachers vote on labels or numbers")
            } else {
                let expected = "gaussian, where teachers vote on labels or numbers";
                ("aggregator", format!("{:?}", self.aggregator), expected)
            };
            return Err(Error::Setting { name, found, expected });
        }
        let (candidates, share) = match form {
            Form::Labels { labels, .. } => (labels, SHARE_OF_BALLOTS),
            Form::Number(_) => (1, SHARE_OF_NUMBERS),
        };
        self.check(&Election { candidates, voters: Voters::Teachers, ballots: teachers, questions })?;
        self.fill(questions, share * f64::from(teachers), delta, |deviation, answers| {
            let (questions, rounds) = in_rounds(answers);
            let survey = Survey { form, teachers, deviation: NoiseMultiplier::new(deviation)?, questions };
            survey.check(self.neighbors)?;
            Ok(Aggregation::Surveys(survey, rounds.into()))
        })
    }

    /// Computes the one of ε, noise and answers that is omitted.
    fn fill(
        &self,
        questions: u32,
        usual: f64,
        delta: Delta,
        aggregation: impl Fn(f64, u32) -> Result<Aggregation, Error>,
    ) -> Result<Plan, Error> {
        let neighbors = self.neighbors;
        let wanted = self.epsilon.unwrap_or(EPSILON);
        let fits = |deviation: f64, answers: u32| {
            Ok::<_, Error>(aggregation(deviation, answers)?.upper(neighbors, delta)? <= wanted)
        };
        let (deviation, answers) = match (self.deviation, self.answers) {
            (Some(deviation), Some(answers)) => (deviation, answers),
            (None, Some(answers)) => {
                (least_deviation(answers, |deviation| fits(deviation, answers))?, answers)
            }
            (deviation, None) => {
                let deviation = deviation.unwrap_or(usual);
                (deviation, most_answers(questions, wanted, |answers| fits(deviation, answers))?)
            }
        };
        let aggregation = aggregation(deviation, answers)?;
        let epsilon = self.within(aggregation.epsilon(neighbors, delta)?)?;
        Ok(Plan { aggregation, neighbors, delta, epsilon })
    }

    /// Refuses a plan that costs more than the requested ε.
    fn within(&self, epsilon: Bound) -> Result<Bound, Error> {
        if let Some(wanted) = self.epsilon.filter(|wanted| epsilon.upper > *wanted) {
            let found = format!("{wanted}, and these answers with this noise cost {}", epsilon.upper);
            return Err(Error::Setting {
                name: "epsilon",
                found,
                expected: "at least as much; or omit noise or answers",
            });
        }
        Ok(epsilon)
    }

    fn check(&self, facts: &Election) -> Result<(), Error> {
        let wrong = |name: &'static str, found: String, expected: &'static str| {
            Err(Error::Setting { name, found, expected })
        };
        if facts.questions == 0 {
            return Err(Error::Missing { what: Input::Questions });
        }
        if facts.ballots == 0 {
            return wrong("voters", "0".into(), "at least one teacher or neighbour");
        }
        if let Some(answers) = self.answers.filter(|answers| !(1..=facts.questions).contains(answers)) {
            return wrong(
                "answers",
                answers.to_string(),
                "at least 1 and at most as many as there are questions",
            );
        }
        if let Some(epsilon) = self.epsilon.filter(|epsilon| !(epsilon.is_finite() && *epsilon > 0.0)) {
            return wrong("epsilon", epsilon.to_string(), "a positive number");
        }
        if let Some(share) = self.threshold.filter(|share| !(-1.0..=1.0).contains(share)) {
            return wrong("threshold", share.to_string(), "a share of the ballots, in [-1, 1]");
        }
        if let (Voters::Nearest { .. }, Aggregator::Laplace | Aggregator::Interactive | Aggregator::Stable) =
            (facts.voters, self.aggregator)
        {
            return wrong(
                "aggregator",
                format!("{:?}", self.aggregator).to_lowercase(),
                "gaussian or confident, where the nearest records vote",
            );
        }
        Ok(())
    }

    /// The number of questions that may be asked for `answers` answers.
    fn questions(&self, facts: &Election, answers: u32) -> u32 {
        let usual = if self.aggregator.screens() { answers.saturating_add(answers / 2) } else { answers };
        self.questions.unwrap_or(usual).clamp(answers, facts.questions.max(answers))
    }

    fn polls(&self, facts: &Election, deviation: f64, answers: u32) -> Result<Aggregation, Error> {
        let screening = self.aggregator.screens().then(|| {
            let deviation = NoiseMultiplier::new(self.screening_deviation.unwrap_or(SCREENING * deviation))?;
            let threshold = (self.threshold.unwrap_or(THRESHOLD) * f64::from(facts.ballots)).round() as i64;
            Ok::<_, Error>(Screening { threshold, deviation })
        });
        let rule = match self.aggregator {
            Aggregator::Laplace => Rule::Laplace(Scale::new(deviation)?),
            _ => Rule::Gaussian(NoiseMultiplier::new(deviation)?),
        };
        let (answers_each, rounds) = in_rounds(answers);
        let poll = Poll {
            candidates: facts.candidates,
            voters: facts.voters,
            screening: screening.transpose()?,
            rule,
            questions: self.questions(facts, answers).div_ceil(rounds),
            answers: answers_each,
        };
        poll.check(self.neighbors)?;
        Ok(Aggregation::Polls(poll, rounds.into()))
    }

    /// Plans stable winners at this ε: the least noise, and its threshold.
    /// If only the noise is given, ε is the cost of that noise.
    fn stable(&self, facts: &Election, delta: Delta) -> Result<Plan, Error> {
        let neighbors = self.neighbors;
        let unstable = self.unstable.unwrap_or(UNSTABLE).max(1);
        let wanted = self.epsilon.unwrap_or(EPSILON);
        let make = |deviation: f64, wanted: f64| {
            let asked = f64::from(facts.questions) * f64::from(unstable);
            let mistaken = MISTAKEN * delta.get() / (1.0 + wanted.exp());
            let threshold = (2.0 * deviation * (asked / mistaken).ln().sqrt()).ceil();
            let deviation = Scale::new(deviation)?;
            let (candidates, questions) = (facts.candidates, facts.questions);
            Ok::<_, Error>(StableMax {
                candidates,
                threshold: threshold as u32,
                unstable,
                questions,
                deviation,
            })
        };
        let judge = |stable: &StableMax| Aggregation::Stable(*stable).epsilon(neighbors, delta);
        let stable = if let Some(deviation) = self.deviation {
            // The threshold does not change the event. So the cost of the noise without mistakes determines
            // how rare mistakes must be.
            let any = Aggregation::Stable(make(deviation, wanted)?);
            let without = any.judged(neighbors, |ideal| Ok(ideal(delta)?.upper))?;
            make(deviation, self.epsilon.unwrap_or(without * (1.0 + MISTAKEN)))?
        } else {
            let (mut low, mut high) = (0.0, 1.0);
            while judge(&make(high, wanted)?)?.upper > wanted && high < 1e8 {
                (low, high) = (high, 2.0 * high);
            }
            while high - low > 1e-3 * high {
                let middle = 0.5 * (low + high);
                if judge(&make(middle, wanted)?)?.upper <= wanted { high = middle } else { low = middle }
            }
            make(high, wanted)?
        };
        if stable.threshold >= facts.ballots / 2 {
            let found = format!(
                "{}, for which {} of {} ballots would have to agree to be changed by none",
                self.epsilon.unwrap_or(judge(&stable)?.upper),
                2 * stable.threshold,
                facts.ballots
            );
            return Err(Error::Setting {
                name: "epsilon",
                found,
                expected: "more, or more teachers, or fewer unstable questions",
            });
        }
        let epsilon = self.within(judge(&stable)?)?;
        Ok(Plan { aggregation: Aggregation::Stable(stable), neighbors, delta, epsilon })
    }
}

/// The number of answers in a round, and the number of rounds.
fn in_rounds(answers: u32) -> (u32, u32) {
    let each = answers.div_ceil(ROUNDS).max(1);
    (each, answers.div_ceil(each).max(1))
}

/// The least noise with which `answers` answers fit, to a relative precision of 1/1000.
fn least_deviation(answers: u32, fits: impl Fn(f64) -> Result<bool, Error>) -> Result<f64, Error> {
    let mut high = 1.0;
    while !fits(high)? {
        high *= 2.0;
        if high > 1e8 {
            let found = answers.to_string();
            return Err(Error::Setting {
                name: "answers",
                found,
                expected: "fewer: no noise is large enough for so many at this epsilon",
            });
        }
    }
    let mut low = high / 2.0;
    if high == 1.0 {
        return Ok(high);
    }
    while high - low > 1e-3 * high {
        let middle = 0.5 * (low + high);
        if fits(middle)? { high = middle } else { low = middle }
    }
    Ok(high)
}

/// The largest number of answers that fit, up to the number of questions.
fn most_answers(
    questions: u32,
    wanted: f64,
    fits: impl Fn(u32) -> Result<bool, Error>,
) -> Result<u32, Error> {
    if !fits(1)? {
        let found = format!("{wanted}, which does not pay for a single answer with this noise");
        return Err(Error::Setting { name: "epsilon", found, expected: "more, or more noise" });
    }
    if fits(questions)? {
        return Ok(questions);
    }
    let (mut low, mut high) = (1, questions);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle)? { low = middle } else { high = middle }
    }
    Ok(low)
}
