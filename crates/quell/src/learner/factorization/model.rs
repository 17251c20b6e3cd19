//! The model: released numbers about items, from which the side of a user computes recommendations.

use super::{
    recipe::{Scale, merged},
    taste::Taste,
    vectors::NO_PLACE,
};
use crate::{
    Error,
    data::Examples,
    learner::{
        Evaluation,
        predictor::{Fitted, hash_numbers},
        tensors::{Tensor, TensorFile, damaged},
    },
};

/// Popularity, biases and factors of items.
#[derive(Clone, Debug, PartialEq)]
pub struct Factorization {
    pub(super) scale: Scale,
    /// Number of items in the public list.
    pub(super) items: usize,
    /// The items with a bias, the most popular first.
    pub(super) kept: Vec<u32>,
    /// Number of items with factors: the first of `kept`.
    pub(super) paired: usize,
    /// Popularity and bias of each kept item, then one factor after the other.
    pub(super) weights: Vec<f32>,
    /// How much each factor is to be trusted, from 0 to 1.
    pub(super) trusts: Vec<f64>,
}

/// Recommendations whose recall is measured.
const TOP: usize = 10;
/// One rating in this many is held out, for each user, to measure recommendations.
const FOLDS: usize = 5;

/// An item that is recommended to a user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recommendation {
    /// The place of the item in the public list.
    pub item: u32,
    /// The predicted rating.
    pub rating: f64,
}

impl Factorization {
    /// All released numbers: popularity, biases and factors.
    #[must_use]
    pub fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// The items with a bias, by their place in the public list. The most popular is first.
    #[must_use]
    pub fn kept(&self) -> &[u32] {
        &self.kept
    }

    /// The popularity of each kept item: noisy, and less for users with many ratings.
    #[must_use]
    pub fn popularity(&self) -> &[f32] {
        &self.weights[..self.kept.len()]
    }

    /// The bias of each kept item, in parts of 4.5 stars between the bounds of a rating.
    #[must_use]
    pub fn biases(&self) -> &[f32] {
        &self.weights[self.kept.len()..2 * self.kept.len()]
    }

    /// Number of factors. With one factor or none, recommendations are the most popular items.
    #[must_use]
    pub fn factor_count(&self) -> usize {
        self.trusts.len()
    }

    /// The number of a factor for the item at a place, on the scale of predictions.
    pub(super) fn factor(&self, factor: usize, place: usize) -> f64 {
        let start = 2 * self.kept.len() + factor * self.paired;
        f64::from(self.weights[start + place]) * (self.paired as f64).sqrt()
    }

    /// The place of each item among the kept ones.
    fn places(&self) -> Vec<u32> {
        let mut places = vec![NO_PLACE; self.items];
        for (place, item) in self.kept.iter().enumerate() {
            places[*item as usize] = place as u32;
        }
        places
    }

    /// At most `top` items that suit a user best and that the user has not rated, best first.
    ///
    /// `ratings` are the user's own: items by their place in the public list, and ratings. Ratings of other
    /// items and ratings that are not numbers are ignored.
    #[must_use]
    pub fn recommend(&self, ratings: &[(u32, f32)], top: usize) -> Vec<Recommendation> {
        self.best(&self.places(), &self.own(ratings.iter().copied()), top)
    }

    /// Recommends items to a user with these ratings in stars, each item once.
    fn best(&self, places: &[u32], own: &[(u32, f32)], top: usize) -> Vec<Recommendation> {
        let mut is_rated = vec![false; self.kept.len()];
        for (item, _) in own {
            if let Some(is_rated) = is_rated.get_mut(places[*item as usize] as usize) {
                *is_rated = true;
            }
        }
        let mut order: Vec<usize> = (0..self.kept.len()).collect();
        if let Some(scores) = self.scores(&is_rated) {
            // The other kept items follow, the most popular first.
            order[..self.paired].sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        }
        let taste = Taste::new(self, places, own);
        let weights = taste.weights(None);
        order
            .into_iter()
            .filter(|place| !is_rated[*place])
            .take(top)
            .map(|place| Recommendation {
                item: self.kept[place],
                rating: self.scale.rating(taste.predict(&weights, Some(place))),
            })
            .collect()
    }

    /// The score of each item with factors; `None` if popularity says as much.
    fn scores(&self, is_rated: &[bool]) -> Option<Vec<f64>> {
        let rated: Vec<usize> = (0..self.paired).filter(|place| is_rated[*place]).collect();
        if self.trusts.len() < 2 || rated.is_empty() {
            return None;
        }
        let mut scores = vec![0.0; self.paired];
        for (number, trust) in self.trusts.iter().enumerate() {
            let sum: f64 = rated.iter().map(|place| self.factor(number, *place)).sum();
            for (place, score) in scores.iter_mut().enumerate() {
                *score += trust * sum * self.factor(number, place);
            }
        }
        Some(scores)
    }

    /// Ratings in stars, each item once.
    fn own(&self, ratings: impl Iterator<Item = (u32, f32)>) -> Vec<(u32, f32)> {
        let known = ratings.filter(|(item, _)| (*item as usize) < self.items);
        merged(known.filter_map(|(item, rating)| Some((item, self.scale.stars(rating)?))).collect())
    }

    /// Predicts each rating of each user from the other ratings of that user, and measures recommendations.
    ///
    /// The result is exact, not private. The error has the unit of a rating. A fifth of the items of each user
    /// is held out, and ten items are recommended from the other ratings. The recall of a user is the number of
    /// held-out items among them, divided by ten or by the number of held-out items if that is less.
    #[must_use]
    pub fn evaluate(&self, examples: &Examples) -> Evaluation {
        let places = self.places();
        let mut users = vec![Vec::new(); examples.user_count().unwrap_or(examples.len())];
        let mut value = [0.0];
        for example in 0..examples.len() {
            let user = examples.users().map_or(example, |users| users[example] as usize);
            examples.gather(example, &mut value);
            users[user].extend(examples.label(example).map(|item| (item, value[0])));
        }
        let (mut squares, mut count) = (0.0, 0_u64);
        let (mut recall, mut measured) = (0.0, 0_u64);
        for (number, user) in users.into_iter().enumerate() {
            let own = self.own(user.into_iter());
            if let Some(found) = self.recall(&places, &own, number % FOLDS) {
                (recall, measured) = (recall + found, measured + 1);
            }
            let taste = Taste::new(self, &places, &own);
            for (item, stars) in own {
                let place = Some(places[item as usize]).filter(|place| *place != NO_PLACE);
                let place = place.map(|place| place as usize);
                let weights = taste.weights(Some((place, f64::from(stars))));
                let predicted = self.scale.rating(taste.predict(&weights, place));
                squares += (predicted - self.scale.rating(stars.into())).powi(2);
                count += 1;
            }
        }
        Evaluation::Ratings {
            error: (squares / count.max(1) as f64).sqrt(),
            count,
            recall: (measured > 0).then(|| recall / measured as f64),
            users: measured,
        }
    }

    /// The recall of one user, of whose items every fifth is held out; `None` for a user with less than five.
    fn recall(&self, places: &[u32], own: &[(u32, f32)], first: usize) -> Option<f64> {
        if own.len() < FOLDS {
            return None;
        }
        let (mut rest, mut held_out) = (Vec::new(), std::collections::HashSet::new());
        for (place, rating) in own.iter().enumerate() {
            if place % FOLDS == first {
                held_out.insert(rating.0);
            } else {
                rest.push(*rating);
            }
        }
        let best = self.best(places, &rest, TOP);
        let hits = best.iter().filter(|recommended| held_out.contains(&recommended.item)).count();
        Some(hits as f64 / held_out.len().clamp(1, TOP) as f64)
    }
}

impl Fitted for Factorization {
    fn weights(&self) -> &[f32] {
        &self.weights
    }

    fn hash(&self, update: &mut dyn FnMut(&[u8])) {
        self.kept.iter().for_each(|item| update(&item.to_le_bytes()));
        self.trusts.iter().for_each(|trust| update(&trust.to_le_bytes()));
        hash_numbers(&self.weights, update);
    }

    fn measure(&self) -> &'static str {
        "error"
    }

    fn evaluate(&self, examples: &Examples) -> Evaluation {
        self.evaluate(examples)
    }

    fn tensors(&self) -> Vec<(String, Tensor)> {
        let (count, Scale { lower, upper }) = (self.kept.len(), self.scale);
        let kept: Vec<f64> = self.kept.iter().map(|item| f64::from(*item)).collect();
        let mut tensors = vec![
            (BOUNDS.into(), Tensor::double(&[lower, upper])),
            (ITEMS.into(), Tensor::double(&kept)),
            (POPULARITY.into(), Tensor::single(self.popularity())),
            (BIASES.into(), Tensor::single(self.biases())),
        ];
        if !self.trusts.is_empty() {
            let shape = vec![self.trusts.len(), self.paired];
            tensors.push((FACTORS.into(), Tensor::shaped(&self.weights[2 * count..], shape)));
            tensors.push((TRUSTS.into(), Tensor::double(&self.trusts)));
        }
        tensors
    }
}

/// Names of the tensors in a model file.
const BOUNDS: &str = "bounds";
const ITEMS: &str = "items";
const POPULARITY: &str = "popularity";
const BIASES: &str = "biases";
const FACTORS: &str = "factors";
const TRUSTS: &str = "shares";

/// Reads a model of `items` items from the bytes of a model file.
pub(crate) fn restore(bytes: &[u8], items: usize) -> Result<Factorization, Error> {
    let file = TensorFile::of_model(bytes)?;
    let [lower, upper] = file.double(BOUNDS)?.try_into().map_err(|_| damaged(BOUNDS))?;
    if lower >= upper {
        return Err(damaged(BOUNDS));
    }
    let mut is_kept = vec![false; items];
    let mut kept = Vec::new();
    for number in file.double(ITEMS)? {
        let item = number as u32;
        let place = is_kept.get_mut(item as usize).filter(|is_kept| !**is_kept);
        *place.filter(|_| f64::from(item) == number).ok_or_else(|| damaged(ITEMS))? = true;
        kept.push(item);
    }
    let mut weights = file.single(POPULARITY)?;
    weights.extend(file.single(BIASES)?);
    if weights.len() != 2 * kept.len() || file.shape(BIASES) != Some(vec![kept.len()]) {
        return Err(damaged(BIASES));
    }
    let (mut paired, mut trusts) = (0, Vec::new());
    if file.has(FACTORS) {
        let factors = file.single(FACTORS)?;
        trusts = file.double(TRUSTS)?;
        paired = factors.len() / trusts.len().max(1);
        if factors.len() != paired * trusts.len() || paired > kept.len() || trusts.is_empty() {
            return Err(damaged(FACTORS));
        }
        weights.extend(factors);
    }
    Ok(Factorization { scale: Scale { lower, upper }, items, kept, paired, weights, trusts })
}
