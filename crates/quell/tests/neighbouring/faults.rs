//! Faults that once were there, planted again: the comparison finds each of them, and nothing without it.

use quell::{
    chance::Chance,
    data::{Examples, Targets},
    dp_sgd::{Gradients, Supervised},
    loss::Loss,
    network::{self, Network, Task, Workspace},
    pate::{Ballots, Shards, Teachers},
    run::{self, labels::Electors},
};
use quell_ledger::Store;
use quell_privacy::{
    Neighbors,
    ledger::{Budget, Composition, Ledger, Terms, Unit},
    mechanism::{ClippedSum, Clipping, Poll, Rule, Sampling, Voters},
    units::{ClipNorm, Delta, Epsilon, NoiseMultiplier},
};

use crate::{
    compare::{Seen, leak, seen},
    datasets::{Format, Record, write},
    made::Folder,
};

fn ledger(folder: &Folder, neighbors: Neighbors) -> Ledger<quell_ledger::Volume> {
    let path = folder.path().join("ledger.db");
    let _ = std::fs::remove_dir_all(folder.path());
    std::fs::create_dir_all(folder.path()).unwrap();
    let delta = Delta::new(1e-5).unwrap();
    let budget = Budget { epsilon: Some(Epsilon::new(30.0).unwrap()), delta };
    let terms = Terms { dataset: "people".into(), unit: Unit::User, neighbors, budget, composition: Composition::Combined };
    Ledger::create(Store::create(path.as_path()).unwrap().book("people").unwrap(), terms).unwrap()
}

const NAMES: [&str; 2] = ["a", "b"];

fn targets(labels: Vec<u32>) -> Targets {
    Targets::Classes { labels, names: NAMES.map(str::to_owned).to_vec() }
}

/// Takes the way for groups as soon as there is one: what a record has decides about all.
struct Careless<'a>(&'a Supervised<'a>);

impl Task for Careless<'_> {
    fn is_grouped(&self) -> bool {
        (0..self.0.records()).any(|record| self.0.examples(record) != 1)
    }

    fn examples(&self, record: usize) -> usize {
        self.0.examples(record)
    }

    fn gather(&self, record: usize, example: usize, input: &mut [f32]) {
        self.0.gather(record, example, input);
    }

    fn differentiate(&self, record: usize, example: usize, outputs: &[f32], gradient: &mut [f32]) {
        self.0.differentiate(record, example, outputs, gradient);
    }
}

/// Users with one record each, all alike, and maybe one more, with two.
fn alike(row: &[f32], users: usize, one_more: bool) -> Examples {
    let records = users + 2 * usize::from(one_more);
    let owners: Vec<Option<String>> = (0..records).map(|record| Some(record.min(users).to_string())).collect();
    Examples::numbers(&[row.len()], row.repeat(records), targets(vec![0; records])).unwrap().with_users(&owners).unwrap()
}

fn step(network: &Network, records: usize, task: &impl Task) -> Seen {
    let folder = Folder::new();
    let weights = network.initialize(1);
    let mechanism = ClippedSum {
        sampling: Sampling::Full,
        clipping: Clipping::Flat { norm: ClipNorm::new(0.1).unwrap() },
        noise_multiplier: NoiseMultiplier::new(2.0).unwrap(),
        dimension: network.parameters(),
    };
    seen(1, Vec::new(), || {
        let mut workspace = Workspace::default();
        let mut gradients = Gradients::new(network, task, &weights, &mut workspace);
        let released = ledger(&folder, Neighbors::AddRemove).charge(mechanism).unwrap().run(records, &mut gradients).unwrap();
        vec![("released".into(), format!("{:?}", released.sum).into_bytes())]
    })
}

#[test]
fn a_way_of_adding_that_follows_from_the_records_is_found() {
    let network = network::build(&[5], &network::model("logistic", &[5], 2).unwrap()).unwrap();
    let (mut found, mut chance) = (0, Chance::new(7));
    for _ in 0..8 {
        let row: Vec<f32> = (0..5).map(|_| chance.normal()).collect();
        let [fewer, more] = [false, true].map(|one_more| alike(&row, 20_000, one_more));
        let loss = Loss::CrossEntropy { label_smoothing: 0.0 };
        let [fewer, more] = [&fewer, &more].map(|examples| Supervised::new(examples, loss, None).by_user().unwrap());
        let right = [&fewer, &more].map(|task| step(&network, task.records(), task));
        let moved = leak(&right[0], &right[1], Neighbors::AddRemove).unwrap();
        assert!(moved > 0.99, "{moved}");
        let wrong = [&fewer, &more].map(|task| step(&network, task.records(), &Careless(task)));
        found += usize::from(leak(&wrong[0], &wrong[1], Neighbors::AddRemove).is_err());
    }
    // Where what rounding does points along the gradient of the one who comes, it is too much.
    assert!(found > 0, "the planted fault was not found");
}

/// The votes of teachers on some public records.
fn votes(examples: &Examples, shards: &Shards, public: &Examples) -> Seen {
    let network = network::build(&[2], &network::model("logistic", &[2], 2).unwrap()).unwrap();
    let Electors::Teachers { training, .. } = Electors::teachers(shards.count()) else { unreachable!("these are teachers") };
    let teachers = Teachers { examples, shards, network: &network, training: &training, public, seed: 1 };
    let all = std::sync::Mutex::new(vec![Vec::new(); shards.count()]);
    teachers
        .vote(&(0..shards.count()).collect::<Vec<_>>(), |teacher, ballots| {
            all.lock().unwrap()[teacher] = ballots.to_vec();
            Ok(())
        })
        .unwrap();
    let mut ballots = Ballots::new(2, public.len()).unwrap();
    all.into_inner().unwrap().iter().for_each(|of| ballots.push(of));
    let poll = Poll {
        candidates: 2,
        voters: Voters::Teachers,
        screening: None,
        rule: Rule::Gaussian(NoiseMultiplier::new(20.0).unwrap()),
        questions: public.len() as u32,
        answers: public.len() as u32,
    };
    let folder = Folder::new();
    seen(1, Vec::new(), || {
        let mut polling = ledger(&folder, Neighbors::Replace).charge(poll).unwrap().run().unwrap();
        let answers: Vec<String> =
            (0..public.len()).map(|question| format!("{:?}", polling.ask(&ballots.votes(question), &[]).unwrap())).collect();
        vec![("answers".into(), answers.join(" ").into_bytes())]
    })
}

#[test]
fn shards_by_the_place_among_what_can_be_used_are_found() {
    const TEACHERS: usize = 20;
    let mut chance = Chance::new(5);
    let values: Vec<f32> = (0..2 * 60).map(|_| chance.normal()).collect();
    let labels: Vec<u32> = (0..60).map(|_| chance.below(2) as u32).collect();
    let of = |odd: Option<usize>| {
        let mut labels = labels.clone();
        odd.into_iter().for_each(|record| labels[record] = 9);
        Examples::numbers(&[2], values.clone(), targets(labels)).unwrap()
    };
    let public = Examples::numbers(&[2], (0..16).map(|_| chance.normal()).collect(), targets(vec![0; 8])).unwrap();
    let (whole, odd) = (of(None), of(Some(0)));
    let dealt = |examples: &Examples| votes(examples, &Shards::deal(examples, TEACHERS, Neighbors::Replace).unwrap(), &public);
    assert!(leak(&dealt(&whole), &dealt(&odd), Neighbors::Replace).is_ok());
    let by_index = |examples: &Examples| {
        let of = (0..examples.len()).map(|record| (record % TEACHERS) as u32).collect();
        votes(examples, &Shards::given(examples, of, TEACHERS).unwrap(), &public)
    };
    let error = leak(&by_index(&whole), &by_index(&odd), Neighbors::Replace).unwrap_err();
    assert!(error.contains("votes: moved by"), "{error}");
}

#[test]
fn a_count_of_what_can_be_used_is_found() {
    let mut chance = Chance::new(9);
    let all: Vec<Record> = (0..30).map(|_| Record::new(&mut chance, 3, false)).collect();
    let mut odd = all.clone();
    odd[7].label = 3;
    let folder = Folder::new();
    // What a configuration says, where usable records are counted as was done once, or rows as it is done.
    let planned = |all: &[Record], usable: bool| {
        let source = write(&folder, all, Format::Table, Unit::Example, None);
        let train = source.open().unwrap().train;
        let count = if usable { train.len() } else { train.row_count() };
        let mut asked = run::Configuration { data: source, ..run::Configuration::default() };
        asked.training.privacy.neighbors = Neighbors::Replace;
        (asked.training.privacy.noise_multiplier, asked.training.steps) = (Some(2.0), Some(3));
        asked.training.sampling.records = Some(count as u64);
        seen(1, Vec::new(), || {
            let job = run::Job::new(asked).unwrap();
            vec![("config.toml".into(), job.configuration.write().unwrap().into_bytes())]
        })
    };
    assert!(leak(&planned(&all, false), &planned(&odd, false), Neighbors::Replace).is_ok());
    assert!(leak(&planned(&all, true), &planned(&odd, true), Neighbors::Replace).unwrap_err().contains("config.toml"));
}
