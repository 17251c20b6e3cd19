//! The private file with the best trial so far.

use quell_privacy::mechanism::Best;
use serde::{Deserialize, Serialize};

use super::{TrialRecord, trial::Found};
use crate::{Error, learner::Evaluation, run::Folder};

/// What a search has found so far.
pub(super) struct Kept {
    pub(super) best: Best<Found>,
    /// Whether the search has ended.
    pub(super) has_ended: bool,
    /// The scores of all trials so far, if they are shown.
    pub(super) trials: Vec<TrialRecord>,
}

/// The start of the file. The bytes of the checkpoint follow.
#[derive(Serialize, Deserialize)]
struct Header {
    /// The bits of the score. JSON has no infinity.
    score: u64,
    kind: usize,
    evaluation: Option<Evaluation>,
    has_ended: bool,
    #[serde(default)]
    trials: Vec<TrialRecord>,
}

impl Folder {
    /// What a search has kept.
    ///
    /// A file that cannot be read says nothing: the search then begins again, and no error tells what was in it.
    pub(super) fn kept(&self, kinds: usize) -> Result<Option<Kept>, Error> {
        Ok(self.read_private(BEST)?.and_then(|bytes| {
            let (length, rest) = bytes.split_first_chunk::<8>()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let (header, checkpoint) = rest.split_at_checked(length)?;
            let Header { score, kind, evaluation, has_ended, trials } =
                serde_json::from_slice(header).ok()?;
            let found = Found { checkpoint: checkpoint.to_vec(), evaluation };
            let best = Best { score: f64::from_bits(score), kind, found };
            (kind < kinds).then_some(Kept { best, has_ended, trials })
        }))
    }

    /// Keeps the best trial so far, and the scores that are shown.
    pub(super) fn keep(
        &self,
        best: &Best<Found>,
        trials: &[TrialRecord],
        has_ended: bool,
    ) -> Result<(), Error> {
        let header = Header {
            score: best.score.to_bits(),
            kind: best.kind,
            evaluation: best.found.evaluation.clone(),
            has_ended,
            trials: trials.to_vec(),
        };
        let header =
            serde_json::to_vec(&header).map_err(|_| Error::saved("best", "not writable", "numbers"))?;
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header);
        bytes.extend(&best.found.checkpoint);
        self.write_private(BEST, &bytes)
    }

    /// Whether this folder may release the best trial.
    pub(super) fn has_right(&self) -> Result<bool, Error> {
        Ok(self.read_private(RIGHT)?.is_some())
    }

    /// Records that this folder may release the best trial.
    pub(super) fn keep_right(&self) -> Result<(), Error> {
        self.write_private(RIGHT, &[])
    }
}

/// The private file with the best trial so far.
const BEST: &str = "best";

/// The private file that says that this folder may release the best trial.
const RIGHT: &str = "right";
