//! Statistics of columns: counts, sums, means, histograms, quantiles, by group, together, by user.

mod additive;
mod bounded;
mod count;
mod decimals;
mod enclosure;
pub(super) mod grid;
mod grouped;
mod grouped_quantile;
mod histogram;
mod median;
mod moments;
mod per_user;
mod price;
mod quantile;
mod quantiles;
mod together;

pub use additive::Additive;
pub use bounded::{Bounds, Sum};
pub use count::{Count, NoisyThreshold};
pub use enclosure::Enclosure;
pub use grouped::{GroupedMean, GroupedSum, KeyedNumber};
pub use grouped_quantile::GroupedQuantile;
pub use histogram::{Histogram, StableHistogram};
pub use median::SmoothMedian;
pub use moments::{Mean, Variance};
pub use per_user::PerUser;
pub use price::Price;
pub use quantile::{Quantile, Range};
pub use quantiles::Quantiles;
pub use together::Together;
