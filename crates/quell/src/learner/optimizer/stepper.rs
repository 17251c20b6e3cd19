//! The state of an optimizer, and its step.

use super::{Optimizer, pass};
use crate::{Error, range::NOT_NEGATIVE};

/// The parameters of one step, besides the gradient.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update {
    /// The learning rate η, from a schedule.
    pub learning_rate: f64,
    /// Factor of the gradient. For a sum, it is one over the expected batch size.
    pub scale: f64,
    /// Variance of the noise in one entry of the gradient after scaling: (σC/B)². Only DP-AdamBC uses it.
    pub noise_variance: f64,
}

impl Default for Update {
    /// A learning rate of zero, no scaling and no noise.
    fn default() -> Self {
        Self { learning_rate: 0.0, scale: 1.0, noise_variance: 0.0 }
    }
}

/// An optimizer with its state.
///
/// The same steps from the same state give the same weights, on any number of cores.
#[derive(Clone, Debug, PartialEq)]
pub struct Stepper {
    optimizer: Optimizer,
    layers: Vec<usize>,
    dimension: usize,
    steps: u64,
    /// Momentum or first moment; empty if the optimizer has none.
    first: Vec<f32>,
    /// Second moment or sum of squares; empty if the optimizer has none.
    second: Vec<f32>,
    /// The running mean of the noise's variance, as the sum of two numbers.
    ///
    /// A single number in single precision would stop changing at a relative distance of 10⁻⁵ from its limit.
    noise: [f32; 2],
}

/// Name of the noise variance in a saved state.
const NOISE: &str = "noise_variance";

impl Stepper {
    pub(super) fn new(optimizer: Optimizer, layers: &[usize]) -> Self {
        let dimension = layers.iter().sum();
        let mut stepper = Self {
            optimizer,
            layers: layers.to_vec(),
            dimension,
            steps: 0,
            first: Vec::new(),
            second: Vec::new(),
            noise: [0.0; 2],
        };
        let (first, second) = stepper.names();
        stepper.first = vec![0.0; first.map_or(0, |_| dimension)];
        let initial = if let Optimizer::AdaGrad { initial, .. } = optimizer { initial as f32 } else { 0.0 };
        stepper.second = vec![initial; second.map_or(0, |_| dimension)];
        stepper
    }

    /// The settings of the optimizer.
    #[must_use]
    pub fn optimizer(&self) -> Optimizer {
        self.optimizer
    }

    /// Number of steps taken.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Updates the weights with one released gradient.
    ///
    /// It makes one pass over weights, gradient and moments (LAMB makes two). An error leaves everything
    /// unchanged.
    pub fn step(&mut self, weights: &mut [f32], gradient: &[f32], step: Update) -> Result<(), Error> {
        for (what, found) in [("weights", weights.len()), ("gradient", gradient.len())] {
            if found != self.dimension {
                return Err(Error::Length { what, found, expected: self.dimension });
            }
        }
        NOT_NEGATIVE.check("learning_rate", step.learning_rate)?;
        NOT_NEGATIVE.check("scale", step.scale)?;
        NOT_NEGATIVE.check("noise_variance", step.noise_variance)?;
        self.steps = self.steps.saturating_add(1);
        let (rate, scale) = (step.learning_rate, step.scale as f32);
        match self.optimizer {
            Optimizer::Sgd { weight_decay } => {
                let (rate, decay) = (rate as f32, weight_decay as f32);
                pass::without_moments(weights, gradient, move |w, g| *w -= rate * (scale * g + decay * *w));
            }
            Optimizer::Momentum { momentum, nesterov, weight_decay } => {
                let (rate, keep, decay) = (rate as f32, momentum as f32, weight_decay as f32);
                // Nesterov momentum adds the gradient once more, and decays the momentum once more.
                let (gradient_weight, momentum_weight) = if nesterov { (1.0, keep) } else { (0.0, 1.0) };
                pass::with_one_moment(weights, gradient, &mut self.first, move |w, g, u| {
                    let g = scale * g + decay * *w;
                    *u = keep * *u + g;
                    *w -= rate * (gradient_weight * g + momentum_weight * *u);
                });
            }
            Optimizer::Adam { beta1, beta2, epsilon, weight_decay } => {
                self.adam(weights, gradient, step, [beta1, beta2], epsilon, [weight_decay, 0.0]);
            }
            Optimizer::AdamW { beta1, beta2, epsilon, weight_decay } => {
                self.adam(weights, gradient, step, [beta1, beta2], epsilon, [0.0, weight_decay]);
            }
            Optimizer::AdamBc { beta1, beta2, floor, weight_decay } => {
                self.adam_bc(weights, gradient, step, [beta1, beta2], floor, weight_decay);
            }
            Optimizer::AdaGrad { epsilon, weight_decay, .. } => {
                let (rate, epsilon, decay) = (rate as f32, epsilon as f32, weight_decay as f32);
                pass::with_one_moment(weights, gradient, &mut self.second, move |w, g, s| {
                    let g = scale * g + decay * *w;
                    *s += g * g;
                    *w -= rate * g / (s.sqrt() + epsilon);
                });
            }
            Optimizer::Lamb { beta1, beta2, epsilon, weight_decay } => {
                self.lamb(weights, gradient, step, [beta1, beta2], epsilon, weight_decay);
            }
        }
        Ok(())
    }

    /// Adam and AdamW. `decay` is the weight decay in the gradient, and the decoupled weight decay.
    fn adam(
        &mut self,
        weights: &mut [f32],
        gradient: &[f32],
        step: Update,
        betas: [f64; 2],
        epsilon: f64,
        decay: [f64; 2],
    ) {
        let mean = Means::new(betas, self.steps);
        let (scale, epsilon) = (step.scale as f32, epsilon as f32);
        let [coupled, decoupled] = [decay[0] as f32, (step.learning_rate * decay[1]) as f32];
        let rate = (step.learning_rate * mean.correction[0]) as f32;
        let correction = mean.correction[1].sqrt() as f32;
        pass::with_two_moments(weights, gradient, [&mut self.first, &mut self.second], move |w, g, m, v| {
            mean.add(scale * g + coupled * *w, m, v);
            *w -= decoupled * *w;
            *w -= rate * *m / (correction * v.sqrt() + epsilon);
        });
    }

    fn adam_bc(
        &mut self,
        weights: &mut [f32],
        gradient: &[f32],
        step: Update,
        betas: [f64; 2],
        floor: f64,
        decay: f64,
    ) {
        let mean = Means::new(betas, self.steps);
        let (scale, floor, decay) = (step.scale as f32, floor as f32, (step.learning_rate * decay) as f32);
        let noise = self.noise.map(f64::from).iter().sum::<f64>();
        let noise = f64::from(mean.keep[1]) * noise + f64::from(mean.take[1]) * step.noise_variance;
        self.noise = [noise as f32, (noise - f64::from(noise as f32)) as f32];
        let rate = (step.learning_rate * mean.correction[0]) as f32;
        let (correction, noise) = (mean.correction[1] as f32, (mean.correction[1] * noise) as f32);
        pass::with_two_moments(weights, gradient, [&mut self.first, &mut self.second], move |w, g, m, v| {
            mean.add(scale * g, m, v);
            *w -= decay * *w;
            *w -= rate * *m / (correction * *v - noise).max(floor).sqrt();
        });
    }

    fn lamb(
        &mut self,
        weights: &mut [f32],
        gradient: &[f32],
        step: Update,
        betas: [f64; 2],
        epsilon: f64,
        decay: f64,
    ) {
        let mean = Means::new(betas, self.steps);
        let (scale, epsilon, decay) = (step.scale as f32, epsilon as f32, decay as f32);
        let (first, second) = (mean.correction[0] as f32, mean.correction[1].sqrt() as f32);
        let direction = move |w: f32, m: f32, v: f32| first * m / (second * v.sqrt() + epsilon) + decay * w;
        let mut end = 0;
        for length in &self.layers {
            let layer = end..end + length;
            end = layer.end;
            let (weights, gradient) = (&mut weights[layer.clone()], &gradient[layer.clone()]);
            let (m, v) = (&mut self.first[layer.clone()], &mut self.second[layer]);
            let [weights_squared, direction_squared] =
                pass::sums(weights, gradient, [&mut *m, &mut *v], move |w, g, m, v| {
                    mean.add(scale * g, m, v);
                    [w, direction(w, *m, *v)].map(|x| f64::from(x).powi(2))
                });
            let trust_ratio = if weights_squared > 0.0 && direction_squared > 0.0 {
                (weights_squared / direction_squared).sqrt()
            } else {
                1.0
            };
            let rate = (step.learning_rate * trust_ratio) as f32;
            pass::with_two_moments(weights, gradient, [m, v], move |w, _, m, v| {
                *w -= rate * direction(*w, *m, *v);
            });
        }
    }

    /// Names of the moments in a saved state.
    fn names(&self) -> (Option<&'static str>, Option<&'static str>) {
        match self.optimizer {
            Optimizer::Sgd { .. } => (None, None),
            Optimizer::Momentum { .. } => (Some("momentum"), None),
            Optimizer::AdaGrad { .. } => (None, Some("squares")),
            Optimizer::Adam { .. }
            | Optimizer::AdamW { .. }
            | Optimizer::AdamBc { .. }
            | Optimizer::Lamb { .. } => (Some("first_moment"), Some("second_moment")),
        }
    }

    /// The named parts of the state that [`Stepper::restore`] needs, besides the number of steps.
    #[must_use]
    pub fn state(&self) -> Vec<(&'static str, &[f32])> {
        let (first, second) = self.names();
        let noise =
            matches!(self.optimizer, Optimizer::AdamBc { .. }).then_some((NOISE, self.noise.as_slice()));
        let moments = [
            first.map(|name| (name, self.first.as_slice())),
            second.map(|name| (name, self.second.as_slice())),
            noise,
        ];
        moments.into_iter().flatten().collect()
    }

    /// Restores a saved state of the same optimizer. An error leaves everything unchanged.
    pub fn restore(&mut self, steps: u64, state: &[(&str, &[f32])]) -> Result<(), Error> {
        let expected: Vec<(&'static str, usize)> =
            self.state().iter().map(|(name, part)| (*name, part.len())).collect();
        let wrong =
            |part: &str, found, expected| Err(Error::SavedState { part: part.to_owned(), found, expected });
        for (position, (name, part)) in state.iter().enumerate() {
            let Some((what, length)) = expected.iter().find(|(what, _)| what == name) else {
                return wrong(name, "present", "absent: these settings have no such part");
            };
            if state[..position].iter().any(|(other, _)| other == name) {
                return wrong(name, "present twice", "present once");
            }
            if part.len() != *length {
                return Err(Error::Length { what, found: part.len(), expected: *length });
            }
            if !part.iter().all(|x| x.is_finite()) {
                return wrong(name, "not finite", "finite numbers");
            }
            if ["second_moment", "squares"].contains(what) && part.iter().any(|x| *x < 0.0) {
                return wrong(name, "negative", "a mean or sum of squares");
            }
        }
        if let Some((absent, _)) =
            expected.iter().find(|(what, _)| state.iter().all(|(name, _)| name != what))
        {
            return wrong(absent, "absent", "present");
        }
        let (first, second) = self.names();
        for (name, part) in state {
            let place = match Some(*name) {
                name if name == first => self.first.as_mut_slice(),
                name if name == second => self.second.as_mut_slice(),
                _ => self.noise.as_mut_slice(),
            };
            place.copy_from_slice(part);
        }
        self.steps = steps;
        Ok(())
    }
}

/// The coefficients of Adam's running means after a number of steps.
#[derive(Clone, Copy)]
struct Means {
    /// Weights of the old means.
    keep: [f32; 2],
    /// Weights of the new values.
    take: [f32; 2],
    /// Bias corrections: factors of means that started at zero.
    correction: [f64; 2],
}

impl Means {
    /// Computes all coefficients from the decay factors in single precision.
    ///
    /// If `take` were rounded separately, `keep` and `take` would not add up to one. At a decay of 0.999, a
    /// mean of squares would become too large by a relative 10⁻⁵.
    fn new(betas: [f64; 2], steps: u64) -> Self {
        let keep = betas.map(|beta| beta as f32);
        let correction = keep.map(|keep| (1.0 - f64::from(keep).powf(steps as f64)).recip());
        Self { keep, take: keep.map(|keep| 1.0 - keep), correction }
    }

    #[inline]
    fn add(&self, gradient: f32, first: &mut f32, second: &mut f32) {
        *first = self.keep[0] * *first + self.take[0] * gradient;
        *second = self.keep[1] * *second + self.take[1] * gradient * gradient;
    }
}
