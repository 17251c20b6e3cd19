//! The best of some candidates.

use std::num::NonZero;

use super::{Mechanism, Sealed, Sensitive};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    noise::select::{Coefficient, exponential, permute_and_flip},
    number::brief,
    units::{ClipNorm, Epsilon},
};

/// One of several candidates, the more likely the higher its utility.
///
/// # Contract
/// The one clause that is not enforced here: between neighbours each utility moves by at most `sensitivity`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Selection {
    /// How many candidates there are.
    pub candidates: usize,
    /// Most that one utility moves between neighbours.
    pub sensitivity: ClipNorm,
    /// ε.
    pub epsilon: Epsilon,
    /// Permute and flip instead of the exponential mechanism: a better choice in expectation, at a price that is less easily composed.
    pub permute_and_flip: bool,
}

/// Utilities are counted in this part of the sensitivity. Rounding moves two of them apart by one such part, and floating point by one more.
const PARTS: u64 = 1 << 20;
const SENSITIVITY: NonZero<u64> = NonZero::new(PARTS + 2).unwrap();

impl Sealed for Selection {}

impl Mechanism for Selection {
    /// # Theorem
    /// The exponential mechanism has bounded range ε [MT07; DDR20]; permute and flip is ε-DP [MS20, Theorem 1].
    fn event(&self, _: Neighbors) -> Event {
        if self.permute_and_flip { Event::Pure { epsilon: self.epsilon } } else { Event::Exponential { epsilon: self.epsilon } }
    }
}

impl std::fmt::Display for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rule = if self.permute_and_flip { "permute and flip" } else { "the exponential mechanism" };
        write!(f, "one of {} candidates by {rule} with epsilon {}", self.candidates, brief(self.epsilon.get()))
    }
}

impl Paid<Selection> {
    /// The number of the chosen candidate. A utility that is no number counts as the worst there is.
    pub fn run(mut self, utilities: &Sensitive<Vec<f64>>) -> Result<usize, Error> {
        let Selection { candidates, sensitivity, epsilon, .. } = self.mechanism;
        let range = "what was paid for, at least one";
        let wrong = Error::OutOfRange { what: "number of utilities", value: utilities.0.len() as f64, range };
        if utilities.0.len() != candidates {
            return Err(wrong);
        }
        // Held to 2⁵⁰ parts, where a part in 2⁵² of rounding is less than one of them.
        let most = (1_u64 << 50) as f64;
        let parts = |utility: &f64| {
            let utility = if utility.is_nan() { f64::NEG_INFINITY } else { *utility };
            (utility / sensitivity.get() * PARTS as f64).clamp(-most, most).floor() as i64
        };
        let utilities: Vec<i64> = utilities.0.iter().map(parts).collect();
        let mut stream = self.key()?.stream(0);
        let coefficient = Coefficient::new(epsilon, SENSITIVITY);
        let choose = if self.mechanism.permute_and_flip { permute_and_flip } else { exponential };
        choose(&utilities, coefficient, &mut stream).ok_or(wrong)
    }
}
