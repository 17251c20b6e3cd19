//! Features that nobody learned: against other people's libraries, and as laws.

use quell::{
    Error,
    data::{Examples, Targets, digits},
    features::{Features, Pca},
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
    pca: Directions,
}

#[derive(Deserialize)]
struct Case {
    features: Features,
    shape: Vec<usize>,
    picture: Vec<f32>,
    output_shape: Vec<usize>,
    output: Vec<f64>,
}

#[derive(Deserialize)]
struct Directions {
    rows: Vec<f32>,
    width: usize,
    mean: Vec<f64>,
    variances: Vec<f64>,
    components: Vec<f64>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../../../golden/features/features.json")).unwrap()
}

fn examples(shape: &[usize], values: Vec<f32>) -> Examples {
    let records = values.len() / shape.iter().product::<usize>();
    Examples::numbers(shape, values, Targets::Numbers(vec![0.0; records])).unwrap()
}

fn rows(examples: &Examples) -> Vec<Vec<f32>> {
    let row = |record| {
        let mut row = vec![0.0; examples.width()];
        examples.gather(record, &mut row);
        row
    };
    (0..examples.len()).map(row).collect()
}

/// The largest difference over the largest number.
fn distance(found: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(1e-3, |largest: f64, x| largest.max(x.abs()));
    found.iter().zip(expected).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max) / largest
}

#[test]
fn pictures_become_what_kymatio_and_scikit_image_make_of_them() {
    let golden = golden();
    assert_eq!(golden.cases.len(), 16);
    for case in golden.cases {
        let made = case.features.apply(&examples(&case.shape, case.picture)).unwrap();
        assert_eq!(
            (made.shape(), case.features.output_shape(&case.shape).unwrap().as_slice()),
            (&*case.output_shape, &*case.output_shape)
        );
        let far = distance(&rows(&made)[0], &case.output);
        assert!(far < 1e-5, "{:?} of {:?} is off by {far}", case.features, case.shape);
    }
}

#[test]
fn components_are_the_eigenvectors_of_the_covariance() {
    let Directions { rows: values, width, mean, variances, components } = golden().pca;
    let all = examples(&[width], values);
    for count in [1, 2, width] {
        let pca = Pca::fit(&all, count).unwrap();
        assert!(distance(&pca.mean, &mean) < 1e-6);
        let found: Vec<f32> = pca.variances.iter().map(|x| *x as f32).collect();
        assert!(distance(&found, &variances[..count]) < 1e-5, "{found:?}");
        // The first three directions stand apart from the others; which way they point is nobody's choice.
        for (found, expected) in pca.components.chunks(width).zip(components.chunks(width)).take(3) {
            let along: f64 = found.iter().zip(expected).map(|(a, b)| f64::from(*a) * b).sum();
            assert!(1.0 - along.abs() < 1e-6, "{along}");
        }
        // What is made of the records varies as much as was said, and around zero.
        let made = rows(&pca.apply(&all).unwrap());
        for (direction, variance) in variances[..count].iter().enumerate() {
            let along: Vec<f64> = made.iter().map(|row| f64::from(row[direction])).collect();
            let found = along.iter().map(|x| x * x).sum::<f64>() / along.len() as f64;
            assert!(along.iter().sum::<f64>().abs() < 1e-4 && (found - variance).abs() < 1e-5 * variances[0]);
        }
    }
}

#[test]
fn components_of_many_numbers_settle_at_right_angles() {
    let images = digits().unwrap().train;
    let pca = Pca::fit(&images, 12).unwrap();
    let directions: Vec<&[f32]> = pca.components.chunks(images.width()).collect();
    for (i, a) in directions.iter().enumerate() {
        for (j, b) in directions.iter().enumerate() {
            let product: f64 = a.iter().zip(*b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            assert!((product - f64::from(i == j)).abs() < 1e-5, "{i} and {j}: {product}");
        }
    }
    assert!(pca.variances.is_sorted_by(|a, b| a >= b) && pca.variances[11] > 0.0);
    let said = |error: Error| error.to_string();
    assert!(said(Pca::fit(&images, 0).unwrap_err()).contains("components is 0"));
    assert!(said(Pca::fit(&images, 65).unwrap_err()).contains("components is 65"));
    assert!(Pca::fit(&images.select(&[]), 2).is_err());
    assert!(said(pca.apply(&examples(&[3], vec![0.0; 3])).unwrap_err()).contains('3'));
}

#[test]
fn what_is_made_of_a_record_depends_on_that_record_alone() {
    let images = digits().unwrap().train;
    for features in [Features::hog(), Features::scattering()] {
        let all = features.apply(&images).unwrap();
        let few = features.apply(&images.select(&[700, 3])).unwrap();
        let expected = rows(&all.select(&[700, 3]));
        // To the last bit, and so do the coins that follow from it.
        assert!(rows(&few) == expected, "{features:?}");
        assert_eq!((few.fingerprint(0), few.fingerprint(1)), (all.fingerprint(700), all.fingerprint(3)));
        assert_ne!(few.fingerprint(0), few.fingerprint(1));
    }
}

#[test]
fn targets_and_users_stay_with_their_records() {
    let names = vec!["no".to_owned(), "yes".to_owned()];
    let targets = Targets::Classes { labels: vec![1, 0, 1], names };
    let pictures = Examples::bytes(&[1, 8, 8], (0..192).collect(), 255, targets).unwrap();
    let pictures = pictures.with_users(&[Some("ada"), Some("bob"), Some("ada")]).unwrap();
    for features in [Features::Raw {}, Features::hog(), Features::scattering()] {
        let made = features.apply(&pictures).unwrap();
        assert_eq!((made.label(0), made.label(1), made.label(2)), (Some(1), Some(0), Some(1)));
        assert_eq!((made.users(), made.user_count()), (pictures.users(), Some(2)));
        assert_eq!(made.classes(), pictures.classes());
    }
}

#[test]
fn groups_are_brought_to_mean_zero_and_variance_one_in_each_record() {
    let images = digits().unwrap().train.select(&[0, 1, 2]);
    let width = 81 * 4 / 27;
    let moments = |group: &[f32]| {
        let mean = group.iter().map(|x| f64::from(*x)).sum::<f64>() / width as f64;
        (mean, group.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / width as f64)
    };
    let plain = Features::Scattering { scales: 2, angles: 8, order: 2, groups: 0 };
    let (before, after) =
        (rows(&plain.apply(&images).unwrap()), rows(&Features::scattering().apply(&images).unwrap()));
    for (before, after) in before.concat().chunks(width).zip(after.concat().chunks(width)) {
        let ((_, variance), (mean, normal)) = (moments(before), moments(after));
        // What hardly varies stays small.
        let expected = variance / (variance + 1e-5);
        assert!(mean.abs() < 1e-5 && (normal - expected).abs() < 1e-4, "{mean} {normal} {expected}");
    }
}

#[test]
fn settings_that_do_not_fit_are_refused_in_a_sentence() {
    let scattering = |scales, angles, order, groups| Features::Scattering { scales, angles, order, groups };
    for (features, shape, says) in [
        (scattering(0, 8, 2, 0), &[1, 28, 28][..], "scales is 0, expected a whole number from 1 to 8"),
        (scattering(60, 8, 2, 0), &[1, 28, 28], "scales is 60"),
        (scattering(2, 0, 2, 0), &[1, 28, 28], "angles is 0"),
        (scattering(2, 8, 3, 0), &[1, 28, 28], "order is 3, expected 1 or 2"),
        (scattering(2, 8, 2, 10), &[1, 28, 28], "groups is 10 for 81"),
        (scattering(4, 8, 2, 0), &[1, 28, 15], "scales is 4 for records of 1 × 28 × 15, expected so few"),
        (
            scattering(2, 8, 2, 0),
            &[784],
            "features is computed from images for records of 784, expected records with channels",
        ),
        (scattering(2, 8, 2, 0), &[usize::MAX, 28, 28], "expected records with channels, rows and columns"),
        (scattering(1, 64, 2, 0), &[60, 1000, 1000], "features is too many numbers"),
        (Features::Hog { orientations: 0, cell: 4, block: 2 }, &[1, 28, 28], "orientations is 0"),
        (Features::Hog { orientations: 9, cell: 4096, block: 2 }, &[1, 28, 28], "cell is 4096"),
        (
            Features::Hog { orientations: 9, cell: 4, block: 8 },
            &[1, 28, 28],
            "block is 8 for records of 1 × 28 × 28",
        ),
    ] {
        let error = features.output_shape(shape).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    assert_eq!(Features::Raw {}.output_shape(&[5]).unwrap(), [5]);
    assert_eq!(Features::hog().output_shape(&[3, 32, 32]).unwrap(), [49 * 36]);
}

#[test]
fn features_are_written_by_name_with_what_is_not_usual() {
    let read = |text: &str| serde_json::from_str::<Features>(text);
    assert_eq!(read(r#"{"kind":"scattering"}"#).unwrap(), Features::scattering());
    assert_eq!(read(r#"{"kind":"hog"}"#).unwrap(), Features::hog());
    let other = Features::Scattering { scales: 3, angles: 8, order: 2, groups: 0 };
    assert_eq!(read(r#"{"kind":"scattering","scales":3,"groups":0}"#).unwrap(), other);
    assert_eq!(read(&serde_json::to_string(&other).unwrap()).unwrap(), other);
    for wrong in [r#"{"kind":"scatering"}"#, r#"{"kind":"hog","cells":4}"#, r#"{"kind":"raw","scales":1}"#] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}
