//! Renders shapes as SVG. Text stays text, so it can be searched, read aloud and scaled.

use std::fmt::Write;

use super::layout::{Anchor, Font, Ink, Shape, Sheet};
use crate::escape;

const FAMILY: &str =
    "'Noto Sans', system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif";

/// Renders the SVG document.
pub(super) fn draw(title: &str, subtitle: &str, shapes: &[Shape], Sheet { width, height }: Sheet) -> String {
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" font-family="{FAMILY}">
<title>{}</title>
<desc>{}</desc>
<rect width="{width}" height="{height}" fill="#ffffff"/>
"##,
        escaped(title),
        escaped(subtitle),
    );
    for shape in shapes {
        let element = match shape {
            Shape::Line { points, width, ink, dash } => line(points, *width, *ink, dash),
            Shape::Area { points, ink, opacity } => {
                format!(
                    r#"<polygon points="{}" fill="{}" fill-opacity="{opacity}"/>"#,
                    list(points),
                    colour(*ink)
                )
            }
            Shape::Text { at, anchor, font, ink, text } => words(*at, *anchor, *font, *ink, text),
        };
        // Writing to a string does not fail.
        let _ = writeln!(svg, "{element}");
    }
    svg.push_str("</svg>\n");
    svg
}

fn line(points: &[(f64, f64)], width: f64, ink: Ink, dash: &[f64]) -> String {
    let dashes: Vec<String> = dash.iter().map(ToString::to_string).collect();
    let dashes =
        if dash.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{}""#, dashes.join(" ")) };
    format!(
        r#"<polyline points="{}" fill="none" stroke="{}" stroke-width="{width}" stroke-linejoin="round"{dashes}/>"#,
        list(points),
        colour(ink),
    )
}

fn words((x, y): (f64, f64), anchor: Anchor, font: Font, ink: Ink, text: &str) -> String {
    let place = match anchor {
        Anchor::Start => String::new(),
        Anchor::Middle => r#" text-anchor="middle""#.into(),
        Anchor::End => r#" text-anchor="end""#.into(),
        Anchor::Upward => {
            format!(r#" text-anchor="middle" transform="rotate(-90 {} {})""#, short(x), short(y))
        }
    };
    let font = match font {
        Font::Title => r#"font-size="16" font-weight="700""#,
        Font::Body => r#"font-size="12""#,
    };
    format!(
        r#"<text x="{}" y="{}" {font} fill="{}"{place}>{}</text>"#,
        short(x),
        short(y),
        colour(ink),
        escaped(text)
    )
}

fn list(points: &[(f64, f64)]) -> String {
    points.iter().map(|(x, y)| format!("{},{}", short(*x), short(*y))).collect::<Vec<_>>().join(" ")
}

fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn colour([red, green, blue]: Ink) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escaped(text: &str) -> String {
    // XML does not allow control characters.
    let text: String = text.chars().map(|c| if escape::is_unsafe(c) { ' ' } else { c }).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_break_out_of_their_element() {
        let text = words((1.0, 2.5), Anchor::End, Font::Body, [0, 0, 255], "a < b & c > d\u{1b}");
        assert_eq!(
            text,
            r##"<text x="1" y="2.5" font-size="12" fill="#0000ff" text-anchor="end">a &lt; b &amp; c &gt; d </text>"##
        );
    }
}
