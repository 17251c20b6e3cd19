//! Line charts: a description of the chart, and three output formats.
//!
//! A [`Figure`] describes a chart. `layout` turns the figure into lines, areas and text with coordinates;
//! `svg` and `png` write these shapes, so both show the same picture. `terminal` draws the figure with
//! characters.

mod canvas;
mod layout;
mod letters;
mod png;
mod svg;
mod terminal;
mod ticks;

use serde::Serialize;

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
}

impl Axis {
    /// Creates an axis with a linear scale.
    #[must_use]
    pub fn linear(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Linear }
    }

    /// Creates an axis with a logarithmic scale.
    #[must_use]
    pub fn logarithmic(label: impl Into<String>) -> Self {
        Self { label: label.into(), scale: Scale::Logarithmic }
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
        png::draw(&layout::layout(self))
    }

    /// Renders the figure as SVG, as a file or for embedding in a page.
    #[must_use]
    pub fn svg(&self) -> String {
        svg::draw(&self.title, &self.subtitle, &layout::layout(self))
    }

    /// Renders the figure with characters for a terminal.
    #[must_use]
    pub fn characters(&self) -> String {
        terminal::draw(self)
    }

    /// All values on an axis.
    fn values(&self, axis: impl Fn(&Series, &Point) -> f64) -> impl Iterator<Item = f64> {
        self.series
            .iter()
            .flat_map(move |series| series.points.iter().map(|point| axis(series, point)).collect::<Vec<_>>())
    }

    /// The ranges of both axes, with their ticks.
    fn frames(&self) -> (ticks::Frame, ticks::Frame) {
        let x = ticks::Frame::around(self.x.scale, self.values(|_, point| point.x), ticks::Fit::Tight);
        let y = ticks::Frame::around(
            self.y.scale,
            self.values(|series, point| point.at(series.claim)),
            ticks::Fit::Loose,
        );
        (x, y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
