//! One pass over weights, gradient and moments, on all cores where that is worth it.
//!
//! What is done to a number is copied into each task, so that the compiler knows that no store changes it and uses wide
//! registers. Every number is worked on alone, and sums are added up in the order of fixed chunks: results do not depend on threads.

use rayon::prelude::*;

/// Numbers that one task works on: few enough to stay in cache, enough to outweigh handing them over.
const CHUNK: usize = 1 << 14;

/// From here on more than one core is asked.
const PARALLEL: usize = 100_000;

/// Weights that move, gradient and two moments.
type Moved<'a> = (((&'a mut [f32], &'a [f32]), &'a mut [f32]), &'a mut [f32]);

/// Weights that are looked at, gradient and two moments.
type Seen<'a> = (((&'a [f32], &'a [f32]), &'a mut [f32]), &'a mut [f32]);

/// Weights and gradient.
pub(super) fn none(weights: &mut [f32], gradient: &[f32], update: impl Fn(&mut f32, f32) + Copy + Send + Sync) {
    let chunk = move |(weights, gradient): (&mut [f32], &[f32])| {
        let update = update;
        weights.iter_mut().zip(gradient).for_each(|(w, g)| update(w, *g));
    };
    if weights.len() < PARALLEL {
        chunk((weights, gradient));
    } else {
        weights.par_chunks_mut(CHUNK).zip(gradient.par_chunks(CHUNK)).for_each(chunk);
    }
}

/// Weights, gradient and one moment.
pub(super) fn one(
    weights: &mut [f32],
    gradient: &[f32],
    moment: &mut [f32],
    update: impl Fn(&mut f32, f32, &mut f32) + Copy + Send + Sync,
) {
    let chunk = move |((weights, gradient), moment): ((&mut [f32], &[f32]), &mut [f32])| {
        let update = update;
        weights.iter_mut().zip(gradient).zip(moment).for_each(|((w, g), m)| update(w, *g, m));
    };
    if weights.len() < PARALLEL {
        chunk(((weights, gradient), moment));
    } else {
        weights.par_chunks_mut(CHUNK).zip(gradient.par_chunks(CHUNK)).zip(moment.par_chunks_mut(CHUNK)).for_each(chunk);
    }
}

/// Weights, gradient and two moments.
pub(super) fn two(
    weights: &mut [f32],
    gradient: &[f32],
    [first, second]: [&mut [f32]; 2],
    update: impl Fn(&mut f32, f32, &mut f32, &mut f32) + Copy + Send + Sync,
) {
    let chunk = move |(((weights, gradient), first), second): Moved<'_>| {
        let update = update;
        weights.iter_mut().zip(gradient).zip(first).zip(second).for_each(|(((w, g), m), v)| update(w, *g, m, v));
    };
    if weights.len() < PARALLEL {
        chunk((((weights, gradient), first), second));
    } else {
        let pairs = weights.par_chunks_mut(CHUNK).zip(gradient.par_chunks(CHUNK));
        pairs.zip(first.par_chunks_mut(CHUNK)).zip(second.par_chunks_mut(CHUNK)).for_each(chunk);
    }
}

/// The sum of a pair of numbers per weight, while the moments are brought up to date.
pub(super) fn sums(
    weights: &[f32],
    gradient: &[f32],
    [first, second]: [&mut [f32]; 2],
    term: impl Fn(f32, f32, &mut f32, &mut f32) -> [f64; 2] + Copy + Send + Sync,
) -> [f64; 2] {
    let add = |[a, b]: [f64; 2], [c, d]: [f64; 2]| [a + c, b + d];
    let chunk = move |(((weights, gradient), first), second): Seen<'_>| {
        let term = term;
        weights.iter().zip(gradient).zip(first).zip(second).map(|(((w, g), m), v)| term(*w, *g, m, v)).fold([0.0; 2], add)
    };
    let parts: Vec<[f64; 2]> = if weights.len() < PARALLEL {
        let pairs = weights.chunks(CHUNK).zip(gradient.chunks(CHUNK));
        pairs.zip(first.chunks_mut(CHUNK)).zip(second.chunks_mut(CHUNK)).map(chunk).collect()
    } else {
        let pairs = weights.par_chunks(CHUNK).zip(gradient.par_chunks(CHUNK));
        pairs.zip(first.par_chunks_mut(CHUNK)).zip(second.par_chunks_mut(CHUNK)).map(chunk).collect()
    };
    parts.into_iter().fold([0.0; 2], add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_depend_on_threads() {
        let length = 3 * PARALLEL + 1;
        let sum = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let weights: Vec<f32> = (0..length).map(|k| (k as f32 * 0.7).sin()).collect();
            let (mut first, mut second) = (vec![0.0; length], vec![0.0; length]);
            let term = |w: f32, g: f32, m: &mut f32, v: &mut f32| {
                (*m, *v) = (w, g);
                // Numbers whose sum has to be rounded at every step.
                [f64::from(w) / 3.0, f64::from(g).powi(2) / 7.0]
            };
            pool.install(|| sums(&weights, &weights, [&mut first, &mut second], term))
        };
        assert_eq!(sum(1), sum(3));
    }
}
