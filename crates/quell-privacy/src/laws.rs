//! What every learner must obey, as a check that its tests call.

use crate::mechanism::Contributions;

/// The first law that a learner breaks for the given records, or nothing.
///
/// Checks the contract of [`Contributions`]: lengths are true, a record's vector depends on that record alone, and scale zero adds
/// nothing. A law that holds here may still be broken elsewhere: give it records that are empty, huge, and not finite.
#[must_use]
pub fn broken_by(contributions: &mut impl Contributions, records: &[usize]) -> Option<String> {
    let dimension = contributions.dimension();
    let mut alone = |record: usize, scale: f32| {
        let mut squared = [f64::NAN];
        contributions.squared_norms(&[record], &mut squared);
        let mut sum = vec![0.0_f32; dimension];
        contributions.add_scaled(&[record], &[scale], &mut sum);
        (squared[0], sum)
    };
    let mut vectors = Vec::new();
    for &record in records {
        let (_, nothing) = alone(record, 0.0);
        if nothing.iter().any(|x| *x != 0.0) {
            return Some(format!("record {record}: scale zero adds something"));
        }
        let (squared, vector) = alone(record, 1.0);
        let length = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
        if squared.is_finite() && (length - squared.sqrt()).abs() > length / 8192.0 + f64::from(f32::MIN_POSITIVE) {
            return Some(format!("record {record}: the reported length is not that of the vector"));
        }
        vectors.push((squared, vector));
    }
    let mut squared = vec![f64::NAN; records.len()];
    contributions.squared_norms(records, &mut squared);
    let same = |a: f64, b: f64| (!a.is_finite() && !b.is_finite()) || (a - b).abs() <= 1e-6 * a.abs().max(b.abs());
    if let Some(k) = (0..records.len()).find(|&k| !same(squared[k], vectors[k].0)) {
        return Some(format!("record {}: its length depends on the records beside it", records[k]));
    }
    // Scales as a mechanism would choose them: zero where the vector is not finite, and different elsewhere.
    let scales: Vec<f32> =
        (0_u8..).zip(&squared).map(|(k, s)| if s.is_finite() { 1.0 / f32::from(1 + k % 7) } else { 0.0 }).collect();
    let mut sum = vec![0.0_f32; dimension];
    contributions.add_scaled(records, &scales, &mut sum);
    for (coordinate, total) in sum.iter().enumerate() {
        let terms = vectors
            .iter()
            .zip(&scales)
            .filter(|(_, scale)| **scale != 0.0)
            .map(|((_, v), s)| f64::from(*s) * f64::from(v[coordinate]));
        let (mut expected, mut size) = (0.0, 0.0);
        for term in terms {
            expected += term;
            size += term.abs();
        }
        let rounding = (records.len() as f64 + 4.0) / f64::from(1 << 24) * size * 1.01 + f64::from(f32::MIN_POSITIVE);
        // A NaN is not within it.
        let within = (f64::from(*total) - expected).abs() <= rounding;
        if !within {
            return Some(format!("coordinate {coordinate}: the sum is not that of the scaled vectors"));
        }
    }
    None
}
