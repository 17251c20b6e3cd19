//! Ordinary training on guesses.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::{
    lesson::{Lesson, softmax},
    views::Views,
};
use crate::{
    Error,
    average::Average,
    chance::Chance,
    data::Examples,
    dp_sgd::Gradients,
    network::{Network, Workspace},
    optimizer::{Optimizer, Step},
    range::{BELOW_ONE, POSITIVE},
    schedule::{Schedule, Shape},
};

/// How a student is trained.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// How often each row is seen.
    pub epochs: u64,
    /// Steps that are taken at least: where there are few rows, each is seen more often.
    pub least_steps: u64,
    /// Rows of a step; an eighth of all, if that is less.
    pub batch: usize,
    /// How weights follow gradients.
    pub optimizer: Optimizer,
    /// How fast.
    pub schedule: Schedule,
    /// Which average of the iterates is the model.
    pub average: Average,
    /// Every image is seen in a new view each time; nothing where it is none, or where the rows are no images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub views: Option<Views>,
    /// Each row is mixed with another, of which this is the largest share (Zhang et al. 2018); 0 for not at all.
    pub mixup: f32,
    /// In the second half of the training, how much the student's own guess about a row counts beside the one it was given. It is made surer than it is, and what does not fit to the rest is
    /// forgotten.
    pub trust: f32,
}

impl Default for Recipe {
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
            trust: 0.9,
        }
    }
}

impl Recipe {
    /// Whether every setting is in its range.
    pub fn check(&self) -> Result<(), Error> {
        POSITIVE.check("epochs", self.epochs as f64)?;
        POSITIVE.check("batch", self.batch as f64)?;
        self.optimizer.check()?;
        self.schedule.check()?;
        self.average.check()?;
        self.views.map_or(Ok(()), |views| views.check())?;
        BELOW_ONE.check("mixup", self.mixup.into())?;
        BELOW_ONE.check("trust", self.trust.into())
    }

    /// Trains a network on public rows and, for each of them and each class, how likely it is; gives the weights. Tells `progress` how many of how many steps are done.
    ///
    /// A row counts the more, the surer its guess is: all if it is certain, nothing if all classes are equally likely. The targets of the examples are not looked at.
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
            if self.trust > 0.0 && epoch > 0 && 2 * epoch >= epochs {
                let model = mean.weights();
                self.reconsider(network, model.as_deref().unwrap_or(&weights), soft_labels, &mut lesson);
            }
            let mut chance = Chance::of(seed, 1 + epoch);
            (1..order.len()).rev().for_each(|place| order.swap(place, chance.below(place + 1)));
            for (number, rows) in order.chunks(batch).enumerate() {
                let taken = epoch * batches + number as u64;
                lesson.seed = chance.bits();
                wide.fill(0.0);
                Gradients::new(network, &lesson, &weights, &mut workspace).add(rows, &mut wide);
                sum.iter_mut().zip(&wide).for_each(|(narrow, wide)| *narrow = *wide as f32);
                let learning_rate = self.schedule.learning_rate(taken, steps);
                let step = Step { learning_rate, scale: 1.0 / rows.len() as f64, noise_variance: 0.0 };
                stepper.step(&mut weights, &sum, step)?;
                mean.add(&weights)?;
                progress(taken + 1, steps);
            }
        }
        Ok(mean.weights().unwrap_or(weights))
    }

    /// The guesses as a task, if they fit to the rows and to the network.
    fn lesson<'a>(&self, network: &Network, public: &'a Examples, guesses: &[f32]) -> Result<Lesson<'a>, Error> {
        if public.is_empty() {
            return Err(Error::Missing { what: "public row", hint: "a student learns from public data: give some" });
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
        // Shares that were divided by their sum may be above one by rounding.
        if let Some(wrong) = guesses.iter().find(|guess| !(0.0..=1.0001).contains(*guess)) {
            return Err(Error::OutOfRange { what: "a soft label", value: f64::from(*wrong), range: "[0, 1]" });
        }
        let worth = worths(guesses, classes);
        if worth.iter().all(|worth| *worth == 0.0) {
            return Err(Error::Missing {
                what: "label",
                hint: "the soft labels of all rows say nothing: ask about some rows first",
            });
        }
        let (views, mixup) = (self.views, self.mixup);
        Ok(Lesson { examples: public, guesses: guesses.to_vec(), classes, worth, views, mixup, seed: 0 })
    }

    /// Mixes what was given with what the network says by now.
    fn reconsider(&self, network: &Network, weights: &[f32], given: &[f32], lesson: &mut Lesson<'_>) {
        let classes = lesson.classes;
        let said = Mutex::new(given.to_vec());
        network.predict(
            weights,
            lesson.examples.len(),
            |row, input| lesson.show(row, input),
            |row, outputs| {
                let mut probabilities = vec![0.0; classes];
                // Twice the outputs: the squares of the probabilities, over their sum.
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
            .for_each(|((guess, given), said)| *guess = given + self.trust * (said - given));
        lesson.worth = worths(&lesson.guesses, classes);
    }
}

/// How sure each guess is: 1 - H/ln K for the entropy H of K classes, over the mean of that.
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
