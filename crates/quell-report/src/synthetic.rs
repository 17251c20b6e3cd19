//! What the report of synthetic data shows: released counts beside the model's, and errors of pairs.

use quell::{
    learner::{
        Predictor,
        synthesis::{ErrorSummary, PairError, Synthesizer},
    },
    run::Model,
};

use crate::{
    facts::{List, row},
    plot::{Axis, Edge, Figure, Point, Series},
};

/// The most columns that have a figure: those with the most values.
const MOST_COLUMNS: usize = 3;
/// The most pairs in the list of errors.
const MOST_PAIRS: usize = 10;

/// A small share as a percentage.
fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

/// The model, if it draws synthetic rows.
fn of(model: &Model) -> Option<&Synthesizer> {
    match &model.predictor {
        Predictor::Synthesizer(synthesizer) => Some(synthesizer),
        _ => None,
    }
}

/// The headline: the error of the pairs that were not measured, or else of those that were.
pub(crate) fn headline(model: &Model) -> Option<[String; 3]> {
    let synthesizer = of(model)?;
    let (error, which) = match (synthesizer.error(false), synthesizer.error(true)) {
        (Some(error), _) => (error, "not measured"),
        (None, Some(error)) => (error, "measured"),
        (None, None) => return None,
    };
    let about = format!("of the records in a cell of {} pairs that were {which}", error.pairs);
    let shown =
        if error.lower > 0.0 { percent(error.error) } else { format!("at most {}", percent(error.upper)) };
    Some(["error".into(), shown, about])
}

/// Released shares of the values of some columns, beside those of the model.
pub(crate) fn columns(model: &Model) -> Vec<(Figure, &'static str)> {
    let Some(synthesizer) = of(model) else { return Vec::new() };
    let domain = synthesizer.domain();
    let mut order: Vec<usize> = (0..domain.columns.len()).collect();
    order.sort_by_key(|column| std::cmp::Reverse(domain.columns[*column].values()));
    let figure = |column: usize| {
        let (measured, modelled) = (&synthesizer.measured_columns()[column], synthesizer.column(column));
        if measured.shares.len() < 2 {
            return None;
        }
        let last = modelled.len() - 1;
        let describe = |value| domain.columns[column].describe(value);
        let shown = |(value, share): (usize, &f64)| Point::exact(value as f64 + 1.0, 100.0 * share);
        let series = |name: &str, points| Series { name: name.into(), claim: Edge::Upper, points };
        let figure = Figure {
            title: format!("Values of {}", domain.columns[column].name),
            subtitle: format!(
                "1: {}, 2: {}, …, {}: {}; noise moves a released share by up to {}",
                describe(0),
                describe(1),
                last + 1,
                describe(last),
                percent(2.0 * measured.deviation)
            ),
            x: Axis::linear("value, in the order of the schema"),
            y: Axis::linear("share of the records (%)"),
            series: vec![
                series("released", measured.shares.iter().enumerate().map(shown).collect()),
                series("synthetic rows", modelled.iter().enumerate().map(shown).collect()),
            ],
        };
        Some((
            figure,
            "The lines should be as close to each other as the noise allows, in nineteen of twenty values.",
        ))
    };
    order.into_iter().take(MOST_COLUMNS).filter_map(figure).collect()
}

/// The estimated errors of all pairs of columns; none for other models.
pub(crate) fn pairs(model: &Model) -> Option<(Figure, &'static str)> {
    let synthesizer = of(model)?;
    let series = |was_measured: bool, name: &str| {
        let mut errors: Vec<ErrorSummary> = (synthesizer.errors().iter())
            .filter(|error| error.was_measured == was_measured)
            .filter_map(|error| ErrorSummary::of([error].into_iter()))
            .collect();
        errors.sort_by(|a, b| b.upper.total_cmp(&a.upper));
        let point =
            |(number, error): (usize, &ErrorSummary)| Point::exact(number as f64 + 1.0, 100.0 * error.upper);
        let points: Vec<Point> = errors.iter().enumerate().map(point).collect();
        (!points.is_empty()).then(|| Series { name: name.into(), claim: Edge::Upper, points })
    };
    let series: Vec<Series> =
        [series(false, "pairs that were not measured"), series(true, "pairs that were measured")]
            .into_iter()
            .flatten()
            .collect();
    series.iter().any(|series| series.points.len() > 1).then(|| {
        let figure = Figure {
            title: "Errors of pairs of columns".into(),
            subtitle: "upper bounds, two standard deviations of noise above the estimates".into(),
            x: Axis::linear("pair, the largest bound first"),
            y: Axis::linear("largest error in a cell (% of the records)"),
            series,
        };
        (figure, "How far each pair of columns is from the records, in up to four groups of values a column.")
    })
}

/// The pairs whose errors stand out most from noise.
pub(crate) fn list(model: &Model) -> Option<List> {
    let synthesizer = of(model)?;
    let name = |column: usize| synthesizer.domain().columns[column].name.as_str();
    let mut rows: Vec<[String; 2]> =
        [(false, "pairs that were not measured"), (true, "pairs that were measured")]
            .into_iter()
            .filter_map(|(was_measured, what)| {
                let ErrorSummary { pairs, error, lower, upper } = synthesizer.error(was_measured)?;
                let range = if lower > 0.0 {
                    format!("{} (noise allows {} to {})", percent(error), percent(lower), percent(upper))
                } else {
                    format!("at most {}; noise hides the rest", percent(upper))
                };
                Some(row(what, format!("{pairs} pairs: {range}")))
            })
            .collect();
    let mut worst: Vec<(&PairError, ErrorSummary)> = (synthesizer.errors().iter())
        .filter_map(|error| Some((error, ErrorSummary::of([error].into_iter())?)))
        .filter(|(_, summary)| summary.lower > 0.0)
        .collect();
    worst.sort_by(|a, b| b.1.lower.total_cmp(&a.1.lower));
    rows.extend(worst.into_iter().take(MOST_PAIRS).map(|(error, summary)| {
        let pair = format!("{} and {}", name(error.columns.0), name(error.columns.1));
        row(&pair, format!("at least {}, up to noise", percent(summary.lower)))
    }));
    (!rows.is_empty()).then_some(("Error in a cell of a pair of columns, in parts of the records", rows))
}
