//! The settings of a vote, with optional fields, and the plan that follows from them.

use quell_privacy::{
    Bound, Neighbors,
    mechanism::{Form, Mechanism, Poll, Rule, Screening, StableMax, Survey, Voters},
    units::{Delta, NoiseMultiplier, Scale},
};
use serde::{Deserialize, Serialize};

use super::{Aggregation, Plan, VoteFacts};
use crate::{Error, Input};

/// The settings of a vote.
/// One of ε, noise and number of answers may be omitted; it follows from the other two.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// How ballots become an answer.
    pub aggregator: Aggregator,
    /// ε of all answers together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// δ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// The neighbouring relation.
    pub neighbors: Neighbors,
    /// The largest number of questions that are answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<u32>,
    /// The largest number of questions that are asked.
    /// If omitted and questions can be refused, it is 1.5 times the number of answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions: Option<u32>,
    /// Standard deviation of Gaussian noise on the counts, or scale of Laplace noise; in ballots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// The share of all ballots that the largest noisy count must reach.
    /// The default is 0.6. Stable winners ignore it: their threshold follows from the noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Standard deviation of the noise on the largest count, in ballots.
    /// The default is 2.5 times the noise on the counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screening_deviation: Option<f64>,
    /// Whether to reveal the data-dependent cost of the votes, as a paid release.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reveal: bool,
    /// The number of unstable questions to pay for, for stable winners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unstable: Option<u32>,
}

/// How ballots become an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregator {
    /// The class with the most votes after Laplace noise (LNMax).
    Laplace,
    /// The class with the most votes after Gaussian noise (GNMax).
    #[default]
    Gaussian,
    /// GNMax, for the questions on which enough voters agree (Confident-GNMax).
    Confident,
    /// GNMax, for the questions on which enough voters disagree with the student (Interactive-GNMax).
    Interactive,
    /// The class with the most votes, without noise, for the questions whose winner is stable.
    /// A winner is stable if a few other ballots would not change it. Only unstable questions cost privacy.
    Stable,
}

impl Aggregator {
    /// Whether some questions may be refused.
    #[must_use]
    pub fn screens(self) -> bool {
        matches!(self, Self::Confident | Self::Interactive)
    }
}

/// The default ε and δ.
const EPSILON: f64 = 2.0;
const DELTA: f64 = 1e-5;

/// The default noise on the counts, as a share of all ballots.
/// It is used if the settings give neither the noise nor the number of answers.
const SHARE_OF_BALLOTS: f64 = 0.16;

/// The default noise on numbers, as a share of all ballots.
/// The noise on the mean is then a twentieth of the distance between the bounds.
const SHARE_OF_NUMBERS: f64 = 0.05;

/// The default noise of screening, divided by the noise on the counts.
const SCREENING: f64 = 2.5;

/// The default threshold of screening: the share of ballots that the largest count must reach.
const THRESHOLD: f64 = 0.6;

/// The largest number of rounds of a plan.
/// A killed run loses the round that it was in.
const ROUNDS: u32 = 16;

/// The default number of unstable questions to pay for.
const UNSTABLE: u32 = 8;

/// The share of δ for unstable winners that look stable because of the noise.
/// The ledger sets aside a slightly larger share.
const MISTAKEN: f64 = 1e-4;

impl Recipe {
    /// Makes a plan with all defaults filled in. Nothing is paid yet.
    pub fn plan(&self, facts: &VoteFacts) -> Result<Plan, Error> {
        let delta = Delta::new(self.delta.unwrap_or(DELTA))?;
        self.check(facts)?;
        if self.aggregator == Aggregator::Stable {
            return self.stable(facts, delta);
        }
        let default = SHARE_OF_BALLOTS * f64::from(facts.ballots);
        self.fill(facts.questions, default, delta, |deviation, answers| self.polls(facts, deviation, answers))
    }

    /// Makes a plan for teachers whose ballots are labels or numbers. Nothing is paid yet.
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
        self.check(&VoteFacts { candidates, voters: Voters::Teachers, ballots: teachers, questions })?;
        self.fill(questions, share * f64::from(teachers), delta, |deviation, answers| {
            let (questions, rounds) = in_rounds(answers);
            let survey = Survey { form, teachers, deviation: NoiseMultiplier::new(deviation)?, questions };
            survey.check(self.neighbors)?;
            Ok(Aggregation::Surveys(survey, rounds.into()))
        })
    }

    /// Makes a plan; computes the one of ε, noise and answers that is omitted.
    /// `default_deviation` is the noise if neither the noise nor the number of answers is given.
    fn fill(
        &self,
        questions: u32,
        default_deviation: f64,
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
                let deviation = deviation.unwrap_or(default_deviation);
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

    /// Checks the settings that do not need a price.
    fn check(&self, facts: &VoteFacts) -> Result<(), Error> {
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
    fn questions(&self, facts: &VoteFacts, answers: u32) -> u32 {
        let default = if self.aggregator.screens() { answers.saturating_add(answers / 2) } else { answers };
        self.questions.unwrap_or(default).clamp(answers, facts.questions.max(answers))
    }

    /// The polls that give `answers` answers with this noise.
    fn polls(&self, facts: &VoteFacts, deviation: f64, answers: u32) -> Result<Aggregation, Error> {
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

    /// Makes a plan for stable winners, with the least noise at the wanted ε.
    /// If only the noise is given, ε is the cost of that noise.
    fn stable(&self, facts: &VoteFacts, delta: Delta) -> Result<Plan, Error> {
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
        let cost = |stable: &StableMax| Aggregation::Stable(*stable).epsilon(neighbors, delta);
        let stable = if let Some(deviation) = self.deviation {
            // The threshold depends on ε, because δ must cover (1 + e^ε) times the probability of a mistake.
            // The event does not depend on the threshold. So the ε of the event, for any threshold, is close
            // to the ε of the plan.
            let any = Aggregation::Stable(make(deviation, wanted)?);
            let of_event = any.with_event_epsilon(neighbors, |ideal| Ok(ideal(delta)?.upper))?;
            make(deviation, self.epsilon.unwrap_or(of_event * (1.0 + MISTAKEN)))?
        } else {
            let (mut low, mut high) = (0.0, 1.0);
            while cost(&make(high, wanted)?)?.upper > wanted && high < 1e8 {
                (low, high) = (high, 2.0 * high);
            }
            while high - low > 1e-3 * high {
                let middle = 0.5 * (low + high);
                if cost(&make(middle, wanted)?)?.upper <= wanted { high = middle } else { low = middle }
            }
            make(high, wanted)?
        };
        // Then a winner would be unstable even if all ballots agreed.
        if stable.threshold >= facts.ballots / 2 {
            let found = format!(
                "{}, at which a winner is stable only with a lead of {} of {} ballots",
                self.epsilon.unwrap_or(cost(&stable)?.upper),
                2 * stable.threshold,
                facts.ballots
            );
            return Err(Error::Setting {
                name: "epsilon",
                found,
                expected: "more, or more teachers, or fewer unstable questions",
            });
        }
        let epsilon = self.within(cost(&stable)?)?;
        Ok(Plan { aggregation: Aggregation::Stable(stable), neighbors, delta, epsilon })
    }
}

/// The number of answers in a round, and the number of rounds.
fn in_rounds(answers: u32) -> (u32, u32) {
    let each = answers.div_ceil(ROUNDS).max(1);
    (each, answers.div_ceil(each).max(1))
}

/// Finds the least noise with which `answers` answers fit, to a relative precision of 1/1000.
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

/// Finds the largest number of answers that fit, up to the number of questions.
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
