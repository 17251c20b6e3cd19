//! The complete plan of synthetic data.

use super::{Domain, Measurements, Recipe, measurements::COARSE, query::all_pairs, schedule};
use crate::{
    Error, Input,
    learner::{Subject, sums::Sums},
};

/// All settings of a run, fixed before the first record is read.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is paid for: the runs and their cost.
    pub sums: Sums,
    /// The columns, and their values.
    pub domain: Domain,
    /// Number of rows that are drawn, and the seed.
    pub rows: (usize, u64),
}

/// The most cells of chosen pairs that one run releases.
const MOST_RELEASED: usize = 1 << 17;
/// Fewer records than this, in standard deviations of one release with the whole guarantee, give poor pairs.
const FEW: f64 = 500.0;

impl Plan {
    /// Completes the settings for the columns of a schema, from public facts. Nothing is charged yet.
    pub fn new(recipe: &Recipe, subject: &Subject<'_>) -> Result<Self, Error> {
        let refused =
            |found: &str, expected| Error::Setting { name: "the data", found: found.into(), expected };
        let schema = subject.schema.ok_or_else(|| refused("not a table", "a table with a schema"))?;
        let domain = Domain::new(schema)?;
        if subject.shape != [domain.features] {
            let expected = "the columns of the schema, the label among them, with unknown cells marked";
            return Err(refused("of other features than those of the schema", expected));
        }
        let records = recipe.records.or(subject.facts.records).filter(|records| *records > 0);
        let records = records.ok_or(Error::Missing { what: Input::RecordCount })?;
        let (sizes, columns) = (domain.sizes(), domain.columns.len());
        let pairs = all_pairs(columns);
        let cells = pairs.iter().fold(0_usize, |sum, (a, b)| sum.saturating_add(sizes[*a] * sizes[*b]));
        let dimension =
            sizes.iter().sum::<usize>().max(pairs.len() * COARSE * COARSE).max(cells.min(MOST_RELEASED));
        let sums = Sums::new(&recipe.privacy, records, schedule::runs(columns), dimension)?;
        let rows = (recipe.row_count(records)?, recipe.seed);
        Ok(Self { sums, domain, rows })
    }

    /// The estimates before the first run.
    pub(super) fn first(&self) -> Measurements {
        let Sums { records, ref descent, .. } = self.sums;
        Measurements::new(self.domain.clone(), records as f64, self.sums.noise(), descent.dimension)
    }

    /// A remark on public facts that make the rows poor.
    pub(super) fn remark(&self) -> Option<String> {
        let Sums { records, runs, .. } = self.sums;
        let columns = self.domain.columns.len() as f64;
        let noise = self.sums.noise() / (runs as f64).sqrt() * columns.sqrt();
        (columns > 1.0 && (records as f64) < FEW * noise).then(|| {
            "with so few records at this ε, noise hides most of what connects the columns: ask for a larger ε, \
             or ignore columns"
                .into()
        })
    }
}
