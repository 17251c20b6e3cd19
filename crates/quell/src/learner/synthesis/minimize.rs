//! The minimum of a smooth convex function of many numbers.

use std::collections::VecDeque;

/// Pairs of steps and changes of the gradient that are remembered.
const MEMORY: usize = 30;
/// The most iterations.
const MOST_ITERATIONS: usize = 1000;
/// The search ends where the function is expected to fall by less than this for each number, by the guesses of
/// the curvatures.
///
/// The function is a negative logarithm of a likelihood: noise moves it by about 1/2 for each number.
const TOLERANCE: f64 = 1e-4;

/// Minimises a convex function, given with its gradient, by the method of Broyden, Fletcher, Goldfarb and Shanno.
///
/// `curvatures` are guesses of the second derivatives. This is L-BFGS (Nocedal and Wright 2006,
/// Algorithm 7.4) with halved steps.
pub(super) fn minimize(
    function: impl Fn(&[f64]) -> (f64, Vec<f64>),
    start: Vec<f64>,
    curvatures: &[f64],
) -> Vec<f64> {
    let mut at = start;
    let (mut value, mut gradient) = function(&at);
    let mut memory: VecDeque<Step> = VecDeque::new();
    for _ in 0..MOST_ITERATIONS {
        let mut direction = towards(&gradient, &memory, curvatures);
        let mut slope = dot(&direction, &gradient);
        if slope.is_nan() || slope >= 0.0 {
            memory.clear();
            direction = towards(&gradient, &memory, curvatures);
            slope = dot(&direction, &gradient);
        }
        let expected: f64 = gradient.iter().zip(curvatures).map(|(g, c)| 0.5 * g * g / c).sum();
        if !slope.is_finite() || expected < TOLERANCE * at.len() as f64 {
            break;
        }
        let mut length = 1.0;
        let step = loop {
            let next: Vec<f64> = at.iter().zip(&direction).map(|(x, d)| x + length * d).collect();
            let (next_value, next_gradient) = function(&next);
            // A value that is not finite is a matter of rounding, and no minimum.
            let is_finite = next_value.is_finite() && next_gradient.iter().all(|g| g.is_finite());
            if is_finite && next_value <= value + 1e-4 * length * slope {
                break Some((next, next_value, next_gradient));
            }
            length *= 0.5;
            if length < 1e-9 {
                break None;
            }
        };
        // No step lessens the function: rounding ends the search.
        let Some((next, next_value, next_gradient)) = step else { break };
        let moved: Vec<f64> = next.iter().zip(&at).map(|(new, old)| new - old).collect();
        let changed: Vec<f64> = next_gradient.iter().zip(&gradient).map(|(new, old)| new - old).collect();
        let product = dot(&moved, &changed);
        if product > 0.0 {
            if memory.len() == MEMORY {
                memory.pop_front();
            }
            memory.push_back(Step { moved, changed, inverse: product.recip() });
        }
        (at, value, gradient) = (next, next_value, next_gradient);
    }
    at
}

/// A step that was taken: s, the change y of the gradient, and 1/⟨s, y⟩.
struct Step {
    moved: Vec<f64>,
    changed: Vec<f64>,
    inverse: f64,
}

/// The direction of the next step.
fn towards(gradient: &[f64], memory: &VecDeque<Step>, curvatures: &[f64]) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|slope| -slope).collect();
    let mut factors = Vec::with_capacity(memory.len());
    for Step { moved, changed, inverse } in memory.iter().rev() {
        let factor = inverse * dot(moved, &direction);
        add(&mut direction, -factor, changed);
        factors.push(factor);
    }
    // The guesses are scaled so that the last step is explained.
    let scale = memory.back().map_or(1.0, |Step { changed, inverse, .. }| {
        let squared: f64 = changed.iter().zip(curvatures).map(|(y, c)| y * y / c).sum();
        (inverse * squared).recip()
    });
    direction.iter_mut().zip(curvatures).for_each(|(x, curvature)| *x *= scale / curvature);
    for (Step { moved, changed, inverse }, factor) in memory.iter().zip(factors.iter().rev()) {
        let other = inverse * dot(changed, &direction);
        add(&mut direction, factor - other, moved);
    }
    direction
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f64], factor: f64, from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_of_a_crooked_quadratic_function_is_found() {
        let scales: Vec<f64> = (0..30).map(|i| 10_f64.powf(f64::from(i) / 6.0)).collect();
        let function = |x: &[f64]| {
            let sum: f64 = x.iter().sum();
            let value = x.iter().zip(&scales).map(|(x, c)| 0.5 * c * (x - 1.0).powi(2)).sum::<f64>();
            let slope = |(x, c): (&f64, &f64)| c * (x - 1.0) + 3.0 * (sum - 30.0);
            (value + 1.5 * (sum - 30.0).powi(2), x.iter().zip(&scales).map(slope).collect())
        };
        let found = minimize(function, vec![0.0; 30], &[1.0; 30]);
        let (value, _) = function(&found);
        assert!(value < 2.0 * TOLERANCE * 30.0, "{value}");
    }

    #[test]
    fn a_start_at_the_minimum_stays() {
        let function = |x: &[f64]| (x[0] * x[0], vec![2.0 * x[0]]);
        assert_eq!(minimize(function, vec![0.0], &[2.0]), [0.0]);
    }

    /// Where cells underflow, the logarithm of their sum is -∞. That is no minimum.
    #[test]
    fn a_value_that_is_not_finite_is_no_minimum() {
        let function = |x: &[f64]| match x[0] {
            inside if inside < 1.0 => (-inside, vec![-1.0]),
            _ => (f64::NEG_INFINITY, vec![f64::NAN]),
        };
        let found = minimize(function, vec![0.5], &[0.1]);
        assert!(found[0] > 0.5 && found[0] < 1.0, "{found:?}");
    }
}
