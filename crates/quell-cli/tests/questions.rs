//! Labelling runs whose questions depend on earlier answers.
//!
//! Interactive teachers answer where the student is wrong. The active choice asks about the records of which
//! the student is least certain.

use std::{path::Path, process::Command};

use crate::command::{Ran, folder};
use quell::{
    data::{Examples, digits},
    features::{Features, Pca},
    voting::{Entry, Journal, student::Propagation},
};
use serde_json::Value;

/// Runs `quell pate` on the embedded digits; returns its JSON output and its journal.
fn label(here: &Path, output: &str, arguments: &str) -> (Value, Vec<Entry>) {
    let arguments = format!(
        "pate --teachers 40 --epsilon 20 --answers 40 --seed 1 {arguments} --output {output} --format json"
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_quell"));
    let ran: Ran = command.args(arguments.split_whitespace()).current_dir(here).output().unwrap().into();
    assert_eq!(ran.code, 0, "{arguments}: {}", ran.stderr);
    (
        serde_json::from_str(&ran.stdout).unwrap(),
        Journal::read(&here.join(output).join("answers.jsonl")).unwrap(),
    )
}

/// The public records, and the features from which a student predicts the questions.
struct Public {
    records: Examples,
    points: Vec<f32>,
}

const COMPONENTS: usize = 64;
const CLASSES: usize = 10;

impl Public {
    /// With the defaults of a run: four fifths of the records, as scattering features.
    fn new() -> Self {
        let records = digits().unwrap().test.unwrap();
        let asked: Vec<usize> = (0..(0.8 * records.len() as f64).ceil() as usize).collect();
        let features = Features::scattering().apply(&records.select(&asked)).unwrap();
        let features = Pca::fit(&features, COMPONENTS).unwrap().apply(&features).unwrap();
        let mut points = vec![0.0; features.len() * COMPONENTS];
        points
            .chunks_exact_mut(COMPONENTS)
            .enumerate()
            .for_each(|(record, row)| features.gather(record, row));
        Self { records, points }
    }

    /// The probability of each class for each question, given these answers.
    fn guesses(&self, entries: &[Entry]) -> Vec<Vec<f32>> {
        let answers: Vec<(usize, u32)> =
            entries.iter().filter_map(|entry| Some((entry.question, entry.answer?))).collect();
        let guesses = Propagation::default().spread(&self.points, COMPONENTS, &answers, CLASSES).unwrap();
        guesses.chunks_exact(CLASSES).map(<[f32]>::to_vec).collect()
    }

    /// Counts (answered, asked) for questions that the student predicts correctly with confidence, and for
    /// questions where it is unsure.
    fn answered(&self, entries: &[Entry]) -> [(usize, usize); 2] {
        let mut counts = [(0, 0); 2];
        // The first twelve questions are skipped: the student has too few answers to predict anything.
        for (place, entry) in entries.iter().enumerate().skip(12) {
            let guesses = &self.guesses(&entries[..place])[entry.question];
            let count = match guesses[self.records.label(entry.question).unwrap() as usize] {
                0.5.. => &mut counts[0],
                ..0.3 => &mut counts[1],
                _ => continue,
            };
            *count = (count.0 + usize::from(entry.answer.is_some()), count.1 + 1);
        }
        counts
    }
}

fn accuracy(said: &Value) -> f64 {
    said["accuracy"]["all"].as_f64().unwrap()
}

#[test]
fn interactive_teachers_seldom_answer_what_the_student_knows() {
    let (here, public) = (folder("questions interactive"), Public::new());
    let (said, entries) =
        label(&here, "interactive", "--aggregator interactive --threshold 0.4 --choice in-order");
    let [known, unknown] = public.answered(&entries);
    let (other, entries) = label(
        &here,
        "confident",
        "--aggregator confident --threshold 0.4 --choice in-order --dataset other --budget 25 --delta 1e-5",
    );
    let [confident, _] = public.answered(&entries);
    // Interactive teachers seldom answer what the student knows, and answer it less often than what the
    // student does not know. Confident teachers, who do not see the student, answer most of it.
    assert!(2 * known.0 < known.1 && known.0 * unknown.1 < unknown.0 * known.1, "{known:?} and {unknown:?}");
    assert!(2 * confident.0 > confident.1, "{confident:?}");
    assert!(said["answered"].as_u64() < other["answered"].as_u64(), "{said} and {other}");
    assert!(accuracy(&said) > 0.75, "{said}");
}

#[test]
fn the_most_uncertain_questions_follow_after_half_of_the_answers() {
    let (here, public) = (folder("questions active"), Public::new());
    let (said, entries) = label(&here, "active", "--choice active");
    let answers = said["answered"].as_u64().unwrap() as usize;
    assert_eq!((answers, entries.len()), (42, 42), "fourteen rounds of three");
    assert!(accuracy(&said) > 0.85, "{said}");
    for block in 7..14 {
        let (before, asked) = entries.split_at(3 * block);
        let guesses = public.guesses(before);
        let margin = |question: &usize| {
            let mut shares = guesses[*question].clone();
            shares.sort_by(|a, b| b.total_cmp(a));
            shares[0] - shares[1]
        };
        let mut left: Vec<usize> = (0..guesses.len())
            .filter(|question| before.iter().all(|entry| entry.question != *question))
            .collect();
        left.sort_by(|a, b| margin(a).total_cmp(&margin(b)).then(a.cmp(b)));
        let asked: Vec<usize> = asked[..3].iter().map(|entry| entry.question).collect();
        assert_eq!(asked, left[..3], "block {block}");
    }
}
