//! Charges a run to the ledger once, and records the lines that paid.
//!
//! For each purchase the run first writes an intent with a random key into its folder. The run then charges
//! the ledger under that key; the ledger holds at most one charge for each key. Then the run records which
//! line paid. A lease of steps is another line of the ledger. The run records that line as its witness before
//! it takes a step. So a run that is killed at any moment finds its charge again, and a run that is resumed
//! with an older copy of the ledger notices.

use quell_privacy::{
    Bound,
    ledger::{Account, Book, Lease, Ledger, Receipt},
    mechanism::Mechanism,
    units::Delta,
};
use serde::{Deserialize, Serialize};

use super::Folder;
use crate::{Error, run};

/// The payment for a run, as `paid.json` holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaymentRecord {
    /// The receipt of the line that paid.
    pub receipt: Receipt,
    /// ε of the run, as an interval.
    pub epsilon: Bound,
    /// δ.
    pub delta: f64,
}

/// The intent that a run records before it pays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Intent {
    /// The idempotency key of the charge.
    Key {
        /// Random, so that no two purchases share it.
        key: String,
    },
    /// The number of lines in the ledger. Runs wrote this before charges had keys.
    Lines(u64),
}

/// Names of the files that record a purchase.
const INTENT: &str = "intended.json";
const REVEAL_INTENT: &str = "reveal-intended.json";
const REVEAL_PAID: &str = "reveal-paid.json";

/// Leases the remaining steps of a plan. Pays for the plan first if it is unpaid.
pub(super) fn lease<'l, M: Mechanism, B: Book>(
    ledger: &'l mut Ledger<B>,
    folder: &Folder,
    (mechanism, runs): (M, u64),
    (epsilon, delta): (Bound, Delta),
) -> Result<(Lease<'l, M, B>, PaymentRecord), Error> {
    let before = folder.paid_if_any()?;
    let lease =
        reserve(ledger, folder, INTENT, before.as_ref().map(|paid| &paid.receipt), (mechanism, runs))?;
    if let Some(paid) = before {
        return Ok((lease, paid));
    }
    let paid = PaymentRecord { receipt: lease.receipt().clone(), epsilon, delta: delta.get() };
    folder.write_paid(&paid)?;
    Ok((lease, paid))
}

/// Leases the step that reveals the cost of the votes.
/// Pays for the step first if it is unpaid.
pub(super) fn lease_reveal<'l, M: Mechanism, B: Book>(
    ledger: &'l mut Ledger<B>,
    folder: &Folder,
    mechanism: M,
) -> Result<Lease<'l, M, B>, Error> {
    let before = folder.receipt(REVEAL_PAID)?;
    let lease = reserve(ledger, folder, REVEAL_INTENT, before.as_ref(), (mechanism, 1))?;
    if before.is_none() {
        folder.write_receipt(REVEAL_PAID, lease.receipt())?;
    }
    Ok(lease)
}

fn reserve<'l, M: Mechanism, B: Book>(
    ledger: &'l mut Ledger<B>,
    folder: &Folder,
    file: &str,
    paid: Option<&Receipt>,
    (mechanism, runs): (M, u64),
) -> Result<Lease<'l, M, B>, Error> {
    check(ledger, folder)?;
    let intent = folder.intent(file)?;
    let line = match (paid, &intent) {
        (Some(receipt), _) => {
            find(ledger, folder, receipt)?;
            Some(receipt.entry)
        }
        (None, Some(Intent::Lines(since))) => unused(ledger, &mechanism, runs, *since)?,
        (None, _) => None,
    };
    let lease = match (line, intent) {
        (Some(line), _) => ledger.resume(mechanism, line)?,
        (None, Some(Intent::Key { key })) => ledger.reserve_once(&key, mechanism, runs)?,
        (None, _) => {
            let key = key()?;
            folder.write_intent(file, &Intent::Key { key: key.clone() })?;
            ledger.reserve_once(&key, mechanism, runs)?
        }
    };
    let witness = folder.clone();
    let failed = |error: Error| quell_privacy::Error::Book { cause: error.to_string() };
    Ok(lease.witnessed(move |receipt| witness.write_witness(receipt).map_err(failed)))
}

/// Finds an unused charge for the same plan, made since line `since`.
/// The charge may belong to another run that was killed at the same point. That does no harm: the ledger
/// leases each step once, whoever holds the charge.
fn unused<M: Mechanism, B: Book>(
    ledger: &mut Ledger<B>,
    mechanism: &M,
    runs: u64,
    since: u64,
) -> Result<Option<u64>, Error> {
    let (wanted, _) = ledger.quote(mechanism, runs)?;
    let same = |account: &&Account| {
        account.entry >= since
            && account.leased == 0
            && account.charge.key.is_none()
            && account.charge.plan == wanted.plan
            && account.charge.steps == runs
    };
    Ok(ledger.state()?.charges().iter().find(same).map(|account| account.entry))
}

/// Refuses a ledger that lacks a line that this run has seen.
/// Such a ledger is an older copy, or another ledger.
pub(super) fn check<B: Book>(ledger: &mut Ledger<B>, folder: &Folder) -> Result<(), Error> {
    folder.witness()?.map_or(Ok(()), |seen| find(ledger, folder, &seen))
}

fn find<B: Book>(ledger: &mut Ledger<B>, folder: &Folder, seen: &Receipt) -> Result<(), Error> {
    let state = ledger.state()?;
    let (dataset, lines) = (state.terms().dataset.clone(), state.lines());
    let same = dataset == seen.dataset && seen.entry < lines && ledger.receipt(seen.entry)?.head == seen.head;
    if same {
        return Ok(());
    }
    Err(run::Error::LedgerRolledBack { path: folder.path().to_owned(), dataset, line: seen.entry, lines }
        .into())
}

/// Refuses results of more steps than the ledger has leased.
/// Such a ledger is an older copy of the ledger that paid.
pub(super) fn within_lease(
    folder: &Folder,
    what: &'static str,
    found: u64,
    leased: u64,
) -> Result<(), Error> {
    if found > leased {
        return Err(run::Error::AheadOfLease { path: folder.path().to_owned(), what, found, leased }.into());
    }
    Ok(())
}

/// Draws a random key of 128 bits.
pub(super) fn key() -> Result<String, Error> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|_| quell_privacy::Error::NoEntropy)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use quell_ledger::{Store, Volume};
    use quell_privacy::{
        Neighbors,
        ledger::{Budget, Composition, Terms, Unit},
        mechanism::{Poll, Rule, Voters},
        units::{Epsilon, NoiseMultiplier},
    };

    use super::*;

    /// A folder with a ledger, a poll, and the price of five rounds.
    fn opened(name: &str) -> (PathBuf, Ledger<Volume>, Poll, (Bound, Delta)) {
        let here = std::env::temp_dir().join(format!("quell-charge-{name}-{}", std::process::id()));
        let poll = Poll {
            candidates: 3,
            voters: Voters::Teachers,
            screening: None,
            rule: Rule::Gaussian(NoiseMultiplier::new(40.0).unwrap()),
            questions: 1,
            answers: 1,
        };
        let delta = Delta::new(1e-6).unwrap();
        let budget = Budget { epsilon: Some(Epsilon::new(3.0).unwrap()), delta };
        let terms = Terms {
            dataset: "people".into(),
            unit: Unit::Example,
            neighbors: Neighbors::AddRemove,
            budget,
            composition: Composition::Combined,
        };
        std::fs::create_dir_all(&here).unwrap();
        let book = Store::create(here.join("ledger.sqlite").as_path()).unwrap().book("people").unwrap();
        (here, Ledger::create(book, terms).unwrap(), poll, (Bound { lower: 0.0, upper: 1.0 }, delta))
    }

    #[test]
    fn a_run_killed_before_it_knew_its_line_finds_it_again() {
        let (here, mut ledger, poll, price) = opened("key");
        let folder = Folder::create(&here.join("run")).unwrap();
        // Killed after the charge.
        folder.write_intent(INTENT, &Intent::Key { key: "a".into() }).unwrap();
        drop(ledger.reserve_once("a", poll, 5).unwrap());
        // Another run with the same plan begins.
        let other = Folder::create(&here.join("other")).unwrap();
        let (mut taken, others) = lease(&mut ledger, &other, (poll, 5), price).unwrap();
        assert!(taken.next().unwrap().is_ok());
        drop(taken);
        let (mut found, paid) = lease(&mut ledger, &folder, (poll, 5), price).unwrap();
        assert!(found.next().is_some() && paid.receipt.entry < others.receipt.entry);
        drop(found);
        assert_eq!(lease(&mut ledger, &folder, (poll, 5), price).unwrap().1, paid);
        assert_eq!(ledger.state().unwrap().charges().len(), 2);
        std::fs::remove_dir_all(&here).unwrap();
    }

    #[test]
    fn a_run_of_before_there_were_keys_finds_its_line_again() {
        let (here, mut ledger, poll, price) = opened("lines");
        let folder = Folder::create(&here.join("run")).unwrap();
        folder.write_intent(INTENT, &Intent::Lines(1)).unwrap();
        assert_eq!(std::fs::read_to_string(folder.file(INTENT)).unwrap(), "1");
        drop(ledger.reserve(poll, 5).unwrap());
        let (mut found, paid) = lease(&mut ledger, &folder, (poll, 5), price).unwrap();
        assert!(found.next().is_some() && paid.receipt.entry == 1);
        drop(found);
        // A second run finds no unused charge, and pays.
        let second = Folder::create(&here.join("second")).unwrap();
        second.write_intent(INTENT, &Intent::Lines(0)).unwrap();
        assert_eq!(lease(&mut ledger, &second, (poll, 5), price).unwrap().1.receipt.entry, 3);
        std::fs::remove_dir_all(&here).unwrap();
    }

    #[test]
    fn a_ledger_without_a_line_that_was_seen_pays_for_nothing() {
        let (here, mut ledger, poll, price) = opened("seen");
        let folder = Folder::create(&here.join("run")).unwrap();
        assert!(lease(&mut ledger, &folder, (poll, 5), price).unwrap().0.next().is_some());
        let seen = folder.witness().unwrap().unwrap();
        assert_eq!((seen.entry, &seen.dataset), (2, &"people".to_owned()));
        for changed in
            [Receipt { entry: 9, ..seen.clone() }, Receipt { head: "0".repeat(64), ..seen.clone() }]
        {
            folder.write_witness(&changed).unwrap();
            let refused = lease(&mut ledger, &folder, (poll, 5), price).err();
            assert!(matches!(refused, Some(Error::Run(run::Error::LedgerRolledBack { .. }))), "{refused:?}");
        }
        folder.write_witness(&seen).unwrap();
        let mut paid = folder.paid().unwrap();
        paid.receipt.head = "0".repeat(64);
        folder.write_paid(&paid).unwrap();
        let refused = lease(&mut ledger, &folder, (poll, 5), price).err();
        assert!(matches!(refused, Some(Error::Run(run::Error::LedgerRolledBack { .. }))), "{refused:?}");
        assert_eq!(ledger.state().unwrap().charges().len(), 1);
        std::fs::remove_dir_all(&here).unwrap();
    }
}
