//! Draws rows from a distribution.
//!
//! Rows are not drawn independently of each other: the number of rows in a cell is its expected number, rounded.
//! This adds less error than independent draws, and no information about records.

use super::{distribution::Distribution, groups::Groups};
use crate::random::PublicRandom;

/// Draws the group of each column, for a number of rows.
pub(super) fn groups(distribution: &Distribution, rows: usize, random: &mut PublicRandom) -> Vec<Vec<u16>> {
    let tree = &distribution.tree;
    let mut drawn: Vec<Vec<u16>> = vec![vec![0; rows]; tree.sizes.len()];
    // Parents come first, so the columns of a separator are drawn before the rest of a clique.
    for (clique, table) in tree.cliques.iter().zip(&distribution.cliques) {
        let mut cells: Vec<Vec<(usize, f64)>> = vec![Vec::new(); tree.cells_of(&clique.separator)];
        for (cell, separator) in tree.projection(&clique.columns, &clique.separator).into_iter().enumerate() {
            cells[separator as usize].push((cell, table[cell]));
        }
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); cells.len()];
        let mut of_rows = vec![0; rows];
        for column in &clique.separator {
            let groups = of_rows.iter_mut().zip(&drawn[*column]);
            groups.for_each(|(cell, group)| *cell = *cell * tree.sizes[*column] + usize::from(*group));
        }
        for (row, cell) in of_rows.into_iter().enumerate() {
            members[cell].push(row as u32);
        }
        for (cells, members) in cells.iter().zip(&mut members) {
            let weights: Vec<f64> = cells.iter().map(|(_, p)| *p).collect();
            shuffle(members, random);
            let mut next = members.iter();
            for ((cell, _), count) in cells.iter().zip(rounded(&weights, members.len(), random)) {
                for row in next.by_ref().take(count) {
                    let mut rest = *cell;
                    for column in clique.columns.iter().rev() {
                        drawn[*column][*row as usize] = (rest % tree.sizes[*column]) as u16;
                        rest /= tree.sizes[*column];
                    }
                }
            }
        }
    }
    drawn
}

/// Draws the value of each row of a column within its group, by the share of each value in its group.
pub(super) fn values(
    groups: &Groups,
    column: usize,
    shares: &[f32],
    drawn: &[u16],
    random: &mut PublicRandom,
) -> Vec<u16> {
    let mut values = vec![0; drawn.len()];
    let mut members: Vec<Vec<u32>> = vec![Vec::new(); groups.sizes[column]];
    for (row, group) in drawn.iter().enumerate() {
        members[usize::from(*group)].push(row as u32);
    }
    for (group, members) in members.iter_mut().enumerate() {
        let of = groups.of[column].iter().enumerate().filter(|(_, of)| usize::from(**of) == group);
        let own: Vec<usize> = of.map(|(value, _)| value).collect();
        let weights: Vec<f64> = own.iter().map(|value| f64::from(shares[*value])).collect();
        shuffle(members, random);
        let mut next = members.iter();
        for (value, count) in own.iter().zip(rounded(&weights, members.len(), random)) {
            next.by_ref().take(count).for_each(|row| values[*row as usize] = *value as u16);
        }
    }
    values
}

/// Whole numbers with this sum, in proportion to weights. Each is its expected number, rounded up or down.
///
/// Rounding up has the probability that makes the expectation exact (systematic sampling in random order).
fn rounded(weights: &[f64], sum: usize, random: &mut PublicRandom) -> Vec<usize> {
    let total: f64 = weights.iter().sum();
    let is_usable = total > 0.0 && total.is_finite();
    // Where nothing is likely, everything is equally likely.
    let share = |weight: &f64| if is_usable { weight / total } else { 1.0 / weights.len() as f64 };
    let expected: Vec<f64> = weights.iter().map(|weight| share(weight) * sum as f64).collect();
    let mut counts: Vec<usize> = expected.iter().map(|x| x.floor() as usize).collect();
    let mut left = sum.saturating_sub(counts.iter().sum());
    let mut order: Vec<u32> = (0..weights.len() as u32).collect();
    shuffle(&mut order, random);
    let mut passed = f64::from(random.between(0.0, 1.0));
    for place in &order {
        let place = *place as usize;
        passed += expected[place].fract();
        if passed >= 1.0 && left > 0 {
            passed -= 1.0;
            counts[place] += 1;
            left -= 1;
        }
    }
    // Sums of fractions are rounded. What is missing goes to the likeliest.
    let likeliest = (0..weights.len()).max_by(|a, b| expected[*a].total_cmp(&expected[*b]));
    if let Some(place) = likeliest {
        counts[place] += left;
    }
    counts
}

/// Puts a list into a random order (Fisher and Yates).
fn shuffle(list: &mut [u32], random: &mut PublicRandom) {
    for end in (1..list.len()).rev() {
        list.swap(end, random.below(end + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::synthesis::{
        junction::JunctionTree,
        propagation::{Propagation, sums},
    };

    #[test]
    fn drawn_rows_have_the_marginals_of_the_distribution() {
        let tree = JunctionTree::new(&[3, 2, 4, 2], &[(0, 1), (1, 2)]);
        let mut random = PublicRandom::new(1);
        let potentials = (tree.cliques.iter())
            .map(|c| (0..tree.cells_of(&c.columns)).map(|_| f64::from(random.normal())).collect())
            .collect();
        let cliques = Propagation::new(&tree).run(potentials).cliques;
        let distribution = Distribution { tree, cliques };
        let rows = 10_000;
        let drawn = groups(&distribution, rows, &mut random);
        for (clique, table) in distribution.tree.cliques.iter().zip(&distribution.cliques) {
            let mut counts = vec![0.0; table.len()];
            let cell = |row: usize| {
                let of = |cell, c: &usize| cell * distribution.tree.sizes[*c] + usize::from(drawn[*c][row]);
                clique.columns.iter().fold(0, of)
            };
            (0..rows).for_each(|row| counts[cell(row)] += 1.0);
            for (count, p) in counts.iter().zip(table) {
                // A count is off by the rounding of its own clique and of those above.
                assert!((count - rows as f64 * p).abs() < 4.0, "{count} {}", rows as f64 * p);
            }
        }
        // Columns that share no clique are independent: rows are shuffled. Six standard deviations.
        let far: Vec<f64> = (0..rows).map(|row| f64::from(drawn[3][row] * 3 + drawn[0][row])).collect();
        let mut joint = vec![0.0; 6];
        for cell in &far {
            joint[*cell as usize] += 1.0 / rows as f64;
        }
        let [a, b] = [0, 3].map(|column| distribution.column(column));
        for (cell, p) in joint.iter().enumerate() {
            let expected = b[cell / 3] * a[cell % 3];
            assert!((p - expected).abs() < 6.0 * (expected / rows as f64).sqrt(), "{p} {expected}");
        }
        assert_eq!(sums(&joint, &[0; 6], 1)[0].round(), 1.0);
    }

    #[test]
    fn rounded_counts_have_their_sum_and_their_expectation() {
        let mut random = PublicRandom::new(2);
        let weights = [0.05, 0.3, 0.65, 0.0];
        let mut sums = [0; 4];
        for _ in 0..4_000 {
            let counts = rounded(&weights, 3, &mut random);
            assert_eq!(counts.iter().sum::<usize>(), 3);
            for ((sum, count), weight) in sums.iter_mut().zip(&counts).zip(&weights) {
                assert!((*count as f64 - 3.0 * weight).abs() < 1.0);
                *sum += count;
            }
        }
        for (sum, weight) in sums.iter().zip(&weights) {
            assert!((*sum as f64 / 4_000.0 - 3.0 * weight).abs() < 6.0 * 0.5 / 63.0, "{sums:?}");
        }
        for weights in [vec![0.0, 0.0], vec![f64::NAN, 1.0]] {
            assert_eq!(rounded(&weights, 7, &mut random).iter().sum::<usize>(), 7);
        }
        assert_eq!(rounded(&[], 0, &mut random), [0; 0]);
    }

    #[test]
    fn values_are_drawn_by_their_shares() {
        let groups = Groups { of: vec![vec![0, 1, 0]], sizes: vec![2] };
        let drawn = [vec![0_u16; 100], vec![1; 50]].concat();
        let found = values(&groups, 0, &[0.25, 1.0, 0.75], &drawn, &mut PublicRandom::new(3));
        let count = |value: u16| found.iter().filter(|found| **found == value).count();
        assert_eq!([count(0), count(1), count(2)], [25, 50, 75]);
    }
}
