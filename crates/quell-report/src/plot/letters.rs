//! Draws text as pixels, with the letters of Noto Sans that pages have, too.

use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::{
    canvas::Canvas,
    layout::{Anchor, Font, Ink},
};

static REGULAR: &[u8] = include_bytes!("../../fonts/noto-sans-regular.ttf");
static BOLD: &[u8] = include_bytes!("../../fonts/noto-sans-bold.ttf");

/// Draws text with its anchor at (x, y) on the baseline, in pixels.
pub(super) fn write(
    canvas: &mut Canvas,
    (x, y): (f64, f64),
    anchor: Anchor,
    font: Font,
    ink: Ink,
    text: &str,
) {
    let Some(letters) = Letters::new(font) else { return };
    let length: f64 = text.chars().map(|c| letters.advance(c)).sum();
    let mut along = match anchor {
        Anchor::Start => 0.0,
        Anchor::Middle | Anchor::Upward => -length / 2.0,
        Anchor::End => -length,
    };
    // A baseline on whole pixels keeps horizontal strokes sharp.
    let (x, y) = if anchor == Anchor::Upward { (x.round(), y) } else { (x, y.round()) };
    for c in text.chars() {
        let outline: Vec<Vec<(f64, f64)>> = letters
            .outline(c)
            .into_iter()
            .map(|contour| {
                let place = |(right, up): (f64, f64)| {
                    let (right, down) = (along + right, -up);
                    if anchor == Anchor::Upward { (x + down, y - right) } else { (x + right, y + down) }
                };
                contour.into_iter().map(place).collect()
            })
            .collect();
        canvas.fill_all(&outline, ink, 1.0);
        along += letters.advance(c);
    }
}

/// The letters of one weight at one size.
struct Letters {
    face: Face<'static>,
    /// Pixels in a unit of the font.
    scale: f64,
}

impl Letters {
    /// `None` if the font is damaged, which a test rules out.
    fn new(font: Font) -> Option<Self> {
        // As in SVG, with two pixels a unit.
        let (file, height) = match font {
            Font::Title => (BOLD, 32.0),
            Font::Body => (REGULAR, 24.0),
        };
        let face = Face::parse(file, 0).ok()?;
        let scale = height / f64::from(face.units_per_em());
        Some(Self { face, scale })
    }

    /// The glyph of a letter, or a question mark.
    fn glyph(&self, c: char) -> Option<GlyphId> {
        self.face.glyph_index(c).or_else(|| self.face.glyph_index('?'))
    }

    /// The width of a letter.
    fn advance(&self, c: char) -> f64 {
        let units = self.glyph(c).and_then(|glyph| self.face.glyph_hor_advance(glyph)).unwrap_or(0);
        self.scale * f64::from(units)
    }

    /// The contours of a letter: right and up from its place.
    fn outline(&self, c: char) -> Vec<Vec<(f64, f64)>> {
        let mut outline = Outline { scale: self.scale, contours: Vec::new() };
        if let Some(glyph) = self.glyph(c) {
            self.face.outline_glyph(glyph, &mut outline);
        }
        outline.contours
    }
}

/// Contours of straight lines.
struct Outline {
    scale: f64,
    contours: Vec<Vec<(f64, f64)>>,
}

/// Straight lines in place of a curve.
const PIECES: u32 = 6;

impl Outline {
    fn place(&self, x: f32, y: f32) -> (f64, f64) {
        (self.scale * f64::from(x), self.scale * f64::from(y))
    }

    fn last(&self) -> (f64, f64) {
        self.contours.last().and_then(|contour| contour.last()).copied().unwrap_or_default()
    }

    fn push(&mut self, point: (f64, f64)) {
        if let Some(contour) = self.contours.last_mut() {
            contour.push(point);
        }
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        let point = self.place(x, y);
        self.contours.push(vec![point]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.push(self.place(x, y));
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let (from, turn, to) = (self.last(), self.place(x1, y1), self.place(x, y));
        for piece in 1..=PIECES {
            let t = f64::from(piece) / f64::from(PIECES);
            let blend =
                |a: f64, b: f64, c: f64| (1.0 - t) * (1.0 - t) * a + 2.0 * t * (1.0 - t) * b + t * t * c;
            self.push((blend(from.0, turn.0, to.0), blend(from.1, turn.1, to.1)));
        }
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let points = [self.last(), self.place(x1, y1), self.place(x2, y2), self.place(x, y)];
        for piece in 1..=PIECES {
            let t = f64::from(piece) / f64::from(PIECES);
            let weights =
                [(1.0 - t).powi(3), 3.0 * t * (1.0 - t).powi(2), 3.0 * t * t * (1.0 - t), t.powi(3)];
            let blend = |part: fn(&(f64, f64)) -> f64| {
                points.iter().zip(weights).map(|(point, weight)| weight * part(point)).sum::<f64>()
            };
            self.push((blend(|point| point.0), blend(|point| point.1)));
        }
    }

    fn close(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pixels of a text on a white canvas.
    fn drawn(text: &str, font: Font) -> Vec<u8> {
        let mut canvas = Canvas::new(40, 40);
        write(&mut canvas, (10.0, 28.0), Anchor::Start, font, [0; 3], text);
        canvas.pixels
    }

    #[test]
    fn every_character_that_figures_use_has_a_shape_of_its_own() {
        for font in [Font::Body, Font::Title] {
            let (nothing, unknown) = (drawn(" ", font), drawn("?", font));
            assert_eq!(drawn("語", font), unknown);
            for c in "εδαβσμ≤≥×·é²√∞≈→…⁰¹²³⁴⁵⁶⁷⁸⁹⁻=,.()-%abcxyzABCXYZ0123456789".chars()
            {
                let shape = drawn(&c.to_string(), font);
                assert!(shape != nothing && shape != unknown, "{c}");
            }
        }
    }

    #[test]
    fn letters_with_holes_have_them() {
        let dark = |text: &str| drawn(text, Font::Title).chunks(3).filter(|pixel| pixel[0] < 128).count();
        // A filled oval of the size of an o would have many more dark pixels.
        let (width, height) = (18.0, 18.0);
        let oval = std::f64::consts::FRAC_PI_4 * width * height;
        assert!((dark("o") as f64) < 0.8 * oval && dark("o") > 60, "{}", dark("o"));
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
