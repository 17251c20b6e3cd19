//! Seconds for a search of the nearest neighbours, as lines of JSON: `benches/neighbors.py` sets them beside other libraries.
//!
//! Arguments: records, width, queries, k and, for queries with a sample of the records each, the sampling rate. It gets ready, says so, and answers every line of
//! its input with the best of a few searches.
//! With `QUELL_MNIST` in the environment, the folder of its four files, and no arguments: how often the nearest ten of the training images are right about the
//! test images, and how long queries with samples take there.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a benchmark reads files and the clock"
)]

use std::{env, path::Path, time::Instant};

use quell::{
    data::{self, Examples, Options},
    random::PublicRandom,
    voting::knn::{Index, Neighbor},
};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    if let Some(folder) = env::var_os("QUELL_MNIST").filter(|_| env::args().count() == 1) {
        return digits(Path::new(&folder));
    }
    let arguments: Vec<f64> = env::args().skip(1).map(|number| number.parse()).collect::<Result<_, _>>()?;
    let (&[records, width, queries, k], rate) =
        arguments.split_at_checked(4).ok_or("four or five numbers are expected")?
    else {
        return Err("four or five numbers are expected".into());
    };
    let (records, width, queries, k) = (records as usize, width as usize, queries as usize, k as usize);
    let mut chance = PublicRandom::new(1);
    let mut numbers = |count: usize| (0..count).map(|_| chance.between(0.0, 1.0)).collect::<Vec<f32>>();
    let index = Index::new(&numbers(records * width), width)?;
    let asked = numbers(queries * width);
    let samples = rate.first().map(|rate| samples(queries, records, *rate));
    let search = || match &samples {
        None => index.nearest(&asked, k),
        Some(samples) => index.nearest_among(&asked, samples, k),
    };
    search()?;
    say(&serde_json::json!("ready"));
    for line in std::io::stdin().lines() {
        line?;
        let (seconds, processor_seconds) = best(search)?;
        say(&serde_json::json!({"seconds": seconds, "processor_seconds": processor_seconds}));
    }
    Ok(())
}

/// A turn lasts for this much time, and at least for two searches.
const SECONDS: f64 = 1.0;

/// The best time of several, by the clock and of the processors.
fn best(
    search: impl Fn() -> Result<Vec<Vec<Neighbor>>, quell::Error>,
) -> Result<(f64, Option<f64>), quell::Error> {
    let (begun, mut best, mut least, mut taken) = (Instant::now(), f64::INFINITY, None, 0);
    while taken < 2 || begun.elapsed().as_secs_f64() < SECONDS {
        let (start, before) = (Instant::now(), processor_seconds());
        std::hint::black_box(search()?);
        best = best.min(start.elapsed().as_secs_f64());
        let used = before.zip(processor_seconds()).map(|(before, after)| after - before);
        least = used.map(|used| least.map_or(used, |least: f64| least.min(used)));
        taken += 1;
    }
    Ok((best, least))
}

/// What all threads of this process have had of the processors, where the system says so.
fn processor_seconds() -> Option<f64> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    let nanoseconds = threads.map(|thread| {
        let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<Option<f64>>().map(|sum| sum * 1e-9)
}

/// Each record is in each sample with this probability.
fn samples(queries: usize, records: usize, rate: f64) -> Vec<Vec<usize>> {
    let sample = |query| {
        let mut chance = PublicRandom::of(2, query as u64);
        (0..records).filter(|_| f64::from(chance.between(0.0, 1.0)) < rate).collect()
    };
    (0..queries).map(sample).collect()
}

fn digits(folder: &Path) -> Result<(), Failure> {
    let images = data::open(folder, &Options::default())?;
    let (train, test) = (images.train, images.test.ok_or("there are no test images")?);
    let index = Index::new(&rows(&train), train.width())?;
    let queries = rows(&test);
    for k in [1, 3, 5, 10] {
        let start = Instant::now();
        let answers = index.nearest(&queries, k)?;
        let (seconds, right) = (start.elapsed().as_secs_f64(), right(&answers, &train, &test));
        say(&serde_json::json!({"k": k, "right": right, "of": test.len(), "seconds": seconds}));
    }
    let queries = &queries[..9000 * test.width()];
    for rate in [0.01, 0.03, 0.1, 0.3, 1.0] {
        let samples = samples(9000, train.len(), rate);
        let start = Instant::now();
        let answers = index.nearest_among(queries, &samples, 300)?;
        let (seconds, right) = (start.elapsed().as_secs_f64(), right(&answers, &train, &test));
        say(&serde_json::json!({"k": 300, "rate": rate, "right": right, "of": 9000, "seconds": seconds}));
    }
    Ok(())
}

/// The numbers of all images, row after row.
fn rows(examples: &Examples) -> Vec<f32> {
    let mut rows = vec![0.0; examples.len() * examples.width()];
    rows.chunks_exact_mut(examples.width()).enumerate().for_each(|(image, row)| examples.gather(image, row));
    rows
}

/// How often most votes, the first of several, are for the right class.
fn right(answers: &[Vec<Neighbor>], train: &Examples, test: &Examples) -> usize {
    let labels: Vec<u32> = (0..train.len()).filter_map(|record| train.label(record)).collect();
    let winner = |answer: &Vec<Neighbor>| {
        let mut votes = [0; 10];
        for neighbor in answer {
            votes[labels[neighbor.record as usize] as usize] += 1;
        }
        (0..10).rev().max_by_key(|class| votes[*class]).map(|class| class as u32)
    };
    answers.iter().enumerate().filter(|(image, answer)| winner(answer) == test.label(*image)).count()
}

fn say(line: &serde_json::Value) {
    #[allow(clippy::print_stdout, reason = "lines of JSON are what this program is for")]
    {
        println!("{line}");
    }
}
