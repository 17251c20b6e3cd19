//! The one sum that is released. It is public.

use super::{Plan, vectors::Vectors};
use crate::learner::{Supervised, sums::Estimates};

/// The released sum of the blocks of all records.
#[derive(Clone, Debug)]
pub struct ReleasedSum {
    plan: Plan,
    /// The sum; zeros before the release.
    pub(super) values: Vec<f64>,
    is_over: bool,
}

impl ReleasedSum {
    /// The state before the release.
    pub(super) fn new(plan: &Plan) -> Self {
        let values = vec![0.0; plan.sums.descent.dimension];
        Self { plan: plan.clone(), values, is_over: false }
    }
}

impl Estimates for ReleasedSum {
    type Task<'t> = Supervised<'t>;
    type Vectors<'a> = Vectors<'a>;

    fn vectors<'a>(&'a self, task: &'a Supervised<'_>, _: usize) -> Option<Vectors<'a>> {
        (!self.is_over).then(|| Vectors::new(&self.plan, task))
    }

    fn length(&self) -> usize {
        if self.is_over { 0 } else { self.values.len() }
    }

    fn apply(&mut self, released: Option<&[f64]>) {
        if let Some(released) = released {
            self.values = released.to_vec();
        }
        self.is_over = true;
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        learner::{
            Method, PublicFacts, Snapshot as _, Subject,
            glm::Weights,
            naive_bayes::{NaiveBayes, Recipe},
        },
        network::Architecture,
    };

    #[test]
    fn checkpoints_of_earlier_versions_still_open() {
        let mut recipe = Recipe { records: Some(40), ..Recipe::default() };
        recipe.privacy.epsilon = Some(1.0);
        let facts = PublicFacts { records: None, classes: Some(2) };
        let subject = Subject { shape: &[2], are_features: false, facts, schema: None };
        let method = NaiveBayes::plan(&mut recipe, &mut Architecture::default(), &subject).unwrap();
        let numbers = method.plan.sums.descent.dimension;
        let mut earlier = Weights::new(numbers, None).unwrap();
        earlier.values = (0..numbers).map(|number| f64::from(number as f32 * 0.37)).collect();
        earlier.advance(0);
        let state = method.state(Some(&earlier.save().unwrap())).unwrap();
        assert_eq!((state.position(), state.taken()), (1, 1));
        assert_eq!(state.estimates().values, earlier.values);
        let again = method.state(Some(&state.save().unwrap())).unwrap();
        assert_eq!(again.estimates().values, earlier.values);
    }
}
