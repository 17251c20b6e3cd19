//! The complete plan of a model without labels.

use quell_privacy::units::Delta;

use super::{
    Facts, Kind, Recipe, components,
    kmeans::{Schedule, signal_of_cluster},
};
use crate::{
    Error, Input,
    learner::{Subject, sums::Sums},
};

/// All settings of a run, fixed before the first record is read.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is paid for: the runs and their cost.
    pub sums: Sums,
    /// Number of features.
    pub width: usize,
    /// Number of columns. The features of one column have length at most one together.
    columns: usize,
    pub(super) goal: Goal,
}

/// What is sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    Clusters(Schedule),
    Components(usize),
}

/// The most features of an example. Moments have half the square of this many numbers.
const MOST_FEATURES: usize = 4096;
/// The most numbers that a run releases.
const MOST_NUMBERS: usize = 1 << 24;
/// The most clusters.
const MOST_CLUSTERS: usize = 1 << 16;
/// The most runs of one kind, far beyond any use.
const MOST_RUNS: u64 = 1000;
/// Fewer records than this for each cluster, in standard deviations of noise, give poor clusters.
const FEW: f64 = 12.0;
/// A usual number of runs, for settings that state the noise of a run instead of ε.
const USUAL_RUNS: f64 = 16.0;

impl Plan {
    /// Completes the settings for a model, from public facts. Nothing is charged yet.
    pub fn new(recipe: &Recipe, kind: Kind, subject: &Subject<'_>) -> Result<Self, Error> {
        recipe.check(kind)?;
        subject.check_schema()?;
        let records = recipe.records.or(subject.facts.records).filter(|records| *records > 0);
        let records = records.ok_or(Error::Missing { what: Input::RecordCount })?;
        let width: usize = subject.shape.iter().product();
        if !(1..=MOST_FEATURES).contains(&width) {
            let expected = "1 to 4096 features; compute fewer with --features, or leave columns out";
            return Err(Error::Setting {
                name: "an example",
                found: format!("{width} features long"),
                expected,
            });
        }
        let columns = subject.schema.map_or(width, |schema| {
            // A number with an indicator for unknown cells is at most 1 or the indicator, never both.
            schema.columns.len()
        });
        let delta = recipe.privacy.delta_for(records)?;
        let goal = match kind {
            Kind::KMeans => Goal::Clusters(schedule(recipe, records, width, delta)?),
            Kind::Components => Goal::Components(checked(
                "components",
                recipe.components,
                width,
                "a whole number from 1 to the number of features",
            )?),
        };
        let runs = goal.runs();
        let dimension = goal.dimension(width);
        if dimension > MOST_NUMBERS {
            return Err(Error::Setting {
                name: "clusters",
                found: format!("so many that a run releases {dimension} numbers"),
                expected: "fewer clusters, levels or features: at most 16777216 numbers",
            });
        }
        let sums = Sums::new(&recipe.privacy, records, runs, dimension)?;
        Ok(Self { sums, width, columns, goal })
    }

    /// The public numbers that estimates are made with.
    pub(super) fn facts(&self) -> Facts {
        let Sums { records, runs, .. } = self.sums;
        let noise = self.sums.noise();
        Facts {
            width: self.width,
            columns: self.columns as f64,
            records: records as f64,
            noise,
            whole_noise: noise / (runs as f64).sqrt(),
        }
    }

    /// A remark on public facts that make the model poor.
    pub(super) fn remark(&self) -> Option<String> {
        let Goal::Clusters(Schedule { clusters, .. }) = self.goal else { return None };
        let Facts { records, whole_noise, .. } = self.facts();
        (signal_of_cluster(records, whole_noise, clusters) < FEW).then(|| {
            "with so few records for each cluster, noise hides most of what distinguishes the clusters: \
             ask for fewer clusters, or for a larger ε"
                .into()
        })
    }
}

impl Goal {
    fn runs(self) -> u64 {
        match self {
            Self::Clusters(schedule) => schedule.runs(),
            Self::Components(_) => components::RUNS,
        }
    }

    fn dimension(self, width: usize) -> usize {
        match self {
            Self::Clusters(schedule) => schedule.dimension(width),
            Self::Components(_) => width * (width + 1) / 2,
        }
    }
}

/// The runs of k-means: those of the settings, and the usual numbers where they are missing.
fn schedule(recipe: &Recipe, records: u64, width: usize, delta: Delta) -> Result<Schedule, Error> {
    let most = usize::try_from(records).unwrap_or(usize::MAX).min(MOST_CLUSTERS);
    let clusters = checked(
        "clusters",
        recipe.clusters,
        most,
        "a whole number from 1 to the number of records, and at most 65536",
    )?;
    let noise = match recipe.privacy.noise_multiplier {
        Some(noise) => noise / USUAL_RUNS.sqrt(),
        None => recipe.privacy.gaussian_noise(delta, 1)?,
    };
    let mut schedule = Schedule::new(clusters, width, records as f64, noise);
    if let Some(given) = recipe.iterations.filter(|given| *given > MOST_RUNS) {
        return Err(Error::Setting {
            name: "iterations",
            found: given.to_string(),
            expected: "at most 1000",
        });
    }
    schedule.iterations = recipe.iterations.unwrap_or(schedule.iterations);
    match (&mut schedule.levels, recipe.levels) {
        (Some(levels), Some(given)) if (1..=14).contains(&given) => *levels = given,
        (_, None) => {}
        (levels, Some(given)) => {
            let expected = if levels.is_some() {
                "a whole number from 1 to 14"
            } else {
                "none: with more features than twice the clusters, the space is not divided"
            };
            return Err(Error::Setting { name: "levels", found: given.to_string(), expected });
        }
    }
    Ok(schedule)
}

/// A number of clusters or components, if it is in its range.
fn checked(
    name: &'static str,
    number: Option<usize>,
    most: usize,
    expected: &'static str,
) -> Result<usize, Error> {
    let found = number.map_or_else(|| "not given".into(), |number| number.to_string());
    number.filter(|number| (1..=most).contains(number)).ok_or(Error::Setting { name, found, expected })
}
