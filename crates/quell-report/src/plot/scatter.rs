//! A scatter plot: points on two axes, and the line where both values are equal.

use serde::Serialize;

use super::{
    Scale,
    layout::{Anchor, BLACK, Font, GRAY, INKS, LARGE, LETTER, Shape, Sheet, grid, heading, text},
    png, svg,
    ticks::{Fit, Frame},
};

/// A scatter plot of two numbers in the same units.
#[derive(Serialize)]
pub struct Scatter {
    /// Title of the plot.
    pub title: String,
    /// Parameters that the plot holds for.
    pub subtitle: String,
    /// Label of the horizontal axis.
    pub x: String,
    /// Label of the vertical axis.
    pub y: String,
    /// The points.
    pub points: Vec<[f64; 2]>,
}

/// Radius of a point.
const RADIUS: f64 = 2.6;

impl Scatter {
    /// Renders the plot as SVG, as a file or for embedding in a page.
    #[must_use]
    pub fn svg(&self) -> String {
        svg::draw(&self.title, &self.subtitle, &self.layout(), LARGE)
    }

    /// Renders the plot as a PNG file.
    pub fn png(&self) -> Result<Vec<u8>, ::png::EncodingError> {
        png::draw(&self.layout(), LARGE)
    }

    /// All shapes of the plot, in painting order.
    fn layout(&self) -> Vec<Shape> {
        let Sheet { width, height } = LARGE;
        let shown: Vec<[f64; 2]> =
            self.points.iter().filter(|point| point.iter().all(|x| x.is_finite())).copied().collect();
        let frame = |place: usize| {
            let values = shown.iter().map(move |point| point[place]);
            Frame::around(Scale::Linear, values, Fit::Close)
        };
        let (across, upward) = (frame(0), frame(1));
        let longest = upward.ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        let (left, right, bottom) = (38.0 + LETTER * longest.max(6) as f64, width - 28.0, height - 58.0);
        let mut shapes = Vec::new();
        let top = heading(&mut shapes, (left, right), 30.0, [&self.title, &self.subtitle]);
        let x_at = |value: f64| across.place(value).map(|share| left + share * (right - left));
        let y_at = |value: f64| upward.place(value).map(|share| bottom - share * (bottom - top));
        grid(
            &mut shapes,
            [left, top, right, bottom],
            across.ticks.iter().filter_map(|(value, label)| Some((x_at(*value)?, label.as_str()))),
            upward.ticks.iter().filter_map(|(value, label)| Some((y_at(*value)?, label.as_str()))),
        );
        // Both values are equal on this line, between the ranges that both axes show.
        let ends = [across.ends()[0].max(upward.ends()[0]), across.ends()[1].min(upward.ends()[1])];
        if ends[0] < ends[1]
            && let [Some(from), Some(to)] = ends.map(|end| Some((x_at(end)?, y_at(end)?)))
        {
            shapes.push(Shape::Line { points: vec![from, to], width: 1.0, ink: GRAY, dash: &[6.0, 4.0] });
        }
        for [x, y] in &shown {
            let (Some(x), Some(y)) = (x_at(*x), y_at(*y)) else { continue };
            let angle = |corner: u32| f64::from(corner) / 10.0 * std::f64::consts::TAU;
            let points = (0..10).map(|i| (x + RADIUS * angle(i).sin(), y - RADIUS * angle(i).cos()));
            shapes.push(Shape::Area { points: points.collect(), ink: INKS[0], opacity: 0.45 });
        }
        let below = (f64::midpoint(left, right), height - 16.0);
        text(&mut shapes, below, Anchor::Middle, Font::Body, BLACK, &self.x);
        text(&mut shapes, (18.0, f64::midpoint(top, bottom)), Anchor::Upward, Font::Body, BLACK, &self.y);
        shapes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scatter(points: Vec<[f64; 2]>) -> Scatter {
        let [title, subtitle, x, y] = ["t", "s", "actual", "predicted"].map(str::to_owned);
        Scatter { title, subtitle, x, y, points }
    }

    #[test]
    fn points_with_equal_values_are_on_the_dashed_line() {
        let shapes = scatter(vec![[1.0, 1.0], [3.0, 3.0], [2.0, 5.0], [5.0, 1.5]]).layout();
        let dashed = shapes.iter().find_map(|shape| match shape {
            Shape::Line { points, dash, .. } if !dash.is_empty() => Some([points[0], points[1]]),
            _ => None,
        });
        let [from, to] = dashed.unwrap();
        let centers: Vec<(f64, f64)> = shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Area { points, .. } => {
                    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0, y + p.1));
                    Some((x / points.len() as f64, y / points.len() as f64))
                }
                _ => None,
            })
            .collect();
        assert_eq!(centers.len(), 4);
        let beside = |(x, y): (f64, f64)| (to.0 - from.0) * (y - from.1) - (to.1 - from.1) * (x - from.0);
        assert!(beside(centers[0]).abs() < 1e-6 && beside(centers[1]).abs() < 1e-6);
        // A prediction that is too large is above the line; down is positive on a page.
        assert!(beside(centers[2]) < -1.0 && beside(centers[3]) > 1.0);
    }

    #[test]
    fn odd_points_are_drawn() {
        for points in [vec![], vec![[1.0, 1.0]], vec![[f64::NAN, 0.0], [1e300, -1e300]]] {
            let svg = scatter(points).svg();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
