//! Records of linear models: features and a target each, and their copy with features of norm one.

/// The records of a linear model, as a learner provides them to a mechanism.
///
/// # Contract
/// What [`LinearRecords::read`] gives for a record depends on that record alone. Each record is read once, so
/// records that change between two readings do no harm.
pub trait LinearRecords {
    /// Number of records.
    fn records(&self) -> usize;

    /// Number of features of a record.
    fn dimension(&self) -> usize;

    /// Writes the features of a record into zeros and returns its target.
    ///
    /// A record without a target, or with a number that is not finite, contributes nothing.
    fn read(&self, record: usize, features: &mut [f64]) -> Option<f64>;
}

/// Records in memory: a matrix of features with one row per record, and a list of targets.
///
/// ```
/// use quell_privacy::mechanism::{LinearRecords, Rows};
/// let rows = Rows { dimension: 2, features: vec![0.5, 1.0, 0.25, 1.0], targets: vec![1.0, -1.0] };
/// let mut features = [0.0; 2];
/// assert_eq!((rows.records(), rows.read(1, &mut features), features), (2, Some(-1.0), [0.25, 1.0]));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Number of features of a record.
    pub dimension: usize,
    /// The features of all records, record by record.
    pub features: Vec<f64>,
    /// The target of each record.
    pub targets: Vec<f64>,
}

impl LinearRecords for Rows {
    fn records(&self) -> usize {
        self.targets.len()
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn read(&self, record: usize, features: &mut [f64]) -> Option<f64> {
        let row = self.features.get(record * self.dimension..(record + 1) * self.dimension)?;
        features.copy_from_slice(row);
        self.targets.get(record).copied()
    }
}

/// A copy of the records, with features of norm at most one.
///
/// Features have 24 bits, so that products with parts of other numbers are exact.
pub(super) struct Design {
    pub(super) dimension: usize,
    features: Vec<f32>,
    targets: Vec<f64>,
}

/// The norm to which longer feature vectors are scaled, before they are rounded to single precision.
///
/// # Theorem
/// The computed norm is too small by a part in 2²⁵ at most for d ≤ 2²⁸: (d/2 + 4)/2⁵³. Rounding to single
/// precision adds a part in 2²⁴, and 2⁻¹⁵⁰ to each number. (1 - 2⁻²²)(1 + 2⁻²⁴)(1 + 2⁻²⁴) + 2⁻¹³⁶ < 1.
const UNIT: f64 = 1.0 - 1.0 / (1 << 22) as f64;

/// Targets beyond this are clamped. Their squares, and sums of them, stay finite.
const FARTHEST: f64 = 1e100;

impl Design {
    /// Reads the first `most` records, each once.
    pub(super) fn new(records: &impl LinearRecords, most: u64) -> Self {
        let dimension = records.dimension();
        let mut design = Self { dimension, features: Vec::new(), targets: Vec::new() };
        let mut features = vec![0.0; dimension];
        for record in 0..records.records().min(usize::try_from(most).unwrap_or(usize::MAX)) {
            features.fill(0.0);
            if let Some(target) = records.read(record, &mut features).filter(|target| target.is_finite())
                && let Some(factor) = scale_in_place(&mut features)
            {
                design.features.extend(features.iter().map(|x| (x * factor) as f32));
                design.targets.push(target.clamp(-FARTHEST, FARTHEST));
            }
        }
        design
    }

    /// The features and the target of each record.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&[f32], f64)> {
        self.features.chunks_exact(self.dimension.max(1)).zip(self.targets.iter().copied())
    }
}

/// Divides the features by the largest one, and returns the factor that makes their norm at most one.
///
/// Without the division the norm could overflow. `None` if no feature differs from zero, or if one is not
/// finite: then the record contributes nothing.
fn scale_in_place(features: &mut [f64]) -> Option<f64> {
    let largest = features.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    if largest == 0.0 || !features.iter().all(|x| x.is_finite()) {
        return None;
    }
    for x in features.iter_mut() {
        *x /= largest;
    }
    let norm = features.iter().map(|x| x * x).sum::<f64>().sqrt();
    Some((UNIT / norm).min(largest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Squares of single-precision numbers are exact in double precision, and 2⁸⁰ times them are integers
    /// where the numbers are multiples of 2⁻⁴⁰.
    fn squared_norm_exceeds_one(row: &[f32]) -> bool {
        let steps = |x: &f32| {
            let scaled = f64::from(*x) * (1_u64 << 40) as f64;
            // Rounded away from zero.
            scaled.abs().ceil() as u128
        };
        row.iter().map(|x| steps(x) * steps(x)).sum::<u128>() > 1 << 80
    }

    #[test]
    fn features_are_scaled_to_norm_one_and_shorter_ones_are_kept() {
        let mut state = 3_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
        };
        for size in [1e-3, 0.3, 1.0, 1.0 + 1e-7, 50.0, 1e200, 1e308] {
            for dimension in [1, 2, 7, 300] {
                for _ in 0..50 {
                    let row: Vec<f64> = (0..dimension).map(|_| 2.0 * next() * size).collect();
                    let rows = Rows { dimension, features: row.clone(), targets: vec![1.0] };
                    let design = Design::new(&rows, 10);
                    let (kept, _) = design.rows().next().unwrap();
                    assert!(!squared_norm_exceeds_one(kept), "{row:?}");
                    let relative = row.iter().map(|x| (x / size).powi(2)).sum::<f64>().sqrt();
                    for (x, kept) in row.iter().zip(kept) {
                        let expected = x / size / relative.max(1.0 / size);
                        assert!((expected - f64::from(*kept)).abs() < 1e-6, "{x} {kept} {relative}");
                    }
                }
            }
        }
    }

    #[test]
    fn records_that_are_not_numbers_contribute_nothing_and_the_number_of_records_is_capped() {
        let bad = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        let mut rows = Rows { dimension: 2, features: vec![0.1, 0.2], targets: vec![1.0] };
        for number in bad {
            rows.features.extend([0.5, number, 0.5, 0.5]);
            rows.targets.extend([1.0, number]);
        }
        // Features that are missing, or all zero, add nothing either.
        rows.features.extend([0.0, 0.0, 0.3]);
        rows.targets.extend([1.0, 1.0]);
        assert_eq!(Design::new(&rows, 100).targets, [1.0]);
        let many = Rows { dimension: 1, features: vec![1.0; 5], targets: vec![0.0, 1.0, 2.0, 3.0, 4.0] };
        assert_eq!(Design::new(&many, 3).targets, [0.0, 1.0, 2.0]);
    }
}
