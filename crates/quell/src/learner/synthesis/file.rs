//! The tensors of a model file.

use super::{Domain, MeasuredColumn, PairError, Synthesizer, groups::Groups, junction::JunctionTree};
use crate::{
    Error,
    data::{Examples, Schema},
    learner::{
        Evaluation,
        predictor::{Fitted, hash_numbers},
        tensors::{Tensor, TensorFile, damaged},
    },
};

/// Names of the tensors.
const RECORDS: &str = "records";
const GROUPS: &str = "groups";
const PAIRS: &str = "pairs";
const CLIQUES: &str = "cliques";
const SHARES: &str = "shares";
const MEASURED: &str = "measured";
const DEVIATIONS: &str = "deviations";
const ERRORS: &str = "errors";
/// Numbers of an error: two columns, whether it was measured, cells, squared error, variance.
const ERROR_WIDTH: usize = 6;

impl Fitted for Synthesizer {
    fn weights(&self) -> &[f32] {
        &self.weights
    }

    fn measure(&self) -> &'static str {
        "error"
    }

    fn evaluate(&self, examples: &Examples) -> Evaluation {
        self.evaluate(examples)
    }

    /// The columns are in the schema of the model file.
    fn tensors(&self) -> Vec<(String, Tensor)> {
        let wide = |numbers: &mut dyn Iterator<Item = f64>| Tensor::double(&numbers.collect::<Vec<_>>());
        let error = |error: &PairError| {
            let PairError { columns: (a, b), was_measured, cells, squared, variance } = *error;
            [a as f64, b as f64, f64::from(u8::from(was_measured)), cells as f64, squared, variance]
        };
        vec![
            (RECORDS.into(), Tensor::double(&[self.records])),
            (GROUPS.into(), wide(&mut self.groups.of.iter().flatten().map(|group| f64::from(*group)))),
            (PAIRS.into(), wide(&mut self.pairs.iter().flat_map(|(a, b)| [*a as f64, *b as f64]))),
            (CLIQUES.into(), Tensor::single(&self.weights)),
            (SHARES.into(), Tensor::single(&self.shares.concat())),
            (
                MEASURED.into(),
                wide(&mut self.columns.iter().flat_map(|column| column.shares.iter().copied())),
            ),
            (DEVIATIONS.into(), wide(&mut self.columns.iter().map(|column| column.deviation))),
            (ERRORS.into(), wide(&mut self.errors.iter().flat_map(error))),
        ]
    }

    fn hash(&self, update: &mut dyn FnMut(&[u8])) {
        self.groups.of.iter().flatten().for_each(|group| update(&group.to_le_bytes()));
        self.pairs.iter().for_each(|(a, b)| update(&[*a as u8, *b as u8]));
        hash_numbers(self.shares.iter().flatten(), update);
        hash_numbers(&self.weights, update);
    }
}

/// Reads a model of the columns of a schema from the bytes of a model file.
pub(crate) fn restore(bytes: &[u8], schema: &Schema) -> Result<Synthesizer, Error> {
    let domain = Domain::new(schema)?;
    let file = TensorFile::of_model(bytes)?;
    let double = |name: &str| file.double(name);
    // Probabilities and shares are in single precision.
    let single = |name: &str| {
        let values = file.single(name)?;
        if values.iter().all(|x| (0.0..=1.0).contains(x)) { Ok(values) } else { Err(damaged(name)) }
    };
    let (sizes, count) = (domain.sizes(), domain.columns.len());
    let columns = |name: &str, numbers: &[f64]| {
        let place = |number: &f64| {
            let place = *number as usize;
            (place < count && place as f64 == *number).then_some(place).ok_or_else(|| damaged(name))
        };
        numbers.iter().map(place).collect::<Result<Vec<usize>, Error>>()
    };
    let groups = groups(&double(GROUPS)?, &sizes).ok_or_else(|| damaged(GROUPS))?;
    let listed = columns(PAIRS, &double(PAIRS)?)?;
    let pairs: Vec<(usize, usize)> = listed.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    if listed.len() != 2 * pairs.len() || pairs.iter().any(|(a, b)| a >= b) {
        return Err(damaged(PAIRS));
    }
    let (tree, weights) = (JunctionTree::new(&groups.sizes, &pairs), single(CLIQUES)?);
    // A forged list of pairs cannot ask for more cells than the file holds.
    if tree.cells() != weights.len() as f64 {
        return Err(damaged(CLIQUES));
    }
    let shares = split(&single(SHARES)?, &sizes).ok_or_else(|| damaged(SHARES))?;
    let measured = double(MEASURED)?;
    let measured = if measured.is_empty() {
        vec![Vec::new(); count]
    } else {
        split(&measured, &sizes).ok_or_else(|| damaged(MEASURED))?
    };
    let deviations = double(DEVIATIONS)?;
    let records = double(RECORDS)?.first().copied().filter(|records| *records >= 1.0);
    if deviations.len() != count {
        return Err(damaged(DEVIATIONS));
    }
    let errors = double(ERRORS)?;
    let error = |numbers: &[f64]| {
        let places = columns(ERRORS, &numbers[..2])?;
        Ok(PairError {
            columns: (places[0], places[1]),
            was_measured: numbers[2] != 0.0,
            cells: numbers[3] as usize,
            squared: numbers[4],
            variance: numbers[5],
        })
    };
    let columns = measured.into_iter().zip(deviations);
    Ok(Synthesizer {
        errors: errors.chunks_exact(ERROR_WIDTH).map(error).collect::<Result<_, Error>>()?,
        records: records.ok_or_else(|| damaged(RECORDS))?,
        columns: columns.map(|(shares, deviation)| MeasuredColumn { shares, deviation }).collect(),
        domain,
        groups,
        pairs,
        tree,
        weights,
        shares,
    })
}

/// Divides a list into lists of these lengths; `None` if it has another length.
fn split<T: Clone>(list: &[T], sizes: &[usize]) -> Option<Vec<Vec<T>>> {
    let mut rest = list;
    let parts = sizes.iter().map(|size| {
        let (part, others) = rest.split_at_checked(*size)?;
        rest = others;
        Some(part.to_vec())
    });
    parts.collect::<Option<Vec<_>>>().filter(|_| rest.is_empty())
}

/// The groups of the values of all columns; `None` if a group is missing.
fn groups(numbers: &[f64], sizes: &[usize]) -> Option<Groups> {
    let of = split(numbers, sizes)?;
    let mut groups = Groups::default();
    for numbers in of {
        let of: Vec<u16> = numbers.iter().map(|number| *number as u16).collect();
        let size = of.iter().max().map_or(0, |most| usize::from(*most) + 1);
        let mut is_used = vec![false; size];
        for group in &of {
            is_used[usize::from(*group)] = true;
        }
        let is_whole = of.iter().zip(&numbers).all(|(group, number)| f64::from(*group) == *number);
        if !is_whole || is_used.contains(&false) {
            return None;
        }
        groups.sizes.push(size);
        groups.of.push(of);
    }
    Some(groups)
}
