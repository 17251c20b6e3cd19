//! The seal file of a database: hashes that detect a changed or truncated database file.
//!
//! The seal is a file of 128-byte records, each with its own checksum. Record 0 holds the hash of the whole
//! database file at the last clean close, so a flipped byte is found even where SQLite stores no data. Record
//! i holds the head of dataset i and is written after each line, so a database that lost its end (a missing
//! or damaged write-ahead log, a restored older copy) is refused. Records are overwritten in place and not
//! synced to disk: after a power cut a record may be older than the database, never newer.

use std::{
    fs::{self, File},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{chain::Hash, file, finding::Problem};

const SIZE: usize = 128;

/// Largest number of records. Datasets beyond this number have no record.
const RECORDS: u64 = 1 << 16;

/// One record of the seal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mark {
    /// Lines at that time: of the dataset, or in record 0 of all datasets.
    pub(crate) lines: u64,
    /// Length of the file, in record 0.
    pub(crate) length: u64,
    /// Head of the dataset, or in record 0 the hash of the file.
    pub(crate) hash: Hash,
}

/// The contents of a record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    /// The record was never written.
    Empty,
    /// A valid record.
    Mark(Mark),
    /// The checksum does not match.
    Damaged,
}

/// Path of the seal of a database.
pub(crate) fn path(database: &Path) -> PathBuf {
    let mut name = database.file_name().unwrap_or_default().to_owned();
    name.push(".seal");
    database.with_file_name(name)
}

/// Writes one record.
///
/// A failure loses no charge: the record is then older than the database.
pub(crate) fn write(database: &Path, record: u64, mark: &Mark) -> io::Result<()> {
    if record >= RECORDS {
        return Ok(());
    }
    let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path(database))?;
    let mut bytes = [0; SIZE];
    bytes[..8].copy_from_slice(&mark.lines.to_le_bytes());
    bytes[8..16].copy_from_slice(&mark.length.to_le_bytes());
    bytes[16..48].copy_from_slice(&mark.hash);
    let sum = checksum(record, &bytes);
    bytes[96..].copy_from_slice(&sum);
    write_at(&file, &bytes, record * SIZE as u64)
}

/// Reads all records. Retries if another process is writing a record at the same time.
pub(crate) fn read(database: &Path) -> io::Result<Vec<Record>> {
    let mut records = Vec::new();
    for _ in 0..20 {
        let bytes = match file::read_at_most(&path(database), RECORDS * SIZE as u64) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        records = bytes.chunks(SIZE).zip(0..).map(|(bytes, record)| parse(bytes, record)).collect();
        if !records.contains(&Record::Damaged) {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(records)
}

/// Damaged records of the seal, as problems.
pub(crate) fn damages(records: &[Record]) -> impl Iterator<Item = Problem> {
    records
        .iter()
        .zip(0..)
        .filter(|(record, _)| **record == Record::Damaged)
        .map(|(_, record)| Problem::SealDamaged { record })
}

fn parse(bytes: &[u8], record: u64) -> Record {
    let word =
        |at: usize| bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes);
    if bytes.iter().all(|byte| *byte == 0) {
        return Record::Empty;
    }
    match (bytes.get(16..48).and_then(|hash| hash.try_into().ok()), bytes.get(96..)) {
        (Some(hash), Some(sum)) if sum == checksum(record, bytes) => {
            Record::Mark(Mark { lines: word(0), length: word(8), hash })
        }
        _ => Record::Damaged,
    }
}

/// Checksum of a record. It covers the record number, so that records cannot be swapped.
fn checksum(record: u64, bytes: &[u8]) -> Hash {
    let mut hasher = blake3::Hasher::new_derive_key("quell-ledger 2026 record of a seal");
    hasher.update(&record.to_le_bytes());
    hasher.update(&bytes[..96.min(bytes.len())]);
    hasher.finalize().into()
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(not(unix))]
fn write_at(mut file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    use io::{Seek, SeekFrom, Write};
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_seal_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let database = directory.path().join("ledger.db");
        let mark = Mark { lines: 3, length: 4096, hash: [7; 32] };
        write(&database, 0, &mark).unwrap();
        write(&database, 2, &mark).unwrap();
        assert_eq!(read(&database).unwrap(), [Record::Mark(mark.clone()), Record::Empty, Record::Mark(mark)]);
        let whole = fs::read(path(&database)).unwrap();
        for (byte, bit) in (0..whole.len()).flat_map(|byte| (0..8).map(move |bit| (byte, bit))) {
            let mut bytes = whole[byte / SIZE * SIZE..][..SIZE].to_vec();
            bytes[byte % SIZE] ^= 1 << bit;
            assert_eq!(parse(&bytes, (byte / SIZE) as u64), Record::Damaged, "byte {byte}, bit {bit}");
        }
        assert_eq!(parse(&whole[2 * SIZE..], 1), Record::Damaged, "a record in the place of another");
        assert_eq!(parse(&whole[2 * SIZE..][..100], 2), Record::Damaged, "cut short");
    }
}
