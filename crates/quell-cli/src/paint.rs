//! Colours and bold letters, where a terminal shows them.
//!
//! Every text is understandable without them. `NO_COLOR` turns them off, and so do pipes and files.

use std::io::IsTerminal;

const BOLD: &str = "\u{1b}[1m";
const RED: &str = "\u{1b}[1;31m";
const YELLOW: &str = "\u{1b}[1;33m";
const CYAN: &str = "\u{1b}[1;36m";
const GREEN: &str = "\u{1b}[1;32m";
const PLAIN: &str = "\u{1b}[0m";

/// Whether a stream shows colours.
pub(crate) fn is_shown(stream: &impl IsTerminal) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Paints the word before the first colon of a message, such as `error` or `hint`.
///
/// The text must be escaped before.
pub(crate) fn message(text: &str) -> String {
    let Some((word, rest)) = text.split_once(": ") else { return text.to_owned() };
    let colour = match word {
        "error" => RED,
        "refused" => YELLOW,
        "hint" | "note" => CYAN,
        _ => return text.to_owned(),
    };
    format!("{colour}{word}:{PLAIN} {rest}")
}

/// Paints the headings, commands and flags of a help text.
pub(crate) fn help(text: &str) -> String {
    let mut painted = String::new();
    let mut lists_commands = false;
    for line in text.lines() {
        let is_heading = !line.starts_with(' ') && (line.ends_with(':') || line.starts_with("Usage: "));
        if is_heading {
            lists_commands = line == "Commands:";
            let end = line.find(':').map_or(line.len(), |end| end + 1);
            painted.extend([GREEN, &line[..end], PLAIN, &line[end..]]);
        } else if let Some(length) = term(line, lists_commands) {
            let start = line.len() - line.trim_start().len();
            let (term, rest) = line[start..].split_at(length);
            painted.extend([&line[..start], BOLD, term, PLAIN, rest]);
        } else {
            painted.push_str(line);
        }
        painted.push('\n');
    }
    painted
}

/// The length of the flag or the command with which a line of a list starts.
fn term(line: &str, lists_commands: bool) -> Option<usize> {
    let words = line.trim_start();
    let indent = line.len() - words.len();
    if !(2..=6).contains(&indent) {
        return None;
    }
    let end = words.find("  ").unwrap_or(words.len());
    let is_flag = words.starts_with('-') && words[1..].starts_with(|c: char| c == '-' || c.is_alphabetic());
    let is_argument = indent == 2 && (words.starts_with('<') || words.starts_with('['));
    let is_command = lists_commands && indent == 2;
    (is_flag || is_argument || is_command).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text without what it is painted with.
    fn bare(text: &str) -> String {
        [BOLD, RED, YELLOW, CYAN, GREEN, PLAIN]
            .iter()
            .fold(text.to_owned(), |text, code| text.replace(code, ""))
    }

    #[test]
    fn painted_help_has_the_words_of_the_help() {
        let text = "About it\n\nUsage: quell <COMMAND>\n\nCommands:\n  train   Train a model\n\nOptions:\n  -h, --help  Print help\n      --epsilon <E>\n          The ε\n";
        let painted = help(text);
        assert_eq!(bare(&painted), text);
        for part in ["Commands:", "train", "-h, --help", "--epsilon <E>", "Usage:"] {
            assert!(painted.contains(&format!("m{part}{PLAIN}")), "{part}: {painted:?}");
        }
        assert!(!painted.contains(&format!("{BOLD}The ε")));
    }

    #[test]
    fn only_the_kind_of_a_message_is_painted() {
        assert_eq!(message("error: a: b"), format!("{RED}error:{PLAIN} a: b"));
        assert_eq!(message("wrote a.txt"), "wrote a.txt");
    }
}
