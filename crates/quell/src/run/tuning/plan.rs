//! Plans a search: the noise of its trials follows from the ε of the whole.

use quell_privacy::{
    Bound, Neighbors,
    ledger::Unit,
    mechanism::{AllTrials, BestOf, Count, Mechanism, Price, TrialPlan},
    number::format_brief,
    units::{Delta, Epsilon},
};

use super::{Candidate, Release, Tuning, TuningConfiguration};
use crate::{
    Error,
    data::Schema,
    features::Features,
    learner::{
        Privacy, PublicFacts, Subject,
        privacy::{charged, cost},
        section::Section,
    },
    network::Architecture,
    range::POSITIVE,
    run::{
        self, Configuration, Covered, Guarantee, Registered, Training,
        registry::{ForMethod, LearnerSettings as _, with_method},
    },
};

impl Tuning {
    /// Reads the data and completes the settings. Nothing is paid.
    pub fn new(mut configuration: TuningConfiguration) -> Result<Self, Error> {
        POSITIVE.check("epsilon", configuration.epsilon)?;
        if configuration.candidates.is_empty() {
            let found = "none".into();
            return Err(Error::Setting { name: "candidates", found, expected: "at least one" });
        }
        let mut all = Vec::new();
        for candidate in &mut configuration.candidates {
            let settings = std::mem::take(&mut candidate.configuration).with_learner()?;
            let facts = with_method(&settings.clone(), Inspect(settings.clone()))?;
            let (data, features, name) = facts.chosen.clone();
            let model = Architecture { name, ..settings.model.clone() };
            candidate.configuration = Configuration { data, features, model, ..settings };
            all.push(facts);
        }
        let data = |candidate: &Candidate| run::Source {
            // Features may scale the records.
            scaling: None,
            ..candidate.configuration.data.clone()
        };
        let first = data(&configuration.candidates[0]);
        if configuration.candidates.iter().any(|candidate| data(candidate) != first) {
            return Err(Error::Setting {
                name: "the data",
                found: "different in two candidates".into(),
                expected: "the same in all: one ledger pays for the search",
            });
        }
        let is_public = all.iter().all(|facts| facts.score_is_public);
        if !is_public && all.iter().any(|facts| facts.unit == Unit::User) {
            return Err(Error::Setting {
                name: "the test records",
                found: "private, and the search protects users".into(),
                expected: "public test records: a private score protects records alone",
            });
        }
        let neighbors = configuration.candidates[0].privacy()?.neighbors;
        let delta = if let Some(delta) = configuration.delta {
            Delta::new(delta)?
        } else {
            // The δ that a single training would have.
            let mut alone = configuration.candidates[0].clone();
            alone.set_target(configuration.epsilon, None)?;
            alone.plan(&all[0])?.1
        };
        configuration.delta = Some(delta.get());
        let unit = all[0].unit;
        let search = Search { facts: &all, is_public, neighbors, delta };
        let resumes = configuration.trial_epsilon.is_some();
        let usual = if configuration.show_trials { (all.len() as f64).sqrt() } else { USUAL_RATIO };
        let mut trial_epsilon = configuration.trial_epsilon.unwrap_or(configuration.epsilon / usual);
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let planned = search.plan(&configuration, trial_epsilon)?;
            let total = planned.epsilon.upper;
            let fits = total <= configuration.epsilon;
            let is_enough = total >= ENOUGH * configuration.epsilon;
            if fits {
                last = Some((planned, trial_epsilon));
            }
            if resumes || (fits && is_enough) {
                break;
            }
            trial_epsilon *= configuration.epsilon / total * if fits { 0.9995 } else { 0.998 };
        }
        let Some((Planned { release, trials, candidates, epsilon, score }, trial_epsilon)) = last else {
            return Err(Error::Setting {
                name: "epsilon",
                found: format!("{}, too little for this search", format_brief(configuration.epsilon)),
                expected: "a larger ε, or fewer trials",
            });
        };
        configuration.candidates = candidates;
        configuration.trial_epsilon = Some(trial_epsilon);
        configuration.score_epsilon = score.map(|(epsilon, _)| epsilon);
        let guarantee = Guarantee { epsilon, delta, unit, neighbors, covers: Covered::Everything };
        let score = score.map(|(_, count)| count);
        let remarks = all.swap_remove(0).remarks;
        Ok(Self { configuration, release, trials, guarantee, score, remarks })
    }
}

/// The share of ε that the score of a trial costs if it is private and not given.
const SCORE_SHARE: f64 = 0.1;

/// ε of a search that releases the best trial over ε of its trials, for the first attempt.
const USUAL_RATIO: f64 = 1.7;

/// A plan is accepted if it uses at least this share of ε.
const ENOUGH: f64 = 0.985;

/// Most plans that are made to meet ε.
const ATTEMPTS: usize = 8;

/// Public facts about the data of a candidate, without which it cannot be planned.
struct Facts {
    shape: Vec<usize>,
    are_features: bool,
    public: PublicFacts,
    schema: Option<Schema>,
    unit: Unit,
    score_is_public: bool,
    /// Remarks on the public test records.
    remarks: Vec<String>,
    /// The data with its pinned facts, and the features and the model that were chosen for it.
    chosen: (run::Source, Option<Features>, Option<String>),
}

/// What all plans of one search have in common.
struct Search<'a> {
    facts: &'a [Facts],
    is_public: bool,
    neighbors: Neighbors,
    delta: Delta,
}

/// A planned search.
struct Planned {
    release: Release,
    trials: Vec<TrialPlan>,
    /// The candidates with complete settings.
    candidates: Vec<Candidate>,
    /// ε of the whole search.
    epsilon: Bound,
    /// ε and mechanism of a private score.
    score: Option<(f64, Count)>,
}

impl Search<'_> {
    /// Plans the search with this ε for each trial.
    fn plan(&self, settings: &TuningConfiguration, trial_epsilon: f64) -> Result<Planned, Error> {
        let Self { facts, is_public, neighbors, delta } = *self;
        let score = if is_public {
            None
        } else {
            let shown = if settings.show_trials { facts.len() as f64 } else { 1.0 };
            let usual = SCORE_SHARE * settings.epsilon / shown.sqrt();
            let epsilon = settings.score_epsilon.unwrap_or(usual);
            let price = Price::laplace(Epsilon::new(epsilon)?).under(neighbors);
            Some((epsilon, Count::for_epsilon(price)?))
        };
        let trial_delta = delta.get() / f64::from(settings.expected.get());
        let (mut trials, mut candidates) = (Vec::new(), Vec::new());
        for (candidate, facts) in settings.candidates.iter().zip(facts) {
            let mut candidate = candidate.clone();
            candidate.set_target(trial_epsilon, Some(trial_delta))?;
            if candidate.privacy()?.neighbors != neighbors {
                return Err(Error::Setting {
                    name: "neighbors",
                    found: "different in two candidates".into(),
                    expected: "the same in all",
                });
            }
            let mut trial = candidate.plan(facts)?.0;
            if let Some((_, count)) = score {
                trial = trial.then(&count, 1, neighbors);
            }
            trials.push(trial);
            candidates.push(candidate);
        }
        let release = if settings.show_trials {
            Release::All(AllTrials::new(trials.clone(), neighbors))
        } else {
            Release::Best(BestOf::new(settings.expected, trials.clone(), neighbors))
        };
        let epsilon = release.cost(facts.len(), (neighbors, delta), settings.epsilon)?;
        Ok(Planned { release, trials, candidates, epsilon, score })
    }
}

impl Release {
    /// ε of the search, which is to cost `asked`.
    fn cost(
        &self,
        candidates: usize,
        (neighbors, delta): (Neighbors, Delta),
        asked: f64,
    ) -> Result<Bound, Error> {
        fn bound<M: Mechanism>(
            (mechanism, runs): (&M, u64),
            (neighbors, delta): (Neighbors, Delta),
            asked: f64,
        ) -> Result<Bound, Error> {
            let ideal = cost(mechanism, runs, neighbors, delta)?;
            let upper = ideal.upper.max(charged(mechanism, runs, (neighbors, delta), asked)?);
            Ok(Bound { upper, ..ideal })
        }
        let runs = self.runs(candidates);
        match self {
            Self::Best(search) => bound((search, runs), (neighbors, delta), asked),
            Self::All(trials) => bound((trials, runs), (neighbors, delta), asked),
        }
    }
}

impl Candidate {
    fn section(&mut self) -> Result<&mut dyn Section, Error> {
        let learner = self
            .configuration
            .learner
            .ok_or_else(|| Error::saved("tune.toml", "without a learner", "one"))?;
        Ok((learner.row().section)(&mut self.configuration))
    }

    fn privacy(&mut self) -> Result<Privacy, Error> {
        Ok(*self.section()?.guarantee().0)
    }

    /// Sets ε and δ of the candidate. The noise follows from them.
    fn set_target(&mut self, epsilon: f64, delta: Option<f64>) -> Result<(), Error> {
        let privacy = self.section()?.guarantee().0;
        (privacy.epsilon, privacy.noise_multiplier) = (Some(epsilon), None);
        privacy.delta = delta;
        Ok(())
    }

    /// Plans the candidate, completes its settings, and returns its trial with its δ.
    fn plan(&mut self, facts: &Facts) -> Result<(TrialPlan, Delta), Error> {
        struct Plan<'a>(&'a mut Configuration, &'a Facts);
        impl ForMethod for Plan<'_> {
            type Output = Result<(TrialPlan, Delta), Error>;

            fn call<M: Registered>(self) -> Self::Output {
                let Facts { shape, are_features, public, schema, .. } = self.1;
                let subject = Subject {
                    shape,
                    are_features: *are_features,
                    facts: public.clone(),
                    schema: schema.as_ref(),
                };
                let (recipe, model) = M::Recipe::section(self.0);
                let method = M::plan(recipe, model, &subject)?;
                let (mechanism, runs) = method.mechanism();
                let cost = method.cost();
                Ok((TrialPlan::default().then(&mechanism, runs, cost.neighbors), cost.delta))
            }
        }
        let settings = self.configuration.clone();
        with_method(&settings, Plan(&mut self.configuration, facts))
    }
}

/// Reads the data of a candidate and returns public facts about it.
struct Inspect(Configuration);

impl ForMethod for Inspect {
    type Output = Result<Facts, Error>;

    fn call<M: Registered>(self) -> Self::Output {
        let training = Training::<M>::new(self.0)?;
        let has_test = training.dataset.test.is_some();
        let score_is_public = training.public_test().is_some();
        if !has_test {
            return Err(Error::Setting {
                name: "the test records",
                found: "none".into(),
                expected: "records to compare the trials on: a public file (`test`), or a test part of the data",
            });
        }
        let train = &training.dataset.train;
        let cost = training.method.cost();
        let guarantee = Guarantee {
            epsilon: cost.epsilon,
            delta: cost.delta,
            unit: training.configuration.data.unit,
            neighbors: cost.neighbors,
            covers: Covered::Everything,
        };
        // The name and the budget of the ledger do not matter to a method.
        training.method.check(&guarantee.terms("search".into(), None, Some(1.0))?, train)?;
        if !score_is_public && train.classes().is_none() {
            return Err(Error::Setting {
                name: "the test records",
                found: "private, and the target is a number".into(),
                expected: "public test records: a private score exists for classes alone",
            });
        }
        let are_features = !training.configuration.computed_features().is_raw();
        let Configuration { data, features, model, .. } = &training.configuration;
        let schema = data.schema.as_ref().filter(|_| !are_features);
        Ok(Facts {
            shape: train.shape().to_vec(),
            are_features,
            public: PublicFacts {
                records: training.configuration.public_count(train),
                classes: train.classes().map(<[String]>::len),
            },
            schema: schema.map(|schema| M::Recipe::LEARNER.label_use().columns(schema)),
            unit: training.configuration.data.unit,
            score_is_public,
            remarks: training.test_remarks,
            chosen: (data.clone(), features.clone(), model.name.clone()),
        })
    }
}
