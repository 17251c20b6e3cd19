//! What the side of a user learns from the user's own ratings. Nothing of it is released.

use super::{Factorization, recipe::Scale, vectors::NO_PLACE};
use crate::learner::glm::cholesky::Cholesky;

/// Sums over the ratings of one user, from which a ridge regression on the factors of items follows.
pub(super) struct Taste<'m> {
    model: &'m Factorization,
    /// Number of ratings.
    count: f64,
    /// Σ d, where d is a rating about the public guess and the bias of its item, in stars.
    deviation: f64,
    /// Σ f fᵀ, where f are the factors of a rated item.
    squares: Vec<f64>,
    /// Σ f d.
    products: Vec<f64>,
    /// Σ f.
    factors: Vec<f64>,
}

/// The generosity of a user, in stars, and the weight of each factor.
pub(super) struct Weights {
    generosity: f64,
    factors: Vec<f64>,
}

/// This many ratings of no deviation are added to the user's own.
const PRIOR_RATINGS: f64 = 3.0;
/// The weight of the penalty on the weights of factors.
const RIDGE: f64 = 20.0;

impl<'m> Taste<'m> {
    /// Sums up ratings in stars, each item once.
    pub(super) fn new(model: &'m Factorization, places: &[u32], own: &[(u32, f32)]) -> Self {
        let width = model.factor_count();
        let mut taste = Self {
            model,
            count: 0.0,
            deviation: 0.0,
            squares: vec![0.0; width * width],
            products: vec![0.0; width],
            factors: vec![0.0; width],
        };
        for (item, stars) in own {
            let place = Some(places[*item as usize]).filter(|place| *place != NO_PLACE);
            taste.add(place.map(|place| place as usize), f64::from(*stars), 1.0);
        }
        taste
    }

    fn bias(&self, place: Option<usize>) -> f64 {
        place.map_or(0.0, |place| f64::from(self.model.biases()[place]))
    }

    /// The factors of an item; zeros if it has none.
    fn factors_of(&self, place: Option<usize>) -> Vec<f64> {
        let place = place.filter(|place| *place < self.model.paired);
        let factors = 0..self.model.factor_count();
        factors.map(|number| place.map_or(0.0, |place| self.model.factor(number, place))).collect()
    }

    /// Adds a rating, or takes it away if `sign` is -1.
    fn add(&mut self, place: Option<usize>, stars: f64, sign: f64) {
        let deviation = stars - Scale::GUESS - self.bias(place);
        self.count += sign;
        self.deviation += sign * deviation;
        if place.is_none_or(|place| place >= self.model.paired) {
            return;
        }
        let own = self.factors_of(place);
        let width = own.len();
        for (row, x) in own.iter().enumerate() {
            self.products[row] += sign * x * deviation;
            self.factors[row] += sign * x;
            for (column, y) in own.iter().enumerate() {
                self.squares[row * width + column] += sign * x * y;
            }
        }
    }

    /// Fits the user's weights to all ratings, or to all but one.
    pub(super) fn weights(&self, without: Option<(Option<usize>, f64)>) -> Weights {
        if let Some((place, stars)) = without {
            let mut rest = Self {
                model: self.model,
                count: self.count,
                deviation: self.deviation,
                squares: self.squares.clone(),
                products: self.products.clone(),
                factors: self.factors.clone(),
            };
            rest.add(place, stars, -1.0);
            return rest.weights(None);
        }
        let generosity = self.deviation / (self.count + PRIOR_RATINGS);
        let sums = self.products.iter().zip(&self.factors);
        let mut factors: Vec<f64> = sums.map(|(product, factor)| product - generosity * factor).collect();
        match Cholesky::new(&self.squares, factors.len(), RIDGE) {
            Some(system) => system.solve(&mut factors),
            None => factors.fill(0.0),
        }
        Weights { generosity, factors }
    }

    /// Predicts the rating of an item, in stars above the lower bound.
    pub(super) fn predict(&self, weights: &Weights, place: Option<usize>) -> f64 {
        let own = self.factors_of(place);
        let taste: f64 = own.iter().zip(&weights.factors).map(|(x, weight)| x * weight).sum();
        Scale::GUESS + weights.generosity + self.bias(place) + taste
    }
}
