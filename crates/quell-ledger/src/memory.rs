//! A book in memory, for tests, examples and notebooks.

use std::{
    convert::Infallible,
    hash::{BuildHasher, Hasher, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use quell_privacy::{
    Neighbors,
    ledger::{Book, Budget, Composition, Ledger, Line, Permit, Receipt, State, Terms, Unit},
    units::{Delta, Epsilon},
};

/// A book that loses every charge when the program ends.
///
/// Do not use it for people's data. Clones share the same lines, so a second [`Ledger`] can be opened on
/// them.
///
/// ```
/// use quell_ledger::InMemory;
/// use quell_privacy::{mechanism::{Count, Sensitive}, units::{Delta, Epsilon}};
/// let mut ledger = InMemory::ledger("survey", Epsilon::new(1.0)?, Delta::new(1e-6)?)?;
/// let count = ledger.charge(Count::for_epsilon(Epsilon::new(0.5)?)?)?.run(&Sensitive::new(1200))?;
/// assert!((count.value - 1200.0).abs() < 100.0);
/// # Ok::<(), quell_privacy::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct InMemory {
    dataset: String,
    /// Tells the receipts of different books apart.
    id: u64,
    lines: Arc<Mutex<Vec<Line>>>,
}

impl InMemory {
    /// Creates an empty book for a dataset.
    #[must_use]
    pub fn new(dataset: &str) -> Self {
        Self {
            dataset: dataset.to_owned(),
            id: RandomState::new().build_hasher().finish(),
            lines: Arc::default(),
        }
    }

    /// Creates a ledger in memory for example-level privacy with add-or-remove neighbors.
    pub fn ledger(
        dataset: &str,
        epsilon: Epsilon,
        delta: Delta,
    ) -> Result<Ledger<Self>, quell_privacy::Error> {
        let terms = Terms {
            dataset: dataset.to_owned(),
            unit: Unit::Example,
            neighbors: Neighbors::AddRemove,
            budget: Budget { epsilon: Some(epsilon), delta },
            composition: Composition::Combined,
        };
        Ledger::create(Self::new(dataset), terms)
    }

    /// The lines. A panic elsewhere leaves them whole: a line is added in one call.
    fn lines(&self) -> MutexGuard<'_, Vec<Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book for InMemory {
    type Error = Infallible;

    fn read(&mut self, from: u64) -> Result<Vec<Line>, Infallible> {
        Ok(self.lines().iter().skip(usize::try_from(from).unwrap_or(usize::MAX)).cloned().collect())
    }

    fn append(&mut self, permit: &Permit<'_>) -> Result<Option<Receipt>, Infallible> {
        let mut lines = self.lines();
        let state = State::new(&lines).ok();
        // This comparison is false for NaN.
        let fits = permit.spent() <= permit.cap();
        if lines.len() as u64 != permit.number() || !permit.follows(state.as_ref()) || !fits {
            return Ok(None);
        }
        lines.push(permit.line().clone());
        drop(lines);
        self.receipt(permit.number()).map(Some)
    }

    /// A receipt without a hash chain.
    ///
    /// Its head is a random number of the book and the number of the line.
    fn receipt(&mut self, number: u64) -> Result<Receipt, Infallible> {
        Ok(Receipt::new(self.dataset.clone(), number, format!("in memory {:016x}, line {number}", self.id)))
    }
}
