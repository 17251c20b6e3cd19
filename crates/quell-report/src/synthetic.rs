//! What the report of synthetic data shows: released counts beside the model's, and errors of pairs.

// Writing to a string does not fail.
use std::fmt::Write as _;

use quell::{
    learner::{
        Predictor,
        synthesis::{ErrorSummary, Kind, PairError, Synthesizer},
    },
    run::Model,
};

use crate::{
    columns::Columns,
    facts::{List, row},
    plot::{Axis, Edge, Figure, Point, Series},
};

/// The most columns that have a figure.
const MOST_COLUMNS: usize = 12;
/// The most bars of a figure.
const MOST_BARS: usize = 24;
/// Values of a column that are named in words.
const WORDS: usize = 5;
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

/// Released shares of the values of some columns, beside those of the model; none for other models.
pub(crate) fn columns(model: &Model) -> Option<Columns> {
    let synthesizer = of(model)?;
    let columns = &synthesizer.domain().columns;
    let is_measured = |column: &usize| synthesizer.measured_columns()[*column].shares.len() > 1;
    let all: Vec<usize> = (0..columns.len()).filter(is_measured).collect();
    let more = all.len().saturating_sub(MOST_COLUMNS);
    let mut reading = "Each figure shows the shares of the values of one column, in percent: as they were released, \
                       with noise, and in synthetic rows. Numbers are counted in bins, and their bounds apart. The \
                       two should differ by no more than the noise, in nineteen of twenty values. Where the schema \
                       allows no unknown cells, synthetic rows have none, and their share is spread over the others."
        .to_owned();
    if more > 0 {
        let _ = write!(reading, " The first {MOST_COLUMNS} columns are shown; {more} more are in the model.");
    }
    let shown = &all[..all.len() - more];
    (!shown.is_empty()).then(|| Columns {
        heading: "Counts of the columns",
        reading,
        head: ["column", "released and synthetic shares"],
        figures: shown.iter().map(|column| figure(synthesizer, *column)).collect(),
        rows: shown.iter().map(|column| row(&columns[*column].name, words(synthesizer, *column))).collect(),
    })
}

/// The values of a column with the largest shares, released or synthetic, in their order.
fn shown_values(synthesizer: &Synthesizer, column: usize, most: usize) -> Vec<usize> {
    let (measured, modelled) = (&synthesizer.measured_columns()[column], synthesizer.column(column));
    let share = |value: usize| measured.shares[value].max(modelled[value]);
    let mut values: Vec<usize> = (0..modelled.len()).collect();
    // Noise gives an impossible value a share. It is shown if it can be told from noise.
    let unknown = synthesizer.domain().columns[column].unknown();
    values.retain(|value| *value != unknown || share(*value) > 2.0 * measured.deviation);
    values.sort_by(|a, b| share(*b).total_cmp(&share(*a)));
    values.truncate(most);
    values.sort_unstable();
    values
}

/// The shares of one column: a line for numbers, and bars for categories.
fn figure(synthesizer: &Synthesizer, number: usize) -> Figure {
    let column = &synthesizer.domain().columns[number];
    let (measured, modelled) = (&synthesizer.measured_columns()[number], synthesizer.column(number));
    let mut x = Axis::linear("");
    let places: Vec<(usize, f64)> = match &column.kind {
        Kind::Numbers(_) => {
            (0..column.values()).filter_map(|value| Some((value, column.position(value)?))).collect()
        }
        Kind::Categories(_) => {
            let values = shown_values(synthesizer, number, MOST_BARS);
            x.names = values.iter().map(|value| column.describe(*value)).collect();
            values.into_iter().enumerate().map(|(place, value)| (value, place as f64)).collect()
        }
    };
    let series = |name: &str, shares: &[f64]| Series {
        name: name.into(),
        claim: Edge::Upper,
        points: places.iter().map(|(value, place)| Point::exact(*place, 100.0 * shares[*value])).collect(),
    };
    Figure {
        title: column.name.clone(),
        subtitle: String::new(),
        x,
        y: Axis { includes: vec![0.0], ..Axis::linear("") },
        series: vec![series("released", &measured.shares), series("synthetic", &modelled)],
    }
}

/// Some shares of a column in words.
fn words(synthesizer: &Synthesizer, number: usize) -> String {
    let column = &synthesizer.domain().columns[number];
    let (measured, modelled) = (&synthesizer.measured_columns()[number], synthesizer.column(number));
    let share = |x: f64| format!("{:.1}", 100.0 * x.max(0.0));
    let values = shown_values(synthesizer, number, WORDS).into_iter().map(|value| {
        let (released, synthetic) = (share(measured.shares[value]), share(modelled[value]));
        format!("{}: {released} and {synthetic} %", column.describe(value))
    });
    let values = values.collect::<Vec<_>>().join(", ");
    format!("{values}; noise of {} to each side", percent(2.0 * measured.deviation))
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
