//! Layout of a chart of bars: one row for each name, one bar for each series.

use super::{
    Figure,
    layout::{Anchor, BLACK, Font, GRAY, INKS, LETTER, PALE, SMALL, Shape, Sheet, legend, text},
};

/// Height of a bar, and of the gap between two rows.
const BAR: f64 = 11.0;
const GAP: f64 = 6.0;
/// Letters of a name that are shown.
const LONGEST_NAME: usize = 20;

/// All shapes of the figure, and its page. The page is as high as the rows need.
pub(super) fn layout(figure: &Figure) -> (Vec<Shape>, Sheet) {
    let names: Vec<String> = figure.x.names.iter().map(|name| shortened(name)).collect();
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let (left, right) = ((24.0 + LETTER * longest as f64).max(58.0), SMALL.width - 20.0);
    let mut shapes = Vec::new();
    text(&mut shapes, (20.0, 24.0), Anchor::Start, Font::Title, BLACK, &figure.title);
    let has_legend = figure.series.len() > 1;
    let top = if has_legend { legend(&mut shapes, figure, (20.0, right), 54.0) + 16.0 } else { 42.0 };
    let bar = if has_legend { 0.7 * BAR } else { BAR };
    let row = GAP + bar * figure.series.len().max(1) as f64;
    let bottom = top + row * names.len() as f64 + GAP;
    let (_, values) = figure.frames();
    let place = |value: f64| values.place(value).map(|share| left + share * (right - left));
    let line = |from, to, ink| Shape::Line { points: vec![from, to], width: 1.0, ink, dash: &[] };
    let middle = values.ticks.iter().position(|(value, _)| *value >= 0.0).unwrap_or(0);
    for (number, (value, label)) in values.ticks.iter().enumerate() {
        let Some(at) = place(*value) else { continue };
        shapes.push(line((at, top), (at, bottom), PALE));
        // Half of the labels, so that they do not touch. Zero is one of them.
        if values.ticks.len() < 6 || number % 2 == middle % 2 {
            text(&mut shapes, (at, bottom + 18.0), Anchor::Middle, Font::Body, BLACK, label);
        }
    }
    for (index, name) in names.iter().enumerate() {
        let middle = top + GAP + row * index as f64 + 0.5 * (row - GAP);
        text(&mut shapes, (left - 8.0, middle + 4.0), Anchor::End, Font::Body, BLACK, name);
    }
    let zero = place(0.0).unwrap_or(left);
    for (number, series) in figure.series.iter().enumerate() {
        for point in &series.points {
            let value = Some(point.at(series.claim)).filter(|value| value.is_finite());
            let is_row = point.x >= 0.0 && point.x < names.len() as f64;
            let Some(end) = value.filter(|_| is_row).and_then(place) else { continue };
            let from = top + GAP + row * point.x + bar * number as f64;
            let corners = [(zero, from), (end, from), (end, from + bar - 1.0), (zero, from + bar - 1.0)];
            let ink = INKS[number % INKS.len()];
            shapes.push(Shape::Area { points: corners.to_vec(), ink, opacity: 1.0 });
        }
    }
    shapes.push(line((zero, top), (zero, bottom), GRAY));
    (shapes, Sheet { width: SMALL.width, height: bottom + 34.0 })
}

/// A name that fits beside its row.
fn shortened(name: &str) -> String {
    if name.chars().count() <= LONGEST_NAME {
        return name.to_owned();
    }
    name.chars().take(LONGEST_NAME - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Axis, Edge, Point, Series};
    use super::*;

    #[test]
    fn bars_begin_at_zero_and_stay_on_the_page() {
        let points = [-1.0, 2.0, 0.5].iter().enumerate().map(|(row, y)| Point::exact(row as f64, *y));
        let names = ["a", "a name that is much too long for the page", "c"].map(str::to_owned).to_vec();
        let figure = Figure {
            title: "work".into(),
            subtitle: String::new(),
            x: Axis { names, ..Axis::linear("") },
            y: Axis::linear("adds"),
            series: vec![Series { name: "adds".into(), claim: Edge::Upper, points: points.collect() }],
        };
        let (shapes, sheet) = layout(&figure);
        let mut starts = Vec::new();
        for shape in &shapes {
            match shape {
                Shape::Area { points, .. } => {
                    starts.push(points[0].0);
                    assert!(points.iter().all(|(x, y)| *x <= sheet.width && *y <= sheet.height));
                }
                Shape::Text { at, anchor: Anchor::End, text, .. } => {
                    assert!(at.0 - LETTER * text.chars().count() as f64 > 0.0, "{text}");
                }
                _ => {}
            }
        }
        assert!(starts.len() == 3 && starts.iter().all(|start| *start == starts[0]), "{starts:?}");
    }
}
