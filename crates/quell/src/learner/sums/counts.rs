//! The nearest counts that are possible.

/// The nearest numbers that are not negative and have this sum.
pub(in crate::learner) fn nearest_counts(numbers: &[f64], sum: f64) -> Vec<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut total, mut shift) = (0.0, 0.0);
    for (count, number) in sorted.iter().enumerate() {
        total += number;
        let candidate = (total - sum) / (count + 1) as f64;
        if *number <= candidate {
            break;
        }
        shift = candidate;
    }
    numbers.iter().map(|number| (number - shift).max(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::PublicRandom;

    /// The conditions of Karush, Kuhn and Tucker: positive numbers move alike, and the others would fall below.
    #[test]
    fn the_projection_is_the_nearest_possible_point() {
        let mut random = PublicRandom::new(4);
        for case in 0..200 {
            let numbers: Vec<f64> = (0..=case % 17).map(|_| f64::from(10.0 * random.normal())).collect();
            let sum = f64::from(random.between(0.5, 40.0));
            let found = nearest_counts(&numbers, sum);
            assert!((found.iter().sum::<f64>() - sum).abs() < 1e-9 && found.iter().all(|x| *x >= 0.0));
            let moves: Vec<f64> = numbers.iter().zip(&found).map(|(y, x)| y - x).collect();
            let shift = moves.iter().zip(&found).find(|(_, x)| **x > 0.0).unwrap().0;
            for (moved, x) in moves.iter().zip(&found) {
                assert!(if *x > 0.0 { (moved - shift).abs() < 1e-9 } else { *moved <= shift + 1e-9 });
            }
        }
    }
}
