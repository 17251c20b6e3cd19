//! The complete plan of a factorization.

use quell_privacy::units::Delta;

use super::{Recipe, recipe::Scale};
use crate::{
    Error, Input,
    learner::{Subject, sums::Sums},
};

/// All settings of a run, fixed before the first rating is read.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is paid for: the runs and their cost.
    pub sums: Sums,
    /// Number of items in the public list.
    pub items: usize,
    /// Number of items with a bias.
    pub kept: usize,
    /// Number of items with factors; zero if no factors are found.
    pub paired: usize,
    pub(super) scale: Scale,
}

/// Runs for popularity and biases.
pub(super) const FIRST_RUNS: u64 = 2;
/// Runs for second moments.
const MOMENT_RUNS: u64 = 4;
/// The least number of users, in standard deviations of one release, with which factors are found.
const ENOUGH: f64 = 300.0;
/// The most items with factors. Second moments have half the square of this many numbers.
const MOST_PAIRED: u64 = 500;

impl Plan {
    /// Completes the settings from public facts. Nothing is charged yet.
    pub fn new(recipe: &Recipe, subject: &Subject<'_>) -> Result<Self, Error> {
        let scale = recipe.scale()?;
        let records = recipe.records.or(subject.facts.records).filter(|records| *records > 0);
        let records = records.ok_or(Error::Missing { what: Input::RecordCount })?;
        let items = subject.facts.classes.filter(|items| *items > 0);
        let items = items.filter(|_| subject.shape == [1]).ok_or_else(|| Error::Setting {
            name: "the data",
            found: "not a table of ratings with a public list of items".into(),
            expected: "a column for the user, the item and the rating, and a list of items",
        })?;
        let delta = recipe.privacy.delta_for(records)?;
        let has_factors = match recipe.factors {
            Some(given) => given,
            None => records as f64 / single_noise(recipe, delta)? >= ENOUGH,
        };
        let at_most = |count: u64| usize::try_from(count).unwrap_or(usize::MAX).min(items);
        let kept = at_most(records.div_ceil(2));
        let paired = if has_factors { at_most(records.div_ceil(3).min(MOST_PAIRED)) } else { 0 };
        let runs = FIRST_RUNS + if has_factors { MOMENT_RUNS } else { 0 };
        let dimension = items.max(2 * kept).max(paired * (paired + 1) / 2);
        let sums = Sums::new(&recipe.privacy, records, runs, dimension)?;
        Ok(Self { sums, items, kept, paired, scale })
    }

    /// A remark on public facts that make the model poor.
    pub(super) fn remark(&self) -> Option<String> {
        let noise = self.sums.noise() / (self.sums.runs as f64).sqrt();
        let is_hidden = (self.sums.records as f64) < ENOUGH * noise;
        (self.paired == 0 && is_hidden).then(|| {
            "with so few users at this ε, noise hides factors: everyone gets the most popular items that \
             they have not rated"
                .into()
        })
    }
}

/// The noise multiplier of one release with the whole guarantee.
fn single_noise(recipe: &Recipe, delta: Delta) -> Result<f64, Error> {
    match recipe.privacy.noise_multiplier {
        Some(noise) => Ok(noise / ((FIRST_RUNS + MOMENT_RUNS) as f64).sqrt()),
        None => recipe.privacy.gaussian_noise(delta, 1),
    }
}
