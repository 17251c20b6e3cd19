//! Records with targets, as a network learns from them.

use serde::{Deserialize, Serialize};

use crate::{
    chance::Chance,
    data::Examples,
    kernel::scratch,
    loss::{Loss, Target},
    network::Task,
};

/// Several versions of every image, whose gradients are averaged before clipping: noise stays the same, and the gradient has less variance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Augmentation {
    /// How many versions, the image as it is included.
    pub versions: usize,
    /// Pixels by which a version may be shifted in each direction; what comes in is black.
    #[serde(default)]
    pub shift: usize,
    /// Whether half of the versions are mirrored left to right.
    #[serde(default)]
    pub mirror: bool,
}

/// The task of predicting targets. A record is one example, one row of the raw data, or all examples of one user.
pub struct Supervised<'a> {
    examples: &'a Examples,
    loss: Loss,
    augmentation: Option<Augmentation>,
    units: Units,
    /// What is public about this step's chance.
    seed: u64,
}

/// What a record is.
enum Units {
    /// One example.
    Examples,
    /// A row of the raw data, with its example or [`NONE`].
    Rows(Vec<u32>),
    /// A user, with all examples of theirs.
    Users(Vec<Vec<u32>>),
}

/// A row that cannot be learned from.
const NONE: u32 = u32::MAX;

impl<'a> Supervised<'a> {
    /// Each example is a record.
    #[must_use]
    pub fn new(examples: &'a Examples, loss: Loss, augmentation: Option<Augmentation>) -> Self {
        Self { examples, loss, augmentation, units: Units::Examples, seed: 0 }
    }

    /// Each row of the raw data is a record. One that cannot be learned from counts, and contributes a vector of zeros: so the number of records does not change when one is exchanged
    /// for another.
    #[must_use]
    pub fn by_row(self) -> Self {
        let mut rows = vec![NONE; self.examples.row_count()];
        for example in 0..self.examples.len() {
            rows[self.examples.row(example)] = example as u32;
        }
        Self { units: Units::Rows(rows), ..self }
    }

    /// Each user is a record, made of all examples of theirs; nothing if the examples do not say whose they are.
    #[must_use]
    pub fn by_user(self) -> Option<Self> {
        let mut users = vec![Vec::new(); self.examples.user_count()?];
        for (example, user) in self.examples.users()?.iter().enumerate() {
            users[*user as usize].push(example as u32);
        }
        Some(Self { units: Units::Users(users), ..self })
    }

    /// The same for a number of users that is public, because one is exchanged for another.
    ///
    /// If there are fewer, users without examples make up for them; if there are more, those are taken whose names have the smallest hashes. Who comes, goes or is exchanged then changes one of
    /// them, however many there are: with one name more, at most one enters and one leaves.
    #[must_use]
    pub fn by_users(self, count: usize) -> Option<Self> {
        let order = self.examples.users_by_hash()?;
        let task = self.by_user()?;
        let Units::Users(mut users) = task.units else { return None };
        let mut taken: Vec<Vec<u32>> = order.iter().take(count).map(|user| std::mem::take(&mut users[*user])).collect();
        taken.resize(count, Vec::new());
        Some(Self { units: Units::Users(taken), ..task })
    }

    /// How many records there are. That is private, unless one is exchanged for another.
    #[must_use]
    pub fn records(&self) -> usize {
        match &self.units {
            Units::Examples => self.examples.len(),
            Units::Rows(rows) => rows.len(),
            Units::Users(users) => users.len(),
        }
    }

    /// The chance of another step.
    pub fn reseed(&mut self, seed: u64) {
        self.seed = seed;
    }

    fn versions(&self) -> usize {
        self.augmentation.map_or(1, |augmentation| augmentation.versions.max(1))
    }

    /// Which example, and which version of it.
    fn find(&self, record: usize, number: usize) -> (usize, usize) {
        let (example, version) = (number / self.versions(), number % self.versions());
        let example = match &self.units {
            Units::Examples => record,
            Units::Rows(rows) => rows[record] as usize,
            Units::Users(users) => users[record][example] as usize,
        };
        (example, version)
    }

    fn target(&self, example: usize) -> Target {
        match (self.examples.label(example), self.examples.number(example)) {
            (Some(class), _) => Target::Class(class),
            (None, number) => Target::Number(number.unwrap_or(f32::NAN)),
        }
    }
}

/// Writes one record with channels last, moved by (down, right) pixels, mirrored or not. Numbers come with channels first.
fn arrange(shape: &[usize], from: &[f32], to: &mut [f32], [down, right]: [isize; 2], mirrored: bool) {
    let &[channels, rows, columns] = shape else { return to.copy_from_slice(from) };
    if channels == 1 && [down, right] == [0, 0] && !mirrored {
        return to.copy_from_slice(from);
    }
    for row in 0..rows {
        for column in 0..columns {
            let (y, x) = (row.checked_add_signed(-down), column.checked_add_signed(-right));
            let pixel = &mut to[(row * columns + column) * channels..][..channels];
            match (y.filter(|y| *y < rows), x.filter(|x| *x < columns)) {
                (Some(y), Some(x)) => {
                    let x = if mirrored { columns - 1 - x } else { x };
                    pixel.iter_mut().enumerate().for_each(|(channel, to)| *to = from[(channel * rows + y) * columns + x]);
                }
                _ => pixel.fill(0.0),
            }
        }
    }
}

/// Writes the features of an example as a network wants them: images with channels last.
pub(super) fn gather(examples: &Examples, example: usize, input: &mut [f32]) {
    // One channel lies the same either way.
    let &[channels, rows, columns] = examples.shape() else { return examples.gather(example, input) };
    if channels == 1 {
        return examples.gather(example, input);
    }
    scratch(input.len(), |numbers| {
        examples.gather(example, numbers);
        for (channel, plane) in numbers.chunks_exact(rows * columns).enumerate() {
            input.iter_mut().skip(channel).step_by(channels).zip(plane).for_each(|(to, from)| *to = *from);
        }
    });
}

impl Task for Supervised<'_> {
    fn is_grouped(&self) -> bool {
        matches!(self.units, Units::Users(_)) || self.versions() > 1
    }

    fn examples(&self, record: usize) -> usize {
        let examples = match &self.units {
            Units::Examples => 1,
            Units::Rows(rows) => usize::from(rows[record] != NONE),
            Units::Users(users) => users[record].len(),
        };
        examples * self.versions()
    }

    fn gather(&self, record: usize, number: usize, input: &mut [f32]) {
        let (example, version) = self.find(record, number);
        let Some(augmentation) = self.augmentation.filter(|_| version > 0) else {
            return gather(self.examples, example, input);
        };
        let mut chance = Chance::of(self.coin(record, number), 0);
        let reach = augmentation.shift as isize;
        let mut shift = || chance.below(2 * augmentation.shift + 1) as isize - reach;
        let moved = [shift(), shift()];
        let mirrored = augmentation.mirror && chance.below(2) == 1;
        let mut numbers = vec![0.0; input.len()];
        self.examples.gather(example, &mut numbers);
        arrange(self.examples.shape(), &numbers, input, moved, mirrored);
    }

    fn differentiate(&self, record: usize, number: usize, outputs: &[f32], gradient: &mut [f32]) {
        let (example, _) = self.find(record, number);
        self.loss.loss_and_gradient(outputs, self.target(example), gradient);
    }

    /// Follows from the record itself and not from its place: otherwise one that leaves would change the gradients of all that come after it.
    fn coin(&self, record: usize, number: usize) -> u64 {
        let (example, version) = self.find(record, number);
        Chance::of(self.seed ^ self.examples.fingerprint(example), version as u64).bits()
    }
}
