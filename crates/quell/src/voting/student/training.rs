//! Ordinary training on soft labels.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::{
    Error, Input,
    data::Examples,
    learner::{
        Gradients,
        average::Average,
        optimizer::{Optimizer, Update},
        schedule::{Schedule, Shape},
    },
    network::{Network, Task, Workspace},
    random::PublicRandom,
    range::{BELOW_ONE, NOT_NEGATIVE, POSITIVE},
};

/// How a student is trained.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SoftLabelTraining {
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

impl Default for SoftLabelTraining {
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

impl SoftLabelTraining {
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
    ) -> Result<SoftLabelTask<'a>, Error> {
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
        Ok(SoftLabelTask {
            examples: public,
            guesses: guesses.to_vec(),
            classes,
            worth,
            views,
            mixup,
            seed: 0,
        })
    }

    /// Mixes the given soft labels with the current predictions of the network.
    fn reconsider(&self, network: &Network, weights: &[f32], given: &[f32], lesson: &mut SoftLabelTask<'_>) {
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

/// The task of predicting the soft label of each row.
struct SoftLabelTask<'a> {
    examples: &'a Examples,
    /// The soft label of each row: a probability for each class.
    guesses: Vec<f32>,
    classes: usize,
    /// The weight of each row.
    worth: Vec<f32>,
    views: Option<Views>,
    /// The largest share of another row that mixup adds.
    mixup: f32,
    /// The seed of the current step.
    seed: u64,
}

impl SoftLabelTask<'_> {
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
    fn show(&self, record: usize, input: &mut [f32]) {
        SoftLabelTask { views: None, guesses: Vec::new(), worth: Vec::new(), ..*self }.view(
            record,
            input,
            &mut PublicRandom::new(0),
        );
    }

    fn guess(&self, record: usize) -> &[f32] {
        &self.guesses[record * self.classes..(record + 1) * self.classes]
    }
}

impl Task for SoftLabelTask<'_> {
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
fn softmax(outputs: &[f32], probabilities: &mut [f32]) {
    let largest = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    probabilities.iter_mut().zip(outputs).for_each(|(to, output)| *to = (output - largest).exp());
    let total: f32 = probabilities.iter().sum();
    for probability in probabilities.iter_mut() {
        *probability /= total;
    }
}

/// The largest random changes from an image to a view, in either direction.
/// Pixels from outside the image are 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Views {
    /// Shift down and to the right, as a share of the longer side.
    pub shift: f32,
    /// Rotation in degrees.
    pub turn: f32,
    /// Change of size as a share, in each direction independently.
    pub stretch: f32,
    /// Shear: columns per row.
    pub lean: f32,
}

impl Default for Views {
    fn default() -> Self {
        Self { shift: 0.07, turn: 10.0, stretch: 0.1, lean: 0.2 }
    }
}

impl Views {
    /// Checks that every setting is in its range.
    pub fn check(&self) -> Result<(), Error> {
        let settings =
            [("shift", self.shift), ("turn", self.turn), ("stretch", self.stretch), ("lean", self.lean)];
        settings.into_iter().try_for_each(|(name, value)| NOT_NEGATIVE.check(name, value.into()))?;
        BELOW_ONE.check("stretch", self.stretch.into())
    }

    /// Writes a view, channels last, of an image of channels, rows and columns.
    fn write(
        &self,
        [channels, height, columns]: [usize; 3],
        from: &[f32],
        to: &mut [f32],
        chance: &mut PublicRandom,
    ) {
        let mut up_to = |most: f32| chance.between(-1.0, 1.0) * most;
        let longer = height.max(columns) as f32;
        let (down, right) = (up_to(self.shift * longer), up_to(self.shift * longer));
        let (sine, cosine) = up_to(self.turn).to_radians().sin_cos();
        let (tall, wide) = (1.0 + up_to(self.stretch), 1.0 + up_to(self.stretch));
        let lean = up_to(self.lean);
        let middle = ((height as f32 - 1.0) / 2.0, (columns as f32 - 1.0) / 2.0);
        for row in 0..height {
            for column in 0..columns {
                // The point of the image for this pixel of the view: shifted, sheared, scaled, rotated.
                let (y, x) = (row as f32 - middle.0 - down, column as f32 - middle.1 - right);
                let x = x + lean * y;
                let (y, x) = (tall * y, wide * x);
                let (y, x) = (cosine * y - sine * x + middle.0, sine * y + cosine * x + middle.1);
                let pixel = &mut to[(row * columns + column) * channels..][..channels];
                for (to, plane) in pixel.iter_mut().zip(from.chunks_exact(height * columns)) {
                    *to = between(plane, height, columns, y, x, 0.0);
                }
            }
        }
    }
}

/// Writes an image unchanged, channels last.
fn arrange([channels, height, columns]: [usize; 3], from: &[f32], to: &mut [f32]) {
    for (channel, plane) in from.chunks_exact(height * columns).enumerate() {
        to.iter_mut().skip(channel).step_by(channels).zip(plane).for_each(|(to, from)| *to = *from);
    }
}

/// Interpolates between the four pixels around a point; `outside` beyond the edge.
fn between(plane: &[f32], height: usize, columns: usize, y: f32, x: f32, outside: f32) -> f32 {
    let (top, left) = (y.floor(), x.floor());
    let (low, far) = (y - top, x - left);
    let (top, left) = (top as isize, left as isize);
    let pixel = |y: isize, x: isize| {
        let inside = (0..height as isize).contains(&y) && (0..columns as isize).contains(&x);
        if inside { plane[y as usize * columns + x as usize] } else { outside }
    };
    let upper = (1.0 - far) * pixel(top, left) + far * pixel(top, left + 1);
    let lower = (1.0 - far) * pixel(top + 1, left) + far * pixel(top + 1, left + 1);
    (1.0 - low) * upper + low * lower
}
