//! Keys and streams.

use super::{
    super::random::{Key, Randomness},
    agrees, stream, uncorrelated,
};

fn start(key: &Key, number: u64) -> [u8; 32] {
    let mut bytes = [0; 32];
    key.stream(number).fill(&mut bytes);
    bytes
}

#[test]
fn stream_is_chacha_with_twelve_rounds() {
    // Keystream of the zero key and nonce, from the published test vectors of the cipher.
    let Randomness::Seeded { seed, .. } = Randomness::seeded(0) else { unreachable!() };
    assert_eq!(start(&seed, 0)[..8], [0x9b, 0xf4, 0x9a, 0x6a, 0x07, 0x55, 0xf9, 0x53]);
}

#[test]
fn operating_system_never_gives_the_same_key_twice() {
    // The source has no state that a fork or a copy of memory could repeat: each key is read from the system.
    let mut source = Randomness::OperatingSystem;
    let starts: Vec<_> = (0..4).map(|_| start(&source.key().unwrap(), 0)).collect();
    for (i, one) in starts.iter().enumerate() {
        assert!(starts[..i].iter().all(|other| one != other));
    }
    assert_eq!(size_of::<Key>(), 32);
}

#[test]
fn seeded_keys_repeat_from_the_start_and_differ_among_themselves() {
    let (mut one, mut same, mut other) =
        (Randomness::seeded(7), Randomness::seeded(7), Randomness::seeded(8));
    let mut seen = Vec::new();
    for _ in 0..100 {
        let key = start(&one.key().unwrap(), 0);
        assert_eq!(key, start(&same.key().unwrap(), 0));
        assert_ne!(key, start(&other.key().unwrap(), 0));
        assert!(!seen.contains(&key));
        seen.push(key);
    }
}

#[test]
fn streams_of_a_key_are_independent() {
    let key = Randomness::seeded(1).key().unwrap();
    let draw = |number| {
        let mut stream = key.stream(number);
        (0..100_000).map(|_| (stream.next_u64() >> 32) as i64 - (1 << 31)).collect::<Vec<i64>>()
    };
    for (left, right) in [(0, 1), (1, 2), (0, 1 << 32), (3, u64::MAX)] {
        assert!(uncorrelated(&draw(left), &draw(right)), "streams {left} and {right}");
    }
    assert!(!uncorrelated(&draw(5), &draw(5)));
}

#[test]
fn below_is_uniform_and_a_remainder_is_not() {
    let mut stream = stream(2);
    for bound in [1_u128, 2, 3, 7, 1000, (1 << 64) - 1, 1 << 64, (1 << 64) + 1, u128::MAX] {
        let cells = bound.min(7);
        let mut counts = vec![0; cells as usize];
        for _ in 0..100_000 {
            let draw = stream.below(bound);
            assert!(draw < bound);
            // Cell of ⌊draw · cells / bound⌋, without the product.
            counts[if bound < 1000 { draw % cells } else { draw / bound.div_ceil(cells) } as usize] += 1;
        }
        assert!(agrees(&counts, &vec![1.0 / cells as f64; cells as usize]), "{bound}: {counts:?}");
    }
    let mut counts = [0; 7];
    for _ in 0..100_000 {
        counts[(stream.bits(6) % 7) as usize] += 1;
    }
    assert!(!agrees(&counts, &[1.0 / 7.0; 7]), "{counts:?}");
}
