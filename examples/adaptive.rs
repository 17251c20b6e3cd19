//! Asks questions that depend on earlier answers, until the budget ends.

use quell::{
    ledger::InMemory,
    privacy::{
        Error,
        mechanism::{Count, Sensitive},
        units::{Delta, Epsilon},
    },
};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let incomes: Vec<f64> = (0..10_000).map(|i| f64::from(i) * 10.0).collect();
    let mut ledger = InMemory::ledger("incomes", Epsilon::new(1.0)?, Delta::new(1e-6)?)?;
    // A binary search for the median. Each question follows from the answers before it.
    let (mut low, mut high) = (0.0, 1e6);
    let refused = loop {
        let middle = 0.5 * (low + high);
        let paid = match ledger.charge(Count::for_epsilon(Epsilon::new(0.09)?)?) {
            Ok(paid) => paid,
            Err(refused) => break refused,
        };
        let below = incomes.iter().filter(|income| **income < middle).count() as u64;
        if paid.run(&Sensitive::new(below))?.value < 5000.0 { low = middle } else { high = middle }
    };
    // A count errs by 200 with probability 8e-9, and 200 records are an income of 2000.
    assert!(matches!(refused, Error::Refused { .. }), "{refused}");
    assert!((low - 2000.0..=high + 2000.0).contains(&50_000.0), "{low} to {high}");
    Ok(())
}
