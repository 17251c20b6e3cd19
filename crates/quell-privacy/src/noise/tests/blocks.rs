//! The alias table and its fixed-point weights, against independently computed numbers.

use super::super::{
    blocks::{
        COLUMN_BITS, COLUMNS, GAUSSIAN_BLOCKS, LAPLACE_BLOCKS, TICKET_BITS, TRAILING_BITS, Table,
        gaussian_tickets, laplace_tickets,
    },
    fixed::{ERROR, exp_minus, multiply_high},
};

/// 2¹²⁷e^-x, from Python's decimal module with 60 digits.
const POWERS: [(u128, u128); 6] = [
    (0, 170_141_183_460_469_231_731_687_303_715_884_105_728),
    (1 << 63, 103_195_844_248_566_597_636_880_352_756_141_321_140),
    (1 << 64, 62_591_443_491_685_266_058_625_363_149_075_414_151),
    (9 << 62, 17_932_748_802_771_354_904_924_329_712_247_511_938),
    (161 << 61, 309_480_294_189_527_495_632_965_273_319),
    (169 << 63, 34),
];

#[test]
fn exponential_is_within_its_error() {
    for (x, expected) in POWERS {
        assert!(exp_minus(x).abs_diff(expected) <= ERROR, "{x}: {}", exp_minus(x));
    }
    assert_eq!(exp_minus(1000 << 64), 0);
    // Against the next lower x: a jump where the whole part changes would show.
    for whole in 1..90_u128 {
        let (at, before) = (exp_minus(whole << 64), exp_minus((whole << 64) - 1));
        let slope = at >> 64;
        assert!(before.abs_diff(at + slope) <= 2 * ERROR, "{whole}");
    }
}

#[test]
fn products_have_their_high_half() {
    assert_eq!(multiply_high(u128::MAX, u128::MAX), u128::MAX - 1);
    assert_eq!(multiply_high(1 << 127, 2), 1);
    assert_eq!(multiply_high((1 << 127) + (1 << 64), 1 << 64 | 1), (1 << 63) + 1);
    assert_eq!(multiply_high(u128::MAX, 1), 0);
}

/// Tickets of every item, read off the table.
fn tickets(table: &Table) -> Vec<u128> {
    let mut tickets = vec![0; COLUMNS];
    for (column, &boundary) in table.boundary.iter().enumerate() {
        let (leading, other) = table.leading[column];
        assert_eq!(u128::from(leading), (boundary >> TRAILING_BITS) << COLUMN_BITS);
        tickets[column] += boundary;
        tickets[other as usize] += (1 << TICKET_BITS) - boundary;
    }
    tickets
}

fn check(wanted: &[u128], known: &[(usize, u128)], slack: u128) {
    let table = Table::new(wanted.to_vec());
    let found = tickets(&table);
    // Exact to the last ticket. The rest is one item, which is no column's alias and is too small for a
    // leading bit.
    assert_eq!(found[..wanted.len()], *wanted);
    assert_eq!(found.iter().sum::<u128>(), 1 << 126);
    assert!(found[wanted.len()] < 1 << 100 && table.leading[wanted.len()].0 == 0);
    assert!(table.leading.iter().all(|(_, other)| *other as usize != wanted.len()));
    assert!(found[wanted.len() + 1..].iter().all(|&tickets| tickets == 0));
    for &(item, expected) in known {
        assert!(found[item].abs_diff(expected) <= slack, "{item}: {} {expected}", found[item]);
    }
}

#[test]
fn gaussian_table_holds_the_bell() {
    // 2¹²⁰ e^-(a²/2¹³ + 255092720817/2⁴⁰), decimal as above.
    let known = [
        (0, 1_054_000_412_372_015_194_990_228_682_079_304_424),
        (1, 1_053_871_758_064_897_309_618_756_483_426_353_784),
        (100, 310_954_001_266_950_005_249_551_410_793_091_929),
        (400, 3_471_576_030_498_134_406_375_330_414),
        (831, 0),
    ];
    assert_eq!(gaussian_tickets().len(), GAUSSIAN_BLOCKS);
    check(&gaussian_tickets(), &known, 1);
}

#[test]
fn laplace_table_holds_the_blocks_and_the_rest() {
    // 2¹²⁰ e^-(a/64 + 8575883149/2⁴⁰), and last 64 times that at 8.
    let known = [
        (0, 1_318_900_716_520_384_082_858_619_922_198_610_813),
        (1, 1_298_453_056_178_198_317_977_296_790_702_418_032),
        (100, 276_456_608_704_414_547_772_436_923_639_206_782),
        (511, 449_409_346_418_999_042_222_655_161_244_068),
    ];
    assert_eq!(laplace_tickets().len(), LAPLACE_BLOCKS + 1);
    check(&laplace_tickets(), &known, 1);
    check(&laplace_tickets(), &[(512, 28_316_281_619_611_766_679_961_460_372_248_860)], 33);
}
