//! Several quantiles of one column, in order.

use super::{
    Bounds, Quantile,
    quantile::{Runs, check},
};
use crate::{
    Error, Event, Neighbors,
    ledger::Paid,
    mechanism::{Mechanism, Release, Sealed, Sensitive, Within},
    noise::random::Stream,
    number::format_brief,
    units::{Epsilon, Probability},
};

/// Several quantiles of the same values. A larger quantile is never a smaller number.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantiles {
    /// The bounds to which every number is clamped.
    pub bounds: Bounds,
    /// The quantiles, such as 0.25, 0.5 and 0.75.
    pub quantiles: Vec<Probability>,
    /// ε of each quantile, at least 10⁻¹¹.
    pub epsilon: Epsilon,
}

impl Quantiles {
    /// Quantiles that together cost this ε; each has an equal share.
    pub fn for_epsilon(bounds: Bounds, quantiles: Vec<Probability>, epsilon: Epsilon) -> Result<Self, Error> {
        let epsilon = Epsilon::new(epsilon.get() / quantiles.len().max(1) as f64)?;
        Ok(Self { bounds, quantiles, epsilon })
    }

    fn each(&self) -> impl Iterator<Item = Quantile> + '_ {
        let (bounds, epsilon) = (self.bounds, self.epsilon);
        self.quantiles.iter().map(move |quantile| Quantile { bounds, quantile: *quantile, epsilon })
    }

    /// Chooses all quantiles. All are within their stated errors with probability 95 %.
    ///
    /// # Theorem
    /// (THEORY, Several quantiles) Each of k quantiles fails in one case of 20k. If no answer is off by more than
    /// E records, exchanging two answers that are out of order leaves both within E records.
    fn choose(&self, neighbors: Neighbors, runs: &Runs, stream: &mut Stream) -> Vec<Release> {
        let one_in = 20.0 * self.quantiles.len() as f64;
        let releases: Vec<Release> =
            self.each().map(|quantile| quantile.choose(neighbors, runs, one_in, stream)).collect();
        let errors = releases.iter().map(|release| match release.within {
            Within::Rank(records) => records,
            Within::Value(_) | Within::Secret => f64::INFINITY,
        });
        let largest = errors.fold(0.0, f64::max);
        let mut values: Vec<f64> = releases.iter().map(|release| release.value).collect();
        values.sort_by(f64::total_cmp);
        // The place of each quantile among all of them.
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|one, other| self.quantiles[*one].get().total_cmp(&self.quantiles[*other].get()));
        let mut answers = vec![Release { value: 0.0, within: Within::Rank(largest) }; values.len()];
        for (place, value) in order.into_iter().zip(values) {
            answers[place].value = value;
        }
        answers
    }
}

impl Sealed for Quantiles {}

impl Mechanism for Quantiles {
    /// The events of all quantiles.
    fn event(&self, neighbors: Neighbors) -> Event {
        Event::Composed(self.each().map(|quantile| quantile.event(neighbors)).collect())
    }

    fn check(&self, _: Neighbors) -> Result<(), Error> {
        if self.quantiles.is_empty() {
            return Err(Error::OutOfRange {
                what: "the number of quantiles",
                value: 0.0,
                range: "[1, 2^53]",
            });
        }
        check(self.epsilon)
    }
}

impl std::fmt::Display for Quantiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let quantiles: Vec<String> = self.quantiles.iter().map(|q| format_brief(q.get())).collect();
        write!(
            f,
            "quantiles {} of numbers clamped to {} by the exponential mechanism with epsilon {} each",
            quantiles.join(", "),
            self.bounds,
            format_brief(self.epsilon.get())
        )
    }
}

impl Paid<Quantiles> {
    /// Returns the quantiles, in the order in which they were asked for.
    pub fn run(mut self, values: &Sensitive<Vec<f64>>) -> Result<Vec<Release>, Error> {
        let mut stream = self.key()?.stream(0);
        let runs = Quantile::runs(self.mechanism.bounds, &values.0);
        Ok(self.mechanism.choose(self.neighbors, &runs, &mut stream))
    }
}

#[cfg(test)]
mod tests;
