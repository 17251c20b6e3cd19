//! Pictures of a run, each with a sentence on how to read it.

use anyhow::Result;
use quell::{
    run::{Metrics, Paid},
    voting::{Plan, Release},
};
use quell_privacy::{
    Error, Event, Neighbors,
    accounting::{Pld, TradeOff},
    number::given,
    units::Probability,
};

use crate::{
    plot::{Axis, Edge, Figure, Point, Series},
    print::Progress,
};

pub(super) fn accuracy(metrics: &Metrics) -> Option<(Figure, &'static str)> {
    let points = metrics.points.iter().filter_map(|point| Some(Point::exact(point.step as f64, 100.0 * point.accuracy?)));
    let points: Vec<Point> = points.collect();
    (points.len() > 1).then(|| {
        let figure = Figure {
            title: "Accuracy over the run".into(),
            subtitle: "on public test data, which cost nothing to look at".into(),
            x: Axis::linear("steps"),
            y: Axis::linear("accuracy (%)"),
            series: vec![Series { name: "accuracy on public data".into(), claim: Edge::Upper, points }],
        };
        (figure, "How good the model was along the way.")
    })
}

pub(super) fn epsilon(metrics: &Metrics, paid: &Paid) -> Option<(Figure, &'static str)> {
    let begun = Point::exact(0.0, 0.0);
    let points: Vec<Point> =
        std::iter::once(begun).chain(metrics.points.iter().map(|point| Point::exact(point.step as f64, point.epsilon))).collect();
    let ends = [0.0, metrics.steps as f64].map(|step| Point::exact(step, paid.epsilon.upper)).to_vec();
    (points.len() > 1).then(|| {
        let figure = Figure {
            title: "Privacy loss over the run".into(),
            subtitle: format!("at δ = {}; all of it was paid for before the first step", given(paid.delta)),
            x: Axis::linear("steps"),
            y: Axis::linear(format!("ε at δ = {}", given(paid.delta))),
            series: vec![
                Series { name: "ε of the steps so far".into(), claim: Edge::Upper, points },
                Series { name: "ε that was paid for".into(), claim: Edge::Upper, points: ends },
            ],
        };
        (figure, "What the model after so many steps says about one record, at most.")
    })
}

/// None where answers are not paid for one by one.
pub(super) fn epsilon_of_answers(plan: &Plan) -> Result<Option<(Figure, &'static str)>> {
    let Release::Polls(poll, rounds) = &plan.release else { return Ok(None) };
    let delta = given(plan.delta.get());
    let costs = (1..=*rounds).map(|round| {
        let cost = Release::Polls(*poll, round).epsilon(plan.neighbors, plan.delta)?;
        Ok(Point { x: (u64::from(poll.answers) * round) as f64, lower: cost.lower, upper: cost.upper })
    });
    let points = std::iter::once(Ok(Point::exact(0.0, 0.0))).chain(costs).collect::<Result<Vec<_>, quell::Error>>()?;
    let ends = [points.first(), points.last()].into_iter().flatten();
    let paid = ends.map(|end| Point::exact(end.x, plan.epsilon.upper)).collect();
    let figure = Figure {
        title: "Privacy loss over the answers".into(),
        subtitle: format!("at δ = {delta}; all of it was paid for before the first question"),
        x: Axis::linear("answers"),
        y: Axis::linear(format!("ε at δ = {delta}")),
        series: vec![
            Series { name: "ε of the answers so far".into(), claim: Edge::Upper, points },
            Series { name: "ε that was paid for".into(), claim: Edge::Upper, points: paid },
        ],
    };
    Ok(Some((figure, "What so many answers say about one record, at most, whatever the votes were.")))
}

/// None where no trade-off function is known for what was released, which the subtitle names.
pub(super) fn attack(event: &Event, neighbors: Neighbors, subtitle: &str) -> Result<Option<(Figure, &'static str)>> {
    let attack = {
        let _progress = Progress::new("composing", None);
        match TradeOff::new(&Pld::default(), event, neighbors) {
            Err(Error::Unsupported { .. }) => return Ok(None),
            other => other?,
        }
    };
    let points = (0..=100_u32).map(|i| {
        // Dense at both ends, where the curve bends.
        let t = f64::from(i) / 100.0;
        let alpha = t * t * (3.0 - 2.0 * t);
        let beta = attack.beta(Probability::new(alpha)?);
        Ok(Point { x: alpha, lower: beta.lower, upper: beta.upper })
    });
    let guess = [0.0, 0.25, 0.5, 0.75, 1.0].map(|alpha| Point::exact(alpha, 1.0 - alpha)).to_vec();
    let figure = Figure {
        title: "What the best attack gets wrong".into(),
        subtitle: subtitle.into(),
        x: Axis::linear("false-positive rate α (fraction of records wrongly accused)"),
        y: Axis::linear("false-negative rate β (fraction missed)"),
        series: vec![
            Series { name: "least any attack misses".into(), claim: Edge::Lower, points: points.collect::<Result<_, Error>>()? },
            Series { name: "random guessing".into(), claim: Edge::Lower, points: guess },
        ],
    };
    Ok(Some((figure, "The closer to random guessing, the better one record is hidden.")))
}
