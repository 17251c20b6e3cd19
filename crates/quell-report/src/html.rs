//! A report as one self-contained HTML page: no scripts, links or fonts.

use std::fmt::Write;

use crate::escape;
use crate::facts::{Confusion, Report};

/// Style for light and dark screens and for print. Figures have fixed colours; the dark style replaces each
/// colour by its value.
const STYLE: &str = "
:root{--paper:#ffffff;--card:#f6f8fa;--ink:#222222;--faint:#666666;--line:#d8dee4;--accent:#0072b2;--right:0,114,178;--wrong:213,94,0;color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{--paper:#14181d;--card:#1d232a;--ink:#e6e9ec;--faint:#9aa4ae;--line:#343d46;--accent:#5cb3e6;--right:92,179,230;--wrong:255,145,77}}
@media print{:root{--paper:#ffffff;--card:#ffffff;--ink:#000000;--faint:#444444;--line:#bbbbbb;--accent:#0072b2;--right:0,114,178;--wrong:213,94,0}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:64rem;padding:2rem 1.25rem 4rem;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,'Segoe UI','Noto Sans',Helvetica,Arial,sans-serif}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .3rem;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2.4rem 0 .7rem;padding-bottom:.3rem;border-bottom:1px solid var(--line)}
p{margin:.4rem 0}
.faint{color:var(--faint)}
.headlines{display:grid;grid-template-columns:repeat(auto-fit,minmax(11rem,1fr));gap:.8rem;margin:1.4rem 0}
.headlines div{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.8rem 1rem}
.headlines b{display:block;font-size:1.55rem;line-height:1.25;color:var(--accent);font-weight:650}
.headlines span{display:block;color:var(--faint);font-size:.85rem}
dl{margin:0}
.promise div{margin:.45rem 0}
.promise dt{display:inline;font-weight:650}
.promise dd{display:inline;margin:0}
.lists{columns:2 24rem;column-gap:2.5rem}
.lists section{break-inside:avoid;padding-top:2rem}
.lists section h2{margin-top:0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
.list{width:100%}
.list th,.list td{text-align:left;vertical-align:top;padding:.28rem 0;border-bottom:1px solid var(--line);font-weight:400}
.list th{color:var(--faint);width:11rem;padding-right:1rem}
.list td{overflow-wrap:anywhere}
.wide{overflow-x:auto}
.confusion th,.confusion td{padding:.3rem .55rem;text-align:right;border:1px solid var(--line);font-weight:400;white-space:nowrap}
.confusion th{color:var(--faint)}
.confusion caption{caption-side:bottom;text-align:left;color:var(--faint);font-size:.9rem;padding-top:.5rem}
.confusion td{min-width:2.6rem;-webkit-print-color-adjust:exact;print-color-adjust:exact}
.figures{display:grid;gap:1.2rem;max-width:52rem}
figure{margin:0;border:1px solid var(--line);border-radius:.5rem;overflow:hidden;break-inside:avoid}
figure svg{display:block;width:100%;height:auto}
figcaption{padding:.55rem .9rem .7rem;color:var(--faint);font-size:.9rem;border-top:1px solid var(--line)}
footer{margin-top:2.5rem;color:var(--faint);font-size:.9rem}
svg [fill='#ffffff']{fill:var(--paper)}svg [fill='#222222']{fill:var(--ink)}svg [fill='#666666']{fill:var(--faint)}
svg [stroke='#222222']{stroke:var(--ink)}svg [stroke='#e4e4e4']{stroke:var(--line)}
@media (prefers-color-scheme:dark){svg [stroke='#0072b2']{stroke:#5cb3e6}svg [fill='#0072b2']{fill:#5cb3e6}svg [stroke='#d55e00']{stroke:#ff914d}svg [fill='#d55e00']{fill:#ff914d}}
@media print{body{max-width:none;padding:0;font-size:11pt}h2{break-after:avoid}svg [stroke='#0072b2']{stroke:#0072b2}svg [stroke='#d55e00']{stroke:#d55e00}}
";

/// Renders the page.
pub(crate) fn page(facts: &Report) -> String {
    let (title, kind) = (escaped(&facts.title), escaped(facts.kind));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n<p class=\"faint\">{kind}</p>\n\
         <div class=\"headlines\">\n"
    );
    // Writing to a string does not fail.
    for [name, value, remark] in &facts.headlines {
        let _ = writeln!(
            page,
            "<div><span>{}</span><b>{}</b><span>{}</span></div>",
            escaped(name),
            escaped(value),
            escaped(remark)
        );
    }
    page.push_str("</div>\n<h2>The guarantee</h2>\n<dl class=\"promise\">\n");
    for (word, sentence) in &facts.statement {
        let word = if word.is_empty() { String::new() } else { format!("{}: ", escaped(word)) };
        let _ = writeln!(page, "<div><dt>{word}</dt><dd>{}</dd></div>", escaped(sentence));
    }
    page.push_str("</dl>\n");
    if !facts.figures.is_empty() {
        page.push_str("<h2>Figures</h2>\n<div class=\"figures\">\n");
        for (figure, reading) in &facts.figures {
            let _ = writeln!(
                page,
                "<figure>{}<figcaption>{}</figcaption></figure>",
                figure.svg(),
                escaped(reading)
            );
        }
        page.push_str("</div>\n");
    }
    if let Some(confusion) = &facts.confusion {
        let _ = write!(page, "<h2>Confusion matrix</h2>\n{}", matrix(confusion));
    }
    page.push_str("<div class=\"lists\">\n");
    for (heading, rows) in &facts.lists {
        let _ = writeln!(page, "<section><h2>{}</h2>\n<table class=\"list\">", escaped(heading));
        for [name, value] in rows {
            let _ = writeln!(
                page,
                "<tr><th scope=\"row\">{}</th><td>{}</td></tr>",
                escaped(name),
                escaped(value)
            );
        }
        page.push_str("</table></section>\n");
    }
    page.push_str(
        "</div>\n<footer>Everything on this page is public: it follows from settings, from releases that were paid for, and from data that was \
         declared public.</footer>\n</body>\n</html>\n",
    );
    page
}

/// Renders the confusion matrix. A cell is darker if it is a larger part of its row.
fn matrix(confusion: &Confusion) -> String {
    let mut table = String::from(
        "<div class=\"wide\"><table class=\"confusion\">\n<caption>Each row is an actual class, each column a predicted class, on public data.</caption>\n<tr><th></th>",
    );
    for name in &confusion.names {
        let _ = write!(table, "<th scope=\"col\">{}</th>", escaped(name));
    }
    table.push_str("</tr>\n");
    for (actual, (name, counts)) in confusion.names.iter().zip(&confusion.counts).enumerate() {
        let _ = write!(table, "<tr><th scope=\"row\">{}</th>", escaped(name));
        let all = counts.iter().sum::<u64>().max(1) as f64;
        for (predicted, count) in counts.iter().enumerate() {
            let colour = if actual == predicted { "right" } else { "wrong" };
            // Rare mistakes stay visible, and common ones stay readable.
            let shade = if *count == 0 { 0.0 } else { 0.08 + 0.5 * *count as f64 / all };
            let _ = write!(table, "<td style=\"background:rgba(var(--{colour}),{shade:.2})\">{count}</td>");
        }
        table.push_str("</tr>\n");
    }
    table + "</table></div>\n"
}

/// Escapes text for HTML, inside an element or an attribute.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if escape::is_unsafe(c) => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cannot_break_out_of_their_element() {
        let names = vec!["<script>alert('1')</script>".into(), "\"b\" & c\u{1b}\u{9b}\u{202e}".into()];
        let table = matrix(&Confusion { names, counts: vec![vec![9, 1], vec![0, 3]] });
        assert!(!table.contains("<script>") && table.contains("&lt;script&gt;alert(&#39;1&#39;)"), "{table}");
        assert!(table.contains("&quot;b&quot; &amp; c   <"), "{table}");
    }

    #[test]
    fn a_cell_is_shaded_by_its_part_of_the_row() {
        let table =
            matrix(&Confusion { names: vec!["a".into(), "b".into()], counts: vec![vec![9, 1], vec![0, 3]] });
        let shades: Vec<&str> =
            table.split("rgba(var(--").skip(1).map(|rest| rest.split(")\"").next().unwrap()).collect();
        assert_eq!(shades, ["right),0.53", "wrong),0.13", "wrong),0.00", "right),0.58"]);
    }
}
