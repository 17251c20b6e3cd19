//! Noisy descent as the theory of excess risk plans it.

use quell_privacy::units::{Delta, Epsilon};

use super::{
    Algorithm, Recipe,
    rules::{RATE, STEPS},
};
use crate::{Error, learner::convex};

/// Steps and samples that the theory of excess risk plans for descent on the declared bounds.
pub(super) struct Theory {
    pub(super) steps: u64,
    pub(super) sampling_rate: f64,
}

impl Theory {
    /// The plan of [`convex::Plan`] for smooth convex losses; the usual numbers if ε follows from the noise.
    pub(super) fn new(
        recipe: &Recipe,
        records: u64,
        weights: usize,
        (smoothness, radius): (f64, f64),
        delta: Delta,
    ) -> Result<Self, Error> {
        let usual = Self { steps: STEPS, sampling_rate: RATE };
        let method = match recipe.method {
            Algorithm::NoisyGd => convex::Method::NoisyGd,
            Algorithm::NoisySgd => convex::Method::NoisySgd,
            _ => return Ok(usual),
        };
        let Some(epsilon) = recipe.privacy.epsilon else { return Ok(usual) };
        let samples = method == convex::Method::NoisySgd;
        if recipe.steps.is_some() && (recipe.sampling_rate.is_some() || !samples) {
            return Ok(usual);
        }
        let problem = convex::Problem {
            records,
            dimension: weights as u64,
            lipschitz: 1.0,
            smoothness: Some(smoothness),
            strong_convexity: None,
            radius,
        };
        let privacy =
            convex::Privacy { epsilon: Epsilon::new(epsilon)?, delta, neighbors: recipe.privacy.neighbors };
        let loss = convex::Loss::SmoothConvex;
        let planned = convex::Plan::new(&problem, privacy, method, loss, convex::Factor::default())?;
        Ok(match planned.procedure {
            convex::Procedure::Descend(descend) => {
                Self { steps: descend.steps, sampling_rate: descend.batch_size as f64 / records as f64 }
            }
            convex::Procedure::Minimise { .. } => usual,
        })
    }
}
