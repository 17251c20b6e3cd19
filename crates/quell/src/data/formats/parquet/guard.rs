//! Checks headers of a Parquet file before the decoder trusts them.
//!
//! The decoder allocates what a page's header announces and recurses as deep as the schema nests. A program
//! cannot recover when it runs out of memory or stack. So this module walks the headers first: it reads a few
//! fields of Thrift's compact protocol and compares every length with the bytes that are present.
//!
//! No writer produces from any records what this module refuses: each bound is that of the format or of a
//! codec, never one that a long value could exceed. Otherwise one person's cell could cause an error.

use std::{
    fs::File,
    io::{BufRead, BufReader, Cursor, Read, Seek, SeekFrom},
};

use flate2::read::MultiGzDecoder;
use parquet::basic::Compression;

/// The deepest nesting of groups. No one nests deeper, and each level costs the decoder some stack.
const DEEPEST: usize = 32;

/// The most rows for each byte of a file. A constant column takes about 200 bytes for a million rows.
const ROWS_PER_BYTE: u64 = 1 << 13;

/// Checks that a file of `length` bytes can have this number of rows.
pub(super) fn rows(rows: i64, length: u64) -> Option<()> {
    (u64::try_from(rows).ok()? <= length.saturating_mul(ROWS_PER_BYTE)).then_some(())
}

/// Checks that the footer's schema is a tree that is not too deep.
pub(super) fn footer(mut file: &File) -> Option<()> {
    let mut end = [0; 8];
    file.seek(SeekFrom::End(-8)).ok()?;
    file.read_exact(&mut end).ok()?;
    let length = u32::from_le_bytes(end[..4].try_into().ok()?);
    file.seek(SeekFrom::End(-8 - i64::from(length))).ok()?;
    let mut bytes = Vec::new();
    file.take(u64::from(length)).read_to_end(&mut bytes).ok()?;
    let mut compact = Compact::of(&bytes);
    let mut children = Vec::new();
    compact.fields(DEEPEST, |compact, field, kind| {
        if (field, kind) != (2, LIST) {
            return compact.skip(kind, DEEPEST);
        }
        let (count, kind) = compact.list()?;
        (kind == STRUCT).then_some(())?;
        (0..count).try_for_each(|_| {
            let mut own = 0;
            compact.fields(DEEPEST, |compact, field, kind| {
                if (field, kind) == (5, I32) {
                    compact.signed().map(|count| own = count)
                } else {
                    compact.skip(kind, DEEPEST)
                }
            })?;
            children.push(u64::try_from(own).ok()?);
            Some(())
        })
    })?;
    tree(&children)
}

/// Checks that a tree in depth-first order is complete and not too deep.
///
/// `children` holds the number of children of each node.
fn tree(children: &[u64]) -> Option<()> {
    let mut open: Vec<u64> = Vec::new();
    for count in children {
        (*count < children.len() as u64).then_some(())?;
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        if *count > 0 {
            open.push(*count);
        }
        (open.len() <= DEEPEST).then_some(())?;
        while open.last() == Some(&0) {
            open.pop();
        }
    }
    open.is_empty().then_some(())
}

/// Checks that a column's pages fill its bytes and decompress to their announced lengths.
pub(super) fn pages(file: &File, start: u64, length: u64, codec: Compression) -> Option<()> {
    let end = start.checked_add(length).filter(|end| file.metadata().is_ok_and(|file| *end <= file.len()))?;
    let densest = match codec {
        Compression::UNCOMPRESSED => 1,
        Compression::SNAPPY => 32,
        Compression::LZ4 | Compression::LZ4_RAW => 256,
        Compression::GZIP(_) => 1032,
        _ => 1 << 15,
    };
    let mut at = start;
    while at < end {
        let page = page(file, at, end - at)?;
        let body = at + page.header;
        at = body.checked_add(page.packed).filter(|at| *at <= end)?;
        // The length of a page is a signed integer of 32 bits, and so is the length of a value.
        (page.unpacked <= page.packed.saturating_mul(densest) + 64).then_some(())?;
        // Every other codec is given the announced length and stops there.
        if matches!(codec, Compression::GZIP(_)) && page.compressed {
            let levels = page.levels.min(page.packed);
            unpacks(file, body + levels, page.packed - levels, page.unpacked)?;
        }
    }
    Some(())
}

/// Checks that gzip data does not decompress to more than `most` bytes.
fn unpacks(mut file: &File, at: u64, packed: u64, most: u64) -> Option<()> {
    file.seek(SeekFrom::Start(at)).ok()?;
    let mut unpacked = MultiGzDecoder::new(BufReader::new(file.take(packed))).take(most + 1);
    let count = std::io::copy(&mut unpacked, &mut std::io::sink());
    // A damaged stream is left to the decoder, which stops at the damage.
    count.map_or(Some(()), |count| (count <= most).then_some(()))
}

/// The fields of a page's header.
struct Page {
    /// The length of the header itself in bytes.
    header: u64,
    packed: u64,
    unpacked: u64,
    /// The bytes before the compressed ones, in version 2 of data pages.
    levels: u64,
    compressed: bool,
}

/// Reads a page's header of at most `most` bytes.
///
/// The header may quote the longest value of its page, which is skipped.
fn page(mut file: &File, at: u64, most: u64) -> Option<Page> {
    file.seek(SeekFrom::Start(at)).ok()?;
    let mut compact = Compact { reader: BufReader::with_capacity(1 << 12, file), left: most };
    let (mut packed, mut unpacked, mut levels, mut compressed) = (None, None, 0, true);
    compact.fields(DEEPEST, |compact, field, kind| {
        match (field, kind) {
            (2, I32) => unpacked = Some(compact.signed()?),
            (3, I32) => packed = Some(compact.signed()?),
            (8, STRUCT) => compact.fields(DEEPEST, |compact, field, kind| {
                match (field, kind) {
                    (5 | 6, I32) => levels += u64::try_from(compact.signed()?).ok()?,
                    (7, FALSE) => compressed = false,
                    _ => compact.skip(kind, DEEPEST)?,
                }
                Some(())
            })?,
            _ => compact.skip(kind, DEEPEST)?,
        }
        Some(())
    })?;
    let header = most - compact.left;
    let size = |size: Option<i64>| u64::try_from(i32::try_from(size?).ok()?).ok();
    Some(Page { header, packed: size(packed)?, unpacked: size(unpacked)?, levels, compressed })
}

// Types of Thrift's compact protocol.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// The rest of a value in the compact protocol. `None` means damaged or truncated.
struct Compact<R> {
    reader: BufReader<R>,
    /// The number of bytes that it may still have.
    left: u64,
}

impl<'a> Compact<Cursor<&'a [u8]>> {
    fn of(bytes: &'a [u8]) -> Self {
        Self { reader: BufReader::new(Cursor::new(bytes)), left: bytes.len() as u64 }
    }
}

impl<R: Read + Seek> Compact<R> {
    fn byte(&mut self) -> Option<u8> {
        self.left = self.left.checked_sub(1)?;
        let first = *self.reader.fill_buf().ok()?.first()?;
        self.reader.consume(1);
        Some(first)
    }

    /// Reads an unsigned integer: seven bits in each byte, the lowest first.
    fn unsigned(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Reads a signed integer: 0, -1, 1, -2, … are stored as 0, 1, 2, 3, …
    fn signed(&mut self) -> Option<i64> {
        let number = self.unsigned()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn bytes(&mut self, count: u64) -> Option<()> {
        self.left = self.left.checked_sub(count)?;
        self.reader.seek_relative(i64::try_from(count).ok()?).ok()
    }

    /// Reads the length of a list and the type of its elements.
    ///
    /// Each element takes at least one byte.
    fn list(&mut self) -> Option<(u64, u8)> {
        let first = self.byte()?;
        let count = if first >> 4 == 15 { self.unsigned()? } else { u64::from(first >> 4) };
        (count <= self.left).then_some((count, first & 15))
    }

    /// Passes the fields of a struct to a function, which must read each field completely.
    fn fields(&mut self, depth: usize, mut each: impl FnMut(&mut Self, i64, u8) -> Option<()>) -> Option<()> {
        depth.checked_sub(1)?;
        let mut field = 0;
        loop {
            let first = self.byte()?;
            if first == 0 {
                return Some(());
            }
            field = if first >> 4 == 0 {
                self.signed()?
            } else {
                i64::checked_add(field, i64::from(first >> 4))?
            };
            each(self, field, first & 15)?;
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        let below = depth.checked_sub(1)?;
        match kind {
            TRUE | FALSE => Some(()),
            BYTE => self.bytes(1),
            I16 | I32 | I64 => self.unsigned().map(drop),
            DOUBLE => self.bytes(8),
            BINARY => self.unsigned().and_then(|count| self.bytes(count)),
            LIST | SET => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.element(kind, below))
            }
            MAP => {
                let count = self.unsigned()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                (0..count).try_for_each(|_| {
                    self.element(kinds >> 4, below).and_then(|()| self.element(kinds & 15, below))
                })
            }
            STRUCT => self.fields(depth, |compact, _, kind| compact.skip(kind, below)),
            _ => None,
        }
    }

    /// Skips an element of a list, where a boolean is one byte.
    fn element(&mut self, kind: u8, depth: usize) -> Option<()> {
        if kind == TRUE || kind == FALSE { self.bytes(1) } else { self.skip(kind, depth) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_schema_is_one_tree_of_bounded_depth() {
        assert!(tree(&[2, 0, 1, 0]).is_some());
        assert!(tree(&[0]).is_some() && tree(&[]).is_some());
        // Children are missing. The decoder would allocate memory for the two that are announced.
        assert!(tree(&[2, 0]).is_none() && tree(&[1 << 31, 0]).is_none());
        let chain = |depth: usize| [vec![1; depth], vec![0]].concat();
        assert!(tree(&chain(DEEPEST)).is_some());
        assert!(tree(&chain(DEEPEST + 1)).is_none());
    }

    /// Creates a file with a page header and a body. The file disappears when the test ends.
    fn file(unpacked: u32, packed: u32, body: &[u8]) -> File {
        static FILES: AtomicUsize = AtomicUsize::new(0);
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("quell-guard-{}-{number}", std::process::id()));
        let mut bytes = vec![0x15, 0];
        for size in [unpacked, packed] {
            bytes.push(0x15);
            let mut rest = u64::from(size) << 1;
            while rest >= 0x80 {
                bytes.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(rest as u8);
        }
        bytes.push(0);
        bytes.extend(body);
        std::fs::write(&path, bytes).unwrap();
        let file = File::open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        file
    }

    fn sound(file: &File, codec: Compression) -> bool {
        pages(file, 0, file.metadata().unwrap().len(), codec).is_some()
    }

    #[test]
    fn a_page_that_announces_more_than_can_be_packed_is_damage() {
        let body = [0; 100];
        assert!(sound(&file(3200, 100, &body), Compression::SNAPPY));
        assert!(!sound(&file(i32::MAX as u32, 100, &body), Compression::SNAPPY));
        assert!(!sound(&file(4000, 100, &body), Compression::SNAPPY));
        assert!(sound(&file(4000, 100, &body), Compression::LZ4_RAW));
        let zstd = Compression::ZSTD(parquet::basic::ZstdLevel::default());
        // A long value makes a long page, which is not damage.
        assert!(sound(&file(100 << 15, 100, &body), zstd) && !sound(&file(101 << 15, 100, &body), zstd));
        assert!(sound(&file(1 << 29, 1 << 15, &vec![0; 1 << 15]), zstd));
        assert!(!sound(&file(1 << 31, 1 << 15, &vec![0; 1 << 15]), zstd));
        assert!(!sound(&file(100, 101, &body), Compression::SNAPPY));
        assert!(!sound(&file(100, 99, &body), Compression::UNCOMPRESSED));
        assert!(pages(&file(100, 100, &body), 0, 1000, Compression::SNAPPY).is_none());
        assert!(pages(&file(100, 100, &body), u64::MAX, 2, Compression::SNAPPY).is_none());
    }

    #[test]
    fn a_page_that_unpacks_to_more_than_it_announces_is_damage() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut encoder, &vec![0; 100_000]).unwrap();
        let body = encoder.finish().unwrap();
        let codec = Compression::GZIP(parquet::basic::GzipLevel::default());
        assert!(sound(&file(100_000, body.len() as u32, &body), codec));
        assert!(!sound(&file(99_999, body.len() as u32, &body), codec));
    }

    #[test]
    fn rows_are_bounded_by_the_bytes_of_the_file() {
        assert!(rows(1_000_000, 200).is_some() && rows(0, 0).is_some());
        assert!(
            rows(i64::MAX, 1 << 30).is_none() && rows(-1, 1000).is_none() && rows(2_000_000, 200).is_none()
        );
    }

    #[test]
    fn lengths_beyond_the_bytes_are_damage() {
        assert_eq!(Compact::of(&[0xac, 0x02]).unsigned(), Some(300));
        assert_eq!(
            [0, 1, 2, 3].map(|byte| Compact::of(&[byte]).signed()),
            [Some(0), Some(-1), Some(1), Some(-2)]
        );
        assert_eq!(Compact::of(&[0xff; 11]).unsigned(), None);
        assert!(
            Compact::of(&[3, 1, 2, 3]).skip(BINARY, 9).is_some()
                && Compact::of(&[4, 1, 2, 3]).skip(BINARY, 9).is_none()
        );
        assert!(
            Compact::of(&[0x31, 1, 1, 1]).skip(LIST, 9).is_some()
                && Compact::of(&[0x41, 1, 1, 1]).skip(LIST, 9).is_none()
        );
        assert!(Compact::of(&[0xf3, 0xff, 0xff, 0xff, 0xff, 0x7f, 0]).skip(LIST, 9).is_none());
        assert!(
            Compact::of(&[1, 0x88, 1, 7, 1, 8]).skip(MAP, 9).is_some()
                && Compact::of(&[0]).skip(MAP, 9).is_some()
        );
        assert!(
            Compact::of(&[0x1c, 0x11, 0, 0]).skip(STRUCT, 3).is_some()
                && Compact::of(&[0x1c, 0x11, 0, 0]).skip(STRUCT, 1).is_none()
        );
        // Maps whose elements take no bytes would never end.
        assert!(Compact::of(&[0xff, 0xff, 0xff, 0xff, 0x7f, 0]).skip(MAP, 9).is_none());
    }
}
