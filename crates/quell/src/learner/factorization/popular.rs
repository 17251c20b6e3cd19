//! What a model says about items: the most popular ones, and how ratings differ between items.
//!
//! Everything here follows from released numbers and the public list of items, so it costs nothing.

use serde::Serialize;

use super::{Factorization, recipe::Scale};

/// The kept items, the most popular first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Popular {
    /// The kept items, the most popular first.
    pub items: Vec<PopularItem>,
    /// The least, the quarters and the largest of all numbers `above_usual`.
    pub spread: [f64; 5],
    /// Number of factors.
    pub factors: usize,
}

/// What was released about an item.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PopularItem {
    /// The item, as the public list names it.
    pub item: String,
    /// The noisy count of its users, in which users with many ratings count less.
    pub popularity: f64,
    /// By how much users rate it above their own usual rating, in the units of ratings.
    pub above_usual: f64,
}

impl Popular {
    /// Describes a model of the items of a public list.
    #[must_use]
    pub fn new(model: &Factorization, names: &[String]) -> Self {
        let unit = (model.scale.upper - model.scale.lower) / Scale::STARS;
        let numbers = model.kept().iter().zip(model.popularity()).zip(model.biases());
        let item = |((item, popularity), bias): ((&u32, &f32), &f32)| PopularItem {
            item: names.get(*item as usize).cloned().unwrap_or_default(),
            popularity: f64::from(*popularity),
            above_usual: unit * f64::from(*bias),
        };
        let items: Vec<PopularItem> = numbers.map(item).collect();
        let mut sorted: Vec<f64> = items.iter().map(|item| item.above_usual).collect();
        sorted.sort_by(f64::total_cmp);
        let at =
            |quarter: usize| sorted.get(quarter * sorted.len().saturating_sub(1) / 4).copied().unwrap_or(0.0);
        Self { items, spread: std::array::from_fn(at), factors: model.factor_count() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_their_names_and_biases_the_units_of_ratings() {
        let model = Factorization {
            scale: Scale { lower: 0.0, upper: 45.0 },
            items: 4,
            kept: vec![2, 0, 3],
            paired: 0,
            weights: vec![9.0, 5.0, 1.0, 0.25, -0.5, 0.0],
            trusts: Vec::new(),
        };
        let names = ["a", "b", "c", "d"].map(String::from);
        let popular = Popular::new(&model, &names);
        let found: Vec<_> = popular
            .items
            .iter()
            .map(|item| (item.item.as_str(), item.popularity, item.above_usual))
            .collect();
        assert_eq!(found, [("c", 9.0, 2.5), ("a", 5.0, -5.0), ("d", 1.0, 0.0)]);
        assert_eq!((popular.spread, popular.factors), ([-5.0, -5.0, 0.0, 0.0, 2.5], 0));
    }
}
