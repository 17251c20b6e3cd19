//! Ordinary training of a network on rows with soft labels, without privacy.

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

/// How a network is trained on soft labels: the student, or a teacher.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SoftLabelTraining {
    /// The number of passes over the rows.
    pub epochs: u64,
    /// The least number of steps. If the passes have fewer steps, there are more passes.
    pub least_steps: u64,
    /// The number of rows in a batch, but at most an eighth of all rows.
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
    /// Self-training: the weight of the network's own sharpened predictions, in the second half of training.
    ///
    /// The given soft label has the rest of the weight. So a given label that contradicts the other rows
    /// loses influence.
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

    /// Trains a network on rows with soft labels; returns the weights.
    ///
    /// A soft label has a probability for each class. `progress` receives the number of steps so far and the
    /// number of all steps. The targets of the examples are ignored.
    ///
    /// The weight of a row grows with the certainty of its soft label. It is zero if all classes are equally
    /// likely.
    pub fn train(
        &self,
        network: &Network,
        examples: &Examples,
        soft_labels: &[f32],
        seed: u64,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Vec<f32>, Error> {
        self.check()?;
        let mut task = self.task(network, examples, soft_labels)?;
        let batch = self.batch.min(examples.len().div_ceil(8));
        let batches = examples.len().div_ceil(batch) as u64;
        let epochs = self.epochs.max(self.least_steps.div_ceil(batches));
        let steps = batches.saturating_mul(epochs);
        let (mut weights, mut workspace) = (network.initialize(seed), Workspace::default());
        let mut optimizer = self.optimizer.start(&network.parts())?;
        let mut average = self.average.start(weights.len())?;
        let (mut wide, mut sum) = (vec![0.0_f64; weights.len()], vec![0.0_f32; weights.len()]);
        let mut order: Vec<usize> = (0..examples.len()).collect();
        for epoch in 0..epochs {
            if self.self_training > 0.0 && epoch > 0 && 2 * epoch >= epochs {
                let averaged = average.weights();
                let model = averaged.as_deref().unwrap_or(&weights);
                self.mix_in_predictions(network, model, soft_labels, &mut task);
            }
            let mut random = PublicRandom::of(seed, 1 + epoch);
            (1..order.len()).rev().for_each(|place| order.swap(place, random.below(place + 1)));
            for (number, rows) in order.chunks(batch).enumerate() {
                let taken = epoch * batches + number as u64;
                task.seed = random.bits();
                wide.fill(0.0);
                Gradients::new(network, &task, &weights, &mut workspace).add(rows, &mut wide);
                sum.iter_mut().zip(&wide).for_each(|(narrow, wide)| *narrow = *wide as f32);
                let learning_rate = self.schedule.learning_rate(taken, steps);
                let step = Update { learning_rate, scale: 1.0 / rows.len() as f64, noise_variance: 0.0 };
                optimizer.step(&mut weights, &sum, step)?;
                average.add(&weights)?;
                progress(taken + 1, steps);
            }
        }
        Ok(average.weights().unwrap_or(weights))
    }

    /// Makes the task; checks that the soft labels fit the rows and the network.
    fn task<'a>(
        &self,
        network: &Network,
        examples: &'a Examples,
        soft_labels: &[f32],
    ) -> Result<SoftLabelTask<'a>, Error> {
        if examples.is_empty() {
            return Err(Error::Missing { what: Input::PublicRecords });
        }
        let classes = network.outputs();
        for (what, found, expected) in [
            ("soft labels", soft_labels.len(), examples.len().saturating_mul(classes)),
            ("a public row", examples.width(), network.input().iter().product()),
        ] {
            if found != expected {
                return Err(Error::Length { what, found, expected });
            }
        }
        // Rounding may put normalised shares slightly above one.
        if let Some(wrong) = soft_labels.iter().find(|share| !(0.0..=1.0001).contains(*share)) {
            return Err(Error::OutOfRange {
                what: "a soft label",
                value: f64::from(*wrong),
                range: "[0, 1]",
            });
        }
        let row_weights = row_weights(soft_labels, classes);
        if row_weights.iter().all(|weight| *weight == 0.0) {
            return Err(Error::Missing { what: Input::Answers });
        }
        Ok(SoftLabelTask {
            examples,
            soft_labels: soft_labels.to_vec(),
            classes,
            row_weights,
            views: self.views,
            mixup: self.mixup,
            seed: 0,
        })
    }

    /// Mixes the given soft labels with the sharpened predictions of the network.
    fn mix_in_predictions(
        &self,
        network: &Network,
        weights: &[f32],
        given: &[f32],
        task: &mut SoftLabelTask<'_>,
    ) {
        let classes = task.classes;
        let predicted = Mutex::new(given.to_vec());
        network.predict(
            weights,
            task.examples.len(),
            |row, input| task.write_unchanged(row, input),
            |row, outputs| {
                let mut probabilities = vec![0.0; classes];
                // Twice the outputs give the squares of the probabilities, divided by their sum.
                softmax(&outputs.iter().map(|output| 2.0 * output).collect::<Vec<_>>(), &mut probabilities);
                let place = row * classes..(row + 1) * classes;
                predicted.lock().unwrap_or_else(PoisonError::into_inner)[place]
                    .copy_from_slice(&probabilities);
            },
        );
        let predicted = predicted.into_inner().unwrap_or_else(PoisonError::into_inner);
        task.soft_labels
            .iter_mut()
            .zip(given)
            .zip(&predicted)
            .for_each(|((share, given), own)| *share = given + self.self_training * (own - given));
        task.row_weights = row_weights(&task.soft_labels, classes);
    }
}

/// The weight of each row: the certainty of its label, divided by the mean certainty.
/// The certainty is 1 - H/ln K, where H is the entropy of the soft label and K the number of classes.
fn row_weights(soft_labels: &[f32], classes: usize) -> Vec<f32> {
    let largest = (classes as f32).ln().max(f32::MIN_POSITIVE);
    let certainty = |soft_label: &[f32]| {
        let entropy: f32 =
            soft_label.iter().filter(|share| **share > 0.0).map(|share| -share * share.ln()).sum();
        (1.0 - entropy / largest).clamp(0.0, 1.0)
    };
    let mut weights: Vec<f32> = soft_labels.chunks_exact(classes).map(certainty).collect();
    let mean = weights.iter().sum::<f32>() / weights.len() as f32;
    if mean > 0.0 {
        for weight in &mut weights {
            *weight /= mean;
        }
    }
    weights
}

/// The task of predicting the soft label of each row.
struct SoftLabelTask<'a> {
    examples: &'a Examples,
    /// The soft label of each row: a probability for each class.
    soft_labels: Vec<f32>,
    classes: usize,
    /// The weight of each row.
    row_weights: Vec<f32>,
    views: Option<Views>,
    /// The largest share of another row that mixup adds.
    mixup: f32,
    /// The seed of the current step.
    seed: u64,
}

impl SoftLabelTask<'_> {
    /// The row that mixup adds to a row, and its share.
    fn mixup_partner(&self, record: usize) -> Option<(usize, f32)> {
        let mut random = PublicRandom::of(self.seed, 2 * record as u64);
        (self.mixup > 0.0).then(|| (random.below(self.examples.len()), random.between(0.0, self.mixup)))
    }

    /// Writes a random view of an image, or any other row unchanged.
    fn write_view(&self, record: usize, input: &mut [f32], random: &mut PublicRandom) {
        match (self.views, self.examples.shape()) {
            (Some(views), &[channels, height, columns]) => {
                let mut image = vec![0.0; input.len()];
                self.examples.gather(record, &mut image);
                views.write([channels, height, columns], &image, input, random);
            }
            _ => self.write_unchanged(record, input),
        }
    }

    /// Writes a row without views and without mixup. An image is written channels last.
    fn write_unchanged(&self, record: usize, input: &mut [f32]) {
        let &[channels, height, columns] = self.examples.shape() else {
            return self.examples.gather(record, input);
        };
        let mut image = vec![0.0; input.len()];
        self.examples.gather(record, &mut image);
        for (channel, plane) in image.chunks_exact(height * columns).enumerate() {
            input.iter_mut().skip(channel).step_by(channels).zip(plane).for_each(|(to, from)| *to = *from);
        }
    }

    fn soft_label(&self, record: usize) -> &[f32] {
        &self.soft_labels[record * self.classes..(record + 1) * self.classes]
    }
}

impl Task for SoftLabelTask<'_> {
    fn gather(&self, record: usize, _: usize, input: &mut [f32]) {
        let mut random = PublicRandom::of(self.seed, 2 * record as u64 + 1);
        self.write_view(record, input, &mut random);
        if let Some((other, share)) = self.mixup_partner(record) {
            let mut mixed = vec![0.0; input.len()];
            self.write_view(other, &mut mixed, &mut random);
            input.iter_mut().zip(&mixed).for_each(|(input, mixed)| *input += share * (mixed - *input));
        }
    }

    fn differentiate(&self, record: usize, _: usize, outputs: &[f32], gradient: &mut [f32]) {
        softmax(outputs, gradient);
        let (other, share) = self.mixup_partner(record).unwrap_or((record, 0.0));
        let (own, others) = (self.row_weights[record], self.row_weights[other]);
        let weight = own + share * (others - own);
        let targets = self
            .soft_label(record)
            .iter()
            .zip(self.soft_label(other))
            .map(|(own, others)| own + share * (others - own));
        gradient
            .iter_mut()
            .zip(targets)
            .for_each(|(gradient, target)| *gradient = weight * (*gradient - target));
    }

    fn seed(&self, record: usize, _: usize) -> u64 {
        PublicRandom::of(self.seed ^ 1, record as u64).bits()
    }
}

/// Turns the outputs of a network into probabilities.
fn softmax(outputs: &[f32], probabilities: &mut [f32]) {
    let largest = outputs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    probabilities.iter_mut().zip(outputs).for_each(|(to, output)| *to = (output - largest).exp());
    let total: f32 = probabilities.iter().sum();
    for probability in probabilities.iter_mut() {
        *probability /= total;
    }
}

/// Random views of an image: the largest change of each kind, in either direction.
/// Pixels from outside the image are 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Views {
    /// Shift down and to the right, as a share of the longer side.
    pub shift: f32,
    /// Rotation in degrees.
    #[serde(rename = "turn")]
    pub rotation: f32,
    /// Change of size as a share, in each direction independently.
    pub stretch: f32,
    /// Shear: columns per row.
    #[serde(rename = "lean")]
    pub shear: f32,
}

impl Default for Views {
    fn default() -> Self {
        Self { shift: 0.07, rotation: 10.0, stretch: 0.1, shear: 0.2 }
    }
}

impl Views {
    /// Checks that every setting is in its range.
    pub fn check(&self) -> Result<(), Error> {
        let settings =
            [("shift", self.shift), ("turn", self.rotation), ("stretch", self.stretch), ("lean", self.shear)];
        settings.into_iter().try_for_each(|(name, value)| NOT_NEGATIVE.check(name, value.into()))?;
        BELOW_ONE.check("stretch", self.stretch.into())
    }

    /// Writes a random view of an image, channels last. The image has its channels first.
    fn write(
        &self,
        [channels, height, columns]: [usize; 3],
        from: &[f32],
        to: &mut [f32],
        random: &mut PublicRandom,
    ) {
        let mut up_to = |most: f32| random.between(-1.0, 1.0) * most;
        let longer = height.max(columns) as f32;
        let (down, right) = (up_to(self.shift * longer), up_to(self.shift * longer));
        let (sine, cosine) = up_to(self.rotation).to_radians().sin_cos();
        let (tall, wide) = (1.0 + up_to(self.stretch), 1.0 + up_to(self.stretch));
        let shear = up_to(self.shear);
        let middle = ((height as f32 - 1.0) / 2.0, (columns as f32 - 1.0) / 2.0);
        for row in 0..height {
            for column in 0..columns {
                // The point of the image that this pixel of the view shows.
                let (y, x) = (row as f32 - middle.0 - down, column as f32 - middle.1 - right);
                let x = x + shear * y;
                let (y, x) = (tall * y, wide * x);
                let (y, x) = (cosine * y - sine * x + middle.0, sine * y + cosine * x + middle.1);
                let pixel = &mut to[(row * columns + column) * channels..][..channels];
                for (to, plane) in pixel.iter_mut().zip(from.chunks_exact(height * columns)) {
                    *to = interpolate(plane, height, columns, y, x);
                }
            }
        }
    }
}

/// Interpolates between the four pixels around a point. Pixels beyond the edge are 0.
fn interpolate(plane: &[f32], height: usize, columns: usize, y: f32, x: f32) -> f32 {
    let (top, left) = (y.floor(), x.floor());
    let (low, far) = (y - top, x - left);
    let (top, left) = (top as isize, left as isize);
    let pixel = |y: isize, x: isize| {
        let inside = (0..height as isize).contains(&y) && (0..columns as isize).contains(&x);
        if inside { plane[y as usize * columns + x as usize] } else { 0.0 }
    };
    let upper = (1.0 - far) * pixel(top, left) + far * pixel(top, left + 1);
    let lower = (1.0 - far) * pixel(top + 1, left) + far * pixel(top + 1, left + 1);
    (1.0 - low) * upper + low * lower
}
