//! `quell pate` and `quell knn`: label public records by private votes and train a student.

mod flags;

use anyhow::Result;
use quell::run::labels::{Configuration, Labelling};

use crate::{drive, print, progress::Bar, refusal::Refusal};
use flags::Common;
pub(crate) use flags::{Knn, Pate};

pub(crate) fn pate(flags: &Pate) -> Result<()> {
    let Some(path) = &flags.ballots else { return run(&flags.common, flags.configuration()?, "-pate") };
    if flags.users.file().is_some() {
        let sentence = "--users names a file, but ballots do not belong to records";
        let hint = "use --users without a file if all records of each person go to one teacher";
        return Err(Refusal::new(sentence, hint).into());
    }
    let job = flags.external_ballots(path)?.open()?;
    // Printed always, because the existence of such a cell is private.
    print::status(
        "note: a cell without a valid ballot is an abstention; no message reports such cells, because they are private",
    );
    drive::start(&job, &flags.common.terms, "-pate")
}

pub(crate) fn knn(flags: &Knn) -> Result<()> {
    run(&flags.common, flags.configuration()?, "-knn")
}

fn run(flags: &Common, configuration: Configuration, verb: &str) -> Result<()> {
    // All checks run before anything is charged.
    let bar = Bar::spinner("reading");
    let job = Labelling::new(configuration)?;
    drop(bar);
    drive::start(&job, &flags.terms, verb)
}
