//! Renders shapes as PNG, with two pixels per layout unit.

use super::{
    canvas::Canvas,
    layout::{Shape, Sheet},
    letters,
};

const SCALE: f64 = 2.0;

/// Renders the PNG file.
pub(super) fn draw(shapes: &[Shape], sheet: Sheet) -> Result<Vec<u8>, png::EncodingError> {
    let mut canvas = Canvas::new((SCALE * sheet.width) as usize, (SCALE * sheet.height) as usize);
    let scaled =
        |points: &[(f64, f64)]| points.iter().map(|(x, y)| (SCALE * x, SCALE * y)).collect::<Vec<_>>();
    for shape in shapes {
        match shape {
            Shape::Line { points, width, ink, dash } => {
                // Round caps lengthen each dash by the width of the line, so dashes are shortened and gaps
                // lengthened.
                let capped = |(i, length): (usize, &f64)| {
                    SCALE * if i % 2 == 0 { (length - width).max(0.1) } else { length + width }
                };
                let dash: Vec<f64> = dash.iter().enumerate().map(capped).collect();
                canvas.dashed(&scaled(points), SCALE * width, *ink, &dash);
            }
            Shape::Area { points, ink, opacity } => canvas.fill(&scaled(points), *ink, *opacity),
            Shape::Text { at, anchor, font, ink, text } => {
                letters::write(&mut canvas, (SCALE * at.0, SCALE * at.1), *anchor, *font, *ink, text);
            }
        }
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, canvas.width as u32, canvas.height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(&canvas.pixels)?;
    Ok(file)
}
