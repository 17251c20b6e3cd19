//! Faults that once were there, planted again: the comparison finds each of them, and nothing without it.

use quell::{
    data::{Examples, Targets},
    learner::{Gradients, Supervised, dp_sgd::DpSgd, loss::Loss},
    network::{self, Network, Task, Workspace},
    random::PublicRandom,
    run::{
        self,
        labels::{About, VoterSettings},
    },
    voting::{
        Aggregator,
        pate::{Ballots, Shards, Teachers},
    },
};
use quell_ledger::Store;
use quell_privacy::{
    Neighbors,
    ledger::{Budget, Composition, Ledger, Terms, Unit},
    mechanism::{Bounds, Clipping, Descent, Poll, Rule, Sampling, StableMax, Voters},
    units::{ClipNorm, Delta, Epsilon, NoiseMultiplier, Scale},
};

use crate::{
    ballots::{Columns, Way},
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
    let terms = Terms {
        dataset: "people".into(),
        unit: Unit::User,
        neighbors,
        budget,
        composition: Composition::Combined,
    };
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
    let owners: Vec<Option<String>> =
        (0..records).map(|record| Some(record.min(users).to_string())).collect();
    Examples::numbers(&[row.len()], row.repeat(records), targets(vec![0; records]))
        .unwrap()
        .with_users(&owners)
        .unwrap()
}

fn step(network: &Network, records: usize, task: &impl Task) -> Seen {
    let folder = Folder::new();
    let weights = network.initialize(1);
    let mechanism = Descent {
        sampling: Sampling::Full,
        clipping: Clipping::Flat { norm: ClipNorm::new(0.1).unwrap() },
        noise_multiplier: NoiseMultiplier::new(2.0).unwrap(),
        dimension: network.parameters(),
    };
    seen(1, Vec::new(), || {
        let mut workspace = Workspace::default();
        let mut gradients = Gradients::new(network, task, &weights, &mut workspace);
        let mut batches =
            ledger(&folder, Neighbors::AddRemove).charge(mechanism).unwrap().start(records).unwrap();
        let released = batches.next(&mut gradients).unwrap().unwrap();
        vec![("released".into(), format!("{:?}", released.sum).into_bytes())]
    })
}

#[test]
fn a_way_of_adding_that_follows_from_the_records_is_found() {
    let network = network::build(&[5], &network::layers_of("logistic", &[5], 2).unwrap()).unwrap();
    let (mut found, mut chance) = (0, PublicRandom::new(7));
    for _ in 0..8 {
        let row: Vec<f32> = (0..5).map(|_| chance.normal()).collect();
        let [fewer, more] = [false, true].map(|one_more| alike(&row, 20_000, one_more));
        let loss = Loss::CrossEntropy { label_smoothing: 0.0 };
        let [fewer, more] =
            [&fewer, &more].map(|examples| Supervised::new(examples, loss, None).by_user().unwrap());
        let right = [&fewer, &more].map(|task| step(&network, task.records(), task));
        let moved = leak(&right[0], &right[1], Neighbors::AddRemove).unwrap();
        assert!(moved > 0.99, "{moved}");
        let wrong = [&fewer, &more].map(|task| step(&network, task.records(), &Careless(task)));
        found += usize::from(leak(&wrong[0], &wrong[1], Neighbors::AddRemove).is_err());
    }
    // Where what rounding does points along the gradient of the one who comes, it is too much.
    assert!(found > 0, "the planted fault was not found");
}

/// What is asked about the votes of teachers.
#[derive(Clone, Copy, Debug)]
enum Question {
    Winners,
    StableWinners,
}

/// The votes of teachers on some public records.
fn votes(examples: &Examples, shards: &Shards, public: &Examples, question: Question) -> Seen {
    let network = network::build(&[2], &network::layers_of("logistic", &[2], 2).unwrap()).unwrap();
    let VoterSettings::Teachers { training, .. } = VoterSettings::teachers(shards.count()) else {
        unreachable!("these are teachers")
    };
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
    let (folder, questions) = (Folder::new(), public.len() as u32);
    let noise = |deviation: f64| NoiseMultiplier::new(deviation).unwrap();
    let each = |answer: &mut dyn FnMut(usize) -> String| {
        (0..public.len()).map(answer).collect::<Vec<String>>().join(" ")
    };
    seen(1, Vec::new(), || {
        let mut ledger = ledger(&folder, Neighbors::Replace);
        let answers = match question {
            Question::Winners => {
                let rule = Rule::Gaussian(noise(20.0));
                let poll = Poll {
                    candidates: 2,
                    voters: Voters::Teachers,
                    screening: None,
                    rule,
                    questions,
                    answers: questions,
                };
                let mut polling = ledger.charge(poll).unwrap().run().unwrap();
                each(&mut |question| format!("{:?}", polling.ask(&ballots.votes(question), &[]).unwrap()))
            }
            Question::StableWinners => {
                let deviation = Scale::new(20.0).unwrap();
                let stable = StableMax { candidates: 2, threshold: 400, unstable: 4, questions, deviation };
                let mut stability = ledger.charge(stable).unwrap().run().unwrap();
                each(&mut |question| format!("{:?}", stability.ask(&ballots.votes(question)).unwrap()))
            }
        };
        vec![("answers".into(), answers.into_bytes())]
    })
}

#[test]
fn shards_by_the_place_among_what_can_be_used_are_found() {
    const TEACHERS: usize = 20;
    let mut chance = PublicRandom::new(5);
    let values: Vec<f32> = (0..2 * 60).map(|_| chance.normal()).collect();
    let labels: Vec<u32> = (0..60).map(|_| chance.below(2) as u32).collect();
    let of = |odd: Option<usize>| {
        let mut labels = labels.clone();
        odd.into_iter().for_each(|record| labels[record] = 9);
        Examples::numbers(&[2], values.clone(), targets(labels)).unwrap()
    };
    let public =
        Examples::numbers(&[2], (0..16).map(|_| chance.normal()).collect(), targets(vec![0; 8])).unwrap();
    let (whole, odd) = (of(None), of(Some(0)));
    for (question, name) in [(Question::Winners, "votes"), (Question::StableWinners, "stability")] {
        let dealt = |examples: &Examples| {
            votes(examples, &Shards::deal(examples, TEACHERS, Neighbors::Replace).unwrap(), &public, question)
        };
        let moved = leak(&dealt(&whole), &dealt(&odd), Neighbors::Replace);
        assert!(moved.is_ok(), "{question:?}: {moved:?}");
        let by_index = |examples: &Examples| {
            let of = (0..examples.len()).map(|record| (record % TEACHERS) as u32).collect();
            votes(examples, &Shards::given(examples, of, TEACHERS).unwrap(), &public, question)
        };
        let error = leak(&by_index(&whole), &by_index(&odd), Neighbors::Replace).unwrap_err();
        assert!(error.contains(&format!("{name}: moved by")), "{question:?}: {error}");
    }
}

/// People whose names are integers, where one of two long ones comes with many records.
#[test]
fn names_that_are_rounded_are_found() {
    const FIRST: i64 = 1_800_000_000_000_000_000;
    let network = network::build(&[1], &network::layers_of("logistic", &[1], 2).unwrap()).unwrap();
    let loss = Loss::CrossEntropy { label_smoothing: 0.0 };
    let run = |people: &[i64], name: &dyn Fn(i64) -> String| {
        let names: Vec<Option<String>> = people.iter().map(|person| Some(name(*person))).collect();
        let labels = people.iter().map(|person| u32::from(*person != FIRST)).collect();
        let examples = Examples::numbers(&[1], vec![1.0; people.len()], targets(labels))
            .unwrap()
            .with_users(&names)
            .unwrap();
        let task = Supervised::new(&examples, loss, None).by_user().unwrap();
        step(&network, task.records(), &task)
    };
    let both = [vec![FIRST], vec![FIRST + 1; 99]].concat();
    let moved =
        |name: &dyn Fn(i64) -> String| leak(&run(&both, name), &run(&both[..1], name), Neighbors::AddRemove);
    let right = moved(&|person| person.to_string()).unwrap();
    assert!(right > 0.99, "{right}");
    // As numbers of a column were read once.
    assert!(moved(&|person| (person as f64).to_string()).unwrap_err().contains("moved by"));
}

/// Numbers that teachers say, to six questions.
fn numbers(chance: &mut PublicRandom) -> (Way, Columns) {
    let way = Way::new(chance, About::Range(Bounds::new(-1.0, 3.0).unwrap()));
    let columns = (0..40).map(|_| (0..6).map(|_| chance.normal().to_string()).collect()).collect();
    (way, columns)
}

#[test]
fn a_question_that_is_left_out_because_of_one_ballot_is_found() {
    for seed in 0..4 {
        let (way, columns) = numbers(&mut PublicRandom::of(31, seed));
        let mut odd = columns.clone();
        odd[7][2] = "word".into();
        let readable = |columns: &Columns| {
            let whole = |question: &usize| columns.iter().all(|of| of[*question].parse::<f64>().is_ok());
            let kept: Vec<usize> = (0..6).filter(whole).collect();
            columns
                .iter()
                .map(|of| kept.iter().map(|question| of[*question].clone()).collect())
                .collect::<Columns>()
        };
        let folder = Folder::new();
        let [right, wrong] = [false, true].map(|careless| {
            let [base, other] = [&columns, &odd]
                .map(|columns| way.run(&folder, &if careless { readable(columns) } else { columns.clone() }));
            leak(&base, &other, way.neighbors)
        });
        assert!(right.is_ok() && wrong.is_err(), "{way:?}: {right:?} {wrong:?}");
    }
}

#[test]
fn a_record_that_touches_two_teachers_is_found() {
    let (way, columns) = numbers(&mut PublicRandom::of(32, 0));
    let folder = Folder::new();
    let with = |teachers: usize, says: &str| {
        let mut columns = columns.clone();
        columns[..teachers].fill(vec![says.to_owned(); 6]);
        way.run(&folder, &columns)
    };
    let moved = |teachers: usize| leak(&with(teachers, "-1e9"), &with(teachers, "1e9"), way.neighbors);
    assert_eq!(moved(1), Ok(1.0));
    assert!(moved(2).unwrap_err().contains("moved by 2 of"));
}

#[test]
fn a_record_that_touches_many_teachers_is_found_in_what_their_votes_cost() {
    let about = About::Classes(3);
    let way = Way {
        aggregator: Aggregator::Gaussian,
        reveal: true,
        deviation: 2.0,
        ..Way::new(&mut PublicRandom::of(33, 0), about)
    };
    let folder = Folder::new();
    let with = |teachers: usize| {
        let mut columns: Columns = vec![vec!["0".to_owned(); 4]; 40];
        columns[..teachers].fill(vec!["1".to_owned(); 4]);
        let mut seen = way.run(&folder, &columns);
        seen.statistics.retain(|statistic| statistic.mechanism.contains("cost of votes"));
        assert_eq!(seen.statistics.len(), 2, "the sensitivity and the cost");
        seen
    };
    let moved = |teachers: usize| leak(&with(0), &with(teachers), way.neighbors);
    assert!(moved(1).is_ok(), "{:?}", moved(1));
    assert!(moved(12).unwrap_err().contains("cost of votes: moved by"));
}

#[test]
fn a_count_of_what_can_be_used_is_found() {
    let mut chance = PublicRandom::new(9);
    let all: Vec<Record> = (0..30).map(|_| Record::new(&mut chance, 3, false)).collect();
    let mut odd = all.clone();
    odd[7].label = 3;
    let folder = Folder::new();
    // What a configuration says, where usable records are counted as was done once, or rows as it is done.
    let planned = |all: &[Record], format: Format, usable: bool| {
        let source = write(&folder, all, format, Unit::Example, None);
        let train = source.open().unwrap().train;
        let count = if usable { train.len() } else { train.row_count() };
        let mut asked = run::Configuration { data: source, ..run::Configuration::default() };
        asked.training.privacy.neighbors = Neighbors::Replace;
        (asked.training.privacy.noise_multiplier, asked.training.steps) = (Some(2.0), Some(3));
        asked.training.sampling.records = Some(count as u64);
        seen(1, Vec::new(), || {
            let job = run::Training::<DpSgd>::new(asked).unwrap();
            vec![("config.toml".into(), job.configuration.write().unwrap().into_bytes())]
        })
    };
    for format in [Format::Table, Format::Parquet, Format::Npz, Format::Cifar] {
        let [right, wrong] = [false, true].map(|usable| {
            leak(&planned(&all, format, usable), &planned(&odd, format, usable), Neighbors::Replace)
        });
        assert!(right.is_ok() && wrong.unwrap_err().contains("config.toml"), "{format:?}: {right:?}");
    }
}
