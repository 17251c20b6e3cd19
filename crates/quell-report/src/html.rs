//! A report as one self-contained HTML page: no scripts and no links. It holds its own letters.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::escape;
use crate::facts::{Confusion, Report, share_of};
use crate::learned::Findings;

const STYLE: &str = include_str!("report.css");

/// Renders the page. The template escapes every text.
pub(crate) fn page(facts: &Report) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (visible(&facts.title)) }
                style { (PreEscaped(fonts())) (PreEscaped(STYLE)) }
            }
            body {
                h1 { (visible(&facts.title)) }
                p.faint { (visible(facts.kind)) }
                div.headlines {
                    @for [name, value, remark] in &facts.headlines {
                        div { span { (visible(name)) } b { (visible(value)) } span { (visible(remark)) } }
                    }
                }
                h2 { "The guarantee" }
                dl.promise {
                    @for (word, sentence) in &facts.statement {
                        div {
                            dt { @if !word.is_empty() { (visible(word)) ": " } }
                            dd { (visible(sentence)) }
                        }
                    }
                }
                @if let Some(findings) = &facts.learned { (learned(findings)) }
                @for table in &facts.tables { (learned(table)) }
                @if let Some(columns) = &facts.columns {
                    h2 { (visible(columns.heading)) }
                    p { (visible(&columns.reading)) }
                    div.columns {
                        @for figure in &columns.figures { figure { (PreEscaped(figure.small_svg())) } }
                    }
                }
                @if !facts.figures.is_empty() || facts.scatter.is_some() {
                    h2 { "Figures" }
                    div.figures {
                        @if let Some((scatter, reading)) = &facts.scatter {
                            figure { (PreEscaped(scatter.svg())) figcaption { (visible(reading)) } }
                        }
                        @for (figure, reading) in &facts.figures {
                            figure { (PreEscaped(figure.svg())) figcaption { (visible(reading)) } }
                        }
                    }
                }
                @if let Some(confusion) = &facts.confusion {
                    h2 { "Confusion matrix" }
                    (matrix(confusion))
                }
                div.lists {
                    @for (heading, rows) in &facts.lists {
                        section {
                            h2 { (visible(heading)) }
                            table.list {
                                @for [name, value] in rows {
                                    tr { th scope="row" { (visible(name)) } td { (visible(value)) } }
                                }
                            }
                        }
                    }
                }
                footer {
                    "Everything on this page is public: it follows from settings, from releases that were paid \
                     for, and from data that was declared public."
                }
            }
        }
    };
    page.into_string() + "\n"
}

/// The letters of the page, which figures in PNG files have, too.
fn fonts() -> String {
    let face = |weight: u32, file: &[u8]| {
        let file = base64(file);
        format!(
            "@font-face{{font-family:'Noto Sans';font-weight:{weight};\
             src:url(data:font/woff2;base64,{file}) format('woff2')}}\n"
        )
    };
    face(400, include_bytes!("../fonts/noto-sans-regular.woff2"))
        + &face(700, include_bytes!("../fonts/noto-sans-bold.woff2"))
}

/// Bytes as text: six bits a letter [RFC 4648, Section 4].
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, i| bits << 8 | usize::from(group.get(i).copied().unwrap_or(0)));
        for place in 0..4 {
            let letter = if place <= group.len() { LETTERS[bits >> (18 - 6 * place) & 63] } else { b'=' };
            text.push(char::from(letter));
        }
    }
    text
}

/// Renders what the model learned: the map, if there is one, and the table.
fn learned(findings: &Findings) -> Markup {
    html! {
        h2 { (visible(findings.heading)) }
        p { (visible(&findings.reading)) }
        @if let Some((map, reading)) = &findings.map {
            div.figures { figure { (PreEscaped(map.svg())) figcaption { (visible(reading)) } } }
        }
        @if !findings.pictures.is_empty() {
            div.pictures {
                @for picture in &findings.pictures {
                    @if let Ok(file) = picture.png() {
                        figure {
                            img src=(format!("data:image/png;base64,{}", base64(&file))) alt=(visible(&picture.caption));
                            figcaption { (visible(&picture.caption)) }
                        }
                    }
                }
            }
        }
        div.wide {
            table.findings {
                tr { @for name in &findings.head { th scope="col" { (visible(name)) } } }
                @for row in &findings.rows {
                    tr { @for cell in row { td { (visible(cell)) } } }
                }
            }
        }
    }
}

/// Renders the confusion matrix. A cell is darker if it is a larger part of its row.
fn matrix(confusion: &Confusion) -> Markup {
    let shade = |count: u64, counts: &[u64]| {
        let all = counts.iter().sum::<u64>().max(1) as f64;
        // Rare mistakes stay visible, and common ones stay readable.
        if count == 0 { 0.0 } else { 0.08 + 0.5 * count as f64 / all }
    };
    html! {
        div.wide {
            table.confusion {
                caption { "Each row is an actual class, each column a predicted class, on public data. Shares are those of a row." }
                tr { th scope="col" { "actual \\ predicted" } @for name in &confusion.names { th scope="col" { (visible(name)) } } }
                @for (actual, (name, counts)) in confusion.names.iter().zip(&confusion.counts).enumerate() {
                    tr {
                        th scope="row" { (visible(name)) }
                        @for (predicted, count) in counts.iter().enumerate() {
                            @let colour = if actual == predicted { "right" } else { "wrong" };
                            td style=(format!("background:rgba(var(--{colour}),{:.2})", shade(*count, counts))) {
                                (count)
                                @if *count > 0 && let Some(share) = share_of(*count, counts.iter().sum()) {
                                    small { (share) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Replaces characters that could hide or reorder text by spaces.
fn visible(text: &str) -> String {
    text.chars().map(|c| if escape::is_unsafe(c) { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_break_out_of_their_element() {
        let names = vec!["<script>alert('1')</script>".into(), "\"b\" & c\u{1b}\u{9b}\u{202e}".into()];
        let table = matrix(&Confusion { names, counts: vec![vec![9, 1], vec![0, 3]] }).into_string();
        assert!(!table.contains("<script>") && table.contains("&lt;script&gt;alert('1')&lt;"), "{table}");
        assert!(table.contains("&quot;b&quot; &amp; c   <"), "{table}");
    }

    #[test]
    fn bytes_are_written_in_base_64() {
        // The examples of RFC 4648, Section 10.
        for (bytes, expected) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
    }

    #[test]
    fn a_cell_is_shaded_by_its_part_of_the_row() {
        let names = vec!["a".into(), "b".into()];
        let table = matrix(&Confusion { names, counts: vec![vec![9, 1], vec![0, 3]] }).into_string();
        let shades: Vec<&str> =
            table.split("rgba(var(--").skip(1).map(|rest| rest.split(")\"").next().unwrap()).collect();
        assert_eq!(shades, ["right),0.53", "wrong),0.13", "wrong),0.00", "right),0.58"]);
    }
}
