//! Training: plans, payment, progress and results of a run.

use std::path::PathBuf;

use pyo3::prelude::*;
use quell::{
    learner::Control,
    run::{self, Configuration, Driver, Folder, Guarantee, Job, Progress},
};
use quell_privacy::{
    ledger::{Ledger, Note, Terms, Unit},
    units::Delta,
};
use quell_report::Report;
use serde_json::{Value, json};

use crate::{
    error::{Error, Result},
    ledger::{AnyBook, PyLedger},
    model::PyModel,
    process::Process,
    records::PyRecords,
};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(plan, module)?)?;
    module.add_function(wrap_pyfunction!(train, module)?)?;
    module.add_function(wrap_pyfunction!(resume, module)?)?;
    module.add_function(wrap_pyfunction!(models, module)?)?;
    module.add_function(wrap_pyfunction!(read_schema, module)?)?;
    module.add_function(wrap_pyfunction!(settings_of, module)?)
}

/// The models that can be trained by name: name, and what it is for.
#[pyfunction]
fn models() -> Vec<(String, String)> {
    run::named_models().into_iter().map(|model| (model.name.to_owned(), model.purpose.to_owned())).collect()
}

/// Reads a schema from a TOML file, as JSON.
#[pyfunction]
fn read_schema(path: PathBuf) -> PyResult<String> {
    let schema = quell::data::Schema::read(&path).map_err(Error::from)?;
    Ok(serde_json::to_string(&schema).map_err(Error::from)?)
}

/// The settings of a run folder, as JSON.
#[pyfunction]
fn settings_of(folder: PathBuf) -> PyResult<String> {
    let read = || -> Result<String> { Ok(serde_json::to_string(&Folder::open(&folder)?.configuration()?)?) };
    Ok(read()?)
}

/// The settings with the records, and with the terms of the ledger that will pay.
///
/// A ledger that protects records does not protect users, so users are refused there.
fn configured(settings: &str, records: &PyRecords, terms: &Terms) -> Result<Configuration> {
    let mut configuration: Configuration = serde_json::from_str(settings)?;
    let has_users =
        records.has_users || configuration.data.schema.as_ref().is_some_and(|schema| schema.user.is_some());
    if has_users && terms.unit == Unit::Example {
        let found = "users are given, and the ledger protects one record, expected one that protects users";
        let hint = "create a ledger with unit=\"user\", or leave out the users";
        return Err(Error::Hinted("SettingError", found.into(), hint.into()));
    }
    configuration.data.records = Some(records.records.clone());
    configuration.set_neighbors(terms.neighbors);
    configuration.data.unit = terms.unit;
    configuration.data.dataset = Some(terms.dataset.clone());
    Ok(configuration)
}

/// Plans a run and charges nothing. Returns JSON: all settings, the guarantee and remarks.
#[pyfunction]
fn plan(py: Python<'_>, settings: &str, records: &PyRecords, ledger: &PyLedger) -> PyResult<String> {
    Ok(py.detach(|| -> Result<String> {
        let mut ledger = ledger.open()?;
        let configuration = configured(settings, records, &terms_of(&mut ledger)?)?;
        let configuration = Configuration { is_only_planned: true, ..configuration };
        run::train(configuration, Plan(ledger))?
    })?)
}

fn terms_of(ledger: &mut Ledger<AnyBook>) -> Result<Terms> {
    Ok(ledger.state()?.terms().clone())
}

/// The guarantee of a job, as JSON.
fn described(guarantee: &Guarantee) -> Value {
    json!({
        "epsilon": guarantee.epsilon.upper,
        "lower": guarantee.epsilon.lower,
        "delta": guarantee.delta.get(),
        "unit": guarantee.unit,
        "neighbors": guarantee.neighbors,
        "claim": guarantee.to_string(),
    })
}

struct Plan(Ledger<AnyBook>);

impl Driver for Plan {
    type Output = Result<String>;

    fn drive<J: Job>(self, job: &J) -> Result<String> {
        let Self(mut ledger) = self;
        let after = job.quote(&mut ledger)?.epsilon;
        let settings = job.settings()?;
        Ok(json!({
            "settings": settings.json,
            "amount": settings.amount,
            "guarantee": described(&job.guarantee()),
            "remarks": job.remarks(),
            "spent_after": after.is_finite().then_some(after),
        })
        .to_string())
    }
}

/// Trains a model, and pays for it. Returns JSON about the run, and the model.
///
/// `watch` is called with the stage, the number done, their total, ε so far and the accuracy on public test records;
/// if it returns `False`, the run stops.
#[pyfunction]
#[pyo3(signature = (settings, records, folder, is_temporary, ledger, watch = None, by = None))]
#[expect(clippy::too_many_arguments, reason = "each is an option of one run")]
fn train(
    py: Python<'_>,
    settings: &str,
    records: &PyRecords,
    folder: PathBuf,
    is_temporary: bool,
    ledger: &PyLedger,
    watch: Option<Py<PyAny>>,
    by: Option<String>,
) -> PyResult<(String, Option<PyModel>)> {
    Ok(py.detach(|| -> Result<_> {
        let terms = terms_of(&mut ledger.open()?)?;
        let configuration = configured(settings, records, &terms)?;
        let place = Place::New { folder, is_temporary };
        run::train(configuration, Train { ledger, place, watch, by })?
    })?)
}

/// Continues the run of a folder with the same records. Work that was paid for is not charged again.
#[pyfunction]
#[pyo3(signature = (folder, records, ledger, watch = None, by = None))]
fn resume(
    py: Python<'_>,
    folder: PathBuf,
    records: &PyRecords,
    ledger: &PyLedger,
    watch: Option<Py<PyAny>>,
    by: Option<String>,
) -> PyResult<(String, Option<PyModel>)> {
    Ok(py.detach(|| -> Result<_> {
        let folder = Folder::open(&folder)?.locked()?;
        let mut configuration = folder.configuration()?;
        configuration.data.records = Some(records.records.clone());
        let place = Place::Existing(folder);
        run::train(configuration, Train { ledger, place, watch, by })?
    })?)
}

/// The folder of a run.
enum Place {
    /// A folder to make. In a temporary one, nobody resumes the run.
    New {
        folder: PathBuf,
        is_temporary: bool,
    },
    Existing(Folder),
}

struct Train<'l> {
    ledger: &'l PyLedger,
    place: Place,
    watch: Option<Py<PyAny>>,
    by: Option<String>,
}

impl Driver for Train<'_> {
    type Output = Result<(String, Option<PyModel>)>;

    fn drive<J: Job>(self, job: &J) -> Self::Output {
        let mut ledger = self.ledger.open()?;
        ledger.annotate(&Note { by: self.by, ..job.note() });
        let folder = match self.place {
            Place::Existing(folder) => folder,
            Place::New { folder, is_temporary } => {
                check_budget(&mut ledger, job)?;
                if is_temporary { Folder::create_temporary(&folder)? } else { Folder::create(&folder)? }
            }
        };
        let process = Process::this();
        let mut failure = None;
        let outcome = job.go(&mut ledger, &folder, &mut |progress| match report(
            self.watch.as_ref(),
            &progress,
            process,
        ) {
            Ok(control) => control,
            Err(error) => {
                failure = Some(error);
                Control::Stop
            }
        });
        if let Some(error) = failure {
            return Err(error.into());
        }
        let outcome = outcome?;
        let (mut model, mut page) = (None, None);
        if outcome.is_finished && outcome.answers.is_none() {
            let report = Report::of_run(&folder)?;
            report.pages().iter().try_for_each(|(file, page)| folder.write(file, page.as_bytes()))?;
            page = Some(report.html());
            model = Some(PyModel::new(folder.model()?));
        }
        let promise = match &outcome.paid {
            Some(paid) => {
                Guarantee { epsilon: paid.epsilon, delta: Delta::new(paid.delta)?, ..job.guarantee() }
            }
            None => job.guarantee(),
        };
        let outcome = json!({
            "is_finished": outcome.is_finished,
            "position": outcome.position,
            "results": outcome.results,
            "remarks": job.remarks().into_iter().chain(outcome.remarks).collect::<Vec<_>>(),
            "json": outcome.json,
            "guarantee": described(&promise),
            "report": page,
        });
        Ok((outcome.to_string(), model))
    }
}

/// Refuses a run that the ledger would refuse, before its folder is made.
fn check_budget(ledger: &mut Ledger<AnyBook>, job: &impl Job) -> Result<()> {
    let after = job.quote(ledger)?.epsilon;
    let (spent, budget) = (ledger.state()?.spent().epsilon, ledger.state()?.budget().cap());
    // This comparison is false for NaN.
    let fits = after <= budget;
    if fits { Ok(()) } else { Err(quell_privacy::Error::Refused { would_be: after, spent, budget }.into()) }
}

/// Passes public progress to Python, and sees to signals such as Ctrl-C.
fn report(watch: Option<&Py<PyAny>>, progress: &Progress, process: Process) -> PyResult<Control> {
    Python::attach(|py| {
        py.check_signals()?;
        let Some(watch) = watch else { return Ok(Control::Continue) };
        let Progress { stage, done, of, epsilon, accuracy } = *progress;
        let answer = watch.call1(py, (stage, done, of, epsilon, accuracy))?;
        process.check("a run")?;
        Ok(if answer.bind(py).is(pyo3::types::PyBool::new(py, false)) {
            Control::Stop
        } else {
            Control::Continue
        })
    })
}
