//! Steps of Newton's method, in double precision.
//!
//! Nothing here is trusted: a bad step costs time, and the certificate of a point decides whether it is
//! released.

use super::{problem::LinearObjective, records::Design};

/// Most steps of the conjugate gradient method.
const STEPS: usize = 500;

/// The residual at which a direction is good enough, relative to the gradient.
const RESIDUAL: f64 = 1e-4;

/// The slope along a direction at which a step is long enough, relative to the slope at its beginning.
const LEVEL: f64 = 0.1;

/// Most evaluations of the slope along a direction.
const EVALUATIONS: usize = 60;

/// A step that lowers the objective from the point with these predictions and this gradient.
pub(super) fn step(
    objective: &LinearObjective,
    design: &Design,
    predictions: &[f64],
    gradient: &[f64],
) -> Vec<f64> {
    let penalty = objective.regularization.get();
    let derivatives = || {
        design.rows().zip(predictions).map(|((_, target), z)| objective.loss.derivatives((*z).into(), target))
    };
    let curvatures: Vec<f64> = derivatives().map(|(_, curvature)| curvature).collect();
    let slopes: Vec<f64> = derivatives().map(|(slope, _)| slope.high).collect();
    let direction = direction(design, &curvatures, penalty, gradient);
    // The predictions move along a line, so the slope of the objective along it needs no features.
    let moves: Vec<f64> = design.rows().map(|(features, _)| product(features, &direction)).collect();
    let (start, square) = (dot(gradient, &direction), dot(&direction, &direction));
    let slope_after = |length: f64| {
        let targets = design.rows().map(|(_, target)| target);
        let records = targets.zip(predictions).zip(slopes.iter().zip(&moves));
        let change = |((target, z), (slope, way)): ((f64, &f64), (&f64, &f64))| {
            (objective.loss.slope_at(z + length * way, target) - slope) * way
        };
        start + records.map(change).sum::<f64>() + length * penalty * square
    };
    let length = root(start, slope_after);
    direction.into_iter().map(|x| length * x).collect()
}

/// A length at which a rising slope, negative at zero, is nearly zero.
fn root(start: f64, slope_after: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high, mut length) = (0.0, f64::INFINITY, 1.0);
    for _ in 0..EVALUATIONS {
        let slope = slope_after(length);
        if slope.abs() <= LEVEL * start.abs() {
            break;
        }
        if slope < 0.0 {
            low = length;
        } else {
            high = length;
        }
        length = if high.is_finite() { 0.5 * (low + high) } else { 2.0 * length };
    }
    length
}

/// An approximate solution p of Hp = -g with H = Σ cᵢ xᵢxᵢᵀ + ΛI, by conjugate gradients.
fn direction(design: &Design, curvatures: &[f64], penalty: f64, gradient: &[f64]) -> Vec<f64> {
    let mut solution = vec![0.0; gradient.len()];
    let mut residual: Vec<f64> = gradient.iter().map(|x| -x).collect();
    let mut way = residual.clone();
    let mut square = dot(&residual, &residual);
    let enough = square * RESIDUAL * RESIDUAL;
    for _ in 0..STEPS {
        let image = curved(design, curvatures, penalty, &way);
        let step = square / dot(&way, &image);
        for ((solution, residual), (way, image)) in
            solution.iter_mut().zip(&mut residual).zip(way.iter().zip(&image))
        {
            *solution += step * way;
            *residual -= step * image;
        }
        let next = dot(&residual, &residual);
        if next.is_nan() || next <= enough {
            break;
        }
        for (way, residual) in way.iter_mut().zip(&residual) {
            *way = residual + next / square * *way;
        }
        square = next;
    }
    solution
}

/// Hv.
fn curved(design: &Design, curvatures: &[f64], penalty: f64, vector: &[f64]) -> Vec<f64> {
    let mut image: Vec<f64> = vector.iter().map(|x| penalty * x).collect();
    for ((features, _), curvature) in design.rows().zip(curvatures).filter(|(_, c)| **c > 0.0) {
        let scale = curvature * product(features, vector);
        for (image, x) in image.iter_mut().zip(features) {
            *image += scale * f64::from(*x);
        }
    }
    image
}

fn product(features: &[f32], vector: &[f64]) -> f64 {
    features.iter().zip(vector).map(|(x, v)| f64::from(*x) * v).sum()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
