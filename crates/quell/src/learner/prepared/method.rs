//! DP-SGD on privately prepared records, as a method that a run can pay for.

use quell_privacy::{
    ledger::{Book, Lease, Terms, Unit},
    mechanism::{Descends, StagedDescent},
};
use serde_json::{Value, json};

use super::{Plan, Preparation, State, calibration::LastRun};
use crate::{
    Error,
    data::Examples,
    learner::{
        Control, Method, PlannedCost, Predictor, Privacy, Snapshot, Subject, Supervised,
        dp_sgd::{DpSgd, Kind, OtherRuns, Recipe, train},
        loss::Loss,
        method::check_targets,
        privacy,
        signal::NOISE_ALONE,
        sums::Estimates,
    },
    network::Architecture,
    terms,
};

/// DP-SGD on privately prepared records, with complete settings.
pub struct Prepared {
    /// The plan of the preparation.
    pub preparation: Plan,
    /// The network and its plan, which includes the cost of preparation and calibration.
    pub training: DpSgd,
    /// The run after the steps, if there is one.
    calibration: Option<LastRun>,
}

/// The records, before and after the preparation.
pub struct Task<'a> {
    examples: &'a Examples,
    unit: Unit,
    records: Supervised<'a>,
}

impl Method for Prepared {
    type Recipe = Recipe;
    type Mechanism = StagedDescent;
    type Task<'a> = Task<'a>;
    type State = State;

    fn plan(recipe: &mut Recipe, model: &mut Architecture, subject: &Subject<'_>) -> Result<Self, Error> {
        let Some(preparation) = recipe.preparation else {
            return Err(Error::Setting {
                name: "preparation",
                found: "not given".into(),
                expected: "what is to be found about all records first",
            });
        };
        let records = recipe.records(&subject.facts)?;
        let delta = recipe.privacy.delta_for(records)?;
        let preparation = Plan::new(preparation, recipe.privacy, (records, delta), subject)?;
        let calibration = LastRun::chosen(recipe, model, subject, (records, delta))?;
        check_price(recipe.privacy, &preparation, calibration.as_ref())?;
        recipe.preparation = Some(preparation.preparation);
        recipe.calibration = calibration.as_ref().map(LastRun::settings).or(recipe.calibration);
        // Prepared numbers are columns on one scale, whatever they were before.
        let is_standardized = !matches!(preparation.preparation, Preparation::Components { .. });
        let kind = Kind::table(subject, is_standardized);
        let subject = Subject {
            shape: &preparation.preparation.output_shape(subject.shape),
            are_features: true,
            facts: subject.facts.clone(),
            schema: None,
        };
        let others = OtherRuns {
            preparation: vec![preparation.sums.mechanism()],
            calibration: calibration.as_ref().map(|last| last.descent.clone()),
        };
        let training = DpSgd::plan_with(others, kind, recipe, model, &subject)?;
        Ok(Self { preparation, training, calibration })
    }

    fn parameters(&self) -> usize {
        self.training.parameters()
    }

    fn cost(&self) -> PlannedCost {
        self.training.cost()
    }

    fn mechanism(&self) -> (StagedDescent, u64) {
        self.training.plan.staged()
    }

    fn spent_after(&self, runs: u64) -> Result<f64, Error> {
        self.training.spent_after(runs)
    }

    fn records(&self) -> u64 {
        self.training.records()
    }

    fn settings(&self) -> Vec<(&'static str, Value)> {
        let sums = &self.preparation.sums;
        let noise = sums.noise() / (sums.runs as f64).sqrt();
        let mut settings = vec![
            ("preparation", json!(self.preparation.preparation.name())),
            ("features after it", json!(self.training.network.input().iter().product::<usize>())),
            ("runs of the preparation", json!(sums.runs)),
            ("noise multiplier of one release with the cost of these runs", json!(noise)),
        ];
        settings.extend(self.training.settings());
        if let Some(last) = &self.calibration {
            let noise = last.descent.noise_multiplier.get();
            settings.push(("noise multiplier of the calibration after the steps", json!(noise)));
        }
        settings
    }

    /// The end of the preparation is saved: without it, the steps would be of no use. So is the last step.
    fn saves_at(&self, step: u64) -> bool {
        step == self.preparation.sums.runs || step == self.before_calibration()
    }

    fn remarks(&self) -> Vec<String> {
        self.training.remarks()
    }

    fn remarks_on(&self, state: &State) -> Vec<String> {
        // The preparation counts the records, which tells more than gradients do.
        let is_noise = state.preparation.are_noise(self.preparation.sums.noise());
        let mut remarks = self.training.remarks_on(&state.checkpoint);
        remarks.retain(|remark| remark != NOISE_ALONE);
        remarks.extend(is_noise.then(|| NOISE_ALONE.to_owned()));
        if self.calibration.is_some() && state.calibration.is_none() {
            remarks.push(
                "the probabilities are not calibrated: what calibrates them was lost when the run was killed"
                    .into(),
            );
        }
        remarks
    }

    fn releases(&self) -> &'static str {
        if self.calibration.is_some() {
            "the noisy sums of the preparation and of the calibration, and every iterate"
        } else {
            "the noisy sums of the preparation and every iterate"
        }
    }

    fn check(&self, terms: &Terms, examples: &Examples) -> Result<(), Error> {
        check_targets(examples, self.preparation.width, self.training.classes)?;
        self.training.plan.check_count(terms, examples)
    }

    fn task<'a>(&self, examples: &'a Examples, unit: Unit) -> Result<Task<'a>, Error> {
        let (neighbors, count) = (self.cost().neighbors, self.records());
        // The loss is not used: the preparation reads no target.
        let records = Supervised::new(examples, Loss::Squared, None).protecting(unit, neighbors, count)?;
        Ok(Task { examples, unit, records })
    }

    fn state(&self, saved: Option<&[u8]>) -> Result<State, Error> {
        let steps = (self.training.plan.runs, self.calibration.as_ref().map(LastRun::length));
        State::new(&self.preparation, self.training.state(saved)?, steps, saved)
    }

    fn fit<B: Book>(
        &self,
        mut lease: Lease<'_, StagedDescent, B>,
        task: &mut Task<'_>,
        state: &mut State,
        mut watch: impl FnMut(&State) -> Result<Control, Error>,
    ) -> Result<(), Error> {
        terms::check_lease(&mut lease, task.unit, self.cost().neighbors)?;
        let (runs, dimension) = (self.preparation.sums.runs, self.preparation.sums.descent.dimension);
        while lease.position() < runs {
            let Some(paid) = lease.next() else { break };
            let (paid, run) = (paid?, lease.position() - 1);
            state.preparation.skip_to(run.min(runs));
            let Some(mut vectors) = state.preparation.estimates().vectors(&task.records, dimension) else {
                break;
            };
            let Some(released) = StagedDescent::start(paid, task.records.records())?.next(&mut vectors)
            else {
                continue;
            };
            state.preparation.apply(Some(&released?.sum));
            match watch(state)? {
                Control::Stop => return Ok(()),
                Control::Saved => lease.confirm()?,
                Control::Continue => {}
            }
        }
        // A kill after the last lease of the preparation loses its last runs.
        state.preparation.skip_to(runs);
        if state.preparation.taken() == 0 {
            let expected = "a new run: what this run found about its records was lost, and is charged";
            return Err(Error::saved("the preparation", "lost when the run was killed", expected));
        }
        // From here on a record is transformed by what was released, and by nothing else.
        let prepared = state.transform().apply(task.examples)?;
        let mut records = self.training.plan.task(&prepared, task.unit)?;
        let DpSgd { plan, network, .. } = &self.training;
        let control = train(&mut lease, runs, (plan, network), &mut records, state, &mut watch)?;
        let (Control::Continue | Control::Saved, Some(last)) = (control, &self.calibration) else {
            return Ok(());
        };
        // A run that was killed may have lost this one.
        let Some(paid) = lease.next().filter(|_| lease.position() > self.before_calibration()) else {
            return Ok(());
        };
        let weights = state.checkpoint.model();
        let mut vectors = last.vectors(network, &weights, &records);
        if let Some(released) = StagedDescent::start(paid?, records.records())?.next(&mut vectors) {
            state.calibration = Some(released?.sum);
            if watch(state)? == Control::Saved {
                lease.confirm()?;
            }
        }
        Ok(())
    }

    fn model(&self, state: &State) -> Predictor {
        let (transform, mut model) = (state.transform().clone(), self.training.model(&state.checkpoint));
        if let (Some(last), Some(released), Predictor::Network(fitted)) =
            (&self.calibration, &state.calibration, &mut model)
        {
            last.correct(released, self.records(), &self.training.network, &mut fitted.weights);
        }
        model.prepared_by(transform)
    }
}

impl Prepared {
    /// Number of runs before the calibration.
    fn before_calibration(&self) -> u64 {
        self.preparation.sums.runs + self.training.plan.runs
    }
}

/// Checks that preparation and calibration leave something of the requested ε for the steps.
fn check_price(privacy: Privacy, preparation: &Plan, calibration: Option<&LastRun>) -> Result<(), Error> {
    let Some(asked) = privacy.epsilon else { return Ok(()) };
    let sums = &preparation.sums;
    let refused = |name, what: &str, cost: f64| Error::Setting {
        name,
        found: format!("so small that {what} alone costs ε = {cost:.3} of {asked}"),
        expected: "a larger number, or none: it is chosen then",
    };
    if sums.epsilon.upper >= asked {
        let cost = sums.epsilon.upper;
        return Err(refused("noise multiplier of the preparation", "the preparation", cost));
    }
    let Some(last) = calibration else { return Ok(()) };
    let staged = StagedDescent { preparation: vec![sums.mechanism()], descent: last.descent.clone() };
    let cost = privacy::cost(&staged, sums.runs + 1, sums.neighbors, sums.delta)?.upper;
    if cost >= asked {
        return Err(refused("noise multiplier of the calibration", "it with the preparation", cost));
    }
    Ok(())
}
