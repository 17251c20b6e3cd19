//! Comparison of a database file with its seal.

use super::{Sqlite, natural};
use crate::{
    chain::Hash,
    database::Database,
    error::Error,
    finding::{Finding, Problem},
    hexadecimal::hex,
    seal::{self, Mark, Record},
};

impl Sqlite {
    /// Compares the file with its seal.
    pub(super) fn compare_with_seal(&mut self) -> Result<(Vec<Finding>, Vec<String>), Error> {
        let seal_path = seal::path(&self.path);
        // Read the seal before the database: concurrent writes then make the seal look older, never newer.
        let records = seal::read(&self.path).map_err(|source| Error::File {
            doing: "reading the seal",
            path: seal_path,
            source,
        })?;
        let mut findings: Vec<Finding> = seal::damages(&records).map(Problem::in_store).collect();
        let mut notes = Vec::new();
        let failed = self.failed("comparing the ledger with its seal");
        self.connection.execute_batch("BEGIN").map_err(&failed)?;
        let compared = self.compare(&records, &mut findings, &mut notes);
        self.connection.execute_batch("COMMIT").map_err(&failed)?;
        compared.map(|()| (findings, notes))
    }

    /// Compares an empty database file with its seal.
    pub(super) fn compare_blank_with_seal(&mut self) -> Result<(Vec<Finding>, Vec<String>), Error> {
        let seal_path = seal::path(&self.path);
        let records = seal::read(&self.path).map_err(|source| Error::File {
            doing: "reading the seal",
            path: seal_path,
            source,
        })?;
        let lines = records
            .iter()
            .filter_map(|record| if let Record::Mark(mark) = record { Some(mark.lines) } else { None });
        let mut findings: Vec<Finding> = seal::damages(&records).map(Problem::in_store).collect();
        match lines.max() {
            Some(expected) if expected > 0 => {
                findings.push(Problem::Truncated { lines: 0, expected }.in_store());
            }
            _ => {}
        }
        let note = "nothing was written into the ledger yet: its creation was interrupted; `quell ledger create` completes it";
        Ok((findings, vec![note.into()]))
    }

    fn compare(
        &mut self,
        records: &[Record],
        findings: &mut Vec<Finding>,
        notes: &mut Vec<String>,
    ) -> Result<(), Error> {
        let failed = self.failed("comparing the ledger with its seal");
        let mut statement =
            self.connection.prepare_cached("SELECT id, name, lines FROM datasets").map_err(&failed)?;
        let datasets: Vec<(u64, String, u64)> = statement
            .query_map([], |row| Ok((natural(row, 0)?, row.get(1)?, natural(row, 2)?)))
            .and_then(Iterator::collect)
            .map_err(&failed)?;
        drop(statement);
        let total = datasets.iter().fold(0, |total: u64, (_, _, lines)| total.saturating_add(*lines));
        match records.first() {
            Some(Record::Mark(mark)) if mark.lines > total => {
                findings.push(Problem::Truncated { lines: total, expected: mark.lines }.in_store());
            }
            Some(Record::Mark(mark)) if mark.lines == total => {
                let length = std::fs::metadata(&self.path).map_or(0, |file| file.len());
                if mark.length != length || mark.hash != self.hash()?.1 {
                    findings.push(Problem::Seal.in_store());
                }
            }
            Some(Record::Mark(mark)) => {
                let newer = total - mark.lines;
                notes
                    .push(format!("{newer} lines are newer than the seal: the last program that wrote was killed, or is still running"));
            }
            Some(Record::Damaged) => {}
            None | Some(Record::Empty) => {
                notes.push("there is no seal yet: bytes outside the lines are not checked".into());
            }
        }
        for (record, number) in records.iter().zip(0..).skip(1) {
            let Record::Mark(mark) = record else { continue };
            let Some((_, name, lines)) = datasets.iter().find(|(id, ..)| *id == number) else {
                findings.push(Problem::Truncated { lines: 0, expected: mark.lines }.in_store());
                continue;
            };
            if *lines < mark.lines {
                findings.push(Problem::Truncated { lines: *lines, expected: mark.lines }.of(name));
                continue;
            }
            let last = mark.lines.saturating_sub(1);
            let found = self.entry(name, last)?.map_or([0; 32], |entry| entry.hash);
            if found != mark.hash {
                findings
                    .push(Problem::Forked { found: hex(&found), expected: hex(&mark.hash) }.at(name, last));
            }
        }
        Ok(())
    }

    /// Length and hash of all bytes of the database.
    ///
    /// Reads through SQLite: closing another file handle on the database would release the locks of this
    /// process.
    fn hash(&mut self) -> Result<(u64, Hash), Error> {
        let failed = self.failed("reading the whole file");
        let bytes = self.connection.serialize("main").map_err(failed)?;
        Ok((bytes.len() as u64, blake3::hash(&bytes).into()))
    }

    /// Seals the file, unless its write-ahead log has data. The caller holds the write lock.
    pub(super) fn write_seal(&mut self) -> Result<bool, Error> {
        if self.has_log() {
            return Ok(false);
        }
        let total = self
            .connection
            .query_row("SELECT coalesce(sum(lines), 0) FROM datasets", [], |row| row.get::<_, i64>(0));
        let lines = total.map_err(self.failed("sealing the ledger"))?.unsigned_abs();
        let (length, hash) = self.hash()?;
        seal::write(&self.path, 0, &Mark { lines, length, hash }).map_err(|source| Error::File {
            doing: "sealing the ledger",
            path: seal::path(&self.path),
            source,
        })?;
        self.has_unsealed_writes = false;
        Ok(true)
    }
}
