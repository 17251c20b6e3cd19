//! The complete plan of a preparation.

use quell_privacy::units::Delta;

use super::{
    Preparation, Transform,
    columns::{Facts, Quantiles, Standard},
    state::Findings,
};
use crate::{
    Error,
    features::Pca,
    learner::{
        Privacy, Subject,
        glm::Columns,
        sums::Sums,
        unsupervised::{self, COMPONENT_RUNS, Kind},
    },
};

/// All settings of a preparation, fixed before the first record is read.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is paid for: the runs and their cost.
    pub sums: Sums,
    /// Number of features of a record before the preparation.
    pub width: usize,
    /// What is found, with its noise multiplier.
    pub preparation: Preparation,
    /// The features that are numbers.
    numbers: Vec<usize>,
    /// The plan that finds components, if they are sought.
    components: Option<unsupervised::Plan>,
}

/// Noise of a preparation, over that of one release with the whole guarantee.
///
/// Costs grow with one over the square of the noise, so a sixteenth of the budget is for the preparation.
const NOISE_RATIO: f64 = 4.0;

impl Preparation {
    /// Number of runs.
    fn runs(&self) -> u64 {
        match self {
            Self::None {} => 0,
            Self::Components { .. } => COMPONENT_RUNS,
            Self::Standardize { .. } => Standard::RUNS,
            Self::Quantiles { .. } => Quantiles::RUNS,
        }
    }

    /// What is found, in few words.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::None {} => "nothing",
            Self::Components { .. } => "principal components",
            Self::Standardize { .. } => "mean and spread of every column",
            Self::Quantiles { .. } => "quantiles of every column",
        }
    }
}

impl Plan {
    /// Plans a preparation for a guarantee of the whole, at the δ and the number of records that are given.
    pub(super) fn new(
        preparation: Preparation,
        privacy: Privacy,
        (records, delta): (u64, Delta),
        subject: &Subject<'_>,
    ) -> Result<Self, Error> {
        if preparation == (Preparation::None {}) {
            return Err(Error::Setting {
                name: "preparation",
                found: "none, and the method prepares records".into(),
                expected: "what is to be found about all records first",
            });
        }
        let whole = Privacy { delta: Some(delta.get()), noise_multiplier: None, ..privacy };
        let noise = match preparation.noise_multiplier() {
            Some(noise) => noise,
            None => NOISE_RATIO * whole.gaussian_noise(delta, 1)?,
        };
        let preparation = preparation.with_noise(noise);
        let noise_of_run = noise * (preparation.runs() as f64).sqrt();
        let of_runs = Privacy { epsilon: None, noise_multiplier: Some(noise_of_run), ..whole };
        if let Preparation::Components { count, .. } = preparation {
            let recipe = unsupervised::Recipe {
                privacy: of_runs,
                records: Some(records),
                components: Some(count),
                ..unsupervised::Recipe::default()
            };
            let found = unsupervised::Plan::new(&recipe, Kind::Components, subject)?;
            let (sums, width) = (found.sums.clone(), found.width);
            return Ok(Self { sums, width, preparation, numbers: Vec::new(), components: Some(found) });
        }
        subject.check_schema()?;
        let width = subject.shape.iter().product();
        let numbers: Vec<usize> = Columns::new(subject.schema, width).features_of_numbers().collect();
        if numbers.is_empty() {
            return Err(Error::Setting {
                name: "preparation",
                found: "for columns of numbers, and the schema has none".into(),
                expected: "no preparation",
            });
        }
        let dimension = match preparation {
            Preparation::Quantiles { .. } => {
                Quantiles::dimension(numbers.len(), records as f64, noise_of_run)
            }
            Preparation::Standardize { .. } | Preparation::Components { .. } | Preparation::None {} => {
                Standard::dimension(numbers.len())
            }
        };
        let sums = Sums::new(&of_runs, records, preparation.runs(), dimension)?;
        Ok(Self { sums, width, preparation, numbers, components: None })
    }

    /// A transform for the time before the preparation is over.
    pub(super) fn first_transform(&self) -> Transform {
        let Preparation::Components { count, .. } = self.preparation else {
            return self.findings().transform();
        };
        // It keeps the first features.
        let axis = |place: usize| f32::from(place / self.width == place % self.width);
        let components = (0..count * self.width).map(axis).collect();
        Transform::Components(Pca { mean: vec![0.0; self.width], components, variances: vec![0.0; count] })
    }

    /// What is known before the first run.
    pub(super) fn findings(&self) -> Findings {
        if let Some(components) = &self.components {
            return Findings::Components(components.findings());
        }
        let facts = Facts {
            width: self.width,
            numbers: self.numbers.clone(),
            records: self.sums.records as f64,
            noise: self.sums.noise(),
        };
        match self.preparation {
            Preparation::Quantiles { .. } => Findings::Quantiles(Quantiles::new(facts)),
            Preparation::Standardize { .. } | Preparation::Components { .. } | Preparation::None {} => {
                Findings::Standard(Standard::new(facts))
            }
        }
    }
}
