//! The settings of a learner, as one section of a configuration.

use super::Privacy;

/// The settings that every learner has.
pub(crate) trait Guaranteed {
    /// The privacy guarantee, and a public number of records (or users).
    fn guarantee(&mut self) -> (&mut Privacy, &mut Option<u64>);

    /// Sets the seed of public randomness, if the learner draws any.
    fn set_seed(&mut self, _: u64) {}
}

/// One section of a configuration: the settings of a learner.
pub(crate) trait Section: Guaranteed {
    /// Whether settings are given besides the neighbours, which a command sets in all sections.
    fn is_given(&self) -> bool;
}

impl<R: Guaranteed + Clone + Default + PartialEq> Section for R {
    fn is_given(&self) -> bool {
        let mut none = R::default();
        none.guarantee().0.neighbors = self.clone().guarantee().0.neighbors;
        *self != none
    }
}
