//! What is wrong with a TOML file, in a few words and a short picture.

use crate::data::Place;

/// Longest part of a message that is shown, in characters: a message quotes names from the file.
const MESSAGE: usize = 300;

/// Characters that are shown on each side of the place.
const SIDE: usize = 35;

/// The line and column, the reader's message, and the text at that place.
///
/// However long a line of the file is, little of it is shown.
pub(crate) fn describe(text: &str, error: &toml::de::Error) -> String {
    let message = short(&error.message().split_whitespace().collect::<Vec<_>>().join(" "));
    let Some(start) = error.span().map(|span| text.floor_char_boundary(span.start.min(text.len()))) else {
        return message;
    };
    let before = &text[..start];
    let begin = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.matches('\n').count() + 1;
    let column = text[begin..start].chars().count();
    let rest = text[start..].split('\n').next().unwrap_or_default();
    // Backwards from the place, so that a long line need not be walked again.
    let left: Vec<char> = text[begin..start].chars().rev().take(SIDE).collect();
    let mut excerpt: String = if column > left.len() { "…".into() } else { String::new() };
    let at = excerpt.chars().count() + left.len();
    excerpt.extend(left.into_iter().rev());
    excerpt.extend(rest.chars().take(SIDE));
    if rest.chars().nth(SIDE).is_some() {
        excerpt.push('…');
    }
    format!("line {line}, column {}: {message}\n{}", column + 1, Place { expression: excerpt, at })
}

fn short(text: &str) -> String {
    let mut short: String = text.chars().take(MESSAGE).collect();
    if text.chars().nth(MESSAGE).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        describe(text, &toml::from_str::<crate::run::Configuration>(text).unwrap_err())
    }

    #[test]
    fn the_place_is_shown_and_little_else() {
        let said = said("[training]\nsteps = 3\nstepps = 5\n");
        assert!(
            said.starts_with("line 3, column 1: unknown field `stepps`")
                && said.ends_with("\n  stepps = 5\n  ^"),
            "{said}"
        );
    }

    #[test]
    fn a_line_or_a_name_without_end_is_cut() {
        let long = "x".repeat(1 << 20);
        for text in [
            format!("{long} = 5"),
            format!("[training]\nsteps = \"{long}\""),
            format!("[training]\nmodel = {{ {long} }}"),
            long,
        ] {
            let said = said(&text);
            assert!(said.chars().count() < 800 && said.lines().count() <= 3, "{} characters", said.len());
        }
    }
}
