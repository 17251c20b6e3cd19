//! What is known after the releases so far: counts, chosen pairs, and the model that fits them.

use std::collections::BTreeMap;

use super::{
    Domain, Synthesizer,
    choice::Candidates,
    distribution::{Distribution, shares},
    errors::PairError,
    fit::{Factor, Fit},
    groups::Groups,
    junction::JunctionTree,
    measured::Measured,
    query::{Query, all_pairs},
    schedule::{Purpose, purpose, runs_for},
    vectors::{Records, Vectors},
};
use crate::learner::sums;

/// Everything that follows from the releases so far. It is public.
#[derive(Clone, Debug)]
pub struct Measurements {
    domain: Domain,
    /// The public number of records.
    records: f64,
    /// Standard deviation of the noise in each number of a release.
    noise: f64,
    /// The most numbers of a release.
    dimension: usize,
    /// Number of runs that are over, including lost ones.
    position: u64,
    /// The counts of the values of each column.
    columns: Vec<Measured>,
    /// Coarse groups of all columns.
    coarse: Groups,
    /// The coarse counts of all pairs, from which pairs are chosen.
    survey: Vec<Measured>,
    /// The coarse counts of all pairs, with which errors are estimated.
    check: Vec<Measured>,
    /// The groups of values that the model distinguishes.
    groups: Groups,
    /// The counts of the chosen pairs.
    pairs: BTreeMap<(usize, usize), Measured>,
    /// The potentials of the last fit, by columns.
    potentials: BTreeMap<Vec<usize>, Vec<f64>>,
    /// What the next run counts; `None` if all runs are over.
    query: Option<Query>,
}

/// The most coarse groups of a column.
pub(super) const COARSE: usize = 4;
/// Values with a smaller count than this, in standard deviations of a count of a pair, are put into groups.
const RARE: f64 = 5.0;
/// The public number of records is replaced by a released one that differs by more, in standard deviations.
const DIFFERENT: f64 = 4.0;
/// How much potentials are held back, in parts of the variance of their counts.
const RIDGE_OF_COLUMNS: f64 = 0.001;
const RIDGE_OF_PAIRS: f64 = 0.01;
/// What the potential of a value is lessened by if synthetic cells must not have it.
const FORBIDDEN: f64 = -600.0;

impl Measurements {
    /// The estimates before the first run.
    pub(super) fn new(domain: Domain, records: f64, noise: f64, dimension: usize) -> Self {
        let (count, query) = (domain.columns.len(), Query::columns(&domain));
        Self {
            domain,
            records,
            noise,
            dimension,
            position: 0,
            columns: vec![Measured::default(); count],
            coarse: Groups::default(),
            survey: vec![Measured::default(); all_pairs(count).len()],
            check: vec![Measured::default(); all_pairs(count).len()],
            groups: Groups::default(),
            pairs: BTreeMap::new(),
            potentials: BTreeMap::new(),
            query: Some(query),
        }
    }

    /// The number of records: the public number, unless the counts of the columns contradict it.
    fn total(&self) -> f64 {
        let (mut sum, mut precision) = (0.0, 0.0);
        for measured in self.columns.iter().filter(|measured| !measured.is_empty()) {
            let counts = measured.counts();
            let certainty = (counts.len() as f64 * measured.variance()).recip();
            sum += certainty * counts.iter().sum::<f64>();
            precision += certainty;
        }
        let (released, deviation) = (sum / precision, precision.sqrt().recip());
        let differs = (released - self.records).abs() > DIFFERENT * deviation;
        if differs { released.max(1.0) } else { self.records }
    }

    /// Possible counts of the values of each column.
    fn counts(&self, total: f64) -> Vec<Vec<f64>> {
        let sizes = self.domain.sizes();
        let possible = |(measured, size): (&Measured, usize)| {
            if measured.is_empty() {
                return vec![total / size as f64; size];
            }
            sums::nearest_counts(&measured.counts(), total)
        };
        self.columns.iter().zip(sizes).map(possible).collect()
    }

    /// Prepares the next run.
    fn prepare(&mut self) {
        let Some((purpose, is_first)) = purpose(self.position, self.domain.columns.len()) else {
            self.query = None;
            return;
        };
        if !is_first {
            return;
        }
        let total = self.total();
        let counts = self.counts(total);
        self.query = Some(match purpose {
            Purpose::Columns => Query::columns(&self.domain),
            Purpose::Survey => {
                self.coarse = Groups::similar(&self.domain, &counts, COARSE);
                Query::pairs(self.coarse.clone(), &all_pairs(counts.len()))
            }
            Purpose::Check => Query::pairs(self.coarse.clone(), &all_pairs(counts.len())),
            Purpose::Round(round) => self.choose(round, total, &counts),
        });
    }

    /// Chooses the pairs that a round measures.
    ///
    /// If no further pair is worth its noise, the chosen ones are measured again; without any, the columns are.
    fn choose(&mut self, round: usize, total: f64, counts: &[Vec<f64>]) -> Query {
        let noise = self.noise / (runs_for(Purpose::Round(round)) as f64).sqrt();
        if round == 0 {
            let least = RARE * noise * (counts.len() as f64 - 1.0).sqrt();
            self.groups = Groups::frequent(&self.domain, counts, least);
        } else if !self.pairs.is_empty() {
            self.fit(total);
        }
        let modelled = self.distribution(total, false).pairs(&shares(&self.groups, &self.coarse, counts));
        let errors: Vec<f64> = (self.survey.iter().zip(&modelled))
            .map(|(measured, modelled)| squared_error(measured, modelled, total))
            .collect();
        let (sizes, most_released) = (&self.groups.sizes, self.dimension);
        let candidates = Candidates { sizes, errors: &errors, noise, most_released };
        let chosen: Vec<(usize, usize)> = self.pairs.keys().copied().collect();
        let mut pairs = if round == 0 { candidates.tree() } else { candidates.more(&chosen) };
        if pairs.is_empty() {
            pairs = chosen;
        }
        let query = Query::pairs(self.groups.clone(), &pairs);
        if pairs.is_empty() || query.length > self.dimension { Query::columns(&self.domain) } else { query }
    }

    /// The counts that the model is fitted to.
    fn factors(&self) -> Vec<Factor> {
        let columns = self.columns.iter().enumerate().filter(|(_, measured)| !measured.is_empty());
        let of_columns = columns.map(|(column, measured)| {
            let ridge = RIDGE_OF_COLUMNS * measured.variance();
            Factor {
                columns: vec![column],
                counts: self.groups.sums(column, &measured.counts()),
                ridge: self.groups.members(column).iter().map(|members| ridge * members).collect(),
            }
        });
        let of_pairs = self.pairs.iter().map(|((a, b), measured)| {
            let counts = measured.counts();
            let ridge = vec![RIDGE_OF_PAIRS * measured.variance(); counts.len()];
            Factor { columns: vec![*a, *b], counts, ridge }
        });
        of_columns.chain(of_pairs).collect()
    }

    fn tree(&self) -> JunctionTree {
        JunctionTree::new(&self.groups.sizes, &self.pairs.keys().copied().collect::<Vec<_>>())
    }

    /// Fits the potentials to all counts, from those of the last fit.
    fn fit(&mut self, total: f64) {
        let (tree, factors) = (self.tree(), self.factors());
        let fit = Fit::new(&tree, &factors, total);
        let is_new =
            |factor: &Factor| factor.columns.len() > 1 && !self.potentials.contains_key(&factor.columns);
        let is_new: Vec<bool> = factors.iter().map(is_new).collect();
        let fitted = fit.minimize(self.start(&factors), &is_new);
        let mut rest = fitted.as_slice();
        for factor in &factors {
            let (own, others) = rest.split_at(factor.counts.len());
            self.potentials.insert(factor.columns.clone(), own.to_vec());
            rest = others;
        }
    }

    /// The potentials of the last fit, in the order of the factors; zeros for new ones.
    ///
    /// Before the first fit, columns have the logarithms of their counts.
    fn start(&self, factors: &[Factor]) -> Vec<f64> {
        let own = |factor: &Factor| match self.potentials.get(&factor.columns) {
            Some(potentials) => potentials.clone(),
            None if factor.columns.len() == 1 => {
                let variance = factor.ridge.iter().map(|ridge| ridge / RIDGE_OF_COLUMNS);
                factor.counts.iter().zip(variance).map(|(y, v)| y.max(0.1 * v.sqrt()).max(0.1).ln()).collect()
            }
            None => vec![0.0; factor.counts.len()],
        };
        factors.iter().flat_map(own).collect()
    }

    /// The distribution of the columns. Forbidden values may be left out.
    fn distribution(&self, total: f64, without_forbidden: bool) -> Distribution {
        let (tree, mut factors) = (self.tree(), self.factors());
        let mut potentials = self.start(&factors);
        if without_forbidden {
            for (column, of) in self.groups.of.iter().enumerate() {
                let allows = |group: usize| {
                    let values = of.iter().enumerate().filter(|(_, g)| usize::from(**g) == group);
                    values.map(|(value, _)| value).any(|value| self.domain.columns[column].allows(value))
                };
                let potential = |group| if allows(group) { 0.0 } else { FORBIDDEN };
                let own: Vec<f64> = (0..self.groups.sizes[column]).map(potential).collect();
                factors.push(Factor { columns: vec![column], counts: own.clone(), ridge: own.clone() });
                potentials.extend(own);
            }
        }
        let cliques = Fit::new(&tree, &factors, total).beliefs(&potentials).cliques;
        Distribution { tree, cliques }
    }

    /// The model that follows from the releases so far.
    pub(super) fn model(&self) -> Synthesizer {
        let mut last = self.clone();
        let total = last.total();
        let counts = last.counts(total);
        if last.groups.sizes.is_empty() {
            // No pair was measured: every value is a group.
            last.groups = Query::columns(&last.domain).groups;
        }
        last.fit(total);
        let distribution = last.distribution(total, true);
        let errors = last.errors(&distribution, total, &counts);
        let pairs = last.pairs.keys().copied().collect();
        let table = (last.domain, last.groups);
        Synthesizer::new(table, pairs, &counts, distribution, &last.columns, (errors, total))
    }

    /// The errors of all pairs that the last runs of the plan estimate.
    fn errors(&self, distribution: &Distribution, total: f64, counts: &[Vec<f64>]) -> Vec<PairError> {
        if self.check.iter().all(Measured::is_empty) {
            return Vec::new();
        }
        let modelled = distribution.pairs(&shares(&self.groups, &self.coarse, counts));
        let checked = all_pairs(counts.len()).into_iter().zip(self.check.iter().zip(&modelled));
        let error = |(columns, (measured, modelled)): (_, (&Measured, &Vec<f64>))| PairError {
            columns,
            was_measured: self.pairs.contains_key(&columns),
            cells: modelled.len(),
            squared: squared_error(measured, modelled, total) / (total * total),
            variance: measured.variance() / (total * total),
        };
        checked.map(error).collect()
    }
}

/// Estimates the sum of squared errors of a model's counts. The estimate is unbiased, and may be negative.
fn squared_error(measured: &Measured, modelled: &[f64], total: f64) -> f64 {
    if measured.is_empty() {
        return 0.0;
    }
    let squares = measured.counts().iter().zip(modelled).map(|(y, p)| (y - total * p).powi(2)).sum::<f64>();
    squares - modelled.len() as f64 * measured.variance()
}

impl sums::Estimates for Measurements {
    type Task<'t> = Records;
    type Vectors<'a> = Vectors<'a>;

    fn vectors<'a>(&'a self, task: &'a Records, dimension: usize) -> Option<Vectors<'a>> {
        Some(Vectors::new(task, self.query.as_ref()?, dimension))
    }

    fn length(&self) -> usize {
        self.query.as_ref().map_or(0, |query| query.length)
    }

    fn apply(&mut self, released: Option<&[f64]>) {
        let purpose = purpose(self.position, self.domain.columns.len());
        if let (Some(query), Some(release), Some((purpose, _))) = (&self.query, released, purpose) {
            for (number, part) in query.parts.iter().enumerate() {
                let to = match (purpose, part.columns.as_slice()) {
                    (Purpose::Survey, _) => &mut self.survey[number],
                    (Purpose::Check, _) => &mut self.check[number],
                    (_, [a, b]) => self.pairs.entry((*a, *b)).or_default(),
                    (_, columns) => &mut self.columns[columns[0]],
                };
                query.add(number, release, self.noise, to);
            }
        }
        self.position += 1;
        self.prepare();
    }
}

#[cfg(test)]
mod tests;
