//! Releases a private mean.

use quell::{
    ledger::InMemory,
    privacy::{
        mechanism::{Bounds, Mean, Sensitive},
        units::{Delta, Epsilon},
    },
};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ages = (0..10_000).map(|i| f64::from(20 + i % 50)).collect();
    let mut ledger = InMemory::ledger("people", Epsilon::new(1.0)?, Delta::new(1e-6)?)?;
    let mean = Mean::for_epsilon(Bounds::new(0.0, 120.0)?, Epsilon::new(0.5)?)?;
    let released = ledger.charge(mean)?.run(&Sensitive::new(ages))?;
    println!("mean age: {:.1}", released.value);
    assert!((released.value - 44.5).abs() < 2.0);
    Ok(())
}
