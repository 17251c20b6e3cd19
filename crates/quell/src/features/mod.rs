//! Feature transforms that are not learned from private records.
//!
//! A transform works on one record at a time and can precede any learner. Its output for a record depends
//! only on that record and on public settings. So neighbouring datasets stay neighbouring, and the transform
//! costs no privacy. Under differential privacy, a small model on such features is more accurate than a deep
//! model on pixels, unless there are very many records (Tramèr and Boneh 2021).

pub(crate) mod eigen;
mod filters;
mod hog;
mod network;
mod pca;
mod scattering;

use std::path::PathBuf;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    data::{Examples, Scaling},
    layer::Spec,
};
use hog::Hog;
use network::PublicNetwork;
pub use pca::Pca;
pub(crate) use scattering::Scattering;
use scattering::coefficients;

/// A transform that is applied to every record before the model.
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
    /// No transform.
    Raw {},
    /// Histograms of oriented gradients, as in scikit-image's `hog`.
    Hog {
        /// Number of gradient directions.
        #[serde(default = "nine")]
        orientations: usize,
        /// Rows and columns of a cell, in pixels.
        #[serde(default = "four")]
        cell: usize,
        /// Rows and columns of a block, in cells. The histograms of a block are normalised together.
        #[serde(default = "two")]
        block: usize,
    },
    /// Scattering transform: wavelet energy by position, scale and angle, as in kymatio's `Scattering2D`.
    Scattering {
        /// Number of scales, each twice the one before. An output position covers 2^scales rows and columns.
        #[serde(default = "two")]
        scales: usize,
        /// Number of angles.
        #[serde(default = "eight")]
        angles: usize,
        /// Order of the transform: 1, or 2 to apply the wavelets to the wavelet energies once more.
        #[serde(default = "two")]
        order: usize,
        /// Number of groups of output channels that are normalised within each record; 0 for no
        /// normalisation.
        ///
        /// Normalisation gives each group mean zero and variance one.
        #[serde(default = "twenty_seven")]
        groups: usize,
    },
    /// The output of all layers but the last of a public model that Quell saved.
    ///
    /// Naming the file declares it public. Records are scaled like the records that the model was trained on.
    Network {
        /// The file of the model.
        path: PathBuf,
        /// BLAKE3 hash of the file in hexadecimal, recorded at the first use. A changed file is refused.
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

/// A transform of one record that uses caller-provided buffers.
trait Transform: Sync {
    type Buffers;

    /// Shape of the output, channels first.
    fn output(&self) -> &[usize];

    fn buffers(&self) -> Self::Buffers;

    fn apply(&self, record: &[f32], into: &mut [f32], buffers: &mut Self::Buffers);
}

/// The largest allowed setting. With it, no product of settings overflows.
const LARGEST: usize = 1 << 10;
/// The most numbers of a record, before and after the transform.
const MOST_NUMBERS: usize = 1 << 26;

impl Features {
    /// Histograms of oriented gradients with default settings.
    #[must_use]
    pub fn hog() -> Self {
        Self::Hog { orientations: nine(), cell: four(), block: two() }
    }

    /// A scattering transform with default settings.
    #[must_use]
    pub fn scattering() -> Self {
        Self::Scattering { scales: two(), angles: eight(), order: two(), groups: twenty_seven() }
    }

    /// All layers but the last of the model in a file. Naming the file declares it public.
    #[must_use]
    pub fn network(path: impl Into<PathBuf>) -> Self {
        Self::Network { path: path.into(), digest: None }
    }

    /// Records the hash of a public model's file, and adopts the scaling of its records.
    pub(crate) fn pin(&mut self, scaling: &mut Option<Scaling>) -> Result<(), Error> {
        if let Self::Network { path, digest } = self {
            let network = PublicNetwork::open(path, digest.as_deref())?;
            *scaling = network.scaling;
            *digest = Some(network.digest);
        }
        Ok(())
    }

    /// The layers and weights of a public network that reads raw records.
    pub(crate) fn public_layers(&self) -> Result<(Vec<Spec>, Vec<f32>), Error> {
        let expected = "features of a public network on raw records";
        let Self::Network { path, digest } = self else {
            return Err(Error::Setting { name: "features", found: "of another kind".into(), expected });
        };
        let network = PublicNetwork::open(path, digest.as_deref())?;
        if !network.features.is_raw() {
            let found = "of a network that has features of its own".into();
            return Err(Error::Setting { name: "features", found, expected });
        }
        Ok((network.layers, network.weights))
    }

    /// Whether there is no transform.
    #[must_use]
    pub fn is_raw(&self) -> bool {
        *self == Self::Raw {}
    }

    /// Checks that the settings are in their ranges, for any shape of records.
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
            // Whether the groups divide the output channels depends on the shape of the records.
            Self::Scattering { scales, angles, order, groups: _ } => {
                within("scales", scales, 1, 8, "a whole number from 1 to 8")?;
                within("angles", angles, 1, 64, "a whole number from 1 to 64")?;
                within("order", order, 1, 2, "1 or 2")
            }
        }
    }

    /// Shape of the output for records of a shape, channels first.
    pub fn output_shape(&self, shape: &[usize]) -> Result<Vec<usize>, Error> {
        self.check()?;
        let misfit = |name: &'static str, setting: &dyn std::fmt::Display, expected: &'static str| {
            let found = format!("{setting} for records of {}", format_shape(shape));
            Error::Setting { name, found, expected }
        };
        let image = || match *shape {
            [channels, rows, columns] if element_count(shape).is_some() => Ok([channels, rows, columns]),
            _ => Err(misfit("features", &"computed from images", "records with channels, rows and columns")),
        };
        let output = match *self {
            Self::Raw {} => return Ok(shape.to_vec()),
            Self::Network { ref path, ref digest } => {
                vec![PublicNetwork::open(path, digest.as_deref())?.outputs(shape)?]
            }
            Self::Hog { orientations, cell, block } => {
                let hog = Hog::new(image()?, orientations, cell, block);
                hog.ok_or_else(|| {
                    misfit("block", &block, "blocks and cells so small that one block fits into an image")
                })?
                .output()
                .to_vec()
            }
            Self::Scattering { scales, angles, order, groups } => {
                let [channels, rows, columns] = image()?;
                if rows.min(columns) >> scales == 0 {
                    return Err(misfit(
                        "scales",
                        &scales,
                        "so few scales that an image has at least 2^scales rows and columns",
                    ));
                }
                let channels = channels * coefficients(scales, angles, order);
                if groups > 0 && !channels.is_multiple_of(groups) {
                    let expected = "a divisor of the number of output channels, or 0";
                    return Err(Error::Setting {
                        name: "groups",
                        found: format!("{groups} for {channels}"),
                        expected,
                    });
                }
                vec![channels, rows >> scales, columns >> scales]
            }
        };
        if element_count(&output).is_some() {
            Ok(output)
        } else {
            Err(misfit("features", &"too many numbers", "fewer features, or smaller images"))
        }
    }

    /// Transforms all records, or returns them unchanged if there is no transform.
    pub fn transform(&self, examples: Examples) -> Result<Examples, Error> {
        if self.is_raw() { Ok(examples) } else { self.apply(&examples) }
    }

    /// Transforms all records. Their order, targets and users stay the same.
    pub fn apply(&self, examples: &Examples) -> Result<Examples, Error> {
        if let Self::Network { path, digest } = self {
            return PublicNetwork::open(path, digest.as_deref())?.apply(examples);
        }
        let output = self.output_shape(examples.shape())?;
        match (self, examples.shape()) {
            (&Self::Hog { orientations, cell, block }, &[channels, rows, columns]) => {
                match Hog::new([channels, rows, columns], orientations, cell, block) {
                    Some(hog) => transform_all(&hog, examples, |_| ()),
                    None => examples.with_features(&output, Vec::new()),
                }
            }
            (&Self::Scattering { scales, angles, order, groups }, &[channels, rows, columns]) => {
                let scattering = Scattering::new([channels, rows, columns], scales, angles, order);
                transform_all(&scattering, examples, |record| normalize(record, groups))
            }
            _ => Ok(examples.clone()),
        }
    }
}

/// Transforms every record separately, on all cores.
fn transform_all<T: Transform>(
    transform: &T,
    examples: &Examples,
    finish: impl Fn(&mut [f32]) + Sync,
) -> Result<Examples, Error> {
    /// The least number of records that share buffers.
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

/// Added to the variance of a group, so that constant numbers become zeros.
pub(crate) const SMALLEST_VARIANCE: f64 = 1e-5;

/// Normalises each group of channels to mean zero and variance one.
fn normalize(record: &mut [f32], groups: usize) {
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

/// The number of elements of a shape; `None` if it is zero or too large.
fn element_count(shape: &[usize]) -> Option<usize> {
    let numbers = shape.iter().try_fold(1_usize, |numbers, side| numbers.checked_mul(*side));
    numbers.filter(|numbers| (1..=MOST_NUMBERS).contains(numbers))
}

/// Formats a shape for a message.
fn format_shape(shape: &[usize]) -> String {
    shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(" × ")
}
