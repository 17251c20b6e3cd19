//! `train`: every sampler, clipping, unit, relation and format.

use quell::{
    data::Examples,
    learner::{
        Augmentation, Control,
        dp_sgd::{Clip, Sampler},
        glm::Algorithm,
        naive_bayes,
        prepared::{Preparation, Recalibration},
        schedule::{Schedule, Shape},
        synthesis,
        tree::Splits,
        unsupervised::Kind,
    },
    random::PublicRandom,
    run::{
        Candidate, Configuration, Driver, Job, Learner, NewBudget, Source, Tuning, TuningConfiguration, train,
    },
};
use quell_privacy::{Neighbors, ledger::Unit};

use crate::{
    cases,
    compare::{Seen, compare, left, opened, seen},
    datasets::{
        FORMATS, Format, Record, hostile, identities, neighbour, predict_numbers, records, rows, write,
        write_public,
    },
    made::Folder,
};

/// One way to train.
#[derive(Clone, Debug)]
struct Way {
    format: Format,
    unit: Unit,
    neighbors: Neighbors,
    by: Sampler,
    clipping: Clip,
    /// The method for a linear model; `None` for other models.
    linear: Option<Algorithm>,
    /// Whether the target is a number. Tables have one.
    predicts_numbers: bool,
    /// The model without labels; `None` for other models.
    unsupervised: Option<Kind>,
    model: &'static str,
    versions: Option<usize>,
    share: Option<f64>,
    public: bool,
    /// Whether settings are searched: two learning rates.
    searches: bool,
    seed: u64,
}

const USERS: usize = 9;

/// Models that are asked for by their name alone.
const NAMED: [&str; 4] = [naive_bayes::NAME, "forest", "tree", synthesis::NAME];

impl Way {
    fn new(chance: &mut PublicRandom, format: Format) -> Self {
        let unit = if chance.below(3) == 0 { Unit::User } else { Unit::Example };
        let neighbors = [Neighbors::AddRemove, Neighbors::Replace][chance.below(2)];
        // Batches of a fixed size are few: their price takes long to compute.
        let samplers = [Sampler::Poisson, Sampler::Full, Sampler::Shuffled].repeat(4);
        let samplers = [samplers, vec![Sampler::WithoutReplacement]].concat();
        let norm = [1.0, 1e-7, 1e-20, 1e3][chance.below(4)];
        let picture = matches!(format, Format::Idx | Format::Cifar | Format::Pictures);
        Self {
            format,
            unit,
            neighbors,
            by: samplers[chance.below(if neighbors == Neighbors::Replace { 13 } else { 12 })],
            clipping: match chance.below(4) {
                0 => Clip::Flat { norm },
                1 => Clip::PerLayer { norm },
                2 => Clip::Automatic { norm, stability: 0.01 },
                _ => Clip::Adaptive { norm, quantile: 0.5, learning_rate: 0.2, count_noise: Some(8.0) },
            },
            linear: None,
            predicts_numbers: false,
            unsupervised: None,
            // Pictures of CIFAR-10 have 3072 numbers.
            model: ["logistic", "mlp"][chance.below(if format == Format::Cifar { 1 } else { 2 })],
            versions: (picture && chance.below(3) == 0).then_some(3),
            // Where records are exchanged, none may be split off by what they hold.
            share: (matches!(format, Format::Table | Format::Parquet)
                && neighbors == Neighbors::AddRemove
                && chance.below(2) == 0)
                .then_some(0.3),
            public: chance.below(2) == 0,
            searches: false,
            seed: chance.bits(),
        }
    }

    fn configuration(&self, source: Source, count: usize) -> Configuration {
        let mut asked = Configuration { data: source, ..Configuration::default() };
        asked.budget = Some(NewBudget { epsilon: 30.0, delta: 1e-5 });
        let recipe = &mut asked.training;
        if let Some(algorithm) = self.linear {
            (recipe.privacy.noise_multiplier, recipe.privacy.neighbors) = (Some(2.0), self.neighbors);
            recipe.sampling.records = Some(count as u64);
            recipe.privacy.delta = Some(1e-5);
            // A perturbed minimiser is one release.
            let has_steps =
                !matches!(algorithm, Algorithm::OutputPerturbation | Algorithm::ObjectivePerturbation);
            recipe.steps = has_steps.then_some(4);
            (asked.learner, asked.glm.method) = (Some(Learner::Glm), algorithm);
            asked.glm.calibration = (algorithm == Algorithm::Standardized).then_some(true);
            // With two waves and with eight, the model of a table is the default one.
            asked.glm.waves =
                (algorithm == Algorithm::Standardized).then_some([0, 2, 8][(self.seed % 3) as usize]);
            return asked;
        }
        if let Some(kind) = self.unsupervised {
            (recipe.privacy.noise_multiplier, recipe.privacy.neighbors) = (Some(2.0), self.neighbors);
            recipe.sampling.records = Some(count as u64);
            recipe.privacy.delta = Some(1e-5);
            asked.model.name = Some(kind.name().into());
            match kind {
                // With two clusters of four columns, the space is divided. With one, moments are found.
                Kind::KMeans => {
                    asked.unsupervised.clusters = Some(1 + self.seed as usize % 3);
                    asked.unsupervised.iterations = Some(3);
                }
                Kind::Components => asked.unsupervised.components = Some(2),
            }
            return asked;
        }
        asked.model.name = Some(self.model.into());
        if NAMED.contains(&self.model) {
            recipe.steps = (self.model == "forest").then_some(4);
            // With so few records, splits would be random ones.
            if self.model == "tree" {
                (asked.tree.splits, asked.tree.depth) = (Some(Splits::Measured), Some(2));
            }
            (recipe.privacy.noise_multiplier, recipe.privacy.neighbors) = (Some(2.0), self.neighbors);
            (recipe.privacy.delta, recipe.sampling.records) = (Some(1e-5), Some(count as u64));
            return asked;
        }
        (recipe.clipping, recipe.steps, recipe.seed) = (Some(self.clipping), Some(2), self.seed);
        (recipe.privacy.noise_multiplier, recipe.privacy.neighbors) = (Some(2.0), self.neighbors);
        (recipe.sampling.by, recipe.sampling.rate) = (self.by, Some(0.5));
        recipe.sampling.records = Some(count as u64);
        recipe.privacy.delta = Some(1e-5);
        recipe.augmentation = self.versions.map(|versions| Augmentation { versions, shift: 1, mirror: true });
        if self.by != Sampler::Shuffled && self.versions.is_none() {
            let noise_multiplier = Some(4.0);
            recipe.preparation = match self.seed % 4 {
                // Pictures of CIFAR-10 have millions of products of features.
                0 if self.format != Format::Cifar => {
                    Some(Preparation::Components { count: 2, noise_multiplier })
                }
                1 => Some(Preparation::Standardize { noise_multiplier }),
                2 => Some(Preparation::Quantiles { noise_multiplier }),
                _ => None,
            };
            // The ranges of scores are found by a network that was released before.
            let is_calibrated = recipe.preparation.is_some() && self.seed % 3 != 0;
            recipe.calibration =
                is_calibrated.then_some(Recalibration::Scores { noise_multiplier: Some(3.0) });
        }
        asked
    }

    /// Who takes part, in the order in which the learner numbers them.
    fn identities(&self, source: &Source, all: &[Record], count: usize) -> Vec<u64> {
        let read = match (self.unsupervised, self.model) {
            (Some(_), _) => source.open_without_labels(),
            (None, synthesis::NAME) => source.open_with_label_as_column(),
            (None, _) => source.open(),
        };
        let Ok(dataset) = read else { return Vec::new() };
        let train: Examples = dataset.train;
        let of_rows = identities(&train, all, self.format);
        match (self.unit, self.neighbors) {
            (Unit::Example, Neighbors::AddRemove) => of_rows,
            // Rows are numbered as they stand; pictures are not, so theirs are told by name.
            (Unit::Example, Neighbors::Replace) if self.format == Format::Pictures => {
                rows(all, self.format).iter().map(|record| record.identity).collect()
            }
            (Unit::Example, Neighbors::Replace) => Vec::new(),
            (Unit::User, neighbors) => {
                let (users, rows) = (train.users().unwrap(), rows(all, self.format));
                let name = |user: usize| {
                    let first = users.iter().position(|of| *of as usize == user).unwrap();
                    rows[train.row(first)].user.unwrap()
                };
                let known = train.user_count().unwrap();
                if neighbors == Neighbors::AddRemove {
                    return (0..known).map(name).collect();
                }
                let order = train.users_by_hash().unwrap();
                let mut of: Vec<u64> = order.into_iter().take(count).map(name).collect();
                let missing = count.saturating_sub(of.len()) as u64;
                of.extend((0..missing).map(|number| (1 << 40) + number));
                of
            }
        }
    }

    fn run(
        &self,
        folder: &Folder,
        all: &[Record],
        public: Option<&std::path::PathBuf>,
        count: usize,
    ) -> Seen {
        let mut source = write(folder, all, self.format, self.unit, self.share);
        source.test = public.cloned();
        source.schema.iter_mut().filter(|_| self.predicts_numbers).for_each(predict_numbers);
        // A public number, which need not be right; where rows are exchanged it is that of the rows.
        let count = if self.neighbors == Neighbors::Replace && self.unit == Unit::Example {
            all.len()
        } else {
            count
        };
        let of = self.identities(&source, all, count);
        seen(self.seed, of, || self.public(folder, source, count))
    }

    /// Everything that a run shows.
    fn public(&self, folder: &Folder, source: Source, count: usize) -> Vec<(String, Vec<u8>)> {
        let configuration = self.configuration(source, count);
        let shown = if self.searches {
            Tuning::new(search(&configuration)).map(|job| Show(folder).drive(&job))
        } else {
            train(configuration, Show(folder))
        };
        match shown {
            Ok(public) => public,
            Err(error) => vec![("error".into(), format!("{error}\n{:?}", error.hint()).into_bytes())],
        }
    }
}

/// A search of two learning rates.
fn search(configuration: &Configuration) -> TuningConfiguration {
    let candidate = |learning_rate: f64| {
        let mut configuration = configuration.clone();
        configuration.training.schedule =
            Some(Schedule { learning_rate, warm_up: 0, shape: Shape::Constant });
        Candidate { name: learning_rate.to_string(), configuration }
    };
    TuningConfiguration {
        expected: 3.try_into().unwrap(),
        show_trials: false,
        epsilon: 8.0,
        delta: Some(1e-5),
        score_epsilon: None,
        trial_epsilon: None,
        candidates: vec![candidate(0.5), candidate(2.0)],
    }
}

/// Runs a job in a folder, and returns everything that it shows.
pub(crate) struct Show<'a>(pub(crate) &'a Folder);

impl Driver for Show<'_> {
    type Output = Vec<(String, Vec<u8>)>;

    fn drive<J: Job>(self, job: &J) -> Self::Output {
        let (mut ledger, place) = opened(self.0, job.terms().unwrap());
        let mut shown = Vec::new();
        let outcome = job.go(&mut ledger, &place, &mut |moment| {
            shown.push(format!("{moment:?}"));
            Control::Continue
        });
        let mut public = vec![("shown".to_owned(), shown.join("\n").into_bytes())];
        match outcome.and_then(|outcome| Ok((outcome.position, outcome.is_finished, place.model()?))) {
            Ok((position, finished, model)) => {
                let bits: Vec<u8> =
                    model.predictor.weights().iter().flat_map(|weight| weight.to_le_bytes()).collect();
                public.push(("weights".into(), bits));
                let words = format!(
                    "{position} {finished} {:?} {:?} {:?} {}",
                    model.shape,
                    model.classes,
                    model.paid.epsilon,
                    model.configuration.write().unwrap()
                );
                public.push(("model".into(), words.into_bytes()));
            }
            Err(error) => public.push(("error".into(), error.to_string().into_bytes())),
        }
        public.extend(left(&mut ledger, &place));
        public
    }
}

/// Neighbours of one dataset, trained on in one way.
fn look(
    chance: &mut PublicRandom,
    format: Format,
    linear: Option<Algorithm>,
    neighbours: usize,
) -> Result<(usize, f64), String> {
    let any = Way::new(chance, format);
    let is_table = matches!(format, Format::Table | Format::Tabs | Format::Bare | Format::Parquet);
    let for_numbers = linear == Some(Algorithm::Adassp) || any.seed % 2 == 0;
    let way = Way { linear, predicts_numbers: linear.is_some() && is_table && for_numbers, ..any };
    look_in(chance, way, neighbours)
}

/// Neighbours of one dataset, trained on in this way.
fn look_in(chance: &mut PublicRandom, mut way: Way, neighbours: usize) -> Result<(usize, f64), String> {
    let linear = way.linear;
    if linear.is_some_and(|algorithm| !protects_users(algorithm)) {
        way.unit = Unit::Example;
    }
    let folder = Folder::new();
    let public = way.public.then(|| write_public(&folder, chance, 5, way.format));
    let count = 3 + chance.below(40);
    let all = records(chance, count, USERS);
    let declared = match way.unit {
        Unit::Example => count,
        // More or fewer than there are.
        Unit::User => 3 + chance.below(2 * USERS),
    };
    let others = (0..neighbours).map(|_| neighbour(chance, &all, way.unit, way.neighbors, USERS));
    compare(way.neighbors, &all, others, |all| way.run(&folder, all, public.as_ref(), declared))
        .map_err(|leak| format!("{way:?}: {leak}"))
}

#[test]
fn training_moves_by_what_is_charged_for_and_shows_nothing_else() {
    let (mut statistics, mut most) = (0, 0.0_f64);
    for case in 0..cases(48) {
        let format = FORMATS[case % FORMATS.len()];
        let (seen, moved) = look(&mut PublicRandom::of(2, case as u64), format, None, 3)
            .unwrap_or_else(|leak| panic!("case {case}: {leak}"));
        (statistics, most) = (statistics + seen, most.max(moved));
    }
    // Some neighbours come close: clipping does not take more than it must.
    assert!(most > 0.9, "{most}");
    println!(
        "{statistics} statistics of training compared, the farthest moved by {most} of what was charged for"
    );
}

/// The number of trials, their kinds and everything that leaves are the same for neighbours.
#[test]
fn a_search_moves_by_what_is_charged_for_and_shows_nothing_else() {
    let (mut statistics, mut most) = (0, 0.0_f64);
    for case in 0..cases(8) {
        let mut chance = PublicRandom::of(17, case as u64);
        let any = Way::new(&mut chance, Format::Table);
        // A private test part is a share of the table, and each trial pays for its score.
        let share = (case % 2 == 0).then_some(0.3);
        let neighbors = if share.is_some() { Neighbors::AddRemove } else { any.neighbors };
        let (by, clipping) = (Sampler::Poisson, Clip::Flat { norm: 1.0 });
        let way = Way {
            unit: Unit::Example,
            neighbors,
            by,
            clipping,
            share,
            public: share.is_none(),
            searches: true,
            seed: 4 * (any.seed / 4) + 3,
            ..any
        };
        let (seen, moved) = look_in(&mut chance, way, 2).unwrap_or_else(|leak| panic!("case {case}: {leak}"));
        (statistics, most) = (statistics + seen, most.max(moved));
    }
    assert!(most > 0.5, "{most}");
    println!("{statistics} statistics of searches compared, the farthest moved by {most}");
}

/// Whether an algorithm can protect users with several records.
fn protects_users(algorithm: Algorithm) -> bool {
    use Algorithm::{HiddenState, ObjectivePerturbation, OutputPerturbation};
    !matches!(algorithm, OutputPerturbation | ObjectivePerturbation | HiddenState)
}

/// Linear algorithms whose statistics are seen before noise. The utilities of a selection are not.
fn linear_algorithms() -> impl Iterator<Item = Algorithm> {
    let seen = |algorithm: &Algorithm| !matches!(algorithm, Algorithm::FrankWolfe | Algorithm::OnePosterior);
    Algorithm::ALL.into_iter().filter(seen)
}

#[test]
fn linear_models_move_by_what_is_charged_for_and_show_nothing_else() {
    let (mut statistics, mut most) = (0, 0.0_f64);
    for (number, algorithm) in linear_algorithms().enumerate() {
        let before = statistics;
        for case in 0..cases(6) {
            // Pictures of CIFAR-10 have 3072 numbers, and all of their products.
            let mut small: Vec<Format> =
                FORMATS.into_iter().filter(|format| *format != Format::Cifar).collect();
            // This algorithm is for numeric targets, which tables have.
            if algorithm == Algorithm::Adassp {
                small = vec![Format::Table, Format::Tabs, Format::Parquet];
            }
            let format = small[(number + case) % small.len()];
            let mut chance = PublicRandom::of(12 + number as u64, case as u64);
            let (seen, moved) = look(&mut chance, format, Some(algorithm), 3)
                .unwrap_or_else(|leak| panic!("{algorithm:?}, case {case}: {leak}"));
            (statistics, most) = (statistics + seen, most.max(moved));
        }
        assert!(statistics > before, "no statistic of {algorithm:?} was seen");
    }
    assert!(most > 0.5, "{most}");
    println!(
        "{statistics} statistics of linear models compared, the farthest moved by {most} of what was charged for"
    );
}

#[test]
fn models_without_labels_move_by_what_is_charged_for_and_show_nothing_else() {
    let (mut statistics, mut most) = (0, 0.0_f64);
    for (number, kind) in Kind::ALL.into_iter().enumerate() {
        let before = statistics;
        for case in 0..cases(16) {
            // Pictures of CIFAR-10 have 3072 numbers, and all of their products.
            let small: Vec<Format> = FORMATS.into_iter().filter(|format| *format != Format::Cifar).collect();
            let mut chance = PublicRandom::of(60 + number as u64, case as u64);
            let any = Way::new(&mut chance, small[(number + case) % small.len()]);
            let way = Way { unsupervised: Some(kind), ..any };
            let (seen, moved) =
                look_in(&mut chance, way, 3).unwrap_or_else(|leak| panic!("{kind:?}, case {case}: {leak}"));
            (statistics, most) = (statistics + seen, most.max(moved));
        }
        assert!(statistics > before, "no statistic of {kind:?} was seen");
    }
    assert!(most > 0.5, "{most}");
    println!(
        "{statistics} statistics without labels compared, the farthest moved by {most} of what was charged for"
    );
}

#[test]
fn models_by_name_move_by_what_is_charged_for_and_show_nothing_else() {
    // Synthetic data is for tables alone, and has a test of its own.
    let models = NAMED.into_iter().filter(|model| *model != synthesis::NAME);
    for (number, model) in models.enumerate() {
        let (mut statistics, mut most) = (0, 0.0_f64);
        for case in 0..cases(8) {
            let mut chance = PublicRandom::of(40 + number as u64, case as u64);
            let way = Way { model, ..Way::new(&mut chance, FORMATS[case % FORMATS.len()]) };
            let (folder, count) = (Folder::new(), 1 + chance.below(20));
            let all = records(&mut chance, count, USERS);
            let drawn: Vec<_> =
                (0..3).map(|_| neighbour(&mut chance, &all, way.unit, way.neighbors, USERS)).collect();
            let others = drawn.into_iter().chain(hostile(&all, way.unit, way.neighbors));
            let found = compare(way.neighbors, &all, others, |all| way.run(&folder, all, None, count));
            let (seen, moved) = found.unwrap_or_else(|leak| panic!("case {case}, {way:?}: {leak}"));
            (statistics, most) = (statistics + seen, most.max(moved));
        }
        assert!(statistics > 0 && most > 0.7, "{model}: {statistics} {most}");
    }
}

#[test]
fn synthetic_data_moves_by_what_is_charged_for_and_shows_nothing_else() {
    let (mut statistics, mut most) = (0, 0.0_f64);
    for case in 0..cases(6) {
        let mut chance = PublicRandom::of(45, case as u64);
        let format = [Format::Table, Format::Tabs, Format::Parquet][case % 3];
        let way = Way { model: synthesis::NAME, ..Way::new(&mut chance, format) };
        let (folder, count) = (Folder::new(), 1 + chance.below(20));
        let all = records(&mut chance, count, USERS);
        let drawn: Vec<_> =
            (0..3).map(|_| neighbour(&mut chance, &all, way.unit, way.neighbors, USERS)).collect();
        let others = drawn.into_iter().chain(hostile(&all, way.unit, way.neighbors));
        let found = compare(way.neighbors, &all, others, |all| way.run(&folder, all, None, count));
        let (seen, moved) = found.unwrap_or_else(|leak| panic!("case {case}, {way:?}: {leak}"));
        (statistics, most) = (statistics + seen, most.max(moved));
    }
    // Vectors are as long as they may be.
    assert!(statistics > 0 && most > 0.9, "{statistics} {most}");
}

/// The worst that one record, or one person, can do to datasets of none, one and several.
#[test]
fn the_worst_that_one_can_do_to_training_is_charged_for_and_does_not_show() {
    let (mut cases, mut statistics, mut most) = (0, 0, 0.0_f64);
    let relations = [Neighbors::AddRemove, Neighbors::Replace];
    for format in FORMATS {
        for (unit, neighbors) in
            [Unit::Example, Unit::User].into_iter().flat_map(|unit| relations.map(|of| (unit, of)))
        {
            if format == Format::Pictures && unit == Unit::User {
                continue;
            }
            cases += 1;
            let count = [5, 1, 0][cases % 3];
            let mut chance = PublicRandom::of(4, cases as u64);
            let by = [Sampler::Full, Sampler::Poisson][chance.below(2)];
            let clipping = Clip::Flat { norm: 0.1 };
            let any = Way::new(&mut chance, format);
            let way =
                Way { unit, neighbors, by, clipping, versions: None, public: false, share: None, ..any };
            let mut all: Vec<Record> = (0..count).map(|_| Record::new(&mut chance, 2, false)).collect();
            // The first is alone in its class.
            all.iter_mut().enumerate().for_each(|(place, record)| record.label = u8::from(place == 0));
            let others = hostile(&all, unit, neighbors);
            // There is no exchange where there is nobody.
            if others.is_empty() {
                continue;
            }
            let folder = Folder::new();
            let found =
                compare(neighbors, &all, others.into_iter(), |all| way.run(&folder, all, None, count.max(2)));
            let (seen, moved) = found.unwrap_or_else(|leak| panic!("{count} records, {way:?}: {leak}"));
            (statistics, most) = (statistics + seen, most.max(moved));
        }
    }
    assert!(most > 0.9, "{most}");
    println!(
        "{statistics} statistics of hostile training compared, the farthest moved by {most} of what was charged for"
    );
}
