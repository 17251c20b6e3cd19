//! Runs training and labelling jobs in a folder, and resumes them.
//!
//! The folder holds the settings, the plan, the payment and the results of a run.
//!
//! ```
//! use quell::run::{Configuration, Folder, Job, Training};
//! use quell::{learner::{Control, dp_sgd::DpSgd}, ledger::InMemory, privacy::ledger::Ledger};
//! # let path = std::env::temp_dir().join(format!("quell-run-{}", std::process::id()));
//! let mut configuration = Configuration::digits()?;
//! configuration.model.name = Some("logistic".into());
//! let job = Training::<DpSgd>::new(configuration)?;
//! let mut ledger = Ledger::create(InMemory::new("digits"), job.terms()?)?;
//! let folder = Folder::create(&path)?;
//! let outcome = job.go(&mut ledger, &folder, &mut |_| Control::Continue)?;
//! assert!(outcome.is_finished && folder.file(Folder::MODEL).exists());
//! # std::fs::remove_dir_all(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Everything in the folder is public, with two exceptions, if the settings are public. The files hold
//! settings, payments, paid releases and what follows from them, and measurements on data that was declared
//! public. The first exception is the subfolder `private` ([`labels`]): it holds the shards of the private
//! records and the ballots of teachers, or the best trial of a search. The second exception is the time that a
//! run took. `metrics.json`, `outcome.json`, the reports and the timestamps of the files show that time, and it
//! depends on the private records (SECURITY, side channels).
//!
//! # Invariants
//! | invariant | ensured by |
//! |---|---|
//! | One process works on a run. | `Folder::locked`: a file lock, which ends with the process |
//! | A purchase is charged once. | `charge::reserve`: an intent with a random key is durable before the charge, and the ledger accepts one charge for each key |
//! | No step is taken before its lease is durable in the ledger and witnessed in the folder. | `Lease::witnessed`, set by `charge::reserve` |
//! | A result is in the folder before the ledger is told that it is safe. | the order of writes below |
//! | Results of more steps than the ledger has leased are refused. | `charge::within_lease` |
//! | A ledger that lacks a line that the run has seen is refused. | `charge::check`, for `witness.json`, and `charge::reserve`, for the line that paid |
//! | Work that can fail without a release is done before the charge. | `Training::prepare`; `Labelling::new`, `External::new`; prices of all charges in `quote` |
//! | Only the owner can read private files, from their creation on. They are removed once the questions are answered. | `private`, `Folder::open` |
//!
//! Quell cannot recognise an older copy if both the ledger and the folder are old. Keep exports or receipts
//! elsewhere (`quell ledger verify`).
//!
//! # What happens after a kill between two writes
//! Lines are appended to `answers.jsonl`, which is then synchronised. Every other file is written to a
//! temporary file, synchronised, and then renamed. Each line of the ledger is durable before the call to the
//! ledger returns.
//!
//! `quell train`:
//!
//! | after | before | what resuming does |
//! |---|---|---|
//! | the folder | `config.toml` | There is no run yet, and nothing is paid. |
//! | `config.toml` | `intended.json` | It pays, like a new run. |
//! | `intended.json` (key) | the charge | It pays, under the same key. |
//! | the charge | `paid.json` | It finds the charge by its key. |
//! | `paid.json` | a lease | It continues; nothing is lost. |
//! | a lease | `witness.json` | The block is lost: it is paid for, and no step of it was taken. |
//! | `witness.json` | `checkpoint.safetensors` | The block is lost: taking its steps again would be another release. If it has all steps of the run, there is no model, and an error says so. |
//! | `checkpoint.safetensors` | `metrics.json` | It continues after the block; a point of the curve is missing. |
//! | `metrics.json` | the confirmation | It continues after the block. Nothing depends on the confirmation. |
//! | the last confirmation | `model.safetensors`, reports | It writes them from the checkpoint. |
//!
//! `quell pate` and `quell knn` (with `--ballots`, `ballots.toml` replaces `labels.toml`, and there are no
//! teachers and no student):
//!
//! | after | before | what resuming does |
//! |---|---|---|
//! | the folder | `labels.toml` | There is no run yet, and nothing is paid. |
//! | `private/shards.txt` | the last `private/ballots-N` | Teachers that have voted are not trained again, unless the records or their shards have changed. Nothing is paid. |
//! | the last ballots | `intended.json`, the charge, `paid.json` | As for `train`. |
//! | with `--reveal-cost`: `paid.json` | `reveal-intended.json`, its charge, `reveal-paid.json` | It pays whatever is still unpaid, before the first question. |
//! | a lease (of a round; of everything for `stable`) | `witness.json`, `answers.jsonl` | Questions that were leased and not recorded are lost. |
//! | `answers.jsonl` | the confirmation | It continues; an incomplete last line is dropped. |
//! | with `--reveal-cost`: the lease | `revealed.json` | The number is lost, and `outcome.json` says so (`reveal_lost`). It is not paid for again. |
//! | `revealed.json` | `outcome.json` | It takes the number from the file. |
//! | `outcome.json` (paid) | the removal of `private` | The next command that opens the folder removes `private`. |
//! | the removal of `private` | `model.safetensors`, `outcome.json` (finished), reports | The student is trained again, on the answers. |
//!
//! `quell tune`:
//!
//! | after | before | what resuming does |
//! |---|---|---|
//! | the folder | `tune.toml` | There is no run yet, and nothing is paid. |
//! | `tune.toml` | `intended.json`, the charge, `paid.json` | As for `train`. |
//! | the lease of a run | `private/best` | The search goes on from the best trial that was kept. The trial that was killed does not count. |
//! | `private/best` (ended) | the lease of the last run | It releases the best trial. |
//! | the lease of the last run | `private/right` | The result is lost, and an error says so: another folder may have released it. |
//! | `private/right` | `model.safetensors` | It writes the files of the best trial. |
//! | `model.safetensors` | the removal of `private` | The next command that opens the folder removes `private`. |
//!
//! `quell query`, `quell evaluate --epsilon` and `quell schema --epsilon`, each with `--output FILE`
//! ([`Purchase`]):
//!
//! | after | before | what the same command does |
//! |---|---|---|
//! | `FILE.paid.json` (key) | the charge | It pays, under the same key. |
//! | the charge | the lease | It finds the charge by its key and draws the answer. |
//! | the lease | the answer in `FILE.paid.json` | The answer is lost, and the command says so. A schema leaves that column open. |
//! | the answer in `FILE.paid.json` | `FILE` | It writes the file, and pays nothing. |
//!
//! Without `--output` the charge is durable before the answer is printed. If the command is killed in
//! between, the answer is lost. The same command again is a new question with a new charge.

mod charge;
mod configuration;
mod defaults;
mod error;
mod file;
mod folder;
mod job;
pub mod labels;
mod learned;
mod learner;
mod lock;
mod metrics;
mod model;
mod models;
mod origin;
mod private;
mod purchase;
mod registry;
mod training;
mod tuning;

pub use charge::PaymentRecord;
pub use configuration::{Configuration, NewBudget, Source};
pub use error::Error;
pub use folder::Folder;
pub use job::{Covered, Guarantee, Job, Outcome, Progress, Settings, Watch};
pub use learned::Learned;
use lock::Lock;
pub use metrics::{Metrics, Point};
pub use model::{Model, SavedModel};
pub use models::{LabelUse, Learner, ModelGroup, NamedModel, model_names, named_models};
pub use origin::Origin;
pub use purchase::Purchase;
pub use registry::{Description, Driver, LearnerSettings, Registered, resume, train};
pub use training::Training;
pub use tuning::{Candidate, SearchRecord, TrialRecord, Tuning, TuningConfiguration};

pub use crate::learner::Prediction;
