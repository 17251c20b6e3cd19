//! Figures: a small description of a line chart, and three ways to show it.
//!
//! A [`Figure`] says what is to be seen. `layout` turns it into lines, areas and words at places; `svg` and `png` write those
//! down, so both show the same picture. `terminal` draws the figure with characters.

mod canvas;
mod layout;
mod letters;
mod png;
mod svg;
mod terminal;
mod ticks;

use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::refusal::Refusal;

/// A line chart.
#[derive(Serialize)]
pub(crate) struct Figure {
    /// What is shown.
    pub(crate) title: String,
    /// For which numbers.
    pub(crate) subtitle: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
}

/// An axis.
#[derive(Serialize)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) scale: Scale,
}

impl Axis {
    pub(crate) fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear }
    }

    pub(crate) fn logarithmic(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Logarithmic }
    }
}

/// How numbers become places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scale {
    Linear,
    Logarithmic,
}

/// One curve.
#[derive(Serialize)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// The end of the interval that may be claimed, drawn as the line.
    pub(crate) claim: Edge,
    pub(crate) points: Vec<Point>,
}

/// An end of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Edge {
    Lower,
    Upper,
}

/// A place on the x axis and the interval in which the curve lies there. An infinite end is null in JSON.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) lower: f64,
    pub(crate) upper: f64,
}

impl Point {
    /// A point of a curve that is known exactly.
    pub(crate) fn exact(x: f64, y: f64) -> Self {
        Self { x, lower: y, upper: y }
    }

    fn at(self, edge: Edge) -> f64 {
        match edge {
            Edge::Lower => self.lower,
            Edge::Upper => self.upper,
        }
    }
}

/// A file a figure can be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Svg,
    Png,
}

impl Kind {
    /// By the end of the name.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("svg") => Ok(Self::Svg),
            Some("png") => Ok(Self::Png),
            _ => {
                let sentence = format!("the output is {}, expected a name that ends in .svg or .png", path.display());
                Err(Refusal::new(sentence, "without --output the curve is drawn in the terminal").into())
            }
        }
    }
}

impl Figure {
    /// Writes the picture to a file.
    pub(crate) fn write(&self, path: &Path, kind: Kind) -> Result<()> {
        let bytes = match kind {
            Kind::Svg => self.svg().into_bytes(),
            Kind::Png => png::draw(&layout::layout(self))?,
        };
        std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }

    /// The picture as SVG, alone or inside of a page.
    pub(crate) fn svg(&self) -> String {
        svg::draw(&self.title, &self.subtitle, &layout::layout(self))
    }

    /// The picture in characters.
    pub(crate) fn characters(&self) -> String {
        terminal::draw(self)
    }

    /// Every finite value there is on an axis.
    fn values(&self, axis: impl Fn(&Series, &Point) -> f64) -> impl Iterator<Item = f64> {
        self.series.iter().flat_map(move |series| series.points.iter().map(|point| axis(series, point)).collect::<Vec<_>>())
    }

    /// The ranges of both axes, with their ticks.
    fn frames(&self) -> (ticks::Frame, ticks::Frame) {
        let x = ticks::Frame::around(self.x.scale, self.values(|_, point| point.x), ticks::Fit::Tight);
        let y = ticks::Frame::around(self.y.scale, self.values(|series, point| point.at(series.claim)), ticks::Fit::Loose);
        (x, y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_says_what_is_written() {
        assert_eq!(Kind::of(Path::new("a/b.svg")).unwrap(), Kind::Svg);
        assert_eq!(Kind::of(Path::new("B.PNG")).unwrap(), Kind::Png);
        for path in ["plot", "plot.pdf", "svg", ".png", ""] {
            assert!(Kind::of(Path::new(path)).is_err(), "{path}");
        }
    }

    /// A chart in which something is missing, infinite, zero or alone is still a chart.
    #[test]
    fn odd_figures_are_drawn() {
        let odd = [0.0, f64::INFINITY, f64::NAN, 1e-320, 1e300, -3.0, 5.0];
        let points: Vec<Point> = odd.iter().flat_map(|x| odd.map(|y| Point { x: *x, lower: 0.0, upper: y })).collect();
        for points in [vec![], vec![Point::exact(1.0, 1.0)], points] {
            for axis in [Axis::linear, Axis::logarithmic] {
                let series = vec![Series { name: "odd".into(), claim: Edge::Upper, points: points.clone() }];
                let (title, subtitle) = ("odd".to_owned(), String::new());
                let figure = Figure { title, subtitle, x: axis("x"), y: axis("y"), series };
                assert!(figure.characters().contains("odd"));
                let shapes = layout::layout(&figure);
                let svg = svg::draw(&figure.title, &figure.subtitle, &shapes);
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
                assert!(png::draw(&shapes).is_ok());
            }
        }
    }
}
