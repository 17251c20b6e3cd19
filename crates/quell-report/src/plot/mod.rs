//! Line charts: a description of the chart, and three output formats.
//!
//! A [`Figure`] describes a chart. `layout` turns the figure into lines, areas and text with coordinates;
//! `svg` and `png` write these shapes, so both show the same picture. `terminal` draws the figure with
//! characters.

mod bars;
mod canvas;
mod layout;
mod letters;
mod map;
mod png;
mod scatter;
mod svg;
mod terminal;
mod ticks;

use serde::Serialize;

pub use map::{Map, Place};
pub use scatter::Scatter;

/// A line chart.
#[derive(Serialize)]
pub struct Figure {
    /// Title of the chart.
    pub title: String,
    /// Parameters that the chart holds for.
    pub subtitle: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Serialize)]
pub struct Axis {
    /// Label of the axis.
    pub label: String,
    /// Scale of the axis.
    pub scale: Scale,
    /// Names of the values 0, 1 and so on, for a chart of bars.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Values that the axis shows besides those of the curves.
    #[serde(skip)]
    pub includes: Vec<f64>,
    /// Whether the axis fits its values closely. Else an axis of positive values starts at zero.
    #[serde(skip)]
    pub is_close: bool,
}

impl Axis {
    /// Creates an axis with a linear scale.
    #[must_use]
    pub fn linear(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            scale: Scale::Linear,
            names: Vec::new(),
            includes: Vec::new(),
            is_close: false,
        }
    }

    /// Creates an axis with a linear scale that fits its values closely.
    #[must_use]
    pub fn close(label: impl Into<String>) -> Self {
        Self { is_close: true, ..Self::linear(label) }
    }

    /// Creates an axis with a logarithmic scale.
    #[must_use]
    pub fn logarithmic(label: impl Into<String>) -> Self {
        Self { scale: Scale::Logarithmic, ..Self::linear(label) }
    }
}

/// How an axis maps values to positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Proportional to the value.
    Linear,
    /// Proportional to the logarithm of the value.
    Logarithmic,
}

/// One curve.
#[derive(Serialize)]
pub struct Series {
    /// Name of the curve, for the legend.
    pub name: String,
    /// The end of the interval that may be claimed; it is drawn as the line.
    pub claim: Edge,
    /// The points, from left to right.
    pub points: Vec<Point>,
}

/// An end of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// The lower end.
    Lower,
    /// The upper end.
    Upper,
}

/// An x value and the interval of the curve there. An infinite end is null in JSON.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Point {
    /// The x value.
    pub x: f64,
    /// Lower end of the interval.
    pub lower: f64,
    /// Upper end of the interval.
    pub upper: f64,
}

impl Point {
    /// A point of a curve that is known exactly.
    #[must_use]
    pub fn exact(x: f64, y: f64) -> Self {
        Self { x, lower: y, upper: y }
    }

    fn at(self, edge: Edge) -> f64 {
        match edge {
            Edge::Lower => self.lower,
            Edge::Upper => self.upper,
        }
    }
}

impl Figure {
    /// Renders the figure as a PNG file.
    pub fn png(&self) -> Result<Vec<u8>, ::png::EncodingError> {
        png::draw(&layout::layout(self, layout::LARGE), layout::LARGE)
    }

    /// Renders the figure as SVG, as a file or for embedding in a page.
    #[must_use]
    pub fn svg(&self) -> String {
        svg::draw(&self.title, &self.subtitle, &layout::layout(self, layout::LARGE), layout::LARGE)
    }

    /// Renders the figure as a small SVG: bars if the values of x have names, and lines if not.
    #[must_use]
    pub fn small_svg(&self) -> String {
        let (shapes, sheet) = if self.x.names.is_empty() {
            (layout::layout(self, layout::SMALL), layout::SMALL)
        } else {
            bars::layout(self)
        };
        svg::draw(&self.title, &self.subtitle, &shapes, sheet)
    }

    /// Renders the figure with characters for a terminal.
    #[must_use]
    pub fn characters(&self) -> String {
        terminal::draw(self)
    }

    /// Whether no curve has two points that can be drawn.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let has_place =
            |axis: &Axis, value: f64| value.is_finite() && (axis.scale == Scale::Linear || value > 0.0);
        let is_drawn = |series: &Series, point: &Point| {
            has_place(&self.x, point.x) && has_place(&self.y, point.at(series.claim))
        };
        self.series
            .iter()
            .all(|series| series.points.iter().filter(|point| is_drawn(series, point)).take(2).count() < 2)
    }

    /// All values on an axis.
    fn values(&self, axis: impl Fn(&Series, &Point) -> f64) -> impl Iterator<Item = f64> {
        self.series
            .iter()
            .flat_map(move |series| series.points.iter().map(|point| axis(series, point)).collect::<Vec<_>>())
    }

    /// The ranges of both axes, with their ticks.
    fn frames(&self) -> (ticks::Frame, ticks::Frame) {
        let xs = self.values(|_, point| point.x).chain(self.x.includes.iter().copied());
        let x = ticks::Frame::around(self.x.scale, xs, ticks::Fit::Tight);
        let ys = self.values(|series, point| point.at(series.claim)).chain(self.y.includes.iter().copied());
        let fit = if self.y.is_close { ticks::Fit::Close } else { ticks::Fit::Loose };
        let y = ticks::Frame::around(self.y.scale, ys, fit);
        (x, y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_without_two_finite_points_is_empty() {
        let figure = |values: &[f64], y: Axis| {
            let points = values.iter().enumerate().map(|(x, y)| Point::exact(x as f64, *y)).collect();
            let series = vec![Series { name: "a".into(), claim: Edge::Upper, points }];
            Figure { title: String::new(), subtitle: String::new(), x: Axis::linear("x"), y, series }
        };
        assert!(figure(&[], Axis::linear("y")).is_empty());
        assert!(figure(&[1.0, f64::INFINITY], Axis::linear("y")).is_empty());
        assert!(!figure(&[1.0, 0.0], Axis::linear("y")).is_empty());
        assert!(figure(&[1.0, 0.0], Axis::logarithmic("y")).is_empty());
    }

    /// Figures with missing, infinite, zero or single values are drawn without errors.
    #[test]
    fn odd_figures_are_drawn() {
        let odd = [0.0, f64::INFINITY, f64::NAN, 1e-320, 1e300, -3.0, 5.0];
        let points: Vec<Point> =
            odd.iter().flat_map(|x| odd.map(|y| Point { x: *x, lower: 0.0, upper: y })).collect();
        for points in [vec![], vec![Point::exact(1.0, 1.0)], points] {
            for axis in [Axis::linear, Axis::logarithmic] {
                let series = vec![Series { name: "odd".into(), claim: Edge::Upper, points: points.clone() }];
                let (title, subtitle) = ("odd".to_owned(), String::new());
                let mut figure = Figure { title, subtitle, x: axis("x"), y: axis("y"), series };
                assert!(figure.characters().contains("odd") && figure.png().is_ok());
                let lines = [figure.svg(), figure.small_svg()];
                figure.x.names = vec!["a".into(), "b".into()];
                for svg in lines.into_iter().chain([figure.small_svg()]) {
                    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
                }
            }
        }
    }
}
