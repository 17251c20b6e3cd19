//! Passes over weights, gradient and moments, on all cores if there are enough numbers.
//!
//! Each task has its own copy of the update closure. So the compiler knows that no store changes the closure,
//! and uses vector registers. Every number is updated independently, and sums are added in the order of fixed
//! chunks. So results do not depend on the number of threads.

use rayon::prelude::*;

/// Numbers that one task works on. They fit into the cache and outweigh the cost of a task.
const CHUNK: usize = 1 << 14;

/// From this many numbers on, the work is divided among cores.
const PARALLEL: usize = 100_000;

/// A chunk of weights that are updated, gradient and two moments.
type UpdateChunk<'a> = (((&'a mut [f32], &'a [f32]), &'a mut [f32]), &'a mut [f32]);

/// A chunk of weights that are only read, gradient and two moments.
type SumChunk<'a> = (((&'a [f32], &'a [f32]), &'a mut [f32]), &'a mut [f32]);

/// Updates weights from the gradient alone.
pub(super) fn without_moments(
    weights: &mut [f32],
    gradient: &[f32],
    update: impl Fn(&mut f32, f32) + Copy + Send + Sync,
) {
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

/// Updates weights and one moment.
pub(super) fn with_one_moment(
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
        weights
            .par_chunks_mut(CHUNK)
            .zip(gradient.par_chunks(CHUNK))
            .zip(moment.par_chunks_mut(CHUNK))
            .for_each(chunk);
    }
}

/// Updates weights and two moments.
pub(super) fn with_two_moments(
    weights: &mut [f32],
    gradient: &[f32],
    [first, second]: [&mut [f32]; 2],
    update: impl Fn(&mut f32, f32, &mut f32, &mut f32) + Copy + Send + Sync,
) {
    let chunk = move |(((weights, gradient), first), second): UpdateChunk<'_>| {
        let update = update;
        weights
            .iter_mut()
            .zip(gradient)
            .zip(first)
            .zip(second)
            .for_each(|(((w, g), m), v)| update(w, *g, m, v));
    };
    if weights.len() < PARALLEL {
        chunk((((weights, gradient), first), second));
    } else {
        let pairs = weights.par_chunks_mut(CHUNK).zip(gradient.par_chunks(CHUNK));
        pairs.zip(first.par_chunks_mut(CHUNK)).zip(second.par_chunks_mut(CHUNK)).for_each(chunk);
    }
}

/// Updates two moments, and sums a pair of numbers over all weights.
pub(super) fn sums(
    weights: &[f32],
    gradient: &[f32],
    [first, second]: [&mut [f32]; 2],
    term: impl Fn(f32, f32, &mut f32, &mut f32) -> [f64; 2] + Copy + Send + Sync,
) -> [f64; 2] {
    let add = |[a, b]: [f64; 2], [c, d]: [f64; 2]| [a + c, b + d];
    let chunk = move |(((weights, gradient), first), second): SumChunk<'_>| {
        let term = term;
        weights
            .iter()
            .zip(gradient)
            .zip(first)
            .zip(second)
            .map(|(((w, g), m), v)| term(*w, *g, m, v))
            .fold([0.0; 2], add)
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
                // Every partial sum of these numbers is rounded.
                [f64::from(w) / 3.0, f64::from(g).powi(2) / 7.0]
            };
            pool.install(|| sums(&weights, &weights, [&mut first, &mut second], term))
        };
        assert_eq!(sum(1), sum(3));
    }
}
