//! Learners that keep the contract pass, and each violation is detected.

use super::*;
use crate::mechanism::Vectors;

/// A learner over rows of numbers that breaks the contract in one way.
struct Liar(Vec<Vec<f32>>, Lie);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    None,
    /// Reports lengths that are twice too large: safe, and allowed.
    TooLong,
    /// Cuts blocks into pieces of two: allowed.
    Pieces,
    TooShort,
    LengthOfOthers,
    VectorOfOthers,
    ZeroTimesInfinity,
    Forgets,
    AsksTwice,
    NeverAsks,
    ScalesOfTheFirstPart,
    LastPartTooShort,
    AcrossBlocksInSinglePrecision,
    Overwrites,
}

impl Contributions for Liar {
    fn dimension(&self) -> usize {
        self.0[0].len()
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]) {
        let Liar(rows, lie) = &*self;
        let parts = clipper.parts();
        let most = if *lie == Lie::Pieces { 2 } else { usize::MAX };
        let pieces: Vec<&[usize]> = blocks.iter().flat_map(|block| block.chunks(most)).collect();
        let mut total = vec![0.0_f32; sum.len()];
        if *lie == Lie::Overwrites {
            sum.fill(0.0);
        }
        for block in pieces {
            if *lie != Lie::AcrossBlocksInSinglePrecision {
                total.fill(0.0);
            }
            for (position, record) in block.iter().enumerate() {
                let row = &rows[*record];
                let (mut squared, mut scales, mut start) = (Vec::new(), vec![1.0; parts.len()], 0);
                for length in parts {
                    squared
                        .push(row[start..start + length].iter().map(|&x| f64::from(x).powi(2)).sum::<f64>());
                    start += length;
                }
                match lie {
                    Lie::TooLong => squared.iter_mut().for_each(|s| *s *= 4.0),
                    Lie::TooShort => squared.iter_mut().for_each(|s| *s *= 0.999),
                    Lie::LengthOfOthers if block.len() > 1 => squared[0] *= 1.1,
                    Lie::LastPartTooShort => *squared.last_mut().unwrap() *= 0.5,
                    _ => {}
                }
                if *lie != Lie::NeverAsks {
                    clipper.scales(&squared, &mut scales);
                }
                match lie {
                    Lie::AsksTwice => clipper.scales(&squared, &mut scales),
                    Lie::ScalesOfTheFirstPart => scales = vec![scales[0]; parts.len()],
                    Lie::VectorOfOthers if block.len() > 1 => scales.iter_mut().for_each(|s| *s *= 0.999),
                    Lie::Forgets if position > 0 => continue,
                    _ => {}
                }
                let scales =
                    scales.iter().zip(parts).flat_map(|(scale, length)| std::iter::repeat_n(*scale, *length));
                for ((total, x), scale) in total.iter_mut().zip(row).zip(scales) {
                    if scale != 0.0 || *lie == Lie::ZeroTimesInfinity {
                        *total += scale * x;
                    }
                }
            }
            if *lie != Lie::AcrossBlocksInSinglePrecision {
                sum.iter_mut().zip(&total).for_each(|(sum, total)| *sum += f64::from(*total));
            }
        }
        if *lie == Lie::AcrossBlocksInSinglePrecision {
            sum.iter_mut().zip(&total).for_each(|(sum, total)| *sum += f64::from(*total));
        }
    }
}

const RECORDS: [usize; 7] = [0, 1, 2, 3, 4, 5, 6];

fn rows() -> Vec<Vec<f32>> {
    let third = 1.0 / 3.0;
    vec![
        vec![third, 2.0, -0.7],
        vec![0.01, -0.02, third],
        vec![f32::INFINITY, 0.0, 1.0],
        vec![1e-3, -3.0, 4.0],
        vec![0.0, 0.0, 0.0],
        vec![1e-40, 1e-30, 0.0],
        vec![7.0, f32::NAN, 1e3],
    ]
}

#[test]
fn honest_learners_obey_the_laws_and_liars_do_not() {
    use Lie::{
        AcrossBlocksInSinglePrecision, AsksTwice, Forgets, LastPartTooShort, LengthOfOthers, NeverAsks,
        Overwrites, Pieces, ScalesOfTheFirstPart, TooLong, TooShort, VectorOfOthers, ZeroTimesInfinity,
    };
    for lie in [Lie::None, TooLong, Pieces] {
        assert_eq!(check_contributions(&mut Liar(rows(), lie), &RECORDS), Ok(()), "{lie:?}");
        assert_eq!(check_parts(&mut Liar(rows(), lie), &RECORDS, &[1, 2]), Ok(()), "{lie:?}");
        assert_eq!(check_parts(&mut Liar(rows(), lie), &RECORDS, &[1, 0, 1, 1]), Ok(()), "{lie:?}");
    }
    for (lie, law) in [
        (TooShort, "less than that of the vector"),
        (LengthOfOthers, "depends on other records"),
        (VectorOfOthers, "not that of the scaled vectors"),
        (ZeroTimesInfinity, "scale zero adds something"),
        (Forgets, "not that of the scaled vectors"),
        (AsksTwice, "2 times"),
        (NeverAsks, "scale zero"),
        (AcrossBlocksInSinglePrecision, "double precision"),
        (Overwrites, "scale zero"),
    ] {
        let broken = check_contributions(&mut Liar(rows(), lie), &RECORDS).unwrap_err();
        assert!(broken.contains(law), "{lie:?}: {broken}");
        let broken = check_parts(&mut Liar(rows(), lie), &RECORDS, &[2, 1]).unwrap_err();
        assert!(broken.contains(law), "{lie:?} in parts: {broken}");
    }
    for (lie, law) in
        [(ScalesOfTheFirstPart, "not that of the scaled vectors"), (LastPartTooShort, "in part 1")]
    {
        let broken = check_parts(&mut Liar(rows(), lie), &RECORDS, &[2, 1]).unwrap_err();
        assert!(broken.contains(law), "{lie:?}: {broken}");
    }
    assert!(check_parts(&mut Liar(rows(), Lie::None), &RECORDS, &[2, 2]).is_err());
}

#[test]
fn vectors_that_are_there_obey_the_laws() {
    let mut vectors = Vectors::new(3, rows().concat());
    assert_eq!(check_contributions(&mut vectors, &RECORDS), Ok(()));
    for parts in [vec![1, 2], vec![1, 1, 1], vec![0, 3]] {
        assert_eq!(check_parts(&mut vectors, &RECORDS, &parts), Ok(()));
    }
    // More records than fit into a block.
    let many: Vec<usize> = (0..300).map(|i| i % 7).collect();
    assert_eq!(check_parts(&mut vectors, &many, &[2, 1]), Ok(()));
    assert_eq!(check_contributions(&mut vectors, &[]), Ok(()));
    let sum = sum(&mut vectors, &[0, 3]);
    assert!((sum[1] + 1.0).abs() < 1e-9, "{sum:?}");
}
