//! `pate` and `knn`: every aggregator, unit, relation and format.

use quell::{
    chance::Chance,
    dp_sgd::Going,
    run::{
        Allowance, Architecture, Folder as Run, Source,
        labels::{Choice, Configuration, Electors, Job},
    },
    voting::Aggregator,
};
use quell_privacy::{Neighbors, ledger::Unit};

use crate::{
    cases,
    compare::{Seen, compare, left, opened, seen},
    datasets::{FORMATS, Format, Record, identities, neighbour, records, write, write_public},
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
    seed: u64,
}

const USERS: usize = 9;
const TEACHERS: usize = 6;

impl Way {
    fn new(chance: &mut Chance) -> Self {
        let nearest = chance.below(3) == 0;
        let neighbors = [Neighbors::AddRemove, Neighbors::Replace][chance.below(2)];
        let placed = !nearest && neighbors == Neighbors::Replace;
        let format = FORMATS[chance.below(if placed { 4 } else { FORMATS.len() })];
        let people = !nearest && neighbors == Neighbors::AddRemove && format != Format::Pictures;
        let aggregators = [Aggregator::Gaussian, Aggregator::Confident, Aggregator::Laplace, Aggregator::Interactive];
        Self {
            format,
            unit: if people && chance.below(2) == 0 { Unit::User } else { Unit::Example },
            neighbors,
            nearest,
            aggregator: aggregators[chance.below(if nearest { 2 } else { 4 })],
            seed: chance.bits(),
        }
    }

    fn configuration(&self, source: Source) -> Configuration {
        let mut asked = Configuration { data: source, seed: self.seed, ..Configuration::default() };
        asked.voters = if self.nearest {
            Electors::Nearest { neighbors: 3, rate: 0.5, components: None, turns: 1 }
        } else {
            Electors::teachers(TEACHERS)
        };
        if let Electors::Teachers { training, .. } = &mut asked.voters {
            (training.epochs, training.least_steps) = (2, 6);
        }
        let votes = &mut asked.votes;
        (votes.aggregator, votes.neighbors, votes.deviation, votes.answers) =
            (self.aggregator, self.neighbors, Some(20.0), Some(5));
        votes.delta = Some(1e-5);
        asked.student.model = Architecture { name: Some("logistic".into()), layers: Vec::new() };
        (asked.student.training.epochs, asked.student.training.least_steps) = (1, 2);
        asked.student.choice = Choice::InOrder;
        asked.budget = Some(Allowance { epsilon: 30.0, delta: 1e-5 });
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
        let job = match Job::new(self.configuration(source)) {
            Ok(job) => job,
            Err(error) => return vec![("error".into(), format!("{error}\n{}", error.hint()).into_bytes())],
        };
        let (mut ledger, place) = opened(folder, job.terms().unwrap());
        let outcome = job.go(&mut ledger, &place, &mut |_| Going::On);
        let outcome = outcome.map(|mut outcome| {
            (outcome.seconds, outcome.paid) = (0.0, None);
            format!("{outcome:?}")
        });
        let mut public = vec![("outcome".to_owned(), format!("{outcome:?}").into_bytes())];
        if let Ok(bytes) = std::fs::read(place.path().join(Run::MODEL)) {
            let model = quell::run::Model::restore(&bytes).unwrap();
            public.push(("weights".into(), model.weights.iter().flat_map(|weight| weight.to_le_bytes()).collect()));
        }
        public.extend(left(&mut ledger, &place));
        public
    }
}

fn look(chance: &mut Chance, neighbours: usize) -> Result<(usize, f64), String> {
    let way = Way::new(chance);
    let folder = Folder::new();
    let public = write_public(&folder, chance, 12, way.format);
    let count = 2 + chance.below(40);
    let all = records(chance, count, USERS);
    let others = (0..neighbours).map(|_| neighbour(chance, &all, way.unit, way.neighbors, USERS));
    compare(way.neighbors, &all, others, |all| way.run(&folder, all, &public)).map_err(|leak| format!("{way:?}: {leak}"))
}

#[test]
fn votes_move_by_one_ballot_and_nothing_else_shows() {
    let (mut statistics, mut most) = (0, 0.0_f64);
    for case in 0..cases(40) {
        let (seen, moved) = look(&mut Chance::of(3, case as u64), 3).unwrap_or_else(|leak| panic!("case {case}: {leak}"));
        (statistics, most) = (statistics + seen, most.max(moved));
    }
    assert!(most > 0.99, "{most}");
    println!("{statistics} votes compared, the farthest moved by {most} of what was charged for");
}
