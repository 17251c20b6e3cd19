//! An antialiased pixel canvas: strokes, dashes and filled polygons.

use super::layout::Ink;

/// An RGB image whose rows start at the top left.
pub(super) struct Canvas {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) pixels: Vec<u8>,
}

impl Canvas {
    /// Creates a white canvas.
    pub(super) fn new(width: usize, height: usize) -> Self {
        Self { width, height, pixels: vec![255; 3 * width * height] }
    }

    /// Blends ink over a pixel; pixels outside of the canvas are ignored.
    pub(super) fn blend(&mut self, x: i64, y: i64, ink: Ink, opacity: f64) {
        let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
        if x >= self.width || y >= self.height || opacity <= 0.0 {
            return;
        }
        let at = 3 * (y * self.width + x);
        for (pixel, ink) in self.pixels[at..at + 3].iter_mut().zip(ink) {
            let mixed = f64::from(*pixel) + (f64::from(ink) - f64::from(*pixel)) * opacity.min(1.0);
            *pixel = mixed.round() as u8;
        }
    }

    /// Draws a stroke with round caps. Segments that overlap ink a pixel only once.
    pub(super) fn stroke(&mut self, points: &[(f64, f64)], width: f64, ink: Ink) {
        let reach = width / 2.0 + 1.0;
        let Some(mut mask) = Mask::around(points, reach, self.width, self.height) else { return };
        for pair in points.windows(2) {
            mask.segment(pair[0], pair[1], width / 2.0);
        }
        self.apply(&mask, ink, 1.0);
    }

    /// Draws a dashed stroke; `dash` alternates the lengths of dashes and gaps.
    pub(super) fn dashed(&mut self, points: &[(f64, f64)], width: f64, ink: Ink, dash: &[f64]) {
        if dash.is_empty() {
            return self.stroke(points, width, ink);
        }
        for piece in pieces(points, dash) {
            self.stroke(&piece, width, ink);
        }
    }

    /// Fills a polygon by the even-odd rule.
    pub(super) fn fill(&mut self, points: &[(f64, f64)], ink: Ink, opacity: f64) {
        self.fill_all(&[points.to_vec()], ink, opacity);
    }

    /// Fills several polygons by the even-odd rule: one inside of another is a hole.
    pub(super) fn fill_all(&mut self, polygons: &[Vec<(f64, f64)>], ink: Ink, opacity: f64) {
        let Some(mut mask) = Mask::around(&polygons.concat(), 1.0, self.width, self.height) else { return };
        mask.fill(polygons);
        self.apply(&mask, ink, opacity);
    }

    fn apply(&mut self, mask: &Mask, ink: Ink, opacity: f64) {
        for row in 0..mask.height {
            for column in 0..mask.width {
                let cover = f64::from(mask.cover[row * mask.width + column]);
                self.blend((mask.left + column) as i64, (mask.top + row) as i64, ink, opacity * cover);
            }
        }
    }
}

/// The covered fraction of each pixel in a rectangle.
struct Mask {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
    cover: Vec<f32>,
}

impl Mask {
    /// An empty mask over the part of the canvas near the points, if any.
    ///
    /// Near means within `reach`.
    fn around(points: &[(f64, f64)], reach: f64, width: usize, height: usize) -> Option<Self> {
        let range = |values: &mut dyn Iterator<Item = f64>, size: usize| {
            let (low, high) =
                values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
            let low = (low - reach).floor().clamp(0.0, size as f64);
            let high = (high + reach).ceil().clamp(0.0, size as f64);
            (high > low).then_some((low as usize, (high - low) as usize))
        };
        let (left, width) = range(&mut points.iter().map(|p| p.0), width)?;
        let (top, height) = range(&mut points.iter().map(|p| p.1), height)?;
        Some(Self { left, top, width, height, cover: vec![0.0; width * height] })
    }

    fn segment(&mut self, from: (f64, f64), to: (f64, f64), half: f64) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let square = dx * dx + dy * dy;
        let reach = half + 1.0;
        let inside = |low: f64, high: f64, start: usize, size: usize| {
            let start = start as f64;
            let from = (low - reach - start).floor().clamp(0.0, size as f64) as usize;
            from..(high + reach - start).ceil().clamp(0.0, size as f64) as usize
        };
        for row in inside(from.1.min(to.1), from.1.max(to.1), self.top, self.height) {
            for column in inside(from.0.min(to.0), from.0.max(to.0), self.left, self.width) {
                let (x, y) = ((self.left + column) as f64 + 0.5, (self.top + row) as f64 + 0.5);
                let along = if square > 0.0 {
                    (((x - from.0) * dx + (y - from.1) * dy) / square).clamp(0.0, 1.0)
                } else {
                    0.0
                };
                let distance = (x - from.0 - along * dx).hypot(y - from.1 - along * dy);
                let cover = (half + 0.5 - distance).clamp(0.0, 1.0) as f32;
                let cell = &mut self.cover[row * self.width + column];
                *cell = cell.max(cover);
            }
        }
    }

    /// Adds polygons, sampled at several scan lines per pixel row with exact horizontal coverage.
    fn fill(&mut self, polygons: &[Vec<(f64, f64)>]) {
        const LINES: usize = 6;
        for line in 0..LINES * self.height {
            let y = self.top as f64 + (line as f64 + 0.5) / LINES as f64;
            let mut crossings: Vec<f64> = Vec::new();
            for points in polygons {
                for (i, from) in points.iter().enumerate() {
                    let to = points[(i + 1) % points.len()];
                    if (from.1 <= y) != (to.1 <= y) {
                        let along = (y - from.1) / (to.1 - from.1) * (to.0 - from.0);
                        crossings.push(from.0 + along - self.left as f64);
                    }
                }
            }
            crossings.sort_by(f64::total_cmp);
            let row = line / LINES * self.width;
            for span in crossings.chunks_exact(2) {
                let (from, to) = (span[0].max(0.0), span[1].min(self.width as f64));
                for column in from as usize..(to.ceil().max(0.0) as usize).min(self.width) {
                    let cover = (to.min(column as f64 + 1.0) - from.max(column as f64)).max(0.0);
                    self.cover[row + column] += cover as f32 / LINES as f32;
                }
            }
        }
    }
}

/// Splits a line into its dashes.
fn pieces(points: &[(f64, f64)], dash: &[f64]) -> Vec<Vec<(f64, f64)>> {
    let mut pieces = Vec::new();
    let mut piece: Vec<(f64, f64)> = points.first().copied().into_iter().collect();
    let (mut phase, mut left) = (0, dash[0]);
    for pair in points.windows(2) {
        let ((mut x, mut y), to) = (pair[0], pair[1]);
        loop {
            let length = (to.0 - x).hypot(to.1 - y);
            if length <= left {
                left -= length;
                piece.push(to);
                break;
            }
            x += (to.0 - x) * left / length;
            y += (to.1 - y) * left / length;
            piece.push((x, y));
            if phase % 2 == 0 {
                pieces.push(std::mem::take(&mut piece));
            }
            piece = vec![(x, y)];
            phase = (phase + 1) % dash.len();
            left = dash[phase];
        }
    }
    if phase % 2 == 0 {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inked area, in pixels.
    fn area(canvas: &Canvas) -> f64 {
        canvas.pixels.chunks(3).map(|pixel| 1.0 - f64::from(pixel[0]) / 255.0).sum()
    }

    #[test]
    fn strokes_and_polygons_cover_their_area() {
        let mut canvas = Canvas::new(100, 100);
        canvas.stroke(&[(10.3, 20.7), (80.1, 61.2)], 4.0, [0; 3]);
        let expected = 4.0 * 69.8_f64.hypot(40.5) + 4.0 * std::f64::consts::PI;
        assert!((area(&canvas) - expected).abs() < 0.03 * expected, "{} {expected}", area(&canvas));

        let mut canvas = Canvas::new(100, 100);
        canvas.fill(&[(10.25, 10.5), (60.75, 10.5), (60.75, 50.25), (10.25, 50.25)], [0; 3], 0.5);
        let expected = 0.5 * 50.5 * 39.75;
        assert!((area(&canvas) - expected).abs() < 0.02 * expected, "{} {expected}", area(&canvas));
    }

    #[test]
    fn dashes_ink_their_share_of_a_line() {
        let line: Vec<(f64, f64)> = (0..=300).map(|i| (f64::from(i), 0.0)).collect();
        let inked: f64 =
            pieces(&line, &[6.0, 4.0]).iter().map(|piece| piece.last().unwrap().0 - piece[0].0).sum();
        assert!((inked - 180.0).abs() < 1e-9, "{inked}");
    }

    #[test]
    fn what_lies_outside_is_lost() {
        let mut canvas = Canvas::new(10, 10);
        canvas.stroke(&[(-50.0, -50.0), (-20.0, -20.0)], 3.0, [0; 3]);
        canvas.fill(&[(-50.0, -50.0), (-20.0, -20.0), (200.0, -30.0)], [0; 3], 1.0);
        for (x, y) in [(-1, 5), (5, -1), (10, 5), (5, 10), (i64::MAX, 0), (i64::MIN, 0)] {
            canvas.blend(x, y, [0; 3], 1.0);
        }
        assert_eq!(area(&canvas), 0.0);
        canvas.fill(&[(-1e6, -1e6), (1e6, -1e6), (1e6, 1e6), (-1e6, 1e6)], [0; 3], 1.0);
        assert_eq!(area(&canvas), 100.0);
    }
}
