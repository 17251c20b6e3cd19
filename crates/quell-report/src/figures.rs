//! Figures of a run, each with a sentence that explains how to read it.

use quell::{
    learner::Predictor,
    run::{Metrics, Model, PaymentRecord},
    voting::{Aggregation, Plan},
};
use quell_privacy::{
    Error, Event, Neighbors,
    accounting::{Pld, TradeOff},
    ledger::Unit,
    number::format_exact,
    units::{Delta, Probability},
};

use crate::plot::{Axis, Edge, Figure, Point, Series};

/// ε over the steps; none if no step was recorded.
pub(crate) fn epsilon(metrics: &Metrics, paid: &PaymentRecord, unit: Unit) -> Option<(Figure, &'static str)> {
    let origin = Point::exact(0.0, 0.0);
    let points: Vec<Point> = std::iter::once(origin)
        .chain(metrics.points.iter().map(|point| Point::exact(point.step as f64, point.epsilon)))
        .collect();
    let ends = [0.0, metrics.steps as f64].map(|step| Point::exact(step, paid.epsilon.upper)).to_vec();
    (points.len() > 1).then(|| {
        let figure = Figure {
            title: "Privacy loss over the run".into(),
            subtitle: format!(
                "at δ = {}; the ledger was charged for all steps before the first step",
                format_exact(paid.delta)
            ),
            x: Axis::linear("steps"),
            y: Axis::linear(format!("ε at δ = {}", format_exact(paid.delta))),
            series: vec![
                Series { name: "ε of the steps so far".into(), claim: Edge::Upper, points },
                Series { name: "ε of the charge".into(), claim: Edge::Upper, points: ends },
            ],
        };
        let reading = match unit {
            Unit::Example => "Upper bound on the privacy loss of one record after each number of steps.",
            Unit::User => "Upper bound on the privacy loss of one user after each number of steps.",
        };
        (figure, reading)
    })
}

/// The released variances along the directions of a model; none for other models.
pub(crate) fn spectrum(model: &Model) -> Option<(Figure, &'static str)> {
    let Predictor::Components(components) = &model.predictor else { return None };
    let shown = &components.spectrum[..components.spectrum.len().min(MOST_VARIANCES.max(components.count()))];
    let at = |number: usize| number as f64 + 1.0;
    let points = shown.iter().enumerate().map(|(number, variance)| Point::exact(at(number), *variance));
    let ends = [0, shown.len().saturating_sub(1)];
    (shown.len() > 1).then(|| {
        let figure = Figure {
            title: "Variance along each direction".into(),
            subtitle: "released with noise, from records shortened to a released length".into(),
            x: Axis::linear("direction, the largest variance first"),
            y: Axis::linear("variance"),
            series: vec![
                Series { name: "released variance".into(), claim: Edge::Upper, points: points.collect() },
                Series {
                    name: "largest variance of noise alone".into(),
                    claim: Edge::Upper,
                    points: ends.map(|end| Point::exact(at(end), components.noise)).to_vec(),
                },
            ],
        };
        (figure, "A variance above the line cannot come from noise alone, and one below it can. Directions of nearly equal \
             variance may be mixed with each other.")
    })
}

/// The most variances that a figure shows, unless more directions were asked for.
const MOST_VARIANCES: usize = 100;

/// ε of the last iterate over the number of hidden steps, beside ε of all iterates; none for other events.
pub(crate) fn last_iterate(
    event: &Event,
    neighbors: Neighbors,
    delta: Delta,
) -> Result<Option<(Figure, &'static str)>, quell::Error> {
    let (runs, hidden) = match event {
        Event::Repeated { count, event } => (*count, &**event),
        other => (1, other),
    };
    let Event::HiddenState { noise_multiplier, contraction, steps, diameter } = *hidden else {
        return Ok(None);
    };
    let last = |steps: u64| Event::HiddenState { noise_multiplier, contraction, steps, diameter };
    let all = |steps: u64| Event::gaussian(noise_multiplier).repeated(steps);
    // Both curves bend at the start, so points are closer there.
    let counts =
        (1..=HIDDEN_POINTS).map(|i| (steps as f64 * (i as f64 / HIDDEN_POINTS as f64).powi(2)).ceil());
    let mut counts: Vec<u64> = counts.map(|count| count as u64).collect();
    counts.dedup();
    let series = |name: &str, event: &dyn Fn(u64) -> Event| {
        let points = counts.iter().map(|count| {
            let epsilon = Pld::default().epsilon(&event(*count).repeated(runs), neighbors, delta)?;
            Ok(Point { x: *count as f64, lower: epsilon.lower, upper: epsilon.upper })
        });
        let points = points.collect::<Result<_, Error>>()?;
        Ok::<_, Error>(Series { name: name.into(), claim: Edge::Upper, points })
    };
    let shown = format_exact(delta.get());
    let figure = Figure {
        title: "What hidden steps save".into(),
        subtitle: format!("at δ = {shown}; only the last iterate was released"),
        x: Axis::linear("hidden steps"),
        y: Axis::linear(format!("ε at δ = {shown}")),
        series: vec![series("last iterate alone", &last)?, series("all iterates", &all)?],
    };
    Ok(Some((
        figure,
        "The privacy loss of the last iterate stops growing after enough steps. That of all iterates, with the same noise, does not.",
    )))
}

/// Number of points on each curve of hidden steps.
const HIDDEN_POINTS: u64 = 30;

/// ε over the answers; none if answers are not paid for one by one.
pub(crate) fn epsilon_of_answers(plan: &Plan) -> Result<Option<(Figure, &'static str)>, quell::Error> {
    let Aggregation::Polls(poll, rounds) = &plan.aggregation else { return Ok(None) };
    let delta = format_exact(plan.delta.get());
    let costs = (1..=*rounds).map(|round| {
        let cost = Aggregation::Polls(*poll, round).epsilon(plan.neighbors, plan.delta)?;
        Ok(Point { x: (u64::from(poll.answers) * round) as f64, lower: cost.lower, upper: cost.upper })
    });
    let points =
        std::iter::once(Ok(Point::exact(0.0, 0.0))).chain(costs).collect::<Result<Vec<_>, quell::Error>>()?;
    let ends = [points.first(), points.last()].into_iter().flatten();
    let paid = ends.map(|end| Point::exact(end.x, plan.epsilon.upper)).collect();
    let figure = Figure {
        title: "Privacy loss over the answers".into(),
        subtitle: format!("at δ = {delta}; the ledger was charged for all answers before the first question"),
        x: Axis::linear("answers"),
        y: Axis::linear(format!("ε at δ = {delta}")),
        series: vec![
            Series { name: "ε of the answers so far".into(), claim: Edge::Upper, points },
            Series { name: "ε of the charge".into(), claim: Edge::Upper, points: paid },
        ],
    };
    Ok(Some((
        figure,
        "Upper bound on the privacy loss of one record after each number of answers, for any votes.",
    )))
}

/// The error rates of the best attack; none if no trade-off function is known.
///
/// The subtitle names what was released.
pub(crate) fn attack(
    event: &Event,
    neighbors: Neighbors,
    subtitle: &str,
) -> Result<Option<(Figure, &'static str)>, quell::Error> {
    let attack = match TradeOff::new(&Pld::default(), event, neighbors) {
        Err(Error::Unsupported { .. }) => return Ok(None),
        other => other?,
    };
    let points = (0..=100_u32).map(|i| {
        // Points are dense at both ends, where the curve bends.
        let t = f64::from(i) / 100.0;
        let alpha = t * t * (3.0 - 2.0 * t);
        let beta = attack.beta(Probability::new(alpha)?);
        Ok(Point { x: alpha, lower: beta.lower, upper: beta.upper })
    });
    let guessing = [0.0, 1.0].map(|alpha| Point::exact(alpha, 1.0 - alpha)).to_vec();
    let figure = Figure {
        title: "Error rates of the best attack".into(),
        subtitle: subtitle.into(),
        x: Axis::linear("false-positive rate α"),
        y: Axis::linear("false-negative rate β"),
        series: vec![
            Series {
                name: "least false-negative rate of any attack".into(),
                claim: Edge::Lower,
                points: points.collect::<Result<_, Error>>()?,
            },
            Series { name: "random guessing".into(), claim: Edge::Lower, points: guessing },
        ],
    };
    Ok(Some((
        figure,
        "No attack has error rates below the curve. The closer the curve is to random guessing, the stronger is the privacy.",
    )))
}
