//! Questions with more to say than one class: sets of labels, and numbers between public bounds.

use super::{Bounds, Mechanism, Sealed, poll::gaussian};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    noise::{
        random::Key,
        rounded::{self, DISTANCE, Shape},
    },
    number::brief,
    units::NoiseMultiplier,
};

/// What a ballot may say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// A set of labels.
    Labels {
        /// How many labels there are.
        labels: usize,
        /// How many of them a ballot may name.
        most: usize,
    },
    /// A number, which is held to bounds.
    Number(Bounds),
}

impl Form {
    /// Whether there is something to say.
    pub fn check(self) -> Result<(), Error> {
        let wrong = |what, value: usize, range| Err(Error::OutOfRange { what, value: value as f64, range });
        match self {
            Self::Labels { labels, .. } if !(1..=1 << 24).contains(&labels) => wrong("labels", labels, "[1, 2^24]"),
            Self::Labels { labels, most } if !(1..=labels).contains(&most) => wrong("most", most, "[1, labels]"),
            Self::Labels { .. } | Self::Number(_) => Ok(()),
        }
    }

    /// How far an exchange of one ballot moves the counts in L2, or the sum, of which the distance of the bounds is the unit.
    fn moves(self) -> f64 {
        match self {
            Self::Labels { labels, most } => (most.saturating_mul(2).min(labels) as f64).sqrt(),
            Self::Number(_) => 1.0,
        }
    }

    /// How many numbers an answer has.
    fn width(self) -> usize {
        match self {
            Self::Labels { labels, .. } => labels,
            Self::Number(_) => 1,
        }
    }

    /// Adds a ballot, of which every part is at most `unit`. Whatever it says, it is taken for one of the form, by itself: labels that do not exist do not
    /// count, nor do those beyond the most that it may name, and what is no number is the middle of the bounds.
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
            // A ballot of the other form names nothing …
            (Self::Labels { .. }, Ballot::Number(_)) => {}
            (Self::Number(bounds), ballot) => {
                let share = match ballot {
                    Ballot::Number(number) if number.is_finite() => (number - bounds.lower()) / (bounds.upper() - bounds.lower()),
                    // … or stays in the middle.
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
            Self::Number(bounds) => write!(f, "a number held to {bounds}"),
        }
    }
}

/// What one teacher says to a question.
#[derive(Clone, PartialEq)]
pub enum Ballot {
    /// Labels, counted from 0.
    Labels(Vec<u32>),
    /// A number.
    Number(f64),
}

/// So many questions to teachers, each with one ballot, where a record touches one of them. [PAEGT17, DCDSSKJPW23]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Survey {
    /// What a ballot may say.
    pub form: Form,
    /// How many teachers there are. Public.
    pub teachers: u32,
    /// Standard deviation of the Gaussian noise, in ballots: on the count of every label, or on the sum over the distance of the bounds.
    pub deviation: NoiseMultiplier,
    /// How many questions are answered.
    pub questions: u32,
}

impl Sealed for Survey {}

impl Mechanism for Survey {
    /// # Theorem
    /// (THEORY, Surveys) Whether a record comes, goes or is exchanged, one ballot becomes any other. Sets of at most m of n labels differ by at most min(2m, n) of
    /// them, so the counts move by √min(2m, n) in L2; a number moves the sum by at most the distance of the bounds. Both are whole numbers of
    /// grid steps, and the noise that is drawn is what is charged for. Questions compose whoever chooses them. [ZDW22, Theorem 10]
    fn event(&self, neighbors: Neighbors) -> Event {
        if self.check(neighbors).is_err() {
            return Event::NonPrivate;
        }
        // A contribution is half of what an exchange moves, where that is the relation.
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
        let deviation = brief(deviation.get());
        write!(
            f,
            "{questions} answers of {teachers} teachers who say {form}, with Gaussian noise of standard deviation {deviation} ballots"
        )
    }
}

impl Paid<Survey> {
    /// Opens the questions.
    pub fn run(mut self) -> Result<Surveying, Error> {
        Ok(Surveying { survey: self.mechanism, key: self.key()?, asked: 0, left: self.mechanism.questions.into() })
    }
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// How many teachers named each label, after noise.
    Counts(Vec<f64>),
    /// The mean of what they said, after noise. It may lie outside of the bounds.
    Mean(f64),
    /// What was paid for is used up. Nothing was looked at.
    Exhausted,
}

/// Questions that are being answered, until what was paid for is used up.
pub struct Surveying {
    survey: Survey,
    /// All keys follow from this one …
    key: Key,
    /// … and from the number of the question.
    asked: u64,
    left: u64,
}

impl Surveying {
    /// More of the same: what is left of the old is not lost.
    ///
    /// # Contract
    /// An error if it is not the same survey; nothing changes then.
    pub fn add(&mut self, more: Paid<Survey>) -> Result<(), Error> {
        if more.mechanism != self.survey {
            return Err(Error::Unfit { what: "this survey", because: "another one is under way" });
        }
        self.left += more.run()?.left;
        Ok(())
    }

    /// Questions that are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Puts a question to the teachers, of whom each has one ballot.
    pub fn ask(&mut self, ballots: &[Ballot]) -> Result<Finding, Error> {
        let Survey { form, teachers, deviation, .. } = self.survey;
        if ballots.len() != teachers as usize {
            // How many there are is public.
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
            let values = || sums.iter().map(|sum| *sum as f64 / unit as f64).collect();
            if crate::exact::withhold(&self.survey, crate::exact::Norm::L2, (form.moves(), form.moves()), values) {
                sums.fill(0);
            }
        }
        // Held where noise cannot overflow; holding moves no two sums apart.
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
