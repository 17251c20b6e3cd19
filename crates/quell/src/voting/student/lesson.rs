//! The training task of a student: public rows with soft labels.

use super::views::{Views, arrange};
use crate::{data::Examples, network::Task, random::PublicRandom};

/// The task of predicting the soft label of each row.
pub(super) struct Lesson<'a> {
    pub(super) examples: &'a Examples,
    /// The soft label of each row: a probability for each class.
    pub(super) guesses: Vec<f32>,
    pub(super) classes: usize,
    /// The weight of each row.
    pub(super) worth: Vec<f32>,
    pub(super) views: Option<Views>,
    /// The largest share of another row that mixup adds.
    pub(super) mixup: f32,
    /// The seed of the current step.
    pub(super) seed: u64,
}

impl Lesson<'_> {
    /// The row that is mixed into a row, and its share.
    fn partner(&self, record: usize) -> Option<(usize, f32)> {
        let mut chance = PublicRandom::of(self.seed, 2 * record as u64);
        (self.mixup > 0.0).then(|| (chance.below(self.examples.len()), chance.between(0.0, self.mixup)))
    }

    fn view(&self, record: usize, input: &mut [f32], chance: &mut PublicRandom) {
        let &[channels, height, columns] = self.examples.shape() else {
            return self.examples.gather(record, input);
        };
        let shape = [channels, height, columns];
        let mut numbers = vec![0.0; input.len()];
        self.examples.gather(record, &mut numbers);
        match self.views {
            Some(views) => views.write(shape, &numbers, input, chance),
            None => arrange(shape, &numbers, input),
        }
    }

    /// Writes a row without views or mixup.
    pub(super) fn show(&self, record: usize, input: &mut [f32]) {
        Lesson { views: None, guesses: Vec::new(), worth: Vec::new(), ..*self }.view(
            record,
            input,
            &mut PublicRandom::new(0),
        );
    }

    fn guess(&self, record: usize) -> &[f32] {
        &self.guesses[record * self.classes..(record + 1) * self.classes]
    }
}

impl Task for Lesson<'_> {
    fn gather(&self, record: usize, _: usize, input: &mut [f32]) {
        let mut chance = PublicRandom::of(self.seed, 2 * record as u64 + 1);
        self.view(record, input, &mut chance);
        if let Some((other, share)) = self.partner(record) {
            let mut mixed = vec![0.0; input.len()];
            self.view(other, &mut mixed, &mut chance);
            input.iter_mut().zip(&mixed).for_each(|(input, mixed)| *input += share * (mixed - *input));
        }
    }

    fn differentiate(&self, record: usize, _: usize, outputs: &[f32], gradient: &mut [f32]) {
        softmax(outputs, gradient);
        let (other, share) = self.partner(record).unwrap_or((record, 0.0));
        let worth = self.worth[record] + share * (self.worth[other] - self.worth[record]);
        let wanted = self
            .guess(record)
            .iter()
            .zip(self.guess(other))
            .map(|(own, theirs)| own + share * (theirs - own));
        gradient
            .iter_mut()
            .zip(wanted)
            .for_each(|(gradient, wanted)| *gradient = worth * (*gradient - wanted));
    }

    fn seed(&self, record: usize, _: usize) -> u64 {
        PublicRandom::of(self.seed ^ 1, record as u64).bits()
    }
}

/// Turns outputs into probabilities.
pub(super) fn softmax(outputs: &[f32], probabilities: &mut [f32]) {
    let largest = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    probabilities.iter_mut().zip(outputs).for_each(|(to, output)| *to = (output - largest).exp());
    let total: f32 = probabilities.iter().sum();
    for probability in probabilities.iter_mut() {
        *probability /= total;
    }
}
