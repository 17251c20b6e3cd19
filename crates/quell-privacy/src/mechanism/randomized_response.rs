//! Every record answers for itself, sometimes at random.

use super::{Mechanism, Sealed, Sensitive};
use crate::{Error, Event, Neighbors, ledger::Paid, noise::exact::bernoulli, number::brief, units::Probability};

/// One of several answers per record: the true one or, with some probability, any of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomizedResponse {
    choices: u32,
    randomized: Probability,
}

/// Probabilities are multiples of 2⁻⁵³ in (0, 1], which a floating-point number holds exactly.
const DENOMINATOR: u128 = 1 << 53;

impl RandomizedResponse {
    /// At least two choices, and a probability of a random answer above zero; it is rounded up to a multiple of 2⁻⁵³.
    pub fn new(choices: u32, randomized: Probability) -> Result<Self, Error> {
        if choices < 2 {
            return Err(Error::OutOfRange { what: "choices", value: f64::from(choices), range: "[2, 2^32)" });
        }
        if randomized.get() == 0.0 {
            return Err(Error::OutOfRange { what: "probability of a random answer", value: 0.0, range: "(0, 1]" });
        }
        let units = (randomized.get() * DENOMINATOR as f64).ceil();
        Ok(Self { choices, randomized: Probability::new(units / DENOMINATOR as f64)? })
    }
}

impl Sealed for RandomizedResponse {}

impl Mechanism for RandomizedResponse {
    /// Each record is used once. Whether a record is there at all is not hidden: the number of answers is that of the records, so the guarantee is one
    /// about exchanging a record.
    fn event(&self, neighbors: Neighbors) -> Event {
        match neighbors {
            Neighbors::Replace => Event::RandomizedResponse { choices: self.choices, randomized: self.randomized },
            Neighbors::AddRemove => Event::NonPrivate,
        }
    }
}

impl std::fmt::Display for RandomizedResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "one of {} answers per record, at random with probability {}", self.choices, brief(self.randomized.get()))
    }
}

impl Paid<RandomizedResponse> {
    /// An answer per record, numbered from zero. A record without one of the choices answers at random.
    pub fn run(mut self, answers: &Sensitive<Vec<u32>>) -> Result<Vec<u32>, Error> {
        let mut stream = self.key()?.stream(0);
        let RandomizedResponse { choices, randomized } = self.mechanism;
        let numerator = (randomized.get() * DENOMINATOR as f64) as u128;
        let respond = |&answer: &u32| {
            let random = bernoulli(numerator, DENOMINATOR, &mut stream);
            if random || answer >= choices { stream.below(u128::from(choices)) as u32 } else { answer }
        };
        Ok(answers.0.iter().map(respond).collect())
    }
}
