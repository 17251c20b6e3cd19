//! Clusters and principal components: what they find, and what they refuse.

use std::{fmt::Write, path::PathBuf};

use quell::{
    Error,
    data::{Examples, Schema, TableError, Targets},
    learner::{
        Control, Evaluation, Method, Predictor, PublicFacts, Subject,
        unsupervised::{Recipe, Unsupervised},
    },
    ledger::InMemory,
    network::Architecture,
    random::PublicRandom,
    run::{Configuration, Driver, Folder, Job, Model, train},
};
use quell_ledger::{Location, Store};
use quell_privacy::{
    Neighbors,
    ledger::{Ledger, Unit},
    units::{Delta, Epsilon},
};

use crate::scratch::Scratch;

fn examples(width: usize, values: Vec<f32>) -> Examples {
    let count = values.len() / width;
    Examples::numbers(&[width], values, Targets::Numbers(vec![0.0; count])).unwrap()
}

fn planned(name: &str, mut recipe: Recipe, width: usize) -> Result<Unsupervised, Error> {
    let mut model = Architecture { name: Some(name.into()), ..Architecture::default() };
    let facts = PublicFacts { records: None, classes: None };
    let subject = Subject { shape: &[width], are_features: false, facts, schema: None };
    recipe.privacy.delta = Some(1e-5);
    let planned = Unsupervised::plan(&mut recipe, &mut model, &subject)?;
    // Completed settings yield the same plan.
    let again = Unsupervised::plan(&mut recipe.clone(), &mut model, &subject)?;
    assert_eq!(
        (again.plan.sums.runs, &again.plan.sums.descent),
        (planned.plan.sums.runs, &planned.plan.sums.descent)
    );
    Ok(planned)
}

fn fitted(name: &str, recipe: Recipe, data: &Examples) -> Predictor {
    let epsilon = recipe.privacy.epsilon.unwrap();
    let method = planned(name, recipe, data.width()).unwrap();
    let budget = Epsilon::new(epsilon).unwrap();
    let mut ledger = InMemory::ledger("points", budget, Delta::new(1e-5).unwrap()).unwrap();
    method.train(data, &mut ledger).unwrap()
}

fn recipe(epsilon: f64, records: usize) -> Recipe {
    let mut recipe = Recipe { records: Some(records as u64), ..Recipe::default() };
    recipe.privacy.epsilon = Some(epsilon);
    recipe
}

/// Corners of a cube, each with equally many points of small spread around it.
fn corners(width: usize, clusters: usize, each: usize, spread: f32) -> (Examples, Vec<Vec<f32>>) {
    let mut chance = PublicRandom::new(9);
    let centres: Vec<Vec<f32>> = (0..clusters)
        .map(|number| {
            let mut bits = PublicRandom::of(40, number as u64);
            (0..width)
                .map(|axis| {
                    // The first axes tell all clusters apart.
                    let bit = if axis < 3 { (number >> axis) & 1 } else { bits.below(2) };
                    if bit == 1 { 0.6 } else { -0.6 }
                })
                .collect()
        })
        .collect();
    let rows = (0..clusters * each).flat_map(|row| {
        let centre = centres[row % clusters].clone();
        centre.into_iter().map(|x| x + spread * chance.normal()).collect::<Vec<_>>()
    });
    let values = rows.collect();
    (examples(width, values), centres)
}

#[test]
fn kmeans_finds_clusters_that_lie_apart_in_few_and_in_many_columns() {
    for (width, clusters) in [(3, 8), (20, 2)] {
        let (data, centres) = corners(width, clusters, 2_000, 0.05);
        let found = fitted("kmeans", Recipe { clusters: Some(clusters), ..recipe(4.0, data.len()) }, &data);
        let Predictor::Clusters(found) = found else { panic!("no clusters") };
        for centre in &centres {
            let distance = |own: &[f32]| {
                own.iter().zip(centre).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt()
            };
            let nearest = found.centres.chunks(width).map(distance).fold(f64::INFINITY, f64::min);
            assert!(nearest < 0.15, "{width} columns: {nearest} from {centre:?}");
        }
        // Sizes were released, and are about right: six standard deviations.
        for size in found.sizes.as_ref().unwrap() {
            assert!((size - 2_000.0).abs() < 6.0 * found.size_noise + 100.0, "{size} ± {}", found.size_noise);
        }
        let Evaluation::Clusters { inertia, count } = found.evaluate(&data) else { panic!("no inertia") };
        let ideal = 0.05_f64.powi(2) * width as f64;
        assert!(inertia < 1.5 * ideal + 0.01 && count == data.len() as u64, "{inertia} {ideal}");
    }
}

#[test]
fn components_find_the_leading_directions() {
    let (width, records) = (12, 10_000);
    let mut chance = PublicRandom::new(10);
    // Two directions carry most of the variance, and the mean is not zero.
    let first: Vec<f32> = (0..width).map(|axis| if axis % 2 == 0 { 0.2 } else { -0.2 }).collect();
    let second: Vec<f32> = (0..width).map(|axis| if axis < 6 { 0.1 } else { -0.1 }).collect();
    let values = (0..records)
        .flat_map(|_| {
            let (a, b) = (chance.normal(), chance.normal());
            (0..width)
                .map(|axis| 0.2 + a * first[axis] + b * second[axis] + 0.02 * chance.normal())
                .collect::<Vec<_>>()
        })
        .collect();
    let data = examples(width, values);
    let found = fitted("components", Recipe { components: Some(2), ..recipe(4.0, records) }, &data);
    let Predictor::Components(found) = &found else { panic!("no components") };
    let cosine = |own: &[f32], other: &[f32]| {
        let dot: f32 = own.iter().zip(other).map(|(a, b)| a * b).sum();
        dot.abs() / other.iter().map(|x| x * x).sum::<f32>().sqrt()
    };
    let rows: Vec<&[f32]> = found.pca.components.chunks(width).collect();
    assert!(cosine(rows[0], &first) > 0.99 && cosine(rows[1], &second) > 0.95, "{rows:?}");
    for row in &rows {
        let largest = row.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs()));
        assert!(largest.unwrap() > 0.0, "the largest weight is positive: {row:?}");
    }
    assert!(found.pca.mean.iter().all(|mean| (mean - 0.2).abs() < 0.05), "{:?}", found.pca.mean);
    let Evaluation::Components { explained, .. } = found.evaluate(&data) else { panic!("no share") };
    assert!(explained > 0.97, "{explained}");
    assert!(
        found.spectrum.len() == width
            && found.spectrum[1] > found.noise
            && found.spectrum.is_sorted_by(|a, b| a >= b)
    );
}

/// One record of twelve lies far away along the second axis, which has the largest variance.
#[test]
fn components_find_the_direction_of_few_long_records() {
    let (width, records) = (3, 20_000);
    let mut chance = PublicRandom::new(11);
    let values = (0..records)
        .flat_map(|row| {
            let far = if row % 12 == 0 { 0.4 } else { 0.0 };
            [0.09 * chance.normal(), far, 0.08 * chance.normal()]
        })
        .collect();
    let found = fitted(
        "components",
        Recipe { components: Some(1), ..recipe(4.0, records) },
        &examples(width, values),
    );
    let Predictor::Components(found) = &found else { panic!("no components") };
    assert!(found.pca.components[1].abs() > 0.95, "{:?}", found.pca.components);
}

#[test]
fn hard_data_gives_models_of_finite_numbers() {
    let constant = || vec![0.5; 40];
    let cases: [(usize, Vec<f32>, usize); 6] = [
        (4, constant(), 10),
        // No record at all.
        (4, Vec::new(), 10),
        // One record.
        (3, vec![1.0, -1.0, 0.3], 1),
        // More columns than records, few and many.
        (40, (0..80).map(|x| x as f32 / 80.0).collect(), 2),
        (200, vec![1.0; 400], 2),
        // No usable number.
        (2, vec![f32::NAN, f32::INFINITY, 3e38, f32::MIN], 2),
    ];
    for (width, values, records) in cases {
        let data = examples(width, values);
        for epsilon in [0.1, 30.0] {
            for clusters in [1, records] {
                let asked = Recipe { clusters: Some(clusters), ..recipe(epsilon, records) };
                let found = fitted("kmeans", asked, &data);
                assert_eq!(found.parameters(), clusters * width);
                assert!(found.weights().iter().all(|x| x.abs() <= 1.0), "{width} {epsilon} {clusters}");
            }
            for components in [1, width.min(20)] {
                let asked = Recipe { components: Some(components), ..recipe(epsilon, records) };
                let found = fitted("components", asked, &data);
                assert_eq!(found.parameters(), components * width);
                assert!(found.weights().iter().all(|x| x.abs() <= 1.0 + 1e-6), "{width} {epsilon}");
            }
        }
    }
}

#[test]
fn settings_that_make_no_sense_are_refused_by_name() {
    let refused = |name: &str, recipe: Recipe, width: usize| match planned(name, recipe, width).err() {
        Some(Error::Setting { name, .. }) => name.to_owned(),
        other => panic!("{name}: {other:?}"),
    };
    let usual = || recipe(1.0, 100);
    assert_eq!(refused("kmeans", usual(), 2), "clusters");
    for clusters in [0, 101] {
        assert_eq!(refused("kmeans", Recipe { clusters: Some(clusters), ..usual() }, 2), "clusters");
    }
    for components in [0, 3] {
        let asked = Recipe { components: Some(components), ..usual() };
        assert_eq!(refused("components", asked, 2), "components");
    }
    let both = Recipe { clusters: Some(2), components: Some(2), ..usual() };
    assert_eq!(refused("kmeans", both.clone(), 2), "components");
    assert_eq!(refused("components", both, 2), "clusters");
    let wide = Recipe { components: Some(2), ..usual() };
    assert_eq!(refused("components", wide, 5_000), "an example");
    assert_eq!(refused("kmeans", Recipe { clusters: Some(2), levels: Some(3), ..usual() }, 9), "levels");
    let mut unknown = Recipe { clusters: Some(2), ..Recipe::default() };
    unknown.privacy.epsilon = Some(1.0);
    assert!(matches!(planned("kmeans", unknown, 2), Err(Error::Missing { .. })));
}

#[test]
fn few_records_for_each_cluster_are_remarked_on() {
    let remarks = |epsilon| {
        planned("kmeans", Recipe { clusters: Some(10), ..recipe(epsilon, 1_000) }, 3).unwrap().remarks().len()
    };
    assert_eq!((remarks(0.1), remarks(30.0)), (1, 0));
}

/// Runs a job, is stopped after some runs, and goes on.
struct Interrupted(u64);

impl Driver for Interrupted {
    type Output = (Model, PathBuf, u64);

    fn drive<J: Job>(self, job: &J) -> Self::Output {
        let path = Scratch::new("run", "").path().with_extension("folder");
        let folder = Folder::create(&path).unwrap();
        let store = Store::create(Location::File(path.join("ledger.db"))).unwrap();
        let terms = job.terms().unwrap();
        let mut ledger = Ledger::create(store.book(&terms.dataset).unwrap(), terms).unwrap();
        let mut steps = Vec::new();
        for stop in [self.0, u64::MAX] {
            job.go(&mut ledger, &folder, &mut |progress| {
                steps.push(progress.done);
                if progress.done == stop { Control::Stop } else { Control::Continue }
            })
            .unwrap();
        }
        assert!(steps.is_sorted_by(|a, b| a < b), "{steps:?}");
        assert_eq!(ledger.state().unwrap().charges().len(), 1);
        let taken = folder.metrics().unwrap().taken;
        let model = folder.model().unwrap();
        let again = Model::restore(&model.save().unwrap()).unwrap();
        assert_eq!(format!("{:?}", again.predictor), format!("{:?}", model.predictor));
        assert_eq!(again.digest().unwrap(), model.digest().unwrap());
        (model, path, taken)
    }
}

const COLUMNS: &str =
    "user = 'u'\n[[column]]\nname = 'a'\nbounds = [0, 10]\n[[column]]\nname = 'b'\nbounds = [0, 10]\n";

/// A table of people with two clusters. One cell in ten of the label is missing.
fn table() -> Scratch {
    let mut chance = PublicRandom::new(6);
    let mut text = String::from("u,a,b,y\n");
    for row in 0..3_000 {
        let middle = if row % 2 == 0 { 2.0 } else { 8.0 };
        let mut near = || middle + 0.3 * chance.normal();
        let (a, b) = (near(), near());
        let label = if row % 10 == 0 { "" } else { "yes" };
        writeln!(text, "{},{a},{b},{label}", row / 2).unwrap();
    }
    Scratch::new("people.csv", text)
}

fn configuration(table: &Scratch, schema: &str, model: &str) -> Configuration {
    let mut asked = Configuration::default();
    asked.data.path = Some(table.path().to_owned());
    asked.data.schema = Some(Schema::parse(schema).unwrap());
    asked.model.name = Some(model.into());
    asked.training.privacy.epsilon = Some(5.0);
    asked.training.sampling.records = Some(3_000);
    asked
}

#[test]
fn a_table_without_a_label_is_clustered_and_an_interrupted_run_goes_on() {
    let table = table();
    let without = format!("ignore = ['y']\n{COLUMNS}");
    let with = format!("{COLUMNS}[label]\ncolumn = 'y'\nclasses = ['yes', 'no']\n");
    for (schema, unit, neighbors, stop) in [
        (&without, Unit::Example, Neighbors::AddRemove, 1),
        (&with, Unit::User, Neighbors::AddRemove, 4),
        (&with, Unit::Example, Neighbors::Replace, 9),
        (&without, Unit::User, Neighbors::Replace, 2),
    ] {
        let mut asked = configuration(&table, schema, "kmeans");
        asked.unsupervised.clusters = Some(2);
        (asked.data.unit, asked.training.privacy.neighbors) = (unit, neighbors);
        if unit == Unit::User {
            asked.training.sampling.records = Some(1_500);
        }
        let (model, _, taken) = train(asked, Interrupted(stop)).unwrap();
        assert!(taken > 5, "{taken}");
        let Predictor::Clusters(clusters) = &model.predictor else { panic!("no clusters") };
        // Where a user has a record in each cluster, the mean of their vectors still tells them apart.
        let mut first: Vec<f32> = clusters.centres.chunks(2).map(|centre| centre[0]).collect();
        first.sort_by(f32::total_cmp);
        assert!((first[0] + 0.6).abs() < 0.25 && (first[1] - 0.6).abs() < 0.25, "{unit:?} {first:?}");
        assert_eq!(model.classes, None);
    }
    let mut asked = configuration(&table, &without, "components");
    asked.unsupervised.components = Some(1);
    let (model, ..) = train(asked, Interrupted(3)).unwrap();
    let Predictor::Components(components) = &model.predictor else { panic!("no components") };
    let diagonal = components.pca.components.iter().sum::<f32>().abs() / 2.0_f32.sqrt();
    assert!(diagonal > 0.98, "{:?}", components.pca);
}

#[test]
fn a_learner_that_needs_a_label_refuses_a_schema_without_one() {
    struct Nothing;
    impl Driver for Nothing {
        type Output = ();
        fn drive<J: Job>(self, _: &J) {}
    }
    let table = table();
    let without = format!("ignore = ['y']\n{COLUMNS}");
    for model in ["logistic", "linear", "mlp"] {
        let refused = train(configuration(&table, &without, model), Nothing).err();
        assert_eq!(refused, Some(Error::Table(TableError::NoLabel)), "{model}");
    }
    // Settings of other learners mean nothing here.
    let mut asked = configuration(&table, &without, "kmeans");
    (asked.unsupervised.clusters, asked.training.steps) = (Some(2), Some(5));
    assert!(matches!(train(asked, Nothing), Err(Error::Setting { name: "model", .. })));
    let mut asked = configuration(&table, &without, "kmeans");
    (asked.unsupervised.clusters, asked.glm.regularization) = (Some(2), Some(0.5));
    assert!(matches!(train(asked, Nothing), Err(Error::Setting { name: "model", .. })));
}
