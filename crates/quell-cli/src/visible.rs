//! Text that people typed or files hold, made harmless before anybody sees it.
//!
//! A control character can move the cursor, change colours or forge a line. A formatting character can turn the order of what is read around. Each is shown by its
//! code instead.

use std::fmt::Write;

/// Longest sentence that is shown of an error, in characters.
pub(crate) const LONGEST: usize = 1000;

/// Whether a character acts on what shows it instead of being shown: a control character, a line separator, or one that turns the direction of text or has no width.
pub(crate) fn acts(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// One line: everything that acts is shown by its code, line ends included.
pub(crate) fn line(text: &str) -> String {
    shown(text, |_| false)
}

/// Several lines: line ends stay. Whatever stands within a line must have gone through [`line`] or quotes before.
pub(crate) fn lines(text: &str) -> String {
    shown(text, |c| c == '\n')
}

/// The same JSON document, with everything that acts written by its code. In a document that was serialized such characters stand in strings alone.
pub(crate) fn json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if acts(c) && c != '\n' {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                // Writing to a string does not fail.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

/// At most so many characters, with a mark where something is left out.
pub(crate) fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn shown(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if acts(c) && !stays(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_shown_by_its_code_and_words_stay_as_they_are() {
        assert_eq!(
            line("a\u{1b}[31mred\r\nline 9 forged\u{9b}2J\u{202e}"),
            "a\\u{1b}[31mred\\r\\nline 9 forged\\u{9b}2J\\u{202e}"
        );
        assert_eq!(lines("a\n\tb\u{7}"), "a\n\\tb\\u{7}");
        for words in ["ε ≤ 1.5 at δ = 1e-5", "naïve 東京 🦀", "\"quoted\" \\ back"] {
            assert_eq!((line(words), lines(words), json(words)), (words.into(), words.into(), words.into()));
        }
        // Of all characters, none that a terminal obeys is left.
        let all: String = ('\0'..='\u{10ffff}').collect();
        assert!(!line(&all).chars().any(acts) && !lines(&all).chars().any(|c| c != '\n' && acts(c)));
    }

    #[test]
    fn json_says_the_same_as_before() {
        let all: String = ('\0'..='\u{10ffff}').collect();
        let document = serde_json::to_string_pretty(&[&all]).unwrap();
        let safe = json(&document);
        assert!(!safe.chars().any(|c| c != '\n' && acts(c)));
        assert_eq!(serde_json::from_str::<Vec<String>>(&safe).unwrap(), [all]);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!((short("εδ", 2), short("εδε", 2)), ("εδ".into(), "εδ…".into()));
    }
}
