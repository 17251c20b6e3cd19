//! Groups of values, which follow from released counts.

use super::Domain;

/// A division of the values of each column into groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Groups {
    /// The group of each value, for each column.
    pub(super) of: Vec<Vec<u16>>,
    /// Number of groups of each column.
    pub(super) sizes: Vec<usize>,
}

impl Groups {
    /// At most this number of groups for each column, of similar counts.
    pub(super) fn similar(domain: &Domain, counts: &[Vec<f64>], most: usize) -> Self {
        Self::divide(domain, counts, |left, number| left / most.saturating_sub(number).max(1) as f64, most)
    }

    /// Groups with at least this count, where the column has as much.
    pub(super) fn frequent(domain: &Domain, counts: &[Vec<f64>], least: f64) -> Self {
        Self::divide(domain, counts, |_, _| least, usize::MAX)
    }

    /// Divides the values in order. A group ends where it has as much as `enough` says.
    ///
    /// `enough` gets the count of all values that are in no finished group, and the number of such groups.
    fn divide(domain: &Domain, counts: &[Vec<f64>], enough: impl Fn(f64, usize) -> f64, most: usize) -> Self {
        let mut groups = Self::default();
        for (column, counts) in domain.columns.iter().zip(counts) {
            let mut order: Vec<usize> = (0..counts.len()).collect();
            if !column.is_ordered() {
                order.sort_by(|a, b| counts[*b].total_cmp(&counts[*a]));
            }
            let (mut of, mut group, mut sum) = (vec![0; counts.len()], 0, 0.0);
            let mut left: f64 = counts.iter().sum();
            let mut least = enough(left, 0);
            let mut has_members = false;
            for value in order {
                of[value] = group as u16;
                (sum, has_members) = (sum + counts[value], true);
                if sum >= least && group + 1 < most {
                    (left, sum, has_members) = (left - sum, 0.0, false);
                    group += 1;
                    least = enough(left, group);
                }
            }
            if has_members && group > 0 && sum < least {
                // Too little is left for a group of its own.
                group -= 1;
                for of in &mut of {
                    *of = (*of).min(group as u16);
                }
                has_members = true;
            }
            groups.sizes.push(group + usize::from(has_members));
            groups.of.push(of);
        }
        groups
    }

    /// The share of each value in its group, by the counts of the values.
    ///
    /// In a group without a count, all values have the same share.
    pub(super) fn shares(&self, column: usize, counts: &[f64]) -> Vec<f64> {
        let of = &self.of[column];
        let mut sums = vec![(0.0, 0.0); self.sizes[column]];
        for (group, count) in of.iter().zip(counts) {
            let (sum, members) = &mut sums[usize::from(*group)];
            (*sum, *members) = (*sum + count, *members + 1.0);
        }
        let share = |(group, count): (&u16, &f64)| {
            let (sum, members) = sums[usize::from(*group)];
            if sum > 0.0 { count / sum } else { 1.0 / members }
        };
        of.iter().zip(counts).map(share).collect()
    }

    /// Sums numbers of values to numbers of groups.
    pub(super) fn sums(&self, column: usize, numbers: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; self.sizes[column]];
        for (group, number) in self.of[column].iter().zip(numbers) {
            sums[usize::from(*group)] += number;
        }
        sums
    }

    /// Number of values in each group of a column.
    pub(super) fn members(&self, column: usize) -> Vec<f64> {
        self.sums(column, &vec![1.0; self.of[column].len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Schema;

    fn domain() -> Domain {
        let schema =
            "[[column]]\nname = 'a'\nbounds = [0, 1]\n[[column]]\nname = 'b'\ncategories = ['u', 'v', 'w']\n";
        Domain::new(&Schema::parse(schema).unwrap()).unwrap()
    }

    #[test]
    fn frequent_values_are_alone_and_rare_ones_are_together() {
        let mut numbers = vec![0.0; 35];
        (numbers[0], numbers[3], numbers[10], numbers[34]) = (900.0, 50.0, 60.0, 3.0);
        let groups = Groups::frequent(&domain(), &[numbers, vec![5.0, 700.0, 8.0, 300.0]], 100.0);
        assert_eq!(groups.sizes, [2, 2]);
        assert_eq!(groups.of[0], [vec![0], vec![1; 34]].concat());
        assert_eq!(groups.of[1], [1, 0, 1, 1]);
        assert_eq!(groups.sums(1, &[5.0, 700.0, 8.0, 300.0]), [700.0, 313.0]);
        assert_eq!(groups.members(0), [1.0, 34.0]);
    }

    #[test]
    fn groups_of_similar_counts_are_few_and_hold_every_value() {
        let uniform = vec![10.0; 35];
        let groups = Groups::similar(&domain(), &[uniform, vec![0.0, 0.0, 9.0, 0.0]], 4);
        assert!(groups.sizes[0] == 4 && groups.of[0].is_sorted() && groups.sizes[1] <= 4);
        for (of, size) in groups.of.iter().zip(&groups.sizes) {
            assert!((0..*size).all(|group| of.contains(&(group as u16))), "{groups:?}");
            assert!(of.iter().all(|group| usize::from(*group) < *size));
        }
    }

    #[test]
    fn shares_of_the_values_in_a_group_sum_to_one() {
        let groups = Groups { of: vec![vec![0, 1, 0, 1]], sizes: vec![2] };
        assert_eq!(groups.shares(0, &[3.0, 0.0, 1.0, 0.0]), [0.75, 0.5, 0.25, 0.5]);
    }
}
