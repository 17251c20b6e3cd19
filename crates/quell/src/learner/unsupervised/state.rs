//! What is known after the releases so far.

use super::{
    Plan,
    components::Directions,
    kmeans::KMeans,
    plan::Goal,
    vectors::{Stage, Vectors},
};
use crate::learner::{
    Predictor, Supervised,
    sums::{Estimates, Releases},
};

/// All releases of a run so far.
pub type State = Releases<Findings>;

/// What is known after the releases so far. It is public.
#[derive(Clone, Debug)]
pub struct Findings {
    width: usize,
    goal: Found,
}

#[derive(Clone, Debug)]
enum Found {
    Clusters(Box<KMeans>),
    Components(Box<Directions>),
}

impl Plan {
    /// What is known before the first run.
    pub(in crate::learner) fn findings(&self) -> Findings {
        let facts = self.facts();
        let goal = match self.goal {
            Goal::Clusters(schedule) => Found::Clusters(Box::new(KMeans::new(facts, schedule))),
            Goal::Components(count) => Found::Components(Box::new(Directions::new(facts, count))),
        };
        Findings { width: self.width, goal }
    }
}

impl Findings {
    /// What the next run sums; `None` if all runs are over.
    pub(super) fn stage(&self) -> Option<Stage<'_>> {
        match &self.goal {
            Found::Clusters(clusters) => clusters.stage(),
            Found::Components(directions) => directions.stage(),
        }
    }

    /// The model that follows from the releases so far.
    pub(in crate::learner) fn model(&self) -> Predictor {
        match &self.goal {
            Found::Clusters(clusters) => Predictor::Clusters(clusters.model()),
            Found::Components(directions) => Predictor::Components(directions.model()),
        }
    }
}

impl Estimates for Findings {
    type Task<'t> = Supervised<'t>;
    type Vectors<'a> = Vectors<'a>;

    fn vectors<'a>(&'a self, task: &'a Supervised<'_>, dimension: usize) -> Option<Vectors<'a>> {
        Some(Vectors::new(task, self.stage()?, self.width, dimension))
    }

    fn length(&self) -> usize {
        self.stage().map_or(0, |stage| stage.length(self.width))
    }

    fn apply(&mut self, released: Option<&[f64]>) {
        match &mut self.goal {
            Found::Clusters(clusters) => clusters.apply(released),
            Found::Components(directions) => directions.apply(released),
        }
    }
}
