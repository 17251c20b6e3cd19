//! Supervised learning: records with targets.

use quell_privacy::{Neighbors, ledger::Unit};
use serde::{Deserialize, Serialize};

use crate::{
    Error, Input,
    data::Examples,
    kernel::scratch,
    learner::{
        ProtectedRecords,
        loss::{Loss, Target},
    },
    network::Task,
    random::PublicRandom,
};

/// Augmentation: several versions of every image, whose gradients are averaged before clipping.
///
/// The noise stays the same, and the gradient has less variance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Augmentation {
    /// Number of versions, including the original image.
    pub versions: usize,
    /// Largest shift of a version in each direction, in pixels. The uncovered pixels are zero.
    #[serde(default)]
    pub shift: usize,
    /// Whether a version is mirrored left to right with probability one half.
    #[serde(default)]
    pub mirror: bool,
}

/// The task of predicting targets.
///
/// A record is one example, one row of the raw data, or all examples of one user.
pub struct Supervised<'a> {
    examples: &'a Examples,
    loss: Loss,
    augmentation: Option<Augmentation>,
    units: Units,
    /// Public seed of the current step.
    seed: u64,
}

/// The records of a task.
enum Units {
    /// Each example is a record.
    Examples,
    /// Each row of the raw data is a record, with its example or [`NO_EXAMPLE`].
    Rows(Vec<u32>),
    /// Each user is a record, with all examples of the user.
    Users(Vec<Vec<u32>>),
}

/// The most users where one may be replaced: users without examples are records, too.
const MOST_USERS: usize = 1 << 28;

/// The error if the ledger protects users and the data does not name them.
pub(crate) const NO_USERS: Error = Error::Missing { what: Input::Users };

/// Marks a row without an example.
const NO_EXAMPLE: u32 = u32::MAX;

impl ProtectedRecords for Supervised<'_> {
    fn records(&self) -> usize {
        self.records()
    }

    fn unit(&self) -> Unit {
        self.unit()
    }
}

impl<'a> Supervised<'a> {
    /// Creates a task in which each example is a record.
    #[must_use]
    pub fn new(examples: &'a Examples, loss: Loss, augmentation: Option<Augmentation>) -> Self {
        Self { examples, loss, augmentation, units: Units::Examples, seed: 0 }
    }

    /// Makes each row of the raw data a record.
    ///
    /// A row without a usable example is a record too, and contributes a vector of zeros. So the number of
    /// records does not change if one row is replaced by another.
    #[must_use]
    pub fn by_row(self) -> Self {
        let mut rows = vec![NO_EXAMPLE; self.examples.row_count()];
        for example in 0..self.examples.len() {
            rows[self.examples.row(example)] = example as u32;
        }
        Self { units: Units::Rows(rows), ..self }
    }

    /// Makes each user a record with all their examples; `None` if the examples do not name their users.
    #[must_use]
    pub fn by_user(self) -> Option<Self> {
        let mut users = vec![Vec::new(); self.examples.user_count()?];
        for (example, user) in self.examples.users()?.iter().enumerate() {
            users[*user as usize].push(example as u32);
        }
        Some(Self { units: Units::Users(users), ..self })
    }

    /// Makes each user a record, for a public number of users, `count`.
    ///
    /// The number is public where one user is replaced by another. If there are fewer users, users without
    /// examples are added. If there are more, the users whose names have the smallest hashes are selected. So
    /// adding, removing or replacing a user changes one record, however many users there are: with one more
    /// name, at most one user enters the selection and one leaves it.
    #[must_use]
    pub fn by_users(self, count: usize) -> Option<Self> {
        let order = self.examples.users_by_hash()?;
        let task = self.by_user()?;
        let Units::Users(mut users) = task.units else { return None };
        let mut selected: Vec<Vec<u32>> =
            order.iter().take(count).map(|user| std::mem::take(&mut users[*user])).collect();
        selected.resize(count, Vec::new());
        Some(Self { units: Units::Users(selected), ..task })
    }

    /// Makes a record of each privacy unit of the ledger: one example or one user.
    ///
    /// `users` is the public number of users. It is used only if one user may be replaced.
    pub fn protecting(self, unit: Unit, neighbors: Neighbors, users: u64) -> Result<Self, Error> {
        let task = match (unit, neighbors) {
            (Unit::Example, Neighbors::AddRemove) => Some(self),
            (Unit::Example, Neighbors::Replace) => Some(self.by_row()),
            (Unit::User, Neighbors::AddRemove) => self.by_user(),
            (Unit::User, Neighbors::Replace) => {
                let count = usize::try_from(users).ok().filter(|users| *users <= MOST_USERS);
                self.by_users(count.ok_or_else(|| Error::Setting {
                    name: "records",
                    found: users.to_string(),
                    expected: "at most 268435456 users, where one may be replaced",
                })?)
            }
        };
        task.ok_or(NO_USERS)
    }

    /// Number of records. It is private, unless the neighbouring relation is replacement.
    #[must_use]
    pub fn records(&self) -> usize {
        match &self.units {
            Units::Examples => self.examples.len(),
            Units::Rows(rows) => rows.len(),
            Units::Users(users) => users.len(),
        }
    }

    /// The privacy unit: an example or row is a record, or a user.
    #[must_use]
    pub fn unit(&self) -> Unit {
        match &self.units {
            Units::Examples | Units::Rows(_) => Unit::Example,
            Units::Users(_) => Unit::User,
        }
    }

    /// Sets the public seed of the next step.
    pub fn reseed(&mut self, seed: u64) {
        self.seed = seed;
    }

    fn versions(&self) -> usize {
        self.augmentation.map_or(1, |augmentation| augmentation.versions.max(1))
    }

    /// Finds the example, and its version, with this number within a record.
    fn find(&self, record: usize, number: usize) -> (usize, usize) {
        let (example, version) = (number / self.versions(), number % self.versions());
        let example = match &self.units {
            Units::Examples => record,
            Units::Rows(rows) => rows[record] as usize,
            Units::Users(users) => users[record][example] as usize,
        };
        (example, version)
    }

    /// The target of an example of a record.
    pub(super) fn target_of(&self, record: usize, number: usize) -> Target {
        self.target(self.find(record, number).0)
    }

    fn target(&self, example: usize) -> Target {
        match (self.examples.label(example), self.examples.number(example)) {
            (Some(class), _) => Target::Class(class),
            (None, number) => Target::Number(number.unwrap_or(f32::NAN)),
        }
    }
}

/// Copies an image to channels last, shifted by (down, right) and optionally mirrored. `from` has channels
/// first.
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
                    pixel
                        .iter_mut()
                        .enumerate()
                        .for_each(|(channel, to)| *to = from[(channel * rows + y) * columns + x]);
                }
                _ => pixel.fill(0.0),
            }
        }
    }
}

/// Writes the features of an example as a network expects them: images with channels last.
pub(super) fn gather(examples: &Examples, example: usize, input: &mut [f32]) {
    // With one channel, both layouts are the same.
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

/// Puts back the features of an example that [`gather`] wrote: images with channels first.
pub(super) fn put_back(shape: &[usize], features: &mut [f32]) {
    let &[channels, _, _] = shape else { return };
    if channels == 1 {
        return;
    }
    scratch(features.len(), |numbers| {
        numbers.copy_from_slice(features);
        for (channel, plane) in features.chunks_exact_mut(numbers.len() / channels).enumerate() {
            plane
                .iter_mut()
                .zip(numbers.iter().skip(channel).step_by(channels))
                .for_each(|(to, from)| *to = *from);
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
            Units::Rows(rows) => usize::from(rows[record] != NO_EXAMPLE),
            Units::Users(users) => users[record].len(),
        };
        examples * self.versions()
    }

    fn gather(&self, record: usize, number: usize, input: &mut [f32]) {
        let (example, version) = self.find(record, number);
        let Some(augmentation) = self.augmentation.filter(|_| version > 0) else {
            return gather(self.examples, example, input);
        };
        let mut random = PublicRandom::of(self.seed(record, number), 0);
        let reach = augmentation.shift as isize;
        let mut shift = || random.below(2 * augmentation.shift + 1) as isize - reach;
        let shifted = [shift(), shift()];
        let mirrored = augmentation.mirror && random.below(2) == 1;
        let mut numbers = vec![0.0; input.len()];
        self.examples.gather(example, &mut numbers);
        arrange(self.examples.shape(), &numbers, input, shifted, mirrored);
    }

    fn differentiate(&self, record: usize, number: usize, outputs: &[f32], gradient: &mut [f32]) {
        let (example, _) = self.find(record, number);
        self.loss.loss_and_gradient(outputs, self.target(example), gradient);
    }

    /// The seed follows from the record itself, not from its index.
    ///
    /// Otherwise, removing a record would change the gradients of all records after it.
    fn seed(&self, record: usize, number: usize) -> u64 {
        let (example, version) = self.find(record, number);
        PublicRandom::of(self.seed ^ self.examples.fingerprint(example), version as u64).bits()
    }
}
