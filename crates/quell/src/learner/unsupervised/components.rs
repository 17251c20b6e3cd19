//! Principal components: which runs there are, and what becomes of their releases.

use super::{Components, Facts, survey::Survey, vectors::Stage};
use crate::features::Pca;

/// Number of runs: mean and distance, then moments.
pub(crate) const RUNS: u64 = 12;

/// The estimates so far.
#[derive(Clone, Debug)]
pub(super) struct Directions {
    facts: Facts,
    components: usize,
    survey: Survey,
}

impl Directions {
    pub(super) fn new(facts: Facts, components: usize) -> Self {
        let Facts { width, records, whole_noise, .. } = facts;
        // Much noise asks for a short radius, which cuts off long records.
        let noise = whole_noise * components as f64 * (width as f64).sqrt() / records;
        let reach = match noise {
            ..=0.003 => 4.0,
            ..=0.01 => 3.0,
            ..=0.05 => 1.0,
            _ => 0.75,
        };
        Self { facts, components, survey: Survey::new(facts, RUNS, false, reach) }
    }

    /// What the next run sums; `None` if all runs are over.
    pub(super) fn stage(&self) -> Option<Stage<'_>> {
        self.survey.stage()
    }

    /// Uses a release; `None` if it was lost.
    pub(super) fn apply(&mut self, released: Option<&[f64]>) {
        self.survey.apply(released);
    }

    /// The components that follow from the releases so far.
    pub(super) fn model(&self) -> Components {
        let spectrum = self.survey.spectrum(self.components);
        let (width, records) = (self.facts.width, self.facts.records);
        let single = |values: &[f64]| -> Vec<f32> { values.iter().map(|x| *x as f32).collect() };
        let mut directions: Vec<f32> = single(&spectrum.vectors[..self.components * width]);
        for direction in directions.chunks_exact_mut(width) {
            // The sign of a direction means nothing. The largest weight is positive.
            let largest = direction.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs()));
            if largest.is_some_and(|largest| largest < 0.0) {
                for weight in direction {
                    *weight = -*weight;
                }
            }
        }
        let variances: Vec<f64> = spectrum.values.iter().map(|value| value / records).collect();
        Components {
            pca: Pca {
                mean: single(&self.survey.centre),
                components: directions,
                variances: variances[..self.components].to_vec(),
            },
            spectrum: variances,
            noise: spectrum.edge / records,
        }
    }
}
