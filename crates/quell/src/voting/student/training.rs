//! Ordinary training on soft labels.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::{
    lesson::{Lesson, softmax},
    views::Views,
};
use crate::{
    Error, Input,
    data::Examples,
    learner::{
        Gradients,
        average::Average,
        optimizer::{Optimizer, Update},
        schedule::{Schedule, Shape},
    },
    network::{Network, Workspace},
    random::PublicRandom,
    range::{BELOW_ONE, POSITIVE},
};

/// How a student is trained.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Training {
    /// The number of passes over the rows.
    pub epochs: u64,
    /// The least number of steps: with few rows, there are more passes.
    pub least_steps: u64,
    /// The number of rows in a batch, at most an eighth of all rows.
    pub batch: usize,
    /// The optimizer.
    pub optimizer: Optimizer,
    /// The learning rate schedule.
    pub schedule: Schedule,
    /// Which average of the iterates is the model.
    pub average: Average,
    /// The random views of images, drawn anew in each pass.
    /// `None` for no views. Rows that are not images have no views.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub views: Option<Views>,
    /// Mixup (Zhang et al. 2018): the largest share of another row; 0 for none.
    pub mixup: f32,
    /// Self-training: weight of the student's own sharpened predictions, in the second half of training.
    /// The rest of the weight is on the given soft label. Given labels that do not fit the other rows lose
    /// influence.
    #[serde(alias = "trust")]
    pub self_training: f32,
}

impl Default for Training {
    fn default() -> Self {
        Self {
            epochs: 60,
            least_steps: 1000,
            batch: 128,
            optimizer: Optimizer::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 },
            schedule: Schedule { learning_rate: 2e-3, warm_up: 20, shape: Shape::Cosine { last: 0.0 } },
            average: Average::Exponential { decay: 0.99 },
            views: Some(Views::default()),
            mixup: 0.0,
            self_training: 0.9,
        }
    }
}

impl Training {
    /// Checks that every setting is in its range.
    pub fn check(&self) -> Result<(), Error> {
        POSITIVE.check("epochs", self.epochs as f64)?;
        POSITIVE.check("batch", self.batch as f64)?;
        self.optimizer.check()?;
        self.schedule.check()?;
        self.average.check()?;
        self.views.map_or(Ok(()), |views| views.check())?;
        BELOW_ONE.check("mixup", self.mixup.into())?;
        BELOW_ONE.check("self_training", self.self_training.into())
    }

    /// Trains a network on public rows with soft labels; returns the weights.
    /// A soft label has a probability for each class. `progress` receives the number of steps done and of all
    /// steps.
    ///
    /// The weight of a row grows with the certainty of its soft label: it is largest for a certain label, and
    /// zero if all classes are equally likely. The targets of the examples are ignored.
    pub fn train(
        &self,
        network: &Network,
        public: &Examples,
        soft_labels: &[f32],
        seed: u64,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Vec<f32>, Error> {
        self.check()?;
        let mut lesson = self.lesson(network, public, soft_labels)?;
        let batch = self.batch.min(public.len().div_ceil(8));
        let batches = public.len().div_ceil(batch) as u64;
        let epochs = self.epochs.max(self.least_steps.div_ceil(batches));
        let steps = batches.saturating_mul(epochs);
        let (mut weights, mut workspace) = (network.initialize(seed), Workspace::default());
        let mut stepper = self.optimizer.start(&network.parts())?;
        let mut mean = self.average.start(weights.len())?;
        let (mut wide, mut sum) = (vec![0.0_f64; weights.len()], vec![0.0_f32; weights.len()]);
        let mut order: Vec<usize> = (0..public.len()).collect();
        for epoch in 0..epochs {
            if self.self_training > 0.0 && epoch > 0 && 2 * epoch >= epochs {
                let model = mean.weights();
                self.reconsider(network, model.as_deref().unwrap_or(&weights), soft_labels, &mut lesson);
            }
            let mut chance = PublicRandom::of(seed, 1 + epoch);
            (1..order.len()).rev().for_each(|place| order.swap(place, chance.below(place + 1)));
            for (number, rows) in order.chunks(batch).enumerate() {
                let taken = epoch * batches + number as u64;
                lesson.seed = chance.bits();
                wide.fill(0.0);
                Gradients::new(network, &lesson, &weights, &mut workspace).add(rows, &mut wide);
                sum.iter_mut().zip(&wide).for_each(|(narrow, wide)| *narrow = *wide as f32);
                let learning_rate = self.schedule.learning_rate(taken, steps);
                let step = Update { learning_rate, scale: 1.0 / rows.len() as f64, noise_variance: 0.0 };
                stepper.step(&mut weights, &sum, step)?;
                mean.add(&weights)?;
                progress(taken + 1, steps);
            }
        }
        Ok(mean.weights().unwrap_or(weights))
    }

    /// Makes the training task, if the soft labels fit the rows and the network.
    fn lesson<'a>(
        &self,
        network: &Network,
        public: &'a Examples,
        guesses: &[f32],
    ) -> Result<Lesson<'a>, Error> {
        if public.is_empty() {
            return Err(Error::Missing { what: Input::PublicRecords });
        }
        let classes = network.outputs();
        for (what, found, expected) in [
            ("soft labels", guesses.len(), public.len().saturating_mul(classes)),
            ("a public row", public.width(), network.input().iter().product()),
        ] {
            if found != expected {
                return Err(Error::Length { what, found, expected });
            }
        }
        // Rounding may put normalised shares slightly above one.
        if let Some(wrong) = guesses.iter().find(|guess| !(0.0..=1.0001).contains(*guess)) {
            return Err(Error::OutOfRange {
                what: "a soft label",
                value: f64::from(*wrong),
                range: "[0, 1]",
            });
        }
        let worth = worths(guesses, classes);
        if worth.iter().all(|worth| *worth == 0.0) {
            return Err(Error::Missing { what: Input::Answers });
        }
        let (views, mixup) = (self.views, self.mixup);
        Ok(Lesson { examples: public, guesses: guesses.to_vec(), classes, worth, views, mixup, seed: 0 })
    }

    /// Mixes the given soft labels with the current predictions of the network.
    fn reconsider(&self, network: &Network, weights: &[f32], given: &[f32], lesson: &mut Lesson<'_>) {
        let classes = lesson.classes;
        let said = Mutex::new(given.to_vec());
        network.predict(
            weights,
            lesson.examples.len(),
            |row, input| lesson.show(row, input),
            |row, outputs| {
                let mut probabilities = vec![0.0; classes];
                // Twice the outputs give the squares of the probabilities, divided by their sum.
                softmax(&outputs.iter().map(|output| 2.0 * output).collect::<Vec<_>>(), &mut probabilities);
                let place = row * classes..(row + 1) * classes;
                said.lock().unwrap_or_else(PoisonError::into_inner)[place].copy_from_slice(&probabilities);
            },
        );
        let said = said.into_inner().unwrap_or_else(PoisonError::into_inner);
        lesson
            .guesses
            .iter_mut()
            .zip(given)
            .zip(&said)
            .for_each(|((guess, given), said)| *guess = given + self.self_training * (said - given));
        lesson.worth = worths(&lesson.guesses, classes);
    }
}

/// The certainty of each soft label, divided by the mean certainty.
/// The certainty is 1 - H/ln K for the entropy H of K classes.
fn worths(guesses: &[f32], classes: usize) -> Vec<f32> {
    let most = (classes as f32).ln().max(f32::MIN_POSITIVE);
    let surety = |guess: &[f32]| {
        let entropy: f32 = guess.iter().filter(|share| **share > 0.0).map(|share| -share * share.ln()).sum();
        (1.0 - entropy / most).clamp(0.0, 1.0)
    };
    let mut worth: Vec<f32> = guesses.chunks_exact(classes).map(surety).collect();
    let mean = worth.iter().sum::<f32>() / worth.len() as f32;
    if mean > 0.0 {
        for worth in &mut worth {
            *worth /= mean;
        }
    }
    worth
}
