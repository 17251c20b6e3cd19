//! A run from data to model: what was asked for, what was planned, and the folder in which everything about it is kept.
//!
//! Everything in the folder is public, because it follows from settings and releases, but for the subfolder `private` ([`labels`]) and for the time that a run took (SECURITY, side channels).
//!
//! # Invariants
//! | invariant | ensured by |
//! |---|---|
//! | One process works on a run. | `Folder::locked`: a file lock, which ends with the process |
//! | A purchase is charged once. | `debt::reserve`: an intent with a random key is durable before the charge, and the ledger takes one charge under a key |
//! | No step is taken before its lease is durable in the ledger and witnessed in the folder. | `Lease::witnessed`, set by `debt::reserve` |
//! | A result is in the folder before the ledger is told that it is safe. | the order of writes below |
//! | Results of more steps than the ledger has leased are refused. | `debt::within_lease` |
//! | A ledger without a line that the run has seen is refused. | `debt::check`, for `witness.json`, and `debt::reserve`, for the line that paid |
//! | What can fail without a release is tried before the charge. | `Job::prepare`; `labels::Job::new`, `labels::External::new`; prices of all charges in `quote` |
//! | Private files are closed to others from creation, and removed once the questions are answered. | `private`, `Folder::open` |
//!
//! An older copy of both the ledger and the folder cannot be recognised from inside: keep exports or receipts elsewhere (`quell ledger verify`).
//!
//! # What a kill between two writes leaves
//! Each file is written whole, synchronised, and then renamed into its place; each line of the ledger is durable before the ledger answers.
//!
//! `quell train`:
//!
//! | after | before | what resuming does |
//! |---|---|---|
//! | the folder | `config.toml` | There is no run yet, and nothing is paid. |
//! | `config.toml` | `intended.json` | It pays, as a new run. |
//! | `intended.json` (key) | the charge | It pays, under the same key. |
//! | the charge | `paid.json` | It finds the charge by its key. |
//! | `paid.json` | a lease | It goes on; nothing is lost. |
//! | a lease | `witness.json` | The block is lost: it is paid for, and no step of it was taken. |
//! | `witness.json` | `checkpoint.safetensors` | The block is lost: taking its steps again would be another release. |
//! | `checkpoint.safetensors` | `metrics.json` | It goes on after the block; a point of the curve is missing. |
//! | `metrics.json` | the confirmation | It goes on after the block. Nothing depends on the confirmation. |
//! | the last confirmation | `model.safetensors`, reports | It writes them from the checkpoint. |
//!
//! `quell pate` and `quell knn` (with `--ballots`: `ballots.toml` instead of `labels.toml`, no teachers and no student):
//!
//! | after | before | what resuming does |
//! |---|---|---|
//! | the folder | `labels.toml` | There is no run yet, and nothing is paid. |
//! | `private/shards.txt` | the last `private/ballots-N` | Teachers that have voted do not learn again, unless the records or their shards have changed. Nothing is paid. |
//! | the last ballots | `intended.json`, the charge, `paid.json` | As for `train`. |
//! | with `--reveal-cost`: `paid.json` | `reveal-intended.json`, its charge, `reveal-paid.json` | It pays for what is not paid, before the first question. |
//! | a lease (of a round; of everything for `stable`) | `witness.json`, `answers.jsonl` | What was leased and not recorded is lost. |
//! | `answers.jsonl` | the confirmation | It goes on; a last line that was cut off is dropped. |
//! | with `--reveal-cost`: the lease | `revealed.json` | The number is lost, and `outcome.json` says so (`reveal_lost`). It is not paid for again. |
//! | `revealed.json` | `outcome.json` | It takes the number from the file. |
//! | `outcome.json` (paid) | the removal of `private` | Whatever opens the folder next removes it. |
//! | the removal of `private` | `model.safetensors`, `outcome.json` (finished), reports | The student learns again, from the answers. |
//!
//! `quell query`, `quell evaluate --epsilon` and `quell schema --epsilon` with `--output FILE` ([`Purchase`]):
//!
//! | after | before | what the same command does |
//! |---|---|---|
//! | `FILE.paid.json` (key) | the charge | It pays, under the same key. |
//! | the charge | the lease | It finds the charge by its key and draws the answer. |
//! | the lease | the answer in `FILE.paid.json` | The answer is lost, and it says so. A schema leaves that column open. |
//! | the answer in `FILE.paid.json` | `FILE` | It writes the file, and pays nothing. |
//!
//! Without `--output` the charge is durable, then the answer is printed. Killed in between, the answer is lost, and the same command again is another question, with another charge.

mod configuration;
mod debt;
pub(crate) mod file;
mod folder;
mod job;
pub mod labels;
mod lock;
mod metrics;
mod model;
mod outcome;
mod private;
mod purchase;

pub use configuration::{Allowance, Architecture, Configuration, Source};
pub use debt::Paid;
pub use folder::Folder;
pub use job::Job;
use lock::Lock;
pub use metrics::{Metrics, Point};
pub use model::Model;
pub use outcome::{Moment, Outcome};
pub use purchase::Purchase;
