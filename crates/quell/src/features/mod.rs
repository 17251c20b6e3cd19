//! Features that nobody learned from private records: transforms of one record at a time, which can stand before any learner.
//!
//! What comes out for a record depends on that record alone and on public settings, so neighbours stay neighbours and nothing is to be paid. Under privacy a small model on
//! such features learns more than a deep one on pixels, as long as there are not very many records (Tramèr and Boneh 2021).

mod filters;
mod hog;
mod network;
mod pca;
mod scattering;

use std::path::PathBuf;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{Error, data::Examples, run::Source};
use hog::Hog;
use network::Public;
pub use pca::Pca;
use scattering::{Scattering, coefficients};

/// What stands between a record and a model.
///
/// ```
/// use quell::{data::digits, features::Features};
/// let images = digits()?.train;
/// let features = Features::scattering().apply(&images)?;
/// assert_eq!((images.shape(), features.shape()), ([1, 8, 8].as_slice(), [81, 2, 2].as_slice()));
/// # Ok::<(), quell::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Features {
    /// Nothing: records as they are.
    Raw {},
    /// How steep a picture is in each direction, cell by cell, as scikit-image's `hog` has it.
    Hog {
        /// Directions that are told apart.
        #[serde(default = "nine")]
        orientations: usize,
        /// Rows and columns of a cell, in pixels.
        #[serde(default = "four")]
        cell: usize,
        /// Rows and columns of the blocks within which cells are brought to one length, in cells.
        #[serde(default = "two")]
        block: usize,
    },
    /// How strongly a picture swings at each place, scale and angle, and how strongly that swings, as kymatio's `Scattering2D` has it.
    Scattering {
        /// Scales, each twice the one before; one place that comes out stands for 2^scales rows and columns.
        #[serde(default = "two")]
        scales: usize,
        /// Angles.
        #[serde(default = "eight")]
        angles: usize,
        /// 2, or 1 without how strongly that swings.
        #[serde(default = "two")]
        order: usize,
        /// Into how many groups the channels that come out are cut, each of which is brought to mean zero and variance one within each record; 0 for none.
        #[serde(default = "twenty_seven")]
        groups: usize,
    },
    /// What comes out of all layers but the last of a model that Quell saved. Whoever names it declares it public. Records are scaled as those that it learned from.
    Network {
        /// The file.
        path: PathBuf,
        /// BLAKE3 of the file in hexadecimal, written down when it is first used: another file in its place is refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
    },
}

impl Default for Features {
    fn default() -> Self {
        Self::Raw {}
    }
}

fn two() -> usize {
    2
}

fn four() -> usize {
    4
}

fn eight() -> usize {
    8
}

fn nine() -> usize {
    9
}

fn twenty_seven() -> usize {
    27
}

/// A transform of one record, with room that is lent to it.
trait Transform: Sync {
    type Buffers;

    /// Shape of what comes out, channels first.
    fn output(&self) -> &[usize];

    fn buffers(&self) -> Self::Buffers;

    fn apply(&self, record: &[f32], into: &mut [f32], buffers: &mut Self::Buffers);
}

/// Settings are up to this, so that no product of them overflows.
const LARGEST: usize = 1 << 10;
/// Numbers of a record, before and after.
const MOST_NUMBERS: usize = 1 << 26;

impl Features {
    /// Histograms of oriented gradients with usual settings.
    #[must_use]
    pub fn hog() -> Self {
        Self::Hog { orientations: nine(), cell: four(), block: two() }
    }

    /// A scattering transform with usual settings.
    #[must_use]
    pub fn scattering() -> Self {
        Self::Scattering { scales: two(), angles: eight(), order: two(), groups: twenty_seven() }
    }

    /// All layers but the last of the model in a file, which is declared public.
    #[must_use]
    pub fn network(path: impl Into<PathBuf>) -> Self {
        Self::Network { path: path.into(), digest: None }
    }

    /// Writes down which file it is, where there is one; records are then scaled as those that its network learned from.
    pub(crate) fn pin(&mut self, data: &mut Source) -> Result<(), Error> {
        if let Self::Network { path, digest } = self {
            let network = Public::open(path, digest.as_deref())?;
            data.scaling = network.scaling();
            *digest = Some(network.digest());
        }
        Ok(())
    }

    /// Whether records stay as they are.
    #[must_use]
    pub fn is_raw(&self) -> bool {
        *self == Self::Raw {}
    }

    /// Whether the settings are in their ranges, whatever comes in.
    pub fn check(&self) -> Result<(), Error> {
        let within = |name: &'static str, found: usize, least: usize, most: usize, expected: &'static str| {
            let allowed = (least..=most).contains(&found);
            if allowed { Ok(()) } else { Err(Error::Setting { name, found: found.to_string(), expected }) }
        };
        match *self {
            Self::Raw {} | Self::Network { .. } => Ok(()),
            Self::Hog { orientations, cell, block } => {
                for (name, found) in [("orientations", orientations), ("cell", cell), ("block", block)] {
                    within(name, found, 1, LARGEST, "a whole number from 1 to 1024")?;
                }
                Ok(())
            }
            // Whether groups divide what comes out is known when it is known what comes in.
            Self::Scattering { scales, angles, order, groups: _ } => {
                within("scales", scales, 1, 8, "a whole number from 1 to 8")?;
                within("angles", angles, 1, 64, "a whole number from 1 to 64")?;
                within("order", order, 1, 2, "1 or 2")
            }
        }
    }

    /// Shape of what comes out for records of a shape, channels first.
    pub fn output_shape(&self, shape: &[usize]) -> Result<Vec<usize>, Error> {
        self.check()?;
        let misfit = |name: &'static str, setting: &dyn std::fmt::Display, expected: &'static str| {
            let found = format!("{setting} for records of {}", written(shape));
            Error::Setting { name, found, expected }
        };
        let image = || match *shape {
            [channels, rows, columns] if numbers(shape).is_some() => Ok([channels, rows, columns]),
            _ => Err(misfit("features", &"made of pictures", "records with channels, rows and columns")),
        };
        let output = match *self {
            Self::Raw {} => return Ok(shape.to_vec()),
            Self::Network { ref path, ref digest } => vec![Public::open(path, digest.as_deref())?.outputs(shape)?],
            Self::Hog { orientations, cell, block } => {
                let hog = Hog::new(image()?, orientations, cell, block);
                hog.ok_or_else(|| misfit("block", &block, "few enough cells, and small ones, for one block to fit"))?
                    .output()
                    .to_vec()
            }
            Self::Scattering { scales, angles, order, groups } => {
                let [channels, rows, columns] = image()?;
                if rows.min(columns) >> scales == 0 {
                    return Err(misfit("scales", &scales, "so few that there are 2^scales rows and columns"));
                }
                let channels = channels * coefficients(scales, angles, order);
                if groups > 0 && !channels.is_multiple_of(groups) {
                    let expected = "a divisor of the channels that come out, or 0";
                    return Err(Error::Setting { name: "groups", found: format!("{groups} for {channels}"), expected });
                }
                vec![channels, rows >> scales, columns >> scales]
            }
        };
        if numbers(&output).is_some() {
            Ok(output)
        } else {
            Err(misfit("features", &"too many numbers", "fewer, or of smaller pictures"))
        }
    }

    /// The same records with these features, in the order and with the targets and users that they have.
    pub fn apply(&self, examples: &Examples) -> Result<Examples, Error> {
        if let Self::Network { path, digest } = self {
            return Public::open(path, digest.as_deref())?.apply(examples);
        }
        let output = self.output_shape(examples.shape())?;
        match (self, examples.shape()) {
            (&Self::Hog { orientations, cell, block }, &[channels, rows, columns]) => {
                match Hog::new([channels, rows, columns], orientations, cell, block) {
                    Some(hog) => each(&hog, examples, |_| ()),
                    None => examples.with_features(&output, Vec::new()),
                }
            }
            (&Self::Scattering { scales, angles, order, groups }, &[channels, rows, columns]) => {
                let scattering = Scattering::new([channels, rows, columns], scales, angles, order);
                each(&scattering, examples, |record| normalize(record, groups))
            }
            _ => Ok(examples.clone()),
        }
    }
}

/// Transforms every record on its own, on all cores.
fn each<T: Transform>(transform: &T, examples: &Examples, finish: impl Fn(&mut [f32]) + Sync) -> Result<Examples, Error> {
    /// Buffers are made once for so many records at least.
    const TOGETHER: usize = 64;
    let width = transform.output().iter().product::<usize>();
    let mut values = vec![0.0; examples.len() * width];
    values.par_chunks_exact_mut(width).enumerate().with_min_len(TOGETHER).for_each_init(
        || (vec![0.0; examples.width()], transform.buffers()),
        |(record, buffers), (number, into)| {
            examples.gather(number, record);
            transform.apply(record, into, buffers);
            finish(into);
        },
    );
    examples.with_features(transform.output(), values)
}

/// Brings each group of channels to mean zero and variance one.
fn normalize(record: &mut [f32], groups: usize) {
    /// Added to the variance, so that constant numbers become zeros.
    const SMALLEST_VARIANCE: f64 = 1e-5;
    let Some(size) = record.len().checked_div(groups) else { return };
    for group in record.chunks_exact_mut(size) {
        let mean = group.iter().map(|x| f64::from(*x)).sum::<f64>() / size as f64;
        let variance = group.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / size as f64;
        let inverse = (variance + SMALLEST_VARIANCE).sqrt().recip();
        for x in group.iter_mut() {
            *x = ((f64::from(*x) - mean) * inverse) as f32;
        }
    }
}

/// How many numbers are in a shape, if it has any and not too many.
fn numbers(shape: &[usize]) -> Option<usize> {
    let numbers = shape.iter().try_fold(1_usize, |numbers, side| numbers.checked_mul(*side));
    numbers.filter(|numbers| (1..=MOST_NUMBERS).contains(numbers))
}

/// Sides as they are said.
fn written(shape: &[usize]) -> String {
    shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(" × ")
}
