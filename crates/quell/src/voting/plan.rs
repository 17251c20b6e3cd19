//! What will be asked and what that costs, without gaps.

use quell_privacy::{
    Bound, Neighbors,
    mechanism::{Form, Mechanism, Poll, Rule, Screening, StableMax, Survey, Voters},
    units::{Delta, NoiseMultiplier, Scale},
};

use super::{Aggregator, Recipe, Release};
use crate::Error;

/// What is public about an election.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// How many classes there are.
    pub candidates: usize,
    /// Who votes.
    pub voters: Voters,
    /// How many ballots there are to a question.
    pub ballots: u32,
    /// How many questions there are.
    pub questions: u32,
}

/// Everything that is fixed before the first ballot is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// What is paid for.
    pub release: Release,
    /// When two datasets are neighbours.
    pub neighbors: Neighbors,
    /// δ at which it is judged.
    pub delta: Delta,
    /// What it costs, as an interval.
    pub epsilon: Bound,
}

/// ε and δ if nobody says.
const EPSILON: f64 = 2.0;
const DELTA: f64 = 1e-5;

/// Noise on the counts over all ballots, if nobody says how many answers are wanted.
const SHARE_OF_BALLOTS: f64 = 0.16;

/// The same where numbers are asked for: of a mean, a twentieth of the distance of the bounds.
const SHARE_OF_NUMBERS: f64 = 0.05;

/// Noise on the largest count over noise on the counts, and what share of the ballots it must reach, if nobody says.
const SCREENING: f64 = 2.5;
const THRESHOLD: f64 = 0.6;

/// Most rounds that a plan is paid in: a run that is killed loses the round it is in.
const ROUNDS: u32 = 16;

/// Unstable winners, if nobody says.
const UNSTABLE: u32 = 8;

/// Part of δ for winners that noise takes for stable. The ledger has set aside a little more than that.
const MISTAKEN: f64 = 1e-4;

impl Recipe {
    /// Fills the gaps. Nothing is paid yet.
    pub fn plan(&self, facts: &Facts) -> Result<Plan, Error> {
        let delta = Delta::new(self.delta.unwrap_or(DELTA))?;
        self.check(facts)?;
        if self.aggregator == Aggregator::Stable {
            return self.stable(facts, delta);
        }
        let usual = SHARE_OF_BALLOTS * f64::from(facts.ballots);
        self.fill(facts.questions, usual, delta, |deviation, answers| self.polls(facts, deviation, answers))
    }

    /// The same for teachers who name labels or say numbers.
    pub fn survey(&self, form: Form, teachers: u32, questions: u32) -> Result<Plan, Error> {
        let delta = Delta::new(self.delta.unwrap_or(DELTA))?;
        if self.aggregator != Aggregator::Gaussian || self.reveal {
            let (name, found) =
                if self.reveal { ("reveal", "true".into()) } else { ("aggregator", format!("{:?}", self.aggregator)) };
            return Err(Error::Setting {
                name,
                found,
                expected: "Gaussian noise and no more, where teachers name labels or numbers",
            });
        }
        let (candidates, share) = match form {
            Form::Labels { labels, .. } => (labels, SHARE_OF_BALLOTS),
            Form::Number(_) => (1, SHARE_OF_NUMBERS),
        };
        self.check(&Facts { candidates, voters: Voters::Teachers, ballots: teachers, questions })?;
        self.fill(questions, share * f64::from(teachers), delta, |deviation, answers| {
            let (questions, rounds) = in_rounds(answers);
            let survey = Survey { form, teachers, deviation: NoiseMultiplier::new(deviation)?, questions };
            survey.check(self.neighbors)?;
            Ok(Release::Surveys(survey, rounds.into()))
        })
    }

    /// Of ε, noise and answers, what is left out.
    fn fill(
        &self,
        questions: u32,
        usual: f64,
        delta: Delta,
        release: impl Fn(f64, u32) -> Result<Release, Error>,
    ) -> Result<Plan, Error> {
        let neighbors = self.neighbors;
        let wanted = self.epsilon.unwrap_or(EPSILON);
        let fits = |deviation: f64, answers: u32| Ok::<_, Error>(release(deviation, answers)?.upper(neighbors, delta)? <= wanted);
        let (deviation, answers) = match (self.deviation, self.answers) {
            (Some(deviation), Some(answers)) => (deviation, answers),
            (None, Some(answers)) => (least_deviation(answers, |deviation| fits(deviation, answers))?, answers),
            (deviation, None) => {
                let deviation = deviation.unwrap_or(usual);
                (deviation, most_answers(questions, wanted, |answers| fits(deviation, answers))?)
            }
        };
        let release = release(deviation, answers)?;
        let epsilon = self.within(release.epsilon(neighbors, delta)?)?;
        Ok(Plan { release, neighbors, delta, epsilon })
    }

    /// Refuses what costs more than was asked for.
    fn within(&self, epsilon: Bound) -> Result<Bound, Error> {
        if let Some(wanted) = self.epsilon.filter(|wanted| epsilon.upper > *wanted) {
            let found = format!("{wanted}, and these answers with this noise cost {}", epsilon.upper);
            return Err(Error::Setting { name: "epsilon", found, expected: "at least as much; leave out noise or answers" });
        }
        Ok(epsilon)
    }

    fn check(&self, facts: &Facts) -> Result<(), Error> {
        let wrong = |name: &'static str, found: String, expected: &'static str| Err(Error::Setting { name, found, expected });
        if facts.questions == 0 {
            return Err(Error::Missing { what: "question", hint: "give public records to be labelled, at least one" });
        }
        if facts.ballots == 0 {
            return Err(Error::Missing { what: "voter", hint: "give at least one teacher, or look at more than 0 neighbours" });
        }
        if let Some(answers) = self.answers.filter(|answers| !(1..=facts.questions).contains(answers)) {
            return wrong("answers", answers.to_string(), "at least 1 and at most as many as there are questions");
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
                format!("{:?}", self.aggregator),
                "gaussian or confident, where the nearest records vote",
            );
        }
        Ok(())
    }

    /// Questions that may be put for so many answers.
    fn questions(&self, facts: &Facts, answers: u32) -> u32 {
        let usual = if self.aggregator.screens() { answers.saturating_add(answers / 2) } else { answers };
        self.questions.unwrap_or(usual).clamp(answers, facts.questions.max(answers))
    }

    fn polls(&self, facts: &Facts, deviation: f64, answers: u32) -> Result<Release, Error> {
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
        Ok(Release::Polls(poll, rounds.into()))
    }

    /// Stable winners at this ε: the least noise, and the threshold that noise asks for. Where only noise is given, ε is what it costs.
    fn stable(&self, facts: &Facts, delta: Delta) -> Result<Plan, Error> {
        let neighbors = self.neighbors;
        let unstable = self.unstable.unwrap_or(UNSTABLE).max(1);
        let wanted = self.epsilon.unwrap_or(EPSILON);
        let make = |deviation: f64, wanted: f64| {
            let asked = f64::from(facts.questions) * f64::from(unstable);
            let mistaken = MISTAKEN * delta.get() / (1.0 + wanted.exp());
            let threshold = (2.0 * deviation * (asked / mistaken).ln().sqrt()).ceil();
            let deviation = Scale::new(deviation)?;
            let (candidates, questions) = (facts.candidates, facts.questions);
            Ok::<_, Error>(StableMax { candidates, threshold: threshold as u32, unstable, questions, deviation })
        };
        let judge = |stable: &StableMax| Release::Stable(*stable).epsilon(neighbors, delta);
        let stable = if let Some(deviation) = self.deviation {
            // The threshold leaves the event as it is: what noise costs without mistakes says how rare mistakes must be.
            let any = Release::Stable(make(deviation, wanted)?);
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
        Ok(Plan { release: Release::Stable(stable), neighbors, delta, epsilon })
    }
}

/// How many answers to a round, and how many rounds.
fn in_rounds(answers: u32) -> (u32, u32) {
    let each = answers.div_ceil(ROUNDS).max(1);
    (each, answers.div_ceil(each).max(1))
}

/// The least noise with which so many answers fit, to a part in a thousand.
fn least_deviation(answers: u32, fits: impl Fn(f64) -> Result<bool, Error>) -> Result<f64, Error> {
    let mut high = 1.0;
    while !fits(high)? {
        high *= 2.0;
        if high > 1e8 {
            let found = answers.to_string();
            return Err(Error::Setting {
                name: "answers",
                found,
                expected: "fewer; no noise is enough for these at this epsilon",
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

/// The most answers that fit, up to the number of questions.
fn most_answers(questions: u32, wanted: f64, fits: impl Fn(u32) -> Result<bool, Error>) -> Result<u32, Error> {
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
