//! `pate` and `knn`: every aggregator, unit, relation and format.

use quell::{
    features::Features,
    learner::Control,
    network::Architecture,
    random::PublicRandom,
    run::{
        Folder as Run, Job, NewBudget, Source,
        labels::{Choice, Configuration, Labelling, VoterSettings},
    },
    voting::Aggregator,
};
use quell_privacy::{Neighbors, ledger::Unit};

use crate::{
    cases,
    compare::{Seen, compare, left, opened, seen},
    datasets::{FORMATS, Format, Record, hostile, identities, neighbour, records, write, write_public},
    made::Folder,
};

/// One way to ask.
#[derive(Clone, Debug)]
struct Way {
    format: Format,
    unit: Unit,
    neighbors: Neighbors,
    nearest: bool,
    aggregator: Aggregator,
    /// Whether to show what the votes cost.
    reveal: bool,
    seed: u64,
}

const USERS: usize = 9;

impl Way {
    fn new(chance: &mut PublicRandom, format: Format) -> Self {
        let neighbors = [Neighbors::AddRemove, Neighbors::Replace][chance.below(2)];
        // Pictures that are exchanged have no place, and so no teacher.
        let nearest = chance.below(4) == 0 || (format == Format::Pictures && neighbors == Neighbors::Replace);
        let people = !nearest && neighbors == Neighbors::AddRemove && format != Format::Pictures;
        let aggregators = [
            Aggregator::Gaussian,
            Aggregator::Confident,
            Aggregator::Stable,
            Aggregator::Laplace,
            Aggregator::Interactive,
        ];
        let aggregator = aggregators[chance.below(if nearest { 2 } else { aggregators.len() })];
        let known = !nearest && matches!(aggregator, Aggregator::Gaussian | Aggregator::Confident);
        Self {
            format,
            unit: if people && chance.below(2) == 0 { Unit::User } else { Unit::Example },
            neighbors,
            nearest,
            aggregator,
            reveal: known && chance.below(2) == 0,
            seed: chance.bits(),
        }
    }

    /// As many as a stable winner takes, or as it takes to agree on something.
    fn teachers(&self) -> usize {
        match (self.aggregator, self.reveal) {
            (Aggregator::Stable, _) => 32,
            (_, true) => 12,
            (_, false) => 6,
        }
    }

    fn configuration(&self, source: Source) -> Configuration {
        let mut asked = Configuration { data: source, seed: self.seed, ..Configuration::default() };
        asked.voters = if self.nearest {
            VoterSettings::Nearest { neighbors: 3, rate: 0.5, components: None, turns: 1 }
        } else {
            VoterSettings::teachers(self.teachers())
        };
        // Principal components of 3072 numbers take long.
        if self.format == Format::Cifar {
            asked.features = Features::Hog { orientations: 9, cell: 16, block: 2 };
        }
        if let VoterSettings::Teachers { training, .. } = &mut asked.voters {
            (training.epochs, training.least_steps) = (2, 6);
        }
        let votes = &mut asked.votes;
        (votes.aggregator, votes.neighbors, votes.reveal, votes.delta) =
            (self.aggregator, self.neighbors, self.reveal, Some(1e-5));
        // Little noise where a ballot is to move what the votes cost, or a winner is to be stable.
        let stable = self.aggregator == Aggregator::Stable;
        votes.deviation = Some(if stable { 1.0 } else { [20.0, 3.0][usize::from(self.reveal)] });
        (votes.answers, votes.unstable) = ((!stable).then_some(5), stable.then_some(2));
        asked.student.model = Architecture { name: Some("logistic".into()), layers: Vec::new() };
        (asked.student.training.epochs, asked.student.training.least_steps) = (1, 2);
        asked.student.choice = Choice::InOrder;
        asked.budget = Some(NewBudget { epsilon: 30.0, delta: 1e-5 });
        asked
    }

    fn run(&self, folder: &Folder, all: &[Record], public: &std::path::Path) -> Seen {
        let mut source = write(folder, all, self.format, self.unit, None);
        source.test = Some(public.to_owned());
        let train = source.open().unwrap().train;
        seen(self.seed, identities(&train, all, self.format), || self.public(folder, source))
    }

    /// Everything that a run shows.
    fn public(&self, folder: &Folder, source: Source) -> Vec<(String, Vec<u8>)> {
        let job = match Labelling::new(self.configuration(source)) {
            Ok(job) => job,
            Err(error) => {
                return vec![(
                    "error".into(),
                    format!(
                        "{error}
{:?}",
                        error.hint()
                    )
                    .into_bytes(),
                )];
            }
        };
        let (mut ledger, place) = opened(folder, job.terms().unwrap());
        let outcome = job.go(&mut ledger, &place, &mut |_| Control::Continue);
        let outcome = outcome.map(|mut outcome| {
            outcome.paid = None;
            outcome.json.remove("seconds");
            format!("{outcome:?}")
        });
        let mut public = vec![("outcome".to_owned(), format!("{outcome:?}").into_bytes())];
        if let Ok(bytes) = std::fs::read(place.path().join(Run::MODEL)) {
            let model = quell::run::Model::restore(&bytes).unwrap();
            public.push((
                "weights".into(),
                model.predictor.weights().iter().flat_map(|weight| weight.to_le_bytes()).collect(),
            ));
        }
        public.extend(left(&mut ledger, &place));
        public
    }
}

fn look(chance: &mut PublicRandom, format: Format, neighbours: usize) -> Result<(usize, f64), String> {
    let way = Way::new(chance, format);
    let folder = Folder::new();
    let public = write_public(&folder, chance, 12, way.format);
    let count = 2 + chance.below(40);
    let all = records(chance, count, USERS);
    let others = (0..neighbours).map(|_| neighbour(chance, &all, way.unit, way.neighbors, USERS));
    compare(way.neighbors, &all, others, |all| way.run(&folder, all, &public))
        .map_err(|leak| format!("{way:?}: {leak}"))
}

#[test]
fn votes_move_by_one_ballot_and_nothing_else_shows() {
    let (mut statistics, mut most) = (0, 0.0_f64);
    for case in 0..cases(48) {
        let format = FORMATS[case % FORMATS.len()];
        let (seen, moved) = look(&mut PublicRandom::of(3, case as u64), format, 3)
            .unwrap_or_else(|leak| panic!("case {case}: {leak}"));
        (statistics, most) = (statistics + seen, most.max(moved));
    }
    assert!(most > 0.99, "{most}");
    println!("{statistics} votes compared, the farthest moved by {most} of what was charged for");
}

/// The worst that one record, or one person, can do to datasets of none, one and several.
#[test]
fn the_worst_that_one_can_do_to_votes_is_one_ballot_and_does_not_show() {
    let (mut statistics, mut most) = (0, 0.0_f64);
    let asked = [
        (Unit::Example, Neighbors::AddRemove, Aggregator::Stable, false),
        (Unit::Example, Neighbors::Replace, Aggregator::Stable, false),
        (Unit::User, Neighbors::AddRemove, Aggregator::Stable, false),
        (Unit::Example, Neighbors::AddRemove, Aggregator::Gaussian, true),
        (Unit::Example, Neighbors::Replace, Aggregator::Confident, true),
        (Unit::User, Neighbors::AddRemove, Aggregator::Gaussian, true),
    ];
    for (number, format) in
        [Format::Table, Format::Parquet, Format::Npz, Format::Cifar].into_iter().enumerate()
    {
        for (place, (unit, neighbors, aggregator, reveal)) in asked.into_iter().enumerate() {
            let count = [0, 1, 5][(number + place) % 3];
            let mut chance = PublicRandom::of(6, number as u64);
            let way =
                Way { format, unit, neighbors, nearest: false, aggregator, reveal, seed: chance.bits() };
            let mut all: Vec<Record> = (0..count).map(|_| Record::new(&mut chance, 2, false)).collect();
            all.iter_mut().enumerate().for_each(|(place, record)| record.label = u8::from(place == 0));
            let others = hostile(&all, unit, neighbors);
            if others.is_empty() {
                continue;
            }
            let folder = Folder::new();
            let public = write_public(&folder, &mut chance, 6, format);
            let found = compare(neighbors, &all, others.into_iter(), |all| way.run(&folder, all, &public));
            let (seen, moved) = found.unwrap_or_else(|leak| panic!("{count} records, {way:?}: {leak}"));
            (statistics, most) = (statistics + seen, most.max(moved));
        }
    }
    assert!(most > 0.99, "{most}");
    println!(
        "{statistics} votes on hostile records compared, the farthest moved by {most} of what was charged for"
    );
}
