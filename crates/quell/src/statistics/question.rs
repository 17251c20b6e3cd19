//! Questions about a table, and the mechanisms that answer them.

use quell_privacy::{
    ledger::{Book, Ledger, Paid, State, Unit},
    mechanism::{
        Bounds, Count, Histogram, Mean, Mechanism, Noise, NoisyThreshold, Price, Quantile, Range, Sensitive,
        SmoothMedian, StableHistogram, Sum, Variance,
    },
    units::{Delta, Epsilon, Probability},
};

use super::{
    Answer, Grouped,
    groups::{check_keys, check_spelling},
};
use crate::{Error, data::Selection};

/// A statistic of the selected records. Columns, bounds and keys are public.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Statistic {
    /// Number of records.
    Count,
    /// Whether there are at least `threshold` records.
    Reaches {
        /// The number that the noisy count must reach.
        threshold: u64,
    },
    /// Sum of a column.
    Sum {
        /// Name of the column.
        column: String,
        /// Range that every number is clamped to.
        bounds: Bounds,
    },
    /// Mean of a column.
    Mean {
        /// Name of the column.
        column: String,
        /// Range that every number is clamped to.
        bounds: Bounds,
    },
    /// Variance of a column.
    Variance {
        /// Name of the column.
        column: String,
        /// Range that every number is clamped to.
        bounds: Bounds,
    },
    /// Number of records for each key of a column.
    Histogram {
        /// Name of the column.
        column: String,
        /// The keys. Without them, the answer shows the keys that many records have, at the cost of a δ.
        keys: Option<Vec<String>>,
    },
    /// A statistic for each key of a column.
    Grouped(Grouped),
    /// Quantile of a column.
    Quantile {
        /// Name of the column.
        column: String,
        /// Range that every number is clamped to.
        bounds: Bounds,
        /// Which quantile: 0.5 is the median.
        quantile: Probability,
    },
    /// Median of a column by smooth sensitivity.
    SmoothMedian {
        /// Name of the column.
        column: String,
        /// Range that every number is clamped to.
        bounds: Bounds,
    },
    /// Two numbers between which most records of a column lie.
    Range {
        /// Name of the column.
        column: String,
        /// Range that every number is clamped to.
        bounds: Bounds,
        /// Share of the records between the two numbers.
        inside: Probability,
    },
}

/// A statistic, with the privacy that its answer may cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The statistic.
    pub statistic: Statistic,
    /// Noise of counts and sums.
    pub noise: Noise,
    /// ε of the answer.
    pub epsilon: f64,
    /// δ of the answer, for Gaussian noise, unknown keys and smooth medians.
    ///
    /// By default, Gaussian noise uses the δ of the budget, and the others use a small part of that δ.
    pub delta: Option<f64>,
    /// Whether each user has one record. Without this, a ledger that protects users refuses the question.
    pub one_record_per_user: bool,
}

/// A generic operation on the mechanism of any question, whose answer is an `A`.
pub trait Visitor<A = Answer> {
    /// The result of the operation.
    type Output;

    /// Receives functions that make the mechanism for an ε, read its data, and run it.
    ///
    /// Read the data before paying, so that an error in the question is found before anything is charged.
    fn visit<M: Mechanism, D>(
        self,
        make: impl Fn(f64) -> Result<M, Error>,
        read: impl FnOnce() -> Result<D, Error>,
        run: impl FnOnce(Paid<M>, D) -> Result<A, quell_privacy::Error>,
    ) -> Self::Output;
}

impl Question {
    /// Creates a question at this ε, with Laplace noise.
    #[must_use]
    pub fn new(statistic: Statistic, epsilon: f64) -> Self {
        Self { statistic, noise: Noise::Laplace, epsilon, delta: None, one_record_per_user: false }
    }

    /// Pays for the answer and draws it.
    ///
    /// # Contract
    /// Where the ledger protects users, `one_record_per_user` is true only if each user has one record.
    pub fn ask<B: Book>(&self, ledger: &mut Ledger<B>, records: &Selection<'_>) -> Result<Answer, Error> {
        let state = ledger.state()?.clone();
        self.visit(&state, records, Charge { ledger, epsilon: self.epsilon })?
    }

    /// Passes the mechanism that answers this question to a visitor.
    pub fn visit<V: Visitor>(
        &self,
        state: &State,
        records: &Selection<'_>,
        visitor: V,
    ) -> Result<V::Output, Error> {
        check_unit(state, self.one_record_per_user)?;
        let neighbors = state.terms().neighbors;
        let noise_delta = self.delta.map_or(Ok(state.budget().delta), Delta::new)?;
        let own_delta = Delta::new(self.delta.unwrap_or_else(|| state.usual_delta()))?;
        let price = |epsilon: f64| {
            let epsilon = Epsilon::new(epsilon)?;
            let price = match self.noise {
                Noise::Laplace => Price::laplace(epsilon),
                Noise::Gaussian => Price::gaussian(epsilon, noise_delta),
            };
            Ok::<_, Error>(price.under(neighbors))
        };
        let stable =
            |epsilon: f64| Ok(StableHistogram::for_epsilon(Epsilon::new(epsilon)?, own_delta, neighbors)?);
        let number = |name: &'static str| move |release| Answer::Number { name, release };
        Ok(match &self.statistic {
            Statistic::Count => visitor.visit(
                |epsilon| Ok(Count::for_epsilon(price(epsilon)?)?),
                || Ok(Sensitive::new(records.count()?)),
                |paid, data| paid.run(&data).map(number("count")),
            ),
            Statistic::Reaches { threshold } => visitor.visit(
                |epsilon| Ok(NoisyThreshold::for_epsilon(*threshold, price(epsilon)?)?),
                || Ok(Sensitive::new(records.count()?)),
                |paid, data| paid.run(&data).map(Answer::Truth),
            ),
            Statistic::Sum { column, bounds } => visitor.visit(
                |epsilon| Ok(Sum::for_epsilon(*bounds, price(epsilon)?)?),
                || numbers(records, column),
                |paid, data| paid.run(&data).map(number("sum")),
            ),
            Statistic::Mean { column, bounds } => visitor.visit(
                |epsilon| Ok(Mean::for_epsilon(*bounds, price(epsilon)?)?),
                || numbers(records, column),
                |paid, data| paid.run(&data).map(number("mean")),
            ),
            Statistic::Variance { column, bounds } => visitor.visit(
                |epsilon| Ok(Variance::for_epsilon(*bounds, price(epsilon)?)?),
                || numbers(records, column),
                |paid, data| paid.run(&data).map(number("variance")),
            ),
            Statistic::Histogram { column, keys: Some(keys) } => {
                check_keys("keys", keys)?;
                check_spelling(records, column, keys)?;
                visitor.visit(
                    |epsilon| Ok(Histogram::for_epsilon(keys.clone(), price(epsilon)?)?),
                    || keys_of(records, column),
                    |paid, data| paid.run(&data).map(Answer::Bins),
                )
            }
            Statistic::Histogram { column, keys: None } => visitor.visit(
                stable,
                || keys_of(records, column),
                |paid, data| paid.run(&data).map(Answer::Bins),
            ),
            Statistic::Grouped(grouped) => grouped.visit(records, price, stable, visitor)?,
            Statistic::Quantile { column, bounds, quantile } => visitor.visit(
                |epsilon| {
                    Ok(Quantile { bounds: *bounds, quantile: *quantile, epsilon: Epsilon::new(epsilon)? })
                },
                || numbers(records, column),
                |paid, data| paid.run(&data).map(number("quantile")),
            ),
            Statistic::SmoothMedian { column, bounds } => visitor.visit(
                |epsilon| Ok(SmoothMedian::new(*bounds, Epsilon::new(epsilon)?, own_delta)?),
                || numbers(records, column),
                |paid, data| paid.run(&data).map(number("median")),
            ),
            Statistic::Range { column, bounds, inside } => visitor.visit(
                // Each end of the range costs half of ε.
                |epsilon| {
                    Ok(Range { bounds: *bounds, inside: *inside, epsilon: Epsilon::new(epsilon / 2.0)? })
                },
                || numbers(records, column),
                |paid, data| paid.run(&data).map(Answer::Ends),
            ),
        })
    }
}

/// Refuses a ledger that protects users, unless each user has one record.
pub(super) fn check_unit(state: &State, one_record_per_user: bool) -> Result<(), Error> {
    if state.terms().unit == Unit::User && !one_record_per_user {
        return Err(Error::Setting {
            name: "unit",
            found: "user, and a table may have several records of one user".into(),
            expected: "example, or a table with one record for each user",
        });
    }
    Ok(())
}

/// The numbers of a column; NaN where a number is missing.
fn numbers(records: &Selection<'_>, column: &str) -> Result<Sensitive<Vec<f64>>, Error> {
    Ok(Sensitive::new(
        records.numbers(column)?.into_iter().map(|number| number.unwrap_or(f64::NAN)).collect(),
    ))
}

/// The key of every record.
fn keys_of(records: &Selection<'_>, column: &str) -> Result<Sensitive<Vec<Option<String>>>, Error> {
    Ok(Sensitive::new(records.keys(column)?))
}

/// Charges the ledger and draws the answer.
pub(super) struct Charge<'l, B> {
    pub(super) ledger: &'l mut Ledger<B>,
    pub(super) epsilon: f64,
}

impl<A, B: Book> Visitor<A> for Charge<'_, B> {
    type Output = Result<A, Error>;

    fn visit<M: Mechanism, D>(
        self,
        make: impl Fn(f64) -> Result<M, Error>,
        read: impl FnOnce() -> Result<D, Error>,
        run: impl FnOnce(Paid<M>, D) -> Result<A, quell_privacy::Error>,
    ) -> Self::Output {
        let (mechanism, data) = (make(self.epsilon)?, read()?);
        Ok(run(self.ledger.charge(mechanism)?, data)?)
    }
}
