//! The complete plan of a decision tree.

use super::{Recipe, Splits, cells::Cells};
use crate::{
    Error, Input,
    layer::{DecisionTree, Spec},
    learner::{Subject, loss::Loss, sums::Sums},
};

/// All settings of a run, fixed before the first record is read.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is paid for: the runs and their cost.
    pub sums: Sums,
    /// The largest depth of the tree.
    pub depth: usize,
    /// How splits are chosen.
    pub splits: Splits,
    /// The public seed of random splits.
    pub seed: u64,
    /// Number of classes; `None` if numbers are predicted.
    pub classes: Option<usize>,
    /// The cells of the histograms.
    pub(super) cells: Cells,
}

/// The default seed of random splits: any number is as good.
const SEED: u64 = 1;
/// The deepest trees that are chosen without a setting.
const DEEPEST: f64 = 8.0;
/// The deepest trees with random splits that are chosen without a setting.
const DEEPEST_RANDOM: f64 = 8.0;
/// The most numbers of a release.
const MOST_NUMBERS: usize = 1 << 24;
/// A usual number of runs, for settings that state the noise of a run instead of ε.
const USUAL_RUNS: f64 = 6.0;

impl Plan {
    /// Completes the settings for a tree, from public facts. Nothing is charged yet.
    pub fn new(recipe: &Recipe, subject: &Subject<'_>) -> Result<Self, Error> {
        subject.check_schema()?;
        let records = recipe.records.or(subject.facts.records).filter(|records| *records > 0);
        let records = records.ok_or(Error::Missing { what: Input::RecordCount })?;
        let classes = subject.facts.classes;
        let width: usize = subject.shape.iter().product();
        let cells = Cells::new(subject.schema, width, classes);
        if width == 0 {
            let found = "0 features long".into();
            return Err(Error::Setting { name: "an example", found, expected: "one feature or more" });
        }
        let delta = recipe.privacy.delta_for(records)?;
        let noise = match recipe.privacy.noise_multiplier {
            Some(noise) => noise / USUAL_RUNS.sqrt(),
            None => recipe.privacy.gaussian_noise(delta, 1)?,
        };
        let signal = signal(records as f64, noise, cells.columns());
        let is_hidden = signal < least_signal(classes);
        let splits = recipe.splits.unwrap_or(if is_hidden { Splits::Random } else { Splits::Measured });
        let usual = match splits {
            // More classes need more questions.
            Splits::Measured => {
                let share = classes.map_or(1.0, |classes| classes as f64 / 4.0);
                ((signal * share).log2() - 3.3).round().clamp(1.0, DEEPEST)
            }
            Splits::Random => (3.0 * records as f64 / noise).log2().floor().clamp(0.0, DEEPEST_RANDOM),
        };
        let mut depth = recipe.depth.unwrap_or(usual as usize);
        let too_deep = |depth: usize| {
            depth > DecisionTree::DEEPEST
                || numbers(&cells, splits, depth).is_none_or(|all| all > MOST_NUMBERS)
        };
        while recipe.depth.is_none() && depth > 0 && too_deep(depth) {
            depth -= 1;
        }
        if too_deep(depth) {
            let expected = "at most 12, and less for tables with many columns, categories or classes";
            return Err(Error::Setting { name: "depth", found: depth.to_string(), expected });
        }
        let runs = if splits == Splits::Measured { depth as u64 + 1 } else { 1 };
        let dimension = numbers(&cells, splits, depth).unwrap_or(MOST_NUMBERS);
        let sums = Sums::new(&recipe.privacy, records, runs, dimension)?;
        let seed = recipe.tree_seed.unwrap_or(SEED);
        Ok(Self { sums, depth, splits, seed, classes, cells })
    }

    /// The loss that defines the meaning of the outputs.
    #[must_use]
    pub fn loss(&self) -> Loss {
        match self.classes {
            None => Loss::Squared,
            Some(classes) if classes > 2 => Loss::CrossEntropy { label_smoothing: 0.0 },
            Some(_) => Loss::BinaryCrossEntropy,
        }
    }

    /// Number of outputs of the model.
    pub(super) fn outputs(&self) -> usize {
        self.loss().outputs(self.classes.unwrap_or(1))
    }

    /// The layers of the model.
    pub(super) fn layers(&self) -> Vec<Spec> {
        vec![Spec::DecisionTree { depth: self.depth, outputs: self.outputs() }]
    }
}

/// Below this signal, noise hides most splits, and random ones are better (docs/evidence.md).
fn least_signal(classes: Option<usize>) -> f64 {
    classes.map_or(50.0, |classes| 2.5 * (classes as f64).powi(2))
}

/// The records over the noise in a cell of a histogram, if there were one release.
fn signal(records: f64, noise: f64, columns: usize) -> f64 {
    records / (noise * (columns as f64).sqrt())
}

impl Plan {
    /// Whether noise hides which splits are good.
    pub(super) fn is_hidden(&self) -> bool {
        let noise = self.sums.noise() / (self.sums.runs as f64).sqrt();
        let signal = signal(self.sums.records as f64, noise, self.cells.columns());
        signal < least_signal(self.classes)
    }
}

/// Number of numbers of the longest release; `None` if there are too many to count.
fn numbers(cells: &Cells, splits: Splits, depth: usize) -> Option<usize> {
    let leaves = 1_usize.checked_shl(u32::try_from(depth).ok()?)?.checked_mul(cells.values())?;
    let histograms = match splits {
        Splits::Measured if depth > 0 => {
            cells.count().checked_mul(cells.values())?.checked_mul(1_usize.checked_shl(depth as u32 - 1)?)?
        }
        _ => 0,
    };
    Some(leaves.max(histograms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::PublicFacts;

    fn planned(records: u64, width: usize, classes: usize, epsilon: f64) -> Plan {
        let mut recipe = Recipe { records: Some(records), ..Recipe::default() };
        (recipe.privacy.epsilon, recipe.privacy.delta) = (Some(epsilon), Some(1e-5));
        let facts = PublicFacts { records: None, classes: Some(classes) };
        let shape = [width];
        Plan::new(&recipe, &Subject { shape: &shape, are_features: false, facts, schema: None }).unwrap()
    }

    /// Breast cancer at ε = 1, and digits at ε = 3.
    #[test]
    fn two_classes_need_fewer_records_than_ten_for_measured_splits() {
        assert_eq!(planned(455, 30, 2, 1.0).splits, Splits::Measured);
        assert_eq!(planned(1437, 64, 10, 3.0).splits, Splits::Random);
    }

    /// MNIST at ε = 1, where measured splits of ten classes were best at depth 6 to 8.
    #[test]
    fn trees_of_more_classes_are_deeper() {
        let (few, many) = (planned(60_000, 784, 2, 1.0), planned(60_000, 784, 10, 1.0));
        assert_eq!((few.splits, many.splits), (Splits::Measured, Splits::Measured));
        assert_eq!((few.depth, many.depth), (5, 7));
    }
}
