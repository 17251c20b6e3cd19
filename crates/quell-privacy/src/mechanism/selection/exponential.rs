//! Selection of the best of several candidates.

use std::num::NonZero;

use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{Mechanism, Sealed, Sensitive},
    noise::select::{Coefficient, exponential, permute_and_flip},
    number::format_brief,
    units::{ClipNorm, Epsilon},
};

/// A choice among candidates: a higher utility makes a candidate more likely.
///
/// # Contract
/// The one clause that the code does not enforce: between neighbours each utility moves by at most
/// `sensitivity`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Selection {
    /// Number of candidates.
    pub candidates: usize,
    /// The most that one utility moves between neighbours.
    pub sensitivity: ClipNorm,
    /// ε.
    pub epsilon: Epsilon,
    /// Use permute and flip instead of the exponential mechanism.
    ///
    /// Its choice is better in expectation, but its cost composes less well.
    pub permute_and_flip: bool,
}

/// Utility units per sensitivity.
///
/// Rounding moves two utilities apart by one unit, and floating point by one more.
const PARTS: u64 = 1 << 20;
const SENSITIVITY: NonZero<u64> = NonZero::new(PARTS + 2).unwrap();

impl Sealed for Selection {}

impl Mechanism for Selection {
    /// # Theorem
    /// The exponential mechanism has bounded range ε [MT07; DDR20]; permute and flip is ε-DP [MS20, Theorem
    /// 1].
    fn event(&self, _: Neighbors) -> Event {
        if self.permute_and_flip {
            Event::Pure { epsilon: self.epsilon }
        } else {
            Event::Exponential { epsilon: self.epsilon }
        }
    }
}

impl std::fmt::Display for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rule = if self.permute_and_flip { "permute and flip" } else { "the exponential mechanism" };
        write!(
            f,
            "one of {} candidates by {rule} with epsilon {}",
            self.candidates,
            format_brief(self.epsilon.get())
        )
    }
}

impl Paid<Selection> {
    /// Chooses a candidate and returns its number.
    ///
    /// A utility that is NaN counts as the lowest.
    pub fn run(mut self, utilities: &Sensitive<Vec<f64>>) -> Result<usize, Error> {
        let Selection { candidates, sensitivity, epsilon, .. } = self.mechanism;
        let range = "[n, n] for the n ≥ 1 candidates that were paid for";
        let wrong = Error::OutOfRange { what: "number of utilities", value: utilities.0.len() as f64, range };
        if utilities.0.len() != candidates {
            return Err(wrong);
        }
        // Clamped to 2⁵⁰ units, where the rounding by a part in 2⁵² is less than one unit.
        let limit = (1_u64 << 50) as f64;
        let parts = |utility: &f64| {
            let utility = if utility.is_nan() { f64::NEG_INFINITY } else { *utility };
            (utility / sensitivity.get() * PARTS as f64).clamp(-limit, limit).floor() as i64
        };
        let utilities: Vec<i64> = utilities.0.iter().map(parts).collect();
        let mut stream = self.key()?.stream(0);
        let coefficient = Coefficient::new(epsilon, SENSITIVITY);
        let choose = if self.mechanism.permute_and_flip { permute_and_flip } else { exponential };
        choose(&utilities, coefficient, &mut stream).ok_or(wrong)
    }
}
