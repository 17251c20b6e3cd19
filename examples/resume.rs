//! Stops a run, and resumes it from its folder. Nothing is paid twice.

use quell::{
    learner::{Control, dp_sgd::DpSgd},
    ledger::InMemory,
    privacy::ledger::Ledger,
    run::{Configuration, Folder, Job, Progress, Training},
};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let here = std::env::temp_dir().join(format!("quell-resume-{}", std::process::id()));
    let mut configuration = Configuration::digits()?;
    configuration.model.name = Some("logistic".into());
    let job = Training::<DpSgd>::new(configuration)?;
    let mut ledger = Ledger::create(InMemory::new("digits"), job.terms()?)?;
    let mut stop = |progress: Progress| if progress.done == 10 { Control::Stop } else { Control::Continue };
    assert!(!job.go(&mut ledger, &Folder::create(&here)?, &mut stop)?.is_finished);

    let folder = Folder::open(&here)?;
    let job = Training::<DpSgd>::new(folder.configuration()?)?;
    assert!(job.go(&mut ledger, &folder, &mut |_| Control::Continue)?.is_finished);
    assert_eq!(ledger.state()?.charges().len(), 1);
    std::fs::remove_dir_all(&here)?;
    Ok(())
}
