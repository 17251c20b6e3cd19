//! A map: places with labels, drawn as circles whose areas are numbers.
//!
//! A unit has the same length in both directions, so distances on the page are those of the places.

use serde::Serialize;

use super::{
    Scale,
    layout::{Anchor, BLACK, Font, INKS, LARGE, LETTER, Shape, Sheet, grid, heading, text},
    png, svg,
    ticks::{Fit, Frame},
};

/// A map.
#[derive(Serialize)]
pub struct Map {
    /// Title of the map.
    pub title: String,
    /// Parameters that the map holds for.
    pub subtitle: String,
    /// Label of the horizontal axis.
    pub x: String,
    /// Label of the vertical axis.
    pub y: String,
    /// The places.
    pub places: Vec<Place>,
}

/// A place on a map.
#[derive(Clone, Debug, Serialize)]
pub struct Place {
    /// The name, a few letters.
    pub name: String,
    /// The x value.
    pub x: f64,
    /// The y value.
    pub y: f64,
    /// What the area of its circle shows; all circles are equal if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<f64>,
}

/// Radius of the largest circle, of the smallest one, and of circles without a size.
const LARGEST: f64 = 36.0;
const SMALLEST: f64 = 4.0;
const USUAL: f64 = 13.0;
/// The smallest radius of a circle that holds its name.
const HOLDS_NAME: f64 = 11.0;

impl Map {
    /// Renders the map as SVG, as a file or for embedding in a page.
    #[must_use]
    pub fn svg(&self) -> String {
        svg::draw(&self.title, &self.subtitle, &self.layout(), LARGE)
    }

    /// Renders the map as a PNG file.
    pub fn png(&self) -> Result<Vec<u8>, ::png::EncodingError> {
        png::draw(&self.layout(), LARGE)
    }

    /// All shapes of the map, in painting order.
    fn layout(&self) -> Vec<Shape> {
        let Sheet { width, height } = LARGE;
        let (left, right, bottom) = (78.0, width - 28.0, height - 58.0);
        let mut shapes = Vec::new();
        let top = heading(&mut shapes, (left, right), 30.0, [&self.title, &self.subtitle]);
        let page = Page::new(self.shown(), [left, top, right, bottom]);
        page.draw_axes(&mut shapes, self);
        let mut order: Vec<(&Place, f64)> = self.shown().map(|place| (place, self.radius(place))).collect();
        // Small circles are drawn over large ones.
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (place, radius) in &order {
            let circle = circle(page.position(place), *radius);
            shapes.push(Shape::Area { points: circle.clone(), ink: INKS[0], opacity: 0.25 });
            shapes.push(Shape::Line { points: circle, width: 1.4, ink: INKS[0], dash: &[] });
        }
        for (place, radius) in &order {
            let (x, y) = page.position(place);
            let (x, anchor) =
                if *radius >= HOLDS_NAME { (x, Anchor::Middle) } else { (x + radius + 4.0, Anchor::Start) };
            text(&mut shapes, (x, y + 4.0), anchor, Font::Body, BLACK, &place.name);
        }
        shapes
    }

    /// The places that can be drawn.
    fn shown(&self) -> impl Iterator<Item = &Place> + Clone {
        self.places.iter().filter(|place| place.x.is_finite() && place.y.is_finite())
    }

    fn radius(&self, place: &Place) -> f64 {
        let sizes = self.places.iter().filter_map(|place| place.size).filter(|size| size.is_finite());
        let largest = sizes.fold(0.0, f64::max);
        match place.size {
            Some(size) if largest > 0.0 => (LARGEST * (size / largest).max(0.0).sqrt()).max(SMALLEST),
            _ => USUAL,
        }
    }
}

/// The plot area, and the values at its middle.
struct Page {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
    middle: [f64; 2],
    /// Length of a unit on the page.
    unit: f64,
}

impl Page {
    fn new<'a>(
        places: impl Iterator<Item = &'a Place> + Clone,
        [left, top, right, bottom]: [f64; 4],
    ) -> Self {
        let range = |values: &mut dyn Iterator<Item = f64>| {
            let [low, high] =
                values.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)]);
            if low <= high { [low, high] } else { [0.0, 0.0] }
        };
        let ranges = [range(&mut places.clone().map(|p| p.x)), range(&mut places.map(|p| p.y))];
        let [across, upward] = ranges.map(|[low, high]| high - low);
        // The largest circle stays within the area, wherever it is.
        let room = [right - left, bottom - top].map(|side| side - 2.0 * (LARGEST + 8.0));
        let unit = (room[0] / across).min(room[1] / upward);
        let unit = if unit.is_finite() { unit } else { room[1] };
        Self { left, top, right, bottom, middle: ranges.map(|[low, high]| f64::midpoint(low, high)), unit }
    }

    fn position(&self, place: &Place) -> (f64, f64) {
        let Self { left, top, right, bottom, middle, unit } = self;
        let (x, y) = (f64::midpoint(*left, *right), f64::midpoint(*top, *bottom));
        (x + unit * (place.x - middle[0]), y - unit * (place.y - middle[1]))
    }

    fn draw_axes(&self, shapes: &mut Vec<Shape>, map: &Map) {
        let Self { left, top, right, bottom, middle, unit } = *self;
        let frame = |middle: f64, length: f64| {
            let half = 0.5 * length / unit;
            Frame::around(Scale::Linear, [middle - half, middle + half].into_iter(), Fit::Tight)
        };
        let at = |x: f64, y: f64| self.position(&Place { name: String::new(), x, y, size: None });
        let (across, upward) = (frame(middle[0], right - left), frame(middle[1], bottom - top));
        grid(
            shapes,
            [left, top, right, bottom],
            across.ticks.iter().map(|(value, label)| (at(*value, middle[1]).0, label.as_str())),
            upward.ticks.iter().map(|(value, label)| (at(middle[0], *value).1, label.as_str())),
        );
        let below = (f64::midpoint(left, right), LARGE.height - 16.0);
        text(shapes, below, Anchor::Middle, Font::Body, BLACK, &map.x);
        let longest = upward.ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        let beside = ((left - 22.0 - LETTER * longest as f64).max(16.0), f64::midpoint(top, bottom));
        text(shapes, beside, Anchor::Upward, Font::Body, BLACK, &map.y);
    }
}

fn circle((x, y): (f64, f64), radius: f64) -> Vec<(f64, f64)> {
    let angle = |corner: u32| f64::from(corner) / 48.0 * std::f64::consts::TAU;
    (0..=48).map(|corner| (x + radius * angle(corner).sin(), y - radius * angle(corner).cos())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(places: &[(f64, f64, Option<f64>)]) -> Map {
        let place = |(number, (x, y, size)): (usize, &(f64, f64, Option<f64>))| Place {
            name: (number + 1).to_string(),
            x: *x,
            y: *y,
            size: *size,
        };
        let places = places.iter().enumerate().map(place).collect();
        let [title, subtitle, x, y] = ["map", "a subtitle", "across", "upward"].map(str::to_owned);
        Map { title, subtitle, x, y, places }
    }

    fn circles(map: &Map) -> Vec<[f64; 4]> {
        let ends = |points: &[(f64, f64)]| {
            points.iter().fold([f64::INFINITY, f64::INFINITY, 0.0, 0.0], |[a, b, c, d], (x, y)| {
                [a.min(*x), b.min(*y), f64::max(c, *x), f64::max(d, *y)]
            })
        };
        let shapes = map.layout();
        let areas = shapes.iter().filter_map(|shape| match shape {
            Shape::Area { points, .. } => Some(ends(points)),
            _ => None,
        });
        areas.collect()
    }

    #[test]
    fn areas_are_sizes_and_distances_are_those_of_the_places() {
        let map = map(&[(0.0, 0.0, Some(400.0)), (3.0, 4.0, Some(100.0)), (3.0, 0.0, Some(100.0))]);
        let found = circles(&map);
        let radius = |at: &[f64; 4]| 0.5 * (at[2] - at[0]);
        assert!((radius(&found[0]) / radius(&found[1]) - 2.0).abs() < 1e-6);
        let middle = |at: &[f64; 4]| [0.5 * (at[0] + at[2]), 0.5 * (at[1] + at[3])];
        let distance = |a: &[f64; 4], b: &[f64; 4]| {
            let ([ax, ay], [bx, by]) = (middle(a), middle(b));
            (ax - bx).hypot(ay - by)
        };
        let ratio = distance(&found[0], &found[1]) / distance(&found[0], &found[2]);
        assert!((ratio - 5.0 / 3.0).abs() < 1e-6, "{ratio}");
        for [left, top, right, bottom] in found {
            assert!(left >= 78.0 && top >= 60.0 && right <= LARGE.width && bottom <= LARGE.height - 58.0);
        }
    }

    #[test]
    fn odd_maps_are_drawn() {
        let odd = [
            vec![],
            vec![(0.0, 0.0, None)],
            vec![(1.0, 1.0, Some(0.0)), (1.0, 1.0, Some(-3.0))],
            vec![(f64::NAN, 0.0, None), (0.0, f64::INFINITY, Some(f64::NAN)), (1e300, -1e300, Some(1.0))],
        ];
        for places in odd {
            let map = map(&places);
            let svg = map.svg();
            assert!(map.png().is_ok() && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
