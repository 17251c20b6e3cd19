//! How far replacing one ballot moves the sums, over all ballots of small forms.
//!
//! Ballots that the form ignores are included.

use super::*;

const UNIT: i64 = 1000;

fn counted(form: Form, ballot: &Ballot) -> Vec<i64> {
    let mut sums = vec![0; form.width()];
    form.add(ballot, UNIT, &mut sums);
    sums.into_iter().map(|sum| sum as i64).collect()
}

/// The greatest distance between what two of the ballots add, in units.
fn widest(form: Form, ballots: &[Ballot]) -> f64 {
    let added: Vec<Vec<i64>> = ballots.iter().map(|ballot| counted(form, ballot)).collect();
    let squared = |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(a, b)| (a - b).pow(2)).sum::<i64>();
    let widest = added.iter().flat_map(|a| added.iter().map(|b| squared(a, b))).max().unwrap();
    (widest as f64).sqrt() / UNIT as f64
}

#[test]
fn an_exchange_of_labels_moves_the_counts_as_far_as_is_charged_for_and_no_farther() {
    for labels in 1..=4_usize {
        // All sequences of up to four, where two numbers more than there are stand for labels that do not exist.
        let kinds = labels as u32 + 2;
        let ballots: Vec<Ballot> = (0..=4_u32)
            .flat_map(|length| {
                let sequence =
                    move |code: u32| (0..length).map(|place| code / kinds.pow(place) % kinds).collect();
                (0..kinds.pow(length)).map(move |code| Ballot::Labels(sequence(code)))
            })
            .chain([Ballot::Number(1.0), Ballot::Labels(vec![u32::MAX])])
            .collect();
        for most in 1..=labels {
            let form = Form::Labels { labels, most };
            let (found, charged) = (widest(form, &ballots), form.moves());
            assert!((found - charged).abs() < 1e-12, "{form}: {found} for {charged}");
            let full = ballots
                .iter()
                .all(|ballot| counted(form, ballot).iter().all(|part| *part == 0 || *part == UNIT));
            assert!(full, "{form}: a label counts once");
        }
    }
}

#[test]
fn the_first_labels_count_and_useless_ones_are_passed_over() {
    let form = Form::Labels { labels: 5, most: 2 };
    let of = |named: &[u32]| counted(form, &Ballot::Labels(named.to_vec()));
    assert_eq!(of(&[7, 3, 3, 1, 0]), [0, UNIT, 0, UNIT, 0]);
    assert_eq!(of(&[]), [0; 5]);
    assert_eq!(counted(form, &Ballot::Number(3.0)), [0; 5]);
}

#[test]
fn an_exchange_of_numbers_moves_the_sum_by_the_distance_of_the_bounds_and_no_farther() {
    for (lower, upper) in [(-3.0, 5.0), (0.0, 1e-9), (1e150 * (1.0 - 1e-15), 1e150), (-1e150, 1e150)] {
        let form = Form::Number(Bounds::new(lower, upper).unwrap());
        let special = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            0.0,
            -0.0,
            lower,
            upper,
        ];
        let between = (0..=100).map(|i| lower + (upper - lower) * (f64::from(i) / 50.0 - 0.5));
        let mut ballots: Vec<Ballot> = special.into_iter().chain(between).map(Ballot::Number).collect();
        ballots.push(Ballot::Labels(vec![1, 2]));
        let (found, charged) = (widest(form, &ballots), form.moves());
        assert!((found - charged).abs() < 1e-12, "{form}: {found} for {charged}");
        for middle in [Ballot::Number(f64::NAN), Ballot::Number(f64::INFINITY), Ballot::Labels(Vec::new())] {
            assert_eq!(counted(form, &middle), [UNIT / 2], "{form}");
        }
        assert_eq!(
            (counted(form, &Ballot::Number(lower)), counted(form, &Ballot::Number(upper))),
            (vec![0], vec![UNIT])
        );
    }
}
