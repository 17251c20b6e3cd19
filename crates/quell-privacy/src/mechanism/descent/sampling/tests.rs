//! Batches have the distribution that was charged for.
//!
//! A record affects only its own piece.

use super::*;
use crate::noise::tests::{agrees, stream};

/// Which of the sets of three out of six this is.
fn set_number(batch: &[usize]) -> usize {
    let all: Vec<Vec<usize>> =
        (0..6).flat_map(|a| (a + 1..6).flat_map(move |b| (b + 1..6).map(move |c| vec![a, b, c]))).collect();
    all.iter().position(|set| set == batch).expect("three numbers in increasing order")
}

#[test]
fn sets_of_fixed_size_are_all_equally_likely() {
    let mut stream = stream(21);
    let sampling = Sampling::WithoutReplacement { size: 3, records: 6 };
    let mut counts = [0; 20];
    for _ in 0..200_000 {
        counts[set_number(&sampling.draw(6, &mut stream))] += 1;
    }
    assert!(agrees(&counts, &[1.0 / 20.0; 20]), "{counts:?}");
    // Power: the test would detect a set that is ten percent likelier.
    counts[7] += counts[7] / 10;
    assert!(!agrees(&counts, &[1.0 / 20.0; 20]));
    for (size, records) in [(1, 1), (5, 5), (1, 1000), (999, 1000)] {
        let batch = Sampling::WithoutReplacement { size, records }.draw(records as usize, &mut stream);
        assert!(
            batch.len() as u64 == size
                && batch.is_sorted_by(|a, b| a < b)
                && batch.iter().all(|r| (*r as u64) < records)
        );
    }
}

#[test]
fn coins_of_a_poisson_sample_have_their_rate_and_are_independent() {
    let mut stream = stream(22);
    // The fourth rate is below 2⁻¹⁶: it depends only on the digits that are drawn later.
    for rate in [0.3, 0.5, 1e-3, 1.4e-5, 0.999_99] {
        let sampling = Sampling::Poisson { rate: SamplingRate::new(rate).unwrap() };
        let records = 4_000_003;
        let batch = sampling.draw(records, &mut stream);
        let drawn = batch.len() as u64;
        let counts = [drawn, records as u64 - drawn];
        assert!(agrees(&counts, &[rate, 1.0 - rate]), "{rate}: {drawn}");
        // Power: the test must reject a rarer outcome that is 16 standard deviations likelier.
        let rarer = rate.min(1.0 - rate);
        let other = rarer + 16.0 * (rarer / records as f64).sqrt();
        let other = if rate < 0.5 { other } else { 1.0 - other };
        assert!(!agrees(&counts, &[other, 1.0 - other]), "{rate}: {other} is not told apart");
        assert!(batch.is_sorted_by(|a, b| a < b) && batch.last().is_some_and(|last| *last < records));
        // Consecutive records, also across the end of a buffer.
        let pairs = batch.windows(2).filter(|pair| pair[1] == pair[0] + 1).count() as u64;
        let both = rate * rate;
        assert!(
            agrees(&[pairs, records as u64 - 1 - pairs], &[both, 1.0 - both])
                || both * (records as f64) < 20.0,
            "{rate}: {pairs}"
        );
    }
    assert_eq!(Sampling::Full.draw(5, &mut stream), [0, 1, 2, 3, 4]);
    assert_eq!(Sampling::Poisson { rate: SamplingRate::new(1.0).unwrap() }.draw(3, &mut stream), [0, 1, 2]);
}

#[test]
fn pieces_depend_on_a_record_only_where_it_is() {
    let mut stream = stream(23);
    for round in 0..300 {
        let most = [64, 7][round % 2];
        let records = 1 + stream.below(500) as usize;
        let batch = tagged((0..records).collect(), most, &mut stream);
        let leaver = stream.below(records as u128) as usize;
        let rest: Vec<Drawn> = batch.iter().copied().filter(|(_, record)| *record != leaver).collect();
        let (with, without) = (pieces(&batch, most), pieces(&rest, most));
        assert!(with.iter().all(|piece| !piece.is_empty() && piece.len() <= most));
        assert_eq!(with.concat(), batch);
        // As if the batch were sorted by tag.
        let mut sorted = batch.clone();
        sorted.sort_unstable();
        let sets = |pieces: Vec<&[Drawn]>| {
            pieces.into_iter().map(|piece| piece.iter().copied().collect::<BTreeSet<_>>()).collect::<Vec<_>>()
        };
        assert_eq!(sets(with.clone()), sets(pieces(&sorted, most)));
        let changed: Vec<_> = with.iter().filter(|piece| !without.contains(piece)).collect();
        let affected: usize = changed.iter().map(|piece| piece.len()).sum();
        assert!(changed.len() <= 2 && affected <= most + 1, "{changed:?}");
        // Pieces of a piece are pieces of the whole.
        let twice: Vec<_> =
            pieces(&batch, 3 * most).into_iter().flat_map(|piece| pieces(piece, most)).collect();
        assert_eq!(twice, with);
    }
    // Records with equal tags are summed too.
    let equal: Vec<Drawn> = (0..200).map(|record| (7, record)).collect();
    assert_eq!(pieces(&equal, 64).iter().map(|piece| piece.len()).collect::<Vec<_>>(), [64, 64, 64, 8]);
}
