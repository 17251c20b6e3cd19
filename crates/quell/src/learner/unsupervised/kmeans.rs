//! k-means: which runs there are, and what becomes of their releases.

use super::{
    Clusters, Facts,
    lloyd::Lloyd,
    seeding::Points,
    survey::{Survey, WIDE},
    tree::Tree,
    vectors::Stage,
};
use crate::random::PublicRandom;

/// Runs that find mean, distance and moments where there are many columns.
const MOMENT_SURVEY: u64 = 8;
/// Runs that find mean and distance where there are few columns.
const SHORT_SURVEY: u64 = 2;
/// The radius of the moments, in usual distances.
const REACH: f64 = 0.8;
/// Points that are drawn to find the first centres.
const DRAWN: usize = 4000;
/// Choices of first centres among the drawn points.
const ATTEMPTS: usize = 3;
/// The public seed of the drawn points.
const SEED: u64 = 0x6b6d_6561;
/// The most numbers in one release of a tree.
const LARGEST_RELEASE: usize = 1 << 22;

/// How many runs of each kind there are: public numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    pub(super) clusters: usize,
    /// Runs that divide the space; `None` if the first centres are found from moments.
    pub(super) levels: Option<u64>,
    /// Runs that move the centres.
    pub(super) iterations: u64,
}

impl Schedule {
    /// The usual numbers. `noise` is that of one Gaussian release with the whole guarantee.
    pub(super) fn new(clusters: usize, width: usize, records: f64, noise: f64) -> Self {
        let signal = signal_of_cluster(records, noise, clusters);
        if width > 2 * clusters {
            let iterations = match signal {
                ..12.0 => 0,
                ..500.0 => 4,
                _ => 8,
            };
            return Self { clusters, levels: None, iterations };
        }
        let mut levels = ((records / noise).log2().round() - 4.0).clamp(3.0, 10.0) as u64;
        while levels > 3 && most_leaves(levels).saturating_mul(1 + 2 * width) > LARGEST_RELEASE {
            levels -= 1;
        }
        Self { clusters, levels: Some(levels), iterations: if signal < 200.0 { 8 } else { 4 } }
    }

    fn survey(self) -> u64 {
        if self.levels.is_some() { SHORT_SURVEY } else { MOMENT_SURVEY }
    }

    /// Number of all runs.
    pub(super) fn runs(self) -> u64 {
        self.survey() + self.levels.unwrap_or(0) + self.iterations
    }

    /// The most numbers that a run needs.
    pub(super) fn dimension(self, width: usize) -> usize {
        let Some(levels) = self.levels else {
            let directions = self.most_directions(width);
            return (width * (width + 1) / 2).max(self.clusters * (1 + directions));
        };
        (most_leaves(levels) * (1 + 2 * width)).max(self.clusters * (1 + width)).max(width)
    }

    /// The most directions in which clusters are sought.
    fn most_directions(self, width: usize) -> usize {
        width.min(self.clusters.max(10))
    }
}

/// Records of a cluster, if all are equally large, in standard deviations of noise.
pub(super) fn signal_of_cluster(records: f64, noise: f64, clusters: usize) -> f64 {
    records / (noise * clusters as f64)
}

/// The most leaves that the last run of `levels` runs measures.
fn most_leaves(levels: u64) -> usize {
    1 << levels.saturating_sub(1).min(30)
}

/// The estimates so far.
#[derive(Clone, Debug)]
pub(super) struct KMeans {
    facts: Facts,
    schedule: Schedule,
    survey: Survey,
    /// Number of runs that are over.
    done: u64,
    tree: Option<Tree>,
    lloyd: Option<Lloyd>,
}

impl KMeans {
    pub(super) fn new(facts: Facts, schedule: Schedule) -> Self {
        let survey = Survey::new(facts, schedule.survey(), true, REACH);
        let mut start = Self { facts, schedule, survey, done: 0, tree: None, lloyd: None };
        start.prepare();
        start
    }

    /// What the next run sums; `None` if all runs are over.
    pub(super) fn stage(&self) -> Option<Stage<'_>> {
        let centre = &*self.survey.centre;
        if self.done >= self.schedule.runs() {
            return None;
        }
        match (self.survey.stage(), &self.lloyd, &self.tree) {
            (Some(stage), ..) => Some(stage),
            (None, Some(lloyd), _) => Some(Stage::Clusters { centre, lloyd }),
            (None, None, tree) => tree.as_ref().map(|tree| Stage::Leaves { centre, tree }),
        }
    }

    /// Uses a release; `None` if it was lost.
    pub(super) fn apply(&mut self, released: Option<&[f64]>) {
        if self.survey.stage().is_some() {
            self.survey.apply(released);
        } else if let Some(released) = released {
            match (&mut self.lloyd, &mut self.tree) {
                (Some(lloyd), _) => lloyd.apply(&self.facts, released),
                (None, Some(tree)) => tree.apply(released),
                (None, None) => {}
            }
        }
        self.done += 1;
        self.prepare();
    }

    /// Makes what the next run needs: the tree, or the first centres.
    fn prepare(&mut self) {
        let Schedule { levels, .. } = self.schedule;
        if self.done == self.schedule.survey() && levels.is_some() {
            self.tree = Some(Tree::new(self.facts, self.survey.distance));
        }
        if self.done == self.schedule.survey() + levels.unwrap_or(0) {
            self.lloyd = Some(self.start());
        }
    }

    /// The first centres, from the estimates so far.
    fn start(&self) -> Lloyd {
        match (&self.tree, self.schedule.levels) {
            (Some(tree), _) => tree.clusters(self.schedule.clusters),
            (None, Some(_)) => Tree::new(self.facts, self.survey.distance).clusters(self.schedule.clusters),
            (None, None) => self.gaussian_start(),
        }
    }

    /// The centres of clusters of a normal distribution with the moments of the records.
    ///
    /// Clusters are sought in the directions whose variance is above the noise.
    fn gaussian_start(&self) -> Lloyd {
        let (Facts { width, records, .. }, clusters) = (self.facts, self.schedule.clusters);
        let most = self.schedule.most_directions(width);
        let spectrum = self.survey.spectrum(most);
        let edge = spectrum.edge;
        let above = spectrum.values.iter().filter(|value| **value > edge).count();
        let dimension = above.clamp(clusters.min(2).min(width), most);
        let spreads: Vec<f64> = spectrum.values[..dimension]
            .iter()
            .map(|value| {
                // Noise lifts the eigenvalues of a symmetric matrix, and so much is taken off again.
                let lowered = value - edge * edge / (4.0 * value.max(edge));
                (1.2 * lowered.max(0.1 * edge) / records).sqrt()
            })
            .collect();
        let mut random = PublicRandom::new(SEED);
        let values: Vec<f64> = (0..DRAWN * dimension)
            .map(|place| spreads[place % dimension] * f64::from(random.normal()))
            .collect();
        let points = Points { values: &values, dimension, weights: &vec![1.0; DRAWN] };
        let centres = points.cluster(clusters, ATTEMPTS, &mut random);
        let widening =
            if signal_of_cluster(records, self.facts.whole_noise, clusters) >= 500.0 { 1.3 } else { 1.0 };
        let radius = (1.1 * widening * points.inertia(&centres).sqrt()).min(WIDE * self.survey.distance);
        let basis = spectrum.vectors[..dimension * width].to_vec();
        Lloyd::new(Some(basis), dimension, centres, radius)
    }

    /// The clusters that follow from the releases so far.
    pub(super) fn model(&self) -> Clusters {
        let lloyd = self.lloyd.clone().unwrap_or_else(|| self.start());
        Clusters {
            width: self.facts.width,
            centres: lloyd.outputs(&self.survey.centre),
            sizes: lloyd.sizes.clone(),
            size_noise: 2.0 * self.facts.noise,
        }
    }
}
