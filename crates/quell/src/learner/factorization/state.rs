//! What is known about the items after the releases so far.

use super::{
    Factorization, Plan,
    plan::FIRST_RUNS,
    vectors::{NO_PLACE, Ratings, SHARE_OF_ITEMS, SHARE_OF_RATINGS, Stage, Vectors},
};
use crate::learner::sums::{Estimates, Moments, Releases, Spectrum};

/// All releases of a run so far.
pub type State = Releases<Items>;

/// What is known about the items after the releases so far. It is public.
#[derive(Clone, Debug)]
pub struct Items {
    plan: Plan,
    /// The items that are kept, at first by the list, then by their popularity.
    kept: Vec<u32>,
    /// The place of each item among the kept ones.
    places: Vec<u32>,
    /// The popularity of each kept item.
    popularity: Vec<f64>,
    /// The bias of each kept item, in stars.
    biases: Vec<f64>,
    /// Which pairs of items the same users rate.
    pairs: Moments,
    /// Number of runs that are over.
    done: u64,
}

/// The usual size of a bias, in stars.
const USUAL_BIAS: f64 = 0.35;
/// The variance of ratings of one item, in parts of its popularity.
const RATING_VARIANCE: f64 = 0.15;
/// The most factors.
pub(super) const MOST_FACTORS: usize = 20;

impl Estimates for Items {
    type Task<'t> = Ratings;
    type Vectors<'a> = Vectors<'a>;

    fn vectors<'a>(&'a self, task: &'a Ratings, dimension: usize) -> Option<Vectors<'a>> {
        Some(Vectors::new(task, self.stage()?, dimension))
    }

    fn length(&self) -> usize {
        self.stage().map_or(0, |stage| stage.length())
    }

    fn apply(&mut self, released: Option<&[f64]>) {
        match (self.done, released) {
            (_, None) => {}
            (0, Some(released)) => self.select(released),
            (1, Some(released)) => self.estimate(released),
            (_, Some(released)) => self.pairs.add(released),
        }
        self.done += 1;
        if self.done == FIRST_RUNS {
            self.order();
        }
    }
}

impl Items {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut items = Self {
            plan: plan.clone(),
            kept: Vec::new(),
            places: Vec::new(),
            popularity: vec![0.0; plan.kept],
            biases: vec![0.0; plan.kept],
            pairs: Moments::default(),
            done: 0,
        };
        items.keep((0..plan.kept as u32).collect());
        items
    }

    /// What the next run sums; `None` if all runs are over.
    pub(super) fn stage(&self) -> Option<Stage<'_>> {
        let places = &self.places;
        match self.done {
            0 => Some(Stage::Popularity { items: self.plan.items }),
            1 => Some(Stage::Biases { places, count: self.plan.kept }),
            run if run < self.plan.sums.runs => Some(Stage::Pairs { places, count: self.plan.paired }),
            _ => None,
        }
    }

    /// Keeps the items with the largest numbers.
    fn select(&mut self, released: &[f64]) {
        let mut items: Vec<u32> = (0..self.plan.items as u32).collect();
        // Of equal numbers, the first in the list.
        items.sort_by(|a, b| released[*b as usize].total_cmp(&released[*a as usize]));
        items.truncate(self.plan.kept);
        self.popularity = items.iter().map(|item| released[*item as usize]).collect();
        self.keep(items);
    }

    /// Estimates the biases of the kept items, each of which is drawn to zero as noise demands.
    fn estimate(&mut self, released: &[f64]) {
        let (weights, sums) = released.split_at(self.plan.kept);
        let noise = self.plan.sums.noise();
        let noise_of_sum = noise * noise / SHARE_OF_RATINGS;
        self.popularity = weights.iter().map(|weight| weight / SHARE_OF_ITEMS.sqrt()).collect();
        let usual = USUAL_BIAS * USUAL_BIAS;
        let bias = |(popularity, sum): (&f64, &f64)| {
            let weight = popularity.max(0.0);
            let spread = weight * weight * usual + noise_of_sum + RATING_VARIANCE * weight;
            weight * (sum / SHARE_OF_RATINGS.sqrt()) * usual / spread
        };
        self.biases = self.popularity.iter().zip(sums).map(bias).collect();
    }

    /// Puts the kept items in the order of their popularity.
    fn order(&mut self) {
        let mut order: Vec<usize> = (0..self.kept.len()).collect();
        order.sort_by(|a, b| self.popularity[*b].total_cmp(&self.popularity[*a]));
        self.popularity = order.iter().map(|place| self.popularity[*place]).collect();
        self.biases = order.iter().map(|place| self.biases[*place]).collect();
        self.keep(order.iter().map(|place| self.kept[*place]).collect());
    }

    fn keep(&mut self, items: Vec<u32>) {
        self.places = vec![NO_PLACE; self.plan.items];
        for (place, item) in items.iter().enumerate() {
            self.places[*item as usize] = place as u32;
        }
        self.kept = items;
    }

    /// The model that follows from the releases so far.
    pub(super) fn model(&self) -> Factorization {
        let (factors, trusts) = self.factors();
        let numbers = [&*self.popularity, &*self.biases, &*factors].concat();
        Factorization {
            scale: self.plan.scale,
            items: self.plan.items,
            kept: self.kept.clone(),
            paired: if trusts.is_empty() { 0 } else { self.plan.paired },
            weights: numbers.iter().map(|x| *x as f32).collect(),
            trusts,
        }
    }

    /// The eigenvectors of pairs that stand out from noise, and how much each is to be trusted.
    fn factors(&self) -> (Vec<f64>, Vec<f64>) {
        let width = self.plan.paired;
        if self.pairs.is_empty() || width == 0 {
            return (Vec::new(), Vec::new());
        }
        let Spectrum { values, vectors, edge } =
            self.pairs.spectrum(width, MOST_FACTORS, (self.plan.sums.noise(), 1.0));
        let above = values.iter().take(MOST_FACTORS).filter(|value| **value > edge).count();
        let number = above.clamp(1, MOST_FACTORS.min(width));
        let trust = |value: &f64| {
            if *value <= 0.5 * edge { 0.0 } else { (1.0 - (0.5 * edge / value).powi(2)).sqrt() }
        };
        (vectors[..number * width].to_vec(), values[..number].iter().map(trust).collect())
    }
}
