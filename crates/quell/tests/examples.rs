//! Examples in memory: gathering, leaving out, users, and splits that look at one record at a time.
#![allow(missing_docs, clippy::unwrap_used)]

use proptest::prelude::*;
use quell::{
    Error,
    data::{Examples, Scaling, Split, Targets, digits},
};

fn classes(labels: &[u32], count: usize) -> Targets {
    Targets::Classes { labels: labels.to_vec(), names: (0..count).map(|class| class.to_string()).collect() }
}

fn row(examples: &Examples, index: usize) -> Vec<f32> {
    let mut row = vec![f32::NAN; examples.width()];
    examples.gather(index, &mut row);
    row
}

fn rows(examples: &Examples) -> Vec<Vec<f32>> {
    (0..examples.len()).map(|index| row(examples, index)).collect()
}

/// `count` records of one number that is also the target.
fn numbered(count: u16) -> Examples {
    let values: Vec<f32> = (0..count).map(f32::from).collect();
    Examples::numbers(&[1], values.clone(), Targets::Numbers(values)).unwrap()
}

#[test]
fn bytes_are_gathered_over_their_largest() {
    let examples =
        Examples::bytes(&[1, 2, 2], vec![0, 4, 8, 16, 16, 8, 4, 0], 16, classes(&[1, 0], 2)).unwrap();
    assert_eq!(rows(&examples), [[0.0, 0.25, 0.5, 1.0], [1.0, 0.5, 0.25, 0.0]]);
    assert_eq!((examples.label(0), examples.label(1), examples.label(2)), (Some(1), Some(0), None));
    assert_eq!((examples.shape(), examples.width(), examples.len()), ([1, 2, 2].as_slice(), 4, 2));
    assert_eq!(examples.number(0), None);
}

#[test]
fn every_channel_has_its_mean_and_deviation() {
    let scaling = Scaling { mean: vec![0.5, 0.25, 0.0], deviation: vec![0.5, 0.25, 2.0] };
    let bytes = Examples::bytes(&[3, 1, 2], vec![0, 4, 0, 4, 0, 4], 4, classes(&[0], 1))
        .unwrap()
        .scaled(&scaling)
        .unwrap();
    assert_eq!(row(&bytes, 0), [-1.0, 1.0, -1.0, 3.0, 0.0, 0.5]);
    let values = vec![0.0, 1.0, 0.0, 1.0, 0.0, 1.0];
    let numbers = Examples::numbers(&[3, 1, 2], values, classes(&[0], 1)).unwrap().scaled(&scaling).unwrap();
    assert_eq!(row(&numbers, 0), row(&bytes, 0));
    // Scaling again replaces, and one number is for all channels.
    let again = bytes.scaled(&Scaling { mean: vec![1.0], deviation: vec![1.0] }).unwrap();
    assert_eq!(row(&again, 0), [-1.0, 0.0, -1.0, 0.0, -1.0, 0.0]);
    assert_eq!(row(&again.with_users(&[Some("ada")]).unwrap(), 0), [-1.0, 0.0, -1.0, 0.0, -1.0, 0.0]);
}

#[test]
fn a_scaling_out_of_range_is_refused() {
    let refused = |mean: &[f32], deviation: &[f32]| {
        let scaling = Scaling { mean: mean.to_vec(), deviation: deviation.to_vec() };
        numbered(3).scaled(&scaling).unwrap_err().to_string()
    };
    assert_eq!(refused(&[0.0], &[0.0]), "deviation is 0, expected a number above 0");
    assert!(refused(&[0.0], &[-1.0]).starts_with("deviation is -1"));
    assert!(refused(&[0.0], &[f32::NAN]).starts_with("deviation is NaN"));
    assert!(refused(&[f32::INFINITY], &[1.0]).starts_with("mean is inf"));
    assert!(refused(&[], &[1.0]).starts_with("mean is a list of 0"));
    assert!(refused(&[0.0], &[1.0, 2.0]).starts_with("deviation is a list of 2"));
}

#[test]
fn numbers_that_are_not_finite_are_zero() {
    let values = vec![1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    let examples = Examples::numbers(&[2], values, classes(&[0, 0], 1)).unwrap();
    assert_eq!(rows(&examples), [[1.0, 0.0], [0.0, 0.0]]);
}

#[test]
fn a_record_without_a_target_or_a_user_is_left_out() {
    let examples = Examples::bytes(&[1], vec![1, 2, 3], 1, classes(&[0, 2, 1], 2)).unwrap();
    assert_eq!(rows(&examples), [[1.0], [3.0]]);
    let numbers = Targets::Numbers(vec![f32::NAN, 5.0, f32::INFINITY]);
    let examples = Examples::bytes(&[1], vec![1, 2, 3], 1, numbers).unwrap();
    assert_eq!((rows(&examples), examples.number(0)), (vec![vec![2.0]], Some(5.0)));
    let examples = numbered(4).with_users(&[Some("ada"), None, Some("bob"), Some("ada")]).unwrap();
    assert_eq!(rows(&examples), [[0.0], [2.0], [3.0]]);
    assert_eq!((examples.users(), examples.user_count()), (Some([0, 1, 0].as_slice()), Some(2)));
    // A user whose records are all left out is none.
    let examples = examples.select(&[1]);
    assert_eq!((examples.users(), examples.user_count()), (Some([0].as_slice()), Some(1)));
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let sizes = |values: usize, labels: usize| {
        Examples::bytes(&[2, 3, 1], vec![0; values], 1, classes(&vec![0; labels], 1))
    };
    assert!(sizes(12, 2).is_ok() && sizes(0, 0).is_ok());
    assert!(matches!(sizes(13, 2), Err(Error::Sizes { name: "features" })));
    assert!(matches!(sizes(6, 2), Err(Error::Sizes { name: "features" })));
    assert!(matches!(
        Examples::bytes(&[0], vec![], 1, classes(&[], 1)),
        Err(Error::Setting { name: "shape", .. })
    ));
    let huge = [usize::MAX, 2];
    assert!(matches!(
        Examples::bytes(&huge, vec![], 1, classes(&[], 1)),
        Err(Error::Setting { name: "shape", .. })
    ));
    assert!(matches!(numbered(2).with_users(&[Some("ada")]), Err(Error::Sizes { name: "users" })));
}

#[test]
fn nothing_private_is_shown() {
    let examples = Examples::numbers(&[1], vec![1234.5], Targets::Numbers(vec![6789.5]))
        .unwrap()
        .with_users(&[Some("ada")]);
    assert_eq!(format!("{:?}", examples.unwrap()), "Examples { shape: [1], classes: None, .. }");
}

#[test]
fn a_split_takes_its_share() {
    let (train, test) = numbered(10_000).split(Split { share: 0.3 }).unwrap();
    assert_eq!(train.len() + test.len(), 10_000);
    // Ten standard deviations of a binomial.
    assert!((test.len() as f64 - 3000.0).abs() < 460.0, "{}", test.len());
    assert_eq!(numbered(100).split(Split { share: 0.0 }).unwrap().1.len(), 0);
    for share in [1.0, -0.1, f64::NAN] {
        assert!(matches!(numbered(1).split(Split { share }), Err(Error::Setting { name: "share", .. })));
    }
}

#[test]
fn no_user_is_on_both_sides() {
    let users: Vec<_> = (0..1000).map(|record| Some(format!("user {}", record % 50))).collect();
    let examples = numbered(1000).with_users(&users).unwrap();
    let (train, test) = examples.split(Split { share: 0.5 }).unwrap();
    let of = |part: &Examples| {
        rows(part).iter().map(|row| row[0] as usize % 50).collect::<std::collections::BTreeSet<_>>()
    };
    assert!(of(&train).is_disjoint(&of(&test)));
    assert_eq!(train.user_count().unwrap() + test.user_count().unwrap(), 50);
    assert!((5..45).contains(&test.user_count().unwrap()));
}

#[test]
fn the_sides_of_records_never_change() {
    // A model that was trained before an update must not be tested on what it was trained on.
    let (_, test) = numbered(60).split(Split { share: 0.2 }).unwrap();
    let tested: Vec<u16> = rows(&test).iter().map(|row| row[0] as u16).collect();
    assert_eq!(tested, TESTED);
}

/// As this library divided them when splits came into being.
const TESTED: [u16; 18] = [0, 4, 11, 13, 17, 24, 27, 28, 31, 33, 44, 45, 46, 48, 49, 51, 54, 59];

#[test]
fn the_embedded_digits_are_all_there() {
    let digits = digits().unwrap();
    let test = digits.test.unwrap();
    assert_eq!((digits.train.len(), test.len()), (1438, 359));
    assert!(digits.test_is_public);
    let mut counts = [0; 10];
    for part in [&digits.train, &test] {
        assert_eq!((part.shape(), part.classes().unwrap().len()), ([1, 8, 8].as_slice(), 10));
        for index in 0..part.len() {
            counts[part.label(index).unwrap() as usize] += 1;
            assert!(
                row(part, index).iter().all(|pixel| (0.0..=1.0).contains(pixel) && pixel * 16.0 % 1.0 == 0.0)
            );
        }
    }
    assert_eq!(counts, [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]);
    let first = [0.0, 0.0, 5.0, 13.0, 9.0, 1.0, 0.0, 0.0].map(|pixel: f32| pixel / 16.0);
    assert!([&digits.train, &test].iter().any(|part| row(part, 0)[..8] == first && part.label(0) == Some(0)));
}

proptest! {
    /// Adding a record changes the side of no other: what neighbouring datasets train on are neighbours or equal.
    #[test]
    fn the_side_of_a_record_depends_on_it_alone(values in prop::collection::vec(0_u8..50, 1..40), extra in 0_u8..50, at in any::<prop::sample::Index>()) {
        let split = |values: &[u8]| {
            let examples = Examples::bytes(&[1], values.to_vec(), 1, classes(&vec![0; values.len()], 1)).unwrap();
            let (train, test) = examples.split(Split { share: 0.4 }).unwrap();
            (rows(&train), rows(&test))
        };
        let (train, test) = split(&values);
        let mut more = values.clone();
        more.insert(at.index(values.len() + 1), extra);
        let (more_train, more_test) = split(&more);
        prop_assert_eq!(more_train.len() + more_test.len(), train.len() + test.len() + 1);
        prop_assert!(more_train == train || more_test == test);
    }
}
