//! Half a bell cut into blocks, and a table from which a block is drawn with one comparison.
//!
//! Block a is [a/64, (a+1)/64) in units of the scale. A draw proposes block a with probability proportional to its highest density
//! e^-g(a/64), by the alias method [Wal77] on 2¹⁰ columns of 2¹¹⁶ tickets each: an exact integer statement, so that the table itself
//! can be checked (`tests`). The tickets that are left over after rounding belong to nobody: drawing one means drawing again,
//! which changes no probability.

use super::fixed::exp_minus;

/// Columns of the table.
pub(super) const COLUMNS: usize = 1 << COLUMN_BITS;
pub(super) const COLUMN_BITS: u32 = 10;

/// A column has 2¹¹⁶ tickets, the table 2¹²⁶.
pub(super) const TICKET_BITS: u32 = 116;

/// How many leading bits of a ticket are drawn before the others.
pub(super) const LEADING_BITS: u32 = 15;
pub(super) const TRAILING_BITS: u32 = TICKET_BITS - LEADING_BITS;

/// What a column decides between: itself below the boundary, another from there on.
pub(super) struct Table {
    /// Leading bits of the boundary followed by zeros for the column, and the other item: what nearly every draw needs.
    pub(super) leading: [(u32, u32); COLUMNS],
    /// The boundary: the first ticket that is the other's.
    pub(super) boundary: [u128; COLUMNS],
}

/// Tickets of the Gaussian's blocks: 2¹²⁰ e^-(a²/2¹³ + s), the shift s such that they fill the table up to 10⁻¹². Beyond 13 standard
/// deviations there is nothing.
pub(super) const GAUSSIAN_BLOCKS: usize = 832;
const GAUSSIAN_SHIFT: u128 = 255_092_720_817 << 24;

pub(super) fn gaussian_tickets() -> Vec<u128> {
    (0..GAUSSIAN_BLOCKS as u128).map(|a| exp_minus(((a * a) << 51) + GAUSSIAN_SHIFT) >> 7).collect()
}

/// Tickets of the Laplace distribution's blocks, 2¹²⁰ e^-(a/64 + s), and last of everything beyond 8.
///
/// The exponential distribution has no memory: beyond 8 it is 8 and another draw. A block of n tickets is accepted with probability
/// 64(1 - e^-1/64), so all blocks together with 64(1 - e^-8) times the first one's tickets, and the rest with certainty; the
/// rest therefore has 64e^-8 times as many.
pub(super) const LAPLACE_BLOCKS: usize = 512;
const LAPLACE_SHIFT: u128 = 8_575_883_149 << 24;

pub(super) fn laplace_tickets() -> Vec<u128> {
    let blocks = (0..LAPLACE_BLOCKS as u128).map(|a| exp_minus((a << 58) + LAPLACE_SHIFT) >> 7);
    blocks.chain([exp_minus((8 << 64) + LAPLACE_SHIFT) >> 1]).collect()
}

impl Table {
    /// Items 0, 1, … with these numbers of tickets; what is missing to 2¹²⁶ goes to one more item, which stands for nothing.
    ///
    /// # Contract
    /// Fewer than 1024 items with fewer than 2¹²⁶ tickets in all, and more than 2¹²⁶ - 2¹⁰⁰: the last item then never
    /// fills as much as one leading bit, so that only a comparison of whole tickets can find it.
    pub(super) fn new(mut tickets: Vec<u128>) -> Self {
        const FULL: u128 = 1 << TICKET_BITS;
        let total: u128 = tickets.iter().sum();
        let missing = (1_u128 << (TICKET_BITS + COLUMN_BITS)).checked_sub(total).filter(|&missing| missing < 1 << 100);
        tickets.push(missing.expect("the shift fills the table"));
        assert!(tickets.len() <= COLUMNS, "one column for each item");
        tickets.resize(COLUMNS, 0);

        // [Vos91]: a column that is not full is filled up by an item that has more than a column; this settles that column and
        // leaves the average of the others where it was, so in the end every column is full to the last ticket.
        let mut boundary = [FULL; COLUMNS];
        let mut other = [0; COLUMNS];
        let (mut poor, mut rich): (Vec<usize>, Vec<usize>) = (0..COLUMNS).partition(|&item| tickets[item] < FULL);
        while let (Some(column), Some(&giver)) = (poor.pop(), rich.last()) {
            boundary[column] = tickets[column];
            other[column] = giver as u32;
            tickets[giver] -= FULL - tickets[column];
            if tickets[giver] < FULL {
                rich.pop();
                poor.push(giver);
            }
        }
        let leading = std::array::from_fn(|column| (((boundary[column] >> TRAILING_BITS) as u32) << COLUMN_BITS, other[column]));
        Self { leading, boundary }
    }
}
