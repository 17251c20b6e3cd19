//! Writes a schema as TOML, with gaps for the user to fill in.

use std::fmt::Write;

use super::{Flags, Role, Values};

impl Flags {
    /// Returns the schema as TOML, with gaps for the user to fill in.
    pub(super) fn text(&self, roles: &[(String, Role)], values: &[Values], label: &str) -> String {
        let mut text = String::from(
            "# Public facts about the table. Do not copy values from private records into this file.\n",
        );
        if !self.ignore.is_empty() {
            let names: Vec<String> = self.ignore.iter().map(|name| quoted(name)).collect();
            let _ = writeln!(text, "ignore = [{}]", names.join(", "));
        }
        if let Some(user) = &self.user {
            let _ = writeln!(text, "user = {}", quoted(user));
        }
        let column = |name: &str| roles.iter().zip(values).find(|((other, _), _)| other == name);
        let _ = writeln!(text, "\n[label]\ncolumn = {}", quoted(label));
        if self.label.is_none() {
            text.push_str("# The last column is the label; choose another with --label.\n");
        }
        if let Some(((_, role), values)) = column(label) {
            text.push_str(&value_lines(*role, values, "classes"));
        }
        text.push_str("\n# A test part:\n# [test]\n# share = 0.2\n");
        for ((name, role), values) in roles.iter().zip(values).filter(|((name, _), _)| name != label) {
            let _ = write!(
                text,
                "\n[[column]]\nname = {}\n{}",
                quoted(name),
                value_lines(*role, values, "categories")
            );
            if matches!(values, Values::Names(_)) {
                text.push_str("unknown = true\n");
            }
        }
        text
    }
}

/// Writes the lines for the values of a column, or the gaps to fill in.
fn value_lines(role: Role, values: &Values, lists: &str) -> String {
    match (values, role) {
        (Values::Bounds([low, high]), _) => format!("bounds = [{low:?}, {high:?}]\n"),
        (Values::Names(names), _) if names.is_empty() => {
            format!(
                "# No category is frequent enough to be released: list some from public knowledge, or ignore the column.\n# {lists} = [\"…\", \"…\"]\n"
            )
        }
        (Values::Names(names), _) => {
            format!("{lists} = [{}]\n", names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "))
        }
        (Values::Open, Role::Number) => "# bounds = [lowest, highest]\n".into(),
        (Values::Open, Role::Category) => format!("# {lists} = [\"…\", \"…\"]\n"),
        (Values::Open, Role::Open) => format!("# bounds = [lowest, highest], or {lists} = [\"…\", \"…\"]\n"),
    }
}

/// Writes a TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_toml() {
        for name in ["plain", "say \"a\"", "back\\slash", "two\nlines", "é'"] {
            let text = format!("name = {}", quoted(name));
            let read: toml::Table = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(read["name"].as_str(), Some(name));
        }
    }
}
