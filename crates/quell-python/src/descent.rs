//! Private gradient descent on vectors that a framework of Python computes.
//!
//! Rust decides everything that is private: the batch, the scales and the noise come from one [`Descent`] that was
//! paid for. Python measures the vectors of some records and adds them with the scales that it gets.
//!
//! # The contract of [`Contributions`] across the border
//! The proof assumes that numbers are added in single precision within a block of at most 96 records, and in double
//! precision beyond it. Larger sums of a framework would not be covered by [`Descent::inflation`]: the error of a sum
//! of n vectors of length C is n(n + 4)C/2²⁴, 1.8 % of C for n = 550. So a framework never sees more than one block:
//!
//! - One call of Python measures, and one adds, the records of one *piece*: a block, or a part of it cut by position
//!   (clause 4 allows both). The rows beside a record in a matrix product are therefore rows of its own block, and
//!   the drift that clause 2 allows for 96 neighbours covers them.
//! - The sum of a piece is added here, in double precision, one piece after the other in the order of the blocks.
//!   Threads divide coordinates and not records, so the order does not depend on their number.
//! - Lengths cross the border in double precision, scales in single precision.
//! - An entry of a sum that is not finite adds nothing. A learner that keeps the contract returns none: a scaled vector
//!   is no longer than the clip norm. A product of scale and factor must not overflow on the way, so `quell.torch`
//!   refuses scales above one (automatic clipping); `quell.jax` scales the rows of gradients themselves.
//!
//! What remains is the contract of the learner itself. The Python packages check it with made-up records before they
//! pay.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError, TryLockError},
};

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::{prelude::*, types::PyAny};
use quell_ledger::InMemory;
use quell_privacy::{
    Bound, Neighbors,
    accounting::{Calibration, Pld, Target, distance},
    ledger::{Budget, Composition, Ledger, Note, Paid, Receipt, Terms, Unit},
    mechanism::{Clipper, Clipping, Contributions, Descent, Mechanism, Sampling},
    units::{ClipNorm, Delta, Epsilon, NoiseMultiplier},
};
use serde::Deserialize;
use serde_json::json;

use crate::{
    accounting::neighbors,
    error::{Error, Result},
    ledger::PyLedger,
    process::Process,
};

pub(crate) fn register(module: &PyModuleRef<'_>) -> PyResult<()> {
    module.add_class::<PyDescent>()?;
    module.add_function(wrap_pyfunction!(plan_descent, module)?)
}

/// A module of Python; the name `Bound` is taken by bounds on ε.
type PyModuleRef<'py> = pyo3::Bound<'py, PyModule>;

/// A plan as Python writes it.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    epsilon: Option<f64>,
    delta: f64,
    noise_multiplier: Option<f64>,
    sampling: Sampling,
    clipping: Clipping,
    dimension: usize,
    steps: u64,
}

/// Factors on the target, one after the other, until the cost is within ε: calibration is more precise than a ledger.
const MARGINS: [f64; 6] = [1.0, 0.9995, 0.999, 0.998, 0.995, 0.99];

impl Settings {
    fn mechanism(&self, noise_multiplier: NoiseMultiplier) -> Descent {
        Descent {
            sampling: self.sampling,
            clipping: self.clipping.clone(),
            noise_multiplier,
            dimension: self.dimension,
        }
    }

    /// The mechanism, with the least noise that is private enough unless the noise is given, and its ε alone.
    fn plan(&self, neighbors: Neighbors) -> Result<(Descent, Bound)> {
        let delta = Delta::new(self.delta)?;
        if let Some(noise) = self.noise_multiplier {
            let mechanism = self.mechanism(NoiseMultiplier::new(noise)?);
            let cost = self.cost(&mechanism, neighbors, delta)?;
            if let Some(wanted) = self.epsilon.filter(|wanted| cost.upper > *wanted) {
                let found = format!("{wanted}, less than the {:.4} that this noise costs", cost.upper);
                let expected = "at least that cost, or no noise_multiplier";
                return Err(quell::Error::Setting { name: "epsilon", found, expected }.into());
            }
            return Ok((mechanism, cost));
        }
        let Some(wanted) = self.epsilon else {
            let (name, found, expected) = ("epsilon", "missing".into(), "epsilon or noise_multiplier");
            return Err(quell::Error::Setting { name, found, expected }.into());
        };
        // An error in the settings is reported as such, and not as a failed calibration.
        self.mechanism(NoiseMultiplier::new(1.0)?).check(neighbors)?;
        let mut least = f64::INFINITY;
        for margin in MARGINS {
            let target = Target::EpsilonDelta { epsilon: Epsilon::new(wanted * margin)?, delta };
            let noise = Calibration::new(target, neighbors)
                .least_noise(|noise| self.mechanism(noise).event_of_runs(neighbors, self.steps))?;
            let mechanism = self.mechanism(noise);
            let cost = self.cost(&mechanism, neighbors, delta)?;
            if cost.upper <= wanted {
                return Ok((mechanism, cost));
            }
            least = least.min(cost.upper);
        }
        let found = format!("{wanted}, less than the {least:.4} that the steps cost");
        Err(quell::Error::Setting { name: "epsilon", found, expected: "a larger one, or fewer steps" }.into())
    }

    /// ε of all steps at δ: the larger one of the accountant's and of what a ledger of its own would charge.
    fn cost(&self, mechanism: &Descent, neighbors: Neighbors, delta: Delta) -> Result<Bound> {
        mechanism.check(neighbors)?;
        if self.steps == 0 {
            let (name, found, expected) = ("steps", "0".into(), "at least 1");
            return Err(quell::Error::Setting { name, found, expected }.into());
        }
        let event = mechanism.event_of_runs(neighbors, self.steps);
        let ideal = |delta| Pld::default().epsilon(&event, neighbors, delta);
        let bound = distance::epsilon(&ideal, mechanism.distance_of_runs(self.steps), delta)?;
        // A ledger that is as large as it must be, which decides by which theorem it composes.
        let epsilon = self.epsilon.unwrap_or(bound.upper * 1.001);
        let epsilon = (epsilon > 0.0 && epsilon.is_finite()).then(|| Epsilon::new(epsilon)).transpose()?;
        let budget = Budget { epsilon, delta };
        let (unit, composition) = (Unit::Example, Composition::Combined);
        let terms = Terms { dataset: "plan".into(), unit, neighbors, budget, composition };
        let mut ledger = Ledger::create(InMemory::new("plan"), terms)?;
        let charged = ledger.quote(mechanism, self.steps)?.1.epsilon;
        Ok(Bound { upper: bound.upper.max(charged), ..bound })
    }

    /// What a plan is, as JSON.
    fn describe(&self, mechanism: &Descent, cost: Bound) -> serde_json::Value {
        json!({
            "epsilon": cost.upper,
            "lower": cost.lower,
            "delta": self.delta,
            "noise_multiplier": mechanism.noise_multiplier.get(),
            "inflation": mechanism.inflation(),
            "clip_norm": mechanism.clipping.norm(),
            "steps": self.steps,
            "what": mechanism.to_string(),
        })
    }
}

/// Plans a descent and charges nothing. Returns JSON: the noise, and ε of all steps.
#[pyfunction]
fn plan_descent(py: Python<'_>, settings: &str, relation: &str) -> PyResult<String> {
    Ok(py.detach(|| -> Result<String> {
        let settings: Settings = serde_json::from_str(settings)?;
        let (mechanism, cost) = settings.plan(neighbors(relation)?)?;
        Ok(settings.describe(&mechanism, cost).to_string())
    })?)
}

/// A descent whose steps were paid for together, before the first of them.
///
/// Steps are leased from the ledger in blocks. A step that was handed out and did not finish is spent.
#[pyclass(name = "Descent", module = "quell._native", frozen)]
struct PyDescent {
    ledger: Py<PyLedger>,
    note: Note,
    mechanism: Descent,
    steps: u64,
    receipt: Receipt,
    plan: String,
    process: Process,
    state: Mutex<State>,
}

struct State {
    /// Leased steps that were not taken yet.
    leased: VecDeque<Paid<Descent>>,
    /// The number of the next step.
    position: u64,
    /// The clip norm that adaptive clipping found.
    norm: Option<ClipNorm>,
}

/// A noisy sum, the share of vectors within the norm with adaptive clipping, and the norm.
type Released<'py> = (pyo3::Bound<'py, PyArray1<f32>>, Option<f64>, f64);

/// How many blocks of steps a run leases, like other runs.
const LEASES: u64 = 64;

#[pymethods]
impl PyDescent {
    /// Pays for all steps at once, or finds the charge that was made under this key before.
    ///
    /// Steps that were leased then are spent: the run goes on with the next one.
    /// `one_record_per_user` says that every user of the ledger has only one record, where its unit is a user.
    #[staticmethod]
    fn pay(
        py: Python<'_>,
        ledger: Py<PyLedger>,
        settings: &str,
        key: &str,
        one_record_per_user: bool,
        by: Option<String>,
        release: Option<String>,
    ) -> PyResult<Self> {
        let note = Note { by, release, ..Note::default() };
        let paying = ledger.get();
        let (mechanism, steps, receipt, plan, position) = py.detach(|| -> Result<_> {
            let settings: Settings = serde_json::from_str(settings)?;
            let mut opened = paying.open()?;
            let terms = opened.state()?.terms().clone();
            if terms.unit == Unit::User && !one_record_per_user {
                let found = "the ledger protects one user, and one user may have several records".to_owned();
                let hint = "group the records of each user into one, and say one_record_per_user=True";
                return Err(Error::Hinted("UnsupportedError", found, hint.into()));
            }
            let (mechanism, cost) = settings.plan(terms.neighbors)?;
            let plan = settings.describe(&mechanism, cost).to_string();
            opened.annotate(&note);
            let lease = opened.reserve_once(key, mechanism.clone(), settings.steps)?;
            let (receipt, position) = (lease.receipt().clone(), lease.position());
            Ok((mechanism, settings.steps, receipt, plan, position))
        })?;
        let state = Mutex::new(State { leased: VecDeque::new(), position, norm: None });
        Ok(Self { ledger, note, mechanism, steps, receipt, plan, process: Process::this(), state })
    }

    /// The plan, as JSON.
    #[getter]
    fn plan(&self) -> &str {
        &self.plan
    }

    /// The receipt of the charge, as JSON.
    #[getter]
    fn receipt(&self) -> String {
        json!(self.receipt).to_string()
    }

    /// How many steps were taken.
    #[getter]
    fn position(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).position
    }

    /// Takes the next step: the noisy sum, and with adaptive clipping the share within the norm and the next norm.
    ///
    /// `None` after the last step. `measure` gets the numbers of some records and returns the squared lengths of their
    /// vectors: a row for each record, a column for each part that is clipped. `add` gets the scales, as many, and
    /// returns the sums of the scaled vectors in pieces, one after the other. Both see at most `most` records at once.
    /// An exception of either ends the step: it is spent, and nothing is released.
    fn step<'py>(
        &self,
        py: Python<'py>,
        records: usize,
        most: usize,
        measure: Py<PyAny>,
        add: Py<PyAny>,
    ) -> PyResult<Option<Released<'py>>> {
        let mut learner = Framework {
            dimension: self.mechanism.dimension,
            most: most.max(1),
            measure,
            add,
            scales: Vec::new(),
            failure: None,
        };
        let released = py.detach(|| -> Result<_> {
            self.process.check("a run")?;
            let mut state = self.state()?;
            let Some(paid) = self.next(&mut state)? else { return Ok(None) };
            let norm = state.norm.map_or(self.mechanism.clipping.norm(), ClipNorm::get);
            let mut batches = paid.start(records)?;
            if let Some(norm) = state.norm {
                batches = batches.with_clip_norm(norm);
            }
            state.position += 1;
            let step = batches.next(&mut learner);
            // A learner that forks has a copy of the batch and of the noise that follows.
            self.process.check("a run")?;
            if let Some(failure) = learner.failure.take() {
                // The sum is incomplete, so it is not released.
                return Err(failure);
            }
            let Some(step) = step.transpose()? else { return Ok(None) };
            state.norm = step.next_norm.or(state.norm);
            Ok(Some((step.sum, step.share_within, norm)))
        })?;
        Ok(released.map(|(sum, share, norm)| (PyArray1::from_vec(py, sum), share, norm)))
    }
}

impl PyDescent {
    /// The state, unless a step is being taken: by another thread, or by a function that this one has called.
    fn state(&self) -> Result<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(state)) => Ok(state.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(Error::Other("RunError", "a step of this run is being taken already".into()))
            }
        }
    }

    /// The next step that was paid for, from a block that the ledger has recorded as leased.
    fn next(&self, state: &mut State) -> Result<Option<Paid<Descent>>> {
        if state.leased.is_empty() {
            let mut ledger = self.ledger.get().open()?;
            ledger.annotate(&self.note);
            let block = self.steps.div_ceil(LEASES);
            let mut lease = ledger.resume(self.mechanism.clone(), self.receipt.entry)?.in_blocks_of(block);
            for paid in lease.by_ref().take(block as usize) {
                state.leased.push_back(paid?);
                if lease_ends(self.steps, state) {
                    break;
                }
            }
        }
        Ok(state.leased.pop_front())
    }
}

/// Whether the steps at hand are the last ones: then no further block is asked for.
fn lease_ends(steps: u64, state: &State) -> bool {
    state.position + state.leased.len() as u64 >= steps
}

/// The vectors of records, as functions of Python measure and add them.
struct Framework {
    dimension: usize,
    /// The most records of one call.
    most: usize,
    measure: Py<PyAny>,
    add: Py<PyAny>,
    scales: Vec<f32>,
    failure: Option<Error>,
}

impl Contributions for Framework {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn add_clipped(&mut self, blocks: &[&[usize]], clipper: &Clipper, sum: &mut [f64]) {
        let most = self.most;
        for piece in blocks.iter().flat_map(|block| block.chunks(most)) {
            if self.failure.is_none() {
                self.failure = self.add_piece(piece, clipper, sum).err();
            }
        }
    }
}

impl Framework {
    fn add_piece(&mut self, piece: &[usize], clipper: &Clipper, sum: &mut [f64]) -> Result<()> {
        let parts = clipper.parts().len();
        Python::attach(|py| {
            py.check_signals()?;
            let records = PyArray1::from_iter(py, piece.iter().map(|record| *record as i64));
            let measured = self.measure.call1(py, (records,))?;
            let squared: PyReadonlyArray2<'_, f64> = measured.extract(py)?;
            if squared.shape() != [piece.len(), parts] {
                return Err(unexpected("lengths", &format!("{:?}", squared.shape()), &[piece.len(), parts]));
            }
            self.scales.clear();
            self.scales.resize(piece.len() * parts, 0.0);
            let mut row = vec![0.0; parts];
            for (squared, scales) in
                squared.as_array().outer_iter().zip(self.scales.chunks_exact_mut(parts.max(1)))
            {
                row.iter_mut().zip(squared).for_each(|(to, from)| *to = *from);
                clipper.scales(&row, scales);
            }
            let scales = PyArray1::from_slice(py, &self.scales).reshape([piece.len(), parts])?;
            let added: Vec<PyReadonlyArray1<'_, f32>> = self.add.call1(py, (scales,))?.extract(py)?;
            let pieces =
                added.iter().map(|piece| piece.as_slice()).collect::<std::result::Result<Vec<_>, _>>();
            let pieces = pieces.map_err(|_| {
                Error::Other("RunError", "a sum is not contiguous in memory, expected one that is".into())
            })?;
            let total: usize = pieces.iter().map(|piece| piece.len()).sum();
            if total != self.dimension {
                return Err(unexpected("sums", &total.to_string(), &[self.dimension]));
            }
            py.detach(|| {
                let mut rest = sum;
                for piece in pieces {
                    let (part, after) = rest.split_at_mut(piece.len());
                    add_doubled(part, piece);
                    rest = after;
                }
            });
            Ok(())
        })
    }
}

fn unexpected(what: &str, found: &str, expected: &[usize]) -> Error {
    Error::Other("RunError", format!("the shape of the {what} is {found}, expected {expected:?}"))
}

/// Numbers of a thread: fewer are added faster than a thread starts.
const SHARE: usize = 1 << 17;

/// Adds numbers in double precision; one that is not finite adds nothing.
fn add_doubled(sum: &mut [f64], piece: &[f32]) {
    let add = |sum: &mut [f64], piece: &[f32]| {
        for (sum, x) in sum.iter_mut().zip(piece) {
            *sum += if x.is_finite() { f64::from(*x) } else { 0.0 };
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(piece.len() / SHARE);
    if threads < 2 {
        return add(sum, piece);
    }
    let share = piece.len().div_ceil(threads);
    std::thread::scope(|scope| {
        for (sum, piece) in sum.chunks_mut(share).zip(piece.chunks(share)) {
            scope.spawn(move || add(sum, piece));
        }
    });
}
