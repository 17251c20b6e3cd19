//! A half-density cut into blocks, and a table to draw a block.
//!
//! A draw takes one comparison.
//!
//! Block a is [a/64, (a+1)/64) in units of the scale. A draw proposes block a with probability proportional
//! to its highest density e^-g(a/64), by the alias method [Wal77] on 2¹⁰ columns of 2¹¹⁶ tickets each. The
//! ticket counts are exact integers, so that `tests` can check the table itself. The tickets that are left
//! over after rounding belong to no block: a draw of such a ticket is repeated, which changes no probability.

use super::fixed::exp_minus;

/// Number of columns of the table.
pub(super) const COLUMNS: usize = 1 << COLUMN_BITS;
pub(super) const COLUMN_BITS: u32 = 10;

/// A column has 2¹¹⁶ tickets, the table 2¹²⁶.
pub(super) const TICKET_BITS: u32 = 116;

/// How many leading bits of a ticket are drawn before the trailing bits.
pub(super) const LEADING_BITS: u32 = 15;
pub(super) const TRAILING_BITS: u32 = TICKET_BITS - LEADING_BITS;

/// An alias table.
///
/// Tickets below a column's boundary belong to the column, the others to its alias.
pub(super) struct Table {
    /// Leading bits of the boundary, and the alias; enough for nearly every draw.
    ///
    /// Zeros for the column follow the leading bits.
    pub(super) leading: [(u32, u32); COLUMNS],
    /// The boundary: the first ticket that belongs to the alias.
    pub(super) boundary: [u128; COLUMNS],
}

/// Number of blocks of the Gaussian; nothing lies beyond 13 standard deviations.
pub(super) const GAUSSIAN_BLOCKS: usize = 832;
const GAUSSIAN_SHIFT: u128 = 255_092_720_817 << 24;

/// Tickets of the Gaussian's blocks: 2¹²⁰ e^-(a²/2¹³ + s).
///
/// The shift s fills the table up to 10⁻¹².
pub(super) fn gaussian_tickets() -> Vec<u128> {
    (0..GAUSSIAN_BLOCKS as u128).map(|a| exp_minus(((a * a) << 51) + GAUSSIAN_SHIFT) >> 7).collect()
}

/// Number of blocks of the Laplace distribution, which together cover [0, 8).
pub(super) const LAPLACE_BLOCKS: usize = 512;
const LAPLACE_SHIFT: u128 = 8_575_883_149 << 24;

/// Tickets of the Laplace distribution's blocks, and last those of everything beyond 8.
///
/// A block has 2¹²⁰ e^-(a/64 + s) tickets, where the shift s fills the table.
/// The exponential distribution has no memory: a draw beyond 8 is 8 plus another draw. A block of n tickets
/// is accepted with probability 64(1 - e^-1/64), so all blocks together with 64(1 - e^-8) times the first
/// one's tickets, and the rest beyond 8 with certainty; the rest therefore has 64e^-8 times as many.
pub(super) fn laplace_tickets() -> Vec<u128> {
    let blocks = (0..LAPLACE_BLOCKS as u128).map(|a| exp_minus((a << 58) + LAPLACE_SHIFT) >> 7);
    blocks.chain([exp_minus((8 << 64) + LAPLACE_SHIFT) >> 1]).collect()
}

impl Table {
    /// Builds the table for items 0, 1, … with the given numbers of tickets.
    ///
    /// One additional item, which stands for no block, receives the tickets that are missing to 2¹²⁶.
    ///
    /// # Contract
    /// There are fewer than 1024 items with fewer than 2¹²⁶ tickets in all, and more than 2¹²⁶ - 2¹⁰⁰. The
    /// additional item then never fills as much as one leading bit, so that only a comparison of whole
    /// tickets can find it.
    pub(super) fn new(mut tickets: Vec<u128>) -> Self {
        const FULL: u128 = 1 << TICKET_BITS;
        let total: u128 = tickets.iter().sum();
        let missing =
            (1_u128 << (TICKET_BITS + COLUMN_BITS)).checked_sub(total).filter(|&missing| missing < 1 << 100);
        tickets.push(missing.expect("the shift fills the table"));
        assert!(tickets.len() <= COLUMNS, "one column for each item");
        tickets.resize(COLUMNS, 0);

        // [Vos91]: an item that has more than a full column fills up a column that is not full. This settles
        // that column and keeps the average of the other columns, so in the end every column is full to the
        // last ticket.
        let mut boundary = [FULL; COLUMNS];
        let mut other = [0; COLUMNS];
        let (mut underfull, mut overfull): (Vec<usize>, Vec<usize>) =
            (0..COLUMNS).partition(|&item| tickets[item] < FULL);
        while let (Some(column), Some(&donor)) = (underfull.pop(), overfull.last()) {
            boundary[column] = tickets[column];
            other[column] = donor as u32;
            tickets[donor] -= FULL - tickets[column];
            if tickets[donor] < FULL {
                overfull.pop();
                underfull.push(donor);
            }
        }
        let leading = std::array::from_fn(|column| {
            (((boundary[column] >> TRAILING_BITS) as u32) << COLUMN_BITS, other[column])
        });
        Self { leading, boundary }
    }
}
