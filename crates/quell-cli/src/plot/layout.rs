//! Where everything in a figure goes: lines, areas and words on a sheet of 820 by 520.

use super::{Figure, Series, ticks::Frame};

/// Width of the sheet.
pub(super) const WIDTH: f64 = 820.0;
/// Height of the sheet.
pub(super) const HEIGHT: f64 = 520.0;

/// Red, green, blue.
pub(super) type Ink = [u8; 3];

/// Something to draw. Places are measured from the top left.
pub(super) enum Shape {
    /// A stroke through points; `dash` alternates lengths of ink and of none, and is empty for a whole line.
    Line { points: Vec<(f64, f64)>, width: f64, ink: Ink, dash: &'static [f64] },
    /// A filled polygon.
    Area { points: Vec<(f64, f64)>, ink: Ink, opacity: f64 },
    /// Words, on a baseline.
    Text { at: (f64, f64), anchor: Anchor, font: Font, ink: Ink, text: String },
}

/// Which part of the words is at their place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
    /// The middle, read from below.
    Upward,
}

/// Two sizes are enough.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Font {
    /// 16 high, bold.
    Title,
    /// 12 high.
    Body,
}

const BLACK: Ink = [0x22, 0x22, 0x22];
const GRAY: Ink = [0x66, 0x66, 0x66];
const PALE: Ink = [0xe4, 0xe4, 0xe4];
const WHITE: Ink = [0xff, 0xff, 0xff];

/// Colours that stay apart for most eyes [Okabe and Ito]; dashes and markers for all others.
const INKS: [Ink; 6] =
    [[0x00, 0x72, 0xb2], [0xd5, 0x5e, 0x00], [0x00, 0x9e, 0x73], [0x88, 0x33, 0x77], [0x99, 0x77, 0x00], [0x44, 0x44, 0x44]];
const DASHES: [&[f64]; 4] = [&[], &[9.0, 4.0], &[2.5, 3.0], &[9.0, 3.0, 2.5, 3.0]];

/// The plot between its axes: left, top, right, bottom.
const FRAME: (f64, f64, f64, f64) = (78.0, 96.0, WIDTH - 28.0, HEIGHT - 58.0);

/// About one letter of body text.
const LETTER: f64 = 5.6;

/// The whole figure, in the order in which it is painted.
pub(super) fn layout(figure: &Figure) -> Vec<Shape> {
    let (x, y) = figure.frames();
    let mut shapes = Vec::new();
    text(&mut shapes, (FRAME.0, 30.0), Anchor::Start, Font::Title, BLACK, &figure.title);
    text(&mut shapes, (FRAME.0, 51.0), Anchor::Start, Font::Body, GRAY, &figure.subtitle);
    axes(&mut shapes, figure, &x, &y);
    for (number, series) in figure.series.iter().enumerate() {
        band(&mut shapes, series, number, &x, &y);
    }
    for (number, series) in figure.series.iter().enumerate() {
        curve(&mut shapes, series, number, &x, &y);
    }
    legend(&mut shapes, figure);
    shapes
}

fn text(shapes: &mut Vec<Shape>, at: (f64, f64), anchor: Anchor, font: Font, ink: Ink, text: &str) {
    shapes.push(Shape::Text { at, anchor, font, ink, text: text.to_owned() });
}

fn across(place: f64) -> f64 {
    FRAME.0 + place * (FRAME.2 - FRAME.0)
}

fn up(place: f64) -> f64 {
    FRAME.3 - place * (FRAME.3 - FRAME.1)
}

fn axes(shapes: &mut Vec<Shape>, figure: &Figure, x: &Frame, y: &Frame) {
    let line = |from, to, width, ink| Shape::Line { points: vec![from, to], width, ink, dash: &[] };
    for (value, label) in &y.ticks {
        let Some(at) = y.place(*value).map(up) else { continue };
        shapes.push(line((FRAME.0, at), (FRAME.2, at), 1.0, PALE));
        text(shapes, (FRAME.0 - 8.0, at + 4.0), Anchor::End, Font::Body, BLACK, label);
    }
    for (value, label) in &x.ticks {
        let Some(at) = x.place(*value).map(across) else { continue };
        shapes.push(line((at, FRAME.1), (at, FRAME.3), 1.0, PALE));
        shapes.push(line((at, FRAME.3), (at, FRAME.3 + 5.0), 1.0, BLACK));
        text(shapes, (at, FRAME.3 + 19.0), Anchor::Middle, Font::Body, BLACK, label);
    }
    shapes.push(line((FRAME.0, FRAME.1), (FRAME.0, FRAME.3), 1.0, BLACK));
    shapes.push(line((FRAME.0, FRAME.3), (FRAME.2, FRAME.3), 1.0, BLACK));
    text(shapes, (f64::midpoint(FRAME.0, FRAME.2), HEIGHT - 16.0), Anchor::Middle, Font::Body, BLACK, &figure.x.label);
    text(shapes, (24.0, f64::midpoint(FRAME.1, FRAME.3)), Anchor::Upward, Font::Body, BLACK, &figure.y.label);
}

/// The interval, where it is wide enough to be seen.
fn band(shapes: &mut Vec<Shape>, series: &Series, number: usize, x: &Frame, y: &Frame) {
    let edge = |value: f64, open: f64| if value.is_finite() { y.place(value).unwrap_or(0.0) } else { open };
    let both: Vec<(f64, f64, f64)> = series
        .points
        .iter()
        .filter(|point| point.at(series.claim).is_finite() && point.lower > 0.0)
        .filter_map(|point| Some((across(x.place(point.x)?), up(edge(point.lower, 0.0)), up(edge(point.upper, 1.0)))))
        .collect();
    if both.iter().all(|(_, lower, upper)| lower - upper < 1.0) {
        return;
    }
    let points = both.iter().map(|p| (p.0, p.2)).chain(both.iter().rev().map(|p| (p.0, p.1))).collect();
    shapes.push(Shape::Area { points, ink: INKS[number % INKS.len()], opacity: 0.18 });
}

fn curve(shapes: &mut Vec<Shape>, series: &Series, number: usize, x: &Frame, y: &Frame) {
    let (ink, dash) = (INKS[number % INKS.len()], DASHES[number % DASHES.len()]);
    let places = series.points.iter().map(|point| {
        let value = Some(point.at(series.claim)).filter(|v| v.is_finite())?;
        Some((across(x.place(point.x)?), up(y.place(value)?)))
    });
    let places: Vec<Option<(f64, f64)>> = places.collect();
    for piece in places.split(Option::is_none) {
        let points: Vec<(f64, f64)> = piece.iter().flatten().copied().collect();
        shapes.push(Shape::Line { points, width: 2.2, ink, dash });
    }
    // Few markers, each series at its own places, so that curves that touch can be told apart.
    let mut next = 40.0 + 22.0 * number as f64;
    for place in places.iter().flatten() {
        if place.0 - FRAME.0 >= next {
            marker(shapes, *place, number, ink);
            next += 110.0;
            next = next.max(place.0 - FRAME.0 + 55.0);
        }
    }
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

/// One row above the plot: it covers no curve.
fn legend(shapes: &mut Vec<Shape>, figure: &Figure) {
    let mut left = FRAME.0;
    for (number, series) in figure.series.iter().enumerate() {
        let (ink, dash) = (INKS[number % INKS.len()], DASHES[number % DASHES.len()]);
        let y = FRAME.1 - 20.0;
        shapes.push(Shape::Line { points: vec![(left, y), (left + 38.0, y)], width: 2.2, ink, dash });
        marker(shapes, (left + 19.0, y), number, ink);
        text(shapes, (left + 45.0, y + 4.0), Anchor::Start, Font::Body, BLACK, &series.name);
        left += 45.0 + LETTER * series.name.chars().count() as f64 + 24.0;
    }
}
