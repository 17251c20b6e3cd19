//! Surveys: what they cost, what noise they have, and when they end.
//!
//! Statistics are judged at a false-alarm rate of about 1e-6, with a check beside each that half the noise
//! would be seen.

use crate::book::without_cap;
use quell_privacy::{
    Event, Neighbors,
    accounting::Pld,
    mechanism::{Ballot, Bounds, Finding, Form, Mechanism, Survey, Surveying},
    units::{Delta, NoiseMultiplier},
};

const LABELS: Form = Form::Labels { labels: 6, most: 2 };

fn number(lower: f64, upper: f64) -> Form {
    Form::Number(Bounds::new(lower, upper).unwrap())
}

fn survey(form: Form, teachers: u32, deviation: f64, questions: u32) -> Survey {
    Survey { form, teachers, deviation: NoiseMultiplier::new(deviation).unwrap(), questions }
}

fn open(survey: Survey) -> Surveying {
    without_cap(Neighbors::AddRemove).seeded(5).charge(survey).unwrap().run().unwrap()
}

/// δ of a Gaussian whose mean moves by μ standard deviations, at ε.
fn delta(mu: f64, epsilon: f64) -> f64 {
    let below = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
    below(mu / 2.0 - epsilon / mu) - epsilon.exp() * below(-mu / 2.0 - epsilon / mu)
}

#[test]
fn a_survey_costs_what_gaussians_cost_whose_mean_moves_by_all_that_a_ballot_can_change() {
    for (form, moves) in [
        (LABELS, 4.0_f64.sqrt()),
        (Form::Labels { labels: 6, most: 5 }, 6.0_f64.sqrt()),
        (Form::Labels { labels: 1, most: 1 }, 1.0),
        (Form::Labels { labels: 1000, most: 1 }, 2.0_f64.sqrt()),
        (number(-2.0, 7.0), 1.0),
    ] {
        let asked = survey(form, 250, 40.0, 300);
        let mu = moves * 300.0_f64.sqrt() / 40.0;
        for neighbors in [Neighbors::AddRemove, Neighbors::Replace] {
            let epsilon = Pld::default()
                .epsilon(&asked.event(neighbors), neighbors, Delta::new(1e-5).unwrap())
                .unwrap();
            // δ falls with ε: the bounds lie on either side of the one wanted. The noise that is drawn is a little less than what was asked for.
            assert!(delta(mu, epsilon.upper) <= 1e-5, "{form}: {epsilon:?}");
            assert!(delta(mu * (1.0 + 1e-6), epsilon.lower) >= 1e-5, "{form}: {epsilon:?}");
            assert!(epsilon.upper - epsilon.lower < 2e-3 * epsilon.upper, "{form}: {epsilon:?}");
        }
    }
}

/// Checks that mean and mean square of draws are standard normal.
///
/// Each is within 4.9 of its own deviations.
fn looks_standard(draws: &[f64]) -> bool {
    let n = draws.len() as f64;
    let (mean, square) = (draws.iter().sum::<f64>() / n, draws.iter().map(|x| x * x).sum::<f64>() / n);
    mean.abs() < 4.9 / n.sqrt() && (square - 1.0).abs() < 4.9 * (2.0 / n).sqrt()
}

#[test]
fn counts_and_means_are_those_of_the_ballots_with_the_noise_that_was_paid_for() {
    const RUNS: u32 = 20_000;
    let mut surveying = open(survey(LABELS, 30, 4.0, RUNS));
    let ballots: Vec<Ballot> = (0..30).map(|teacher| Ballot::Labels(vec![teacher % 3, 5])).collect();
    let mut noise = vec![Vec::new(); 6];
    for _ in 0..RUNS {
        let Finding::Counts(counts) = surveying.ask(&ballots).unwrap() else { panic!("no counts") };
        for (noise, (count, truth)) in
            noise.iter_mut().zip(counts.into_iter().zip([10.0, 10.0, 10.0, 0.0, 0.0, 30.0]))
        {
            noise.push((count - truth) / 4.0);
        }
    }
    for draws in &noise {
        assert!(looks_standard(draws));
        assert!(
            !looks_standard(&draws.iter().map(|x| 0.5 * x).collect::<Vec<_>>()),
            "half the noise is not seen"
        );
    }
    // Labels have noise of their own.
    let product: f64 = noise[0].iter().zip(&noise[5]).map(|(a, b)| a * b).sum();
    assert!(product.abs() < 4.9 * f64::from(RUNS).sqrt(), "{product}");

    let mut surveying = open(survey(number(-2.0, 6.0), 20, 4.0, RUNS));
    let ballots: Vec<Ballot> = (0..20).map(|teacher| Ballot::Number(f64::from(teacher))).collect();
    // Fourteen of them are held to six.
    let truth = (f64::from((0..6).sum::<i32>()) + 14.0 * 6.0) / 20.0;
    let mut noise = Vec::new();
    for _ in 0..RUNS {
        let Finding::Mean(mean) = surveying.ask(&ballots).unwrap() else { panic!("no mean") };
        noise.push((mean - truth) * 20.0 / (4.0 * 8.0));
    }
    assert!(looks_standard(&noise));
    assert!(
        !looks_standard(&noise.iter().map(|x| 0.5 * x).collect::<Vec<_>>()),
        "half the noise is not seen"
    );
}

#[test]
fn no_more_is_answered_than_was_paid_for_and_nothing_left_over_is_lost() {
    let asked = survey(number(0.0, 1.0), 3, 1.0, 2);
    let mut ledger = without_cap(Neighbors::AddRemove).seeded(1);
    let mut lease = ledger.reserve(asked, 2).unwrap();
    let mut surveying = lease.next().unwrap().unwrap().run().unwrap();
    let ballots = [Ballot::Number(0.5), Ballot::Number(1.0), Ballot::Number(0.0)];
    // Too few ballots are not looked at, and nothing is used up.
    assert!(surveying.ask(&ballots[1..]).is_err() && surveying.left() == 2);
    assert!(matches!(surveying.ask(&ballots).unwrap(), Finding::Mean(_)));
    surveying.add(lease.next().unwrap().unwrap()).unwrap();
    let findings: Vec<Finding> = (0..4).map(|_| surveying.ask(&ballots).unwrap()).collect();
    assert!(findings[..3].iter().all(|finding| matches!(finding, Finding::Mean(_))));
    assert!(findings[0] != findings[1] && findings[1] != findings[2], "noise was used twice");
    assert_eq!((&findings[3], surveying.left()), (&Finding::Exhausted, 0));
    let other = without_cap(Neighbors::AddRemove).seeded(1).charge(Survey { questions: 1, ..asked }).unwrap();
    assert!(surveying.add(other).is_err() && surveying.left() == 0);
}

#[test]
fn bad_ballots_stop_nothing() {
    let bad = vec![
        Ballot::Labels(vec![9, u32::MAX]),
        Ballot::Labels((0..1000).collect()),
        Ballot::Number(f64::NAN),
        Ballot::Number(f64::NEG_INFINITY),
        Ballot::Number(1e308),
    ];
    let Finding::Counts(counts) = open(survey(LABELS, 5, 0.001, 1)).ask(&bad).unwrap() else {
        panic!("no counts")
    };
    let truth = [1.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    assert!(counts.iter().zip(truth).all(|(count, truth)| (count - truth).abs() < 0.01), "{counts:?}");
    let Finding::Mean(mean) = open(survey(number(10.0, 20.0), 5, 0.001, 1)).ask(&bad).unwrap() else {
        panic!("no mean")
    };
    // Four in the middle and one held to the upper bound.
    assert!((mean - 16.0).abs() < 0.02, "{mean}");
}

#[test]
fn settings_without_a_theorem_are_refused() {
    let good = survey(LABELS, 5, 1.0, 1);
    for wrong in [
        Survey { questions: 0, ..good },
        Survey { teachers: 0, ..good },
        Survey { form: Form::Labels { labels: 0, most: 1 }, ..good },
        Survey { form: Form::Labels { labels: 3, most: 0 }, ..good },
        Survey { form: Form::Labels { labels: 3, most: 4 }, ..good },
        Survey { form: Form::Labels { labels: usize::MAX, most: usize::MAX }, ..good },
    ] {
        assert!(wrong.check(Neighbors::AddRemove).is_err(), "{wrong:?}");
        assert_eq!(wrong.event(Neighbors::AddRemove), Event::NonPrivate, "{wrong:?}");
    }
    assert!(good.check(Neighbors::Replace).is_ok());
    // Six numbers to a question, and a number for each question.
    assert_eq!(good.distance(), 6.0 * survey(number(0.0, 1.0), 5, 1.0, 1).distance());
    assert_eq!(
        good.to_string(),
        "1 answer by votes of 5 teachers, each with at most 2 of 6 labels, with Gaussian noise of standard deviation 1 ballots"
    );
}
