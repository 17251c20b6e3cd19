//! A report as Markdown, with tables in place of figures.

use std::fmt::Write;

use quell_privacy::number::format_brief;

use crate::facts::{Confusion, Report, share_of};
use crate::learned::Findings;
use crate::{
    escape,
    plot::{Edge, Figure},
};

/// Rows of a table that replaces a figure.
const ROWS: usize = 12;

/// Renders the page.
pub(crate) fn page(facts: &Report) -> String {
    // Writing to a string does not fail.
    let mut page = format!("# {}\n\n", text(&facts.title));
    let mut later = String::new();
    let headlines: Vec<String> = facts
        .headlines
        .iter()
        .map(|[name, value, remark]| format!("{} **{}** {}", text(name), text(value), text(remark)))
        .collect();
    let _ = writeln!(page, "{}.\n\n## The guarantee\n", headlines.join(", "));
    for (word, sentence) in &facts.statement {
        let word = if word.is_empty() { String::new() } else { format!("**{}:** ", text(word)) };
        let _ = writeln!(page, "- {word}{}", text(sentence));
    }
    if let Some((scatter, reading)) = &facts.scatter {
        let chosen = chosen(scatter.points.len())
            .into_iter()
            .map(|index| scatter.points[index].map(|number| format_brief(short(number))).to_vec());
        let table = table(&[text(&scatter.x), text(&scatter.y)], &chosen.collect::<Vec<_>>(), 0);
        let (title, subtitle) = (text(&scatter.title), sentence(&scatter.subtitle));
        let _ = write!(later, "\n## {title}\n\n{subtitle} {}\n\n{table}", text(reading));
    }
    let listed = |rows: &[[String; 2]]| -> Vec<Vec<String>> {
        rows.iter().map(|[name, value]| vec![text(name), text(value)]).collect()
    };
    for (heading, rows) in &facts.lists {
        let rows = listed(rows);
        let _ = write!(page, "\n## {heading}\n\n{}", table(&[String::new(), String::new()], &rows, 0));
    }
    for Findings { heading, reading, head, rows, .. } in facts.learned.iter().chain(&facts.tables) {
        let escaped = |cells: &[String]| cells.iter().map(|cell| text(cell)).collect::<Vec<_>>();
        let rows: Vec<Vec<String>> = rows.iter().map(|row| escaped(row)).collect();
        let table = table(&escaped(head), &rows, 0);
        let _ = write!(page, "\n## {heading}\n\n{}\n\n{table}", text(reading));
    }
    if let Some(columns) = &facts.columns {
        let table = table(&columns.head.map(str::to_owned), &listed(&columns.rows), 0);
        let _ = write!(page, "\n## {}\n\n{}\n\n{table}", columns.heading, text(&columns.reading));
    }
    if let Some(confusion) = &facts.confusion {
        let _ = write!(page, "\n## Confusion matrix on public data\n\n{}", matrix(confusion));
    }
    for (figure, reading) in &facts.figures {
        let _ = write!(
            page,
            "\n## {}\n\n{} {}\n\n{}",
            text(&figure.title),
            sentence(&figure.subtitle),
            text(reading),
            points(figure)
        );
    }
    page + &later
}

/// A number with six digits.
fn short(number: f64) -> f64 {
    format!("{number:.5e}").parse().unwrap_or(number)
}

/// The numbers of a few rows, evenly chosen from `count`.
fn chosen(count: usize) -> Vec<usize> {
    let last = count.saturating_sub(1);
    let mut chosen: Vec<usize> = (0..ROWS.min(count)).map(|row| row * last / (ROWS - 1)).collect();
    chosen.dedup();
    chosen
}

/// Turns a phrase into a sentence: capital letter and full stop.
fn sentence(words: &str) -> String {
    let mut letters = text(words).chars().collect::<Vec<_>>().into_iter();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect::<String>() + ".")
}

/// Renders the confusion matrix, one row per actual class.
fn matrix(confusion: &Confusion) -> String {
    let names: Vec<String> = confusion.names.iter().map(|name| text(name)).collect();
    let head: Vec<String> =
        std::iter::once("actual \\ predicted".to_owned()).chain(names.iter().cloned()).collect();
    let rows: Vec<Vec<String>> = names
        .iter()
        .zip(&confusion.counts)
        .map(|(name, counts)| {
            let all = counts.iter().sum::<u64>();
            let cell = |count: &u64| match share_of(*count, all) {
                Some(share) => format!("{count} ({share})"),
                None => count.to_string(),
            };
            std::iter::once(name.clone()).chain(counts.iter().map(cell)).collect()
        })
        .collect();
    table(&head, &rows, 1)
}

/// Renders some points of the first curve as a table.
fn points(figure: &Figure) -> String {
    let Some(series) = figure.series.first() else { return String::new() };
    let rows =
        chosen(series.points.len()).into_iter().filter_map(|index| series.points.get(index)).map(|point| {
            let value = if series.claim == Edge::Lower { point.lower } else { point.upper };
            vec![format_brief(point.x), format_brief(value)]
        });
    table(&[text(&figure.x.label), text(&figure.y.label)], &rows.collect::<Vec<_>>(), 0)
}

/// Renders a table; columns from `right` on are right-aligned if `right` is positive.
fn table(head: &[String], rows: &[Vec<String>], right: usize) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule: Vec<String> = (0..head.len())
        .map(|column| if right > 0 && column >= right { "---:" } else { "---" }.to_owned())
        .collect();
    let mut table = line(head) + &line(&rule);
    table.extend(rows.iter().map(|row| line(row)));
    table
}

/// Escapes text for Markdown.
fn text(words: &str) -> String {
    let mut escaped = String::new();
    for c in words.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' => escaped.extend(['\\', c]),
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
    fn words_cannot_break_out_of_their_cell() {
        assert_eq!(text("a|b\n<script>*x*\u{9b}\u{202e}"), "a\\|b &lt;script&gt;\\*x\\*  ");
        let confusion =
            Confusion { names: vec!["a|b".into(), "c".into()], counts: vec![vec![3, 1], vec![0, 7]] };
        assert_eq!(
            matrix(&confusion),
            "| actual \\ predicted | a\\|b | c |\n| --- | ---: | ---: |\n| a\\|b | 3 (75.0 %) | 1 (25.0 %) |\n| c | 0 (0.0 %) | 7 (100.0 %) |\n"
        );
    }
}
