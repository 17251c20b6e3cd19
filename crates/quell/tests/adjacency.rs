//! Neighbouring datasets have neighbouring statistics, whatever one record is: cases that once were not so.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::made::Folder;
use quell::{
    Error, Input,
    data::{Examples, Options, Schema, Targets, digits, open},
    learner::{
        Supervised,
        dp_sgd::{DpSgd, Sampler},
        loss::Loss,
    },
    network::{self, Network, Workspace},
    random::PublicRandom,
    run::{self, Configuration, Job, labels},
    voting::pate::Shards,
};
use quell_ledger::{Store, Volume};
use quell_privacy::{
    Neighbors,
    ledger::{Ledger, Terms, Unit},
};

const CLASSES: Loss = Loss::CrossEntropy { label_smoothing: 0.0 };

fn names() -> Vec<String> {
    vec!["a".into(), "b".into()]
}

fn network(name: &str, inputs: usize) -> Network {
    network::build(&[inputs], &network::layers_of(name, &[inputs], 2).unwrap()).unwrap()
}

/// The sum of gradients that are clipped to a length, in blocks as the mechanism makes them.
fn clipped_sum(network: &Network, weights: &[f32], task: &Supervised<'_>, norm: f64) -> Vec<f64> {
    let records: Vec<usize> = (0..task.records()).collect();
    let blocks: Vec<&[usize]> = records.chunks(96).collect();
    // As the mechanism clips: rounded down, and zero where that has not full precision.
    let clip = |squared: &[f64], scales: &mut [f32]| {
        let length = squared[0].sqrt();
        let scale = if length <= norm { 1.0 } else { (norm / length * (1.0 - 1.2e-7)) as f32 };
        scales[0] = if scale.is_normal() { scale } else { 0.0 };
    };
    let mut sum = vec![0.0; network.parameters()];
    network.add_gradients(
        weights,
        task,
        &blocks,
        &[network.parameters()],
        Some(&clip),
        &mut sum,
        &mut Workspace::default(),
    );
    sum
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn what_one_user_has_changes_nothing_that_others_contribute() {
    const USERS: usize = 20_000;
    let network = network("logistic", 5);
    let weights = network.initialize(1);
    let mut chance = PublicRandom::new(7);
    for _ in 0..4 {
        let row: Vec<f32> = (0..5).map(|_| chance.normal()).collect();
        let of = |users: usize, more: usize| {
            let records = users + more;
            let targets = Targets::Classes { labels: vec![0; records], names: names() };
            let owners: Vec<Option<String>> =
                (0..records).map(|record| Some(record.min(users - 1).to_string())).collect();
            Examples::numbers(&[5], row.repeat(records), targets).unwrap().with_users(&owners).unwrap()
        };
        let sum = |examples: &Examples| {
            clipped_sum(&network, &weights, &Supervised::new(examples, CLASSES, None).by_user().unwrap(), 0.1)
        };
        // The last user comes, with one record or with two.
        let (without, one, two) = (sum(&of(USERS - 1, 0)), sum(&of(USERS, 0)), sum(&of(USERS, 1)));
        for (name, with) in [("one record", one), ("two records", two)] {
            let moved = distance(&without, &with) / 0.1;
            assert!(moved < 1.0 + 1e-5, "a user with {name} moves the sum by {moved} of the clip norm");
        }
    }
}

#[test]
fn where_records_are_exchanged_a_row_has_its_shard_whatever_is_left_out() {
    let all = digits().unwrap().train;
    let of = |examples: &Examples, broken: Option<usize>| {
        let mut labels: Vec<u32> =
            (0..examples.len()).map(|record| examples.label(record).unwrap()).collect();
        if let Some(record) = broken {
            labels[record] = u32::MAX;
        }
        let mut values = vec![0.0; examples.len() * 64];
        values.chunks_exact_mut(64).enumerate().for_each(|(record, row)| examples.gather(record, row));
        let names = examples.classes().unwrap().to_vec();
        Examples::numbers(&[1, 8, 8], values, Targets::Classes { labels, names }).unwrap()
    };
    let whole = of(&all, None);
    let shards = Shards::deal(&whole, 100, Neighbors::Replace).unwrap();
    for broken in [0, 1, 700, all.len() - 1] {
        let other = of(&all, Some(broken));
        let dealt = Shards::deal(&other, 100, Neighbors::Replace).unwrap();
        let moved =
            (0..other.len()).filter(|record| dealt.of()[*record] != shards.of()[other.row(*record)]).count();
        assert_eq!(
            (moved, other.row_count(), other.len()),
            (0, all.len(), all.len() - 1),
            "row {broken} lost its label"
        );
    }
}

#[test]
fn a_user_with_a_long_id_moves_the_sum_by_what_one_user_may() {
    use std::sync::Arc;

    use parquet::{
        data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type},
        file::{properties::WriterProperties, writer::SerializedFileWriter},
        schema::parser::parse_message_type,
    };
    const FIRST: i64 = 1_800_000_000_000_000_000;
    let network = network("logistic", 1);
    let sum = |rows: &[(i64, &str)]| {
        let schema = "message people { required int64 person; required double x; required binary y (UTF8); }";
        let properties = Arc::new(WriterProperties::builder().build());
        let mut writer =
            SerializedFileWriter::new(Vec::new(), Arc::new(parse_message_type(schema).unwrap()), properties)
                .unwrap();
        let mut group = writer.next_row_group().unwrap();
        let ids: Vec<i64> = rows.iter().map(|row| row.0).collect();
        let labels: Vec<ByteArray> = rows.iter().map(|row| ByteArray::from(row.1)).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&ids, None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<DoubleType>().write_batch(&vec![1.0; rows.len()], None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&labels, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        let folder = Folder::new().with("people.parquet", writer.into_inner().unwrap());
        let schema = Some(Schema::parse(&format!("user = 'person'\n{SCHEMA}")).unwrap());
        let options = Options { schema, ..Options::default() };
        let people = open(folder.path().join("people.parquet"), &options).unwrap().train;
        let task = Supervised::new(&people, CLASSES, None).by_user().unwrap();
        clipped_sum(&network, &vec![0.0; network.parameters()], &task, 0.1)
    };
    // The second of two people, who has 99 records of the other class, leaves.
    let mut both = vec![(FIRST, "a")];
    both.resize(100, (FIRST + 1, "b"));
    let moved = distance(&sum(&both), &sum(&both[..1])) / 0.1;
    assert!(moved < 1.0 + 1e-5, "one user moves the sum by {moved} of the clip norm");
    assert!(moved > 0.99, "{moved}");
}

/// A ledger in a folder that stays as long as the test.
fn ledger(terms: Terms) -> Ledger<Volume> {
    let folder = Folder::new().with("here", "");
    let store = Store::create(folder.path().join("ledger.db").as_path()).unwrap();
    let ledger = Ledger::create(store.book(&terms.dataset).unwrap(), terms).unwrap();
    std::mem::forget(folder);
    ledger
}

const SCHEMA: &str = "[label]\ncolumn = 'y'\nclasses = ['a', 'b']\n[[column]]\nname = 'x'\nbounds = [0, 9]\n";

/// A table of so many rows, of which one may have another label.
fn table(rows: usize, odd: Option<(usize, &str)>) -> Folder {
    let label =
        |row: usize| odd.filter(|(place, _)| *place == row).map_or(["a", "b"][row % 2], |(_, label)| label);
    let lines: Vec<String> = (0..rows).map(|row| format!("{},{}", row % 10, label(row))).collect();
    Folder::new().with("table.csv", format!("x,y\n{}\n", lines.join("\n")))
}

fn configuration(folder: &Folder, by: Sampler, records: Option<u64>) -> Configuration {
    let mut asked = Configuration::default();
    asked.data.path = Some(folder.path().join("table.csv"));
    asked.data.schema = Some(Schema::parse(SCHEMA).unwrap());
    asked.training.privacy =
        quell::learner::Privacy { epsilon: Some(2.0), neighbors: Neighbors::Replace, ..Default::default() };
    asked.training.sampling.by = by;
    asked.training.sampling.records = records;
    asked.training.steps = Some(5);
    asked
}

#[test]
fn where_records_are_exchanged_rows_are_counted_and_not_what_can_be_used_of_them() {
    for by in [Sampler::Poisson, Sampler::Full, Sampler::WithoutReplacement, Sampler::Shuffled] {
        let job = |odd| {
            let folder = table(200, odd);
            let mut job = run::Training::<DpSgd>::new(configuration(&folder, by, Some(200))).unwrap();
            // The check against the number of rows is before payment, and the same.
            job.quote(&mut ledger(job.terms().unwrap())).unwrap();
            job.configuration.data.path = None;
            (job.configuration.write().unwrap(), job.method.plan)
        };
        let whole = job(None);
        assert!(whole.0.contains("records = 200"), "{}", whole.0);
        for odd in ["", "c", "\u{fffd}"] {
            assert!(job(Some((77, odd))) == whole, "{by:?}: a label of {odd:?} shows");
        }
    }
}

#[test]
fn whatever_can_be_wrong_about_the_number_of_records_is_said_before_it_is_paid_for() {
    let folder = table(51, None);
    let check = |by, records| {
        let job = run::Training::<DpSgd>::new(configuration(&folder, by, Some(records))).unwrap();
        job.quote(&mut ledger(job.terms().unwrap())).map(|_| ())
    };
    let refused = check(Sampler::WithoutReplacement, 100).unwrap_err();
    assert!(
        matches!(&refused, Error::Setting { name: "records", found, .. } if !found.contains("51")),
        "{refused}"
    );
    assert!(check(Sampler::WithoutReplacement, 51).is_ok());
    // Where a batch has no fixed size, the number need not be exact.
    assert!(check(Sampler::Poisson, 100).is_ok());
    // Whether the number is public says the ledger, not whoever asks.
    assert!(matches!(
        run::Training::<DpSgd>::new(configuration(&folder, Sampler::Poisson, None)),
        Err(Error::Missing { .. })
    ));
    for records in [51, 100] {
        let job =
            run::Training::<DpSgd>::new(configuration(&folder, Sampler::WithoutReplacement, Some(records)))
                .unwrap();
        let terms = Terms { neighbors: Neighbors::AddRemove, ..job.terms().unwrap() };
        assert!(matches!(job.quote(&mut ledger(terms)), Err(Error::OtherTerms { .. })), "{records}");
    }
    // Which records are split off follows from what they hold, so an exchange would change how many there are.
    let mut split = configuration(&folder, Sampler::Poisson, Some(40));
    split.data.schema = Some(Schema::parse(&format!("{SCHEMA}[test]\nshare = 0.2\n")).unwrap());
    let refused = run::Training::<DpSgd>::new(split.clone()).err().unwrap();
    assert!(matches!(refused, Error::Setting { name: "neighbors", .. }), "{refused}");
    split.training.privacy.neighbors = Neighbors::AddRemove;
    assert!(run::Training::<DpSgd>::new(split).is_ok());
}

#[test]
fn people_are_not_promised_protection_where_nobody_knows_who_they_are() {
    let mut asked = labels::Configuration::digits_by_teachers().unwrap();
    asked.data.unit = Unit::User;
    assert!(matches!(labels::Labelling::new(asked), Err(Error::Missing { what: Input::Users })));
    let folder = table(51, None);
    let mut asked = configuration(&folder, Sampler::Poisson, Some(51));
    asked.data.unit = Unit::User;
    assert!(matches!(run::Training::<DpSgd>::new(asked.clone()), Err(Error::Missing { what: Input::Users })));
    let lines: Vec<String> = (0..51).map(|row| (row % 7).to_string()).collect();
    asked.data.users = Some(folder.put("users.txt", lines.join("\n")));
    assert!(run::Training::<DpSgd>::new(asked).is_ok());
}

#[test]
fn a_clipped_gradient_is_no_longer_than_it_may_be_however_large_its_record_is() {
    let network = network("logistic", 2);
    let (mut weights, mut most) = (vec![0.0; network.parameters()], 0.0_f64);
    for huge in [1.0_f32, 1e10, 1e30, 3e38, f32::MAX] {
        let targets = Targets::Classes { labels: vec![0], names: names() };
        let examples = Examples::numbers(&[2], vec![huge, 0.0], targets).unwrap();
        let task = Supervised::new(&examples, CLASSES, None);
        for norm in [1e-30, 2.4e-7, 1e-4, 1.0, 1e30] {
            // The surer the model is, the smaller is the derivative that huge inputs are multiplied by.
            for sure in 0..60 {
                weights[4] = sure as f32 * 1.3;
                let sum = clipped_sum(&network, &weights, &task, norm);
                let length = distance(&sum, &vec![0.0; sum.len()]) / norm;
                assert!(
                    length <= 1.0 + 1e-5,
                    "{huge:e} clipped to {norm:e} is {length} times as long, at {sure}"
                );
                most = most.max(length);
            }
        }
    }
    assert!(most > 0.999, "{most}");
}

#[test]
fn a_user_who_is_exchanged_changes_one_of_a_number_that_is_public() {
    let people = |names: &[&str]| {
        let values: Vec<f32> = names.iter().map(|name| f32::from(name.as_bytes()[0])).collect();
        let targets = Targets::Numbers(vec![1.0; names.len()]);
        let owners: Vec<Option<&str>> =
            names.iter().map(|name| Some(*name).filter(|name| *name != "-")).collect();
        Examples::numbers(&[1], values, targets).unwrap().with_users(&owners).unwrap()
    };
    let network = network::build(&[1], &network::layers_of("logistic", &[1], 1).unwrap()).unwrap();
    let weights = vec![0.0; network.parameters()];
    let sum = |names: &[&str], count| {
        let examples = people(names);
        let task = Supervised::new(&examples, Loss::Squared, None).by_users(count).unwrap();
        assert_eq!(task.records(), count);
        clipped_sum(&network, &weights, &task, 1.0)
    };
    let all = ["a", "b", "b", "c", "d", "e", "a"];
    for count in [1, 3, 5, 8] {
        let whole = sum(&all, count);
        for place in 0..all.len() {
            for other in ["f", "g", "h", "-", "a"] {
                // One user becomes another with all their records, or nobody.
                let exchanged = all.map(|name| if name == all[place] { other } else { name });
                let moved = distance(&whole, &sum(&exchanged, count));
                assert!(moved <= 2.0 * 1.001, "{count} users, {} becomes {other}: {moved}", all[place]);
            }
        }
    }
}
