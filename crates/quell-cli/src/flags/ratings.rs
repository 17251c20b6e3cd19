//! Flags of ratings. Flags override the configuration.

use std::path::PathBuf;

use anyhow::Result;
use quell::{data::RatingColumns, run::Configuration};

use crate::refusal::Refusal;

/// Ratings, for the model `factorization`.
#[derive(Clone, clap::Args)]
pub(crate) struct RatingArgs {
    /// Column of ratings with the user, for the model `factorization`
    #[arg(long, value_name = "COLUMN")]
    user: Option<String>,
    /// Column of ratings with the item
    #[arg(long, value_name = "COLUMN")]
    item: Option<String>,
    /// Column of ratings with the rating, a number
    #[arg(long, value_name = "COLUMN")]
    value: Option<String>,
    /// Smallest and largest possible rating; a rating beyond them counts as the nearer one
    #[arg(long, value_names = ["LOW", "HIGH"], num_args = 2, allow_negative_numbers = true)]
    bounds: Option<Vec<f64>>,
    /// Public list of items
    ///
    /// A table with the column --item, or a text file with one item a line.
    ///
    /// Ratings of other items are ignored.
    #[arg(long, value_name = "FILE")]
    items: Option<PathBuf>,
}

impl RatingArgs {
    pub(crate) fn apply_to(&self, asked: &mut Configuration) -> Result<()> {
        if let Some([lower, upper]) = self.bounds.as_deref() {
            asked.factorization.bounds = Some([*lower, *upper]);
        }
        let columns = [&self.user, &self.item, &self.value];
        if columns.iter().all(|column| column.is_none()) && self.items.is_none() {
            return Ok(());
        }
        let known = asked.data.ratings.take();
        let mut fields = known.map(|known| ([known.user, known.item, known.value], known.items));
        let mut column = |number: usize, flag: &str| {
            let given = columns[number].clone();
            given.or_else(|| fields.as_mut().map(|(names, _)| names[number].clone())).ok_or_else(|| {
                Refusal::new(format!("--{flag} is not given, expected the name of a column"), ALL)
            })
        };
        let [user, item, value] = [column(0, "user")?, column(1, "item")?, column(2, "value")?];
        let items = self.items.clone().or_else(|| fields.map(|(_, items)| items));
        let items = items.ok_or_else(|| {
            Refusal::new("--items is not given, expected a file with the public list of items", ALL)
        })?;
        asked.data.ratings = Some(RatingColumns { user, item, value, items, digest: None });
        Ok(())
    }
}

/// What a model of ratings needs.
const ALL: &str =
    "for example, --user userId --item movieId --value rating --bounds 0.5 5 --items movies.csv";
