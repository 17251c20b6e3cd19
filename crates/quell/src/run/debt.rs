//! The debt that a run lives on: which line of the ledger paid for it.

use quell_privacy::{
    Bound,
    ledger::{Account, Book, Lease, Ledger},
    mechanism::Mechanism,
    units::Delta,
};

use super::{Folder, Paid};
use crate::Error;

/// What is left of a plan that was paid for by an earlier sitting of the run, or is paid for now.
///
/// Before it pays, a run writes down where the ledger ends. Killed before it could write down which line has paid, it finds that line again: a charge for the same, made
/// since, of which nothing was handed out. If that is another run's, which was killed at the same place, nobody misses it; and whoever holds a charge, the ledger hands out each
/// step once.
pub(super) fn lease<'l, M: Mechanism, B: Book>(
    ledger: &'l mut Ledger<B>,
    folder: &Folder,
    (mechanism, steps): (M, u64),
    (epsilon, delta): (Bound, Delta),
) -> Result<(Lease<'l, M, B>, Paid), Error> {
    if let Some(paid) = folder.paid_if_any()? {
        return Ok((ledger.resume(mechanism, paid.receipt.entry)?, paid));
    }
    let mut found = None;
    if let Some(since) = folder.intended()? {
        let (wanted, _) = ledger.quote(&mechanism, steps)?;
        let same = |account: &&Account| account.charge.plan == wanted.plan && account.charge.steps == steps;
        let mut unused = ledger.state()?.charges().iter().filter(|account| account.entry >= since && account.leased == 0);
        found = unused.find(same).map(|account| account.entry);
    }
    let lease = if let Some(entry) = found {
        ledger.resume(mechanism, entry)?
    } else {
        folder.write_intended(ledger.state()?.lines())?;
        ledger.reserve(mechanism, steps)?
    };
    let paid = Paid { receipt: lease.receipt().clone(), epsilon, delta: delta.get() };
    folder.write_paid(&paid)?;
    Ok((lease, paid))
}

#[cfg(test)]
mod tests {
    use quell_ledger::Store;
    use quell_privacy::{
        Neighbors,
        ledger::{Budget, Composition, Terms, Unit},
        mechanism::{Poll, Rule, Voters},
        units::{Epsilon, NoiseMultiplier},
    };

    use super::*;

    #[test]
    fn a_run_killed_before_it_knew_its_line_finds_it_again() {
        let here = std::env::temp_dir().join(format!("quell-debt-{}", std::process::id()));
        let poll = Poll {
            candidates: 3,
            voters: Voters::Teachers,
            screening: None,
            rule: Rule::Gaussian(NoiseMultiplier::new(40.0).unwrap()),
            questions: 1,
            answers: 1,
        };
        let delta = Delta::new(1e-6).unwrap();
        let price = (Bound { lower: 0.0, upper: 1.0 }, delta);
        let budget = Budget { epsilon: Some(Epsilon::new(3.0).unwrap()), delta };
        let terms = Terms {
            dataset: "people".into(),
            unit: Unit::Example,
            neighbors: Neighbors::AddRemove,
            budget,
            composition: Composition::Best,
        };
        let folder = Folder::create(&here.join("run")).unwrap();
        let book = Store::create(here.join("ledger.sqlite").as_path()).unwrap().book("people").unwrap();
        let mut ledger = Ledger::create(book, terms).unwrap();
        // Nothing can be written where a folder is: paid, and killed.
        std::fs::create_dir(here.join("run/paid.json")).unwrap();
        assert!(lease(&mut ledger, &folder, (poll, 5), price).is_err());
        std::fs::remove_dir(here.join("run/paid.json")).unwrap();
        // Another run for the same begins, and takes a step.
        let other = Folder::create(&here.join("other")).unwrap();
        let (mut taken, others) = lease(&mut ledger, &other, (poll, 5), price).unwrap();
        assert!(taken.next().unwrap().is_ok());
        let (mut found, paid) = lease(&mut ledger, &folder, (poll, 5), price).unwrap();
        assert!(found.next().is_some() && paid.receipt.entry < others.receipt.entry);
        assert_eq!(lease(&mut ledger, &folder, (poll, 5), price).unwrap().1, paid);
        assert_eq!(ledger.state().unwrap().charges().len(), 2);
        // A third finds neither: both were handed out in part.
        let third = Folder::create(&here.join("third")).unwrap();
        third.write_intended(0).unwrap();
        assert!(lease(&mut ledger, &third, (poll, 5), price).unwrap().1.receipt.entry > others.receipt.entry);
        std::fs::remove_dir_all(&here).unwrap();
    }
}
