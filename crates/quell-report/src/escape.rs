//! Escapes untrusted text before it is shown.
//!
//! A control character can move the cursor, change colours or forge a line. A formatting character can change
//! the order in which text is read. Both are replaced by their code.

use std::fmt::Write;

/// Largest number of characters that are shown of an error message.
pub const LONGEST: usize = 1000;

/// Whether a character must be escaped.
///
/// Such characters are control characters, line separators, and characters that change the direction of text
/// or have no width.
#[must_use]
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Escapes all unsafe characters, line ends included.
#[must_use]
pub fn line(text: &str) -> String {
    escape(text, |_| false)
}

/// Escapes all unsafe characters except line ends.
///
/// Text inside a line must already have passed through [`line()`] or be quoted.
#[must_use]
pub fn lines(text: &str) -> String {
    escape(text, |c| c == '\n')
}

/// Escapes all unsafe characters of a JSON document except line ends.
///
/// In a serialized document such characters occur only inside strings, so the document keeps its meaning.
#[must_use]
pub fn json(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) && c != '\n' {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                // Writing to a string does not fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Cuts a text to at most `most` characters and marks the cut with an ellipsis.
#[must_use]
pub fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn escape(text: &str, is_kept: impl Fn(char) -> bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_unsafe(c) && !is_kept(c) { escaped.extend(c.escape_default()) } else { escaped.push(c) }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_characters_are_shown_by_their_codes_and_words_are_unchanged() {
        assert_eq!(
            line("a\u{1b}[31mred\r\nline 9 forged\u{9b}2J\u{202e}"),
            "a\\u{1b}[31mred\\r\\nline 9 forged\\u{9b}2J\\u{202e}"
        );
        assert_eq!(lines("a\n\tb\u{7}"), "a\n\\tb\\u{7}");
        for words in ["ε ≤ 1.5 at δ = 1e-5", "naïve 東京 🦀", "\"quoted\" \\ back"] {
            assert_eq!((line(words), lines(words), json(words)), (words.into(), words.into(), words.into()));
        }
        // No escaped text contains an unsafe character.
        let all: String = ('\0'..='\u{10ffff}').collect();
        assert!(
            !line(&all).chars().any(is_unsafe) && !lines(&all).chars().any(|c| c != '\n' && is_unsafe(c))
        );
    }

    #[test]
    fn escaped_json_has_the_same_meaning() {
        let all: String = ('\0'..='\u{10ffff}').collect();
        let document = serde_json::to_string_pretty(&[&all]).unwrap();
        let safe = json(&document);
        assert!(!safe.chars().any(|c| c != '\n' && is_unsafe(c)));
        assert_eq!(serde_json::from_str::<Vec<String>>(&safe).unwrap(), [all]);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!((short("εδ", 2), short("εδε", 2)), ("εδ".into(), "εδ…".into()));
    }
}
