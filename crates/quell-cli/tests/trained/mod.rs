//! Runs to ask about, trained by the library.

use std::path::{Path, PathBuf};

use quell::{
    data::{Scaling, Schema},
    learner::{Control, dp_sgd::DpSgd},
    network::Architecture,
    run::{Configuration, Folder, Job, NewBudget, Training},
};
use quell_ledger::{Location, Store};
use quell_privacy::ledger::Ledger;

/// What is public about the census.
pub(crate) const SCHEMA: &str = r#"
ignore = ["education"]
[label]
column = "income"
classes = ["<=50K", ">50K"]
[test]
share = 0.2
[[column]]
name = "age"
bounds = [17, 90]
[[column]]
name = "hours_per_week"
bounds = [1, 99]
[[column]]
name = "sex"
categories = ["Female", "Male"]
"#;

/// A folder with a ledger, and runs in it.
pub(crate) struct Trained {
    pub(crate) folder: PathBuf,
    pub(crate) ledger: String,
}

impl Trained {
    pub(crate) fn new(name: &str) -> Self {
        let folder = crate::command::folder(name);
        let ledger = folder.join("ledger").to_str().unwrap().to_owned();
        Self { folder, ledger }
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().to_owned()
    }

    /// A small model of the embedded digits.
    pub(crate) fn digits(&self) -> String {
        let mut configuration = Configuration::digits().unwrap();
        configuration.model = Architecture { name: Some("logistic".into()), layers: Vec::new() };
        // Far from how the pixels are stored, so that a model which is shown those is at a loss.
        configuration.data.scaling = Some(Scaling { mean: vec![0.9], deviation: vec![0.5] });
        configuration.training.steps = Some(40);
        self.train("digits", configuration)
    }

    /// A small model of the census, of which a fifth is held out and private.
    pub(crate) fn census(&self, change: impl FnOnce(&mut Configuration)) -> String {
        let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/census.csv");
        std::fs::copy(table, self.folder.join("census.csv")).unwrap();
        let mut configuration = Configuration::default();
        configuration.data.path = Some(self.folder.join("census.csv"));
        configuration.data.schema = Some(Schema::parse(SCHEMA).unwrap());
        configuration.training.steps = Some(60);
        configuration.training.sampling.records = Some(4000);
        configuration.training.sampling.rate = Some(0.1);
        configuration.training.privacy.epsilon = Some(2.0);
        configuration.budget = Some(NewBudget { epsilon: 10.0, delta: 1e-5 });
        change(&mut configuration);
        self.train("census", configuration)
    }

    fn train(&self, name: &str, configuration: Configuration) -> String {
        let job = Training::<DpSgd>::new(configuration).unwrap();
        std::fs::create_dir_all(&self.ledger).unwrap();
        let store = Store::create(Location::File(Path::new(&self.ledger).join("ledger.db"))).unwrap();
        let terms = job.terms().unwrap();
        let mut ledger = Ledger::create(store.book(&terms.dataset).unwrap(), terms).unwrap();
        let path = self.folder.join(name);
        let folder = Folder::create(&path).unwrap();
        job.go(&mut ledger, &folder, &mut |_| Control::Continue).unwrap();
        path.to_str().unwrap().to_owned()
    }
}
