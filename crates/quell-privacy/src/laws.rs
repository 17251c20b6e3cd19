//! Checks of the contracts that learners must keep, for use in their tests.

use crate::{
    mechanism::{BLOCK, Clipper, Contributions, DRIFT, Electorate, LENGTH_ERROR, TERM_ROUNDINGS},
    units::ClipNorm,
};

/// Checks that a learner keeps the contract of [`Contributions`].
///
/// The error says which clause the learner breaks. The clauses: lengths are not under-reported and are
/// reported once, a record's vector depends on that record alone, scale zero adds nothing, and blocks are
/// added up in double precision.
/// A learner that passes for some records may still break the contract for others. So include records that
/// are empty, huge and not finite, and more records than the learner processes at once.
pub fn check_contributions(contributions: &mut impl Contributions, records: &[usize]) -> Result<(), String> {
    let dimension = contributions.dimension();
    check_parts(contributions, records, &[dimension])
}

/// The same as [`check_contributions`] for a vector whose consecutive parts are clipped separately.
pub fn check_parts(
    contributions: &mut impl Contributions,
    records: &[usize],
    parts: &[usize],
) -> Result<(), String> {
    let dimension = contributions.dimension();
    if parts.iter().sum::<usize>() != dimension {
        return Err(format!("parts {parts:?} do not add up to the dimension {dimension}"));
    }
    let mut learner = Learner { contributions, parts };
    let mut alone = Vec::new();
    for &record in records {
        alone.push(learner.measure(record)?);
    }
    // Blocks of one record, several blocks, one block.
    for size in [1, records.len().div_ceil(3), records.len()] {
        let blocks: Vec<&[usize]> = records.chunks(size.clamp(1, BLOCK)).collect();
        learner.check_blocks(&blocks, &alone)?;
    }
    learner.check_precision(records, &alone)
}

/// Sums the unscaled vectors of some records, each in its own block.
///
/// Use it to test a learner against a simpler implementation.
pub fn sum(contributions: &mut impl Contributions, records: &[usize]) -> Vec<f64> {
    let dimension = contributions.dimension();
    let blocks: Vec<&[usize]> = records.chunks(1).collect();
    Learner { contributions, parts: &[dimension] }.sum(&blocks, &Clipper::fixed(vec![dimension], 1.0))
}

/// Checks that an electorate keeps its contract on samples of the given records.
///
/// Adds the records to each question's sample one after the other, in this order and in reverse: each record
/// may add one ballot and remove one. A question's votes must not depend on the other questions that are
/// asked with it.
pub fn check_electorate(
    electorate: &mut impl Electorate,
    candidates: usize,
    records: &[usize],
    questions: &[usize],
) -> Result<(), String> {
    let forward: Vec<usize> = records.to_vec();
    let backward: Vec<usize> = records.iter().rev().copied().collect();
    for order in [forward, backward] {
        let mut before: Option<Vec<Vec<i64>>> = None;
        for taken in 0..=order.len() {
            let mut sample = order[..taken].to_vec();
            sample.sort_unstable();
            let asked: Vec<(usize, Vec<usize>)> =
                questions.iter().map(|question| (*question, sample.clone())).collect();
            let counts: Vec<Vec<i64>> =
                electorate.tally(&asked).into_iter().map(|votes| votes.counts).collect();
            if counts.len() != questions.len() || counts.iter().any(|counts| counts.len() != candidates) {
                return Err("expected one tally of all candidates for each question".into());
            }
            for (question, counts) in asked.iter().zip(&counts) {
                let alone = electorate.tally(std::slice::from_ref(question));
                if alone.first().is_none_or(|alone| alone.counts != *counts) {
                    return Err(format!(
                        "the votes of question {} depend on the other questions",
                        question.0
                    ));
                }
            }
            let exchanged = |(a, b): (&Vec<i64>, &Vec<i64>)| {
                let rise: i64 = a.iter().zip(b).map(|(a, b)| (b - a).max(0)).sum();
                let fall: i64 = a.iter().zip(b).map(|(a, b)| (a - b).max(0)).sum();
                rise <= 1 && fall <= 1
            };
            if before.is_some_and(|before| !before.iter().zip(&counts).all(exchanged)) {
                return Err(format!("record {} adds or removes more than one ballot", order[taken - 1]));
            }
            before = Some(counts);
        }
    }
    Ok(())
}

struct Learner<'l, C> {
    contributions: &'l mut C,
    parts: &'l [usize],
}

/// The reported lengths and the vector of a single record.
struct Alone {
    squared: Vec<f64>,
    vector: Vec<f64>,
}

/// How often a record is added, to detect lost digits.
const TIMES: usize = 1024;

/// Initial value of a sum, to detect that it is overwritten.
///
/// It is a power of two, far below the values that are compared.
const START: f64 = 1.0 / (1_u64 << 40) as f64;

impl<C: Contributions> Learner<'_, C> {
    fn sum(&mut self, blocks: &[&[usize]], clipper: &Clipper) -> Vec<f64> {
        let mut sum = vec![START; self.contributions.dimension()];
        self.contributions.add_clipped(blocks, clipper, &mut sum);
        sum.into_iter().map(|x| x - START).collect()
    }

    fn measure(&mut self, record: usize) -> Result<Alone, String> {
        let clipper = Clipper::fixed(self.parts.to_vec(), 0.0);
        let zero = self.sum(&[&[record]], &clipper);
        if zero.iter().any(|x| *x != 0.0) {
            return Err(format!("record {record}: scale zero adds something"));
        }
        let clipper = Clipper::fixed(self.parts.to_vec(), 1.0);
        let vector = self.sum(&[&[record]], &clipper);
        let reported = clipper.seen();
        let [squared] = reported.as_slice() else {
            return Err(format!(
                "record {record}: scales were asked for {} times, expected once",
                reported.len()
            ));
        };
        if squared.len() != self.parts.len() {
            return Err(format!(
                "record {record}: {} lengths were reported, expected one for each part",
                squared.len()
            ));
        }
        let mut start = 0;
        for (part, (length, squared)) in self.parts.iter().zip(squared).enumerate() {
            let true_length = norm(&vector[start..start + length]);
            start += length;
            let enough = squared.sqrt() >= true_length * (1.0 - LENGTH_ERROR) - 1e-18;
            // A vector whose length is not finite gets scale zero.
            if squared.is_finite() && !enough {
                return Err(format!(
                    "record {record}: the reported length is less than that of the vector, in part {part}"
                ));
            }
        }
        Ok(Alone { squared: squared.clone(), vector })
    }

    /// Compares the sum of records in blocks with the records alone.
    ///
    /// Records are clipped to a length that some of them have.
    fn check_blocks(&mut self, blocks: &[&[usize]], alone: &[Alone]) -> Result<(), String> {
        let lengths =
            in_order(alone.iter().flat_map(|a| &a.squared).copied().filter(|s| s.is_finite() && *s > 0.0));
        let middle = lengths.get(lengths.len() / 2).map_or(1.0, |squared| squared.sqrt() / 2.0);
        let norm_of_parts = ClipNorm::new(middle.clamp(1e-30, 1e30)).map_err(|error| error.to_string())?;
        let clipper = Clipper::recording(self.parts.to_vec(), norm_of_parts);
        let sum = self.sum(blocks, &clipper);
        let reported = clipper.seen();
        if reported.len() != alone.len() || reported.iter().any(|squared| squared.len() != self.parts.len()) {
            return Err(format!(
                "scales were asked for {} times, expected once for each of {} records",
                reported.len(),
                alone.len()
            ));
        }
        // Threads ask in any order, so lengths are compared after sorting.
        for part in 0..self.parts.len() {
            let (expected, reported) =
                (in_order(alone.iter().map(|a| a.squared[part])), in_order(reported.iter().map(|s| s[part])));
            if expected.into_iter().zip(reported).any(|(a, b)| !same_length(a, b)) {
                return Err(format!("a length depends on other records, in part {part}"));
            }
        }
        self.check_sum(&sum, alone, &Clipper::recording(self.parts.to_vec(), norm_of_parts), blocks)
    }

    /// Compares a sum with that of the scaled vectors.
    fn check_sum(
        &self,
        sum: &[f64],
        alone: &[Alone],
        clipper: &Clipper,
        blocks: &[&[usize]],
    ) -> Result<(), String> {
        let largest_block = blocks.iter().map(|block| block.len()).max().unwrap_or(0) as f64;
        let (mut expected, mut sizes, mut drift) = (vec![0.0; sum.len()], vec![0.0; sum.len()], 0.0);
        let mut scales = vec![0.0; self.parts.len()];
        for Alone { squared, vector } in alone {
            clipper.scales(squared, &mut scales);
            let scale_of = scales
                .iter()
                .zip(self.parts)
                .flat_map(|(scale, length)| std::iter::repeat_n(f64::from(*scale), *length));
            let mut square = 0.0;
            for (coordinate, (scale, x)) in
                scale_of.zip(vector).enumerate().filter(|(_, (scale, _))| *scale != 0.0)
            {
                expected[coordinate] += scale * x;
                sizes[coordinate] += (scale * x).abs();
                square += (scale * x).powi(2);
            }
            drift += 2.0 * DRIFT * f64::sqrt(square);
        }
        for (coordinate, ((sum, expected), size)) in sum.iter().zip(&expected).zip(&sizes).enumerate() {
            let rounding =
                (largest_block + TERM_ROUNDINGS) / f64::from(1 << 24) * size * 1.01 + drift + 1e-18;
            // A comparison with NaN is false.
            let within = (sum - expected).abs() <= rounding;
            if !within {
                return Err(format!("coordinate {coordinate}: the sum is not that of the scaled vectors"));
            }
        }
        Ok(())
    }

    /// Adds one record in many blocks, which single precision could not add up.
    fn check_precision(&mut self, records: &[usize], alone: &[Alone]) -> Result<(), String> {
        let finite = |a: &Alone| a.squared.iter().all(|s| s.is_finite()) && norm(&a.vector) > 0.0;
        let Some((&record, alone)) = records.iter().zip(alone).find(|(_, a)| finite(a)) else {
            return Ok(());
        };
        let block = [record];
        let sum = self.sum(&vec![block.as_slice(); TIMES], &Clipper::fixed(self.parts.to_vec(), 1.0));
        let (times, length) = (TIMES as f64, norm(&alone.vector));
        let same =
            sum.iter().zip(&alone.vector).all(|(sum, x)| (sum - times * x).abs() <= times * DRIFT * length);
        if same { Ok(()) } else { Err("blocks are not added up in double precision".into()) }
    }
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Sorts by size; values that are not finite come last.
fn in_order(squared: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut squared: Vec<f64> = squared.map(|s| if s.is_finite() { s } else { f64::INFINITY }).collect();
    squared.sort_by(f64::total_cmp);
    squared
}

/// Whether the roots of two squared lengths are within [`DRIFT`], or both are not finite.
fn same_length(a: f64, b: f64) -> bool {
    (!a.is_finite() && !b.is_finite()) || (a - b).abs() <= 2.01 * DRIFT * a.abs().max(b.abs()) + 1e-36
}

#[cfg(test)]
mod tests;
