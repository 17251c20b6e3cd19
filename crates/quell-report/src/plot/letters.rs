//! Renders text as pixels: Noto Sans Mono, with hand-drawn strokes for missing Greek letters.

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};

use super::{
    canvas::Canvas,
    layout::{Anchor, Font, Ink},
};

/// Draws text with its anchor at (x, y) on the baseline, in pixels.
pub(super) fn write(
    canvas: &mut Canvas,
    (x, y): (f64, f64),
    anchor: Anchor,
    font: Font,
    ink: Ink,
    text: &str,
) {
    let face = Face::new(font);
    let length: f64 = text.chars().map(|c| face.advance(c)).sum();
    let mut along = match anchor {
        Anchor::Start => 0.0,
        Anchor::Middle | Anchor::Upward => (-length / 2.0).round(),
        Anchor::End => -length,
    };
    let (x, y) = (x.round(), y.round());
    // Maps offsets (right, down) in the text to canvas coordinates.
    let place = |(right, down): (f64, f64)| {
        if anchor == Anchor::Upward { (x + down, y - right) } else { (x + right, y + down) }
    };
    for c in text.chars() {
        face.draw(canvas, c, ink, |(right, down)| place((along + right, down)));
        along += face.advance(c);
    }
}

/// A font weight and size.
struct Face {
    weight: FontWeight,
    height: RasterHeight,
}

/// Fraction of the line height above the baseline, in Noto Sans Mono.
const ABOVE: f64 = 0.785;
/// Fraction of the line height that is the height of an x.
const X_HEIGHT: f64 = 0.394;

impl Face {
    fn new(font: Font) -> Self {
        match font {
            Font::Title => Self { weight: FontWeight::Bold, height: RasterHeight::Size32 },
            Font::Body => Self { weight: FontWeight::Regular, height: RasterHeight::Size24 },
        }
    }

    /// The face for superscript digits.
    fn small(&self) -> Self {
        Self { weight: self.weight, height: RasterHeight::Size16 }
    }

    fn advance(&self, c: char) -> f64 {
        if superscript_base(c).is_some() {
            return self.small().advance('0');
        }
        get_raster_width(self.weight, self.height) as f64
    }

    fn draw(&self, canvas: &mut Canvas, c: char, ink: Ink, place: impl Fn((f64, f64)) -> (f64, f64)) {
        let height = self.height.val() as f64;
        if let Some(digit) = superscript_base(c) {
            return self
                .small()
                .bitmap(canvas, digit, ink, |(right, down)| place((right, down - 0.3 * height)));
        }
        if let Some(strokes) = strokes(c) {
            let unit = X_HEIGHT * height;
            let width = if self.weight == FontWeight::Bold { 0.10 } else { 0.066 } * height;
            for stroke in strokes {
                let points: Vec<(f64, f64)> =
                    smooth(stroke).iter().map(|(u, v)| place((u * unit, -v * unit))).collect();
                canvas.stroke(&points, width, ink);
            }
            return;
        }
        self.bitmap(canvas, if c == 'μ' { 'µ' } else { c }, ink, place);
    }

    fn bitmap(&self, canvas: &mut Canvas, c: char, ink: Ink, place: impl Fn((f64, f64)) -> (f64, f64)) {
        let Some(raster) =
            get_raster(c, self.weight, self.height).or_else(|| get_raster('?', self.weight, self.height))
        else {
            return;
        };
        let above = (ABOVE * self.height.val() as f64).round();
        for (down, row) in raster.rows().enumerate() {
            for (right, cover) in row.iter().enumerate() {
                // Map the centre of the pixel, so that a rotation by 90 degrees hits the right pixel.
                let (x, y) = place((right as f64 + 0.5, down as f64 + 0.5 - above));
                canvas.blend(x.floor() as i64, y.floor() as i64, ink, f64::from(*cover) / 255.0);
            }
        }
    }
}

/// The plain character of a superscript.
fn superscript_base(c: char) -> Option<char> {
    match c {
        '⁻' => Some('-'),
        '¹' => Some('1'),
        '²' => Some('2'),
        '³' => Some('3'),
        '⁰' | '⁴'..='⁹' => char::from_digit(c as u32 - 0x2070, 10),
        _ => None,
    }
}

type Stroke = &'static [(f64, f64)];

/// Hand-drawn letters: points of smooth strokes above the baseline.
///
/// The unit is the height of an x. A character cell is 1.17 units wide.
fn strokes(c: char) -> Option<&'static [Stroke]> {
    Some(match c {
        'ε' => &[
            &[
                (0.98, 0.86),
                (0.80, 0.98),
                (0.55, 1.0),
                (0.30, 0.90),
                (0.26, 0.70),
                (0.42, 0.56),
                (0.68, 0.53),
            ],
            &[(0.68, 0.53), (0.38, 0.49), (0.19, 0.34), (0.22, 0.12), (0.48, 0.0), (0.76, 0.02), (1.0, 0.13)],
        ],
        'δ' => &[&[
            (0.95, 1.42),
            (0.72, 1.5),
            (0.45, 1.44),
            (0.37, 1.26),
            (0.52, 1.06),
            (0.78, 0.87),
            (0.97, 0.62),
            (0.98, 0.32),
            (0.80, 0.05),
            (0.56, 0.0),
            (0.30, 0.08),
            (0.16, 0.34),
            (0.18, 0.64),
            (0.36, 0.87),
            (0.62, 0.94),
        ]],
        'α' => &[&[
            (1.05, 1.0),
            (0.94, 0.60),
            (0.76, 0.22),
            (0.50, 0.0),
            (0.24, 0.10),
            (0.12, 0.38),
            (0.14, 0.70),
            (0.30, 0.94),
            (0.54, 0.98),
            (0.74, 0.76),
            (0.86, 0.36),
            (0.96, 0.08),
            (1.12, 0.0),
        ]],
        'β' => &[
            &[
                (0.18, -0.42),
                (0.18, 0.30),
                (0.18, 1.10),
                (0.30, 1.40),
                (0.56, 1.5),
                (0.82, 1.36),
                (0.84, 1.06),
                (0.66, 0.86),
                (0.46, 0.82),
            ],
            &[
                (0.46, 0.82),
                (0.78, 0.78),
                (0.99, 0.58),
                (0.98, 0.26),
                (0.80, 0.04),
                (0.52, 0.0),
                (0.18, 0.14),
            ],
        ],
        'σ' => &[&[
            (1.12, 0.95),
            (0.80, 0.96),
            (0.50, 0.96),
            (0.24, 0.82),
            (0.13, 0.48),
            (0.24, 0.14),
            (0.52, 0.0),
            (0.80, 0.12),
            (0.93, 0.46),
            (0.84, 0.80),
            (0.62, 0.96),
        ]],
        '≤' => &[&[(1.0, 1.25), (0.14, 0.85), (0.14, 0.85), (1.0, 0.45)], &[(0.14, 0.12), (1.0, 0.12)]],
        _ => return None,
    })
}

/// A Catmull-Rom spline through the points.
fn smooth(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    const STEPS: usize = 8;
    if points.len() < 3 {
        return points.to_vec();
    }
    let at = |i: isize| points[i.clamp(0, points.len() as isize - 1) as usize];
    let mut curve = Vec::with_capacity(STEPS * points.len());
    for i in 0..points.len() as isize - 1 {
        let (a, b, c, d) = (at(i - 1), at(i), at(i + 1), at(i + 2));
        for step in 0..STEPS {
            let t = step as f64 / STEPS as f64;
            let blend = |a: f64, b: f64, c: f64, d: f64| {
                b + 0.5 * t * (c - a + t * (2.0 * a - 5.0 * b + 4.0 * c - d + t * (3.0 * (b - c) + d - a)))
            };
            curve.push((blend(a.0, b.0, c.0, d.0), blend(a.1, b.1, c.1, d.1)));
        }
    }
    curve.push(at(points.len() as isize - 1));
    curve
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pixels of a text on a white canvas.
    fn drawn(text: &str) -> Vec<u8> {
        let mut canvas = Canvas::new(40, 40);
        write(&mut canvas, (10.0, 28.0), Anchor::Start, Font::Body, [0; 3], text);
        canvas.pixels
    }

    #[test]
    fn every_character_that_figures_use_has_a_shape_of_its_own() {
        let (nothing, unknown) = (drawn(" "), drawn("?"));
        assert_eq!(drawn("語"), unknown);
        for c in "εδαβσμ≤×·é⁰¹²³⁴⁵⁶⁷⁸⁹⁻=,.()-abcxyzABCXYZ0123456789".chars() {
            let shape = drawn(&c.to_string());
            assert!(shape != nothing && shape != unknown, "{c}");
        }
    }

    #[test]
    fn words_are_placed_by_their_anchor() {
        let mean = |anchor: Anchor| {
            let mut canvas = Canvas::new(200, 200);
            write(&mut canvas, (100.0, 100.0), anchor, Font::Body, [0; 3], "HHHH");
            let dark = canvas
                .pixels
                .chunks(3)
                .enumerate()
                .filter(|(_, pixel)| pixel[0] < 128)
                .map(|(i, _)| (i % 200, i / 200));
            let (count, x, y) = dark.fold((0, 0, 0), |(n, sx, sy), (x, y)| (n + 1, sx + x, sy + y));
            (x / count, y / count)
        };
        let (start, middle, end, upward) =
            (mean(Anchor::Start), mean(Anchor::Middle), mean(Anchor::End), mean(Anchor::Upward));
        assert!(start.0 > 115 && middle.0.abs_diff(100) < 3 && end.0 < 85, "{start:?} {middle:?} {end:?}");
        assert!(start.1 == middle.1 && middle.1 < 100, "above the baseline");
        assert!(
            upward.0 < 100 && upward.1.abs_diff(100) < 3,
            "{upward:?}: left of the place, read from below"
        );
    }
}
