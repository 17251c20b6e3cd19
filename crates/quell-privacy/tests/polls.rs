//! Polls: what they cost, how they answer, and when they end.
//!
//! Statistics are judged at a false-alarm rate of about 1e-6, with a check beside each that less noise would
//! be seen.

use crate::book::without_cap;
use quell_privacy::{
    Event, Neighbors,
    accounting::Pld,
    laws,
    mechanism::{Answer, Electorate, Mechanism, Poll, Polling, Rule, Screening, StableMax, Voters, Votes},
    units::{Delta, NoiseMultiplier, SamplingRate, Scale},
};

fn times(value: f64) -> NoiseMultiplier {
    NoiseMultiplier::new(value).unwrap()
}

fn poll(voters: Voters, deviation: f64, questions: u32, answers: u32) -> Poll {
    Poll {
        candidates: 3,
        voters,
        screening: None,
        rule: Rule::Gaussian(times(deviation)),
        questions,
        answers,
    }
}

fn open(poll: Poll) -> Polling {
    without_cap(Neighbors::AddRemove).seeded(5).charge(poll).unwrap().run().unwrap()
}

/// The noise multipliers of all Gaussians in an event, with how often they run.
fn gaussians(event: &Event, times: u64, found: &mut Vec<(f64, u64)>) {
    match event {
        Event::Gaussian { noise_multiplier } => found.push((noise_multiplier.get(), times)),
        Event::Repeated { count, event } => gaussians(event, times * count, found),
        Event::PoissonSampled { event, .. } => gaussians(event, times, found),
        Event::Composed(events) => events.iter().for_each(|event| gaussians(event, times, found)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_of_teachers_costs_a_move_of_root_two_and_a_screening_a_move_of_one() {
    let screening = Some(Screening { threshold: 10, deviation: times(150.0) });
    let asked = Poll { screening, ..poll(Voters::Teachers, 40.0, 300, 200) };
    for (neighbors, reach) in [(Neighbors::AddRemove, 1.0), (Neighbors::Replace, 2.0)] {
        let mut found = Vec::new();
        gaussians(&asked.event(neighbors), 1, &mut found);
        // Noise over what moves is reach over the multiplier.
        let moves: Vec<(f64, u64)> =
            found.iter().map(|(multiplier, count)| (reach / multiplier, *count)).collect();
        let [(screened, questions), (answered, answers)] = moves[..] else { panic!("{moves:?}") };
        assert_eq!((questions, answers), (300, 200));
        assert!((1.0 / 150.0..1.000_001 / 150.0).contains(&screened), "{screened}");
        let root = 2.0_f64.sqrt();
        assert!((root / 40.0..1.000_001 * root / 40.0).contains(&answered), "{answered}");
    }
    let laplace =
        Poll { rule: Rule::Laplace(Scale::new(20.0).unwrap()), ..poll(Voters::Teachers, 1.0, 1, 1) };
    for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
        let Event::Repeated { event, .. } = laplace.event(neighbors) else { panic!() };
        let Event::Pure { epsilon } = *event else { panic!() };
        assert!((epsilon.get() - 0.1).abs() < 1e-6 && epsilon.get() >= 0.1 * (1.0 - 1e-6), "{epsilon:?}");
    }
}

#[test]
fn the_nearest_in_samples_cost_what_the_lecture_says() {
    let voters = Voters::Nearest { rate: SamplingRate::new(0.01).unwrap() };
    // Noise of 5 relative to what a record moves, which is √2.
    let asked = poll(voters, 5.0 * 2.0_f64.sqrt(), 1000, 1000);
    let event = asked.event(Neighbors::AddRemove);
    let epsilon = Pld::default().epsilon(&event, Neighbors::AddRemove, Delta::new(1e-6).unwrap()).unwrap();
    assert!(epsilon.lower > 0.2485 && epsilon.upper < 0.2495, "{epsilon:?}");
}

#[test]
fn one_ballot_moves_the_counts_by_root_two_and_the_largest_by_one_whatever_is_expected() {
    const TEACHERS: usize = 5;
    for expected in [[0, 0, 0], [3, -2, 1], [-7, 0, 5]] {
        for ballots in 0..3_usize.pow(TEACHERS as u32) {
            let of = |ballots: usize, teacher: usize| ballots / 3_usize.pow(teacher as u32) % 3;
            let counts = |ballots: usize| {
                let mut counts = [0_i64; 3];
                (0..TEACHERS).for_each(|teacher| counts[of(ballots, teacher)] += 1);
                counts
            };
            let largest = |counts: [i64; 3]| (0..3).map(|i| counts[i] - expected[i]).max().unwrap();
            for teacher in 0..TEACHERS {
                let other = ballots - of(ballots, teacher) * 3_usize.pow(teacher as u32);
                let (a, b) = (counts(ballots), counts(other));
                let squared: i64 = a.iter().zip(b).map(|(a, b)| (a - b).pow(2)).sum();
                assert!(squared <= 2 && (largest(a) - largest(b)).abs() <= 1, "{a:?} {b:?}");
            }
        }
    }
}

const RUNS: u32 = 100_000;

fn below(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

fn share(answers: &[Answer], wanted: Answer) -> f64 {
    answers.iter().filter(|answer| **answer == wanted).count() as f64 / answers.len() as f64
}

fn spread(p: f64) -> f64 {
    4.9 * (p * (1.0 - p) / f64::from(RUNS)).sqrt()
}

#[test]
fn winners_and_refusals_are_as_frequent_as_the_noise_makes_them() {
    let votes = Votes::tally(2, [vec![0; 60], vec![1; 50]].concat());
    let two = Poll { candidates: 2, ..poll(Voters::Teachers, 10.0, RUNS, RUNS) };
    let mut polling = open(two);
    let answers: Vec<Answer> = (0..RUNS).map(|_| polling.ask(&votes, &[]).unwrap()).collect();
    let (won, p) = (share(&answers, Answer::Winner(0)), below(10.0 / (10.0 * 2.0_f64.sqrt())));
    assert!((won - p).abs() < spread(p), "{won} for {p}");
    assert!((won - below(10.0 / (9.5 * 2.0_f64.sqrt()))).abs() > spread(p), "less noise is not seen");

    let screening = Some(Screening { threshold: 70, deviation: times(20.0) });
    for (expected, over) in [(vec![], 60.0), (vec![40, 20], 30.0)] {
        let mut polling = open(Poll { screening, ..two });
        let answers: Vec<Answer> = (0..RUNS).map(|_| polling.ask(&votes, &expected).unwrap()).collect();
        let (refused, p) = (share(&answers, Answer::Refused), below((70.0 - over) / 20.0));
        assert!((refused - p).abs() < spread(p), "{refused} for {p}");
        assert!((refused - below((70.0 - over) / 19.0)).abs() > spread(p), "less noise is not seen");
    }
}

#[test]
fn no_more_is_answered_than_was_paid_for_and_nothing_left_over_is_lost() {
    let votes = Votes::tally(3, [0; 100]);
    let sure = Some(Screening { threshold: 50, deviation: times(1.0) });
    let asked = Poll { screening: sure, ..poll(Voters::Teachers, 1.0, 5, 2) };
    let mut ledger = without_cap(Neighbors::AddRemove).seeded(1);
    let mut lease = ledger.reserve(asked, 2).unwrap();
    let mut polling = lease.next().unwrap().unwrap().run().unwrap();
    let unsure = Votes::tally(3, [0; 0]);
    assert_eq!(polling.ask(&unsure, &[]).unwrap(), Answer::Refused);
    assert_eq!(polling.ask(&votes, &[]).unwrap(), Answer::Winner(0));
    assert_eq!((polling.answers_left(), polling.is_open()), (1, true));
    polling.add(lease.next().unwrap().unwrap()).unwrap();
    // Three questions and one answer were left, five and two came.
    let answers: Vec<Answer> = (0..4).map(|_| polling.ask(&votes, &[]).unwrap()).collect();
    assert_eq!(answers, [Answer::Winner(0), Answer::Winner(0), Answer::Winner(0), Answer::Exhausted]);
    let mut questions = open(Poll { questions: 3, ..asked });
    let answers: Vec<Answer> = (0..4).map(|_| questions.ask(&unsure, &[]).unwrap()).collect();
    assert_eq!(answers, [Answer::Refused, Answer::Refused, Answer::Refused, Answer::Exhausted]);
    // Another poll does not fit, and a tally of another size is not looked at.
    let other = without_cap(Neighbors::AddRemove).seeded(1).charge(Poll { answers: 1, ..asked }).unwrap();
    assert!(polling.add(other).is_err());
    let mut polling = open(asked);
    assert!(polling.ask(&Votes::tally(2, [0]), &[]).is_err());
    assert_eq!(polling.answers_left(), 2);
}

#[test]
fn settings_without_a_theorem_are_refused() {
    let rate = SamplingRate::new(0.1).unwrap();
    let nearest = Voters::Nearest { rate };
    for wrong in [
        Poll { answers: 0, ..poll(Voters::Teachers, 1.0, 5, 2) },
        poll(Voters::Teachers, 1.0, 1, 2),
        Poll { candidates: 1, ..poll(Voters::Teachers, 1.0, 5, 2) },
        Poll { rule: Rule::Laplace(Scale::new(1.0).unwrap()), ..poll(nearest, 1.0, 5, 2) },
    ] {
        assert!(wrong.check(Neighbors::AddRemove).is_err(), "{wrong:?}");
        assert_eq!(wrong.event(Neighbors::AddRemove), Event::NonPrivate, "{wrong:?}");
    }
}

/// Records on a line, with a class; the k nearest to a question vote.
struct Line {
    places: Vec<i64>,
    k: usize,
    /// How many records each question's sample had.
    seen: Vec<usize>,
    samples: Vec<Vec<usize>>,
}

impl Line {
    fn new(places: Vec<i64>, k: usize) -> Self {
        Self { places, k, seen: Vec::new(), samples: Vec::new() }
    }
}

impl Electorate for Line {
    fn tally(&mut self, questions: &[(usize, Vec<usize>)]) -> Vec<Votes> {
        let vote = |(question, sample): &(usize, Vec<usize>)| {
            let mut near: Vec<usize> = sample.clone();
            near.sort_by_key(|record| ((self.places[*record] - *question as i64).abs(), *record));
            near.truncate(self.k);
            Votes::tally(3, near.iter().map(|record| record % 3))
        };
        self.seen.extend(questions.iter().map(|(_, sample)| sample.len()));
        self.samples.extend(questions.iter().map(|(_, sample)| sample.clone()));
        questions.iter().map(vote).collect()
    }
}

/// Votes that count a ballot twice.
struct Twice(Line);

impl Electorate for Twice {
    fn tally(&mut self, questions: &[(usize, Vec<usize>)]) -> Vec<Votes> {
        let twice =
            |sample: &Vec<usize>| Votes::tally(3, sample.iter().flat_map(|record| [record % 3, record % 3]));
        let _ = &self.0;
        questions.iter().map(|(_, sample)| twice(sample)).collect()
    }
}

#[test]
fn the_law_of_electorates_holds_for_the_nearest_and_not_for_those_who_vote_twice() {
    let places = vec![5, 1, 9, 2, 2, 7, 4];
    let mut line = Line::new(places.clone(), 3);
    assert_eq!(laws::check_electorate(&mut line, 3, &[0, 1, 2, 3, 4, 5, 6], &[0, 4, 8]), Ok(()));
    assert!(laws::check_electorate(&mut Twice(Line::new(places, 3)), 3, &[0, 1, 2, 3], &[0]).is_err());
}

#[test]
fn each_question_has_samples_of_its_own_at_the_rate_that_was_paid_for() {
    let voters = Voters::Nearest { rate: SamplingRate::new(0.25).unwrap() };
    let screening = Some(Screening { threshold: -1000, deviation: times(1.0) });
    let mut polling = open(Poll { screening, ..poll(voters, 1.0, 60, 40) });
    let mut line = Line::new((0..1000).collect(), 10);
    let answers = polling.ask_nearest(1000, &(0..70).collect::<Vec<_>>(), &mut line).unwrap();
    let winners = answers.iter().filter(|answer| matches!(answer, Answer::Winner(_))).count();
    // Sixty were screened, forty of them answered; the others may be asked again.
    assert_eq!((winners, answers[40..].iter().all(|answer| *answer == Answer::Exhausted)), (40, true));
    assert_eq!(line.seen.len(), 100);
    let mean = line.seen.iter().sum::<usize>() as f64 / 100.0;
    assert!((mean - 250.0).abs() < 4.9 * (1000.0_f64 * 0.25 * 0.75 / 100.0).sqrt(), "{mean}");
    assert!((0..100).all(|i| (0..i).all(|j| line.samples[i] != line.samples[j])), "a sample was used twice");
    assert!(
        polling.ask_nearest(1000, &[1], &mut line).unwrap() == [Answer::Exhausted] && line.seen.len() == 100
    );
    // A poll of teachers has no samples, and one of samples no teachers.
    assert!(open(poll(Voters::Teachers, 1.0, 5, 2)).ask_nearest(10, &[1], &mut line).is_err());
    assert!(open(poll(voters, 1.0, 5, 2)).ask(&Votes::tally(3, [0]), &[]).is_err());
}

fn stable(threshold: u32, unstable: u32) -> StableMax {
    StableMax { candidates: 3, threshold, unstable, questions: 1000, deviation: Scale::new(3.0).unwrap() }
}

#[test]
fn stable_winners_are_free_until_enough_were_unstable() {
    let sure = Votes::tally(3, [vec![1; 300], vec![0; 20]].concat());
    let torn = Votes::tally(3, [vec![1; 100], vec![0; 99]].concat());
    let mut asked = without_cap(Neighbors::AddRemove).seeded(3).charge(stable(40, 2)).unwrap().run().unwrap();
    assert!((0..500).all(|_| asked.ask(&sure).unwrap() == Answer::Winner(1)));
    assert_eq!(
        [&torn, &sure, &torn, &sure].map(|votes| asked.ask(votes).unwrap()),
        [Answer::Refused, Answer::Winner(1), Answer::Refused, Answer::Exhausted]
    );
}

#[test]
fn the_distance_of_stable_winners_covers_every_winner_that_is_mistaken_for_stable() {
    // P[X - Y > t] for discrete Gaussian noise of standard deviation 3, summed up.
    let weight = |n: i64| (-(n * n) as f64 / 18.0).exp();
    let total: f64 = (-60..=60).map(weight).sum();
    for threshold in [0_i64, 3, 10, 20, 30] {
        let mistaken: f64 = (-60..=60_i64)
            .flat_map(|x| (-60..=60_i64).map(move |y| (x, y)))
            .filter(|(x, y)| x - y > threshold)
            .map(|(x, y)| weight(x) * weight(y) / (total * total))
            .sum();
        let charged = stable(threshold as u32, 1).distance() / 1000.0;
        assert!(charged >= mistaken && charged < 40.0 * mistaken, "{threshold}: {charged} for {mistaken}");
    }
}
