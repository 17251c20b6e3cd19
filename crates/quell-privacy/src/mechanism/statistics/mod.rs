//! Statistics of columns: counts, sums, means, histograms, quantiles, sums and means by group.

mod additive;
mod bounded;
mod count;
mod decimals;
mod enclosure;
pub(super) mod grid;
mod grouped;
mod histogram;
mod median;
mod moments;
mod price;
mod quantile;

pub use additive::Additive;
pub use bounded::{Bounds, Sum};
pub use count::{Count, NoisyThreshold};
pub use enclosure::Enclosure;
pub use grouped::{GroupedMean, GroupedSum, KeyedNumber};
pub use histogram::{Histogram, StableHistogram};
pub use median::SmoothMedian;
pub use moments::{Mean, Variance};
pub use price::Price;
pub use quantile::{Quantile, Range};
