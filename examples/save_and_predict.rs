//! Trains in a folder, and predicts from the saved model.

use quell::{
    data,
    learner::{Control, dp_sgd::DpSgd},
    ledger::InMemory,
    privacy::ledger::Ledger,
    run::{Configuration, Folder, Job, Training},
};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut configuration = Configuration::digits()?;
    configuration.model.name = Some("logistic".into());
    let job = Training::<DpSgd>::new(configuration)?;
    let mut ledger = Ledger::create(InMemory::new("digits"), job.terms()?)?;
    let here = std::env::temp_dir().join(format!("quell-save-{}", std::process::id()));
    let folder = Folder::create(&here)?;
    job.go(&mut ledger, &folder, &mut |_| Control::Continue)?;

    let model = folder.model()?;
    let test = data::digits()?.test.ok_or("the digits have a test part")?;
    let predicted = model.predict(&test)?;
    if let Some(digit) = &predicted[0] {
        println!("the first test image shows a {digit}");
    }
    assert_eq!(predicted.len(), test.len());
    std::fs::remove_dir_all(&here)?;
    Ok(())
}
