//! Several statistics that are paid for by one charge.

use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{Mechanism, PaidRuns, Sealed},
};

/// Several mechanisms that run on the same dataset, paid for as one plan.
///
/// The plan is fixed before anything is released, so the ledger accounts for all parts as a whole.
///
/// ```
/// use quell_privacy::{Neighbors, mechanism::{Bounds, Count, Mean, Mechanism, Together}, units::Epsilon};
/// let count = Count::for_epsilon(Epsilon::new(0.1)?)?;
/// let mean = Mean::for_epsilon(Bounds::new(0.0, 100.0)?, Epsilon::new(0.4)?)?;
/// let mut plan = Together::new(Neighbors::AddRemove);
/// plan.add(&count)?;
/// plan.add(&mean)?;
/// assert_eq!(plan.len(), 2);
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Together {
    neighbors: Neighbors,
    parts: Vec<Part>,
}

/// What was paid for one part of a plan.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    runs: PaidRuns,
    text: String,
    /// Whether the part was handed out.
    taken: bool,
}

impl Together {
    /// An empty plan under this neighbour relation.
    #[must_use]
    pub fn new(neighbors: Neighbors) -> Self {
        Self { neighbors, parts: Vec::new() }
    }

    /// Adds one run of a mechanism.
    pub fn add<M: Mechanism>(&mut self, mechanism: &M) -> Result<(), Error> {
        mechanism.check(self.neighbors)?;
        self.parts.push(Part {
            runs: PaidRuns::new(mechanism, self.neighbors, 1),
            text: mechanism.to_string(),
            taken: false,
        });
        Ok(())
    }

    /// The number of parts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Whether there is no part.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

impl Sealed for Together {}

impl Mechanism for Together {
    /// The composition of the events of all parts.
    fn event(&self, neighbors: Neighbors) -> Event {
        if neighbors != self.neighbors {
            return Event::NonPrivate;
        }
        Event::Composed(self.parts.iter().map(|part| part.runs.event.clone()).collect())
    }

    fn check(&self, neighbors: Neighbors) -> Result<(), Error> {
        if neighbors == self.neighbors && !self.parts.is_empty() {
            return Ok(());
        }
        let because = "a plan needs a part, and every part must be built for the relation of the ledger";
        Err(Error::Unfit { what: "this plan of several statistics", because })
    }

    /// Total variation distances add up.
    fn distance(&self) -> f64 {
        self.parts.iter().map(|part| part.runs.distance).sum::<f64>() * (1.0 + 1e-12)
    }
}

impl std::fmt::Display for Together {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, part) in self.parts.iter().enumerate() {
            write!(f, "{}{}", if number == 0 { "" } else { "; " }, part.text)?;
        }
        Ok(())
    }
}

impl Paid<Together> {
    /// Hands out a part of the plan, once.
    ///
    /// # Contract
    /// The charge covers one run of a mechanism with the event and the distance of each part. So a mechanism
    /// with another event, and a part that was handed out before, are refused. The mechanism is checked like one
    /// that is added to a plan: another one with the same event may be unfit. Every part draws its own key.
    pub fn take<M: Mechanism>(&mut self, part: usize, mechanism: M) -> Result<Paid<M>, Error> {
        let neighbors = self.neighbors;
        mechanism.check(neighbors)?;
        let refused = Error::Unfit { what: "this statistic", because: "the charge paid for another one" };
        let Some(paid) = self.mechanism.parts.get_mut(part) else { return Err(refused) };
        if paid.taken || !paid.runs.covers(&PaidRuns::new(&mechanism, neighbors, 1)) {
            return Err(refused);
        }
        paid.taken = true;
        Ok(self.split(mechanism.at_run(0)))
    }
}
