//! Randomized response: each record's answer is sometimes replaced by a random one.

use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{Mechanism, Sealed, Sensitive},
    noise::exact::bernoulli,
    number::format_brief,
    units::{Epsilon, Probability},
};

/// Randomized response: one answer per record, true or, with some probability, random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomizedResponse {
    choices: u32,
    randomized: Probability,
}

/// Probabilities are multiples of 2⁻⁵³ in (0, 1], which a floating-point number holds exactly.
const DENOMINATOR: u128 = 1 << 53;

impl RandomizedResponse {
    /// Checks that there are at least two choices and that random answers are possible.
    ///
    /// The probability of a random answer is rounded up to a multiple of 2⁻⁵³.
    pub fn new(choices: u32, randomized: Probability) -> Result<Self, Error> {
        if choices < 2 {
            return Err(Error::OutOfRange { what: "choices", value: f64::from(choices), range: "[2, 2^32)" });
        }
        if randomized.get() == 0.0 {
            return Err(Error::OutOfRange {
                what: "probability of a random answer",
                value: 0.0,
                range: "(0, 1]",
            });
        }
        let units = (randomized.get() * DENOMINATOR as f64).ceil();
        Ok(Self { choices, randomized: Probability::new(units / DENOMINATOR as f64)? })
    }

    /// The fewest random answers that are ε-DP when a record is replaced.
    ///
    /// # Theorem
    /// With probability p of a random answer among k choices, the true answer is given with probability 1 - p + p/k
    /// and each other with p/k. Their ratio is exp ε for p = k/(k + exp ε - 1). p is rounded up.
    ///
    /// ```
    /// use quell_privacy::{Neighbors, accounting::Pld, mechanism::{Mechanism, RandomizedResponse}};
    /// use quell_privacy::units::{Delta, Epsilon};
    /// let coin = RandomizedResponse::for_epsilon(2, Epsilon::new(1.0)?)?;
    /// let event = coin.event(Neighbors::Replace);
    /// let cost = Pld::default().epsilon(&event, Neighbors::Replace, Delta::new(1e-9)?)?;
    /// assert!(cost.upper <= 1.0 + 1e-3 && cost.lower >= 0.99);
    /// # Ok::<(), quell_privacy::Error>(())
    /// ```
    pub fn for_epsilon(choices: u32, epsilon: Epsilon) -> Result<Self, Error> {
        let k = f64::from(choices);
        // Four roundings of at most a part in 2⁵², and exp_m1 good to a few.
        let randomized = k / (k + epsilon.get().exp_m1()) * (1.0 + 1e-14);
        Self::new(choices, Probability::new(randomized.min(1.0))?)
    }
}

impl Sealed for RandomizedResponse {}

impl Mechanism for RandomizedResponse {
    /// The cost of one answer per record.
    ///
    /// The presence of a record is not hidden, because the number of answers is the number of records. So the
    /// guarantee holds for replacing a record.
    fn event(&self, neighbors: Neighbors) -> Event {
        match neighbors {
            Neighbors::Replace => {
                Event::RandomizedResponse { choices: self.choices, randomized: self.randomized }
            }
            Neighbors::AddRemove => Event::NonPrivate,
        }
    }
}

impl std::fmt::Display for RandomizedResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "randomized response: one of {} answers per record, drawn at random with probability {}",
            self.choices,
            format_brief(self.randomized.get())
        )
    }
}

impl Paid<RandomizedResponse> {
    /// Returns one answer per record, numbered from zero.
    ///
    /// A record whose answer is not one of the choices answers at random.
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
