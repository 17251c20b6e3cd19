//! Surveys: teachers answer with sets of labels or with numbers between public bounds.

use super::poll::gaussian;
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{Bounds, Mechanism, Sealed},
    noise::{
        random::Key,
        rounded::{self, DISTANCE, Shape},
    },
    number::format_brief,
    units::NoiseMultiplier,
};

/// What a ballot may contain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// A set of labels.
    Labels {
        /// Number of labels.
        labels: usize,
        /// Most labels that one ballot may name.
        most: usize,
    },
    /// A number, clamped to bounds.
    Number(Bounds),
}

impl Form {
    /// Checks that a ballot can contain something.
    pub fn check(self) -> Result<(), Error> {
        let wrong = |what, value: usize, range| Err(Error::OutOfRange { what, value: value as f64, range });
        match self {
            Self::Labels { labels, .. } if !(1..=1 << 24).contains(&labels) => {
                wrong("labels", labels, "[1, 2^24]")
            }
            Self::Labels { labels, most } if !(1..=labels).contains(&most) => {
                wrong("most", most, "[1, labels]")
            }
            Self::Labels { .. } | Self::Number(_) => Ok(()),
        }
    }

    /// How far replacing one ballot moves the counts in L2, or the sum.
    ///
    /// The unit of the sum is the distance between the bounds.
    fn moves(self) -> f64 {
        match self {
            Self::Labels { labels, most } => (most.saturating_mul(2).min(labels) as f64).sqrt(),
            Self::Number(_) => 1.0,
        }
    }

    /// How many numbers an answer contains.
    fn width(self) -> usize {
        match self {
            Self::Labels { labels, .. } => labels,
            Self::Number(_) => 1,
        }
    }

    /// Adds a ballot to the sums; each part of the ballot adds at most `unit`.
    ///
    /// Every ballot is interpreted as one of this form, independently of other ballots. Labels that do not
    /// exist are ignored, and so are labels beyond the allowed number. A value that is not a number counts as
    /// the middle of the bounds.
    fn add(self, ballot: &Ballot, unit: i64, sums: &mut [i128]) {
        match (self, ballot) {
            (Self::Labels { labels, most }, Ballot::Labels(named)) => {
                let mut counted: Vec<u32> = Vec::with_capacity(most.min(named.len()));
                for label in named.iter().filter(|label| (**label as usize) < labels) {
                    if counted.len() < most && !counted.contains(label) {
                        counted.push(*label);
                        sums[*label as usize] += i128::from(unit);
                    }
                }
            }
            // A ballot of the other form names no label …
            (Self::Labels { .. }, Ballot::Number(_)) => {}
            (Self::Number(bounds), ballot) => {
                let share = match ballot {
                    Ballot::Number(number) if number.is_finite() => {
                        (number - bounds.lower()) / (bounds.upper() - bounds.lower())
                    }
                    // … or counts as the middle of the bounds.
                    Ballot::Number(_) | Ballot::Labels(_) => 0.5,
                };
                sums[0] += i128::from(((share * unit as f64).round() as i64).clamp(0, unit));
            }
        }
    }
}

impl std::fmt::Display for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Labels { labels, most } => write!(f, "at most {most} of {labels} labels"),
            Self::Number(bounds) => write!(f, "one number clamped to {bounds}"),
        }
    }
}

/// The answer of one teacher to a question.
#[derive(Clone, PartialEq)]
pub enum Ballot {
    /// Labels, counted from 0.
    Labels(Vec<u32>),
    /// A number.
    Number(f64),
}

/// A fixed number of questions to teachers with one ballot each. [PAEGT17, DCDSSKJPW23]
///
/// A record affects one ballot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Survey {
    /// What a ballot may contain.
    pub form: Form,
    /// Number of teachers. Public.
    pub teachers: u32,
    /// Standard deviation of the Gaussian noise, in ballots.
    ///
    /// The noise is on the count of every label, or on the sum divided by the distance between the bounds.
    pub deviation: NoiseMultiplier,
    /// Number of questions that are answered.
    pub questions: u32,
}

impl Sealed for Survey {}

impl Mechanism for Survey {
    /// # Theorem
    /// (THEORY, Surveys) Whether a record is added, removed or replaced, one ballot becomes any other ballot.
    /// Sets of at most m of n labels differ by at most min(2m, n) labels, so the counts move by √min(2m, n)
    /// in L2. A number moves the sum by at most the distance between the bounds. Both are whole numbers of
    /// grid steps, and the charge is for the noise that is drawn. Questions compose even if they are chosen
    /// adaptively. [ZDW22, Theorem 10]
    fn event(&self, neighbors: Neighbors) -> Event {
        if self.check(neighbors).is_err() {
            return Event::NonPrivate;
        }
        // Under the replace relation a contribution is half of what a replacement moves.
        gaussian(self.deviation, self.form.moves() / neighbors.reach()).repeated(self.questions.into())
    }

    fn check(&self, _: Neighbors) -> Result<(), Error> {
        for (what, number) in [("questions", self.questions), ("teachers", self.teachers)] {
            if number == 0 {
                return Err(Error::OutOfRange { what, value: 0.0, range: "at least 1" });
            }
        }
        self.form.check()
    }

    fn distance(&self) -> f64 {
        self.form.width() as f64 * f64::from(self.questions) * DISTANCE
    }
}

impl std::fmt::Display for Survey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { form, teachers, deviation, questions } = self;
        let deviation = format_brief(deviation.get());
        let plural = if *questions == 1 { "" } else { "s" };
        write!(
            f,
            "{questions} answer{plural} by votes of {teachers} teachers, each with {form}, with Gaussian noise of standard deviation {deviation} ballots"
        )
    }
}

impl Paid<Survey> {
    /// Starts the survey.
    pub fn run(mut self) -> Result<Surveying, Error> {
        Ok(Surveying {
            survey: self.mechanism,
            key: self.key()?,
            asked: 0,
            left: self.mechanism.questions.into(),
        })
    }
}

/// The outcome of one question.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// How many teachers named each label, after noise.
    Counts(Vec<f64>),
    /// The mean of the teachers' numbers, after noise. It may lie outside the bounds.
    Mean(f64),
    /// The paid questions are used up. The ballots were not read.
    Exhausted,
}

/// A running survey that answers questions until the paid number is used up.
pub struct Surveying {
    survey: Survey,
    /// The key from which all other keys are derived …
    key: Key,
    /// … together with the number of the question.
    asked: u64,
    left: u64,
}

impl Surveying {
    /// Adds questions of the same survey to those that are left.
    ///
    /// # Contract
    /// Returns an error and changes nothing if `more` is a different survey.
    pub fn add(&mut self, more: Paid<Survey>) -> Result<(), Error> {
        if more.mechanism != self.survey {
            return Err(Error::Unfit { what: "this survey", because: "another one is still running" });
        }
        self.left += more.run()?.left;
        Ok(())
    }

    /// The number of questions left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Asks the teachers one question; each teacher has one ballot.
    pub fn ask(&mut self, ballots: &[Ballot]) -> Result<Finding, Error> {
        let Survey { form, teachers, deviation, .. } = self.survey;
        if ballots.len() != teachers as usize {
            // The number of ballots is public.
            return Err(Error::OutOfRange {
                what: "number of ballots",
                value: ballots.len() as f64,
                range: "one for each teacher",
            });
        }
        if self.left == 0 {
            return Ok(Finding::Exhausted);
        }
        (self.asked, self.left) = (self.asked + 1, self.left - 1);
        let unit = rounded::steps_per_unit(deviation.get());
        let mut sums = vec![0; form.width()];
        for ballot in ballots {
            form.add(ballot, unit as i64, &mut sums);
        }
        #[cfg(feature = "exact-statistics")]
        {
            // Measured in ballots or in grid steps: both are whole numbers.
            let (size, moves) = match form {
                Form::Labels { .. } => (unit as f64, form.moves()),
                Form::Number(_) => (1.0, unit as f64),
            };
            let values = || sums.iter().map(|sum| *sum as f64 / size).collect();
            if crate::exact::withhold(&self.survey, crate::exact::Norm::L2, (moves, moves), values) {
                sums.fill(0);
            }
        }
        // Clamped to a range where noise cannot overflow. Clamping never increases the distance of two sums.
        let mut noisy: Vec<i64> = sums.into_iter().map(|sum| sum.min(1 << 62) as i64).collect();
        rounded::add(Shape::Gaussian, &self.key.next(self.asked), &mut noisy);
        let ballots = |steps: i64| steps as f64 / unit as f64;
        Ok(match form {
            Form::Labels { .. } => Finding::Counts(noisy.into_iter().map(ballots).collect()),
            Form::Number(bounds) => {
                let share = ballots(noisy[0]) / f64::from(teachers);
                Finding::Mean(bounds.lower() + share * (bounds.upper() - bounds.lower()))
            }
        })
    }
}

#[cfg(test)]
mod tests;
