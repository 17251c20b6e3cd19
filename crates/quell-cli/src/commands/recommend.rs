//! Recommendations of a model of ratings, computed from each user's own ratings.

use std::path::Path;

use anyhow::Result;
use quell::{
    data::csv_cell,
    learner::factorization::{Factorization, Recommendation},
    run::Model,
};
use quell_privacy::number::format_brief;
use serde_json::{Value, json};

use crate::refusal::Refusal;

/// The best items for each user of a file.
pub(super) struct Recommended<'m> {
    /// The names of the columns with the user and the item.
    columns: [&'m str; 2],
    items: &'m [String],
    users: Vec<(String, Vec<Recommendation>)>,
}

impl<'m> Recommended<'m> {
    /// Reads the ratings of some users, and finds at most `top` items for each.
    pub(super) fn new(
        model: &'m Model,
        factorization: &Factorization,
        path: Option<&Path>,
        top: usize,
    ) -> Result<Self> {
        let items = model.classes.as_deref().unwrap_or_default();
        let (Some(path), Some(columns)) = (path, &model.configuration.data.ratings) else {
            let sentence = "no data is given, expected a table with the ratings of some users";
            return Err(Refusal::new(sentence, "give a file after the model").into());
        };
        let users = columns.users(path, items)?.into_iter();
        let users = users.map(|own| (own.user, factorization.recommend(&own.ratings, top))).collect();
        Ok(Self { columns: [&columns.user, &columns.item], items, users })
    }

    fn name(&self, recommendation: &Recommendation) -> &str {
        self.items.get(recommendation.item as usize).map_or("", String::as_str)
    }

    /// CSV with a header and one line for each user and item.
    pub(super) fn lines(&self) -> String {
        let [user, item] = self.columns.map(csv_cell);
        let mut text = format!("{user},rank,{item},prediction\n");
        for (user, best) in &self.users {
            for (rank, one) in best.iter().enumerate() {
                let cells = [
                    csv_cell(user),
                    (rank + 1).to_string(),
                    csv_cell(self.name(one)),
                    format_brief(one.rating),
                ];
                text.push_str(&(cells.join(",") + "\n"));
            }
        }
        text
    }

    pub(super) fn objects(&self) -> Vec<Value> {
        let object = |(user, best): &(String, Vec<Recommendation>)| {
            let items = best.iter().map(|one| json!({"item": self.name(one), "prediction": one.rating}));
            json!({"user": user, "items": items.collect::<Vec<_>>()})
        };
        self.users.iter().map(object).collect()
    }
}
