//! Small figures for the columns of a table, with a table in words: what each adds to the scores of a model.

use quell::learner::glm::{Category, Curve, Curves, Knot, Values};
use quell_privacy::number::format_brief;

use crate::{
    facts::row,
    plot::{Axis, Edge, Figure, Point, Series},
};

/// What is to be said about the columns of a table.
pub(crate) struct Columns {
    pub(crate) heading: &'static str,
    /// Sentences that explain how to read the figures.
    pub(crate) reading: String,
    /// The titles of the table in words.
    pub(crate) head: [&'static str; 2],
    /// One figure for each column.
    pub(crate) figures: Vec<Figure>,
    /// The name of each column, and some of its values.
    pub(crate) rows: Vec<[String; 2]>,
}

/// The most columns that are shown. The report as JSON has all of them.
const MOST_COLUMNS: usize = 12;
/// The most lines of a figure.
const MOST_LINES: usize = 6;
/// The most bars of a figure.
const MOST_BARS: usize = 24;
/// Values of a column that are named in words.
const WORDS: usize = 5;

impl Columns {
    pub(crate) fn new(curves: &Curves) -> Self {
        let mut columns: Vec<&Curve> = curves.columns.iter().collect();
        columns.sort_by(|a, b| b.spread.total_cmp(&a.spread));
        let more = columns.len().saturating_sub(MOST_COLUMNS);
        columns.truncate(MOST_COLUMNS);
        let mut figures: Vec<Figure> = columns.iter().map(|column| figure(column, &curves.lines)).collect();
        // All figures have one scale, so that small effects look small.
        let shown = figures.iter().flat_map(|figure| &figure.series).flat_map(|series| &series.points);
        let ends =
            shown.fold([0.0_f64; 2], |[low, high], point| [low.min(point.upper), high.max(point.upper)]);
        for figure in &mut figures {
            figure.y.includes = ends.to_vec();
        }
        let rows = columns.iter().map(|column| row(&column.column, words(column))).collect();
        Self {
            heading: "What each column adds",
            reading: reading(curves, more),
            head: ["column", "adds"],
            figures,
            rows,
        }
    }
}

/// Sentences that explain how to read the figures.
fn reading(curves: &Curves, more: usize) -> String {
    let mut text = format!(
        "A prediction starts from a constant, and each column adds a number to {}. A curve shows the number for \
         each value of its column, from four released deviations below the released mean to four above, and is \
         zero at that mean; without a released mean, it shows the whole range and is zero in the middle. The bars \
         of categories have mean zero. The column with the largest effect comes first.",
        curves.score
    );
    if curves.are_means {
        text += " This model also has random trees, which join columns. So a curve is the mean over 64 random \
                 records, in which the column alone is changed.";
    }
    if curves.are_shortened {
        text += " Scores of unusual records, with rare categories or numbers far from their means, are made \
                 smaller afterwards; the figures do not show this.";
    }
    if curves.lines.len() > MOST_LINES {
        text += " Figures show the six classes that the column changes most.";
    }
    if more > 0 {
        text = format!("{text} {more} more columns are in the report as JSON.");
    }
    text
}

/// The figure of one column.
fn figure(column: &Curve, lines: &[String]) -> Figure {
    let mut series: Vec<Series> = shown_lines(column, lines.len())
        .into_iter()
        .map(|line| Series { name: lines[line].clone(), claim: Edge::Upper, points: points(column, line) })
        .collect();
    let mut x = Axis::linear("");
    match (&column.values, &column.unknown) {
        (Values::Categories(_), _) => x.names = bars(column).into_iter().map(|(name, _)| name).collect(),
        // With several lines, a flat one for each of them would say little.
        (Values::Curve { usual, .. }, Some(unknown)) if lines.len() == 1 => {
            series[0].name = "known".into();
            let ends = usual.map(|end| Point::exact(end, unknown[0])).to_vec();
            series.push(Series { name: "unknown".into(), claim: Edge::Upper, points: ends });
        }
        (Values::Curve { .. }, _) => {}
    }
    Figure { title: column.column.clone(), subtitle: String::new(), x, y: Axis::linear(""), series }
}

/// The lines that a figure shows, in their order.
fn shown_lines(column: &Curve, count: usize) -> Vec<usize> {
    let spread = |line: usize| {
        let values = points(column, line);
        let ends = values.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], point| {
            [low.min(point.upper), high.max(point.upper)]
        });
        ends[1] - ends[0]
    };
    let mut all: Vec<usize> = (0..count).collect();
    if count > MOST_LINES {
        all.sort_by(|a, b| spread(*b).total_cmp(&spread(*a)));
        all.truncate(MOST_LINES);
        all.sort_unstable();
    }
    all
}

/// The points of one line: within the usual range, or one for each bar.
fn points(column: &Curve, line: usize) -> Vec<Point> {
    match &column.values {
        Values::Curve { usual: [low, high], points } => {
            let inside = points.iter().filter(|Knot { at, .. }| (low..=high).contains(&at));
            inside.map(|Knot { at, adds }| Point::exact(*at, adds[line])).collect()
        }
        Values::Categories(_) => {
            let bars = bars(column).into_iter().enumerate();
            bars.map(|(place, (_, adds))| Point::exact(place as f64, adds[line])).collect()
        }
    }
}

/// Names and values of the bars: all categories and unknown cells, or those with the largest values.
fn bars(column: &Curve) -> Vec<(String, &[f64])> {
    let Values::Categories(categories) = &column.values else { return Vec::new() };
    let named = categories.iter().map(|Category { category, adds }| (category.clone(), adds.as_slice()));
    let unknown = column.unknown.iter().map(|adds| ("unknown".to_owned(), adds.as_slice()));
    let mut all: Vec<(usize, (String, &[f64]))> = named.chain(unknown).enumerate().collect();
    if all.len() > MOST_BARS {
        let size = |adds: &[f64]| adds.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        all.sort_by(|(_, a), (_, b)| size(b.1).total_cmp(&size(a.1)));
        all.truncate(MOST_BARS);
        all.sort_by_key(|(place, _)| *place);
    }
    all.into_iter().map(|(_, bar)| bar).collect()
}

/// Some values of a column in words.
fn words(column: &Curve) -> String {
    let brief =
        |x: f64| (if x < 0.0 { "" } else { "+" }).to_owned() + &format_brief(digits(x, column.spread));
    if column.unknown.as_ref().is_some_and(|adds| adds.len() > 1) || has_several_lines(column) {
        return format!(
            "up to {} between two values; the report as JSON has all",
            format_brief(digits(column.spread, column.spread))
        );
    }
    match &column.values {
        Values::Curve { usual: [low, high], .. } => {
            let places = (0..WORDS).map(|i| low + (high - low) * i as f64 / (WORDS - 1) as f64);
            let said = places.filter_map(|x| {
                Some(format!("{} at {}", brief(column.values.at(x)?[0]), format_brief(digits(x, high - low))))
            });
            said.collect::<Vec<_>>().join(", ")
        }
        Values::Categories(_) => {
            let mut all = bars(column);
            all.sort_by(|a, b| b.1[0].abs().total_cmp(&a.1[0].abs()));
            let said = all.iter().take(WORDS).map(|(name, adds)| format!("{} for {name}", brief(adds[0])));
            said.collect::<Vec<_>>().join(", ")
        }
    }
}

fn has_several_lines(column: &Curve) -> bool {
    match &column.values {
        Values::Curve { points, .. } => points.first().is_some_and(|knot| knot.adds.len() > 1),
        Values::Categories(all) => all.first().is_some_and(|category| category.adds.len() > 1),
    }
}

/// Rounds a number to a thousandth of a range, or less.
fn digits(number: f64, width: f64) -> f64 {
    let unit = 10_f64.powf((width.abs().max(1e-300).log10() - 3.0).ceil());
    // Division by a whole power of ten leaves a short decimal.
    if unit < 1.0 {
        (number * unit.recip().round()).round() / unit.recip().round()
    } else {
        (number / unit).round() * unit
    }
}
