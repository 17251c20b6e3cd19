//! Computes what a DP-SGD run costs, without any data.

use quell::privacy::{
    Event, Neighbors,
    accounting::Pld,
    units::{Delta, NoiseMultiplier, SamplingRate},
};

pub(crate) fn main() -> Result<(), quell::privacy::Error> {
    let run = Event::dp_sgd(NoiseMultiplier::new(1.1)?, SamplingRate::new(0.01)?, 10_000);
    let epsilon = Pld::default().epsilon(&run, Neighbors::AddRemove, Delta::new(1e-5)?)?;
    println!("ε is between {:.4} and {:.4} at δ = 1e-5", epsilon.lower, epsilon.upper);
    assert!(5.18 < epsilon.lower && epsilon.upper < 5.20);
    Ok(())
}
