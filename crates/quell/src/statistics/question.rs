//! Questions about a table, and the mechanisms that answer them.

use quell_privacy::{
    Neighbors,
    ledger::{Book, Ledger, Paid, State, Unit},
    mechanism::{
        Bounds, Count, Histogram, Mean, Mechanism, Noise, NoisyThreshold, PerUser, Price, Quantile,
        Quantiles, Range, Sensitive, SmoothMedian, StableHistogram, Sum, Variance,
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
    /// Several quantiles of a column. A larger quantile is never a smaller number.
    Quantiles {
        /// Name of the column.
        column: String,
        /// Range that every number is clamped to.
        bounds: Bounds,
        /// Which quantiles, such as 0.25, 0.5 and 0.75.
        quantiles: Vec<Probability>,
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

impl std::fmt::Display for Statistic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count => f.write_str("count"),
            Self::Reaches { threshold } => write!(f, "count reaches {threshold}"),
            Self::Sum { column, .. } => write!(f, "sum of {column}"),
            Self::Mean { column, .. } => write!(f, "mean of {column}"),
            Self::Variance { column, .. } => write!(f, "variance of {column}"),
            Self::Histogram { column, .. } => write!(f, "histogram of {column}"),
            Self::Grouped(grouped) => grouped.fmt(f),
            Self::Quantile { column, quantile, .. } if quantile.get() == 0.5 => {
                write!(f, "median of {column}")
            }
            Self::Quantile { column, quantile, .. } => write!(f, "quantile {} of {column}", quantile.get()),
            Self::Quantiles { column, .. } => write!(f, "quantiles of {column}"),
            Self::SmoothMedian { column, .. } => write!(f, "smooth median of {column}"),
            Self::Range { column, inside, .. } => write!(f, "range of {column} with {} inside", inside.get()),
        }
    }
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
///
/// Everything that the question lends lives for `'a`.
pub trait Visitor<'a, A = Answer> {
    /// The result of the operation.
    type Output;

    /// Receives functions that make the mechanism for an ε, read its data, and run it.
    ///
    /// Read the data before paying, so that an error in the question is found before anything is charged.
    fn visit<M: Mechanism + 'a, D: 'a>(
        self,
        make: impl Fn(f64) -> Result<M, Error> + 'a,
        read: impl FnOnce() -> Result<D, Error> + 'a,
        run: impl FnOnce(Paid<M>, D) -> Result<A, quell_privacy::Error> + 'a,
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
    pub fn ask<'a, B: Book>(
        &'a self,
        ledger: &mut Ledger<B>,
        records: &'a Selection<'a>,
    ) -> Result<Answer, Error> {
        let state = ledger.state()?.clone();
        self.visit(&state, records, Charge { ledger, epsilon: self.epsilon })?
    }

    /// Passes the mechanism that answers this question to a visitor.
    ///
    /// If the records of each user are limited, the mechanism has noise for all records of a user.
    pub fn visit<'a, V: Visitor<'a>>(
        &'a self,
        state: &State,
        records: &'a Selection<'a>,
        visitor: V,
    ) -> Result<V::Output, Error> {
        check_unit(state, self.one_record_per_user, records.most_per_user())?;
        let (neighbors, deltas) = (state.terms().neighbors, Deltas::new(self.delta, state)?);
        let asked = Asked { noise: self.noise, neighbors, deltas };
        match records.most_per_user() {
            Some(most) => self.statistic.visit(asked, records, Limited { most, visitor }),
            None => self.statistic.visit(asked, records, visitor),
        }
    }
}

/// How a statistic is asked for: its noise, the neighbour relation and its δ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) noise: Noise,
    pub(super) neighbors: Neighbors,
    pub(super) deltas: Deltas,
}

impl Statistic {
    /// Whether the answer has a δ of its own.
    pub(super) fn has_delta(&self) -> bool {
        matches!(
            self,
            Self::Histogram { keys: None, .. }
                | Self::Grouped(Grouped::UnknownPairs { .. })
                | Self::SmoothMedian { .. }
        )
    }

    /// Passes the mechanism to a visitor, with noise for all records of a user.
    ///
    /// The visitor makes the charge one for users.
    pub(super) fn visit<'a, V: Visitor<'a>>(
        &'a self,
        Asked { noise, neighbors, deltas }: Asked,
        records: &'a Selection<'a>,
        visitor: V,
    ) -> Result<V::Output, Error> {
        let most = records.most_per_user().unwrap_or(1);
        let price = move |epsilon: f64| {
            let epsilon = Epsilon::new(epsilon)?;
            let price = match noise {
                Noise::Laplace => Price::laplace(epsilon),
                Noise::Gaussian => Price::gaussian(epsilon, deltas.of_noise),
            };
            Ok::<_, Error>(price.under(neighbors).for_users_with(most))
        };
        // ε of one record, for mechanisms whose ε adds up over the records of a user.
        let share =
            move |epsilon: f64| Ok::<_, Error>(PerUser::epsilon_of_record(Epsilon::new(epsilon)?, most)?);
        let own = move |epsilon: f64| {
            Ok::<_, Error>(PerUser::share_of_record(Epsilon::new(epsilon)?, deltas.own, most)?)
        };
        let stable = move |epsilon: f64| {
            let (epsilon, delta) = own(epsilon)?;
            Ok(StableHistogram::for_epsilon(epsilon, delta, neighbors)?)
        };
        let number = |name: &'static str| move |release| Answer::Number { name, release };
        Ok(match self {
            Self::Count => visitor.visit(
                move |epsilon| Ok(Count::for_epsilon(price(epsilon)?)?),
                || Ok(Sensitive::new(records.count()?)),
                move |paid, data| paid.run(&data).map(number("count")),
            ),
            Self::Reaches { threshold } => visitor.visit(
                move |epsilon| Ok(NoisyThreshold::for_epsilon(*threshold, price(epsilon)?)?),
                || Ok(Sensitive::new(records.count()?)),
                |paid, data| paid.run(&data).map(Answer::Truth),
            ),
            Self::Sum { column, bounds } => visitor.visit(
                move |epsilon| Ok(Sum::for_epsilon(*bounds, price(epsilon)?)?),
                || numbers(records, column),
                move |paid, data| paid.run(&data).map(number("sum")),
            ),
            Self::Mean { column, bounds } => visitor.visit(
                move |epsilon| Ok(Mean::for_epsilon(*bounds, price(epsilon)?)?),
                || numbers(records, column),
                move |paid, data| paid.run(&data).map(number("mean")),
            ),
            Self::Variance { column, bounds } => visitor.visit(
                move |epsilon| Ok(Variance::for_epsilon(*bounds, price(epsilon)?)?),
                || numbers(records, column),
                move |paid, data| paid.run(&data).map(number("variance")),
            ),
            Self::Histogram { column, keys: Some(keys) } => {
                check_keys("keys", keys)?;
                check_spelling(records, column, keys)?;
                visitor.visit(
                    move |epsilon| Ok(Histogram::for_epsilon(keys.clone(), price(epsilon)?)?),
                    || keys_of(records, column),
                    |paid, data| paid.run(&data).map(Answer::Bins),
                )
            }
            Self::Histogram { column, keys: None } => visitor.visit(
                stable,
                || keys_of(records, column),
                |paid, data| {
                    let least = paid.threshold();
                    let bins = paid.run(&data)?;
                    Ok(if bins.is_empty() { Answer::NoKey { least } } else { Answer::Bins(bins) })
                },
            ),
            Self::Grouped(grouped) => grouped.visit(records, price, stable, share, visitor)?,
            Self::Quantile { column, bounds, quantile } => visitor.visit(
                move |epsilon| {
                    Ok(Quantile { bounds: *bounds, quantile: *quantile, epsilon: share(epsilon)? })
                },
                || numbers(records, column),
                move |paid, data| {
                    let name = if quantile.get() == 0.5 { "median" } else { "quantile" };
                    paid.run(&data).map(number(name))
                },
            ),
            Self::Quantiles { column, bounds, quantiles } => visitor.visit(
                move |epsilon| Ok(Quantiles::for_epsilon(*bounds, quantiles.clone(), share(epsilon)?)?),
                || numbers(records, column),
                move |paid, data| {
                    let named = |releases: Vec<_>| {
                        quantiles.iter().map(|quantile| quantile.get()).zip(releases).collect()
                    };
                    Ok(Answer::Quantiles(named(paid.run(&data)?)))
                },
            ),
            Self::SmoothMedian { column, bounds } => visitor.visit(
                move |epsilon| {
                    let (epsilon, delta) = own(epsilon)?;
                    Ok(SmoothMedian::new(*bounds, epsilon, delta)?)
                },
                || numbers(records, column),
                move |paid, data| paid.run(&data).map(number("median")),
            ),
            Self::Range { column, bounds, inside } => visitor.visit(
                // Each end of the range costs half of ε.
                move |epsilon| Ok(Range { bounds: *bounds, inside: *inside, epsilon: share(epsilon / 2.0)? }),
                || numbers(records, column),
                |paid, data| paid.run(&data).map(Answer::Ends),
            ),
        })
    }
}

/// The δ of Gaussian noise, and the δ of a statistic that has its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deltas {
    of_noise: Delta,
    own: Delta,
}

impl Deltas {
    pub(super) fn new(given: Option<f64>, state: &State) -> Result<Self, Error> {
        Ok(Self {
            of_noise: given.map_or(Ok(state.budget().delta), Delta::new)?,
            own: Delta::new(given.unwrap_or_else(|| state.usual_delta()))?,
        })
    }

    /// The δ of Gaussian noise.
    pub(super) fn of_noise(self) -> Delta {
        self.of_noise
    }

    /// The δ of one of `parts` statistics that have their own.
    ///
    /// If there is `noise` besides, it needs a part of the same δ: the others have at most half of it together.
    pub(super) fn divided(self, parts: usize, noise: Noise) -> Result<Self, Error> {
        let all = match noise {
            Noise::Laplace => self.own.get(),
            Noise::Gaussian => self.own.get().min(0.5 * self.of_noise.get()),
        };
        Ok(Self { own: Delta::new(all / parts.max(1) as f64)?, ..self })
    }
}

/// Makes the charge of a statistic one for users with at most `most` records.
pub(super) struct Limited<V> {
    pub(super) most: u32,
    pub(super) visitor: V,
}

impl<'a, A, V: Visitor<'a, A>> Visitor<'a, A> for Limited<V> {
    type Output = V::Output;

    fn visit<M: Mechanism + 'a, D: 'a>(
        self,
        make: impl Fn(f64) -> Result<M, Error> + 'a,
        read: impl FnOnce() -> Result<D, Error> + 'a,
        run: impl FnOnce(Paid<M>, D) -> Result<A, quell_privacy::Error> + 'a,
    ) -> V::Output {
        let records = self.most;
        self.visitor.visit(
            move |epsilon| Ok(PerUser { mechanism: make(epsilon)?, records }),
            read,
            |paid, data| run(paid.of_records(), data),
        )
    }
}

/// Refuses a ledger that protects users, unless the records of each user are limited.
///
/// A ledger that protects records needs no limit. It refuses one: a record that is removed would let another
/// record of its user in, so two records would change.
pub(super) fn check_unit(
    state: &State,
    one_record_per_user: bool,
    most_per_user: Option<u32>,
) -> Result<(), Error> {
    let (found, expected) = match (state.terms().unit, one_record_per_user, most_per_user) {
        (Unit::User, false, None) => (
            "user, and a table may have several records of one user",
            "example, or a table with a limit on the records of each user",
        ),
        (Unit::Example, _, Some(_)) => (
            "example, and the records of each user are limited",
            "user, or no limit on the records of a user",
        ),
        _ => return Ok(()),
    };
    Err(Error::Setting { name: "unit", found: found.into(), expected })
}

/// The numbers of a column; NaN where a number is missing.
pub(super) fn numbers(records: &Selection<'_>, column: &str) -> Result<Sensitive<Vec<f64>>, Error> {
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

impl<'a, A, B: Book> Visitor<'a, A> for Charge<'_, B> {
    type Output = Result<A, Error>;

    fn visit<M: Mechanism + 'a, D: 'a>(
        self,
        make: impl Fn(f64) -> Result<M, Error> + 'a,
        read: impl FnOnce() -> Result<D, Error> + 'a,
        run: impl FnOnce(Paid<M>, D) -> Result<A, quell_privacy::Error> + 'a,
    ) -> Self::Output {
        let (mechanism, data) = (make(self.epsilon)?, read()?);
        Ok(run(self.ledger.charge(mechanism)?, data)?)
    }
}
