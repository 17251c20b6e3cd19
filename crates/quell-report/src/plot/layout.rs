//! Layout of a figure: lines, areas and text on a page.

use super::{Figure, Series, ticks::Frame};

/// Width and height of a page.
#[derive(Clone, Copy)]
pub(super) struct Sheet {
    pub(super) width: f64,
    pub(super) height: f64,
}

/// The page of a figure that stands alone.
pub(super) const LARGE: Sheet = Sheet { width: 820.0, height: 520.0 };
/// The page of one of many figures.
pub(super) const SMALL: Sheet = Sheet { width: 400.0, height: 250.0 };

/// Red, green, blue.
pub(super) type Ink = [u8; 3];

/// A shape to draw. Coordinates start at the top left.
pub(super) enum Shape {
    /// A stroke through points; `dash` alternates lengths of dashes and gaps, if not solid.
    Line { points: Vec<(f64, f64)>, width: f64, ink: Ink, dash: &'static [f64] },
    /// A filled polygon.
    Area { points: Vec<(f64, f64)>, ink: Ink, opacity: f64 },
    /// Text on a baseline.
    Text { at: (f64, f64), anchor: Anchor, font: Font, ink: Ink, text: String },
}

/// The part of a text that is at its coordinates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
    /// The middle; the text runs from bottom to top.
    Upward,
}

/// A font size.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Font {
    /// 16 units high, bold.
    Title,
    /// 12 units high.
    Body,
}

pub(super) const BLACK: Ink = [0x22, 0x22, 0x22];
pub(super) const GRAY: Ink = [0x66, 0x66, 0x66];
pub(super) const PALE: Ink = [0xe4, 0xe4, 0xe4];
const WHITE: Ink = [0xff, 0xff, 0xff];

/// Colours that most people can tell apart [Okabe and Ito].
///
/// Dashes and markers help everyone else.
pub(super) const INKS: [Ink; 6] = [
    [0x00, 0x72, 0xb2],
    [0xd5, 0x5e, 0x00],
    [0x00, 0x9e, 0x73],
    [0x88, 0x33, 0x77],
    [0x99, 0x77, 0x00],
    [0x44, 0x44, 0x44],
];
const DASHES: [&[f64]; 4] = [&[], &[9.0, 4.0], &[2.5, 3.0], &[9.0, 3.0, 2.5, 3.0]];

/// The plot area and its axes.
struct Page {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
    x: Frame,
    y: Frame,
}

impl Page {
    fn x_position(&self, value: f64) -> Option<f64> {
        Some(self.left + self.x.place(value)? * (self.right - self.left))
    }

    fn y_position(&self, value: f64) -> Option<f64> {
        Some(self.bottom - self.y.place(value)? * (self.bottom - self.top))
    }
}

/// Upper estimate of the average width of a letter in body text.
pub(super) const LETTER: f64 = 6.6;

/// The most points of a curve that all have a marker.
const FEW_POINTS: usize = 30;

/// Distance between two lines of text.
const LINE: f64 = 16.0;

/// All shapes of the figure, in painting order.
pub(super) fn layout(figure: &Figure, sheet: Sheet) -> Vec<Shape> {
    let (x, y) = figure.frames();
    let is_small = sheet.width < LARGE.width;
    let (left, right) = if is_small {
        let longest = y.ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        ((12.0 + LETTER * longest as f64).max(58.0), sheet.width - 20.0)
    } else {
        (78.0, sheet.width - 28.0)
    };
    let mut shapes = Vec::new();
    let title = if is_small { 24.0 } else { 30.0 };
    let below = heading(&mut shapes, (left, right), title, [&figure.title, &figure.subtitle]);
    // One line is named by the title and the axes.
    let has_legend = figure.series.len() > 1;
    let top =
        if has_legend { legend(&mut shapes, figure, (left, right), below + 9.0) + 20.0 } else { below + 2.0 };
    let bottom = sheet.height - if figure.x.label.is_empty() { 34.0 } else { 58.0 };
    let page = Page { left, top, right, bottom, x, y };
    axes(&mut shapes, figure, &page, sheet);
    for (number, series) in figure.series.iter().enumerate() {
        band(&mut shapes, series, number, &page);
    }
    for (number, series) in figure.series.iter().enumerate() {
        curve(&mut shapes, series, number, &page, has_legend || !is_small);
    }
    shapes
}

/// Draws title and subtitle, and returns the height of the next line.
pub(super) fn heading(
    shapes: &mut Vec<Shape>,
    (left, right): (f64, f64),
    height: f64,
    [title, subtitle]: [&str; 2],
) -> f64 {
    text(shapes, (left, height), Anchor::Start, Font::Title, BLACK, title);
    let mut below = height + 21.0;
    for line in wrapped(subtitle, ((right - left) / LETTER) as usize) {
        text(shapes, (left, below), Anchor::Start, Font::Body, GRAY, &line);
        below += LINE;
    }
    below
}

/// Draws the axes of an area, with a pale line and a label at each place along them.
pub(super) fn grid<'a>(
    shapes: &mut Vec<Shape>,
    [left, top, right, bottom]: [f64; 4],
    across: impl Iterator<Item = (f64, &'a str)>,
    upward: impl Iterator<Item = (f64, &'a str)>,
) {
    let line = |from, to, ink| Shape::Line { points: vec![from, to], width: 1.0, ink, dash: &[] };
    for (x, label) in across {
        shapes.push(line((x, top), (x, bottom), PALE));
        text(shapes, (x, bottom + 19.0), Anchor::Middle, Font::Body, BLACK, label);
    }
    for (y, label) in upward {
        shapes.push(line((left, y), (right, y), PALE));
        text(shapes, (left - 8.0, y + 4.0), Anchor::End, Font::Body, BLACK, label);
    }
    shapes.push(line((left, top), (left, bottom), BLACK));
    shapes.push(line((left, bottom), (right, bottom), BLACK));
}

/// Breaks a text where it has spaces, into lines of at most `letters` letters.
fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= letters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

pub(super) fn text(
    shapes: &mut Vec<Shape>,
    at: (f64, f64),
    anchor: Anchor,
    font: Font,
    ink: Ink,
    text: &str,
) {
    shapes.push(Shape::Text { at, anchor, font, ink, text: text.to_owned() });
}

/// Adds the legend above the plot; returns the y coordinate of its last row.
pub(super) fn legend(
    shapes: &mut Vec<Shape>,
    figure: &Figure,
    (left, right): (f64, f64),
    first_row: f64,
) -> f64 {
    let (mut x, mut y) = (left, first_row);
    for (number, series) in figure.series.iter().enumerate() {
        let width = 45.0 + LETTER * series.name.chars().count() as f64;
        if x > left && x + width > right {
            (x, y) = (left, y + 20.0);
        }
        let (ink, dash) = (INKS[number % INKS.len()], DASHES[number % DASHES.len()]);
        shapes.push(Shape::Line { points: vec![(x, y), (x + 38.0, y)], width: 2.2, ink, dash });
        if has_points(series) {
            marker(shapes, (x + 19.0, y), number, ink);
        }
        text(shapes, (x + 45.0, y + 4.0), Anchor::Start, Font::Body, BLACK, &series.name);
        x += width + 20.0;
    }
    y
}

fn axes(shapes: &mut Vec<Shape>, figure: &Figure, page: &Page, sheet: Sheet) {
    let line = |from, to, width, ink| Shape::Line { points: vec![from, to], width, ink, dash: &[] };
    let Page { left, top, right, bottom, .. } = *page;
    for (value, label) in &page.y.ticks {
        let Some(at) = page.y_position(*value) else { continue };
        shapes.push(line((left, at), (right, at), 1.0, PALE));
        text(shapes, (left - 8.0, at + 4.0), Anchor::End, Font::Body, BLACK, label);
    }
    for (value, label) in &page.x.ticks {
        let Some(at) = page.x_position(*value) else { continue };
        shapes.push(line((at, top), (at, bottom), 1.0, PALE));
        shapes.push(line((at, bottom), (at, bottom + 5.0), 1.0, BLACK));
        text(shapes, (at, bottom + 19.0), Anchor::Middle, Font::Body, BLACK, label);
    }
    for at in page.y.minor.iter().filter_map(|value| page.y_position(*value)) {
        shapes.push(line((left, at), (left - 3.0, at), 1.0, GRAY));
    }
    for at in page.x.minor.iter().filter_map(|value| page.x_position(*value)) {
        shapes.push(line((at, bottom), (at, bottom + 3.0), 1.0, GRAY));
    }
    // Zero is a line of its own where values have both signs.
    if page.y.ticks.iter().any(|(value, _)| *value < 0.0)
        && let Some(at) = page.y_position(0.0)
    {
        shapes.push(line((left, at), (right, at), 1.0, GRAY));
    }
    shapes.push(line((left, top), (left, bottom), 1.0, BLACK));
    shapes.push(line((left, bottom), (right, bottom), 1.0, BLACK));
    let longest = page.y.ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
    let label_x = (left - 22.0 - LETTER * longest as f64).max(16.0);
    text(
        shapes,
        (f64::midpoint(left, right), sheet.height - 16.0),
        Anchor::Middle,
        Font::Body,
        BLACK,
        &figure.x.label,
    );
    text(shapes, (label_x, f64::midpoint(top, bottom)), Anchor::Upward, Font::Body, BLACK, &figure.y.label);
}

/// Adds the band of the interval where both ends are informative, if it is visible.
fn band(shapes: &mut Vec<Shape>, series: &Series, number: usize, page: &Page) {
    let bounded =
        series.points.iter().filter(|point| point.at(series.claim).is_finite() && point.lower > 0.0);
    let bounded: Vec<(f64, f64, f64)> = bounded
        .filter_map(|point| {
            let position_or_edge =
                |value: f64, edge: f64| if value.is_finite() { page.y_position(value) } else { Some(edge) };
            Some((
                page.x_position(point.x)?,
                position_or_edge(point.lower, page.bottom)?,
                position_or_edge(point.upper, page.top)?,
            ))
        })
        .collect();
    if bounded.iter().all(|(_, lower, upper)| lower - upper < 1.0) {
        return;
    }
    let points = bounded.iter().map(|p| (p.0, p.2)).chain(bounded.iter().rev().map(|p| (p.0, p.1))).collect();
    shapes.push(Shape::Area { points, ink: INKS[number % INKS.len()], opacity: 0.18 });
}

fn curve(shapes: &mut Vec<Shape>, series: &Series, number: usize, page: &Page, has_markers: bool) {
    let (ink, dash) = (INKS[number % INKS.len()], DASHES[number % DASHES.len()]);
    let positions = series.points.iter().map(|point| {
        let value = Some(point.at(series.claim)).filter(|v| v.is_finite())?;
        Some((page.x_position(point.x)?, page.y_position(value)?))
    });
    let positions: Vec<Option<(f64, f64)>> = positions.collect();
    for piece in positions.split(Option::is_none).filter(|piece| !piece.is_empty()) {
        let points: Vec<(f64, f64)> = piece.iter().flatten().copied().collect();
        shapes.push(Shape::Line { points, width: 2.2, ink, dash });
    }
    // A line of few points shows all of them: they were measured, and the line between them was not.
    if has_markers && has_points(series) && series.points.len() <= FEW_POINTS {
        positions.iter().flatten().for_each(|place| marker(shapes, *place, number, ink));
        return;
    }
    let has_markers = has_markers && has_points(series);
    // Few markers, at different positions for each series, so that touching curves can be told apart.
    let mut next = page.left + 40.0 + 22.0 * number as f64;
    for place in positions.iter().flatten().filter(|_| has_markers) {
        if place.0 >= next && place.0 < page.right - 12.0 {
            marker(shapes, *place, number, ink);
            next = (next + 110.0).max(place.0 + 55.0);
        }
    }
}

/// Whether the curve has points of its own. Two are the ends of a straight line.
fn has_points(series: &Series) -> bool {
    series.points.len() > 2
}

fn marker(shapes: &mut Vec<Shape>, (x, y): (f64, f64), number: usize, ink: Ink) {
    let round = |corners: u32, radius: f64, turn: f64| -> Vec<(f64, f64)> {
        let angle = |i: u32| (f64::from(i) / f64::from(corners) + turn) * std::f64::consts::TAU;
        (0..=corners).map(|i| (x + radius * angle(i).sin(), y - radius * angle(i).cos())).collect()
    };
    let points = match number % 4 {
        0 => round(24, 4.2, 0.0),
        1 => round(4, 5.2, 0.125),
        2 => round(3, 5.4, 0.0),
        _ => round(4, 5.4, 0.0),
    };
    shapes.push(Shape::Area { points: points.clone(), ink: WHITE, opacity: 1.0 });
    shapes.push(Shape::Line { points, width: 1.8, ink, dash: &[] });
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Axis, Edge, Point},
        *,
    };

    fn figure(width: f64, names: &[&str]) -> Figure {
        let points: Vec<Point> = (1..=20)
            .map(|i| Point { x: f64::from(i), lower: f64::from(i) - width, upper: f64::from(i) })
            .collect();
        let series =
            |name: &&str| Series { name: (*name).to_owned(), claim: Edge::Upper, points: points.clone() };
        Figure {
            title: String::new(),
            subtitle: String::new(),
            x: Axis::linear("x"),
            y: Axis::linear("y"),
            series: names.iter().map(series).collect(),
        }
    }

    fn bands(shapes: &[Shape]) -> usize {
        shapes.iter().filter(|shape| matches!(shape, Shape::Area { opacity, .. } if *opacity < 1.0)).count()
    }

    #[test]
    fn an_interval_is_a_band_only_where_it_can_be_seen() {
        assert_eq!(bands(&layout(&figure(1e-3, &["narrow"]), LARGE)), 0);
        assert_eq!(bands(&layout(&figure(0.5, &["wide"]), LARGE)), 1);
    }

    #[test]
    fn everything_stays_on_the_sheet() {
        let long = "a name that takes a third of the whole row";
        let mut crowded = figure(0.5, &[long; 7]);
        crowded.subtitle = "words of a subtitle that is too long for one line ".repeat(3);
        for shape in layout(&crowded, LARGE) {
            let points = match shape {
                Shape::Line { points, .. } | Shape::Area { points, .. } => points,
                Shape::Text { at, anchor: Anchor::Start, font: Font::Body, text, .. } => {
                    vec![at, (at.0 + LETTER * text.chars().count() as f64, at.1)]
                }
                Shape::Text { at, .. } => vec![at],
            };
            for (x, y) in points {
                assert!((0.0..=LARGE.width).contains(&x) && (0.0..=LARGE.height).contains(&y), "({x}, {y})");
            }
        }
    }

    #[test]
    fn a_curve_is_broken_where_it_is_infinite() {
        let mut broken = figure(0.0, &["broken"]);
        let whole = layout(&broken, LARGE)
            .iter()
            .filter(|s| matches!(s, Shape::Line { width, .. } if *width == 2.2))
            .count();
        broken.series[0].points[10].upper = f64::INFINITY;
        let pieces = layout(&broken, LARGE)
            .iter()
            .filter(|s| matches!(s, Shape::Line { width, .. } if *width == 2.2))
            .count();
        assert_eq!(pieces, whole + 1);
    }
}
