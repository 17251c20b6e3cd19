//! Nearest neighbours, against the definition in double precision.

use quell::{
    data,
    random::PublicRandom,
    voting::knn::{Index, Neighbor},
};

/// What nearest means, without a thought for time.
fn by_definition(rows: &[f32], query: &[f32], sample: &[usize], k: usize) -> Vec<Neighbor> {
    let distance = |record: usize| {
        let pairs = query.iter().zip(&rows[record * query.len()..]);
        pairs.map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2)).sum::<f64>() as f32
    };
    let all = sample.iter().map(|record| Neighbor { record: *record as u32, distance: distance(*record) });
    let mut all: Vec<Neighbor> = all.filter(|neighbor| !neighbor.distance.is_nan()).collect();
    all.sort_by(|a, b| a.distance.total_cmp(&b.distance).then(a.record.cmp(&b.record)));
    all.truncate(k);
    all
}

fn numbers(count: usize, seed: u64, mut draw: impl FnMut(&mut PublicRandom) -> f32) -> Vec<f32> {
    let mut chance = PublicRandom::new(seed);
    (0..count).map(|_| draw(&mut chance)).collect()
}

fn uniform(chance: &mut PublicRandom) -> f32 {
    chance.between(-1.0, 1.0)
}

/// Numbers of which many are the same, so that there are duplicates and ties.
fn coarse(chance: &mut PublicRandom) -> f32 {
    chance.below(3) as f32
}

fn sample(records: usize, rate: f32, seed: u64) -> Vec<usize> {
    let mut chance = PublicRandom::new(seed);
    (0..records).filter(|_| chance.between(0.0, 1.0) < rate).collect()
}

fn euclidean(rows: &[f32], width: usize) -> Index {
    Index::new(rows, width).unwrap()
}

/// Record for record and bit for bit.
fn assert_same(found: &[Neighbor], right: &[Neighbor], what: &str) {
    let bits = |neighbor: &Neighbor| (neighbor.record, neighbor.distance.to_bits());
    let differ = found.iter().map(bits).zip(right.iter().map(bits)).position(|(a, b)| a != b);
    assert!(
        found.len() == right.len() && differ.is_none(),
        "{what}: {} for {}, {differ:?}",
        found.len(),
        right.len()
    );
}

#[test]
fn the_nearest_are_those_of_the_definition() {
    for (records, width, queries, k) in [
        (1, 1, 1, 1),
        (5, 3, 2, 9),
        (300, 1, 40, 7),
        (1000, 2, 9, 1),
        (900, 17, 33, 100),
        (2000, 64, 50, 10),
        (257, 700, 5, 30),
        (3000, 8, 900, 3),
        (700, 5, 1, 700),
    ] {
        for (draw, kind) in [(uniform as fn(&mut PublicRandom) -> f32, "uniform"), (coarse, "coarse")] {
            let (rows, asked) = (numbers(records * width, 1, draw), numbers(queries * width, 2, draw));
            let (all, index) = ((0..records).collect::<Vec<_>>(), euclidean(&rows, width));
            let answers = index.nearest(&asked, k).unwrap();
            assert_eq!(answers.len(), queries);
            for (query, found) in asked.chunks(width).zip(&answers) {
                assert_same(
                    found,
                    &by_definition(&rows, query, &all, k),
                    &format!("{records} {width} {k} {kind}"),
                );
            }
        }
    }
}

#[test]
fn the_nearest_of_a_sample_are_those_of_the_definition_at_every_rate() {
    for (records, width, queries, k) in [(2500, 10, 60, 20), (1500, 3, 400, 300), (600, 150, 20, 5)] {
        for (draw, kind) in [(uniform as fn(&mut PublicRandom) -> f32, "uniform"), (coarse, "coarse")] {
            let (rows, asked) = (numbers(records * width, 3, draw), numbers(queries * width, 4, draw));
            let index = euclidean(&rows, width);
            for rate in [0.0, 0.003, 0.01, 0.1, 0.3, 0.5, 1.0] {
                let samples: Vec<_> =
                    (0..queries).map(|query| sample(records, rate, 100 + query as u64)).collect();
                let answers = index.nearest_among(&asked, &samples, k).unwrap();
                for ((query, sample), found) in asked.chunks(width).zip(&samples).zip(&answers) {
                    let right = by_definition(&rows, query, sample, k);
                    assert_same(found, &right, &format!("{records} {width} {k} {kind}, rate {rate}"));
                }
            }
        }
    }
}

#[test]
fn near_duplicates_far_from_the_origin_are_told_apart() {
    // In single precision ‖y‖² - 2 x·y is off by more than these are apart.
    let width = 50;
    let rows = numbers(1200 * width, 5, |chance| 1000.0 + chance.below(16) as f32 / 1024.0);
    let asked = numbers(30 * width, 6, |chance| 1000.0 + chance.below(16) as f32 / 1024.0);
    let all: Vec<usize> = (0..1200).collect();
    let samples = vec![sample(1200, 0.2, 7); 30];
    let index = euclidean(&rows, width);
    let (whole, sampled) =
        (index.nearest(&asked, 12).unwrap(), index.nearest_among(&asked, &samples, 12).unwrap());
    for (number, query) in asked.chunks(width).enumerate() {
        assert_same(&whole[number], &by_definition(&rows, query, &all, 12), "all");
        assert_same(&sampled[number], &by_definition(&rows, query, &samples[0], 12), "sampled");
    }
}

#[test]
fn lengths_from_the_smallest_to_the_largest_do_no_harm() {
    let width = 6;
    let any =
        |chance: &mut PublicRandom| chance.between(-1.0, 1.0) * 10_f32.powi(chance.below(76) as i32 - 42);
    for same in [None, Some(1e-23), Some(1e-20), Some(3e17), Some(2e19), Some(1e38)] {
        let draw = |chance: &mut PublicRandom| match same {
            None => any(chance),
            Some(scale) => chance.between(-1.0, 1.0) * scale,
        };
        let (rows, asked) = (numbers(800 * width, 8, draw), numbers(20 * width, 9, draw));
        let (all, samples) = ((0..800).collect::<Vec<_>>(), vec![sample(800, 0.1, 10); 20]);
        let index = euclidean(&rows, width);
        let (whole, sampled) =
            (index.nearest(&asked, 25).unwrap(), index.nearest_among(&asked, &samples, 25).unwrap());
        for (number, query) in asked.chunks(width).enumerate() {
            assert_same(&whole[number], &by_definition(&rows, query, &all, 25), &format!("all, {same:?}"));
            assert_same(
                &sampled[number],
                &by_definition(&rows, query, &samples[0], 25),
                &format!("sampled, {same:?}"),
            );
        }
    }
}

/// The number of neighbours of each class.
fn votes(neighbors: &[Neighbor], labels: &[u32], classes: usize) -> Vec<u32> {
    let mut votes = vec![0; classes];
    for neighbor in neighbors {
        votes[labels[neighbor.record as usize] as usize] += 1;
    }
    votes
}

#[test]
fn one_more_record_brings_at_most_itself_and_removes_at_most_one() {
    // The law that the privacy of the votes rests on.
    let (records, width, k, classes) = (400, 4, 15, 3);
    for draw in [uniform as fn(&mut PublicRandom) -> f32, coarse] {
        let (rows, asked) = (numbers(records * width, 11, draw), numbers(8 * width, 12, draw));
        let labels: Vec<u32> = (0..records).map(|record| (record * 7 % classes) as u32).collect();
        let index = euclidean(&rows, width);
        // Small samples and large ones, which are searched in different ways.
        for rate in [0.02, 0.1, 0.24, 0.26, 0.9] {
            let sample = sample(records, rate, 13);
            let before = index.nearest_among(&asked, &vec![sample.clone(); 8], k).unwrap();
            for more in (0..records).filter(|record| !sample.contains(record)) {
                let mut larger = sample.clone();
                larger.insert(sample.partition_point(|record| *record < more), more);
                let after = index.nearest_among(&asked, &vec![larger; 8], k).unwrap();
                for (before, after) in before.iter().zip(&after) {
                    let came: Vec<_> = after.iter().filter(|neighbor| !before.contains(neighbor)).collect();
                    let left = before.iter().filter(|neighbor| !after.contains(neighbor)).count();
                    assert!(
                        came.len() <= 1
                            && left <= came.len()
                            && came.iter().all(|neighbor| neighbor.record == more as u32)
                    );
                    let (old, new) = (votes(before, &labels, classes), votes(after, &labels, classes));
                    let moved: u32 = old.iter().zip(&new).map(|(a, b)| a.abs_diff(*b).pow(2)).sum();
                    assert!(moved <= 2);
                }
            }
        }
    }
}

#[test]
fn answers_are_the_same_on_any_number_of_threads_and_beside_any_other_queries() {
    let (records, width, queries, k) = (3000, 20, 500, 40);
    let (rows, asked) = (numbers(records * width, 14, uniform), numbers(queries * width, 15, uniform));
    let samples: Vec<_> = (0..queries).map(|query| sample(records, 0.2, query as u64)).collect();
    let index = euclidean(&rows, width);
    let answers = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            (index.nearest(&asked, k).unwrap(), index.nearest_among(&asked, &samples, k).unwrap())
        })
    };
    let (whole, sampled) = answers(1);
    for threads in [2, 3, 7] {
        let others = answers(threads);
        assert!(others.0 == whole && others.1 == sampled, "{threads} threads");
    }
    for (number, query) in asked.chunks(width).enumerate().step_by(37) {
        assert_same(&index.nearest(query, k).unwrap()[0], &whole[number], "alone");
        assert_same(
            &index.nearest_among(query, &samples[number..=number], k).unwrap()[0],
            &sampled[number],
            "alone",
        );
    }
}

#[test]
fn what_is_not_finite_is_never_near() {
    let (records, width, k) = (500, 5, 480);
    let mut rows = numbers(records * width, 16, uniform);
    let broken = [3, 4, 77, 300, 499];
    for (record, bad) in broken.iter().zip([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::NAN]) {
        rows[record * width + 2] = bad;
    }
    let mut asked = numbers(4 * width, 17, uniform);
    (asked[0], asked[width]) = (f32::NAN, f32::INFINITY);
    let index = euclidean(&rows, width);
    let whole: Vec<usize> = (0..records).filter(|record| !broken.contains(record)).collect();
    for sample in [(0..records).collect::<Vec<_>>(), (0..records).step_by(7).collect(), broken.to_vec()] {
        let answers = index.nearest_among(&asked, &vec![sample.clone(); 4], k).unwrap();
        assert!(answers[0].is_empty() && answers[1].is_empty());
        let good: Vec<usize> = sample.into_iter().filter(|record| whole.contains(record)).collect();
        for (query, found) in asked.chunks(width).zip(&answers).skip(2) {
            assert_same(found, &by_definition(&rows, query, &good, k), "beside what is not finite");
        }
    }
}

#[test]
fn there_may_be_nothing_to_find() {
    let index = euclidean(&numbers(40, 18, uniform), 4);
    assert!(index.nearest(&[], 3).unwrap().is_empty());
    assert!(index.nearest(&[0.0; 4], 0).unwrap()[0].is_empty());
    assert!(index.nearest_among(&[0.0; 4], &[vec![]], 3).unwrap()[0].is_empty());
    assert_eq!(index.nearest(&[0.0; 4], usize::MAX).unwrap()[0].len(), 10);
    let none = euclidean(&[], 4);
    assert!(none.is_empty() && none.nearest(&[0.0; 8], 3).unwrap() == [vec![], vec![]]);
}

#[test]
fn what_does_not_fit_is_refused_and_no_number_of_records_is_told() {
    let rows = [0.0; 12];
    assert!(Index::new(&rows, 0).is_err() && Index::new(&rows, 5).is_err());
    let index = euclidean(&rows, 4);
    assert!(index.nearest(&[0.0; 5], 1).is_err());
    for samples in [vec![], vec![vec![0], vec![1]], vec![vec![1, 0]], vec![vec![1, 1]], vec![vec![0, 3]]] {
        let error = index.nearest_among(&[0.0; 4], &samples, 1).unwrap_err().to_string();
        assert!(error.starts_with("samples is ") && !error.contains('3'), "{error}");
    }
}

#[test]
fn images_of_digits_are_nearest_to_those_of_the_same_digit() {
    let digits = data::digits().unwrap().train;
    let width = digits.width();
    let mut images = vec![0.0; digits.len() * width];
    images.chunks_exact_mut(width).enumerate().for_each(|(image, row)| digits.gather(image, row));
    let index = euclidean(&images, width);
    let labels: Vec<u32> = (0..index.len()).map(|image| digits.label(image).unwrap()).collect();
    let answers = index.nearest(&images, 4).unwrap();
    assert!(
        answers
            .iter()
            .enumerate()
            .all(|(image, near)| near[0] == Neighbor { record: image as u32, distance: 0.0 })
    );
    let agree: u32 = answers
        .iter()
        .zip(&labels)
        .map(|(near, label)| votes(&near[1..], &labels, 10)[*label as usize])
        .sum();
    assert!(f64::from(agree) > 0.97 * 3.0 * labels.len() as f64, "{agree}");
}
