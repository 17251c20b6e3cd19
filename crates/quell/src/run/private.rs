//! Private files of a run: the shard of each record, ballots of teachers, the best trial of a search.
//!
//! These files are in the subfolder `private`. Only the owner may open the subfolder and read its files, from
//! their creation on. The run removes the subfolder when the last question is answered, or the best trial
//! is released. If the run is killed
//! at that moment, the next command that opens the folder removes the subfolder ([`Folder::open`]).

use std::{fs, path::PathBuf};

use super::{
    Folder,
    file::{self, Access},
};
use crate::{Error, learner::tensors::LARGEST_FILE};

const FOLDER: &str = "private";
const SHARDS: &str = "shards.txt";

impl Folder {
    fn private(&self) -> PathBuf {
        self.file(FOLDER)
    }

    /// Reads a private file; `None` if it does not exist.
    pub(super) fn read_private(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let path = self.private().join(name);
        if !path.is_file() {
            return Ok(None);
        }
        crate::file::read(&path, LARGEST_FILE).map(Some)
    }

    pub(super) fn write_private(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        file::create_owned(&self.private())?;
        file::write(&self.private(), name, bytes, Access::Owner)
    }

    /// Records the shard of each record.
    /// Removes ballots of teachers that were trained on other shards or other records: no record may
    /// influence two teachers.
    pub(super) fn write_shards(&self, of: &[u32], records: &blake3::Hash) -> Result<(), Error> {
        let lines = std::iter::once(records.to_string()).chain(of.iter().map(u32::to_string));
        let text = lines.collect::<Vec<_>>().join("\n");
        let same = fs::read(self.private().join(SHARDS)).is_ok_and(|found| found == text.as_bytes());
        if !same {
            self.forget_private()?;
        }
        self.write_private(SHARDS, text.as_bytes())
    }

    /// The saved ballots of a teacher; `None` unless there is one for each question.
    pub(super) fn ballots(&self, teacher: usize, questions: usize) -> Option<Vec<u16>> {
        let bytes = fs::read(self.private().join(format!("ballots-{teacher}"))).ok()?;
        let (pairs, rest) = bytes.as_chunks::<2>();
        (pairs.len() == questions && rest.is_empty())
            .then(|| pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect())
    }

    pub(super) fn write_ballots(&self, teacher: usize, ballots: &[u16]) -> Result<(), Error> {
        let bytes: Vec<u8> = ballots.iter().flat_map(|ballot| ballot.to_le_bytes()).collect();
        self.write_private(&format!("ballots-{teacher}"), &bytes)
    }

    /// Removes all private files.
    pub(super) fn forget_private(&self) -> Result<(), Error> {
        let path = self.private();
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::unwritable(&path, &error))
            }
            _ => Ok(()),
        }
    }

    /// Removes the private files of a run whose questions are answered, or whose search has released.
    /// Errors are ignored: whoever reads the folder may not be its owner.
    pub(super) fn sweep(&self) {
        let is_answered = || matches!(self.labels(), Ok(Some(outcome)) if outcome.paid.is_some());
        let is_released = || self.is_search() && self.has_model();
        if self.private().exists() && (is_answered() || is_released()) {
            let _ = self.forget_private();
        }
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a test fails by a panic")]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &std::path::Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn private_files_are_closed_to_others_from_the_start_and_closed_again_where_they_were_open() {
        let here = std::env::temp_dir().join(format!("quell-private-{}", std::process::id()));
        let folder = Folder::create(&here).unwrap();
        folder.write_shards(&[0, 1, 0], &blake3::hash(b"some")).unwrap();
        folder.write_ballots(1, &[3, 4]).unwrap();
        assert_eq!(mode(&folder.private()), 0o700);
        for name in [SHARDS, "ballots-1"] {
            assert_eq!(mode(&folder.private().join(name)), 0o600, "{name}");
        }
        // A folder with open permissions from an earlier version, and such a draft from a killed process.
        let draft = folder.private().join(".ballots-2.new");
        fs::write(&draft, "half").unwrap();
        for (path, mode) in [(folder.private(), 0o755), (draft, 0o644)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        folder.write_ballots(2, &[5, 6]).unwrap();
        assert_eq!((mode(&folder.private()), mode(&folder.private().join("ballots-2"))), (0o700, 0o600));
        fs::remove_dir_all(&here).unwrap();
    }

    #[test]
    fn ballots_of_teachers_that_learned_from_other_records_are_not_counted() {
        let here = std::env::temp_dir().join(format!("quell-shards-{}", std::process::id()));
        let folder = Folder::create(&here).unwrap();
        let [some, others] = [b"some".as_slice(), b"others"].map(blake3::hash);
        for (of, records, expected) in [
            ([0, 1, 0], some, "the same: the teacher does not learn again"),
            ([0, 1, 1], some, "the last record would have had two teachers"),
            ([0, 1, 0], others, "records that moved would have had two teachers"),
        ] {
            folder.write_shards(&[0, 1, 0], &some).unwrap();
            folder.write_ballots(0, &[3, 4]).unwrap();
            folder.write_shards(&of, &records).unwrap();
            assert_eq!(folder.ballots(0, 2).is_some(), expected.starts_with("the same"), "{expected}");
        }
        fs::remove_dir_all(&here).unwrap();
    }
}
