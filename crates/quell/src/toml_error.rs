//! What is wrong with a TOML file, in a few words that quote nothing of the file.
//!
//! A private file that is named by mistake, such as a list of users in place of a schema, must not appear in a
//! message. So a message has the place, and names of settings that this crate knows.

use crate::hint::nearest;

/// Longest part of a message that is shown, in characters.
const MESSAGE: usize = 300;

/// What the reader of TOML says before the names or types that this crate expects.
const EXPECTED: &str = ", expected ";

/// The line and column, and the reader's message without anything that it quotes from the file.
#[must_use]
pub fn describe(text: &str, error: &toml::de::Error) -> String {
    let message = without_quotations(&error.message().split_whitespace().collect::<Vec<_>>().join(" "));
    let message = short(&message);
    let Some(start) = error.span().map(|span| text.floor_char_boundary(span.start.min(text.len()))) else {
        return message;
    };
    let before = &text[..start];
    let begin = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.matches('\n').count() + 1;
    let column = text[begin..start].chars().count();
    format!("line {line}, column {}: {message}", column + 1)
}

/// The message up to the first quotation, and what was expected.
///
/// Names and values of the file are quoted before the last "expected", and names of this crate after it. A name
/// that is missing is one of this crate.
fn without_quotations(message: &str) -> String {
    if message.starts_with("missing field") {
        return message.to_owned();
    }
    // Where nothing is allowed, nothing is expected.
    for nothing in [", there are no fields", ", there are no variants"] {
        if let Some(found) = message.strip_suffix(nothing) {
            return format!("{}{nothing}", before_quotation(found));
        }
    }
    let (found, expected) = match message.rsplit_once(EXPECTED) {
        Some((found, expected)) => (found, Some(expected)),
        None => (message, None),
    };
    let said = before_quotation(found);
    let Some(expected) = expected else { return said.to_owned() };
    // The nearest name is one of this crate, too.
    let name = found[said.len()..].trim().trim_matches(QUOTES);
    let known = expected.split('`').skip(1).step_by(2);
    let near = nearest(name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    format!("{said}{EXPECTED}{expected}{near}")
}

/// The characters around quotations.
const QUOTES: [char; 3] = ['`', '"', '\''];

/// The text before the first quotation.
fn before_quotation(text: &str) -> &str {
    text.split(QUOTES).next().unwrap_or_default().trim_end()
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
    use crate::data::Schema;

    fn said(text: &str) -> String {
        describe(text, &toml::from_str::<crate::run::Configuration>(text).unwrap_err())
    }

    #[test]
    fn the_place_and_the_nearest_setting_are_shown() {
        let said = said("[training]\nsteps = 3\nstepps = 5\n");
        assert!(said.starts_with("line 3, column 1: unknown field, expected one of `"), "{said}");
        let label = "[label]\ncolumn = 'income'\nclases = ['a']\n";
        let said = describe(label, &toml::from_str::<Schema>(label).unwrap_err());
        assert_eq!(
            said,
            "line 3, column 1: unknown field, expected one of `column`, `classes`, `bounds`, `aliases`; did you mean `classes`?"
        );
    }

    /// A file that somebody named by mistake: whatever is in it, nothing of it is shown.
    #[test]
    fn nothing_of_the_file_is_quoted() {
        let secret = "Eve-4711";
        for text in [
            secret.to_owned(),
            format!("{secret}\n{secret}"),
            format!("name,{secret}\n"),
            format!("{secret} = 5"),
            format!("'{secret}' = 5"),
            format!("[{secret}]\na = 1\n[{secret}]\n"),
            format!("{secret} = 1\n{secret} = 2\n"),
            format!("[training]\nsteps = '{secret}'"),
            format!("[training]\nsteps = '{secret}, expected {secret}'"),
            format!("[training]\nsteps = \"{secret}"),
            format!("[training]\nsteps = {secret}"),
            format!("learner = '{secret}'"),
            format!("learner = '`{secret}`, expected `{secret}`'"),
            format!("[data]\nunit = '{secret}'"),
            format!("[model]\nlayers = [{{ {secret} = 3 }}]"),
            format!("[[model.layers]]\nglobal_mean = {{ 'a, expected {secret}' = 1 }}"),
            format!("[training]\noptimizer = {{ {secret} = {{}} }}"),
            format!("[training.privacy]\nneighbors = '{secret}'"),
            format!("steps = [1, '{secret}\n"),
        ] {
            let words = ["Eve", "4711"];
            if let Err(error) = toml::from_str::<crate::run::Configuration>(&text) {
                let said = describe(&text, &error);
                assert!(!words.iter().any(|word| said.contains(word)), "{text}: {said}");
            } else {
                panic!("{text} is a configuration");
            }
            if let Err(error) = toml::from_str::<Schema>(&text) {
                let said = describe(&text, &error);
                assert!(!words.iter().any(|word| said.contains(word)), "{text}: {said}");
            }
        }
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
