//! Rounded Gaussian and Laplace noise.

use super::{
    super::{
        random::{Key, Randomness},
        rounded::{
            DISTANCE, Density, GRID, Gaussian, Laplace, PRECISE_BITS, Place, Shape, accept, add, add_on,
            guess, half_steps, precise_gaussian, rounded, sample, settle,
        },
    },
    agrees, fits, is_coin, remainders, stream, uncorrelated,
};
use crate::special::normal_below;

const MILLION: usize = 1_000_000;
const SHAPES: [Shape; 2] = [Shape::Gaussian, Shape::Laplace];

fn key(seed: u64) -> Key {
    Randomness::seeded(seed).key().unwrap()
}

fn noise(shape: Shape, seed: u64) -> Vec<i64> {
    let mut numbers = vec![0; MILLION];
    add(shape, &key(seed), &mut numbers);
    numbers
}

/// P[X ≤ k]: round(2³⁰N) ≤ k where 2³⁰N < k + 1/2.
fn up_to(shape: Shape) -> impl Fn(i64) -> f64 {
    move |k| {
        let x = (k as f64 + 0.5) / GRID as f64;
        match shape {
            Shape::Gaussian => normal_below(x),
            Shape::Laplace if x < 0.0 => x.exp() / 2.0,
            Shape::Laplace => 1.0 - (-x).exp() / 2.0,
        }
    }
}

#[test]
fn rounded_noise_has_its_distribution() {
    for shape in SHAPES {
        let numbers = noise(shape, 30);
        assert!(fits(&numbers, up_to(shape)), "{shape:?}");
        let smaller: Vec<i64> = numbers.iter().map(|k| k / 20 * 19).collect();
        assert!(!fits(&smaller, up_to(shape)), "{shape:?}: noise 5 % too small passes");
        let mut stream = stream(31);
        let uniform: Vec<i64> = (0..MILLION).map(|_| stream.below(4 << 30) as i64 - (2 << 30)).collect();
        assert!(!fits(&uniform, up_to(shape)), "{shape:?}: uniform noise passes");
    }
    assert!(!fits(&noise(Shape::Gaussian, 30), up_to(Shape::Laplace)));
}

#[test]
fn precise_numbers_are_gaussian_and_their_last_bits_are_uniform() {
    let mut stream = stream(32);
    let draws: Vec<(bool, u128)> = (0..MILLION).map(|_| precise_gaussian(&mut stream)).collect();
    let half_step = PRECISE_BITS - 31;
    let numbers: Vec<i64> = draws
        .iter()
        .map(|(is_negative, size)| rounded(-i64::from(*is_negative), (size >> half_step) as i64))
        .collect();
    assert!(fits(&numbers, up_to(Shape::Gaussian)));
    assert!(!fits(&numbers.iter().map(|k| k.abs()).collect::<Vec<_>>(), up_to(Shape::Gaussian)));
    for shift in [0, 30, 60] {
        let mut counts = [0_u64; 16];
        for (_, size) in &*draws {
            counts[(size >> shift) as usize % 16] += 1;
        }
        assert!(agrees(&counts, &[1.0 / 16.0; 16]), "{shift}: {counts:?}");
    }
}

#[test]
fn tails_are_as_heavy_as_they_should_be() {
    for shape in SHAPES {
        let ends = [1.0, 2.0, 3.0, 3.5, 4.0, 4.4]
            .map(|end: f64| if shape == Shape::Gaussian { end } else { 2.4 * end - 1.0 });
        let beyond = |x: f64| if shape == Shape::Gaussian { 2.0 * normal_below(-x) } else { (-x).exp() };
        let mut probabilities = vec![1.0 - beyond(ends[0])];
        probabilities.extend(ends.windows(2).map(|pair| beyond(pair[0]) - beyond(pair[1])));
        probabilities.push(beyond(ends[5]));
        let count = |numbers: &[i64]| {
            let mut counts = vec![0; 7];
            for k in numbers {
                counts[ends.partition_point(|end| *end < k.abs() as f64 / GRID as f64)] += 1;
            }
            counts
        };
        let numbers = noise(shape, 32);
        assert!(
            agrees(&count(&numbers), &probabilities),
            "{shape:?}: {:?} {probabilities:?}",
            count(&numbers)
        );
        let smaller: Vec<i64> = numbers.iter().map(|k| k / 20 * 19).collect();
        assert!(!agrees(&count(&smaller), &probabilities), "{shape:?}");
        // Without the tail beyond 3.5: what a generator with too few bits gives.
        let cut: Vec<i64> =
            numbers.iter().copied().filter(|k| k.abs() as f64 / (GRID as f64) < ends[3]).collect();
        assert!(!agrees(&count(&cut), &probabilities), "{shape:?}");
    }
}

#[test]
fn laplace_goes_on_beyond_its_table() {
    let numbers: Vec<i64> = (33..37).flat_map(|seed| noise(Shape::Laplace, seed)).collect();
    // Beyond 8 the distribution repeats itself.
    let far: Vec<i64> =
        numbers.iter().filter(|k| k.abs() > 8 * GRID).map(|k| k.signum() * (k.abs() - 8 * GRID)).collect();
    let near = numbers.len() - far.len();
    assert!(
        agrees(&[far.len() as u64, near as u64], &[(-8_f64).exp(), 1.0 - (-8_f64).exp()]),
        "{}",
        far.len()
    );
    assert!(fits(&far, up_to(Shape::Laplace)));
    let half: Vec<i64> = far.iter().map(|k| k / 2).collect();
    assert!(!fits(&half, up_to(Shape::Laplace)));
}

#[test]
fn no_output_is_impossible_for_a_neighbour() {
    // The last bits of floating-point noise reveal the value under it. Here all remainders are equally
    // frequent, for one neighbour (0) and for the other (1).
    for shape in SHAPES {
        for value in [0, 1] {
            let mut numbers = vec![value; MILLION];
            add(shape, &key(38), &mut numbers);
            for modulus in [2, 3, 5, 7, 64, 1000, 4096] {
                let uniform = vec![1.0 / modulus as f64; modulus as usize];
                assert!(
                    agrees(&remainders(&numbers, modulus), &uniform),
                    "{shape:?} + {value} modulo {modulus}"
                );
                // Noise with a coarser grid than the values: every other number is impossible.
                let coarse: Vec<i64> = numbers.iter().map(|k| k & !1).collect();
                assert!(
                    modulus % 2 == 1 || !agrees(&remainders(&coarse, modulus), &uniform),
                    "{shape:?} modulo {modulus}"
                );
            }
        }
    }
}

#[test]
fn noise_is_independent_across_keys_streams_and_halves() {
    for shape in SHAPES {
        let (one, other) = (noise(shape, 39), noise(shape, 40));
        assert!(uncorrelated(&one, &other), "{shape:?}: two keys");
        assert!(uncorrelated(&one[..MILLION / 2], &one[MILLION / 2..]), "{shape:?}: halves");
        for lag in [1, 2, 512, 1 << 14, 1 << 15] {
            assert!(uncorrelated(&one[lag..], &one[..MILLION - lag]), "{shape:?}: {lag} apart");
        }
        // Signs, sizes and last bits are independent of each other.
        let absolute = |k: &i64| k.abs() / 1024 - GRID / 1280;
        let (left, right): (Vec<i64>, Vec<i64>) =
            (one[1..].iter().map(absolute).collect(), one.iter().map(absolute).collect());
        assert!(
            shape != Shape::Gaussian || uncorrelated(&left, &right[..MILLION - 1]),
            "{shape:?}: sizes of neighbours"
        );
        assert!(!uncorrelated(&one, &noise(shape, 39)), "{shape:?}: reused noise passes");
        let half_reused: Vec<i64> =
            other.iter().zip(&one).enumerate().map(|(i, (a, b))| if i % 50 == 0 { *b } else { *a }).collect();
        assert!(
            !uncorrelated(&one, &half_reused),
            "{shape:?}: noise reused in one of fifty coordinates passes"
        );
    }
}

#[test]
fn result_follows_from_the_key_alone() {
    for shape in SHAPES {
        for length in [0, 1, 511, 513, 100_000] {
            let draw = |threads: usize, seed: u64| {
                let mut numbers: Vec<i64> = (0..length).collect();
                add_on(threads, shape, &key(seed), &mut numbers);
                numbers
            };
            let one = draw(1, 41);
            assert_eq!(one, draw(2, 41));
            assert_eq!(one, draw(7, 41));
            assert!(length == 0 || one != draw(1, 42));
            // The noise does not depend on the values.
            let mut alone = vec![0; one.len()];
            add(shape, &key(41), &mut alone);
            assert!(one.iter().zip(0..).all(|(k, value)| k - value == alone[value as usize]));
        }
    }
}

#[test]
fn single_draws_have_the_same_distribution() {
    for shape in SHAPES {
        let mut stream = stream(43);
        let numbers: Vec<i64> = (0..MILLION).map(|_| sample(shape, &mut stream)).collect();
        assert!(fits(&numbers, up_to(shape)), "{shape:?}");
        assert!(numbers.iter().any(|k| *k < 0) && numbers.iter().any(|k| *k > 0));
    }
}

#[test]
fn acceptance_has_its_probability() {
    fn check<D: Density>(block: u64, first: u64, t: impl Fn(f64) -> f64) {
        let mut stream = stream(44);
        let t = t((first as f64 + 0.5) / (1_u64 << 25) as f64);
        let mut toss = || {
            let trial = stream.bits(13);
            accept::<D>(block, trial, &mut Place { first, more: Vec::new() }, &mut stream)
        };
        assert!(is_coin((-t).exp(), 400_000, &mut toss), "block {block}, place {first}");
        assert!(t < 0.1 || !is_coin((-t * 0.95).exp(), 400_000, &mut toss), "block {block}, place {first}");
    }
    let bell = |a: f64| move |u: f64| ((a + u).powi(2) - a * a) / 8192.0;
    check::<Gaussian>(0, (1 << 25) - 1, bell(0.0));
    check::<Gaussian>(64, 1 << 24, bell(64.0));
    check::<Gaussian>(600, 29 << 20, bell(600.0));
    check::<Gaussian>(831, (1 << 25) - 1, bell(831.0));
    check::<Laplace>(0, (1 << 25) - 1, |u| u / 64.0);
    check::<Laplace>(511, 1 << 24, |u| u / 64.0);
}

#[test]
fn trials_have_their_probability_whatever_the_bits() {
    // For u = 1/4 the probability is u below 2a, u² at 2a, and zero above.
    let mut stream = stream(47);
    let quarter = || Place { first: 1 << 23, more: Vec::new() };
    assert!(is_coin(0.25, 100_000, || Gaussian::trial(5, 9, &mut quarter(), &mut stream)));
    assert!(is_coin(0.0625, 100_000, || Gaussian::trial(5, 10, &mut quarter(), &mut stream)));
    assert!(!Gaussian::trial(5, 11, &mut quarter(), &mut stream));
    assert!(is_coin(0.25, 100_000, || Laplace::trial(5, 127, &mut quarter(), &mut stream)));
    assert!(!Laplace::trial(5, 128, &mut quarter(), &mut stream));
}

#[test]
fn bits_drawn_later_count_as_if_drawn_before() {
    // The place agrees with the draw in its first bits, so later bits decide.
    let mut stream = stream(45);
    let mut toss = || Place { first: 0, more: vec![1 << 62, 0] }.bernoulli_beyond(&mut stream);
    assert!(is_coin(0.25, 400_000, &mut toss));
    assert!(!is_coin(0.25 * 0.95, 400_000, &mut toss));

    // A ticket on the boundary of its column, with a trial that accepts: the trailing bits decide.
    let table = Gaussian::table();
    for column in [3_usize, 200, 700] {
        let (boundary, other) = table.leading[column];
        let word = u64::from(boundary + column as u32) << 39 | 8191;
        assert!(guess::<Gaussian>(table, word).doubtful);
        let own = table.boundary[column] % (1 << 101);
        let numbers = [column as u64, u64::from(other)].map(|block| rounded(0, half_steps(block, 0)));
        let mut toss = || {
            let number = settle::<Gaussian>(word, &mut stream);
            assert!(numbers.contains(&number));
            number == numbers[0]
        };
        assert!(is_coin(own as f64 / (1_u128 << 101) as f64, 100_000, &mut toss), "column {column}");
    }
}

#[test]
fn rounding_is_to_the_nearest_and_symmetric() {
    for (half_steps, nearest) in [(0, 0), (1, 1), (2, 1), (3, 2), (4, 2), ((1 << 40) - 1, 1 << 39)] {
        assert_eq!(rounded(0, half_steps), nearest);
        assert_eq!(rounded(-1, half_steps), -nearest);
    }
}

#[test]
fn what_is_not_doubtful_is_final() {
    fn check<D: Density>() {
        let mut stream = stream(46);
        let (mut doubts, mut changed) = (0, 0);
        for _ in 0..MILLION {
            let word = stream.next_u64();
            let guess = guess::<D>(D::table(), word);
            let same = guess.noise == settle::<D>(word, &mut stream);
            assert!(same || guess.doubtful);
            doubts += u32::from(guess.doubtful);
            changed += u32::from(!same);
        }
        // One word is enough for 98 of 100 draws; about half of the doubtful draws are accepted.
        assert!(doubts < 20_000 && 4000 < changed && changed < doubts, "{changed} of {doubts}");
    }
    check::<Gaussian>();
    check::<Laplace>();
}

#[test]
fn distance_is_what_its_parts_add_up_to() {
    let (tickets, tail) = (2_f64.powi(-120), 2.0 * normal_below(-13.0));
    assert!((832.0 * 1.5) / 63.0 * tickets + tail < DISTANCE);
    assert!((512.0 * 1.5 + 33.0) / 63.0 * tickets / (1.0 - (-8_f64).exp()) < DISTANCE);
    assert!(DISTANCE <= 2_f64.powi(-115));
}
